//! Ownership of objects: strong claims before weak ones, and objects that labels do not claim.
//!
//! The marks are those that each tool documents: Helm v3.22 `pkg/action/validate.go` (managed-by and release-name), Flux
//! kustomize-controller `186fb3b` and helm-controller `0f61a86` (name and namespace), Argo CD v3.6
//! `docs/user-guide/resource_tracking.md`, kpt `23c57d7` and Config Sync `bd5fadf` (owning-inventory and managed).

use serde_json::{Value, json};
use taffrail_apps::{AppLabel, AppLabels, Delivery, apps_by};
use taffrail_status::ActiveRules;

use super::dump::{NOW, apps_of, holding, release};

fn labelled(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {"namespace": "shop", "name": name, "labels": {"app.kubernetes.io/instance": "shop"}},
    })
}

/// Returns the objects of the label app of `objects`.
#[track_caller]
fn claimed(objects: &[Value]) -> Vec<String> {
    let list = apps_of(&holding("prod", objects));
    let mut group = list.apps.iter().filter(|app| app.app.delivery == Delivery::Label);
    let names =
        group.next().map(|app| app.resources.iter().map(|resource| resource.key.name.clone()).collect());
    assert_eq!(group.count(), 0);
    names.unwrap_or_default()
}

#[test]
fn label_apps_do_not_claim_controlled_objects() {
    let with = |place: &str, key: &str, value: &str| {
        let mut object = labelled("ConfigMap", "other");
        object["metadata"][place][key] = json!(value);
        object
    };
    let owned = |controller: bool| {
        let mut object = labelled("ConfigMap", "other");
        object["metadata"]["ownerReferences"] =
            json!([{"kind": "Thing", "name": "a", "uid": "1", "controller": controller}]);
        object
    };
    let of_set = |name: &str, group: &str| {
        let mut object = labelled("PersistentVolumeClaim", name);
        object["apiVersion"] = json!(group);
        object
    };
    for (object, is_claimed) in [
        (labelled("ConfigMap", "other"), true),
        (with("labels", "app.kubernetes.io/managed-by", "kustomize"), true),
        (with("labels", "app.kubernetes.io/managed-by", "Helm"), true),
        (with("labels", "kustomize.toolkit.fluxcd.io/name", "shop"), true),
        (with("labels", "helm.toolkit.fluxcd.io/name", "shop"), true),
        (with("labels", "argocd.argoproj.io/instance", "shop"), true),
        (with("annotations", "argocd.argoproj.io/tracking-id", "shop:/ConfigMap:shop/other"), true),
        (with("annotations", "meta.helm.sh/release-name", "shop"), true),
        (with("annotations", "config.k8s.io/owning-inventory", "1"), true),
        (with("annotations", "configmanagement.gke.io/managed", "enabled"), true),
        (with("annotations", "configmanagement.gke.io/managed", "disabled"), true),
        (with("annotations", "helm.sh/hook", "test"), true),
        (with("annotations", "argocd.argoproj.io/hook", "PreSync"), true),
        (with("annotations", "example.com/hook", "no"), true),
        (owned(true), true),
        (owned(false), true),
        (labelled("Endpoints", "other"), false),
        (of_set("data-db-0", "v1"), false),
        (of_set("data-db-12", "v1"), false),
        (of_set("data-db-x", "v1"), true),
        (of_set("data-db-", "v1"), true),
        (of_set("more-data-db-0", "v1"), true),
        (of_set("data-db-0", "example.com/v1"), true),
    ] {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": "shop", "name": "db"},
            "spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]},
        });
        let found = claimed(&[labelled("Secret", "own"), set, object.clone()]);
        assert_eq!(found.len(), 1 + usize::from(is_claimed), "{object}");
    }
}

/// Labels that controllers write on Pods stay on them when the owner is deleted with `--cascade=orphan`.
#[test]
fn orphaned_pods_with_controller_labels_are_not_claimed() {
    for (label, is_claimed) in [
        ("pod-template-hash", false),
        ("controller-revision-hash", false),
        ("controller-uid", false),
        ("tier", true),
    ] {
        let mut pod = labelled("Pod", "left");
        pod["metadata"]["labels"][label] = json!("x");
        assert_eq!(claimed(&[labelled("Secret", "own"), pod]).len(), 1 + usize::from(is_claimed), "{label}");
    }
}

