//! What the action of a cluster may make.
//!
//! It runs with the rights of whoever asks, and is written by whoever may write into one namespace.

use serde_json::Value;
use taffrail_apps::ObjectKey;

/// Groups whose objects grant rights, change what the API server does, or have tools deliver something.
const GROUPS: &[&str] = &[
    "rbac.authorization.k8s.io",
    "authorization.k8s.io",
    "authentication.k8s.io",
    "certificates.k8s.io",
    "apiextensions.k8s.io",
    "admissionregistration.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "batch",
    "argoproj.io",
    "configsync.gke.io",
    "kpt.dev",
    "tekton.dev",
];

/// The ends of such groups.
const ENDS: &[&str] =
    &[".toolkit.fluxcd.io", ".fluxcd.controlplane.io", ".kpt.dev", ".cattle.io", ".taffrail.dev"];

/// Such kinds of the core group.
const KINDS: &[&str] =
    &["Pod", "PodTemplate", "ReplicationController", "Secret", "ServiceAccount", "Binding"];

/// Fields that only Pods and templates of them have.
const OF_PODS: &[&str] = &["containers", "initContainers", "ephemeralContainers"];

/// Values are looked through so deep; what is deeper counts as the worst.
const DEEPEST: usize = 64;

/// Whether an object runs code or grants rights, so that it is made only where the user allows its kind by name.
pub(super) fn is_risky(key: &ObjectKey, object: &Value) -> bool {
    let group = key.group.as_str();
    let is_fluxcd = matches!(group, "fluxcd.controlplane.io" | "taffrail.dev");
    (group.is_empty() && KINDS.contains(&key.kind.as_str()))
        || GROUPS.contains(&group)
        || is_fluxcd
        || ENDS.iter().any(|end| group.ends_with(end))
        || holds_pods(object, 0)
}

fn holds_pods(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > DEEPEST => true,
        Value::Object(fields) => fields
            .iter()
            .any(|(name, field)| OF_PODS.contains(&name.as_str()) || holds_pods(field, depth + 1)),
        Value::Array(items) => items.iter().any(|item| holds_pods(item, depth + 1)),
        // Manifests in texts are none here: what applies them is one of the groups above.
        _ => false,
    }
}

/// Whether one of these words, `Kind` or `Kind.group`, means the kind.
pub(super) fn is_allowed(key: &ObjectKey, words: &[String]) -> bool {
    words.iter().any(|word| match word.split_once('.') {
        Some((kind, group)) => kind.eq_ignore_ascii_case(&key.kind) && group.eq_ignore_ascii_case(&key.group),
        None => word.eq_ignore_ascii_case(&key.kind),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_runs_code_or_grants_rights_is_risky() {
        let is = |group: &str, kind: &str, object: Value| {
            is_risky(&ObjectKey::new(group, kind, "shop", "a"), &object)
        };
        for (group, kind) in [
            ("", "Pod"),
            ("", "Secret"),
            ("", "ServiceAccount"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
            ("apiregistration.k8s.io", "APIService"),
            ("batch", "Job"),
            ("argoproj.io", "Application"),
            ("kustomize.toolkit.fluxcd.io", "Kustomization"),
            ("fluxcd.controlplane.io", "ResourceSet"),
            ("config.porch.kpt.dev", "Repository"),
        ] {
            assert!(is(group, kind, json!({})), "{group} {kind}");
        }
        assert!(is(
            "example.com",
            "Runner",
            json!({"spec": {"jobs": [{"template": {"spec": {"containers": []}}}]}})
        ));
        assert!(!is("", "ConfigMap", json!({"data": {"a": "b"}})));
        assert!(!is("example.com", "Backup", json!({"spec": {"template": "daily"}})));
    }

    #[test]
    fn kinds_are_allowed_by_name() {
        let job = ObjectKey::new("batch", "Job", "shop", "a");
        let allowed =
            |words: &[&str]| is_allowed(&job, &words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert!(allowed(&["job"]) && allowed(&["Secret", "Job.batch"]));
        assert!(!allowed(&[]) && !allowed(&["Job.example.com", "Jobs"]));
    }
}
