//! The same fleet in a hub and as objects in a real kube-apiserver and etcd.
//!
//! Both sides have the same clusters, apps and states, and obey the same commands of `hub_cost`, one side after the
//! other: a fleet is loaded, rests, changes, is read, and is there again after a crash. What keeps the fleet is measured
//! by the kernel: the hub's process, or those of kube-apiserver and etcd together. Their clients cost the same machine
//! time, and count on neither side.
//!
//! The figures of Kubernetes are its best case. The objects hold what the hub's rows hold and not one resource more; no
//! controller runs that tools need beside it, to count and to judge; each change is one write; and only the API server
//! is restarted, while etcd stays. Both stores wait for the disk.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use taffrail_testkit::kube::{ControlPlane, Options};

use super::{Bench, FEW_STREAMS, Hub, MEBI, QUIET, Side, Subject, Usage, figure, hourly, load, rows, size};

/// The number of changes a second.
const RATE: u32 = 100;

/// The number of pages that are read.
const PAGES: usize = 300;

/// The number of times that all apps are counted.
const ROUNDS: usize = 5;

/// The time for which the API server is measured before it has a fleet.
const EMPTY: Duration = Duration::from_secs(20);

/// The cluster of the control plane.
const CONTEXT: &str = "kube-1";

/// The fleet in Kubernetes.
struct Kubernetes {
    plane: ControlPlane,
    writer: Subject,
}

impl Side for Kubernetes {
    fn tell(&mut self, command: &str) -> Result<Value> {
        self.writer.tell(command)
    }

    fn usage(&self) -> Result<Usage> {
        let mut all = Usage::default();
        for process in self.plane.processes() {
            let Usage { cpu, resident, anonymous, peak } = Usage::of(process.pid)?;
            all.cpu += cpu;
            all.resident += resident;
            all.anonymous += anonymous;
            all.peak += peak;
        }
        Ok(all)
    }
}

/// The cost of one side.
#[derive(Default)]
struct Figures {
    /// Seconds and CPU seconds to take in the fleet.
    loaded: [f64; 2],
    /// MB on disk after that, with logs; then without former versions.
    stored: [f64; 2],
    /// CPU time with heartbeats, with 1 % changing an hour, and with [`RATE`] changes a second, in percent of a core.
    cpu: [f64; 3],
    /// CPU time for each of these changes, in ms, heartbeats included.
    change: f64,
    /// Median and 99th percentile of the time from a change to a client that follows, in ms.
    latency: [f64; 2],
    /// Median and 99th percentile of the time for a page, in ms.
    page: [f64; 2],
    /// Median of the time to count all apps by status, in ms.
    counts: f64,
    /// MB on disk at the end, and then without former versions.
    kept: [f64; 2],
    /// Resident memory at the end, and the peak, in MB.
    memory: [f64; 2],
    /// Seconds from a restart to the first page.
    restarted: f64,
    /// The wrong answers.
    problems: Vec<String>,
}

impl Hub {
    /// Measures both sides and prints their figures; returns the wrong answers.
    pub(super) fn compare(&self, program: &Path, folder: &Path) -> Result<Vec<String>> {
        let (clusters, rows) = (self.peer_clusters, rows(self.peer_clusters));
        println!("{clusters} clusters, {rows} rows, in a hub and in Kubernetes; load {}", load());
        let ours = self.in_hub(program, &folder.join("small.db"), rows)?;
        let theirs = self.in_kubernetes(program, rows)?;
        print(&ours, &theirs, rows);
        Ok([ours.problems, theirs.problems].concat())
    }

    fn in_hub(&self, program: &Path, store: &Path, rows: f64) -> Result<Figures> {
        let mut bench = Bench::start(program, store, self.peer_clusters, self.rounds.seed)?;
        let mut figures = Figures::default();
        let begun = Instant::now();
        bench.load(rows)?;
        figures.loaded = [begun.elapsed().as_secs_f64(), bench.usage()?.cpu];
        // Of a row the hub keeps no former version, so there is nothing to compact; history grows by its own bounds.
        let whole = || [size(store) + size(&store.with_extension("db-wal")); 2];
        figures.stored = whole();
        self.steps(&mut bench, &mut figures, rows)?;
        bench.saved("everything")?;
        figures.kept = whole();
        let (page, seconds) = bench.revive()?;
        figures.restarted = seconds;
        bench.problems.extend(page["wrong"].as_str().map(str::to_owned));
        figures.problems.append(&mut bench.problems);
        Ok(figures)
    }

