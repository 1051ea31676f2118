//! Lookup of apps by the name that a user writes.

use serde_json::json;
use taffrail_apps::{AppList, AppQuery, FindError, Objects, apps, full_name};
use taffrail_status::ActiveRules;

use super::dump::{NOW, holding, release};
use super::tree::kustomization;

fn list() -> AppList {
    let mut named = kustomization("orders", &[]);
    named["metadata"]["annotations"] = json!({"taffrail.dev/app": "checkout"});
    let one = holding("one", &[kustomization("web", &[]), release("shop", "web", 1, "deployed", ""), named]);
    let mut other = kustomization("orders-v2", &[]);
    other["metadata"]["annotations"] = json!({"taffrail.dev/app": "checkout"});
    let two = holding("two", &[kustomization("web", &[]), other]);
    let clusters: [&dyn Objects; 2] = [&one, &two];
    apps(&clusters, &ActiveRules::default(), NOW)
}

fn find(name: &str) -> Result<Vec<String>, FindError> {
    let list = list();
    let found = name.parse::<AppQuery>().unwrap().find(&list)?;
    Ok(found.iter().map(|app| format!("{} in {}", full_name(&app.app), app.app.target)).collect())
}

#[test]
fn a_name_finds_the_app_in_each_of_its_clusters() {
    let both = ["flux-kustomization/shop/web in one", "flux-kustomization/shop/web in two"];
    for name in ["flux-kustomization/web", "flux-kustomization/shop/web", "ks/web", "Kustomization/shop/web"]
    {
        assert_eq!(find(name).unwrap(), both, "{name}");
    }
    assert_eq!(find("helm/web").unwrap(), ["helm/shop/web in one"]);
    assert_eq!(find("shop/orders").unwrap(), ["flux-kustomization/shop/orders in one"]);
    assert_eq!(
        find("checkout").unwrap(),
        ["flux-kustomization/shop/orders in one", "flux-kustomization/shop/orders-v2 in two"],
        "what all clusters call it"
    );
}

/// An author of a declaring object chooses the key that its copies in all clusters share.
#[test]
fn app_annotation_does_not_match_queries_for_another_namespace() {
    let called = |name: &str| {
        let mut later = kustomization("later", &[]);
        later["metadata"]["annotations"] = json!({"taffrail.dev/app": name});
        let one = holding("one", &[later]);
        apps(&[&one as &dyn Objects], &ActiveRules::default(), NOW)
    };
    let found = |list: &AppList, query: AppQuery| query.find(list).is_ok();
    for name in ["team-b/payments", "flux-kustomization/team-b/payments", "ks/team-b/payments", "payments"] {
        for query in ["team-b/payments", "flux-kustomization/team-b/payments", "ks/team-b/payments"] {
            assert!(!found(&called(name), query.parse().unwrap()), "{name} answers for {query}");
        }
    }
    let payments = || "payments".parse::<AppQuery>().unwrap();
    assert!(found(&called("payments"), payments()));
    assert!(found(&called("payments"), payments().within(Some("shop"))));
    assert!(!found(&called("payments"), payments().within(Some("team-b"))));
}

#[test]
fn ambiguous_name_lists_its_candidates() {
    for name in ["web", "shop/web"] {
        let error = find(name).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("'{name}' names 2 apps: flux-kustomization/shop/web, helm/shop/web")
        );
    }
}

#[test]
fn unknown_name_suggests_the_nearest_ones() {
    let nearest = |name: &str| match find(name) {
        Err(FindError::NotFound { nearest, .. }) => nearest,
        other => panic!("{other:?}"),
    };
    assert_eq!(nearest("oders")[0], "flux-kustomization/shop/orders");
    assert_eq!(nearest("shop/wbe"), ["flux-kustomization/shop/web", "helm/shop/web"]);
    assert_eq!(nearest("nothing-like-it"), Vec::<String>::new());
    assert_eq!(nearest("other/web").len(), 2, "the right name in the wrong namespace");
    let of_cluster = nearest("one/orders");
    assert_eq!(of_cluster[0], "one/flux-kustomization/shop/orders", "a cluster in place of the namespace");
}

