//! Tests of scopes, repeated lists, subscriptions and events.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_index::{
    Aspects, Batch, EVENTS_OF_A_CLUSTER, EVENTS_OF_AN_OBJECT, IndexSettings, Notice, ScopeState, Snapshot,
    Subscription,
};
use taffrail_object::{ObjectDigest, ObjectKeyRef};
use taffrail_status::{ClusterState, Presence, Status};

use crate::world::{World, names, object, uid};

#[test]
fn a_list_made_again_forgets_what_it_does_not_name() {
    let mut world = World::new(IndexSettings::default());
    let pods: Vec<_> =
        (0..4).map(|number| object("Pod", "shop", &format!("p{number}"), number + 1, None)).collect();
    let kind = world.kind_of(&pods[0]);
    for pod in &pods {
        world.apply(pod);
    }
    world.apply(&object("Service", "shop", "web", 9, None));
    world.pass(10);
    world.index.begin(kind, None, world.now);
    assert_eq!(world.index.contents().scope(kind, "shop").state, ScopeState::CatchingUp);
    assert!(world.index.seen(kind, "shop", "p0", "5"));
    // Not in that version, not there: it must be told whole.
    assert!(!world.index.seen(kind, "shop", "p1", "6") && !world.index.seen(kind, "shop", "p7", "5"));
    world.apply(&pods[2]);
    // An event of a watch that goes on meanwhile counts as well.
    world.apply(&object("Pod", "shop", "p8", 18, None));
    assert_eq!(world.index.contents().len(), 6);
    assert_eq!(world.index.end(kind, None, world.now), 2);
    assert_eq!(names(world.index.contents().of_kind(kind, None)), ["p0", "p2", "p8"]);
    let scope = world.index.contents().scope(kind, "shop");
    assert_eq!((scope.state, scope.since, scope.is_complete), (ScopeState::Live, Some(world.now), true));
    // Without a beginning there is no end.
    assert_eq!((world.index.end(kind, None, world.now), world.index.contents().len()), (0, 4));
}

#[test]
fn namespaces_with_scopes_of_their_own_are_kept_apart() {
    let mut world = World::new(IndexSettings::default());
    for (number, namespace) in ["a", "b"].into_iter().enumerate() {
        world.apply(&object("Pod", namespace, "p", number as u64 + 1, None));
    }
    let kind = world.kind("v1", "Pod", true);
    world.index.set_scope(kind, Some("a"), ScopeState::Forbidden, "pods is forbidden", world.now);
    world.index.begin(kind, None, world.now);
    assert_eq!(world.index.end(kind, None, world.now), 1);
    assert_eq!(names(world.index.contents().all()), ["p"]);
    let contents = world.index.contents();
    assert_eq!(contents.scope(kind, "a").state, ScopeState::Forbidden);
    assert_eq!(contents.scope(kind, "b").state, ScopeState::Live);
    assert_eq!(contents.scopes().count(), 2);
    let evidence = contents.evidence();
    assert!(evidence.is_observed("", "Pod", Some("b")) && !evidence.is_observed("", "Pod", Some("a")));
    assert!(matches!(evidence.get(ObjectKeyRef::new("", "Pod", "b", "x")), Presence::Absent));
    assert!(
        matches!(evidence.get(ObjectKeyRef::new("", "Pod", "a", "x")), Presence::Unobserved(why) if why == "pods is forbidden")
    );
    assert!(matches!(evidence.get(ObjectKeyRef::new("", "Pod", "a", "p")), Presence::Present(_)));
    world.index.begin(kind, Some("a"), world.now);
    assert_eq!(world.index.end(kind, Some("a"), world.now), 1);
    assert!(world.index.contents().is_empty());
    world.apply(&object("Pod", "a", "p", 1, None));
    assert_eq!(world.index.forget(kind, Some("a"), world.now), 1);
    assert_eq!(world.index.contents().scopes().count(), 1);
}

#[test]
fn since_when_a_scope_is_as_it_is_does_not_move_with_reasons() {
    let mut world = World::new(IndexSettings::default());
    let kind = world.kind("v1", "Pod", true);
    let began = world.now;
    world.index.set_scope(kind, None, ScopeState::Broken, "500", world.now);
    world.pass(60);
    world.index.set_scope(kind, None, ScopeState::Broken, "503", world.now);
    let scope = world.index.contents().scope(kind, "any");
    assert_eq!((scope.since, &*scope.reason), (Some(began), "503"));
}

