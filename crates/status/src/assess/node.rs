//! Assesses Nodes.

use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::assess::assessor::{Evaluation, HardCause};

/// Sets the hard cause NodeLost on a node that is not Current and whose kubelet stopped reporting: Ready is Unknown, or
/// it has the taint `unreachable` and no Ready. Leaves a node alone that reports not to be ready: it may recover.
pub(super) fn examine(node: &Object<'_>, finding: &mut Evaluation) {
    let is_silent = match node.condition("Ready").and_then(|ready| ready.get("status")) {
        Some(status) => status.is_str("Unknown"),
        None => is_unreachable(node),
    };
    if !finding.is_current() && is_silent {
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
