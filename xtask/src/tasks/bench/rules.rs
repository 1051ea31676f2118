//! Measures verdicts by Argo CD's scripts and by the library of rules, beside Argo CD's own way of running the scripts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;
use taffrail_testkit::{binary, go_modules, peers};

use super::measure::median;

/// Measure verdicts by Argo CD's scripts and by the library of rules, beside Argo CD: rate, memory, and agreement of
/// cases.
#[derive(Args)]
pub(crate) struct Rules {
    /// A folder in the layout of Argo CD's resource_customizations [default: that of the pinned version, which Go downloads]
    #[arg(long, value_name = "DIR")]
    customizations: Option<PathBuf>,
    /// Number of times that each object is judged in a run.
    #[arg(long, default_value_t = 100, value_name = "N")]
    rounds: u32,
    /// Number of runs of each side; the median counts.
    #[arg(long, default_value_t = 3, value_name = "N")]
    runs: usize,
    /// Name each case in which the library differs from the expectation of Argo CD's case.
    #[arg(long)]
    differences: bool,
}

/// The Go module with the cases, and with the code by which the peer runs scripts.
const ARGO_CD: &str = "github.com/argoproj/argo-cd/v3";

/// The version of [`ARGO_CD`].
const VERSION: &str = "v3.6.1";

/// The minimum ratios of Taffrail's rate to the peer's, for scripts and for the library.
const BARS: [f64; 2] = [5.0, 50.0];

/// The minimum percentage of cases in which the library must agree with the scripts.
const AGREEING: f64 = 85.0;

/// The number of differing cases that are printed by default.
const TOLD: usize = 5;

/// The output of one side: its verdicts, and their cost.
#[derive(Debug, Deserialize)]
struct Answer {
    verdicts: Vec<Verdict>,
    count: u64,
    /// CPU time in seconds.
    cpu: f64,
    /// Peak memory in KiB.
    peak: f64,
}

#[derive(Debug, Deserialize)]
struct Verdict {
    input: String,
    status: String,
    message: String,
    #[serde(default)]
    suspended: bool,
    error: Option<String>,
}

/// A test case of Argo CD, as the peer writes it.
#[derive(Debug, Deserialize)]
struct Case {
    input: String,
    expected: Expected,
}

#[derive(Debug, Deserialize)]
struct Expected {
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
}

impl Rules {
    pub(crate) fn run(self) -> Result<()> {
        ensure!(self.rounds > 0 && self.runs > 0, "there must be at least one round, and one run");
        let scripts = match &self.customizations {
            Some(folder) => std::path::absolute(folder)?,
            None => go_modules::folder(ARGO_CD, VERSION)?.join("resource_customizations"),
        };
        let scripts = scripts.to_str().context("the path of a file of the benchmark is not valid UTF-8")?;
        let peer = peers::build("rules")?;
        let ours = binary::build_bench("taffrail-rules", "verdicts")?;
        let folder = binary::workspace().join("target/bench");
        fs::create_dir_all(&folder)?;
        let inputs = folder.join("rules.jsonl");
        let file = inputs.to_str().context("the path of a file of the benchmark is not valid UTF-8")?;

        let theirs = answer(&peer, &["-inputs", file, scripts])?;
        let cases = read(&inputs)?;
        let by_lua = answer(&ours, &[file, "1", scripts])?;
        let by_library = answer(&ours, &[file, "1"])?;
        same(&theirs, &by_lua)?;
        let agree = self.agreement(&cases, &by_lua, &by_library)?;

        let rounds = self.rounds.to_string();
        let mut runs: [Vec<Answer>; 3] = Default::default();
        for _ in 0..self.runs {
            let [argo, lua, library] = &mut runs;
            argo.push(answer(&peer, &["-rounds", &rounds, scripts])?);
            lua.push(answer(&ours, &[file, &rounds, scripts])?);
            library.push(answer(&ours, &[file, &rounds])?);
        }
        let fast = table(&runs, cases.len(), &rounds);
        ensure!(agree && fast, "the agreement of the cases or a rate misses its bar (see the output)");
        Ok(())
    }

