//! A validated JSON text with an index of its members.

use super::index::{Index, Member, Shape, Tag};
use super::scan::{self, Error, ErrorKind, Scan};
use super::string::unescape;
use super::value::Value;

/// A validator of JSON texts; reuses the memory of its index for the next text.
#[derive(Debug, Default)]
pub struct Parser {
    members: Vec<Member>,
    /// True to leave the items of lists without an index.
    skips_items: bool,
}

/// A validated JSON text with the index of its members; [`Document::root`] reads it.
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

    /// Returns a parser that does not index the items of lists. For a list of a whole cluster, whose items are parsed one
    /// by one: the index of all of them takes half as much memory as the text.
    pub fn without_items() -> Parser {
        Parser { skips_items: true, ..Parser::default() }
    }

    /// Validates `text`, which must be exactly one JSON value with optional white space around it, and returns it with
    /// its index. The error has the position of the first byte that is not JSON, or that exceeds a limit on size,
    /// nesting or numbers.
    pub fn parse<'a>(&'a mut self, text: &'a [u8]) -> Result<Document<'a>, Error> {
        let (document, rest) = self.parse_first(text)?;
        if let Some(&found) = rest.first() {
            return Err(trailing(text.len() - rest.len(), found));
        }
        Ok(document)
    }

    /// Validates the first value of `text`. Returns it with its index, and the text after it without leading white
    /// space. Call it repeatedly for a text of several values.
    ///
    /// # Errors
    /// If the text does not begin with a JSON value, or exceeds a limit on size, nesting or numbers.
    pub fn parse_first<'p, 't: 'p>(&'p mut self, text: &'t [u8]) -> Result<(Document<'p>, &'t [u8]), Error> {
        let (root, rest) = self.index(text)?;
        Ok((Document { text: root, members: &self.members }, rest))
    }

    /// Fills the index from the first value of `text`; returns the text of that value, and the rest without leading
    /// white space.
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

    /// Validates the object at the start of `text` and replaces the index by that of its members; returns the position
    /// after the object.
    pub(super) fn root(&mut self, text: &[u8]) -> Scan {
        self.members.clear();
        let end = self.container(Member::object(), |parser| parser.object(text, 0, Level::ROOT))?;
        #[cfg(feature = "record-parses")]
        super::parses::note(&text[..end]);
        Ok(end)
    }

    /// Returns `text` as a document with the present index; `text` must be the object that was validated last.
    pub(super) fn indexed<'a>(&'a self, text: &'a [u8]) -> Document<'a> {
        Document { text, members: &self.members }
    }

    /// Validates the object that starts at byte `pos` and indexes its members; returns the position after the object.
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
                Some(b'[') if let Some(inner) = level.rows(tag) => {
                    member.shape = Shape::Array;
                    self.container(member, |parser| parser.rows(text, start, inner))?
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

    /// Validates the array at byte `pos`, and indexes its items, and the members of items that are objects at `level`;
    /// returns the position after the array. Of a list's items that come when [`Parser::has_room`] is false, the
    /// members are not indexed, and of none if the parser skips them.
    fn rows(&mut self, text: &[u8], pos: usize, level: Level) -> Scan {
        let mut pos = scan::whitespace(text, pos + 1);
        if text.get(pos) == Some(&b']') {
            return Ok(pos + 1);
        }
        loop {
            let mut item = Member::new(Tag(0), false, (0, 0), pos);
            let is_object = text.get(pos) == Some(&b'{');
            let end =
                if is_object && (level.part == Part::Condition || !self.skips_items && self.has_room(pos)) {
                    item.shape = Shape::Object;
                    self.container(item, |parser| parser.object(text, pos, level))?
                } else {
                    self.leaf(item, scan::value(text, pos, level.depth() - 1)?)
                };
            pos = scan::whitespace(text, end);
            match text.get(pos) {
                Some(b',') => pos = scan::whitespace(text, pos + 1),
                _ => return scan::expect(text, pos, b']', scan::after_value(false)),
            }
        }
    }

    /// Returns true while the index takes less than 1 MiB plus twice the `scanned` bytes: the index of a list of tiny
    /// items would take many times the memory of its text.
    fn has_room(&self, scanned: usize) -> bool {
        self.members.len() * size_of::<Member>() < (1 << 20) + 2 * scanned
    }

    /// Adds `member`, whose value ends at byte `end`, to the index; returns `end`.
    #[inline(always)]
    fn leaf(&mut self, mut member: Member, end: usize) -> usize {
        member.value.1 = end as u32;
        self.members.push(member);
        end
    }

    /// Adds `member`, an object or array, to the index, then runs `scan`, which adds the members inside and returns the
    /// end of the value; returns that end.
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

/// The part of an object in which the scanner is; it indexes the members of these parts only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    part: Part,
    /// True inside an item of a list's `items`.
    is_in_list: bool,
}

