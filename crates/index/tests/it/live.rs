//! Tests that statuses change with the batch that contains their cause, or at the time at which they are due.

use serde_json::{Value, json};
use taffrail_index::{IndexSettings, Notice, ScopeState};
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::Status;

use crate::world::{World, object, uid};

fn status(world: &World, name: &str) -> Status {
    let parts: Vec<_> = name.split('/').collect();
    let found = world.index.contents().find(parts[0], parts[1], parts[2], parts[3]);
    found.unwrap_or_else(|| panic!("no {name}")).status()
}

fn deployment(available: u32) -> Value {
    let mut deployment = object("Deployment", "shop", "web", 1, None);
    deployment["spec"] = json!({"replicas": 2});
    deployment["status"] = json!({"replicas": 2, "updatedReplicas": 2, "readyReplicas": available, "availableReplicas": available,
        "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}]});
    deployment
}

fn replica_set(ready: u32) -> Value {
    let mut set = object("ReplicaSet", "shop", "web-a", 2, Some(1));
    set["spec"] = json!({"replicas": 2});
    set["status"] =
        json!({"replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": ready, "availableReplicas": ready});
    set
}

fn crashing(name: &str, number: u64) -> Value {
    let mut pod = object("Pod", "shop", name, number, Some(2));
    pod["spec"] = json!({"nodeName": "n1"});
    pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [{"name": "app", "ready": false, "restartCount": 5,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}}]});
    pod
}

#[test]
fn a_pod_that_fails_changes_its_deployment_in_the_same_batch() {
    let mut world = World::new(IndexSettings::default());
    for it in [deployment(1), replica_set(1), object("Pod", "shop", "web-a-1", 3, Some(2))] {
        world.apply(&it);
    }
    let mut pending = object("Pod", "shop", "web-a-2", 4, Some(2));
    pending["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]});
    world.apply(&pending);
    world.index.publish(world.now);
    assert_eq!(status(&world, "apps/Deployment/shop/web"), Status::InProgress);
    let mut subscription = world.index.subscribe(100);
    subscription.try_next();
    world.apply(&crashing("web-a-2", 4));
    let snapshot = world.index.publish(world.now);
    let Some(Notice::Batch(batch)) = subscription.try_next() else { panic!("no batch") };
    let mut told: Vec<_> = batch
        .changes
        .iter()
        .map(|it| {
            let seen = it.after.as_ref().unwrap();
            (&*it.name, it.before.as_ref().unwrap().status, seen.status, seen.message())
        })
        .collect();
    told.sort();
    let turned = |name| (name, Status::InProgress, Status::Failed, "back-off 5m0s");
    assert_eq!(told, [turned("web"), turned("web-a"), turned("web-a-2")]);
    let deployment = snapshot.find("apps", "Deployment", "shop", "web").unwrap();
    assert_eq!(deployment.cause(), Some(&ObjectKey::new("", "Pod", "shop", "web-a-2")));
    assert_eq!(deployment.history().next().unwrap().status, Status::InProgress);
    // The Pod goes: its Deployment waits again.
    world.remove(&crashing("web-a-2", 4));
    world.index.publish(world.now);
    assert_eq!(status(&world, "apps/Deployment/shop/web"), Status::InProgress);
    assert_eq!(status(&world, "apps/ReplicaSet/shop/web-a"), Status::InProgress);
    world.apply(&replica_set(2));
    world.apply(&deployment_well());
    world.index.publish(world.now);
    assert_eq!(status(&world, "apps/Deployment/shop/web"), Status::Current);
}

fn deployment_well() -> Value {
    deployment(2)
}

#[test]
fn a_node_that_is_lost_fails_the_pods_on_it_that_are_not_well() {
    let mut world = World::new(IndexSettings::default());
    let node = |ready: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": uid(50)},
            "status": {"conditions": [{"type": "Ready", "status": ready, "reason": "r", "message": "m"}]}})
    };
    let mut pod = object("Pod", "shop", "web", 3, None);
    pod["spec"] = json!({"nodeName": "n1"});
    pod["status"]["conditions"][0]["status"] = json!("False");
    world.apply(&pod);
    for (ready, expected) in
        [("True", Status::InProgress), ("Unknown", Status::Failed), ("True", Status::InProgress)]
    {
        world.apply(&node(ready));
        world.index.publish(world.now);
        assert_eq!(status(&world, "/Pod/shop/web"), expected, "{ready}");
    }
    world.apply(&node("Unknown"));
    world.index.publish(world.now);
    world.remove(&node("Unknown"));
    world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/web"), Status::InProgress);
}

