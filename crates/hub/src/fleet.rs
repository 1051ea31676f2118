//! The fleet as reports tell of it: rows of apps and clusters, each from the best sources.
//!
//! For each half of a row the freshest live source that can tell it speaks. Two live sources that tell different things
//! for [`MAX_DISAGREEMENT`] are listed. Moments are durations since the start of the hub, by a clock that runs on while
//! the machine sleeps.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use taffrail_api::report::{
    AppId, ClusterReport, ClusterView, Consequences, DeclaredHalf, HalfSide, HeldHalf, KeptHalf,
    ObservedHalf, Received, Report, ReportError, join,
};
use taffrail_api::{AppRow, ClusterList, ClusterRow, ErrorRow, List};
use taffrail_apps::{ClusterId, Freshness, FreshnessState};

use crate::clock::HubTime;

/// The time for which two live sources may differ, because one learns of a change before the other.
pub const MAX_DISAGREEMENT: Duration = Duration::from_secs(10);

/// The halves of rows that a source reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tells {
    /// True if the source reports the apps that the cluster declares.
    pub declared: bool,
    /// True if the source reports the state of the objects in the cluster.
    pub observed: bool,
}

impl Tells {
    /// Both halves, as an observer reports them.
    pub const ALL: Tells = Tells { declared: true, observed: true };

    fn side(self, side: HalfSide) -> bool {
        match side {
            HalfSide::Declared => self.declared,
            HalfSide::Observed => self.observed,
        }
    }
}

/// Two live sources that have reported different contents of one half of a row for [`MAX_DISAGREEMENT`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// The cluster that both sources report.
    pub cluster: ClusterId,
    /// The app.
    pub app: AppId,
    /// The half of its row.
    pub side: HalfSide,
    /// The moment since when they differ.
    pub since: Duration,
}

/// The reason why a report was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    /// The source has no stream about the cluster.
    #[error("source '{source_name}' has opened no stream about cluster {cluster}")]
    NotOpen {
        /// The source.
        source_name: String,
        /// The cluster.
        cluster: ClusterId,
    },
    /// The report does not fit into its stream.
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// The clusters of a fleet, and the reports of each source about them.
#[derive(Debug)]
pub struct FleetState {
    clusters: HashMap<ClusterId, KnownCluster>,
    /// The number of clusters that were ever opened, which is the place of the next one.
    opened: usize,
    /// The halves in which two sources differ, with the moment since when.
    differing: BTreeMap<(ClusterId, AppId, HalfSide), Duration>,
    /// The epoch of the first stream of each source about a cluster: greater than all epochs of earlier runs.
    pub(crate) first_epoch: u64,
}

impl Default for FleetState {
    fn default() -> FleetState {
        FleetState { clusters: HashMap::new(), opened: 0, differing: BTreeMap::new(), first_epoch: 1 }
    }
}

#[derive(Debug)]
pub(crate) struct KnownCluster {
    /// The place of the cluster in lists: in the order in which clusters were opened.
    pub(crate) place: usize,
    pub(crate) sources: Vec<Source>,
}

#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) tells: Tells,
    pub(crate) received: Received,
    /// False if only an earlier run of the hub knew the source.
    pub(crate) is_open: bool,
}

/// The row of an app, and the place where lists show it.
struct ShownRow {
    /// The place of the cluster that shows the row: the target, or the home if no source reports the target.
    place: usize,
    /// True if no source reports the target.
    is_stray: bool,
    row: AppRow,
}

