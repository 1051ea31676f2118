//! Planning of the reads of followed clusters.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_apps::{
    Answer, LeftOut, Objects, Read, ReadMode, ReadPlan, ReadQuery, Rounds, Scope, ScopeError, Snapshot,
    Target, elsewhere, plan_watches,
};
use taffrail_cluster::{Cluster, Deadline, Moment, ReadError, Reason, ScopeId, WatchState};
use taffrail_object::{GroupKind, ObjectKey, Projection};
use taffrail_status::ActiveRules;
use tokio::time::Instant;

use super::holders::Holders;
use super::light::LIGHT_REDISCOVERY;
use super::membership::MemberNumber;
use super::poll::once_more;
use super::scopes::{KINDS_OF_KINDS, definitions, is_whole_kind, named, scope_of};
use super::{
    ComparedPair, Connected, Event, FleetWatcher, FollowedCluster, FollowedScope, SecretFetch, bodies, task,
};
use crate::error::Failure;
use crate::look::ExtraObjects;
use crate::read::read_one;
use crate::sameness::{self, Pair};

/// Interval of discovery while it has not succeeded or a needed kind is not served yet.
const REDISCOVER: Duration = Duration::from_secs(15);

/// Time for which a watch may be broken before its objects are no longer trusted. A lost server is reported sooner.
const BROKEN_FOR_LONG: Duration = Duration::from_secs(20);

/// Maximum number of concurrent reads of Secrets of one cluster whose results planning does not wait for; further ones
/// are planned later.
const LOOSE_AT_ONCE: usize = 100;

/// Length of the pause after planning the reads of a cluster, as a multiple of the time that planning took.
const RESTS: u32 = 3;

/// Maximum time of planning the reads of several clusters one after another; the rest is planned after what was read
/// meanwhile is shown.
const PLANNING: Duration = Duration::from_millis(100);

/// Maximum number of clusters whose first large reads are begun in one call of [`FleetWatcher::plan`].
pub(super) const BEGUN_AT_ONCE: usize = 8;

/// Number of plans after which a cluster that is still not complete comes after all others, so that an author who keeps
/// creating objects there does not delay them.
const MANY: u32 = 16;

/// Number of times that planning of a cluster is put off, after which it comes before that of others.
const PATIENT: u32 = 20;

/// Maximum number of reads of one kind, of single objects or lists in one namespace, that are started in a cluster for
/// the apps of one other cluster. Beyond it the whole kind is watched instead. Each other cluster has its own limit, so
/// that one cannot use up that of another.
const FOREIGN_OF_A_KIND: usize = 20;

/// Maximum number of reads of all kinds together, of single objects or lists in one namespace, that are started in a
/// cluster for the apps of one other cluster. Beyond it the whole kind of a further read is watched instead.
const FOREIGN: usize = 200;

/// The state of a cluster before its reads are planned.
enum Readiness {
    /// Nothing of the cluster is awaited, and nothing is to plan.
    Settled,
    /// An answer of the cluster, or the end of its pause, is awaited first.
    Waits,
    /// The reads of the cluster are to be planned.
    ToPlan(Box<ClusterQuery>),
}

impl Readiness {
    fn waits_if(waits: bool) -> Readiness {
        if waits { Readiness::Waits } else { Readiness::Settled }
    }
}

/// The query from which the reads of one cluster are planned.
struct ClusterQuery {
    asked: ReadQuery,
    /// The query without objects of other clusters' apps, to tell apart the reads needed for these.
    without_others: ReadQuery,
    /// The time from which the answers to the reads are awaited.
    begun: Instant,
    /// The time that planning for the query has taken.
    spent: Duration,
}

/// The next reads of a cluster, which were planned and not started yet.
struct Proposal {
    plan: ReadPlan,
    /// The rounds after the plan.
    rounds: Rounds,
    /// The reads that are needed without apps of other clusters too; `None` if none concerns such apps.
    own: Option<BTreeSet<Read>>,
    /// The reads that the cluster needs itself and that were started because of apps of other clusters.
    is_elsewhere_too: BTreeSet<Read>,
}

