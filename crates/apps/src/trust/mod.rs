//! Signs that a green status is wrong.
//!
//! A list of apps shows what is known. The findings show how well it is known: verdicts by the fallback rule,
//! scopes that could not be read, controllers and nodes that stopped reporting, disagreements, suspensions,
//! and clock skew. Each finding says how many green apps depend on it, and what to do next.

mod by_hand;
mod cluster_context;
mod disagreeing;
mod fallback;
mod problems;
mod silent;
mod skewed;
mod suspended;
mod unconfirmed;
mod unheard;
mod unread;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cluster_context::ClusterContext;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::{GroupKind, ObjectKey, ObjectKeyRef};
use taffrail_status::Status;

use crate::app::{self, App};
use crate::claimants::Claimants;
use crate::fleet::{Fleet, FleetMember};
use crate::objects::Objects;

/// The kind of a reason to doubt a green status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum FindingCategory {
    /// The delivery tool and the objects report different states, other reports disagree, or objects were changed by
    /// hand, are claimed by several apps or do not confirm the claim.
    Disagreeing,
    /// A controller, node or delivery tool stopped reporting, or a source is not fetched.
    Silent,
    /// A cluster or a part of it could not be read, or not reliably.
    Unread,
    /// Clocks differ, or the observation is old or of an unknown time.
    Skewed,
    /// A user suspended or paused an app, source or object, turned automatic sync off, or excluded an object or field
    /// from its tool or controller.
    Suspended,
    /// Ready is only the default: no rule reads the status of the kind, an app declares no objects or is known only by
    /// labels, or health rules in the cluster are ignored or limited.
    Fallback,
}

impl FindingCategory {
    /// All categories, in the order in which they are shown.
    pub const ALL: [FindingCategory; 6] = [
        FindingCategory::Disagreeing,
        FindingCategory::Silent,
        FindingCategory::Unread,
        FindingCategory::Skewed,
        FindingCategory::Suspended,
        FindingCategory::Fallback,
    ];

    /// Returns the name used in JSON and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            FindingCategory::Disagreeing => "disagreeing",
            FindingCategory::Silent => "silent",
            FindingCategory::Unread => "unread",
            FindingCategory::Skewed => "skewed",
            FindingCategory::Suspended => "suspended",
            FindingCategory::Fallback => "fallback",
        }
    }
}

/// The weight of a finding: the risk that a green status is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// There is a sign that green is wrong.
    High,
    /// Nothing proves that green is right, and nothing that it is wrong.
    Medium,
    /// Green means less than it seems to, by choice or by the nature of the kind.
    Low,
}

impl Severity {
    /// Returns the name used in JSON and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
        }
    }
}

/// The numbers of objects of one cluster that a search for findings looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CheckedCluster {
    /// Name of the cluster.
    pub cluster: String,
    /// Number of selected apps whose objects are in the cluster.
    pub apps: usize,
    /// Number of these apps that are green.
    pub green: usize,
    /// Number of objects that these apps declare.
    pub objects: usize,
    /// Number of Pods in the cluster that were read whole.
    pub pods: usize,
    /// Number of Leases that were read, which nodes and controllers renew while they are alive.
    pub leases: usize,
    /// The controllers of Kubernetes and of the delivery tools of the cluster's apps without a Lease, so that it is not
    /// known if they work; empty if not all Leases were read, or there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_lease: Vec<String>,
    /// The time at which the cluster is judged, by its own clock; for a dump without a date the newest time in its
    /// objects.
    pub as_of: Timestamp,
}

/// Options of a search for findings.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrustShape {
    /// True to examine only the objects of the selected apps, and to leave out findings that name no app. Findings that
    /// name only other apps are left out in any case.
    pub only_apps: bool,
    /// True if suggested commands must name the context of the cluster.
    pub contexts: bool,
    /// True to search only the home and target clusters of green apps, and only for disagreements, changes by hand, and
    /// problems of green apps.
    pub contradictions: bool,
}

