//! A value inside a validated text or a parsed tree, read on demand.

use std::borrow::Cow;

use super::index::{Index, Parts, Repr};
use super::scan;
use super::string::{is_plain_ascii, means, unescape, write_escaped};

/// The kind of a JSON value; integers that fit `i64` are distinct from other numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number without fraction and exponent that fits `i64`
    Integer,
    /// Any other number
    Float,
    /// A string
    String,
    /// An array
    Array,
    /// An object
    Object,
}

/// A value: a view into a validated text or into a [`serde_json::Value`].
#[derive(Debug, Clone, Copy)]
pub struct Value<'a>(Repr<'a>);

/// The error for a value that nests too deeply to be built as a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the JSON value nests deeper than the 128 levels up to which Taffrail can change it or give it to rules"
)]
pub struct TooDeep;

impl<'a> From<&'a serde_json::Value> for Value<'a> {
    fn from(tree: &'a serde_json::Value) -> Self {
        Value(Repr::Tree(tree))
    }
}

impl<'a> Value<'a> {
    /// Returns a view of `text`, a validated value without surrounding white space.
    #[inline(always)]
    pub(super) fn text_of(text: &'a [u8]) -> Value<'a> {
        Value(Repr::Text(text))
    }

    /// Returns a view of an object or an array whose parts are indexed.
    #[inline(always)]
    pub(super) fn indexed(index: Index<'a>) -> Value<'a> {
        Value(Repr::Indexed(index))
    }

    /// Returns the index over the value's members or items; `None` if the value is not indexed or is part of a tree.
    #[inline]
    pub(super) fn index(self) -> Option<Index<'a>> {
        match self.0 {
            Repr::Indexed(index) => Some(index),
            Repr::Text(_) | Repr::Tree(_) => None,
        }
    }

    /// Appends the value to `to` as JSON text.
    pub fn write(self, to: &mut Vec<u8>) {
        match self.0 {
            Repr::Tree(tree) => to.extend_from_slice(tree.to_string().as_bytes()),
            Repr::Text(text) => to.extend_from_slice(text),
            Repr::Indexed(index) => to.extend_from_slice(index.text()),
        }
    }

    /// Returns the JSON text of this value; `None` for a value in a tree, which has no text.
    #[inline]
    pub fn text(self) -> Option<&'a [u8]> {
        match self.0 {
            Repr::Text(text) => Some(text),
            Repr::Indexed(index) => Some(index.text()),
            Repr::Tree(_) => None,
        }
    }

    /// Returns the kind of this value.
    #[inline]
    pub fn kind(self) -> Kind {
        match self.0 {
            Repr::Indexed(index) if index.is_array() => Kind::Array,
            Repr::Indexed(_) => Kind::Object,
            Repr::Text(text) => match text.first() {
                Some(b'{') => Kind::Object,
                Some(b'[') => Kind::Array,
                Some(b'"') => Kind::String,
                Some(b't' | b'f') => Kind::Bool,
                Some(b'n') | None => Kind::Null,
                Some(_) => {
                    if integer(text).is_some() {
                        Kind::Integer
                    } else {
                        Kind::Float
                    }
                }
            },
            Repr::Tree(tree) => match tree {
                serde_json::Value::Null => Kind::Null,
                serde_json::Value::Bool(_) => Kind::Bool,
                serde_json::Value::Number(number) if number.is_i64() => Kind::Integer,
                serde_json::Value::Number(_) => Kind::Float,
                serde_json::Value::String(_) => Kind::String,
                serde_json::Value::Array(_) => Kind::Array,
                serde_json::Value::Object(_) => Kind::Object,
            },
        }
    }

    /// Returns true if this is `null`.
    #[inline]
    pub fn is_null(self) -> bool {
        match self.0 {
            Repr::Text(text) => text.first() == Some(&b'n'),
            Repr::Indexed(..) => false,
            Repr::Tree(tree) => tree.is_null(),
        }
    }

