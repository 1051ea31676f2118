//! Owners of objects and identities of clusters, through the command line.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use taffrail_sim::{Cluster, Fleet};

use super::{Answer, NOW, command, own_app, taffrail};

fn settings(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name,
        "labels": {"app.kubernetes.io/instance": name}}})
}

fn lease(renewed: u64) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": "kube-scheduler"},
        "spec": {"holderIdentity": "one", "leaseTransitions": renewed}})
}

/// The answer about two clusters that give one identity and have nothing else in common.
pub(crate) fn twins() -> Answer {
    of_twins(&["get", "clusters", "-o", "json"])
}

fn of_twins(arguments: &[&str]) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "42"}});
        std::fs::write(folder.path().join(name).with_extension("yaml"), own.to_string()).unwrap();
    }
    taffrail(&[arguments, &["--from", folder.path().to_str().unwrap()]].concat(), "")
}

#[test]
fn a_cluster_of_a_known_identity_is_a_finding() {
    let answer = of_twins(&["trust", "-o", "json"]);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    let items = report["items"].as_array().unwrap().iter();
    let found: Vec<_> = items.filter(|item| item["reason"] == "SameIdentity").collect();
    assert!(found.len() == 1 && found[0]["severity"] == "medium", "{}", answer.stdout);
    let message = found[0]["message"].as_str().unwrap();
    assert!(message.starts_with("the cluster reports the identity of one without proof: "), "{message}");
}

/// Asks for the clusters of a kubeconfig while the Leases of `moving` are renewed; nothing is warned of.
fn ask(kubeconfig: &str, moving: &[Cluster]) -> Vec<Value> {
    let answer = answer(kubeconfig, moving);
    assert_eq!((answer.code, &*answer.stderr), (0, ""), "{}", answer.stdout);
    rows(&answer.stdout)
}

fn answer(kubeconfig: &str, moving: &[Cluster]) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, kubeconfig).unwrap();
    let (over, renewing) = renewing(moving);
    let arguments =
        ["get", "clusters", "--all-contexts", "-o", "json", "--kubeconfig", path.to_str().unwrap()];
    let answer = taffrail(&arguments, "");
    over.store(true, Ordering::Relaxed);
    renewing.join().unwrap();
    answer
}

/// The name, the aliases and the twin of each cluster of an answer.
fn rows(answer: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let row = |row: &Value| json!([row["name"], row["aliases"], row["twinOf"]]);
    answer["items"].as_array().unwrap().iter().map(row).collect()
}

/// Renews the Leases of clusters until it is over.
fn renewing(moving: &[Cluster]) -> (Arc<AtomicBool>, std::thread::JoinHandle<()>) {
    let over = Arc::new(AtomicBool::new(false));
    let (moving, ended) = (moving.to_vec(), over.clone());
    let renewing = std::thread::spawn(move || {
        for renewed in 1.. {
            if ended.load(Ordering::Relaxed) {
                return;
            }
            for cluster in &moving {
                cluster.apply(lease(renewed)).unwrap();
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    (over, renewing)
}

fn started(runtime: &tokio::runtime::Runtime, objects: &[Value]) -> (Fleet, Cluster) {
    runtime.block_on(async {
        let fleet = Fleet::builder().controllers(false).start().await.unwrap();
        let cluster = fleet.cluster("one").await.unwrap();
        for object in objects {
            cluster.apply(object.clone()).unwrap();
        }
        cluster.apply(lease(0)).unwrap();
        (fleet, cluster)
    })
}

/// Objects of a copy that has gone on for longer, so that its versions are far from those of the other.
fn ahead() -> Vec<Value> {
    (0..100).map(|number| settings(&format!("more-{number}"))).chain([settings("web")]).collect()
}

/// The kubeconfig of a cluster with another name for it, and perhaps another address.
fn renamed(cluster: &Cluster, name: &str, host: &str) -> String {
    Cluster::kubeconfig_of(std::slice::from_ref(cluster)).replace("one", name).replace("127.0.0.1", host)
}

pub(super) fn merged(one: &str, other: &str) -> String {
    let mut all: Value = serde_saphyr::from_str(one).unwrap();
    let other: Value = serde_saphyr::from_str(other).unwrap();
    for part in ["clusters", "users", "contexts"] {
        let more = other[part].as_array().unwrap().clone();
        all[part].as_array_mut().unwrap().extend(more);
    }
    all.to_string()
}

#[test]
fn clusters_are_identified_by_their_leases() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (_fleet, cluster) = started(&runtime, &[settings("web")]);
    let both = merged(&renamed(&cluster, "one", "127.0.0.1"), &renamed(&cluster, "private", "localhost"));
    assert_eq!(ask(&both, std::slice::from_ref(&cluster)), [json!(["one", ["private"], null])]);
    // Nothing is renewed, so that nothing proves it.
    assert_eq!(ask(&both, &[]), [json!(["one", null, null]), json!(["private", null, "one"])]);
}

/// Whoever answers for a cluster chooses what may be read of it, and may know an object of another one.
#[test]
fn a_cluster_whose_leases_may_not_be_read_is_no_alias() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (_fleet, cluster) = started(&runtime, &[settings("web")]);
    let rbac = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "few"},
        "rules": [{"apiGroups": [""], "resources": ["*"], "verbs": ["get", "list"]}]});
    let binding = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "few"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "few"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "reader"}]});
    for object in [role, binding] {
        cluster.apply(object).unwrap();
    }
    let reader = cluster.kubeconfig_for(&cluster.add_user("reader", &[]));
    let reader = reader.replace("one", "private").replace("127.0.0.1", "localhost");
    let both = merged(&renamed(&cluster, "one", "127.0.0.1"), &reader);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, both).unwrap();
    let arguments =
        ["get", "clusters", "--all-contexts", "-o", "json", "--kubeconfig", path.to_str().unwrap()];
    let answer = taffrail(&arguments, "");
    assert_eq!(
        rows(&answer.stdout),
        [json!(["one", null, null]), json!(["private", null, "one"])],
        "{}",
        answer.stderr
    );
}

