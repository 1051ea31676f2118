//! Sends the writes of an action one after the other: patches to parts of an object, and new objects.

use serde_json::Value;
use taffrail_apps::verbs::Patch;
use taffrail_cluster::{Cluster, CreateRequest, PatchRequest, PatchType, WriteError};
use taffrail_object::{Object, ObjectKey};

use super::sites::{Reach, Site};
use crate::complaint::Complaint;

/// Returns the name of an object, or the prefix and `…` if the server generates it.
pub(super) fn named(key: &ObjectKey, object: &Value) -> String {
    match object.pointer("/metadata/generateName").and_then(Value::as_str) {
        Some(begin) if key.name.is_empty() => {
            ObjectKey { name: format!("{begin}…"), ..key.clone() }.path().to_string()
        }
        _ => key.path().to_string(),
    }
}

/// Returns a client whose write timeout is 30 s, as long as reads may take.
pub(super) fn in_time(cluster: &Cluster) -> Cluster {
    cluster.with_timeout(std::time::Duration::from_secs(30))
}

/// Patches the status subresource if the kind has one, then the rest, and returns the fields that the server dropped.
/// Sets `is_written` once a part was written, even if the other then fails.
pub(super) async fn write_parts(
    reach: &Reach,
    key: &ObjectKey,
    patch: &Patch,
    dry_run: bool,
    is_written: &mut bool,
) -> Result<Vec<String>, WriteError> {
    let cluster = in_time(&reach.cluster);
    let (status, rest) = (patch.part(true), patch.part(false));
    let send = async |patch: &Patch, subresource: Option<&str>| {
        let body = patch.body();
        let request = PatchRequest {
            resource: &reach.resource,
            namespace: Some(&key.namespace),
            name: &key.name,
            subresource,
            patch_type: PatchType::Merge,
            body: &body,
            dry_run,
        };
        cluster.patch(&request).await
    };
    let mut dropped = Vec::new();
    let mut rest = rest;
    if !status.is_empty() {
        match send(&status, Some("status")).await {
            Ok(document) => {
                *is_written = !dry_run;
                if let Ok(object) = Object::new(document.root()) {
                    dropped.extend(status.dropped(&object));
                    // A dry run yields no resourceVersion for the second patch.
                    rest = if dry_run { rest } else { rest.based_on(&object) };
                }
            }
            // The kind has no status subresource.
            Err(WriteError::NotFound { .. }) => rest = patch.clone(),
            Err(error) => return Err(error),
        }
    }
    if !rest.is_empty() {
        let document = send(&rest, None).await?;
        *is_written = !dry_run;
        if let Ok(object) = Object::new(document.root()) {
            dropped.extend(rest.dropped(&object));
        }
    }
    Ok(dropped)
}

/// Creates an object and returns its name, which the server may have generated.
pub(super) async fn create(
    site: &Site,
    reach: &Reach,
    key: &ObjectKey,
    object: &Value,
    dry_run: bool,
) -> Result<Option<String>, Complaint> {
    let Some(served) = reach.discovery.kind(&key.group, &key.kind) else {
        return Err(Complaint::unreadable(format!(
            "{}: the server has no kind called {}",
            site.cluster, key.kind
        )));
    };
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let resource = served.in_version(version).unwrap_or_else(|| served.preferred());
    let body = object.to_string();
    let request = CreateRequest {
        resource: &resource,
        namespace: Some(&key.namespace),
        body: body.as_bytes(),
        dry_run,
    };
    let name = format!("{} {}", key.kind, named(key, object));
    let made = in_time(&reach.cluster).create(&request).await;
    let made = made.map_err(|error| {
        Complaint::unreadable(format!("cannot make {name}")).because(&error).hint(error.hint())
    })?;
    Ok(Object::new(made.root()).ok().map(|object| object.name().into_owned()))
}
