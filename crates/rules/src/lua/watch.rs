//! Measures the CPU time of a running script.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::script::computed;

/// A stopwatch that tells if a running script has exceeded its CPU time.
///
/// It reads a clock although this crate must read none: that can only stop a script, and does not change verdicts
/// otherwise.
#[derive(Debug)]
pub(super) struct Watch {
    made: Instant,
    /// The earliest time at which a script can have exceeded its limit, in nanoseconds since this watch was made.
    check_after: AtomicU64,
    /// The CPU time of the thread at which the script must end, in nanoseconds; 0 if the system does not report it.
    end: AtomicU64,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch { made: now(), check_after: AtomicU64::new(u64::MAX), end: AtomicU64::new(0) }
    }

    /// Starts to measure a script on this thread; `time` is the limit of its CPU time, or of elapsed time if the system
    /// does not report CPU time.
    pub(super) fn start(&self, time: Duration) {
        let time = nanoseconds(time);
        self.end.store(
            computed().map_or(0, |computed| nanoseconds(computed).saturating_add(time)),
            Ordering::Relaxed,
        );
        self.check_after.store(self.elapsed().saturating_add(time), Ordering::Relaxed);
    }

    /// Stops measuring.
    pub(super) fn stop(&self) {
        self.check_after.store(u64::MAX, Ordering::Relaxed);
    }

    /// Returns true if the script has exceeded its limit. Must be called on the thread that runs it.
    pub(super) fn is_over(&self) -> bool {
        let elapsed = self.elapsed();
        if elapsed <= self.check_after.load(Ordering::Relaxed) {
            return false;
        }
        let end = self.end.load(Ordering::Relaxed);
        let left = computed().map_or(0, |computed| end.saturating_sub(nanoseconds(computed)));
        // On a busy machine other processes had the time; the rest of the limit cannot be used up before this time.
        self.check_after.store(elapsed.saturating_add(left), Ordering::Relaxed);
        left == 0
    }

    fn elapsed(&self) -> u64 {
        nanoseconds(now().duration_since(self.made))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "a script is stopped by a clock, and judged by none")]
fn now() -> Instant {
    Instant::now()
}
