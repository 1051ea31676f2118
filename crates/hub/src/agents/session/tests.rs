//! Damaged messages of an agent.

use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use prost::Message as _;
use taffrail_api::agent_protocol::AgentMessage;
use taffrail_api::report::{
    Buckets, ClusterReport, Content, Half, MAX_APPS, Report, SourceMessage, StreamPosition,
};
use taffrail_api::{AppRow, ErrorRow};
use taffrail_status::Status;

use super::read;
use crate::HubTime;
use crate::agents::AGENT;
use crate::fleet::{FleetState, Tells};
use crate::index::samples::{app, declared, id, observed};

/// The number of messages; the variable `TAFFRAIL_FRAMES` has another one.
const FRAMES: usize = 20_000;

/// The greatest number of a report after which the agent opens another stream, as there may be few greater ones.
const LATE: u64 = 1 << 40;

fn halves(random: &mut Rng) -> Vec<Half> {
    let names = ["web", "db", "search"];
    let some = names.into_iter().filter(|_| random.bool()).collect::<Vec<_>>();
    let health = |random: &mut Rng| if random.bool() { Status::Current } else { Status::Failed };
    some.into_iter()
        .flat_map(|name| {
            let app = app("eu", name);
            [declared(&app, "eu", |_| {}), observed(&app, health(random), "no such image")]
        })
        .collect()
}

/// Makes a sound report.
fn content(random: &mut Rng) -> Content {
    match random.u8(0..6) {
        0 => Content::Heartbeat,
        1 => {
            let digest = (0..64).map(|_| random.u64(..)).collect::<Vec<_>>();
            Content::Digest(Buckets::from(digest))
        }
        2 => {
            let error = ErrorRow {
                cluster: "eu".to_owned(),
                scope: "pods".to_owned(),
                reason: "Forbidden".to_owned(),
                message: "no right".to_owned(),
            };
            let facts = ClusterReport { name: "eu".to_owned(), ..ClusterReport::default() };
            Content::Cluster { facts: Box::new(facts), errors: vec![error] }
        }
        3 => {
            let (part, is_last) = (random.u32(0..2), random.bool());
            Content::Snapshot { buckets: random.u64(..), part, is_last, halves: halves(random) }
        }
        4 => Content::Snapshot { buckets: u64::MAX, part: 0, is_last: true, halves: halves(random) },
        _ => {
            let gone = halves(random).iter().filter(|_| random.u8(0..4) == 0).map(Half::id).collect();
            Content::Changes { changed: halves(random), gone }
        }
    }
}

/// Damages a message in up to three places.
fn damage(frame: &mut Vec<u8>, random: &mut Rng) {
    for _ in 0..random.u8(0..4) {
        let at = random.usize(0..frame.len().max(1)).min(frame.len());
        let to = random.usize(at..=frame.len());
        match random.u8(0..7) {
            0 => frame.truncate(at),
            1 => drop(frame.drain(at..to)),
            2 => frame.insert(at, random.u8(..)),
            3 => {
                let again = frame[at..to].to_vec();
                frame.splice(at..at, again);
            }
            4 => {
                frame.splice(at..at, [0xff; 9]);
            }
            _ => frame.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.u8(0..8)),
        }
    }
}

/// Returns what the hub would answer about the cluster.
fn shown(fleet: &FleetState, moment: HubTime) -> (Vec<AppRow>, String) {
    (fleet.apps(moment).items, format!("{:?}", fleet.clusters(moment)))
}

#[test]
fn damaged_messages_neither_end_the_hub_nor_change_what_it_shows_if_they_are_refused() {
    let frames = std::env::var("TAFFRAIL_FRAMES").ok().and_then(|it| it.parse().ok()).unwrap_or(FRAMES);
    let mut random = Rng::with_seed(7);
    let (cluster, moment) =
        (id("eu"), HubTime { at: Duration::from_secs(1_000), now: Timestamp::UNIX_EPOCH });
    let mut fleet = FleetState::default();
    let mut position = StreamPosition { epoch: fleet.open(&cluster, AGENT, Tells::AGENT), seq: 0 };
    let (mut taken, mut refused) = (0, 0);
    let mut before = shown(&fleet, moment);
    for _ in 0..frames {
        let next = StreamPosition { seq: position.seq + 1, ..position };
        let age = Some(Duration::from_secs(1));
        let report = Report { cluster: cluster.clone(), position: next, age, content: content(&mut random) };
        let mut frame = AgentMessage::from(SourceMessage::Report(Box::new(report))).encode_to_vec();
        damage(&mut frame, &mut random);
        let message = AgentMessage::decode(&*frame).ok().map(|message| read(message, &cluster, "eu"));
        let outcome = match message {
            Some(Ok(Some(SourceMessage::Report(report)))) => {
                let position = report.position;
                fleet.take(AGENT, *report, moment.at).is_ok().then_some(position)
            }
            // Another message, or none.
            _ => None,
        };
        let after = shown(&fleet, moment);
        match outcome {
            None => {
                refused += 1;
                assert_eq!(after, before, "a refused message changed something: {frame:?}");
            }
            Some(at) => {
                taken += 1;
                // Whatever it says, it is about this cluster.
                assert!(after.0.iter().all(|row| row.home == "eu" || row.cluster == "eu"), "{:?}", after.0);
                assert!(after.0.len() <= MAX_APPS);
                position = at;
            }
        }
        before = after;
        if position.seq > LATE {
            position = StreamPosition { epoch: fleet.open(&cluster, AGENT, Tells::AGENT), seq: 0 };
            before = shown(&fleet, moment);
        }
    }
    assert!(taken > frames / 10 && refused > frames / 10, "{taken} taken, {refused} refused");
}
