//! The answers of a hub: lists as the command line prints them, with how complete they are, and views that only a hub
//! has.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_apps::{Axis, Delivery, FreshnessState, ProblemSeverity, SyncResult, SyncState};
use taffrail_object::ObjectKey;
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use crate::operations::OperationRecord;
use crate::question::QuestionError;
use crate::{AppRow, List, ListItem};

/// A page of a list, as a hub answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubList<T> {
    /// The rows of the page and the errors, as the command line prints them.
    #[serde(flatten)]
    pub list: List<T>,
    /// Number of errors that are left out, because there are too many; left out if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors_omitted: usize,
    /// The number of rows on all pages, and the cursor of the next page.
    #[serde(flatten)]
    pub extent: PageExtent,
    /// The part of the fleet that the answer covers.
    #[serde(flatten)]
    pub coverage: Coverage,
}

/// The number of rows of a list that is read page by page, and the cursor of its next page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PageExtent {
    /// Number of rows on all pages.
    pub total: usize,
    /// The value of `cursor` for the next page; left out on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The clusters that an answer is about, and those that it misses or knows only by old observations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// The state of the answer as a whole.
    pub state: AnswerState,
    /// The time for which the answer was computed, by the clock of the hub.
    pub as_of: Timestamp,
    /// Number of clusters that the answer is about, whether or not they are missing; names that the hub does not know
    /// do not count.
    pub clusters: usize,
    /// The first 100 clusters that are missing in whole or in part, or of which only old observations are known; names
    /// that the request gives and the hub does not know are among them.
    pub missing: Vec<MissingCluster>,
    /// Number of clusters that are missing or of which only old observations are known, beyond the 100 in `missing`;
    /// left out if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_omitted: usize,
}

/// The state of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AnswerState {
    /// All clusters are live and were read whole.
    Complete,
    /// Only old observations of some clusters are known; no cluster or part of one is missing.
    Stale,
    /// A part of the fleet is missing, and no read that is under way will add it.
    Partial,
    /// Some clusters are not read yet, or not in full.
    Loading,
}

/// A cluster that an answer does not cover whole and live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MissingCluster {
    /// The name of the cluster; its identity as long as no name is known.
    pub cluster: String,
    /// The state of an answer to which this cluster belongs: `loading`, `partial` or `stale`.
    pub state: AnswerState,
    /// The reason in one CamelCase word: `NotRead`, `Unreachable`, `Silent`, `Unreadable`, `TooManyApps`,
    /// `UnknownCluster`; in answers about a past time `NotRecorded` or `Silent`.
    pub reason: Cow<'static, str>,
    /// The reason, for people.
    pub message: String,
    /// The time from which on the reason is true; for a silent cluster the time of the last observation. Left out if
    /// it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// The apps that share a value, such as all apps of a namespace, as a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppGroup {
    /// The value that the apps share; empty if they have none.
    pub group: String,
    /// Number of rows: apps in clusters.
    pub apps: usize,
    /// Number of rows with a problem that is more than a notice.
    pub problems: usize,
    /// Number of rows by present status.
    pub counts: Counts,
    /// The worst present status among rows whose objects are observed live; left out if none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<Status>,
    /// Number of rows with a stale observation of their objects.
    pub stale: usize,
    /// Number of rows with a lost observation of their objects.
    pub lost: usize,
}

impl AppGroup {
    /// Adds the counts of `other` to this group, and keeps the worse of the two worst statuses.
    pub fn add(&mut self, other: &AppGroup) {
        self.apps += other.apps;
        self.problems += other.problems;
        self.stale += other.stale;
        self.lost += other.lost;
        Status::ALL.into_iter().for_each(|status| self.counts.add_many(status, other.counts.get(status)));
        self.worst = [self.worst, other.worst].into_iter().flatten().min();
    }
}

impl ListItem for AppGroup {
    const LIST: &'static str = "AppGroupList";
}

