//! Clusters that agents report or metrics tell of, in the answers about clusters that the hub follows itself.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::OnceLock;

use jiff::Timestamp;
use taffrail_api::question::{AskedFleet, ClusterStatuses, FleetProblem};
use taffrail_api::{AppRow, ClusterRow, ErrorRow};
use taffrail_apps::{App, AppError, AppList, Objects, Scope, ScopeError, Snapshot};
use taffrail_hub::{FleetView, ManagedClusters, ReportedCluster};
use taffrail_object::ObjectKey;
use taffrail_observe::FleetSnapshot;
use taffrail_status::ActiveRules;

/// The reason why the objects of a cluster that an agent reports are unobserved.
const OF_AGENT: &str = "an agent reports the cluster, and the hub does not read it";

/// The reason why the objects of a cluster that only metrics tell of are unobserved.
const OF_METRICS: &str = "only metrics tell of the cluster, and they tell of no objects";

/// The clusters that the hub does not follow itself, as agents report them or metrics tell.
#[derive(Default)]
pub(super) struct ReportedClusters {
    snapshots: Vec<Snapshot>,
    apps: Vec<App>,
    errors: Vec<AppError>,
    clusters: HashMap<String, ClusterRow>,
    rows: HashMap<RowId, AppRow>,
    /// The names of those that only metrics tell of.
    of_metrics: HashSet<String>,
    /// The rows and reports of which these are a part; `None` if there are none.
    view: Option<FleetView>,
    /// The objects that stand for any of all clusters in management clusters, joined once an answer shows clusters.
    managed: OnceLock<ManagedClusters>,
}

/// The home, the cluster and the name of an app, by which its row is found.
type RowId = (String, String, taffrail_api::AppName);

fn id(row: &AppRow) -> RowId {
    (row.home.clone(), row.cluster.clone(), row.app_name())
}

impl ReportedClusters {
    /// Makes them from those that `view` reports.
    pub(super) fn new(reported: Vec<ReportedCluster>, view: FleetView) -> ReportedClusters {
        let mut all = ReportedClusters { view: Some(view), ..ReportedClusters::default() };
        for ReportedCluster { row, facts, errors, apps } in reported {
            // The identity of each other cluster is known.
            let is_of_metrics = facts.id.is_none();
            let why = if is_of_metrics { OF_METRICS } else { OF_AGENT };
            let mut snapshot = Snapshot::reported(row.name.clone(), row.freshness, why);
            if is_of_metrics {
                all.of_metrics.insert(row.name.clone());
            }
            snapshot.set_labels(facts.labels.clone());
            facts.version.iter().for_each(|version| snapshot.set_version(version.clone()));
            facts.unverified.iter().for_each(|why| snapshot.set_unverified(why.clone()));
            for ErrorRow { cluster, scope, reason, message } in errors {
                let scope = if scope == "cluster" { Scope::Cluster } else { Scope::Input(scope) };
                let error = ScopeError { scope, reason, message };
                snapshot.report(error.clone());
                all.errors.push(AppError { cluster, error });
            }
            all.snapshots.push(snapshot);
            all.apps.extend(apps.iter().map(App::from));
            all.clusters.insert(row.name.clone(), row);
            all.rows.extend(apps.into_iter().map(|row| (id(&row), row)));
        }
        all
    }

    /// Returns the error that an answer about other clusters leaves one of these out; `None` if it is none of these.
    fn error_of(&self, name: &str) -> Option<ScopeError> {
        self.clusters.get(name)?;
        let message = match self.is_of_metrics(name) {
            true => OF_METRICS.to_owned(),
            false => format!("{OF_AGENT}; its agent answers about it alone: --cluster {name}"),
        };
        Some(ScopeError { scope: Scope::Cluster, reason: "NotRead".to_owned(), message })
    }

    /// Returns one of these clusters as an answer about others names it: with the error that it is left out; `None` if it is
    /// none of these.
    pub(super) fn left_out(&self, name: &str) -> Option<Snapshot> {
        let (row, error) = (self.clusters.get(name)?, self.error_of(name)?);
        let why = if self.is_of_metrics(name) { OF_METRICS } else { OF_AGENT };
        let mut snapshot = Snapshot::reported(row.name.clone(), row.freshness, why);
        snapshot.report(error);
        Some(snapshot)
    }

    /// Returns the clusters that agents report as the statuses of objects name them: with the error that they are left out.
    pub(super) fn statuses(&self) -> Vec<ClusterStatuses> {
        let mut names: Vec<&String> = self.clusters.keys().filter(|name| !self.is_of_metrics(name)).collect();
        names.sort_unstable();
        let told = names.into_iter().map(|name| ClusterStatuses {
            cluster: name.clone(),
            is_unobserved: true,
            errors: self.error_of(name).into_iter().collect(),
            items: Vec::new(),
        });
        told.collect()
    }

    /// Returns true if the cluster `name` is one of these.
    pub(super) fn has(&self, name: &str) -> bool {
        self.clusters.contains_key(name)
    }

    /// Returns true if only metrics tell of the cluster `name`.
    pub(super) fn is_of_metrics(&self, name: &str) -> bool {
        self.of_metrics.contains(name)
    }

    /// Puts the rows as they were reported in the place of those that were made of apps without objects.
    pub(super) fn restore_apps(&self, rows: &mut [AppRow]) {
        for row in rows {
            if let Some(reported) = self.rows.get(&id(row)) {
                row.clone_from(reported);
            }
        }
    }

    /// Puts the rows of clusters as they were reported in the place of those that were made of clusters without objects, and
    /// into all what management clusters tell of them, which may be agents', too.
    pub(super) fn restore_clusters(&self, rows: &mut [ClusterRow]) {
        let managed =
            self.managed.get_or_init(|| self.view.as_ref().map(ManagedClusters::of).unwrap_or_default());
        for row in rows {
            if let Some(reported) = self.clusters.get(&row.name) {
                row.clone_from(reported);
            }
            managed.put_into_named(row);
        }
    }
}

/// The fleet that a hub follows, and the clusters that agents report.
pub(super) struct WholeFleet<'f> {
    pub(super) followed: &'f FleetSnapshot,
    pub(super) reported: &'f ReportedClusters,
}

impl AskedFleet for WholeFleet<'_> {
    fn apps(&self, objects: &[ObjectKey]) -> AppList {
        let mut list = self.followed.apps(objects);
        if objects.is_empty() {
            list.apps.extend(self.reported.apps.iter().cloned());
            list.errors.extend(self.reported.errors.iter().cloned());
        }
        list
    }

    fn orphans(&self, list: &AppList, namespaces: &BTreeSet<String>) -> AppList {
        self.followed.orphans(list, namespaces)
    }

    fn clusters(&self) -> Vec<&dyn Objects> {
        let mut clusters = self.followed.clusters();
        clusters.extend(self.reported.snapshots.iter().map(|snapshot| snapshot as &dyn Objects));
        clusters
    }

    fn rules(&self) -> ActiveRules<'_> {
        AskedFleet::rules(self.followed)
    }

    fn now(&self) -> Timestamp {
        self.followed.now
    }

    fn problems(&self) -> Vec<FleetProblem> {
        AskedFleet::problems(self.followed)
    }
}
