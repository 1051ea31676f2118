//! Adds, changes and removes objects of an index.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use taffrail_object::Object;

use super::contents::Contents;
use super::new_record::{Key, NewRecord, Version};
use super::pool::NONE;
use super::record::{Handle, Judged, Record, Uid, flag, millis};
use super::subscribe::{Aspects, Batch, Change, Seen};
use super::wire::{Damaged, Reader};
use super::{Applied, Index, KindId, Pools, Refusal};

/// The changes since the last published snapshot.
#[derive(Debug, Default)]
pub(super) struct Pending {
    changes: Vec<Option<Change>>,
    by_handle: FxHashMap<Handle, usize>,
    pub(super) scopes_changed: bool,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && !self.scopes_changed
    }
}

/// The slots, in the pools, of the parts of a record. Taking them has added one use to each part.
struct Taken {
    labels: u32,
    annotations: u32,
    owners: u32,
    verdict: u32,
    extract: u32,
    keys: u32,
    version: u64,
}

impl Pools {
    fn take_set(&mut self, contents: &mut Contents, pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> u32 {
        if pairs.is_empty() {
            return NONE;
        }
        let mut text = |text: &str| self.texts.take(&mut contents.texts, text, || Arc::from(text)).0;
        let set: Vec<(u32, u32)> = pairs.iter().map(|(key, value)| (text(key), text(value))).collect();
        let (at, is_new) = self.sets.take(&mut contents.sets, &set[..], || Arc::from(&set[..]));
        if !is_new {
            // The set that is kept uses them already.
            self.drop_texts(contents, &set);
        }
        at
    }

    fn drop_texts(&mut self, contents: &mut Contents, set: &[(u32, u32)]) {
        for text in set.iter().flat_map(|(key, value)| [key, value]) {
            self.texts.drop_use(&mut contents.texts, *text);
        }
    }

    fn drop_set(&mut self, contents: &mut Contents, at: u32) {
        if let Some(set) = self.sets.drop_use(&mut contents.sets, at) {
            self.drop_texts(contents, &set);
        }
    }

    fn take(&mut self, contents: &mut Contents, new_record: &mut NewRecord<'_>) -> Taken {
        let verdict = std::mem::replace(
            &mut new_record.verdict,
            taffrail_status::Verdict::new(taffrail_status::Status::Unknown, "", ""),
        );
        let judged = Judged(verdict);
        let keys: Vec<u128> = new_record.keys.iter().map(|key| key.hash).collect();
        Taken {
            labels: self.take_set(contents, &new_record.labels),
            annotations: self.take_set(contents, &new_record.annotations),
            owners: match &new_record.owners[..] {
                [] => NONE,
                owners => self.owners.take(&mut contents.owners, owners, || Arc::from(owners)).0,
            },
            verdict: {
                let kept = &mut contents.verdicts;
                self.verdicts.take(kept, &judged, || Arc::new(judged.clone())).0
            },
            extract: match &new_record.extract[..] {
                [] => NONE,
                bytes => self.extracts.take(&mut contents.extracts, bytes, || Arc::from(bytes)).0,
            },
            keys: match &keys[..] {
                [] => NONE,
                keys => self.keys.take(&mut contents.keys, keys, || Arc::from(keys)).0,
            },
            version: match &new_record.version {
                Version::Number(number) => *number,
                Version::Text(text) => {
                    let text: &str = text;
                    u64::from(self.texts.take(&mut contents.texts, text, || Arc::from(text)).0)
                }
            },
        }
    }

    fn drop_version(&mut self, contents: &mut Contents, version: u64, is_odd: bool) {
        if is_odd {
            self.texts.drop_use(&mut contents.texts, version as u32);
        }
    }

    fn drop_all(&mut self, contents: &mut Contents, record: &Record) {
        self.drop_set(contents, record.labels);
        self.drop_set(contents, record.annotations);
        self.owners.drop_use(&mut contents.owners, record.owners);
        self.verdicts.drop_use(&mut contents.verdicts, record.verdict);
        self.healths.drop_use(&mut contents.healths, record.health);
        self.extracts.drop_use(&mut contents.extracts, record.extract);
        self.keys.drop_use(&mut contents.keys, record.keys);
        self.drop_version(contents, record.version, record.has(flag::ODD_VERSION));
    }
}

impl Contents {
    fn seen(&self, slot: u32) -> Option<Seen> {
        let record = self.record(slot)?;
        Some(Seen {
            status: record.status,
            digest: record.digest,
            is_deleting: record.has(flag::DELETING),
            verdict: self.verdicts.get(record.verdict).cloned(),
            health: self.healths.get(record.health).cloned(),
        })
    }

