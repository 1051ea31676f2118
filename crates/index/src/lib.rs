//! The compact index of one cluster: what its API server holds now, how each object is, and why.
//!
//! An [`Index`] has one owner, who tells it what the API server says ([`apply`](Index::apply), [`remove`](Index::remove), plain
//! functions that wait for nothing) and makes it known to readers ([`publish`](Index::publish)). Readers hold a [`Snapshot`]; those who
//! want to hear of changes [`subscribe`](Index::subscribe). It does no I/O and reads no clock.
//!
//! How it is built, and why so:
//!
//! * **Records in chunks behind `Arc`, copied on write.** A snapshot is a copy of few pointers, so neither owner nor
//!   readers wait. What an owner writes to while a snapshot is held is copied once, 16 objects at a time. A persistent
//!   map would cost a tree node an object, a lock would let readers hold up the owner.
//! * **Slots instead of pointers.** Objects are numbers of four bytes; hash tables hold nothing else and compare with the
//!   records themselves. Lists of siblings, of a kind in a namespace, of a status go through the objects, in a
//!   part of the record of its own: a walk over a tree reads 40 bytes an object.
//! * **Pools.** Labels, annotations, owners, verdicts and extracts that many objects share are kept once, counted, and go
//!   with their last use: the memory follows what is there, not what there was.
//! * **Extracts instead of bodies.** Of each object those fields are kept that evidence reads, of one that is plainly well hardly any;
//!   so [`assess`](taffrail_status::assess) answers as it would over all bodies.
//! * **No Secret value enters**: of Secrets nothing but metadata is looked at, and kubectl's copy of an object in its own
//!   annotation is kept of none.

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
use taffrail_object::{ApiResource, GroupKind, Object};
use taffrail_status::assess::{Costs, Evidence, Options};
use taffrail_status::{ObjectContext, Rules, Taffrail, Verdict};

pub use contents::{Contents, Snapshot};
use events::EventsOwner;
pub use events::{EVENTS_KEPT_FOR, EVENTS_OF_A_CLUSTER, EVENTS_OF_AN_OBJECT};
pub use evidence::{IndexEvidence, RecordedRules};
use extract::Extractor;
use new_record::{NewRecord, Reading};
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

