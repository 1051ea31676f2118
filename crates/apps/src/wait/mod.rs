//! Waiting for a condition of objects or apps, with the reasons why it is not met yet.
//!
//! The caller passes each new state to [`Wait::look`], which returns the rows that changed. [`Wait::end`] tells if
//! waiting has ended, [`Wait::learn`] and [`Wait::keys`] which objects to follow. A [`Wait`] does no I/O and reads no
//! clock: a caller that keeps [`Snapshot`]s up to date, from watches for example, drives it.
//!
//! * All targets have to meet the condition *at the same time*, and to keep it for [`Options::stable_for`].
//! * A target that cannot be observed is [`WaitState::Unobserved`]: neither met nor failed.
//! * A target that has failed, or cannot meet the condition for another reason, is [`WaitState::Hopeless`]. When only
//!   such targets and met ones are left, waiting longer is useless unless a user intervenes ([`Options::fail_fast`]).

mod expression;
mod field;
mod judge;
mod revision;
mod until;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::{GroupKind, ObjectKey};
use taffrail_status::assess::CauseStep;
use taffrail_status::{ActiveRules, ClusterState as _, Presence, Status};

use crate::app::AppList;
use crate::find::AppQuery;
use crate::identity::AppRef;
use crate::inventories;
use crate::objects::Objects;
use crate::snapshot::Snapshot;
use crate::words::Words;

pub use expression::Question;
pub use field::{InvalidField, WantedField};
pub use judge::EXPRESSION_FAULT;
pub use revision::Revision;
pub use until::{InvalidUntil, Until};

/// A selection of objects to wait for: all of a kind, in a namespace or with labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selection {
    /// The kind.
    pub kind: GroupKind,
    /// The namespace; `None` for all, and for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// A label selector; `None` for all objects.
    pub labels: Option<String>,
}

/// Formats as `pod -l app=web`.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.kind.to_lowercase())?;
        self.labels.iter().try_for_each(|labels| write!(f, " -l {labels}"))
    }
}

/// A target to wait for in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// An object, which need not exist yet.
    Object(ObjectKey),
    /// The objects of a selection: at least one must exist, unless their deletion is awaited.
    Selection(Selection),
    /// An inventory object and all objects in it: a `ResourceGroup` of kpt, the ConfigMap of cli-utils, a
    /// `Kustomization` of Flux.
    Inventory(ObjectKey),
    /// A kind that is not known: the server does not serve it, or could not be asked.
    UnknownKind {
        /// The kind as it was given.
        word: String,
        /// The name of the object; `None` if all of the kind are meant.
        name: Option<String>,
        /// The reason why the kind could not be looked up; `None` if the server does not serve it.
        why: Option<String>,
    },
}

/// The object, app or target that a row of `wait` is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// An object.
    Object(ObjectKey),
    /// An app.
    App(AppRef),
    /// A target in the user's words, if it has no object and no app.
    Named(String),
}

impl Subject {
    /// Returns the namespace of the object or app; empty for a cluster-scoped object or a target.
    pub fn namespace(&self) -> &str {
        match self {
            Subject::Object(key) => &key.namespace,
            Subject::App(app) => &app.namespace,
            Subject::Named(_) => "",
        }
    }
}

/// Formats as `deployment/web`, `app/shop`, or the target as it was given.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Object(key) => f.pad(&format!("{}/{}", key.kind.to_lowercase(), key.name)),
            Subject::App(app) => f.pad(&format!("app/{}", app.name)),
            Subject::Named(text) => f.pad(text),
        }
    }
}

/// The state of a target with respect to the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WaitState {
    /// The target meets the condition.
    Met,
    /// The target does not meet the condition yet.
    Waiting,
    /// The target cannot meet the condition by itself, such as one that has failed, has ended or is suspended.
    Hopeless,
    /// The state of the target is not known.
    Unobserved,
}

