//! A histogram of durations, as Prometheus counts them.

use std::time::Duration;

/// The upper bounds of the buckets in seconds, inclusive.
pub(crate) const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// A histogram of durations.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Latencies {
    /// For each bucket, the number of durations up to its bound and above the bound before it.
    buckets: [u64; BUCKETS.len()],
    /// The number of all durations, also those above the last bound.
    pub(crate) count: u64,
    /// The sum of all durations, in seconds.
    pub(crate) sum: f64,
}

impl Latencies {
    /// Adds a duration to the count, the sum and its bucket; one above the last bucket is in no bucket.
    pub(crate) fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BUCKETS.iter().position(|end| seconds <= *end);
        if let Some(bucket) = bucket.and_then(|bucket| self.buckets.get_mut(bucket)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += seconds;
    }

    /// Iterates over the bounds of the buckets in seconds, each with the number of durations up to it.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let counts = self.buckets.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        BUCKETS.into_iter().zip(counts)
    }
}
