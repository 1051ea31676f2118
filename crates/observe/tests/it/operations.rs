//! Operations: what a plan's digest covers, and what a run of it sends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_api::operations::{
    OperationEvent, OperationId, Outcome, PlanDigest, PlannedChange, Reply, VerbQuestion,
};
use taffrail_api::question::AppSelection;
use taffrail_apps::ReadQuery;
use taffrail_apps::verbs::{Reconcile, Verb};
use taffrail_cluster::{BootClock, ListStrategy};
use taffrail_observe::operations::{VerbPlan, VerbSettings, plan_verb, random_id};
use taffrail_observe::{
    ClusterSelection, FleetMembers, FleetWatcher, LightReach, NO_EXTRA, WatchRequest, members,
};
use taffrail_sim::{Cluster, Fault, Fleet, Trouble};
use taffrail_testkit::objects::{kustomizations, namespace};

use crate::rules::Shipped;

const PATIENCE: Duration = Duration::from_secs(60);

const SETTINGS: VerbSettings = VerbSettings { dry_run: false, waits: false, deadline: PATIENCE };

fn kustomization(spec: Value) -> Value {
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "shop", "name": "web"}, "spec": spec,
        "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn members_of(clusters: &[Cluster]) -> FleetMembers {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), Cluster::kubeconfig_of(clusters)).unwrap();
    let kubeconfig = Some(file.path().to_owned());
    members(&ClusterSelection { kubeconfig, all_contexts: true, ..ClusterSelection::default() }).unwrap()
}

/// Simulated clusters with an app each, and a watcher of them.
struct Watched {
    clusters: Vec<Cluster>,
    _fleet: Fleet,
    follow: FleetWatcher,
}

impl Watched {
    async fn start(names: &[&str]) -> Watched {
        let fleet = Fleet::builder().controllers(false).start().await.unwrap();
        let mut clusters = Vec::new();
        for name in names {
            let cluster = fleet.cluster(name).await.unwrap();
            for object in [kustomizations(), namespace("shop"), kustomization(json!({"path": "one"}))] {
                cluster.apply(object).unwrap();
            }
            clusters.push(cluster);
        }
        let request = WatchRequest {
            members: members_of(&clusters),
            timeout: PATIENCE,
            request_timeout: None,
            asked: ReadQuery::default(),
            rules: Arc::new(Shipped::default()),
            lists: ListStrategy::Pages,
            clock: BootClock::default(),
            light: LightReach::default(),
        };
        let mut follow = FleetWatcher::start(request).await;
        follow.settle(NO_EXTRA).await;
        Watched { clusters, _fleet: fleet, follow }
    }

    fn plan(&mut self, verb: Verb) -> VerbPlan {
        self.plan_of(verb, &[])
    }

    /// Plans a verb for the apps of these names, or for all.
    fn plan_of(&mut self, verb: Verb, names: &[&str]) -> VerbPlan {
        let names = names.iter().map(|name| name.parse().unwrap()).collect();
        let question = VerbQuestion { verb, names, selector: None, apps: AppSelection::default() };
        plan_verb(&question, self.follow.fleet(), jiff::Timestamp::UNIX_EPOCH).unwrap()
    }

    fn digest(&mut self, verb: Verb) -> PlanDigest {
        self.plan(verb).answer.digest
    }

    /// Runs a plan until an event is answered with [`Reply::Stop`]; returns the events as text.
    async fn run(&mut self, plan: &VerbPlan, reply: impl Fn(&str) -> Reply + Sync) -> Vec<String> {
        self.run_with(plan, SETTINGS, reply).await
    }

