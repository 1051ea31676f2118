//! A histogram of durations, as Prometheus counts them.

use std::time::Duration;

/// The greatest durations of the buckets, in seconds.
pub(crate) const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The number of durations that were measured, by buckets.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Latencies {
    /// The number of durations in each bucket that are in no smaller one.
    buckets: [u64; BUCKETS.len()],
    /// The number of all durations.
    pub(crate) count: u64,
    /// The sum of all durations, in seconds.
    pub(crate) sum: f64,
}

impl Latencies {
    /// Counts a duration.
    pub(crate) fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BUCKETS.iter().position(|end| seconds <= *end);
        if let Some(bucket) = bucket.and_then(|bucket| self.buckets.get_mut(bucket)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += seconds;
    }

    /// Returns the ends of the buckets in seconds, each with the number of durations up to it.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let counts = self.buckets.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        BUCKETS.into_iter().zip(counts)
    }
}