/// A part of a Kubernetes object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The object itself.
    Object,
    /// The object `metadata` or `spec`.
    Section,
    Status,
    /// An item of `status.conditions`.
    Condition,
}

impl Level {
    const ROOT: Level = Level { part: Part::Object, is_in_list: false };

    /// Returns the level of the members of an object that is the value of the key with this tag; `None` if they are not
    /// indexed.
    ///
    /// A longer key with the same tag may be taken for `metadata`, `spec` or `status`: one level indexed too many is
    /// harmless.
    fn section(self, tag: Tag) -> Option<Level> {
        match tag {
            _ if self.part != Part::Object => None,
            Tag::METADATA | Tag::SPEC => Some(Level { part: Part::Section, ..self }),
            Tag::STATUS => Some(Level { part: Part::Status, ..self }),
            _ => None,
        }
    }

    /// Returns the level of the objects in an array that is the value of the key with this tag: the items of a list or
    /// the conditions of an object; `None` if the array is not indexed.
    fn rows(self, tag: Tag) -> Option<Level> {
        match (self.part, tag) {
            (Part::Object, Tag::ITEMS) if !self.is_in_list => Some(Level { is_in_list: true, ..self }),
            (Part::Status, Tag::CONDITIONS) => Some(Level { part: Part::Condition, ..self }),
            _ => None,
        }
    }

    /// Returns the nesting depth of member values at this level, in objects and arrays.
    fn depth(self) -> u32 {
        let inside = match self.part {
            Part::Object => 1,
            Part::Section | Part::Status => 2,
            Part::Condition => 4,
        };
        if self.is_in_list { inside + 2 } else { inside }
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

    /// Returns the top-level value of the text.
    pub fn root(&self) -> Value<'a> {
        if self.text.first() == Some(&b'{') {
            Value::indexed(Index { text: self.text, members: self.members })
        } else {
            Value::text_of(self.text)
        }
    }
}

impl OwnedDocument {
    /// Validates `text`, exactly one JSON value with optional white space around it, and returns it with its index. The
    /// error is as in [`Parser::parse`].
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

    /// Builds a document from the object `text` and the index `members`; sets the extent of the whole object in the
    /// first entry. Returns an error for a text of 4 GiB or more.
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

    /// Returns the top-level value of the text.
    pub fn root(&self) -> Value<'_> {
        Document { text: &self.text, members: &self.members }.root()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the JSON of each item of a list, and true if its first condition is indexed.
    fn items(text: &str) -> Vec<(String, bool)> {
        let document = OwnedDocument::parse(text.as_bytes()).unwrap();
        let items = document.root().get("items").unwrap().items().unwrap();
        let told = items.map(|item| {
            let status = item.at(&["status", "conditions"]).and_then(|value| value.items()?.next());
            (item.to_tree().unwrap().to_string(), status.is_some_and(|row| row.index().is_some()))
        });
        told.collect()
    }

    #[test]
    fn items_of_a_list_are_indexed_like_objects() {
        let item = r#"{"metadata":{"name":"a"},"status":{"conditions":[{"type":"A"}]}}"#;
        for (text, is_indexed) in [
            (format!(r#"{{"items":[{item}, {item}]}}"#), true),
            (format!(r#"{{"kind":"List","items":[ {item} , {item} ],"metadata":{{}}}}"#), true),
            // Those of a list in a list, and of another array.
            (format!(r#"{{"spec":{{"items":[{item}]}},"items":[{item}, {item}]}}"#), true),
        ] {
            assert_eq!(
                items(&text),
                [(item.to_owned(), is_indexed), (item.to_owned(), is_indexed)],
                "{text}"
            );
        }
        let nested = format!(r#"{{"items":[{{"items":[{item}]}}]}}"#);
        let document = OwnedDocument::parse(nested.as_bytes()).unwrap();
        let inner = document.root().get("items").unwrap().items().unwrap().next().unwrap();
        let found = inner.get("items").unwrap().items().unwrap().next().unwrap();
        assert!(found.index().is_none());
        assert_eq!(items(r#"{"items":[]}"#), []);
        let tiny = items(r#"{"items":[{}, 3, null, "s", [1]]}"#);
        assert_eq!(
            tiny.iter().map(|(text, _)| &**text).collect::<Vec<_>>(),
            ["{}", "3", "null", "\"s\"", "[1]"]
        );
    }

    #[test]
    fn a_list_of_tiny_items_takes_little_more_memory_than_its_text() {
        let text = format!("{{\"items\":[{}{{}}]}}", "{},".repeat(1 << 20));
        let document = OwnedDocument::parse(text.into_bytes()).unwrap();
        let mut items = document.root().get("items").unwrap().items().unwrap();
        assert!(items.next().unwrap().index().is_some());
        assert!(items.last().unwrap().index().is_none());
    }
}
