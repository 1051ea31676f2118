//! Measures a hub that 10,000 agents report to, each over a connection of its own by TLS.
//!
//! The rounds are those of the hub whose reports come through one socket, with the same program and the same bars. The
//! agents run in the writer's process, and are the shipped ones but for what they report. Then the hub is killed and
//! started again: the agents dial it by themselves, and send what it does not have.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use nix::sys::resource::{Resource, getrlimit};
use serde_json::Value;

use super::{Bench, MEBI, QUIET, Rounds, Side as _, figure, hourly, in_folder, load, rows};
use crate::tasks::bench::measure::bar;

/// Measure a hub of many clusters with 100 apps each that agents report by TLS: what `bench hub` measures, with their
/// connections, and how fast and with how many bytes all are back after a restart of the hub.
#[derive(Args)]
pub(crate) struct Fleet {
    #[command(flatten)]
    rounds: Rounds,
    /// Measure only the hub at rest, and its restart.
    #[arg(long)]
    quick: bool,
}

/// The number of open files that a process needs beside the connections of agents.
const FILES: u64 = 500;

/// The greatest time until all agents are back after a restart of the hub, in seconds.
const MAX_BACK: f64 = 90.0;

/// The greatest length of what the agents send after a restart of the hub if nothing changed, in MB.
const MAX_SENT: f64 = 10.0;

impl Fleet {
    pub(crate) fn run(self) -> Result<()> {
        let needed = u64::from(self.rounds.clusters) + FILES;
        let (allowed, _) =
            getrlimit(Resource::RLIMIT_NOFILE).context("cannot read the limit of open files")?;
        ensure!(
            needed <= allowed,
            "{} agents need {needed} open files, and a process may open {allowed}; raise it: ulimit -n {needed}",
            self.rounds.clusters
        );
        in_folder("target/bench/fleet", |program, folder| {
            let Rounds { clusters, seed, .. } = self.rounds;
            let file = Some(folder.join("agents"));
            let mut bench = Bench::with_agents(program, &folder.join("hub.db"), clusters, seed, file)?;
            let rows = match self.quick {
                true => self.rest(&mut bench)?,
                false => self.rounds.all(&mut bench)?,
            };
            bench.come_back(rows)?;
            Ok(std::mem::take(&mut bench.problems))
        })
    }

    /// Reports the fleet, and measures the hub at rest; returns the number of rows.
    fn rest(&self, bench: &mut Bench) -> Result<f64> {
        let rows = rows(self.rounds.clusters);
        println!("{} clusters, {rows} rows; load {}", self.rounds.clusters, load());
        bench.load(rows)?;
        self.rounds.rest(bench, rows)?;
        let usage = bench.usage()?;
        println!("{:.0} MB resident, peak {:.0}", usage.resident * MEBI, usage.peak * MEBI);
        Ok(rows)
    }
}

impl Bench {
    /// Returns the command with which the agents dial the hub.
    pub(super) fn dial(&self) -> Result<String> {
        let agents = &self.hub.synced["agents"];
        let pins = agents["pins"].as_array().context("the hub did not print its pins")?;
        let pins: Vec<&str> = pins.iter().filter_map(Value::as_str).collect();
        Ok(format!("dial {} {}", agents["port"], pins.join(",")))
    }

    /// Kills the hub and starts it again, and waits until all agents are back.
    fn come_back(&mut self, rows: f64) -> Result<()> {
        self.tell("streams 0")?;
        std::thread::sleep(QUIET);
        self.saved("everything")?;
        let before = self.tell("back")?;
        self.hub.kill()?;
        let (begun, received) = (Instant::now(), on_loopback()?);
        self.hub =
            super::serve(&self.program, &self.socket, &self.store, self.clusters, self.agents.as_deref())?;
        let started = begun.elapsed().as_secs_f64();
        self.introduce()?;
        let after = self.tell("back")?;
        let (back, received) = (begun.elapsed().as_secs_f64(), on_loopback()? - received);
        let usage = self.usage()?;
        bar("s from the start of a killed hub until all agents are back", back, MAX_BACK);
        let sent = (figure(&after["bytes"]) - figure(&before["bytes"])) / 1e6;
        bar("MB that the agents sent for it", sent, MAX_SENT);
        println!(
            "  started after {started:.1} s; {:.1} s CPU, {:.0} MB over the loopback interface both ways, TLS and pages \
             included; {} streams resent something; {:.0} MB, peak {:.0} ({:.0} bytes a row)",
            usage.cpu,
            received / 1e6,
            figure(&after["resends"]) - figure(&before["resends"]),
            usage.resident * MEBI,
            usage.peak * MEBI,
            usage.peak * MEBI * 1e6 / rows,
        );
        let (_, cpu) = self.while_measured(&hourly(rows, 30))?;
        println!("  then {cpu:.1} % of a core at rest over 30 s");
        Ok(())
    }
}

/// Returns the number of bytes that the loopback interface has received.
fn on_loopback() -> Result<f64> {
    let table = fs::read_to_string("/proc/net/dev").context("cannot read /proc/net/dev")?;
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix("lo:"));
    let bytes = line.and_then(|line| line.split_whitespace().next()).context("there is no interface lo")?;
    Ok(bytes.parse()?)
}
