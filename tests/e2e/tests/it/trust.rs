//! Tests of reasons to doubt a green status, on a real control plane.

use serde_json::Value;

use crate::harness::{Answer, CLUSTER};
use crate::stage::{Stage, Who};

/// The objects that a vanished node's kubelet leaves behind.
const LEASE: &str = "\
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {namespace: kube-node-lease, name: e2e-silent}
spec: {holderIdentity: e2e-silent, leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.000000Z'}
";

fn trust(stage: &mut Stage, who: Who) -> (Answer, Value) {
    let answer = stage.taffrail(who, &["trust", "--context", CLUSTER, "-o", "json"]);
    let report: Value =
        serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error} in\n{answer}"));
    assert_eq!(report["kind"], "TrustReport", "{answer}");
    (answer, report)
}

fn has(report: &Value, reason: &str, message: &str, object: &str) -> bool {
    let mut items = report["items"].as_array().into_iter().flatten();
    items.any(|item| {
        item["reason"] == reason
            && item["message"].as_str().unwrap_or_default().contains(message)
            && item["objects"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|it| it["name"] == object && it["since"].is_string())
    })
}

fn trust_reports_silent_and_suspended_tools_with_their_age(stage: &mut Stage) {
    stage.example("reports");
    stage.act(|plane| plane.apply(CLUSTER, LEASE));
    let (answer, report) = trust(stage, Who::Admin);
    assert_eq!(answer.code, 0, "{answer}");
    assert!(has(&report, "Node", "the node's kubelet does not renew its lease", "e2e-silent"), "{answer}");
    assert!(has(&report, "Suspended", "suspended", "reports"), "{answer}");
    // The kubelets of this cluster do renew their leases, and its clock is ours.
    let reasons: Vec<&str> =
        report["items"].as_array().into_iter().flatten().filter_map(|item| item["reason"].as_str()).collect();
    assert!(!reasons.contains(&"ServerClock") && !reasons.contains(&"FutureTime"), "{answer}");
    assert!(report["checked"][0]["leases"].as_u64().unwrap_or_default() > 3, "{answer}");
}

fn trust_without_leases_warns_that_nodes_may_be_dead(stage: &mut Stage) {
    let (answer, report) = trust(stage, Who::Reader);
    assert_eq!(answer.code, 3, "{answer}");
    let unread = report["items"].as_array().into_iter().flatten().filter(|item| item["category"] == "unread");
    assert!(unread.count() > 0, "{answer}");
}

scenarios![1: trust_reports_silent_and_suspended_tools_with_their_age, trust_without_leases_warns_that_nodes_may_be_dead];
