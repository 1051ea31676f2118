//! The compact index of one cluster: the objects that its API server holds now, their statuses, and the causes.
//!
//! An [`Index`] has one owner, which passes it what the API server sends ([`apply`](Index::apply),
//! [`remove`](Index::remove), plain functions that wait for nothing) and publishes it to readers
//! ([`publish`](Index::publish)). Readers hold a [`Snapshot`], and may [`subscribe`](Index::subscribe) to changes. It
//! does no I/O and reads no clock.
//!
//! # Structure
//!
//! * **Records in chunks behind `Arc`, copied on write.** A snapshot copies a few pointers, so neither owner nor
//!   readers wait. Chunks that the owner writes to while a snapshot is held are copied once, 16 objects at a time. A
//!   persistent map would cost a tree node for each object, and with a lock readers could delay the owner.
//! * **Slots instead of pointers.** Objects are numbers of four bytes; hash tables contain nothing else and compare
//!   with the records themselves. Lists of siblings, of a kind in a namespace, of a status run through the objects, in
//!   a separate part of the record: a walk over a tree reads 40 bytes for each object.
//! * **Pools.** Labels, annotations, owners, verdicts and extracts that many objects share are kept once, with
//!   reference counts, and dropped with their last use: memory follows the present contents, not all former ones.
//! * **Extracts instead of bodies.** Of each object only the fields that evidence reads are kept, and hardly any of an
//!   object whose status no evidence changes; so [`assess`](taffrail_status::assess) gives the same answers as over all
//!   bodies.
//! * **No Secret value enters**: of Secrets only metadata is read, and of no object the annotation in which kubectl
//!   keeps a copy of it.
//!
//! The stores are `chunked`, `table`, `pool` and `postings`. `new_record` and `extract` select what is kept of an
//! object. `contents`, `kind_buckets`, `tree` and `view` answer queries. `reassess` finds the objects whose status a
//! change may have changed, and `evidence` answers `assess` from the extracts. `persist` and `wire` save an index and
//! load it again.

mod chunked;
mod clock;
mod contents;
mod events;
mod evidence;
mod extract;
mod kind_buckets;
mod new_record;
mod persist;
mod pool;
mod postings;
mod reassess;
mod record;
mod relist;
mod scope;
mod subscribe;
mod table;
mod tree;
mod view;
mod wire;
mod write;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use chunked::Vacant;
use jiff::Timestamp;
use kind_buckets::BucketVacant;
use rustc_hash::FxHashMap;
use taffrail_object::json::OwnedDocument;
use taffrail_object::kinds::is_namespaced;
use taffrail_object::{ApiResource, GroupKind, Object, TokenSeed};
use taffrail_status::assess::{Costs, Evidence, Options};
use taffrail_status::{ObjectContext, Rules, Taffrail, Verdict};

pub use contents::{Contents, Snapshot};
use events::EventsOwner;
pub use events::{EVENTS_KEPT_FOR, EVENTS_OF_A_CLUSTER, EVENTS_OF_AN_OBJECT};
pub use evidence::{IndexEvidence, RecordedRules};
use extract::Extractor;
use new_record::{NewRecord, ReadContext};
pub use persist::{ReopenError, save};
use pool::Pool;
use reassess::Reassessment;
use record::{Body, Record};
pub use record::{Handle, REMEMBERED, Relation, Transition, Uid};
pub use scope::{Scope, ScopeState};
pub use subscribe::{Aspects, Batch, Change, Notice, Seen, Subscription};
use table::Seed;
pub use taffrail_object::Projection;
pub use tree::{Node, Tree};
pub use view::ObjectRef;
use write::Pending;

