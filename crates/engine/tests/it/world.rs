//! What tests of syncs in simulated clusters share.

use jiff::SignedDuration;
use taffrail_apps::sets::{SetName, SetVerb};
use taffrail_engine::{PruneConsent, SyncCaller, SyncEvent, SyncPlan, SyncRequest};
use taffrail_observe::FleetWatcher;
use taffrail_plan::sync::RunPolicy;
use taffrail_sim::Cluster;

use crate::harness;

/// A caller that approves all, and keeps the lines of the plan.
#[derive(Default)]
pub(crate) struct Approves {
    /// The objects that stay, each with the reason.
    pub(crate) kept: Vec<String>,
}

impl SyncCaller for Approves {
    fn take(&mut self, _: &SyncEvent<'_>) {}

    fn approves(&mut self, plan: &SyncPlan<'_>) -> bool {
        let told = plan.kept.iter().map(|(key, reason)| format!("{} {}: {reason}", key.kind, key.path()));
        self.kept = told.collect();
        true
    }
}

/// Begins to watch a simulated cluster.
pub(crate) async fn watcher(cluster: &Cluster) -> FleetWatcher {
    harness::watcher(&cluster.kubeconfig()).await
}

/// Returns the rules of a run that waits for all objects, for at most a minute.
pub(crate) fn policy() -> RunPolicy {
    RunPolicy {
        continues: false,
        waits_at_end: true,
        deadline: Some(SignedDuration::from_mins(1)),
        step_deadline: None,
        retries: 5,
    }
}

/// Returns a request in the order of Argo CD.
pub(crate) fn request(set: SetName, verb: SetVerb, prune: Option<PruneConsent>) -> SyncRequest {
    let default_namespace = Some(set.namespace.clone());
    SyncRequest { default_namespace, set, verb, policy: policy(), prune, ..harness::request() }
}
