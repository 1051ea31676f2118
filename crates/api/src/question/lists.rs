//! The questions of `get apps`, `get clusters`, `get resources` and `overview`.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use taffrail_apps::wait::Selection;
use taffrail_apps::{App, AppError, AppLabels, AppList, AppQuery, Dependents, ReadQuery, full_name};
use taffrail_object::kinds::names_kind;
use taffrail_object::{GroupKind, ObjectKey};
use taffrail_status::Status;

use super::select::{RelatedApps, asked_for, keep, reaching};
use super::{AskedClusters, AskedFleet, FleetFacts, QuestionError, View, reads_apps};
use crate::filter::{self, Filter, SortField};
use crate::{AppName, AppRow, ClusterList, ClusterRow, ImageUses, ResourceList, ResourceRow, as_text};

/// Maximum number of names in [`AppsElsewhere::names`]; with more, [`AppsElsewhere::has_more`] is true.
const MAX_NAMED: usize = 3;

/// The Pods and the kinds of Kubernetes that control them. ReplicaSets are left out: there are many, and a Deployment
/// is found without them.
const RUN_BY: [(&str, &str); 6] = [
    ("", "Pod"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("batch", "Job"),
];

/// A selection of the rows of a list, and their order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RowSelection {
    /// Names of the apps that are listed, or whose objects are: `NAME`, `NAMESPACE/NAME` or
    /// `[CLUSTER/]DELIVERY/NAMESPACE/NAME`; empty for all apps.
    #[serde(with = "as_text::list")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub names: Vec<AppQuery>,
    /// Names of apps, as in `names`: only the apps directly upstream of one of them are listed. Empty for all apps.
    #[serde(with = "as_text::list", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub upstream_of: Vec<AppQuery>,
    /// Names of apps, as in `names`: only the apps directly downstream of one of them are listed. Empty for all apps.
    #[serde(with = "as_text::list", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub downstream_of: Vec<AppQuery>,
    /// The namespace in which the apps are declared; `null` for all.
    pub namespace: Option<String>,
    /// Conditions that rows must meet.
    pub filter: Filter,
    /// The field by which the rows are sorted; `null` for the order of the clusters, namespaces and names.
    pub sort: Option<SortField>,
    /// True for a view that follows changes: the answer then also has the rows that only the conditions about status,
    /// problems and sync leave out, and does not report namespaces that do not exist.
    pub follow: bool,
    /// True to get, in `elsewhere` of the answer, the apps that have objects in `namespace`, if no app is declared
    /// there. Without effect if `names` are given or `follow` is set.
    pub elsewhere: bool,
    /// The objects that are listed as one app, in place of the apps; never serialized.
    #[serde(skip)]
    pub declared: Vec<ObjectKey>,
    /// The labels by which undeclared objects are grouped into apps; never serialized.
    #[serde(skip)]
    pub app_labels: AppLabels,
}

impl RowSelection {
    /// Returns the query for the apps declared in `namespace`, or for the objects in their place.
    fn reads(&self, namespace: Option<&String>) -> ReadQuery {
        reads_apps(namespace, &self.declared, &self.app_labels)
    }

    fn clusters_mut(&mut self) -> Vec<&mut String> {
        let RowSelection { names, upstream_of, downstream_of, filter, .. } = self;
        let names = names.iter_mut().chain(upstream_of).chain(downstream_of);
        filter.clusters.iter_mut().chain(names.flat_map(AppQuery::clusters_mut)).collect()
    }

    /// Returns the filter without its conditions about status, problems and sync state; `None` if it has no such
    /// condition, or if the view does not follow changes.
    fn stateless(&self) -> Option<Filter> {
        let stateless = Filter { status: None, problems: None, sync: None, ..self.filter.clone() };
        (self.follow && stateless != self.filter).then_some(stateless)
    }
}

/// The parameters of `get apps`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AppsView {
    /// The apps to list.
    pub rows: RowSelection,
}

