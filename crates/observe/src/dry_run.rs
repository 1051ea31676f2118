//! Asks an API server what an apply of a declared object would leave, without writing.

use std::time::Duration;

use serde_json::Value;
use taffrail_cluster::{ApplyRequest, Cluster, Discovery, FieldConflict, ReadError, WriteError, chain};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{ApiResource, ObjectKey, Projection};

use crate::error::Failure;

/// Maximum time for the questions about one object.
const PATIENCE: Duration = Duration::from_secs(60);

/// A declared object about which an API server is asked.
///
/// Its value may be a Secret: it is not `Debug`.
#[derive(Clone, Copy)]
pub struct DeclaredManifest<'a> {
    /// The key, with the namespace in which the object is applied.
    pub key: &'a ObjectKey,
    /// `apiVersion`.
    pub api_version: &'a str,
    /// The object.
    pub value: &'a Value,
}

/// The live object, and the server's answer to the dry run of an apply.
///
/// It may be a Secret: it is not `Debug`.
pub struct AskedApply {
    /// The live object at the `apiVersion` of the manifest; `None` if there is none.
    pub live: Option<Value>,
    /// The answer.
    pub answer: ApplyAnswer,
}

/// The server's answer to the dry run of an apply.
pub enum ApplyAnswer {
    /// The object that the apply would leave.
    Object {
        /// The object.
        object: Value,
        /// The conflicts that the server told at first; it was asked again with force if there were any.
        conflicts: Vec<FieldConflict>,
    },
    /// The user has no right to apply the object.
    NoRight,
    /// A webhook that the server must call takes no part in dry runs.
    NoDryRun,
    /// The server does not serve the kind in this version, or does not have the namespace. Holds its message.
    NotFound(String),
    /// The server refused the object. Holds its message.
    Refused(String),
}

/// Reads the live object, and asks the server what an apply of `declared` by the field manager `manager` would leave: first
/// without force, and if other managers own fields that it changes, again with force.
///
/// # Errors
/// If the server does not answer one of these questions, or the live object may not be read.
pub async fn ask_apply(
    cluster: &Cluster,
    discovery: &Discovery,
    declared: DeclaredManifest<'_>,
    manager: &str,
) -> Result<AskedApply, Failure> {
    let DeclaredManifest { key, api_version, value } = declared;
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let kind = discovery.kind(&key.group, &key.kind);
    let Some(resource) = kind.and_then(|kind| kind.in_version(version)) else {
        let message = format!("the server does not serve {} at {api_version}", key.kind);
        // Of a kind that it serves in other versions, the object may exist.
        let answer = match kind {
            Some(_) => ApplyAnswer::Refused(message),
            None => ApplyAnswer::NotFound(message),
        };
        return Ok(AskedApply { live: None, answer });
    };
    // What the server sends is charged for this object alone.
    let cluster = &cluster.within(PATIENCE);
    let trial = Trial { cluster, resource: &resource, key, body: value.to_string(), manager };
    let live = trial.live().await.map_err(|error| trial.failure(&error))?;
    let answer = trial.answer().await.map_err(|error| trial.failure(&error))?;
    Ok(AskedApply { live, answer })
}

struct Trial<'a> {
    cluster: &'a Cluster,
    resource: &'a ApiResource,
    key: &'a ObjectKey,
    body: String,
    manager: &'a str,
}

impl Trial<'_> {
    fn namespace(&self) -> Option<&str> {
        Some(&*self.key.namespace).filter(|_| self.resource.namespaced)
    }

    /// Makes a failure of an error. That of a Secret has no text of the server, which may quote its values.
    fn failure(&self, error: &ReadError) -> Failure {
        match (&*self.resource.group, &*self.resource.kind) {
            ("", "Secret") => Failure {
                message: "the server's message is not shown, because it may quote values of the Secret"
                    .to_owned(),
                reason: error.reason().as_str().to_owned(),
            },
            _ => Failure::of_read(error),
        }
    }

    async fn live(&self) -> Result<Option<Value>, ReadError> {
        let found =
            self.cluster.get(self.resource, self.namespace(), &self.key.name, Projection::Full).await?;
        Ok(found.as_ref().map(tree))
    }

    async fn answer(&self) -> Result<ApplyAnswer, ReadError> {
        let error = match self.apply(false).await {
            Ok(object) => return Ok(ApplyAnswer::Object { object: tree(&object), conflicts: Vec::new() }),
            Err(WriteError::FieldConflict { conflicts, .. }) => match self.apply(true).await {
                Ok(object) => return Ok(ApplyAnswer::Object { object: tree(&object), conflicts }),
                Err(error) => error,
            },
            Err(error) => error,
        };
        match error {
            error if error.is_missing_right() => Ok(ApplyAnswer::NoRight),
            WriteError::NotFound { message, .. } => Ok(ApplyAnswer::NotFound(message)),
            WriteError::Refused(ReadError::Refused { code: 400, message, .. })
                if message.contains("does not support dry run") =>
            {
                Ok(ApplyAnswer::NoDryRun)
            }
            WriteError::Refused(ReadError::Refused { code: 400..=499, message, .. }) => {
                Ok(ApplyAnswer::Refused(message))
            }
            WriteError::Refused(error) | WriteError::Uncertain(error) => Err(error),
            WriteError::Forbidden { message, .. }
            | WriteError::Invalid { message, .. }
            | WriteError::UnknownField { message, .. }
            | WriteError::Conflict { message, .. }
            | WriteError::FieldConflict { message, .. } => Ok(ApplyAnswer::Refused(message)),
            error => Ok(ApplyAnswer::Refused(chain(&error))),
        }
    }

    async fn apply(&self, force: bool) -> Result<OwnedDocument, WriteError> {
        let request = ApplyRequest {
            resource: self.resource,
            namespace: self.namespace(),
            name: &self.key.name,
            subresource: None,
            body: self.body.as_bytes(),
            manager: self.manager,
            force,
            dry_run: true,
            // It is one of a declared set, and nobody sees its values.
            allow_secret: true,
        };
        self.cluster.apply(&request).await
    }
}

/// Builds the tree of an object; `Null` for one that is nested too deeply, which no comparison takes for equal.
fn tree(document: &OwnedDocument) -> Value {
    document.root().to_tree().unwrap_or(Value::Null)
}
