//! Measures the status core beside Go's kstatus.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::peers;

use super::measure::{Cost, Run, median};
use super::objects;

/// Measure the status core beside Go's kstatus: CPU time of whole processes, and memory.
#[derive(Args)]
pub(crate) struct Compute {
    /// Number of pairs of runs; the median counts.
    #[arg(long, default_value_t = 7)]
    runs: usize,
}

const OURS: [&str; 9] = ["status", "--rules", "kstatus", "--input", "jsonl", "--jobs", "1", "-o", "jsonl"];

impl Compute {
    pub(crate) fn run(self) -> Result<()> {
        let taffrail = binary::build(Profile::Release)?;
        let peer = peers::build("kstatus")?;
        let folder = binary::workspace().join("target/bench");
        fs::create_dir_all(&folder)?;

        println!(
            "{:22} {:>9} {:>11} {:>11} {:>7}   per object, and rate",
            "input", "size", "Taffrail", "Go", "ratio"
        );
        let small = folder.join("small.jsonl");
        objects::write_small(&small, 200_000)?;
        self.pair("200,000 small objects", &small, 200_000, &taffrail, &peer)?;
        let wordy = folder.join("wordy.jsonl");
        objects::write_wordy(&wordy, 100_000)?;
        self.pair("100,000 wordy objects", &wordy, 100_000, &taffrail, &peer)?;
        let pods = folder.join("pods.jsonl");
        objects::write_pods(&pods, 50_000)?;
        self.pair("50,000 Pods", &pods, 50_000, &taffrail, &peer)?;

        for times in [1, 10] {
            let arguments = [&OURS[..], &["-f", "-"]].concat();
            let run = Run { program: &taffrail, arguments: &arguments, input: Some((&small, times)) };
            let cost = run.measure()?;
            println!("memory at {times:>2} times the small objects: {:.1} MiB", cost.peak as f64 / 1024.0);
        }
        Ok(())
    }

    fn pair(&self, name: &str, input: &Path, objects: usize, taffrail: &Path, peer: &Path) -> Result<()> {
        let file = input.to_str().context("the path of a file of the benchmark is not valid UTF-8")?;
        let arguments = [&OURS[..], &["-f", file]].concat();
        same_answers(taffrail, &arguments, peer, file)?;
        let mut costs: Vec<(Cost, Cost)> = Vec::new();
        for _ in 0..self.runs {
            let ours = Run { program: taffrail, arguments: &arguments, input: None }.measure()?;
            let theirs = Run { program: peer, arguments: &[file], input: None }.measure()?;
            costs.push((ours, theirs));
        }
        let ours = median(costs.iter().map(|(ours, _)| ours.cpu));
        let theirs = median(costs.iter().map(|(_, theirs)| theirs.cpu));
        let ratio = median(costs.iter().map(|(ours, theirs)| theirs.cpu / ours.cpu));
        let size = fs::metadata(input)?.len() as f64;
        let rate = |seconds: f64| {
            format!("{:.2} µs, {:.0} MB/s", seconds * 1e6 / objects as f64, size / 1e6 / seconds)
        };
        println!(
            "{name:22} {:>6.0} MB {ours:>9.3} s {theirs:>9.3} s {ratio:>6.1}x   {} | {}",
            size / 1e6,
            rate(ours),
            rate(theirs)
        );
        Ok(())
    }
}

/// Compares the output of both programs byte for byte, without the rule, which only Taffrail prints; an error if a line
/// differs.
fn same_answers(taffrail: &Path, arguments: &[&str], peer: &Path, file: &str) -> Result<()> {
    let lines = |program: &Path, arguments: &[&str]| -> Result<_> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let stdout = child.stdout.take().context("the standard output of the program is not a pipe")?;
        Ok((child, BufReader::with_capacity(1 << 20, stdout).split(b'\n')))
    };
    let (mut our_child, mut ours) = lines(taffrail, arguments)?;
    let (mut their_child, mut theirs) = lines(peer, &[file])?;
    for number in 1.. {
        match (ours.next().transpose()?, theirs.next().transpose()?) {
            (Some(our), Some(their)) => ensure!(
                without_rule(&our) == their,
                "line {number} of the output differs from that of Go's kstatus\n Taffrail: {}\n kstatus:  {}",
                String::from_utf8_lossy(&our),
                String::from_utf8_lossy(&their)
            ),
            (None, None) => break,
            _ => anyhow::bail!("Taffrail or Go's kstatus printed no line {number}, and the other one did"),
        }
    }
    our_child.wait()?;
    their_child.wait()?;
    Ok(())
}

fn without_rule(line: &[u8]) -> Vec<u8> {
    let rule = b",\"rule\":\"";
    match line.windows(rule.len()).rposition(|window| window == rule) {
        Some(at) => [&line[..at], b"}"].concat(),
        None => line.to_vec(),
    }
}
