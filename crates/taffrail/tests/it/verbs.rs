//! `taffrail reconcile`, `suspend` and `resume` on clusters whose controllers a test plays.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_sim::{Cluster, Fault, Trouble};
use taffrail_testkit::objects::{self, definition, kustomizations, with_spec_and_status};

use super::served::Served;
use super::{Answer, assert_shown, command, str, taffrail};

/// Long enough for a busy machine; nothing waits for it that works.
const PATIENCE: Duration = Duration::from_secs(60);

const FLUX: &str = "kustomize.toolkit.fluxcd.io/v1";
const SOURCE: &str = "source.toolkit.fluxcd.io/v1";
const ARGO: &str = "argoproj.io/v1alpha1";

/// The spec of an Application; that of an Argo CD before 3.1 has no `enabled`.
fn application_spec(is_old: bool) -> Value {
    let truth = json!({"type": "boolean"});
    let mut automated = json!({"prune": truth, "selfHeal": truth});
    if !is_old {
        automated["enabled"] = truth;
    }
    let automated = json!({"type": "object", "properties": automated});
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "syncPolicy": {"type": "object", "properties": {"automated": automated}}}})
}

pub(super) fn kustomization(name: &str) -> Value {
    json!({"apiVersion": FLUX, "kind": "Kustomization", "metadata": {"namespace": "flux-system", "name": name},
        "spec": {"path": "./shop", "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {"lastAppliedRevision": "main@sha1:1", "conditions": [
            {"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied revision: main@sha1:1"}]}})
}

pub(super) fn served(names: &[&str]) -> Served {
    Served::start(names, fill).asked_with(&["--request-timeout", "30s"])
}

/// Fills a cluster with the apps of these tests.
pub(super) fn fill(name: &str, cluster: &Cluster) {
    for namespace in ["flux-system", "argocd"] {
        cluster.apply(objects::namespace(namespace)).unwrap();
    }
    let mut application = with_spec_and_status();
    application["properties"]["spec"] = application_spec(name == "old");
    for definition in [
        kustomizations(),
        definition("source.toolkit.fluxcd.io", "v1", "GitRepository", with_spec_and_status()),
        definition("argoproj.io", "v1alpha1", "Application", application),
    ] {
        cluster.apply(definition).unwrap();
    }
    cluster
        .apply(json!({"apiVersion": SOURCE, "kind": "GitRepository",
                "metadata": {"namespace": "flux-system", "name": "fleet"},
                "spec": {"url": "https://git.example.com/fleet"},
                "status": {"artifact": {"revision": "main@sha1:1"}}}))
        .unwrap();
    cluster.apply(kustomization("shop")).unwrap();
    cluster
            .apply(json!({"apiVersion": ARGO, "kind": "Application", "metadata": {"namespace": "argocd", "name": "api"},
                "spec": {"destination": {"server": "https://kubernetes.default.svc"}, "syncPolicy": {"automated": {"prune": true}},
                    "source": {"repoURL": "https://git.example.com/deploy", "path": "api", "targetRevision": "main"}},
                "status": {"sync": {"status": "Synced", "revision": "1"}, "health": {"status": "Healthy"}}}))
            .unwrap();
}

fn shop(cluster: &Cluster) -> Value {
    cluster.get(FLUX, "Kustomization", "flux-system", "shop").unwrap()
}

fn api(cluster: &Cluster) -> Value {
    cluster.get(ARGO, "Application", "argocd", "api").unwrap()
}

fn fleet(cluster: &Cluster) -> Value {
    cluster.get(SOURCE, "GitRepository", "flux-system", "fleet").unwrap()
}

fn requested(object: &Value) -> Option<String> {
    object["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"].as_str().map(str::to_owned)
}

