//! The nodes of a cluster: how many are ready, and which has not been for longest.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::json::Value;
use taffrail_object::{ObjectKeyRef, Projection};
use taffrail_status::{Observed, Presence, cut};

use crate::objects::Objects;
use crate::scope::Scope;
use crate::text::moment;

/// The numbers of a cluster's nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Nodes {
    /// Number of nodes whose condition Ready is True.
    pub ready: usize,
    /// Number of all nodes.
    pub total: usize,
    /// The node that has not been ready for longest; left out if all are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unready: Option<UnreadyNode>,
}

/// A node that is not ready.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnreadyNode {
    /// The name of the node.
    pub name: String,
    /// The reason of its condition Ready, such as `NodeStatusUnknown`; left out if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The message of that condition; left out if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The time since which it has not been ready; left out if the condition does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// Counts the nodes of a cluster.
///
/// # Errors
/// If not all of them are known, with the reason for people: nobody asked for them, or the user may not list them.
pub fn nodes(cluster: &dyn Objects) -> Result<Nodes, String> {
    if cluster.is_light() {
        return Err("the cluster is read lightly".to_owned());
    }
    let is_of_nodes = |scope: &Scope| matches!(scope, Scope::Kind { kind, .. } if kind.group.is_empty() && kind.kind == "Node");
    if let Some((_, at)) = cluster.stale_scopes().iter().find(|(scope, _)| is_of_nodes(scope)) {
        return Err(format!("the nodes were last observed {}", moment(*at)));
    }
    if !cluster.is_observed("", "Node", None) {
        let none = ObjectKeyRef::new("", "Node", "", "");
        return Err(match cluster.get(none) {
            Presence::Unobserved(why) => cut(why).into_owned(),
            Presence::Present(_) | Presence::Absent => "not all nodes were read".to_owned(),
        });
    }
    let mut nodes = Nodes::default();
    for node in cluster.of_kind("", "Node", None) {
        if node.projection != Projection::Full {
            return Err("only the metadata of nodes was read".to_owned());
        }
        nodes.add(&node);
    }
    if nodes.total == 0 && !cluster.tells_absence("", "Node", "") {
        return Err("the dump has no nodes".to_owned());
    }
    Ok(nodes)
}

impl Nodes {
    fn add(&mut self, node: &Observed<'_>) {
        self.total += 1;
        if node.object.condition_is("Ready", "True") {
            self.ready += 1;
            return;
        }
        let ready = node.object.condition("Ready");
        let field = |name: &str| ready.and_then(|ready| ready.get(name)).and_then(Value::as_str);
        let since = field("lastTransitionTime").and_then(|at| at.parse::<Timestamp>().ok());
        // A node without a time comes after those with one; of equal times the first name counts.
        let order = |name: &str, since: Option<Timestamp>| (since.is_none(), since, name.to_owned());
        let known = self.unready.as_ref().map(|known| order(&known.name, known.since));
        if known.is_some_and(|known| known <= order(node.key.name, since)) {
            return;
        }
        let text = |text: Option<Cow<'_, str>>| text.map(|text| cut(text).into_owned()).unwrap_or_default();
        self.unready = Some(UnreadyNode {
            name: node.key.name.to_owned(),
            reason: text(field("reason")),
            message: text(field("message")),
            since,
        });
    }
}
