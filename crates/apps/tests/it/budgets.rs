//! Limits on the cost of declarations: many small apps that name one large object read it once, and share its
//! content.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use taffrail_api::TrustReport;
use taffrail_apps::trust::TrustShape;
use taffrail_apps::{AppList, ClusterFacts, Objects, Snapshot, SyncState, apps};
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};
use taffrail_status::assess::Event;
use taffrail_status::{ActiveRules, ClusterState, Listing, Observed, Presence, Status};

use super::dump::{NOW, apps_of, base64, holding};

/// A cluster that counts how often one of its objects is looked up.
struct Counted {
    inner: Snapshot,
    key: ObjectKey,
    gets: AtomicUsize,
}

impl ClusterState for Counted {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        self.gets.fetch_add(usize::from(key == self.key.as_ref()), Ordering::Relaxed);
        self.inner.get(key)
    }
    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        self.inner.of_kind(group, kind, namespace)
    }
    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.inner.owned(uid, namespace)
    }
    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.inner.dependents(uid, namespace)
    }
    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        self.inner.users(namespace, claim)
    }
    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        self.inner.in_namespace(namespace)
    }
    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        self.inner.definition(group, kind)
    }
    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        self.inner.events(about)
    }
    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.inner.is_observed(group, kind, namespace)
    }
    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        self.inner.tells_absence(group, kind, namespace)
    }
}

impl Objects for Counted {
    fn facts(&self) -> &ClusterFacts {
        self.inner.facts()
    }
    fn all(&self) -> Listing<'_> {
        self.inner.all()
    }
    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
        self.inner.is_namespaced(group, kind)
    }
}

/// Counts the lookups of `key` while the apps of a cluster are listed.
fn lookups(objects: &[Value], key: ObjectKey) -> usize {
    let cluster = Counted { inner: holding("prod", objects), key, gets: AtomicUsize::new(0) };
    apps(&[&cluster], &ActiveRules::default(), NOW);
    cluster.gets.into_inner()
}

fn kustomization(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "aaa", "name": name, "generation": 1}, "spec": spec,
        "status": {"observedGeneration": 1, "inventory": {"entries": []},
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded"}]}})
}

fn source(kind: &str) -> Value {
    json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind,
        "metadata": {"namespace": "aaa", "name": "r"},
        "spec": {"url": "https://git.example/r.git", "ref": {"branch": "main"}},
        "status": {"artifact": {"revision": "main@sha1:abc"}}})
}

/// The maximum number of lookups of one object, however many apps name it.
const FEW: usize = 10;

#[test]
fn a_source_of_many_apps_is_read_once() {
    let of_kustomizations = |at: usize| {
        kustomization(&format!("k{at}"), json!({"sourceRef": {"kind": "GitRepository", "name": "r"}}))
    };
    let of_releases = |at: usize| {
        json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"namespace": "aaa", "name": format!("h{at}")},
            "spec": {"chartRef": {"kind": "OCIRepository", "name": "r"}},
            "status": {"inventory": {"entries": []}}})
    };
    let of_charts = |at: usize| {
        json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"namespace": "aaa", "name": format!("h{at}")},
            "spec": {"chartRef": {"kind": "HelmChart", "name": "r"}},
            "status": {"inventory": {"entries": []}}})
    };
    let apps: [(&str, &dyn Fn(usize) -> Value); 3] =
        [("GitRepository", &of_kustomizations), ("OCIRepository", &of_releases), ("HelmChart", &of_charts)];
    for (kind, app) in apps {
        let objects: Vec<Value> = (0..40).map(app).chain([source(kind)]).collect();
        let gets = lookups(&objects, ObjectKey::new("source.toolkit.fluxcd.io", kind, "aaa", "r"));
        assert!(gets <= FEW, "{kind}: {gets}");
    }
}

