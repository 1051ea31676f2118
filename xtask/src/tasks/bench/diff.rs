//! Measures differences of many pairs beside gitops-engine, which compares for Argo CD.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use taffrail_testkit::{binary, peers};

use super::measure::{load, median, verdict};
use super::subject::Subject;

/// Measure differences of pairs in memory, one thread each, beside gitops-engine's `DiffArray`, after the answers were
/// compared.
#[derive(Args)]
pub(crate) struct Diff {
    /// Number of pairs.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    pairs: u64,
    /// Number of runs of each side; the median counts.
    #[arg(long, default_value_t = 3, value_name = "N")]
    runs: usize,
    /// Seed of the pairs [default: a random one, which is printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// The minimum ratio of the peer's CPU time to Taffrail's.
const BAR: f64 = 10.0;

/// The ways of the peer to compare: the mode, the file of pairs and the way in which Taffrail compares the same pairs.
const MODES: [(&str, &str, &str); 3] = [
    // As Argo CD does by default: what was applied on the client's side last, in an annotation.
    ("three-way", "client.jsonl", "merged"),
    // As it does with ServerSideApply.
    ("structured-merge", "server.jsonl", "merged"),
    // As it does with ServerSideDiff, on given answers to dry runs.
    ("server-side", "server.jsonl", "server-side"),
];

/// The costs of one run, in seconds.
struct Seconds {
    cpu: f64,
    wall: f64,
}

impl Diff {
    pub(crate) fn run(self) -> Result<()> {
        ensure!(self.runs > 0 && self.pairs > 0, "there must be at least one run, and one pair");
        let peer = peers::build("gitopsengine")?;
        let ours = binary::build_bench("taffrail-plan", "diff_cost")?;
        let folder = binary::workspace().join("target/bench/diff");
        fs::create_dir_all(&folder)?;
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        println!("{} pairs, seed {seed}, load {}", self.pairs, load());
        let written = Command::new(&ours)
            .arg("write")
            .arg(&folder)
            .args([self.pairs.to_string(), seed.to_string()])
            .status()?;
        ensure!(written.success(), "the pairs could not be written ({written})");

        println!(
            "{:17} {:9} {:>9} {:>11} {:>11} {:>11} {:>11} {:>7}",
            "gitops-engine", "modified", "Taffrail", "CPU µs/pair", "wall", "peer's CPU", "wall", "ratio"
        );
        let mut are_met = true;
        for (mode, file, way) in MODES {
            are_met &= self.compare(&[&ours, &peer], &folder, (mode, file, way))?;
        }
        ensure!(are_met, "a ratio is below {BAR} (see the output)");
        Ok(())
    }

    /// Compares the answers of both sides, and then their costs; returns true if the ratio is met.
    fn compare(&self, programs: &[&Path; 2], folder: &Path, mode: (&str, &str, &str)) -> Result<bool> {
        let (theirs, file, own) = mode;
        let file = folder.join(file);
        let file = file.to_str().context("the path of a file of the benchmark is not valid UTF-8")?;
        let mut ours = Subject::start(programs[0], &[file])?;
        let mut peer = Subject::start_on_one_thread(programs[1], &["diff", file])?;
        let count = same(folder, &mut ours, own, &mut peer, theirs)?;
        let (mut own_runs, mut peer_runs) = (Vec::new(), Vec::new());
        for _ in 0..self.runs {
            own_runs.push(cost(&mut ours, own)?);
            peer_runs.push(cost(&mut peer, theirs)?);
        }
        let per_pair = 1e6 / self.pairs as f64;
        let figure = |runs: &[Seconds], of: fn(&Seconds) -> f64| median(runs.iter().map(of)) * per_pair;
        let (own_cpu, peer_cpu) = (figure(&own_runs, |it| it.cpu), figure(&peer_runs, |it| it.cpu));
        let (own_wall, peer_wall) = (figure(&own_runs, |it| it.wall), figure(&peer_runs, |it| it.wall));
        let ratio = peer_cpu / own_cpu;
        println!(
            "{theirs:17} {count:>8} {own:>11} {own_cpu:>10.1} {own_wall:>11.1} {peer_cpu:>11.1} {peer_wall:>11.1} \
             {ratio:>7.1}  {}",
            verdict(ratio >= BAR)
        );
        Ok(ratio >= BAR)
    }
}

/// Compares for each pair whether both sides say that it differs; returns the number of those that do.
fn same(folder: &Path, ours: &mut Subject, own: &str, peer: &mut Subject, theirs: &str) -> Result<usize> {
    let answers = |subject: &mut Subject, mode: &str, name: &str| -> Result<Vec<bool>> {
        let target = folder.join(name);
        subject.tell(&format!("modified {mode} {}", target.display()))?;
        Ok(serde_json::from_slice(&fs::read(&target)?)?)
    };
    let (one, other) = (answers(ours, own, "ours.json")?, answers(peer, theirs, "peer.json")?);
    ensure!(one.len() == other.len(), "the two programs compared different numbers of pairs");
    let differing: Vec<usize> = one
        .iter()
        .zip(&other)
        .enumerate()
        .filter(|(_, (one, other))| one != other)
        .map(|(at, _)| at)
        .collect();
    ensure!(
        differing.is_empty(),
        "{theirs}: {} pairs with different answers, the first ones in lines (from 0) {:?}",
        differing.len(),
        differing.iter().take(10).collect::<Vec<_>>()
    );
    Ok(one.iter().filter(|is_modified| **is_modified).count())
}

fn cost(subject: &mut Subject, mode: &str) -> Result<Seconds> {
    let (before, began) = (subject.usage()?, Instant::now());
    subject.tell(&format!("diff {mode}"))?;
    let wall = began.elapsed().as_secs_f64();
    Ok(Seconds { cpu: subject.usage()?.cpu - before.cpu, wall })
}
