//! `taffrail rules test` and `rules lint`: runs the cases of rules, and lints them.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use taffrail_api::ErrorRow;
#[cfg(feature = "lua")]
use taffrail_rules::lua::test_customizations;
use taffrail_rules::{RuleTestReport, test_rules};

use super::{LintArguments, TestArguments};
use crate::cli::ListOutput;
use crate::cli::TextOutput;
use crate::command_error::{CommandError, Exit, chain, written};
use crate::commands::get;
use crate::output::{answer, printable};
use crate::rule_source::{self, Wanted};
use crate::say;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    api_version: &'static str,
    kind: &'static str,
    passed: usize,
    failed: usize,
    /// The failures, or the lint findings.
    items: Vec<Item>,
    errors: [ErrorRow; 0],
}

#[derive(Serialize)]
struct Item {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    case: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

pub(super) fn test(arguments: &TestArguments) -> Result<Exit, CommandError> {
    let trial = tried(&arguments.folder)?;
    let items = items(&trial, false);
    if items.is_empty() && trial.passed == 0 {
        let complaint =
            CommandError::unreadable(format!("there are no test cases in {}", arguments.folder.display()));
        return Err(complaint.hint(
            "put test cases into cases.yaml beside rules.yaml, or into health_test.yaml beside Argo CD's health.lua",
        ));
    }
    report("RuleTest", arguments.output, trial.passed, items)
}

pub(super) fn lint(arguments: &LintArguments) -> Result<Exit, CommandError> {
    let trial = tried(&arguments.folder)?;
    report("RuleLint", arguments.output, trial.passed, items(&trial, true))
}

fn tried(folder: &Path) -> Result<RuleTestReport, CommandError> {
    let folders = rule_source::folders(folder).map_err(CommandError::unreadable)?;
    let scripts = rule_source::customizations(folder, Wanted::Cases).map_err(CommandError::unreadable)?;
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

fn items(trial: &RuleTestReport, faults: bool) -> Vec<Item> {
    let errors = trial.errors.iter().map(|error| Item {
        file: Some(error.file.clone()),
        kind: error.kind.clone(),
        case: None,
        message: chain(error),
        hint: error.hint(),
    });
    let failed = trial.failed.iter().map(|failed| Item {
        file: Some(failed.file.clone()),
        kind: Some(failed.kind.clone()),
        case: Some(failed.name.clone()),
        message: failed.why.clone(),
        hint: None,
    });
    let faults = faults.then_some(&trial.faults).into_iter().flatten().map(|fault| Item {
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
    items: Vec<Item>,
) -> Result<Exit, CommandError> {
    let exit = if items.is_empty() { Exit::Yes } else { Exit::No };
    written(match form {
        TextOutput::Json => {
            let (api_version, failed) = ("cli.taffrail.dev/v1alpha1", items.len());
            get::document(ListOutput::Json, &Report { api_version, kind, passed, failed, items, errors: [] })
        }
        TextOutput::Text => print(kind, passed, &items),
    })?;
    Ok(exit)
}

fn print(kind: &str, passed: usize, items: &[Item]) -> io::Result<()> {
    let mut out = answer::programs();
    for Item { file, kind, case, message, hint } in items {
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
