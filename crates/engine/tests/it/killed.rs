//! A run whose process is killed at any write, before the server has it or before the answer comes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use taffrail_engine::{Manifests, PruneConsent, Stop, SyncRequest, sync};
use taffrail_plan::sync::RunEnd;
use taffrail_sim::Cluster;
use taffrail_testkit::proxy::{PassingWrite, WriteStage};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::harness::{
    Approving, PATIENCE, cluster, gate_before, kubeconfig_through, manifests, request, watcher,
};

/// The number of ConfigMaps of the set.
const CONFIG_MAPS: usize = 80;

/// A process that is killed when it reaches a write at a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KillPoint {
    number: usize,
    stage: WriteStage,
}

/// The first and the second revision of the set.
fn revision(second: bool) -> String {
    let mut text = String::from("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
    for at in 0..CONFIG_MAPS {
        // A tenth comes and goes, a tenth changes.
        if at % 10 == usize::from(second) {
            continue;
        }
        let value = if at % 10 == 5 { second } else { false };
        let wave = at % 3;
        write!(
            text,
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config-{at}, namespace: shop, \
             annotations: {{argocd.argoproj.io/sync-wave: '{wave}'}}}}\ndata: {{value: '{value}'}}\n"
        )
        .unwrap();
    }
    // A Job's template cannot change in place.
    write!(
        text,
        "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: fixed, namespace: shop, \
         annotations: {{argocd.argoproj.io/sync-options: Force=true}}}}\nspec:\n  template:\n    spec:\n      \
         restartPolicy: Never\n      containers: [{{name: main, image: 'job:{}'}}]\n",
        usize::from(second)
    )
    .unwrap();
    for (name, phases, policy, ttl) in [
        ("before", "PreSync", "BeforeHookCreation", ""),
        ("short", "PreSync", "HookSucceeded", "ttlSecondsAfterFinished: 0, "),
        ("beside", "Sync", "HookFailed", ""),
        ("twice", "PreSync,PostSync", "BeforeHookCreation", ""),
        ("after", "PostSync", "HookSucceeded,HookFailed", ""),
        ("alarm", "SyncFail", "HookFailed", ""),
    ] {
        write!(
            text,
            "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, namespace: shop, annotations: \
             {{argocd.argoproj.io/hook: '{phases}', argocd.argoproj.io/hook-delete-policy: '{policy}'}}}}\n\
             spec: {{{ttl}template: {{spec: {{restartPolicy: Never, containers: [{{name: main, image: 'hook:1'}}]}}}}}}\n"
        )
        .unwrap();
    }
    text
}

/// The request of all runs: with prune, and the consent to it.
fn asked() -> SyncRequest {
    SyncRequest { prune: Some(PruneConsent { allows_guarded: true }), ..request() }
}

/// One cluster behind a gate that notes all writes, and the processes that sync a set there.
struct Bed {
    runtime: Runtime,
    _fleet: taffrail_sim::Fleet,
    cluster: Cluster,
    folder: TempDir,
}

/// The writes of a process, with those that it was not told of left out.
type Writes = Vec<PassingWrite>;

impl Bed {
    /// Starts a cluster with the first revision of the set.
    fn start() -> Bed {
        let runtime = Runtime::new().unwrap();
        let (fleet, cluster) = runtime.block_on(cluster());
        let bed = Bed { runtime, _fleet: fleet, cluster, folder: tempfile::tempdir().unwrap() };
        let (end, _) = bed.process(&revision(false), None);
        assert_eq!(end, Some(RunEnd::Succeeded));
        bed
    }

    /// Runs one process until it ends or is killed; returns the end of its run, and the writes whose answers it got.
    fn process(&self, text: &str, killed: Option<KillPoint>) -> (Option<RunEnd>, Writes) {
        // A runtime of its own, which ends with all that the process began.
        let own = Runtime::new().unwrap();
        let writes: Arc<Mutex<Writes>> = Arc::default();
        let kill = Arc::new(Notify::new());
        let (noted, killer) = (Arc::clone(&writes), Arc::clone(&kill));
        let gate = self.runtime.block_on(gate_before(&self.cluster, self.folder.path()));
        gate.judge_writes(move |write| {
            if killed == Some(KillPoint { number: write.number, stage: write.stage }) {
                killer.notify_one();
                return false;
            }
            if write.stage == WriteStage::Answered {
                noted.lock().unwrap().push(write.clone());
            }
            true
        });
        let kubeconfig = kubeconfig_through(&gate, &self.cluster);
        let end = own.block_on(async {
            let (asked, files, stop) = (asked(), manifests(text), Stop::default());
            let mut caller = Approving::default();
            let process = async {
                let watcher = watcher(&kubeconfig).await;
                sync(watcher, &asked, Manifests::Given(&files), &stop, &mut caller).await
            };
            let ended = tokio::select! {
                biased;
                () = kill.notified() => return None,
                report = tokio::time::timeout(PATIENCE, process) => report,
            };
            let Ok(report) = ended else {
                panic!("it does not end: it waits for {:?}", caller.waits_for.last())
            };
            Some(report.unwrap().end)
        });
        own.shutdown_background();
        let writes = writes.lock().unwrap().clone();
        (end, writes)
    }

