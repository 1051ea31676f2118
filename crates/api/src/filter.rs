//! Filters and orders of the rows of a list.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use taffrail_apps::{
    App, AppList, Axis, CheckFilter, Delivery, FleetMember, Objects, Problem, Resource, SyncState,
    UnknownSyncState, members,
};
use taffrail_object::json::Value;
use taffrail_object::kinds::names_kind;
use taffrail_object::{LabelSelector, ObjectKey};
use taffrail_status::{Observed, Presence, Status, UnknownStatus};

use crate::{ClusterRow, ImageUses, ResourceRow, as_text};

/// The statuses that rows must have: `Ready,InProgress`, or with `!` the ones that they must not have:
/// `!Ready,InProgress`.
///
/// A row with a problem that is more than a notice does not count as Ready, whatever the status of its
/// objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusFilter {
    statuses: BTreeSet<Status>,
    /// True if the filter only excludes statuses (`!Ready`): rows with status Current then match if they have a
    /// problem that is more than a notice.
    unwell: bool,
}

impl FromStr for StatusFilter {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<StatusFilter, UnknownStatus> {
        let ListedWords { mut wanted, unwanted } = ListedWords::read(text)?;
        let unwell = wanted.is_empty();
        if wanted.is_empty() {
            wanted.extend(Status::ALL);
        }
        Ok(StatusFilter { statuses: wanted.difference(&unwanted).copied().collect(), unwell })
    }
}

/// Formats as a text that parses to an equal filter.
impl fmt::Display for StatusFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StatusFilter { statuses, unwell } = self;
        let left_out = Status::ALL.into_iter().filter(|status| !statuses.contains(status));
        match (unwell, statuses.first()) {
            (true, _) => listed(f, [], left_out),
            (false, None) => listed(f, [Status::Current], [Status::Current]),
            (false, Some(_)) => listed(f, statuses.iter().copied(), []),
        }
    }
}

/// Writes the items separated by commas, each of `unwanted` after a `!`: a list that [`ListedWords::read`] reads.
fn listed<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    wanted: impl IntoIterator<Item = T>,
    unwanted: impl IntoIterator<Item = T>,
) -> fmt::Result {
    let wanted = wanted.into_iter().map(|item| ("", item));
    let items = wanted.chain(unwanted.into_iter().map(|item| ("!", item)));
    items.enumerate().try_for_each(|(number, (sign, item))| {
        let comma = if number == 0 { "" } else { "," };
        write!(f, "{comma}{sign}{item}")
    })
}

/// The parsed items of a comma-separated list: those to include, and those after a `!` to exclude. If the list
/// begins with `!`, all items are excluded.
struct ListedWords<T> {
    wanted: BTreeSet<T>,
    unwanted: BTreeSet<T>,
}

impl<T: FromStr + Ord> ListedWords<T> {
    fn read(text: &str) -> Result<ListedWords<T>, T::Err> {
        let (mut wanted, mut unwanted) = (BTreeSet::new(), BTreeSet::new());
        let is_negated = text.trim_start().starts_with('!');
        for word in text.split(',').map(str::trim) {
            match word.strip_prefix('!') {
                Some(word) => unwanted.insert(word.trim().parse()?),
                None if is_negated => unwanted.insert(word.parse()?),
                None => wanted.insert(word.parse()?),
            };
        }
        Ok(ListedWords { wanted, unwanted })
    }
}

/// The sync states that apps must have: `Failed,OutOfSync`, or with `!` the ones that they must not have:
/// `!Synced,Syncing`.
///
/// It matches only apps that a tool delivers: an app known by labels alone has no sync state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncFilter {
    /// The states of which an app must have one; empty if only states to exclude were given.
    wanted: BTreeSet<SyncState>,
    unwanted: BTreeSet<SyncState>,
}

impl FromStr for SyncFilter {
    type Err = UnknownSyncState;

    fn from_str(text: &str) -> Result<SyncFilter, UnknownSyncState> {
        let ListedWords { wanted, unwanted } = ListedWords::read(text)?;
        Ok(SyncFilter { wanted, unwanted })
    }
}

/// Formats as a text that parses to an equal filter.
impl fmt::Display for SyncFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        listed(f, &self.wanted, &self.unwanted)
    }
}

impl SyncFilter {
    fn admits(&self, app: &App) -> bool {
        self.admits_state(app.app.delivery, app.effective_sync(), app.suspended)
    }

    /// Returns true if an app of `delivery` whose sync state now is `state` matches; always false for apps known by
    /// labels. `Suspended` stands for each app that `is_suspended`: Argo CD goes on to compare it, so that its state is
    /// `Synced` or `OutOfSync`.
    pub fn admits_state(&self, delivery: Delivery, state: SyncState, is_suspended: bool) -> bool {
        let has = |states: &BTreeSet<SyncState>| {
            states.contains(&state) || (is_suspended && states.contains(&SyncState::Suspended))
        };
        delivery != Delivery::Label && (self.wanted.is_empty() || has(&self.wanted)) && !has(&self.unwanted)
    }
}

