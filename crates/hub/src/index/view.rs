//! A fleet at one moment: the freshness of its clusters, and the rows that follow from it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use taffrail_api::report::{ClusterReport, ClusterView, HeldHalf, NotLive, Vitals, join};
use taffrail_api::{AppRow, ClusterRow, ErrorRow};
use taffrail_apps::{Axis, ClusterId, Freshness, FreshnessState, ProblemSeverity, SyncState};
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use super::classes::CountedClass;
use super::pair::{Axes, JudgedPair, Pair, PairClass, Place};
use super::published::{PublishedCluster, PublishedFleet, PublishedSource};
use crate::clock::HubTime;
use crate::fleet::told_source;

/// A published fleet at one moment of the hub's clock, with the freshness of each source at it.
#[derive(Debug, Clone)]
pub struct FleetView {
    fleet: Arc<PublishedFleet>,
    moment: HubTime,
    /// The number of the publication that made the view, which grows with each; `None` if none did.
    number: Option<u64>,
    /// The freshness of each source, those of one cluster beside each other.
    states: Arc<Vec<SourceStates>>,
    /// The index in `states` of the first source of each cluster.
    first: Arc<[usize]>,
    /// Indexed by the place of a cluster, for answers that concern few of all clusters.
    marks: Arc<Vec<ClusterMarks>>,
    /// The first moment after that of the view at which a source becomes stale or lost if no other report comes, or an
    /// earlier one; `None` if none does.
    next_turn: Option<Duration>,
}

/// The signs of life of a source, and the freshness that it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SourceStates {
    vitals: Vitals,
    /// The freshness of the cluster as a whole.
    cluster: FreshnessState,
    /// The freshness by the proofs of the API server alone.
    proof: FreshnessState,
}

/// Facts about a cluster that an answer states if they are true.
#[derive(Debug, Clone, Copy, Default)]
struct ClusterMarks {
    /// True if its rows are incomplete or old.
    has_gap: bool,
    /// True if a source reports errors.
    has_errors: bool,
}

impl SourceStates {
    fn of(vitals: Vitals, at: Duration) -> SourceStates {
        SourceStates { cluster: vitals.cluster_state(at), proof: vitals.state(at), vitals }
    }

    /// Returns true if the source shows the same freshness as `other`, whenever it was heard last.
    fn shows_the_same(&self, other: &SourceStates) -> bool {
        (self.cluster, self.proof) == (other.cluster, other.proof)
    }
}

/// The source whose facts and freshness stand for its cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpeakingSource<'c> {
    place: Place,
    /// The index among the sources of the cluster.
    number: usize,
    pub(crate) told: &'c PublishedSource,
}

/// The present state of a pair: the values that also depend on the freshness of its clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairNow {
    /// The freshness of what was observed in the target.
    pub(crate) observed: FreshnessState,
    /// The freshness of what the home declares.
    pub(crate) declared: FreshnessState,
    pub(crate) health: Status,
    pub(crate) effective: Status,
    pub(crate) sync: SyncState,
    /// The axes on which it has problems, freshness included.
    pub(crate) axes: Axes,
    /// The severity of the worst problem; `None` if it has none.
    pub(crate) severity: Option<ProblemSeverity>,
}

impl PairNow {
    /// Returns true if the pair has a problem that is more than a notice.
    pub(crate) fn is_pressing(self) -> bool {
        self.severity.is_some_and(|severity| severity != ProblemSeverity::Notice)
    }

    /// Returns true if the observed or the declared half is not live.
    pub(crate) fn is_dark(self) -> bool {
        self.observed != FreshnessState::Live || self.declared != FreshnessState::Live
    }
}

/// Returns the earlier of two moments that may not come.
fn earlier(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    [one, other].into_iter().flatten().min()
}

/// The apps whose objects a cluster holds, counted by what they are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AppCounts {
    /// The worst effective status of those with a problem that is more than a notice; Current if none has one.
    pub(crate) worst: Status,
    pub(crate) apps: usize,
    /// The number of those with a problem that is more than a notice.
    pub(crate) pressing: usize,
    /// True if further apps may exist that could not be read.
    pub(crate) is_unread: bool,
}

