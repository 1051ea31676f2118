//! `trust`: the findings that speak against a green status.
//!
//! A list of apps shows what is known. This report shows how well it is known: verdicts by the fallback rule,
//! scopes that could not be read, controllers and nodes that stopped reporting, disagreements, suspensions,
//! and clock skew. Each finding says how many green apps depend on it, and what to do next.

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

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cluster_context::ClusterContext;
use jiff::Timestamp;
use serde::Serialize;
use taffrail_object::{GroupKind, ObjectKey, ObjectKeyRef};
use taffrail_status::Status;

use super::together::{earlier, grouped};
use super::{API_VERSION, AppName, ErrorRow, InClusters, time};
use crate::app;
use crate::app::App;
use crate::fleet::Fleet;
use crate::objects::Objects;

/// The maximum number of objects and apps that a finding names; the others are counted.
const MAX_NAMED: usize = 10;

/// The findings that speak against a green status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustReport {
    /// Always [`API_VERSION`].
    pub api_version: &'static str,
    /// Always `TrustReport`.
    pub kind: &'static str,
    /// The findings: the worst first, then those with most green apps.
    pub items: Vec<TrustFinding>,
    /// The extent of the check, cluster by cluster.
    pub checked: Vec<CheckedCluster>,
    /// Failures to read, invalid declarations, and objects claimed twice.
    pub errors: Vec<ErrorRow>,
}

/// The kind of reason to doubt a green status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingCategory {
    /// The tool and the objects disagree, or other reports do.
    Disagreeing,
    /// A controller or node stopped reporting.
    Silent,
    /// A scope could not be read.
    Unread,
    /// Clocks differ, or the time of observation is not known.
    Skewed,
    /// A user switched it off.
    Suspended,
    /// No rule knows the kind.
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

/// The weight of a finding against a green status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// There is a sign that green is wrong.
    High,
    /// Nothing proves that green is right.
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

/// A reason to doubt a green status.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustFinding {
    /// The category.
    pub category: FindingCategory,
    /// The weight.
    pub severity: Severity,
    /// The reason in one CamelCase word.
    pub reason: &'static str,
    /// The cluster, or several with the same finding.
    #[serde(flatten)]
    pub place: InClusters,
    /// The subject: `cluster`, a kind, or the key of an object.
    pub scope: String,
    /// The message, for people.
    pub message: String,
    /// The time since when it holds, if known; of several objects the earliest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The objects concerned: the first ten by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<FindingObject>,
    /// Number of objects concerned.
    pub object_count: usize,
    /// The apps concerned: the first ten, green ones before the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<AppName>,
    /// Number of apps concerned.
    pub app_count: usize,
    /// Number of green apps among them.
    pub green: usize,
    /// Commands that show more, or repair it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// True if it concerns different apps in several clusters.
    #[serde(skip)]
    pub apps_differ: bool,
    /// True if the commands are only for the first of several clusters.
    #[serde(skip)]
    pub next_of_first: bool,
}

impl TrustFinding {
    /// Returns the parts that must be equal to join findings of several clusters. A finding without objects
    /// is about its apps.
    fn alike(&self) -> TrustFinding {
        let (apps, app_count) = match self.objects.is_empty() {
            true => (self.apps.clone(), self.app_count),
            false => (Vec::new(), 0),
        };
        let objects = self.objects.iter().map(|object| FindingObject { since: None, ..object.clone() });
        TrustFinding {
            place: InClusters::one(""),
            since: None,
            objects: objects.collect(),
            apps,
            app_count,
            green: 0,
            next: Vec::new(),
            ..self.clone()
        }
    }

    /// Joins equal findings of several clusters: counts are summed, and the earliest times are kept.
    fn together(mut findings: Vec<TrustFinding>) -> Option<TrustFinding> {
        findings.sort_by(|one, other| one.place.first().cmp(other.place.first()));
        let names = findings.iter().map(|finding| finding.place.first().to_owned()).collect();
        let first = findings.first().map(|first| (first.apps.clone(), first.app_count))?;
        let told = findings.into_iter().reduce(|mut one, other| {
            let apps_differ = one.apps_differ || first != (other.apps.clone(), other.app_count);
            let new = other.apps.into_iter().filter(|app| !one.apps.contains(app)).collect::<Vec<_>>();
            one.apps.extend(new);
            one.apps.truncate(MAX_NAMED);
            let objects = one.objects.into_iter().zip(other.objects);
            let objects = objects
                .map(|(object, other)| FindingObject { since: earlier(object.since, other.since), ..object });
            TrustFinding {
                since: earlier(one.since, other.since),
                objects: objects.collect(),
                object_count: one.object_count.saturating_add(other.object_count),
                app_count: one.app_count.saturating_add(other.app_count),
                green: one.green.saturating_add(other.green),
                apps_differ,
                next_of_first: one.next_of_first || one.next != other.next,
                ..one
            }
        })?;
        Some(TrustFinding { place: InClusters::new(names), ..told })
    }
}