    async fn run_with(
        &mut self,
        plan: &VerbPlan,
        settings: VerbSettings,
        reply: impl Fn(&str) -> Reply + Sync,
    ) -> Vec<String> {
        let mut events = Vec::new();
        let name = |item: usize| plan.answer.plan.items[item].cluster.clone();
        let take = |event: OperationEvent| {
            let words = match event {
                OperationEvent::Started { id, digest } if digest == plan.answer.digest => {
                    format!("started {id}")
                }
                OperationEvent::Started { .. } => "started with another digest".to_owned(),
                OperationEvent::Begins { item } => format!("{} begins", name(item)),
                OperationEvent::Writing { item, write, .. } => {
                    format!("{} writes {}", name(item), write.body())
                }
                OperationEvent::Written { item, is_stored, .. } => {
                    format!("{} stored {is_stored}", name(item))
                }
                OperationEvent::Waiting { .. }
                | OperationEvent::Refused { .. }
                | OperationEvent::Done
                | OperationEvent::Alive => {
                    return Reply::Continue;
                }
                OperationEvent::Ended { item, outcome } => format!("{} {}", name(item), word(&outcome)),
            };
            let reply = reply(&words);
            events.push(words);
            reply
        };
        let id = OperationId::new("run-1");
        let run = plan.run(&plan.answer.digest, &id, &mut self.follow, NO_EXTRA, settings, take);
        spawnable(run).await.unwrap();
        events
    }
}

/// Checks at compile time that a future can run in a task of its own, as a server needs.
fn spawnable<F: Future + Send>(run: F) -> F {
    run
}

fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Unchanged => "unchanged".to_owned(),
        Outcome::Refused => "refused".to_owned(),
        Outcome::Error { error } => format!("failed: {error}"),
        other => format!("{other:?}"),
    }
}

