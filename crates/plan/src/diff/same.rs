//! The quick answer for objects that are as they are wanted, which most of a cluster's are.

use serde_json::Value;
use taffrail_merge::{ManagedEntry, equal};
use taffrail_object::{LAST_APPLIED, ObjectKey};

use super::DiffInput;
use super::fields::covers;
use super::normalise::SERVER_SET;

/// Returns true if it is certain, without a merge, that the live object is as an apply would leave it. False says nothing.
pub(super) fn is_same(
    input: &DiffInput<'_>,
    wanted: &Value,
    answer: Option<&Value>,
    entries: &[ManagedEntry],
    object: &ObjectKey,
) -> bool {
    let Some(live) = input.live else { return false };
    let last_applied = live.pointer("/metadata/annotations").and_then(|all| all.get(LAST_APPLIED));
    // Copies of what was applied on the client's side decide what an apply removes.
    let is_simple = input.options.masked_annotations.is_empty()
        && !input.options.includes_additions
        && wanted.get("status").is_none()
        && !input.rules.concern(object, wanted)
        && input.applied.is_none();
    if !is_simple || !last_applied.is_none_or(|text| is_copy_of(text, wanted)) {
        return false;
    }
    let is_valid = || input.of.validate(wanted, false).is_ok() && input.of.validate(live, true).is_ok();
    match answer {
        Some(answer) => is_equal(live, answer) && covers(answer, wanted) && is_valid(),
        None => {
            let own = entries.iter().filter(|it| it.is_applied && it.manager == input.manager);
            // A merge without managers has a note of its own.
            (last_applied.is_none() || !entries.is_empty())
                && input.of.holds(live, wanted)
                && own.into_iter().all(|entry| input.of.has_all(wanted, &entry.fields))
                && is_valid()
        }
    }
}

/// Returns true if a text is the manifest as JSON; kubectl adds annotations without items to it.
fn is_copy_of(text: &Value, wanted: &Value) -> bool {
    let copy = text.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(mut copy) = copy else { return false };
    let has_annotations = wanted.pointer("/metadata/annotations").is_some();
    if !has_annotations
        && let Some(metadata) = copy.get_mut("metadata").and_then(Value::as_object_mut)
        && metadata.get("annotations").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty)
    {
        metadata.remove("annotations");
    }
    equal(&copy, wanted)
}

/// Returns true if two objects are equal but for what the API server sets.
fn is_equal(live: &Value, answer: &Value) -> bool {
    let (Some(live), Some(answer)) = (live.as_object(), answer.as_object()) else { return false };
    live.len() == answer.len()
        && live.iter().all(|(name, live)| match (answer.get(name), &**name, live) {
            (Some(Value::Object(answer)), "metadata", Value::Object(live)) => {
                let kept = |all: &&String| !SERVER_SET.contains(&all.as_str());
                live.keys().filter(kept).count() == answer.keys().filter(kept).count()
                    && live
                        .iter()
                        .filter(|(name, _)| kept(name))
                        .all(|(name, live)| answer.get(name).is_some_and(|answer| equal(live, answer)))
            }
            (Some(answer), _, live) => equal(live, answer),
            (None, ..) => false,
        })
}
