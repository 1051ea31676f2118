//! The objects that are not synced, and the fields in which they differ.

use std::io::{self, Write};

use anstyle::Style;
use taffrail_api::question::differences;
use taffrail_apps::{App, ObjectSync, Problem};

use super::{MAX_NAMED, more, object};
use crate::output::indented;
use crate::say;

/// Prints the objects that the delivery tool reports as not synced, with the command that shows all differences.
pub(super) fn print(out: &mut impl Write, app: &App, unsynced: &[ObjectSync]) -> io::Result<()> {
    let bold = Style::new().bold();
    // The problem already says this.
    let is_said = |own: &&ObjectSync| {
        let ends = |problem: &Problem| !own.message.is_empty() && problem.message.ends_with(&own.message);
        app.problems.iter().any(|problem| problem.object.as_ref() == Some(&own.key) && ends(problem))
    };
    let unsynced: Vec<_> = unsynced.iter().filter(|own| !is_said(own)).collect();
    if unsynced.is_empty() {
        return Ok(());
    }
    say!(out)?;
    say!(out, "{}Not synced{:#}", bold, bold)?;
    for own in unsynced.iter().take(MAX_NAMED) {
        let colon = if own.message.is_empty() { "" } else { ": " };
        let name = object(&own.key);
        indented(out, "  ", &format!("{name}  {}{colon}{}", own.state.as_str(), own.message))?;
        own.differs.iter().try_for_each(|fields| indented(out, "    - ", &fields.words()))?;
    }
    more(out, app, unsynced.len().saturating_sub(MAX_NAMED))?;
    match differences(app, &unsynced) {
        Some(told) => indented(out, "  ", &told),
        None => Ok(()),
    }
}
