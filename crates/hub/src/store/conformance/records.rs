//! Cases about pairs, clusters, tokens, backups and space.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_apps::ClusterId;

use super::samples::unusual_pair;
use super::{Fixture, all_pairs, at, batch_of, limit, pair, pair_id, saving};
use crate::store::{Batch, ClusterRecord, Cursor, PageQuery, Store, StoreError, Token};

/// Checks that all pairs are read again after a restart, whatever the size of the pages.
pub(crate) async fn pairs_come_back_after_a_restart(fixture: &impl Fixture) {
    let saved: Vec<_> = (0..250).map(|number| pair(number, number % 3)).collect();
    let store = fixture.open().await;
    store.write(saving(saved.clone())).await.unwrap();
    assert_eq!(all_pairs(&store, 1_000).await, saved);
    fixture.close(store).await;
    let store = fixture.open().await;
    for size in [1, 7, 50, 250, 251] {
        assert_eq!(all_pairs(&store, size).await, saved, "pages of {size}");
    }
}

/// Checks that every field comes back, with texts that databases and JSON treat in special ways, and without one of
/// the halves.
pub(crate) async fn unusual_texts_come_back(fixture: &impl Fixture) {
    let store = fixture.open().await;
    let texts =
        ["", "'; DROP TABLE texts; --", "\"\\\n\t\u{7f}", "日本語 🚢", "1", "null", "\u{FFFD}", "$1 ?1 %s"];
    let mut saved: Vec<_> = texts.iter().map(|text| unusual_pair(text)).collect();
    saved.push(unusual_pair(&"long ".repeat(4_000)));
    let mut declared_only = pair(1, 0);
    declared_only.observed = None;
    let mut observed_only = pair(2, 0);
    observed_only.declared = None;
    let mut neither = pair(3, 0);
    (neither.declared, neither.observed) = (None, None);
    saved.extend([declared_only, observed_only, neither]);
    saved.sort_by(|a, b| a.id.cmp(&b.id));
    store.write(saving(saved.clone())).await.unwrap();
    assert_eq!(all_pairs(&store, 100).await, saved);
    // NUL is replaced wherever a text may have it, also in a pair whose other texts are known; its escape is not.
    let with = |text: &str| {
        let mut unusual = unusual_pair("\\u0000");
        unusual.id = pair_id(4);
        let declared = &mut unusual.declared.as_mut().unwrap().body;
        declared.message = text.into();
        std::sync::Arc::make_mut(&mut declared.labels).insert(text.to_owned(), text.to_owned());
        declared.problems.iter_mut().for_each(|problem| problem.message = text.into());
        unusual
    };
    store.write(saving(vec![with("a\0b")])).await.unwrap();
    assert!(all_pairs(&store, 100).await.contains(&with("a\u{FFFD}b")));
}

/// Checks that a pair which is replaced or gone leaves nothing of its former halves.
pub(crate) async fn gone_and_replaced_pairs_leave_nothing(fixture: &impl Fixture) {
    let store = fixture.open().await;
    store.write(saving(vec![pair(7, 0), pair(27, 0), pair(8, 0)])).await.unwrap();
    let mut well = pair(7, 1);
    well.observed = pair(8, 0).observed;
    let batch = Batch { gone: BTreeSet::from([pair_id(27), pair_id(99)]), ..saving(vec![well.clone()]) };
    store.write(batch).await.unwrap();
    assert_eq!(all_pairs(&store, 10).await, [well, pair(8, 0)]);
    // A pair that comes back has none of its former details.
    let mut back = pair(27, 2);
    back.observed = None;
    store.write(saving(vec![back.clone()])).await.unwrap();
    assert!(all_pairs(&store, 10).await.contains(&back));
}

/// Checks that of several batches, whether they share a commit or not, the last one decides.
pub(crate) async fn batches_are_saved_in_order(fixture: &impl Fixture) {
    let store = fixture.open().await;
    let removal = || Batch { gone: BTreeSet::from([pair_id(1)]), ..Batch::default() };
    let both = |revision| Batch { gone: BTreeSet::from([pair_id(1)]), ..saving(vec![pair(1, revision)]) };
    let writes = [saving(vec![pair(1, 0)]), removal(), saving(vec![pair(1, 1)]), both(2)];
    let (a, b, c, d) = {
        let [a, b, c, d] = writes.map(|batch| store.write(batch));
        tokio::join!(a, b, c, d)
    };
    [a, b, c, d].into_iter().for_each(|done| done.unwrap());
    assert_eq!(all_pairs(&store, 10).await, [pair(1, 2)]);
    let (a, b) = tokio::join!(store.write(saving(vec![pair(1, 3)])), store.write(removal()));
    a.and(b).unwrap();
    assert_eq!(all_pairs(&store, 10).await, []);
    store.write(Batch::default()).await.unwrap();
}

