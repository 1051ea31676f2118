//! The one Secret that Taffrail writes: that in which an agent keeps its own identity.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use taffrail_object::{ApiResource, Projection};

use crate::connect::Cluster;
use crate::error::ReadError;
use crate::write::{CreateRequest, PatchRequest, PatchType, WriteError, Writing};

/// The Secret in which a program keeps a value of its own.
#[derive(Debug, Clone, Copy)]
pub struct OwnSecret<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The key of the value in the Secret's data; all other keys stay as they are.
    pub key: &'a str,
}

fn secrets() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        plural: "secrets".to_owned(),
        namespaced: true,
    }
}

impl Cluster {
    /// Reads the value of an own Secret; `None` if there is no such Secret, or it has no such value.
    ///
    /// # Errors
    /// Returns an error if the Secret cannot be read.
    pub async fn read_own_secret(&self, secret: &OwnSecret<'_>) -> Result<Option<Vec<u8>>, ReadError> {
        let OwnSecret { namespace, name, key } = *secret;
        let found = self.get(&secrets(), Some(namespace), name, Projection::Full).await?;
        let text = found.and_then(|found| {
            let value = found.root().get("data")?.get(key)?;
            Some(value.as_str()?.into_owned())
        });
        // What is no Base64 is no value that was written here.
        Ok(text.map(|text| STANDARD.decode(text).unwrap_or_default()))
    }

    /// Writes the value of an own Secret, and creates the Secret if there is none. A right to create it is needed only
    /// then.
    ///
    /// # Errors
    /// Returns an error if the value is not written, or if that is uncertain.
    pub async fn write_own_secret(&self, secret: &OwnSecret<'_>, value: &[u8]) -> Result<(), WriteError> {
        let OwnSecret { namespace, name, key } = *secret;
        let resource = secrets();
        let data = json!({ key: STANDARD.encode(value) });
        let patch = json!({ "data": data }).to_string();
        let patched = self.send(Writing::patch(&PatchRequest {
            resource: &resource,
            namespace: Some(namespace),
            name,
            subresource: None,
            patch_type: PatchType::Merge,
            body: patch.as_bytes(),
            dry_run: false,
        }));
        match patched.await {
            Err(WriteError::NotFound { .. }) => {}
            other => return other.map(drop),
        }
        let new = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": name, "namespace": namespace },
            "type": "Opaque",
            "data": data,
        });
        let body = new.to_string();
        let created = self.send(Writing::create(&CreateRequest {
            resource: &resource,
            namespace: Some(namespace),
            body: body.as_bytes(),
            dry_run: false,
        }));
        created.await.map(drop)
    }
}
