//! The objects of management clusters that stand for other clusters, as the reports about the management clusters tell of
//! them: the join with the clusters for which they stand.

use std::collections::HashMap;

use taffrail_api::report::ManagedCluster;
use taffrail_api::{ClusterRow, ManagedAs};
use taffrail_apps::text::moment;
use taffrail_apps::{ClusterId, HostedCluster, HostingShares, secret_cluster, server_address};
use taffrail_object::ObjectKey;
use taffrail_status::{ClusterNames, NamedCluster, Status};

use super::pair::Place;
use super::published::{PublishedCluster, PublishedSource};
use super::view::{FleetView, SpeakingSource};
use crate::fleet::OBSERVER;

/// The objects that stand for each cluster in management clusters, by its place and by its name.
#[derive(Debug, Default)]
pub struct ManagedClusters {
    by_place: HashMap<Place, Managed>,
    places: HashMap<String, Place>,
}

/// The objects that stand for one cluster, and the number of further ones.
#[derive(Debug, Default)]
struct Managed {
    objects: Vec<ManagedAs>,
    left_out: usize,
    /// The indexes of those objects that are proved and whose management cluster the hub reads itself.
    own: Vec<usize>,
}

impl ManagedClusters {
    /// Joins the objects that all sources of the fleet tell of with the clusters for which they stand. A management
    /// cluster tells nothing about itself.
    pub fn of(view: &FleetView) -> ManagedClusters {
        let known = KnownServers::of(view);
        let mut shares: HostingShares<&ManagedCluster> = HostingShares::default();
        for (home, cluster) in view.fleet().all() {
            let Some(source) = view.named_speaker(cluster) else { continue };
            for managed in &source.told.facts.managed {
                let found = known.stands_for(source, managed).filter(|(place, _)| *place != home);
                if let Some((place, is_proved)) = found {
                    shares.add(place, is_proved, (home, &managed.object.namespace), || managed);
                }
            }
        }
        let mut all = ManagedClusters::default();
        for HostedCluster { cluster: place, objects, left_out } in shares.finish() {
            let Some(cluster) = view.fleet().cluster(place) else { continue };
            let mut found = Managed { left_out, ..Managed::default() };
            for (is_proved, home, managed) in objects {
                let Some((object, is_own)) = told(view, home, managed, is_proved) else { continue };
                found.own.extend((is_proved && is_own).then_some(found.objects.len()));
                found.objects.push(object);
            }
            all.by_place.insert(place, found);
            // Of two clusters of one name the first one has it.
            all.places.entry(view.name(cluster).to_owned()).or_insert(place);
        }
        all
    }

    /// Iterates over the objects that prove for which cluster they stand, in management clusters that the hub reads itself:
    /// the place of the cluster, the name of the management cluster, and the object.
    pub(crate) fn proved_by_own_homes(&self) -> impl Iterator<Item = (Place, &str, &ObjectKey)> {
        self.by_place.iter().flat_map(|(place, managed)| {
            let own = managed.own.iter().filter_map(|index| managed.objects.get(*index));
            own.map(|it| (*place, &*it.cluster, &it.object))
        })
    }

    /// Puts the objects that stand for the cluster at `place` into its row.
    pub(crate) fn put_into(&self, place: Place, row: &mut ClusterRow) {
        let (objects, left_out) = self
            .by_place
            .get(&place)
            .map_or_else(Default::default, |managed| (managed.objects.clone(), managed.left_out));
        (row.managed_as, row.managed_as_left_out) = (objects, left_out);
    }

    /// Puts the objects that stand for the cluster of a row into it, found by its name.
    pub fn put_into_named(&self, row: &mut ClusterRow) {
        match self.places.get(&row.name) {
            Some(place) => self.put_into(*place, row),
            None => (row.managed_as, row.managed_as_left_out) = (Vec::new(), 0),
        }
    }
}

/// Makes what the row of a cluster shows of an object that stands for it, and true if the hub reads the management cluster
/// itself; `None` if that is gone.
fn told(
    view: &FleetView,
    home: Place,
    managed: &ManagedCluster,
    is_proved: bool,
) -> Option<(ManagedAs, bool)> {
    let source = view.named_speaker(view.fleet().cluster(home)?)?;
    let freshness = view.freshness(source);
    let (status, message) = match (freshness.is_live(), freshness.observed_at) {
        (true, _) => (managed.status, managed.message.clone()),
        (false, Some(at)) => {
            (Status::Unknown, format!("the management cluster was last seen {}", moment(at)))
        }
        (false, None) => (Status::Unknown, "the management cluster has not been observed yet".to_owned()),
    };
    let managed_as = ManagedAs {
        object: managed.object.clone(),
        cluster: source.told.facts.name.clone(),
        status,
        message,
        unproven: !is_proved,
    };
    Some((managed_as, &*source.told.name == OBSERVER))
}

/// Returns the sources by which the hub reads a cluster itself.
fn own_sources(cluster: &PublishedCluster) -> impl Iterator<Item = &PublishedSource> {
    cluster.sources.iter().filter(|source| &*source.name == OBSERVER)
}

/// The clusters of a fleet by the addresses at which the hub reads them itself.
struct KnownServers<'v> {
    view: &'v FleetView,
    servers: HashMap<&'v str, Place>,
}