/// An object that a finding concerns.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingObject {
    /// Its key.
    #[serde(flatten)]
    pub key: ObjectKey,
    /// The time since when it concerns the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// The extent of the check in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedCluster {
    /// Its name.
    pub cluster: String,
    /// Number of its apps.
    pub apps: usize,
    /// Number of green apps.
    pub green: usize,
    /// Number of objects that they declare.
    pub objects: usize,
    /// Number of Pods that were read.
    pub pods: usize,
    /// Number of Leases that were read, which nodes and controllers renew while they are alive.
    pub leases: usize,
    /// The time for which the state was judged.
    pub as_of: String,
}

/// The selection of findings, and the form of commands.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrustShape {
    /// True to leave out findings that concern none of the selected apps.
    pub only_apps: bool,
    /// True if commands must name the context of the cluster.
    pub contexts: bool,
}

/// Objects that a finding concerns, each with the time since when, if known.
type Concerned = Vec<(ObjectKey, Option<Timestamp>)>;

/// A finding of one cluster that is being built.
#[derive(Debug)]
struct NewFinding {
    category: FindingCategory,
    severity: Severity,
    reason: &'static str,
    scope: String,
    message: String,
    since: Option<Timestamp>,
    objects: Concerned,
    /// Indices into the list of apps.
    apps: BTreeSet<usize>,
    next: Vec<String>,
}

