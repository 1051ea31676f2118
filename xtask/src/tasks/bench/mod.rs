//! `cargo xtask bench`: what Taffrail costs, beside what its peers cost in the same run.
//!
//! Figures are ratios: machines differ, and the same machine differs from minute to minute. Before time
//! counts, both sides' answers are compared.

mod compute;
mod measure;
mod objects;

use anyhow::Result;
use clap::Subcommand;

pub(crate) use measure::Measure;

/// Benchmarks beside the Go peers.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// The status core beside Go's kstatus: CPU time of whole processes, and memory.
    Compute(compute::Compute),
}

impl Bench {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Bench::Compute(bench) => bench.run(),
        }
    }
}
