//! Questions asked of clusters while a result is computed.
//!
//! If the answer to one of them may have changed, that result has to be computed again, and no other.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKeyRef};
use taffrail_status::assess::{Event, ExcessSteps};
use taffrail_status::{ClusterState, Listing, Observed, Presence};

use crate::freshness::Freshness;
use crate::identity::ClusterId;
use crate::objects::{Objects, Scope, ScopeError};
use crate::reading::Reading;
use crate::snapshot::{Label, labels};

/// A question about one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Question<'q> {
    /// The presence and content of an object.
    Object(ObjectKeyRef<'q>),
    /// The presence of an object, and its labels, annotations and owners.
    Metadata(ObjectKeyRef<'q>),
    /// The objects of a group and kind, in a namespace or in all.
    Kind(&'q str, &'q str, Option<&'q str>),
    /// The scope of a group and kind: namespaced or not.
    IsNamespaced(&'q str, &'q str),
    /// The objects with a controller of this UID.
    Controlled(&'q str),
    /// The objects with an owner of this UID.
    Owned(&'q str),
    /// The Pods that use a claim, by its namespace and name.
    Users(&'q str, &'q str),
    /// The completeness of the known Pods of a namespace.
    Pods(&'q str),
    /// The disruption budgets of a namespace whose selector requires a label.
    Budgets(&'q str, Option<&'q Label>),
    /// The Pods that are terminating on a node.
    Leaving(&'q str),
    /// The definition of a group and kind.
    Definition(&'q str, &'q str),
    /// The objects in a namespace.
    Namespace(&'q str),
    /// The events about the object of a kind, namespace and name.
    Events(&'q str, &'q str, &'q str),
    /// The lists made of a group and kind.
    Lists(&'q str, &'q str),
    /// The releases in Helm's storage.
    Storage,
    /// The workloads of a namespace that are application controllers of an Argo CD.
    ArgoControllers(&'q str),
    /// The names of claim templates of StatefulSets.
    ClaimTemplates,
    /// The errors of reading.
    Errors,
    /// The freshness of the cluster.
    Freshness,
    /// All objects.
    All,
}

/// The record of a computation: the questions asked, and the time at which time alone changes its result.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The numbers of the questions, sorted, each once.
    pub(crate) questions: Vec<u64>,
    /// The records of cached results that were used.
    pub(crate) remembered: Vec<Arc<Asked>>,
    /// The first time at which time alone may change the result.
    pub(crate) next: Option<Timestamp>,
    /// The steps that it took beyond the limit of each object.
    pub(crate) excess: ExcessSteps,
}

/// A log of the questions of running computations, the innermost last.
#[derive(Debug, Default)]
pub struct QuestionLog {
    open: Mutex<Vec<Open>>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Open {
    asked: Asked,
    /// True while questions are not recorded because one question covers them all.
    is_quiet: bool,
}

impl QuestionLog {
    fn open(&self) -> MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of a question about the cluster with this index.
    ///
    /// It is a hash: if two questions collide, both count as asked.
    pub(crate) fn number(&self, cluster: usize, question: &Question<'_>) -> u64 {
        self.hasher.hash_one((cluster, question))
    }

    fn ask(&self, cluster: usize, question: &Question<'_>) {
        let mut open = self.open();
        if let Some(last) = open.last_mut().filter(|last| !last.is_quiet) {
            last.asked.questions.push(self.number(cluster, question));
        }
    }

    /// Records that time alone changes the answer at `at`.
    pub(crate) fn changes_at(&self, at: Timestamp) {
        if let Some(Open { asked, .. }) = self.open().last_mut()
            && asked.next.is_none_or(|next| at < next)
        {
            asked.next = Some(at);
        }
    }

    /// Records steps that objects took beyond the limit of each.
    pub(crate) fn takes(&self, excess: &ExcessSteps) {
        if let Some(open) = self.open().last_mut().filter(|_| !excess.is_empty()) {
            open.asked.excess.add(excess);
        }
    }

    /// Runs a computation and returns its result with the record of its questions.
    pub(crate) fn record<T>(&self, find: impl FnOnce() -> T) -> (T, Asked) {
        self.open().push(Open::default());
        let found = find();
        let mut asked = self.open().pop().unwrap_or_default().asked;
        asked.questions.sort_unstable();
        asked.questions.dedup();
        asked.questions.shrink_to_fit();
        (found, asked)
    }

    /// Adds a record to that of the running computation.
    pub(crate) fn add(&self, asked: Asked) {
        if let Some(next) = asked.next {
            self.changes_at(next);
        }
        self.takes(&asked.excess);
        if let Some(last) = self.open().last_mut() {
            last.asked.questions.extend(asked.questions);
            last.asked.remembered.extend(asked.remembered);
        }
    }

    /// Adds the record of a cached result to that of the running computation.
    pub(crate) fn remember(&self, asked: &Arc<Asked>) {
        if let Some(last) = self.open().last_mut() {
            last.asked.remembered.push(asked.clone());
        }
    }

    fn quietly<T>(&self, find: impl FnOnce() -> T) -> T {
        let is_quiet =
            |to: bool| self.open().last_mut().map(|last| std::mem::replace(&mut last.is_quiet, to));
        let before = is_quiet(true);
        let found = find();
        is_quiet(before.unwrap_or_default());
        found
    }
}

/// Records one question in place of the many that `find` asks of a cluster.
pub(crate) fn ask_at_once<T>(objects: &dyn Objects, question: &Question<'_>, find: impl FnOnce() -> T) -> T {
    let Some((log, cluster)) = objects.question_log() else { return find() };
    log.ask(cluster, question);
    log.quietly(find)
}

/// Returns the time since `at`, to be compared with `limit`, and records the time at which it will reach the
/// limit.
pub(crate) fn elapsed(
    objects: &dyn Objects,
    at: Timestamp,
    limit: SignedDuration,
    now: Timestamp,
) -> SignedDuration {
    let elapsed = now.duration_since(at);
    if let Some((log, _)) = objects.question_log()
        && elapsed < limit
        && let Ok(end) = at.checked_add(limit)
    {
        log.changes_at(end);
    }
    elapsed
}

/// A cluster that records each question in a log.
pub(crate) struct Noting<'a> {
    objects: &'a dyn Objects,
    cluster: usize,
    log: &'a QuestionLog,
}

impl<'a> Noting<'a> {
    /// Makes a cluster that records its questions under the index `cluster`.
    pub(crate) fn new(objects: &'a dyn Objects, cluster: usize, log: &'a QuestionLog) -> Noting<'a> {
        Noting { objects, cluster, log }
    }

    fn ask(&self, question: &Question<'_>) {
        self.log.ask(self.cluster, question);
    }
}

impl ClusterState for Noting<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        self.ask(&Question::Object(key));
        let found = self.objects.get(key);
        if !matches!(found, Presence::Present(_)) {
            self.ask(&Question::Lists(key.group, key.kind));
        }
        found
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.ask(&Question::Controlled(uid));
        self.objects.owned(uid, namespace)
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.ask(&Question::Owned(uid));
        self.objects.dependents(uid, namespace)
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        self.ask(&Question::Kind(group, kind, namespace));
        self.objects.of_kind(group, kind, namespace)
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        self.ask(&Question::Users(namespace, claim));
        self.objects.users(namespace, claim)
    }

    fn knows_users(&self, namespace: &str) -> bool {
        self.ask(&Question::Pods(namespace));
        self.ask(&Question::Lists("", "Pod"));
        self.objects.knows_users(namespace)
    }

    fn budgets(&self, namespace: &str, own: Option<Value<'_>>) -> Listing<'_> {
        self.ask(&Question::Budgets(namespace, None));
        labels(own).iter().for_each(|label| self.ask(&Question::Budgets(namespace, Some(label))));
        self.objects.budgets(namespace, own)
    }

    fn terminating_on(&self, node: &str) -> Listing<'_> {
        self.ask(&Question::Leaving(node));
        self.objects.terminating_on(node)
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        self.ask(&Question::Definition(group, kind));
        self.objects.definition(group, kind)
    }

    fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        self.objects.has_status_subresource(group, version, kind)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        self.ask(&Question::Namespace(namespace));
        self.objects.in_namespace(namespace)
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        self.ask(&Question::Events(about.kind(), &about.namespace(), &about.name()));
        self.objects.events(about)
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.ask(&Question::Lists(group, kind));
        self.objects.is_observed(group, kind, namespace)
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        if self.objects.is_dump() {
            self.ask(&Question::Kind(group, kind, Some(namespace)));
            self.ask(&Question::Definition(group, kind));
        }
        self.objects.tells_absence(group, kind, namespace)
    }
}

impl Objects for Noting<'_> {
    fn name(&self) -> &str {
        self.objects.name()
    }

    fn id(&self) -> Option<&ClusterId> {
        self.objects.id()
    }

    fn is_same_as(&self, name: &str) -> Option<bool> {
        self.objects.is_same_as(name)
    }

    fn unverified(&self) -> Option<&str> {
        self.objects.unverified()
    }

    fn servers(&self) -> &[String] {
        self.objects.servers()
    }

    fn version(&self) -> Option<&str> {
        self.objects.version()
    }

    fn freshness(&self) -> Freshness {
        self.ask(&Question::Freshness);
        self.objects.freshness()
    }

    fn stale_scopes(&self) -> &[(Scope, Timestamp)] {
        self.ask(&Question::Freshness);
        self.objects.stale_scopes()
    }

    fn all(&self) -> Listing<'_> {
        self.ask(&Question::All);
        self.objects.all()
    }

    fn is_dump(&self) -> bool {
        self.objects.is_dump()
    }

    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
        self.ask(&Question::IsNamespaced(group, kind));
        self.objects.is_namespaced(group, kind)
    }

    fn is_served(&self, group: &str, kind: &str) -> Option<bool> {
        self.objects.is_served(group, kind)
    }

    fn is_listable(&self, group: &str, kind: &str) -> Option<bool> {
        self.objects.is_listable(group, kind)
    }

    fn repeated(&self) -> &[taffrail_object::ObjectKey] {
        self.ask(&Question::All);
        self.objects.repeated()
    }

    fn errors(&self) -> &[ScopeError] {
        self.ask(&Question::Errors);
        self.objects.errors()
    }

    fn is_dated(&self) -> bool {
        self.objects.is_dated()
    }

    fn clock_ahead(&self) -> Option<SignedDuration> {
        self.objects.clock_ahead()
    }

    fn reading(&self) -> Option<&Reading> {
        self.objects.reading()
    }

    fn question_log(&self) -> Option<(&QuestionLog, usize)> {
        Some((self.log, self.cluster))
    }
}
