//! Measures the cost of following clusters. `cargo xtask bench cluster` runs this program and others that do the same,
//! and reads their cost from the kernel.
//!
//! `live_cost KUBECONFIG [--keep apps|none] [--namespaces A,B] [--kinds GROUP/KIND,…] [--read] [--threads N]` follows
//! every cluster of the kubeconfig, reports in a line of JSON that all is known, and then obeys the commands on
//! standard input, one per line, like the programs in `bench/peers`.
#![expect(clippy::print_stdout, reason = "it answers on standard output")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::io::BufRead as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_apps::{AppLabels, AppRows, Freshness, IndexedCluster};
use taffrail_cluster::{Cluster, Deadline, Kubeconfig, Purpose};
use taffrail_index::{Contents, Handle, IndexSettings, KindId, Notice, ObjectRef, ScopeState, Snapshot};
use taffrail_observe::{KindSettings, Live, LiveSettings};
use taffrail_status::{ActiveRules, Status};

/// The allocator of the shipped program. `main` starts its threads as the commands that follow clusters do.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Failure = Box<dyn Error>;

const TRACKING: &str = "argocd.argoproj.io/tracking-id";

struct Arguments {
    kubeconfig: String,
    keep: bool,
    namespaces: Vec<String>,
    kinds: Vec<(String, String)>,
    read: bool,
    threads: usize,
}

impl Arguments {
    fn parse() -> Result<Arguments, Failure> {
        let mut all = std::env::args().skip(1);
        let kubeconfig = all.next().ok_or("name a kubeconfig")?;
        let (namespaces, kinds) = (Vec::new(), Vec::new());
        let mut arguments = Arguments { kubeconfig, keep: true, namespaces, kinds, read: false, threads: 1 };
        while let Some(flag) = all.next() {
            match &*flag {
                "--keep" => arguments.keep = all.next().is_some_and(|kept| kept == "apps"),
                "--namespaces" => {
                    let list = all.next().ok_or("name namespaces")?;
                    arguments.namespaces = list.split(',').map(str::to_owned).collect();
                }
                "--kinds" => {
                    let list = all.next().ok_or("name kinds")?;
                    let pairs = list.split(',').filter_map(|kind| kind.split_once('/'));
                    arguments.kinds =
                        pairs.map(|(group, kind)| (group.to_owned(), kind.to_owned())).collect();
                }
                "--read" => arguments.read = true,
                "--threads" => arguments.threads = all.next().ok_or("name a number of threads")?.parse()?,
                other => return Err(format!("unknown argument {other}").into()),
            }
        }
        Ok(arguments)
    }

    /// Returns settings by which the index keeps what Argo CD keeps: the bodies of what apps declare, and of
    /// definitions of kinds. As in the programs of `bench/peers`, only events and metrics are left out.
    fn settings(&self) -> LiveSettings {
        let pair = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
        let keep = self.keep;
        let index = IndexSettings {
            keep: std::sync::Arc::new(move |object| {
                keep && (object.group() == "apiextensions.k8s.io"
                    || !object.text(&["metadata", "annotations", TRACKING]).is_empty()
                        && object.at(&["metadata", "ownerReferences"]).is_none())
            }),
            mark: std::sync::Arc::new(|object, add| {
                let id = object.text(&["metadata", "annotations", TRACKING]);
                if let Some((app, _)) = id.split_once(':') {
                    add(app);
                }
            }),
            ..IndexSettings::default()
        };
        let bodies = if keep { vec![pair("", "ConfigMap"), pair("", "ServiceAccount")] } else { Vec::new() };
        let include = vec![pair("", "Endpoints"), pair("coordination.k8s.io", "*")];
        let kinds = KindSettings {
            only: self.kinds.clone(),
            include,
            bodies,
            namespaces: self.namespaces.clone(),
            ..KindSettings::default()
        };
        LiveSettings { index, kinds, ..LiveSettings::default() }
    }
}

fn say(what: &Value) {
    println!("{what}");
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse()?;
    tikv_jemalloc_ctl::background_thread::write(true)?;
    let mut runtime = match arguments.threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.worker_threads(arguments.threads).enable_all().build()?.block_on(follow(arguments))
}

/// Maximum time until all kinds are known; the program then ends with an error.
const PATIENCE: Duration = Duration::from_mins(2);

