//! The cluster for which an object of a management cluster stands, as the object names it.

/// The cluster for which an object stands, such as a `Cluster` of Cluster API.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedCluster {
    /// The names in the status of the object, which a controller observed.
    pub observed: ClusterNames,
    /// The names in the other fields, which the author of the object chose.
    pub claimed: ClusterNames,
}

/// Names of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
}
