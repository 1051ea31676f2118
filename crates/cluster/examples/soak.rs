//! A cluster that is followed through trouble: `cargo run --release -p taffrail-cluster --example soak -- MINUTES [SEED]`.
//!
//! In a simulated cluster objects come, change and go, 200 writes a second; meanwhile connections are cut, answers are
//! garbage, watches fall silent, the server hangs, forgets old versions and goes back to an older state. Again and again all
//! is still for a moment, and what the index holds is compared with what the server lists: every object, its version, and
//! its status with all evidence. It ends with one line of JSON, and with 1 where anything differed.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it answers on standard output, and tells how far it is"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_cluster::index::{ScopeState, Snapshot};
use taffrail_cluster::{
    Cluster, Context, Deadline, FeedSettings, Form, Kubeconfig, ListRequest, Live, LiveSettings,
};
use taffrail_sim::{Fault, Fleet, Trouble};
use taffrail_status::assess::{Dump, Options, assess};
use taffrail_status::json::OwnedDocument;
use taffrail_status::{Object, Status, Taffrail};

type Outcome<T> = Result<T, Box<dyn Error>>;

const WRITES_A_SECOND: u64 = 200;
const ROUND: Duration = Duration::from_secs(6);
const PATIENCE: Duration = Duration::from_secs(90);

fn main() -> Outcome<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let minutes: f64 = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(soak(Duration::from_secs_f64(minutes * 60.0), seed))
}

async fn soak(time: Duration, seed: u64) -> Outcome<ExitCode> {
    let mut random = fastrand::Rng::with_seed(seed);
    let fleet = Fleet::builder().seed(seed).nodes(5).bookmark_every(Duration::from_secs(1)).start().await?;
    let sim = fleet.cluster("soak").await?;
    sim.apply(namespace())?;
    sim.apply(definition())?;
    for name in 0..200 {
        sim.apply(config_map(name, 0))?;
    }
    for name in 0..40 {
        sim.apply(deployment(name, 2, 0))?;
    }
    let context = context(&sim.kubeconfig())?;
    let reader = Cluster::connect(&context, Deadline::after(PATIENCE)).await?;
    let connected = Cluster::connect(&context, Deadline::after(PATIENCE)).await?;
    let mut feeds = FeedSettings::default();
    // A soak of half an hour is to see what takes minutes elsewhere.
    feeds.silence = Duration::from_secs(4);
    feeds.probe_after = Duration::from_secs(2);
    feeds.probe_timeout = Duration::from_secs(1);
    feeds.longest_pause = Duration::from_secs(2);
    let settings = LiveSettings { feeds, ..LiveSettings::default() };
    let live = Live::start(connected, Some(context), settings).await?;

    let begun = Instant::now();
    let (mut writes, mut comparisons, mut objects) = (0_u64, 0_u64, 0_u64);
    let (mut wrong, mut wrong_green) = (Vec::new(), 0_u64);
    let mut slowest = Duration::ZERO;
    let mut peak_after_first = 0;
    while begun.elapsed() < time {
        let round = Instant::now();
        let mut tick = tokio::time::interval(Duration::from_millis(1000 / WRITES_A_SECOND));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
        let mut next_trouble = Duration::from_millis(random.u64(0..800));
        while round.elapsed() < ROUND {
            tick.tick().await;
            write(&sim, &mut random)?;
            writes += 1;
            if round.elapsed() >= next_trouble {
                trouble(&sim, &mut random);
                next_trouble = round.elapsed() + Duration::from_millis(random.u64(200..1500));
            }
        }
        sim.heal_all();
        if random.u8(0..10) == 0 {
            // A backup that is some changes old.
            sim.restore(random.usize(1..200))?;
        }
        let quiet = Instant::now();
        let differences = loop {
            // What controllers and time still move is not still; two lists that agree are.
            let differences = match Truth::read(&reader).await {
                Ok(truth) => {
                    objects = truth.objects.len() as u64;
                    truth.compare(&live.snapshot())
                }
                // Its own connection was cut with the others.
                Err(error) => vec![Difference { what: format!("cannot be compared: {error}"), green: false }],
            };
            if differences.is_empty() {
                break Vec::new();
            }
            if quiet.elapsed() > PATIENCE {
                break differences;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        comparisons += 1;
        slowest = slowest.max(quiet.elapsed());
        wrong_green += differences.iter().filter(|difference| difference.green).count() as u64;
        if !differences.is_empty() {
            eprintln!(
                "after {:?}: {} differ: {:?}",
                begun.elapsed(),
                differences.len(),
                &differences[..differences.len().min(5)]
            );
        }
        wrong.extend(differences);
        if comparisons == 10 {
            peak_after_first = resident()?;
        }
        if comparisons.is_multiple_of(20) {
            eprintln!("{comparisons} comparisons, {writes} writes, {} KiB", resident()? / 1024);
        }
    }
    let costs = live.costs().await;
    println!(
        "{}",
        json!({
            "seconds": begun.elapsed().as_secs(), "writes": writes, "comparisons": comparisons, "objects": objects,
            "differences": wrong.len(), "wrong_green": wrong_green, "slowest_to_agree_seconds": slowest.as_secs_f64(),
            "relists": costs.relists, "silences": costs.silences,
            "resident_after_10": peak_after_first, "resident_at_end": resident()?,
        })
    );
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the server says there is.
struct Truth {
    objects: BTreeMap<(String, String, String, String), (OwnedDocument, Form)>,
}

#[derive(Debug)]
#[expect(dead_code, reason = "it is printed")]
struct Difference {
    what: String,
    /// Shown ready while it is not.
    green: bool,
}

impl Truth {
    async fn read(reader: &Cluster) -> Outcome<Truth> {
        let discovery = reader.with_timeout(PATIENCE).discover().await?;
        let mut objects = BTreeMap::new();
        let left_out = ["Lease", "Event", "Endpoints"];
        for served in discovery.resources() {
            if !served.can_list() || left_out.contains(&&*served.kind) {
                continue;
            }
            let resource = served.preferred();
            let listing = reader.with_timeout(PATIENCE).list(&ListRequest::all(&resource)).await?;
            let form = if resource.kind == "Secret" { Form::Metadata } else { Form::Body };
            for text in listing.objects {
                let document = OwnedDocument::parse(text)?;
                let object = Object::new(document.root())?;
                let key = (
                    object.group().to_owned(),
                    object.kind().to_owned(),
                    object.namespace().into_owned(),
                    object.name().into_owned(),
                );
                objects.insert(key, (document, form));
            }
        }
        Ok(Truth { objects })
    }

    /// Where the index says something else.
    fn compare(&self, snapshot: &Snapshot) -> Vec<Difference> {
        let mut differences = Vec::new();
        let mut differ = |what: String, green: bool| differences.push(Difference { what, green });
        for (kind, namespace, scope) in snapshot.scopes() {
            if scope.state != ScopeState::Live {
                let kind = snapshot.resource(kind).map(|resource| resource.full_name()).unwrap_or_default();
                differ(format!("{kind} {namespace:?} is {:?}: {}", scope.state, scope.reason), false);
            }
        }
        let parsed = self.objects.values().filter_map(|(document, _)| Object::new(document.root()).ok());
        let dump = Dump::new(parsed);
        let now = Timestamp::now();
        for ((group, kind, namespace, name), (document, form)) in &self.objects {
            let Ok(object) = Object::new(document.root()) else { continue };
            let Some(known) = snapshot.find(group, kind, namespace, name) else {
                differ(format!("{group}/{kind}/{namespace}/{name} is missing"), false);
                continue;
            };
            let version = object.text(&["metadata", "resourceVersion"]);
            if known.resource_version() != version {
                let own = known.resource_version();
                differ(format!("{group}/{kind}/{namespace}/{name} is {own}, not {version}"), false);
                continue;
            }
            if *form == Form::Metadata || known.form() == Form::Metadata {
                continue;
            }
            let right = assess(&object, &dump, &Taffrail, now, &Options::default()).verdict.status;
            if known.status() != right {
                let green = known.status() == Status::Current;
                differ(
                    format!("{group}/{kind}/{namespace}/{name} is {}, not {right}", known.status()),
                    green,
                );
            }
        }
        for object in snapshot.all() {
            let it = object.object_name();
            if !self.objects.contains_key(&(
                it.group.clone(),
                it.kind.clone(),
                it.namespace.clone(),
                it.name.clone(),
            )) {
                differ(format!("{it} is gone"), object.status() == Status::Current);
            }
        }
        differences
    }
}

fn write(sim: &taffrail_sim::Cluster, random: &mut fastrand::Rng) -> Outcome<()> {
    let name = random.u64(0..250);
    match random.u8(0..10) {
        0..5 => sim.apply(config_map(name, random.u64(..)))?,
        5 => drop(sim.delete("v1", "ConfigMap", "soak", &format!("map-{name}"))),
        6 => sim.apply(widget(name, random.bool()))?,
        7 => drop(sim.delete("example.com/v1", "Widget", "soak", &format!("widget-{name}"))),
        8 => {
            let name = random.u64(0..40);
            // Rollouts bring ten changes each; they are to be some of the writes.
            if random.u8(0..20) == 0 {
                sim.apply(deployment(name, random.i64(0..4), random.u64(0..3)))?;
            }
        }
        _ => {
            let noise = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "leader", "namespace": "soak", "annotations": {"renewed": random.u64(..).to_string()}}});
            sim.apply(noise)?;
        }
    }
    Ok(())
}

