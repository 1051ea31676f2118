//! A validated text with an index of the members that status rules ask for.

use super::scan::{self, Error, ErrorKind};
use super::string::means;
use super::value::Value;

/// Where a key and its value lie in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    key: (u32, u32),
    value: (u32, u32),
    tag: Tag,
    /// Position in the index after this member and its own indexed members.
    next: u32,
    /// The value is an object whose members follow in the index.
    indexed: bool,
}

/// The first eight bytes of a key, zero-padded: tells most keys from others at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tag(u64);

impl Tag {
    /// The tag of a key that may mean anything, because it starts with an escape.
    const ANY: Tag = Tag(u64::MAX);

    #[inline(always)]
    fn of(key: &str) -> Tag {
        if let Some(word) = key.as_bytes().first_chunk() {
            return Tag(u64::from_le_bytes(*word));
        }
        let mut word = 0;
        for byte in key.bytes().rev() {
            word = word << 8 | u64::from(byte);
        }
        Tag(word)
    }

    #[inline(always)]
    fn may_be(self, wanted: Tag) -> bool {
        self == wanted || self == Tag::ANY
    }
}

impl Member {
    /// The key as it stands in the text, without its quotes.
    fn key<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.key.0 as usize..self.key.1 as usize]
    }

    fn value<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.value.0 as usize..self.value.1 as usize]
    }
}

/// The members of one object, each possibly followed by members of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Index<'a> {
    text: &'a [u8],
    members: &'a [Member],
    /// Position in the whole index of `members[0]`.
    base: u32,
    /// Members may have members of their own in between.
    nested: bool,
}

impl<'a> Index<'a> {
    /// The raw key and the value of the first member; what is left are the members after it.
    pub(super) fn next(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        let first = self.members.first()?;
        let value = self.value(0)?;
        self.members = &self.members[(first.next - self.base) as usize..];
        self.base = first.next;
        Some((first.key(self.text), value))
    }

    /// The value of the member at a position.
    fn value(&self, at: usize) -> Option<Value<'a>> {
        let member = self.members.get(at)?;
        let text = member.value(self.text);
        if !member.indexed {
            return Some(Value::text_of(text));
        }
        let next = (member.next - self.base) as usize;
        let members = &self.members[at + 1..next];
        Some(Value::indexed(
            text,
            Index { text: self.text, members, base: self.base + at as u32 + 1, nested: false },
        ))
    }

    /// The value of the last member called `key`.
    pub(super) fn get(&self, key: &str) -> Option<Value<'a>> {
        let wanted = Tag::of(key);
        let is_it = |member: &Member| member.tag.may_be(wanted) && means(member.key(self.text), key);
        if !self.nested {
            return self.value(self.members.iter().rposition(is_it)?);
        }
        let mut found = None;
        let mut at = 0;
        while let Some(member) = self.members.get(at) {
            if is_it(member) {
                found = Some(at);
            }
            at = (member.next - self.base) as usize;
        }
        self.value(found?)
    }

    /// The values of the last members called as `keys` say.
    #[inline]
    pub(super) fn pick<const N: usize>(&self, keys: [&str; N]) -> [Option<Value<'a>>; N] {
        let wanted = keys.map(Tag::of);
        let mut found = [None; N];
        let mut at = 0;
        while let Some(member) = self.members.get(at) {
            for slot in 0..N {
                if member.tag.may_be(wanted[slot]) && means(member.key(self.text), keys[slot]) {
                    found[slot] = self.value(at);
                    break;
                }
            }
            at = (member.next - self.base) as usize;
        }
        found
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
            let (key_end, word) = scan::tagged_key(text, pos)?;
            let key = (pos as u32 + 1, key_end as u32 - 1);
            let start = scan::colon(text, key_end)?;
            let at = self.members.len();
            let tag = word.map_or(Tag::ANY, Tag);
            let indexed = depth == 0 && text.get(start) == Some(&b'{') && wanted(&text[pos + 1..key_end - 1]);
            let mut member = Member { key, value: (start as u32, 0), tag, next: at as u32 + 1, indexed };
            let end = match text.get(start) {
                Some(b'"') => scan::string(text, start)?,
                Some(b'-' | b'0'..=b'9') => scan::number(text, start)?,
                Some(b'{') if indexed => {
                    self.members.push(member);
                    let end = self.object(text, start, depth + 1)?;
                    member.next = self.members.len() as u32;
                    end
                }
                _ => scan::value(text, start, depth + 1)?,
            };
            member.value.1 = end as u32;
            if indexed {
                self.members[at] = member;
            } else {
                self.members.push(member);
            }
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
            Value::indexed(self.text, Index { text: self.text, members: self.members, base: 0, nested: true })
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
