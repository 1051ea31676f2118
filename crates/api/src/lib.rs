//! The views of a fleet: the typed answers, which are the JSON of the command line, and the texts of table cells.
//!
//! [`taffrail_apps`] computes what is known; this crate turns it into rows for display. Command line, terminal UI and
//! web page use only these, so that they always agree. It does no I/O and reads no clock.

mod actions;
#[cfg(feature = "agent-protocol")]
pub mod agent_protocol;
mod apps;
mod as_text;
mod cause_log;
pub mod causes;
mod chain;
pub mod checks;
mod clusters;
pub mod conditions;
mod detail;
pub mod diff;
mod events;
mod explain;
pub mod filter;
pub mod hub;
mod images;
mod impact;
pub mod logs;
pub mod metrics_text;
mod object_actions;
mod object_diff;
mod object_row;
pub mod operations;
mod overview;
pub mod question;
mod relations;
pub mod report;
mod resources;
mod row_part;
mod rules;
#[cfg(feature = "schema")]
pub mod schema;
mod sets;
mod settings;
mod status;
pub mod text;
mod together;
mod tree;
mod trust;
mod wait;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use actions::{ActionList, ActionRow, PatchRow};
pub use apps::{AppRow, SyncRow};
pub use cause_log::CauseLog;
pub use chain::told_in_few;
pub use clusters::{ClusterList, ClusterRow, ManagedAs, NotLiveRow, ReadingView};
pub use detail::{AppDetail, AppDetailList};
pub use events::{EventList, EventRow};
pub use explain::{Answer, Explanation, ExplanationList, Flag, Flagged, OwningApp};
pub use images::{ImageUse, ImageUses};
pub use impact::{ImpactEffect, ImpactList, ImpactRow};
pub use object_actions::{
    ActionParameter, ActionRun, ActionRunRow, ObjectActionList, ObjectActionRow, ObjectChangeRow,
};
pub use object_diff::{
    DiffClass, DiffFieldRow, DiffIgnoredRow, DiffList, DiffMethod, DiffOwnerRow, DiffResult, DiffRow,
};
pub use object_row::{ObjectEvent, ObjectList, ObjectRow};
pub use overview::{FleetOverview, LateProblem, NodeTotals};
pub use relations::{RelatedApp, RelationDirection, RelationRow};
pub use resources::{ResourceList, ResourceRow};
pub use row_part::{RowPart, Unobserved};
pub use rules::{AskedBranch, AskedRules, RuleFaultRow, RuleList, RuleRow, RuleTrial, RulingRow};
pub use sets::{SetCountRow, SetHistory, SetObjectRow, SetRunRow};
pub use settings::{SettingList, SettingOrigin, SettingRow};
pub use status::{StatusCondition, StatusRow};
pub use together::{InClusters, explained_together, likeness};
pub use tree::{AppTree, Collapsed, Relation, TreeList, TreeNode, TreeOptions};
pub use trust::{FindingObject, TrustFinding, TrustReport};
pub use wait::{WaitChange, WaitSummary};

pub use taffrail_apps::AppName;
use taffrail_apps::{AppError, AppRef};

/// The `apiVersion` of all answers.
pub const API_VERSION: &str = "cli.taffrail.dev/v1alpha1";

/// The answer of a command that lists rows of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct List<T> {
    /// Always [`API_VERSION`].
    pub api_version: Cow<'static, str>,
    /// The kind of the answer, such as `AppList`.
    pub kind: Cow<'static, str>,
    /// The rows of the answer.
    pub items: Vec<T>,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    #[serde(default)]
    pub errors: Vec<ErrorRow>,
}

/// A type of rows that a [`List`] may contain.
pub trait ListItem {
    /// The kind of a list of these rows, such as `AppList`.
    const LIST: &'static str;
}

impl<T: ListItem> List<T> {
    /// Makes the list of `items`, with the errors that occurred while they were read.
    pub fn of(items: Vec<T>, errors: impl IntoIterator<Item: Into<ErrorRow>>) -> List<T> {
        let errors = errors.into_iter().map(Into::into).collect();
        List { api_version: API_VERSION.into(), kind: T::LIST.into(), items, errors }
    }
}

/// An error, with the smallest scope that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorRow {
    /// Name of the cluster that the error is about.
    pub cluster: String,
    /// The scope that could not be read, or that is invalid: `cluster`, a dump, an API group, a kind, a namespace or an
    /// object.
    pub scope: String,
    /// The reason for the failure in one CamelCase word, such as `Forbidden` or `Malformed`.
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

/// The name of an app, and the cluster that declares it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppOfHome {
    /// The name of the app.
    #[serde(flatten)]
    pub app: AppName,
    /// The cluster that declares the app; left out if it is the one that holds the app's objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
}

/// Formats as messages name an app: `argo-application argocd/shop`, or `argo-application argocd/shop of dev` if
/// another cluster declares it.
impl fmt::Display for AppOfHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.app)?;
        self.home.iter().try_for_each(|home| write!(f, " of {home}"))
    }
}

impl From<&AppRef> for AppOfHome {
    fn from(app: &AppRef) -> AppOfHome {
        AppOfHome { app: AppName::from(app), home: app.other_home().map(str::to_owned) }
    }
}
