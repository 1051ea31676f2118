//! Liveness: whether a cluster is live, stale or lost, by the time since its API server last proved that it answers.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taffrail_apps::{Freshness, FreshnessState};

/// The age up to which an observation is live, inclusive: three heartbeats.
pub const LIVE: Duration = Duration::from_secs(45);

/// The age up to which an observation is stale, inclusive: ten heartbeats. A cluster with an older one is lost.
pub const LOST: Duration = Duration::from_secs(150);

/// The age up to which an observation of a cluster that is read lightly is live: two proofs of life, which come once a
/// minute.
pub const LIGHT: Duration = Duration::from_secs(120);

/// The greatest age up to which an observation may be live, whatever its source reports: three scrapes of a metrics
/// server whose interval is the longest after which it still answers with a sample.
pub const MAX_WINDOW: Duration = Duration::from_secs(900);

/// The time after the end of a state's age at which the state has changed, which is the resolution of the times in the
/// history of a hub.
const RESOLUTION: Duration = Duration::from_micros(1);

/// The number of proofs, each within the window of the one before, after which a cluster that was not live is live again,
/// so that one that flaps is not shown green between two silences.
const RECOVERED: u8 = 2;

/// The proofs of one source that the API server of one cluster answers.
///
/// Moments are durations since some start, by a clock that runs on while the machine sleeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Liveness {
    /// The age up to which the cluster is live.
    window: Duration,
    /// The moment at which the API server last answered the source; `None` before the first proof.
    proved: Option<Duration>,
    /// The number of proofs since the cluster was last found not to be live, or since the start.
    proofs: u8,
    /// True once the cluster was not live: from then on it is live only after [`RECOVERED`] proofs in a row. Before,
    /// one proof suffices.
    has_failed: bool,
}

impl Default for Liveness {
    fn default() -> Liveness {
        Liveness { window: LIVE, proved: None, proofs: 0, has_failed: false }
    }
}

impl Liveness {
    /// Returns the liveness that an earlier run of the hub saved, with the last proof at the moment `heard`. If there
    /// was one, the cluster is not live before two new proofs; if `heard` is `None`, one suffices.
    pub fn restored(heard: Option<Duration>) -> Liveness {
        Liveness { proved: heard, has_failed: heard.is_some(), ..Liveness::default() }
    }

    /// Sets the age up to which the cluster is live, at least [`LIVE`] and at most [`MAX_WINDOW`]; `None` for [`LIVE`].
    pub fn set_window(&mut self, window: Option<Duration>) {
        self.window = window.unwrap_or(LIVE).clamp(LIVE, MAX_WINDOW);
    }

    /// Records the proof in a report that was received at the moment `at`, when the API server's last answer to the
    /// source was `age` old. A proof older than the window, or no newer than the last one, does not count towards being
    /// live again.
    pub fn prove(&mut self, at: Duration, age: Duration) {
        let moment = at.saturating_sub(age);
        if self.age(at).is_some_and(|age| age > self.window) {
            (self.has_failed, self.proofs) = (true, 0);
        }
        // A late report proves nothing that was not known, and an old proof does not end a silence.
        if age > self.window || self.proved.is_some_and(|proved| proved >= moment) {
            self.proved = self.proved.max(Some(moment));
            return;
        }
        self.proved = Some(moment);
        self.proofs = self.proofs.saturating_add(1);
    }

    /// Returns the time from the last proof to the moment `at`; `None` before the first one.
    pub fn age(&self, at: Duration) -> Option<Duration> {
        Some(at.saturating_sub(self.proved?))
    }

    /// Returns the state at the moment `at` by the age of the last proof: live up to the window, stale up to [`LOST`],
    /// then lost, as before the first proof. Stale instead of live while a cluster that was not live has had fewer than
    /// two new proofs.
    pub fn state(&self, at: Duration) -> FreshnessState {
        let has_recovered = !self.has_failed || self.proofs >= RECOVERED;
        match state_of(self.age(at), self.window) {
            FreshnessState::Live if !has_recovered => FreshnessState::Stale,
            state => state,
        }
    }