fn suspended(cluster: &Cluster) -> bool {
    let web = cluster.get("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "shop", "web").unwrap();
    web["spec"]["suspend"] == true
}

#[tokio::test(flavor = "multi_thread")]
async fn digest_covers_clusters_objects_and_fields() {
    let mut one = Watched::start(&["one"]).await;
    let mut several = Watched::start(&["one", "two"]).await;
    let digest = one.digest(Verb::Suspend);
    assert_eq!(one.digest(Verb::Suspend), digest);
    assert_ne!(several.digest(Verb::Suspend), digest);
    let mut changed = one.plan(Verb::Suspend).answer.plan;
    changed.items[0].cluster = "two".to_owned();
    assert_ne!(changed.digest(), digest);
    let mut changed = one.plan(Verb::Suspend).answer.plan;
    changed.items[0].writes[0].object.name = "api".to_owned();
    assert_ne!(changed.digest(), digest);
    let resumed = one.plan(Verb::Resume).answer.plan;
    assert!(resumed.items.iter().all(|item| item.writes.is_empty()), "{resumed:?}");
    assert_ne!(resumed.digest(), digest);
    // The plan is another one once the field has another value.
    one.clusters[0].apply(kustomization(json!({"path": "one", "suspend": false}))).unwrap();
    while one.plan(Verb::Suspend).answer.plan.items[0].writes[0].lines.len() < 3 {
        one.follow.next(Duration::from_secs(1)).await;
    }
    assert_ne!(one.digest(Verb::Suspend), digest);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_is_named_twice_is_planned_once() {
    let mut watched = Watched::start(&["one"]).await;
    let plan = watched.plan_of(Verb::Suspend, &["web", "shop/web"]).answer.plan;
    assert_eq!((plan.items.len(), plan.targets(), plan.refused.len()), (1, 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_with_another_digest_is_not_run() {
    let mut watched = Watched::start(&["one"]).await;
    let plan = watched.plan(Verb::Suspend);
    let id = random_id();
    for digest in [PlanDigest::new(""), watched.digest(Verb::Resume)] {
        let none = |event: OperationEvent| panic!("{event:?}");
        let run = plan.run(&digest, &id, &mut watched.follow, NO_EXTRA, SETTINGS, none).await;
        assert_eq!(
            run.unwrap_err().to_string(),
            "cannot run suspend: the plan has changed since it was confirmed"
        );
    }
    assert!(!suspended(&watched.clusters[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn id_and_digest_are_reported_before_anything_is_sent() {
    let mut watched = Watched::start(&["one"]).await;
    let plan = watched.plan(Verb::Suspend);
    assert_eq!(watched.run(&plan, |_| Reply::Stop).await, ["started run-1"]);
    assert!(!suspended(&watched.clusters[0]));
    let events = watched.run(&plan, |_| Reply::Continue).await;
    let PlannedChange::Patch { patch, .. } = &plan.answer.plan.items[0].writes[0].change else {
        panic!("no patch")
    };
    let version = patch.base().unwrap();
    let patch =
        format!(r#"one writes {{"metadata":{{"resourceVersion":"{version}"}},"spec":{{"suspend":true}}}}"#);
    assert_eq!(events, ["started run-1", "one begins", &patch, "one stored true", "one done"]);
    assert!(suspended(&watched.clusters[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_cluster_has_a_result_of_its_own() {
    let mut watched = Watched::start(&["one", "three", "two"]).await;
    let plan = watched.plan(Verb::Suspend);
    watched.clusters[2].fault(Fault::new(Trouble::ServerError("broken".to_owned())).verb("patch"));
    let skip = |event: &str| if event == "three begins" { Reply::Skip } else { Reply::Continue };
    let events = watched.run(&plan, skip).await;
    let ends = |cluster: &str| {
        let mut ends = events.iter().rev().filter_map(|event| event.strip_prefix(cluster));
        ends.next().unwrap_or_default().trim().to_owned()
    };
    assert_eq!((ends("one"), ends("three")), ("done".to_owned(), "refused".to_owned()));
    assert!(ends("two").starts_with("failed: cannot suspend"), "{events:?}");
    let suspended: Vec<bool> = watched.clusters.iter().map(suspended).collect();
    assert_eq!(suspended, [true, false, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_told_while_another_cluster_has_not_answered() {
    let reconcile = Verb::Reconcile(Reconcile::default());
    for (verb, waits, result) in [(Verb::Suspend, false, "two done"), (reconcile, true, "two Ready")] {
        let mut watched = Watched::start(&["one", "two"]).await;
        let plan = watched.plan(verb);
        watched.clusters[0].fault(Fault::new(Trouble::Hang).verb("patch"));
        let prompt = watched.clusters[1].clone();
        // What a controller of Flux does.
        let handle = |event: &str| {
            if waits && event == "two stored true" {
                let mut web =
                    prompt.get("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "shop", "web").unwrap();
                let requested = &web["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"];
                web["status"]["lastHandledReconcileAt"] = requested.clone();
                prompt.apply(web).unwrap();
            }
            Reply::Continue
        };
        let settings = VerbSettings { dry_run: false, waits, deadline: Duration::from_secs(4) };
        let mut events = watched.run_with(&plan, settings, handle).await;
        let last = events.pop().unwrap();
        let is_late =
            last.starts_with("one failed: cannot ") && last.contains("may or may not have been made");
        assert!(is_late, "{events:?} {last}");
        assert!(events.last().unwrap().starts_with(result), "{events:?}");
    }
}

#[cfg(feature = "lua")]
mod actions {
    use taffrail_observe::operations::{
        ActionPlan, ActionRequest, ActionScripts, ActionSettings, LocateRequest, Located, locate, plan_action,
    };
    use taffrail_observe::{TimeLimits, for_each_cluster};
    use taffrail_status::Trust;

    use super::*;

    fn deployment(replicas: u64) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop", "name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "app", "image": "web:1"}]}}}})
    }

    fn scale() -> ActionRequest {
        ActionRequest {
            scripts: ActionScripts::new(None),
            action: "scale".to_owned(),
            parameters: vec![("replicas".to_owned(), "5".to_owned())],
            allow_create: Vec::new(),
            now: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    const WRITES: ActionSettings = ActionSettings { dry_run: false, time: PATIENCE };

    async fn plan(request: &ActionRequest, clusters: &[Cluster]) -> ActionPlan {
        let members = members_of(clusters).members;
        let locating = |connector| async move {
            let object = "deploy/web".parse().unwrap();
            let namespace = Some("shop".to_owned());
            let trust = Trust::default();
            locate(&connector, &LocateRequest { object, namespace, all_namespaces: false, trust }).await
        };
        let found = for_each_cluster(members, TimeLimits::each(PATIENCE), locating).await.unwrap();
        let objects = found.into_iter().flat_map(|found| {
            let Located { objects, notes } = found.unwrap();
            assert!(notes.is_empty(), "{notes:?}");
            objects
        });
        plan_action(request, objects.collect())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn action_writes_its_plan_or_tells_that_the_object_changed() {
        let fleet = Fleet::builder().controllers(false).start().await.unwrap();
        let cluster = &fleet.cluster("one").await.unwrap();
        [namespace("shop"), deployment(2)].into_iter().for_each(|object| cluster.apply(object).unwrap());
        let clusters = std::slice::from_ref(cluster);
        let request = scale();
        let replicas =
            || cluster.get("apps/v1", "Deployment", "shop", "web").unwrap()["spec"]["replicas"].clone();
        let shown = plan(&request, clusters).await;
        let id = random_id();
        let mut ends = Vec::new();
        let mut take = |event: OperationEvent| {
            if let OperationEvent::Ended { outcome, .. } = event {
                ends.push(word(&outcome));
            }
            Reply::Continue
        };
        let other = PlanDigest::new("0");
        shown.run(&other, &id, &request, WRITES, &mut take).await.unwrap_err();
        assert_eq!(replicas(), 2);
        // The status is another one, the patch is not.
        let mut reported = deployment(2);
        reported["status"] = json!({"replicas": 2});
        cluster.apply(reported).unwrap();
        assert_eq!(plan(&request, clusters).await.shown.digest(), shown.shown.digest());
        shown.run(&shown.shown.digest(), &id, &request, WRITES, &mut take).await.unwrap();
        assert_eq!(replicas(), 5);
        cluster.apply(deployment(3)).unwrap();
        let changed = plan(&request, clusters).await;
        assert_ne!(changed.shown.digest(), shown.shown.digest());
        cluster.apply(deployment(2)).unwrap();
        cluster.apply(deployment(4)).unwrap();
        let digest = changed.shown.digest();
        spawnable(changed.run(&digest, &id, &request, WRITES, &mut take)).await.unwrap();
        assert_eq!(replicas(), 4);
        assert_eq!(ends[0], "done");
        assert!(ends[1].starts_with("failed: Deployment shop/web was changed meanwhile"), "{ends:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn late_cluster_holds_up_no_other_and_is_written_once() {
        let fleet = Fleet::builder().controllers(false).start().await.unwrap();
        let mut clusters = Vec::new();
        for name in ["one", "three", "two"] {
            let cluster = fleet.cluster(name).await.unwrap();
            [namespace("shop"), deployment(2)].into_iter().for_each(|object| cluster.apply(object).unwrap());
            clusters.push(cluster);
        }
        let request = scale();
        let plan = plan(&request, &clusters).await;
        // A second write would be made.
        clusters[0].fault(Fault::new(Trouble::Hang).verb("patch").times(1));
        let mut events = Vec::new();
        let name = |item: usize| &plan.shown.items[item].cluster;
        let take = |event: OperationEvent| {
            match event {
                OperationEvent::Begins { item } => events.push(format!("{} begins", name(item))),
                OperationEvent::Ended { item, outcome: Outcome::Error { error } } if error.is_late => {
                    events.push(format!("{} late: {error}", name(item)));
                }
                OperationEvent::Ended { item, outcome } => {
                    events.push(format!("{} {}", name(item), word(&outcome)));
                }
                _ => {}
            }
            Reply::Continue
        };
        let settings = ActionSettings { dry_run: false, time: Duration::from_secs(2) };
        let id = random_id();
        plan.run(&plan.shown.digest(), &id, &request, settings, take).await.unwrap();
        assert_eq!(events[..3], ["one begins", "three begins", "two begins"]);
        let late = events.pop().unwrap();
        let told = "one late: cannot scale Deployment shop/web: the API server did not confirm the write, \
            and the change may or may not have been made: ";
        assert!(late.starts_with(told), "{events:?} {late}");
        events.sort();
        assert_eq!(events[2..], ["three done", "two begins", "two done"]);
        let replicas = |cluster: &Cluster| {
            cluster.get("apps/v1", "Deployment", "shop", "web").unwrap()["spec"]["replicas"].clone()
        };
        assert_eq!(clusters.iter().map(replicas).collect::<Vec<_>>(), [2, 5, 5]);
    }
}
