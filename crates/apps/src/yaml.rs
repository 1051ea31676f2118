//! YAML as the API machinery reads it: the last of duplicate keys counts, `010` is octal.
//!
//! The one place that reads with the YAML library.

use serde::de::DeserializeOwned;
use serde_saphyr::{Budget, Options, options::DuplicateKeyPolicy};

/// A text that is no YAML, or not the YAML that was expected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("at its line {line}: ")).unwrap_or_default())]
pub struct YamlError {
    /// On which line of the text, from 1, where that is known.
    pub line: Option<u64>,
    /// What is wrong, in one line.
    pub message: String,
}

/// Reads one document.
///
/// # Errors
/// When the text is no YAML, not what was expected, or an alias bomb.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    read_by(text, options(text.len(), MOST_REPLAYED))
}

/// Reads one document that repeats nothing: each byte of it is looked at once.
///
/// # Errors
/// As [`read`], and where it has an alias.
pub(crate) fn read_without_aliases<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let mut options = options(text.len(), 0);
    if let Some(budget) = &mut options.budget {
        budget.max_aliases = 0;
    }
    read_by(text, options)
}

/// Reads one document that repeats little of itself.
///
/// # Errors
/// As [`read`], and where aliases make more of it than people write.
pub(crate) fn read_with_few_aliases<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    read_by(text, options(text.len(), FEW_REPLAYED))
}

fn read_by<T: DeserializeOwned>(text: &str, options: Options) -> Result<T, YamlError> {
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map(|location| location.line());
        // The first line says it; a picture of the place would follow.
        let message = error.without_snippet().to_string();
        let message = message.lines().next().unwrap_or_default().trim_end_matches(':').to_owned();
        YamlError { line, message }
    })
}

/// How much aliases may make of a text.
const MOST_REPLAYED: usize = 1_000_000;

/// How much they make of what people write.
const FEW_REPLAYED: usize = 1_000;

/// Budgets: what a text of this size can honestly hold; only aliases can make more of it.
fn options(size: usize, replayed: usize) -> Options {
    let mut budget = Budget::default();
    budget.max_nodes = size.max(1024);
    budget.max_events = size.saturating_mul(2).max(4096);
    budget.max_total_scalar_bytes = size.saturating_mul(2).max(4096);
    budget.max_depth = 200;
    serde_saphyr::options! {
        budget: Some(budget),
        emit_comments: false,
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: replayed },
    }
}
