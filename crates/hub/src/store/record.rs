//! The records that a store saves: pairs, clusters, their history, and pages of these.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::Range;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_api::hub::PairState;
use taffrail_api::operations::{OperationId, OperationRecord};
use taffrail_api::report::{AppId, DeclaredHalf, ObservedHalf};
use taffrail_apps::{ClusterId, SyncResult};

/// The identity of a pair: an app, and the cluster that holds its objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PairId {
    /// The cluster that holds the objects: the target.
    pub cluster: ClusterId,
    /// The app.
    pub app: AppId,
}

/// A pair with its last known halves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairRecord {
    /// The pair.
    pub id: PairId,
    /// The half that the home cluster declares; `None` if it does not declare the app for this cluster.
    pub declared: Option<SavedHalf<DeclaredHalf>>,
    /// The half that the target cluster reports; `None` if no source reported the objects.
    pub observed: Option<SavedHalf<ObservedHalf>>,
}

/// A half of a row, with its fingerprint and the time of its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedHalf<T> {
    /// The contents of the half.
    pub body: Box<T>,
    /// The [fingerprint](taffrail_api::report::Half::fingerprint) that its source told; `None` if it is not known, or the
    /// store does not keep all of the half.
    pub fingerprint: Option<u64>,
    /// The time at which the hub received the half. The age in [`NotLive`](taffrail_api::report::NotLive) counts from
    /// it.
    pub received: Timestamp,
}

/// The saved attributes of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterRecord {
    /// The identity.
    pub id: ClusterId,
    /// The name by which users know the cluster.
    pub name: String,
    /// Further names (contexts) of the cluster.
    pub aliases: Vec<String>,
    /// The labels of the cluster.
    pub labels: BTreeMap<String, String>,
    /// The time at which the API server of the cluster last proved itself; `None` if it never did.
    pub heard: Option<Timestamp>,
    /// The last epoch of the streams of each source, by the source's name. Saving never makes an epoch smaller, and
    /// keeps the epochs of sources that are not named here.
    pub epochs: BTreeMap<String, u64>,
}

/// A change of the state of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PairTransition {
    /// The pair.
    pub pair: PairId,
    /// The time of the change. Of several transitions of a pair in one microsecond, the last one written decides the
    /// state after it.
    pub at: Timestamp,
    /// The state before; `None` if the pair did not exist.
    pub before: Option<PairState>,
    /// The state after; `None` if the pair is gone.
    pub after: Option<PairState>,
}

/// One sync of a pair: an attempt of the delivery tool to apply a revision.
///
/// A sync is identified by pair, revision and the time at which it began. A record replaces an earlier one of the same
/// sync, unless it says that a sync is running that has ended. A record without a message comes from what the tool
/// remembers of earlier syncs, and replaces only one of a running sync.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncRecord {
    /// The pair.
    pub pair: PairId,
    /// The revision.
    pub revision: String,
    /// The time at which the sync began; if the tool does not record that, the time at which it ended.
    pub began: Timestamp,
    /// The time at which the sync ended; `None` while it runs, or if the tool does not tell.
    pub ended: Option<Timestamp>,
    /// The outcome.
    pub result: SyncResult,
    /// The message of the delivery tool; may be empty.
    pub message: String,
}

/// An entry of the history of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HistoryEntry {
    /// A change of state.
    Transition(PairTransition),
    /// A sync.
    Sync(SyncRecord),
    /// An operation of a user.
    Operation(Box<OperationRecord>),
}

impl HistoryEntry {
    /// Returns the time of the transition, or the time at which the sync or operation began.
    pub fn at(&self) -> Timestamp {
        match self {
            HistoryEntry::Transition(transition) => transition.at,
            HistoryEntry::Sync(sync) => sync.began,
            HistoryEntry::Operation(operation) => operation.began,
        }
    }
}

/// An operation of a user, and the apps in whose history it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedOperation {
    /// The operation.
    pub record: OperationRecord,
    /// The app of each item of the record; `None` for an item that is about another object. In the history of an app, the
    /// record has only its item.
    pub apps: Vec<Option<AppId>>,
}

/// A selection of operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationQuery {
    /// The one with this identifier.
    Id(OperationId),
    /// The ones that have not ended.
    Running,
    /// The latest ones, at most so many.
    Latest(usize),
}

