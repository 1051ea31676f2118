//! Findings: a node, controller or delivery tool stopped reporting.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::{GroupKind, Object, ObjectKey, ObjectKeyRef};
use taffrail_status::{Observed, Trust};

use super::cluster_context::{ClusterContext, changed, is_set, is_well, moment, number};
use super::fallback::{FALLBACK, has_status, status_is_served, they_are};
use super::{Concerned, Finding, FindingCategory, Severity};
use crate::app::App;
use crate::command;
use crate::delivery::argo::installs::{Standing, argo_standing};
use crate::delivery::controllers::{CONTROLLERS, Controller, Stops};
use crate::delivery::{self, argo, flux, span};
use crate::identity::Delivery;
use crate::sync::{SyncState, shorten};

/// The time by which a Lease may be overdue without a finding, so that one or two late renewals do not matter.
const LEASE_TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// The time that a controller may take to observe a change without a finding.
const MAX_REACTION_TIME: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn look(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = control_plane(cluster);
    findings.extend(nodes(cluster));
    findings.extend(deliverers(cluster));
    findings.extend(generations(cluster));
    findings.extend(without_status(cluster));
    findings.extend(flux_apps(cluster));
    findings.extend(argo_apps(cluster));
    findings
}

fn finding(reason: &'static str) -> Finding {
    Finding::new(FindingCategory::Silent, Severity::High, reason)
}

/// Returns the time of the last renewal of a Lease that has expired for longer than [`LEASE_TOLERANCE`]; `None` for
/// any other Lease.
fn expired(cluster: &ClusterContext<'_>, lease: &Observed<'_>) -> Option<Timestamp> {
    let renewed = moment(&lease.object, &["spec", "renewTime"])?;
    let lasts = number(&lease.object, &["spec", "leaseDurationSeconds"]).unwrap_or(15).clamp(1, 86_400);
    (cluster.age(renewed) > SignedDuration::from_secs(lasts) + LEASE_TOLERANCE).then_some(renewed)
}

/// The Leases of Kubernetes' own controllers, each with the consequence if it is not renewed.
const CONTROL_PLANE: [(&str, &str); 2] = [
    (
        "kube-controller-manager",
        "the statuses of Deployments, ReplicaSets, Nodes and others are not updated: all of them may be old",
    ),
    ("kube-scheduler", "lost Pods are not scheduled again: what is Ready now does not recover by itself"),
];

fn control_plane(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let leases = cluster.leases().filter(|lease| lease.key.namespace == "kube-system");
    let dead = leases.filter_map(|lease| {
        let (name, means) = CONTROL_PLANE.iter().find(|(name, _)| lease.key.name == *name)?;
        let since = expired(cluster, &lease)?;
        let message = format!("{name} does not renew its lease: {means}");
        let next = cluster.kubectl(&["get", "pods", "-l", &format!("component={name}")], "kube-system");
        let apps = cluster.apps().map(|(place, _)| place);
        Some(finding("ControlPlane").object(lease.key, Some(since)).says(message).of(apps).next(next))
    });
    dead.collect()
}

