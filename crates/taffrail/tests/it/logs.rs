//! `taffrail logs`, `explain --logs` and `overview`, of simulated clusters.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snapbox::str;
use taffrail_sim::{Cluster, Fault, Trouble};
use taffrail_testkit::objects::{kustomizations, namespace};

use super::served::Served;
use super::{Answer, assert_shown, command, taffrail};

const PATIENCE: Duration = Duration::from_secs(45);

fn owned(mut object: Value, kind: &str, name: &str, uid: &str) -> Value {
    object["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}]);
    object
}

fn pod(name: &str, second: u8, lines: &str, status: Value) -> Value {
    let mut status = status;
    status["name"] = json!("web");
    status["image"] = json!("example.com/web:2");
    let is_ready = status["ready"] == true;
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}"), "labels": {"app": "web"},
            "creationTimestamp": format!("2026-03-01T12:00:{second:02}Z"),
            "annotations": {"taffrail.dev/logs": lines}},
        "spec": {"nodeName": "node-1", "restartPolicy": "Always",
            "containers": [{"name": "web", "image": "example.com/web:2"}]},
        "status": {"phase": "Running", "containerStatuses": [status], "conditions": [
            {"type": "Ready", "status": if is_ready { "True" } else { "False" },
                "reason": "ContainersNotReady", "lastTransitionTime": "2026-03-01T12:00:30Z"}]},
    })
}

fn ready() -> Value {
    json!({"ready": true, "restartCount": 0, "state": {"running": {"startedAt": "2026-03-01T12:00:00Z"}}})
}

fn crashing() -> Value {
    json!({
        "ready": false, "restartCount": 5,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 2m40s restarting failed container=web"}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "2026-03-01T12:00:00Z",
            "finishedAt": "2026-03-01T12:00:01Z"}},
    })
}

/// An app with a Deployment, of whose two Pods one crashes; a Service; and a CronJob.
fn fill(name: &str, cluster: &Cluster) {
    let app = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "flux-system", "name": "shop"},
        "spec": {"path": "./shop", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {"inventory": {"entries": [{"id": "shop_web_apps_Deployment", "v": "v1"}]},
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded"}]},
    });
    let labels = json!({"app": "web", "kustomize.toolkit.fluxcd.io/name": "shop",
        "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "example.com/web:2"}]}});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "shop", "name": "web", "uid": "uid-d", "generation": 1, "labels": labels},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
        "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1,
            "unavailableReplicas": 1, "conditions": [
                {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable",
                    "lastTransitionTime": "2026-03-01T12:00:30Z"},
                {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow",
                    "lastTransitionTime": "2026-03-01T12:00:40Z"}]},
    });
    let replicas = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"namespace": "shop", "name": "web-1", "uid": "uid-r", "labels": {"app": "web"},
            "annotations": {"deployment.kubernetes.io/revision": "1"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
        "status": {"observedGeneration": 1, "replicas": 2, "readyReplicas": 1},
    });
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"namespace": "shop", "name": "tidy", "uid": "uid-c"},
        "spec": {"schedule": "@hourly", "jobTemplate": {"spec": {"template": template}}}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"namespace": "shop", "name": "tidy-1", "uid": "uid-j"}, "spec": {"template": template}});
    let mut tidy = pod("tidy-1-x", 3, "swept", ready());
    tidy["metadata"]["labels"] = json!({"job": "tidy-1"});
    for object in [
        kustomizations(),
        namespace("flux-system"),
        namespace("shop"),
        app,
        deployment,
        owned(replicas, "Deployment", "web", "uid-d"),
        owned(pod("web-a", 1, &format!("serving in {name}"), ready()), "ReplicaSet", "web-1", "uid-r"),
        owned(
            pod(
                "web-b",
                2,
                "connecting to db:5432\n\u{1b}[31mfatal:\u{1b}[0m\tno route\u{1b}[2J \u{202e}to host",
                crashing(),
            ),
            "ReplicaSet",
            "web-1",
            "uid-r",
        ),
        service,
        cron,
        owned(job, "CronJob", "tidy", "uid-c"),
        owned(tidy, "Job", "tidy-1", "uid-j"),
    ] {
        cluster.apply(object).unwrap();
    }
}

pub(super) fn shop(names: &[&str]) -> Served {
    Served::start_verbatim(names, fill)
}

