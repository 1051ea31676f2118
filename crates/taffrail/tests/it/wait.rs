//! `taffrail wait`: until it is so, or why not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::objects::{self, kustomizations, namespace, widgets};

use super::going::Going;
use super::served::Served;
use super::{Answer, command, run, taffrail};

/// Long enough for a busy machine; nothing waits for it that works.
const PATIENCE: Duration = Duration::from_secs(60);

fn served(names: &[&str]) -> Served {
    Served::start(names, |_, cluster| {
        let namespace = namespace("shop");
        cluster.apply(namespace).unwrap();
    })
}

impl Served {
    fn arguments<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        self.all(&[&["wait"], arguments].concat())
    }

    /// Waits for the end.
    fn wait(&self, arguments: &[&str]) -> Answer {
        taffrail(&self.arguments(arguments), "")
    }

    fn waiting(&self, arguments: &[&str]) -> Going {
        Going::start(command(&self.arguments(arguments)), PATIENCE)
    }
}

/// The server counts a generation of its own where that is the same as before and defaults are left out.
fn generation() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(1);
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// A Deployment of which so many of two replicas are available.
fn deployment(name: &str, available: i64) -> Value {
    let generation = generation();
    let mut object = objects::deployment("shop", name, available);
    object["metadata"]["generation"] = json!(generation);
    object["metadata"]["labels"] = json!({"app": name, "team": "blue"});
    object["status"]["observedGeneration"] = json!(generation);
    object["status"]["conditions"][0] = json!({"type": "Available", "status": if available == 2 { "True" } else { "False" }, "reason": "Minimum"});
    object
}

/// One whose deadline has passed.
fn stuck(name: &str) -> Value {
    let mut stuck = deployment(name, 0);
    stuck["status"]["conditions"][1] = json!({"type": "Progressing", "status": "False",
        "reason": "ProgressDeadlineExceeded", "message": "ReplicaSet has timed out progressing."});
    stuck
}

fn annotated(mut object: Value) -> Value {
    object["metadata"]["annotations"] = json!({"done": "yes"});
    object
}

fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"key": value}})
}

#[test]
fn ready_targets_are_met_at_once_and_changes_are_reported() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    cluster.apply(deployment("web", 2)).unwrap();
    let answer = served.wait(&["deploy/web", "-n", "shop"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert!(
        answer.stdout.contains("deployment/web Ready") && answer.stdout.contains("1 of 1 ready"),
        "{}",
        answer.stdout
    );

    cluster.apply(deployment("web", 1)).unwrap();
    let mut going = served.waiting(&["deploy", "web", "-n", "shop"]);
    let line = going.until("deployment/web InProgress");
    assert!(line.contains("1/2"), "it says what it waits for: {line}");
    cluster.apply(deployment("web", 2)).unwrap();
    going.until("deployment/web Ready");
    assert_eq!(going.end(), Some(0));
}

#[test]
fn objects_and_kinds_that_are_not_there_yet_are_waited_for() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let mut going = served.waiting(&["deploy/later", "widget/later", "-n", "shop", "--for", "exists"]);
    // Which is told first depends on who answers first.
    going.until(": ");
    going.until(": ");
    for said in [
        "deployment/later NotFound: the object does not exist yet",
        "the server has no kind called widget yet",
    ] {
        assert!(going.seen.iter().any(|line| line.contains(said)), "{said}: {:#?}", going.seen);
    }
    cluster.apply(deployment("later", 0)).unwrap();
    cluster.apply(widgets()).unwrap();
    going.until("widget/later NotFound: the object does not exist yet");
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "later", "namespace": "shop"}});
    cluster.apply(widget).unwrap();
    going.until("2 of 2 there");
    assert_eq!(going.end(), Some(0));
}

