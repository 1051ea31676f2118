//! The Secrets that Taffrail writes for itself: the identity of an agent, and the manifests that a set keeps for a rollback.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{ApiResource, Projection};

use crate::connect::Cluster;
use crate::error::ReadError;
use crate::write::{CreateRequest, PatchRequest, PatchType, WriteError, Writing};

/// The Secret in which a program keeps a value of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnSecret<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The key of the value in the Secret's data; all other keys stay as they are.
    pub key: &'a str,
    /// The labels that it gets, by which it is found; others stay as they are.
    pub labels: &'a [(&'a str, &'a str)],
    /// The annotations that it gets; others stay as they are.
    pub annotations: &'a [(&'a str, &'a str)],
}

impl OwnSecret<'_> {
    /// Returns the metadata of a new Secret.
    fn metadata(&self) -> Value {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
        };
        let mut metadata = json!({ "name": self.name, "namespace": self.namespace });
        for (field, pairs) in [("labels", self.labels), ("annotations", self.annotations)] {
            if !pairs.is_empty() {
                metadata[field] = Value::Object(map(pairs));
            }
        }
        metadata
    }
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

/// An own Secret as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSecretRead {
    /// The value; `None` if the Secret has none.
    pub value: Option<Vec<u8>>,
    /// The version of the Secret.
    pub version: String,
}

impl Cluster {
    /// Reads an own Secret; `None` if there is no such Secret.
    ///
    /// # Errors
    /// Returns an error if the Secret cannot be read.
    pub async fn read_own_secret(&self, secret: &OwnSecret<'_>) -> Result<Option<OwnSecretRead>, ReadError> {
        let OwnSecret { namespace, name, key, .. } = *secret;
        let found = self.get(&secrets(), Some(namespace), name, Projection::Full).await?;
        Ok(found.map(|found| {
            let root = found.root();
            let text = root.get("data").and_then(|data| data.get(key)).and_then(|value| value.as_str());
            // What is no Base64 is no value that was written here.
            let value = text.map(|text| STANDARD.decode(&*text).unwrap_or_default());
            OwnSecretRead { value, version: version(&found) }
        }))
    }

    /// Writes the value of an own Secret that had this version when it was read, and returns its new one; creates the Secret
    /// if there was none. A right to create it is needed only then.
    ///
    /// # Errors
    /// Returns an error if the value is not written, or if that is uncertain; [`WriteError::Conflict`] if the Secret was
    /// written since it was read.
    pub async fn write_own_secret(
        &self,
        secret: &OwnSecret<'_>,
        value: &[u8],
        read: Option<&str>,
    ) -> Result<String, WriteError> {
        let OwnSecret { namespace, name, key, .. } = *secret;
        let resource = secrets();
        let data = json!({ key: STANDARD.encode(value) });
        let written = match read {
            Some(version) => {
                let mut metadata = secret.metadata();
                metadata["resourceVersion"] = json!(version);
                let patch = json!({ "metadata": metadata, "data": data }).to_string();
                self.send(Writing::patch(&PatchRequest {
                    resource: &resource,
                    namespace: Some(namespace),
                    name,
                    subresource: None,
                    patch_type: PatchType::Merge,
                    body: patch.as_bytes(),
                    dry_run: false,
                }))
                .await?
            }
            None => {
                let new = json!({
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": secret.metadata(),
                    "type": "Opaque",
                    "data": data,
                });
                let body = new.to_string();
                self.send(Writing::create(&CreateRequest {
                    resource: &resource,
                    namespace: Some(namespace),
                    body: body.as_bytes(),
                    dry_run: false,
                }))
                .await?
            }
        };
        Ok(version(&written))
    }
}

fn version(object: &OwnedDocument) -> String {
    let metadata = object.root().get("metadata");
    let version = metadata.and_then(|metadata| metadata.get("resourceVersion"));
    version.and_then(|version| version.as_str()).unwrap_or_default().into_owned()
}
