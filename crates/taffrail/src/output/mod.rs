//! How answers look.

pub(crate) mod answer;
pub(crate) mod progress;
pub(crate) mod table;

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use taffrail_status::Status;

use crate::cli::Color;

/// Decides about colours, for stdout and stderr: what is set here comes before `NO_COLOR` and its like.
pub(crate) fn colour(when: Color) {
    match when {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// The colour of a status: it supports the word, it never replaces it.
pub(crate) fn style(status: Status) -> Style {
    match status {
        Status::Failed | Status::NotFound => AnsiColor::Red.on_default(),
        Status::Unknown => AnsiColor::Magenta.on_default(),
        Status::Terminating | Status::InProgress => AnsiColor::Yellow.on_default(),
        Status::Current => AnsiColor::Green.on_default(),
    }
}

/// The width of the terminal that the answer goes to, or `None` when it goes elsewhere.
pub(crate) fn screen() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(width.0))
}

/// Text from outside on one line, without control characters: a message must not move the cursor.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(|character: char| character.is_control()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(line.chars().map(|character| match character {
            '\t' => ' ',
            character if character.is_control() => char::REPLACEMENT_CHARACTER,
            character => character,
        }));
    }
    Cow::Owned(out)
}
