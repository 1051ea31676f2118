//! The clusters that were read, together: the input of every view.

use std::sync::Arc;

use jiff::Timestamp;
use taffrail_apps::{App, AppLabels, AppList, Objects, Snapshot, apps_by, declared};
use taffrail_object::ObjectKey;
use taffrail_status::{ClusterState as _, Status};

use crate::error::ObserveError;
use crate::rows::KeptRows;
use crate::rules::FleetRules;

/// The clusters of a fleet, as they were read.
#[derive(Debug)]
pub struct FleetSnapshot {
    /// Each cluster.
    pub snapshots: Vec<Snapshot>,
    /// The time at which it is judged.
    pub now: Timestamp,
    /// The time from which ages are counted. It differs from the time of judgement only where answers of different
    /// times are compared.
    pub aged: Timestamp,
    /// The rules by which it is judged.
    pub rules: Arc<dyn FleetRules>,
    /// Failures outside of any cluster, such as in one of several kubeconfigs.
    pub problems: Vec<ObserveError>,
    /// The labels that name apps.
    pub(crate) labels: AppLabels,
    /// Its apps, where they are kept up to date.
    pub(crate) rows: Option<KeptRows>,
}

impl FleetSnapshot {
    /// Returns its apps; where `objects` are declared by the user, the app that they make instead.
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

    /// Returns the clusters, as views take them.
    pub fn clusters(&self) -> Vec<&dyn Objects> {
        self.snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect()
    }
}

/// The doubt about an object that is missing in a dump which has none of its kind.
pub const LEFT_OUT: &str = " (the kind may be left out of the dump)";

/// Adds to the messages about missing objects that the dump, which has none of their kind, may have omitted the kind.
fn doubt_absence(app: &mut App, dump: &Snapshot) {
    let App { resources, speaker, message, worst, .. } = app;
    let missing = resources.iter_mut().chain(speaker).filter(|it| it.status == Status::NotFound);
    for resource in missing {
        let ObjectKey { group, kind, .. } = &resource.key;
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
