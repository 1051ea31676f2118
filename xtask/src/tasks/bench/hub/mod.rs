//! Measures a hub of 10,000 clusters with 100 apps each, whose reports come from another process.
//!
//! The bench `hub_cost` of `taffrail-agent` runs twice: as the hub, whose cost is read from the kernel, and as the
//! writer, which reports a fleet through a Unix socket, reads from the hub by HTTP, and compares each answer with one
//! of its own, which it finds by looking at every app. Decoding the reports is part of the hub's cost, and making them
//! is not.
//!
//! A second part measures a smaller fleet in two places, one after the other and with the same commands: in a hub, and as
//! objects in a real kube-apiserver and etcd, as tools keep it that have no hub of their own kind.
//!
//! The bars hold for 1,000,000 rows, and for a core for each of the two. A figure beyond its bar is printed as missed
//! and fails nothing, because a busy machine shows in it; a wrong answer fails.

pub(crate) mod fleet;
mod peer;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use taffrail_testkit::binary;

use super::measure::{bar, figure, load, verdict};
use super::subject::{Subject, Usage};

/// Measure a hub of many clusters with 100 apps each, whose reports come from another process: memory, CPU time,
/// latency and correctness of its answers; and a smaller fleet beside the same one as objects in Kubernetes.
#[derive(Args)]
pub(crate) struct Hub {
    #[command(flatten)]
    rounds: Rounds,
    /// Number of clusters of the fleet that is measured in a hub and in Kubernetes.
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    peer_clusters: u32,
    /// Parts to run: the hub alone, the hub and its peer Kubernetes; all by default.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = ["hub", "peer"])]
    only: Vec<String>,
}

/// The size of a fleet, and what it goes through while its hub is measured.
#[derive(Args)]
struct Rounds {
    /// Number of clusters.
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    clusters: u32,
    /// Number of seconds for which 1 % of the apps change an hour.
    #[arg(long, default_value_t = 120, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    rest: u32,
    /// Number of seconds within which every app changes twice.
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    churn: u32,
    /// Number of seconds for which 200 apps change a second.
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    changes: u32,
    /// Number of pages that are read and compared.
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pages: u32,
    /// Seed of the fleet, its changes, and the pages that are read.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

/// The number of apps of a cluster.
const APPS: f64 = 100.0;

/// The number of changes a second of which streams are told.
const RATE: f64 = 200.0;

/// The number of event streams, each with another page.
const STREAMS: usize = 100;

/// The number of event streams by which the latency of changes is measured.
const FEW_STREAMS: usize = 8;

/// The number of clusters in which an app gets a bad image.
const BAD_IMAGES: u32 = 400;

/// The number of times that each count, and the matrix, is read.
const ROUNDS: usize = 10;

/// The greatest peak of resident memory, in MB.
const MAX_MEMORY: f64 = 2_000.0;

/// The time for which the hub rests before its CPU time is measured.
const QUIET: Duration = Duration::from_secs(5);

impl Hub {
    pub(super) fn run(self) -> Result<()> {
        in_folder("target/bench/hub", |program, folder| self.parts(program, folder))
    }

    /// Runs the parts that were chosen, and returns the wrong answers.
    fn parts(&self, program: &Path, folder: &Path) -> Result<Vec<String>> {
        let is_wanted = |name: &str| self.only.is_empty() || self.only.iter().any(|only| only == name);
        let mut problems = Vec::new();
        if is_wanted("hub") {
            let Rounds { clusters, seed, .. } = self.rounds;
            let mut bench = Bench::start(program, &folder.join("hub.db"), clusters, seed)?;
            self.measure(&mut bench)?;
            problems.append(&mut bench.problems);
        }
        if is_wanted("peer") {
            problems.append(&mut self.compare(program, folder)?);
        }
        Ok(problems)
    }