/// Returns the number of clusters that are planned at the same time.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Calls `work` with each item at the same time, and returns the results in the order of the items.
///
/// # Panics
///
/// Panics if `work` does.
fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let Some((last, others)) = items.split_last() else { return Vec::new() };
    let work = &work;
    std::thread::scope(|scope| {
        let running: Vec<_> = others.iter().map(|item| scope.spawn(move || work(item))).collect();
        let last = work(last);
        let done =
            running.into_iter().map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        done.chain([last]).collect()
    })
}

impl FleetWatcher {
    pub(super) fn connect(&mut self, at: usize, after: Duration) {
        let following = &mut self.clusters[at];
        let number = following.number;
        following.connecting = true;
        let context = following.member.context.clone();
        let (timeout, request_timeout) = (self.timeout, self.request_timeout);
        let turn = following.is_light.then(|| Arc::clone(&self.connecting));
        let running = task::start(async move {
            tokio::time::sleep(after).await;
            let context = context?;
            // The semaphore is never closed.
            let _turn = match turn {
                Some(turn) => turn.acquire_owned().await.ok(),
                None => None,
            };
            let deadline = Deadline::after(timeout).with_request_timeout(request_timeout);
            let cluster = Cluster::connect(&context, deadline).await;
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
            Event::Connected(number, Box::new(running.await.unwrap_or_else(lost)))
        }));
    }

    /// Plans and starts the reads of clusters, and comparisons that are due. Returns true while an answer is awaited
    /// that a caller should wait for.
    ///
    /// Clusters of which most was read come first, so that the first of many is complete before the last one has begun,
    /// and of these the ones that are fast to plan. After [`PLANNING`] the rest is left to the next call, and so are
    /// clusters whose first large reads would begin while what came of others is not taken.
    pub(super) fn plan(&mut self, more: ExtraObjects<'_>) -> bool {
        let is_known = !self.asked.follow || self.plan_elsewhere_in_turn();
        self.compare();
        let mut waits = self.comparing > 0 || !is_known;
        let mut order: Vec<usize> = (0..self.clusters.len()).collect();
        order.sort_by_key(|at| {
            let FollowedCluster { put_off, plans, pace, .. } = &self.clusters[*at];
            let has_many = *plans > MANY;
            (has_many, *put_off < PATIENT, Reverse(if has_many { 0 } else { *plans }), pace.cost)
        });
        let begun = std::time::Instant::now();
        let mut others_wait = false;
        self.is_partly_planned = false;
        let is_behind = self.clusters.iter().any(|it| {
            !it.was_settled && !it.is_light && it.inbox.as_ref().is_some_and(|inbox| !inbox.is_empty())
        });
        let mut room_for_new = if is_behind { 0 } else { BEGUN_AT_ONCE };
        let mut order = order.into_iter().peekable();
        while order.peek().is_some() {
            let mut planned: Vec<(usize, ClusterQuery)> = Vec::new();
            let room = processors();
            while planned.len() < room
                && let Some(at) = order.next()
            {
                let following = &mut self.clusters[at];
                let is_new = !following.is_light
                    && !following.was_settled
                    && following.plans <= 1
                    && following.put_off < PATIENT;
                let is_late = begun.elapsed() >= PLANNING || is_new && room_for_new == 0;
                let is_put_off =
                    is_late && following.changed && following.feeds.is_some() && !following.is_pending();
                following.put_off = if is_put_off { following.put_off.saturating_add(1) } else { 0 };
                self.is_partly_planned |= is_put_off;
                let readiness =
                    if is_put_off { Readiness::Waits } else { self.prepare(at, more, others_wait) };
                match readiness {
                    Readiness::ToPlan(query) => {
                        room_for_new -= usize::from(is_new && room_for_new > 0);
                        planned.push((at, *query));
                    }
                    Readiness::Waits => others_wait |= self.planned(at, true, is_known),
                    Readiness::Settled => others_wait |= self.planned(at, false, is_known),
                }
            }
            let numbers: Vec<usize> = planned.iter().map(|(at, _)| *at).collect();
            self.plan_together(planned);
            for at in numbers {
                let pending = self.clusters[at].is_pending();
                others_wait |= self.planned(at, pending, is_known);
            }
        }
        waits |= others_wait;
        waits
    }

    /// Finds the objects that apps have in other clusters, if anything changed since the last time. Returns false
    /// if that has to wait for the end of a pause.
    fn plan_elsewhere_in_turn(&mut self) -> bool {
        if !self.has_moved {
            return true;
        }
        let began = std::time::Instant::now();
        if self.pace.rest(began).is_some() {
            return false;
        }
        self.has_moved = false;
        self.plan_elsewhere();
        self.pace.took(began.elapsed(), std::time::Instant::now(), 2);
        true
    }

    /// Returns the time until the first pause ends after which there is something to plan; `None` if there is none.
    pub(super) fn until_planned(&self) -> Option<Duration> {
        if self.is_partly_planned {
            return Some(Duration::ZERO);
        }
        let now = std::time::Instant::now();
        let clusters = self.clusters.iter().filter(|it| it.changed && !it.is_pending());
        let paces = clusters.map(|it| &it.pace).chain(Some(&self.pace).filter(|_| self.has_moved));
        paces.filter_map(|pace| pace.rest(now)).min()
    }

    /// Starts comparisons of clusters that report one identity, to find out if they are one cluster. One that
    /// proved nothing is repeated later.
    fn compare(&mut self) {
        let now = Instant::now();
        let snapshots: Vec<_> = self.fleet.snapshots.iter().collect();
        let (mut pairs, mut clusters) = (Vec::new(), BTreeMap::new());
        let mut is_first = false;
        let mut numbers: HashMap<usize, MemberNumber> = HashMap::new();
        for pair @ (place, before) in sameness::pairs(&snapshots) {
            let number = |at: usize| self.clusters.get(at).map(|following| following.number);
            let Some(pair_number) = number(place).zip(number(before)) else { continue };
            let known = self.compared.get(&pair_number);
            if known.is_some_and(|known| known.again_at.is_none_or(|at| now < at)) {
                continue;
            }
            let cluster = |at: usize| Some(self.clusters.get(at)?.feeds.as_ref()?.cluster());
            let (Some(one), Some(other)) = (cluster(before), cluster(place)) else { continue };
            is_first |= known.is_none();
            clusters.extend([(before, one), (place, other)]);
            numbers.extend([(place, pair_number.0), (before, pair_number.1)]);
            pairs.push(pair);
        }
        if pairs.is_empty() {
            return;
        }
        self.comparisons += 1;
        let number = self.comparisons;
        let numbered =
            move |(place, before): Pair| numbers.get(&place).copied().zip(numbers.get(&before).copied());
        let begun = pairs.iter().filter_map(|pair| numbered(*pair));
        self.compared.extend(begun.map(|pair| (pair, ComparedPair { number, again_at: None })));
        // Who is shown as two already is not waited for.
        self.comparing += usize::from(is_first);
        let timeout = self.timeout;
        let running = task::start(async move { sameness::compare(clusters, pairs, timeout).await.pairs });
        self.events.push(Box::pin(async move {
            let pairs = running.await.unwrap_or_default();
            let pairs = pairs.into_iter().filter_map(|(pair, found)| Some((numbered(pair)?, found)));
            Event::Compared { number, is_first, pairs: pairs.collect() }
        }));
    }

    /// Finds the objects that apps of each cluster have in other clusters, marks the clusters where they changed as to
    /// be planned, and reports those that a limit leaves out.
    fn plan_elsewhere(&mut self) {
        let clusters: Vec<_> = self.fleet.snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect();
        // Beyond a few, kinds are followed as a whole: namespaces need no bound.
        let mut all = elsewhere(&clusters, &self.asked.dependents, ReadMode::Followed);
        for (snapshot, following) in self.fleet.snapshots.iter_mut().zip(&mut self.clusters) {
            let of_home = |left: &&LeftOut| left.home == snapshot.name();
            let over: Vec<ScopeError> = all.left_out.iter().filter(of_home).map(LeftOut::error).collect();
            if over != following.over {
                following.over.iter().for_each(|error| snapshot.retract(&error.scope));
                over.iter().for_each(|error| snapshot.report(error.clone()));
                following.over = over;
            }
            let wanted = all.objects.remove(snapshot.name()).unwrap_or_default();
            following.homes = all.homes.remove(snapshot.name()).unwrap_or_default();
            if wanted != following.elsewhere {
                following.elsewhere = wanted;
                following.changed = true;
                following.end_unwanted(snapshot);
            }
            let dependents_in = all.dependents_in.remove(snapshot.name()).unwrap_or_default();
            following.changed |= dependents_in.keys().any(|it| !following.dependents_in.contains_key(it));
            following.dependents_in = dependents_in;
        }
    }

    /// Records if an answer of a cluster is awaited after its reads were planned; returns that.
    fn planned(&mut self, at: usize, is_pending: bool, is_known: bool) -> bool {
        let following = &mut self.clusters[at];
        following.is_settled = is_known && !is_pending;
        following.was_settled |= following.is_settled;
        is_pending
    }

    /// Prepares the planning of one cluster: discovers its kinds again if due, reports scopes whose answer is overdue,
    /// and ends those that nothing needs any more. The cluster waits while it is connecting for the first time, while an
    /// awaited answer is missing, and, while `others_wait`, during its pause.
    fn prepare(&mut self, at: usize, more: ExtraObjects<'_>, others_wait: bool) -> Readiness {
        let one_request = self.one_request();
        let following = &mut self.clusters[at];
        let snapshot = &mut self.fleet.snapshots[at];
        if following.feeds.is_none() {
            // There is nothing to plan, and a new connection marks the cluster again.
            following.changed = false;
            return Readiness::waits_if(following.connecting && !has_failed(snapshot));
        }
        let now = Instant::now();
        let is_late = |followed: &&mut FollowedScope| !followed.answered && now >= followed.answer_by;
        for followed in following.scopes.values_mut().filter(is_late) {
            followed.answered = true;
            if followed.is_excess() {
                continue;
            }
            let (scope, timeout) = (followed.read.scope(), self.timeout.as_secs_f64());
            let message = format!("watch {scope}: no answer within {timeout:.1} s");
            snapshot.answer(&followed.read, Answer::Failed { reason: "Timeout".to_owned(), message });
            following.changed = true;
        }
        for followed in following.scopes.values_mut() {
            if let Some(since) = followed.behind
                && self.clock.now().since(since) >= BROKEN_FOR_LONG
                && followed.stale.is_none()
            {
                followed.stale = Timestamp::now().checked_sub(self.clock.now().since(since)).ok();
                following.changed = true;
            }
            let lasts = |(since, ..): &mut (Moment, &'static str, String)| {
                self.clock.now().since(*since) >= BROKEN_FOR_LONG
            };
            if let Some((since, reason, message)) = followed.broken.take_if(lasts) {
                let began = Timestamp::now().checked_sub(self.clock.now().since(since)).ok();
                followed.stale = followed.stale.or(began);
                snapshot.retract_read(&followed.read);
                snapshot.answer(&followed.read, Answer::Failed { reason: reason.to_owned(), message });
                following.changed = true;
            }
        }
        let rediscovery = following.rediscovery(snapshot);
        let coming = &mut following.coming;
        if coming.is_wanted
            && coming.scopes.is_empty()
            && let Some(feeds) = &mut following.feeds
        {
            let scopes = KINDS_OF_KINDS.map(|kind| feeds.follow(definitions(kind)));
            coming.scopes = scopes.to_vec();
        }
        let rediscovery = rediscovery.or((coming.is_wanted && coming.is_blind).then_some(REDISCOVER));
        let is_late = rediscovery.is_some_and(|interval| now >= following.discovered + interval);
        let is_due = coming.is_wanted && !coming.under_way && coming.due.is_some_and(|due| now >= due);
        if is_due || is_late {
            coming.due = None;
            coming.under_way = true;
            following.discovered = now;
            let Some(feeds) = &following.feeds else { return Readiness::Settled };
            let (cluster, number) = (feeds.cluster().with_timeout(one_request), following.number);
            let running = task::start(async move { cluster.discover().await });
            self.events.push(Box::pin(async move {
                match running.await {
                    Ok(discovery) => Event::Discovered(number, discovery),
                    Err(error) => Event::Discovered(
                        number,
                        Err(ReadError::Unexpected {
                            what: "discover kinds".to_owned(),
                            problem: error.to_string(),
                        }),
                    ),
                }
            }));
        }
        if !following.changed || following.is_pending() {
            return Readiness::waits_if(following.is_pending());
        }
        let began = std::time::Instant::now();
        if others_wait && following.pace.rest(began).is_some() {
            return Readiness::Waits;
        }
        following.changed = false;
        let namespace = following.member.context.as_ref().map_or("default", |it| it.namespace()).to_owned();
        following.more.extend(more(snapshot, &namespace));
        let own: Vec<ObjectKey> = self.asked.objects.iter().chain(&following.more).cloned().collect();
        let objects = own.iter().chain(&following.elsewhere).cloned().collect();
        let selections = following.selections.iter().cloned().collect();
        let dependents_in = following.dependents_in.keys().cloned().collect();
        let asked = ReadQuery { objects, selections, dependents_in, ..following.query(&self.asked) };
        let without_others = ReadQuery { objects: own, dependents_in: BTreeSet::new(), ..asked.clone() };
        self.end_unwanted_objects(at, &asked, now);
        self.end_unwanted_lists(at, &asked);
        Readiness::ToPlan(Box::new(ClusterQuery {
            asked,
            without_others,
            begun: now,
            spent: began.elapsed(),
        }))
    }

    /// Plans and starts the next reads of several clusters, side by side.
    fn plan_together(&mut self, mut waiting: Vec<(usize, ClusterQuery)>) {
        // Where nothing comes of what a stage wants, it holds up no other.
        while !waiting.is_empty() {
            let (clusters, fleet) = (&self.clusters, &self.fleet);
            let propose = |(at, query): &(usize, ClusterQuery)| {
                let began = std::time::Instant::now();
                let proposed = clusters[*at].propose(&fleet.snapshots[*at], query, &fleet.rules.active());
                (proposed, began.elapsed())
            };
            let proposed = side_by_side(&waiting, propose);
            let all = std::mem::take(&mut waiting).into_iter().zip(proposed);
            for ((at, mut query), (proposed, took)) in all {
                let began = std::time::Instant::now();
                let goes_on = self.begin_next(at, &query, proposed);
                query.spent += took + began.elapsed();
                match goes_on {
                    true => waiting.push((at, query)),
                    false => self.end_plan(at, query.spent),
                }
            }
        }
    }

    /// Ends the planning of a cluster, which took `spent`.
    fn end_plan(&mut self, at: usize, spent: Duration) {
        let following = &mut self.clusters[at];
        following.singles.tell(&mut self.fleet.snapshots[at]);
        let is_pending = following.is_pending();
        if !is_pending {
            following.rounds = Rounds::default();
        }
        following.plans = if is_pending { following.plans.saturating_add(1) } else { 0 };
        following.pace.took(spent, std::time::Instant::now(), RESTS);
    }

    /// Starts the `proposed` reads of a cluster. Returns true if planning waits for reads and none of them was started,
    /// so that the next stage can be planned.
    fn begin_next(&mut self, at: usize, query: &ClusterQuery, proposed: Proposal) -> bool {
        let one_request = self.one_request();
        let following = &mut self.clusters[at];
        let snapshot = &mut self.fleet.snapshots[at];
        let Proposal { plan: ReadPlan { awaited, loose, named_by }, rounds, own, is_elsewhere_too } =
            proposed;
        following.rounds = rounds;
        let holds_up = !awaited.is_empty();
        for read in is_elsewhere_too {
            following.adopt(snapshot, &read);
        }
        let asked_for: HashSet<&ObjectKey> = match awaited.iter().chain(&loose).any(|it| named(it).is_some())
        {
            true => query.without_others.objects.iter().collect(),
            false => HashSet::new(),
        };
        let awaited = awaited.into_iter().map(|read| (read, false));
        for (read, is_loose) in awaited.chain(loose.into_iter().map(|read| (read, true))) {
            let is_of_others = own.as_ref().is_some_and(|own| !own.contains(&read));
            let is_foreign = is_of_others && following.is_elsewhere(&read);
            let admitted = match is_foreign {
                true => following.at_most(snapshot, read).map(|read| (read, None)),
                false if is_value(&read) => Some((read, None)),
                false => following.bound_single(snapshot, read, |key| asked_for.contains(key), &named_by),
            };
            let (read, asker) = admitted.unzip();
            // Of Secrets only what is asked for by name is read whole, and then not followed: feeds bring no values.
            // The identity of a cluster that is read lightly takes no watch either.
            let is_once = |read: &&Read| is_value(read) || following.is_light;
            let value = read.as_ref().filter(is_once).and_then(named);
            if is_loose && value.is_some() && following.loose_fetches() >= LOOSE_AT_ONCE {
                continue;
            }
            let Some(read) = read.filter(|read| following.planned.insert(read.clone())) else { continue };
            match is_of_others {
                true => following.note_homes(snapshot, &read),
                false => snapshot.set_homes(&read, []),
            }
            let Some(feeds) = &mut following.feeds else { return false };
            if let Some(key) = value {
                following.values.insert(key, read.clone());
                match following.fetching.get_mut(&read) {
                    // Another one of its name was being read, and is gone.
                    Some(fetch) => (fetch.is_due, fetch.is_gone) = (true, false),
                    None => {
                        let fetch = SecretFetch { is_loose, ..SecretFetch::default() };
                        following.fetching.insert(read.clone(), fetch);
                        let cluster = feeds.cluster().with_timeout(one_request);
                        self.events.push(get(following.number, cluster, read));
                    }
                }
                continue;
            }
            let id = feeds.follow(scope_of(&read));
            let followed = FollowedScope::new(read, is_foreign, is_loose, query.begun + self.timeout);
            following.scopes.insert(id, FollowedScope { asker: asker.flatten(), ..followed });
        }
        holds_up && !following.is_pending()
    }

    /// Reads the object of a polled scope, at once if `is_first`, else after the interval of polling.
    pub(super) fn read_again(&mut self, at: usize, id: ScopeId, is_first: bool) {
        let following = &self.clusters[at];
        let Some((feeds, read)) = following.feeds.as_ref().zip(following.again.read(id)) else { return };
        let reading = once_more(feeds.cluster().clone(), self.one_request(), read, is_first);
        let number = following.number;
        self.events.push(Box::pin(async move { Event::Polled(number, id, reading.await) }));
    }
}

