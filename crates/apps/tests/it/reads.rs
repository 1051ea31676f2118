//! The plan of reads of a live cluster, and its completeness.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use taffrail_api::AppDetailList;
use taffrail_apps::{
    App, AppLabel, AppLabels, AppList, AppQuery, Delivery, Dependents, Read, ReadMode, ReadQuery, Snapshot,
    Target, Words, apps, apps_by, declared, elsewhere, wanted_elsewhere,
};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::{ActiveRules, ClusterState as _, Presence, Status};

use super::dump::{self, NOW, cluster, documents};
use super::golden::cases;
use super::server::{Log, Server};

/// The golden cases of one cluster, as a server and as a dump.
fn golden() -> Vec<(String, Server, String)> {
    let case = |case: std::path::PathBuf| {
        let name = case.file_name().unwrap().to_str().unwrap().to_owned();
        let yaml = fs::read_to_string(case.join("cluster.yaml")).ok()?;
        Some((name, Server::new(documents(&yaml)), yaml))
    };
    cases().into_iter().filter_map(case).collect()
}

#[test]
fn a_live_cluster_and_its_dump_have_the_same_apps() {
    for (name, server, yaml) in golden() {
        let (live, log) = server.read("cluster", &ReadQuery::default());
        let dump = cluster("cluster", &yaml);
        let rules = &ActiveRules::default();
        assert_eq!(apps(&[&live], rules, NOW), apps(&[&dump], rules, NOW), "{name}");
        assert!(log.0.len() <= 4, "{name} took {} rounds: {:?}", log.0.len(), log.paths());
        log.assert_no_repetition();
    }
}

#[test]
fn only_config_maps_with_the_newest_releases_are_read_whole() {
    let release =
        |version, status| dump::in_config_map(dump::release("data", "pg", version, status, MANIFEST));
    let mut labelled = object("v1", "ConfigMap", "data", "own");
    labelled["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "own"});
    let objects = vec![
        release(1, "superseded"),
        release(2, "deployed"),
        object("v1", "ConfigMap", "data", "pg"),
        labelled,
    ];
    let dump = dump::holding("cluster", &objects);
    for (label_groups, names) in [(true, vec!["own", "pg"]), (false, vec!["pg"])] {
        let asked = ReadQuery { label_groups, ..ReadQuery::default() };
        let (live, log) = Server::new(objects.clone()).read("cluster", &asked);
        log.assert_no_repetition();
        assert!(log.0.len() <= 3, "{:?}", log.paths());
        let whole = log.all().filter(|read| read.kind == "ConfigMap" && read.projection == Projection::Full);
        let whole: Vec<_> = whole.map(Read::path).collect();
        assert_eq!(whole, ["/api/v1/namespaces/data/configmaps/sh.helm.release.v1.pg.v2"]);
        let (mut expected, mut found) =
            (apps(&[&dump], &ActiveRules::default(), NOW), apps(&[&live], &ActiveRules::default(), NOW));
        expected.apps.retain(|app| names.contains(&&*app.app.name));
        found.apps.retain(|app| names.contains(&&*app.app.name));
        assert_eq!(found, expected);
        assert_eq!(expected.apps.len(), names.len());
    }
}

const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pg}\n";

#[test]
fn without_label_groups_only_declared_objects_are_read() {
    let asked = ReadQuery { label_groups: false, ..ReadQuery::default() };
    for (name, server, yaml) in golden() {
        let (live, log) = server.read("cluster", &asked);
        let mut expected = apps(&[&cluster("cluster", &yaml)], &ActiveRules::default(), NOW);
        expected.apps.retain(|app| app.app.delivery != Delivery::Label);
        let mut found = apps(&[&live], &ActiveRules::default(), NOW);
        found.apps.retain(|app| app.app.delivery != Delivery::Label);
        assert_eq!(found, expected, "{name}");
        assert!(log.0.len() <= 4, "{name} took {} rounds: {:?}", log.0.len(), log.paths());
        log.assert_no_repetition();
        let labelled = |read: &Read| match &read.target {
            Target::List { labels: Some(labels), .. } => labels != "owner=helm",
            _ => false,
        };
        assert!(!log.all().any(labelled), "{name}");
    }
}

pub(super) fn values_of_secrets(log: &Log) -> Vec<String> {
    let values = log.all().filter(|read| read.kind == "Secret" && read.projection == Projection::Full);
    values.map(Read::path).collect()
}

#[test]
fn only_secrets_with_the_newest_releases_are_read_whole() {
    for (name, server, _) in golden() {
        let (_, log) = server.read("cluster", &ReadQuery::default());
        let read = values_of_secrets(&log);
        assert!(read.iter().all(|path| path.contains("/secrets/sh.helm.release.v1.")), "{name}: {read:?}");
        match name.as_str() {
            // Its HelmRelease has an inventory.
            "helmrelease-well" => assert!(read.is_empty(), "{read:?}"),
            "helm-well" => assert_eq!(
                read,
                [
                    "/api/v1/namespaces/data/secrets/sh.helm.release.v1.pg.v3",
                    "/api/v1/namespaces/edge/secrets/sh.helm.release.v1.collector.v1",
                ]
            ),
            _ => {}
        }
    }
}

