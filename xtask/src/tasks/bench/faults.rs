//! Runs the bench `faults` of `taffrail-testkit`, which lies to a hub about its clusters and judges what it shows.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use taffrail_testkit::binary::{self, Profile};

/// Lie to a hub about two real API servers (stopped, silent, dead behind a proxy, with a wrong clock), and count the
/// seconds in which it shows an app green that is not.
#[derive(Args)]
pub(crate) struct Faults {
    /// Names of the faults to cause, such as stopped or dead-502; all of them, each once a round, by default.
    #[arg(value_name = "FAULT", conflicts_with = "sim")]
    only: Vec<String>,
    /// Number of rounds with real API servers; each fault concerns the other cluster in the next one.
    #[arg(long, default_value_t = 1, value_name = "N", conflicts_with = "sim")]
    rounds: u32,
    /// Use simulated clusters in place of real API servers, with seeded faults, several at a time.
    #[arg(long)]
    sim: bool,
    /// Let agents report the clusters in place of reaching in; they are stopped, killed and cut off, too.
    #[arg(long)]
    agents: bool,
    /// Use three real API servers: one is reached, the agent of one reports it, and of one a Prometheus alone tells.
    #[arg(long, conflicts_with_all = ["sim", "agents"])]
    each: bool,
    /// Duration of the run with simulated clusters, in minutes.
    #[arg(long, default_value_t = 30.0, value_name = "N", requires = "sim")]
    minutes: f64,
    /// Seed of the faults of simulated clusters; with real API servers, an odd one begins with the first of them.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Take each observation of the hub for one of this moment: the run must then fail.
    #[arg(long)]
    zero_ages: bool,
    /// Test the release build of the binary.
    #[arg(long)]
    release: bool,
}

impl Faults {
    pub(super) fn run(self) -> Result<()> {
        let profile = if self.release { Profile::Release } else { Profile::Dev };
        let program = binary::build(profile)?;
        let judge = binary::build_judge("taffrail-testkit", "faults", "agents,server")?;
        let mut command = Command::new(judge);
        command.arg(program).args(["--seed", &self.seed.to_string()]);
        if self.sim {
            command.args(["--sim", "--minutes", &self.minutes.to_string()]);
        } else {
            command.args(["--rounds", &self.rounds.to_string()]).args(&self.only);
        }
        if self.agents {
            command.arg("--agents");
        }
        if self.each {
            command.arg("--each");
        }
        if self.zero_ages {
            command.arg("--zero-ages");
        }
        let status = command.stdin(Stdio::null()).status().context("cannot run the bench `faults`")?;
        ensure!(status.success(), "the hub was wrongly green, or a fault turned nothing ({status})");
        Ok(())
    }
}
