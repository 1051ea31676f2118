//! Exponential backoff: pauses that grow with each consecutive failure.

use std::time::Duration;

/// Exponential backoff after consecutive failures.
#[derive(Debug)]
pub(super) struct Backoff {
    failures: u32,
    longest: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(250);

    pub(super) fn new(longest: Duration) -> Backoff {
        Backoff { failures: 0, longest }
    }

    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the next pause: 250 ms at first, then twice the last one up to the maximum, plus or minus a random
    /// quarter, so that clients that failed together do not return together.
    pub(super) fn next(&mut self) -> Duration {
        let pause = Backoff::FIRST.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        pause.mul_f64(0.75 + 0.5 * fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_its_maximum_and_resets() {
        let longest = Duration::from_secs(4);
        let mut pause = Backoff::new(longest);
        for expected in [0.25, 0.5, 1.0, 2.0, 4.0, 4.0] {
            let waited = pause.next().as_secs_f64();
            assert!((expected * 0.75..=expected * 1.25).contains(&waited), "{waited} for {expected}");
        }
        for _ in 0..100 {
            assert!(pause.next() <= longest.mul_f64(1.25));
        }
        pause.reset();
        assert!(pause.next() < Duration::from_millis(313));
    }
}
