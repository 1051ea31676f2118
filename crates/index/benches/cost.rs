//! Measures the cost of the index of a cluster of 100,000 objects: bytes an object, time to take one, to walk a tree,
//! to publish.
//!
//! `cargo bench -p taffrail-index --bench cost -- [NAMESPACES [ROUNDS]]`; 200 namespaces of 500 objects and one round
//! of updates are the default. The objects are shaped as those of a real cluster: of each namespace 5 apps with 8
//! Deployments, 10 ReplicaSets and 40 Pods (95 % ready, 2 % crashing, 3 % pending), 5 Services with their
//! EndpointSlices, 15 ConfigMaps, 10 Secrets and others.

#![allow(clippy::print_stdout, reason = "that is what it is for")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads clocks and files")]
#![allow(clippy::expect_used, reason = "a measurement that fails is none")]

mod objects;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_index::{Handle, Index, IndexSettings, KindId};
use taffrail_object::ApiResource;
use taffrail_object::json::Parser;
use taffrail_object::{Object, Projection};
use taffrail_status::Status;

use objects::{api_version, generate};

/// Returns the CPU time of this thread so far: other processes may run beside it.
fn busy() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

fn kind(index: &mut Index, kind: &str) -> KindId {
    let (group, version) = api_version(kind).split_once('/').unwrap_or(("", "v1"));
    index.kind(&ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced: true,
    })
}

fn micros(duration: Duration, count: usize) -> f64 {
    duration.as_secs_f64() * 1e6 / count.max(1) as f64
}

fn main() {
    let namespaces = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200);
    let now: Timestamp = "2026-11-01T11:00:00Z".parse().expect("a time");
    let mut bytes = 0;
    let mut parser = Parser::new();
    // What the measurement itself needs is not the index's.
    let mut texts = Vec::new();
    generate(2, &mut |_, text| texts.push(text.to_owned()));
    texts.iter().for_each(|text| bytes += parser.parse(text.as_bytes()).map_or(0, |_| text.len()));
    drop(texts);
    let before = resident();
    let mut index = Index::new(IndexSettings {
        mark: Arc::new(|object, add| {
            add(&object.text(&["metadata", "labels", "app.kubernetes.io/instance"]))
        }),
        ..IndexSettings::default()
    });
    let (mut parsing, mut applying, mut reassessment) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let (mut count, mut loaded) = (0, 0);
    bytes = 0;
    let mut some: Vec<(KindId, Projection, String)> = Vec::new();
    let mut take = |some: &mut Vec<(KindId, Projection, String)>, index: &mut Index| {
        let begun = busy();
        for (.., text) in some.iter() {
            std::hint::black_box(parser.parse(text.as_bytes()).expect("JSON"));
        }
        let parsed = busy() - begun;
        let begun = busy();
        for (kind, projection, text) in some.iter() {
            let document = parser.parse(text.as_bytes()).expect("JSON");
            let object = Object::new(document.root()).expect("an object");
            index.apply(*kind, &object, *projection, now).expect("taken");
        }
        loaded += 1;
        parsing += parsed;
        applying += (busy() - begun).saturating_sub(parsed);
        some.clear();
        // As the owner of an index does while it loads.
        if loaded % 5 == 0 {
            let begun = busy();
            index.publish(now);
            reassessment += busy() - begun;
        }
    };
    generate(namespaces, &mut |name, text| {
        let projection =
            if matches!(name, "Secret" | "ConfigMap") { Projection::Metadata } else { Projection::Full };
        some.push((kind(&mut index, name), projection, text.to_owned()));
        count += 1;
        bytes += text.len();
        if some.len() == 1_000 {
            take(&mut some, &mut index);
        }
    });
    take(&mut some, &mut index);
    drop(some);
    println!("objects            {count} of {} B on average", bytes / count);
    println!("parse              {:.2} µs an object", micros(parsing, count));
    println!("apply              {:.2} µs an object", micros(applying, count));
    println!("reassess, publish  {:.2} µs an object", micros(reassessment, count));
    let begun = busy();
    let snapshot = index.publish(now);
    println!("publish, once      {:.0} µs", micros(busy() - begun, 1));
    println!("resident           {} B an object", (resident() - before) / count);
    println!("sizes              {:?}", index.sizes());
    let statuses: Vec<_> =
        Status::ALL.iter().map(|status| (status.word(), snapshot.counts().get(*status))).collect();
    println!("statuses           {statuses:?}");
    walk(&snapshot);
    drop(snapshot);
    // Again and again, for those who look with a profiler.
    for _ in 0..std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap_or(1) {
        update(&mut index, now);
    }
}

