//! The fleet as reports tell of it: rows of apps and clusters, each from the best sources.
//!
//! Each half of a row (declared, observed) comes from the freshest live source that reported it, or from the freshest
//! one if none is live. Of equally live sources those that tell everything come before those of metrics. Sources that report different sync states or health for [`MAX_DISAGREEMENT`] are listed.
//! Moments are times on the hub's clock ([`HubTime::at`]), which runs on while the machine sleeps.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use taffrail_api::report::{
    AppId, ClusterReport, ClusterView, Consequences, Content, DeclaredHalf, HalfSide, HeldHalf, KeptHalf,
    ObservedHalf, Received, Report, ReportError, Vitals, join,
};
use taffrail_api::{AppRow, ClusterList, ClusterRow, ErrorRow, List, RowPart};
use taffrail_apps::{ClusterId, Freshness, FreshnessState};

use crate::checks::FleetChecks;
use crate::clock::HubTime;
use crate::sharing::SharedParts;

/// The time that sources must differ before the difference counts as a [`Disagreement`]: one source learns of a change
/// before the other.
pub const MAX_DISAGREEMENT: Duration = Duration::from_secs(10);

/// The halves of rows that a source reports, and how completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tells {
    /// True if the source reports the apps that the cluster declares.
    pub declared: bool,
    /// True if the source reports the state of the objects in the cluster.
    pub observed: bool,
    /// True if the source leaves parts of its halves unobserved, as metrics do. It then speaks only while no other source is as
    /// live.
    pub is_partial: bool,
    /// True if the source runs on while the hub is started again, so that the digest of what the hub restores may be
    /// equal to the source's.
    pub outlives_hub: bool,
}

impl Tells {
    /// Both halves, as the observer in the hub's own process reports them.
    pub const ALL: Tells = Tells { declared: true, observed: true, is_partial: false, outlives_hub: false };

    /// Both halves, as an agent reports them.
    pub const AGENT: Tells = Tells { outlives_hub: true, ..Tells::ALL };

    /// Both halves, without what metrics cannot tell.
    pub const METRICS: Tells = Tells { is_partial: true, ..Tells::ALL };

    fn side(self, side: HalfSide) -> bool {
        match side {
            HalfSide::Declared => self.declared,
            HalfSide::Observed => self.observed,
        }
    }
}

/// A half of a row about which live sources differ, after sources, live or not, have differed for [`MAX_DISAGREEMENT`]
/// or longer: in the sync state of the declared half, or the health of the observed half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// The cluster that the differing sources report about.
    pub cluster: ClusterId,
    /// The app.
    pub app: AppId,
    /// The half of its row.
    pub side: HalfSide,
    /// The moment of the report since which sources, live or not, differ, on the hub's clock ([`HubTime::at`]).
    pub since: Duration,
}

/// The reason why the hub refused a report of a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    /// The source has not opened a stream of reports about the cluster.
    #[error(
        "the hub refused a report of source '{source_name}', which has opened no stream about cluster {cluster}"
    )]
    NotOpen {
        /// The name of the source.
        source_name: String,
        /// The cluster of the report.
        cluster: ClusterId,
    },
    /// The report does not fit into its stream, for example because its epoch is an earlier one.
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// The clusters of a fleet, and the reports of each source about them.
#[derive(Debug)]
pub struct FleetState {
    clusters: HashMap<ClusterId, KnownCluster>,
    /// The number of clusters ever added to the fleet; the next one gets this number plus one as its place.
    opened: usize,
    /// The halves in which sources of a cluster differ, live or not, each with the moment since which they do.
    differing: BTreeMap<(ClusterId, AppId, HalfSide), Duration>,
    /// The epoch that the next new pair of source and cluster gets for its first stream. Greater than all epochs of
    /// earlier runs, and than those of forgotten sources.
    pub(crate) first_epoch: u64,
    /// The parts that halves share.
    pub(crate) parts: SharedParts,
    /// The results of checks.
    pub(crate) checks: FleetChecks,
}

impl Default for FleetState {
    fn default() -> FleetState {
        FleetState {
            clusters: HashMap::new(),
            opened: 0,
            differing: BTreeMap::new(),
            first_epoch: 1,
            parts: SharedParts::default(),
            checks: FleetChecks::default(),
        }
    }
}

