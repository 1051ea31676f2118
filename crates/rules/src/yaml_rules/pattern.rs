//! Patterns: texts in which `*` stands for any text.

use std::borrow::Cow;

use taffrail_object::json::Value;

use super::path;

/// A text in which `*` stands for any text, also for an empty one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    first: Box<str>,
    /// The text behind each `*`; the last one must stand at the end.
    rest: Box<[Box<str>]>,
}

impl Pattern {
    pub(super) fn read(text: &str) -> Pattern {
        let mut parts = text.split('*').map(Box::from);
        Pattern { first: parts.next().unwrap_or_default(), rest: parts.collect() }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let Some((last, middle)) = self.rest.split_last() else { return *self.first == *text };
        let Some(mut text) = text.strip_prefix(&*self.first) else { return false };
        for part in middle {
            match text.find(&**part) {
                Some(at) => text = &text[at + part.len()..],
                None => return false,
            }
        }
        text.ends_with(&**last)
    }
}

/// Returns true if one of the patterns matches a scalar as text; an absent value counts as an empty text.
pub(super) fn one_matches(patterns: &[Pattern], value: Option<Value<'_>>) -> bool {
    let text = value.and_then(path::text).unwrap_or(Cow::Borrowed(""));
    patterns.iter().any(|pattern| pattern.matches(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_text() {
        for (pattern, matching, other) in [
            ("Failed", "Failed", "failed"),
            ("Failed*", "FailedCreate", "aFailed"),
            ("*Error", "ReadError", "ReadErrors"),
            ("*", "", "\u{0}none"),
            ("a*b*c", "a-bb-c", "a-c"),
            ("a*a", "aa", "a"),
            ("*not*found*", "x not y found", "found not"),
            ("a|b", "a|b", "a"),
            ("", "", "x"),
        ] {
            assert!(Pattern::read(pattern).matches(matching), "{pattern} {matching}");
            if !other.starts_with('\u{0}') {
                assert!(!Pattern::read(pattern).matches(other), "{pattern} {other}");
            }
        }
    }
}