impl FleetState {
    /// Begins a stream of reports of `source` about `cluster`; ends the one before. Returns its epoch.
    ///
    /// Earlier reports of the source stay, and prove nothing until it sends a snapshot or an equal digest.
    pub fn open(&mut self, cluster: &ClusterId, source: &str, tells: Tells) -> u64 {
        let opened = &mut self.opened;
        let known = self.clusters.entry(cluster.clone()).or_insert_with(|| {
            *opened += 1;
            KnownCluster { place: *opened, sources: Vec::new() }
        });
        if let Some(known) = known.sources.iter_mut().find(|known| known.name == source) {
            (known.tells, known.is_open) = (tells, true);
            return known.received.reopen();
        }
        let received = Received::new(cluster.clone(), self.first_epoch);
        known.sources.push(Source { name: source.to_owned(), tells, received, is_open: true });
        self.first_epoch
    }

    /// Adds a cluster with its sources.
    pub(crate) fn add(&mut self, cluster: ClusterId, sources: Vec<Source>) {
        if !sources.is_empty() {
            self.opened += 1;
            self.clusters.insert(cluster, KnownCluster { place: self.opened, sources });
        }
    }

    /// Iterates over the identities of all clusters.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &ClusterId> {
        self.clusters.keys()
    }

    /// Iterates over the names and aliases that sources told of the clusters, with the identities of these.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&ClusterId, &str)> {
        self.clusters.iter().flat_map(|(id, known)| {
            let facts = known.sources.iter().map(|source| &**source.received.facts());
            let names = facts.flat_map(|facts| [&facts.name].into_iter().chain(&facts.aliases));
            names.filter(|name| !name.is_empty()).map(move |name| (id, &**name))
        })
    }

    /// Returns the first source of a cluster.
    pub(crate) fn first_source(&mut self, cluster: &ClusterId) -> Option<&mut Source> {
        self.clusters.get_mut(cluster)?.sources.first_mut()
    }

    /// Iterates over the sources that have reported nothing in this run, nor for `time` before the moment `at`, with
    /// their clusters.
    pub(crate) fn silent(&self, at: Duration, time: Duration) -> impl Iterator<Item = (&ClusterId, &str)> {
        let is_silent =
            move |source: &&Source| !source.is_open && source.received.age(at).is_none_or(|age| age >= time);
        self.clusters.iter().flat_map(move |(id, known)| {
            known.sources.iter().filter(is_silent).map(move |source| (id, &*source.name))
        })
    }

    /// Drops the reports of `source` about `cluster`, and the cluster if no other source reports it.
    pub fn forget(&mut self, cluster: &ClusterId, source: &str) {
        let Some(known) = self.clusters.get_mut(cluster) else { return };
        // Its next stream is no earlier one.
        let forgotten = known.sources.iter().filter(|known| known.name == source);
        let next = forgotten.map(|source| source.received.epoch() + 1).max();
        self.first_epoch = self.first_epoch.max(next.unwrap_or_default());
        known.sources.retain(|known| known.name != source);
        self.differing.retain(|(of, ..), _| of != cluster);
        if known.sources.is_empty() {
            self.clusters.remove(cluster);
        }
    }

    /// Applies a report of `source`, received at the moment `at`.
    ///
    /// # Errors If the source has no stream about the cluster, or the report does not fit into it.
    pub fn take(&mut self, source: &str, report: Report, at: Duration) -> Result<Consequences, FleetError> {
        let cluster = report.cluster.clone();
        let not_open = || FleetError::NotOpen { source_name: source.to_owned(), cluster: cluster.clone() };
        let known = self.clusters.get_mut(&cluster).ok_or_else(not_open)?;
        let own = known.sources.iter_mut().find(|known| known.name == source).ok_or_else(not_open)?;
        let consequences = own.received.take(report, at)?;
        if known.sources.len() > 1 {
            for app in &consequences.changed {
                for side in [HalfSide::Declared, HalfSide::Observed] {
                    let key = (cluster.clone(), app.clone(), side);
                    match known.differs(app, side) {
                        true => drop(self.differing.entry(key).or_insert(at)),
                        false => drop(self.differing.remove(&key)),
                    }
                }
            }
        }
        Ok(consequences)
    }

    pub(crate) fn known(&self, cluster: &ClusterId) -> Option<&KnownCluster> {
        self.clusters.get(cluster)
    }

    /// Returns the rows of all apps: by cluster in the order in which clusters were opened, then by namespace, name,
    /// delivery and home.
    pub fn apps(&self, moment: HubTime) -> List<AppRow> {
        List::of(self.rows(moment).into_iter().map(|shown| shown.row).collect(), self.errors())
    }

    /// Returns the rows of all apps in their order.
    fn rows(&self, moment: HubTime) -> Vec<ShownRow> {
        let mut rows: Vec<ShownRow> = Vec::new();
        for home in self.clusters.values() {
            for app in home.declared_apps() {
                rows.extend(self.row(home, app, moment));
            }
        }
        rows.sort_by(|one, other| {
            let key =
                |row: &AppRow| (row.namespace.clone(), row.name.clone(), row.delivery, row.home.clone());
            one.place.cmp(&other.place).then_with(|| key(&one.row).cmp(&key(&other.row)))
        });
        rows
    }

    /// Returns the rows of all clusters, in the order in which they were opened.
    pub fn clusters(&self, moment: HubTime) -> ClusterList {
        // Two clusters may have one name.
        let rows = self.rows(moment);
        let mut of_cluster: HashMap<usize, Vec<&AppRow>> = HashMap::new();
        for ShownRow { place, row, .. } in rows.iter().filter(|shown| !shown.is_stray) {
            of_cluster.entry(*place).or_default().push(row);
        }
        let row = |known: &KnownCluster| {
            let source = known.best(None, moment.at)?;
            let facts = source.received.facts();
            let apps = of_cluster.get(&known.place).map(Vec::as_slice).unwrap_or_default();
            let errors = source.received.errors().len();
            Some(ClusterRow::new(facts, apps, errors, source.received.freshness(moment.at, moment.now)))
        };
        List::of(self.in_order().filter_map(row).collect(), self.errors())
    }

    /// Returns the halves of rows in which two live sources have differed for [`MAX_DISAGREEMENT`].
    pub fn disagreements(&self, at: Duration) -> Vec<Disagreement> {
        let is_due = |(key, since): (&(ClusterId, AppId, HalfSide), &Duration)| {
            let (cluster, app, side) = key;
            let known = self.clusters.get(cluster)?;
            let live = known.sources.iter().filter(|source| source.is_live(at) && source.tells.side(*side));
            let is_due = at.saturating_sub(*since) >= MAX_DISAGREEMENT && live.count() > 1;
            let found =
                Disagreement { cluster: cluster.clone(), app: app.clone(), side: *side, since: *since };
            is_due.then_some(found)
        };
        self.differing.iter().filter_map(is_due).collect()
    }

    /// Returns the row of an app that `home` declares.
    fn row(&self, home: &KnownCluster, app: &AppId, moment: HubTime) -> Option<ShownRow> {
        let HubTime { at, now } = moment;
        let declaring = home.best(Some((app, HalfSide::Declared)), at)?;
        let body: &DeclaredHalf = &declaring.received.declared(app)?.body;
        let freshness = declaring.received.freshness_of(app, HalfSide::Declared, at, now)?;
        let declared = HeldHalf { body, freshness, cluster: home.view(moment) };
        let Some(target) = self.clusters.get(&body.target) else {
            let view = ClusterView { name: &body.target.0, is_live: false, silence: None };
            return Some(ShownRow {
                place: home.place,
                is_stray: true,
                row: join(app, declared, None, view),
            });
        };
        let observing = target.best(Some((app, HalfSide::Observed)), at);
        let observed = observing.and_then(|source| {
            let freshness = source.received.freshness_of(app, HalfSide::Observed, at, now)?;
            let body: &ObservedHalf = &source.received.observed(app)?.body;
            Some(HeldHalf { body, freshness, cluster: target.view(moment) })
        });
        let row = join(app, declared, observed, target.view(moment));
        Some(ShownRow { place: target.place, is_stray: false, row })
    }

    fn in_order(&self) -> impl Iterator<Item = &KnownCluster> {
        let mut clusters: Vec<&KnownCluster> = self.clusters.values().collect();
        clusters.sort_by_key(|known| known.place);
        clusters.into_iter()
    }

    /// Returns the failures of all clusters, in their order.
    fn errors(&self) -> Vec<ErrorRow> {
        let sources = self.in_order().flat_map(|known| &known.sources);
        sources.flat_map(|source| source.received.errors().iter()).cloned().collect()
    }
}

