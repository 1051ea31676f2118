//! The record of an object, and the heads of the lists that contain objects.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_object::ObjectDigest;
use taffrail_object::json::OwnedDocument;
use taffrail_status::{Status, Verdict};

use super::pool::NONE;
use super::table::Seed;

/// Identifies an object of an index while it exists.
///
/// When the object is removed, its slot is reused, but with another generation. So a table indexed by
/// [`slot`](Handle::slot) stays small, and a row with another generation belongs to an object that no longer exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl Handle {
    /// Returns the slot: a small number, unique among the existing objects.
    pub fn slot(self) -> usize {
        self.slot as usize
    }

    /// Returns the number of objects that had the slot before this one.
    pub fn generation(self) -> u32 {
        self.generation
    }
}

/// A UID in 128 bits: the bits of a UUID, or a hash of a text that is not a UUID. Each index hashes with its own
/// seed, so that authors of objects cannot provoke collisions; a UID of one index has no meaning in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
// Two halves: a number of 128 bits wants places that are multiples of its size.
pub struct Uid([u64; 2]);

impl Uid {
    /// The value that stands for a missing UID.
    pub const NONE: Uid = Uid([0; 2]);

    /// Returns the UID that represents `text` in the index with this seed.
    pub(super) fn new(text: &str, seed: Seed) -> Uid {
        match Uid::of_uuid(text) {
            Some(uid) => uid,
            None if text.is_empty() => Uid::NONE,
            None => Uid::of_bits(seed.words(&["uid", text]) | 1),
        }
    }

    /// Parses a UUID in lower case, with hyphens; `None` for other texts and the UUID of zeros.
    pub(super) fn of_uuid(text: &str) -> Option<Uid> {
        uuid(text.as_bytes()).map(Uid::of_bits)
    }

    /// Returns true if this is [`Uid::NONE`].
    pub fn is_none(self) -> bool {
        self == Uid::NONE
    }