/// A cluster of a fleet, with the sources that report about it.
#[derive(Debug)]
pub(crate) struct KnownCluster {
    /// The place of the cluster in lists: in the order in which clusters were opened.
    pub(crate) place: usize,
    pub(crate) sources: Vec<Source>,
    /// The moment at which the index last gave a sign of life of this cluster to its journal; `None` before the first
    /// one in this run, and again once a source was forgotten.
    pub(crate) noted: Option<Duration>,
}

/// The consequences of a report, with what the fleet knows of its cluster after it.
pub(crate) struct Taken<'f> {
    /// The changes that the report made. Of a source that ends with the hub nothing counts as renewed.
    pub(crate) consequences: Consequences,
    /// True if the report changed whether the source has told all apps, or how many halves were refused or cut.
    pub(crate) is_extent_changed: bool,
    /// True if the cluster gave a sign of life that is later than all before.
    pub(crate) is_heard: bool,
    pub(crate) known: &'f mut KnownCluster,
}

/// A source of reports about one cluster, with the newest reports.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) tells: Tells,
    pub(crate) received: Received,
    /// True if the source has opened a stream in this run; false if it is only known from the store.
    pub(crate) is_open: bool,
}

/// The row of an app, and the place where lists show it.
struct ShownRow {
    /// The place of the cluster that shows the row: the target, or the home if the fleet does not have the target.
    place: usize,
    /// True if the fleet does not have the target cluster.
    is_stray: bool,
    row: AppRow,
}

impl FleetState {
    /// Opens a new stream of reports of `source` about `cluster`, which ends the source's previous stream about it.
    /// Returns the epoch that its reports must carry.
    ///
    /// Keeps the source's earlier reports; those of the new stream prove nothing until it has sent a snapshot of all
    /// halves or an equal digest.
    pub fn open(&mut self, cluster: &ClusterId, source: &str, tells: Tells) -> u64 {
        let opened = &mut self.opened;
        let known = self.clusters.entry(cluster.clone()).or_insert_with(|| {
            *opened += 1;
            KnownCluster { place: *opened, sources: Vec::new(), noted: None }
        });
        if let Some(known) = known.sources.iter_mut().find(|known| *known.name == *source) {
            (known.tells, known.is_open) = (tells, true);
            return known.received.reopen();
        }
        let received = Received::new(cluster.clone(), self.first_epoch);
        known.sources.push(Source { name: source.into(), tells, received, is_open: true });
        self.first_epoch
    }

    /// Adds a cluster with its sources as the last one in lists; does nothing if `sources` is empty.
    pub(crate) fn add(&mut self, cluster: ClusterId, sources: Vec<Source>) {
        if !sources.is_empty() {
            self.opened += 1;
            self.clusters.insert(cluster, KnownCluster { place: self.opened, sources, noted: None });
        }
    }

    /// Iterates over all clusters, in no particular order.
    pub(crate) fn all_known(&self) -> impl Iterator<Item = &KnownCluster> {
        self.clusters.values()
    }

