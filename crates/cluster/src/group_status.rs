//! The one status that Taffrail writes unasked: that of a `ResourceGroup`, by an agent that was told to.

use serde_json::{Value, json};
use taffrail_object::ApiResource;
use taffrail_object::json::OwnedDocument;

use crate::connect::Cluster;
use crate::write::{PatchRequest, PatchType, WriteError, Writing};

/// The field manager of the statuses that an agent writes, as in `metadata.managedFields`.
pub const AGENT_FIELD_MANAGER: &str = "taffrail-agent";

/// Returns the resource of ResourceGroups in a version of their API group, such as `v1alpha1`.
pub fn resource_groups(version: &str) -> ApiResource {
    ApiResource {
        group: "kpt.dev".to_owned(),
        version: version.to_owned(),
        kind: "ResourceGroup".to_owned(),
        plural: "resourcegroups".to_owned(),
        namespaced: true,
    }
}

/// A status to write into a ResourceGroup.
#[derive(Debug, Clone, Copy)]
pub struct GroupStatusWrite<'a> {
    /// The version of the API group.
    pub version: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The UID of the object: another one of the same name is not written.
    pub uid: &'a str,
    /// The version of the object for which the status was computed.
    pub resource_version: &'a str,
    /// The fields of `status` to set, and to remove where they are `null`.
    pub status: &'a Value,
}

impl Cluster {
    /// Writes the status of a ResourceGroup, and nothing else of it, as [`AGENT_FIELD_MANAGER`]; returns the result.
    ///
    /// # Errors
    /// Returns an error if the status is not written, or if that is uncertain; [`WriteError::Conflict`] if anything of the
    /// object was written since it was read, or another object has its name.
    pub async fn write_group_status(
        &self,
        write: &GroupStatusWrite<'_>,
    ) -> Result<OwnedDocument, WriteError> {
        let GroupStatusWrite { version, namespace, name, uid, resource_version, status } = *write;
        let patch =
            json!({ "metadata": { "uid": uid, "resourceVersion": resource_version }, "status": status });
        let (resource, body) = (resource_groups(version), patch.to_string());
        let request = PatchRequest {
            resource: &resource,
            namespace: Some(namespace),
            name,
            subresource: Some("status"),
            patch_type: PatchType::Merge,
            body: body.as_bytes(),
            dry_run: false,
        };
        self.send(Writing::patch_by(&request, AGENT_FIELD_MANAGER)).await
    }
}
