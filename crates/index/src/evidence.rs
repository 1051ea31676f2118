//! Evidence from an index: the fields of objects that [`assess`](taffrail_status::assess::assess) reads.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use taffrail_object::json::{OwnedDocument, Value, write_string};
use taffrail_object::{Object, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::assess::{Assessment, Event, assess_named};
use taffrail_status::{
    ActiveRules, ClusterRules, ClusterState, ComputeError, Listing, ObjectContext, Observed, Presence, Rules,
    Teacher, TeachingTime, Verdict,
};

use super::contents::Contents;
use super::extract::ExtractParts;
use super::new_record;
use super::record::{Body, Record, Relation, Uid, flag};
use super::view::ObjectRef;

/// The objects of an index as evidence for assessments.
///
/// Each object is built once from its record and extract, when it is first queried.
#[derive(Debug)]
pub struct IndexEvidence<'s> {
    contents: &'s Contents,
    /// For each requested slot, the number of its document in `documents`; `None` for an object that cannot be built.
    made: Mutex<FxHashMap<u32, Option<u32>>>,
    documents: Documents,
}

/// A growing list of documents whose addresses do not change.
#[derive(Debug, Default)]
struct Documents {
    /// Blocks of documents: the first has one, each following block twice as many as the block before.
    blocks: [OnceLock<Box<[OnceLock<OwnedDocument>]>>; 32],
    len: AtomicU32,
}

impl Documents {
    fn slot(&self, at: u32) -> Option<&OnceLock<OwnedDocument>> {
        let block = (at + 1).ilog2();
        let slots = self.blocks.get(block as usize)?;
        slots
            .get_or_init(|| (0..1_u32 << block).map(|_| OnceLock::new()).collect())
            .get((at + 1 - (1 << block)) as usize)
    }

    fn add(&self, document: OwnedDocument) -> Option<u32> {
        let at = self.len.fetch_add(1, Ordering::Relaxed);
        self.slot(at)?.set(document).ok()?;
        Some(at)
    }

    fn get(&self, at: u32) -> Option<&OwnedDocument> {
        self.slot(at)?.get()
    }
}

impl<'s> IndexEvidence<'s> {
    /// Creates evidence from `contents`.
    pub fn new(contents: &'s Contents) -> IndexEvidence<'s> {
        IndexEvidence { contents, made: Mutex::default(), documents: Documents::default() }
    }

    /// Returns the object at a slot with the fields that the index keeps; `None` if the slot is vacant or the object
    /// cannot be built.
    pub(super) fn object(&self, slot: u32) -> Option<Object<'_>> {
        self.observed(slot).map(|observed| observed.object)
    }

    /// Returns an object with the fields that the index keeps; `None` if it cannot be built.
    pub fn of(&self, object: ObjectRef<'_>) -> Option<Observed<'_>> {
        self.observed(object.slot)
    }

    fn observed(&self, slot: u32) -> Option<Observed<'_>> {
        let record = self.contents.record(slot)?;
        let (group, kind, namespace, name) = self.contents.name_of(record);
        let key = ObjectKeyRef::new(group, kind, namespace, name);
        if let Some(Body::Document(document)) = record.body.as_deref() {
            let is_cut = record.has(flag::METADATA) || (group, kind) == ("", "Secret");
            let projection = if is_cut { Projection::Metadata } else { Projection::Full };
            return Some(Observed { key, object: Object::new(document.root()).ok()?, projection });
        }
        let object = Object::new(self.documents.get(self.made(slot)?)?.root()).ok()?;
        // An extract has all fields that are read of an object.
        Some(Observed { key, object, projection: Projection::Full })
    }