/// Waits until an object is as a controller waits for it.
#[track_caller]
fn until(cluster: &Cluster, read: fn(&Cluster) -> Value, holds: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let object = read(cluster);
        if holds(&object) {
            return object;
        }
        assert!(begun.elapsed() < PATIENCE, "not so: {object:#}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the status that a controller of Flux writes when it has handled a request.
fn handle(cluster: &Cluster, object: Value, ready: &str, reason: &str) {
    let mut object = object;
    object["status"]["lastHandledReconcileAt"] = json!(requested(&object).unwrap());
    object["status"]["conditions"] = json!([{"type": "Ready", "status": ready, "reason": reason, "message": format!("{reason} says Flux")}]);
    cluster.apply(object).unwrap();
}

/// Asks while somebody else plays the controller.
fn played(served: &Served, arguments: &[&str], controller: impl FnOnce(&Cluster) + Send) -> Answer {
    std::thread::scope(|scope| {
        let playing = scope.spawn(|| controller(&served.clusters[0]));
        let answer = served.ask(arguments);
        if let Err(panic) = playing.join() {
            std::panic::panic_any(format!("{panic:?}: {}{}", answer.stdout, answer.stderr));
        }
        answer
    })
}

#[test]
fn reconciling_flux_waits_until_it_was_handled() {
    let served = served(&["one"]);
    let answer = played(&served, &["reconcile", "shop"], |cluster| {
        let object = until(cluster, shop, |object| requested(object).is_some());
        handle(cluster, object, "Unknown", "Progressing");
        handle(cluster, shop(cluster), "True", "ReconciliationSucceeded");
    });
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(lines[..3], ["Kustomization flux-system/shop in one", "  metadata:", "    annotations:"]);
    assert!(lines[3].starts_with("+     reconcile.fluxcd.io/requestedAt: \"2"), "{}", lines[3]);
    assert!(
        lines[4].starts_with("ready after") && lines[4].ends_with("ReconciliationSucceeded says Flux"),
        "{}",
        lines[4]
    );
}

#[test]
fn failures_after_a_write_are_reported() {
    let served = served(&["one"]);
    let answer = played(&served, &["reconcile", "shop"], |cluster| {
        let object = until(cluster, shop, |object| requested(object).is_some());
        handle(cluster, object, "False", "BuildFailed");
    });
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    assert!(
        answer.stdout.contains("failed after") && answer.stdout.contains("BuildFailed says Flux"),
        "{}",
        answer.stdout
    );
    assert!(
        answer.stderr.contains("taffrail explain flux-kustomization/flux-system/shop"),
        "{}",
        answer.stderr
    );
}

#[test]
fn the_source_is_handled_before_what_is_made_from_it() {
    let served = served(&["one"]);
    let answer = played(&served, &["reconcile", "shop", "--with-source"], |cluster| {
        let source = until(cluster, fleet, |object| requested(object).is_some());
        assert_eq!(requested(&shop(cluster)), None, "the source comes first");
        handle(cluster, source, "True", "Succeeded");
        let object = until(cluster, shop, |object| requested(object).is_some());
        handle(cluster, object, "True", "ReconciliationSucceeded");
    });
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    let (source, shop) =
        (answer.stdout.find("GitRepository flux-system/fleet"), answer.stdout.find("Kustomization"));
    assert!(source.is_some() && source < shop, "{}", answer.stdout);
}

#[test]
fn failed_source_ends_the_reconcile() {
    let served = served(&["one"]);
    let answer = played(&served, &["reconcile", "shop", "--with-source"], |cluster| {
        let source = until(cluster, fleet, |object| requested(object).is_some());
        handle(cluster, source, "False", "GitOperationFailed");
    });
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("GitOperationFailed says Flux"), "{}", answer.stdout);
    assert_eq!(requested(&shop(&served.clusters[0])), None);
}

#[test]
fn waiting_is_reported_once_without_a_terminal() {
    let served = served(&["one", "two"]);
    let answer = served.ask(&["reconcile", "shop", "--yes", "--timeout", "5s"]);
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    for line in ["waiting for flux-system/shop in one", "waiting for flux-system/shop in two"] {
        let times = answer.stderr.lines().filter(|told| *told == line).count();
        assert_eq!(times, 1, "{line}: {}", answer.stderr);
    }
    let answer = served.ask(&["reconcile", "shop", "--yes", "--wait=false"]);
    assert!(!answer.stderr.contains("waiting"), "{}", answer.stderr);
}

#[test]
fn unanswered_request_times_out() {
    let served = served(&["one"]);
    let answer = served.ask(&["reconcile", "shop", "--timeout", "300ms"]);
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    let why =
        "not ready within 0.3 s: Flux has not handled the request to Kustomization flux-system/shop yet";
    assert!(answer.stdout.contains(why), "{}", answer.stdout);
    let answer = served.ask(&["reconcile", "shop", "--wait=false"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.ends_with("requested\n"), "{}", answer.stdout);
}

#[test]
fn a_dry_run_changes_nothing() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let before = cluster.resource_version();
    let answer = served.ask(&["suspend", "shop", "--dry-run=client"]);
    assert_shown(
        &answer.stdout,
        str![[r#"
Kustomization flux-system/shop in one
  spec:
+   suspend: true
nothing was sent (dry run)

"#]],
    );
    let answer = served.ask(&["suspend", "shop", "--dry-run=server"]);
    assert!(
        answer.stdout.ends_with("the server accepts the change; nothing was written (dry run)\n"),
        "{}",
        answer.stdout
    );
    let answer = served.ask(&["reconcile", "shop", "--with-source", "--dry-run=server"]);
    assert_eq!(answer.stdout.matches("requestedAt").count(), 2, "{}", answer.stdout);
    assert_eq!(cluster.resource_version(), before);
}

/// Answers for programs: one that is given up, one that is refused beside another, one that somebody else will undo.
pub(super) fn samples() -> Vec<Answer> {
    let served = served(&["one"]);
    let parent = json!({"apiVersion": FLUX, "kind": "Kustomization", "metadata": {"namespace": "flux-system", "name": "fleet"},
        "spec": {"path": "./", "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {"lastAppliedRevision": "main@sha1:1", "inventory": {"entries": [
            {"id": "flux-system_shop_kustomize.toolkit.fluxcd.io_Kustomization", "v": "v1"}]}, "conditions": [
            {"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied revision: main@sha1:1"}]}});
    served.clusters[0].apply(parent).unwrap();
    vec![
        served.ask(&["reconcile", "shop", "--timeout", "300ms", "-o", "json"]),
        served.ask(&["reconcile", "shop", "api", "--sync", "--wait=false", "-o", "json"]),
        served.ask(&["suspend", "shop", "--dry-run=client", "-o", "json"]),
    ]
}

#[test]
fn programs_are_told_in_one_document() {
    let served = served(&["old"]);
    let dry = served.ask(&["suspend", "shop", "--dry-run=server", "-o", "json"]).json();
    let item = &dry["items"][0];
    assert_eq!((&dry["verb"], &dry["dryRun"]), (&json!("suspend"), &json!("server")));
    assert_eq!((&item["result"], &item["name"]), (&json!("Accepted"), &json!("shop")));
    let (patch, written) = (&item["patches"][0]["patch"], &item["patches"][0]["written"]);
    assert_eq!((&patch["spec"], written), (&json!({"suspend": true}), &json!(false)));
    // What another client has written since is not overwritten.
    assert!(patch["metadata"]["resourceVersion"].is_string(), "{patch}");

    // The field that an old Argo CD has not was tried first.
    let item = served.ask(&["suspend", "api", "-o", "json"]).json()["items"][0].clone();
    assert_eq!(item["result"], "Suspended");
    let written: Vec<&Value> = item["patches"].as_array().unwrap().iter().map(|it| &it["written"]).collect();
    assert_eq!(written, [false, true], "{item}");
    assert_eq!(served.ask(&["suspend", "api", "-o", "json"]).json()["items"][0]["result"], "Unchanged");

    let answer = played(&served, &["reconcile", "shop", "-o", "json"], |cluster| {
        let object = until(cluster, shop, |object| requested(object).is_some());
        handle(cluster, object, "True", "ReconciliationSucceeded");
    });
    let item = &answer.json()["items"][0];
    assert_eq!(item["result"], "Ready", "{item}");
    assert!(item["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{item}");
    assert_eq!(item["message"], "ReconciliationSucceeded says Flux");

    let answer = served.ask(&["reconcile", "shop", "api", "--sync", "--wait=false", "-o", "json"]);
    assert_eq!(answer.code, 2, "{}{}", answer.stdout, answer.stderr);
    let mut results: Vec<String> = Vec::new();
    for item in answer.json()["items"].as_array().unwrap() {
        results.push(format!("{} {}", item["name"].as_str().unwrap(), item["result"].as_str().unwrap()));
    }
    assert_eq!(results, ["api Requested", "shop Refused"]);
}

#[test]
fn refusals_are_part_of_the_report() {
    let served = served(&["one"]);
    let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "flux-system", "name": "plain",
        "labels": {"app.kubernetes.io/instance": "plain"}}});
    served.clusters[0].apply(plain).unwrap();
    let some = served.ask(&["suspend", "shop", "plain", "--dry-run=client", "--yes"]);
    assert_shown(
        &some.stdout,
        str![[r#"
refused: cannot suspend label flux-system/plain: no tool is known to deliver it: its objects only share a label (in one)
  hint: `taffrail app label/flux-system/plain --all-contexts --kubeconfig [TMP]/config` shows its objects; suspend the tool that makes them
Kustomization flux-system/shop in one
  spec:
+   suspend: true
nothing was sent (dry run)

"#]],
    );
    assert_shown(
        &some.stderr,
        str![[r#"
warning: --request-timeout is how long each cluster may take to answer first in this release, and only how long one request may take in later ones
 hint: leave --request-timeout out, or write --request-timeout 0 for no limit; --timeout is for the whole command
error: cannot suspend label flux-system/plain: no tool is known to deliver it: its objects only share a label (in one)
 hint: `taffrail app label/flux-system/plain --all-contexts --kubeconfig [TMP]/config` shows its objects; suspend the tool that makes them

"#]],
    );
    assert_eq!(some.code, 2);
    let none = served.ask(&["reconcile", "plain"]);
    assert_shown(
        &none.stdout,
        str![[r#"
refused: cannot reconcile label flux-system/plain: no tool is known to deliver it: its objects only share a label (in one)
  hint: `taffrail app label/flux-system/plain --all-contexts --kubeconfig [TMP]/config` shows its objects; reconcile the tool that makes them

"#]],
    );
    assert_eq!(none.code, 2, "{}", none.stderr);

    let none = served.ask(&["resume", "plain", "-o", "json"]);
    let item = &none.json()["items"][0];
    assert_eq!((none.code, &item["result"], &item["name"]), (2, &json!("Refused"), &json!("plain")));
    assert!(item["message"].as_str().unwrap().contains("no tool is known to deliver it"), "{item}");
    assert!(item["hint"].as_str().unwrap().starts_with("`taffrail app label/"), "{item}");
}

#[test]
fn suspended_apps_are_resumed() {
    let served = served(&["one", "two"]);
    let answer = served.ask(&["suspend", "shop", "--cluster", "two"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.ends_with("suspended\n"), "{}", answer.stdout);
    let suspended = |at: usize| shop(&served.clusters[at])["spec"]["suspend"].clone();
    assert_eq!((suspended(0), suspended(1)), (Value::Null, json!(true)));
    // More than one cluster is asked for twice.
    let answer = served.ask(&["suspend", "shop"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""));
    assert!(
        answer
            .stderr
            .contains("this would suspend flux-kustomization/flux-system/shop in 2 clusters: one, two"),
        "{}",
        answer.stderr
    );
    assert!(answer.stderr.contains("hint: confirm with --yes"), "{}", answer.stderr);
    assert_eq!(suspended(0), Value::Null);
    // In the other one it is done, and told what was done already.
    let answer = served.ask(&["suspend", "shop", "--yes"]);
    assert!(
        answer.stdout.contains("flux-kustomization flux-system/shop in two: the app is already suspended"),
        "{}",
        answer.stdout
    );
    assert!(
        answer.stdout.contains("flux-kustomization flux-system/shop in one: suspended"),
        "{}",
        answer.stdout
    );
    let answer = served.ask(&["reconcile", "shop", "--yes"]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("taffrail resume flux-kustomization/flux-system/shop"),
        "{}",
        answer.stderr
    );
    let answer = played(&served, &["resume", "shop", "--cluster", "one"], |cluster| {
        let object = until(cluster, shop, |object| object["spec"]["suspend"] == false);
        handle(cluster, object, "True", "ReconciliationSucceeded");
    });
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("ready after"), "{}", answer.stdout);
}

#[test]
fn names_of_lists_are_taken_by_the_verbs_and_by_wait() {
    let served = served(&["one", "two"]);
    let names = taffrail(&served.all(&["get", "apps", "-o", "name"]), "").stdout;
    let name = "two/flux-kustomization/flux-system/shop";
    let lines: Vec<&str> = names.lines().collect();
    assert_eq!(lines[2..], ["two/argo-application/argocd/api", name], "{names}");
    let works = |words: &[&str]| {
        let answer = served.ask(words);
        assert_eq!(answer.code, 0, "{words:?}: {}{}", answer.stdout, answer.stderr);
        assert!(!answer.stdout.contains(" in one"), "{words:?}: {}", answer.stdout);
    };
    let [one, two] = [&served.clusters[0], &served.clusters[1]];
    works(&["reconcile", name, "--wait=false"]);
    assert_eq!((requested(&shop(one)), requested(&shop(two)).is_some()), (None, true));
    works(&["suspend", name]);
    assert_eq!((&shop(one)["spec"]["suspend"], &shop(two)["spec"]["suspend"]), (&Value::Null, &json!(true)));
    works(&["resume", name, "--wait=false"]);
    assert_eq!((&shop(one)["spec"]["suspend"], &shop(two)["spec"]["suspend"]), (&Value::Null, &json!(false)));
    for argo in ["two/argo-application/argocd/api", "argo-application/argocd/api"] {
        works(&["suspend", argo, "--dry-run", "--cluster", "two"]);
    }

    let wait = |words: &[&str]| taffrail(&served.all(&[&["wait"], words].concat()), "");
    // Nothing has to be heard of the other cluster.
    served.runtime.block_on(async { one.trouble(Trouble::Unreachable) });
    for name in [name, &format!("app/{name}"), "two/argo-application/argocd/api"] {
        let answer = wait(&[name, "--timeout", "30s"]);
        assert_eq!(answer.code, 0, "{name}: {}{}", answer.stdout, answer.stderr);
    }
    let gone = wait(&["two/flux-kustomization/flux-system/gone", "--for", "deleted", "--timeout", "30s"]);
    assert_eq!(gone.code, 0, "{}{}", gone.stdout, gone.stderr);
    let in_one = ["--context", "two", "--kubeconfig", &served.kubeconfig, "--timeout", "30s"];
    let answer = taffrail(&[&["wait", "flux-kustomization/flux-system/shop"], &in_one[..]].concat(), "");
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    let answer = wait(&["three/flux-kustomization/flux-system/shop", "--timeout", "5s"]);
    assert_eq!(answer.code, 2, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stderr.contains("there is no cluster 'three'"), "{}", answer.stderr);
}

#[test]
fn argo_cd_requests_are_removed_when_handled() {
    let served = served(&["one"]);
    let answer = played(&served, &["reconcile", "api"], |cluster| {
        let refresh =
            |object: &Value| object["metadata"]["annotations"]["argocd.argoproj.io/refresh"] == "normal";
        let mut object = until(cluster, api, refresh);
        object["metadata"]["annotations"] = json!({});
        cluster.apply(object).unwrap();
    });
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("ready after"), "{}", answer.stdout);

    let answer = played(&served, &["reconcile", "api", "--sync"], |cluster| {
        let mut object = until(cluster, api, |object| object["operation"]["sync"]["revision"] == "main");
        assert_eq!(object["operation"]["initiatedBy"]["username"], "taffrail");
        let operation = object.as_object_mut().unwrap().remove("operation");
        object["status"]["operationState"] = json!({"phase": "Failed", "message": "one object is invalid", "operation": operation, "syncResult": {"revision": "1"}});
        cluster.apply(object).unwrap();
    });
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("one object is invalid"), "{}", answer.stdout);
}

#[test]
fn argo_cd_of_any_age_is_suspended() {
    for (name, policy) in
        [("one", json!({"automated": {"prune": true, "enabled": false}})), ("old", json!({}))]
    {
        let served = served(&[name]);
        let cluster = &served.clusters[0];
        let answer = served.ask(&["suspend", "api"]);
        assert_eq!(answer.code, 0, "{name}: {}{}", answer.stdout, answer.stderr);
        assert_eq!(api(cluster)["spec"]["syncPolicy"], policy, "{name}: {}", answer.stdout);
        assert_eq!(answer.stdout.contains("too old for this field"), name == "old", "{}", answer.stdout);
        let list = ["get", "apps", "--suspended", "-o", "json", "--kubeconfig", &served.kubeconfig];
        let row = taffrail(&list, "").json();
        assert_eq!(row["items"][0]["name"], "api", "{name}");
        assert_eq!(row["items"][0]["sync"]["state"], "Synced");

        let answer = served.ask(&["resume", "api", "--wait=false"]);
        assert_eq!(answer.code, 0, "{name}: {}", answer.stderr);
        assert_eq!(api(cluster)["spec"]["syncPolicy"], json!({"automated": {"prune": true}}), "{name}");
    }
}

#[test]
fn forbidden_write_is_reported() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let alice = cluster.add_user("alice", &[]);
    let group = "rbac.authorization.k8s.io";
    cluster
        .apply(
            json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "look"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]}),
        )
        .unwrap();
    cluster
        .apply(json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "look"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "look"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}]}))
        .unwrap();
    let file = served.folder.path().join("alice");
    std::fs::write(&file, cluster.kubeconfig_for(&alice)).unwrap();
    let before = cluster.resource_version();
    let answer = taffrail(&["suspend", "shop", "--kubeconfig", file.to_str().unwrap()], "");
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(
        answer.stderr.contains("cannot suspend flux-kustomization flux-system/shop"),
        "{}",
        answer.stderr
    );
    assert!(answer.stderr.contains("alice") && answer.stderr.contains("allows `patch`"), "{}", answer.stderr);
    assert_eq!(cluster.resource_version(), before);
}

