//! Reads the first YAML document of a text, including quoted strings that only Go's library accepts.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_saphyr::Options;

use super::YamlError;

/// The maximum number of lines of a text that [`read`] indents further; a text that needs more is an error.
const MAX_MOVED_LINES: usize = 256;

/// Reads the first document of `text` as a value of type `T`.
pub(super) fn read<T: DeserializeOwned>(text: &str, options: &Options) -> Result<T, YamlError> {
    let read = |text: &str| {
        serde_saphyr::from_str_with_options(text, options.clone()).map_err(|error| YamlError::from(&error))
    };
    fn syntax(error: &YamlError) -> Option<&YamlError> {
        Some(error)
    }
    moving_lines(first_document(text), read, syntax)
}

/// Reads `text` by `read`. If a line of a quoted string is indented too little for the parser, indents it further and
/// reads again; `syntax` tells the error of the parser.
pub(super) fn moving_lines<T, E>(
    text: &str,
    read: impl Fn(&str) -> Result<T, E>,
    syntax: impl Fn(&E) -> Option<&YamlError>,
) -> Result<T, E> {
    let mut text = Cow::Borrowed(text);
    let mut moved = 0;
    loop {
        let error = match read(&text) {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        let is_of_quotes = |error: &&YamlError| error.message.contains("multiline quoted scalar");
        let line = syntax(&error).filter(is_of_quotes).and_then(|error| error.line);
        let line = line.and_then(|line| usize::try_from(line).ok()?.checked_sub(1));
        match line.filter(|_| moved < MAX_MOVED_LINES) {
            Some(line) => text = moved_in(&text, line).into(),
            None => return Err(error),
        }
        moved += 1;
    }
}

/// Returns `text` with the line number `line`, from 0, indented 64 columns further. Inside a quoted string, leading
/// spaces of a line have no meaning.
fn moved_in(text: &str, line: usize) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for (at, text) in text.split_inclusive('\n').enumerate() {
        if at == line {
            out.push_str(&" ".repeat(64));
        }
        out.push_str(text);
    }
    out
}

fn first_document(text: &str) -> &str {
    let is_mark = |line: &str| line.starts_with("---") && line[3..].trim_start().is_empty();
    let mut at = 0;
    let mut has_content = false;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        if has_content && (is_mark(line) || content == "...") {
            return text.get(..at).unwrap_or(text);
        }
        has_content |=
            !(content.is_empty() || content.starts_with('#') || is_mark(line) || content.starts_with('%'));
        at += line.len();
    }
    text
}
