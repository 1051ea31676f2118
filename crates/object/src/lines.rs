//! The lines on which the upper values of a document begin, for messages about them.

use std::collections::HashMap;

use crate::json::{Kind, Value};

/// The number of levels of lists and maps whose values have a line of their own: a list's
/// `items[0].metadata.annotations.key` is the deepest of them.
pub(crate) const LEVELS: usize = 5;

/// The lines on which a value of a document and the values in it begin, down to level 5. Items of lists have a
/// line only if they are lists or maps.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    line: u32,
    inside: Option<Box<Inside>>,
}

/// The lines of a list's items by position, or of a map's values by key.
#[derive(Debug, Clone)]
enum Inside {
    Items(Vec<Lines>),
    Members(HashMap<String, Lines>),
}

impl Lines {
    pub(crate) fn of_scalar(line: u64) -> Lines {
        Lines { line: u32::try_from(line).unwrap_or(u32::MAX), inside: None }
    }

    pub(crate) fn of_items(line: u64, items: Vec<Lines>) -> Lines {
        let inside = (!items.is_empty()).then(|| Box::new(Inside::Items(items)));
        Lines { inside, ..Lines::of_scalar(line) }
    }

    pub(crate) fn of_members(line: u64, members: HashMap<String, Lines>) -> Lines {
        let inside = (!members.is_empty()).then(|| Box::new(Inside::Members(members)));
        Lines { inside, ..Lines::of_scalar(line) }
    }

    pub(crate) fn set_line(&mut self, line: u64) {
        self.line = Lines::of_scalar(line).line;
    }

    /// Finds the lines of the values in `value`, a part of `text`; the first line of `text` has the number `first`.
    pub fn of_json(value: Value<'_>, text: &[u8], first: u64) -> Lines {
        let mut lines = TextLines { text, at: 0, line: first };
        lines.of(value, LEVELS)
    }

    /// Returns the line on which the value begins: a member of a map begins with its key.
    pub fn line(&self) -> u64 {
        self.line.into()
    }

    /// Returns the lines of the member `key` of a map; `None` if they are not known.
    pub fn member(&self, key: &str) -> Option<&Lines> {
        match self.inside.as_deref()? {
            Inside::Members(members) => members.get(key),
            Inside::Items(_) => None,
        }
    }

    /// Returns the lines of an item of a list, by its position from 0; `None` if they are not known.
    pub fn item(&self, position: usize) -> Option<&Lines> {
        match self.inside.as_deref()? {
            Inside::Items(items) => items.get(position),
            Inside::Members(_) => None,
        }
    }

    /// Returns the line of the value at a path of keys, or of the deepest known value on that path.
    pub fn nearest(&self, path: &[&str]) -> u64 {
        let found = path.iter().try_fold(self, |at, key| at.member(key).ok_or(at));
        found.unwrap_or_else(|deepest| deepest).line()
    }
}

/// Counts the lines of a text from its start to positions that do not decrease.
struct TextLines<'t> {
    text: &'t [u8],
    at: usize,
    line: u64,
}

impl TextLines<'_> {
    fn of(&mut self, value: Value<'_>, levels: usize) -> Lines {
        let line = self.line_of(value);
        let Some(inner) = levels.checked_sub(1) else { return Lines::of_scalar(line) };
        if value.kind() == Kind::Array {
            let is_inside = |item: &Value<'_>| matches!(item.kind(), Kind::Array | Kind::Object);
            let items = value.items().into_iter().flatten();
            let lines = items.map(|item| match is_inside(&item) {
                true => self.of(item, inner),
                false => Lines::of_scalar(line),
            });
            return Lines::of_items(line, lines.collect());
        }
        let members = value.members().into_iter().flatten();
        Lines::of_members(
            line,
            members.map(|(key, value)| (key.into_owned(), self.of(value, inner))).collect(),
        )
    }

    fn line_of(&mut self, value: Value<'_>) -> u64 {
        // The value is a part of the text: their addresses tell its position.
        let address = |text: &[u8]| text.as_ptr().addr();
        let start = value.text().and_then(|own| address(own).checked_sub(address(self.text)));
        let passed = start.and_then(|start| self.text.get(self.at..start));
        if let Some(passed) = passed {
            self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
            self.at += passed.len();
        }
        self.line
    }
}
