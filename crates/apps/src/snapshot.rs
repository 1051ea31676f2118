//! Objects in memory: a dump, or what a live cluster answered to a plan of reads.

mod aside;
mod batch;
mod errors;
mod followed;
mod indexes;
mod marks;
mod state;

use std::collections::btree_map::{Entry, Range};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use indexes::Indexes;
use jiff::{SignedDuration, Timestamp};
use marks::{ByBody, KindMarks, Mark};
use taffrail_object::json::OwnedDocument;
use taffrail_object::kinds::is_namespaced;
use taffrail_object::{AsObjectKey, GroupKind, Object, ObjectError, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::{Listing, Observed};

use crate::freshness::Freshness;
use crate::identity::ClusterId;
use crate::kinds::KindCatalog;
use crate::names;
use crate::objects::{Objects, Scope, ScopeError};
use crate::reading::Reading;
use crate::reads::{Read, Target, declares_apps, is_widened};
use crate::teachers;

pub use aside::Aside;
pub use batch::ChangeBatch;
use errors::Errors;
pub(crate) use indexes::{
    HAVE_PODS, Label, has_pods, is_budget, is_definition, is_pod, labels, leaves, wanted,
};

/// The reason of what the server refused.
pub(crate) const FORBIDDEN: &str = "Forbidden";

/// The reason of a read that a dump cannot answer: nobody made it when the dump was written.
pub const NOT_IN_DUMP: &str = "NotInDump";

/// How many malformed items of one answer are reported one by one.
const MOST_MALFORMED: usize = 50;

/// Longer than a name, a namespace, a kind or a group can be: of most kinds these have at most 253 bytes.
const LONGEST_NAME: usize = 1024;

const DISCOVERY_FAILED: &str = "DiscoveryFailed";

/// Why a document cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InsertError {
    /// It is no Kubernetes object.
    #[error("no Kubernetes object")]
    NotAnObject(#[source] ObjectError),
    /// It is another one than was asked for.
    #[error("an object that was not asked for")]
    NotAsked,
    /// Its names are longer than any that the API server takes.
    #[error("an object with a name of more than {LONGEST_NAME} bytes")]
    LongName,
    /// It has no `metadata.name`.
    #[error("an object without name")]
    NoName,
}

/// What became of a [`Read`].
#[derive(Debug)]
pub enum Answer {
    /// The objects, all of them; see [`Read::document`].
    Objects(Vec<OwnedDocument>),
    /// Not found: the server does not serve the kind in this version, or does not hold the object.
    NotFound,
    /// The server refused.
    Forbidden {
        /// What it said.
        message: String,
    },
    /// Any other failure.
    Failed {
        /// One word in CamelCase: `Timeout`, `InternalError`, …
        reason: String,
        /// For people.
        message: String,
    },
}

/// How a kind was listed, whatever came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Not at all, or in a version that is not served while another is.
    No,
    /// By a selector.
    Selected,
    /// As a whole.
    Done,
}

#[derive(Debug, Clone)]
struct Stored {
    document: OwnedDocument,
    projection: Projection,
    /// Whether it was there before, and differently.
    is_repeated: bool,
}

impl Stored {
    fn size(&self) -> u64 {
        length(&self.document)
    }

    /// Returns no more of it than its metadata.
    fn metadata(&self) -> Option<Stored> {
        let root = self.document.root();
        let members = ["apiVersion", "kind", "metadata"].into_iter().filter_map(|name| {
            let text = root.get(name)?.text()?;
            Some([b"\"", name.as_bytes(), b"\":", text].concat())
        });
        let text = [b"{", &*members.collect::<Vec<_>>().join(&b','), b"}"].concat();
        let document = OwnedDocument::parse(text).ok()?;
        Some(Stored { document, projection: Projection::Metadata, is_repeated: self.is_repeated })
    }

    fn observed<'a>(&'a self, key: &'a ObjectKey) -> Option<Observed<'a>> {
        let object = Object::new(self.document.root()).ok()?;
        Some(Observed { key: key.as_ref(), object, projection: self.projection })
    }
}

