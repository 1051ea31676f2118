//! An object of an index, to be read.

use std::borrow::Cow;

use jiff::Timestamp;
use taffrail_object::{ApiResource, ObjectKey, Projection};
use taffrail_status::{Status, Verdict};

use super::KindId;
use super::contents::Contents;
use super::record::{Handle, Record, Relation, Transition, Uid, at_millis, flag};
use super::scope::Scope;

/// An object, as far as it is kept.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRef<'s> {
    pub(super) contents: &'s Contents,
    pub(super) place: u32,
    pub(super) record: &'s Record,
}

impl<'s> ObjectRef<'s> {
    /// Its handle, good for as long as the object is there.
    pub fn handle(&self) -> Handle {
        self.contents.handle(self.place)
    }

    /// Its kind.
    pub fn kind(&self) -> KindId {
        KindId(self.contents.cells.get(self.record.cell).map_or(u32::MAX, |cell| cell.kind))
    }

    /// The resource of its kind.
    pub fn resource(&self) -> Option<&'s ApiResource> {
        self.contents.resource(self.kind())
    }

    /// Its namespace, or empty.
    pub fn namespace(&self) -> &'s str {
        self.contents.name_of(self.record).2
    }

    /// Its name.
    pub fn name(&self) -> &'s str {
        &self.record.name
    }

    /// Group, kind, namespace and name.
    pub fn object_name(&self) -> ObjectKey {
        let (group, kind, namespace, name) = self.contents.name_of(self.record);
        ObjectKey::new(group, kind, namespace, name)
    }

    /// Its UID.
    pub fn uid(&self) -> Uid {
        self.record.uid
    }

    /// Its resource version.
    pub fn resource_version(&self) -> Cow<'s, str> {
        if self.record.has(flag::ODD_VERSION) {
            let text = self.contents.texts.get(self.record.version as u32);
            return Cow::Borrowed(text.map_or("", |text| text));
        }
        match self.record.version {
            0 => Cow::Borrowed(""),
            number => Cow::Owned(number.to_string()),
        }
    }

    /// When it was created.
    pub fn created(&self) -> Option<Timestamp> {
        Timestamp::from_second(self.record.created).ok().filter(|_| self.record.created != i64::MIN)
    }

    /// The generation of its `spec`.
    pub fn generation(&self) -> Option<i64> {
        (self.record.generation != i64::MIN).then_some(self.record.generation)
    }

    /// Whether its deletion was asked for.
    pub fn is_deleting(&self) -> bool {
        self.record.has(flag::DELETING)
    }

    /// How much of it was read.
    pub fn projection(&self) -> Projection {
        if self.record.has(flag::METADATA) { Projection::Metadata } else { Projection::Full }
    }

    /// A digest of everything that is declared: labels, annotations, and all that is neither metadata nor status. It
    /// is the same in every run, and does not move with `resourceVersion`, `managedFields` or status.
    pub fn digest(&self) -> u64 {
        self.record.digest
    }

    /// Its labels in the order of their keys.
    pub fn labels(&self) -> impl Iterator<Item = (&'s str, &'s str)> + use<'s> {
        self.pairs(self.record.labels)
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&'s str> {
        self.labels().find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    /// Its annotations in the order of their keys, as far as the [settings](super::IndexSettings) keep them.
    pub fn annotations(&self) -> impl Iterator<Item = (&'s str, &'s str)> + use<'s> {
        self.pairs(self.record.annotations)
    }

    /// The value of a kept annotation.
    pub fn annotation(&self, key: &str) -> Option<&'s str> {
        self.annotations().find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    fn pairs(&self, set: u32) -> impl Iterator<Item = (&'s str, &'s str)> + use<'s> {
        let contents = self.contents;
        let pairs = contents.sets.get(set).into_iter().flat_map(|pairs| pairs.iter());
        pairs.filter_map(|(key, value)| Some((&**contents.texts.get(*key)?, &**contents.texts.get(*value)?)))
    }

    /// The UIDs of its owners, and how each comes to be one; the controller first. An owner that the object names by
    /// other means has a UID that is nobody's.
    pub fn owners(&self) -> impl Iterator<Item = (Uid, Relation)> + use<'s> {
        let owners = self.contents.owners.get(self.record.owners);
        owners.into_iter().flat_map(|owners| owners.iter()).map(|owner| (owner.uid, owner.relation))
    }

    /// Its marks.
    pub fn marks(&self) -> impl Iterator<Item = &'s str> + use<'s> {
        let contents = self.contents;
        let keys = contents.keys.get(self.record.keys).into_iter().flat_map(|keys| keys.iter());
        keys.filter_map(|key| contents.postings.get(*key)?.name.as_deref())
    }

    /// What the rules say of the object alone.
    pub fn verdict(&self) -> Option<&'s Verdict> {
        self.contents.verdict(self.record.verdict)
    }

    /// Its status, by evidence.
    pub fn status(&self) -> Status {
        self.record.status
    }

    /// Why, in one line: the cause's own words.
    pub fn message(&self) -> &'s str {
        match self.contents.healths.get(self.record.health) {
            Some(health) => &health.message,
            None => self.verdict().map_or("", |verdict| &verdict.message),
        }
    }

    /// Which rule decided.
    pub fn rule(&self) -> &'s str {
        match self.contents.healths.get(self.record.health) {
            Some(health) => &health.verdict.0.rule,
            None => self.verdict().map_or("", |verdict| &verdict.rule),
        }
    }

    /// The deepest object that is not well, if that is another one.
    pub fn cause(&self) -> Option<&'s ObjectKey> {
        self.contents.healths.get(self.record.health)?.cause.as_ref()
    }

    /// Since when it is seen with the status it has.
    pub fn since(&self) -> Option<Timestamp> {
        at_millis(self.record.since)
    }

    /// Since when it is not well, by what it and its evidence say themselves.
    pub fn unwell_since(&self) -> Option<Timestamp> {
        if self.record.unwell_since == i64::MIN { None } else { at_millis(self.record.unwell_since) }
    }

    /// What it was before, the latest first.
    pub fn history(&self) -> impl Iterator<Item = Transition> + use<'s> {
        let past = self.record.past.as_ref().into_iter().flat_map(|past| past.iter().flatten());
        past.filter_map(|(status, since)| Some(Transition { status: *status, since: at_millis(*since)? }))
    }

    /// Returns the object as JSON, if its body is kept: with [`Retention::Full`](super::Retention) as it was read, else without
    /// `managedFields`, `resourceVersion`, `selfLink`, the annotation in
    /// which kubectl keeps the whole object again, and `lastHeartbeatTime` and `lastProbeTime` of conditions.
    pub fn body(&self) -> Option<&'s [u8]> {
        self.record.body.as_ref().map(|body| body.text())
    }

    /// How well what is known of it is known: the state of the scope that it was read in.
    pub fn scope(&self) -> Scope {
        self.contents.scope(self.kind(), self.namespace())
    }
}