#[test]
fn the_scheduler_has_fifteen_seconds() {
    let mut world = World::new(IndexSettings::default());
    let mut pod = object("Pod", "shop", "web-a-1", 3, Some(2));
    pod["metadata"]["creationTimestamp"] = json!(crate::world::NOW);
    pod["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]});
    world.apply(&pod);
    world.apply(&deployment(1));
    world.apply(&replica_set(1));
    world.index.publish(world.now);
    assert_eq!(status(&world, "apps/Deployment/shop/web"), Status::InProgress);
    let deadline = world.index.next_deadline().unwrap();
    assert!((deadline.as_millisecond() - world.now.as_millisecond() - 15_000).abs() <= 2);
    world.now = deadline;
    let mut subscription = world.index.subscribe(10);
    subscription.try_next();
    world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/web-a-1"), Status::Failed);
    assert_eq!(status(&world, "apps/Deployment/shop/web"), Status::Failed);
    let Some(Notice::Batch(batch)) = subscription.try_next() else { panic!("no batch") };
    assert_eq!(batch.changes.len(), 3);
}

#[test]
fn a_clock_that_is_set_forward_and_back_leaves_no_trace() {
    let mut world = World::new(IndexSettings::default());
    let start = world.now;
    let mut pod = object("Pod", "shop", "web-a-1", 3, Some(2));
    pod["metadata"]["creationTimestamp"] = json!(crate::world::NOW);
    pod["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]});
    world.apply(&pod);
    let kind = world.kind_of(&pod);
    world.index.publish(world.now);
    world.pass(3600);
    assert!(world.index.is_due(world.now));
    world.index.set_scope(kind, None, ScopeState::Live, "", world.now);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/web-a-1"), Status::Failed);
    assert!(!world.index.is_due(world.now));

    // Clocks that are kept right go back a little now and then.
    assert!(!world.index.is_due(world.now - jiff::SignedDuration::from_millis(500)));
    world.now = start;
    assert!(world.index.is_due(world.now));
    let snapshot = world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/web-a-1"), Status::InProgress, "its fifteen seconds are not over");
    let pod = snapshot.find("", "Pod", "shop", "web-a-1").unwrap();
    assert!(pod.since().unwrap() <= start, "{:?}", pod.since());
    assert!(pod.history().all(|it| it.since <= start));
    assert!(snapshot.scopes().all(|(.., scope)| scope.since.unwrap() <= start));
    assert!(!world.index.is_due(world.now));
    world.pass(16);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/web-a-1"), Status::Failed);
    // Before there was anything, and where no time is left.
    for now in [jiff::Timestamp::MIN, jiff::Timestamp::MAX, start] {
        world.index.is_due(now);
        world.index.publish(now);
    }
    assert_eq!(status(&world, "/Pod/shop/web-a-1"), Status::InProgress);
}

#[test]
fn what_events_say_counts_as_long_as_it_is_recent() {
    let mut world = World::new(IndexSettings::default());
    let mut pod = object("Pod", "shop", "web", 3, None);
    pod["spec"] = json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]});
    pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]});
    world.apply(&pod);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/web"), Status::InProgress);
    world.apply(&json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "shop", "name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web", "uid": uid(3)},
        "type": "Warning", "reason": "FailedMount", "message": "no such disk", "count": 3,
        "lastTimestamp": world.now.to_string()}));
    world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/web"), Status::Failed);
    // Nobody said it again for ten minutes.
    let mut changes = 0;
    while status(&world, "/Pod/shop/web") == Status::Failed {
        world.now = world.index.next_deadline().unwrap();
        world.index.publish(world.now);
        changes += 1;
        assert!(changes < 10);
    }
    let start: jiff::Timestamp = crate::world::NOW.parse().unwrap();
    assert!((world.now.duration_since(start).as_millis() - 600_000).abs() <= 2);
}

