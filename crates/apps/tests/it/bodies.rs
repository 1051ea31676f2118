//! Metadata that was read must not keep the bodies of evidence from being read, whatever caused the read of
//! metadata.

use serde_json::{Value, json};
use taffrail_apps::{Answer, App, Objects as _, Read, ReadQuery, Rounds, Snapshot, Target, apps, plan_reads};
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::{ActiveRules, ClusterState as _, Presence, Status};

use super::dump::NOW;
use super::reads::{kustomization, object};
use super::server::{Log, Server};

fn owned(api_version: &str, kind: &str, namespace: &str, name: &str, owner: (&str, &str)) -> Value {
    let mut owned = object(api_version, kind, namespace, name);
    owned["metadata"]["uid"] = json!(format!("u-{name}"));
    owned["metadata"]["creationTimestamp"] = json!("2026-03-01T11:55:00Z");
    owned["metadata"]["ownerReferences"] = json!([
        {"kind": owner.0, "name": owner.1, "uid": format!("u-{}", owner.1), "controller": true}]);
    owned
}

/// A CronJob whose runs fit no node: its Job is evidence, and so are its Pods one round later.
fn cron_job() -> Vec<Value> {
    let mut app = kustomization("v1", &["team-c_report_batch_CronJob"]);
    app["metadata"] = json!({"namespace": "team-c", "name": "honest", "generation": 1});
    let mut cron_job = object("batch/v1", "CronJob", "team-c", "report");
    cron_job["metadata"]["uid"] = json!("u-report");
    cron_job["spec"] = json!({"concurrencyPolicy": "Forbid", "schedule": "* * * * *"});
    cron_job["status"] =
        json!({"lastScheduleTime": "2026-03-01T11:55:00Z", "active": [{"kind": "Job", "name": "report-1"}]});
    let mut job = owned("batch/v1", "Job", "team-c", "report-1", ("CronJob", "report"));
    job["spec"] = json!({"backoffLimit": 0});
    job["status"] = json!({"active": 1, "ready": 0, "startTime": "2026-03-01T11:55:00Z"});
    let mut pod = owned("v1", "Pod", "team-c", "report-1-a", ("Job", "report-1"));
    pod["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available",
            "lastTransitionTime": "2026-03-01T11:55:00Z"}]});
    vec![app, cron_job, job, pod]
}

/// A Deployment whose only Pod is on a node that was lost.
fn on_lost_node() -> Vec<Value> {
    let mut app = kustomization("v1", &["team-c_web_apps_Deployment"]);
    app["metadata"] = json!({"namespace": "team-c", "name": "honest", "generation": 1});
    let mut deployment = object("apps/v1", "Deployment", "team-c", "web");
    deployment["metadata"]["uid"] = json!("u-web");
    deployment["spec"] = json!({"replicas": 1});
    deployment["status"] = json!({"replicas": 1, "updatedReplicas": 1});
    let mut set = owned("apps/v1", "ReplicaSet", "team-c", "web-1", ("Deployment", "web"));
    set["spec"] = json!({"replicas": 1});
    set["status"] = json!({"replicas": 1});
    let mut pod = owned("v1", "Pod", "team-c", "web-1-a", ("ReplicaSet", "web-1"));
    pod["spec"] = json!({"nodeName": "one"});
    pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]});
    let mut node = object("v1", "Node", "", "one");
    node["status"] =
        json!({"conditions": [{"type": "Ready", "status": "Unknown", "message": "Kubelet stopped"}]});
    vec![app, deployment, set, pod, node]
}

/// A Deployment of which only an event says why it has no Pods.
fn refused() -> Vec<Value> {
    let mut objects = on_lost_node();
    objects.truncate(3);
    objects[1]["status"] = json!({"unavailableReplicas": 1});
    objects[2]["status"] = json!({"replicas": 0});
    let mut event = object("v1", "Event", "team-c", "web-1.1");
    event["type"] = json!("Warning");
    event["reason"] = json!("FailedCreate");
    event["message"] = json!("pods \"web-1-a\" is forbidden: exceeded quota: q");
    event["lastTimestamp"] = json!("2026-03-01T11:59:00Z");
    event["count"] = json!(5);
    event["involvedObject"] = json!({"kind": "ReplicaSet", "namespace": "team-c", "name": "web-1", "uid": "u-web-1", "apiVersion": "apps/v1"});
    objects.push(event);
    objects
}