/// The objects that a finding is about, each with the time since when the finding is true of it, if known.
type Concerned = Vec<(ObjectKey, Option<Timestamp>)>;

/// A reason to doubt a green status of one cluster.
#[derive(Debug)]
pub struct Finding {
    /// The kind of doubt.
    pub category: FindingCategory,
    /// The severity if a green app is among `apps`, or `apps` is empty.
    pub severity: Severity,
    /// The reason in one CamelCase word.
    pub reason: &'static str,
    /// The subject of the finding: `cluster`, a kind, the key of an object, a namespace, a delivery tool, …
    pub scope: String,
    /// The message, for people.
    pub message: String,
    /// The time since when the finding is true, if known.
    pub since: Option<Timestamp>,
    /// The objects that the finding is about, each with the time since when it is true of the object, if known.
    pub objects: Vec<(ObjectKey, Option<Timestamp>)>,
    /// The apps that the finding concerns, as indexes into the list of apps; empty if it may concern all.
    pub apps: BTreeSet<usize>,
    /// Command lines that show more, or repair the cause; may be empty.
    pub next: Vec<String>,
}

/// The findings of one cluster.
#[derive(Debug)]
pub struct ClusterFindings {
    /// The numbers of objects and apps that were checked.
    pub checked: CheckedCluster,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Finding {
    fn new(category: FindingCategory, severity: Severity, reason: &'static str) -> Finding {
        Finding {
            category,
            severity,
            reason,
            scope: "cluster".to_owned(),
            message: String::new(),
            since: None,
            objects: Vec::new(),
            apps: BTreeSet::new(),
            next: Vec::new(),
        }
    }

    fn about(self, scope: impl ToString) -> Finding {
        Finding { scope: scope.to_string(), ..self }
    }

    fn object<'k>(mut self, key: impl Into<ObjectKeyRef<'k>>, since: Option<Timestamp>) -> Finding {
        let key = key.into();
        self.objects.push((key.to_owned(), since));
        Finding { scope: key.to_string(), ..self }
    }

    fn objects(self, objects: Concerned) -> Finding {
        let scope = match objects.as_slice() {
            [(only, _)] => only.to_string(),
            _ => self.scope.clone(),
        };
        Finding { objects, scope, ..self }
    }

    fn says(self, message: impl Into<String>) -> Finding {
        Finding { message: message.into(), ..self }
    }

    fn since(self, since: Option<Timestamp>) -> Finding {
        Finding { since, ..self }
    }

    fn of(self, apps: impl IntoIterator<Item = usize>) -> Finding {
        Finding { apps: apps.into_iter().collect(), ..self }
    }

    fn next(mut self, command: Option<String>) -> Finding {
        self.next.extend(command);
        self
    }

    /// Restricts the finding to the apps `asked`; `None` if it concerns none of them. A finding without apps
    /// concerns all, and is dropped if `only_apps`.
    fn within(mut self, asked: &BTreeSet<usize>, only_apps: bool) -> Option<Finding> {
        let concerns_all = self.apps.is_empty() && !only_apps;
        self.apps.retain(|place| asked.contains(place));
        (concerns_all || !self.apps.is_empty()).then_some(self)
    }
}

fn is_green(app: &App) -> bool {
    app.effective() == Status::Current
}

