//! Findings: no rule reads the status of a kind, or nothing declares an app's objects.

use std::collections::BTreeMap;

use taffrail_object::Object;
use taffrail_object::json::{Kind, Value};
use taffrail_object::kinds::is_namespaced;

use super::cluster_context::{ByKind, ClusterContext, is_well};
use super::{Concerned, Finding, FindingCategory, Severity, count, is_green};
use crate::command;
use crate::identity::Delivery;
use crate::reads;

/// The name of the rule that judges objects to which no other rule applies.
pub(super) const FALLBACK: &str = "fallback";

pub(super) fn look(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut findings = kinds(cluster);
    findings.extend(empty(cluster));
    findings.extend(without_inventory(cluster));
    findings
}

/// Returns true if an object has a status that is not empty.
pub(super) fn has_status(object: &Object<'_>) -> bool {
    let says = |status: Value<'_>| match status.kind() {
        Kind::Null => false,
        Kind::Object => status.members().is_some_and(|mut members| members.next().is_some()),
        _ => true,
    };
    object.at(&["status"]).is_some_and(says)
}

/// Returns true if the kind of a custom resource has a status subresource; `None` if neither discovery nor the
/// CustomResourceDefinition was read.
pub(super) fn status_is_served(cluster: &ClusterContext<'_>, object: &Object<'_>) -> Option<bool> {
    let served = cluster.objects.has_status_subresource(object.group(), object.version(), object.kind());
    served.or_else(|| cluster.is_defined_with_status(object))
}

/// Finds custom resources that are Ready by the fallback rule, only because they exist; without those that declare
/// apps, and those that have no status although their kind has one.
fn kinds(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    let mut mute: ByKind = BTreeMap::new();
    let mut unread: ByKind = BTreeMap::new();
    for (resource, observed, apps) in cluster.resources() {
        let key = &resource.key;
        let is_custom = is_namespaced(&key.group, &key.kind).is_none();
        if resource.rule != FALLBACK
            || !is_well(resource)
            || !is_custom
            || reads::declaring::declares_apps(&key.group_kind())
        {
            continue;
        }
        let says = has_status(&observed.object);
        // A missing status that a controller should have written is reported as silent.
        if !says && status_is_served(cluster, &observed.object) == Some(true) {
            continue;
        }
        let (objects, all) = if says { &mut unread } else { &mut mute }.entry(key.group_kind()).or_default();
        objects.push(((**key).clone(), None));
        all.extend(apps);
    }
    let unread = unread.into_iter().map(|(kind, (objects, apps))| {
        let resource = command::resource(&kind.group, &kind.kind);
        let next = match objects.as_slice() {
            [(key, _)] => cluster.kubectl(&["get", &resource, &key.name, "-o", "yaml"], &key.namespace),
            _ => cluster.kubectl(&["get", &resource, "-A", "-o", "yaml"], ""),
        };
        let message = format!(
            "{}: no rule reads the status of this kind, and it has no Ready condition; Ready means only that {} \
             present",
            count(objects.len(), "object", "objects"),
            they_are(&objects),
        );
        let finding = Finding::new(FindingCategory::Fallback, Severity::Medium, "NoRule").about(&kind);
        Finding { objects, ..finding }.says(message).of(apps).next(next)
    });
    let mute = mute.into_iter().map(|(kind, (objects, apps))| {
        let message = format!(
            "{}: the kind has no status; Ready means only that {} present",
            count(objects.len(), "object", "objects"),
            they_are(&objects),
        );
        let finding = Finding::new(FindingCategory::Fallback, Severity::Low, "NoStatus").about(&kind);
        Finding { objects, ..finding }.says(message).of(apps)
    });
    unread.chain(mute).collect()
}

pub(super) fn they_are(objects: &Concerned) -> &'static str {
    if objects.len() == 1 { "it is" } else { "they are" }
}

/// Returns one finding about all selected apps declared in this cluster that are green and declare no objects, unless
/// their target was not queried; `None` if there are none.
fn empty(cluster: &ClusterContext<'_>) -> Option<Finding> {
    let is_empty = |place: &usize| {
        let app = &cluster.list.apps[*place];
        app.in_reach && app.resources.is_empty() && is_green(app)
    };
    let places: Vec<usize> = cluster.delivered_by(|_| true).into_iter().filter(is_empty).collect();
    let objects: Vec<_> = places
        .iter()
        .filter_map(|&place| Some((cluster.list.apps[place].declaring.clone()?, None)))
        .collect();
    if places.is_empty() {
        return None;
    }
    let message = match places.len() {
        1 => "the app declares no objects, so Ready says nothing about any workload".to_owned(),
        number => format!("{number} apps declare no objects, so Ready says nothing about any workload"),
    };
    let finding = Finding::new(FindingCategory::Fallback, Severity::Medium, "Empty").about("apps");
    let next = cluster.taffrail(&["get", "apps", "-o", "wide"], "");
    Some(finding.objects(objects).says(message).of(places).next(next))
}

/// Returns one finding about all apps with objects in this cluster that are known only by their labels, so that a
/// missing object would go unnoticed; `None` if there are none.
fn without_inventory(cluster: &ClusterContext<'_>) -> Option<Finding> {
    let apps = cluster.apps().filter(|(_, app)| app.app.delivery == Delivery::Label);
    let apps: Vec<usize> = apps.map(|(place, _)| place).collect();
    if apps.is_empty() {
        return None;
    }
    let message = format!(
        "{} labels: a missing object would go unnoticed",
        match apps.len() {
            1 => "1 app is known only by its".to_owned(),
            number => format!("{number} apps are known only by their"),
        }
    );
    let finding = Finding::new(FindingCategory::Fallback, Severity::Low, "NoInventory").about("label");
    Some(finding.says(message).of(apps))
}
