//! `reconcile`, `suspend` and `resume` by a hub: the plan that was shown is written, once, and who asked for it is
//! recorded.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snapbox::str;
use taffrail_sim::{Cluster, Fault, Trouble};

use super::hub::{Hub, wait_for};
use super::served::Served;
use super::{Answer, assert_shown, command, hub_logs, run, taffrail, verbs};

const FLUX: &str = "kustomize.toolkit.fluxcd.io/v1";
const APP: &str = "flux-kustomization/flux-system/shop";

/// Clusters with an app, and a hub that follows them.
struct Followed {
    served: Served,
    hub: Hub,
}

impl Followed {
    fn start(names: &[&str], more: &[&str]) -> Followed {
        let served = Served::start_with_managers(names, verbs::fill);
        let hub = Hub::serving(&served.kubeconfig, names.len(), "127.0.0.1:0", more);
        hub.wait_until_complete();
        Followed { served, hub }
    }

    fn ask(&self, arguments: &[&str]) -> Answer {
        self.ask_with(self.hub.token(), arguments)
    }

    fn ask_with(&self, token: &str, arguments: &[&str]) -> Answer {
        let url = self.hub.url();
        let mut command = command(&[arguments, &["--hub", &url, "--timeout", "60s"]].concat());
        command.env("TAFFRAIL_HUB_TOKEN", token);
        run(command, b"")
    }

    /// Sends a document, and returns the status and the body of the answer.
    fn post(&self, path: &str, body: &Value) -> (u16, String) {
        post(&self.hub, path, body)
    }

