//! Compares results of programs, and figures with their maximum.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::subject::Subject;
use super::{Outcome, verdict};

/// Checks that two programs have the same objects by kind, trees and managed objects; `name` is the other program's.
pub(super) fn answers(ours: &Value, theirs: &Value, name: &str) -> Result<()> {
    // Of events only warnings are kept, and by nobody else.
    let kinds = |side: &Value| -> Vec<(String, u64)> {
        let all = side["kinds"].as_object().into_iter().flatten();
        let counts = all.map(|(kind, count)| (kind.clone(), count.as_u64().unwrap_or_default()));
        counts.filter(|(kind, count)| *count > 0 && kind != "/Event").collect()
    };
    let (own, other) = (kinds(ours), kinds(theirs));
    ensure!(own == other, "the numbers of objects by kind differ\n Taffrail: {own:?}\n {name}: {other:?}");
    for what in ["trees", "managed"] {
        let other = &theirs[what];
        if other.is_null() {
            continue;
        }
        for (app, own) in ours[what].as_object().into_iter().flatten() {
            ensure!(
                other[app] == *own,
                "the answers differ in the {what} of the app {app}\n Taffrail: {own}\n {name}: {}",
                other[app]
            );
        }
        let count = |side: &Value| side.as_object().map_or(0, serde_json::Map::len);
        ensure!(
            count(&ours[what]) == count(other),
            "the answers differ in the {what}: Taffrail has {} apps, and {name} has {}",
            count(&ours[what]),
            count(other)
        );
    }
    Ok(())
}

/// Checks that two programs have the same numbers of Deployments by status.
pub(super) fn statuses(ours: &Value, theirs: &Value) -> Result<()> {
    let (own, other) = (&ours["statuses"], &theirs["statuses"]);
    ensure!(own == other, "the numbers of Deployments by status differ\n Taffrail: {own}\n kstatus: {other}");
    Ok(())
}

/// Prints a figure of Taffrail and of a peer, their ratio, and its maximum `bar` as met or missed.
fn bar(what: &str, ours: f64, theirs: f64, bar: f64) {
    let ratio = ours / theirs;
    println!("{what:62} {ours:>10.2} {theirs:>10.2} {ratio:>8.3} {bar:>8.3}  {}", verdict(ratio <= bar));
}

/// Prints all ratios that have a maximum; `floor` is the program that only lists.
pub(super) fn bars(
    ours: &Outcome,
    sides: &[Outcome],
    floor: Option<&Subject>,
    kstatus: Option<&[Subject; 2]>,
) {
    println!("{:62} {:>10} {:>10} {:>8} {:>8}", "promise", "ours", "theirs", "ratio", "bar");
    let side = |name: &str| sides.iter().find(|side| side.name == name);
    let (typed, metadata, engine) =
        (side("typed informers"), side("metadata informers"), side("gitops-engine"));
    if let Some(engine) = engine {
        let (own, other) = (ours.idle.resident, engine.collected.resident);
        bar("MiB after 10 s / gitops-engine's after collection", own, other, 0.1);
        bar("CPU s of the first sync / gitops-engine's", ours.first.cpu, engine.first.cpu, 0.125);
        if let (Some(own), Some(other)) = (&ours.events, &engine.events) {
            bar("CPU µs an event / gitops-engine's", own.cpu, other.cpu, 0.1);
        }
        let figure = |side: &Outcome, key: &str| side.queries[key]["p50"].as_f64().unwrap_or(f64::NAN);
        bar(
            "managed objects, µs / GetManagedLiveObjs",
            figure(ours, "managed_us"),
            figure(engine, "managed_us"),
            0.002,
        );
        println!("tree of an app, µs: {:.1}, {:.1}", figure(ours, "tree_us"), figure(engine, "tree_us"));
    }
    if let Some(metadata) = metadata {
        let (own, other) = (ours.idle.resident, metadata.collected.resident);
        bar("MiB after 10 s / metadata informers' after collection", own, other, 0.25);
    }
    if let Some(typed) = typed {
        bar("CPU s of the first sync / typed informers'", ours.first.cpu, typed.first.cpu, 1.0);
        if let (Some(own), Some(other)) = (&ours.events, &typed.events) {
            bar("CPU µs an event / typed informers'", own.cpu, other.cpu, 0.25);
        }
    }
    if let Some(floor) = floor {
        bar("wall s of the first sync / list only", ours.wall, floor.wall, 1.3);
    }
    if let Some(events) = &ours.events {
        bar("ms after a bare watch, p99", events.later[1], 5.0, 1.0);
    }
    bar("ns a node of a warm tree", ours.queries["ns_per_node_warm"].as_f64().unwrap_or(f64::NAN), 50.0, 1.0);
    if let Some([kstatus, workloads]) = kstatus {
        let seconds = kstatus.synced["seconds"].as_f64().unwrap_or(f64::NAN);
        bar("s until all statuses, everything followed / kstatus watcher", ours.wall, seconds, 0.05);
        bar("s until all statuses, workloads alone / kstatus watcher", workloads.wall, seconds, 0.05);
        let count = |key: &str| ours.synced[key].as_f64().unwrap_or(f64::NAN);
        bar("requests / kinds followed", count("requests"), count("kinds"), 1.0);
        println!("requests of the kstatus watcher: {}", kstatus.synced["requests"]);
    }
}
