//! What tests of syncs in simulated clusters share.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use taffrail_apps::ReadQuery;
use taffrail_apps::sets::{SetName, SetVerb};
use taffrail_cluster::{BootClock, ListStrategy};
use taffrail_engine::{PruneConsent, SyncCaller, SyncEvent, SyncPlan, SyncRequest};
use taffrail_observe::{ClusterSelection, FleetRules, FleetWatcher, LightReach, WatchRequest, members};
use taffrail_plan::order::Dialect;
use taffrail_plan::sync::RunPolicy;
use taffrail_sim::Cluster;
use taffrail_status::ActiveRules;

/// Time for the first answer of a cluster, and for each request.
const PATIENCE: Duration = Duration::from_secs(30);

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

#[derive(Debug, Default)]
struct Shipped(taffrail_status::Taffrail);

impl FleetRules for Shipped {
    fn active(&self) -> ActiveRules<'_> {
        ActiveRules { rules: &self.0, ..ActiveRules::default() }
    }
}

/// Begins to watch a simulated cluster.
pub(crate) async fn watcher(cluster: &Cluster) -> FleetWatcher {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), cluster.kubeconfig()).unwrap();
    let kubeconfig = Some(file.path().to_owned());
    let request = WatchRequest {
        members: members(&ClusterSelection { kubeconfig, ..ClusterSelection::default() }).unwrap(),
        timeout: PATIENCE,
        request_timeout: None,
        asked: ReadQuery { by_name: true, ..ReadQuery::default() },
        rules: Arc::new(Shipped::default()),
        lists: ListStrategy::Auto,
        clock: BootClock::default(),
        light: LightReach::default(),
    };
    FleetWatcher::start(request).await
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
    SyncRequest {
        default_namespace: Some(set.namespace.clone()),
        set,
        verb,
        actor: "ann@laptop".to_owned(),
        revision: String::new(),
        dialect: Dialect::Argo,
        annotations: Vec::new(),
        policy: policy(),
        prune,
        creates_namespace: false,
        force_conflicts: false,
        take_over: Vec::new(),
        replaces: false,
    }
}