/// The parameters of `get clusters`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ClustersView {
    /// The clusters to list, and the conditions that their apps must meet to count.
    pub rows: RowSelection,
}

/// The parameters of `overview`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct OverviewView {
    /// The namespace in which the apps are declared; `null` for all.
    pub namespace: Option<String>,
    /// Names of the clusters to which the answer is limited, with the apps whose objects they hold; empty for all.
    pub clusters: Vec<String>,
    /// The labels by which undeclared objects are grouped into apps; never serialized.
    #[serde(skip)]
    pub app_labels: AppLabels,
}

/// The answer of `overview`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OverviewAnswer {
    /// The facts about the queried fleet as a whole.
    pub fleet: FleetFacts,
    /// The clusters that the question names, or all, in the order in which they were given.
    pub clusters: Vec<ClusterRow>,
    /// The apps whose objects these clusters hold, declared in the namespace of the question if that is given.
    pub apps: Vec<AppRow>,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<AppError>,
}

/// The parameters of `get resources`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ResourcesView {
    /// The apps whose objects are listed, and the conditions that the objects must meet.
    pub rows: RowSelection,
    /// True to list instead the objects that no app declares and that have no owner, in the namespaces of `namespace`
    /// and of the filter; without any, in all but those of Kubernetes.
    pub orphaned: bool,
}

/// The answer of `get apps`, `get clusters` or `get resources`, with rows of type `T`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", bound(deserialize = "T: Deserialize<'de>"))]
pub struct ListAnswer<T> {
    /// The facts about the queried fleet as a whole.
    pub fleet: FleetFacts,
    /// The rows that match, sorted as requested.
    pub items: Vec<T>,
    /// The rows that match, and those that only the conditions about status, problems and sync leave out; empty unless
    /// the question sets `follow` and has such a condition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<T>,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<AppError>,
    /// True if no app that is listed, or whose objects are, has a problem other than a notice, on the axes of the
    /// filter's `problems` if that names some. For clusters, true if each is Ready and no app of it has such a problem.
    /// For objects selected by status, kind, image or namespace, and orphaned ones, true if all of these are Ready,
    /// whatever their apps are.
    pub is_well: bool,
    /// The requested namespaces of which neither the Namespace nor an object exists. Empty for a question that follows
    /// changes, and if an app that is declared in the requested namespace has an object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_namespaces: Vec<String>,
    /// True if the question gives a namespace in which no app is declared, and does not ask for orphaned objects.
    #[serde(default)]
    pub is_none_declared: bool,
    /// The apps that have objects in the namespace of the question. Left out unless no app is declared there and the
    /// question sets `elsewhere`, names no apps and does not follow changes; also left out if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<AppsElsewhere>,
}

/// Apps that have objects in a namespace in which no app is declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppsElsewhere {
    /// Number of rows of these apps: one for each app and cluster.
    pub apps: usize,
    /// Full names of the first three apps, sorted.
    pub names: Vec<String>,
    /// True if there are more apps than `names` lists.
    pub has_more: bool,
}

/// The apps that a question selects, and the answer without its rows.
struct SelectedApps<T> {
    list: AppList,
    /// The apps that meet the conditions other than those about status, problems and sync; `None` if there are no such
    /// conditions, or if the view does not follow changes.
    all: Option<AppList>,
    answer: ListAnswer<T>,
}

