//! The objects of an index, to be read, and the questions that find them.

use std::borrow::Cow;

use jiff::Timestamp;
use taffrail_object::{ApiResource, ObjectKey, Projection};
use taffrail_status::{Status, Verdict};

use super::KindId;
use super::contents::Contents;
use super::new_record;
use super::record::{Handle, List, Record, Relation, Transition, Uid, at_millis, flag};
use super::scope::Scope;
use super::tree::{Node, Tree};

/// An object, as far as it is kept.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRef<'s> {
    pub(super) contents: &'s Contents,
    pub(super) slot: u32,
    pub(super) record: &'s Record,
}

impl<'s> ObjectRef<'s> {
    /// Its handle, good for as long as the object is there.
    pub fn handle(&self) -> Handle {
        self.contents.handle(self.slot)
    }

    /// Its kind.
    pub fn kind(&self) -> KindId {
        KindId(self.contents.buckets.get(self.record.bucket).map_or(u32::MAX, |bucket| bucket.kind))
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

impl Contents {
    pub(super) fn object(&self, slot: u32) -> Option<ObjectRef<'_>> {
        Some(ObjectRef { contents: self, slot, record: self.record(slot)? })
    }

    fn objects<'s, I>(&'s self, slots: I) -> impl Iterator<Item = ObjectRef<'s>> + use<'s, I>
    where
        I: Iterator<Item = u32>,
    {
        slots.filter_map(|slot| self.object(slot))
    }
}

/// Lookups and walks, for readers.
impl Contents {
    /// The object of a handle, unless it is gone.
    pub fn get(&self, handle: Handle) -> Option<ObjectRef<'_>> {
        let links = self.links.get(handle.slot)?;
        if links.generation == handle.generation { self.object(handle.slot) } else { None }
    }

    /// The object of a name; `namespace` is empty for those of the cluster.
    pub fn find(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<ObjectRef<'_>> {
        self.object(self.slot_of(group, kind, namespace, name)?)
    }

    /// The object of a UID. Of twins, which have the same, the one whose group and kind come first.
    pub fn find_uid(&self, uid: Uid) -> Option<ObjectRef<'_>> {
        self.object(self.slot_of_uid(uid)?)
    }

    /// All objects, in no order.
    pub fn all(&self) -> impl Iterator<Item = ObjectRef<'_>> {
        self.objects(0..self.links.len())
    }

    /// The objects of a kind, in one namespace (empty: in none) or wherever they are; in no order.
    pub fn of_kind<'s>(
        &'s self,
        kind: KindId,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = ObjectRef<'s>> + use<'s> {
        let one = namespace.and_then(|namespace| self.buckets.get(self.bucket(kind, namespace)?));
        let all = namespace.is_none().then(|| self.buckets_of_kind(kind)).into_iter().flatten();
        self.objects(one.into_iter().chain(all).flat_map(|bucket| self.slots(bucket)))
    }

    /// The objects in a namespace, of whatever kind; in no order.
    pub fn in_namespace<'s>(&'s self, namespace: &str) -> impl Iterator<Item = ObjectRef<'s>> + use<'s> {
        self.objects(self.buckets_of_namespace(namespace).flat_map(|bucket| self.slots(bucket)))
    }

    /// The objects that have a status, in no order.
    pub fn with_status(&self, status: Status) -> impl Iterator<Item = ObjectRef<'_>> {
        self.objects(self.list(List::Status, self.status_heads[status as usize]))
    }

    /// The objects that have a mark, in no order.
    pub fn marked<'s>(&'s self, mark: &str) -> impl Iterator<Item = ObjectRef<'s>> + use<'s> {
        let members = self.postings.members(new_record::mark(self.seed, mark));
        self.objects(members.iter().copied())
    }

    /// All marks, in no order, each with the number of objects that have it.
    pub fn marks(&self) -> impl Iterator<Item = (&str, usize)> {
        self.postings.named().map(|(name, count)| (&**name, count))
    }

    /// Walks over objects and all that they own.
    pub fn tree(&self, roots: &[Handle]) -> Tree<'_> {
        let is_there = |root: &&Handle| self.get(**root).is_some();
        Tree::new(self, roots.iter().filter(is_there).map(|root| root.slot))
    }

    /// The objects that an object owns itself, in no order.
    pub fn children(&self, owner: Handle) -> impl Iterator<Item = ObjectRef<'_>> {
        let owner_groups = self.get(owner).map(|own| self.owner_groups_of(own.slot)).into_iter().flatten();
        let slots = owner_groups.flat_map(|owner_group| self.members(owner_group));
        self.objects(slots.filter(|at| self.links.get(*at).is_some_and(|links| !links.is_twin)))
    }

    /// The owners of an object that are there, its controller first.
    pub fn parents(&self, child: Handle) -> impl Iterator<Item = ObjectRef<'_>> {
        let slots = self.get(child).map(|own| self.parents_of(own.slot)).into_iter().flatten();
        self.objects(slots)
    }

    /// The topmost of the owners of an object, by the first owner of each; itself, if it has none.
    pub fn top(&self, handle: Handle) -> Option<ObjectRef<'_>> {
        let mut top = self.get(handle)?;
        // Owners may form a circle.
        for _ in 0..64 {
            match self.parents(top.handle()).next() {
                Some(parent) => top = parent,
                None => break,
            }
        }
        Some(top)
    }
}

/// Lets a walk be collected as objects.
impl Node {
    /// The object of the node.
    pub fn object(self, contents: &Contents) -> Option<ObjectRef<'_>> {
        contents.get(self.handle)
    }
}
