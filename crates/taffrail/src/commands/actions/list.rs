//! `taffrail actions`: lists the actions of an object.

use std::collections::BTreeSet;
use std::io::{self, Write as _};

use anstyle::Style;
use jiff::Timestamp;
use taffrail_api::operations::OperationError;
use taffrail_api::{ActionParameter, ErrorRow, ObjectActionList, ObjectActionRow};
use taffrail_object::ObjectKey;
use taffrail_observe::operations::{ActionScripts, LocatedObject, Offer};
use taffrail_rules::lua::Parameter;

use super::arguments::{ActionsArguments, ActionsOutput};
use super::located::{self, FoundObjects};
use super::{question, scripts};
use crate::cli::ListOutput;
use crate::command_error::{CommandError, Exit, written};
use crate::commands::{get, named};
use crate::hub_url::HubUrl;
use crate::output::answer::Console;
use crate::output::names::NameWriter;
use crate::output::table::{Cell, Table};
use crate::output::{printable, screen};
use crate::reasons::{self, SCRIPT_FAILED};
use crate::say;
use crate::source;

fn shown(parameter: Parameter) -> ActionParameter {
    let Parameter { name, value, kind, default } = parameter;
    ActionParameter { name, value, kind, default }
}

/// Returns the actions of an object as rows, and the scripts that failed.
pub(crate) fn offered(
    scripts: &ActionScripts,
    object: &LocatedObject,
    now: Timestamp,
) -> (Vec<ObjectActionRow>, Vec<ErrorRow>) {
    let key = object.key();
    let (offers, failures) = scripts
        .offers(object, now)
        .map_or_else(|error| (Vec::new(), vec![error]), |(offers, failures)| (offers, failures));
    let row = |offer: Offer| {
        let name = offer.called();
        let Offer { origin, action, .. } = offer;
        ObjectActionRow {
            cluster: object.cluster.clone(),
            object: key.clone(),
            name,
            origin: origin.as_str().into(),
            display_name: action.display_name,
            icon_class: action.icon_class,
            disabled: action.disabled,
            parameters: action.params.into_iter().map(shown).collect(),
        }
    };
    let failed = |failure: OperationError| ErrorRow {
        cluster: object.cluster.clone(),
        scope: key.to_string(),
        reason: SCRIPT_FAILED.to_owned(),
        message: failure.message,
    };
    (offers.into_iter().map(row).collect(), failures.into_iter().map(failed).collect())
}

pub(crate) fn list(arguments: &ActionsArguments, console: &Console) -> Result<Exit, CommandError> {
    let which = &arguments.which;
    if let Some(url) = &which.hub.hub {
        return by_hub(arguments, url, console);
    }
    let scripts = scripts(which.rules.0.as_deref())?;
    let FoundObjects { objects, mut complaints, mut errors } = located::objects(which, console)?;
    let now = which.source.now.unwrap_or_else(Timestamp::now);
    let mut items = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        let key = object.key();
        let (rows, failures) = offered(&scripts, object, now);
        complaints.extend(failures.iter().map(|failure| CommandError::unreadable(&failure.message)));
        let has_failed = rows.is_empty() && !failures.is_empty();
        if arguments.output == ActionsOutput::Table && !has_failed {
            let gap = if at > 0 { "\n" } else { "" };
            print(gap, &object.cluster, &key, &rows, console)?;
        }
        items.extend(rows);
        errors.extend(failures);
    }
    print_rows(arguments.output, &ObjectActionList::of(items, errors), console)?;
    source::print_requests(which.source.verbose, located::connections(&objects), console);
    complaints.iter().for_each(|complaint| complaint.print(console));
    Ok(complaints.iter().map(|complaint| complaint.exit).max().unwrap_or(Exit::Yes))
}

/// Prints the actions that a hub tells of.
fn by_hub(arguments: &ActionsArguments, url: &HubUrl, console: &Console) -> Result<Exit, CommandError> {
    let which = &arguments.which;
    let list: ObjectActionList =
        source::ask_hub_at(url, &which.hub.files, source::ACTIONS, &question(which), which.source.timeout)?
            .map_err(|error| named::refused_by_hub("actions", &error))?;
    if arguments.output == ActionsOutput::Table {
        let same =
            |a: &ObjectActionRow, b: &ObjectActionRow| (&a.cluster, &a.object) == (&b.cluster, &b.object);
        for (place, rows) in list.items.chunk_by(same).enumerate() {
            let gap = if place > 0 { "\n" } else { "" };
            let Some(ObjectActionRow { cluster, object, .. }) = rows.first() else { continue };
            print(gap, cluster, object, rows, console)?;
        }
        if list.items.is_empty() && list.errors.is_empty() {
            written(say!(console.people(), "No actions for this object."))?;
        }
    }
    print_rows(arguments.output, &list, console)?;
    let complaint = |error: &ErrorRow| {
        CommandError::unreadable(format!("{}: {}", error.cluster, error.message))
            .maybe_hint(reasons::hint(&error.reason).map(str::to_owned))
    };
    let complaints: Vec<CommandError> = list.errors.iter().map(complaint).collect();
    complaints.iter().for_each(|complaint| complaint.print(console));
    Ok(complaints.iter().map(|complaint| complaint.exit).max().unwrap_or(Exit::Yes))
}

/// Prints the actions as JSON or their names; nothing for people.
fn print_rows(output: ActionsOutput, list: &ObjectActionList, console: &Console) -> Result<(), CommandError> {
    written(match output {
        ActionsOutput::Table => Ok(()),
        ActionsOutput::Name => {
            let names: BTreeSet<&str> = list.items.iter().map(|item| item.name.as_str()).collect();
            NameWriter::all(names, console)
        }
        ActionsOutput::Json => get::document(ListOutput::Json, list, console),
    })
}

/// Prints the actions of an object in a cluster as a table, after `gap`.
fn print(
    gap: &'static str,
    cluster: &str,
    key: &ObjectKey,
    rows: &[ObjectActionRow],
    console: &Console,
) -> Result<(), CommandError> {
    let bold = Style::new().bold();
    let title = format!("{} {}", key.kind, key.path());
    let mut out = console.people();
    written(
        say!(out, "{}{}{}{:#} in {}", gap, bold, printable(&title), bold, printable(cluster))
            .and_then(|()| table(rows, console)),
    )
}

fn table(rows: &[ObjectActionRow], console: &Console) -> io::Result<()> {
    if rows.is_empty() {
        return say!(console.people(), "No actions for this object.");
    }
    let mut table =
        Table::new(console.people(), vec!["ACTION", "FROM", "NOW", "PARAMETERS", "DOES"], screen());
    for row in rows {
        let told = |parameter: &ActionParameter| {
            // The current value is more useful than the default.
            let value = if parameter.value.is_empty() { &parameter.default } else { &parameter.value };
            format!("{}={value}", parameter.name)
        };
        let told: Vec<String> = row.parameters.iter().map(told).collect();
        table.row(vec![
            Cell::new(&row.name),
            Cell::new(&*row.origin),
            Cell::new(if row.disabled { "no" } else { "yes" }),
            Cell::new(told.join(" ")),
            Cell::new(&row.display_name),
        ])?;
    }
    table.finish()
}