    fn change(&self, slot: u32, before: Option<Seen>) -> Option<Change> {
        let record = self.record(slot)?;
        let bucket = self.buckets.get(record.bucket)?;
        let namespace = self.namespaces.get(bucket.namespace).and_then(Option::as_ref);
        Some(Change {
            handle: self.handle(slot),
            kind: KindId(bucket.kind),
            namespace: namespace.map_or_else(|| Arc::from(""), |head| Arc::clone(&head.name)),
            name: Arc::from(&*record.name),
            before,
            after: None,
            aspects: Aspects::default(),
        })
    }
}

impl Index {
    /// Stores an object in its slot, as a new one or in place of the present one; returns the effect.
    ///
    /// # Errors
    /// Returns an error if the kind is unknown.
    pub(super) fn put(
        &mut self,
        kind: KindId,
        new_record: NewRecord<'_>,
        now: Timestamp,
    ) -> Result<Applied, Refusal> {
        let resource = self.contents.kinds.get(kind.0 as usize).map(Arc::clone);
        let resource = resource.ok_or(Refusal::UnknownKind)?;
        let slot =
            self.contents.slot_of(&resource.group, &resource.kind, &new_record.namespace, &new_record.name);
        let Some(slot) = slot else { return Ok(Applied::Added(self.insert(kind, new_record, now))) };
        let own = self.contents.record(slot).map_or(Uid::NONE, |record| record.uid);
        if own != new_record.uid {
            // One was deleted and another made, and nobody told.
            self.take_out(slot);
            return Ok(Applied::Added(self.insert(kind, new_record, now)));
        }
        Ok(self.update(slot, new_record))
    }

    fn insert(&mut self, kind: KindId, mut new_record: NewRecord<'_>, now: Timestamp) -> Handle {
        let Index { contents, pools, vacant, .. } = self;
        let status = new_record.verdict.status;
        let taken = pools.take(contents, &mut new_record);
        let slot = vacant.objects.take(&mut contents.links);
        while contents.records.len() <= slot {
            contents.records.grow();
        }
        let bucket = contents.bucket_or_new(&mut vacant.buckets, kind, &new_record.namespace);
        let record = Record {
            name: Box::from(&*new_record.name),
            uid: new_record.uid,
            version: taken.version,
            created: new_record.created,
            generation: new_record.generation,
            digest: new_record.digest,
            since: millis(now),
            unwell_since: i64::MIN,
            past: None,
            body: new_record.body,
            bucket,
            labels: taken.labels,
            annotations: taken.annotations,
            owners: taken.owners,
            verdict: taken.verdict,
            health: NONE,
            extract: taken.extract,
            keys: taken.keys,
            status,
            flags: new_record.flags,
        };
        let key = contents.key_of(&record);
        if let Some(home) = contents.records.get_mut(slot) {
            *home = Some(record);
        }
        self.enter(slot, key, &new_record.owner_groups);
        for Key { hash, name } in &new_record.keys {
            let vacant = &mut self.vacant.postings;
            self.contents.postings.add(vacant, *hash, name.as_deref(), slot);
        }
        if self.epochs.len() <= slot as usize {
            self.epochs.resize(slot as usize + 1, 0);
        }
        self.epochs[slot as usize] = self.epoch;
        let handle = self.contents.handle(slot);
        self.pending.by_handle.insert(handle, self.pending.changes.len());
        self.pending.changes.push(self.contents.change(slot, None));
        self.note_changed(slot);
        handle
    }

    /// Adds the record at a slot to tables, linked lists and owner groups; `key` is the hash of its name, and
    /// `owner_groups` are further keys by which others refer to it as their owner.
    fn enter(&mut self, slot: u32, key: Uid, owner_groups: &[Uid]) {
        let Index { contents, vacant, .. } = self;
        let Some(record) = contents.record(slot) else { return };
        let (uid, bucket, status, owners) = (record.uid, record.bucket, record.status, record.owners);
        let mut table = std::mem::take(&mut contents.by_key);
        table.insert(key.bits() as u64, slot, |at| contents.rehash_key(at));
        contents.by_key = table;
        if !uid.is_none() {
            let mut table = std::mem::take(&mut contents.by_uid);
            table.insert(contents.seed.value(&uid), slot, |at| contents.rehash_uid(at));
            contents.by_uid = table;
        }
        contents.enter_bucket(bucket, slot, status);
        contents.enter_status(slot, status);
        if let Some(owners) = contents.owners.get(owners).map(Arc::clone) {
            contents.adopt(&mut vacant.owner_groups, slot, &owners);
        }
        contents.found(&mut vacant.owner_groups, slot, &[key], owner_groups);
        self.settle_twins(uid);
    }

