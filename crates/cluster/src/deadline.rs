//! Until when an answer is worth anything.

use std::time::Duration;

use tokio::time::Instant;

/// A moment by which everything that is asked of a cluster must have been answered.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    set: Instant,
    at: Instant,
}

impl Deadline {
    /// The moment `timeout` from now; a timeout of more than a year is a year.
    pub fn after(timeout: Duration) -> Deadline {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let set = Instant::now();
        Deadline { set, at: set + timeout.min(YEAR) }
    }

    /// How long it is since the deadline was set.
    pub fn elapsed(self) -> Duration {
        self.set.elapsed()
    }

    /// How much time is left; zero when it is past.
    pub fn remaining(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Waits for `future` until the deadline; `None` when that passes first.
    pub(crate) async fn limit<F: Future>(self, future: F) -> Option<F::Output> {
        tokio::time::timeout_at(self.at, future).await.ok()
    }
}
