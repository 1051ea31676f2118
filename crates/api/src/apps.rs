//! Rows of `get apps`.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::{
    App, AppKey, AppList, AppRef, Axis, CheckResult, Delivery, Freshness, Problem, SUSPENDED, Source, Sync,
    SyncState, Upstream, Upstreams, Words,
};
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use crate::checks::ToldChecks;
use crate::row_part::{RowPart, is_said, unobserved_parts};
use crate::{AppName, AppOfHome, List, ListItem, text};

/// One app in one target cluster, as a row of `get apps`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppRow {
    /// A text that identifies the app in all clusters: the name in its annotation `taffrail.dev/app`, its
    /// ApplicationSet or its package, or else its delivery, namespace and name.
    pub key: String,
    /// Name of the cluster that holds the app's objects; the same as `home` if that cluster was not queried.
    pub cluster: String,
    /// Name of the cluster that holds the declaring object.
    pub home: String,
    /// The delivery of the app, such as a Flux Kustomization.
    pub delivery: Delivery,
    /// Namespace of the declaring object; of an app that no object declares, the namespace of its objects or its Helm
    /// release.
    pub namespace: String,
    /// Name of the declaring object; of an app that no object declares, the value of the label or the name of the Helm
    /// release.
    pub name: String,
    /// The worst status among the app's objects and its declaring object when they were last observed.
    pub health: Status,
    /// The status now: `health` if the observation of the objects is live, else Unknown.
    pub effective: Status,
    /// The worst problem of the app on any axis, notices included; left out if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// All problems of the app, the worst first, which is `problem`; left out if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// The time at which `problem` began; left out if that is not known, or there is no problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The message of `worst` or, if that is left out, of the delivery tool or (of a hub) that the objects were never
    /// reported; in one line.
    pub message: Words,
    /// The object whose status is `health`: a declared one, the declaring one, or the one that lists the declared ones;
    /// left out if `health` is Ready, or if a hub was never told of the objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<ObjectKey>,
    /// True if `worst` is an object on which the claim of this app is unconfirmed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worst_unconfirmed: bool,
    /// Number of declared objects by the status that was last observed.
    pub counts: Counts,
    /// Number of declared objects.
    pub objects: usize,
    /// Number of declared objects on which the claim of this app is unconfirmed: they exist outside of the author's own
    /// namespace and carry no mark of the app.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unconfirmed: usize,
    /// The sync state and the revisions of the app.
    pub sync: SyncRow,
    /// True if the app is suspended in its delivery tool: by `spec.suspend` of Flux, or because Argo CD skips it or its
    /// policy for automated sync is switched off.
    pub suspended: bool,
    /// The freshness of the observation of the app's objects: that of their cluster, or of the least fresh kind among
    /// them.
    pub freshness: Freshness,
    /// The Git repository, OCI artifact or chart that the app comes from; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The apps upstream of this one: those that it depends on, the one that delivers its declaring object, and the one
    /// that delivers its objects in place of its own tool. Left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<Upstream>,
    /// Number of apps that this one depends on beyond those of `upstreams`; left out if there are none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub upstreams_left_out: usize,
    /// The results of the checks that the app names in its annotation `taffrail.dev/checks`, sorted by name; they never change
    /// `health`. Left out if it names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckResult>,
    /// The parts of the row that its source cannot tell, such as metrics, or a hub that reads the cluster of the objects
    /// lightly; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unobserved: Vec<RowPart>,
    /// True if `health` is what a controller says of objects that Taffrail did not read, as Argo CD does in
    /// `status.health` of an Application; left out if it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub said: bool,
}

impl ListItem for AppRow {
    const LIST: &'static str = "AppList";
}

