//! JSONPath in the dialect of kubectl and of additional printer columns: `{.status.phase}`,
//! `.status.conditions[?(@.type=="Ready")].status`.

use std::fmt;
use std::str::FromStr;

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::Value;

/// The maximum length of a path, in bytes; a longer one is an error. It bounds the recursion of the library's parser.
const MAX_PATH_BYTES: usize = 1024;

/// The maximum nesting of brackets and parentheses in a path; a path that nests deeper is an error.
const MAX_PATH_DEPTH: usize = 16;

/// A path to fields of an object.
///
/// As with kubectl, braces and the first dot may be left out, and `\.` stands for a dot in a key.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    text: String,
    query: JpQuery,
}

/// The reason why a text is not a JSONPath, or why a path cannot be evaluated on an object, as a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonPathError(&'static str);

impl FromStr for JsonPath {
    type Err = JsonPathError;

    fn from_str(text: &str) -> Result<JsonPath, JsonPathError> {
        if text.len() > MAX_PATH_BYTES {
            return Err(JsonPathError("the path is longer than 1024 bytes"));
        }
        let standard = standard(text).map_err(JsonPathError)?;
        let query = parse_json_path(&standard)
            .map_err(|_| JsonPathError("the path is not written like {.status.phase}"))?;
        Ok(JsonPath { text: text.to_owned(), query })
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl JsonPath {
    /// Returns the path as it was written, such as `{.status.phase}`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the values at the path in `tree`; values that are `null` are included.
    ///
    /// # Errors
    /// If the JSONPath library fails on this tree. A path that matches nothing is not an error: the list is then empty.
    pub fn find<'t>(&self, tree: &'t Value) -> Result<Vec<&'t Value>, JsonPathError> {
        let found = js_path_process(&self.query, tree)
            .map_err(|_| JsonPathError("the path cannot be evaluated on this object"))?;
        Ok(found.into_iter().map(|found| found.val()).collect())
    }
}

/// Converts a path of kubectl to standard JSONPath (`spec.a\.b` to `$.spec['a.b']`); returns the reason, as a clause,
/// if it is not a path or nests too deeply.
fn standard(path: &str) -> Result<String, &'static str> {
    let inside = path.strip_prefix('{').and_then(|path| path.strip_suffix('}')).unwrap_or(path).trim();
    let rest = inside.strip_prefix('$').or_else(|| inside.strip_prefix('@')).unwrap_or(inside);
    let mut standard = String::from("$");
    if !rest.is_empty() && !rest.starts_with(['.', '[']) {
        standard.push('.');
    }
    let mut depth = 0_usize;
    // Outside of brackets, keys end at dots and brackets; keys with other special characters need quotes.
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
                    return Err("the path is not written like {.status.phase}");
                }
                _ => {
                    is_odd |= !(character.is_alphanumeric() || character == '_' || character == '*');
                    key.push(character);
                }
            }
        }
        if depth > MAX_PATH_DEPTH {
            return Err("the brackets of the path nest deeper than 16 levels");
        }
    }
    end(&mut key, &mut is_odd, &mut standard);
    Ok(standard)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kubectl_and_printer_column_dialects_are_parsed() {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "x", "it's": "odd"}}, "spec": {"list": [1, 2]},
            "status": {"conditions": [{"type": "A", "status": "1"}, {"type": "Ready", "status": "True"}]},
        });
        let find = |path: &str| {
            let found = path.parse::<JsonPath>().unwrap().find(&object).unwrap();
            serde_json::to_string(&found).unwrap()
        };
        for path in
            ["{.spec.list[1]}", ".spec.list[1]", "spec.list[1]", "{$.spec.list[1]}", " .spec.list[1] "]
        {
            assert_eq!(find(path), "[2]", "{path}");
        }
        assert_eq!(find(".spec.list[*]"), "[1,2]");
        assert_eq!(find(".status.conditions[?(@.type==\"Ready\")].status"), r#"["True"]"#);
        assert_eq!(find(".metadata.annotations.a\\.b/c"), r#"["x"]"#);
        assert_eq!(find(".metadata.annotations['a.b/c']"), r#"["x"]"#);
        assert_eq!(find(r".metadata.annotations.it\'s"), r#"["odd"]"#);
        assert_eq!(find(".spec.nothing.here"), "[]");
    }

    #[test]
    fn invalid_and_deep_paths_are_refused() {
        let deep = format!("{{.a{}", "[?(@".repeat(200));
        let closed = format!("{{.a{}{}}}", "[?(@.b".repeat(100), ")]".repeat(100));
        let negated = format!("{{.a[?({}@.b)]}}", "!(".repeat(17));
        for text in [".spec[?(@.x", "{.a[}", "{range .a}", &deep, &closed, &negated, &"x".repeat(2000)] {
            assert!(text.parse::<JsonPath>().is_err(), "{text}");
        }
    }
}
