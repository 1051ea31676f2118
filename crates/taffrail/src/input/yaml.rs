//! YAML as the API machinery reads it: the last of duplicate keys counts, `010` is octal.
//!
//! The one place that knows the YAML library.

use serde_json::Value;
use serde_saphyr::{Budget, Options, options::DuplicateKeyPolicy};

/// What is wrong with a document, and on which of its lines (from 1), where that is known.
pub(super) struct YamlError {
    pub(super) line: Option<u64>,
    pub(super) message: String,
}

/// Reads one document.
pub(super) fn document(text: &str) -> Result<Value, YamlError> {
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
    const ALIASED: usize = 1_000_000;

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
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED },
    }
}
