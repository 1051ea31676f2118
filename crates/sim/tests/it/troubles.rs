//! Tests of faults inside a simulated cluster: nodes, quotas, images, and timelines that repeat.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_sim::{Cluster, Fleet, Pace, Timeline};

const WEB: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'example.com/web:1'}]}
";

async fn cluster(nodes: usize) -> (Fleet, Cluster) {
    let fleet = Fleet::builder().pace(Pace::Stepped).nodes(nodes).missing_images(["example.com/web:2"]);
    let fleet = fleet.start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    cluster.apply_yaml(WEB).unwrap();
    fleet.advance(Duration::from_secs(20));
    (fleet, cluster)
}

fn patch(fleet: &Fleet, cluster: &Cluster, step: &str) {
    cluster.play(&Timeline::read(step).unwrap());
    fleet.advance(Duration::from_secs(10));
}

fn web(cluster: &Cluster) -> Value {
    cluster.get("apps/v1", "Deployment", "shop", "web").unwrap()
}

fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default()
}

#[tokio::test]
async fn pods_of_a_lost_node_are_evicted_and_return() {
    let (fleet, cluster) = cluster(1).await;
    assert_eq!(web(&cluster)["status"]["readyReplicas"], 3);
    let lost = "- {patch: {apiVersion: v1, kind: Node, metadata: {name: node-1}}, with: {metadata: {annotations: {taffrail.dev/simulate: lost}}}}";
    patch(&fleet, &cluster, lost);
    let node = cluster.get("v1", "Node", "", "node-1").unwrap();
    assert_eq!(condition(&node, "Ready")["status"], "Unknown");
    assert_eq!(condition(&node, "Ready")["reason"], "NodeStatusUnknown");
    assert_eq!(node["spec"]["taints"].as_array().unwrap().len(), 2);
    assert!(web(&cluster)["status"].get("readyReplicas").is_none(), "{}", web(&cluster));
    let back = lost.replace("simulate: lost", "simulate: null");
    patch(&fleet, &cluster, &back);
    assert_eq!(web(&cluster)["status"]["readyReplicas"], 3);
    assert!(cluster.get("v1", "Node", "", "node-1").unwrap()["spec"].get("taints").is_none());

    // For longer than Pods tolerate: they are deleted, but their kubelet does not report their end.
    patch(&fleet, &cluster, lost);
    fleet.advance(Duration::from_secs(310));
    let before = cluster.object_count();
    assert_eq!(condition(&web(&cluster), "Available")["status"], "False");
    patch(&fleet, &cluster, &back);
    fleet.advance(Duration::from_secs(30));
    assert_eq!(web(&cluster)["status"]["readyReplicas"], 3);
    assert!(cluster.object_count() < before + 20, "the old Pods have gone");
}

#[tokio::test]
async fn full_quota_refuses_pods_until_there_is_room() {
    let (fleet, cluster) = cluster(1).await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "shop"},
        "spec": {"hard": {"pods": "4"}},
    });
    cluster.apply(quota.clone()).unwrap();
    let web_step = |replicas: u32| {
        format!(
            "- {{patch: {{apiVersion: apps/v1, kind: Deployment, metadata: {{namespace: shop, name: web}}}}, with: {{spec: {{replicas: {replicas}}}}}}}"
        )
    };
    patch(&fleet, &cluster, &web_step(6));
    let deployment = web(&cluster);
    assert_eq!(deployment["status"]["replicas"], 4, "{deployment}");
    let refused = condition(&deployment, "ReplicaFailure");
    assert_eq!(refused["reason"], "FailedCreate");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.ends_with("exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4"),
        "{message}"
    );
    let used = cluster.get("v1", "ResourceQuota", "shop", "team").unwrap();
    assert_eq!(used["status"]["used"]["pods"], "4");
    // The creation is retried, and the condition keeps the first refusal.
    let version = cluster.resource_version();
    fleet.advance(Duration::from_secs(60));
    assert_eq!(condition(&web(&cluster), "ReplicaFailure")["message"], message);
    assert!(cluster.resource_version() < version + 20);

    let mut wider = quota;
    wider["spec"]["hard"]["pods"] = json!("10");
    cluster.apply(wider).unwrap();
    fleet.advance(Duration::from_secs(10));
    assert_eq!(web(&cluster)["status"]["readyReplicas"], 6);
    assert!(condition(&web(&cluster), "ReplicaFailure").is_null());
}

