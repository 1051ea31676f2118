//! The last changes of an object, well or not, by its managed fields.
//!
//! They contain only times, names, images, and the values of [`TOLD_ALONE`].

use std::collections::HashSet;

use jiff::Timestamp;
use taffrail_object::json::{OwnedDocument, Value};
use taffrail_object::{LAST_APPLIED, Object, ObjectKey};

use crate::assess::changes::{
    Change, ChangeKind, MAX_FIELDS, MAX_OWNERS, SLACK, created_at, manager, members, owner,
};
use crate::assess::evidence::Evidence;
use crate::event::time;

/// Maximum number of changes that [`last_changes`] returns.
const MAX_LAST: usize = 5;

/// Returns the last change of an object, or of its top controller, by each field manager: at most five, newest first;
/// those without a time are last. The writer of `spec.replicas` is among them if managed fields name it.
///
/// Only managed fields are read, so the object may be well or not. Changes of the status do not count.
pub fn last_changes<'e>(object: &Object<'_>, evidence: impl Into<Evidence<'e>>) -> Vec<Change> {
    let evidence = evidence.into();
    let there = |name: &ObjectKey| evidence.get(name.as_ref()).present();
    // Dependents have the spec that their controller wants.
    let mut top = None;
    let mut above = owner(object);
    for _ in 0..MAX_OWNERS {
        let Some(found) = above.as_ref().and_then(there) else { break };
        above = owner(&found);
        top = Some(found);
    }
    let object = top.as_ref().unwrap_or(object);
    let mut found = writes(object);
    found.sort_by(|one, other| other.when.cmp(&one.when).then_with(|| one.cmp(other)));
    // A manager that applied and updated is told once, but each one that scaled by itself.
    let mut managers = HashSet::new();
    found.retain(|change| managers.insert((change.by.clone(), is_scale(change))));
    let scaled = found.iter().skip(MAX_LAST).find(|change| is_scale(change)).cloned();
    found.truncate(MAX_LAST);
    if let Some((scaled, last)) = scaled.filter(|_| !found.iter().any(is_scale)).zip(found.last_mut()) {
        *last = scaled;
    }
    found
}

fn is_scale(change: &Change) -> bool {
    change.fields == ["replicas"]
}

/// Returns a change for each entry of managed fields that has more of an object than its status.
pub(super) fn writes(object: &Object<'_>) -> Vec<Change> {
    let told = object.managed_fields().filter_map(|entry| {
        if entry.get("subresource").is_some_and(|it| it.is_str("status")) {
            return None;
        }
        let fields = entry.get("fieldsV1")?;
        let all = members(fields);
        let parts: Vec<&str> =
            all.iter().map(String::as_str).filter(|part| !matches!(*part, "f:metadata" | "f:status")).collect();
        // The API server leaves out the time of a scale.
        let when = time(entry.get("time"));
        let is_made = created_at(object).zip(when);
        let is_made = is_made.is_some_and(|(created, when)| when.duration_since(created) <= SLACK);
        let is_config = |part: &&str| matches!(*part, "f:data" | "f:binaryData" | "f:immutable");
        let what = match parts.as_slice() {
            // Before Kubernetes 1.22 the writer of the status has no subresource.
            [] if all.iter().any(|part| part == "f:status") => return None,
            [] if !is_made => ChangeKind::Metadata,
            _ if is_made => ChangeKind::Created,
            parts if parts.iter().all(is_config) => ChangeKind::Config,
            _ => ChangeKind::Spec,
        };
        let change = Change::new(Timestamp::UNIX_EPOCH, what, ObjectKey::of(object));
        let change = Change { when, by: manager(entry), ..change };
        match what {
            ChangeKind::Spec => Some(only_field(change, object, fields)),
            ChangeKind::Metadata => {
                let fields = labels_and_annotations(fields);
                (!fields.is_empty()).then_some(Change { fields, ..change })
            }
            _ => Some(change),
        }
    });
    told.collect()
}

/// Returns the labels and annotations among the fields of a manager: `label team`, `annotation note`.
fn labels_and_annotations(fields: Value<'_>) -> Vec<String> {
    let of = |(key, called): (&str, &'static str)| {
        let names = fields.at(&["f:metadata", key]).map(members).unwrap_or_default().into_iter();
        names.filter_map(move |name| {
            let name = name.strip_prefix("f:").filter(|name| *name != LAST_APPLIED)?;
            Some(format!("{called} {name}"))
        })
    };
    [("f:labels", "label"), ("f:annotations", "annotation")].into_iter().flat_map(of).take(MAX_FIELDS).collect()
}

/// The spec fields that a change shows by name and value if its manager wrote no other spec field.
const TOLD_ALONE: [&str; 3] = ["replicas", "suspend", "paused"];

/// Returns the change with the name and value of the field, if `fields` (the manager's) holds one spec field only: as
/// after `kubectl scale`, or an image, as after `kubectl set image`; else returns it as it is.
fn only_field(change: Change, object: &Object<'_>, fields: Value<'_>) -> Change {
    let wrote = fields.get("f:spec").map(members).unwrap_or_default();
    let [only] = wrote.as_slice() else { return change };
    if let Some((container, image)) = only_image(object, fields) {
        return Change { what: ChangeKind::Image, container: Some(container), to: Some(image), ..change };
    }
    let Some(field) = only.strip_prefix("f:").filter(|field| TOLD_ALONE.contains(field)) else {
        return change;
    };
    let to = object.at(&["spec", field]).and_then(|value| {
        let number = value.as_i64().map(|number| number.to_string());
        number.or_else(|| value.as_bool().map(|truth| truth.to_string()))
    });
    Change { fields: vec![field.to_owned()], to, ..change }
}

/// Returns the name and the present image of a container, if its image is the only spec field among `fields`.
fn only_image(object: &Object<'_>, fields: Value<'_>) -> Option<(String, String)> {
    let mut inside = fields.get("f:spec")?;
    for part in ["f:template", "f:spec"] {
        inside = alone(inside).filter(|(key, _)| key == part)?.1;
    }
    let (list, containers) = alone(inside)?;
    let (key, container) = alone(containers)?;
    alone(container).filter(|(field, _)| field == "f:image")?;
    let key = OwnedDocument::parse(key.strip_prefix("k:")?.as_bytes().to_vec()).ok()?;
    let name = key.root().get("name")?.as_str()?.into_owned();
    let containers = object.at(&["spec", "template", "spec", list.strip_prefix("f:")?])?.items()?;
    let image = containers.filter(|it| it.get("name").is_some_and(|own| own.is_str(&name))).last()?.get("image")?;
    Some((name, image.as_str()?.into_owned()))
}

/// Returns the only member of a set of fields; `None` if it has none or several.
fn alone(fields: Value<'_>) -> Option<(String, Value<'_>)> {
    let mut members = fields.members()?.filter(|(key, _)| key != ".");
    let (key, value) = members.next()?;
    members.next().is_none().then(|| (key.into_owned(), value))
}
