//! The deadline of a read: one time limit for all of its requests.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Phase, ReadError};

/// The time by which all responses of a read must have arrived.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    set: Instant,
    at: Instant,
}

impl Deadline {
    /// Creates the deadline `timeout` from now; more than a year counts as a year.
    pub fn after(timeout: Duration) -> Deadline {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let set = Instant::now();
        Deadline { set, at: set + timeout.min(YEAR) }
    }

    /// Returns the time since the deadline was set.
    pub fn elapsed(self) -> Duration {
        self.set.elapsed()
    }

    /// Returns the remaining time; zero if it has passed.
    pub fn remaining(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Returns this deadline, or a later one: a quarter of its timeout from now, but at most one and a half timeouts
    /// after it was set.
    pub(crate) fn extended(self) -> Deadline {
        let whole = self.at.saturating_duration_since(self.set);
        let latest = self.at + whole / 2;
        Deadline { at: self.at.max(latest.min(Instant::now() + whole / 4)), ..self }
    }

    /// Returns an error if the deadline has passed; `what` names the operation whose response was parsed.
    pub(crate) fn check(self, what: &str) -> Result<(), ReadError> {
        if self.remaining() > Duration::ZERO {
            return Ok(());
        }
        Err(ReadError::Timeout { what: what.to_owned(), phase: Phase::Reading, after: self.elapsed() })
    }

    /// Waits for `future` until the deadline; returns `None` if the deadline passes first.
    pub(crate) async fn limit<F: Future>(self, future: F) -> Option<F::Output> {
        tokio::time::timeout_at(self.at, future).await.ok()
    }
}
