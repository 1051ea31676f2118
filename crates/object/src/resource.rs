//! Kinds as an API server serves them.

/// A kind in one version, as requests to an API server address it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The name in URL paths, such as `deployments`.
    pub plural: String,
    /// True if the kind's objects live in namespaces.
    pub namespaced: bool,
}

impl ApiResource {
    /// Returns the resource `namespaces` of the core group, version `v1`, which every API server serves.
    pub fn namespaces() -> ApiResource {
        ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            plural: "namespaces".to_owned(),
            namespaced: false,
        }
    }

    /// Returns the `apiVersion` of the kind's objects: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Returns the resource in kubectl's notation: `pods`, `deployments.apps`.
    pub fn full_name(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }
}
