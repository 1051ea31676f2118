//! Claims and marks: a claim on other namespaces and clusters needs a mark on the object.
//!
//! The marks are those that each tool writes itself: Flux kustomize-controller and helm-controller (labels of the owner), Helm
//! v3.22 `pkg/action/validate.go`, Argo CD v3.6 `util/argo/resource_tracking.go` (which writes the namespace of the destination
//! for objects that have none), kpt and Config Sync `pkg/declared` (`ResourceManager`).

use serde_json::{Value, json};
use taffrail_apps::{App, AppList, Objects, Snapshot, SyncState, apps};
use taffrail_object::ObjectKey;
use taffrail_status::assess::Options;
use taffrail_status::{ActiveRules, Status, Trust};

use super::dump::{NOW, apps_of, gzip, holding, in_config_map, release, storage};

/// A ConfigMap of the app `web` by its label, in the namespace `shop`.
fn settings() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "shop", "name": "web", "labels": {"app.kubernetes.io/instance": "web"}},
    })
}

fn marked(place: &str, marks: &[(&str, &str)]) -> Value {
    let mut object = settings();
    for (key, value) in marks {
        object["metadata"][place][key] = json!(value);
    }
    object
}

/// Lists each row with its objects; a `?` follows unconfirmed ones.
fn rows(list: &AppList) -> Vec<String> {
    let row = |app: &taffrail_apps::App| {
        let told = app.resources.iter().map(|resource| {
            let doubt = if resource.unconfirmed { "?" } else { "" };
            format!("{}{doubt}", resource.key.name)
        });
        let name = format!("{} {}/{}", app.app.delivery, app.app.namespace, app.app.name);
        format!("{name}: {}", told.collect::<Vec<_>>().join(" "))
    };
    list.apps.iter().map(row).collect()
}

#[track_caller]
fn check(objects: &[Value], expected: &[&str]) {
    assert_eq!(rows(&apps_of(&holding("prod", objects))), expected, "{objects:?}");
}

fn kustomization(namespace: &str, entries: &[&str]) -> Value {
    let entries: Vec<Value> = entries.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": namespace, "name": "all", "generation": 1},
        "status": {"observedGeneration": 1, "inventory": {"entries": entries},
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": 1}]},
    })
}

fn application(namespace: &str, name: &str, resources: &Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
        "status": {"sync": {"status": "Synced", "revision": "1"}, "resources": resources},
    })
}

fn web() -> Value {
    json!([{"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "web"}])
}

fn group(namespace: &str, name: &str, id: &str) -> Value {
    json!({
        "apiVersion": "kpt.dev/v1alpha1", "kind": "ResourceGroup",
        "metadata": {"namespace": namespace, "name": name, "labels": {"cli-utils.sigs.k8s.io/inventory-id": id}},
        "spec": {"resources": [{"group": "", "kind": "ConfigMap", "namespace": "shop", "name": "web"}]},
    })
}

const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n";

#[test]
fn a_release_claims_marked_objects_in_other_namespaces() {
    let forged = in_config_map(release("tenant", "evil", 1, "deployed", MANIFEST));
    check(&[settings(), forged.clone()], &["label shop/web: web", "helm tenant/evil: web?"]);
    let of = |name: &str, namespace: &str| {
        let place = [("meta.helm.sh/release-name", name), ("meta.helm.sh/release-namespace", namespace)];
        marked("annotations", &place)
    };
    check(&[of("evil", "tenant"), forged.clone()], &["helm tenant/evil: web"]);
    check(&[of("evil", "shop"), forged.clone()], &["label shop/web: web", "helm tenant/evil: web?"]);
    check(&[of("web", "tenant"), forged], &["label shop/web: web", "helm tenant/evil: web?"]);
    // In its own namespace it could have marked the object as well: so does Helm before 3.2 count there.
    check(&[settings(), release("shop", "old", 1, "deployed", MANIFEST)], &["helm shop/old: web"]);
}

#[test]
fn a_release_is_named_by_its_storage() {
    let mut payload = json!({
        "name": "web", "namespace": "shop", "version": 1, "manifest": MANIFEST,
        "info": {"status": "deployed"}, "chart": {"metadata": {"name": "x", "version": "1.0.0"}},
    });
    let stored = |payload: &Value| {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(gzip(payload.to_string().as_bytes()));
        in_config_map(storage(
            "tenant",
            "evil",
            1,
            &json!({
                "release": base64::engine::general_purpose::STANDARD.encode(text),
            }),
        ))
    };
    let own = marked(
        "annotations",
        &[("meta.helm.sh/release-name", "web"), ("meta.helm.sh/release-namespace", "shop")],
    );
    check(&[own.clone(), stored(&payload)], &["label shop/web: web", "helm tenant/evil: web?"]);
    payload["manifest"] = json!("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n");
    // What has no namespace is in that of the storage.
    check(&[own, stored(&payload)], &["label shop/web: web", "helm tenant/evil: web"]);
}

#[test]
fn a_kustomization_claims_objects_with_its_flux_labels() {
    let of = |name: &str, namespace: &str| {
        let place = [
            ("kustomize.toolkit.fluxcd.io/name", name),
            ("kustomize.toolkit.fluxcd.io/namespace", namespace),
        ];
        marked("labels", &place)
    };
    let all = kustomization("tenant", &["shop_web__ConfigMap"]);
    check(&[of("all", "tenant"), all.clone()], &["flux-kustomization tenant/all: web"]);
    // `ssa: IfNotPresent` leaves an object as it was, and so does a forgery.
    for other in [settings(), of("all", "flux-system"), of("other", "tenant")] {
        check(&[other, all.clone()], &["label shop/web: web", "flux-kustomization tenant/all: web?"]);
    }
    check(
        &[settings(), kustomization("shop", &["shop_web__ConfigMap"])],
        &["flux-kustomization shop/all: web"],
    );
}

#[test]
fn a_flux_helm_release_claims_objects_with_its_flux_labels() {
    let declaring = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"namespace": "apps", "name": "web", "generation": 1},
        "spec": {"targetNamespace": "shop", "releaseName": "front"},
        "status": {"observedGeneration": 1, "inventory": {"entries": [{"id": "shop_web__ConfigMap", "v": "v1"}]}},
    });
    let own = [("helm.toolkit.fluxcd.io/name", "web"), ("helm.toolkit.fluxcd.io/namespace", "apps")];
    let helm = [("meta.helm.sh/release-name", "front"), ("meta.helm.sh/release-namespace", "shop")];
    check(&[marked("labels", &own), declaring.clone()], &["flux-helmrelease apps/web: web"]);
    // The name of the release and its namespace are those that the HelmRelease chose.
    for other in [settings(), marked("annotations", &helm)] {
        check(&[other, declaring.clone()], &["flux-helmrelease apps/web: web?", "label shop/web: web"]);
    }
    // Another HelmRelease's mark is stronger than the name of a release.
    let mut both = marked("annotations", &helm);
    both["metadata"]["labels"]["helm.toolkit.fluxcd.io/name"] = json!("web");
    both["metadata"]["labels"]["helm.toolkit.fluxcd.io/namespace"] = json!("other");
    check(&[both, declaring], &["flux-helmrelease apps/web: web?", "label shop/web: web"]);
}

