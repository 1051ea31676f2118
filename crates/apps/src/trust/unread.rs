//! Findings: scopes that could not be read.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_object::kinds::{is_namespaced, plural};
use taffrail_object::{GroupKind, ObjectKey};
use taffrail_status::Status;
use taffrail_status::assess::UNJUDGED;

use super::cluster_context::{ClusterContext, found, is_well, number};
use super::{Concerned, Finding, FindingCategory, Severity, count};
use crate::app::{App, Resource};
use crate::apps::NOT_JUDGED;
use crate::command;
use crate::delivery;
use crate::reads;
use crate::scope::{Scope, ScopeError};

/// The maximum number of kinds that a finding names; it counts the others.
const MAX_NAMED_KINDS: usize = 6;

pub(super) fn look(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = scopes(cluster);
    findings.extend(not_served(cluster));
    findings.extend(without_evidence(cluster));
    findings.extend(sources(cluster));
    findings.extend(out_of_reach(cluster));
    findings.extend(repeated(cluster));
    findings
}

/// Finds apps declared in this cluster whose objects are in a cluster that was not queried, so that only the
/// app's tool reports on them.
fn out_of_reach(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut apps: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, app, _) in cluster.declared().filter(|(_, app, _)| !app.in_reach) {
        apps.entry(&app.message).or_default().push(place);
    }
    let finding = |(message, places): (&str, Vec<usize>)| {
        let next = command::taffrail(&["get", "apps", "--all-contexts"], "", None);
        finding(Severity::Medium, "OutOfReach").says(message).of(places).next(next)
    };
    apps.into_iter().map(finding).collect()
}

/// Returns one finding about the objects that a dump holds more than once with different contents: it may be of several
/// moments, or of several clusters. `None` if there are none.
fn repeated(cluster: &ClusterContext<'_>) -> Option<Finding> {
    let repeated = cluster.objects.repeated();
    let first = repeated.first()?;
    let message = format!(
        "{} in the dump more than once with different contents, such as {} {}: the last copy of each counts",
        if repeated.len() == 1 {
            "1 object is".to_owned()
        } else {
            format!("{} objects are", repeated.len())
        },
        first.kind,
        first.path()
    );
    let mut apps: BTreeSet<usize> = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for key in repeated {
        let claimed = cluster.claimed(key).filter(|(claimed, _)| seen.insert(*claimed));
        apps.extend(claimed.into_iter().flat_map(|(_, apps)| apps));
        apps.extend(cluster.declared_by(key));
    }
    let found = repeated.iter().fold(finding(Severity::High, "Repeated"), |it, key| it.object(key, None));
    Some(found.says(message).of(apps))
}

fn finding(severity: Severity, reason: &'static str) -> Finding {
    Finding::new(FindingCategory::Unread, severity, reason)
}

/// Reasons of errors about single objects that this search leaves to other functions, which make findings about them.
const NOT_UNREAD: [&str; 2] = ["Overlap", "Malformed"];

/// Kinds that are evidence about other objects; without them, objects are judged by their own status alone.
const EVIDENCE: [(&str, &str); 6] = [
    ("", "Event"),
    ("", "Node"),
    ("", "Pod"),
    ("apps", "ReplicaSet"),
    ("batch", "Job"),
    ("coordination.k8s.io", "Lease"),
];

