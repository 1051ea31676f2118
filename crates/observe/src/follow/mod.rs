//! Live clusters that are followed: each read continues as a watch.
//!
//! The plan of reads is that of [`mod@crate::look`]; each read becomes a scope that lists and then watches. Changes go
//! into the same `Snapshot`s, so a view cannot tell a followed fleet from one that was read just now.

#[cfg(test)]
mod asleep;
mod bodies;
mod holders;
mod intake;
mod plan;
mod poll;
mod rest;
mod scopes;
mod share;
mod singles;
mod task;
mod turns;
mod unwanted;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
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
    BootClock, Cluster, Discovery, Held, ListStrategy, Moment, ReadError, ScopeId, ScopeState, WatchEvent,
    WatchEvents, Watcher,
};
use taffrail_object::json::Parser;
use taffrail_object::{GroupKind, ObjectKey};
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
use crate::sameness::Pair;

/// Time for which changes are gathered before they are shown together.
const GATHERING: Duration = Duration::from_millis(60);

/// Maximum time for which a stream of changes may delay the view.
const AT_MOST: Duration = Duration::from_millis(300);

/// Maximum time for which a change is held back until its evidence is known too.
const UNNOTICED: Duration = Duration::from_millis(400);

/// Time for which changes are gathered before they are judged together, while a caller waits for them.
const TOGETHER: Duration = Duration::from_millis(5);

/// Time for which the events of one cluster are applied while others have events too.
const TURN: Duration = Duration::from_millis(10);

/// A cluster, and the messages from connecting to it.
struct Connected {
    cluster: Cluster,
    version: Option<String>,
    discovery: Result<Discovery, ReadError>,
}

/// An event of one of the watcher's own tasks, besides watch events.
enum Event {
    Connected(usize, Box<Result<Connected, Failure>>),
    Discovered(usize, Result<Discovery, ReadError>),
    /// Clusters that give one identity were compared.
    Compared {
        number: u64,
        is_first: bool,
        pairs: Vec<(Pair, Sameness)>,
    },
    /// An object whose kind is followed by metadata alone was read whole.
    Got(usize, Box<Read>, Outcome),
    /// An object that cannot be watched was read.
    Polled(usize, ScopeId, Outcome),
}

/// The next watch event, `None` from a cluster whose watches have ended, or another event.
enum Arrival {
    Delivery(usize, Option<WatchEvent>),
    Event(Event),
}

type Events = FuturesUnordered<Pin<Box<dyn Future<Output = Event> + Send>>>;

/// A scope that is followed.
struct Followed {
    read: Read,
    /// The object of the scope, if it is a single object.
    key: Option<ObjectKey>,
    kind: GroupKind,
    /// The objects that it holds.
    keys: HashSet<ObjectKey>,
    /// The objects that it held before the list in progress, and that the list has not contained yet.
    unseen: HashSet<ObjectKey>,
    /// The reported defects of malformed items, and the number of all of them.
    malformed: (Vec<String>, usize),
    /// True once it has been answered, with objects or an error.
    answered: bool,
    /// The time, class and message of its failure, if it was known before.
    broken: Option<(Moment, &'static str, String)>,
    /// The time at which its objects were last known, if that is too long ago.
    stale: Option<Timestamp>,
    /// The start of the list that replaces its objects, until that list is complete.
    behind: Option<Moment>,
    /// Its state, and the time since when.
    state: (ScopeState, Timestamp),
    /// True if only apps of other clusters need it.
    is_foreign: bool,
    /// True if nothing waits for its answer.
    is_loose: bool,
    /// The deadline for its first answer.
    patience: Instant,
}

impl Followed {
    fn new(read: Read, is_foreign: bool, is_loose: bool, patience: Instant) -> Followed {
        Followed {
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
            state: (ScopeState::CatchingUp, Timestamp::now()),
            is_foreign,
            is_loose,
            patience,
        }
    }

    /// Returns true if it is of a whole kind, in place of too many single objects that apps of other clusters name. If
    /// it may not be read, that says nothing about other reads of the kind.
    fn is_excess(&self) -> bool {
        self.is_foreign && is_whole_kind(&self.read)
    }

