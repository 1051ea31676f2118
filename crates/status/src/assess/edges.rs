//! The table of edges between objects: owner references, names in fields, labels and selectors.

use std::collections::HashMap;

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};

/// The method by which the targets of an edge are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The target's controller owner reference has the UID of the object.
    Owner,
    /// The field `name` of the values at `at` is the name of the target, in the namespace of the object. The target of
    /// a value with `optional: true` need not exist.
    Field {
        /// Path of the values; `[]` stands for each item of a list.
        at: &'static str,
        /// The key, in each value, of the target's name.
        name: &'static str,
    },
    /// Like [`By::Field`], but the target is cluster-scoped.
    ClusterField {
        /// Path of the values; `[]` stands for each item of a list.
        at: &'static str,
        /// The key, in each value, of the target's name.
        name: &'static str,
    },
    /// The values at `at` are references with `name` and, where they differ from the object's or the edge's,
    /// `namespace`, `kind` and `apiVersion`, `group` or `apiGroup`.
    Reference {
        /// Path of the references; `[]` stands for each item of a list.
        at: &'static str,
    },
    /// The values at `at` are strings `namespace/name`.
    Path {
        /// Path of the strings; `[]` stands for each item of a list.
        at: &'static str,
    },
    /// The target has this label with the name of the object as its value.
    Label {
        /// The key of the label.
        key: &'static str,
    },
    /// The object's selector matches the labels of the target's Pods.
    Selector,
}

/// A way in which evidence leads from objects of one kind to objects of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Group and kind of the objects at which the edge starts; both empty for any kind.
    pub from: (&'static str, &'static str),
    /// Group and kind of the edge's targets; an empty kind stands for every kind of the group, both empty for any kind.
    pub to: (&'static str, &'static str),
    /// The method by which the targets are found.
    pub by: By,
}

const ANY: (&str, &str) = ("", "");
const POD: (&str, &str) = ("", "Pod");
const CLAIM: (&str, &str) = ("", "PersistentVolumeClaim");
const SECRET: (&str, &str) = ("", "Secret");
const CONFIG_MAP: (&str, &str) = ("", "ConfigMap");
const FLUX_SOURCE: (&str, &str) = ("source.toolkit.fluxcd.io", "");
const HELM_CHART: (&str, &str) = ("source.toolkit.fluxcd.io", "HelmChart");
const KUSTOMIZATION: (&str, &str) = ("kustomize.toolkit.fluxcd.io", "Kustomization");
const HELM_RELEASE: (&str, &str) = ("helm.toolkit.fluxcd.io", "HelmRelease");
const EXTERNAL_SECRET: (&str, &str) = ("external-secrets.io", "ExternalSecret");
const SECRET_STORE: (&str, &str) = ("external-secrets.io", "SecretStore");
const ADMISSION: &str = "admissionregistration.k8s.io";

/// Path at which a Kustomization of Flux names the objects whose health it waits for.
const HEALTH_CHECKS: &str = "spec.healthChecks[]";

const fn edge(from: (&'static str, &'static str), to: (&'static str, &'static str), by: By) -> Edge {
    Edge { from, to, by }
}

const fn field(at: &'static str, name: &'static str) -> By {
    By::Field { at, name }
}