    /// Counts and prints the cases with the expected result: by the scripts word for word, by the library by status.
    /// Returns true if both reach their minimum.
    fn agreement(&self, cases: &[Case], by_lua: &Answer, by_library: &Answer) -> Result<bool> {
        ensure!(
            [by_lua, by_library].iter().all(|answer| answer.verdicts.len() == cases.len()),
            "the two programs judged different numbers of objects"
        );
        let kinds: BTreeSet<&str> =
            cases.iter().filter_map(|case| Some(case.input.rsplit_once("/testdata")?.0)).collect();
        println!("{} cases of {} kinds", cases.len(), kinds.len());
        let differs = |case: &Case, verdict: &Verdict| {
            verdict.status != case.expected.status
                || verdict.message != case.expected.message
                || verdict.error.is_some()
        };
        let by_scripts: Vec<String> = (cases.iter().zip(&by_lua.verdicts))
            .filter(|(case, verdict)| differs(case, verdict))
            .map(|(case, verdict)| described(case, verdict))
            .collect();
        let by_rules: Vec<String> = (cases.iter().zip(&by_library.verdicts))
            .filter(|(case, verdict)| {
                verdict.error.is_some() || ours(&case.expected.status) != Some(word(verdict))
            })
            .map(|(case, verdict)| described(case, verdict))
            .collect();
        let share = |differing: usize| 100.0 * (1.0 - differing as f64 / cases.len().max(1) as f64);
        let mut all = true;
        for (who, differing, bar, told) in [
            ("by their scripts, word for word", &by_scripts, 100.0, TOLD),
            (
                "by the library, in our words",
                &by_rules,
                AGREEING,
                if self.differences { usize::MAX } else { 0 },
            ),
        ] {
            let share = share(differing.len());
            all &= share >= bar;
            let agreeing = cases.len() - differing.len();
            println!("  {who:32} {agreeing:>6} agree {share:>6.1} %   bar {bar:.0} %");
            differing.iter().take(told).for_each(|line| println!("    {line}"));
        }
        Ok(all)
    }
}

/// Runs one side on one thread and parses its output.
fn answer(program: &Path, arguments: &[&str]) -> Result<Answer> {
    let output = Command::new(program)
        .args(arguments)
        .env("GOMAXPROCS", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(output.status.success(), "{} failed ({})", program.display(), output.status);
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the output of {} is not JSON of the expected form", program.display()))
}

fn read(inputs: &Path) -> Result<Vec<Case>> {
    let text = fs::read_to_string(inputs).with_context(|| format!("cannot read {}", inputs.display()))?;
    text.lines()
        .map(|line| serde_json::from_str(line).context("a line that the peer wrote is not a test case"))
        .collect()
}

/// Checks that Argo CD and Taffrail return the same results for the same scripts; an error if one differs.
fn same(theirs: &Answer, ours: &Answer) -> Result<()> {
    ensure!(
        theirs.verdicts.len() == ours.verdicts.len(),
        "the two programs judged different numbers of objects"
    );
    for (their, our) in theirs.verdicts.iter().zip(&ours.verdicts) {
        let is_same = their.input == our.input
            && their.status == our.status
            && their.message == our.message
            && their.error.is_some() == our.error.is_some();
        ensure!(is_same, "the verdicts on {} differ\n Taffrail: {our:?}\n Argo CD:  {their:?}", our.input);
    }
    Ok(())
}

/// Translates a health of Argo CD to a status, and true for a suspended object; `None` for an unknown word.
fn ours(word: &str) -> Option<(&str, bool)> {
    Some(match word {
        "Healthy" => ("Current", false),
        "Progressing" => ("InProgress", false),
        "Degraded" => ("Failed", false),
        "Suspended" => ("Current", true),
        "Missing" => ("NotFound", false),
        "Unknown" => ("Unknown", false),
        _ => return None,
    })
}

/// Returns the part of a verdict that is compared: the status, and true for a suspended object, which in Argo CD is a
/// status of its own.
fn word(verdict: &Verdict) -> (&str, bool) {
    match verdict.suspended {
        true => ("Current", true),
        false => (&verdict.status, false),
    }
}

fn described(case: &Case, verdict: &Verdict) -> String {
    let Verdict { input, status, message, suspended, error } = verdict;
    let Expected { status: expected, message: why } = &case.expected;
    let suspended = if *suspended { ", suspended" } else { "" };
    let error = error.as_deref().map_or(String::new(), |error| format!(" ({error})"));
    format!("{input}: {expected} '{why}', here {status}{suspended} '{message}'{error}")
}

/// Prints the cost of each side. Returns true if Taffrail reaches the minimum ratios.
fn table(runs: &[Vec<Answer>; 3], objects: usize, rounds: &str) -> bool {
    println!("{objects} objects judged {rounds} times on one thread; the median of {} runs", runs[0].len());
    println!("{:36} {:>12} {:>9} {:>10} {:>8}", "", "verdicts/s", "each", "peak", "ratio");
    let rate = |answer: &Answer| answer.count as f64 / answer.cpu;
    let mut all = true;
    let names = ["Argo CD's way, gopher-lua", "Taffrail, the same scripts", "Taffrail, its own rules"];
    for (at, (name, side)) in names.iter().zip(runs).enumerate() {
        let ratio = median(side.iter().zip(&runs[0]).map(|(ours, theirs)| rate(ours) / rate(theirs)));
        let bar = at.checked_sub(1).and_then(|at| BARS.get(at));
        all &= bar.is_none_or(|bar| ratio >= *bar);
        let beside = bar.map_or(String::new(), |bar| format!("{ratio:>7.1}x   bar {bar:.0}x"));
        println!(
            "{name:36} {:>12.0} {:>6.2} µs {:>6.1} MiB {beside}",
            median(side.iter().map(rate)),
            median(side.iter().map(|answer| 1e6 / rate(answer))),
            median(side.iter().map(|answer| answer.peak / 1024.0)),
        );
    }
    all
}
