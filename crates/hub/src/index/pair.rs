//! A pair: an app in its target cluster, as the index keeps it, and the summary by which pairs are searched.

use std::cmp::Ordering;
use std::time::Duration;

use taffrail_api::report::{AppId, DeclaredHalf, HalfSide, KeptHalf, ObservedHalf, last_health, speaker};
use taffrail_apps::{Axis, ClusterId, Delivery, FreshnessState, Problem, ProblemSeverity, SyncState};
use taffrail_status::Status;

use super::names::{NameId, Names};
use crate::fleet::{FleetState, KnownCluster};

/// The place of a cluster in the lists of a fleet.
pub(crate) type Place = usize;

/// An app in its target cluster: its halves, each from the best source.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) app: AppId,
    /// The cluster that declares the app, and the source that is used for it.
    pub(crate) home: Told,
    pub(crate) declared: KeptHalf<DeclaredHalf>,
    /// The cluster that holds the objects; `None` if no source reports it.
    pub(crate) target: Option<Place>,
    pub(crate) observed: Option<(u16, KeptHalf<ObservedHalf>)>,
}

/// A source of reports about a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) cluster: Place,
    /// The place of the source among those of the cluster.
    pub(crate) source: u16,
}

impl Pair {
    /// Joins the halves of an app from the sources that are best at the moment `at`; `None` if no cluster declares it.
    pub(crate) fn of(fleet: &FleetState, app: &AppId, at: Duration) -> Option<Pair> {
        let best = |cluster: &KnownCluster, side| {
            let source = cluster.best_place(Some((app, side)), at)?;
            Some((u16::try_from(source).ok()?, source))
        };
        let home = fleet.known(&app.home)?;
        let (source, place) = best(home, HalfSide::Declared)?;
        let declared = home.sources.get(place)?.received.declared(app)?.clone();
        let target = fleet.known(&declared.body.target);
        let observed = target.and_then(|target| {
            let (source, place) = best(target, HalfSide::Observed)?;
            Some((source, target.sources.get(place)?.received.observed(app)?.clone()))
        });
        let home = Told { cluster: home.place, source };
        Some(Pair { app: app.clone(), home, declared, target: target.map(|target| target.place), observed })
    }

    /// Returns the place of the cluster that shows the pair: its target, or its home if no source reports the target.
    pub(crate) fn shown(&self) -> Place {
        self.target.unwrap_or(self.home.cluster)
    }

    /// Compares by the order of lists within a cluster.
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

/// The parts of a pair by which it is filtered, sorted and counted, in few bytes beside those of its neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    /// The health when it was last observed.
    pub(crate) health: Status,
    pub(crate) sync: SyncState,
    pub(crate) delivery: Delivery,
    pub(crate) is_suspended: bool,
    /// True if no source reports the target.
    pub(crate) is_stray: bool,
    /// The axes on which the pair has a problem, whatever the freshness of its clusters.
    pub(crate) axes: Axes,
    /// The severity of the worst of these problems.
    pub(crate) severity: Option<ProblemSeverity>,
    /// The time at which that began, in microseconds.
    pub(crate) since: Option<i64>,
    pub(crate) home: Told,
    /// The source that observed the objects; `None` if none did.
    pub(crate) observer: Option<u16>,
    /// The freshness that the sources report for the halves.
    pub(crate) declared: FreshnessState,
    pub(crate) observed: FreshnessState,
    pub(crate) namespace: NameId,
    pub(crate) name: NameId,
    pub(crate) key: NameId,
}

/// A set of axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
}

impl Summary {
    pub(crate) fn of(pair: &Pair, names: &mut Names) -> Summary {
        let declared = &*pair.declared.body;
        let observed = pair.observed.as_ref().map(|(_, kept)| &*kept.body);
        let problems = lasting_problems(pair);
        let worst = worst_problem(pair);
        Summary {
            health: last_health(declared, observed),
            sync: declared.sync.state,
            delivery: pair.app.app.delivery,
            is_suspended: declared.suspended,
            is_stray: pair.target.is_none(),
            axes: problems.iter().fold(Axes::default(), |axes, problem| axes.with(problem.axis)),
            severity: worst.map(|problem| problem.severity),
            since: worst.and_then(|problem| problem.since).map(|since| since.as_microsecond()),
            home: pair.home,
            observer: pair.observed.as_ref().map(|(source, _)| *source),
            declared: state(declared.not_live),
            observed: observed.map_or(FreshnessState::Lost, |observed| state(observed.not_live)),
            namespace: names.id(&pair.app.app.namespace),
            name: names.id(&pair.app.app.name),
            key: names.id(&declared.key),
        }
    }
}

fn state(own: Option<taffrail_api::report::NotLive>) -> FreshnessState {
    own.map_or(FreshnessState::Live, |own| own.state)
}

/// Returns the problems of a pair except those on the axis of freshness, in no particular order.
pub(crate) fn lasting_problems(pair: &Pair) -> Vec<&Problem> {
    let declared = &*pair.declared.body;
    let observed = pair.observed.as_ref().map(|(_, kept)| &*kept.body);
    let unmarked = observed.and_then(|observed| observed.unmarked.as_ref());
    let speaker = speaker(declared, observed);
    speaker.map(|speaker| &speaker.problem).into_iter().chain(&declared.problems).chain(unmarked).collect()
}

/// Returns the worst problem of a pair except those on the axis of freshness; `None` if it has none.
pub(crate) fn worst_problem(pair: &Pair) -> Option<&Problem> {
    // The notice that objects carry no mark comes last.
    let unmarked = pair.observed.as_ref().and_then(|(_, kept)| kept.body.unmarked.as_ref());
    let is_unmarked = |problem: &Problem| unmarked.is_some_and(|unmarked| std::ptr::eq(unmarked, problem));
    let order = |problem: &&Problem| (is_unmarked(problem), problem.severity, problem.axis);
    lasting_problems(pair).into_iter().min_by_key(order)
}
