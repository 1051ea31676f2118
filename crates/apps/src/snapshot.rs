//! Objects in memory: a dump, or the answers of a live cluster to a plan of reads.

mod aside;
mod batch;
mod followed;
mod indexes;
mod marks;
mod state;

use std::collections::btree_map::{Entry, Range};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use indexes::Indexes;
use jiff::{SignedDuration, Timestamp};
use marks::{ByBody, KindMarks, ListOutcome};
use taffrail_object::json::{DocumentBuilder, OwnedDocument};
use taffrail_object::kinds::{is_built_in_namespaced, is_namespaced};
use taffrail_object::{
    AsObjectKey, GroupKind, Object, ObjectError, ObjectKey, ObjectKeyRef, Projection, names,
};
use taffrail_status::{Listing, Observed};

use crate::cluster_facts::ClusterFacts;
use crate::delivery::argo::installs;
use crate::freshness::Freshness;
use crate::identity::ClusterId;
use crate::kinds::KindCatalog;
use crate::objects::Objects;
use crate::reading::ReadStats;
use crate::reads::declaring::{declares_apps, is_widened};
use crate::reads::read::{Read, Target};
use crate::scope::{Scope, ScopeError, is_silence};

pub use aside::Aside;
pub use batch::ChangeBatch;
pub(crate) use indexes::{
    HAVE_PODS, Label, has_pods, is_budget, is_definition, is_pod, labels, leaves, wanted,
};

/// The reason for reads to which the server denied access.
pub(crate) const FORBIDDEN: &str = "Forbidden";

/// The reason of errors for reads that a dump cannot answer, because they were not made when it was written.
pub const NOT_IN_DUMP: &str = "NotInDump";

/// The maximum number of malformed items of one answer that are reported one by one; one more error counts the others.
const MOST_MALFORMED: usize = 50;

/// The maximum length of a name, namespace, kind or group, in bytes; [`Snapshot::insert`] stores no object with a
/// longer one. For most kinds the API allows at most 253.
const LONGEST_NAME: usize = 1024;

const DISCOVERY_FAILED: &str = "DiscoveryFailed";

/// The reason why a document cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InsertError {
    /// The document is not a Kubernetes object.
    #[error("the item is not a Kubernetes object")]
    NotAnObject(#[source] ObjectError),
    /// The document is an object other than the one that the read requested.
    #[error("the item is not one of the objects that were requested, so it is not stored")]
    NotAsked,
    /// A part of the object's key is longer than `LONGEST_NAME` bytes.
    #[error(
        "the name, namespace, kind or group of the item is longer than {LONGEST_NAME} bytes, so it is not stored"
    )]
    LongName,
    /// The object has no `metadata.name`.
    #[error("the item has no metadata.name, so it is not stored")]
    NoName,
}

/// The result of a [`Read`].
#[derive(Debug)]
pub enum Answer {
    /// All objects that the read returned, as documents made by [`Read::document`].
    Objects(Vec<OwnedDocument>),
    /// The server does not serve the kind in this version, or does not have the object.
    NotFound,
    /// The server denied access.
    Forbidden {
        /// The message of the server.
        message: String,
    },
    /// The read failed for another reason than denied access.
    Failed {
        /// The reason in one CamelCase word: `Timeout`, `InternalError`, …
        reason: String,
        /// The message, for people.
        message: String,
    },
}

/// The extent to which the objects of a kind were listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    /// The kind was not listed, or only in a version that the server does not serve although it serves another one.
    No,
    /// Lists with a selector succeeded, and no list of all objects of the kind was made.
    Selected,
    /// A list of all objects of the kind was made, or one with or without a selector failed or found that the kind is
    /// not served.
    Done,
}

/// An object of a snapshot.
#[derive(Debug, Clone)]
struct Stored {
    document: OwnedDocument,
    projection: Projection,
    /// True if an earlier copy of the object in the dump had different contents.
    is_repeated: bool,
}

impl Stored {
    fn size(&self) -> u64 {
        length(&self.document)
    }

