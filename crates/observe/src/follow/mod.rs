//! Live clusters, followed: what was read once is watched from then on.
//!
//! The plan of reads is that of [`mod@crate::look`]; each read becomes a scope that lists and then watches. What changes goes
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
    Asked, Freshness, FreshnessState, NotLive, Objects, Read, Reading, Rounds, Sameness, Scope, ScopeError,
    Snapshot,
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

/// What comes together is shown together.
const GATHERING: Duration = Duration::from_millis(60);

/// The longest that a stream of changes may keep what has changed from being shown.
const AT_MOST: Duration = Duration::from_millis(300);

/// How long a change may be kept back until what stands behind it is known too.
const UNNOTICED: Duration = Duration::from_millis(400);

/// What comes together is judged together, where somebody waits for it.
const TOGETHER: Duration = Duration::from_millis(5);

/// How long one cluster may bring what it has while others have something too.
const TURN: Duration = Duration::from_millis(10);

/// A cluster and what was said when it was connected to.
struct Connected {
    cluster: Cluster,
    version: Option<String>,
    discovery: Result<Discovery, ReadError>,
}

/// What a task of ours brings, besides deliveries.
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

/// The next delivery, nothing from a cluster whose feeds have ended, or another event.
enum Arrival {
    Delivery(usize, Option<WatchEvent>),
    Event(Event),
}

type Events = FuturesUnordered<Pin<Box<dyn Future<Output = Event> + Send>>>;