#[test]
fn each_condition_is_waited_for() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    cluster.apply(deployment("web", 1)).unwrap();
    cluster.apply(map("settings", "old")).unwrap();
    for (arguments, waiting, then, met) in [
        (
            vec!["deploy/web", "--for", "condition=available"],
            "the condition available is False, not True (Minimum)",
            deployment("web", 2),
            "the condition available is True",
        ),
        (
            vec!["deploy/web", "--for=jsonpath={.status.readyReplicas}=1"],
            "{.status.readyReplicas} is 2, not 1",
            deployment("web", 1),
            "{.status.readyReplicas} is 1",
        ),
        (
            vec!["cm/settings", "--for=jsonpath=data.key=new"],
            "data.key is old, not new",
            map("settings", "new"),
            "data.key is new",
        ),
        (
            vec!["deploy/web", "--for", "failed"],
            "the object has not failed so far",
            stuck("web"),
            "deployment/web Met",
        ),
        (vec!["deploy/web"], "deployment/web Failed", deployment("web", 2), "deployment/web Ready"),
        (
            vec!["deploy/web", "--for", "cel=object.status.readyReplicas < object.spec.replicas"],
            "object.status.readyReplicas < object.spec.replicas is not true yet",
            deployment("web", 1),
            "object.status.readyReplicas < object.spec.replicas is true",
        ),
        (
            vec!["deploy/web", "--for=cel=object.metadata.annotations.done == 'yes'"],
            "there is no 'annotations' yet",
            annotated(deployment("web", 1)),
            "deployment/web Met",
        ),
    ] {
        let mut going = served.waiting(&[&arguments[..], &["-n", "shop", "--fail-fast=false"]].concat());
        going.until(waiting);
        cluster.apply(then).unwrap();
        going.until(met);
        assert_eq!(going.end(), Some(0), "{arguments:?}");
    }
}

#[test]
fn non_boolean_expression_is_an_error() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    cluster.apply(deployment("web", 2)).unwrap();
    cluster
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop"},
            "data": {"key": "c2VjcmV0"}}))
        .unwrap();
    for (expression, said) in [
        ("object.metadata.name", "its result is a string, not true or false"),
        ("object.metadata.name.unheard() == ''", "there is no function 'unheard'"),
        ("status.readyReplicas == 2", "write object.status"),
        ("object.status.readyReplicas ==", "is not an expression in CEL"),
        (&"(".repeat(300), "more than 64 opening brackets"),
        (&format!("1{} > 0", "+1".repeat(300)), "more than 256 operators"),
    ] {
        let answer = served.wait(&["deploy/web", "-n", "shop", "--for", &format!("cel={expression}")]);
        assert_eq!(answer.code, 2, "{expression}: {}{}", answer.stdout, answer.stderr);
        assert!(answer.stderr.contains(said), "{expression}: {}", answer.stderr);
    }
    let hidden = ["secret/key", "-n", "shop", "--timeout", "5s", "--for", "cel=!has(object.data)"];
    let answer = served.wait(&hidden);
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("values of Secrets"), "{}", answer.stdout);
    let named = ["secret/key", "-n", "shop", "--for", "cel=object.metadata.name == 'key'"];
    assert_eq!(served.wait(&named).code, 0);
}

#[test]
fn missing_objects_count_as_deleted() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    for absent in
        [["deploy/never", "-n", "shop"], ["no.such/Kind/shop/never", "-n", "shop"], ["deploy", "-n", "shop"]]
    {
        let answer = served.wait(&[&absent[..], &["--for", "deleted"]].concat());
        assert_eq!(answer.code, 0, "{absent:?}: {}{}", answer.stdout, answer.stderr);
    }
    // A slip of the pen deletes nothing.
    let answer = served.wait(&["deplyo/web", "--for", "deleted", "--timeout", "5s"]);
    assert_eq!(answer.code, 1, "{}", answer.stdout);

    cluster.apply(deployment("web", 2)).unwrap();
    cluster.apply(deployment("api", 2)).unwrap();
    let mut going = served.waiting(&["deploy", "-l", "team=blue", "-n", "shop", "--for", "deleted"]);
    going.until("deployment/web Waiting: the object exists, and its deletion has not been requested");
    assert!(cluster.delete("apps/v1", "Deployment", "shop", "web"));
    going.until("deployment/web Met: the object was deleted");
    assert!(cluster.delete("apps/v1", "Deployment", "shop", "api"));
    going.until("2 of 2 gone");
    assert_eq!(going.end(), Some(0));

    cluster.apply(map("replaced", "1")).unwrap();
    let mut going = served.waiting(&["cm/replaced", "-n", "shop", "--for", "deleted"]);
    going.until("configmap/replaced Waiting");
    assert!(cluster.delete("v1", "ConfigMap", "shop", "replaced"));
    cluster.apply(map("replaced", "2")).unwrap();
    going.until("1 of 1 gone");
    assert_eq!(going.end(), Some(0));
}

