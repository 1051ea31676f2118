//! The objects that are not synced, and the fields in which they differ.

use std::io::{self, Write};

use anstyle::Style;
use taffrail_api::question::ExplainedSubject;

use super::{MAX_NAMED, more, object};
use crate::output::indented;
use crate::say;

/// Prints the first [`MAX_NAMED`] objects that the delivery tool reports as not synced, without those that the problem
/// names, and the number of the others; then the remark about differences that are not known, if there is one. Prints
/// nothing if there is no such object.
pub(super) fn print(out: &mut impl Write, told: &ExplainedSubject) -> io::Result<()> {
    let bold = Style::new().bold();
    // The problem already says the others.
    let unsynced = told.unsaid();
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
    more(out, &told.row, unsynced.len().saturating_sub(MAX_NAMED))?;
    match &told.differences {
        Some(told) => indented(out, "  ", told),
        None => Ok(()),
    }
}