/// The table of apps by clusters: a row for each key, and in it a character for each cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Matrix {
    /// Always [`API_VERSION`](crate::API_VERSION).
    pub api_version: Cow<'static, str>,
    /// Always `Matrix`.
    pub kind: Cow<'static, str>,
    /// The clusters that the filter admits, which are the columns; at a past time those that then had matching apps.
    pub columns: Vec<MatrixColumn>,
    /// Number of clusters that the filter admits and `columns` leaves out, because there are too many; left out if
    /// there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub columns_omitted: usize,
    /// The apps of this page, sorted by key.
    pub rows: Vec<MatrixRow>,
    /// The meaning of each character that the rows contain, except `.`.
    pub legend: Vec<MatrixLegend>,
    /// The earliest time that the history reaches back to; left out unless the answer is about a past time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_since: Option<Timestamp>,
    /// The number of rows on all pages, and the cursor of the next page.
    #[serde(flatten)]
    pub extent: PageExtent,
    /// The part of the fleet that the answer covers.
    #[serde(flatten)]
    pub coverage: Coverage,
}

impl Matrix {
    /// The kind of the answer.
    pub const KIND: &'static str = "Matrix";

    /// The character of a cell without an app.
    pub const EMPTY: char = '.';
}

/// A column of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MatrixColumn {
    /// The name of the cluster.
    pub cluster: String,
    /// The freshness of the cluster as a whole; at a past time the best one among its matching apps.
    pub freshness: FreshnessState,
    /// The value that the cluster has now for the label of the request's `label`, empty without such a label; left out
    /// if the request names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// A row of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MatrixRow {
    /// The key that the app has in all clusters.
    pub key: String,
    /// One character for each column; see `legend`. `.` stands for a cluster without the app. Of several apps with one
    /// key in a cluster it is that of one with a problem before one without, and of these of the worst present status.
    pub cells: String,
}

/// The meaning of a character of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MatrixLegend {
    /// The character.
    pub code: char,
    /// The status of the app when it was last observed.
    pub health: Status,
    /// The status now: Unknown unless the observation is live.
    pub effective: Status,
    /// The freshness of the observation of the app's objects.
    pub freshness: FreshnessState,
    /// True if the app has a problem that is more than a notice, on any axis; at a past time also if it has a notice.
    pub problem: bool,
}

/// The worst problem of each app of a fleet, even a notice, grouped by cause, as an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attention {
    /// Always [`API_VERSION`](crate::API_VERSION).
    pub api_version: Cow<'static, str>,
    /// Always `Attention`.
    pub kind: Cow<'static, str>,
    /// The first causes, at most as many as the request's `limit`: the worst severity first, and of one severity those
    /// first that concern most rows.
    pub items: Vec<AttentionEntry>,
    /// Number of causes, including those that `items` leaves out.
    pub total: usize,
    /// Number of rows that match the filter of the request: apps in clusters.
    pub apps: usize,
    /// Number of these rows with a problem that is more than a notice.
    pub problems: usize,
    /// The part of the fleet that the answer covers.
    #[serde(flatten)]
    pub coverage: Coverage,
}

impl Attention {
    /// The kind of the answer.
    pub const KIND: &'static str = "Attention";
}

/// A cause of problems, with the apps whose worst problem has it and their clusters. Two problems have the same cause
/// if they have the same severity, axis and state, and texts that are equal apart from numbers, durations and the name
/// of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AttentionEntry {
    /// The severity of these problems.
    pub severity: ProblemSeverity,
    /// The axis on which the apps have these problems.
    pub axis: Axis,
    /// The state on that axis, such as `Failed`, `OutOfSync`, `Lost`.
    pub state: String,
    /// The message of the first of these problems; of clusters that are not live without their names.
    pub message: String,
    /// The object that shows the problem, if it is the same in all clusters; else left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectKey>,
    /// The earliest time at which the problem began, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Number of rows: apps in clusters.
    pub count: usize,
    /// The keys of the first five apps, in the order of the fleet; an app with rows in several clusters counts once.
    pub keys: Vec<String>,
    /// Number of apps; an app with rows in several clusters counts once.
    pub key_count: usize,
    /// The names of the first five of the clusters, in the order of the fleet.
    pub clusters: Vec<String>,
    /// Number of clusters.
    pub cluster_count: usize,
}

