//! The questions of `app`, `tree`, `events` and `trust`, about one app or the apps of a namespace.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taffrail_apps::command::quoted;
use taffrail_apps::trust::{CheckedCluster, FindingCategory, TrustShape};
use taffrail_apps::{
    App, AppError, AppLabels, AppList, AppQuery, Delivery, Dependents, ObjectSync, ObjectSyncState, Problem,
    ReadQuery,
};
use taffrail_object::ObjectKey;
use taffrail_status::Status;

use super::select::{asked_for, concerning, find, inside, places, reaching};
use super::{AskedClusters, AskedFleet, FleetFacts, QuestionError, View};
use crate::filter::StatusFilter;
use crate::{
    AppDetail, AppDetailList, AppTree, EventList, EventRow, TreeList, TreeOptions, TrustFinding, TrustReport,
    as_text,
};

/// A selection of apps by the namespace that declares them and the clusters of their objects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AppSelection {
    /// The namespace in which the apps are declared; `null` for all.
    pub namespace: Option<String>,
    /// The names of the clusters that hold the objects of the apps; empty for all.
    pub clusters: Vec<String>,
    /// The labels by which undeclared objects are grouped into apps; they do not go over a wire.
    #[serde(skip)]
    pub app_labels: AppLabels,
}

impl AppSelection {
    /// Returns the names of clusters in the selection, and in `names`.
    fn clusters_mut<'q>(
        &'q mut self,
        names: impl IntoIterator<Item = &'q mut AppQuery>,
    ) -> Vec<&'q mut String> {
        let of_names = names.into_iter().flat_map(AppQuery::clusters_mut);
        self.clusters.iter_mut().chain(of_names).collect()
    }

    /// Returns the query for the apps of the namespace and for the dependents of the one called `name`, or of all
    /// without a name; with `events` also for the events.
    fn reads(&self, name: Option<&AppQuery>, events: bool) -> ReadQuery {
        let query = name.map(|name| name.clone().within(self.namespace.as_deref()));
        ReadQuery {
            namespace: self.namespace.clone(),
            dependents: query.map_or(Dependents::All, Dependents::Of),
            events,
            app_labels: self.app_labels.clone(),
            ..ReadQuery::default()
        }
    }

    /// Returns the clusters that must be read in full for an answer about the app called `name`, or about all selected
    /// ones. With `is_deep` the answer is also about the apps that the named one delivers, those that these deliver,
    /// and so on.
    fn extent(
        &self,
        name: Option<&AppQuery>,
        is_deep: bool,
        fleet: &dyn AskedFleet,
    ) -> Result<AskedClusters, QuestionError> {
        let list = fleet.apps(&[]);
        let clusters = match name {
            Some(_) => {
                let (mut found, _) = self.find(name, &list)?;
                if is_deep {
                    add_delivered(&mut found, &list);
                }
                places(found)
            }
            None if self.clusters.is_empty() => return Ok(AskedClusters::All),
            None => self.clusters.iter().cloned().collect(),
        };
        Ok(reaching(clusters, &list))
    }

    /// Returns the selected apps, of these only those called `name` if that is given, with the errors that concern
    /// them. Fails if none or several different ones have the name.
    fn find<'l>(
        &self,
        name: Option<&AppQuery>,
        list: &'l AppList,
    ) -> Result<(Vec<&'l App>, Vec<AppError>), QuestionError> {
        let namespace = self.namespace.as_deref();
        match name {
            Some(name) => {
                let found = find(name, namespace, &self.clusters, list)?;
                let errors = concerning(list, &found);
                Ok((found, errors))
            }
            None => {
                let found = inside(namespace, &self.clusters, list);
                let errors = asked_for(list, &found, namespace);
                Ok((found, errors))
            }
        }
    }
}