    /// Returns the number of the document of the object at a slot; builds the document at the first call. `None` if the
    /// slot is vacant or the object cannot be parsed.
    fn made(&self, slot: u32) -> Option<u32> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        *made.entry(slot).or_insert_with(|| {
            let document = OwnedDocument::parse(self.contents.text_of(slot)?).ok()?;
            self.documents.add(document)
        })
    }

    /// Lists the objects in a namespace (`None`: in all) that name `uid` as owner in a relation for which `is_so`
    /// returns true.
    fn pointing(&self, uid: &str, namespace: Option<&str>, is_so: fn(Relation) -> bool) -> Listing<'_> {
        let namespace = namespace.map(str::to_owned);
        let is_within = move |slot: u32| {
            let own = self.contents.record(slot).map(|record| self.contents.name_of(record).2);
            namespace.as_deref().is_none_or(|namespace| own == Some(namespace))
        };
        let dependents = self.contents.dependents_of(self.contents.uid(uid));
        let dependents = dependents.filter(move |(slot, how)| is_so(*how) && is_within(*slot));
        self.objects(dependents.map(|(slot, _)| slot))
    }

    fn objects<'e>(&'e self, slots: impl Iterator<Item = u32> + 'e) -> Listing<'e> {
        Box::new(slots.filter_map(|slot| self.observed(slot)))
    }

    /// Returns the number of documents that were built.
    pub(super) fn len(&self) -> u32 {
        self.documents.len.load(Ordering::Relaxed)
    }
}

impl Contents {
    /// Returns the object at a slot as JSON: its body if kept, else the fields in its record and extract. `None` if the
    /// slot is vacant.
    fn text_of(&self, slot: u32) -> Option<Vec<u8>> {
        let record = self.record(slot)?;
        if let Some(body) = &record.body {
            return Some(body.text().to_vec());
        }
        let mut out = Vec::with_capacity(512);
        self.write(record, &mut out);
        Some(out)
    }

    fn write(&self, record: &Record, out: &mut Vec<u8>) {
        let (_, kind, namespace, name) = self.name_of(record);
        let bucket = self.buckets.get(record.bucket).copied().unwrap_or_default();
        let api_version = self.kinds.get(bucket.kind as usize).map(|kind| kind.api_version());
        let extract = self.extracts.get(record.extract).and_then(|bytes| ExtractParts::split(bytes));
        let mut text = |key: &str, value: &str| {
            out.extend_from_slice(key.as_bytes());
            write_string(value, out);
        };
        text("{\"apiVersion\":", api_version.as_deref().unwrap_or_default());
        text(",\"kind\":", kind);
        text(",\"metadata\":{\"name\":", name);
        if !namespace.is_empty() {
            text(",\"namespace\":", namespace);
        }
        if !record.uid.is_none() && !record.has(flag::ODD_UID) {
            text(",\"uid\":", &record.uid.to_string());
        }
        if record.created != i64::MIN
            && !record.has(flag::ODD_CREATION)
            && let Ok(created) = Timestamp::from_second(record.created)
        {
            text(",\"creationTimestamp\":", &created.to_string());
        }
        if record.generation != i64::MIN {
            let mut number = String::new();
            let _ = write!(number, ",\"generation\":{}", record.generation);
            out.extend_from_slice(number.as_bytes());
        }
        self.write_labels(record, out);
        self.write_owners(record, out);
        let Some((metadata, content, targets)) = extract else {
            self.write_annotations(record, b"", out);
            out.extend_from_slice(b"}}");
            return;
        };
        self.write_annotations(record, metadata, out);
        out.push(b'}');
        if !content.is_empty() {
            out.push(b',');
            out.extend_from_slice(content);
        }
        self.write_targets(targets, out);
        out.push(b'}');
    }

    fn write_labels(&self, record: &Record, out: &mut Vec<u8>) {
        let Some(labels) = self.sets.get(record.labels) else { return };
        let mut before: &[u8] = b",\"labels\":{";
        for (key, value) in labels.iter() {
            let (Some(key), Some(value)) = (self.texts.get(*key), self.texts.get(*value)) else { continue };
            out.extend_from_slice(before);
            write_string(key, out);
            out.push(b':');
            write_string(value, out);
            before = b",";
        }
        if before == b"," {
            out.push(b'}');
        }
    }

    /// Writes the members of `metadata`, the metadata in an object's extract, to `out`, with the annotations in the
    /// record merged in after those of the extract.
    fn write_annotations(&self, record: &Record, metadata: &[u8], out: &mut Vec<u8>) {
        const ANNOTATIONS: &[u8] = b"\"annotations\":{";
        if !metadata.is_empty() {
            out.push(b',');
            out.extend_from_slice(metadata);
        }
        let Some(kept) = self.sets.get(record.annotations).filter(|kept| !kept.is_empty()) else { return };
        if memchr::memmem::find(metadata, ANNOTATIONS).is_some() {
            out.pop();
        } else {
            out.push(b',');
            out.extend_from_slice(ANNOTATIONS);
        }
        for (key, value) in kept.iter() {
            let (Some(key), Some(value)) = (self.texts.get(*key), self.texts.get(*value)) else { continue };
            if out.last() != Some(&b'{') {
                out.push(b',');
            }
            write_string(key, out);
            out.push(b':');
            write_string(value, out);
        }
        out.push(b'}');
    }

