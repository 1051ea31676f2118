//! The cluster to which an app is delivered, found by an address, a kubeconfig or a cluster Secret.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef, Projection, yaml};
use taffrail_status::Presence;

use super::{Declarations, Destination, text};
use crate::fleet::Fleet;

impl Destination {
    /// Makes a destination that was not queried; `place` describes it and is cut if it is long, because each object
    /// of the app repeats it.
    pub(super) fn out_of_reach(place: impl Into<String>) -> Destination {
        Destination::OutOfReach(super::short(place.into()))
    }
}

/// The maximum size of a kubeconfig in base64. Ordinary ones hold a few clusters and their certificates.
const MAX_KUBECONFIG_BYTES: usize = 256 << 10;

/// The addresses by which Pods reach the API server of their own cluster.
const OWN_SERVERS: [&str; 3] = [
    "https://kubernetes.default.svc",
    "https://kubernetes.default",
    "https://kubernetes.default.svc.cluster.local",
];

/// Returns the cluster at the address `server`; addresses inside a cluster mean `home` itself.
pub(super) fn at(fleet: &Fleet<'_>, home: usize, server: &str) -> Destination {
    let host = server.trim().trim_end_matches('/');
    if OWN_SERVERS.contains(&host.strip_suffix(":443").unwrap_or(host)) {
        return Destination::Cluster(home);
    }
    match fleet.by_server(server) {
        Some(cluster) => Destination::Cluster(cluster),
        None => Destination::out_of_reach(format!("the cluster at {server}")),
    }
}

/// A cache of the destinations that Secrets and ConfigMaps contain, because many apps may refer to one of them.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// For each Secret, the cluster of each kubeconfig by the key that contains it; `None` if the key contains no
    /// kubeconfig.
    kubeconfigs: HashMap<(usize, ObjectKey), HashMap<String, Option<Destination>>>,
    config_maps: HashMap<(usize, ObjectKey), Option<Destination>>,
}

/// Returns the cluster of the kubeconfig under `key` in a Secret; without `key`, under the keys that Flux
/// tries by default.
pub(super) fn of_kubeconfig(
    fleet: &Fleet<'_>,
    home: usize,
    found: &mut Declarations,
    secret: &ObjectKey,
    key: Option<&str>,
) -> Destination {
    let unknown =
        || Destination::out_of_reach(format!("the cluster of the kubeconfig in Secret {}", secret.path()));
    let place = (home, secret.clone());
    if !found.addresses_read.kubeconfigs.contains_key(&place) {
        let configs = kubeconfigs(fleet, home, found, secret);
        found.addresses_read.kubeconfigs.insert(place.clone(), configs);
    }
    let Some(configs) = found.addresses_read.kubeconfigs.get(&place) else { return unknown() };
    let known = match key {
        Some(key) => configs.get(key),
        None => ["value", "value.yaml"].iter().find_map(|key| configs.get(*key)),
    };
    known.cloned().flatten().unwrap_or_else(unknown)
}

/// Returns the cluster of each kubeconfig in a Secret, by the key that holds it; `None` where a key holds
/// none.
fn kubeconfigs(
    fleet: &Fleet<'_>,
    home: usize,
    found: &mut Declarations,
    secret: &ObjectKey,
) -> HashMap<String, Option<Destination>> {
    let Some(object) = object(fleet, home, found, secret.as_ref()) else { return HashMap::new() };
    let data = object.at(&["data"]).and_then(Value::members).into_iter().flatten();
    let read = |(key, config): (Cow<'_, str>, Value<'_>)| {
        let config = config.as_str().filter(|config| !config.is_empty())?;
        let cluster = match config.len() > MAX_KUBECONFIG_BYTES {
            true => Some(Destination::out_of_reach(format!(
                "the cluster of the kubeconfig in Secret {}, which is larger than {} KiB",
                secret.path(),
                MAX_KUBECONFIG_BYTES >> 10
            ))),
            false => server(&config).map(|server| at(fleet, home, &server)),
        };
        Some((key.into_owned(), cluster))
    };
    data.filter_map(read).collect()
}