impl StatusFilter {
    /// Returns true if `status` is one of those that the filter lets through, problems aside.
    pub fn admits(&self, status: Status) -> bool {
        self.statuses.contains(&status)
    }

    /// Returns true if a row with `status` matches; `has_problem` is true if it has a problem that is more than a
    /// notice. A Current row with such a problem matches only filters that just exclude statuses, such as `!Ready` and
    /// `!Failed`.
    pub fn admits_row(&self, status: Status, has_problem: bool) -> bool {
        if status == Status::Current && has_problem { self.unwell } else { self.admits(status) }
    }
}

/// The conditions that a row must meet; the default matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// The present statuses of which a row must have one, where a Ready row with a problem that is more than a notice
    /// does not count as Ready; `None` for any.
    #[serde(with = "as_text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub status: Option<StatusFilter>,
    /// The axes of which an app must have a problem on one, notices included; an empty set stands for any axis. `None`
    /// keeps all apps.
    pub problems: Option<BTreeSet<Axis>>,
    /// The sync states of which an app must have one; `None` for any.
    #[serde(with = "as_text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub sync: Option<SyncFilter>,
    /// The deliveries of which an app must have one; empty for any.
    pub deliveries: Vec<Delivery>,
    /// The conditions on checks of which an app must meet one; empty for any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub checks: Vec<CheckFilter>,
    /// True to keep only apps that are suspended in their delivery tool, as
    /// [`AppRow::suspended`](crate::AppRow::suspended) tells.
    pub suspended: bool,
    /// The selector for labels of the declaring object, or, for an app known by labels, for the labels that all its
    /// objects share; `None` for any.
    #[serde(with = "as_text::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub labels: Option<LabelSelector>,
    /// Names or aliases of the clusters whose rows are kept (of apps and objects the target cluster); empty for all.
    pub clusters: Vec<String>,
    /// The selector for the labels of these clusters; `None` for any.
    #[serde(with = "as_text::option", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub cluster_labels: Option<LabelSelector>,
    /// Names of the kinds of which objects are kept, as users write them (`Deployment`, `deploy`, `deployments.apps`),
    /// in any case of letters; empty for all.
    pub kinds: Vec<String>,
    /// Parts of image names: an object must declare or run an image with one of them in its name; empty for any.
    pub images: Vec<String>,
    /// The namespaces of which objects are kept, and apps with objects there; empty for all.
    pub namespaces: Vec<String>,
}

impl Filter {
    /// Removes from `list` the apps that do not match (ignoring the conditions about status, kinds and images), and the
    /// errors of clusters that do not match. `clusters` hold the objects with the labels.
    pub fn apps(&self, list: &mut AppList, clusters: &[&dyn Objects]) {
        let admitted = self.admitted(clusters);
        list.apps.retain(|app| admitted.has(&app.app.target) && self.admits_app(app, clusters));
        list.errors.retain(|error| admitted.has(&error.cluster));
    }

    /// Removes from `list` the apps that do not match the status filter.
    pub fn by_status(&self, list: &mut AppList) {
        if let Some(status) = &self.status {
            list.apps.retain(|app| status.admits_row(app.effective(), app.pressing().is_some()));
        }
    }

    /// Removes from each app of `list` the objects that do not match the kinds, namespaces and statuses, and those that
    /// have none of the images `uses`, if that is given; the apps stay, even without objects. An object that is not
    /// synced does not count as Ready if its app has a problem that is more than a notice.
    pub fn resources(&self, list: &mut AppList, uses: Option<&ImageUses<'_>>) {
        for app in &mut list.apps {
            let freshness = app.freshness;
            let unsynced: BTreeSet<ObjectKey> = match app.pressing() {
                Some(_) => app.unsynced.iter().map(|own| own.key.clone()).collect(),
                None => BTreeSet::new(),
            };
            let (target, in_reach) = (&app.app.target, app.in_reach);
            // An object out of reach is not the one of that name in the cluster where the app is declared.
            let has_image =
                |key: &ObjectKey| uses.is_none_or(|uses| in_reach && !uses.get(target, key).is_empty());
            let wanted = |resource: &Resource| {
                let kind = |word: &String| names_kind(word, &resource.key.group, &resource.key.kind);
                let status = freshness.effective(resource.status);
                let is_pressing = unsynced.contains(&*resource.key);
                self.status.as_ref().is_none_or(|wanted| wanted.admits_row(status, is_pressing))
                    && self.admits_namespace(&resource.key)
                    && (self.kinds.is_empty() || self.kinds.iter().any(kind))
                    && has_image(&resource.key)
            };
            app.resources.retain(wanted);
        }
    }

