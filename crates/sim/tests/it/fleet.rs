//! Tests of the operations of a fleet's owner: time, timelines, faults, determinism.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_cluster::{Cluster as Client, Deadline, Kubeconfig, ListRequest, Reason};
use taffrail_sim::{Cluster, Fault, Fleet, FleetBuilder, Pace, Timeline, Trouble};

use crate::api::{Api, map};

const MAX_WAIT: Duration = Duration::from_secs(20);

const WEB: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'example.com/web:1'}]}
";

fn stepped() -> FleetBuilder {
    let start: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    Fleet::builder().seed(5).pace(Pace::Stepped).start_at(start)
}

fn api(fleet: &Fleet, cluster: &Cluster) -> Api {
    Api::new(&cluster.url(), fleet.authority(), &cluster.admin().token, "")
}

/// Connects to a cluster as its administrator with `taffrail_cluster`.
async fn client(cluster: &Cluster) -> Result<Client, taffrail_cluster::ConnectError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), cluster.kubeconfig()).unwrap();
    let context = Kubeconfig::load(Some(file.path()), None, None).unwrap().current().unwrap();
    Client::connect(&context, Deadline::after(MAX_WAIT)).await
}

fn deployment(cluster: &Cluster) -> Value {
    cluster.get("apps/v1", "Deployment", "shop", "web").unwrap()
}

#[tokio::test]
async fn taffrails_client_reads_a_simulated_cluster() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    cluster.apply_yaml(WEB).unwrap();
    let client = client(&cluster).await.unwrap();
    assert_eq!(client.protocol(), taffrail_cluster::Protocol::Http2);
    assert_eq!(client.version().await.unwrap(), "v1.36.3");
    let uid = cluster.get("v1", "Namespace", "", "kube-system").unwrap()["metadata"]["uid"].clone();
    assert_eq!(json!(client.id().await.unwrap()), uid);
    let discovery = client.discover().await.unwrap();
    assert!(discovery.broken().is_empty(), "{:?}", discovery.broken());
    let deployments = discovery.resolve("deploy").unwrap();
    let listing = client.list(&ListRequest::all(&deployments)).await.unwrap();
    assert_eq!(listing.objects.len(), 1);
}

#[tokio::test]
async fn stepped_time_moves_only_by_advance() {
    let fleet = stepped().nodes(2).start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    cluster.apply_yaml(WEB).unwrap();
    assert_eq!(deployment(&cluster)["metadata"]["creationTimestamp"], "2026-03-01T12:00:00Z");
    assert_eq!(deployment(&cluster)["status"]["readyReplicas"], Value::Null);
    fleet.advance(Duration::from_secs(30));
    let web = deployment(&cluster);
    assert_eq!(web["status"]["readyReplicas"], 3, "{web}");
    assert_eq!(web["status"]["observedGeneration"], web["metadata"]["generation"]);
    assert_eq!(fleet.clock().now(), "2026-03-01T12:00:30Z".parse::<Timestamp>().unwrap());
}

/// Kubernetes cannot know how many Pods a Job should have, and so allows no disruption of any Pod.
#[tokio::test]
async fn budget_for_pods_of_a_job_fails_to_sync() {
    let fleet = stepped().nodes(1).start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    cluster.apply_yaml(WEB).unwrap();
    let job = "{apiVersion: batch/v1, kind: Job, metadata: {name: one, namespace: shop}, spec: {template: {metadata: {labels: {app: web}}, spec: {restartPolicy: Never, containers: [{name: main, image: 'example.com/web:1'}]}}}}";
    let budget = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: shop}, spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}}";
    cluster.apply_yaml(budget).unwrap();
    fleet.advance(Duration::from_secs(10));
    let status = || cluster.get("policy/v1", "PodDisruptionBudget", "shop", "web").unwrap()["status"].clone();
    assert_eq!((&status()["expectedPods"], &status()["disruptionsAllowed"]), (&json!(3), &json!(1)));
    cluster.apply_yaml(job).unwrap();
    fleet.advance(Duration::from_secs(1));
    let status = status();
    assert_eq!(status["disruptionsAllowed"], 0, "{status}");
    let condition = &status["conditions"][0];
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("SyncFailed")));
    assert_eq!(condition["message"], "jobs.batch does not implement the scale subresource");
}

