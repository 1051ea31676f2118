//! Tests of discovery in its aggregated and its plain form, and of the resolution of names of kinds.

use serde_json::{Value, json};
use taffrail_cluster::{Discovery, Reason};
use taffrail_testkit::server::{Reply, Request, Server};

use crate::contexts::{LONG, reached};

fn aggregated(items: Value) -> Reply {
    let list =
        json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items });
    Reply::json(200, list.to_string())
}

fn resource(plural: &str, kind: &str, short: &[&str]) -> Value {
    json!({
        "resource": plural, "responseKind": { "group": "", "version": "v1", "kind": kind }, "scope": "Namespaced",
        "singularResource": kind.to_lowercase(), "verbs": ["get", "list", "watch"], "shortNames": short,
        "subresources": [{ "subresource": "status", "responseKind": { "kind": kind }, "verbs": ["get"] }],
    })
}

fn modern(seen: &Request) -> Reply {
    assert!(seen.accept.contains("g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"));
    match seen.path.as_str() {
        "/api" => aggregated(
            json!([{ "metadata": {}, "versions": [{ "version": "v1", "freshness": "Current", "resources": [
            resource("pods", "Pod", &["po"]), resource("events", "Event", &["ev"]),
            { "resource": "namespaces", "responseKind": { "kind": "Namespace" }, "scope": "Cluster", "singularResource": "",
              "verbs": ["list"], "shortNames": ["ns"] },
        ] }] }]),
        ),
        "/apis" => aggregated(json!([
            { "metadata": { "name": "apps" }, "versions": [
                { "version": "v1", "resources": [resource("deployments", "Deployment", &["deploy"])] },
                { "version": "v1beta1", "resources": [
                    resource("deployments", "Deployment", &["deploy"]), resource("olds", "Old", &[]) ] },
                { "version": "v9", "resources": "what?" },
            ] },
            { "metadata": { "name": "events.k8s.io" }, "versions": [
                { "version": "v1", "resources": [resource("events", "Event", &["ev"])] } ] },
            { "metadata": { "name": "metrics.k8s.io" }, "versions": [
                { "version": "v1beta1", "freshness": "Stale" } ] },
            { "metadata": { "name": "broken.example" }, "versions": 7 },
            { "metadata": { "name": "kustomize.toolkit.fluxcd.io" }, "versions": [
                { "version": "v1", "resources": [resource("kustomizations", "Kustomization", &["ks"])] } ] },
            { "metadata": { "name": "other.example" }, "versions": [
                { "version": "v1", "resources": [resource("deploy", "Pod", &["kustomizations", "po"])] } ] },
        ])),
        other => panic!("{other} is not needed"),
    }
}

async fn discover(script: fn(&Request) -> Reply) -> (Discovery, Server) {
    let server = Server::start(script);
    (reached(&server, LONG).await.discover().await.unwrap(), server)
}

#[tokio::test]
async fn two_answers_tell_all_kinds() {
    let (discovery, server) = discover(modern).await;
    assert_eq!(server.requests().len(), 2);
    let deployment = discovery.kind("apps", "Deployment").unwrap();
    assert_eq!(deployment.versions, ["v1", "v1beta1"]);
    assert_eq!(deployment.preferred().api_version(), "apps/v1");
    assert!(deployment.namespaced && deployment.has_status_subresource && deployment.can_list());
    let namespace = discovery.kind("", "Namespace").unwrap();
    assert!(!namespace.namespaced && !namespace.has_status_subresource);
    assert_eq!(namespace.singular, "namespace");
    // A kind that only an older version has is there in that version.
    assert_eq!(discovery.kind("apps", "Old").unwrap().versions, ["v1beta1"]);
    assert!(discovery.kind("kustomize.toolkit.fluxcd.io", "Kustomization").is_some());

    let broken: Vec<&str> = discovery.broken().iter().map(|broken| broken.name.as_str()).collect();
    assert_eq!(broken, ["apps/v9", "metrics.k8s.io/v1beta1", "broken.example"]);
    assert!(discovery.broken()[1].reason.contains("stale"));
}