/// A cluster, and the apps whose objects it holds, as reports tell of them.
#[derive(Debug, Clone)]
pub struct ReportedCluster {
    /// The row of the cluster.
    pub row: ClusterRow,
    /// The facts about the cluster as a whole.
    pub facts: Arc<ClusterReport>,
    /// The scopes that could not be read, and other failures.
    pub errors: Vec<ErrorRow>,
    /// The rows of the apps.
    pub apps: Vec<AppRow>,
}

impl FleetView {
    /// Makes the view of a fleet without clusters at a moment.
    pub(crate) fn empty(moment: HubTime) -> FleetView {
        FleetView::of(Arc::default(), moment, |_| Vec::new())
    }

    /// Makes the view of a published fleet at a moment; `vitals` returns the signs of life of each source of the cluster
    /// at a place.
    pub(super) fn of(
        fleet: Arc<PublishedFleet>,
        moment: HubTime,
        vitals: impl Fn(Place) -> Vec<Vitals>,
    ) -> FleetView {
        let mut states = Vec::with_capacity(fleet.clusters.len());
        let mut first = Vec::with_capacity(fleet.clusters.len());
        let mut next_turn: Option<Duration> = None;
        for place in 0..fleet.clusters.len() {
            first.push(states.len());
            for vitals in vitals(place) {
                next_turn = earlier(next_turn, vitals.next_change(moment.at));
                states.push(SourceStates::of(vitals, moment.at));
            }
        }
        let mut view = FleetView {
            fleet,
            moment,
            number: None,
            states: Arc::new(states),
            first: first.into(),
            marks: Arc::default(),
            next_turn,
        };
        view.marks = Arc::new((0..view.fleet.clusters.len()).map(|place| view.marks_of(place)).collect());
        view
    }

    /// Makes the view of the same publication at a later moment.
    pub(crate) fn at(&self, moment: HubTime) -> FleetView {
        match self.turns_by(moment.at) {
            true => FleetView::of(Arc::clone(&self.fleet), moment, |place| self.vitals_of(place)),
            false => FleetView { moment, number: None, ..self.clone() },
        }
    }

    fn vitals_of(&self, place: Place) -> Vec<Vitals> {
        self.states_of(place).iter().map(|state| state.vitals.clone()).collect()
    }

    fn marks_of(&self, place: Place) -> ClusterMarks {
        let Some(cluster) = self.fleet.cluster(place) else { return ClusterMarks::default() };
        let has_errors = cluster.sources.iter().any(|source| !source.errors.is_empty());
        ClusterMarks { has_gap: self.gap(cluster).is_some(), has_errors }
    }

    /// Makes the view of the publication that follows the one of this view. `heard` has the signs of life of each source
    /// of the clusters of which a report came or that were published again, and `touched` the places of these and of
    /// all others at which `fleet` has another cluster than the fleet of this view. Looks at these alone, unless a source
    /// turns meanwhile without a report, or there are other sources.
    pub(crate) fn next(
        &self,
        fleet: Arc<PublishedFleet>,
        moment: HubTime,
        (heard, touched): (&FxHashMap<Place, Box<[Vitals]>>, &[Place]),
    ) -> FleetView {
        let number = Some(self.number.unwrap_or_default() + 1);
        let sources = |place: Place| fleet.cluster(place).map_or(0, |cluster| cluster.sources.len());
        let has_other_sources = |place: &Place| {
            !self.has_same_cluster(&fleet, *place) && self.states_of(*place).len() != sources(*place)
        };
        let is_remade = self.turns_by(moment.at)
            || fleet.clusters.len() != self.first.len()
            || touched.iter().any(has_other_sources);
        if is_remade {
            let vitals = |place| {
                let told = heard.get(&place).map(|vitals| vitals.to_vec());
                let mut vitals = told.unwrap_or_else(|| self.vitals_of(place));
                vitals.truncate(sources(place));
                vitals
            };
            return FleetView { number, ..FleetView::of(Arc::clone(&fleet), moment, vitals) };
        }
        let mut view = FleetView { fleet, moment, number, ..self.clone() };
        for place in touched {
            view.next_turn = earlier(view.next_turn, view.judge(*place, heard.get(place).map(|it| &**it)));
            let is_live = |state: &SourceStates| state.cluster == FreshnessState::Live;
            let is_still_live = match (self.states_of(*place), view.states_of(*place)) {
                ([before], [now]) => is_live(before) && is_live(now),
                // Of several another one may speak now.
                _ => false,
            };
            if !is_still_live || !self.has_same_cluster(&view.fleet, *place) {
                view.mark(*place);
            }
        }
        view
    }

