//! Porch: packages of deployment repositories, and the apps that deliver them.
//!
//! The shapes are those of Porch `74d82d5`: `PackageRevision` of `api/porch/v1alpha1/types_packagerevisions.go`
//! (and `v1alpha2/packagerevision_types.go`, where noted), `Repository` of `api/porchconfig/v1alpha1`; names and
//! addresses as in Nephio's Porch tutorial. RootSyncs are those of Config Sync v1.20, `configsync.gke.io/v1beta1`,
//! and the annotation is the one of its documentation, "Config Sync annotations and labels".

use serde_json::{Value, json};
use taffrail_api::AppDetailList;
use taffrail_apps::{App, AppList, Delivery, Objects, ReadQuery, Rounds, Scope, SyncState, apps, plan_reads};
use taffrail_object::GroupKind;
use taffrail_status::{ActiveRules, Status};

use super::dump::{NOW, apps_of, holding};
use super::server::Server;

const OLD: &str = "1111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222";
const HEAD: &str = "3333333333333333333333333333333333333333";
const REPO: &str = "http://172.18.255.200:3000/nephio/edge1.git";

fn repository(deployment: bool) -> Value {
    json!({
        "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "Repository",
        "metadata": {"namespace": "porch-demo", "name": "edge1"},
        "spec": {"type": "git", "deployment": deployment, "git": {"repo": REPO, "branch": "main", "directory": "/"}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "Repository Ready"}]},
    })
}

fn revision(package: &str, number: Value, lifecycle: &str, commit: &str) -> Value {
    let name = format!("edge1.{}.{number}", package.replace('/', "."));
    json!({
        "apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision",
        "metadata": {"namespace": "porch-demo", "name": name, "labels": {"kpt.dev/latest-revision": "true"}},
        "spec": {
            "packageName": package, "repository": "edge1", "workspaceName": "w", "revision": number, "lifecycle": lifecycle,
            "tasks": [{"type": "clone"}],
        },
        "status": {
            "deployment": true, "publishTimestamp": "2026-03-01T10:00:00Z",
            "selfLock": {"type": "git", "git": {"repo": REPO, "directory": package, "ref": format!("{package}/v{number}"), "commit": commit}},
        },
    })
}

fn root_sync(dir: &str, commit: &str) -> Value {
    json!({
        "apiVersion": "configsync.gke.io/v1beta1", "kind": "RootSync",
        "metadata": {"namespace": "config-management-system", "name": "root-sync", "generation": 1},
        "spec": {"sourceFormat": "unstructured", "sourceType": "git", "git": {
            "repo": "http://172.18.255.200:3000/nephio/edge1", "branch": "main", "dir": dir, "auth": "none",
        }},
        "status": {
            "observedGeneration": 1, "lastSyncedCommit": commit,
            "source": {"commit": commit}, "rendering": {"commit": commit},
            "sync": {"commit": commit, "lastUpdate": "2026-03-01T11:20:00Z"},
            "conditions": [{"type": "Syncing", "status": "False", "reason": "Sync", "message": "Sync Completed"}],
        },
    })
}

fn inventory(names: &[&str]) -> Value {
    let resources: Vec<Value> = names
        .iter()
        .map(|name| json!({"group": "", "kind": "ConfigMap", "namespace": "shop", "name": name}))
        .collect();
    json!({
        "apiVersion": "kpt.dev/v1alpha1", "kind": "ResourceGroup",
        "metadata": {"namespace": "config-management-system", "name": "root-sync"}, "spec": {"resources": resources},
    })
}

fn managed(name: &str, path: Option<&str>) -> Value {
    let mut object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}});
    if let Some(path) = path {
        object["metadata"]["annotations"] = json!({
            "configmanagement.gke.io/managed": "enabled", "configmanagement.gke.io/source-path": path,
            "configmanagement.gke.io/token": NEW, "config.k8s.io/owning-inventory": "config-management-system_root-sync",
        });
    }
    object
}