/// The state of one object, app or target in one cluster at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Name of the cluster.
    pub cluster: String,
    /// The object, app or target that was judged.
    pub subject: Subject,
    /// The state with respect to the condition.
    pub verdict: WaitState,
    /// The status of the object or app; `None` if it was not observed.
    pub status: Option<Status>,
    /// The reason for the verdict in one CamelCase word; empty if there is none.
    pub reason: String,
    /// The message for people: why the condition is met or not. While an object is not Ready and the condition may
    /// depend on that, the message about its status, which names the root cause, follows after `; ` or stands alone.
    pub message: Words,
    /// The time at which the object or app stopped being well, if known.
    pub since: Option<Timestamp>,
    /// The cause chain, from the object to the root cause; empty if the object is well.
    pub chain: Vec<Arc<CauseStep>>,
    /// UID of the object, to distinguish it from others that had the same name; `None` for an app or target, and if the
    /// object was not read.
    pub uid: Option<String>,
}

/// The options of a wait: when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The duration for which all targets must meet the condition without a gap.
    pub stable_for: Duration,
    /// True to end when only hopeless and met targets are left, and at least one is hopeless.
    pub fail_fast: bool,
    /// The duration after which waiting ends in any case.
    pub deadline: Duration,
}

/// The reason why waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All targets have met the condition for [`Options::stable_for`].
    Met,
    /// The remaining targets are hopeless, and [`Options::fail_fast`] is set.
    Failed,
    /// The deadline has passed.
    Deadline {
        /// True if all targets that are not met were observed at least once; false without any target.
        observed: bool,
    },
    /// The remaining targets can never be observed, so that waiting is useless.
    Unobservable,
}

/// The present state of one cluster, which the caller passes to [`Wait::look`].
#[derive(Clone, Copy)]
pub struct Seen<'s> {
    /// The objects of the cluster.
    pub snapshot: &'s Snapshot,
    /// The targets in this cluster; apps are not among them.
    pub targets: &'s [Target],
    /// True if everything that the targets need was read, including the evidence about their objects.
    pub is_settled: bool,
    /// True if the cluster can never be reached.
    pub is_lost: bool,
}

/// The present state of a target, and its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The present judgement.
    pub judgement: Judgement,
    /// The time, counted from the start, since when the condition has been met without a gap; `None` if it is
    /// not met.
    pub met_since: Option<Duration>,
    /// True if the target was ever observed.
    pub was_observed: bool,
    is_lost: bool,
    /// UID of the first object that was observed under this name; `None` before one was.
    uid: Option<String>,
    /// True once the object with the UID in `uid` is gone: it does not exist, or one with another UID has its name.
    /// Always false unless the wait is for deletion.
    has_gone: bool,
}

/// A running wait for a condition. All times are counted from its start.
#[derive(Debug)]
pub struct Wait {
    until: Until,
    options: Options,
    apps: Vec<AppQuery>,
    rows: BTreeMap<(usize, Subject), Row>,
    /// The present objects of selections and inventories, and, when their deletion is awaited, the past ones, by index
    /// of the cluster and target.
    known: BTreeMap<(usize, Target), BTreeSet<ObjectKey>>,
}

impl Wait {
    /// Starts a wait until all targets meet the condition `until`. `apps` are the apps to wait for; the other
    /// targets are passed with each [`Wait::look`].
    pub fn new(until: Until, options: Options, apps: Vec<AppQuery>) -> Wait {
        Wait { until, options, apps, rows: BTreeMap::new(), known: BTreeMap::new() }
    }

    /// Returns the condition.
    pub fn until(&self) -> &Until {
        &self.until
    }

    /// Records the objects in `snapshot` that the selections and inventories among `targets` contain; `cluster` is the
    /// index of their cluster. Those recorded before are dropped, unless the wait is for deletion. Does nothing while
    /// the cluster is not live.
    pub fn learn(&mut self, cluster: usize, snapshot: &Snapshot, targets: &[Target]) {
        for target in targets {
            let known = self.known.entry((cluster, target.clone())).or_default();
            remember(known, target, snapshot, &self.until);
        }
    }