/// What is known when an object is not there and no read speaks of it.
#[derive(Debug)]
enum Rest {
    /// It is absent: a dump holds all objects.
    Absent,
    /// Nothing is known, for this reason.
    Unobserved(&'static str),
}

/// The objects of one cluster at one moment.
#[derive(Debug)]
pub struct Snapshot {
    name: String,
    id: Option<ClusterId>,
    /// Whether it is the cluster of a name, where that was found out.
    unverified: Option<String>,
    compared: HashMap<String, bool>,
    servers: Vec<String>,
    version: Option<String>,
    freshness: Freshness,
    stale_scopes: Vec<(Scope, Timestamp)>,
    dated: bool,
    clock_ahead: Option<SignedDuration>,
    reading: Option<Reading>,
    objects: BTreeMap<ObjectKey, Stored>,
    /// How long the texts of the objects are together.
    size: u64,
    catalog: Option<KindCatalog>,
    declared_scopes: HashMap<GroupKind, bool>,
    kinds: HashMap<GroupKind, KindMarks>,
    /// What became of reads of one object: nothing, or why they failed.
    unread: HashMap<ObjectKey, ByBody<Option<String>>>,
    rest: Rest,
    lost: Option<String>,
    errors: Errors,
    repeated: Vec<ObjectKey>,
    indexes: Indexes,
    /// Recorded from the moment on at which somebody asks.
    changes: Option<ChangeBatch>,
}

impl Snapshot {
    fn new(name: String, freshness: Freshness, rest: Rest) -> Snapshot {
        Snapshot {
            name,
            id: None,
            unverified: None,
            compared: HashMap::new(),
            servers: Vec::new(),
            version: None,
            freshness,
            stale_scopes: Vec::new(),
            dated: true,
            clock_ahead: None,
            reading: None,
            objects: BTreeMap::new(),
            size: 0,
            catalog: None,
            declared_scopes: HashMap::new(),
            kinds: HashMap::new(),
            unread: HashMap::new(),
            rest,
            lost: None,
            errors: Errors::default(),
            repeated: Vec::new(),
            indexes: Indexes::default(),
            changes: None,
        }
    }

    /// A dump: what it does not hold is not there.
    pub fn dump(name: impl Into<String>, observed_at: Timestamp) -> Snapshot {
        Snapshot::new(name.into(), Freshness::live(observed_at), Rest::Absent)
    }

    /// A live cluster of which nothing was read yet; [`crate::next_reads`] says what to read.
    pub fn live(name: impl Into<String>, observed_at: Timestamp) -> Snapshot {
        Snapshot::new(name.into(), Freshness::live(observed_at), Rest::Unobserved("it was not read"))
    }

