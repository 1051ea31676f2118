//! `taffrail rules show`: prints the rules of a kind as written.

use std::io::{self, Write};

use taffrail_object::kinds::names_kind;
use taffrail_rules::FoundRules;

use super::ShowArguments;
use crate::command_error::{CommandError, Exit, written};
use crate::emit;
use crate::output::answer::Console;
use crate::program;

pub(super) fn run(arguments: &ShowArguments, console: &Console) -> Result<Exit, CommandError> {
    let set = arguments.whose.rules.set();
    let all = set.all();
    let mut shown: Vec<FoundRules<'_>> = Vec::new();
    let mut notes = Vec::new();
    for word in &arguments.kinds {
        let is_meant = |found: &FoundRules<'_>| names_kind(word, found.group, found.kind);
        let mut found: Vec<_> = all.iter().copied().filter(is_meant).collect();
        if found.is_empty()
            && let Some((kind, group)) = word.split_once('.')
        {
            // A wildcard rule may cover the kind.
            found.extend(set.find(group, kind));
        }
        let built_in = taffrail_status::BUILT_IN.iter().find(|(group, kind)| names_kind(word, group, kind));
        if let Some((group, kind)) = built_in {
            let slash = if group.is_empty() { "" } else { "/" };
            notes.push(format!(
                "# builtin/{group}{slash}{kind}: built in, from kstatus; it decides if no rule above does"
            ));
        } else if found.is_empty() {
            let near = all
                .iter()
                .map(|found| {
                    (
                        strsim::damerau_levenshtein(&word.to_lowercase(), &found.kind.to_lowercase()),
                        found.kind,
                    )
                })
                .min()
                .filter(|(distance, _)| *distance <= 2);
            let complaint = CommandError::usage(format!("there are no rules for the kind {word}"));
            return Err(complaint.hint(match near {
                Some((_, near)) => format!("did you mean {near}?"),
                None => {
                    format!("{} lists the kinds that have rules", program::hinted("taffrail rules list"))
                }
            }));
        }
        shown.extend(found);
    }
    written(print(&shown, &notes, console))?;
    Ok(Exit::Yes)
}

fn print(shown: &[FoundRules<'_>], notes: &[String], console: &Console) -> io::Result<()> {
    let mut out = console.programs();
    let mut is_first = true;
    for found in shown {
        if !std::mem::take(&mut is_first) {
            emit!(out, "")?;
        }
        emit!(out, "# {}, after {}", found.name(), found.rules.source())?;
        match found.text() {
            Some(text) => emit!(out, "{}", text.trim_end())?,
            None => emit!(out, "# (the text of this rule is not stored separately)")?,
        }
    }
    notes.iter().try_for_each(|note| emit!(out, "{note}"))
}