    /// Iterates over the identities of all clusters, in no particular order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &ClusterId> {
        self.clusters.keys()
    }

    /// Iterates over the names and aliases, without empty ones, that the sources of each cluster reported, each with
    /// the cluster's identity.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&ClusterId, &str)> {
        self.clusters.iter().flat_map(|(id, known)| {
            let facts = known.sources.iter().map(|source| &**source.received.facts());
            let names = facts.flat_map(|facts| [&facts.name].into_iter().chain(&facts.aliases));
            names.filter(|name| !name.is_empty()).map(move |name| (id, &**name))
        })
    }

    /// Iterates over the identities, names and aliases of the clusters that a source tells everything of, each with the
    /// identity.
    pub(crate) fn closely_known(&self) -> impl Iterator<Item = (&str, &ClusterId)> {
        self.clusters.iter().flat_map(|(id, known)| {
            let close = known.sources.iter().filter(|source| !source.tells.is_partial);
            let names = close.flat_map(move |source| {
                let facts = &**source.received.facts();
                [&id.0, &facts.name].into_iter().chain(&facts.aliases)
            });
            names.filter(|name| !name.is_empty()).map(move |name| (&**name, id))
        })
    }

    /// Returns the names of each cluster, then its aliases, then its identity, without those that another cluster has, too.
    pub(crate) fn own_names(&self) -> HashMap<ClusterId, Arc<[String]>> {
        let all = || self.names().chain(self.clusters.keys().map(|id| (id, &*id.0)));
        let mut holders: HashMap<&str, Option<&ClusterId>> = HashMap::new();
        for (id, name) in all() {
            let held = holders.entry(name).or_insert(Some(id));
            *held = held.filter(|held| *held == id);
        }
        let mut names: HashMap<&ClusterId, Vec<String>> = HashMap::new();
        for (id, name) in all().filter(|(id, name)| holders.get(name) == Some(&Some(*id))) {
            let own = names.entry(id).or_default();
            if !own.iter().any(|known| known == name) {
                own.push(name.to_owned());
            }
        }
        names.into_iter().map(|(id, names)| (id.clone(), names.into())).collect()
    }

    /// Returns the source of a cluster that was added first; `None` if the fleet does not have the cluster.
    pub(crate) fn first_source(&mut self, cluster: &ClusterId) -> Option<&mut Source> {
        self.clusters.get_mut(cluster)?.sources.first_mut()
    }

    /// Iterates over the sources that have opened no stream in this run and whose last sign of life is at least `time`
    /// before the moment `at`, or missing; each with its cluster.
    pub(crate) fn silent(&self, at: Duration, time: Duration) -> impl Iterator<Item = (&ClusterId, &str)> {
        let is_silent =
            move |source: &&Source| !source.is_open && source.received.age(at).is_none_or(|age| age >= time);
        self.clusters.iter().flat_map(move |(id, known)| {
            known.sources.iter().filter(is_silent).map(move |source| (id, &*source.name))
        })
    }

    /// Removes `source` and its reports from `cluster`, and removes the cluster if it has no other source.
    pub fn forget(&mut self, cluster: &ClusterId, source: &str) {
        let Some(known) = self.clusters.get_mut(cluster) else { return };
        // Its next stream is no earlier one.
        let forgotten = known.sources.iter().filter(|known| *known.name == *source);
        let next = forgotten.map(|source| source.received.epoch() + 1).max();
        self.first_epoch = self.first_epoch.max(next.unwrap_or_default());
        known.sources.retain(|known| *known.name != *source);
        // What is saved of the cluster came from the sources that are left.
        known.noted = None;
        // The other sources may go on to disagree.
        self.differing.retain(|(of, app, side), _| of != cluster || known.differs(app, *side, |_| true));
        if known.sources.is_empty() {
            self.clusters.remove(cluster);
        }
    }

    /// Applies a report of `source`, received at the moment `at`. Returns its consequences, and notes for each app that
    /// they name whether its sources differ.
    ///
    /// # Errors
    /// If the source has no stream about the cluster, or the report does not fit into it.
    pub(crate) fn take(
        &mut self,
        source: &str,
        mut report: Report,
        at: Duration,
    ) -> Result<Taken<'_>, FleetError> {
        let cluster = report.cluster.clone();
        let not_open = || FleetError::NotOpen { source_name: source.to_owned(), cluster: cluster.clone() };
        let known = self.clusters.get_mut(&cluster).ok_or_else(not_open)?;
        let last = known.age(at);
        let own = known.sources.iter_mut().find(|known| *known.name == *source).ok_or_else(not_open)?;
        if let Content::Changes { changed: halves, .. } | Content::Snapshot { halves, .. } =
            &mut report.content
        {
            halves.iter_mut().for_each(|half| self.parts.share(&mut half.body));
        }
        let extent = |own: &Source| (own.received.is_whole(), own.received.refused(), own.received.cut());
        let before = extent(own);
        let mut consequences = own.received.take(report, at)?;
        if !own.tells.outlives_hub {
            consequences.renewed.clear();
        }
        let is_extent_changed = before != extent(own);
        if known.sources.len() > 1 {
            for app in &consequences.changed {
                for side in [HalfSide::Declared, HalfSide::Observed] {
                    let key = (cluster.clone(), app.clone(), side);
                    match known.differs(app, side, |_| true) {
                        true => drop(self.differing.entry(key).or_insert(at)),
                        false => drop(self.differing.remove(&key)),
                    }
                }
            }
        }
        let is_heard = known.age(at).is_some_and(|age| last.is_none_or(|last| age < last));
        Ok(Taken { consequences, is_extent_changed, is_heard, known })
    }

    pub(crate) fn known(&self, cluster: &ClusterId) -> Option<&KnownCluster> {
        self.clusters.get(cluster)
    }

    /// Returns the rows of all apps, sorted by target cluster (by home if the fleet does not have the target), the
    /// first opened first, then by namespace, name, delivery and home, with the errors of all sources.
    pub fn apps(&self, moment: HubTime) -> List<AppRow> {
        List::of(self.rows(moment).into_iter().map(|shown| shown.row).collect(), self.errors())
    }

    /// Returns the rows of all apps, in the order that [`apps`](FleetState::apps) has.
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

    /// Returns the rows of all clusters, the first opened first, with the errors of all sources.
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
            let freshness = source.received.freshness(moment.at, moment.now);
            let name = told_source(&source.name);
            Some(ClusterRow { source: name, ..ClusterRow::new(facts, apps, errors, freshness) })
        };
        List::of(self.in_order().filter_map(row).collect(), self.errors())
    }

    /// Returns the halves of rows whose sources have differed for [`MAX_DISAGREEMENT`] or longer at the moment `at`, if
    /// those that are live then differ; sorted by cluster identity, app and half.
    pub fn disagreements(&self, at: Duration) -> Vec<Disagreement> {
        let is_due = |(key, since): (&(ClusterId, AppId, HalfSide), &Duration)| {
            let (cluster, app, side) = key;
            let known = self.clusters.get(cluster)?;
            let is_due = at.saturating_sub(*since) >= MAX_DISAGREEMENT
                && known.differs(app, *side, |source| source.is_live(at));
            let found =
                Disagreement { cluster: cluster.clone(), app: app.clone(), side: *side, since: *since };
            is_due.then_some(found)
        };
        self.differing.iter().filter_map(is_due).collect()
    }

    /// Returns the row of an app that `home` declares; `None` if no source of `home` reports its declared half. If the
    /// fleet does not have the target cluster, the row is a stray one of `home`.
    fn row(&self, home: &KnownCluster, app: &AppId, moment: HubTime) -> Option<ShownRow> {
        let HubTime { at, now } = moment;
        let declaring = home.best(Some((app, HalfSide::Declared)), at)?;
        let body: &DeclaredHalf = &declaring.received.declared(app)?.body;
        let freshness = declaring.received.freshness_of(app, HalfSide::Declared, at, now)?;
        let declared = HeldHalf { body, freshness, cluster: home.view(moment) };
        let checks = self.checks.told(app, body, at);
        let Some(target) = self.clusters.get(&body.target) else {
            let view = ClusterView { name: &body.target.0, is_live: false, silence: None };
            return Some(ShownRow {
                place: home.place,
                is_stray: true,
                row: join(app, declared, None, view, checks.as_deref(), |id| self.name(id, moment)),
            });
        };
        let observing = target.best(Some((app, HalfSide::Observed)), at);
        let observed = observing.and_then(|source| {
            let freshness = source.received.freshness_of(app, HalfSide::Observed, at, now)?;
            let body: &ObservedHalf = &source.received.observed(app)?.body;
            Some(HeldHalf { body, freshness, cluster: target.view(moment) })
        });
        let row =
            join(app, declared, observed, target.view(moment), checks.as_deref(), |id| self.name(id, moment));
        Some(ShownRow { place: target.place, is_stray: false, row })
    }

    /// Returns the name of a cluster; `None` if the fleet does not have it, or no source told its name.
    fn name(&self, id: &ClusterId, moment: HubTime) -> Option<String> {
        let name = self.clusters.get(id)?.view(moment).name.to_owned();
        Some(name).filter(|name| !name.is_empty())
    }

    fn in_order(&self) -> impl Iterator<Item = &KnownCluster> {
        let mut clusters: Vec<&KnownCluster> = self.clusters.values().collect();
        clusters.sort_by_key(|known| known.place);
        clusters.into_iter()
    }

    /// Returns the errors that all sources report, those of the first opened cluster first.
    fn errors(&self) -> Vec<ErrorRow> {
        let sources = self.in_order().flat_map(|known| &known.sources);
        sources.flat_map(|source| source.received.errors().iter()).cloned().collect()
    }
}

