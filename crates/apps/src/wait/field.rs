//! A field to wait for: its JSONPath, and the value that it must have.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use taffrail_object::{JsonPath, JsonPathError};

/// A field of an object and the value that it must have: `{.status.phase}=Running`; or only the field if it must
/// just exist.
///
/// As with kubectl, braces and the first dot may be left out, and `\.` stands for a dot in a key.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedField {
    path: JsonPath,
    value: Option<String>,
}

/// The result of comparing a field with the value that it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FieldMatch {
    /// The field has the value, or exists if no value is given.
    Met,
    /// The field does not exist, or not yet.
    Missing,
    /// The field has another value, held here as text.
    Other(String),
    /// The field cannot be compared, for the reason held here.
    Unusable(String),
}

/// The reason why a field with a list or an object cannot be compared.
const COMPOUND: &str = "it is a list or an object, which has no single value";

/// The error for a text that is not a field to wait for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{path}' is not a JSONPath: {why}")]
pub struct InvalidField {
    /// The text as written: path and value, cut to 200 characters.
    pub path: String,
    /// The reason why the text is invalid: the JSONPath parser's error, a bracket or quote without counterpart, or a
    /// missing value.
    pub why: String,
}

impl FromStr for WantedField {
    type Err = InvalidField;

    fn from_str(text: &str) -> Result<WantedField, InvalidField> {
        let invalid =
            |why: &str| InvalidField { path: text.chars().take(200).collect(), why: why.to_owned() };
        let (path, value) = split(text).ok_or_else(|| invalid("a bracket or quote has no counterpart"))?;
        if value == Some("") {
            return Err(invalid("a value must follow the '='; without '=' the field only has to exist"));
        }
        let path = path.parse().map_err(|why: JsonPathError| invalid(&why.to_string()))?;
        Ok(WantedField { path, value: value.map(str::to_owned) })
    }
}

impl fmt::Display for WantedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)?;
        self.value.iter().try_for_each(|value| write!(f, "={value}"))
    }
}

impl WantedField {
    /// Returns the path, as it was written.
    pub(super) fn path(&self) -> &str {
        self.path.text()
    }

    /// Returns the value that the field must have; `None` if it only has to exist.
    pub(super) fn wanted(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Compares the field of `object` with the wanted value, as texts. If the path matches several fields, all of them
    /// must have it; `null` counts as missing.
    pub(super) fn look(&self, object: &Value) -> FieldMatch {
        let mut found = match self.path.find(object) {
            Ok(found) => found,
            Err(why) => return FieldMatch::Unusable(why.to_string()),
        };
        found.retain(|value| !value.is_null());
        let Some(wanted) = &self.value else {
            return if found.is_empty() { FieldMatch::Missing } else { FieldMatch::Met };
        };
        if found.is_empty() {
            return FieldMatch::Missing;
        }
        for value in found {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(truth) => truth.to_string(),
                _ => return FieldMatch::Unusable(COMPOUND.to_owned()),
            };
            if text != *wanted {
                return FieldMatch::Other(text);
            }
        }
        FieldMatch::Met
    }
}

/// Splits a text into the path and the value after the `=`; `None` if a bracket or quote has no counterpart.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (quote, character) {
            (_, '\\') => escaped = true,
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '{' | '[' | '(') => depth += 1,
            (None, '}' | ']' | ')') => depth = depth.checked_sub(1)?,
            (None, '=') if depth == 0 => return Some((text[..at].trim(), Some(&text[at + 1..]))),
            (None, _) => {}
        }
    }
    (depth == 0 && quote.is_none()).then(|| (text.trim(), None))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{COMPOUND, FieldMatch, InvalidField, WantedField};

    fn path(text: &str) -> Result<WantedField, InvalidField> {
        text.parse()
    }

    #[test]
    fn jsonpath_follows_kubectl() {
        let object = json!({
            "metadata": {"annotations": {"example.com/tier": "gold", "it's": "odd"}},
            "spec": {"replicas": 3, "paused": false},
            "status": {"phase": "Running", "readyReplicas": 3, "nothing": null,
                "containerStatuses": [{"name": "a", "ready": true}, {"name": "b", "ready": true}],
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]},
        });
        for (text, expected) in [
            ("{.status.phase}=Running", FieldMatch::Met),
            ("{.status.phase}=Pending", FieldMatch::Other("Running".to_owned())),
            (".status.phase=Running", FieldMatch::Met),
            ("status.phase=Running", FieldMatch::Met),
            ("{$.status.phase}=Running", FieldMatch::Met),
            ("{.status.phase}", FieldMatch::Met),
            ("{.status.missing}", FieldMatch::Missing),
            ("{.status.nothing}", FieldMatch::Missing),
            ("{.status.missing}=x", FieldMatch::Missing),
            ("{.spec.replicas}=3", FieldMatch::Met),
            ("{.spec.paused}=false", FieldMatch::Met),
            (r"{.metadata.annotations.example\.com/tier}=gold", FieldMatch::Met),
            ("{.metadata.annotations['example.com/tier']}=gold", FieldMatch::Met),
            (r"{.metadata.annotations.it\'s}=odd", FieldMatch::Met),
            ("{.status.containerStatuses[0].ready}=true", FieldMatch::Met),
            ("{.status.containerStatuses[*].ready}=true", FieldMatch::Met),
            ("{.status.containerStatuses[*].name}=a", FieldMatch::Other("b".to_owned())),
            (r#"{.status.conditions[?(@.type=="Ready")].status}=True"#, FieldMatch::Met),
            (
                r#"{.status.conditions[?(@.type=="Synced")].status}=True"#,
                FieldMatch::Other("False".to_owned()),
            ),
            ("{.status.conditions}", FieldMatch::Met),
            ("{.status.conditions}=x", FieldMatch::Unusable(COMPOUND.to_owned())),
        ] {
            assert_eq!(path(text).map(|path| path.look(&object)), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_and_deep_paths_are_refused() {
        let deep = format!("{{.a{}", "[?(@".repeat(200));
        let closed = format!("{{.a{}{}}}", "[?(@.b".repeat(100), ")]".repeat(100));
        let negated = format!("{{.a[?({}@.b)]}}", "!(".repeat(17));
        for text in [
            "{.a",
            "{.a}=",
            "{.a[}",
            "{.a[?(@.b==]}",
            "{range .a}",
            &deep,
            &closed,
            &negated,
            &"x".repeat(2000),
        ] {
            assert!(path(text).is_err(), "{text}");
        }
    }
}