    /// Plans a verb for the app in all clusters.
    fn plan(&self, verb: &Value) -> Value {
        let (status, body) = self.post("/api/v1/plans", &json!({"verb": verb, "names": [APP]}));
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    fn is_suspended(&self, place: usize) -> bool {
        shop(&self.served.clusters[place])["spec"]["suspend"] == json!(true)
    }
}

fn post(hub: &Hub, path: &str, body: &Value) -> (u16, String) {
    let body = body.to_string();
    let address = hub.url().replace("http://", "");
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
        hub.token(),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Sends a document to a hub that may end meanwhile.
fn post_quietly(hub: &Hub, path: &str, body: &Value) -> std::io::Result<String> {
    let body = body.to_string();
    let address = hub.url().replace("http://", "");
    let mut stream = TcpStream::connect(&address)?;
    let token = hub.token();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn shop(cluster: &Cluster) -> Value {
    cluster.get(FLUX, "Kustomization", "flux-system", "shop").unwrap()
}

/// Returns the request to run a plan.
fn run_of(plan: &Value, verb: &Value, id: &str) -> Value {
    json!({"id": id, "question": {"verb": verb, "names": [APP]}, "plannedAt": plan["plannedAt"],
        "digest": plan["digest"], "timeoutMillis": 60_000})
}

/// Returns the events of an answer, which is chunked.
fn events(body: &str) -> Vec<Value> {
    body.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(Value::is_object)
        .collect()
}

#[test]
fn a_hub_prints_and_writes_what_the_direct_command_does() {
    let followed = Followed::start(&["eu", "us"], &[]);
    for arguments in [
        &["suspend", "shop", "--dry-run=client"][..],
        &["suspend", "shop", "--cluster", "eu", "--dry-run=client"],
        &["suspend", "shop", "--cluster", "us", "--dry-run=server"],
        &["suspend", "shop", "--dry-run=client", "-o", "json"],
        &["suspend", "api", "--dry-run=client"],
        &["resume", "shop", "--yes"],
        &["reconcile", "shop", "--sync", "--cluster", "eu"],
        &["suspend", "nothing"],
        &["suspend", "shop", "--cluster", "moon"],
        &["suspend", "--all", "-n", "nowhere", "--yes"],
        &["suspend", "shop"],
    ] {
        let direct = [arguments, &["--timeout", "60s"]].concat();
        let (direct, by_hub) = (taffrail(&followed.served.all(&direct), ""), followed.ask(arguments));
        let seen = |answer| hub_logs::seen(answer, &followed.hub.url());
        assert_eq!(seen(by_hub), seen(direct), "{arguments:?}");
    }
    assert!(!followed.is_suspended(0) && !followed.is_suspended(1));

    let suspended = followed.ask(&["suspend", "shop", "--cluster", "eu"]);
    assert_eq!(suspended.code, 0, "{}", suspended.stderr);
    assert_shown(
        &suspended.stdout,
        str![[r#"
Kustomization flux-system/shop in eu
  spec:
+   suspend: true
suspended

"#]],
    );
    assert!(followed.is_suspended(0) && !followed.is_suspended(1));
    let history = followed.hub.list("/api/v1/operations");
    let operation = &history["items"][0];
    assert_eq!(operation["operation"], "suspend");
    assert_eq!(operation["items"][0]["outcome"]["result"], "done");
    assert_eq!(operation["items"][0]["writes"][0]["state"], "stored");
    assert_eq!(operation["items"][0]["target"]["home"], "eu");
    assert!(operation["ended"].is_string() && operation.get("by").is_none(), "{operation}");
    let again = followed.ask(&["suspend", "shop", "--cluster", "eu"]);
    assert_eq!((again.code, again.stdout.contains("already suspended")), (0, true), "{}", again.stdout);
}

#[test]
fn only_a_token_that_may_act_writes_and_its_name_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let create = |arguments: &[&str]| {
        let answer = taffrail(&[&["hub", "token", "create"], arguments, &["--data", data]].concat(), "");
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.stdout.trim().to_owned()
    };
    let (reader, actor) = (create(&["eve", "--logs"]), create(&["ann", "--act"]));
    let followed = Followed::start(&["eu"], &["--data", data]);
    let version = followed.served.clusters[0].resource_version();
    for arguments in [&["suspend", "shop"][..], &["suspend", "shop", "--dry-run=client"]] {
        let refused = followed.ask_with(&reader, arguments);
        assert_eq!(refused.code, 3, "{}", refused.stdout);
        assert!(refused.stderr.contains("the token does not allow to run operations"), "{}", refused.stderr);
    }
    assert_eq!(followed.served.clusters[0].resource_version(), version, "nothing was written");
    let suspended = followed.ask_with(&actor, &["suspend", "shop"]);
    assert_eq!(suspended.code, 0, "{}", suspended.stderr);
    assert!(followed.is_suspended(0));

    // The history of the app has it, also for a reader, and after a restart.
    let path = "/api/v1/history/eu/ks/flux-system/shop";
    let is_told = |list: &Value| {
        list["items"].as_array().unwrap().iter().any(|item| {
            item["type"] == "operation"
                && item["operation"]["by"] == "ann"
                && item["operation"]["items"][0]["outcome"]["result"] == "done"
        })
    };
    wait_for(&followed.hub, path, is_told);
    let Followed { served, hub } = followed;
    drop(hub);
    let hub = Hub::serving(&served.kubeconfig, 1, "127.0.0.1:0", &["--data", data]);
    wait_for(&hub, path, is_told);
    assert_eq!(hub.list("/api/v1/operations")["items"][0]["by"], "ann");
}

#[test]
fn a_run_that_is_asked_for_twice_is_sent_once() {
    let followed = Followed::start(&["eu"], &[]);
    let verb = json!({"reconcile": {}});
    let plan = followed.plan(&verb);
    let version = followed.served.clusters[0].resource_version();
    let request = run_of(&plan, &verb, "00000000000000000000000000000001");
    let answers: Vec<(u16, String)> = std::thread::scope(|scope| {
        let asking: Vec<_> =
            (0..4).map(|_| scope.spawn(|| followed.post("/api/v1/operations", &request))).collect();
        asking.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    for (status, body) in &answers {
        assert_eq!(*status, 200, "{body}");
        assert_eq!(events(body).last().unwrap()["event"], "done", "{body}");
    }
    assert_eq!(followed.served.clusters[0].resource_version(), version + 1);
    // Later, too.
    let (status, body) = followed.post("/api/v1/operations", &request);
    assert_eq!((status, events(&body).last().unwrap()["event"].as_str()), (200, Some("done")), "{body}");
    let mut other = request.clone();
    other["digest"] = json!("0");
    assert_eq!(followed.post("/api/v1/operations", &other).0, 409);
    assert_eq!(followed.served.clusters[0].resource_version(), version + 1);
    assert_eq!(followed.hub.list("/api/v1/operations")["items"].as_array().unwrap().len(), 1);
}

#[test]
fn what_changed_since_it_was_shown_is_not_written() {
    let followed = Followed::start(&["eu"], &[]);
    let verb = json!("suspend");
    let plan = followed.plan(&verb);
    let cluster = &followed.served.clusters[0];
    let mut changed = shop(cluster);
    changed["spec"]["suspend"] = json!(false);
    cluster.apply(changed).unwrap();
    let version = cluster.resource_version();
    let (status, body) =
        followed.post("/api/v1/operations", &run_of(&plan, &verb, "00000000000000000000000000000002"));
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("the plan has changed since it was shown"), "{body}");
    // A plan of long ago is not run, either: its time is a part of what is written.
    let mut old = run_of(&plan, &verb, "00000000000000000000000000000003");
    old["plannedAt"] = json!("2020-01-01T00:00:00Z");
    let (status, body) = followed.post("/api/v1/operations", &old);
    assert_eq!((status, body.contains("older than 15 minutes")), (409, true), "{body}");
    assert_eq!(cluster.resource_version(), version);
    // It is shown again, and can be run then.
    let again = followed.plan(&verb);
    assert_ne!(again["digest"], plan["digest"]);
    let request = run_of(&again, &verb, "00000000000000000000000000000002");
    assert_eq!(followed.post("/api/v1/operations", &request).0, 200);
    assert!(followed.is_suspended(0));
}

#[test]
fn a_lost_answer_is_looked_for_and_nothing_is_sent_again() {
    let followed = Followed::start(&["eu"], &[]);
    let cluster = &followed.served.clusters[0];
    cluster.fault(
        Fault::new(Trouble::Cut(0)).verb("patch").resource("kustomizations.kustomize.toolkit.fluxcd.io"),
    );
    let version = cluster.resource_version();
    let suspended = followed.ask(&["suspend", "shop"]);
    assert_eq!(suspended.code, 0, "{}", suspended.stderr);
    assert_eq!(cluster.resource_version(), version + 1);
    cluster.heal_all();
    cluster.fault(
        Fault::new(Trouble::ServerError("etcd is gone".to_owned()))
            .verb("patch")
            .resource("kustomizations.kustomize.toolkit.fluxcd.io"),
    );
    let version = cluster.resource_version();
    let resumed = followed.ask(&["resume", "shop"]);
    assert_eq!(resumed.code, 3, "{}", resumed.stdout);
    assert!(resumed.stderr.contains("the object does not have the change now"), "{}", resumed.stderr);
    assert_eq!(cluster.resource_version(), version);
}

#[test]
fn a_hub_that_was_killed_tells_what_became_of_the_write() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let id = "00000000000000000000000000000004";
    for (trouble, left) in [(Trouble::Cut(0), "made"), (Trouble::Hang, "notMade")] {
        let followed = Followed::start(&["eu"], &["--data", data]);
        let cluster = &followed.served.clusters[0];
        let resource = "kustomizations.kustomize.toolkit.fluxcd.io";
        cluster.fault(Fault::new(trouble.clone()).verb("patch").resource(resource));
        let verb = json!("suspend");
        let plan = followed.plan(&verb);
        let version = cluster.resource_version();
        let id = format!("{id}{left}");
        let request = run_of(&plan, &verb, &id);
        std::thread::scope(|scope| {
            let hub = &followed.hub;
            let begun = Instant::now();
            // The answer ends with the hub.
            scope.spawn(move || drop(post_quietly(hub, "/api/v1/operations", &request)));
            let is_sent = || {
                let running = hub.list("/api/v1/operations");
                let item = &running["items"][0]["items"][0];
                running["items"][0]["id"] == id.as_str() && item["writes"][0]["state"] == "sent"
            };
            // It is recorded as sent before the server has it.
            let is_there = || left == "notMade" || cluster.resource_version() > version;
            while !is_sent() || !is_there() {
                assert!(begun.elapsed() < Duration::from_secs(30), "it was never sent");
                std::thread::sleep(Duration::from_millis(2));
            }
            let pid = i32::try_from(hub.pid()).unwrap();
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(pid).unwrap(),
                rustix::process::Signal::KILL,
            )
            .unwrap();
        });
        let Followed { served, hub } = followed;
        drop(hub);
        served.clusters[0].heal_all();
        let hub = Hub::serving(&served.kubeconfig, 1, "127.0.0.1:0", &["--data", data]);
        let path = format!("/api/v1/operations/{id}");
        let told = wait_for(&hub, &path, |list| list["items"][0]["ended"].is_string());
        let outcome = &told["items"][0]["items"][0]["outcome"];
        if outcome["result"] == "interrupted" {
            assert_eq!(outcome["trace"], left, "{outcome}");
        } else {
            assert_eq!((left, &outcome["result"]), ("made", &json!("done")), "{outcome}");
        }
        // Asked for again, it is told and not sent.
        let mut again = json!({"id": id, "question": {"verb": "suspend", "names": [APP]},
            "plannedAt": plan["plannedAt"], "digest": plan["digest"], "timeoutMillis": 60_000});
        let (status, body) = post(&hub, "/api/v1/operations", &again);
        assert_eq!(status, 200, "{body}");
        assert_eq!(events(&body).last().unwrap()["event"], "done", "{body}");
        again["id"] = json!("short");
        assert_eq!(post(&hub, "/api/v1/operations", &again).0, 400);
        let written = u64::from(left == "made");
        assert_eq!(served.clusters[0].resource_version(), version + written, "{left}");
    }
}

#[test]
fn the_number_of_many_apps_must_be_confirmed() {
    let served = verbs::served(&["eu"]);
    for place in 0..12 {
        served.clusters[0].apply(verbs::kustomization(&format!("app-{place}"))).unwrap();
    }
    let hub = Hub::serving(&served.kubeconfig, 1, "127.0.0.1:0", &[]);
    hub.wait_for_apps(14);
    let question = json!({"verb": "suspend", "apps": {"namespace": "flux-system"}});
    let (status, body) = post(&hub, "/api/v1/plans", &question);
    assert_eq!(status, 200, "{body}");
    let plan: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(plan["plan"]["items"].as_array().unwrap().len(), 13);
    let version = served.clusters[0].resource_version();
    let mut request = json!({"id": "00000000000000000000000000000005", "question": question,
        "plannedAt": plan["plannedAt"], "digest": plan["digest"], "timeoutMillis": 60_000});
    for wrong in [json!(null), json!(12)] {
        request["confirmed"] = wrong;
        let (status, body) = post(&hub, "/api/v1/operations", &request);
        assert_eq!(
            (status, body.contains("13 apps or objects, and their number was not confirmed")),
            (409, true),
            "{body}"
        );
    }
    assert_eq!(served.clusters[0].resource_version(), version);
    request["confirmed"] = json!(13);
    assert_eq!(post(&hub, "/api/v1/operations", &request).0, 200);
    assert_eq!(served.clusters[0].resource_version(), version + 13);
}

#[test]
fn a_change_of_another_client_is_not_taken_for_the_own() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let Followed { served, hub } = Followed::start(&["eu"], &["--data", data]);
    let cluster = &served.clusters[0];
    let (status, body) = post(&hub, "/api/v1/plans", &json!({"verb": "suspend", "names": [APP]}));
    assert_eq!(status, 200, "{body}");
    let plan: Value = serde_json::from_str(&body).unwrap();
    cluster.fault(Fault::new(Trouble::Hang).verb("patch"));
    let request = run_of(&plan, &json!("suspend"), "00000000000000000000000000000006");
    std::thread::scope(|scope| {
        let hub = &hub;
        scope.spawn(move || drop(post_quietly(hub, "/api/v1/operations", &request)));
        wait_for(hub, "/api/v1/operations", |list| {
            list["items"][0]["items"][0]["writes"][0]["state"] == "sent"
        });
        let pid = rustix::process::Pid::from_raw(i32::try_from(hub.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    });
    drop(hub);
    served.clusters[0].heal_all();
    let mut suspended = shop(cluster);
    suspended["spec"]["suspend"] = json!(true);
    cluster.apply_by(suspended, "kubectl-edit", "kubectl-edit").unwrap();
    let hub = Hub::serving(&served.kubeconfig, 1, "127.0.0.1:0", &["--data", data]);
    let path = "/api/v1/operations/00000000000000000000000000000006";
    let told = wait_for(&hub, path, |list| list["items"][0]["ended"].is_string());
    let outcome = &told["items"][0]["items"][0]["outcome"];
    assert_eq!(
        (&outcome["result"], &outcome["trace"]),
        (&json!("interrupted"), &json!("unknown")),
        "{outcome}"
    );
}

#[test]
fn actions_by_a_hub_are_those_of_the_direct_command() {
    let served = verbs::served(&["eu", "us"]);
    for cluster in &served.clusters {
        cluster.apply(taffrail_testkit::objects::namespace("shop")).unwrap();
        cluster.apply(taffrail_testkit::objects::deployment("shop", "web", 1)).unwrap();
    }
    let hub = Hub::serving(&served.kubeconfig, 2, "127.0.0.1:0", &[]);
    hub.wait_until_complete();
    let followed = Followed { served, hub };
    let web = |place: usize| {
        let cluster = &followed.served.clusters[place];
        cluster.get("apps/v1", "Deployment", "shop", "web").unwrap()
    };
    for arguments in [
        &["actions", "deploy/web", "-n", "shop"][..],
        &["actions", "eu/apps/Deployment/shop/web", "-o", "json"],
        &["actions", "deploy/web", "-n", "shop", "-o", "name"],
        &["actions", "deploy/nothing", "-n", "shop"],
        &["action", "scale", "deploy/web", "-n", "shop", "--param", "replicas=3", "--dry-run=client"],
        &[
            "action",
            "scale",
            "eu/apps/Deployment/shop/web",
            "--param",
            "replicas=3",
            "--dry-run=client",
            "-o",
            "json",
        ],
        &["action", "nothing", "eu/apps/Deployment/shop/web"],
        &["action", "scale", "eu/apps/Deployment/shop/web", "--param", "colour=red", "--dry-run=client"],
        &["action", "scale", "deploy/web", "-n", "shop", "--param", "replicas=3"],
        &["action", "scale", "moon/apps/Deployment/shop/web", "--param", "replicas=3"],
    ] {
        let direct = [arguments, &["--timeout", "60s", "--request-timeout", "0"]].concat();
        let (direct, by_hub) = (taffrail(&followed.served.all(&direct), ""), followed.ask(arguments));
        let seen = |answer| hub_logs::seen(answer, &followed.hub.url());
        assert_eq!(seen(by_hub), seen(direct), "{arguments:?}");
    }
    assert_eq!(
        (web(0)["spec"]["replicas"].clone(), web(1)["spec"]["replicas"].clone()),
        (json!(2), json!(2))
    );
    let scaled = followed.ask(&["action", "scale", "eu/apps/Deployment/shop/web", "--param", "replicas=3"]);
    assert_eq!(scaled.code, 0, "{}", scaled.stderr);
    assert_shown(
        &scaled.stdout,
        str![[r#"
Deployment shop/web in eu
  spec:
-   replicas: 2
+   replicas: 3
scale: changed Deployment shop/web

"#]],
    );
    assert_eq!(
        (web(0)["spec"]["replicas"].clone(), web(1)["spec"]["replicas"].clone()),
        (json!(3), json!(2))
    );
    let operation = &followed.hub.list("/api/v1/operations")["items"][0];
    assert_eq!(operation["operation"], "scale");
    assert_eq!(operation["items"][0]["target"]["object"]["name"], "web");
    assert_eq!(operation["items"][0]["outcome"]["result"], "done");
}
