//! Transitions that come late: an agent noted them while it was not connected.
//!
//! They are added to the history of their pairs, and change no present state. What the hub knows already is left out: a
//! transition before the last one that history has of the pair, times in which the pair was not live aside, and one to
//! the state that the pair had. The state before a transition is that which history has, whatever the agent says.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taffrail_api::hub::PairState;
use taffrail_api::report::{AppId, AppTransition, DeclaredHalf, HalfThen, MAX_APPS, ObservedHalf};
use taffrail_apps::ClusterId;

use super::journal::{Journal, time_of};
use super::pair::Pair;
use super::recent::{is_dark, live_state, unrecorded};
use super::{FleetIndex, FleetView, lock, saving};
use crate::clock::HubTime;
use crate::store::{HistoryEntry, PageQuery, PairId, PairTransition, SpoolRecord, Store, StoreError};

/// The number of entries of a pair's history that one read returns, and the number of reads, in search of its last state.
const ENTRIES: NonZeroUsize = NonZeroUsize::new(16).unwrap();
const READS: usize = 4;

/// The time after which a pair whose state by reports is not that after its last late transition gets a transition to it,
/// and that after which it gets none any more.
const SETTLED: Duration = Duration::from_secs(30);
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// The time that a message takes at most, as far as known: reports tell what came later than that after the begin of a
/// session.
const ON_THE_WAY: SignedDuration = SignedDuration::from_secs(1);

/// An entry of the spool of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LateEntry {
    /// A transition, at a time.
    Transition(Timestamp, AppTransition),
    /// A time of which the spool does not have all transitions.
    Gap(Range<Timestamp>),
}

/// The transitions of the apps of one cluster that a source sends late, in one session.
#[derive(Debug)]
pub(crate) struct LateEntries {
    cluster: ClusterId,
    source: &'static str,
    /// The time from which on reports tell all changes.
    begun: Timestamp,
    apps: HashMap<AppId, LateApp>,
    /// The last gap.
    gap: Option<Range<Timestamp>>,
}

/// An app of which transitions came late.
#[derive(Debug)]
struct LateApp {
    declared: Option<Arc<DeclaredHalf>>,
    observed: Option<Arc<ObservedHalf>>,
    /// True if the source may tell of the half.
    tells_declared: bool,
    tells_observed: bool,
    /// The pair in history, and its last state there with the time since when it has it.
    pair: Option<PairId>,
    state: Option<PairState>,
    since: Option<Timestamp>,
    /// True once a transition was taken: those that follow are new, too, whatever their times.
    is_told: bool,
    /// The transitions that were found.
    found: Vec<PairTransition>,
}

impl LateEntries {
    /// Makes the collection for a session of `source` that began at the time `begun`.
    pub(crate) fn new(cluster: ClusterId, source: &'static str, begun: Timestamp) -> LateEntries {
        LateEntries { cluster, source, begun, apps: HashMap::new(), gap: None }
    }

    /// Finds the transitions that history does not have. Returns them, and the state of each of their pairs after the last
    /// one.
    ///
    /// # Errors
    /// If the store cannot be read.
    async fn found(
        &mut self,
        index: &FleetIndex,
        store: &dyn Store,
        entries: Vec<LateEntry>,
    ) -> Result<(Vec<PairTransition>, Vec<(PairId, Option<PairState>)>), StoreError> {
        let apps = entries.iter().filter_map(|entry| match entry {
            LateEntry::Transition(_, transition) => Some(&transition.app),
            LateEntry::Gap(_) => None,
        });
        for app in apps.cloned().collect::<Vec<_>>() {
            // More than a cluster may have is no cluster's.
            if !self.apps.contains_key(&app) && self.apps.len() < 2 * MAX_APPS {
                let late = self.begin(index, store, &app).await?;
                self.apps.insert(app, late);
            }
        }
        // Its age grew on the way.
        let latest = self.begun.saturating_add(ON_THE_WAY).unwrap_or(self.begun);
        for entry in entries {
            match entry {
                LateEntry::Gap(gap) => {
                    let told = self.apps.values_mut().filter(|app| app.is_told);
                    told.for_each(|app| app.mark(&gap));
                    self.gap = Some(gap);
                }
                LateEntry::Transition(at, transition) if at <= latest => {
                    let app = self.apps.get_mut(&transition.app);
                    // History of what others tell is not the agent's to write.
                    let Some(app) = app.filter(|app| app.tells_declared || app.tells_observed) else {
                        continue;
                    };
                    app.take(at, transition, self.gap.as_ref(), &self.cluster);
                }
                // Reports tell it.
                LateEntry::Transition(..) => {}
            }
        }
        let (mut found, mut states) = (Vec::new(), Vec::new());
        for app in self.apps.values_mut().filter(|app| !app.found.is_empty()) {
            states.extend(app.found.iter().map(|it| (it.pair.clone(), it.after.clone())));
            found.append(&mut app.found);
        }
        found.sort_by_key(|transition| transition.at);
        Ok((found, states))
    }