    fn measure(&self, bench: &mut Bench) -> Result<()> {
        let rows = self.rounds.all(bench)?;
        bench.restart(rows)?;
        bench.pages(100, "pages after the restart")
    }
}

/// Has a bench made in an empty folder of the workspace, by the program `hub_cost`; fails with the wrong answers that it
/// returns.
fn in_folder(path: &str, run: impl FnOnce(&Path, &Path) -> Result<Vec<String>>) -> Result<()> {
    let program = binary::build_bench("taffrail-agent", "hub_cost")?;
    let folder = binary::workspace().join(path);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let done = run(&program, &folder);
    let _ = fs::remove_dir_all(&folder);
    let problems = done?;
    ensure!(problems.is_empty(), "wrong answers: {}", problems.join("; "));
    Ok(())
}

impl Rounds {
    /// Reports the fleet, and measures the hub at rest, while apps change, and while all of them change twice; returns the
    /// number of rows.
    fn all(&self, bench: &mut Bench) -> Result<f64> {
        let rows = rows(self.clusters);
        println!("{} clusters, {rows} rows; load {}", self.clusters, load());
        bench.load(rows)?;
        self.rest(bench, rows)?;
        self.latency(bench)?;
        self.streams(bench)?;
        self.answers(bench)?;
        self.churn(bench, rows)?;
        bench.saved("everything of the churn")?;
        println!("the store has {:.0} MB; load {}", size(&bench.store), load());
        Ok(rows)
    }

    fn rest(&self, bench: &mut Bench, rows: f64) -> Result<()> {
        bench.tell("streams 0")?;
        sleep(QUIET);
        let (_, cpu) = bench.while_measured(&hourly(rows, self.rest))?;
        let what = format!("CPU, heartbeats and 1 % changing an hour, % of a core over {} s", self.rest);
        bar(&what, cpu, 3.0);
        Ok(())
    }

    fn latency(&self, bench: &mut Bench) -> Result<()> {
        bench.tell(&format!("streams {FEW_STREAMS}"))?;
        let outcome = bench.tell(&format!("change 20 {}", self.changes.min(30)))?;
        bench.arrived("ms from a change to an SSE client", &outcome, 2_000.0);
        Ok(())
    }

    fn streams(&self, bench: &mut Bench) -> Result<()> {
        bench.tell("streams 0")?;
        sleep(QUIET);
        let command = format!("change {RATE} {}", self.changes);
        let (_, without) = bench.while_measured(&command)?;
        bench.tell(&format!("streams {STREAMS}"))?;
        sleep(QUIET);
        let (outcome, with) = bench.while_measured(&command)?;
        bar(&format!("CPU, {STREAMS} pages at {RATE} changes a second, % of a core"), with - without, 10.0);
        println!("  with the changes themselves {with:.1} %, without pages {without:.1} %");
        bench.arrived("ms from a change to an SSE client, with these pages", &outcome, 2_000.0);
        bench.tell("streams 0")?;
        Ok(())
    }

    fn answers(&self, bench: &mut Bench) -> Result<()> {
        bench.pages(self.pages, "random pages of 100 rows")?;
        let counts = bench.tell(&format!("counts {ROUNDS}"))?;
        bench.compared("ms for counts by 8 values", &counts, 100.0);
        let matrix = bench.tell(&format!("matrix {ROUNDS}"))?;
        bench.compared(&format!("ms for the matrix of {} cells", matrix["cells"]), &matrix, 100.0);
        let image = bench.tell(&format!("image {BAD_IMAGES}"))?;
        let is_one = image["is_one"] == true;
        println!(
            "one bad image in {} clusters is {} of {} causes with {} rows, in {:.1} ms: {}",
            image["clusters"],
            image["entries"],
            image["causes"],
            image["count"],
            figure(&image["ms"]),
            verdict(is_one)
        );
        bench.problems.extend((!is_one).then(|| "one bad image is not one cause".to_owned()));
        Ok(())
    }

    fn churn(&self, bench: &mut Bench, rows: f64) -> Result<()> {
        bench.tell(&format!("streams {FEW_STREAMS}"))?;
        let (outcome, cpu) = bench.while_measured(&format!("churn {}", self.churn))?;
        println!(
            "every app changed twice in {:.0} s ({} changes, the writer {:.0} ms late at most): \
             {cpu:.1} % of a core; load {}",
            figure(&outcome["seconds"]),
            outcome["changes"],
            figure(&outcome["late_ms"]),
            load()
        );
        bench.arrived("ms from a change to an SSE client, in the churn", &outcome, 10_000.0);
        let pages = &outcome["pages"];
        bar("failed pages in the churn", figure(&pages["failed"]), 0.0);
        bar("ms for a page in the churn, longest", figure(&pages["times"]["longest"]), 500.0);
        println!("  of {} pages: {}", pages["times"]["count"], pages["times"]);
        println!("  the slowest: {}", pages["slowest"]);
        let usage = bench.hub.usage()?;
        bar("MB of memory after a full churn, peak", usage.peak * MEBI, MAX_MEMORY);
        println!("  {:.0} bytes a row; {:.0} MB now", usage.peak * MEBI * 1e6 / rows, usage.resident * MEBI);
        Ok(())
    }
}

/// The number of MB in a MiB.
const MEBI: f64 = 1.048_576;

/// Returns the number of apps of so many clusters.
pub(super) fn rows(clusters: u32) -> f64 {
    f64::from(clusters) * APPS
}

/// Returns the size of a file in MB; 0 if it is not there.
fn size(path: &Path) -> f64 {
    fs::metadata(path).map_or(0.0, |file| file.len() as f64 / 1e6)
}

/// Returns the command that changes 1 % of the apps an hour for so many seconds.
fn hourly(rows: f64, seconds: u32) -> String {
    format!("change {} {seconds}", rows / 100.0 / 3600.0)
}

/// A system that keeps a fleet, with the program that writes to it and reads from it.
trait Side {
    /// Tells the writer a command.
    fn tell(&mut self, command: &str) -> Result<Value>;

