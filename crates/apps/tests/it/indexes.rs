//! The indexes of a snapshot follow what changes: each answers as one that was built from the objects at that moment.

use serde_json::{Value, json};
use taffrail_apps::Snapshot;
use taffrail_object::json::OwnedDocument;
use taffrail_object::{LabelSelector, Object, ObjectKey, Projection};
use taffrail_status::{ClusterState, Listing};

use crate::random::Random;

const NAMESPACES: [&str; 3] = ["default", "shop", "web"];
const UIDS: [&str; 4] = ["u1", "u2", "u3", "u4"];
const LABELS: [(&str, &str); 4] = [("app", "a"), ("app", "b"), ("tier", "x"), ("tier", "y")];

fn object(random: &mut Random) -> Value {
    let namespace = *random.pick(&NAMESPACES);
    let number = random.below(4);
    let (label, value) = *random.pick(&LABELS);
    let metadata = |name: String| json!({"name": name, "namespace": namespace, "uid": format!("own-{number}"), "labels": {label: value}});
    let mut object = match random.below(7) {
        0 | 1 => {
            let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata(format!("p{number}")),
                "spec": {"nodeName": format!("n{}", random.below(2))}});
            if random.below(2) == 0 {
                let claim = format!("c{}", random.below(2));
                pod["spec"]["volumes"] =
                    json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
            }
            if random.below(3) == 0 {
                pod["metadata"]["deletionTimestamp"] = json!("2026-03-01T00:00:00Z");
            }
            pod
        }
        2 => {
            let (version, group) =
                *random.pick(&[("v1", "involvedObject"), ("events.k8s.io/v1", "regarding")]);
            // Both groups serve the same event.
            let about = json!({"kind": "Pod", "namespace": namespace, "name": format!("p{number}")});
            json!({"apiVersion": version, "kind": "Event", "metadata": metadata(format!("e{number}")),
                "reason": "r", "message": "m", group: about})
        }
        3 => {
            let mut wanted = serde_json::Map::new();
            for _ in 0..random.below(3) {
                let (label, value) = *random.pick(&LABELS);
                wanted.insert(label.to_owned(), json!(value));
            }
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": metadata(format!("b{number}")), "spec": {"selector": {"matchLabels": wanted}}})
        }
        4 => json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("d{number}")},
            "spec": {"group": "g", "names": {"kind": format!("K{}", random.below(2))}}}),
        5 => {
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata(format!("r{number}")),
            "status": {"replicas": random.below(2)}})
        }
        _ => json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(format!("m{number}"))}),
    };
    let owners: Vec<Value> = (0..random.below(3))
        .map(|at| {
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r0", "uid": random.pick(&UIDS),
                "controller": at == 0 && random.below(2) == 0})
        })
        .collect();
    object["metadata"]["ownerReferences"] = json!(owners);
    object
}

fn keys(listing: Listing<'_>) -> Vec<String> {
    listing.map(|observed| observed.key.to_string()).collect()
}

/// All that the indexes answer, in words.
fn answers(snapshot: &Snapshot) -> Vec<(String, Vec<String>)> {
    let mut answers = Vec::new();
    let places = || NAMESPACES.into_iter().map(Some).chain([None]);
    for (uid, place) in UIDS.into_iter().flat_map(|uid| places().map(move |place| (uid, place))) {
        answers.push((format!("owned {uid} {place:?}"), keys(snapshot.owned(uid, place))));
        answers.push((format!("dependents {uid} {place:?}"), keys(snapshot.dependents(uid, place))));
    }
    for namespace in NAMESPACES {
        for claim in ["c0", "c1"] {
            answers.push((format!("users {namespace} {claim}"), keys(snapshot.users(namespace, claim))));
        }
        answers.push((format!("knows {namespace}"), vec![snapshot.knows_users(namespace).to_string()]));
        answers.push((format!("in {namespace}"), keys(snapshot.in_namespace(namespace))));
        for (label, value) in LABELS {
            let labels = json!({label: value});
            let budgets = snapshot.budgets(namespace, Some((&labels).into()));
            // At least those that select are listed.
            let selects = budgets.filter(|budget| {
                let selector = LabelSelector::of_object(budget.object.at(&["spec", "selector"]));
                selector.matches(|key| (key == label).then(|| value.into()))
            });
            let mut selecting = keys(Box::new(selects));
            selecting.sort();
            answers.push((format!("budgets {namespace} {label}={value}"), selecting));
        }
        for number in 0..4 {
            let pod = json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"namespace": namespace, "name": format!("p{number}")}});
            let Ok(pod) = Object::new((&pod).into()) else { panic!("a Pod is an object") };
            let number_of_events = snapshot.events(&pod).len();
            answers.push((format!("events {namespace} {number}"), vec![number_of_events.to_string()]));
            let about = snapshot.events_about("Pod", namespace, &format!("p{number}"));
            answers.push((format!("about {namespace} {number}"), keys(about)));
        }
    }
    for node in ["n0", "n1", ""] {
        answers.push((format!("leaving {node}"), keys(snapshot.terminating_on(node))));
    }
    for kind in ["K0", "K1"] {
        let definition = snapshot.definition("g", kind).map(|it| it.key.to_string());
        answers.push((format!("definition {kind}"), definition.into_iter().collect()));
    }
    answers
}