    /// Returns all that the set left in the cluster, without what differs from run to run.
    fn state(&self) -> BTreeMap<String, Value> {
        let mut state = BTreeMap::new();
        for (version, kind) in [("v1", "Namespace"), ("v1", "ConfigMap"), ("batch/v1", "Job")] {
            for mut object in self.cluster.list(version, kind) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
                if name.starts_with("taffrail-set-")
                    || name == "kube-root-ca.crt"
                    || !["shop", ""].contains(&&*namespace)
                {
                    continue;
                }
                let metadata = &object["metadata"];
                let run = metadata["annotations"]["taffrail.dev/run"].is_string();
                let kept = serde_json::json!({
                    "finalizers": metadata["finalizers"], "labels": metadata["labels"], "isHook": run,
                    "deleted": metadata["deletionTimestamp"].is_string(),
                });
                let data = object["data"].take();
                let image = object.pointer("/spec/template/spec/containers/0/image").cloned();
                state.insert(format!("{kind} {namespace}/{name}"), serde_json::json!([kept, data, image]));
            }
        }
        state
    }
}

/// Returns the number of successful writes of each object and kind of write.
fn counted(writes: &[PassingWrite]) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    let carried = writes.iter().filter(|write| write.status.is_some_and(|status| status < 300));
    for write in carried.filter(|write| !write.path.contains("dryRun")) {
        let (path, _) = write.path.split_once('?').unwrap_or((&write.path, ""));
        if path.contains("/taffrail-set-") || path.ends_with("/secrets") {
            continue;
        }
        let how = format!("{} {}", write.method, write.content_type);
        *counts.entry((path.to_owned(), how)).or_insert(0) += 1;
    }
    counts
}

/// Fails with the objects that differ, if there are any.
#[track_caller]
fn assert_same(state: &BTreeMap<String, Value>, expected: &BTreeMap<String, Value>, point: KillPoint) {
    let all: BTreeSet<&String> = state.keys().chain(expected.keys()).collect();
    let differs = |name: &&&String| state.get(**name) != expected.get(**name);
    let differing: Vec<String> = all
        .iter()
        .filter(differs)
        .map(|name| format!("{name}: {:?} where {:?} belongs", state.get(*name), expected.get(*name)))
        .collect();
    assert!(differing.is_empty(), "{point:?}: {differing:#?}");
}

#[test]
fn a_run_that_is_killed_at_any_write_ends_as_one_that_is_not() {
    let whole = Bed::start();
    let (end, writes) = whole.process(&revision(true), None);
    assert_eq!(end, Some(RunEnd::Succeeded));
    let expected = whole.state();
    let counts = counted(&writes);
    let hooks: Vec<_> = counts.iter().filter(|((path, _), _)| path.contains("/jobs/")).collect();
    println!("{} writes, of Jobs {hooks:?}", writes.len());
    let points: Vec<KillPoint> = writes
        .iter()
        .flat_map(|write| {
            let at = |stage| KillPoint { number: write.number, stage };
            [at(WriteStage::Sent), at(WriteStage::Answered)]
        })
        .collect();
    let wanted = std::env::var("TAFFRAIL_KILL_POINTS").ok();
    let drawn: Vec<KillPoint> = match wanted.as_deref() {
        Some("all") => points.clone(),
        number => {
            let number = number.map_or(4, |number| number.parse().expect("a number, or all"));
            let seed = fastrand::u64(..);
            println!("{number} of {} points, seed {seed}", points.len());
            fastrand::Rng::with_seed(seed).choose_multiple(points.iter().copied(), number)
        }
    };
    println!("{} points at which the process is killed", drawn.len());
    let (mut reached, drawn_number) = (0, drawn.len());
    for point in drawn {
        let bed = Bed::start();
        let (killed, mut writes) = bed.process(&revision(true), Some(point));
        // The number of writes differs a little from run to run: the last points may not be reached.
        reached += usize::from(killed.is_none());
        let (end, more) = bed.process(&revision(true), None);
        assert_eq!(end, Some(RunEnd::Succeeded), "{point:?}");
        assert_same(&bed.state(), &expected, point);
        writes.extend(more);
        for (write, count) in counted(&writes) {
            // A write that was carried out and never answered may be made once less by those who were told.
            let most = counts.get(&write).copied().unwrap_or(0).max(1);
            assert!(
                count <= most,
                "{point:?}: {write:?} was made {count} times, and {most} without the kill"
            );
        }
    }
    println!("{reached} of {drawn_number} points were reached");
    assert!(reached * 10 >= drawn_number * 9);
}
