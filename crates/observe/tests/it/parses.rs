//! Each object that is read or followed is parsed exactly once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_apps::{Dependents, ReadQuery};
use taffrail_cluster::{BootClock, Cluster, Deadline, ListStrategy, WatchSettings};
use taffrail_index::{ScopeState, Snapshot};
use taffrail_object::ObjectKey;
use taffrail_object::json::parses;
use taffrail_observe::{
    ClusterSelection, FleetMembers, FleetWatcher, LightReach, Live, LiveSettings, LookRequest, NO_EXTRA,
    TimeLimits, WatchRequest, members,
};
use taffrail_sim::Fleet;
use taffrail_status::ClusterState as _;
use taffrail_testkit::objects::{kustomizations, namespace};

use crate::living::current;
use crate::rules::Shipped;

const PATIENCE: Duration = Duration::from_secs(60);

/// The name of the threads of the simulated server, so that the objects that it parses itself are not counted.
const SERVER: &str = "server";

/// A simulated cluster that runs in threads of its own.
struct Server {
    cluster: taffrail_sim::Cluster,
    _fleet: Fleet,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    fn start() -> Server {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().thread_name(SERVER).enable_all().build().unwrap();
        let (fleet, cluster) = runtime.block_on(async {
            let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
            let cluster = fleet.cluster("one").await.unwrap();
            (fleet, cluster)
        });
        Server { cluster, _fleet: fleet, _runtime: runtime }
    }

    fn apply(&self, object: Value) {
        let cluster = self.cluster.clone();
        let work = move || cluster.apply(object).unwrap();
        std::thread::Builder::new().name(SERVER.to_owned()).spawn(work).unwrap().join().unwrap();
    }

    fn members(&self) -> FleetMembers {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), self.cluster.kubeconfig()).unwrap();
        let kubeconfig = Some(file.path().to_owned());
        members(&ClusterSelection { kubeconfig, ..ClusterSelection::default() }).unwrap()
    }
}

/// Returns an app, its Deployment and a ReplicaSet of that, each of which contains the text `mark` with another suffix,
/// so that parses of it can be counted.
fn app(mark: &str) -> [Value; 5] {
    let entries = json!([{"id": "shop_web_apps_Deployment", "v": "v1"}]);
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u-web", "controller": true}]);
    [
        kustomizations(),
        namespace("shop"),
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": "shop", "name": "web", "generation": 1},
            "spec": {"mark": format!("{mark}-app")},
            "status": {"observedGeneration": 1, "inventory": {"entries": entries},
                "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]},
        }),
        deployment(&format!("{mark}-first")),
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"namespace": "shop", "name": "web-1", "generation": 1, "ownerReferences": owner},
            "spec": {"replicas": 1, "mark": format!("{mark}-set")}, "status": {"observedGeneration": 1, "replicas": 1},
        }),
    ]
}

/// Returns a Deployment that is not ready, so that the objects behind it are read as evidence.
fn deployment(mark: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "shop", "name": "web", "uid": "u-web", "generation": 1},
        "spec": {"replicas": 1, "mark": mark},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1},
    })
}

fn parsed(mark: &str, names: &[&str]) -> Vec<usize> {
    names.iter().map(|name| parses::count(&format!("\"{mark}-{name}\""), SERVER)).collect()
}

/// Covers the reads of `get`, `explain` and `tree`.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_parses_each_object_once() {
    for (mark, dependents) in [("look", Dependents::None), ("tree", Dependents::Of("web".parse().unwrap()))] {
        let server = tokio::task::block_in_place(Server::start);
        app(mark).into_iter().for_each(|object| server.apply(object));
        parses::record();
        let request = LookRequest {
            members: server.members(),
            limits: TimeLimits::each(PATIENCE),
            asked: ReadQuery { dependents, ..ReadQuery::default() },
            now: jiff::Timestamp::now(),
            rules: Arc::new(Shipped::default()),
            answered: Arc::new(|_: &str| {}),
        };
        let (fleet, _) = taffrail_observe::look(request, NO_EXTRA).await.unwrap();
        assert_eq!(fleet.apps(&[]).apps.len(), 1);
        assert!(fleet.snapshots[0].of_kind("apps", "Deployment", None).next().is_some());
        assert_eq!(parsed(mark, &["app", "first", "set"]), [1, 1, 1], "{mark}");
        tokio::task::block_in_place(|| drop(server));
    }
}

/// Covers the reads of `-w`, whose lists come in pages, and of `wait`, whose lists begin their watches.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_followed_is_parsed_once_in_lists_and_once_in_each_event() {
    for (mark, lists) in [("pages", ListStrategy::Pages), ("streams", ListStrategy::Streams)] {
        let server = tokio::task::block_in_place(Server::start);
        app(mark).into_iter().for_each(|object| server.apply(object));
        parses::record();
        let request = WatchRequest {
            members: server.members(),
            timeout: PATIENCE,
            request_timeout: None,
            asked: ReadQuery::default(),
            rules: Arc::new(Shipped::default()),
            lists,
            clock: BootClock::default(),
            light: LightReach::default(),
        };
        let mut follow = FleetWatcher::start(request).await;
        follow.settle(NO_EXTRA).await;
        assert_eq!(parsed(mark, &["app", "first", "set"]), [1, 1, 1], "{mark}");
        server.apply(deployment(&format!("{mark}-second")));
        let key = ObjectKey::new("apps", "Deployment", "shop", "web");
        let begun = Instant::now();
        loop {
            follow.next(Duration::from_millis(100)).await;
            let fleet = follow.fleet();
            if let taffrail_status::Presence::Present(found) = fleet.snapshots[0].get(key.as_ref())
                && found.object.text(&["spec", "mark"]).ends_with("second")
            {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "it never came");
        }
        assert_eq!(parsed(mark, &["first", "second"]), [1, 1], "{mark}");
        drop(follow);
        tokio::task::block_in_place(|| drop(server));
    }
}

/// Covers the reads of a cluster that is followed as a whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_cluster_is_parsed_once_in_lists_and_once_in_each_event() {
    for (mark, lists) in [("whole-pages", ListStrategy::Pages), ("whole-streams", ListStrategy::Streams)] {
        let server = tokio::task::block_in_place(Server::start);
        app(mark).into_iter().for_each(|object| server.apply(object));
        parses::record();
        let mut feeds = WatchSettings::default();
        feeds.lists = lists;
        let context = current(&server.cluster.kubeconfig());
        let connected = Cluster::connect(&context, Deadline::after(PATIENCE)).await.unwrap();
        let settings = LiveSettings { feeds, ..LiveSettings::default() };
        let live = Live::start(connected, Some(context), settings).await.unwrap();
        let is_live = |snapshot: &Snapshot| {
            snapshot.len() == 5 && snapshot.scopes().all(|(.., scope)| scope.state == ScopeState::Live)
        };
        let begun = Instant::now();
        while !is_live(&live.snapshot()) {
            assert!(begun.elapsed() < PATIENCE, "never live");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(parsed(mark, &["app", "first", "set"]), [1, 1, 1], "{mark}");
        server.apply(deployment(&format!("{mark}-second")));
        let begun = Instant::now();
        while parsed(mark, &["second"]) == [0] {
            assert!(begun.elapsed() < PATIENCE, "it never came");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(parsed(mark, &["first", "second"]), [1, 1], "{mark}");
        drop(live);
        tokio::task::block_in_place(|| drop(server));
    }
}
