//! Passes the differences between two states of a fleet to the streams of reports.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use taffrail_api::ErrorRow;
use taffrail_api::report::{
    AppId, ClusterReport, HalfBody, HalfId, HalfSide, MAX_NAME, ManagedCluster, ReportStreams, halves,
};
use taffrail_apps::{
    App, AppError, AppRef, ChangedRows, ClusterId, FleetMember, Freshness, Objects, Scope, Snapshot,
    SyncAttempt, members, syncs,
};
use taffrail_object::json::Value;
use taffrail_status::ClusterState as _;

use super::groups::ChangedGroups;
use crate::fleet::FleetSnapshot;
use crate::found::MemberChanges;

/// The age from which a comparison of the fleet computes the facts about all clusters again, even if nothing shows that
/// they changed. In a quiet fleet comparisons are up to 30 s apart.
const FACTS: Duration = Duration::from_secs(5);

/// The time for which changes of a cluster are held back while evidence for them is being read.
const EVIDENCE: Duration = Duration::from_millis(400);

/// Maximum length, in bytes, of an identity that a cluster reports; a longer one counts as none.
const MAX_ID: usize = MAX_NAME;

/// The progress of reading a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// The cluster has not answered yet.
    Connecting,
    /// An answer that the cluster's apps need is missing.
    Unsettled,
    /// All answers that the cluster's apps need have come, or the cluster cannot be reached.
    Settled,
}

/// Compares each state of a fleet with the one before, and passes the differences to the streams of reports.
#[derive(Debug, Default)]
pub(super) struct FleetTeller {
    /// The clusters, by the index of their snapshot.
    clusters: Vec<ToldCluster>,
    /// The index of each cluster by its name.
    by_name: HashMap<String, usize>,
    errors: Vec<AppError>,
    /// The moment at which the facts about the clusters were computed last.
    facts_at: Option<Duration>,
    /// True if something changed since then, which may be a fact.
    owes_facts: bool,
    /// The identity that each cluster had in an earlier run, or before it was read from the beginning again, by its
    /// name.
    earlier: HashMap<String, ClusterId>,
    /// The names of the watched clusters that Secrets of others name.
    found: HashSet<String>,
    /// The packages of kpt whose rows may have changed, if somebody writes their statuses.
    pub(super) groups: Option<ChangedGroups>,
}

/// A cluster, and the state of its reports.
#[derive(Debug)]
struct ToldCluster {
    id: ClusterId,
    /// True if this is another name of a cluster before it in the list, so that it is not reported.
    is_alias: bool,
    /// True once a row with this cluster as home or target was told.
    has_rows: bool,
    /// The moment since which an answer that the cluster's apps need is missing; `None` if none is.
    unsettled: Option<Duration>,
    /// The freshness of the cluster at the last comparison, and the stale scopes, each with the time of its last
    /// answer.
    freshness: (Freshness, Vec<(Scope, jiff::Timestamp)>),
}

impl FleetTeller {
    /// Makes a teller for a hub that has reports of an earlier run, in which the clusters of these names had these
    /// identities; provisional ones are ignored.
    pub(super) fn knowing(mut identities: HashMap<String, ClusterId>) -> FleetTeller {
        identities.retain(|_, id| !is_provisional(id));
        FleetTeller { earlier: identities, ..FleetTeller::default() }
    }

    /// Sets which clusters Secrets of others name. The hub keeps the rows of those that are read from the beginning
    /// until they were read, and forgets those of an earlier run that no Secret names any more.
    pub(super) fn set_found(&mut self, changes: MemberChanges, streams: &mut ReportStreams) {
        let MemberChanges { found, restarted, complete } = changes;
        // Labels may be others.
        self.facts_at = None;
        for (home, names) in complete {
            let is_gone = |name: &str| home_of_found(name) == Some(&*home) && !names.contains(name);
            self.earlier.retain(|name, id| {
                let is_gone = is_gone(name) && !self.by_name.contains_key(name);
                if is_gone {
                    streams.forget(id);
                }
                !is_gone
            });
        }
        self.earlier.retain(|name, _| !self.found.contains(name) || found.contains(name));
        self.found = found;
        for name in restarted {
            let known = self.by_name.get(&name).and_then(|place| self.clusters.get(*place));
            if let Some(known) = known.filter(|known| !known.is_alias && !is_provisional(&known.id)) {
                self.earlier.insert(name, known.id.clone());
            }
        }
    }

