//! `-v`: how long reading took, and how long the answer.

use std::time::{Duration, Instant};

use taffrail_apps::{Objects, Snapshot};

use crate::output::answer;
use crate::phrase;

/// Tells on stderr, when it ends, how long it ran.
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts one where somebody wants to know.
    pub(super) fn start(verbose: u8) -> Option<Stopwatch> {
        (verbose > 0).then(|| Stopwatch(Instant::now()))
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        answer::tell(phrase!("answered in {} ms\n", self.0.elapsed().as_millis()));
    }
}

/// Tells on stderr what was read of dumps, and how long it took.
pub(super) fn tell_read(snapshots: &[Snapshot], took: Duration) {
    let objects: usize = snapshots.iter().map(|snapshot| snapshot.all().count()).sum();
    let (dumps, took) = (snapshots.len(), took.as_millis());
    answer::tell(phrase!("read {} objects of {} dumps in {} ms\n", objects, dumps, took));
}