/// The release of another namespace is shown unless helm-controller marked its objects for this HelmRelease.
#[test]
fn a_flux_helm_release_does_not_hide_a_foreign_release() {
    let declaring = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"namespace": "tenant", "name": "evil", "generation": 1},
        "spec": {"storageNamespace": "shop", "targetNamespace": "shop", "releaseName": "web"},
        "status": {"observedGeneration": 1, "inventory": {"entries": []}},
    });
    let stored = release("shop", "web", 1, "deployed", MANIFEST);
    check(
        &[settings(), declaring.clone(), stored.clone()],
        &["helm shop/web: web", "flux-helmrelease tenant/evil: "],
    );
    let own = [("helm.toolkit.fluxcd.io/name", "evil"), ("helm.toolkit.fluxcd.io/namespace", "tenant")];
    let mut honest = declaring;
    honest["status"]["inventory"]["entries"] = json!([{"id": "shop_web__ConfigMap", "v": "v1"}]);
    check(&[marked("labels", &own), honest, stored], &["flux-helmrelease tenant/evil: web"]);
}

/// Once only a limited number of namespaces was read, in the order of their names.
#[test]
fn many_foreign_helm_releases_do_not_displace_the_marked_one() {
    let claim = |namespace: &str, name: &str, target: &str| {
        let spec = json!({"storageNamespace": "shop", "targetNamespace": target, "releaseName": "web"});
        let status = json!({"inventory": {"entries": [{"id": "shop_web__ConfigMap", "v": "v1"}]}});
        helm_release(namespace, name, &spec, &status)
    };
    let own = [("helm.toolkit.fluxcd.io/name", "web"), ("helm.toolkit.fluxcd.io/namespace", "flux-system")];
    let mut objects: Vec<Value> =
        (0..12).map(|it| claim("tenant", &format!("r{it}"), &format!("a{it:02}"))).collect();
    objects.extend([claim("flux-system", "web", "shop"), marked("labels", &own)]);
    objects.push(release("shop", "web", 1, "deployed", MANIFEST));
    let rows = rows(&apps_of(&holding("prod", &objects)));
    assert!(!rows.iter().any(|row| row.starts_with("helm shop/web")), "{rows:?}");
}

