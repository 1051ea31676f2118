//! Tests that kinds have the names and the scope that the API server gives them.

use taffrail_object::kinds::{ALL_VERBS, built_in, is_namespaced, listable, names_kind, plural};
use taffrail_object::protobuf;

#[test]
fn every_line_of_the_kinds_table_is_parsed() {
    assert_eq!(built_in().len(), include_str!("../../src/kinds.tsv").lines().count());
    let deployment = built_in().iter().find(|it| it.kind == "Deployment").unwrap();
    assert_eq!((deployment.group, deployment.version, deployment.namespaced), ("apps", "v1", true));
    assert_eq!((deployment.plural, deployment.singular), ("deployments", "deployment"));
    assert_eq!((&*deployment.verbs, &*deployment.short_names), (&ALL_VERBS[..], &["deploy"][..]));
    assert_eq!(
        (&*deployment.categories, &*deployment.subresources),
        (&["all"][..], &["scale", "status"][..])
    );
}

#[test]
fn all_kinds_except_those_of_other_modules_have_a_protobuf_schema() {
    let without = built_in()
        .iter()
        .filter(|it| protobuf::schema::of_kind(it.group, it.version, it.kind).is_none())
        .map(|it| it.kind);
    assert_eq!(without.collect::<Vec<_>>(), ["APIService", "CustomResourceDefinition"]);
}

#[test]
fn built_in_kinds_have_the_scope_of_kubernetes() {
    for (group, kind) in [
        ("", "ComponentStatus"),
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("authentication.k8s.io", "TokenReview"),
        ("authorization.k8s.io", "SubjectAccessReview"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("networking.k8s.io", "IPAddress"),
        ("networking.k8s.io", "IngressClass"),
        ("node.k8s.io", "RuntimeClass"),
        ("policy", "PodSecurityPolicy"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "VolumeAttributesClass"),
    ] {
        assert_eq!(is_namespaced(group, kind), Some(false), "{group}/{kind}");
    }
    // Unknown kinds are of a later server, and most kinds are namespaced.
    for (group, kind) in [
        ("", "Pod"),
        ("", "A"),
        ("", "Zzz"),
        ("apps", "Deployment"),
        ("apps", "Zzz"),
        ("batch", "A"),
        ("events.k8s.io", "Event"),
        ("extensions", "Ingress"),
        ("storage.k8s.io", "CSIStorageCapacity"),
        ("storage.k8s.io", "Zzz"),
    ] {
        assert_eq!(is_namespaced(group, kind), Some(true), "{group}/{kind}");
    }
    for group in ["app", "apps.example.com", "example.com", "storage.k8s.io.example.com", "a", "z"] {
        assert_eq!(is_namespaced(group, "Deployment"), None, "{group}");
    }
    assert_eq!(built_in().iter().filter(|it| !it.namespaced).count(), 32);
}

#[test]
fn each_kind_is_listable_in_one_group() {
    let mut kinds: Vec<&str> = listable().map(|(_, kind)| kind).collect();
    assert!(kinds.contains(&"ClusterTrustBundle") && !kinds.contains(&"TokenReview"));
    let all = kinds.len();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), all);
}

#[test]
fn plurals_are_those_of_the_api_server() {
    for kind in built_in() {
        assert_eq!(plural(kind.kind).to_lowercase(), kind.plural);
    }
    for (kind, several) in
        [("Gateway", "Gateways"), ("Mailbox", "Mailboxes"), ("Patch", "Patches"), ("", "s")]
    {
        assert_eq!(plural(kind), several);
    }
}

#[test]
fn words_match_kinds_as_in_kubectl() {
    for (word, group, kind) in [
        ("deployment", "apps", "Deployment"),
        ("Deployments", "apps", "Deployment"),
        ("deploy", "apps", "Deployment"),
        ("DEPLOY", "extensions", "Deployment"),
        ("deployment.apps", "apps", "Deployment"),
        ("deployments.v1.apps", "apps", "Deployment"),
        ("deploy.v1beta2.apps", "apps", "Deployment"),
        ("pods.v1", "", "Pod"),
        ("pods.", "", "Pod"),
        ("kustomization.kustomize", "kustomize.toolkit.fluxcd.io", "Kustomization"),
        ("ks.v1.kustomize", "kustomize.toolkit.fluxcd.io", "Kustomization"),
        ("widgets.v1", "v1.example.com", "Widget"),
        ("ingresses", "networking.k8s.io", "Ingress"),
        ("services", "", "Service"),
        ("svc", "serving.knative.dev", "Service"),
        ("networkpolicies", "networking.k8s.io", "NetworkPolicy"),
        ("gateways", "gateway.networking.k8s.io", "Gateway"),
        ("gatewaies", "gateway.networking.k8s.io", "Gateway"),
        ("storageclasses", "storage.k8s.io", "StorageClass"),
        ("endpoints", "", "Endpoints"),
        ("ep", "", "Endpoints"),
        ("crds", "apiextensions.k8s.io", "CustomResourceDefinition"),
        ("vap", "admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("app", "argoproj.io", "Application"),
        ("app", "kappctrl.k14s.io", "App"),
    ] {
        assert!(names_kind(word, group, kind), "{word}: {group}/{kind}");
    }
    for (word, group, kind) in [
        ("pods", "", "PodTemplate"),
        ("deploy", "apps", "DeployTarget"),
        ("deployment.app", "apps", "Deployment"),
        ("deployment.apps.example.com", "apps", "Deployment"),
        ("deployments.v1.batch", "apps", "Deployment"),
        ("deployments.v1", "apps", "Deployment"),
        ("deployments.", "apps", "Deployment"),
        ("deployments.vv1.apps", "apps", "Deployment"),
        ("", "", "Pod"),
        ("p", "", "Pod"),
        ("é", "", "x"),
        ("xs", "", "é"),
    ] {
        assert!(!names_kind(word, group, kind), "{word}: {group}/{kind}");
    }
}