    /// Returns true if `fleet` has the very same cluster at a place as the fleet of this view.
    fn has_same_cluster(&self, fleet: &PublishedFleet, place: Place) -> bool {
        match (self.fleet.cluster(place), fleet.cluster(place)) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }

    /// Returns true if a source may become stale or lost without a report after the moment of this view, up to and
    /// including `end`.
    pub(crate) fn turns_by(&self, end: Duration) -> bool {
        self.next_turn.is_some_and(|next| next <= end)
    }

    /// Updates the freshness of the cluster at `place` to the moment of this view, by the signs of life `heard` if some
    /// came. Returns the first moment after it at which one of its sources becomes stale or lost if no other report
    /// comes; `None` if none does.
    fn judge(&mut self, place: Place, heard: Option<&[Vitals]>) -> Option<Duration> {
        let (first, end) = self.range_of(place);
        let mut next = None;
        for (number, state) in Arc::make_mut(&mut self.states).get_mut(first..end)?.iter_mut().enumerate() {
            let vitals = heard.and_then(|heard| heard.get(number)).unwrap_or(&state.vitals);
            next = earlier(next, vitals.next_change(self.moment.at));
            *state = SourceStates::of(vitals.clone(), self.moment.at);
        }
        next
    }

    fn mark(&mut self, place: Place) {
        let marks = self.marks_of(place);
        if let Some(slot) = Arc::make_mut(&mut self.marks).get_mut(place) {
            *slot = marks;
        }
    }

    /// Iterates over those of `places`, or of all places, whose cluster's rows are incomplete or old.
    pub(super) fn with_gaps(&self, places: Option<&[Place]>) -> impl Iterator<Item = Place> {
        self.marked(places, |marks| marks.has_gap)
    }

    /// Iterates over those of `places`, or of all places, of whose cluster a source reports errors.
    pub(super) fn with_errors(&self, places: Option<&[Place]>) -> impl Iterator<Item = Place> {
        self.marked(places, |marks| marks.has_errors)
    }

    fn marked(
        &self,
        places: Option<&[Place]>,
        is_marked: fn(&ClusterMarks) -> bool,
    ) -> impl Iterator<Item = Place> {
        let some = places.into_iter().flatten().copied();
        let all = 0..if places.is_none() { self.marks.len() } else { 0 };
        some.chain(all).filter(move |place| self.marks.get(*place).is_some_and(is_marked))
    }

    /// Returns the number of the publication that made the view, which grows with each; `None` if none did.
    pub(crate) fn number(&self) -> Option<u64> {
        self.number
    }

    /// Returns the moments, after that of this view and up to and including `end`, at which a source of a cluster
    /// becomes stale or lost without a report, each with the cluster's place; the earliest first.
    pub(crate) fn turns_until(&self, end: Duration) -> Vec<(Duration, Place)> {
        let mut turns = Vec::new();
        if !self.turns_by(end) {
            return turns;
        }
        for (place, _) in self.fleet.all() {
            for SourceStates { vitals, .. } in self.states_of(place) {
                let next = |at: &Duration| vitals.next_change(*at);
                let all = std::iter::successors(next(&self.moment.at), next);
                turns.extend(all.take_while(|at| *at <= end).map(|at| (at, place)));
            }
        }
        turns.sort_unstable();
        turns.dedup();
        turns
    }

    /// Advances the view to `moment`, and updates the freshness of the cluster at `place` only. The caller makes sure
    /// that no other one changes until then.
    pub(crate) fn turn(&mut self, place: Place, moment: HubTime) {
        self.moment = moment;
        // Later turns are not searched.
        self.next_turn = self.next_turn.map(|next| next.min(moment.at));
        self.judge(place, None);
        self.mark(place);
    }

