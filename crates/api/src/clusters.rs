//! Rows of `get clusters`.

use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use taffrail_apps::text::moment;
use taffrail_apps::{
    AppList, FleetMember, Freshness, Hosting, HostingObject, Nodes, NotLiveScope, NotLiveState, Objects,
    Problem, ReadStats, declared_each, hosting, members,
};
use taffrail_object::ObjectKey;
use taffrail_status::rollup::Counts;
use taffrail_status::{ActiveRules, Status};

use crate::report::ClusterReport;
use crate::{AppName, AppRow, List, ListItem};

/// The clusters that were queried.
pub type ClusterList = List<ClusterRow>;

impl ListItem for ClusterRow {
    const LIST: &'static str = "ClusterList";
}

impl ClusterRow {
    /// Returns the status of the cluster now for a table cell: `Failed`, `Ready`. If it is `Ready`, the problem of
    /// the worst app follows, if there is one: `Ready, sync failed`.
    pub fn words(&self) -> String {
        let besides = self.problem.as_ref().filter(|_| self.status == Status::Current);
        let besides = besides.map(|it| format!(", {}", it.words()));
        format!("{}{}", self.status.word(), besides.unwrap_or_default())
    }

    /// Returns the number of apps that have no problem other than notices.
    pub fn ready(&self) -> usize {
        self.apps.saturating_sub(self.problems)
    }
}

impl ClusterList {
    /// Makes one row for each of `clusters`, whose apps are in `list`; a cluster with several names gets one row under
    /// its first name.
    pub fn new(clusters: &[&dyn Objects], list: &AppList) -> ClusterList {
        let mut of_cluster: HashMap<&str, (Vec<AppRow>, usize)> = HashMap::new();
        for app in &list.apps {
            of_cluster.entry(&app.app.target).or_default().0.push(AppRow::from(app));
        }
        for error in &list.errors {
            of_cluster.entry(&error.cluster).or_default().1 += 1;
        }
        let row = |member: &FleetMember<'_>| {
            let (apps, errors) = of_cluster.remove(member.objects.name()).unwrap_or_default();
            let apps: Vec<&AppRow> = apps.iter().collect();
            ClusterRow::new(&ClusterReport::of(member), &apps, errors, member.objects.freshness())
        };
        List::of(members(clusters).iter().map(row).collect(), &list.errors)
    }
}

impl ClusterList {
    /// Adds the objects of other clusters that stand for each cluster, with their statuses by `rules`.
    pub fn set_managed(&mut self, clusters: &[&dyn Objects], rules: &ActiveRules<'_>, now: Timestamp) {
        let Hosting { objects, left_out } = hosting(clusters, rules.rules);
        for row in &mut self.items {
            let own = objects.iter().filter(|object| object.cluster == row.name);
            row.managed_as = own.filter_map(|object| managed_as(object, clusters, rules, now)).collect();
            row.managed_as_left_out = left_out.get(&row.name).copied().unwrap_or_default();
        }
    }

    /// Leaves out the nodes: an answer about one namespace has none, even if they are known from elsewhere.
    pub(crate) fn leave_out_nodes(&mut self) {
        for row in &mut self.items {
            (row.nodes, row.nodes_unobserved) = (None, None);
        }
    }
}

fn managed_as(
    object: &HostingObject,
    clusters: &[&dyn Objects],
    rules: &ActiveRules<'_>,
    now: Timestamp,
) -> Option<ManagedAs> {
    let home = clusters.iter().find(|home| home.name() == object.home)?;
    let judged =
        declared_each(*home, std::slice::from_ref(&object.object), rules, now).apps.into_iter().next()?;
    let status = judged.effective();
    let message = if status == Status::Current { String::new() } else { judged.message.to_string() };
    Some(ManagedAs {
        object: object.object.clone(),
        cluster: object.home.clone(),
        status,
        message,
        unproven: !object.is_proved,
    })
}