#[test]
fn an_application_claims_objects_tracked_for_it() {
    let tracking = |id: &str| marked("annotations", &[("argocd.argoproj.io/tracking-id", id)]);
    let own = application("argocd", "front", &web());
    for id in ["front:/ConfigMap:shop/web", "argocd_front:/ConfigMap:shop/web"] {
        check(&[tracking(id), own.clone()], &["argo-application argocd/front: web"]);
    }
    // Copied from another object, of another app, or not yet applied.
    for id in ["front:/ConfigMap:shop/other", "front:/Secret:shop/web", "back:/ConfigMap:shop/web", "front"] {
        check(&[tracking(id), own.clone()], &["argo-application argocd/front: web?", "label shop/web: web"]);
    }
    check(&[settings(), own], &["argo-application argocd/front: web?", "label shop/web: web"]);
    // Label tracking.
    check(&[settings(), application("argocd", "web", &web())], &["argo-application argocd/web: web"]);
    let mut two = settings();
    two["metadata"]["annotations"] = json!({"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/other"});
    check(
        &[two, application("argocd", "web", &web())],
        &["argo-application argocd/web: web?", "label shop/web: web"],
    );
    // Outside of the namespace of Argo CD the name of the namespace comes first.
    let mut tenants = application("tenant", "web", &web());
    tenants["status"]["controllerNamespace"] = json!("argocd");
    check(&[settings(), tenants.clone()], &["label shop/web: web", "argo-application tenant/web: web?"]);
    let mut of_tenant = settings();
    of_tenant["metadata"]["labels"]["app.kubernetes.io/instance"] = json!("tenant_web");
    check(&[of_tenant, tenants], &["argo-application tenant/web: web"]);
}

#[test]
fn a_configured_tracking_label_counts() {
    let settings_of_argo = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "argocd", "name": "argocd-cm"},
        "data": {"application.instanceLabelKey": "example.com/app"},
    });
    let own = application("argocd", "front", &web());
    let labelled = marked("labels", &[("example.com/app", "front")]);
    check(&[labelled.clone(), own.clone(), settings_of_argo], &["argo-application argocd/front: web"]);
    check(&[labelled, own], &["argo-application argocd/front: web?", "label shop/web: web"]);
}

/// A label holds 63 characters.
#[test]
fn long_application_names_match_their_cut_label() {
    let name = "a".repeat(70);
    let mut object = settings();
    object["metadata"]["labels"]["app.kubernetes.io/instance"] = json!("a".repeat(63));
    check(
        &[object, application("argocd", &name, &web())],
        &[&*format!("argo-application argocd/{name}: web")],
    );
}

