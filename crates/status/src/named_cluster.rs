//! The cluster for which an object of a management cluster stands, as the object names it.

use serde::{Deserialize, Serialize};

/// The cluster for which an object stands, such as a `Cluster` of Cluster API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedCluster {
    /// The names in the status of the object, which a controller observed.
    pub observed: ClusterNames,
    /// The names in the other fields, which the author of the object chose.
    pub claimed: ClusterNames,
}

/// Names of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNames {
    /// Identities: UIDs of the Namespace `kube-system`.
    pub ids: Vec<String>,
    /// Addresses of the API server, as URLs.
    pub addresses: Vec<String>,
    /// Names by which people may know the cluster.
    pub names: Vec<String>,
}

impl ClusterNames {
    /// The maximum number of names of each sort that are taken from one object; further ones are dropped.
    pub const MAX: usize = 16;

    /// The maximum length in bytes of a name; a longer one is dropped.
    pub const MAX_LENGTH: usize = 512;

    /// Returns the length of all names together, in bytes.
    pub fn size(&self) -> usize {
        let ClusterNames { ids, addresses, names } = self;
        [ids, addresses, names].into_iter().flatten().map(String::len).sum()
    }

    /// Drops names beyond the maximum number and length; returns true if it dropped any.
    pub fn limit(&mut self) -> bool {
        let mut is_cut = false;
        let ClusterNames { ids, addresses, names } = self;
        for list in [ids, addresses, names] {
            let before = list.len();
            list.retain(|name| name.len() <= ClusterNames::MAX_LENGTH);
            list.truncate(ClusterNames::MAX);
            is_cut |= list.len() < before;
        }
        is_cut
    }
}
