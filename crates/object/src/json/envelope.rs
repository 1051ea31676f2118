//! Reads objects in the envelopes of API servers: a page of a list, or a line of a watch.

use super::document::{Document, Parser};
use super::scan::{self, Error, ErrorKind, Scan};
use super::string::unescape;
use super::value::Value;

/// A part of an envelope.
#[derive(Debug)]
pub enum Part<'a> {
    /// An object: an item of `items`, or the value of `object`.
    Object(Document<'a>),
    /// An item of `items`, or the value of `object`, that is not a JSON object.
    Other(Value<'a>),
    /// The start of the array `items`, before its first item.
    Items,
    /// Any other member: its raw key in the text, and its value.
    Member(&'a [u8], Value<'a>),
}

impl Parser {
    /// Calls `visit` for each member of the JSON object in `text`, in order; for the array `items`, at its start and
    /// then for each item. Reads lists and watch events: each byte is read once, and each object gets its own index, as
    /// from [`Parser::parse`].
    ///
    /// Parts that were visited before an error are valid. Items of a second `items` are visited too.
    ///
    /// # Errors
    /// If `text` is not exactly one JSON object with optional white space around it.
    pub fn envelope(&mut self, text: &[u8], mut visit: impl FnMut(Part<'_>)) -> Result<(), Error> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error { offset: 0, kind: ErrorKind::TooLong });
        }
        let end = self.envelope_end(text, &mut visit).map_err(|error| *error)?;
        let rest = scan::whitespace(text, end);
        match text.get(rest) {
            None => Ok(()),
            Some(_) => scan::unexpected(text, rest, "nothing after the value").map_err(|error| *error),
        }
    }

    fn envelope_end(&mut self, text: &[u8], visit: &mut impl FnMut(Part<'_>)) -> Scan {
        let start = scan::whitespace(text, 0);
        let mut pos = scan::whitespace(text, scan::expect(text, start, b'{', "an object")?);
        if text.get(pos) == Some(&b'}') {
            return Ok(pos + 1);
        }
        loop {
            let key = scan::tagged_key(text, pos)?;
            let raw = &text[pos + 1..key.end - 1];
            let start = scan::colon(text, key.end)?;
            let holds = |name: &str| raw == name.as_bytes() || (key.word.is_none() && unescape(raw) == name);
            let end = if text.get(start) == Some(&b'[') && holds("items") {
                visit(Part::Items);
                self.items(text, start, visit)?
            } else if holds("object") {
                self.visit_value(text, start, visit)?
            } else {
                let end = scan::value(text, start, 1)?;
                visit(Part::Member(raw, Value::text_of(&text[start..end])));
                end
            };
            pos = scan::whitespace(text, end);
            match text.get(pos) {
                Some(b',') => pos = scan::whitespace(text, pos + 1),
                _ => return scan::expect(text, pos, b'}', scan::after_value(true)),
            }
        }
    }

    /// Calls `visit` for each item of the array at byte `pos`; returns the position after the array.
    fn items(&mut self, text: &[u8], pos: usize, visit: &mut impl FnMut(Part<'_>)) -> Scan {
        let mut pos = scan::whitespace(text, pos + 1);
        if text.get(pos) == Some(&b']') {
            return Ok(pos + 1);
        }
        loop {
            let end = self.visit_value(text, pos, visit)?;
            pos = scan::whitespace(text, end);
            match text.get(pos) {
                Some(b',') => pos = scan::whitespace(text, pos + 1),
                _ => return scan::expect(text, pos, b']', scan::after_value(false)),
            }
        }
    }

    /// Validates the value at byte `pos` and calls `visit` with it, as an indexed object or as [`Part::Other`]; returns
    /// the position after it.
    fn visit_value(&mut self, text: &[u8], pos: usize, visit: &mut impl FnMut(Part<'_>)) -> Scan {
        if text.get(pos) != Some(&b'{') {
            let end = scan::value(text, pos, 2)?;
            visit(Part::Other(Value::text_of(&text[pos..end])));
            return Ok(end);
        }
        let own = &text[pos..];
        let end = self.root(own).map_err(|mut error| {
            error.offset += pos;
            error
        })?;
        visit(Part::Object(self.indexed(&own[..end])));
        Ok(pos + end)
    }
}