/// Finds nodes whose kubelet does not renew its Lease; of high severity if a Pod on the node still counts as ready,
/// else of low severity.
fn nodes(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let leases = cluster.leases().filter(|lease| lease.key.namespace == "kube-node-lease");
    let lost: BTreeMap<&str, (ObjectKeyRef<'_>, Timestamp)> =
        leases.filter_map(|lease| Some((lease.key.name, (lease.key, expired(cluster, &lease)?)))).collect();
    if lost.is_empty() {
        return Vec::new();
    }
    let mut ready: BTreeMap<&str, (usize, BTreeSet<usize>)> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for pod in cluster.objects.of_kind("", "Pod", None) {
        let node = pod.object.text(&["spec", "nodeName"]);
        let Some((&node, _)) = lost.get_key_value(&*node) else { continue };
        if pod.object.condition_is("Ready", "True") {
            let (pods, apps) = ready.entry(node).or_default();
            *pods += 1;
            // Many Pods of one maker belong to the same apps.
            let claimed =
                cluster.claimed(&pod.key.to_owned()).filter(|(claimed, _)| seen.insert((node, *claimed)));
            apps.extend(claimed.into_iter().flat_map(|(_, apps)| apps));
        }
    }
    let made = |(node, (_, since)): (&str, (ObjectKeyRef<'_>, Timestamp))| {
        let (pods, apps) = ready.remove(node).unwrap_or_default();
        let key = ObjectKey::new("", "Node", "", node);
        let next = cluster.describe(&key);
        let still = match pods {
            0 => "no Pod on it is called ready".to_owned(),
            1 => "1 Pod on it is still called ready".to_owned(),
            pods => format!("{pods} Pods on it are still called ready"),
        };
        let message = format!("the node's kubelet does not renew its lease; {still}");
        let severity = if pods == 0 { Severity::Low } else { Severity::High };
        let finding = Finding { severity, ..finding("Node") };
        finding.object(&key, Some(since)).says(message).of(apps).next(next)
    };
    lost.into_iter().map(made).collect()
}

/// Returns the Leases of a controller of a delivery tool, by their names. They are in the tool's namespace or, for Argo
/// CD, in one where an Argo CD is known to run.
fn leases_of<'a>(cluster: &ClusterContext<'a>, deliverer: &Controller) -> Vec<Observed<'a>> {
    // Any author can give a Lease such a name.
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let mut is_of_one = |namespace: &str| {
        namespace == deliverer.namespace
            || deliverer.of.contains(&Delivery::ArgoApplication)
                && *known.entry(namespace.to_owned()).or_insert_with(|| {
                    argo_standing(cluster.objects, namespace, Trust::NONE) == Standing::Known
                })
    };
    let leases = cluster.leases().filter(|lease| {
        lease.key.name.starts_with(deliverer.name)
            && lease.key.name.ends_with("leader-election")
            && is_of_one(lease.key.namespace)
    });
    leases.collect()
}

/// Returns the names of the controllers of Kubernetes, and of those of the delivery tools of apps declared in this
/// cluster, that have no Lease; empty if no Lease, or not all, were read.
pub(super) fn without_lease(cluster: &ClusterContext<'_>) -> Vec<String> {
    let is_known = cluster.objects.is_observed("coordination.k8s.io", "Lease", None);
    if !is_known || cluster.leases().next().is_none() {
        return Vec::new();
    }
    let of_kubernetes = CONTROL_PLANE.iter().map(|(name, _)| *name).filter(|name| {
        !cluster.leases().any(|lease| (lease.key.namespace, lease.key.name) == ("kube-system", *name))
    });
    let is_used =
        |it: &&Controller| !cluster.delivered_by(|app| it.of.contains(&app.app.delivery)).is_empty();
    let of_tools = CONTROLLERS.iter().filter(is_used).filter(|it| leases_of(cluster, it).is_empty());
    of_kubernetes.chain(of_tools.map(|it| it.name)).map(str::to_owned).collect()
}

/// Finds stopped controllers of the delivery tools of apps declared in this cluster: by their workloads, else by their
/// Leases if all of these have expired.
fn deliverers(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for deliverer in &CONTROLLERS {
        let apps = cluster.delivered_by(|app| deliverer.of.contains(&app.app.delivery));
        if apps.is_empty() {
            continue;
        }
        let stopped =
            deliverer.stopped(cluster.objects, None, &Stops::default()).map(|it| (it.key, it.since, it.how));
        let lease = || {
            // One of several replicas may have been removed for good.
            let leases = leases_of(cluster, deliverer);
            let renewed: Option<Vec<Timestamp>> =
                leases.iter().map(|lease| expired(cluster, lease)).collect();
            let newest = renewed?.into_iter().max()?;
            let key = leases.first().map(|lease| lease.key.to_owned())?;
            Some((key, Some(newest), "does not renew its lease".to_owned()))
        };
        if let Some((key, since, how)) = stopped.or_else(lease) {
            let message = format!("{} {how}: {}", deliverer.name, deliverer.means);
            let next = match &*key.kind {
                "Lease" => cluster.kubectl(&["get", "pods"], &key.namespace),
                _ => cluster.describe(&key),
            };
            findings.push(finding("Deliverer").object(&key, since).says(message).of(apps).next(next));
        }
    }
    findings
}

