//! The clock of a hub.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

/// One moment, read from two clocks at once: the hub's own, which never goes back, and the wall clock.
#[derive(Debug, Clone, Copy)]
pub struct HubTime {
    /// The time on the hub's own clock, counted from its beginning, which may be before the start of the hub.
    pub at: Duration,
    /// The wall-clock time.
    pub now: Timestamp,
}

/// A clock that shows the present moment; clones are the same clock.
#[derive(Clone)]
pub struct HubClock(Arc<dyn Fn() -> HubTime + Send + Sync>);

impl HubClock {
    /// Makes a clock that calls `read` for the present moment. The [`HubTime::at`] that it returns must never go back,
    /// and must run on while the machine sleeps.
    pub fn new(read: impl Fn() -> HubTime + Send + Sync + 'static) -> HubClock {
        HubClock(Arc::new(read))
    }

    /// Returns the present moment on both clocks, the wall clock in whole microseconds: the store keeps no more, and a
    /// time that an answer told must name the same moment when it is asked for.
    pub fn time(&self) -> HubTime {
        let HubTime { at, now } = (self.0)();
        HubTime { at, now: Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now) }
    }
}

impl fmt::Debug for HubClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HubClock(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_whole_microseconds() {
        let now: Timestamp = "2026-03-01T12:00:00.123456789Z".parse().unwrap();
        let clock = HubClock::new(move || HubTime { at: Duration::ZERO, now });
        assert_eq!(clock.time().now.to_string(), "2026-03-01T12:00:00.123456Z");
    }
}
