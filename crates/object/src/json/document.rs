//! A validated text with an index of the members that status rules read.

use super::scan::{self, Error, ErrorKind, Scan};
use super::string::{means, unescape};
use super::value::Value;

/// The positions of a member's key and value in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    /// The tag of the unescaped key.
    tag: Tag,
    /// The key without its quotes; empty for the root and for items.
    key: (u32, u32),
    value: (u32, u32),
    /// The distance in the index to the next member that is not inside this one.
    skip: u32,
    /// True if the key contains an escape.
    escaped: bool,
    shape: Shape,
}

/// The kind of a value in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A value without indexed parts.
    Leaf,
    /// An object; its members follow.
    Object,
    /// An array; its items follow.
    Array,
}

/// The first eight bytes of an unescaped key, zero-padded: they tell most keys apart in one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tag(u64);

impl Tag {
    const METADATA: Tag = Tag(u64::from_le_bytes(*b"metadata"));
    const SPEC: Tag = Tag(u64::from_le_bytes(*b"spec\0\0\0\0"));
    const STATUS: Tag = Tag(u64::from_le_bytes(*b"status\0\0"));
    const CONDITIONS: Tag = Tag(u64::from_le_bytes(*b"conditio"));

    /// Returns the tag of a key. Inlined so that the tag of a literal is a constant.
    #[inline(always)]
    fn of(key: &str) -> Tag {
        Tag(scan::first_word(key.as_bytes()))
    }
}

impl Member {
    /// Creates a member whose value starts at a position.
    #[inline(always)]
    fn new(tag: Tag, escaped: bool, key: (u32, u32), start: usize) -> Member {
        Member { tag, key, value: (start as u32, 0), skip: 1, escaped, shape: Shape::Leaf }
    }

    /// Creates the member of an object at the start of its text.
    #[inline(always)]
    pub(super) fn object() -> Member {
        Member { shape: Shape::Object, ..Member::new(Tag(0), false, (0, 0), 0) }
    }

    /// Creates a member whose raw key lies at `key`, and whose value starts behind the text.
    pub(super) fn with_key(text: &[u8], key: (usize, usize)) -> Member {
        let raw = &text[key.0..key.1];
        let escaped = raw.contains(&b'\\');
        let tag = if escaped { Tag::of(&unescape(raw)) } else { Tag(scan::first_word(raw)) };
        Member::new(tag, escaped, (key.0 as u32, key.1 as u32), text.len())
    }

    /// Sets the end of the value.
    pub(super) fn end(&mut self, end: usize) {
        self.value.1 = end as u32;
    }

    /// Takes the key of another member.
    pub(super) fn take_key(&mut self, other: &Member) {
        (self.tag, self.escaped, self.key) = (other.tag, other.escaped, other.key);
    }

    /// Returns the raw key in the text, without its quotes.
    fn key<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.key.0 as usize..self.key.1 as usize]
    }

    fn value<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.value.0 as usize..self.value.1 as usize]
    }

    /// Returns true if the member's key equals `key`; the tags must be equal already.
    #[inline(always)]
    fn is_called(&self, text: &[u8], key: &str) -> bool {
        let length = (self.key.1 - self.key.0) as usize;
        if self.escaped || (length == key.len() && length > 16) {
            return self.is_oddly_called(text, key);
        }
        // A raw key contains no zero bytes: up to eight bytes, its tag and length determine it, and up to sixteen, its
        // last eight bytes add the rest.
        let last = |bytes: &[u8]| bytes.last_chunk().copied().map(u64::from_ne_bytes);
        length == key.len() && (length <= 8 || last(self.key(text)) == last(key.as_bytes()))
    }

    /// Compares a key that is long or contains an escape. Kept apart, for a call in the search loops costs more than
    /// the comparison.
    #[cold]
    #[inline(never)]
    fn is_oddly_called(&self, text: &[u8], key: &str) -> bool {
        means(self.key(text), key)
    }
}

/// A value whose parts are indexed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Index<'a> {
    text: &'a [u8],
    /// The value itself, then its members or items, each followed by its own parts.
    members: &'a [Member],
}

