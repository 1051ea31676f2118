//! Findings: a tool, an object and other reports disagree.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::kinds::is_namespaced;
use taffrail_object::{GroupKind, Object, ObjectKey};
use taffrail_status::{Status, assess};

use super::cluster_context::{ClusterContext, found, is_well, number};
use super::{Concerned, Finding, FindingCategory, Severity, count, is_green};
use crate::app::App;
use crate::claims::MOST_CLAIMANTS;
use crate::delivery::{self, resource_group};
use crate::identity::Delivery;
use crate::scope::Scope;

/// The time for which all Pods of a workload that are not ready must have been so before there is a finding; the
/// workload may need this long to count them.
const MIN_LOST_AGE: SignedDuration = SignedDuration::from_mins(1);

pub(super) fn look(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = pods(cluster);
    findings.extend(words(cluster));
    findings.extend(tools(cluster));
    findings.extend(groups(cluster));
    findings.extend(claims(cluster));
    findings.extend(renewals(cluster));
    findings.extend(runs(cluster));
    findings
}

fn finding(severity: Severity, reason: &'static str) -> Finding {
    Finding::new(FindingCategory::Disagreeing, severity, reason)
}

/// Finds Ready workloads whose status counts more ready Pods than are ready, unless one of their Pods stopped being
/// ready less than [`MIN_LOST_AGE`] ago.
fn pods(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (resource, observed, apps) in cluster.resources() {
        let key = match &*resource.key.kind {
            "Deployment" | "ReplicaSet" | "StatefulSet" => "readyReplicas",
            "DaemonSet" => "numberReady",
            _ => continue,
        };
        let claimed = number(&observed.object, &["status", key]).unwrap_or(0);
        if resource.key.group != "apps"
            || !is_well(resource)
            || claimed <= 0
            || !cluster.has_pods(&resource.key.namespace)
        {
            continue;
        }
        let Some(pods) = cluster.pods(&observed) else { continue };
        let (ready, others): (Vec<_>, Vec<_>) =
            pods.iter().partition(|pod| pod.object.condition_is("Ready", "True"));
        let since =
            |object: &Object<'_>| delivery::time(object.condition("Ready")?.get("lastTransitionTime"));
        let is_fresh =
            others.iter().filter_map(|pod| since(&pod.object)).any(|at| cluster.age(at) < MIN_LOST_AGE);
        let counted = i64::try_from(ready.len()).unwrap_or(i64::MAX);
        if counted >= claimed || is_fresh {
            continue;
        }
        let message = format!(
            "the workload counts {}, but {}",
            count(usize::try_from(claimed).unwrap_or(usize::MAX), "ready Pod", "ready Pods"),
            match (ready.len(), pods.len()) {
                (_, 0) => "it has no Pods".to_owned(),
                (0, _) => "none of its Pods is ready".to_owned(),
                (ready, _) =>
                    format!("only {ready} of its Pods {} ready", if ready == 1 { "is" } else { "are" }),
            }
        );
        let since: Option<Timestamp> = others.iter().filter_map(|pod| since(&pod.object)).min();
        let next = cluster.kubectl(&["get", "pods", "-o", "wide"], &resource.key.namespace);
        let finding = finding(Severity::High, "PodsDiffer").object(&*resource.key, since);
        findings.push(finding.says(message).of(apps).next(next));
    }
    findings
}

/// Paths of fields below `status` in which kinds report their state in a word.
const FIELDS: [&[&str]; 6] =
    [&["phase"], &["state"], &["health"], &["health", "status"], &["status"], &["result"]];

const BAD_WORDS: [&str; 14] = [
    "aborted",
    "broken",
    "crashed",
    "critical",
    "degraded",
    "dead",
    "error",
    "errored",
    "fail",
    "failed",
    "failing",
    "failure",
    "rejected",
    "unhealthy",
];

/// Types of conditions that report a failure when they are `True`.
const BAD_WHEN_TRUE: [&str; 7] =
    ["Degraded", "Error", "Errored", "Failed", "Failing", "Failure", "ReconcileError"];

/// Types of conditions that report a failure when they are `False`.
const BAD_WHEN_FALSE: [&str; 9] = [
    "Accepted",
    "Available",
    "Established",
    "Healthy",
    "Programmed",
    "Reconciled",
    "Succeeded",
    "Synced",
    "Valid",
];

/// Finds objects that are Ready by a rule that is not built in, although a usual field or condition reports a failure.
/// Leaves out the API's own kinds but PersistentVolumes.
fn words(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (resource, observed, apps) in cluster.resources() {
        let is_generic = !resource.rule.starts_with("builtin");
        // For the API's own kinds the meaning of these words is known, except for this one.
        let is_own = is_namespaced(&resource.key.group, &resource.key.kind).is_some();
        let is_judged = is_own && resource.key.kind != "PersistentVolume";
        if !is_well(resource) || !is_generic || is_judged {
            continue;
        }
        let Some((says, since)) = bad_word(&observed.object).or_else(|| bad_condition(&observed.object))
        else {
            continue;
        };
        let rule = &resource.rule;
        let message = format!(
            "the object is Ready by rule {rule}, which does not read this part of its status: {says}"
        );
        let finding = finding(Severity::High, "SaysOtherwise").object(&*resource.key, since);
        findings.push(finding.says(message).of(apps).next(cluster.describe(&resource.key)));
    }
    findings
}

