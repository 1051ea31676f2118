//! Tests of report streams, with a clock that only the test moves, and of what a hub knows by their reports.

mod transitions;

use std::collections::BTreeMap;

use crate::report::{
    AppId, AppTransition, Content, DeclaredHalf, HalfSide, HalfThen, LIGHT, LIVE, LOST, LostCluster,
    MAX_APPS, NotLive, ObservedHalf, Received, Report,
};
use crate::{AppName, ReadingView};
use taffrail_apps::{Axis, Delivery, FreshnessState, Problem, ProblemSeverity, SyncState};
use taffrail_status::Status;

use super::super::stream::{
    COLLECTING, DIGEST, HEARTBEAT, MAX_HALVES, REOPEN, STATISTICS, TOO_MANY, VOLATILE,
};
use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn cluster(name: &str) -> ClusterId {
    ClusterId(name.to_owned())
}

fn id(number: usize) -> HalfId {
    let app =
        AppName { delivery: Delivery::Label, namespace: "shop".to_owned(), name: format!("app-{number}") };
    HalfId { app: AppId { home: cluster("eu"), app }, side: HalfSide::Observed }
}

fn declared(state: SyncState) -> DeclaredHalf {
    DeclaredHalf::new("app-0".to_owned(), cluster("eu"), state)
}

fn observed(health: Status, count: usize) -> ObservedHalf {
    ObservedHalf::new(health, std::iter::repeat_n(health, count).collect())
}

fn facts(name: &str) -> ClusterReport {
    ClusterReport { name: name.to_owned(), ..ClusterReport::default() }
}

/// A simulated cluster, its report stream, and the hub that receives the reports.
struct World {
    now: Duration,
    streams: ReportStreams,
    hub: Received,
    epoch: u64,
    /// The reports sent since the last [`World::run`], each with the moment at which it was sent.
    told: Vec<(Duration, Report)>,
    /// True if the hub receives no reports.
    is_lossy: bool,
    /// True if the API server answers all the time.
    is_up: bool,
}

impl World {
    /// Makes a cluster with these halves, and sends its first reports.
    fn new(halves: impl IntoIterator<Item = (usize, ObservedHalf)>) -> World {
        let mut world = World {
            now: seconds(1_000),
            streams: ReportStreams::default(),
            hub: Received::new(cluster("eu"), 0),
            epoch: 0,
            told: Vec::new(),
            is_lossy: false,
            is_up: true,
        };
        world.streams.begin(&cluster("eu"), world.now);
        halves.into_iter().for_each(|(number, half)| world.set(number, half));
        world.set_facts(facts("eu"), Vec::new());
        world.run(Duration::ZERO);
        world
    }

    fn set(&mut self, number: usize, half: ObservedHalf) {
        self.streams.set(&cluster("eu"), id(number), HalfBody::Observed(Box::new(half)), self.now);
    }

    fn remove(&mut self, number: usize) {
        self.streams.remove(&cluster("eu"), &id(number), self.now);
    }

    fn set_facts(&mut self, facts: ClusterReport, errors: Vec<ErrorRow>) {
        self.streams.set_facts(&cluster("eu"), facts, errors, self.now);
    }

    /// Advances the clock by `time`; the hub receives each report when it is sent, and answers. Returns the reports.
    fn run(&mut self, time: Duration) -> Vec<(Duration, Report)> {
        let end = self.now + time;
        loop {
            if self.is_up {
                self.streams.set_heard(&cluster("eu"), Some(self.now));
            }
            while let Some(message) = self.streams.next_message(self.now) {
                self.receive(message);
            }
            match self.streams.next_deadline().filter(|due| *due <= end) {
                Some(due) => {
                    assert!(due > self.now, "what is due at {due:?} was not told");
                    self.now = due;
                }
                None => break,
            }
        }
        self.now = end;
        std::mem::take(&mut self.told)
    }

    fn receive(&mut self, message: SourceMessage) {
        let cluster = cluster("eu");
        match message {
            SourceMessage::Open(of) => {
                assert_eq!(of, cluster);
                self.epoch = self.hub.reopen();
                self.streams.take(&SourceReply::Accepted { cluster, epoch: self.epoch }, self.now);
            }
            SourceMessage::Report(report) => {
                self.told.push((self.now, (*report).clone()));
                if self.is_lossy {
                    return;
                }
                let position = report.position;
                let taken = self.hub.take(*report, self.now).ok();
                let Some(reply) = SourceReply::to_report(&cluster, position, taken.as_ref()) else { return };
                self.streams.take(&reply, self.now);
            }
            SourceMessage::Close(_) => panic!("nothing was closed"),
        }
    }