#[test]
fn a_copy_of_a_cluster_is_shown_beside_it() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (_fleet, cluster) = started(&runtime, &[settings("web")]);
    let (_other, copy) = started(&runtime, &ahead());
    let both = merged(&renamed(&cluster, "one", "127.0.0.1"), &renamed(&copy, "copy", "127.0.0.1"));
    let expected = [json!(["one", null, null]), json!(["copy", null, "one"])];
    assert_eq!(ask(&both, &[cluster.clone(), copy.clone()]), expected);
    assert_eq!(ask(&both, &[]), expected);
}

#[test]
fn a_copy_that_holds_the_same_is_told_by_what_it_renews_once_and_followed() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut web = settings("web");
    web["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    let (_fleet, cluster) = started(&runtime, &[web.clone()]);
    let (_other, copy) = started(&runtime, &[web]);
    let both = merged(&renamed(&cluster, "one", "127.0.0.1"), &renamed(&copy, "copy", "127.0.0.1"));
    // By what they hold they are one: nothing was written to either since.
    let expected = [json!(["one", null, null]), json!(["copy", null, "one"])];
    assert_eq!(ask(&both, &[]), expected);
    assert_eq!(ask(&both, std::slice::from_ref(&cluster)), expected);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, both).unwrap();
    let (over, renewing) = renewing(std::slice::from_ref(&cluster));
    let arguments =
        ["get", "clusters", "-w", "--all-contexts", "-o", "json", "--kubeconfig", path.to_str().unwrap()];
    let line = followed(&arguments);
    over.store(true, Ordering::Relaxed);
    renewing.join().unwrap();
    assert_eq!(rows(&line), expected);
}

/// Whoever answers for a cluster may know the identity of another one and what it holds, and chooses its own Leases.
#[test]
fn a_cluster_that_renews_other_leases_hides_no_other() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut web = settings("web");
    web["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    let (_fleet, cluster) = started(&runtime, &[web.clone()]);
    let (_other, evil) = started(&runtime, &[web]);
    let both = merged(&renamed(&evil, "evil", "127.0.0.1"), &renamed(&cluster, "one", "127.0.0.1"));
    let expected = [json!(["evil", null, null]), json!(["one", null, "evil"])];
    assert!(evil.delete("coordination.k8s.io/v1", "Lease", "kube-system", "kube-scheduler"));
    let mut own = lease(0);
    own["metadata"]["name"] = json!("x");
    evil.apply(own).unwrap();
    assert_eq!(ask(&both, std::slice::from_ref(&cluster)), expected);
}

