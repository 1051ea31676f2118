//! Transitions: the changes of the states of pairs between two views, and the log of the last ones.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_api::hub::{AppChange, PairState};
use taffrail_api::report::{AppId, DeclaredHalf, ObservedHalf, last_health};
use taffrail_apps::{FreshnessState, Problem, SyncState};
use taffrail_status::Status;

use super::pair::{ListedPair, Pair, PairClass, Place, worst_of, worst_problem};
use super::published::PairChange;
use super::view::{FleetView, PairNow};
use crate::clock::HubTime;

/// The greatest number of changes that are kept for `/api/v1/changes`; the earliest are dropped beyond it.
const MAX_RECENT: usize = 10_000;

/// The problem of a state that the history did not record.
pub(crate) const UNRECORDED: &str = "not recorded";

/// The last 10,000 changes, numbered in the order in which they happened.
#[derive(Debug, Default)]
pub(crate) struct RecentChanges {
    changes: VecDeque<(u64, Arc<AppChange>)>,
    last: u64,
}

impl RecentChanges {
    /// Adds changes, which are sorted with the earliest first, and drops the earliest beyond 10,000.
    pub(crate) fn extend(&mut self, changes: Vec<AppChange>) {
        let left_out = changes.len().saturating_sub(MAX_RECENT);
        self.last += left_out as u64;
        for change in changes.into_iter().skip(left_out) {
            self.last += 1;
            self.changes.push_back((self.last, Arc::new(change)));
        }
        let surplus = self.changes.len().saturating_sub(MAX_RECENT);
        self.changes.drain(..surplus);
    }

    /// Returns the changes with their numbers, the latest first: those with numbers below `before`, or all.
    pub(crate) fn before(&self, before: Option<u64>) -> Vec<(u64, Arc<AppChange>)> {
        let older =
            self.changes.iter().rev().filter(|(number, _)| before.is_none_or(|before| *number < before));
        older.map(|(number, change)| (*number, Arc::clone(change))).collect()
    }
}

/// The change of the state of one pair: `before` is `None` if the pair is new, `after` if it is gone.
#[derive(Debug)]
pub(crate) struct Transition {
    /// The wall-clock time at which a view first showed the change.
    pub(crate) at: Timestamp,
    /// The pair after the change; if it is gone, before it.
    pub(crate) pair: Arc<Pair>,
    /// The pair before the change, if it had another target cluster then; else `None`.
    pub(crate) moved: Option<Arc<Pair>>,
    pub(crate) before: Option<PairState>,
    pub(crate) after: Option<PairState>,
    /// False for what is no change for readers: what a cluster tells first of its own apps or of the objects of others,
    /// and that an app of which nothing was observed is listed in another cluster.
    pub(crate) is_news: bool,
}

/// Returns the transitions between two views: of the pairs in `changed`, and of all pairs whose state changed because
/// their home or target became live, stale or lost: `turned` has the places of these clusters, as
/// [`FleetView::turned`] returns them.
pub(crate) fn transitions(
    old: &FleetView,
    new: &FleetView,
    changed: &[PairChange],
    turned: &HashSet<Place>,
) -> Vec<Transition> {
    let came: HashSet<&AppId> = changed
        .iter()
        .filter(|it| it.before.is_none())
        .filter_map(|it| Some(&*it.after.as_ref()?.app))
        .collect();
    let gone =
        changed.iter().filter(|it| it.after.is_none()).filter_map(|it| Some(&*it.before.as_ref()?.app));
    let moved: HashSet<&AppId> = gone.filter(|app| came.contains(app)).collect();
    let mut found: Vec<Transition> =
        changed.iter().filter_map(|change| transition(old, new, change, &moved)).collect();
    if turned.is_empty() {
        return found;
    }
    let told: HashSet<*const Pair> =
        changed.iter().filter_map(|change| change.after.as_ref()).map(Arc::as_ptr).collect();
    // A pair changes with its home, too.
    for (place, cluster) in new.fleet().with_hosts(turned.iter().copied()) {
        for ListedPair { pair, class, .. } in cluster.pairs.iter() {
            let is_turned = turned.contains(&place) || turned.contains(&pair.home.cluster);
            if !is_turned || told.contains(&Arc::as_ptr(pair)) {
                continue;
            }
            let is_news = is_whole(old, pair.home.cluster);
            found.extend(turn_of(pair, old.now(place, class), (new, place, class), is_news));
        }
    }
    found
}

/// Advances a view to `moment`, at which only the cluster at `place` changes its freshness. Returns the transitions of
/// the pairs whose home or target this cluster is.
pub(crate) fn turn(view: &mut FleetView, place: Place, moment: HubTime) -> Vec<Transition> {
    let fleet = Arc::clone(view.fleet());
    let mut before = Vec::new();
    for (shown, cluster) in fleet.with_hosts([place]) {
        let resting = cluster.pairs.iter().filter(|it| shown == place || it.pair.home.cluster == place);
        before.extend(resting.map(|it| (shown, it.pair, it.class, view.now(shown, it.class))));
    }
    view.turn(place, moment);
    let of = |(shown, pair, class, before)| {
        turn_of(pair, before, (view, shown, class), is_whole(view, pair.home.cluster))
    };
    before.into_iter().filter_map(of).collect()
}

/// Returns the transition of an unchanged pair from its state `before` to that in the new view; `None` if history would
/// record the same state for both.
fn turn_of(
    pair: &Arc<Pair>,
    before: PairNow,
    (new, place, class): (&FleetView, Place, &PairClass),
    is_news: bool,
) -> Option<Transition> {
    let after = new.now(place, class);
    if before == after {
        return None;
    }
    let (before, after) = (state(pair, before), state(pair, after));
    let (at, pair) = (new.moment().now, Arc::clone(pair));
    let is_turned = before != after;
    let (before, after) = (Some(before), Some(after));
    is_turned.then_some(Transition { at, pair, moved: None, before, after, is_news })
}

