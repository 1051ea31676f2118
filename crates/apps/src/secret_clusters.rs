//! The Secrets of a cluster that give delivery tools access to other clusters.
//!
//! Only a Secret that its tool would use counts: an author of another Secret cannot make Taffrail connect anywhere. The
//! credentials are not looked at here.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_object::json::Value;
use taffrail_object::selector::{MAX_LABELS, invalid_label};
use taffrail_object::{Object, ObjectKey, ObjectKeyRef, names};
use taffrail_status::{Observed, Presence, Trust};

use crate::delivery::argo::installs::{INSTALLED, Standing, argo_standing};
use crate::noting::metadata_of;
use crate::objects::Objects;
use crate::round_robin::round_robin;

/// The maximum number of Secrets of one cluster from which other clusters are taken; [`ClusterSecrets::left_out`]
/// counts the others.
pub const MAX_CLUSTER_SECRETS: usize = 1_000;

/// The keys under which Flux looks for a kubeconfig if the declaring object names none, in order.
const FLUX_KEYS: [&str; 2] = ["value", "value.yaml"];

/// The API group of Cluster API.
pub(crate) const CLUSTER_API_GROUP: &str = "cluster.x-k8s.io";

/// The maximum number of namespaces with cluster Secrets of Argo CD in which the proof of an Argo CD is read; of more,
/// only the first 100 by name, and that of the installer.
const MAX_ARGO_NAMESPACES: usize = 100;

/// The suffix of the Secret in which Cluster API stores the kubeconfig of a `Cluster`.
const CLUSTER_API_SUFFIX: &str = "-kubeconfig";

/// The label by which Argo CD knows its cluster Secrets, which says nothing about the cluster.
const ARGO_SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";

/// The maximum length in bytes of a Secret's key, as the API server checks it; declarations that name a longer one are
/// ignored.
const MAX_KEY: usize = 253;

/// The tool that uses a Secret with access to a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterSecretTool {
    /// Argo CD: a labelled Secret in the namespace of a known Argo CD.
    ArgoCd,
    /// Cluster API: the Secret `NAME-kubeconfig` beside the `Cluster` NAME.
    ClusterApi,
    /// Flux: a Secret that a Kustomization or HelmRelease of the namespace names.
    Flux,
}

/// A Secret that gives a delivery tool access to another cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterSecret {
    /// The Secret. It may not exist if the Secrets of its namespace were not read.
    pub secret: ObjectKey,
    /// The tool that uses it.
    pub tool: ClusterSecretTool,
    /// The keys that may hold the kubeconfig, of which the first that exists counts; empty for Argo CD.
    pub keys: Vec<String>,
    /// The name of the cluster, `HOME/NAMESPACE/BASE`, unique among those of the home.
    pub name: String,
    /// The [labels](cluster_labels) of the Secret, or, for Cluster API, of the `Cluster`; `None` if the home's objects
    /// do not include that.
    pub labels: Option<BTreeMap<String, String>>,
}

impl ClusterSecret {
    /// Returns true if `other` is the same Secret, used by the same tool in the same way; labels aside.
    pub fn is_same(&self, other: &ClusterSecret) -> bool {
        (&self.secret, self.tool, &self.keys, &self.name)
            == (&other.secret, other.tool, &other.keys, &other.name)
    }
}

/// Returns the labels that an object gives to the cluster that it stands for: of its own the first
/// [`MAX_LABELS`] by name, without those that the API server would refuse and without Argo CD's `secret-type`.
pub fn cluster_labels(object: &Object<'_>) -> BTreeMap<String, String> {
    let labels = object.at(&["metadata", "labels"]);
    let pairs = labels.and_then(Value::members).into_iter().flatten();
    let is_kept =
        |(name, value): &(String, String)| name != ARGO_SECRET_TYPE && invalid_label(name, value).is_none();
    let mut kept = BTreeMap::new();
    let texts = pairs.filter_map(|(name, value)| Some((name.into_owned(), value.as_str()?.into_owned())));
    for (name, value) in texts.filter(is_kept) {
        kept.insert(name, value);
        if kept.len() > MAX_LABELS {
            kept.pop_last();
        }
    }
    kept
}

/// The Secrets of one cluster that give access to other clusters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterSecrets {
    /// The Secrets, at most [`MAX_CLUSTER_SECRETS`], sorted by [`ClusterSecret::name`].
    pub secrets: Vec<ClusterSecret>,
    /// Number of Secrets beyond the maximum, by namespace. Namespaces take turns, so that one with many displaces none
    /// of the others.
    pub left_out: BTreeMap<String, usize>,
}

