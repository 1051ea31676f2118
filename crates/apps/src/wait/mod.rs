//! Waiting: whether what was asked for holds, and what it waits for where it does not.
//!
//! [`Wait`] is told again and again what is known ([`Wait::look`]), and says what changed, whether it has ended
//! ([`Wait::end`]) and what has to be followed for it ([`Wait::learn`], [`Wait::keys`]). It neither reads nor looks at a clock: whoever
//! keeps [`Snapshot`]s up to date, from watches say, drives it and has a stream of what is waited for and why.
//!
//! * All targets have to be as they shall *at the same time*, and to stay so for [`Options::stable_for`].
//! * What cannot be seen is [`Verdict::Unobserved`]: neither met nor failed.
//! * What has failed is [`Verdict::Hopeless`]: when only that and what is met are left, waiting longer is a waste of time
//!   unless somebody repairs it ([`Options::fail_fast`]).

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
use taffrail_object::{GroupKind, ObjectKey};
use taffrail_status::assess::Link;
use taffrail_status::{ActiveRules, ClusterState as _, Presence, Status};

use crate::apps::apps_by;
use crate::delivery::AppLabels;
use crate::find::AppQuery;
use crate::identity::AppRef;
use crate::objects::Objects;
use crate::snapshot::Snapshot;
use crate::words::Words;

pub use expression::{Answer, Expression, Question};
pub use field::WantedField;
pub use judge::EXPRESSION_FAULT;
pub use revision::Revision;
pub use until::{InvalidUntil, Until};

/// All objects of a kind, or those with certain labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selection {
    /// Which kind.
    pub kind: GroupKind,
    /// In which namespace; `None` for all, and for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// A label selector.
    pub labels: Option<String>,
}

/// Written `pod -l app=web`.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.kind.to_lowercase())?;
        self.labels.iter().try_for_each(|labels| write!(f, " -l {labels}"))
    }
}

/// What is waited for in one cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// An object, which need not be there yet.
    Object(ObjectKey),
    /// The objects of a selection, at least one.
    Selection(Selection),
    /// An inventory object and all that it remembers: a `ResourceGroup` of kpt, the ConfigMap of cli-utils, a
    /// `Kustomization` of Flux.
    Inventory(ObjectKey),
    /// An object of a kind that nobody knows yet.
    UnknownKind {
        /// The kind as it was asked for.
        word: String,
        /// The object's name.
        name: Option<String>,
        /// Why the kind cannot be known, where that is not because it is not served.
        why: Option<String>,
    },
}

/// What is spoken of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// An object.
    Object(ObjectKey),
    /// An app.
    App(AppRef),
    /// What was asked for, in those words, where nothing of it is there.
    Named(String),
}

impl Subject {
    /// Its namespace, where it has one.
    pub fn namespace(&self) -> &str {
        match self {
            Subject::Object(key) => &key.namespace,
            Subject::App(app) => &app.namespace,
            Subject::Named(_) => "",
        }
    }
}

/// Written `deployment/web`, `app/shop`, or as it was asked for.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Object(key) => f.pad(&format!("{}/{}", key.kind.to_lowercase(), key.name)),
            Subject::App(app) => f.pad(&format!("app/{}", app.name)),
            Subject::Named(text) => f.pad(text),
        }
    }
}

/// How a target stands to what is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It is as it shall be.
    Met,
    /// It is not yet.
    Waiting,
    /// It has failed, and will not become so by itself.
    Hopeless,
    /// Nobody can say.
    Unobserved,
}

impl Verdict {
    /// The name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Met => "Met",
            Verdict::Waiting => "Waiting",
            Verdict::Hopeless => "Hopeless",
            Verdict::Unobserved => "Unobserved",
        }
    }
}

