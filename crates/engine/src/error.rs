//! The errors of the engine.

use taffrail_apps::inventories::InventoryError;
use taffrail_cluster::{Cluster, ReadError, chain};
use taffrail_object::ObjectKey;
use taffrail_plan::manifests::{FileLine, ManifestErrors};
use taffrail_plan::order::OrderError;

use crate::record::RecordError;

/// The reason why a sync, a prune or a destroy did not begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The cluster does not answer.
    #[error("{cluster}: {message}")]
    Unreachable {
        /// The name of the cluster.
        cluster: String,
        /// The reason in one word.
        reason: String,
        /// The message.
        message: String,
    },
    /// The manifests cannot be read.
    #[error("the manifests are not valid")]
    Manifests(#[source] ManifestErrors),
    /// The manifests declare no object.
    #[error("the manifests declare no object")]
    NothingDeclared,
    /// The set declares more objects than a record can hold.
    #[error("the set declares {count} objects, more than the {most} of which a record can be kept")]
    TooMany {
        /// The number of objects.
        count: usize,
        /// The maximum.
        most: usize,
    },
    /// The objects have no order.
    #[error("the objects cannot be ordered")]
    Order(Vec<OrderError>),
    /// The API server would refuse objects: nothing was written.
    #[error("{} of the objects cannot be applied", .0.len())]
    Refused(Vec<RefusedObject>),
    /// The record of the set cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The inventory of another tool cannot be read or written.
    #[error("cannot prune by the inventory")]
    Inventory(#[source] Box<InventoryError>),
    /// The object is the record of a set.
    #[error("{kind} {path} is the record of a set", kind = .0.kind, path = .0.path())]
    IsSet(Box<ObjectKey>),
    /// The caller did not want the run to begin: nothing was written.
    #[error("the run was not approved, so nothing was written")]
    NotApproved,
    /// There is no such set, or no such run of it.
    #[error("{0}")]
    NotFound(String),
}

impl From<InventoryError> for EngineError {
    fn from(error: InventoryError) -> EngineError {
        EngineError::Inventory(Box::new(error))
    }
}

impl EngineError {
    /// Makes the error of a read that failed.
    pub(crate) fn unreadable(cluster: &Cluster, error: &ReadError) -> EngineError {
        EngineError::Unreachable {
            cluster: cluster.context().to_owned(),
            reason: error.reason().as_str().to_owned(),
            message: chain(error),
        }
    }

    /// Returns a hint for the user; empty if there is none.
    pub fn hint(&self) -> &'static str {
        match self {
            EngineError::Unreachable { .. } => "check the cluster with `taffrail get clusters`",
            EngineError::NothingDeclared => {
                "check the source of the manifests; `taffrail destroy` removes a whole set"
            }
            EngineError::TooMany { .. } => "divide the manifests into several sets",
            EngineError::Order(_) => "remove one of the annotations named",
            EngineError::Refused(_) => {
                "nothing was written: mend the manifests or the rights, then sync again"
            }
            EngineError::NotFound(_) => "`taffrail get apps --delivery taffrail` lists the sets",
            EngineError::Record(error) => error.hint(),
            EngineError::IsSet(_) => "prune the set with `taffrail prune --set`",
            EngineError::Inventory(error) => match **error {
                InventoryError::Elsewhere(_) => {
                    "nothing was deleted: prune with the tool that delivers the objects"
                }
                InventoryError::NotNewest { .. } => "name the newest version",
                InventoryError::NotAnInventory(_) => {
                    "name a ResourceGroup, a ConfigMap of cli-utils, a Kustomization, HelmRelease or Application, or the \
                     Secret of a Helm release"
                }
                _ => "",
            },
            EngineError::Manifests(_) | EngineError::NotApproved => "",
        }
    }
}

/// An object that the API server would refuse, or that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedObject {
    /// The object.
    pub key: ObjectKey,
    /// The place of its manifest.
    pub place: FileLine,
    /// The reason in one word.
    pub reason: String,
    /// The message; it quotes no value of a Secret.
    pub message: String,
}