/// Flux: kustomize-controller `186fb3b`, `api/v1/kustomization_types.go`; the version before v1 has the same fields.
pub(super) fn kustomization(version: &str, ids: &[&str]) -> Value {
    let entries: Vec<Value> = ids.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    json!({
        "apiVersion": format!("kustomize.toolkit.fluxcd.io/{version}"), "kind": "Kustomization",
        "metadata": {"namespace": "flux-system", "name": "shop", "generation": 1},
        "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied"}],
            "inventory": {"entries": entries},
        },
    })
}

pub(super) fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    let mut metadata = json!({"name": name});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
}

fn lists(log: &Log, kind: &str) -> Vec<String> {
    let lists = log.all().filter(|read| read.kind == kind && matches!(read.target, Target::List { .. }));
    lists.map(Read::path).collect()
}

#[test]
fn a_kind_is_listed_in_the_namespaces_of_its_objects() {
    let server = Server::new(vec![
        kustomization(
            "v1",
            &["shop_web_apps_Deployment", "shop_a__Service", "wiki_b__Service", "_shop__Namespace"],
        ),
        object("apps/v1", "Deployment", "shop", "web"),
        object("v1", "Service", "shop", "a"),
        object("v1", "Service", "wiki", "b"),
        object("v1", "Namespace", "", "shop"),
    ]);
    let (live, log) = server.read("cluster", &ReadQuery { label_groups: false, ..ReadQuery::default() });
    assert_eq!(lists(&log, "Deployment"), ["/apis/apps/v1/namespaces/shop/deployments"]);
    assert_eq!(lists(&log, "Service"), ["/api/v1/services"]);
    assert_eq!(lists(&log, "Namespace"), ["/api/v1/namespaces"]);
    // In a namespace that was not listed nothing is known to be absent.
    let elsewhere = ObjectKey::new("apps", "Deployment", "wiki", "web");
    assert!(matches!(live.get(elsewhere.as_ref()), Presence::Unobserved(_)));
    assert!(matches!(live.get(ObjectKey::new("apps", "Deployment", "shop", "x").as_ref()), Presence::Absent));
    assert!(matches!(
        live.get(ObjectKey::new("example.com", "Gone", "shop", "x").as_ref()),
        Presence::Absent
    ));
}

#[test]
fn kinds_in_older_versions_cost_one_round() {
    let mut server = Server::new(vec![
        kustomization("v1beta2", &["shop_web_apps_Deployment"]),
        object("apps/v1", "Deployment", "shop", "web"),
        object("source.toolkit.fluxcd.io/v1beta2", "OCIRepository", "flux-system", "unused"),
    ]);
    server.versions.insert("kustomize.toolkit.fluxcd.io/Kustomization", "v1beta2");
    let (live, log) = server.read("cluster", &ReadQuery::default());
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!(list.apps.len(), 1);
    assert_eq!(list.apps[0].resources.len(), 1);
    assert!(log.0.len() <= 4);
    log.assert_no_repetition();
    assert_eq!(list.errors, []);
}

#[test]
fn a_source_in_an_older_version_is_read_once() {
    let mut app = kustomization("v1", &[]);
    app["spec"]["sourceRef"] = json!({"kind": "OCIRepository", "name": "fleet"});
    let mut source = object("source.toolkit.fluxcd.io/v1beta2", "OCIRepository", "flux-system", "fleet");
    source["status"] = json!({"artifact": {"revision": "latest@sha256:1"}});
    let (live, log) = Server::new(vec![app, source]).read("cluster", &ReadQuery::default());
    log.assert_no_repetition();
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!(list.apps[0].sync.desired.as_deref(), Some("latest@sha256:1"));
}

#[test]
fn definitions_of_a_chart_are_read_by_their_label() {
    let mut definition = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "a.example.com");
    definition["metadata"]["labels"] =
        json!({"helm.toolkit.fluxcd.io/name": "db", "helm.toolkit.fluxcd.io/namespace": "shop"});
    let other = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "b.example.com");
    let mut release = object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "shop", "db");
    release["status"] = json!({"conditions": []});
    let storage = dump::release("shop", "db", 1, "deployed", "");
    let server = Server::new(vec![definition, other, release, storage]);
    let (live, log) = server.read("cluster", &ReadQuery::default());
    log.assert_no_repetition();
    let read: Vec<_> = log.all().filter(|read| read.kind == "CustomResourceDefinition").collect();
    let [read] = read.as_slice() else { panic!("{read:?}") };
    assert_eq!(
        read.target,
        Target::List { labels: Some("helm.toolkit.fluxcd.io/name".to_owned()), fields: None }
    );
    assert_eq!(apps(&[&live], &ActiveRules::default(), NOW).apps[0].counts.total(), 1);
}