    /// Returns true if the filter has a condition that only apps can meet: on their problems, sync, delivery,
    /// suspension or labels.
    pub(crate) fn is_about_apps(&self) -> bool {
        let Filter { problems, sync, checks, deliveries, suspended, labels, .. } = self;
        problems.is_some()
            || sync.is_some()
            || !checks.is_empty()
            || !deliveries.is_empty()
            || *suspended
            || labels.is_some()
    }

    /// Returns true if the row of a cluster matches the conditions about clusters and status.
    pub fn admits_row(&self, row: &ClusterRow) -> bool {
        self.admits_name(&row.name)
            && self.cluster_labels.as_ref().is_none_or(|selector| selector.matches_map(&row.labels))
            && self.status.as_ref().is_none_or(|wanted| wanted.admits_row(row.status, row.problems > 0))
    }

    /// Returns true if `problem` is on one of the axes of `problems`, or if these do not restrict the axes.
    fn judges(&self, problem: &Problem) -> bool {
        self.problems.as_ref().is_none_or(|axes| axes.is_empty() || axes.contains(&problem.axis))
    }

    /// Returns true if an app has a problem, other than a notice, on one of the axes of `problems`, or on any if these
    /// do not restrict the axes. `--exit-status` then fails.
    pub fn is_pressing(&self, app: &App) -> bool {
        app.problems.iter().any(|problem| problem.is_pressing() && self.judges(problem))
    }

    /// Returns true if `name`, the first name of a cluster, is one of the filter's. A question replaces its aliases by
    /// [`View::resolved`](crate::question::View::resolved).
    fn admits_name(&self, name: &str) -> bool {
        self.clusters.is_empty() || self.clusters.iter().any(|wanted| wanted == name)
    }

    /// Returns the clusters whose rows are kept: of `clusters` those that the filter names and whose labels it selects.
    pub(crate) fn admitted(&self, clusters: &[&dyn Objects]) -> AdmittedClusters<'_> {
        let labelled = self.cluster_labels.as_ref().map(|selector| {
            let known = members(clusters).into_iter();
            let name = |member: FleetMember<'_>| (member.objects.name().to_owned(), member.labels);
            let admits = |labels: BTreeMap<String, String>| selector.matches_map(&labels);
            let known = known.map(name).map(|(name, labels)| (name, admits(labels))).collect();
            (known, admits(BTreeMap::new()))
        });
        AdmittedClusters { filter: self, labelled }
    }

    fn admits_namespace(&self, key: &ObjectKey) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(&key.namespace)
    }

    fn admits_app(&self, app: &App, clusters: &[&dyn Objects]) -> bool {
        let labels = |selector: &LabelSelector| {
            let declaring =
                app.declaring.as_ref().and_then(|key| found(of_name(clusters, &app.app.home)?, key));
            match &declaring {
                Some(observed) => selector.matches_labels(observed.object.at(&["metadata", "labels"])),
                None => selector.matches(|label| {
                    let is_undeclared = app.app.delivery == Delivery::Label;
                    is_undeclared.then(|| shared_label(app, clusters, label)).flatten().map(Cow::Owned)
                }),
            }
        };
        (self.deliveries.is_empty() || self.deliveries.contains(&app.app.delivery))
            && (!self.suspended || app.suspended)
            && (self.problems.is_none() || app.problems.iter().any(|problem| self.judges(problem)))
            && self.sync.as_ref().is_none_or(|sync| sync.admits(app))
            && (self.checks.is_empty() || self.checks.iter().any(|check| check.admits(&app.checks)))
            && (self.namespaces.is_empty() || app.resources.iter().any(|it| self.admits_namespace(&it.key)))
            && self.labels.as_ref().is_none_or(labels)
    }
}

/// The clusters whose rows a filter keeps.
pub(crate) struct AdmittedClusters<'f> {
    filter: &'f Filter,
    /// True for each known cluster, by its first name, whose labels the filter admits, and true if it admits a cluster
    /// without labels, as an unknown one is; `None` if the filter has no condition about them.
    labelled: Option<(HashMap<String, bool>, bool)>,
}

impl AdmittedClusters<'_> {
    /// Returns true if the rows of the cluster with this first name are kept.
    pub(crate) fn has(&self, name: &str) -> bool {
        let has_labels = |(known, other): &(HashMap<String, bool>, bool)| *known.get(name).unwrap_or(other);
        self.filter.admits_name(name) && self.labelled.as_ref().is_none_or(has_labels)
    }
}

