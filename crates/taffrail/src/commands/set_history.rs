//! `taffrail history --set`: the runs of a set, as its record in the cluster has them.

use std::io::{self, Write as _};

use jiff::Timestamp;
use taffrail_api::{ErrorRow, List, SetHistory, SetObjectRow, SetRunRow, text};
use taffrail_apps::sets::{ObjectResult, SetName, SetPhase};
use taffrail_engine::RecordError;
use taffrail_observe::{ClusterConnector, TimeBudget, TimeLimits};
use taffrail_status::Status;

use super::get;
use super::history::HistoryArguments;
use crate::cli::{ListOutput, TableOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::table::{Cell, Table};
use crate::output::{printable, screen, style};
use crate::{phrase, say, source};

/// The answer of one cluster; `None` if it has no such set.
struct Asked {
    cluster: String,
    set: Option<SetName>,
    answer: Result<Option<SetHistory>, (ErrorRow, &'static str)>,
}

pub(crate) fn run(arguments: &HistoryArguments, set: &str, console: &Console) -> Result<Exit, CommandError> {
    // A name that none can have is told without asking.
    SetName::new(arguments.namespace.as_deref().unwrap_or("default"), set).map_err(CommandError::usage)?;
    let source = arguments.clusters.source(arguments.timeout);
    let fleet = source::members(&source)?;
    for problem in &fleet.problems {
        CommandError::from(problem).print(console);
    }
    let several = fleet.members.len() > 1;
    let budget = TimeBudget::PerCluster(arguments.timeout);
    let limits = TimeLimits { total: budget, request: source.request_timeout };
    let asked = source::each(fleet.members, limits, |connector| {
        let (namespace, name, run) = (arguments.namespace.clone(), set.to_owned(), arguments.run);
        async move { ask(&connector, namespace.as_deref(), &name, run).await }
    })?;
    let (mut items, mut failed, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for Asked { cluster, set, answer } in asked {
        match answer {
            Ok(Some(mut history)) => {
                history.runs.truncate(usize::from(arguments.limit));
                items.push(history);
            }
            Ok(None) => without.push((cluster, set)),
            Err(failure) => failed.push(failure),
        }
    }
    if items.is_empty() && failed.is_empty() && fleet.problems.is_empty() {
        return Err(no_such_set(set, &without));
    }
    if let Some(run) = arguments.run
        && failed.is_empty()
        && items.iter().all(|history| history.runs.is_empty())
    {
        let error = CommandError::usage(format!("the set {set} has no run {run} in its record"));
        return Err(error.hint("the record has the last ten runs; leave --run out to list them"));
    }
    let (errors, hints): (Vec<ErrorRow>, Vec<&str>) = failed.into_iter().unzip();
    let list = List::of(items, errors);
    written(match arguments.output {
        TableOutput::Table if arguments.run.is_some() => objects(arguments, &list.items, several, console),
        TableOutput::Table => runs(arguments, &list.items, several, console),
        TableOutput::Yaml => get::document(ListOutput::Yaml, &list, console),
        _ => get::document(ListOutput::Json, &list, console),
    })?;
    for (error, hint) in list.errors.iter().zip(hints) {
        let place = if several { format!("{}: ", error.cluster) } else { String::new() };
        let told = CommandError::unreadable(&error.message);
        let told = if hint.is_empty() { told } else { told.hint(hint) };
        told.print_about(&place, console);
    }
    let is_whole = list.errors.is_empty() && fleet.problems.is_empty();
    Ok(if is_whole { Exit::Yes } else { Exit::Incomplete })
}

async fn ask(connector: &ClusterConnector, namespace: Option<&str>, name: &str, run: Option<u64>) -> Asked {
    let cluster = connector.member.name.clone();
    let failed = |scope: String, reason: &str, message: String, hint: &'static str| {
        Err((ErrorRow { cluster: cluster.clone(), scope, reason: reason.to_owned(), message }, hint))
    };
    let connected = match connector.connect().await {
        Ok(connected) => connected,
        Err(failure) => {
            let answer = failed("cluster".to_owned(), &failure.reason, failure.message, "");
            return Asked { set: None, answer, cluster };
        }
    };
    let set = match SetName::new(namespace.unwrap_or_else(|| connected.namespace()), name) {
        Ok(set) => set,
        Err(error) => {
            let answer = failed("cluster".to_owned(), "BadKubeconfig", error.to_string(), "");
            return Asked { set: None, answer, cluster };
        }
    };
    let answer = match taffrail_engine::history(&connected, &set).await {
        Ok(record) => Ok(record.map(|record| {
            let facts = (&record.summary, record.inventory.len(), &*record.results);
            SetHistory::of(&cluster, &set, facts, run)
        })),
        Err(error) => {
            let reason = match &error {
                RecordError::Read(error) => error.reason().as_str(),
                _ => "Malformed",
            };
            failed(set.record_key().to_string(), reason, taffrail_cluster::chain(&error), error.hint())
        }
    };
    Asked { set: Some(set), answer, cluster }
}

fn no_such_set(name: &str, without: &[(String, Option<SetName>)]) -> CommandError {
    let places: Vec<String> = without
        .iter()
        .take(5)
        .map(|(cluster, set)| {
            let namespace = set.as_ref().map_or("?", |set| &set.namespace);
            format!("namespace {namespace} of {cluster}")
        })
        .collect();
    let more = without.len().saturating_sub(places.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let error = CommandError::usage(format!("there is no set {name} in {}{more}", places.join(", ")));
    error.hint("`taffrail get apps --delivery taffrail` lists the sets; -n names the namespace of one")
}

/// Prints the runs of all clusters.
fn runs(
    arguments: &HistoryArguments,
    histories: &[SetHistory],
    several: bool,
    console: &Console,
) -> io::Result<()> {
    let mut columns =
        vec!["CLUSTER", "RUN", "WHEN", "VERB", "RESULT", "REVISION", "BY", "OBJECTS", "MESSAGE"];
    columns.retain(|column| several || *column != "CLUSTER");
    let table = Table::new(console.people(), columns.clone(), screen()).without_header(arguments.no_headers);
    let mut table = table.spare(&["BY", "WHEN"]);
    let now = Timestamp::now();
    for history in histories {
        for run in &history.runs {
            table.row(columns.iter().map(|column| cell(history, run, now, column)).collect())?;
        }
    }
    table.finish()?;
    for history in histories {
        let place = if several { format!("{}: ", history.cluster) } else { String::new() };
        if history.runs.is_empty() {
            let line = format!("{place}the set {} had no run yet", history.set);
            console.tell(phrase!("{}\n", printable(&line)));
        }
        if let Some(holder) = &history.holder {
            let line = format!("{place}{holder} holds the set now");
            console.tell(phrase!("{}\n", printable(&line)));
        }
    }
    Ok(())
}

fn cell(history: &SetHistory, run: &SetRunRow, now: Timestamp, column: &str) -> Cell {
    match column {
        "CLUSTER" => Cell::new(&history.cluster),
        "RUN" => Cell::new(run.number.to_string()),
        "WHEN" => Cell::new(text::since(Some(run.started), now)),
        "VERB" => Cell::new(&run.verb),
        "RESULT" => Cell::styled(&run.result, style(status_of_run(&run.result))),
        "REVISION" => Cell::new(text::revision(&run.revision)),
        "BY" => Cell::new(&run.by),
        "OBJECTS" => {
            let counts = run.counts.iter().map(|it| format!("{} {}", it.objects, it.result.to_lowercase()));
            Cell::new(counts.collect::<Vec<_>>().join(", "))
        }
        _ => Cell::new(text::line(&run.message)),
    }
}

/// Prints the objects of one run.
fn objects(
    arguments: &HistoryArguments,
    histories: &[SetHistory],
    several: bool,
    console: &Console,
) -> io::Result<()> {
    let mut columns = vec!["CLUSTER", "RESULT", "KIND", "NAMESPACE", "NAME", "MESSAGE"];
    columns.retain(|column| several || *column != "CLUSTER");
    let mut out = console.people();
    for history in histories {
        let Some(run) = history.runs.first() else { continue };
        let place = if several { format!("{}: ", history.cluster) } else { String::new() };
        let revision = if run.revision.is_empty() {
            String::new()
        } else {
            format!(" of {}", text::revision(&run.revision))
        };
        let message =
            if run.message.is_empty() { String::new() } else { format!(": {}", text::line(&run.message)) };
        let head = format!(
            "{place}run {} of the set {}/{}: {}{revision} by {}, {}{message}",
            run.number, history.namespace, history.set, run.verb, run.by, run.result
        );
        if !arguments.no_headers {
            say!(out, "{}", printable(&head))?;
        }
    }
    let table = Table::new(out, columns.clone(), screen()).without_header(arguments.no_headers);
    let mut table = table.spare(&["NAMESPACE", "CLUSTER"]);
    for history in histories {
        let objects = history.runs.iter().filter_map(|run| run.objects.as_deref()).flatten();
        for object in objects {
            table.row(columns.iter().map(|column| object_cell(history, object, column)).collect())?;
        }
    }
    table.finish()
}

fn object_cell(history: &SetHistory, row: &SetObjectRow, column: &str) -> Cell {
    match column {
        "CLUSTER" => Cell::new(&history.cluster),
        "RESULT" => Cell::styled(&row.result, style(status_of_object(&row.result))),
        "KIND" => Cell::new(&row.object.kind),
        "NAMESPACE" => Cell::new(&row.object.namespace),
        "NAME" => Cell::new(&row.object.name),
        _ => Cell::new(text::line(&row.message)),
    }
}

/// Returns the status with whose colour the state of a run is shown.
fn status_of_run(result: &str) -> Status {
    match SetPhase::ALL.into_iter().find(|it| it.as_str() == result) {
        Some(SetPhase::Succeeded) => Status::Current,
        Some(SetPhase::Failed) => Status::Failed,
        Some(SetPhase::Running) => Status::InProgress,
        Some(SetPhase::Terminated | SetPhase::Superseded) | None => Status::Unknown,
    }
}

/// Returns the status with whose colour the result of an object is shown.
fn status_of_object(result: &str) -> Status {
    match ObjectResult::ALL.into_iter().find(|it| it.as_str() == result) {
        Some(ObjectResult::Failed) => Status::Failed,
        Some(ObjectResult::Skipped | ObjectResult::Kept) | None => Status::Unknown,
        Some(ObjectResult::Pruned | ObjectResult::Replaced | ObjectResult::Changed) => Status::InProgress,
        Some(ObjectResult::Created | ObjectResult::Unchanged | ObjectResult::Ran) => Status::Current,
    }
}