fn batch(subscription: &mut Subscription) -> std::sync::Arc<Batch> {
    match subscription.try_next() {
        Some(Notice::Batch(batch)) => batch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn batches_tell_what_was_and_what_is() {
    let mut world = World::new(IndexSettings { assess: false, ..IndexSettings::default() });
    let mut subscription = world.index.subscribe(100);
    assert!(matches!(subscription.try_next(), Some(Notice::Reread { sequence: 0 })));
    let mut pod = object("Pod", "shop", "web", 1, None);
    let handle = world.apply(&pod).handle().unwrap();
    assert!(subscription.try_next().is_none());
    let sequence = world.index.publish(world.now).sequence();
    let told = batch(&mut subscription);
    let change = &told.changes[0];
    assert_eq!((told.sequence, told.changes.len(), change.handle), (sequence, 1, handle));
    assert_eq!((&*change.namespace, &*change.name), ("shop", "web"));
    assert!(change.before.is_none() && change.after.as_ref().unwrap().status == Status::Current);
    // Nothing happens: nothing is told, and the number stays.
    pod["metadata"]["resourceVersion"] = json!("9");
    world.apply(&pod);
    assert_eq!(world.index.publish(world.now).sequence(), sequence);
    assert!(subscription.try_next().is_none());
    // Many changes between two snapshots are one.
    pod["status"]["conditions"][0]["status"] = json!("False");
    world.apply(&pod);
    pod["spec"] = json!({"nodeName": "a"});
    world.apply(&pod);
    world.index.publish(world.now);
    let told = batch(&mut subscription);
    let change = &told.changes[0];
    assert_eq!(told.changes.len(), 1);
    assert_eq!(change.before.as_ref().unwrap().status, Status::Current);
    assert_eq!(change.after.as_ref().unwrap().message(), "Pod is running but is not Ready");
    assert!(change.aspects.has(Aspects::STATUS) && change.aspects.has(Aspects::DIGEST));
    // One that is replaced goes and comes; one that came and went was never there.
    let mut again = pod.clone();
    again["metadata"]["uid"] = json!(uid(2));
    world.apply(&again);
    let passing = object("Pod", "shop", "passing", 3, None);
    world.apply(&passing);
    world.remove(&passing);
    world.index.publish(world.now);
    let told = batch(&mut subscription);
    let shown: Vec<_> = told.changes.iter().map(|it| (it.before.is_some(), it.after.is_some())).collect();
    assert_eq!(shown, [(true, false), (false, true)]);
    assert_ne!(told.changes[0].handle, told.changes[1].handle);
}

/// The state that a subscriber derives from the batches alone.
#[derive(Default)]
struct Mirror {
    objects: BTreeMap<String, (Status, ObjectDigest)>,
    sequence: u64,
    rereads: usize,
}

impl Mirror {
    fn follow(&mut self, subscription: &mut Subscription, newest: &Snapshot) {
        while let Some(notice) = subscription.try_next() {
            match notice {
                Notice::Reread { sequence } => {
                    assert!(newest.sequence() >= sequence);
                    self.objects = contents(newest);
                    (self.sequence, self.rereads) = (newest.sequence(), self.rereads + 1);
                }
                Notice::Batch(batch) if batch.sequence <= self.sequence => {}
                Notice::Batch(batch) => {
                    assert_eq!(batch.sequence, self.sequence + 1, "no batch is missing");
                    self.sequence = batch.sequence;
                    for change in &batch.changes {
                        let key = format!("{}/{}", change.namespace, change.name);
                        let before = change.before.as_ref().map(|seen| (seen.status, seen.digest));
                        assert_eq!(self.objects.get(&key).copied(), before, "{key}");
                        match &change.after {
                            Some(seen) => drop(self.objects.insert(key, (seen.status, seen.digest))),
                            None => drop(self.objects.remove(&key)),
                        }
                    }
                }
            }
        }
        assert_eq!(self.objects, contents(newest));
    }
}

fn contents(snapshot: &Snapshot) -> BTreeMap<String, (Status, ObjectDigest)> {
    let key = |it: &taffrail_index::ObjectRef<'_>| format!("{}/{}", it.namespace(), it.name());
    snapshot.all().map(|object| (key(&object), (object.status(), object.digest()))).collect()
}

#[test]
fn who_follows_batches_knows_what_the_snapshot_shows_however_slow_he_is() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut world = World::new(IndexSettings::default());
    let mut subscriptions: Vec<_> =
        [10_000, 40, 3].map(|bound| (world.index.subscribe(bound), Mirror::default())).into();
    for step in 0..2_000_u64 {
        let name = format!("p{}", random.usize(..30));
        if random.usize(..4) == 0 {
            world.remove(&object("Pod", "shop", &name, 0, None));
        } else {
            let mut pod = object("Pod", "shop", &name, step + 1, None);
            if let Some(own) = world.index.contents().find("", "Pod", "shop", &name).filter(|_| random.bool())
            {
                pod["metadata"]["uid"] = json!(own.uid().to_string());
            }
            pod["spec"] = json!({"x": random.usize(..3)});
            if random.bool() {
                pod["status"] = json!({"phase": "Pending"});
            }
            world.apply(&pod);
        }
        if random.usize(..5) == 0 {
            let snapshot = world.index.publish(world.now);
            for (at, (subscription, mirror)) in subscriptions.iter_mut().enumerate() {
                if random.usize(..(at * 20 + 1)) == 0 {
                    mirror.follow(subscription, &snapshot);
                }
            }
        }
    }
    let snapshot = world.index.publish(world.now);
    for (subscription, mirror) in &mut subscriptions {
        mirror.follow(subscription, &snapshot);
    }
    assert_eq!(subscriptions[0].1.rereads, 1);
    assert!(subscriptions[2].1.rereads > 5);
}

#[test]
fn a_subscription_wakes_and_ends() {
    use futures::StreamExt as _;
    use futures::task::{ArcWake, waker};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll};

    struct Count(AtomicUsize);
    impl ArcWake for Count {
        fn wake_by_ref(own: &Arc<Count>) {
            own.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = waker(Arc::clone(&count));
    let mut context = Context::from_waker(&waker);
    let mut world = World::new(IndexSettings::default());
    let mut subscription = world.index.subscribe(10);
    assert!(matches!(subscription.poll_next_unpin(&mut context), Poll::Ready(Some(Notice::Reread { .. }))));
    assert!(subscription.poll_next_unpin(&mut context).is_pending());
    world.apply(&object("Pod", "shop", "web", 1, None));
    world.index.publish(world.now);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(matches!(subscription.poll_next_unpin(&mut context), Poll::Ready(Some(Notice::Batch(_)))));
    assert!(subscription.poll_next_unpin(&mut context).is_pending());
    drop(world);
    assert_eq!(count.0.load(Ordering::SeqCst), 2);
    assert!(matches!(subscription.poll_next_unpin(&mut context), Poll::Ready(None)));
}

#[test]
fn four_statuses_are_remembered_with_their_times() {
    let mut world = World::new(IndexSettings::default());
    let phases = ["Pending", "Running", "Pending", "Succeeded", "Running", "Failed", "Running"];
    let mut handle = None;
    for phase in phases {
        let mut pod = object("Pod", "shop", "web", 1, Some(5));
        pod["status"] = json!({"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]});
        handle = world.apply(&pod).handle();
        world.index.publish(world.now);
        world.pass(10);
    }
    let start: Timestamp = crate::world::NOW.parse().unwrap();
    let at = |step: i64| start + SignedDuration::from_secs(10 * step);
    let object = world.index.contents().get(handle.unwrap()).unwrap();
    // Succeeded, Running and Failed are all Current to an owner.
    assert_eq!((object.status(), object.since()), (Status::Current, Some(at(3))));
    let history: Vec<_> = object.history().map(|it| (it.status, it.since)).collect();
    let (current, in_progress) = (Status::Current, Status::InProgress);
    assert_eq!(history, [(in_progress, at(2)), (current, at(1)), (in_progress, at(0))]);
}

fn event(number: u64, about: &Value, kind: &str, reason: &str, last: Timestamp) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "shop", "name": format!("e{number}")},
        "involvedObject": {"kind": about["kind"], "namespace": about["metadata"]["namespace"],
            "name": about["metadata"]["name"], "uid": about["metadata"]["uid"]},
        "type": kind, "reason": reason, "message": format!("said {number}"), "count": 2, "lastTimestamp": last.to_string()})
}

