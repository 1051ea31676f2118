//! Measures following a cluster of 100,000 objects live: beside Argo CD's engine, client-go's informers and kstatus'
//! watcher.
//!
//! One real kube-apiserver has the same objects for all programs, which run one after the other, each in a process of
//! its own. Their cost is read from the kernel, and their results are compared before it counts. CPU time, memory and
//! counts say much; wall time on a machine that others use says little, so the load is printed beside it.

mod compare;
mod events;
mod fleet;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use taffrail_testkit::kube::{ControlPlane, Options, Programs};
use taffrail_testkit::{binary, peers};

use super::measure::{load, verdict};
use super::subject::{self, Subject, Usage};

/// Measure following a cluster of 100,000 objects live: beside Argo CD's engine, client-go's informers and kstatus'
/// watcher.
#[derive(Args)]
pub(crate) struct Cluster {
    /// Number of objects in place of 100,000.
    #[arg(long, value_name = "N")]
    quick: Option<usize>,
    /// Parts to run: list, ours, rows, metadata, typed, gitopsengine, kstatus, dense, fleet; all by default. Taffrail
    /// is always measured.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Number of seconds for which 200 status updates a second are written.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    events: usize,
    /// Number of simulated clusters that one process follows.
    #[arg(long, default_value_t = 100, value_name = "N")]
    clusters: usize,
}

/// The kinds that tell the status of a Deployment: itself, its dependents, and the objects that may block these.
const WORKLOADS: [&str; 8] = [
    "apps/Deployment",
    "apps/ReplicaSet",
    "/Pod",
    "/Node",
    "/Event",
    "/PersistentVolumeClaim",
    "/ResourceQuota",
    "policy/PodDisruptionBudget",
];

/// The number of status updates written each second.
const RATE: usize = 200;

/// The number of objects of a namespace, which has five apps.
const NAMESPACE: usize = 500;

/// The paths of the built programs: Taffrail's bench, and the peer.
struct Built {
    ours: PathBuf,
    cluster: PathBuf,
}

/// The measurements of one program.
struct Outcome {
    name: &'static str,
    synced: Value,
    wall: f64,
    first: Usage,
    idle: Usage,
    collected: Usage,
    /// CPU seconds for each second without changes.
    resting: f64,
    answers: Value,
    queries: Value,
    events: Option<events::Events>,
    load: String,
}

