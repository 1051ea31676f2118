//! The cluster to which an app is delivered, found by its server address, or by the kubeconfig, ConfigMap or cluster
//! Secret that holds this address.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef, Projection, is_own_server, yaml};
use taffrail_status::Presence;

use super::{Lacking, short, text};
use crate::memo::Memo;
use crate::objects::Objects;
use crate::sync::without_password;

/// The maximum size of a kubeconfig in base64; the cluster of a larger one counts as unknown. Ordinary ones hold a few
/// clusters and their certificates.
const MAX_KUBECONFIG_BYTES: usize = 256 << 10;

/// The target cluster of an app as its home names it, before it is looked for in the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// The cluster of the declaring object.
    Home,
    /// The cluster at a server address, with a description for messages in case that it was not queried.
    Server(String, String),
    /// A cluster that cannot be found; holds its description for messages.
    Unknown(String),
}

impl Target {
    /// Makes the target at the address `server`; addresses inside a cluster mean the home itself.
    pub(super) fn at(server: &str) -> Target {
        match is_own_server(server) {
            true => Target::Home,
            false => Target::Server(
                server.to_owned(),
                short(format!("the cluster at {}", without_password(server))),
            ),
        }
    }

    /// Makes a target that cannot be found. A long description is cut, because each of the app's objects
    /// repeats it.
    pub(super) fn unknown(place: impl Into<String>) -> Target {
        Target::Unknown(short(place.into()))
    }
}

/// The targets of the kubeconfigs in a Secret, by the key that holds each; `None` where a text is not a kubeconfig with
/// a current context. Empty texts are left out.
type Kubeconfigs = HashMap<String, Option<Target>>;

/// A cache of the destinations that Secrets and ConfigMaps contain, because many apps may refer to one of them.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// The targets of the kubeconfigs in each Secret, by index of the cluster and key of the Secret.
    kubeconfigs: Memo<(usize, ObjectKey), Arc<Kubeconfigs>>,
    config_maps: Memo<(usize, ObjectKey), Option<Target>>,
    /// By index of the cluster and namespace: the clusters that the Argo CD there knows, by name.
    argo_clusters: Memo<(usize, String), Arc<BTreeMap<String, Target>>>,
    /// The Secrets and ConfigMaps whose bodies were not read, each with the index of its cluster.
    lacking: RefCell<Lacking>,
}

impl Addresses {
    /// Returns the unread Secrets and ConfigMaps with addresses, and forgets them.
    pub(super) fn take_lacking(&self) -> Lacking {
        self.lacking.take()
    }

    /// Returns the target of the kubeconfig under `key` in a Secret; without `key`, under `value` or else `value.yaml`,
    /// as Flux does. An unknown target if there is none.
    pub(super) fn of_kubeconfig(
        &self,
        objects: &dyn Objects,
        home: usize,
        secret: &ObjectKey,
        key: Option<&str>,
    ) -> Target {
        let read = || Arc::new(self.kubeconfigs(objects, home, secret));
        let configs = self.kubeconfigs.get(objects, (home, secret.clone()), read);
        let known = match key {
            Some(key) => configs.get(key),
            None => ["value", "value.yaml"].iter().find_map(|key| configs.get(*key)),
        };
        known.cloned().flatten().unwrap_or_else(|| {
            Target::unknown(format!("the cluster of the kubeconfig in Secret {}", secret.path()))
        })
    }

    /// Returns the target of each kubeconfig in a Secret; empty if the Secret does not exist or its body was not read.
    fn kubeconfigs(&self, objects: &dyn Objects, home: usize, secret: &ObjectKey) -> Kubeconfigs {
        let Some(object) = self.object(objects, home, secret.as_ref()) else { return Kubeconfigs::new() };
        let data = object.at(&["data"]).and_then(Value::members).into_iter().flatten();
        let read = |(key, config): (Cow<'_, str>, Value<'_>)| {
            let config = config.as_str().filter(|config| !config.is_empty())?;
            let target = match config.len() > MAX_KUBECONFIG_BYTES {
                true => Some(Target::unknown(format!(
                    "the cluster of the kubeconfig in Secret {}, which is larger than {} KiB",
                    secret.path(),
                    MAX_KUBECONFIG_BYTES >> 10
                ))),
                false => server(&config).map(|server| Target::at(&server)),
            };
            Some((key.into_owned(), target))
        };
        data.filter_map(read).collect()
    }

    /// Returns the target at the address that a ConfigMap holds under the key `address`, which Flux reads; an unknown
    /// target if there is none.
    pub(super) fn of_config_map(&self, objects: &dyn Objects, home: usize, config_map: &ObjectKey) -> Target {
        let read = || {
            let object = self.object(objects, home, config_map.as_ref())?;
            Some(Target::at(&text(object.root(), &["data", "address"])?))
        };
        let known = self.config_maps.get(objects, (home, config_map.clone()), read);
        known
            .unwrap_or_else(|| Target::unknown(format!("the cluster of the ConfigMap {}", config_map.path())))
    }

    /// Returns the target that Argo CD knows by a name: a labelled Secret holds name and address.
    ///
    /// Argo CD reads only the Secrets in its own namespace, so that a tenant cannot redirect the Applications of
    /// others: only those in `places` count, and of these the first namespace that has the name. An unknown target if
    /// none has it.
    pub(super) fn of_argo_cluster(
        &self,
        objects: &dyn Objects,
        home: usize,
        name: &str,
        places: &[&str],
    ) -> Target {
        let known = |place: &&str| {
            let read = || Arc::new(self.argo_clusters(objects, home, place));
            self.argo_clusters.get(objects, (home, (*place).to_owned()), read).get(name).cloned()
        };
        places.iter().find_map(known).unwrap_or_else(|| Target::unknown(name))
    }

    /// Returns the clusters that an Argo CD in the namespace `place` knows, by name. Of several with one name the first
    /// counts.
    fn argo_clusters(&self, objects: &dyn Objects, home: usize, place: &str) -> BTreeMap<String, Target> {
        let mut clusters = BTreeMap::new();
        for secret in objects.of_kind("", "Secret", Some(place)) {
            let kind = secret.object.text(&["metadata", "labels", "argocd.argoproj.io/secret-type"]);
            if kind != "cluster" {
                continue;
            }
            let Some(object) = self.object(objects, home, secret.key) else { continue };
            let field = |key| {
                let packed = text(object.root(), &["data", key])?;
                String::from_utf8(BASE64.decode(packed.trim()).ok()?).ok()
            };
            let Some(name) = field("name") else { continue };
            clusters.entry(name).or_insert_with_key(|name| match field("server") {
                Some(server) => match Target::at(&server) {
                    Target::Server(server, _) => {
                        let title = short(format!("{name} at {}", without_password(&server)));
                        Target::Server(server, title)
                    }
                    target => target,
                },
                None => Target::unknown(name.as_str()),
            });
        }
        clusters
    }

    /// Returns the object `key`, which holds an address; `None` if it does not exist, or if it was not read whole and
    /// is then added to `lacking`.
    fn object<'a>(&self, objects: &'a dyn Objects, home: usize, key: ObjectKeyRef<'_>) -> Option<Object<'a>> {
        match objects.get(key) {
            Presence::Present(observed) if observed.projection == Projection::Full => Some(observed.object),
            Presence::Absent => None,
            Presence::Present(_) | Presence::Unobserved(_) => {
                self.lacking.borrow_mut().insert((home, key.to_owned()));
                None
            }
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
