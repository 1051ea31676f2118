//! The answer of `trust`: findings, each a reason why a green status may be wrong.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashSet;
use taffrail_apps::trust::{
    self, CheckedCluster, ClusterFindings, Finding, FindingCategory, Severity, TrustShape,
};
use taffrail_apps::{self as apps, App, AppError, Objects, round_robin};
use taffrail_object::ObjectKey;
use taffrail_status::Status;

use crate::together::{earlier, grouped};
use crate::{API_VERSION, AppOfHome, ErrorRow, InClusters};

/// The maximum number of objects and apps that a finding names; the others are counted. Namespaces take turns, so that
/// an author in one displaces none of others.
const MAX_NAMED: usize = 10;

/// The answer of `trust`: the findings about some apps, and what was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TrustReport {
    /// Always [`API_VERSION`].
    pub api_version: Cow<'static, str>,
    /// Always `TrustReport`.
    pub kind: Cow<'static, str>,
    /// The findings, the worst first; of equal severity those with most green apps first.
    pub items: Vec<TrustFinding>,
    /// The numbers of apps, objects, Pods and Leases that were checked, for each cluster.
    pub checked: Vec<CheckedCluster>,
    /// Failures to read, invalid declarations, objects claimed twice, and limits that were exceeded.
    pub errors: Vec<ErrorRow>,
}

/// A reason to doubt a green status.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TrustFinding {
    /// The category of the finding.
    pub category: FindingCategory,
    /// The severity: high if a sign says that the status is wrong, medium if nothing proves it right, low if it only
    /// covers little, or if the finding concerns apps but no green one.
    pub severity: Severity,
    /// The reason in one CamelCase word.
    pub reason: Cow<'static, str>,
    /// The cluster of the finding, or all clusters with an equal one.
    #[serde(flatten)]
    pub place: InClusters,
    /// The subject of the finding: `cluster`, a kind, the key of an object, a namespace, a delivery tool, …
    pub scope: String,
    /// The message, for people.
    pub message: String,
    /// The time since when the finding is true, if known; of several objects the earliest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The objects that the finding is about: at most ten, of each namespace in turn, in order of their keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<FindingObject>,
    /// Number of objects that the finding is about.
    pub object_count: usize,
    /// The apps that the finding concerns: at most ten, of each namespace in turn; of one cluster green ones before the
    /// others. Empty if it may concern all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<AppOfHome>,
    /// Number of apps that the finding concerns.
    pub app_count: usize,
    /// Number of green apps that the finding concerns.
    pub green: usize,
    /// Command lines that show more about the finding, or repair its cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// True if the finding is joined of several clusters, and concerns different apps there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apps_differ: bool,
    /// True if the finding is joined of several clusters that have different `next`: its `next` is that of the first
    /// one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub next_of_first: bool,
}

impl TrustFinding {
    /// Converts a finding in the cluster called `cluster`; its apps are places in `list`. The severity is low if the
    /// finding concerns apps but no green one.
    fn new(mut found: Finding, cluster: &str, list: &apps::AppList) -> TrustFinding {
        found.objects.sort();
        found.objects.dedup();
        let mut apps: Vec<&App> = found.apps.iter().filter_map(|&place| list.apps.get(place)).collect();
        apps.sort_by_key(|app| !is_green(app));
        let green = apps.iter().filter(|app| is_green(app)).count();
        let since = found.since.or_else(|| found.objects.iter().filter_map(|(_, since)| *since).min());
        let is_harmless = green == 0 && !apps.is_empty();
        let object_count = found.objects.len();
        let objects = few(found.objects, |(key, _)| &key.namespace);
        let app_count = apps.len();
        let others = apps.split_off(green);
        let [mut named, others] = [apps, others].map(|apps| few(apps, |app| &app.app.namespace));
        named.extend(others);
        TrustFinding {
            category: found.category,
            severity: if is_harmless { Severity::Low } else { found.severity },
            reason: found.reason.into(),
            place: InClusters::one(cluster),
            scope: found.scope,
            message: found.message,
            since,
            object_count,
            objects: objects.into_iter().map(object).collect(),
            app_count,
            apps: named.iter().take(MAX_NAMED).map(|app| AppOfHome::from(&app.app)).collect(),
            green,
            next: found.next,
            apps_differ: false,
            next_of_first: false,
        }
    }

    /// Returns a copy without the parts in which joined findings may differ: cluster, times, commands, the number of
    /// green apps, and, if it names objects, its apps.
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