#[test]
fn what_is_missing_is_said_when_that_is_known() {
    let mut world = World::new(IndexSettings::default());
    let mut pod = object("Pod", "shop", "web", 3, None);
    pod["spec"] = json!({"containers": [{"name": "app", "envFrom": [{"secretRef": {"name": "key"}}]}]});
    pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "CreateContainerConfigError", "message": "m"}}}]});
    world.apply(&pod);
    world.index.publish(world.now);
    let message =
        |world: &World| world.index.contents().find("", "Pod", "shop", "web").unwrap().message().to_owned();
    assert_eq!(message(&world), "m");
    let secrets = world.kind("v1", "Secret", true);
    world.index.begin(secrets, None, world.now);
    world.index.end(secrets, None, world.now);
    world.index.publish(world.now);
    assert_eq!(message(&world), "m; Secret shop/key does not exist");
    let secret = object("Secret", "shop", "key", 9, None);
    world.try_apply(&secret, Projection::Metadata).unwrap();
    world.index.publish(world.now);
    assert_eq!(message(&world), "m");
    world.remove(&secret);
    world.index.publish(world.now);
    assert_eq!(message(&world), "m; Secret shop/key does not exist");
    // What nobody may see any more is not said to be missing.
    world.index.set_scope(secrets, None, ScopeState::Forbidden, "no", world.now);
    world.index.publish(world.now);
    assert_eq!(message(&world), "m");
}

#[test]
fn a_claim_waits_for_its_first_consumer() {
    let mut world = World::new(IndexSettings::default());
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "shop", "name": "data", "uid": uid(1)},
        "spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}});
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast", "uid": uid(2)},
        "volumeBindingMode": "WaitForFirstConsumer"});
    world.apply(&claim);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/PersistentVolumeClaim/shop/data"), Status::InProgress);
    world.apply(&class);
    let pods = world.kind("v1", "Pod", true);
    world.index.begin(pods, None, world.now);
    world.index.end(pods, None, world.now);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/PersistentVolumeClaim/shop/data"), Status::Current);
    let mut pod = object("Pod", "shop", "web", 3, None);
    pod["spec"] = json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]});
    world.apply(&pod);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/PersistentVolumeClaim/shop/data"), Status::InProgress);
    world.remove(&pod);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/PersistentVolumeClaim/shop/data"), Status::Current);
}

#[test]
fn a_custom_resource_fails_with_the_workload_behind_one_more() {
    let mut world = World::new(IndexSettings::default());
    let custom = |name: &str, number: u64, owner: Option<u64>| {
        let mut it = object("Widget", "shop", name, number, owner);
        it["apiVersion"] = json!("example.com/v1");
        it["status"] = json!({"replicas": 1});
        it
    };
    world.apply(&custom("whole", 70, None));
    world.apply(&custom("part", 71, Some(70)));
    let mut set = object("StatefulSet", "shop", "db", 2, Some(71));
    set["spec"] = json!({"replicas": 1});
    set["status"] = json!({"replicas": 1});
    world.apply(&set);
    world.index.publish(world.now);
    let whole = "example.com/Widget/shop/whole";
    assert_eq!(status(&world, whole), Status::Current);
    world.apply(&crashing("db-0", 5));
    world.index.publish(world.now);
    assert_eq!(status(&world, whole), Status::Failed);
    world.remove(&crashing("db-0", 5));
    world.index.publish(world.now);
    assert_eq!(status(&world, whole), Status::Current);
}

#[test]
fn a_crash_that_is_ten_minutes_old_is_no_loop_any_more() {
    let mut world = World::new(IndexSettings::default());
    let mut pod = crashing("web", 5);
    let at = |minutes: i64| json!((world.now - jiff::SignedDuration::from_mins(minutes)).to_string());
    let end = json!({"exitCode": 1, "startedAt": at(2), "finishedAt": at(1)});
    pod["status"]["containerStatuses"][0]["state"] = json!({"running": {}});
    pod["status"]["containerStatuses"][0]["lastState"] = json!({"terminated": end});
    world.apply(&pod);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/web"), Status::Failed);
    world.pass(9 * 60 + 1);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/web"), Status::InProgress);
}

