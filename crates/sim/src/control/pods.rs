//! Functions for the controllers that own Pods.

use std::sync::Arc;

use serde_json::{Value, json};

use super::events::tell;
use super::{controller, create, text};
use crate::state::Inner;
use crate::write::{Deletion, Propagation};

/// Builds the Pod `name` of the controller `owner` from a template, with the template's labels and annotations, but
/// does not create it; [`start`] does.
pub(super) fn pod(owner: &Value, template: &Value, name: &str) -> Value {
    let metadata = &owner["metadata"];
    let (api_version, kind) = (text(&owner["apiVersion"]), text(&owner["kind"]));
    let mut made = json!({
        "name": name, "namespace": metadata["namespace"], "generateName": format!("{}-", text(&metadata["name"])),
        "labels": {}, "ownerReferences": controller(&api_version, &kind, owner),
    });
    for key in ["labels", "annotations"] {
        if template["metadata"][key].is_object() {
            made[key] = template["metadata"][key].clone();
        }
    }
    let spec = if template["spec"].is_object() { template["spec"].clone() } else { json!({}) };
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec})
}

/// Creates a Pod of `owner`, and writes an Event about `owner` that says so, from the component `by`.
pub(super) fn start(inner: &Inner, owner: &Value, by: &str, pod: Value) {
    let name = text(&pod["metadata"]["name"]);
    create(inner, pod);
    let message = done(owner, by, ["create", "Created"], &name);
    tell(inner, owner, by, "SuccessfulCreate", &message);
}

/// Deletes a Pod of `owner`, and writes an Event about `owner` that says so, from the component `by`.
pub(super) fn end(inner: &Arc<Inner>, owner: &Value, by: &str, pod: &Value) {
    let name = text(&pod["metadata"]["name"]);
    let Some(target) = inner.target("", "pods", &text(&pod["metadata"]["namespace"]), &name) else { return };
    let deletion = Deletion { propagation: Some(Propagation::Background), ..Deletion::default() };
    let _ = inner.delete(&target, &deletion);
    let message = done(owner, by, ["delete", "Deleted"], &name);
    tell(inner, owner, by, "SuccessfulDelete", &message);
}

/// Returns the message of the Event that a Pod was created or deleted, in the words of the component `by`.
fn done(owner: &Value, by: &str, [verb, past]: [&str; 2], name: &str) -> String {
    if by != "statefulset-controller" {
        return format!("{past} pod: {name}");
    }
    let (kind, set) = (text(&owner["kind"]), text(&owner["metadata"]["name"]));
    format!("{verb} Pod {name} in {kind} {set} successful")
}

pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|one| one["type"] == "Ready").any(|one| one["status"] == "True")
}

/// Returns true if the Pod has a `deletionTimestamp`, so is being deleted.
pub(super) fn is_ending(pod: &Value) -> bool {
    pod["metadata"].get("deletionTimestamp").is_some()
}

/// Returns true if the Pod's phase is `Succeeded` or `Failed`, so all its containers have ended for good.
pub(super) fn is_finished(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// Sorts Pods by age, the youngest first; Pods of equal age by name.
pub(super) fn youngest_first(pods: &mut [Value]) {
    pods.sort_by_key(|pod| {
        let metadata = &pod["metadata"];
        (std::cmp::Reverse(text(&metadata["creationTimestamp"])), text(&metadata["name"]))
    });
}