/// Returns the cluster at the address that a ConfigMap holds under the key that Flux reads.
pub(super) fn of_config_map(
    fleet: &Fleet<'_>,
    home: usize,
    found: &mut Declarations,
    config_map: &ObjectKey,
) -> Destination {
    let place = (home, config_map.clone());
    if !found.addresses_read.config_maps.contains_key(&place) {
        let object = object(fleet, home, found, config_map.as_ref());
        let server = object.and_then(|object| text(object.root(), &["data", "address"]));
        let cluster = server.map(|server| at(fleet, home, &server));
        found.addresses_read.config_maps.insert(place.clone(), cluster);
    }
    let known = found.addresses_read.config_maps.get(&place).cloned().flatten();
    known.unwrap_or_else(|| {
        Destination::out_of_reach(format!("the cluster of the ConfigMap {}", config_map.path()))
    })
}

/// Returns the cluster that Argo CD knows by a name: a labelled Secret holds name and address.
///
/// Argo CD reads only the Secrets in its own namespace, so that a tenant cannot redirect the Applications of
/// others: only those in `places` count, and of these the first namespace that has the name.
pub(super) fn of_argo_cluster(
    fleet: &Fleet<'_>,
    home: usize,
    found: &mut Declarations,
    name: &str,
    places: &[&str],
) -> Destination {
    for place in places {
        let read = |own: &BTreeMap<String, Destination>| own.get(name).cloned();
        let own = (home, (*place).to_owned());
        let known = match found.argo_clusters.get(&own) {
            Some(clusters) => read(clusters),
            None => {
                let clusters = argo_clusters(fleet, home, found, place);
                let known = read(&clusters);
                found.argo_clusters.insert(own, clusters);
                known
            }
        };
        if let Some(known) = known {
            return known;
        }
    }
    Destination::out_of_reach(name)
}

/// Returns the clusters that an Argo CD in a namespace knows, by name. Of several with one name the first
/// counts.
fn argo_clusters(
    fleet: &Fleet<'_>,
    home: usize,
    found: &mut Declarations,
    place: &str,
) -> BTreeMap<String, Destination> {
    let mut clusters = BTreeMap::new();
    for secret in fleet.objects(home).of_kind("", "Secret", Some(place)) {
        if secret.object.text(&["metadata", "labels", "argocd.argoproj.io/secret-type"]) != "cluster" {
            continue;
        }
        let Some(object) = object(fleet, home, found, secret.key) else { continue };
        let field = |key| {
            let packed = text(object.root(), &["data", key])?;
            String::from_utf8(BASE64.decode(packed.trim()).ok()?).ok()
        };
        let Some(name) = field("name") else { continue };
        clusters.entry(name).or_insert_with_key(|name| {
            match field("server").map(|server| (at(fleet, home, &server), server)) {
                Some((found @ Destination::Cluster(_), _)) => found,
                Some((Destination::OutOfReach(_), server)) => {
                    Destination::out_of_reach(format!("{name} at {server}"))
                }
                None => Destination::out_of_reach(name.as_str()),
            }
        });
    }
    clusters
}

/// Returns the object `key` of the cluster `home`, which should contain an address; `None` if it was not read, and
/// then records in `found` that it must be.
fn object<'a>(
    fleet: &Fleet<'a>,
    home: usize,
    found: &mut Declarations,
    key: ObjectKeyRef<'_>,
) -> Option<Object<'a>> {
    match fleet.objects(home).get(key) {
        Presence::Present(observed) if observed.projection == Projection::Full => Some(observed.object),
        Presence::Absent => None,
        Presence::Present(_) | Presence::Unobserved(_) => {
            found.addresses.insert((home, key.to_owned()));
            None
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    #[serde(default)]
    clusters: Vec<NamedCluster>,
    #[serde(default)]
    contexts: Vec<NamedContext>,
    #[serde(default)]
    current_context: String,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
struct Cluster {
    server: String,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
}

/// Returns the server address of the current context in `config`, a kubeconfig in base64; `None` if it has none.
fn server(config: &str) -> Option<String> {
    let config = BASE64.decode(config.trim()).ok()?;
    let config: Kubeconfig = yaml::read_with_few_aliases(std::str::from_utf8(&config).ok()?).ok()?;
    let context = config.contexts.into_iter().find(|context| context.name == config.current_context)?;
    let cluster = config.clusters.into_iter().find(|cluster| cluster.name == context.context.cluster)?;
    Some(cluster.cluster.server)
}