/// The name of the source that follows clusters in the hub's own process.
pub const OBSERVER: &str = "observer";

/// Returns the name of a source as the row of a cluster tells it; `None` for the observer, which reads clusters directly.
pub(crate) fn told_source(name: &str) -> Option<String> {
    (name != OBSERVER).then(|| name.to_owned())
}

impl KnownCluster {
    /// Returns the time from the last proof of the API server through any source to the moment `at`; `None` before the
    /// first proof.
    fn age(&self, at: Duration) -> Option<Duration> {
        self.sources.iter().filter_map(|source| source.received.age(at)).min()
    }

    /// Returns the signs of life of each source.
    pub(crate) fn vitals(&self) -> Box<[Vitals]> {
        self.sources.iter().map(|source| source.received.vitals()).collect()
    }

    fn best(&self, half: Option<(&AppId, HalfSide)>, at: Duration) -> Option<&Source> {
        self.sources.get(self.best_place(half, at)?)
    }

    /// Returns the index in `sources` of the best source at the moment `at`. Considers only sources that report this half
    /// of an app, or all sources if `half` is `None`. Returns `None` if there is no such source.
    pub(crate) fn best_place(&self, half: Option<(&AppId, HalfSide)>, at: Duration) -> Option<usize> {
        let can_tell = |source: &Source| match half {
            None => true,
            Some((app, side)) => source.tells.side(side) && source.has(app, side),
        };
        let best = match half {
            Some((_, HalfSide::Declared)) => self.best_declaring(at, |source| can_tell(source).then_some(())),
            _ => self.best_with(at, |source| can_tell(source).then_some(())),
        };
        best.map(|(place, ())| place)
    }