async fn follow(arguments: Arguments) -> Result<(), Failure> {
    let before = resident();
    let kubeconfig = Kubeconfig::load(Some(Path::new(&arguments.kubeconfig)), None, None)?;
    let names: Vec<String> = kubeconfig.names().map(str::to_owned).collect();
    let mut clusters = Vec::new();
    for name in &names {
        let context = kubeconfig.context(name)?;
        let cluster = Cluster::connect(&context, Deadline::after(Duration::from_secs(30))).await?;
        clusters.push(Arc::new(Live::start(cluster, Some(context), arguments.settings()).await?));
    }
    let first = clusters.first().ok_or("no cluster")?.clone();
    let reads = Reads::begin(arguments.read.then(|| first.clone()));
    let begun = Instant::now();
    for live in &clusters {
        while !is_known(&live.snapshot()) {
            if begun.elapsed() > PATIENCE {
                return Err(unknown_kinds(&live.snapshot()).into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let objects: usize = clusters.iter().map(|live| live.snapshot().len()).sum();
    let (mut requests, mut bytes) = (0, 0);
    for live in &clusters {
        let costs = live.costs().await;
        for purpose in Purpose::ALL {
            requests += costs.of(purpose).requests;
            bytes += costs.of(purpose).bytes;
        }
    }
    let kinds: BTreeSet<KindId> = first.snapshot().scopes().map(|(kind, _, _)| kind).collect();
    say(&json!({
        "synced": true, "objects": objects, "kinds": kinds.len(), "requests": requests, "bytes": bytes, "resident_before": before,
        "clusters": clusters.len(), "reads_us": reads.end(),
    }));
    obey(first).await
}

/// Returns true if every kind that is followed is known. `Live` publishes the scopes of all of them together.
fn is_known(snapshot: &Snapshot) -> bool {
    let mut scopes = snapshot.scopes().peekable();
    scopes.peek().is_some()
        && scopes.all(|(_, _, scope)| !matches!(scope.state, ScopeState::CatchingUp | ScopeState::Unread))
}

/// Returns an error message that lists the kinds that are not known, or not in every namespace.
fn unknown_kinds(snapshot: &Snapshot) -> String {
    let is_unknown = |state: &ScopeState| matches!(state, ScopeState::CatchingUp | ScopeState::Unread);
    let unknown = snapshot.scopes().filter(|(_, _, scope)| is_unknown(&scope.state));
    let unknown: Vec<_> =
        unknown.filter_map(|(kind, _, _)| Some(snapshot.resource(kind)?.full_name())).collect();
    format!("after {PATIENCE:?} these kinds are not known: {unknown:?}")
}

/// A thread that queries the index all the time while objects are being loaded, and measures each query.
struct Reads {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<Vec<Duration>>>,
}

impl Reads {
    fn begin(live: Option<Arc<Live>>) -> Reads {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = live.map(|live| {
            std::thread::spawn(move || {
                let mut times = Vec::new();
                while !stopped.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    let snapshot = live.snapshot();
                    let found = snapshot
                        .marked("app-000-0")
                        .filter(|object| object.status() != Status::Unknown)
                        .count();
                    std::hint::black_box(found);
                    drop(snapshot);
                    times.push(begun.elapsed());
                    std::thread::sleep(Duration::from_millis(1));
                }
                times
            })
        });
        Reads { stop, thread }
    }

    fn end(self) -> Value {
        self.stop.store(true, Ordering::Relaxed);
        let times = self.thread.and_then(|thread| thread.join().ok());
        times.map_or(Value::Null, spread)
    }
}

/// Returns the median, the 99th percentile and the maximum in microseconds, and the number of measurements.
fn spread(mut times: Vec<Duration>) -> Value {
    times.sort_unstable();
    let at = |part: usize| {
        let place = times.len().saturating_sub(1) * part / 100;
        times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    json!({"p50": at(50), "p99": at(99), "longest": at(100), "count": times.len()})
}

/// The moments at which the first events of objects were seen, in nanoseconds since 1970.
#[derive(Default)]
struct Recorder {
    seen: HashMap<String, u128>,
    rereads: usize,
}

fn locked(recorder: &Mutex<Recorder>) -> std::sync::MutexGuard<'_, Recorder> {
    recorder.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn obey(live: Arc<Live>) -> Result<(), Failure> {
    let recorder: Arc<Mutex<Recorder>> = Arc::default();
    let (sender, mut lines) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    let mut recording = None;
    let mut rows = AppRows::new(AppLabels::default());
    while let Some(line) = lines.recv().await {
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let mut done = json!({"done": word});
        match word {
            "collect" => {}
            "answers" => std::fs::write(rest, answers(&live.snapshot()).to_string())?,
            "queries" => done = queries(&live.snapshot(), rest),
            "rows" => {
                let (contents, now) = (live.snapshot(), Timestamp::now());
                let cluster = IndexedCluster::live("bench", &contents, Freshness::live(now));
                rows.look(&[&cluster], &[], &ActiveRules::default(), now);
                done = json!({"apps": rows.list().apps.len()});
            }
            "events" => {
                *locked(&recorder) = Recorder::default();
                recording = Some(tokio::spawn(record(live.clone(), recorder.clone())));
            }
            "seen" => {
                done = json!({"seen": locked(&recorder).seen.len(), "rereads": locked(&recorder).rereads})
            }
            "report" => {
                if let Some(task) = recording.take() {
                    task.abort();
                }
                let text: String =
                    locked(&recorder).seen.iter().map(|(name, at)| format!("{name} {at}\n")).collect();
                std::fs::write(rest, text)?;
            }
            other => return Err(format!("unknown word {other}").into()),
        }
        say(&done);
    }
    Ok(())
}

async fn record(live: Arc<Live>, recorder: Arc<Mutex<Recorder>>) {
    let Some(mut notices) = live.subscribe(1 << 20).await else { return };
    while let Some(notice) = notices.next().await {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mut recorder = locked(&recorder);
        match notice {
            Notice::Batch(batch) => {
                for change in batch.changes.iter().filter(|change| change.before.is_some()) {
                    recorder.seen.entry(format!("{}/{}", change.namespace, change.name)).or_insert(now);
                }
            }
            Notice::Reread { .. } => recorder.rereads += 1,
        }
    }
}

fn full_name(object: &ObjectRef<'_>) -> String {
    let name = object.object_name();
    format!("{}/{}/{}/{}", name.group, name.kind, name.namespace, name.name)
}

/// Returns the number of names, and a digest of the sorted names, one per line.
fn digest(mut names: Vec<String>) -> Value {
    names.sort_unstable();
    let bytes = names.iter().flat_map(|name| name.bytes().chain([b'\n']));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    json!({"count": names.len(), "names": format!("{hash:016x}")})
}

/// Iterates over the objects that an app declares.
fn declared<'s>(contents: &'s Contents, app: &str) -> impl Iterator<Item = ObjectRef<'s>> {
    contents.marked(app).filter(|object| object.owners().next().is_none())
}

fn answers(contents: &Contents) -> Value {
    let mut kinds = BTreeMap::new();
    for (kind, resource) in contents.kinds() {
        let count = contents.of_kind(kind, None).count();
        kinds.insert(format!("{}/{}", resource.group, resource.kind), count);
    }
    let mut statuses: BTreeMap<&str, usize> = BTreeMap::new();
    if let Some(kind) = contents.find_kind("apps", "Deployment") {
        // What kstatus would say, of each alone.
        for verdict in contents.of_kind(kind, None).filter_map(|object| object.verdict()) {
            *statuses.entry(verdict.status.as_str()).or_default() += 1;
        }
    }
    let (mut trees, mut managed, mut bodies) = (BTreeMap::new(), BTreeMap::new(), 0);
    for (app, _) in contents.marks() {
        let roots: Vec<Handle> = declared(contents, app).map(|object| object.handle()).collect();
        let nodes = contents.tree(&roots).filter_map(|node| node.object(contents));
        trees.insert(app.to_owned(), digest(nodes.map(|object| full_name(&object)).collect()));
        let with_body: Vec<_> = declared(contents, app).filter(|object| object.body().is_some()).collect();
        bodies += with_body.iter().filter_map(|object| object.body()).map(<[u8]>::len).sum::<usize>();
        managed.insert(app.to_owned(), digest(with_body.iter().map(full_name).collect()));
    }
    let words: BTreeMap<&str, usize> =
        Status::ALL.iter().map(|status| (status.as_str(), contents.counts().get(*status))).collect();
    json!({"kinds": kinds, "statuses": statuses, "trees": trees, "managed": managed, "body_bytes": bodies, "by_evidence": words})
}

/// Measures queries for the trees and the managed objects of the apps whose names begin with `prefix`.
fn queries(contents: &Contents, prefix: &str) -> Value {
    let mut apps: Vec<&str> =
        contents.marks().map(|(app, _)| app).filter(|app| app.starts_with(prefix)).collect();
    apps.sort_unstable();
    let roots: Vec<Vec<Handle>> =
        apps.iter().map(|app| declared(contents, app).map(|object| object.handle()).collect()).collect();
    let (mut trees, mut nodes) = (Vec::new(), 0);
    for roots in &roots {
        let begun = Instant::now();
        nodes += contents.tree(roots).count();
        trees.push(begun.elapsed());
    }
    let (mut managed, mut found) = (Vec::new(), 0);
    for app in &apps {
        let begun = Instant::now();
        let bodies: Vec<&[u8]> = declared(contents, app).filter_map(|object| object.body()).collect();
        managed.push(begun.elapsed());
        found += bodies.len();
    }
    // One app again and again, and all of them in turn: warm and not.
    let one = roots.get(roots.len() / 2).map_or(&[][..], |roots| roots);
    let (begun, rounds) = (Instant::now(), 2_000);
    let warm: usize = (0..rounds).map(|_| contents.tree(one).count()).sum();
    let warm = begun.elapsed().as_secs_f64() * 1e9 / warm.max(1) as f64;
    let begun = Instant::now();
    let all: usize = (0..10).flat_map(|_| &roots).map(|roots| contents.tree(roots).count()).sum();
    let all = begun.elapsed().as_secs_f64() * 1e9 / all.max(1) as f64;
    json!({
        "apps": apps.len(), "objects": contents.len(), "nodes": nodes, "bodies": found, "tree_us": spread(trees), "managed_us": spread(managed),
        "ns_per_node_warm": warm, "ns_per_node_in_turn": all,
    })
}

/// Returns the resident memory of this process in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}