/// Checks that a saved epoch only grows, and is kept over restarts and for sources that a record does not name.
pub(crate) async fn epochs_never_become_smaller(fixture: &impl Fixture) {
    let record = |id: &str, epochs: &[(&str, u64)]| ClusterRecord {
        id: ClusterId(id.to_owned()),
        name: format!("name of {id}"),
        aliases: vec!["a".to_owned(), "b".to_owned()],
        labels: BTreeMap::from([("region".to_owned(), "eu".to_owned())]),
        heard: Some(at(5)),
        epochs: epochs.iter().map(|(source, epoch)| ((*source).to_owned(), *epoch)).collect(),
    };
    let saving = |clusters| Batch { clusters, ..Batch::default() };
    let store = fixture.open().await;
    store.write(saving(vec![record("b", &[("agent", 3)]), record("a", &[("reach-in", 7)])])).await.unwrap();
    let (one, two) = tokio::join!(
        store.write(saving(vec![record("a", &[("reach-in", 9)])])),
        store.write(saving(vec![ClusterRecord {
            heard: None,
            ..record("a", &[("reach-in", 8), ("agent", 1)])
        }])),
    );
    one.and(two).unwrap();
    fixture.close(store).await;
    let store = fixture.open().await;
    let expected = ClusterRecord { heard: None, ..record("a", &[("agent", 1), ("reach-in", 9)]) };
    assert_eq!(store.clusters().await.unwrap(), [expected, record("b", &[("agent", 3)])]);
    let forgotten = BTreeSet::from([ClusterId("a".to_owned()), ClusterId("b".to_owned())]);
    store.write(Batch { forgotten, ..saving(vec![record("b", &[])]) }).await.unwrap();
    assert_eq!(store.clusters().await.unwrap(), [record("b", &[])]);
}

/// Checks that tokens are kept over restarts, and that a revoked one is gone.
pub(crate) async fn tokens_are_created_listed_and_revoked(fixture: &impl Fixture) {
    let store = fixture.open().await;
    let (first, second) = (Token::generate().unwrap(), Token::generate().unwrap());
    let mut with_rights = second.record("it's me", at(2));
    with_rights.rights.insert("logs".to_owned());
    with_rights.expires = Some(at(3));
    store.add_token(with_rights.clone()).await.unwrap();
    store.add_token(first.record("ci", at(1))).await.unwrap();
    fixture.close(store).await;
    let store = fixture.open().await;
    let tokens = store.tokens().await.unwrap();
    assert_eq!(tokens, [first.record("ci", at(1)), with_rights.clone()]);
    assert!(tokens.iter().any(|token| token.admits(first.as_str(), at(9))));
    assert!(store.revoke_token(tokens[0].id.clone()).await.unwrap());
    assert!(!store.revoke_token(tokens[0].id.clone()).await.unwrap());
    assert_eq!(store.tokens().await.unwrap(), [with_rights]);
}

/// Checks that a backup has all that was acknowledged before it, and that a store restored from it goes on.
pub(crate) async fn a_backup_holds_what_was_saved_before_it(fixture: &impl Fixture) {
    let store = fixture.open().await;
    let saved: Vec<_> = (0..100).map(|number| pair(number, 0)).collect();
    store.write(saving(saved.clone())).await.unwrap();
    let backup = fixture.folder().join("backup");
    let (done, during) = tokio::join!(store.backup(&backup), store.write(batch_of(200, 5)));
    done.and(during).unwrap();
    let again = store.backup(&backup).await.unwrap_err();
    assert!(matches!(again, StoreError::File { .. }), "{again:?}");
    store.write(Batch { gone: (0..100).map(pair_id).collect(), ..Batch::default() }).await.unwrap();
    assert_eq!(all_pairs(&store, 1_000).await.len(), 1);
    fixture.close(store).await;
    fixture.restore(&backup).await;
    let store = fixture.open().await;
    let mut found = all_pairs(&store, 1_000).await;
    found.retain(|pair| pair.id != pair_id(200));
    assert_eq!(found, saved);
    store.write(batch_of(300, 7)).await.unwrap();
    assert!(store.state_at(pair_id(300), at(7)).await.unwrap().is_some());
}

/// Checks that without space nothing is acknowledged, all that was acknowledged can be read, and the store says
/// why.
pub(crate) async fn a_full_store_acknowledges_nothing_and_can_be_read(fixture: &impl Fixture) {
    let store = fixture.open_nearly_full().await;
    assert!(store.health().await.unwrap().is_writable);
    let mut acknowledged = Vec::new();
    let error = loop {
        let first = acknowledged.len();
        let batch: Vec<_> = (first..first + 50).map(|number| pair(number, number)).collect();
        match store.write(saving(batch.clone())).await {
            Ok(()) => acknowledged.extend(batch),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 10_000, "the store never fills up");
    };
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    assert!(!acknowledged.is_empty());
    assert_eq!(all_pairs(&store, 10_000).await, acknowledged);
    let health = store.health().await.unwrap();
    assert!(!health.is_writable && health.is_full && health.failure.is_some(), "{health:?}");
    fixture.close(store).await;
    let store = fixture.open().await;
    assert_eq!(all_pairs(&store, 10_000).await, acknowledged);
    store.write(saving(vec![pair(9_999, 0)])).await.unwrap();
    assert!(store.health().await.unwrap().is_writable);
}

/// Checks that a text which is not a cursor of the list is an error, not another page.
pub(crate) async fn cursors_of_others_are_refused(fixture: &impl Fixture) {
    let store = fixture.open().await;
    store.write(batch_of(1, 5)).await.unwrap();
    for text in ["", "x", "5-", "1-3-3", "zz-0-1", "1-1-x", "'", "-", "1-0-99999999999999999999"] {
        let page = || PageQuery { after: Some(Cursor::new(text)), ..limit(5) };
        let errors = [
            store.states_at(at(9), page()).await.map(drop).unwrap_err(),
            store.history(pair_id(1), at(0)..at(9), page()).await.map(drop).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, StoreError::InvalidCursor(_)), "{text}: {error:?}");
        }
    }
}
