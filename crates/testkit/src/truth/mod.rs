//! Runs `taffrail get apps` once a second on apps that change all the time, and compares every answer, a *look*, with
//! Kubernetes' own state at that time.
//!
//! kubectl reads the same objects before and after a look, and watches record the states of these, their ReplicaSets
//! and their Pods at each moment in between. A look is right if it matches one of these moments, or an app's object of
//! one moment with Pods that began to fail at a later one: Taffrail lists an app's objects first, and then what belongs
//! to them. So a state that changed during the look is no excuse for a wrong one, and a right one cannot be disputed.

mod judge;
mod scenes;
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use self::judge::{Opinion, State, judge, states};
use self::scenes::{ALL, Kind, NAMESPACE};
use self::watch::{Watch, World};
use crate::kube::{ControlPlane, version};

/// The interval from the start of one run of `taffrail get apps` to the next.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The options of a run.
pub struct Options<'a> {
    /// The control plane of the apps.
    pub plane: &'a ControlPlane,
    /// The context of the control plane's cluster in which the apps run.
    pub context: &'a str,
    /// The duration of the run, in seconds.
    pub seconds: u64,
    /// The file to which every answer of Taffrail and its judgement is written, in JSON lines.
    pub log: &'a Path,
}

/// A way to run `taffrail`, as a process or inside of this one.
pub trait Eye {
    /// Runs `taffrail` with these arguments and returns its output, which is JSON.
    fn look(&mut self, arguments: &[&str]) -> Result<Value>;

    /// Receives Kubernetes' own states of the apps during the last call of [`Eye::look`], for [`judge_again`].
    fn learn(&mut self, states: Value) {
        drop(states);
    }
}

/// A binary of Taffrail that is run as a process for each look.
pub struct Binary<'a> {
    /// The path of the binary.
    pub path: &'a Path,
    /// The path of the kubeconfig.
    pub kubeconfig: &'a Path,
}

impl Eye for Binary<'_> {
    fn look(&mut self, arguments: &[&str]) -> Result<Value> {
        let output = Command::new(self.path)
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", self.path.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`taffrail get apps` ended with {}: {said}", output.status);
        serde_json::from_slice(&output.stdout).context("`taffrail get apps` wrote no JSON")
    }
}

/// The answers of Taffrail in a run, counted by app and by their correctness.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
    /// The number of times that `taffrail get apps` was run.
    pub looks: usize,
    /// The duration of each run of `taffrail get apps`.
    pub times: Vec<Duration>,
    /// A message for every app and look with a wrong answer.
    pub wrong: Vec<String>,
}

#[derive(Debug, Default)]
struct Row {
    name: &'static str,
    shows: &'static str,
    ready: usize,
    in_progress: usize,
    failed: usize,
    other: usize,
    red: usize,
    green: usize,
    amber: usize,
}

/// Creates the apps, changes them for the duration of the run, and compares the answers of `eye` with Kubernetes'
/// states.
pub fn look(options: &Options<'_>, eye: &mut dyn Eye) -> Result<Report> {
    let Options { plane, context, seconds, .. } = *options;
    scenes::start(plane, context, seconds)?;
    let mut watch = Watch::start(plane, context, &Kind::ALL)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let noise = scope.spawn(|| disturb(plane, context, seconds, &is_over));
        let report = observe(options, eye, &mut watch);
        is_over.store(true, Ordering::Relaxed);
        noise.join().unwrap_or_else(|_| Err(anyhow!("the thread that disturbs the apps panicked")))?;
        report
    })
}

