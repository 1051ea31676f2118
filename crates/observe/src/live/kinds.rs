//! The kinds to follow, and the projection of their objects.

use std::collections::BTreeSet;

use taffrail_cluster::{Discovery, Scope};
use taffrail_object::{ApiResource, Projection};

/// Kinds that are not watched by default: second views of other kinds, kinds that change all the time and say
/// nothing about apps, and kinds without stored objects. `*` stands for all kinds of a group.
const LEFT_OUT: [(&str, &str); 15] = [
    // Second views.
    ("", "Endpoints"),
    ("events.k8s.io", "*"),
    // Heartbeats and measurements.
    ("coordination.k8s.io", "*"),
    ("metrics.k8s.io", "*"),
    ("custom.metrics.k8s.io", "*"),
    ("external.metrics.k8s.io", "*"),
    // What networks keep of each Pod.
    ("cilium.io", "CiliumEndpoint"),
    ("cilium.io", "CiliumEndpointSlice"),
    ("cilium.io", "CiliumIdentity"),
    // Reports about each object, for each policy.
    ("wgpolicyk8s.io", "*"),
    ("openreports.io", "*"),
    ("reports.kyverno.io", "*"),
    ("kyverno.io", "UpdateRequest"),
    ("aquasecurity.github.io", "*"),
    ("internal.autoscaling.k8s.io", "*"),
];

/// Kinds whose objects are judged by metadata alone, so that their bodies are not read unless [`KindSettings::bodies`]
/// names the kind.
const WITHOUT_BODY: [(&str, &str); 10] = [
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("", "PodTemplate"),
    ("apps", "ControllerRevision"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("networking.k8s.io", "NetworkPolicy"),
];

/// The choice of kinds to watch.
#[derive(Debug, Clone, Default)]
pub struct KindSettings {
    /// Group and kind of the only kinds to watch; `*` for all kinds of a group. Empty: all kinds that are not left
    /// out by default.
    pub only: Vec<(String, String)>,
    /// Group and kind of kinds to watch although they are left out by default; `*` for all kinds of a group.
    pub include: Vec<(String, String)>,
    /// Group and kind of kinds not to watch; `*` for all kinds of a group. This takes precedence over the other
    /// lists.
    pub exclude: Vec<(String, String)>,
    /// The namespaces to watch; empty for all, and then also cluster-scoped objects.
    pub namespaces: Vec<String>,
    /// Kinds to read with their bodies although their status does not need them. The bodies of Secrets are never
    /// read.
    pub bodies: Vec<(String, String)>,
}

fn is_among<'l>(mut list: impl Iterator<Item = (&'l str, &'l str)>, resource: &ApiResource) -> bool {
    list.any(|(group, kind)| group == resource.group && (kind == "*" || kind == resource.kind))
}

fn pairs(list: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    list.iter().map(|(group, kind)| (group.as_str(), kind.as_str()))
}

impl KindSettings {
    fn follows(&self, resource: &ApiResource) -> bool {
        let by_default =
            || is_among(pairs(&self.include), resource) || !is_among(LEFT_OUT.into_iter(), resource);
        let is_asked_for =
            if self.only.is_empty() { by_default() } else { is_among(pairs(&self.only), resource) };
        is_asked_for && !is_among(pairs(&self.exclude), resource)
    }

    fn projection(&self, resource: &ApiResource) -> Projection {
        let needs_body =
            is_among(pairs(&self.bodies), resource) || !is_among(WITHOUT_BODY.into_iter(), resource);
        if needs_body { Projection::Full } else { Projection::Metadata }
    }

    /// Returns the scopes to watch in a server with these kinds: each kind to follow that can be listed and watched, in
    /// its preferred version and in each namespace of the settings. Of Events those of type Warning.
    pub(super) fn scopes(&self, discovery: &Discovery) -> BTreeSet<Scope> {
        let mut scopes = BTreeSet::new();
        for served in discovery.resources() {
            let has = |verb: &str| served.verbs.iter().any(|own| own == verb);
            let resource = served.preferred();
            if !has("list") || !has("watch") || !self.follows(&resource) {
                continue;
            }
            // Of events only the warnings are kept.
            let is_event = resource.group.is_empty() && resource.kind == "Event";
            let fields = is_event.then(|| "type=Warning".to_owned());
            let scope = Scope { projection: self.projection(&resource), fields, ..Scope::all(resource) };
            if self.namespaces.is_empty() {
                scopes.insert(scope);
            } else if scope.resource.namespaced {
                let inside =
                    |namespace: &String| Scope { namespace: Some(namespace.clone()), ..scope.clone() };
                scopes.extend(self.namespaces.iter().map(inside));
            }
        }
        scopes
    }
}

/// Returns true if objects of a kind define kinds: CustomResourceDefinitions and APIServices.
pub(super) fn defines_kinds(resource: &ApiResource) -> bool {
    matches!(
        (resource.group.as_str(), resource.kind.as_str()),
        ("apiextensions.k8s.io", "CustomResourceDefinition") | ("apiregistration.k8s.io", "APIService")
    )
}
