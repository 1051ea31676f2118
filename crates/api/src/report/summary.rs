//! The present state of a cluster as its source knows it, for metrics.

use std::time::Duration;

use taffrail_apps::{FreshnessState, Problem};
use taffrail_status::Status;

use super::join::{last_health, speaker};
use super::liveness::{LIVE, state_of};
use super::{DeclaredHalf, NotLive, ObservedHalf};

/// A cluster, and the apps that it declares and that have their objects in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSummary {
    /// The name of the cluster.
    pub name: String,
    /// The freshness of the cluster.
    pub freshness: FreshnessState,
    /// The key and the present status of each app.
    pub apps: Vec<(String, Status)>,
    /// The number of apps with a problem that is more than a notice.
    pub problems: usize,
}

/// Returns the freshness of a cluster whose API server last proved itself so long ago, and that its source reports as `own`.
pub(super) fn freshness(age: Option<Duration>, own: Option<NotLive>) -> FreshnessState {
    let own = own.map_or(FreshnessState::Live, |own| own.state);
    own.max(state_of(age, LIVE))
}

/// Returns the present status of an app with these halves in a cluster of this freshness, and true if it has a problem that
/// is more than a notice.
pub(super) fn present(
    declared: &DeclaredHalf,
    observed: Option<&ObservedHalf>,
    cluster: FreshnessState,
) -> (Status, bool) {
    let observed = observed.filter(|observed| cluster == FreshnessState::Live && observed.not_live.is_none());
    let Some(observed) = observed else { return (Status::Unknown, true) };
    let of_object = speaker(declared, Some(observed)).map(|speaker| &speaker.problem);
    let has_problem = declared.not_live.is_some()
        || of_object.into_iter().chain(&declared.problems).any(Problem::is_pressing);
    (last_health(declared, Some(observed)), has_problem)
}
