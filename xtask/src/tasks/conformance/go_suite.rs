//! Runs a Go suite on a real API server, and on the simulated one.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use taffrail_testkit::binary;
use taffrail_testkit::kube::ControlPlane;
use taffrail_testkit::running::Running;
use taffrail_testkit::suites::{Built, Report, Server, Suite};

#[derive(Args)]
pub(super) struct GoSuite {
    /// The server that is tested; by default the real one, which proves the harness, and then the simulation.
    #[arg(long, value_enum)]
    on: Option<On>,
    /// Names of tests to run; all by default.
    tests: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum On {
    Real,
    Sim,
}

impl GoSuite {
    pub(super) fn run(self, suite: Suite) -> Result<()> {
        let built = suite.build()?;
        if let Some(unknown) = self.tests.iter().find(|test| !built.tests().contains(test)) {
            anyhow::bail!("{unknown} is not a test of {}", suite.name());
        }
        let only = Some(&*self.tests).filter(|tests| !tests.is_empty());
        let servers: &[Server] = match self.on {
            None => &[Server::Real, Server::Sim],
            Some(On::Real) => &[Server::Real],
            Some(On::Sim) => &[Server::Sim],
        };
        let mut faults = Vec::new();
        for server in servers {
            let report = match server {
                Server::Real => on_real(suite, &built, only)?,
                Server::Sim => on_sim(&built, only)?,
            };
            print!("{}", report.table());
            faults.extend(report.faults());
        }
        ensure!(faults.is_empty(), "{}", faults.join("\n\n"));
        Ok(())
    }
}

fn on_real(suite: Suite, built: &Built, only: Option<&[String]>) -> Result<Report> {
    let name = format!("conformance-{}-{}", suite.name(), std::process::id());
    let plane = ControlPlane::start(&Suite::control_plane(name))?;
    let mut report = built.run(Server::Real, plane.kubeconfig(), only)?;
    let failed = report.failed();
    if !failed.is_empty() {
        report.take_second(&built.run(Server::Real, plane.kubeconfig(), Some(&failed))?);
    }
    Ok(report)
}

fn on_sim(built: &Built, only: Option<&[String]>) -> Result<Report> {
    let program = binary::build_example("taffrail-sim", "serve")?;
    let folder = tempfile::tempdir().context("cannot create a folder")?;
    let kubeconfig = folder.path().join("kubeconfig");
    let _served = serve(&program, &kubeconfig)?;
    built.run(Server::Sim, &kubeconfig, only)
}

fn serve(program: &Path, kubeconfig: &Path) -> Result<Running> {
    let mut command = Command::new(program);
    command.arg("--bare").arg(kubeconfig);
    let (running, ()) =
        Running::start(&mut command, |line| line.starts_with("export KUBECONFIG=").then_some(()))?;
    Ok(running)
}
