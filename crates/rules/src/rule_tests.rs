//! Runs the test cases of rules, and checks the rules for gaps.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::layer::Layer;
use crate::origin::Origin;
use crate::set::RuleSet;
use crate::yaml_rules::{self, Case, RuleFileError};

/// The files of rules and of cases for one group, each as a pair of its name and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The name of the folder: the group, with `_` for `*`. Empty if the name does not matter.
    pub name: String,
    /// The files of rules.
    pub rules: Vec<(String, String)>,
    /// The files of cases.
    pub cases: Vec<(String, String)>,
}

/// The result of testing rules with their cases.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RuleTestReport {
    /// The number of cases that pass.
    pub passed: usize,
    /// The cases that fail.
    pub failed: Vec<FailedCase>,
    /// The errors in files of rules and cases, and of scripts that cannot be parsed.
    pub errors: Vec<RuleFileError>,
    /// Other faults of the rules.
    pub faults: Vec<Fault>,
}

/// A case that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCase {
    /// The file of the case.
    pub file: String,
    /// The kind of the object.
    pub kind: String,
    /// The name of the case.
    pub name: String,
    /// The verdict and the expected one, or why the case could not be judged; for people.
    pub why: String,
}

/// A fault of rules whose files can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A branch that no case reaches, or a script without a file of cases.
    #[error("{rule}: no test case reaches this rule")]
    WithoutCase {
        /// The branch as `group/Kind#number`, its number counted from 1; or the path of a script.
        rule: String,
    },
    /// A folder that does not have the name of its group.
    #[error("{file}: the rules are for the group {group}, so the folder should be {}", group.replacen('*', "_", 1))]
    Folder {
        /// The file.
        file: String,
        /// The group of the rules.
        group: String,
    },
    /// Two cases of a kind with the same name in one file.
    #[error("{file}: two cases of {kind} are called '{name}'")]
    SameName {
        /// The file.
        file: String,
        /// The kind.
        kind: String,
        /// The name.
        name: String,
    },
}

/// Tests rules with their cases, and checks them for gaps. Each case is judged by the rules of all the folders, and
/// where they do not decide by those of [`taffrail_status`]. The report also has the branches that no case reaches,
/// folders without the name of their group, and cases with the same name. If a file of rules has errors, no case runs
/// and the report has these errors.
pub fn test_rules(folders: &[Folder]) -> RuleTestReport {
    let mut report = RuleTestReport::default();
    for folder in folders {
        for (file, text) in &folder.rules {
            let (rules, _) = yaml_rules::read(file, text);
            let group = &*rules.group;
            if !folder.name.is_empty() && !group.is_empty() && folder.name != group.replacen('*', "_", 1) {
                report.faults.push(Fault::Folder { file: file.clone(), group: group.to_owned() });
            }
        }
    }
    let files = folders.iter().flat_map(|folder| &folder.rules);
    let rules = match Layer::read(Origin::User, files.map(|(file, text)| (file.as_str(), text.as_str()))) {
        Ok(layer) => RuleSet::bare().with(layer),
        Err(errors) => {
            report.errors = errors.0;
            return report;
        }
    };
    let mut reached = FxHashSet::default();
    for (file, text) in folders.iter().flat_map(|folder| &folder.cases) {
        let (cases, errors) = yaml_rules::read_cases(file, text);
        report.errors.extend(errors);
        let mut names = BTreeSet::new();
        for case in &cases {
            if !names.insert((&case.kind, &case.name)) {
                let (kind, name) = (case.kind.clone(), case.name.clone());
                report.faults.push(Fault::SameName { file: file.clone(), kind, name });
            }
            report.one(file, case, &rules, &mut reached);
        }
    }
    report.faults.extend(unreached(&rules, &reached));
    report
}

impl RuleTestReport {
    /// Returns this report with the results of `other` added.
    #[must_use]
    pub fn and(mut self, other: RuleTestReport) -> RuleTestReport {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.errors.extend(other.errors);
        self.faults.extend(other.faults);
        self
    }

    /// Iterates over the file names in failed cases and in errors, but not over those in faults, so that the caller can
    /// change them.
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let of_failed = self.failed.iter_mut().map(|failed| &mut failed.file);
        of_failed.chain(self.errors.iter_mut().map(|error| &mut error.file))
    }

    fn one(&mut self, file: &str, case: &Case, rules: &RuleSet, reached: &mut FxHashSet<String>) {
        let why = match case.judge(rules) {
            Ok(verdict) => {
                let why = case.differs(&verdict);
                reached.insert(verdict.rule.into_owned());
                why
            }
            Err(error) => Some(error),
        };
        match why {
            None => self.passed += 1,
            Some(why) => self.failed.push(FailedCase {
                file: file.to_owned(),
                kind: case.kind.clone(),
                name: case.name.clone(),
                why,
            }),
        }
    }
}

/// Returns a fault for each branch that no case reached: no name of it, such as `user/example.com/Widget#1`, is in
/// `reached`. Kinds that share their rules count once.
fn unreached(rules: &RuleSet, reached: &FxHashSet<String>) -> Vec<Fault> {
    let mut shared: FxHashMap<_, Vec<_>> = FxHashMap::default();
    let all = rules.all();
    for found in &all {
        shared.entry(Arc::as_ptr(found.rules)).or_default().push(found.name());
    }
    let mut faults = Vec::new();
    for found in &all {
        let Some(names) = shared.remove(&Arc::as_ptr(found.rules)) else { continue };
        let numbers = 1..=found.rules.branches().len();
        let missing =
            numbers.filter(|number| !names.iter().any(|name| reached.contains(&format!("{name}#{number}"))));
        faults.extend(
            missing.map(|number| Fault::WithoutCase {
                rule: format!("{}/{}#{number}", found.group, found.kind),
            }),
        );
    }
    faults
}
