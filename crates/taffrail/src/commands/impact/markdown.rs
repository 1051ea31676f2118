//! Prints what becomes of objects as Markdown, for a comment on a pull request.
//!
//! All that comes from the repository or from clusters stands in code spans, in which it can be no link, no mention and no
//! HTML.

use std::io::{self, Write as _};

use taffrail_api::{DiffClass, DiffFieldRow, ImpactEffect, ImpactList, ImpactRow};

use super::git::Commits;
use super::print;
use crate::command_error::CommandError;
use crate::output::answer::Console;
use crate::output::printable;
use crate::say;

/// Maximum number of fields that are told of an object; the others are counted.
const MAX_FIELDS: usize = 10;

/// Maximum number of characters of a value.
const MAX_VALUE: usize = 80;

/// Maximum length of the comment in bytes: GitHub takes 65,536.
const MAX_LENGTH: usize = 60_000;

/// Maximum length of a row in bytes; a longer one is left out.
const MAX_ROW: usize = 4_000;

/// Number of characters by which a commit is called.
const SHORT: usize = 10;

/// Prints the comment.
pub(super) fn comment(
    commits: &Commits,
    list: &ImpactList,
    warnings: &[CommandError],
    console: &Console,
) -> io::Result<()> {
    let mut out = console.people();
    let short = |commit: &str| code(&commit.chars().take(SHORT).collect::<String>());
    let mut text = Comment::default();
    text.add(&format!("### What changes from {} to {}\n\n", short(&commits.base), short(&commits.head)));
    text.add(&format!("{}\n", print::counted(list)));
    // What is not known comes first: a comment that is too long is cut at its end.
    if !list.errors.is_empty() || !warnings.is_empty() {
        text.add("\n#### Not told\n\n");
    }
    for error in &list.errors {
        let [cluster, scope, message] = [&error.cluster, &error.scope, &error.message].map(|it| code(it));
        text.add(&format!("- {cluster} {scope}: {message}\n"));
    }
    for warning in warnings {
        text.add(&format!("- {}\n", code(warning.message())));
    }
    let told: Vec<&ImpactRow> =
        list.items.iter().filter(|row| row.effect != ImpactEffect::Unchanged).collect();
    for group in told.chunk_by(|one, other| print::heading(one) == print::heading(other)) {
        if let Some(row) = group.first() {
            let heading = code(&print::heading(row));
            text.add(&format!("\n#### {heading}\n\n| | object | |\n|---|---|---|\n"));
        }
        for row in group {
            let name = format!("{} {}", row.object.kind, row.object.path());
            text.add(&format!("| {} | {} | {} |\n", sign(row.effect), cell(&name), told_of(row)));
        }
    }
    for line in text.text.lines() {
        say!(out, "{}", printable(line))?;
    }
    if text.left_out > 0 {
        say!(out)?;
        say!(out, "and {} further lines", text.left_out)?;
    }
    out.flush()
}

/// The text of a comment, within its bound.
#[derive(Default)]
struct Comment {
    text: String,
    /// The number of lines that found no room.
    left_out: usize,
}

impl Comment {
    fn add(&mut self, lines: &str) {
        if lines.len() > MAX_ROW || self.text.len() + lines.len() > MAX_LENGTH {
            self.left_out += 1;
        } else {
            self.text.push_str(lines);
        }
    }
}

fn sign(effect: ImpactEffect) -> &'static str {
    match effect {
        ImpactEffect::Create => "🟢",
        ImpactEffect::Change => "🟡",
        ImpactEffect::Restart => "🔁",
        ImpactEffect::Delete => "🔴",
        ImpactEffect::Leave | ImpactEffect::Unchanged => "⚪",
        ImpactEffect::Unknown => "❓",
    }
}

/// Returns what becomes of an object, with its fields.
fn told_of(row: &ImpactRow) -> String {
    let mut told = print::words(row.effect).to_owned();
    if let Some(reason) = &row.reason {
        told.push_str(&format!(" ({})", cell(reason)));
    }
    if print::is_told_already(row) {
        told.push_str(&format!("<br>{}", print::DIFFERS_ALREADY));
    }
    let Some(diff) = row.diff.as_ref().filter(|_| row.effect != ImpactEffect::Create) else { return told };
    let reasons = diff.reason.iter().chain(&diff.notes).map(|text| cell(text));
    let fields = diff.fields.iter().take(MAX_FIELDS).map(field);
    for part in reasons.chain(fields) {
        told.push_str(&format!("<br>{part}"));
    }
    let more = diff.fields.len().saturating_sub(MAX_FIELDS) + diff.fields_left_out;
    if more > 0 {
        told.push_str(&format!("<br>and {more} further fields"));
    }
    told
}

fn field(field: &DiffFieldRow) -> String {
    let value = |value: &Option<serde_json::Value>| match value {
        None => "nothing".to_owned(),
        Some(value) => {
            let text = value.to_string();
            let cut: String = text.chars().take(MAX_VALUE).collect();
            cell(&if cut.len() < text.len() { cut + "…" } else { cut })
        }
    };
    let owners = field.owners.iter().map(|owner| cell(&owner.manager)).collect::<Vec<_>>().join(", ");
    let whose = match (field.class, &*owners) {
        (DiffClass::Conflict, "") => " (conflict)".to_owned(),
        (DiffClass::Conflict, owners) => format!(" (conflict: {owners})"),
        _ => String::new(),
    };
    format!("{}: {} → {}{whose}", cell(&field.path), value(&field.live), value(&field.wanted))
}

/// Returns a code span with this text for a cell of a table, which a bar would end.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Returns a code span with this text on one line.
fn code(text: &str) -> String {
    let text: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // A span that begins or ends with its fence's character needs a space there.
    format!("{fence} {} {fence}", text.trim())
}

#[cfg(test)]
mod tests {
    use super::{cell, code};

    #[test]
    fn a_text_cannot_leave_its_code_span() {
        assert_eq!(code("web"), "` web `");
        assert_eq!(code("a`b``c"), "``` a`b``c ```");
        assert_eq!(cell("@team | <b>\n# x"), "` @team \\| <b> # x `");
        assert_eq!(code(""), "`  `");
    }
}
