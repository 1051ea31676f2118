//! Removes from objects what is no difference: what the API server sets itself, and what has several spellings.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map as JsonMap, Value, json};
use taffrail_object::{GroupKind, LAST_APPLIED, kinds};

use super::fields::{map_at, text_at};
use super::quantity;
use super::stored::{message_of, remove_zero_values};

/// Metadata that the API server sets.
pub(super) const SERVER_SET: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

const RBAC: &str = "rbac.authorization.k8s.io";

/// The form of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectForm {
    /// One that is to be applied: also an empty value there takes the place of another one.
    Declared,
    /// One that the API server stores, or would store.
    Stored,
}

/// The parts of an object that are left out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LeftOut {
    /// The status.
    pub(super) status: bool,
    /// The rules of a role: those of aggregated roles are written by a controller.
    pub(super) rules: bool,
}

/// Returns true if a controller writes the rules of this ClusterRole.
pub(super) fn is_aggregated(role: &Value) -> bool {
    role.get("aggregationRule").is_some_and(|rule| !rule.is_null())
}

/// Returns an object in the form in which it is compared.
pub(super) fn normal(object: &Value, kind: &GroupKind, left_out: LeftOut, form: ObjectForm) -> Value {
    let mut normal = match object.as_object() {
        // Managers are the greater part of many objects, and not copied.
        Some(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), copy(name, value))).collect())
        }
        None => object.clone(),
    };
    normalise(&mut normal, kind, left_out, form);
    normal
}

fn copy(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(metadata) if name == "metadata" => {
            let kept = metadata.iter().filter(|(name, _)| !SERVER_SET.contains(&&***name));
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        value => value.clone(),
    }
}

/// Brings an object without what the API server sets in its metadata into the form in which it is compared.
pub(super) fn normalise(object: &mut Value, kind: &GroupKind, left_out: LeftOut, form: ObjectForm) {
    if let Some(annotations) = map_at(object, "/metadata/annotations") {
        annotations.remove(LAST_APPLIED);
        if (&*kind.group, &*kind.kind) == ("apps", "DaemonSet") {
            // The API server counts the templates here.
            annotations.remove("deprecated.daemonset.template.generation");
        }
    }
    if left_out.status
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    without_empty_metadata(object);
    match (&*kind.group, &*kind.kind) {
        ("", "Secret") => secret(object, form),
        ("", "Endpoints") => endpoints(object),
        ("apps", "StatefulSet") => claim_templates(object),
        (RBAC, "Role" | "ClusterRole") => {
            let is_empty = |rules: &Value| rules.is_null() || rules.as_array().is_some_and(Vec::is_empty);
            if let Some(role) = object.as_object_mut()
                && (left_out.rules || (form == ObjectForm::Stored && role.get("rules").is_some_and(is_empty)))
            {
                role.remove("rules");
            }
        }
        _ => {}
    }
    // Objects of kinds that CustomResourceDefinitions define are stored as they are written, and so are their schemas.
    let is_raw = kind.kind == "CustomResourceDefinition" || kind.kind == "ControllerRevision";
    if kind.kind == "CustomResourceDefinition" && form == ObjectForm::Stored {
        columns(object);
    }
    if kinds::is_namespaced(&kind.group, &kind.kind).is_some() && !is_raw {
        if form == ObjectForm::Stored {
            without_empty(object, true);
            let version = text_at(object, "/apiVersion").to_owned();
            if let (Some(message), Some(fields)) = (message_of(kind, &version), object.as_object_mut()) {
                remove_zero_values(fields, message);
            }
        }
        quantities(object, &kind.kind, true);
    }
}

/// Removes null timestamps, and labels and annotations that are null or empty, from the metadata of an object and of its
/// templates.
fn without_empty_metadata(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_empty_metadata),
        Value::Object(fields) => {
            if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
                metadata.retain(|name, value| match &**name {
                    "creationTimestamp" => !value.is_null(),
                    "labels" | "annotations" => {
                        !value.is_null() && !value.as_object().is_some_and(JsonMap::is_empty)
                    }
                    _ => true,
                });
            }
            fields.values_mut().for_each(without_empty_metadata);
        }
        _ => {}
    }
}

/// Removes null, empty lists, and the empty values of environment variables: the API server does not store them in objects of
/// built-in kinds.
fn without_empty(value: &mut Value, is_top: bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| without_empty(item, false)),
        Value::Object(fields) => {
            let is_kept = |name: &str| is_top && matches!(name, "data" | "stringData" | "binaryData");
            fields.retain(|name, value| {
                is_kept(name) || !(value.is_null() || value.as_array().is_some_and(Vec::is_empty))
            });
            for (name, value) in fields.iter_mut().filter(|(name, _)| !is_kept(name)) {
                if let ("env", Value::Array(variables)) = (&**name, &mut *value) {
                    for variable in variables.iter_mut().filter_map(Value::as_object_mut) {
                        variable.retain(|name, value| name != "value" || value != "");
                    }
                }
                without_empty(value, false);
            }
        }
        _ => {}
    }
}

