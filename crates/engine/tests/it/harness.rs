//! A simulated cluster in which sets are synced.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use taffrail_apps::ReadQuery;
use taffrail_apps::sets::{SetName, SetVerb};
use taffrail_cluster::{BootClock, ListStrategy};
use taffrail_engine::{HolderTimes, ManifestText, SyncCaller, SyncEvent, SyncPlan, SyncRequest};
use taffrail_observe::{ClusterSelection, FleetRules, FleetWatcher, LightReach, WatchRequest, members};
use taffrail_plan::order::Dialect;
use taffrail_plan::sync::RunPolicy;
use taffrail_sim::{Cluster, Fleet, Pace};
use taffrail_status::ActiveRules;
use taffrail_testkit::kubeconfig;
use taffrail_testkit::proxy::{Backend, Gate};

/// Maximum time of each wait; no test that succeeds needs so much, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a cluster with controllers, whose time passes fast.
pub(crate) async fn cluster() -> (Fleet, Cluster) {
    let fleet = Fleet::builder().managers(true).nodes(2).pace(Pace::Scaled(20.0)).start().await.unwrap();
    let cluster = fleet.cluster("eu").await.unwrap();
    (fleet, cluster)
}

/// Opens a gate before a cluster, with its certificates in `folder`.
pub(crate) async fn gate_before(cluster: &Cluster, folder: &Path) -> Gate {
    let backend = Backend { url: cluster.url(), authority: authority(cluster) };
    Gate::open(folder, backend).await.unwrap()
}

/// Returns the kubeconfig of the administrator of a cluster behind a gate.
pub(crate) fn kubeconfig_through(gate: &Gate, cluster: &Cluster) -> String {
    let authority = STANDARD.encode(&gate.authority);
    let server = format!("server: https://{}\ncertificate-authority-data: {authority}", gate.address);
    kubeconfig(&[("eu", &server, &format!("token: {}", cluster.admin().token))])
}

/// Returns the certificate by which a simulated cluster is trusted, in PEM.
fn authority(cluster: &Cluster) -> String {
    let kubeconfig = cluster.kubeconfig();
    let data = kubeconfig.split("certificate-authority-data: ").nth(1).unwrap();
    let data = data.split_whitespace().next().unwrap().trim_matches('"');
    String::from_utf8(STANDARD.decode(data).unwrap()).unwrap()
}

/// Follows the cluster of a kubeconfig.
pub(crate) async fn watcher(kubeconfig: &str) -> FleetWatcher {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), kubeconfig).unwrap();
    let selection =
        ClusterSelection { kubeconfig: Some(file.path().to_owned()), ..ClusterSelection::default() };
    let request = WatchRequest {
        members: members(&selection).unwrap(),
        timeout: PATIENCE,
        request_timeout: None,
        asked: ReadQuery { by_name: true, ..ReadQuery::default() },
        rules: std::sync::Arc::new(BuiltIn),
        lists: ListStrategy::Auto,
        clock: BootClock::default(),
        light: LightReach::default(),
    };
    FleetWatcher::start(request).await
}

/// The rules that apply without any rules files.
#[derive(Debug)]
struct BuiltIn;

impl FleetRules for BuiltIn {
    fn active(&self) -> ActiveRules<'_> {
        ActiveRules::default()
    }
}

/// Returns a request to sync the set `shop` in the namespace `default`.
pub(crate) fn request() -> SyncRequest {
    SyncRequest {
        set: SetName::new("default", "shop").unwrap(),
        verb: SetVerb::Sync,
        actor: "ann@laptop".to_owned(),
        revision: "main@sha1:0123456789".to_owned(),
        default_namespace: None,
        dialect: Dialect::Argo,
        annotations: Vec::new(),
        policy: RunPolicy {
            continues: false,
            waits_at_end: true,
            deadline: None,
            step_deadline: None,
            retries: 5,
        },
        prune: None,
        creates_namespace: false,
        force_conflicts: false,
        take_over: Vec::new(),
        replaces: false,
        holder: HolderTimes {
            poll: Duration::from_millis(10),
            patience: Duration::from_millis(40),
            ..HolderTimes::default()
        },
    }
}

/// Returns one file of manifests.
pub(crate) fn manifests(text: &str) -> Vec<ManifestText> {
    vec![ManifestText { path: "deploy/all.yaml".to_owned(), content: text.to_owned() }]
}

/// A caller that approves everything, and notes what the run waits for.
#[derive(Default)]
pub(crate) struct Approving {
    pub(crate) waits_for: Vec<String>,
}

impl SyncCaller for Approving {
    fn take(&mut self, event: &SyncEvent<'_>) {
        if let SyncEvent::Stepped { waiting_for, .. } = event {
            let told =
                waiting_for.iter().map(|it| format!("{} {}: {}", it.key.kind, it.key.path(), it.reason));
            let told = told.collect::<Vec<_>>().join(", ");
            if !told.is_empty() && self.waits_for.last() != Some(&told) {
                self.waits_for.push(told);
            }
        }
    }

    fn approves(&mut self, _: &SyncPlan<'_>) -> bool {
        true
    }
}