/// Finds the Secrets of the cluster `home` that give the tools in `tools` access to other clusters; of Argo CDs only
/// those whose standing is Known.
pub fn cluster_secrets(home: &dyn Objects, trust: &Trust, tools: &[ClusterSecretTool]) -> ClusterSecrets {
    // By Secret and key, so that a kubeconfig which several objects name is one cluster; the first tool counts.
    let mut found: BTreeMap<(ObjectKey, Vec<String>), ClusterSecretTool> = BTreeMap::new();
    let mut add = |tool, namespace: &str, name: &str, keys: Vec<String>| {
        let secret = ObjectKey::new("", "Secret", namespace, name);
        let may_exist = || !matches!(metadata_of(home, &secret), Presence::Absent);
        if names::check(&secret).is_ok() && keys.iter().all(|key| is_key(key)) && may_exist() {
            found.entry((secret, keys)).or_insert(tool);
        }
    };
    if tools.contains(&ClusterSecretTool::ArgoCd) {
        let mut known: BTreeMap<&str, bool> = BTreeMap::new();
        for secret in home.of_kind("", "Secret", None) {
            let namespace = secret.key.namespace;
            let is_known = || argo_standing(home, namespace, trust) == Standing::Known;
            if is_of_argo(&secret) && *known.entry(namespace).or_insert_with(is_known) {
                add(ClusterSecretTool::ArgoCd, namespace, secret.key.name, Vec::new());
            }
        }
    }
    if tools.contains(&ClusterSecretTool::ClusterApi) {
        for cluster in home.of_kind(CLUSTER_API_GROUP, "Cluster", None) {
            let name = format!("{}{CLUSTER_API_SUFFIX}", cluster.key.name);
            add(ClusterSecretTool::ClusterApi, cluster.key.namespace, &name, vec!["value".to_owned()]);
        }
    }
    if tools.contains(&ClusterSecretTool::Flux) {
        for (group, kind) in
            [("kustomize.toolkit.fluxcd.io", "Kustomization"), ("helm.toolkit.fluxcd.io", "HelmRelease")]
        {
            for object in home.of_kind(group, kind, None) {
                let field = |name| object.object.text(&["spec", "kubeConfig", "secretRef", name]);
                let keys = match &*field("key") {
                    "" => FLUX_KEYS.map(str::to_owned).to_vec(),
                    key => vec![key.to_owned()],
                };
                add(ClusterSecretTool::Flux, object.key.namespace, &field("name"), keys);
            }
        }
    }
    // Where one Secret holds the kubeconfig `value`, asking for it by name or by default is the same.
    let by_name: BTreeSet<ObjectKey> = found
        .keys()
        .filter(|(_, keys)| matches!(&keys[..], [key] if key == FLUX_KEYS[0]))
        .map(|(secret, _)| secret.clone())
        .collect();
    found.retain(|(secret, keys), _| keys.len() < FLUX_KEYS.len() || !by_name.contains(secret));

    let found: Vec<ClusterSecret> = named(home, found);
    let mut secrets = round_robin(found, |secret| &secret.secret.namespace);
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    for beyond in secrets.iter().skip(MAX_CLUSTER_SECRETS) {
        *left_out.entry(beyond.secret.namespace.clone()).or_default() += 1;
    }
    secrets.truncate(MAX_CLUSTER_SECRETS);
    secrets.sort_by(|a, b| a.name.cmp(&b.name));
    ClusterSecrets { secrets, left_out }
}

/// Returns true if a Secret is labelled as a cluster Secret of Argo CD, which any author of Secrets can do.
fn is_of_argo(secret: &Observed<'_>) -> bool {
    secret.object.text(&["metadata", "labels", ARGO_SECRET_TYPE]) == "cluster"
}

/// Returns the namespaces with cluster Secrets of Argo CD for which proofs of an Argo CD must be read: those that the
/// user's settings do not name. Of more than 100, only the first 100 and that of the installer.
pub(crate) fn doubtful(home: &dyn Objects, trust: &Trust) -> BTreeSet<String> {
    let mut namespaces = BTreeSet::new();
    for secret in home.of_kind("", "Secret", None).filter(is_of_argo) {
        let namespace = secret.key.namespace;
        if !namespaces.contains(namespace)
            && (namespaces.len() < MAX_ARGO_NAMESPACES || namespace == INSTALLED)
            && !trust.names_argocd(home.name(), namespace)
        {
            namespaces.insert(namespace.to_owned());
        }
    }
    namespaces
}

/// Names each cluster after its Secret, without the suffix of Cluster API. Where two of a namespace would have one
/// name, all but the first are named `SECRET:KEY`, which no Secret can be called.
fn named(
    home: &dyn Objects,
    found: BTreeMap<(ObjectKey, Vec<String>), ClusterSecretTool>,
) -> Vec<ClusterSecret> {
    let mut taken = BTreeSet::new();
    let mut all: Vec<_> = found.into_iter().map(|((secret, keys), tool)| (tool, secret, keys)).collect();
    // The order of the tools keeps the name of a Secret of Argo CD or Cluster API where a tenant adds one for Flux.
    all.sort();
    let name = |(tool, secret, keys): (ClusterSecretTool, ObjectKey, Vec<String>)| {
        let base = match tool {
            ClusterSecretTool::ClusterApi => {
                secret.name.strip_suffix(CLUSTER_API_SUFFIX).unwrap_or(&secret.name).to_owned()
            }
            ClusterSecretTool::ArgoCd | ClusterSecretTool::Flux => secret.name.clone(),
        };
        let labelled = match tool {
            ClusterSecretTool::ClusterApi => {
                ObjectKeyRef::new(CLUSTER_API_GROUP, "Cluster", &secret.namespace, &base)
            }
            ClusterSecretTool::ArgoCd | ClusterSecretTool::Flux => secret.as_ref(),
        };
        let labelled = home.get(labelled).present();
        let labels = labelled.map(|observed| cluster_labels(&observed.object));
        let home = home.name();
        let mut name = format!("{home}/{}/{base}", secret.namespace);
        if !taken.insert(name.clone()) {
            let key = keys.first().map(String::as_str).unwrap_or_default();
            name = format!("{home}/{}/{}:{key}", secret.namespace, secret.name);
            taken.insert(name.clone());
        }
        ClusterSecret { secret, tool, keys, name, labels }
    };
    let mut named: Vec<ClusterSecret> = all.into_iter().map(name).collect();
    named.sort();
    named
}

/// Returns true if a Secret may have this key.
fn is_key(key: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !key.is_empty() && key.len() <= MAX_KEY && key.bytes().all(is_allowed)
}
