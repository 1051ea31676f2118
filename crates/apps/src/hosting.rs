//! The objects of management clusters that stand for other clusters.

use std::collections::{BTreeMap, HashMap};

use taffrail_object::{GroupKind, ObjectKey, ObjectKeyRef};
use taffrail_status::{ClusterNames, NamedCluster, Observed, Rules};

use crate::declaration::Destination;
use crate::delivery::destination::Target;
use crate::fleet::Fleet;
use crate::objects::Objects;
use crate::round_robin::round_robin;
use crate::secret_clusters::CLUSTER_API_GROUP;

/// The maximum number of objects that are listed of those that stand for one cluster; [`Hosting::left_out`] counts the
/// others.
pub const MAX_HOSTING: usize = 10;

/// An object of a management cluster that stands for a cluster of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostingObject {
    /// Name of the management cluster.
    pub home: String,
    /// The object.
    pub object: ObjectKey,
    /// Name of the cluster for which it stands.
    pub cluster: String,
    /// True if its status has the identity or address of the cluster, or Taffrail takes the cluster from the kubeconfig
    /// Secret beside it. False if it only claims to stand for the cluster: by a name, or an address in its spec, which its
    /// author chose.
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

/// Objects that stand for clusters, collected by cluster, from which each cluster lists at most [`MAX_HOSTING`].
#[derive(Debug)]
pub struct HostingShares<T>(BTreeMap<SharePlace, Share<T>>);

/// The place of a [`Share`]: the cluster for which the objects stand, true if they are not proved, and the management
/// cluster and namespace that hold them.
type SharePlace = (usize, bool, usize, String);

/// The objects in one namespace of a management cluster that stand for one cluster: the first [`MAX_HOSTING`], and the
/// number of all.
#[derive(Debug)]
struct Share<T> {
    kept: Vec<T>,
    count: usize,
}

/// The objects that stand for one cluster.
#[derive(Debug)]
pub struct HostedCluster<T> {
    /// The number of the cluster.
    pub cluster: usize,
    /// The objects, at most [`MAX_HOSTING`], each with the number of its management cluster, and true if it is proved.
    pub objects: Vec<(bool, usize, T)>,
    /// Number of further objects.
    pub left_out: usize,
}

impl<T> Default for HostingShares<T> {
    fn default() -> HostingShares<T> {
        HostingShares(BTreeMap::new())
    }
}

impl<T> HostingShares<T> {
    /// Adds an object in `namespace` of the cluster with the number `home` that stands for the one with the number
    /// `cluster`; calls `object` only if it may be listed.
    pub fn add(
        &mut self,
        cluster: usize,
        is_proved: bool,
        (home, namespace): (usize, &str),
        object: impl FnOnce() -> T,
    ) {
        let place = (cluster, !is_proved, home, namespace.to_owned());
        let share = self.0.entry(place).or_insert_with(|| Share { kept: Vec::new(), count: 0 });
        share.count += 1;
        if share.kept.len() < MAX_HOSTING {
            share.kept.push(object());
        }
    }

    /// Returns the clusters for which any object stands, by number. The objects that are proved come first; of these, and
    /// of the others, the management clusters take turns, and in each of them its namespaces.
    pub fn finish(self) -> Vec<HostedCluster<T>> {
        let mut shares = self.0.into_iter().peekable();
        let mut hosted = Vec::new();
        while let Some(((cluster, ..), _)) = shares.peek() {
            let cluster = *cluster;
            // Sorted by cluster, those that are proved first.
            let own: Vec<(SharePlace, Share<T>)> =
                std::iter::from_fn(|| shares.next_if(|(place, _)| place.0 == cluster)).collect();
            let count: usize = own.iter().map(|(_, share)| share.count).sum();
            let (proved, claimed): (Vec<_>, Vec<_>) = own.into_iter().partition(|(place, _)| !place.1);
            let mut objects: Vec<(bool, usize, T)> = Vec::new();
            for shares in [proved, claimed] {
                let of_share = |((_, is_claimed, home, namespace), share): (SharePlace, Share<T>)| {
                    let turns = [home.to_string(), format!("{home}/{namespace}")];
                    share.kept.into_iter().map(move |object| (turns.clone(), (!is_claimed, home, object)))
                };
                let shared: Vec<([String; 2], _)> = shares.into_iter().flat_map(of_share).collect();
                // The clusters take turns, and in each of them its namespaces.
                let shared = round_robin(shared, |([_, namespace], _)| namespace);
                let shared = round_robin(shared, |([home, _], _)| home);
                objects.extend(shared.into_iter().map(|(_, object)| object));
            }
            objects.truncate(MAX_HOSTING);
            hosted.push(HostedCluster { cluster, left_out: count - objects.len(), objects });
        }
        hosted
    }
}

/// Finds the objects that stand for clusters of the fleet: of the kinds that do so by `rules`, those with the identity or
/// address of a cluster, each `Cluster` of Cluster API from whose kubeconfig Secret a cluster was taken, and those named
/// like a cluster.
///
/// It is the word of the management cluster, which decides nothing about the other one.
pub fn hosting(clusters: &[&dyn Objects], rules: &dyn Rules) -> Hosting {
    let fleet = Fleet::new(clusters);
    let (known, kinds) = (Known::of(&fleet), rules.cluster_kinds());
    let mut shares: HostingShares<ObjectKey> = HostingShares::default();
    for (home, member) in fleet.members.iter().enumerate() {
        for GroupKind { group, kind } in &kinds {
            for observed in member.objects.of_kind(group, kind, None) {
                let Some((cluster, is_proved)) = known.hosted(&fleet, rules, home, &observed) else {
                    continue;
                };
                let place = (home, observed.key.namespace);
                shares.add(cluster, is_proved, place, || observed.key.to_owned());
            }
        }
    }
    let mut hosting = Hosting::default();
    for HostedCluster { cluster, objects, left_out } in shares.finish() {
        let name = fleet.objects(cluster).name();
        if left_out > 0 {
            hosting.left_out.insert(name.to_owned(), left_out);
        }
        hosting.objects.extend(objects.into_iter().map(|(is_proved, home, object)| HostingObject {
            home: fleet.objects(home).name().to_owned(),
            object,
            cluster: name.to_owned(),
            is_proved,
        }));
    }
    hosting
}

