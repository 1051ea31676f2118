//! Transitions that agents note while they are not connected.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_agent::{AgentEvent, AgentSettings, Spool, SpoolError};
use taffrail_api::report::{AppTransition, Content, Half, HalfBody, HalfThen, Noted};
use taffrail_apps::ClusterId;
use taffrail_cluster::BootClock;
use taffrail_hub::store::{HistoryEntry, PageQuery, PairId, PairState, Store as _};
use taffrail_status::Status;

use crate::hub::{LONG, TestAgent, TestHub};
use crate::reporting::{halves, report_one_app, snapshot};

fn uid(name: &str) -> ClusterId {
    ClusterId(name.to_owned())
}

/// Returns the halves of an app of `home` in its own cluster, whose objects have this status.
fn halves_with(home: &str, name: &str, health: Status) -> Vec<Half> {
    let mut halves = halves(home, home, name);
    if let HalfBody::Observed(observed) = &mut halves[1].body {
        observed.health = health;
        halves[1].fingerprint = health as u64 + 10;
    }
    halves
}

/// Returns the note that the objects of an app got this status.
fn turned(home: &str, name: &str, health: Status) -> AppTransition {
    let half = halves_with(home, name, health).remove(1);
    let HalfBody::Observed(observed) = half.body else { panic!() };
    AppTransition { app: half.app, declared: None, observed: Some(HalfThen::Is(observed)) }
}

/// A hub with history, an agent of `uid-1`, and one clock for both.
struct Fixture {
    hub: TestHub,
    agent: TestAgent,
    spool: Arc<Spool>,
    clock: BootClock,
    folder: tempfile::TempDir,
    begun: Timestamp,
}

impl Fixture {
    /// Starts an agent that has reported that the app `web` is Ready.
    async fn start(make: impl FnOnce(BootClock) -> Arc<Spool>) -> Fixture {
        let hub = TestHub::recording().await;
        let folder = tempfile::tempdir().unwrap();
        let clock = BootClock::default();
        let spool = make(clock.clone());
        let token = Some(hub.token(None, 3600).await);
        let settings = hub.settings(folder.path(), "uid-1", "eu-1");
        let settings = AgentSettings { token, spool: Arc::clone(&spool), ..settings };
        let mut agent = TestAgent::start(settings);
        agent.connected().await;
        spool.note(&uid("uid-1"), Noted::Begun);
        report_one_app(&mut agent, "uid-1").await;
        hub.until(|view| view.counts().current == 1).await;
        assert!(hub.index.saved().await);
        let begun = hub.index.clock().time().now;
        Fixture { hub, agent, spool, clock, folder, begun }
    }

    /// Lets time pass for hub and agent.
    fn wait(&self, seconds: i64) {
        self.hub.wait(seconds);
        self.clock.sleep(Duration::from_secs(seconds.unsigned_abs()));
    }

    fn note(&self, name: &str, health: Status) {
        self.spool.note(&uid("uid-1"), Noted::Changed(vec![turned("uid-1", name, health)]));
    }

    async fn cut(&mut self) {
        self.hub.stop_serving().await;
        while !matches!(self.agent.event().await, AgentEvent::Disconnected { .. }) {}
    }

    /// Has the agent connect again, and report that the app has this status.
    async fn resume(&mut self, health: Status) {
        self.hub.serve().await;
        self.agent.connected().await;
        self.agent.refused().await;
        self.agent.open().await;
        self.agent.report(snapshot(halves_with("uid-1", "web", health))).await;
        // A cluster that was lost is live after two signs of life.
        self.agent.report(Content::Heartbeat).await;
        self.hub
            .until(|view| {
                let counts = view.counts();
                (counts.current, counts.failed)
                    == (usize::from(health == Status::Current), usize::from(health == Status::Failed))
            })
            .await;
        assert!(self.hub.index.saved().await);
    }

    /// Returns the transitions of an app, the earliest first, with the seconds since the begin.
    async fn history(&self, name: &str) -> Vec<String> {
        history(&self.hub, self.begun, "uid-1", name).await
    }
}