impl KnownCluster {
    fn best(&self, half: Option<(&AppId, HalfSide)>, at: Duration) -> Option<&Source> {
        self.sources.get(self.best_place(half, at)?)
    }

    /// Returns the place of the source that is used for the cluster: of those that report this half of an app (with
    /// `None`, of all sources) the freshest live one, else the freshest.
    pub(crate) fn best_place(&self, half: Option<(&AppId, HalfSide)>, at: Duration) -> Option<usize> {
        let can_tell = |(_, source): &(usize, &Source)| match half {
            None => true,
            Some((app, side)) => source.tells.side(side) && source.has(app, side),
        };
        let best = self.sources.iter().enumerate().filter(can_tell).min_by_key(|(_, source)| {
            let age = source.received.age(at);
            (source.received.state(at), age.is_none(), age)
        });
        best.map(|(place, _)| place)
    }

    /// Iterates over the apps that the cluster declares, each once.
    fn declared_apps(&self) -> impl Iterator<Item = &AppId> {
        let told =
            |source: &Source, app: &AppId| source.tells.declared && source.has(app, HalfSide::Declared);
        self.sources.iter().enumerate().flat_map(move |(place, source)| {
            let is_first = move |app: &&AppId| {
                told(source, app) && !self.sources.iter().take(place).any(|before| told(before, app))
            };
            source.received.apps().filter(is_first)
        })
    }