impl<T> SelectedApps<T> {
    /// Selects the apps of `fleet`. If `orphaned_in` is given, these are instead the objects in these namespaces that
    /// no app declares; `narrow` applies the conditions about the rows of an app. The kinds of the objects in `beside`,
    /// which are listed too, count as known.
    ///
    /// # Errors
    /// Fails if there is no app or declared kind that the filter or the names name.
    fn of(
        rows: &RowSelection,
        orphaned_in: Option<&BTreeSet<String>>,
        beside: &AppList,
        narrow: impl Fn(&Filter, &mut AppList),
        fleet: &dyn AskedFleet,
    ) -> Result<SelectedApps<T>, QuestionError> {
        let clusters = fleet.clusters();
        let mut list = fleet.apps(&rows.declared);
        let mut is_none_declared = false;
        let related = RelatedApps::of(&rows.upstream_of, &rows.downstream_of, &list)?;
        if let Some(namespaces) = orphaned_in {
            list = fleet.orphans(&list, namespaces);
        } else if let Some(namespace) = &rows.namespace {
            list.apps.retain(|app| app.app.namespace == *namespace);
            is_none_declared = list.apps.is_empty();
            let shown: Vec<&App> = list.apps.iter().collect();
            list.errors = asked_for(&list, &shown, Some(namespace));
        }
        let is_empty = list.apps.iter().all(|app| app.resources.is_empty());
        let missing_namespaces = match is_empty && !rows.follow {
            true => {
                let named = orphaned_in.into_iter().flatten().chain(&rows.namespace);
                unseen(named.collect(), fleet)
            }
            false => Vec::new(),
        };
        keep(&rows.names, rows.namespace.as_deref(), &mut list)?;
        related.keep(&mut list);
        if orphaned_in.is_none() {
            // No app declares the Pods that run an image.
            let is_declared = |kind: &&String| rows.filter.images.is_empty() || !names_kind(kind, "", "Pod");
            let declared: Vec<String> = rows.filter.kinds.iter().filter(is_declared).cloned().collect();
            check_kinds(&declared, [&list, beside])?;
        }
        let stateless = rows.stateless();
        let mut all = stateless.is_some().then(|| list.clone());
        let others = all.iter_mut().zip(&stateless);
        for (list, filter) in others.chain([(&mut list, &rows.filter)]) {
            filter.apps(list, &clusters);
            narrow(filter, list);
            if let Some(by) = rows.sort {
                filter::sort_apps(&mut list.apps, by);
            }
        }
        let mut facts = FleetFacts::of(fleet);
        let admitted = rows.filter.admitted(&clusters);
        facts.last_observed.retain(|name, _| admitted.has(name));
        let answer = ListAnswer {
            fleet: facts,
            items: Vec::new(),
            left_out: Vec::new(),
            errors: list.errors.clone(),
            is_well: !list.apps.iter().any(|app| rows.filter.is_pressing(app)),
            missing_namespaces,
            is_none_declared,
            elsewhere: None,
        };
        Ok(SelectedApps { list, all, answer })
    }

    /// Makes the rows of the selected apps, and of those for `left_out`, by `made`; returns the answer with them.
    fn with_rows(self, made: impl Fn(&AppList) -> Vec<T>) -> ListAnswer<T> {
        let SelectedApps { list, all, answer } = self;
        let left_out = all.as_ref().map(&made).unwrap_or_default();
        ListAnswer { items: made(&list), left_out, ..answer }
    }
}

/// Returns those of `namespaces` of which neither the Namespace nor an object in it was read.
fn unseen(namespaces: BTreeSet<&String>, fleet: &dyn AskedFleet) -> Vec<String> {
    let clusters = fleet.clusters();
    let is_seen = |namespace: &str| {
        clusters.iter().flat_map(|cluster| cluster.all()).any(|observed| {
            let key = observed.key;
            key.namespace == namespace || (key.group, key.kind, key.name) == ("", "Namespace", namespace)
        })
    };
    namespaces.into_iter().filter(|namespace| !is_seen(namespace)).cloned().collect()
}

/// Checks that some app of `lists` has an object of each kind in `wanted`, because a kind without objects may be
/// misspelled. Accepts any kind if a list has an error, because the unread part may hold it.
fn check_kinds(wanted: &[String], lists: [&AppList; 2]) -> Result<(), QuestionError> {
    let apps = || lists.into_iter().flat_map(|list| &list.apps);
    let keys = || apps().flat_map(|app| &app.resources).map(|resource| &resource.key);
    let missing = |wanted: &&String| !keys().any(|key| names_kind(wanted, &key.group, &key.kind));
    match wanted.iter().find(missing) {
        // The unread part may contain that kind.
        Some(wrong) if lists.iter().all(|list| list.errors.is_empty()) => {
            let known: BTreeSet<&str> = keys().map(|key| key.kind.as_str()).collect();
            let known = known.into_iter().map(str::to_owned).collect();
            Err(QuestionError::UnknownKind { kind: wrong.clone(), known })
        }
        _ => Ok(()),
    }
}

