//! Until when an answer is worth anything.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Phase, ReadError};

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

    /// The same moment, or a later one: a quarter of the time that it was set for from now, within one and a half times that
    /// time in all.
    pub(crate) fn extended(self) -> Deadline {
        let whole = self.at.saturating_duration_since(self.set);
        let latest = self.at + whole / 2;
        Deadline { at: self.at.max(latest.min(Instant::now() + whole / 4)), ..self }
    }

    /// An error once it has passed while what came to do `what` was being read.
    pub(crate) fn check(self, what: &str) -> Result<(), ReadError> {
        if self.remaining() > Duration::ZERO {
            return Ok(());
        }
        Err(ReadError::Timeout { what: what.to_owned(), phase: Phase::Reading, after: self.elapsed() })
    }

    /// Waits for `future` until the deadline; `None` when that passes first.
    pub(crate) async fn limit<F: Future>(self, future: F) -> Option<F::Output> {
        tokio::time::timeout_at(self.at, future).await.ok()
    }
}