#[test]
fn wait_ends_when_only_failed_targets_remain() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    cluster.apply(stuck("web")).unwrap();
    cluster.apply(deployment("api", 1)).unwrap();
    let mut going = served.waiting(&["deploy/web", "deploy/api", "-n", "shop"]);
    going.until("deployment/web Failed");
    going.until("deployment/api InProgress");
    cluster.apply(deployment("api", 2)).unwrap();
    going.until("Given up after");
    going.until("deployment/web is Failed");
    going.until("taffrail explain deployment/web -n shop --context one");
    going.until("--fail-fast=false keeps waiting");
    assert_eq!(going.end(), Some(1));
}

#[test]
fn all_targets_must_be_met_at_once_and_stay_met() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    cluster.apply(deployment("web", 2)).unwrap();
    let mut going = served.waiting(&["deploy/web", "-n", "shop", "--stable-for", "2s", "-o", "jsonl"]);
    going.until(r#""verdict":"Met""#);
    cluster.apply(deployment("web", 1)).unwrap();
    going.until(r#""verdict":"Waiting""#);
    let back = Instant::now();
    cluster.apply(deployment("web", 2)).unwrap();
    let summary: Value = serde_json::from_str(&going.until("WaitSummary")).unwrap();
    assert!(back.elapsed() >= Duration::from_secs(2), "{:?}", back.elapsed());
    assert_eq!((&summary["result"], &summary["met"]), (&json!("Met"), &json!(1)));
    assert_eq!(going.end(), Some(0));
}

#[test]
fn wait_result_shows_what_blocks() {
    let served = served(&["one", "two"]);
    served.clusters[0].apply(deployment("web", 2)).unwrap();
    served.clusters[1].apply(deployment("web", 1)).unwrap();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "import", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]},
        "status": {"phase": "Pending", "containerStatuses": [{"name": "c", "ready": false, "restartCount": 0, "image": "web:1",
            "imageID": "", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image web:1"}}}]}});
    served.clusters.iter().for_each(|cluster| cluster.apply(pod.clone()).unwrap());
    let answer = served.wait(&[
        "deploy/web",
        "pod/import",
        "cm/none",
        "-n",
        "shop",
        "--timeout",
        "5s",
        "--fail-fast=false",
    ]);
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    for said in [
        "Time is up after 5.",
        "1 of 6 ready",
        "two deployment/web is InProgress",
        "one pod/import is",
        "ImagePullBackOff",
        "one configmap/none is NotFound: the object does not exist yet",
        "taffrail explain deployment/web -n shop --context two",
    ] {
        assert!(answer.stdout.contains(said), "{said}: {}", answer.stdout);
    }
    assert!(!answer.stdout.contains("one deployment/web is"), "{}", answer.stdout);

    let began = Timestamp::now();
    let report = served.wait(&["deploy/web", "-n", "shop", "--timeout", "5s", "-o", "junit"]);
    assert_eq!(report.code, 1);
    let ended = Timestamp::now();
    let (_, stamp) = report.stdout.split_once("timestamp=\"").unwrap();
    let start: Timestamp = stamp[..stamp.find('"').unwrap()].parse().unwrap();
    // It is cut to a second.
    let earliest = began.as_second();
    assert!((earliest..=ended.as_second() - 5).contains(&start.as_second()), "{began} {start} {ended}");
    for said in [
        r#"<testsuite name="wait --for=current""#,
        r#"tests="2" failures="1" errors="0""#,
        r#"<testcase classname="one.shop" name="deployment/web""#,
        r#"<failure type="InProgress""#,
        "Deployment shop/web is InProgress",
        "$ taffrail explain",
    ] {
        assert!(report.stdout.contains(said), "{said}: {}", report.stdout);
    }
    // A failure is not called Current.
    let gone = ["deploy/web", "-n", "shop", "--timeout", "5s", "--for", "deleted", "-o", "junit"];
    let report = served.wait(&gone).stdout;
    assert!(report.contains(r#"<failure type="ConditionNotMet""#), "{report}");
}

#[test]
fn unobserved_targets_are_neither_ready_nor_failed() {
    let served = served(&["one", "two"]);
    for cluster in &served.clusters {
        cluster.apply(deployment("web", 2)).unwrap();
    }
    let away = served.runtime.block_on(async { served.clusters[1].trouble(Trouble::Blackhole) });
    let answer = served.wait(&["deploy/web", "-n", "shop", "--timeout", "3s"]);
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("two deploy/web is Unknown"), "{}", answer.stdout);

    let mut going = served.waiting(&["deploy/web", "-n", "shop"]);
    going.until("one deployment/web Ready");
    served.clusters[1].heal(away);
    going.until("2 of 2 ready");
    assert_eq!(going.end(), Some(0));

    let answer =
        taffrail(&["wait", "deploy/web", "--context", "nowhere", "--kubeconfig", &served.kubeconfig], "");
    assert_eq!(
        answer.code, 3,
        "what can never be reached is not waited for: {}{}",
        answer.stdout, answer.stderr
    );
}

#[test]
fn files_selections_and_inventories_name_many() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    cluster.apply(deployment("web", 2)).unwrap();
    cluster.apply(map("settings", "1")).unwrap();
    let manifests = served.folder.path().join("app.yaml");
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n---\n\
                apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n";
    std::fs::write(&manifests, text).unwrap();
    let answer = served.wait(&["-f", manifests.to_str().unwrap(), "-n", "shop"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("2 of 2 ready"), "{}", answer.stdout);
    let piped = run(command(&served.arguments(&["-f", "-", "-n", "shop"])), text.as_bytes());
    assert_eq!(piped.code, 0, "{}", piped.stdout);
    let broken = run(command(&served.arguments(&["-f", "-"])), b"kind: [\n");
    assert_eq!(broken.code, 3, "{}", broken.stderr);

    let mut inventory = map("inventory", "");
    inventory["data"] =
        json!({"shop_web_apps_Deployment": "", "shop_settings__ConfigMap": "", "shop_gone__Service": ""});
    cluster.apply(inventory).unwrap();
    let answer = served.wait(&["--inventory", "cm/inventory", "-n", "shop", "--timeout", "5s"]);
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    assert!(
        answer.stdout.contains("3 of 4 ready") && answer.stdout.contains("service/gone"),
        "{}",
        answer.stdout
    );

    let mut going = served.waiting(&[
        "deploy",
        "-l",
        "app in (web,late)",
        "-n",
        "shop",
        "--for=jsonpath={.status.readyReplicas}=1",
    ]);
    going.until("deployment/web Waiting: {.status.readyReplicas} is 2, not 1");
    cluster.apply(deployment("late", 1)).unwrap();
    going.until("deployment/late Met");
    cluster.apply(deployment("web", 1)).unwrap();
    going.until("2 of 2 with");
    assert_eq!(going.end(), Some(0));
}

#[test]
fn apps_are_waited_for_at_a_revision() {
    const COMMIT: &str = "1e644628deb645c454f4db167e1041e95e2d0ba3";
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    let mut going = served.waiting(&["app/shop", "-n", "shop"]);
    going.until("there is no such app yet");
    let web = |available: i64| {
        let mut web = deployment("web", available);
        web["metadata"]["labels"]["app.kubernetes.io/instance"] = json!("shop");
        web
    };
    cluster.apply(web(1)).unwrap();
    going.until("app/shop InProgress");
    cluster.apply(web(2)).unwrap();
    going.until("1 of 1 ready");
    assert_eq!(going.end(), Some(0));

    cluster.apply(kustomizations()).unwrap();
    let kustomization = |applied: &str| {
        let generation = generation();
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "site", "namespace": "shop", "generation": generation},
            "spec": {"path": "./", "prune": true, "interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "site"}},
            "status": {"observedGeneration": generation, "lastAppliedRevision": applied, "lastAttemptedRevision": applied,
                "inventory": {"entries": [{"id": "shop_site_apps_Deployment", "v": "v1"}]},
                "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded",
                    "message": format!("Applied revision: {applied}"), "observedGeneration": generation}]}})
    };
    cluster.apply(deployment("site", 1)).unwrap();
    cluster.apply(kustomization("main@sha1:0000000000000000000000000000000000000000")).unwrap();
    let mut going = served.waiting(&["app/ks/shop/site", "--for", "revision=1e644628"]);
    going.until("main@sha1:00000000 is applied, not 1e644628");
    cluster.apply(kustomization(&format!("main@sha1:{COMMIT}"))).unwrap();
    going.until("app/site InProgress");
    cluster.apply(deployment("site", 2)).unwrap();
    going.until("1 of 1 ready at 1e644628");
    assert_eq!(going.end(), Some(0));
}