    /// Returns a copy reduced to the object's metadata; `None` if the copy cannot be built.
    fn metadata(&self) -> Option<Stored> {
        let root = self.document.root();
        let mut copy = DocumentBuilder::new(0);
        for name in ["apiVersion", "kind", "metadata"] {
            root.get(name).into_iter().for_each(|value| copy.value(name, value));
        }
        let document = copy.finish().ok()?;
        Some(Stored { document, projection: Projection::Metadata, is_repeated: self.is_repeated })
    }

    fn observed<'a>(&'a self, key: &'a ObjectKey) -> Option<Observed<'a>> {
        let object = Object::new(self.document.root()).ok()?;
        Some(Observed { key: key.as_ref(), object, projection: self.projection })
    }
}

/// The state of an object that is not in the snapshot and that no read would have returned.
#[derive(Debug, Clone)]
enum NotInSnapshot {
    /// The object counts as absent, because a dump contains all objects.
    Absent,
    /// The object is unknown; holds the reason.
    Unobserved(&'static str),
}

/// The objects of one cluster at one moment, and the results of the reads that led to them.
#[derive(Debug)]
pub struct Snapshot {
    facts: ClusterFacts,
    objects: BTreeMap<Arc<ObjectKey>, Stored>,
    /// The total length of the JSON texts of the objects, in bytes.
    size: u64,
    declared_scopes: HashMap<GroupKind, bool>,
    kinds: HashMap<GroupKind, KindMarks>,
    /// The results of reads of single objects by name: the message of the failure; or `None` if the read succeeded, or
    /// found that the object does not exist.
    single_reads: HashMap<ObjectKey, ByBody<Option<String>>>,
    rest: NotInSnapshot,
    lost: Option<String>,
    indexes: Indexes,
    /// The changes since the last call of [`Snapshot::take_changes`]; `None` before the first call, until which
    /// changes are not recorded.
    changes: Option<ChangeBatch>,
}

impl Snapshot {
    fn new(name: String, freshness: Freshness, rest: NotInSnapshot) -> Snapshot {
        let facts = ClusterFacts::new(name, freshness, matches!(rest, NotInSnapshot::Absent));
        Snapshot {
            facts,
            objects: BTreeMap::new(),
            size: 0,
            declared_scopes: HashMap::new(),
            kinds: HashMap::new(),
            single_reads: HashMap::new(),
            rest,
            lost: None,
            indexes: Indexes::default(),
            changes: None,
        }
    }

    /// Creates the cluster called `name` of which another process reports, with all objects unobserved; `why` is the
    /// reason for that.
    pub fn reported(name: impl Into<String>, freshness: Freshness, why: &'static str) -> Snapshot {
        Snapshot::new(name.into(), freshness, NotInSnapshot::Unobserved(why))
    }

    /// Returns a copy of the cluster without its objects, all of which then count as unobserved: with its name,
    /// identity and freshness, and with `errors` in place of those of reading it.
    #[must_use]
    pub fn without_objects(&self, errors: impl IntoIterator<Item = ScopeError>) -> Snapshot {
        let ClusterFacts {
            name,
            id,
            unverified,
            compared,
            servers,
            version,
            labels,
            freshness,
            is_light,
            ..
        } = &self.facts;
        let rest = NotInSnapshot::Unobserved("the cluster was not read for this answer");
        let mut other = Snapshot::new(name.clone(), *freshness, rest);
        other.lost.clone_from(&self.lost);
        other.facts.id.clone_from(id);
        other.facts.unverified.clone_from(unverified);
        other.facts.compared.clone_from(compared);
        other.facts.servers.clone_from(servers);
        other.facts.version.clone_from(version);
        other.facts.labels.clone_from(labels);
        other.facts.is_light = *is_light;
        errors.into_iter().for_each(|error| other.facts.errors.push(error));
        other
    }

    /// Returns a copy of the snapshot that has no indexes and records no changes yet.
    #[must_use]
    pub fn copied(&self) -> Snapshot {
        Snapshot {
            facts: self.facts.clone(),
            objects: self.objects.clone(),
            size: self.size,
            declared_scopes: self.declared_scopes.clone(),
            kinds: self.kinds.clone(),
            single_reads: self.single_reads.clone(),
            rest: self.rest.clone(),
            lost: self.lost.clone(),
            indexes: Indexes::default(),
            changes: None,
        }
    }