/// Disturbs the apps until `is_over` is true, at intervals of a fifteenth of the run, but not shorter than 2 s or
/// longer than 6 s.
fn disturb(plane: &ControlPlane, context: &str, seconds: u64, is_over: &AtomicBool) -> Result<()> {
    let turns = Duration::from_millis(seconds.saturating_mul(1000) / 15)
        .clamp(Duration::from_secs(2), Duration::from_secs(6));
    let started = Instant::now();
    for turn in 0.. {
        let next = turns * (turn + 1);
        while started.elapsed() < next {
            if is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        scenes::disturb(plane, context, turn as usize)?;
    }
    Ok(())
}

fn observe(options: &Options<'_>, eye: &mut dyn Eye, watch: &mut Watch<'_>) -> Result<Report> {
    let log =
        File::create(options.log).with_context(|| format!("cannot create {}", options.log.display()))?;
    let mut log = BufWriter::new(log);
    let mut report = Report::new();
    let started = Instant::now();
    let mut next = Duration::ZERO;
    while next < Duration::from_secs(options.seconds) {
        std::thread::sleep(next.saturating_sub(started.elapsed()));
        let before = Record::read(options)?;
        let at = jiff::Timestamp::now();
        let looked = Instant::now();
        let shown = eye.look(&arguments(options.context))?;
        let took = looked.elapsed();
        let after = Record::read(options)?;

        report.times.push(took);
        let worlds = worlds(&before, &after, watch)?;
        let states: States = ALL
            .iter()
            .map(|scene| (scene.name.to_owned(), states(scene.kind, scene.name, &worlds)))
            .collect();
        eye.learn(json!(states));
        let apps = report.add(at, &shown, &states);
        let line = json!({"look": report.looks, "at": at.to_string(), "milliseconds": took.as_millis() as u64, "apps": apps});
        writeln!(log, "{line}").context("cannot write the log of the looks")?;
        // A look that takes longer than an interval skips the next ones.
        while next <= started.elapsed() {
            next += LOOK_INTERVAL;
        }
    }
    log.flush().context("cannot write the log of the looks")?;
    Ok(report)
}

/// Returns the arguments with which `taffrail` is run for each look: `get apps` in the apps' namespace, as JSON, in
/// this context.
pub fn arguments(context: &str) -> [&str; 8] {
    ["get", "apps", "-n", NAMESPACE, "-o", "json", "--context", context]
}

/// The states that Kubernetes itself gave each app during one look, by the app's name.
type States = BTreeMap<String, Vec<State>>;

/// Compares recorded answers of Taffrail again. Each pair is an output that [`Eye::look`] returned, and the states that
/// [`Eye::learn`] received for it.
pub fn judge_again(looks: &[(Value, Value)]) -> Result<Report> {
    let mut report = Report::new();
    for (shown, states) in looks {
        let states: States =
            serde_json::from_value(states.clone()).context("cannot parse the recorded states of the apps")?;
        report.add(jiff::Timestamp::UNIX_EPOCH, shown, &states);
    }
    Ok(report)
}

/// The objects of all watched kinds, as the API server returns them.
struct Record {
    objects: Vec<(Kind, Value)>,
    /// The resource version of each list.
    versions: Vec<u64>,
}

impl Record {
    fn read(options: &Options<'_>) -> Result<Self> {
        let list = |kind: Kind| -> Result<Value> {
            let text = options.plane.kubectl(options.context, &["get", "--raw", &kind.path()])?;
            serde_json::from_str(&text).context("the API server wrote no JSON")
        };
        let lists = std::thread::scope(|scope| {
            let reads = Kind::ALL.map(|kind| (kind, scope.spawn(move || list(kind))));
            reads.map(|(kind, read)| {
                let list = read.join().unwrap_or_else(|_| Err(anyhow!("the thread that lists it panicked")));
                (kind, list.with_context(|| format!("cannot list {}", kind.path())))
            })
        });
        let mut record = Self { objects: Vec::new(), versions: Vec::new() };
        for (kind, list) in lists {
            let mut list = list?;
            record
                .versions
                .push(version(&list).with_context(|| format!("{} has no resourceVersion", kind.path()))?);
            if let Value::Array(items) = list["items"].take() {
                record.objects.extend(items.into_iter().map(|item| (kind, item)));
            }
        }
        Ok(record)
    }

    /// Returns the path and version of an object of this record that none of `worlds` has in the same or a later
    /// version. The lists of a record are of different moments, so the last world may lack a Pod that was deleted
    /// meanwhile.
    fn missing_in(&self, worlds: &[World]) -> Option<String> {
        self.objects.iter().find_map(|(kind, object)| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let known = |world: &World| world.get(*kind, name).and_then(|known| version(known));
            let newest = worlds.iter().map(known).max().flatten();
            (newest < version(object)).then(|| {
                format!("{}/{name} in version {:?}, seen in {newest:?}", kind.path(), version(object))
            })
        })
    }
}