/// Finds objects whose newest generation the controller has not observed for [`MAX_REACTION_TIME`], or since an unknown
/// time; leaves out suspended and paused ones. Makes one finding for each kind.
fn generations(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    type LaggingObjects = (BTreeSet<usize>, Concerned, bool);

    let mut behind: BTreeMap<GroupKind, LaggingObjects> = BTreeMap::new();
    let declaring = cluster.declared().filter(|(_, app, _)| !app.suspended);
    let declaring =
        declaring.map(|(place, app, observed)| (observed, vec![place], super::is_green(app), "builtin"));
    let declared = cluster.resources().map(|(resource, observed, apps)| {
        (observed, apps, is_well(resource), if resource.rule.starts_with("builtin") { "builtin" } else { "" })
    });
    let mut seen = BTreeSet::new();
    for (observed, apps, is_green, rule) in declared.chain(declaring) {
        let object = &observed.object;
        if !seen.insert(observed.key)
            || is_set(object, &["spec", "suspend"])
            || is_set(object, &["spec", "paused"])
        {
            continue;
        }
        let Some(generation) = number(object, &["metadata", "generation"]) else { continue };
        // Flux's `observedGeneration` covers only successful reconciliations. Without one for the whole
        // object, those of the conditions count.
        let is_flux = observed.key.group.ends_with(".toolkit.fluxcd.io");
        let looked = number(object, &["status", "observedGeneration"]).filter(|_| !is_flux);
        let is_known = rule == "builtin" && !is_flux;
        let looked = looked.or_else(|| if is_known { None } else { newest_of_conditions(object) });
        if looked.is_none_or(|looked| looked >= generation) {
            continue;
        }
        let since = changed(object);
        if since.is_some_and(|since| cluster.age(since) < MAX_REACTION_TIME) {
            continue;
        }
        let (all, objects, any_green) = behind.entry(observed.key.group_kind()).or_default();
        all.extend(apps);
        objects.push((observed.key.to_owned(), since));
        *any_green |= is_green;
    }
    let made = |(kind, (apps, objects, is_green)): (GroupKind, LaggingObjects)| {
        let who = match objects.len() {
            1 => "the object was changed, and its controller has not observed the change".to_owned(),
            number => {
                format!("{number} objects were changed, and their controller has not observed the changes")
            }
        };
        let message =
            if is_green { format!("{who}: Ready describes the state before the change") } else { who };
        let next = objects.first().map(|(key, _)| cluster.describe(key));
        let severity = if is_green { Severity::High } else { Severity::Low };
        let finding =
            Finding { severity, next: next.into_iter().flatten().collect(), ..finding("NotObserved") };
        finding.about(kind).objects(objects).says(message).of(apps)
    };
    behind.into_iter().map(made).collect()
}

/// Returns the highest `observedGeneration` among an object's conditions; `None` if no condition has one.
fn newest_of_conditions(object: &Object<'_>) -> Option<i64> {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::items)?;
    conditions.filter_map(|condition| condition.get("observedGeneration")?.as_i64()).max()
}

/// Finds custom resources that are Ready by the fallback rule and have no status although their kind has one; created
/// [`MAX_REACTION_TIME`] ago or earlier, or at an unknown time.
fn without_status(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut mute: super::cluster_context::ByKind = BTreeMap::new();
    for (resource, observed, apps) in cluster.resources() {
        let object = &observed.object;
        if resource.rule != FALLBACK || !is_well(resource) || has_status(object) {
            continue;
        }
        let created = moment(object, &["metadata", "creationTimestamp"]);
        let is_old = created.is_none_or(|created| cluster.age(created) >= MAX_REACTION_TIME);
        if is_old && status_is_served(cluster, object) == Some(true) {
            let (objects, all) = mute.entry(resource.key.group_kind()).or_default();
            objects.push(((*resource.key).clone(), created));
            all.extend(apps);
        }
    }
    let made = |(kind, (objects, apps)): (GroupKind, (Concerned, BTreeSet<usize>))| {
        let whose = match objects.len() {
            1 => "this object".to_owned(),
            number => format!("any of these {number} objects"),
        };
        let message = format!(
            "no controller has ever written a status of {whose}: Ready means only that {} present",
            they_are(&objects)
        );
        let resource = command::resource(&kind.group, &kind.kind);
        let next = cluster.kubectl(&["get", &resource, "-A"], "");
        let finding = Finding { severity: Severity::Medium, ..finding("NoFirstStatus") };
        finding.about(kind).objects(objects).says(message).of(apps).next(next)
    };
    mute.into_iter().map(made).collect()
}

/// A sign that the controller of a Flux object does not reconcile it: the reason, the time since when, and the
/// message.
struct Forgotten {
    reason: &'static str,
    since: Timestamp,
    message: String,
}