#[tokio::test]
async fn claim_is_protected_while_a_pod_uses_it() {
    let fleet = stepped().nodes(1).start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let template = "spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}], containers:";
    cluster.apply_yaml(&WEB.replace("spec: {containers:", template)).unwrap();
    let claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, finalizers: [kubernetes.io/pvc-protection]}, spec: {accessModes: [ReadWriteOnce]}, status: {phase: Bound}}";
    cluster.apply_yaml(claim).unwrap();
    fleet.advance(Duration::from_secs(30));
    let claim = || cluster.get("v1", "PersistentVolumeClaim", "shop", "data");
    assert!(cluster.delete("v1", "PersistentVolumeClaim", "shop", "data"));
    fleet.advance(Duration::from_secs(30));
    assert!(claim().unwrap()["metadata"]["deletionTimestamp"].is_string());
    // A namespace waits for neither longer than its Pods take to terminate.
    assert!(cluster.delete("v1", "Namespace", "", "shop"));
    fleet.advance(Duration::from_secs(30));
    assert_eq!(claim(), None);
    assert_eq!(cluster.get("v1", "Namespace", "", "shop"), None);
}

#[tokio::test]
async fn change_by_removes_a_terminating_object_with_its_last_finalizer() {
    let fleet = stepped().managers(true).start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let map: Value = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "map", "namespace": "default", "finalizers": ["example.com/held"]},
    });
    cluster.apply(map.clone()).unwrap();
    let get = || cluster.get("v1", "ConfigMap", "default", "map");
    cluster.change_by(&map, "writer", "", |map| map["data"] = serde_json::json!({"key": "value"}));
    let changed = get().unwrap();
    assert_eq!(changed["data"]["key"], "value");
    assert!(changed["metadata"]["managedFields"].to_string().contains("writer"), "{changed}");
    assert!(cluster.delete("v1", "ConfigMap", "default", "map"));
    assert!(get().is_some());
    cluster.change_by(&map, "writer", "", |map| map["metadata"]["finalizers"] = serde_json::json!([]));
    assert_eq!(get(), None);
    // A removed object is not created again.
    cluster.change_by(&map, "writer", "", |map| map["data"] = serde_json::json!({}));
    assert_eq!(get(), None);
}

#[tokio::test]
async fn stuck_rollout_exceeds_its_progress_deadline() {
    let fleet = stepped().nodes(1).start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let stuck = WEB.replace(
        "labels: {app: web}}",
        "labels: {app: web}, annotations: {taffrail.dev/simulate: image-pull-backoff}}",
    );
    cluster.apply_yaml(&stuck.replace("replicas: 3", "replicas: 1\n  progressDeadlineSeconds: 60")).unwrap();
    fleet.advance(Duration::from_secs(40));
    let reason = |cluster: &Cluster| {
        let web = deployment(cluster);
        let conditions = web["status"]["conditions"].as_array().unwrap().clone();
        conditions.into_iter().find(|one| one["type"] == "Progressing").unwrap()["reason"].clone()
    };
    assert_eq!(reason(&cluster), "ReplicaSetUpdated");
    fleet.advance(Duration::from_secs(60));
    assert_eq!(reason(&cluster), "ProgressDeadlineExceeded");
}

#[tokio::test]
async fn equal_seeds_give_equal_clusters() {
    let mut texts = Vec::new();
    for seed in [5, 5, 6] {
        let fleet = stepped().seed(seed).nodes(3).start().await.unwrap();
        let cluster = fleet.cluster("one").await.unwrap();
        cluster.apply_yaml(WEB).unwrap();
        fleet.advance(Duration::from_secs(60));
        let api = api(&fleet, &cluster);
        texts.push(
            api.get("/api/v1/pods").await.unwrap().text + &api.get("/api/v1/events").await.unwrap().text,
        );
    }
    assert_eq!(texts[0], texts[1]);
    assert_ne!(texts[0], texts[2]);
}

