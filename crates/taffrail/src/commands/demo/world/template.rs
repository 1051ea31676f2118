//! Fills in the placeholders of text templates: `{{name}}`.

use std::fmt::Write as _;

/// The error for a placeholder without a value; holds its name.
#[derive(Debug, thiserror::Error)]
#[error("the placeholder {{{{{0}}}}} of a template has no value")]
pub(in crate::commands::demo) struct UnknownPlaceholder(String);

/// The values of placeholders, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Values<'v>(Vec<(&'v str, String)>);

impl<'v> Values<'v> {
    /// Adds the value of the placeholder `name`; of several values for one name the last one counts.
    pub(super) fn with(mut self, name: &'v str, value: impl ToString) -> Values<'v> {
        self.0.push((name, value.to_string()));
        self
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(own, _)| *own == name).map(|(_, value)| value.as_str())
    }

    /// Returns `template` with its placeholders replaced by these values. Fails for a placeholder without a value.
    pub(super) fn fill(&self, template: &str) -> Result<String, UnknownPlaceholder> {
        fill(template, |name| self.get(name).map(str::to_owned))
    }
}

/// Returns `template` with its placeholders replaced; `value` returns the value for the text between the braces. Fails
/// if it returns `None`.
pub(super) fn fill(
    template: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, UnknownPlaceholder> {
    let mut out = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out.push_str(before);
        out.push_str(&value(name).ok_or_else(|| UnknownPlaceholder(name.to_owned()))?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns a made-up commit hash of `digits` hexadecimal digits, which depends on `seed` and `what` alone.
pub(super) fn hash(seed: u64, what: &[&str], digits: usize) -> String {
    let mut state = seed ^ 0xcbf2_9ce4_8422_2325;
    for byte in what.iter().flat_map(|part| part.bytes().chain([0])) {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut out = String::new();
    while out.len() < digits {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let _ = write!(out, "{:016x}", mixed ^ (mixed >> 31));
    }
    out.truncate(digits);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_must_be_filled() {
        let values = Values::default().with("a", 1).with("b", "x").with("a", 2);
        assert_eq!(
            values.fill("{a: {{a}}, b: \"{{b}}\", c: ${NOW}}").unwrap(),
            "{a: 2, b: \"x\", c: ${NOW}}"
        );
        assert_eq!(
            values.fill("{{c}}").unwrap_err().to_string(),
            "the placeholder {{c}} of a template has no value"
        );
    }

    #[test]
    fn hashes_follow_from_the_seed_and_differ() {
        let one = hash(1, &["shop", "0"], 40);
        assert_eq!(one.len(), 40);
        assert_eq!(one, hash(1, &["shop", "0"], 40));
        assert_ne!(one, hash(2, &["shop", "0"], 40));
        assert_ne!(one, hash(1, &["shop", "1"], 40));
        assert_ne!(hash(1, &["a", "bc"], 40), hash(1, &["ab", "c"], 40));
    }
}