    /// Lets the hub end the stream, so that another one is opened.
    fn reopen(&mut self) {
        let reply = SourceReply::Refused { cluster: cluster("eu"), epoch: self.epoch };
        self.streams.take(&reply, self.now);
    }

    fn state(&self) -> FreshnessState {
        let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
        self.hub.freshness(self.now, now).state
    }

    /// Returns the apps that the hub knows, with status and number of objects.
    fn held(&self) -> BTreeMap<AppId, (Status, usize)> {
        let held = |app: &AppId| {
            let half = self.hub.observed(app)?;
            Some((app.clone(), (half.body.health, half.body.counts.total())))
        };
        self.hub.apps().filter_map(held).collect()
    }
}

fn expected(halves: &[(usize, Status, usize)]) -> BTreeMap<AppId, (Status, usize)> {
    halves.iter().map(|(number, health, count)| (id(*number).app, (*health, *count))).collect()
}

/// Returns the moments since `start` at which changes were sent, with the apps of each.
fn changes(start: Duration, told: &[(Duration, Report)]) -> Vec<(Duration, Vec<AppId>)> {
    let apps = |(at, report): &(Duration, Report)| match &report.content {
        Content::Changes { changed, gone } => {
            let gone = gone.iter().map(|id| id.app.clone());
            Some((*at - start, changed.iter().map(|half| half.app.clone()).chain(gone).collect()))
        }
        _ => None,
    };
    told.iter().filter_map(apps).collect()
}

fn words(content: &Content) -> &'static str {
    match content {
        Content::Changes { .. } => "changes",
        Content::Snapshot { .. } => "snapshot",
        Content::Cluster { .. } => "cluster",
        Content::Digest(_) => "digest",
        Content::Heartbeat => "heartbeat",
    }
}

#[test]
fn stream_begins_with_facts_and_snapshot_and_goes_on_with_heartbeats_and_digests() {
    let mut world = World::new([(0, observed(Status::Current, 1))]);
    assert_eq!(world.held(), expected(&[(0, Status::Current, 1)]));
    assert_eq!((world.hub.facts().name.as_str(), world.state()), ("eu", FreshnessState::Live));
    let start = world.now;
    let told = world.run(seconds(60));
    let told: Vec<(Duration, &str)> =
        told.iter().map(|(at, report)| (*at - start, words(&report.content))).collect();
    let expected = [
        (HEARTBEAT, "heartbeat"),
        (DIGEST, "digest"),
        (DIGEST + HEARTBEAT, "heartbeat"),
        (DIGEST * 2, "digest"),
    ];
    assert_eq!(told, expected);
    assert_eq!(world.state(), FreshnessState::Live);
}

#[test]
fn signs_of_life_are_as_rare_as_the_window_of_the_cluster_allows() {
    let mut world = World::new([(0, observed(Status::Current, 1))]);
    world.set_facts(ClusterReport { live_window: Some(LIGHT), ..facts("eu") }, Vec::new());
    world.run(DIGEST);
    let start = world.now;
    let told = world.run(LIGHT);
    let told: Vec<(u64, &str)> =
        told.iter().map(|(at, report)| ((*at - start).as_secs(), words(&report.content))).collect();
    assert_eq!(told, [(40, "heartbeat"), (80, "digest"), (120, "heartbeat")]);
    assert_eq!(world.state(), FreshnessState::Live);
}

#[test]
fn hub_that_does_not_answer_is_asked_again() {
    let mut streams = ReportStreams::default();
    let now = seconds(1_000);
    streams.begin(&cluster("eu"), now);
    assert_eq!((streams.next_message(now), streams.next_deadline()), (None, None), "nothing is known of it");
    streams.set_facts(&cluster("eu"), facts("eu"), Vec::new(), now);
    let open = SourceMessage::Open(cluster("eu"));
    assert_eq!(streams.next_message(now), Some(open.clone()));
    assert_eq!((streams.next_message(now), streams.next_deadline()), (None, Some(now + REOPEN)));
    assert_eq!(streams.next_message(now + REOPEN), Some(open));
    // The answer to the first question comes late, that to the second one is lost.
    let now = now + REOPEN * 2;
    for epoch in [1, 2, 1] {
        streams.take(&SourceReply::Accepted { cluster: cluster("eu"), epoch }, now);
    }
    let Some(SourceMessage::Report(report)) = streams.next_message(now) else { panic!("no report") };
    assert_eq!((report.position.epoch, report.position.seq), (2, 1));
}