    /// Returns its state, unless it is live.
    fn not_live(&self) -> Option<NotLiveScope> {
        let (state, message) = match &self.state.0 {
            ScopeState::Live => return None,
            ScopeState::CatchingUp => (taffrail_apps::ScopeState::CatchingUp, ""),
            ScopeState::Forbidden { message } => (taffrail_apps::ScopeState::Forbidden, &**message),
            ScopeState::Absent => (taffrail_apps::ScopeState::Absent, ""),
            ScopeState::Broken { message, .. } => (taffrail_apps::ScopeState::Broken, &**message),
        };
        let message = message.to_owned();
        Some(NotLiveScope { scope: self.read.scope(), state, message, since: self.state.1 })
    }
}

/// A Secret that is read whole.
#[derive(Debug, Clone, Copy, Default)]
struct Fetch {
    /// Nothing waits for it.
    is_loose: bool,
    /// It changed meanwhile, and is to be read again.
    is_due: bool,
    /// It was deleted meanwhile, and did not come again.
    is_gone: bool,
}

/// One cluster that is followed.
struct Following {
    member: Member,
    feeds: Option<Watcher>,
    /// The deliveries of its feeds.
    inbox: Option<WatchEvents>,
    scopes: HashMap<ScopeId, Followed>,
    /// All reads so far, those of values that are read once among them.
    planned: HashSet<Read>,
    /// Those of values, by the Secret that has them.
    values: HashMap<ObjectKey, Read>,
    /// Those of values that are under way.
    fetching: HashMap<Read, Fetch>,
    /// Number of rounds in which stages of the plan delayed later ones since everything that is waited for was read.
    rounds: Rounds,
    /// Number of single objects that are followed before the unneeded ones are ended.
    most_singles: usize,
    /// The objects that are followed one by one.
    singles: Singles,
    /// The cost of planning its reads.
    pace: Pace,
    /// Objects that are needed besides those of the request.
    more: BTreeSet<ObjectKey>,
    /// The objects that apps of other clusters have in it.
    elsewhere: BTreeSet<ObjectKey>,
    /// The names of the clusters whose apps need each of those.
    homes: BTreeMap<ObjectKey, Vec<String>>,
    /// Scopes that began for those, by the cluster that wants them and by kind, also those that have ended.
    foreign: BTreeMap<String, BTreeMap<GroupKind, usize>>,
    /// Errors of its apps that want too much of other clusters.
    over: Vec<ScopeError>,
    /// The namespaces in which dependents of these objects are needed too, with the names of the clusters whose apps
    /// need them.
    dependents_in: BTreeMap<String, Vec<String>>,
    connecting: bool,
    discovered: Instant,
    /// True if something changed since the last plan.
    changed: bool,
    /// True once everything that was needed has been answered.
    is_settled: bool,
    /// The time since when all of it has been live.
    live_since: Option<Timestamp>,
    /// The time of its last sign of life, if the machine has slept since and it has not answered again.
    stale: Option<Timestamp>,
    /// True while its server is probed after the machine slept.
    is_asked: bool,
    selections: BTreeSet<Selection>,
    /// The discovery of the server.
    discovery: Option<Discovery>,
    coming: PendingKinds,
    again: PollFallback,
    /// The memory charged for its snapshot, of its share.
    held: Option<Held>,
}

impl Following {
    /// Marks live scopes as known at `heard`; each becomes live again when its watch is open again.
    fn doubt_live_scopes(&mut self, heard: Timestamp) {
        let live = |followed: &&mut Followed| followed.state.0 == ScopeState::Live;
        for followed in self.scopes.values_mut().filter(live) {
            followed.stale.get_or_insert(heard);
        }
    }

    /// Updates the freshness of `snapshot`; live objects are as of `aged`.
    fn refresh(&mut self, snapshot: &mut Snapshot, now: Timestamp, aged: Timestamp) {
        // A server that is lost says so until it is found.
        if snapshot.freshness().state == FreshnessState::Lost {
            return;
        }
        let broken = |followed: &&Followed| {
            matches!(followed.state.0, ScopeState::Broken { .. }) || followed.behind.is_some()
        };
        let (broken, unproven): (Vec<&Followed>, Vec<&Followed>) =
            self.scopes.values().filter(|followed| followed.stale.is_some()).partition(broken);
        if let Some(silence) = self.feeds.as_ref().and_then(Watcher::silence) {
            self.stale.get_or_insert_with(|| now.checked_sub(silence).unwrap_or(now));
        } else if !self.is_asked {
            self.stale = unproven.iter().filter_map(|followed| followed.stale).min();
        }
        let freshness = |heard| Freshness { state: FreshnessState::Stale, observed_at: Some(heard) };
        snapshot.set_freshness(self.stale.map_or_else(|| Freshness::live(aged), freshness));
        let mut stale: Vec<(Scope, Timestamp)> =
            broken.iter().filter_map(|followed| Some((followed.read.scope(), followed.stale?))).collect();
        stale.sort();
        snapshot.set_stale_scopes(stale);
    }