async fn history(hub: &TestHub, begun: Timestamp, home: &str, name: &str) -> Vec<String> {
    let app = halves(home, home, name).remove(0).app;
    let pair = PairId { cluster: uid(home), app };
    let all = Timestamp::MIN..Timestamp::MAX;
    let page = PageQuery::first(std::num::NonZeroUsize::new(100).unwrap());
    let mut found = hub.store.history(pair, all, page).await.unwrap().items;
    found.reverse();
    let words = |state: Option<PairState>| match state {
        None => "gone".to_owned(),
        Some(state) => match state.problem {
            Some(words) if words == "stale" || words == "lost" => "dark".to_owned(),
            Some(words) => words,
            None => state.effective.as_str().to_owned(),
        },
    };
    let line = |entry| {
        let HistoryEntry::Transition(it) = entry else { panic!() };
        let quarters = it.at.duration_since(begun).as_secs_f64().max(0.0) / 15.0;
        (words(it.before), words(it.after), quarters.floor() * 15.0)
    };
    let lines = found.into_iter().map(line).filter(|(_, after, _)| after != "dark");
    lines.map(|(before, after, at)| format!("{at:>3} {before} to {after}")).collect()
}

/// Waits until the spool has nothing that the hub is to get.
async fn drained(spool: &Spool) {
    let empty = async {
        while spool.counts().entries > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, empty).await.expect("the hub did not take the spool");
}

fn in_memory(clock: BootClock) -> Arc<Spool> {
    Arc::new(Spool::in_memory(uid("uid-1"), clock))
}

#[tokio::test]
async fn transitions_of_a_break_come_into_history_with_their_times() {
    let mut it = Fixture::start(in_memory).await;
    it.cut().await;
    it.wait(20);
    it.note("web", Status::Failed);
    it.wait(90);
    it.note("web", Status::Current);
    it.wait(105);
    it.resume(Status::Current).await;
    drained(&it.spool).await;
    assert_eq!(
        it.history("web").await,
        ["  0 gone to Current", " 15 Current to Failed", "105 Failed to Current", "210 dark to Current"]
    );
    // The present is what reports tell.
    assert_eq!(it.hub.index.view().counts().current, 1);
}

#[tokio::test]
async fn a_short_break_with_another_state_at_its_end_is_told_once() {
    let mut it = Fixture::start(in_memory).await;
    it.cut().await;
    it.wait(20);
    it.note("web", Status::Failed);
    it.wait(20);
    it.resume(Status::Failed).await;
    drained(&it.spool).await;
    assert_eq!(it.history("web").await, ["  0 gone to Current", " 15 Current to Failed"]);
}

#[tokio::test]
async fn what_the_hub_heard_before_a_break_was_noticed_is_not_told_twice() {
    let mut it = Fixture::start(in_memory).await;
    it.wait(20);
    it.note("web", Status::Failed);
    it.agent
        .report(Content::Changes { changed: halves_with("uid-1", "web", Status::Failed), gone: Vec::new() })
        .await;
    it.hub.until(|view| view.counts().failed == 1).await;
    it.cut().await;
    it.wait(20);
    it.note("web", Status::Current);
    it.resume(Status::Current).await;
    drained(&it.spool).await;
    let told = ["  0 gone to Current", " 15 Current to Failed", " 30 Failed to Current"];
    assert_eq!(it.history("web").await, told);
}