    /// Returns the value of the last member with this key; `None` if there is none, or this is not an object.
    #[inline]
    pub fn get(self, key: &str) -> Option<Value<'a>> {
        match self.0 {
            Repr::Indexed(index) => index.get(key).map(Value),
            _ => {
                let [found] = self.search([key]);
                found
            }
        }
    }

    /// Returns, for each key, the value of the last member with it, `None` if there is none or this is not an object;
    /// all are found in one pass.
    #[inline]
    pub fn pick<const N: usize>(self, keys: [&str; N]) -> [Option<Value<'a>>; N] {
        match self.0 {
            Repr::Indexed(index) => index.pick(keys, Value),
            _ => self.search(keys),
        }
    }

    /// Does the work of [`Value::pick`] for a value without an index.
    #[inline(never)]
    fn search<const N: usize>(self, keys: [&str; N]) -> [Option<Value<'a>>; N] {
        match self.0 {
            Repr::Tree(tree) => keys.map(|key| tree.get(key).map(Value::from)),
            Repr::Indexed(index) => index.pick(keys, Value),
            Repr::Text(_) => self.members().map_or([None; N], |mut members| members.pick(keys)),
        }
    }

    /// Returns the value at a path of keys; `None` if a part of the path does not exist. For an empty path it returns
    /// this value.
    #[inline]
    pub fn at(self, path: &[&str]) -> Option<Value<'a>> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Returns the unescaped string; `None` for other kinds.
    #[inline]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        match self.0 {
            Repr::Text([b'"', raw @ .., b'"']) => Some(unescape(raw)),
            Repr::Tree(serde_json::Value::String(text)) => Some(Cow::Borrowed(text)),
            _ => None,
        }
    }

    /// Appends this string to `out`, escaped for JSON but without quotes; appends nothing if this is not a string.
    pub fn write_escaped(self, out: &mut Vec<u8>) {
        match self.0 {
            Repr::Text([b'"', raw @ .., b'"']) if is_plain_ascii(raw) => out.extend_from_slice(raw),
            _ => write_escaped(&self.as_str().unwrap_or_default(), out),
        }
    }

    /// Returns true if this is a string that equals `text`.
    #[inline]
    pub fn is_str(self, text: &str) -> bool {
        match self.0 {
            Repr::Text([b'"', raw @ .., b'"']) => means(raw, text),
            Repr::Tree(serde_json::Value::String(own)) => own == text,
            _ => false,
        }
    }

    /// Returns the number if it is a [`Kind::Integer`], so not of `1.0` or `1e3`; `None` otherwise.
    #[inline]
    pub fn as_i64(self) -> Option<i64> {
        match self.0 {
            Repr::Text(text) => integer(text),
            Repr::Indexed(..) => None,
            Repr::Tree(tree) => tree.as_i64(),
        }
    }

    /// Returns the boolean; `None` for other kinds.
    #[inline]
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            Repr::Text(b"true") => Some(true),
            Repr::Text(b"false") => Some(false),
            Repr::Tree(tree) => tree.as_bool(),
            _ => None,
        }
    }

    /// Iterates over the items of an array in order; `None` for other kinds.
    #[inline]
    pub fn items(self) -> Option<Items<'a>> {
        match self.0 {
            Repr::Text(text) if text.first() == Some(&b'[') => Some(Items(ItemsRepr::Text { text, pos: 1 })),
            Repr::Indexed(index) if index.is_array() => Some(Items(ItemsRepr::Indexed(index.parts()))),
            Repr::Tree(serde_json::Value::Array(items)) => Some(Items(ItemsRepr::Tree(items.iter()))),
            _ => None,
        }
    }

    /// Iterates over the items of an array. Yields, for an object, the value of the last member with each of these
    /// keys; for any other item, an error that holds it. Returns `None` if this is not an array.
    #[inline]
    pub fn rows<const N: usize>(self, keys: [&str; N]) -> Option<Rows<'a, '_, N>> {
        Some(Rows { items: self.items()?, keys })
    }

    /// Iterates over the members of an object in the order of the text, duplicates included (the last one counts);
    /// `None` for other kinds.
    #[inline]
    pub fn members(self) -> Option<Members<'a>> {
        match self.0 {
            Repr::Indexed(index) if !index.is_array() => Some(Members(MembersRepr::Indexed(index.parts()))),
            Repr::Text(text) if text.first() == Some(&b'{') => {
                Some(Members(MembersRepr::Text { text, pos: 1 }))
            }
            Repr::Tree(serde_json::Value::Object(map)) => Some(Members(MembersRepr::Tree(map.iter()))),
            _ => None,
        }
    }

    /// Builds a `serde_json` tree, for callers that change values.
    ///
    /// # Errors
    /// If the value nests deeper than 128 levels, as trees are built and dropped by recursion.
    pub fn to_tree(self) -> Result<serde_json::Value, TooDeep> {
        self.to_tree_within(128)
    }

    /// Builds a `serde_json` tree of a value of at most `levels` levels, a value without items or members included.
    /// Trees are built and dropped by recursion: each level takes memory of the stack.
    ///
    /// # Errors
    /// If the value nests deeper.
    pub fn to_tree_within(self, levels: u32) -> Result<serde_json::Value, TooDeep> {
        use serde_json::Value as Tree;

        let inner = levels.checked_sub(1).ok_or(TooDeep)?;
        Ok(match self.kind() {
            Kind::Null => Tree::Null,
            Kind::Bool => Tree::Bool(self.as_bool().unwrap_or_default()),
            Kind::Integer => Tree::from(self.as_i64().unwrap_or_default()),
            Kind::Float => Tree::from(self.as_f64().unwrap_or_default()),
            Kind::String => Tree::String(self.as_str().unwrap_or_default().into_owned()),
            Kind::Array => {
                let items = self.items().into_iter().flatten();
                Tree::Array(items.map(|item| item.to_tree_within(inner)).collect::<Result<_, _>>()?)
            }
            Kind::Object => {
                let mut map = serde_json::Map::new();
                for (key, value) in self.members().into_iter().flatten() {
                    map.insert(key.into_owned(), value.to_tree_within(inner)?);
                }
                Tree::Object(map)
            }
        })
    }

    /// Returns the number as a float; `None` for other kinds.
    #[inline]
    pub fn as_f64(self) -> Option<f64> {
        match self.0 {
            Repr::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            Repr::Indexed(..) => None,
            Repr::Tree(tree) => tree.as_f64(),
        }
    }
}