/// Syncs `api` while a change comes between what was read and what is written.
fn meanwhile(served: &Served, change: impl FnOnce(&Cluster)) -> Answer {
    let cluster = &served.clusters[0];
    // Long enough to write what makes the request one of the past.
    cluster.fault(Fault::new(Trouble::Latency(Duration::from_secs(2))).verb("patch").times(1));
    let mut child = command(&["reconcile", "api", "--sync", "--kubeconfig", &served.kubeconfig])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut stdout = String::new();
    // What is going to be written is told before it is written.
    lines.read_line(&mut stdout).unwrap();
    change(cluster);
    lines.read_to_string(&mut stdout).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Answer { stdout, stderr, code: output.status.code().unwrap() }
}

#[test]
fn unrelated_concurrent_change_does_not_prevent_a_write() {
    let served = served(&["one"]);
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| {
            let cluster = &served.clusters[0];
            let mut object = until(cluster, api, |object| !object["operation"].is_null());
            assert_eq!(object["status"]["reconciledAt"], "2026-03-01T12:00:00Z");
            object.as_object_mut().unwrap().remove("operation");
            cluster.apply(object).unwrap();
        });
        meanwhile(&served, |cluster| {
            let mut object = api(cluster);
            object["status"]["reconciledAt"] = json!("2026-03-01T12:00:00Z");
            cluster.apply(object).unwrap();
        })
    });
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
}