    /// A cluster that did not answer.
    pub fn lost(name: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Snapshot {
        let mut snapshot =
            Snapshot::new(name.into(), Freshness::never(), Rest::Unobserved("it was not read"));
        let message = message.into();
        snapshot.lost = Some(message.clone());
        snapshot.report(ScopeError { scope: Scope::Cluster, reason: reason.into(), message });
        snapshot
    }

    /// Sets the name by which people ask for it.
    pub fn set_name(&mut self, name: impl Into<String>) {
        self.name = name.into();
        self.note_all();
    }

    /// Adds an address by which other clusters name this one.
    pub fn add_server(&mut self, server: impl Into<String>) {
        self.servers.push(server.into());
        self.note_all();
    }

    /// Says that anybody may have answered for its server, and why.
    pub fn set_unverified(&mut self, why: impl Into<String>) {
        self.unverified = Some(why.into());
        self.note_all();
    }

    /// Says whether it is the cluster `name`, which gives the same identity.
    pub fn set_same_as(&mut self, name: impl Into<String>, is_same: bool) {
        if self.compared.insert(name.into(), is_same) != Some(is_same) {
            self.note_all();
        }
    }

    /// Forgets whether it is the cluster `name`.
    pub fn forget_same_as(&mut self, name: &str) {
        if self.compared.remove(name).is_some() {
            self.note_all();
        }
    }

    /// Says that nobody knows when the objects were observed: the time that was given is a guess.
    pub fn set_undated(&mut self) {
        self.dated = false;
    }

    /// Sets how far the clock of the API server is ahead of the reader's; negative where it is behind.
    pub fn set_clock_ahead(&mut self, ahead: SignedDuration) {
        self.clock_ahead = Some(ahead);
    }

    /// Says how it is read.
    pub fn set_reading(&mut self, reading: Reading) {
        self.reading = Some(reading);
    }

    /// Sets the version of the API server.
    pub fn set_version(&mut self, version: impl Into<String>) {
        self.version = Some(version.into());
    }

    /// Sets what discovery said; groups that could not be asked are reported.
    pub fn set_kinds(&mut self, catalog: KindCatalog) {
        // Who may not list a kind is told so even where it does not exist.
        let refused = self.kinds.iter_mut().filter(|(kind, _)| !catalog.may_serve(kind));
        for (kind, marks) in refused {
            *marks = KindMarks::default();
            if let Some(changes) = &mut self.changes {
                changes.note_kind(kind);
            }
        }
        self.errors.retain(|error| match &error.scope {
            Scope::Kind { kind, .. } => error.reason != FORBIDDEN || catalog.may_serve(kind),
            _ => true,
        });
        // What discovery could not say before, it says again if it still cannot.
        self.errors.retain(|error| error.reason != DISCOVERY_FAILED);
        for (group, reason) in catalog.broken_groups() {
            let message = format!("whether {group} is served is not known: {reason}");
            let scope = Scope::Group(group.to_owned());
            self.errors.push(ScopeError { scope, reason: DISCOVERY_FAILED.to_owned(), message });
        }
        if self.catalog.as_ref() != Some(&catalog) {
            self.note_all();
        }
        self.note_errors();
        self.catalog = Some(catalog);
    }

    /// What discovery said, if it was asked.
    pub fn kinds(&self) -> Option<&KindCatalog> {
        self.catalog.as_ref()
    }

    /// Reports a failure that leaves what was read as it is.
    pub fn report(&mut self, error: ScopeError) {
        self.note_errors();
        self.errors.push(error);
    }

    /// Reports a failure that may be that of several reads: of two bodies, or of two selectors.
    fn report_once(&mut self, error: ScopeError) {
        self.note_errors();
        self.errors.push_once(error);
    }

    /// Reports a part of a dump that could not be read. What is missing may have been there, so nothing is
    /// known to be absent any more.
    pub fn report_unreadable(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.rest = Rest::Unobserved("parts of the dump could not be read");
        self.note_all();
        let scope = Scope::Input(place.into());
        self.report(ScopeError { scope, reason: "Unreadable".to_owned(), message: message.into() });
    }

    /// Inserts an object that came as the answer to a read.
    ///
    /// # Errors
    /// As [`Snapshot::insert`], and when it is another one than was asked for: a server may answer with anything.
    pub fn insert_asked(&mut self, read: &Read, document: OwnedDocument) -> Result<(), InsertError> {
        match is_answer_to(read, &document) {
            true => self.insert(document, read.projection),
            false => Err(InsertError::NotAsked),
        }
    }

    /// Keeps an object, which must say its `apiVersion` and `kind`. Of objects with one key the last counts,
    /// but metadata never replaces a whole object.
    ///
    /// # Errors
    /// When the document is no object with a name.
    pub fn insert(&mut self, document: OwnedDocument, projection: Projection) -> Result<(), InsertError> {
        let object = Object::new(document.root()).map_err(InsertError::NotAnObject)?;
        let key = ObjectKey::of(&object);
        if key.name.is_empty() {
            return Err(InsertError::NoName);
        }
        let ObjectKey { group, kind, namespace, name } = &key;
        if [group, kind, namespace, name].iter().any(|part| part.len() > LONGEST_NAME) {
            // The API takes some names of any length. No declaration can name such an object, so nothing is lost with it, and
            // whoever made it makes nothing else unknown.
            if names::has_loose_names(group, kind) {
                return Ok(());
            }
            return Err(InsertError::LongName);
        }
        if key.group.is_empty() && key.kind == "Namespace" && key.name == "kube-system" {
            let uid = object.text(&["metadata", "uid"]);
            let id = (!uid.is_empty()).then(|| ClusterId(uid.into_owned()));
            if id != self.id {
                self.id = id;
                self.note_all();
            }
        }
        if key.group == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition" {
            let kind = GroupKind::new(
                object.text(&["spec", "group"]).into_owned(),
                object.text(&["spec", "names", "kind"]).into_owned(),
            );
            match &*object.text(&["spec", "scope"]) {
                "Namespaced" => drop(self.declared_scopes.insert(kind, true)),
                "Cluster" => drop(self.declared_scopes.insert(kind, false)),
                _ => {}
            }
        }
        let size = length(&document);
        let mut stored = Stored { document, projection, is_repeated: false };
        match self.objects.entry(key) {
            Entry::Vacant(place) => {
                if self.indexes.are_built() {
                    self.indexes.replace(None, stored.observed(place.key()).as_ref());
                }
                if let Some(changes) = &mut self.changes {
                    changes.note(place.key(), None);
                }
                place.insert(stored);
            }
            Entry::Occupied(mut place) => {
                let known = Some(place.get()).filter(|stored| stored.projection == Projection::Full);
                if projection != Projection::Full && known.is_some() {
                    return Ok(());
                }
                // A live cluster answers the same question twice with what it holds by then.
                let differs = matches!(self.rest, Rest::Absent)
                    && known.is_some_and(|known| known.document.text() != stored.document.text());
                let was_repeated = known.is_some_and(|known| known.is_repeated);
                if differs && !was_repeated {
                    self.repeated.push(place.key().clone());
                }
                stored.is_repeated = differs || was_repeated;
                if self.indexes.are_built() {
                    let old = place.get().observed(place.key());
                    self.indexes.replace(old.as_ref(), stored.observed(place.key()).as_ref());
                }
                let old = place.insert(stored);
                self.size -= old.size();
                if let Some(changes) = &mut self.changes {
                    changes.note(place.key(), Some(old));
                }
            }
        }
        self.size += size;
        Ok(())
    }

