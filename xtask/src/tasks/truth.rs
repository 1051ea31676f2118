//! `cargo xtask truth`: compares the output of `taffrail get apps` with Kubernetes' own state at every moment.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::kube::{self, ControlPlane};
use taffrail_testkit::truth;

/// Run `taffrail get apps` on changing apps once a second, and compare each answer with Kubernetes' own state at that
/// time.
#[derive(Args)]
pub(crate) struct Truth {
    /// Duration of the run, in seconds.
    #[arg(long, default_value_t = 180, value_parser = clap::value_parser!(u64).range(5..))]
    seconds: u64,
    /// Use the unoptimised binary, which exists after a test run.
    #[arg(long)]
    dev: bool,
    /// Run this binary, such as an older one, in place of the one that is built from this checkout.
    #[arg(long, value_name = "FILE", conflicts_with = "dev")]
    binary: Option<PathBuf>,
}

impl Truth {
    pub(crate) fn run(self) -> Result<()> {
        let taffrail = match &self.binary {
            Some(binary) => std::path::absolute(binary)?,
            None => binary::build(if self.dev { Profile::Dev } else { Profile::Release })?,
        };
        let folder = binary::workspace().join("target/truth");
        fs::create_dir_all(&folder)?;
        let log = folder.join("looks.jsonl");
        let name = format!("truth-{}", std::process::id());
        let plane = ControlPlane::start(&kube::Options { name, ..kube::Options::default() })?;
        let context = *plane.contexts().first().context("the control plane has no cluster")?;
        println!("running `taffrail get apps` once a second for {} s", self.seconds);
        let options = truth::Options { plane: &plane, context, seconds: self.seconds, log: &log };
        let mut eye = truth::Binary { path: &taffrail, kubeconfig: plane.kubeconfig() };
        let report = truth::look(&options, &mut eye)?;
        print!("{report}");
        println!("every answer of `taffrail get apps` is in {}", log.display());
        ensure!(report.wrong.is_empty(), "{} answers about an app were wrong", report.wrong.len());
        Ok(())
    }
}