/// What is said of one target in one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Name of the cluster.
    pub cluster: String,
    /// Of what.
    pub subject: Subject,
    /// How it stands.
    pub verdict: Verdict,
    /// Its status, where it was observed.
    pub status: Option<Status>,
    /// One word in CamelCase; may be empty.
    pub reason: String,
    /// Why, in the words of the cause.
    pub message: Words,
    /// Since when it is not well, where that is known.
    pub since: Option<Timestamp>,
    /// From the object to the cause; empty where it is well.
    pub chain: Vec<Arc<Link>>,
    /// Which of the objects that had this name it is.
    pub(crate) uid: Option<String>,
}

/// When waiting ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// For how long all must have been as they shall.
    pub stable_for: Duration,
    /// Whether it ends when only what has failed and what is met are left.
    pub fail_fast: bool,
    /// After how long it ends in any case.
    pub deadline: Duration,
}

/// How waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All is as it shall be.
    Met,
    /// What is left has failed.
    Failed,
    /// The deadline has passed.
    Deadline {
        /// Whether all that is not met was observed at least once.
        observed: bool,
    },
    /// What is left can never be seen.
    Unobservable,
}

/// One cluster, as far as it is known.
#[derive(Clone, Copy)]
pub struct Seen<'s> {
    /// What is known.
    pub snapshot: &'s Snapshot,
    /// What is waited for there, besides apps.
    pub targets: &'s [Target],
    /// Whether all that is needed was read: what stands behind the objects too.
    pub is_settled: bool,
    /// Whether it can never be reached.
    pub is_lost: bool,
}

/// A row: what is said of a target now, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What is said now.
    pub judgement: Judgement,
    /// For how long it has been met.
    pub met_since: Option<Duration>,
    /// Whether it was ever observed.
    pub was_observed: bool,
    is_lost: bool,
    /// Of an object that shall go: which it was, and whether it went.
    uid: Option<String>,
    has_gone: bool,
}

/// Waits. Times are counted since it began.
#[derive(Debug)]
pub struct Wait {
    until: Until,
    options: Options,
    apps: Vec<AppQuery>,
    labels: AppLabels,
    rows: BTreeMap<(usize, Subject), Row>,
    /// What selections and inventories hold and held, by cluster and target.
    known: BTreeMap<(usize, Target), BTreeSet<ObjectKey>>,
}

impl Wait {
    /// Waits until `until` for the targets that each look names, and for `apps`, grouped by `labels`.
    pub fn new(until: Until, options: Options, apps: Vec<AppQuery>, labels: AppLabels) -> Wait {
        Wait { until, options, apps, labels, rows: BTreeMap::new(), known: BTreeMap::new() }
    }

    /// What is waited for.
    pub fn until(&self) -> &Until {
        &self.until
    }

    /// Learns which objects the targets of a cluster have.
    pub fn learn(&mut self, cluster: usize, snapshot: &Snapshot, targets: &[Target]) {
        for target in targets {
            let known = self.known.entry((cluster, target.clone())).or_default();
            remember(known, target, snapshot, &self.until);
        }
    }

    /// The objects that have to be followed in a cluster, as far as they are known by name.
    pub fn keys(&self, cluster: usize, targets: &[Target]) -> Vec<ObjectKey> {
        let named = targets.iter().filter_map(|target| match target {
            Target::Object(key) | Target::Inventory(key) => Some(key),
            Target::Selection(_) | Target::UnknownKind { .. } => None,
        });
        let known = self.known.iter().filter(|((at, _), _)| *at == cluster).flat_map(|(_, keys)| keys);
        let all: BTreeSet<&ObjectKey> = named.chain(known).collect();
        all.into_iter().cloned().collect()
    }

