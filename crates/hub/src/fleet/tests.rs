//! Rows from reports of several sources and clusters.

use std::collections::BTreeMap;

use jiff::Timestamp;
use taffrail_api::AppName;
use taffrail_api::report::{Content, Half, HalfBody, StreamPosition};
use taffrail_apps::{Delivery, SyncState};
use taffrail_status::Status;

use super::*;

fn id(name: &str) -> ClusterId {
    ClusterId(name.to_owned())
}

fn app(home: &str) -> AppId {
    let app = AppName { delivery: Delivery::Kpt, namespace: "shop".to_owned(), name: "web".to_owned() };
    AppId { home: id(home), app }
}

fn declared(home: &str, target: &str) -> Half {
    let mut body = DeclaredHalf::new("web".to_owned(), id(target), SyncState::Synced);
    body.sync.applied = Some("v1".to_owned());
    body.message = "applied v1".into();
    Half { app: app(home), fingerprint: 1, body: HalfBody::Declared(Box::new(body)) }
}

fn observed(home: &str, health: Status) -> Half {
    let body = ObservedHalf::new(health, [health].into_iter().collect());
    let fingerprint = 100 + health as u64;
    Half { app: app(home), fingerprint, body: HalfBody::Observed(Box::new(body)) }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn moment(at: u64) -> HubTime {
    HubTime { at: seconds(at), now: Timestamp::from_second(1_800_000_000).unwrap() }
}

/// A fleet, and the number of the last report of each stream.
#[derive(Default)]
struct World {
    fleet: FleetState,
    sent: BTreeMap<(String, String), StreamPosition>,
}

impl World {
    fn open(&mut self, cluster: &str, source: &str) {
        let epoch = self.fleet.open(&id(cluster), source, Tells::ALL);
        self.sent.insert((cluster.to_owned(), source.to_owned()), StreamPosition { epoch, seq: 0 });
        let facts = ClusterReport { name: cluster.to_owned(), ..ClusterReport::default() };
        self.send(cluster, source, 0, Content::Cluster { facts: Box::new(facts), errors: Vec::new() });
    }

    fn send(&mut self, cluster: &str, source: &str, at: u64, content: Content) {
        let position = self.sent.get_mut(&(cluster.to_owned(), source.to_owned())).unwrap();
        position.seq += 1;
        let report = Report { cluster: id(cluster), position: *position, age: Some(Duration::ZERO), content };
        self.fleet.take(source, report, seconds(at)).unwrap();
    }

    fn snapshot(&mut self, cluster: &str, source: &str, at: u64, halves: Vec<Half>) {
        let content = Content::Snapshot { buckets: u64::MAX, part: 0, is_last: true, halves };
        self.send(cluster, source, at, content);
    }

    fn row(&self, at: u64) -> AppRow {
        let rows = self.fleet.apps(moment(at)).items;
        let [row] = <[AppRow; 1]>::try_from(rows).unwrap();
        row
    }
}

#[test]
fn row_is_as_fresh_as_the_cluster_of_each_half() {
    let mut world = World::default();
    world.open("hub", "observer");
    world.open("edge", "observer");
    world.snapshot("hub", "observer", 0, vec![declared("hub", "edge")]);
    let row = world.row(1);
    assert_eq!((row.health, row.effective, &*row.cluster), (Status::Unknown, Status::Unknown, "edge"));
    assert!(row.message.contains("has not reported"), "{}", row.message);

    world.snapshot("edge", "observer", 10, vec![observed("hub", Status::Current)]);
    let row = world.row(11);
    assert_eq!((row.effective, row.sync.effective), (Status::Current, SyncState::Synced));
    // The home fell silent at 0, the target at 10.
    let row = world.row(50);
    assert_eq!((row.effective, row.sync.effective), (Status::Current, SyncState::Unknown));
    let row = world.row(56);
    assert_eq!((row.health, row.effective), (Status::Current, Status::Unknown));
    assert_eq!(row.problem.unwrap().message, "cluster edge has not been observed for some time");
    let clusters = world.fleet.clusters(moment(56)).items;
    let told: Vec<_> = clusters.iter().map(|row| (&*row.name, row.effective, row.apps)).collect();
    assert_eq!(told, [("hub", Status::Unknown, 0), ("edge", Status::Unknown, 1)]);
}

#[test]
fn a_cluster_of_which_nothing_was_reported_is_unknown() {
    let mut world = World::default();
    world.fleet.open(&id("edge"), "observer", Tells::ALL);
    let [row] = <[_; 1]>::try_from(world.fleet.clusters(moment(1)).items).unwrap();
    assert_eq!((row.health, row.effective), (Status::Unknown, Status::Unknown));
    assert_eq!(row.message, "the cluster has not been observed yet");
}

#[test]
fn cluster_reports_only_the_objects_that_homes_declare_for_it() {
    let mut world = World::default();
    world.open("hub", "observer");
    world.open("edge", "observer");
    world.open("evil", "observer");
    world.snapshot("hub", "observer", 0, vec![declared("hub", "edge")]);
    world.snapshot("edge", "observer", 0, vec![observed("hub", Status::Failed)]);
    world.snapshot("evil", "observer", 0, vec![observed("hub", Status::Current), declared("hub", "evil")]);
    assert_eq!(world.row(1).effective, Status::Failed);
}

#[test]
fn metrics_speak_only_while_no_closer_source_is_as_live() {
    let mut world = World::default();
    world.open("prod", "observer");
    let epoch = world.fleet.open(&id("prod"), "prometheus/x", Tells::METRICS);
    let stream = ("prod".to_owned(), "prometheus/x".to_owned());
    world.sent.insert(stream, StreamPosition { epoch, seq: 0 });
    let (well, failed) = (observed("prod", Status::Current), observed("prod", Status::Failed));
    world.snapshot("prod", "observer", 0, vec![declared("prod", "prod"), well]);
    world.snapshot("prod", "prometheus/x", 10, vec![declared("prod", "prod"), failed.clone()]);
    assert_eq!(world.row(11).health, Status::Current);
    // The observer fell silent at 0.
    assert_eq!(world.row(46).health, Status::Failed);
    assert!(!world.fleet.disagreements(seconds(30)).is_empty());
    let Half { app, fingerprint, body: HalfBody::Observed(mut body) } = failed else { panic!() };
    body.unobserved = [RowPart::Health].into_iter().collect();
    let untold = Half { app, fingerprint, body: HalfBody::Observed(body) };
    world.snapshot("prod", "prometheus/x", 31, vec![declared("prod", "prod"), untold]);
    assert!(world.fleet.disagreements(seconds(60)).is_empty());
    let names: Vec<_> = world.fleet.closely_known().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names, ["prod", "prod"]);
}

