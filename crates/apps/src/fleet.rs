//! The clusters that were queried, each once.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use taffrail_object::json::{OwnedDocument, Value};
use taffrail_object::{ObjectKeyRef, Projection};
use taffrail_status::{Observed, Trust};

use crate::declaration::Destination;
use crate::delivery::controllers::Stops;
use crate::delivery::destination::{Addresses, Target};
use crate::delivery::drift::Writes;
use crate::delivery::flux::definitions::Definitions;
use crate::delivery::flux::sources::Sources;
use crate::delivery::helm_storage::Storage;
use crate::delivery::release::ReadReleases;
use crate::identity::ClusterId;
use crate::objects::Objects;
use crate::questions::QuestionRecord;

/// One queried cluster, under the first name by which the user gave it.
pub struct FleetMember<'a> {
    /// The objects of the cluster, and the facts about it.
    pub objects: &'a dyn Objects,
    /// The other names by which the user gave the cluster.
    pub aliases: Vec<String>,
    /// The labels of the cluster under all its names; of two values of a label the one of the first name.
    pub labels: BTreeMap<String, String>,
    /// The server addresses under all names of the cluster, in the form of [`server_address`].
    servers: Vec<String>,
    /// The name of the first earlier cluster with the same identity, if nothing proves that the two are one; else
    /// `None`.
    pub twin_of: Option<String>,
}

impl FleetMember<'_> {
    /// Returns the identity of the cluster. If an earlier cluster reports the same one, appends `@` and the server
    /// address, or the name if no address is known. `None` if the identity is not known.
    pub fn identity(&self) -> Option<String> {
        let id = self.objects.id()?;
        let address = self.objects.servers().first().map_or(self.objects.name(), String::as_str);
        Some(if self.twin_of.is_some() { format!("{id}@{address}") } else { id.to_string() })
    }

    /// Returns the addresses of the API server under all names of the cluster, in the form of [`server_address`].
    pub fn servers(&self) -> &[String] {
        &self.servers
    }
}

/// The clusters that were queried, each once. Other code refers to them by their index in this fleet.
pub(crate) struct Fleet<'a> {
    pub(crate) members: Vec<FleetMember<'a>>,
    /// The index of the first member with each server address.
    by_server: HashMap<String, usize>,
    pub(crate) stops: Stops,
    /// A cache of the parsed Flux sources in all clusters.
    pub(crate) sources: Sources,
    pub(crate) writes: Writes,
    pub(crate) addresses: Addresses,
    pub(crate) definitions: Definitions,
    pub(crate) releases: ReadReleases,
    storages: Vec<OnceCell<(Storage<'a>, Option<Arc<QuestionRecord>>)>>,
}

impl<'a> Fleet<'a> {
    pub(crate) fn new(clusters: &[&'a dyn Objects]) -> Fleet<'a> {
        let mut members: Vec<FleetMember<'a>> = Vec::with_capacity(clusters.len());
        let mut by_id: HashMap<&ClusterId, Vec<usize>> = HashMap::new();
        let mut by_server: HashMap<String, usize> = HashMap::new();
        for &objects in clusters {
            let servers: Vec<String> =
                objects.servers().iter().map(|server| server_address(server)).collect();
            let mut none = Vec::new();
            let twins = objects.id().map_or(&mut none, |id| by_id.entry(id).or_default());
            let twin_of = twins.first().map(|first| members[*first].objects.name().to_owned());
            let same = twins.iter().copied().find(|at| is_same(&members[*at], objects, &servers));
            let at = same.unwrap_or(members.len());
            for server in &servers {
                let first = by_server.entry(server.clone()).or_insert(at);
                *first = at.min(*first);
            }
            if same.is_some() {
                members[at].servers.extend(servers);
                members[at].aliases.push(objects.name().to_owned());
                for (name, value) in objects.labels() {
                    members[at].labels.entry(name.clone()).or_insert_with(|| value.clone());
                }
            } else {
                twins.push(at);
                let labels = objects.labels().clone();
                members.push(FleetMember { objects, aliases: Vec::new(), labels, servers, twin_of });
            }
        }
        let storages = members.iter().map(|_| OnceCell::new()).collect();
        Fleet {
            members,
            by_server,
            stops: Stops::default(),
            sources: Sources::default(),
            writes: Writes::default(),
            addresses: Addresses::default(),
            definitions: Definitions::default(),
            releases: ReadReleases::default(),
            storages,
        }
    }

    /// Returns the objects of the cluster with this index.
    pub(crate) fn objects(&self, cluster: usize) -> &'a dyn Objects {
        self.members[cluster].objects
    }

    /// Returns the Helm releases stored in the cluster with this index; scans them at the first call.
    pub(crate) fn storage(&self, cluster: usize) -> &Storage<'a> {
        let objects = self.objects(cluster);
        let (storage, asked) = self.storages[cluster].get_or_init(|| match objects.question_log() {
            Some((log, _)) => {
                let (storage, asked) = log.record(|| Storage::of(objects));
                (storage, Some(Arc::new(asked)))
            }
            None => (Storage::of(objects), None),
        });
        if let Some(((log, _), asked)) = objects.question_log().zip(asked.as_ref()) {
            log.remember(asked);
        }
        storage
    }