impl<'a> Index<'a> {
    /// Returns the JSON text of the value.
    pub(super) fn text(&self) -> &'a [u8] {
        self.members.first().map_or(&[], |own| own.value(self.text))
    }

    /// Returns the index as it is in a text in which the value starts at `start`.
    pub(super) fn moved_to(self, start: usize) -> impl Iterator<Item = Member> + use<'a> {
        let before = self.members.first().map_or(0, |own| own.value.0);
        let moved = move |at: u32| at.wrapping_sub(before).wrapping_add(start as u32);
        let each = move |member: &Member| {
            // Items have no key.
            let key = if member.key == (0, 0) { (0, 0) } else { (moved(member.key.0), moved(member.key.1)) };
            Member { key, value: (moved(member.value.0), moved(member.value.1)), ..*member }
        };
        self.members.iter().map(each)
    }

    #[inline]
    pub(super) fn is_array(&self) -> bool {
        self.members.first().is_some_and(|own| own.shape == Shape::Array)
    }

    /// Iterates over the members or items.
    #[inline]
    pub(super) fn parts(&self) -> Parts<'a> {
        Parts { text: self.text, members: self.members.get(1..).unwrap_or_default() }
    }

    /// Returns the value of the last member with this key.
    #[inline]
    pub(super) fn get(&self, key: &str) -> Option<Value<'a>> {
        self.tagged(Tag::of(key), key)
    }

    #[inline(never)]
    fn tagged(&self, tag: Tag, key: &str) -> Option<Value<'a>> {
        if self.is_array() {
            return None;
        }
        let mut found = None;
        let mut at = 1;
        while let Some(member) = self.members.get(at) {
            if member.tag == tag && member.is_called(self.text, key) {
                found = Some(at);
            }
            at += member.skip as usize;
        }
        Some(value(self.text, &self.members[found?..]))
    }

    /// Returns the values of the last members with these keys.
    #[inline(always)]
    pub(super) fn pick<const N: usize>(&self, keys: [&str; N]) -> [Option<Value<'a>>; N] {
        let tags = keys.map(Tag::of);
        // Zero is the value itself, which is not a member.
        let mut found = [0; N];
        let mut at = if self.is_array() { self.members.len() } else { 1 };
        while let Some(member) = self.members.get(at) {
            for slot in 0..N {
                if member.tag == tags[slot] && member.is_called(self.text, keys[slot]) {
                    found[slot] = at;
                    break;
                }
            }
            at += member.skip as usize;
        }
        let mut values = [None; N];
        for (value_found, at) in values.iter_mut().zip(found) {
            if at != 0 {
                *value_found = Some(value(self.text, &self.members[at..]));
            }
        }
        values
    }
}

/// Returns the value of the first of some members.
#[inline(always)]
fn value<'a>(text: &'a [u8], members: &'a [Member]) -> Value<'a> {
    let own = &members[0];
    if own.shape == Shape::Leaf {
        Value::text_of(own.value(text))
    } else {
        Value::indexed(Index { text, members: &members[..own.skip as usize] })
    }
}

/// An iterator over the parts of an [`Index`]: their raw keys and values.
#[derive(Debug, Clone)]
pub(super) struct Parts<'a> {
    text: &'a [u8],
    members: &'a [Member],
}

impl<'a> Iterator for Parts<'a> {
    type Item = (&'a [u8], Value<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let first = self.members.first()?;
        let value = value(self.text, self.members);
        self.members = &self.members[first.skip as usize..];
        Some((first.key(self.text), value))
    }
}

/// Validates texts, and reuses the memory of its index for the next text.
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

/// A document that owns its text and its index.
#[derive(Debug, Clone)]
pub struct OwnedDocument {
    text: Box<[u8]>,
    members: Box<[Member]>,
}

impl Parser {
    /// Returns a parser with an empty index.
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

