//! Statuses of ResourceGroups that are written where nobody else does.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_apps::ReadQuery;
use taffrail_cluster::{BootClock, ListStrategy};
use taffrail_observe::{
    ClusterSelection, FleetWatcher, GroupStatusEvent, LightReach, LookRequest, NO_EXTRA, Reporter,
    TimeLimits, WatchRequest, look, members,
};
use taffrail_sim::{Cluster, Fault, Fleet, Trouble};
use taffrail_testkit::objects::{
    definition, deployment, namespace, with_spec_and_status, with_status_subresource,
};
use tokio::sync::mpsc;

use crate::rules::Shipped;

const PATIENCE: Duration = Duration::from_secs(60);

/// A time after which a second write of a group would have been made.
const LONG: Duration = Duration::from_secs(6);

const VERSION: &str = "kpt.dev/v1alpha1";

fn group(name: &str, listed: &[&str]) -> Value {
    let entry =
        |name: &&str| json!({"group": "apps", "kind": "Deployment", "namespace": "shop", "name": name});
    let resources: Vec<Value> = listed.iter().map(entry).collect();
    json!({
        "apiVersion": VERSION, "kind": "ResourceGroup", "metadata": {"namespace": "shop", "name": name},
        "spec": {"resources": resources},
    })
}

/// A cluster with ResourceGroups, whose statuses a reporter writes.
struct Stage {
    _fleet: Fleet,
    cluster: Cluster,
    kubeconfig: tempfile::NamedTempFile,
    events: Arc<Mutex<Vec<GroupStatusEvent>>>,
}

impl Stage {
    /// Starts to write the statuses in a cluster that `prepare` has filled, with the rights that this needs.
    async fn start(prepare: impl FnOnce(&Cluster)) -> Stage {
        Stage::start_with(&["resourcegroups/status"], prepare).await
    }