    /// Returns the statistics of reading it.
    fn reading(&mut self, now: Timestamp, freshness: FreshnessState) -> Option<ReadStats> {
        let mut not_live: Vec<NotLiveScope> = self.scopes.values().filter_map(Followed::not_live).collect();
        not_live.sort_by(|one, other| (one.state, &one.scope).cmp(&(other.state, &other.scope)));
        let has_gap = |scope: &NotLiveScope| {
            matches!(scope.state, taffrail_apps::ScopeState::CatchingUp | taffrail_apps::ScopeState::Broken)
        };
        let is_live = freshness == FreshnessState::Live && self.is_settled && !not_live.iter().any(has_gap);
        self.live_since = if is_live { self.live_since.or(Some(now)) } else { None };
        let followed =
            taffrail_apps::WatchStats { live_since: self.live_since, scopes: self.scopes.len(), not_live };
        self.feeds.as_ref().map(|feeds| following(feeds, followed))
    }
}

/// Kinds that are waited for because the server does not have them yet.
#[derive(Default)]
struct PendingKinds {
    is_wanted: bool,
    /// The scopes that report new kinds, that of definitions first.
    scopes: Vec<ScopeId>,
    /// True if the user may not watch definitions.
    is_blind: bool,
    /// The time of the next discovery; below, the number of discoveries since a definition changed.
    due: Option<Instant>,
    asked: u32,
    under_way: bool,
}

/// A comparison of two clusters.
struct Compared {
    number: u64,
    /// The time at which it is repeated because nothing was proved.
    again_at: Option<Instant>,
}

/// Objects of one cluster that are needed besides those of the request.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Single objects.
    pub objects: Vec<ObjectKey>,
    /// Objects of a kind.
    pub selections: Vec<Selection>,
    /// True if something is of a kind that the server does not have.
    pub kinds: bool,
}

/// The clusters to follow, and how.
pub struct WatchRequest {
    /// The clusters.
    pub members: FleetMembers,
    /// The time in which each has to answer first, and to answer single requests.
    pub timeout: Duration,
    /// What to read of each.
    pub asked: ReadQuery,
    /// The rules by which it is judged.
    pub rules: Arc<dyn FleetRules>,
    /// The way in which lists come.
    pub lists: ListStrategy,
    /// The clock by which ages are measured.
    pub clock: BootClock,
}

/// Clusters that are followed, as a fleet.
pub struct FleetWatcher {
    fleet: FleetSnapshot,
    clusters: Vec<Following>,
    /// The place of the cluster whose turn is next.
    turn: usize,
    events: Events,
    parser: Parser,
    asked: ReadQuery,
    timeout: Duration,
    lists: ListStrategy,
    /// The clock that measures the age of observations.
    clock: BootClock,
    /// Pairs of clusters that give one identity and were compared, or are being.
    compared: HashMap<Pair, Compared>,
    /// The cost of finding the objects of apps in other clusters; below, true if a change since may affect them.
    pace: Pace,
    has_moved: bool,
    /// Number of comparisons so far; below, the number of first comparisons of a pair in progress.
    comparisons: u64,
    comparing: usize,
    /// The time of judgement, and the time from which ages are counted.
    judged_at: Option<(Timestamp, Timestamp)>,
    /// True once the fleet has been shown.
    shown: bool,
}