/// For an object without a namespace Argo CD writes that of the destination.
#[test]
fn cluster_scoped_objects_match_tracking_ids_with_any_namespace() {
    let role = |id: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {
            "name": "web", "annotations": {"argocd.argoproj.io/tracking-id": id}}})
    };
    let resources = json!([{"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "web"}]);
    let own = application("argocd", "front", &resources);
    for namespace in ["", "shop"] {
        let id = format!("front:rbac.authorization.k8s.io/ClusterRole:{namespace}/web");
        check(&[role(&id), own.clone()], &["argo-application argocd/front: web"]);
    }
    check(
        &[role("back:rbac.authorization.k8s.io/ClusterRole:/web"), own],
        &["argo-application argocd/front: web?"],
    );
}

#[test]
fn a_resource_group_claims_objects_with_its_inventory_id() {
    let of = |id: &str| marked("annotations", &[("config.k8s.io/owning-inventory", id)]);
    check(&[of("team_all"), group("team", "all", "team_all")], &["kpt team/all: web"]);
    for other in [settings(), of("team_other"), of("")] {
        check(&[other, group("team", "all", "team_all")], &["label shop/web: web", "kpt team/all: web?"]);
    }
    check(&[of(""), group("tenant", "all", "")], &["label shop/web: web", "kpt tenant/all: web?"]);
    // kpt itself makes one of a hash of namespace and name, and the time.
    let made = "c431b4ed4c76d8718be0a2aece64ae98a0ac8d2c-1770714000000000000";
    check(&[of(made), group("team", "all", made)], &["kpt team/all: web"]);
    check(&[of(made), group("tenant", "all", made)], &["label shop/web: web", "kpt tenant/all: web?"]);
}

#[test]
fn a_root_sync_claims_objects_that_it_manages() {
    let sync = |kind: &str, namespace: &str, name: &str| json!({"apiVersion": "configsync.gke.io/v1beta1", "kind": kind, "metadata": {"namespace": namespace, "name": name}});
    let owned = |id: &str| marked("annotations", &[("config.k8s.io/owning-inventory", id)]);
    let managed = |by: &str| marked("annotations", &[("configsync.gke.io/manager", by)]);
    let root = "config-management-system";
    let row = |namespace: &str, name: &str| format!("config-sync {namespace}/{name}: web");
    for (kind, namespace, name, object) in [
        ("RootSync", root, "root-sync", owned("config-management-system_root-sync")),
        ("RootSync", root, "root-sync", managed(":root")),
        ("RootSync", root, "policies", managed(":root_policies")),
        ("RepoSync", "team", "repo-sync", managed("team")),
        ("RepoSync", "team", "more", managed("team_more")),
        ("RepoSync", "team", "more", owned("team_more")),
    ] {
        let objects = [object, sync(kind, namespace, name), group(namespace, name, "forged")];
        check(&objects, &[&*row(namespace, name)]);
    }
    for (kind, namespace, name, object) in [
        // Only one namespace holds RootSyncs that are heard.
        ("RootSync", "tenant", "root-sync", managed(":root")),
        ("RepoSync", "tenant", "repo-sync", managed("team")),
        ("RepoSync", "tenant", "repo-sync", owned("forged")),
        ("RepoSync", "tenant", "repo-sync", settings()),
    ] {
        let objects = [object, sync(kind, namespace, name), group(namespace, name, "forged")];
        let claimed = format!("{}?", row(namespace, name));
        check(&objects, &["label shop/web: web", &*claimed]);
    }
}

#[test]
fn absent_objects_need_no_mark() {
    check(&[kustomization("tenant", &["shop_gone__ConfigMap"])], &["flux-kustomization tenant/all: gone"]);
    let list = apps_of(&holding("prod", &[kustomization("tenant", &["shop_gone__ConfigMap"])]));
    assert_eq!(list.apps[0].health, taffrail_status::Status::NotFound);
}

#[test]
fn a_mark_of_a_missing_app_keeps_the_object_in_its_label_app() {
    let marks = [
        ("labels", "kustomize.toolkit.fluxcd.io/name", "gone"),
        ("labels", "helm.toolkit.fluxcd.io/name", "gone"),
        ("labels", "argocd.argoproj.io/instance", "gone"),
        ("labels", "app.kubernetes.io/managed-by", "Helm"),
        ("annotations", "argocd.argoproj.io/tracking-id", "gone:/ConfigMap:shop/web"),
        ("annotations", "config.k8s.io/owning-inventory", "gone"),
        ("annotations", "configmanagement.gke.io/managed", "enabled"),
        ("annotations", "meta.helm.sh/release-name", "gone"),
        ("annotations", "helm.sh/hook", "test"),
        ("annotations", "argocd.argoproj.io/hook", "PreSync"),
        ("annotations", "taffrail.dev/set", "gone_gone"),
    ];
    for (place, key, value) in marks {
        check(&[marked(place, &[(key, value)])], &["label shop/web: web"]);
    }
}

#[test]
fn a_missing_controller_does_not_own_objects() {
    let mut owned = settings();
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "example.com/v1", "kind": "Thing", "name": "a", "uid": "1", "controller": true}]);
    check(&[owned.clone()], &["label shop/web: web"]);
    let thing = |uid: &str| json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"namespace": "shop", "name": "a", "uid": uid}});
    check(&[owned.clone(), thing("2")], &["label shop/web: web"]);
    check(&[owned, thing("1")], &[]);
}

#[test]
fn a_label_app_names_the_hidden_app_in_its_marks() {
    let place = [("meta.helm.sh/release-name", "web"), ("meta.helm.sh/release-namespace", "shop")];
    let said = |objects: &[Value]| {
        let list = apps_of(&holding("prod", objects));
        list.apps.iter().find(|app| app.app.delivery.as_str() == "label").map(|app| app.message.clone())
    };
    assert_eq!(
        said(&[marked("annotations", &place)]).as_deref(),
        Some("1 object is marked for helm shop/web, which is not shown")
    );
    // A release that cannot be read is shown, as Unknown: its objects are its own.
    let unreadable = storage("shop", "web", 1, &json!({}));
    assert_eq!(said(&[marked("annotations", &place), unreadable]), None);
    // What a shown app let go of is nobody's.
    let flux = [
        ("kustomize.toolkit.fluxcd.io/name", "all"),
        ("kustomize.toolkit.fluxcd.io/namespace", "flux-system"),
    ];
    assert_eq!(
        said(&[marked("labels", &flux), kustomization("flux-system", &[])]).as_deref(),
        Some("1 object is marked for flux-kustomization flux-system/all, which does not list it")
    );
}