/// One queried cluster, with the summary of its apps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterRow {
    /// The name by which the user gave the cluster: a context or a file.
    pub name: String,
    /// Further names by which the user gave the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The name of another cluster with the same identity, if nothing proves that the two are one; else left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin_of: Option<String>,
    /// False if the TLS certificate of the server was not verified; left out if it was.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub verified: bool,
    /// The UID of the `kube-system` Namespace, with `@` and the server's address (or the name, if no address is known)
    /// appended if an earlier cluster has the same UID and nothing proves that the two are one. Left out if it is not
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The source of reports by which a hub knows the cluster: `agent`, or `prometheus/` and the name of the metrics server.
    /// Left out if the cluster is read directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// True if the cluster is read lightly: only what declares apps, so that the health of an app is what a controller says,
    /// or Unknown. Apps that no such object declares, as of Helm, are not listed. Left out if it is read in full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub light: bool,
    /// The version of the API server; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The labels of the cluster: those of its cluster Secret of Argo CD, of its `Cluster` of Cluster API, of its
    /// kubeconfig Secret of Flux, or of the extension `taffrail.dev/labels` of its context. Left out if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The worst status of the cluster's apps when they were last observed; equal to `effective` while the cluster is
    /// live. `Unknown` if the cluster was never observed, or is not live and has no apps, or is read lightly and has none.
    pub health: Status,
    /// The worst status of the cluster's apps now; Current without apps. Apps that may be missing because of a failed
    /// read count as `Unknown`, which is less bad than `Failed` and `NotFound`. `Unknown` for an empty dump, for a
    /// cluster that is not live, and for one without apps that is read lightly.
    pub effective: Status,
    /// Always equal to `effective`.
    pub status: Status,
    /// The message of `worst`, the failure to read the cluster, or that it has no apps or objects; for a cluster that
    /// is not live, the time of its last observation, or why there is none; preceded by a warning about an unverified
    /// certificate or a twin. May be empty.
    pub message: String,
    /// The app with the worst status and, of several such, the severest problem; left out if no app has a problem but
    /// notices, or if apps may be missing and none is Unknown or worse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<AppName>,
    /// The cluster that declares `worst`; left out if it is this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_home: Option<String>,
    /// The worst problem of `worst`; left out with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Number of apps whose objects are in the cluster.
    pub apps: usize,
    /// Number of apps with a problem that is more than a notice.
    pub problems: usize,
    /// Number of apps by present status.
    pub counts: Counts,
    /// Number of scopes that could not be read, and other errors of the cluster.
    pub errors: usize,
    /// The freshness of the cluster as a whole; single kinds or apps may be less fresh.
    pub freshness: Freshness,
    /// The nodes of the cluster when it was last observed; left out if they are not known. They change nothing else of the
    /// row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    /// The reason why the nodes are not known; left out if they are, or if the source does not tell of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes_unobserved: Option<String>,
    /// The objects of other clusters that stand for this one, such as a `Cluster` of Cluster API: at most 10, those that are
    /// proved first, and else by turns of their namespaces. Left out if none was read. What they tell changes nothing else of
    /// the row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_as: Vec<ManagedAs>,
    /// Number of further such objects; left out if there are none.
    #[serde(default, skip_serializing_if = "crate::apps::is_none")]
    pub managed_as_left_out: usize,
    /// Statistics of requests and watches; only for a live cluster that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<ReadingView>,
}

/// An object of a management cluster that stands for a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ManagedAs {
    /// The object.
    pub object: ObjectKey,
    /// Name of the management cluster, which holds it.
    pub cluster: String,
    /// The status of the object now.
    pub status: Status,
    /// The message of the object; left out if it is Ready.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// True if the object only claims to stand for the cluster: by its name, or by an address in its spec, which its author
    /// chose. Left out if its status has the identity or address of the cluster, or that is read by the kubeconfig beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven: bool,
}

/// Statistics of the requests and watches of one live cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReadingView {
    /// The way in which lists are read: `streams`, `gzip pages` or `pages`.
    pub lists: Cow<'static, str>,
    /// The HTTP version, such as `HTTP/2`.
    pub protocol: Cow<'static, str>,
    /// An upper bound of the network round trip to the server, in microseconds.
    pub round_trip_micros: u64,
    /// Number of requests so far; left out if it was not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Number of bytes received, after decompression; left out if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The time since when all needed scopes, but those that are forbidden or absent, have been live without a gap;
    /// left out unless the cluster is watched and live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_since: Option<Timestamp>,
    /// Number of scopes that are watched; left out if the cluster was read once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<usize>,
    /// The watched scopes that are not live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_live: Vec<NotLiveRow>,
}

/// A scope that is watched but not live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NotLiveRow {
    /// The kind, in one namespace or in all, as text.
    pub scope: String,
    /// The state of the scope: `CatchingUp`, `Forbidden`, `Broken` or `Absent`.
    pub state: NotLiveState,
    /// The reason for the state, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The time at which the scope stopped being live.
    pub since: Timestamp,
}

impl ReadingView {
    /// Takes over from `old` what changes with each request, and is no news by itself: the number of requests and
    /// bytes, and the fastest round trip so far.
    pub fn take_statistics(&mut self, old: &ReadingView) {
        self.requests = old.requests;
        self.bytes = old.bytes;
        self.round_trip_micros = old.round_trip_micros;
    }
}

impl From<&ReadStats> for ReadingView {
    fn from(reading: &ReadStats) -> ReadingView {
        let followed = reading.followed.as_ref();
        let row = |it: &NotLiveScope| NotLiveRow {
            scope: it.scope.to_string(),
            state: it.state,
            message: it.message.clone(),
            since: it.since,
        };
        ReadingView {
            lists: reading.lists().into(),
            protocol: reading.protocol.into(),
            round_trip_micros: u64::try_from(reading.round_trip.as_micros()).unwrap_or(u64::MAX),
            requests: Some(reading.cost.requests),
            bytes: Some(reading.cost.bytes),
            live_since: followed.and_then(|followed| followed.live_since),
            scopes: followed.map(|followed| followed.scopes),
            not_live: followed.map(|it| it.not_live.iter().map(row).collect()).unwrap_or_default(),
        }
    }
}

