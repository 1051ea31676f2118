//! `cargo xtask test`: runs all checks and tests.

use std::num::NonZeroUsize;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use taffrail_testkit::binary::workspace;

use super::{fuzz, page, tidy};

/// Run all checks and tests. Missing programs are built with Go; without Go, tests that need them are skipped. The page
/// is tested where Node and Chromium are, or can be installed.
#[derive(Args)]
pub(crate) struct Test {}

impl Test {
    pub(crate) fn run(self) -> Result<()> {
        let started = Instant::now();
        step("formatting", || cargo(&["fmt", "--all", "--check"], &[]))?;
        step("tidiness", || tidy::Tidy {}.run())?;
        let deny =
            ["clippy", "--quiet", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"];
        step("lints", || cargo(&deny, &[]))?;
        let doc = ["doc", "--quiet", "--locked", "--workspace", "--no-deps", "--document-private-items"];
        step("documentation", || cargo(&doc, &[("RUSTDOCFLAGS", "--deny warnings")]))?;
        step("dependencies", deny_dependencies)?;
        let threads = test_threads();
        step("tests", || {
            cargo(&["test", "--locked", "--workspace", "--no-fail-fast"], &[("RUST_TEST_THREADS", &threads)])
        })?;
        step("page", || page::Page { quick: true, seeds: 1, withhold: false }.run())?;
        step("comparison with Go's kstatus", fuzz::sample)?;
        println!("\nall checks passed after {} s", started.elapsed().as_secs());
        Ok(())
    }
}

/// Returns the number of tests that run at the same time: `RUST_TEST_THREADS`, or by default half as many again as there
/// are processors, because a test that waits for a server needs none.
fn test_threads() -> String {
    let by_default = || {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        (processors + processors.div_ceil(2)).to_string()
    };
    std::env::var("RUST_TEST_THREADS").unwrap_or_else(|_| by_default())
}

/// Checks known defects, licences and sources of dependencies, if `cargo deny` is installed.
fn deny_dependencies() -> Result<()> {
    let mut version = Command::new("cargo-deny");
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !version.status().is_ok_and(|status| status.success()) {
        println!("skipped: cargo-deny is not installed (cargo install cargo-deny --locked)");
        return Ok(());
    }
    cargo(&["deny", "--locked", "check"], &[])
}

fn step(name: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("== {name}");
    let started = Instant::now();
    check().with_context(|| format!("{name} failed"))?;
    println!("== {name}: {} s", started.elapsed().as_secs());
    Ok(())
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(workspace())
        .stdin(Stdio::null())
        .status()
        .context("cannot run `cargo`")?;
    if !status.success() {
        bail!("`cargo {}` ended with {status}", arguments.join(" "));
    }
    Ok(())
}