/// A cluster that syncs the root of the repository, and what it holds of two packages.
fn edge(commit: &str) -> Vec<Value> {
    vec![
        root_sync("/", commit),
        inventory(&["shop", "shop-more", "other"]),
        managed("shop", Some("shop/map.yaml")),
        managed("shop-more", Some("shop/deep/map.yaml")),
        managed("other", Some("shopping/map.yaml")),
    ]
}

/// The objects of [`edge`] after the sync failed.
pub(crate) fn edge_of_failed_sync() -> Vec<Value> {
    let mut objects = edge(NEW);
    objects[0]["status"]["sync"]["errors"] = json!([{"code": "2004", "errorMessage": "no access"}]);
    objects
}

/// The package that [`edge`] syncs.
pub(crate) fn porch_of_shop() -> Vec<Value> {
    vec![repository(true), revision("shop", json!(2), "Published", NEW)]
}

fn packages(list: &AppList) -> Vec<&App> {
    list.apps.iter().filter(|app| app.app.delivery == Delivery::Porch).collect()
}

fn names(app: &App) -> Vec<&str> {
    app.resources.iter().map(|resource| &*resource.key.name).collect()
}

#[test]
fn a_stale_repository_makes_the_sync_of_its_packages_unknown() {
    let mut porch = holding("porch", &[repository(true), revision("shop", json!(2), "Published", NEW)]);
    let repositories = GroupKind::new("config.porch.kpt.dev", "Repository");
    porch.set_stale_scopes(vec![(Scope::Kind { kind: repositories, namespace: None }, NOW)]);
    let list = apps(&[&porch, &holding("edge", &edge(NEW))], &ActiveRules::default(), NOW);
    let [app] = packages(&list)[..] else { panic!("{list:?}") };
    assert_eq!((app.sync.state, app.effective_sync()), (SyncState::Synced, SyncState::Unknown));
    assert_eq!(app.effective(), Status::Current);
}

#[test]
fn a_package_targets_the_cluster_of_the_app_that_syncs_its_folder() {
    let porch = holding(
        "porch",
        &[
            repository(true),
            revision("shop", json!(2), "Published", NEW),
            revision("shop", json!(1), "Published", OLD),
        ],
    );
    let edge = holding("edge", &edge(NEW));
    let list = apps(&[&porch, &edge], &ActiveRules::default(), NOW);
    let [app] = packages(&list)[..] else { panic!("{list:?}") };
    assert_eq!((&*app.app.home, &*app.app.target, &*app.app.namespace), ("porch", "edge", "porch-demo"));
    assert_eq!((&*app.app.name, app.key.to_string()), ("edge1.shop", "package/shop".to_owned()));
    assert_eq!(
        (app.health, app.sync.state, names(app)),
        (Status::Current, SyncState::Synced, vec!["shop", "shop-more"])
    );
    assert_eq!(
        app.message,
        "v2 (Published), synced by RootSync config-management-system/root-sync at 22222222"
    );
    assert_eq!((app.sync.desired.as_deref(), app.sync.applied.as_deref()), (Some("v2"), Some("v2")));
    assert_eq!(app.sync.last_success.map(|at| at.to_string()).as_deref(), Some("2026-03-01T11:20:00Z"));
    // Porch claims nothing: the sync does.
    assert_eq!(list.errors, []);
    assert_eq!(list.apps.len(), 2);

    let clusters: [&dyn Objects; 2] = [&porch, &edge];
    let detail = AppDetailList::new(&[app], &list, &clusters, &ActiveRules::default(), NOW);
    let row = &detail.items[0];
    assert_eq!(row.application.path.as_deref(), Some("shop"));
    let delivery: Vec<_> = row
        .reconciliation
        .delivery
        .iter()
        .map(|row| (&*row.kind, &*row.name, row.revision.as_deref()))
        .collect();
    assert_eq!(
        delivery,
        [("PackageRevision", "edge1.shop.2", Some("v2")), ("RootSync", "root-sync", Some(NEW))]
    );
    let [source] = row.reconciliation.sources.as_slice() else { panic!("{row:?}") };
    assert_eq!((&*source.name, source.revision.as_deref()), ("edge1", Some(NEW)));
}

