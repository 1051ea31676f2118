//! Patches: merge, JSON, and strategic merge.

use serde_json::{Map, Value};

use crate::behaviour::{Behaviour, Behaviours};
use crate::error::{Answered, ApiError};

/// The forms of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A merge patch by RFC 7386.
    Merge,
    /// A JSON patch by RFC 6902.
    Json,
    /// Kubernetes' strategic merge patch, which merges lists by keys.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl Form {
    /// Returns the form of patch for a content type; `None` for an unsupported one.
    pub(crate) fn of(content_type: &str) -> Option<Form> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => Some(Form::Merge),
            "application/json-patch+json" => Some(Form::Json),
            "application/strategic-merge-patch+json" => Some(Form::Strategic),
            "application/apply-patch+yaml" => Some(Form::Apply),
            _ => None,
        }
    }
}

/// Parses a patch and returns the object with it applied. Fails if the patch is malformed, cannot be applied, or is a
/// server-side apply.
pub(crate) fn apply(form: Form, text: &[u8], object: Value, does: &Behaviours) -> Answered<Value> {
    let patch: Value = serde_json::from_slice(text).map_err(|error| {
        let why = if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
        ApiError::bad_request(format!("error decoding patch: {why}"))
    })?;
    match form {
        Form::Merge => {
            if !patch.is_object() {
                let what = "json: cannot unmarshal value into Go value of type map[string]interface {}";
                return Err(ApiError::bad_request(format!("error decoding patch: {what}")));
            }
            let mut object = object;
            merge(&mut object, patch, does.on(Behaviour::MergeNullRemoves));
            Ok(object)
        }
        Form::Json => {
            let Value::Array(operations) = patch else {
                let what = "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
                return Err(ApiError::bad_request(format!("error decoding patch: {what}")));
            };
            let mut object = object;
            for operation in &operations {
                if operation["op"] == "test" && !does.on(Behaviour::JsonPatchTest) {
                    continue;
                }
                if matches!(operation["op"].as_str(), Some("move" | "copy"))
                    && !does.on(Behaviour::JsonPatchMove)
                {
                    continue;
                }
                operate(&mut object, operation).ok_or_else(ApiError::patch_fails)?;
            }
            Ok(object)
        }
        Form::Strategic => {
            let mut object = object;
            let Value::Object(patch) = patch else {
                return Err(ApiError::bad_request("error decoding patch: not an object"));
            };
            match &mut object {
                Value::Object(members) if does.on(Behaviour::StrategicMergesLists) => {
                    strategic(members, patch)
                }
                object => merge(object, Value::Object(patch), true),
            }
            Ok(object)
        }
        Form::Apply => Err(ApiError::unsupported_patch()),
    }
}

/// Applies a merge patch by RFC 7386 to `target`; a null removes the member with `null_removes`, and is ignored
/// without.
pub(crate) fn merge(target: &mut Value, patch: Value, null_removes: bool) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            if null_removes {
                members.remove(&key);
            }
        } else {
            merge(members.entry(key).or_insert(Value::Null), value, null_removes);
        }
    }
}

/// Applies one operation of a JSON patch (RFC 6902) to `object`; `None` if it cannot be applied, or if it is a `test`
/// that fails.
fn operate(object: &mut Value, operation: &Value) -> Option<()> {
    let path = operation["path"].as_str()?;
    match operation["op"].as_str()? {
        "add" => add(object, path, operation.get("value")?.clone()),
        "remove" => remove(object, path).map(drop),
        "replace" => {
            *object.pointer_mut(path)? = operation.get("value")?.clone();
            Some(())
        }
        "test" => (object.pointer(path).unwrap_or(&Value::Null) == operation.get("value")?).then_some(()),
        "copy" => {
            let value = object.pointer(operation["from"].as_str()?)?.clone();
            add(object, path, value)
        }
        "move" => {
            let value = remove(object, operation["from"].as_str()?)?;
            add(object, path, value)
        }
        _ => None,
    }
}

fn parent<'a>(object: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((object.pointer_mut(parent)?, last.replace("~1", "/").replace("~0", "~")))
}

