//! `cargo xtask kube`: control planes for trying things and for end-to-end tests.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use taffrail_testkit::binary::workspace;
use taffrail_testkit::kube::{ControlPlane, Options, down, list};

/// Real Kubernetes control planes on this machine.
#[derive(Subcommand)]
pub(crate) enum Kube {
    /// Start a control plane and leave it running. The first time builds its programs with Go, about 8 minutes.
    Up(Up),
    /// End a control plane and remove its data. Ending one that does not run is not an error.
    Down(Name),
    /// List the control planes and their processes.
    Status,
    /// Record a cluster for a while as a timeline for the simulation.
    Record(Record),
    /// Play the end-to-end scenarios on control planes of their own, and record the changes of their clusters and
    /// Taffrail's answers for the tests that replay them; about 10 minutes for all.
    RecordScenarios(RecordScenarios),
}

#[derive(Args)]
pub(crate) struct RecordScenarios {
    /// Names of the scenarios, as the tests are called; all by default.
    names: Vec<String>,
}

impl RecordScenarios {
    fn run(self) -> Result<()> {
        let is_all = self.names.is_empty();
        let base = workspace().join("tests/e2e/timelines/base.timeline");
        if is_all && base.exists() {
            fs::remove_file(&base).with_context(|| format!("cannot remove {}", base.display()))?;
        }
        // What was recorded must replay.
        for test in ["real", "replayed"] {
            let filters: Vec<String> = match is_all {
                true => vec![format!("::{test}")],
                false => self.names.iter().map(|name| format!("{name}::{test}")).collect(),
            };
            let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            command.args(["test", "--package", "taffrail-e2e", "--no-fail-fast", "--"]).args(filters);
            if test == "real" {
                command.env("TAFFRAIL_E2E_RECORD", "1").arg("--test-threads=1");
            }
            let status = command.current_dir(workspace()).stdin(Stdio::null()).status()?;
            ensure!(status.success(), "the {test} scenarios ended with {status}");
        }
        Ok(())
    }
}

#[derive(Args)]
pub(crate) struct Record {
    /// Name of the control plane.
    name: String,
    /// Context of the cluster.
    #[arg(long, default_value = "kube-1")]
    context: String,
    /// Duration of the record, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Keep the contents of Helm's releases; by default their Secrets are blanked like all others.
    #[arg(long)]
    keep_helm: bool,
    /// File to which the timeline is written.
    #[arg(long, value_name = "FILE", default_value = "timeline.yaml")]
    output: PathBuf,
}

impl Record {
    fn run(self) -> Result<()> {
        let Some(plane) = ControlPlane::find(&self.name)? else {
            bail!(
                "no control plane named {0} runs: start it with `cargo xtask kube up --name {0}`",
                self.name
            );
        };
        let mut command = plane.recorder(&self.context)?;
        command.arg(self.seconds.to_string()).arg(std::path::absolute(&self.output)?);
        if self.keep_helm {
            command.env("KEEP_HELM", "1");
        }
        let status = command.stdin(Stdio::null()).status()?;
        ensure!(status.success(), "the recorder ended with {status}");
        Ok(())
    }
}

#[derive(Args)]
pub(crate) struct Name {
    /// Name of the control plane.
    #[arg(long, default_value = "default")]
    name: String,
}

#[derive(Args)]
pub(crate) struct Up {
    #[command(flatten)]
    name: Name,
    /// Number of clusters, each with its own API server and context (`kube-1`, `kube-2`, …).
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    clusters: u16,
    /// Number of simulated nodes of a cluster.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    nodes: u16,
    /// File to which the kubeconfig is written; it is removed with the control plane.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Leave out the kinds of Flux.
    #[arg(long)]
    no_flux_crds: bool,
}

impl Kube {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Up(up) => up.run(),
            Self::Down(Name { name }) => {
                match down(&name)? {
                    0 => println!("no control plane named {name} runs"),
                    ended => println!("ended {ended} processes of {name}"),
                }
                Ok(())
            }
            Self::Status => status(),
            Self::Record(record) => record.run(),
            Self::RecordScenarios(record) => record.run(),
        }
    }
}

impl Up {
    fn run(self) -> Result<()> {
        let started = Instant::now();
        let (plane, was_running) = ControlPlane::up(&Options {
            name: self.name.name,
            clusters: self.clusters.into(),
            bare: 0,
            nodes: self.nodes.into(),
            flux_crds: !self.no_flux_crds,
            kubeconfig: self.kubeconfig.map(std::path::absolute).transpose()?,
            audited: false,
            durable: false,
            store: None,
            flags: Vec::new(),
        })?;
        let name = plane.name();
        if was_running {
            println!("{name} runs already");
        } else {
            println!("{name} is ready after {:.1} s", started.elapsed().as_secs_f64());
        }
        for member in plane.members() {
            println!("  {}  {}", member.context, member.server);
        }
        println!("export KUBECONFIG={}", plane.kubeconfig().display());
        println!("end it with: cargo xtask kube down --name {name}");
        Ok(())
    }
}

fn status() -> Result<()> {
    let all = list()?;
    if all.is_empty() {
        println!("no control plane was started; start one with: cargo xtask kube up");
    }
    for run in all {
        let verdict = if run.is_running() {
            "running"
        } else {
            "incomplete: start it again, or end it with `cargo xtask kube down`"
        };
        println!("{}: {verdict}  KUBECONFIG={}", run.name, run.kubeconfig.display());
        for member in &run.members {
            println!("  {}  {}", member.context, member.server);
        }
        for process in &run.processes {
            let alive = if run.is_alive(process) { "" } else { "  GONE" };
            println!("  {:>8}  {:24} {}{alive}", process.pid, process.program, process.context);
        }
    }
    Ok(())
}
