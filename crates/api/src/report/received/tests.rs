//! Reports that are lost, repeated, delayed and reordered, beside the truth.

use std::collections::BTreeMap;

use taffrail_apps::Delivery;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use super::*;
use crate::AppName;
use crate::report::{LIVE, ObservedHalf, Speaker};

/// The greatest time that a report is on its way; one that takes longer is lost.
const TRANSIT: Duration = Duration::from_secs(5);

/// A random number generator, so that a failing seed can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn cluster() -> ClusterId {
    ClusterId("prod".to_owned())
}

fn app(number: u8) -> AppId {
    let app =
        AppName { delivery: Delivery::Label, namespace: "shop".to_owned(), name: format!("app-{number}") };
    AppId { home: cluster(), app }
}

fn half(number: u8, health: Status, key: u64) -> Half {
    let observed = ObservedHalf::new(health, Counts::default());
    // Distinct for each app and status, and dependent on the key of the source.
    let mut hash = Random(key ^ (u64::from(number) << 8) ^ health as u64);
    let fingerprint = (0..4).fold(0, |so_far: u64, _| so_far << 16 ^ hash.below(1 << 30) as u64);
    Half { app: app(number), fingerprint, body: HalfBody::Observed(Box::new(observed)) }
}

/// A cluster, the source that observes it, the reports on their way, and what the hub knows.
struct World {
    random: Random,
    now: Duration,
    /// The true state: each status of each app, with the moment at which it began.
    truth: BTreeMap<u8, Vec<(Duration, Option<Status>)>>,
    /// False while the API server answers nobody.
    is_up: bool,
    known: BTreeMap<u8, Status>,
    key: u64,
    position: StreamPosition,
    proved: Duration,
    on_the_way: Vec<(Duration, Report)>,
    hub: Received,
}

impl World {
    fn new(seed: u64, guards: Guards) -> World {
        let mut world = World {
            random: Random(seed),
            now: seconds(1_000),
            truth: BTreeMap::new(),
            is_up: true,
            known: BTreeMap::new(),
            key: seed,
            position: StreamPosition { epoch: 1, seq: 0 },
            proved: seconds(1_000),
            on_the_way: Vec::new(),
            hub: Received::new(cluster(), 1).with_guards(guards),
        };
        (0..4).for_each(|number| world.change(number, Some(Status::Current)));
        world.snapshot(u64::MAX);
        world
    }

    /// Sends a report.
    fn send(&mut self, content: Content) {
        if self.is_up {
            self.proved = self.now;
        }
        self.position.seq += 1;
        let age = Some(self.now - self.proved);
        let report = Report { cluster: cluster(), position: self.position, age, content };
        self.on_the_way.push((self.now, report));
    }

    fn halves(&self, buckets: u64) -> Vec<Half> {
        let all = self.known.iter().map(|(number, health)| half(*number, *health, self.key));
        all.filter(|half| is_in(buckets, half.fingerprint)).collect()
    }

    fn digest(&self) -> Buckets {
        let mut digest = Buckets::default();
        self.halves(u64::MAX).iter().for_each(|half| digest.toggle(half.fingerprint));
        digest
    }

    /// Sends all halves of some buckets in two parts, and the digest.
    fn snapshot(&mut self, buckets: u64) {
        let mut first = self.halves(buckets);
        let second = first.split_off(first.len() / 2);
        for (part, halves) in [first, second].into_iter().enumerate() {
            let part = u32::try_from(part).unwrap();
            self.send(Content::Snapshot { buckets, part, is_last: part == 1, halves });
        }
        self.send(Content::Digest(self.digest()));
    }

    /// Changes what runs; the source learns of it, and tells it, if the server answers.
    fn change(&mut self, number: u8, health: Option<Status>) {
        self.truth.entry(number).or_default().push((self.now, health));
        if self.is_up {
            self.learn(number, health);
        }
    }

    fn learn(&mut self, number: u8, health: Option<Status>) {
        let (changed, gone) = match health {
            Some(health) => {
                self.known.insert(number, health);
                (vec![half(number, health, self.key)], Vec::new())
            }
            None => {
                self.known.remove(&number);
                (Vec::new(), vec![HalfId { app: app(number), side: HalfSide::Observed }])
            }
        };
        self.send(Content::Changes { changed, gone });
    }