/// Adds the apps that those in `apps` deliver, and those that these deliver, and so on.
fn add_delivered<'l>(apps: &mut Vec<&'l App>, list: &'l AppList) {
    let mut declared_by: HashMap<(&str, &ObjectKey), Vec<&App>> = HashMap::new();
    for app in &list.apps {
        if let Some(declaring) = &app.declaring {
            declared_by.entry((&app.app.home, declaring)).or_default().push(app);
        }
    }
    let mut next = 0;
    while let Some(app) = apps.get(next).copied() {
        next += 1;
        // Each is added once, as it is taken out of the map.
        let delivered =
            app.resources.iter().filter_map(|own| declared_by.remove(&(&*app.app.target, &own.key)));
        apps.extend(delivered.flatten());
    }
}

/// The parameters of `app`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppView {
    /// The name of the app: `NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`.
    #[serde(with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub name: AppQuery,
    /// The namespace and the clusters to which the search for the app is limited.
    #[serde(default)]
    pub apps: AppSelection,
}

/// The answer of `app`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppAnswer {
    /// The facts about the queried fleet as a whole.
    pub fleet: FleetFacts,
    /// The app, once for each selected cluster that holds its objects.
    pub items: Vec<AppOfView>,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<AppError>,
    /// True if the app has no problem but notices in all of the clusters.
    pub is_well: bool,
}

/// One app in one cluster: its details, its problems, and a remark about its differences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppOfView {
    /// The details.
    pub detail: AppDetail,
    /// The problems on all axes, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// A sentence why it is not known in which further fields unsynced objects differ (they are not recorded, too many,
    /// or in a cluster that was not read), with Argo CD's command that shows them; left out for other tools, and if no
    /// object that exists is OutOfSync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differences: Option<String>,
}

impl View for AppView {
    type Answer = AppAnswer;

    fn clusters_mut(&mut self) -> Vec<&mut String> {
        self.apps.clusters_mut([&mut self.name])
    }

    fn reads(&self) -> ReadQuery {
        self.apps.reads(Some(&self.name), false)
    }

    fn extent_resolved(&self, fleet: &dyn AskedFleet) -> Result<AskedClusters, QuestionError> {
        self.apps.extent(Some(&self.name), false, fleet)
    }

    fn answer_resolved(&self, fleet: &dyn AskedFleet) -> Result<AppAnswer, QuestionError> {
        let clusters = fleet.clusters();
        let list = fleet.apps(&[]);
        let (found, errors) = self.apps.find(Some(&self.name), &list)?;
        let details = AppDetailList::new(&found, &list, &clusters, &fleet.rules(), fleet.now());
        let item = |(app, detail): (&&App, AppDetail)| AppOfView {
            problems: app.problems.clone(),
            differences: differences(app, &detail.unsynced.iter().collect::<Vec<_>>()),
            detail,
        };
        Ok(AppAnswer {
            fleet: FleetFacts::of(fleet),
            is_well: found.iter().all(|app| app.pressing().is_none()),
            items: found.iter().zip(details.items).map(item).collect(),
            errors,
        })
    }
}

/// Returns a sentence why it is not known in which further fields the objects `unsynced` differ (they are not recorded,
/// too many, or in a cluster that was not read), with Argo CD's command that shows them. `None` if none of `unsynced`
/// is OutOfSync and exists, or the app is not an Application of Argo CD.
pub fn differences(app: &App, unsynced: &[&ObjectSync]) -> Option<String> {
    if app.app.delivery != Delivery::ArgoApplication {
        return None;
    }
    // An app may list thousands of objects, and as many of them may not be synced.
    let there = app.resources.iter().filter(|resource| resource.status != Status::NotFound);
    let there: HashSet<&ObjectKey> = there.map(|resource| &*resource.key).collect();
    let is_meant = |own: &&&ObjectSync| own.state == ObjectSyncState::OutOfSync && there.contains(&own.key);
    let differing: Vec<_> = unsynced.iter().filter(is_meant).collect();
    let told = differing.iter().filter(|own| !own.differs.is_empty()).count();
    let unread;
    let what = match differing.iter().any(|own| own.incomplete) {
        _ if differing.is_empty() => return None,
        _ if !app.in_reach => {
            unread =
                format!("Which fields differ is not known here, because {} was not read", app.app.target);
            &*unread
        }
        true => "Taffrail did not compare all fields, because there are too many",
        false if told == 0 => "Which fields differ is not recorded in the cluster",
        false => "What else differs is not recorded in the cluster",
    };
    let name = quoted(&format!("{}/{}", app.app.namespace, app.app.name));
    Some(format!("{what}; Argo CD shows it: argocd app diff {name}"))
}

