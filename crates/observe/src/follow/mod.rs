//! Watches live clusters: each read of the plan continues as a watch.
//!
//! The plan of reads is that of [`mod@crate::look`]; each read becomes a scope that lists and then watches. Changes go
//! into the same `Snapshot`s, so a view cannot tell a followed fleet from one that was read just now.

mod arrivals;
#[cfg(test)]
mod asleep;
mod bodies;
mod holders;
mod intake;
mod light;
mod membership;
mod plan;
mod poll;
mod rest;
mod scopes;
mod share;
mod singles;
mod task;
#[cfg(test)]
mod together;
mod turns;
mod unwanted;
mod unwanted_lists;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arrivals::Arrival;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
pub use light::LightReach;
use light::{CONNECTING_AT_ONCE, own_member};
use membership::{MemberNumber, MemberNumbers, MemberPair};
use plan::has_failed;
use poll::PollFallback;
use scopes::{is_whole_kind, named};
use singles::Singles;
use taffrail_apps::wait::Selection;
use taffrail_apps::{
    Freshness, FreshnessState, NotLiveScope, Objects, Read, ReadQuery, ReadStats, Rounds, Sameness, Scope,
    ScopeError, Snapshot,
};
use taffrail_cluster::{
    BootClock, Cluster, Discovery, Held, ListStrategy, Moment, ReadError, ScopeId, WatchEvents, WatchState,
    Watcher,
};
use taffrail_object::json::Parser;
use taffrail_object::{GroupKind, ObjectKey};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use turns::Pace;

use crate::error::Failure;
use crate::fleet::FleetSnapshot;
use crate::look::{ExtraObjects, NO_EXTRA};
use crate::members::{FleetMembers, Member};
use crate::read::Outcome;
use crate::reading::following;
use crate::rows::KeptRows;
use crate::rules::FleetRules;

/// Time without a further change after which [`FleetWatcher::next`] returns, so that one update shows several changes.
const GATHERING: Duration = Duration::from_millis(60);

/// Maximum time after the first change for which further changes delay an update of the view; then it is updated.
const AT_MOST: Duration = Duration::from_millis(300);

/// Maximum time for which [`FleetWatcher::settle`], except at its first call, waits for evidence about a change; then
/// the view shows the change without it.
const UNNOTICED: Duration = Duration::from_millis(400);

/// Time without a further change after which [`FleetWatcher::soon`] returns.
const TOGETHER: Duration = Duration::from_millis(5);

/// The connection to a cluster, its version and its kinds, sent by the task that connects.
struct Connected {
    cluster: Cluster,
    version: Option<String>,
    discovery: Result<Discovery, ReadError>,
}

/// An event other than a watch event: the result of a task that the watcher started.
enum Event {
    Connected(MemberNumber, Box<Result<Connected, Failure>>),
    Discovered(MemberNumber, Result<Discovery, ReadError>),
    /// Clusters with the same identity were compared.
    Compared {
        number: u64,
        is_first: bool,
        pairs: Vec<(MemberPair, Sameness)>,
    },
    /// The outcome of reading a whole object whose kind is watched as metadata.
    Got(MemberNumber, Box<Read>, Outcome),
    /// A scope, and the outcome of polling its object, which cannot be watched.
    Polled(MemberNumber, ScopeId, Outcome),
}

type Events = FuturesUnordered<Pin<Box<dyn Future<Output = Event> + Send>>>;