#[test]
fn the_settings_of_an_argo_cd_are_read_once() {
    const APPS: usize = 40;
    let application = |at: usize| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "argocd", "name": format!("a{at}")},
            "spec": {"destination": {"server": "https://kubernetes.default.svc"}}})
    };
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "argocd", "name": "argocd-cm"}, "data": {"a": "b"}});
    let objects: Vec<Value> = (0..APPS).map(application).chain([settings]).collect();
    let gets = lookups(&objects, ObjectKey::new("", "ConfigMap", "argocd", "argocd-cm"));
    // That it is there is asked for each Application; its data are read once.
    assert!(gets <= APPS + FEW, "{gets}");
}

fn kubeconfig(server: &str) -> Value {
    let config = format!(
        "current-context: q\ncontexts: [{{name: q, context: {{cluster: z}}}}]\n\
         clusters: [{{name: z, cluster: {{server: {server}}}}}]\n"
    );
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "aaa", "name": "s"},
        "data": {"value": base64(&config), "other": base64(&config)}})
}

#[test]
fn a_kubeconfig_of_many_apps_is_read_once() {
    let app =
        |at: usize| kustomization(&format!("k{at}"), json!({"kubeConfig": {"secretRef": {"name": "s"}}}));
    let objects: Vec<Value> = (0..40).map(app).chain([kubeconfig("https://10.0.0.1")]).collect();
    let gets = lookups(&objects, ObjectKey::new("", "Secret", "aaa", "s"));
    assert!(gets <= FEW, "{gets}");
    let map =
        |at: usize| kustomization(&format!("k{at}"), json!({"kubeConfig": {"configMapRef": {"name": "s"}}}));
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "aaa", "name": "s"},
        "data": {"address": "https://10.0.0.1"}});
    let objects: Vec<Value> = (0..40).map(map).chain([config_map]).collect();
    let gets = lookups(&objects, ObjectKey::new("", "ConfigMap", "aaa", "s"));
    assert!(gets <= FEW, "{gets}");
}

#[test]
fn each_key_of_a_kubeconfig_secret_names_its_own_cluster() {
    let mut edge = Snapshot::dump("edge", NOW);
    edge.add_server("https://10.0.0.1");
    let app = |name: &str, key: Value| {
        kustomization(name, json!({"kubeConfig": {"secretRef": {"name": "s", "key": key}}}))
    };
    let mut secret = kubeconfig("https://10.0.0.1");
    secret["data"]["other"] = kubeconfig("https://10.0.0.2")["data"]["value"].clone();
    secret["data"]["huge"] = json!(base64(&format!("# {}\n", "x".repeat(300_000))));
    let objects = [
        app("a", Value::Null),
        app("b", json!("other")),
        app("c", json!("huge")),
        app("d", json!("none")),
        secret,
    ];
    let list = apps(&[&holding("hub", &objects), &edge], &ActiveRules::default(), NOW);
    let targets: Vec<_> = list.apps.iter().map(|row| (&*row.app.name, row.in_reach)).collect();
    assert_eq!(targets, [("b", false), ("c", false), ("d", false), ("a", true)]);
    assert!(list.apps[0].message.contains("https://10.0.0.2"), "{}", list.apps[0].message);
}

/// Returns the total length of all texts about apps and their objects.
fn told(list: &AppList) -> usize {
    let of_object = |it: &taffrail_apps::Resource| {
        it.message.len() + it.chain.iter().map(|link| link.message.len()).sum::<usize>()
    };
    let of_row = |row: &taffrail_apps::App| {
        let source = row.source.as_ref().map_or(0, |it| it.url.as_ref().map_or(0, String::len));
        row.message.len()
            + row.resources.iter().map(of_object).sum::<usize>()
            + row.sync.desired.as_ref().map_or(0, String::len)
            + source
    };
    list.apps.iter().map(of_row).sum()
}