    /// Takes away an object that is no longer there.
    pub fn remove(&mut self, key: &ObjectKey) {
        if let Some((key, old)) = self.take(key)
            && let Some(changes) = &mut self.changes
        {
            changes.note(&key, Some(old));
        }
    }

    /// How long the texts of its objects are together, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Forgets all objects but those that declare apps: nothing is known any more of the others, for this reason.
    pub fn keep_declarations(&mut self, why: &str) {
        let is_kept = |kind: &GroupKind| declares_apps(kind) && kind.kind != "Secret";
        self.objects.retain(|key, _| is_kept(&key.group_kind()));
        self.size = self.objects.values().map(Stored::size).sum();
        for (_, marks) in self.kinds.iter_mut().filter(|(kind, _)| !is_kept(kind)) {
            marks.fail(why);
        }
        for (key, read) in &mut self.unread {
            if !is_kept(&key.group_kind()) {
                read.values_mut().for_each(|failure| *failure = Some(why.to_owned()));
            }
        }
        self.errors.clear();
        self.repeated.clear();
        self.indexes = Indexes::default();
        self.note_all();
    }

    /// Sets the scopes that are known less well than the rest, and when they were observed last.
    pub fn set_stale_scopes(&mut self, scopes: Vec<(Scope, Timestamp)>) {
        self.stale_scopes = scopes;
    }

    /// Says anew when the objects were observed; that the cluster did not answer is forgotten.
    pub fn set_freshness(&mut self, freshness: Freshness) {
        self.freshness = freshness;
        if self.lost.take().is_some() {
            self.note_all();
            self.retract(&Scope::Cluster);
        }
    }

    /// Takes back what was reported of a scope: it is known better now.
    pub fn retract(&mut self, scope: &Scope) {
        if self.errors.retract(scope, None) {
            self.note_errors();
        }
    }

    /// Takes back what was reported of what a read is of, but why the same read with the other body fails: that is as it was.
    pub fn retract_read(&mut self, read: &Read) {
        let scope = read.scope();
        let beside = match &scope {
            Scope::Object(key) => self.unread.get(key).and_then(|it| it.beside(read.projection)?.as_deref()),
            _ => {
                let marks = self.kinds.get(&GroupKind::new(&*read.group, &*read.kind));
                marks.and_then(|marks| marks.failure_beside(read))
            }
        };
        if self.errors.retract(&scope, beside) {
            self.note_errors();
        }
    }

    /// Forgets what a read of one object said: it is to be read again, if it is wanted at all.
    pub fn forget(&mut self, key: &ObjectKey) {
        if self.unread.remove(key).is_some() {
            self.note_sought(key);
        }
        self.retract(&Scope::Object(key.clone()));
    }

