//! Agents with the rights of their manifest, on a real API server.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_testkit::agents::AgentsHub;
use taffrail_testkit::kube::{ControlPlane, Options};
use taffrail_testkit::objects;

use crate::harness::{CLUSTER, built, unavailable};

/// The value of a Secret of the cluster, which no message may hold.
const CANARY: &str = "canary-6f1c-of-the-cluster";

/// The service account of the agent, as its API server calls it.
const ACCOUNT: &str = "system:serviceaccount:taffrail:taffrail-agent";

fn objects() -> String {
    format!(
        "\
apiVersion: v1
kind: Namespace
metadata: {{name: flux-system}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: shop}}
---
apiVersion: v1
kind: Secret
metadata: {{name: database, namespace: shop, annotations: {{note: \"{CANARY}\"}}}}
stringData: {{password: \"{CANARY}\"}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: shop, namespace: flux-system}}
spec: {{interval: 10m, path: ./, prune: true, sourceRef: {{kind: GitRepository, name: shop}}}}
"
    )
}

fn taffrail(arguments: &[&str]) -> Command {
    let mut command = Command::new(built());
    command.args(arguments).env("NO_COLOR", "1").env_remove("KUBECONFIG");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns true if the agent's account may do this.
fn may(plane: &ControlPlane, arguments: &[&str]) -> bool {
    let may = [&["auth", "can-i"], arguments, &["--as", ACCOUNT]].concat();
    plane.kubectl(CLUSTER, &may).is_ok_and(|answer| answer.trim() == "yes")
}

/// Prints the manifest with these further arguments, and applies it.
fn apply_manifest(plane: &ControlPlane, hub: &AgentsHub, more: &[&str]) -> Output {
    let kubeconfig = plane.kubeconfig().to_str().expect("it is UTF-8");
    let fixed = ["agent", "manifest", "--hub", hub.url(), "--context", CLUSTER, "--kubeconfig", kubeconfig];
    let printed = taffrail(&[&fixed, more].concat()).output().expect("it can be run");
    assert!(printed.status.success(), "{printed:?}");
    plane.apply(CLUSTER, &text(&printed.stdout)).unwrap_or_else(|error| panic!("{error:#}"));
    printed
}

/// Writes a kubeconfig with a token of the agent's service account, and returns its path.
fn account(plane: &ControlPlane, hub: &AgentsHub) -> String {
    let token = ["create", "token", "taffrail-agent", "--namespace", "taffrail"];
    let token = plane.kubectl(CLUSTER, &token).expect("a token");
    let view = ["config", "view", "--raw", "--minify", "--output", "json"];
    let view = plane.kubectl(CLUSTER, &view).expect("the kubeconfig");
    let mut config: Value = serde_json::from_str(&view).expect("it is JSON");
    config["users"][0]["user"] = json!({"token": token.trim()});
    config["contexts"][0]["context"]["namespace"] = json!("taffrail");
    let path = hub.path("account.yaml");
    std::fs::write(&path, config.to_string()).expect("it can be written");
    path
}

#[test]
fn an_agent_works_with_the_rights_of_its_manifest_and_has_no_others() {
    if unavailable() {
        return;
    }
    let name = format!("e2e-agents-{}", std::process::id());
    let options = Options { name, bare: 1, nodes: 0, ..Options::default() };
    let plane = ControlPlane::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    plane.apply(CLUSTER, &objects()).expect("objects");
    let entry = json!([{"id": "shop_database__Secret", "v": "v1"}]);
    let status = json!({"status": {
        "inventory": {"entries": entry},
        "lastAppliedRevision": "main@sha1:0123456789abcdef0123456789abcdef01234567",
        "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "applied",
            "lastTransitionTime": "2026-03-01T12:00:00Z", "observedGeneration": 1}],
        "observedGeneration": 1,
    }})
    .to_string();
    let patch = [
        "patch",
        "kustomization",
        "shop",
        "-n",
        "flux-system",
        "--subresource=status",
        "--type=merge",
        "-p",
        &status,
    ];
    plane.kubectl(CLUSTER, &patch).expect("its status");

    let hub = AgentsHub::start(taffrail).unwrap_or_else(|error| panic!("{error:#}"));
    let token = hub.token("agent-token", &[]).expect("a token");
    apply_manifest(&plane, &hub, &["--token-file", &token]);
    let account = account(&plane, &hub);
    let secret = ["--identity-secret", "taffrail-agent", "--name", "eu-1"];
    let mut agent =
        hub.agent(&account, CLUSTER, &[&secret[..], &["--token-file", &token]].concat()).expect("an agent");
    agent.until("Connected: the agent reports cluster 'eu-1'.").unwrap_or_else(|error| panic!("{error:#}"));
    let is_ready = |answer: &Output| {
        let list: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
        list["items"][0]["effective"] == "Current" && list["items"][0]["name"] == "shop"
    };
    let apps = ["get", "apps", "-o", "json"];
    hub.ask_until(&apps, is_ready).unwrap_or_else(|error| panic!("{error:#}"));
    for view in [
        &["tree", "shop", "-o", "json"][..],
        &["object", "eu-1//Secret/shop/database", "-o", "json"],
        &["events", "shop"],
    ] {
        let answer = hub.ask(view).expect("an answer");
        assert!(!text(&answer.stdout).contains(CANARY), "{view:?} {answer:?}");
    }

    // The Pod is made anew elsewhere, and its token is gone.
    drop(agent);
    let mut agent = hub.agent(&account, CLUSTER, &secret).expect("an agent");
    agent.until("Connected: the agent reports cluster 'eu-1'.").unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(agent.seen().len(), 1, "it neither enrolled again nor lacks a right: {:?}", agent.seen());

    // Every right that its server lists for the account is one of the manifest, or one that everybody has.
    assert!(may(&plane, &["list", "deployments.apps", "-A"]));
    assert!(may(&plane, &["get", "pods", "--subresource=log", "-A"]));
    assert!(may(&plane, &["patch", "secrets/taffrail-agent", "-n", "taffrail"]));
    assert!(may(&plane, &["get", "secrets", "-n", "shop"]));
    for refused in [
        &["create", "pods", "--subresource=exec", "-n", "shop"][..],
        &["get", "pods", "--subresource=exec", "-n", "shop"],
        &["get", "nodes", "--subresource=proxy"],
        &["get", "services", "--subresource=proxy", "-n", "shop"],
        &["create", "serviceaccounts", "--subresource=token", "-n", "taffrail"],
        &["patch", "secrets/database", "-n", "shop"],
        &["patch", "secrets/other", "-n", "taffrail"],
        &["delete", "secrets/taffrail-agent", "-n", "taffrail"],
        &["create", "secrets", "-n", "taffrail"],
    ] {
        assert!(!may(&plane, refused), "{refused:?}");
    }
    let list = ["auth", "can-i", "--list", "--no-headers", "-n", "taffrail", "--as", ACCOUNT];
    let listed = plane.kubectl(CLUSTER, &list).expect("its rights");
    let is_read = |line: &str| {
        let verbs = line.rsplit_once('[').map_or("", |(_, verbs)| verbs.trim_end_matches(']'));
        verbs.split(' ').all(|verb| ["get", "list", "watch"].contains(&verb))
    };
    let mut writes: Vec<&str> =
        listed.lines().filter(|line| !is_read(line)).filter_map(|line| line.split(' ').next()).collect();
    writes.sort_unstable();
    let everybodys =
        ["selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectreviews.authentication.k8s.io"];
    let everybodys = everybodys.into_iter().chain(["selfsubjectrulesreviews.authorization.k8s.io"]);
    assert_eq!(writes, ["secrets"].into_iter().chain(everybodys).collect::<Vec<_>>(), "{listed}");

    // Without Secrets: the app that declares one is Unknown, and the missing right is named.
    let printed = apply_manifest(&plane, &hub, &["--without-secrets"]);
    assert!(text(&printed.stderr).contains("less is known of 1 of 1 apps"), "{printed:?}");
    assert!(!may(&plane, &["get", "secrets", "-n", "shop"]));
    assert!(may(&plane, &["get", "secrets/taffrail-agent", "-n", "taffrail"]));
    let is_unknown = |answer: &Output| {
        let list: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
        list["items"][0]["effective"] == "Unknown"
            && list["errors"].as_array().is_some_and(|errors| {
                errors.iter().any(|error| {
                    error["reason"] == "Forbidden"
                        && error["message"].to_string().contains("secrets is forbidden")
                })
            })
            && list["items"][0]["freshness"]["state"] == "live"
    };
    drop(agent);
    let mut agent = hub.agent(&account, CLUSTER, &secret).expect("an agent");
    agent.until("Connected: the agent reports cluster 'eu-1'.").unwrap_or_else(|error| panic!("{error:#}"));
    hub.ask_until(&apps, is_unknown).unwrap_or_else(|error| panic!("{error:#}"));

    // Neither what the agent said nor what the hub keeps holds the value of a Secret.
    for file in std::fs::read_dir(hub.path("data")).expect("the hub's data") {
        let path = file.expect("a file").path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let is_held = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!is_held, "{}", path.display());
    }
}

/// The kind of kpt's inventories, with the status that others know, and two inventories of a ConfigMap that exists and one
/// that does not.
fn resource_groups() -> String {
    let texts = |names: &[&str]| -> Value {
        let text = |name: &&str| ((*name).to_owned(), json!({"type": "string"}));
        Value::Object(names.iter().map(text).collect())
    };
    let list =
        |properties: Value| json!({"type": "array", "items": {"type": "object", "properties": properties}});
    let listed = texts(&["group", "kind", "namespace", "name"]);
    let conditions = list(texts(&["type", "status", "reason", "message", "lastTransitionTime"]));
    let mut entry =
        texts(&["group", "kind", "namespace", "name", "status", "strategy", "actuation", "reconcile"]);
    entry["conditions"] = conditions.clone();
    let status = json!({
        "observedGeneration": {"type": "integer"}, "conditions": conditions, "resourceStatuses": list(entry)});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"resources": list(listed)}},
        "status": {"type": "object", "properties": status}}});
    let kind = objects::definition("kpt.dev", "v1alpha1", "ResourceGroup", schema);
    let named = |name: &str| json!({"group": "", "kind": "ConfigMap", "namespace": "shop", "name": name});
    let group = |name: &str| {
        json!({"apiVersion": "kpt.dev/v1alpha1", "kind": "ResourceGroup",
            "metadata": {"namespace": "shop", "name": name},
            "spec": {"resources": [named("settings"), named("missing")]}})
    };
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "settings"}});
    let objects = [objects::with_status_subresource(kind), objects::namespace("shop"), settings];
    let groups = [group("inventory"), group("other")];
    objects.into_iter().chain(groups).map(|object| format!("---\n{object}\n")).collect()
}

