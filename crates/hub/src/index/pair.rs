//! A pair: an app and its target cluster, with the summary by which pairs are filtered and sorted.

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::Timestamp;
use taffrail_api::checks::ToldChecks;
use taffrail_api::report::{AppId, DeclaredHalf, KeptHalf, ObservedHalf, last_health, speaker};
use taffrail_apps::{Axis, ClusterId, Delivery, FreshnessState, Problem, ProblemSeverity, SyncState};
use taffrail_status::Status;

use super::names::{NameId, Names};
use crate::fleet::{FleetState, KnownCluster};
use crate::parallel::in_parts;

/// The place of a cluster in the fleet: clusters are numbered in the order in which they were opened.
pub(crate) type Place = usize;

/// An app in its target cluster, with its two halves, each from the best source.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) app: Arc<AppId>,
    /// The cluster that declares the app, and the source of the declared half.
    pub(crate) home: SourceRef,
    pub(crate) declared: KeptHalf<DeclaredHalf>,
    /// The cluster that holds the objects; `None` if the fleet does not have it.
    pub(crate) target: Option<Place>,
    pub(crate) observed: Option<(u16, KeptHalf<ObservedHalf>)>,
    /// The results of the checks that the app declares; `None` if it declares none.
    pub(crate) checks: Option<Arc<ToldChecks>>,
}

/// A reference to one source of one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SourceRef {
    pub(crate) cluster: Place,
    /// The index of the source among the sources of that cluster.
    pub(crate) source: u16,
}

impl Pair {
    /// Joins the halves of an app, each from the source that is best at the moment `at`; `None` if no source reports
    /// the declared half.
    pub(crate) fn of(fleet: &FleetState, app: &AppId, at: Duration) -> Option<Pair> {
        Pair::at_home(fleet, fleet.known(&app.home)?, app, at)
    }

    /// Makes the pairs of all apps that the fleet has at the moment `at`, in no particular order, on all processors.
    pub(crate) fn all(fleet: &FleetState, at: Duration) -> Vec<Pair> {
        let homes: Vec<&KnownCluster> = fleet.all_known().collect();
        let of_homes = |homes: &[&KnownCluster]| -> Vec<Pair> {
            let pairs = homes
                .iter()
                .flat_map(|home| home.declared_apps().filter_map(|app| Pair::at_home(fleet, home, app, at)));
            pairs.collect()
        };
        in_parts(&homes, 1, of_homes).into_iter().flatten().collect()
    }

    fn at_home(fleet: &FleetState, home: &KnownCluster, app: &AppId, at: Duration) -> Option<Pair> {
        let (source, (shared, declared)) = home.best_declaring(at, |source| {
            let declared = source.received.declared_with_app(app);
            declared.filter(|_| source.tells.declared)
        })?;
        let target = match &declared.body.target {
            target if *target == app.home => Some(home),
            target => fleet.known(target),
        };
        let observed = target.and_then(|target| {
            let (source, observed) = target
                .best_with(at, |source| source.received.observed(app).filter(|_| source.tells.observed))?;
            Some((u16::try_from(source).ok()?, observed.clone()))
        });
        Some(Pair {
            app: Arc::clone(shared),
            home: SourceRef { cluster: home.place, source: u16::try_from(source).ok()? },
            declared: declared.clone(),
            target: target.map(|target| target.place),
            observed,
            checks: fleet.checks.told(app, &declared.body, at),
        })
    }

    /// Returns the place of the cluster in whose list the pair is: its target, or its home if the fleet does not have
    /// the target.
    pub(crate) fn shown(&self) -> Place {
        self.target.unwrap_or(self.home.cluster)
    }

    /// Compares this pair's app with `other` by namespace, name, delivery and home.
    pub(crate) fn order(&self, other: &AppId) -> Ordering {
        order(&self.app, other)
    }
}

/// Compares apps of one cluster by namespace, name, delivery and home.
pub(crate) fn order(one: &AppId, other: &AppId) -> Ordering {
    fn key(app: &AppId) -> (&str, &str, Delivery, &ClusterId) {
        (&app.app.namespace, &app.app.name, app.app.delivery, &app.home)
    }
    key(one).cmp(&key(other))
}