/// The parameters of `tree`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TreeView {
    /// The name of the app: `NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`.
    #[serde(with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub name: AppQuery,
    /// The namespace and the clusters to which the search for the app is limited.
    #[serde(default)]
    pub apps: AppSelection,
    /// True to show only the app and the apps that it delivers.
    #[serde(default)]
    pub compact: bool,
    /// True to let siblings that are alike share a line, as [`AppTree::fold`] does.
    #[serde(default)]
    pub fold: bool,
    /// The present statuses of which an app or object must have one, unless it is above one that has; `None` for any.
    #[serde(default, with = "as_text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub status: Option<StatusFilter>,
}

/// The answer of `tree`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TreeAnswer {
    /// The facts about the queried fleet as a whole.
    pub fleet: FleetFacts,
    /// The trees of the app, one for each selected cluster that holds its objects.
    pub items: Vec<AppTree>,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<AppError>,
    /// True if the app has no problem but notices in all of the clusters.
    pub is_well: bool,
}

impl View for TreeView {
    type Answer = TreeAnswer;

    fn clusters_mut(&mut self) -> Vec<&mut String> {
        self.apps.clusters_mut([&mut self.name])
    }

    fn reads(&self) -> ReadQuery {
        self.apps.reads(Some(&self.name), false)
    }

    fn extent_resolved(&self, fleet: &dyn AskedFleet) -> Result<AskedClusters, QuestionError> {
        self.apps.extent(Some(&self.name), true, fleet)
    }

    fn answer_resolved(&self, fleet: &dyn AskedFleet) -> Result<TreeAnswer, QuestionError> {
        let clusters = fleet.clusters();
        let list = fleet.apps(&[]);
        let (found, errors) = self.apps.find(Some(&self.name), &list)?;
        // What is left out shares no line.
        let fold = self.fold && self.status.is_none();
        let shape = TreeOptions { compact: self.compact, fold, nest: true };
        let mut trees = TreeList::new(&found, &list, &clusters, &fleet.rules(), fleet.now(), shape);
        if let Some(status) = &self.status {
            for tree in &mut trees.items {
                tree.keep(status);
                if self.fold {
                    tree.fold();
                }
            }
        }
        Ok(TreeAnswer {
            fleet: FleetFacts::of(fleet),
            items: trees.items,
            errors,
            is_well: found.iter().all(|app| app.pressing().is_none()),
        })
    }
}

/// The parameters of `events`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct EventsView {
    /// The name of the app: `NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`; `null` for all.
    #[serde(with = "as_text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub name: Option<AppQuery>,
    /// The namespace and the clusters to which the search for the app, or for all apps, is limited.
    pub apps: AppSelection,
    /// True for one row for each cluster, in place of one for all clusters with an equal event.
    pub per_cluster: bool,
    /// The age of the oldest event to show, counted from when it last occurred, in seconds; `null` for any.
    pub since: Option<u64>,
}

/// The answer of `events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventsAnswer {
    /// The facts about the queried fleet as a whole.
    pub fleet: FleetFacts,
    /// The events, the newest last.
    pub items: Vec<EventRow>,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<AppError>,
}

impl View for EventsView {
    type Answer = EventsAnswer;

    fn clusters_mut(&mut self) -> Vec<&mut String> {
        self.apps.clusters_mut(&mut self.name)
    }

    fn reads(&self) -> ReadQuery {
        self.apps.reads(self.name.as_ref(), true)
    }

    fn extent_resolved(&self, fleet: &dyn AskedFleet) -> Result<AskedClusters, QuestionError> {
        self.apps.extent(self.name.as_ref(), false, fleet)
    }