/// Returns the query for the apps of all namespaces, to find those with objects in the namespace of `rows`; `None`
/// unless `rows` sets `elsewhere`, names no apps and does not follow changes, and no app is declared there.
fn reads_elsewhere<T>(rows: &RowSelection, answer: &ListAnswer<T>) -> Option<ReadQuery> {
    let is_wanted = rows.elsewhere && !rows.follow && rows.names.is_empty();
    (is_wanted && answer.is_none_declared).then(|| rows.reads(None))
}

/// Returns the apps of `fleet` that have objects in the namespace of `rows`; `None` if there are none.
fn elsewhere(rows: &RowSelection, fleet: &dyn AskedFleet) -> Option<AppsElsewhere> {
    let namespace = rows.namespace.clone()?;
    let mut list = fleet.apps(&rows.declared);
    let filter = Filter { namespaces: vec![namespace], ..Filter::default() };
    filter.apps(&mut list, &[]);
    let names: BTreeSet<String> = list.apps.iter().map(|app| full_name(&app.app)).collect();
    let has_more = names.len() > MAX_NAMED;
    let names: Vec<String> = names.into_iter().take(MAX_NAMED).collect();
    let apps = list.apps.len();
    (apps > 0).then_some(AppsElsewhere { apps, names, has_more })
}

impl View for AppsView {
    type Answer = ListAnswer<AppRow>;

    fn clusters_mut(&mut self) -> Vec<&mut String> {
        self.rows.clusters_mut()
    }

    fn reads(&self) -> ReadQuery {
        self.rows.reads(self.rows.namespace.as_ref())
    }

    fn shows_rows(&self) -> bool {
        self.rows.declared.is_empty()
    }

    fn answer_resolved(&self, fleet: &dyn AskedFleet) -> Result<ListAnswer<AppRow>, QuestionError> {
        let selected = SelectedApps::of(&self.rows, None, &AppList::default(), Filter::by_status, fleet)?;
        Ok(selected.with_rows(|list| list.apps.iter().map(AppRow::from).collect()))
    }

    fn reads_more(&self, answer: &ListAnswer<AppRow>) -> Option<ReadQuery> {
        reads_elsewhere(&self.rows, answer)
    }

    fn complete(&self, answer: &mut ListAnswer<AppRow>, fleet: &dyn AskedFleet) {
        answer.elsewhere = elsewhere(&self.rows, fleet);
    }

    fn unseen_namespaces<'a>(&self, answer: &'a mut ListAnswer<AppRow>) -> Option<&'a mut Vec<String>> {
        Some(&mut answer.missing_namespaces)
    }
}

impl View for ClustersView {
    type Answer = ListAnswer<ClusterRow>;

    fn clusters_mut(&mut self) -> Vec<&mut String> {
        self.rows.clusters_mut()
    }

    fn reads(&self) -> ReadQuery {
        ReadQuery { cluster_status: true, ..self.rows.reads(self.rows.namespace.as_ref()) }
    }

    fn answer_resolved(&self, fleet: &dyn AskedFleet) -> Result<ListAnswer<ClusterRow>, QuestionError> {
        let RowSelection { filter, sort, .. } = &self.rows;
        let stateless = self.rows.stateless();
        let selected = SelectedApps::of(&self.rows, None, &AppList::default(), |_, _| {}, fleet)?;
        let rows = |list: &AppList, filter: &Filter| {
            let clusters = fleet.clusters();
            let mut rows = ClusterList::new(&clusters, list);
            match self.rows.namespace {
                None => rows.set_managed(&clusters, &fleet.rules(), fleet.now()),
                Some(_) => rows.leave_out_nodes(),
            }
            let mut rows = rows.items;
            rows.retain(|row| filter.admits_row(row));
            if let Some(by) = sort {
                filter::sort_clusters(&mut rows, *by);
            }
            rows
        };
        let SelectedApps { list, all, answer } = selected;
        let items = rows(&list, filter);
        let left_out = all.iter().zip(&stateless).flat_map(|(list, filter)| rows(list, filter)).collect();
        let is_well = items.iter().all(|row| row.status == Status::Current && row.problems == 0);
        Ok(ListAnswer { items, left_out, is_well, ..answer })
    }