    /// Passes the differences since the last call to `streams`. `reading` has the progress of each cluster; while
    /// `is_comparing`, streams of clusters that may be aliases are not begun.
    ///
    /// Returns the indexes of the clusters whose apps changed; empty if all rows were passed again.
    pub(super) fn compare(
        &mut self,
        fleet: &FleetSnapshot,
        reading: &[ReadProgress],
        is_comparing: bool,
        streams: &mut ReportStreams,
        now: Duration,
    ) -> BTreeSet<usize> {
        let changed = fleet.changed_apps(|list, changed| {
            let is_renamed = self.identify(&fleet.snapshots, streams);
            let is_all = changed.is_all || is_renamed || streams.needs_pass();
            if let Some(groups) = &mut self.groups {
                groups.note(list, changed, is_all);
            }
            let begun = self.begin_streams(fleet, reading, is_comparing, streams, now);
            let touched = match is_all {
                true => {
                    streams.begin_pass();
                    let all = 0..list.apps.len();
                    self.tell_all(all, fleet, &list.apps, streams, now);
                    streams.end_pass(now);
                    BTreeSet::new()
                }
                false => {
                    self.tell_of(&begun, fleet, &list.apps, streams, now);
                    self.tell_changed(fleet, &list.apps, changed, streams, now)
                }
            };
            let has_errors = self.errors != list.errors;
            if has_errors {
                self.errors.clone_from(&list.errors);
            }
            let is_due = self.facts_at.is_none_or(|at| now.saturating_sub(at) >= FACTS);
            let has_begun = !begun.is_empty();
            if self.note_freshness(&fleet.snapshots) || is_all || has_begun || has_errors || is_due {
                (self.facts_at, self.owes_facts) = (Some(now), false);
                self.tell_facts(fleet, streams, now);
            } else {
                self.owes_facts = true;
            }
            touched
        });
        for (cluster, reading) in self.clusters.iter_mut().zip(reading) {
            cluster.unsettled = match reading {
                ReadProgress::Settled => None,
                ReadProgress::Connecting | ReadProgress::Unsettled => cluster.unsettled.or(Some(now)),
            };
            streams.hold(&cluster.id, cluster.unsettled.map_or(Duration::ZERO, |since| since + EVIDENCE));
        }
        changed.unwrap_or_default()
    }

    /// Returns true if the facts about the clusters are due at the moment `now`, whether anything changes then or not: a
    /// node may have turned unready since they were told last, and nothing else.
    pub(super) fn owes_facts(&self, now: Duration) -> bool {
        self.owes_facts && self.facts_at.is_some_and(|at| now.saturating_sub(at) >= FACTS)
    }

    /// Passes the moment of the last sign of life of each cluster, except aliases, to `streams`.
    pub(super) fn hear(&self, heard: &[Option<Duration>], streams: &mut ReportStreams) {
        for (cluster, heard) in self.clusters.iter().zip(heard).filter(|(cluster, _)| !cluster.is_alias) {
            streams.set_heard(&cluster.id, *heard);
        }
    }