    /// The server answers again: the source learns what it missed before it believes it.
    fn come_back(&mut self) {
        self.is_up = true;
        let missed: Vec<(u8, Option<Status>)> = (self.truth.iter())
            .filter_map(|(number, all)| Some((*number, all.last()?.1)))
            .filter(|(number, health)| self.known.get(number).copied() != *health)
            .collect();
        missed.into_iter().for_each(|(number, health)| self.learn(number, health));
    }

    /// Delivers a report; the source answers a request to send buckets again.
    fn deliver(&mut self, report: Report) {
        let Ok(outcome) = self.hub.take(report, self.now) else { return };
        if outcome.resend != 0 {
            self.snapshot(outcome.resend);
        }
    }

    fn step(&mut self) {
        let (now, number) = (self.now, u8::try_from(self.random.below(4)).unwrap());
        self.on_the_way.retain(|(sent, _)| now - *sent <= TRANSIT);
        let place = self.random.below(self.on_the_way.len().max(1));
        match self.random.below(16) {
            0 => self.change(number, Some(Status::Failed)),
            1..=3 => self.change(number, Some(Status::Current)),
            4 => self.change(number, None),
            5 if self.random.below(8) == 0 => self.is_up = false,
            6 if self.random.below(8) == 0 => self.come_back(),
            7 => {
                self.position = StreamPosition { epoch: self.hub.reopen(), seq: 0 };
                self.send(Content::Digest(self.digest()));
            }
            8 => self.send(Content::Digest(self.digest())),
            5 | 6 | 9 => self.send(Content::Heartbeat),
            10 => self.now += seconds(1 + self.random.below(20) as u64),
            11 if !self.on_the_way.is_empty() && self.random.below(3) == 0 => {
                drop(self.on_the_way.remove(place))
            }
            12 if !self.on_the_way.is_empty() => {
                let (_, report) = self.on_the_way[place].clone();
                self.deliver(report);
            }
            _ if !self.on_the_way.is_empty() => {
                let place = if self.random.below(4) == 0 { place } else { 0 };
                let (_, report) = self.on_the_way.remove(place);
                self.deliver(report);
            }
            _ => {}
        }
    }

    /// Fails if an app is shown green that was green at no moment within the window. Returns the number of green ones.
    fn check(&self) -> Result<usize, String> {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let mut green = 0;
        for number in 0..4 {
            let Some(observed) = self.hub.observed(&app(number)) else { continue };
            let freshness = self.hub.freshness_of(&app(number), HalfSide::Observed, self.now, now).unwrap();
            if freshness.effective(observed.body.health) != Status::Current {
                continue;
            }
            green += 1;
            let begin = self.now.saturating_sub(LIVE + TRANSIT);
            let all = self.truth.get(&number).map(Vec::as_slice).unwrap_or_default();
            let ends = all.iter().skip(1).map(|(at, _)| *at).chain([Duration::MAX]);
            let mut spans = all.iter().zip(ends);
            if !spans.any(|((_, health), end)| *health == Some(Status::Current) && end >= begin) {
                return Err(format!("app {number} is shown green at {:?}: {all:?}", self.now));
            }
        }
        Ok(green)
    }

    /// Lets all reports come, and compares what the hub holds with the truth.
    fn settle(&mut self) -> Result<(), String> {
        self.on_the_way.clear();
        self.come_back();
        for _ in 0..10 {
            self.send(Content::Digest(self.digest()));
            for (_, report) in std::mem::take(&mut self.on_the_way) {
                self.deliver(report);
            }
            self.now += seconds(1);
        }
        let held: BTreeMap<AppId, Status> =
            self.hub.apps().map(|app| (app.clone(), self.hub.observed(app).unwrap().body.health)).collect();
        let truth: BTreeMap<AppId, Status> =
            (self.truth.iter()).filter_map(|(number, all)| Some((app(*number), all.last()?.1?))).collect();
        if held != truth {
            return Err(format!("the hub holds {held:?} instead of {truth:?}"));
        }
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        match self.hub.freshness(self.now, now).is_live() {
            true => Ok(()),
            false => Err("the cluster is not live after all reports came".to_owned()),
        }
    }

