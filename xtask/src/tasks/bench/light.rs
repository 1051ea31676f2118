//! Measures a hub that reads many clusters lightly: memory for each cluster and each further kind, and CPU time.
//!
//! The clusters are simulated, in several processes, so that each has open files for its own. The hub is the release
//! build, and all of it counts: its connections, watches, objects, rows and its store.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use nix::sys::resource::{Resource, getrlimit};
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::hub::Hub;
use taffrail_testkit::running::Running;

use super::measure::bar;
use super::subject::{Usage, sockets};

/// The greatest memory of a cluster with two watched kinds, in KiB.
const MAX_MEMORY: f64 = 64.0;

/// The number of watched kinds of the first part.
const FEW: usize = 2;

/// The number of watched kinds of the second part, which shows what each further one costs.
const MANY: usize = 8;

/// The number of files that each process needs beside those of clusters.
const FILES: usize = 500;

/// The time after which memory and connections are as they stay.
const SETTLING: Duration = Duration::from_secs(20);

/// Measure a hub that reads simulated clusters lightly: memory for a cluster with two watched kinds, and for each
/// further kind; CPU time at the start and at rest.
#[derive(Args)]
pub(crate) struct Light {
    /// Number of clusters.
    #[arg(long, default_value_t = 300, value_name = "N")]
    clusters: usize,
    /// Number of processes in which the clusters are simulated.
    #[arg(long, default_value_t = 4, value_name = "N")]
    processes: usize,
    /// Number of objects of each kind.
    #[arg(long, default_value_t = 3, value_name = "N")]
    objects: usize,
    /// Number of seconds for the CPU time at rest.
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    idle: u64,
    /// Do not measure further kinds.
    #[arg(long)]
    quick: bool,
}

/// Returns the process of a hub.
fn pid(hub: &Hub) -> Result<u32> {
    Ok(u32::try_from(hub.pid().as_raw_nonzero().get())?)
}

/// Starts a hub of the clusters in the folder `fleet`; without clusters if that is `None`.
fn start(program: &Path, data: &Path, fleet: Option<&Path>) -> Result<Hub> {
    let mut command = Command::new(program);
    command.args(["hub", "serve", "--listen", "127.0.0.1:0", "--data"]).arg(data.join("hub"));
    match fleet {
        Some(fleet) => command.arg("--kubeconfig").arg(fleet).args(["--all-contexts", "--light"]),
        None => command.args(["--clusters-from", "none"]),
    };
    Hub::start(&mut command)
}

impl Light {
    pub(super) fn run(self) -> Result<()> {
        let (allowed, _) =
            getrlimit(Resource::RLIMIT_NOFILE).context("cannot read the limit of open files")?;
        // A simulated cluster has its listener and a connection.
        let needed = (self.clusters + FILES).max(2 * self.clusters.div_ceil(self.processes) + FILES);
        ensure!(
            u64::try_from(needed)? <= allowed,
            "a process needs {needed} open files and may have {allowed}: raise it with `ulimit -n`, or add --processes"
        );
        let program = binary::build(Profile::Release)?;
        let simulator = binary::build_bench("taffrail-sim", "declaring")?;
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let empty = start(&program, folder.path(), None)?;
        let empty = Usage::of(pid(&empty)?)?;
        println!("a hub without clusters: {:.1} MiB resident", empty.resident);
        let few = self.measure(&program, &simulator, FEW)?;
        let memory = |usage: Usage| (usage.resident - empty.resident) * 1024.0 / self.clusters as f64;
        bar(&format!("KiB a cluster with {FEW} watched kinds"), memory(few), MAX_MEMORY);
        if !self.quick {
            let many = self.measure(&program, &simulator, MANY)?;
            let further = (memory(many) - memory(few)) / (MANY - FEW) as f64;
            println!("each further watched kind: {further:.1} KiB a cluster");
        }
        Ok(())
    }

    /// Measures a hub of all clusters, each with `kinds` kinds.
    fn measure(&self, program: &Path, simulator: &Path, kinds: usize) -> Result<Usage> {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let fleet = folder.path().join("fleet");
        std::fs::create_dir(&fleet)?;
        let mut simulated = Vec::new();
        for process in 0..self.processes {
            let share =
                self.clusters / self.processes + usize::from(process < self.clusters % self.processes);
            let arguments = [share, self.objects, kinds].map(|number| number.to_string());
            let mut command = Command::new(simulator);
            command
                .args(arguments)
                .arg(format!("sim-{process}"))
                .arg(fleet.join(format!("sim-{process}.yaml")));
            let (running, ()) = Running::start(&mut command, |line| (line == "ready").then_some(()))?;
            simulated.push(running);
        }
        let begun = Instant::now();
        let hub = start(program, folder.path(), Some(&fleet))?;
        let pid = pid(&hub)?;
        let limit = Duration::from_secs(60 + self.clusters as u64 / 10);
        loop {
            let apps = hub.get("/api/v1/apps?limit=1")?;
            if apps["state"] == "complete" && apps["clusters"].as_u64() == u64::try_from(self.clusters).ok() {
                break;
            }
            ensure!(
                begun.elapsed() < limit,
                "not all clusters were read within {limit:?}: {}",
                apps["state"]
            );
            sleep(Duration::from_millis(500));
        }
        let (read, first) = (begun.elapsed().as_secs_f64(), Usage::of(pid)?);
        println!("{} clusters with {kinds} kinds of {} objects:", self.clusters, self.objects);
        println!(
            "  read after {read:.1} s with {:.1} s CPU ({:.1} ms a cluster), peak {:.1} MiB resident",
            first.cpu,
            1e3 * first.cpu / self.clusters as f64,
            first.peak,
        );
        sleep(SETTLING);
        let (before, begun) = (Usage::of(pid)?, Instant::now());
        sleep(Duration::from_secs(self.idle));
        let (usage, seconds) = (Usage::of(pid)?, begun.elapsed().as_secs_f64());
        let share = (usage.cpu - before.cpu) / seconds;
        println!(
            "  at rest {:.2} % of a core, {:.2} ms a cluster and minute; {:.1} MiB resident",
            1e2 * share,
            6e4 * share / self.clusters as f64,
            usage.resident,
        );
        println!("  {} open sockets", sockets(pid));
        let apps = hub.get("/api/v1/apps?limit=1")?;
        ensure!(apps["state"] == "complete", "not all clusters stayed live: {}", apps["state"]);
        Ok(usage)
    }
}
