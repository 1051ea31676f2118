//! The form in which the API server stores objects of built-in kinds: without the zero values that its types do not write,
//! and with defaults.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map as JsonMap, Value, json};
use taffrail_merge::{Path, PathElement, Type};
use taffrail_object::protobuf::schema::{self, Field, Kind, Message, Shape};
use taffrail_object::{GroupKind, kinds, yaml};

use super::quantity;

/// The defaults that do not depend on other fields, by the names of messages.
static DEFAULTS: LazyLock<HashMap<String, JsonMap<String, Value>>> =
    LazyLock::new(|| yaml::read(include_str!("defaults.yaml")).unwrap_or_default());

/// Returns the description of a built-in kind at an `apiVersion`; `None` for other kinds, and for
/// CustomResourceDefinitions, of which there is none.
pub(super) fn message_of(kind: &GroupKind, api_version: &str) -> Option<&'static Message> {
    kinds::is_namespaced(&kind.group, &kind.kind)?;
    schema::of_kind(&kind.group, api_version.rsplit('/').next()?, &kind.kind)
}

/// Removes nulls, and the zero values that the API server's types do not write.
pub(super) fn remove_zero_values(fields: &mut JsonMap<String, Value>, message: &'static Message) {
    for field in &message.fields {
        if field.name.is_empty() {
            inside(field).into_iter().for_each(|inside| remove_zero_values(fields, inside));
            continue;
        }
        let Some(value) = fields.get_mut(field.name) else { continue };
        each_part(value, field, remove_zero_values);
        if value.is_null() || (!field.kept && is_zero(value, field)) {
            fields.remove(field.name);
        }
    }
}

/// Returns the description of the messages in a field; `None` if it holds none.
fn inside(field: &Field) -> Option<&'static Message> {
    match field.kind {
        Kind::Message(name) => schema::message(name),
        _ => None,
    }
}

fn is_zero(value: &Value, field: &Field) -> bool {
    match (field.shape, field.kind, value) {
        (Shape::List, _, Value::Array(items)) => items.is_empty(),
        (Shape::Map, _, Value::Object(values)) => values.is_empty(),
        (Shape::One, Kind::Text | Kind::Bytes, Value::String(text)) => text.is_empty(),
        (Shape::One, Kind::Flag, Value::Bool(flag)) => !flag,
        (Shape::One, Kind::Number, Value::Number(number)) => number.as_i64() == Some(0),
        (Shape::One, Kind::Quantity, value) => quantity::canonical(value).as_deref() == Some("0"),
        _ => false,
    }
}

