//! YAML as our own forms are read: a key that stands twice is a mistake.
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
    serde_saphyr::from_str_with_options(text, options(text.len())).map_err(|error| {
        let line = error.location().map(|location| location.line());
        // The first line says it; a picture of the place would follow.
        let message = error.without_snippet().to_string();
        let message = message.lines().next().unwrap_or_default().trim_end_matches(':').to_owned();
        YamlError { line, message }
    })
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