#[tokio::test]
async fn timeline_steps_happen_at_their_times() {
    let fleet = stepped().controllers(false).start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let timeline = Timeline::read(
        "
- at: 0s
  object: {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- at: 10s
  object: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}, spec: {}, status: {phase: Running, startTime: '${NOW-5s}'}}
- after: 20s
  patch: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}}
  with: {status: {phase: Failed, startTime: null}}
- after: 10s
  delete: {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}}
- at: 50s
  repeat: {every: 10s, times: 2}
  steps:
    - {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: beat, namespace: shop}, data: {at: '${NOW}'}}}
",
    )
    .unwrap();
    assert_eq!((timeline.len(), timeline.length()), (6, Duration::from_secs(60)));
    cluster.play(&timeline);
    let pod = || cluster.get("v1", "Pod", "shop", "a");
    fleet.advance(Duration::from_secs(9));
    assert_eq!(pod(), None);
    fleet.advance(Duration::from_secs(1));
    assert_eq!(
        pod().unwrap()["status"],
        json!({"phase": "Running", "startTime": "2026-03-01T12:00:05Z", "qosClass": "BestEffort"})
    );
    fleet.advance(Duration::from_secs(20));
    assert_eq!(pod().unwrap()["status"], json!({"phase": "Failed", "qosClass": "BestEffort"}));
    fleet.advance(Duration::from_secs(10));
    assert_eq!(pod(), None);
    let beat = || cluster.get("v1", "ConfigMap", "shop", "beat").unwrap()["data"]["at"].clone();
    fleet.advance(Duration::from_secs(10));
    assert_eq!(beat(), "2026-03-01T12:00:50Z");
    fleet.advance(Duration::from_secs(60));
    assert_eq!(beat(), "2026-03-01T12:01:00Z");
}

#[tokio::test]
async fn dropping_the_last_handle_stops_the_server() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let api = api(&fleet, &cluster);
    let mut watch =
        api.watch("/api/v1/configmaps?watch=1&resourceVersion=1&labelSelector=none").await.unwrap();
    drop(cluster);
    assert!(!matches!(watch.next().await, Ok(Some(_))), "the watch goes on");
    assert!(api.get("/version").await.is_err());
    assert!(fleet.cluster("two").await.is_ok());
}

#[tokio::test]
async fn http_1_and_http_2_are_served() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    for protocol in [&b"h2"[..], b"http/1.1"] {
        let api = Api::speaking(&cluster.url(), fleet.authority(), &cluster.admin().token, "", &[protocol]);
        api.get("/version").await.unwrap().ok().unwrap();
        let mut watch = api.watch("/api/v1/namespaces?watch=1").await.unwrap();
        watch.expect("ADDED", "default").await.unwrap();
    }
}

#[tokio::test]
async fn faults_affect_matching_requests_until_healed() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let api = api(&fleet, &cluster);
    let pods = "/api/v1/pods";

    cluster.fault(Fault::new(Trouble::TooManyRequests(7)).verb("list").resource("pods").times(1));
    let refused = api.get(pods).await.unwrap();
    refused.fails(429, "TooManyRequests", "too many requests").unwrap();
    assert_eq!(refused.header("retry-after"), "7");
    api.get(pods).await.unwrap().ok().unwrap();

    let id = cluster.fault(Fault::new(Trouble::ServerError("etcd is away".to_owned())).path("/apis/apps"));
    let failed = api.get("/apis/apps/v1/deployments").await.unwrap();
    failed.fails(500, "InternalError", "Internal error occurred: etcd is away").unwrap();
    api.get(pods).await.unwrap().ok().unwrap();
    cluster.heal(id);
    api.get("/apis/apps/v1/deployments").await.unwrap().ok().unwrap();

    cluster.fault(Fault::new(Trouble::Garbage).times(1));
    assert_eq!(api.get(pods).await.unwrap().body, Value::Null);
    cluster.fault(Fault::new(Trouble::Cut(10)).times(1));
    assert!(api.get("/api/v1/namespaces").await.is_err(), "the answer is whole");
    cluster.fault(Fault::new(Trouble::Expired).verb("watch").times(1));
    api.get("/api/v1/pods?watch=1&resourceVersion=1")
        .await
        .unwrap()
        .fails(410, "Expired", "too old")
        .unwrap();

    let mut impatient = api.apart();
    impatient.patience = Duration::from_millis(200);
    cluster.trouble(Trouble::Hang);
    assert!(impatient.get(pods).await.is_err());
    cluster.heal_all();
    cluster.trouble(Trouble::SilentWatch);
    let mut watch = impatient.watch("/api/v1/namespaces?watch=1").await.unwrap();
    assert!(watch.next().await.is_err(), "it says something");
    cluster.heal_all();
    api.get(pods).await.unwrap().ok().unwrap();
}