/// Returns the transition of a changed pair; `moved_apps` has the apps that left the list of one cluster and joined that of
/// another one.
fn transition(
    old: &FleetView,
    new: &FleetView,
    change: &PairChange,
    moved_apps: &HashSet<&AppId>,
) -> Option<Transition> {
    let PairChange { place, before, after } = change;
    let of = |view: &FleetView, pair: &Pair| {
        let pairs = &view.fleet().cluster(*place)?.pairs;
        let listed = pairs.get(pairs.find(&pair.app)?)?;
        Some(state(pair, view.now(*place, listed.class)))
    };
    let pair = Arc::clone(after.as_ref().or(before.as_ref())?);
    let target = |pair: &Arc<Pair>| pair.declared.body.target.clone();
    let moved = before.as_ref().filter(|before| target(before) != target(&pair)).cloned();
    let [was_seen, is_seen] =
        [before, after].map(|pair| pair.as_ref().is_some_and(|pair| pair.observed.is_some()));
    let is_news = match (before, after) {
        _ if !was_seen && !is_seen && moved_apps.contains(&*pair.app) => false,
        (Some(_), Some(_)) if !was_seen && is_seen => is_whole(old, pair.shown()),
        (Some(_), _) => true,
        (None, _) => is_whole(old, pair.home.cluster),
    };
    let [before, after] = [(old, before), (new, after)].map(|(view, pair)| of(view, pair.as_ref()?));
    let is_same = before == after && moved.is_none();
    (!is_same).then_some(Transition { at: new.moment().now, pair, moved, before, after, is_news })
}

/// Returns true if any source has told all of the cluster at `place` in a view.
fn is_whole(view: &FleetView, place: Place) -> bool {
    let cluster = view.fleet().cluster(place);
    cluster.is_some_and(|cluster| cluster.sources.iter().any(|source| source.is_whole))
}

/// Makes the state of a pair that the history keeps: health, effective status, sync, and the words of the worst
/// problem, or the freshness of a pair that is not live.
pub(crate) fn state(pair: &Pair, now: PairNow) -> PairState {
    let PairNow { health, effective, sync, .. } = now;
    let dark = |state: FreshnessState| match state {
        FreshnessState::Live => None,
        state => Some(state.as_str()),
    };
    let problem = match (dark(now.observed), dark(now.declared)) {
        (Some(target), _) => Some(target.to_owned()),
        (None, Some(home)) => Some(format!("home {home}")),
        (None, None) => worst_problem(pair).map(|problem| words(problem, effective)),
    };
    PairState { health, effective, sync, problem }
}

/// Makes the state of a pair with these halves at a moment at which home and target were live, as [`state`] does.
pub(crate) fn live_state(declared: &DeclaredHalf, observed: Option<&ObservedHalf>) -> PairState {
    let (health, sync) = (last_health(declared, observed), declared.sync.state);
    let (effective, problem) = match observed {
        Some(_) => (health, worst_of(declared, observed).map(|problem| words(problem, health))),
        None => (Status::Unknown, Some(FreshnessState::Lost.as_str().to_owned())),
    };
    PairState { health, effective, sync, problem }
}

fn words(problem: &Problem, effective: Status) -> String {
    match problem.words() {
        words if words.is_empty() => effective.word().to_owned(),
        words => words,
    }
}

/// Returns true for a state of a time of which the history has nothing but that the pair was not live.
pub(crate) fn is_dark(state: &PairState) -> bool {
    let words = state.problem.as_deref().unwrap_or_default();
    let words = words.strip_prefix("home ").unwrap_or(words);
    let dark = [FreshnessState::Stale, FreshnessState::Lost];
    words == UNRECORDED || dark.into_iter().any(|dark| words == dark.as_str())
}

/// Makes the state that stands for a time without a record: all unknown, with the problem [`UNRECORDED`].
pub(crate) fn unrecorded() -> PairState {
    PairState {
        health: Status::Unknown,
        effective: Status::Unknown,
        sync: SyncState::Unknown,
        problem: Some(UNRECORDED.to_owned()),
    }
}

/// Returns the freshness that the target had when a pair had this state; lost if the state is not recorded.
pub(crate) fn past_freshness(state: &PairState) -> FreshnessState {
    let dark = [FreshnessState::Stale, FreshnessState::Lost];
    let told = dark.into_iter().find(|dark| state.problem.as_deref() == Some(dark.as_str()));
    match state.effective {
        Status::Unknown if state.problem.as_deref() == Some(UNRECORDED) => FreshnessState::Lost,
        Status::Unknown => told.unwrap_or(FreshnessState::Live),
        _ => FreshnessState::Live,
    }
}

/// Makes the row of `/api/v1/changes` for a transition; `None` if it is not news, or the states are equal.
pub(crate) fn row(view: &FleetView, transition: &Transition) -> Option<AppChange> {
    let Transition { pair, before, after, is_news, .. } = transition;
    if !is_news || before == after {
        return None;
    }
    let row = view.row(pair);
    let message = match (after, &row.problem) {
        (None, _) => String::new(),
        (Some(after), Some(problem)) if after.effective == Status::Current || !row.freshness.is_live() => {
            problem.message.to_string()
        }
        (Some(_), _) => row.message.to_string(),
    };
    Some(AppChange {
        at: view.moment().now,
        key: row.key,
        cluster: row.cluster,
        home: row.home,
        delivery: row.delivery,
        namespace: row.namespace,
        name: row.name,
        before: before.clone(),
        after: after.clone(),
        message,
    })
}
