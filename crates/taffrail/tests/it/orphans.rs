//! `get resources --orphaned`: objects that no app declares.

use serde_json::{Value, json};
use snapbox::str;
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::objects::{kustomizations, namespace};

use super::served::Served;
use super::{Answer, assert_shown, taffrail};

/// The objects of a cluster: an app that lists two of them, and others.
fn objects() -> Vec<Value> {
    let kustomization = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "flux-system", "name": "shop", "generation": 1},
        "spec": {"interval": "5m", "path": "./", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {"observedGeneration": 1, "lastAppliedRevision": "main@sha1:1",
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied",
                "lastTransitionTime": "2026-03-01T10:00:00Z", "observedGeneration": 1}],
            "inventory": {"entries": [{"id": "shop_settings__ConfigMap", "v": "v1"}]}}});
    let map = |namespace: &str, name: &str, metadata: Value| {
        let mut object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}});
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["name"] = json!(name);
        object
    };
    let of_flux = json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}});
    let owned = json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "by-hand", "uid": "u", "controller": true}]});
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "shop", "name": name}});
    vec![
        kustomization,
        map("shop", "settings", of_flux.clone()),
        map("shop", "left-behind", of_flux),
        map("shop", "by-hand", json!({})),
        map("shop", "owned", owned),
        map("shop", "kube-root-ca.crt", json!({})),
        map("shop", "leader", json!({"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}})),
        map("shop", "labelled", json!({"labels": {"app.kubernetes.io/instance": "pay"}})),
        map("other", "elsewhere", json!({})),
        map("kube-system", "extension-apiserver-authentication", json!({})),
        account("default"),
        account("robot"),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {"namespace": "shop", "name": "robot-token", "annotations": {"kubernetes.io/service-account.name": "robot"}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "default", "name": "kubernetes"}, "spec": {"clusterIP": "10.0.0.1"}}),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": "shop", "name": "db"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "db"}}, "serviceName": "db",
                "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": "db:1"}]}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}}}}]}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "shop", "name": "data-db-0"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Bound"}}),
    ]
}

fn ask(arguments: &[&str]) -> Answer {
    let dump: String = objects().iter().map(|object| format!("---\n{object}\n")).collect();
    let all =
        [&["get", "resources", "--orphaned", "--from", "-", "--now", "2026-03-01T12:00:00Z"], arguments]
            .concat();
    taffrail(&all, &dump)
}

/// An answer in JSON.
pub(super) fn sample() -> Answer {
    ask(&["-o", "json"])
}