#[test]
fn what_got_worse_is_told_at_once_and_the_rest_collected() {
    let mut world = World::new((0..4).map(|number| (number, observed(Status::Current, 1))));
    let start = world.now;
    world.set(0, observed(Status::Failed, 1));
    world.set(1, observed(Status::Current, 2));
    let told = world.run(Duration::ZERO);
    assert_eq!(changes(start, &told), [(Duration::ZERO, vec![id(0).app])]);

    world.run(Duration::from_millis(200));
    world.set(0, observed(Status::Current, 1));
    let told = world.run(Duration::from_millis(900));
    assert_eq!(changes(start, &told), []);
    // It joins those that are collected already.
    world.remove(3);
    world.set(1, observed(Status::Current, 3));
    let told = world.run(VOLATILE);
    let after = Duration::from_millis(200) + COLLECTING;
    let gone = Duration::from_millis(1_100) + COLLECTING;
    let expected_changes = [(after, vec![id(0).app]), (gone, vec![id(3).app]), (VOLATILE, vec![id(1).app])];
    assert_eq!(changes(start, &told), expected_changes);
    let held = expected(&[(0, Status::Current, 1), (1, Status::Current, 3), (2, Status::Current, 1)]);
    assert_eq!(world.held(), held);
}

#[test]
fn both_halves_of_a_row_are_told_together() {
    let mut world = World::new([(0, observed(Status::Current, 1))]);
    let start = world.now;
    let declared = declared(SyncState::OutOfSync);
    let half = HalfId { side: HalfSide::Declared, ..id(0) };
    world.streams.set(&cluster("eu"), half, HalfBody::Declared(Box::new(declared)), world.now);
    assert_eq!(changes(start, &world.run(Duration::from_millis(100))), []);
    world.set(0, observed(Status::Failed, 1));
    let told = world.run(COLLECTING);
    assert_eq!(changes(start, &told), [(Duration::from_millis(100), vec![id(0).app, id(0).app])]);
}

#[test]
fn change_that_is_taken_back_is_not_told() {
    let mut world = World::new([(0, observed(Status::Failed, 1)), (1, observed(Status::Current, 1))]);
    let start = world.now;
    world.set(0, observed(Status::Current, 1));
    world.remove(1);
    world.run(Duration::from_millis(500));
    world.set(0, observed(Status::Failed, 1));
    world.set(1, observed(Status::Current, 1));
    assert_eq!(changes(start, &world.run(seconds(10))), []);
    // What comes and goes before it was told, too.
    world.set(2, observed(Status::Current, 1));
    world.remove(2);
    assert_eq!(changes(start, &world.run(seconds(1))), []);
}

#[test]
fn lost_report_is_found_by_the_digest_and_only_its_buckets_are_sent_again() {
    let mut world = World::new((0..100).map(|number| (number, observed(Status::Current, 1))));
    world.is_lossy = true;
    world.set(0, observed(Status::Failed, 1));
    world.remove(1);
    world.run(COLLECTING);
    world.is_lossy = false;
    assert!(world.held().contains_key(&id(1).app));
    world.set(2, observed(Status::Failed, 1));
    let told = world.run(DIGEST);
    let sent: usize = (told.iter())
        .map(|(_, report)| match &report.content {
            Content::Snapshot { halves, .. } => halves.len(),
            _ => 0,
        })
        .sum();
    assert!(sent < 30, "{sent} halves were sent again");
    let mut truth: Vec<_> = (0..100).map(|number| (number, Status::Current, 1)).collect();
    (truth[0].1, truth[2].1) = (Status::Failed, Status::Failed);
    truth.remove(1);
    assert_eq!(world.held(), expected(&truth));
    // The digest after it shows that all is known.
    assert_eq!(world.state(), FreshnessState::Live);
    let rest = world.run(DIGEST);
    assert!(rest.iter().all(|(_, report)| matches!(words(&report.content), "digest" | "heartbeat")));
}