    /// Iterates over all names of the cluster with this index.
    pub(crate) fn names(&self, cluster: usize) -> impl Iterator<Item = &str> {
        let member = &self.members[cluster];
        std::iter::once(member.objects.name()).chain(member.aliases.iter().map(String::as_str))
    }

    /// Returns true if the setting `trusted-homes` names this cluster, so that its rules may improve the status of
    /// objects in other clusters.
    pub(crate) fn trusts(&self, cluster: usize, trust: &Trust) -> bool {
        self.names(cluster).any(|name| trust.names_home(name))
    }

    /// Returns the cluster that a declaration in the cluster `home` names as the target of its app, out of reach if
    /// that is not in the fleet.
    pub(crate) fn find(&self, home: usize, target: Target) -> Destination {
        match target {
            Target::Home => Destination::Cluster(home),
            Target::Server(server, title) => {
                let found = self.by_server.get(&server_address(&server)).copied();
                found.map_or(Destination::OutOfReach(title), Destination::Cluster)
            }
            Target::Unknown(title) => Destination::OutOfReach(title),
        }
    }
}

/// Returns the clusters, each once under its first name, with its further names as aliases.
pub fn members<'a>(clusters: &[&'a dyn Objects]) -> Vec<FleetMember<'a>> {
    Fleet::new(clusters).members
}

/// Returns, for each cluster, true if it is the same as an earlier one under another name.
pub fn aliases(clusters: &[&dyn Objects]) -> Vec<bool> {
    let mut members = Fleet::new(clusters).members.into_iter().peekable();
    let is_alias =
        |own: &&dyn Objects| members.next_if(|member| std::ptr::addr_eq(member.objects, *own)).is_none();
    clusters.iter().map(is_alias).collect()
}

/// Returns true if `objects`, reached at the addresses `servers`, is the cluster `known`, which reports the same
/// identity: they have an address in common, or a comparison proved it. Two dumps are one cluster if they [`agree`],
/// unless it is proved that they are not.
///
/// A server can claim any identity, and a cluster restored from a snapshot of another one has that one's. For live
/// clusters at different addresses only proof counts, because their servers can invent their objects.
fn is_same(known: &FleetMember<'_>, objects: &dyn Objects, servers: &[String]) -> bool {
    let other = known.objects;
    servers.iter().any(|server| known.servers.contains(server))
        || objects
            .is_same_as(other.name())
            .unwrap_or_else(|| other.is_dump() && objects.is_dump() && agree(other, objects))
}

