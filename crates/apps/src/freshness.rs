//! How old an observation is: an axis of its own beside health and sync.

use jiff::Timestamp;
use taffrail_status::Status;

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

    /// What may be said of something whose last observed status is `health`: what was true once is not
    /// known to be true.
    pub fn effective(&self, health: Status) -> Status {
        match self.state {
            FreshnessState::Live => health,
            FreshnessState::Stale | FreshnessState::Lost => Status::Unknown,
        }
    }
}