/// One scope that is listed and then watched.
struct FollowedScope {
    read: Read,
    /// The key of the object, if the scope is a single object.
    key: Option<ObjectKey>,
    kind: GroupKind,
    /// The keys of the objects that the scope holds, shared with the snapshot.
    keys: HashSet<Arc<ObjectKey>>,
    /// The keys that were known before the running list, and that this list has not contained so far; if they stay
    /// here, they were deleted.
    unseen: HashSet<Arc<ObjectKey>>,
    /// The reported messages about items of this scope that are malformed or were not requested: at most
    /// `MOST_MALFORMED`, and one that there are more; and the number of all such items.
    malformed: (Vec<String>, usize),
    /// True once the scope has been answered, with objects or an error, or once its answer is overdue.
    answered: bool,
    /// The time, reason and message of the failure of a scope whose objects were known before; `None` while it works,
    /// and again once the failure was reported because it lasts.
    broken: Option<(Moment, &'static str, String)>,
    /// The last time at which the objects were known to be current; `None` unless they may have changed unnoticed
    /// since.
    stale: Option<Timestamp>,
    /// The start of the running list that will replace the objects; `None` if none is running.
    behind: Option<Moment>,
    /// The state of the scope, and the time since when it has that state.
    state: (WatchState, Timestamp),
    /// True if no app of this cluster needs the scope, only apps of other clusters.
    is_foreign: bool,
    /// The namespace that is charged for the scope of a single object; `None` if no limit applies to it.
    asker: Option<String>,
    /// True if planning the next reads does not wait for the first answer of the scope.
    is_loose: bool,
    /// The time from which on the scope, if it has not been answered, is no longer waited for and is reported as
    /// failed.
    answer_by: Instant,
}

impl FollowedScope {
    fn new(read: Read, is_foreign: bool, is_loose: bool, answer_by: Instant) -> FollowedScope {
        FollowedScope {
            key: named(&read),
            kind: GroupKind::new(&*read.group, &*read.kind),
            read,
            keys: HashSet::new(),
            unseen: HashSet::new(),
            malformed: Default::default(),
            answered: false,
            broken: None,
            stale: None,
            behind: None,
            state: (WatchState::CatchingUp, Timestamp::now()),
            is_foreign,
            asker: None,
            is_loose,
            answer_by,
        }
    }

    /// Returns true if the scope is a list of a whole kind that replaces too many single objects named by apps of
    /// other clusters. A refusal of this list says nothing about other reads of the kind.
    fn is_excess(&self) -> bool {
        self.is_foreign && is_whole_kind(&self.read)
    }

