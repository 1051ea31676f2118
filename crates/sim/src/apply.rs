//! Server-side apply, as kube-apiserver answers it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taffrail_merge::{Conflict, FieldSet, PathText, UpdateError};
use taffrail_object::LAST_APPLIED;

use crate::behaviour::Behaviour;
use crate::error::{Answered, ApiError};
use crate::managed::Application;
use crate::state::Inner;
use crate::target::{Part, Target};
use crate::write::{WriteOptions, Written};

/// The manager that may take over what `kubectl apply` wrote without server-side apply.
const KUBECTL: &str = "kubectl";

impl Inner {
    /// Applies to an object, and creates it if there is none; returns true with it if it was created.
    pub(crate) fn apply(
        &self,
        target: &Target,
        apply: &Application<'_>,
        wanted: &WriteOptions,
        may_create: impl FnOnce() -> Answered<()>,
    ) -> Answered<(Written, bool)> {
        let exists = self.store().get(target.shelf, &target.key()).is_some();
        if exists || apply.part == Part::Status {
            let change = |current: Value| self.applied(target, &current, apply);
            let written = self.update_owned(target, apply.part, wanted, true, change)?;
            return Ok((written, false));
        }
        let object = self.applied(target, &target.empty(), apply)?;
        if let Some(uid) = object["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty()) {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(&target.resource, &target.name, &why));
        }
        let (name, wanted_name) = (object["metadata"]["name"].as_str().unwrap_or_default(), &target.name);
        if name.is_empty() {
            return Err(ApiError::bad_request("name must be provided"));
        }
        if name != wanted_name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({wanted_name})"
            )));
        }
        if !self.does.on(Behaviour::ApplyCreates) {
            return Err(ApiError::not_found(&target.resource, &target.name));
        }
        may_create()?;
        let owners = object["metadata"]["managedFields"].clone();
        self.create_owned(target, object, wanted, Some(owners)).map(|written| (written, true))
    }

    /// Returns an object with an apply to it.
    fn applied(&self, target: &Target, live: &Value, apply: &Application<'_>) -> Answered<Value> {
        let config = apply.config;
        let word = |key: &str| config[key].as_str().unwrap_or_default();
        let kind = gvk(word("apiVersion"), word("kind"));
        if kind != gvk(&target.api_version(), &target.resource.kind) {
            return Err(ApiError::bad_request(format!("invalid object type: {kind}")));
        }
        if config["metadata"].get("managedFields").is_some_and(|owners| !owners.is_null()) {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        let named = |object: &Value| {
            let word = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
            format!("{}/{}; {kind}", word("namespace"), word("name"))
        };
        let refused = |error: UpdateError| match error {
            UpdateError::Conflicts(conflicts) => conflict(&conflicts),
            UpdateError::Invalid(invalid) => {
                let what = named(config);
                ApiError::plain(500, &format!("failed to create typed patch object ({what}): {invalid}"))
            }
            UpdateError::Live(invalid) => {
                let what = named(live);
                ApiError::plain(500, &format!("failed to create typed live object ({what}): {invalid}"))
            }
        };
        let mut object = match self.merged(target, live, apply) {
            Err(UpdateError::Conflicts(conflicts)) if apply.manager == KUBECTL => {
                let left = self.left_by_client_side_apply(target, live);
                let conflicts: Vec<Conflict> =
                    conflicts.into_iter().filter(|it| !left.contains(&it.path)).collect();
                if !conflicts.is_empty() {
                    return Err(conflict(&conflicts));
                }
                self.merged(target, live, &Application { force: true, ..*apply }).map_err(refused)?
            }
            merged => merged.map_err(refused)?,
        };
        // What other versions of kubectl go by stays what was applied last.
        let annotation =
            object.pointer_mut(&format!("/metadata/annotations/{}", LAST_APPLIED.replace('/', "~1")));
        if let Some(annotation) = annotation.filter(|_| apply.manager == KUBECTL) {
            *annotation = json!(format!("{config}\n"));
        }
        Ok(object)
    }

    /// Returns the fields that the last client-side `kubectl apply` wrote and nobody has changed since.
    fn left_by_client_side_apply(&self, target: &Target, live: &Value) -> FieldSet {
        if !self.does.on(Behaviour::ApplyUpgrades) {
            return FieldSet::default();
        }
        let text = live["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap_or_default();
        let last = serde_json::from_str::<Value>(text).unwrap_or_default();
        if last["apiVersion"] != target.api_version() {
            return FieldSet::default();
        }
        let of = target.object_type().get();
        let (Ok(fields), Ok(differs)) = (of.field_set(&last), of.compare(&last, live)) else {
            return FieldSet::default();
        };
        fields.difference(&differs.modified).difference(&differs.added).difference(&differs.removed)
    }
}

/// Formats a kind as Go's `GroupVersionKind`.
fn gvk(api_version: &str, kind: &str) -> String {
    let (group, version) = crate::kinds::split_group_version(api_version);
    format!("{group}/{version}, Kind={kind}")
}

/// Builds the error of an apply that others' fields stand against.
fn conflict(conflicts: &[Conflict]) -> ApiError {
    let causes = conflicts
        .iter()
        .map(|it| (format!("conflict with {}", owner(&it.manager)), PathText(&it.path).to_string()));
    let causes: Vec<(String, String)> = causes.collect();
    let message = match &causes[..] {
        [(one, path)] => format!("Apply failed with 1 conflict: {one}: {path}"),
        many => {
            let mut by_owner: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for it in conflicts {
                by_owner.entry(&it.manager).or_default().push(format!("- {}", PathText(&it.path)));
            }
            let told = by_owner
                .into_iter()
                .map(|(id, paths)| format!("conflicts with {}:\n{}", owner(id), paths.join("\n")));
            let told: Vec<String> = told.collect();
            format!("Apply failed with {} conflicts: {}", many.len(), told.join("\n"))
        }
    };
    ApiError::apply_conflict(message, causes)
}

/// Formats a manager as the API server does, from its identifier.
fn owner(id: &str) -> String {
    let parts: Vec<String> = serde_json::from_str(id).unwrap_or_default();
    let [manager, operation, version, subresource] = &parts[..] else { return format!("{id:?}") };
    let of =
        if subresource.is_empty() { String::new() } else { format!(" with subresource {subresource:?}") };
    match &**operation {
        "Update" => format!("{manager:?}{of} using {version}"),
        _ => format!("{manager:?}{of}"),
    }
}
