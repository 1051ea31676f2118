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

    /// Returns the present moment on both clocks.
    pub fn time(&self) -> HubTime {
        (self.0)()
    }
}

impl fmt::Debug for HubClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HubClock(…)")
    }
}
