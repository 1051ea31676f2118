//! The requests that write: one object at a time, through [`Cluster::patch`] and [`Cluster::create`] alone.

use taffrail_apps::verbs::Patch;
use taffrail_cluster::{Cluster, PatchRequest, PatchType, WriteError};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{ApiResource, ObjectKey};

/// Sends a JSON merge patch of an object, or of its subresource; with `dry_run` the server validates it without
/// storing it. Returns the object as the server has it then.
pub(super) async fn patch(
    cluster: &Cluster,
    resource: &ApiResource,
    key: &ObjectKey,
    subresource: Option<&str>,
    patch: &Patch,
    dry_run: bool,
) -> Result<OwnedDocument, WriteError> {
    let body = patch.body();
    let request = PatchRequest {
        resource,
        namespace: Some(&key.namespace),
        name: &key.name,
        subresource,
        patch_type: PatchType::Merge,
        body: &body,
        dry_run,
    };
    cluster.patch(&request).await
}

/// Functions that only actions use.
#[cfg(feature = "lua")]
mod of_actions {
    use serde_json::Value;
    use taffrail_api::operations::OperationError;
    use taffrail_cluster::CreateRequest;
    use taffrail_object::Object;

    use super::{Cluster, ObjectKey, Patch, WriteError, patch};
    use crate::operations::located::LiveObject;
    use crate::operations::of_write;

    /// Patches the status subresource if the kind has one, then the rest, and returns the fields that the server dropped.
    /// Sets `is_stored` once a part was written, even if the other then fails.
    pub(crate) async fn patch_parts(
        cluster: &Cluster,
        live: &LiveObject,
        key: &ObjectKey,
        whole: &Patch,
        dry_run: bool,
        is_stored: &mut bool,
    ) -> Result<Vec<String>, WriteError> {
        let (status, mut rest) = (whole.part(true), whole.part(false));
        let mut dropped = Vec::new();
        if !status.is_empty() {
            match patch(cluster, &live.resource, key, Some("status"), &status, dry_run).await {
                Ok(document) => {
                    *is_stored = !dry_run;
                    if let Ok(object) = Object::new(document.root()) {
                        dropped.extend(status.dropped(&object));
                        // A dry run yields no resourceVersion for the second patch.
                        rest = if dry_run { rest } else { rest.based_on(&object) };
                    }
                }
                // The kind has no status subresource.
                Err(WriteError::NotFound { .. }) => rest = whole.clone(),
                Err(error) => return Err(error),
            }
        }
        if !rest.is_empty() {
            let document = patch(cluster, &live.resource, key, None, &rest, dry_run).await?;
            *is_stored = !dry_run;
            if let Ok(object) = Object::new(document.root()) {
                dropped.extend(rest.dropped(&object));
            }
        }
        Ok(dropped)
    }

    /// Creates an object, and returns its name, which the server may have generated; `None` if the response has no
    /// readable object. `called` is its name in messages.
    pub(crate) async fn create(
        cluster: &Cluster,
        live: &LiveObject,
        key: &ObjectKey,
        called: &str,
        object: &Value,
        dry_run: bool,
    ) -> Result<Option<String>, OperationError> {
        let Some(served) = live.discovery.kind(&key.group, &key.kind) else {
            return Err(OperationError::unreadable(format!(
                "cannot create {} {called} in {}: the server does not serve the kind",
                key.kind,
                cluster.context()
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
        let made = cluster.create(&request).await;
        let made = made.map_err(|error| of_write(format!("cannot create {} {called}", key.kind), &error))?;
        Ok(Object::new(made.root()).ok().map(|object| object.name().into_owned()))
    }
}

#[cfg(feature = "lua")]
pub(super) use of_actions::{create, patch_parts};