#[test]
fn heartbeats_of_a_dark_cluster_let_it_age() {
    let mut world = World::new([(0, observed(Status::Current, 1))]);
    world.is_up = false;
    world.run(LIVE);
    assert_eq!(world.state(), FreshnessState::Live);
    let told = world.run(seconds(16));
    assert!(!told.is_empty() && told.iter().all(|(_, report)| report.age > Some(LIVE)));
    assert_eq!(world.state(), FreshnessState::Stale);
    world.run(LOST);
    assert_eq!(world.state(), FreshnessState::Lost);
    world.is_up = true;
    world.run(HEARTBEAT);
    assert_eq!(world.state(), FreshnessState::Stale, "one proof is not enough");
    world.run(HEARTBEAT);
    assert_eq!(world.state(), FreshnessState::Live);
}

#[test]
fn while_nobody_takes_reports_only_the_newest_state_waits() {
    let mut world = World::new((0..10).map(|number| (number, observed(Status::Current, 1))));
    for round in 0..1_000 {
        world.now += Duration::from_millis(60);
        for number in 0..10 {
            let health = if round % 2 == 0 { Status::Failed } else { Status::InProgress };
            world.set(number, observed(health, round));
        }
        world.streams.set_heard(&cluster("eu"), Some(world.now));
    }
    let told = world.run(Duration::ZERO);
    assert_eq!(
        told.iter().map(|(_, report)| words(&report.content)).collect::<Vec<_>>(),
        ["changes", "digest"]
    );
    let held: Vec<_> = (0..10).map(|number| (number, Status::InProgress, 999)).collect();
    assert_eq!(world.held(), expected(&held));
}

#[test]
fn cluster_whose_changes_wait_too_long_is_not_called_live() {
    let count = MAX_HALVES * 3;
    let mut world = World::new((0..count).map(|number| (number, observed(Status::Current, 1))));
    (0..count).for_each(|number| world.set(number, observed(Status::Failed, 1)));
    world.now += LIVE + seconds(1);
    world.streams.set_heard(&cluster("eu"), Some(world.now));
    let mut ages = Vec::new();
    while let Some(SourceMessage::Report(report)) = world.streams.next_message(world.now) {
        ages.push(report.age.unwrap());
        world.hub.take(*report, world.now).unwrap();
    }
    // Only the last report with changes, and the digest after it, leave nothing older behind.
    let late = LIVE + seconds(1);
    assert_eq!(ages, [late, late, Duration::ZERO, Duration::ZERO]);
}

#[test]
fn what_changes_during_a_snapshot_is_told_after_it() {
    let count = MAX_HALVES * 2 + 10;
    let mut world = World::new((0..count).map(|number| (number, observed(Status::Current, 1))));
    // A hub that knows nothing asks for everything.
    world.hub = Received::new(cluster("eu"), world.epoch);
    world.reopen();
    world.now += COLLECTING;
    let mut parts = 0;
    while let Some(message) = world.streams.next_message(world.now) {
        let is_part = |message: &SourceMessage| matches!(message, SourceMessage::Report(report) if matches!(report.content, Content::Snapshot { .. }));
        parts += usize::from(is_part(&message));
        world.receive(message);
        if parts == 1 {
            // One of a part that was sent, one of a part that was not, one that is new, two that go.
            (0..count).step_by(50).for_each(|number| world.set(number, observed(Status::Failed, 1)));
            (1..count).step_by(50).for_each(|number| world.remove(number));
            world.set(count, observed(Status::InProgress, 2));
            parts += 1;
        }
    }
    assert_eq!(parts, 4, "with the one that was counted twice");
    world.run(COLLECTING);
    let held = (0..count).filter(|number| number % 50 != 1).map(|number| {
        let health = if number % 50 == 0 { Status::Failed } else { Status::Current };
        (number, health, 1)
    });
    let held: Vec<_> = held.chain([(count, Status::InProgress, 2)]).collect();
    assert_eq!(world.held(), expected(&held));
    let rest = world.run(DIGEST);
    assert!(rest.iter().all(|(_, report)| matches!(words(&report.content), "digest" | "heartbeat")));
}

#[test]
fn changes_wait_for_their_evidence() {
    let mut world = World::new([(0, observed(Status::Current, 1))]);
    let start = world.now;
    let until = start + Duration::from_millis(400);
    world.streams.hold(&cluster("eu"), until);
    world.set(0, observed(Status::Failed, 1));
    let told = world.run(seconds(1));
    assert_eq!(changes(start, &told), [(until - start, vec![id(0).app])]);
    world.streams.hold(&cluster("eu"), world.now + seconds(1));
    world.set(0, observed(Status::Unknown, 1));
    world.set(0, observed(Status::NotFound, 1));
    world.streams.hold(&cluster("eu"), Duration::ZERO);
    assert_eq!(changes(world.now, &world.run(Duration::ZERO)).len(), 0, "it got better");
}