impl Cluster {
    pub(super) fn run(self) -> Result<()> {
        let namespaces = self.quick.unwrap_or(200 * NAMESPACE).div_ceil(NAMESPACE).max(2);
        let built = Built {
            ours: binary::build_bench("taffrail-observe", "live_cost")?,
            cluster: peers::build("cluster")?,
        };
        let folder = binary::workspace().join("target/bench");
        fs::create_dir_all(&folder)?;
        let plane = loaded(&built, namespaces)?;
        let kubeconfig = plane
            .kubeconfig()
            .to_str()
            .context("the path of a file of the benchmark is not valid UTF-8")?
            .to_owned();
        let bench = Bench { plane: &plane, kubeconfig, built, folder, namespaces, events: self.events };

        let floor = self.wants("list").then(|| bench.list()).transpose()?;
        let ours = bench.ours(&[])?;
        bench.show(&ours);
        if self.wants("rows") {
            bench.rows()?;
        }
        let mut sides = Vec::new();
        for name in ["metadata", "typed", "gitopsengine"] {
            if !self.wants(name) {
                continue;
            }
            let side = if name == "gitopsengine" { bench.gitopsengine() } else { bench.informers(name) }?;
            bench.show(&side);
            compare::answers(&ours.answers, &side.answers, side.name)?;
            println!("  its answers equal those of Taffrail");
            sides.push(side);
        }
        let kstatus = self.wants("kstatus").then(|| bench.kstatus(&ours)).transpose()?;
        compare::bars(&ours, &sides, floor.as_ref(), kstatus.as_ref());
        bench.variants()?;
        if self.wants("dense") {
            bench.dense(self.wants("gitopsengine"))?;
        }
        if self.wants("fleet") {
            fleet::run(&bench.built.ours, &bench.folder, self.clusters)?;
        }
        Ok(())
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// Starts a control plane that contains the objects. They are written once for each version of the writer, and kept in
/// the cache.
fn loaded(built: &Built, namespaces: usize) -> Result<ControlPlane> {
    let options = Options {
        name: "bench-cluster".to_owned(),
        bare: 1,
        nodes: 0,
        flux_crds: false,
        ..Options::default()
    };
    let programs = Programs::ensure()?;
    let key = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .context("the folder of the control plane's programs has no name")
    };
    let kube = programs.path("etcd");
    let version =
        key(kube.parent().and_then(Path::parent).context("the program etcd has no parent folder")?)?;
    let stores = taffrail_testkit::kube::cache()?.join("stores");
    let store = stores.join(format!("{version}_{}_{namespaces}", peers::content("cluster", "load.go")?));
    if !store.is_dir() {
        let plane = ControlPlane::start(&options)?;
        let begun = Instant::now();
        println!("writing {} objects …", namespaces * NAMESPACE);
        let status = Command::new(&built.cluster)
            .arg("-kubeconfig")
            .arg(plane.kubeconfig())
            .args(["-namespaces", &namespaces.to_string(), "load"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()?;
        ensure!(status.success(), "the objects could not be written ({status})");
        println!("written in {:.0} s", begun.elapsed().as_secs_f64());
        let unfinished = store.with_extension("unfinished");
        let _ = fs::remove_dir_all(&unfinished);
        plane.save_store(&unfinished)?;
        fs::rename(&unfinished, &store)?;
    }
    ControlPlane::start(&Options { store: Some(store), ..options })
}

struct Bench<'a> {
    plane: &'a ControlPlane,
    kubeconfig: String,
    built: Built,
    folder: PathBuf,
    namespaces: usize,
    events: usize,
}

impl Bench<'_> {
    /// Returns the CPU time of the API server so far, in seconds.
    fn server(&self) -> Result<f64> {
        let server = self.plane.processes().iter().find(|it| it.program == "kube-apiserver");
        Ok(Usage::of(server.context("the control plane has no process kube-apiserver")?.pid)?.cpu)
    }

    /// Measures and prints a client that reads all objects and keeps none.
    fn list(&self) -> Result<Subject> {
        let server = self.server()?;
        let list = Subject::start(&self.built.cluster, &["-kubeconfig", &self.kubeconfig, "list"])?;
        let figure = |key: &str| list.synced[key].as_f64().unwrap_or_default();
        println!(
            "list only: {:.1} s wall, {:.1} s CPU, {:.0} MB of JSON in {} requests; server {:.1} s CPU; load {}",
            list.wall,
            list.first.cpu,
            figure("bytes") / 1e6,
            figure("requests"),
            self.server()? - server,
            load()
        );
        Ok(list)
    }

    fn ours(&self, arguments: &[&str]) -> Result<Outcome> {
        self.measure("Taffrail", self.follow(arguments)?, true)
    }

    /// Starts Taffrail with these arguments, and returns when it has read all objects.
    fn follow(&self, arguments: &[&str]) -> Result<Subject> {
        Subject::start(&self.built.ours, &[&[&*self.kubeconfig], arguments].concat())
    }

    /// Measures and prints the rows of the apps, beside the index alone.
    fn rows(&self) -> Result<()> {
        let mut subject = self.follow(&[])?;
        sleep(Duration::from_secs(10));
        let alone = subject.usage()?;
        let found = subject.tell("rows")?;
        let told = subject.usage()?;
        sleep(Duration::from_secs(10));
        let with = subject.usage()?;
        let cpu = (subject.first.cpu + told.cpu - alone.cpu) / subject.first.cpu;
        let memory = with.resident / alone.resident;
        println!(
            "rows of {} apps over {} objects: {:.2} s CPU more than {:.2}, {cpu:.2}x (bar: 1.15, {}); {:.0} MiB, {:.0} without, {memory:.2}x (bar: 1.25, {})",
            found["apps"],
            subject.synced["objects"],
            told.cpu - alone.cpu,
            subject.first.cpu,
            verdict(cpu <= 1.15),
            with.resident,
            alone.resident,
            verdict(memory <= 1.25)
        );
        Ok(())
    }

    fn informers(&self, name: &'static str) -> Result<Outcome> {
        let subject = Subject::start(&self.built.cluster, &["-kubeconfig", &self.kubeconfig, name])?;
        self.measure(if name == "typed" { "typed informers" } else { "metadata informers" }, subject, true)
    }

    fn gitopsengine(&self) -> Result<Outcome> {
        let program = peers::build("gitopsengine")?;
        let subject = Subject::start(&program, &["-kubeconfig", &self.kubeconfig])?;
        self.measure("gitops-engine", subject, true)
    }

    /// Measures a program from its first sync on, in the same way for each.
    fn measure(&self, name: &'static str, mut subject: Subject, with_events: bool) -> Result<Outcome> {
        let load = load();
        sleep(Duration::from_secs(10));
        let idle = subject.usage()?;
        subject.tell("collect")?;
        sleep(Duration::from_millis(200));
        let collected = subject.usage()?;
        sleep(Duration::from_secs(10));
        let resting = (subject.usage()?.cpu - collected.cpu) / 10.0;
        let answers = subject.answers(&self.folder)?;
        let queries = subject.tell("queries app-")?;
        let events = with_events.then(|| self.write("pods", &mut subject)).transpose()?;
        let Subject { wall, first, .. } = subject;
        let synced = subject.synced.clone();
        Ok(Outcome { name, synced, wall, first, idle, collected, resting, answers, queries, events, load })
    }

    /// Writes status updates, and measures their delay behind a bare watch.
    fn write(&self, kind: &str, subject: &mut Subject) -> Result<events::Events> {
        // Of 40 Pods of an app 38 are well: each is updated once.
        let most = self.namespaces * 5 * 36 / RATE;
        let seconds = self.events.min(most).max(1);
        events::write(self, kind, RATE, seconds, subject)
    }

    /// Returns the number of watches that the API server has closed so far because the client or itself was too slow.
    fn closed_watches(&self) -> Result<f64> {
        let context = *self.plane.contexts().first().context("the control plane has no cluster")?;
        let metrics = self.plane.kubectl(context, &["get", "--raw", "/metrics"])?;
        let closed = metrics.lines().filter(|line| line.starts_with("apiserver_terminated_watchers_total{"));
        Ok(closed.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// Measures kstatus' watcher, and Taffrail following only the kinds that the watcher reads; checks that the
    /// statuses are equal.
    fn kstatus(&self, everything: &Outcome) -> Result<[Subject; 2]> {
        let mut watcher = Subject::start(&self.built.cluster, &["-kubeconfig", &self.kubeconfig, "kstatus"])?;
        let answers = watcher.answers(&self.folder)?;
        compare::statuses(&everything.answers, &answers)?;
        let mut ours = self.follow(&["--keep", "none", "--kinds", &WORKLOADS.join(",")])?;
        compare::statuses(&ours.answers(&self.folder)?, &answers)?;
        let figure = |key: &str| watcher.synced[key].as_f64().unwrap_or_default();
        println!(
            "kstatus watcher: {} Deployments, last status after {:.1} s, {} requests, {:.1} s CPU, {:.0} MiB; load {}",
            figure("objects"),
            figure("seconds"),
            figure("requests"),
            watcher.first.cpu,
            watcher.first.resident,
            load()
        );
        println!(
            "  Taffrail, {}: {:.1} s, {} requests, {} objects, {:.1} s CPU",
            WORKLOADS.join(" "),
            ours.wall,
            ours.synced["requests"],
            ours.synced["objects"],
            ours.first.cpu
        );
        Ok([watcher, ours])
    }

    fn show(&self, side: &Outcome) {
        let count = |key: &str| side.synced[key].as_u64().unwrap_or_default();
        println!(
            "{}: {} objects of {} kinds, {} requests, {:.0} MB; first sync {:.1} s wall, {:.2} s CPU (load {})",
            side.name,
            count("objects"),
            count("kinds"),
            count("requests"),
            count("bytes") as f64 / 1e6,
            side.wall,
            side.first.cpu,
            side.load
        );
        println!(
            "  resident {:.0} MiB after sync, {:.0} after 10 s, {:.0} after collection ({:.0} of no file), peak {:.0}; at rest {:.1} ms CPU a second",
            side.first.resident,
            side.idle.resident,
            side.collected.resident,
            side.collected.anonymous,
            side.idle.peak,
            side.resting * 1e3
        );
        if !side.queries.is_null() {
            println!("  queries {}", side.queries);
        }
        if let Some(events) = &side.events {
            println!("  {events}");
        }
    }

    /// Measures and prints Taffrail in other modes: without bodies, with readers while it loads, with a tenth of the
    /// cluster.
    fn variants(&self) -> Result<()> {
        let idle = |arguments: &[&str]| -> Result<(Subject, Usage, f64)> {
            let subject = self.follow(&[&["--keep", "none"], arguments].concat())?;
            sleep(Duration::from_secs(10));
            let usage = subject.usage()?;
            let objects = subject.synced["objects"].as_f64().unwrap_or_default();
            Ok((subject, usage, objects))
        };
        let bytes = |usage: &Usage| usage.resident * 1024.0 * 1024.0;
        let (none, usage, objects) = idle(&[])?;
        let before = none.synced["resident_before"].as_f64().unwrap_or_default();
        let whole = (bytes(&usage) - before) / objects;
        println!(
            "without bodies: {:.1} MiB resident after 10 s, peak {:.1}, {:.2} s CPU, {whole:.0} bytes an object with all that is no object (bar: 400, {})",
            usage.resident,
            usage.peak,
            none.first.cpu,
            verdict(whole <= 400.0)
        );
        drop(none);
        let read = self.follow(&["--read"])?;
        println!("reads while loading, µs: {}", read.synced["reads_us"]);
        drop(read);
        let tenth: Vec<String> = (0..self.namespaces.div_ceil(10)).map(|n| format!("team-{n:03}")).collect();
        let tenth = ["--namespaces", &tenth.join(",")];
        let (small, less, fewer) = idle(&tenth)?;
        drop(small);
        let each = (bytes(&usage) - bytes(&less)) / (objects - fewer);
        println!(
            "  {each:.0} bytes for each object more than a tenth of them (bar: 400, {})",
            verdict(each <= 400.0)
        );
        println!("trees in a tenth: {}", self.follow(&tenth)?.tell("queries app-")?);
        Ok(())
    }

    /// Measures and prints trees in an additional namespace of 20,000 objects.
    fn dense(&self, with_peer: bool) -> Result<()> {
        let status = Command::new(&self.built.cluster)
            .args(["-kubeconfig", &self.kubeconfig, "-dense", "200", "load"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()?;
        ensure!(status.success(), "the objects could not be written ({status})");
        let mut ours = self.follow(&[])?;
        println!("trees in one namespace of 20,000: {}", ours.tell("queries dense-")?);
        drop(ours);
        if with_peer {
            let mut peer =
                Subject::start(&peers::build("gitopsengine")?, &["-kubeconfig", &self.kubeconfig])?;
            println!("  gitops-engine: {}", peer.tell("queries dense-")?);
        }
        Ok(())
    }
}