    /// Takes in what is known at `now`, `at` after the beginning; the rows that say something else than before. What the
    /// targets have must have been learnt.
    pub fn look(
        &mut self,
        clusters: &[Seen<'_>],
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
            let list = apps_by(&self.labels, &snapshots, rules, now);
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
            // What stands behind it is being read: a moment later there is more to say.
            let holds_back = self.until.rests_on_evidence()
                && !is_settled
                && judgement.verdict != Verdict::Unobserved
                && judgement.status != Some(Status::NotFound);
            if holds_back {
                match &old {
                    Some(old) => judgement = old.judgement.clone(),
                    None => {
                        judgement.verdict = Verdict::Unobserved;
                        judgement.message = "what stands behind it is being read".into();
                        judgement.status = None;
                        judgement.chain.clear();
                    }
                }
            }
            let mut uid = old.as_ref().and_then(|old| old.uid.clone());
            let mut has_gone = old.as_ref().is_some_and(|old| old.has_gone);
            if self.until == Until::Deleted {
                let is_other = uid.is_some() && judgement.uid.is_some() && judgement.uid != uid;
                has_gone |= is_other || judgement.verdict == Verdict::Met;
                if has_gone && judgement.verdict == Verdict::Waiting {
                    judgement.verdict = Verdict::Met;
                    judgement.message = "it was deleted, and there is another of its name".into();
                    judgement.chain.clear();
                }
            }
            uid = uid.or_else(|| judgement.uid.clone());
            let met_since = match (judgement.verdict, old.as_ref().and_then(|old| old.met_since)) {
                (Verdict::Met, since) => Some(since.unwrap_or(at)),
                _ => None,
            };
            let was_observed =
                judgement.verdict != Verdict::Unobserved || old.as_ref().is_some_and(|old| old.was_observed);
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

    /// What is said now, cluster by cluster.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// How it has ended `at` after the beginning, if it has.
    pub fn end(&self, at: Duration) -> Option<End> {
        let verdicts = || self.rows.values().map(|row| row.judgement.verdict);
        let has = |verdict: Verdict| verdicts().any(|own| own == verdict);
        if !self.rows.is_empty() {
            let is_stable =
                |row: &Row| row.met_since.is_some_and(|since| at >= since + self.options.stable_for);
            if self.rows.values().all(is_stable) {
                return Some(End::Met);
            }
            if self.options.fail_fast
                && has(Verdict::Hopeless)
                && verdicts().all(|it| matches!(it, Verdict::Met | Verdict::Hopeless))
            {
                return Some(End::Failed);
            }
            let lost = self
                .rows
                .values()
                .filter(|row| row.judgement.verdict == Verdict::Unobserved && row.is_lost)
                .count();
            let open = verdicts()
                .filter(|it| *it != Verdict::Met && !(self.options.fail_fast && *it == Verdict::Hopeless))
                .count();
            if lost > 0 && lost == open {
                return Some(End::Unobservable);
            }
        }
        (at >= self.options.deadline).then(|| {
            let open = self.rows.values().filter(|row| row.judgement.verdict != Verdict::Met);
            let observed = !self.rows.is_empty() && open.into_iter().all(|row| row.was_observed);
            End::Deadline { observed }
        })
    }

    /// How long after the beginning time alone may end it.
    pub fn next_moment(&self) -> Duration {
        let stable = self.rows.values().map(|row| Some(row.met_since? + self.options.stable_for));
        let latest = stable.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        latest.map_or(self.options.deadline, |latest| latest.min(self.options.deadline))
    }
}

/// Whether two judgements say the same of a target: counts and pauses in words do not make it news.
fn says_the_same(one: &Judgement, other: &Judgement) -> bool {
    one.verdict == other.verdict
        && one.status == other.status
        && one.reason == other.reason
        && one.message == other.message
}

/// Notes the objects of a target that are there; those of an inventory stay known when it goes.
fn remember(known: &mut BTreeSet<ObjectKey>, target: &Target, snapshot: &Snapshot, until: &Until) {
    if judge::silence(snapshot).is_some() {
        return;
    }
    let shall_go = *until == Until::Deleted;
    let now: BTreeSet<ObjectKey> = match target {
        Target::Selection(selection) => judge::selected(snapshot, selection).into_iter().collect(),
        Target::Inventory(key) => match snapshot.get(key.as_ref()) {
            Presence::Present(inventory) => judge::members(&inventory.object),
            Presence::Absent | Presence::Unobserved(_) => return,
        },
        Target::Object(_) | Target::UnknownKind { .. } => return,
    };
    if !shall_go {
        known.clear();
    }
    known.extend(now);
}