/// `app.kubernetes.io/part-of` is the name of the larger whole in Kubernetes' recommended labels
/// (docs/concepts/overview/working-with-objects/common-labels); Argo CD's own manifests carry nothing else.
#[test]
fn the_instance_label_takes_precedence_over_part_of() {
    let with = |name: &str, labels: Value| {
        let mut object = labelled("ConfigMap", name);
        object["metadata"]["labels"] = labels;
        object
    };
    let objects = [
        with("a", json!({"app.kubernetes.io/instance": "cache", "app.kubernetes.io/part-of": "shop"})),
        with("b", json!({"app.kubernetes.io/part-of": "shop"})),
        with("c", json!({"app.kubernetes.io/instance": "shop"})),
        with("d", json!({"app.kubernetes.io/instance": "", "app.kubernetes.io/part-of": "shop"})),
        with("e", json!({"app.kubernetes.io/part-of": "shop", "kustomize.toolkit.fluxcd.io/name": "shop"})),
        with("f", json!({"app.kubernetes.io/name": "shop", "app": "till"})),
    ];
    let cluster = holding("prod", &objects);
    let rows = |labels: &AppLabels| -> Vec<(String, usize)> {
        let list = apps_by(labels, &[&cluster], &ActiveRules::default(), NOW);
        list.apps.iter().map(|app| (app.app.name.clone(), app.counts.total())).collect()
    };
    assert_eq!(rows(&AppLabels::default()), [("cache".to_owned(), 1), ("shop".to_owned(), 4)]);
    let own = |labels: &[&str]| {
        AppLabels::from(labels.iter().map(|label| label.parse().unwrap()).collect::<Vec<_>>())
    };
    assert_eq!(rows(&own(&["app"])), [("till".to_owned(), 1)]);
    assert_eq!(
        rows(&own(&["app.kubernetes.io/part-of", "app"])),
        [("shop".to_owned(), 4), ("till".to_owned(), 1)]
    );
    assert_eq!(own(&[]), AppLabels::default());
}

#[test]
fn app_label_keys_follow_the_rules_of_the_api() {
    for good in ["app", "app.kubernetes.io/name", "a", "A-b_c.d", "example.com/x"] {
        assert!(good.parse::<AppLabel>().is_ok(), "{good}");
    }
    let long = "a".repeat(64);
    for bad in
        ["", "app=shop", "app,team", "/app", "app/", "a/b/c", "-a", "a-", "!app", "a b", "ä", "a_b/c", &*long]
    {
        let error = bad.parse::<AppLabel>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("'{bad}' is not a label")), "{error}");
    }
}

#[test]
fn a_label_app_is_one_instance_in_one_namespace() {
    let mut elsewhere = labelled("ConfigMap", "b");
    elsewhere["metadata"]["namespace"] = json!("wiki");
    let mut unlabelled = labelled("ConfigMap", "c");
    unlabelled["metadata"]["labels"] = json!({"app.kubernetes.io/instance": ""});
    let mut cluster_wide = labelled("PersistentVolume", "d");
    cluster_wide["metadata"].as_object_mut().unwrap().remove("namespace");
    let objects = [labelled("ConfigMap", "a"), elsewhere, unlabelled, cluster_wide];
    let list = apps_of(&holding("prod", &objects));
    let rows: Vec<_> = list.apps.iter().map(|app| (&*app.app.namespace, &*app.app.name)).collect();
    assert_eq!(rows, [("shop", "shop"), ("wiki", "shop")]);
}

#[test]
fn an_object_claimed_by_several_apps_is_shown_in_each_and_reported_once() {
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n";
    let objects = [
        labelled("ConfigMap", "a"),
        release("one", "x", 1, "deployed", manifest),
        release("two", "y", 1, "deployed", manifest),
        // The same object twice in one app is one.
        release("three", "z", 1, "deployed", &format!("{manifest}---\n{manifest}")),
    ];
    let list = apps_of(&holding("prod", &objects));
    assert_eq!(list.apps.iter().map(|app| app.counts.total()).collect::<Vec<_>>(), [1, 1, 1, 1]);
    let [error] = list.errors.as_slice() else { panic!("{:?}", list.errors) };
    assert_eq!(
        error.error.message,
        "/ConfigMap/shop/a is claimed by helm one/x, helm three/z and helm two/y"
    );
    assert_eq!(
        (error.error.scope.to_string(), &*error.error.reason),
        ("/ConfigMap/shop/a".to_owned(), "Overlap")
    );
}

