//! Operations.

use std::num::NonZeroUsize;

use jiff::{Timestamp, ToSpan as _};
use serde_json::json;
use taffrail_api::operations::{OperationId, OperationRecord, OperationTarget};

use super::{Fixture, batch_of, pair_id};
use crate::store::{HistoryEntry, OperationQuery, PageQuery, PairId, SavedOperation, Store};

/// Makes the record of an operation on apps of these pairs.
fn operation(id: &str, began: Timestamp, ended: Option<Timestamp>, pairs: &[PairId]) -> SavedOperation {
    let item = |pair: &PairId| {
        let app = &pair.app.app;
        json!({"cluster": "eu", "target": {"home": "eu", "target": "eu", "delivery": app.delivery, "namespace": app.namespace,
            "name": app.name}, "writes": [], "outcome": {"result": "done"}})
    };
    let record = json!({"id": id, "by": "ann öß", "began": began, "plannedAt": began, "dryRun": false, "operation": "suspend",
        "digest": "0", "items": pairs.iter().map(item).collect::<Vec<_>>()});
    let record = OperationRecord { ended, ..serde_json::from_value(record).unwrap() };
    SavedOperation { record, apps: pairs.iter().map(|pair| Some(pair.app.clone())).collect() }
}

pub(crate) async fn operations_are_saved_replaced_and_read_with_the_history_of_their_apps(
    fixture: &impl Fixture,
) {
    let store = fixture.open().await;
    store.write(batch_of(3, 1)).await.unwrap();
    let (one, two, unknown) = (pair_id(0), pair_id(1), pair_id(77));
    let now = Timestamp::now();
    let at = |hours: i64| now.checked_sub(hours.hours()).unwrap();
    let running = operation("running", at(1), None, std::slice::from_ref(&one));
    let ended = SavedOperation {
        record: OperationRecord { ended: Some(now), ..running.record.clone() },
        ..running.clone()
    };
    let both = operation("both", at(2), Some(at(2)), &[two.clone(), one.clone()]);
    let old = operation("old", at(72), Some(at(71)), std::slice::from_ref(&one));
    let stuck = operation("stuck", at(73), None, std::slice::from_ref(&unknown));
    for saved in [&running, &both, &old, &stuck] {
        store.save_operation(saved.clone()).await.unwrap();
    }
    let ids = |records: Vec<OperationRecord>| -> Vec<String> {
        records.iter().map(|record| record.id.to_string()).collect()
    };
    assert_eq!(ids(store.operations(OperationQuery::Running).await.unwrap()), ["running", "stuck"]);
    store.save_operation(ended.clone()).await.unwrap();
    store.save_operation(ended.clone()).await.unwrap();
    fixture.close(store).await;
    let store = fixture.open().await;

    assert_eq!(ids(store.operations(OperationQuery::Running).await.unwrap()), ["stuck"]);
    assert_eq!(ids(store.operations(OperationQuery::Latest(2)).await.unwrap()), ["running", "both"]);
    let by_id = store.operations(OperationQuery::Id(OperationId::new("running"))).await.unwrap();
    assert_eq!(by_id, std::slice::from_ref(&ended.record));
    assert!(store.operations(OperationQuery::Id(OperationId::new("nothing"))).await.unwrap().is_empty());

    // In the history of an app, one at a time or all together, each has the item of that app alone.
    for limit in [1, 100] {
        let mut found = Vec::new();
        let mut query = PageQuery::first(NonZeroUsize::new(limit).unwrap());
        loop {
            let page =
                store.history(one.clone(), Timestamp::MIN..Timestamp::MAX, query.clone()).await.unwrap();
            found.extend(page.items);
            let Some(next) = page.next else { break };
            query = query.next(next);
        }
        assert!(found.is_sorted_by(|a, b| a.at() >= b.at()));
        let operations: Vec<&OperationRecord> = found
            .iter()
            .filter_map(|entry| match entry {
                HistoryEntry::Operation(record) => Some(&**record),
                HistoryEntry::Transition(_) | HistoryEntry::Sync(_) => None,
            })
            .collect();
        let found: Vec<&str> = operations.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(found, ["running", "both", "old"]);
        assert!(operations.iter().all(|record| record.items.len() == 1));
        let OperationTarget::App(app) = &operations[1].items[0].target else { panic!("no app") };
        assert_eq!(app.name, one.app.app.name);
    }
    let first = PageQuery::first(NonZeroUsize::new(10).unwrap());
    let range = at(2)..at(1);
    let within = store.history(two.clone(), range, first.clone()).await.unwrap();
    assert!(within.items.iter().any(|entry| entry.at() == at(2)), "the begin is within");
    // Also an app that the store has no rows of.
    assert_eq!(store.history(unknown, Timestamp::MIN..Timestamp::MAX, first).await.unwrap().items.len(), 1);

    store.drop_history(at(40)).await.unwrap();
    assert_eq!(ids(store.operations(OperationQuery::Latest(9)).await.unwrap()), ["running", "both", "stuck"]);
    fixture.close(store).await;
}