/// Copies the files of a spool.
fn copy(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[tokio::test]
async fn a_repeat_is_dropped_and_an_agent_that_restarts_tells_what_its_folder_holds() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let open = |folder: &Path, clock: BootClock| Spool::in_folder(uid("uid-1"), clock, folder);
    let mut it = Fixture::start(|clock| open(folders[0].path(), clock).unwrap().0).await;
    drained(&it.spool).await;
    it.cut().await;
    it.wait(20);
    it.note("web", Status::Failed);
    it.wait(20);
    it.note("web", Status::Current);
    let file = folders[0].path().join("spool");
    let written = async {
        while held(&file, &it.clock) < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, written).await.expect("the spool was not written");
    copy(folders[0].path(), folders[1].path());

    // The agent is started anew, and its answer gets lost: the other one sends the same again.
    let told = ["  0 gone to Current", " 15 Current to Failed", " 30 Failed to Current"];
    for folder in &folders {
        let identity = it.folder.path();
        let (spool, damaged) = match folder.path() == folders[0].path() {
            true => (Arc::clone(&it.spool), None),
            false => open(folder.path(), it.clock.clone()).unwrap(),
        };
        assert!(damaged.is_none() && spool.counts().entries == 2, "{:?}", spool.counts());
        it.hub.stop_serving().await;
        it.hub.serve().await;
        let settings = it.hub.settings(identity, "uid-1", "eu-1");
        it.agent = TestAgent::start(AgentSettings { spool: Arc::clone(&spool), ..settings });
        it.agent.connected().await;
        drained(&spool).await;
        assert!(it.hub.index.saved().await);
        assert_eq!(it.history("web").await, told);
    }
    assert!(matches!(open(folders[0].path(), it.clock.clone()), Err(SpoolError::InUse(_))));
}

/// Returns the number of entries in a copy of the file of a spool.
fn held(file: &Path, clock: &BootClock) -> usize {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(file, folder.path().join("spool")).unwrap();
    Spool::in_folder(uid("uid-1"), clock.clone(), folder.path()).unwrap().0.counts().entries
}

#[tokio::test]
async fn a_full_spool_marks_a_gap() {
    let mut it =
        Fixture::start(|clock| Arc::new(Spool::in_memory(uid("uid-1"), clock).bounded_by(3_000))).await;
    drained(&it.spool).await;
    it.cut().await;
    it.wait(20);
    it.note("web", Status::Failed);
    it.wait(30);
    // More than fits, of apps that come and go.
    for number in 0..100 {
        it.note(&format!("app-{number}"), Status::Failed);
    }
    it.wait(30);
    it.note("web", Status::Current);
    assert!(it.spool.counts().dropped > 50 && it.spool.counts().bytes <= 3_000);
    it.wait(30);
    it.resume(Status::Current).await;
    drained(&it.spool).await;
    let marked = [
        "  0 gone to Current",
        " 15 Current to not recorded",
        " 75 not recorded to Current",
        "105 dark to Current",
    ];
    assert_eq!(it.history("web").await, marked);
    let gap = it.hub.store.spools().await.unwrap()[0].gap.clone().unwrap();
    let passed = |at: Timestamp| at.duration_since(it.begun).as_secs() / 15 * 15;
    assert_eq!((passed(gap.start), passed(gap.end)), (15, 45));
}

