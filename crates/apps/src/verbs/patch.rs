//! Patches of an object: as JSON for the API server, and as a diff for people.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use taffrail_object::Object;
use taffrail_object::json::TooDeep;

use super::{argo, tree};
use crate::delivery::writers;

/// The field manager that Taffrail writes as.
const FIELD_MANAGER: &str = "taffrail";

/// The change of one field: its path, and its values before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FieldChange"))]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The keys from the root of the object to the field.
    pub path: Vec<String>,
    /// The current value; left out if the field is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The new value; left out to remove the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Field changes of one object, to be sent as a JSON merge patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// The changed fields, sorted by their paths.
    changes: Vec<Change>,
    /// The resource version that the object must still have when the patch is applied; left out for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    based_on: Option<String>,
}

/// One line of a patch as a YAML diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum DiffLine {
    /// A parent of changed fields, or the key of a changed list.
    Context(String),
    /// A removed value.
    Removed(String),
    /// An added value.
    Added(String),
}

impl Change {
    /// Returns true if the delivery tool removes the field once it has handled it: a request to Argo CD.
    fn is_taken_back(&self) -> bool {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        matches!(&*path, ["metadata", "annotations", argo::REFRESH] | ["operation", ..])
    }
}

impl Patch {
    /// Makes a patch that sets `fields`, each a path and a value (`None` removes it); fields that already have the
    /// value are left out.
    pub(super) fn new(object: &Object<'_>, fields: Vec<(Vec<&str>, Option<Value>)>) -> Patch {
        let change = |(path, after): (Vec<&str>, Option<Value>)| Change {
            before: tree(object, &path),
            path: path.into_iter().map(str::to_owned).collect(),
            after,
        };
        let changes = fields.into_iter().map(change).filter(|change| change.before != change.after);
        let mut changes: Vec<Change> = changes.collect();
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        Patch { changes, based_on: None }
    }