#[test]
fn a_package_with_invalid_names_is_reported_without_a_row() {
    for (repository, package) in [
        ("q flux-kustomization/flux-system/infra z", "apps"),
        ("edge1", "$(reboot)"),
        ("edge1", "a//b"),
        ("edge1", "a/b;c"),
    ] {
        let mut odd = revision("apps", json!(1), "Published", OLD);
        odd["spec"]["repository"] = json!(repository);
        odd["spec"]["packageName"] = json!(package);
        let list = apps_of(&holding("porch", &[odd]));
        assert_eq!(list.apps, [], "{repository} {package}");
        let [error] = list.errors.as_slice() else { panic!("{list:?}") };
        assert_eq!(error.error.reason, "Malformed");
    }
}

/// An author of a Repository can name any address.
#[test]
fn objects_of_a_foreign_package_delivered_by_flux_are_unconfirmed() {
    let source = json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"namespace": "porch-demo", "name": "infra"},
        "spec": {"url": REPO, "ref": {"branch": "main"}}});
    let delivering = |namespace: &str| {
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": namespace, "name": "infra", "generation": 1},
            "spec": {"path": "./shop", "sourceRef": {"kind": "GitRepository", "namespace": "porch-demo", "name": "infra"}},
            "status": {"observedGeneration": 1, "inventory": {"entries": [{"id": "shop_shop__ConfigMap", "v": "v1"}]}},
        })
    };
    let unconfirmed = |namespace: &str| {
        let mut object = managed("shop", None);
        object["metadata"]["labels"] = json!({
            "kustomize.toolkit.fluxcd.io/name": "infra", "kustomize.toolkit.fluxcd.io/namespace": namespace});
        let objects = [
            repository(true),
            revision("shop", json!(1), "Published", OLD),
            source.clone(),
            delivering(namespace),
            object,
        ];
        let list = apps_of(&holding("hub", &objects));
        let [package] = packages(&list)[..] else { panic!("{list:?}") };
        (names(package).len(), package.unconfirmed())
    };
    assert_eq!(unconfirmed("flux-system"), (1, 1));
    assert_eq!(unconfirmed("porch-demo"), (1, 0));
}

#[test]
fn the_synced_revision_is_never_guessed() {
    use SyncState::{Failed, OutOfSync, Synced, Syncing, Unknown};

    let with = |change: &dyn Fn(&mut Value)| {
        let mut objects = edge(HEAD);
        change(&mut objects[0]);
        objects
    };
    let read = |at: &str| {
        let mut repository = repository(true);
        repository["status"]["gitCommitHash"] = json!(HEAD);
        repository["status"]["lastFullSyncTime"] = json!(at);
        repository
    };
    let cannot = "commit 33333333 is synced; cannot tell whether it contains v2 of the package";
    let by = |commit: &str| {
        format!("v2 (Published), synced by RootSync config-management-system/root-sync at {commit}")
    };
    for (case, repository, objects, state, applied, message) in [
        ("same", repository(true), edge(NEW), Synced, Some("v2"), by("22222222")),
        ("an older revision", repository(true), edge(OLD), OutOfSync, Some("v1"), by("11111111")),
        ("another commit", repository(true), edge(HEAD), Unknown, None, cannot.to_owned()),
        (
            "the branch as Porch read it later",
            read("2026-03-01T10:05:00Z"),
            edge(HEAD),
            Synced,
            Some("v2"),
            by("33333333"),
        ),
        (
            "the branch as Porch read it before",
            read("2026-03-01T09:55:00Z"),
            edge(HEAD),
            Unknown,
            None,
            cannot.to_owned(),
        ),
        (
            "failing",
            repository(true),
            with(&|sync| {
                sync["status"]["source"]["errors"] = json!([{"code": "2004", "errorMessage": "KNV2004: no"}])
            }),
            Failed,
            None,
            "KNV2004: no".to_owned(),
        ),
        (
            "syncing",
            repository(true),
            with(&|sync| sync["status"]["conditions"][0]["status"] = json!("True")),
            Syncing,
            None,
            by("33333333"),
        ),
    ] {
        let revisions =
            [revision("shop", json!(2), "Published", NEW), revision("shop", json!("v1"), "Published", OLD)];
        let all: Vec<Value> = revisions.into_iter().chain([repository]).chain(objects).collect();
        let list = apps_of(&holding("prod", &all));
        let [app] = packages(&list)[..] else { panic!("{case}: {list:?}") };
        assert_eq!(
            (app.sync.state, app.sync.applied.as_deref(), &*app.message),
            (state, applied, &*message),
            "{case}"
        );
        assert_eq!((app.health, app.counts.total()), (Status::Current, 2), "{case}");
    }
}