    /// Returns the moment at which the fleet is viewed.
    pub fn moment(&self) -> HubTime {
        self.moment
    }

    /// Returns the published fleet.
    pub fn fleet(&self) -> &Arc<PublishedFleet> {
        &self.fleet
    }

    /// Returns the freshness of the cluster at `place` by its source with this index; lost if there is no such source.
    fn state(&self, place: Place, source: u16) -> FreshnessState {
        let state = self.states_of(place).get(usize::from(source));
        state.map_or(FreshnessState::Lost, |state| state.cluster)
    }

    /// Returns those of `places` whose cluster `old` does not have, or whose freshness by any source, as a whole or by
    /// its proofs alone, differs from that in `old`, or that are not wholly live and of which a sign of life came
    /// since.
    pub(crate) fn turned(&self, old: &FleetView, places: &[Place]) -> HashSet<Place> {
        let is_turned = |place: &Place| {
            if self.fleet.cluster(*place).is_none() {
                return false;
            }
            let (own, before) = (self.states_of(*place), old.states_of(*place));
            let is_known = old.fleet.cluster(*place).is_some() && own.len() == before.len();
            if !is_known || !own.iter().zip(before).all(|(own, before)| own.shows_the_same(before)) {
                return true;
            }
            // The time of the last observation may change although the cluster was not live before either.
            !own.iter().all(|it| it.cluster == FreshnessState::Live) && own != before
        };
        places.iter().copied().filter(is_turned).collect()
    }

    /// Returns true if the cluster at any of `places`, which both views have, has another name, or other aliases or
    /// labels, than in `old`.
    pub(crate) fn is_renamed(&self, old: &FleetView, places: &[Place]) -> bool {
        let both = |place: &Place| self.fleet.cluster(*place).zip(old.fleet.cluster(*place));
        places.iter().filter_map(both).any(|(cluster, before)| {
            if Arc::ptr_eq(before, cluster) {
                return false;
            }
            let (own, before) = (self.speaker(cluster), old.speaker(before));
            let [own, before] = [own, before].map(|source| source.map(|source| &source.told.facts));
            let called = |facts: Option<&Arc<ClusterReport>>| {
                facts.map(|it| (it.name.clone(), it.aliases.clone(), it.labels.clone()))
            };
            let is_same = own.zip(before).is_some_and(|(own, before)| Arc::ptr_eq(own, before));
            !is_same && called(own) != called(before)
        })
    }

    /// Returns true if both views have the same clusters at `places`, with the same facts and errors of each source.
    pub(crate) fn tells_the_same(&self, old: &FleetView, places: &[Place]) -> bool {
        let is_same = |place: &Place| {
            let (own, old) = (self.fleet.cluster(*place), old.fleet.cluster(*place));
            let (Some(own), Some(old)) = (own, old) else { return own.is_none() && old.is_none() };
            let mut sources = own.sources.iter().zip(&*old.sources);
            let is_told = |(own, old): (&PublishedSource, &PublishedSource)| {
                Arc::ptr_eq(&own.facts, &old.facts) && own.errors == old.errors
            };
            Arc::ptr_eq(own, old) || own.sources.len() == old.sources.len() && sources.all(is_told)
        };
        places.iter().all(is_same)
    }

    fn states_of(&self, place: Place) -> &[SourceStates] {
        let (first, end) = self.range_of(place);
        self.states.get(first..end).unwrap_or_default()
    }

    /// Returns the indices in `states` of the first source of a cluster, and of the one after its last.
    fn range_of(&self, place: Place) -> (usize, usize) {
        let first = |place: Place| self.first.get(place).copied().unwrap_or(self.states.len());
        (first(place), first(place + 1))
    }

