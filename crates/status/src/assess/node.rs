//! Nodes.

use crate::assess::case::{Finding, HardCause};
use crate::json::Value;
use crate::object::Object;

/// A node whose kubelet no longer reports is lost; one that reports that it is not ready may get well.
pub(super) fn examine(node: &Object<'_>, finding: &mut Finding) {
    let ready = node.condition("Ready");
    let is_silent =
        ready.is_some_and(|ready| ready.get("status").is_some_and(|status| status.is_str("Unknown")));
    if !finding.is_current() && (is_silent || is_unreachable(node)) {
        let reason = finding.reason.clone();
        finding.harden(HardCause::NodeLost, &reason, "");
    }
}

fn is_unreachable(node: &Object<'_>) -> bool {
    let taints = node.at(&["spec", "taints"]).and_then(Value::items);
    taints
        .into_iter()
        .flatten()
        .any(|taint| taint.get("key").is_some_and(|key| key.is_str("node.kubernetes.io/unreachable")))
}
