//! Prints the planned writes of an operation as text.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use taffrail_api::operations::PlannedWrite;
use taffrail_apps::verbs::DiffLine;

use crate::output::printable;
use crate::say;

/// Prints a line with an object that Taffrail writes and its cluster, to whose name `note` is appended, and then the
/// lines of the diff.
pub(super) fn print(out: &mut impl Write, write: &PlannedWrite, cluster: &str, note: &str) -> io::Result<()> {
    let bold = Style::new().bold();
    let name = format!("{} {}", write.object.kind, write.called());
    say!(out, "{}{}{:#} in {}{}", bold, printable(&name), bold, printable(cluster), printable(note))?;
    for line in &write.lines {
        let (sign, style, text) = match line {
            DiffLine::Context(text) => (" ", Style::new(), text),
            DiffLine::Removed(text) => ("-", AnsiColor::Red.on_default(), text),
            DiffLine::Added(text) => ("+", AnsiColor::Green.on_default(), text),
        };
        say!(out, "{}{} {}{:#}", style, sign, printable(text), style)?;
    }
    Ok(())
}
