//! Writes status updates, and measures their delay behind a bare watch client.

use std::fmt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::Bench;
use super::subject::Subject;

/// The results of following status updates.
pub(super) struct Events {
    written: usize,
    seen: usize,
    /// The number of watches that the server closed because it could not serve them in time.
    closed: f64,
    /// The delay behind the bare watch, in milliseconds: median, 99th percentile, maximum.
    pub(super) later: [f64; 3],
    /// The CPU time for each event, in microseconds.
    pub(super) cpu: f64,
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [middle, late, longest] = self.later;
        write!(
            f,
            "{} of {} events seen, {middle:.2} ms after a bare watch (p99 {late:.2}, longest {longest:.1}), {:.0} µs CPU an event; the server closed {} watches as too slow",
            self.seen, self.written, self.cpu, self.closed
        )
    }
}

pub(super) fn write(
    bench: &Bench<'_>,
    kind: &str,
    rate: usize,
    seconds: usize,
    subject: &mut Subject,
) -> Result<Events> {
    let Bench { kubeconfig, folder, .. } = bench;
    let program = &bench.built.cluster;
    let closed = bench.closed_watches()?;
    let mut bare = Subject::start(program, &["-kubeconfig", kubeconfig, "-kind", kind, "watch"])?;
    bare.tell("events")?;
    subject.tell("events")?;
    let before = subject.usage()?;
    let status = Command::new(program)
        .args(["-kubeconfig", kubeconfig, "-kind", kind, "-rate", &rate.to_string()])
        .args(["-seconds", &seconds.to_string(), "write"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "the updates could not be written ({status})");
    let written = rate * seconds;
    // Who is behind has five seconds to catch up.
    for _ in 0..50 {
        let seen = |subject: &mut Subject| subject.tell("seen").map(|answer| answer["seen"].as_u64());
        if seen(subject)? >= Some(written as u64) && seen(&mut bare)? >= Some(written as u64) {
            break;
        }
        sleep(Duration::from_millis(100));
    }
    let cpu = subject.usage()?.cpu - before.cpu;
    let (first, ours) = (bare.report(folder)?, subject.report(folder)?);
    let mut later: Vec<f64> =
        first.iter().filter_map(|(name, at)| Some((ours.get(name)? - at) as f64 / 1e6)).collect();
    ensure!(
        later.len() == written,
        "only {} of the {written} updates were seen by both the bare watch and the measured program",
        later.len()
    );
    later.sort_by(f64::total_cmp);
    let at = |part: usize| later.get(later.len().saturating_sub(1) * part / 100).copied().unwrap_or(f64::NAN);
    Ok(Events {
        written,
        seen: ours.len(),
        closed: bench.closed_watches()? - closed,
        later: [at(50), at(99), at(100)],
        cpu: cpu * 1e6 / written.max(1) as f64,
    })
}
