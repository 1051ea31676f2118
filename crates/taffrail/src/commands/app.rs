//! `taffrail app`: prints one app in three sections: the application, its reconciliation and its objects; then its
//! relations, if it has some.

use std::collections::HashMap;
use std::io::{self, Write};

use anstyle::Style;
use jiff::Timestamp;
use taffrail_api::diff::Comparable;
use taffrail_api::question::{AppAnswer, AppOfView, AppView};
use taffrail_api::{AppDetail, AppDetailList, AppName, RelationDirection, TreeNode, text};
use taffrail_apps::text::moment;
use taffrail_apps::{
    Axis, CheckAnswer, CheckResult, DifferingFields, ObjectSync, Problem, ReconciledRow, RelationType,
    SyncState,
};
use taffrail_object::ObjectKey;
use taffrail_status::Status;

use super::{changes, get, named};
use crate::cli::{AppArguments, ListOutput, TableOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::table::{Cell, Table};
use crate::output::{app_style, indented, object_style, printable, screen, style};
use crate::say;
use crate::source::{self, Source};

/// The last printed answer of `taffrail app`: one app for each cluster that has it.
#[derive(PartialEq)]
pub(crate) struct Sections {
    details: AppDetailList,
    /// For text output, the part of each app that is not in its details.
    beside: Vec<Beside>,
}

/// The part of a text about an app that is not in its details: problems, and the remark about unknown differences.
#[derive(PartialEq)]
struct Beside {
    problems: Vec<Problem>,
    differences: Option<String>,
}

impl Comparable for Sections {
    fn differs(&self, old: &Sections) -> bool {
        let problems = |sections: &'_ Sections| {
            sections.beside.iter().map(|beside| beside.problems.clone()).collect::<Vec<_>>()
        };
        problems(self) != problems(old) || self.details.differs(&old.details)
    }
}

pub(crate) fn run(
    arguments: &AppArguments,
    printed: &mut Option<Sections>,
    source: &mut dyn Source,
    console: &Console,
) -> Result<Exit, CommandError> {
    let view = AppView { name: arguments.name.clone(), apps: named::selection(&arguments.which) };
    let answer = source::ask("app", &view, (&arguments.view, &arguments.hub), source, console)?;
    let AppAnswer { fleet, items, errors, is_well } = answer;
    let is_text = arguments.output == TableOutput::Table;
    let (mut details, mut beside) = (Vec::new(), Vec::new());
    for AppOfView { detail, problems, differences } in items {
        details.push(detail);
        beside.extend(is_text.then_some(Beside { problems, differences }));
    }
    // Only documents contain failures.
    let details = AppDetailList::of(details, if is_text { &[] } else { &*errors });
    let Some(Sections { details, beside }) = changes::news(printed, Sections { details, beside }) else {
        return Ok(Exit::Yes);
    };
    written(match arguments.output {
        TableOutput::Json => get::document(ListOutput::Json, details, console),
        TableOutput::Yaml => get::document(ListOutput::Yaml, details, console),
        TableOutput::Table => {
            let several = fleet.clusters > 1;
            let mut shown = details.items.iter().zip(beside).enumerate();
            shown.try_for_each(|(number, (detail, beside))| {
                if number > 0 {
                    say!(console.people(), "\n")?;
                }
                print(detail, beside, several, fleet.now, console)
            })
        }
    })?;
    let mut exit = get::tell(&fleet, &errors, is_text, console);
    if arguments.exit_status && !is_well {
        exit = exit.max(Exit::No);
    }
    Ok(exit)
}

