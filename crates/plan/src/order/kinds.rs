//! The orders of kinds of delivery tools: a kind of a lower rank is applied first, and 0 is the rank of all that are not
//! listed.

use taffrail_object::ObjectKey;

/// Argo CD's order, which is Helm's: `gitops-engine/pkg/sync/sync_tasks.go`. The group does not count.
const ARGO: [&str; 35] = [
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// Flux' order: `fluxcd/pkg/ssa/sort.go`. The group does not count.
const FLUX: [&str; 23] = [
    "CustomResourceDefinition",
    "Namespace",
    "ClusterRole",
    "ClusterClass",
    "RuntimeClass",
    "PriorityClass",
    "StorageClass",
    "VolumeSnapshotClass",
    "IngressClass",
    "GatewayClass",
    "ClusterRoleBinding",
    "ResourceQuota",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "Secret",
    "Service",
    "LimitRange",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

const FLUX_LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// The order of cli-utils, which kpt and Config Sync use: `cli-utils/pkg/ordering/sort.go`.
const KPT: [(&str, &str); 22] = [
    ("", "Namespace"),
    ("", "ResourceQuota"),
    ("storage.k8s.io", "StorageClass"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("", "ServiceAccount"),
    ("extensions", "PodSecurityPolicy"),
    ("policy", "PodSecurityPolicy"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "Service"),
    ("", "LimitRange"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("extensions", "Deployment"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("policy", "PodDisruptionBudget"),
];

const KPT_LAST: (&str, &str) = ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration");

/// Returns the rank of an object's kind in Argo CD's order.
pub(super) fn argo(key: &ObjectKey) -> i32 {
    rank(&ARGO, |kind| **kind == *key.kind)
}

/// Returns the rank of an object's kind in Flux' order.
pub(super) fn flux(key: &ObjectKey) -> i32 {
    match FLUX_LAST.iter().position(|kind| *kind == key.kind) {
        Some(at) => 1 + at as i32,
        None => rank(&FLUX, |kind| **kind == *key.kind),
    }
}

/// Returns the rank of an object's kind in the order of cli-utils.
pub(super) fn kpt(key: &ObjectKey) -> i32 {
    let is_it = |kind: &(&str, &str)| *kind == (&*key.group, &*key.kind);
    if is_it(&KPT_LAST) { 1 } else { rank(&KPT, is_it) }
}

/// Returns the stage in which Flux applies an object: definitions, classes, or all others.
pub(super) fn flux_stage(key: &ObjectKey) -> usize {
    match &*key.kind {
        "CustomResourceDefinition" | "Namespace" | "ClusterRole" => 0,
        kind if kind.ends_with("Class") => 1,
        _ => 2,
    }
}

fn rank<T>(order: &[T], is_it: impl Fn(&T) -> bool) -> i32 {
    order.iter().position(is_it).map_or(0, |at| at as i32 - order.len() as i32)
}