#[test]
fn malformed_app_names_are_refused() {
    for name in ["", "/", "shop/", "helm/shop/"] {
        assert!(name.parse::<AppQuery>().is_err(), "{name}");
    }
}

#[test]
fn full_names_are_those_that_lists_print() {
    let is_full = |name: &str| name.parse::<AppQuery>().unwrap().is_full();
    for name in [
        "flux-kustomization/flux-system/shop",
        "one/flux-kustomization/flux-system/shop",
        "aws:eks/prod/label/shop/web",
        "helm//web",
    ] {
        assert!(is_full(name), "{name}");
    }
    for name in ["shop", "ks/shop", "flux-system/shop", "ks/flux-system/shop", "helm/web", "deploy/shop"] {
        assert!(!is_full(name), "{name}");
    }
}

/// An author in one namespace can give an app there the key of other apps.
#[test]
fn apps_with_one_key_in_several_namespaces_of_a_cluster_are_ambiguous() {
    let called = |namespace: &str| {
        let mut app = kustomization("orders", &[]);
        app["metadata"]["namespace"] = json!(namespace);
        app["metadata"]["annotations"] = json!({"taffrail.dev/app": "checkout"});
        app
    };
    let one = holding("one", &[called("shop"), called("tenant")]);
    let two = holding("two", &[called("shop"), called("other")]);
    let found = |clusters: &[&dyn Objects], name: &str| {
        let list = apps(clusters, &ActiveRules::default(), NOW);
        let found = name.parse::<AppQuery>().unwrap().find(&list).map(|found| found.len());
        found.map_err(|error| error.to_string())
    };
    assert_eq!(
        found(&[&one], "checkout").unwrap_err(),
        "'checkout' names 2 apps: flux-kustomization/shop/orders, flux-kustomization/tenant/orders"
    );
    assert!(found(&[&one, &two], "checkout").is_err());
    assert_eq!(found(&[&one, &two], "shop/checkout"), Ok(2));
}

/// An author in one namespace can give an app there the name that is the key of another.
#[test]
fn a_name_that_is_also_the_key_of_another_app_is_ambiguous() {
    let at = |namespace: &str, name: &str| {
        let mut app = kustomization(name, &[]);
        app["metadata"]["namespace"] = json!(namespace);
        app
    };
    let mut called = at("team-b", "pay-prod");
    called["metadata"]["annotations"] = json!({"taffrail.dev/app": "payments"});
    let labelled = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "x", "namespace": "team-a", "labels": {"app.kubernetes.io/instance": "payments"}}});
    let payments: AppQuery = "payments".parse().unwrap();
    for (taken, name) in [
        (at("team-a", "payments"), "flux-kustomization/team-a/payments"),
        (labelled, "label/team-a/payments"),
    ] {
        let one = holding("one", &[called.clone(), taken.clone()]);
        let list = apps(&[&one as &dyn Objects], &ActiveRules::default(), NOW);
        let mut names = ["flux-kustomization/team-b/pay-prod", name];
        names.sort_unstable();
        let error = payments.find(&list).unwrap_err().to_string();
        assert_eq!(error, format!("'payments' names 2 apps: {}", names.join(", ")));
        assert_eq!(payments.all(&list).unwrap().len(), 2);
        // A namespace, and the cluster beside the name in full, say which.
        for (query, found) in
            [("team-a/payments", name), ("team-b/payments", "flux-kustomization/team-b/pay-prod")]
        {
            let query: AppQuery = query.parse().unwrap();
            let apps = query.find(&list).unwrap();
            assert_eq!(apps.iter().map(|app| full_name(&app.app)).collect::<Vec<_>>(), [found]);
        }
        // In two clusters, too, one is the other's only by its key.
        let (one, two) = (holding("one", &[called.clone()]), holding("two", &[taken]));
        let list = apps(&[&one as &dyn Objects, &two], &ActiveRules::default(), NOW);
        assert!(payments.find(&list).is_err());
    }
}

