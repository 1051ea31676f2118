//! Measures the cost of a process, as the kernel accounts for it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The cost of one run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Cost {
    /// User and system time, in seconds.
    pub(super) cpu: f64,
    /// Wall-clock time, in seconds.
    pub(super) wall: f64,
    /// Peak resident memory, in KiB.
    pub(super) peak: i64,
}

/// A command to measure; its output is dropped.
pub(super) struct Run<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: &'a [&'a str],
    /// The file for its standard input, and the number of times that it is repeated; `None` for no input.
    pub(super) input: Option<(&'a Path, usize)>,
}

impl Run<'_> {
    /// Runs the command once, as the child of a new process: the kernel accounts for all children of a process
    /// together.
    pub(super) fn measure(&self) -> Result<Cost> {
        let mut command = Command::new(
            std::env::current_exe()
                .context("cannot find the path of this program, which measures commands")?,
        );
        command.arg("measure");
        if let Some((file, times)) = self.input {
            command.arg("--stdin").arg(file).args(["--times", &times.to_string()]);
        }
        let output = command.arg("--").arg(self.program).args(self.arguments).output()?;
        ensure!(
            output.status.success(),
            "`xtask measure` failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout)
            .context("`xtask measure` did not print its measurement as JSON")
    }
}

/// Run a command and print its cost (used by the benchmarks).
#[derive(Args)]
pub(crate) struct Measure {
    /// File to write to its standard input.
    #[arg(long)]
    stdin: Option<PathBuf>,
    /// Number of times that the file is written.
    #[arg(long, default_value_t = 1)]
    times: usize,
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

impl Measure {
    pub(crate) fn run(self) -> Result<()> {
        let started = Instant::now();
        let (program, arguments) = self.command.split_first().context("no command to measure was given")?;
        let stdin = if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child = Command::new(program)
            .args(arguments)
            .env("GOMAXPROCS", "1")
            .stdin(stdin)
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {program}"))?;
        if let (Some(file), Some(mut pipe)) = (self.stdin, child.stdin.take()) {
            for _ in 0..self.times {
                io::copy(&mut File::open(&file)?, &mut pipe)?;
            }
            pipe.flush()?;
        }
        let status = child.wait()?;
        ensure!(status.success(), "{program} ended with {status}");
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let cost = Cost {
            cpu: cpu_of_children()?.as_secs_f64(),
            wall: started.elapsed().as_secs_f64(),
            peak: usage.max_rss(),
        };
        println!("{}", serde_json::to_string(&cost)?);
        Ok(())
    }
}

/// Returns user and system time of all children that have ended and were waited for.
pub(super) fn cpu_of_children() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn seconds(time: TimeVal) -> Duration {
    let micros = u64::try_from(time.tv_usec()).unwrap_or_default();
    Duration::from_secs(u64::try_from(time.tv_sec()).unwrap_or_default()) + Duration::from_micros(micros)
}

/// Returns the median of the figures; 0 if there are none.
pub(super) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    let at = |index: usize| figures.get(index).copied().unwrap_or_default();
    (at(figures.len() / 2) + at(figures.len().saturating_sub(1) / 2)) / 2.0
}

/// Returns the load average of the machine over the last minute, or `unknown`.
pub(super) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

/// Returns the word for a figure that is within its bar, or not.
pub(super) fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

/// Returns a number of an answer; NaN, which is within no bar, if it has none.
pub(super) fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Prints a figure and its maximum as met or missed.
pub(super) fn bar(what: &str, figure: f64, most: f64) {
    println!("{what:70} {figure:>10.2} {most:>9.0}  {}", verdict(figure <= most));
}
