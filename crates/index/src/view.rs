//! Views of the objects of an index, and the queries that find them.

use std::borrow::Cow;

use jiff::Timestamp;
use taffrail_object::{ApiResource, LiveToken, ObjectDigest, ObjectKey, Projection};
use taffrail_status::{Status, Verdict};

use super::KindId;
use super::contents::Contents;
use super::new_record;
use super::record::{Handle, List, Record, Relation, Transition, Uid, at_millis, flag};
use super::scope::Scope;
use super::tree::{Node, Tree};

/// A view of an object with the fields that the index keeps.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRef<'s> {
    pub(super) contents: &'s Contents,
    pub(super) slot: u32,
    pub(super) record: &'s Record,
}

impl<'s> ObjectRef<'s> {
    /// Returns the object's handle, which is valid while the object exists.
    pub fn handle(&self) -> Handle {
        self.contents.handle(self.slot)
    }

    /// Returns the ID of the object's kind.
    pub fn kind(&self) -> KindId {
        KindId(self.contents.buckets.get(self.record.bucket).map_or(u32::MAX, |bucket| bucket.kind))
    }

    /// Returns the resource of the object's kind; `None` if the index does not have the kind.
    pub fn resource(&self) -> Option<&'s ApiResource> {
        self.contents.resource(self.kind())
    }

    /// Returns the object's namespace; empty if cluster-scoped.
    pub fn namespace(&self) -> &'s str {
        self.contents.name_of(self.record).2
    }

    /// Returns the object's name.
    pub fn name(&self) -> &'s str {
        &self.record.name
    }

    /// Returns the object's key: group, kind, namespace and name.
    pub fn object_name(&self) -> ObjectKey {
        let (group, kind, namespace, name) = self.contents.name_of(self.record);
        ObjectKey::new(group, kind, namespace, name)
    }

    /// Returns the object's UID.
    pub fn uid(&self) -> Uid {
        self.record.uid
    }

    /// Returns the object's resource version; empty if it has none, or if the index cleared it to have the object
    /// read again.
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

    /// Returns the object's creation time, in whole seconds; `None` if it is absent or cannot be parsed.
    pub fn created(&self) -> Option<Timestamp> {
        Timestamp::from_second(self.record.created).ok().filter(|_| self.record.created != i64::MIN)
    }

    /// Returns `metadata.generation`; `None` if it is absent.
    pub fn generation(&self) -> Option<i64> {
        (self.record.generation != i64::MIN).then_some(self.record.generation)
    }

    /// Returns true if the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.record.has(flag::DELETING)
    }

    /// Returns the part of the object that was read.
    pub fn projection(&self) -> Projection {
        if self.record.has(flag::METADATA) { Projection::Metadata } else { Projection::Full }
    }

    /// Returns the digest of what is declared of the object; see [`declared_digest`](taffrail_object::declared_digest).
    pub fn digest(&self) -> ObjectDigest {
        self.record.digest
    }

    /// Returns the token of the object's state; only tokens of the same [seed](Contents::token_seed) can be compared. `None`
    /// if the object has no resource version, or the index cleared it to have the object read again.
    pub fn token(&self) -> Option<LiveToken> {
        let (version, resource) = (self.resource_version(), self.resource()?);
        if version.is_empty() {
            return None;
        }
        LiveToken::new(&resource.group, &resource.kind, self.projection(), || self.digest(), &version)
    }

    /// Lists the labels as key and value, sorted by key.
    pub fn labels(&self) -> impl Iterator<Item = (&'s str, &'s str)> + use<'s> {
        self.pairs(self.record.labels)
    }

    /// Returns the value of the label `key`; `None` if the object does not have it.
    pub fn label(&self, key: &str) -> Option<&'s str> {
        self.labels().find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    /// Lists the annotations that the [settings](super::IndexSettings) keep as key and value, sorted by key.
    pub fn annotations(&self) -> impl Iterator<Item = (&'s str, &'s str)> + use<'s> {
        self.pairs(self.record.annotations)
    }

    /// Returns the value of the annotation `key`; `None` if the object does not have it or the index does not keep it.
    pub fn annotation(&self, key: &str) -> Option<&'s str> {
        self.annotations().find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    fn pairs(&self, set: u32) -> impl Iterator<Item = (&'s str, &'s str)> + use<'s> {
        let contents = self.contents;
        let pairs = contents.sets.get(set).into_iter().flat_map(|pairs| pairs.iter());
        pairs.filter_map(|(key, value)| Some((&**contents.texts.get(*key)?, &**contents.texts.get(*value)?)))
    }

    /// Lists the object's owners as UID and relation, the controller first. An owner to which the object refers by
    /// name has a key instead of a UID.
    pub fn owners(&self) -> impl Iterator<Item = (Uid, Relation)> + use<'s> {
        let owners = self.contents.owners.get(self.record.owners);
        owners.into_iter().flat_map(|owners| owners.iter()).map(|owner| (owner.uid, owner.relation))
    }

    /// Lists the object's marks: the words by which the user of the index finds it.
    pub fn marks(&self) -> impl Iterator<Item = &'s str> + use<'s> {
        let contents = self.contents;
        let keys = contents.keys.get(self.record.keys).into_iter().flat_map(|keys| keys.iter());
        keys.filter_map(|key| contents.postings.get(*key)?.name.as_deref())
    }

    /// Returns the verdict of the rules on the object, as stored when it was last judged, without evidence other than
    /// the objects that it owns, where its rules read these; `None` if none is stored.
    pub fn verdict(&self) -> Option<&'s Verdict> {
        self.contents.verdict(self.record.verdict)
    }

    /// Returns the object's status: by evidence, or that of the verdict if the [settings](super::IndexSettings) do not
    /// assess objects.
    pub fn status(&self) -> Status {
        self.record.status
    }

    /// Returns the message of the status: that of the root cause, after the object's own where that names what it waits
    /// for; without evidence that of the verdict.
    pub fn message(&self) -> &'s str {
        match self.contents.healths.get(self.record.health) {
            Some(health) => &health.message,
            None => self.verdict().map_or("", |verdict| &verdict.message),
        }
    }

    /// Returns the name of the rule that decided the status; empty without a verdict.
    pub fn rule(&self) -> &'s str {
        match self.contents.healths.get(self.record.health) {
            Some(health) => &health.verdict.0.rule,
            None => self.verdict().map_or("", |verdict| &verdict.rule),
        }
    }

    /// Returns the deepest object in the cause chain that is not well; `None` if it is this object, or this object is
    /// well.
    pub fn cause(&self) -> Option<&'s ObjectKey> {
        self.contents.healths.get(self.record.health)?.cause.as_ref()
    }

    /// Returns the time at which the object got its status in this index; `None` if it is out of range.
    pub fn since(&self) -> Option<Timestamp> {
        at_millis(self.record.since)
    }

    /// Returns the time since when the object is not well, by its own report and evidence; `None` if it is well or the
    /// time is unknown.
    pub fn unwell_since(&self) -> Option<Timestamp> {
        if self.record.unwell_since == i64::MIN { None } else { at_millis(self.record.unwell_since) }
    }

    /// Lists the object's last former statuses, at most [`REMEMBERED`](super::REMEMBERED), newest first.
    pub fn history(&self) -> impl Iterator<Item = Transition> + use<'s> {
        let past = self.record.past.as_ref().into_iter().flat_map(|past| past.iter().flatten());
        past.filter_map(|(status, since)| Some(Transition { status: *status, since: at_millis(*since)? }))
    }

    /// Returns the object as JSON; `None` if its body is not kept. With [`Retention::Full`](super::Retention) it is as
    /// it was read (of Secrets only metadata), else without `managedFields` (unless the settings keep them),
    /// `resourceVersion`, `selfLink`, the annotation in which kubectl stores a copy of the object, and
    /// `lastHeartbeatTime` and `lastProbeTime` of conditions.
    pub fn body(&self) -> Option<&'s [u8]> {
        self.record.body.as_ref().map(|body| body.text())
    }

    /// Returns the state of the scope that contains the object.
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