#[test]
fn apps_beyond_the_limit_are_left_out_and_said() {
    let mut world = World::new([]);
    let set_all = |world: &mut World, count: usize| {
        world.streams.begin_pass();
        (0..count).for_each(|number| world.set(number, observed(Status::Current, 1)));
        world.streams.end_pass(world.now);
        world.set_facts(facts("eu"), Vec::new());
    };
    set_all(&mut world, MAX_APPS + 5);
    world.run(COLLECTING * 2);
    assert_eq!(world.hub.apps().count(), MAX_APPS);
    assert_eq!(world.hub.refused(), 0);
    let reasons =
        |world: &World| world.hub.errors().iter().map(|error| error.reason.clone()).collect::<Vec<_>>();
    assert_eq!(reasons(&world), [TOO_MANY]);
    assert!(!world.streams.needs_pass());
    world.remove(7);
    world.run(COLLECTING);
    assert!(world.streams.needs_pass());
    set_all(&mut world, 3);
    world.run(COLLECTING);
    assert_eq!((world.hub.apps().count(), reasons(&world)), (3, Vec::new()));
}

#[test]
fn lost_cluster_is_told_at_once_and_statistics_seldom() {
    let mut world = World::new([]);
    let start = world.now;
    let reading = |bytes| ReadingView {
        lists: "pages".into(),
        protocol: "HTTP/2".into(),
        round_trip_micros: bytes,
        requests: Some(1),
        bytes: Some(bytes),
        live_since: None,
        scopes: Some(3),
        not_live: Vec::new(),
    };
    let with = |bytes| ClusterReport { reading: Some(reading(bytes)), ..facts("eu") };
    let moments = |told: Vec<(Duration, Report)>| -> Vec<Duration> {
        let of_cluster = told.into_iter().filter(|(_, report)| words(&report.content) == "cluster");
        of_cluster.map(|(at, _)| at - start).collect()
    };
    world.set_facts(with(1), Vec::new());
    assert_eq!(moments(world.run(seconds(2))), [COLLECTING]);
    let mut told = Vec::new();
    for second in 2..70 {
        world.set_facts(with(second), Vec::new());
        told.extend(world.run(seconds(1)));
    }
    assert_eq!(moments(told), [COLLECTING + STATISTICS]);
    let lost = LostCluster { message: "refused".to_owned(), silence: String::new() };
    let not_live = NotLive { state: FreshnessState::Lost, age: Some(seconds(20)) };
    let dark = |age| ClusterReport {
        lost: Some(lost.clone()),
        not_live: Some(NotLive { age: Some(age), ..not_live }),
        ..with(69)
    };
    world.set_facts(dark(seconds(20)), Vec::new());
    assert_eq!(moments(world.run(Duration::ZERO)), [world.now - start]);
    // The age alone is no news.
    world.run(seconds(1));
    world.set_facts(dark(seconds(21)), Vec::new());
    assert!(moments(world.run(seconds(10))).is_empty());
    assert_eq!(world.state(), FreshnessState::Lost);
}

#[test]
fn age_of_a_half_that_is_not_live_grows_until_it_is_told() {
    let mut world = World::new([]);
    let not_live = Some(NotLive { state: FreshnessState::Stale, age: Some(seconds(30)) });
    world.set(0, ObservedHalf { not_live, ..observed(Status::Current, 1) });
    world.now += seconds(7);
    world.run(Duration::ZERO);
    let told = world.hub.observed(&id(0).app).unwrap().body.not_live.unwrap();
    assert_eq!(told.age, Some(seconds(37)));
}