/// A function that returns true if the body of an object is to be kept.
pub type Keep = Arc<dyn Fn(&Object<'_>) -> bool + Send + Sync>;

/// A function that passes the marks of an object to its second argument. A mark is a word by which the user of the
/// index finds objects, such as the app they belong to.
pub type Mark = Arc<dyn Fn(&Object<'_>, &mut dyn FnMut(&str)) + Send + Sync>;

/// The amount of an object that an index keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retention {
    /// The fields that evidence reads, and the bodies that [`IndexSettings::keep`] selects.
    #[default]
    Compact,
    /// Every object as it was read, parsed; only the metadata of Secrets.
    Full,
}

/// Settings of an index.
#[derive(Clone)]
pub struct IndexSettings {
    /// The rules that judge the objects.
    pub rules: Arc<dyn Rules>,
    /// The user's options for judging: the effect of disruption budgets, the time limit, and the rules that are
    /// trusted.
    pub options: Options,
    /// The amount of each object that is kept.
    pub retention: Retention,
    /// The keys of the annotations that are kept.
    pub annotations: Vec<String>,
    /// The function that returns true for objects whose bodies are kept. It is not called for Secrets.
    pub keep: Keep,
    /// True if kept bodies contain the managed fields, which record the writer and time of each field; with
    /// [`Retention::Full`] they always do.
    pub managed_fields: bool,
    /// The function that passes the marks of an object to its second argument.
    pub mark: Mark,
    /// True to assess objects with evidence; false to use the verdict on each object alone.
    pub assess: bool,
    /// A number that must change whenever the other settings change: an index [saved](save) with one number is not
    /// [reopened](Index::reopen) with another.
    pub revision: u64,
}

impl Default for IndexSettings {
    fn default() -> IndexSettings {
        IndexSettings {
            rules: Arc::new(Taffrail),
            options: Options::default(),
            retention: Retention::default(),
            annotations: Vec::new(),
            keep: Arc::new(|_| false),
            managed_fields: false,
            mark: Arc::new(|_, _| {}),
            assess: true,
            revision: 0,
        }
    }
}

impl fmt::Debug for IndexSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IndexSettings { annotations, assess, .. } = self;
        f.debug_struct("IndexSettings")
            .field("annotations", annotations)
            .field("assess", assess)
            .finish_non_exhaustive()
    }
}

/// The ID of a kind in an index: group and name of the kind, in any version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindId(pub(crate) u32);

impl KindId {
    /// Returns a small number, unique among the kinds of the index.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

/// The reason why an index does not accept an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The object has no name.
    #[error("the index stores no object without metadata.name")]
    NoName,
    /// The object's name or namespace is longer than any that an API server accepts.
    #[error("the index stores no object whose name or namespace is longer than 1024 bytes")]
    NameTooLong,
    /// The object is of another kind than expected.
    #[error("an object of the kind {found} cannot be stored in the index as one of the kind {expected}")]
    OtherKind {
        /// The expected kind.
        expected: String,
        /// The object's kind.
        found: String,
    },
    /// The value is not a Kubernetes object.
    #[error("the index stores only Kubernetes objects, and the document is not one")]
    NotAnObject,
    /// The kind was never passed to [`Index::kind`].
    #[error("the object cannot be stored in the index, because its kind was not added to the index before")]
    UnknownKind,
}

/// The effect of applying an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The object is new, or replaces an object of the same name with another UID.
    Added(Handle),
    /// The object changed; the aspects tell in which visible parts.
    Changed(Handle, Aspects),
    /// No visible field changed, even if its resource version did.
    Unchanged(Handle),
    /// The object is an event, which is kept, if its reason and age allow, with the object that it is about.
    Event,
}

impl Applied {
    /// Returns the handle of the object; `None` for an event.
    pub fn handle(self) -> Option<Handle> {
        match self {
            Applied::Added(handle) | Applied::Changed(handle, _) | Applied::Unchanged(handle) => Some(handle),
            Applied::Event => None,
        }
    }
}

/// The index of a cluster; see the [module](self).
#[derive(Debug)]
pub struct Index {
    contents: Contents,
    extractor: Extractor,
    pools: Pools,
    vacant: Vacants,
    events: EventsOwner,
    /// For each slot, the number of lists begun before its object was last applied or confirmed.
    epochs: Vec<u32>,
    epoch: u32,
    /// For each scope (a kind, and its namespace or `None` for all) that is being listed, the number of its list.
    reading: FxHashMap<(KindId, Option<Box<str>>), u32>,
    pending: Pending,
    reassessment: Reassessment,
    /// The kinds of which bodies are kept in addition to the objects that the settings select.
    kept_kinds: Vec<GroupKind>,
    /// The cost of judging objects since the last reassessment began.
    costs: Costs,
    subscribers: subscribe::Subscribers,
}

/// The pools of shared values, as the writer of the index needs them: reference counts and lookup tables.
#[derive(Debug)]
struct Pools {
    texts: Pool,
    sets: Pool,
    owners: Pool,
    verdicts: Pool,
    healths: Pool,
    extracts: Pool,
    keys: Pool,
}