#[test]
fn logs_of_an_app_are_those_of_its_failing_containers() {
    let shop = shop(&["eu"]);
    let answer = shop.ask(&["logs", "shop"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_shown(
        &answer.stdout,
        str![[r#"
connecting to db:5432
fatal:    no route�[2J �to host

"#]],
    );
    assert_shown(
        &answer.stderr,
        str![[r#"
 hint: 1 other Pod is well; --all-pods prints the logs of all

"#]],
    );
    for what in [
        &["logs", "shop", "--all-pods"][..],
        &["logs", "Kustomization/shop", "-n", "flux-system", "--all-pods"],
    ] {
        let all = shop.ask(what);
        assert_eq!(all.code, 0, "{}", all.stderr);
        assert_shown(
            &all.stdout,
            str![[r#"
web-b/web connecting to db:5432
web-b/web fatal:    no route�[2J �to host
web-a/web serving in eu

"#]],
        );
    }
}

#[test]
fn logs_of_objects_are_those_of_their_pods() {
    let shop = shop(&["eu"]);
    let first = |arguments: &[&str]| {
        let answer = shop.ask(&[&["logs"], arguments].concat());
        assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.stderr);
        answer.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for object in
        ["deploy/web", "svc/web", "rs/web-1", "apps/Deployment/shop/web", "eu/apps/Deployment/shop/web"]
    {
        assert_eq!(first(&[object, "-n", "shop"])[0], "connecting to db:5432", "{object}");
    }
    assert_eq!(first(&["deploy/web", "-A"])[0], "connecting to db:5432");
    assert_eq!(first(&["cronjob/tidy", "-n", "shop"])[0], "swept");
    assert_eq!(first(&["pod/web-a", "-n", "shop", "--prefix"])[0], "web-a/web serving in eu");
    assert_eq!(first(&["/Pod/shop/web-a", "--timestamps"])[0], "2026-03-01T12:00:00Z serving in eu");
    assert_eq!(first(&["svc/web", "-n", "shop", "--previous", "-c", "web", "--tail", "1"]).len(), 1);
    assert_eq!(first(&["pod/web-a", "-n", "shop", "--tail=0"]).len(), 0);
}

#[test]
fn several_clusters_are_named_before_each_line() {
    let shop = shop(&["eu", "us"]);
    let answer = shop.ask(&["logs", "shop", "--all-pods", "--tail", "1"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_shown(
        &answer.stdout,
        str![[r#"
eu/web-b/web fatal:    no route�[2J �to host
eu/web-a/web serving in eu
us/web-b/web fatal:    no route�[2J �to host
us/web-a/web serving in us

"#]],
    );
    let one = shop.ask(&["logs", "pod/web-a", "-n", "shop", "--cluster", "us"]);
    assert_eq!(one.stdout, "serving in us\n", "{}", one.stderr);
}

#[test]
fn an_alias_chooses_the_logs_of_its_cluster() {
    let shop = shop(&["eu", "us"]);
    let identity =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "42"}});
    shop.clusters[1].apply(identity).unwrap();
    let mut config: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(&shop.kubeconfig).unwrap()).unwrap();
    let contexts = config["contexts"].as_array_mut().unwrap();
    let mut again = contexts.iter().find(|context| context["name"] == "us").unwrap().clone();
    again["name"] = json!("us-again");
    contexts.push(again);
    std::fs::write(&shop.kubeconfig, config.to_string()).unwrap();

    let clusters = shop.ask(&["get", "clusters", "-o", "json"]);
    assert!(clusters.stdout.contains("\"us-again\"\n      ]"), "{}", clusters.stdout);
    for name in [&["shop"][..], &["kustomization/shop", "-n", "flux-system"], &["pod/web-a", "-n", "shop"]] {
        let logs = |cluster| {
            shop.ask(&[&["logs"], name, &["--all-pods", "--tail", "1", "--cluster", cluster]].concat())
        };
        let (first, alias) = (logs("us"), logs("us-again"));
        assert!(first.stdout.contains("serving in us"), "{}{}", first.stdout, first.stderr);
        assert_eq!((alias.code, alias.stdout), (first.code, first.stdout), "{name:?} {}", alias.stderr);
    }
}

#[test]
fn what_has_no_log_is_told_with_its_exit_code() {
    let shop = shop(&["eu"]);
    let told = |arguments: &[&str], code: i32| {
        let answer = shop.ask(&[&["logs"], arguments].concat());
        assert_eq!((answer.code, &*answer.stdout), (code, ""), "{arguments:?}: {}", answer.stderr);
        answer.stderr
    };
    let previous = told(&["pod/web-a", "-n", "shop", "--previous"], 3);
    assert!(previous.contains("error: eu: read the previous log of container web of pods/web-a in namespace shop: previous terminated container"), "{previous}");
    let absent = told(&["deploy/nothing", "-n", "shop"], 2);
    assert!(absent.contains("there is no deploy 'nothing'"), "{absent}");
    assert!(told(&["nothing"], 2).contains("nothing"));
    let container = told(&["deploy/web", "-n", "shop", "-c", "app"], 2);
    assert!(
        container.contains("no Pod has a container 'app'")
            && container.contains("the containers of these Pods are web"),
        "{container}"
    );
    assert!(told(&["pod/web-a", "-n", "shop", "--cluster", "us"], 2).contains("there is no cluster 'us'"));
    let none = told(&["sa/default", "-n", "shop"], 2);
    assert!(none.contains("default"), "{none}");

    let kubelet =
        "Get \"https://10.0.0.1:10250/containerLogs\": dial tcp 10.0.0.1:10250: connect: connection refused";
    let trouble = Trouble::ServerError(kubelet.to_owned());
    shop.clusters[0].fault(Fault::new(trouble).path("/api/v1/namespaces/shop/pods/web-b/log"));
    let lost = told(&["deploy/web", "-n", "shop"], 3);
    assert!(lost.contains("connection refused") && lost.contains("is its kubelet reachable?"), "{lost}");
    let dump = taffrail(&["logs", "shop", "--from", "dumps"], "");
    assert_eq!(dump.code, 2);
    assert!(dump.stderr.contains("a dump holds no logs"), "{}", dump.stderr);
}

#[test]
fn a_log_is_followed_until_its_pod_has_ended() {
    let shop = shop(&["eu"]);
    let arguments = shop.all(&["logs", "pod/web-a", "-n", "shop", "-f"]);
    let mut child = command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "serving in eu");
    let mut ended = shop.clusters[0].get("v1", "Pod", "shop", "web-a").unwrap();
    ended["status"]["phase"] = json!("Succeeded");
    ended["status"]["containerStatuses"][0]["state"] = json!({"terminated": {"exitCode": 0}});
    shop.clusters[0].apply(ended).unwrap();
    let begun = Instant::now();
    assert_eq!(lines.count(), 0);
    let status = child.wait().unwrap();
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(begun.elapsed() < PATIENCE, "{told}");
    assert!(told.contains("web-a/web has ended"), "{told}");
    assert_eq!(status.code(), Some(0), "{told}");
}

#[test]
fn explain_shows_the_last_lines_of_the_cause() {
    let shop = shop(&["eu"]);
    let answer = shop.ask(&["explain", "shop", "--logs"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let section = answer.stdout.split("\n\n").find(|section| section.starts_with("Last lines"));
    assert_shown(
        section.unwrap_or(&answer.stdout),
        str![[r#"
Last lines of container web of Pod shop/web-b, before it crashed
  connecting to db:5432
  fatal:    no route�[2J �to host
"#]],
    );
    let logs = shop.ask(&["explain", "shop", "--logs", "-o", "json"]).json()["logs"].clone();
    assert_eq!(
        logs,
        json!({
            "pod": {"group": "", "kind": "Pod", "namespace": "shop", "name": "web-b"}, "container": "web", "previous": true,
            "lines": ["connecting to db:5432", "\u{1b}[31mfatal:\u{1b}[0m\tno route\u{1b}[2J \u{202e}to host"], "cut": false,
        })
    );
    assert!(shop.ask(&["explain", "shop", "-o", "json"]).json().get("logs").is_none());
    let dump = taffrail(&["explain", "--logs", "--from", "dumps"], "");
    assert_eq!(dump.code, 2);
    assert!(dump.stderr.contains("a dump holds no logs"), "{}", dump.stderr);
}

/// Explanations with the log of their cause, as JSON: of one app, of all, and where the log cannot be read.
pub(super) fn samples() -> [Answer; 3] {
    let shop = shop(&["eu"]);
    let one = shop.ask(&["explain", "shop", "--logs", "-o", "json"]);
    let all = shop.ask(&["explain", "--logs", "-o", "json"]);
    let trouble = Trouble::ServerError("no route to the kubelet".to_owned());
    shop.clusters[0].fault(Fault::new(trouble).path("/api/v1/namespaces/shop/pods/web-b/log"));
    [one, all, shop.ask(&["explain", "shop", "--logs", "-o", "json"])]
}

#[test]
fn a_log_that_cannot_be_read_makes_explain_incomplete() {
    let shop = shop(&["eu"]);
    let trouble = Trouble::ServerError("no route to the kubelet".to_owned());
    shop.clusters[0].fault(Fault::new(trouble).path("/api/v1/namespaces/shop/pods/web-b/log"));
    let answer = shop.ask(&["explain", "shop", "--logs"]);
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    assert!(answer.stdout.contains("no route to the kubelet"), "{}", answer.stdout);
}

#[test]
fn explain_tells_why_the_pods_of_a_log_cannot_be_read() {
    let shop = shop(&["eu"]);
    let trouble = Trouble::ServerError("no Pods today".to_owned());
    shop.clusters[0].fault(Fault::new(trouble).resource("pods"));
    let answer = shop.ask(&["explain", "shop", "--logs"]);
    assert_eq!(answer.code, 3, "{}", answer.stdout);
    let why = "eu: cannot read the log of ";
    assert!(answer.stderr.contains(why) && answer.stderr.contains("no Pods today"), "{}", answer.stderr);
}

#[test]
fn an_overview_lists_what_needs_attention_once() {
    let shop = shop(&["eu", "us"]);
    let answer = shop.ask(&["overview", "--now", "2026-03-01T12:10:00Z"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_shown(
        &answer.stdout,
        str![[r#"
Taffrail  2 clusters, 2 apps:  ✗ 2 Failed

Clusters
  eu  ✗ 1 Failed                              us  ✗ 1 Failed

Needs attention
  ✗ Failed  shop  eu us   9 min  back-off 2m40s restarting failed container=web

"#]],
    );
    assert_eq!(shop.ask(&["overview", "--exit-status"]).code, 1);
    let told = shop.ask(&["overview", "--now", "2026-03-01T12:10:00Z", "-o", "json", "--exit-status"]);
    assert_eq!(told.code, 1, "{}", told.stderr);
    let told = told.json();
    assert_eq!((&told["apps"], &told["problems"], &told["causes"]), (&json!(2), &json!(2), &json!(1)));
    let cause = &told["attention"][0];
    assert_eq!((&cause["count"], &cause["clusters"]), (&json!(2), &json!(["eu", "us"])), "{cause}");
    assert_eq!((&cause["state"], &cause["keyCount"]), (&json!("Failed"), &json!(1)));
    let changed = told["changed"].as_array().unwrap();
    assert_eq!(changed.len(), 2, "{told}");
    assert!(changed.iter().all(|it| it["name"] == "shop" && it["at"] == cause["since"]), "{told}");
    let later = shop.ask(&["overview", "--now", "2026-03-03T12:10:00Z", "-o", "json"]).json();
    assert_eq!(later["changed"], json!([]), "what began two days ago is not late");
    let one = shop.ask(&["overview", "--cluster", "us", "--once"]);
    assert!(!one.stdout.contains("eu"), "{}", one.stdout);
    assert_eq!(shop.ask(&["overview", "--cluster", "ap"]).code, 2);
    shop.clusters[0].trouble(Trouble::Unreachable);
    let lost = shop.ask(&["overview"]);
    assert_eq!(lost.code, 3);
    assert!(lost.stdout.contains("no answer"), "{}", lost.stdout);
    let lost = shop.ask(&["overview", "-o", "json"]);
    assert_eq!(lost.code, 3, "{}", lost.stdout);
    let lost = lost.json();
    assert_eq!((&lost["silent"], &lost["clusters"]), (&json!(["eu"]), &json!(2)));
    let silent =
        lost["attention"].as_array().unwrap().iter().find(|cause| cause["axis"] == "freshness").unwrap();
    // A cluster of which nothing is known needs attention all the same.
    assert_eq!(
        (&silent["state"], &silent["clusters"], &silent["count"]),
        (&json!("Lost"), &json!(["eu"]), &json!(0))
    );
    assert_eq!(lost["errors"][0]["cluster"], "eu");
}

/// Overviews as JSON: of failing apps, and of a cluster that does not answer.
pub(super) fn overviews() -> [Answer; 2] {
    let shop = shop(&["eu", "us"]);
    let failing = shop.ask(&["overview", "--now", "2026-03-01T12:10:00Z", "-o", "json"]);
    shop.clusters[0].trouble(Trouble::Unreachable);
    [failing, shop.ask(&["overview", "-o", "json"])]
}

#[test]
fn a_followed_overview_adds_a_line_for_each_change() {
    let shop = shop(&["eu"]);
    let arguments = shop.all(&["overview", "-w"]);
    let mut child = command(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let summary = lines.next().unwrap();
    assert!(summary.starts_with("Taffrail  1 cluster, 1 app:"), "{summary}");
    let problem = lines.next().unwrap();
    assert!(problem.starts_with("eu shop is Failed: "), "{problem}");
    let mut deployment = shop.clusters[0].get("apps/v1", "Deployment", "shop", "web").unwrap();
    deployment["status"] = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2,
        "availableReplicas": 2, "conditions": [{"type": "Available", "status": "True"}]});
    shop.clusters[0].apply(deployment).unwrap();
    let change = lines.find(|line| line.contains(" eu shop Failed -> ")).unwrap();
    assert!(change.contains(" -> Ready"), "{change}");
    child.kill().unwrap();
    child.wait().unwrap();
}