    fn unseen_namespaces<'a>(&self, answer: &'a mut ListAnswer<ClusterRow>) -> Option<&'a mut Vec<String>> {
        Some(&mut answer.missing_namespaces)
    }
}

impl View for OverviewView {
    type Answer = OverviewAnswer;

    fn clusters_mut(&mut self) -> Vec<&mut String> {
        self.clusters.iter_mut().collect()
    }

    fn reads(&self) -> ReadQuery {
        let apps = reads_apps(self.namespace.as_ref(), &[], &self.app_labels);
        ReadQuery { cluster_status: true, ..apps }
    }

    fn answer_resolved(&self, fleet: &dyn AskedFleet) -> Result<OverviewAnswer, QuestionError> {
        let clusters = fleet.clusters();
        let is_meant = |name: &String| self.clusters.is_empty() || self.clusters.contains(name);
        let mut list = fleet.apps(&[]);
        list.apps.retain(|app| {
            let is_inside = self.namespace.as_ref().is_none_or(|own| *own == app.app.namespace);
            is_inside && is_meant(&app.app.target)
        });
        list.errors.retain(|error| is_meant(&error.cluster));
        let mut rows = ClusterList::new(&clusters, &list);
        if self.namespace.is_some() {
            rows.leave_out_nodes();
        }
        let mut rows = rows.items;
        rows.retain(|row| is_meant(&row.name));
        let apps = list.apps.iter().map(AppRow::from).collect();
        Ok(OverviewAnswer { fleet: FleetFacts::of(fleet), clusters: rows, apps, errors: list.errors })
    }
}

impl ResourcesView {
    /// Returns true if the answer also lists the objects that run a wanted image and belong to no app. A condition that
    /// only apps can meet excludes them.
    fn lists_unclaimed(&self) -> bool {
        let RowSelection { names, namespace, filter, declared, .. } = &self.rows;
        let is_about_apps = !names.is_empty() || namespace.is_some() || filter.is_about_apps();
        !filter.images.is_empty() && !is_about_apps && declared.is_empty() && !self.orphaned
    }

    /// Returns the namespaces in which to search objects without an app, empty for all but those of Kubernetes; `None`
    /// if the user did not ask for such objects.
    pub fn orphaned_in(&self) -> Option<BTreeSet<String>> {
        let RowSelection { filter, namespace, .. } = &self.rows;
        self.orphaned.then(|| filter.namespaces.iter().chain(namespace).cloned().collect())
    }
}

impl View for ResourcesView {
    type Answer = ListAnswer<ResourceRow>;

    fn clusters_mut(&mut self) -> Vec<&mut String> {
        self.rows.clusters_mut()
    }

    fn reads(&self) -> ReadQuery {
        let reads = match self.orphaned_in() {
            None => self.rows.reads(self.rows.namespace.as_ref()),
            // The apps of any namespace may declare objects in these.
            Some(everything_in) => ReadQuery { everything_in, ..self.rows.reads(None) },
        };
        if self.rows.filter.images.is_empty() {
            return reads;
        }
        let everywhere = |(group, kind): (&str, &str)| Selection {
            kind: GroupKind::new(group, kind),
            namespace: None,
            labels: None,
        };
        let selections = RUN_BY.into_iter().filter(|_| self.lists_unclaimed()).map(everywhere).collect();
        ReadQuery { dependents: Dependents::All, selections, ..reads }
    }

