//! `taffrail rules list`: the kinds that have rules.

use std::io;

use taffrail_api::{ErrorRow, RuleList, RuleRow};

use super::ListArguments;
use crate::cli::ListOutput;
use crate::command_error::{CommandError, Exit, written};
use crate::commands::get;
use crate::output::answer::Console;
use crate::output::names::NameWriter;
use crate::output::screen;
use crate::output::table::{Cell, Table};
use crate::phrase;

pub(super) fn run(arguments: &ListArguments, console: &Console) -> Result<Exit, CommandError> {
    let set = arguments.whose.rules.set();
    let own = set.all().into_iter().map(|found| RuleRow {
        group: found.group.to_owned(),
        kind: found.kind.to_owned(),
        origin: found.origin.as_str().into(),
        branches: found.rules.branches().len(),
        source: found.rules.source().to_owned(),
    });
    let built_in = taffrail_status::BUILT_IN.iter().map(|(group, kind)| RuleRow {
        group: (*group).to_owned(),
        kind: (*kind).to_owned(),
        origin: "builtin".into(),
        branches: 0,
        source: String::new(),
    });
    let scripts = set.scripts().flat_map(|script| {
        script.kinds().into_iter().map(|kind| RuleRow {
            group: kind.group,
            kind: kind.kind,
            origin: script.origin().as_str().into(),
            branches: 0,
            source: kind.language.to_owned(),
        })
    });
    let words: Vec<String> = arguments.words.iter().map(|word| word.to_lowercase()).collect();
    let is_wanted = |item: &RuleRow| {
        let name = format!("{}.{}", item.kind, item.group).to_lowercase();
        words.is_empty() || words.iter().any(|word| name.contains(word))
    };
    let items: Vec<RuleRow> = scripts.chain(own).chain(built_in).filter(is_wanted).collect();
    written(print(arguments.output, items, console))?;
    Ok(Exit::Yes)
}

fn print(form: ListOutput, items: Vec<RuleRow>, console: &Console) -> io::Result<()> {
    match form {
        ListOutput::Json | ListOutput::Yaml => {
            get::document(form, &RuleList::of(items, Vec::<ErrorRow>::new()), console)
        }
        ListOutput::Name => NameWriter::all(
            items.iter().map(|item| {
                let dot = if item.group.is_empty() { "" } else { "." };
                format!("{}{dot}{}", item.kind, item.group)
            }),
            console,
        ),
        ListOutput::Table | ListOutput::Wide => {
            if items.is_empty() {
                console.tell(phrase!("No rules match these names.\n"));
                return Ok(());
            }
            let wide = form == ListOutput::Wide;
            let header = vec!["GROUP", "KIND", "FROM", "BRANCHES", "SOURCE"];
            let mut table = Table::new(console.people(), header, screen()).whole(wide);
            for item in items {
                let branches = if item.branches == 0 { String::new() } else { item.branches.to_string() };
                table.row(vec![
                    Cell::new(&item.group),
                    Cell::new(&item.kind),
                    Cell::new(&item.origin),
                    Cell::new(branches),
                    Cell::new(&item.source),
                ])?;
            }
            table.finish()
        }
    }
}