/// The free slots of each table of an index.
#[derive(Debug, Default)]
struct Vacants {
    objects: Vacant,
    owner_groups: Vacant,
    buckets: BucketVacant,
    postings: Vacant,
}

impl Index {
    /// Creates an empty index.
    pub fn new(settings: IndexSettings) -> Index {
        Index::seeded(settings, Seed::random(), TokenSeed::random())
    }

    fn seeded(settings: IndexSettings, seed: Seed, token_seed: TokenSeed) -> Index {
        let pool = || Pool::new(seed);
        Index {
            contents: Contents::new(Arc::new(settings), seed, token_seed),
            extractor: Extractor::new(),
            pools: Pools {
                texts: pool(),
                sets: pool(),
                owners: pool(),
                verdicts: pool(),
                healths: pool(),
                extracts: pool(),
                keys: pool(),
            },
            vacant: Vacants::default(),
            events: EventsOwner::new(seed),
            epochs: Vec::new(),
            epoch: 0,
            reading: FxHashMap::default(),
            pending: Pending::default(),
            reassessment: Reassessment::default(),
            kept_kinds: Vec::new(),
            costs: Costs::default(),
            subscribers: subscribe::Subscribers::default(),
        }
    }

    /// Returns the contents of the index, including changes that were not published; statuses by evidence are those of
    /// the last reassessment.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Adds a kind or updates its resource, such as its version; returns its ID.
    pub fn kind(&mut self, resource: &ApiResource) -> KindId {
        let kinds = Arc::make_mut(&mut self.contents.kinds);
        let is_it = |own: &Arc<ApiResource>| own.kind == resource.kind && own.group == resource.group;
        if let Some(at) = kinds.iter().position(is_it) {
            if let Some(own) = kinds.get_mut(at).filter(|own| ***own != *resource) {
                *own = Arc::new(resource.clone());
            }
            return KindId(at as u32);
        }
        kinds.push(Arc::new(resource.clone()));
        Arc::make_mut(&mut self.contents.status_subresources).push(None);
        Arc::make_mut(&mut self.contents.scopes).push(Arc::default());
        let at = self.contents.kind_heads.grow();
        if let Some(head) = self.contents.kind_heads.get_mut(at) {
            *head = pool::NONE;
        }
        let id = KindId(at);
        self.note_scope_changed(id);
        id
    }

    /// Records that every kind which the API server serves was [added](Index::kind), except those of `broken_groups`,
    /// which discovery could not read: any other kind has no objects. `None` if discovery did not tell all kinds.
    pub fn set_discovered(&mut self, broken_groups: Option<BTreeSet<String>>) {
        if self.contents.broken_groups.as_deref() == broken_groups.as_ref() {
            return;
        }
        self.contents.broken_groups = broken_groups.map(Arc::new);
        for at in 0..self.contents.kinds.len() {
            self.suspect(KindId(at as u32), None);
        }
    }

    /// Records whether objects of a kind have a status subresource, as discovery reports (`None`: not known); rules may
    /// expect a status of such objects.
    ///
    /// Returns true if objects without a status were judged under the other assumption: the caller must then list the
    /// kind again and apply its objects.
    pub fn set_status_subresource(&mut self, kind: KindId, is_there: Option<bool>) -> bool {
        let known = Arc::make_mut(&mut self.contents.status_subresources);
        match known.get_mut(kind.number()) {
            Some(own) if *own != is_there => *own = is_there,
            _ => return false,
        }
        let extracts = self.contents.extracts.clone();
        self.forget_versions(kind, |record, verdict| {
            let extract = extracts.get(record.extract).map_or(&[][..], |extract| &**extract);
            let has_status = memchr::memmem::find(extract, b"\"status\":").is_some();
            record.body.is_none() && verdict.rule == "fallback" && !has_status
        })
    }

    /// Sets the kinds whose bodies are kept from now on in addition to those that the settings select, because rules
    /// from objects in the cluster judge them. The kind `*` stands for all kinds of its group.
    ///
    /// Returns the kinds with objects whose body is missing: the caller must list them again and apply their objects.
    pub fn set_kept_kinds(&mut self, kinds: impl IntoIterator<Item = GroupKind>) -> Vec<KindId> {
        self.kept_kinds = kinds.into_iter().collect();
        let is_kept = |kind: &ApiResource| keeps(&self.kept_kinds, &kind.group, &kind.kind);
        let kept = self.contents.kinds().filter(|(_, kind)| is_kept(kind)).map(|(id, _)| id);
        let kept: Vec<KindId> = kept.collect();
        kept.into_iter()
            .filter(|kind| self.forget_versions(*kind, |record, _| record.body.is_none()))
            .collect()
    }

