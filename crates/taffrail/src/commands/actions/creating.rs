//! What the action of a cluster may make.
//!
//! It runs with the rights of whoever asks, and is written by whoever may write into one namespace.

use serde_json::Value;
use taffrail_object::ObjectKey;

/// The kinds that a script may make unasked, by group. What others bring about, only their controllers know.
const HARMLESS: [(&str, &str); 3] = [("", "ConfigMap"), ("", "Event"), ("events.k8s.io", "Event")];

/// The start of the names of ConfigMaps that an Argo CD obeys.
const OF_ARGO: &str = "argocd-";

/// Returns if an object may run code or grant rights, so that it is made only where the user allows its kind by name.
pub(super) fn is_risky(key: &ObjectKey, object: &Value) -> bool {
    let is_harmless = HARMLESS.contains(&(key.group.as_str(), key.kind.as_str()));
    // Tools choose by labels which ConfigMaps they obey: releases of Helm, inventories, dashboards.
    let labels = object.pointer("/metadata/labels").is_some_and(|labels| !labels.is_null());
    !is_harmless || labels || key.name.starts_with(OF_ARGO)
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
    fn all_but_a_plain_config_map_and_an_event_is_risky() {
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
            // Of these it is not known what their controllers do for whoever makes one.
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
