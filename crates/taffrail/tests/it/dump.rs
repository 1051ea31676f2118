//! `taffrail dump`, and what `--from` makes of it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use taffrail_sim::{Cluster, Fault, Fleet, Trouble};
use tempfile::TempDir;

use super::{Answer, taffrail};

const FLUX: &str = "kustomize.toolkit.fluxcd.io/v1";

/// Clusters with an app of Flux, one of Helm, one by labels, and the kubeconfig that leads to them.
struct Served {
    _runtime: tokio::runtime::Runtime,
    _fleet: Fleet,
    clusters: Vec<Cluster>,
    folder: TempDir,
    kubeconfig: String,
}

fn served(names: &[&str]) -> Served {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (fleet, clusters) = runtime.block_on(async {
        let fleet = Fleet::builder().controllers(false).start().await.unwrap();
        let mut clusters = Vec::new();
        for name in names {
            let cluster = fleet.cluster(name).await.unwrap();
            for object in objects() {
                cluster.apply(object).unwrap();
            }
            clusters.push(cluster);
        }
        (fleet, clusters)
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, Cluster::kubeconfig_of(&clusters)).unwrap();
    let kubeconfig = path.to_str().unwrap().to_owned();
    Served { _runtime: runtime, _fleet: fleet, clusters, folder, kubeconfig }
}

fn deployment(namespace: &str, name: &str, available: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "generation": 1,
            "labels": {"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}},
        "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": available,
            "availableReplicas": available, "conditions": [{"type": "Available", "status": "True"},
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]}})
}

fn objects() -> Vec<Value> {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "kustomizations.kustomize.toolkit.fluxcd.io"},
        "spec": {"group": "kustomize.toolkit.fluxcd.io", "scope": "Namespaced",
            "names": {"kind": "Kustomization", "listKind": "KustomizationList", "plural": "kustomizations", "singular": "kustomization"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}}]}});
    let release = json!({"name": "cart", "namespace": "shop", "version": 1, "info": {"status": "deployed", "last_deployed": "2026-01-01T00:00:00Z"},
        "chart": {"metadata": {"name": "cart", "version": "1.2.3"}},
        "manifest": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: cart\n"});
    // What is not packed, Helm's decoder reads as it is: twice in base64.
    use base64::Engine as _;
    let twice = |text: &str| {
        let engine = base64::engine::general_purpose::STANDARD;
        engine.encode(engine.encode(text))
    };
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}}),
        definition,
        json!({"apiVersion": FLUX, "kind": "Kustomization",
            "metadata": {"namespace": "flux-system", "name": "shop", "generation": 1},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}},
            "status": {"observedGeneration": 1, "lastAppliedRevision": "main@sha1:1",
                "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied revision: main@sha1:1", "observedGeneration": 1}],
                "inventory": {"entries": [{"id": "shop_web_apps_Deployment", "v": "v1"}, {"id": "shop_gone__ConfigMap", "v": "v1"},
                    {"id": "shop_pass__Secret", "v": "v1"}]}}}),
        deployment("shop", "web", 1),
        deployment("shop", "cart", 2),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "pass"},
            "data": {"password": "aHVzaC1odXNo"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
            "metadata": {"namespace": "shop", "name": "sh.helm.release.v1.cart.v1", "labels": {"owner": "helm", "name": "cart", "version": "1"}},
            "data": {"release": twice(&release.to_string())}}),
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "shop", "name": "sh.helm.release.v1.forged.v1", "labels": {"owner": "helm"}},
            "data": {"release": "aHVzaC1odXNo"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "notes",
            "labels": {"app.kubernetes.io/instance": "notes"}}, "data": {"a": "b"}}),
    ]
}

impl Served {
    fn ask(&self, arguments: &[&str]) -> Answer {
        taffrail(
            &[arguments, &["--all-contexts", "--kubeconfig", &self.kubeconfig, "--timeout", "60s"]].concat(),
            "",
        )
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Dumps all clusters into a folder.
    #[track_caller]
    fn dump(&self, arguments: &[&str]) -> String {
        let folder = self.path("dumps/");
        let answer = self.ask(&[&["dump", "-o", &folder], arguments].concat());
        assert_eq!((answer.code, &*answer.stderr, &*answer.stdout), (0, "", ""));
        folder
    }
}

/// A list without what differs between two looks.
fn timeless(mut list: Value) -> Value {
    fn forget(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.remove("freshness");
                map.remove("observedAt");
                map.remove("reading");
                // A command that asks a cluster names its context.
                map.remove("next");
                map.values_mut().for_each(forget);
            }
            Value::Array(items) => items.iter_mut().for_each(forget),
            _ => {}
        }
    }
    forget(&mut list);
    list
}