    /// Validates the first value of `text`; returns it with the text behind it, without white space between them. Call
    /// it repeatedly for a text of several values.
    pub fn parse_first<'p, 't: 'p>(&'p mut self, text: &'t [u8]) -> Result<(Document<'p>, &'t [u8]), Error> {
        let (root, rest) = self.index(text)?;
        Ok((Document { text: root, members: &self.members }, rest))
    }

    /// Fills the index; returns the text of the first value and the rest behind it, without white space.
    fn index<'a>(&mut self, text: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), Error> {
        self.members.clear();
        if u32::try_from(text.len()).is_err() {
            return Err(Error { offset: 0, kind: ErrorKind::TooLong });
        }
        let start = scan::whitespace(text, 0);
        let trimmed = &text[start..];
        let end = match trimmed.first() {
            Some(b'{') => self.root(trimmed),
            _ => scan::value(trimmed, 0, 0),
        };
        let end = end.map_err(|error| Error { offset: error.offset + start, ..*error })?;
        let rest = scan::whitespace(trimmed, end);
        Ok((&trimmed[..end], &trimmed[rest..]))
    }

    /// Validates the object at the start of `text`, and replaces the index with its members.
    pub(super) fn root(&mut self, text: &[u8]) -> Scan {
        self.members.clear();
        let end = self.container(Member::object(), |parser| parser.object(text, 0, Level::Root))?;
        #[cfg(feature = "record-parses")]
        super::parses::note(&text[..end]);
        Ok(end)
    }

    /// Returns the object that the index describes.
    pub(super) fn indexed<'a>(&'a self, text: &'a [u8]) -> Document<'a> {
        Document { text, members: &self.members }
    }

    /// Validates the object at `pos` and indexes its members; returns its end.
    fn object(&mut self, text: &[u8], pos: usize, level: Level) -> Scan {
        let mut pos = scan::whitespace(text, pos + 1);
        if text.get(pos) == Some(&b'}') {
            return Ok(pos + 1);
        }
        loop {
            let key = scan::tagged_key(text, pos)?;
            let raw = (pos as u32 + 1, key.end as u32 - 1);
            let (tag, escaped) = match key.word {
                Some(word) => (Tag(word), false),
                None => (Tag::of(&unescape(&text[pos + 1..key.end - 1])), true),
            };
            let start = scan::colon(text, key.end)?;
            let mut member = Member::new(tag, escaped, raw, start);
            let end = match text.get(start) {
                Some(b'"') => self.leaf(member, scan::string(text, start)?),
                Some(b'-' | b'0'..=b'9') => self.leaf(member, scan::number(text, start)?),
                Some(b'{') if let Some(inner) = level.section(tag) => {
                    member.shape = Shape::Object;
                    self.container(member, |parser| parser.object(text, start, inner))?
                }
                Some(b'[') if level == Level::Status && tag == Tag::CONDITIONS => {
                    member.shape = Shape::Array;
                    self.container(member, |parser| parser.rows(text, start))?
                }
                _ => self.leaf(member, scan::value(text, start, level.depth())?),
            };
            pos = scan::whitespace(text, end);
            match text.get(pos) {
                Some(b',') => pos = scan::whitespace(text, pos + 1),
                _ => return scan::expect(text, pos, b'}', scan::after_value(true)),
            }
        }
    }

    /// Validates the array at `pos`, the conditions, and indexes its items and their members; returns its end.
    fn rows(&mut self, text: &[u8], pos: usize) -> Scan {
        let mut pos = scan::whitespace(text, pos + 1);
        if text.get(pos) == Some(&b']') {
            return Ok(pos + 1);
        }
        loop {
            let mut item = Member::new(Tag(0), false, (0, 0), pos);
            let end = if text.get(pos) == Some(&b'{') {
                item.shape = Shape::Object;
                self.container(item, |parser| parser.object(text, pos, Level::Row))?
            } else {
                self.leaf(item, scan::value(text, pos, Level::Row.depth() - 1)?)
            };
            pos = scan::whitespace(text, end);
            match text.get(pos) {
                Some(b',') => pos = scan::whitespace(text, pos + 1),
                _ => return scan::expect(text, pos, b']', scan::after_value(false)),
            }
        }
    }

    /// Adds `member`, whose value ends at `end`, to the index.
    #[inline(always)]
    fn leaf(&mut self, mut member: Member, end: usize) -> usize {
        member.value.1 = end as u32;
        self.members.push(member);
        end
    }

    /// Adds `member` to the index, then the members that `scan` adds while it searches the end of the value.
    #[inline(always)]
    fn container(&mut self, member: Member, scan: impl FnOnce(&mut Parser) -> Scan) -> Scan {
        let at = self.members.len();
        self.members.push(member);
        let end = scan(self)?;
        let skip = (self.members.len() - at) as u32;
        let own = &mut self.members[at];
        own.value.1 = end as u32;
        own.skip = skip;
        Ok(end)
    }
}

/// The scanner's position in a Kubernetes object; only these parts are indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    /// `metadata` or `spec`.
    Section,
    Status,
    /// An item of `status.conditions`.
    Row,
}

impl Level {
    /// Returns the level of the object under a key; `None` if it is not indexed.
    ///
    /// A longer key with the same tag may be taken for one of the three; one index too many is harmless.
    fn section(self, tag: Tag) -> Option<Level> {
        match tag {
            _ if self != Level::Root => None,
            Tag::METADATA | Tag::SPEC => Some(Level::Section),
            Tag::STATUS => Some(Level::Status),
            _ => None,
        }
    }

    /// Returns the number of objects and arrays around the values of members.
    fn depth(self) -> u32 {
        match self {
            Level::Root => 1,
            Level::Section | Level::Status => 2,
            Level::Row => 4,
        }
    }
}

fn trailing(offset: usize, found: u8) -> Error {
    Error { offset, kind: ErrorKind::UnexpectedByte { found, expected: "nothing after the value" } }
}

impl<'a> Document<'a> {
    /// Copies the document with its index.
    pub fn owned(&self) -> OwnedDocument {
        let members = if self.text.first() == Some(&b'{') { self.members } else { &[] };
        OwnedDocument { text: self.text.into(), members: members.into() }
    }

    /// Returns the value of the text.
    pub fn root(&self) -> Value<'a> {
        if self.text.first() == Some(&b'{') {
            Value::indexed(Index { text: self.text, members: self.members })
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

    /// Keeps an object with its index, in which only the end of the object and its extent are missing.
    pub(super) fn built(text: Vec<u8>, mut members: Vec<Member>) -> Result<OwnedDocument, Error> {
        let (Ok(end), Ok(skip)) = (u32::try_from(text.len()), u32::try_from(members.len())) else {
            return Err(Error { offset: 0, kind: ErrorKind::TooLong });
        };
        if let Some(own) = members.first_mut() {
            (own.value.1, own.skip) = (end, skip);
        }
        Ok(OwnedDocument { text: text.into_boxed_slice(), members: members.into_boxed_slice() })
    }

    /// Returns the text, without surrounding white space.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the value of the text.
    pub fn root(&self) -> Value<'_> {
        Document { text: &self.text, members: &self.members }.root()
    }
}