#[test]
fn a_package_is_found_by_its_key() {
    let group = |namespace: &str| {
        json!({"apiVersion": "kpt.dev/v1alpha1", "kind": "ResourceGroup",
        "metadata": {"namespace": namespace, "name": "inventory"},
        "spec": {"descriptor": {"type": "shop"}, "resources": []}})
    };
    let found = |objects: &[serde_json::Value]| {
        let one = holding("one", objects);
        let list = apps(&[&one as &dyn Objects], &ActiveRules::default(), NOW);
        "package/shop".parse::<AppQuery>().unwrap().find(&list).map(|apps| apps.len()).ok()
    };
    assert_eq!(found(&[group("shop")]), Some(1));
    assert_eq!(found(&[group("shop"), group("team-a")]), None, "anybody may call theirs so");
}

/// `argo`, `helm` and `release` are words for deliveries, and namespaces may have such names.
#[test]
fn a_namespace_named_like_a_delivery_is_found() {
    let mut own = kustomization("web", &[]);
    own["metadata"]["namespace"] = json!("release");
    let theirs = release("team-a", "web", 1, "deployed", "");
    let found = |objects: &[serde_json::Value], name: &str| {
        let one = holding("one", objects);
        let list = apps(&[&one as &dyn Objects], &ActiveRules::default(), NOW);
        let found = name.parse::<AppQuery>().unwrap().find(&list);
        let names =
            |apps: Vec<&taffrail_apps::App>| apps.iter().map(|app| full_name(&app.app)).collect::<Vec<_>>();
        found.map(names).map_err(|error| error.to_string())
    };
    assert_eq!(
        found(&[own.clone(), theirs.clone()], "release/web").unwrap_err(),
        "'release/web' names 2 apps: flux-kustomization/release/web, helm/team-a/web"
    );
    assert_eq!(found(std::slice::from_ref(&own), "release/web").unwrap(), ["flux-kustomization/release/web"]);
    assert_eq!(found(std::slice::from_ref(&theirs), "release/web").unwrap(), ["helm/team-a/web"]);
    // The names that lists print mean a delivery.
    assert_eq!(found(&[own, theirs], "helm/team-a/web").unwrap(), ["helm/team-a/web"]);
}

/// Apps of one key, as many as a cluster can send, are compared only with those of their place.
#[test]
fn thousands_of_candidates_are_cut_and_found_in_linear_time() {
    const MANY: usize = 20_000;

    let objects: Vec<_> = (0..MANY)
        .map(|at| {
            let mut own = kustomization("web", &[]);
            own["metadata"]["namespace"] = json!(format!("n{at:05}"));
            own
        })
        .collect();
    let one = holding("one", &objects);
    let list = apps(&[&one as &dyn Objects], &ActiveRules::default(), NOW);
    let error = "web".parse::<AppQuery>().unwrap().find(&list).unwrap_err();
    let told = error.to_string();
    assert!(told.starts_with("'web' names 20000 apps: flux-kustomization/n00000/web, "), "{told}");
    assert!(told.ends_with("flux-kustomization/n00019/web and 19980 more"), "{told}");

    let objects: Vec<_> = (0..MANY)
        .map(|at| {
            let mut own = kustomization(&format!("a{at}"), &[]);
            own["metadata"]["annotations"] = json!({"taffrail.dev/app": "checkout"});
            own
        })
        .collect();
    let one = holding("one", &objects);
    let list = apps(&[&one as &dyn Objects], &ActiveRules::default(), NOW);
    let begun = std::time::Instant::now();
    assert_eq!("checkout".parse::<AppQuery>().unwrap().find(&list).unwrap().len(), MANY);
    assert!(begun.elapsed() < std::time::Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn a_full_name_may_end_in_the_home_cluster() {
    let web = ["flux-kustomization/shop/web in two"];
    assert_eq!(find("two/flux-kustomization/shop/web@two").unwrap(), web);
    assert!(find("two/flux-kustomization/shop/web@one").is_err());
    // Contexts may have `@` and slashes in their names.
    for (text, cluster) in [
        ("admin@prod/argo-application/argocd/front", "admin@prod"),
        ("admin@prod/argo-application/argocd/front@admin@dev", "admin@prod"),
        ("arn:aws:eks/prod/argo-application/argocd/front@arn:aws:eks/dev", "arn:aws:eks/prod"),
    ] {
        let query = text.parse::<AppQuery>().unwrap();
        assert_eq!(
            (query.cluster(), query.is_full(), query.to_string()),
            (Some(cluster), true, text.to_owned())
        );
    }
}