fn insert(snapshot: &mut Snapshot, object: &Value, projection: Projection) {
    let document = OwnedDocument::parse(object.to_string().into_bytes());
    let inserted = document.map(|document| snapshot.insert(document, projection));
    assert!(matches!(inserted, Ok(Ok(()))), "{object}");
}

#[test]
fn indexes_follow_each_change() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut followed = Snapshot::live("prod", jiff::Timestamp::UNIX_EPOCH);
        let mut objects: Vec<(ObjectKey, Value)> = Vec::new();
        answers(&followed);
        for step in 0..200 {
            if random.below(3) == 0 && !objects.is_empty() {
                let (gone, _) = objects.swap_remove(random.below(objects.len()));
                followed.remove(&gone);
            } else {
                let object = object(&mut random);
                let Ok(parsed) = Object::new((&object).into()) else { panic!("{object}") };
                let key = ObjectKey::of(&parsed);
                insert(&mut followed, &object, Projection::Full);
                objects.retain(|(known, _)| *known != key);
                objects.push((key, object));
            }
            if step % 10 == 0 {
                let mut fresh = Snapshot::live("prod", jiff::Timestamp::UNIX_EPOCH);
                objects.iter().for_each(|(_, object)| insert(&mut fresh, object, Projection::Full));
                assert_eq!(answers(&followed), answers(&fresh), "seed {seed}, step {step}");
                assert_eq!(followed.size(), fresh.size(), "seed {seed}, step {step}");
            }
        }
    }
}

#[test]
fn a_batch_tells_what_changed_since_the_last_one() {
    let mut snapshot = Snapshot::live("prod", jiff::Timestamp::UNIX_EPOCH);
    let map = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "m"},
            "data": {"k": value}})
    };
    insert(&mut snapshot, &map("a"), Projection::Full);
    assert!(!snapshot.take_changes().is_empty(), "at first everything is new");
    assert!(snapshot.take_changes().is_empty());
    insert(&mut snapshot, &map("b"), Projection::Full);
    assert!(!snapshot.take_changes().is_empty());
    insert(&mut snapshot, &map("c"), Projection::Full);
    insert(&mut snapshot, &map("b"), Projection::Full);
    assert!(snapshot.take_changes().is_empty(), "it is as it was");
    let key = ObjectKey::new("", "ConfigMap", "shop", "m");
    snapshot.remove(&key);
    insert(&mut snapshot, &map("b"), Projection::Full);
    assert!(snapshot.take_changes().is_empty(), "it went and came back");
    snapshot.forget_body(&key);
    assert!(!snapshot.take_changes().is_empty());
}

#[test]
fn dependents_stay_in_order_while_others_come_and_go() {
    let dependent = |kind: &str, namespace: &str, name: &str| {
        // It names the other owner twice.
        let owners = json!([{"uid": "u1", "controller": true}, {"uid": "u2"}, {"uid": "u2"}]);
        json!({"apiVersion": "v1", "kind": kind,
            "metadata": {"namespace": namespace, "name": name, "ownerReferences": owners}})
    };
    let names: Vec<String> = (0..30).map(|number| format!("m{number:02}")).collect();
    let mut left: Vec<(ObjectKey, Value)> = Vec::new();
    for (namespace, kind) in [("a", "ConfigMap"), ("a", "Secret"), ("b", "ConfigMap"), ("b", "Secret")] {
        left.extend(
            names
                .iter()
                .map(|name| (ObjectKey::new("", kind, namespace, name), dependent(kind, namespace, name))),
        );
    }
    // One snapshot builds its indexes at once, the other from changes in another order.
    let [mut built, mut followed] = [(); 2].map(|()| Snapshot::live("prod", jiff::Timestamp::UNIX_EPOCH));
    let listed = |snapshot: &Snapshot, namespace| {
        let lists = [snapshot.owned("u1", namespace), snapshot.dependents("u2", namespace)];
        lists.map(keys)
    };
    assert_eq!(listed(&followed, None), [const { Vec::<String>::new() }; 2]);
    assert_eq!(keys(followed.in_namespace("a")), Vec::<String>::new());
    left.iter().for_each(|(_, object)| insert(&mut built, object, Projection::Full));
    left.iter().rev().for_each(|(_, object)| insert(&mut followed, object, Projection::Full));
    while !left.is_empty() {
        for snapshot in [&built, &followed] {
            for namespace in [None, Some("a"), Some("b"), Some("aa"), Some("")] {
                let known = left.iter().map(|(key, _)| key);
                let expected =
                    known.filter(|key| namespace.is_none_or(|namespace| key.namespace == namespace));
                let expected: Vec<String> = expected.map(ObjectKey::to_string).collect();
                assert_eq!(listed(snapshot, namespace), [&expected[..]; 2], "{namespace:?}");
                if let Some(namespace) = namespace {
                    assert_eq!(keys(snapshot.in_namespace(namespace)), expected, "{namespace}");
                }
            }
        }
        // The first, the last and one between them go.
        for at in [0, left.len(), left.len() / 2] {
            if !left.is_empty() {
                let (gone, _) = left.remove(at.min(left.len() - 1));
                built.remove(&gone);
                followed.remove(&gone);
            }
        }
    }
    assert_eq!(listed(&built, None), listed(&followed, None));
    assert_eq!(listed(&built, None), [const { Vec::<String>::new() }; 2]);
}