    /// Returns the state of a scope that is not live, for the statistics; `None` for a live one.
    fn not_live(&self) -> Option<NotLiveScope> {
        let (state, message) = match &self.state.0 {
            WatchState::Live => return None,
            WatchState::CatchingUp => (taffrail_apps::NotLiveState::CatchingUp, ""),
            WatchState::Forbidden { message } => (taffrail_apps::NotLiveState::Forbidden, &**message),
            WatchState::Absent => (taffrail_apps::NotLiveState::Absent, ""),
            WatchState::Broken { message, .. } => (taffrail_apps::NotLiveState::Broken, &**message),
        };
        let message = message.to_owned();
        Some(NotLiveScope { scope: self.read.scope(), state, message, since: self.state.1 })
    }
}

/// A read of a whole Secret in progress.
#[derive(Debug, Clone, Copy, Default)]
struct SecretFetch {
    /// True if planning the next reads does not wait for this read.
    is_loose: bool,
    /// True if the Secret changed since this read began, so that it must be read again.
    is_due: bool,
    /// True if the Secret was deleted since this read began and not created again.
    is_gone: bool,
}

/// The state of one cluster that is watched.
struct FollowedCluster {
    number: MemberNumber,
    member: Member,
    /// True if only what declares apps is watched.
    is_light: bool,
    feeds: Option<Watcher>,
    /// The watch events of the cluster; `None` if it is not connected.
    inbox: Option<WatchEvents>,
    scopes: HashMap<ScopeId, FollowedScope>,
    /// The reads that were started and have not been ended since, including those of Secret values, which are not
    /// watched.
    planned: HashSet<Read>,
    /// The planned reads of Secret values, by the key of the Secret.
    values: HashMap<ObjectKey, Read>,
    /// The reads of Secret values in progress.
    fetching: HashMap<Read, SecretFetch>,
    /// For each stage of the plan of reads, the number of rounds for which it delayed the later stages; reset once
    /// all awaited reads are answered.
    rounds: Rounds,
    /// Number of single objects that may be watched before the unneeded ones are dropped.
    most_singles: usize,
    /// Number of lists in single namespaces that may be watched before the unneeded ones are dropped.
    most_lists: usize,
    /// The single objects that are watched, and those left out because of a limit.
    singles: Singles,
    /// The time that planning the reads of the cluster takes, and the pause after it.
    pace: Pace,
    /// Number of plans since all that was needed of the cluster was last answered.
    plans: u32,
    /// Number of times in a row that planning its reads was put off in favour of others.
    put_off: u32,
    /// Objects that callers requested in addition to those of the query.
    more: BTreeSet<ObjectKey>,
    /// The objects in this cluster that apps of other clusters declare.
    elsewhere: BTreeSet<ObjectKey>,
    /// The names of the clusters whose apps declare an object in `elsewhere`, by that object.
    homes: BTreeMap<ObjectKey, Vec<String>>,
    /// The number of scopes that were ever started for apps of another cluster, by the name of that cluster and by
    /// kind.
    foreign: BTreeMap<String, BTreeMap<GroupKind, usize>>,
    /// The names of the clusters whose apps named an object that the limits did not let be watched, by its kind.
    foreign_over: BTreeMap<GroupKind, BTreeSet<String>>,
    /// The errors that apps of this cluster declare too many objects in other clusters to read all.
    over: Vec<ScopeError>,
    /// The namespaces in which apps of other clusters need dependents (such as Pods) of their objects, each with
    /// the names of those clusters.
    dependents_in: BTreeMap<String, Vec<String>>,
    connecting: bool,
    discovered: Instant,
    /// True if something changed since the reads of this cluster were last planned.
    changed: bool,
    /// True while no answer is missing that planning waits for; also if the cluster cannot be connected to, and after
    /// it was dropped because of its memory.
    is_settled: bool,
    /// True once all that is needed of the cluster was answered since it was connected.
    was_settled: bool,
    /// The time since when the cluster has been live and settled without a gap; `None` while it is not, or while a
    /// scope is catching up or broken. Scopes that are forbidden or not served do not count.
    live_since: Option<Timestamp>,
    /// The time at which the cluster was last heard before the machine slept or the connection was in doubt; `None`
    /// once it has answered and its watches are open again.
    stale: Option<Timestamp>,
    /// True while Taffrail probes the cluster's server, after the machine slept.
    is_asked: bool,
    selections: BTreeSet<Selection>,
    /// The kinds that the server serves; `None` before discovery.
    discovery: Option<Discovery>,
    coming: PendingKinds,
    again: PollFallback,
    /// The memory charged to the cluster for its snapshot.
    held: Option<Held>,
    /// True if something changed that may affect which Secrets of the cluster name other clusters.
    may_name_others: bool,
}

impl FollowedCluster {
    fn new(number: MemberNumber, member: Member, is_light: bool, discovered: Instant) -> FollowedCluster {
        FollowedCluster {
            number,
            member: own_member(member, is_light),
            is_light,
            feeds: None,
            inbox: None,
            scopes: HashMap::new(),
            planned: HashSet::new(),
            values: HashMap::new(),
            fetching: HashMap::new(),
            rounds: Rounds::default(),
            most_singles: unwanted::FEW,
            most_lists: unwanted_lists::FEW_LISTS,
            singles: Singles::default(),
            pace: Pace::default(),
            plans: 0,
            put_off: 0,
            more: BTreeSet::new(),
            elsewhere: BTreeSet::new(),
            homes: BTreeMap::new(),
            foreign: BTreeMap::new(),
            foreign_over: BTreeMap::new(),
            over: Vec::new(),
            dependents_in: BTreeMap::new(),
            connecting: false,
            discovered,
            changed: false,
            is_settled: false,
            was_settled: false,
            live_since: None,
            stale: None,
            is_asked: false,
            selections: BTreeSet::new(),
            discovery: None,
            coming: PendingKinds::default(),
            again: PollFallback::default(),
            held: None,
            may_name_others: true,
        }
    }

