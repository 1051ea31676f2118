//! The bound of the messages that one agent may send.

use std::time::Duration;

use tokio::time::Instant;

/// The number of messages a second that an agent may send in the long run.
const RATE: f64 = 50.0;

/// The number of messages that an agent may send at once: a snapshot of 20,000 apps fits.
const BURST: f64 = 1_000.0;

/// A token bucket of the messages of one agent. Further messages wait: the agent then collects changes.
#[derive(Debug)]
pub(super) struct Pace {
    /// The number of messages that may be sent at once; negative while messages wait.
    left: f64,
    at: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace { left: BURST, at: now }
    }

    /// Counts a message, and returns the time to wait before it is applied.
    pub(super) fn take(&mut self, now: Instant) -> Duration {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * RATE;
        self.left = (self.left + gained).min(BURST) - 1.0;
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
        assert!((0..1_000).all(|_| pace.take(begun).is_zero()));
        assert_eq!(pace.take(begun), Duration::from_millis(20));
        let later = begun + Duration::from_secs(3_600);
        assert!((0..1_000).all(|_| pace.take(later).is_zero()));
        assert!(!pace.take(later).is_zero());
    }
}
