//! How long a script has computed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::script::computed;

/// Says when a script has computed for long enough.
///
/// No verdict depends on it but that a script was stopped, so the clock is not one of those that this crate must not read.
#[derive(Debug)]
pub(super) struct Watch {
    made: Instant,
    /// Before this time no script can have used what it may; in nanoseconds since it was made.
    look: AtomicU64,
    /// What the thread has computed when the script shall end, in nanoseconds; 0 where the system does not tell.
    end: AtomicU64,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch { made: now(), look: AtomicU64::new(u64::MAX), end: AtomicU64::new(0) }
    }

    /// A script begins on this thread, and may compute for so long.
    pub(super) fn start(&self, time: Duration) {
        let time = nanoseconds(time);
        self.end.store(
            computed().map_or(0, |computed| nanoseconds(computed).saturating_add(time)),
            Ordering::Relaxed,
        );
        self.look.store(self.elapsed().saturating_add(time), Ordering::Relaxed);
    }

    /// No script runs.
    pub(super) fn stop(&self) {
        self.look.store(u64::MAX, Ordering::Relaxed);
    }

    /// Whether the script has computed for longer than it may. Asked by the thread it runs on.
    pub(super) fn is_over(&self) -> bool {
        let elapsed = self.elapsed();
        if elapsed <= self.look.load(Ordering::Relaxed) {
            return false;
        }
        let end = self.end.load(Ordering::Relaxed);
        let left = computed().map_or(0, |computed| end.saturating_sub(nanoseconds(computed)));
        // On a busy machine others had the time: what is left cannot be used before this.
        self.look.store(elapsed.saturating_add(left), Ordering::Relaxed);
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
