//! The time for one read of a fleet, and its division among clusters.
//!
//! The rule: a slow cluster takes no time from others. One read of a fleet waits for all clusters at two places only,
//! each with a deadline:
//!
//! * Each cluster is read by itself, all at once, with extra time if a list took all of it
//!   ([`taffrail_cluster::Cluster::with_more_time`]). Clusters with one identity are compared meanwhile, as soon as
//!   both have answered, and each is charged for its own requests ([`super::sameness`]).
//! * Then the objects that apps of one cluster deliver into another are read there.
//!
//! A [`TimeBudget::PerCluster`] gives its time to each cluster, and half as long again as extra time. Then each cluster
//! has at least half of the time for objects delivered into it, however long others took; a cluster that has used its
//! own time has less, but at least a quarter. This ends at twice the time.
//!
//! A [`TimeBudget::Whole`] is divided by eighths: five to read each cluster, one of extra time, one for objects
//! delivered into it, one to judge.
//!
//! Writes have their own time, the same for each cluster ([`TimeLimits::to_write`]).
//!
//! Following clusters has no such places: reads are planned for each cluster by itself ([`super::follow`]).

use std::time::{Duration, Instant};

use taffrail_cluster::Deadline;

/// Minimum time of each cluster for writes, unless the limit is one for all clusters together: a write that is given
/// up may have been made, so writes get more time than reads.
const WRITES: Duration = Duration::from_secs(30);

/// The time that reading clusters may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeBudget {
    /// The time for each cluster; the answer takes twice as long at most.
    PerCluster(Duration),
    /// The time for the whole answer.
    Whole(Duration),
}

/// The time limits of reading clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// The time for everything: for each cluster, or for the whole answer, as the variant says.
    pub total: TimeBudget,
    /// The time for one request, [`Duration::MAX`] for no limit; `None` if only `total` limits it. See
    /// [`Deadline::with_request_timeout`].
    pub request: Option<Duration>,
}

impl TimeLimits {
    /// Makes limits of `timeout` for each cluster, and none for single requests.
    pub fn each(timeout: Duration) -> TimeLimits {
        TimeLimits { total: TimeBudget::PerCluster(timeout), request: None }
    }

    /// Returns the time that each cluster has for all of its writes: its own time, at least 30 s, or what is left of
    /// the time for the whole answer after `spent`.
    pub fn to_write(&self, spent: Duration) -> Duration {
        match self.total {
            TimeBudget::PerCluster(time) => time.max(WRITES),
            TimeBudget::Whole(time) => time.saturating_sub(spent),
        }
    }

    /// Returns the deadline of reads of one cluster by itself that begin now.
    pub(crate) fn deadline(&self) -> Deadline {
        let deadline = match self.total {
            TimeBudget::PerCluster(time) => Deadline::after(time),
            TimeBudget::Whole(time) => Deadline::with_extra(time / 8 * 5, time / 8),
        };
        deadline.with_request_timeout(self.request)
    }
}

/// The start of reading a fleet, and the time that it may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    begun: Instant,
    limit: TimeBudget,
}

impl Timing {
    /// Starts the clock of the time budget `limit`.
    pub(crate) fn start(limit: TimeBudget) -> Timing {
        Timing { begun: Instant::now(), limit }
    }

    /// Returns the time left for the first part, extra time included, in which each cluster is read without regard to
    /// the others.
    pub(crate) fn alone(&self) -> Duration {
        self.alone_after(self.begun.elapsed())
    }

    /// Returns the time limit for reading, in a cluster that has used `spent` of its time, the objects that apps of
    /// other clusters deliver into it. A list that takes all of it gets half as long again.
    pub(crate) fn elsewhere(&self, spent: Duration) -> Duration {
        self.elsewhere_after(self.begun.elapsed(), spent)
    }

    fn alone_after(&self, elapsed: Duration) -> Duration {
        let end = match self.limit {
            TimeBudget::PerCluster(time) => time.saturating_mul(3) / 2,
            TimeBudget::Whole(time) => time / 8 * 6,
        };
        end.saturating_sub(elapsed)
    }

    fn elsewhere_after(&self, elapsed: Duration, spent: Duration) -> Duration {
        // What was read late is judged late: also then each has time left.
        match self.limit {
            TimeBudget::PerCluster(time) => {
                let left = time.saturating_mul(2).saturating_sub(elapsed).max(time / 2);
                let own = time.saturating_sub(spent).max(time / 4);
                own.min(left - left / 3)
            }
            TimeBudget::Whole(time) => {
                let left = (time / 8 * 7).saturating_sub(elapsed).max(time / 16);
                left - left / 3
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_the_time_that_it_has_not_used_however_long_others_took() {
        let limit = TimeBudget::PerCluster(Duration::from_secs(12));
        let timing = Timing { begun: Instant::now(), limit };
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
    fn reading_for_an_answer_leaves_an_eighth_of_its_time_to_judge() {
        let timing = Timing { begun: Instant::now(), limit: TimeBudget::Whole(Duration::from_secs(16)) };
        let seconds = Duration::from_secs;
        assert_eq!(
            (timing.alone_after(seconds(1)), timing.alone_after(seconds(13))),
            (seconds(11), seconds(0))
        );
        // With half as long again it ends after 14 s.
        for elapsed in [1, 10, 12] {
            let left = timing.elsewhere_after(seconds(elapsed), seconds(elapsed));
            assert_eq!(left.mul_f64(1.5).as_secs_f64().round(), 14.0 - elapsed as f64, "{elapsed}");
        }
        assert!(timing.elsewhere_after(seconds(20), seconds(20)) > Duration::ZERO);
    }

    #[test]
    fn writes_have_what_is_left_of_the_whole_or_half_a_minute_at_least() {
        let seconds = Duration::from_secs;
        let to_write = |total, spent| TimeLimits { total, request: None }.to_write(seconds(spent)).as_secs();
        assert_eq!(to_write(TimeBudget::Whole(seconds(10)), 4), 6);
        assert_eq!(to_write(TimeBudget::Whole(seconds(10)), 40), 0);
        assert_eq!(to_write(TimeBudget::PerCluster(seconds(5)), 40), 30);
        assert_eq!(to_write(TimeBudget::PerCluster(seconds(90)), 40), 90);
    }

    #[test]
    fn any_timeout_is_divided() {
        for timeout in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            for limit in [TimeBudget::PerCluster(timeout), TimeBudget::Whole(timeout)] {
                let timing = Timing::start(limit);
                assert!(timing.elsewhere(Duration::ZERO) <= timeout);
                assert!(timing.alone() <= Duration::MAX);
                let _ = TimeLimits { total: limit, request: Some(timeout) }.deadline();
            }
        }
    }
}