#[tokio::test]
async fn history_ends_in_the_present_state_though_the_spool_lacks_the_way_there() {
    let mut it = Fixture::start(in_memory).await;
    it.cut().await;
    it.wait(20);
    it.note("web", Status::Failed);
    // The recovery was not noted, and the hub has seen no change.
    it.resume(Status::Current).await;
    drained(&it.spool).await;
    assert_eq!(it.history("web").await, ["  0 gone to Current", " 15 Current to Failed"]);
    let other = halves_with("uid-1", "db", Status::Current);
    it.agent.report(Content::Changes { changed: other, gone: Vec::new() }).await;
    it.hub.until(|view| view.fleet().pairs() == 2).await;
    it.hub.wait(16);
    it.agent.report(Content::Heartbeat).await;
    it.hub.wait(16);
    let settled = [" 15 Current to Failed", " 45 Failed to Current"];
    let settling = async {
        while it.history("web").await.get(1..) != Some(&settled.map(str::to_owned)[..]) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let is_settled = tokio::time::timeout(LONG / 4, settling).await.is_ok();
    assert!(is_settled, "{:?}", it.history("web").await);
}

#[tokio::test]
async fn a_restart_without_a_folder_is_a_gap() {
    let mut it = Fixture::start(in_memory).await;
    drained(&it.spool).await;
    assert_eq!(it.hub.store.spools().await.unwrap()[0].gap, None);
    it.cut().await;
    it.hub.wait(100);
    it.hub.serve().await;
    let spool = in_memory(it.clock.clone());
    let settings = it.hub.settings(it.folder.path(), "uid-1", "eu-1");
    it.agent = TestAgent::start(AgentSettings { spool: Arc::clone(&spool), ..settings });
    it.agent.connected().await;
    spool.note(&uid("uid-1"), Noted::Begun);
    drained(&spool).await;
    let gap = it.hub.store.spools().await.unwrap()[0].gap.clone().unwrap();
    let passed = |at: Timestamp| at.duration_since(it.begun).as_secs() / 15 * 15;
    assert_eq!((passed(gap.start), passed(gap.end)), (0, 90));
}

#[tokio::test]
async fn transitions_of_other_clusters_and_of_impossible_times_are_left_out() {
    let mut it = Fixture::start(in_memory).await;
    let folder = tempfile::tempdir().unwrap();
    let mut other = it.hub.enrolled(folder.path(), "uid-2", "eu-2").await;
    report_one_app(&mut other, "uid-2").await;
    it.hub.until(|view| view.counts().current == 2).await;
    it.cut().await;
    it.wait(20);
    // An app of another cluster, and its own one before the hub knew it.
    it.spool.note(&uid("uid-1"), Noted::Changed(vec![turned("uid-2", "web", Status::Failed)]));
    it.note("web", Status::Failed);
    it.clock.sleep(Duration::from_secs(3_600));
    it.hub.serve().await;
    it.agent.connected().await;
    drained(&it.spool).await;
    assert!(it.hub.index.saved().await);
    assert_eq!(it.history("web").await, ["  0 gone to Current"]);
    assert_eq!(history(&it.hub, it.begun, "uid-2", "web").await, ["  0 gone to Current"]);
}

#[tokio::test]
async fn an_agent_writes_no_history_of_apps_that_others_tell_of() {
    let mut fixture = Fixture::start(in_memory).await;
    let folder = tempfile::tempdir().unwrap();
    let mut other = fixture.hub.enrolled(folder.path(), "uid-2", "us-1").await;
    report_one_app(&mut other, "uid-2").await;
    fixture.hub.until(|view| view.counts().current == 2).await;
    assert!(fixture.hub.index.saved().await);
    drop(other);
    let before = history(&fixture.hub, fixture.begun, "uid-2", "web").await;
    assert_eq!(before.len(), 1, "{before:?}");
    fixture.cut().await;
    fixture.wait(30);
    let forged = turned("uid-2", "web", Status::Failed);
    let empty = AppTransition { app: forged.app.clone(), declared: None, observed: None };
    fixture.spool.note(&uid("uid-1"), Noted::Changed(vec![empty, forged]));
    fixture.note("web", Status::Failed);
    fixture.resume(Status::Failed).await;
    drained(&fixture.spool).await;
    assert!(fixture.hub.index.saved().await);
    assert_eq!(history(&fixture.hub, fixture.begun, "uid-2", "web").await, before);
    assert!(fixture.history("web").await.iter().any(|line| line.ends_with("to Failed")));
}

#[tokio::test]
async fn a_hub_that_keeps_no_history_is_sent_no_transitions() {
    let hub = TestHub::start().await;
    let folder = tempfile::tempdir().unwrap();
    let spool = in_memory(BootClock::default());
    let token = Some(hub.token(None, 3600).await);
    let settings = hub.settings(folder.path(), "uid-1", "eu-1");
    let mut agent = TestAgent::start(AgentSettings { token, spool: Arc::clone(&spool), ..settings });
    spool.note(&uid("uid-1"), Noted::Begun);
    agent.connected().await;
    report_one_app(&mut agent, "uid-1").await;
    hub.until(|view| view.counts().current == 1).await;
    assert_eq!(spool.counts().entries, 1);
}