/// The state of an app in a cluster at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PairState {
    /// The health when the objects were last observed.
    pub health: Status,
    /// The health that views showed: Unknown while the target was not live.
    pub effective: Status,
    /// The sync state that views showed.
    pub sync: SyncState,
    /// The worst problem in a few words, such as `sync failed`; `lost`, `stale`, `home lost` or `home stale` while a
    /// cluster was not live; `not recorded` for a time without a record; `null` if the app had no problem.
    pub problem: Option<String>,
}

/// A change of the state of an app in a cluster, as a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppChange {
    /// The time at which the hub learned of the change.
    pub at: Timestamp,
    /// The key of the app.
    pub key: String,
    /// Name of the cluster that holds the app's objects.
    pub cluster: String,
    /// Name of the cluster that holds the declaring object.
    pub home: String,
    /// The delivery of the app.
    pub delivery: Delivery,
    /// Namespace of the declaring object.
    pub namespace: String,
    /// Name of the declaring object.
    pub name: String,
    /// The state before; left out if the app is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<PairState>,
    /// The state after; left out if the app is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<PairState>,
    /// The message of the app after the change; empty if it is gone.
    pub message: String,
}

impl ListItem for AppChange {
    const LIST: &'static str = "AppChangeList";
}

/// The history of one app in one cluster, as an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppHistory {
    /// Always [`API_VERSION`](crate::API_VERSION).
    pub api_version: Cow<'static, str>,
    /// Always `AppHistory`.
    pub kind: Cow<'static, str>,
    /// Name of the cluster that holds the app's objects; its identity if the hub knows no name.
    pub cluster: String,
    /// Name of the cluster that holds the declaring object; its identity if the hub knows no name.
    pub home: String,
    /// The delivery of the app.
    pub delivery: Delivery,
    /// Namespace of the declaring object.
    pub namespace: String,
    /// Name of the declaring object.
    pub name: String,
    /// The entries of this page, the latest first.
    pub items: Vec<HistoryRow>,
    /// The earliest time that the history reaches back to; left out if nothing is recorded yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_since: Option<Timestamp>,
    /// The value of `cursor` for the next page; left out on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The present coverage of the cluster.
    #[serde(flatten)]
    pub coverage: Coverage,
}

impl AppHistory {
    /// The kind of the answer.
    pub const KIND: &'static str = "AppHistory";
}

impl ListItem for OperationRecord {
    const LIST: &'static str = "OperationList";
}

impl ListItem for AppHistory {
    const LIST: &'static str = "AppHistoryList";
}

impl HistoryRow {
    /// Returns the time of the entry, by which a history is sorted.
    pub fn at(&self) -> Timestamp {
        match self {
            HistoryRow::Transition { at, .. } | HistoryRow::Sync { at, .. } => *at,
            HistoryRow::Operation { operation } => operation.began,
        }
    }
}

/// An entry of the history of an app in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HistoryRow {
    /// A change of the app's state.
    Transition {
        /// The time at which the hub learned of the change.
        at: Timestamp,
        /// The state before; left out if the app is new, or the hub knew nothing of its cluster before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<PairState>,
        /// The state after; left out if the app was gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<PairState>,
    },
    /// A sync: an attempt of the delivery tool to apply a revision.
    Sync {
        /// The time at which the sync began; if the tool does not record that, the time at which it ended.
        at: Timestamp,
        /// The time at which the sync ended; left out while it runs, or if the tool does not record it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<Timestamp>,
        /// The outcome of the sync.
        result: SyncResult,
        /// The revision that was to be applied; empty if the tool failed before it knew one.
        revision: String,
        /// The message of the delivery tool; empty if it does not keep it.
        message: String,
    },
    /// An operation that a user asked for: reconcile, suspend or resume.
    Operation {
        /// The operation, with the item of this app alone.
        operation: Box<OperationRecord>,
    },
}

/// A page of a list about a past time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PastList<T> {
    /// Always [`API_VERSION`](crate::API_VERSION).
    pub api_version: Cow<'static, str>,
    /// `PastAppList` or `PastClusterList`.
    pub kind: Cow<'static, str>,
    /// The rows of the page.
    pub items: Vec<T>,
    /// The earliest time that the history reaches back to; never null, as a hub without a history refuses the request.
    pub history_since: Option<Timestamp>,
    /// The number of rows on all pages, and the cursor of the next page.
    #[serde(flatten)]
    pub extent: PageExtent,
    /// The part of the fleet that the answer covers; `asOf` is the past time.
    #[serde(flatten)]
    pub coverage: Coverage,
}

