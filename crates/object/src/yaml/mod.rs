//! Reads YAML, as Go's API machinery does or by the strict rules of Taffrail's own files.
//!
//! | function | for |
//! |---|---|
//! | [`read`], [`read_first`], [`read_all`] | values of a type, as Go reads them: the last of duplicate keys counts, `010` is octal, `yes` is true |
//! | [`read_without_aliases`], [`read_with_few_aliases`] | the same of texts that a tenant writes |
//! | [`read_strict`] | Taffrail's own files: a duplicate key is an error, `off` is a string |
//! | [`read_tree`], [`read_items`] | objects as Go's library prints them |
//! | [`read_written`] | objects as people write them, with the lines of their values |
//!
//! All options and limits of the YAML libraries are set here.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Budget, Options};

mod breaks;
mod first;
mod items;
mod scalars;
mod tree;

pub use items::{FaultyItem, Items, read_items};
pub use tree::{Document, Written, WrittenError};

/// The error for a text that is not YAML, or cannot be read as the expected type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map(|line| format!("at line {line}: ")).unwrap_or_default())]
pub struct YamlError {
    /// The line of the text, from 1, if it is known.
    pub line: Option<u64>,
    /// The error, in one line.
    pub message: String,
}

impl From<&serde_saphyr::Error> for YamlError {
    fn from(error: &serde_saphyr::Error) -> YamlError {
        let line = error.location().map(|location| location.line());
        YamlError { line, message: first_line(&error.without_snippet().to_string()) }
    }
}

/// Returns the first line of a parser's message, which contains the error, without a colon at its end.
fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

/// Reads a text of one document as Go's library for Kubernetes does: of duplicate keys the last counts, `010` is octal,
/// and `yes` is true.
///
/// # Errors
/// If the text is not YAML, does not have the structure of `T`, nests deeper than 100 levels, or its aliases expand to
/// too much.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    read_by(text, options(text.len(), MAX_REPLAYED))
}

/// Reads one document as Go does, but refuses aliases, so that each byte is read once.
///
/// # Errors
/// As in [`read`], and if the text has an alias.
pub fn read_without_aliases<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let mut options = options(text.len(), 0);
    if let Some(budget) = &mut options.budget {
        budget.max_aliases = 0;
    }
    read_by(text, options)
}

/// Reads one document as Go does, but refuses a text whose aliases repeat more than `MAX_REPLAYED_BY_PEOPLE` parser
/// events.
///
/// # Errors
/// As in [`read`], and if aliases repeat too much.
pub fn read_with_few_aliases<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    read_by(text, options(text.len(), MAX_REPLAYED_BY_PEOPLE))
}

fn read_by<T: DeserializeOwned>(text: &str, options: Options) -> Result<T, YamlError> {
    serde_saphyr::from_str_with_options(&breaks::plain(text), options).map_err(|error| (&error).into())
}

/// Reads the first document as Go does, and ignores the rest. The lines of a quoted string may be indented less than
/// usual.
///
/// # Errors
/// As in [`read`].
pub fn read_first<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    first::read(text, &options(text.len(), MAX_REPLAYED))
}

/// Reads all documents of a text as Go does; skips empty ones.
///
/// # Errors
/// As in [`read`], for any document.
pub fn read_all<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, YamlError> {
    let options = options(text.len(), MAX_REPLAYED);
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| (&error).into())
}

/// Reads one document of Taffrail's own files: a duplicate key is an error, only `true` and `false` are booleans, and
/// `010` is ten.
///
/// # Errors
/// If the text is not YAML, does not have the structure of `T`, nests deeper than 100 levels, or its aliases expand to
/// too much.
pub fn read_strict<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    read_strictly(text, options(text.len(), MAX_REPLAYED).budget)
}