#[tokio::test]
async fn unreachable_cluster_returns_after_healing() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let connected = client(&cluster).await.unwrap();
    connected.version().await.unwrap();
    for trouble in [Trouble::Unreachable, Trouble::ExpiredCertificate] {
        cluster.trouble(trouble.clone());
        assert!(client(&cluster).await.is_err(), "{trouble:?}");
        cluster.heal_all();
        client(&cluster).await.unwrap().version().await.unwrap();
    }
}

#[tokio::test]
async fn expired_certificate_is_reported_as_such() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    cluster.trouble(Trouble::ExpiredCertificate);
    let error = client(&cluster).await.unwrap_err();
    assert!(error.to_string().contains("expired") || format!("{error:?}").contains("Expired"), "{error:?}");
}

#[tokio::test]
async fn restore_reverts_resource_versions() {
    let fleet = Fleet::builder().controllers(false).start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let api = api(&fleet, &cluster);
    let maps = "/api/v1/namespaces/default/configmaps";
    api.post(maps, map("a")).await.unwrap().ok().unwrap();
    let version = cluster.resource_version();
    api.post(maps, map("b")).await.unwrap().ok().unwrap();
    api.delete(&format!("{maps}/a")).await.unwrap().ok().unwrap();
    cluster.restore(2).unwrap();
    assert_eq!(cluster.resource_version(), version);
    assert_eq!(api.apart().get(maps).await.unwrap().names(), ["a"]);
    assert!(cluster.restore(1_000_000).is_err());
}

#[tokio::test]
async fn compacted_history_returns_gone_with_a_new_token() {
    let fleet = Fleet::builder().controllers(false).window(4).start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let api = api(&fleet, &cluster);
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["a", "b", "c"] {
        api.post(maps, map(name)).await.unwrap().ok().unwrap();
    }
    let page = api.get(&format!("{maps}?limit=1")).await.unwrap();
    for name in ["d", "e", "f", "g", "h"] {
        api.post(maps, map(name)).await.unwrap().ok().unwrap();
    }
    let next = api.get(&format!("{maps}?continue={}", page.text_at("/metadata/continue"))).await.unwrap();
    next.fails(410, "Expired", "The provided continue parameter is too old to display a consistent list")
        .unwrap();
    let rest = api.get(&format!("{maps}?continue={}", next.text_at("/metadata/continue"))).await.unwrap();
    assert_eq!(rest.names(), ["b", "c", "d", "e", "f", "g", "h"]);
    let old = api
        .get(&format!("{maps}?resourceVersion={}&resourceVersionMatch=Exact", page.version()))
        .await
        .unwrap();
    old.fails(410, "Expired", "too old").unwrap();
    let mut watch = api.watch(&format!("{maps}?watch=1&resourceVersion={}", page.version())).await.unwrap();
    let error = watch.next().await.unwrap().unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)), "{error}");
    assert!(watch.next().await.unwrap().is_none());
}

#[tokio::test]
async fn timeline_ignores_writes_to_a_deleted_namespace() {
    let fleet = stepped().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let error = cluster
        .apply(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "nowhere"}}));
    assert_eq!(
        error.unwrap_err().to_string(),
        "the simulated API server refused Pod nowhere/a: namespaces \"nowhere\" not found"
    );
    let error = cluster.apply(json!({"apiVersion": "nope.io/v1", "kind": "Nope", "metadata": {"name": "a"}}));
    assert_eq!(
        error.unwrap_err().to_string(),
        "the simulated API server refused Nope a: no matches for kind \"Nope\" in version \"nope.io/v1\""
    );
    assert!(cluster.apply_yaml("a: [").is_err());
    assert!(fleet.cluster("one").await.is_err());
}