    /// Determines the identity of each cluster, and closes the streams of identities that no cluster has any more. Returns
    /// true if rows were told under an identity that changed, so that a pass is needed.
    fn identify(&mut self, snapshots: &[Snapshot], streams: &mut ReportStreams) -> bool {
        let all: Vec<&dyn Objects> = snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect();
        let identities: HashMap<String, Option<String>> = members(&all)
            .iter()
            .map(|member| (member.objects.name().to_owned(), member.identity()))
            .collect();
        let mut known_before: HashMap<String, ToldCluster> = HashMap::new();
        let mut all_before: Vec<Option<ToldCluster>> =
            std::mem::take(&mut self.clusters).into_iter().map(Some).collect();
        for (name, place) in std::mem::take(&mut self.by_name) {
            let Some(known) = all_before.get_mut(place).and_then(Option::take) else { continue };
            known_before.insert(name, known);
        }
        let before = |name: &str| known_before.get(name).map(|known| &known.id);
        let names: HashSet<&str> = snapshots.iter().map(|snapshot| snapshot.name()).collect();
        // Who still says what it said before keeps its identity, whoever else says that now.
        let kept = |snapshot: &Snapshot| {
            let id = before(snapshot.name()).or_else(|| self.earlier.get(snapshot.name()))?;
            let is_kept = identities.contains_key(snapshot.name()) && snapshot.id() == Some(id);
            is_kept.then_some(id)
        };
        let mut taken: HashSet<ClusterId> = snapshots.iter().filter_map(kept).cloned().collect();
        let mut of_earlier = taken.clone();
        let (mut clusters, mut needs_pass) = (Vec::new(), false);
        for snapshot in snapshots {
            let name = snapshot.name();
            let identity = identities.get(name).cloned();
            // A name is that of its own cluster.
            let is_sound = |id: &String| is_sound(id) && !names.contains(&**id);
            let own = match self.found.contains(name) {
                true => found_identity(snapshot),
                false => identity.clone().flatten().filter(is_sound).map(ClusterId),
            };
            // One that is read again from the beginning is still the one that it was, and one that was not read yet is that
            // of an earlier run, under the first of its names.
            let known = before(name).filter(|id| !is_provisional(id));
            let earlier = self.earlier.get(name);
            let earlier = earlier.filter(|id| own.is_none() && known.is_none_or(|known| known == *id));
            let is_alias = identity.is_none() || earlier.is_some_and(|id| !of_earlier.insert(id.clone()));
            let own = own.or_else(|| known.or(earlier).cloned());
            let id = match kept(snapshot) {
                Some(id) => id.clone(),
                None => {
                    let mut id = own.filter(|_| !is_alias).unwrap_or_else(|| provisional(name));
                    // Nobody takes the place of another one.
                    while !is_alias && !taken.insert(id.clone()) {
                        id = ClusterId(format!("{id}@{name}"));
                    }
                    id
                }
            };
            let known = known_before.get(name);
            let is_same = known.is_some_and(|known| known.id == id && known.is_alias == is_alias);
            needs_pass |= !is_same && known.is_some_and(|known| known.has_rows);
            clusters.push(ToldCluster {
                id,
                is_alias,
                has_rows: known.is_some_and(|known| known.has_rows),
                unsettled: known.and_then(|known| known.unsettled),
                freshness: known.map_or_else(
                    || (snapshot.freshness(), snapshot.stale_scopes().to_vec()),
                    |known| known.freshness.clone(),
                ),
            });
        }
        let is_gone = |(name, known): (&String, &ToldCluster)| known.has_rows && !names.contains(&**name);
        needs_pass |= known_before.iter().any(is_gone);
        self.by_name = snapshots
            .iter()
            .enumerate()
            .map(|(place, snapshot)| (snapshot.name().to_owned(), place))
            .collect();
        self.clusters = clusters;
        let gone: Vec<ClusterId> = streams.clusters().filter(|id| !taken.contains(*id)).cloned().collect();
        gone.iter().for_each(|id| streams.close(id));
        needs_pass
    }

    /// Begins the streams of clusters that are settled and not aliases, nor, while `is_comparing`, possible aliases;
    /// returns their indexes. Tells the streams of clusters of an earlier run if these were read in this one.
    fn begin_streams(
        &self,
        fleet: &FleetSnapshot,
        reading: &[ReadProgress],
        is_comparing: bool,
        streams: &mut ReportStreams,
        now: Duration,
    ) -> HashSet<usize> {
        let mut begun = HashSet::new();
        let is_twin = |snapshot: &Snapshot| {
            let same = fleet.snapshots.iter().filter(|other| other.id() == snapshot.id());
            snapshot.id().is_some() && same.count() > 1
        };
        let clusters = self.clusters.iter().zip(reading).zip(&fleet.snapshots).enumerate();
        for (place, ((cluster, reading), snapshot)) in clusters {
            let is_ready = *reading == ReadProgress::Settled && !cluster.is_alias;
            // It may be an alias.
            let is_doubtful = is_comparing
                && snapshot.id().is_some_and(|id| *id != cluster.id)
                && (!self.found.contains(snapshot.name()) || is_twin(snapshot));
            if is_ready && !is_doubtful && !streams.has(&cluster.id) {
                streams.begin(&cluster.id, now);
                begun.insert(place);
            }
            let is_read = snapshot.freshness() != Freshness::never();
            let is_restarted = !is_read && streams.has(&cluster.id);
            if (is_ready || is_restarted) && self.earlier.get(snapshot.name()) == Some(&cluster.id) {
                streams.set_read(&cluster.id, is_read);
            }
        }
        begun
    }