    /// Clears the resource versions of the objects of a kind for which `is_meant` returns true, so that
    /// [`seen`](Index::seen) returns false for them and the caller applies them again. Returns false if there are
    /// none.
    fn forget_versions(&mut self, kind: KindId, is_meant: impl Fn(&Record, &Verdict) -> bool) -> bool {
        let slots: Vec<u32> = self.contents.of_kind(kind, None).map(|object| object.slot).collect();
        let is_meant = |slot: &u32| {
            let record = self.contents.record(*slot);
            record.is_some_and(|record| {
                self.contents.verdict(record.verdict).is_some_and(|verdict| is_meant(record, verdict))
            })
        };
        let meant: Vec<u32> = slots.into_iter().filter(is_meant).collect();
        for slot in &meant {
            self.forget_version(*slot);
        }
        !meant.is_empty()
    }

    /// Adds or updates an object from the API server; `projection` is the part of it that was read.
    ///
    /// # Errors
    /// Returns an error if the kind is unknown, the object is of another kind, its name is missing, or its name or
    /// namespace too long. Nothing changes then.
    pub fn apply(
        &mut self,
        kind: KindId,
        object: &Object<'_>,
        projection: Projection,
        now: Timestamp,
    ) -> Result<Applied, Refusal> {
        if self.contents.settings.retention == Retention::Full {
            let mut text = Vec::new();
            object.root().write(&mut text);
            // What was parsed once is parsed again.
            if let Ok(document) = OwnedDocument::parse(text) {
                return self.apply_document(kind, document, projection, now);
            }
        }
        let new_record = match self.read(kind, object, projection, now)? {
            Some(new_record) => new_record,
            None => return Ok(Applied::Event),
        };
        self.put(kind, new_record, now)
    }

    /// Adds or updates an object like [`apply`](Index::apply). With [`Retention::Full`] the document is kept unchanged,
    /// but of a Secret only the metadata.
    ///
    /// # Errors
    /// Returns an error if the document is not an object of this kind, the kind is unknown, the name is missing, or the
    /// name or namespace too long. Nothing changes then.
    pub fn apply_document(
        &mut self,
        kind: KindId,
        document: OwnedDocument,
        projection: Projection,
        now: Timestamp,
    ) -> Result<Applied, Refusal> {
        let body = Arc::new(Body::Document(document));
        let Body::Document(document) = &*body else { return Err(Refusal::NotAnObject) };
        let object = Object::new(document.root()).map_err(|_| Refusal::NotAnObject)?;
        let Some(new_record) = self.read(kind, &object, projection, now)? else { return Ok(Applied::Event) };
        if self.contents.settings.retention == Retention::Compact {
            return self.put(kind, new_record, now);
        }
        let kept = match (object.group(), object.kind()) {
            ("", "Secret") => {
                let metadata = OwnedDocument::parse(new_record::metadata_of_secret(&object));
                metadata.ok().map(|metadata| Arc::new(Body::Document(metadata)))
            }
            _ => Some(Arc::clone(&body)),
        };
        self.put(kind, NewRecord { body: kept, ..new_record }, now)
    }

