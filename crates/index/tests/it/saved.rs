//! Tests of an index that is saved and reopened.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::json;
use taffrail_index::{Index, IndexSettings, Notice, ReopenError, ScopeState, Snapshot, save};
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::Status;

use crate::world::{NOW, World, object, uid};

fn settings() -> IndexSettings {
    IndexSettings {
        annotations: vec!["note".to_owned()],
        keep: Arc::new(|object| object.name() == "kept"),
        mark: Arc::new(|object, add| add(&object.text(&["metadata", "labels", "app"]))),
        ..IndexSettings::default()
    }
}

/// Returns an index with objects, scopes and events of each sort that a saved index contains.
fn world() -> World {
    let mut world = World::new(settings());
    let mut kept = object("ConfigMap", "shop", "kept", 1, None);
    kept["metadata"]["annotations"] = json!({"note": "n"});
    world.apply(&kept);
    world.apply(&object("Deployment", "shop", "web", 2, None));
    world.apply(&object("ReplicaSet", "shop", "web-a", 3, Some(2)));
    let mut pod = object("Pod", "shop", "web-a-1", 4, Some(3));
    pod["metadata"]["resourceVersion"] = json!("odd");
    world.apply(&pod);
    let mut odd = object("Pod", "shop", "bare", 5, None);
    odd["metadata"]["uid"] = json!("u-5");
    world.apply(&odd);
    world.apply(&json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"namespace": "shop", "name": "db", "uid": uid(6)},
        "spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}));
    world.apply(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "shop", "name": "data-db-0", "uid": uid(7)}, "status": {"phase": "Bound"}}));
    world.try_apply(&object("Secret", "shop", "key", 8, None), Projection::Metadata).unwrap();
    world.index.publish(world.now);
    world.pass(30);
    pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]});
    world.apply(&pod);
    world.apply(&json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "shop", "name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-a-1", "uid": uid(4)},
        "type": "Warning", "reason": "Unhealthy", "message": "probe failed", "count": 3,
        "lastTimestamp": world.now.to_string()}));
    for kind in ["Pod", "Secret"] {
        let kind = world.kind("v1", kind, true);
        world.index.set_scope(kind, Some("away"), ScopeState::Forbidden, "no", world.now);
    }
    let pods = world.kind("v1", "Pod", true);
    world.index.begin(pods, None, world.now);
    for (name, version) in [("web-a-1", "odd"), ("bare", "5")] {
        assert!(world.index.seen(pods, "shop", name, version));
    }
    world.index.end(pods, None, world.now);
    world.index.publish(world.now);
    world
}

/// Lists as texts everything that readers can query of a snapshot.
fn shown(snapshot: &Snapshot) -> Vec<String> {
    let mut shown: Vec<_> = snapshot
        .all()
        .map(|it| {
            let tree: Vec<_> = {
                let mut names: Vec<_> = snapshot
                    .tree(&[it.handle()])
                    .map(|node| (node.depth, snapshot.get(node.handle).unwrap().name().to_owned()))
                    .collect();
                names.sort();
                names
            };
            format!(
                "{} {:?} {} {:?} {:?} {:?} {:?} {:?} {:?} {} {} {:?} {:?} {:?} {:?} {:?} {:?}",
                it.object_name(),
                it.uid(),
                it.resource_version(),
                it.created(),
                it.generation(),
                it.labels().collect::<Vec<_>>(),
                it.annotations().collect::<Vec<_>>(),
                it.marks().collect::<Vec<_>>(),
                it.owners().collect::<Vec<_>>(),
                it.digest(),
                it.message(),
                it.verdict(),
                (it.status(), it.cause(), it.since(), it.unwell_since()),
                it.history().collect::<Vec<_>>(),
                it.body(),
                it.projection(),
                tree,
            )
        })
        .collect();
    shown.sort();
    shown
}

#[test]
fn what_is_reopened_shows_what_was_saved_and_is_stale() {
    let mut before = world();
    let snapshot = before.index.publish(before.now);
    let bytes = save(&snapshot, before.now);
    let later = before.now + SignedDuration::from_hours(30);
    let mut index = Index::reopen(&bytes, settings(), later).unwrap();
    let mut subscription = index.subscribe(100);
    let again = index.publish(later);
    let (one, other) = (shown(&again), shown(&snapshot));
    assert_eq!(one.len(), other.len());
    one.iter().zip(&other).for_each(|(one, other)| assert_eq!(one, other));
    assert!(matches!(subscription.try_next(), Some(Notice::Reread { .. })));
    assert_eq!(again.counts(), snapshot.counts());
    let mut marks: Vec<_> = again.marks().collect();
    marks.sort();
    assert_eq!(marks, [("web", 6)]);
    let pods = again.find_kind("", "Pod").unwrap();
    let scope = again.scope(pods, "shop");
    assert_eq!((scope.state, scope.since, scope.is_complete), (ScopeState::Stale, Some(before.now), true));
    assert_eq!(again.scope(pods, "away").state, ScopeState::Forbidden);
    let saved_again = save(&again, later);
    let mut third = Index::reopen(&saved_again, settings(), later).unwrap();
    assert_eq!(shown(&third.publish(later)), shown(&snapshot));
    // A list confirms it: only what differs has to be told.
    index.begin(pods, None, later);
    assert!(index.seen(pods, "shop", "web-a-1", "odd"));
    assert_eq!(index.end(pods, None, later), 1);
    let now = index.publish(later);
    assert_eq!(now.scope(pods, "shop").state, ScopeState::Live);
    assert!(now.find("", "Pod", "shop", "bare").is_none());
    assert!(now.find_uid(now.uid("u-5")).is_none());
}