impl FollowedCluster {
    /// Plans the next reads of the cluster. Those of them that apps of other clusters need alone are told apart from the
    /// rest by a second plan, without these apps.
    fn propose(&self, snapshot: &Snapshot, query: &ClusterQuery, rules: &ActiveRules<'_>) -> Proposal {
        let (planned, singles) = (&self.planned, &self.singles);
        let excess: HashSet<&Read> =
            self.scopes.values().filter(|it| it.is_excess()).map(|followed| &followed.read).collect();
        let wanted = RefCell::new(BTreeSet::new());
        let is_new = |read: &Read| {
            if excess.contains(read) {
                wanted.borrow_mut().insert(read.clone());
            }
            !planned.contains(read) && !singles.leave_out(read)
        };
        let plan =
            |asked: &ReadQuery, rounds: &mut Rounds| plan_watches(snapshot, asked, rules, rounds, &is_new);
        let mut rounds = self.rounds.clone();
        let next = plan(&query.asked, &mut rounds);
        let mut reads = next.awaited.iter().chain(&next.loose);
        // What is wanted without them too is no matter of other clusters.
        let own = reads.any(|read| self.homes_in_scope(read).next().is_some()).then(|| {
            let ReadPlan { awaited, loose, .. } = plan(&query.without_others, &mut self.rounds.clone());
            awaited.into_iter().chain(loose).collect()
        });
        Proposal { plan: next, rounds, own, is_elsewhere_too: wanted.into_inner() }
    }