    /// Marks live scopes as last known at `heard`, the time of the server's last answer; each becomes live again
    /// once its watch is reopened.
    fn doubt_live_scopes(&mut self, heard: Timestamp) {
        let live = |followed: &&mut FollowedScope| followed.state.0 == WatchState::Live;
        for followed in self.scopes.values_mut().filter(live) {
            followed.stale.get_or_insert(heard);
        }
    }

    /// Updates the freshness of `snapshot` and the list of its stale scopes: live at `now`, or stale since the server
    /// was last heard, if it was silent or watches were not opened again since. A snapshot that is
    /// [`Lost`](FreshnessState::Lost) stays so.
    fn refresh(&mut self, snapshot: &mut Snapshot, now: Timestamp) {
        // A server that is lost says so until it is found.
        if snapshot.freshness().state == FreshnessState::Lost {
            return;
        }
        let broken = |followed: &&FollowedScope| {
            matches!(followed.state.0, WatchState::Broken { .. } | WatchState::Forbidden { .. })
                || followed.behind.is_some()
        };
        let (broken, unproven): (Vec<&FollowedScope>, Vec<&FollowedScope>) =
            self.scopes.values().filter(|followed| followed.stale.is_some()).partition(broken);
        if let Some(silence) = self.feeds.as_ref().and_then(Watcher::silence) {
            self.stale.get_or_insert_with(|| now.checked_sub(silence).unwrap_or(now));
        } else if !self.is_asked {
            self.stale = unproven.iter().filter_map(|followed| followed.stale).min();
        }
        let freshness = |heard| Freshness { state: FreshnessState::Stale, observed_at: Some(heard) };
        snapshot.set_freshness(self.stale.map_or_else(|| Freshness::live(now), freshness));
        let mut stale: Vec<(Scope, Timestamp)> =
            broken.iter().filter_map(|followed| Some((followed.read.scope(), followed.stale?))).collect();
        stale.sort();
        snapshot.set_stale_scopes(stale);
    }