fn print(
    detail: &AppDetail,
    Beside { problems, differences }: &Beside,
    several: bool,
    now: Timestamp,
    console: &Console,
) -> io::Result<()> {
    let bold = Style::new().bold();
    let mut out = console.people();
    let app = &detail.app;
    let place = if several { format!(" in {}", app.cluster) } else { String::new() };
    let colour = app_style(app);
    let health = app.words(now);
    // `AppRow::words` already states the problem, and apps known by labels have no revision.
    let is_said =
        app.effective == Status::Current && app.problem.as_ref().is_some_and(|it| it.axis == Axis::Sync);
    let sync = match app.sync.state {
        SyncState::Unknown => String::new(),
        _ if !app.sync.freshness.is_live() => format!(", sync {}", app.sync.words()),
        SyncState::Suspended => String::new(),
        _ if is_said => String::new(),
        state => format!(", {}", if state == SyncState::Failed { "sync failed" } else { state.as_str() }),
    };
    say!(
        out,
        "{}{}{:#}{}: {}{}{:#}{}",
        bold,
        printable(&app.title()),
        bold,
        printable(&place),
        colour,
        printable(&health),
        colour,
        printable(&sync),
    )?;
    if app.effective != Status::Current {
        let worst = app.worst.as_ref().map(|worst| format!("{} {}: ", worst.kind, worst.path()));
        // Many messages name their object themselves.
        let worst = worst.filter(|_| !app.worst.as_ref().is_some_and(|it| app.message.contains(&it.path())));
        let message = format!("{}{}", worst.unwrap_or_default(), text::revision(&app.message));
        indented(&mut out, "", &message)?;
    }
    let besides = problems.iter().filter(|it| it.is_beside_health() && !it.message.is_empty());
    for problem in besides.filter(|it| it.message != app.message || app.effective == Status::Current) {
        let since = problem.since.map(|since| format!(", {}", text::ago(since, now))).unwrap_or_default();
        let line = format!("{}{since}: {}", capitalised(problem.axis), text::revision(&problem.message));
        indented(&mut out, "", &line)?;
    }

    say!(out, "\n{}Application details:{:#}", bold, bold)?;
    let of = &detail.application;
    for (name, value) in [
        ("Branch", &of.branch),
        ("config_url", &of.config_url),
        ("deployment_type", &of.deployment_type),
        ("Path", &of.path),
        ("source_type", &of.source_type),
        ("URL", &of.url),
    ] {
        let name = format!("{name}:");
        say!(out, "  {:<17} {}", printable(&name), printable(value.as_deref().unwrap_or(text::NONE)))?;
    }

    say!(out, "\n{}Reconciliation details:{:#}", bold, bold)?;
    let last = match app.sync.last_success {
        Some(at) => format!("{} ({})", moment(at), text::ago(at, now)),
        None => text::NONE.to_owned(),
    };
    say!(out, "Last successful reconciliation: {}", printable(&last))?;
    let same_namespace = |row: &ReconciledRow| row.namespace.is_empty() || row.namespace == app.namespace;
    for rows in [&detail.reconciliation.sources, &detail.reconciliation.delivery] {
        say!(out)?;
        let header = vec!["NAME", "READY", "MESSAGE", "REVISION", "SUSPENDED"];
        let mut table = Table::new(&mut out, header, screen()).cutting("MESSAGE");
        if rows.is_empty() {
            table.row(std::iter::repeat_n(Cell::new(text::NONE), 5).collect())?;
        }
        for row in rows {
            let namespace = if same_namespace(row) { String::new() } else { format!(" ({})", row.namespace) };
            let by = row.suspension.as_ref().map(|it| text::by_at(it, now)).unwrap_or_default();
            let suspended = row.suspended.map(|it| if it { format!("True{by}") } else { "False".to_owned() });
            let ready = row.ready.as_deref().unwrap_or(text::NONE);
            let colour = match ready {
                "True" => style(Status::Current),
                "False" => style(Status::Failed),
                _ => Style::new(),
            };
            table.row(vec![
                Cell::new(format!("{}/{}{namespace}", row.kind.to_lowercase(), row.name)),
                Cell::styled(ready, colour),
                Cell::new(text::revision(&row.message)),
                Cell::new(text::revision(row.revision.as_deref().unwrap_or_default())),
                Cell::new(suspended.unwrap_or_default()),
            ])?;
        }
        table.finish()?;
    }

    if !app.checks.is_empty() {
        say!(out, "\n{}Checks:{:#}", bold, bold)?;
        checks(&app.checks, now, &mut out)?;
    }

    say!(out, "\n{}Deployment details:{:#}", bold, bold)?;
    objects(&detail.unsynced, &detail.lines(), &mut out)?;
    if let Some(told) = differences {
        indented(&mut out, "", told)?;
    }
    relations(detail, several, &mut out)
}

