//! Live clusters, followed: what was read once is watched from then on.
//!
//! The plan of reads is that of [`super::live`]; each read becomes a scope that lists and then watches. What changes goes
//! into the same [`Snapshot`]s, so a view cannot tell a followed fleet from one that was read just now.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::pin::Pin;
use std::time::Duration;

use futures::stream::{FuturesUnordered, SelectAll};
use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use taffrail_apps::wait::Selection;
use taffrail_apps::{
    Answer, Asked, Body, Freshness, FreshnessState, ObjectKey, Objects, Read, Scope, ScopeError, Snapshot,
    next_reads, wanted_elsewhere,
};
use taffrail_cluster::{
    Change, Cluster, Contact, Deadline, Delivery, Discovery, FeedSettings, Feeds, Inbox, ReadError, Reason,
    ScopeId, ScopeState,
};
use taffrail_status::json::Parser;
use taffrail_status::{Choosing, Taffrail};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::again::{Again, once_more};
use super::live::{Failure, Member, catalog, read_one, runtime, take};
use super::scopes::{KINDS_OF_KINDS, definitions, named, names, scope_of};
use super::{Fleet, Members, More, NOTHING_MORE, members, print_requests};
use crate::cli::{SourceArguments, ViewArguments};
use crate::complaint::Complaint;

/// What comes together is shown together.
const GATHERING: Duration = Duration::from_millis(60);

/// The longest that a stream of changes may keep what has changed from being shown.
const AT_MOST: Duration = Duration::from_millis(300);

/// How long a change may be kept back until what stands behind it is known too.
const UNNOTICED: Duration = Duration::from_millis(400);

/// How often a cluster that cannot be connected to is tried again.
const RETRY: Duration = Duration::from_secs(3);

/// How often it is asked whether a kind that was not there has come.
const REDISCOVER: Duration = Duration::from_secs(15);

/// What comes together is judged together, where somebody waits for it.
const TOGETHER: Duration = Duration::from_millis(5);

/// A server says which kinds it has only a moment after their definition says that it has them: the first pause between
/// questions, and how many there are at most. Each pause is twice the one before.
const DISCOVERY_PAUSE: Duration = Duration::from_millis(100);
const DISCOVERY_QUESTIONS: u32 = 7;

/// How long a watch may be broken before what it brought is no longer trusted. That the server is gone is told sooner.
const BROKEN_FOR_LONG: Duration = Duration::from_secs(20);

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
    /// An object whose kind is followed by metadata alone was read whole.
    Got(usize, Box<Read>, super::live::Outcome),
    /// An object that cannot be watched was read.
    Again(usize, ScopeId, super::live::Outcome),
}

type Inboxes = SelectAll<Pin<Box<dyn Stream<Item = (usize, Delivery)> + Send>>>;
type Events = FuturesUnordered<Pin<Box<dyn Future<Output = Event> + Send>>>;

/// A scope that is followed.
struct Followed {
    read: Read,
    /// What it holds.
    keys: HashSet<ObjectKey>,
    /// What it held before a list that is under way.
    unseen: HashSet<ObjectKey>,
    /// It has been answered, one way or the other.
    answered: bool,
    /// It was known, and cannot be read for now; since when, and why.
    broken: Option<(Instant, &'static str, String)>,
}

impl Followed {
    fn new(read: Read) -> Followed {
        Followed { read, keys: HashSet::new(), unseen: HashSet::new(), answered: false, broken: None }
    }
}

/// One cluster that is followed.
struct Following {
    member: Member,
    feeds: Option<Feeds>,
    scopes: HashMap<ScopeId, Followed>,
    /// All reads so far, those of values that are read once among them.
    planned: HashSet<Read>,
    /// Single objects under way.
    under_way: usize,
    /// What is wanted besides what was asked.
    more: BTreeSet<ObjectKey>,
    /// When the answers must have come that are waited for at first.
    patience: Instant,
    connecting: bool,
    discovered: Instant,
    /// Something changed since the plan was made last.
    changed: bool,
    /// All that was wanted has been answered.
    is_settled: bool,
    selections: BTreeSet<Selection>,
    /// What the server said of its kinds.
    discovery: Option<Discovery>,
    coming: Coming,
    again: Again,
}

/// Kinds that are waited for.
#[derive(Default)]
struct Coming {
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

/// What is wanted of one cluster.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) objects: Vec<ObjectKey>,
    pub(crate) selections: Vec<Selection>,
    /// Whether something is of a kind that the server does not have.
    pub(crate) kinds: bool,
}

/// Clusters that are followed, as a fleet.
pub(crate) struct Follow {
    runtime: Runtime,
    fleet: Fleet,
    clusters: Vec<Following>,
    inboxes: Inboxes,
    events: Events,
    parser: Parser,
    asked: Asked,
    timeout: Duration,
    judged_at: Option<Timestamp>,
    /// Somebody has seen it.
    shown: bool,
}

impl Follow {
    /// Begins to follow what `asked` needs of the clusters that the arguments name; nothing is known yet.
    pub(crate) fn start(arguments: &ViewArguments, asked: &Asked) -> Result<Follow, Complaint> {
        Follow::judging(&arguments.source, arguments.rules(), asked)
    }