#[test]
fn an_agent_writes_the_status_of_a_resource_group_until_another_client_does() {
    if unavailable() {
        return;
    }
    let name = format!("e2e-groups-{}", std::process::id());
    let options = Options { name, bare: 1, nodes: 0, flux_crds: false, ..Options::default() };
    let plane = ControlPlane::start(&options).unwrap_or_else(|error| panic!("{error:#}"));
    let all = resource_groups();
    let (kind, rest) = all.split_at(all.match_indices("---").nth(1).map_or(0, |(at, _)| at));
    plane.apply(CLUSTER, kind).expect("the kind");
    plane
        .wait(CLUSTER, &["--for=condition=Established", "crd/resourcegroups.kpt.dev"])
        .expect("it is served");
    plane.apply(CLUSTER, rest).expect("objects");
    let get = |name: &str| -> Value {
        let get = ["get", "resourcegroup", name, "-n", "shop", "--show-managed-fields", "-o", "json"];
        serde_json::from_str(&plane.kubectl(CLUSTER, &get).expect("the group")).expect("it is JSON")
    };
    let statuses = |group: &Value| -> Vec<String> {
        let entries = group["status"]["resourceStatuses"].as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| entry["status"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let until = |name: &str, expected: [&str; 2]| {
        let begun = Instant::now();
        loop {
            let group = get(name);
            if statuses(&group) == expected {
                return group;
            }
            assert!(begun.elapsed() < Duration::from_secs(90), "{group:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };

    let hub = AgentsHub::start(taffrail).unwrap_or_else(|error| panic!("{error:#}"));
    let token = hub.token("agent-token", &[]).expect("a token");
    apply_manifest(&plane, &hub, &["--token-file", &token]);
    let patch_status = ["patch", "resourcegroups.kpt.dev", "--subresource=status", "-n", "shop"];
    assert!(!may(&plane, &patch_status));
    apply_manifest(&plane, &hub, &["--token-file", &token, "--write-resourcegroup-status"]);
    assert!(may(&plane, &patch_status));
    assert!(!may(&plane, &["patch", "resourcegroups.kpt.dev", "-n", "shop"]));
    let account = account(&plane, &hub);
    let options =
        ["--identity-secret", "taffrail-agent", "--token-file", &token, "--write-resourcegroup-status"];
    let mut agent = hub.agent(&account, CLUSTER, &options).expect("an agent");
    let written = until("inventory", ["Current", "NotFound"]);
    until("other", ["Current", "NotFound"]);
    assert_eq!(written["status"]["observedGeneration"], written["metadata"]["generation"]);
    assert_eq!(written["status"]["conditions"][1]["reason"], "FinishReconciling", "{written:#}");
    let managers = written["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let of_status: Vec<&Value> = managers.iter().filter(|entry| entry["subresource"] == "status").collect();
    assert!(of_status.len() == 1 && of_status[0]["manager"] == "taffrail-agent", "{managers:#?}");

    // kpt tells what it applied, and from then on the status is its own.
    let entry = json!({"group": "", "kind": "ConfigMap", "namespace": "shop", "name": "settings", "status": "Unknown",
        "strategy": "Apply", "actuation": "Succeeded", "reconcile": "Pending"});
    let status = json!({"status": {"resourceStatuses": [entry]}}).to_string();
    let patch = ["patch", "resourcegroup", "inventory", "-n", "shop", "--type=merge", "--field-manager=kpt"];
    plane
        .kubectl(CLUSTER, &[&patch[..], &["--subresource=status", "-p", &status]].concat())
        .expect("its status");
    let told = agent.until("The agent no longer writes").unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(
        told,
        "The agent no longer writes the status of ResourceGroup shop/inventory: 'kpt' has taken over."
    );
    let before = get("inventory");
    plane.kubectl(CLUSTER, &["delete", "configmap", "settings", "-n", "shop"]).expect("it goes");
    until("other", ["NotFound", "NotFound"]);
    assert_eq!(get("inventory"), before);
}