/// Makes findings of the errors about this cluster: of scopes that were denied, could not be read or were not judged,
/// one for all kinds with the same reason and apps. Leaves out errors about single objects for one of the reasons
/// [`NOT_UNREAD`].
fn scopes(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    type Kinds<'e> = Vec<(&'e GroupKind, Option<&'e str>, &'e ScopeError)>;

    let errors =
        cluster.list.errors.iter().filter(|error| error.cluster == cluster.name()).map(|it| &it.error);
    let errors = errors
        .filter(|error| !(NOT_UNREAD.contains(&&*error.reason) && matches!(error.scope, Scope::Object(_))));
    let mut kinds: BTreeMap<(&str, bool, Vec<usize>), Kinds<'_>> = BTreeMap::new();
    let mut findings = Vec::new();
    let mut index = None;
    for error in errors {
        match &error.scope {
            Scope::Kind { kind, namespace } => {
                let hides = reads::declaring::declares_apps(kind);
                let index = index.get_or_insert_with(|| AppsByKind::of(cluster));
                let apps = index.concerned(kind, namespace.as_deref());
                let place = (&*error.reason, hides, if hides { Vec::new() } else { apps });
                kinds.entry(place).or_default().push((kind, namespace.as_deref(), error));
            }
            Scope::Cluster => {
                let known = match cluster.objects.freshness().observed_at {
                    Some(_) => "what this cluster holds now is not known",
                    None => "nothing is known of this cluster",
                };
                let message = format!("{known}: {}", error.message);
                let next = cluster.kubectl(&["get", "--raw", "/readyz"], "");
                // If apps are selected, only the clusters with these apps matter.
                let apps = match cluster.is_narrowed() {
                    true => {
                        cluster.apps().map(|(place, _)| place).chain(cluster.delivered_by(|_| true)).collect()
                    }
                    false => Vec::new(),
                };
                findings.push(finding(Severity::Medium, "ClusterLost").says(message).of(apps).next(next));
            }
            Scope::Group(group) => {
                let index = index.get_or_insert_with(|| AppsByKind::of(cluster));
                let apps = index.groups.get(&**group).into_iter().flatten().copied();
                let next = cluster.kubectl(&["get", "apiservices"], "");
                let finding =
                    finding(Severity::Medium, "GroupBroken").about(&error.scope).says(&error.message);
                findings.push(finding.of(apps).next(next));
            }
            Scope::Namespace(namespace) => {
                // What was not judged is not green; of other errors nothing is known but the namespace.
                let is_judging = error.reason == NOT_JUDGED;
                let is_meant =
                    |it: &Resource| it.key.namespace == *namespace && (!is_judging || it.rule == UNJUDGED);
                let inside = |app: &App| app.resources.iter().any(is_meant);
                let apps = cluster.apps().filter(|(_, app)| inside(app)).map(|(place, _)| place);
                let finding = match is_judging {
                    true => finding(Severity::High, NOT_JUDGED),
                    false => finding(Severity::Medium, "NamespaceUnread"),
                };
                findings.push(finding.about(&error.scope).says(&error.message).of(apps));
            }
            Scope::Object(key) => {
                let speaks = cluster.declared_by(key).chain(cluster.spoken_for_by(key));
                let apps = cluster.claimants(key).into_iter().chain(speaks);
                let next = match &*error.reason {
                    "Forbidden" => can_i(cluster, "get", &key.group_kind(), Some(&key.namespace)),
                    _ => cluster.describe(key),
                };
                let finding =
                    finding(Severity::Medium, "ObjectUnread").object(key, None).says(&error.message);
                findings.push(finding.of(apps).next(next));
            }
            Scope::Input(_) => {
                let message = format!(
                    "{}: objects that seem missing may be in the part that was not read",
                    error.message
                );
                let apps = cluster.apps().map(|(place, _)| place);
                findings.push(
                    finding(Severity::Medium, "InputUnread").about(&error.scope).says(message).of(apps),
                );
            }
        }
    }
    for ((reason, hides, apps), of) in kinds {
        findings.push(kinds_unread(cluster, reason, hides, apps, &of));
    }
    findings
}

