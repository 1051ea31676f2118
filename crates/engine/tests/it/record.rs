//! Tests of the record of a set, with several processes, people and lost answers.

use std::pin::pin;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};
use taffrail_apps::sets::{SetHolder, SetRecordError, SetVerb, pack};
use taffrail_engine::{HolderTimes, ManifestText, RecordError, RecordStore, history};
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::proxy::WriteStage;

use crate::harness::{gate_before, kubeconfig_through};
use crate::stores::{PATIENT, Shop, TIMES, begin, connect, summary_of, take, web};

fn lost_to(error: &RecordError) -> Option<&str> {
    match error {
        RecordError::Lost(holder) => Some(holder.as_ref().map_or("nobody", |holder| &holder.actor)),
        _ => None,
    }
}

#[tokio::test]
async fn record_is_read_as_it_was_saved() {
    let shop = Shop::start().await;
    let store = shop.process("ann@laptop").await;
    assert_eq!(store.read().await.unwrap(), None);
    let mut record = take(&store).await;
    begin(&mut record);
    store.save(&mut record).await.unwrap();
    let read = history(&shop.cluster().await, &web()).await.unwrap().unwrap();
    assert_eq!(read, record);
    assert_eq!(read.summary.holder.as_ref().map(|holder| &*holder.actor), Some("ann@laptop"));

    record.run = None;
    record.summary.runs[0].verb = SetVerb::Rollback;
    store.release(record.clone()).await.unwrap();
    record.summary.holder = None;
    assert_eq!(store.read().await.unwrap().unwrap(), record);
    assert!(shop.stored().unwrap()["binaryData"].get("run").is_none(), "no ended run stays behind");
    // Another process holds it at once.
    let next = shop.process("bob@ci").await.with_times(PATIENT);
    assert_eq!(take(&next).await.inventory, record.inventory);
}

#[tokio::test]
async fn one_of_many_processes_takes_a_set_and_the_others_are_told() {
    for exists in [false, true] {
        let shop = Shop::start().await;
        if exists {
            let before = shop.process("before").await;
            let mut record = take(&before).await;
            begin(&mut record);
            before.release(record).await.unwrap();
        }
        let mut stores = Vec::new();
        for number in 0..8 {
            stores.push(shop.process(&format!("process-{number}")).await.with_times(PATIENT));
        }
        let takes = stores.iter().enumerate();
        let mut takes: FuturesUnordered<_> =
            takes.map(|(at, store)| async move { (at, store.take(&mut |_| {}).await) }).collect();
        let (winner, record) = takes.next().await.unwrap();
        assert_eq!(record.unwrap().inventory.is_empty(), !exists);
        let mut alive = pin!(stores[winner].keep_alive());
        loop {
            match select(takes.next(), alive.as_mut()).await {
                Either::Left((Some((_, Err(RecordError::Held(holder)))), _)) => {
                    assert_eq!(holder.actor, format!("process-{winner}"));
                }
                Either::Left((None, _)) => break,
                Either::Left((other, _)) => panic!("{other:?}"),
                Either::Right((error, _)) => panic!("the holder lost its set: {error}"),
            }
        }
    }
}

#[tokio::test]
async fn dead_holder_is_succeeded_with_its_run_and_never_writes_again() {
    let shop = Shop::start().await;
    let old = shop.process("ann@laptop").await;
    let mut record = take(&old).await;
    begin(&mut record);
    old.save(&mut record).await.unwrap();
    let saved = record.clone();

    let new = shop.process("bob@ci").await;
    let mut told: Vec<SetHolder> = Vec::new();
    let began = std::time::Instant::now();
    let mut taken = new.take(&mut |holder| told.push(holder.clone())).await.unwrap();
    assert!(began.elapsed() >= TIMES.patience);
    assert_eq!(told.iter().map(|holder| &*holder.actor).collect::<Vec<_>>(), ["ann@laptop"]);
    assert_eq!((&taken.run, &taken.inventory), (&saved.run, &saved.inventory));
    new.save(&mut taken).await.unwrap();

    // It wakes up, and learns it at its first write; then no request is sent at all.
    let before = shop.stored();
    record.inventory.clear();
    let error = old.save(&mut record).await.unwrap_err();
    assert_eq!(lost_to(&error), Some("bob@ci"), "{error}");
    assert!(error.hint().contains("taffrail history --set"), "{}", error.hint());
    let run = summary_of(1, "digest");
    let file = ManifestText { path: "a.yaml".to_owned(), content: "{}".to_owned() };
    let later = [
        old.save(&mut record).await,
        old.beat().await,
        old.keep_manifests(&run, &[file]).await,
        old.remove_manifests(&[1], &|_| false).await,
        old.remove(record.clone()).await,
    ];
    for outcome in later {
        assert!(matches!(outcome, Err(RecordError::Lost(_))), "{outcome:?}");
    }
    assert!(lost_to(&old.keep_alive().await).is_some());
    old.release(record).await.unwrap();
    old.give_up().await.unwrap();
    assert_eq!(shop.stored(), before);
    assert!(shop.sim.list("v1", "Secret").is_empty());
    // The successor goes on.
    new.save(&mut taken).await.unwrap();
}

