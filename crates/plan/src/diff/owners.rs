//! The managers that own fields, and the class of a difference by them.

use jiff::Timestamp;
use serde::Serialize;
use taffrail_merge::{FieldSet, ManagedEntry, Path, PathElement, PathText};
use taffrail_object::LAST_APPLIED;

/// A manager that owns a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldManager {
    /// Its name.
    pub manager: String,
    /// The kind of its writes.
    pub operation: ManagerOperation,
    /// The subresource by which it wrote the field, such as `status`; empty for the object itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// The time at which its fields changed last, by the clock of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// Kinds of writes by managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ManagerOperation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// The class of a difference: whose the field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceClass {
    /// No other manager owns the field: the manifest changed, or the field is new.
    Change,
    /// The set applied the field last time, and another manager has changed or removed it since.
    Drift,
    /// Another manager owns the field, and the set did not apply it last time, or applies it together with that manager.
    Conflict,
}

/// Returns true if the manager applied on the client's side and left a copy of what it applied.
pub(super) fn is_client_side(entry: &ManagedEntry) -> bool {
    let copy = ["metadata", "annotations", LAST_APPLIED].map(|name| PathElement::Field(name.to_owned()));
    !entry.is_applied && entry.fields.contains(&copy)
}

/// A set of fields, to be asked for many paths.
#[derive(Debug, Clone, Default)]
pub(super) struct Owned(Vec<Path>);

impl Owned {
    pub(super) fn new(fields: &FieldSet) -> Owned {
        Owned(fields.paths())
    }

    /// Returns true if a field, or one below it, is in the set.
    pub(super) fn touches(&self, path: &Path) -> bool {
        let at = self.0.partition_point(|known| known < path);
        self.0.get(at).is_some_and(|known| known.starts_with(path))
    }
}

/// The owners of an object's fields, from its `managedFields`.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// The fields of our own manager.
    own: Owned,
    /// The part of `own` that our manager applied, on the server's or on the client's side: an apply removes what is no longer
    /// wanted of it.
    own_applied: Owned,
    others: Vec<(FieldManager, Owned)>,
    /// The fields of those others that did not apply on the client's side.
    foreign: Owned,
    /// The fields that the set applied last time, where that is known.
    applied: Option<Owned>,
    /// The paths of conflicts, as the API server wrote them.
    conflicts: Vec<String>,
    /// True if the live object names no managers: at the first apply the server makes one, which owns all that is there.
    are_unnamed: bool,
}

impl Owners {
    /// Reads the owners of fields at the `apiVersion` `version`; those at other ones are left out.
    pub(super) fn new(
        entries: &[ManagedEntry],
        manager: &str,
        version: &str,
        applied: Option<&FieldSet>,
        by_client: Option<&FieldSet>,
        conflicts: Vec<String>,
    ) -> Owners {
        let (own, others): (Vec<&ManagedEntry>, Vec<&ManagedEntry>) = entries
            .iter()
            .filter(|entry| entry.version == version)
            .partition(|entry| entry.manager == manager);
        let none = FieldSet::default();
        let own_applied = own.iter().filter(|entry| entry.is_applied);
        let by_client = by_client.cloned().unwrap_or_default();
        let own_applied = own_applied.fold(by_client, |all, entry| all.union(&entry.fields));
        let own = own.into_iter().fold(none.clone(), |all, entry| all.union(&entry.fields));
        let foreign = others.iter().filter(|entry| !is_client_side(entry));
        let foreign = foreign.fold(none, |all, entry| all.union(&entry.fields));
        let others = others.into_iter().map(|entry| {
            let operation = if entry.is_applied { ManagerOperation::Apply } else { ManagerOperation::Update };
            let manager = FieldManager {
                manager: entry.manager.clone(),
                operation,
                subresource: entry.subresource.clone(),
                since: entry.time,
            };
            (manager, Owned::new(&entry.fields))
        });
        Owners {
            own: Owned::new(&own),
            own_applied: Owned::new(&own_applied),
            others: others.collect(),
            foreign: Owned::new(&foreign),
            applied: applied.map(Owned::new),
            conflicts,
            are_unnamed: entries.is_empty(),
        }
    }

    /// Returns true if our own manager applied a field or one below it, or the set applied it last time.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        self.own_applied.touches(path) || self.applied.as_ref().is_some_and(|applied| applied.touches(path))
    }

    /// Returns true if nobody owns a field or one below it but our own manager, and those who applied on the client's side.
    pub(super) fn is_by_client_alone(&self, path: &Path) -> bool {
        !self.foreign.touches(path)
    }

    /// Returns the managers other than our own that own a field or one below it.
    pub(super) fn others(&self, path: &Path) -> Vec<FieldManager> {
        let others = self.others.iter().filter(|(_, owned)| owned.touches(path));
        others.map(|(manager, _)| manager.clone()).collect()
    }

    /// Returns true if no manager of the live object is known.
    pub(super) fn are_unnamed(&self) -> bool {
        self.are_unnamed
    }

    /// Returns the class of a difference. A field that is no longer wanted is removed only where nobody else owns it.
    pub(super) fn class(&self, path: &Path, is_removed: bool, has_others: bool) -> DifferenceClass {
        if is_removed {
            return DifferenceClass::Change;
        }
        let is_own = self.own.touches(path);
        let was_applied = self.applied.as_ref().is_some_and(|applied| applied.touches(path));
        if was_applied && !is_own {
            DifferenceClass::Drift
        } else if has_others || self.is_in_conflict(path) {
            DifferenceClass::Conflict
        } else {
            DifferenceClass::Change
        }
    }

    /// Returns true if the API server told a conflict at a field, or at one above or below it.
    fn is_in_conflict(&self, path: &Path) -> bool {
        if self.conflicts.is_empty() {
            return false;
        }
        let text = PathText(path).to_string();
        let leads = |above: &str, path: &str| {
            path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.conflicts.iter().any(|conflict| leads(conflict, &text) || leads(&text, conflict))
    }
}
