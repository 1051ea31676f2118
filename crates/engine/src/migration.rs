//! Takes over the fields of earlier tools: of `kubectl apply` on the client's side, and of those that Flux takes fields from.
//!
//! Until our manager has applied an object, what its predecessors own is as if it had applied that itself: no field of theirs
//! is a conflict, and one that is not declared any more is removed. Later they are managers as any other.

use serde_json::{Value, json};
use taffrail_plan::manifests::{ApplyMode, DeclaredObject};
use taffrail_plan::order::Dialect;

/// The field manager of `kubectl apply` on the client's side.
const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";

/// The manager to which an API server gives the fields of an object that had none before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The managers whose fields are taken over with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Predecessors {
    /// `kubectl apply` on the client's side.
    ClientSideApply,
    /// All commands of kubectl, as Flux does.
    Kubectl,
}

impl Predecessors {
    /// Returns those of an object in the order of a tool.
    pub(crate) fn of(object: &DeclaredObject, dialect: Dialect) -> Predecessors {
        let merges = object.options.apply_mode.as_ref().is_some_and(|mode| mode.value == ApplyMode::Merge);
        match dialect {
            Dialect::Flux if !merges => Predecessors::Kubectl,
            _ => Predecessors::ClientSideApply,
        }
    }

    fn admit(self, entry: &Value) -> bool {
        let manager = entry["manager"].as_str().unwrap_or_default();
        let updates = entry["operation"] == "Update";
        entry["subresource"].is_null()
            && match self {
                Predecessors::ClientSideApply => updates && manager == CLIENT_SIDE_APPLY,
                Predecessors::Kubectl => {
                    manager == "kubectl"
                        || manager.starts_with("kubectl-")
                        || (updates && manager == BEFORE_FIRST_APPLY)
                }
            }
    }

    /// Returns the entries of an object's `managedFields` that are taken over, by their positions; none if `manager` has
    /// applied the object before.
    fn among(self, entries: &[Value], manager: &str) -> Vec<usize> {
        if entries.iter().any(|entry| is_applied_by(entry, manager)) {
            return Vec::new();
        }
        let all = entries.iter().enumerate();
        all.filter(|(_, entry)| self.admit(entry)).map(|(at, _)| at).collect()
    }

    /// Returns the names of the managers whose fields are taken over, by the object's `managedFields`.
    pub(crate) fn names(self, entries: &[Value], manager: &str) -> Vec<String> {
        let names = self.among(entries, manager).into_iter().filter_map(|at| entries[at]["manager"].as_str());
        names.map(str::to_owned).collect()
    }

    /// Returns the `managedFields` after the take-over; `None` if there is nothing to take over.
    pub(crate) fn taken_over(self, mut entries: Vec<Value>, manager: &str) -> Option<Vec<Value>> {
        let positions = self.among(&entries, manager);
        if positions.is_empty() {
            return None;
        }
        let mut own: Vec<Value> = Vec::new();
        for at in positions.into_iter().rev() {
            let mut taken = entries.remove(at);
            match own.iter_mut().find(|own| own["apiVersion"] == taken["apiVersion"]) {
                Some(own) => unite(&mut own["fieldsV1"], &taken["fieldsV1"]),
                None => {
                    taken["manager"] = json!(manager);
                    taken["operation"] = json!("Apply");
                    own.push(taken);
                }
            }
        }
        entries.extend(own);
        Some(entries)
    }
}

fn is_applied_by(entry: &Value, manager: &str) -> bool {
    entry["manager"] == manager && entry["operation"] == "Apply" && entry["subresource"].is_null()
}

/// Adds the fields of another set to one, both as `fieldsV1`.
fn unite(fields: &mut Value, more: &Value) {
    let (Some(fields), Some(more)) = (fields.as_object_mut(), more.as_object()) else { return };
    for (name, below) in more {
        match fields.get_mut(name) {
            Some(own) => unite(own, below),
            None => drop(fields.insert(name.clone(), below.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[test]
    fn only_updates_of_the_object_itself_are_taken_over() {
        let applied = entry(CLIENT_SIDE_APPLY, "Apply", json!({"f:data": {}}));
        let mut status = entry(CLIENT_SIDE_APPLY, "Update", json!({"f:status": {}}));
        status["subresource"] = json!("status");
        let edited = entry("kubectl-edit", "Update", json!({"f:data": {}}));
        let entries = vec![applied, status, edited];
        assert_eq!(Predecessors::ClientSideApply.taken_over(entries.clone(), "taffrail"), None);
        assert_eq!(Predecessors::ClientSideApply.taken_over(Vec::new(), "taffrail"), None);
        assert_eq!(
            Predecessors::Kubectl.names(&entries, "taffrail"),
            [CLIENT_SIDE_APPLY, "kubectl-edit"],
            "Flux takes over what any command of kubectl left"
        );
    }

    #[test]
    fn fields_of_several_managers_become_one_entry() {
        let entries = vec![
            entry("kubectl", "Update", json!({"f:data": {"f:a": {}}})),
            entry("controller", "Update", json!({"f:data": {"f:b": {}}})),
            entry(BEFORE_FIRST_APPLY, "Update", json!({"f:data": {"f:c": {}}})),
        ];
        let taken = Predecessors::Kubectl.taken_over(entries, "taffrail").unwrap_or_default();
        let wanted = [
            entry("controller", "Update", json!({"f:data": {"f:b": {}}})),
            entry("taffrail", "Apply", json!({"f:data": {"f:c": {}, "f:a": {}}})),
        ];
        assert_eq!(taken, wanted);
        assert_eq!(Predecessors::Kubectl.taken_over(taken, "taffrail"), None);
    }

    #[test]
    fn nothing_is_taken_over_after_the_first_apply() {
        let entries = vec![
            entry("taffrail", "Apply", json!({"f:data": {"f:a": {}}})),
            entry(CLIENT_SIDE_APPLY, "Update", json!({"f:data": {"f:b": {}}})),
        ];
        assert_eq!(Predecessors::ClientSideApply.names(&entries, "taffrail"), Vec::<String>::new());
        assert_eq!(Predecessors::ClientSideApply.taken_over(entries, "taffrail"), None);
    }
}