    /// As [`Follow::start`], of the clusters that `source` names and judged by `rules`.
    pub(crate) fn judging(
        source: &SourceArguments,
        rules: Choosing<Taffrail>,
        asked: &Asked,
    ) -> Result<Follow, Complaint> {
        let Members { members, complaints } = members(source)?;
        let asked = Asked { follow: asked.declarations && members.len() > 1, ..asked.clone() };
        let runtime = runtime()?;
        let now = Timestamp::now();
        let snapshots =
            members.iter().map(|member| Snapshot::lost(&*member.name, "Connecting", "not connected yet"));
        let fleet = Fleet {
            _answering: None,
            snapshots: snapshots.collect(),
            now,
            rules,
            complaints,
            labels: asked.app_labels.clone(),
        };
        let patience = runtime.block_on(async { Instant::now() }) + source.timeout;
        let clusters = members.into_iter().map(|member| Following {
            member,
            feeds: None,
            scopes: HashMap::new(),
            planned: HashSet::new(),
            under_way: 0,
            more: BTreeSet::new(),
            patience,
            connecting: false,
            discovered: patience,
            changed: false,
            is_settled: false,
            selections: BTreeSet::new(),
            discovery: None,
            coming: Coming::default(),
            again: Again::default(),
        });
        let mut follow = Follow {
            clusters: clusters.collect(),
            runtime,
            fleet,
            inboxes: SelectAll::new(),
            events: FuturesUnordered::new(),
            parser: Parser::new(),
            asked,
            timeout: source.timeout,
            judged_at: None,
            shown: false,
        };
        for at in 0..follow.clusters.len() {
            follow.connect(at, Duration::ZERO);
        }
        Ok(follow)
    }

    /// What is known now.
    pub(crate) fn fleet(&mut self) -> &Fleet {
        let now = Timestamp::now();
        for snapshot in &mut self.fleet.snapshots {
            if snapshot.freshness().state == FreshnessState::Live {
                snapshot.set_freshness(Freshness::live(now));
            }
        }
        self.fleet.now = self.judged_at.unwrap_or(now);
        &self.fleet
    }

    /// The connection to the cluster of this name, where there is one, for requests of one's own.
    pub(crate) fn cluster(&self, name: &str) -> Option<Cluster> {
        let at = self.fleet.snapshots.iter().position(|snapshot| snapshot.name() == name)?;
        let feeds = self.clusters.get(at)?.feeds.as_ref()?;
        Some(feeds.cluster().with_timeout(self.timeout))
    }

    /// Does something with connections of [`Follow::cluster`], and waits for it.
    pub(crate) fn finish<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Judges by this time, or by the clock again: what differs between two judgements by one time has changed.
    pub(crate) fn judge_at(&mut self, time: Option<Timestamp>) {
        self.judged_at = time;
    }