    /// Converts an object to a record. An event is stored with the object that it is about, or dropped, and `None`
    /// returned.
    fn read<'a>(
        &mut self,
        kind: KindId,
        object: &Object<'a>,
        projection: Projection,
        now: Timestamp,
    ) -> Result<Option<NewRecord<'a>>, Refusal> {
        let resource = self.contents.resource(kind).ok_or(Refusal::UnknownKind)?;
        if (object.group(), object.kind()) != (&*resource.group, &*resource.kind) {
            let expected = resource.kind.clone();
            return Err(Refusal::OtherKind { expected, found: object.kind().to_owned() });
        }
        if is_event(resource) {
            self.apply_event(object, now);
            return Ok(None);
        }
        let settings = Arc::clone(&self.contents.settings);
        let is_kept = keeps(&self.kept_kinds, object.group(), object.kind());
        let reading = ReadContext {
            settings: &settings,
            extractor: &self.extractor,
            seed: self.contents.seed,
            token_seed: self.contents.token_seed,
            is_kept,
        };
        let verdict = self.judge(kind, object, now);
        new_record::read(object, projection, &reading, verdict, now).map(Some)
    }

    /// Judges an object by the rules of the settings, with the objects that it owns as evidence if the rules of its
    /// kind read them, and else alone.
    fn judge(&self, kind: KindId, object: &Object<'_>, now: Timestamp) -> Verdict {
        let rules = &*self.contents.settings.rules;
        if self.contents.settings.assess && rules.reads_children(object.group(), object.kind()) {
            let evidence = self.contents.evidence();
            return Evidence::from(&evidence).at_cost(&self.costs).judge(rules, object, None, now);
        }
        let is_served = || self.contents.resource(kind).is_some_and(|own| own.version == object.version());
        // The kinds of Kubernetes itself have one or have none, whatever a server says.
        let is_custom = || is_namespaced(object.group(), object.kind()).is_none();
        let told = self.contents.status_subresources.get(kind.number()).copied().flatten();
        let has_status_subresource = told.filter(|_| is_served() && is_custom());
        let costs = Some(&self.costs);
        let context = ObjectContext { has_status_subresource, costs, ..ObjectContext::default() };
        Verdict::of(rules.judge(object, &context, now))
    }

    /// Removes the deleted object of a kind with this namespace (empty if cluster-scoped) and name; returns false if it
    /// was not in the index.
    pub fn remove(&mut self, kind: KindId, namespace: &str, name: &str) -> bool {
        let Some(resource) = self.contents.kinds.get(kind.0 as usize).map(Arc::clone) else { return false };
        if is_event(&resource) {
            return self.remove_event(namespace, name);
        }
        match self.contents.slot_of(&resource.group, &resource.kind, namespace, name) {
            Some(slot) => {
                self.take_out(slot);
                true
            }
            None => false,
        }
    }

    /// Publishes all changes so far: reassesses the affected objects (see [`reassess`](Index::reassess)), notifies
    /// subscribers, and returns a snapshot. Without changes, the snapshot has the same number as the last one.
    pub fn publish(&mut self, now: Timestamp) -> Snapshot {
        self.reassess(now);
        if let Some(batch) = self.take_batch() {
            self.contents.sequence = batch.sequence;
            self.subscribers.tell(&Arc::new(batch));
        }
        Snapshot(Arc::new(self.contents.clone()))
    }

    /// Subscribes to all changes from now on. At most `bound` changes are queued; a slower subscriber must start again.
    /// The first notice has the number of the snapshot to start from: the last one, or the next one if there are
    /// changes since.
    pub fn subscribe(&mut self, bound: usize) -> Subscription {
        let next = if self.pending.is_empty() { 0 } else { 1 };
        self.subscribers.add(bound, self.contents.sequence + next)
    }

    /// Returns the numbers of objects, events and distinct values that the index stores.
    pub fn sizes(&self) -> Sizes {
        let Pools { texts, sets, owners, verdicts, healths, extracts, keys } = &self.pools;
        Sizes {
            objects: self.contents.len(),
            texts: texts.len(),
            sets: sets.len() + keys.len(),
            owners: owners.len(),
            verdicts: verdicts.len() + healths.len(),
            extracts: extracts.len(),
            events: self.contents.events.len(),
            slots: self.contents.links.len() as usize,
        }
    }
}

/// Returns true if `kinds` contains the kind, or `*` for all kinds of its group.
fn keeps(kinds: &[GroupKind], group: &str, kind: &str) -> bool {
    kinds.iter().any(|own| own.group == group && (own.kind == kind || own.kind == "*"))
}

fn is_event(resource: &ApiResource) -> bool {
    resource.kind == "Event" && matches!(&*resource.group, "" | "events.k8s.io")
}

/// Numbers of distinct values that an index stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Number of objects.
    pub objects: usize,
    /// Number of different texts: keys and values of labels and annotations, and resource versions that are not
    /// numbers.
    pub texts: usize,
    /// Number of sets of labels, annotations and marks.
    pub sets: usize,
    /// Number of lists of owners.
    pub owners: usize,
    /// Number of verdicts and of assessments by evidence.
    pub verdicts: usize,
    /// Number of extracts.
    pub extracts: usize,
    /// Number of events.
    pub events: usize,
    /// Number of slots for objects, vacant ones included.
    pub slots: usize,
}