/// Returns the objects at each moment from one record to the other, as the watch saw them; waits for the watch, and
/// fails after 120 s: a busy machine is no fault.
fn worlds(before: &Record, after: &Record, watch: &mut Watch<'_>) -> Result<Vec<World>> {
    let started = Instant::now();
    let first = before.versions.iter().min().copied().unwrap_or_default();
    let last = after.versions.iter().max().copied().unwrap_or_default();
    loop {
        // Changes on their way have left the API server long before.
        std::thread::sleep(Duration::from_millis(20));
        watch.resume()?;
        let worlds = watch.between(first, last);
        let Some(missing) = after.missing_in(&worlds) else { return Ok(worlds) };
        ensure!(
            started.elapsed() < Duration::from_secs(120),
            "the watches of the apps did not reach the newest version within 120 s: they lack {missing}"
        );
    }
}

impl Row {
    fn count(&mut self, health: Option<&str>, opinion: Opinion) {
        *match health {
            Some("Current") => &mut self.ready,
            Some("InProgress") => &mut self.in_progress,
            Some("Failed") => &mut self.failed,
            _ => &mut self.other,
        } += 1;
        match opinion {
            Opinion::Right => {}
            Opinion::WrongRed => self.red += 1,
            Opinion::WrongGreen => self.green += 1,
            Opinion::WrongAmber => self.amber += 1,
        }
    }
}

impl Report {
    fn new() -> Report {
        let rows = ALL.iter().map(|scene| Row { name: scene.name, shows: scene.shows, ..Row::default() });
        Report { rows: rows.collect(), ..Report::default() }
    }

    /// Compares one answer of Taffrail, `shown`, with the states of the apps, and counts the result in this report;
    /// returns the log entry of each app.
    fn add(&mut self, at: jiff::Timestamp, shown: &Value, states: &States) -> serde_json::Map<String, Value> {
        self.looks += 1;
        let mut apps = serde_json::Map::new();
        for (scene, row) in ALL.iter().zip(&mut self.rows) {
            let states = states.get(scene.name).map(Vec::as_slice).unwrap_or_default();
            let app = shown["items"].as_array().into_iter().flatten().find(|app| app["name"] == scene.name);
            let health = app.and_then(|app| app["effective"].as_str());
            let opinion = judge(health, states);
            row.count(health, opinion);
            if opinion != Opinion::Right {
                self.wrong.push(format!(
                    "{at:.1} {}: shown as {} ({}), Kubernetes said {states:?}",
                    scene.name,
                    health.unwrap_or("nothing"),
                    app.and_then(|app| app["message"].as_str()).unwrap_or_default(),
                ));
            }
            let message = app.map(|app| app["message"].clone());
            apps.insert(
                scene.name.to_owned(),
                json!({"shown": health, "message": message, "kubernetes": states, "opinion": opinion}),
            );
        }
        apps
    }

    /// Returns true if an app was shown both as in progress and as ready or failed: one that never changed proves
    /// nothing.
    pub fn moved(&self, name: &str) -> bool {
        self.rows.iter().any(|row| row.name == name && row.in_progress > 0 && row.ready + row.failed > 0)
    }
}

/// Formats the table of all apps, and the wrong answers.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:10} {:>6} {:>12} {:>7} {:>6}  {:>10} {:>12} {:>12}",
            "", "Ready", "InProgress", "Failed", "other", "wrong red", "wrong green", "wrong amber"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{:10} {:>6} {:>12} {:>7} {:>6}  {:>10} {:>12} {:>12}  {}",
                row.name,
                row.ready,
                row.in_progress,
                row.failed,
                row.other,
                row.red,
                row.green,
                row.amber,
                row.shows
            )?;
        }
        let mut times = self.times.clone();
        times.sort();
        let of =
            |share: usize| times.get(times.len() * share / 100).or(times.last()).copied().unwrap_or_default();
        writeln!(
            f,
            "{} looks at {} apps; a look took {} ms in the middle, {} ms at most",
            self.looks,
            self.rows.len(),
            of(50).as_millis(),
            of(100).as_millis()
        )?;
        self.wrong.iter().try_for_each(|wrong| writeln!(f, "wrong: {wrong}"))
    }
}
