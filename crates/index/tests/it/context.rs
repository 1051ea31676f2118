//! Tests that verdicts which depend on the children of an object or on its kind are kept up to date.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_index::IndexSettings;
use taffrail_object::{GroupKind, Object};
use taffrail_status::{ComputeError, FIRST_STATUS_RULE, ObjectContext, Rules, Status, Taffrail, Verdict};

use crate::world::{NOW, World, uid};

/// Rules in tests: a Pool has the worst status of its children; a Widget without status is in progress for five
/// minutes, if its kind has a status subresource.
struct OfContext;

impl Rules for OfContext {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        match object.kind() {
            "Pool" => {
                let children = context.children.map(|children| children()).unwrap_or_default();
                let broken = children.iter().filter(|child| child["spec"]["broken"] == true).count();
                let status = if broken > 0 { Status::Failed } else { Status::Current };
                Ok(Verdict::new(status, format!("{broken} of {} broken", children.len()), "own"))
            }
            "Widget" => {
                let created: Timestamp = object.text(&["metadata", "creationTimestamp"]).parse().unwrap();
                let is_new = now.duration_since(created) < SignedDuration::from_mins(5);
                let waits = context.has_status_subresource == Some(true) && is_new;
                Ok(match waits && object.at(&["status"]).is_none() {
                    true => Verdict::new(Status::InProgress, "waits for a status", FIRST_STATUS_RULE),
                    false => Verdict::new(Status::Current, "is there", "fallback"),
                })
            }
            _ => Taffrail.judge(object, context, now),
        }
    }

    fn reads_children(&self, group: &str, kind: &str) -> bool {
        (group, kind) == ("example.dev", "Pool")
    }
}

fn world() -> World {
    World::new(IndexSettings { rules: Arc::new(OfContext), ..IndexSettings::default() })
}

fn custom(kind: &str, name: &str, number: u64) -> Value {
    json!({
        "apiVersion": "example.dev/v1", "kind": kind,
        "metadata": {"namespace": "shop", "name": name, "uid": uid(number), "resourceVersion": "5",
            "creationTimestamp": NOW},
    })
}