/// Moves `stringData` to `data`, as the API server does. A value that is not a text stays, so that the server refuses it.
fn secret(object: &mut Value, form: ObjectForm) {
    let Some(secret) = object.as_object_mut() else { return };
    let mut moved = JsonMap::new();
    if let Some(Value::Object(texts)) = secret.get_mut("stringData") {
        texts.retain(|key, text| match text {
            Value::String(text) => {
                moved.insert(key.clone(), json!(BASE64.encode(text)));
                false
            }
            Value::Null => {
                moved.insert(key.clone(), json!(""));
                false
            }
            _ => true,
        });
        if texts.is_empty() {
            secret.remove("stringData");
        }
    }
    if secret.get("stringData").is_some_and(Value::is_null) {
        secret.remove("stringData");
    }
    if !moved.is_empty() && secret.get("data").is_none_or(Value::is_null) {
        secret.insert("data".to_owned(), Value::Object(JsonMap::new()));
    }
    match secret.get_mut("data") {
        Some(Value::Object(data)) => {
            data.extend(moved);
            data.values_mut().filter(|value| value.is_null()).for_each(|value| *value = json!(""));
            if data.is_empty() && form == ObjectForm::Stored {
                secret.remove("data");
            }
        }
        Some(Value::Null) => drop(secret.remove("data")),
        // Data of a wrong type: nothing can be moved into it.
        Some(_) if !moved.is_empty() => drop(secret.insert("stringData".to_owned(), Value::Object(moved))),
        _ => {}
    }
}

/// Sorts the subsets of an Endpoints and what they hold, and sets the protocols that are left out.
fn endpoints(object: &mut Value) {
    let Some(Value::Array(subsets)) = object.get_mut("subsets") else { return };
    for subset in subsets.iter_mut() {
        for name in ["addresses", "notReadyAddresses", "ports"] {
            let Some(Value::Array(items)) = subset.get_mut(name) else { continue };
            if name == "ports" {
                for port in items.iter_mut().filter_map(Value::as_object_mut) {
                    port.entry("protocol").or_insert_with(|| json!("TCP"));
                }
            }
            items.sort_by_cached_key(Value::to_string);
        }
    }
    subsets.sort_by_cached_key(Value::to_string);
}

/// Removes what the API server adds to the claim templates of a StatefulSet, which are owned as a whole.
fn claim_templates(object: &mut Value) {
    let templates = object.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut);
    for template in templates.into_iter().flatten().filter_map(Value::as_object_mut) {
        ["apiVersion", "kind", "status"].iter().for_each(|name| drop(template.remove(*name)));
        if let Some(Value::Object(spec)) = template.get_mut("spec")
            && spec.get("volumeMode").is_some_and(|mode| mode == "Filesystem")
        {
            spec.remove("volumeMode");
        }
    }
}

/// Removes the priority 0 of the columns of a CustomResourceDefinition, which the API server does not store.
fn columns(object: &mut Value) {
    let versions = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
        for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
            if column.get("priority").and_then(Value::as_i64) == Some(0) {
                column.remove("priority");
            }
        }
    }
}

/// Returns true if the fields of a map of this name are quantities.
fn has_quantities(name: &str, kind: &str) -> bool {
    match name {
        "requests" | "limits" | "capacity" | "allocatable" | "overhead" | "podFixed" => true,
        "hard" | "used" => kind == "ResourceQuota",
        "min" | "max" | "default" | "defaultRequest" | "maxLimitRequestRatio" => kind == "LimitRange",
        _ => false,
    }
}

/// Returns true if the field of this name is a quantity.
fn is_quantity(name: &str, kind: &str) -> bool {
    match name {
        "sizeLimit" | "divisor" => true,
        "averageValue" | "value" => kind == "HorizontalPodAutoscaler",
        "capacity" | "maximumVolumeSize" => kind == "CSIStorageCapacity",
        _ => false,
    }
}

/// The fields in whose maps no name means anything to the API server.
const TEXTS: [&str; 8] = [
    "labels",
    "annotations",
    "nodeSelector",
    "matchLabels",
    "matchLabelKeys",
    "volumeAttributes",
    "options",
    "parameters",
];

/// Brings the quantities of an object of a built-in kind into their canonical form, as the API server does.
fn quantities(value: &mut Value, kind: &str, is_top: bool) {
    let canonical = |value: &mut Value| {
        if let Some(text) = quantity::canonical(value) {
            *value = Value::String(text);
        }
    };
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| quantities(item, kind, false)),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match value {
                    _ if is_top && matches!(&**name, "metadata" | "data" | "stringData" | "binaryData") => {}
                    // These hold texts of others, which the API server stores as they are.
                    _ if TEXTS.contains(&&**name) => {}
                    // The values of policies are plain numbers.
                    _ if kind == "HorizontalPodAutoscaler" && name == "policies" => {}
                    Value::Object(amounts) if has_quantities(name, kind) => {
                        amounts.values_mut().for_each(canonical);
                    }
                    Value::String(_) | Value::Number(_) if is_quantity(name, kind) => canonical(value),
                    value => quantities(value, kind, false),
                }
            }
        }
        _ => {}
    }
}

/// Removes the namespaces of an object's sides if they do not tell objects apart: those of a kind without namespaces, and one
/// that only some sides name.
pub(super) fn without_namespaces(sides: &mut [&mut Value], kind: &GroupKind) {
    let namespaces = sides.iter().map(|side| text_at(side, "/metadata/namespace").to_owned());
    let namespaces: BTreeSet<String> = namespaces.filter(|namespace| !namespace.is_empty()).collect();
    if namespaces.len() <= 1 || kinds::is_namespaced(&kind.group, &kind.kind) == Some(false) {
        for side in sides {
            map_at(side, "/metadata").and_then(|metadata| metadata.remove("namespace"));
        }
    }
}
