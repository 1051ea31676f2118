//! The objects of management clusters that stand for other clusters.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};
use taffrail_status::Observed;

use crate::declaration::Destination;
use crate::delivery::destination::Target;
use crate::fleet::Fleet;
use crate::objects::Objects;
use crate::round_robin::round_robin;
use crate::secret_clusters::CLUSTER_API_GROUP;

/// The maximum number of objects that are listed of those that stand for one cluster; [`Hosting::left_out`] counts the
/// others.
pub const MAX_HOSTING: usize = 10;

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
    /// True if its status has the address of the cluster, or Taffrail takes the cluster from the kubeconfig Secret beside
    /// it. False if it only claims to stand for the cluster: by a name, or an address in its spec, which its author chose.
    pub is_proved: bool,
}

/// The objects of a fleet that stand for its clusters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosting {
    /// The objects: of each cluster at most [`MAX_HOSTING`], those that are proved first. In both parts the namespaces of
    /// the management clusters take turns, so that one with many objects displaces none of the others.
    pub objects: Vec<HostingObject>,
    /// Number of further objects that stand for a cluster, by its name.
    pub left_out: BTreeMap<String, usize>,
}

/// The objects in one namespace of a management cluster that stand for one cluster: the first [`MAX_HOSTING`], and the
/// number of all.
#[derive(Default)]
struct Share {
    kept: Vec<ObjectKey>,
    count: usize,
}

/// The place of a [`Share`]: the cluster for which the objects stand, true if they are not proved, and the management
/// cluster and namespace that hold them.
type SharePlace = (usize, bool, usize, String);

/// Finds the objects of the known kinds that stand for clusters of the fleet: those with the address of a cluster, each
/// `Cluster` of Cluster API from whose kubeconfig Secret a cluster was taken, and those named like a cluster.
///
/// It is the word of the management cluster, which decides nothing about the other one.
pub fn hosting(clusters: &[&dyn Objects]) -> Hosting {
    let fleet = Fleet::new(clusters);
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for place in 0..fleet.members.len() {
        fleet.names(place).for_each(|name| drop(by_name.entry(name).or_insert(place)));
    }
    let mut shares: BTreeMap<SharePlace, Share> = BTreeMap::new();
    for (home, member) in fleet.members.iter().enumerate() {
        for (group, kind) in KINDS {
            for observed in member.objects.of_kind(group, kind, None) {
                let Some((cluster, is_proved)) = hosted(&fleet, &by_name, home, &observed) else { continue };
                let place = (cluster, !is_proved, home, observed.key.namespace.to_owned());
                shares.entry(place).or_default().add(observed.key);
            }
        }
    }
    let mut hosting = Hosting::default();
    // Sorted by cluster, those that are proved first.
    let mut shares = shares.into_iter().peekable();
    while let Some(((cluster, ..), _)) = shares.peek() {
        let cluster = *cluster;
        let own: Vec<(SharePlace, Share)> =
            std::iter::from_fn(|| shares.next_if(|(place, _)| place.0 == cluster)).collect();
        hosting.add(&fleet, cluster, own);
    }
    hosting
}

impl Share {
    fn add(&mut self, key: ObjectKeyRef<'_>) {
        self.count += 1;
        if self.kept.len() < MAX_HOSTING {
            self.kept.push(key.to_owned());
        }
    }
}

impl Hosting {
    /// Lists the objects that stand for a cluster, from their shares, and counts those beyond the maximum.
    fn add(&mut self, fleet: &Fleet<'_>, cluster: usize, shares: Vec<(SharePlace, Share)>) {
        let name = fleet.objects(cluster).name();
        let count: usize = shares.iter().map(|(_, share)| share.count).sum();
        let (proved, named): (Vec<_>, Vec<_>) =
            shares.into_iter().partition(|((_, is_named, ..), _)| !*is_named);
        let mut listed = Vec::new();
        for shares in [proved, named] {
            let of_share = |((_, is_named, home, namespace), share): (SharePlace, Share)| {
                let turn = format!("{home}/{namespace}");
                share.kept.into_iter().map(move |object| (turn.clone(), !is_named, home, object))
            };
            let objects = shares.into_iter().flat_map(of_share).collect();
            listed.extend(round_robin(objects, |(turn, ..)| turn));
        }
        listed.truncate(MAX_HOSTING);
        if count > listed.len() {
            self.left_out.insert(name.to_owned(), count - listed.len());
        }
        self.objects.extend(listed.into_iter().map(|(_, is_proved, home, object)| HostingObject {
            home: fleet.objects(home).name().to_owned(),
            object,
            cluster: name.to_owned(),
            is_proved,
        }));
    }
}

