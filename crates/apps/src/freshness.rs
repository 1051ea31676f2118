//! The age of an observation: an axis of its own beside health and sync.
//!
//! A row has two halves. What its home declares (sync, revisions, suspension, source) is as fresh as the home; what was
//! observed of its objects (health, counts, worst) as fresh as the target.

use jiff::Timestamp;
use taffrail_object::ObjectKey;
use taffrail_status::Status;

use crate::objects::Objects;
use crate::sync::SyncState;

/// Whether what is shown is what is there now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FreshnessState {
    /// Observed within the window in which that means "now".
    Live,
    /// Observed some time ago; the producer is late.
    Stale,
    /// The producer is gone, or never answered.
    Lost,
}

impl FreshnessState {
    /// The name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            FreshnessState::Live => "live",
            FreshnessState::Stale => "stale",
            FreshnessState::Lost => "lost",
        }
    }

    /// Returns the words that say it of a cluster, after its name: `does not answer`.
    pub fn predicate(self) -> &'static str {
        match self {
            FreshnessState::Live => "answers",
            FreshnessState::Stale => "has not been observed for some time",
            FreshnessState::Lost => "does not answer",
        }
    }
}

/// How fresh an observation is, and when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// Live, stale or lost.
    pub state: FreshnessState,
    /// When it was observed; `None` if it never was.
    pub observed_at: Option<Timestamp>,
}

impl Freshness {
    /// Observed at `at`, which is now.
    pub fn live(at: Timestamp) -> Freshness {
        Freshness { state: FreshnessState::Live, observed_at: Some(at) }
    }

    /// Never observed.
    pub fn never() -> Freshness {
        Freshness { state: FreshnessState::Lost, observed_at: None }
    }

    /// Returns true if what was observed is what is there now.
    pub fn is_live(&self) -> bool {
        self.state == FreshnessState::Live
    }

    /// What may be said of something whose last observed status is `health`: what was true once is not
    /// known to be true.
    pub fn effective(&self, health: Status) -> Status {
        if self.is_live() { health } else { Status::Unknown }
    }

    /// Returns the sync that is known now, where the last observed one is `sync`.
    pub fn effective_sync(&self, sync: SyncState) -> SyncState {
        if self.is_live() { sync } else { SyncState::Unknown }
    }
    /// Returns the less fresh of two, the older of two that are equally fresh.
    fn worst(self, other: Freshness) -> Freshness {
        match self.state.cmp(&other.state).then_with(|| other.observed_at.cmp(&self.observed_at)) {
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => self,
        }
    }
}

/// Returns how fresh what is known of some objects is: as the cluster, or as the least known of the scopes that they are in.
pub(crate) fn of<'k>(objects: &dyn Objects, keys: impl IntoIterator<Item = &'k ObjectKey>) -> Freshness {
    let (whole, stale) = (objects.freshness(), objects.stale_scopes());
    if stale.is_empty() {
        return whole;
    }
    let stale_of = |key: &ObjectKey| {
        let holding = stale.iter().filter(|(scope, _)| scope.holds(key));
        holding
            .map(|(_, at)| Freshness { state: FreshnessState::Stale, observed_at: Some(*at) })
            .collect::<Vec<_>>()
    };
    keys.into_iter().flat_map(stale_of).fold(whole, Freshness::worst)
}