/// The functions that search for findings in a cluster, one or more for each category.
const LOOKS: [fn(&ClusterContext<'_>) -> Vec<Finding>; 10] = [
    disagreeing::look,
    by_hand::look,
    unconfirmed::look,
    problems::look,
    silent::look,
    unread::look,
    skewed::look,
    suspended::look,
    fallback::look,
    unheard::look,
];

/// The functions of [`LOOKS`] that run with [`TrustShape::contradictions`]: they find disagreements, changes by hand,
/// and problems of green apps.
const CONTRADICTIONS: [fn(&ClusterContext<'_>) -> Vec<Finding>; 3] =
    [disagreeing::look, by_hand::look, problems::look];

/// The reason of findings about objects that were changed by hand since a tool applied them.
pub const CHANGED_BY_HAND: &str = "ChangedByHand";

/// Returns the findings of each cluster, for each selection of apps in `selections`. The apps are those of `list`,
/// which has the apps of `clusters`; `now` is the present time. With `shape.contradictions`, only the home and target
/// clusters of selected green apps are searched.
pub fn findings(
    selections: &[Vec<&App>],
    list: &app::AppList,
    clusters: &[&dyn Objects],
    now: Timestamp,
    shape: TrustShape,
) -> Vec<Vec<ClusterFindings>> {
    let places: HashMap<*const App, usize> =
        list.apps.iter().enumerate().map(|(place, app)| (std::ptr::from_ref(app), place)).collect();
    let members = Fleet::new(clusters).members;
    let claimants = Claimants::of(list);
    let concerned: HashSet<&str> = selections
        .iter()
        .flatten()
        .filter(|app| is_green(app))
        .flat_map(|app| [&*app.app.home, &*app.app.target])
        .collect();
    let is_searched =
        |member: &&FleetMember<'_>| !shape.contradictions || concerned.contains(member.objects.name());
    let looks = if shape.contradictions { &CONTRADICTIONS[..] } else { &LOOKS };
    let mut contexts: Vec<(&FleetMember<'_>, ClusterContext<'_>)> = members
        .iter()
        .filter(is_searched)
        .map(|member| (member, ClusterContext::new(member.objects, list, &claimants, now, shape)))
        .collect();
    let mut of_selection = |selection: &Vec<&App>| {
        let asked: BTreeSet<usize> =
            selection.iter().filter_map(|app| places.get(&std::ptr::from_ref(*app)).copied()).collect();
        let of_cluster = |(member, cluster): &mut (&FleetMember<'_>, ClusterContext<'_>)| {
            cluster.look_at(shape.only_apps.then_some(&asked));
            let twin = member.twin_of.as_deref().map(unconfirmed::twin);
            let unverified = member.objects.unverified().map(unconfirmed::unverified);
            let findings = looks.iter().flat_map(|look| look(cluster));
            let findings = folded(findings.chain(twin).chain(unverified));
            let findings = findings.into_iter().filter_map(|it| it.within(&asked, shape.only_apps));
            let findings = findings.collect();
            ClusterFindings { findings, checked: cluster.checked(&asked, silent::without_lease(cluster)) }
        };
        contexts.iter_mut().map(of_cluster).collect()
    };
    selections.iter().map(&mut of_selection).collect()
}

/// Joins findings that are each about one object, of one kind, and have the same category, severity, reason and
/// message; leaves others as they are.
fn folded(findings: impl Iterator<Item = Finding>) -> Vec<Finding> {
    type FoldKey = (FindingCategory, Severity, &'static str, String, GroupKind);

    let mut folded: Vec<Finding> = Vec::new();
    let mut places: HashMap<FoldKey, usize> = HashMap::new();
    let mut several: BTreeMap<usize, GroupKind> = BTreeMap::new();
    for finding in findings {
        let kind = match finding.objects.as_slice() {
            [(only, _)] if only.to_string() == finding.scope => only.group_kind(),
            _ => {
                folded.push(finding);
                continue;
            }
        };
        let Finding { category, severity, reason, .. } = finding;
        let place = (category, severity, reason, finding.message.clone(), kind.clone());
        match places.get(&place) {
            Some(&at) => {
                folded[at].objects.extend(finding.objects);
                folded[at].apps.extend(finding.apps);
                several.insert(at, kind);
            }
            None => {
                places.insert(place, folded.len());
                folded.push(finding);
            }
        }
    }
    for (at, kind) in several {
        let finding = &mut folded[at];
        finding.message = format!("{} objects, each: {}", finding.objects.len(), finding.message);
        finding.scope = kind.to_string();
    }
    folded
}

/// Formats a number with its noun: `3 Pods`, `1 Pod`.
fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
