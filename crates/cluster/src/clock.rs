//! A clock that also counts the time for which the machine sleeps.
//!
//! Timers and `Instant` count only the time for which the machine is awake: on Linux `CLOCK_MONOTONIC` stops in
//! sleep. What was observed before a sleep is older than they tell, so ages are measured by [`BootClock`]:
//! `CLOCK_BOOTTIME` on Linux and Android, `CLOCK_MONOTONIC` on Apple's systems, where it runs on in sleep, and
//! `Instant` elsewhere. None of these clocks is ever set back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A clock that also counts the machine's sleep; clones show the same time.
#[derive(Debug, Clone, Default)]
pub struct BootClock {
    /// The time added by [`BootClock::sleep`], in milliseconds.
    slept: Arc<AtomicU64>,
}

/// A point in time of a [`BootClock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// Returns the time from the start of the machine to this moment; elsewhere than on Linux, Android and Apple's
    /// systems from the start of the process.
    pub fn since_start(self) -> Duration {
        self.0
    }

    /// Returns the time from `earlier` to this moment; zero if `earlier` is the later one.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, later: Duration) -> Moment {
        Moment(self.0.saturating_add(later))
    }
}

impl BootClock {
    /// Returns the present moment.
    pub fn now(&self) -> Moment {
        Moment(running().saturating_add(Duration::from_millis(self.slept.load(Ordering::Relaxed))))
    }

    /// Moves this clock and its clones forward by `time`, as a sleep of the machine does; timers do not move. For
    /// tests.
    pub fn sleep(&self, time: Duration) {
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.slept.fetch_add(time, Ordering::Relaxed);
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn running() -> Duration {
    time_of(rustix::time::ClockId::Boottime)
}

#[cfg(target_vendor = "apple")]
fn running() -> Duration {
    time_of(rustix::time::ClockId::Monotonic)
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn time_of(clock: rustix::time::ClockId) -> Duration {
    Duration::try_from(rustix::time::clock_gettime(clock)).unwrap_or_default()
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn running() -> Duration {
    static BEGUN: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    BEGUN.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_moves_the_clock_and_its_clones() {
        let clock = BootClock::default();
        let (before, clone) = (clock.now(), clock.clone());
        assert!(clone.now() >= before);
        clock.sleep(Duration::from_secs(3600));
        let slept = clone.now().since(before);
        assert!((Duration::from_secs(3600)..Duration::from_secs(3660)).contains(&slept), "{slept:?}");
        assert_eq!(before.since(clone.now()), Duration::ZERO);
    }
}