#[test]
fn concurrent_requests_are_not_overwritten() {
    let served = served(&["one"]);
    let other = json!({"initiatedBy": {"username": "somebody"}, "sync": {"revision": "v2"}});
    let answer = meanwhile(&served, |cluster| {
        let mut object = api(cluster);
        object["operation"] = other.clone();
        cluster.apply(object).unwrap();
    });
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stderr.contains("argo-application argocd/api was changed meanwhile"), "{}", answer.stderr);
    assert_eq!(api(&served.clusters[0])["operation"], other);
}

#[test]
fn writing_to_many_apps_needs_confirmation() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let before = cluster.resource_version();
    let answer = served.ask(&["suspend", "--all"]);
    assert_eq!(answer.code, 2, "{}", answer.stdout);
    assert!(
        answer.stderr.contains("this would suspend 2 apps: argo-application/argocd/api"),
        "{}",
        answer.stderr
    );
    assert!(answer.stderr.contains("--yes"), "{}", answer.stderr);
    assert_eq!(cluster.resource_version(), before);
    let answer = served.ask(&["suspend", "--all", "--yes"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(shop(cluster)["spec"]["suspend"], true);
    assert_eq!(api(cluster)["spec"]["syncPolicy"]["automated"]["enabled"], false);
    let answer = served.ask(&["suspend"]);
    assert_eq!(answer.code, 2);
    let answer = served.ask(&["suspend", "shop", "--all"]);
    assert_eq!(answer.code, 2);
}

#[test]
fn a_dump_cannot_be_changed() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example");
    let answer = taffrail(&["suspend", "shop", "--from", example], "");
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("the objects of a dump (--from) cannot be changed"), "{}", answer.stderr);
    let answer = taffrail(&["suspend", "shop", "--from", example, "--dry-run=client"], "");
    assert_eq!(answer.code, 0);
    assert!(answer.stdout.starts_with("Kustomization flux-system/shop in eu-1\n"), "{}", answer.stdout);
    let answer = taffrail(&["suspend", "no-such-app", "--from", example, "--dry-run=client"], "");
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("no-such-app"), "{}", answer.stderr);
}

