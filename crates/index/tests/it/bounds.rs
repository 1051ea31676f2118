//! Tests of the limits on the cost of judging objects in an index, by the namespace that exceeds them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_index::{IndexSettings, Snapshot};
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};
use taffrail_status::{ClusterState, ComputeError, MAX_MESSAGE, ObjectContext, Rules, Status, Verdict};

use crate::world::{World, uid};

/// Returns `count` objects of a namespace that are not well, each of which names all of them; their UIDs begin at
/// `first`.
fn knots(namespace: &str, first: u64, count: u64) -> Vec<Value> {
    let references: Vec<_> = (0..count)
        .map(|at| json!({"apiVersion": "example.com/v1", "kind": "Knot", "name": format!("k{at}")}))
        .collect();
    let knot = |at: u64| {
        json!({"apiVersion": "example.com/v1", "kind": "Knot",
            "metadata": {"name": format!("k{at}"), "namespace": namespace, "uid": uid(first + at), "resourceVersion": "5"},
            "spec": {"resourceRefs": references},
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": "waits"}]}})
    };
    (0..count).map(knot).collect()
}

fn statuses(snapshot: &Snapshot, namespace: &str) -> Vec<(Status, String)> {
    let inside = snapshot.all().filter(|object| object.namespace() == namespace);
    inside.map(|object| (object.status(), object.message().to_owned())).collect()
}

#[test]
fn references_without_end_turn_only_their_own_namespace_unknown() {
    let mut world = World::new(IndexSettings::default());
    let tenant = knots("tenant", 1_000, 150);
    tenant.iter().chain(&knots("shop", 10, 10)).for_each(|knot| {
        world.apply(knot);
    });
    let snapshot = world.index.publish(world.now);
    let of_tenant = statuses(&snapshot, "tenant");
    let why = "not judged: assessing the objects of namespace tenant takes more than";
    let unjudged = of_tenant.iter().filter(|(status, _)| *status == Status::Unknown);
    assert!(unjudged.clone().all(|(_, message)| message.starts_with(why)), "{of_tenant:?}");
    assert!((80..150).contains(&unjudged.count()), "{of_tenant:?}");
    assert!(statuses(&snapshot, "shop").iter().all(|(status, _)| *status == Status::InProgress));
    assert!(world.index.next_deadline().unwrap() <= world.now + SignedDuration::from_secs(60));

    // What remains is judged when it can be.
    tenant[3..].iter().for_each(|knot| assert!(world.remove(knot)));
    world.pass(61);
    let snapshot = world.index.publish(world.now);
    let of_tenant = statuses(&snapshot, "tenant");
    assert_eq!(of_tenant.len(), 3);
    assert!(of_tenant.iter().all(|(status, _)| *status == Status::InProgress), "{of_tenant:?}");
}

/// Rules with a script that does not end for objects of one namespace.
struct Endless {
    runs: Arc<AtomicUsize>,
}

impl Rules for Endless {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        _: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        let run = || match &*object.namespace() {
            "tenant" => {
                self.runs.fetch_add(1, Ordering::Relaxed);
                let verdict = Verdict::new(Status::Unknown, "stopped after 50 ms", "user/lua");
                (Some(verdict), Duration::from_millis(50), true)
            }
            _ => (Some(Verdict::new(Status::Current, "", "user/lua")), Duration::from_micros(100), false),
        };
        Ok(context.costs.unwrap().run(0, object, context.claimant, run).unwrap())
    }
}

#[test]
fn a_script_without_end_is_stopped_for_its_own_namespace() {
    let runs = Arc::new(AtomicUsize::new(0));
    let rules = Arc::new(Endless { runs: runs.clone() });
    let mut world = World::new(IndexSettings { rules, ..IndexSettings::default() });
    for round in 0..3 {
        let tenant = knots("tenant", 1_000 + round * 100, 60);
        tenant.iter().chain(&knots("shop", 10, 5)).for_each(|knot| {
            world.apply(knot);
        });
        world.pass(1);
        let snapshot = world.index.publish(world.now);
        assert!(statuses(&snapshot, "tenant").iter().all(|(status, _)| *status == Status::Unknown));
        assert!(statuses(&snapshot, "shop").iter().all(|(status, _)| *status == Status::Current));
    }
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

#[test]
fn messages_are_cut_where_they_come_in() {
    let mut world = World::new(IndexSettings::default());
    let mut knot = knots("shop", 10, 1).remove(0);
    knot["status"]["conditions"][0]["message"] = json!("x".repeat(1_000_000));
    world.apply(&knot);
    let snapshot = world.index.publish(world.now);
    let shown = snapshot.find("example.com", "Knot", "shop", "k0").unwrap().message().to_owned();
    assert!(shown.len() <= MAX_MESSAGE && shown.contains("more bytes"), "{} bytes", shown.len());
    let evidence = snapshot.evidence();
    let kept = evidence.get(ObjectKeyRef::new("example.com", "Knot", "shop", "k0")).present().unwrap().object;
    assert!(kept.root().text().unwrap().len() < 10_000);
    assert_eq!(snapshot.assess(&ObjectKey::of(&kept), world.now).message, shown);
}
