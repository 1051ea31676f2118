//! `get apps`.

use serde::Serialize;
use taffrail_apps::{self as apps, App, ObjectSync, Problem, Source, Sync, Words};
use taffrail_object::ObjectKey;

use crate::{API_VERSION, Counts, ErrorRow, FreshnessView, time};

/// The apps of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppList {
    /// Always [`API_VERSION`].
    pub api_version: &'static str,
    /// Always `AppList`.
    pub kind: &'static str,
    /// A row for each app in each cluster.
    pub items: Vec<AppRow>,
    /// Failures to read, invalid declarations, and objects claimed twice.
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
    /// The key that the copies of the app in other clusters share.
    pub key: String,
    /// The cluster that its objects land in.
    pub cluster: String,
    /// The cluster that holds the declaring object.
    pub home: String,
    /// The way in which it is delivered.
    pub delivery: &'static str,
    /// Namespace of the declaring object.
    pub namespace: String,
    /// Name of the declaring object.
    pub name: String,
    /// The status when it was last observed.
    pub health: &'static str,
    /// The status now: Unknown if the last observation is too old.
    pub effective: &'static str,
    /// The worst problem; left out for an app that is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemView>,
    /// The message in one line; for an app that is well, that of its delivery tool.
    pub message: Words,
    /// The worst object; left out if the app is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<ObjectKey>,
    /// Number of declared objects by status.
    pub counts: Counts,
    /// Number of declared objects.
    pub objects: usize,
    /// Number of declared objects that exist but carry no mark of this app.
    #[serde(skip_serializing_if = "is_none")]
    pub unconfirmed: usize,
    /// Its revisions.
    pub sync: SyncView,
    /// True if it is suspended.
    pub suspended: bool,
    /// The freshness of the observations in the target cluster.
    pub freshness: FreshnessView,
    /// Its source.
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
    /// The time at which it began.
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

/// An object that the delivery tool reports as not synced.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnsyncedView {
    /// The object.
    pub object: ObjectKey,
    /// `OutOfSync`, `RequiresPruning`, `SyncFailed` or `HookFailed`.
    pub state: &'static str,
    /// The message of the tool's last operation about it.
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
    /// The revision that the source holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// The revision that was last tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempted: Option<String>,
    /// The revision that was last applied successfully.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
    /// The time of the last successful sync.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success: Option<String>,
    /// The freshness of the declarations in the home cluster.
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

/// The source of an app.
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
    /// The URL.
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
