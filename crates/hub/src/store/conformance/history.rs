//! Cases about history: transitions, syncs, past states, retention.

use std::collections::{BTreeMap, BTreeSet};

use taffrail_apps::SyncState;
use taffrail_status::Status;

use super::{Fixture, all_pairs, all_states, at, batch_of, limit, pair, pair_id, saving};
use crate::store::{
    Batch, DroppedHistory, HistoryEntry, HistoryRange, PairId, PairState, PairTransition, Store, StoreError,
    SyncRecord, SyncResult,
};

/// The microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Returns the state that `number` stands for; the problem of one that is not Current is `problem N`.
pub(super) fn state_of(number: usize) -> PairState {
    let health = Status::ALL[number % 6];
    let effective = if number.is_multiple_of(7) { Status::Unknown } else { health };
    let problem = (health != Status::Current).then(|| format!("problem {}", number % 11));
    PairState { health, effective, sync: SyncState::ALL[number % 5], problem }
}

fn transition(number: usize, micros: i64, after: Option<usize>) -> PairTransition {
    let before = Some(state_of(number));
    PairTransition { pair: pair_id(number), at: at(micros), before, after: after.map(state_of) }
}

fn sync(number: usize, began: i64, revision: &str, result: SyncResult) -> SyncRecord {
    SyncRecord {
        pair: pair_id(number),
        revision: revision.to_owned(),
        began: at(began),
        ended: (result != SyncResult::Running).then(|| at(began + 10)),
        result,
        message: format!("{result:?} {revision}"),
    }
}

/// Reads the history of a pair in `range` (microseconds) in pages of `size`, the latest first.
async fn all_history(
    store: &impl Store,
    pair: &PairId,
    range: std::ops::Range<i64>,
    size: usize,
) -> Vec<HistoryEntry> {
    let mut query = limit(size);
    let mut found = Vec::new();
    loop {
        let page = store.history(pair.clone(), at(range.start)..at(range.end), query.clone()).await.unwrap();
        assert!(page.items.len() <= size);
        found.extend(page.items);
        match page.next {
            Some(next) => query = query.next(next),
            None => return found,
        }
    }
}

/// Checks that every page size gives the same entries once each, the latest first, and none of other pairs or times.
pub(crate) async fn history_is_read_in_pages(fixture: &impl Fixture) {
    let store = fixture.open().await;
    let mut random = fastrand::Rng::with_seed(4);
    let mut batch = Batch::default();
    let mut moments = BTreeSet::new();
    for number in 0..400 {
        let (pair, time) = (number % 2, random.i64(0..200) * DAY / 40);
        if moments.insert((pair, time)) {
            batch.transitions.push(transition(pair, time, Some(number)));
        }
        // Several syncs, and a transition, at one moment.
        for revision in 0..random.usize(0..3) {
            batch.syncs.push(sync(pair, time, &format!("r{revision}"), SyncResult::Succeeded));
        }
    }
    store.write(batch.clone()).await.unwrap();
    let range = DAY / 40..4 * DAY;
    let all = all_history(&store, &pair_id(0), range.clone(), 10_000).await;
    let is_in = |time: jiff::Timestamp| range.contains(&time.as_microsecond());
    let mut expected: Vec<HistoryEntry> = Vec::new();
    for entry in batch.transitions.into_iter().filter(|it| it.pair == pair_id(0) && is_in(it.at)) {
        expected.push(HistoryEntry::Transition(entry));
    }
    for entry in batch.syncs.into_iter().filter(|it| it.pair == pair_id(0) && is_in(it.began)) {
        let entry = HistoryEntry::Sync(entry);
        if !expected.contains(&entry) {
            expected.push(entry);
        }
    }
    assert!(all.is_sorted_by(|a, b| a.at() >= b.at()));
    assert_eq!(all.len(), expected.len());
    assert!(expected.iter().all(|entry| all.contains(entry)));
    for size in [1, 2, 3, 10, all.len(), all.len() + 1] {
        assert_eq!(all_history(&store, &pair_id(0), range.clone(), size).await, all, "pages of {size}");
    }
    assert_eq!(all_history(&store, &pair_id(55), range, 10).await, []);
    assert_eq!(all_history(&store, &pair_id(0), 5..5, 10).await, []);
}

