//! Runs the bench `kills` of `taffrail-testkit`, which kills a hub under load and checks that it lost nothing.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use taffrail_testkit::binary::{self, Profile};

/// Kill a hub (SIGKILL) again and again while the apps of simulated clusters change, and compare what it acknowledged,
/// its history and its answers about past times with a log of the changes.
#[derive(Args)]
pub(crate) struct Kills {
    /// Number of kills.
    #[arg(long, default_value_t = 200, value_name = "N")]
    kills: usize,
    /// Number of random pairs and moments whose past state is asked for, each after a restart, a backup and a restore.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    moments: usize,
    /// Seed of the changes, the kills and the moments.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Test the release build of the binary.
    #[arg(long)]
    release: bool,
}

impl Kills {
    pub(super) fn run(self) -> Result<()> {
        let profile = if self.release { Profile::Release } else { Profile::Dev };
        let program = binary::build(profile)?;
        let judge = binary::build_judge("taffrail-testkit", "kills", "server")?;
        let mut command = Command::new(judge);
        command.arg(program);
        command.args(["--kills", &self.kills.to_string(), "--moments", &self.moments.to_string()]);
        command.args(["--seed", &self.seed.to_string()]);
        let status = command.stdin(Stdio::null()).status().context("cannot run the bench `kills`")?;
        ensure!(status.success(), "the hub lost or changed what it had acknowledged ({status})");
        Ok(())
    }
}