    /// Plays 200 disturbances; returns how often an app was shown green.
    fn run(seed: u64, guards: Guards) -> Result<usize, String> {
        let mut world = World::new(seed, guards);
        let mut green = 0;
        for _ in 0..200 {
            world.step();
            green += world.check()?;
        }
        world.settle().map(|()| green)
    }
}

const SEEDS: u64 = 400;

#[test]
fn disturbed_reports_end_in_the_truth_and_are_never_green_past_the_window() {
    let mut green = 0;
    for seed in 0..SEEDS {
        match World::run(seed, Guards::default()) {
            Ok(more) => green += more,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(green > 10_000, "{green} are too few to prove something");
}

#[test]
fn without_the_epoch_guard_old_reports_win() {
    let guards = Guards { epoch: false, ..Guards::default() };
    assert!((0..SEEDS).any(|seed| World::run(seed, guards).is_err()));
}

#[test]
fn without_the_age_a_dead_server_stays_green() {
    let guards = Guards { age: false, ..Guards::default() };
    assert!((0..SEEDS).any(|seed| World::run(seed, guards).is_err()));
}

fn declared() -> DeclaredHalf {
    DeclaredHalf::new("k".to_owned(), cluster(), taffrail_apps::SyncState::Synced)
}

#[test]
fn only_the_home_declares_an_app() {
    let mut hub = Received::new(cluster(), 1);
    let foreign = AppId { home: ClusterId("other".to_owned()), ..app(0) };
    let half =
        |app: AppId, fingerprint| Half { app, fingerprint, body: HalfBody::Declared(Box::new(declared())) };
    let content =
        Content::Changes { changed: vec![half(foreign.clone(), 1), half(app(1), 2)], gone: Vec::new() };
    let position = StreamPosition { epoch: 1, seq: 1 };
    let report = Report { cluster: cluster(), position, age: Some(Duration::ZERO), content };
    hub.take(report, seconds(1)).unwrap();
    assert!(hub.declared(&foreign).is_none() && hub.declared(&app(1)).is_some());
    assert_eq!(hub.refused(), 1);
}

#[test]
fn half_is_as_dark_as_its_cluster() {
    let mut hub = Received::new(cluster(), 1);
    let mut seq = 0;
    let mut take = |hub: &mut Received, content| {
        seq += 1;
        let position = StreamPosition { epoch: 1, seq };
        let report = Report { cluster: cluster(), position, age: Some(Duration::ZERO), content };
        hub.take(report, seconds(1)).unwrap();
    };
    let halves = vec![half(0, Status::Current, 1)];
    take(&mut hub, Content::Snapshot { buckets: u64::MAX, part: 0, is_last: true, halves });
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let state = |hub: &Received| {
        let freshness = hub.freshness_of(&app(0), HalfSide::Observed, seconds(2), now).unwrap();
        (freshness.state, freshness.observed_at.map(|at| now.duration_since(at).as_secs()))
    };
    assert_eq!(state(&hub), (FreshnessState::Live, Some(1)));
    for not_live in [Some(NotLive { state: FreshnessState::Lost, age: Some(seconds(20)) }), None] {
        let facts = Box::new(ClusterReport { not_live, ..ClusterReport::default() });
        take(&mut hub, Content::Cluster { facts, errors: Vec::new() });
        let expected = match not_live {
            Some(_) => (FreshnessState::Lost, Some(21)),
            None => (FreshnessState::Live, Some(1)),
        };
        assert_eq!(state(&hub), expected);
    }
}

/// Takes one report of a stream.
fn take(hub: &mut Received, seq: u64, content: Content) -> Consequences {
    let position = StreamPosition { epoch: 1, seq };
    hub.take(Report { cluster: cluster(), position, age: Some(Duration::ZERO), content }, seconds(1)).unwrap()
}

#[test]
fn what_is_too_long_is_cut_and_counted() {
    let long = "ä".repeat(100_000);
    let problem = taffrail_apps::Problem {
        axis: taffrail_apps::Axis::Health,
        state: long.clone(),
        severity: taffrail_apps::ProblemSeverity::Error,
        since: None,
        message: long.as_str().into(),
        object: Some(taffrail_object::ObjectKey::new(&*long, &*long, &*long, &*long)),
        upstream: None,
    };
    let speaker =
        Speaker { status: Status::Failed, rule: long.clone(), unconfirmed: false, problem: problem.clone() };
    let own = DeclaredHalf {
        key: long.clone(),
        target: ClusterId(long.clone()),
        sync: taffrail_apps::Sync { desired: Some(long.clone()), ..declared().sync },
        source: Some(std::sync::Arc::new(taffrail_apps::Source {
            kind: long.clone(),
            namespace: Some(long.clone()),
            name: Some(long.clone()),
            url: Some(long.clone()),
            path: Some(long.clone()),
            reference: Some(long.clone()),
        })),
        labels: std::sync::Arc::new(
            (0..1_000).map(|number| (format!("label-{number}"), "a".to_owned())).collect(),
        ),
        message: long.as_str().into(),
        own: Some(Box::new(speaker.clone())),
        problems: vec![problem.clone(); 1_000],
        syncs: Vec::new(),
        ..declared()
    };
    let HalfBody::Observed(seen) = half(0, Status::Failed, 1).body else { panic!("it is observed") };
    let seen = ObservedHalf { worst: Some(Box::new(speaker)), unmarked: Some(Box::new(problem)), ..*seen };
    let bodies = [HalfBody::Declared(Box::new(own)), HalfBody::Observed(Box::new(seen))];
    let halves: Vec<Half> =
        (1..).zip(bodies).map(|(fingerprint, body)| Half { app: app(0), fingerprint, body }).collect();
    let mut digest = Buckets::default();
    halves.iter().for_each(|half| digest.toggle(half.fingerprint));
    let snapshot = Content::Snapshot { buckets: u64::MAX, part: 0, is_last: true, halves: halves.clone() };
    let changes = Content::Changes { changed: halves, gone: Vec::new() };
    for content in [snapshot, changes] {
        let mut hub = Received::new(cluster(), 1);
        take(&mut hub, 1, content);
        let own = hub.declared(&app(0)).unwrap();
        let seen = hub.observed(&app(0)).unwrap();
        assert_eq!((own.body.labels.len(), own.body.message.len() <= 4096), (64, true));
        // Seventeen messages, and half a kibibyte of each other text.
        let size =
            serde_json::to_vec(&*own.body).unwrap().len() + serde_json::to_vec(&*seen.body).unwrap().len();
        assert!(size < 200_000, "{size} bytes are kept");
        assert_eq!((hub.cut(), hub.refused()), (2, 0));
        // Who writes a long text does not make the cluster dark.
        assert_eq!(take(&mut hub, 2, Content::Digest(digest.clone())).resend, 0);
    }
}

#[test]
fn app_with_too_long_a_name_is_refused() {
    let mut long = half(0, Status::Current, 1);
    long.app.app.name = "a".repeat(100_000);
    let snapshot =
        Content::Snapshot { buckets: u64::MAX, part: 0, is_last: true, halves: vec![long.clone()] };
    let changes = Content::Changes { changed: vec![long], gone: Vec::new() };
    for content in [snapshot, changes] {
        let mut hub = Received::new(cluster(), 1);
        assert_eq!(take(&mut hub, 1, content).changed, []);
        assert_eq!((hub.apps().count(), hub.refused()), (0, 1));
    }
}

#[test]
fn facts_and_failures_are_cut() {
    let long = "a".repeat(100_000);
    let facts = ClusterReport {
        name: long.clone(),
        aliases: vec![long.clone(); 1_000],
        version: Some(long.clone()),
        blind: Some(long.clone()),
        lost: Some(crate::report::LostCluster { message: long.clone(), silence: long.clone() }),
        ..ClusterReport::default()
    };
    let row =
        ErrorRow { cluster: long.clone(), scope: long.clone(), reason: long.clone(), message: long.clone() };
    let mut hub = Received::new(cluster(), 1);
    take(&mut hub, 1, Content::Cluster { facts: Box::new(facts), errors: vec![row] });
    let facts = serde_json::to_vec(&**hub.facts()).unwrap().len();
    let errors = serde_json::to_vec(&**hub.errors()).unwrap().len();
    assert!(facts < 160_000 && errors < 10_000, "{facts} and {errors} bytes are kept");
}

#[test]
fn apps_of_others_leave_room_for_those_of_the_cluster() {
    let mut hub = Received::new(cluster(), 1);
    let guest = |number: usize| {
        let mut guest = half(0, Status::Current, 1);
        (guest.app.home, guest.fingerprint) = (ClusterId("evil".to_owned()), number as u64);
        guest.app.app.name = format!("app-{number}");
        guest
    };
    let changed = (0..=MAX_APPS).map(guest).collect();
    take(&mut hub, 1, Content::Changes { changed, gone: Vec::new() });
    assert_eq!((hub.apps().count(), hub.refused()), (MAX_APPS, 1));
    take(&mut hub, 2, Content::Changes { changed: vec![half(0, Status::Failed, 1)], gone: Vec::new() });
    assert!(hub.observed(&app(0)).is_some());
    // Room is given back.
    let gone = vec![guest(0).id()];
    take(&mut hub, 3, Content::Changes { changed: vec![guest(MAX_APPS)], gone });
    assert_eq!((hub.apps().count(), hub.refused()), (MAX_APPS + 1, 1));
}

#[test]
fn a_snapshot_changes_only_what_differs() {
    let mut hub = Received::restored(cluster(), 0, ClusterReport::default(), None);
    let body = |number, health| half(number, health, 0).body;
    for number in 0..3 {
        hub.restore(app(number), body(number, Status::Current), None, seconds(0));
    }
    hub.reopen();
    let restored = Arc::clone(&hub.observed(&app(0)).unwrap().body);
    let lost = NotLive { state: FreshnessState::Lost, age: Some(seconds(20)) };
    let mut dark = half(3, Status::Current, 4);
    let HalfBody::Observed(observed) = &mut dark.body else { unreachable!() };
    observed.not_live = Some(lost);
    let snapshot = |halves| Content::Snapshot { buckets: u64::MAX, part: 0, is_last: true, halves };
    let halves = || vec![half(0, Status::Current, 1), half(1, Status::Failed, 2), dark.clone()];
    let outcome = take(&mut hub, 1, snapshot(halves()));
    assert_eq!(outcome.changed, [app(2), app(1), app(3)]);
    let kept = hub.observed(&app(0)).unwrap();
    assert!(Arc::ptr_eq(&kept.body, &restored), "the equal half is held twice");
    assert_eq!(kept.received, seconds(1));
    let mut digest = Buckets::default();
    halves().iter().for_each(|half| digest.toggle(half.fingerprint));
    assert_eq!(
        take(&mut hub, 2, Content::Digest(digest)).resend,
        0,
        "the fingerprints are not those of the source"
    );
    // The age of an observation that is not live counts from its receipt.
    assert_eq!(take(&mut hub, 3, snapshot(halves())).changed, [app(3)]);
}

#[test]
fn no_digest_proves_restored_halves_without_fingerprints() {
    let mut hub = Received::restored(cluster(), 0, ClusterReport::default(), None);
    for number in 0..3 {
        hub.restore(app(number), half(number, Status::Current, 0).body, None, seconds(0));
    }
    hub.reopen();
    // An app went while the hub was away. The source, which tells only what changed since, has its digest without it.
    let halves = || vec![half(0, Status::Current, 1), half(1, Status::Current, 2)];
    let mut digest = Buckets::default();
    halves().iter().for_each(|half| digest.toggle(half.fingerprint));
    let asked = take(&mut hub, 1, Content::Digest(digest.clone()));
    assert_eq!(asked.resend, u64::MAX);
    let snapshot = Content::Snapshot { buckets: u64::MAX, part: 0, is_last: true, halves: halves() };
    assert_eq!(take(&mut hub, 2, snapshot).changed, [app(2)]);
    assert_eq!(take(&mut hub, 3, Content::Digest(digest)).resend, 0);
}

#[test]
fn digest_proves_restored_halves_by_their_fingerprints() {
    let half = |number, health, fingerprint| Half { fingerprint, ..half(number, health, 0) };
    let restored = || {
        let mut hub = Received::restored(cluster(), 0, ClusterReport::default(), None);
        for number in 0..3 {
            let half = half(number, Status::Current, number as u64 + 1);
            hub.restore(half.app, half.body, Some(half.fingerprint), seconds(0));
        }
        hub.reopen();
        hub
    };
    let digest = |fingerprints: &[u64]| {
        let mut digest = Buckets::default();
        fingerprints.iter().for_each(|fingerprint| digest.toggle(*fingerprint));
        Content::Digest(digest)
    };
    let mut hub = restored();
    assert_eq!(take(&mut hub, 1, digest(&[1, 2, 3])).resend, 0);
    assert_eq!(hub.state(seconds(1)), FreshnessState::Live, "an equal digest is a proof");

    // An app went and another one failed while the hub was away: only their buckets are asked for.
    let mut hub = restored();
    let asked = take(&mut hub, 1, digest(&[1, 12])).resend;
    assert_eq!(asked, 1 << 2 | 1 << 3 | 1 << 12);
    assert_eq!(hub.state(seconds(1)), FreshnessState::Lost);
    let halves = vec![half(1, Status::Failed, 12)];
    let snapshot = Content::Snapshot { buckets: asked, part: 0, is_last: true, halves };
    assert_eq!(take(&mut hub, 2, snapshot).changed, [app(2), app(1)]);
    assert_eq!(take(&mut hub, 3, digest(&[1, 12])).resend, 0);

    // The source was started again, and has another key.
    let mut hub = restored();
    let asked = take(&mut hub, 1, digest(&[21, 22, 23])).resend;
    let halves = (0..3).map(|number| half(number, Status::Current, number as u64 + 21)).collect();
    let snapshot = Content::Snapshot { buckets: asked, part: 0, is_last: true, halves };
    let outcome = take(&mut hub, 2, snapshot);
    assert_eq!((outcome.changed, outcome.renewed), (vec![], vec![app(0), app(1), app(2)]));
    assert_eq!(take(&mut hub, 3, digest(&[21, 22, 23])).resend, 0);
}

#[test]
fn halves_of_one_source_take_bounded_memory() {
    let mut hub = Received::new(cluster(), 1);
    let long = |number: usize, letters: usize| {
        let mut half = half(0, Status::Failed, number as u64 + 1);
        half.app.app.name = format!("long-{number}");
        let HalfBody::Observed(observed) = &mut half.body else { unreachable!() };
        let problem = taffrail_apps::Problem {
            axis: taffrail_apps::Axis::Health,
            state: "Failed".to_owned(),
            severity: taffrail_apps::ProblemSeverity::Error,
            since: None,
            message: "x".repeat(letters).as_str().into(),
            object: None,
            upstream: None,
        };
        observed.unmarked = Some(Box::new(problem));
        half
    };
    let all = MAX_BYTES / 4_000;
    for (seq, first) in (1..).zip((0..all + 200).step_by(200)) {
        let changed = (first..first + 200).map(|number| long(number, 4_000)).collect();
        take(&mut hub, seq, Content::Changes { changed, gone: Vec::new() });
    }
    let kept = hub.apps().count();
    assert!(kept > all * 8 / 10 && kept < all && hub.refused() > 0, "{kept} of {all}");
    // What goes makes room, and what does not grow is always taken.
    let seq = (all as u64 + 200).div_ceil(200) + 1;
    take(&mut hub, seq, Content::Changes { changed: vec![long(0, 10)], gone: vec![long(1, 0).id()] });
    let refused = hub.refused();
    take(&mut hub, seq + 1, Content::Changes { changed: vec![long(all + 500, 4_000)], gone: Vec::new() });
    assert_eq!(hub.refused(), refused);
    // The parts of a snapshot that is not complete count, too.
    for (part, first) in (0..).zip((0..2 * all).step_by(200)) {
        let halves = (first..first + 200).map(|number| long(number, 4_000)).collect();
        let content = Content::Snapshot { buckets: u64::MAX, part, is_last: first + 200 >= 2 * all, halves };
        take(&mut hub, seq + 2 + u64::from(part), content);
    }
    assert!(hub.apps().count() < all && hub.refused() >= all);
}