impl FleetWatcher {
    /// Begins to follow the clusters of `request`; nothing is known yet.
    pub async fn start(request: WatchRequest) -> FleetWatcher {
        let WatchRequest { members: FleetMembers { members, problems }, timeout, asked, rules, lists, clock } =
            request;
        let asked = ReadQuery { follow: asked.declarations && members.len() > 1, ..asked };
        let now = Timestamp::now();
        let waiting = Failure { reason: "Connecting".to_owned(), message: "not connected yet".to_owned() };
        let snapshots = members.iter().map(|member| member.lost(waiting.clone())).collect();
        let labels = asked.app_labels.clone();
        let rows = Some(KeptRows::new(labels.clone()));
        let fleet = FleetSnapshot { snapshots, now, aged: now, rules, problems, labels, rows };
        let discovered = Instant::now() + timeout;
        let clusters = members.into_iter().map(|member| Following {
            member,
            feeds: None,
            inbox: None,
            scopes: HashMap::new(),
            planned: HashSet::new(),
            values: HashMap::new(),
            fetching: HashMap::new(),
            rounds: Rounds::default(),
            most_singles: unwanted::FEW,
            singles: Singles::default(),
            pace: Pace::default(),
            more: BTreeSet::new(),
            elsewhere: BTreeSet::new(),
            homes: BTreeMap::new(),
            foreign: BTreeMap::new(),
            over: Vec::new(),
            dependents_in: BTreeMap::new(),
            connecting: false,
            discovered,
            changed: false,
            is_settled: false,
            live_since: None,
            stale: None,
            is_asked: false,
            selections: BTreeSet::new(),
            discovery: None,
            coming: PendingKinds::default(),
            again: PollFallback::default(),
            held: None,
        });
        let mut follow = FleetWatcher {
            clusters: clusters.collect(),
            fleet,
            turn: 0,
            events: FuturesUnordered::new(),
            parser: Parser::new(),
            asked,
            timeout,
            lists,
            clock,
            compared: HashMap::new(),
            pace: Pace::default(),
            has_moved: true,
            comparisons: 0,
            comparing: 0,
            judged_at: None,
            shown: false,
        };
        for at in 0..follow.clusters.len() {
            follow.connect(at, Duration::ZERO);
        }
        follow
    }

    /// Returns the present state of the fleet.
    pub fn fleet(&mut self) -> &FleetSnapshot {
        let now = Timestamp::now();
        let (judged, aged) = self.judged_at.unwrap_or((now, now));
        for (following, snapshot) in self.clusters.iter_mut().zip(&mut self.fleet.snapshots) {
            following.refresh(snapshot, now, aged);
        }
        let is_compared = judged != aged;
        for (following, snapshot) in self.clusters.iter_mut().zip(&mut self.fleet.snapshots) {
            if let Some(reading) = following.reading(now, snapshot.freshness().state) {
                snapshot.set_reading(ReadStats { cost: reading.cost.filter(|_| !is_compared), ..reading });
            }
        }
        (self.fleet.now, self.fleet.aged) = (judged, aged);
        if let Some(rows) = &mut self.fleet.rows {
            rows.note(self.fleet.snapshots.iter_mut());
        }
        &self.fleet
    }

    /// Returns the connection to the cluster of this name, if there is one, for further requests.
    pub fn cluster(&self, name: &str) -> Option<Cluster> {
        let at = self.fleet.snapshots.iter().position(|snapshot| snapshot.name() == name)?;
        let feeds = self.clusters.get(at)?.feeds.as_ref()?;
        Some(feeds.cluster().with_timeout(self.timeout))
    }

    /// Judges at the time `now` and counts ages from `aged`. If two answers with the same `aged` differ, something has
    /// changed, even if only by time.
    pub fn judge_at(&mut self, now: Timestamp, aged: Timestamp) {
        self.judged_at = Some((now, aged));
    }

