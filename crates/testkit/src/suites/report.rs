//! Runs the tests of a suite, and compares what they say with what is known.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::{Built, Known, Server, Suite};

/// The time within which a suite must end.
const MAX_TIME: &str = "15m";

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It was not run.
    LeftOut,
    /// It was run, and the suite ended before it did.
    Lost,
}

/// The result of one test, with its reason and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The name of the Go function.
    pub test: String,
    /// Its result.
    pub verdict: Verdict,
    /// The reason why the test is known not to pass; `None` for one that should pass.
    pub reason: Option<&'static str>,
    /// The output of the test, if it did not pass at its first run.
    pub output: String,
    /// True if it failed at its first run, and passed when it was run again alone.
    pub is_second: bool,
}

/// The results of a suite on a server.
#[derive(Debug)]
pub struct Report {
    suite: Suite,
    server: Server,
    outcomes: Vec<Outcome>,
}

impl Built {
    /// Runs these tests, or all, on the server of a kubeconfig.
    ///
    /// # Errors
    /// If the program cannot be run.
    pub fn run(&self, server: Server, kubeconfig: &Path, only: Option<&[String]>) -> Result<Report> {
        let known = self.suite.known(server)?;
        if let Some(gone) = known.iter().find(|known| !self.tests.iter().any(|test| test == known.test)) {
            bail!("the list of {} names {}, which is not one of its tests", self.suite.name(), gone.test);
        }
        let is_run = |test: &&String| {
            only.is_none_or(|only| only.contains(test))
                && !known.iter().any(|known| known.left_out && known.test == test.as_str())
        };
        let run: Vec<&str> = self.tests.iter().filter(is_run).map(String::as_str).collect();
        let output = Command::new(&self.program)
            .args(["-test.v", "-test.timeout", MAX_TIME, "-test.run"])
            .arg(format!("^({})$", run.join("|")))
            .current_dir(&self.folder)
            .env("TAFFRAIL_KUBECONFIG", kubeconfig)
            .env("KUBECONFIG", kubeconfig)
            .env("USE_EXISTING_CLUSTER", "true")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let mut told = String::from_utf8_lossy(&output.stdout).into_owned();
        told.push_str(&String::from_utf8_lossy(&output.stderr));
        let mut results = read(&told);
        let wanted = self.tests.iter().filter(|test| only.is_none_or(|only| only.contains(test)));
        let outcomes = wanted.map(|test| {
            let is_run = run.contains(&test.as_str());
            let (verdict, output) = match results.remove(test.as_str()) {
                Some(found) => found,
                None if is_run => (Verdict::Lost, told.lines().rev().take(40).collect::<Vec<_>>().join("\n")),
                None => (Verdict::LeftOut, String::new()),
            };
            let reason =
                known.iter().find(|known| known.test == test.as_str()).map(|known: &Known| known.reason);
            Outcome { test: test.clone(), verdict, reason, output, is_second: false }
        });
        Ok(Report { suite: self.suite, server, outcomes: outcomes.collect() })
    }
}

/// Reads the verdicts and outputs of the tests from what `go test -v` prints.
fn read(told: &str) -> BTreeMap<&str, (Verdict, String)> {
    let mut results = BTreeMap::new();
    let mut said = String::new();
    for line in told.lines() {
        if let Some(test) = line.strip_prefix("=== RUN   ") {
            if !test.contains('/') {
                said.clear();
            }
            continue;
        }
        let ended = [
            ("--- PASS: ", Verdict::Passed),
            ("--- FAIL: ", Verdict::Failed),
            ("--- SKIP: ", Verdict::LeftOut),
        ]
        .into_iter()
        .find_map(|(start, verdict)| Some((line.strip_prefix(start)?.split(' ').next()?, verdict)));
        match ended {
            Some((test, verdict)) => {
                let output = if verdict == Verdict::Failed { said.clone() } else { String::new() };
                results.insert(test, (verdict, output));
            }
            None => {
                let _ = writeln!(said, "{line}");
            }
        }
    }
    results
}

impl Report {
    /// Lists the tests that failed and are not known to.
    pub fn failed(&self) -> Vec<String> {
        let failed = self.outcomes.iter().filter(|outcome| {
            matches!(outcome.verdict, Verdict::Failed | Verdict::Lost) && outcome.reason.is_none()
        });
        failed.map(|outcome| outcome.test.clone()).collect()
    }