    /// Passes all rows with a half in one of the clusters with these indexes, whose streams have just begun, to
    /// `streams`.
    fn tell_of(
        &mut self,
        begun: &HashSet<usize>,
        fleet: &FleetSnapshot,
        apps: &[App],
        streams: &mut ReportStreams,
        now: Duration,
    ) {
        if begun.is_empty() {
            return;
        }
        let is_begun = |name: &String| self.by_name.get(name).is_some_and(|place| begun.contains(place));
        let is_concerned = |(_, app): &(usize, &App)| is_begun(&app.app.home) || is_begun(&app.app.target);
        let places: Vec<usize> =
            apps.iter().enumerate().filter(is_concerned).map(|(place, _)| place).collect();
        self.tell_all(places, fleet, apps, streams, now);
    }

    /// Passes the rows that changed or are gone to `streams`; returns the indexes of the clusters of the changed rows.
    fn tell_changed(
        &mut self,
        fleet: &FleetSnapshot,
        apps: &[App],
        changed: &ChangedRows,
        streams: &mut ReportStreams,
        now: Duration,
    ) -> BTreeSet<usize> {
        for app in &changed.gone {
            let Some((home, target)) = self.clusters_of(app) else { continue };
            let id = AppId::new(home.id.clone(), app);
            streams.remove(&home.id, &HalfId { app: id.clone(), side: HalfSide::Declared }, now);
            streams.remove(&target.id, &HalfId { app: id, side: HalfSide::Observed }, now);
        }
        self.tell_all(changed.changed.iter().copied(), fleet, apps, streams, now)
    }

    /// Passes both halves of the rows with these indexes to `streams`; returns the indexes of their clusters.
    fn tell_all(
        &mut self,
        places: impl IntoIterator<Item = usize>,
        fleet: &FleetSnapshot,
        apps: &[App],
        streams: &mut ReportStreams,
        now: Duration,
    ) -> BTreeSet<usize> {
        let told = places.into_iter().filter_map(|place| self.tell(fleet, apps, place, streams, now));
        let touched: BTreeSet<usize> = told.flatten().collect();
        for place in &touched {
            if let Some(cluster) = self.clusters.get_mut(*place) {
                cluster.has_rows = true;
            }
        }
        touched
    }

    /// Passes both halves of the row with this index to `streams`, and returns the indexes of its home and its target. Of
    /// several rows of one name, only the first is reported.
    fn tell(
        &self,
        fleet: &FleetSnapshot,
        apps: &[App],
        place: usize,
        streams: &mut ReportStreams,
        now: Duration,
    ) -> Option<[usize; 2]> {
        let app = apps.get(place)?;
        let [Some(home_at), Some(target_at)] =
            [&app.app.home, &app.app.target].map(|name| self.by_name.get(name).copied())
        else {
            return None;
        };
        if place
            .checked_sub(1)
            .and_then(|before| apps.get(before))
            .is_some_and(|before| before.app == app.app)
        {
            return Some([home_at, target_at]);
        }
        let (home_id, target_id) = (&self.clusters.get(home_at)?.id, &self.clusters.get(target_at)?.id);
        let (home, target) = (fleet.snapshots.get(home_at)?, fleet.snapshots.get(target_at)?);
        let id = |name: &str| if *name == app.app.home { home_id.clone() } else { target_id.clone() };
        let (of, mut declared, mut observed) = halves(app, id, labels(home, app), fleet.now);
        // What is no fresher than its cluster is as fresh as the facts about that say.
        if app.home_freshness == home.freshness() {
            declared.not_live = None;
        }
        if app.freshness == target.freshness() {
            observed.not_live = None;
        }
        declared.syncs = remembered_syncs(home, app);
        let half = |side| HalfId { app: of.clone(), side };
        streams.set(home_id, half(HalfSide::Declared), HalfBody::Declared(Box::new(declared)), now);
        streams.set(target_id, half(HalfSide::Observed), HalfBody::Observed(Box::new(observed)), now);
        Some([home_at, target_at])
    }