/// A scope that is followed.
struct Followed {
    read: Read,
    /// The object that it is of, where it is one.
    key: Option<ObjectKey>,
    kind: GroupKind,
    /// What it holds.
    keys: HashSet<ObjectKey>,
    /// What it held before a list that is under way.
    unseen: HashSet<ObjectKey>,
    /// What is wrong with items of which no object could be made, as far as it is told, and how many there are.
    malformed: (Vec<String>, usize),
    /// It has been answered, one way or the other.
    answered: bool,
    /// It was known, and cannot be read for now; since when, and why.
    broken: Option<(Moment, &'static str, String)>,
    /// When what it holds was known last, where that is too long ago.
    stale: Option<Timestamp>,
    /// The start of the list that replaces what it holds, while that list is not complete.
    behind: Option<Moment>,
    /// How well it is known now, and since when.
    state: (ScopeState, Timestamp),
    /// Wanted by apps of other clusters alone.
    is_foreign: bool,
    /// Nothing waits for its answer.
    is_loose: bool,
    /// When the first answer must have come.
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

    /// Returns true if it is of a whole kind, in place of objects that apps of other clusters name in excess. That it may not be
    /// read says nothing of what else is wanted of the kind.
    fn is_excess(&self) -> bool {
        self.is_foreign && is_whole_kind(&self.read)
    }

    /// How it is known, where it is not live.
    fn not_live(&self) -> Option<NotLive> {
        let (state, message) = match &self.state.0 {
            ScopeState::Live => return None,
            ScopeState::CatchingUp => (taffrail_apps::ScopeState::CatchingUp, ""),
            ScopeState::Forbidden { message } => (taffrail_apps::ScopeState::Forbidden, &**message),
            ScopeState::Absent => (taffrail_apps::ScopeState::Absent, ""),
            ScopeState::Broken { message, .. } => (taffrail_apps::ScopeState::Broken, &**message),
        };
        let message = message.to_owned();
        Some(NotLive { scope: self.read.scope(), state, message, since: self.state.1 })
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
    /// How often the stages of the plan held up others since all was read that is waited for.
    rounds: Rounds,
    /// So many objects that are followed one by one have it asked which are still wanted.
    most_singles: usize,
    /// The objects that are followed one by one.
    singles: Singles,
    /// How dear it is to plan what to read of it.
    pace: Pace,
    /// What is wanted besides what was asked.
    more: BTreeSet<ObjectKey>,
    /// The objects that apps of other clusters have in it.
    elsewhere: BTreeSet<ObjectKey>,
    /// The names of the clusters whose apps want each of those.
    homes: BTreeMap<ObjectKey, Vec<String>>,
    /// Scopes that began for those, by the cluster that wants them and by kind, also those that have ended.
    foreign: BTreeMap<String, BTreeMap<GroupKind, usize>>,
    /// Errors of its apps that want too much of other clusters.
    over: Vec<ScopeError>,
    /// The namespaces where what controllers made of that is wanted too, with the names of the clusters whose apps want it.
    dependents_in: BTreeMap<String, Vec<String>>,
    connecting: bool,
    discovered: Instant,
    /// Something changed since the plan was made last.
    changed: bool,
    /// All that was wanted has been answered.
    is_settled: bool,
    /// Since when all of it has been live.
    live_since: Option<Timestamp>,
    /// When it was heard of last, where the machine slept since and it is not known again.
    stale: Option<Timestamp>,
    /// The machine slept, and its server is asked whether it is there.
    is_asked: bool,
    selections: BTreeSet<Selection>,
    /// What the server said of its kinds.
    discovery: Option<Discovery>,
    coming: PendingKinds,
    again: PollFallback,
    /// What is kept of it, of its share of the memory.
    held: Option<Held>,
}

impl Following {
    /// Marks what is live as known at `heard`: each scope says again that it is live once its watch is open again.
    fn doubt_live_scopes(&mut self, heard: Timestamp) {
        let live = |followed: &&mut Followed| followed.state.0 == ScopeState::Live;
        for followed in self.scopes.values_mut().filter(live) {
            followed.stale.get_or_insert(heard);
        }
    }

    /// Tells `snapshot` how fresh it is; what is live is as of `aged`.
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

    /// How it is read now.
    fn reading(&mut self, now: Timestamp, freshness: FreshnessState) -> Option<Reading> {
        let mut not_live: Vec<NotLive> = self.scopes.values().filter_map(Followed::not_live).collect();
        not_live.sort_by(|one, other| (one.state, &one.scope).cmp(&(other.state, &other.scope)));
        let has_gap = |scope: &NotLive| {
            matches!(scope.state, taffrail_apps::ScopeState::CatchingUp | taffrail_apps::ScopeState::Broken)
        };
        let is_live = freshness == FreshnessState::Live && self.is_settled && !not_live.iter().any(has_gap);
        self.live_since = if is_live { self.live_since.or(Some(now)) } else { None };
        let followed =
            taffrail_apps::Following { live_since: self.live_since, scopes: self.scopes.len(), not_live };
        self.feeds.as_ref().map(|feeds| following(feeds, followed))
    }
}

/// Kinds that are waited for.
#[derive(Default)]
struct PendingKinds {
    is_wanted: bool,
    /// What tells of them; of definitions first.
    scopes: Vec<ScopeId>,
    /// Nobody lets us watch definitions.
    is_blind: bool,
    /// When the server is to be asked again, and how often it was since a definition changed.
    due: Option<Instant>,
    asked: u32,
    under_way: bool,
}

/// A comparison of two clusters.
struct Compared {
    number: u64,
    /// When it is made again because nothing was proved.
    again_at: Option<Instant>,
}

/// The objects that are wanted of one cluster beside those that were asked for.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Single objects.
    pub objects: Vec<ObjectKey>,
    /// Objects of a kind.
    pub selections: Vec<Selection>,
    /// True if something is of a kind that the server does not have.
    pub kinds: bool,
}

/// The clusters to follow, and what of each.
pub struct WatchRequest {
    /// The clusters.
    pub members: FleetMembers,
    /// The time in which each has to answer first, and to answer single requests.
    pub timeout: Duration,
    /// What is to be followed of each.
    pub asked: Asked,
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
    asked: Asked,
    timeout: Duration,
    lists: ListStrategy,
    /// Tells how old what is known is.
    clock: BootClock,
    /// Pairs of clusters that give one identity and were compared, or are being.
    compared: HashMap<Pair, Compared>,
    /// How dear it is to find what apps have in other clusters, and whether something came since that may change it.
    pace: Pace,
    has_moved: bool,
    /// How many comparisons there were, and how many of those under way are the first of a pair.
    comparisons: u64,
    comparing: usize,
    /// The times at which it is judged, and from which ages are told.
    judged_at: Option<(Timestamp, Timestamp)>,
    /// Somebody has seen it.
    shown: bool,
}

impl FleetWatcher {
    /// Begins to follow what `request` asks; nothing is known yet.
    pub async fn start(request: WatchRequest) -> FleetWatcher {
        let WatchRequest { members: FleetMembers { members, problems }, timeout, asked, rules, lists, clock } =
            request;
        let asked = Asked { follow: asked.declarations && members.len() > 1, ..asked };
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

    /// Returns what is known now.
    pub fn fleet(&mut self) -> &FleetSnapshot {
        let now = Timestamp::now();
        let (judged, aged) = self.judged_at.unwrap_or((now, now));
        for (following, snapshot) in self.clusters.iter_mut().zip(&mut self.fleet.snapshots) {
            following.refresh(snapshot, now, aged);
        }
        let is_compared = judged != aged;
        for (following, snapshot) in self.clusters.iter_mut().zip(&mut self.fleet.snapshots) {
            if let Some(reading) = following.reading(now, snapshot.freshness().state) {
                snapshot.set_reading(Reading { cost: reading.cost.filter(|_| !is_compared), ..reading });
            }
        }
        (self.fleet.now, self.fleet.aged) = (judged, aged);
        if let Some(rows) = &mut self.fleet.rows {
            rows.note(self.fleet.snapshots.iter_mut());
        }
        &self.fleet
    }

    /// The connection to the cluster of this name, where there is one, for requests of one's own.
    pub fn cluster(&self, name: &str) -> Option<Cluster> {
        let at = self.fleet.snapshots.iter().position(|snapshot| snapshot.name() == name)?;
        let feeds = self.clusters.get(at)?.feeds.as_ref()?;
        Some(feeds.cluster().with_timeout(self.timeout))
    }

    /// Judges by the time `now` and tells ages from `aged`. What differs between two answers that tell them from one time
    /// has changed, be it by time alone.
    pub fn judge_at(&mut self, now: Timestamp, aged: Timestamp) {
        self.judged_at = Some((now, aged));
    }

    /// Waits until all that is wanted was answered: at first for as long as a cluster may take, later only as long as who
    /// looks does not notice. What is not known by then is shown as it comes.
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

    /// Counts what was not answered so far as failed, until it is.
    fn end_patience(&mut self) {
        let now = Instant::now();
        let scopes = self.clusters.iter_mut().flat_map(|it| it.scopes.values_mut());
        scopes.for_each(|followed| followed.patience = followed.patience.min(now));
    }

    /// Waits for changes, for `at_most`; true when there were some.
    pub async fn next(&mut self, at_most: Duration) -> bool {
        self.receive(at_most, GATHERING).await
    }

    /// Takes in what comes: the first change within `at_most`, and what follows it within `gathering`. However much comes, it
    /// ends when that time is over.
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

    /// Waits for what comes next, of any cluster.
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

    /// Takes in what is there already, of each cluster in its turn; true where something may have changed. One that always has
    /// more keeps no other from being heard.
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

    /// As [`FleetWatcher::next`], for who wants to know at once.
    pub async fn soon(&mut self, at_most: Duration) -> bool {
        self.receive(at_most, TOGETHER).await
    }

    /// Follows what else is wanted of a cluster; nothing that was wanted is forgotten.
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

    /// Asks for what is wanted and was not asked for yet.
    pub async fn ask(&mut self) {
        self.plan(NO_EXTRA);
    }

    /// Whether all that is wanted of a cluster was answered, as far as is known what that is.
    pub fn is_settled(&self, at: usize) -> bool {
        self.clusters.get(at).is_some_and(|following| following.is_settled)
    }

    /// Whether a cluster can never be asked: its context makes no sense.
    pub fn is_lost(&self, at: usize) -> bool {
        self.clusters.get(at).is_none_or(|following| following.member.context.is_err())
    }

    /// Whether something is to be asked in a moment.
    pub fn is_restless(&self) -> bool {
        self.clusters.iter().any(|it| it.coming.is_wanted && it.coming.due.is_some())
    }

    /// What people should know of how it is followed.
    pub fn notes(&self) -> Vec<String> {
        let clusters = self.clusters.iter().flat_map(|it| it.again.notes(&it.member.name));
        clusters.collect()
    }

    /// Whether a cluster may yet answer for the first time.
    pub fn is_connecting(&self, at: usize) -> bool {
        let snapshot = self.fleet.snapshots.get(at);
        self.clusters.get(at).is_some_and(|it| it.connecting) && !snapshot.is_some_and(has_failed)
    }

    /// The kinds of a cluster, where it has told them.
    pub fn discovery(&self, at: usize) -> Option<&Discovery> {
        self.clusters.get(at)?.discovery.as_ref()
    }

    /// The namespace of a cluster's context.
    pub fn namespace(&self, at: usize) -> &str {
        let context = self.clusters.get(at).and_then(|following| following.member.context.as_ref().ok());
        context.map_or("default", |context| context.namespace())
    }

    /// Returns the connections to the clusters.
    pub fn clusters(&self) -> Vec<Cluster> {
        self.clusters.iter().filter_map(|it| Some(it.feeds.as_ref()?.cluster())).collect()
    }
}