#[test]
fn warnings_are_kept_within_bounds() {
    let mut world = World::new(IndexSettings::default());
    let mut pod = object("Pod", "shop", "web", 1, None);
    pod["status"] = json!({"phase": "Pending"});
    world.apply(&pod);
    let messages = |world: &World| {
        let evidence = world.index.contents().evidence();
        let Presence::Present(pod) = evidence.get(ObjectKeyRef::new("", "Pod", "shop", "web")) else {
            panic!("no Pod")
        };
        let mut said: Vec<_> =
            evidence.events(&pod.object).into_iter().map(|event| event.message.into_owned()).collect();
        said.sort();
        said
    };
    let start = world.now;
    for number in 0..20 {
        world.apply(&event(
            number,
            &pod,
            "Warning",
            "Unhealthy",
            start + SignedDuration::from_secs(number as i64),
        ));
    }
    assert_eq!(world.index.sizes().events, EVENTS_OF_AN_OBJECT);
    assert_eq!(messages(&world).first().unwrap(), "said 12");
    // The same event again is one; what is no warning is not kept, unless it says what to expect; nor is what is over.
    world.apply(&event(19, &pod, "Warning", "Unhealthy", start));
    world.apply(&event(30, &pod, "Normal", "Pulled", start));
    world.apply(&event(31, &pod, "Warning", "Old", start - SignedDuration::from_mins(61)));
    assert_eq!(world.index.sizes().events, EVENTS_OF_AN_OBJECT);
    world.apply(&event(32, &pod, "Normal", "TriggeredScaleUp", start + SignedDuration::from_mins(1)));
    assert!(messages(&world).contains(&"said 32".to_owned()));
    // An event about an earlier object of the same name is not about this one.
    let other = object("Pod", "shop", "web", 2, None);
    world.apply(&event(33, &other, "Warning", "Unhealthy", start));
    assert!(!messages(&world).contains(&"said 33".to_owned()));
    world.remove(&event(32, &pod, "Normal", "TriggeredScaleUp", start));
    assert!(!messages(&world).contains(&"said 32".to_owned()));
    world.pass(3_600 + 15);
    world.index.publish(world.now);
    assert_eq!(messages(&world), ["said 15", "said 16", "said 17", "said 18"]);
    world.pass(60);
    world.index.publish(world.now);
    assert_eq!((messages(&world).len(), world.index.sizes().events), (0, 0));
    for number in 0..EVENTS_OF_A_CLUSTER as u64 + 500 {
        let about = object("Pod", "shop", &format!("p{number}"), number + 10, None);
        world.apply(&event(number, &about, "Warning", "BackOff", world.now));
    }
    assert_eq!(world.index.sizes().events, EVENTS_OF_A_CLUSTER);
}