    /// Writes the owner references of an object, without inferred owners. Kind and name of an owner come from the
    /// owner's record; both are `-` if it does not exist.
    fn write_owners(&self, record: &Record, out: &mut Vec<u8>) {
        let Some(owners) = self.owners.get(record.owners) else { return };
        let mut before: &[u8] = b",\"ownerReferences\":[{\"uid\":";
        for owner in owners.iter().filter(|owner| owner.relation != Relation::Inferred) {
            out.extend_from_slice(before);
            write_string(&owner.uid.to_string(), out);
            let slot = self.slot_of_uid(owner.uid);
            if slot.is_none() {
                // That it is named is known, its name is not.
                out.extend_from_slice(b",\"kind\":\"-\",\"name\":\"-\"");
            }
            if let Some(record) = slot.and_then(|slot| self.record(slot)) {
                let (_, kind, _, name) = self.name_of(record);
                let bucket = self.buckets.get(record.bucket).copied().unwrap_or_default();
                let api_version = self.kinds.get(bucket.kind as usize).map(|kind| kind.api_version());
                let api_version = api_version.unwrap_or_default();
                for (key, value) in
                    [(",\"apiVersion\":", &*api_version), (",\"kind\":", kind), (",\"name\":", name)]
                {
                    out.extend_from_slice(key.as_bytes());
                    write_string(value, out);
                }
            }
            let is_controller = owner.relation == Relation::Controller;
            out.extend_from_slice(if is_controller { b",\"controller\":true}" } else { b"}" });
            before = b",{\"uid\":";
        }
        if before == b",{\"uid\":" {
            out.push(b']');
        }
    }

    /// Writes the existing Pods among the UIDs `targets` as the endpoints of an EndpointSlice.
    fn write_targets(&self, targets: impl Iterator<Item = Uid>, out: &mut Vec<u8>) {
        let mut before: &[u8] = b",\"endpoints\":[";
        for record in targets.filter_map(|uid| self.record(self.slot_of_uid(uid)?)) {
            let (_, kind, namespace, name) = self.name_of(record);
            out.extend_from_slice(before);
            for (key, value) in
                [("{\"targetRef\":{\"kind\":", kind), (",\"namespace\":", namespace), (",\"name\":", name)]
            {
                out.extend_from_slice(key.as_bytes());
                write_string(value, out);
            }
            out.extend_from_slice(b"}}");
            before = b",";
        }
        if before == b"," {
            out.push(b']');
        }
    }

    /// Returns the objects of the index as evidence.
    pub fn evidence(&self) -> IndexEvidence<'_> {
        IndexEvidence::new(self)
    }

    /// Returns the rules to use with [`evidence`](Contents::evidence): for an object of the index they return its
    /// recorded verdict, and they judge any other object by the rules of the settings.
    pub fn rules(&self) -> RecordedRules<'_> {
        RecordedRules { contents: self, cluster_rules: None }
    }

    /// Returns `rules` with the index's options, as an assessment needs them.
    pub(crate) fn active<'r>(&'r self, rules: &'r RecordedRules<'_>) -> ActiveRules<'r> {
        ActiveRules { options: &self.settings.options, ..ActiveRules::new(rules) }
    }

    /// Assesses the object `name` at the time `now`; the result includes the cause chain. The status is NotFound for an
    /// object that is known to be absent, and Unknown for another one that the index does not have.
    pub fn assess(&self, name: &ObjectKey, now: Timestamp) -> Assessment {
        let rules = self.rules();
        assess_named(name, &self.evidence(), &self.active(&rules), now)
    }
}