#[test]
fn wait_sends_no_requests_besides_watches() {
    let served = served(&["one"]);
    asks_for_watches_only(&served);
    // Of a server that is far, or slow, no less.
    let near = served.clusters[0].url();
    let far = far_away(near.trim_start_matches("https://").to_owned());
    let path = served.folder.path().join("config");
    let kubeconfig = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, kubeconfig.replace(&near, &format!("https://{far}"))).unwrap();
    asks_for_watches_only(&served);
}

/// A way to a server on which each packet takes its time; it ends with the test.
pub(super) fn far_away(server: String) -> std::net::SocketAddr {
    fn carry(mut from: TcpStream, mut to: TcpStream) {
        let mut packet = [0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut packet) {
            thread::sleep(Duration::from_millis(40));
            if to.write_all(&packet[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let Ok(server) = TcpStream::connect(&server) else { continue };
            let (Ok(back), Ok(forth)) = (client.try_clone(), server.try_clone()) else { continue };
            thread::spawn(|| carry(client, server));
            thread::spawn(|| carry(forth, back));
        }
    });
    address
}

fn asks_for_watches_only(served: &Served) {
    let cluster = &served.clusters[0];
    cluster.fault(Fault::new(Trouble::ServerError("nobody asks for a list".to_owned())).verb("list"));
    cluster.apply(deployment("web", 1)).unwrap();
    let mut waiting = command(&served.arguments(&["deploy/web", "-n", "shop", "-vv", "--timeout", "20s"]));
    waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut child = waiting.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("InProgress")));
    for available in [0, 1, 0, 1, 0, 1, 2] {
        cluster.apply(deployment("web", available)).unwrap();
    }
    assert!(lines.any(|line| line.unwrap().contains("1 of 1 ready")));
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let asked: Vec<&str> = told
        .lines()
        .filter_map(|line| line.split_once(" method=GET path=\"").map(|(_, rest)| rest))
        .collect();
    assert!(!asked.is_empty(), "{told}");
    for path in &asked {
        let is_first = ["/api\" ", "/apis\" ", "/version\" "].iter().any(|first| path.starts_with(first));
        assert!(is_first || path.contains("watch="), "{path}");
    }
    assert!(
        asked.iter().all(|path| !path.contains("/deployments?") || path.contains("metadata.name")),
        "{asked:#?}"
    );
}