/// Checks that a batch which is written again, because its acknowledgement was lost, changes nothing.
pub(crate) async fn writing_twice_changes_nothing(fixture: &impl Fixture) {
    let store = fixture.open().await;
    let batch = Batch {
        // Two changes in one microsecond.
        transitions: vec![transition(1, 5, Some(2)), transition(1, 6, Some(3)), transition(1, 6, Some(4))],
        syncs: vec![
            sync(1, 5, "a", SyncResult::Running),
            sync(1, 5, "a", SyncResult::Failed),
            sync(1, 5, "b", SyncResult::Running),
        ],
        ..saving(vec![pair(1, 0)])
    };
    store.write(batch.clone()).await.unwrap();
    let (history, pairs) = (all_history(&store, &pair_id(1), 0..9, 10).await, all_pairs(&store, 10).await);
    assert_eq!(history.len(), 4);
    assert_eq!(store.state_at(pair_id(1), at(6)).await.unwrap(), Some(state_of(4)));
    let (a, b) = tokio::join!(store.write(batch.clone()), store.write(batch.clone()));
    a.and(b).unwrap();
    store.write(batch).await.unwrap();
    assert_eq!(all_history(&store, &pair_id(1), 0..9, 10).await, history);
    assert_eq!(all_pairs(&store, 10).await, pairs);
}

/// Checks that a sync which has ended stays so when an older record of it comes late; another end replaces it.
pub(crate) async fn a_running_sync_does_not_replace_its_end(fixture: &impl Fixture) {
    let store = fixture.open().await;
    let write = async |record: &SyncRecord| {
        store.write(Batch { syncs: vec![record.clone()], ..Batch::default() }).await.unwrap();
        all_history(&store, &pair_id(1), 0..9, 10).await
    };
    let [running, failed, succeeded] = [SyncResult::Running, SyncResult::Failed, SyncResult::Succeeded]
        .map(|result| sync(1, 5, "a", result));
    assert_eq!(write(&running).await, [HistoryEntry::Sync(running.clone())]);
    assert_eq!(write(&failed).await, [HistoryEntry::Sync(failed.clone())]);
    assert_eq!(write(&running).await, [HistoryEntry::Sync(failed.clone())]);
    assert_eq!(write(&succeeded).await, [HistoryEntry::Sync(succeeded.clone())]);
    // What a tool remembers has no message.
    let remembered = SyncRecord { message: String::new(), ended: Some(at(6)), ..failed.clone() };
    assert_eq!(write(&remembered).await, [HistoryEntry::Sync(succeeded)]);
    let other = SyncRecord { revision: "b".to_owned(), ..running };
    write(&other).await;
    let ended = SyncRecord { revision: "b".to_owned(), ..remembered };
    assert!(write(&ended).await.contains(&HistoryEntry::Sync(ended)));
}

/// Checks that history begins with the first moment up to which everything was recorded; no earlier state is made up.
pub(crate) async fn moments_before_history_began_are_refused(fixture: &impl Fixture) {
    let store = fixture.open().await;
    assert_eq!(store.recorded().await.unwrap(), HistoryRange::default());
    let recording = |micros| Batch { recorded: Some(at(micros)), ..batch_of(1, micros) };
    store.write(recording(100)).await.unwrap();
    let (a, b) = tokio::join!(store.write(recording(300)), store.write(recording(200)));
    a.and(b).unwrap();
    store.write(Batch { recorded: Some(at(400)), ..Batch::default() }).await.unwrap();
    fixture.close(store).await;
    let store = fixture.open().await;
    let range = HistoryRange { since: Some(at(100)), until: Some(at(400)) };
    assert_eq!(store.recorded().await.unwrap(), range);
    let error = store.state_at(pair_id(1), at(99)).await.unwrap_err();
    assert!(matches!(error, StoreError::HistoryDropped { since } if since == at(100)), "{error:?}");
    assert!(store.state_at(pair_id(1), at(100)).await.unwrap().is_some());
    store.drop_history(at(DAY)).await.unwrap();
    assert_eq!(store.recorded().await.unwrap().since, Some(at(DAY)));
}

/// The states of each pair, by the microsecond at which it came to have them; `None` if it did not exist.
#[derive(Default)]
struct Log(BTreeMap<PairId, BTreeMap<i64, Option<PairState>>>);

impl Log {
    fn state(&self, pair: &PairId, moment: i64) -> Option<PairState> {
        self.0.get(pair)?.range(..=moment).next_back()?.1.clone()
    }

    fn states(&self, moment: i64) -> Vec<(PairId, PairState)> {
        self.0.keys().filter_map(|pair| Some((pair.clone(), self.state(pair, moment)?))).collect()
    }
}

/// The number of days of the log.
const DAYS: i64 = 12;

async fn check(store: &impl Store, log: &Log, random: &mut fastrand::Rng, since: i64) {
    for _ in 0..1_000 {
        let pair = pair_id(random.usize(0..42));
        // Some exactly at a transition.
        let times = log.0.get(&pair).map(|times| times.range(since..).map(|it| *it.0).collect::<Vec<_>>());
        let moment = match times {
            Some(times) if random.bool() && !times.is_empty() => {
                (times[random.usize(0..times.len())] - i64::from(random.bool())).max(since)
            }
            _ => random.i64(since..(DAYS + 2) * DAY),
        };
        let found = store.state_at(pair.clone(), at(moment)).await.unwrap();
        assert_eq!(found, log.state(&pair, moment), "{pair:?} at {moment}");
    }
    for size in [7, 40, 1_000] {
        let moment = random.i64(since..DAYS * DAY);
        assert_eq!(all_states(store, at(moment), size).await, log.states(moment), "all at {moment}");
    }
}