#[test]
fn hooks_are_listed_by_their_release_or_marked_jobs() {
    let job = |place: &str, marks: &[(&str, &str)]| {
        let mut object = marked(place, marks);
        object["apiVersion"] = json!("batch/v1");
        object["kind"] = json!("Job");
        object["metadata"]["name"] = json!("migrate");
        object
    };
    let id = [("argocd.argoproj.io/tracking-id", "front:batch/Job:shop/migrate")];
    check(&[job("annotations", &id)], &["label shop/web: migrate"]);
    check(
        &[job("annotations", &id), application("argocd", "front", &json!([]))],
        &["argo-application argocd/front: "],
    );
    // A ConfigMap is no hook because it says so.
    let hook = marked(
        "annotations",
        &[("helm.sh/hook", "test"), ("argocd.argoproj.io/tracking-id", "front:/ConfigMap:shop/web")],
    );
    check(
        &[hook.clone(), application("argocd", "front", &json!([]))],
        &["argo-application argocd/front: ", "label shop/web: web"],
    );
    let lists = |namespace: &str| {
        use base64::Engine as _;
        let engine = base64::engine::general_purpose::STANDARD;
        let payload = json!({
            "name": "r", "namespace": namespace, "version": 1, "manifest": "",
            "hooks": [{"name": "web", "kind": "ConfigMap", "path": "x", "manifest": MANIFEST, "events": ["pre-install"]}],
            "info": {"status": "deployed"}, "chart": {"metadata": {"name": "x", "version": "1.0.0"}},
        });
        let text = engine.encode(gzip(payload.to_string().as_bytes()));
        storage(namespace, "r", 1, &json!({"release": engine.encode(text)}))
    };
    check(&[settings(), lists("shop")], &["helm shop/r: "]);
    check(&[settings(), lists("tenant")], &["label shop/web: web", "helm tenant/r: "]);
    let mut operation = application("shop", "front", &json!([]));
    operation["status"]["operationState"] = json!({"phase": "Succeeded", "syncResult": {"revision": "1", "resources": [
        {"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "web", "hookType": "PreSync"}]}});
    check(&[settings(), operation], &["argo-application shop/front: "]);
}

#[test]
fn invalid_object_names_are_reported_and_not_counted() {
    let long = format!("shop_{}__ConfigMap", "a".repeat(300));
    let all = kustomization(
        "shop",
        &[
            "shop_a b__ConfigMap",
            "shop_UP__ConfigMap",
            "Shop_x__ConfigMap",
            &long,
            "shop_ok__ConfigMap",
            "_system__controller__x_rbac.authorization.k8s.io_ClusterRole",
        ],
    );
    let cluster = holding("prod", &[all]);
    let list = apps_of(&cluster);
    assert_eq!(rows(&list), ["flux-kustomization shop/all: ok system:controller:x"]);
    assert_eq!(list.errors.len(), 4, "{:?}", list.errors);
    assert!(
        list.errors.iter().all(|error| error.error.message.len() < 400 && error.error.reason == "Malformed")
    );

    let resources =
        json!([{"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "x".repeat(5_000_000)}]);
    let list = apps_of(&holding("prod", &[application("argocd", "front", &resources)]));
    assert_eq!(rows(&list), ["argo-application argocd/front: "]);
    assert!(list.errors.iter().all(|error| error.error.message.len() < 400));
    assert_eq!(list.errors.len(), 1);

    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'A B', namespace: shop}\n";
    let list = apps_of(&holding("prod", &[release("shop", "r", 1, "deployed", manifest)]));
    assert_eq!((rows(&list), list.errors.len()), (vec!["helm shop/r: ".to_owned()], 1));
}

#[test]
fn claims_from_another_cluster_need_a_mark_to_remove_a_row() {
    let mut hub = Snapshot::dump("dev", NOW);
    let mut forged = application("argocd", "front", &web());
    forged["spec"]["destination"] = json!({"server": "https://prod.example.com:6443"});
    super::dump::insert(&mut hub, &forged);
    let prod = |object: Value| {
        let mut prod = holding("prod", &[object]);
        prod.add_server("https://prod.example.com:6443");
        prod
    };
    let both = |prod: &Snapshot| rows(&apps(&[&hub as &dyn Objects, prod], &ActiveRules::default(), NOW));
    assert_eq!(both(&prod(settings())), ["argo-application argocd/front: web?", "label shop/web: web"]);
    let own = marked("annotations", &[("argocd.argoproj.io/tracking-id", "front:/ConfigMap:shop/web")]);
    assert_eq!(both(&prod(own)), ["argo-application argocd/front: web"]);
    // The claimant's own namespace is in its own cluster only.
    let mut forged = application("shop", "front", &web());
    forged["spec"]["destination"] = json!({"server": "https://prod.example.com:6443"});
    let hub = holding("dev", &[forged]);
    let list = apps(&[&hub as &dyn Objects, &prod(settings())], &ActiveRules::default(), NOW);
    assert_eq!(rows(&list), ["argo-application shop/front: web?", "label shop/web: web"]);
    let row = serde_json::to_value(taffrail_api::List::<taffrail_api::AppRow>::from(&list)).unwrap()["items"]
        [0]
    .clone();
    assert_eq!((&row["home"], &row["cluster"]), (&json!("dev"), &json!("prod")));
    assert_eq!(row["unconfirmed"], json!(1));
}

fn helm_release(namespace: &str, name: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"namespace": namespace, "name": name, "generation": 1}, "spec": spec, "status": status,
    })
}

/// An author of a HelmRelease chooses the name of the release, and the namespaces of it and its storage.
#[test]
fn a_flux_helm_release_claims_nothing_by_a_chosen_release_name() {
    let helm = [("meta.helm.sh/release-name", "web"), ("meta.helm.sh/release-namespace", "shop")];
    let object = marked("annotations", &helm);
    let inventory = json!({"inventory": {"entries": [{"id": "shop_web__ConfigMap", "v": "v1"}]}});
    let kept = ["label shop/web: web", "flux-helmrelease tenant/evil: web?"];
    let forged =
        helm_release("tenant", "evil", &json!({"releaseName": "web", "targetNamespace": "shop"}), &inventory);
    check(&[object.clone(), forged], &kept);
    let history = json!({
        "inventory": inventory["inventory"],
        "history": [{"name": "web", "namespace": "shop", "status": "deployed", "version": 1, "chartVersion": "1.0.0"}],
    });
    let forged = helm_release("tenant", "evil", &json!({"targetNamespace": "shop"}), &history);
    check(&[object.clone(), forged], &kept);
    // A storage that cannot be read takes nothing either.
    let spec = json!({"releaseName": "web", "targetNamespace": "shop", "storageNamespace": "tenant"});
    let forged = helm_release("tenant", "evil", &spec, &json!({}));
    check(
        &[object.clone(), forged, storage("tenant", "web", 1, &json!({}))],
        &["label shop/web: web", "flux-helmrelease tenant/evil: "],
    );
    // In its own namespace the name is its own.
    let own = helm_release("shop", "front", &json!({"releaseName": "web"}), &json!({}));
    check(&[object, own, storage("shop", "web", 1, &json!({}))], &["flux-helmrelease shop/front: "]);
}

#[test]
fn a_helm_release_of_another_cluster_claims_nothing_by_its_namespace() {
    let helm = [("meta.helm.sh/release-name", "web"), ("meta.helm.sh/release-namespace", "shop")];
    let mut prod = holding("prod", &[marked("annotations", &helm)]);
    prod.add_server("https://prod.example.com:6443");
    let config = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "prod"},
        "data": {"value": super::dump::base64(
            "current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\n\
             clusters: [{name: b, cluster: {server: 'https://prod.example.com:6443'}}]\n")}});
    let forged = helm_release(
        "shop",
        "evil",
        &json!({"releaseName": "web", "kubeConfig": {"secretRef": {"name": "prod"}}}),
        &json!({"inventory": {"entries": [{"id": "shop_web__ConfigMap", "v": "v1"}]}}),
    );
    let dev = holding("dev", &[config, forged]);
    let list = apps(&[&dev as &dyn Objects, &prod], &ActiveRules::default(), NOW);
    assert_eq!(rows(&list), ["flux-helmrelease shop/evil: web?", "label shop/web: web"]);
}

fn failed_hook() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"namespace": "shop", "name": "migrate", "labels": {"app.kubernetes.io/instance": "web"},
            "annotations": {"helm.sh/hook": "pre-install"}},
        "spec": {}, "status": {"failed": 1, "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]},
    })
}