    /// Updates `live_since`, and returns the statistics of requests and watches of the cluster; `None` if it is not
    /// connected.
    fn reading(&mut self, now: Timestamp, freshness: FreshnessState) -> Option<ReadStats> {
        let mut not_live: Vec<NotLiveScope> =
            self.scopes.values().filter_map(FollowedScope::not_live).collect();
        not_live.sort_by(|one, other| (one.state, &one.scope).cmp(&(other.state, &other.scope)));
        let has_gap = |scope: &NotLiveScope| {
            matches!(
                scope.state,
                taffrail_apps::NotLiveState::CatchingUp | taffrail_apps::NotLiveState::Broken
            )
        };
        let is_live = freshness == FreshnessState::Live && self.is_settled && !not_live.iter().any(has_gap);
        self.live_since = if is_live { self.live_since.or(Some(now)) } else { None };
        let followed =
            taffrail_apps::WatchStats { live_since: self.live_since, scopes: self.scopes.len(), not_live };
        self.feeds.as_ref().map(|feeds| following(feeds, followed))
    }
}

/// The state of waiting for kinds that are needed and that the server does not serve yet.
#[derive(Default)]
struct PendingKinds {
    is_wanted: bool,
    /// The scopes that report new kinds, CustomResourceDefinitions first.
    scopes: Vec<ScopeId>,
    /// True if the server does not let the user watch CustomResourceDefinitions, or does not serve them.
    is_blind: bool,
    /// The time of the next discovery, if one is due.
    due: Option<Instant>,
    /// The number of discoveries since a definition of kinds changed.
    asked: u32,
    under_way: bool,
}

/// A comparison of two clusters with the same identity.
struct ComparedPair {
    number: u64,
    /// The time at which the comparison is repeated because it proved nothing; `None` if it is running or final.
    again_at: Option<Instant>,
}

/// Objects of one cluster that a caller needs besides those of the query.
#[derive(Debug, Default)]
pub struct ExtraWatches {
    /// Single objects to watch.
    pub objects: Vec<ObjectKey>,
    /// Objects of a kind, perhaps restricted by namespace and labels.
    pub selections: Vec<Selection>,
    /// True if a needed kind is not served yet, so that new kinds must be discovered.
    pub kinds: bool,
}

/// The arguments of [`FleetWatcher::start`].
pub struct WatchRequest {
    /// The clusters to watch.
    pub members: FleetMembers,
    /// The time limit for the first answer of each cluster, and for each single request.
    pub timeout: Duration,
    /// The time for one request, [`Duration::MAX`] for no limit; `None` for `timeout`. Lists that are streamed, and
    /// watches, have it only to begin.
    pub request_timeout: Option<Duration>,
    /// The query that decides which objects are watched.
    pub asked: ReadQuery,
    /// The rules by which objects are judged.
    pub rules: Arc<dyn FleetRules>,
    /// The way in which lists are requested: as streams or in pages.
    pub lists: ListStrategy,
    /// The clock by which ages are measured.
    pub clock: BootClock,
    /// The choice of clusters of which only what declares apps is watched.
    pub light: LightReach,
}

/// Watches several clusters, and keeps the fleet of their snapshots up to date.
pub struct FleetWatcher {
    fleet: FleetSnapshot,
    /// The clusters, in the order of the snapshots.
    clusters: Vec<FollowedCluster>,
    numbers: MemberNumbers,
    /// The index of the cluster whose waiting events [`FleetWatcher::turns`] applies next.
    turn: usize,
    events: Events,
    parser: Parser,
    asked: ReadQuery,
    timeout: Duration,
    request_timeout: Option<Duration>,
    lists: ListStrategy,
    /// The clock that measures the age of observations.
    clock: BootClock,
    light: LightReach,
    /// The permits to connect to clusters that are read lightly.
    connecting: Arc<Semaphore>,
    /// Notified of each watch event of any cluster.
    news: Arc<Notify>,
    /// Comparisons of pairs of clusters with the same identity, finished or in progress.
    compared: HashMap<MemberPair, ComparedPair>,
    /// The cost of finding the objects that apps have in other clusters, and the pause after it.
    pace: Pace,
    /// True if the last call of [`FleetWatcher::plan`] left some clusters to the next one.
    is_partly_planned: bool,
    /// True if rows are computed of a cluster only once all that they need was answered.
    leaves_unread: bool,
    /// True if something changed that may affect which objects apps have in other clusters.
    has_moved: bool,
    /// Number of comparisons so far.
    comparisons: u64,
    /// Number of first comparisons of a pair in progress.
    comparing: usize,
    /// True once [`FleetWatcher::settle`] was called.
    shown: bool,
    /// True if the view may have changed since a waiting function last returned true to a caller.
    has_news: bool,
}

impl FleetWatcher {
    /// Starts to watch the clusters of `request`; returns before any of them has answered.
    pub async fn start(request: WatchRequest) -> FleetWatcher {
        let WatchRequest { members, timeout, request_timeout, asked, rules, lists, clock, light } = request;
        let FleetMembers { members, problems } = members;
        let asked = ReadQuery { follow: asked.declarations && members.len() > 1, ..asked };
        let now = Timestamp::now();
        let labels = asked.app_labels.clone();
        let rows = Some(KeptRows::new(labels.clone()));
        let discovered = Instant::now() + timeout;
        let (mut numbers, mut full) = (MemberNumbers::default(), 0);
        let follow = |member: Member| {
            let is_light = light.takes(&member.name, full);
            full += usize::from(!is_light);
            FollowedCluster::new(numbers.next(), member, is_light, discovered)
        };
        let clusters: Vec<FollowedCluster> = members.into_iter().map(follow).collect();
        let snapshots = clusters.iter().map(FollowedCluster::unread).collect();
        let fleet = FleetSnapshot { snapshots, now, rules, problems, labels, rows };
        let mut follow = FleetWatcher {
            clusters,
            numbers,
            fleet,
            turn: 0,
            events: FuturesUnordered::new(),
            parser: Parser::new(),
            asked,
            timeout,
            request_timeout,
            lists,
            clock,
            light,
            connecting: Arc::new(Semaphore::new(CONNECTING_AT_ONCE)),
            news: Arc::default(),
            compared: HashMap::new(),
            pace: Pace::default(),
            is_partly_planned: false,
            leaves_unread: false,
            has_moved: true,
            comparisons: 0,
            comparing: 0,
            shown: false,
            has_news: false,
        };
        for at in 0..follow.clusters.len() {
            follow.connect(at, Duration::ZERO);
        }
        follow
    }

