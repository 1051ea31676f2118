//! `taffrail actions`: lists the actions of an object.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anstyle::Style;
use jiff::Timestamp;
use serde::Serialize;
use taffrail_api::API_VERSION;
use taffrail_object::ObjectKey;
use taffrail_observe::operations::Offer;
use taffrail_rules::lua::Parameter;

use super::arguments::{ActionsArguments, ActionsOutput};
use super::{located, scripts};
use crate::cli::ListOutput;
use crate::command_error::{CommandError, Exit, written};
use crate::commands::get;
use crate::output::names::Names;
use crate::output::table::{Cell, Table};
use crate::output::{answer, printable, screen};
use crate::say;
use crate::source;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Item>,
}

/// One action of an object in a cluster, as a row of the answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    cluster: String,
    object: ObjectKey,
    name: String,
    /// The origin of the action's script: `user`, `cluster` or `shipped`.
    origin: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    display_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    icon_class: String,
    disabled: bool,
    parameters: Vec<Told>,
}

/// A parameter of an action, as the answer shows it: name, type and default.
#[derive(Serialize)]
struct Told {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    value: String,
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    default: String,
}

impl From<Parameter> for Told {
    fn from(parameter: Parameter) -> Told {
        let Parameter { name, value, kind, default } = parameter;
        Told { name, value, kind, default }
    }
}

pub(crate) fn list(arguments: &ActionsArguments) -> Result<Exit, CommandError> {
    let which = &arguments.which;
    let scripts = scripts(which.rules.0.as_deref())?;
    let (objects, mut complaints) = located::objects(which)?;
    let now = which.source.now.unwrap_or_else(Timestamp::now);
    let mut items = Vec::new();
    let mut out = answer::people();
    for (at, object) in objects.iter().enumerate() {
        let key = object.key();
        let (offers, errors) = match scripts.offers(object, now) {
            Ok(offers) => offers,
            Err(error) => {
                complaints.push(CommandError::from(&error));
                continue;
            }
        };
        complaints.extend(errors.iter().map(CommandError::from));
        if arguments.output == ActionsOutput::Table {
            let gap = if at > 0 { "\n" } else { "" };
            let bold = Style::new().bold();
            let title = printable(&format!("{} {}", key.kind, key.path())).into_owned();
            written(
                say!(out, "{}{}{}{:#} in {}", gap, bold, title, bold, printable(&object.cluster))
                    .and_then(|()| print(&offers)),
            )?;
            continue;
        }
        items.extend(offers.into_iter().map(|offer| {
            let name = offer.called();
            let Offer { origin, action, .. } = offer;
            Item {
                cluster: object.cluster.clone(),
                object: key.clone(),
                name,
                origin: origin.as_str(),
                display_name: action.display_name,
                icon_class: action.icon_class,
                disabled: action.disabled,
                parameters: action.params.into_iter().map(Told::from).collect(),
            }
        }));
    }
    written(match arguments.output {
        ActionsOutput::Table => Ok(()),
        ActionsOutput::Name => {
            let names: BTreeSet<&str> = items.iter().map(|item| item.name.as_str()).collect();
            Names::all(names)
        }
        ActionsOutput::Json => {
            let document = Document { api_version: API_VERSION, kind: "ObjectActionList", items };
            get::document(ListOutput::Json, &document)
        }
    })?;
    source::print_requests(which.source.verbose, located::connections(&objects));
    complaints.iter().for_each(CommandError::print);
    Ok(complaints.iter().map(|complaint| complaint.exit).max().unwrap_or(Exit::Yes))
}

fn print(offers: &[Offer]) -> io::Result<()> {
    if offers.is_empty() {
        return say!(answer::people(), "No actions for this object.");
    }
    let mut table =
        Table::new(answer::people(), vec!["ACTION", "FROM", "NOW", "PARAMETERS", "DOES"], screen());
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