#[tokio::test]
async fn names_resolve_as_in_kubectl() {
    let (discovery, _server) = discover(modern).await;
    let meant = |typed: &str| {
        discovery
            .resolve(typed)
            .map(|found| format!("{}/{} {}", found.api_version(), found.plural, found.kind))
    };
    let deployment = Some("apps/v1/deployments Deployment".to_owned());
    for typed in [
        "deployments",
        "deployment",
        "Deployment",
        "DEPLOYMENTS",
        "deployments.apps",
        "deploy.apps",
        "Deployment.apps",
        "deployments.v1.apps",
        "Deployment.v1.apps",
        "deployments.ap",
    ] {
        assert_eq!(meant(typed), deployment, "{typed}");
    }
    assert_eq!(meant("deployments.v1beta1.apps").as_deref(), Some("apps/v1beta1/deployments Deployment"));
    // A full name is stronger than a short one, also of an earlier group.
    assert_eq!(meant("deploy").as_deref(), Some("other.example/v1/deploy Pod"));
    assert_eq!(
        meant("kustomizations").as_deref(),
        Some("kustomize.toolkit.fluxcd.io/v1/kustomizations Kustomization")
    );
    assert_eq!(meant("ks").as_deref(), Some("kustomize.toolkit.fluxcd.io/v1/kustomizations Kustomization"));
    // Of two groups with the name, the first in the server's order, and that is the core group.
    assert_eq!(meant("events").as_deref(), Some("v1/events Event"));
    assert_eq!(meant("ev.events.k8s.io").as_deref(), Some("events.k8s.io/v1/events Event"));
    assert_eq!(meant("po").as_deref(), Some("v1/pods Pod"));
    assert_eq!(meant("pods.v1").as_deref(), Some("v1/pods Pod"));
    for typed in ["", "nothing", "deployments.v2.apps", "deployments.batch", "pods.v2", "."] {
        assert_eq!(meant(typed), None, "{typed}");
    }
}

#[tokio::test]
async fn old_servers_are_asked_version_by_version() {
    fn old(seen: &Request) -> Reply {
        let json = |value: Value| Reply::json(200, value.to_string());
        match seen.path.as_str() {
            "/api" => json(json!({ "kind": "APIVersions", "versions": ["v1"] })),
            "/apis" => json(json!({ "kind": "APIGroupList", "groups": [
                { "name": "apps", "versions": [{ "groupVersion": "apps/v1beta1", "version": "v1beta1" },
                    { "groupVersion": "apps/v1", "version": "v1" }],
                  "preferredVersion": { "groupVersion": "apps/v1", "version": "v1" } },
                { "name": "metrics.k8s.io", "versions": [{ "groupVersion": "metrics.k8s.io/v1beta1", "version": "v1beta1" }] },
                { "versions": [] },
            ] })),
            "/api/v1" => json(json!({ "kind": "APIResourceList", "groupVersion": "v1", "resources": [
                { "name": "pods", "singularName": "", "namespaced": true, "kind": "Pod", "verbs": ["list"], "shortNames": ["po"] },
                { "name": "pods/status", "singularName": "", "namespaced": true, "kind": "Pod", "verbs": ["get"] },
                { "name": "pods/eviction", "namespaced": true, "kind": "Eviction", "verbs": ["create"] },
            ] })),
            "/apis/apps/v1" | "/apis/apps/v1beta1" => json(json!({ "kind": "APIResourceList", "resources": [
                { "name": "deployments", "singularName": "", "namespaced": true, "kind": "Deployment", "verbs": ["list"] },
            ] })),
            _ => Reply::status(
                503,
                "ServiceUnavailable",
                "the server is currently unable to handle the request",
            ),
        }
    }
    let (discovery, server) = discover(old).await;
    // Two, four versions, and the one that fails once more.
    assert_eq!(server.requests().len(), 7);
    let kinds: Vec<&str> = discovery.resources().iter().map(|resource| resource.kind.as_str()).collect();
    assert_eq!(kinds, ["Pod", "Deployment"]);
    assert!(discovery.kind("", "Pod").unwrap().has_status_subresource);
    let deployment = discovery.kind("apps", "Deployment").unwrap();
    assert_eq!(
        (deployment.versions.join(" "), deployment.singular.as_str()),
        ("v1 v1beta1".to_owned(), "deployment")
    );
    assert!(!deployment.has_status_subresource);
    let broken: Vec<&str> = discovery.broken().iter().map(|broken| broken.name.as_str()).collect();
    assert_eq!(broken, ["an unknown group", "metrics.k8s.io/v1beta1"]);
    assert!(discovery.broken()[1].reason.contains("unable to handle"), "{:?}", discovery.broken());
}

#[tokio::test]
async fn one_half_that_fails_leaves_the_other() {
    fn half(seen: &Request) -> Reply {
        if seen.path == "/apis" { Reply::status(403, "Forbidden", "no") } else { modern(seen) }
    }
    let (discovery, _server) = discover(half).await;
    assert!(discovery.kind("", "Pod").is_some());
    let broken = &discovery.broken()[0];
    assert_eq!(broken.name, "all groups but the core group");
    assert_eq!([broken.concerns("apps"), broken.concerns("")], [true, false]);

    fn core(seen: &Request) -> Reply {
        if seen.path == "/api" { Reply::status(500, "InternalError", "no") } else { modern(seen) }
    }
    let (discovery, _server) = discover(core).await;
    assert!(discovery.kind("apps", "Deployment").is_some());
    let broken = discovery.broken().iter().find(|broken| broken.name == "v1").unwrap();
    assert_eq!([broken.concerns("apps"), broken.concerns("")], [false, true]);

    let server = Server::start(|_| Reply::status(401, "Unauthorized", "Unauthorized"));
    let error = reached(&server, LONG).await.discover().await.unwrap_err();
    assert_eq!(error.reason(), Reason::Unauthorized);
}