    /// Makes [`FleetWatcher::fleet`] leave the objects of a cluster out of the rows until all that these need was
    /// answered, so that they are computed once, for a caller that shows none before.
    pub(crate) fn leave_unread(&mut self) {
        self.leaves_unread = true;
    }

    /// Ends what [`FleetWatcher::leave_unread`] began, for all clusters that are connected now: a caller asks for what is
    /// known of them.
    pub(crate) fn take_unread(&mut self) {
        self.clusters.iter_mut().for_each(|following| following.was_settled |= following.feeds.is_some());
    }

    /// Returns the fleet with all events applied so far, and its `now` set to the present time.
    pub fn fleet(&mut self) -> &FleetSnapshot {
        let now = Timestamp::now();
        for (following, snapshot) in self.clusters.iter_mut().zip(&mut self.fleet.snapshots) {
            following.refresh(snapshot, now);
            if let Some(reading) = following.reading(now, snapshot.freshness().state) {
                snapshot.set_reading(reading);
            }
        }
        self.fleet.now = now;
        if let Some(rows) = &mut self.fleet.rows {
            let is_left = |it: &FollowedCluster| self.leaves_unread && it.feeds.is_some() && !it.was_settled;
            rows.note(self.fleet.snapshots.iter_mut().zip(self.clusters.iter().map(is_left)));
        }
        &self.fleet
    }

    /// Returns the connection to the cluster of this name for further requests, all of which must end within the time
    /// limit of one request from now; `None` if it is not connected.
    pub fn cluster(&self, name: &str) -> Option<Cluster> {
        let (cluster, timeout) = self.connection(name)?;
        Some(cluster.with_timeout(timeout))
    }

    /// Returns the connection to the cluster of this name and the time limit of one request; `None` if it is not
    /// connected.
    pub(crate) fn connection(&self, name: &str) -> Option<(Cluster, Duration)> {
        let at = self.place_named(name)?;
        Some((self.clusters.get(at)?.feeds.as_ref()?.cluster(), self.one_request()))
    }

    /// Returns the time limit of one request with its retries: the request timeout, or the timeout of a cluster.
    fn one_request(&self) -> Duration {
        self.request_timeout.unwrap_or(self.timeout)
    }

