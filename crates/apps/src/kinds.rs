//! Facts about kinds: whether an object's body is needed to judge it, whether the cluster makes its objects,
//! whether it is served.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use taffrail_object::kinds::names_kind;
use taffrail_object::{ApiResource, GroupKind};

/// Built-in kinds without a status: an object's metadata is enough to judge it.
const WITHOUT_STATUS: [(&str, &str); 24] = [
    ("", "ConfigMap"),
    ("", "Endpoints"),
    ("", "LimitRange"),
    ("", "PodTemplate"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apps", "ControllerRevision"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("node.k8s.io", "RuntimeClass"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("resource.k8s.io", "ResourceClaimTemplate"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSIStorageCapacity"),
    ("storage.k8s.io", "StorageClass"),
];

/// Returns true if an object of this kind can be judged only from its body.
///
/// For the other kinds metadata is enough, so the values of Secrets need not be read.
pub fn needs_body(group: &str, kind: &str) -> bool {
    !WITHOUT_STATUS.contains(&(group, kind))
}

/// Kinds whose objects the cluster makes itself, so that no tool declares them, whatever labels they carry.
const NOISE: [(&str, &str); 8] = [
    ("", "Endpoints"),
    ("", "Event"),
    ("apps", "ControllerRevision"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
    ("storage.k8s.io", "CSIStorageCapacity"),
    ("cilium.io", "CiliumEndpoint"),
];

/// Returns true if objects of a kind are never declared, because the cluster makes them or computes them.
pub(crate) fn is_noise(group: &str, kind: &str) -> bool {
    NOISE.contains(&(group, kind)) || group == "metrics.k8s.io" || group.ends_with(".metrics.k8s.io")
}

/// A kind as the API server's discovery describes it, and as dumps record it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServedKind {
    /// API group; empty for the core group.
    pub group: String,
    /// The API version that the server prefers.
    pub version: String,
    /// Name of the kind: `Deployment`.
    pub kind: String,
    /// The name in URLs: `deployments`.
    pub plural: String,
    /// True if objects of the kind live in namespaces.
    pub namespaced: bool,
    /// The verbs that the API server supports for the kind: `get`, `list`, `watch`, …
    pub verbs: Vec<String>,
    /// True if the kind has a status subresource in the preferred version.
    #[serde(default)]
    pub has_status_subresource: bool,
}

impl ServedKind {
    /// Returns the API resource to which requests for objects of this kind are sent.
    pub fn resource(&self) -> ApiResource {
        let ServedKind { group, version, kind, plural, namespaced, .. } = self.clone();
        ApiResource { group, version, kind, plural, namespaced }
    }

    /// Returns true if objects of this kind can be listed.
    pub fn is_listable(&self) -> bool {
        self.verbs.iter().any(|verb| verb == "list")
    }

    /// Returns true if `word` means this kind, in a form that kubectl takes: `deploy`, `deployments.apps`,
    /// `Deployment`.
    pub fn is_called(&self, word: &str) -> bool {
        names_kind(word, &self.group, &self.kind) || word.eq_ignore_ascii_case(&self.plural)
    }
}

/// The kinds that one API server serves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KindCatalog {
    kinds: BTreeMap<GroupKind, ServedKind>,
    broken: BTreeMap<String, String>,
}

impl KindCatalog {
    /// The key in `broken` for all groups except the core group, used when the list of groups itself could not be
    /// read.
    pub const ALL_GROUPS: &str = "any other group";

    /// Makes a catalog of `kinds`, and of the groups whose discovery failed, each with the reason.
    ///
    /// An aggregated API whose server is down makes its own kinds unknown, and no others.
    pub fn new(
        kinds: impl IntoIterator<Item = ServedKind>,
        broken: impl IntoIterator<Item = (String, String)>,
    ) -> KindCatalog {
        let keyed = |served: ServedKind| (GroupKind::new(&*served.group, &*served.kind), served);
        KindCatalog { kinds: kinds.into_iter().map(keyed).collect(), broken: broken.into_iter().collect() }
    }

    /// Returns the kind as discovery found it; `None` if it did not, because the server does not serve the kind or
    /// discovery of its group failed.
    pub fn get(&self, kind: &GroupKind) -> Option<&ServedKind> {
        self.kinds.get(kind)
    }

    /// Returns the reason why discovery of `group` failed, also if the list of all groups other than the core group
    /// could not be read; `None` if it did not fail.
    pub fn broken(&self, group: &str) -> Option<&str> {
        let any = || self.broken.get(KindCatalog::ALL_GROUPS).filter(|_| !group.is_empty());
        self.broken.get(group).or_else(any).map(String::as_str)
    }

    /// Returns true if the kind is served, or may be because discovery of its group failed.
    pub fn may_serve(&self, kind: &GroupKind) -> bool {
        self.kinds.contains_key(kind) || self.broken(&kind.group).is_some()
    }

    /// Iterates over all served kinds, by group and kind.
    pub fn iter(&self) -> impl Iterator<Item = &ServedKind> {
        self.kinds.values()
    }

    /// Iterates over the groups whose discovery failed, each with the reason.
    pub fn broken_groups(&self) -> impl Iterator<Item = (&str, &str)> {
        self.broken.iter().map(|(group, reason)| (group.as_str(), reason.as_str()))
    }
}