#[test]
fn closed_cluster_is_forgotten_unless_it_comes_back_first() {
    let mut world = World::new([(0, observed(Status::Current, 1))]);
    let eu = cluster("eu");
    world.streams.close(&eu);
    assert_eq!(world.streams.next_message(world.now), Some(SourceMessage::Close(eu.clone())));
    assert_eq!((world.streams.next_message(world.now), world.streams.next_deadline()), (None, None));
    // Of one that the hub was never asked for, it is not told.
    let begin = |world: &mut World| {
        world.streams.begin(&cluster("eu"), world.now);
        world.set_facts(facts("eu"), Vec::new());
    };
    begin(&mut world);
    world.streams.close(&eu);
    assert_eq!((world.streams.next_message(world.now), world.streams.next_deadline()), (None, None));
    begin(&mut world);
    assert_eq!(world.streams.next_message(world.now), Some(SourceMessage::Open(eu.clone())));
    world.streams.close(&eu);
    begin(&mut world);
    assert_eq!(world.streams.next_message(world.now), Some(SourceMessage::Open(eu)));
}

#[test]
fn busy_cluster_does_not_delay_others() {
    let mut streams = ReportStreams::default();
    let now = seconds(1_000);
    for (name, count) in [("big", MAX_HALVES * 20), ("small", 1)] {
        streams.begin(&cluster(name), now);
        for number in 0..count {
            let body = HalfBody::Observed(Box::new(observed(Status::Current, 1)));
            streams.set(&cluster(name), id(number), body, now);
        }
        streams.set_facts(&cluster(name), facts(name), Vec::new(), now);
    }
    let mut order = Vec::new();
    let mut at = now;
    while let Some(message) = streams.next_message(at) {
        at += Duration::from_millis(1);
        match message {
            SourceMessage::Open(cluster) => streams.take(&SourceReply::Accepted { cluster, epoch: 1 }, at),
            SourceMessage::Report(report) => order.push(report.cluster.0),
            SourceMessage::Close(_) => panic!("nothing was closed"),
        }
    }
    let place = order.iter().rposition(|name| name == "small").unwrap();
    assert!(place < 6, "{order:?}");
}

#[test]
fn problem_of_severity_error_is_worse_than_a_notice() {
    let problem = |severity| Problem {
        axis: Axis::Health,
        state: "Unconfirmed".to_owned(),
        severity,
        since: None,
        message: "".into(),
        object: None,
        upstream: None,
    };
    let with = |severity| ObservedHalf {
        unmarked: Some(Box::new(problem(severity))),
        ..observed(Status::Current, 1)
    };
    let mut world = World::new([(0, with(ProblemSeverity::Notice))]);
    world.set(0, with(ProblemSeverity::Error));
    assert_eq!(changes(world.now, &world.run(Duration::ZERO)).len(), 1);
}

/// After random changes, lost reports and refusals, the hub knows what the source knows.
#[test]
fn disturbed_streams_end_in_the_truth() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::new([]);
        let mut truth: BTreeMap<usize, (Status, usize)> = BTreeMap::new();
        for _ in 0..150 {
            let number = random.usize(0..12);
            match random.u8(0..10) {
                0..=3 => {
                    let health = [Status::Failed, Status::InProgress, Status::Current][random.usize(0..3)];
                    let half = (health, random.usize(0..3));
                    truth.insert(number, half);
                    world.set(number, observed(half.0, half.1));
                }
                4 => {
                    truth.remove(&number);
                    world.remove(number);
                }
                5 => world.is_lossy = random.u8(0..4) == 0,
                6 if random.u8(0..4) == 0 => drop(world.hub.reopen()),
                7 => {
                    world.streams.begin_pass();
                    for (number, (health, count)) in &truth {
                        world.set(*number, observed(*health, *count));
                    }
                    world.streams.end_pass(world.now);
                }
                _ => drop(world.run(Duration::from_millis(random.u64(0..8_000)))),
            }
        }
        world.is_lossy = false;
        world.run(DIGEST * 2);
        let truth: Vec<_> = truth.iter().map(|(number, half)| (*number, half.0, half.1)).collect();
        assert_eq!(world.held(), expected(&truth), "seed {seed}");
        assert_eq!(world.state(), FreshnessState::Live, "seed {seed}");
    }
}

