//! `taffrail events`: the warning events of the objects of apps.

use std::io;

use jiff::Timestamp;
use taffrail_api::question::{EventsAnswer, EventsView, FleetFacts};
use taffrail_api::{EventList, EventRow, text};

use super::changes::Printed;
use super::{get, named};
use crate::cli::{EventsArguments, EventsOutput, ListOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::table::{Cell, Table};
use crate::output::{printable, screen};
use crate::phrase;
use crate::source::{self, Source};

pub(crate) fn run(
    arguments: &EventsArguments,
    printed: &mut Printed<EventRow>,
    source: &mut dyn Source,
    console: &Console,
) -> Result<Exit, CommandError> {
    let view = EventsView {
        name: arguments.name.clone(),
        apps: named::selection(&arguments.which),
        per_cluster: arguments.per_cluster,
        since: arguments.since.map(|since| since.as_secs().max(1)),
    };
    let answer = source::ask("events", &view, (&arguments.view, &arguments.hub), source, console)?;
    let EventsAnswer { fleet, items, errors } = answer;
    let events = EventList::of(items, &errors);
    if !printed.is_other(&events.items, &events.errors) {
        return Ok(Exit::Yes);
    }
    written(match arguments.output {
        EventsOutput::Json => get::document(ListOutput::Json, &events, console),
        EventsOutput::Table => table(arguments, &events, printed, &fleet, console),
    })?;
    printed.set(events.items, events.errors);
    Ok(get::tell(&fleet, &errors, arguments.output == EventsOutput::Table, console))
}

fn table(
    arguments: &EventsArguments,
    events: &EventList,
    printed: &mut Printed<EventRow>,
    fleet: &FleetFacts,
    console: &Console,
) -> io::Result<()> {
    if events.items.is_empty() {
        printed.columns.clear();
        let about = arguments.name.as_ref().map_or("any app".to_owned(), |name| format!("'{name}'"));
        let is_whole = events.errors.iter().all(|error| get::is_of_what_was_read(&error.reason));
        let part = if is_whole { "" } else { " in the part that could be read" };
        let since = arguments.since.map(|since| {
            format!(" in the last {}", text::span(i64::try_from(since.as_secs()).unwrap_or(i64::MAX)))
        });
        console.tell(phrase!(
            "No warnings about {}{}{}.\n",
            printable(&about),
            printable(&since.unwrap_or_default()),
            part
        ));
        return Ok(());
    }
    let named = arguments.name.is_some();
    let mut columns =
        vec!["CLUSTER", "LAST SEEN", "FIRST SEEN", "COUNT", "APP", "OBJECT", "REASON", "MESSAGE"];
    columns.retain(|column| match *column {
        "CLUSTER" => fleet.clusters > 1,
        "APP" => !named,
        _ => true,
    });
    let is_known = columns == printed.columns;
    let table = Table::new(console.people(), columns.clone(), screen())
        .without_header(arguments.no_headers || is_known);
    let mut table = table.spare(&["FIRST SEEN", "APP", "COUNT"]);
    let cells = |event: &EventRow| columns.iter().map(|column| cell(event, column, fleet.now)).collect();
    printed.fill(&mut table, &events.items, is_known, cells)?;
    printed.columns = columns;
    table.finish()
}

fn cell(event: &EventRow, column: &str, now: Timestamp) -> Cell {
    let object = &event.object;
    let slash = if object.namespace.is_empty() { "" } else { "/" };
    let gone = if event.is_gone { " (gone)" } else { "" };
    match column {
        "CLUSTER" => Cell::new(event.place.words()),
        "LAST SEEN" => Cell::new(text::since(event.last_seen, now)),
        "FIRST SEEN" => Cell::new(text::since(event.first_seen, now)),
        "COUNT" => Cell::new(event.count.to_string()),
        "APP" => Cell::new(format!("{}/{}", event.app.namespace, event.app.name)),
        "OBJECT" => Cell::new(match (&event.made_by, event.objects) {
            (Some(made_by), 2..) => {
                format!("{} Pods {}{slash}{made_by}-*{gone}", event.objects, object.namespace)
            }
            _ => format!("{} {}{slash}{}{gone}", object.kind, object.namespace, object.name),
        }),
        "REASON" => Cell::new(&event.reason),
        _ => Cell::new(text::revision(&event.message)),
    }
}