/// The entries that history has of the spool of a cluster's agent: the transitions that it noted while it was not
/// connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolRecord {
    /// The cluster.
    pub cluster: ClusterId,
    /// The number that the agent gave its spool.
    pub spool: u64,
    /// The number of the last entry that history has.
    pub last: u64,
    /// The last time of which the spool did not have all transitions. Saving `None` leaves an earlier one.
    pub gap: Option<Range<Timestamp>>,
}

/// Changes that a store saves together or not at all.
///
/// Removals come first, then the other parts: a cluster or pair that is both removed and saved is saved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The pairs of which a half changed, each with both halves.
    pub pairs: Vec<PairRecord>,
    /// The pairs that are gone. Their history stays.
    pub gone: BTreeSet<PairId>,
    /// The clusters whose attributes or epochs changed, or that gave a sign of life, and then without epochs.
    pub clusters: Vec<ClusterRecord>,
    /// The clusters to forget. Their epochs are removed too; their pairs stay until they are removed themselves.
    pub forgotten: BTreeSet<ClusterId>,
    /// Transitions to append.
    pub transitions: Vec<PairTransition>,
    /// Syncs to append, or to complete.
    pub syncs: Vec<SyncRecord>,
    /// The spools of which entries are among the transitions.
    pub spools: Vec<SpoolRecord>,
    /// The time up to which this batch and those before it contain all transitions; `None` if earlier ones will follow.
    /// The first such time is the beginning of history.
    pub recorded: Option<Timestamp>,
}

impl Batch {
    /// Returns the number of all entries of the batch, as a measure of its size.
    pub fn len(&self) -> usize {
        let removed = self.gone.len() + self.forgotten.len();
        let added = self.pairs.len() + self.clusters.len() + self.transitions.len() + self.syncs.len();
        added + self.spools.len() + removed + usize::from(self.recorded.is_some())
    }

    /// Returns true if saving the batch would change nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The position in a list after which its next page begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub(crate) String);

impl Cursor {
    /// Makes a cursor from the text of an earlier one. The list refuses a text that is not one of its cursors.
    pub fn new(text: impl Into<String>) -> Cursor {
        Cursor(text.into())
    }

    /// Returns the text, which consists of letters, digits and `-`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The page of a list to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageQuery {
    /// The greatest number of entries of the page; those after them are on the next page.
    pub limit: NonZeroUsize,
    /// The cursor of the page before; `None` for the first page.
    pub after: Option<Cursor>,
}

impl PageQuery {
    /// Makes the query of a first page with at most `limit` entries.
    pub fn first(limit: NonZeroUsize) -> PageQuery {
        PageQuery { limit, after: None }
    }

    /// Makes the query of the page after `cursor`, with the same limit.
    pub fn next(self, cursor: Cursor) -> PageQuery {
        PageQuery { after: Some(cursor), ..self }
    }
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` for the last page.
    pub next: Option<Cursor>,
}

/// A page of pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairPage {
    /// The pairs.
    pub pairs: Vec<PairRecord>,
    /// The number of pairs that were left out because another version of Taffrail wrote them in a form that this one
    /// cannot read. Their sources send them again.
    pub unreadable: usize,
}

/// The amount of history that [`drop_history`](super::Store::drop_history) removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DroppedHistory {
    /// The number of days whose history was removed.
    pub days: u64,
    /// The number of transitions removed.
    pub transitions: u64,
    /// The number of syncs removed.
    pub syncs: u64,
}

/// The range of time of which a store holds the states of all pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryRange {
    /// The earliest moment; `None` as long as nothing was recorded or dropped.
    pub since: Option<Timestamp>,
    /// The last moment; `None` as long as nothing was recorded.
    pub until: Option<Timestamp>,
}

/// The condition of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreHealth {
    /// True if the last write succeeded, or none was tried yet.
    pub is_writable: bool,
    /// True if the last write failed because no space is left.
    pub is_full: bool,
    /// The failure of the last write, with its causes; `None` if it succeeded, or none was tried yet.
    pub failure: Option<String>,
    /// The size of the store in bytes, with its log.
    pub bytes: u64,
}
