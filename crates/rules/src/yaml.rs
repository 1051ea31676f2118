//! YAML as our own forms are read, where a key that stands twice is a mistake, and as Go reads it.
//!
//! The one place that reads with the YAML library.

use serde::de::DeserializeOwned;
use serde_saphyr::{Budget, Options, options::DuplicateKeyPolicy};

/// A text that is no YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("at line {line}: ")).unwrap_or_default())]
pub struct YamlError {
    /// On which line of the text, from 1, where that is known.
    pub line: Option<u64>,
    /// What is wrong, in one line.
    pub message: String,
}

/// Reads one document.
///
/// # Errors
/// When the text is no YAML, or an alias bomb.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    serde_saphyr::from_str_with_options(text, options(text.len())).map_err(|error| told(&error))
}

fn told(error: &serde_saphyr::Error) -> YamlError {
    let line = error.location().map(|location| location.line());
    // The first line says it; a picture of the place would follow.
    let message = error.without_snippet().to_string();
    let message = message.lines().next().unwrap_or_default().trim_end_matches(':').to_owned();
    YamlError { line, message }
}

/// How many lines may be moved so that a text can be read.
#[cfg(feature = "lua")]
const MOVED: usize = 256;

/// Reads the first document as Go's reader does: the last of equal keys counts, `yes` and `on` are true, and the lines of a text in
/// quotes may begin anywhere.
///
/// # Errors
/// When the text is no YAML, or an alias bomb.
#[cfg(feature = "lua")]
pub(crate) fn read_as_go<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let mut options = options(text.len());
    options.duplicate_keys = DuplicateKeyPolicy::LastWins;
    options.strict_booleans = false;
    options.legacy_octal_numbers = true;
    let mut text = std::borrow::Cow::Borrowed(first_document(text));
    let mut moved = 0;
    loop {
        let error = match serde_saphyr::from_str_with_options(&text, options.clone()) {
            Ok(read) => return Ok(read),
            Err(error) => told(&error),
        };
        let line = error.line.and_then(|line| usize::try_from(line).ok()?.checked_sub(1));
        match line.filter(|_| error.message.contains("multiline quoted scalar") && moved < MOVED) {
            Some(line) => text = moved_in(&text, line).into(),
            None => return Err(error),
        }
        moved += 1;
    }
}

/// A line further to the right. Inside a text in quotes, spaces at the beginning of a line mean nothing.
#[cfg(feature = "lua")]
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

#[cfg(feature = "lua")]
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

/// Budgets: what a text of this size can honestly hold; only aliases can make more of it.
fn options(size: usize) -> Options {
    let mut budget = Budget::default();
    budget.max_nodes = size.max(1024);
    budget.max_events = size.saturating_mul(2).max(4096);
    budget.max_total_scalar_bytes = size.saturating_mul(2).max(4096);
    budget.max_depth = 64;
    serde_saphyr::options! {
        budget: Some(budget),
        emit_comments: false,
        duplicate_keys: DuplicateKeyPolicy::Error,
        // `is: off` is a word.
        strict_booleans: true,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 1_000_000 },
    }
}
