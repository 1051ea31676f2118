//! `cargo xtask conformance`: Taffrail beside the programs and the test suites of others, in full. `cargo xtask test` has
//! all of it that takes seconds, and a drawn sample of the rest.

mod apply;
mod flux;
mod go_suite;
mod merge;
mod yaml;

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::Subcommand;
use taffrail_testkit::binary::workspace;

/// Compare Taffrail with the programs and the test suites of others.
#[derive(Subcommand)]
pub(crate) enum Conformance {
    Apply(apply::Apply),
    Flux(flux::Flux),
    Merge(merge::Merge),
    Yaml(yaml::Yaml),
}

impl Conformance {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Conformance::Apply(task) => task.run(),
            Conformance::Flux(task) => task.run(),
            Conformance::Merge(task) => task.run(),
            Conformance::Yaml(task) => task.run(),
        }
    }
}

/// Runs the tests of a package's target that have one of these texts in their names, prints what they print, and fails if
/// one of them does or cannot run.
fn test(package: &str, target: &[&str], names: &[&str], environment: &[(&str, String)]) -> Result<()> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--quiet", "--package", package])
        .args(target)
        .args(["--", "--nocapture", "--test-threads=1"])
        .args(names)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        // A test that is skipped compares nothing.
        .env("CI", "true")
        .current_dir(workspace())
        .stdin(Stdio::null())
        .status()
        .context("cannot run `cargo test`")?;
    ensure!(status.success(), "the tests of {package} ended with {status}");
    Ok(())
}
