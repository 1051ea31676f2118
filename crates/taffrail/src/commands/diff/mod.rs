//! `taffrail diff`: says how the objects of manifests differ from the live ones, and whose the differences are.

mod arguments;
pub(super) mod ask;
mod dump;
pub(super) mod print;
mod question;
mod rows;

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taffrail_api::{DiffList, DiffResult, ErrorRow};
use taffrail_object::yaml;
use taffrail_observe::{TimeBudget, TimeLimits, input};
use taffrail_plan::diff::IgnoreRules;
use taffrail_plan::manifests::MAX_FILE_BYTES;

pub(crate) use arguments::DiffArguments;
pub(super) use question::{Before, ClusterDiff, Ignored, Question, TRACKING, ToolMarks};

use super::get;
use crate::cli::{ListOutput, SourceArguments, TextOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::source;

/// The time for one cluster: each object takes two requests or more.
const PATIENCE: Duration = Duration::from_secs(300);

/// A file of manifests: its name, and its content.
pub(super) struct ReadFile {
    pub(super) path: String,
    pub(super) content: Vec<u8>,
}

pub(crate) fn run(arguments: &DiffArguments, console: &Console) -> Result<Exit, CommandError> {
    let question = Arc::new(Question {
        files: files(&arguments.files, arguments.recursive)?,
        before: Before::default(),
        may_be_empty: false,
        namespace: arguments.default_namespace.clone(),
        manager: arguments.field_manager.clone(),
        marks: ToolMarks::default(),
        ignored: Arc::new(rules(arguments.ignore_rules.as_deref())?),
        masked: arguments.mask_annotation.iter().cloned().collect(),
        includes_additions: arguments.all_fields,
        jq: Arc::default(),
        schemas: Arc::default(),
    });
    let (asked, has_problems) = match arguments.from.is_empty() {
        true => ask_clusters(arguments, question, console)?,
        false => compare_dumps(arguments, &question, console)?,
    };
    let (mut items, mut errors, mut told) = (Vec::new(), Vec::new(), Vec::new());
    let is_one = asked.len() == 1;
    for answer in asked {
        let left_alone = answer.left_alone().map(|what| CommandError::unreadable(what).harmless());
        let ClusterDiff { cluster, rows, errors: failed, warnings, .. } = answer;
        let place = if is_one { String::new() } else { format!("{cluster}: ") };
        told.extend(warnings.into_iter().chain(left_alone).map(|warning| (place.clone(), warning)));
        items.extend(rows);
        errors.extend(failed);
    }
    let list = DiffList::of(items, errors);
    written(match arguments.output {
        TextOutput::Json => get::document(ListOutput::Json, &list, console),
        TextOutput::Text => print::text(&list, is_one, console),
    })?;
    let mut told_already = HashSet::new();
    for (place, warning) in told {
        // Several clusters of one fleet often warn of the same.
        if told_already.insert(warning.to_string()) {
            warning.print_about(&place, console);
        }
    }
    for ErrorRow { cluster, scope, message, .. } in &list.errors {
        let place = if is_one { String::new() } else { format!("{cluster}: ") };
        CommandError::unreadable(format_args!("{scope}: {message}")).print_about(&place, console);
    }
    let has = |result| list.items.iter().any(|row| row.result == result);
    Ok(match () {
        () if has_problems || !list.errors.is_empty() || has(DiffResult::Unknown) => Exit::Incomplete,
        () if has(DiffResult::Create) || has(DiffResult::Change) => Exit::No,
        () => Exit::Yes,
    })
}

/// Asks the clusters that the arguments select. Returns their answers, and true if some of them could not be selected.
fn ask_clusters(
    arguments: &DiffArguments,
    question: Arc<Question>,
    console: &Console,
) -> Result<(Vec<ClusterDiff>, bool), CommandError> {
    let source = arguments.clusters.source(PATIENCE);
    let fleet = source::members(&source)?;
    for problem in &fleet.problems {
        CommandError::from(problem).print(console);
    }
    let limits = TimeLimits { total: TimeBudget::PerCluster(PATIENCE), request: source.request_timeout };
    let asked = source::each(fleet.members, limits, |connector| {
        let questions = [Arc::clone(&question)];
        async move { ask::compare(&connector, &questions).await }
    })?;
    let asked = asked.into_iter().flatten().collect();
    Ok((asked, !fleet.problems.is_empty()))
}

/// Compares with the dumps that the arguments name. Returns the answers, and true if some of them could not be read.
fn compare_dumps(
    arguments: &DiffArguments,
    question: &Question,
    console: &Console,
) -> Result<(Vec<ClusterDiff>, bool), CommandError> {
    let source = SourceArguments { from: arguments.from.clone(), ..arguments.clusters.source(PATIENCE) };
    let fleet = source::dumps(&source, console)?;
    for problem in &fleet.problems {
        CommandError::from(problem).print(console);
    }
    let compared = fleet.snapshots.iter().map(|snapshot| dump::compare(snapshot, question)).collect();
    Ok((compared, !fleet.problems.is_empty()))
}

/// Reads the files of manifests. Of one that is too large, so much that the reader of manifests says so.
pub(super) fn files(paths: &[PathBuf], is_recursive: bool) -> Result<Vec<ReadFile>, CommandError> {
    let (sources, problems) = input::sources(paths, is_recursive);
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem.into());
    }
    let mut files = Vec::new();
    for source in sources {
        let path = source.name();
        let mut content = Vec::new();
        let reader = source.open()?;
        let read = reader.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut content);
        read.map_err(|error| {
            CommandError::unreadable(format_args!("cannot read {path}")).with_source(&error)
        })?;
        files.push(ReadFile { path, content });
    }
    Ok(files)
}

/// Reads the rules that ignore fields; none if no file is named.
pub(super) fn rules(path: Option<&Path>) -> Result<Ignored, CommandError> {
    let Some(path) = path else { return Ok(Ignored::default()) };
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        CommandError::usage(format_args!("cannot read the rules in {shown}")).with_source(&error)
    })?;
    let written: arguments::WrittenRules = yaml::read_strict(&text).map_err(|error| {
        let hint = "copy spec.ignoreDifferences of an Application, or spec.ignore of a Kustomization";
        let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
        CommandError::usage(format_args!("{shown}{line}: {}", error.message)).hint(hint)
    })?;
    let rules = IgnoreRules::new(&written.ignore_differences, &written.ignore).map_err(|invalid| {
        let each: Vec<String> = invalid.iter().map(ToString::to_string).collect();
        CommandError::usage(format_args!("{shown}: {}", each.join("; ")))
    })?;
    Ok(Ignored { rules, aggregated_roles: written.ignore_aggregated_roles })
}
