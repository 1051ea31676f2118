//! The time of one look at a fleet, and its division among clusters.
//!
//! The rule: a slow cluster takes no time from others. A look waits for all clusters at two places only, each with a
//! deadline:
//!
//! * Each cluster is read by itself, all at once: within `--timeout`, or half as long again if a list took all of that
//!   ([`taffrail_cluster::Cluster::with_more_time`]). Clusters with one identity are compared meanwhile, as soon as
//!   both have answered, and each is charged for its own requests ([`super::sameness`]). All this ends at one and a
//!   half times the timeout.
//! * Then the objects that apps of one cluster deliver into another are read there. Each cluster has at least half of
//!   the timeout for that, however long others took; a cluster that has used its own time has less, but at least a
//!   quarter. This ends at twice the timeout.
//!
//! Following clusters has no such places: reads are planned for each cluster by itself ([`super::follow`]).

use std::time::{Duration, Instant};

/// The start of reading a fleet, and the time limit of one cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    begun: Instant,
    timeout: Duration,
}

impl Timing {
    /// Starts the clock, with `timeout` as the limit of each cluster.
    pub(crate) fn start(timeout: Duration) -> Timing {
        Timing { begun: Instant::now(), timeout }
    }

    /// Returns the time left for the first part, in which each cluster is read without regard to the others.
    pub(crate) fn alone(&self) -> Duration {
        self.alone_after(self.begun.elapsed())
    }

    /// Returns the time limit for reading, in a cluster that has used `spent` of its time, the objects that apps of
    /// other clusters deliver into it. A list that takes all of it gets half as long again.
    pub(crate) fn elsewhere(&self, spent: Duration) -> Duration {
        self.elsewhere_after(self.begun.elapsed(), spent)
    }

    fn alone_after(&self, elapsed: Duration) -> Duration {
        (self.timeout.saturating_mul(3) / 2).saturating_sub(elapsed)
    }

    fn elsewhere_after(&self, elapsed: Duration, spent: Duration) -> Duration {
        // What was read late is judged late: also then nobody is left without time.
        let left = self.timeout.saturating_mul(2).saturating_sub(elapsed).max(self.timeout / 2);
        let own = self.timeout.saturating_sub(spent).max(self.timeout / 4);
        own.min(left - left / 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_the_time_that_it_has_not_used_however_long_others_took() {
        let (begun, timeout) = (Instant::now(), Duration::from_secs(12));
        let timing = Timing { begun, timeout };
        let elsewhere = |elapsed: u64, spent: u64| {
            timing.elsewhere_after(Duration::from_secs(elapsed), Duration::from_secs(spent)).as_secs()
        };
        // Nobody took long.
        assert_eq!(elsewhere(1, 1), 11);
        // Another one took all of its time, or half as much again: with half as long again all is over in 24 s.
        assert_eq!((elsewhere(12, 1), elsewhere(18, 1)), (8, 4));
        // It has used its own.
        assert_eq!((elsewhere(18, 12), elsewhere(18, 18), elsewhere(12, 12)), (3, 3, 3));
        // What was read by then took long to judge.
        assert_eq!(elsewhere(100, 1), 4);
        let alone = |elapsed: u64| timing.alone_after(Duration::from_secs(elapsed)).as_secs();
        assert_eq!((alone(1), alone(18), alone(19)), (17, 0, 0));
    }

    #[test]
    fn any_timeout_is_divided() {
        for timeout in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            let timing = Timing::start(timeout);
            assert!(timing.elsewhere(Duration::ZERO) <= timeout);
            assert!(timing.alone() <= Duration::MAX);
        }
    }
}