    /// Returns the interval at which discovery is repeated, because it has not succeeded, the kind of a watched scope is
    /// missing in it, or the cluster is read lightly; `None` if it is not repeated.
    fn rediscovery(&self, snapshot: &Snapshot) -> Option<Duration> {
        match snapshot.kinds() {
            None => Some(REDISCOVER),
            Some(_) if self.is_light => Some(LIGHT_REDISCOVERY),
            Some(kinds) => {
                let is_missing = |followed: &FollowedScope| !kinds.may_serve(&followed.kind);
                self.scopes.values().any(is_missing).then_some(REDISCOVER)
            }
        }
    }

    /// Returns true if all that is needed of the cluster was answered, also by a refusal, and nothing of it is broken,
    /// stale or being listed again, so that only an event or a deadline of a verdict can change the view.
    pub(super) fn is_quiet(&self, snapshot: &Snapshot) -> bool {
        let is_live = |it: &FollowedScope| {
            it.answered && it.broken.is_none() && it.stale.is_none() && it.behind.is_none()
        };
        let is_heard = self.feeds.as_ref().is_some_and(|feeds| feeds.silence().is_none());
        let is_known = self.is_settled && !self.changed && !self.is_asked && self.stale.is_none();
        let is_due = || {
            self.rediscovery(snapshot).is_some_and(|interval| Instant::now() >= self.discovered + interval)
        };
        is_heard && is_known && !self.coming.is_wanted && self.scopes.values().all(is_live) && !is_due()
    }