#[test]
fn unwatchable_kinds_are_polled() {
    let served = served(&["one"]);
    let cluster = &served.clusters[0];
    cluster.apply(deployment("web", 1)).unwrap();
    let alice = cluster.add_user("alice", &[]);
    let group = "rbac.authorization.k8s.io";
    cluster
        .apply(json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": "look", "namespace": "shop"},
            "rules": [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}]}))
        .unwrap();
    cluster
        .apply(json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": "look", "namespace": "shop"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "look"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}]}))
        .unwrap();
    let file = served.folder.path().join("alice");
    std::fs::write(&file, cluster.kubeconfig_for(&alice)).unwrap();
    let file = file.to_str().unwrap();
    let mut child = command(&["wait", "deploy/web", "-n", "shop", "--kubeconfig", file])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("deployment/web InProgress")));
    cluster.apply(deployment("web", 2)).unwrap();
    assert!(lines.any(|line| line.unwrap().contains("1 of 1 ready")));
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    let note = "Deployment shop/web may be read but not watched, so it is read again every 5 s";
    assert_eq!(told.matches(note).count(), 1, "{told}");

    // One that is not there is waited for in the same way, and what may not be read is told as before.
    let absent = ["wait", "deploy/none", "-n", "shop", "--for", "deleted", "--kubeconfig", file];
    assert_eq!(taffrail(&absent, "").code, 0);
    let hidden = ["wait", "svc/web", "-n", "shop", "--timeout", "5s", "--kubeconfig", file];
    let answer = taffrail(&hidden, "");
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("forbidden"), "{}", answer.stdout);
}

