//! The log of requests to one server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::DATE;
use http::{HeaderMap, Method, StatusCode};
use jiff::{SignedDuration, Timestamp};

use crate::costs::Cost;

/// One request and its result.
#[derive(Debug, Clone)]
pub struct RequestRecord {
    /// Purpose of the request, such as `list pods in namespace a`.
    pub purpose: String,
    /// The HTTP method.
    pub method: Method,
    /// Path and query.
    pub path_and_query: String,
    /// The status of the response; `None` if none arrived.
    pub status: Option<StatusCode>,
    /// Bytes of the response body, after decompression.
    pub bytes: u64,
    /// Time of sending, since the cluster was connected to. Waiting for earlier requests is not included.
    pub started: Duration,
    /// Time from sending to the last byte.
    pub duration: Duration,
    /// Length of the longest chain of sequential requests that ends with this one, from 1: each began after the
    /// previous one had ended. The maximum is the number of round trips.
    pub round: usize,
    /// Lead of the server's clock over the local one by the response's `Date`, which has whole seconds; negative if it
    /// is behind.
    pub clock_ahead: Option<SignedDuration>,
}

/// Returns the lead of a response's `Date` over `now`.
pub(crate) fn clock_ahead(headers: &HeaderMap, now: Timestamp) -> Option<SignedDuration> {
    let date = jiff::fmt::rfc2822::parse(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(date.timestamp().duration_since(now))
}

/// The first requests to one cluster, and totals of all.
#[derive(Debug)]
pub(crate) struct RequestLog {
    pub(crate) begun: Instant,
    records: Mutex<Vec<RequestRecord>>,
    requests: AtomicU64,
    bytes: AtomicU64,
    /// Shortest time from sending a request to its last byte, in microseconds.
    shortest: AtomicU64,
}

impl RequestLog {
    const MAX_RECORDS: usize = 20_000;

    pub(crate) fn new() -> RequestLog {
        RequestLog {
            begun: Instant::now(),
            records: Mutex::new(Vec::new()),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            shortest: AtomicU64::new(u64::MAX),
        }
    }

    /// Returns the cost of all requests.
    pub(crate) fn cost(&self) -> Cost {
        let [requests, bytes] = [&self.requests, &self.bytes].map(|it| it.load(Ordering::Relaxed));
        Cost { requests, bytes }
    }

    /// Returns the shortest time from sending a request to its last byte.
    pub(crate) fn shortest(&self) -> Duration {
        Duration::from_micros(self.shortest.load(Ordering::Relaxed))
    }

    pub(crate) fn push(&self, record: RequestRecord) {
        if record.status.is_some() {
            let took = u64::try_from(record.duration.as_micros()).unwrap_or(u64::MAX);
            self.shortest.fetch_min(took, Ordering::Relaxed);
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(record.bytes, Ordering::Relaxed);
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        // A process may follow a cluster for days.
        if records.len() < RequestLog::MAX_RECORDS {
            records.push(record);
        }
    }

    /// Returns all records in order of sending, with their rounds.
    pub(crate) fn records(&self) -> Vec<RequestRecord> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner).clone();
        records.sort_by_key(|record| record.started);
        number_rounds(&mut records);
        records
    }
}

/// Numbers the rounds of records that are in order of sending: each is one more than the greatest round that had ended
/// by then.
fn number_rounds(records: &mut [RequestRecord]) {
    // (end, round), earliest end first; `finished` is the greatest round removed.
    let mut under_way = std::collections::BinaryHeap::new();
    let mut finished = 0;
    for record in records {
        while let Some(std::cmp::Reverse((end, round))) = under_way.peek().copied() {
            if end > record.started {
                break;
            }
            finished = finished.max(round);
            under_way.pop();
        }
        record.round = finished + 1;
        under_way.push(std::cmp::Reverse((record.started + record.duration, record.round)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_the_longest_chain() {
        let record = |started: u64, duration: u64| RequestRecord {
            purpose: String::new(),
            method: Method::GET,
            path_and_query: String::new(),
            status: None,
            bytes: 0,
            started: Duration::from_millis(started),
            duration: Duration::from_millis(duration),
            round: 0,
            clock_ahead: None,
        };
        let log = RequestLog::new();
        // Two at once, then two at once, of which one is still running when the last begins.
        for (started, duration) in [(30, 10), (0, 10), (1, 8), (12, 100), (10, 15)] {
            log.push(record(started, duration));
        }
        let rounds: Vec<usize> = log.records().iter().map(|record| record.round).collect();
        assert_eq!(rounds, [1, 1, 2, 2, 3]);
    }

    #[test]
    fn clock_difference_is_read_from_answers() {
        let now: Timestamp = "2026-03-01T12:00:00.4Z".parse().unwrap();
        let ahead = |date: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(DATE, date.parse().unwrap());
            clock_ahead(&headers, now).map(|ahead| ahead.as_millis())
        };
        assert_eq!(ahead("Sun, 01 Mar 2026 12:00:00 GMT"), Some(-400));
        assert_eq!(ahead("Sun, 01 Mar 2026 12:05:00 GMT"), Some(299_600));
        assert_eq!(ahead("yesterday"), None);
        assert_eq!(clock_ahead(&HeaderMap::new(), now), None);
    }
}