#[test]
fn overlap_reports_are_limited_per_namespace() {
    let group = |namespace: &str, name: &str, resources: Vec<Value>| {
        json!({"apiVersion": "kpt.dev/v1alpha1", "kind": "ResourceGroup",
            "metadata": {"namespace": namespace, "name": name}, "spec": {"resources": resources}})
    };
    let entry = |kind: &str, namespace: &str, number: usize| {
        let group = if kind == "Deployment" { "apps" } else { "" };
        json!({"group": group, "kind": kind, "namespace": namespace, "name": format!("c{number}")})
    };
    let mut objects = Vec::new();
    for name in ["a", "b"] {
        objects.push(group("tenant", name, (0..200).map(|it| entry("ConfigMap", "tenant", it)).collect()));
        objects.push(group("shop", name, vec![entry("Deployment", "shop", 0)]));
    }
    let list = apps_of(&holding("prod", &objects));
    let told: Vec<&str> =
        list.errors.iter().filter(|it| it.error.reason == "Overlap").map(|it| &*it.error.message).collect();
    assert_eq!(told.len(), 101);
    assert!(
        told.iter().any(|message| message.starts_with("apps/Deployment/shop/c0 is claimed by")),
        "{told:?}"
    );
    assert!(told.iter().any(|message| message.starts_with("101 more objects")), "{told:?}");
}

/// Whoever may write into one namespace can list invented objects of any other one.
#[test]
fn invented_overlaps_displace_none_of_another_author() {
    let kustomization = |namespace: &str, name: &str, objects: Vec<String>| {
        let entries: Vec<_> = objects.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": namespace, "name": name, "generation": 1},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}},
            "status": {"inventory": {"entries": entries}}})
    };
    let invented = || (0..200).map(|at| format!("shop_aaa{at}__ConfigMap")).collect::<Vec<_>>();
    let mut objects = vec![labelled("ConfigMap", "web")];
    for name in ["one", "two"] {
        objects.push(kustomization("shop", name, vec!["shop_web__ConfigMap".to_owned()]));
        objects.push(kustomization("tenant", name, invented()));
    }
    let list = apps_of(&holding("prod", &objects));
    let told: Vec<&str> =
        list.errors.iter().filter(|it| it.error.reason == "Overlap").map(|it| &*it.error.message).collect();
    let honest =
        "/ConfigMap/shop/web is claimed by flux-kustomization shop/one and flux-kustomization shop/two";
    assert!(told.contains(&honest), "{told:?}");
    assert!(
        told.len() <= 12,
        "a set of authors has 10 overlaps, and the number of the others: {}",
        told.len()
    );
    assert!(told.contains(&"190 more objects are claimed by several apps"), "{told:?}");
}

#[test]
fn an_app_that_names_too_many_objects_is_unknown_and_says_so() {
    let of = |number: usize| {
        let entries: Vec<_> = (0..number)
            .map(|at| serde_json::json!({"id": format!("shop_c{at}__ConfigMap"), "v": "v1"}))
            .collect();
        let own = serde_json::json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": "team-a", "name": "grab", "generation": 1},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}], "inventory": {"entries": entries},
            },
        });
        let list = super::dump::apps_of(&super::dump::holding("prod", &[own]));
        let errors: Vec<String> = list.errors.iter().map(|error| error.error.message.clone()).collect();
        (list.apps[0].resources.len(), list.apps[0].health, errors)
    };
    let missing = taffrail_status::Status::NotFound;
    assert_eq!(of(5_000), (5_000, missing, Vec::new()));
    let why = "Kustomization team-a/grab names more than 5000 objects: only the first 5000 are judged";
    assert_eq!(of(13_000), (5_000, missing, vec![why.to_owned()]));
}
