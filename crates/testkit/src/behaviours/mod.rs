//! Behaviours of `taffrail diff` that people know from other tools, each played once on a simulated and once on a real API
//! server, with the same assertions: so both servers are known to answer alike.
//!
//! `docs/behaviours.md` lists them, with the tests that play them.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed assertion is the result of a test")]

mod declared;
mod merged;
mod values;

use serde_json::{Value, json};

pub use declared::{
    additions_of_webhooks_count_on_demand, declared_fields_among_unknown_ones_are_kept,
    empty_and_null_are_equal, empty_annotations_are_no_difference, ignored_fields_are_no_difference,
    rules_of_aggregated_roles_are_ignored_on_demand, unknown_fields_are_refused_by_name,
};
pub use merged::{
    each_object_is_compared_alone, equal_objects_are_unchanged, live_objects_of_many_kinds_are_unchanged,
    namespaces_of_the_destination_are_no_difference, objects_of_one_side_have_defined_results,
    removed_fields_are_found_by_what_was_applied, structured_merges_remove_what_is_no_longer_applied,
    versions_are_converted_by_the_server,
};
pub use values::{
    masks_show_which_values_are_equal, quantities_are_canonical, secrets_are_masked,
    string_data_is_merged_into_data,
};

/// The namespace of all objects with a namespace.
pub const NAMESPACE: &str = "behaviours";

/// The field manager as which `taffrail diff` asks, unless an argument says otherwise.
const OURS: &str = "taffrail";

/// A cluster to which several clients write, and where `taffrail diff` is run. Every scenario has objects of its own names, so
/// that one cluster serves all of them.
pub trait DiffStage {
    /// Applies an object on the server's side, with force, as a field manager.
    fn apply(&self, manager: &str, object: &Value);

    /// Creates or replaces an object as `kubectl apply` on the client's side does.
    fn apply_on_client_side(&self, object: &Value);

    /// Changes a live object by an update, as a field manager.
    fn update(&self, manager: &str, object: &Value, change: &dyn Fn(&mut Value));

    /// Has the kind of this CustomResourceDefinition served.
    fn define(&self, definition: &Value);

    /// Lets a webhook set fields, at JSON pointers, of one object whenever it is written.
    fn mutate(&self, object: &Value, fields: &[(&str, Value)]);

    /// Runs `taffrail diff` with a file of these manifests, a file of these rules unless there are none, and further arguments.
    fn diff(&self, manifests: &str, rules: Option<&str>, more: &[&str]) -> DiffAnswer;
}

/// The answer of `taffrail diff`.
pub struct DiffAnswer {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl DiffAnswer {
    /// Returns the list of a diff as JSON.
    fn list(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in\n{}{}", self.stdout, self.stderr))
    }

    /// Returns each object with its fields, one a line; the errors if there are any.
    fn told(&self) -> Vec<String> {
        let list = self.list();
        let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut told: Vec<String> = items(&list["items"]).iter().flat_map(lines).collect();
        told.extend(items(&list["errors"]).iter().map(|error| format!("error: {}", text(&error["message"]))));
        told
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns an object of a diff and its fields, as lines.
fn lines(row: &Value) -> Vec<String> {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let [kind, name] = ["kind", "name"].map(|part| text(&row["object"][part]));
    let mut lines = vec![format!("{kind} {name}: {} by {}", text(&row["result"]), text(&row["diff"]))];
    // Of an object that is created the manifest has all fields.
    for field in items(&row["fields"]).iter().filter(|_| row["result"] != "create") {
        let side = |side: &str| field.get(side).map_or("-".to_owned(), Value::to_string);
        let owners = items(&field["owners"]);
        let owners: Vec<&str> = owners.iter().map(|owner| text(&owner["manager"])).collect();
        let whose = match (text(&field["class"]), &*owners) {
            ("change", []) => String::new(),
            (class, owners) => format!(" ({class}: {})", owners.join(", ")),
        };
        lines.push(format!("  {}: {} -> {}{whose}", text(&field["path"]), side("live"), side("wanted")));
    }
    lines.extend(items(&row["ignored"]).iter().map(|it| format!("  ignored: {}", text(&it["path"]))));
    lines.extend(items(&row["rewritten"]).iter().map(|path| format!("  rewritten: {}", text(path))));
    lines.extend(items(&row["notes"]).iter().map(|note| format!("  {}", text(note))));
    lines
}

/// Compares objects, and asserts what is told of them.
#[track_caller]
fn assert_told(stage: &impl DiffStage, wanted: &[&Value], expected: &[&str]) {
    assert_ruled(stage, wanted, None, &[], expected);
}

/// Compares objects by rules and further arguments, and asserts what is told of them.
#[track_caller]
fn assert_ruled(
    stage: &impl DiffStage,
    wanted: &[&Value],
    rules: Option<&str>,
    more: &[&str],
    expected: &[&str],
) {
    let answer = stage.diff(&manifests(wanted), rules, &[&["-o", "json"], more].concat());
    assert_eq!(answer.told(), expected, "{}{}", answer.stdout, answer.stderr);
    let differs = |line: &&str| line.contains(": change by ") || line.contains(": create by ");
    let code = match () {
        () if expected.iter().any(|line| line.contains(": unknown by ") || line.starts_with("error: ")) => 3,
        () => i32::from(expected.iter().any(differs)),
    };
    assert_eq!(answer.code, code, "{}{}", answer.stdout, answer.stderr);
}

/// Returns a file with these objects. JSON is YAML, too.
fn manifests(objects: &[&Value]) -> String {
    objects.iter().map(|object| format!("---\n{object}\n")).collect()
}

/// Returns an object of the namespace, or of the cluster if its kind has none.
fn object(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    let is_of_cluster =
        matches!(kind, "ClusterRole" | "MutatingWebhookConfiguration" | "StorageClass" | "Namespace");
    if !is_of_cluster {
        object["metadata"]["namespace"] = json!(NAMESPACE);
    }
    merge(&mut object, rest);
    object
}

/// Merges the fields of `more` into an object.
fn merge(object: &mut Value, more: Value) {
    match (object, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (name, value) in more {
                merge(fields.entry(name).or_insert(Value::Null), value);
            }
        }
        (object, more) => *object = more,
    }
}

/// Returns a copy of an object with a change.
fn changed(object: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut object = object.clone();
    change(&mut object);
    object
}

/// Returns a ConfigMap.
fn config_map(name: &str, data: Value) -> Value {
    object("v1", "ConfigMap", name, json!({"data": data}))
}

/// Returns a Deployment without Pods.
fn deployment(name: &str) -> Value {
    let labels = json!({"app": name});
    object(
        "apps/v1",
        "Deployment",
        name,
        json!({
            "metadata": {"labels": labels},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}],
                    "env": [{"name": "MODE", "value": "fast"}], "resources": {"requests": {"cpu": "100m"}}}]},
            }},
        }),
    )
}

/// Returns the first container of a Deployment.
fn container(deployment: &mut Value) -> &mut Value {
    &mut deployment["spec"]["template"]["spec"]["containers"][0]
}

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().unwrap().push(item);
}