#[test]
fn forbidden_kinds_are_unknown_and_named() {
    let mut server = Server::new(vec![
        kustomization("v1", &["shop_web_apps_Deployment", "shop_settings__ConfigMap"]),
        object("apps/v1", "Deployment", "shop", "web"),
        object("v1", "ConfigMap", "shop", "settings"),
    ]);
    server.forbidden.push("apps/Deployment");
    // Who may not list HelmReleases is told so though there are none.
    server.forbidden.push("helm.toolkit.fluxcd.io/HelmRelease");
    let (live, _) = server.read("cluster", &ReadQuery::default());
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!(list.apps[0].health, Status::Unknown);
    assert_eq!(list.apps[0].counts.get(Status::Current), 1);
    assert!(list.apps[0].message.contains("deployments is forbidden"), "{}", list.apps[0].message);
    let errors: Vec<_> =
        list.errors.iter().map(|error| (error.error.scope.to_string(), &*error.error.reason)).collect();
    assert_eq!(errors, [("apps/Deployment".to_owned(), "Forbidden")]);
}

#[test]
fn a_release_with_a_forbidden_secret_is_unknown_and_reported_once() {
    let plain = dump::release("data", "pg", 1, "deployed", "");
    let mut release = object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "shop", "db");
    release["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let mut server = Server::new(vec![plain, release, dump::release("shop", "db", 1, "deployed", "")]);
    server.forbidden.push("get /Secret");
    let (live, _) = server.read("cluster", &ReadQuery::default());
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    let rows: Vec<_> = list.apps.iter().map(|app| (&*app.app.name, app.health)).collect();
    assert_eq!(rows, [("pg", Status::Unknown), ("db", Status::Unknown)]);
    assert!(list.apps[0].message.contains("secrets is forbidden"), "{}", list.apps[0].message);
    let errors: Vec<_> = list.errors.iter().map(|error| error.error.scope.to_string()).collect();
    assert_eq!(errors, ["/Secret/data/sh.helm.release.v1.pg.v1", "/Secret/shop/sh.helm.release.v1.db.v1"]);
}