#[test]
fn a_dump_read_back_answers_as_the_clusters_did() {
    let served = served(&["one", "two"]);
    let dumps = served.dump(&[]);
    for view in [
        &["get", "apps", "-o", "json"][..],
        &["get", "resources", "-o", "json"],
        &["get", "clusters", "-o", "json"],
        &["explain", "-o", "json"],
        &["tree", "flux-system/shop", "-o", "json"],
    ] {
        let live = served.ask(view);
        let back = taffrail(&[view, &["--from", &dumps]].concat(), "");
        assert_eq!(timeless(back.json()), timeless(live.json()), "{view:?}");
        assert_eq!((back.code, &back.stderr), (live.code, &live.stderr), "{view:?}");
    }
    let apps = taffrail(&["get", "apps", "-o", "json", "--from", &dumps], "").json();
    let shop = apps["items"].as_array().unwrap().iter().find(|app| app["name"] == "shop").unwrap();
    assert_eq!(
        (&shop["cluster"], &shop["counts"]["NotFound"], &shop["counts"]["InProgress"]),
        (&json!("one"), &json!(1), &json!(1)),
        "{shop}"
    );
    assert!(
        apps["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|app| app["delivery"] == "helm" && app["health"] == "Current"),
        "{apps}"
    );
}

#[test]
fn a_dump_has_no_values_of_secrets_and_only_its_owner_may_read_it() {
    let served = served(&["one"]);
    let path = served.path("one.jsonl");
    let answer = served.ask(&["dump", "-o", &path]);
    assert_eq!((answer.code, &*answer.stderr), (0, ""));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"pass\"") && !text.contains("aHVzaC1odXNo"), "values of Secrets are left out");
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let mode = |path: &str| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    let folder = served.dump(&[]);
    assert_eq!((mode(&folder), mode(&format!("{folder}one.jsonl"))), (0o700, 0o600));
    // Nothing is left beside it.
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn what_a_dump_could_not_read_is_unknown_when_it_is_read_back() {
    let served = served(&["one"]);
    served.clusters[0].fault(Fault::new(Trouble::ServerError("no etcd".to_owned())).resource("configmaps"));
    let path = served.path("one.jsonl");
    let answer = served.ask(&["dump", "-o", &path]);
    assert_eq!(answer.code, 3);
    assert!(answer.stderr.contains("one: list configmaps"), "{}", answer.stderr);
    let view = &["get", "apps", "-o", "json"];
    let (live, back) = (served.ask(view), taffrail(&["get", "apps", "-o", "json", "--from", &path], ""));
    assert_eq!(timeless(back.json()), timeless(live.json()));
    assert_eq!(back.code, 3);
    let apps = back.json();
    let shop = apps["items"].as_array().unwrap().iter().find(|app| app["name"] == "shop").unwrap();
    assert_eq!((&shop["counts"]["NotFound"], &shop["counts"]["Unknown"]), (&json!(0), &json!(1)), "{shop}");
}

#[test]
fn a_dump_of_one_namespace_says_nothing_of_the_others() {
    let served = served(&["one"]);
    let path = served.path("one.jsonl");
    let answer = served.ask(&["dump", "-n", "flux-system", "-o", &path]);
    assert_eq!((answer.code, &*answer.stderr), (0, ""));
    let apps = taffrail(&["get", "apps", "-o", "json", "--from", &path], "").json();
    let shop = &apps["items"][0];
    assert_eq!(
        (&shop["name"], &shop["counts"]["NotFound"], &shop["counts"]["Unknown"]),
        (&json!("shop"), &json!(0), &json!(3)),
        "{apps}"
    );
}