#[test]
fn those_that_make_room_hold_a_verdict_back_until_their_grace_ends() {
    let mut world = World::new(IndexSettings::default());
    let mut pod = object("Pod", "shop", "high", 5, None);
    pod["metadata"]["creationTimestamp"] =
        json!((world.now - jiff::SignedDuration::from_mins(5)).to_string());
    pod["spec"] = json!({"priority": 1000});
    pod["status"] = json!({"phase": "Pending", "nominatedNodeName": "n1", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]});
    world.apply(&pod);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/high"), Status::Failed);
    let mut low = object("Pod", "batch", "low", 6, None);
    low["spec"] = json!({"nodeName": "n1", "priority": 999});
    let end = world.now + jiff::SignedDuration::from_secs(30);
    low["metadata"]["deletionTimestamp"] = json!(end.to_string());
    low["status"] = json!({"conditions": [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]});
    world.apply(&low);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/high"), Status::InProgress);
    world.pass(31);
    world.index.publish(world.now);
    assert_eq!(status(&world, "/Pod/shop/high"), Status::Failed);
}

/// Asserts that after random changes, published in batches of random size, the shown status of each object equals a new
/// assessment by all present objects.
#[test]
fn whatever_changes_what_is_shown_is_what_an_assessment_says() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut world = World::new(IndexSettings::default());
    let kinds =
        ["Secret", "Pod", "Node", "PersistentVolumeClaim"].map(|kind| world.kind("v1", kind, kind != "Node"));
    let mut checked = 0;
    for step in 0..1_500_u64 {
        let which = random.usize(..4);
        let it = match random.usize(..12) {
            0 => deployment(random.u32(..3)),
            1 => replica_set(random.u32(..3)),
            2 | 3 => crashing(&format!("web-a-{which}"), 10 + which as u64),
            4 => {
                let mut pod = object("Pod", "shop", &format!("web-a-{which}"), 10 + which as u64, Some(2));
                pod["spec"] = json!({"nodeName": "n1", "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
                    "containers": [{"name": "app", "envFrom": [{"secretRef": {"name": "key"}}]}]});
                pod["metadata"]["creationTimestamp"] = json!(world.now.to_string());
                pod["status"] = json!({"phase": "Pending", "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]});
                pod
            }
            5 => object("Pod", "shop", &format!("web-a-{which}"), 10 + which as u64, Some(2)),
            6 => json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": uid(50)},
                "status": {"conditions": [{"type": "Ready", "status": (["True", "False", "Unknown"][random.usize(..3)])}]}}),
            7 => object("Secret", "shop", "key", 60, None),
            8 => {
                json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": "shop", "name": "data", "uid": uid(61)},
                "spec": {"storageClassName": "fast"}, "status": {"phase": (["Pending", "Bound", "Lost"][random.usize(..3)])}})
            }
            9 => {
                json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast", "uid": uid(62)},
                "volumeBindingMode": (["Immediate", "WaitForFirstConsumer"][random.usize(..2)])})
            }
            10 => {
                json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"namespace": "shop", "name": "b", "uid": uid(63)},
                "spec": {"selector": {"matchLabels": {}}}, "status": {"desiredHealthy": 2, "currentHealthy": random.u32(..3)}})
            }
            _ => {
                json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "shop", "name": format!("e{which}")},
                "involvedObject": {"kind": "Pod", "namespace": "shop", "name": format!("web-a-{which}")},
                "type": "Warning", "reason": (["FailedMount", "Unhealthy"][random.usize(..2)]), "message": format!("m{step}"), "count": 3,
                "lastTimestamp": world.now.to_string()})
            }
        };
        if random.usize(..4) == 0 {
            world.remove(&it);
        } else {
            world.apply(&it);
        }
        if random.usize(..20) == 0 {
            let kind = kinds[random.usize(..kinds.len())];
            if random.bool() {
                world.index.set_scope(kind, None, ScopeState::Forbidden, "no", world.now);
            } else {
                world.index.set_scope(kind, None, ScopeState::Absent, "", world.now);
            }
        }
        if random.usize(..3) == 0 {
            // Time passes, but never past a deadline unseen.
            let later = world.now + jiff::SignedDuration::from_secs(random.i64(0..200));
            while let Some(deadline) = world.index.next_deadline().filter(|deadline| *deadline <= later) {
                world.now = deadline;
                world.index.publish(world.now);
            }
            world.now = later;
            let snapshot = world.index.publish(world.now);
            for object in snapshot.all() {
                let said = snapshot.assess(&object.object_name(), world.now);
                let shown = (object.status(), object.message(), object.unwell_since());
                let since = said
                    .since
                    .map(|since| jiff::Timestamp::from_millisecond(since.as_millisecond()).unwrap());
                assert_eq!(
                    shown,
                    (said.verdict.status, &*said.message, since),
                    "{step}: {}",
                    object.object_name()
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 1_500);
}