/// Says whether the body of an object is to be kept.
pub type Keep = Arc<dyn Fn(&Object<'_>) -> bool + Send + Sync>;

/// Tells the marks of an object: words by which whoever uses the index finds it again, such as the app it belongs to.
pub type Mark = Arc<dyn Fn(&Object<'_>, &mut dyn FnMut(&str)) + Send + Sync>;

/// The amount of an object that an index keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retention {
    /// The fields that evidence reads, and the bodies that [`IndexSettings::keep`] names.
    #[default]
    Compact,
    /// Every object as it was read, parsed; of a Secret the metadata.
    Full,
}

/// What a user of an index chooses.
#[derive(Clone)]
pub struct IndexSettings {
    /// Who judges.
    pub rules: Arc<dyn Rules>,
    /// The choices of the user.
    pub options: Options,
    /// The amount of each object that is kept.
    pub retention: Retention,
    /// The annotations that are kept, by their keys.
    pub annotations: Vec<String>,
    /// Which bodies are kept. It is not asked of Secrets.
    pub keep: Keep,
    /// True if kept bodies have the managed fields, which tell who wrote a field and when.
    pub managed_fields: bool,
    /// Which marks an object has.
    pub mark: Mark,
    /// Whether evidence is looked at; otherwise each object is as it says alone.
    pub assess: bool,
    /// A number that is another whenever the rest means another: what was [saved](save) with one is not
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

/// A kind that an index was told of: a group and the name of a kind, whatever its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindId(pub(crate) u32);

impl KindId {
    /// A small number, which no other kind has.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

/// Why an object is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It has no name.
    #[error("has no name")]
    NoName,
    /// Its name or namespace is longer than any that an API server accepts.
    #[error("has a name of more than 1024 bytes")]
    NameTooLong,
    /// It is of another kind than was said.
    #[error("is of the kind {found}, not {expected}")]
    OtherKind {
        /// The kind that it was said to be of.
        expected: String,
        /// The kind that it is of.
        found: String,
    },
    /// It is not an object of Kubernetes.
    #[error("is not a Kubernetes object")]
    NotAnObject,
    /// The kind was never made known to this index.
    #[error("is of a kind that is not known")]
    UnknownKind,
}

/// What came of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It was not there, or another one of the same name was.
    Added(Handle),
    /// It is another than it was, as far as anything is shown of it.
    Changed(Handle, Aspects),
    /// Nothing that is shown changed, whatever its resource version says.
    Unchanged(Handle),
    /// It is an event; those are kept with what they are about.
    Event,
}

impl Applied {
    /// The object, unless it is an event.
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
    /// When each object was told of last: the number of scopes that were begun to be read before.
    epochs: Vec<u32>,
    epoch: u32,
    /// Scopes that are being read, and when that began.
    reading: FxHashMap<(KindId, Option<Box<str>>), u32>,
    pending: Pending,
    reassessment: Reassessment,
    /// The kinds of which bodies are kept besides.
    kept_kinds: Vec<GroupKind>,
    /// The cost of judging since the last reassessment began.
    costs: Costs,
    subscribers: subscribe::Subscribers,
}

/// Who knows how often what is kept once is in use.
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

#[derive(Debug, Default)]
struct Vacants {
    objects: Vacant,
    owner_groups: Vacant,
    buckets: BucketVacant,
    postings: Vacant,
}

impl Index {
    /// An empty index.
    pub fn new(settings: IndexSettings) -> Index {
        Index::seeded(settings, Seed::random())
    }

    fn seeded(settings: IndexSettings, seed: Seed) -> Index {
        let pool = || Pool::new(seed);
        Index {
            contents: Contents::new(Arc::new(settings), seed),
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

    /// What the index holds, its latest changes included.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Makes a kind known, or says that it is served in another version now.
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

    /// Says that every kind which the API server serves was [made known](Index::kind), but those of groups that discovery could not
    /// read: a kind that was not has no objects. `None` where discovery did not tell so much.
    pub fn set_discovered(&mut self, broken_groups: Option<BTreeSet<String>>) {
        if self.contents.broken_groups.as_deref() == broken_groups.as_ref() {
            return;
        }
        self.contents.broken_groups = broken_groups.map(Arc::new);
        for at in 0..self.contents.kinds.len() {
            self.suspect(KindId(at as u32), None);
        }
    }

    /// Says whether objects of a kind have a status subresource, which discovery tells; rules may expect a status of those.
    ///
    /// Returns true if objects are known that have no status and were judged as if it were otherwise: the caller reads the kind
    /// again, and tells them whole.
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

    /// Keeps the bodies of objects of these kinds too, from now on: rules that objects of the cluster state for others judge them. A
    /// kind may be `*`.
    ///
    /// Returns those of the kinds of which objects are known without a body: the caller reads them again, and tells them whole.
    pub fn set_kept_kinds(&mut self, kinds: impl IntoIterator<Item = GroupKind>) -> Vec<KindId> {
        self.kept_kinds = kinds.into_iter().collect();
        let is_kept = |kind: &ApiResource| keeps(&self.kept_kinds, &kind.group, &kind.kind);
        let kept = self.contents.kinds().filter(|(_, kind)| is_kept(kind)).map(|(id, _)| id);
        let kept: Vec<KindId> = kept.collect();
        kept.into_iter()
            .filter(|kind| self.forget_versions(*kind, |record, _| record.body.is_none()))
            .collect()
    }

    /// Forgets the resource versions of objects of a kind, so that [`seen`](Index::seen) asks for each again. Returns false if there
    /// is none.
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

    /// Takes what the API server says of an object; `form` says how much of it that is.
    ///
    /// # Errors
    /// When it is no object that can be named. Nothing changes then.
    pub fn apply(
        &mut self,
        kind: KindId,
        object: &Object<'_>,
        projection: Projection,
        now: Timestamp,
    ) -> Result<Applied, Refusal> {
        if self.contents.settings.retention == Retention::Full {
            let mut text = Vec::new();
            extract::write_value(object.root(), &mut text);
            // What was parsed once is parsed again.
            if let Ok(document) = OwnedDocument::parse(text) {
                return self.apply_document(kind, document, projection, now);
            }
        }
        let new_record = match self.read(kind, object, projection, now)? {
            Some(new_record) => new_record,
            None => return Ok(Applied::Event),
        };
        Ok(self.put(kind, new_record, now))
    }

    /// Takes what the API server says of an object as [`apply`](Index::apply) does. With [`Retention::Full`] the document is kept as
    /// it is.
    ///
    /// # Errors
    /// When it is not an object that can be named. Nothing changes then.
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
            return Ok(self.put(kind, new_record, now));
        }
        let kept = match (object.group(), object.kind()) {
            ("", "Secret") => {
                let metadata = OwnedDocument::parse(new_record::metadata_of_secret(&object));
                metadata.ok().map(|metadata| Arc::new(Body::Document(metadata)))
            }
            _ => Some(Arc::clone(&body)),
        };
        Ok(self.put(kind, NewRecord { body: kept, ..new_record }, now))
    }

    /// Reads an object; `None` if it is an event, which is kept with what it is about.
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
        let reading =
            Reading { settings: &settings, extractor: &self.extractor, seed: self.contents.seed, is_kept };
        let verdict = self.judge(kind, object, now);
        new_record::read(object, projection, &reading, verdict, now).map(Some)
    }

    /// Judges an object by the default rules, in view of what is around it.
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

    /// Forgets an object that is gone. `false` if it was not there.
    pub fn remove(&mut self, kind: KindId, namespace: &str, name: &str, now: Timestamp) -> bool {
        let Some(resource) = self.contents.kinds.get(kind.0 as usize).map(Arc::clone) else { return false };
        if is_event(&resource) {
            return self.remove_event(namespace, name);
        }
        match self.contents.slot_of(&resource.group, &resource.kind, namespace, name) {
            Some(slot) => {
                self.take_out(slot, now);
                true
            }
            None => false,
        }
    }

    /// Makes all changes so far known: reassesses what they mean (see [`reassess`](Index::reassess)), tells subscribers, and
    /// gives a snapshot. Without any change the number of the snapshot is that of the last one.
    pub fn publish(&mut self, now: Timestamp) -> Snapshot {
        self.reassess(now);
        if let Some(batch) = self.take_batch() {
            self.contents.sequence = batch.sequence;
            self.subscribers.tell(&Arc::new(batch));
        }
        Snapshot(Arc::new(self.contents.clone()))
    }

    /// Tells of every change from now on. At most `bound` changes wait to be read; who is slower is told to begin
    /// again. The first notice names the snapshot to begin with: the next one that is published.
    pub fn subscribe(&mut self, bound: usize) -> Subscription {
        let next = if self.pending.is_empty() { 0 } else { 1 };
        self.subscribers.add(bound, self.contents.sequence + next)
    }

    /// How much is kept, for those who measure.
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

/// Returns true if a kind is among those of which bodies are kept.
fn keeps(kinds: &[GroupKind], group: &str, kind: &str) -> bool {
    kinds.iter().any(|own| own.group == group && (own.kind == kind || own.kind == "*"))
}

fn is_event(resource: &ApiResource) -> bool {
    resource.kind == "Event" && matches!(&*resource.group, "" | "events.k8s.io")
}

/// How many different things an index keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Objects.
    pub objects: usize,
    /// Keys and values of labels and annotations.
    pub texts: usize,
    /// Sets of labels, annotations and marks.
    pub sets: usize,
    /// Lists of owners.
    pub owners: usize,
    /// Verdicts, and what evidence made of them.
    pub verdicts: usize,
    /// Extracts.
    pub extracts: usize,
    /// Events.
    pub events: usize,
    /// Slots for objects, vacant ones among them.
    pub slots: usize,
}
