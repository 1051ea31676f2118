//! Structural schemas of custom resources: pruning, defaults and validation.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::error::Cause;

/// The OpenAPI schema of one version of a custom resource.
#[derive(Debug, Clone)]
pub(crate) struct Schema(Arc<Value>);

impl Schema {
    pub(crate) fn new(schema: Value) -> Schema {
        Schema(Arc::new(schema))
    }

    pub(crate) fn tree(&self) -> &Value {
        &self.0
    }

    /// Removes from an object the fields that the schema neither has nor preserves, and returns their paths. Keeps
    /// `apiVersion`, `kind` and `metadata`.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut dropped = Vec::new();
        if let Value::Object(members) = object {
            prune_resource(members, &self.0, "", &mut dropped);
        }
        dropped
    }

    /// Sets the fields of an object that are absent, or null and not nullable, to their defaults in the schema.
    pub(crate) fn default(&self, object: &mut Value) {
        default(object, &self.0);
    }

    /// Lists the errors in an object by the schema; empty if it is valid.
    pub(crate) fn faults(&self, object: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        check(object, &self.0, "", &mut causes);
        causes
    }
}

fn keeps_unknown(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

/// Prunes an embedded Kubernetes object, whose `apiVersion`, `kind` and `metadata` are kept though the schema lacks
/// them.
fn prune_resource(members: &mut Map<String, Value>, schema: &Value, path: &str, dropped: &mut Vec<String>) {
    let common = ["apiVersion", "kind", "metadata"];
    let kept: Vec<_> = common.into_iter().filter_map(|key| members.remove_entry(key)).collect();
    prune_members(members, schema, path, dropped);
    members.extend(kept);
}

fn prune(value: &mut Value, schema: &Value, path: &str, dropped: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if schema["x-kubernetes-embedded-resource"] == true {
                prune_resource(members, schema, path, dropped);
            } else {
                prune_members(members, schema, path, dropped);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                prune(item, &schema["items"], &format!("{path}[{index}]"), dropped);
            }
        }
        _ => {}
    }
}

fn prune_members(members: &mut Map<String, Value>, schema: &Value, path: &str, dropped: &mut Vec<String>) {
    let properties = schema["properties"].as_object();
    let additional = schema.get("additionalProperties").filter(|additional| additional.is_object());
    let any = schema["additionalProperties"] == true;
    members.retain(|key, value| {
        let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match properties.and_then(|properties| properties.get(key)).or(additional) {
            Some(schema) => prune(value, schema, &inner, dropped),
            None if keeps_unknown(schema) || any => {}
            None => {
                dropped.push(inner);
                return false;
            }
        }
        true
    });
}

fn default(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => {
            for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = schema.get("default") {
                    let missing =
                        members.get(key).is_none_or(|value| value.is_null() && schema["nullable"] != true);
                    if missing {
                        members.insert(key.clone(), default.clone());
                    }
                }
            }
            for (key, value) in members {
                let inner = schema["properties"].get(key).or_else(|| schema.get("additionalProperties"));
                if let Some(inner) = inner {
                    default(value, inner);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| default(item, &schema["items"])),
        _ => {}
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    let found = kind_of(value);
    if schema["x-kubernetes-int-or-string"] == true {
        if !matches!(found, "integer" | "string") {
            let what = format!("{path} in body must be of type integer,string: \"{found}\"");
            causes.push(Cause::wrong_type(path, found, &what));
        }
        return;
    }
    if let Some(wanted) = schema["type"].as_str() {
        let fits = wanted == found || (wanted == "number" && found == "integer");
        if !fits {
            let what = format!("{path} in body must be of type {wanted}: \"{found}\"");
            causes.push(Cause::wrong_type(path, found, &what));
            return;
        }
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let words: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        causes.push(Cause::unsupported(path, value, &words));
    }
    check_bounds(value, schema, path, causes);
    match value {
        Value::Object(members) => {
            for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !members.contains_key(key) {
                    causes.push(Cause::required(join(path, key), ""));
                }
            }
            for (key, value) in members {
                if path.is_empty() && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                    continue;
                }
                let additional =
                    schema.get("additionalProperties").filter(|additional| additional.is_object());
                if let Some(schema) = schema["properties"].get(key).or(additional) {
                    check(value, schema, &join(path, key), causes);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check(item, &schema["items"], &format!("{path}[{index}]"), causes);
            }
        }
        _ => {}
    }
}

fn check_bounds(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let mut refuse = |what: String| causes.push(Cause::invalid(path, value, &what));
    if let Some(number) = value.as_f64() {
        if let Some(least) = schema["minimum"].as_f64().filter(|least| number < *least) {
            refuse(format!("{path} in body should be greater than or equal to {least}"));
        }
        if let Some(most) = schema["maximum"].as_f64().filter(|most| number > *most) {
            refuse(format!("{path} in body should be less than or equal to {most}"));
        }
    }
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as u64;
        if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
            refuse(format!("{path} in body should be at least {least} chars long"));
        }
        if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
            refuse(format!("{path} in body should be at most {most} chars long"));
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
