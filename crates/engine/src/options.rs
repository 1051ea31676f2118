//! Options of all writes of a run, and what they let pass.

use taffrail_cluster::{DeletePropagation, FIELD_MANAGER, FieldConflict};
use taffrail_merge::{FieldSet, PathText};

/// Options of all writes of a run.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    /// The field manager.
    pub(crate) manager: String,
    /// True to take the fields of all other managers.
    pub(crate) force_conflicts: bool,
    /// The managers whose fields are taken.
    pub(crate) take_over: Vec<String>,
    /// True to delete and create again what cannot be changed in place.
    pub(crate) replaces: bool,
    /// The fate of what deleted objects own.
    pub(crate) propagation: DeletePropagation,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            manager: FIELD_MANAGER.to_owned(),
            force_conflicts: false,
            take_over: Vec::new(),
            replaces: false,
            propagation: DeletePropagation::Foreground,
        }
    }
}

impl WriteOptions {
    /// Returns the conflicts for which an object fails: fields that the set did not apply last time, of managers whose fields
    /// are not taken.
    pub(crate) fn refused_conflicts<'c>(
        &self,
        conflicts: &'c [FieldConflict],
        applied: Option<&FieldSet>,
    ) -> Vec<&'c FieldConflict> {
        let is_taken = |conflict: &FieldConflict| {
            let manager = conflict.owner.as_ref().map(|owner| &owner.manager);
            self.force_conflicts
                || manager.is_some_and(|manager| self.take_over.contains(manager))
                || applied.is_some_and(|applied| touches(applied, &conflict.path))
        };
        conflicts.iter().filter(|conflict| !is_taken(conflict)).collect()
    }
}

/// Returns the fields of others in words: at most three, and the number of further ones.
pub(crate) fn conflict_text(conflicts: &[&FieldConflict]) -> String {
    /// The number of fields that are named.
    const MOST: usize = 3;
    let named = conflicts.iter().take(MOST).map(|it| {
        let owner = it.owner.as_ref().map_or("another manager", |owner| &owner.manager);
        format!("{} is managed by {owner}", it.path.trim_start_matches('.'))
    });
    let mut text = named.collect::<Vec<_>>().join(", ");
    if conflicts.len() > MOST {
        text.push_str(&format!(", and {} further fields of others", conflicts.len() - MOST));
    }
    text + "; leave them out of the manifest, or take them by --take-over MANAGER or --force-conflicts"
}

/// Returns true if a field, or one above or below it, is in a set; `path` is as the API server writes it.
pub(crate) fn touches(fields: &FieldSet, path: &str) -> bool {
    let leads = |above: &str, path: &str| {
        path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    fields.paths().iter().any(|own| {
        let own = PathText(own).to_string();
        leads(&own, path) || leads(path, &own)
    })
}

/// Returns true for a message of an API server that may refuse to change an object in place: one that says so, and one of an
/// invalid object, which may be cut before it does.
pub(crate) fn is_immutable(message: &str) -> bool {
    let message = message.to_lowercase();
    if message.contains("\" is invalid: ") {
        return true;
    }
    [
        "is immutable",
        "immutable field",
        "field is immutable",
        "updates to statefulset spec",
        "may not be changed",
    ]
    .iter()
    .any(|words| message.contains(words))
}