fn machine(name: &str, number: u64, broken: bool) -> Value {
    let mut machine = custom("Machine", name, number);
    machine["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "example.dev/v1", "kind": "Pool", "name": "pool", "uid": uid(1)}]);
    machine["spec"] = json!({"broken": broken});
    machine["status"] = json!({"phase": "Running"});
    machine
}

/// Publishes the index, and returns the status and message of the object `shop/name`; asserts that they are those of
/// its own verdict.
fn shown(world: &mut World, kind: &str, name: &str) -> (Status, String) {
    let snapshot = world.index.publish(world.now);
    let object = snapshot.find("example.dev", kind, "shop", name).unwrap();
    let own = object.verdict().unwrap();
    assert_eq!(
        (own.status, &*own.message),
        (object.status(), object.message()),
        "no evidence says otherwise"
    );
    (object.status(), object.message().to_owned())
}

#[test]
fn parent_is_judged_again_when_a_child_changes() {
    let mut world = world();
    world.apply(&custom("Pool", "pool", 1));
    assert_eq!(shown(&mut world, "Pool", "pool"), (Status::Current, "0 of 0 broken".to_owned()));
    world.apply(&machine("one", 2, false));
    assert_eq!(shown(&mut world, "Pool", "pool"), (Status::Current, "0 of 1 broken".to_owned()));
    world.apply(&machine("one", 2, true));
    assert_eq!(shown(&mut world, "Pool", "pool"), (Status::Failed, "1 of 1 broken".to_owned()));
    world.apply(&machine("two", 3, true));
    // A change of the parent itself forgets no child.
    let mut pool = custom("Pool", "pool", 1);
    pool["spec"] = json!({"size": 2});
    world.apply(&pool);
    assert_eq!(shown(&mut world, "Pool", "pool"), (Status::Failed, "2 of 2 broken".to_owned()));
    world.remove(&machine("one", 2, true));
    assert_eq!(shown(&mut world, "Pool", "pool"), (Status::Failed, "1 of 1 broken".to_owned()));
    let mut freed = machine("two", 3, true);
    freed["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    world.apply(&freed);
    assert_eq!(shown(&mut world, "Pool", "pool"), (Status::Current, "0 of 0 broken".to_owned()));
}

#[test]
fn children_that_come_before_their_parent_count() {
    let mut world = world();
    world.apply(&machine("one", 2, true));
    world.index.publish(world.now);
    world.apply(&custom("Pool", "pool", 1));
    assert_eq!(shown(&mut world, "Pool", "pool"), (Status::Failed, "1 of 1 broken".to_owned()));
}

#[test]
fn first_status_is_awaited_for_as_long_as_the_rules_say() {
    let mut world = world();
    let widgets = world.kind("example.dev/v1", "Widget", true);
    assert!(!world.index.set_status_subresource(widgets, Some(true)), "there is none to be told again");
    world.apply(&custom("Widget", "web", 1));
    assert_eq!(shown(&mut world, "Widget", "web").0, Status::InProgress);
    world.pass(4 * 60);
    assert_eq!(shown(&mut world, "Widget", "web").0, Status::InProgress);
    assert!(world.index.next_deadline().unwrap() <= world.now + SignedDuration::from_secs(60));
    world.pass(61);
    assert_eq!(shown(&mut world, "Widget", "web").0, Status::Current);
}

#[test]
fn objects_are_told_again_when_a_kind_gets_a_status_subresource() {
    let mut world = world();
    world.apply(&custom("Widget", "web", 1));
    let mut with_status = custom("Widget", "api", 2);
    with_status["status"] = json!({"phase": "Running"});
    world.apply(&with_status);
    assert_eq!(shown(&mut world, "Widget", "web").0, Status::Current);
    let widgets = world.kind("example.dev/v1", "Widget", true);
    assert!(world.index.set_status_subresource(widgets, Some(true)));
    assert!(!world.index.seen(widgets, "shop", "web", "5"), "it is to be told whole");
    assert!(world.index.seen(widgets, "shop", "api", "5"), "a status is there already");
    world.apply(&custom("Widget", "web", 1));
    assert_eq!(shown(&mut world, "Widget", "web").0, Status::InProgress);
}

#[test]
fn bodies_of_taught_kinds_are_kept() {
    let mut world = world();
    let widget = custom("Widget", "web", 1);
    world.apply(&widget);
    let snapshot = world.index.publish(world.now);
    assert!(snapshot.find("example.dev", "Widget", "shop", "web").unwrap().body().is_none());
    let widgets = world.kind("example.dev/v1", "Widget", true);
    let again = world
        .index
        .set_kept_kinds([GroupKind::new("example.dev", "*"), GroupKind::new("other.dev", "Widget")]);
    assert_eq!(again, [widgets]);
    assert!(!world.index.seen(widgets, "shop", "web", "5"));
    world.apply(&widget);
    let snapshot = world.index.publish(world.now);
    assert!(snapshot.find("example.dev", "Widget", "shop", "web").unwrap().body().is_some());
    // A Secret is never kept.
    world.index.set_kept_kinds([GroupKind::new("", "Secret")]);
    world.apply(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "key"},
        "data": {"token": "c2VjcmV0"}}),
    );
    let snapshot = world.index.publish(world.now);
    assert!(snapshot.find("", "Secret", "shop", "key").unwrap().body().is_none());
}

#[test]
fn full_index_keeps_no_value_of_a_secret() {
    let settings = IndexSettings { retention: taffrail_index::Retention::Full, ..IndexSettings::default() };
    let mut world = World::new(settings);
    let copy = r#"{"data":{"token":"c2VjcmV0"}}"#;
    world.apply(&json!({"apiVersion": "v1", "kind": "Secret", "data": {"token": "c2VjcmV0"},
        "stringData": {"token": "c2VjcmV0"}, "metadata": {"namespace": "shop", "name": "key", "labels": {"app": "web"},
        "annotations": {"note": "n", "kubectl.kubernetes.io/last-applied-configuration": copy}}}));
    let snapshot = world.index.publish(world.now);
    let body = snapshot.find("", "Secret", "shop", "key").unwrap().body().unwrap();
    let body: Value = serde_json::from_slice(body).unwrap();
    let kept = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "key",
        "labels": {"app": "web"}, "annotations": {"note": "n"}}});
    assert_eq!(body, kept);
}
