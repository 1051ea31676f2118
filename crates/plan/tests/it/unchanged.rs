//! Objects that need no request, since nobody changed them after they were found equal to their manifests.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_object::{LiveToken, Object, ObjectKey, Projection};
use taffrail_plan::unchanged::{LiveState, UnchangedRules, VERIFY_EVERY, VerifiedObjects};

const SERVER: &str = "v1.36.3";

fn rules(now: Timestamp) -> UnchangedRules<'static> {
    UnchangedRules { server: SERVER, verify_every: VERIFY_EVERY, now }
}

fn start() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn live_object() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
        "metadata": {"namespace": "shop", "name": "web", "uid": "u-1", "resourceVersion": "5"}})
}

fn wanted_object() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
        "metadata": {"namespace": "shop", "name": "web"}})
}

fn key() -> ObjectKey {
    ObjectKey::new("", "ConfigMap", "shop", "web")
}

fn state(verified: &VerifiedObjects, object: &Value) -> LiveState {
    let read = Object::new(object.into()).unwrap();
    let token = LiveToken::of(&read, Projection::Full, verified.seed()).unwrap();
    LiveState { uid: object["metadata"]["uid"].as_str().unwrap().to_owned(), token }
}

fn verified() -> VerifiedObjects {
    let mut verified = VerifiedObjects::default();
    let live = state(&verified, &live_object());
    verified.verify(&key(), &wanted_object(), &["taffrail"], live, &rules(start()));
    verified
}

#[test]
fn an_object_that_nobody_changed_needs_no_request() {
    let verified = verified();
    // It is kept beside the set.
    let kept = serde_json::to_string(&verified).unwrap();
    let verified: VerifiedObjects = serde_json::from_str(&kept).unwrap();
    let live = state(&verified, &live_object());
    let ask = |wanted: &Value, as_what: &[&str], live: &LiveState, rules: &UnchangedRules<'_>| {
        verified.is_unchanged(&key(), wanted, as_what, live, rules)
    };
    let now = start() + SignedDuration::from_hours(23);
    assert!(ask(&wanted_object(), &["taffrail"], &live, &rules(now)));
    let mut status = live_object();
    status["status"] = json!({"seen": true});
    status["metadata"]["resourceVersion"] = json!("6");
    assert!(ask(&wanted_object(), &["taffrail"], &state(&verified, &status), &rules(now)));

    let mut other = wanted_object();
    other["data"]["a"] = json!("c");
    assert!(!ask(&other, &["taffrail"], &live, &rules(now)), "the manifest changed");
    assert!(!ask(&wanted_object(), &["taffrail", "force"], &live, &rules(now)), "applied in another way");
    let reborn = LiveState { uid: "u-2".to_owned(), ..live.clone() };
    assert!(!ask(&wanted_object(), &["taffrail"], &reborn, &rules(now)), "created again");
    let upgraded = UnchangedRules { server: "v1.37.0", ..rules(now) };
    assert!(!ask(&wanted_object(), &["taffrail"], &live, &upgraded), "the server was upgraded");
    let a_day_later = start() + SignedDuration::from_hours(24);
    assert!(!ask(&wanted_object(), &["taffrail"], &live, &rules(a_day_later)), "a day passed");
    let earlier = start() - SignedDuration::from_secs(1);
    assert!(!ask(&wanted_object(), &["taffrail"], &live, &rules(earlier)), "the clock was set back");
}