fn add(object: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *object = value;
        return Some(());
    }
    let (parent, last) = parent(object, path)?;
    match parent {
        Value::Object(members) => {
            members.insert(last, value);
        }
        Value::Array(items) => {
            let at = if last == "-" { items.len() } else { last.parse().ok()? };
            if at > items.len() {
                return None;
            }
            items.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(object: &mut Value, path: &str) -> Option<Value> {
    let (parent, last) = parent(object, path)?;
    match parent {
        Value::Object(members) => members.remove(&last),
        Value::Array(items) => {
            let at: usize = last.parse().ok()?;
            (at < items.len()).then(|| items.remove(at))
        }
        _ => None,
    }
}

/// The way in which a strategic merge patch merges a list.
enum List {
    /// Items with an equal value of this member are merged.
    Keyed(&'static str),
    /// The values of both lists, each once.
    Set,
    /// The new list replaces the old one.
    Atomic,
}

/// Returns how a strategic merge patch merges the list in `field`; `sample` is one of its items, which decides for
/// `ports`. The rules are the tags `patchStrategy` and `patchMergeKey` of Kubernetes' types.
fn list_of(field: &str, sample: Option<&Value>) -> List {
    match field {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "secrets"
        | "resourceClaims"
        | "resourceClaimStatuses" => List::Keyed("name"),
        "volumeMounts" => List::Keyed("mountPath"),
        "volumeDevices" => List::Keyed("devicePath"),
        "hostAliases" | "hostIPs" | "podIPs" => List::Keyed("ip"),
        "ownerReferences" => List::Keyed("uid"),
        "conditions" | "addresses" => List::Keyed("type"),
        "taints" => List::Keyed("key"),
        "topologySpreadConstraints" => List::Keyed("topologyKey"),
        "ports" if sample.is_some_and(|port| port.get("containerPort").is_some()) => {
            List::Keyed("containerPort")
        }
        "ports" => List::Keyed("port"),
        "finalizers" | "podCIDRs" => List::Set,
        _ => List::Atomic,
    }
}

/// Applies a strategic merge patch to `target`, as Kubernetes' `strategicpatch.StrategicMergePatch` does.
fn strategic(target: &mut Map<String, Value>, mut patch: Map<String, Value>) {
    match patch.remove("$patch").as_ref().and_then(Value::as_str) {
        Some("replace") => {
            *target = patch;
            return;
        }
        Some("delete") => {
            target.clear();
            return;
        }
        _ => {}
    }
    if let Some(Value::Array(keys)) = patch.remove("$retainKeys") {
        target.retain(|key, _| keys.iter().any(|kept| kept == key));
    }
    let orders: Vec<(String, Vec<Value>)> = directives(&mut patch, "$setElementOrder/");
    for (field, gone) in directives(&mut patch, "$deleteFromPrimitiveList/") {
        if let Some(Value::Array(items)) = target.get_mut(&field) {
            items.retain(|item| !gone.contains(item));
        }
    }
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.remove(&key);
            }
            Value::Object(members) => {
                let entry = target.entry(key).or_insert_with(|| Value::Object(Map::new()));
                if !entry.is_object() {
                    *entry = Value::Object(Map::new());
                }
                if let Value::Object(inner) = entry {
                    strategic(inner, members);
                }
            }
            Value::Array(items) => {
                let old = match target.remove(&key) {
                    Some(Value::Array(old)) => old,
                    _ => Vec::new(),
                };
                let merged = merge_list(&key, old, items);
                target.insert(key, Value::Array(merged));
            }
            plain => {
                target.insert(key, plain);
            }
        }
    }
    for (field, order) in orders {
        if let Some(Value::Array(items)) = target.get_mut(&field) {
            sort_like(&field, items, &order);
        }
    }
}

/// Removes the directives (such as `$setElementOrder/…`) whose names begin with `prefix` from a patch. Returns each
/// with the rest of its name.
fn directives(patch: &mut Map<String, Value>, prefix: &str) -> Vec<(String, Vec<Value>)> {
    let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
    let taken = keys.into_iter().filter_map(|key| match patch.remove(&key) {
        Some(Value::Array(values)) => Some((key[prefix.len()..].to_owned(), values)),
        _ => None,
    });
    taken.collect()
}

