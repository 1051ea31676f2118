//! The identity and the version of a cluster.

use serde::Deserialize;
use taffrail_object::{ApiResource, Projection};

use crate::connect::Cluster;
use crate::error::ReadError;
use crate::request::{Ask, JSON};

impl Cluster {
    /// Returns the ID of this cluster: the UID of its namespace `kube-system`.
    ///
    /// # Errors
    ///
    /// Returns an error if the namespace cannot be read.
    pub async fn id(&self) -> Result<String, ReadError> {
        let namespaces = ApiResource::namespaces();
        let what = "identify the cluster (namespace kube-system)";
        let unexpected =
            |problem: &str| ReadError::Unexpected { what: what.to_owned(), problem: problem.to_owned() };
        let object = self
            .get_for(what, &namespaces, None, "kube-system", Projection::Metadata)
            .await?
            .ok_or_else(|| unexpected("there is no namespace kube-system"))?;

        #[derive(Deserialize)]
        struct Object {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            uid: String,
        }
        let uid = serde_json::from_slice::<Object>(object.text())
            .map(|object| object.metadata.uid)
            .unwrap_or_default();
        if uid.is_empty() { Err(unexpected("the namespace has no UID")) } else { Ok(uid) }
    }

    /// Returns the server's version, such as `v1.36.3`.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read.
    pub async fn version(&self) -> Result<String, ReadError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        let ask =
            Ask { what: "read the server's version".to_owned(), path: "/version".to_owned(), accept: JSON };
        let answer = self.ask(&ask).await.map_err(|failure| failure.error)?;
        serde_json::from_slice::<Version>(&answer.body)
            .map(|version| version.git_version)
            .map_err(|error| answer.unreadable(&ask.what, format!("the answer is malformed: {error}")))
    }
}
