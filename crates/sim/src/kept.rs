//! What the server keeps of an object, whatever an update says: its identity, the parts that are not written, and the
//! generation.

use serde_json::{Map, Value, json};

use crate::behaviour::Behaviour;
use crate::error::{Answered, ApiError, Cause};
use crate::state::Inner;
use crate::target::{Part, Target};

pub(crate) fn texts_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Inner {
    /// Fails if a write changes the identity of an object (name, namespace, uid), has an outdated resourceVersion, or
    /// none for a custom resource; restores the fields that only the server writes.
    pub(crate) fn keep_identity(&self, target: &Target, before: &Value, after: &mut Value) -> Answered<()> {
        let resource = &target.resource;
        let (old, new) = (&before["metadata"], &mut after["metadata"]);
        let name = texts_of(&new["name"]).to_owned();
        if name != target.name {
            if self.does.on(Behaviour::NameMatches) {
                return Err(ApiError::bad_request(format!(
                    "the name of the object ({name}) does not match the name on the URL ({})",
                    target.name
                )));
            }
            new["name"] = json!(target.name);
        }
        self.check_namespace(target, new)?;
        let version = texts_of(&new["resourceVersion"]);
        if version.is_empty() || version == "0" {
            if resource.custom && self.does.on(Behaviour::CustomNeedsVersion) {
                let cause =
                    Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
                return Err(target.invalid(&target.name, vec![cause]));
            }
        } else if version != texts_of(&old["resourceVersion"]) && self.does.on(Behaviour::UpdateConflicts) {
            return Err(ApiError::modified(resource, &target.name));
        }
        let uid = texts_of(&new["uid"]);
        if !uid.is_empty() && uid != texts_of(&old["uid"]) && self.does.on(Behaviour::UidIsKept) {
            let cause = Cause::invalid("metadata.uid", &new["uid"], "field is immutable");
            return Err(target.invalid(&target.name, vec![cause]));
        }
        let kept = [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "generateName",
        ];
        let is_kept = |key: &&str| *key != "creationTimestamp" || self.does.on(Behaviour::CreationTimeIsKept);
        for key in kept.into_iter().filter(is_kept) {
            match (old.get(key), new.as_object_mut()) {
                (Some(value), Some(members)) => {
                    members.insert(key.to_owned(), value.clone());
                }
                (None, Some(members)) => {
                    members.remove(key);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Restores the parts of an object that a write of this `part` must not change, such as the status in a write
    /// of the spec.
    pub(crate) fn keep_part(&self, target: &Target, part: Part, before: &Value, after: &mut Value) {
        let Some(members) = after.as_object_mut() else { return };
        match part {
            Part::Main if target.has_status() && self.does.on(Behaviour::UpdateKeepsStatus) => {
                match before.get("status") {
                    Some(status) => members.insert("status".to_owned(), status.clone()),
                    None => members.remove("status"),
                };
            }
            Part::Status if self.does.on(Behaviour::StatusKeepsSpec) => {
                let status = members.remove("status");
                let metadata = members.remove("metadata").unwrap_or_default();
                let mut kept = before.as_object().cloned().unwrap_or_default();
                match status {
                    Some(status) => kept.insert("status".to_owned(), status),
                    None => kept.remove("status"),
                };
                // The status of a built-in kind includes labels and annotations, that of a custom one does not.
                if !target.resource.custom {
                    for key in ["labels", "annotations"] {
                        if let Some(value) = metadata.get(key) {
                            kept["metadata"][key] = value.clone();
                        }
                    }
                }
                *members = kept;
            }
            _ => {}
        }
        let namespaces = target.resource.is("", "namespaces");
        if namespaces && let Some(finalizers) = before["spec"].get("finalizers") {
            members.entry("spec").or_insert_with(|| json!({}))["finalizers"] = finalizers.clone();
        }
    }

    /// Increases `metadata.generation` of a kind that has one if anything but metadata, status and the node of a Pod
    /// changed; for a Deployment also if its annotations did. For a kind without a status subresource the status counts
    /// too.
    pub(crate) fn count_generation(&self, target: &Target, before: &Value, after: &mut Value) {
        let resource = &target.resource;
        if !resource.has_generation() {
            return;
        }
        let declared = |object: &Value| -> Map<String, Value> {
            let mut all = object.as_object().cloned().unwrap_or_default();
            for key in ["apiVersion", "kind", "metadata"] {
                all.remove(key);
            }
            // The node of a Pod is not part of its specification.
            if resource.is("", "pods")
                && let Some(spec) = all.get_mut("spec").and_then(Value::as_object_mut)
            {
                spec.remove("nodeName");
            }
            if target.has_status() || !self.does.on(Behaviour::GenerationCountsStatus) {
                all.remove("status");
            }
            all
        };
        let annotations = |object: &Value| object["metadata"]["annotations"].clone();
        let is_deployment =
            resource.is("apps", "deployments") && self.does.on(Behaviour::GenerationCountsAnnotations);
        let changed = declared(before) != declared(after)
            || is_deployment && annotations(before) != annotations(after)
            || !self.does.on(Behaviour::GenerationIgnoresLabels)
                && before["metadata"]["labels"] != after["metadata"]["labels"];
        if changed && self.does.on(Behaviour::GenerationCounts) {
            let generation = before["metadata"]["generation"].as_i64().unwrap_or_default();
            after["metadata"]["generation"] = json!(generation + 1);
        }
    }
}
