//! A hub that starts again: pages, epochs and history come from the store.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_api::hub::PairState;
use taffrail_api::report::{Buckets, Content, Half, LOST};
use taffrail_apps::{FreshnessState, SyncAttempt, SyncResult};
use taffrail_status::Status;

use crate::agents::AGENT;
use crate::clock::HubTime;
use crate::index::journal::{self, pair_id};
use crate::index::pair::ListedPair;
use crate::index::samples::{SampleFleet, app, declared, id, observed};
use crate::index::tests::disturb;
use crate::index::{FleetView, recent};
use crate::store::sqlite::{SqliteStore, restore};
use crate::store::{HistoryEntry, PageQuery, PairId, Store, StoreError};

/// A store in a folder of its own.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("hub.db")
    }

    async fn open(&self) -> SqliteStore {
        SqliteStore::open_quick(&self.path(), None).await.unwrap()
    }
}

/// Saves all that was published.
async fn save(fleet: &SampleFleet, store: &impl Store) {
    fleet.index.publish();
    tokio::select! {
        () = fleet.index.save(store) => {}
        is_saved = fleet.index.saved() => assert!(is_saved),
    }
}

/// Returns the states of all pairs as the last view showed them.
fn states(fleet: &SampleFleet) -> BTreeMap<PairId, PairState> {
    states_of(&fleet.index.last_view())
}

/// Returns the states of all pairs as a view shows them, which are those of its rows.
fn states_of(view: &FleetView) -> BTreeMap<PairId, PairState> {
    let of = |(place, cluster): (usize, &Arc<crate::index::published::PublishedCluster>)| {
        let state = |ListedPair { pair, class, .. }: ListedPair<'_>| {
            let state = recent::state(pair, view.now(place, class));
            let row = view.row(pair);
            assert_eq!((state.health, state.effective), (row.health, row.effective), "{row:?}");
            assert_eq!(state.sync, row.sync.effective, "{row:?}");
            assert_eq!(recent::past_freshness(&state), row.freshness.state, "{row:?}");
            (pair_id(pair), state)
        };
        cluster.pairs.iter().map(state).collect::<Vec<_>>()
    };
    view.fleet().all().flat_map(of).collect()
}

/// Returns the states of all pairs at a moment, as the store has them.
async fn saved_states(store: &impl Store, at: Timestamp) -> BTreeMap<PairId, PairState> {
    let limit = std::num::NonZeroUsize::new(7).unwrap();
    let mut query = PageQuery::first(limit);
    let mut found = BTreeMap::new();
    loop {
        let page = store.states_at(at, query.clone()).await.unwrap();
        found.extend(page.items);
        match page.next {
            Some(next) => query = query.next(next),
            None => return found,
        }
    }
}