#[test]
fn a_hook_not_listed_by_a_foreign_app_stays_in_its_label_app() {
    let row = "label shop/web: migrate";
    check(&[failed_hook()], &[row]);
    for namespace in ["tenant", "argocd"] {
        let empty = application(namespace, "web", &json!([]));
        let own = format!("argo-application {namespace}/web: ");
        let mut expected = vec![row, &*own];
        expected.sort_by_key(|row| row.split(' ').nth(1).map(str::to_owned));
        check(&[failed_hook(), empty], &expected);
    }
    let spec = json!({"releaseName": "web", "targetNamespace": "shop"});
    let empty = helm_release("tenant", "evil", &spec, &json!({"inventory": {"entries": []}}));
    let mut marked = failed_hook();
    marked["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("Helm");
    marked["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!("web");
    marked["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = json!("shop");
    check(&[marked.clone(), empty], &[row, "flux-helmrelease tenant/evil: "]);
    // Those who deliver into the namespace have hooks there.
    let own =
        helm_release("shop", "front", &json!({"releaseName": "web"}), &json!({"inventory": {"entries": []}}));
    check(&[marked, own], &["flux-helmrelease shop/front: "]);
}

#[test]
fn a_release_without_objects_stays_beside_a_foreign_helm_release() {
    let stored = release("shop", "web", 1, "failed", MANIFEST);
    let spec = json!({"storageNamespace": "shop", "targetNamespace": "shop", "releaseName": "web"});
    let forged = helm_release("tenant", "evil", &spec, &json!({}));
    check(&[stored, forged], &["helm shop/web: web", "flux-helmrelease tenant/evil: web"]);
}

/// A release may deliver one object into the namespace of a tenant, who marks it for a HelmRelease of their
/// own.
#[test]
fn a_tenant_cannot_hide_a_foreign_release_by_marks() {
    let given = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: given, namespace: tenant}\n";
    let stored = release("shop", "web", 1, "deployed", &format!("{MANIFEST}---\n{given}"));
    let own = json!({"helm.toolkit.fluxcd.io/name": "evil", "helm.toolkit.fluxcd.io/namespace": "tenant"});
    let given = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "tenant", "name": "given", "labels": own}});
    let spec = json!({"storageNamespace": "shop", "targetNamespace": "tenant", "releaseName": "web"});
    let all = json!([{"id": "shop_web__ConfigMap", "v": "v1"}, {"id": "tenant_given__ConfigMap", "v": "v1"}]);
    for entries in [json!([]), all] {
        let forged = helm_release("tenant", "evil", &spec, &json!({"inventory": {"entries": entries}}));
        let list = apps_of(&holding("prod", &[stored.clone(), given.clone(), forged]));
        let row = list.apps.iter().find(|app| app.app.name == "web").expect("the row of the release");
        assert_eq!(row.health, Status::NotFound, "{entries}");
    }
}