/// Returns labelled ConfigMaps of a namespace, each with another object as its controller, and those objects.
fn named(namespace: &str, kind: (&str, &str), number: usize) -> Vec<Value> {
    let (api_version, kind) = kind;
    let of_node = |at: usize| if at == 0 { "one".to_owned() } else { format!("n{at}") };
    let named = (0..number).flat_map(|at| {
        let is_node = kind == "Node";
        let name = if is_node { of_node(at) } else { format!("p{at}") };
        let mut map = owned("v1", "ConfigMap", namespace, &format!("own-{at}"), (kind, &name));
        map["metadata"]["ownerReferences"][0]["apiVersion"] = json!(api_version);
        map["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "x"});
        let mut target = object(api_version, kind, if is_node { "" } else { namespace }, &name);
        target["metadata"]["uid"] = json!(format!("u-{name}"));
        [map].into_iter().chain((!is_node || at > 0).then_some(target))
    });
    named.collect()
}

fn honest(snapshot: &Snapshot) -> App {
    let list = apps(&[snapshot], &ActiveRules::default(), NOW);
    list.apps.into_iter().find(|app| app.app.name == "honest").unwrap()
}

fn verdict(snapshot: &Snapshot) -> (Status, String) {
    let app = honest(snapshot);
    (app.health, app.message.to_string())
}

const KINDS: [(&str, &str); 6] = [
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("v1", "Event"),
    ("v1", "Node"),
    ("v1", "Pod"),
];

/// Controllers of labelled objects are read by metadata, which is not evidence.
#[test]
fn owner_references_of_a_tenant_do_not_hide_causes_of_others() {
    for (world, said) in [
        (cron_job as fn() -> Vec<Value>, "0/3 nodes are available"),
        (on_lost_node, "Kubelet stopped"),
        (refused, "exceeded quota"),
    ] {
        let (quiet, _) = Server::new(world()).read("cluster", &ReadQuery::default());
        let (health, message) = verdict(&quiet);
        assert!(health == Status::Failed && message.contains(said), "{health:?}: {message}");
        for kind in KINDS {
            for (namespaces, number) in [(1, 1), (1, 25), (8, 5)] {
                let attack = (0..namespaces).flat_map(|at| named(&format!("team-{at}"), kind, number));
                let server = Server::new(world().into_iter().chain(attack).collect());
                let (live, log) = server.read("cluster", &ReadQuery::default());
                assert_eq!(
                    verdict(&live),
                    (health, message.clone()),
                    "{namespaces} × {number} {kind:?}: {:?}",
                    log.paths()
                );
            }
        }
    }
}

fn lists_of(log: &Log, kind: &str) -> Vec<String> {
    let is_list = |read: &&Read| read.target == Target::List { labels: None, fields: None };
    log.all().filter(|read| read.kind == kind).filter(is_list).map(Read::path).collect()
}

/// An author in one namespace must not cause lists of all namespaces, which not every user may make.
#[test]
fn many_controllers_named_in_one_namespace_are_listed_there() {
    let paths = |namespaces: &[(&str, usize)]| {
        let objects = namespaces.iter().flat_map(|(name, number)| named(name, ("v1", "Pod"), *number));
        let (_, log) = Server::new(objects.collect()).read("cluster", &ReadQuery::default());
        let singles = log.all().filter(|read| read.kind == "Pod" && matches!(read.target, Target::Object(_)));
        (lists_of(&log, "Pod"), singles.count())
    };
    let listed = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("/api/v1/namespaces/{name}/pods")).collect()
    };
    assert_eq!(paths(&[("team-a", 20)]), (listed(&[]), 20));
    assert_eq!(paths(&[("team-a", 25)]), (listed(&["team-a"]), 0));
    assert_eq!(paths(&[("team-a", 25), ("team-b", 2)]), (listed(&["team-a"]), 2));
    assert_eq!(paths(&[("team-a", 15), ("team-b", 15)]), (listed(&["team-a", "team-b"]), 0));
    // Where many namespaces have such objects one list is less than many.
    let many: Vec<String> = (0..12).map(|at| format!("team-{at}")).collect();
    let many: Vec<(&str, usize)> = many.iter().map(|name| (&**name, 3)).collect();
    assert_eq!(paths(&many), (vec!["/api/v1/pods".to_owned()], 0));
}

/// Plays a reader that keeps following the cluster.
#[test]
fn a_later_failure_is_explained_even_if_its_kind_was_listed_as_metadata() {
    let mut world = on_lost_node();
    let bad = std::mem::replace(
        &mut world[1]["status"],
        json!({
            "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "conditions": [{"type": "Available", "status": "True"}],
        }),
    );
    for kind in KINDS {
        for namespaces in [1, 8] {
            let attack = (0..namespaces).flat_map(|at| named(&format!("team-{at}"), kind, 25));
            let mut server = Server::new(world.iter().cloned().chain(attack).collect());
            let (mut live, log) = server.read("cluster", &ReadQuery::default());
            assert_eq!(honest(&live).health, Status::Current);
            server.objects[1]["status"] = bad.clone();
            let workloads = log.all().filter(|read| read.kind == "Deployment");
            for read in workloads.cloned().collect::<Vec<_>>() {
                live.answer(&read, server.answer(&read));
            }
            let log = server.go_on(&mut live, &ReadQuery::default());
            let expected = (Status::Failed, "Kubelet stopped".to_owned());
            assert_eq!(verdict(&live), expected, "{namespaces} × {kind:?}: {:?}", log.paths());
        }
    }
}