    /// Starts to write the statuses in a cluster that `prepare` has filled, with the right to patch these resources.
    async fn start_with(patched: &[&str], prepare: impl FnOnce(&Cluster)) -> Stage {
        let fleet = Fleet::builder().controllers(false).managers(true).start().await.unwrap();
        let cluster = fleet.cluster("eu").await.unwrap();
        let groups = definition("kpt.dev", "v1alpha1", "ResourceGroup", with_spec_and_status());
        for object in [with_status_subresource(groups), namespace("shop"), deployment("shop", "web", 2)] {
            cluster.apply(object).unwrap();
        }
        let group = "rbac.authorization.k8s.io";
        let rules = json!([
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["kpt.dev"], "resources": patched, "verbs": ["get", "patch"]},
        ]);
        for (kind, field, value) in [
            ("ClusterRole", "rules", rules),
            ("ClusterRoleBinding", "subjects", json!([{"kind": "User", "apiGroup": group, "name": "agent"}])),
        ] {
            let mut object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "agent"},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "agent"}});
            object[field] = value;
            cluster.apply(object).unwrap();
        }
        prepare(&cluster);
        let kubeconfig = tempfile::NamedTempFile::new().unwrap();
        let agent = cluster.add_user("agent", &[]);
        std::fs::write(kubeconfig.path(), cluster.kubeconfig_for(&agent)).unwrap();
        let stage = Stage { _fleet: fleet, cluster, kubeconfig, events: Arc::default() };
        stage.report().await;
        stage
    }

    fn members(&self) -> taffrail_observe::FleetMembers {
        let kubeconfig = Some(self.kubeconfig.path().to_owned());
        members(&ClusterSelection { all_contexts: true, kubeconfig, ..ClusterSelection::default() }).unwrap()
    }

    async fn report(&self) {
        let request = WatchRequest {
            members: self.members(),
            timeout: PATIENCE,
            request_timeout: None,
            asked: ReadQuery::default(),
            rules: Arc::new(Shipped::default()),
            lists: ListStrategy::Auto,
            clock: BootClock::default(),
            light: LightReach::default(),
        };
        let (outbox, messages) = mpsc::channel(1);
        let (replies, inbox) = mpsc::channel(1);
        let events = Arc::clone(&self.events);
        let reporter = Reporter::new(FleetWatcher::start(request).await, outbox, inbox);
        let reporter =
            reporter.writing_group_statuses("eu".to_owned(), move |event| events.lock().unwrap().push(event));
        tokio::spawn(async move {
            // No hub takes the reports.
            let _channels = (messages, replies);
            reporter.run().await;
        });
    }

    fn group(&self, name: &str) -> Value {
        self.cluster.get(VERSION, "ResourceGroup", "shop", name).unwrap()
    }

    /// Waits until the status of an object that a group lists is written so.
    #[track_caller]
    fn until(&self, name: &str, status: &str) -> impl Future<Output = Value> {
        let place = std::panic::Location::caller();
        async move {
            let begun = Instant::now();
            loop {
                let group = self.group(name);
                if group["status"]["resourceStatuses"][0]["status"] == status {
                    return group;
                }
                assert!(begun.elapsed() < PATIENCE, "{place}: {group:#} {:?}", self.events());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Waits until these events were told.
    #[track_caller]
    fn until_told(&self, number: usize) -> impl Future<Output = Vec<GroupStatusEvent>> {
        let place = std::panic::Location::caller();
        async move {
            let begun = Instant::now();
            while self.events().len() < number {
                assert!(begun.elapsed() < PATIENCE, "{place}: {:?}", self.events());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            self.events()
        }
    }

    fn events(&self) -> Vec<GroupStatusEvent> {
        self.events.lock().unwrap().clone()
    }

    fn mend_web(&self) {
        let well = deployment("shop", "web", 2);
        self.cluster.change_by(&well, "kubectl", "", |web| web["status"] = well["status"].clone());
    }

    fn fail_web(&self) {
        self.cluster.change_by(&deployment("shop", "web", 2), "kubectl", "", |web| {
            web["status"]["conditions"][1] = json!({
                "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow"});
        });
    }
}

fn owned(group: &str, manager: &str, is_taken_over: bool) -> GroupStatusEvent {
    GroupStatusEvent::Owned { group: group.to_owned(), manager: manager.to_owned(), is_taken_over }
}

/// The status of kpt's own inventory client.
fn status_of_kpt(word: &str) -> Value {
    json!({"observedGeneration": 1, "resourceStatuses": [{"group": "apps", "kind": "Deployment", "namespace": "shop",
        "name": "web", "status": word, "strategy": "Apply", "actuation": "Succeeded", "reconcile": "Pending"}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_nobody_owns_is_written_once_for_each_transition() {
    let stage = Stage::start(|cluster| cluster.apply(group("inventory", &["web"])).unwrap()).await;
    let first = stage.until("inventory", "Current").await;
    assert_eq!(first["status"]["observedGeneration"], first["metadata"]["generation"]);
    let managers = first["metadata"]["managedFields"].to_string();
    assert!(managers.contains("taffrail-agent"), "{managers}");
    // Neither its own write nor a change of something else is a reason to write again.
    let version = stage.cluster.resource_version();
    stage.cluster.apply(deployment("shop", "other", 2)).unwrap();
    tokio::time::sleep(LONG).await;
    assert_eq!(stage.cluster.resource_version(), version + 1, "{:#}", stage.group("inventory"));

    stage.fail_web();
    let second = stage.until("inventory", "Failed").await;
    let stalled = &second["status"]["conditions"][1];
    assert_eq!((&stalled["status"], &stalled["reason"]), (&json!("True"), &json!("ComponentFailed")));
    assert_eq!(second["status"]["conditions"][0], first["status"]["conditions"][0], "it did not change");
    assert!(stage.events().is_empty(), "{:?}", stage.events());

    // A reader takes none of this for the words of kpt, not even once they are old.
    stage.cluster.change_by(&group("inventory", &[]), "kpt", "", |group| {
        group["spec"]["descriptor"] = json!({"type": "another generation"});
    });
    let request = LookRequest {
        members: stage.members(),
        limits: TimeLimits::each(PATIENCE),
        asked: ReadQuery::default(),
        now: jiff::Timestamp::now(),
        rules: Arc::new(Shipped::default()),
        answered: Arc::new(|_| {}),
    };
    stage.mend_web();
    let (fleet, _) = look(request, NO_EXTRA).await.unwrap();
    let list = fleet.apps(&[]);
    let app = list.apps.iter().find(|app| app.app.name == "inventory").unwrap();
    assert_eq!((app.health.as_str(), app.sync.state.as_str(), &*app.message), ("Current", "Unknown", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_of_another_manager_is_left_alone_and_that_is_told_once() {
    let stage = Stage::start(|cluster| {
        let mut taken = group("taken", &["web"]);
        taken["status"] = status_of_kpt("Unknown");
        cluster.apply_by(taken, "kpt", "kpt").unwrap();
        cluster.apply(group("free", &["web"])).unwrap();
    })
    .await;
    stage.until("free", "Current").await;
    assert_eq!(stage.until_told(1).await, [owned("shop/taken", "kpt", false)]);
    let before = stage.group("taken");
    stage.fail_web();
    stage.until("free", "Failed").await;
    assert_eq!(stage.group("taken"), before);
    assert_eq!(stage.events().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_that_takes_over_keeps_the_status() {
    let stage = Stage::start(|cluster| {
        cluster.apply(group("inventory", &["web"])).unwrap();
        cluster.apply(group("other", &["web"])).unwrap();
    })
    .await;
    stage.until("inventory", "Current").await;
    stage.until("other", "Current").await;
    stage.cluster.change_by(&group("inventory", &[]), "kpt", "kpt", |group| {
        group["status"] = status_of_kpt("Unknown");
    });
    assert_eq!(stage.until_told(1).await, [owned("shop/inventory", "kpt", true)]);
    stage.fail_web();
    stage.until("other", "Failed").await;
    assert_eq!(stage.group("inventory")["status"], status_of_kpt("Unknown"));
    assert_eq!(stage.events().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_follows_the_objects_of_one_below_whose_status_is_another_managers() {
    let stage = Stage::start(|cluster| {
        let mut below = group("below", &["web"]);
        below["status"] = status_of_kpt("Current");
        cluster.apply_by(below, "kpt", "kpt").unwrap();
        let mut above = group("above", &[]);
        above["spec"]["subgroups"] = json!([{"namespace": "shop", "name": "below"}]);
        let mut top = group("top", &[]);
        top["spec"]["subgroups"] = json!([{"namespace": "shop", "name": "above"}]);
        cluster.apply(above).unwrap();
        cluster.apply(top).unwrap();
    })
    .await;
    let until = async |status: &str| {
        let begun = Instant::now();
        let told = |name: &str| stage.group(name)["status"]["subgroupStatuses"][0]["status"].clone();
        while told("above") != status || told("top") != status {
            let told = (stage.group("above"), stage.group("top"));
            assert!(begun.elapsed() < PATIENCE, "{status}: {told:#?} {:?}", stage.events());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    until("Current").await;
    stage.fail_web();
    until("Failed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_controller_of_config_sync_runs_nothing_is_written() {
    let stage = Stage::start(|cluster| {
        cluster.apply(namespace("resource-group-system")).unwrap();
        cluster.apply(deployment("resource-group-system", "resource-group-controller-manager", 2)).unwrap();
        cluster.apply(group("one", &["web"])).unwrap();
        cluster.apply(group("two", &["web"])).unwrap();
    })
    .await;
    assert_eq!(stage.until_told(1).await, [GroupStatusEvent::ControllerRuns]);
    tokio::time::sleep(LONG).await;
    assert_eq!((&stage.group("one")["status"], stage.events().len()), (&Value::Null, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_told_once_and_not_tried_again_for_minutes() {
    let stage = Stage::start_with(&[], |cluster| cluster.apply(group("inventory", &["web"])).unwrap()).await;
    let told = stage.until_told(1).await;
    let [GroupStatusEvent::NotWritten { group, reason }] = &told[..] else { panic!("{told:?}") };
    assert!(group == "shop/inventory" && reason.contains("forbidden"), "{group} {reason}");
    let patches = stage.cluster.fault(Fault::new(Trouble::Hang).verb("patch"));
    stage.fail_web();
    tokio::time::sleep(LONG).await;
    assert_eq!(stage.events().len(), 1, "a write that is not answered would be told: {:?}", stage.events());
    stage.cluster.heal(patches);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_without_an_answer_is_told() {
    let stage = Stage::start(|cluster| {
        cluster.fault(Fault::new(Trouble::Cut(0)).verb("patch").times(1));
        cluster.apply(group("inventory", &["web"])).unwrap();
    })
    .await;
    stage.until("inventory", "Current").await;
    assert!(matches!(&stage.until_told(1).await[..], [GroupStatusEvent::NotWritten { .. }]));
}