fn walk(snapshot: &taffrail_index::Snapshot) {
    let deployments = snapshot.find_kind("apps", "Deployment").expect("Deployments");
    let roots: Vec<Handle> = snapshot.of_kind(deployments, None).map(|object| object.handle()).collect();
    let (mut nodes, rounds) = (0, 20);
    let begun = busy();
    for _ in 0..rounds {
        for root in &roots {
            nodes += snapshot.tree(std::slice::from_ref(root)).count();
        }
    }
    println!(
        "tree, cold caches  {:.1} ns a node ({} trees)",
        (busy() - begun).as_secs_f64() * 1e9 / nodes as f64,
        roots.len()
    );
    let marks: Vec<String> = snapshot.marks().map(|(name, _)| name.to_owned()).collect();
    let app = &marks[marks.len() / 2];
    let managed: Vec<Handle> = snapshot
        .marked(app)
        .filter(|object| object.owners().next().is_none())
        .map(|object| object.handle())
        .collect();
    let mut nodes = 0;
    let begun = busy();
    for _ in 0..1_000 {
        nodes += snapshot.tree(&managed).count();
    }
    println!(
        "tree of an app     {:.1} ns a node warm ({} nodes)",
        (busy() - begun).as_secs_f64() * 1e9 / nodes as f64,
        nodes / 1_000
    );
    let begun = busy();
    let found: usize = marks.iter().map(|mark| snapshot.marked(mark).count()).sum();
    println!(
        "objects of an app  {:.1} µs ({} each)",
        micros(busy() - begun, marks.len()),
        found / marks.len().max(1)
    );
    let keys: Vec<_> = snapshot.all().step_by(37).map(|object| object.object_name()).collect();
    let begun = busy();
    let found = keys
        .iter()
        .filter(|name| snapshot.find(&name.group, &name.kind, &name.namespace, &name.name).is_some())
        .count();
    println!("lookup by name     {:.2} µs ({found})", micros(busy() - begun, keys.len()));
}

/// Measures status updates of Pods, with a snapshot after every few, while a reader holds the last one.
fn update(index: &mut Index, now: Timestamp) {
    let mut parser = Parser::new();
    let mut texts = Vec::new();
    generate(4, &mut |kind, text| {
        if kind == "Pod" {
            texts.push(text.to_owned());
        }
    });
    for (label, batch) in [("one by one", 1), ("by 20", 20)] {
        let pods = kind(index, "Pod");
        let (mut applying, mut publishing, mut slowest) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let mut held = index.publish(now);
        for (at, text) in texts.iter().enumerate() {
            let ready = if batch == 1 { "False" } else { "True" };
            let text = text.replace(
                r#"{"type":"Ready","status":"True""#,
                &format!(r#"{{"type":"Ready","status":"{ready}""#),
            );
            let document = parser.parse(text.as_bytes()).expect("JSON");
            let object = Object::new(document.root()).expect("an object");
            let begun = busy();
            index.apply(pods, &object, Projection::Full, now).expect("taken");
            applying += busy() - begun;
            if at % batch == 0 {
                let begun = busy();
                held = index.publish(now);
                publishing += busy() - begun;
                slowest = slowest.max(busy() - begun);
            }
        }
        println!(
            "updates, {label:<10} {:.1} µs apply, {:.1} µs reassess and publish (at most {:.0} µs)",
            micros(applying, texts.len()),
            micros(publishing, texts.len().div_ceil(batch)),
            micros(slowest, 1)
        );
        drop(held);
    }
}