fn bad_word(object: &Object<'_>) -> Option<(String, Option<Timestamp>)> {
    let status = object.at(&["status"])?;
    FIELDS.iter().find_map(|path| {
        let word = status.at(path)?.as_str()?;
        let is_bad = BAD_WORDS.contains(&&*word.to_ascii_lowercase());
        is_bad.then(|| (format!("status.{} is {word}", path.join(".")), None))
    })
}

fn bad_condition(object: &Object<'_>) -> Option<(String, Option<Timestamp>)> {
    let mut conditions = object.at(&["status", "conditions"]).and_then(Value::items)?;
    conditions.find_map(|condition| {
        let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, status) = (text("type"), text("status"));
        let is_bad = match &*status {
            "True" => BAD_WHEN_TRUE.contains(&&*name),
            "False" => BAD_WHEN_FALSE.contains(&&*name),
            _ => false,
        };
        is_bad.then(|| {
            let message = crate::text::line(&text("message"));
            let message = if message.is_empty() { message } else { format!(", {message}") };
            (format!("{name} is {status}{message}"), delivery::time(condition.get("lastTransitionTime")))
        })
    })
}

/// Finds cert-manager Certificates that are Ready but whose last renewal failed.
fn renewals(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (resource, observed, apps) in cluster.resources() {
        let is_certificate =
            (&*resource.key.group, &*resource.key.kind) == ("cert-manager.io", "Certificate");
        let Some(issuing) = observed.object.condition("Issuing").filter(|_| is_certificate) else { continue };
        let text = |key| issuing.get(key).and_then(Value::as_str).unwrap_or_default();
        if !is_well(resource) || text("status") != "False" || text("reason") != "Failed" {
            continue;
        }
        let said = crate::text::line(&text("message"));
        let message = format!("the certificate is valid, but its renewal failed: {said}");
        let since = delivery::time(issuing.get("lastTransitionTime"));
        let finding = finding(Severity::Medium, "RenewalFailed").object(&*resource.key, since);
        findings.push(finding.says(message).of(apps).next(cluster.describe(&resource.key)));
    }
    findings
}

/// Finds Ready CronJobs whose last run is not known to have succeeded, because successful Jobs are removed at once.
fn runs(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (resource, observed, apps) in cluster.resources() {
        let is_cron_job = (&*resource.key.group, &*resource.key.kind) == ("batch", "CronJob");
        let run = assess::unproven_run(&observed.object).filter(|_| is_cron_job && is_well(resource));
        let Some(run) = run else { continue };
        let message = format!(
            "the CronJob keeps no successful Job, so nothing proves that its run of {run} succeeded; keep one \
             (spec.successfulJobsHistoryLimit) for at least a minute"
        );
        let finding = finding(Severity::Low, "SuccessUnseen").object(&*resource.key, Some(run));
        findings.push(finding.says(message).of(apps).next(cluster.describe(&resource.key)));
    }
    findings
}

/// Finds apps that are Ready although their tool reports them as unhealthy, and apps that are Failed or NotFound
/// although it reports them as healthy.
fn tools(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (place, app, observed) in cluster.declared() {
        let object = &observed.object;
        let Some((tool, says, says_well)) = verdict(app, object) else { continue };
        let own = app.effective();
        let (severity, reason, message) = match (own, says_well) {
            (Status::Current, false) => {
                let message = format!(
                    "{tool} calls the app {says}, although all of its objects that were read are Ready"
                );
                (Severity::High, "ToolSaysUnwell", message)
            }
            (Status::Failed | Status::NotFound, true) => {
                let worst =
                    app.worst.as_ref().map(|key| format!("{} {}", key.kind, key.path())).unwrap_or_default();
                let message =
                    format!("{tool} calls the app {says}, but {worst} is {own}: {tool} alone shows green");
                (Severity::Medium, "ToolSaysWell", message)
            }
            _ => continue,
        };
        let next = cluster.explain(app);
        findings
            .push(finding(severity, reason).object(observed.key, None).says(message).of([place]).next(next));
    }
    findings
}

/// Returns the health that a tool reports for its app: the tool's name, its word for the health, and true if that word
/// means healthy.
///
/// Returns `None` if Argo CD's word means neither healthy nor unhealthy, for a Flux app that is not Ready, and for
/// other tools.
fn verdict(app: &App, object: &Object<'_>) -> Option<(&'static str, String, bool)> {
    match app.app.delivery {
        Delivery::ArgoApplication => {
            let says = object.text(&["status", "health", "status"]).into_owned();
            let is_well = match &*says {
                "Healthy" => true,
                "Degraded" | "Missing" => false,
                _ => return None,
            };
            Some(("Argo CD", says, is_well))
        }
        Delivery::FluxKustomization | Delivery::FluxHelmRelease => {
            object.condition_is("Ready", "True").then(|| ("Flux", "Ready".to_owned(), true))
        }
        _ => None,
    }
}