    fn clusters_of(&self, app: &AppRef) -> Option<(&ToldCluster, &ToldCluster)> {
        let of = |name: &String| self.clusters.get(*self.by_name.get(name)?);
        of(&app.home).zip(of(&app.target))
    }

    /// Records the freshness and the stale scopes of all clusters; returns true if they differ from before, apart from
    /// the time at which a live cluster was observed.
    fn note_freshness(&mut self, snapshots: &[Snapshot]) -> bool {
        let mut differs = false;
        for (cluster, snapshot) in self.clusters.iter_mut().zip(snapshots) {
            let (freshness, stale) = &mut cluster.freshness;
            let new = snapshot.freshness();
            differs |= (*freshness != new && !(freshness.is_live() && new.is_live()))
                || stale != snapshot.stale_scopes();
            *freshness = new;
            stale.clear();
            stale.extend_from_slice(snapshot.stale_scopes());
        }
        differs
    }

    /// Passes the facts about each cluster that has a stream, and the failures of its apps, to `streams`.
    fn tell_facts(&self, fleet: &FleetSnapshot, streams: &mut ReportStreams, now: Duration) {
        let mut errors: BTreeMap<&str, Vec<ErrorRow>> = BTreeMap::new();
        for error in &self.errors {
            errors.entry(&error.cluster).or_default().push(ErrorRow::from(error));
        }
        let (clusters, rules) = (fleet.clusters(), fleet.rules.active());
        let members: Vec<FleetMember<'_>> = members(&clusters);
        for member in &members {
            let name = member.objects.name();
            let cluster = self.by_name.get(name).and_then(|place| self.clusters.get(*place));
            let Some(cluster) = cluster.filter(|cluster| streams.has(&cluster.id)) else { continue };
            let (managed, left_out) = ManagedCluster::of(member.objects, &rules, fleet.now);
            let facts = ClusterReport::of(member).with_freshness(member.objects.freshness(), fleet.now);
            let mut errors = errors.remove(name).unwrap_or_default();
            if left_out > 0 {
                let message =
                    format!("{left_out} more objects of the cluster that stand for others are not told");
                let (cluster, scope) = (name.to_owned(), "cluster".to_owned());
                errors.push(ErrorRow { cluster, scope, reason: "TooMany".to_owned(), message });
            }
            streams.set_facts(&cluster.id, ClusterReport { managed, ..facts }, errors, now);
        }
    }
}

/// The prefix of provisional identities: those of clusters whose own identity is not known.
const PROVISIONAL: &str = "context ";

/// Returns the provisional identity of the cluster of a context.
fn provisional(name: &str) -> ClusterId {
    ClusterId(format!("{PROVISIONAL}{name}"))
}

/// Returns the name of the home of a found cluster, which is called `HOME/NAMESPACE/NAME`; `None` if `name` has not
/// this form.
fn home_of_found(name: &str) -> Option<&str> {
    name.rsplitn(3, '/').nth(2)
}

/// Maximum length, in bytes, of the identity that a found cluster reports, to which its name is added; a longer one
/// counts as none.
const MAX_FOUND_ID: usize = 128;

/// Returns the identity of a cluster that a Secret of another one names: what it reports, and its name, so that it
/// never is that of a cluster of the kubeconfig, whichever of them answers first. `None` if it reports none that is
/// sound.
fn found_identity(snapshot: &Snapshot) -> Option<ClusterId> {
    let id = snapshot.id().filter(|id| id.0.len() <= MAX_FOUND_ID && is_sound(&id.0))?;
    Some(ClusterId(format!("{id}@{}", snapshot.name())))
}

fn is_provisional(id: &ClusterId) -> bool {
    id.0.starts_with(PROVISIONAL)
}

/// Returns true if a text that a cluster reports as its identity can be used as one: it is not too long, has no control
/// characters, and is not like a provisional identity.
fn is_sound(id: &str) -> bool {
    id.len() <= MAX_ID && !id.starts_with(PROVISIONAL) && !id.contains(char::is_control)
}