#[tokio::test]
async fn reader_is_limited_to_its_roles() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let reader = cluster.add_user("reader", &["readers"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), cluster.kubeconfig_for(&reader)).unwrap();
    let context = Kubeconfig::load(Some(file.path()), None, None).unwrap().current().unwrap();
    let client = Client::connect(&context, Deadline::after(MAX_WAIT)).await.unwrap();
    let pods = client.discover().await.unwrap().resolve("pods").unwrap();
    let refused = client.list(&ListRequest::all(&pods)).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::Forbidden, "{refused}");
}

/// Returns the objects that are left at the end of a recording, with their times filled in as if it began at `begun`.
fn left(recording: &str, begun: &str) -> Vec<Value> {
    let mut left: Vec<Value> = Vec::new();
    let is = |one: &Value, other: &Value| {
        let key = |object: &Value| {
            (
                object["kind"].clone(),
                object["metadata"]["namespace"].clone(),
                object["metadata"]["name"].clone(),
            )
        };
        key(one) == key(other)
    };
    for line in recording.lines().filter_map(|line| line.strip_prefix("- ")) {
        let step: Value = serde_json::from_str(line).unwrap();
        let object = if step["object"].is_object() { &step["object"] } else { &step["delete"] };
        left.retain(|known| !is(known, object));
        if step["object"].is_object() {
            left.push(object.clone());
        }
    }
    let begun: Timestamp = begun.parse().unwrap();
    let fill = |text: &str| {
        let seconds = text.strip_prefix("${START")?.strip_suffix("s}")?.parse::<i64>().ok()?;
        let time = begun.checked_add(jiff::SignedDuration::from_secs(seconds)).ok()?;
        Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    };
    fn filled(value: &Value, fill: &dyn Fn(&str) -> Option<String>) -> Value {
        match value {
            Value::String(text) => json!(fill(text).unwrap_or_else(|| text.clone())),
            Value::Array(items) => items.iter().map(|item| filled(item, fill)).collect(),
            Value::Object(members) => {
                members.iter().map(|(key, value)| (key.clone(), filled(value, fill))).collect()
            }
            plain => plain.clone(),
        }
    }
    left.iter().map(|object| filled(object, &fill)).collect()
}

#[tokio::test]
async fn replayed_recording_ends_in_the_recorded_state() {
    const RECORDING: &str = include_str!("../timelines/rollout.yaml");
    let fleet = stepped().controllers(false).start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let timeline = Timeline::read(RECORDING).unwrap();
    cluster.play(&timeline);
    fleet.advance(Duration::from_secs(9));
    assert_eq!(deployment(&cluster)["status"]["availableReplicas"], 3);
    fleet.advance(timeline.length());
    let left = left(RECORDING, "2026-03-01T12:00:00Z");
    assert!(left.len() > 15, "{}", left.len());
    for want in &left {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text(&want["metadata"]["namespace"]), text(&want["metadata"]["name"]));
        let found = cluster.get(&text(&want["apiVersion"]), &text(&want["kind"]), &namespace, &name);
        let mut found = found.unwrap_or_else(|| panic!("{} {name} is not there", want["kind"]));
        found["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        assert_eq!(&found, want);
    }
    let api = api(&fleet, &cluster);
    for path in [
        "/apis/apps/v1/namespaces/shop/deployments",
        "/api/v1/namespaces/shop/pods",
        "/api/v1/namespaces/shop/events",
    ] {
        let list = api.get(path).await.unwrap();
        let kind = list.text_at("/kind").replace("List", "");
        let want = left.iter().filter(|object| object["kind"] == json!(kind)).count();
        assert_eq!(list.items().len(), want, "{path}");
    }
}

