//! Tests that assessing damaged objects does not panic, and returns in bounded time.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use taffrail_object::{Object, ObjectKey};

use super::{all, assess_all, dump, name, now, pod_of, read};

/// The objects of each golden case.
static CASES: LazyLock<Vec<Vec<Value>>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/assess");
    let texts = fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let cases = texts.map(|text| serde_saphyr::from_str::<Value>(&text).unwrap());
    cases.map(|mut case| case["objects"].as_array_mut().unwrap().drain(..).collect()).collect()
});

/// Replaces the value that `steps` lead to by `with`; each step is the index, modulo their number, of a member or an
/// item.
fn damage(value: &mut Value, steps: &[usize], with: &Value) {
    let inner = match (steps.split_first(), &mut *value) {
        (Some((step, rest)), Value::Object(members)) if !members.is_empty() => {
            let at = step % members.len();
            members.values_mut().nth(at).map(|inner| (inner, rest))
        }
        (Some((step, rest)), Value::Array(items)) if !items.is_empty() => {
            let at = step % items.len();
            items.get_mut(at).map(|inner| (inner, rest))
        }
        _ => None,
    };
    match inner {
        Some((inner, rest)) => damage(inner, rest, with),
        None => *value = with.clone(),
    }
}

fn bad_values() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(0.5),
        json!(""),
        json!("2026-02-30T00:00:00Z"),
        json!("9999-12-31T23:59:59Z"),
        json!("-009999-01-01T00:00:00Z"),
        json!("4294967295%"),
        json!("True"),
        json!([]),
        json!({}),
        json!([null, 1, "x", {}, []]),
        json!({"name": "x", "uid": "y", "controller": true}),
    ])
}

fn assess_everything(objects: &[Value]) {
    let names = objects.iter().filter_map(|object| Some(ObjectKey::of(&Object::new(object.into()).ok()?)));
    let names: Vec<_> = names.collect();
    let assessments = assess_all(&names, &dump(objects), now());
    for assessment in assessments {
        assert!(assessment.chain.len() <= 32);
        assert!(assessment.chain.first().is_none_or(|link| link.object == assessment.object));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn damaged_objects_are_assessed_without_a_crash(
        case in any::<prop::sample::Index>(),
        damages in prop::collection::vec((any::<usize>(), prop::collection::vec(0..12_usize, 1..7), bad_values()), 1..12),
    ) {
        let mut objects = case.get(&CASES).clone();
        for (object, steps, value) in damages {
            let at = object % objects.len();
            damage(&mut objects[at], &steps, &value);
        }
        assess_everything(&objects);
    }

    #[test]
    fn owners_in_any_shape_are_assessed(owners in prop::collection::vec((0..8_usize, 0..8_usize), 1..40)) {
        let kinds = ["Deployment", "ReplicaSet", "Pod", "Job", "CronJob", "StatefulSet", "DaemonSet", "Widget"];
        let objects: Vec<_> = owners.iter().enumerate().map(|(at, &(kind, owner))| json!({
            "apiVersion": if kind < 2 || kind == 5 { "apps/v1" } else if kind == 2 { "v1" } else if kind < 5 { "batch/v1" } else { "example.com/v1" },
            "kind": kinds[kind],
            "metadata": {"name": format!("x{at}"), "namespace": "shop", "uid": format!("{}", at % 8),
                "ownerReferences": [{"uid": owner.to_string(), "controller": true}]},
            "status": {"conditions": [{"type": "Ready", "status": "False"}]},
        })).collect();
        assess_everything(&objects);
    }
}

/// Assesses the first of 10,000 objects that own one another in a chain, far longer than a real one.
#[test]
fn a_long_chain_of_owners_is_cut() {
    let objects: Vec<_> = (0..10_000)
        .map(|at: u32| {
            json!({
                "apiVersion": "example.com/v1", "kind": "Widget",
                "metadata": {"name": format!("w{at}"), "uid": format!("u{at}"),
                    "ownerReferences": [{"uid": format!("u{}", at.wrapping_sub(1)), "controller": true}]},
                "status": {"conditions": [{"type": "Ready", "status": "False"}]},
            })
        })
        .collect();
    let assessment = &assess_all(&[name("example.com/Widget//w0")], &dump(&objects), now())[0];
    assert!(assessment.chain.len() > 10 && assessment.chain.len() < 100, "{}", assessment.chain.len());
}

/// Assesses a Deployment of 1,000 pending Pods, each of which is examined once.
#[test]
fn many_dependents_cost_linear_time() {
    let pods: Vec<_> = (0..1_000)
        .map(|at| pod_of("ReplicaSet/web-2", &format!("p{at}"), "status: {phase: Pending}"))
        .collect();
    let parts: Vec<_> = std::iter::once(super::ROLLING).chain(pods.iter().map(String::as_str)).collect();
    let objects = read(&all(&parts));
    let assessment = &assess_all(&[name("apps/Deployment/shop/web")], &dump(&objects), now())[0];
    assert_eq!(assessment.chain.last().unwrap().object, name("/Pod/shop/p0"));
}