    /// Waits until all that is wanted was answered: at first for as long as a cluster may take, later only as long as who
    /// looks does not notice. What is not known by then is shown as it comes.
    pub(crate) fn settle(&mut self, more: More<'_>) {
        let patience = if std::mem::replace(&mut self.shown, true) { UNNOTICED } else { self.timeout };
        let until = std::time::Instant::now() + patience;
        loop {
            let waits = self.plan(more);
            let left = until.saturating_duration_since(std::time::Instant::now());
            if !waits || left.is_zero() {
                return;
            }
            self.receive(left.min(Duration::from_millis(500)), Duration::ZERO);
        }
    }

    /// Waits for changes, for `at_most`; true when there were some.
    pub(crate) fn next(&mut self, at_most: Duration) -> bool {
        self.receive(at_most, GATHERING)
    }

    /// Takes in what comes: the first within `at_most`, and what follows it within `gathering`.
    fn receive(&mut self, at_most: Duration, gathering: Duration) -> bool {
        enum Came {
            Delivery(usize, Delivery),
            Event(Event),
        }
        let mut wait = at_most;
        let mut first_change = None;
        loop {
            let Follow { runtime, inboxes, events, .. } = self;
            let came = runtime.block_on(async {
                let next = async {
                    tokio::select! {
                        Some((at, delivery)) = inboxes.next() => Came::Delivery(at, delivery),
                        Some(event) = events.next() => Came::Event(event),
                        // Where nothing can come, the time passes.
                        else => std::future::pending().await,
                    }
                };
                tokio::time::timeout(wait, next).await.ok()
            });
            let Some(came) = came else { return first_change.is_some() };
            let changed = match came {
                Came::Delivery(at, delivery) => self.deliver(at, delivery),
                Came::Event(event) => self.take(event),
            };
            if changed || first_change.is_some() {
                let first = *first_change.get_or_insert_with(std::time::Instant::now);
                wait = gathering.min(AT_MOST.saturating_sub(first.elapsed()));
            }
        }
    }

    /// As [`Follow::next`], for who wants to know at once.
    pub(crate) fn soon(&mut self, at_most: Duration) -> bool {
        self.receive(at_most, TOGETHER)
    }

