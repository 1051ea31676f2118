//! The lookups that are made in the state of a cluster while a result is computed.
//!
//! If one of them may find something else now, that result has to be computed again, and no other.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use taffrail_object::ObjectKeyRef;
use taffrail_status::assess::ExcessSteps;

use crate::snapshot::Label;

/// A lookup in the state of one cluster. A result that was computed with it may change if it finds something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Question<'q> {
    /// The presence and content of an object.
    Object(ObjectKeyRef<'q>),
    /// The presence of an object, and its labels, annotations, owner references and UID.
    Metadata(ObjectKeyRef<'q>),
    /// The objects of a group and kind, in a namespace, or in all if `None`.
    Kind(&'q str, &'q str, Option<&'q str>),
    /// The keys of the objects of a group and kind.
    Keys(&'q str, &'q str),
    /// True or false for a group and kind: namespaced or cluster-scoped.
    IsNamespaced(&'q str, &'q str),
    /// The objects whose controller has this UID.
    Controlled(&'q str),
    /// The objects with an owner reference to this UID.
    Owned(&'q str),
    /// The Pods that use a PersistentVolumeClaim, given by its namespace and name.
    Users(&'q str, &'q str),
    /// True or false for a namespace: all of its Pods are known.
    Pods(&'q str),
    /// The PodDisruptionBudgets of a namespace whose selectors require this label, or no label if it is `None`.
    Budgets(&'q str, Option<&'q Label>),
    /// The Pods that are terminating on a node, given by its name.
    Leaving(&'q str),
    /// The CustomResourceDefinition of a group and kind.
    Definition(&'q str, &'q str),
    /// The objects of all kinds in a namespace.
    Namespace(&'q str),
    /// The events about the object with this kind, namespace and name.
    Events(&'q str, &'q str, &'q str),
    /// The results of lists of a group and kind: what was listed, and which lists failed.
    Lists(&'q str, &'q str),
    /// The releases in Helm's storage.
    Storage,
    /// The workloads of a namespace that are application controllers of an Argo CD.
    ArgoControllers(&'q str),
    /// The prefixes of the names of PersistentVolumeClaims that StatefulSets create.
    ClaimTemplates,
    /// The errors of reading the cluster.
    Errors,
    /// The freshness of the cluster and of its scopes.
    Freshness,
    /// All objects of the cluster.
    All,
}

/// The lookups that a computation made, and the time at which its result may change though all of them find the same.
#[derive(Debug, Default)]
pub(crate) struct QuestionRecord {
    /// The hashes ([`QuestionLog::number`]) of the lookups, sorted, without duplicates.
    pub(crate) questions: Vec<u32>,
    /// The records of cached values that the computation used.
    pub(crate) remembered: Vec<Arc<QuestionRecord>>,
    /// The first time at which the result may change though no object does, not counting the times of `remembered`;
    /// `None` if it never does.
    pub(crate) next: Option<Timestamp>,
    /// The computing cost of objects in this computation beyond the limit for each object.
    pub(crate) excess: ExcessSteps,
}

/// A log of the lookups made by the running computations, of which one may be nested in another; the innermost is
/// last.
#[derive(Debug, Default)]
pub struct QuestionLog {
    open: Mutex<Vec<OpenRecord>>,
    hasher: RandomState,
}

/// The record of a computation that runs.
#[derive(Debug, Default)]
struct OpenRecord {
    asked: QuestionRecord,
    /// True while lookups of the computation are not recorded because one recorded lookup covers them all.
    is_quiet: bool,
}

impl QuestionLog {
    fn open(&self) -> MutexGuard<'_, Vec<OpenRecord>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number that identifies a lookup in the cluster with this index. It is a hash of only four bytes,
    /// because a row keeps one for each of its objects: if two lookups collide, both count as made.
    pub(crate) fn number(&self, cluster: usize, question: &Question<'_>) -> u32 {
        let hash = self.hasher.hash_one((cluster, question)).to_ne_bytes();
        u32::from_ne_bytes([hash[0], hash[1], hash[2], hash[3]])
    }

    pub(crate) fn ask(&self, cluster: usize, question: &Question<'_>) {
        let mut open = self.open();
        if let Some(last) = open.last_mut().filter(|last| !last.is_quiet) {
            last.asked.questions.push(self.number(cluster, question));
        }
    }

    /// Records that the result of the running computation may change at the time `at` without a change of any
    /// object.
    pub(crate) fn changes_at(&self, at: Timestamp) {
        if let Some(OpenRecord { asked, .. }) = self.open().last_mut()
            && asked.next.is_none_or(|next| at < next)
        {
            asked.next = Some(at);
        }
    }

    /// Adds the cost of objects beyond their limit to the record of the running computation.
    pub(crate) fn takes(&self, excess: &ExcessSteps) {
        if let Some(open) = self.open().last_mut().filter(|_| !excess.is_empty()) {
            open.asked.excess.add(excess);
        }
    }

    /// Runs `find` and returns its result with the record of the lookups that it made.
    pub(crate) fn record<T>(&self, find: impl FnOnce() -> T) -> (T, QuestionRecord) {
        self.open().push(OpenRecord::default());
        let found = find();
        let mut asked = self.open().pop().unwrap_or_default().asked;
        asked.questions.sort_unstable();
        asked.questions.dedup();
        asked.questions.shrink_to_fit();
        (found, asked)
    }

    /// Adds the record of a finished inner computation to that of the running one.
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

    /// Adds the record of a cached value, which is shared, to that of the running computation.
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