    /// Returns what [`best_with`](KnownCluster::best_with) returns for the source of a declared half: a source that tells
    /// everything, however fresh, before those that do not. Only such a one knows the key, the labels and the target of an
    /// app, and others' guesses would move its row.
    pub(crate) fn best_declaring<'s, T>(
        &'s self,
        at: Duration,
        told: impl Fn(&'s Source) -> Option<T>,
    ) -> Option<(usize, T)> {
        let whole = self.best_with(at, |source| told(source).filter(|_| !source.tells.is_partial));
        whole.or_else(|| self.best_with(at, told))
    }

    /// Returns the index in `sources` of the best source at the moment `at` of those for which `told` returns something,
    /// and what it returns: live before stale before lost, then those that tell everything, then the one that proved itself last. Returns `None` if there
    /// is no such source.
    pub(crate) fn best_with<'s, T>(
        &'s self,
        at: Duration,
        told: impl Fn(&'s Source) -> Option<T>,
    ) -> Option<(usize, T)> {
        let all = self.sources.iter().enumerate();
        let telling = all.filter_map(|(place, source)| Some((place, source, told(source)?)));
        let best = telling.min_by_key(|(_, source, _)| {
            let age = source.received.age(at);
            (source.received.state(at), source.is_partial(), age.is_none(), age)
        });
        best.map(|(place, _, told)| (place, told))
    }

    /// Iterates over the apps of which any source reports the declared half in this cluster, each app once.
    pub(crate) fn declared_apps(&self) -> impl Iterator<Item = &AppId> {
        let telling = self.sources.iter().enumerate().filter(|(_, source)| source.tells.declared);
        telling.flat_map(move |(place, source)| {
            let before = self.sources.iter().take(place).filter(|source| source.tells.declared);
            let is_first =
                move |app: &&AppId| !before.clone().any(|before| before.has(app, HalfSide::Declared));
            source.received.declared_apps().filter(is_first)
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

    /// Returns true if any two of the sources for which `counts` returns true report different sync states (declared
    /// half) or health (observed half) of an app. Those that cannot tell it do not count.
    fn differs(&self, app: &AppId, side: HalfSide, counts: impl Fn(&Source) -> bool) -> bool {
        let telling = self.sources.iter().filter(|source| source.tells.side(side) && counts(source));
        match side {
            HalfSide::Declared => {
                let told = |declared: &KeptHalf<DeclaredHalf>| {
                    let is_told = !declared.body.unobserved.has(RowPart::Sync);
                    is_told.then_some(declared.body.sync.state)
                };
                are_several(telling.filter_map(|source| source.received.declared(app).and_then(told)))
            }
            HalfSide::Observed => {
                let told = |observed: &KeptHalf<ObservedHalf>| {
                    let is_told = !observed.body.unobserved.has(RowPart::Health);
                    is_told.then_some(observed.body.health)
                };
                are_several(telling.filter_map(|source| source.received.observed(app).and_then(told)))
            }
        }
    }
}

/// Returns true if any two of the items differ.
fn are_several<T: PartialEq>(mut items: impl Iterator<Item = T>) -> bool {
    items.next().is_some_and(|first| items.any(|other| other != first))
}

impl Source {
    /// Returns true if the source leaves parts of the halves of this cluster unobserved.
    fn is_partial(&self) -> bool {
        self.tells.is_partial || self.received.facts().is_light
    }

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
