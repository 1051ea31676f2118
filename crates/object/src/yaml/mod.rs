//! YAML as the API machinery reads it: the last of duplicate keys counts, `010` is octal.
//!
//! The one place that reads with the YAML libraries.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Budget, Options};

mod breaks;
mod scalars;
mod tree;

pub use breaks::is_break;
pub use tree::Document;

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
pub fn read_without_aliases<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
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
pub fn read_with_few_aliases<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    read_by(text, options(text.len(), FEW_REPLAYED))
}

fn read_by<T: DeserializeOwned>(text: &str, options: Options) -> Result<T, YamlError> {
    serde_saphyr::from_str_with_options(&breaks::plain(text), options).map_err(|error| told(&error))
}

fn told(error: &serde_saphyr::Error) -> YamlError {
    let line = error.location().map(|location| location.line());
    // The first line says it; a picture of the place would follow.
    let message = error.without_snippet().to_string();
    let message = message.lines().next().unwrap_or_default().trim_end_matches(':').to_owned();
    YamlError { line, message }
}

/// Reads one document as a tree, as Go's library reads what it printed: each text as it was, also one with line breaks of YAML 1.1.
/// `<<` is a key unless its value is an alias, which no server prints. What is nested deeper than a hundred levels is left out of it, so
/// that one object of a list costs the others nothing: a server stores what is nested deeper.
///
/// # Errors
/// When the text is no YAML, or an alias bomb.
pub fn read_tree(text: &str) -> Result<Document, YamlError> {
    read_tree_after(text, &mut 0)
}

/// As [`read_tree`], of a part of a text: `replayed` is how much aliases made in the parts before, and grows by what they make in
/// this one.
///
/// # Errors
/// As [`read_tree`].
pub fn read_tree_after(text: &str, replayed: &mut usize) -> Result<Document, YamlError> {
    tree::read(text, replayed)
}

/// Deeper than people nest, and than any rule looks; trees are built and dropped by recursion.
const SHALLOW: usize = 100;

/// Leaves out what is nested deeper than so many levels.
fn cut(tree: &mut Value, levels: usize) {
    if levels == 0 && (tree.is_array() || tree.is_object()) {
        *tree = Value::Null;
        return;
    }
    match tree {
        Value::Array(items) => items.iter_mut().for_each(|item| cut(item, levels - 1)),
        Value::Object(members) => members.values_mut().for_each(|member| cut(member, levels - 1)),
        _ => {}
    }
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
    budget.max_depth = SHALLOW;
    serde_saphyr::options! {
        budget: Some(budget),
        emit_comments: false,
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        // To Go `1e999` is a text.
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: replayed },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nested_too_deep_costs_the_rest_nothing() {
        for levels in [80, 250, 9_000] {
            let deep = "- ".repeat(levels);
            let text = format!("items:\n- a: 1\n- b:\n  {deep}x\n- c: 3\n");
            let tree = read_tree(&text).unwrap().tree;
            assert_eq!((&tree["items"][0]["a"], &tree["items"][2]["c"]), (&1.into(), &3.into()), "{levels}");
            assert_eq!(tree.to_string().contains('x'), levels < SHALLOW, "{levels}");
        }
        let endless = format!("a:\n  {}x\n", "- ".repeat(11_000));
        assert!(read_tree(&endless).is_err());
    }
}