#[test]
fn invalid_usage_fails_at_once() {
    for (arguments, said) in [
        (vec!["deploy/web", "--for", "happiness"], "not something to wait for"),
        (vec!["deploy/web", "--for", "jsonpath={.a"], "is not a JSONPath"),
        (vec!["deploy/web", "--for", "revision=v1"], "only apps have revisions"),
        (vec!["deploy/web", "-l", "a=b"], "-l selects"),
        (vec!["deploy", "-l", "app=(web"], "is not a label selector"),
        (vec!["deploy/web", "-A"], "an object named KIND/NAME needs a namespace"),
        (vec!["deploy", "svc/web"], "cannot be mixed"),
        (vec![], "required"),
        (vec!["deploy/web", "--timeout", "0s"], "must be greater than zero"),
    ] {
        let answer = taffrail(&[&["wait"], &arguments[..]].concat(), "");
        assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.stderr);
        assert!(answer.stderr.contains(said), "{arguments:?}: {}", answer.stderr);
    }
}

/// The JSON lines about an object and about an app that are not well.
pub(super) fn sample() -> String {
    let served = served(&["one"]);
    let mut web = stuck("web");
    web["metadata"]["labels"]["app.kubernetes.io/instance"] = json!("shop");
    served.clusters[0].apply(web).unwrap();
    let lines = |target: &str| served.wait(&[target, "-n", "shop", "-o", "jsonl"]).stdout;
    lines("deploy/web") + &lines("app/shop")
}

#[test]
fn every_example_is_understood() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/wait.md");
    let page = std::fs::read_to_string(page).unwrap();
    let served = served(&["one"]);
    let folder = served.folder.path().join("k8s");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("web.yaml"), deployment("web", 2).to_string()).unwrap();
    let own = page.split('`').chain(page.lines()).filter(|text| text.starts_with("taffrail wait "));
    let help = taffrail(&["wait", "--help"], "").stdout;
    let of_help = help.lines().map(str::trim).filter(|line| line.starts_with("taffrail wait "));
    let of_help = of_help.map(|line| line.split("  ").next().unwrap().split(" > ").next().unwrap());
    let mut seen = 0;
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_taffrail")).parent().unwrap();
    for example in own.chain(of_help) {
        let example =
            example.replace("--timeout 5m", "").replace("--timeout 10m", "").replace("manifests/", "k8s/");
        let mut bash = std::process::Command::new("bash");
        super::clean(&mut bash);
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
        bash.args(["-c", &format!("{example} --timeout 500ms")]).env("PATH", path);
        bash.env("KUBECONFIG", &served.kubeconfig).current_dir(served.folder.path());
        let answer = run(bash, b"");
        assert!([0, 1, 3].contains(&answer.code), "{example}: {} {}", answer.code, answer.stderr);
        seen += 1;
    }
    assert!(seen > 15, "{seen}");
}