    fn in_kubernetes(&self, program: &Path, rows: f64) -> Result<Figures> {
        let options = Options {
            name: "bench-hub".to_owned(),
            bare: 1,
            nodes: 0,
            flux_crds: false,
            durable: true,
            ..Options::default()
        };
        let plane = ControlPlane::start(&options)?;
        let (clusters, seed) = (self.peer_clusters.to_string(), self.rounds.seed.to_string());
        let writer = Subject::start(program, &["peer", &clusters, &seed])?;
        let mut peer = Kubernetes { plane, writer };
        peer.introduce()?;
        sleep(QUIET);
        let before = peer.usage()?;
        sleep(EMPTY);
        let empty = peer.usage()?;
        println!(
            "kube-apiserver and etcd without a fleet: {:.1} % of a core, {:.0} MB resident",
            (empty.cpu - before.cpu) / EMPTY.as_secs_f64() * 100.0,
            empty.resident * MEBI
        );
        let mut figures = Figures::default();
        let loaded = peer.tell("load")?;
        let usage = peer.usage()?;
        figures.loaded = [figure(&loaded["seconds"]), usage.cpu - empty.cpu];
        let store = peer.plane.store_file();
        let whole = store.ancestors().nth(3).map_or(0.0, whole_size);
        println!(
            "written in {:.1} s: {} requests, {:.0} MB of JSON, an object has {} bytes; {:.1} s CPU, {:.0} MB \
             resident, peak {:.0}; load {}",
            figures.loaded[0],
            loaded["writes"],
            figure(&loaded["bytes"]) / 1e6,
            loaded["object_bytes"],
            figures.loaded[1],
            usage.resident * MEBI,
            usage.peak * MEBI,
            load()
        );
        println!("etcd has {whole:.0} MB, of which its database file {:.0}", size(&store));
        peer.plane.compact_store()?;
        figures.stored = [whole, size(&store)];
        self.steps(&mut peer, &mut figures, rows)?;
        let table = peer.tell(&format!("table-counts {ROUNDS}"))?;
        println!(
            "  as a table without objects: {:.0} ms, {:.1} MB",
            figure(&table["times"]["p50"]),
            figure(&table["bytes"]) / 1e6
        );
        note(&mut figures.problems, &table);
        let written = size(&store);
        peer.plane.compact_store()?;
        figures.kept = [written, size(&store)];
        peer.plane.kill(CONTEXT, "kube-apiserver")?;
        let begun = Instant::now();
        peer.plane.relaunch(CONTEXT, "kube-apiserver")?;
        peer.tell("first")?;
        figures.restarted = begun.elapsed().as_secs_f64();
        Ok(figures)
    }

    /// Measures what both sides do after the fleet was loaded.
    fn steps(&self, side: &mut impl Side, figures: &mut Figures, rows: f64) -> Result<()> {
        sleep(QUIET);
        let (beating, heartbeats) = side.while_measured(&format!("change 0 {}", self.rounds.rest))?;
        let (_, hourly) = side.while_measured(&hourly(rows, self.rounds.rest))?;
        side.tell(&format!("streams {FEW_STREAMS}"))?;
        sleep(QUIET);
        let before = side.usage()?.cpu;
        let (outcome, busy) = side.while_measured(&format!("change {RATE} {}", self.rounds.changes))?;
        side.tell("streams 0")?;
        figures.cpu = [heartbeats, hourly, busy];
        figures.change = (side.usage()?.cpu - before) * 1e3 / figure(&outcome["changes"]);
        let latency = &outcome["latency"];
        figures.latency = [figure(&latency["p50"]), figure(&latency["p99"])];
        if let Some(renewed) = beating["renewed"].as_u64() {
            println!("{renewed} Leases were renewed in {} s", self.rounds.rest);
        }
        println!(
            "{} changes, {:.0} ms late at most: {} seen, {} never; load {}",
            outcome["changes"],
            figure(&outcome["late_ms"]),
            latency["count"],
            outcome["unseen"],
            load()
        );
        if outcome["unseen"] != 0 {
            figures.problems.push(format!("{} changes were never shown", outcome["unseen"]));
        }
        let pages = side.tell(&format!("team-pages {PAGES}"))?;
        figures.page = [figure(&pages["times"]["p50"]), figure(&pages["times"]["p99"])];
        note(&mut figures.problems, &pages);
        let counts = side.tell(&format!("status-counts {ROUNDS}"))?;
        figures.counts = figure(&counts["times"]["p50"]);
        note(&mut figures.problems, &counts);
        if let Some(bytes) = counts["bytes"].as_f64() {
            println!("counts by status read all objects: {:.0} MB in {} pages", bytes / 1e6, counts["pages"]);
        }
        let usage = side.usage()?;
        figures.memory = [usage.resident * MEBI, usage.peak * MEBI];
        Ok(())
    }
}