    /// Computes the present state of the pairs of a class; `place` is that of the cluster that shows them.
    pub(crate) fn now(&self, place: Place, class: &PairClass) -> PairNow {
        let observed = class.observer.map_or(FreshnessState::Lost, |source| self.state(place, source));
        let observed = Vitals::state_of(observed, class.observed);
        let declared = self.state(class.home.cluster, class.home.source);
        let declared = Vitals::state_of(declared, class.declared);
        let is_live = |state| state == FreshnessState::Live;
        let is_dark = !is_live(observed) || !is_live(declared);
        let (axes, severity) = match is_dark {
            true => (class.axes.with(Axis::Freshness), Some(ProblemSeverity::Error)),
            false => (class.axes, class.severity),
        };
        PairNow {
            observed,
            declared,
            health: class.health,
            effective: if is_live(observed) { class.health } else { Status::Unknown },
            sync: if is_live(declared) { class.sync } else { SyncState::Unknown },
            axes,
            severity,
        }
    }

    /// Returns the Unix time in microseconds by which pairs are sorted by the time since which they are not well: for a
    /// pair that is not live the time at which it was observed last; `None` if it is unknown. Stays the same while the
    /// problem does: moments of the hub's clock are converted by what both clocks showed when the index was made,
    /// whatever the wall clock does since.
    pub(crate) fn since(&self, JudgedPair { pair, since, .. }: JudgedPair<'_>, now: PairNow) -> Option<i64> {
        if !now.is_dark() {
            return since;
        }
        let micros = |at: Duration| i64::try_from(at.as_micros()).ok();
        let begun = self.fleet.begun.unwrap_or(self.moment);
        let after = micros(self.dark_since(pair, now)?)?.checked_sub(micros(begun.at)?)?;
        begun.now.as_microsecond().checked_add(after)
    }

    /// Returns the moment of the hub's clock at which the half that is not live was observed last: the observed half,
    /// or the declared one if the observed half is live. `None` if it never was.
    fn dark_since(&self, pair: &Pair, now: PairNow) -> Option<Duration> {
        if now.observed == FreshnessState::Live {
            let vitals = self.vitals(pair.home.cluster, pair.home.source)?;
            return self.proved(vitals, pair.declared.body.not_live, pair.declared.received);
        }
        let ((source, kept), target) = pair.observed.as_ref().zip(pair.target)?;
        self.proved(self.vitals(target, *source)?, kept.body.not_live, kept.received)
    }

    /// Returns the wall-clock time at which the half that is not live was observed last; `None` if it never was.
    pub(crate) fn dark_at(&self, pair: &Pair, now: PairNow) -> Option<Timestamp> {
        let passed = self.moment.at.saturating_sub(self.dark_since(pair, now)?);
        self.moment.now.checked_sub(SignedDuration::try_from(passed).ok()?).ok()
    }

    /// Returns the moment of the hub's clock at which a half was observed last; `None` if it never was.
    fn proved(&self, vitals: &Vitals, own: Option<NotLive>, received: Duration) -> Option<Duration> {
        let at = self.moment.at;
        vitals.age_of(own, received, at).map(|age| at.saturating_sub(age))
    }

    fn vitals(&self, place: Place, source: u16) -> Option<&Vitals> {
        self.states_of(place).get(usize::from(source)).map(|state| &state.vitals)
    }