    /// Returns the state and the wall-clock time of the last proof at the moment `at`, which the wall clock shows as
    /// `now`.
    pub fn freshness(&self, at: Duration, now: Timestamp) -> Freshness {
        let age = self.age(at);
        let observed_at = age.and_then(|age| before(now, age));
        Freshness { state: self.state(at), observed_at }
    }

    /// Returns the first moment after `at` at which the age of the last proof has passed the window or [`LOST`], if
    /// no other proof comes; `None` if it has passed both, or without a proof.
    pub fn next_change(&self, at: Duration) -> Option<Duration> {
        let proved = self.proved?;
        let ends = [self.window, LOST.max(self.window)].map(|age| proved + age + RESOLUTION);
        ends.into_iter().find(|end| *end > at)
    }
}

/// Returns the state of a cluster whose API server last proved itself `age` ago: live up to the window, stale up to
/// [`LOST`], then lost, as before the first proof.
pub(super) fn state_of(age: Option<Duration>, window: Duration) -> FreshnessState {
    match age {
        Some(age) if age <= window => FreshnessState::Live,
        Some(age) if age <= LOST.max(window) => FreshnessState::Stale,
        _ => FreshnessState::Lost,
    }
}

/// Returns the time that is `age` before `now`; `None` if a [`Timestamp`] cannot represent it.
pub(super) fn before(now: Timestamp, age: Duration) -> Option<Timestamp> {
    now.checked_sub(SignedDuration::try_from(age).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn cluster_is_live_then_stale_then_lost_by_the_age_of_its_last_proof() {
        let mut liveness = Liveness::default();
        assert_eq!(liveness.state(seconds(0)), FreshnessState::Lost);
        liveness.prove(seconds(100), seconds(10));
        let states = [100, 135, 136, 240, 241].map(|at| liveness.state(seconds(at)));
        use FreshnessState::{Live, Lost, Stale};
        assert_eq!(states, [Live, Live, Stale, Stale, Lost]);
    }

    #[test]
    fn old_age_is_no_proof_of_life() {
        let mut liveness = Liveness::default();
        for at in [100, 115, 130] {
            liveness.prove(seconds(at), seconds(at));
            assert_eq!(liveness.state(seconds(at)), FreshnessState::Stale);
        }
    }

    #[test]
    fn silent_cluster_is_live_again_after_two_proofs() {
        let mut liveness = Liveness::default();
        liveness.prove(seconds(0), seconds(0));
        liveness.prove(seconds(60), seconds(0));
        assert_eq!(liveness.state(seconds(60)), FreshnessState::Stale);
        // The same proof, reported again, is no second one.
        liveness.prove(seconds(65), seconds(5));
        assert_eq!(liveness.state(seconds(65)), FreshnessState::Stale);
        liveness.prove(seconds(75), seconds(0));
        assert_eq!(liveness.state(seconds(75)), FreshnessState::Live);
    }

    #[test]
    fn source_of_slow_scrapes_has_a_longer_window_within_the_greatest() {
        let mut liveness = Liveness::default();
        liveness.set_window(Some(seconds(180)));
        liveness.prove(seconds(1_000), seconds(100));
        use FreshnessState::{Live, Lost};
        assert_eq!([1_080, 1_081].map(|at| liveness.state(seconds(at))), [Live, Lost]);
        assert_eq!(liveness.next_change(seconds(1_000)), Some(seconds(1_080) + RESOLUTION));
        for (window, end) in [(seconds(1), LIVE), (Duration::MAX, MAX_WINDOW)] {
            liveness.set_window(Some(window));
            assert_eq!(liveness.next_change(seconds(900)), Some(seconds(900) + end + RESOLUTION));
        }
    }

    #[test]
    fn next_change_is_the_end_of_the_state() {
        let mut liveness = Liveness::default();
        assert_eq!(liveness.next_change(seconds(0)), None);
        liveness.prove(seconds(0), seconds(0));
        let end = liveness.next_change(seconds(0)).unwrap();
        let before = end - RESOLUTION;
        assert_eq!([before, end].map(|at| liveness.state(at)), [FreshnessState::Live, FreshnessState::Stale]);
        let end = liveness.next_change(end).unwrap();
        assert_eq!(liveness.state(end), FreshnessState::Lost);
        assert_eq!(liveness.next_change(end), None);
    }
}
