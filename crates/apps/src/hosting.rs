//! The objects of management clusters that stand for other clusters.

use taffrail_object::ObjectKey;
use taffrail_object::json::Value;
use taffrail_status::Observed;

use crate::declaration::Destination;
use crate::delivery::destination::Target;
use crate::fleet::Fleet;
use crate::objects::Objects;
use crate::secret_clusters::CLUSTER_API_GROUP;

/// The maximum number of objects of one cluster that are compared with the clusters of the fleet.
const MAX_OBJECTS: usize = 10_000;

/// An object of a management cluster that stands for a cluster of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostingObject {
    /// Name of the management cluster.
    pub home: String,
    /// The object.
    pub object: ObjectKey,
    /// Name of the cluster for which it stands.
    pub cluster: String,
}

/// Finds the objects that stand for clusters of the fleet: each `Cluster` of Cluster API whose control plane has the
/// address of a cluster, or from whose kubeconfig Secret a cluster was taken.
///
/// It is the word of the management cluster, which decides nothing about the other one.
pub fn hosting(clusters: &[&dyn Objects]) -> Vec<HostingObject> {
    let fleet = Fleet::new(clusters);
    let mut found = Vec::new();
    for (home, member) in fleet.members.iter().enumerate() {
        for observed in member.objects.of_kind(CLUSTER_API_GROUP, "Cluster", None).take(MAX_OBJECTS) {
            let Some(cluster) = hosted(&fleet, home, &observed).filter(|cluster| *cluster != home) else {
                continue;
            };
            found.push(HostingObject {
                home: member.objects.name().to_owned(),
                object: observed.key.to_owned(),
                cluster: fleet.objects(cluster).name().to_owned(),
            });
        }
    }
    found
}

/// Returns the index of the cluster for which a `Cluster` of Cluster API in the cluster `home` stands; `None` if it is
/// not in the fleet.
fn hosted(fleet: &Fleet<'_>, home: usize, observed: &Observed<'_>) -> Option<usize> {
    let endpoint = observed.object.at(&["spec", "controlPlaneEndpoint"]);
    let host = endpoint.and_then(|endpoint| endpoint.get("host")?.as_str()).filter(|host| !host.is_empty());
    let port = endpoint.and_then(|endpoint| endpoint.get("port").and_then(Value::as_i64));
    let by_address = host.zip(port).and_then(|(host, port)| {
        let host = if host.contains(':') { format!("[{host}]") } else { host.into_owned() };
        match fleet.find(home, Target::Server(format!("https://{host}:{port}"), String::new())) {
            Destination::Cluster(cluster) => Some(cluster),
            Destination::OutOfReach(_) => None,
        }
    });
    let by_secret = || {
        let named = |home: &str| format!("{home}/{}/{}", observed.key.namespace, observed.key.name);
        let names: Vec<String> = fleet.names(home).map(named).collect();
        let is_it = |place: &usize| fleet.names(*place).any(|name| names.iter().any(|own| own == name));
        (0..fleet.members.len()).find(is_it)
    };
    by_address.or_else(by_secret)
}
