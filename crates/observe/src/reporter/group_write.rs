//! One write of the status of a ResourceGroup.

use serde_json::Value;
use taffrail_apps::{GroupStatusOwner, RESOURCE_GROUP_CONTROLLER, group_status_owner, has_group_status};
use taffrail_cluster::{
    AGENT_FIELD_MANAGER, ApiResource, Cluster, GroupStatusWrite, ReadError, WriteError, chain,
    resource_groups,
};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{Object, Projection};

use crate::error::is_refusal;

/// A status that is to be written.
pub(super) struct GroupWrite {
    pub(super) cluster: Cluster,
    /// The version of the API group.
    pub(super) version: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// The version of the object for which the status was computed.
    pub(super) resource_version: String,
    pub(super) status: Value,
    /// True to look first for the controller that may have been installed meanwhile.
    pub(super) looks_for_controller: bool,
}

/// The result of a write, or of looking if it may be made.
#[derive(Debug)]
pub(super) enum Written {
    /// It was made.
    Done,
    /// The object has changed since its status was computed, or is gone. A change is on its way to the watch.
    Outdated,
    /// Config Sync's controller runs in the cluster.
    ControllerRuns,
    /// Another field manager owns the status, or a part of it.
    Owned(String),
    /// The status was written by nobody who is known.
    NotRecorded,
    /// The server stored something else.
    NotKept,
    /// Another client changed the object at the same moment.
    Conflict(String),
    /// The server refused, and would refuse it again.
    Refused(String),
    /// The server did not answer, or not as expected: the status may have been written.
    Unanswered(String),
}

impl From<ReadError> for Written {
    fn from(error: ReadError) -> Written {
        match is_refusal(&error) {
            true => Written::Refused(chain(&error)),
            false => Written::Unanswered(chain(&error)),
        }
    }
}

impl From<WriteError> for Written {
    fn from(error: WriteError) -> Written {
        match error {
            WriteError::Conflict { message, .. } => Written::Conflict(message),
            WriteError::Uncertain(_) => Written::Unanswered(chain(&error)),
            WriteError::Refused(error) => error.into(),
            error => Written::Refused(chain(&error)),
        }
    }
}

impl GroupWrite {
    /// Writes the status, if nobody else owns it and nothing has changed since it was computed. The server checks again
    /// that nothing has.
    pub(super) async fn run(self) -> Written {
        self.write().await.unwrap_or_else(|refused| refused)
    }

    async fn write(&self) -> Result<Written, Written> {
        let GroupWrite { cluster, version, namespace, name, uid, resource_version, status, .. } = self;
        if self.looks_for_controller && self.finds_controller().await? {
            return Ok(Written::ControllerRuns);
        }
        // What is followed may lack the managed fields, which are about half of an object.
        let found = cluster.get(&resource_groups(version), Some(namespace), name, Projection::Full).await?;
        let Some(group) = found.as_ref().and_then(parsed) else { return Ok(Written::Outdated) };
        let is = |field: &str, expected: &str| group.text(&["metadata", field]) == expected;
        if !is("uid", uid) || !is("resourceVersion", resource_version) {
            return Ok(Written::Outdated);
        }
        match group_status_owner(&group, AGENT_FIELD_MANAGER) {
            GroupStatusOwner::Nobody | GroupStatusOwner::Own => {}
            GroupStatusOwner::Other(manager) => return Ok(Written::Owned(manager)),
            GroupStatusOwner::NotRecorded => return Ok(Written::NotRecorded),
        }
        let write = GroupStatusWrite { version, namespace, name, uid, resource_version, status };
        let stored = cluster.write_group_status(&write).await?;
        let is_kept = parsed(&stored).is_some_and(|group| has_group_status(&group, status));
        Ok(if is_kept { Written::Done } else { Written::NotKept })
    }

    async fn finds_controller(&self) -> Result<bool, ReadError> {
        let deployments = ApiResource {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
            plural: "deployments".to_owned(),
            namespaced: true,
        };
        let (namespace, name) = RESOURCE_GROUP_CONTROLLER;
        let found = self.cluster.get(&deployments, Some(namespace), name, Projection::Metadata).await?;
        Ok(found.is_some())
    }
}

fn parsed(document: &OwnedDocument) -> Option<Object<'_>> {
    Object::new(document.root()).ok()
}