impl ClusterRow {
    /// Makes the row of a cluster from the report about it as a whole, the rows of the apps whose objects it holds, the
    /// number of its failures `errors`, and its freshness as a whole.
    pub fn new(cluster: &ClusterReport, apps: &[&AppRow], errors: usize, freshness: Freshness) -> ClusterRow {
        let counts: Counts = apps.iter().map(|app| app.effective).collect();
        // Of apps that are Ready, one with a problem on another axis counts as worst.
        let pressing = apps
            .iter()
            .filter_map(|app| Some((app, app.problem.as_ref().filter(|problem| problem.is_pressing())?)));
        let problems = pressing.clone().count();
        let worst = pressing.min_by_key(|(app, problem)| (app.effective, problem.severity));

        let mut status = worst.map_or(Status::Current, |(app, _)| app.effective);
        let mut message = match worst {
            Some((app, problem)) if app.effective == Status::Current => problem.message.to_string(),
            Some((app, _)) => app.message.to_string(),
            None => String::new(),
        };
        let mut speaker = worst.map(|(app, _)| app.app_name());
        let mut worst_home =
            worst.filter(|(app, _)| app.home != app.cluster).map(|(app, _)| app.home.clone());
        let mut problem = worst.map(|(_, problem)| problem.clone());
        if let Some(blind) = &cluster.blind
            && Status::Unknown < status
        {
            status = Status::Unknown;
            message.clone_from(blind);
            (speaker, worst_home) = (None, None);
            problem = None;
        }
        if status == Status::Current && cluster.is_empty_dump {
            status = Status::Unknown;
            message = "the dump holds no objects".to_owned();
        }
        if status == Status::Current && apps.is_empty() && cluster.is_light {
            status = Status::Unknown;
            message = "no apps are declared in the cluster, which is read lightly".to_owned();
        }
        if status == Status::Current && apps.is_empty() {
            message = "no apps were found in the cluster".to_owned();
        }
        // A cluster that went away had been seen whole.
        let health = match freshness.observed_at {
            None => Status::Unknown,
            Some(_) if freshness.is_live() => status,
            Some(_) => apps.iter().map(|app| app.health).min().unwrap_or(Status::Unknown),
        };
        let lost = cluster.lost.as_ref();
        if !freshness.is_live()
            && let Some(at) = freshness.observed_at
        {
            let well = apps.iter().filter(|app| app.health == Status::Current).count();
            let why = lost.map(|error| format!(": {}", error.message)).unwrap_or_default();
            status = Status::Unknown;
            let at = moment(at);
            message =
                format!("the cluster was last seen {at}, with {well} of {} apps Ready{why}", apps.len());
        }
        // The apps that other clusters declare for it come second in the message.
        if !freshness.is_live() && freshness.observed_at.is_none() {
            let homes: BTreeSet<&str> = apps.iter().map(|app| &*app.home).collect();
            let homes = homes.into_iter().collect::<Vec<_>>().join(", ");
            let known = match apps.len() {
                0 => String::new(),
                1 => format!("; 1 app of the cluster is known from {homes}"),
                count => format!("; {count} apps of the cluster are known from {homes}"),
            };
            let silence = lost.map_or("the cluster has not been observed yet", |lost| &*lost.silence);
            status = Status::Unknown;
            message = format!("{silence}{known}");
        }
        if let Some(twin) = &cluster.twin_of {
            let why = format!(
                "the cluster reports the identity of {twin} without proof: one of them may be a copy of the other, or \
                 restored from it; if they are one cluster, leave one of the contexts out"
            );
            message = if message.is_empty() { why } else { format!("{why}; {message}") };
        }
        if let Some(why) = &cluster.unverified {
            message = if message.is_empty() { why.clone() } else { format!("{why}; {message}") };
        }
        ClusterRow {
            name: cluster.name.clone(),
            aliases: cluster.aliases.clone(),
            twin_of: cluster.twin_of.clone(),
            verified: cluster.unverified.is_none(),
            id: cluster.id.clone(),
            source: None,
            light: cluster.is_light,
            version: cluster.version.clone(),
            labels: cluster.labels.clone(),
            health,
            effective: status,
            status,
            message,
            worst: speaker,
            worst_home,
            problem,
            apps: apps.len(),
            problems,
            counts,
            errors,
            freshness,
            nodes: cluster.nodes.clone(),
            nodes_unobserved: cluster.nodes_unobserved.clone(),
            managed_as: Vec::new(),
            managed_as_left_out: 0,
            reading: cluster.reading.clone(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_true(is_it: &bool) -> bool {
    *is_it
}

fn yes() -> bool {
    true
}