/// The lists of one kind may take longer than there is time, by what one tenant put there.
#[test]
fn a_slow_list_fails_for_its_kind_alone() {
    let served = served(&["one"]);
    let mut own = kustomization("shop");
    own["status"]["inventory"] = json!({"entries": [{"id": "flux-system_web__ConfigMap", "v": "v1"}]});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "flux-system", "name": "web"}});
    for object in [own, map] {
        served.clusters[0].apply(object).unwrap();
    }
    served.clusters[0].fault(Fault::new(Trouble::Hang).verb("list").resource("applications.argoproj.io"));
    let begun = Instant::now();
    let arguments = ["get", "apps", "--kubeconfig", &served.kubeconfig, "--timeout", "4s", "-o", "json"];
    let answer = taffrail(&arguments, "");
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    let json = answer.json();
    let shop = json["items"].as_array().unwrap().iter().find(|it| it["name"] == "shop").unwrap();
    assert_eq!(shop["health"], "Current", "{json:#}");
    assert!(json["items"].as_array().unwrap().iter().all(|it| it["name"] != "api"), "{json:#}");
    let errors = json["errors"].as_array().unwrap();
    assert!(errors.iter().all(|it| it.to_string().contains("applications")), "{errors:#?}");
    assert!(!errors.is_empty() && begun.elapsed() < Duration::from_secs(30));
}

