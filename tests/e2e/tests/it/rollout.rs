//! Tests of rollouts, compared at every moment with kubectl.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;
use taffrail_testkit::examples::apply_source;
use taffrail_testkit::kube::ControlPlane;

use crate::harness::CLUSTER;
use crate::stage::Stage;

const REPLICAS: u64 = 200;

/// A Kustomization with a slow Deployment.
const MANIFESTS: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: rollout
spec:
  replicas: 200
  strategy:
    rollingUpdate: {maxSurge: 100%, maxUnavailable: 0}
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
      annotations: {taffrail.dev/start-after: 4s}
    spec:
      containers:
        - {name: web, image: registry.example/rollout/web:1}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: rollout
  namespace: rollout
spec:
  interval: 10m
  prune: true
  sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}
status:
  observedGeneration: 1
  lastAppliedRevision: main@sha1:3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613
  lastAttemptedRevision: main@sha1:3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613
  conditions:
    - type: Ready
      status: 'True'
      reason: ReconciliationSucceeded
      message: 'Applied revision: main@sha1:3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613'
      observedGeneration: 1
      lastTransitionTime: 2026-03-01T12:00:00Z
  inventory:
    entries:
      - {id: _rollout__Namespace, v: v1}
      - {id: rollout_web_apps_Deployment, v: v1}
";

/// Returns true if kubectl shows the rollout as complete.
fn is_complete(plane: &ControlPlane) -> Result<bool> {
    let text = plane.kubectl(CLUSTER, &["get", "deployment", "web", "-n", "rollout", "-o", "json"])?;
    let deployment: Value = serde_json::from_str(&text)?;
    let status = &deployment["status"];
    let all = |field: &str| status[field].as_u64() == Some(REPLICAS);
    Ok(status["observedGeneration"] == deployment["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"].into_iter().all(all))
}

/// Runs `taffrail get apps` until the rollout is complete, and asserts that each run shows what kubectl shows directly
/// before and after it.
fn follow(stage: &mut Stage) {
    let started = Instant::now();
    let mut looks = 0;
    loop {
        assert!(started.elapsed() < Duration::from_secs(120), "no end after {looks} looks");
        let before = stage.ask(is_complete);
        let apps = stage.look();
        let row = apps.row(CLUSTER, "flux-kustomization", "rollout", "rollout");
        row.is("/objects", 2).is("/sync/state", "Synced");
        if before {
            row.is("/health", "Current").has("/message", "Applied revision");
            break;
        }
        // A rollout that ends during the look may be shown either way; after its end there is no way back.
        if !stage.ask(is_complete) {
            row.is("/health", "InProgress").speaks("apps", "Deployment", "rollout", "web");
            looks += 1;
        }
    }
    assert!(looks > 0, "the rollout was over before anybody looked");
}

fn rollout_of_two_hundred_replicas_is_right_at_every_look(stage: &mut Stage) {
    stage.act(|plane| {
        apply_source(plane, CLUSTER)?;
        plane.create_namespace(CLUSTER, "rollout")?;
        plane.apply_with_status(CLUSTER, MANIFESTS)
    });
    follow(stage);

    stage.act(|plane| {
        let image = "web=registry.example/rollout/web:2";
        plane.kubectl(CLUSTER, &["set", "image", "deployment/web", image, "-n", "rollout"]).map(drop)
    });
    follow(stage);
}

fn rollout_past_its_deadline_is_failed(stage: &mut Stage) {
    stage.example("search");
    let apps = stage.look();
    let row = apps.row(CLUSTER, "label", "search", "search");
    row.is("/health", "Failed").is("/objects", 2).speaks("apps", "Deployment", "search", "index");
    assert!(!row.text("/message").is_empty(), "{apps}");
}

scenarios![1: rollout_of_two_hundred_replicas_is_right_at_every_look, rollout_past_its_deadline_is_failed];