/// An app in a cluster at a past time, as a row. Names of clusters and the key are the present ones, if the app still
/// exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PastApp {
    /// The key of the app.
    pub key: String,
    /// Name of the cluster that held the app's objects; its identity if the hub no longer knows it.
    pub cluster: String,
    /// Name of the cluster that held the declaring object; its identity if the hub no longer knows it.
    pub home: String,
    /// The delivery of the app.
    pub delivery: Delivery,
    /// Namespace of the declaring object.
    pub namespace: String,
    /// Name of the declaring object.
    pub name: String,
    /// The state of the app in the cluster at that time.
    #[serde(flatten)]
    pub state: PairState,
}

/// A cluster at a past time, as a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PastCluster {
    /// Name of the cluster; its identity if the hub no longer knows it.
    pub cluster: String,
    /// Number of apps that match the filters of the request.
    pub apps: usize,
    /// Number of these apps with a problem, notices included.
    pub problems: usize,
    /// Number of these apps by the status that views showed.
    pub counts: Counts,
}

impl PastCluster {
    /// Makes the row of a cluster without apps.
    pub fn new(cluster: String) -> PastCluster {
        PastCluster { cluster, apps: 0, problems: 0, counts: Counts::default() }
    }

    /// Adds an app in this state.
    pub fn add(&mut self, state: &PairState) {
        self.apps += 1;
        self.problems += usize::from(state.problem.is_some());
        self.counts.add(state.effective);
    }
}

/// The data of an event of a stream: what changed on the pages to which a client subscribed.
///
/// The event is called `reset` if the client must drop all that it holds of the pages: the first one of a stream,
/// unless the stream resumes an earlier one. It is called `frame` if it must apply the changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StreamFrame {
    /// The time for which the pages were computed, by the clock of the hub.
    pub as_of: Timestamp,
    /// The pages that changed.
    pub pages: Vec<StreamPage>,
}

/// The changes since the last frame in one page of a stream, a list of rows that the client named and filtered when it
/// opened the stream. Leaves out what did not change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StreamPage {
    /// The name that the client gave the page.
    pub name: String,
    /// The numbers of all apps that match the filter of the page; left out if they did not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apps: Option<StreamCounts>,
    /// The identities of the rows of the page in their order; left out if it is as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<u64>>,
    /// The rows that are new or changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<StreamRow>,
    /// The numbers of clusters; left out unless the page is one of clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterCounts>,
    /// The number of the state of the fleet, which grows with each change; left out unless the page is one of changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The numbers of the apps of a filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StreamCounts {
    /// Number of rows: apps in clusters.
    pub total: usize,
    /// Number of rows with a problem that is more than a notice.
    pub problems: usize,
    /// Number of rows by status now.
    pub counts: Counts,
}

/// A row of a page of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StreamRow {
    /// The identity of the row within its page and stream.
    pub id: u64,
    /// The contents of the row, as in `get apps`.
    pub row: AppRow,
}

/// The numbers of clusters by freshness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterCounts {
    /// Number of live clusters.
    pub live: usize,
    /// Number of stale clusters.
    pub stale: usize,
    /// Number of lost clusters.
    pub lost: usize,
    /// The state of an answer about all clusters.
    pub state: AnswerState,
}

/// An error of the HTTP API, as [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457) describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HttpProblem {
    /// The kind of error, as a URN: `urn:taffrail:problem:invalid-parameter`.
    #[serde(rename = "type")]
    pub sort: Cow<'static, str>,
    /// The kind of error in a few words, the same for all errors of the kind.
    pub title: Cow<'static, str>,
    /// The HTTP status code.
    pub status: u16,
    /// The failure: what failed, on what, and why.
    pub detail: String,
    /// The remedy: what the client can do; left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The reason why a question has no answer; left out for other errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Box<QuestionError>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
