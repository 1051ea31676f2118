//! The names of the field managers that write in the simulated clusters.

/// Returns the name of the field manager that writes the status of objects of a kind, other than Pods and Nodes, whose
/// status the kubelet writes.
pub(super) fn status_manager(group: &str, kind: &str) -> &'static str {
    match (group, kind) {
        ("source.toolkit.fluxcd.io", _) => "source-controller",
        ("kustomize.toolkit.fluxcd.io", _) => "kustomize-controller",
        ("helm.toolkit.fluxcd.io", _) => "helm-controller",
        ("argoproj.io", "ApplicationSet") => "argocd-applicationset-controller",
        ("argoproj.io", _) => "argocd-application-controller",
        ("configsync.gke.io", _) => "reconciler-manager",
        ("kpt.dev", _) => "resource-group-controller",
        _ => "kube-controller-manager",
    }
}
