//! Questions asked of clusters while a result is computed.
//!
//! If the answer to one of them may have changed, that result has to be computed again, and no other.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use taffrail_object::ObjectKeyRef;
use taffrail_status::assess::ExcessSteps;

use crate::snapshot::Label;

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
pub(crate) struct QuestionRecord {
    /// The numbers of the questions, sorted, each once.
    pub(crate) questions: Vec<u64>,
    /// The records of cached results that were used.
    pub(crate) remembered: Vec<Arc<QuestionRecord>>,
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
    asked: QuestionRecord,
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

    pub(crate) fn ask(&self, cluster: usize, question: &Question<'_>) {
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
    pub(crate) fn record<T>(&self, find: impl FnOnce() -> T) -> (T, QuestionRecord) {
        self.open().push(Open::default());
        let found = find();
        let mut asked = self.open().pop().unwrap_or_default().asked;
        asked.questions.sort_unstable();
        asked.questions.dedup();
        asked.questions.shrink_to_fit();
        (found, asked)
    }

    /// Adds a record to that of the running computation.
    pub(crate) fn add(&self, asked: QuestionRecord) {
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
    pub(crate) fn remember(&self, asked: &Arc<QuestionRecord>) {
        if let Some(last) = self.open().last_mut() {
            last.asked.remembered.push(asked.clone());
        }
    }

    pub(crate) fn quietly<T>(&self, find: impl FnOnce() -> T) -> T {
        let is_quiet =
            |to: bool| self.open().last_mut().map(|last| std::mem::replace(&mut last.is_quiet, to));
        let before = is_quiet(true);
        let found = find();
        is_quiet(before.unwrap_or_default());
        found
    }
}