#[test]
fn what_is_reopened_goes_on_to_be_assessed() {
    let mut before = world();
    let bytes = save(&before.index.publish(before.now), before.now);
    let mut world = World { index: Index::reopen(&bytes, settings(), before.now).unwrap(), now: before.now };
    let message = |world: &World| {
        let pod = world.index.contents().find("", "Pod", "shop", "web-a-1").unwrap();
        (pod.status(), pod.message().to_owned())
    };
    assert_eq!(message(&world), (Status::InProgress, "probe failed".to_owned()));
    let pod = ObjectKey::new("", "Pod", "shop", "web-a-1");
    let said = world.index.contents().assess(&pod, world.now);
    assert_eq!(said, before.index.contents().assess(&pod, world.now));
    let mut crashing = object("Pod", "shop", "web-a-1", 4, Some(3));
    crashing["status"] = json!({"phase": "Running", "containerStatuses": [
        {"name": "a", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]});
    world.apply(&crashing);
    world.index.publish(world.now);
    assert_eq!(message(&world), (Status::Failed, "no such image".to_owned()));
    for object in world.index.contents().all().map(|object| object.object_name()).collect::<Vec<_>>() {
        let kind = world.index.contents().find_kind(&object.group, &object.kind).unwrap();
        assert!(world.index.remove(kind, &object.namespace, &object.name));
    }
    world.index.publish(world.now);
    let sizes = world.index.sizes();
    assert_eq!((sizes.texts, sizes.sets, sizes.verdicts, sizes.extracts), (0, 0, 0, 0), "{sizes:?}");
}

#[test]
fn other_files_and_damaged_ones_are_refused() {
    let mut world = world();
    let bytes = save(&world.index.publish(world.now), world.now);
    let now = NOW.parse().unwrap();
    let reopen = |bytes: &[u8]| Index::reopen(bytes, settings(), now).err();
    assert_eq!(reopen(&bytes), None);
    assert_eq!(reopen(b""), Some(ReopenError::Foreign));
    assert_eq!(reopen(b"{\"apiVersion\":\"v1\"}"), Some(ReopenError::Foreign));
    let mut other = bytes.clone();
    other[8] = 9;
    assert_eq!(reopen(&other), Some(ReopenError::OtherFormat { found: 9 }));
    let others = Index::reopen(&bytes, IndexSettings { revision: 2, ..settings() }, now).err();
    assert_eq!(others, Some(ReopenError::OtherSettings));
    for end in 0..bytes.len() {
        assert!(reopen(&bytes[..end]).is_some(), "cut at {end}");
    }
    for at in 12..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert_eq!(reopen(&damaged), Some(ReopenError::Damaged), "{at}");
    }
    // Damage with the right sum is no way in either: it is refused, or read as something; never worse.
    let mut random = fastrand::Rng::with_seed(1);
    let mut refused = 0;
    for _ in 0..3_000 {
        let mut damaged = bytes.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(20..damaged.len());
            damaged[at] = random.u8(..);
        }
        let sum = xxhash_rust::xxh3::xxh3_64(&damaged[20..]);
        damaged[12..20].copy_from_slice(&sum.to_le_bytes());
        match Index::reopen(&damaged, settings(), now) {
            Ok(mut index) => drop(shown(&index.publish(now))),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn saved_index_has_no_value_of_a_secret() {
    const CANARY: [&str; 2] = ["canary-saved-3f10", "Y2FuYXJ5LXNhdmVkLTNmMTA="];
    for retention in [taffrail_index::Retention::Full, taffrail_index::Retention::default()] {
        let settings = IndexSettings { retention, keep: Arc::new(|_| true), ..settings() };
        let mut world = World::new(settings);
        let copy = json!({"data": {"pw": CANARY[1]}}).to_string();
        let mut secret = object("Secret", "shop", "key", 1, None);
        secret["data"] = json!({"pw": CANARY[1]});
        secret["stringData"] = json!({"pw": CANARY[0]});
        secret["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": copy});
        world.apply(&secret);
        world.apply(&object("Deployment", "shop", "web", 2, None));
        let bytes = save(&world.index.publish(world.now), world.now);
        let holds = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        // Texts are stored as they are, so that a value would be found.
        assert!(holds("web") && holds("key"));
        assert!(!CANARY.iter().any(|canary| holds(canary)));
    }
}