/// A server that relays the Leases of another cluster shows what that cluster renews, but no certificate of its
/// authority.
#[test]
fn a_server_that_another_authority_may_vouch_for_is_no_alias() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (_fleet, cluster) = started(&runtime, &[settings("web")]);
    let (_other, stranger) = started(&runtime, &[]);
    let relay = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut relay: Value = serde_saphyr::from_str(&renamed(&cluster, "relay", "localhost")).unwrap();
        change(relay["clusters"][0]["cluster"].as_object_mut().unwrap());
        merged(&relay.to_string(), &renamed(&cluster, "one", "127.0.0.1"))
    };
    let expected = [json!(["relay", null, null]), json!(["one", null, "relay"])];

    let two_authorities = relay(&|server| {
        let own: Value = serde_saphyr::from_str(&stranger.kubeconfig()).unwrap();
        let pem = |encoded: &Value| STANDARD.decode(encoded.as_str().unwrap()).unwrap();
        let own = pem(&own["clusters"][0]["cluster"]["certificate-authority-data"]);
        let authority = &mut server["certificate-authority-data"];
        *authority = json!(STANDARD.encode([pem(authority), own].concat()));
    });
    assert_eq!(ask(&two_authorities, std::slice::from_ref(&cluster)), expected);

    let unverified = relay(&|server| {
        server.remove("certificate-authority-data").unwrap();
        server.insert("insecure-skip-tls-verify".to_owned(), json!(true));
    });
    let answer = answer(&unverified, std::slice::from_ref(&cluster));
    assert_eq!((answer.code, rows(&answer.stdout)), (0, expected.to_vec()), "{}", answer.stderr);
}

/// A cluster that is known to be two keeps none from being found to be one.
#[test]
fn an_alias_is_found_beside_a_copy() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (_fleet, cluster) = started(&runtime, &[settings("web")]);
    let (_other, copy) = started(&runtime, &ahead());
    let [copied, one, private] =
        [(&copy, "copy", "127.0.0.1"), (&cluster, "one", "127.0.0.1"), (&cluster, "private", "localhost")]
            .map(|(cluster, name, host)| renamed(cluster, name, host));
    let all = merged(&merged(&copied, &one), &private);
    let expected = [json!(["copy", null, null]), json!(["one", ["private"], "copy"])];
    assert_eq!(ask(&all, &[cluster, copy]), expected);
}

#[test]
fn a_cluster_that_answers_unverified_is_told_once_and_followed() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (_fleet, cluster) = started(&runtime, &[settings("web")]);
    let mut config: Value = serde_saphyr::from_str(&cluster.kubeconfig()).unwrap();
    let place = config["clusters"][0]["cluster"].as_object_mut().unwrap();
    place.remove("certificate-authority-data").unwrap();
    place.insert("insecure-skip-tls-verify".to_owned(), json!(true));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, config.to_string()).unwrap();
    let arguments = ["get", "clusters", "-o", "json", "--kubeconfig", path.to_str().unwrap()];
    let once = taffrail(&arguments, "").json()["items"][0].clone();
    let followed = followed(&[&arguments[..], &["-w"]].concat());
    let status = ["status", "cm/web", "--exit-status", "--kubeconfig", path.to_str().unwrap()];
    let status = taffrail(&status, "");
    assert!(status.stderr.starts_with("warning: "), "{}", status.stderr);
    assert_eq!(status.code, 0, "the object is Ready: {}", status.stdout);
    for row in [once, serde_json::from_str::<Value>(&followed).unwrap()["items"][0].clone()] {
        assert_eq!((&row["verified"], &row["status"]), (&json!(false), &json!("Current")), "{row}");
        let message = row["message"].as_str().unwrap();
        assert!(message.starts_with("its server is not verified (insecure-skip-tls-verify)"), "{row}");
    }
}

