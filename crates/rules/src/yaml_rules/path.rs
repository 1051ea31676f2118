//! Paths to fields of objects, and the values at their ends.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

use taffrail_object::json::{Kind, Value};

use crate::script::CHILDREN;

/// The maximum number of steps of a path; a path with more is an error of the file.
const MAX_STEPS: usize = 32;

/// A path from a value to values inside it: `status.parents[*].conditions`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Path {
    text: Box<str>,
    start: Start,
    steps: Box<[Step]>,
    /// True if the path may lead to several values.
    pub(super) is_many: bool,
}

/// The value from which a path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The value under test: the object, or an element of one of its lists.
    Here,
    /// `$`: the object.
    Object,
    /// `@`: the element of a list by which a test `some` holds.
    Element,
}

/// A step of a path, from a value to values inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(Box<str>),
    Index(usize),
    /// `[*]`: each item of a list, or value of a map.
    Every,
}

/// The reasons why a text is not a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A missing name between two dots, at the start or at the end; or a name with a bracket or white space in the
    /// wrong place.
    #[error(
        "the path lacks a name between dots, at its start or end, or has a space or ']' in the wrong place"
    )]
    Empty,
    /// A bracket with something else than `*`, an index or a quoted key: `[*]`, `[2]`, `['key']`.
    #[error("the brackets of a path may contain only '*', a number or a 'key' in quotes")]
    Bracket,
    /// More than 32 steps.
    #[error("the path of a field has more than {MAX_STEPS} steps")]
    TooLong,
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Path").field(&self.text).finish()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Path {
    /// Parses a path.
    ///
    /// # Errors
    /// If the text is not a path.
    pub(super) fn read(text: &str) -> Result<Path, PathError> {
        let (start, mut rest) = match text.as_bytes() {
            [b'$', ..] => (Start::Object, &text[1..]),
            [b'@', ..] => (Start::Element, &text[1..]),
            [b'.', ..] => (Start::Here, text),
            _ => (Start::Here, text),
        };
        let mut steps = Vec::new();
        // `$`, `@` and `.` alone are the value itself.
        let is_marked = start != Start::Here;
        if text == "." || (is_marked && rest.is_empty()) {
            rest = "";
        } else if is_marked && !rest.starts_with(['.', '[']) || rest.is_empty() {
            return Err(PathError::Empty);
        }
        let mut is_first = !is_marked;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (step, after) = bracket(inside)?;
                steps.push(step);
                rest = after;
            } else {
                let name = match rest.strip_prefix('.') {
                    Some(name) if !is_first => name,
                    None if is_first => rest,
                    _ => return Err(PathError::Empty),
                };
                let end = name.find(['.', '[']).unwrap_or(name.len());
                let (key, after) = name.split_at(end);
                if key.is_empty() || key.trim() != key || key.contains(']') {
                    return Err(PathError::Empty);
                }
                steps.push(Step::Key(key.into()));
                rest = after;
            }
            is_first = false;
            if steps.len() > MAX_STEPS {
                return Err(PathError::TooLong);
            }
        }
        let is_many = steps.contains(&Step::Every);
        Ok(Path { text: text.into(), start, steps: steps.into(), is_many })
    }

    /// Returns true if the path, taken from the object, leads to `children`, the objects whose owner reference
    /// names it.
    pub(super) fn asks_children(&self) -> bool {
        self.begins_with(CHILDREN)
    }

    /// Returns true if the path, taken from the object, leads into its status.
    pub(super) fn is_of_status(&self) -> bool {
        self.begins_with("status")
    }

    fn begins_with(&self, name: &str) -> bool {
        self.start != Start::Element && matches!(self.steps.first(), Some(Step::Key(key)) if **key == *name)
    }

    pub(super) fn start(&self) -> Start {
        self.start
    }

    /// Returns the first value at the path that is not null; `None` if there is none.
    #[inline]
    pub(super) fn first<'a>(&self, from: Value<'a>) -> Option<Value<'a>> {
        if self.is_many {
            let mut found = None;
            let _ = self.visit(from, &mut |value| {
                found = Some(value);
                ControlFlow::Break(())
            });
            return found;
        }
        let found = self.steps.iter().try_fold(from, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.items()?.nth(*index),
            Step::Every => None,
        });
        found.filter(|value| !value.is_null())
    }

    /// Calls `visit` for each value at the path that is not null, until it returns `Break`. Returns `Break` if it did,
    /// else `Continue`.
    pub(super) fn visit<'a>(
        &self,
        from: Value<'a>,
        visit: &mut dyn FnMut(Value<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        walk(&self.steps, from, visit)
    }

    /// Returns true if `is_so` returns true for any value at the path that is not null.
    #[inline]
    pub(super) fn any<'a>(&self, from: Value<'a>, mut is_so: impl FnMut(Value<'a>) -> bool) -> bool {
        if !self.is_many {
            return self.first(from).is_some_and(is_so);
        }
        let visited = self.visit(from, &mut |value| match is_so(value) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        visited.is_break()
    }
}