    /// Returns the usage of all processes that keep the fleet.
    fn usage(&self) -> Result<Usage>;

    /// Tells the writer a command, and returns its answer, and the CPU time of what keeps the fleet meanwhile in percent
    /// of a core.
    fn while_measured(&mut self, command: &str) -> Result<(Value, f64)> {
        let (before, begun) = (self.usage()?, Instant::now());
        let answer = self.tell(command)?;
        let passed = begun.elapsed().as_secs_f64();
        Ok((answer, (self.usage()?.cpu - before.cpu) / passed * 100.0))
    }
}

/// The hub that is measured, and the writer.
pub(super) struct Bench {
    pub(super) hub: Subject,
    pub(super) writer: Subject,
    program: PathBuf,
    socket: PathBuf,
    store: PathBuf,
    /// The file that names the agents; `None` if reports come through the socket.
    agents: Option<PathBuf>,
    clusters: u32,
    /// The wrong answers so far.
    problems: Vec<String>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        // The hub may have made none.
        let _ = fs::remove_file(&self.socket);
    }
}

impl Side for Bench {
    fn tell(&mut self, command: &str) -> Result<Value> {
        self.writer.tell(command)
    }

    fn usage(&self) -> Result<Usage> {
        self.hub.usage()
    }
}

/// Starts a hub that takes reports from a socket, or from the agents that a file names, and keeps what outlives it in the
/// file `store`.
fn serve(
    program: &Path,
    socket: &Path,
    store: &Path,
    clusters: u32,
    agents: Option<&Path>,
) -> Result<Subject> {
    let clusters = clusters.to_string();
    let agents = agents.map(text).transpose()?;
    let arguments = ["serve", text(socket)?, text(store)?, &clusters].into_iter().chain(agents);
    Subject::start(program, &arguments.collect::<Vec<_>>())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("the path of a file of the benchmark is not valid UTF-8")
}

impl Bench {
    /// Starts a hub and the writer of a fleet, whose reports go through a socket.
    pub(super) fn start(program: &Path, store: &Path, clusters: u32, seed: u64) -> Result<Bench> {
        Bench::with_agents(program, store, clusters, seed, None)
    }

    /// Starts a hub and the writer of a fleet; its agents, if there is a file to name them, report it.
    fn with_agents(
        program: &Path,
        store: &Path,
        clusters: u32,
        seed: u64,
        agents: Option<PathBuf>,
    ) -> Result<Bench> {
        // The path of a socket has at most 108 bytes.
        let socket = std::env::temp_dir().join(format!("taffrail-bench-{}.sock", std::process::id()));
        let mut writer = Subject::start(program, &["write", &clusters.to_string(), &seed.to_string()])?;
        if let Some(file) = &agents {
            writer.tell(&format!("introduce {}", text(file)?))?;
        }
        let hub = serve(program, &socket, store, clusters, agents.as_deref())?;
        let (program, store) = (program.to_owned(), store.to_owned());
        Ok(Bench { hub, writer, program, socket, store, agents, clusters, problems: Vec::new() })
    }

    /// Returns the address and the token of the hub.
    pub(super) fn access(&self) -> Result<(&str, &str)> {
        let synced = &self.hub.synced;
        let (address, token) = (synced["address"].as_str(), synced["token"].as_str());
        address.zip(token).context("the hub did not print its address and token")
    }

    /// Tells the writer how the hub is asked.
    fn introduce(&mut self) -> Result<()> {
        let (address, token) = self.access()?;
        let command = format!("hub {address} {token}");
        self.tell(&command)?;
        Ok(())
    }