#[test]
fn an_alias_selects_what_the_first_name_of_its_cluster_does() {
    let from = own_app("fleet-alias");
    let ask = |arguments: &[&str]| taffrail(&[arguments, &["--from", &from, "--now", NOW]].concat(), "");
    let compare = |first: &[&str], alias: &[&str]| {
        let (first, alias) = (ask(first), ask(alias));
        assert!(!first.stdout.is_empty(), "{}", first.stderr);
        assert_eq!((alias.code, alias.stdout), (first.code, first.stdout), "{}", alias.stderr);
    };
    for words in [
        &["get", "apps"][..],
        &["get", "clusters"],
        &["get", "resources"],
        &["overview"],
        &["app", "k"],
        &["tree", "k"],
        &["trust"],
        &["explain", "k"],
        &["suspend", "k", "--dry-run=client"],
    ] {
        compare(&[words, &["--cluster", "a-first"]].concat(), &[words, &["--cluster", "b-second"]].concat());
    }
    for name in ["flux-kustomization/flux-system/k", "/ConfigMap/shop/c1"] {
        compare(&["explain", &format!("a-first/{name}")], &["explain", &format!("b-second/{name}")]);
    }
    let to_b = "argo-application/argocd/to-b@c-hub";
    compare(&["app", &format!("a-first/{to_b}")], &["app", &format!("b-second/{to_b}")]);
}

/// The first answer of a command that goes on.
fn followed(arguments: &[&str]) -> String {
    let mut child = command(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    line
}

/// The dumps of a cluster that declares an app, and of the cluster that holds its objects.
fn home_and_target() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let hub = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "argocd", "name": "front"},
        "spec": {"destination": {"server": "https://prod.example.com"}},
        "status": {"sync": {"status": "Synced", "revision": "1"},
            "resources": [{"version": "v1", "kind": "ConfigMap", "namespace": "default", "name": "web"}]}});
    std::fs::write(folder.path().join("dev.yaml"), hub.to_string()).unwrap();
    let mut own = settings("web");
    own["metadata"]["annotations"] =
        json!({"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "default"});
    std::fs::write(folder.path().join("prod.yaml"), format!("# server: https://prod.example.com\n{own}\n"))
        .unwrap();
    folder
}

/// Answers about an app that another cluster declares.
pub(crate) fn samples() -> Vec<Answer> {
    let folder = home_and_target();
    let from = ["-o", "json", "--from", folder.path().to_str().unwrap()];
    let front = "prod/argo-application/argocd/front@dev";
    let views: [&[&str]; 4] =
        [&["explain", front], &["explain", front, "web"], &["explain", "configmap/web"], &["trust"]];
    views.into_iter().map(|view| taffrail(&[view, &from].concat(), "")).collect()
}

#[test]
fn the_home_of_an_app_is_told_where_its_objects_are_elsewhere() {
    let folder = home_and_target();
    let from = folder.path().to_str().unwrap();
    let table = taffrail(&["get", "apps", "-A", "--from", from], "").stdout;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["CLUSTER", "HOME", "NAMESPACE"], "{table}");
    assert_eq!(rows[1][..4], ["prod", "dev", "argocd", "front"], "{table}");
    // It says only that it is its own, so it stays where it was.
    assert_eq!(rows[2][..4], ["prod", "-", "default", "web"], "{table}");
    let answer = taffrail(&["explain", "--from", from, "configmap/web", "-n", "default"], "").stdout;
    assert!(answer.contains("marked for helm default/web, which is not shown"), "{answer}");
    let trust = taffrail(&["trust", "--from", from], "").stdout;
    assert!(trust.contains("unconfirmed"), "{trust}");
    assert!(trust.contains("argocd/front of dev"), "{trust}");

    let names = taffrail(&["get", "apps", "-o", "name", "--from", from], "").stdout;
    assert_eq!(names, "prod/argo-application/argocd/front@dev\nprod/label/default/web\n");
    let full = "prod/argo-application/argocd/front@dev";
    for (view, heading) in [
        ("explain", "argo-application argocd/front of dev in prod is "),
        ("app", "argo-application argocd/front of dev in prod: "),
        ("tree", "prod (declared in dev):"),
    ] {
        let answer = taffrail(&[view, full, "--from", from], "").stdout;
        assert!(answer.starts_with(heading), "{view}: {answer}");
        let other = taffrail(&[view, "prod/argo-application/argocd/front@prod", "--from", from], "");
        assert_eq!(other.code, 2, "{view}: {}", other.stdout);
    }
    let listed = taffrail(&["explain", "configmap/web", "-n", "default", "--from", from], "").stdout;
    assert!(listed.contains("listed by argo-application argocd/front of dev ("), "{listed}");
    let explained = taffrail(&["explain", full, "-o", "json", "--from", from], "").json();
    assert_eq!(explained["home"], "dev", "{explained}");
}
