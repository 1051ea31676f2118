//! The rows of `get resources`: the declared objects of apps.

use jiff::Timestamp;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use taffrail_apps::{App, AppList, Freshness, ObjectSync, ObjectSyncState, Problem, Resource, Words};
use taffrail_object::ObjectKey;
use taffrail_status::{Status, rollup};

use crate::{AppName, ImageUse, List, ListItem, text};

/// The rows of the declared objects of the apps of a fleet.
pub type ResourceList = List<ResourceRow>;

impl ListItem for ResourceRow {
    const LIST: &'static str = "ResourceList";
}

impl From<&AppList> for ResourceList {
    fn from(list: &AppList) -> ResourceList {
        let inner = Inner::of(list);
        let rows = list.apps.iter().flat_map(|app| {
            let syncs = app.syncs();
            let inner = &inner;
            app.resources.iter().map(move |resource| {
                row(app, resource, inner.get(app, resource), syncs.get(&*resource.key).copied())
            })
        });
        List::of(rows.collect(), &list.errors)
    }
}

impl ResourceList {
    /// Makes the rows of orphaned objects from `list`, whose apps only group them: no row names an app.
    pub fn of_orphans(list: &AppList) -> ResourceList {
        let mut rows = ResourceList::from(list);
        rows.items.iter_mut().for_each(|row| row.app = None);
        rows
    }
}

/// A declared object of an app, or an object that no app declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResourceRow {
    /// Name of the cluster that holds the object.
    pub cluster: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Name of the kind: `Deployment`.
    pub kind: String,
    /// Namespace of the object; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// The status of the object when it was last observed; for an object that declares an app, that of the app.
    pub health: Status,
    /// The status of the object now: `health` unless `freshness` is given, then Unknown.
    pub effective: Status,
    /// Always equal to `effective`.
    pub status: Status,
    /// The message of `health`, in one line; may be empty.
    pub message: Words,
    /// The freshness of the objects of the app, of which the least fresh one counts for all; left out while it is live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freshness: Option<Freshness>,
    /// The worst problem of the app, if that is that a cluster or a part of one is not live and `effective` is Unknown
    /// because of it; else left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Name of the rule that decided the status.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// The state that the delivery tool reports for an object that is not synced: `OutOfSync`, `SyncFailed`, …;
    /// left out for a synced one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<ObjectSyncState>,
    /// The message of the tool's last operation about the object, if that could not sync it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sync_message: String,
    /// True if a user suspended the object: `spec.suspend` is set, or the rules of its kind find so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// True if the object exists outside of the author's own namespace and carries no mark of the app that claims it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfirmed: bool,
    /// The time since when the object is not well, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The images for which the question asked (`--image`), at most 8: those that the object declares, and those that
    /// its Pods run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageUse>,
    /// The app that declares it; absent if none does (`--orphaned`, `--image`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    /// The clusters, and the kinds of apps in clusters, that could not be read and whose apps may declare the object, if
    /// no known app does (`--image`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners_unread: Vec<String>,
}

impl ResourceRow {
    /// Returns the status for a table cell, followed by the state that the delivery tool reports: `Ready, OutOfSync`;
    /// if the observation is too old to count, with the last one: `Unknown (was Ready, 12 min ago)`.
    pub fn words(&self, now: Timestamp) -> String {
        let seen = match self.freshness {
            Some(freshness) => text::status(self.health, freshness, now),
            None => self.status.word().to_owned(),
        };
        text::with_sync(seen, self.status, self.sync)
    }

    /// Returns the message for a table cell: that of the object with that of the tool's last operation, as
    /// [`text::object_message`] joins them; if the app's cluster is not live, that cluster and these behind it, as
    /// [`text::last_message`] does.
    pub fn told(&self) -> String {
        let last = text::object_message(self.health, &self.message, &self.sync_message);
        text::last_message(&last, self.problem.as_ref(), true).into_owned()
    }

    /// Returns the key of the object.
    pub(crate) fn object(&self) -> ObjectKey {
        ObjectKey::new(&*self.group, &*self.kind, &*self.namespace, &*self.name)
    }
}

/// The apps of a list by home cluster and declaring object, to find the app that an object of another app declares.
///
/// The row of such an object shows the status of the app that it declares, while the roll-up of the outer app counts
/// the object's own status.
pub(super) struct Inner<'l>(HashMap<(&'l str, &'l ObjectKey), &'l App>);

impl<'l> Inner<'l> {
    pub(super) fn of(list: &'l AppList) -> Inner<'l> {
        let declared = list.apps.iter();
        let declared = declared.filter_map(|app| Some(((&*app.app.home, app.declaring.as_ref()?), app)));
        Inner(declared.collect())
    }

    /// Returns the app that `resource`, an object of `app`, declares; `None` if it declares none or `app` itself, or if
    /// the target cluster of `app` was not read.
    pub(super) fn get(&self, app: &App, resource: &Resource) -> Option<&'l App> {
        let inner = self.0.get(&(&*app.app.target, &resource.key)).filter(|_| app.in_reach)?;
        (inner.app != app.app).then_some(*inner)
    }

    /// Counts the declared objects of `app` by their last observed status; an object that declares another app counts
    /// with the health of that app.
    pub(super) fn counts(&self, app: &App) -> rollup::Counts {
        let status =
            |resource: &Resource| self.get(app, resource).map_or(resource.status, |inner| inner.health);
        app.resources.iter().map(status).collect()
    }
}

fn row(app: &App, resource: &Resource, inner: Option<&App>, unsynced: Option<&ObjectSync>) -> ResourceRow {
    if let Some(inner) = inner.filter(|inner| inner.effective() != app.freshness.effective(resource.status)) {
        let own = row(app, resource, None, unsynced);
        let since = inner.speaker.as_ref().and_then(|speaker| speaker.since);
        let rule = inner.speaker.as_ref().map(|speaker| speaker.rule.to_string()).unwrap_or_default();
        let (health, effective, message) = (inner.health, inner.effective(), inner.message.clone());
        let (freshness, problem) = not_live(inner);
        let status = effective;
        return ResourceRow { health, effective, status, message, freshness, problem, rule, since, ..own };
    }
    let (freshness, problem) = not_live(app);
    ResourceRow {
        sync: unsynced.map(|unsynced| unsynced.state),
        sync_message: unsynced.map(|unsynced| unsynced.message.clone()).unwrap_or_default(),
        cluster: app.app.target.clone(),
        group: resource.key.group.clone(),
        kind: resource.key.kind.clone(),
        namespace: resource.key.namespace.clone(),
        name: resource.key.name.clone(),
        health: resource.status,
        effective: app.freshness.effective(resource.status),
        status: app.freshness.effective(resource.status),
        message: resource.message.clone(),
        freshness,
        problem,
        rule: resource.rule.to_string(),
        suspended: resource.flags.suspended,
        unconfirmed: resource.unconfirmed,
        since: resource.since,
        images: Vec::new(),
        app: Some(AppName::from(&app.app)),
        owners_unread: Vec::new(),
    }
}

/// Returns the freshness of the objects of an app and its worst problem if that is on the axis freshness; `None` for
/// the second if it is not, and for both while the objects are live.
fn not_live(app: &App) -> (Option<Freshness>, Option<Problem>) {
    let freshness = Some(app.freshness).filter(|freshness| !freshness.is_live());
    (freshness, text::silence(app.freshness, app.problem()).cloned())
}