/// A release may deliver all its objects into the namespace of a tenant, and fail nevertheless.
#[test]
fn a_foreign_release_with_all_objects_in_a_tenant_namespace_keeps_its_row() {
    let limits = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: tenant}\n";
    let stored = release("shop", "web", 1, "failed", limits);
    let own = json!({"helm.toolkit.fluxcd.io/name": "evil", "helm.toolkit.fluxcd.io/namespace": "tenant"});
    let limits = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "tenant", "name": "limits", "labels": own}});
    let spec = json!({"storageNamespace": "shop", "targetNamespace": "shop", "releaseName": "web"});
    let forged = helm_release("tenant", "evil", &spec, &json!({}));
    let list = apps_of(&holding("prod", &[stored, limits, forged]));
    let row = list.apps.iter().find(|app| app.app.name == "web").expect("the row of the release");
    assert_eq!(row.sync.state, SyncState::Failed);
}

#[test]
fn a_copied_inventory_id_claims_nothing() {
    let of = |id: &str| marked("annotations", &[("config.k8s.io/owning-inventory", id)]);
    for id in ["i-1", "apps_all", "config-management-system_root-sync"] {
        check(&[of(id), group("tenant", "copy", id)], &["label shop/web: web", "kpt tenant/copy: web?"]);
    }
    // What comes and goes needs no list of objects to be taken by a mark that counts.
    let mut job = of("apps_all");
    job["apiVersion"] = json!("batch/v1");
    job["kind"] = json!("Job");
    let mut empty = group("tenant", "copy", "apps_all");
    empty["spec"]["resources"] = json!([]);
    check(&[job, empty], &["label shop/web: web", "kpt tenant/copy: "]);
    let list = apps_of(&holding("prod", &[of("i-1"), group("tenant", "copy", "i-1")]));
    let problem = list.apps.iter().find(|app| app.app.namespace == "tenant").unwrap().problem();
    assert!(problem.is_some_and(|problem| problem.message.contains("unconfirmed")), "{problem:?}");
}

#[test]
fn marks_without_a_claimant_neither_make_nor_remove_rows() {
    let of = |kind: (&str, &str), label: bool| {
        let mut object = marked("annotations", &[("taffrail.dev/set", "shop_all"), ("helm.sh/hook", "test")]);
        object["apiVersion"] = json!(kind.0);
        object["kind"] = json!(kind.1);
        if !label {
            object["metadata"]["labels"] = json!({});
        }
        object
    };
    for kind in [("v1", "ConfigMap"), ("v1", "Pod"), ("batch/v1", "Job"), ("apps/v1", "Deployment")] {
        check(&[of(kind, true)], &["label shop/web: web"]);
        check(&[of(kind, false)], &[]);
        check(
            &[of(kind, true), kustomization("shop", &[])],
            &["flux-kustomization shop/all: ", "label shop/web: web"],
        );
    }
}

#[test]
fn an_inventory_id_of_two_groups_does_not_count() {
    let object = marked("annotations", &[("config.k8s.io/owning-inventory", "i-1")]);
    check(
        &[object.clone(), group("apps", "all", "i-1"), group("tenant", "copy", "i-1")],
        &["kpt apps/all: web?", "label shop/web: web", "kpt tenant/copy: web?"],
    );
    // In its own namespace a group needs no mark.
    check(
        &[object, group("shop", "all", "i-1"), group("tenant", "copy", "i-1")],
        &["kpt shop/all: web", "kpt tenant/copy: web?"],
    );
}

/// Returns the objects that make the Argo CD of a namespace known: only administrators can bind a role
/// cluster-wide.
fn argo_cd(namespace: &str) -> [Value; 3] {
    let workload = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"namespace": namespace, "name": "argocd-application-controller",
            "labels": {"app.kubernetes.io/component": "application-controller"}},
        "spec": {"template": {"spec": {"serviceAccountName": "argocd-application-controller"}}},
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{namespace}-argocd-application-controller")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gitops"},
        "subjects": [{"kind": "ServiceAccount", "name": "argocd-application-controller", "namespace": namespace}],
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gitops"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    });
    [workload, binding, role]
}