    /// Takes in what became of `read`.
    pub fn answer(&mut self, read: &Read, answer: Answer) {
        let scope = read.scope();
        // Nobody asked which cluster this is: not being let know it leaves nothing out.
        let is_asked = scope != Scope::Object(ObjectKey::new("", "Namespace", "", "kube-system"));
        let marks = self.kinds.get(&GroupKind::new(&*read.group, &*read.kind));
        // Nor to know an Argo CD: its scripts are then heard less, and that is told where it matters.
        let is_to_know = match &read.target {
            Target::List { labels, fields } => {
                let kind = GroupKind::new(&*read.group, &*read.kind);
                teachers::is_to_know(&kind, labels.as_deref(), fields.as_deref())
            }
            Target::Object(_) => false,
        };
        let is_asked = is_asked && !is_to_know;
        let is_widened = is_widened(read, marks.is_some_and(KindMarks::is_listed_in_some));
        let (message, is_refused) = match answer {
            Answer::Objects(documents) => {
                let mut malformed = 0;
                for document in documents {
                    let Err(error) = self.insert_asked(read, document) else { continue };
                    malformed += 1;
                    if malformed <= MOST_MALFORMED {
                        let message = format!("{scope} holds {error}");
                        let reason = "Malformed".to_owned();
                        self.report(ScopeError { scope: scope.clone(), reason, message });
                    }
                }
                let more = malformed.saturating_sub(MOST_MALFORMED);
                if more > 0 {
                    let message = format!("{scope} holds {more} more items that are none of its objects");
                    self.report(ScopeError { scope, reason: "Malformed".to_owned(), message });
                }
                self.mark(read, Mark::Listed, None);
                return;
            }
            Answer::NotFound => {
                // It was listed, and is gone by now.
                if let Scope::Object(key) = &scope {
                    self.remove(key);
                }
                self.mark(read, Mark::NotServed { version: read.version.clone() }, None);
                return;
            }
            Answer::Forbidden { message } => {
                let kind = GroupKind::new(&*read.group, &*read.kind);
                if self.catalog.as_ref().is_some_and(|catalog| !catalog.may_serve(&kind)) {
                    self.mark(read, Mark::NotServed { version: read.version.clone() }, None);
                    return;
                }
                if is_asked && !is_widened {
                    self.report_once(ScopeError {
                        scope,
                        reason: FORBIDDEN.to_owned(),
                        message: message.clone(),
                    });
                }
                (message, true)
            }
            Answer::Failed { reason, message } => {
                // A dump of one namespace lacks what its writer would not have been let read.
                if is_asked && !(is_widened && reason == NOT_IN_DUMP) {
                    self.report_once(ScopeError { scope, reason, message: message.clone() });
                }
                (message, false)
            }
        };
        self.mark(read, Mark::Failed { message: message.clone(), is_refused }, Some(message));
    }

    fn mark(&mut self, read: &Read, mark: Mark, failure: Option<String>) {
        match &read.target {
            Target::Object(name) => {
                let namespace = read.namespace.clone().unwrap_or_default();
                let key = ObjectKey::new(&*read.group, &*read.kind, namespace, &**name);
                self.note_sought(&key);
                self.unread.entry(key).or_default().set(read.projection, failure);
            }
            Target::List { .. } => {
                let kind = GroupKind::new(&*read.group, &*read.kind);
                self.note_kind(&kind);
                self.kinds.entry(kind).or_default().take(read, mark);
            }
        }
    }

    /// How at least so much of the objects of a kind was listed in a namespace (`None`: in all).
    pub(crate) fn listed(&self, kind: &GroupKind, namespace: Option<&str>, wanted: Projection) -> Listed {
        match self.kinds.get(kind).and_then(|marks| marks.find(namespace, wanted)) {
            None => Listed::No,
            Some(Mark::Selected) => Listed::Selected,
            Some(Mark::Listed | Mark::Failed { .. }) => Listed::Done,
            Some(Mark::NotServed { version }) => {
                match self.catalog.as_ref().and_then(|catalog| catalog.get(kind)) {
                    Some(served) if served.version != *version => Listed::No,
                    _ => Listed::Done,
                }
            }
        }
    }

    /// Whether just this part of a kind was listed, with at least so much of each object, whatever came of it.
    pub(crate) fn was_selected(
        &self,
        kind: &GroupKind,
        namespace: Option<&str>,
        target: &Target,
        wanted: Projection,
    ) -> bool {
        self.kinds.get(kind).is_some_and(|marks| marks.was_selected(namespace, target, wanted))
    }

