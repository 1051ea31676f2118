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