fn trouble(sim: &taffrail_sim::Cluster, random: &mut fastrand::Rng) {
    let (trouble, times) = match random.u8(0..12) {
        0 => return sim.cut_connections(),
        1 => return sim.compact(),
        2 => return sim.heal_all(),
        3 => (Trouble::Unreachable, u32::MAX),
        4 => (Trouble::Cut(random.usize(0..5000)), 3),
        5 => (Trouble::Garbage, 3),
        6 => (Trouble::ServerError("etcdserver: leader changed".to_owned()), 5),
        7 => (Trouble::TooManyRequests(1), 5),
        8 => (Trouble::SilentWatch, 3),
        9 => (Trouble::Expired, 3),
        10 => (Trouble::Latency(Duration::from_millis(random.u64(1..800))), 10),
        _ => (Trouble::Hang, 2),
    };
    sim.fault(Fault::new(trouble).times(times));
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "soak"}})
}

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn config_map(name: u64, value: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map-{name}"), "namespace": "soak"},
        "data": {"value": value.to_string()}})
}

fn widget(name: u64, ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": format!("widget-{name}"), "namespace": "soak"},
        "status": {"conditions": [{"type": "Ready", "status": status, "reason": "Random", "message": "it fell so"}]}})
}

fn deployment(name: u64, replicas: i64, image: u64) -> Value {
    let name = format!("web-{name}");
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "soak"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": format!("web:{image}")}]}}}})
}

fn context(kubeconfig: &str) -> Outcome<Context> {
    let path = std::env::temp_dir().join(format!("taffrail-soak-{}", std::process::id()));
    std::fs::write(&path, kubeconfig)?;
    let context = Kubeconfig::load(Some(&path), None, None)?.current();
    std::fs::remove_file(&path)?;
    Ok(context?)
}

fn resident() -> Outcome<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split_whitespace().nth(1).ok_or("no resident size")?.parse()?;
    Ok(pages * 4096)
}