    /// Returns true while an answer is missing that planning waits for.
    fn is_pending(&self) -> bool {
        self.fetching.values().any(|fetch| !fetch.is_loose)
            || self.scopes.values().any(|followed| !followed.answered && !followed.is_loose)
    }

    /// Returns the number of running reads of Secrets whose results planning does not wait for.
    pub(super) fn loose_fetches(&self) -> usize {
        self.fetching.values().filter(|fetch| fetch.is_loose).count()
    }

    /// Returns true if the read concerns apps of other clusters: they name its object, or objects or dependents in
    /// its namespace.
    fn is_elsewhere(&self, read: &Read) -> bool {
        self.homes_of(read).next().is_some()
    }

    /// Iterates over the names of the other clusters whose apps name the object of `read`, or, for a list of a whole
    /// kind in one namespace, name objects of the kind or need dependents there. Names may repeat.
    fn homes_of<'a>(&'a self, read: &'a Read) -> impl Iterator<Item = &'a String> {
        let key = named(read);
        let is_whole = matches!(read.target, Target::List { labels: None, fields: None });
        let namespace = read.namespace.as_ref().filter(|_| is_whole && key.is_none());
        let first = namespace.map(|namespace| ObjectKey::new(&*read.group, &*read.kind, &**namespace, ""));
        let one = key.and_then(|key| self.homes.get(&key));
        let inside = first.into_iter().flat_map(|first| {
            let all = self.homes.range(first.clone()..);
            let is_inside = move |key: &ObjectKey| {
                key.group == first.group && key.kind == first.kind && key.namespace == first.namespace
            };
            all.take_while(move |(key, _)| is_inside(key)).map(|(_, homes)| homes)
        });
        let dependents = namespace.and_then(|namespace| self.dependents_in.get(namespace));
        one.into_iter().chain(inside).chain(dependents).flatten()
    }