#[test]
fn long_texts_are_cut_before_many_apps_copy_them() {
    const LONG: usize = 50_000;
    let long = "a".repeat(LONG);
    let mut large = source("GitRepository");
    large["spec"]["url"] = json!(format!("https://{long}"));
    large["status"]["artifact"]["revision"] = json!(format!("main@sha1:{long}"));
    let of_source = |at: usize| {
        kustomization(&format!("k{at}"), json!({"sourceRef": {"kind": "GitRepository", "name": "r"}}))
    };
    let of_config =
        |at: usize| kustomization(&format!("k{at}"), json!({"kubeConfig": {"secretRef": {"name": "s"}}}));
    let resource =
        |at: usize| json!({"kind": "ConfigMap", "version": "v1", "namespace": "x", "name": format!("c{at}")});
    let resources: Vec<Value> = (0..20).map(resource).collect();
    let application = |destination: Value, health: &str| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "aaa", "name": "a"}, "spec": {"destination": destination},
            "status": {"resources": resources, "health": {"status": health}}})
    };
    let url = format!("https://{long}");
    let cases = [
        ("source", (0..20).map(of_source).chain([large]).collect::<Vec<_>>()),
        ("kubeconfig", (0..20).map(of_config).chain([kubeconfig(&url)]).collect()),
        ("server", vec![application(json!({"server": url}), "")]),
        ("name", vec![application(json!({"name": long}), "")]),
        ("health", vec![application(json!({"name": "q"}), &long)]),
    ];
    for (case, objects) in cases {
        let length = told(&apps_of(&holding("prod", &objects)));
        assert!(length < 3 * LONG, "{case}: {length}");
    }
}

#[test]
fn a_revision_that_is_too_long_is_unknown_and_not_cut() {
    let mut large = source("GitRepository");
    large["status"]["artifact"]["revision"] = json!("a".repeat(5_000));
    let mut app = kustomization("k", json!({"sourceRef": {"kind": "GitRepository", "name": "r"}}));
    app["status"]["lastAppliedRevision"] = json!("a".repeat(4_999));
    let list = apps_of(&holding("prod", &[large, app]));
    assert_eq!((list.apps[0].sync.state, &list.apps[0].sync.desired), (SyncState::Unknown, &None));
}

#[test]
fn reports_of_malformed_entries_are_limited_per_namespace() {
    let app = |namespace: &str, at: usize| {
        let entries: Vec<_> = (0..40).map(|it| json!({"id": it.to_string()})).collect();
        let mut app = kustomization(&format!("k{at}"), json!({}));
        app["metadata"]["namespace"] = json!(namespace);
        app["status"]["inventory"]["entries"] = json!(entries);
        app
    };
    let listless = |at: usize| {
        let mut app = kustomization(&format!("l{at}"), json!({}));
        app["status"]["inventory"]["entries"] = json!("none");
        app
    };
    let objects = (0..30).map(|at| app("aaa", at)).chain([app("shop", 1)]).chain((0..300).map(listless));
    let list = apps_of(&holding("prod", &objects.collect::<Vec<_>>()));
    let of = |namespace: &str| {
        let is_it = |message: &&str| message.contains(&format!("Kustomization {namespace}/"));
        list.errors.iter().map(|it| &*it.error.message).filter(is_it).count()
    };
    assert_eq!((of("aaa"), of("shop")), (200, 40));
    let more = "apps in namespace aaa: 1300 more errors are not listed";
    assert!(list.errors.iter().any(|it| it.error.message == more), "{:?}", list.errors.last());
}

