//! The JSONPath of printer columns: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`.

use std::borrow::Cow;

use serde_json::Value;

enum Step<'a> {
    Key(String),
    Index(usize),
    All,
    Where(Vec<String>, &'a str),
}

/// The first value at a path.
pub(super) fn find(object: &Value, path: &str) -> Option<Value> {
    let mut found = vec![object];
    for step in steps(path)? {
        found = found.into_iter().flat_map(|value| take(value, &step)).collect();
    }
    found.first().map(|value| (*value).clone())
}

fn take<'v>(value: &'v Value, step: &Step<'_>) -> Vec<&'v Value> {
    match step {
        Step::Key(key) => value.get(key).into_iter().collect(),
        Step::Index(index) => value.get(index).into_iter().collect(),
        Step::All => match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(members) => members.values().collect(),
            _ => Vec::new(),
        },
        Step::Where(keys, wanted) => {
            let items = value.as_array().into_iter().flatten();
            let is_it = |item: &&Value| {
                let found = keys.iter().try_fold(*item, |value, key| value.get(key));
                found.is_some_and(|found| text_of(found) == *wanted)
            };
            items.filter(is_it).collect()
        }
    }
}

fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// The steps of a path; `None` for one that cannot be read.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let end = after.find(']')?;
            let inside = after[..end].trim();
            rest = &after[end + 1..];
            steps.push(match inside {
                "*" => Step::All,
                filter if filter.starts_with("?(") => {
                    let filter = filter.strip_prefix("?(")?.strip_suffix(')')?;
                    let (left, right) = filter.split_once("==")?;
                    let keys = left.trim().strip_prefix("@.")?.split('.').map(str::to_owned).collect();
                    Step::Where(keys, right.trim().trim_matches(['"', '\'']))
                }
                quoted if quoted.starts_with(['"', '\'']) => {
                    Step::Key(quoted.trim_matches(['"', '\'']).to_owned())
                }
                number => Step::Index(number.parse().ok()?),
            });
            continue;
        }
        let after = rest.strip_prefix('.').unwrap_or(rest);
        // A backslash keeps a dot that belongs to the key.
        let mut key = String::new();
        let mut end = after.len();
        let mut escaped = false;
        for (at, character) in after.char_indices() {
            match character {
                '\\' if !escaped => escaped = true,
                '.' | '[' if !escaped => {
                    end = at;
                    break;
                }
                other => {
                    key.push(other);
                    escaped = false;
                }
            }
        }
        rest = &after[end..];
        match key.as_str() {
            "" if rest.is_empty() => {}
            "" => return None,
            "*" => steps.push(Step::All),
            _ => steps.push(Step::Key(key)),
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn printer_columns_find_their_values() {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "x"}}, "spec": {"list": [1, 2]},
            "status": {"conditions": [{"type": "A", "status": "1"}, {"type": "Ready", "status": "True"}]},
        });
        let find = |path: &str| super::find(&object, path);
        assert_eq!(find(".spec.list[1]"), Some(json!(2)));
        assert_eq!(find(".status.conditions[?(@.type==\"Ready\")].status"), Some(json!("True")));
        assert_eq!(find(".metadata.annotations.a\\.b/c"), Some(json!("x")));
        assert_eq!(find(".metadata.annotations['a.b/c']"), Some(json!("x")));
        assert_eq!(find(".spec.nothing.here"), None);
        assert_eq!(find(".spec[?(@.x"), None);
    }
}