#[test]
fn freshest_live_source_speaks_and_lasting_disagreement_is_listed() {
    let mut world = World::default();
    world.open("prod", "observer");
    world.open("prod", "metrics");
    world.snapshot("prod", "observer", 0, vec![declared("prod", "prod"), observed("prod", Status::Current)]);
    world.snapshot("prod", "metrics", 5, vec![observed("prod", Status::Failed)]);
    assert_eq!(world.row(6).effective, Status::Failed);
    assert_eq!(world.fleet.disagreements(seconds(14)), []);
    let listed = world.fleet.disagreements(seconds(15));
    assert_eq!(
        listed.iter().map(|it| (it.side, it.since)).collect::<Vec<_>>(),
        [(HalfSide::Observed, seconds(5))]
    );
    world.send("prod", "observer", 10, Content::Heartbeat);
    assert_eq!(world.row(11).effective, Status::Current);
    // A source that is not live neither speaks nor disagrees.
    assert_eq!(world.fleet.disagreements(seconds(52)), []);
    assert_eq!(world.row(52).effective, Status::Current);

    world.fleet.forget(&id("prod"), "observer");
    assert!(world.fleet.apps(moment(52)).items.is_empty());
    assert!(matches!(
        world.fleet.take(
            "observer",
            Report {
                cluster: id("prod"),
                position: StreamPosition { epoch: 1, seq: 9 },
                age: None,
                content: Content::Heartbeat
            },
            seconds(53)
        ),
        Err(FleetError::NotOpen { .. })
    ));
}

#[test]
fn sources_that_disagree_do_so_after_another_one_is_forgotten() {
    let mut world = World::default();
    for source in ["agent", "metrics", "observer"] {
        world.open("prod", source);
    }
    world.snapshot("prod", "agent", 0, vec![declared("prod", "prod"), observed("prod", Status::Current)]);
    world.snapshot("prod", "metrics", 5, vec![observed("prod", Status::Failed)]);
    world.snapshot("prod", "observer", 6, vec![observed("prod", Status::Current)]);
    let since = |world: &World| {
        let listed = world.fleet.disagreements(seconds(20));
        listed.iter().map(|it| (it.side, it.since)).collect::<Vec<_>>()
    };
    assert_eq!(since(&world), [(HalfSide::Observed, seconds(5))]);
    world.fleet.forget(&id("prod"), "observer");
    assert_eq!(since(&world), [(HalfSide::Observed, seconds(5))], "agent and metrics still disagree");
    world.fleet.forget(&id("prod"), "metrics");
    assert_eq!(since(&world), [], "the only one that is left agrees with itself");
}

#[test]
fn lost_source_does_not_disagree_with_live_ones() {
    let mut world = World::default();
    for source in ["agent", "metrics", "observer"] {
        world.open("prod", source);
    }
    world.snapshot("prod", "agent", 0, vec![observed("prod", Status::Failed)]);
    world.snapshot("prod", "metrics", 5, vec![observed("prod", Status::Current)]);
    world.snapshot("prod", "observer", 5, vec![observed("prod", Status::Current)]);
    assert_eq!(world.fleet.disagreements(seconds(20)).len(), 1);
    for source in ["metrics", "observer"] {
        world.send("prod", source, 200, Content::Heartbeat);
    }
    assert_eq!(world.fleet.disagreements(seconds(201)), []);
}

#[test]
fn clusters_of_one_name_have_their_own_apps() {
    let mut world = World::default();
    for cluster in ["1", "2"] {
        world.open(cluster, "observer");
        let facts = Box::new(ClusterReport { name: "eu".to_owned(), ..ClusterReport::default() });
        world.send(cluster, "observer", 0, Content::Cluster { facts, errors: Vec::new() });
        world.snapshot(cluster, "observer", 0, vec![declared(cluster, cluster)]);
    }
    let clusters = world.fleet.clusters(moment(1)).items;
    assert_eq!(clusters.iter().map(|row| row.apps).collect::<Vec<_>>(), [1, 1]);
}
