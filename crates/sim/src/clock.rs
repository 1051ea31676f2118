//! The time of a fleet.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp, TimestampArithmetic};

/// The ways in which the time of a simulated fleet passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Real time.
    Real,
    /// Real time multiplied by this factor, of at most 1,000,000.
    Scaled(f64),
    /// Steps by [`Fleet::advance`](crate::Fleet::advance), which also moves the other clocks. Nothing depends on the
    /// speed of the machine.
    Stepped,
}

/// The time of a simulated fleet, which its objects, timelines and controllers use.
///
/// The time limits that clients set are in real time: the timeout of a watch, bookmarks, and the latency of a fault.
#[derive(Debug, Clone)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pace: Pace,
    start: Timestamp,
    /// The real time at which the clock began to run; unset while it is held.
    begun: OnceLock<Instant>,
    /// The time by which the clock was moved forward in addition to real time, in microseconds.
    stepped: AtomicI64,
}

impl Clock {
    pub(crate) fn new(pace: Pace, start: Timestamp, held: bool) -> Clock {
        let clock =
            Clock(Arc::new(Inner { pace, start, begun: OnceLock::new(), stepped: AtomicI64::new(0) }));
        if !held {
            clock.release();
        }
        clock
    }

    /// Starts the clock of a held fleet at its pace; does nothing if it runs already.
    pub(crate) fn release(&self) {
        self.0.begun.get_or_init(Instant::now);
    }

    /// Returns the current time of the fleet.
    pub fn now(&self) -> Timestamp {
        let elapsed = self.0.begun.get().map(Instant::elapsed).unwrap_or_default();
        let passed = match self.0.pace {
            Pace::Real => elapsed,
            Pace::Scaled(factor) => {
                let seconds = elapsed.as_secs_f64() * factor.clamp(0.0, 1e6);
                Duration::try_from_secs_f64(seconds).unwrap_or_default()
            }
            Pace::Stepped => Duration::ZERO,
        };
        let stepped = SignedDuration::from_micros(self.0.stepped.load(Ordering::Acquire));
        later(later(self.0.start, stepped), passed)
    }

    /// Returns the way in which time passes.
    pub fn pace(&self) -> Pace {
        self.0.pace
    }

    /// Moves the clock forward to `time`; does nothing if that is in the past.
    pub(crate) fn step_to(&self, time: Timestamp) {
        if self.0.pace == Pace::Stepped {
            let micros = time.duration_since(self.0.start).as_micros();
            self.0.stepped.fetch_max(i64::try_from(micros).unwrap_or(i64::MAX), Ordering::AcqRel);
            return;
        }
        let ahead = i64::try_from(time.duration_since(self.now()).as_micros()).unwrap_or(i64::MAX);
        self.0.stepped.fetch_add(ahead.max(0), Ordering::AcqRel);
    }

    /// Returns the real time left until the clock shows `time`, zero if it has passed; `None` if the clock is held, or
    /// moves only in steps.
    pub(crate) fn until(&self, time: Timestamp) -> Option<Duration> {
        self.0.begun.get()?;
        let ahead = Duration::try_from(time.duration_since(self.now())).unwrap_or_default();
        match self.0.pace {
            Pace::Real => Some(ahead),
            Pace::Scaled(factor) => {
                let seconds = ahead.as_secs_f64() / factor.clamp(1e-6, 1e6);
                Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
            }
            Pace::Stepped => None,
        }
    }
}

/// Returns `time` plus `by`; the end of representable time if that is exceeded.
pub(crate) fn later(time: Timestamp, by: impl Into<TimestampArithmetic>) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Formats a time in whole seconds, as the API writes creation times.
pub(crate) fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