/// Returns the value of `label` that all objects of an app share; `None` if they do not, one of them was not read, or
/// there are none. Such a label counts as one of the app's own if no object declares the app.
fn shared_label(app: &App, clusters: &[&dyn Objects], label: &str) -> Option<String> {
    let objects = of_name(clusters, &app.app.target)?;
    let mut values = app.resources.iter().map(|resource| {
        let observed = found(objects, &resource.key)?;
        text(observed.object.at(&["metadata", "labels", label]))
    });
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}

fn text(value: Option<Value<'_>>) -> Option<String> {
    value.and_then(Value::as_str).map(|text| text.into_owned())
}

fn found<'a>(objects: &'a dyn Objects, key: &ObjectKey) -> Option<Observed<'a>> {
    match objects.get(key.as_ref()) {
        Presence::Present(observed) => Some(observed),
        Presence::Absent | Presence::Unobserved(_) => None,
    }
}

/// Returns the cluster called `name`; `None` if there is none.
fn of_name<'a>(clusters: &[&'a dyn Objects], name: &str) -> Option<&'a dyn Objects> {
    clusters.iter().copied().find(|cluster| cluster.name() == name)
}

/// Returns the names of all clusters, each followed by its aliases.
pub fn cluster_names(clusters: &[&dyn Objects]) -> Vec<String> {
    let members = members(clusters);
    let names = members.into_iter().flat_map(|member| {
        let own = member.objects.name().to_owned();
        std::iter::once(own).chain(member.aliases)
    });
    names.collect()
}

/// The field by which a list is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SortField {
    /// By name, then by namespace.
    Name,
    /// By status, the worst first; apps and clusters of one status by the severity of their worst problem, the worst
    /// first; then apps by the time at which that began, and objects by the time since when they are not well, the
    /// earliest first.
    Status,
    /// By the name of the cluster.
    Cluster,
    /// By the time at which the worst problem of the app, or the problem of the object, began, the earliest first; rows
    /// without a problem, or for which that time is unknown, last.
    Since,
    /// By the delivery of the app, in the order of [`Delivery::ALL`](taffrail_apps::Delivery::ALL); objects of no app
    /// last.
    Delivery,
}

/// Sorts apps by a field, those of one status by the severity and then the time of their worst problem; equal apps keep
/// their order.
pub fn sort_apps(apps: &mut [App], by: SortField) {
    let since = |app: &App| app.problem()?.since;
    let severity = |app: &App| last(app.problem().map(|problem| problem.severity));
    let name = |app: &App| (app.app.name.clone(), app.app.namespace.clone());
    match by {
        SortField::Name => apps.sort_by_cached_key(name),
        SortField::Status => {
            apps.sort_by_cached_key(|app| (app.effective(), severity(app), last(since(app))))
        }
        SortField::Cluster => apps.sort_by(|one, other| one.app.target.cmp(&other.app.target)),
        SortField::Since => apps.sort_by_cached_key(|app| last(since(app))),
        SortField::Delivery => apps.sort_by_key(|app| app.app.delivery),
    }
}

/// Returns a sort key that puts rows without a value after those with one, and these in the order of their values.
fn last<T>(value: Option<T>) -> (bool, Option<T>) {
    (value.is_none(), value)
}

/// Sorts rows of objects by a field, those of one status by the time since when they are not well, the earliest first;
/// equal rows keep their order.
pub fn sort_resources(rows: &mut [ResourceRow], by: SortField) {
    rows.sort_by(|one, other| match by {
        SortField::Name => (&one.name, &one.namespace).cmp(&(&other.name, &other.namespace)),
        SortField::Status => one
            .status
            .cmp(&other.status)
            .then_with(|| last(one.since.as_ref()).cmp(&last(other.since.as_ref()))),
        SortField::Cluster => one.cluster.cmp(&other.cluster),
        SortField::Since => last(one.since.as_ref()).cmp(&last(other.since.as_ref())),
        SortField::Delivery => {
            let delivery = |row: &ResourceRow| last(row.app.as_ref().map(|app| app.delivery));
            delivery(one).cmp(&delivery(other))
        }
    });
}

/// Sorts rows of clusters by name (also for `Cluster`), or by status and then by the severity of the worst problem, the
/// worst first; for other fields they keep their order.
pub fn sort_clusters(rows: &mut [ClusterRow], by: SortField) {
    rows.sort_by(|one, other| match by {
        SortField::Name | SortField::Cluster => one.name.cmp(&other.name),
        SortField::Status => {
            let severity = |row: &ClusterRow| last(row.problem.as_ref().map(|problem| problem.severity));
            (one.status, severity(one)).cmp(&(other.status, severity(other)))
        }
        SortField::Since | SortField::Delivery => Ordering::Equal,
    });
}
