//! Tests of views of followed clusters after the machine slept.

use std::time::{Duration, Instant};

use taffrail_api::text;
use taffrail_apps::{App, FreshnessState, Objects as _};
use taffrail_cluster::{BootClock, Memory};
use taffrail_sim::{Cluster, Fault, Fleet, Trouble};
use taffrail_testkit::objects::{kustomizations, namespace};

use super::FleetWatcher;
use super::share::tests::{app, deployment, follow_by, until};
use crate::NO_EXTRA;

/// Duration of the simulated sleep: far longer than any server is silent while the machine is awake.
const NIGHT: Duration = Duration::from_secs(8 * 3600);

/// A simulated cluster with an app that is Ready, and a watcher of it whose clock the test sets.
struct Stage {
    cluster: Cluster,
    clock: BootClock,
    follow: FleetWatcher,
    _fleet: Fleet,
}

impl Stage {
    async fn new() -> Stage {
        let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
        let cluster = fleet.cluster("eu").await.unwrap();
        cluster.apply(kustomizations()).unwrap();
        cluster.apply(namespace("shop")).unwrap();
        cluster.seed(app(10)).unwrap();
        let clock = BootClock::default();
        let mut follow = follow_by(&clock, std::slice::from_ref(&cluster), &Memory::of(64 << 20)).await;
        follow.settle(NO_EXTRA).await;
        Stage { cluster, clock, follow, _fleet: fleet }
    }

    fn row(&mut self) -> App {
        let list = self.follow.fleet().apps(&[]);
        list.apps.into_iter().find(|app| app.app.name == "web").unwrap()
    }

    fn health(&mut self) -> String {
        let row = self.row();
        let now = self.follow.fleet().now;
        text::status(row.health, row.freshness, now)
    }

    async fn listen(&mut self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.follow.next(Duration::from_millis(100)).await;
            self.follow.ask().await;
        }
    }

    /// Applies events until the app's status, as text, fulfils `is_so`.
    async fn until(&mut self, is_so: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.health()) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", self.health());
            self.follow.next(Duration::from_millis(100)).await;
            self.follow.ask().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_known_before_a_sleep_is_old_until_the_server_answers_again() {
    let mut stage = Stage::new().await;
    assert_eq!(stage.health(), "Ready");
    let away = stage.cluster.trouble(Trouble::Blackhole);
    stage.clock.sleep(NIGHT);
    // At once, before anything was asked.
    assert_eq!(stage.health(), "Unknown (was Ready, 8 h ago)");
    let row = stage.row();
    assert_eq!(
        (row.freshness.state, row.home_freshness.state),
        (FreshnessState::Stale, FreshnessState::Stale)
    );
    until(&mut stage.follow, |follow| follow.fleet.snapshots[0].freshness().state == FreshnessState::Lost)
        .await;
    assert_eq!(stage.health(), "Unknown (was Ready, 8 h ago)");
    stage.cluster.heal(away);
    stage.until(|health| health == "Ready").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_to_be_in_a_sleep_is_shown_with_the_first_green() {
    let mut stage = Stage::new().await;
    // What the open watches would bring is lost with their connections.
    let mut broken = deployment("web", 10);
    broken["status"]["conditions"] =
        serde_json::json!([{"type": "Available", "status": "False", "message": "gone"}]);
    broken["status"]["availableReplicas"] = serde_json::json!(0);
    let silent = stage.cluster.fault(Fault::new(Trouble::Hang).verb("watch"));
    stage.clock.sleep(NIGHT);
    assert_eq!(stage.health(), "Unknown (was Ready, 8 h ago)");
    // That the server answers questions does not show that the watches go on.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        stage.follow.next(Duration::from_millis(100)).await;
        stage.follow.ask().await;
        assert!(stage.health().starts_with("Unknown"), "{}", stage.health());
    }
    stage.cluster.apply(broken).unwrap();
    stage.cluster.heal(silent);
    stage.until(|health| !health.starts_with("Unknown")).await;
    assert!(stage.health().starts_with("InProgress"), "{}", stage.health());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_broken_watch_brought_is_not_known_for_long() {
    let mut stage = Stage::new().await;
    let broken =
        stage.cluster.fault(Fault::new(Trouble::ServerError("no".to_owned())).resource("deployments.apps"));
    stage.cluster.cut_connections();
    stage.until(|health| health.starts_with("Unknown (was Ready")).await;
    // What declares it is watched still, once its watch is open again.
    let begun = Instant::now();
    loop {
        let row = stage.row();
        let freshness = [row.freshness.state, row.home_freshness.state];
        if freshness == [FreshnessState::Stale, FreshnessState::Live] {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{freshness:?}");
        stage.listen(Duration::from_millis(100)).await;
    }
    stage.cluster.heal(broken);
    stage.until(|health| health == "Ready").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_went_back_while_it_was_lost_is_live_again() {
    let mut stage = Stage::new().await;
    for number in 0..12 {
        stage.cluster.apply(deployment(&format!("d{number}"), 10)).unwrap();
    }
    stage.listen(Duration::from_secs(1)).await;
    // It is asked at which version it is once it was silent for a while.
    let quiet = Duration::from_secs(11);
    stage.clock.sleep(quiet);
    stage.listen(Duration::from_secs(4)).await;
    let away = stage.cluster.trouble(Trouble::Blackhole);
    stage.clock.sleep(quiet);
    until(&mut stage.follow, |follow| follow.fleet.snapshots[0].freshness().state == FreshnessState::Lost)
        .await;
    stage.cluster.restore(10).unwrap();
    stage.cluster.heal(away);
    stage.until(|health| health == "Ready").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_stayed_open_while_the_server_was_lost_are_opened_again() {
    let mut stage = Stage::new().await;
    // Whether it is there goes unanswered, and nothing closes the watches: they would be silent for a minute and more.
    let deaf = stage.cluster.fault(Fault::new(Trouble::Hang).verb("list").resource("namespaces"));
    stage.clock.sleep(Duration::from_secs(11));
    until(&mut stage.follow, |follow| follow.fleet.snapshots[0].freshness().state == FreshnessState::Lost)
        .await;
    assert!(stage.health().starts_with("Unknown (was Ready"), "{}", stage.health());
    stage.cluster.heal(deaf);
    let begun = Instant::now();
    stage.until(|health| health == "Ready").await;
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}
