//! The clock of a server, as its answers show it.

use std::time::Duration;

/// The time by which the server's clock may fall back between two answers before the later one counts as old.
const MAX_LAG: f64 = 1.0;

/// The number of answers after a step back of the server's clock from which on it is believed again, because the clock goes on
/// from there.
const STEADY: u8 = 8;

/// The server's clock as its answers show it.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    /// The time of the last answer, and the moment at which it was asked for.
    last: Option<(f64, Duration)>,
    /// The greatest time of the server minus the moment.
    offset: f64,
    /// The time by which the last answers were old.
    lag: f64,
    steady: u8,
}

impl ServerClock {
    /// Takes the time of an answer that was asked for at the moment `asked`.
    pub(crate) fn set(&mut self, time: f64, asked: Duration) {
        let offset = time - asked.as_secs_f64();
        let before = self.last.replace((time, asked));
        let Some((last, then)) = before else {
            (self.offset, self.lag) = (offset, 0.0);
            return;
        };
        let passed = asked.saturating_sub(then).as_secs_f64();
        let is_steady = ((time - last) - passed).abs() <= MAX_LAG;
        self.steady = if is_steady { self.steady.saturating_add(1) } else { 0 };
        if offset >= self.offset - MAX_LAG || self.steady >= STEADY {
            (self.offset, self.lag) =
                (if self.steady >= STEADY { offset } else { self.offset.max(offset) }, 0.0);
        } else {
            // An answer from a cache is as old as the server's clock seems to be late.
            self.lag = self.offset - offset;
        }
    }

    /// Returns the server's time at the moment `now`; `None` before the first answer.
    pub(crate) fn time(&self, now: Duration) -> Option<f64> {
        let (time, asked) = self.last?;
        Some(time + self.lag + now.saturating_sub(asked).as_secs_f64())
    }

    /// Returns the time by which the last answer was old.
    pub(crate) fn lag(&self) -> Duration {
        Duration::try_from_secs_f64(self.lag).unwrap_or(Duration::MAX)
    }
}
