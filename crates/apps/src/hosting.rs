//! The objects of management clusters that stand for other clusters.

use std::borrow::Cow;

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};
use taffrail_status::Observed;

use crate::declaration::Destination;
use crate::delivery::destination::Target;
use crate::fleet::Fleet;
use crate::objects::Objects;
use crate::secret_clusters::CLUSTER_API_GROUP;

/// The maximum number of objects of one kind in one cluster that are compared with the clusters of the fleet.
const MAX_OBJECTS: usize = 10_000;

/// The maximum number of addresses of one object that are compared.
const MAX_ADDRESSES: usize = 16;

/// The kinds of objects that stand for a cluster (group, kind): of Cluster API, Open Cluster Management, the multicluster
/// API of Kubernetes, Config Connector and Nephio.
const KINDS: [(&str, &str); 5] = [
    (CLUSTER_API_GROUP, "Cluster"),
    ("cluster.open-cluster-management.io", "ManagedCluster"),
    ("multicluster.x-k8s.io", "ClusterProfile"),
    ("container.cnrm.cloud.google.com", "ContainerCluster"),
    ("infra.nephio.org", "WorkloadCluster"),
];

/// An object of a management cluster that stands for a cluster of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostingObject {
    /// Name of the management cluster.
    pub home: String,
    /// The object.
    pub object: ObjectKey,
    /// Name of the cluster for which it stands.
    pub cluster: String,
    /// True if the address of its API server, or the kubeconfig Secret from which Taffrail takes the cluster, proves that;
    /// false if only the name is that of the cluster.
    pub is_proved: bool,
}

/// Finds the objects of the known kinds that stand for clusters of the fleet: those with the address of a cluster, each
/// `Cluster` of Cluster API from whose kubeconfig Secret a cluster was taken, and those named like a cluster.
///
/// It is the word of the management cluster, which decides nothing about the other one.
pub fn hosting(clusters: &[&dyn Objects]) -> Vec<HostingObject> {
    let fleet = Fleet::new(clusters);
    let mut found = Vec::new();
    for (home, member) in fleet.members.iter().enumerate() {
        for (group, kind) in KINDS {
            for observed in member.objects.of_kind(group, kind, None).take(MAX_OBJECTS) {
                let Some((cluster, is_proved)) = hosted(&fleet, home, &observed) else { continue };
                found.push(HostingObject {
                    home: member.objects.name().to_owned(),
                    object: observed.key.to_owned(),
                    cluster: fleet.objects(cluster).name().to_owned(),
                    is_proved,
                });
            }
        }
    }
    found
}

/// Returns the index of the cluster for which an object in the cluster `home` stands, and true if that is proved; `None`
/// if it is not in the fleet, or is `home` itself.
fn hosted(fleet: &Fleet<'_>, home: usize, observed: &Observed<'_>) -> Option<(usize, bool)> {
    let at = |address: String| match fleet.find(home, Target::Server(address, String::new())) {
        Destination::Cluster(cluster) => Some(cluster),
        Destination::OutOfReach(_) => None,
    };
    let proved =
        addresses(&observed.object).into_iter().find_map(at).or_else(|| of_secret(fleet, home, observed));
    let named = || {
        let name = match observed.key.kind {
            "WorkloadCluster" => observed.object.text(&["spec", "clusterName"]),
            _ => Cow::Borrowed(observed.key.name),
        };
        (0..fleet.members.len()).find(|place| fleet.names(*place).any(|own| own == name))
    };
    let found = proved.map(|cluster| (cluster, true)).or_else(|| Some((named()?, false)));
    found.filter(|(cluster, _)| *cluster != home)
}

/// Returns the index of the cluster that was taken from the kubeconfig Secret of a `Cluster` of Cluster API, by its name;
/// `None` for other objects, and if there is none.
fn of_secret(fleet: &Fleet<'_>, home: usize, observed: &Observed<'_>) -> Option<usize> {
    if observed.key.group != CLUSTER_API_GROUP {
        return None;
    }
    let named = |home: &str| format!("{home}/{}/{}", observed.key.namespace, observed.key.name);
    let names: Vec<String> = fleet.names(home).map(named).collect();
    let is_it = |place: &usize| fleet.names(*place).any(|name| names.iter().any(|own| own == name));
    (0..fleet.members.len()).find(is_it)
}

/// Returns the addresses of API servers that an object names as those of the cluster for which it stands, at most
/// [`MAX_ADDRESSES`].
fn addresses(object: &Object<'_>) -> Vec<String> {
    let text = |value: Option<Value<'_>>| {
        value.and_then(Value::as_str).map(Cow::into_owned).filter(|text| !text.is_empty())
    };
    let items =
        |path: &[&str]| object.at(path).and_then(Value::items).into_iter().flatten().take(MAX_ADDRESSES);
    match object.kind() {
        "Cluster" => {
            let endpoint = object.at(&["spec", "controlPlaneEndpoint"]);
            let host = text(endpoint.and_then(|endpoint| endpoint.get("host")));
            let port = endpoint.and_then(|endpoint| endpoint.get("port")?.as_i64());
            host.zip(port)
                .map(|(host, port)| format!("https://{}:{port}", bracketed(&host)))
                .into_iter()
                .collect()
        }
        "ManagedCluster" => items(&["spec", "managedClusterClientConfigs"])
            .filter_map(|config| text(config.get("url")))
            .collect(),
        "ClusterProfile" => {
            let providers =
                items(&["status", "accessProviders"]).chain(items(&["status", "credentialProviders"]));
            providers.filter_map(|provider| text(provider.at(&["cluster", "server"]))).collect()
        }
        "ContainerCluster" => {
            let endpoint = text(object.at(&["status", "endpoint"]));
            endpoint.map(|host| format!("https://{}", bracketed(&host))).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Puts an IPv6 address in brackets, as in a URL.
fn bracketed(host: &str) -> Cow<'_, str> {
    match host.contains(':') && !host.starts_with('[') {
        true => Cow::Owned(format!("[{host}]")),
        false => Cow::Borrowed(host),
    }
}
