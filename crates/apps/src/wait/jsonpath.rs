//! Fields by JSONPath, in the dialect of kubectl.

use std::fmt;
use std::str::FromStr;

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::Value;

use super::until::InvalidUntil;

/// Longer paths are not read: the parser recurses.
const LONGEST: usize = 1024;

/// Nor are deeper ones.
const DEEPEST: usize = 16;

/// A field of an object and the value that it shall have: `{.status.phase}=Running`, or `{.status.loadBalancer.ingress}`
/// where it shall only be there.
///
/// As with kubectl, braces and the first dot may be left out, and `\.` stands for a dot in a key.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    text: String,
    query: JpQuery,
    value: Option<String>,
}

/// What an object says of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field {
    /// It is as it shall be.
    Met,
    /// It is not there.
    Missing,
    /// It is something else.
    Other(String),
    /// It cannot be compared.
    Unusable(&'static str),
}

impl FromStr for JsonPath {
    type Err = InvalidUntil;

    fn from_str(text: &str) -> Result<JsonPath, InvalidUntil> {
        let invalid = |why: &str| InvalidUntil::JsonPath {
            path: text.chars().take(200).collect(),
            why: why.to_owned(),
        };
        if text.len() > LONGEST {
            return Err(invalid("it is too long"));
        }
        let (path, value) = split(text).ok_or_else(|| invalid("a bracket or quote is not closed"))?;
        if value == Some("") {
            return Err(invalid("behind '=' there is no value; without '=' the field only has to be there"));
        }
        let standard = standard(path).map_err(invalid)?;
        let query = parse_json_path(&standard).map_err(|_| invalid("write it like {.status.phase}"))?;
        Ok(JsonPath { text: path.to_owned(), query, value: value.map(str::to_owned) })
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.value.iter().try_for_each(|value| write!(f, "={value}"))
    }
}

impl JsonPath {
    /// The path, as it was written.
    pub(super) fn path(&self) -> &str {
        &self.text
    }

    /// The value that is wanted; nothing where the field only has to be there.
    pub(super) fn wanted(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Looks the field up. Where the path leads to several fields, all of them must have the value.
    pub(super) fn look(&self, object: &Value) -> Field {
        let Ok(found) = js_path_process(&self.query, object) else {
            return Field::Unusable("the path leads nowhere");
        };
        let found: Vec<&Value> =
            found.into_iter().map(|found| found.val()).filter(|it| !it.is_null()).collect();
        let Some(wanted) = &self.value else {
            return if found.is_empty() { Field::Missing } else { Field::Met };
        };
        if found.is_empty() {
            return Field::Missing;
        }
        for value in found {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(truth) => truth.to_string(),
                _ => return Field::Unusable("it is a list or an object, which has no single value"),
            };
            if text != *wanted {
                return Field::Other(text);
            }
        }
        Field::Met
    }
}

/// The path, and what stands behind the `=` that follows it.
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

/// The path as the standard has it, or why there is none.
fn standard(path: &str) -> Result<String, &'static str> {
    let inside = path.strip_prefix('{').and_then(|path| path.strip_suffix('}')).unwrap_or(path).trim();
    let rest = inside.strip_prefix('$').or_else(|| inside.strip_prefix('@')).unwrap_or(inside);
    let mut standard = String::from("$");
    if !rest.is_empty() && !rest.starts_with(['.', '[']) {
        standard.push('.');
    }
    let mut depth = 0_usize;
    // Outside of brackets keys end at dots and brackets; those with other characters need quotes.
    let mut characters = rest.chars().peekable();
    let mut key = String::new();
    let mut is_odd = false;
    let end = |key: &mut String, is_odd: &mut bool, standard: &mut String| {
        if key.is_empty() {
            return;
        }
        if std::mem::take(is_odd) {
            if standard.ends_with('.') && !standard.ends_with("..") {
                standard.pop();
            }
            let quoted = key.replace('\\', r"\\").replace('\'', r"\'");
            standard.push_str(&format!("['{quoted}']"));
        } else {
            standard.push_str(key);
        }
        key.clear();
    };
    while let Some(character) = characters.next() {
        if depth > 0 {
            match character {
                '[' | '(' => depth += 1,
                ']' | ')' => depth -= 1,
                '\'' | '"' => {
                    standard.push(character);
                    let mut escaped = false;
                    for inner in characters.by_ref() {
                        standard.push(inner);
                        if !escaped && inner == character {
                            break;
                        }
                        escaped = !escaped && inner == '\\';
                    }
                    continue;
                }
                _ => {}
            }
            standard.push(character);
        } else {
            match character {
                '\\' => {
                    key.extend(characters.next());
                    is_odd = true;
                }
                '.' | '[' => {
                    end(&mut key, &mut is_odd, &mut standard);
                    depth = usize::from(character == '[');
                    standard.push(character);
                }
                _ if character.is_whitespace() || "{}()'\"".contains(character) => {
                    return Err("write it like {.status.phase}");
                }
                _ => {
                    is_odd |= !(character.is_alphanumeric() || character == '_' || character == '*');
                    key.push(character);
                }
            }
        }
        if depth > DEEPEST {
            return Err("it is nested too deeply");
        }
    }
    end(&mut key, &mut is_odd, &mut standard);
    Ok(standard)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Field, JsonPath};
    use crate::wait::until::InvalidUntil;

    fn path(text: &str) -> Result<JsonPath, InvalidUntil> {
        text.parse()
    }

    #[test]
    fn the_dialect_of_kubectl_is_understood() {
        let object = json!({
            "metadata": {"annotations": {"example.com/tier": "gold", "it's": "odd"}},
            "spec": {"replicas": 3, "paused": false},
            "status": {"phase": "Running", "readyReplicas": 3, "nothing": null,
                "containerStatuses": [{"name": "a", "ready": true}, {"name": "b", "ready": true}],
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]},
        });
        for (text, expected) in [
            ("{.status.phase}=Running", Field::Met),
            ("{.status.phase}=Pending", Field::Other("Running".to_owned())),
            (".status.phase=Running", Field::Met),
            ("status.phase=Running", Field::Met),
            ("{$.status.phase}=Running", Field::Met),
            ("{.status.phase}", Field::Met),
            ("{.status.missing}", Field::Missing),
            ("{.status.nothing}", Field::Missing),
            ("{.status.missing}=x", Field::Missing),
            ("{.spec.replicas}=3", Field::Met),
            ("{.spec.paused}=false", Field::Met),
            (r"{.metadata.annotations.example\.com/tier}=gold", Field::Met),
            ("{.metadata.annotations['example.com/tier']}=gold", Field::Met),
            (r"{.metadata.annotations.it\'s}=odd", Field::Met),
            ("{.status.containerStatuses[0].ready}=true", Field::Met),
            ("{.status.containerStatuses[*].ready}=true", Field::Met),
            ("{.status.containerStatuses[*].name}=a", Field::Other("b".to_owned())),
            (r#"{.status.conditions[?(@.type=="Ready")].status}=True"#, Field::Met),
            (r#"{.status.conditions[?(@.type=="Synced")].status}=True"#, Field::Other("False".to_owned())),
            ("{.status.conditions}", Field::Met),
            (
                "{.status.conditions}=x",
                Field::Unusable("it is a list or an object, which has no single value"),
            ),
        ] {
            assert_eq!(path(text).map(|path| path.look(&object)), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_and_never_recurses_far() {
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