#[test]
fn unpublished_packages_are_not_apps() {
    for (repository, revision, is_app) in [
        (repository(true), revision("shop", json!(2), "Published", NEW), true),
        (repository(true), revision("shop", json!(2), "DeletionProposed", NEW), true),
        (repository(true), revision("shop", json!(0), "Draft", NEW), false),
        (repository(true), revision("shop", json!(0), "Proposed", NEW), false),
        // The package as it is on the branch, of new and of old versions of Porch.
        (repository(true), revision("shop", json!(-1), "Published", NEW), false),
        (repository(true), revision("shop", json!("main"), "Published", NEW), false),
        (repository(false), revision("shop", json!(2), "Published", NEW), false),
    ] {
        let list = apps_of(&holding("prod", &[vec![repository, revision.clone()], edge(NEW)].concat()));
        assert_eq!(packages(&list).len(), usize::from(is_app), "{revision}");
    }
    // v1alpha2 has the revision in its status, and conditions of its own.
    let mut second = revision("shop", json!(2), "Published", NEW);
    second["apiVersion"] = json!("porch.kpt.dev/v1alpha2");
    second["spec"].as_object_mut().unwrap().remove("revision");
    second["status"]["revision"] = json!(2);
    second["status"]["publishedAt"] = second["status"]["publishTimestamp"].take();
    second["status"]["conditions"] =
        json!([{"type": "Ready", "status": "False", "reason": "RenderFailed", "message": "fn failed"}]);
    let list = apps_of(&holding("prod", &[vec![repository(true), second], edge(NEW)].concat()));
    let [app] = packages(&list)[..] else { panic!("{list:?}") };
    assert_eq!(
        (app.sync.applied.as_deref(), app.health, &*app.message),
        (Some("v2"), Status::InProgress, "fn failed")
    );
}

#[test]
fn a_package_without_a_known_carrier_is_unknown() {
    let alone = |objects: Vec<Value>| {
        let all: Vec<Value> =
            [revision("shop", json!(2), "Published", NEW)].into_iter().chain(objects).collect();
        let list = apps_of(&holding("prod", &all));
        let [app] = packages(&list)[..] else { panic!("{list:?}") };
        assert_eq!((app.health, app.sync.state, app.in_reach), (Status::Unknown, SyncState::Unknown, false));
        app.message.clone()
    };
    let nothing = "v2 (Published): no app that was read syncs shop of http://172.18.255.200:3000/nephio/edge1.git, \
        branch main";
    assert_eq!(alone(vec![repository(true)]), nothing);
    for (path, value) in
        [("branch", "edge"), ("dir", "shopping"), ("repo", "http://172.18.255.200:3000/nephio/edge2.git")]
    {
        let mut objects = edge(NEW);
        objects[0]["spec"]["git"][path] = json!(value);
        objects.push(repository(true));
        assert_eq!(alone(objects), nothing, "{path}");
    }
    assert_eq!(alone(edge(NEW)), "v2 (Published): Repository porch-demo/edge1 not found");
}

