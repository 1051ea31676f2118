//! Measures the time to answer about a big dump, beside the pipe that people use without Taffrail.
//!
//! # How the figures are taken
//!
//! - Whole processes, one after the other; the median of several runs counts. `taffrail` is the release binary.
//! - The peer is `kubectl` reading the same file and printing it again as JSON, without asking a server, piped into a
//!   `jq` program that does the least one would want: it names the Deployments that lack an available replica. It is
//!   compared with the ones that Taffrail names before time counts. `jq` alone is measured too: it is what is left when
//!   the dump is already there.
//! - *After loading* is what `-v` says: the time from the last byte of the dump read to the last byte of the answer
//!   written.

mod fleet;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::kube::Programs;

use super::measure::median;

/// Measure the time to read a big dump, beside `kubectl -o json | jq`.
#[derive(Args)]
pub(crate) struct Dump {
    /// Number of runs for each figure.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
}

const OBJECTS: usize = 20_000;
const APPS: usize = 300;
/// The numbers of objects that the big app declares, one for each of two measurements: with 2,250 it has 5,000 objects,
/// dependents included; with the other it declares 5,000.
const BIG: [usize; 2] = [2_250, 5_000];
/// The `jq` program of the peer: it prints the Deployments with less available replicas than wanted.
const PROGRAM: &str = r#"if .kind == "List" then .items[] else . end | select(.kind == "Deployment" and (.status.availableReplicas // 0) < .spec.replicas) | "\(.metadata.namespace)/\(.metadata.name)""#;

impl Dump {
    pub(crate) fn run(self) -> Result<()> {
        let taffrail = binary::build(Profile::Release)?;
        let kubectl = Programs::ensure()?.path("kubectl");
        ensure!(
            Command::new("jq")
                .arg("--version")
                .stdout(Stdio::null())
                .status()
                .is_ok_and(|status| status.success()),
            "jq is missing; install it with the system's package manager"
        );
        let folder = binary::workspace().join("target/bench");
        fs::create_dir_all(&folder)?;
        let dump = folder.join("cluster.json");
        fleet::write(&dump, APPS, OBJECTS)?;
        let file = dump.to_str().context("the path of a file of the benchmark is not valid UTF-8")?;
        println!(
            "a dump of {OBJECTS} objects and {APPS} apps, {:.0} MB",
            fs::metadata(&dump)?.len() as f64 / 1e6
        );

        let peer = format!(
            "{} label --local --overwrite -f {file} bench=1 -o json | jq -r '{PROGRAM}'",
            kubectl.display()
        );
        let alone = format!("jq -r '{PROGRAM}' {file}");
        same_answers(&taffrail, file, &peer)?;

        let ours = self.wall(|| command(&taffrail, &["get", "apps", "--from", file]))?;
        let theirs = self.wall(|| shell(&peer))?;
        let jq = self.wall(|| shell(&alone))?;
        println!("{:34} {ours:>7.0} ms  (bar 1000)", "taffrail get apps --from");
        println!("{:34} {theirs:>7.0} ms  {:>5.1}x  (bar 10x)", "kubectl -o json | jq", theirs / ours);
        println!("{:34} {jq:>7.0} ms  {:>5.1}x", "jq alone", jq / ours);

        for declared in BIG {
            let dump = folder.join("big.json");
            let objects = fleet::write_one(&dump, declared)?;
            let file = dump.to_str().context("the path of a file of the benchmark is not valid UTF-8")?;
            println!(
                "an app that declares {declared} objects; with their dependents these are {objects} objects"
            );
            for arguments in
                [&["tree", "big"][..], &["tree", "big", "--all"], &["explain", "big"], &["app", "big"]]
            {
                let words = arguments.join(" ");
                let arguments = [arguments, &["--from", file, "-v"]].concat();
                let figures: Vec<f64> =
                    (0..self.runs).map(|_| after_loading(&taffrail, &arguments)).collect::<Result<_>>()?;
                let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
                let median = median(figures);
                println!("{words:34} {median:>7.0} ms after loading, {least:.0} at least  (bar 100)");
            }
        }
        Ok(())
    }

    /// Returns the median wall time of the runs of a command, in milliseconds.
    fn wall(&self, command: impl Fn() -> Command) -> Result<f64> {
        let mut figures = Vec::new();
        for _ in 0..self.runs {
            let started = Instant::now();
            let status = command().stdout(Stdio::null()).stderr(Stdio::null()).status()?;
            figures.push(started.elapsed().as_secs_f64() * 1e3);
            ensure!(status.success(), "the measured command ended with {status}");
        }
        Ok(median(figures))
    }
}

fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
}

fn shell(line: &str) -> Command {
    command(Path::new("sh"), &["-c", line])
}

/// Checks that Taffrail and the peer name the same Deployments as not ready.
fn same_answers(taffrail: &Path, file: &str, peer: &str) -> Result<()> {
    let output = shell(peer).output()?;
    let first = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
    ensure!(output.status.success(), "`{peer}` failed ({}): {first}", output.status);
    let theirs: BTreeSet<String> = String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect();
    let arguments =
        ["get", "resources", "--kind", "deploy", "--status", "!Ready", "--from", file, "-o", "json"];
    let output = command(taffrail, &arguments).output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)
        .context("the output of `taffrail get resources` is not JSON")?;
    let text = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_owned();
    let items =
        answer["items"].as_array().context("the output of `taffrail get resources` has no list of items")?;
    let ours: BTreeSet<String> =
        items.iter().map(|item| format!("{}/{}", text(item, "namespace"), text(item, "name"))).collect();
    ensure!(
        !ours.is_empty() && ours == theirs,
        "Taffrail and jq differ: Taffrail names {} Deployments as not ready, and jq names {}",
        ours.len(),
        theirs.len()
    );
    Ok(())
}

/// Returns the time from the end of reading the dump to the end of the output, in milliseconds, as `-v` prints it.
fn after_loading(taffrail: &Path, arguments: &[&str]) -> Result<f64> {
    let output = command(taffrail, arguments).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = stderr
        .lines()
        .find_map(|line| line.strip_prefix("answered in "))
        .context("`taffrail -v` did not print the time of its answer")?;
    line.split_whitespace()
        .next()
        .unwrap_or_default()
        .parse()
        .with_context(|| format!("the line {line:?} of `taffrail -v` does not begin with a time"))
}
