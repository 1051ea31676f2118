//! Server-side applies and deletions of single objects.

use std::fmt;

use http::Method;
use serde_json::{Map, Value, json};
use taffrail_object::ApiResource;
use taffrail_object::json::OwnedDocument;

use crate::connect::Cluster;
use crate::write::{DELETE, PatchRequest, PatchType, WriteError, Writing, path_to, query, told};

/// A server-side apply: the fields that the field manager wants an object to have, and no others.
#[derive(Clone, Copy)]
pub struct ApplyRequest<'a> {
    /// The object's resource, in the version of `body`.
    pub resource: &'a ApiResource,
    /// The object's namespace; `None` for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The object's name. The server creates the object if there is none, which takes the right to create it, too.
    pub name: &'a str,
    /// The subresource to apply to, such as `status`; `None` for the object itself.
    pub subresource: Option<&'a str>,
    /// The wanted fields as JSON, with `apiVersion`, `kind` and `metadata.name`. With a `metadata.resourceVersion` that is
    /// not the object's the server refuses it with [`WriteError::Conflict`]; with another `metadata.uid` than the object's
    /// with [`WriteError::Invalid`], and with any if there is no object, with [`WriteError::Conflict`].
    pub body: &'a [u8],
    /// The field manager, as in `metadata.managedFields`. What it applied before and `body` no longer has is removed,
    /// unless others own it too.
    pub manager: &'a str,
    /// True to take the fields that other managers own, false to fail with [`WriteError::FieldConflict`].
    pub force: bool,
    /// True for a server-side dry run: the server validates and admits the change, and stores nothing.
    pub dry_run: bool,
    /// True if the object may be a Secret, which must be one of a declared set.
    pub allow_secret: bool,
}

/// Leaves the body out, which may have the values of a Secret.
impl fmt::Debug for ApplyRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplyRequest")
            .field("resource", &self.resource)
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("subresource", &self.subresource)
            .field("manager", &self.manager)
            .field("force", &self.force)
            .field("dry_run", &self.dry_run)
            .field("allow_secret", &self.allow_secret)
            .finish_non_exhaustive()
    }
}

/// A change of the managers of an object's fields, which leaves the fields themselves as they are.
#[derive(Debug, Clone, Copy)]
pub struct ManagersRequest<'a> {
    /// The object's resource.
    pub resource: &'a ApiResource,
    /// The object's namespace; `None` for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The object's name.
    pub name: &'a str,
    /// The version that the object must have.
    pub resource_version: &'a str,
    /// The new `metadata.managedFields`.
    pub managed_fields: &'a [Value],
}

/// A deletion of one object.
#[derive(Debug, Clone, Copy)]
pub struct DeleteRequest<'a> {
    /// The object's resource.
    pub resource: &'a ApiResource,
    /// The object's namespace; `None` for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The object's name.
    pub name: &'a str,
    /// The UID that the object must have: the server refuses to delete another one of the same name with
    /// [`WriteError::Conflict`].
    pub uid: Option<&'a str>,
    /// The version that the object must have, or else the server refuses with [`WriteError::Conflict`].
    pub resource_version: Option<&'a str>,
    /// The fate of the objects that it owns; `None` for the default of its kind.
    pub propagation: Option<DeletePropagation>,
    /// True for a server-side dry run: the server admits the deletion, and deletes nothing.
    pub dry_run: bool,
    /// True if the object may be a Secret, which must be one of a declared set.
    pub allow_secret: bool,
}

/// The fate of the objects that a deleted object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeletePropagation {
    /// The garbage collector deletes them after the object.
    Background,
    /// The garbage collector deletes them first, and the object exists as long as they do.
    Foreground,
    /// They stay, and the object is no longer their owner.
    Orphan,
}

impl DeletePropagation {
    /// Returns the word of the API, as in `DeleteOptions`.
    pub fn as_str(self) -> &'static str {
        match self {
            DeletePropagation::Background => "Background",
            DeletePropagation::Foreground => "Foreground",
            DeletePropagation::Orphan => "Orphan",
        }
    }
}

/// The success of a deletion.
#[derive(Debug, Clone)]
pub enum DeleteOutcome {
    /// The object is gone.
    Gone,
    /// The object is marked for deletion, and is gone as soon as its finalizers and its grace period allow. Holds the
    /// object as the server answered it.
    Terminating(OwnedDocument),
}

impl Cluster {
    /// Applies an object, and returns the result; for a dry run, the result that it would have.
    ///
    /// Like [`Cluster::patch`] it retries only requests that the server has deferred (429).
    ///
    /// # Errors
    ///
    /// Returns an error if the object is not changed, or if that is uncertain: [`WriteError::FieldConflict`] if other
    /// managers own fields that the apply would change, [`WriteError::Secret`] for a Secret that the request does not
    /// allow. No error quotes a Secret.
    pub async fn apply(&self, request: &ApplyRequest<'_>) -> Result<OwnedDocument, WriteError> {
        let writing = applying(request);
        if !request.allow_secret {
            writing.refuse_secret()?;
        }
        self.send(writing).await
    }