#[test]
fn objects_that_may_belong_to_the_package_are_kept() {
    let objects = |dir: &str, extra: &[Value]| -> App {
        let mut objects = vec![repository(true), revision("shop", json!(2), "Published", NEW)];
        objects.extend([root_sync(dir, NEW), inventory(&["shop", "deep", "gone", "bare"])]);
        objects.extend([
            managed("shop", Some("shop/a.yaml")),
            managed("deep", Some("shop/deep/a.yaml")),
            managed("bare", None),
        ]);
        objects.extend(extra.iter().cloned());
        let list = apps_of(&holding("prod", &objects));
        (*packages(&list).iter().find(|app| app.app.name == "edge1.shop").unwrap()).clone()
    };
    // Of a sync of several packages nobody can say whose an object was that is not there.
    let app = objects("/", &[]);
    assert_eq!((app.health, names(&app)), (Status::Unknown, vec!["shop", "deep"]));
    assert_eq!(app.message, "ConfigMap shop/gone not found; it may belong to this package");
    // Of a sync of this package all are its own.
    let app = objects("shop", &[]);
    assert_eq!((app.health, names(&app)), (Status::NotFound, vec!["shop", "deep", "gone", "bare"]));
    // What a package in a folder of this one holds is not its own.
    let app = objects(
        "shop",
        &[managed("gone", Some("other/a.yaml")), revision("shop/deep", json!(1), "Published", NEW)],
    );
    assert_eq!((app.health, names(&app)), (Status::Current, vec!["shop"]));
}

/// An object with the labels that kustomize-controller writes.
fn of_kustomization(mut object: Value, namespace: &str, name: &str) -> Value {
    object["metadata"]["labels"] = json!({
        "kustomize.toolkit.fluxcd.io/name": name, "kustomize.toolkit.fluxcd.io/namespace": namespace});
    object
}

/// A Kustomization of a namespace that says it delivers the package `shop`, with its source.
fn grabbing(namespace: &str, entry: Option<&str>) -> [Value; 2] {
    let entries: Vec<Value> = entry.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    [
        json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"namespace": namespace, "name": "grab"},
            "spec": {"url": REPO, "ref": {"branch": "main"}},
            "status": {"artifact": {"revision": format!("main@sha1:{NEW}")}},
        }),
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": namespace, "name": "grab", "generation": 1},
            "spec": {"path": "./shop", "sourceRef": {"kind": "GitRepository", "name": "grab"}},
            "status": {
                "observedGeneration": 1, "lastAppliedRevision": format!("main@sha1:{NEW}"),
                "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied", "observedGeneration": 1}],
                "inventory": {"entries": entries},
            },
        }),
    ]
}

/// The address of a repository is widely known, and an author in any namespace can name it there.
#[test]
fn a_tenant_cannot_claim_to_deliver_a_foreign_package() {
    let row = |more: &[Value]| {
        let package = [repository(true), revision("shop", json!(2), "Published", NEW)];
        let list = apps_of(&holding("prod", &[&package[..], more].concat()));
        let [app] = packages(&list)[..] else { panic!("{list:?}") };
        app.clone()
    };
    let mut failing = edge(NEW);
    failing[2]["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:00:00Z");
    failing[2]["metadata"]["finalizers"] = json!(["example.com/never"]);
    let theirs = row(&failing);
    assert_eq!((theirs.health, theirs.sync.state), (Status::Terminating, SyncState::Synced));
    // RootSyncs are where only admins write, and a longer folder does not go before that.
    let own =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "team-a", "name": "own"}});
    let own = of_kustomization(own, "team-a", "grab");
    for entry in [None, Some("team-a_own__ConfigMap")] {
        let grab = [&grabbing("team-a", entry)[..], std::slice::from_ref(&own)].concat();
        assert_eq!(row(&[&failing[..], &grab].concat()), theirs);
        // What marks objects of other namespaces goes before it too.
        let [source, mut flux] = grabbing("flux-system", Some("shop_shop__ConfigMap"));
        flux["spec"]["path"] = json!("./shop");
        let flux = [source, flux, of_kustomization(managed("shop", None), "flux-system", "grab")];
        let marked = row(&flux);
        assert_eq!((marked.health, names(&marked)), (Status::Current, vec!["shop"]));
        assert_eq!(row(&[&flux[..], &grab].concat()), marked);
        // Alone it proves nothing.
        let app = row(&grab);
        assert_eq!((app.health, names(&app)), (Status::Unknown, vec![]), "{}", app.message);
        assert!(app.message.contains("Kustomization team-a/grab"), "{}", app.message);
    }
    // Of two that prove as much neither goes first.
    let both = [&grabbing("team-a", None)[..], &grabbing("flux-system", None)].concat();
    let app = row(&both);
    assert_eq!(app.health, Status::Unknown);
    for name in ["flux-system/grab", "team-a/grab"] {
        assert!(app.message.contains(name), "{}", app.message);
    }
    // Who may write beside the package is believed.
    let app = row(&grabbing("porch-demo", None));
    assert_eq!((app.health, app.sync.state), (Status::Current, SyncState::Synced), "{}", app.message);
}