    fn view(&self, moment: HubTime) -> ClusterView<'_> {
        let source = self.best(None, moment.at);
        let facts: Option<&ClusterReport> = source.map(|source| &**source.received.facts());
        let freshness: Option<Freshness> =
            source.map(|source| source.received.freshness(moment.at, moment.now));
        ClusterView {
            name: facts.map_or("", |facts| &facts.name),
            is_live: freshness.is_some_and(|freshness| freshness.is_live()),
            silence: facts.and_then(|facts| facts.lost.as_ref()).map(|lost| &*lost.message),
        }
    }

    /// Returns true if two sources have reported different contents of a half.
    fn differs(&self, app: &AppId, side: HalfSide) -> bool {
        let mut told = self.sources.iter().filter(|source| source.tells.side(side));
        let Some(first) = told.find(|source| source.has(app, side)) else { return false };
        told.any(|other| {
            let (first, other) = (&first.received, &other.received);
            match side {
                HalfSide::Declared => {
                    let told = |declared: &KeptHalf<DeclaredHalf>| declared.body.sync.state;
                    let (one, two) = (first.declared(app).map(told), other.declared(app).map(told));
                    two.is_some() && one != two
                }
                HalfSide::Observed => {
                    let told = |observed: &KeptHalf<ObservedHalf>| observed.body.health;
                    let (one, two) = (first.observed(app).map(told), other.observed(app).map(told));
                    two.is_some() && one != two
                }
            }
        })
    }
}

impl Source {
    fn has(&self, app: &AppId, side: HalfSide) -> bool {
        match side {
            HalfSide::Declared => self.received.declared(app).is_some(),
            HalfSide::Observed => self.received.observed(app).is_some(),
        }
    }

    fn is_live(&self, at: Duration) -> bool {
        self.received.state(at) == FreshnessState::Live
    }
}

#[cfg(test)]
mod tests;
