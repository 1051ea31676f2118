//! Tests that the record of the largest set fits in a ConfigMap, at each point of a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use taffrail_apps::sets::{MAX_RESULTS, MAX_RUNS, MAX_SET_OBJECTS, ObjectResult, RunObject, RunResults};
use taffrail_engine::{RecordError, SetRecord};
use taffrail_object::{InventoryEntry, ObjectKey};
use taffrail_plan::sync::{Answer, Observation, ObservedObject, TaskOutcome, TaskVerdict, step};

use crate::stores::{Shop, config_map, declared, run_of, summary_of, take};

/// The number of bytes that Kubernetes allows in a ConfigMap.
const MOST: usize = 1 << 20;

/// Returns the size of a ConfigMap as Kubernetes counts it.
fn size(config_map: &Value) -> usize {
    let text = |value: &Value| value.as_str().unwrap().len();
    let data = config_map["data"].as_object().unwrap().values().map(text).sum::<usize>();
    let binary = config_map["binaryData"].as_object().unwrap().values();
    // Base64 is the form of the wire, and is not counted.
    data + binary.map(|it| text(it) / 4 * 3).sum::<usize>()
}

fn word(rng: &mut fastrand::Rng, length: usize) -> String {
    (0..length).map(|_| char::from_digit(rng.u32(0..36), 36).unwrap()).collect()
}

fn uid(rng: &mut fastrand::Rng) -> String {
    let hex = format!("{:032x}", rng.u128(..));
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Returns a set of random names, in 50 namespaces.
fn objects(rng: &mut fastrand::Rng, count: usize, length: usize) -> Vec<Value> {
    let namespaces: Vec<String> = (0..50).map(|_| format!("team-{}", word(rng, 8))).collect();
    (0..count)
        .map(|_| config_map(&namespaces[rng.usize(0..50)], &format!("app-{}", word(rng, length))))
        .collect()
}

fn results(record: &mut SetRecord, runs: usize) {
    let objects: Vec<RunObject> = record
        .inventory
        .iter()
        .take(MAX_RESULTS)
        .map(|entry| RunObject {
            object: entry.key.clone(),
            result: ObjectResult::Changed,
            message: String::new(),
        })
        .collect();
    record.results =
        (0..runs).map(|number| RunResults { number: number as u64, objects: objects.clone() }).collect();
}

#[tokio::test]
async fn largest_set_fits_at_each_point_of_its_run() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for is_new in [true, false] {
        let shop = Shop::start().await;
        let store = shop.process("ann@laptop").await;
        let mut record = take(&store).await;
        let declared = declared(&objects(&mut rng, MAX_SET_OBJECTS, 24));
        let uids: BTreeMap<ObjectKey, String> =
            declared.iter().map(|it| (it.key.clone(), uid(&mut rng))).collect();
        let known = |key: &ObjectKey| uids.get(key).filter(|_| !is_new).cloned();
        record.inventory =
            declared.iter().map(|it| InventoryEntry { key: it.key.clone(), uid: known(&it.key) }).collect();
        record.summary.runs =
            (0..MAX_RUNS as u64).map(|number| summary_of(number, &word(&mut rng, 64))).collect();
        results(&mut record, MAX_RUNS);
        let mut run = run_of(&declared, &|_| None);
        let (mut answers, mut sizes) = (Vec::new(), Vec::new());
        while run.end().is_none() {
            let verdict = if sizes.len() < 3 { TaskVerdict::Waiting } else { TaskVerdict::Ready };
            let object = |key: &ObjectKey| ObservedObject::Present {
                uid: uids[key].clone(),
                verdict,
                reason: "it is being made".to_owned(),
                since: None,
            };
            let observation = Observation {
                answers: &answers,
                object: &object,
                terminates: false,
                is_superseded: false,
                restarted: false,
            };
            let stepped = step(run, &observation, Timestamp::UNIX_EPOCH);
            run = stepped.run;
            record.run = Some(run.clone());
            store.save(&mut record).await.unwrap();
            sizes.push(size(&shop.stored().unwrap()));
            let outcome = if is_new { TaskOutcome::Created } else { TaskOutcome::Changed };
            let written = |at: usize| Answer::Written { uid: uids[&run.tasks[at].key].clone(), outcome };
            answers = stepped.actions.iter().map(|it| (it.task(), written(it.task()))).collect();
        }
        let read = store.read().await.unwrap().unwrap();
        assert_eq!((&read.run, &read.inventory), (&record.run, &record.inventory));
        let runs = read.results.len();
        println!("new: {is_new}: {sizes:?} of {MOST} bytes, with the results of {runs} runs");
        assert!(sizes.iter().all(|size| *size <= MOST), "{sizes:?}");
        assert!(runs > 0);
        record.run = None;
        record.inventory.iter_mut().for_each(|it| it.uid = uids.get(&it.key).cloned());
        store.save(&mut record).await.unwrap();
        println!("ended: {} bytes", size(&shop.stored().unwrap()));
    }
}