impl<'v> KnownServers<'v> {
    fn of(view: &'v FleetView) -> KnownServers<'v> {
        let mut servers = HashMap::new();
        for (place, cluster) in view.fleet().all() {
            // An agent could claim the address of another cluster.
            for server in own_sources(cluster).flat_map(|source| &source.facts.servers) {
                servers.entry(&**server).or_insert(place);
            }
        }
        KnownServers { view, servers }
    }

    /// Returns the place of the cluster for which an object stands that `home` tells of, and true if that is proved; `None`
    /// if the hub does not have the cluster.
    fn stands_for(&self, home: SpeakingSource<'_>, managed: &ManagedCluster) -> Option<(Place, bool)> {
        let NamedCluster { observed, claimed } = &managed.named;
        let proved = self.identified(observed).or_else(|| self.in_secret(home, managed));
        if let Some(place) = proved {
            return Some((place, true));
        }
        let named = || claimed.names.iter().find_map(|name| self.view.called(name).next());
        Some((self.identified(claimed).or_else(named)?, false))
    }

    /// Returns the place of the cluster with one of these identities or addresses.
    fn identified(&self, names: &ClusterNames) -> Option<Place> {
        let places = &self.view.fleet().places;
        let by_id = names.ids.iter().find_map(|id| places.get(&ClusterId(id.clone())).copied());
        let at = |address: &String| self.servers.get(&*server_address(address)).copied();
        by_id.or_else(|| names.addresses.iter().find_map(at))
    }

    /// Returns the place of the cluster that the hub itself reads by the kubeconfig beside a `Cluster` of Cluster API.
    fn in_secret(&self, home: SpeakingSource<'_>, managed: &ManagedCluster) -> Option<Place> {
        let facts = &home.told.facts;
        let names = facts.aliases.iter().chain([&facts.name]);
        let mut clusters = names.filter_map(|name| secret_cluster(name, managed.object.as_ref()));
        let fleet = self.view.fleet();
        clusters.find_map(|name| {
            self.view
                .called(&name)
                .find(|place| fleet.cluster(*place).is_some_and(|it| own_sources(it).next().is_some()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::SampleFleet;
    use super::*;
    use crate::agents::AGENT;
    use taffrail_api::report::ClusterReport;

    fn managed(namespace: &str, name: &str, observed: &[&str], claimed: &[&str]) -> ManagedCluster {
        let addresses = |list: &[&str]| ClusterNames {
            addresses: list.iter().map(|address| (*address).to_owned()).collect(),
            ..ClusterNames::default()
        };
        let claimed = ClusterNames { names: vec![name.to_owned()], ..addresses(claimed) };
        ManagedCluster {
            object: ObjectKey::new("cluster.x-k8s.io", "Cluster", namespace, name),
            status: Status::Failed,
            message: "no machine".to_owned(),
            named: NamedCluster { observed: addresses(observed), claimed },
        }
    }

    /// Returns the objects that stand for a cluster, each with its management cluster, status, and true if it is proved.
    fn shown(fleet: &SampleFleet, cluster: &str) -> Vec<String> {
        fleet.index.publish();
        let view = fleet.index.view();
        let managed = ManagedClusters::of(&view);
        let (place, _) = view.fleet().all().find(|(_, it)| it.id.0 == cluster).unwrap();
        let mut row = view.cluster_row(place).unwrap();
        managed.put_into(place, &mut row);
        let told = |it: &ManagedAs| {
            let proof = if it.unproven { "claims" } else { "is" };
            format!("{} {proof} {}: {}", it.object.path(), it.cluster, it.status)
        };
        row.managed_as.iter().map(told).collect()
    }

    #[test]
    fn word_of_a_management_cluster_stands_beside_the_clusters_that_it_means() {
        let fleet = SampleFleet::new().with("mgmt", &[]).with("eu", &[]).with("mgmt/fleet/us", &[]);
        fleet.open("edge", AGENT);
        let servers =
            |server: &'static str| move |facts: &mut ClusterReport| facts.servers = vec![server.to_owned()];
        fleet.facts("eu", "observer", servers("https://eu.example.com"), Vec::new());
        // What an agent says of its address is no proof for it.
        fleet.facts("edge", AGENT, servers("https://edge.example.com"), Vec::new());
        let objects = vec![
            managed("fleet", "one", &["https://EU.example.com:443/"], &[]),
            managed("a-tenant", "two", &[], &["https://eu.example.com"]),
            managed("a-tenant", "three", &["https://edge.example.com"], &[]),
            managed("fleet", "us", &[], &[]),
            managed("fleet", "edge", &[], &[]),
            // Nobody stands for itself.
            managed("fleet", "mgmt", &[], &[]),
        ];
        fleet.facts("mgmt", "observer", |facts| facts.managed = objects, Vec::new());
        let before = shown(&fleet, "eu");
        assert_eq!(before, ["fleet/one is mgmt: Failed", "a-tenant/two claims mgmt: Failed"]);
        assert_eq!(shown(&fleet, "edge"), ["fleet/edge claims mgmt: Failed"]);
        assert_eq!(shown(&fleet, "mgmt/fleet/us"), ["fleet/us is mgmt: Failed"]);
        assert_eq!(shown(&fleet, "mgmt"), [] as [&str; 0]);
        // It decides nothing about the other cluster.
        let view = fleet.index.view();
        let eu = view.fleet().all().find(|(_, it)| it.id.0 == "eu").unwrap().0;
        assert_eq!(view.cluster_row(eu).unwrap().status, Status::Current);
    }

    #[test]
    fn word_of_a_management_cluster_that_is_silent_is_unknown() {
        let fleet = SampleFleet::new().with("mgmt", &[]).with("eu", &[]);
        let objects = vec![managed("fleet", "eu", &[], &[])];
        fleet.facts("mgmt", "observer", |facts| facts.managed = objects, Vec::new());
        assert_eq!(shown(&fleet, "eu"), ["fleet/eu claims mgmt: Failed"]);
        fleet.pass(200);
        fleet.send("eu", "observer", taffrail_api::report::Content::Heartbeat);
        assert_eq!(shown(&fleet, "eu"), ["fleet/eu claims mgmt: Unknown"]);
    }
}