/// `wait` reads only the objects of the apps that it waits for, and those of a package belong to its carrier.
#[test]
fn a_plan_for_one_package_reads_its_objects() {
    let objects = [vec![repository(true), revision("shop", json!(2), "Published", NEW)], edge(NEW)].concat();
    let asked = ReadQuery {
        only: vec!["porch/porch-demo/edge1.shop".parse().unwrap()],
        label_groups: false,
        ..ReadQuery::default()
    };
    let (live, _) = Server::new(objects.clone()).read("prod", &asked);
    let list = apps_of(&live);
    let [app] = packages(&list)[..] else { panic!("{list:?}") };
    assert_eq!((app.health, names(app)), (Status::Current, vec!["shop", "shop-more"]), "{}", app.message);
}

#[test]
fn packages_delivered_by_flux_are_found() {
    let flux = |path: &str| {
        let source = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"namespace": "flux-system", "name": "edge1"},
            "spec": {"url": "ssh://git@172.18.255.200:3000/nephio/edge1.git", "ref": {"branch": "main"}},
            "status": {"artifact": {"revision": format!("main@sha1:{NEW}")}},
        });
        let app = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": "flux-system", "name": "edge1", "generation": 1},
            "spec": {"path": path, "sourceRef": {"kind": "GitRepository", "name": "edge1"}},
            "status": {
                "observedGeneration": 1, "lastAppliedRevision": format!("main@sha1:{NEW}"),
                "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied", "observedGeneration": 1}],
                "inventory": {"entries": [{"id": "shop_shop__ConfigMap", "v": "v1"}]},
            },
        });
        let objects = [
            source,
            app,
            repository(true),
            revision("shop", json!(2), "Published", NEW),
            of_kustomization(managed("shop", None), "flux-system", "edge1"),
        ];
        let list = apps_of(&holding("prod", &objects));
        let [app] = packages(&list)[..] else { panic!("{list:?}") };
        app.clone()
    };
    let app = flux("./shop");
    assert_eq!((app.health, app.sync.state, names(&app)), (Status::Current, SyncState::Synced, vec!["shop"]));
    let app = flux("./");
    assert_eq!((app.health, app.sync.state, names(&app)), (Status::Unknown, SyncState::Synced, vec![]));
    assert!(app.message.contains("delivers several packages, shop among them"), "{}", app.message);
}