    /// Takes the results of tests that failed at first and passed when they were run again alone: they have time limits of their
    /// own, which a busy machine exceeds.
    pub fn take_second(&mut self, second: &Report) {
        let passed = |test: &str| {
            second.outcomes.iter().any(|outcome| outcome.test == test && outcome.verdict == Verdict::Passed)
        };
        for outcome in self.outcomes.iter_mut().filter(|outcome| passed(&outcome.test)) {
            (outcome.verdict, outcome.is_second) = (Verdict::Passed, true);
        }
    }

    /// Returns the number of tests with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.verdict == verdict).count()
    }

    /// Formats a line of the figures, and a table of the tests that did not pass, with the reasons.
    pub fn table(&self) -> String {
        let all = self.outcomes.len();
        let passed = self.count(Verdict::Passed);
        let mut text = format!("{} on {}: {passed} of {all} passed\n", self.suite.name(), self.server.word());
        let told = |outcome: &&Outcome| outcome.verdict != Verdict::Passed || outcome.is_second;
        for outcome in self.outcomes.iter().filter(told) {
            if outcome.is_second {
                let first = outcome.output.lines().next().unwrap_or_default().trim();
                let _ = writeln!(text, "  {:<12} {:<55} at first: {first}", "passed again", outcome.test);
                continue;
            }
            let verdict = match outcome.verdict {
                Verdict::Passed => "passed",
                Verdict::Failed => "failed",
                Verdict::LeftOut => "left out",
                Verdict::Lost => "did not end",
            };
            let reason = outcome.reason.unwrap_or("unexpected");
            let _ = writeln!(text, "  {verdict:<12} {:<55} {reason}", outcome.test);
        }
        text
    }

    /// Lists the tests that failed and are not known to, and those that passed and are known to fail, with their output;
    /// empty if all is as expected.
    pub fn faults(&self) -> Vec<String> {
        let faults = self.outcomes.iter().filter_map(|outcome| {
            let Outcome { test, verdict, reason, output, .. } = outcome;
            match (verdict, reason) {
                (Verdict::Failed | Verdict::Lost, None) => {
                    Some(format!("{test} failed on {}:\n{output}", self.server.word()))
                }
                (Verdict::Lost, Some(_)) => {
                    Some(format!("{test} did not end on {}:\n{output}", self.server.word()))
                }
                (Verdict::Passed, Some(_)) => {
                    Some(format!("{test} passed on {} and is listed as one that fails", self.server.word()))
                }
                (Verdict::LeftOut, None) => Some(format!("{test} was skipped on {}", self.server.word())),
                _ => None,
            }
        });
        faults.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "=== RUN   TestA\n=== RUN   TestA/part\n    a_test.go:1: no\n--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/part \
                        (0.1s)\n=== RUN   TestB\n--- PASS: TestB (0.1s)\nFAIL\n";

    fn report(verdict: Verdict, reason: Option<&'static str>) -> Report {
        let outcome = Outcome {
            test: "TestA".to_owned(),
            verdict,
            reason,
            output: "said".to_owned(),
            is_second: false,
        };
        Report { suite: Suite::Apply, server: Server::Sim, outcomes: vec![outcome] }
    }

    #[test]
    fn verdicts_are_those_of_whole_tests() {
        let results = read(TOLD);
        assert_eq!(results["TestA"], (Verdict::Failed, "    a_test.go:1: no\n".to_owned()));
        assert_eq!(results["TestB"].0, Verdict::Passed);
        assert_eq!(results.len(), 2);
    }

    #[test]
    fn a_test_that_passes_when_it_is_run_again_is_told() {
        let mut first = report(Verdict::Failed, None);
        assert_eq!(first.failed(), ["TestA"]);
        first.take_second(&report(Verdict::Failed, None));
        assert_eq!(first.faults().len(), 1);
        first.take_second(&report(Verdict::Passed, None));
        assert!(first.faults().is_empty());
        assert!(first.table().contains("passed again TestA"), "{}", first.table());
    }

    #[test]
    fn unexpected_results_are_faults() {
        assert!(report(Verdict::Passed, None).faults().is_empty());
        assert!(report(Verdict::Failed, Some("why")).faults().is_empty());
        assert!(report(Verdict::LeftOut, Some("why")).faults().is_empty());
        for (verdict, reason) in [
            (Verdict::Failed, None),
            (Verdict::Lost, None),
            (Verdict::Lost, Some("why")),
            (Verdict::Passed, Some("why")),
            (Verdict::LeftOut, None),
        ] {
            assert_eq!(report(verdict, reason).faults().len(), 1, "{verdict:?} {reason:?}");
        }
    }
}