#[tokio::test]
async fn release_of_a_holder_that_was_taken_over_frees_nothing() {
    for gives_up in [false, true] {
        let shop = Shop::start().await;
        let old = shop.process("ann@laptop").await;
        let mut record = take(&old).await;
        begin(&mut record);
        old.save(&mut record).await.unwrap();
        let new = shop.process("bob@ci").await;
        take(&new).await;
        let before = shop.stored();
        match gives_up {
            true => old.give_up().await.unwrap(),
            false => old.release(record).await.unwrap(),
        }
        assert_eq!(shop.stored(), before);
        new.beat().await.unwrap();
    }
}

#[tokio::test]
async fn holder_that_beats_is_not_succeeded() {
    let shop = Shop::start().await;
    let holder = shop.process("ann@laptop").await;
    let mut record = take(&holder).await;
    begin(&mut record);
    holder.save(&mut record).await.unwrap();
    let other = shop.process("bob@ci").await;
    let outcome = match select(pin!(other.take(&mut |_| {})), pin!(holder.keep_alive())).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right((error, _)) => panic!("the holder lost its set: {error}"),
    };
    assert!(matches!(&outcome, Err(RecordError::Held(it)) if it.actor == "ann@laptop"), "{outcome:?}");
    // A beat writes no more than the summary, and a save after it is the newest still.
    record.inventory.truncate(1);
    record.run = None;
    holder.save(&mut record).await.unwrap();
    assert_eq!(holder.read().await.unwrap().unwrap(), record);
}

#[tokio::test]
async fn lost_answers_lose_nothing() {
    // The first is answered too late, the second is not carried out.
    for trouble in [Trouble::Cut(0), Trouble::ServerError("etcdserver: request timed out".to_owned())] {
        let shop = Shop::start().await;
        let fails = |verb: &str| {
            shop.sim.fault(Fault::new(trouble.clone()).verb(verb).resource("configmaps").times(1));
        };
        let store = shop.process("ann@laptop").await;
        fails("create");
        let mut record = take(&store).await;
        begin(&mut record);
        fails("patch");
        store.save(&mut record).await.unwrap();
        assert_eq!(store.read().await.unwrap().unwrap(), record, "{trouble:?}");
        fails("patch");
        store.beat().await.unwrap();
        store.save(&mut record).await.unwrap();
        fails("patch");
        store.release(record).await.unwrap();
        assert_eq!(store.read().await.unwrap().unwrap().summary.holder, None, "{trouble:?}");
        fails("patch");
        let next = shop.process("bob@ci").await.with_times(PATIENT);
        let record = take(&next).await;
        fails("delete");
        next.remove(record).await.unwrap();
        assert_eq!(shop.stored(), None, "{trouble:?}");
    }
}

#[tokio::test]
async fn holder_waits_for_an_api_server_that_starts_again() {
    let shop = Shop::start().await;
    let store = shop.process("ann@laptop").await.with_times(PATIENT);
    let mut record = take(&store).await;
    begin(&mut record);
    let outage = shop.sim.fault(Fault::new(Trouble::Unreachable));
    let again = async {
        // Several writes fail meanwhile.
        tokio::time::sleep(TIMES.poll * 10).await;
        shop.sim.heal(outage);
    };
    let (saved, ()) = futures::future::join(store.save(&mut record), again).await;
    saved.unwrap();
    assert_eq!(store.read().await.unwrap().unwrap(), record);
}