/// The values of a pair that, with the freshness of sources, decide its present state. Most pairs of a cluster are of a
/// few classes, so that a whole fleet is counted without a look at each pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PairClass {
    /// The health when it was last observed, or the status of the declaring object if that is worse.
    pub(crate) health: Status,
    pub(crate) sync: SyncState,
    pub(crate) delivery: Delivery,
    pub(crate) is_suspended: bool,
    /// True if the fleet does not have the target cluster.
    pub(crate) is_stray: bool,
    /// The axes, except freshness, on which the pair has a problem.
    pub(crate) axes: Axes,
    /// The severity of the worst of these problems; `None` if there are none.
    pub(crate) severity: Option<ProblemSeverity>,
    pub(crate) home: SourceRef,
    /// The index of the target's source that observed the objects; `None` if none did.
    pub(crate) observer: Option<u16>,
    /// The freshness that the source itself reports for the declared half, apart from the source's own freshness.
    pub(crate) declared: FreshnessState,
    pub(crate) observed: FreshnessState,
}

/// The values of a pair by which it is filtered, sorted and counted, beside its class. Small and stored in one array, so
/// scans are fast.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    /// The number of the pair's class among those of the cluster that shows the pair.
    pub(crate) class: u32,
    /// The Unix time in microseconds at which the worst problem, of others than freshness, began; `i64::MAX` if there
    /// is none, or that is unknown.
    since: i64,
    pub(crate) namespace: NameId,
    pub(crate) name: NameId,
    pub(crate) key: NameId,
    /// The hash of the messages of all its problems except those of freshness.
    pub(crate) messages: MessagesHash,
}

/// The hash of the messages of a pair, by which a text search reads equal messages once. Its key is random, so that nobody
/// can write messages with equal hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessagesHash(pub(crate) u64);

impl MessagesHash {
    fn of(pair: &Pair) -> MessagesHash {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let mut hasher = KEY.build_hasher();
        lasting_problems(pair).for_each(|problem| problem.message.hash(&mut hasher));
        MessagesHash(hasher.finish())
    }
}

/// A pair as the list of a cluster shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedPair<'c> {
    /// An `Arc`, because the compiler may read through a plain reference before a condition needs it: most pairs are
    /// decided by their summaries alone, and that read took two thirds of the time of a page.
    pub(crate) pair: &'c Arc<Pair>,
    pub(crate) summary: &'c Summary,
    pub(crate) class: &'c PairClass,
}

/// A pair with the values on which, beside the freshness of clusters, its state and its place in an order depend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JudgedPair<'c> {
    /// An `Arc` for the same reason as in [`ListedPair`].
    pub(crate) pair: &'c Arc<Pair>,
    pub(crate) class: &'c PairClass,
    /// The time since which the pair has its worst problem, as [`Summary::since`] returns it.
    pub(crate) since: Option<i64>,
}

impl<'c> ListedPair<'c> {
    pub(crate) fn judged(self) -> JudgedPair<'c> {
        JudgedPair { pair: self.pair, class: self.class, since: self.summary.since() }
    }
}

/// The class of a pair, and the time since which it has its worst problem.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judgement {
    class: PairClass,
    since: Option<i64>,
}

impl Judgement {
    pub(crate) fn of(pair: &Pair) -> Judgement {
        let worst = worst_problem(pair);
        let since = worst.and_then(|problem| problem.since).map(Timestamp::as_microsecond);
        Judgement { class: PairClass::of(pair, worst), since }
    }

    /// Joins the judgement with the pair of which it was made.
    pub(crate) fn with<'c>(&'c self, pair: &'c Arc<Pair>) -> JudgedPair<'c> {
        JudgedPair { pair, class: &self.class, since: self.since }
    }
}

/// A set of axes, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Axes(u8);

impl Axes {
    pub(crate) fn with(self, axis: Axis) -> Axes {
        Axes(self.0 | 1 << axis as u8)
    }

