//! Whose is an object: strong claims before weak ones, and what labels do not claim.

use serde_json::{Value, json};
use taffrail_apps::Delivery;

use super::dump::{apps_of, holding, release};

fn labelled(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {"namespace": "shop", "name": name, "labels": {"app.kubernetes.io/instance": "shop"}},
    })
}

/// The objects of the label group of `objects`.
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
fn labels_do_not_claim_what_others_own_or_made() {
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
        (with("labels", "app.kubernetes.io/managed-by", "Helm"), false),
        (with("labels", "kustomize.toolkit.fluxcd.io/name", "shop"), false),
        (with("labels", "helm.toolkit.fluxcd.io/name", "shop"), false),
        (with("labels", "argocd.argoproj.io/instance", "shop"), false),
        (with("annotations", "argocd.argoproj.io/tracking-id", "shop:/ConfigMap:shop/other"), false),
        (with("annotations", "meta.helm.sh/release-name", "shop"), false),
        (with("annotations", "config.k8s.io/owning-inventory", "1"), false),
        (with("annotations", "configmanagement.gke.io/managed", "enabled"), false),
        (with("annotations", "configmanagement.gke.io/managed", "disabled"), true),
        (with("annotations", "helm.sh/hook", "test"), false),
        (with("annotations", "argocd.argoproj.io/hook", "PreSync"), false),
        (with("annotations", "example.com/hook", "no"), true),
        (owned(true), false),
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

#[test]
fn a_group_is_one_instance_in_one_namespace() {
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
fn an_object_of_several_apps_is_shown_in_each_and_reported_once() {
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n";
    let objects = [
        labelled("ConfigMap", "a"),
        release("one", "x", 1, "deployed", manifest),
        release("two", "y", 1, "deployed", manifest),
        // The same object twice in one app is one.
        release("three", "z", 1, "deployed", &format!("{manifest}---\n{manifest}")),
    ];
    let list = apps_of(&holding("prod", &objects));
    assert_eq!(list.apps.iter().map(|app| app.counts.total()).collect::<Vec<_>>(), [1, 1, 1]);
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
