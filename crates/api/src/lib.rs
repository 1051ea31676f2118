//! The views of a fleet: the typed answers, which are the JSON of the command line, and the texts of table cells.
//!
//! [`taffrail_apps`] computes what is known; this crate turns it into rows for display. Command line, terminal UI and
//! web page use only these, so that they always agree. It does no I/O and reads no clock.

mod actions;
mod apps;
mod chain;
mod clusters;
mod detail;
mod events;
mod explain;
pub mod filter;
mod resources;
pub mod text;
mod together;
mod tree;
mod trust;
mod wait;

use jiff::Timestamp;
use serde::Serialize;
use taffrail_status::{Status, rollup};

pub use actions::{ActionList, ActionRow, PatchRow};
pub use apps::{AppList, AppRow, ProblemView, SourceView, SyncView, UnsyncedView};
pub use chain::{LinkRow, told_in_few};
pub use clusters::{ClusterList, ClusterRow, NotLiveRow, ReadingView};
pub use detail::{AppDetail, AppDetailList};
pub use events::{EventList, EventRow};
pub use explain::{Answer, ChangeRow, Explanation, ExplanationList, Flagged};
pub use resources::{ResourceList, ResourceRow};
pub use together::{InClusters, explained_together};
pub use tree::{AppTree, Folded, Relation, TreeList, TreeNode, TreeShape};
pub use trust::{FindingObject, TrustFinding, TrustReport};
pub use wait::{WaitChange, WaitSummary};

use taffrail_apps::{AppError, AppRef, Freshness};

/// The `apiVersion` of all lists.
pub const API_VERSION: &str = "cli.taffrail.dev/v1alpha1";

/// A failure, on the smallest scope that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorRow {
    /// Name of the cluster.
    pub cluster: String,
    /// The scope that could not be read, or that is wrong.
    pub scope: String,
    /// The reason in one CamelCase word.
    pub reason: String,
    /// The message, for people.
    pub message: String,
}

impl From<&AppError> for ErrorRow {
    fn from(error: &AppError) -> ErrorRow {
        ErrorRow {
            cluster: error.cluster.clone(),
            scope: error.error.scope.to_string(),
            reason: error.error.reason.clone(),
            message: error.error.message.clone(),
        }
    }
}

/// The name of an app within a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppName {
    /// The way in which it is delivered.
    pub delivery: &'static str,
    /// Namespace of its declaring object.
    pub namespace: String,
    /// Name of its declaring object.
    pub name: String,
}

impl From<&AppRef> for AppName {
    fn from(app: &AppRef) -> AppName {
        AppName { delivery: app.delivery.as_str(), namespace: app.namespace.clone(), name: app.name.clone() }
    }
}

/// Number of items by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Counts {
    /// The actual state is the desired one.
    pub current: usize,
    /// The actual state is approaching the desired one.
    pub in_progress: usize,
    /// An error, or no progress within the deadline.
    pub failed: usize,
    /// Being deleted.
    pub terminating: usize,
    /// The object does not exist.
    pub not_found: usize,
    /// The status is not known.
    pub unknown: usize,
}

impl From<rollup::Counts> for Counts {
    fn from(counts: rollup::Counts) -> Counts {
        Counts {
            current: counts.get(Status::Current),
            in_progress: counts.get(Status::InProgress),
            failed: counts.get(Status::Failed),
            terminating: counts.get(Status::Terminating),
            not_found: counts.get(Status::NotFound),
            unknown: counts.get(Status::Unknown),
        }
    }
}

/// The freshness of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FreshnessView {
    /// `live`, `stale` or `lost`.
    pub state: &'static str,
    /// The time at which it was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<String>,
}

impl From<Freshness> for FreshnessView {
    fn from(freshness: Freshness) -> FreshnessView {
        FreshnessView { state: freshness.state.as_str(), observed_at: freshness.observed_at.map(time) }
    }
}

/// Formats a time as the API does (RFC 3339).
fn time(at: Timestamp) -> String {
    at.to_string()
}
