//! Operations by a hub on a real API server, whose audit log tells what was written, and how often.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_testkit::hub::Hub;
use taffrail_testkit::kube::{AUDIT_LOG, ControlPlane, Options};

use crate::harness::{CLUSTER, built, unavailable};

const APP: &str = "flux-kustomization/flux-system/shop";

const OBJECTS: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: flux-system}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: shop, namespace: flux-system}
spec: {interval: 10m, path: ./, prune: true, sourceRef: {kind: GitRepository, name: shop}}
";

/// Long enough for a busy machine; nothing waits for it that works.
const PATIENCE: Duration = Duration::from_secs(90);

fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn serve(plane: &ControlPlane, data: &Path) -> Hub {
    let mut command = Command::new(built());
    command.args(["hub", "serve", "--all-contexts", "--listen", "127.0.0.1:0", "--kubeconfig"]);
    command.arg(plane.kubeconfig()).arg("--data").arg(data);
    let hub = Hub::start(&mut command).unwrap_or_else(|error| panic!("{error:#}"));
    wait_for("the app", || {
        let list = hub.get("/api/v1/apps?text=shop").ok()?;
        (list["state"] == "complete" && list["total"] == 1).then_some(())
    });
    hub
}

/// Returns the code of the answer to each patch of the app that the server logged; dry runs do not count.
fn patches(plane: &ControlPlane) -> Vec<i64> {
    let member = plane.members().first().expect("a cluster");
    let text = std::fs::read_to_string(member.folder.join(AUDIT_LOG)).expect("an audit log");
    // The last line may be half written.
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let patches = events.filter(|event| {
        event["verb"] == "patch"
            && event["stage"] == "ResponseComplete"
            && event["objectRef"]["resource"] == "kustomizations"
            && !event["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun"))
            && event["userAgent"].as_str().is_some_and(|agent| agent.starts_with("taffrail"))
    });
    patches.filter_map(|event| event["responseStatus"]["code"].as_i64()).collect()
}

fn plan(hub: &Hub, verb: &str) -> Value {
    let (status, body) =
        hub.post("/api/v1/plans", &json!({"verb": verb, "names": [APP]})).expect("an answer");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).expect("a plan")
}

fn run_of(plan: &Value, verb: &str, id: &str) -> Value {
    json!({"id": id, "question": {"verb": verb, "names": [APP]}, "plannedAt": plan["plannedAt"],
        "digest": plan["digest"], "waits": false, "timeoutMillis": 60_000})
}

fn is_suspended(plane: &ControlPlane) -> bool {
    let path = "jsonpath={.spec.suspend}";
    let object = ["get", "kustomization", "shop", "-n", "flux-system", "-o", path];
    plane.kubectl(CLUSTER, &object).expect("it is there") == "true"
}

/// Suspends or resumes the app as somebody else does.
fn suspend(plane: &ControlPlane, is: bool) {
    let patch = json!({"spec": {"suspend": is}}).to_string();
    let line = ["patch", "kustomization", "shop", "-n", "flux-system", "--type=merge", "-p", &patch];
    plane.kubectl(CLUSTER, &line).expect("it is changed");
}

#[test]
fn the_audit_log_has_each_patch_of_an_operation_once_or_not_at_all() {
    if unavailable() {
        return;
    }
    let name = format!("e2e-audited-{}", std::process::id());
    let options = Options { name, bare: 1, nodes: 0, audited: true, ..Options::default() };
    let plane = Arc::new(ControlPlane::start(&options).unwrap_or_else(|error| panic!("{error:#}")));
    plane.apply(CLUSTER, OBJECTS).expect("objects");
    let data = tempfile::tempdir().expect("a folder");
    let hub = serve(&plane, data.path());

    // A double click, and two tabs: four requests with one identifier, and a fifth one later.
    let shown = plan(&hub, "suspend");
    let request = run_of(&shown, "suspend", "0123456789abcdef0");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (status, body) = hub.post("/api/v1/operations", &request).expect("events");
                assert_eq!(status, 200, "{body}");
            });
        }
    });
    assert!(is_suspended(&plane));
    hub.post("/api/v1/operations", &request).expect("the same events");
    wait_for("the audit log", || (patches(&plane).len() == 1).then_some(()));

    // Somebody else has done it since the plan was shown: nothing is sent.
    let shown = plan(&hub, "resume");
    suspend(&plane, false);
    let stale = run_of(&shown, "resume", "0123456789abcdef1");
    let (status, body) = hub.post("/api/v1/operations", &stale).expect("an answer");
    assert_eq!(status, 409, "{body}");
    suspend(&plane, true);
    assert_eq!(patches(&plane), [200]);

    // A reading token is refused.
    let created = Command::new(built())
        .args(["hub", "token", "create", "reader", "--data"])
        .arg(data.path())
        .output()
        .expect("it can be run");
    let text = String::from_utf8(created.stdout).expect("it is UTF-8");
    let token = text.split_whitespace().find(|word| word.starts_with("taffrail_")).expect("a token");
    let shown = plan(&hub, "resume");
    let request = run_of(&shown, "resume", "0123456789abcdef2");
    // The hub takes notice of a new token within five seconds.
    let refused = wait_for("the new token", || {
        let (status, body) = hub.post_with(token, "/api/v1/operations", &request).expect("an answer");
        (status != 401).then_some((status, body))
    });
    assert_eq!(refused.0, 403, "{}", refused.1);
    assert_eq!(patches(&plane), [200]);

    // The hub is killed while it may be writing; the one after it tells what came of it, and sends nothing again.
    let killed = std::thread::scope(|scope| {
        scope.spawn(|| drop(hub.post("/api/v1/operations", &request)));
        wait_for("the operation's beginning", || {
            let known = hub.get("/api/v1/operations").ok()?;
            known["items"].as_array()?.iter().find(|item| item["id"] == "0123456789abcdef2")?;
            Some(())
        });
        hub.kill()
    });
    killed.expect("it is killed");
    drop(hub);
    let hub = serve(&plane, data.path());
    let (status, body) = hub.post("/api/v1/operations", &request).expect("its events");
    assert_eq!(status, 200, "{body}");
    let item = wait_for("an end of the operation", || {
        let known = hub.get("/api/v1/operations/0123456789abcdef2").ok()?;
        let item = known["items"][0]["items"][0].clone();
        item["outcome"].is_object().then_some(item)
    });
    let sent = patches(&plane).len();
    assert!(sent <= 2, "{sent} patches");
    let is_made = !is_suspended(&plane);
    let told = (&item["outcome"]["result"], &item["outcome"]["trace"]);
    match (told.0.as_str(), told.1.as_str()) {
        (Some("done" | "ready" | "unobservable"), _) | (_, Some("made")) => assert!(is_made, "{item}"),
        (_, Some("notMade")) => assert!(!is_made, "{item}"),
        _ => panic!("the hub does not tell what came of it: {item}"),
    }
}