#[tokio::test]
async fn malformed_requests_are_answered_without_a_panic() {
    let fleet = Fleet::builder().nodes(1).pace(Pace::Stepped).start().await.unwrap();
    let nonsense = [
        json!("x"),
        json!(5),
        json!([1, {"a": "b"}]),
        json!({"x": "y"}),
        json!(null),
        json!({"matchLabels": "x"}),
    ];
    let paths = [
        (
            "/apis/apps/v1/namespaces/default/deployments",
            vec![
                "/spec",
                "/spec/template",
                "/spec/template/metadata",
                "/spec/selector",
                "/spec/strategy",
                "/spec/template/spec/containers",
                "/spec/template/spec",
            ],
        ),
        (
            "/api/v1/namespaces/default/pods",
            vec!["/spec", "/status", "/spec/containers", "/spec/initContainers"],
        ),
        ("/api/v1/namespaces/default/services", vec!["/spec", "/spec/ports", "/spec/selector"]),
        (
            "/apis/apps/v1/namespaces/default/statefulsets",
            vec![
                "/spec",
                "/spec/template",
                "/spec/template/spec",
                "/spec/updateStrategy",
                "/spec/updateStrategy/rollingUpdate",
                "/spec/volumeClaimTemplates",
                "/spec/replicas",
                "/spec/ordinals",
                "/status",
            ],
        ),
        (
            "/apis/apps/v1/namespaces/default/daemonsets",
            vec![
                "/spec",
                "/spec/template/metadata",
                "/spec/template/spec",
                "/spec/template/spec/tolerations",
                "/spec/updateStrategy",
                "/status",
            ],
        ),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            vec![
                "/spec",
                "/spec/template/metadata",
                "/spec/template/spec",
                "/spec/selector",
                "/spec/parallelism",
                "/status",
                "/status/conditions",
            ],
        ),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            vec![
                "/spec",
                "/spec/schedule",
                "/spec/jobTemplate",
                "/spec/jobTemplate/spec",
                "/spec/jobTemplate/metadata",
                "/status",
                "/status/lastScheduleTime",
            ],
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            vec!["/spec", "/spec/selector", "/spec/maxUnavailable", "/status"],
        ),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            vec!["/spec", "/spec/names", "/spec/versions"],
        ),
        ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", vec!["/subjects", "/roleRef"]),
        ("/api/v1/namespaces", vec!["/spec", "/status"]),
    ];
    let metadata = [
        "/metadata",
        "/metadata/labels",
        "/metadata/annotations",
        "/metadata/ownerReferences",
        "/metadata/finalizers",
        "/metadata/name",
        "/metadata/resourceVersion",
        "/metadata/generation",
    ];
    let mut number = 0;
    for (path, places) in paths {
        let cluster = fleet.cluster(path).await.unwrap();
        let api = api(&fleet, &cluster);
        for place in places.into_iter().chain(metadata) {
            for value in &nonsense {
                number += 1;
                let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}});
                let mut object = json!({
                    "metadata": {"name": format!("n{number}"), "labels": {}, "annotations": {}, "ownerReferences": [], "finalizers": []},
                    "spec": {
                        "template": template, "selector": {"matchLabels": {"a": "b"}}, "strategy": {}, "ports": [], "names": {},
                        "versions": [], "containers": [], "initContainers": [], "updateStrategy": {}, "schedule": "* * * * *",
                        "jobTemplate": {"spec": {"template": template, "completionMode": "Indexed"}, "metadata": {}},
                        "volumeClaimTemplates": [{"metadata": {"name": "a"}}],
                    },
                    "status": {}, "subjects": [], "roleRef": {},
                });
                let Some(parent) = object.pointer_mut(place.rsplit_once('/').unwrap().0) else { continue };
                parent[place.rsplit('/').next().unwrap()] = value.clone();
                let reply = api
                    .post(path, object.clone())
                    .await
                    .unwrap_or_else(|error| panic!("{error:#}: {object}"));
                assert!(
                    reply.code < 500 || reply.text.contains("resourceVersion should not"),
                    "{}: {object}",
                    reply.text
                );
                fleet.advance(Duration::from_secs(1));
                if reply.code < 300 {
                    let one = format!("{path}/{}", reply.text_at("/metadata/name"));
                    for patch in [
                        json!({"status": value}),
                        json!({"spec": value}),
                        json!({"metadata": {"annotations": value}}),
                    ] {
                        api.patch(&one, crate::api::MERGE, patch).await.unwrap();
                    }
                    fleet.advance(Duration::from_secs(3));
                }
            }
        }
        api.get_as(path, crate::api::TABLE).await.unwrap().ok().unwrap();
    }
    let cluster = fleet.cluster("last").await.unwrap();
    let api = api(&fleet, &cluster);
    for bad in [
        "/api/v1/pods?limit=x&continue=%FF",
        "/api/v1/%00/..",
        "//",
        "/apis///",
        "/api/v1/namespaces/a/b/c/d/e/f",
        "/api/v1/pods?labelSelector=((((&fieldSelector=,,=,",
    ] {
        api.get(bad).await.unwrap();
    }
    api.get("/api/v1/pods").await.unwrap().ok().unwrap();
}

