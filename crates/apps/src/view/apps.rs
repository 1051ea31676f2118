//! `get apps`.

use serde::Serialize;
use taffrail_object::ObjectKey;

use super::{API_VERSION, Counts, ErrorRow, FreshnessView, time};
use crate::apps::{self, App};
use crate::problem::Problem;
use crate::sync::{ObjectSync, Source, Sync};
use crate::words::Words;

/// The apps of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppList {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `AppList`.
    pub kind: &'static str,
    /// A row for each app in each cluster.
    pub items: Vec<AppRow>,
    /// What could not be read, cannot be right, or is claimed twice.
    pub errors: Vec<ErrorRow>,
}

impl From<&apps::AppList> for AppList {
    fn from(list: &apps::AppList) -> AppList {
        AppList {
            api_version: API_VERSION,
            kind: "AppList",
            items: list.apps.iter().map(AppRow::from).collect(),
            errors: list.errors.iter().map(ErrorRow::from).collect(),
        }
    }
}

/// One app in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppRow {
    /// What it has in common with the same app in other clusters.
    pub key: String,
    /// The cluster that its objects land in.
    pub cluster: String,
    /// The cluster that holds the declaring object.
    pub home: String,
    /// How it is delivered.
    pub delivery: &'static str,
    /// Namespace of the declaring object.
    pub namespace: String,
    /// Name of the declaring object.
    pub name: String,
    /// The status when it was last observed.
    pub health: &'static str,
    /// What may be said of its status now.
    pub effective: &'static str,
    /// What there is to look at; absent of an app that is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemView>,
    /// Why, in one line; of an app that is well, what its delivery says.
    pub message: Words,
    /// The object that speaks when the app is not well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<ObjectKey>,
    /// How many declared objects have each status.
    pub counts: Counts,
    /// How many objects are declared.
    pub objects: usize,
    /// How many of them are there and do not say that they are this app's.
    #[serde(skip_serializing_if = "is_none")]
    pub unconfirmed: usize,
    /// Its revisions.
    pub sync: SyncView,
    /// Whether its tool was told to leave it alone.
    pub suspended: bool,
    /// The freshness of what was observed in the target cluster.
    pub freshness: FreshnessView,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceView>,
}

impl From<&App> for AppRow {
    fn from(app: &App) -> AppRow {
        AppRow {
            key: app.key.to_string(),
            cluster: app.app.target.clone(),
            home: app.app.home.clone(),
            delivery: app.app.delivery.as_str(),
            namespace: app.app.namespace.clone(),
            name: app.app.name.clone(),
            health: app.health.as_str(),
            effective: app.effective().as_str(),
            problem: app.problem().map(ProblemView::from),
            message: app.message.clone(),
            worst: app.worst.clone(),
            counts: app.counts.into(),
            objects: app.counts.total(),
            unconfirmed: app.unconfirmed(),
            sync: SyncView::from(app),
            suspended: app.suspended,
            freshness: app.freshness.into(),
            source: app.source.as_ref().map(SourceView::from),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_none(number: &usize) -> bool {
    *number == 0
}

/// The reason why a row is not well.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProblemView {
    /// `health`, `sync`, `source` or `freshness`.
    pub axis: &'static str,
    /// The state on that axis, in CamelCase.
    pub state: String,
    /// `error`, `waiting` or `notice`.
    pub severity: &'static str,
    /// The time since which it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The reason, for people.
    pub message: Words,
    /// The object that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
}

impl From<&Problem> for ProblemView {
    fn from(problem: &Problem) -> ProblemView {
        let Problem { axis, state, severity, since, message, object } = problem.clone();
        ProblemView {
            axis: axis.as_str(),
            state,
            severity: severity.as_str(),
            since: since.map(time),
            message,
            object: object.clone(),
        }
    }
}

/// An object that is not synced by the word of the delivery tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnsyncedView {
    /// The object.
    pub object: ObjectKey,
    /// `OutOfSync`, `RequiresPruning`, `SyncFailed` or `HookFailed`.
    pub state: &'static str,
    /// The message of the last operation about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl From<&ObjectSync> for UnsyncedView {
    fn from(sync: &ObjectSync) -> UnsyncedView {
        UnsyncedView { object: sync.key.clone(), state: sync.state, message: sync.message.clone() }
    }
}

/// The revisions of an app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncView {
    /// The last observed state: `Synced`, `OutOfSync`, `Syncing`, `Failed`, `Suspended` or `Unknown`.
    pub state: &'static str,
    /// The state that is known now: `Unknown` where the home cluster is not live.
    pub effective: &'static str,
    /// What the source holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// What was last tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempted: Option<String>,
    /// What was last applied with success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
    /// When something was last applied with success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success: Option<String>,
    /// The freshness of what the home cluster declares.
    pub freshness: FreshnessView,
}

impl From<&App> for SyncView {
    fn from(app: &App) -> SyncView {
        let Sync { state, desired, attempted, applied, last_success } = app.sync.clone();
        SyncView {
            state: state.as_str(),
            effective: app.effective_sync().as_str(),
            desired,
            attempted,
            applied,
            last_success: last_success.map(time),
            freshness: app.home_freshness.into(),
        }
    }
}

/// Where an app comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceView {
    /// The kind of source.
    pub kind: String,
    /// Namespace of the object that describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object that describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The part of it that is delivered: a folder, a chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The branch, tag, version or range that is followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

impl From<&Source> for SourceView {
    fn from(source: &Source) -> SourceView {
        let Source { kind, namespace, name, url, path, reference } = source.clone();
        SourceView { kind, namespace, name, url, path, reference }
    }
}