    /// Plans reads, including those of the objects that `more` returns, and waits until every needed scope is answered:
    /// at the first call up to the timeout of a cluster, later up to 400 ms. At the first call, reports scopes without
    /// an answer as failed; a later update shows their answers.
    pub async fn settle(&mut self, more: ExtraObjects<'_>) {
        let is_first = !std::mem::replace(&mut self.shown, true);
        let patience = if is_first { self.timeout } else { UNNOTICED };
        let until = std::time::Instant::now() + patience;
        // With time other evidence may be wanted, though nothing came.
        self.clusters.iter_mut().for_each(|following| following.changed = true);
        self.has_moved = true;
        loop {
            let waits = self.plan(more);
            let left = until.saturating_duration_since(std::time::Instant::now());
            if !waits || left.is_zero() {
                if waits && is_first {
                    // What is shown or done now says what it lacks.
                    self.end_patience();
                    self.plan(more);
                }
                // The caller looks now.
                self.has_news = false;
                return;
            }
            self.receive(left.min(Duration::from_millis(500)), Duration::ZERO).await;
        }
    }

    /// Ends the wait for each scope that has not answered yet: the next plan reports it as failed, and its answer
    /// removes the report.
    fn end_patience(&mut self) {
        let now = Instant::now();
        let scopes = self.clusters.iter_mut().flat_map(|it| it.scopes.values_mut());
        scopes.for_each(|followed| followed.answer_by = followed.answer_by.min(now));
    }

    /// Waits for changes for at most `at_most`, or until a pause of planning ends, and returns true if there were some.
    /// If the future is dropped, no change is lost: the next call returns true for it.
    pub async fn next(&mut self, at_most: Duration) -> bool {
        self.receive(at_most, GATHERING).await;
        self.take_news()
    }

    /// Returns true if something changed since this function, or one that waits for changes, last returned true.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Applies events: waits for the first change at most `at_most`, or until a pause of planning ends; after that
    /// change goes on until no event comes for `gathering`, for at most [`AT_MOST`]. Returns true if an event came.
    async fn receive(&mut self, at_most: Duration, gathering: Duration) -> bool {
        let at_most = self.until_planned().map_or(at_most, |rest| rest.min(at_most));
        let mut end = std::time::Instant::now() + at_most;
        let mut pause = at_most;
        let (mut changed, mut has_come) = (false, false);
        loop {
            let left = end.saturating_duration_since(std::time::Instant::now());
            let Some(came) = self.come(left.min(pause)).await else { return has_come };
            has_come = true;
            let mut is_news = match came {
                Arrival::Delivery(at, delivery) => self.deliver(at, delivery),
                Arrival::Event(event) => {
                    let is_news = self.take(event);
                    self.has_moved |= is_news;
                    is_news
                }
            };
            is_news |= self.turns(end);
            self.has_news |= is_news;
            if is_news && !changed {
                changed = true;
                end = std::time::Instant::now() + AT_MOST;
                pause = gathering;
            }
            if std::time::Instant::now() >= end {
                return has_come;
            }
        }
    }

    /// Waits like [`FleetWatcher::next`], but returns soon after the first change, for callers that need each
    /// change at once. Returns true if there was a change.
    pub async fn soon(&mut self, at_most: Duration) -> bool {
        self.receive(at_most, TOGETHER).await;
        self.take_news()
    }

    /// Adds the objects and selections in `wanted` to those that are watched in the cluster with index `at`, and sets
    /// if new kinds must be discovered there. The objects are read at the next [`FleetWatcher::ask`].
    pub fn want(&mut self, at: usize, wanted: ExtraWatches) {
        let Some(following) = self.clusters.get_mut(at) else { return };
        for key in wanted.objects {
            following.changed |= following.more.insert(key);
        }
        for selection in wanted.selections {
            following.changed |= following.selections.insert(selection);
        }
        following.coming.is_wanted = wanted.kinds;
    }

    /// Starts to watch every needed scope that is not watched yet, without waiting for its answer.
    pub async fn ask(&mut self) {
        self.plan(NO_EXTRA);
    }

    /// Returns true if no answer of the cluster with index `at` is awaited: every needed scope was answered, or the
    /// cluster cannot be connected to or was dropped because of its memory. False if there is no such cluster.
    pub fn is_settled(&self, at: usize) -> bool {
        self.clusters.get(at).is_some_and(|following| following.is_settled)
    }

