//! Runs the bench `soak` of `taffrail-observe`, which follows a cluster through failures, and causes the failures that
//! it requests.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use taffrail_testkit::binary;
use taffrail_testkit::kube::{ControlPlane, Options, Programs};

/// Follow a cluster through failures and 200 writes a second, and compare it with `kubectl get --raw` again and again.
#[derive(Args)]
pub(crate) struct Soak {
    /// Duration of the run, in minutes.
    #[arg(long, default_value_t = 30.0, value_name = "N")]
    minutes: f64,
    /// Seed of the writes and failures.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u32,
    /// Use a simulated cluster in place of a real control plane.
    #[arg(long)]
    sim: bool,
}

const CONTEXT: &str = "kube-1";

impl Soak {
    pub(super) fn run(self) -> Result<()> {
        let program = binary::build_bench("taffrail-observe", "soak")?;
        let kubectl = Programs::ensure()?.path("kubectl");
        let mut command = Command::new(program);
        command.arg("--kubectl").arg(kubectl);
        let numbers = [self.minutes.to_string(), self.seed.to_string()];
        if self.sim {
            let status = command.args(numbers).stdin(Stdio::null()).status()?;
            ensure!(status.success(), "the soak ended with {status}");
            return Ok(());
        }
        let mut plane = ControlPlane::start(&Options {
            name: format!("bench-soak-{}", std::process::id()),
            nodes: 2,
            flux_crds: false,
            ..Options::default()
        })?;
        let saved = binary::workspace().join("target/bench/soak-store");
        let _ = fs::remove_dir_all(&saved);
        if let Some(parent) = saved.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut child = command
            .arg("--kubeconfig")
            .arg(plane.kubeconfig())
            .args(numbers)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut answers = child.stdin.take().context("the standard input of the soak is not a pipe")?;
        for line in
            BufReader::new(child.stdout.take().context("the standard output of the soak is not a pipe")?)
                .lines()
        {
            let line = line?;
            let Some(what) = line.strip_prefix("do ") else {
                println!("{line}");
                continue;
            };
            let done = perform(&mut plane, what, &saved);
            let answer =
                done.map_or_else(|error| format!("{error:#}").replace('\n', " "), |()| "done".into());
            writeln!(answers, "{answer}")?;
        }
        let status = child.wait()?;
        let _ = fs::remove_dir_all(&saved);
        ensure!(status.success(), "the soak ended with {status}");
        Ok(())
    }
}

/// Causes the failure `what` of the control plane, such as `restart etcd`; `saved` is the folder of the saved store.
fn perform(plane: &mut ControlPlane, what: &str, saved: &Path) -> Result<()> {
    match what.split_once(' ').unwrap_or((what, "")) {
        ("restart", program) => plane.restart(CONTEXT, program),
        ("hold", program) => plane.hold_still(CONTEXT, program),
        ("release", program) => plane.release(CONTEXT, program),
        ("save", "") => {
            let unfinished: PathBuf = saved.with_extension("unfinished");
            let _ = fs::remove_dir_all(&unfinished);
            plane.save_store(&unfinished)?;
            let _ = fs::remove_dir_all(saved);
            fs::rename(&unfinished, saved)
                .with_context(|| format!("cannot move the saved store to {}", saved.display()))
        }
        ("restore", "") => plane.restore_store(saved),
        _ => bail!("the soak requests the unknown failure '{what}'"),
    }
}