    fn extent_resolved(&self, fleet: &dyn AskedFleet) -> Result<AskedClusters, QuestionError> {
        let clusters = &self.rows.filter.clusters;
        match clusters.is_empty() {
            true => Ok(AskedClusters::All),
            false => Ok(reaching(clusters.iter().cloned().collect(), &fleet.apps(&[]))),
        }
    }

    fn shows_rows(&self) -> bool {
        self.rows.declared.is_empty() && self.rows.filter.images.is_empty()
    }

    fn answer_resolved(&self, fleet: &dyn AskedFleet) -> Result<ListAnswer<ResourceRow>, QuestionError> {
        let orphaned_in = self.orphaned_in();
        let clusters = fleet.clusters();
        let images = &self.rows.filter.images;
        let uses = (!images.is_empty()).then(|| ImageUses::of(images, &clusters));
        let asks_pods = self.rows.filter.kinds.iter().any(|kind| names_kind(kind, "", "Pod"));
        let beside = uses.as_ref().filter(|_| self.lists_unclaimed());
        let everything = beside.map(|_| fleet.apps(&[])).unwrap_or_default();
        let owners = everything.belongings();
        let beside = beside.map(|uses| uses.beside(fleet, &owners, asks_pods)).unwrap_or_default();
        let set_owner = |row: &mut ResourceRow| {
            let objects = clusters.iter().find(|it| it.name() == row.cluster);
            let own = objects.map(|objects| owners.of(*objects, &row.object())).unwrap_or_default();
            row.app = own.apps.first().map(|app| AppName::from(&app.app));
            row.owners_unread = own.unread;
        };
        let narrow = |filter: &Filter, list: &mut AppList| filter.resources(list, uses.as_ref());
        let selected = SelectedApps::of(&self.rows, orphaned_in.as_ref(), &beside, narrow, fleet)?;
        let SelectedApps { list, all, answer } = selected;
        let rows = |list: &AppList, filter: &Filter| {
            let mut rows = match self.orphaned {
                true => ResourceList::of_orphans(list).items,
                false => ResourceList::from(list).items,
            };
            let mut beside = beside.clone();
            filter.apps(&mut beside, &clusters);
            narrow(filter, &mut beside);
            let told: HashSet<(String, ObjectKey)> =
                rows.iter().map(|row| (row.cluster.clone(), row.object())).collect();
            let mut others = ResourceList::of_orphans(&beside).items;
            others.retain(|row| !told.contains(&(row.cluster.clone(), row.object())));
            others.iter_mut().for_each(set_owner);
            rows.extend(others);
            if let Some(uses) = &uses {
                for row in &mut rows {
                    row.images = uses.get(&row.cluster, &row.object()).to_vec();
                }
            }
            if let Some(by) = self.rows.sort {
                filter::sort_resources(&mut rows, by);
            }
            rows
        };
        let stateless = self.rows.stateless();
        let items = rows(&list, &self.rows.filter);
        let left_out = all.iter().zip(&stateless).flat_map(|(list, filter)| rows(list, filter)).collect();
        let mut answer = ListAnswer { items, left_out, ..answer };
        let Filter { status, kinds, images, namespaces, .. } = &self.rows.filter;
        // A condition about objects excludes what their app says.
        let are_chosen =
            status.is_some() || !kinds.is_empty() || !images.is_empty() || !namespaces.is_empty();
        if are_chosen || self.orphaned {
            answer.is_well = answer.items.iter().all(|row| row.status == Status::Current);
        }
        Ok(answer)
    }

    fn reads_more(&self, answer: &ListAnswer<ResourceRow>) -> Option<ReadQuery> {
        reads_elsewhere(&self.rows, answer)
    }

    fn complete(&self, answer: &mut ListAnswer<ResourceRow>, fleet: &dyn AskedFleet) {
        answer.elsewhere = elsewhere(&self.rows, fleet);
    }

    fn unseen_namespaces<'a>(&self, answer: &'a mut ListAnswer<ResourceRow>) -> Option<&'a mut Vec<String>> {
        Some(&mut answer.missing_namespaces)
    }
}