    /// Makes an empty dump called `name`, observed at `observed_at`; an object that is not inserted counts as absent.
    pub fn dump(name: impl Into<String>, observed_at: Timestamp) -> Snapshot {
        Snapshot::new(name.into(), Freshness::live(observed_at), NotInSnapshot::Absent)
    }

    /// Makes a live cluster called `name`, observed at `observed_at`, of which nothing was read yet;
    /// [`crate::plan_reads`] plans the reads.
    pub fn live(name: impl Into<String>, observed_at: Timestamp) -> Snapshot {
        Snapshot::new(
            name.into(),
            Freshness::live(observed_at),
            NotInSnapshot::Unobserved("the object was not read"),
        )
    }

    /// Makes a cluster that did not answer or could not be read, for `reason` (one word) and with `message` for people.
    pub fn lost(name: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Snapshot {
        let mut snapshot = Snapshot::new(
            name.into(),
            Freshness::never(),
            NotInSnapshot::Unobserved("the object was not read"),
        );
        let error = ScopeError { scope: Scope::Cluster, reason: reason.into(), message: message.into() };
        // Each of its objects says so; why is told once, with the cluster.
        let how = if is_silence(&error) { "does not answer" } else { "could not be read" };
        snapshot.lost = Some(format!("its cluster {how}"));
        snapshot.report(error);
        snapshot
    }

    /// Sets the name by which the user calls the cluster.
    pub fn set_name(&mut self, name: impl Into<String>) {
        self.facts.name = name.into();
        self.note_all();
    }

    /// Adds a server address by which declarations in other clusters name this one.
    pub fn add_server(&mut self, server: impl Into<String>) {
        self.facts.servers.push(server.into());
        self.note_all();
    }

    /// Records the reason why the server was not verified, so that any host may have answered.
    pub fn set_unverified(&mut self, why: impl Into<String>) {
        self.facts.unverified = Some(why.into());
        self.note_all();
    }

    /// Records if this cluster was proved to be the same as the cluster `name`, which reports the same identity.
    pub fn set_same_as(&mut self, name: impl Into<String>, is_same: bool) {
        if self.facts.compared.insert(name.into(), is_same) != Some(is_same) {
            self.note_all();
        }
    }

    /// Removes the record of [`Snapshot::set_same_as`] about the cluster `name`.
    pub fn forget_same_as(&mut self, name: &str) {
        if self.facts.compared.remove(name).is_some() {
            self.note_all();
        }
    }

    /// Records that the time of observation is only a guess, because the dump does not state it.
    pub fn set_undated(&mut self) {
        self.facts.is_dated = false;
    }

    /// Sets the time by which the clock of the API server is ahead of the reader's; negative if it is behind.
    pub fn set_clock_ahead(&mut self, ahead: SignedDuration) {
        self.facts.clock_ahead = Some(ahead);
    }

    /// Sets the statistics of the requests and watches of this cluster.
    pub fn set_reading(&mut self, reading: ReadStats) {
        self.facts.reading = Some(reading);
    }

    /// Sets the version of the API server.
    pub fn set_version(&mut self, version: impl Into<String>) {
        self.facts.version = Some(version.into());
    }

    /// Sets if the cluster is read lightly: only what declares apps, by [`ReadQuery::declaring_only`].
    ///
    /// [`ReadQuery::declaring_only`]: crate::ReadQuery::declaring_only
    pub fn set_light(&mut self, is_light: bool) {
        self.facts.is_light = is_light;
    }

    /// Sets the labels by which users select the cluster.
    pub fn set_labels(&mut self, labels: BTreeMap<String, String>) {
        self.facts.labels = labels;
    }

    /// Sets the kinds that the API server serves. Adds the groups whose discovery failed to the errors, and removes the
    /// refusals to list kinds that the server does not serve, with all results of such lists.
    pub fn set_kinds(&mut self, catalog: KindCatalog) {
        // A server denies access to a kind even if it does not exist.
        let refused = self.kinds.iter_mut().filter(|(kind, _)| !catalog.may_serve(kind));
        for (kind, marks) in refused {
            *marks = KindMarks::default();
            if let Some(changes) = &mut self.changes {
                changes.note_kind(kind);
            }
        }
        self.facts.errors.retain(|error| match &error.scope {
            Scope::Kind { kind, .. } => error.reason != FORBIDDEN || catalog.may_serve(kind),
            _ => true,
        });
        // If discovery still fails for a group, it is reported again below.
        self.facts.errors.retain(|error| error.reason != DISCOVERY_FAILED);
        for (group, reason) in catalog.broken_groups() {
            let message = format!("cannot tell whether the API group {group} is served: {reason}");
            let scope = Scope::Group(group.to_owned());
            self.facts.errors.push(ScopeError { scope, reason: DISCOVERY_FAILED.to_owned(), message });
        }
        if self.facts.catalog.as_ref() != Some(&catalog) {
            self.note_all();
        }
        self.note_errors();
        self.facts.catalog = Some(catalog);
    }

    /// Adds a failure to the errors of the cluster; the objects stay.
    pub fn report(&mut self, error: ScopeError) {
        self.note_errors();
        self.facts.errors.push(error);
    }

    /// Adds a failure to the errors unless an equal one is there: several reads may share it, such as those
    /// of two projections.
    fn report_once(&mut self, error: ScopeError) {
        self.note_errors();
        self.facts.errors.push_once(error);
    }

    /// Adds an error about a part of a dump, `place`, that could not be read.
    ///
    /// Missing objects may have been in that part, so from then on they count as unobserved, not as absent.
    pub fn report_unreadable(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.rest = NotInSnapshot::Unobserved("parts of the dump could not be read");
        self.facts.is_dump = false;
        self.note_all();
        let scope = Scope::Input(place.into());
        self.report(ScopeError { scope, reason: "Unreadable".to_owned(), message: message.into() });
    }

    /// Inserts an object from the answer to `read`.
    ///
    /// # Errors
    /// Fails like [`Snapshot::insert`], and if the object is not one that the read requested.
    pub fn insert_asked(&mut self, read: &Read, document: OwnedDocument) -> Result<(), InsertError> {
        match is_answer_to(read, &document) {
            true => self.insert(document, read.projection),
            false => Err(InsertError::NotAsked),
        }
    }

    /// Inserts an object, which must contain its `apiVersion` and `kind`.
    ///
    /// The last of several objects with one key replaces the others, but metadata never replaces a whole
    /// object.
    ///
    /// # Errors
    ///
    /// When the document is not an object with a name, or its group, kind, namespace or name is longer than
    /// `LONGEST_NAME` bytes. An object of a kind whose names may have any length is then left out without an error.
    pub fn insert(&mut self, document: OwnedDocument, projection: Projection) -> Result<(), InsertError> {
        let object = Object::new(document.root()).map_err(InsertError::NotAnObject)?;
        let key = ObjectKey::of(&object);
        if key.name.is_empty() {
            return Err(InsertError::NoName);
        }
        let ObjectKey { group, kind, namespace, name } = &key;
        if [group, kind, namespace, name].iter().any(|part| part.len() > LONGEST_NAME) {
            // The API accepts some names of any length. No declaration can name such an object, so it may be
            // left out, and its author must not make other objects unknown.
            if names::has_loose_names(group, kind) {
                return Ok(());
            }
            return Err(InsertError::LongName);
        }
        if key.group.is_empty() && key.kind == "Namespace" && key.name == "kube-system" {
            let uid = object.text(&["metadata", "uid"]);
            let id = (!uid.is_empty()).then(|| ClusterId(uid.into_owned()));
            if id != self.facts.id {
                self.facts.id = id;
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
        match self.objects.entry(Arc::new(key)) {
            Entry::Vacant(place) => {
                self.indexes.replace(place.key(), None, Some(&stored));
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
                // A live cluster may answer the same read differently later.
                let differs = matches!(self.rest, NotInSnapshot::Absent)
                    && known.is_some_and(|known| known.document.text() != stored.document.text());
                let was_repeated = known.is_some_and(|known| known.is_repeated);
                if differs && !was_repeated {
                    self.facts.repeated.push(ObjectKey::clone(place.key()));
                }
                stored.is_repeated = differs || was_repeated;
                // A list that is read again brings mostly what is there.
                let own = place.get();
                if own.is_repeated == stored.is_repeated
                    && own.projection == stored.projection
                    && own.document.text() == stored.document.text()
                {
                    return Ok(());
                }
                self.indexes.replace(place.key(), Some(place.get()), Some(&stored));
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

    /// Removes the object `key`, which was deleted.
    pub fn remove(&mut self, key: &ObjectKey) {
        if let Some((key, old)) = self.take(key)
            && let Some(changes) = &mut self.changes
        {
            changes.note(&key, Some(old));
        }
    }

    /// Returns the total length of the JSON texts of all objects, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns true if the cluster has a kind, as far as is known: it is built in, the server or a definition names it, or
    /// objects of it were read.
    pub fn has_kind(&self, group: &str, kind: &str) -> bool {
        is_built_in_namespaced(group, kind).is_some()
            || self.facts.served(group, kind).is_some()
            || self.declared_scopes.contains_key(&GroupKind::new(group, kind))
            || self.range(group, kind).next().is_some()
    }

    /// Returns the number of objects.
    pub fn number(&self) -> u64 {
        self.objects.len() as u64
    }

    /// Removes all objects except those that declare apps (Helm's Secrets are removed too), and all errors. The removed
    /// objects then count as unobserved, for the reason `why`.
    pub fn keep_declarations(&mut self, why: &str) {
        let is_kept = |kind: &GroupKind| declares_apps(kind) && kind.kind != "Secret";
        self.objects.retain(|key, _| is_kept(&key.group_kind()));
        self.size = self.objects.values().map(Stored::size).sum();
        for (_, marks) in self.kinds.iter_mut().filter(|(kind, _)| !is_kept(kind)) {
            marks.fail(why);
        }
        for (key, read) in &mut self.single_reads {
            if !is_kept(&key.group_kind()) {
                read.values_mut().for_each(|failure| *failure = Some(why.to_owned()));
            }
        }
        self.facts.errors.clear();
        self.facts.repeated.clear();
        self.indexes = Indexes::default();
        self.note_all();
    }

    /// Sets the scopes that are less fresh than the rest, each with the time of its last observation.
    pub fn set_stale_scopes(&mut self, scopes: Vec<(Scope, Timestamp)>) {
        self.facts.stale_scopes = scopes;
    }

    /// Sets the freshness of the cluster. A cluster that had not answered then counts as having answered, and its
    /// errors about the whole cluster are removed.
    pub fn set_freshness(&mut self, freshness: Freshness) {
        self.facts.freshness = freshness;
        if self.lost.take().is_some() {
            self.note_all();
            self.retract(&Scope::Cluster);
        }
    }

    /// Removes the errors of a scope, because its state is known again.
    pub fn retract(&mut self, scope: &Scope) {
        if self.facts.errors.retract(scope, None) {
            self.note_errors();
        }
    }

    /// Removes an error, and no other one of its scope.
    pub fn retract_error(&mut self, error: &ScopeError) {
        self.facts.errors.retain(|known| known != error);
        self.note_errors();
    }

    /// Removes the errors of a read's scope, unless the same read in the other projection (whole or metadata) still
    /// fails with them.
    pub fn retract_read(&mut self, read: &Read) {
        let scope = read.scope();
        let beside = match &scope {
            Scope::Object(key) => {
                self.single_reads.get(key).and_then(|it| it.beside(read.projection)?.as_deref())
            }
            _ => {
                let marks = self.kinds.get(&GroupKind::new(&*read.group, &*read.kind));
                marks.and_then(|marks| marks.failure_beside(read))
            }
        };
        if self.facts.errors.retract(&scope, beside) {
            self.note_errors();
        }
    }

    /// Sets the names of the other clusters for whose apps alone the scope of `read` is read, so that those clusters
    /// report a failure to read it; an empty list if the cluster needs the scope itself.
    pub fn set_homes(&mut self, read: &Read, homes: impl IntoIterator<Item = String>) {
        let (scope, homes) = (read.scope(), homes.into_iter().collect::<BTreeSet<String>>());
        let before = match homes.is_empty() {
            true => self.facts.foreign_scopes.remove(&scope),
            false => self.facts.foreign_scopes.insert(scope.clone(), homes.clone()),
        };
        if before.unwrap_or_default() != homes && self.facts.errors.has(&scope) {
            self.note_errors();
        }
    }

    /// Removes the result of reading the single object `key` and the errors about it, so that it is read again if it is
    /// needed; the stored object stays.
    pub fn forget(&mut self, key: &ObjectKey) {
        if self.single_reads.remove(key).is_some() {
            self.note_sought(key);
        }
        let scope = Scope::Object(key.clone());
        self.retract(&scope);
        self.facts.foreign_scopes.remove(&scope);
    }

    /// Records the answer to `read`: inserts its objects, removes an object that was not found, or notes the failure. A
    /// failed read of the cluster's identity or of what shows an Argo CD is not added to the errors, nor a denied one
    /// of a kind that is not served, of all nodes, or that goes beyond the namespace of the query.
    pub fn answer(&mut self, read: &Read, answer: Answer) {
        let scope = read.scope();
        // The identity of the cluster was not requested by the user: without access to it nothing is missing.
        let is_asked = scope != Scope::Object(ObjectKey::new("", "Namespace", "", "kube-system"));
        let marks = self.kinds.get(&GroupKind::new(&*read.group, &*read.kind));
        // The same holds for reads that recognise an Argo CD: its scripts then get less trust, which is
        // reported where it matters.
        let is_to_know = match &read.target {
            Target::List { labels, fields } => {
                let kind = GroupKind::new(&*read.group, &*read.kind);
                installs::is_to_know(&kind, labels.as_deref(), fields.as_deref())
            }
            Target::Object(_) => false,
        };
        let is_asked = is_asked && !is_to_know;
        let is_extra =
            read.is_of_nodes() || is_widened(read, marks.is_some_and(KindMarks::is_listed_in_some));
        let (message, is_refused) = match answer {
            Answer::Objects(documents) => {
                let mut malformed = 0;
                for document in documents {
                    let Err(error) = self.insert_asked(read, document) else { continue };
                    malformed += 1;
                    if malformed <= MOST_MALFORMED {
                        let message = format!("an item of {scope} was left out: {error}");
                        let reason = "Malformed".to_owned();
                        self.report(ScopeError { scope: scope.clone(), reason, message });
                    }
                }
                let more = malformed.saturating_sub(MOST_MALFORMED);
                if more > 0 {
                    let message =
                        format!("{more} more items of {scope} were left out: malformed, or not requested");
                    self.report(ScopeError { scope, reason: "Malformed".to_owned(), message });
                }
                self.mark(read, ListOutcome::Listed, None);
                return;
            }
            Answer::NotFound => {
                // It was listed, and deleted since then.
                if let Scope::Object(key) = &scope {
                    self.remove(key);
                }
                self.mark(read, ListOutcome::NotServed { version: read.version.clone() }, None);
                return;
            }
            Answer::Forbidden { message } => {
                let kind = GroupKind::new(&*read.group, &*read.kind);
                if self.facts.catalog.as_ref().is_some_and(|catalog| !catalog.may_serve(&kind)) {
                    self.mark(read, ListOutcome::NotServed { version: read.version.clone() }, None);
                    return;
                }
                if is_asked && !is_extra {
                    self.report_once(ScopeError {
                        scope,
                        reason: FORBIDDEN.to_owned(),
                        message: message.clone(),
                    });
                }
                (message, true)
            }
            Answer::Failed { reason, message } => {
                // A dump of one namespace lacks the scopes that its author could not read.
                if is_asked && !(is_extra && reason == NOT_IN_DUMP) {
                    self.report_once(ScopeError { scope, reason, message: message.clone() });
                }
                (message, false)
            }
        };
        self.mark(read, ListOutcome::Failed { message: message.clone(), is_refused }, Some(message));
    }

    fn mark(&mut self, read: &Read, mark: ListOutcome, failure: Option<String>) {
        match &read.target {
            Target::Object(name) => {
                let namespace = read.namespace.clone().unwrap_or_default();
                let key = ObjectKey::new(&*read.group, &*read.kind, namespace, &**name);
                self.note_sought(&key);
                self.single_reads.entry(key).or_default().set(read.projection, failure);
            }
            Target::List { .. } => {
                let kind = GroupKind::new(&*read.group, &*read.kind);
                self.note_kind(&kind);
                self.kinds.entry(kind).or_default().take(read, mark);
            }
        }
    }

    /// Returns the extent to which a kind was listed in a namespace (`None`: in all) with at least the projection
    /// `wanted`. A kind that the server does not serve counts as listed, unless it serves another version of it now.
    pub(crate) fn listed(&self, kind: &GroupKind, namespace: Option<&str>, wanted: Projection) -> Listed {
        match self.kinds.get(kind).and_then(|marks| marks.find(namespace, wanted)) {
            None => Listed::No,
            Some(ListOutcome::Selected) => Listed::Selected,
            Some(ListOutcome::Listed | ListOutcome::Failed { .. }) => Listed::Done,
            Some(ListOutcome::NotServed { version }) => {
                match self.facts.catalog.as_ref().and_then(|catalog| catalog.get(kind)) {
                    Some(served) if served.version != *version => Listed::No,
                    _ => Listed::Done,
                }
            }
        }
    }

    /// Returns true if a list with exactly this `target` (selector) in this namespace (`None`: all) was made with at
    /// least the projection `wanted`; a failed list counts.
    pub(crate) fn was_selected(
        &self,
        kind: &GroupKind,
        namespace: Option<&str>,
        target: &Target,
        wanted: Projection,
    ) -> bool {
        self.kinds.get(kind).is_some_and(|marks| marks.was_selected(namespace, target, wanted))
    }

    /// Returns true if a list with another `target` (selector) of the kind was made; a failed list counts.
    pub(crate) fn has_selection_but(&self, kind: &GroupKind, target: &Target) -> bool {
        self.kinds.get(kind).is_some_and(|marks| marks.has_selection_but(target))
    }

    /// Returns true if nothing of the cluster could be read, see [`Snapshot::lost`].
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Returns true if this single object was read with at least the projection `wanted`, even if that failed; also
    /// true if a read of its metadata failed or found no object.
    pub(crate) fn was_read(&self, key: &ObjectKey, wanted: Projection) -> bool {
        let Some(read) = self.single_reads.get(key) else { return false };
        read.at_least(wanted).next().is_some()
            || read.metadata().is_some_and(|failure| failure.is_some() || !self.objects.contains_key(key))
    }

    /// Lists the stored objects in the order of their keys, starting at `key`.
    fn from(&self, key: ObjectKeyRef<'_>) -> Range<'_, Arc<ObjectKey>, Stored> {
        self.objects
            .range::<dyn AsObjectKey, _>((Bound::Included(&key as &dyn AsObjectKey), Bound::Unbounded))
    }

    fn range<'a>(
        &'a self,
        group: &str,
        kind: &str,
    ) -> impl Iterator<Item = (&'a Arc<ObjectKey>, &'a Stored)> + use<'a> {
        let after = self.from(ObjectKeyRef::new(group, kind, "", ""));
        // The objects of a kind are adjacent, so the first one identifies the rest.
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

/// Returns true if a document is one of the objects that `read` requested, by kind, namespace and name, or is not an
/// object at all: a server may send anything.
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
    fn facts(&self) -> &ClusterFacts {
        &self.facts
    }

    fn all(&self) -> Listing<'_> {
        Box::new(self.objects.iter().filter_map(|(key, stored)| stored.observed(key)))
    }

    fn share(&self, key: ObjectKeyRef<'_>) -> Arc<ObjectKey> {
        let own = self.objects.get_key_value(&key as &dyn AsObjectKey).map(|(own, _)| Arc::clone(own));
        own.unwrap_or_else(|| Arc::new(key.to_owned()))
    }

    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
        let key = GroupKind::new(group, kind);
        is_namespaced(group, kind)
            .or_else(|| Some(self.facts.served(group, kind)?.namespaced))
            .or_else(|| self.declared_scopes.get(&key).copied())
            .or_else(|| self.range(group, kind).next().map(|(key, _)| !key.namespace.is_empty()))
    }
}