    /// Has the writer report the whole fleet to the hub.
    pub(super) fn load(&mut self, rows: f64) -> Result<()> {
        self.introduce()?;
        let command = match &self.agents {
            None => format!("load {}", text(&self.socket)?),
            Some(_) => self.dial()?,
        };
        let loaded = self.tell(&command)?;
        let usage = self.hub.usage()?;
        println!(
            "reported in {:.1} s, shown after {:.1} s: {} reports, {:.0} MB, {:.1} s CPU; {:.0} MB resident \
             ({:.0} bytes a row), peak {:.0}; {} refused, {} resent",
            figure(&loaded["sent_seconds"]),
            figure(&loaded["seconds"]),
            loaded["reports"],
            figure(&loaded["bytes"]) / 1e6,
            usage.cpu,
            usage.resident * MEBI,
            usage.resident * MEBI * 1e6 / rows,
            usage.peak * MEBI,
            loaded["refused"],
            loaded["resends"]
        );
        self.saved("the fleet")
    }

    /// Waits until the hub has saved everything.
    fn saved(&mut self, what: &str) -> Result<()> {
        let begun = Instant::now();
        let saved = self.hub.tell("saved")?;
        ensure!(saved["saved"] == true, "the hub cannot write its store");
        let usage = self.hub.usage()?;
        println!(
            "{what} was saved after {:.1} s more; {:.1} s CPU in all, {:.0} MB resident, peak {:.0}",
            begun.elapsed().as_secs_f64(),
            usage.cpu,
            usage.resident * MEBI,
            usage.peak * MEBI
        );
        Ok(())
    }

    /// Prints the times from changes to their arrival at a client, with their bar.
    fn arrived(&mut self, what: &str, outcome: &Value, most: f64) {
        let latency = &outcome["latency"];
        bar(&format!("{what}, p99"), figure(&latency["p99"]), most);
        println!(
            "  p50 {:.0} ms, longest {:.0} ms of {} changes on pages; {} were never seen, {} reports refused, \
             {} resent",
            figure(&latency["p50"]),
            figure(&latency["longest"]),
            latency["count"],
            outcome["unseen"],
            outcome["refused"],
            outcome["resends"]
        );
        if outcome["unseen"] != 0 {
            self.problems.push(format!("{} changes were never shown ({what})", outcome["unseen"]));
        }
    }

    /// Prints the times of answers that were compared, with their bar.
    fn compared(&mut self, what: &str, outcome: &Value, most: f64) {
        let times = &outcome["times"];
        bar(&format!("{what}, p99"), figure(&times["p99"]), most);
        println!(
            "  p50 {:.1} ms, longest {:.1} ms of {} answers, {} of them wrong",
            figure(&times["p50"]),
            figure(&times["longest"]),
            times["count"],
            outcome["wrong"]
        );
        if let Some(wrong) = outcome["first_wrong"].as_str() {
            self.problems.push(wrong.to_owned());
        }
    }

    fn pages(&mut self, count: u32, what: &str) -> Result<()> {
        let pages = self.tell(&format!("pages {count}"))?;
        self.compared(&format!("ms for {what}"), &pages, 50.0);
        println!("  the slowest: {}", pages["slowest"]);
        Ok(())
    }

    /// Kills the hub and starts it again; returns the first page, and the seconds until it was there.
    fn revive(&mut self) -> Result<(Value, f64)> {
        self.tell("streams 0")?;
        self.hub.kill()?;
        let begun = Instant::now();
        self.hub = serve(&self.program, &self.socket, &self.store, self.clusters, self.agents.as_deref())?;
        self.introduce()?;
        let stale = self.tell("stale")?;
        Ok((stale, begun.elapsed().as_secs_f64()))
    }

    /// Kills the hub and starts it again: first no source reports, then the writer does.
    fn restart(&mut self, rows: f64) -> Result<()> {
        let (stale, seconds) = self.revive()?;
        bar("s from a restart to the first page", seconds, 15.0);
        let is_right =
            stale["is_stale"] == true && stale["wrong"].is_null() && figure(&stale["total"]) == rows;
        println!(
            "  ready after {:.1} s, the page took {:.1} ms; {} rows, all stale: {}; {:.0} MB, peak {:.0}",
            self.hub.wall,
            figure(&stale["ms"]),
            stale["total"],
            verdict(is_right),
            self.hub.first.resident * MEBI,
            self.hub.first.peak * MEBI
        );
        if !is_right {
            self.problems.push(format!("after a restart: {stale}"));
        }
        self.load(rows)
    }
}