/// Returns the index of the cluster for which an object in the cluster `home` stands, and true if that is proved; `None`
/// if it is not in the fleet, or is `home` itself. `by_name` has the index of each cluster by its names.
///
/// What a controller observed comes before what the author claims, so that a claim never hides a proof.
fn hosted(
    fleet: &Fleet<'_>,
    by_name: &HashMap<&str, usize>,
    home: usize,
    observed: &Observed<'_>,
) -> Option<(usize, bool)> {
    let at = |address: String| match fleet.find(home, Target::Server(address, String::new())) {
        Destination::Cluster(cluster) => Some(cluster),
        Destination::OutOfReach(_) => None,
    };
    let [seen, claimed] = addresses(&observed.object);
    let proved = || {
        let by_address = seen.into_iter().find_map(at);
        Some((by_address.or_else(|| of_secret(fleet, by_name, home, observed))?, true))
    };
    let named = || {
        let name = match observed.key.kind {
            "WorkloadCluster" => observed.object.text(&["spec", "clusterName"]),
            _ => Cow::Borrowed(observed.key.name),
        };
        let by_address = claimed.into_iter().find_map(at);
        Some((by_address.or_else(|| by_name.get(&*name).copied())?, false))
    };
    proved().or_else(named).filter(|(cluster, _)| *cluster != home)
}

/// Returns the index of the cluster that was taken from the kubeconfig Secret of a `Cluster` of Cluster API, by its name;
/// `None` for other objects, and if there is none.
fn of_secret(
    fleet: &Fleet<'_>,
    by_name: &HashMap<&str, usize>,
    home: usize,
    observed: &Observed<'_>,
) -> Option<usize> {
    if observed.key.group != CLUSTER_API_GROUP {
        return None;
    }
    let named = |home: &str| format!("{home}/{}/{}", observed.key.namespace, observed.key.name);
    fleet.names(home).find_map(|home| by_name.get(&*named(home)).copied())
}

/// Returns the addresses of API servers that an object names as those of the cluster for which it stands: those that its
/// controller observed, which are in its status, and those that its author wrote; at most [`MAX_ADDRESSES`] of each.
fn addresses(object: &Object<'_>) -> [Vec<String>; 2] {
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
            let address =
                host.zip(port).map(|(host, port)| format!("https://{}:{port}", bracketed(&host)));
            [Vec::new(), address.into_iter().collect()]
        }
        "ManagedCluster" => {
            let configs = items(&["spec", "managedClusterClientConfigs"]);
            [Vec::new(), configs.filter_map(|config| text(config.get("url"))).collect()]
        }
        "ClusterProfile" => {
            let providers =
                items(&["status", "accessProviders"]).chain(items(&["status", "credentialProviders"]));
            let server = |provider: Value<'_>| text(provider.at(&["cluster", "server"]));
            [providers.take(MAX_ADDRESSES).filter_map(server).collect(), Vec::new()]
        }
        "ContainerCluster" => {
            let endpoint = text(object.at(&["status", "endpoint"]));
            let address = endpoint.map(|host| format!("https://{}", bracketed(&host)));
            [address.into_iter().collect(), Vec::new()]
        }
        _ => [Vec::new(), Vec::new()],
    }
}

/// Puts an IPv6 address in brackets, as in a URL.
fn bracketed(host: &str) -> Cow<'_, str> {
    match host.contains(':') && !host.starts_with('[') {
        true => Cow::Owned(format!("[{host}]")),
        false => Cow::Borrowed(host),
    }
}