/// An object that stands for some cluster, with the names of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingObject {
    /// The object.
    pub object: ObjectKey,
    /// The names of the cluster for which it stands: those that prove it, and those that claim it.
    pub named: NamedCluster,
}

/// Lists the objects of a cluster that stand for any clusters, of the kinds that do so by `rules`. Their namespaces take
/// turns, so that the first ones are not all of one namespace.
pub fn standing(cluster: &dyn Objects, rules: &dyn Rules) -> Vec<StandingObject> {
    let mut found = Vec::new();
    for GroupKind { group, kind } in rules.cluster_kinds() {
        for observed in cluster.of_kind(&group, &kind, None) {
            if let Some(named) = named(cluster, rules, &observed) {
                found.push(StandingObject { object: observed.key.to_owned(), named });
            }
        }
    }
    round_robin(found, |standing| &standing.object.namespace)
}

/// The places of the clusters of a fleet by their names and identities.
struct Known<'f> {
    by_name: HashMap<&'f str, usize>,
    /// `None` for an identity that several clusters report: it then tells none of them.
    by_id: HashMap<&'f str, Option<usize>>,
}

impl<'f> Known<'f> {
    fn of(fleet: &'f Fleet<'_>) -> Known<'f> {
        let mut known = Known { by_name: HashMap::new(), by_id: HashMap::new() };
        for (place, member) in fleet.members.iter().enumerate() {
            for name in fleet.names(place) {
                known.by_name.entry(name).or_insert(place);
            }
            if let Some(id) = member.objects.id() {
                known.by_id.entry(&id.0).and_modify(|known| *known = None).or_insert(Some(place));
            }
        }
        known
    }

    /// Returns the place of the first cluster that `names` mean, by identity, address or name.
    fn find(&self, fleet: &Fleet<'_>, home: usize, names: &ClusterNames) -> Option<usize> {
        let by_id = || names.ids.iter().find_map(|id| self.by_id.get(&**id).copied().flatten());
        let at = |address: &String| match fleet.find(home, Target::Server(address.clone(), String::new())) {
            Destination::Cluster(cluster) => Some(cluster),
            Destination::OutOfReach(_) => None,
        };
        let by_address = || names.addresses.iter().find_map(at);
        let by_name = || names.names.iter().find_map(|name| self.by_name.get(&**name).copied());
        by_id().or_else(by_address).or_else(by_name)
    }

    /// Returns the place of the cluster for which an object in the cluster `home` stands, and true if that is proved;
    /// `None` if it is not in the fleet, or is `home` itself.
    ///
    /// A name that a controller observed comes before one that the author claims, so that a claim never hides a proof.
    fn hosted(
        &self,
        fleet: &Fleet<'_>,
        rules: &dyn Rules,
        home: usize,
        observed: &Observed<'_>,
    ) -> Option<(usize, bool)> {
        let NamedCluster { observed: seen, claimed } = named(fleet.objects(home), rules, observed)?;
        let proved =
            || Some((self.find(fleet, home, &seen).or_else(|| self.of_secret(fleet, home, observed))?, true));
        let named = || Some((self.find(fleet, home, &claimed)?, false));
        proved().or_else(named).filter(|(cluster, _)| *cluster != home)
    }

    /// Returns the place of the cluster that was taken from the kubeconfig Secret of a `Cluster` of Cluster API, by its
    /// name; `None` for other objects, and if there is none.
    fn of_secret(&self, fleet: &Fleet<'_>, home: usize, observed: &Observed<'_>) -> Option<usize> {
        let mut named = fleet.names(home).filter_map(|home| secret_cluster(home, observed.key));
        named.find_map(|name| self.by_name.get(&*name).copied())
    }
}

/// Returns the name of the cluster that is taken from the kubeconfig Secret beside a `Cluster` of Cluster API in the cluster
/// `home`; `None` for other objects.
pub fn secret_cluster(home: &str, object: ObjectKeyRef<'_>) -> Option<String> {
    let ObjectKeyRef { group, namespace, name, .. } = object;
    (group == CLUSTER_API_GROUP).then(|| format!("{home}/{namespace}/{name}"))
}

/// Returns the names of the cluster for which an object stands: those that prove it, and those that claim it. A name for
/// people proves nothing, wherever it stands, and a status proves nothing if the author of the object may write it, too.
fn named(home: &dyn Objects, rules: &dyn Rules, observed: &Observed<'_>) -> Option<NamedCluster> {
    let NamedCluster { observed: mut seen, mut claimed } = rules.named_cluster(&observed.object)?;
    let ObjectKeyRef { group, kind, .. } = observed.key;
    claimed.names.append(&mut seen.names);
    if home.has_status_subresource(group, observed.object.version(), kind) == Some(false) {
        claimed.ids.append(&mut seen.ids);
        claimed.addresses.append(&mut seen.addresses);
    }
    Some(NamedCluster { observed: seen, claimed })
}