#[tokio::test]
async fn holder_that_cannot_write_ends_before_it_is_succeeded() {
    for has_rights in [true, false] {
        let shop = Shop::start().await;
        let verbs: (&str, &[&str]) = ("configmaps", &["get", "create", "patch"]);
        let cluster = shop.cluster_of("ann", &[verbs]).await;
        let times = HolderTimes { patience: Duration::from_secs(3), ..TIMES };
        let store = RecordStore::new(cluster, web(), "ann@laptop".to_owned()).with_times(times);
        let mut record = take(&store).await;
        begin(&mut record);
        let saved = Instant::now();
        store.save(&mut record).await.unwrap();
        match has_rights {
            true => {
                let error = Trouble::ServerError("etcdserver: no leader".to_owned());
                shop.sim.fault(Fault::new(error).verb("patch").resource("configmaps"));
            }
            false => drop(shop.sim.delete("rbac.authorization.k8s.io/v1", "RoleBinding", "shop", "ann")),
        }
        let ended = tokio::time::timeout(Duration::from_secs(60), store.keep_alive()).await;
        let (error, silent) = (ended.expect("it goes on though nobody sees it"), saved.elapsed());
        assert!(matches!(error, RecordError::Silent(..)), "{error:?}");
        assert!(silent >= times.patience / 2 && silent < times.patience, "{silent:?}");
        let text = taffrail_cluster::chain(&error);
        let (why, hint) = match has_rights {
            true => ("no leader", "same command again"),
            false => ("forbidden", "ConfigMaps"),
        };
        assert!(text.contains(why), "{text}");
        assert!(error.hint().contains(hint), "{}", error.hint());
    }
}

#[tokio::test]
async fn reason_why_a_save_is_late_is_told() {
    let shop = Shop::start().await;
    let times = HolderTimes { patience: Duration::from_secs(1), ..TIMES };
    let store = shop.process("ann@laptop").await.with_times(times);
    let mut record = take(&store).await;
    begin(&mut record);
    shop.sim.fault(Fault::new(Trouble::Unreachable));
    let error = match select(pin!(store.keep_alive()), pin!(store.save(&mut record))).await {
        Either::Left((error, _)) => error,
        Either::Right((saved, _)) => saved.unwrap_err(),
    };
    assert!(matches!(error, RecordError::Silent(_, Some(_))), "{error:?}");
}

#[tokio::test]
async fn holder_that_was_stopped_for_long_goes_on_if_nobody_wanted_the_set() {
    let shop = Shop::start().await;
    let store =
        shop.process("ann@laptop").await.with_times(HolderTimes { heartbeat: TIMES.patience * 2, ..TIMES });
    let mut record = take(&store).await;
    begin(&mut record);
    let before = shop.stored();
    let beats = async {
        while shop.stored() == before {
            tokio::task::yield_now().await;
        }
    };
    match select(pin!(beats), pin!(store.keep_alive())).await {
        Either::Left(_) => {}
        Either::Right((error, _)) => panic!("{error}"),
    }
    store.save(&mut record).await.unwrap();
}

#[tokio::test]
async fn write_that_nobody_saw_is_not_taken_for_the_next_one() {
    let shop = Shop::start().await;
    let store = shop.process("ann@laptop").await;
    let mut record = take(&store).await;
    begin(&mut record);
    store.save(&mut record).await.unwrap();
    // It is carried out, and its answer is lost for good.
    shop.sim.fault(Fault::new(Trouble::Cut(0)).verb("patch").resource("configmaps"));
    shop.sim.fault(Fault::new(Trouble::ServerError(String::new())).verb("get").resource("configmaps"));
    assert!(matches!(store.beat().await, Err(RecordError::Silent(..))));
    shop.sim.heal_all();
    // The summary is the same, the inventory is not.
    record.run = None;
    record.inventory.truncate(1);
    store.save(&mut record).await.unwrap();
    assert_eq!(store.read().await.unwrap().unwrap(), record);
}