    /// Makes the first object with a UID, by group, kind, namespace and name, the owner of the objects that refer to
    /// this UID, and marks the others as twins.
    fn settle_twins(&mut self, uid: Uid) {
        if uid.is_none() {
            return;
        }
        let Index { contents, vacant, .. } = self;
        let mut slots: Vec<u32> = contents.slots_of_uid(uid).collect();
        if let [only] = *slots {
            contents.set_twin(only, false);
            contents.found(&mut vacant.owner_groups, only, &[uid], &[]);
            return;
        }
        let name = |at: &u32| contents.record(*at).map(|record| contents.name_of(record));
        slots.sort_by(|one, other| name(one).cmp(&name(other)));
        for (at, slot) in slots.iter().enumerate() {
            contents.set_twin(*slot, at > 0);
        }
        if let Some(owner_group) = contents.owner_group(uid) {
            contents.hand_over(owner_group, slots.first().copied());
        }
    }

    fn update(&mut self, slot: u32, mut new_record: NewRecord<'_>) -> Applied {
        let Index { contents, pools, .. } = self;
        let taken = pools.take(contents, &mut new_record);
        if let Some(epoch) = self.epochs.get_mut(slot as usize) {
            *epoch = self.epoch;
        }
        let handle = contents.handle(slot);
        let Some(old) = contents.record(slot).cloned() else { return Applied::Unchanged(handle) };
        let mut aspects = Aspects::default();
        let mut add = |differs: bool, aspect| {
            if differs {
                aspects |= aspect;
            }
        };
        add(old.digest != new_record.digest, Aspects::DIGEST);
        add(old.verdict != taken.verdict, Aspects::STATUS);
        add(old.labels != taken.labels, Aspects::LABELS);
        add(old.annotations != taken.annotations, Aspects::ANNOTATIONS);
        add(old.owners != taken.owners, Aspects::OWNERS);
        add(old.keys != taken.keys, Aspects::MARKS);
        add(old.body != new_record.body, Aspects::BODY);
        let content = |flags: u8| flags & (flag::PLAIN | flag::ODD_CREATION);
        let is_same_content = (old.extract, old.created, content(old.flags))
            == (taken.extract, new_record.created, content(new_record.flags));
        add(!is_same_content, Aspects::CONTENT);
        add((old.flags ^ new_record.flags) & flag::DELETING != 0, Aspects::DELETION);
        let is_same = (old.version, old.flags, old.generation, old.created)
            == (taken.version, new_record.flags, new_record.generation, new_record.created);
        if !aspects.is_empty() {
            self.touch(slot, aspects);
        }
        let Index { contents, pools, vacant, .. } = self;
        if (!aspects.is_empty() || !is_same)
            && let Some(Some(record)) = contents.records.get_mut(slot)
        {
            record.version = taken.version;
            record.flags = new_record.flags;
            record.generation = new_record.generation;
            record.created = new_record.created;
            record.digest = new_record.digest;
            record.labels = taken.labels;
            record.annotations = taken.annotations;
            record.owners = taken.owners;
            record.verdict = taken.verdict;
            record.extract = taken.extract;
            record.keys = taken.keys;
            if aspects.has(Aspects::BODY) {
                record.body = new_record.body;
            }
        }
        if aspects.has(Aspects::OWNERS) {
            // Those that it belonged to hear of it as well.
            self.reassessment.suspect_all(contents.parents_by(old.owners, slot));
            if let Some(owners) = contents.owners.get(old.owners).map(Arc::clone) {
                contents.abandon(&mut vacant.owner_groups, slot, &owners);
            }
            if let Some(owners) = contents.owners.get(taken.owners).map(Arc::clone) {
                contents.adopt(&mut vacant.owner_groups, slot, &owners);
            }
        }
        contents.found(&mut vacant.owner_groups, slot, &[], &new_record.owner_groups);
        if aspects.has(Aspects::MARKS) {
            if let Some(keys) = contents.keys.get(old.keys).map(Arc::clone) {
                for key in &*keys {
                    contents.postings.remove(&mut vacant.postings, *key, slot);
                    self.reassessment.announced(Some(*key));
                }
            }
            for Key { hash, name } in &new_record.keys {
                contents.postings.add(&mut vacant.postings, *hash, name.as_deref(), slot);
            }
        }
        // What it has now was counted when it was taken; what it had goes.
        pools.drop_all(contents, &Record { health: NONE, ..old });
        if aspects.is_empty() {
            return Applied::Unchanged(handle);
        }
        self.note_changed(slot);
        Applied::Changed(handle, aspects)
    }

