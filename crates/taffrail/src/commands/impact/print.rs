//! Prints what becomes of objects as text.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use taffrail_api::{ImpactEffect, ImpactRow};

use crate::commands::diff::print;
use crate::output::answer::Console;
use crate::output::printable;
use crate::{phrase, say};

/// Prints the objects that do not stay as they are, by cluster and app, and the counts of all.
pub(super) fn text(rows: &[ImpactRow], console: &Console) -> io::Result<()> {
    let mut out = console.people();
    let now = Timestamp::now();
    let told: Vec<&ImpactRow> = rows.iter().filter(|row| row.effect != ImpactEffect::Unchanged).collect();
    for (at, group) in told.chunk_by(|one, other| heading(one) == heading(other)).enumerate() {
        if at > 0 {
            say!(out)?;
        }
        let bold = Style::new().bold();
        if let Some(row) = group.first() {
            say!(out, "{}{}{:#}", bold, printable(&heading(row)), bold)?;
        }
        for row in group {
            object(&mut out, row, now)?;
        }
    }
    out.flush()?;
    console.tell(phrase!("{}\n", printable(&counted(rows))));
    Ok(())
}

/// Returns the cluster of a row, its app and the folder of that.
pub(super) fn heading(row: &ImpactRow) -> String {
    let of_app = row.app.iter().map(|app| format!("  {app}"));
    let of_folder = row.folder.iter().map(|folder| format!(" ({folder})"));
    std::iter::once(row.cluster.clone()).chain(of_app).chain(of_folder).collect()
}

fn object(out: &mut impl Write, row: &ImpactRow, now: Timestamp) -> io::Result<()> {
    if let Some(diff) = &row.diff {
        print::object(out, diff, true, now)?;
        if row.effect == ImpactEffect::Restart {
            say!(out, "    its Pods are replaced")?;
        }
        return Ok(());
    }
    let (sign, style) = match row.effect {
        ImpactEffect::Delete => ("-", AnsiColor::Red.on_default()),
        _ => ("=", Style::new()),
    };
    let bold = Style::new().bold();
    let name = format!("{} {}", row.object.kind, row.object.path());
    say!(out, "{}{}{:#} {}{}{:#} {}", style, sign, style, bold, printable(&name), bold, words(row.effect))
}

/// Returns what becomes of an object, as the end of a sentence.
pub(super) fn words(effect: ImpactEffect) -> &'static str {
    match effect {
        ImpactEffect::Create => "is created",
        ImpactEffect::Change => "changes",
        ImpactEffect::Restart => "changes, and its Pods are replaced",
        ImpactEffect::Delete => "is deleted",
        ImpactEffect::Leave => "is no longer declared, and stays",
        ImpactEffect::Unchanged => "is unchanged",
        ImpactEffect::Unknown => "is unknown",
    }
}

/// Returns the number of objects by what becomes of them.
pub(super) fn counted(rows: &[ImpactRow]) -> String {
    let count = |effect| rows.iter().filter(|row| row.effect == effect).count();
    let all = [
        (count(ImpactEffect::Create), "to create"),
        (count(ImpactEffect::Change) + count(ImpactEffect::Restart), "to change"),
        (count(ImpactEffect::Restart), "with Pods to replace"),
        (count(ImpactEffect::Delete), "to delete"),
        (count(ImpactEffect::Leave), "no longer declared"),
        (count(ImpactEffect::Unchanged), "unchanged"),
        (count(ImpactEffect::Unknown), "unknown"),
    ];
    let told: Vec<String> = all
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    if told.is_empty() { "no objects are concerned".to_owned() } else { told.join(", ") }
}
