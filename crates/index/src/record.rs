//! What is kept of an object, and the heads of the lists that objects are in.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_object::json::OwnedDocument;
use taffrail_status::{Status, Verdict};

use super::pool::NONE;
use super::table::Seed;

/// Names an object of an index as long as it is there.
///
/// The slot is given to another object when this one is gone, the generation never: so a table with a row for each
/// [`slot`](Handle::slot) is small, and a row whose generation is another belongs to an object that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl Handle {
    /// A small number, which no other object has at the same time.
    pub fn slot(self) -> usize {
        self.slot as usize
    }

    /// The number of objects that had the slot before.
    pub fn generation(self) -> u32 {
        self.generation
    }
}

/// A UID in 128 bits: those of the UUID, or a hash of a text that is none. Each index hashes such texts in a way of its own, so
/// that nobody can make two of them that are one; a UID of one index says nothing in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
// Two halves: a number of 128 bits wants places that are multiples of its size.
pub struct Uid([u64; 2]);

impl Uid {
    /// Of an object that has none.
    pub const NONE: Uid = Uid([0; 2]);

    /// The UID that `text` stands for in the index of this seed.
    pub(super) fn new(text: &str, seed: Seed) -> Uid {
        match Uid::of_uuid(text) {
            Some(uid) => uid,
            None if text.is_empty() => Uid::NONE,
            None => Uid::of_bits(seed.words(&["uid", text]) | 1),
        }
    }

    /// The UID that `text` spells, if it is a UUID.
    pub(super) fn of_uuid(text: &str) -> Option<Uid> {
        uuid(text.as_bytes()).map(Uid::of_bits)
    }

    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self == Uid::NONE
    }

    /// Whether `text` can be told from the bits.
    pub(super) fn is_said_by(self, text: &str) -> bool {
        Uid::of_uuid(text) == Some(self)
    }

    pub(super) fn of_bits(bits: u128) -> Uid {
        Uid([(bits >> 64) as u64, bits as u64])
    }

    pub(super) fn bits(self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }
}

/// The bits of a UUID as the API server writes it: in lower case, with hyphens.
fn uuid(text: &[u8]) -> Option<u128> {
    let text: &[u8; 36] = text.try_into().ok()?;
    if [8, 13, 18, 23].iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let half = |ranges: [std::ops::Range<usize>; 3]| {
        let digits = ranges.into_iter().flat_map(|range| &text[range]);
        digits.copied().try_fold(0_u64, |bits, byte| {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            Some(bits << 4 | u64::from(digit))
        })
    };
    let bits = [half([0..8, 9..13, 14..18])?, half([19..23, 24..36, 0..0])?];
    (bits != [0; 2]).then_some(u128::from(bits[0]) << 64 | u128::from(bits[1]))
}

/// Written as a UUID.
impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |from: u32, bits: u32| (self.bits() >> (128 - from - bits)) & ((1 << bits) - 1);
        let [a, b, c, d, e] = [part(0, 32), part(32, 16), part(48, 16), part(64, 16), part(80, 48)];
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
    }
}

/// How an object comes to have an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// The owner is its controller.
    Controller,
    /// Another owner reference names the owner.
    Owner,
    /// No owner reference says so, but a convention: a name, a label, an annotation.
    Inferred,
}

/// An owner of an object, which need not be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    /// Its UID, or what stands for it where the object names it by other means.
    pub(super) uid: Uid,
    pub(super) relation: Relation,
}

/// Neighbours in a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neighbours {
    pub(super) next: u32,
    pub(super) previous: u32,
}

impl Default for Neighbours {
    fn default() -> Neighbours {
        Neighbours { next: NONE, previous: NONE }
    }
}