fn kinds_unread(
    cluster: &ClusterContext<'_>,
    reason: &str,
    hides: bool,
    apps: Vec<usize>,
    of: &[(&GroupKind, Option<&str>, &ScopeError)],
) -> Finding {
    let mut names: Vec<String> = of.iter().map(|(kind, namespace, _)| named(kind, *namespace)).collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(MAX_NAMED_KINDS);
    names.truncate(MAX_NAMED_KINDS);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let (last, others) =
        names.split_last().map(|(last, others)| (last.clone(), others.join(", "))).unwrap_or_default();
    let names = if others.is_empty() { last } else { format!("{others} and {last}") };
    let how = if reason == "Forbidden" {
        "cannot be listed (access denied)".to_owned()
    } else {
        format!("could not be read ({reason})")
    };
    let only_evidence = of.iter().all(|(kind, _, _)| EVIDENCE.contains(&(&*kind.group, &*kind.kind)));
    let means = match (hides, only_evidence) {
        (true, _) => "apps may be missing from this answer",
        (false, true) if of.iter().all(|(kind, _, _)| kind.kind == "Lease") => {
            "dead nodes and controllers would go unnoticed"
        }
        (false, true) => "objects are judged by their own status alone",
        (false, false) => "their status is unknown",
    };
    let message = format!("{names} {how}: {means}");
    let scope = match of {
        [(_, _, error)] => error.scope.to_string(),
        _ => count(of.len(), "kind", "kinds"),
    };
    let finding = finding(Severity::Medium, if reason == "Forbidden" { "Forbidden" } else { "KindUnread" });
    let next = match (reason, of.first()) {
        ("Forbidden", Some((kind, namespace, _))) => can_i(cluster, "list", kind, *namespace),
        _ => cluster.kubectl(&["get", "--raw", "/readyz"], ""),
    };
    let finding = Finding { next: next.into_iter().collect(), ..finding };
    // If a declaring kind cannot be read, it is not known which apps are missing.
    finding.about(scope).says(message).of(apps)
}

fn named(kind: &GroupKind, namespace: Option<&str>) -> String {
    let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
    format!("{}{place}", plural(&kind.kind))
}

fn can_i(
    cluster: &ClusterContext<'_>,
    verb: &str,
    kind: &GroupKind,
    namespace: Option<&str>,
) -> Option<String> {
    let resource = command::resource(&kind.group, &kind.kind);
    let mut words = vec!["auth", "can-i", verb, &*resource];
    let namespace = namespace.unwrap_or_default();
    if namespace.is_empty() && verb == "list" {
        words.push("-A");
    }
    cluster.kubectl(&words, namespace)
}

/// The indexes of apps, by each namespace with objects of them.
type ByNamespace<'a> = BTreeMap<&'a str, BTreeSet<usize>>;

/// An index of the apps by the kinds and namespaces of their objects.
#[derive(Default)]
struct AppsByKind<'a> {
    kinds: BTreeMap<(&'a str, &'a str), ByNamespace<'a>>,
    /// The apps with workloads, by the namespace of these: evidence of other kinds may decide their status.
    workloads: ByNamespace<'a>,
    groups: BTreeMap<&'a str, BTreeSet<usize>>,
}

