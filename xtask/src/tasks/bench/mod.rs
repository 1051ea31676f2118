//! `cargo xtask bench`: the cost of Taffrail beside the cost of its peers in the same run.
//!
//! Figures are ratios: machines differ, and the same machine differs from minute to minute. Before time counts, both
//! sides' answers are compared.
//!
//! `bench apps` has no peer: its figures are absolute and compared with fixed bars. Its module describes how they are
//! taken.

mod apps;
mod cluster;
mod compute;
mod diff;
mod dump;
mod faults;
mod hub;
mod kills;
mod light;
mod measure;
mod objects;
mod rules;
mod sim;
mod soak;
mod subject;
mod tui;
mod ui;
mod wait;

use anyhow::Result;
use clap::Subcommand;

pub(crate) use measure::Measure;

/// Benchmarks: beside the Go peers, and on real control planes.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Measure the status core beside Go's kstatus: CPU time of whole processes, and memory.
    Compute(compute::Compute),
    /// Measure the time of `taffrail get apps` on real control planes: near, far, and with clusters that hang.
    Apps(apps::Apps),
    /// Measure the time to read a dump of 20,000 objects, beside `kubectl -o json | jq`.
    Dump(dump::Dump),
    Diff(diff::Diff),
    Sim(sim::Sim),
    Cluster(cluster::Cluster),
    Hub(hub::Hub),
    Fleet(hub::fleet::Fleet),
    Rules(rules::Rules),
    Wait(wait::Wait),
    Soak(soak::Soak),
    Faults(faults::Faults),
    Kills(kills::Kills),
    Light(light::Light),
    Ui(ui::Ui),
    Tui(tui::Tui),
}

impl Bench {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Bench::Compute(bench) => bench.run(),
            Bench::Apps(bench) => bench.run(),
            Bench::Dump(bench) => bench.run(),
            Bench::Diff(bench) => bench.run(),
            Bench::Sim(bench) => bench.run(),
            Bench::Cluster(bench) => bench.run(),
            Bench::Hub(bench) => bench.run(),
            Bench::Fleet(bench) => bench.run(),
            Bench::Rules(bench) => bench.run(),
            Bench::Wait(bench) => bench.run(),
            Bench::Soak(bench) => bench.run(),
            Bench::Faults(bench) => bench.run(),
            Bench::Kills(bench) => bench.run(),
            Bench::Light(bench) => bench.run(),
            Bench::Ui(bench) => bench.run(),
            Bench::Tui(bench) => bench.run(),
        }
    }
}