#[test]
fn a_bare_name_means_the_application_beside_a_known_argo_cd() {
    let id = [("argocd.argoproj.io/tracking-id", "web:/ConfigMap:shop/web")];
    let tracked = marked("annotations", &id);
    let label_key = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "tenant", "name": "argocd-cm"},
        "data": {"application.instanceLabelKey": "app"},
    });
    let kept = ["label shop/web: web", "argo-application tenant/web: web?"];
    let tenants = application("tenant", "web", &web());
    let [workload, binding, role] = argo_cd("tenant");
    for object in [settings(), tracked.clone(), marked("labels", &[("app", "web")])] {
        // A ConfigMap and a workload can be made by whoever may write in a namespace.
        check(&[object.clone(), tenants.clone(), label_key.clone(), workload.clone()], &kept);
        let known =
            [object, tenants.clone(), label_key.clone(), workload.clone(), binding.clone(), role.clone()];
        let is_label =
            known[0]["metadata"]["annotations"].is_null() && known[0]["metadata"]["labels"]["app"].is_null();
        let taken = ["argo-application tenant/web: web"];
        check(&known, if is_label { &kept } else { &taken });
    }
    // The user says so.
    let trust = Trust { argocd: vec!["tenant".to_owned()], homes: Vec::new() };
    let options = Options { trust, ..Options::default() };
    let list = apps(
        &[&holding("prod", &[tracked.clone(), tenants.clone()]) as &dyn Objects],
        &ActiveRules { options: &options, ..ActiveRules::default() },
        NOW,
    );
    assert_eq!(rows(&list), ["argo-application tenant/web: web"]);
    // Both names are in the mark.
    let id = [("argocd.argoproj.io/tracking-id", "tenant_web:/ConfigMap:shop/web")];
    check(&[marked("annotations", &id), tenants], &["argo-application tenant/web: web"]);
    // The namespace of the installer, unless another Argo CD is the one that is known.
    let own = application("argocd", "web", &web());
    check(&[tracked.clone(), own.clone()], &["argo-application argocd/web: web"]);
    let [workload, binding, role] = argo_cd("gitops");
    let other = application("gitops", "other", &json!([]));
    check(
        &[tracked, own, other, workload, binding, role],
        &["argo-application argocd/web: web?", "argo-application gitops/other: ", "label shop/web: web"],
    );
}

#[test]
fn a_tracking_label_does_not_count_for_an_application_of_another_cluster() {
    let mut forged = application("argocd", "web", &web());
    forged["spec"]["destination"] = json!({"server": "https://prod.example.com:6443"});
    let hub = holding("hub", &[forged]);
    let mut prod = holding("prod", &[settings()]);
    prod.add_server("https://prod.example.com:6443");
    let clusters = [&hub as &dyn Objects, &prod];
    let list = apps(&clusters, &ActiveRules::default(), NOW);
    assert_eq!(rows(&list), ["argo-application argocd/web: web?", "label shop/web: web"]);
    let trust = Trust { argocd: Vec::new(), homes: vec!["hub".to_owned()] };
    let options = Options { trust, ..Options::default() };
    let trusting = ActiveRules { options: &options, ..ActiveRules::default() };
    assert_eq!(rows(&apps(&clusters, &trusting, NOW)), ["argo-application argocd/web: web"]);
}

#[test]
fn an_unhealthy_unconfirmed_object_is_shown_as_unconfirmed() {
    let broken = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "shop", "name": "web", "generation": 1, "labels": {"app.kubernetes.io/part-of": "shop"}},
        "spec": {"replicas": 1}, "status": {"observedGeneration": 1, "replicas": 1, "conditions": [
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "boom"}]},
    });
    let claim = |namespace: &str| kustomization(namespace, &["shop_web_apps_Deployment"]);
    let told = |objects: &[Value]| {
        let cluster = holding("prod", objects);
        let list = apps_of(&cluster);
        let words = list.apps.iter().map(|app| {
            format!("{}/{} {}", app.app.namespace, app.app.name, taffrail_api::text::health(app, NOW))
        });
        let words: Vec<String> = words.collect();
        let key = ObjectKey::new("apps", "Deployment", "shop", "web");
        let belonging = list.belonging(&cluster, &key);
        let names = |apps: &[&App]| apps.iter().map(|app| app.app.namespace.clone()).collect::<Vec<_>>();
        (words, names(&belonging.apps), names(&belonging.listed))
    };
    let (words, apps, listed) = told(&[claim("tenant"), broken.clone()]);
    assert_eq!(words, ["shop/shop Failed", "tenant/all Failed, unconfirmed"]);
    assert_eq!((apps, listed), (vec!["shop".to_owned()], vec!["tenant".to_owned()]));
    let (words, apps, listed) = told(&[claim("shop"), broken]);
    assert_eq!(words, ["shop/all Failed"]);
    assert_eq!((apps, listed), (vec!["shop".to_owned()], vec![]));
}
