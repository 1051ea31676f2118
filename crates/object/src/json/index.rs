//! The index: the positions, in a validated text, of the members that status rules read.

use super::scan;
use super::string::{means, unescape};

/// The positions of a member's key and value in the text, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    /// The first bytes of the unescaped key, for quick comparison.
    tag: Tag,
    /// The start and end of the key without its quotes; both 0 for the root and for items of arrays.
    key: (u32, u32),
    pub(super) value: (u32, u32),
    /// The number of index entries from this member to the next one that is not inside its value.
    pub(super) skip: u32,
    /// True if the key contains an escape.
    escaped: bool,
    pub(super) shape: Shape,
}

/// The kind of a value in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A value whose parts are not indexed.
    Leaf,
    /// An object; the entries of its members follow.
    Object,
    /// An array; the entries of its items follow.
    Array,
}

/// The first eight bytes of an unescaped key, zero-padded: they tell most keys apart in one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag(pub(super) u64);

impl Tag {
    pub(super) const METADATA: Tag = Tag(u64::from_le_bytes(*b"metadata"));
    pub(super) const SPEC: Tag = Tag(u64::from_le_bytes(*b"spec\0\0\0\0"));
    pub(super) const STATUS: Tag = Tag(u64::from_le_bytes(*b"status\0\0"));
    pub(super) const ITEMS: Tag = Tag(u64::from_le_bytes(*b"items\0\0\0"));
    pub(super) const CONDITIONS: Tag = Tag(u64::from_le_bytes(*b"conditio"));

    /// Returns the tag of a key. Inlined so that the tag of a literal is a constant.
    #[inline(always)]
    pub(super) fn of(key: &str) -> Tag {
        Tag(scan::first_word(key.as_bytes()))
    }
}

impl Member {
    /// Creates the index entry of a leaf whose value starts at byte `start` of the text; its end is still missing.
    #[inline(always)]
    pub(super) fn new(tag: Tag, escaped: bool, key: (u32, u32), start: usize) -> Member {
        Member { tag, key, value: (start as u32, 0), skip: 1, escaped, shape: Shape::Leaf }
    }

    /// Creates the index entry of the root: an object without a key that starts at byte 0.
    #[inline(always)]
    pub(super) fn object() -> Member {
        Member { shape: Shape::Object, ..Member::new(Tag(0), false, (0, 0), 0) }
    }

    /// Creates a leaf whose value will be appended to `text`. `key` are the start and the end of its raw key in
    /// `text`.
    pub(super) fn with_key(text: &[u8], key: (usize, usize)) -> Member {
        let raw = &text[key.0..key.1];
        let escaped = raw.contains(&b'\\');
        let tag = if escaped { Tag::of(&unescape(raw)) } else { Tag(scan::first_word(raw)) };
        Member::new(tag, escaped, (key.0 as u32, key.1 as u32), text.len())
    }

    /// Sets the position after the value's last byte.
    pub(super) fn end(&mut self, end: usize) {
        self.value.1 = end as u32;
    }

    /// Replaces the key of this member by the key of `other`.
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

    /// Returns true if the key, which is long or contains an escape, equals `key`. A separate function because a call
    /// in the search loops costs more than the comparison.
    #[cold]
    #[inline(never)]
    fn is_oddly_called(&self, text: &[u8], key: &str) -> bool {
        means(self.key(text), key)
    }
}

/// The location of a value: in a validated text, in an indexed part of one, or in a tree.
#[derive(Debug, Clone, Copy)]
pub(super) enum Repr<'a> {
    Text(&'a [u8]),
    Indexed(Index<'a>),
    Tree(&'a serde_json::Value),
}

/// An object or array whose parts are indexed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Index<'a> {
    pub(super) text: &'a [u8],
    /// The entry of the value itself, then those of its members or items, each followed by its own parts.
    pub(super) members: &'a [Member],
}

impl<'a> Index<'a> {
    /// Returns the JSON text of the value.
    pub(super) fn text(&self) -> &'a [u8] {
        self.members.first().map_or(&[], |own| own.value(self.text))
    }

    /// Returns the index entries with their positions shifted, for a text in which a copy of the value starts at byte
    /// `start`.
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

    /// Iterates over the members of the object, or the items of the array.
    #[inline]
    pub(super) fn parts(&self) -> Parts<'a> {
        Parts { text: self.text, members: self.members.get(1..).unwrap_or_default() }
    }

    /// Returns the value of the last member with this key; `None` if there is none or this is an array.
    #[inline]
    pub(super) fn get(&self, key: &str) -> Option<Repr<'a>> {
        self.tagged(Tag::of(key), key)
    }

    #[inline(never)]
    fn tagged(&self, tag: Tag, key: &str) -> Option<Repr<'a>> {
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

    /// Returns, for each key, the value of the last member with it, converted by `view`; `None` for a key without a
    /// member, and for all keys if this is an array.
    #[inline(always)]
    pub(super) fn pick<T: Copy, const N: usize>(
        &self,
        keys: [&str; N],
        view: impl Fn(Repr<'a>) -> T,
    ) -> [Option<T>; N] {
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
                *value_found = Some(view(value(self.text, &self.members[at..])));
            }
        }
        values
    }
}

/// Returns the value of the first entry of `members`.
#[inline(always)]
fn value<'a>(text: &'a [u8], members: &'a [Member]) -> Repr<'a> {
    let own = &members[0];
    if own.shape == Shape::Leaf {
        Repr::Text(own.value(text))
    } else {
        Repr::Indexed(Index { text, members: &members[..own.skip as usize] })
    }
}

/// An iterator over the members or items of an [`Index`]: raw key (empty for items) and value.
#[derive(Debug, Clone)]
pub(super) struct Parts<'a> {
    text: &'a [u8],
    members: &'a [Member],
}

impl<'a> Iterator for Parts<'a> {
    type Item = (&'a [u8], Repr<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let first = self.members.first()?;
        let value = value(self.text, self.members);
        self.members = &self.members[first.skip as usize..];
        Some((first.key(self.text), value))
    }
}