/// An object of a kind that cannot be listed may be the one that the user means; one that a tenant gave its name is not.
#[test]
fn a_short_name_is_not_enough_where_a_list_failed() {
    let served = served(&["one"]);
    let hangs = |verb: &str| Fault::new(Trouble::Hang).verb(verb).resource("applications.argoproj.io");
    for verb in ["list", "watch"] {
        served.clusters[0].fault(hangs(verb));
    }
    let options = ["--dry-run=client", "--request-timeout", "2s", "--kubeconfig", &served.kubeconfig];
    let ask = |name: &str| taffrail(&[&["suspend", name][..], &options].concat(), "");
    let answer = ask("shop");
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert!(answer.stderr.contains("cannot rule out a second app 'shop' in "), "{}", answer.stderr);
    assert!(
        answer.stderr.contains("DELIVERY/NAMESPACE/NAME") && answer.stdout.is_empty(),
        "{}",
        answer.stderr
    );
    for name in ["flux-system/shop", "ks/flux-system/shop", "ks/shop"] {
        let answer = ask(name);
        assert!(answer.stdout.contains("Kustomization flux-system/shop"), "{name}: {}", answer.stderr);
    }
}

/// The author of a Kustomization names the source that a reconciliation of its app also reconciles.
#[test]
fn source_in_another_namespace_needs_confirmation() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let mut mine = kustomization("mine");
    mine["metadata"]["namespace"] = json!("argocd");
    mine["spec"]["sourceRef"]["namespace"] = json!("flux-system");
    cluster.apply(mine).unwrap();
    let answer = served.ask(&["reconcile", "argocd/mine", "--with-source", "--wait=false"]);
    assert_eq!(answer.code, 2, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stderr.contains("GitRepository flux-system/fleet"), "{}", answer.stderr);
    assert_eq!(requested(&fleet(cluster)), None);
    let planned = served.ask(&["reconcile", "argocd/mine", "--with-source", "--dry-run=client"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
}

/// Too many objects of one tenant do not hide those of others.
#[test]
fn oversized_lists_are_read_per_namespace() {
    let served = served(&["one"]);
    served.clusters[0].fault(Fault::new(Trouble::Hang).path("/apis/argoproj.io/v1alpha1/applications"));
    let slow = "/apis/argoproj.io/v1alpha1/namespaces/flux-system/applications";
    served.clusters[0].fault(Fault::new(Trouble::Hang).path(slow));
    let arguments = ["get", "apps", "--kubeconfig", &served.kubeconfig, "--timeout", "6s", "-o", "json"];
    let answer = taffrail(&arguments, "");
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    let json = answer.json();
    let names: Vec<&Value> = json["items"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["api", "shop"], "{json:#}");
    let errors = json["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert_eq!(errors[0]["scope"], "argoproj.io/Application in flux-system", "{errors:#?}");
}