impl<'a> AppsByKind<'a> {
    fn of(cluster: &ClusterContext<'a>) -> AppsByKind<'a> {
        let mut index = AppsByKind::default();
        for (place, app) in cluster.apps() {
            for ObjectKey { group, kind, namespace, .. } in app.resources.iter().map(|it| &*it.key) {
                index.kinds.entry((group, kind)).or_default().entry(namespace).or_default().insert(place);
                index.groups.entry(group).or_default().insert(place);
                if is_workload(group, kind) {
                    index.workloads.entry(namespace).or_default().insert(place);
                }
            }
        }
        index
    }

    /// Returns the indices of the apps with objects of `kind` in `namespace` (`None`: in all), and, if `kind` is
    /// evidence about others (see [`EVIDENCE`]), of the apps with workloads there.
    fn concerned(&self, kind: &GroupKind, namespace: Option<&str>) -> Vec<usize> {
        let is_evidence = EVIDENCE.contains(&(&*kind.group, &*kind.kind));
        let own = self.kinds.get(&(&*kind.group, &*kind.kind));
        let workloads = Some(&self.workloads).filter(|_| is_evidence);
        let mut apps = BTreeSet::new();
        for places in own.into_iter().chain(workloads) {
            match namespace {
                Some(namespace) => apps.extend(places.get(namespace).into_iter().flatten()),
                None => apps.extend(places.values().flatten()),
            }
        }
        apps.into_iter().collect()
    }
}

fn is_workload(group: &str, kind: &str) -> bool {
    let of_apps = ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"];
    (group == "apps" && of_apps.contains(&kind)) || (group == "batch" && matches!(kind, "CronJob" | "Job"))
}

/// Finds declared objects of kinds that the API server does not serve; makes one finding for each kind.
fn not_served(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut unknown: BTreeMap<GroupKind, (BTreeSet<usize>, Concerned)> = BTreeMap::new();
    for (place, app) in cluster.apps() {
        for resource in app.resources.iter().filter(|resource| resource.status == Status::NotFound) {
            let key = &resource.key;
            let is_known = cluster.objects.is_namespaced(&key.group, &key.kind).is_some();
            if !is_known && is_namespaced(&key.group, &key.kind).is_none() {
                let (apps, objects) = unknown.entry(key.group_kind()).or_default();
                apps.insert(place);
                objects.push(((**key).clone(), None));
            }
        }
    }
    let made = |(kind, (apps, objects)): (GroupKind, (BTreeSet<usize>, Concerned))| {
        let number = count(objects.len(), "object is", "objects are");
        let message =
            format!("{number} declared of a kind that the cluster does not serve: its definition is missing");
        let next = cluster.kubectl(&["api-resources", "--api-group", &kind.group], "");
        let finding = finding(Severity::Low, "NotServed").about(kind);
        Finding { objects, ..finding }.says(message).of(apps).next(next)
    };
    unknown.into_iter().map(made).collect()
}

/// Returns one finding about the workloads that are Ready and report ready Pods in namespaces of which no Pod was read
/// whole; `None` if there are none, or if an error about Pods is reported already.
fn without_evidence(cluster: &ClusterContext<'_>) -> Option<Finding> {
    // If the user may not list Pods, the scope is reported.
    let is_pod = |kind: &GroupKind| kind.group.is_empty() && kind.kind == "Pod";
    let is_told = |error: &ScopeError| matches!(&error.scope, Scope::Kind { kind, .. } if is_pod(kind));
    if cluster.objects.errors().iter().any(is_told) {
        return None;
    }
    let mut objects = Vec::new();
    let mut apps = BTreeSet::new();
    for (resource, observed, of) in cluster.resources() {
        let says = |key| number(&observed.object, &["status", key]) > Some(0);
        let says = says("readyReplicas") || says("numberReady");
        if says
            && is_well(resource)
            && is_workload(&resource.key.group, &resource.key.kind)
            && !cluster.has_pods(&resource.key.namespace)
        {
            objects.push(((*resource.key).clone(), None));
            apps.extend(of);
        }
    }
    if objects.is_empty() {
        return None;
    }
    let message = format!(
        "{} ready Pods, but no Pods of their namespaces were read: Ready rests on their own status alone",
        count(objects.len(), "workload reports", "workloads report")
    );
    let finding = finding(Severity::Medium, "NoPods").about("/Pod");
    Some(Finding { objects, ..finding }.says(message).of(apps))
}

/// Finds the sources of green Flux apps whose condition `Ready` is false.
fn sources(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut failed = cluster.sources_of(super::is_green);
    failed.retain(|key, _| {
        found(cluster.objects, key).is_some_and(|source| source.object.condition_is("Ready", "False"))
    });
    let made = |(key, apps): (ObjectKey, BTreeSet<usize>)| {
        let source = found(cluster.objects, &key);
        let ready = source.as_ref().and_then(|source| source.object.condition("Ready"));
        let since = ready.and_then(|ready| delivery::time(ready.get("lastTransitionTime")));
        let why = ready.and_then(|ready| ready.get("message")?.as_str()).unwrap_or_default();
        let why = crate::text::line(&why);
        let message = format!(
            "Flux cannot fetch the source, so its newest revision may not be the one that is Ready: {why}"
        );
        let finding = finding(Severity::Medium, "SourceFailed").object(&key, since).says(message);
        finding.of(apps).next(cluster.describe(&key))
    };
    failed.into_iter().map(made).collect()
}