/// Checks that the states of 1,000 random pairs and moments equal those of a plain list: at first, after a restart,
/// after history was dropped, and after a restore.
pub(crate) async fn states_at_equal_a_naive_log(fixture: &impl Fixture) {
    let mut random = fastrand::Rng::with_seed(11);
    let mut log = Log::default();
    let store = fixture.open().await;
    for _ in 0..20 {
        let mut batch = Batch::default();
        for _ in 0..100 {
            // Some pairs change often, some once, two never.
            let number = random.usize(0..40).min(random.usize(0..40));
            let time = random.i64(0..DAYS * DAY);
            let after = (random.u8(0..5) > 0).then(|| random.usize(0..60));
            batch.transitions.push(transition(number, time, after));
            log.0.entry(pair_id(number)).or_default().insert(time, after.map(state_of));
        }
        store.write(batch).await.unwrap();
    }
    check(&store, &log, &mut random, 0).await;
    fixture.close(store).await;
    let store = fixture.open().await;
    check(&store, &log, &mut random, 0).await;
    let backup = fixture.folder().join("backup");
    store.backup(&backup).await.unwrap();
    for days in [3, 7] {
        let dropped = store.drop_history(at(days * DAY + 5)).await.unwrap();
        assert!(dropped.transitions > 0, "{dropped:?}");
        check(&store, &log, &mut random, days * DAY).await;
        assert!(store.state_at(pair_id(0), at(days * DAY - 1)).await.is_err());
    }
    store.drop_history(at(100 * DAY)).await.unwrap();
    assert_eq!(all_states(&store, at(100 * DAY), 10).await, log.states(100 * DAY));
    fixture.close(store).await;
    fixture.restore(&backup).await;
    let store = fixture.open().await;
    check(&store, &log, &mut random, 0).await;
}

/// Checks that dropped history is refused, and does not come back when a tool remembers it.
pub(crate) async fn dropped_history_is_refused(fixture: &impl Fixture) {
    let store = fixture.open().await;
    let batch = Batch {
        transitions: vec![
            transition(1, 5, Some(1)),
            transition(1, DAY + 5, Some(2)),
            transition(1, 2 * DAY, Some(3)),
        ],
        syncs: vec![sync(1, 6, "a", SyncResult::Failed), sync(1, 2 * DAY, "b", SyncResult::Succeeded)],
        ..Batch::default()
    };
    store.write(batch.clone()).await.unwrap();
    let dropped = store.drop_history(at(2 * DAY + DAY / 2)).await.unwrap();
    assert_eq!(dropped, DroppedHistory { days: 2, transitions: 2, syncs: 1 });
    assert_eq!(store.drop_history(at(DAY)).await.unwrap(), DroppedHistory::default());
    store.write(batch).await.unwrap();
    assert_eq!(all_history(&store, &pair_id(1), 0..9 * DAY, 10).await.len(), 2);
    for error in [
        store.state_at(pair_id(1), at(2 * DAY - 1)).await.unwrap_err(),
        store.states_at(at(0), limit(5)).await.map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::HistoryDropped { since } if since == at(2 * DAY)), "{error:?}");
    }
    assert_eq!(store.state_at(pair_id(1), at(2 * DAY)).await.unwrap(), Some(state_of(3)));
}

/// Checks that pairs which are gone are forgotten with the last of their history; those that exist keep their state.
pub(crate) async fn dropping_history_forgets_what_nothing_needs(fixture: &impl Fixture) {
    let store = fixture.open().await;
    for number in 0..3 {
        store.write(batch_of(number, 5)).await.unwrap();
    }
    let ends = Batch {
        gone: BTreeSet::from([pair_id(0)]),
        transitions: vec![transition(0, DAY - 1, None)],
        ..Batch::default()
    };
    store.write(ends).await.unwrap();
    assert_eq!(store.state_at(pair_id(0), at(9)).await.unwrap(), Some(state_of(0)));
    store.drop_history(at(DAY)).await.unwrap();
    let states = all_states(&store, at(DAY), 10).await;
    assert_eq!(states, [(pair_id(1), state_of(1)), (pair_id(2), state_of(2))]);
    assert_eq!(all_pairs(&store, 10).await.len(), 2);
    // One that comes back begins a new history.
    store.write(batch_of(0, 3 * DAY)).await.unwrap();
    assert_eq!(store.state_at(pair_id(0), at(2 * DAY)).await.unwrap(), None);
    assert_eq!(store.state_at(pair_id(0), at(3 * DAY)).await.unwrap(), Some(state_of(0)));
    assert_eq!(all_pairs(&store, 10).await.len(), 3);
}