#[test]
fn the_field_managers_of_a_drifted_object_are_read_once() {
    const APPS: usize = 40;
    let application = |at: usize| {
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "aaa", "name": format!("a{at}")},
            "spec": {"destination": {"server": "https://kubernetes.default.svc"}, "syncPolicy": {"automated": {}}},
            "status": {"sync": {"status": "OutOfSync", "revision": "1"},
                "operationState": {"phase": "Succeeded", "finishedAt": "2026-02-01T00:00:00Z", "syncResult": {"revision": "1"}},
                "resources": [{"version": "v1", "kind": "ConfigMap", "namespace": "aaa", "name": "c", "status": "OutOfSync"}]}})
    };
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "aaa", "name": "c",
        "managedFields": [{"manager": "kubectl", "operation": "Update", "time": "2026-02-02T00:00:00Z"}]}});
    let objects: Vec<Value> = (0..APPS).map(application).chain([object]).collect();
    let since: Vec<_> = apps_of(&holding("prod", &objects))
        .apps
        .iter()
        .filter_map(|row| row.problem()?.since.map(|at| at.to_string()))
        .collect();
    assert_eq!(since, vec!["2026-02-02T00:00:00Z"; APPS]);
    // Each app judges it; who wrote it is read once.
    let gets = lookups(&objects, ObjectKey::new("", "ConfigMap", "aaa", "c"));
    assert!(gets <= APPS + FEW, "{gets}");
}

#[test]
fn trust_reads_a_source_of_many_apps_once() {
    let of_git = |at: usize| {
        let mut app =
            kustomization(&format!("k{at}"), json!({"sourceRef": {"kind": "GitRepository", "name": "r"}}));
        app["status"]["lastAppliedRevision"] = json!("main@sha1:old");
        app
    };
    let of_chart = |at: usize| {
        json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"namespace": "aaa", "name": format!("h{at}"), "generation": 1},
            "spec": {"chartRef": {"kind": "HelmChart", "name": "r"}},
            "status": {"observedGeneration": 1, "inventory": {"entries": []},
                "conditions": [{"type": "Ready", "status": "True", "reason": "InstallSucceeded", "observedGeneration": 1}]}})
    };
    let cases: [(&str, &dyn Fn(usize) -> Value); 2] = [("GitRepository", &of_git), ("HelmChart", &of_chart)];
    for (kind, app) in cases {
        let mut source = source(kind);
        source["spec"]["suspend"] = json!(true);
        source["status"]["conditions"] = json!([{"type": "Ready", "status": "False", "message": "m"}]);
        source["status"]["artifact"]["lastUpdateTime"] = json!("2026-01-01T00:00:00Z");
        let objects: Vec<Value> = (0..40).map(app).chain([source]).collect();
        let key = ObjectKey::new("source.toolkit.fluxcd.io", kind, "aaa", "r");
        let cluster = Counted { inner: holding("prod", &objects), key, gets: AtomicUsize::new(0) };
        let list = apps(&[&cluster], &ActiveRules::default(), NOW);
        let asked: Vec<_> = list.apps.iter().collect();
        cluster.gets.store(0, Ordering::Relaxed);
        let report = TrustReport::new(&asked, &list, &[&cluster], NOW, TrustShape::default());
        let found = |reason: &str| report.items.iter().any(|it| it.reason == reason && it.app_count == 40);
        for reason in ["SourceSuspended", "SourceFailed", "RevisionUntried"] {
            assert!(found(reason), "{kind}: {reason}");
        }
        let gets = cluster.gets.into_inner();
        assert!(gets <= 2 * FEW, "{kind}: {gets}");
    }
}

#[test]
fn marks_of_a_large_object_are_the_same_for_all_apps() {
    const APPS: usize = 300;
    // What large objects say is kept, and of small ones it is found out again.
    for size in [10, 900_000] {
        let listed = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "c",
            "annotations": {"a": "x".repeat(size)}}});
        let app = |at: usize| {
            let mut app = kustomization(&format!("k{at}"), json!({}));
            app["status"]["inventory"]["entries"] = json!([{"id": "shop_c__ConfigMap", "v": "v1"}]);
            app
        };
        let cluster = holding("prod", &(0..APPS).map(app).chain([listed]).collect::<Vec<_>>());
        let list = apps_of(&cluster);
        assert_eq!(list.apps.len(), APPS);
        assert!(list.apps.iter().all(|row| row.unconfirmed() == 1 && row.health == Status::Current));
    }
}