fn merge_list(field: &str, mut old: Vec<Value>, new: Vec<Value>) -> Vec<Value> {
    let is_replace =
        |item: &Value| item["$patch"] == "replace" && item.as_object().is_some_and(|item| item.len() == 1);
    if new.iter().any(is_replace) {
        return new.into_iter().filter(|item| !is_replace(item)).collect();
    }
    match list_of(field, new.first().or(old.first())) {
        List::Atomic => new,
        List::Set => {
            for item in new {
                if !old.contains(&item) {
                    old.push(item);
                }
            }
            old
        }
        List::Keyed(key) => {
            for item in new {
                let at =
                    old.iter().position(|known| known.get(key).is_some() && known.get(key) == item.get(key));
                if item["$patch"] == "delete" {
                    if let Some(at) = at {
                        old.remove(at);
                    }
                    continue;
                }
                match (at, item) {
                    (Some(at), Value::Object(item)) => {
                        if let Some(Value::Object(known)) = old.get_mut(at) {
                            strategic(known, item);
                        }
                    }
                    (_, item) => old.push(item),
                }
            }
            old
        }
    }
}

/// Sorts items into the order in which the client's list `order` names them; an item that it does not name stays behind
/// the item that it followed.
fn sort_like(field: &str, items: &mut [Value], order: &[Value]) {
    let key = match list_of(field, items.first()) {
        List::Keyed(key) => Some(key),
        _ => None,
    };
    let place = |item: &Value| {
        order.iter().position(|wanted| match key {
            Some(key) => wanted.get(key) == item.get(key),
            None => wanted == item,
        })
    };
    let mut last = 0;
    let places: Vec<usize> = items
        .iter()
        .map(|item| {
            last = place(item).unwrap_or(last);
            last
        })
        .collect();
    let mut indexed: Vec<(usize, Value)> = places.into_iter().zip(items.iter().cloned()).collect();
    indexed.sort_by_key(|(place, _)| *place);
    for (slot, (_, item)) in items.iter_mut().zip(indexed) {
        *slot = item;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(form: Form, object: Value, patch: Value) -> Value {
        apply(form, patch.to_string().as_bytes(), object, &Behaviours::default()).expect("it applies")
    }

    #[test]
    fn containers_merge_by_name() {
        let object =
            json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}});
        let patch = json!({"spec": {"containers": [{"name": "b", "image": "2"}, {"name": "c"}]}});
        let want = json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c"}]}});
        assert_eq!(patched(Form::Strategic, object, patch), want);
    }

    #[test]
    fn directives_delete_order_and_replace() {
        let object = json!({"env": [{"name": "a"}, {"name": "b"}], "finalizers": ["x", "y"], "args": [1]});
        let patch = json!({
            "env": [{"$patch": "delete", "name": "a"}, {"name": "c"}], "$setElementOrder/env": [{"name": "c"}, {"name": "b"}],
            "$deleteFromPrimitiveList/finalizers": ["x"], "args": [2],
        });
        let want = json!({"env": [{"name": "c"}, {"name": "b"}], "finalizers": ["y"], "args": [2]});
        assert_eq!(patched(Form::Strategic, object, patch), want);
    }

    #[test]
    fn json_patch_works_on_lists_and_escaped_keys() {
        let object = json!({"a": [1, 2], "m": {"x/y": 1}});
        let patch = json!([
            {"op": "add", "path": "/a/-", "value": 3}, {"op": "remove", "path": "/a/0"},
            {"op": "replace", "path": "/m/x~1y", "value": 5}, {"op": "copy", "from": "/m", "path": "/n"},
            {"op": "move", "from": "/n/x~1y", "path": "/o"}, {"op": "test", "path": "/o", "value": 5},
        ]);
        let want = json!({"a": [2, 3], "m": {"x/y": 5}, "n": {}, "o": 5});
        assert_eq!(patched(Form::Json, object, patch), want);
    }
}