#[test]
fn packages_are_listed_only_if_discovery_shows_them() {
    let objects = [vec![repository(true), revision("shop", json!(2), "Published", NEW)], edge(NEW)].concat();
    let (live, log) = Server::new(objects.clone()).read("prod", &ReadQuery::default());
    log.assert_no_repetition();
    assert!(log.0.len() <= 3, "{:?}", log.paths());
    assert_eq!(apps_of(&live), apps_of(&holding("prod", &objects)));

    let (other, log) = Server::new(edge(NEW)).read("prod", &ReadQuery::default());
    assert!(log.all().all(|read| !read.group.ends_with("porch.kpt.dev")), "{:?}", log.paths());
    assert_eq!(
        plan_reads(&other, &ReadQuery::default(), &ActiveRules::default(), &mut Rounds::default()),
        []
    );

    // The sync is in another namespace than the package.
    let asked = ReadQuery { namespace: Some("porch-demo".to_owned()), ..ReadQuery::default() };
    let list = apps_of(&Server::new(objects.clone()).read("prod", &asked).0);
    assert_eq!(packages(&list), packages(&apps_of(&holding("prod", &objects))));

    let mut server = Server::new(objects);
    server.forbidden.push("config.porch.kpt.dev/Repository");
    let list = apps_of(&server.read("prod", &ReadQuery::default()).0);
    let [app] = packages(&list)[..] else { panic!("{list:?}") };
    assert_eq!(app.health, Status::Unknown);
    assert!(app.message.contains("Repository porch-demo/edge1 cannot be read"), "{}", app.message);
}

#[test]
fn a_package_in_an_endless_folder_is_unknown() {
    for directory in ["a/".repeat(200), "b".repeat(2_000)] {
        let mut odd = revision("shop", json!(1), "Published", OLD);
        odd["status"]["selfLock"]["git"]["directory"] = json!(directory);
        let objects = [vec![repository(true), odd], edge(OLD)].concat();
        let list = apps_of(&holding("prod", &objects));
        let [app] = packages(&list)[..] else { panic!("{list:?}") };
        assert_eq!(app.health, Status::Unknown);
        assert!(app.message.contains("too long"), "{}", app.message);
        assert!(app.message.len() < 300, "{}", app.message.len());
        assert!(
            app.source.as_ref().and_then(|source| source.path.as_ref()).is_none_or(|path| path.len() < 1_100)
        );
    }
}

/// The author of a namespace may delete its objects, and write their annotations.
#[test]
fn objects_of_one_namespace_do_not_decide_packages_of_others() {
    let mine = |path: &str, fails: bool| {
        let mut object = managed("mine", Some(path));
        object["metadata"]["namespace"] = json!("aaa");
        if fails {
            object["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:00:00Z");
            object["metadata"]["finalizers"] = json!(["example.com/never"]);
        }
        object
    };
    let rows = |mine: Option<Value>| {
        let mut objects = edge(NEW);
        objects[1]["spec"]["resources"]
            .as_array_mut()
            .unwrap()
            .push(json!({"group": "", "kind": "ConfigMap", "namespace": "aaa", "name": "mine"}));
        objects.extend([
            repository(true),
            revision("shop", json!(1), "Published", NEW),
            revision("mine", json!(1), "Published", NEW),
        ]);
        objects.extend(mine);
        let list = apps_of(&holding("prod", &objects));
        let of = |name: &str| {
            let app = packages(&list).into_iter().find(|app| app.app.name == name).unwrap();
            (
                app.health,
                names(app).iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(),
                app.message.to_string(),
            )
        };
        (of("edge1.shop"), of("edge1.mine"))
    };
    let (honest, own) = rows(Some(mine("mine/a.yaml", true)));
    assert_eq!((honest.0, own.0), (Status::Current, Status::Terminating));
    // What is gone may have been of any package: that of the namespace it was in is not known.
    let (shop, own) = rows(None);
    assert_eq!((shop.0, &shop.1), (Status::Current, &honest.1));
    assert!(shop.2.contains("ConfigMap aaa/mine not found"), "{}", shop.2);
    assert_eq!(own.0, Status::Unknown);
    // What names a folder of others is told, and changes nothing there.
    let (shop, own) = rows(Some(mine("shop/a.yaml", true)));
    assert_eq!((shop.0, &shop.1), (Status::Current, &honest.1));
    assert!(shop.2.contains("ConfigMap aaa/mine"), "{}", shop.2);
    assert_eq!(own.0, Status::Unknown);
}
