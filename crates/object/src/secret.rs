//! Annotations of Secrets that may be shown.

/// Annotations that name the owner of an object.
const OWNERS: [&str; 3] =
    ["argocd.argoproj.io/tracking-id", "config.k8s.io/owning-inventory", "configsync.gke.io/manager"];

/// Prefixes of further annotations that name the owner of an object.
const OWNER_STARTS: [&str; 3] = ["meta.helm.sh/", "taffrail.dev/", "kustomize.toolkit.fluxcd.io/"];

/// Returns true if an annotation of a Secret may be shown, because it names the owner. Any other may contain a value of
/// the Secret, as the copies do that `kubectl apply` and kapp keep.
pub fn may_show_annotation(name: &str) -> bool {
    OWNERS.contains(&name) || OWNER_STARTS.iter().any(|start| name.starts_with(start))
}
