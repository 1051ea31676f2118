//! Prints what becomes of objects as text.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use taffrail_api::{ImpactEffect, ImpactList, ImpactRow};

use crate::commands::diff::print;
use crate::output::answer::Console;
use crate::output::printable;
use crate::{phrase, say};

/// Prints the objects that do not stay as they are, by cluster and app, and the counts of all.
pub(super) fn text(list: &ImpactList, console: &Console) -> io::Result<()> {
    let (rows, mut out) = (&list.items, console.people());
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
    console.tell(phrase!("{}\n", printable(&counted(list))));
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
        if is_told_already(row) {
            say!(out, "    {}", DIFFERS_ALREADY)?;
        }
        return Ok(());
    }
    let (sign, style) = match row.effect {
        ImpactEffect::Delete => ("-", AnsiColor::Red.on_default()),
        _ => ("=", Style::new()),
    };
    let bold = Style::new().bold();
    let name = format!("{} {}", row.object.kind, row.object.path());
    let words = words_of(row);
    say!(out, "{}{}{:#} {}{}{:#} {}", style, sign, style, bold, printable(&name), bold, printable(&words))
}

/// The words for a difference that is not of the change.
pub(super) const DIFFERS_ALREADY: &str = "it differs already: the change leaves its manifest as it was";

/// Returns true if an object differs, but not by the change.
pub(super) fn is_told_already(row: &ImpactRow) -> bool {
    row.differs_already
}

/// Returns what becomes of an object, with the reason if it has one.
pub(super) fn words_of(row: &ImpactRow) -> String {
    let reason = row.reason.iter().map(|reason| format!(" ({reason})"));
    std::iter::once(words(row.effect).to_owned()).chain(reason).collect()
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
pub(super) fn counted(list: &ImpactList) -> String {
    let rows = &list.items;
    let count = |effect| rows.iter().filter(|row| row.effect == effect).count();
    let restarts = count(ImpactEffect::Restart);
    let to_change = match restarts {
        0 => "to change".to_owned(),
        1 => "to change (1 replaces its Pods)".to_owned(),
        many => format!("to change ({many} replace their Pods)"),
    };
    let already = rows.iter().filter(|row| is_told_already(row)).count();
    let all = [
        (count(ImpactEffect::Create), "to create"),
        (count(ImpactEffect::Change) + restarts, &*to_change),
        (already, if already == 1 { "of them differs already" } else { "of them differ already" }),
        (count(ImpactEffect::Delete), "to delete"),
        (count(ImpactEffect::Leave), "no longer declared"),
        (count(ImpactEffect::Unchanged), "unchanged"),
        (count(ImpactEffect::Unknown), "unknown"),
    ];
    match (&*print::counts(&all), list.errors.is_empty()) {
        ("", true) => "no objects are concerned".to_owned(),
        ("", false) => "nothing can be told".to_owned(),
        (told, true) => told.to_owned(),
        (told, false) => format!("{told}; not all can be told"),
    }
}