/// Queries for objects.
impl Contents {
    /// Returns the object with a handle; `None` if it no longer exists.
    pub fn get(&self, handle: Handle) -> Option<ObjectRef<'_>> {
        let links = self.links.get(handle.slot)?;
        if links.generation == handle.generation { self.object(handle.slot) } else { None }
    }

    /// Returns the object with this name; `namespace` is empty for cluster-scoped objects. `None` if the index does not
    /// have it.
    pub fn find(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<ObjectRef<'_>> {
        self.object(self.slot_of(group, kind, namespace, name)?)
    }

    /// Returns the object with a UID; `None` if there is none. If several objects have it, returns the first by group,
    /// kind, namespace and name.
    pub fn find_uid(&self, uid: Uid) -> Option<ObjectRef<'_>> {
        self.object(self.slot_of_uid(uid)?)
    }

    /// Lists all objects, unordered.
    pub fn all(&self) -> impl Iterator<Item = ObjectRef<'_>> {
        self.objects(0..self.links.len())
    }

    /// Lists the objects of a kind, unordered: in one namespace (empty for cluster-scoped objects), or in all with
    /// `None`.
    pub fn of_kind<'s>(
        &'s self,
        kind: KindId,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = ObjectRef<'s>> + use<'s> {
        let one = namespace.and_then(|namespace| self.buckets.get(self.bucket(kind, namespace)?));
        let all = namespace.is_none().then(|| self.buckets_of_kind(kind)).into_iter().flatten();
        self.objects(one.into_iter().chain(all).flat_map(|bucket| self.slots(bucket)))
    }

    /// Lists the objects of all kinds in a namespace, unordered; none if `namespace` is empty.
    pub fn in_namespace<'s>(&'s self, namespace: &str) -> impl Iterator<Item = ObjectRef<'s>> + use<'s> {
        self.objects(self.buckets_of_namespace(namespace).flat_map(|bucket| self.slots(bucket)))
    }

    /// Lists the objects with a status, unordered.
    pub fn with_status(&self, status: Status) -> impl Iterator<Item = ObjectRef<'_>> {
        self.objects(self.list(List::Status, self.status_heads[status as usize]))
    }

    /// Lists the objects with a mark, unordered.
    pub fn marked<'s>(&'s self, mark: &str) -> impl Iterator<Item = ObjectRef<'s>> + use<'s> {
        let members = self.postings.members(new_record::mark(self.seed, mark));
        self.objects(members.iter().copied())
    }

    /// Lists all marks, unordered, each with the number of objects that have it.
    pub fn marks(&self) -> impl Iterator<Item = (&str, usize)> {
        self.postings.named().map(|(name, count)| (&**name, count))
    }

    /// Returns a walk over the objects `roots`, as far as they exist, and all objects that they own directly or through
    /// others.
    pub fn tree(&self, roots: &[Handle]) -> Tree<'_> {
        let is_there = |root: &&Handle| self.get(**root).is_some();
        Tree::new(self, roots.iter().filter(is_there).map(|root| root.slot))
    }

    /// Lists the objects that an object owns directly, unordered.
    pub fn children(&self, owner: Handle) -> impl Iterator<Item = ObjectRef<'_>> {
        let owner_groups = self.get(owner).map(|own| self.owner_groups_of(own.slot)).into_iter().flatten();
        let slots = owner_groups.flat_map(|owner_group| self.members(owner_group));
        self.objects(slots.filter(|at| self.links.get(*at).is_some_and(|links| !links.is_twin)))
    }

    /// Lists the existing owners of an object, its controller first.
    pub fn parents(&self, child: Handle) -> impl Iterator<Item = ObjectRef<'_>> {
        let slots = self.get(child).map(|own| self.parents_of(own.slot)).into_iter().flatten();
        self.objects(slots)
    }

    /// Returns the topmost owner of an object, following the first owner of each, at most 64; the object itself if it
    /// has no owner, and `None` if it no longer exists.
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

/// Conversion of a node of a walk to its object.
impl Node {
    /// Returns the object of the node; `None` if it no longer exists.
    pub fn object(self, contents: &Contents) -> Option<ObjectRef<'_>> {
        contents.get(self.handle)
    }
}
