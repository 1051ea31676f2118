//! The age of an observation: an axis of its own beside health and sync.
//!
//! A row has two halves. The part that its home declares (sync, revisions, suspension, source) is as fresh as
//! the home; the observations of its objects (health, counts, worst) are as fresh as the target.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_status::Status;

use crate::sync::SyncState;

/// The age class of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FreshnessState {
    /// Observed recently enough to count as current.
    Live,
    /// Observed some time ago: the cluster, or the part of it with the objects, was not heard since.
    Stale,
    /// Not observable: the cluster stopped answering, or never answered.
    Lost,
}

impl FreshnessState {
    /// Returns the name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            FreshnessState::Live => "live",
            FreshnessState::Stale => "stale",
            FreshnessState::Lost => "lost",
        }
    }

    /// Returns the phrase that follows the name of a cluster in messages: `does not answer`.
    pub fn predicate(self) -> &'static str {
        match self {
            FreshnessState::Live => "answers",
            FreshnessState::Stale => "has not been observed for some time",
            FreshnessState::Lost => "does not answer",
        }
    }
}

/// The age class of an observation, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Freshness {
    /// Live, stale or lost.
    pub state: FreshnessState,
    /// The time of the observation; `None` if there never was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Timestamp>,
}

impl Freshness {
    /// Makes the freshness of an observation that was made at `at` and counts as current.
    pub fn live(at: Timestamp) -> Freshness {
        Freshness { state: FreshnessState::Live, observed_at: Some(at) }
    }

    /// Makes the freshness of something never observed.
    pub fn never() -> Freshness {
        Freshness { state: FreshnessState::Lost, observed_at: None }
    }

    /// Returns true if the state is `Live`.
    pub fn is_live(&self) -> bool {
        self.state == FreshnessState::Live
    }

    /// Returns `health` if the observation is live; otherwise Unknown, as the health may have changed since.
    pub fn effective(&self, health: Status) -> Status {
        if self.is_live() { health } else { Status::Unknown }
    }

    /// Returns `sync` if the observation is live, otherwise `Unknown`.
    pub fn effective_sync(&self, sync: SyncState) -> SyncState {
        if self.is_live() { sync } else { SyncState::Unknown }
    }

    /// Returns the less fresh of the two observations; if both have the same state, the older one.
    pub fn worst(self, other: Freshness) -> Freshness {
        match self.state.cmp(&other.state).then_with(|| other.observed_at.cmp(&self.observed_at)) {
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => self,
        }
    }
}