    pub(crate) fn has(self, axis: Axis) -> bool {
        self.0 & (1 << axis as u8) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the axis of a set that has only one.
    pub(crate) fn single(self) -> Option<Axis> {
        let all = [Axis::Health, Axis::Sync, Axis::Source, Axis::Freshness, Axis::Check];
        all.into_iter().find(|axis| self == Axes::default().with(*axis))
    }
}

impl PairClass {
    /// Makes the class of a pair with this worst problem.
    fn of(pair: &Pair, worst: Option<&Problem>) -> PairClass {
        let declared = &*pair.declared.body;
        let observed = pair.observed.as_ref().map(|(_, kept)| &*kept.body);
        PairClass {
            health: last_health(declared, observed),
            sync: declared.sync.state,
            delivery: pair.app.app.delivery,
            is_suspended: declared.suspended,
            is_stray: pair.target.is_none(),
            axes: lasting_problems(pair).fold(Axes::default(), |axes, problem| axes.with(problem.axis)),
            severity: worst.map(|problem| problem.severity),
            home: pair.home,
            observer: pair.observed.as_ref().map(|(source, _)| *source),
            declared: state(declared.not_live),
            observed: observed.map_or(FreshnessState::Lost, |observed| state(observed.not_live)),
        }
    }
}

impl Summary {
    /// Makes the summary of a pair; adds its names to `names`, and gets the number of its class from `number`.
    pub(crate) fn of(pair: &Pair, names: &mut Names, number: impl FnOnce(PairClass) -> u32) -> Summary {
        let Judgement { class, since } = Judgement::of(pair);
        Summary {
            class: number(class),
            since: since.unwrap_or(i64::MAX),
            namespace: names.id(&pair.app.app.namespace),
            name: names.id(&pair.app.app.name),
            key: names.id(&pair.declared.body.key),
            messages: MessagesHash::of(pair),
        }
    }

    /// Returns the Unix time in microseconds at which the worst problem, of others than freshness, began; `None` if
    /// there is none, or that is unknown.
    pub(crate) fn since(&self) -> Option<i64> {
        (self.since != i64::MAX).then_some(self.since)
    }
}

fn state(own: Option<taffrail_api::report::NotLive>) -> FreshnessState {
    own.map_or(FreshnessState::Live, |own| own.state)
}

/// Iterates over all problems of a pair except those of freshness, in no particular order.
pub(crate) fn lasting_problems(pair: &Pair) -> impl Iterator<Item = &Problem> {
    let of_checks = pair.checks.iter().flat_map(|checks| &checks.problems);
    problems_of(&pair.declared.body, observed_of(pair)).chain(of_checks)
}

fn observed_of(pair: &Pair) -> Option<&ObservedHalf> {
    pair.observed.as_ref().map(|(_, kept)| &*kept.body)
}

fn problems_of<'h>(
    declared: &'h DeclaredHalf,
    observed: Option<&'h ObservedHalf>,
) -> impl Iterator<Item = &'h Problem> {
    let unmarked = observed.and_then(|observed| observed.unmarked.as_deref());
    let speaker = speaker(declared, observed);
    speaker.map(|speaker| &speaker.problem).into_iter().chain(&declared.problems).chain(unmarked)
}

/// Returns the most severe problem of a pair except those of freshness; `None` if it has none. The notice about objects
/// without a mark counts as the least.
pub(crate) fn worst_problem(pair: &Pair) -> Option<&Problem> {
    worst_among(lasting_problems(pair), observed_of(pair))
}

/// Returns the most severe problem of a pair with these halves and without checks, as [`worst_problem`] does.
pub(crate) fn worst_of<'h>(
    declared: &'h DeclaredHalf,
    observed: Option<&'h ObservedHalf>,
) -> Option<&'h Problem> {
    worst_among(problems_of(declared, observed), observed)
}

fn worst_among<'h>(
    problems: impl Iterator<Item = &'h Problem>,
    observed: Option<&ObservedHalf>,
) -> Option<&'h Problem> {
    // The notice that objects carry no mark comes last.
    let unmarked = observed.and_then(|observed| observed.unmarked.as_deref());
    let is_unmarked = |problem: &Problem| unmarked.is_some_and(|unmarked| std::ptr::eq(unmarked, problem));
    problems.min_by_key(|problem| (is_unmarked(problem), problem.severity, problem.axis))
}