impl NewFinding {
    fn new(category: FindingCategory, severity: Severity, reason: &'static str) -> NewFinding {
        NewFinding {
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

    fn about(self, scope: impl ToString) -> NewFinding {
        NewFinding { scope: scope.to_string(), ..self }
    }

    fn object<'k>(mut self, key: impl Into<ObjectKeyRef<'k>>, since: Option<Timestamp>) -> NewFinding {
        let key = key.into();
        self.objects.push((key.to_owned(), since));
        NewFinding { scope: key.to_string(), ..self }
    }

    fn objects(self, objects: Concerned) -> NewFinding {
        let scope = match objects.as_slice() {
            [(only, _)] => only.to_string(),
            _ => self.scope.clone(),
        };
        NewFinding { objects, scope, ..self }
    }

    fn says(self, message: impl Into<String>) -> NewFinding {
        NewFinding { message: message.into(), ..self }
    }

    fn since(self, since: Option<Timestamp>) -> NewFinding {
        NewFinding { since, ..self }
    }

    fn of(self, apps: impl IntoIterator<Item = usize>) -> NewFinding {
        NewFinding { apps: apps.into_iter().collect(), ..self }
    }

    fn next(mut self, command: Option<String>) -> NewFinding {
        self.next.extend(command);
        self
    }

    /// Narrows the finding to these apps. One that concerns no app concerns all, and is dropped only if
    /// `only_apps`.
    fn within(mut self, asked: &BTreeSet<usize>, only_apps: bool) -> Option<NewFinding> {
        let concerns_all = self.apps.is_empty() && !only_apps;
        self.apps.retain(|place| asked.contains(place));
        (concerns_all || !self.apps.is_empty()).then_some(self)
    }

    /// Converts the finding for display. Its severity is low if it concerns apps but no green one.
    fn shown(mut self, cluster: &str, list: &app::AppList) -> TrustFinding {
        self.objects.sort();
        self.objects.dedup();
        let mut apps: Vec<&App> = self.apps.iter().filter_map(|&place| list.apps.get(place)).collect();
        apps.sort_by_key(|app| !is_green(app));
        let green = apps.iter().filter(|app| is_green(app)).count();
        let since = self.since.or_else(|| self.objects.iter().filter_map(|(_, since)| *since).min());
        let is_harmless = green == 0 && !apps.is_empty();
        TrustFinding {
            category: self.category,
            severity: if is_harmless { Severity::Low } else { self.severity },
            reason: self.reason,
            place: InClusters::one(cluster),
            scope: self.scope,
            message: self.message,
            since: since.map(time),
            object_count: self.objects.len(),
            objects: self.objects.into_iter().take(MAX_NAMED).map(object).collect(),
            app_count: apps.len(),
            apps: apps.iter().take(MAX_NAMED).map(|app| AppName::from(&app.app)).collect(),
            green,
            next: self.next,
            apps_differ: false,
            next_of_first: false,
        }
    }
}

fn object((key, since): (ObjectKey, Option<Timestamp>)) -> FindingObject {
    FindingObject { key, since: since.map(time) }
}

fn is_green(app: &App) -> bool {
    app.effective() == Status::Current
}

/// The functions that look for findings.
const LOOKS: [fn(&ClusterContext<'_>) -> Vec<NewFinding>; 9] = [
    disagreeing::look,
    unconfirmed::look,
    problems::look,
    silent::look,
    unread::look,
    skewed::look,
    suspended::look,
    fallback::look,
    unheard::look,
];

impl TrustReport {
    /// Makes the report about `asked`, apps of `list`, which are the apps of `clusters`, for the time `now`.
    pub fn new(
        asked: &[&App],
        list: &app::AppList,
        clusters: &[&dyn Objects],
        now: Timestamp,
        shape: TrustShape,
    ) -> TrustReport {
        let each = TrustReport::each(&[asked.to_vec()], list, clusters, now, shape);
        each.into_iter().next().unwrap_or_else(|| TrustReport::of(Vec::new(), Vec::new(), list))
    }

    /// Makes a report for each of several selections, like [`TrustReport::new`]; the work that they share is
    /// done once.
    pub fn each(
        selections: &[Vec<&App>],
        list: &app::AppList,
        clusters: &[&dyn Objects],
        now: Timestamp,
        shape: TrustShape,
    ) -> Vec<TrustReport> {
        let places: HashMap<*const App, usize> =
            list.apps.iter().enumerate().map(|(place, app)| (std::ptr::from_ref(app), place)).collect();
        let members = Fleet::new(clusters).members;
        let mut contexts: Vec<ClusterContext<'_>> =
            members.iter().map(|member| ClusterContext::new(member.objects, list, now, shape)).collect();
        let mut reports = Vec::with_capacity(selections.len());
        for selection in selections {
            let asked: BTreeSet<usize> =
                selection.iter().filter_map(|app| places.get(&std::ptr::from_ref(*app)).copied()).collect();
            let mut items = Vec::new();
            let mut checked = Vec::new();
            for (member, cluster) in members.iter().zip(&mut contexts) {
                cluster.look_at(shape.only_apps.then_some(&asked));
                let twin = member.twin_of.as_deref().map(unconfirmed::twin);
                let unverified = member.objects.unverified().map(unconfirmed::unverified);
                let findings = LOOKS.into_iter().flat_map(|look| look(cluster));
                let findings = folded(findings.chain(twin).chain(unverified));
                let findings = findings.into_iter().filter_map(|it| it.within(&asked, shape.only_apps));
                items.extend(findings.map(|finding| finding.shown(cluster.name(), list)));
                checked.push(cluster.checked(&asked));
            }
            reports.push(TrustReport::of(items, checked, list));
        }
        reports
    }

    fn of(mut items: Vec<TrustFinding>, checked: Vec<CheckedCluster>, list: &app::AppList) -> TrustReport {
        sort(&mut items);
        TrustReport {
            api_version: API_VERSION,
            kind: "TrustReport",
            items,
            checked,
            errors: list.errors.iter().map(ErrorRow::from).collect(),
        }
    }

    /// Joins findings that are the same in several clusters.
    #[must_use]
    pub fn together(self) -> TrustReport {
        let groups = grouped(self.items, |finding| (finding.place.first().to_owned(), finding.alike()));
        let mut items: Vec<TrustFinding> = groups.into_iter().filter_map(TrustFinding::together).collect();
        sort(&mut items);
        TrustReport { items, ..self }
    }
}

/// Sorts the worst first, then those with most green apps.
fn sort(findings: &mut [TrustFinding]) {
    findings.sort_by_cached_key(|finding| {
        let TrustFinding { severity, category, green, app_count, place, reason, scope, .. } = finding;
        let most_green = std::cmp::Reverse((*green, *app_count));
        (*severity, most_green, *category, place.first().to_owned(), *reason, scope.clone())
    });
}

/// Joins findings that say the same about several objects of a kind.
fn folded(findings: impl Iterator<Item = NewFinding>) -> Vec<NewFinding> {
    type Place = (FindingCategory, Severity, &'static str, String, GroupKind);

    let mut folded: Vec<NewFinding> = Vec::new();
    let mut places: HashMap<Place, usize> = HashMap::new();
    let mut several: BTreeMap<usize, GroupKind> = BTreeMap::new();
    for finding in findings {
        let kind = match finding.objects.as_slice() {
            [(only, _)] if only.to_string() == finding.scope => only.group_kind(),
            _ => {
                folded.push(finding);
                continue;
            }
        };
        let NewFinding { category, severity, reason, .. } = finding;
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