    /// Returns the keys of the objects and inventories in `targets`, and of the recorded objects of the cluster with
    /// this index, for the caller to watch.
    pub fn keys(&self, cluster: usize, targets: &[Target]) -> Vec<ObjectKey> {
        let named = targets.iter().filter_map(|target| match target {
            Target::Object(key) | Target::Inventory(key) => Some(key),
            Target::Selection(_) | Target::UnknownKind { .. } => None,
        });
        let known = self.known.iter().filter(|((at, _), _)| *at == cluster).flat_map(|(_, keys)| keys);
        let all: BTreeSet<&ObjectKey> = named.chain(known).collect();
        all.into_iter().cloned().collect()
    }

    /// Judges all targets at the time `now`, which is `at` after the start. Returns the rows that are new or whose
    /// state, status, reason or message changed, without those of which the evidence is still being read. `apps`
    /// returns the apps of the clusters, and is called only if apps are waited for.
    ///
    /// [`Wait::learn`] must have recorded the objects of the targets.
    pub fn look(
        &mut self,
        clusters: &[Seen<'_>],
        apps: impl FnOnce() -> AppList,
        rules: &ActiveRules<'_>,
        now: Timestamp,
        at: Duration,
    ) -> Vec<Row> {
        let mut judgements: Vec<(usize, Judgement)> = Vec::new();
        for (place, seen) in clusters.iter().enumerate() {
            let bench = judge::Bench { snapshot: seen.snapshot, until: &self.until, rules, now };
            for target in seen.targets {
                let known = self.known.entry((place, target.clone())).or_default();
                judgements.extend(bench.target(target, known).into_iter().map(|it| (place, it)));
            }
        }
        if !self.apps.is_empty() {
            let snapshots: Vec<&dyn Objects> =
                clusters.iter().map(|seen| seen.snapshot as &dyn Objects).collect();
            let list = apps();
            let benches: Vec<judge::Bench<'_>> = clusters
                .iter()
                .map(|seen| judge::Bench { snapshot: seen.snapshot, until: &self.until, rules, now })
                .collect();
            let settled: Vec<bool> = clusters.iter().map(|seen| seen.is_settled).collect();
            for query in &self.apps {
                let place = |judgement: &Judgement| {
                    snapshots.iter().position(|it| it.name() == judgement.cluster).unwrap_or_default()
                };
                judgements.extend(
                    judge::apps(query, &list, &benches, &settled).into_iter().map(|it| (place(&it), it)),
                );
            }
        }
        self.take(clusters, judgements, at)
    }

    fn take(&mut self, clusters: &[Seen<'_>], judgements: Vec<(usize, Judgement)>, at: Duration) -> Vec<Row> {
        let mut before = std::mem::take(&mut self.rows);
        let mut changed = Vec::new();
        for (place, mut judgement) in judgements {
            let key = (place, judgement.subject.clone());
            let old = before.remove(&key);
            let is_settled = clusters.get(place).is_none_or(|seen| seen.is_settled);
            // The evidence is being read: a moment later there is more to say.
            let holds_back = self.until.rests_on_evidence()
                && !is_settled
                && judgement.verdict != WaitState::Unobserved
                && judgement.status != Some(Status::NotFound);
            if holds_back {
                match &old {
                    Some(old) => judgement = old.judgement.clone(),
                    None => {
                        judgement.verdict = WaitState::Unobserved;
                        judgement.message = "Taffrail is still reading the dependents of the object".into();
                        judgement.status = None;
                        judgement.chain.clear();
                    }
                }
            }
            let mut uid = old.as_ref().and_then(|old| old.uid.clone());
            let mut has_gone = old.as_ref().is_some_and(|old| old.has_gone);
            if self.until == Until::Deleted {
                let is_other = uid.is_some() && judgement.uid.is_some() && judgement.uid != uid;
                has_gone |= is_other || judgement.verdict == WaitState::Met;
                if has_gone && judgement.verdict == WaitState::Waiting {
                    judgement.verdict = WaitState::Met;
                    judgement.message = "the object was deleted, and another one of its name exists".into();
                    judgement.chain.clear();
                }
            }
            uid = uid.or_else(|| judgement.uid.clone());
            let met_since = match (judgement.verdict, old.as_ref().and_then(|old| old.met_since)) {
                (WaitState::Met, since) => Some(since.unwrap_or(at)),
                _ => None,
            };
            let was_observed = judgement.verdict != WaitState::Unobserved
                || old.as_ref().is_some_and(|old| old.was_observed);
            let is_lost = clusters.get(place).is_some_and(|seen| seen.is_lost);
            let row = Row { judgement, met_since, was_observed, is_lost, uid, has_gone };
            let is_new = old.is_none_or(|old| !says_the_same(&old.judgement, &row.judgement));
            if is_new && !holds_back {
                changed.push(row.clone());
            }
            self.rows.insert(key, row);
        }
        changed
    }

    /// Returns the present rows, ordered by the index of their cluster, then by subject.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// Returns the reason why waiting ends, `at` after the start; `None` while it goes on.
    pub fn end(&self, at: Duration) -> Option<End> {
        let verdicts = || self.rows.values().map(|row| row.judgement.verdict);
        let has = |verdict: WaitState| verdicts().any(|own| own == verdict);
        if !self.rows.is_empty() {
            let is_stable =
                |row: &Row| row.met_since.is_some_and(|since| at >= since + self.options.stable_for);
            if self.rows.values().all(is_stable) {
                return Some(End::Met);
            }
            if self.options.fail_fast
                && has(WaitState::Hopeless)
                && verdicts().all(|it| matches!(it, WaitState::Met | WaitState::Hopeless))
            {
                return Some(End::Failed);
            }
            let lost = self
                .rows
                .values()
                .filter(|row| row.judgement.verdict == WaitState::Unobserved && row.is_lost)
                .count();
            let open = verdicts()
                .filter(|it| *it != WaitState::Met && !(self.options.fail_fast && *it == WaitState::Hopeless))
                .count();
            if lost > 0 && lost == open {
                return Some(End::Unobservable);
            }
        }
        (at >= self.options.deadline).then(|| {
            let open = self.rows.values().filter(|row| row.judgement.verdict != WaitState::Met);
            let observed = !self.rows.is_empty() && open.into_iter().all(|row| row.was_observed);
            End::Deadline { observed }
        })
    }

    /// Returns the next time, counted from the start, at which waiting may end without a change in any cluster: that at
    /// which all targets have met the condition for long enough, if all meet it now, or else the deadline.
    pub fn next_moment(&self) -> Duration {
        let stable = self.rows.values().map(|row| Some(row.met_since? + self.options.stable_for));
        let latest = stable.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        latest.map_or(self.options.deadline, |latest| latest.min(self.options.deadline))
    }
}

/// Returns true if two states of a target need only one line of output: verdict, status, reason and message are equal.
fn says_the_same(one: &Judgement, other: &Judgement) -> bool {
    one.verdict == other.verdict
        && one.status == other.status
        && one.reason == other.reason
        && one.message == other.message
}

/// Records the present objects of a target in `known`, if the cluster is live; when waiting for deletion, those
/// recorded before stay.
fn remember(known: &mut BTreeSet<ObjectKey>, target: &Target, snapshot: &Snapshot, until: &Until) {
    if judge::silence(snapshot).is_some() {
        return;
    }
    let shall_go = *until == Until::Deleted;
    let now: BTreeSet<ObjectKey> = match target {
        Target::Selection(selection) => judge::selected(snapshot, selection).into_iter().collect(),
        Target::Inventory(key) => match snapshot.get(key.as_ref()) {
            Presence::Present(inventory) => inventories::listed(&inventory.object),
            Presence::Absent | Presence::Unobserved(_) => return,
        },
        Target::Object(_) | Target::UnknownKind { .. } => return,
    };
    if !shall_go {
        known.clear();
    }
    known.extend(now);
}