    /// Returns true if `text` is a UUID with the same bits as this UID.
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

/// The places of the hyphens in a UUID.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Parses a UUID as the API server writes it, in lower case, with hyphens; `None` for other texts and the UUID of
/// zeros.
fn uuid(text: &[u8]) -> Option<u128> {
    let text: &[u8; 36] = text.try_into().ok()?;
    if HYPHENS.iter().any(|at| text[*at] != b'-') {
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

/// Formats the UID as a UUID.
impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The evidence of each object that is judged names UIDs: digits are written without a formatter.
        let mut text = [b'-'; 36];
        let places = text.iter_mut().enumerate().filter(|(at, _)| !HYPHENS.contains(at));
        let digits = self.0.iter().flat_map(|half| (0..16).map(move |at| half >> (60 - 4 * at) & 0xf));
        for ((_, place), digit) in places.zip(digits) {
            *place = b"0123456789abcdef"[digit as usize];
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// The way in which an object refers to one of its owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// The controller owner reference.
    Controller,
    /// Another owner reference.
    Owner,
    /// An owner reference without a UID, or a convention in place of a reference: a name, a label, or an annotation.
    Inferred,
}

/// An owner to which an object refers; it need not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    /// The owner's UID, or the key that replaces it if the object refers to the owner by name.
    pub(super) uid: Uid,
    pub(super) relation: Relation,
}

/// The slots before and after an object in a linked list.
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

/// The links of the lists that contain an object. They are kept apart from the record, so that a walk reads nothing
/// else and copying a chunk on write copies plain bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    /// The number of objects that had this slot before.
    pub(super) generation: u32,
    /// The owner group of the object's first owner, which contains the object as a child.
    pub(super) parent: u32,
    /// The first of the owner groups whose owner is this object.
    pub(super) owner_groups: u32,
    /// Links to the other children of the same owner group.
    pub(super) siblings: Neighbours,
    /// Links to the other objects of the same kind and namespace.
    pub(super) bucket: Neighbours,
    /// Links to the other objects of the same status.
    pub(super) status: Neighbours,
    /// True if the object has owners besides the first, so that a walk may reach it more than once.
    pub(super) has_other_owners: bool,
    /// True if another object with the same UID precedes it.
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

/// The linked lists that use [`Links`].
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

/// The head of the list of the objects of one kind in one namespace, and their number by status.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindBucket {
    pub(super) kind: u32,
    /// The slot of the namespace; [`NONE`] for cluster-scoped objects.
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

/// A namespace that contains objects; its own Namespace object need not exist.
#[derive(Debug, Clone)]
pub(super) struct NamespaceHead {
    pub(super) name: Arc<str>,
    pub(super) buckets: u32,
}

/// The children of one owner, which need not exist.
#[derive(Debug, Clone)]
pub(super) struct OwnerGroup {
    pub(super) id: Uid,
    /// The first child whose first owner is this owner.
    pub(super) head: u32,
    /// The slots of the children whose first owner is another one; `None` if there are none.
    pub(super) others: Option<Arc<Vec<u32>>>,
    /// The slot of the owner; [`NONE`] if it does not exist.
    pub(super) owner: u32,
    /// The next owner group of the same owner.
    pub(super) next: u32,
}

impl Default for OwnerGroup {
    fn default() -> OwnerGroup {
        OwnerGroup { id: Uid::NONE, head: NONE, others: None, owner: NONE, next: NONE }
    }
}

/// Bits of [`Record::flags`].
pub(super) mod flag {
    /// The object is being deleted.
    pub(in super::super) const DELETING: u8 = 1;
    /// Only the object's metadata was read.
    pub(in super::super) const METADATA: u8 = 2;
    /// No evidence changes the object's status.
    pub(in super::super) const PLAIN: u8 = 4;
    /// The object's UID is not a UUID; the extract has its text.
    pub(in super::super) const ODD_UID: u8 = 8;
    /// The creation time has an unusual format; the extract has its text.
    pub(in super::super) const ODD_CREATION: u8 = 16;
    /// The resource version is not a number: [`Record::version`](super::Record::version) is the slot of its text.
    pub(in super::super) const ODD_VERSION: u8 = 32;
}

/// The part of an object's data that walks do not need. Numbers are slots in the pools of the index.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// The name; boxed, not shared, because that is 16 bytes shorter.
    pub(super) name: Box<str>,
    pub(super) uid: Uid,
    pub(super) version: u64,
    /// The creation time in seconds since 1970; [`i64::MIN`] if unknown.
    pub(super) created: i64,
    /// `metadata.generation`; [`i64::MIN`] if absent.
    pub(super) generation: i64,
    pub(super) digest: ObjectDigest,
    /// The time at which the object got its current status in this index, in milliseconds since 1970.
    pub(super) since: i64,
    /// The time since when the object is not well, by its own report and by evidence, in milliseconds since 1970;
    /// [`i64::MIN`] if it is well or the time is unknown.
    pub(super) unwell_since: i64,
    /// The former statuses; `None` if there are none.
    pub(super) past: Option<Arc<Past>>,
    pub(super) body: Option<Arc<Body>>,
    pub(super) bucket: u32,
    pub(super) labels: u32,
    pub(super) annotations: u32,
    pub(super) owners: u32,
    pub(super) verdict: u32,
    /// The slot of the health by evidence; [`NONE`] if the verdict stands.
    pub(super) health: u32,
    pub(super) extract: u32,
    /// The slot of further keys under which queries find the object: marks, claims, definitions.
    pub(super) keys: u32,
    pub(super) status: Status,
    pub(super) flags: u8,
}

/// The content of an object whose body is kept.
#[derive(Debug)]
pub(super) enum Body {
    /// The JSON of the object without the fields that no query reads, such as `resourceVersion`.
    Text(Box<[u8]>),
    /// The object as it was read, parsed.
    Document(OwnedDocument),
}

impl Body {
    /// Returns the JSON text of the body.
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

/// A former status of an object, and its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The former status.
    pub status: Status,
    /// The time at which the object got that status.
    pub since: Timestamp,
}

/// Maximum number of former statuses kept per object; beyond it the oldest is dropped.
pub const REMEMBERED: usize = 4;

/// The former statuses, newest first, each with its start in milliseconds since 1970; unused places are `None`.
pub(super) type Past = [Option<(Status, i64)>; REMEMBERED];

/// A verdict as a value of a pool, which many objects may share.
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

/// The assessment of an object by evidence, if it differs from the object's own verdict.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Health {
    pub(super) verdict: Judged,
    /// The message of the root cause, after the object's own where that names what it waits for.
    pub(super) message: String,
    /// The deepest object in the cause chain that is not well; `None` if it is the object itself.
    pub(super) cause: Option<taffrail_object::ObjectKey>,
}

/// Converts a point in time to milliseconds since 1970.
pub(super) fn millis(time: Timestamp) -> i64 {
    time.as_millisecond()
}

/// Converts milliseconds since 1970 to a point in time; `None` if it is out of range.
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
        assert!(size_of::<Option<Record>>() <= 144, "{}", size_of::<Option<Record>>());
        assert!(size_of::<Links>() <= 40, "{}", size_of::<Links>());
    }
}