    /// Returns the source from which the name, facts and freshness of a cluster are taken: live before stale before
    /// lost, then the one with the latest sign of life. `None` if the cluster has no source.
    pub(crate) fn speaker<'c>(&self, cluster: &'c PublishedCluster) -> Option<SpeakingSource<'c>> {
        let speaking = |(number, told)| SpeakingSource { place: cluster.place, number, told };
        if let [only] = &*cluster.sources {
            return Some(speaking((0, only)));
        }
        let states = self.states_of(cluster.place);
        let all = cluster.sources.iter().enumerate().map(speaking);
        all.min_by_key(|source| {
            let vitals = states.get(source.number).map(|state| &state.vitals);
            let age = vitals.and_then(|vitals| vitals.age(self.moment.at));
            let state = vitals.map_or(FreshnessState::Lost, |vitals| vitals.state(self.moment.at));
            (state, age.is_none(), age)
        })
    }

    /// Returns the freshness of a cluster by one source, at the moment of this view.
    pub(crate) fn freshness(&self, source: SpeakingSource<'_>) -> Freshness {
        let state = self.states_of(source.place).get(source.number);
        state.map_or(Freshness::never(), |it| it.vitals.freshness(self.moment.at, self.moment.now))
    }

    /// Returns the name of a cluster by its best source; empty if that reported none.
    pub(crate) fn name<'c>(&self, cluster: &'c PublishedCluster) -> &'c str {
        self.speaker(cluster).map_or("", |source| &source.told.facts.name)
    }

    /// Returns the labels of a cluster by its best source; `None` if it has no source.
    pub(crate) fn labels<'c>(&self, cluster: &'c PublishedCluster) -> Option<&'c BTreeMap<String, String>> {
        self.speaker(cluster).map(|source| &source.told.facts.labels)
    }

    /// Returns true if a cluster has the identity `name`, or, by its best source, the name or an alias `name`.
    pub(crate) fn is_called(&self, cluster: &PublishedCluster, name: &str) -> bool {
        let facts = self.speaker(cluster).map(|source| &*source.told.facts);
        let is_name = |it: &ClusterReport| it.name == name || it.aliases.iter().any(|alias| alias == name);
        cluster.id.0 == name || facts.is_some_and(is_name)
    }

    /// Iterates over the places of the clusters that have the identity `name`, first, or, by their best sources, the name
    /// or an alias `name`, the first opened first.
    pub(crate) fn called(&self, name: &str) -> impl Iterator<Item = Place> {
        let identified = self.fleet.places.get(&ClusterId(name.to_owned())).copied();
        let named = self.fleet.called.places(name).iter().copied().filter(move |it| Some(*it) != identified);
        let is_called =
            move |place: &Place| self.fleet.cluster(*place).is_some_and(|it| self.is_called(it, name));
        identified.into_iter().chain(named).filter(is_called)
    }

    fn cluster_view<'c>(&self, cluster: &'c PublishedCluster) -> ClusterView<'c> {
        let source = self.speaker(cluster);
        ClusterView {
            name: source.map_or("", |source| &source.told.facts.name),
            is_live: source.is_some_and(|source| self.freshness(source).is_live()),
            silence: source.and_then(|source| source.told.facts.lost.as_ref()).map(|lost| &*lost.message),
        }
    }

    /// Makes the app's row of a pair at the moment of this view.
    pub(crate) fn row(&self, pair: &Pair) -> AppRow {
        let HubTime { at, now } = self.moment;
        let freshness = |vitals: Option<&Vitals>, own, received| {
            vitals.map_or(Freshness::never(), |vitals| vitals.freshness_of(own, received, at, now))
        };
        let view = |place: Place, id: &ClusterId| {
            let known = self.fleet.cluster(place).map(|cluster| self.cluster_view(cluster));
            known.map_or_else(
                || (id.0.clone(), false, None),
                |it| (it.name.to_owned(), it.is_live, it.silence),
            )
        };
        let (home, target) = (pair.home.cluster, &pair.declared.body.target);
        let (home_name, home_is_live, home_silence) = view(home, &pair.app.home);
        let (name, is_live, silence) = match pair.target {
            Some(place) => view(place, target),
            None => (target.0.clone(), false, None),
        };
        let declared = HeldHalf {
            body: &*pair.declared.body,
            freshness: freshness(
                self.vitals(home, pair.home.source),
                pair.declared.body.not_live,
                pair.declared.received,
            ),
            cluster: ClusterView { name: &home_name, is_live: home_is_live, silence: home_silence },
        };
        let target = ClusterView { name: &name, is_live, silence };
        let observed = pair.observed.as_ref().zip(pair.target).map(|((source, kept), place)| HeldHalf {
            body: &*kept.body,
            freshness: freshness(self.vitals(place, *source), kept.body.not_live, kept.received),
            cluster: target,
        });
        let name = |id: &ClusterId| {
            let place = self.fleet.places.get(id)?;
            Some(self.cluster_view(self.fleet.cluster(*place)?).name.to_owned())
                .filter(|name| !name.is_empty())
        };
        join(&pair.app, declared, observed, target, pair.checks.as_deref(), name)
    }

    /// Makes the row of the cluster at a place, without the objects that stand for it; `None` if there is no cluster, or it
    /// has no source.
    pub(crate) fn cluster_row(&self, place: Place) -> Option<ClusterRow> {
        let cluster = self.fleet.cluster(place)?;
        let source = self.named_speaker(cluster)?;
        Some(self.row_of_cluster(source, &self.rows(cluster)))
    }

    /// Makes the rows of the apps whose objects a cluster holds.
    fn rows(&self, cluster: &PublishedCluster) -> Vec<AppRow> {
        let pairs = cluster.pairs.pairs.iter().filter(|pair| pair.target.is_some());
        pairs.map(|pair| self.row(pair)).collect()
    }

    /// Makes the row of the cluster that `source` speaks for, whose apps are `apps`.
    fn row_of_cluster(&self, source: SpeakingSource<'_>, apps: &[AppRow]) -> ClusterRow {
        let apps: Vec<&AppRow> = apps.iter().collect();
        let PublishedSource { name, facts, errors, .. } = source.told;
        ClusterRow {
            source: told_source(name),
            ..ClusterRow::new(facts, &apps, errors.len(), self.freshness(source))
        }
    }

    /// Returns the clusters whose names `is_wanted` returns true for, with their apps and without the objects that stand for
    /// them, sorted by name.
    pub fn reported(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<ReportedCluster> {
        let mut found = Vec::new();
        for (_, cluster) in self.fleet.all() {
            let Some(source) =
                self.named_speaker(cluster).filter(|source| is_wanted(&source.told.facts.name))
            else {
                continue;
            };
            let apps = self.rows(cluster);
            found.push(ReportedCluster {
                row: self.row_of_cluster(source, &apps),
                facts: Arc::clone(&source.told.facts),
                errors: source.told.errors.to_vec(),
                apps,
            });
        }
        found.sort_by(|one, other| one.row.name.cmp(&other.row.name));
        found
    }

    /// Returns the source that speaks for a cluster; `None` if it has none, or that has not told the name of the cluster
    /// yet: the name comes with the first report of a stream.
    pub(super) fn named_speaker<'c>(&self, cluster: &'c PublishedCluster) -> Option<SpeakingSource<'c>> {
        self.speaker(cluster).filter(|source| !source.told.facts.name.is_empty())
    }

    /// Returns the present status of the cluster at a place, and the number of its apps with a problem that is more
    /// than a notice, as its row shows them; `None` if it has no row.
    pub(crate) fn cluster_status(&self, place: Place) -> Option<(Status, usize)> {
        let (freshness, counts) = self.cluster_counts(place)?;
        let status = match freshness.is_live() {
            true if counts.is_unread => counts.worst.min(Status::Unknown),
            true => counts.worst,
            false => Status::Unknown,
        };
        Some((status, counts.pressing))
    }

    /// Returns the freshness of the cluster at a place, and the counts of its apps; `None` if it has no row.
    pub(crate) fn cluster_counts(&self, place: Place) -> Option<(Freshness, AppCounts)> {
        let cluster = self.fleet.cluster(place)?;
        let source = self.named_speaker(cluster)?;
        let mut counts = AppCounts { worst: Status::Current, apps: 0, pressing: 0, is_unread: false };
        let own = cluster.pairs.classes.iter().filter(|it| it.pairs > 0 && !it.class.is_stray);
        for CountedClass { class, pairs } in own {
            counts.apps += pairs;
            let now = self.now(place, class);
            if now.is_pressing() {
                counts.pressing += pairs;
                counts.worst = counts.worst.min(now.effective);
            }
        }
        let facts = &source.told.facts;
        let is_unseen = facts.is_empty_dump && counts.worst == Status::Current;
        counts.is_unread = facts.blind.is_some() || is_unseen;
        Some((self.freshness(source), counts))
    }

    /// Counts the pairs of an app and a target cluster by the effective status at the moment of this view: one whose
    /// observed half is not live counts as Unknown.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (place, cluster) in self.fleet.all() {
            for CountedClass { class, pairs } in cluster.pairs.classes.iter() {
                counts.add_many(self.now(place, class).effective, *pairs);
            }
        }
        counts
    }

    /// Iterates over the errors that all sources of a cluster report.
    pub(crate) fn errors<'c>(&self, cluster: &'c PublishedCluster) -> impl Iterator<Item = &'c ErrorRow> {
        cluster.sources.iter().flat_map(|source| source.errors.iter())
    }
}