#[test]
fn apps_of_others_leave_room_and_what_is_too_long_is_said() {
    let mut world = World::new([]);
    let body = || HalfBody::Observed(Box::new(observed(Status::Current, 1)));
    let guest = |name: String| {
        let HalfId { app, side } = id(0);
        HalfId { app: AppId { home: cluster("evil"), app: AppName { name, ..app.app } }, side }
    };
    for number in 0..=MAX_APPS {
        world.streams.set(&cluster("eu"), guest(format!("app-{number}")), body(), world.now);
    }
    world.streams.set(&cluster("eu"), guest("a".repeat(1_000)), body(), world.now);
    world.set(0, observed(Status::Failed, 1));
    let message = "a".repeat(100_000);
    let problem = Problem {
        axis: Axis::Health,
        state: "Failed".to_owned(),
        severity: ProblemSeverity::Error,
        since: None,
        message: message.into(),
        object: None,
        upstream: None,
    };
    world.set(1, ObservedHalf { unmarked: Some(Box::new(problem)), ..observed(Status::Failed, 1) });
    world.set_facts(facts("eu"), Vec::new());
    world.run(COLLECTING * 2);
    assert_eq!((world.hub.apps().count(), world.hub.refused(), world.hub.cut()), (MAX_APPS + 2, 0, 0));
    assert!([0, 1].into_iter().all(|number| world.hub.observed(&id(number).app).is_some()));
    let said = world.hub.errors().iter().map(|error| format!("{}: {}", error.reason, error.message));
    let expected = [
        "TooManyApps: only 20000 apps that other clusters declare for this one are shown, and there are more",
        "TooLong: apps with names longer than 512 bytes are not shown",
        "TooLong: Taffrail shortened 1 reports about apps, because their texts or labels are too long or too many",
    ];
    assert_eq!(said.collect::<Vec<_>>(), expected);
    world.set(1, observed(Status::Failed, 1));
    world.set_facts(facts("eu"), Vec::new());
    world.run(COLLECTING * 2);
    assert_eq!(world.hub.errors().len(), 2);
}

#[test]
fn a_stream_that_is_opened_again_sends_only_what_the_hub_lacks() {
    let healths: Vec<(usize, ObservedHalf)> = (0..500).map(|it| (it, observed(Status::Current, 1))).collect();
    let mut world = World::new(healths);
    world.run(seconds(1));
    // The hub forgets nothing, and neither side knows what of the last reports the other one got.
    world.reopen();
    let told = world.run(seconds(2));
    let sent: Vec<&str> = told.iter().map(|(_, report)| words(&report.content)).collect();
    assert_eq!(sent, ["cluster", "digest"]);
    assert_eq!(world.state(), FreshnessState::Live);

    world.is_lossy = true;
    world.set(3, observed(Status::Failed, 1));
    world.remove(7);
    world.run(seconds(2));
    world.is_lossy = false;
    world.reopen();
    let told = world.run(seconds(2));
    let halves = |content: &Content| match content {
        Content::Snapshot { halves, .. } => halves.len(),
        _ => 0,
    };
    let resent: usize = told.iter().map(|(_, report)| halves(&report.content)).sum();
    // Two of 64 buckets differ.
    assert!((1..100).contains(&resent), "{resent}");
    let held = world.held();
    assert_eq!((held.len(), held[&id(3).app].0), (499, Status::Failed));

    // A hub that knows nothing gets all.
    world.hub = Received::new(cluster("eu"), world.epoch);
    world.reopen();
    world.run(seconds(2));
    assert_eq!(world.held().len(), 499);
    assert_eq!(world.state(), FreshnessState::Live);
}

#[test]
fn reports_are_short_unless_one_half_is_long() {
    let long = |text: &str| {
        let problem = Problem {
            axis: Axis::Health,
            state: "Failed".to_owned(),
            severity: ProblemSeverity::Error,
            since: None,
            message: text.repeat(1_000).as_str().into(),
            object: None,
            upstream: None,
        };
        let speaker = crate::report::Speaker {
            status: Status::Failed,
            rule: "builtin".to_owned(),
            unconfirmed: false,
            problem,
        };
        ObservedHalf { worst: Some(Box::new(speaker)), ..observed(Status::Failed, 1) }
    };
    let mut world = World::new((0..300).map(|number| (number, long("a"))));
    world.hub = Received::new(cluster("eu"), world.epoch);
    world.reopen();
    let told = world.run(seconds(2));
    (0..300).for_each(|number| world.set(number, long("b")));
    let told = [told, world.run(seconds(6))].concat();
    let sizes: Vec<usize> = told
        .iter()
        .map(|(_, report)| match &report.content {
            Content::Snapshot { halves, .. } | Content::Changes { changed: halves, .. } => {
                halves.iter().map(crate::report::Half::size).sum()
            }
            _ => 0,
        })
        .collect();
    assert!(sizes.iter().all(|size| *size < 50 * 1024), "{sizes:?}");
    assert_eq!(world.held().len(), 300);
}
