//! `taffrail actions`: lists the actions of an object.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anstyle::Style;
use jiff::Timestamp;
use taffrail_api::{ActionParameter, ErrorRow, ObjectActionList, ObjectActionRow};
use taffrail_observe::operations::Offer;
use taffrail_rules::lua::Parameter;

use super::arguments::{ActionsArguments, ActionsOutput};
use super::located::{self, FoundObjects};
use super::scripts;
use crate::cli::ListOutput;
use crate::command_error::{CommandError, Exit, written};
use crate::commands::get;
use crate::output::answer::Console;
use crate::output::names::NameWriter;
use crate::output::table::{Cell, Table};
use crate::output::{printable, screen};
use crate::reasons::SCRIPT_FAILED;
use crate::say;
use crate::source;

fn shown(parameter: Parameter) -> ActionParameter {
    let Parameter { name, value, kind, default } = parameter;
    ActionParameter { name, value, kind, default }
}

pub(crate) fn list(arguments: &ActionsArguments, console: &Console) -> Result<Exit, CommandError> {
    let which = &arguments.which;
    let scripts = scripts(which.rules.0.as_deref())?;
    let FoundObjects { objects, mut complaints, mut errors } = located::objects(which, console)?;
    let now = which.source.now.unwrap_or_else(Timestamp::now);
    let mut items = Vec::new();
    let mut out = console.people();
    for (at, object) in objects.iter().enumerate() {
        let key = object.key();
        let (offers, failures) = scripts
            .offers(object, now)
            .map_or_else(|error| (None, vec![error]), |(offers, failures)| (Some(offers), failures));
        complaints.extend(failures.iter().map(CommandError::from));
        errors.extend(failures.into_iter().map(|failure| ErrorRow {
            cluster: object.cluster.clone(),
            scope: key.to_string(),
            reason: SCRIPT_FAILED.to_owned(),
            message: failure.message,
        }));
        let Some(offers) = offers else { continue };
        if arguments.output == ActionsOutput::Table {
            let gap = if at > 0 { "\n" } else { "" };
            let bold = Style::new().bold();
            let title = printable(&format!("{} {}", key.kind, key.path())).into_owned();
            written(
                say!(out, "{}{}{}{:#} in {}", gap, bold, title, bold, printable(&object.cluster))
                    .and_then(|()| print(&offers, console)),
            )?;
            continue;
        }
        items.extend(offers.into_iter().map(|offer| {
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
        }));
    }
    written(match arguments.output {
        ActionsOutput::Table => Ok(()),
        ActionsOutput::Name => {
            let names: BTreeSet<&str> = items.iter().map(|item| item.name.as_str()).collect();
            NameWriter::all(names, console)
        }
        ActionsOutput::Json => get::document(ListOutput::Json, &ObjectActionList::of(items, errors), console),
    })?;
    source::print_requests(which.source.verbose, located::connections(&objects), console);
    complaints.iter().for_each(|complaint| complaint.print(console));
    Ok(complaints.iter().map(|complaint| complaint.exit).max().unwrap_or(Exit::Yes))
}

fn print(offers: &[Offer], console: &Console) -> io::Result<()> {
    if offers.is_empty() {
        return say!(console.people(), "No actions for this object.");
    }
    let mut table =
        Table::new(console.people(), vec!["ACTION", "FROM", "NOW", "PARAMETERS", "DOES"], screen());
    for offer in offers {
        let Offer { origin, action, .. } = offer;
        let told = |parameter: &Parameter| {
            // The current value is more useful than the default.
            let value = if parameter.value.is_empty() { &parameter.default } else { &parameter.value };
            format!("{}={value}", parameter.name)
        };
        let told: Vec<String> = action.params.iter().map(told).collect();
        table.row(vec![
            Cell::new(offer.called()),
            Cell::new(origin.as_str()),
            Cell::new(if action.disabled { "no" } else { "yes" }),
            Cell::new(told.join(" ")),
            Cell::new(&action.display_name),
        ])?;
    }
    table.finish()
}
