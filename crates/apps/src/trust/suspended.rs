//! Findings: a user suspended, paused or excluded something.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_object::ObjectKey;
use taffrail_object::json::Value;

use super::cluster_context::{ClusterContext, found, is_set, is_well};
use super::{Concerned, Finding, FindingCategory, Severity, is_green};
use crate::command;
use crate::delivery::{by, suspending_field, written};
use crate::identity::Delivery;
use crate::sync::SyncState;

pub(super) fn look(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = apps(cluster);
    findings.extend(sources(cluster));
    findings.extend(objects(cluster));
    findings.extend(argo(cluster));
    findings
}

fn finding(severity: Severity, reason: &'static str) -> Finding {
    Finding::new(FindingCategory::Suspended, severity, reason)
}

/// Makes one finding for each delivery tool about its suspended apps that are declared in this cluster.
fn apps(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut suspended: BTreeMap<Delivery, (Vec<usize>, Concerned, BTreeSet<String>)> = BTreeMap::new();
    for (place, app, observed) in cluster.declared().filter(|(_, app, _)| app.suspended) {
        let field = suspending_field(app.app.delivery);
        let since = written(&observed.object, field);
        let (places, objects, authors) = suspended.entry(app.app.delivery).or_default();
        authors.insert(by(&observed.object, field));
        places.push(place);
        objects.push((observed.key.to_owned(), since));
    }
    let made = |(delivery, (places, objects, mut authors)): (
        Delivery,
        (Vec<usize>, Concerned, BTreeSet<String>),
    )| {
        // A list of several authors would say less than the apps themselves.
        let by = authors.pop_first().filter(|_| authors.is_empty()).unwrap_or_default();
        let message = match places.len() {
            1 => format!(
                "the app is suspended{by}: its tool applies no changes of its source and reverts none made by hand"
            ),
            number => format!(
                "{number} apps are suspended{by}: their tool applies no changes of their sources and reverts none made \
                 by hand"
            ),
        };
        let next = cluster.taffrail(&["get", "apps", "--suspended", "--delivery", delivery.as_str()], "");
        finding(Severity::Low, "Suspended")
            .about(delivery)
            .objects(objects)
            .says(message)
            .of(places)
            .next(next)
    };
    suspended.into_iter().map(made).collect()
}

/// Finds the suspended sources of Flux apps that are not suspended themselves.
fn sources(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut suspended = cluster.sources_of(|app| !app.suspended);
    suspended.retain(|key, _| {
        let source = found(cluster.objects, key);
        source.is_some_and(|source| is_set(&source.object, &["spec", "suspend"]))
    });
    let made = |(key, apps): (ObjectKey, BTreeSet<usize>)| {
        let source = found(cluster.objects, &key);
        let since = source.and_then(|source| written(&source.object, &["spec", "suspend"]));
        let message = format!(
            "the source is suspended: Flux does not fetch it, so {} Synced whatever is pushed",
            if apps.len() == 1 {
                "its app stays".to_owned()
            } else {
                format!("its {} apps stay", apps.len())
            }
        );
        let kind = command::resource(&key.group, &key.kind);
        let next = cluster.kubectl(&["get", &kind, &key.name], &key.namespace);
        finding(Severity::Medium, "SourceSuspended").object(&key, since).says(message).of(apps).next(next)
    };
    suspended.into_iter().map(made).collect()
}

/// A field that users set to stop the reconciliation of an object, which then still counts as Ready.
struct Switch {
    reason: &'static str,
    kind: &'static str,
    message: &'static str,
    path: &'static [&'static str],
}

const SWITCHES: [Switch; 3] = [
    Switch {
        reason: "Paused",
        kind: "Deployment",
        message: "the Deployment is paused: a changed template is not rolled out",
        path: &["spec", "paused"],
    },
    Switch {
        reason: "CronJobSuspended",
        kind: "CronJob",
        message: "the CronJob is suspended: no Job is started",
        path: &["spec", "suspend"],
    },
    Switch {
        reason: "JobSuspended",
        kind: "Job",
        message: "the Job is suspended: it does not run",
        path: &["spec", "suspend"],
    },
];

/// Annotations and labels by which users exclude one object from a tool: key, value, and the consequence.
const KEPT_AWAY: [(&str, &str, &str); 5] = [
    (
        "kustomize.toolkit.fluxcd.io/reconcile",
        "disabled",
        "Flux does not apply the object any more: its kustomize.toolkit.fluxcd.io/reconcile is disabled",
    ),
    (
        "kustomize.toolkit.fluxcd.io/ssa",
        "Ignore",
        "Flux does not apply the object any more: its kustomize.toolkit.fluxcd.io/ssa is Ignore",
    ),
    (
        "kustomize.toolkit.fluxcd.io/ssa",
        "IfNotPresent",
        "Flux made the object and does not apply changes to it: its kustomize.toolkit.fluxcd.io/ssa is IfNotPresent",
    ),
    (
        "helm.toolkit.fluxcd.io/driftDetection",
        "disabled",
        "Flux does not check if the object was changed by hand: its helm.toolkit.fluxcd.io/driftDetection is disabled",
    ),
    (
        "configmanagement.gke.io/managed",
        "disabled",
        "Config Sync does not apply the object any more: its configmanagement.gke.io/managed is disabled",
    ),
];

