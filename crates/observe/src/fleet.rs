//! The snapshots of all clusters that were read, from which every view is made.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_api::question::{AskedFleet, FleetProblem};
use taffrail_apps::{
    App, AppError, AppLabels, AppList, ChangedRows, FleetMember, Objects, Orphans, Snapshot, apps_by,
    declared, members,
};
use taffrail_object::ObjectKey;
use taffrail_status::{ActiveRules, ClusterState as _, Status};

use crate::rows::KeptRows;
use crate::rules::FleetRules;

/// The snapshots of all clusters, and the time and rules by which they are judged.
#[derive(Debug)]
pub struct FleetSnapshot {
    /// The snapshots, one of each cluster.
    pub snapshots: Vec<Snapshot>,
    /// The time at which the objects are judged.
    pub now: Timestamp,
    /// The rules by which objects are judged.
    pub rules: Arc<dyn FleetRules>,
    /// Failures outside of any cluster, such as in a kubeconfig, and warnings about contexts.
    pub problems: Vec<FleetProblem>,
    /// The labels whose values name the apps of objects that no tool declares.
    pub(crate) labels: AppLabels,
    /// The rows of apps, updated while the clusters are watched; `None` if they were read once.
    pub(crate) rows: Option<KeptRows>,
}

impl FleetSnapshot {
    /// Returns the apps of all clusters. If `objects` is not empty, returns instead one app in each cluster, which
    /// consists of these objects. Messages about objects missing in a dump that `taffrail dump` did not write end with
    /// [`LEFT_OUT`] if it has none of their kind.
    pub fn apps(&self, objects: &[ObjectKey]) -> AppList {
        let mut list = if objects.is_empty() {
            let (clusters, rules) = (self.clusters(), self.rules.active());
            match &self.rows {
                Some(rows) => rows.apps(&clusters, &rules, self.now),
                None => apps_by(&self.labels, &clusters, &rules, self.now),
            }
        } else {
            declared(&self.clusters(), objects, &self.rules.active(), self.now)
        };
        for app in &mut list.apps {
            let target = self.snapshots.iter().find(|snapshot| snapshot.name() == app.app.target);
            if let Some(dump) = target.filter(|snapshot| snapshot.is_dump()) {
                doubt_absence(app, dump);
            }
        }
        list
    }

    /// Passes the apps of all clusters to `take`, with those that may differ since the last call. Returns `None` if the
    /// clusters are not watched.
    pub(crate) fn changed_apps<T>(&self, take: impl FnOnce(&AppList, &ChangedRows) -> T) -> Option<T> {
        let (clusters, rules) = (self.clusters(), self.rules.active());
        Some(self.rows.as_ref()?.changed(&clusters, &rules, self.now, take))
    }

    /// Passes the apps of all clusters to `take`. Returns `None` if the clusters are not watched.
    pub(crate) fn kept_apps<T>(&self, take: impl FnOnce(&AppList) -> T) -> Option<T> {
        let (clusters, rules) = (self.clusters(), self.rules.active());
        Some(self.rows.as_ref()?.read(&clusters, &rules, self.now, take))
    }

    /// Returns the objects in these namespaces that no app of `list` declares, judged as one app in each cluster;
    /// without `namespaces` see [`AppList::orphans`]. If a Current one carries the mark of a tool, its message says
    /// whose. The errors are those of `list`, and one for each namespace with objects that may belong to an app that
    /// could not be read; those objects are not returned.
    pub fn orphans(&self, list: &AppList, namespaces: &BTreeSet<String>) -> AppList {
        let rules = self.rules.active();
        let mut errors = list.errors.clone();
        let of_cluster = |member: FleetMember<'_>| {
            let Orphans { objects: orphans, undecided } = list.orphans(member.objects, namespaces);
            let cluster = member.objects.name();
            errors.extend(undecided.into_iter().map(|error| AppError { cluster: cluster.to_owned(), error }));
            let keys: Vec<ObjectKey> = orphans.iter().map(|orphan| orphan.key.clone()).collect();
            let mut app = declared(&[member.objects], &keys, &rules, self.now).apps.pop()?;
            let named: HashMap<&ObjectKey, String> =
                orphans.iter().map(|orphan| (&orphan.key, orphan.remarks.join("; "))).collect();
            for resource in app.resources.iter_mut().filter(|it| it.status == Status::Current) {
                let named = named.get(&*resource.key).filter(|named| !named.is_empty());
                resource.message = named
                    .map_or(resource.message.clone(), |named| format!("carries the mark of {named}").into());
            }
            Some(app)
        };
        let apps = members(&self.clusters()).into_iter().filter_map(of_cluster).collect();
        AppList { apps, errors, left_out: list.left_out.clone() }
    }

    /// Returns the snapshots as cluster states, the form that views take.
    pub fn clusters(&self) -> Vec<&dyn Objects> {
        self.snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect()
    }
}

impl AskedFleet for FleetSnapshot {
    fn apps(&self, objects: &[ObjectKey]) -> AppList {
        FleetSnapshot::apps(self, objects)
    }

    fn orphans(&self, list: &AppList, namespaces: &BTreeSet<String>) -> AppList {
        FleetSnapshot::orphans(self, list, namespaces)
    }

    fn clusters(&self) -> Vec<&dyn Objects> {
        FleetSnapshot::clusters(self)
    }

    fn rules(&self) -> ActiveRules<'_> {
        self.rules.active()
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn problems(&self) -> Vec<FleetProblem> {
        self.problems.clone()
    }
}

/// The text appended to a message that an object is missing in a dump that `taffrail dump` did not write, if the dump
/// has no object of its kind.
pub const LEFT_OUT: &str = " (the kind may be left out of the dump)";

/// Extends the messages about missing objects whose kind the dump does not contain at all: the dump may have
/// omitted the kind.
fn doubt_absence(app: &mut App, dump: &Snapshot) {
    let App { resources, speaker, message, worst, .. } = app;
    let missing = resources.iter_mut().chain(speaker).filter(|it| it.status == Status::NotFound);
    for resource in missing {
        let ObjectKey { group, kind, .. } = &*resource.key;
        if dump.of_kind(group, kind, None).next().is_some() {
            continue;
        }
        if worst.as_ref() == Some(&resource.key) && *message == resource.message {
            *message = format!("{message}{LEFT_OUT}").into();
        }
        if let Some(last) = resource.chain.last_mut() {
            Arc::make_mut(last).message.push_str(LEFT_OUT);
        }
        resource.message = format!("{}{LEFT_OUT}", resource.message).into();
    }
}