#[test]
fn a_dump_that_was_cut_proves_nothing_absent() {
    let served = served(&["one"]);
    let path = served.path("one.jsonl");
    assert_eq!(served.ask(&["dump", "-o", &path]).code, 0);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without_last = lines[..lines.len() - 1].join("\n") + "\n";
    let lost = lines.iter().filter(|line| !line.contains("\"pass\"")).map(|line| format!("{line}\n"));
    for (cut, why) in [(without_last, "it is cut"), (lost.collect(), "objects of the")] {
        std::fs::write(&path, cut).unwrap();
        let answer = taffrail(&["get", "apps", "-o", "json", "--from", &path], "");
        assert_eq!(answer.code, 3, "{why}");
        let apps = answer.json();
        assert!(apps["errors"].to_string().contains(why), "{apps}");
        let told = apps["errors"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["scope"].as_str().unwrap().contains(".jsonl"));
        assert_eq!(told.count(), 1, "told once: {apps}");
        let shop = apps["items"].as_array().unwrap().iter().find(|app| app["name"] == "shop").unwrap();
        assert_eq!(shop["counts"]["NotFound"], 0, "{shop}");
    }
}

#[test]
fn a_dump_says_what_its_bound_left_out() {
    let served = served(&["one"]);
    let path = served.path("one.jsonl");
    let answer = served.ask(&["dump", "-o", &path, "--max-size", "0"]);
    assert_eq!(answer.code, 3);
    assert!(
        answer.stderr.contains("--max-size") && answer.stderr.contains("more kinds could not be read"),
        "{}",
        answer.stderr
    );
    let apps = taffrail(&["get", "apps", "--from", &path], "");
    assert_eq!(apps.code, 3);
    assert!(!apps.stdout.contains("Ready"), "{}", apps.stdout);
}

#[test]
fn a_cluster_that_does_not_answer_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let answer = taffrail(&["dump", "-o", path.to_str().unwrap(), "--kubeconfig", "/nowhere/config"], "");
    assert_eq!(answer.code, 3);
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_cluster_that_does_not_answer_is_lost_when_a_folder_is_read_back() {
    let served = served(&["one", "two"]);
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "applications.argoproj.io"},
        "spec": {"group": "argoproj.io", "scope": "Namespaced",
            "names": {"kind": "Application", "listKind": "ApplicationList", "plural": "applications", "singular": "application"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    served.clusters[0].apply(definition).unwrap();
    let there = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "shop", "name": "there"},
        "spec": {"project": "default", "source": {"repoURL": "https://git.example/a", "path": "a", "targetRevision": "main"},
            "destination": {"server": served.clusters[1].url(), "namespace": "shop"}},
        "status": {"sync": {"status": "Synced", "revision": "1"}, "health": {"status": "Healthy"},
            "resources": [{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web"}]}});
    served.clusters[0].apply(there).unwrap();
    served.clusters[1].fault(Fault::new(Trouble::ServerError("no etcd".to_owned())));
    let folder = served.path("dumps/");
    let answer = served.ask(&["dump", "-o", &folder]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    let view = &["get", "apps", "-o", "json"][..];
    let (live, back) = (served.ask(view), taffrail(&[view, &["--from", &folder]].concat(), ""));
    assert_eq!(timeless(back.json()), timeless(live.json()));
    assert_eq!(back.code, 3);
    let apps = back.json();
    let there = apps["items"].as_array().unwrap().iter().find(|app| app["name"] == "there").unwrap();
    let message = there["message"].as_str().unwrap();
    assert_eq!((&there["cluster"], &there["effective"]), (&json!("two"), &json!("Unknown")), "{there}");
    assert!(message.contains("no etcd") && !message.contains("--context"), "{there}");
    let view = &["get", "clusters", "-o", "json"][..];
    let (live, back) = (served.ask(view), taffrail(&[view, &["--from", &folder]].concat(), ""));
    assert_eq!((timeless(back.json()), back.code), (timeless(live.json()), 3));
}

#[test]
fn several_clusters_need_a_folder() {
    let served = served(&["one", "two"]);
    let answer = served.ask(&["dump"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert!(answer.stderr.contains("-o DIR"), "{}", answer.stderr);
    let file = served.path("config");
    assert_eq!(served.ask(&["dump", "-o", &file]).code, 2);
}