/// Prints the apps to which an app is related; nothing if there are none.
fn relations(detail: &AppDetail, several: bool, out: &mut impl Write) -> io::Result<()> {
    if detail.relations.is_empty() {
        return Ok(());
    }
    let bold = Style::new().bold();
    say!(out, "\n{}Relations:{:#}", bold, bold)?;
    let mut header = vec!["RELATION", "APP", "STATUS", "MESSAGE"];
    if several {
        header.insert(2, "CLUSTER");
    }
    let mut table = Table::new(&mut *out, header, screen()).cutting("MESSAGE");
    for row in &detail.relations {
        let relation = match (row.relation, row.direction) {
            (RelationType::DependsOn, RelationDirection::Upstream) => "depends-on",
            (RelationType::DependsOn, RelationDirection::Downstream) => "needed-by",
            (RelationType::CreatedBy, RelationDirection::Upstream) => "created-by",
            (RelationType::CreatedBy, RelationDirection::Downstream) => "creates",
            (RelationType::DeliveredBy, RelationDirection::Upstream) => "delivered-by",
            (RelationType::DeliveredBy, RelationDirection::Downstream) => "delivers",
            (RelationType::HostedBy, RelationDirection::Upstream) => "hosted-by",
            (RelationType::HostedBy, RelationDirection::Downstream) => "hosts",
        };
        let AppName { delivery, namespace, name } = &row.app.app;
        let mut cells = vec![
            Cell::new(relation),
            Cell::new(format!("{delivery}/{namespace}/{name}")),
            Cell::styled(row.status.word(), style(row.status)),
            if row.message.is_empty() { Cell::blank() } else { Cell::new(text::revision(&row.message)) },
        ];
        if several {
            cells.insert(2, Cell::new(&row.app.cluster));
        }
        table.row(cells)?;
    }
    table.finish()?;
    match detail.relations_left_out {
        0 => Ok(()),
        more => say!(out, "and {} more", more),
    }
}

fn capitalised(axis: Axis) -> &'static str {
    match axis {
        Axis::Freshness => "Freshness",
        Axis::Health => "Health",
        Axis::Sync => "Sync",
        Axis::Source => "Source",
        Axis::Check => "Check",
    }
}

fn checks(results: &[CheckResult], now: Timestamp, out: &mut impl Write) -> io::Result<()> {
    let mut table =
        Table::new(out, vec!["NAME", "RESULT", "VALUE", "AGE", "MESSAGE"], screen()).cutting("MESSAGE");
    for CheckResult { name, result, value, observed_at, message, .. } in results {
        let colour = match result {
            CheckAnswer::False => style(Status::Failed),
            CheckAnswer::NoData => style(Status::Unknown),
            CheckAnswer::True => style(Status::Current),
        };
        let age = observed_at.map(|at| text::age(now.as_second().saturating_sub(at.as_second())));
        table.row(vec![
            Cell::new(name),
            Cell::styled(result.as_str(), colour),
            Cell::new(value.map_or(text::NONE.to_owned(), |value| value.to_string())),
            Cell::new(age.unwrap_or_else(|| text::NONE.to_owned())),
            if message.is_empty() { Cell::blank() } else { Cell::new(message.as_str()) },
        ])?;
    }
    table.finish()
}

/// Returns for each object that is not synced the fields in which it differs from the declared one, in words; of
/// several entries about an object the first counts.
fn differing(unsynced: &[ObjectSync]) -> HashMap<&ObjectKey, Vec<String>> {
    let fields = |own: &ObjectSync| own.differs.iter().map(DifferingFields::words).collect();
    // If a tool reports several states of an object, the first one counts.
    unsynced.iter().rev().map(|own| (&own.key, fields(own))).collect()
}

fn objects(unsynced: &[ObjectSync], lines: &[TreeNode], out: &mut impl Write) -> io::Result<()> {
    if lines.is_empty() {
        return say!(out, "no objects");
    }
    let header = vec!["KIND", "NAME", "STATUS", "NAMESPACE", "MESSAGE"];
    let mut table = Table::new(out, header, screen()).spare(&["NAMESPACE"]);
    let mut kind = String::new();
    let mut namespace = String::new();
    let differing = differing(unsynced);
    for line in lines {
        if let Some(object) = &line.object {
            kind.clone_from(&object.kind);
            namespace.clone_from(&object.namespace);
        }
        if let Some(folded) = &line.folded {
            kind.clone_from(&folded.kind);
        }
        let name = match (&line.object, &line.note) {
            (Some(object), _) => object.name.clone(),
            (None, note) => format!("({})", note.as_deref().unwrap_or_default()),
        };
        // A line that stands for several objects has their note above it.
        let note = line.note.as_deref().filter(|_| line.status == Status::Current && line.object.is_some());
        let fields = line.object.as_ref().and_then(|object| differing.get(object)).into_iter().flatten();
        let own = line.told();
        let message = note.into_iter().chain([&*own]).chain(fields.map(String::as_str));
        let message = message.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
        let message = text::revision(&message);
        let message = if message.is_empty() { Cell::blank() } else { Cell::new(message) };
        table.row(vec![
            Cell::new(&kind),
            Cell::new(name),
            Cell::styled(line.words(), object_style(line.status, line.sync)),
            Cell::new(&namespace),
            message,
        ])?;
    }
    table.finish()
}