/// The lists that an object is in. They are kept apart from the rest of its record: a walk touches nothing else, and
/// to copy a chunk of them on write is to copy plain bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    /// The number of objects that had the slot before.
    pub(super) generation: u32,
    /// The owner group that it is in as a child, by its first owner.
    pub(super) parent: u32,
    /// The first of the owner groups that it is the owner of.
    pub(super) owner_groups: u32,
    /// Children of the same owner group.
    pub(super) siblings: Neighbours,
    /// Objects of the same kind and namespace.
    pub(super) bucket: Neighbours,
    /// Objects of the same status.
    pub(super) status: Neighbours,
    /// It has owners besides the first: a walk may come here by several ways.
    pub(super) has_other_owners: bool,
    /// Another object, which goes first, has the same UID.
    pub(super) is_twin: bool,
}

impl Default for Links {
    fn default() -> Links {
        Links {
            generation: 0,
            parent: NONE,
            owner_groups: NONE,
            siblings: Neighbours::default(),
            bucket: Neighbours::default(),
            status: Neighbours::default(),
            has_other_owners: false,
            is_twin: false,
        }
    }
}

/// The lists that go through [`Links`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Siblings,
    Bucket,
    Status,
}

impl Links {
    pub(super) fn of(&self, list: List) -> Neighbours {
        match list {
            List::Siblings => self.siblings,
            List::Bucket => self.bucket,
            List::Status => self.status,
        }
    }

    pub(super) fn of_mut(&mut self, list: List) -> &mut Neighbours {
        match list {
            List::Siblings => &mut self.siblings,
            List::Bucket => &mut self.bucket,
            List::Status => &mut self.status,
        }
    }
}

/// The objects of a kind in a namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindBucket {
    pub(super) kind: u32,
    /// [`NONE`] for those of the cluster.
    pub(super) namespace: u32,
    pub(super) head: u32,
    pub(super) counts: [u32; Status::ALL.len()],
    pub(super) of_kind: Neighbours,
    pub(super) of_namespace: Neighbours,
}

impl Default for KindBucket {
    fn default() -> KindBucket {
        let of_kind = Neighbours::default();
        let counts = [0; Status::ALL.len()];
        KindBucket { kind: NONE, namespace: NONE, head: NONE, counts, of_kind, of_namespace: of_kind }
    }
}

/// A namespace that objects are in, whether it has an object itself or not.
#[derive(Debug, Clone)]
pub(super) struct NamespaceHead {
    pub(super) name: Arc<str>,
    pub(super) buckets: u32,
}

/// The children of one owner.
#[derive(Debug, Clone)]
pub(super) struct OwnerGroup {
    pub(super) id: Uid,
    /// The first child that has this owner for its first.
    pub(super) head: u32,
    /// Children that have another owner before this one.
    pub(super) others: Option<Arc<Vec<u32>>>,
    /// The owner, if it is there.
    pub(super) owner: u32,
    /// Another owner group of the same owner.
    pub(super) next: u32,
}

impl Default for OwnerGroup {
    fn default() -> OwnerGroup {
        OwnerGroup { id: Uid::NONE, head: NONE, others: None, owner: NONE, next: NONE }
    }
}

/// What is known of an object besides; set in [`Record::flags`].
pub(super) mod flag {
    /// Its deletion was asked for.
    pub(in super::super) const DELETING: u8 = 1;
    /// Only its metadata were read.
    pub(in super::super) const METADATA: u8 = 2;
    /// No evidence changes what is to be said of it.
    pub(in super::super) const PLAIN: u8 = 4;
    /// Its UID is a text that the extract has.
    pub(in super::super) const ODD_UID: u8 = 8;
    /// Its time of creation is a text that the extract has.
    pub(in super::super) const ODD_CREATION: u8 = 16;
    /// Its resource version is no number: [`Record::version`](super::Record::version) is the slot of a text.
    pub(in super::super) const ODD_VERSION: u8 = 32;
}

