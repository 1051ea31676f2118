//! Prints what becomes of objects as Markdown, for a comment on a pull request.
//!
//! All that comes from the repository or from clusters stands in code spans, in which it can be no link, no mention and no
//! HTML.

use std::io::{self, Write as _};

use taffrail_api::{DiffFieldRow, ImpactEffect, ImpactList, ImpactRow};

use super::git::Commits;
use super::print;
use crate::output::answer::Console;
use crate::output::printable;
use crate::say;

/// Maximum number of fields that are told of an object; the others are counted.
const MAX_FIELDS: usize = 10;

/// Maximum number of characters of a value.
const MAX_VALUE: usize = 80;

/// Maximum number of objects in the comment: hosts of repositories take no longer ones.
const MAX_OBJECTS: usize = 200;

/// Number of characters by which a commit is called.
const SHORT: usize = 10;

/// Prints the comment.
pub(super) fn comment(commits: &Commits, list: &ImpactList, console: &Console) -> io::Result<()> {
    let mut out = console.people();
    let short = |commit: &str| code(&commit.chars().take(SHORT).collect::<String>());
    let mut text = format!("### What changes from {} to {}\n\n", short(&commits.base), short(&commits.head));
    text.push_str(&format!("{}\n", print::counted(&list.items)));
    let told: Vec<&ImpactRow> =
        list.items.iter().filter(|row| row.effect != ImpactEffect::Unchanged).collect();
    let shown = told.get(..MAX_OBJECTS).unwrap_or(&told);
    for group in shown.chunk_by(|one, other| print::heading(one) == print::heading(other)) {
        if let Some(row) = group.first() {
            text.push_str(&format!(
                "\n#### {}\n\n| | object | |\n|---|---|---|\n",
                code(&print::heading(row))
            ));
        }
        for row in group {
            let name = format!("{} {}", row.object.kind, row.object.path());
            text.push_str(&format!("| {} | {} | {} |\n", sign(row.effect), cell(&name), told_of(row)));
        }
    }
    if told.len() > shown.len() {
        text.push_str(&format!("\nand {} further objects\n", told.len() - shown.len()));
    }
    if !list.errors.is_empty() {
        text.push_str("\n#### Not told\n\n");
        for error in list.errors.iter().take(MAX_OBJECTS) {
            let [cluster, scope, message] = [&error.cluster, &error.scope, &error.message].map(|it| code(it));
            text.push_str(&format!("- {cluster} {scope}: {message}\n"));
        }
    }
    for line in text.lines() {
        say!(out, "{}", printable(line))?;
    }
    out.flush()
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
    format!("{}: {} → {}", cell(&field.path), value(&field.live), value(&field.wanted))
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
