//! `-v`: prints the time for reading dumps, and the time for the answer.

use std::time::{Duration, Instant};

use taffrail_apps::{Objects, Snapshot};

use crate::output::answer::Console;
use crate::phrase;

/// A stopwatch that prints the time since its start, in milliseconds, to stderr when it is dropped.
pub(super) struct Stopwatch(Instant, Console);

impl Stopwatch {
    /// Starts a stopwatch if the user gave `-v` (`verbose` > 0); returns `None` otherwise.
    pub(super) fn start(verbose: u8, console: &Console) -> Option<Stopwatch> {
        (verbose > 0).then(|| Stopwatch(Instant::now(), console.clone()))
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        self.1.tell(phrase!("answered in {} ms\n", self.0.elapsed().as_millis()));
    }
}

/// Prints to stderr the number of objects in dumps, and the time that reading them took.
pub(super) fn tell_read(snapshots: &[Snapshot], took: Duration, console: &Console) {
    let objects: usize = snapshots.iter().map(|snapshot| snapshot.all().count()).sum();
    let (dumps, took) = (snapshots.len(), took.as_millis());
    console.tell(phrase!("read {} objects of {} dumps in {} ms\n", objects, dumps, took));
}
