//! `taffrail rules test` and `rules lint`: runs the cases of rules, and lints them.

use std::io::{self, Write};
use std::path::Path;

use taffrail_api::{RuleFaultRow, RuleTrial};
#[cfg(feature = "lua")]
use taffrail_rules::lua::test_customizations;
use taffrail_rules::{RuleTestReport, test_rules};

use super::{LintArguments, TestArguments};
use crate::cli::ListOutput;
use crate::cli::TextOutput;
use crate::command_error::{CommandError, Exit, chain, written};
use crate::commands::get;
use crate::output::answer::Console;
use crate::output::printable;
use crate::rule_source::{self, CustomizationFiles};
use crate::say;

pub(super) fn test(arguments: &TestArguments, console: &Console) -> Result<Exit, CommandError> {
    let trial = tried(&arguments.folder)?;
    let items = items(&trial, false);
    if items.is_empty() && trial.passed == 0 {
        let complaint =
            CommandError::unreadable(format!("there are no test cases in {}", arguments.folder.display()));
        return Err(complaint.hint(
            "put test cases into cases.yaml beside rules.yaml, or into health_test.yaml beside Argo CD's health.lua",
        ));
    }
    report("RuleTest", arguments.output, trial.passed, items, console)
}

pub(super) fn lint(arguments: &LintArguments, console: &Console) -> Result<Exit, CommandError> {
    let trial = tried(&arguments.folder)?;
    report("RuleLint", arguments.output, trial.passed, items(&trial, true), console)
}

fn tried(folder: &Path) -> Result<RuleTestReport, CommandError> {
    let folders = rule_source::folders(folder).map_err(CommandError::unreadable)?;
    let scripts =
        rule_source::customizations(folder, CustomizationFiles::Cases).map_err(CommandError::unreadable)?;
    if folders.is_empty() && scripts.is_empty() {
        let complaint = CommandError::unreadable(format!("there are no rules in {}", folder.display()));
        return Err(complaint.hint(
            "put rules into rules.yaml, there or in a folder below; those of Argo CD into GROUP/KIND/health.lua",
        ));
    }
    #[cfg(feature = "lua")]
    {
        let mut of_scripts = test_customizations(&scripts);
        for file in of_scripts.files_mut() {
            *file = folder.join(&*file).display().to_string();
        }
        Ok(test_rules(&folders).and(of_scripts))
    }
    #[cfg(not(feature = "lua"))]
    match scripts.first() {
        None => Ok(test_rules(&folders)),
        Some((file, _)) => {
            let file = folder.join(file);
            Err(CommandError::unreadable(format!(
                "{} cannot be tested: {}",
                file.display(),
                rule_source::WITHOUT_LUA
            )))
        }
    }
}

fn items(trial: &RuleTestReport, faults: bool) -> Vec<RuleFaultRow> {
    let errors = trial.errors.iter().map(|error| RuleFaultRow {
        file: Some(error.file.clone()),
        kind: error.kind.clone(),
        case: None,
        message: chain(error),
        hint: error.hint(),
    });
    let failed = trial.failed.iter().map(|failed| RuleFaultRow {
        file: Some(failed.file.clone()),
        kind: Some(failed.kind.clone()),
        case: Some(failed.name.clone()),
        message: failed.why.clone(),
        hint: None,
    });
    let faults = faults.then_some(&trial.faults).into_iter().flatten().map(|fault| RuleFaultRow {
        file: None,
        kind: None,
        case: None,
        message: fault.to_string(),
        hint: None,
    });
    errors.chain(failed).chain(faults).collect()
}

fn report(
    kind: &'static str,
    form: TextOutput,
    passed: usize,
    items: Vec<RuleFaultRow>,
    console: &Console,
) -> Result<Exit, CommandError> {
    let exit = if items.is_empty() { Exit::Yes } else { Exit::No };
    written(match form {
        TextOutput::Json => get::document(ListOutput::Json, &RuleTrial::new(kind, passed, items), console),
        TextOutput::Text => print(kind, passed, &items, console),
    })?;
    Ok(exit)
}

fn print(kind: &str, passed: usize, items: &[RuleFaultRow], console: &Console) -> io::Result<()> {
    let mut out = console.programs();
    for RuleFaultRow { file, kind, case, message, hint } in items {
        let place = match (file, kind, case) {
            (Some(file), Some(kind), Some(case)) => format!("{file}: {kind}, {case}: "),
            _ => String::new(),
        };
        let hint = hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        say!(out, "{}", printable(&format!("{place}{message}{hint}")))?;
    }
    match (kind, items.len()) {
        ("RuleTest", failed) => say!(out, "{} passed, {} failed", passed, failed),
        (_, 0) => say!(out, "no findings"),
        (_, 1) => say!(out, "1 finding"),
        (_, number) => say!(out, "{} findings", number),
    }
}