    /// Follows what else is wanted of a cluster; nothing that was wanted is forgotten.
    pub(crate) fn want(&mut self, at: usize, wanted: Wanted) {
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
    pub(crate) fn ask(&mut self) {
        self.plan(NOTHING_MORE);
    }

    /// Whether all that is wanted of a cluster was answered, as far as is known what that is.
    pub(crate) fn is_settled(&self, at: usize) -> bool {
        self.clusters.get(at).is_some_and(|following| following.is_settled)
    }

    /// Whether a cluster can never be asked: its context makes no sense.
    pub(crate) fn is_lost(&self, at: usize) -> bool {
        self.clusters.get(at).is_none_or(|following| following.member.context.is_err())
    }

    /// Whether something is to be asked in a moment.
    pub(crate) fn is_restless(&self) -> bool {
        self.clusters.iter().any(|it| it.coming.is_wanted && it.coming.due.is_some())
    }

    /// What people should know of how it is followed.
    pub(crate) fn notes(&self) -> Vec<String> {
        let clusters = self.clusters.iter().flat_map(|it| it.again.notes(&it.member.name));
        clusters.collect()
    }

    /// Whether a cluster may yet answer for the first time.
    pub(crate) fn is_connecting(&self, at: usize) -> bool {
        let snapshot = self.fleet.snapshots.get(at);
        self.clusters.get(at).is_some_and(|it| it.connecting) && !snapshot.is_some_and(has_failed)
    }

    /// The kinds of a cluster, where it has told them.
    pub(crate) fn discovery(&self, at: usize) -> Option<&Discovery> {
        self.clusters.get(at)?.discovery.as_ref()
    }

    /// The namespace of a cluster's context.
    pub(crate) fn namespace(&self, at: usize) -> &str {
        let context = self.clusters.get(at).and_then(|following| following.member.context.as_ref().ok());
        context.map_or("default", |context| context.namespace())
    }

    /// Tells on stderr what was asked of the clusters, in as much detail as `verbose` says.
    pub(crate) fn tell_requests(&self, verbose: u8) {
        let clusters: Vec<Cluster> =
            self.clusters.iter().filter_map(|it| Some(it.feeds.as_ref()?.cluster())).collect();
        print_requests(verbose, clusters.iter());
    }

    fn connect(&mut self, at: usize, after: Duration) {
        let following = &mut self.clusters[at];
        following.connecting = true;
        let context = following.member.context.clone();
        let timeout = self.timeout;
        let task = self.runtime.spawn(async move {
            tokio::time::sleep(after).await;
            let context = context?;
            let cluster = Cluster::connect(&context, Deadline::after(timeout)).await;
            let cluster = cluster.map_err(|error| Failure::new(error.reason(), &error, error.hint()))?;
            let (discovery, version) = futures::join!(cluster.discover(), cluster.version());
            if let Err(error) = &discovery
                && version.is_err()
            {
                return Err(Failure::new(error.reason(), error, error.hint()));
            }
            Ok(Connected { cluster, version: version.ok(), discovery })
        });
        self.events.push(Box::pin(async move {
            let lost = |error: tokio::task::JoinError| {
                Err(Failure {
                    reason: Reason::ConnectionFailed.as_str().to_owned(),
                    message: error.to_string(),
                })
            };
            Event::Connected(at, Box::new(task.await.unwrap_or_else(lost)))
        }));
    }

    fn take(&mut self, event: Event) -> bool {
        match event {
            Event::Connected(at, outcome) => self.connected(at, *outcome),
            Event::Discovered(at, discovery) => {
                let following = &mut self.clusters[at];
                let coming = &mut following.coming;
                if std::mem::take(&mut coming.under_way) && coming.asked < DISCOVERY_QUESTIONS {
                    let pause = DISCOVERY_PAUSE * 2_u32.pow(coming.asked);
                    coming.asked += 1;
                    coming.due = Some(Instant::now() + pause);
                }
                // Who could not say it now is asked again later.
                let Ok(discovery) = discovery else { return false };
                self.fleet.snapshots[at].set_kinds(catalog(&discovery));
                following.discovery = Some(discovery);
                following.changed = true;
                true
            }
            Event::Got(at, read, outcome) => {
                let following = &mut self.clusters[at];
                following.under_way -= 1;
                following.changed = true;
                let snapshot = &mut self.fleet.snapshots[at];
                snapshot.retract(&read.scope());
                take(snapshot, &read, outcome);
                true
            }
            Event::Again(at, id, outcome) => {
                let following = &mut self.clusters[at];
                let Some(came) = following.again.take(id, &mut self.fleet.snapshots[at], outcome) else {
                    return false;
                };
                if let Some(followed) = following.scopes.get_mut(&id) {
                    followed.answered = true;
                }
                following.changed |= came.is_news;
                if came.goes_on {
                    self.read_again(at, id, false);
                }
                came.is_news
            }
        }
    }

    /// Reads an object that cannot be watched.
    fn read_again(&mut self, at: usize, id: ScopeId, is_first: bool) {
        let following = &self.clusters[at];
        let Some((feeds, read)) = following.feeds.as_ref().zip(following.again.read(id)) else { return };
        let reading = once_more(feeds.cluster().clone(), self.timeout, read, is_first);
        self.events.push(Box::pin(async move { Event::Again(at, id, reading.await) }));
    }

    fn connected(&mut self, at: usize, outcome: Result<Connected, Failure>) -> bool {
        let following = &mut self.clusters[at];
        following.connecting = false;
        let Connected { cluster, version, discovery } = match outcome {
            Ok(connected) => connected,
            Err(Failure { reason, message }) => {
                self.fleet.snapshots[at] = Snapshot::lost(&*following.member.name, reason, message);
                if following.member.context.is_ok() {
                    self.connect(at, RETRY);
                }
                return true;
            }
        };
        let mut snapshot = Snapshot::live(&*following.member.name, Timestamp::now());
        snapshot.add_server(cluster.server());
        if let Some(version) = version {
            snapshot.set_version(version);
        }
        if let Some(ahead) = cluster.clock_ahead() {
            snapshot.set_clock_ahead(ahead);
        }
        match discovery {
            Ok(discovery) => {
                snapshot.set_kinds(catalog(&discovery));
                following.discovery = Some(discovery);
            }
            Err(error) => {
                let Failure { reason, message } = Failure::new(error.reason(), &error, error.hint());
                snapshot.report(ScopeError { scope: Scope::Cluster, reason, message });
            }
        }
        self.fleet.snapshots[at] = snapshot;
        let context = following.member.context.as_deref().ok().cloned();
        let _inside = self.runtime.enter();
        let (feeds, inbox) = Feeds::start(cluster, context, FeedSettings::default());
        following.feeds = Some(feeds);
        following.discovered = Instant::now();
        following.patience = Instant::now() + self.timeout;
        following.changed = true;
        self.inboxes.push(Box::pin(deliveries(at, inbox)));
        true
    }

    /// Plans what else to follow; true while something is waited for that was never answered.
    fn plan(&mut self, more: More<'_>) -> bool {
        if self.asked.follow {
            let clusters: Vec<_> =
                self.fleet.snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect();
            let mut wanted: BTreeMap<String, Vec<ObjectKey>> = wanted_elsewhere(&clusters);
            for (snapshot, following) in self.fleet.snapshots.iter().zip(&mut self.clusters) {
                for key in wanted.remove(snapshot.name()).unwrap_or_default() {
                    following.changed |= following.more.insert(key);
                }
            }
        }
        let mut waits = false;
        for at in 0..self.clusters.len() {
            let pending = self.plan_one(at, more);
            self.clusters[at].is_settled = !pending;
            waits |= pending;
        }
        waits
    }

    fn plan_one(&mut self, at: usize, more: More<'_>) -> bool {
        let following = &mut self.clusters[at];
        let snapshot = &mut self.fleet.snapshots[at];
        if following.feeds.is_none() {
            return following.connecting && !has_failed(snapshot);
        }
        let now = self.runtime.block_on(async { Instant::now() });
        let impatient = now >= following.patience;
        if impatient {
            for followed in following.scopes.values_mut().filter(|followed| !followed.answered) {
                followed.answered = true;
                let message = format!("no answer within {:.1} s", self.timeout.as_secs_f64());
                snapshot.answer(&followed.read, Answer::Failed { reason: "Timeout".to_owned(), message });
                following.changed = true;
            }
        }
        for followed in following.scopes.values_mut() {
            let lasts = |(since, ..): &mut (Instant, &'static str, String)| now >= *since + BROKEN_FOR_LONG;
            if let Some((_, reason, message)) = followed.broken.take_if(lasts) {
                snapshot.retract(&followed.read.scope());
                snapshot.answer(&followed.read, Answer::Failed { reason: reason.to_owned(), message });
                following.changed = true;
            }
        }
        let lacks_kind = following.scopes.values().any(|followed| {
            let kind = taffrail_apps::GroupKind::new(&*followed.read.group, &*followed.read.kind);
            snapshot.kinds().is_some_and(|kinds| !kinds.may_serve(&kind))
        });
        let coming = &mut following.coming;
        if coming.is_wanted
            && coming.scopes.is_empty()
            && let Some(feeds) = &mut following.feeds
        {
            let _inside = self.runtime.enter();
            let scopes = KINDS_OF_KINDS.map(|kind| feeds.follow(definitions(kind)));
            coming.scopes = scopes.to_vec();
        }
        let lacks_kind = lacks_kind || (coming.is_wanted && coming.is_blind);
        let is_due = coming.is_wanted && !coming.under_way && coming.due.is_some_and(|due| now >= due);
        if is_due || (lacks_kind || snapshot.kinds().is_none()) && now >= following.discovered + REDISCOVER {
            coming.due = None;
            coming.under_way = true;
            following.discovered = now;
            let Some(feeds) = &following.feeds else { return false };
            let cluster = feeds.cluster().with_timeout(self.timeout);
            let task = self.runtime.spawn(async move { cluster.discover().await });
            self.events.push(Box::pin(async move {
                match task.await {
                    Ok(discovery) => Event::Discovered(at, discovery),
                    Err(error) => Event::Discovered(
                        at,
                        Err(ReadError::Unexpected {
                            what: "discover kinds".to_owned(),
                            problem: error.to_string(),
                        }),
                    ),
                }
            }));
        }
        let pending = |following: &Following| {
            following.under_way > 0 || following.scopes.values().any(|followed| !followed.answered)
        };
        if !following.changed || pending(following) {
            return pending(following) && !impatient;
        }
        following.changed = false;
        let namespace = following.member.context.as_ref().map_or("default", |it| it.namespace()).to_owned();
        following.more.extend(more(snapshot, &namespace));
        let objects = self.asked.objects.iter().chain(&following.more).cloned().collect();
        let selections = following.selections.iter().cloned().collect();
        let asked = Asked { objects, selections, ..self.asked.clone() };
        let reads = next_reads(snapshot, &asked, &self.fleet.rules);
        let Some(feeds) = &mut following.feeds else { return false };
        for read in reads {
            if !following.planned.insert(read.clone()) {
                continue;
            }
            following.patience = now + self.timeout;
            // Of Secrets only what is asked for by name is read whole, and then not followed: feeds bring no values.
            if read.kind == "Secret" && read.group.is_empty() && read.body == Body::Whole {
                following.under_way += 1;
                self.events.push(get(at, feeds.cluster().with_timeout(self.timeout), read));
                continue;
            }
            let _inside = self.runtime.enter();
            let id = feeds.follow(scope_of(&read));
            following.scopes.insert(id, Followed::new(read));
        }
        pending(following)
    }

    /// Takes a delivery in; true where it may change what is shown.
    fn deliver(&mut self, at: usize, delivery: Delivery) -> bool {
        let following = &mut self.clusters[at];
        let snapshot = &mut self.fleet.snapshots[at];
        let coming = &mut following.coming;
        let delivery = match delivery {
            Delivery::State(id, state) if coming.scopes.contains(&id) => {
                let is_definitions = coming.scopes.first() == Some(&id);
                coming.is_blind = match state {
                    ScopeState::Forbidden { .. } | ScopeState::Absent if is_definitions => true,
                    ScopeState::Live if is_definitions => false,
                    _ => coming.is_blind,
                };
                return false;
            }
            Delivery::Batch(batch) if coming.scopes.contains(&batch.scope()) => {
                let mut moved = false;
                batch.read(&mut self.parser, |change| {
                    moved |= matches!(change, Change::Upsert(_) | Change::Remove(_));
                });
                if moved {
                    coming.due = Some(Instant::now());
                    coming.asked = 0;
                    // What was there before may be there again.
                    following.feeds.iter().for_each(Feeds::try_now);
                }
                return moved;
            }
            delivery => delivery,
        };
        match delivery {
            Delivery::Began(id) => {
                if let Some(followed) = following.scopes.get_mut(&id) {
                    followed.unseen = followed.keys.clone();
                }
                false
            }
            Delivery::Contact(contact) => {
                let now = Timestamp::now();
                match contact {
                    Contact::Live => {
                        snapshot.set_freshness(Freshness::live(now));
                        snapshot.retract(&Scope::Cluster);
                    }
                    Contact::Lost { silent, reason, message } => {
                        let at = now.checked_sub(silent).ok();
                        snapshot.set_freshness(Freshness { state: FreshnessState::Lost, observed_at: at });
                        snapshot.retract(&Scope::Cluster);
                        let (scope, reason) = (Scope::Cluster, reason.to_owned());
                        snapshot.report(ScopeError { scope, reason, message });
                    }
                    Contact::WentBack { .. } => {}
                }
                true
            }
            Delivery::State(id, state) => {
                let Some(followed) = following.scopes.get_mut(&id) else { return false };
                if let ScopeState::Forbidden { message } = &state
                    && let Some(key) = named(&followed.read)
                    && (self.asked.objects.contains(&key) || following.more.contains(&key))
                {
                    // Who may not watch what was asked for by name may well be let read it.
                    if following.again.begin(id, &followed.read, key, message.clone()) {
                        self.read_again(at, id, true);
                    }
                    return false;
                }
                let answer = match state {
                    ScopeState::CatchingUp => return false,
                    // Its list was complete before, and was answered then.
                    ScopeState::Live if followed.answered => Answer::Objects(Vec::new()),
                    ScopeState::Live => return false,
                    ScopeState::Forbidden { message } => Answer::Forbidden { message },
                    ScopeState::Absent => Answer::NotFound,
                    // What was known goes on to be shown while it is tried again.
                    ScopeState::Broken { reason, message } if followed.answered => {
                        followed.broken.get_or_insert((Instant::now(), reason, message));
                        return false;
                    }
                    ScopeState::Broken { reason, message } => {
                        Answer::Failed { reason: reason.to_owned(), message }
                    }
                };
                followed.answered = true;
                followed.broken = None;
                following.changed = true;
                snapshot.retract(&followed.read.scope());
                snapshot.answer(&followed.read, answer);
                true
            }
            Delivery::Batch(batch) => {
                let Some(followed) = following.scopes.get_mut(&batch.scope()) else { return false };
                following.again.end(batch.scope());
                let mut again: Vec<Read> = Vec::new();
                let (mut changed, planned) = (false, &following.planned);
                batch.read(&mut self.parser, |change| match change {
                    Change::Upsert(object) => {
                        let Some(text) = object.root().text() else { return };
                        let document = match followed.read.document(text) {
                            Ok(document) => document,
                            Err(_) => return,
                        };
                        let read = &followed.read;
                        let key =
                            ObjectKey::new(&*read.group, &*read.kind, object.namespace(), object.name());
                        let secret = key.kind == "Secret" && key.group.is_empty();
                        if snapshot.insert(document, read.body).is_ok() {
                            changed = true;
                            followed.unseen.remove(&key);
                            if secret {
                                again.extend(planned.iter().filter(|read| names(read, &key)).cloned());
                            }
                            followed.keys.insert(key);
                        }
                    }
                    Change::Remove(object) => {
                        let read = &followed.read;
                        let key =
                            ObjectKey::new(&*read.group, &*read.kind, object.namespace(), object.name());
                        snapshot.remove(&key);
                        followed.keys.remove(&key);
                        followed.unseen.remove(&key);
                        changed = true;
                    }
                    Change::Malformed(item) => {
                        let name = item.name.unwrap_or_else(|| format!("item {}", item.index));
                        let message = format!("{name}: {}", item.reason);
                        let (scope, reason) = (followed.read.scope(), "Malformed".to_owned());
                        snapshot.report(ScopeError { scope, reason, message });
                        changed = true;
                    }
                    Change::Complete => {
                        for key in std::mem::take(&mut followed.unseen) {
                            snapshot.remove(&key);
                            followed.keys.remove(&key);
                        }
                        followed.answered = true;
                        followed.broken = None;
                        snapshot.retract(&followed.read.scope());
                        snapshot.answer(&followed.read, Answer::Objects(Vec::new()));
                        changed = true;
                    }
                });
                following.changed |= changed;
                if let Some(feeds) = &following.feeds {
                    for read in again {
                        following.under_way += 1;
                        self.events.push(get(at, feeds.cluster().with_timeout(self.timeout), read));
                    }
                }
                changed
            }
        }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        // Feeds end within the runtime that they began in.
        let _inside = self.runtime.enter();
        self.clusters.clear();
    }
}

/// Whether a connection has failed already, so that nobody waits for it.
fn has_failed(snapshot: &Snapshot) -> bool {
    snapshot.errors().iter().any(|error| error.scope == Scope::Cluster && error.reason != "Connecting")
}

fn deliveries(at: usize, inbox: Inbox) -> impl Stream<Item = (usize, Delivery)> + Send {
    stream::unfold(inbox, move |mut inbox| async move {
        let delivery = inbox.next().await?;
        Some(((at, delivery), inbox))
    })
}

fn get(at: usize, cluster: Cluster, read: Read) -> Pin<Box<dyn Future<Output = Event> + Send>> {
    Box::pin(async move {
        let outcome = read_one(&cluster, &read).await;
        Event::Got(at, Box::new(read), outcome)
    })
}