/// Reads one document as [`read_strict`] does, but refuses aliases, so that each byte is read once.
///
/// # Errors
/// The errors of [`read_strict`]; and if the text has an alias.
pub fn read_strict_without_aliases<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let mut budget = options(text.len(), 0).budget;
    budget.iter_mut().for_each(|budget| budget.max_aliases = 0);
    read_strictly(text, budget)
}

fn read_strictly<T: DeserializeOwned>(text: &str, budget: Option<Budget>) -> Result<T, YamlError> {
    let strict = serde_saphyr::options! {
        budget: budget,
        emit_comments: false,
        with_snippet: false,
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED },
    };
    serde_saphyr::from_str_with_options(text, strict).map_err(|error| (&error).into())
}

/// Reads one document as a tree, as Go's library reads its own output: every string exactly, even with line breaks of
/// YAML 1.1. `<<` is an ordinary key unless its value is an alias, which no server prints. Lists and maps below the
/// hundredth level become null, so that one deep object in a list, which a server accepts, does not affect the others.
///
/// # Errors
/// If the text is not YAML, has several documents, nests deeper than 10,000 levels, or its aliases expand to too much.
pub fn read_tree(text: &str) -> Result<Document, YamlError> {
    tree::read(text, &mut 0)
}

/// Reads one document that people wrote as Go's library for Kubernetes does, with the lines of its values: of duplicate
/// keys the last counts, a key that is a number or a boolean is its text, and `<<` merges maps.
///
/// Go's library ignores what follows the first document, and this function refuses it.
///
/// # Errors
/// If the text is not YAML, lists and maps nest deeper than `levels`, aliases expand to too much, or the tree would take
/// too much memory.
pub fn read_written(text: &str, levels: usize) -> Result<Written, WrittenError> {
    first::moving_lines(
        text,
        |text| tree::read_written(text, levels),
        |error| match error {
            WrittenError::Syntax(error) => Some(error),
            _ => None,
        },
    )
}

/// The maximum nesting of values, in levels: [`read_tree`] reads deeper lists and maps as null, and the other functions
/// return an error. Trees are built and dropped by recursion.
const MAX_TREE_DEPTH: usize = 100;

/// Replaces lists and maps below the given number of levels by null.
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

/// The maximum number of parser events that aliases may repeat in a text; one whose aliases repeat more is an error.
const MAX_REPLAYED: usize = 1_000_000;

/// The maximum number of parser events that aliases may repeat in a text that people write; one whose aliases repeat
/// more is an error.
const MAX_REPLAYED_BY_PEOPLE: usize = 1_000;

/// Returns the options that read a text of `size` bytes as Go does. Limits on its contents are what a text of that
/// size can hold without aliases; aliases may repeat `replayed` parser events.
fn options(size: usize, replayed: usize) -> Options {
    let mut budget = Budget::default();
    budget.max_nodes = size.max(1024);
    budget.max_events = size.saturating_mul(2).max(4096);
    budget.max_total_scalar_bytes = size.saturating_mul(2).max(4096);
    budget.max_documents = size.max(1024);
    budget.max_depth = MAX_TREE_DEPTH;
    serde_saphyr::options! {
        budget: Some(budget),
        emit_comments: false,
        with_snippet: false,
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        // To Go, `1e999` is a text.
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: replayed },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_deep_part_of_a_tree_is_left_out() {
        for levels in [80, 250, 9_000] {
            let deep = "- ".repeat(levels);
            let text = format!("items:\n- a: 1\n- b:\n  {deep}x\n- c: 3\n");
            let tree = read_tree(&text).unwrap().tree;
            assert_eq!((&tree["items"][0]["a"], &tree["items"][2]["c"]), (&1.into(), &3.into()), "{levels}");
            assert_eq!(tree.to_string().contains('x'), levels < MAX_TREE_DEPTH, "{levels}");
        }
        let endless = format!("a:\n  {}x\n", "- ".repeat(11_000));
        assert!(read_tree(&endless).is_err());
    }
}