    /// Changes the managers of an object's fields. The object may be a Secret: neither the request nor the errors have its values.
    ///
    /// Like [`Cluster::patch`] it retries only requests that the server has deferred (429).
    ///
    /// # Errors
    ///
    /// Returns an error if the managers are not changed, or if that is uncertain: [`WriteError::Conflict`] or
    /// [`WriteError::Invalid`] if the object has another version.
    pub async fn set_managers(&self, request: &ManagersRequest<'_>) -> Result<OwnedDocument, WriteError> {
        let ManagersRequest { resource, namespace, name, resource_version, managed_fields } = *request;
        let patch = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": resource_version },
            { "op": "replace", "path": "/metadata/managedFields", "value": managed_fields },
        ]);
        let body = patch.to_string();
        self.send(Writing::patch(&PatchRequest {
            resource,
            namespace,
            name,
            subresource: None,
            patch_type: PatchType::Json,
            body: body.as_bytes(),
            dry_run: false,
        }))
        .await
    }

    /// Deletes an object.
    ///
    /// Like [`Cluster::patch`] it retries only requests that the server has deferred (429).
    ///
    /// # Errors
    ///
    /// Returns an error if the object is not deleted, or if that is uncertain: [`WriteError::NotFound`] if there is none,
    /// [`WriteError::Secret`] for a Secret that the request does not allow. No error quotes a Secret.
    pub async fn delete(&self, request: &DeleteRequest<'_>) -> Result<DeleteOutcome, WriteError> {
        let options = options(request).to_string();
        let writing = deleting(request, options.as_bytes());
        if !request.allow_secret {
            writing.refuse_secret()?;
        }
        // The answer is the object if that is not gone yet, or if its kind answers so.
        let written = self.deliver(writing).await?;
        if written.answer.is_success_status() {
            return Ok(DeleteOutcome::Gone);
        }
        let object = self.object_of(&written)?;
        let is_marked = object.root().at(&["metadata", "deletionTimestamp"]).is_some_and(|at| !at.is_null());
        Ok(if is_marked { DeleteOutcome::Terminating(object) } else { DeleteOutcome::Gone })
    }
}

fn applying<'a>(request: &ApplyRequest<'a>) -> Writing<'a> {
    let ApplyRequest { resource, name, subresource, body, manager, force, dry_run, .. } = *request;
    let namespace = request.namespace.filter(|_| resource.namespaced);
    let part = subresource.map_or(String::new(), |part| format!("/{part}"));
    let query = query(manager, if force { "&force=true" } else { "" }, dry_run);
    Writing {
        what: told(format!("apply {}/{name}{part}", resource.full_name()), namespace, dry_run),
        path: format!("{}{part}{query}", path_to(resource, namespace, name)),
        resource,
        method: Method::PATCH,
        // JSON is YAML.
        content_type: "application/apply-patch+yaml",
        body,
        dry_run,
    }
}

/// Forms a deletion with these `DeleteOptions`.
fn deleting<'a>(request: &DeleteRequest<'a>, options: &'a [u8]) -> Writing<'a> {
    let DeleteRequest { resource, name, dry_run, .. } = *request;
    let namespace = request.namespace.filter(|_| resource.namespaced);
    Writing {
        what: told(format!("{DELETE}{}/{name}", resource.full_name()), namespace, dry_run),
        path: path_to(resource, namespace, name),
        resource,
        method: Method::DELETE,
        content_type: "application/json",
        body: options,
        dry_run,
    }
}

/// Returns the `DeleteOptions` of a deletion. An API server that gets them ignores the query.
fn options(request: &DeleteRequest<'_>) -> Value {
    let mut options = Map::new();
    options.insert("apiVersion".to_owned(), json!("v1"));
    options.insert("kind".to_owned(), json!("DeleteOptions"));
    let preconditions: Map<String, Value> =
        [("uid", request.uid), ("resourceVersion", request.resource_version)]
            .into_iter()
            .filter_map(|(key, value)| value.map(|value| (key.to_owned(), json!(value))))
            .collect();
    if !preconditions.is_empty() {
        options.insert("preconditions".to_owned(), Value::Object(preconditions));
    }
    if let Some(propagation) = request.propagation {
        options.insert("propagationPolicy".to_owned(), json!(propagation.as_str()));
    }
    if request.dry_run {
        options.insert("dryRun".to_owned(), json!(["All"]));
    }
    Value::Object(options)
}
