//! YAML as the API machinery reads it. The one place of this crate that reads with the YAML library.

use serde::de::DeserializeOwned;
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Budget, Options};

/// Reads all documents of a text; empty ones count as nothing.
pub(crate) fn read_all<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, String> {
    serde_saphyr::from_multiple_with_options(text, options(text.len())).map_err(|error| {
        let line = error.location().map(|location| format!("at line {}: ", location.line()));
        let message = error.without_snippet().to_string();
        let message = message.lines().next().unwrap_or_default().trim_end_matches(':').to_owned();
        format!("{}{message}", line.unwrap_or_default())
    })
}

/// Budgets: what a text of this size can honestly hold; only aliases can make more of it.
fn options(size: usize) -> Options {
    let mut budget = Budget::default();
    budget.max_nodes = size.max(1024);
    budget.max_events = size.saturating_mul(2).max(4096);
    budget.max_total_scalar_bytes = size.saturating_mul(2).max(4096);
    budget.max_documents = size.max(1024);
    budget.max_depth = 200;
    serde_saphyr::options! {
        budget: Some(budget),
        emit_comments: false,
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 1_000_000 },
    }
}
