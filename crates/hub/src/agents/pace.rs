//! The bound of what one agent may send.

use std::time::Duration;

use tokio::time::Instant;

/// The units a second that an agent may send in the long run.
const RATE: f64 = 50.0;

/// The units that an agent may send at once: a snapshot of 20,000 apps fits.
const BURST: f64 = 1_000.0;

/// The length of a message that costs one unit more, in bytes.
const LENGTH: f64 = 32.0 * 1024.0;

/// The units that the begin of a session or a stream costs beside its message, because the hub then looks at all apps of
/// the cluster.
pub(super) const BEGIN: f64 = 25.0;

/// The units that a message with transitions costs beside its length, because the hub looks each of them up.
pub(super) const SPOOLED: f64 = 25.0;

/// A token bucket of the messages of the agents of one cluster: a message costs one unit and more by its length. Further
/// messages wait: the agent then collects changes.
#[derive(Debug)]
pub(super) struct Pace {
    /// The units that may be sent at once; negative while messages wait.
    left: f64,
    at: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace { left: BURST, at: now }
    }

    /// Counts a message of so many bytes, and `more` units, and returns the time to wait before it is applied.
    pub(super) fn take(&mut self, now: Instant, bytes: usize, more: f64) -> Duration {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * RATE;
        self.left = (self.left + gained).min(BURST) - 1.0 - bytes as f64 / LENGTH - more;
        self.at = now;
        Duration::from_secs_f64((-self.left / RATE).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_beyond_a_burst_wait_for_their_turn() {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        assert!((0..1_000).all(|_| pace.take(begun, 0, 0.0).is_zero()));
        assert_eq!(pace.take(begun, 0, 0.0), Duration::from_millis(20));
        let later = begun + Duration::from_secs(3_600);
        // What is long, or costs the hub more, counts for more.
        assert!((0..20).all(|_| pace.take(later, 0, BEGIN).is_zero()));
        assert!((0..10).all(|_| pace.take(later, 1 << 20, 0.0).is_zero()));
        assert!((0..5).any(|_| !pace.take(later, 1 << 20, 0.0).is_zero()));
    }
}