#[test]
fn bare_pods_of_a_label_group_are_read_whole() {
    let mut pod = object("v1", "Pod", "wiki", "bare");
    pod["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "wiki"});
    let mut made = object("v1", "Pod", "wiki", "made");
    made["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "wiki", "pod-template-hash": "x"});
    made["metadata"]["ownerReferences"] =
        json!([{"kind": "ReplicaSet", "name": "x", "uid": "1", "controller": true}]);
    let (live, log) = Server::new(vec![pod, made]).read("cluster", &ReadQuery::default());
    // A list brings them, and does not bring those that are made.
    assert_eq!(lists(&log, "Pod"), ["/api/v1/pods", "/api/v1/pods"]);
    assert!(matches!(live.get(ObjectKey::new("", "Pod", "wiki", "made").as_ref()), Presence::Unobserved(_)));
    log.assert_no_repetition();
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!((list.apps.len(), list.apps[0].counts.total()), (1, 1));
    assert_eq!(list.apps[0].message, "Pod phase not available");
}

#[test]
fn a_plan_for_one_namespace_lists_only_in_namespaces() {
    let mut app = kustomization("v1", &["shop_web_apps_Deployment", "wiki_web_apps_Deployment"]);
    app["spec"]["sourceRef"]["namespace"] = json!("sources");
    let mut source = object("source.toolkit.fluxcd.io/v1", "GitRepository", "sources", "fleet");
    source["status"] = json!({"artifact": {"revision": "main@sha1:1"}});
    let server = Server::new(vec![
        app,
        source,
        object("apps/v1", "Deployment", "shop", "web"),
        object("apps/v1", "Deployment", "wiki", "web"),
    ]);
    let asked = ReadQuery { namespace: Some("flux-system".to_owned()), ..ReadQuery::default() };
    let (live, log) = server.read("cluster", &asked);
    let everywhere =
        log.all().filter(|read| read.namespace.is_none() && matches!(read.target, Target::List { .. }));
    assert_eq!(everywhere.count(), 0);
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!(list.apps[0].counts.get(Status::Unknown), 0);
    assert_eq!(list.apps[0].sync.desired.as_deref(), Some("main@sha1:1"));
    log.assert_no_repetition();
}

/// A HelmRelease in `shop` that a Kustomization in `flux-system` delivers, with sources in two other namespaces.
fn across_namespaces() -> Vec<Value> {
    let mut parent =
        kustomization("v1", &["shop_db_helm.toolkit.fluxcd.io_HelmRelease", "wiki_web_apps_Deployment"]);
    parent["spec"]["sourceRef"]["namespace"] = json!("sources");
    let mut git = object("source.toolkit.fluxcd.io/v1", "GitRepository", "sources", "fleet");
    git["spec"] = json!({"url": "https://git.example.com/fleet"});
    git["status"] = json!({"artifact": {"revision": "main@sha1:1"}});
    let mut release = object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "shop", "db");
    release["metadata"]["labels"] = json!({"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
    let source = json!({"kind": "HelmRepository", "name": "charts", "namespace": "charts"});
    release["spec"] = json!({"chart": {"spec": {"chart": "db", "sourceRef": source}}});
    release["status"] = json!({
        "helmChart": "charts/shop-db",
        "conditions": [{"type": "Ready", "status": "True", "reason": "InstallSucceeded", "message": "Installed"}],
        "history": [{"name": "db", "version": 1, "status": "deployed", "chartVersion": "1.0.0"}],
        "inventory": {"entries": [{"id": "shop_db__ConfigMap", "v": "v1"}]},
    });
    let mut chart = object("source.toolkit.fluxcd.io/v1", "HelmChart", "charts", "shop-db");
    chart["status"] = json!({"artifact": {"revision": "1.0.0"}});
    let mut charts = object("source.toolkit.fluxcd.io/v1", "HelmRepository", "charts", "charts");
    charts["spec"] = json!({"url": "https://charts.example.com"});
    let objects = [object("v1", "ConfigMap", "shop", "db"), object("apps/v1", "Deployment", "wiki", "web")];
    [parent, git, release, chart, charts].into_iter().chain(objects).collect()
}

#[test]
fn a_plan_for_one_namespace_knows_as_much_about_its_apps() {
    let objects = across_namespaces();
    let all = apps(&[&dump::holding("cluster", &objects)], &ActiveRules::default(), NOW);
    let detail = |list: &AppList, cluster: &Snapshot, name: &str| {
        let app = list.apps.iter().find(|app| app.app.name == name).unwrap();
        let mut detail =
            AppDetailList::new(&[app], list, &[cluster], &ActiveRules::default(), NOW).items.remove(0);
        // The objects of related apps are not read for it.
        for relation in &mut detail.relations {
            (relation.status, relation.message) = (Status::Unknown, Words::default());
        }
        detail
    };
    for (namespace, name) in [("shop", "db"), ("flux-system", "shop")] {
        let dependents = Dependents::Of(name.parse::<AppQuery>().unwrap());
        let asked = ReadQuery { namespace: Some(namespace.to_owned()), dependents, ..ReadQuery::default() };
        let (live, log) = Server::new(objects.clone()).read("cluster", &asked);
        log.assert_no_repetition();
        let list = apps(&[&live], &ActiveRules::default(), NOW);
        assert_eq!(list.errors, []);
        let whole = dump::holding("cluster", &objects);
        assert_eq!(detail(&list, &live, name), detail(&all, &whole, name), "{namespace}");
        // What else the Kustomization delivers is nobody's question in the other namespace.
        let is_read =
            log.all().any(|read| read.kind == "Deployment" && read.namespace.as_deref() == Some("wiki"));
        assert_eq!(is_read, namespace == "flux-system");

        let asked = ReadQuery { dependents: Dependents::None, ..asked };
        let (live, _) = Server::new(objects.clone()).read("cluster", &asked);
        let rows = |list: &AppList| -> Vec<App> {
            let mut apps: Vec<App> =
                list.apps.iter().filter(|app| app.app.namespace == namespace).cloned().collect();
            // An app of another namespace that creates this one is not read for it.
            apps.iter_mut().for_each(|app| app.upstreams.apps.clear());
            apps
        };
        assert_eq!(rows(&apps(&[&live], &ActiveRules::default(), NOW)), rows(&all), "{namespace}");
    }
}

/// helm-controller `0f61a86`, `api/v2/helmrelease_types.go`: GetStorageNamespace.
#[test]
fn a_release_of_a_helm_release_elsewhere_is_not_an_app_of_its_own() {
    let mut declaring = object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "flux-system", "pg");
    declaring["spec"] = json!({"storageNamespace": "data", "targetNamespace": "data", "releaseName": "pg"});
    let other = dump::release("data", "own", 1, "deployed", MANIFEST);
    let mut marked = object("v1", "ConfigMap", "data", "pg");
    marked["metadata"]["labels"] =
        json!({"helm.toolkit.fluxcd.io/name": "pg", "helm.toolkit.fluxcd.io/namespace": "flux-system"});
    let mut server =
        Server::new(vec![declaring, dump::release("data", "pg", 1, "deployed", MANIFEST), other, marked]);
    let asked = ReadQuery { namespace: Some("data".to_owned()), ..ReadQuery::default() };
    let names = |server: &Server| -> Vec<String> {
        let (live, log) = server.read("cluster", &asked);
        assert!(log.0.len() <= 4, "{:?}", log.paths());
        let list = apps(&[&live], &ActiveRules::default(), NOW);
        assert_eq!(list.errors.iter().filter(|error| error.error.reason == "Forbidden").count(), 0);
        let inside = list.apps.into_iter().filter(|app| app.app.namespace == "data");
        inside.map(|app| app.app.name).collect()
    };
    assert_eq!(names(&server), ["own"]);
    server.forbidden.push("list helm.toolkit.fluxcd.io/HelmRelease");
    assert_eq!(names(&server), ["own", "pg"]);
}

/// Argo CD v2 tracks by the instance label by default (`application.resourceTrackingMethod`).
#[test]
fn objects_tracked_by_label_alone_are_not_a_label_app() {
    let mut labelled = object("v1", "ConfigMap", "shop", "settings");
    labelled["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "guestbook"});
    let mut app = object("argoproj.io/v1alpha1", "Application", "argocd", "guestbook");
    app["spec"] = json!({"destination": {"server": "https://kubernetes.default.svc"}});
    let resource = |name| json!({"kind": "ConfigMap", "namespace": "shop", "name": name});
    app["status"] =
        json!({"resources": [resource("settings"), resource("other")], "sync": {"status": "Synced"}});
    let mut server = Server::new(vec![labelled, app]);
    let asked = ReadQuery { namespace: Some("shop".to_owned()), ..ReadQuery::default() };
    let (live, log) = server.read("cluster", &asked);
    let rows = |list: &AppList| list.apps.iter().filter(|app| app.app.namespace == "shop").count();
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!((rows(&list), list.errors.len()), (0, 0));
    assert!(log.0.len() <= 4, "{:?}", log.paths());

    // Who may not look further is shown what could be seen, and is not reproached with it.
    server.forbidden.push("list argoproj.io/Application");
    let (live, _) = server.read("cluster", &asked);
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!((rows(&list), list.errors.len()), (1, 0));
}

#[test]
fn list_items_get_their_api_version_and_kind() {
    let read = Read {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        kind: "Deployment".to_owned(),
        plural: "deployments".to_owned(),
        namespace: None,
        target: Target::List { labels: None, fields: None },
        projection: Projection::Full,
    };
    for (item, kind) in [
        (r#"{"metadata": {"name": "web"}}"#, Some("Deployment")),
        (r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata"}"#, Some("Deployment")),
        (" {} ", Some("Deployment")),
        ("[]", None),
    ] {
        let item_read = OwnedDocument::parse(item.as_bytes()).unwrap();
        let document = read.document(item_read.root()).unwrap();
        let found = document.root().get("kind").and_then(|kind| kind.as_str());
        assert_eq!(found.as_deref(), kind, "{item}");
    }
}

#[test]
fn objects_delivered_from_another_cluster_are_read_in_a_later_round() {
    let labelled = |name: String| {
        let mut object = object("apps/v1", "Deployment", "shop", &name);
        object["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop"});
        object
    };
    for (count, lists_again) in [(3, 0), (40, 1)] {
        let ids: Vec<String> =
            (0..count).map(|number| format!("shop_web-{number}_apps_Deployment")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let config = "clusters: [{name: e, cluster: {server: 'https://edge'}}]\n\
                      contexts: [{name: c, context: {cluster: e}}]\ncurrent-context: c";
        let mut app = kustomization("v1", &ids);
        app["spec"]["kubeConfig"] = json!({"secretRef": {"name": "edge"}});
        let mut secret = object("v1", "Secret", "flux-system", "edge");
        secret["data"] = json!({"value": STANDARD.encode(config)});

        let asked = ReadQuery { follow: true, ..ReadQuery::default() };
        let (hub, log) = Server::new(vec![app, secret]).read("hub", &asked);
        assert_eq!(values_of_secrets(&log), ["/api/v1/namespaces/flux-system/secrets/edge"]);
        let (_, unasked) = Server::new(hub_objects(&ids)).read("hub", &ReadQuery::default());
        assert_eq!(values_of_secrets(&unasked), [""; 0]);

        let mut objects: Vec<Value> = (0..count)
            .map(|number| object("apps/v1", "Deployment", "shop", &format!("web-{number}")))
            .collect();
        objects.push(labelled("labelled".to_owned()));
        let server = Server::new(objects);
        let (mut edge, _) = server.read("edge", &asked);
        edge.add_server("https://edge");
        assert_eq!(apps(&[&hub, &edge], &ActiveRules::default(), NOW).apps[0].health, Status::Unknown);

        let wanted = wanted_elsewhere(&[&hub, &edge]);
        assert_eq!(wanted.keys().collect::<Vec<_>>(), ["edge"]);
        assert_eq!(wanted["edge"].len(), count);
        let asked = ReadQuery { objects: wanted["edge"].clone(), ..asked };
        let log = server.go_on(&mut edge, &asked);
        assert_eq!(lists(&log, "Deployment").len(), lists_again);
        let list = apps(&[&hub, &edge], &ActiveRules::default(), NOW);
        assert_eq!(&*list.apps[0].app.name, "shop");
        assert_eq!(list.apps[0].counts.get(Status::Unknown), 0, "{}", list.apps[0].message);
        // They are wanted as long as they are declared: one that is not well has something behind it. These are well.
        let asked = ReadQuery { objects: wanted_elsewhere(&[&hub, &edge])["edge"].clone(), ..asked };
        assert!(server.go_on(&mut edge, &asked).0.is_empty());
    }
}

#[test]
fn evidence_about_objects_delivered_from_another_cluster_is_read() {
    let config = "clusters: [{name: e, cluster: {server: 'https://edge'}}]\n\
                  contexts: [{name: c, context: {cluster: e}}]\ncurrent-context: c";
    let mut app = kustomization("v1", &["shop_web_apps_Deployment"]);
    app["spec"]["kubeConfig"] = json!({"secretRef": {"name": "edge"}});
    let mut secret = object("v1", "Secret", "flux-system", "edge");
    secret["data"] = json!({"value": STANDARD.encode(config)});
    let asked = ReadQuery { follow: true, ..ReadQuery::default() };
    let (hub, _) = Server::new(vec![app, secret]).read("hub", &asked);

    // Another app of the edge has all Deployments read before anybody knows of this one.
    let mut objects = bad_image();
    let mut other = object("apps/v1", "Deployment", "shop", "other");
    other["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "other"});
    objects.extend([other, kustomization("v1", &["shop_other_apps_Deployment"])]);
    let server = Server::new(objects);
    let (mut edge, _) = server.read("edge", &asked);
    edge.add_server("https://edge");
    let asked = ReadQuery { objects: wanted_elsewhere(&[&hub, &edge])["edge"].clone(), ..asked };
    server.go_on(&mut edge, &asked);
    let list = apps(&[&hub, &edge], &ActiveRules::default(), NOW);
    let app = list.apps.iter().find(|app| app.app.home == "hub").unwrap();
    assert_eq!(app.health, Status::Failed, "{}", app.message);
}

#[test]
fn dependents_of_apps_delivered_from_another_cluster_are_read() {
    let asked =
        ReadQuery { follow: true, dependents: Dependents::All, liveness: true, ..ReadQuery::default() };
    let config = "clusters: [{name: e, cluster: {server: 'https://edge'}}]\n\
                  contexts: [{name: c, context: {cluster: e}}]\ncurrent-context: c";
    let mut objects = hub_objects(&["shop_web_apps_Deployment"]);
    objects[1]["data"] = json!({"value": STANDARD.encode(config)});
    let (hub, _) = Server::new(objects).read("hub", &asked);
    let server = Server::new(vec![is_ready("web")]);
    let (mut edge, _) = server.read("edge", &asked);
    edge.add_server("https://edge");
    let of_pods = ObjectKey::new("", "Pod", "shop", "none");
    assert!(matches!(edge.get(of_pods.as_ref()), Presence::Unobserved(_)));

    let of = |name: &str| Dependents::Of(name.parse().unwrap());
    let in_namespaces =
        |dependents: &Dependents| elsewhere(&[&hub, &edge], dependents, ReadMode::Once).dependents_in;
    assert!(in_namespaces(&of("another")).is_empty());
    let wanted = in_namespaces(&of("shop"));
    assert_eq!(wanted, in_namespaces(&Dependents::All));
    assert_eq!(wanted.keys().collect::<Vec<_>>(), ["edge"]);
    assert_eq!(wanted["edge"], [("shop".to_owned(), vec!["hub".to_owned()])].into());
    let dependents_in = wanted["edge"].keys().cloned().collect();
    let objects = wanted_elsewhere(&[&hub, &edge])["edge"].clone();
    let log = server.go_on(&mut edge, &ReadQuery { objects, dependents_in, ..asked });
    assert!(matches!(edge.get(of_pods.as_ref()), Presence::Absent), "{:?}", log.paths());
}

fn hub_objects(ids: &[&str]) -> Vec<Value> {
    let mut app = kustomization("v1", ids);
    app["spec"]["kubeConfig"] = json!({"secretRef": {"name": "edge"}});
    vec![app, object("v1", "Secret", "flux-system", "edge")]
}

fn is_ready(name: &str) -> Value {
    let mut deployment = object("apps/v1", "Deployment", "shop", name);
    deployment["metadata"]["uid"] = json!(format!("uid-{name}"));
    deployment["spec"] = json!({"replicas": 1});
    deployment["status"] = json!({
        "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [{"type": "Available", "status": "True"}],
    });
    deployment
}

/// Returns a Deployment whose only Pod cannot pull its image, with the evidence.
fn bad_image() -> Vec<Value> {
    let mut deployment = is_ready("web");
    deployment["status"] = json!({"replicas": 1, "updatedReplicas": 1});
    let owned = |api_version, kind, name: &str, owner: &str| {
        let mut owned = object(api_version, kind, "shop", name);
        owned["metadata"]["uid"] = json!(format!("uid-{name}"));
        owned["metadata"]["ownerReferences"] = json!([{"uid": format!("uid-{owner}"), "controller": true}]);
        // Charts put the label into the templates of Pods as well.
        owned["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop", "pod-template-hash": "1"});
        owned
    };
    let mut set = owned("apps/v1", "ReplicaSet", "web-1", "web");
    set["spec"] = json!({"replicas": 1});
    set["status"] = json!({"replicas": 1});
    let mut pod = owned("v1", "Pod", "web-1-a", "web-1");
    pod["spec"] = json!({"nodeName": "one", "serviceAccountName": "web"});
    pod["status"] = json!({"phase": "Pending", "containerStatuses": [
        {"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"web:2\""}}},
    ]});
    let mut event = object("v1", "Event", "shop", "web-1-a.1");
    event["type"] = json!("Warning");
    event["involvedObject"] = json!({"kind": "Pod", "namespace": "shop", "name": "web-1-a"});
    vec![deployment, set, pod, event]
}

fn evidence(log: &Log) -> Vec<String> {
    let kinds = ["Event", "Node", "PersistentVolumeClaim", "Pod", "ReplicaSet"];
    let by_label = |read: &&Read| matches!(read.target, Target::List { labels: Some(_), .. });
    let of_kind = log.all().filter(|read| kinds.contains(&&*read.kind));
    of_kind.filter(|read| !by_label(read)).map(Read::path).collect()
}

#[test]
fn labelled_pods_of_healthy_workloads_cost_no_round() {
    let mut deployment = is_ready("web");
    deployment["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop"});
    let mut objects = bad_image();
    objects[0] = deployment;
    let (live, log) = Server::new(objects).read("cluster", &ReadQuery::default());
    assert_eq!(log.0.len(), 2, "{:?}", log.paths());
    assert_eq!(evidence(&log), [""; 0]);
    log.assert_no_repetition();
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!((list.apps.len(), list.apps[0].health), (1, Status::Current));
}

#[test]
fn the_app_labels_decide_which_objects_are_read() {
    let labelled = |name: &str, labels: Value| {
        let mut object = object("v1", "ConfigMap", "shop", name);
        object["metadata"]["labels"] = labels;
        object
    };
    let objects = vec![
        labelled("both", json!({"app.kubernetes.io/instance": "eu", "app.kubernetes.io/part-of": "shop"})),
        labelled("part", json!({"app.kubernetes.io/part-of": "shop"})),
        labelled("own", json!({"app": "till", "team": "blue"})),
    ];
    let named: AppLabels = vec!["app".parse::<AppLabel>().unwrap(), "team".parse().unwrap()].into();
    for (labels, apps, selectors) in [
        (
            AppLabels::default(),
            vec!["eu", "shop"],
            ["app.kubernetes.io/instance", "app.kubernetes.io/part-of,!app.kubernetes.io/instance"],
        ),
        (named, vec!["till"], ["app", "team,!app"]),
    ] {
        let asked = ReadQuery { app_labels: labels.clone(), ..ReadQuery::default() };
        let (live, log) = Server::new(objects.clone()).read("cluster", &asked);
        log.assert_no_repetition();
        let list = apps_by(&labels, &[&live], &ActiveRules::default(), NOW);
        assert_eq!(list.apps.iter().map(|app| &*app.app.name).collect::<Vec<_>>(), apps);
        let of_maps = log.0.iter().skip(1).flatten().filter(|read| read.kind == "ConfigMap");
        let used: Vec<_> = of_maps
            .filter_map(|read| match &read.target {
                Target::List { labels, .. } => labels.as_deref(),
                Target::Object(_) => None,
            })
            .collect();
        assert_eq!(used, selectors);
    }
}

#[test]
fn no_evidence_is_read_for_healthy_objects() {
    let app = kustomization("v1", &["shop_web_apps_Deployment"]);
    let mut other = is_ready("other");
    other["metadata"]["namespace"] = json!("wiki");
    let asked = ReadQuery { label_groups: false, ..ReadQuery::default() };
    let (live, log) = Server::new(vec![app, is_ready("web"), other]).read("cluster", &asked);
    assert_eq!(apps(&[&live], &ActiveRules::default(), NOW).apps[0].health, Status::Current);
    assert_eq!(evidence(&log), [""; 0]);
    assert!(log.0.len() <= 3);
}

#[test]
fn evidence_is_read_in_one_round_in_its_namespaces() {
    let mut elsewhere = object("v1", "Pod", "wiki", "elsewhere");
    elsewhere["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "wiki"});
    elsewhere["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other", "controller": true}]);
    let mut other = object("v1", "ConfigMap", "wiki", "other");
    other["metadata"]["uid"] = json!("other");
    let mut objects = bad_image();
    objects.push(other);
    objects.extend([kustomization("v1", &["shop_web_apps_Deployment"]), elsewhere]);
    let server = Server::new(objects);
    for asked in [ReadQuery { label_groups: false, ..ReadQuery::default() }, ReadQuery::default()] {
        let (live, log) = server.read("cluster", &asked);
        let list = apps(&[&live], &ActiveRules::default(), NOW);
        let [app] = list.apps.as_slice() else { panic!("{:?}", list.apps) };
        assert_eq!((app.health, &*app.message), (Status::Failed, "Back-off pulling image \"web:2\""));
        let chain: Vec<_> =
            app.speaker.iter().flat_map(|it| &it.chain).map(|link| &*link.object.name).collect();
        assert_eq!(chain, ["web", "web-1", "web-1-a"]);
        let wanted = [
            "/api/v1/namespaces/shop/pods",
            "/apis/apps/v1/namespaces/shop/replicasets",
            "/api/v1/namespaces/shop/events",
        ];
        assert_eq!(evidence(&log), wanted);
        assert!(log.0.len() <= 4, "{:?}", log.paths());
        log.assert_no_repetition();
    }
}

#[test]
fn forbidden_evidence_is_named_and_keeps_the_row() {
    let mut objects = bad_image();
    objects.push(kustomization("v1", &["shop_web_apps_Deployment"]));
    let mut server = Server::new(objects);
    server.forbidden.push("/Pod");
    let (live, log) = server.read("cluster", &ReadQuery { label_groups: false, ..ReadQuery::default() });
    log.assert_no_repetition();
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!(list.apps[0].health, Status::InProgress);
    let errors: Vec<_> = list.errors.iter().map(|error| error.error.scope.to_string()).collect();
    assert_eq!(errors, ["/Pod in shop"]);
}

#[test]
fn nodes_and_autoscaler_events_are_read_if_a_pod_needs_them() {
    let app = kustomization("v1", &["shop_web_apps_Deployment"]);
    let silent = || {
        let mut objects = bad_image();
        objects[2]["status"] =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]});
        objects.push(app.clone());
        objects
    };
    let mut objects = silent();
    let mut node = object("v1", "Node", "", "one");
    node["status"] = json!({"conditions": [{"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}]});
    objects.push(node);
    let (live, log) = Server::new(objects).read("cluster", &ReadQuery::default());
    assert!(evidence(&log).contains(&"/api/v1/nodes/one".to_owned()), "{:?}", log.paths());
    log.assert_no_repetition();
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!(
        (list.apps[0].health, &*list.apps[0].message),
        (Status::Failed, "Kubelet stopped posting node status.")
    );

    let mut objects = silent();
    objects[2]["spec"] = json!({});
    objects[2]["metadata"]["creationTimestamp"] = json!("2026-03-01T11:55:00Z");
    objects[2]["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"},
    ]});
    objects[3]["reason"] = json!("TriggeredScaleUp");
    objects[3]["type"] = json!("Normal");
    objects[3]["lastTimestamp"] = json!("2026-03-01T11:58:00Z");
    let (live, log) = Server::new(objects).read("cluster", &ReadQuery::default());
    log.assert_no_repetition();
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!(list.apps[0].health, Status::InProgress, "{}", list.apps[0].message);
}