impl Kubernetes {
    /// Tells the writer how the API server is asked.
    fn introduce(&mut self) -> Result<()> {
        let config = self.plane.kubectl(CONTEXT, &["config", "view", "--raw", "--minify", "-o", "json"])?;
        let config: Value = serde_json::from_str(&config).context("kubectl did not print a kubeconfig")?;
        let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
        let address = cluster["server"].as_str().and_then(|server| server.strip_prefix("https://"));
        let authority = cluster["certificate-authority-data"].as_str();
        let (token, (address, authority)) = user["token"]
            .as_str()
            .zip(address.zip(authority))
            .context("the kubeconfig has no address, authority and token")?;
        let command = format!("server {address} {token} {authority}");
        self.tell(&command).map(drop)
    }
}

/// Notes the first wrong answer of an outcome, if it has one.
fn note(problems: &mut Vec<String>, outcome: &Value) {
    problems.extend(outcome["first_wrong"].as_str().map(str::to_owned));
}

/// Returns the size of all files in a folder in MB.
fn whole_size(folder: &Path) -> f64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.map(|path| if path.is_dir() { whole_size(&path) } else { size(&path) }).sum()
}

/// Prints the figures of both sides, and their ratios.
fn print(ours: &Figures, theirs: &Figures, rows: f64) {
    println!("{:62} {:>10} {:>10} {:>8}", "figure", "hub", "Kubernetes", "ratio");
    let line = |what: &str, of: &dyn Fn(&Figures) -> f64| {
        let (own, other) = (of(ours), of(theirs));
        println!("{what:62} {own:>10.2} {other:>10.2} {:>8.3}", own / other);
    };
    line("s to take in the fleet", &|it| it.loaded[0]);
    line("CPU s to take in the fleet", &|it| it.loaded[1]);
    line("MB on disk as loaded, with logs", &|it| it.stored[0]);
    line("MB on disk, compacted", &|it| it.stored[1]);
    line("bytes on disk an app, compacted", &|it| it.stored[1] * 1e6 / rows);
    line("MB on disk at the end", &|it| it.kept[0]);
    line("MB on disk at the end, compacted", &|it| it.kept[1]);
    line("MB of memory at the end", &|it| it.memory[0]);
    line("MB of memory, peak", &|it| it.memory[1]);
    line("CPU, heartbeats each 15 s, % of a core", &|it| it.cpu[0]);
    line("CPU, heartbeats and 1 % changing an hour, % of a core", &|it| it.cpu[1]);
    line(&format!("CPU, {RATE} changes a second, {FEW_STREAMS} clients, % of a core"), &|it| it.cpu[2]);
    line("CPU ms a change", &|it| it.change);
    line("ms from a change to a client that follows, p50", &|it| it.latency[0]);
    line("ms from a change to a client that follows, p99", &|it| it.latency[1]);
    line("ms for a page of 100 of a team, p50", &|it| it.page[0]);
    line("ms for a page of 100 of a team, p99", &|it| it.page[1]);
    line("ms for the counts by status, p50", &|it| it.counts);
    line("s from a restart to the first page", &|it| it.restarted);
}