#[tokio::test]
async fn missing_image_backs_off() {
    let (fleet, cluster) = cluster(1).await;
    let image = |tag: u32| {
        format!(
            "- {{patch: {{apiVersion: apps/v1, kind: Deployment, metadata: {{namespace: shop, name: web}}}}, with: {{spec: {{template: {{spec: {{containers: [{{name: web, image: 'example.com/web:{tag}'}}]}}}}}}}}}}"
        )
    };
    patch(&fleet, &cluster, &image(2));
    fleet.advance(Duration::from_secs(20));
    assert_eq!(web(&cluster)["status"]["unavailableReplicas"], 1, "{}", web(&cluster));
    patch(&fleet, &cluster, &image(3));
    fleet.advance(Duration::from_secs(20));
    assert_eq!(web(&cluster)["status"]["updatedReplicas"], 3);
    assert!(web(&cluster)["status"].get("unavailableReplicas").is_none(), "{}", web(&cluster));
}

#[tokio::test]
async fn repeated_timeline_fills_in_generations_and_sets_faults() {
    let (fleet, cluster) = cluster(0).await;
    let mut changes = cluster.changes();
    cluster.play_again(Duration::from_secs(100), |round| {
        let text = format!(
            "
- patch: {{apiVersion: apps/v1, kind: Deployment, metadata: {{namespace: shop, name: web}}}}
  with: {{spec: {{replicas: {}}}, metadata: {{annotations: {{seen: '${{GENERATION}}'}}}}}}
- {{after: 10s, fault: unreachable}}
- {{after: 10s, heal: unreachable}}
",
            round + 5
        );
        Timeline::read(&text).unwrap()
    });
    assert_eq!(web(&cluster)["spec"]["replicas"], 5);
    // The generation is that after the step.
    let seen = web(&cluster)["metadata"]["annotations"]["seen"].clone();
    assert!(seen.is_u64() && seen.as_u64() <= web(&cluster)["metadata"]["generation"].as_u64(), "{seen}");
    fleet.advance(Duration::from_secs(5));
    changes.mark_unchanged();
    let refused = |cluster: &Cluster| {
        let address = cluster.url().replace("https://", "");
        use std::io::Read;
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        // A reachable server waits for the client to speak first.
        matches!(stream.read(&mut [0]), Ok(0)) || stream.take_error().unwrap().is_some()
    };
    fleet.advance(Duration::from_secs(6));
    assert!(changes.has_changed().unwrap(), "that it is out of reach is a change");
    let dark = tokio::task::spawn_blocking({
        let cluster = cluster.clone();
        move || refused(&cluster)
    });
    assert!(dark.await.unwrap());
    fleet.advance(Duration::from_secs(90));
    assert_eq!(web(&cluster)["spec"]["replicas"], 6, "the second round");
    assert!(Timeline::read("- {fault: plague}").is_err());
}

#[tokio::test]
async fn held_time_passes_only_by_advance_until_released() {
    let fleet = Fleet::builder().held().start().await.unwrap();
    let cluster = fleet.cluster("one").await.unwrap();
    let start = fleet.clock().now();
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(fleet.clock().now(), start);
    cluster.apply_yaml(WEB).unwrap();
    fleet.advance(Duration::from_secs(3600));
    assert_eq!(fleet.clock().now().duration_since(start).as_secs(), 3600);
    assert_eq!(cluster.get("apps/v1", "Deployment", "shop", "web").unwrap()["status"]["replicas"], 3);
    fleet.release();
    let begun = Instant::now();
    while fleet.clock().now().duration_since(start).as_millis() <= 3_600_000 {
        assert!(begun.elapsed() < Duration::from_secs(10), "it does not pass");
    }
    fleet.advance(Duration::from_secs(3600));
    assert!(fleet.clock().now().duration_since(start).as_secs() >= 7200);
}

#[tokio::test]
async fn events_expire_after_an_hour_and_lease_renewals_are_not_changes() {
    let (fleet, cluster) = cluster(1).await;
    let events = || cluster.object_count();
    let before = events();
    fleet.advance(Duration::from_secs(3700));
    assert!(events() + 10 < before, "{before} {}", events());

    cluster.keep_leases();
    let renewed = |cluster: &Cluster| {
        cluster.get("coordination.k8s.io/v1", "Lease", "kube-node-lease", "node-1").unwrap()["spec"]["renewTime"].clone()
    };
    let changes = cluster.changes();
    let first = renewed(&cluster);
    fleet.advance(Duration::from_secs(15));
    assert_ne!(renewed(&cluster), first);
    assert!(!changes.has_changed().unwrap());
}