    /// Whether another part of a kind than this one was listed, whatever came of it.
    pub(crate) fn has_selection_but(&self, kind: &GroupKind, target: &Target) -> bool {
        self.kinds.get(kind).is_some_and(|marks| marks.has_selection_but(target))
    }

    /// Whether the cluster did not answer at all.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Whether a read of at least so much of this one object was answered, or one that says that there is no more to read.
    pub(crate) fn was_read(&self, key: &ObjectKey, wanted: Projection) -> bool {
        let Some(read) = self.unread.get(key) else { return false };
        read.at_least(wanted).next().is_some()
            || read.metadata().is_some_and(|failure| failure.is_some() || !self.objects.contains_key(key))
    }

    /// Returns the objects from a key on, in the order of their keys.
    fn from(&self, key: ObjectKeyRef<'_>) -> Range<'_, ObjectKey, Stored> {
        self.objects
            .range::<dyn AsObjectKey, _>((Bound::Included(&key as &dyn AsObjectKey), Bound::Unbounded))
    }

    fn range<'a>(
        &'a self,
        group: &str,
        kind: &str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Stored)> + use<'a> {
        let after = self.from(ObjectKeyRef::new(group, kind, "", ""));
        // All of a kind stand together, so the first one names the rest.
        let first = after.clone().next().map(|(key, _)| key);
        let first = first.filter(|key| key.group == group && key.kind == kind);
        after.take_while(move |(key, _)| {
            first.is_some_and(|first| key.kind == first.kind && key.group == first.group)
        })
    }
}

fn length(document: &OwnedDocument) -> u64 {
    document.text().len() as u64
}

/// Whether a document is among what was asked for: a server may answer with anything.
fn is_answer_to(read: &Read, document: &OwnedDocument) -> bool {
    let Ok(object) = Object::new(document.root()) else { return true };
    let is_kind = object.group() == read.group && object.kind() == read.kind;
    let is_named = match &read.target {
        Target::Object(name) => object.name() == **name,
        Target::List { .. } => true,
    };
    is_kind && is_named && read.namespace.as_ref().is_none_or(|namespace| object.namespace() == **namespace)
}

impl Objects for Snapshot {
    fn name(&self) -> &str {
        &self.name
    }

    fn id(&self) -> Option<&ClusterId> {
        self.id.as_ref()
    }

    fn unverified(&self) -> Option<&str> {
        self.unverified.as_deref()
    }

    fn is_same_as(&self, name: &str) -> Option<bool> {
        self.compared.get(name).copied()
    }

    fn servers(&self) -> &[String] {
        &self.servers
    }

    fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    fn freshness(&self) -> Freshness {
        self.freshness
    }

    fn stale_scopes(&self) -> &[(Scope, Timestamp)] {
        &self.stale_scopes
    }

    fn all(&self) -> Listing<'_> {
        Box::new(self.objects.iter().filter_map(|(key, stored)| stored.observed(key)))
    }

    fn is_dump(&self) -> bool {
        matches!(self.rest, Rest::Absent)
    }

    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
        let key = GroupKind::new(group, kind);
        is_namespaced(group, kind)
            .or_else(|| Some(self.catalog.as_ref()?.get(&key)?.namespaced))
            .or_else(|| self.declared_scopes.get(&key).copied())
            .or_else(|| self.range(group, kind).next().map(|(key, _)| !key.namespace.is_empty()))
    }

    fn is_served(&self, group: &str, kind: &str) -> Option<bool> {
        Some(self.catalog.as_ref()?.may_serve(&GroupKind::new(group, kind)))
    }

    fn is_listable(&self, group: &str, kind: &str) -> Option<bool> {
        Some(self.catalog.as_ref()?.get(&GroupKind::new(group, kind))?.is_listable())
    }

    fn repeated(&self) -> &[ObjectKey] {
        &self.repeated
    }

    fn errors(&self) -> &[ScopeError] {
        &self.errors
    }

    fn is_dated(&self) -> bool {
        self.dated
    }

    fn clock_ahead(&self) -> Option<SignedDuration> {
        self.clock_ahead
    }

    fn reading(&self) -> Option<&Reading> {
        self.reading.as_ref()
    }
}