#[test]
fn subscribers_learn_of_events_that_are_deleted_or_grow_too_old() {
    let mut world = World::new(IndexSettings::default());
    let pod = object("Pod", "shop", "web", 1, None);
    world.apply(&pod);
    let events = [1, 2].map(|number| event(number, &pod, "Warning", "Unhealthy", world.now));
    for event in &events {
        world.apply(event);
    }
    world.index.publish(world.now);
    let mut subscription = world.index.subscribe(100);
    assert!(matches!(subscription.try_next(), Some(Notice::Reread { .. })));
    let mut is_told = |world: &mut World| {
        world.index.publish(world.now);
        match subscription.try_next() {
            Some(Notice::Batch(told)) => {
                told.changes.iter().any(|change| change.aspects.has(Aspects::EVENTS))
            }
            _ => false,
        }
    };
    assert!(!is_told(&mut world));
    world.remove(&events[0]);
    assert!(is_told(&mut world));
    world.pass(3_601);
    assert!(is_told(&mut world));
    assert_eq!(world.index.sizes().events, 0);
}

#[test]
fn an_event_of_both_groups_is_one() {
    let mut world = World::new(IndexSettings::default());
    let pod = object("Pod", "shop", "web", 1, None);
    world.apply(&pod);
    let one = event(1, &pod, "Warning", "Unhealthy", world.now);
    world.apply(&one);
    let mut other = one.clone();
    other["apiVersion"] = json!("events.k8s.io/v1");
    world.apply(&other);
    assert_eq!(world.index.sizes().events, 1);
}
