//! Random objects and histories: what holds of every difference.

use fastrand::Rng;
use serde_json::{Value, json};
use taffrail_merge::ManagedEntry;
use taffrail_plan::diff::{DiffOptions, DiffOutcome, DryRun, NoDryRun, ToldConflict};

use crate::server::{
    Case, OURS, apply, default_deployment, default_ports, deployment, kubectl_apply, texts, update,
};

fn rng() -> Rng {
    let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    println!("seed {seed}");
    Rng::with_seed(seed)
}

/// Changes a Deployment at a few random places.
fn change(object: &mut Value, random: &mut Rng) {
    for _ in 0..random.usize(1..4) {
        let (word, number) = (*random.choice(&["x", "y", "z"]).unwrap(), random.u32(1..4));
        let pod = "spec.template.spec".split('.').fold(&mut *object, |value, name| &mut value[name]);
        let containers = pod["containers"].as_array_mut().unwrap();
        match random.u8(0..9) {
            0 => object["spec"]["replicas"] = json!(number),
            1 => object["metadata"]["labels"][word] = json!(number.to_string()),
            2 => drop(object["metadata"]["labels"].as_object_mut().unwrap().remove(word)),
            3 if containers.iter().all(|it| it["name"] != word) => {
                containers.push(json!({"name": word, "image": format!("{word}:{number}")}));
            }
            4 if containers.len() > 1 => drop(containers.remove(random.usize(0..containers.len()))),
            5 => containers[0]["image"] = json!(format!("web:{number}")),
            6 => containers[0]["args"] = json!([word, number.to_string()]),
            7 => containers[0]["env"] = json!([{"name": word, "value": number.to_string()}]),
            8 => pod["tolerations"] = json!([{"key": word}]),
            _ => object["metadata"]["annotations"] = json!({word: number.to_string()}),
        }
    }
}

/// Returns a live Deployment that several managers wrote.
fn live(random: &mut Rng) -> Value {
    let mut first = deployment();
    change(&mut first, random);
    let mut live = if random.bool() { apply(None, &first, OURS) } else { kubectl_apply(&first) };
    if random.bool() {
        default_deployment(&mut live);
    }
    for _ in 0..random.usize(0..4) {
        if random.bool() {
            let manager = *random.choice(&["hpa", "kubectl-edit"]).unwrap();
            live = update(&live, manager, |object| change(object, random));
        } else {
            let mut wanted = deployment();
            change(&mut wanted, random);
            live = apply(Some(&live), &wanted, random.choice([OURS, "flux"]).unwrap());
        }
    }
    live
}

#[test]
fn what_was_applied_has_no_difference_and_both_ways_tell_the_same() {
    let mut random = rng();
    for _ in 0..60 {
        let live = live(&mut random);
        let mut wanted = deployment();
        change(&mut wanted, &mut random);
        let (merged, server) =
            (Case::merged(&wanted, &live).diff(), Case::server(&wanted, &live, default_ports).diff());
        assert_eq!(merged.differences, server.differences);
        let mut applied = apply(Some(&live), &wanted, OURS);
        // What kubectl left is taken over before.
        if let Some(annotations) = applied["metadata"]["annotations"].as_object_mut() {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
        for case in [Case::merged(&wanted, &applied), Case::server(&wanted, &applied, |_| {})] {
            let diff = case.diff();
            assert_eq!((texts(&diff), diff.outcome), (vec![], DiffOutcome::Unchanged));
        }
        // Each difference is one of the objects themselves.
        for it in &merged.differences {
            assert_ne!(it.wanted, it.live);
        }
    }
}

#[test]
fn an_object_has_no_difference_from_itself() {
    let mut random = rng();
    for _ in 0..60 {
        let live = live(&mut random);
        let mut wanted = live.clone();
        wanted["metadata"].as_object_mut().unwrap().remove("managedFields");
        let diff = Case::merged(&wanted, &live).diff();
        assert_eq!((texts(&diff), diff.outcome), (vec![], DiffOutcome::Unchanged));
        let applied = ManagedEntry::read_all(&live).unwrap().remove(0).fields;
        let dry_run = DryRun::Answered { object: live.clone(), conflicts: Vec::new() };
        let options = DiffOptions { includes_additions: true, ..DiffOptions::default() };
        let diff = Case { dry_run, options, applied: Some(&applied), ..Case::merged(&wanted, &live) }.diff();
        assert_eq!((texts(&diff), diff.outcome), (vec![], DiffOutcome::Unchanged));
    }
}

/// Returns a value of any form, with names that objects have.
fn anything(random: &mut Rng, depth: usize) -> Value {
    const NAMES: [&str; 14] = [
        "apiVersion",
        "kind",
        "metadata",
        "labels",
        "annotations",
        "data",
        "stringData",
        "spec",
        "containers",
        "name",
        "managedFields",
        "status",
        "rules",
        "kubectl.kubernetes.io/last-applied-configuration",
    ];
    match random.u8(0..if depth == 0 { 6 } else { 10 }) {
        0 => json!(null),
        1 => json!(random.i64(0..3)),
        2 => {
            json!(*random.choice(&["v1", "Secret", "{\"data\": {\"a\": \"canary\"}}", "Role", "a"]).unwrap())
        }
        3 => json!(random.bool()),
        4 | 5 => json!("canary"),
        6 => (0..random.usize(0..3)).map(|_| anything(random, depth - 1)).collect(),
        _ => {
            let fields = (0..random.usize(0..6)).map(|_| {
                let name = (*random.choice(&NAMES).unwrap()).to_owned();
                (name, anything(random, depth - 1))
            });
            Value::Object(fields.collect())
        }
    }
}

#[test]
fn no_input_panics_and_no_secret_is_shown() {
    let mut random = rng();
    for _ in 0..2_000 {
        let object = |random: &mut Rng| {
            let mut object = anything(random, 4);
            if let Some(fields) = object.as_object_mut() {
                fields.insert("kind".to_owned(), json!("Secret"));
                fields.insert("apiVersion".to_owned(), json!("v1"));
                if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
                    // These are shown.
                    metadata
                        .retain(|name, _| name == "annotations" || name == "data" || name == "managedFields");
                }
            }
            object
        };
        let (wanted, live) = (object(&mut random), object(&mut random));
        let dry_run = match random.u8(0..4) {
            0 => DryRun::NotRun(NoDryRun::Offline),
            1 => DryRun::CreatedLater { needs: String::new() },
            2 => DryRun::Refused { message: format!("Invalid value: {}", wanted["data"]) },
            _ => {
                let conflicts = vec![ToldConflict { path: ".data.a".to_owned(), manager: None }];
                DryRun::Answered { object: object(&mut random), conflicts }
            }
        };
        let options = DiffOptions { includes_additions: random.bool(), ..DiffOptions::default() };
        let case = Case { dry_run, options, ..Case::merged(&wanted, &live) };
        let diff = case.diff();
        let shown = format!("{diff:?} {} {:?}", serde_json::to_string(&diff).unwrap(), texts(&diff));
        let is_shown = shown.contains("canary") && wanted.is_object() && live.is_object();
        assert!(!is_shown, "{wanted} {live} {shown}");
    }
}
