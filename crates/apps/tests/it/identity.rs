//! Names of objects and apps, in the forms that occur.

use serde_json::{Value, json};
use taffrail_apps::{AppKey, AppRef, Delivery};
use taffrail_object::{Object, ObjectKey};

#[test]
fn object_keys_round_trip() {
    for (text, group, kind, namespace, name) in [
        ("apps/Deployment/shop/web", "apps", "Deployment", "shop", "web"),
        ("/Service/shop/web", "", "Service", "shop", "web"),
        ("/Namespace//shop", "", "Namespace", "", "shop"),
        (
            "rbac.authorization.k8s.io/ClusterRole//system:node",
            "rbac.authorization.k8s.io",
            "ClusterRole",
            "",
            "system:node",
        ),
        (
            "kustomize.toolkit.fluxcd.io/Kustomization/flux-system/shop",
            "kustomize.toolkit.fluxcd.io",
            "Kustomization",
            "flux-system",
            "shop",
        ),
    ] {
        let key = ObjectKey::new(group, kind, namespace, name);
        assert_eq!(key.to_string(), text);
        assert_eq!(text.parse(), Ok(key));
    }
    for text in [
        "",
        "web",
        "Deployment/web",
        "apps/Deployment/shop",
        "apps//shop/web",
        "apps/Deployment/shop/",
        "a/b/c/d/e",
    ] {
        let error = text.parse::<ObjectKey>().unwrap_err().to_string();
        assert!(error.contains(&format!("'{text}'")), "{error}");
    }
}

#[test]
fn deliveries_round_trip() {
    for delivery in Delivery::ALL {
        assert_eq!(delivery.to_string().parse(), Ok(delivery));
    }
    assert!("flux".parse::<Delivery>().unwrap_err().to_string().contains("flux-kustomization"));
}

fn metadata(metadata: Value) -> Value {
    json!({"kind": "Any", "metadata": metadata})
}

/// Argo CD v3.6, `applicationset/controllers`: an Application with the ApplicationSet as its controller.
fn owned(api_version: &str, kind: &str) -> Value {
    let owner =
        json!({"apiVersion": api_version, "kind": kind, "name": "fleet", "uid": "1", "controller": true});
    json!({"kind": "Application", "metadata": {"namespace": "argocd", "name": "shop-edge-1", "ownerReferences": [owner]}})
}

#[test]
fn copies_of_an_app_have_the_same_key() {
    use Delivery::{
        ArgoApplication, ConfigSync, FluxHelmRelease, FluxKustomization, Helm, Kpt, Label, Taffrail,
    };

    let named = json!({"annotations": {"taffrail.dev/app": "shop"}});
    let labelled = json!({"labels": {"taffrail.dev/app": "shop"}});
    let both = json!({"annotations": {"taffrail.dev/app": "shop"}, "labels": {"taffrail.dev/app": "store"}});
    let empty = json!({"annotations": {"taffrail.dev/app": ""}, "labels": {"taffrail.dev/app": "store"}});
    let mut named_and_owned = owned("argoproj.io/v1alpha1", "ApplicationSet");
    named_and_owned["metadata"]["annotations"] = named["annotations"].clone();
    let package = json!({"kind": "ResourceGroup", "metadata": {}, "spec": {"descriptor": {"type": "wiki", "revision": "v3"}}});
    let bare = json!({"kind": "ResourceGroup", "metadata": {}, "spec": {"descriptor": {}}});

    let cases: Vec<(Delivery, &str, &str, Option<Value>, &str)> = vec![
        (
            FluxKustomization,
            "flux-system",
            "shop",
            Some(metadata(json!({}))),
            "flux-kustomization/flux-system/shop",
        ),
        (FluxKustomization, "team-a", "shop", Some(metadata(json!({}))), "flux-kustomization/team-a/shop"),
        (FluxKustomization, "flux-system", "shop-eu", Some(metadata(named.clone())), "shop"),
        (FluxKustomization, "flux-system", "shop-eu", Some(metadata(labelled.clone())), "shop"),
        (FluxKustomization, "flux-system", "shop-eu", Some(metadata(both)), "shop"),
        (FluxKustomization, "flux-system", "shop-eu", Some(metadata(empty)), "store"),
        (
            FluxKustomization,
            "flux-system",
            "shop",
            Some(metadata(json!({"annotations": null}))),
            "flux-kustomization/flux-system/shop",
        ),
        (FluxHelmRelease, "shop", "db", Some(metadata(json!({}))), "flux-helmrelease/shop/db"),
        (FluxHelmRelease, "shop", "db", Some(metadata(labelled)), "shop"),
        (
            ArgoApplication,
            "argocd",
            "guestbook",
            Some(metadata(json!({}))),
            "argo-application/argocd/guestbook",
        ),
        (
            ArgoApplication,
            "argocd",
            "shop-edge-1",
            Some(owned("argoproj.io/v1alpha1", "ApplicationSet")),
            "applicationset/argocd/fleet",
        ),
        (
            ArgoApplication,
            "argocd",
            "shop-edge-1",
            Some(owned("argoproj.io/v1alpha1", "Application")),
            "argo-application/argocd/shop-edge-1",
        ),
        (
            ArgoApplication,
            "argocd",
            "shop-edge-1",
            Some(owned("example.com/v1", "ApplicationSet")),
            "argo-application/argocd/shop-edge-1",
        ),
        (ArgoApplication, "argocd", "shop-edge-1", Some(named_and_owned), "shop"),
        (
            ConfigSync,
            "config-management-system",
            "root-sync",
            Some(metadata(json!({}))),
            "config-sync/config-management-system/root-sync",
        ),
        (ConfigSync, "team-a", "repo-sync", Some(metadata(named)), "shop"),
        (Kpt, "wiki", "inventory", Some(package.clone()), "package/wiki"),
        (ConfigSync, "wiki", "repo-sync", Some(package), "config-sync/wiki/repo-sync"),
        (Kpt, "wiki", "inventory", Some(bare), "kpt/wiki/inventory"),
        (Helm, "data", "pg", Some(metadata(json!({"labels": {"owner": "helm"}}))), "helm/data/pg"),
        (Helm, "data", "pg", Some(metadata(json!({"labels": {"taffrail.dev/app": "pg"}}))), "pg"),
        (Label, "web", "blog", None, "label/web/blog"),
        (Taffrail, "", "declared", None, "taffrail//declared"),
    ];
    assert!(cases.len() >= 20);
    for (delivery, namespace, name, declaring, key) in cases {
        let object = declaring.as_ref().map(|declaring| Object::new(declaring.into()).unwrap());
        let found = AppKey::of(delivery, namespace, name, object.as_ref());
        assert_eq!(found.to_string(), key, "{delivery} {declaring:?}");
    }
}

#[test]
fn app_references_are_formatted_for_sentences() {
    let app = |namespace: &str| AppRef {
        home: "hub".to_owned(),
        target: "edge".to_owned(),
        delivery: Delivery::ArgoApplication,
        namespace: namespace.to_owned(),
        name: "shop".to_owned(),
    };
    assert_eq!(app("argocd").to_string(), "argo-application argocd/shop");
    assert_eq!(app("").to_string(), "argo-application shop");
}