/// A kind whose own status needs no body may still be evidence.
#[test]
fn the_default_storage_class_is_known_even_if_an_app_declares_a_class() {
    let mut class = object("storage.k8s.io/v1", "StorageClass", "", "lazy");
    class["metadata"]["annotations"] = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    class["volumeBindingMode"] = json!("WaitForFirstConsumer");
    let mut app = kustomization("v1", &["team-c_data__PersistentVolumeClaim"]);
    app["metadata"] = json!({"namespace": "team-c", "name": "honest", "generation": 1});
    let mut claim = object("v1", "PersistentVolumeClaim", "team-c", "data");
    claim["metadata"]["creationTimestamp"] = json!("2026-03-01T11:00:00Z");
    claim["status"] = json!({"phase": "Pending"});
    let mut own = kustomization("v1", &["_none_storage.k8s.io_StorageClass"]);
    own["metadata"] = json!({"namespace": "team-a", "name": "own", "generation": 1});
    for objects in [vec![class.clone(), app.clone(), claim.clone()], vec![class, app, claim, own]] {
        let (live, log) = Server::new(objects).read("cluster", &ReadQuery::default());
        assert_eq!(honest(&live).health, Status::Current, "{:?}", log.paths());
    }
}

#[test]
fn leases_are_read_whole_even_if_an_app_declares_one() {
    let mut lease = object("coordination.k8s.io/v1", "Lease", "kube-node-lease", "one");
    lease["spec"] = json!({"renewTime": "2026-03-01T11:00:00.000000Z"});
    let own = kustomization("v1", &["team-a_own_coordination.k8s.io_Lease"]);
    let asked = ReadQuery { liveness: true, ..ReadQuery::default() };
    let (live, log) = Server::new(vec![own, lease]).read("cluster", &asked);
    let key = ObjectKey::new("coordination.k8s.io", "Lease", "kube-node-lease", "one");
    let Presence::Present(found) = live.get(key.as_ref()) else { panic!("{:?}", log.paths()) };
    assert_eq!(found.projection, Projection::Full, "{:?}", log.paths());
}

fn pods(namespace: Option<&str>, projection: Projection) -> Read {
    Read {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        plural: "pods".to_owned(),
        namespace: namespace.map(str::to_owned),
        target: Target::List { labels: None, fields: None },
        projection,
    }
}

/// While a cluster is followed, lists of both projections run at once, and one may fail.
#[test]
fn later_metadata_keeps_the_body_that_was_read() {
    let server = Server::new(cron_job());
    let (kind, team) = (taffrail_object::GroupKind::new("", "Pod"), Some("team-c"));
    let failed = || Answer::Failed { reason: "Timeout".to_owned(), message: "no answer".to_owned() };
    for place in [None, team] {
        let (whole, metadata) = (pods(place, Projection::Full), pods(place, Projection::Metadata));
        let mut live = Snapshot::live("cluster", NOW);
        live.set_kinds(server.catalog());
        live.answer(&metadata, server.answer(&metadata));
        assert!(!live.is_observed(&kind.group, &kind.kind, team));
        live.answer(&whole, server.answer(&whole));
        assert!(live.is_observed(&kind.group, &kind.kind, team));
        live.answer(&metadata, server.answer(&metadata));
        assert!(live.is_observed(&kind.group, &kind.kind, team));
        live.answer(&metadata, failed());
        assert!(live.is_observed(&kind.group, &kind.kind, team));
        live.answer(&whole, failed());
        assert!(!live.is_observed(&kind.group, &kind.kind, team));
        // That the other list is there again does not make it well that this one is not.
        live.retract_read(&metadata);
        live.answer(&metadata, server.answer(&metadata));
        assert!(!live.is_observed(&kind.group, &kind.kind, team));
        assert_eq!(live.errors().len(), 1, "{:?}", live.errors());
        live.retract_read(&whole);
        live.answer(&whole, server.answer(&whole));
        assert!(live.is_observed(&kind.group, &kind.kind, team) && live.errors().is_empty());
    }
}

/// A user who may not list a kind may not list its metadata either: it is requested and reported once.
#[test]
fn a_forbidden_kind_is_not_requested_again_as_metadata() {
    let attack = named("team-a", ("v1", "Pod"), 25);
    let mut server = Server::new(cron_job().into_iter().chain(attack).collect());
    server.forbidden.push("/Pod");
    let (live, log) = server.read("cluster", &ReadQuery::default());
    let asked = lists_of(&log, "Pod");
    assert!(asked.len() <= 2, "{asked:?}");
    assert!(!live.errors().is_empty());
    // That it looks as if it ran is told with what nobody has seen.
    let app = honest(&live);
    let said: Vec<&str> = app.resources.iter().map(|it| &*it.message).collect();
    assert_eq!(
        (app.health, &*said),
        (Status::Current, &["the Pods of the CronJob's active Job were not observed"][..])
    );
    assert!(
        plan_reads(&live, &ReadQuery::default(), &ActiveRules::default(), &mut Rounds::default()).is_empty()
    );
}