/// Makes a finding for each green app of Config Sync or kpt whose ResourceGroup, of the same namespace and name, calls
/// objects Failed, NotFound or Terminating.
fn groups(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (place, app) in cluster.apps() {
        if !matches!(app.app.delivery, Delivery::ConfigSync | Delivery::Kpt) || !is_green(app) {
            continue;
        }
        let (group, kind) = (resource_group::GROUP, resource_group::KIND);
        let key = ObjectKey::new(group, kind, &*app.app.namespace, &*app.app.name);
        let Some(group) = found(cluster.objects, &key) else { continue };
        let status = resource_group::status_of_tool(&group.object);
        let statuses =
            status.and_then(|status| status.get("resourceStatuses")?.items()).into_iter().flatten();
        let bad: Vec<(ObjectKey, String)> = statuses
            .filter_map(|entry| {
                let says = entry.get("status").and_then(Value::as_str).unwrap_or_default().into_owned();
                let is_bad = matches!(&*says, "Failed" | "NotFound" | "Terminating");
                is_bad.then(|| (resource_group::entry_key(entry), says))
            })
            .collect();
        let Some((first, says)) = bad.first() else { continue };
        let others = match bad.len() - 1 {
            0 => String::new(),
            others => format!(", and {} not Ready either", count(others, "other", "others")),
        };
        let message = format!(
            "the ResourceGroup calls {} {} {says}{others}; Taffrail finds all of its objects Ready",
            first.kind,
            first.path()
        );
        let next = cluster.describe(&key);
        let objects = bad.iter().map(|(key, _)| (key.clone(), None)).collect();
        let finding = Finding { objects, ..finding(Severity::High, "ToolSaysUnwell").about(&key) };
        findings.push(finding.says(message).of([place]).next(next));
    }
    findings
}

/// Finds objects that several apps claim, not counting apps known by labels, and declaring objects with malformed
/// entries.
fn claims(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let errors =
        cluster.list.errors.iter().filter(|error| error.cluster == cluster.name()).map(|it| &it.error);
    let mut overlaps: BTreeMap<(Vec<usize>, GroupKind), Concerned> = BTreeMap::new();
    let mut malformed: BTreeMap<&ObjectKey, Vec<&str>> = BTreeMap::new();
    for error in errors {
        match (&*error.reason, &error.scope) {
            ("Overlap", Scope::Object(key)) => {
                // A label applies nothing, so the version of an app known by it is nobody's.
                let mut apps = cluster.contenders(key);
                apps.retain(|&place| {
                    let app = cluster.list.apps.get(place);
                    app.is_none_or(|app| app.app.delivery != Delivery::Label)
                });
                let place = (apps, key.group_kind());
                overlaps.entry(place).or_default().push((key.clone(), None));
            }
            ("Malformed", Scope::Object(key)) => malformed.entry(key).or_default().push(&error.message),
            _ => {}
        }
    }
    let overlaps = overlaps.into_iter().map(|((apps, kind), objects)| {
        let names: BTreeSet<String> = apps
            .iter()
            .filter_map(|&place| cluster.list.apps.get(place))
            .map(|app| app.app.title_in(cluster.name()))
            .collect();
        let more = names.len().saturating_sub(MOST_CLAIMANTS);
        let mut names: Vec<String> = names.into_iter().take(MOST_CLAIMANTS).collect();
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let who = match objects.len() {
            1 => "the object is".to_owned(),
            number => format!("{number} objects are"),
        };
        let message = format!(
            "{who} claimed by {}: Ready is true only of the version that was applied last",
            names.join(" and by ")
        );
        let next = objects.first().map(|(key, _)| {
            let resource = crate::command::resource(&key.group, &key.kind);
            cluster.kubectl(
                &["get", &resource, &key.name, "--show-managed-fields", "-o", "yaml"],
                &key.namespace,
            )
        });
        let finding =
            Finding { next: next.into_iter().flatten().collect(), ..finding(Severity::Medium, "Overlap") };
        finding.about(kind).objects(objects).says(message).of(apps)
    });
    let malformed = malformed.into_iter().map(|(key, messages)| {
        let apps = cluster.declared_by(key);
        let others = match messages.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more)"),
        };
        let first = messages.first().copied().unwrap_or_default();
        let first = first.strip_prefix(&format!("{} {}: ", key.kind, key.path())).unwrap_or(first);
        let message = format!("{first}{others}: the objects that it should name there are not counted");
        finding(Severity::Medium, "Malformed")
            .object(key, None)
            .says(message)
            .of(apps)
            .next(cluster.describe(key))
    });
    overlaps.chain(malformed).collect()
}