/// Parses a number without fraction and exponent; `None` for any other text, and for a number that does not fit `i64`.
#[inline]
fn integer(text: &[u8]) -> Option<i64> {
    // So few digits cannot overflow; a sign makes the fold fail.
    if text.len() <= 8
        && let Some(number) = text.iter().try_fold(0, |sum, &byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then(|| sum * 10 + i64::from(digit))
        })
    {
        return (!text.is_empty()).then_some(number);
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// An iterator over the items of an array.
#[derive(Debug, Clone)]
pub struct Items<'a>(ItemsRepr<'a>);

/// The position in an array, by the form in which its value is kept.
#[derive(Debug, Clone)]
enum ItemsRepr<'a> {
    Text { text: &'a [u8], pos: usize },
    Indexed(Parts<'a>),
    Tree(std::slice::Iter<'a, serde_json::Value>),
}

/// Returns the position of the next item or key at or after `pos`, past white space and a comma; the position may be
/// that of the closing bracket.
fn next_start(text: &[u8], pos: usize) -> usize {
    let pos = scan::whitespace(text, pos);
    if text.get(pos) == Some(&b',') { scan::whitespace(text, pos + 1) } else { pos }
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        match &mut self.0 {
            ItemsRepr::Text { text, pos } => {
                let start = next_start(text, *pos);
                let end = scan::value(text, start, 0).ok()?;
                *pos = end;
                Some(Value::text_of(&text[start..end]))
            }
            ItemsRepr::Indexed(parts) => parts.next().map(|(_, item)| Value(item)),
            ItemsRepr::Tree(items) => items.next().map(Value::from),
        }
    }
}

/// An iterator over the items of an array, each reduced to the values of some keys; see [`Value::rows`].
#[derive(Debug, Clone)]
pub struct Rows<'a, 'k, const N: usize> {
    items: Items<'a>,
    keys: [&'k str; N],
}

impl<'a, const N: usize> Iterator for Rows<'a, '_, N> {
    type Item = Result<[Option<Value<'a>>; N], Value<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        // In a text the members are read immediately: finding the end of an object first would read it twice.
        if let ItemsRepr::Text { text, pos } = &mut self.items.0 {
            let start = next_start(text, *pos);
            if text.get(start) == Some(&b'{') {
                let mut members = Members(MembersRepr::Text { text, pos: start + 1 });
                let found = members.pick(self.keys);
                if let MembersRepr::Text { pos: end, .. } = members.0 {
                    *pos = scan::whitespace(text, end) + 1;
                }
                return Some(Ok(found));
            }
        }
        let item = self.items.next()?;
        Some(if item.kind() == Kind::Object { Ok(item.pick(self.keys)) } else { Err(item) })
    }
}

/// An iterator over the members of an object.
#[derive(Debug, Clone)]
pub struct Members<'a>(MembersRepr<'a>);

/// The position in an object, by the form in which its value is kept.
#[derive(Debug, Clone)]
enum MembersRepr<'a> {
    Text { text: &'a [u8], pos: usize },
    Indexed(Parts<'a>),
    Tree(serde_json::map::Iter<'a>),
}

impl<'a> Members<'a> {
    /// Reads all remaining members; returns, for each key, the value of the last one with it, `None` if there is none.
    fn pick<const N: usize>(&mut self, keys: [&str; N]) -> [Option<Value<'a>>; N] {
        let mut found = [None; N];
        while let Some((raw, value)) = self.next_raw() {
            for (key, found) in keys.iter().zip(&mut found) {
                if means(raw, key) {
                    *found = Some(value);
                }
            }
        }
        found
    }

    /// Returns the next member of a text with its raw key; `None` after the last one, and for a tree.
    fn next_raw(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        match &mut self.0 {
            MembersRepr::Text { text, pos } => {
                let start = next_start(text, *pos);
                if text.get(start) != Some(&b'"') {
                    return None;
                }
                let key_end = scan::string(text, start).ok()?;
                let value = scan::colon(text, key_end).ok()?;
                let end = scan::value(text, value, 0).ok()?;
                *pos = end;
                Some((&text[start + 1..key_end - 1], Value::text_of(&text[value..end])))
            }
            MembersRepr::Indexed(parts) => parts.next().map(|(key, value)| (key, Value(value))),
            MembersRepr::Tree(_) => None,
        }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if let MembersRepr::Tree(members) = &mut self.0 {
            return members.next().map(|(key, value)| (Cow::Borrowed(key.as_str()), Value::from(value)));
        }
        self.next_raw().map(|(key, value)| (unescape(key), value))
    }
}
