//! The objects that an action script of a cluster may create.
//!
//! Such a script runs with the rights of the user, but anyone who may write to one namespace may have written it.

use serde_json::Value;
use taffrail_object::ObjectKey;

/// The kinds, by group, that a script may create without `--allow-create`. The effects of other kinds depend on their
/// controllers.
const HARMLESS: [(&str, &str); 3] = [("", "ConfigMap"), ("", "Event"), ("events.k8s.io", "Event")];

/// Prefix of the names of ConfigMaps that configure an Argo CD.
const OF_ARGO: &str = "argocd-";

/// Returns true if an object may run code or grant rights, so that it needs `--allow-create` with its kind.
pub(super) fn is_risky(key: &ObjectKey, object: &Value) -> bool {
    let is_harmless = HARMLESS.contains(&(key.group.as_str(), key.kind.as_str()));
    // Tools select ConfigMaps by label: Helm releases, inventories, dashboards.
    let labels = object.pointer("/metadata/labels").is_some_and(|labels| !labels.is_null());
    !is_harmless || labels || key.name.starts_with(OF_ARGO)
}

/// Returns true if one of the words, `Kind` or `Kind.group`, names the kind.
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
    fn only_plain_config_maps_and_events_are_harmless() {
        let is = |group: &str, kind: &str, name: &str, object: Value| {
            is_risky(&ObjectKey::new(group, kind, "shop", name), &object)
        };
        for (group, kind) in [
            ("", "Pod"),
            ("", "Secret"),
            ("", "ServiceAccount"),
            ("", "Endpoints"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("batch", "Job"),
            ("argoproj.io", "Application"),
            ("kustomize.toolkit.fluxcd.io", "Kustomization"),
            // The effects of these kinds depend on controllers that Taffrail does not know.
            ("serving.knative.dev", "Service"),
            ("external-secrets.io", "ExternalSecret"),
            ("networking.k8s.io", "NetworkPolicy"),
            ("example.com", "ConfigMap"),
            ("example.com", "Backup"),
        ] {
            assert!(is(group, kind, "a", json!({})), "{group} {kind}");
        }
        assert!(!is("", "ConfigMap", "a", json!({"data": {"a": "b"}})));
        assert!(!is("", "Event", "a", json!({})) && !is("events.k8s.io", "Event", "a", json!({})));
        assert!(is("", "ConfigMap", "argocd-cm", json!({})));
        assert!(is("", "ConfigMap", "a", json!({"metadata": {"labels": {"owner": "helm"}}})));
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
