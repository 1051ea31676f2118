//! Which cluster does a tool deliver to, when it is told by an address or a kubeconfig?

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

/// The largest kubeconfig that is read, in base64. Those of people hold some clusters and their certificates.
const LARGEST: usize = 256 << 10;

/// What a Pod calls the API server of its own cluster.
const OWN_SERVERS: [&str; 3] = [
    "https://kubernetes.default.svc",
    "https://kubernetes.default",
    "https://kubernetes.default.svc.cluster.local",
];

/// The cluster that answers at `server`, as a tool in the cluster `home` sees it.
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

/// What Secrets and ConfigMaps say of destinations. Each is read once: many small apps may name a large one.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// By Secret and the key in it; nothing where no kubeconfig is there.
    kubeconfigs: HashMap<(usize, ObjectKey), HashMap<String, Option<Destination>>>,
    config_maps: HashMap<(usize, ObjectKey), Option<Destination>>,
}

/// The cluster of a kubeconfig in a Secret, as Flux finds it there.
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

/// The clusters of all kubeconfigs in a Secret, by their keys.
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
        let cluster = match config.len() > LARGEST {
            true => Some(Destination::out_of_reach(format!(
                "the cluster of the kubeconfig in Secret {}, which is larger than {} KiB",
                secret.path(),
                LARGEST >> 10
            ))),
            false => server(&config).map(|server| at(fleet, home, &server)),
        };
        Some((key.into_owned(), cluster))
    };
    data.filter_map(read).collect()
}

/// The cluster whose address a ConfigMap holds, as Flux finds it there.
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

/// The cluster that Argo CD knows by a name: a Secret with a label holds name and address.
///
/// Argo CD reads those beside itself alone, so that no tenant tells where the Applications of others lead: only those in
/// `places` count, the ones in the first of them that has any of that name.
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

/// The clusters that an Argo CD in a namespace knows, by name. Of several of one name the first counts.
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

/// An object that says where a cluster is; that its body was not read is remembered.
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

/// The address in a kubeconfig in base64: that of the current context.
fn server(config: &str) -> Option<String> {
    let config = BASE64.decode(config.trim()).ok()?;
    let config: Kubeconfig = yaml::read_with_few_aliases(std::str::from_utf8(&config).ok()?).ok()?;
    let context = config.contexts.into_iter().find(|context| context.name == config.current_context)?;
    let cluster = config.clusters.into_iter().find(|cluster| cluster.name == context.context.cluster)?;
    Some(cluster.cluster.server)
}