    /// Makes the patch that turns an object into `after`: missing fields are removed, and a changed list is
    /// replaced as a whole.
    ///
    /// Numbers are equal however they are written, and `null` equals a missing field.
    ///
    /// # Errors
    /// When the object is nested too deeply.
    pub fn between(object: &Object<'_>, after: &Value) -> Result<Patch, TooDeep> {
        let before = object.root().to_tree()?;
        let mut changes = Vec::new();
        compare(&mut Vec::new(), &before, after, &mut changes);
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Patch { changes, based_on: None })
    }

    /// Returns only the changes of the status if `of_status`, otherwise only the others. Many kinds take changes
    /// of the status only in a request of their own.
    pub fn part(&self, of_status: bool) -> Patch {
        let is_wanted =
            |change: &&Change| change.path.first().is_some_and(|key| key == "status") == of_status;
        Patch {
            changes: self.changes.iter().filter(is_wanted).cloned().collect(),
            based_on: self.based_on.clone(),
        }
    }

    /// Returns the patch with a precondition: the server refuses it if another client has written to `object`
    /// since.
    pub fn based_on(self, object: &Object<'_>) -> Patch {
        let version = object.text(&["metadata", "resourceVersion"]).into_owned();
        Patch { based_on: (!version.is_empty()).then_some(version), ..self }
    }

    /// Returns the resource version that the object must still have; `None` for any.
    pub fn base(&self) -> Option<&str> {
        self.based_on.as_deref()
    }

    /// Returns true if the patch changes no field.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the changed fields, each with its path.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns true if both patches make the same changes, even if they require different resource versions.
    pub fn is_same(&self, other: &Patch) -> bool {
        self.changes == other.changes
    }

    /// Returns the JSON merge patch to send to the API server.
    pub fn body(&self) -> Vec<u8> {
        self.tree().to_string().into_bytes()
    }

    /// Returns the JSON merge patch as a tree.
    pub fn tree(&self) -> Value {
        let mut body = Map::new();
        for change in &self.changes {
            set(&mut body, &change.path, change.after.clone().unwrap_or_default());
        }
        if let Some(version) = &self.based_on {
            set(&mut body, &["metadata".to_owned(), "resourceVersion".to_owned()], json!(version));
        }
        Value::Object(body)
    }

    /// Returns the dotted paths of the changed fields that `object`, the server's answer, does not have as
    /// requested.
    pub fn dropped(&self, object: &Object<'_>) -> Vec<String> {
        let kept = |change: &&Change| {
            let path: Vec<&str> = change.path.iter().map(String::as_str).collect();
            match (tree(object, &path), &change.after) {
                (Some(kept), Some(after)) => is_same(&kept, after),
                (kept, after) => kept.is_none() && after.is_none(),
            }
        };
        self.changes.iter().filter(|change| !kept(change)).map(|change| change.path.join(".")).collect()
    }

    /// Returns true if `object` shows that Taffrail has made this patch, which was planned at `planned_at`, false if it
    /// shows that the object does not have the patch, and `None` if it shows neither.
    ///
    /// A field with the patched value proves it if the value is the time of the plan, or if the managed fields name
    /// Taffrail as its writer: the field had another value when the patch was planned, and who changes a value takes the
    /// field from all who wrote it before. Otherwise another client may have set it. Fields that a tool removes once it
    /// has handled them prove nothing when they are missing.
    pub fn found_in(&self, object: &Object<'_>, planned_at: Timestamp) -> Option<bool> {
        let value = |change: &Change| {
            let path: Vec<&str> = change.path.iter().map(String::as_str).collect();
            tree(object, &path).unwrap_or_default()
        };
        let has = |change: &Change, wanted: &Option<Value>| {
            is_same(&value(change), &wanted.clone().unwrap_or_default())
        };
        let unique = planned_at.to_string();
        let is_own = |after: &Value, change: &Change| {
            let path: Vec<&str> = change.path.iter().map(String::as_str).collect();
            after.as_str() == Some(&unique)
                || writers(object, &path).iter().any(|writer| writer.manager == FIELD_MANAGER)
        };
        let lasting = || self.changes.iter().filter(|change| !change.is_taken_back());
        let is_there = |change: &Change| has(change, &change.after);
        let proves = |change: &Change| {
            is_there(change) && change.after.as_ref().is_some_and(|after| is_own(after, change))
        };
        let is_whole = match lasting().next() {
            Some(_) => lasting().all(is_there),
            None => self.changes.iter().all(is_there),
        };
        if is_whole && self.changes.iter().any(proves) {
            return Some(true);
        }
        let is_as_before = lasting().next().is_some() && lasting().all(|change| has(change, &change.before));
        is_as_before.then_some(false)
    }

    /// Returns the changed fields and their parents as YAML, line by line. Of a changed list, the items that are equal
    /// at its start and end are left out.
    pub fn lines(&self) -> Vec<DiffLine> {
        let mut lines = Vec::new();
        let mut open: &[String] = &[];
        for change in &self.changes {
            let Some((key, parents)) = change.path.split_last() else { continue };
            let shared = open.iter().zip(parents).take_while(|(one, other)| one == other).count();
            for (depth, parent) in parents.iter().enumerate().skip(shared) {
                lines.push(DiffLine::Context(format!("{}{parent}:", "  ".repeat(depth))));
            }
            open = parents;
            // JSON is YAML, and shows clearly which values are texts.
            let line = |value: &Value| format!("{}{key}: {value}", "  ".repeat(parents.len()));
            if let (Some(Value::Array(before)), Some(Value::Array(after))) = (&change.before, &change.after) {
                let (removed, added) = differing(before, after);
                lines.push(DiffLine::Context(format!("{}{key}:", "  ".repeat(parents.len()))));
                let line = |value: &Value| format!("{}- {value}", "  ".repeat(parents.len() + 1));
                lines.extend(removed.iter().map(|value| DiffLine::Removed(line(value))));
                lines.extend(added.iter().map(|value| DiffLine::Added(line(value))));
                continue;
            }
            lines.extend(change.before.as_ref().map(|value| DiffLine::Removed(line(value))));
            lines.extend(change.after.as_ref().map(|value| DiffLine::Added(line(value))));
        }
        lines
    }
}

/// Appends to `changes` the fields in which two values at `path` differ.
fn compare(path: &mut Vec<String>, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        if !is_same(before, after) {
            let there = |value: &Value| Some(value.clone()).filter(|value| !value.is_null());
            changes.push(Change { path: path.clone(), before: there(before), after: there(after) });
        }
        return;
    };
    let added = new.keys().filter(|key| !old.contains_key(*key));
    for key in old.keys().chain(added) {
        path.push(key.clone());
        let of = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or_default();
        compare(path, &of(old), &of(new), changes);
        path.pop();
    }
}

/// Returns two lists without their common start and end.
fn differing<'v>(before: &'v [Value], after: &'v [Value]) -> (&'v [Value], &'v [Value]) {
    let begin = before.iter().zip(after).take_while(|(one, other)| is_same(one, other)).count();
    let (before, after) = (before.get(begin..).unwrap_or_default(), after.get(begin..).unwrap_or_default());
    let ends = before.iter().rev().zip(after.iter().rev());
    let end = ends.take_while(|(one, other)| is_same(one, other)).count();
    let cut = |list: &'v [Value]| list.get(..list.len() - end).unwrap_or_default();
    (cut(before), cut(after))
}

/// Returns true if two JSON values are equal to an API server: numbers however they are written, and `null` like a
/// missing field.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let of = |object: &Map<String, Value>, key: &str| object.get(key).cloned().unwrap_or_default();
            one.keys().chain(other.keys()).all(|key| is_same(&of(one, key), &of(other, key)))
        }
        _ => one == other,
    }
}

fn set(object: &mut Map<String, Value>, path: &[String], value: Value) {
    let Some((key, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        object.insert(key.clone(), value);
        return;
    }
    let inner = object.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(inner) = inner {
        set(inner, rest, value);
    }
}
