//! The report about a cluster as a whole.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::{FleetMember, Freshness, Nodes, Scope, ScopeError, declares_apps, nodes, silence};

use super::half::NotLive;
use super::liveness::LIGHT;
use super::managed::ManagedCluster;
use crate::ReadingView;

/// The facts about a cluster as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    /// The name by which users know the cluster.
    pub name: String,
    /// Further names of the cluster, such as other contexts that lead to it.
    pub aliases: Vec<String>,
    /// The name of another cluster that claims the same identity, though nothing proves that the two are one; `None` if
    /// there is no such cluster.
    pub twin_of: Option<String>,
    /// The UID of the `kube-system` Namespace, with `@` and the server's address (or the name, if no address is known)
    /// appended if an earlier cluster has the same UID and nothing proves that the two are one. `None` if it is not
    /// known.
    pub id: Option<String>,
    /// The version of the API server, such as `v1.33.1`; `None` if it is not known.
    pub version: Option<String>,
    /// The labels by which users select the cluster.
    pub labels: BTreeMap<String, String>,
    /// The reason why the certificate of the server was not verified; `None` if it was.
    pub unverified: Option<String>,
    /// The failure because of which the cluster as a whole cannot be read now; `None` if there is none.
    pub lost: Option<LostCluster>,
    /// The message of the first failure because of which apps declared in the cluster may be missing: of the cluster, a
    /// dump, or a kind that declares apps; `None` if there is none.
    pub blind: Option<String>,
    /// True for a dump without objects.
    pub is_empty_dump: bool,
    /// True if the source reads only what declares apps, and none of their objects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_light: bool,
    /// The freshness of the cluster as a whole, as the source reports it; `None` if that is live.
    pub not_live: Option<NotLive>,
    /// The age up to which an observation is live, if it is longer than [`LIVE`](super::LIVE): a source that learns of
    /// the cluster by scrapes of a metrics server gets no later sign of life between two of them, and one that reads it
    /// lightly asks for one a minute ([`LIGHT`]). A hub takes at most
    /// [`MAX_WINDOW`](super::MAX_WINDOW).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_window: Option<Duration>,
    /// Statistics of the source's requests and watches; `None` if it has none.
    pub reading: Option<ReadingView>,
    /// The nodes of the cluster, as the source observed them last; `None` if it does not know them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    /// The reason why the nodes are not known, for people; `None` if they are, or if the source never tells of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes_unobserved: Option<String>,
    /// The objects in the cluster that stand for other clusters; their namespaces take turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed: Vec<ManagedCluster>,
    /// The addresses at which the source reaches the API server, by which objects of other clusters may name it. No agent
    /// tells them: it could claim those of another cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
}

/// The failure because of which a cluster could not be read at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LostCluster {
    /// The message, for people.
    pub message: String,
    /// The message for a cluster that was never read: it begins with "does not answer" if the server sent nothing.
    pub silence: String,
}

impl ClusterReport {
    /// Makes the report of a cluster from its cluster state, without its freshness ([`ClusterReport::not_live`] is
    /// `None`) and without the objects in it that stand for other clusters.
    pub fn of(member: &FleetMember<'_>) -> ClusterReport {
        let objects = member.objects;
        let lost = objects.errors().iter().find(|error| error.scope == Scope::Cluster);
        let blind = objects.errors().iter().find(|error| hides_apps(error));
        let (nodes, nodes_unobserved) = match nodes(objects) {
            Ok(nodes) => (Some(nodes), None),
            // A dump may omit kinds, and says nothing about it.
            Err(why) => (None, Some(why).filter(|_| !objects.is_dump())),
        };
        ClusterReport {
            name: objects.name().to_owned(),
            aliases: member.aliases.clone(),
            twin_of: member.twin_of.clone(),
            id: member.identity(),
            version: objects.version().map(str::to_owned),
            labels: member.labels.clone(),
            unverified: objects.unverified().map(str::to_owned),
            lost: lost.map(|error| LostCluster { message: error.message.clone(), silence: silence(error) }),
            blind: blind.map(|error| error.message.clone()),
            is_empty_dump: objects.is_dump() && objects.all().next().is_none(),
            not_live: None,
            is_light: objects.is_light(),
            live_window: objects.is_light().then_some(LIGHT),
            reading: objects.reading().map(ReadingView::from),
            nodes,
            nodes_unobserved,
            managed: Vec::new(),
            servers: member.servers().to_vec(),
        }
    }

    /// Returns the report with the freshness of the cluster as a whole, which its source knows at the time `now`.
    pub fn with_freshness(self, freshness: Freshness, now: Timestamp) -> ClusterReport {
        ClusterReport { not_live: NotLive::of(freshness, now), ..self }
    }
}

/// Returns true if apps may be missing because of `error`: if the cluster, a dump, or a kind that declares apps could
/// not be read.
fn hides_apps(error: &ScopeError) -> bool {
    match &error.scope {
        Scope::Cluster | Scope::Input(_) => true,
        Scope::Kind { kind, .. } => declares_apps(kind),
        Scope::Group(_) | Scope::Namespace(_) | Scope::Object(_) => false,
    }
}