impl ClusterState for IndexEvidence<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        let ObjectKeyRef { group, kind, namespace, name } = key;
        let slot = self.contents.slot_of(group, kind, namespace, name);
        if let Some(object) = slot.and_then(|slot| self.observed(slot)) {
            return Presence::Present(object);
        }
        if self.contents.is_read(group, kind, Some(namespace)) {
            return Presence::Absent;
        }
        let scope = self.contents.find_kind(group, kind).map(|kind| self.contents.scope(kind, namespace));
        Presence::Unobserved(match scope {
            Some(scope) if !scope.reason.is_empty() => Cow::Owned(scope.reason.to_string()),
            _ => Cow::Borrowed("the object was not read"),
        })
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.pointing(uid, namespace, |how| how == Relation::Controller)
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.pointing(uid, namespace, |how| how != Relation::Inferred)
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        match self.contents.find_kind(group, kind) {
            Some(kind) => self.objects(self.contents.of_kind(kind, namespace).map(|object| object.slot)),
            None => Box::new(std::iter::empty()),
        }
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        let key = new_record::users(self.contents.seed, namespace, claim);
        self.objects(self.contents.postings.members(key).iter().copied())
    }

    fn terminating_on(&self, node: &str) -> Listing<'_> {
        let key = new_record::terminating_on(self.contents.seed, node);
        self.objects(self.contents.postings.members(key).iter().copied())
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        let key = new_record::definition(self.contents.seed, group, kind);
        self.observed(*self.contents.postings.members(key).first()?)
    }

    fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        self.contents.has_status_subresource(group, version, kind)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        self.objects(self.contents.in_namespace(namespace).map(|object| object.slot))
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        let uid = self.contents.uid(&about.text(&["metadata", "uid"]));
        let (seed, events) = (self.contents.seed, &self.contents.events);
        events.about(seed, about.kind(), &about.namespace(), &about.name(), uid)
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.contents.is_read(group, kind, namespace)
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        self.contents.is_read(group, kind, Some(namespace))
    }
}

/// Rules that return the recorded verdict of an object of the index, and judge any other object by the rules of the
/// index's settings.
///
/// Used as [`ClusterRules`], they return rules from the cluster that judge only objects whose bodies the index keeps
/// and objects that it does not have.
#[derive(Clone, Copy)]
pub struct RecordedRules<'s> {
    contents: &'s Contents,
    cluster_rules: Option<&'s dyn ClusterRules>,
}

impl<'s> RecordedRules<'s> {
    /// Adds `cluster_rules`, the source of additional rules from objects in clusters.
    pub fn with_reader(self, cluster_rules: &'s dyn ClusterRules) -> RecordedRules<'s> {
        RecordedRules { cluster_rules: Some(cluster_rules), ..self }
    }

    fn record(&self, object: &Object<'_>) -> Option<&'s Record> {
        let [namespace, name] =
            object.full_name().map(|text| text.and_then(Value::as_str).unwrap_or_default());
        let slot = self.contents.slot_of(object.group(), object.kind(), &namespace, &name)?;
        self.contents.record(slot)
    }
}

impl Rules for RecordedRules<'_> {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        match self.record(object).and_then(|record| self.contents.verdict(record.verdict)) {
            Some(verdict) => Ok(verdict.clone()),
            None => self.contents.settings.rules.judge(object, context, now),
        }
    }

    fn reads_children(&self, group: &str, kind: &str) -> bool {
        self.contents.settings.rules.reads_children(group, kind)
    }
}

impl ClusterRules for RecordedRules<'_> {
    fn with_cluster_rules<'r>(
        &'r self,
        teachers: &[Teacher<'_>],
        spent: &'r TeachingTime,
    ) -> Option<Box<dyn Rules + 'r>> {
        let taught = self.cluster_rules?.with_cluster_rules(teachers, spent)?;
        Some(Box::new(TaughtRules { recorded: *self, taught }))
    }

    fn unmet_dependency(
        &self,
        object: &Object<'_>,
        dependencies: &[Object<'_>],
        spent: &TeachingTime,
        goes_on: &dyn Fn() -> bool,
    ) -> Vec<String> {
        let rules = self.cluster_rules;
        rules.map(|rules| rules.unmet_dependency(object, dependencies, spent, goes_on)).unwrap_or_default()
    }
}

/// Rules from objects in a cluster: they judge objects with a kept body and objects that the index does not have, and
/// return the recorded verdict for others.
struct TaughtRules<'r> {
    recorded: RecordedRules<'r>,
    taught: Box<dyn Rules + 'r>,
}

impl Rules for TaughtRules<'_> {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        match self.recorded.record(object).is_some_and(|record| record.body.is_none()) {
            true => self.recorded.judge(object, context, now),
            false => self.taught.judge(object, context, now),
        }
    }

    fn reads_children(&self, group: &str, kind: &str) -> bool {
        self.taught.reads_children(group, kind)
    }
}
