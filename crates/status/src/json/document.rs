//! A validated text with an index of the members that status rules ask for.

use super::scan::{self, Error, ErrorKind};
use super::value::Value;

/// Where a key and its value lie in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    key: (u32, u32),
    value: (u32, u32),
    /// Position in the index after this member and its own indexed members.
    next: u32,
    /// The value is an object whose members follow in the index.
    pub(super) indexed: bool,
}

impl Member {
    /// The key as it stands in the text, without its quotes.
    pub(super) fn key<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.key.0 as usize..self.key.1 as usize]
    }

    pub(super) fn value<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.value.0 as usize..self.value.1 as usize]
    }
}

/// The members of one object, each possibly followed by members of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Index<'a> {
    pub(super) text: &'a [u8],
    members: &'a [Member],
    /// Position in the whole index of `members[0]`.
    base: u32,
}

impl<'a> Index<'a> {
    /// The first member, its own members (empty unless indexed), and the siblings after it.
    pub(super) fn split(self) -> Option<(&'a Member, Index<'a>, Index<'a>)> {
        let first = self.members.first()?;
        let next = (first.next - self.base) as usize;
        let inner = Index { text: self.text, members: &self.members[1..next], base: self.base + 1 };
        let rest = Index { text: self.text, members: &self.members[next..], base: first.next };
        Some((first, inner, rest))
    }
}

/// Validates texts and keeps the memory of its index from one text to the next.
#[derive(Debug, Default)]
pub struct Parser {
    members: Vec<Member>,
}

/// A validated text; see [`Document::root`].
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    text: &'a [u8],
    members: &'a [Member],
}

/// A document that owns its text and index.
#[derive(Debug, Clone)]
pub struct OwnedDocument {
    text: Box<[u8]>,
    members: Box<[Member]>,
}

impl Parser {
    /// A parser with an empty index.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Validates `text`, which must be exactly one JSON value with optional white space around it.
    pub fn parse<'a>(&'a mut self, text: &'a [u8]) -> Result<Document<'a>, Error> {
        let (document, rest) = self.parse_first(text)?;
        if let Some(&found) = rest.first() {
            return Err(trailing(text.len() - rest.len(), found));
        }
        Ok(document)
    }

    /// Validates the first value of `text`; returns it with what follows it and white space.
    ///
    /// Texts of several values one after the other are read with it.
    pub fn parse_first<'p, 't: 'p>(&'p mut self, text: &'t [u8]) -> Result<(Document<'p>, &'t [u8]), Error> {
        let (root, rest) = self.index(text)?;
        Ok((Document { text: root, members: &self.members }, rest))
    }

    /// Fills the index; returns the first value of the text and what follows it, without white space.
    fn index<'a>(&mut self, text: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), Error> {
        self.members.clear();
        if u32::try_from(text.len()).is_err() {
            return Err(Error { offset: 0, kind: ErrorKind::TooLong });
        }
        let start = scan::whitespace(text, 0);
        let trimmed = &text[start..];
        let end = match trimmed.first() {
            Some(b'{') => self.object(trimmed, 0, 0),
            _ => scan::value(trimmed, 0, 0),
        };
        let end = end.map_err(|error| Error { offset: error.offset + start, ..error })?;
        let rest = scan::whitespace(trimmed, end);
        Ok((&trimmed[..end], &trimmed[rest..]))
    }

    /// Validates the object at `pos` and indexes its members; `depth` objects are around it.
    fn object(&mut self, text: &[u8], pos: usize, depth: u32) -> Result<usize, Error> {
        let mut pos = scan::whitespace(text, pos + 1);
        if text.get(pos) == Some(&b'}') {
            return Ok(pos + 1);
        }
        loop {
            scan::expect(text, pos, b'"', "a key in double quotes")?;
            let key_end = scan::string(text, pos)?;
            let key = (pos as u32 + 1, key_end as u32 - 1);
            let start = scan::colon(text, key_end)?;
            let at = self.members.len();
            let indexed = depth == 0 && text.get(start) == Some(&b'{') && wanted(&text[pos + 1..key_end - 1]);
            self.members.push(Member { key, value: (0, 0), next: 0, indexed });
            let end = if indexed {
                self.object(text, start, depth + 1)?
            } else {
                scan::value(text, start, depth + 1)?
            };
            let next = self.members.len() as u32;
            let member = &mut self.members[at];
            member.value = (start as u32, end as u32);
            member.next = next;
            pos = scan::whitespace(text, end);
            match text.get(pos) {
                Some(b',') => pos = scan::whitespace(text, pos + 1),
                _ => return scan::expect(text, pos, b'}', scan::after_value(true)),
            }
        }
    }
}

fn trailing(offset: usize, found: u8) -> Error {
    Error { offset, kind: ErrorKind::UnexpectedByte { found, expected: "nothing after the value" } }
}

/// Whether the members of the root's member `key` are indexed too.
///
/// An escaped key may mean one of the three; indexing one too many is harmless.
fn wanted(key: &[u8]) -> bool {
    matches!(key, b"metadata" | b"spec" | b"status")
}

impl<'a> Document<'a> {
    /// The one value of the text.
    pub fn root(&self) -> Value<'a> {
        if self.text.first() == Some(&b'{') {
            Value::indexed(self.text, Index { text: self.text, members: self.members, base: 0 })
        } else {
            Value::text_of(self.text)
        }
    }
}

impl OwnedDocument {
    /// Validates `text` and keeps it.
    pub fn parse(text: impl Into<Box<[u8]>>) -> Result<OwnedDocument, Error> {
        let text = text.into();
        let mut parser = Parser::new();
        let (trimmed, rest) = parser.index(&text)?;
        if let Some(&found) = rest.first() {
            return Err(trailing(text.len() - rest.len(), found));
        }
        let text = if trimmed.len() == text.len() { text } else { trimmed.into() };
        Ok(OwnedDocument { text, members: parser.members.into_boxed_slice() })
    }

    /// The text, without surrounding white space.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The one value of the text.
    pub fn root(&self) -> Value<'_> {
        Document { text: &self.text, members: &self.members }.root()
    }
}
