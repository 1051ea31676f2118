//! The pause of a cluster after planning its reads, so that planning for one takes no time from others.

use std::time::{Duration, Instant};

use super::arrivals::TURN;

/// Maximum pause after planning the reads of a cluster, however long the planning took.
const LONGEST: Duration = Duration::from_secs(5);

/// The duration of the last plan of a cluster's reads, and the end of the pause after it. During the pause
/// Taffrail plans only for other clusters.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The duration of the last plan.
    pub(super) cost: Duration,
    until: Option<Instant>,
}

impl Pace {
    /// Records the duration `cost` of a plan that ended at `ended`. If it took longer than [`TURN`], a pause of `times`
    /// that duration follows, at most [`LONGEST`].
    pub(super) fn took(&mut self, cost: Duration, ended: Instant, times: u32) {
        self.cost = cost;
        let rest = (self.cost * times).min(LONGEST);
        self.until = (self.cost > TURN).then(|| ended + rest);
    }

    /// Returns the time left of the pause; `None` if it is over.
    pub(super) fn rest(&self, now: Instant) -> Option<Duration> {
        let left = self.until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dear_to_plan_rests_for_longer_than_it_took() {
        let began = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.rest(began), None);
        // Who takes less than a turn keeps no one waiting.
        pace.took(TURN, began + TURN, 3);
        assert_eq!(pace.rest(began + TURN), None);
        let (took, ended) = (Duration::from_millis(400), began + Duration::from_millis(400));
        pace.took(ended - began, ended, 3);
        assert_eq!(pace.rest(ended), Some(3 * took));
        assert_eq!(pace.rest(ended + 2 * took), Some(took));
        assert_eq!(pace.rest(ended + 3 * took), None);
        let ended = began + Duration::from_secs(60);
        pace.took(ended - began, ended, 3);
        assert_eq!(pace.rest(ended), Some(LONGEST));
        // What became cheap has no rest.
        pace.took(TURN / 2, ended + TURN / 2, 3);
        assert_eq!(pace.rest(ended + TURN), None);
    }
}
