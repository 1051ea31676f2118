//! Which cluster does a tool deliver to, when it is told by an address or a kubeconfig?

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use taffrail_status::Object;

use super::{Declarations, Destination, text};
use crate::fleet::Fleet;
use crate::identity::ObjectKey;
use crate::objects::{Body, Lookup};
use crate::yaml;

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
        None => Destination::OutOfReach(format!("the cluster at {server}")),
    }
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
        || Destination::OutOfReach(format!("the cluster of the kubeconfig in Secret {}", secret.path()));
    let Some(object) = object(fleet, home, found, secret) else { return unknown() };
    let keys = key.map_or_else(|| vec!["value", "value.yaml"], |key| vec![key]);
    let config = keys.iter().find_map(|key| text(object.root(), &["data", key]));
    config.and_then(|config| server(&config)).map_or_else(unknown, |server| at(fleet, home, &server))
}

/// The cluster whose address a ConfigMap holds, as Flux finds it there.
pub(super) fn of_config_map(
    fleet: &Fleet<'_>,
    home: usize,
    found: &mut Declarations,
    config_map: &ObjectKey,
) -> Destination {
    let object = object(fleet, home, found, config_map);
    match object.and_then(|object| text(object.root(), &["data", "address"])) {
        Some(server) => at(fleet, home, &server),
        None => Destination::OutOfReach(format!("the cluster of the ConfigMap {}", config_map.path())),
    }
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
    Destination::OutOfReach(name.to_owned())
}

/// The clusters that an Argo CD in a namespace knows, by name. Of several of one name the first counts.
fn argo_clusters(
    fleet: &Fleet<'_>,
    home: usize,
    found: &mut Declarations,
    place: &str,
) -> BTreeMap<String, Destination> {
    let mut clusters = BTreeMap::new();
    for secret in fleet.objects(home).of_kind_in("", "Secret", place) {
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
                    Destination::OutOfReach(format!("{name} at {server}"))
                }
                None => Destination::OutOfReach(name.clone()),
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
    key: &ObjectKey,
) -> Option<Object<'a>> {
    match fleet.objects(home).get(key) {
        Lookup::Found(observed) if observed.body == Body::Whole => Some(observed.object),
        Lookup::Absent => None,
        Lookup::Found(_) | Lookup::Unobserved(_) => {
            found.addresses.insert((home, key.clone()));
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