impl AppRow {
    /// Returns the name of the app, without its cluster.
    pub fn app_name(&self) -> AppName {
        AppName { delivery: self.delivery, namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// Returns the name for messages: `flux-kustomization flux-system/shop`, followed by ` of HOME` if another cluster
    /// than the one with its objects declares it.
    pub fn title(&self) -> String {
        let home = Some(self.home.clone()).filter(|home| *home != self.cluster);
        AppOfHome { app: self.app_name(), home }.to_string()
    }

    /// Sets the results of the app's checks, and adds the problems that they are.
    pub fn set_checks(&mut self, told: &ToldChecks) {
        let mut app = App::from(&*self);
        app.set_checks(told.results.clone(), told.problems.clone());
        self.problem = app.problem().cloned();
        self.since = self.problem.as_ref().and_then(|problem| problem.since);
        (self.checks, self.problems) = (app.checks, app.problems);
    }

    /// Returns the worst problem if it is on the axis freshness and the observation of the objects is not live, so that
    /// `effective` is Unknown; `None` otherwise.
    pub fn silence(&self) -> Option<&Problem> {
        text::silence(self.freshness, self.problem.as_ref())
    }

    /// Returns the status for a table cell: the health while the observation is live, else `Unknown (was Ready, 12 min
    /// ago)`, or `Unknown` if it was never observed; followed by ` (said)` if a controller says it of objects that were
    /// not read. After it comes, if it is Ready now, the worst problem if the
    /// status does not show that: `Ready, sync failed`; otherwise `, unconfirmed` if the worst object carries no mark
    /// of the app, or `, objects unobserved` if only the declaring object was observed. A suspended app has
    /// ` (suspended)` at the end.
    pub fn words(&self, now: Timestamp) -> String {
        let seen = text::status(self.health, self.freshness, now);
        let is_ready = self.effective == Status::Current;
        // A suspension is shown at the end.
        let is_said = |problem: &&Problem| problem.axis == Axis::Sync && problem.state == SUSPENDED;
        let besides = self.problem.as_ref().filter(|problem| is_ready && !is_said(problem));
        let besides = besides.map(Problem::words).filter(|words| !words.is_empty());
        let besides = match besides {
            Some(words) => format!(", {words}"),
            None if is_ready && self.unobserved.contains(&RowPart::Health) => {
                ", objects unobserved".to_owned()
            }
            None => String::new(),
        };
        let unconfirmed = if !is_ready && self.worst_unconfirmed { ", unconfirmed" } else { "" };
        let suspended = if self.suspended { " (suspended)" } else { "" };
        let said = if self.said { " (said)" } else { "" };
        format!("{seen}{said}{unconfirmed}{besides}{suspended}")
    }
}

impl From<&AppList> for List<AppRow> {
    fn from(list: &AppList) -> List<AppRow> {
        List::of(list.apps.iter().map(AppRow::from).collect(), &list.errors)
    }
}

impl From<&App> for AppRow {
    fn from(app: &App) -> AppRow {
        AppRow {
            key: app.key.to_string(),
            cluster: app.app.target.clone(),
            home: app.app.home.clone(),
            delivery: app.app.delivery,
            namespace: app.app.namespace.clone(),
            name: app.app.name.clone(),
            health: app.health,
            effective: app.effective(),
            problem: app.problem().cloned(),
            problems: app.problems.clone(),
            since: app.problem().and_then(|problem| problem.since),
            message: app.message.clone(),
            worst: app.worst.clone(),
            worst_unconfirmed: app.speaker.as_ref().is_some_and(|speaker| speaker.unconfirmed),
            counts: app.counts,
            objects: app.counts.total(),
            unconfirmed: app.unconfirmed(),
            sync: SyncRow::from(app),
            suspended: app.suspended,
            freshness: app.freshness,
            source: app.source.clone(),
            upstreams: app.upstreams.apps.clone(),
            upstreams_left_out: app.upstreams.left_out,
            checks: app.checks.clone(),
            unobserved: unobserved_parts(app).into(),
            said: is_said(app),
        }
    }
}

/// Makes an app of its row, for filters and counts. It has no objects, whose statuses a row does not have, and nothing of
/// what only views of one app show.
impl From<&AppRow> for App {
    fn from(row: &AppRow) -> App {
        let AppRow { sync, .. } = row;
        App {
            app: AppRef {
                home: row.home.clone(),
                target: row.cluster.clone(),
                delivery: row.delivery,
                namespace: row.namespace.clone(),
                name: row.name.clone(),
            },
            // As a text it is the same.
            key: AppKey::Named(row.key.clone()),
            in_reach: true,
            declaring: None,
            health: row.health,
            message: row.message.clone(),
            delivery_message: String::new(),
            worst: row.worst.clone(),
            counts: row.counts,
            sync: Sync {
                state: sync.state,
                desired: sync.desired.clone(),
                attempted: sync.attempted.clone(),
                applied: sync.applied.clone(),
                last_success: sync.last_success,
            },
            suspended: row.suspended,
            freshness: row.freshness,
            home_freshness: sync.freshness,
            source: row.source.clone(),
            delivered_by: None,
            upstreams: Upstreams { apps: row.upstreams.clone(), left_out: row.upstreams_left_out },
            resources: Vec::new(),
            problems: row.problems.clone(),
            checks: row.checks.clone(),
            declared_checks: Vec::new(),
            unsynced: Vec::new(),
            speaker: None,
            unheard: None,
            unread: None,
            unreadable: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
pub(crate) fn is_none(number: &usize) -> bool {
    *number == 0
}

/// The sync state of an app and its revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SyncRow {
    /// The sync state when it was last observed.
    pub state: SyncState,
    /// The sync state now: `state` if `freshness` is live, else `Unknown`.
    pub effective: SyncState,
    /// The revision that the source holds, and that should be applied; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired: Option<String>,
    /// The revision of the last sync that was tried; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempted: Option<String>,
    /// The revision of the last sync that succeeded; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
    /// The time of the last successful sync; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success: Option<Timestamp>,
    /// The freshness of what was read in the home cluster: of the declaring object, and of the kinds from which the
    /// sync state comes.
    pub freshness: Freshness,
}

impl SyncRow {
    /// Returns the present state, with the last observed one if that differs and its declaration was ever observed:
    /// `Synced`, `Unknown (was Synced)`.
    pub fn words(&self) -> Cow<'static, str> {
        let (last, now) = (self.state.as_str(), self.effective.as_str());
        match self.freshness.observed_at {
            Some(_) if now != last => Cow::Owned(format!("{now} (was {last})")),
            _ => Cow::Borrowed(now),
        }
    }
}

impl From<&App> for SyncRow {
    fn from(app: &App) -> SyncRow {
        let Sync { state, desired, attempted, applied, last_success } = app.sync.clone();
        let (effective, freshness) = (app.effective_sync(), app.home_freshness);
        SyncRow { state, effective, desired, attempted, applied, last_success, freshness }
    }
}
