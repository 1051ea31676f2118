//! Counters of the requests to one server.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::DATE;
use jiff::{SignedDuration, Timestamp};

use crate::costs::Cost;

/// The requests to one server so far, except the lists, watches and version checks of a [`crate::Watcher`]; the probes
/// of its connectivity count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// The number of requests, and the bytes of their responses after decompression.
    pub cost: Cost,
    /// The number of round trips: the length of the longest chain of requests of which each began after the previous
    /// one had ended.
    pub rounds: usize,
    /// The time from when the first connection was open to the end of the latest request, answered or not; zero before
    /// any.
    pub until: Duration,
}

/// Counters of the requests to one server, except the lists, watches and version checks of a [`crate::Watcher`].
#[derive(Debug)]
pub(crate) struct Traffic {
    begun: Instant,
    requests: AtomicU64,
    bytes: AtomicU64,
    /// The highest round of a request that has ended; see [`SentRequest::round`].
    rounds: AtomicUsize,
    /// Time at which the latest request ended, in microseconds since `begun`.
    until: AtomicU64,
    /// Shortest time from sending a request to the end of its response, in microseconds; `u64::MAX` before any
    /// response.
    shortest: AtomicU64,
    clock_ahead: Mutex<Option<SignedDuration>>,
}

/// The start of a request: its time, and its place in the chain of requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentRequest {
    /// Time at which the request was sent, since the first connection was open. Waiting for earlier requests is not
    /// included.
    pub(crate) at: Duration,
    /// Length of the longest chain of requests, each begun after the previous one had ended, that ends with this one.
    pub(crate) round: usize,
}

impl Traffic {
    pub(crate) fn new() -> Traffic {
        Traffic {
            begun: Instant::now(),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            rounds: AtomicUsize::new(0),
            until: AtomicU64::new(0),
            shortest: AtomicU64::new(u64::MAX),
            clock_ahead: Mutex::new(None),
        }
    }

    /// Starts measuring a request that is sent now; [`Traffic::end`] counts it.
    pub(crate) fn send(&self) -> SentRequest {
        SentRequest { at: self.begun.elapsed(), round: self.rounds.load(Ordering::Relaxed) + 1 }
    }

    /// Counts a request that ended and the `bytes` of its response. `is_answered` is true if a response began to
    /// arrive: only then can this request set the shortest time. Returns the time from sending it to now.
    pub(crate) fn end(&self, sent: SentRequest, bytes: u64, is_answered: bool) -> Duration {
        let now = self.begun.elapsed();
        let took = now.saturating_sub(sent.at);
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if is_answered {
            self.shortest.fetch_min(micros(took), Ordering::Relaxed);
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.rounds.fetch_max(sent.round, Ordering::Relaxed);
        self.until.fetch_max(micros(now), Ordering::Relaxed);
        took
    }

    /// Stores the lead of a response's `Date` header over the local time `now` if its absolute value is smaller than
    /// that of the stored one, because delayed responses look older. Does nothing without a valid `Date`.
    pub(crate) fn compare_clocks(&self, headers: &HeaderMap, now: Timestamp) {
        let Some(ahead) = clock_ahead(headers, now) else { return };
        let mut known = self.clock_ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none_or(|known| ahead.abs() < known.abs()) {
            *known = Some(ahead);
        }
    }

    /// Returns the counters.
    pub(crate) fn read(&self) -> Requests {
        let [requests, bytes] = [&self.requests, &self.bytes].map(|it| it.load(Ordering::Relaxed));
        Requests {
            cost: Cost { requests, bytes },
            rounds: self.rounds.load(Ordering::Relaxed),
            until: Duration::from_micros(self.until.load(Ordering::Relaxed)),
        }
    }

    /// Returns the shortest time from sending a request to the last byte of its response; `u64::MAX` microseconds if
    /// none was answered.
    pub(crate) fn shortest(&self) -> Duration {
        Duration::from_micros(self.shortest.load(Ordering::Relaxed))
    }

    /// Returns the smallest lead, by absolute value, of the server's clock over the local one that a response showed;
    /// `None` if none had a valid `Date`.
    pub(crate) fn clock_ahead(&self) -> Option<SignedDuration> {
        *self.clock_ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the lead of a response's `Date`, which has whole seconds, over `now`; negative if it is behind, and `None`
/// without a valid date.
fn clock_ahead(headers: &HeaderMap, now: Timestamp) -> Option<SignedDuration> {
    let date = jiff::fmt::rfc2822::parse(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(date.timestamp().duration_since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_the_longest_chain() {
        let traffic = Traffic::new();
        // Two at once, then two more at once, of which one is still under way when the last begins.
        let [one, other] = [traffic.send(), traffic.send()];
        traffic.end(one, 10, true);
        let [third, long] = [traffic.send(), traffic.send()];
        traffic.end(other, 10, true);
        traffic.end(third, 10, false);
        let last = traffic.send();
        assert_eq!([one, other, third, long, last].map(|sent| sent.round), [1, 1, 2, 2, 3]);
        traffic.end(long, 0, true);
        assert_eq!((traffic.read().rounds, traffic.read().cost), (2, Cost { requests: 4, bytes: 30 }));
    }

    #[test]
    fn clock_difference_is_read_from_answers() {
        let now: Timestamp = "2026-03-01T12:00:00.4Z".parse().unwrap();
        let traffic = Traffic::new();
        let ahead = |date: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(DATE, date.parse().unwrap());
            traffic.compare_clocks(&headers, now);
            traffic.clock_ahead().map(|ahead| ahead.as_millis())
        };
        assert_eq!(ahead("yesterday"), None);
        assert_eq!(ahead("Sun, 01 Mar 2026 12:05:00 GMT"), Some(299_600));
        assert_eq!(ahead("Sun, 01 Mar 2026 12:00:00 GMT"), Some(-400));
        assert_eq!(ahead("Sun, 01 Mar 2026 12:05:00 GMT"), Some(-400), "the smallest difference counts");
        assert_eq!(clock_ahead(&HeaderMap::new(), now), None);
    }
}
