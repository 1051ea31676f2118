//! Finds the fields of an object that people changed by hand since its delivery tool applied it, by its field managers.
//!
//! The API server gives a field to the manager that changed its value, so a field that a tool had set and a person
//! changed is no longer the tool's. A later write by the tool takes it back.

use std::collections::BTreeSet;

use jiff::Timestamp;
use taffrail_object::Object;
use taffrail_object::json::Value;

use super::fields::{CompareSteps, FieldPaths, MAX_DEPTH, MAX_STEPS, written};
use super::{short, text, time};
use crate::identity::Delivery;
use crate::sync::DifferingFields;

/// The maximum number of entries in an object's managed fields that are examined, counted for its delivery tools and
/// for people separately; those after them are ignored.
const MAX_MANAGERS: usize = 10;

/// The fields of an object that people changed by one field manager.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ManualChange {
    /// The time of the field manager's last write; `None` if managed fields do not tell it, as after `kubectl scale`.
    pub(crate) when: Option<Timestamp>,
    /// The fields, with their field manager.
    pub(crate) fields: DifferingFields,
}

/// The changes by hand since a tool applied an object.
#[derive(Debug, Clone, Default)]
pub(crate) struct ManualChanges {
    /// The field manager of the delivery tool that applied the object; of several that which wrote last.
    pub(crate) tool: String,
    /// The changes, at least one: those of an unknown time first, then the oldest.
    pub(crate) changes: Vec<ManualChange>,
}

/// Returns true if a field manager is that of the tool of `delivery`, which is Flux, Argo CD or Helm; false for any
/// other delivery.
fn is_of_tool(delivery: Delivery, manager: &str) -> bool {
    match delivery {
        Delivery::FluxKustomization => manager == "kustomize-controller",
        Delivery::FluxHelmRelease => manager == "helm-controller",
        Delivery::Helm => manager == "helm",
        Delivery::ArgoApplication => manager.starts_with("argocd"),
        _ => false,
    }
}

/// Returns true if a field manager is that of a program by which people write, Taffrail's verbs and actions included;
/// controllers have others.
fn is_of_people(manager: &str) -> bool {
    let manager = manager.strip_suffix(".exe").unwrap_or(manager);
    matches!(
        manager,
        "taffrail" | "kubectl" | "oc" | "k9s" | "dashboard" | "headlamp-server" | "node-fetch" | "Mozilla"
    ) || manager.starts_with("kubectl-")
}

/// Returns the fields that people changed by hand in an object since a tool of `deliveries` applied it; `None` if there
/// are none, or if no such tool is among the field managers.
///
/// The object's labels and annotations do not count, for a tool may well leave them to people, nor does the status.
/// `steps` is the number of fields that may be read; the number of fields read is subtracted from it.
pub(crate) fn changed_by_hand(
    object: &Object<'_>,
    deliveries: &BTreeSet<Delivery>,
    steps: &mut usize,
) -> Option<ManualChanges> {
    let is_applied = |manager: &str| deliveries.iter().any(|delivery| is_of_tool(*delivery, manager));
    let entries = || {
        object.managed_fields().filter_map(|entry| {
            let is_of_status = entry.get("subresource").is_some_and(|it| it.is_str("status"));
            Some((text(entry, &["manager"])?, entry)).filter(|_| !is_of_status)
        })
    };
    let applied: Vec<(String, Value<'_>)> =
        entries().filter(|(manager, _)| is_applied(manager)).take(MAX_MANAGERS).collect();
    let (tool, last) = applied
        .iter()
        .map(|(manager, entry)| (manager, time(entry.get("time"))))
        .max_by_key(|(_, last)| *last)?;
    let owned: Vec<Value<'_>> = applied.iter().filter_map(|(_, entry)| entry.get("fieldsV1")).collect();
    let by_people = entries().filter(|(manager, _)| is_of_people(manager)).take(MAX_MANAGERS);
    let mut changes: Vec<ManualChange> = by_people
        .filter_map(|(manager, entry)| {
            let when = time(entry.get("time"));
            if when.is_some_and(|when| last.is_some_and(|last| when <= last)) {
                return None;
            }
            let granted = (*steps).min(MAX_STEPS);
            let mut of_entry = CompareSteps { left: granted, is_cut: false };
            let mut paths = FieldPaths::without_metadata();
            written(entry.get("fieldsV1")?, &owned, "", MAX_DEPTH, &mut of_entry, &mut paths);
            *steps -= granted - of_entry.left;
            Some(ManualChange { when, fields: paths.by(Some(short(manager)))? })
        })
        .collect();
    changes.sort();
    (!changes.is_empty()).then(|| ManualChanges { tool: short(tool.clone()), changes })
}
