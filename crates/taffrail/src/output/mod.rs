//! Prints to the terminal, to pipes and to pagers.

pub(crate) mod answer;
pub(crate) mod names;
pub(crate) mod progress;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod text;

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use taffrail_api::{AppRow, SyncRow};
use taffrail_apps::{ObjectSyncState, ProblemSeverity, SyncState};
use taffrail_status::Status;
use unicode_width::UnicodeWidthStr;

use crate::cli::Color;

pub(crate) use text::{Phrase, Printable, Sieve, printable};

/// Sets for the whole process if colours are printed on stdout and stderr. `Always` and `Never` override `NO_COLOR` and
/// similar variables.
pub(crate) fn colour(when: Color) {
    match when {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Returns the colour for a status: red for Failed and NotFound, magenta for Unknown, yellow for Terminating and
/// InProgress, green for Current.
pub(crate) fn style(status: Status) -> Style {
    match status {
        Status::Failed | Status::NotFound => AnsiColor::Red.on_default(),
        Status::Unknown => AnsiColor::Magenta.on_default(),
        Status::Terminating | Status::InProgress => AnsiColor::Yellow.on_default(),
        Status::Current => AnsiColor::Green.on_default(),
    }
}

/// Returns the colour of an app's present status; that of a Ready app is red with a problem that is an error, yellow
/// with another one.
pub(crate) fn app_style(app: &AppRow) -> Style {
    let is_ready = app.effective == Status::Current;
    match app.problem.as_ref().map(|problem| problem.severity) {
        Some(ProblemSeverity::Error) if is_ready => style(Status::Failed),
        Some(_) if is_ready => style(Status::InProgress),
        _ => style(app.effective),
    }
}

/// Returns the colour of an object's status; that of a Ready object is red if its sync or hook failed, yellow if it is
/// not synced for another reason.
pub(crate) fn object_style(status: Status, sync: Option<ObjectSyncState>) -> Style {
    match sync.filter(|_| status == Status::Current) {
        Some(ObjectSyncState::SyncFailed | ObjectSyncState::HookFailed) => style(Status::Failed),
        Some(_) => style(Status::InProgress),
        None => style(status),
    }
}

/// Returns the colour of a sync state: magenta if it is not live, green for Synced, red for Failed, none for Unknown,
/// else yellow.
pub(crate) fn sync_style(sync: &SyncRow) -> Style {
    match sync.effective {
        _ if !sync.freshness.is_live() => style(Status::Unknown),
        SyncState::Synced => style(Status::Current),
        SyncState::Failed => style(Status::Failed),
        SyncState::OutOfSync | SyncState::Syncing | SyncState::Suspended => style(Status::InProgress),
        SyncState::Unknown => Style::new(),
    }
}

/// Returns the width that the answer must fit: that of the terminal, or `COLUMNS` if exported, as `watch` does; `None`
/// if there is neither.
pub(crate) fn screen() -> Option<usize> {
    let exported = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    let terminal = terminal_size::terminal_size_of(std::io::stdout());
    terminal.map(|(width, _)| usize::from(width.0)).or_else(exported)
}

/// Minimum width for wrapped text, in columns, also on a narrower screen.
const MIN_WIDTH: usize = 20;

/// Writes text in lines that fit the screen: the first begins with `lead`, the others are indented by its width.
/// Without a screen writes one line.
pub(crate) fn indented(out: &mut impl Write, lead: &str, text: &str) -> io::Result<()> {
    let lead = printable(lead);
    let below = " ".repeat(lead.width());
    let lines = wrapped(&printable(text), screen(), lead.width());
    for (at, line) in lines.iter().enumerate() {
        writeln!(out, "{}{line}", if at == 0 { &*lead } else { &below })?;
    }
    Ok(())
}

/// Returns text cut to `columns` columns, with an ellipsis if it was longer; unchanged if `columns` is `None`.
pub(crate) fn fitting(text: &str, columns: Option<usize>) -> String {
    columns.map_or_else(|| text.to_owned(), |columns| table::cut(text, columns).into_owned())
}

/// Returns text in lines that fit a screen after `indent` columns, without breaking words; in one line if `screen` is
/// `None`.
fn wrapped(text: &str, screen: Option<usize>, indent: usize) -> Vec<String> {
    let Some(width) = screen.map(|screen| screen.saturating_sub(indent).max(MIN_WIDTH)) else {
        return vec![text.to_owned()];
    };
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn words_are_wrapped_and_never_cut() {
        let text = "one two three four five six seven";
        assert_eq!(wrapped(text, None, 4), [text]);
        assert_eq!(wrapped(text, Some(24), 4), ["one two three four", "five six seven"]);
        assert_eq!(
            wrapped("averyveryveryverylongword it is", Some(20), 0),
            ["averyveryveryverylongword", "it is"]
        );
        assert_eq!(wrapped("", Some(20), 0), [""]);
    }
}
