//! The document of `overview`: what needs attention, each cause once, and what changed lately.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taffrail_apps::{AppError, Delivery, FreshnessState, Nodes, Problem, Scope};
use taffrail_status::rollup::Counts;

use crate::causes::{CauseGroups, Silence};
use crate::diff::Comparable;
use crate::hub::AttentionEntry;
use crate::question::OverviewAnswer;
use crate::{API_VERSION, AppRow, ClusterRow, ErrorRow};

/// The greatest number of causes that a document has; it counts further ones.
const MAX_CAUSES: usize = 500;
/// The greatest number of changes that a document has; earlier ones are left out.
const MAX_CHANGES: usize = 50;
/// The greatest age of a change in a document.
const LATELY: SignedDuration = SignedDuration::from_hours(24);

/// The state of a fleet, what needs attention in it, and what changed lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FleetOverview {
    /// Always [`API_VERSION`].
    pub api_version: Cow<'static, str>,
    /// Always `Overview`.
    pub kind: Cow<'static, str>,
    /// The time at which the apps were judged.
    pub as_of: Timestamp,
    /// Number of clusters.
    pub clusters: usize,
    /// The names of the clusters that are not live.
    pub silent: Vec<String>,
    /// The nodes of the live clusters of which they are known; left out if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeTotals>,
    /// Number of rows: apps in clusters.
    pub apps: usize,
    /// Number of rows with a problem that is more than a notice.
    pub problems: usize,
    /// Number of rows by present status.
    pub counts: Counts,
    /// The problems of the apps, grouped by cause: the most severe first, and of one severity those with most rows. At
    /// most 500.
    pub attention: Vec<AttentionEntry>,
    /// Number of causes, including those that `attention` leaves out.
    pub causes: usize,
    /// The apps whose present problem began within the last 24 hours, the latest first. At most 50.
    pub changed: Vec<LateProblem>,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    pub errors: Vec<ErrorRow>,
}

/// The numbers of the nodes of some clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeTotals {
    /// Number of clusters.
    pub clusters: usize,
    /// Number of their nodes that are ready.
    pub ready: usize,
    /// Number of all their nodes.
    pub total: usize,
}

impl NodeTotals {
    /// Adds up the nodes of the live clusters of which they are known; `None` if there are none.
    fn of(clusters: &[ClusterRow]) -> Option<NodeTotals> {
        let live = clusters.iter().filter(|row| row.freshness.is_live());
        let all = live.filter_map(|row| row.nodes.as_ref());
        let sum = |sum: NodeTotals, Nodes { ready, total, .. }: &Nodes| NodeTotals {
            clusters: sum.clusters + 1,
            ready: sum.ready.saturating_add(*ready),
            total: sum.total.saturating_add(*total),
        };
        Some(all.fold(NodeTotals::default(), sum)).filter(|totals| totals.clusters > 0)
    }
}

/// An app in a cluster whose present problem began lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LateProblem {
    /// The time at which the problem began.
    pub at: Timestamp,
    /// Name of the cluster that holds the app's objects.
    pub cluster: String,
    /// Name of the cluster that holds the declaring object.
    pub home: String,
    /// The delivery of the app.
    pub delivery: Delivery,
    /// Namespace of the declaring object.
    pub namespace: String,
    /// Name of the declaring object.
    pub name: String,
    /// The worst problem of the app.
    pub problem: Problem,
}

impl FleetOverview {
    /// The kind of the document.
    pub const KIND: &'static str = "Overview";
}

impl From<&OverviewAnswer> for FleetOverview {
    fn from(answer: &OverviewAnswer) -> FleetOverview {
        let OverviewAnswer { fleet, clusters, apps, errors } = answer;
        let (causes, attention) = attention(answer);
        let earliest = fleet.now.saturating_sub(LATELY).unwrap_or(Timestamp::MIN);
        let mut changed: Vec<(Timestamp, &AppRow)> =
            apps.iter().filter_map(|app| Some((app.since.filter(|at| *at >= earliest)?, app))).collect();
        changed.sort_by_key(|(at, _)| Reverse(*at));
        let late = |(at, app): (Timestamp, &AppRow)| {
            let AppRow { cluster, home, delivery, namespace, name, problem, .. } = app.clone();
            Some(LateProblem { at, cluster, home, delivery, namespace, name, problem: problem? })
        };
        FleetOverview {
            api_version: API_VERSION.into(),
            kind: FleetOverview::KIND.into(),
            as_of: fleet.now,
            clusters: clusters.len(),
            silent: clusters
                .iter()
                .filter(|row| !row.freshness.is_live())
                .map(|row| row.name.clone())
                .collect(),
            nodes: NodeTotals::of(clusters),
            apps: apps.len(),
            problems: apps
                .iter()
                .filter(|app| app.problem.as_ref().is_some_and(Problem::is_pressing))
                .count(),
            counts: apps.iter().map(|app| app.effective).collect(),
            attention,
            causes,
            changed: changed.into_iter().filter_map(late).take(MAX_CHANGES).collect(),
            errors: errors.iter().map(ErrorRow::from).collect(),
        }
    }
}

impl Comparable for FleetOverview {
    fn differs(&self, old: &FleetOverview) -> bool {
        // A new time of judging alone does not count.
        FleetOverview { as_of: old.as_of, ..self.clone() } != *old
    }
}

/// Returns the number of causes of problems, and the first of them. An app with a half that is not live counts for that
/// alone, and a cluster that is not live counts also without apps.
fn attention(answer: &OverviewAnswer) -> (usize, Vec<AttentionEntry>) {
    let OverviewAnswer { clusters, apps, errors, .. } = answer;
    let live: HashSet<&str> =
        clusters.iter().filter(|row| row.freshness.is_live()).map(|row| &*row.name).collect();
    let of_cluster = |error: &&AppError| error.error.scope == Scope::Cluster;
    // Of several errors about a cluster the first one tells why.
    let why: HashMap<&str, &str> = errors
        .iter()
        .rev()
        .filter(of_cluster)
        .map(|error| (&*error.cluster, &*error.error.message))
        .collect();
    let silence = |name| {
        let is_part = live.contains(name);
        let message = why.get(name).copied().filter(|_| !is_part).unwrap_or_default();
        Silence { name, is_part, message }
    };
    let mut groups: CauseGroups<'_, &str> = CauseGroups::default();
    let mut told: HashSet<&str> = HashSet::new();
    for app in apps {
        let halves = [(&*app.cluster, app.freshness), (&*app.home, app.sync.freshness)];
        let dark = halves.into_iter().find(|(_, freshness)| freshness.state != FreshnessState::Live);
        if let Some((cluster, freshness)) = dark {
            let place = groups.silence(cluster, freshness.state, || silence(cluster));
            groups.add(place, &app.key, cluster, None, freshness.observed_at);
            told.insert(cluster);
        } else if let Some(problem) = &app.problem {
            let place = groups.problem(problem, &app.cluster, &app.cluster);
            groups.add(place, &app.key, &app.cluster, problem.cause().object, app.since);
        }
    }
    for row in clusters.iter().filter(|row| !row.freshness.is_live() && !told.contains(&*row.name)) {
        let place = groups.silence(&row.name, row.freshness.state, || silence(&row.name));
        groups.add_cluster(place, &row.name, row.freshness.observed_at);
    }
    groups.entries(MAX_CAUSES, |cluster| cluster)
}