/// The rest of what is kept. Numbers are slots in the pools of the index.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// Boxed, not shared: it is copied with its chunk, but is 16 bytes shorter.
    pub(super) name: Box<str>,
    pub(super) uid: Uid,
    pub(super) version: u64,
    /// In seconds; [`i64::MIN`] if unknown.
    pub(super) created: i64,
    /// [`i64::MIN`] if it has none.
    pub(super) generation: i64,
    pub(super) digest: u64,
    /// Since when the object is seen with the status it has, in milliseconds.
    pub(super) since: i64,
    /// Since when it is not well by its own words, in milliseconds; [`i64::MIN`] if it is well.
    pub(super) unwell_since: i64,
    /// What it was before.
    pub(super) past: Option<Arc<Past>>,
    pub(super) body: Option<Arc<Body>>,
    pub(super) bucket: u32,
    pub(super) labels: u32,
    pub(super) annotations: u32,
    pub(super) owners: u32,
    pub(super) verdict: u32,
    /// What evidence made of the verdict; [`NONE`] if nothing.
    pub(super) health: u32,
    pub(super) extract: u32,
    /// The keys by which it is found besides: marks, claims, what it defines.
    pub(super) keys: u32,
    pub(super) status: Status,
    pub(super) flags: u8,
}

/// The content of an object that is kept whole.
#[derive(Debug)]
pub(super) enum Body {
    /// Its text, without the members that the record tells.
    Text(Box<[u8]>),
    /// The object as it was read.
    Document(OwnedDocument),
}

impl Body {
    /// Returns the text of the object.
    pub(super) fn text(&self) -> &[u8] {
        match self {
            Body::Text(text) => text,
            Body::Document(document) => document.text(),
        }
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        self.text() == other.text()
    }
}

impl Record {
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A status that an object had, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// How it was.
    pub status: Status,
    /// From when on.
    pub since: Timestamp,
}

/// How many statuses are remembered besides the one that an object has.
pub const REMEMBERED: usize = 4;

/// The last statuses, the newest first.
pub(super) type Past = [Option<(Status, i64)>; REMEMBERED];

/// A verdict that can be kept once for many objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged(pub(super) Verdict);

impl Hash for Judged {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Verdict { status, message, conditions, rule, suspended } = &self.0;
        (status, message, rule, suspended, conditions.len()).hash(state);
        for condition in conditions {
            (condition.condition, &condition.reason, &condition.message).hash(state);
        }
    }
}

/// What evidence says of an object, where that is not what its own verdict says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Health {
    pub(super) verdict: Judged,
    /// The cause's own words.
    pub(super) message: String,
    /// The deepest object that is not well, if that is another one.
    pub(super) cause: Option<taffrail_object::ObjectKey>,
}

/// A point in time in milliseconds.
pub(super) fn millis(time: Timestamp) -> i64 {
    time.as_millisecond()
}

/// The point in time of so many milliseconds.
pub(super) fn at_millis(millis: i64) -> Option<Timestamp> {
    Timestamp::from_millisecond(millis).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_bits_where_they_are_uuids() {
        let text = "0b6e0a2c-1f0d-4a6e-9b0c-00ff00ff00ff";
        let seed = Seed::random();
        let uid = Uid::new(text, seed);
        assert_eq!((uid.to_string(), uid.is_said_by(text)), (text.to_owned(), true));
        for odd in ["u-web", "0B6E0A2C-1F0D-4A6E-9B0C-00FF00FF00FF", "00000000-0000-0000-0000-000000000000"] {
            let odd_uid = Uid::new(odd, seed);
            assert!(!odd_uid.is_none() && !odd_uid.is_said_by(odd) && odd_uid != uid, "{odd}");
            assert_eq!(Uid::new(odd, seed), odd_uid);
            assert_ne!(Uid::new(odd, Seed::of_number(seed.number() ^ 1)), odd_uid);
        }
        assert!(Uid::new("", seed).is_none());
    }

    #[test]
    fn a_record_is_small() {
        assert!(size_of::<Option<Record>>() <= 136, "{}", size_of::<Option<Record>>());
        assert!(size_of::<Links>() <= 40, "{}", size_of::<Links>());
    }
}