#[tokio::test]
async fn record_that_vanishes_while_it_is_taken_is_created() {
    let shop = Shop::start().await;
    let first = shop.process("ann@laptop").await;
    let mut record = take(&first).await;
    begin(&mut record);
    first.release(record).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let gate = gate_before(&shop.sim, folder.path()).await;
    let sim = shop.sim.clone();
    gate.judge_writes(move |write| {
        if write.method == "PATCH" && write.stage == WriteStage::Sent {
            sim.delete("v1", "ConfigMap", "shop", "taffrail-set-web");
        }
        true
    });
    let cluster = connect(&kubeconfig_through(&gate, &shop.sim)).await;
    let second = RecordStore::new(cluster, web(), "bob@ci".to_owned()).with_times(TIMES);
    assert!(take(&second).await.inventory.is_empty());
    assert!(second.read().await.unwrap().is_some());
}

#[tokio::test]
async fn holder_overwrites_what_a_person_edited_meanwhile() {
    let shop = Shop::start().await;
    let store = shop.process("ann@laptop").await;
    let mut record = take(&store).await;
    begin(&mut record);
    store.save(&mut record).await.unwrap();
    let label = "taffrail.dev/record";
    shop.edit(|it| {
        it["metadata"]["labels"] = json!({"team": "a"});
        it["binaryData"]["inventory"] = json!(STANDARD.encode(pack(&json!([]))));
        it["data"]["note"] = json!("do not touch");
    });
    store.save(&mut record).await.unwrap();
    let stored = shop.stored().unwrap();
    assert_eq!(stored["metadata"]["labels"], json!({"team": "a", label: "set"}));
    assert_eq!(stored["data"]["note"], "do not touch");
    assert_eq!(store.read().await.unwrap().unwrap(), record);

    // A record whose summary cannot be read may be a successor's.
    shop.edit(|it| it["data"]["set"] = json!(r#"{"version":7}"#));
    let before = shop.stored();
    let error = store.save(&mut record).await.unwrap_err();
    assert!(matches!(error, RecordError::Damaged { cause: SetRecordError::Newer(7), .. }), "{error:?}");
    assert!(matches!(store.save(&mut record).await, Err(RecordError::Lost(_))));
    assert_eq!(shop.stored(), before);
}

#[tokio::test]
async fn record_that_was_deleted_replaced_or_freed_is_lost() {
    type Change = fn(&Shop);
    let delete: Change = |shop| {
        shop.sim.delete("v1", "ConfigMap", "shop", "taffrail-set-web");
    };
    let replace: Change = |shop| {
        let mut copy = shop.stored().unwrap();
        shop.sim.delete("v1", "ConfigMap", "shop", "taffrail-set-web");
        let metadata = copy["metadata"].as_object_mut().unwrap();
        metadata.retain(|key, _| ["name", "namespace", "labels"].contains(&&**key));
        shop.sim.apply(copy).unwrap();
    };
    let free: Change = |shop| {
        shop.edit(|it| {
            let mut summary: Value = serde_json::from_str(it["data"]["set"].as_str().unwrap()).unwrap();
            summary["holder"] = Value::Null;
            it["data"]["set"] = json!(summary.to_string());
        });
    };
    for (change, holder) in [(delete, "nobody"), (replace, "ann@laptop"), (free, "nobody")] {
        let shop = Shop::start().await;
        let store = shop.process("ann@laptop").await;
        let mut record = take(&store).await;
        begin(&mut record);
        store.save(&mut record).await.unwrap();
        change(&shop);
        let before = shop.stored();
        let error = store.save(&mut record).await.unwrap_err();
        assert_eq!(lost_to(&error), Some(holder), "{error:?}");
        assert_eq!(shop.stored(), before);
    }
}

#[tokio::test]
async fn set_that_was_held_in_vain_leaves_no_record() {
    let shop = Shop::start().await;
    let store = shop.process("ann@laptop").await;
    let mut record = take(&store).await;
    store.give_up().await.unwrap();
    assert_eq!(shop.stored(), None);

    record = {
        drop(record);
        take(&store).await
    };
    begin(&mut record);
    store.save(&mut record).await.unwrap();
    let saved = record.run.clone();
    // What was not saved is not written by giving up.
    record.run = None;
    record.summary.runs.clear();
    store.give_up().await.unwrap();
    let left = store.read().await.unwrap().unwrap();
    assert_eq!((left.run, left.summary.holder), (saved, None));
    assert_eq!(left.summary.runs.len(), 1);
}

#[tokio::test]
async fn records_that_cannot_be_used_are_told_and_stay_as_they_are() {
    type Change = fn(&mut Value);
    fn packed(value: &Value) -> Value {
        json!(STANDARD.encode(pack(value)))
    }
    let damages: [(Change, &str); 9] = [
        (|it| it["data"] = json!({}), "the part 'set'"),
        (|it| it["data"]["set"] = json!("{\"version\":1}"), "the part 'set'"),
        (|it| it["data"]["set"] = json!("{\"version\":2,\"more\":[]}"), "a newer Taffrail"),
        (|it| drop(it["binaryData"].as_object_mut().unwrap().remove("inventory")), "the part 'inventory'"),
        (
            |it| {
                let text = it["binaryData"]["inventory"].as_str().unwrap().to_owned();
                it["binaryData"]["inventory"] = json!(&text[..text.len() / 8 * 4]);
            },
            "the part 'inventory'",
        ),
        (|it| it["binaryData"]["inventory"] = packed(&json!({"objects": 3})), "the part 'inventory'"),
        (|it| it["binaryData"]["run"] = packed(&json!({"tasks": []})), "the part 'run'"),
        // A run refers to the entries of its inventory.
        (|it| it["binaryData"]["inventory"] = packed(&json!([])), "its inventory was changed"),
        (|it| it["metadata"]["labels"] = json!({}), "is not the record of a set"),
    ];
    for (change, wanted) in damages {
        let shop = Shop::start().await;
        let store = shop.process("ann@laptop").await;
        let mut record = take(&store).await;
        begin(&mut record);
        store.release(record).await.unwrap();
        shop.edit(change);
        let before = shop.stored();
        let error = store.take(&mut |_| {}).await.unwrap_err();
        let text = taffrail_cluster::chain(&error);
        assert!(text.contains(wanted), "{wanted}: {text}");
        assert!(!error.hint().is_empty(), "{text}");
        let read = history(&shop.cluster().await, &web()).await.unwrap_err();
        assert_eq!(taffrail_cluster::chain(&read), text);
        assert_eq!(shop.stored(), before);
    }
    // Results are history alone.
    let shop = Shop::start().await;
    let store = shop.process("ann@laptop").await;
    let mut record = take(&store).await;
    begin(&mut record);
    store.release(record).await.unwrap();
    shop.edit(|it| it["binaryData"]["results"] = json!("AAAA"));
    assert!(take(&store).await.results.is_empty());
}

#[tokio::test]
async fn missing_namespace_and_missing_rights_are_told_with_a_way_on() {
    let shop = Shop::start().await;
    let elsewhere = taffrail_apps::sets::SetName::new("nowhere", "web").unwrap();
    let store = RecordStore::new(shop.cluster().await, elsewhere, "ann@laptop".to_owned());
    let error = store.take(&mut |_| {}).await.unwrap_err();
    assert_eq!(error.to_string(), "the namespace nowhere of the set does not exist");
    assert!(error.hint().contains("kubectl create namespace"), "{}", error.hint());

    type Right<'a> = (&'a str, &'a [&'a str]);
    let cases: [(&str, &[Right<'_>]); 3] = [
        ("nothing", &[]),
        ("reads", &[("configmaps", &["get"])]),
        ("creates", &[("configmaps", &["get", "create"])]),
    ];
    for (name, rights) in cases {
        let cluster = shop.cluster_of(name, rights).await;
        let store = RecordStore::new(cluster, web(), name.to_owned()).with_times(TIMES);
        let mut outcome = store.take(&mut |_| {}).await;
        if let Ok(record) = &mut outcome {
            begin(record);
            outcome = store.save(record).await.map(|()| record.clone());
        }
        let error = outcome.unwrap_err();
        let text = taffrail_cluster::chain(&error);
        assert!(text.contains("forbidden") && text.contains(name), "{text}");
        for word in ["`get`, `create`, `patch` and `delete`", "ConfigMaps", "-n"] {
            assert!(error.hint().contains(word), "{word}: {}", error.hint());
        }
    }
}
