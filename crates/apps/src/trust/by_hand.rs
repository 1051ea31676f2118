//! Findings: people changed by hand what a delivery tool applied, and the tool has not put it right.

use std::collections::{BTreeSet, HashMap};

use taffrail_object::ObjectKey;

use super::cluster_context::ClusterContext;
use super::{CHANGED_BY_HAND, Finding, FindingCategory, Severity};
use crate::command;
use crate::delivery::by_hand::{ManualChange, ManualChanges, changed_by_hand};
use crate::delivery::fields::MAX_STEPS_OF_NAMESPACE;
use crate::identity::Delivery;
use crate::sync::SyncState;

/// Finds objects that people changed by hand since the tool of an app applied them, by their field managers; of the
/// objects in one namespace at most [`MAX_STEPS_OF_NAMESPACE`] fields are read.
///
/// Argo CD compares the objects of its apps itself and reports OutOfSync; of these apps, only those whose sync state is
/// Unknown are searched.
pub(super) fn look(cluster: &ClusterContext<'_>) -> Vec<Finding> {
    // Who writes managed fields is in the object's namespace.
    let mut steps: HashMap<&str, usize> = HashMap::new();
    let mut findings = Vec::new();
    for (resource, observed, apps) in cluster.resources() {
        let claimants = || apps.iter().filter_map(|place| cluster.list.apps.get(*place));
        let is_compared = claimants()
            .any(|app| app.app.delivery == Delivery::ArgoApplication && app.sync.state != SyncState::Unknown);
        if is_compared {
            continue;
        }
        let deliveries: BTreeSet<Delivery> = claimants().map(|app| app.app.delivery).collect();
        let steps = steps.entry(&resource.key.namespace).or_insert(MAX_STEPS_OF_NAMESPACE);
        let Some(since) = changed_by_hand(&observed.object, &deliveries, steps) else { continue };
        let key: &ObjectKey = &resource.key;
        let kind = command::resource(&key.group, &key.kind);
        let shown = ["get", &*kind, &*key.name, "-o", "yaml", "--show-managed-fields"];
        let next = cluster.kubectl(&shown, &key.namespace);
        let first = since.changes.iter().filter_map(|change| change.when).min();
        findings.push(
            Finding::new(FindingCategory::Disagreeing, Severity::Medium, CHANGED_BY_HAND)
                .object(key, first)
                .since(first)
                .says(message(&since))
                .of(apps)
                .next(next),
        );
    }
    findings
}

/// Returns the message: `the object was changed by hand since helm-controller applied it: kubectl-edit wrote data.key`.
fn message(ManualChanges { tool, changes }: &ManualChanges) -> String {
    let words = |ManualChange { when, fields }: &ManualChange| {
        let by = fields.by.as_deref().unwrap_or_default();
        let more = if fields.more > 0 { format!(" and {} more", fields.more) } else { String::new() };
        let when = if when.is_none() { " (time not known)" } else { "" };
        format!("{by} wrote {}{more}{when}", fields.fields.join(", "))
    };
    let changes: Vec<String> = changes.iter().map(words).collect();
    format!("the object was changed by hand since {tool} applied it: {}", changes.join("; "))
}