fn objects(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    type SwitchedOff = (BTreeSet<usize>, Concerned, String);

    let mut off: BTreeMap<(&'static str, String), SwitchedOff> = BTreeMap::new();
    for (resource, observed, apps) in cluster.resources() {
        let object = &observed.object;
        let is_well = is_well(resource);
        let switched = SWITCHES
            .iter()
            .filter(|switch| is_well && switch.kind == resource.key.kind && is_set(object, switch.path));
        let switched = switched.map(|switch| (switch.reason, switch.message, written(object, switch.path)));
        let kept_away = KEPT_AWAY.iter().filter(|(key, value, _)| {
            ["annotations", "labels"].iter().any(|place| object.text(&["metadata", place, key]) == *value)
        });
        let kept_away = kept_away
            .map(|(key, _, message)| (*key, *message, written(object, &["metadata", "annotations", key])));
        let kept_away = kept_away.map(|(_, message, since)| ("NotApplied", message, since));
        let idle = is_well && is_idle(object);
        let idle = idle.then_some((
            "ScalingDisabled",
            "the autoscaler does not scale: its target is scaled to 0",
            None,
        ));
        for (reason, message, since) in switched.chain(kept_away).chain(idle) {
            let place = (reason, format!("{}{message}", resource.key.group_kind()));
            let (all, objects, says) = off.entry(place).or_default();
            message.clone_into(says);
            all.extend(&apps);
            objects.push(((*resource.key).clone(), since));
        }
    }
    let made = |((reason, _), (apps, objects, message)): ((&'static str, String), SwitchedOff)| {
        let kind = objects.first().map(|(key, _)| key.group_kind());
        let message = match objects.len() {
            1 => message,
            number => format!("{number} objects, each: {message}"),
        };
        let next = match objects.as_slice() {
            [(key, _)] => {
                let kind = command::resource(&key.group, &key.kind);
                cluster.kubectl(&["get", &kind, &key.name, "-o", "yaml"], &key.namespace)
            }
            _ => {
                let kind = kind.as_ref().map(|kind| command::resource(&kind.group, &kind.kind));
                cluster.kubectl(&["get", &kind.unwrap_or_default(), "-A"], "")
            }
        };
        let scope = kind.map(|kind| kind.to_string()).unwrap_or_default();
        finding(Severity::Low, reason).about(scope).objects(objects).says(message).of(apps).next(next)
    };
    off.into_iter().map(made).collect()
}

/// Returns true for a HorizontalPodAutoscaler that is inactive because its target is scaled to 0.
fn is_idle(object: &taffrail_object::Object<'_>) -> bool {
    object.kind() == "HorizontalPodAutoscaler"
        && object.condition("ScalingActive").is_some_and(|it| {
            let is = |key: &str, text: &str| it.get(key).is_some_and(|value| value.is_str(text));
            is("status", "False") && is("reason", "ScalingDisabled")
        })
}

/// Finds Applications, other than suspended ones, that are green and OutOfSync with automatic sync off, and those that
/// ignore differences.
fn argo(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (place, app, observed) in cluster.declared() {
        if app.app.delivery != Delivery::ArgoApplication || app.suspended {
            continue;
        }
        let object = &observed.object;
        let automated = object.at(&["spec", "syncPolicy", "automated"]).filter(|it| !it.is_null());
        let is_off = automated.is_none_or(|it| it.get("enabled").and_then(Value::as_bool) == Some(false));
        if is_off && app.sync.state == SyncState::OutOfSync && is_green(app) {
            let message = "the Application is OutOfSync and automatic sync is off: what is Ready is not the desired state";
            let next = cluster.taffrail(&["app", &app.app.name], &app.app.namespace);
            findings.push(
                finding(Severity::Medium, "ManualSync")
                    .object(observed.key, None)
                    .says(message)
                    .of([place])
                    .next(next),
            );
        }
        let ignored = object.at(&["spec", "ignoreDifferences"]).and_then(Value::items).into_iter().flatten();
        let ignored: Vec<String> = ignored.map(ignored_fields).collect();
        if !ignored.is_empty() {
            let message = format!(
                "the Application counts as Synced whatever these fields contain: {}",
                ignored.join("; ")
            );
            findings.push(
                finding(Severity::Low, "IgnoreDifferences")
                    .object(observed.key, None)
                    .says(message)
                    .of([place]),
            );
        }
    }
    findings
}

/// Describes the fields that a rule of `ignoreDifferences` excludes, with the kind and name to which it applies.
fn ignored_fields(rule: Value<'_>) -> String {
    let text = |key| rule.get(key).and_then(Value::as_str).unwrap_or_default().into_owned();
    let lists = ["jsonPointers", "jqPathExpressions", "managedFieldsManagers"];
    let fields = lists.iter().filter_map(|key| rule.get(key)?.items()).flatten();
    let fields: Vec<String> = fields.filter_map(|field| field.as_str().map(|it| it.into_owned())).collect();
    let name = if text("name").is_empty() { String::new() } else { format!(" {}", text("name")) };
    format!("{}{name} {}", text("kind"), fields.join(" "))
}