/// Parses a step in brackets; returns it and the text behind the bracket.
fn bracket(inside: &str) -> Result<(Step, &str), PathError> {
    if let Some(quote @ ('\'' | '"')) = inside.chars().next() {
        let (key, after) = inside[1..].split_once(quote).ok_or(PathError::Bracket)?;
        let after = after.strip_prefix(']').ok_or(PathError::Bracket)?;
        return Ok((Step::Key(key.into()), after));
    }
    let (what, after) = inside.split_once(']').ok_or(PathError::Bracket)?;
    let step = match what {
        "*" => Step::Every,
        number => Step::Index(number.parse().map_err(|_| PathError::Bracket)?),
    };
    Ok((step, after))
}

fn walk<'a>(
    steps: &[Step],
    from: Value<'a>,
    visit: &mut dyn FnMut(Value<'a>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some((step, rest)) = steps.split_first() else {
        return if from.is_null() { ControlFlow::Continue(()) } else { visit(from) };
    };
    let next = match step {
        Step::Key(key) => from.get(key),
        Step::Index(index) => from.items().and_then(|mut items| items.nth(*index)),
        Step::Every => {
            let mut items = from.items().into_iter().flatten();
            let mut members = from.members().into_iter().flatten().map(|(_, value)| value);
            items.try_for_each(|item| walk(rest, item, visit))?;
            return members.try_for_each(|value| walk(rest, value, visit));
        }
    };
    next.map_or(ControlFlow::Continue(()), |value| walk(rest, value, visit))
}

/// Returns a scalar of any type as text; `None` for null, lists and maps.
pub(super) fn text(value: Value<'_>) -> Option<Cow<'_, str>> {
    match value.kind() {
        Kind::String => value.as_str(),
        Kind::Bool => Some(Cow::Borrowed(if value.as_bool()? { "true" } else { "false" })),
        Kind::Integer => Some(Cow::Owned(value.as_i64()?.to_string())),
        Kind::Float => Some(Cow::Owned(value.as_f64()?.to_string())),
        Kind::Null | Kind::Array | Kind::Object => None,
    }
}

/// Returns true if a value is a scalar and, as text, equals `word`.
#[inline]
pub(super) fn is_word(value: Value<'_>, word: &str) -> bool {
    match value.kind() {
        Kind::String => value.is_str(word),
        Kind::Null | Kind::Array | Kind::Object => false,
        _ => text(value).is_some_and(|text| text == word),
    }
}

/// Returns true unless the value is null or an empty text, list or map.
pub(super) fn is_something(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Null => false,
        Kind::String => !value.is_str(""),
        Kind::Array => value.items().is_some_and(|mut items| items.next().is_some()),
        Kind::Object => value.members().is_some_and(|mut members| members.next().is_some()),
        Kind::Bool | Kind::Integer | Kind::Float => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn path_returns_its_values() {
        let object = json!({
            "status": {"list": [{"a": 1, "b": null}, {"a": "x"}], "map": {"k/v.w": true, "z": 2.5}},
        });
        for (path, expected) in [
            ("status.list[*].a", "1 x"),
            ("status.list[1].a", "x"),
            ("status.list[2].a", ""),
            ("status.list[*].b", ""),
            ("status.map['k/v.w']", "true"),
            ("status.map[*]", "true 2.5"),
            ("status['list'][0].a", "1"),
            ("$.status.list[0].a", "1"),
        ] {
            let path = Path::read(path).unwrap();
            let mut found = Vec::new();
            let _ = path.visit((&object).into(), &mut |value| {
                found.push(text(value).unwrap().into_owned());
                ControlFlow::Continue(())
            });
            assert_eq!(found.join(" "), expected, "{path}");
            let first = path.first((&object).into()).map(|value| text(value).unwrap().into_owned());
            assert_eq!(first.as_ref(), found.first(), "{path}");
        }
        for path in [".", "@", "$"] {
            assert!(Path::read(path).unwrap().first((&object).into()).is_some(), "{path}");
        }
    }

    #[test]
    fn invalid_paths_are_refused() {
        for path in ["", "a..b", ".a", "a.", "a[", "a[x]", "a['b'", "a]b", "$a", "@a", " a", "a['b'x]"] {
            assert!(Path::read(path).is_err(), "{path}");
        }
        assert_eq!(Path::read(&"a.".repeat(40)), Err(PathError::TooLong));
    }
}