    /// Waits until everything that is needed was answered: at first as long as a cluster may take, later only as long
    /// as a user does not notice. Later answers are shown when they come.
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
                return;
            }
            self.receive(left.min(Duration::from_millis(500)), Duration::ZERO).await;
        }
    }

    /// Counts unanswered scopes as failed, until they are answered.
    fn end_patience(&mut self) {
        let now = Instant::now();
        let scopes = self.clusters.iter_mut().flat_map(|it| it.scopes.values_mut());
        scopes.for_each(|followed| followed.patience = followed.patience.min(now));
    }

    /// Waits for changes, for `at_most`; true when there were some.
    pub async fn next(&mut self, at_most: Duration) -> bool {
        self.receive(at_most, GATHERING).await
    }

    /// Applies events: the first one within `at_most`, and those that follow within `gathering`. It ends after that
    /// time, however many events come.
    async fn receive(&mut self, at_most: Duration, gathering: Duration) -> bool {
        let at_most = self.until_planned().map_or(at_most, |rest| rest.min(at_most));
        let mut end = std::time::Instant::now() + at_most;
        let mut pause = at_most;
        let mut changed = false;
        loop {
            let left = end.saturating_duration_since(std::time::Instant::now());
            let Some(came) = self.come(left.min(pause)).await else { return changed };
            let mut is_news = match came {
                Arrival::Delivery(at, Some(delivery)) => self.deliver(at, delivery),
                Arrival::Delivery(at, None) => {
                    self.clusters[at].inbox = None;
                    false
                }
                Arrival::Event(event) => {
                    let is_news = self.take(event);
                    self.has_moved |= is_news;
                    is_news
                }
            };
            is_news |= self.turns(end);
            if is_news && !changed {
                changed = true;
                end = std::time::Instant::now() + AT_MOST;
                pause = gathering;
            }
            if std::time::Instant::now() >= end {
                return changed;
            }
        }
    }

    /// Waits for the next event of any cluster.
    async fn come(&mut self, at_most: Duration) -> Option<Arrival> {
        let FleetWatcher { clusters, events, .. } = self;
        let inboxes = clusters.iter_mut().enumerate().filter_map(|(at, it)| Some((at, it.inbox.as_mut()?)));
        let mut deliveries: FuturesUnordered<_> =
            inboxes.map(|(at, inbox)| async move { Arrival::Delivery(at, inbox.next().await) }).collect();
        let next = async {
            tokio::select! {
                Some(came) = deliveries.next() => came,
                Some(event) = events.next() => Arrival::Event(event),
                // Where nothing can come, the time passes.
                else => std::future::pending().await,
            }
        };
        tokio::time::timeout(at_most, next).await.ok()
    }

    /// Applies events that have already arrived, of each cluster in turn; returns true if something may have changed. A
    /// cluster that always has more does not keep others from being heard.
    fn turns(&mut self, end: std::time::Instant) -> bool {
        let mut changed = false;
        for _ in 0..self.clusters.len() {
            let begun = std::time::Instant::now();
            if begun >= end {
                break;
            }
            let at = self.turn % self.clusters.len();
            self.turn = at + 1;
            let over = end.min(begun + TURN);
            while std::time::Instant::now() < over {
                let inbox = self.clusters[at].inbox.as_mut();
                let Some(delivery) = inbox.and_then(WatchEvents::try_next) else { break };
                changed |= self.deliver(at, delivery);
            }
        }
        changed
    }

    /// Works like [`FleetWatcher::next`], for callers that need every change at once.
    pub async fn soon(&mut self, at_most: Duration) -> bool {
        self.receive(at_most, TOGETHER).await
    }

    /// Follows further objects of a cluster; earlier ones stay.
    pub fn want(&mut self, at: usize, wanted: Wanted) {
        let Some(following) = self.clusters.get_mut(at) else { return };
        for key in wanted.objects {
            following.changed |= following.more.insert(key);
        }
        for selection in wanted.selections {
            following.changed |= following.selections.insert(selection);
        }
        following.coming.is_wanted = wanted.kinds;
    }

    /// Requests everything that is needed and was not requested yet.
    pub async fn ask(&mut self) {
        self.plan(NO_EXTRA);
    }

    /// Returns true if everything that is known to be needed of a cluster was answered.
    pub fn is_settled(&self, at: usize) -> bool {
        self.clusters.get(at).is_some_and(|following| following.is_settled)
    }

    /// Returns true if a cluster can never be reached: its context is invalid.
    pub fn is_lost(&self, at: usize) -> bool {
        self.clusters.get(at).is_none_or(|following| following.member.context.is_err())
    }

    /// Returns true if a request is about to be sent.
    pub fn is_restless(&self) -> bool {
        self.clusters.iter().any(|it| it.coming.is_wanted && it.coming.due.is_some())
    }

    /// Returns notes for the user about the way in which it is followed.
    pub fn notes(&self) -> Vec<String> {
        let clusters = self.clusters.iter().flat_map(|it| it.again.notes(&it.member.name));
        clusters.collect()
    }

    /// Returns true if a cluster may still answer for the first time.
    pub fn is_connecting(&self, at: usize) -> bool {
        let snapshot = self.fleet.snapshots.get(at);
        self.clusters.get(at).is_some_and(|it| it.connecting) && !snapshot.is_some_and(has_failed)
    }

    /// Returns the kinds of a cluster, if it was discovered.
    pub fn discovery(&self, at: usize) -> Option<&Discovery> {
        self.clusters.get(at)?.discovery.as_ref()
    }

    /// Returns the namespace of a cluster's context.
    pub fn namespace(&self, at: usize) -> &str {
        let context = self.clusters.get(at).and_then(|following| following.member.context.as_ref().ok());
        context.map_or("default", |context| context.namespace())
    }

    /// Returns the connections to the clusters.
    pub fn clusters(&self) -> Vec<Cluster> {
        self.clusters.iter().filter_map(|it| Some(it.feeds.as_ref()?.cluster())).collect()
    }
}