    /// Looks up what the hub and its history know of an app.
    async fn begin(&self, index: &FleetIndex, store: &dyn Store, app: &AppId) -> Result<LateApp, StoreError> {
        let mut late = index.late_app(app, &self.cluster, self.source);
        let Some(pair) = late.pair.clone() else { return Ok(late) };
        // The halves are those of now, so history must be, too: from others than the agent some may have come since.
        let until = index.clock().time().now.max(self.begun);
        let mut page = PageQuery::first(ENTRIES);
        for _ in 0..READS {
            let read = store.history(pair.clone(), Timestamp::MIN..until, page.clone()).await?;
            let last = read.items.into_iter().find_map(|entry| match entry {
                HistoryEntry::Transition(it) if !it.after.as_ref().is_some_and(is_dark) => Some(it),
                _ => None,
            });
            if let Some(last) = last {
                (late.state, late.since) = (last.after, Some(last.at));
                break;
            }
            let Some(next) = read.next else { break };
            page = page.next(next);
        }
        Ok(late)
    }
}

impl LateApp {
    /// Adds a transition to the state "not recorded" at the begin of a gap.
    fn mark(&mut self, gap: &Range<Timestamp>) {
        if self.state.as_ref().is_none_or(is_dark) || self.since.is_some_and(|since| since >= gap.end) {
            return;
        }
        let at = self.after_since(gap.start);
        self.turn(at, self.pair.clone(), Some(unrecorded()));
    }

    /// Returns the time, but a later one than that of the last transition.
    fn after_since(&self, at: Timestamp) -> Timestamp {
        let next = self.since.and_then(|since| since.checked_add(SignedDuration::from_micros(1)).ok());
        next.map_or(at, |next| at.max(next))
    }

    fn turn(&mut self, at: Timestamp, pair: Option<PairId>, after: Option<PairState>) {
        let before = std::mem::replace(&mut self.state, after.clone());
        self.since = Some(at);
        let old = std::mem::replace(&mut self.pair, pair.clone());
        match (old, pair) {
            (Some(old), Some(pair)) if old != pair => {
                self.found.push(PairTransition { pair: old, at, before, after: None });
                self.found.push(PairTransition { pair, at, before: None, after });
            }
            (_, Some(pair)) | (Some(pair), None) => {
                self.found.push(PairTransition { pair, at, before, after });
            }
            (None, None) => {}
        }
    }

    /// Applies a transition that an agent of `cluster` noted at the time `at`.
    fn take(
        &mut self,
        at: Timestamp,
        new: AppTransition,
        gap: Option<&Range<Timestamp>>,
        cluster: &ClusterId,
    ) {
        if !self.is_told && self.since.is_some_and(|since| at <= since) {
            return;
        }
        self.is_told = true;
        let AppTransition { app, declared, observed } = new;
        match declared.filter(|_| self.tells_declared) {
            Some(HalfThen::Is(half)) => self.declared = Some(Arc::new(*half)),
            Some(HalfThen::Gone) => self.declared = None,
            None => {}
        }
        match observed.filter(|_| self.tells_observed) {
            Some(HalfThen::Is(half)) => self.observed = Some(Arc::new(*half)),
            Some(HalfThen::Gone) => self.observed = None,
            None => {}
        }
        let (pair, after) = match &self.declared {
            None => (self.pair.clone(), None),
            Some(declared) => {
                // What the cluster observes of an app in another one is about others.
                let is_here = declared.target == *cluster || !self.tells_observed;
                let observed = self.observed.as_deref().filter(|_| is_here);
                let pair = PairId { cluster: declared.target.clone(), app };
                (Some(pair), Some(live_state(declared, observed)))
            }
        };
        if let Some(gap) = gap.filter(|gap| gap.end <= at) {
            self.mark(gap);
        }
        if after != self.state || (pair != self.pair && after.is_some()) {
            self.turn(self.after_since(at), pair, after);
        }
    }
}

