//! Random applies and updates, beside the library that the Kubernetes API server uses (`bench/peers/merge`).

use std::io::Write as _;

use fastrand::Rng;
use serde_json::{Value, json};
use taffrail_merge::{Conflict, FieldSet, Managers, Schema, Type, TypeRef, UpdateError, Updater, equal};
use taffrail_testkit::peers::{self, Process};

use super::document;
use super::random::{self, ROOT};

/// The number of steps of a run, unless the variable `TAFFRAIL_MERGE_STEPS` has another one.
const STEPS: usize = 20_000;

/// The number of steps with one object.
const SESSION: usize = 40;

/// Returns what differs between the state after a step here and there.
fn difference(
    live: &Value,
    managers: &Managers,
    refused: Option<&UpdateError>,
    told: &Value,
) -> Option<String> {
    let told_conflicts: Vec<&str> =
        told["conflicts"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut conflicts = match refused {
        Some(UpdateError::Conflicts(conflicts)) => conflicts
            .iter()
            .map(|Conflict { manager, path }| format!("{manager} {}", taffrail_merge::PathText(path)))
            .collect(),
        _ => Vec::new(),
    };
    conflicts.sort();
    let is_invalid = matches!(refused, Some(UpdateError::Invalid(_) | UpdateError::Live(_)));
    if is_invalid != told["error"].is_string() {
        return Some(format!("refused {refused:?}, told {}", told["error"]));
    }
    if conflicts != told_conflicts {
        return Some(format!("conflicts {conflicts:?}, told {told_conflicts:?}"));
    }
    if !equal(live, &told["object"]) {
        return Some(format!("object {live}, told {}", told["object"]));
    }
    let told_managers = told["managers"].as_object().unwrap();
    if managers.keys().ne(told_managers.keys()) {
        return Some(format!("managers {:?}, told {:?}", managers.keys(), told_managers.keys()));
    }
    managers.iter().find_map(|(name, owned)| {
        let of = &told_managers[name];
        let fields = FieldSet::from_fields_v1(&of["fields"]).unwrap();
        let is_equal = fields == owned.fields && of["applied"] == owned.is_applied;
        let own = owned.fields.to_fields_v1();
        (!is_equal).then(|| format!("{name} owns {own} (applied {}), told {of}", owned.is_applied))
    })
}

#[test]
fn random_steps_give_what_the_library_of_the_api_server_gives() {
    let test = "random_steps_give_what_the_library_of_the_api_server_gives";
    if peers::skips(test, peers::unavailable("merge").unwrap()).unwrap() {
        return;
    }
    let seed = std::env::var("TAFFRAIL_MERGE_SEED")
        .ok()
        .map_or_else(|| Rng::new().u64(..), |it| it.parse().unwrap());
    let steps = std::env::var("TAFFRAIL_MERGE_STEPS").ok().map_or(STEPS, |it| it.parse().unwrap());
    let mut random = Rng::with_seed(seed);
    let mut peer = Process::start("merge").unwrap();
    let mut ask = |request: &Value| -> Value {
        let answer = peer.ask(&request.to_string()).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
    };
    let (mut done, mut applied, mut in_conflict, mut invalid) = (0, 0, 0, 0);
    while done < steps {
        let mut schema = random::schema(&mut random);
        let root = TypeRef::named(ROOT);
        let ignored: FieldSet = match random.u8(0..4) {
            0 => FieldSet::from_iter([vec![taffrail_merge::PathElement::Field("d".to_owned())]]),
            _ => FieldSet::default(),
        };
        let begin = |schema: &Schema, keeps: bool| json!({"schema": document::write(schema), "type": ROOT, "keeps": keeps, "ignored": ignored.to_fields_v1()});
        ask(&begin(&schema, false));
        let (mut live, mut managers) = (json!({}), Managers::new());
        let mut log = vec![begin(&schema, false).to_string()];
        for _ in 0..SESSION {
            done += 1;
            if random.u8(0..30) == 0 {
                random::change(&mut random, schema.types.get_mut(ROOT).unwrap());
                ask(&begin(&schema, true));
                log.push(begin(&schema, true).to_string());
            }
            let updater = Updater::new(Type::new(&schema, &root), "v1").ignoring(ignored.clone());
            let manager = format!("m{}", random.u8(0..4));
            let (is_update, force) = (random.u8(0..5) < 2, random.bool());
            let mut object = random::value(&mut random, &schema, &root, 0);
            if is_update
                && random.bool()
                && let (Value::Object(new), Value::Object(all)) = (&object, &live)
            {
                // Most updates change little.
                let mut all = all.clone();
                let names: Vec<&String> = new.keys().collect();
                if let Some(name) = random.choice(names) {
                    all.insert(name.clone(), new[name].clone());
                }
                object = Value::Object(all);
            }
            let before = managers.clone();
            let refused = if is_update {
                match updater.update(&live, &object, &managers, &manager) {
                    Ok(after) => {
                        (live, managers) = (object.clone(), after);
                        None
                    }
                    Err(error) => Some(error),
                }
            } else {
                match updater.apply(&live, &object, &managers, &manager, force) {
                    Ok(after) => {
                        applied += 1;
                        live = after.object.unwrap_or(live);
                        managers = after.managers;
                        None
                    }
                    Err(error) => Some(error),
                }
            };
            in_conflict += usize::from(matches!(refused, Some(UpdateError::Conflicts(_))));
            invalid += usize::from(matches!(refused, Some(UpdateError::Invalid(_) | UpdateError::Live(_))));
            let request = json!({"manager": manager, "object": object, "force": force, "update": is_update});
            let told = ask(&request);
            log.push(request.to_string());
            if let Some(difference) = difference(&live, &managers, refused.as_ref(), &told) {
                let owned = before
                    .iter()
                    .map(|(name, it)| format!("{name} {} {}", it.is_applied, it.fields.to_fields_v1()));
                let owned = owned.collect::<Vec<_>>().join("\n");
                panic!("seed {seed}, step {done}: {difference}\n{}\n{owned}", log.join("\n"));
            }
        }
    }
    let _ = writeln!(
        std::io::stderr(),
        "seed {seed}: {done} steps equal: {applied} applied, {in_conflict} in conflict, {invalid} invalid"
    );
    assert!(applied > steps / 10 && in_conflict > steps / 100 && invalid < steps / 2);
}