    /// Lists the names of the clusters whose apps the read concerns; of a list in all namespaces, those whose apps name
    /// an object of the kind.
    fn homes_in_scope<'a>(&'a self, read: &'a Read) -> impl Iterator<Item = &'a String> {
        let is_whole = read.namespace.is_none() && named(read).is_none();
        let first = is_whole.then(|| ObjectKey::new(&*read.group, &*read.kind, "", ""));
        let of_kind = first.into_iter().flat_map(|first| {
            let all = self.homes.range(first.clone()..);
            all.take_while(move |(key, _)| key.group == first.group && key.kind == first.kind)
                .flat_map(|(_, homes)| homes)
        });
        self.homes_of(read).chain(of_kind)
    }

    /// Records in the snapshot that only apps of other clusters need the scope of `read`, unless this cluster needs it
    /// itself by another read. If none needs it any more, what was recorded stays.
    pub(super) fn note_homes(&self, snapshot: &mut Snapshot, read: &Read) {
        let scope = read.scope();
        let is_needed = |other: &FollowedScope| !other.is_foreign && other.read.scope() == scope;
        let homes: BTreeSet<String> = self.homes_in_scope(read).cloned().collect();
        if !homes.is_empty() && !self.scopes.values().any(is_needed) {
            snapshot.set_homes(read, homes);
        }
    }

