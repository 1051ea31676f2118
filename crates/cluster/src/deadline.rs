//! The deadline of a read: one time limit for all of its requests.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Phase, ReadError, TimeLimit};

/// The time by which all responses of a read must have arrived, and the time that each request may take.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    set: Instant,
    at: Instant,
    /// The end of the extra time.
    latest: Instant,
    request: Option<Duration>,
}

impl Deadline {
    /// Creates a deadline that passes after `timeout`, and that reads can extend by up to half of that; more than a
    /// year counts as a year.
    pub fn after(timeout: Duration) -> Deadline {
        Deadline::with_extra(timeout, timeout / 2)
    }

    /// Creates a deadline that passes after `timeout`; [`crate::Cluster::with_more_time`] extends it, in all by up to
    /// `extra`. More than a year counts as a year, for each.
    pub fn with_extra(timeout: Duration, extra: Duration) -> Deadline {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let set = Instant::now();
        let at = set + timeout.min(YEAR);
        Deadline { set, at, latest: at + extra.min(YEAR), request: None }
    }

    /// Returns this deadline with a time limit for each request: to connect, to read a page of a list or an object, to
    /// write, or to open a watch. As in kubectl a request includes its whole response, but not the wait for its turn or
    /// a later attempt; of a log the limit holds for the wait for each part. The life of a watch is not limited, nor is
    /// a list that a watch streams. `None` and [`Duration::MAX`] are no limit.
    #[must_use]
    pub fn with_request_timeout(self, request: Option<Duration>) -> Deadline {
        Deadline { request, ..self }
    }

    /// Returns the earlier one of two deadlines.
    pub(crate) fn earlier(self, other: Deadline) -> Deadline {
        if self.at <= other.at { self } else { other }
    }

    /// Returns the time limit of each request, if one was set.
    pub(crate) fn request_timeout(self) -> Option<Duration> {
        self.request
    }

    /// Returns the time since the deadline was set.
    pub fn elapsed(self) -> Duration {
        self.set.elapsed()
    }

    /// Returns the time until the deadline; zero if it has passed.
    pub fn remaining(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Returns a deadline at half of the remaining extra time from now, but not after the end of the extra time; this
    /// deadline if it is later.
    pub(crate) fn extended(self) -> Deadline {
        let half = self.latest.saturating_duration_since(self.at) / 2;
        Deadline { at: self.at.max(self.latest.min(Instant::now() + half)), ..self }
    }

    /// Returns an error if the deadline has passed; `what` names the operation whose response was parsed.
    pub(crate) fn check(self, what: &str) -> Result<(), ReadError> {
        if self.remaining() > Duration::ZERO {
            return Ok(());
        }
        let after = TimeLimit::All(self.elapsed());
        Err(ReadError::Timeout { what: what.to_owned(), phase: Phase::Reading, after })
    }

    /// Waits for `future` until the deadline; returns the limit if that passes first.
    pub(crate) async fn limit<F: Future>(self, future: F) -> Result<F::Output, TimeLimit> {
        tokio::time::timeout_at(self.at, future).await.map_err(|_| TimeLimit::All(self.elapsed()))
    }

    /// Waits for `future`, which is one request; returns the limit that passes first.
    pub(crate) async fn limit_request<F: Future>(self, future: F) -> Result<F::Output, TimeLimit> {
        match self.request {
            Some(request) if request < self.remaining() => {
                tokio::time::timeout(request, future).await.map_err(|_| TimeLimit::Request(request))
            }
            _ => self.limit(future).await,
        }
    }
}