#[tokio::test]
async fn set_that_does_not_fit_is_refused_before_it_is_written() {
    let mut rng = fastrand::Rng::with_seed(7);
    let shop = Shop::start().await;
    let store = shop.process("ann@laptop").await;
    let mut record = take(&store).await;
    let declared = declared(&objects(&mut rng, MAX_SET_OBJECTS, 200));
    record.inventory = declared.iter().map(|it| InventoryEntry { key: it.key.clone(), uid: None }).collect();
    record.run = Some(run_of(&declared, &|_| None));
    record.summary.runs.insert(0, summary_of(1, "digest"));
    let before = shop.stored();
    let error = store.save(&mut record).await.unwrap_err();
    assert!(matches!(error, RecordError::TooLarge { most: MOST, .. }), "{error:?}");
    assert!(error.hint().contains("several sets"), "{}", error.hint());
    assert_eq!(shop.stored(), before);

    // With what it applied before, and what is declared now.
    let long = objects(&mut rng, MAX_SET_OBJECTS + 1, 3);
    record.inventory = long
        .iter()
        .map(|it| ObjectKey::new("", "ConfigMap", "a", it["metadata"]["name"].as_str().unwrap()))
        .map(|key| InventoryEntry { key, uid: None })
        .collect();
    record.run = None;
    let error = store.save(&mut record).await.unwrap_err();
    assert!(matches!(error, RecordError::TooMany { count: 10_001, .. }), "{error:?}");
    assert!(error.hint().contains("taffrail prune --set"), "{}", error.hint());
    assert_eq!(shop.stored(), before);
    // Nothing is lost by that.
    record.inventory.clear();
    record.run = None;
    store.save(&mut record).await.unwrap();
}

#[tokio::test]
async fn long_messages_leave_a_record_readable() {
    let mut rng = fastrand::Rng::with_seed(7);
    let shop = Shop::start().await;
    let store = shop.process("ann@laptop").await;
    let mut record = take(&store).await;
    let declared = declared(&objects(&mut rng, MAX_SET_OBJECTS, 8));
    record.inventory = declared.iter().map(|it| InventoryEntry { key: it.key.clone(), uid: None }).collect();
    record.summary.runs.insert(0, summary_of(1, "digest"));
    // They are small when they are packed, and larger than any reader unpacks.
    let message = "denied by the policy of the platform team; ".repeat(50);
    let mut run = run_of(&declared, &|_| None);
    let nothing = |_: &ObjectKey| ObservedObject::Unknown(String::new());
    let observation = |answers| Observation {
        answers,
        object: &nothing,
        terminates: false,
        is_superseded: false,
        restarted: false,
    };
    let stepped = step(run, &observation(&[]), Timestamp::UNIX_EPOCH);
    let answers: Vec<_> =
        stepped.actions.iter().map(|it| (it.task(), Answer::Failed(message.clone()))).collect();
    assert_eq!(answers.len(), MAX_SET_OBJECTS);
    run = step(stepped.run, &observation(&answers), Timestamp::UNIX_EPOCH).run;
    record.run = Some(run);
    results(&mut record, MAX_RUNS);
    for result in record.results.iter_mut().flat_map(|run| &mut run.objects) {
        result.message.clone_from(&message);
    }
    store.save(&mut record).await.unwrap();
    let read = store.read().await.unwrap().unwrap();
    assert_eq!(read.inventory, record.inventory);
    assert!(read.run.is_some());
    let told = |record: &SetRecord| record.results.iter().map(|run| run.number).collect::<Vec<_>>();
    assert!(!read.results.is_empty() && told(&record).starts_with(&told(&read)), "{:?}", told(&read));
}