#[tokio::test]
async fn settled_cluster_makes_no_changes() {
    let fleet = stepped().nodes(2).start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    cluster.apply_yaml(WEB).unwrap();
    let nothing = json!({"matchLabels": {"a": "b"}});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": "x"}});
    let odd = |name: &str, spec: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec});
    cluster.apply(odd("a", json!({"selector": nothing, "template": template, "strategy": "x"}))).unwrap();
    cluster
        .apply(odd("b", json!({"selector": {"x": "y"}, "template": {"metadata": {}, "spec": {}}})))
        .unwrap();
    cluster.apply(odd("c", json!({"selector": {}, "template": {"metadata": {"labels": 5}}}))).unwrap();
    // The expiry of the last Event is the last change.
    fleet.advance(Duration::from_secs(2 * 3600));
    let version = cluster.resource_version();
    fleet.advance(Duration::from_secs(3600));
    let api = api(&fleet, &cluster);
    let mut watch =
        api.watch(&format!("/api/v1/pods?watch=1&resourceVersion={version}&timeoutSeconds=1")).await.unwrap();
    let events = watch.rest().await.unwrap();
    assert_eq!(
        cluster.resource_version(),
        version,
        "{events:?} {}",
        api.get("/apis/apps/v1/deployments").await.unwrap().text
    );
}

#[tokio::test]
async fn verbatim_fleet_replays_a_recording_unchanged() {
    let fleet = stepped().verbatim(true).controllers(false).start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    assert_eq!(cluster.object_count(), 0, "it begins empty");
    // A namespace that is being deleted, in which an object changes, and a Pod whose owner does not exist.
    let managers = json!([{"manager": "flux", "time": "2026-03-01T11:00:00Z"}]);
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "uid": "u1", "deletionTimestamp": "2026-03-01T12:00:00Z", "managedFields": managers},
        "spec": {"finalizers": []},
    });
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "settings"}});
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "gone", "controller": true}]);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "shop", "name": "web-1-x", "uid": "u2", "generation": 1, "ownerReferences": owner},
        "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
    });
    let mut living = namespace.clone();
    living["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
    let steps = [
        json!({"at": "0s", "object": living}),
        json!({"at": "0s", "object": map}),
        json!({"at": "0s", "object": pod}),
        json!({"at": "1s", "object": namespace}),
        json!({"at": "2s", "patch": map, "with": {"metadata": {"finalizers": ["example.dev/hold"]}}}),
        json!({"at": "2s", "patch": pod, "with": {"spec": {"nodeName": "node-1", "priority": 1}}}),
    ];
    let lines: Vec<String> = steps.iter().map(|step| format!("- {step}")).collect();
    cluster.play(&Timeline::read(&lines.join("\n")).unwrap());
    fleet.advance(MAX_WAIT);
    assert_eq!(cluster.object_count(), 3, "nothing came and nothing went");
    let shop = cluster.get("v1", "Namespace", "", "shop").unwrap();
    assert_eq!(shop["metadata"]["managedFields"], managers);
    assert_eq!(
        (&shop["spec"], &shop["status"]),
        (&json!({"finalizers": []}), &Value::Null),
        "as it was written"
    );
    let settings = cluster.get("v1", "ConfigMap", "shop", "settings").unwrap();
    assert_eq!(settings["metadata"]["finalizers"], json!(["example.dev/hold"]), "what goes still changes");
    let pod = cluster.get("v1", "Pod", "shop", "web-1-x").unwrap();
    assert_eq!(
        (&pod["metadata"]["generation"], &pod["status"]),
        (&json!(1), &Value::Null),
        "nothing is counted"
    );
}