/// Calls `change` with each message that the value of a field holds.
fn each_part(
    value: &mut Value,
    field: &Field,
    change: impl Fn(&mut JsonMap<String, Value>, &'static Message),
) {
    let Some(inside) = inside(field) else { return };
    let change = |part: &mut Value| part.as_object_mut().into_iter().for_each(|part| change(part, inside));
    match (field.shape, value) {
        (Shape::One, part) => change(part),
        (Shape::List, Value::Array(items)) => items.iter_mut().for_each(change),
        (Shape::Map, Value::Object(values)) => values.values_mut().for_each(change),
        _ => {}
    }
}

/// Adds what the API server adds to a part of an object: defaults, and parts that it always writes. Fields that the type
/// does not have are those of another release of Kubernetes.
pub(super) fn add_defaults(fields: &mut JsonMap<String, Value>, message: &'static Message, of: Type<'_>) {
    let mut new = JsonMap::new();
    for (name, default) in DEFAULTS.get(message.name).into_iter().flatten() {
        if fields.get(name).is_none_or(Value::is_null) {
            new.insert(name.clone(), default.clone());
        }
    }
    let known: Vec<String> = fields.keys().cloned().collect();
    fields.extend(new);
    add_computed(fields, message.name);
    fields.retain(|name, _| known.contains(name) || of.field(name).is_some());
    for field in &message.fields {
        let Some(inside) = inside(field) else { continue };
        if field.name.is_empty() {
            add_defaults(fields, inside, of);
            continue;
        }
        let Some(of) = of.field(field.name) else { continue };
        if field.shape == Shape::One && !field.kept {
            add(fields, field.name, || json!({}));
        }
        let parts = match (field.shape, fields.get_mut(field.name)) {
            (Shape::One, Some(part)) => std::slice::from_mut(part),
            (Shape::List, Some(Value::Array(items))) => items.as_mut_slice(),
            _ => continue,
        };
        let Some(of) = (if field.shape == Shape::List { of.item() } else { Some(of) }) else { continue };
        for part in parts.iter_mut().filter_map(Value::as_object_mut) {
            add_defaults(part, inside, of);
        }
    }
}

/// Adds what the API server adds to a CustomResourceDefinition, of which no message tells: names that follow from the kind,
/// and no conversion.
pub(super) fn add_definition_defaults(definition: &mut Value) {
    let Some(Value::Object(spec)) = definition.get_mut("spec") else { return };
    add(spec, "conversion", || json!({"strategy": "None"}));
    let Some(Value::Object(names)) = spec.get_mut("names") else { return };
    let Some(kind) = names.get("kind").and_then(Value::as_str).map(str::to_owned) else { return };
    if kind.is_empty() {
        return;
    }
    // An empty name counts as none.
    names.retain(|name, value| !matches!(&**name, "singular" | "listKind") || *value != json!(""));
    add(names, "singular", || json!(kind.to_lowercase()));
    add(names, "listKind", || json!(format!("{kind}List")));
}

fn add(fields: &mut JsonMap<String, Value>, name: &str, default: impl FnOnce() -> Value) {
    if fields.get(name).is_none_or(Value::is_null) {
        fields.insert(name.to_owned(), default());
    }
}

/// Adds the defaults that depend on other fields.
fn add_computed(fields: &mut JsonMap<String, Value>, message: &str) {
    let text = |fields: &JsonMap<String, Value>, name: &str| {
        fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    match message {
        "apps.v1.DeploymentStrategy"
        | "apps.v1.StatefulSetUpdateStrategy"
        | "apps.v1.DaemonSetUpdateStrategy"
            if text(fields, "type") == "RollingUpdate" =>
        {
            add(fields, "rollingUpdate", || json!({}));
        }
        "autoscaling.v2.HorizontalPodAutoscalerSpec" => {
            let usage = json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
            if fields
                .get("metrics")
                .is_none_or(|all| all.is_null() || all.as_array().is_some_and(Vec::is_empty))
            {
                fields.insert("metrics".to_owned(), usage);
            }
        }
        "autoscaling.v2.HorizontalPodAutoscalerBehavior" => {
            add(fields, "scaleUp", || json!({}));
            add(fields, "scaleDown", || json!({}));
            let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
            let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
            if let Some(Value::Object(up)) = fields.get_mut("scaleUp") {
                add(up, "stabilizationWindowSeconds", || json!(0));
                add(up, "selectPolicy", || json!("Max"));
                add(up, "policies", || json!([pods, percent]));
            }
            if let Some(Value::Object(down)) = fields.get_mut("scaleDown") {
                add(down, "selectPolicy", || json!("Max"));
                add(down, "policies", || json!([percent]));
            }
        }
        "batch.v1.Job" => {
            let labels =
                fields.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
            if let (Some(labels), Some(Value::Object(metadata))) = (labels, fields.get_mut("metadata"))
                && metadata.get("labels").is_none_or(super::fields::is_nothing)
            {
                metadata.insert("labels".to_owned(), labels);
            }
        }
        "batch.v1.JobSpec" => {
            // Parallelism without completions means a work queue.
            if fields.get("parallelism").is_none_or(Value::is_null) {
                add(fields, "completions", || json!(1));
            }
            add(fields, "parallelism", || json!(1));
            add(fields, "completionMode", || json!("NonIndexed"));
            if fields.get("backoffLimitPerIndex").is_none_or(Value::is_null) {
                add(fields, "backoffLimit", || json!(6));
            }
            add(fields, "suspend", || json!(false));
            add(fields, "manualSelector", || json!(false));
            let policy =
                if fields.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
            add(fields, "podReplacementPolicy", || json!(policy));
        }
        "core.v1.Container" => {
            let image = text(fields, "image");
            let (name, has_digest) = image.split_once('@').map_or((&*image, false), |(name, _)| (name, true));
            let tag = name.rsplit('/').next().unwrap_or_default().split_once(':').map(|(_, tag)| tag);
            // A digest takes the place of a tag, and not that of the tag `latest`.
            let is_latest = tag.map_or(!has_digest, |tag| tag == "latest");
            add(fields, "imagePullPolicy", || json!(if is_latest { "Always" } else { "IfNotPresent" }));
        }
        "core.v1.LimitRangeItem" if text(fields, "type") == "Container" => {
            limits(fields, "default", "max");
            limits(fields, "defaultRequest", "default");
            limits(fields, "defaultRequest", "min");
        }
        // The former name of the field outlives a removal.
        "core.v1.PodSpec" => {
            if let Some(former) = fields.get("serviceAccount").cloned() {
                add(fields, "serviceAccountName", || former);
            }
        }
        "core.v1.ResourceRequirements" => {
            // Limits are requests where there are no others.
            if let Some(Value::Object(limits)) = fields.get("limits").cloned() {
                add(fields, "requests", || json!({}));
                if let Some(Value::Object(requests)) = fields.get_mut("requests") {
                    limits.into_iter().for_each(|(name, limit)| add(requests, &name, || limit));
                }
            }
        }
        "core.v1.ServicePort" => {
            if let Some(port) = fields.get("port").cloned() {
                add(fields, "targetPort", || port);
            }
        }
        "core.v1.ServiceSpec" => {
            let of = text(fields, "type");
            if of == "NodePort" || of == "LoadBalancer" {
                add(fields, "externalTrafficPolicy", || json!("Cluster"));
            }
            if of != "ExternalName" {
                add(fields, "internalTrafficPolicy", || json!("Cluster"));
            }
            if text(fields, "sessionAffinity") == "ClientIP" {
                add(fields, "sessionAffinityConfig", || json!({"clientIP": {"timeoutSeconds": 10_800}}));
            }
        }
        "networking.v1.NetworkPolicySpec" => {
            let has_egress =
                fields.get("egress").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
            let types = if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            if fields.get("policyTypes").is_none_or(|all| all.is_null() || *all == json!([])) {
                fields.insert("policyTypes".to_owned(), types);
            }
        }
        "rbac.v1.Subject" if matches!(&*text(fields, "kind"), "User" | "Group") => {
            add(fields, "apiGroup", || json!("rbac.authorization.k8s.io"));
        }
        _ => {}
    }
}

/// Adds the amounts of one list of resources to another one that lacks them.
fn limits(fields: &mut JsonMap<String, Value>, to: &str, from: &str) {
    let Some(Value::Object(amounts)) = fields.get(from).cloned() else { return };
    add(fields, to, || json!({}));
    if let Some(Value::Object(all)) = fields.get_mut(to) {
        amounts.into_iter().for_each(|(name, amount)| add(all, &name, || amount));
    }
}

/// Returns true for a field below which no API server adds defaults: a map of texts, or a label selector.
pub(super) fn has_no_defaults(message: &'static Message, path: &Path) -> bool {
    let names = path.iter().filter_map(|element| match element {
        PathElement::Field(name) => Some(&**name),
        _ => None,
    });
    let mut at = Some(message);
    for name in names {
        let Some(field) = at.and_then(|message| field_of(message, name)) else { return false };
        let is_selector = field.kind == Kind::Message("meta.v1.LabelSelector");
        if is_selector || (field.shape == Shape::Map && field.kind == Kind::Text) {
            return true;
        }
        at = inside(field);
    }
    false
}

fn field_of(message: &'static Message, name: &str) -> Option<&'static Field> {
    let fields = message.fields.iter();
    fields.clone().find(|field| field.name == name).or_else(|| {
        let mut inlined = fields.filter(|field| field.name.is_empty());
        inlined.find_map(|field| field_of(inside(field)?, name))
    })
}
