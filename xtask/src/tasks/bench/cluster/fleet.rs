//! Measures one process that follows many simulated clusters.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use taffrail_testkit::binary;

use super::subject::{Subject, sockets};
use super::verdict;

/// The number of objects of each cluster.
const OBJECTS: usize = 2000;

/// The time without changes, in seconds, over which the CPU time at rest is measured.
const REST: u64 = 60;

pub(super) fn run(ours: &Path, folder: &Path, clusters: usize) -> Result<()> {
    let program = binary::build_bench("taffrail-sim", "scale")?;
    let kubeconfig = folder.join("fleet.kubeconfig");
    let mut fleet = Command::new(&program)
        .args([clusters, OBJECTS, 0].map(|number| number.to_string()))
        .arg(&kubeconfig)
        // It serves until nobody holds its standard input.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut line = String::new();
    let answers = fleet.stdout.take().context("the standard output of the simulated fleet is not a pipe")?;
    BufReader::new(answers).read_line(&mut line)?;
    ensure!(!line.is_empty(), "the fleet did not start");
    let kubeconfig = kubeconfig.to_str().context("the path of a file of the benchmark is not valid UTF-8")?;
    let subject = Subject::start(ours, &[kubeconfig, "--keep", "none"])?;
    let before = subject.usage()?;
    sleep(Duration::from_secs(REST));
    let after = subject.usage()?;
    let part = (after.cpu - before.cpu) / REST as f64;
    let objects = subject.synced["objects"].as_f64().unwrap_or_default();
    println!(
        "{clusters} clusters of {OBJECTS} objects: {objects} objects in {:.1} s wall and {:.2} s CPU; {:.1} MiB resident after {REST} s (peak {:.1}), \
         {} sockets; at rest {:.2} % of a core (bar: 5 %, {})",
        subject.wall,
        before.cpu,
        after.resident,
        after.peak,
        sockets(subject.pid()),
        part * 100.0,
        verdict(part < 0.05)
    );
    drop(subject);
    drop(fleet.stdin.take());
    fleet.wait()?;
    Ok(())
}