    /// Returns the read to start in place of `read`, which only apps of other clusters need: `read` itself, or,
    /// beyond [`FOREIGN_OF_A_KIND`] or [`FOREIGN`], the list of its whole kind; `None` if the kind cannot be listed.
    fn at_most(&mut self, snapshot: &Snapshot, read: Read) -> Option<Read> {
        let kind = GroupKind::new(&*read.group, &*read.kind);
        let has_room = |home: &&String| {
            let Some(kinds) = self.foreign.get(*home) else { return true };
            let all: usize = kinds.values().sum();
            all < FOREIGN && kinds.get(&kind).copied().unwrap_or_default() < FOREIGN_OF_A_KIND
        };
        let home = self.homes_of(&read).find(has_room).cloned();
        if let Some(home) = home {
            *self.foreign.entry(home).or_default().entry(kind).or_default() += 1;
            return Some(read);
        }
        let homes: Vec<String> = self.homes_of(&read).cloned().collect();
        self.foreign_over.entry(kind.clone()).or_default().extend(homes);
        let is_listable = snapshot.kinds()?.get(&kind)?.is_listable();
        let target = Target::List { labels: None, fields: None };
        is_listable.then_some(Read { namespace: None, target, ..read })
    }

    /// Makes the list of a whole kind, started because of apps of other clusters, an ordinary scope of this
    /// cluster, which now needs it itself; reports its failure, if any.
    fn adopt(&mut self, snapshot: &mut Snapshot, read: &Read) {
        if !is_whole_kind(read) {
            return;
        }
        let Some(followed) = self.scopes.values_mut().find(|it| it.is_excess() && it.read == *read) else {
            return;
        };
        followed.is_foreign = false;
        snapshot.set_homes(read, []);
        let answer = match followed.state.0.clone() {
            WatchState::CatchingUp | WatchState::Live => return,
            WatchState::Forbidden { message } => Answer::Forbidden { message },
            WatchState::Absent => Answer::NotFound,
            WatchState::Broken { reason, message } => Answer::Failed { reason: reason.to_owned(), message },
        };
        snapshot.answer(read, answer);
        self.changed = true;
    }