    /// Does what [`FleetWatcher::is_settled`] does for the cluster of this name.
    pub(crate) fn is_settled_in(&self, name: &str) -> bool {
        self.place_named(name).is_some_and(|at| self.is_settled(at))
    }

    /// Returns true if the cluster with index `at` can never be reached, because its context is invalid or there is
    /// no such cluster.
    pub fn is_lost(&self, at: usize) -> bool {
        self.clusters.get(at).is_none_or(|following| following.member.context.is_err())
    }

    /// Returns true if discovery is scheduled in some cluster because a needed kind is not served yet.
    pub fn is_restless(&self) -> bool {
        self.clusters.iter().any(|it| it.coming.is_wanted && it.coming.due.is_some())
    }

    /// Returns a note for the user about each object that is polled because the user may not watch it, once it has been
    /// read.
    pub fn notes(&self) -> Vec<String> {
        let clusters = self.clusters.iter().flat_map(|it| it.again.notes(&it.member.name));
        clusters.collect()
    }

    /// Returns true if the cluster with index `at` has neither answered nor failed so far.
    pub fn is_connecting(&self, at: usize) -> bool {
        let snapshot = self.fleet.snapshots.get(at);
        self.clusters.get(at).is_some_and(|it| it.connecting) && !snapshot.is_some_and(has_failed)
    }

    /// Returns true if each cluster has answered all needed scopes or cannot be connected to, nothing changed that may
    /// need further reads, and no comparison of clusters is running for the first time.
    pub(crate) fn is_whole(&self) -> bool {
        let is_planned = |at: usize| self.clusters.get(at).is_some_and(|it| !it.changed);
        let is_whole =
            |at: usize| self.is_lost(at) || self.is_settled(at) && is_planned(at) && !self.is_connecting(at);
        let has_moved = self.has_news || self.asked.follow && self.has_moved;
        !has_moved && !self.is_comparing() && (0..self.clusters.len()).all(is_whole)
    }

    /// Returns true while the first comparison of two clusters that may be one is running.
    pub(crate) fn is_comparing(&self) -> bool {
        self.comparing > 0
    }

    /// Returns the clock that measures ages.
    pub(crate) fn clock(&self) -> &BootClock {
        &self.clock
    }

    /// Iterates over the time since the last sign of life of each cluster; `None` for one without a connection.
    pub(crate) fn silent(&self) -> impl Iterator<Item = Option<Duration>> {
        self.clusters.iter().map(|following| Some(following.feeds.as_ref()?.silent()))
    }

    /// Returns, for each cluster, true if its reads will be planned by [`FleetWatcher::ask`].
    pub(crate) fn is_to_plan(&self) -> impl Iterator<Item = bool> {
        self.clusters.iter().map(|following| following.changed)
    }

    /// Plans the reads of the cluster with index `at` at the next [`FleetWatcher::ask`], because time alone changed
    /// what its apps need.
    pub(crate) fn plan_again(&mut self, at: usize) {
        if let Some(following) = self.clusters.get_mut(at) {
            following.changed = true;
        }
    }

    /// Returns the kinds that the cluster with index `at` serves; `None` before discovery.
    pub fn discovery(&self, at: usize) -> Option<&Discovery> {
        self.clusters.get(at)?.discovery.as_ref()
    }

    /// Returns the namespace that the context of the cluster with index `at` sets; `default` if it sets none, or if
    /// there is no usable context.
    pub fn namespace(&self, at: usize) -> &str {
        let context = self.clusters.get(at).and_then(|following| following.member.context.as_ref().ok());
        context.map_or("default", |context| context.namespace())
    }

    /// Returns the connections to all connected clusters.
    pub fn clusters(&self) -> Vec<Cluster> {
        self.clusters.iter().filter_map(|it| Some(it.feeds.as_ref()?.cluster())).collect()
    }
}