async fn history(store: &impl Store, pair: &PairId) -> Vec<HistoryEntry> {
    let limit = std::num::NonZeroUsize::new(100_000).unwrap();
    let range = Timestamp::MIN..Timestamp::MAX;
    store.history(pair.clone(), range, PageQuery::first(limit)).await.unwrap().items
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_shows_all_rows_at_once_and_none_is_live_before_it_was_heard() {
    let place = Place::new();
    let store = place.open().await;
    let fleet = SampleFleet::restored(None, &store).await;
    let fleet = fleet.with("eu", &[("web", Status::Failed, "no such image"), ("db", Status::Current, "")]);
    fleet.pass(10);
    save(&fleet, &store).await;
    let before = states(&fleet);
    assert_eq!(before.len(), 2);
    let first_epoch = fleet.epoch("eu", "observer");
    store.close().await;

    fleet.pass(20);
    let store = place.open().await;
    let fleet = SampleFleet::restored(Some(&fleet), &store).await;
    let view = fleet.index.view();
    let rows: Vec<_> =
        view.fleet().all().flat_map(|(_, it)| it.pairs.pairs.iter()).map(|it| view.row(it)).collect();
    assert_eq!(rows.iter().map(|row| &*row.name).collect::<Vec<_>>(), ["db", "web"]);
    assert_eq!(rows.iter().map(|row| row.health).collect::<Vec<_>>(), [Status::Current, Status::Failed]);
    assert_eq!(rows.iter().map(|row| &*row.cluster).collect::<Vec<_>>(), ["eu"; 2]);
    assert!(rows[1].message.contains("no such image"), "{}", rows[1].message);
    for row in &rows {
        assert_eq!((row.effective, row.freshness.state), (Status::Unknown, FreshnessState::Stale));
    }
    // The time between is that of nobody.
    let gap = states(&fleet);
    save(&fleet, &store).await;
    let until = fleet.now() - jiff::SignedDuration::from_secs(1);
    assert_eq!(saved_states(&store, until).await, gap);

    // An old report, or one proof alone, makes nothing live.
    fleet.open("eu", "observer");
    assert!(fleet.epoch("eu", "observer") > first_epoch + 1_000);
    fleet.index.publish();
    assert!(states(&fleet).values().all(|state| state.effective == Status::Unknown));
    let halves = [declared(&app("eu", "db"), "eu", |_| {}), observed(&app("eu", "db"), Status::Current, "")];
    fleet.snapshot("eu", halves.into());
    fleet.pass(15);
    fleet.send("eu", "observer", Content::Heartbeat);
    save(&fleet, &store).await;
    let shown = states(&fleet);
    assert_eq!(shown.values().map(|state| state.effective).collect::<Vec<_>>(), [Status::Current]);
    assert_eq!(saved_states(&store, fleet.now()).await, shown);

    // Days later it is lost.
    fleet.pass(86_400);
    let fleet = SampleFleet::restored(Some(&fleet), &store).await;
    assert!(states(&fleet).values().all(|state| state.problem.as_deref() == Some("lost")));
    // And forgotten, unless a source tells of it again.
    let keep = fleet.index.keep_history(&store, Duration::from_secs(3600));
    drop(tokio::time::timeout(Duration::from_millis(300), keep).await);
    save(&fleet, &store).await;
    assert!(states(&fleet).is_empty() && store.clusters().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_need_not_send_again_what_the_store_keeps() {
    let place = Place::new();
    let app = app("eu", "web");
    let halves = || vec![declared(&app, "eu", |_| {}), observed(&app, Status::Current, "")];
    // An agent that is started again computes fingerprints with another key.
    let renewed = || halves().into_iter().map(|it| Half { fingerprint: !it.fingerprint, ..it }).collect();
    let mut store = place.open().await;
    let mut fleet = SampleFleet::restored(None, &store).await;
    let runs: [(Vec<Half>, Vec<Half>); 3] = [(vec![], halves()), (halves(), renewed()), (renewed(), vec![])];
    for (kept, sent) in runs {
        fleet.pass(15);
        fleet.open("eu", AGENT);
        let mut digest = Buckets::default();
        kept.iter().for_each(|half| digest.toggle(half.fingerprint));
        fleet.send("eu", AGENT, Content::Digest(digest));
        fleet.pass(15);
        fleet.send("eu", AGENT, Content::Heartbeat);
        fleet.index.publish();
        let shown = states(&fleet).into_values().map(|state| state.effective).collect::<Vec<_>>();
        assert_eq!(shown, vec![Status::Current; kept.len() / 2], "an equal digest is a proof");
        if !sent.is_empty() {
            fleet.send(
                "eu",
                AGENT,
                Content::Snapshot { buckets: u64::MAX, part: 0, is_last: true, halves: sent },
            );
        }
        save(&fleet, &store).await;
        store.close().await;
        store = place.open().await;
        fleet = SampleFleet::restored(Some(&fleet), &store).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_that_was_saved_before_it_told_its_apps_is_stale_after_a_restart() {
    let place = Place::new();
    let store = place.open().await;
    let fleet = SampleFleet::restored(None, &store).await;
    fleet.open("eu", "observer");
    save(&fleet, &store).await;
    let halves = [declared(&app("eu", "db"), "eu", |_| {}), observed(&app("eu", "db"), Status::Current, "")];
    fleet.snapshot("eu", halves.into());
    save(&fleet, &store).await;
    let fleet = SampleFleet::restored(Some(&fleet), &store).await;
    let coverage = fleet.index.view().coverage(&crate::AppFilter::default());
    assert_eq!(coverage.state, taffrail_api::hub::AnswerState::Stale, "{coverage:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_that_come_before_the_gap_is_recorded_do_not_hide_it() {
    let place = Place::new();
    let store = place.open().await;
    let fleet = SampleFleet::restored(None, &store).await.with("eu", &[("web", Status::Current, "")]);
    save(&fleet, &store).await;
    fleet.pass(20);
    let fleet = SampleFleet::restored(Some(&fleet), &store).await;
    let between = fleet.now();
    fleet.pass(10);
    let fleet = fleet.with("eu", &[("web", Status::Current, "")]);
    fleet.pass(15);
    fleet.send("eu", "observer", Content::Heartbeat);
    save(&fleet, &store).await;
    for (at, effective) in [(between, Status::Unknown), (fleet.now(), Status::Current)] {
        let states = saved_states(&store, at).await;
        assert_eq!(states.values().map(|state| state.effective).collect::<Vec<_>>(), [effective], "{at}");
    }
}

/// The answers that the store must give: each state that the views showed, from the moment at which they did.
#[derive(Default, Clone)]
struct Log(BTreeMap<PairId, BTreeMap<Timestamp, Option<PairState>>>);

impl Log {
    /// Notes what live answers show from the last publication on, until the present moment: the fleet that was published,
    /// at each of the moments at which a cluster of these tests can turn.
    fn note_answers(&mut self, fleet: &SampleFleet) {
        let (end, last) = (fleet.index.clock().time(), fleet.index.last_view());
        let seconds = last.moment().at.as_secs()..end.at.as_secs();
        // Later all that can turn has turned.
        for second in seconds.take(LOST.as_secs() as usize + 1) {
            let at = Duration::from_secs(second) + Duration::from_micros(1);
            let moment = HubTime { at, now: journal::time_of(at, end) };
            self.note(moment.now, &states_of(&fleet.index.last_view().at(moment)));
        }
    }

    fn note(&mut self, at: Timestamp, shown: &BTreeMap<PairId, PairState>) {
        for (pair, times) in &mut self.0 {
            if !shown.contains_key(pair) && times.last_key_value().is_some_and(|(_, last)| last.is_some()) {
                times.insert(at, None);
            }
        }
        for (pair, state) in shown {
            let times = self.0.entry(pair.clone()).or_default();
            if times.last_key_value().is_none_or(|(_, last)| last.as_ref() != Some(state)) {
                times.insert(at, Some(state.clone()));
            }
        }
    }

    async fn check(&self, store: &impl Store, random: &mut fastrand::Rng, until: Timestamp) {
        let since = store.recorded().await.unwrap().since.unwrap();
        let pairs: Vec<&PairId> = self.0.keys().collect();
        for _ in 0..1_000 {
            let pair = pairs[random.usize(..pairs.len())];
            let times = &self.0[pair];
            let at = match random.bool() {
                true => *times.keys().nth(random.usize(..times.len())).unwrap(),
                false => {
                    Timestamp::from_microsecond(random.i64(since.as_microsecond()..=until.as_microsecond()))
                        .unwrap()
                }
            };
            if at < since || at > until {
                continue;
            }
            let expected = times.range(..=at).next_back().and_then(|(_, state)| state.clone());
            let found = store.state_at(pair.clone(), at).await.unwrap();
            assert_eq!(found, expected, "{pair:?} at {at}");
        }
        for pair in pairs {
            let told: Vec<(Timestamp, Option<PairState>)> = history(store, pair)
                .await
                .into_iter()
                .filter_map(|entry| match entry {
                    HistoryEntry::Transition(it) => Some((it.at, it.after)),
                    HistoryEntry::Sync(_) | HistoryEntry::Operation(_) => None,
                })
                .collect();
            let kept = self.0[pair].range(since..=until).rev();
            let expected: Vec<_> = kept.map(|(at, state)| (*at, state.clone())).collect();
            assert_eq!(told, expected, "{pair:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_equals_what_views_showed_through_restarts_retention_and_restore() {
    let mut random = fastrand::Rng::with_seed(23);
    let place = Place::new();
    let mut store = place.open().await;
    let mut fleet = SampleFleet::restored(None, &store).await;
    let mut log = Log::default();
    let mut copies = Vec::new();
    for round in 0..600 {
        // Each publication has a moment of its own.
        fleet.pass(1);
        if round % 97 == 96 {
            fleet.pass(86_400 / 2);
        }
        (0..random.usize(1..4)).for_each(|_| disturb(&fleet, &mut random));
        log.note_answers(&fleet);
        fleet.index.publish();
        log.note(fleet.now(), &states(&fleet));
        if random.u8(..4) == 0 {
            save(&fleet, &store).await;
        }
        match round {
            150 | 300 | 450 => {
                save(&fleet, &store).await;
                let until = store.recorded().await.unwrap().until.unwrap();
                assert_eq!(until, fleet.now());
                store.close().await;
                store = place.open().await;
                fleet.pass(100);
                fleet = SampleFleet::restored(Some(&fleet), &store).await;
                log.note(until + Duration::from_micros(1), &states(&fleet));
                save(&fleet, &store).await;
                log.check(&store, &mut random, fleet.now()).await;
            }
            200 => {
                save(&fleet, &store).await;
                let file = place.0.path().join("backup");
                store.backup(&file).await.unwrap();
                copies.push((file, log.clone(), fleet.now()));
            }
            400 => {
                save(&fleet, &store).await;
                let dropped = store.drop_history(fleet.now() - Duration::from_secs(86_400)).await.unwrap();
                assert!(dropped.transitions > 0);
                log.check(&store, &mut random, fleet.now()).await;
            }
            _ => {}
        }
    }
    save(&fleet, &store).await;
    let since = store.recorded().await.unwrap().since.unwrap();
    let error = store.states_at(since - Duration::from_secs(1), PageQuery::first(super::PAGE)).await;
    assert!(matches!(error.map(drop), Err(StoreError::HistoryDropped { .. })));
    log.check(&store, &mut random, fleet.now()).await;
    store.close().await;
    let (file, log, until) = copies.pop().unwrap();
    restore(&file, &place.path()).await.unwrap();
    log.check(&place.open().await, &mut random, until).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_sync_is_one_entry_however_often_it_is_told() {
    let place = Place::new();
    let store = place.open().await;
    let fleet = SampleFleet::restored(None, &store).await.with("eu", &[("web", Status::Current, "")]);
    let at = |seconds| Timestamp::from_second(seconds).unwrap();
    let attempt = |revision: &str, began, result, message: &str| SyncAttempt {
        revision: revision.to_owned(),
        began: at(began),
        ended: (result != SyncResult::Running).then(|| at(began + 5)),
        result,
        message: message.into(),
    };
    let tell = |syncs: Vec<SyncAttempt>| {
        fleet.change("eu", "observer", vec![declared(&app("eu", "web"), "eu", |half| half.syncs = syncs)]);
    };
    let first = attempt("a", 100, SyncResult::Succeeded, "");
    tell(vec![attempt("b", 200, SyncResult::Running, "waits"), first.clone()]);
    save(&fleet, &store).await;
    let failed = attempt("b", 200, SyncResult::Failed, &"hook failed ".repeat(1_000));
    tell(vec![failed.clone(), first.clone()]);
    tell(vec![attempt("b", 300, SyncResult::Succeeded, "synced"), failed, first]);
    save(&fleet, &store).await;
    let pair = PairId { cluster: id("eu"), app: app("eu", "web") };
    let syncs: Vec<_> = history(&store, &pair)
        .await
        .into_iter()
        .filter_map(|entry| match entry {
            HistoryEntry::Sync(sync) => Some(sync),
            HistoryEntry::Transition(_) | HistoryEntry::Operation(_) => None,
        })
        .collect();
    let told: Vec<_> = syncs.iter().map(|it| (&*it.revision, it.began, it.result)).collect();
    let expected = [
        ("b", at(300), SyncResult::Succeeded),
        ("b", at(200), SyncResult::Failed),
        ("a", at(100), SyncResult::Succeeded),
    ];
    assert_eq!(told, expected);
    assert!(syncs[1].message.starts_with("hook failed") && syncs[1].message.len() <= 4_200);
    // The index does not keep them.
    let view = fleet.index.last_view();
    let mut pairs = view.fleet().all().flat_map(|(_, cluster)| cluster.pairs.pairs.iter());
    assert!(pairs.all(|pair| pair.declared.body.syncs.is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_store_loses_nothing_that_the_hub_still_knows() {
    let place = Place::new();
    let store = SqliteStore::open_quick(&place.path(), Some(100)).await.unwrap();
    let fleet = SampleFleet::restored(None, &store).await.with("eu", &[("web", Status::Current, "")]);
    save(&fleet, &store).await;
    let names: Vec<String> = (0..3_000).map(|number| format!("app-{number}")).collect();
    let apps: Vec<(&str, Status, &str)> =
        names.iter().map(|name| (&**name, Status::Failed, &**name)).collect();
    let fleet = fleet.with("us", &apps);
    tokio::select! {
        () = fleet.index.save(&store) => {}
        is_saved = fleet.index.saved() => assert!(!is_saved),
    }
    let health = store.health().await.unwrap();
    assert!(health.is_full && !health.is_writable, "{health:?}");
    assert!(fleet.index.unsaved().unwrap().pending > 0);
    // Reading goes on, and a stream is accepted.
    assert_eq!(states(&fleet).len(), 3_001);
    assert_eq!(saved_states(&store, fleet.now()).await.len(), 1);
    store.close().await;
    let store = place.open().await;
    save_again(&fleet, &store).await;
    assert_eq!(saved_states(&store, fleet.now()).await, states(&fleet));
    let counts = fleet.index.unsaved().unwrap();
    assert_eq!((counts.pending, counts.lost), (0, 0));
}

/// Saves after a failure, which `saved` would tell at once.
async fn save_again(fleet: &SampleFleet, store: &impl Store) {
    let saved = async {
        while fleet.index.unsaved().is_some_and(|counts| counts.pending > 0) || !fleet.index.saved().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = fleet.index.save(store) => {}
        () = saved => {}
    }
}

/// Names the store to the process that [`what_was_saved_survives_kill_9`] kills, and the number of kills before.
const VICTIM: &str = "TAFFRAIL_TEST_HUB";

/// The number of kills, if it is not [`KILLS`].
const KILLS_SET: &str = "TAFFRAIL_TEST_KILLS";
const KILLS: usize = 10;

/// Runs a hub under load until it is killed, and prints what was saved each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn victim() {
    let Ok(told) = std::env::var(VICTIM) else { return };
    let (round, path) = told.split_once(' ').unwrap();
    let round: u64 = round.parse().unwrap();
    let store = SqliteStore::open_quick(Path::new(path), None).await.unwrap();
    let fleet = SampleFleet::restored_at(round * 100_000, &store).await;
    let mut random = fastrand::Rng::with_seed(round);
    let load = async {
        let mut before = states(&fleet);
        loop {
            fleet.pass(1);
            (0..random.usize(1..20)).for_each(|_| disturb(&fleet, &mut random));
            fleet.index.publish();
            let shown = states(&fleet);
            // What did not change is not recorded before the next change.
            if shown != before && fleet.index.saved().await {
                before.clone_from(&shown);
                let states: Vec<(PairId, PairState)> = shown.into_iter().collect();
                let epochs = fleet.epochs();
                let line = serde_json::to_string(&(fleet.now(), states, epochs)).unwrap();
                std::io::stdout().write_all(format!("saved {line}\n").as_bytes()).unwrap();
            }
        }
    };
    tokio::join!(fleet.index.save(&store), load);
}

#[tokio::test]
async fn what_was_saved_survives_kill_9() {
    type Saved = (Timestamp, Vec<(PairId, PairState)>, BTreeMap<String, u64>);
    let kills = std::env::var(KILLS_SET).ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let place = Place::new();
    let mut all: Vec<Saved> = Vec::new();
    for round in 1..=kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "index::saving::tests::victim", "--nocapture"])
            .env(VICTIM, format!("{round} {}", place.path().display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut saved: Vec<Saved> = Vec::new();
        for line in lines.map_while(Result::ok) {
            // The last line may be torn.
            let read = line.split_once("saved ").and_then(|(_, line)| serde_json::from_str(line).ok());
            saved.extend(read);
            if saved.len() == 20 + round % 7 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(saved.len() >= 20, "{} were saved", saved.len());
        let store = place.open().await;
        for (at, states, epochs) in &saved {
            let expected: BTreeMap<PairId, PairState> = states.iter().cloned().collect();
            assert_eq!(saved_states(&store, *at).await, expected, "round {round} at {at}");
            assert!(store.recorded().await.unwrap().until >= Some(*at));
            let known = store.clusters().await.unwrap();
            let epoch = |name: &str| {
                let (cluster, source) = name.split_once(' ').unwrap();
                known.iter().find(|it| it.id == id(cluster))?.epochs.get(source).copied()
            };
            // A cluster may have been forgotten since.
            assert!(epochs.iter().all(|(name, given)| epoch(name).is_none_or(|saved| saved >= *given)));
        }
        store.close().await;
        all.extend(saved);
    }
    // Later runs changed nothing of it.
    let store = place.open().await;
    for (at, states, _) in all.iter().step_by(10) {
        assert_eq!(saved_states(&store, *at).await, states.iter().cloned().collect(), "at {at}");
    }
}
