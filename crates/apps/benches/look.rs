//! The cost of one look at a cluster of 20,000 objects: by a snapshot, by an index that keeps every body, by a compact index.
//!
//! `cargo bench -p taffrail-apps --bench look`; the three take turns, and the median of each is printed.

#![allow(clippy::print_stdout, reason = "that is what it is for")]
#![allow(clippy::expect_used, reason = "a measurement that fails is none")]
#![allow(clippy::disallowed_methods, reason = "the crate is pure, who measures it is not")]

#[path = "../../index/benches/objects/mod.rs"]
mod objects;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use objects::{api_version, generate};
use taffrail_apps::{Freshness, IndexedCluster, Objects, Snapshot, apps, index_settings};
use taffrail_index::{Index, IndexSettings, Retention};
use taffrail_object::json::{OwnedDocument, Parser};
use taffrail_object::{ApiResource, Object, Projection};
use taffrail_status::{ActiveRules, Taffrail};

/// The number of objects, each with its kind and the part of it that is read.
const NAMESPACES: usize = 40;
const ROUNDS: usize = 5;

type Given = (&'static str, Projection, String);

/// Time that this thread was on a processor: others may be at work beside it.
fn busy() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

fn resource(kind: &str) -> ApiResource {
    let (group, version) = api_version(kind).split_once('/').unwrap_or(("", "v1"));
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced: true,
    }
}

fn by_snapshot(given: &[Given], now: Timestamp) -> usize {
    let mut snapshot = Snapshot::dump("prod", now);
    for (_, projection, text) in given {
        let document = OwnedDocument::parse(text.as_bytes()).expect("JSON");
        snapshot.insert(document, *projection).expect("taken");
    }
    apps(&[&snapshot], &ActiveRules::default(), now).apps.len()
}

fn settings(retention: Retention, assess: bool) -> IndexSettings {
    IndexSettings { retention, assess, ..index_settings(Arc::new(Taffrail)) }
}

fn by_full_index(given: &[Given], now: Timestamp, assess: bool) -> usize {
    let mut index = Index::new(settings(Retention::Full, assess));
    for (kind, projection, text) in given {
        let kind = index.kind(&resource(kind));
        let document = OwnedDocument::parse(text.as_bytes()).expect("JSON");
        index.apply_document(kind, document, *projection, now).expect("taken");
    }
    let contents = index.publish(now);
    let cluster = IndexedCluster::dump("prod", &contents, Freshness::live(now));
    apps(&[&cluster as &dyn Objects], &ActiveRules::default(), now).apps.len()
}

fn by_compact_index(given: &[Given], now: Timestamp) -> usize {
    let mut index = Index::new(settings(Retention::Compact, true));
    let mut parser = Parser::new();
    for (kind, projection, text) in given {
        let kind = index.kind(&resource(kind));
        let document = parser.parse(text.as_bytes()).expect("JSON");
        let object = Object::new(document.root()).expect("an object");
        index.apply(kind, &object, *projection, now).expect("taken");
    }
    let contents = index.publish(now);
    let cluster = IndexedCluster::dump("prod", &contents, Freshness::live(now));
    apps(&[&cluster as &dyn Objects], &ActiveRules::new(&contents.rules()), now).apps.len()
}

fn main() {
    let now: Timestamp = "2026-11-01T11:00:00Z".parse().expect("a time");
    let mut given: Vec<Given> = Vec::new();
    let names =
        ["Secret", "ConfigMap", "ServiceAccount", "Database", "Queue", "Certificate", "Ingress", "Service"];
    let names =
        names.iter().chain(&["HorizontalPodAutoscaler", "Deployment", "ReplicaSet", "Pod", "EndpointSlice"]);
    let names: Vec<&'static str> = names.copied().collect();
    generate(NAMESPACES, &mut |kind, text| {
        let kind = names.iter().find(|own| **own == kind).expect("a kind");
        let is_cut = matches!(*kind, "Secret" | "ConfigMap");
        let projection = if is_cut { Projection::Metadata } else { Projection::Full };
        given.push((kind, projection, text.to_owned()));
    });
    let looks: [(&str, &dyn Fn() -> usize); 4] = [
        ("snapshot", &|| by_snapshot(&given, now)),
        ("full index", &|| by_full_index(&given, now, true)),
        ("full index that judges alone", &|| by_full_index(&given, now, false)),
        ("compact index", &|| by_compact_index(&given, now)),
    ];
    let mut times = looks.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((_, look), times) in looks.iter().zip(&mut times) {
            let begun = busy();
            std::hint::black_box(look());
            times.push(busy() - begun);
        }
    }
    println!("objects                        {}", given.len());
    let medians = times.map(median);
    for (((name, look), own), first) in looks.iter().zip(medians).zip([medians[0]; 4]) {
        println!("{name:<30} {own:7.1} ms, {:.2} x ({} apps)", own / first, look());
    }
}