    /// Removes the object at a slot.
    pub(super) fn take_out(&mut self, slot: u32) {
        self.note_gone(slot);
        self.forget_change(slot);
        let Index { contents, pools, vacant, .. } = self;
        let Some(record) = contents.record(slot).cloned() else { return };
        let key = contents.key_of(&record);
        let mut table = std::mem::take(&mut contents.by_key);
        table.remove(key.bits() as u64, slot, |at| contents.rehash_key(at));
        contents.by_key = table;
        if !record.uid.is_none() {
            let mut table = std::mem::take(&mut contents.by_uid);
            table.remove(contents.seed.value(&record.uid), slot, |at| contents.rehash_uid(at));
            contents.by_uid = table;
        }
        contents.leave_status(slot, record.status);
        contents.leave_bucket(record.bucket, slot, record.status);
        contents.free_bucket_if_empty(&mut vacant.buckets, record.bucket);
        if let Some(owners) = contents.owners.get(record.owners).map(Arc::clone) {
            contents.abandon(&mut vacant.owner_groups, slot, &owners);
        }
        contents.desert(&mut vacant.owner_groups, slot);
        if let Some(keys) = contents.keys.get(record.keys).map(Arc::clone) {
            for key in &*keys {
                contents.postings.remove(&mut vacant.postings, *key, slot);
            }
        }
        pools.drop_all(contents, &record);
        if let Some(home) = contents.records.get_mut(slot) {
            *home = None;
        }
        if let Some(links) = contents.links.get_mut(slot) {
            links.generation = links.generation.wrapping_add(1);
            links.is_twin = false;
        }
        vacant.objects.give(slot);
        self.settle_twins(record.uid);
    }

    /// Clears the resource version of an object, so that [`seen`](Index::seen) requests the whole object.
    pub(super) fn forget_version(&mut self, slot: u32) {
        let Index { contents, pools, .. } = self;
        let Some(Some(record)) = contents.records.get_mut(slot) else { return };
        let (version, is_odd) = (std::mem::take(&mut record.version), record.has(flag::ODD_VERSION));
        record.flags &= !flag::ODD_VERSION;
        pools.drop_version(contents, version, is_odd);
    }

    /// Records that `aspects` of an object change; at the first call since the last snapshot also its state before
    /// the change.
    pub(super) fn touch(&mut self, slot: u32, aspects: Aspects) {
        let handle = self.contents.handle(slot);
        let at = match self.pending.by_handle.get(&handle) {
            Some(at) => *at,
            None => {
                let at = self.pending.changes.len();
                self.pending.by_handle.insert(handle, at);
                self.pending.changes.push(self.contents.change(slot, self.contents.seen(slot)));
                at
            }
        };
        if let Some(Some(change)) = self.pending.changes.get_mut(at) {
            change.aspects |= aspects;
        }
    }

    /// Records the removal of an object. If it was added after the last snapshot, the batch does not mention it.
    fn forget_change(&mut self, slot: u32) {
        self.touch(slot, Aspects::default());
        let Some(at) = self.pending.by_handle.remove(&self.contents.handle(slot)) else { return };
        if let Some(change) = self.pending.changes.get_mut(at)
            && change.as_ref().is_some_and(|change| change.before.is_none())
        {
            *change = None;
        }
    }

    /// Takes the changes since the last snapshot as a batch; `None` if there are none.
    pub(super) fn take_batch(&mut self) -> Option<Batch> {
        if self.pending.is_empty() {
            return None;
        }
        let Pending { changes, by_handle, scopes_changed } = std::mem::take(&mut self.pending);
        let changes = changes.into_iter().flatten().map(|mut change| {
            // One that went is not found under its handle any more, whoever has its slot.
            if by_handle.contains_key(&change.handle) {
                change.after = self.contents.seen(change.handle.slot);
            }
            change
        });
        let sequence = self.contents.sequence + 1;
        Some(Batch { sequence, changes: changes.collect(), scopes_changed })
    }

    pub(super) fn apply_event(&mut self, object: &Object<'_>, now: Timestamp) {
        let (events, seed) = (&mut self.contents.events, self.contents.seed);
        if let Some(about) = self.events.apply(events, seed, object, now) {
            self.note_told(&about);
        }
    }

    pub(super) fn remove_event(&mut self, namespace: &str, name: &str) -> bool {
        let (events, seed) = (&mut self.contents.events, self.contents.seed);
        let dropped = self.events.remove(events, seed, namespace, name);
        self.note_dropped(dropped);
        self.reassessment.announced(dropped.map(|dropped| dropped.about))
    }

    pub(super) fn read_events(&mut self, input: &mut Reader<'_>) -> Result<(), Damaged> {
        self.events.read(&mut self.contents.events, input)
    }
}
