//! `--pdb`: whether a Deployment with as many Pods as its disruption budget wants is ready.

use super::taffrail;

const ROLLING: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web, generation: 1, labels: {app.kubernetes.io/instance: shop}}
spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}}
status:
  observedGeneration: 1
  replicas: 3
  updatedReplicas: 3
  readyReplicas: 2
  availableReplicas: 2
  unavailableReplicas: 1
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {namespace: shop, name: web, generation: 1}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
status: {observedGeneration: 1, desiredHealthy: 2, currentHealthy: 2}
"#;

#[test]
fn a_budget_suffices_in_every_view_that_is_told_so() {
    let health = |pdb: &[&str]| {
        let ask = |command: &[&str]| {
            let now = ["--from", "-", "--now", "2026-03-01T12:00:00Z", "-o", "json"];
            taffrail(&[command, &now, pdb].concat(), ROLLING).json()
        };
        let status = |value: &serde_json::Value| value.as_str().unwrap_or("none").to_owned();
        [
            status(&ask(&["get", "apps"])["items"][0]["health"]),
            status(&ask(&["get", "resources"])["items"][0]["status"]),
            status(&ask(&["app", "shop"])["items"][0]["deployment"][0]["status"]),
            status(&ask(&["tree", "shop"])["items"][0]["root"]["children"][0]["status"]),
            status(&ask(&["explain", "shop"])["health"]),
            status(&ask(&["explain", "deploy/web"])["health"]),
        ]
    };
    assert_eq!(health(&[]), ["InProgress"; 6]);
    assert_eq!(health(&["--pdb", "advisory"]), ["InProgress"; 6]);
    assert_eq!(health(&["--pdb", "sufficient"]), ["Current"; 6]);
}

#[test]
fn unknown_pdb_meaning_is_refused() {
    let answer = taffrail(&["get", "apps", "--from", "-", "--pdb", "sometimes"], ROLLING);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("sufficient"), "{}", answer.stderr);
}