/// Returns true if two dumps can be of one cluster: they share at least one object version; those that they share have
/// equal contents, and none is a version of another object of its group; and `one` contains most objects of most
/// namespaces of `other`.
///
/// A Namespace is as old as a cluster and never changes, so that a copy has it too. An alias is not shown, and an
/// object or two of a cluster are easily known: to hide a cluster, one would have to know the UIDs of most objects in
/// most of its namespaces.
fn agree(one: &dyn Objects, other: &dyn Objects) -> bool {
    let version = |observed: &Observed<'_>| {
        let version = observed.object.text(&["metadata", "resourceVersion"]).into_owned();
        Some(version).filter(|version| !version.is_empty() && !is_namespace(observed.key))
    };
    // A version that several objects have comes from different stores, and proves nothing about other
    // objects.
    let mut written: HashMap<String, Option<ObjectKeyRef<'_>>> = HashMap::new();
    for observed in one.all() {
        let Some(version) = version(&observed) else { continue };
        written.entry(version).and_modify(|key| *key = None).or_insert(Some(observed.key));
    }
    let uid = |observed: &Observed<'_>| observed.object.text(&["metadata", "uid"]).into_owned();
    // Each namespace has one vote: its author may make any number of objects between two dumps.
    let mut votes: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut is_held_by_both = false;
    for observed in other.all() {
        let Some(own) = version(&observed) else { continue };
        let known = one.get(observed.key).present();
        let (common, all) = votes.entry(observed.key.namespace).or_default();
        *all += 1;
        *common += usize::from(known.as_ref().is_some_and(|known| uid(known) == uid(&observed)));
        if let Some(known) = known
            && version(&known).as_ref() == Some(&own)
        {
            match same_content(&known, &observed) {
                Some(true) => is_held_by_both = true,
                Some(false) => return false,
                None => {}
            }
            continue;
        }
        // One store writes one object at a version. Events and aggregated kinds may be in another one.
        let is_another = |key: ObjectKeyRef<'_>| {
            key != observed.key
                && key.group == observed.key.group
                && !is_event(key)
                && !is_event(observed.key)
        };
        if written.get(&own).copied().flatten().is_some_and(is_another) {
            return false;
        }
    }
    let agreeing = votes.values().filter(|(common, all)| *common > all / 2).count();
    is_held_by_both && agreeing > votes.len() / 2
}

fn is_namespace(key: ObjectKeyRef<'_>) -> bool {
    key.group.is_empty() && key.kind == "Namespace"
}

fn is_event(key: ObjectKeyRef<'_>) -> bool {
    key.kind == "Event"
}

/// Returns true if two copies of an object are equal apart from managed fields; if one is only metadata, compares the
/// metadata. `None` if the copies cannot be compared, such as two of different API versions.
fn same_content(one: &Observed<'_>, other: &Observed<'_>) -> Option<bool> {
    let version = |observed: &Observed<'_>| observed.object.text(&["apiVersion"]).into_owned();
    if one.projection == Projection::Full
        && other.projection == Projection::Full
        && version(one) != version(other)
    {
        return None;
    }
    let is_whole = one.projection == Projection::Full && other.projection == Projection::Full;
    let (one, other) = match is_whole {
        true => (one.object.root(), other.object.root()),
        false => (one.object.at(&["metadata"])?, other.object.at(&["metadata"])?),
    };
    if one.text() == other.text() {
        return Some(true);
    }
    let tree = |value: Value<'_>| {
        let mut tree = value.to_tree().ok()?;
        let metadata = if is_whole { tree.get_mut("metadata")? } else { &mut tree };
        metadata.as_object_mut()?.remove("managedFields");
        Some(tree)
    };
    Some(tree(one)? == tree(other)?)
}

/// The result of comparing two clusters that report one identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sameness {
    /// They are proved to be one cluster.
    One,
    /// They are proved to be two clusters.
    Two,
    /// Neither is proved.
    Unproven,
}

/// Repeated readings of the Leases of one cluster, to prove that two addresses reach the same cluster.
///
/// Within one cluster, the version of a Lease never decreases, whichever address serves the reading, and a
/// Lease present before and after a reading is present in it. A copy of a cluster renews its Leases
/// independently. To impersonate a cluster, a server must know every Lease and its version at every renewal.
#[derive(Debug, Default)]
pub struct Renewals(Vec<Reading>);

