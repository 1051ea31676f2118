//! The time of a fleet.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// How the time of a fleet passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// As everywhere else.
    Real,
    /// So many times as fast as everywhere else.
    Scaled(f64),
    /// Only by [`Fleet::advance`](crate::Fleet::advance), which moves the others on besides: nothing depends on how
    /// fast the machine is.
    Stepped,
}

/// The time of a fleet: what its objects are stamped with and its timelines and controllers go by.
///
/// What a client may wait for in its own time is not subject to it: the timeout of a watch, bookmarks, and
/// the latency of a fault are in real time.
#[derive(Debug, Clone)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pace: Pace,
    start: Timestamp,
    /// When it began to pass by itself; nothing while it is held.
    begun: OnceLock<Instant>,
    /// How far it was moved besides what passed by itself, in microseconds.
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

    /// Lets time pass by itself from now on.
    pub(crate) fn release(&self) {
        self.0.begun.get_or_init(Instant::now);
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        let elapsed = self.0.begun.get().map(Instant::elapsed).unwrap_or_default();
        let passed = match self.0.pace {
            Pace::Real => signed(elapsed),
            Pace::Scaled(factor) => {
                let seconds = elapsed.as_secs_f64() * factor.clamp(0.0, 1e6);
                signed(Duration::try_from_secs_f64(seconds).unwrap_or_default())
            }
            Pace::Stepped => SignedDuration::ZERO,
        };
        let stepped = SignedDuration::from_micros(self.0.stepped.load(Ordering::Acquire));
        later(later(self.0.start, stepped), passed)
    }

    /// How time passes.
    pub fn pace(&self) -> Pace {
        self.0.pace
    }

    /// Moves the clock on to `time`, never back.
    pub(crate) fn step_to(&self, time: Timestamp) {
        if self.0.pace == Pace::Stepped {
            let micros = time.duration_since(self.0.start).as_micros();
            self.0.stepped.fetch_max(i64::try_from(micros).unwrap_or(i64::MAX), Ordering::AcqRel);
            return;
        }
        let ahead = i64::try_from(time.duration_since(self.now()).as_micros()).unwrap_or(i64::MAX);
        self.0.stepped.fetch_add(ahead.max(0), Ordering::AcqRel);
    }

    /// How long in real time until it is `time`; `None` for a stepped clock and one that is held, for which nobody can
    /// know.
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

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// A point in time after another; at the end of time there is nothing after.
pub(crate) fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// A time as `metadata.creationTimestamp` has it: whole seconds.
pub(crate) fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