    /// Joins findings of several clusters that are equal by [`TrustFinding::alike`] into one: sums the counts, keeps
    /// the earliest times, and names ten of all apps. Returns `None` without findings.
    fn together(mut findings: Vec<TrustFinding>) -> Option<TrustFinding> {
        findings.sort_by(|one, other| one.place.first().cmp(other.place.first()));
        let names = findings.iter().map(|finding| finding.place.first().to_owned()).collect();
        let first = findings.first().map(|first| (first.apps.clone(), first.app_count))?;
        let mut seen = HashSet::new();
        let all = findings.iter().flat_map(|finding| &finding.apps).filter(|app| seen.insert(*app));
        let apps = few(all.cloned().collect(), |app| &app.app.namespace);
        let told = findings.into_iter().reduce(|one, other| {
            let apps_differ = one.apps_differ || first != (other.apps.clone(), other.app_count);
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
        Some(TrustFinding { place: InClusters::new(names), apps, ..told })
    }
}

/// An object that a finding concerns.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FindingObject {
    /// The key of the object.
    #[serde(flatten)]
    pub key: ObjectKey,
    /// The time since when the finding is true of this object, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// Returns at most [`MAX_NAMED`] of the items, chosen from each namespace in turn, in their original order.
fn few<T>(items: Vec<T>, namespace: impl Fn(&T) -> &str) -> Vec<T> {
    let items: Vec<(usize, T)> = items.into_iter().enumerate().collect();
    let mut few = round_robin(items, |(_, item)| namespace(item));
    few.truncate(MAX_NAMED);
    few.sort_by_key(|(place, _)| *place);
    few.into_iter().map(|(_, item)| item).collect()
}

fn object((key, since): (ObjectKey, Option<Timestamp>)) -> FindingObject {
    FindingObject { key, since }
}
fn is_green(app: &App) -> bool {
    app.effective() == Status::Current
}

impl TrustReport {
    /// Makes the report about the apps `asked` at the time `now`, as far as `shape` asks for findings. `list` has all
    /// apps of `clusters`, among them `asked`.
    pub fn new(
        asked: &[&App],
        list: &apps::AppList,
        clusters: &[&dyn Objects],
        now: Timestamp,
        shape: TrustShape,
    ) -> TrustReport {
        let each = TrustReport::each(&[asked.to_vec()], list, clusters, now, shape);
        each.into_iter().next().unwrap_or_else(|| TrustReport::of(Vec::new(), Vec::new(), &list.errors))
    }

    /// Makes a report for each selection of apps, as [`TrustReport::new`] does for one; work that they share is done
    /// once.
    pub fn each(
        selections: &[Vec<&App>],
        list: &apps::AppList,
        clusters: &[&dyn Objects],
        now: Timestamp,
        shape: TrustShape,
    ) -> Vec<TrustReport> {
        let of_selection = |found: Vec<ClusterFindings>| {
            let mut items = Vec::new();
            let mut checked = Vec::new();
            for cluster in found {
                let findings = cluster.findings.into_iter();
                items.extend(findings.map(|it| TrustFinding::new(it, &cluster.checked.cluster, list)));
                checked.push(cluster.checked);
            }
            sort(&mut items);
            TrustReport::of(items, checked, &list.errors)
        };
        trust::findings(selections, list, clusters, now, shape).into_iter().map(of_selection).collect()
    }

    /// Makes a report with these findings, in this order, and these errors.
    pub fn of<'e>(
        items: Vec<TrustFinding>,
        checked: Vec<CheckedCluster>,
        errors: impl IntoIterator<Item = &'e AppError>,
    ) -> TrustReport {
        let errors = errors.into_iter().map(Into::into).collect();
        TrustReport { api_version: API_VERSION.into(), kind: "TrustReport".into(), items, checked, errors }
    }

    /// Returns the report with findings that are equal in several clusters joined into one each, sorted again.
    #[must_use]
    pub fn together(self) -> TrustReport {
        let groups = grouped(self.items, |finding| (finding.place.first().to_owned(), finding.alike()));
        let mut items: Vec<TrustFinding> = groups.into_iter().filter_map(TrustFinding::together).collect();
        sort(&mut items);
        TrustReport { items, ..self }
    }
}

/// Sorts findings by severity, the worst first; of equal severity those with most green apps first, then those with
/// most apps, then by category, cluster, reason and scope.
fn sort(findings: &mut [TrustFinding]) {
    findings.sort_by_cached_key(|finding| {
        let TrustFinding { severity, category, green, app_count, place, reason, scope, .. } = finding;
        let most_green = std::cmp::Reverse((*green, *app_count));
        (*severity, most_green, *category, place.first().to_owned(), reason.clone(), scope.clone())
    });
}