/// Returns the syncs that the declaring object of an app records; none if the object was not read.
fn remembered_syncs(home: &Snapshot, app: &App) -> Vec<SyncAttempt> {
    let object = app.declaring.as_ref().and_then(|key| home.get(key.as_ref()).present());
    object.map(|observed| syncs(observed.key, &observed.object)).unwrap_or_default()
}

/// Returns the labels of the declaring object of an app; none if the object was not read.
fn labels(home: &Snapshot, app: &App) -> BTreeMap<String, String> {
    let object = app.declaring.as_ref().and_then(|key| home.get(key.as_ref()).present());
    let labels = object.and_then(|observed| observed.object.at(&["metadata", "labels"])?.members());
    let label =
        |(name, value): (Cow<'_, str>, Value<'_>)| Some((name.into_owned(), value.as_str()?.into_owned()));
    labels.into_iter().flatten().filter_map(label).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use serde_json::{Value, json};
    use taffrail_api::report::{Content, SourceMessage, SourceReply};
    use taffrail_apps::{AppLabels, FreshnessState};
    use taffrail_object::json::OwnedDocument;
    use taffrail_object::{GroupKind, ObjectKey, Projection};
    use taffrail_status::ActiveRules;

    use super::*;
    use crate::rows::KeptRows;
    use crate::rules::FleetRules;

    /// The rules that apply without any rules files.
    #[derive(Debug)]
    struct BuiltIn;

    impl FleetRules for BuiltIn {
        fn active(&self) -> ActiveRules<'_> {
            ActiveRules::default()
        }
    }

    fn insert(snapshot: &mut Snapshot, object: &Value) {
        let document = OwnedDocument::parse(object.to_string().into_bytes()).unwrap();
        snapshot.insert(document, Projection::Full).unwrap();
    }

    /// Returns a cluster that reports the identity `uid`; none if it is empty.
    fn cluster(name: &str, uid: &str) -> Snapshot {
        let mut snapshot = Snapshot::live(name, Timestamp::UNIX_EPOCH);
        snapshot.add_server(format!("https://{name}.example.com"));
        if !uid.is_empty() {
            let metadata = json!({"name": "kube-system", "uid": uid});
            insert(&mut snapshot, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
        }
        snapshot
    }

    /// A fleet, the teller that compares it, its report streams, and the time.
    struct Stage {
        fleet: FleetSnapshot,
        teller: FleetTeller,
        streams: ReportStreams,
        now: Duration,
    }

    impl Stage {
        /// Makes a fleet of two clusters, each with `apps` apps of one ConfigMap.
        fn new(apps: usize) -> Stage {
            let mut snapshots = vec![cluster("eu", "1"), cluster("us", "2")];
            for snapshot in &mut snapshots {
                (0..apps).for_each(|number| insert(snapshot, &settings(number, "a")));
            }
            let labels = AppLabels::default();
            let fleet = FleetSnapshot {
                snapshots,
                now: Timestamp::from_second(1_800_000_000).unwrap(),
                rules: Arc::new(BuiltIn),
                problems: Vec::new(),
                rows: Some(KeptRows::new(labels.clone())),
                labels,
            };
            let mut stage = Stage {
                fleet,
                teller: FleetTeller::default(),
                streams: ReportStreams::default(),
                now: Duration::from_secs(1_000),
            };
            stage.look();
            stage
        }

        /// Passes the fleet to the teller. Returns the clusters whose reports are sent within six seconds, with the
        /// number of halves in each report; for one that is closed `closed` and its identity.
        fn look(&mut self) -> Vec<(String, usize)> {
            self.fleet.rows.as_mut().unwrap().note(self.fleet.snapshots.iter_mut().map(|it| (it, false)));
            let reading = [ReadProgress::Settled; 2];
            self.teller.compare(&self.fleet, &reading, false, &mut self.streams, self.now);
            let mut told = Vec::new();
            let end = self.now + Duration::from_secs(6);
            while self.now < end {
                while let Some(message) = self.streams.next_message(self.now) {
                    let report = match message {
                        SourceMessage::Open(cluster) => {
                            self.streams.take(&SourceReply::Accepted { cluster, epoch: 1 }, self.now);
                            continue;
                        }
                        SourceMessage::Report(report) => report,
                        SourceMessage::Close(cluster) => {
                            told.push((format!("closed {cluster}"), 0));
                            continue;
                        }
                    };
                    let halves = match report.content {
                        Content::Changes { changed, gone } => changed.len() + gone.len(),
                        Content::Snapshot { halves, .. } => halves.len(),
                        Content::Cluster { .. } => 0,
                        Content::Digest(_) | Content::Heartbeat => continue,
                    };
                    told.push((report.cluster.0, halves));
                }
                self.now += Duration::from_millis(100);
            }
            self.fleet.now += jiff::SignedDuration::from_secs(6);
            told
        }
    }

    /// Returns a ConfigMap that is an app of its own.
    fn settings(number: usize, value: &str) -> Value {
        let labels = json!({"app.kubernetes.io/instance": format!("app-{number}")});
        let metadata = json!({"namespace": "shop", "name": format!("settings-{number}"), "labels": labels});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}})
    }

    #[test]
    fn rows_are_told_again_under_a_new_identity() {
        let mut stage = Stage::new(2);
        let metadata = json!({"name": "kube-system", "uid": "9"});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        insert(&mut stage.fleet.snapshots[0], &namespace);
        let told = stage.look();
        for expected in [("closed 1", 0), ("9", 4)] {
            assert!(told.contains(&(expected.0.to_owned(), expected.1)), "{told:?}");
        }
        let of_us = told.iter().filter(|(cluster, _)| cluster == "2");
        assert_eq!(of_us.map(|(_, halves)| halves).sum::<usize>(), 0, "{told:?}");
    }

    #[test]
    fn a_cluster_that_was_not_read_yet_is_the_one_of_an_earlier_run() {
        let mut stage = Stage::new(2);
        let live =
            std::mem::replace(&mut stage.fleet.snapshots[0], Snapshot::lost("eu", "Unreachable", "gone"));
        let names = ["eu", "eu-by-vpn"].map(|name| (name.to_owned(), ClusterId("1".to_owned())));
        stage.teller = FleetTeller::knowing(HashMap::from(names));
        stage.streams = ReportStreams::default();
        let told = stage.look();
        let of_eu: Vec<usize> = told.iter().filter(|(id, _)| id == "1").map(|(_, halves)| *halves).collect();
        // The hub keeps the halves that it knows: it is told that the cluster cannot be reached, and nothing else.
        assert_eq!(of_eu, [0], "{told:?}");
        assert!(!told.iter().any(|(id, _)| id.starts_with(PROVISIONAL)), "{told:?}");
        stage.fleet.snapshots[0] = live;
        assert!(stage.look().contains(&("1".to_owned(), 4)), "all halves are told once it was read");
        // A second name of the cluster adds no row.
        stage.fleet.snapshots[1] = Snapshot::lost("eu-by-vpn", "Unreachable", "gone");
        stage.teller = FleetTeller::knowing(stage.teller.earlier.clone());
        stage.streams = ReportStreams::default();
        let told = stage.look();
        assert!(told.iter().all(|(id, _)| id == "1"), "{told:?}");
    }

    #[test]
    fn change_of_one_app_tells_its_halves_alone() {
        let mut stage = Stage::new(50);
        assert_eq!(stage.look(), []);
        // What no row shows is not told.
        insert(&mut stage.fleet.snapshots[0], &settings(3, "b"));
        assert_eq!(stage.look(), []);
        insert(&mut stage.fleet.snapshots[0], &settings(50, "a"));
        assert_eq!(stage.look(), [("1".to_owned(), 2)]);
        let key = ObjectKey::new("", "ConfigMap", "shop", "settings-7");
        stage.fleet.snapshots[1].remove(&key);
        assert_eq!(stage.look(), [("2".to_owned(), 2)]);
    }

    #[test]
    fn dark_cluster_is_told_by_its_facts_and_a_stale_scope_by_the_halves_on_it() {
        let mut stage = Stage::new(50);
        let stale =
            vec![(Scope::Kind { kind: GroupKind::new("", "ConfigMap"), namespace: None }, stage.fleet.now)];
        let lost = Freshness { state: FreshnessState::Lost, observed_at: Some(stage.fleet.now) };
        stage.fleet.snapshots[1].set_freshness(lost);
        assert_eq!(stage.look(), [("2".to_owned(), 0)]);
        let now = stage.fleet.now;
        stage.fleet.snapshots[1].set_freshness(Freshness::live(now));
        stage.fleet.snapshots[1].set_stale_scopes(stale);
        // The halves are told first: none may look live.
        assert_eq!(stage.look(), [("2".to_owned(), 50), ("2".to_owned(), 0)]);
        stage.fleet.snapshots[1].set_stale_scopes(Vec::new());
        assert_eq!(stage.look(), [("2".to_owned(), 50)]);
    }

    #[test]
    fn facts_are_told_soon_after_a_change_that_no_row_shows() {
        let at = Duration::from_secs(100);
        let mut teller = FleetTeller { facts_at: Some(at), ..FleetTeller::default() };
        assert!(!teller.owes_facts(at + FACTS * 2), "nothing changed since");
        teller.owes_facts = true;
        assert!(!teller.owes_facts(at + FACTS / 2) && teller.owes_facts(at + FACTS));
    }

    fn ids(teller: &mut FleetTeller, clusters: &[Snapshot]) -> Vec<String> {
        teller.identify(clusters, &mut ReportStreams::default());
        teller.clusters.iter().map(|cluster| cluster.id.0.clone()).collect()
    }

    #[test]
    fn no_cluster_takes_the_identity_of_another_one() {
        let known = |clusters: &[(&str, &str)]| {
            let clusters: Vec<Snapshot> = clusters.iter().map(|(name, uid)| cluster(name, uid)).collect();
            ids(&mut FleetTeller::default(), &clusters)
        };
        assert_eq!(known(&[("eu", "1"), ("us", "2")]), ["1", "2"]);
        assert_eq!(known(&[("eu", "1"), ("us", "1")]), ["1", "1@https://us.example.com"]);
        assert_eq!(known(&[("eu", ""), ("us", "context eu")]), ["context eu", "context us"]);
        let forged = "1@https://us.example.com";
        assert_eq!(
            known(&[("eu", "1"), ("evil", forged), ("us", "1")]),
            ["1", forged, "1@https://us.example.com@us"]
        );
        assert_eq!(known(&[("eu", &"1".repeat(MAX_ID + 1)), ("us", "a\nb")]), ["context eu", "context us"]);
    }

    #[test]
    fn cluster_that_says_what_another_one_says_does_not_take_its_place() {
        let mut teller = FleetTeller::default();
        assert_eq!(ids(&mut teller, &[cluster("evil", "9"), cluster("eu", "1")]), ["9", "1"]);
        assert_eq!(ids(&mut teller, &[cluster("evil", "1"), cluster("eu", "1")]), ["1@evil", "1"]);
        assert_eq!(ids(&mut teller, &[cluster("evil", "1"), cluster("eu", "1")]), ["1@evil", "1"]);
    }

    #[test]
    fn identity_of_a_cluster_is_not_the_name_of_another_one() {
        let mut teller = FleetTeller::default();
        let clusters = [cluster("evil", "eu"), cluster("eu", "1")];
        assert_eq!(ids(&mut teller, &clusters), ["context evil", "1"]);
    }

    #[test]
    fn second_name_of_a_cluster_has_no_stream() {
        let mut streams = ReportStreams::default();
        let mut teller = FleetTeller::default();
        let mut clusters = [cluster("eu", "1"), cluster("admin", "1")];
        teller.identify(&clusters, &mut streams);
        teller.clusters.iter().for_each(|cluster| streams.begin(&cluster.id, Duration::ZERO));
        assert_eq!(streams.clusters().count(), 2);
        clusters[1].set_same_as("eu", true);
        teller.identify(&clusters, &mut streams);
        assert_eq!(streams.clusters().collect::<Vec<_>>(), [&ClusterId("1".to_owned())]);
    }

    #[test]
    fn cluster_that_is_read_from_the_beginning_keeps_its_identity() {
        let mut teller = FleetTeller::default();
        assert_eq!(ids(&mut teller, &[cluster("eu", "")]), ["context eu"]);
        assert_eq!(ids(&mut teller, &[cluster("eu", "1")]), ["1"]);
        assert_eq!(ids(&mut teller, &[cluster("eu", "")]), ["1"]);
        assert_eq!(ids(&mut teller, &[cluster("eu", "2")]), ["2"]);
    }
}
