//! Prints differences as text.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use serde_json::Value;
use taffrail_api::{DiffClass, DiffFieldRow, DiffList, DiffMethod, DiffResult, DiffRow, text};

use crate::output::answer::Console;
use crate::output::printable;
use crate::{phrase, say};

/// Maximum length of a value in a line, in characters; the rest of a longer one is left out.
const MAX_VALUE: usize = 160;

/// Prints each object that differs or could not be compared, with its fields, and the counts of all.
pub(super) fn text(list: &DiffList, is_one: bool, console: &Console) -> io::Result<()> {
    let (rows, mut out) = (&list.items, console.people());
    let now = Timestamp::now();
    for row in rows.iter().filter(|row| is_told(row)) {
        object(&mut out, row, is_one, now)?;
    }
    let count = |result| rows.iter().filter(|row| row.result == result).count();
    let conflicts =
        rows.iter().flat_map(|row| &row.fields).filter(|it| it.class == DiffClass::Conflict).count();
    let all = [
        (count(DiffResult::Create), "to create"),
        (count(DiffResult::Change), "to change"),
        (count(DiffResult::Unchanged), "unchanged"),
        (count(DiffResult::Unknown), "unknown"),
        // Where nothing was compared, the errors say so.
        (if rows.is_empty() { 0 } else { list.errors.len() }, "not compared"),
        (conflicts, if conflicts == 1 { "field in conflict" } else { "fields in conflict" }),
        (rows.iter().filter(|row| row.diff == DiffMethod::Merged).count(), "merged without the server"),
    ];
    out.flush()?;
    let told = counts(&all);
    if !told.is_empty() {
        console.tell(phrase!("{}\n", printable(&told)));
    }
    Ok(())
}

/// Returns the counts that are not zero, in words: `1 to create, 2 unchanged`.
pub(in crate::commands) fn counts(all: &[(usize, &str)]) -> String {
    let told = all.iter().filter(|(number, _)| *number > 0);
    told.map(|(number, word)| format!("{number} {word}")).collect::<Vec<_>>().join(", ")
}

/// Returns true if an object differs, or its being unchanged is not all that there is to tell.
fn is_told(row: &DiffRow) -> bool {
    let is_plain = matches!(row.diff, DiffMethod::Server | DiffMethod::Merged)
        && row.reason.is_none()
        && row.notes.is_empty()
        && row.ignored.is_empty()
        && row.rewritten.is_empty();
    row.result != DiffResult::Unchanged || !is_plain
}

/// Prints an object with its fields; with its cluster unless `is_one`.
pub(in crate::commands) fn object(
    out: &mut impl Write,
    row: &DiffRow,
    is_one: bool,
    now: Timestamp,
) -> io::Result<()> {
    let bold = Style::new().bold();
    let (sign, style, word) = match row.result {
        DiffResult::Create => ("+", AnsiColor::Green.on_default(), "is created"),
        DiffResult::Change => ("~", AnsiColor::Yellow.on_default(), "changes"),
        DiffResult::Unchanged => ("=", Style::new(), "is unchanged"),
        DiffResult::Unknown if row.diff == DiffMethod::Refused => {
            ("!", AnsiColor::Red.on_default(), "is refused")
        }
        DiffResult::Unknown => ("?", AnsiColor::Magenta.on_default(), "is unknown"),
    };
    let name = format!("{} {}", row.object.kind, row.object.path());
    let cluster = if is_one { String::new() } else { format!(" in {}", row.cluster) };
    say!(
        out,
        "{}{}{:#} {}{}{:#}{} {} ({})",
        style,
        sign,
        style,
        bold,
        printable(&name),
        bold,
        printable(&cluster),
        word,
        printable(&row.place)
    )?;
    if let Some(reason) = &row.reason {
        let how = match row.diff {
            DiffMethod::Merged => "merged without the server: ",
            _ => "",
        };
        say!(out, "    {}{}", how, printable(reason))?;
    }
    for note in &row.notes {
        say!(out, "    {}", printable(note))?;
    }
    // Of an object that does not exist its manifest tells all.
    if row.result == DiffResult::Create {
        return Ok(());
    }
    for it in &row.fields {
        field(out, it, now)?;
    }
    if row.fields_left_out > 0 {
        say!(out, "    and {} further fields", row.fields_left_out)?;
    }
    for it in &row.ignored {
        say!(out, "    ignored by {}: {}", printable(&it.rule), printable(&it.path))?;
    }
    for path in &row.rewritten {
        say!(out, "    the server stores another value than the manifest has: {}", printable(path))?;
    }
    Ok(())
}

fn field(out: &mut impl Write, field: &DiffFieldRow, now: Timestamp) -> io::Result<()> {
    let (sign, style, values) = match (&field.live, &field.wanted) {
        (Some(live), Some(wanted)) => {
            ("~", AnsiColor::Yellow.on_default(), format!("{} -> {}", value(live), value(wanted)))
        }
        (None, Some(wanted)) => ("+", AnsiColor::Green.on_default(), value(wanted)),
        (Some(live), None) => ("-", AnsiColor::Red.on_default(), value(live)),
        (None, None) => ("~", AnsiColor::Yellow.on_default(), String::new()),
    };
    let class = match field.class {
        DiffClass::Change => "",
        DiffClass::Drift => "drift",
        DiffClass::Conflict => "conflict",
    };
    let owners = field.owners.iter().map(|owner| {
        let by = owner.subresource.as_ref().map(|part| format!(" by {part}")).unwrap_or_default();
        let since = owner.since.map(|since| format!(", {}", text::since(Some(since), now)));
        format!("{}{by}{}", owner.manager, since.unwrap_or_default())
    });
    let owners = owners.collect::<Vec<_>>().join("; ");
    let whose = match (class, &*owners) {
        ("", "") => String::new(),
        ("", owners) => format!("  (also of {owners})"),
        (class, "") => format!("  ({class})"),
        (class, owners) => format!("  ({class}: {owners})"),
    };
    let (path, values) = (printable(&field.path), printable(&values));
    say!(out, "  {}{} {}: {}{:#}{}", style, sign, path, values, style, printable(&whose))
}

/// Returns a value as JSON, cut if it is long.
fn value(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_VALUE) {
        None => text,
        Some((at, _)) => {
            format!("{}… ({} characters)", text.get(..at).unwrap_or_default(), text.chars().count())
        }
    }
}