impl FleetIndex {
    /// Returns true if the hub keeps history.
    pub(crate) fn keeps_history(&self) -> bool {
        self.journal.is_some()
    }

    /// Returns the time at which `source` last told of a sign of life of a cluster; `None` if it never did.
    pub(crate) fn heard(&self, cluster: &ClusterId, source: &str) -> Option<Timestamp> {
        let moment = self.clock.time();
        let owner = lock(&self.owner);
        let known = owner.fleet.known(cluster)?;
        let source = known.sources.iter().find(|known| *known.name == *source)?;
        let age = source.received.age(moment.at)?;
        Some(time_of(moment.at.saturating_sub(age), moment))
    }

    /// Returns what the hub knows of an app of which `source` in `cluster` sends transitions late.
    fn late_app(&self, app: &AppId, cluster: &ClusterId, source: &str) -> LateApp {
        let at = self.clock.time().at;
        let owner = lock(&self.owner);
        let pair = Pair::of(&owner.fleet, app, at);
        let name = |place: usize, cluster: &ClusterId| {
            let known = owner.fleet.known(cluster);
            known.and_then(|known| known.sources.get(place)).is_some_and(|known| *known.name == *source)
        };
        let target = pair.as_ref().map(|pair| pair.declared.body.target.clone());
        let observed = pair.as_ref().and_then(|pair| pair.observed.as_ref());
        let is_from = |pair: &Pair| name(pair.home.source.into(), &app.home);
        let is_seen = |source: u16| target.as_ref().is_some_and(|target| name(source.into(), target));
        let tells_declared = app.home == *cluster && pair.as_ref().is_none_or(is_from);
        // Another source of the cluster may have seen it all.
        let tells_observed = target.as_ref().is_none_or(|target| target == cluster)
            && observed.is_none_or(|(source, _)| is_seen(*source));
        let declared = pair.as_ref().map(|pair| Arc::clone(&pair.declared.body));
        let observed = observed.map(|(_, kept)| Arc::clone(&kept.body));
        let state = declared.as_ref().map(|declared| live_state(declared, observed.as_deref()));
        LateApp {
            pair: target.map(|cluster| PairId { cluster, app: app.clone() }),
            declared,
            observed,
            tells_declared,
            tells_observed,
            state: state.filter(|state| !is_dark(state)),
            since: None,
            is_told: false,
            found: Vec::new(),
        }
    }

    /// Adds the transitions among `entries` that history does not have to it, and notes the place in the spool up to which it
    /// then has them. They are saved once [`saved`](FleetIndex::saved) says so. Returns false if too many wait to be
    /// saved.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn take_late(
        &self,
        store: &dyn Store,
        late: &mut LateEntries,
        entries: Vec<LateEntry>,
        spool: SpoolRecord,
    ) -> Result<bool, StoreError> {
        let Some(journal) = &self.journal else { return Ok(false) };
        let (found, states) = late.found(self, store, entries).await?;
        Ok(journal.late(found, states, spool, self.clock.time().at))
    }
}

/// Adds the transitions of pairs whose state after their last late transition is not that in `view`, though no report
/// changed it since: the spool had a gap, or the agent noted what it never reported.
pub(super) fn settle(journal: &Journal, view: &FleetView, moment: HubTime) {
    for pair in journal.unsettled(moment.at, SETTLED, FORGOTTEN) {
        let shown = saving::shown(view, &pair).map(|(_, _, pair, state)| (pair, state));
        match shown {
            // It is known once its cluster is heard again.
            Some((_, state)) if is_dark(&state) => {}
            shown => journal.settle(&pair, shown, moment.now),
        }
    }
}