    fn answer_resolved(&self, fleet: &dyn AskedFleet) -> Result<EventsAnswer, QuestionError> {
        let clusters = fleet.clusters();
        let list = fleet.apps(&[]);
        let (found, errors) = self.apps.find(self.name.as_ref(), &list)?;
        let (now, oldest) = (fleet.now(), self.since.map(|age| earlier(fleet.now(), age)));
        let mut events = EventList::new(&found, &list, &clusters, &fleet.rules(), now, oldest);
        if !self.per_cluster {
            events = events.together();
        }
        Ok(EventsAnswer { fleet: FleetFacts::of(fleet), items: events.items, errors })
    }
}

/// Returns the time `seconds` before `now`, or the earliest there is.
fn earlier(now: Timestamp, seconds: u64) -> Timestamp {
    let age = SignedDuration::from_secs(seconds.try_into().unwrap_or(i64::MAX));
    now.checked_sub(age).unwrap_or(Timestamp::MIN)
}

/// The parameters of `trust`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct TrustView {
    /// The name of the app: `NAME`, `NAMESPACE/NAME` or `[CLUSTER/]DELIVERY/NAMESPACE/NAME`; `null` for all.
    #[serde(with = "as_text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub name: Option<AppQuery>,
    /// The namespace and the clusters to which the search for the app, or for all apps, is limited.
    pub apps: AppSelection,
    /// The categories of the findings; empty for all.
    pub categories: Vec<FindingCategory>,
    /// True for one finding for each cluster, in place of one for all clusters with an equal finding.
    pub per_cluster: bool,
    /// True if suggested commands name the context of the cluster.
    pub contexts: bool,
}

/// The answer of `trust`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TrustAnswer {
    /// The facts about the queried fleet as a whole.
    pub fleet: FleetFacts,
    /// The findings, the worst first.
    pub items: Vec<TrustFinding>,
    /// The numbers of apps, objects, Pods and Leases that were checked, for each cluster.
    pub checked: Vec<CheckedCluster>,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<AppError>,
}

impl View for TrustView {
    type Answer = TrustAnswer;

    fn clusters_mut(&mut self) -> Vec<&mut String> {
        self.apps.clusters_mut(&mut self.name)
    }

    fn reads(&self) -> ReadQuery {
        ReadQuery {
            namespace: self.apps.namespace.clone(),
            // Counting Pods needs all of them, whatever their workloads report.
            dependents: Dependents::All,
            liveness: self.apps.namespace.is_none(),
            app_labels: self.apps.app_labels.clone(),
            ..ReadQuery::default()
        }
    }

    fn extent_resolved(&self, fleet: &dyn AskedFleet) -> Result<AskedClusters, QuestionError> {
        // The answer tells what was checked in each cluster.
        match self.apps.clusters.is_empty() {
            true => Ok(AskedClusters::All),
            false => self.apps.extent(None, false, fleet),
        }
    }

    fn answer_resolved(&self, fleet: &dyn AskedFleet) -> Result<TrustAnswer, QuestionError> {
        let clusters = fleet.clusters();
        let list = fleet.apps(&[]);
        let (found, errors) = self.apps.find(self.name.as_ref(), &list)?;
        let (only_apps, contexts) = (self.name.is_some(), self.contexts);
        let shape = TrustShape { only_apps, contexts, ..TrustShape::default() };
        let mut report = TrustReport::new(&found, &list, &clusters, fleet.now(), shape);
        let wanted = |cluster: &str| {
            self.apps.clusters.is_empty() || self.apps.clusters.iter().any(|it| it == cluster)
        };
        report.checked.retain(|checked| wanted(&checked.cluster));
        report.items.retain(|doubt| {
            let is_chosen = self.categories.is_empty() || self.categories.contains(&doubt.category);
            wanted(doubt.place.first()) && is_chosen
        });
        if !self.per_cluster {
            report = report.together();
        }
        let TrustReport { items, checked, .. } = report;
        Ok(TrustAnswer { fleet: FleetFacts::of(fleet), items, checked, errors })
    }
}