#[test]
fn named_objects_are_read_without_declarations() {
    let asked = ReadQuery {
        declarations: false,
        objects: vec![ObjectKey::new("apps", "Deployment", "shop", "web")],
        ..ReadQuery::default()
    };
    let mut objects = bad_image();
    objects.push(kustomization("v1", &["shop_web_apps_Deployment"]));
    let (live, log) = Server::new(objects).read("cluster", &asked);
    let mut kinds: Vec<_> = log.all().map(|read| &*read.kind).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["Deployment", "Event", "Namespace", "Pod", "ReplicaSet"]);
    let list = declared(&[&live], &asked.objects, &ActiveRules::default(), NOW);
    assert_eq!((list.apps.len(), list.apps[0].health), (1, Status::Failed));
}

#[test]
fn the_workload_of_a_custom_resource_without_rules_is_read() {
    let owned = |mut it: Value, kind: &str, name: &str| {
        it["metadata"]["uid"] = json!(format!("u-{}", it["metadata"]["name"].as_str().unwrap()));
        it["metadata"]["ownerReferences"] =
            json!([{"kind": kind, "name": name, "uid": format!("u-{name}"), "controller": true}]);
        it
    };
    let mut widget = object("acme.dev/v1", "Widget", "shop", "blue");
    widget["metadata"]["uid"] = json!("u-blue");
    widget["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "blue"});
    widget["status"] = json!({"replicas": 1});
    let mut set = owned(object("apps/v1", "StatefulSet", "shop", "db"), "Widget", "blue");
    set["spec"] = json!({"replicas": 1});
    let mut pod = owned(object("v1", "Pod", "shop", "db-0"), "StatefulSet", "db");
    pod["status"] = json!({"phase": "Running", "containerStatuses": [
        {"name": "app", "ready": false, "restartCount": 5, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}}]});
    let (live, log) = Server::new(vec![widget, set, pod]).read("cluster", &ReadQuery::default());
    assert!(log.0.len() <= 4, "{:?}", log.paths());
    let rows = apps(&[&live], &ActiveRules::default(), NOW).apps;
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].health, rows[0].speaker.as_ref().unwrap().message.as_str()),
        (Status::Failed, "back-off")
    );
}
