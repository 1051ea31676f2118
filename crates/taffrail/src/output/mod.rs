//! How answers look.

pub(crate) mod answer;
pub(crate) mod progress;
pub(crate) mod table;

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use taffrail_status::Status;
use unicode_width::UnicodeWidthStr as _;

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

/// The width that the answer has to fit: that of the terminal that it goes to, or `COLUMNS` where that is exported,
/// as by `watch`; `None` where it has none.
pub(crate) fn screen() -> Option<usize> {
    let exported = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    let terminal = terminal_size::terminal_size_of(std::io::stdout());
    terminal.map(|(width, _)| usize::from(width.0)).or_else(exported)
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

/// Text that begins with `lead`, as [`printable`], broken between words where the screen ends; its further lines begin
/// below the text. A word that is longer than a line, such as a path, stays whole. Without a screen it is one line.
pub(crate) fn wrapped(lead: &str, text: &str, screen: Option<usize>) -> String {
    let text = printable(text);
    let Some(screen) = screen else { return format!("{lead}{text}") };
    let indent = " ".repeat(lead.width());
    let mut out = lead.to_owned();
    let mut column = lead.width();
    for word in text.split(' ') {
        if column > indent.len() && column + 1 + word.width() > screen {
            out.push('\n');
            out.push_str(&indent);
            column = indent.len();
        } else if column > indent.len() {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.width();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_end_between_words_and_begin_below_the_text() {
        let text = "the node was low on memory";
        assert_eq!(wrapped("  - ", text, Some(18)), "  - the node was\n    low on memory");
        assert_eq!(wrapped("  - ", text, Some(200)), format!("  - {text}"));
        assert_eq!(wrapped("  - ", text, None), format!("  - {text}"));
        // Half of such a word is of no use to anybody.
        assert_eq!(
            wrapped("  ", "see registry.example/web:2 there", Some(12)),
            "  see\n  registry.example/web:2\n  there"
        );
        assert_eq!(wrapped("  ", "", Some(12)), "  ");
    }
}