#[test]
fn objects_that_no_app_declares_are_listed_without_those_of_kubernetes() {
    assert_shown(
        &ask(&[]).stdout,
        str![[r#"
NAMESPACE   KIND             NAME          STATUS   MESSAGE
other       ConfigMap        elsewhere     Ready    Resource is always ready
shop        ConfigMap        by-hand       Ready    Resource is always ready
shop        ConfigMap        left-behind   Ready    carries the mark of flux-kustomization flux-system/shop, which does not list it
shop        ServiceAccount   robot         Ready    Resource is current
shop        StatefulSet      db            Ready    All replicas scheduled as expected. Replicas: 0

"#]],
    );
    let names = |arguments: &[&str]| ask(&[&["-o", "name"], arguments].concat()).stdout;
    assert_eq!(names(&["-n", "other"]), "/ConfigMap/other/elsewhere\n");
    assert_eq!(names(&["--in-namespace", "other", "--kind", "cm"]), "/ConfigMap/other/elsewhere\n");
    assert_eq!(names(&["-n", "kube-system"]), "/ConfigMap/kube-system/extension-apiserver-authentication\n");
    assert!(ask(&["-n", "none"]).stderr.contains("No orphaned objects found in namespace none."));
    let json = ask(&["-o", "json", "-n", "other"]).json();
    assert_eq!((json["items"][0]["name"].as_str(), json["items"][0].get("app")), (Some("elsewhere"), None));
}

#[test]
fn a_live_namespace_gives_the_same_orphans_as_a_dump() {
    let served = Served::start(&["one"], |_, cluster| {
        cluster.apply(kustomizations()).unwrap();
        ["flux-system", "shop", "other"].into_iter().for_each(|name| cluster.apply(namespace(name)).unwrap());
        for object in objects() {
            let is_there = object["metadata"]["namespace"]
                .as_str()
                .is_some_and(|it| matches!(it, "shop" | "other" | "flux-system"));
            if is_there {
                cluster.apply(object).unwrap();
            }
        }
    });
    let live = served.ask(&["get", "resources", "--orphaned", "-n", "shop", "-o", "name"]);
    assert_eq!(
        (live.code, &*live.stdout),
        (0, &*ask(&["-n", "shop", "-o", "name"]).stdout),
        "{}",
        live.stderr
    );
    let all = served.ask(&["get", "resources", "--orphaned"]);
    assert_eq!(all.code, 2);
    assert!(
        all.stderr.contains("needs a namespace") && all.stderr.contains("taffrail dump"),
        "{}",
        all.stderr
    );
}

/// Two contexts: a cluster with an object that a tool marked and one that none did, and a cluster that does not answer.
struct Unread {
    served: Served,
    both: String,
}

impl Unread {
    fn start() -> Unread {
        let served = Served::start(&["one"], |_, cluster| {
            cluster.apply(kustomizations()).unwrap();
            cluster.apply(namespace("shop")).unwrap();
            let id = json!({"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/marked"});
            for (name, annotations) in [("marked", id), ("by-hand", json!({}))] {
                cluster
                    .apply(json!({"apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"namespace": "shop", "name": name, "annotations": annotations}}))
                    .unwrap();
            }
        });
        let file = served.folder.path().join("dark");
        let text = super::bad_clusters::kubeconfig(&[("dark", "http://127.0.0.1:1")]);
        std::fs::write(&file, text).unwrap();
        let both = format!("{}:{}", served.kubeconfig, file.display());
        Unread { served, both }
    }

    fn ask(&self, arguments: &[&str], contexts: &[&str]) -> Answer {
        let mut command = super::command(&[arguments, contexts, &["--timeout", "60s"]].concat());
        command.env("KUBECONFIG", &self.both);
        super::run(command, b"")
    }

    fn explained(&self, object: &str, contexts: &[&str]) -> String {
        let told = self.ask(&["explain", object, "-n", "shop"], contexts);
        told.stdout.lines().nth(1).unwrap_or_else(|| panic!("{}", told.stderr)).trim().to_owned()
    }
}

const ALL: &[&str] = &["--all-contexts"];

#[test]
fn an_object_whose_app_may_be_in_an_unread_cluster_belongs_to_no_known_app_only_without_a_mark() {
    let unread = Unread::start();
    assert_eq!(unread.explained("cm/marked", ALL), "marked for argo-application web, which is not shown");
    let marked = unread.ask(&["explain", "cm/marked", "-n", "shop"], ALL);
    let why = "\n  its app is not known: apps of dark could not be read\n";
    assert!(marked.stdout.contains(why), "{}", marked.stdout);
    let json = unread.ask(&["explain", "cm/marked", "-n", "shop", "-o", "json"], ALL).json();
    assert_eq!(json["ownersUnread"], json!(["dark"]), "{json}");
    assert_eq!(unread.explained("cm/by-hand", ALL), "belongs to no known app");
    let one = unread.ask(&["explain", "cm/marked", "-n", "shop"], &["--context", "one"]);
    let why = "\n  its app is not known: the one that it is marked for is not in what was read\n";
    assert!(one.stdout.contains(why), "{}", one.stdout);
}

#[test]
fn an_object_is_orphaned_only_if_all_that_may_own_it_was_read() {
    let unread = Unread::start();
    let orphans = ["get", "resources", "--orphaned", "-n", "shop", "-o", "name"];
    let alone = unread.ask(&orphans, &["--context", "one"]);
    assert_eq!((alone.code, &*alone.stdout), (0, "/ConfigMap/shop/by-hand\n/ConfigMap/shop/marked\n"));
    let all = unread.ask(&orphans, ALL);
    assert_eq!((all.code, &*all.stdout), (3, "one//ConfigMap/shop/by-hand\n"), "{}", all.stderr);
    let why = "error: one: 1 object of namespace shop may belong to apps of dark, which could not be read, and is not listed as an orphan\n";
    assert!(all.stderr.contains(why), "{}", all.stderr);

    // What its own cluster may own needs no mark.
    let fault = Fault::new(Trouble::ServerError("no".to_owned()));
    unread.served.clusters[0].fault(fault.resource("kustomizations.kustomize.toolkit.fluxcd.io"));
    let kind = "one (kustomize.toolkit.fluxcd.io/Kustomization)";
    let own = unread.explained("cm/by-hand", &["--context", "one"]);
    assert_eq!(own, format!("its app is not known: apps of {kind} could not be read"));
    let none = unread.ask(&orphans, &["--context", "one"]);
    assert_eq!((none.code, &*none.stdout), (3, ""), "{}", none.stderr);
    let why = format!("2 objects of namespace shop may belong to apps of {kind}, which could not be read");
    assert!(none.stderr.contains(&why), "{}", none.stderr);
    let table = unread.ask(&["get", "resources", "--orphaned", "-n", "shop"], &["--context", "one"]);
    let found = "No orphaned objects found in namespace shop, but not everything could be read.\n";
    assert!(table.stderr.contains(found), "{}", table.stderr);
}

#[test]
fn orphaned_applies_to_objects_and_not_to_those_of_apps() {
    let apps = taffrail(&["get", "apps", "--orphaned"], "");
    assert_eq!(apps.code, 2);
    assert!(apps.stderr.contains("--orphaned applies to objects"), "{}", apps.stderr);
    for with in [&["shop"][..], &["-w"], &["--delivery", "ks"], &["--sync", "Synced"]] {
        assert_eq!(taffrail(&[&["get", "resources", "--orphaned"], with].concat(), "").code, 2, "{with:?}");
    }
}