fn flux_apps(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let is_flux =
        |app: &App| matches!(app.app.delivery, Delivery::FluxKustomization | Delivery::FluxHelmRelease);
    let apps = cluster.declared().filter(|(_, app, _)| is_flux(app) && !app.suspended);
    let forgotten = apps.filter_map(|(place, app, observed)| {
        let forgotten = unheard(cluster, &observed)
            .or_else(|| overdue(cluster, &observed))
            .or_else(|| untried(cluster, app, &observed))?;
        let kind = command::resource(observed.key.group, observed.key.kind);
        let next = cluster.kubectl(&["get", &kind, observed.key.name, "-o", "yaml"], observed.key.namespace);
        let finding = finding(forgotten.reason).object(observed.key, Some(forgotten.since));
        Some(finding.says(forgotten.message).of([place]).next(next))
    });
    forgotten.collect()
}

/// Returns a sign if the reconciliation requested by annotation was not handled within [`MAX_REACTION_TIME`]; else
/// `None`.
fn unheard(cluster: &ClusterContext<'_>, observed: &Observed<'_>) -> Option<Forgotten> {
    let asked = observed.object.text(&["metadata", "annotations", "reconcile.fluxcd.io/requestedAt"]);
    let since: Timestamp = asked.parse().ok()?;
    let is_handled = observed.object.text(&["status", "lastHandledReconcileAt"]) == asked;
    (!is_handled && cluster.age(since) > MAX_REACTION_TIME).then(|| Forgotten {
        reason: "RequestUnheard",
        since,
        message: "a reconciliation of the app was requested, but its controller has not handled it"
            .to_owned(),
    })
}

/// Returns a sign if the last reconciliation in the object's history is longer ago than twice its interval plus
/// [`MAX_REACTION_TIME`]; else `None`.
fn overdue(cluster: &ClusterContext<'_>, observed: &Observed<'_>) -> Option<Forgotten> {
    let object = &observed.object;
    let history = object.at(&["status", "history"]).and_then(Value::items)?;
    let last = history.filter_map(|entry| delivery::time(entry.get("lastReconciled"))).max()?;
    let interval = span(&object.text(&["spec", "interval"]))?;
    let allowed = interval.saturating_mul(2).saturating_add(MAX_REACTION_TIME);
    (cluster.age(last) > allowed).then(|| Forgotten {
        reason: "Overdue",
        since: last,
        message: format!(
            "the app was last reconciled longer ago than its interval of {} allows",
            object.text(&["spec", "interval"])
        ),
    })
}

/// Returns a sign if the app is Ready but OutOfSync, because its source fetched a new revision more than twice
/// [`MAX_REACTION_TIME`] ago that the controller has not tried; else `None`.
fn untried<'a>(cluster: &ClusterContext<'a>, app: &App, observed: &Observed<'a>) -> Option<Forgotten> {
    let is_ready = observed.object.condition_is("Ready", "True");
    let desired = app.sync.desired.as_ref()?;
    if app.sync.state != SyncState::OutOfSync || !is_ready || flux::is_unseen(observed, &app.sync) {
        return None;
    }
    let source = cluster.sources(observed).pop()?;
    let since = cluster.fetched(&source)?;
    (cluster.age(since) > MAX_REACTION_TIME * 2).then(|| Forgotten {
        reason: "RevisionUntried",
        since,
        message: format!(
            "{} {} has revision {}, and the controller of the app has not tried it",
            source.kind,
            source.path(),
            shorten(desired)
        ),
    })
}

fn argo_apps(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let apps = cluster
        .declared()
        .filter(|(_, app, _)| app.app.delivery == Delivery::ArgoApplication && !app.suspended);
    let old = apps.filter_map(|(place, _, observed)| {
        let at = argo::compared_at(&observed.object)?;
        (cluster.age(at) > argo::MAX_COMPARISON_AGE).then(|| (place, observed.key.to_owned(), at))
    });
    let old: Vec<_> = old.collect();
    let Some((_, first, _)) = old.first() else { return Vec::new() };
    let message = match old.len() {
        1 => "Argo CD has not compared the Application with its source for more than 30 min".to_owned(),
        number => {
            format!("Argo CD has not compared {number} Applications with their sources for more than 30 min")
        }
    };
    let next = cluster.kubectl(&["get", "pods"], &first.namespace);
    let apps: Vec<usize> = old.iter().map(|(place, _, _)| *place).collect();
    let objects = old.into_iter().map(|(_, key, at)| (key, Some(at))).collect();
    vec![
        finding("NotCompared")
            .about("argoproj.io/Application")
            .objects(objects)
            .says(message)
            .of(apps)
            .next(next),
    ]
}