/// One reading of all Leases: UID and resource version by name, and the times of request and answer.
#[derive(Debug)]
struct Reading {
    asked: Duration,
    answered: Duration,
    leases: HashMap<String, (String, u64)>,
}

impl Renewals {
    /// Adds a reading of all Leases. `asked` and `answered` are the times of request and answer since a start that
    /// is common to all compared clusters.
    pub fn read(&mut self, asked: Duration, answered: Duration, leases: &[OwnedDocument]) {
        let lease = |document: &OwnedDocument| {
            let root = document.root();
            let text = |key: &str| Some(root.at(&["metadata", key])?.as_str()?.into_owned());
            Some((text("name")?, (text("uid")?, text("resourceVersion")?.parse().ok()?)))
        };
        self.0.push(Reading { asked, answered, leases: leases.iter().filter_map(lease).collect() });
    }

    /// Compares the readings of two clusters, and returns if they are one cluster, two, or unproven.
    ///
    /// They are one if a Lease was renewed in each of them while all versions from the other lay between
    /// those before and after; they are two if the other lacks a Lease or has a version of it outside of these.
    pub fn compare(&self, other: &Renewals) -> Sameness {
        let mut moved = [false; 2];
        for (moved, (outer, inner)) in moved.iter_mut().zip([(self, other), (other, self)]) {
            for between in &inner.0 {
                let before = outer.0.iter().rfind(|reading| reading.answered <= between.asked);
                let after = outer.0.iter().find(|reading| reading.asked >= between.answered);
                let (Some(before), Some(after)) = (before, after) else { continue };
                let is_bounded = inner.0.last().is_some_and(|last| last.asked >= after.answered);
                for (name, (uid, version)) in &before.leases {
                    let later = after.leases.get(name).filter(|(later, _)| later == uid);
                    let Some((_, later)) = later else { continue };
                    let is_between = between
                        .leases
                        .get(name)
                        .is_some_and(|(other, at)| other == uid && (version..=later).contains(&at));
                    if !is_between {
                        return Sameness::Two;
                    }
                    // A reading without a later one of the other cluster proves nothing.
                    *moved |= later > version && is_bounded;
                }
            }
        }
        if moved == [true, true] { Sameness::One } else { Sameness::Unproven }
    }

    /// Returns true if no Lease was renewed between the first and the last of at least three readings.
    pub fn are_still(&self) -> bool {
        let [first, _, .., last] = &*self.0 else { return false };
        first.leases == last.leases
    }
}

/// Returns the address of an API server in normalised form: scheme and host in lower case, no default port, no trailing
/// slash. Equal addresses are one server.
pub fn server_address(server: &str) -> String {
    let server = server.trim().trim_end_matches('/');
    let Some((scheme, rest)) = server.split_once("://") else { return server.to_ascii_lowercase() };
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let scheme = scheme.to_ascii_lowercase();
    let host = host.to_ascii_lowercase();
    let default_port = if scheme == "http" { ":80" } else { ":443" };
    format!("{scheme}://{}{path}", host.strip_suffix(default_port).unwrap_or(&host))
}

#[cfg(test)]
mod tests {
    use super::server_address;

    #[test]
    fn spellings_of_one_address_are_equal() {
        for (one, other) in [
            ("https://EDGE.example.com:6443/", "https://edge.example.com:6443"),
            ("https://edge.example.com", "https://edge.example.com:443"),
            ("http://edge.example.com:80", "HTTP://edge.example.com/"),
            ("https://rancher.example.com/k8s/clusters/c-1/", "https://rancher.example.com/k8s/clusters/c-1"),
        ] {
            assert_eq!(server_address(one), server_address(other));
        }
        assert_ne!(
            server_address("https://edge.example.com:6443"),
            server_address("https://edge.example.com")
        );
        assert_ne!(
            server_address("https://r.example.com/k8s/A"),
            server_address("https://r.example.com/k8s/a")
        );
    }
}