/// All edges that evidence follows.
pub const EDGES: &[Edge] = &[
    edge(ANY, ANY, By::Owner),
    edge(POD, ("", "Node"), By::ClusterField { at: "spec", name: "nodeName" }),
    edge(POD, ("", "ServiceAccount"), field("spec", "serviceAccountName")),
    edge(POD, CLAIM, field("spec.volumes[].persistentVolumeClaim", "claimName")),
    edge(POD, SECRET, field("spec.volumes[].secret", "secretName")),
    edge(POD, SECRET, field("spec.volumes[].projected.sources[].secret", "name")),
    edge(POD, SECRET, field("spec.containers[].env[].valueFrom.secretKeyRef", "name")),
    edge(POD, SECRET, field("spec.containers[].envFrom[].secretRef", "name")),
    edge(POD, SECRET, field("spec.initContainers[].env[].valueFrom.secretKeyRef", "name")),
    edge(POD, SECRET, field("spec.initContainers[].envFrom[].secretRef", "name")),
    edge(POD, CONFIG_MAP, field("spec.volumes[].configMap", "name")),
    edge(POD, CONFIG_MAP, field("spec.volumes[].projected.sources[].configMap", "name")),
    edge(POD, CONFIG_MAP, field("spec.containers[].env[].valueFrom.configMapKeyRef", "name")),
    edge(POD, CONFIG_MAP, field("spec.containers[].envFrom[].configMapRef", "name")),
    edge(POD, CONFIG_MAP, field("spec.initContainers[].env[].valueFrom.configMapKeyRef", "name")),
    edge(POD, CONFIG_MAP, field("spec.initContainers[].envFrom[].configMapRef", "name")),
    edge(CLAIM, ("", "PersistentVolume"), By::ClusterField { at: "spec", name: "volumeName" }),
    edge(
        CLAIM,
        ("storage.k8s.io", "StorageClass"),
        By::ClusterField { at: "spec", name: "storageClassName" },
    ),
    edge(("", "PersistentVolume"), CLAIM, By::Reference { at: "spec.claimRef" }),
    edge(
        ("snapshot.storage.k8s.io", "VolumeSnapshot"),
        CLAIM,
        field("spec.source", "persistentVolumeClaimName"),
    ),
    edge(("autoscaling", "HorizontalPodAutoscaler"), ANY, By::Reference { at: "spec.scaleTargetRef" }),
    edge(("apiregistration.k8s.io", "APIService"), ("", "Service"), By::Reference { at: "spec.service" }),
    edge(
        ("", "Service"),
        ("discovery.k8s.io", "EndpointSlice"),
        By::Label { key: "kubernetes.io/service-name" },
    ),
    edge(("discovery.k8s.io", "EndpointSlice"), POD, By::Reference { at: "endpoints[].targetRef" }),
    edge(("", "Endpoints"), POD, By::Reference { at: "subsets[].notReadyAddresses[].targetRef" }),
    edge(("policy", "PodDisruptionBudget"), ("apps", "Deployment"), By::Selector),
    // Crossplane, cert-manager and Cluster API reference their parts in fields.
    edge(ANY, ANY, By::Reference { at: "spec.resourceRef" }),
    edge(ANY, ANY, By::Reference { at: "spec.resourceRefs[]" }),
    edge(ANY, ANY, By::Reference { at: "spec.crossplane.resourceRefs[]" }),
    edge(ANY, ("cert-manager.io", "Issuer"), By::Reference { at: "spec.issuerRef" }),
    edge(EXTERNAL_SECRET, SECRET_STORE, By::Reference { at: "spec.secretStoreRef" }),
    edge(EXTERNAL_SECRET, SECRET_STORE, By::Reference { at: "spec.data[].sourceRef.storeRef" }),
    edge(EXTERNAL_SECRET, SECRET_STORE, By::Reference { at: "spec.dataFrom[].sourceRef.storeRef" }),
    edge(("external-secrets.io", "PushSecret"), SECRET_STORE, By::Reference { at: "spec.secretStoreRefs[]" }),
    edge(
        (ADMISSION, "ValidatingAdmissionPolicyBinding"),
        (ADMISSION, "ValidatingAdmissionPolicy"),
        By::ClusterField { at: "spec", name: "policyName" },
    ),
    edge(
        (ADMISSION, "MutatingAdmissionPolicyBinding"),
        (ADMISSION, "MutatingAdmissionPolicy"),
        By::ClusterField { at: "spec", name: "policyName" },
    ),
    edge(ANY, ANY, By::Reference { at: "spec.infrastructureRef" }),
    edge(ANY, ANY, By::Reference { at: "spec.controlPlaneRef" }),
    edge(ANY, ANY, By::Reference { at: "spec.bootstrap.configRef" }),
    edge(KUSTOMIZATION, KUSTOMIZATION, By::Reference { at: "spec.dependsOn[]" }),
    edge(KUSTOMIZATION, FLUX_SOURCE, By::Reference { at: "spec.sourceRef" }),
    edge(KUSTOMIZATION, ANY, By::Reference { at: HEALTH_CHECKS }),
    edge(HELM_RELEASE, HELM_RELEASE, By::Reference { at: "spec.dependsOn[]" }),
    edge(HELM_RELEASE, FLUX_SOURCE, By::Reference { at: "spec.chartRef" }),
    edge(HELM_RELEASE, HELM_CHART, By::Path { at: "status.helmChart" }),
    edge(HELM_CHART, FLUX_SOURCE, By::Reference { at: "spec.sourceRef" }),
];

/// An object that another one names in its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The key of the named object.
    pub to: ObjectKey,
    /// True if the object that names it works without it.
    pub optional: bool,
}

/// Returns the objects that `object` names in its fields, each once, in the order of [`EDGES`].
///
/// If a field does not tell whether its target is cluster-scoped, the returned key has the namespace of `object`.
pub fn references(object: &Object<'_>) -> Vec<Reference> {
    references_along(object, |_| true)
}

/// Returns the PersistentVolumeClaims that a Pod names in its fields, without those of ephemeral volumes.
pub(super) fn claims(pod: &Object<'_>) -> Vec<Reference> {
    references_along(pod, |edge| is_kind(edge.to, CLAIM) && is_kind(edge.from, POD))
}