#[test]
fn a_field_that_moves_to_another_place_is_a_change() {
    let mut before = live_object();
    before["alpha"] = json!("x");
    let mut verified = VerifiedObjects::default();
    let live = state(&verified, &before);
    verified.verify(&key(), &wanted_object(), &[], live, &rules(start()));
    let mut moved = live_object();
    moved["metadata"]["annotations"] = json!({"alpha": "x"});
    let mut finalizers = live_object();
    finalizers["finalizers"] = json!(["example.com/a"]);
    let mut in_metadata = live_object();
    in_metadata["metadata"]["finalizers"] = json!(["example.com/a"]);
    let is_unchanged = |verified: &VerifiedObjects, object: &Value| {
        verified.is_unchanged(&key(), &wanted_object(), &[], &state(verified, object), &rules(start()))
    };
    assert!(is_unchanged(&verified, &before) && !is_unchanged(&verified, &moved));
    let live = state(&verified, &finalizers);
    verified.verify(&key(), &wanted_object(), &[], live, &rules(start()));
    assert!(is_unchanged(&verified, &finalizers) && !is_unchanged(&verified, &in_metadata));
    // What kubectl applied on the client's side decides what an apply removes.
    let mut copied = finalizers.clone();
    copied["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
    assert!(!is_unchanged(&verified, &copied));
}

#[test]
fn what_a_token_leaves_out_is_always_asked() {
    for (path, value) in [
        ("/status", json!({"a": 1})),
        ("/metadata/annotations", json!({"kubectl.kubernetes.io/last-applied-configuration": "x"})),
        ("/metadata/annotations", json!({"control-plane.alpha.kubernetes.io/leader": "x"})),
    ] {
        let mut wanted = wanted_object();
        let (parent, field) = path.rsplit_once('/').unwrap();
        wanted.pointer_mut(parent).unwrap()[field] = value;
        let mut verified = verified();
        let live = state(&verified, &live_object());
        verified.verify(&key(), &wanted, &["taffrail"], live.clone(), &rules(start()));
        assert!(!verified.is_unchanged(&key(), &wanted, &["taffrail"], &live, &rules(start())), "{path}");
    }
}

#[test]
fn forgotten_objects_and_those_of_another_server_are_asked() {
    let is_known = |verified: &VerifiedObjects| {
        let live = state(verified, &live_object());
        verified.is_unchanged(&key(), &wanted_object(), &["taffrail"], &live, &rules(start()))
    };
    let mut forgotten = verified();
    assert!(is_known(&forgotten));
    forgotten.forget(&key());
    assert!(!is_known(&forgotten));
    let mut shrunk = verified();
    shrunk.retain(|key| key.name != "web");
    assert!(!is_known(&shrunk));
    let mut upgraded = verified();
    let other = ObjectKey::new("", "ConfigMap", "shop", "other");
    let live = state(&upgraded, &live_object());
    let server = UnchangedRules { server: "v1.37.0", ..rules(start()) };
    upgraded.verify(&other, &wanted_object(), &["taffrail"], live.clone(), &server);
    assert!(!upgraded.is_unchanged(&key(), &wanted_object(), &["taffrail"], &live, &server));
    assert!(upgraded.is_unchanged(&other, &wanted_object(), &["taffrail"], &live, &server));
}

/// Lists the JSON pointers of all values that a manifest can declare, the empty one left out.
fn declared_pointers(object: &Value) -> Vec<String> {
    fn below(value: &Value, at: &str, found: &mut Vec<String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(members) => {
                members.iter().map(|(key, it)| (key.replace('~', "~0").replace('/', "~1"), it)).collect()
            }
            Value::Array(items) => items.iter().enumerate().map(|(at, it)| (at.to_string(), it)).collect(),
            _ => Vec::new(),
        };
        for (key, child) in children {
            let pointer = format!("{at}/{key}");
            below(child, &pointer, found);
            found.push(pointer);
        }
    }
    let mut found = Vec::new();
    below(object, "", &mut found);
    let declared =
        ["labels", "annotations", "finalizers", "ownerReferences"].map(|it| format!("/metadata/{it}"));
    found.retain(|pointer| {
        let is_of_kind = pointer.starts_with("/apiVersion") || pointer.starts_with("/kind");
        let is_metadata = pointer.starts_with("/metadata");
        !is_of_kind && (!is_metadata || declared.iter().any(|it| pointer.starts_with(it)))
    });
    found
}

#[test]
fn each_of_a_thousand_random_changes_is_seen() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let live = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "shop", "name": "web", "uid": "u-1", "resourceVersion": "5",
            "labels": {"app": "web", "a/b": "c"}, "annotations": {"note": "n", "example.com/x": ""},
            "finalizers": ["example.com/a", "example.com/b"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-2", "controller": true}]},
        "spec": {"replicas": 3, "paused": false, "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [
                {"name": "web", "image": "nginx:1.27", "ports": [{"containerPort": 80}, {"containerPort": 81}],
                    "env": [{"name": "A", "value": ""}, {"name": "B", "value": null}]}]}}},
        "extra": {"empty": {}, "none": [], "number": 1.5}});
    let mut verified = VerifiedObjects::default();
    let before = state(&verified, &live);
    verified.verify(&key(), &wanted_object(), &[], before, &rules(start()));
    for _ in 0..1_000 {
        let mut changed = live.clone();
        for _ in 0..random.usize(1..4) {
            let pointers = declared_pointers(&changed);
            let pointer = &pointers[random.usize(..pointers.len())];
            let (above, name) = pointer.rsplit_once('/').unwrap();
            let name = name.replace("~1", "/").replace("~0", "~");
            let parent = changed.pointer_mut(above).unwrap();
            let value =
                [json!(null), json!("x"), json!(""), json!(0), json!([]), json!({}), json!({"a": [1]})];
            let value = value[random.usize(..value.len())].clone();
            match (parent, random.u8(..3)) {
                (Value::Object(members), 0) => drop(members.remove(&name)),
                // The API server drops members of metadata that it does not know.
                (Value::Object(members), 1) if above != "/metadata" => {
                    drop(members.insert(format!("{name}x"), value))
                }
                (Value::Array(items), 0) => drop(items.remove(name.parse().unwrap())),
                (Value::Array(items), 1) => items.insert(name.parse().unwrap(), value),
                (parent, _) => *parent.pointer_mut(&pointer[pointer.rfind('/').unwrap()..]).unwrap() = value,
            }
        }
        let seen = state(&verified, &changed);
        let is_unchanged = verified.is_unchanged(&key(), &wanted_object(), &[], &seen, &rules(start()));
        assert_eq!(is_unchanged, changed == live, "{changed}");
    }
}

#[test]
fn no_value_of_an_object_is_kept() {
    let mut verified = VerifiedObjects::default();
    let canary = "bm9ib2R5LXNlZXMtdGhpcw==";
    let mut secret = live_object();
    secret["kind"] = json!("Secret");
    secret["data"] = json!({"password": canary});
    let live = state(&verified, &secret);
    verified.verify(&key(), &secret, &["taffrail"], live, &rules(start()));
    let kept = serde_json::to_string(&verified).unwrap();
    assert!(kept.contains("\"version\":\"5\"") && !kept.contains(canary), "{kept}");
    assert!(!format!("{verified:?}").contains(canary));
}