    /// Ends the scopes of single objects that were read because apps of other clusters named them, and that neither
    /// these apps name nor a caller wants any more. If something else needs such an object, it is read again.
    fn end_unwanted(&mut self, snapshot: &mut Snapshot) {
        let is_over = |followed: &FollowedScope| {
            followed.is_foreign
                && followed
                    .key
                    .as_ref()
                    .is_some_and(|key| !self.elsewhere.contains(key) && !self.more.contains(key))
        };
        let over: Vec<ScopeId> =
            self.scopes.iter().filter(|(_, followed)| is_over(followed)).map(|(id, _)| *id).collect();
        let ended: Vec<Read> = over
            .into_iter()
            .filter_map(|id| {
                let FollowedScope { read, .. } = self.scopes.remove(&id)?;
                if let Some(feeds) = &mut self.feeds {
                    feeds.end(id);
                }
                self.again.end(id);
                self.planned.remove(&read);
                Some(read)
            })
            .collect();
        if ended.is_empty() {
            return;
        }
        let holders = Holders::of(self.scopes.values());
        for (key, projection) in ended.iter().filter_map(|read| Some((named(read)?, read.projection))) {
            snapshot.forget(&key);
            bodies::end(snapshot, &key, projection, holders.held(&key));
        }
    }
}

/// Returns true if a read is of a Secret's values, which are read once and not watched.
fn is_value(read: &Read) -> bool {
    let is_secret = read.kind == "Secret" && read.group.is_empty();
    is_secret && read.projection == Projection::Full && matches!(read.target, Target::Object(_))
}

/// Returns true if the snapshot has an error of the whole cluster other than `Connecting`: then no caller waits for it.
pub(super) fn has_failed(snapshot: &Snapshot) -> bool {
    snapshot.errors().iter().any(|error| error.scope == Scope::Cluster && error.reason != "Connecting")
}

pub(super) fn get(
    number: MemberNumber,
    cluster: Cluster,
    read: Read,
) -> Pin<Box<dyn Future<Output = Event> + Send>> {
    Box::pin(async move {
        let outcome = read_one(&cluster, &read).await;
        Event::Got(number, Box::new(read), outcome)
    })
}
