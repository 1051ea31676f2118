//! Options of all writes of a run, and what they let pass.

use taffrail_cluster::{DeletePropagation, FIELD_MANAGER, FieldConflict};
use taffrail_merge::{FieldSet, PathText};
use taffrail_plan::order::Dialect;

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
    /// The tool whose take-over of earlier managers and whose way to delete hold.
    pub(crate) dialect: Dialect,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            manager: FIELD_MANAGER.to_owned(),
            force_conflicts: false,
            take_over: Vec::new(),
            replaces: false,
            dialect: Dialect::Argo,
        }
    }
}

impl WriteOptions {
    /// Returns the fate of what deleted objects own.
    pub(crate) fn propagation(&self) -> DeletePropagation {
        match self.dialect {
            Dialect::Argo => DeletePropagation::Foreground,
            _ => DeletePropagation::Background,
        }
    }

    /// Returns the conflicts for which an object fails: fields that the set did not apply last time, of managers whose fields
    /// are not taken; `predecessors` are managers whose fields go over to ours.
    pub(crate) fn refused_conflicts<'c>(
        &self,
        conflicts: &'c [FieldConflict],
        applied: Option<&FieldSet>,
        predecessors: &[String],
    ) -> Vec<&'c FieldConflict> {
        let is_taken = |conflict: &FieldConflict| {
            let manager = conflict.owner.as_ref().map(|owner| &owner.manager);
            let of_object = conflict.owner.as_ref().filter(|owner| owner.subresource.is_none());
            self.force_conflicts
                || of_object.is_some_and(|owner| predecessors.contains(&owner.manager))
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

/// Returns true if a field, one below it, or the list that it is an item of is in a set; `path` is as the API server writes it.
///
/// A struct or a map says nothing of its fields: an item of a list is in a set that has only its name, and so is each map of a
/// kind without a schema.
pub(crate) fn touches(fields: &FieldSet, path: &str) -> bool {
    let below = |above: &str, path: &str, begins: &[char]| {
        path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(begins))
    };
    let paths = fields.paths();
    paths.iter().enumerate().any(|(at, own)| {
        let text = PathText(own).to_string();
        // Paths are sorted: the first one below a field comes next.
        let is_leaf = !paths.get(at + 1).is_some_and(|next| next.starts_with(own));
        below(path, &text, &['.', '[']) || (is_leaf && below(&text, path, &['[']))
    })
}

/// Returns true for a message of an API server that may refuse to change an object in place: one that says so, and one of an
/// invalid object, which may be so only as a change.
pub(crate) fn may_be_immutable(message: &str) -> bool {
    message.contains("\" is invalid: ") || is_immutable(message)
}

/// Returns true for a message of an API server that refuses to change an object in place.
pub(crate) fn is_immutable(message: &str) -> bool {
    let message = message.to_lowercase();
    let words = [
        "is immutable",
        "immutable field",
        "updates to statefulset spec",
        "may not be changed",
        "may not change once set",
        "cannot change roleref",
    ];
    words.iter().any(|words| message.contains(words))
}