/// Returns the objects that a Kustomization of Flux names in `spec.healthChecks`.
pub(super) fn health_checks(kustomization: &Object<'_>) -> Vec<Reference> {
    references_along(kustomization, |edge| matches!(edge.by, By::Reference { at: HEALTH_CHECKS }))
}

/// Returns true if two groups and kinds are equal. Compares the kinds first: most groups are equal, most kinds not even
/// in length.
fn is_kind(one: (&str, &str), other: (&str, &str)) -> bool {
    one.1 == other.1 && one.0 == other.0
}

fn references_along(object: &Object<'_>, is_wanted: impl Fn(&Edge) -> bool) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    let mut places: HashMap<ObjectKey, usize> = HashMap::new();
    let mut add = |group: &str, kind: &str, namespace: &str, name: &str, optional: bool| {
        if name.is_empty() || kind.is_empty() {
            return;
        }
        let to = ObjectKey::new(group, kind, namespace, name);
        match places.get(&to).and_then(|at| found.get_mut(*at)) {
            Some(known) => known.optional &= optional,
            None => {
                places.insert(to.clone(), found.len());
                found.push(Reference { to, optional });
            }
        }
    };
    let home = object.namespace();
    let mut walk = Walk { root: object.root(), known: Vec::new() };
    let is_from =
        |edge: &&Edge| edge.from.1.is_empty() || is_kind(edge.from, (object.group(), object.kind()));
    for edge in EDGES.iter().filter(is_from).filter(|edge| is_wanted(edge)) {
        let text = |value: Value<'_>, key: &str| {
            value.get(key).and_then(Value::as_str).map(|text| text.into_owned()).unwrap_or_default()
        };
        let optional = |value: Value<'_>| value.get("optional").and_then(Value::as_bool) == Some(true);
        let (group, kind) = edge.to;
        match edge.by {
            By::Field { at, name } => {
                for value in walk.along(at) {
                    add(group, kind, &home, &text(value, name), optional(value));
                }
            }
            By::ClusterField { at, name } => {
                for value in walk.along(at) {
                    add(group, kind, "", &text(value, name), optional(value));
                }
            }
            By::Reference { at } => {
                for value in walk.along(at) {
                    let [api_version, own_group, api_group, named, namespace, name] =
                        ["apiVersion", "group", "apiGroup", "kind", "namespace", "name"]
                            .map(|key| text(value, key));
                    let versioned = api_version.split_once('/').map(|(group, _)| group);
                    let group = match (&*api_version, &*own_group, &*api_group) {
                        ("", "", "") => group,
                        ("", "", own) | ("", own, _) => own,
                        _ => versioned.unwrap_or_default(),
                    };
                    let kind = if named.is_empty() { kind } else { &named };
                    let namespace = if namespace.is_empty() { &*home } else { &namespace };
                    add(group, kind, namespace, &name, false);
                }
            }
            By::Path { at } => {
                for value in walk.along(at) {
                    if let Some((namespace, name)) =
                        value.as_str().as_deref().and_then(|it| it.split_once('/'))
                    {
                        add(group, kind, namespace, name, false);
                    }
                }
            }
            By::Owner | By::Label { .. } | By::Selector => {}
        }
    }
    found
}

/// A walk through one object along several paths; common prefixes are resolved once.
struct Walk<'a> {
    root: Value<'a>,
    known: Vec<(&'static str, Vec<Value<'a>>)>,
}

impl<'a> Walk<'a> {
    /// Returns the values at a path of keys that are not null; `[]` after a key stands for each item.
    fn along(&mut self, path: &'static str) -> Vec<Value<'a>> {
        let mut values = self.read(path);
        values.retain(|value| !value.is_null());
        values
    }

    fn read(&mut self, path: &'static str) -> Vec<Value<'a>> {
        match path.rsplit_once('.') {
            None => step(&[self.root], path),
            Some((before, key)) => step(self.at(before), key),
        }
    }

    fn at(&mut self, path: &'static str) -> &[Value<'a>] {
        let known = self.known.iter().position(|(known, _)| *known == path);
        let at = known.unwrap_or_else(|| {
            let values = self.read(path);
            self.known.push((path, values));
            self.known.len() - 1
        });
        self.known.get(at).map_or(&[], |(_, values)| values)
    }
}

fn step<'a>(values: &[Value<'a>], step: &str) -> Vec<Value<'a>> {
    let (key, each) = step.strip_suffix("[]").map_or((step, false), |key| (key, true));
    let inner = values.iter().filter_map(|value| value.get(key));
    if each { inner.filter_map(Value::items).flatten().collect() } else { inner.collect() }
}
