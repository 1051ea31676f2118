//! Watches all objects of one API server, and keeps an index of them.
//!
//! [`Live`] follows every kind that can be listed and watched, but those that are left out, and keeps an [`Index`] of
//! them up to date. One task owns the index; readers take its newest [`Snapshot`], and subscribers hear of changes in
//! their order. Kinds that come, change their version or go are followed as CustomResourceDefinitions and APIServices
//! change; the others go on undisturbed.

mod kinds;
mod warm;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use taffrail_cluster::{
    self as cluster, Change, Cluster, Connectivity, Context, Costs, Discovery, ReadError, ScopeId,
    WatchEvent, WatchEvents, WatchSettings, Watcher,
};
use taffrail_index::{Index, IndexSettings, KindId, ScopeState, Snapshot, Subscription};
use taffrail_object::ApiResource;
use taffrail_object::json::Parser;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use kinds::KindSettings;
pub use warm::{ColdStart, write_saved};

/// Settings for following a cluster.
#[derive(Debug, Default)]
pub struct LiveSettings {
    /// The settings of the watches.
    pub feeds: WatchSettings,
    /// The settings of the index.
    pub index: IndexSettings,
    /// The kinds to follow, and the projection of their objects.
    pub kinds: KindSettings,
    /// The bytes of an earlier [`Live::save`]; `None` to read everything again. The saved objects are shown at once as
    /// stale, and only later changes are read, unless [`Live::cold_start`] has a reason against it.
    pub warm: Option<Vec<u8>>,
}

/// Minimum interval between published snapshots while any scope is being read for the first time, so that many
/// changes are reassessed together.
const LOADING: Duration = Duration::from_millis(500);

/// Maximum time for which events that have already arrived are applied before the next snapshot is published.
const GATHERING: Duration = Duration::from_millis(2);

/// Time from a change of an object that defines kinds to the next discovery: such objects come in groups.
const SETTLED: Duration = Duration::from_millis(300);

/// Interval of discovery, for kinds that appear without an object that defines them, as after an upgrade.
const REDISCOVER: Duration = Duration::from_secs(600);

/// Maximum sleep; a deadline further away is checked again after it, because the wall clock may be set meanwhile.
const CLOCK: Duration = Duration::from_secs(30);

/// Interval of discovery while a group cannot be discovered: the server behind it may be down for days.
const INCOMPLETE: Duration = Duration::from_secs(60);

/// Time after which discovery is repeated if it failed altogether, for the core group, or for all other groups.
const RETRY: Duration = Duration::from_secs(5);

/// The reason, shown with a scope, why it is stale: its watch may have broken unseen while its server was silent.
const REOPENING: &str = "the watch is being reopened, because the server was silent";

/// The reason, shown with each scope of a cluster, why it is stale: the cluster may have changed while this process did
/// not run.
const ASLEEP: &str = "this process or its machine was asleep, so the cluster is being read again";

/// Time limit of discovery, and of checking a saved state against the server; each fails after it.
const DISCOVERY: Duration = Duration::from_secs(30);

/// A cluster that is watched until this handle is dropped.
#[derive(Debug)]
pub struct Live {
    shared: Arc<Shared>,
    asks: mpsc::Sender<LiveCommand>,
    contact: watch::Receiver<Connectivity>,
    cold: Option<ColdStart>,
    task: JoinHandle<()>,
}

/// The state that the owner of the index shares with the users of a [`Live`].
#[derive(Debug)]
struct Shared {
    /// The newest snapshot. The lock is held only while a pointer is copied.
    newest: RwLock<Snapshot>,
    costs: Mutex<Costs>,
}

/// A request to the task that owns the index, with the channel for its answer.
enum LiveCommand {
    Subscribe(usize, oneshot::Sender<Subscription>),
    Costs(oneshot::Sender<Costs>),
    Save(String, oneshot::Sender<Vec<u8>>),
}

impl Live {
    /// Starts to watch `cluster`, from the saved state in `settings` if that can be used. With its `context`, expired
    /// credentials are renewed.
    ///
    /// # Errors
    /// When the kinds of the server cannot be discovered.
    pub async fn start(
        cluster: Cluster,
        context: Option<Context>,
        settings: LiveSettings,
    ) -> Result<Live, ReadError> {
        let discovery = cluster.with_timeout(DISCOVERY).discover().await?;
        let LiveSettings { mut feeds, index: settings, kinds, warm } = settings;
        let (mut index, mut positions, mut cold) = (None, BTreeMap::new(), None);
        if let Some(saved) = warm {
            match warm::read(&saved, settings.clone(), &cluster.with_timeout(DISCOVERY)).await {
                Ok(warm) => (index, positions) = (Some(warm.index), warm.positions),
                Err(error) => cold = Some(error),
            }
        }
        let mut index = index.unwrap_or_else(|| Index::new(settings));
        // Nothing that is kept of an object tells who wrote which field.
        feeds.protobuf = true;
        let (feeds, inbox) = Watcher::start(cluster, context, feeds);
        let newest = index.publish(Timestamp::now());
        let shared = Arc::new(Shared { newest: RwLock::new(newest), costs: Mutex::default() });
        let (asks, asked) = mpsc::channel(16);
        let (told, contact) = watch::channel(Connectivity::Live);
        let mut owner = Owner {
            index,
            feeds,
            kinds,
            scopes: HashMap::new(),
            followed: BTreeMap::new(),
            contact: told,
            shared: shared.clone(),
            parser: Parser::new(),
            dirty: false,
            definitions: None,
            loading: 0,
            positions,
        };
        owner.follow(&discovery);
        owner.forget_unserved();
        let task = tokio::spawn(owner.run(lasts(&discovery), inbox, asked));
        Ok(Live { shared, asks, contact, cold, task })
    }

    /// Returns the newest published snapshot.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.newest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Subscribes to every change from now on. At most `bound` changes wait for the subscriber; a slower one must
    /// subscribe again. `None` if the cluster is no longer watched. See [`Index::subscribe`].
    pub async fn subscribe(&self, bound: usize) -> Option<Subscription> {
        let (answer, subscription) = oneshot::channel();
        self.asks.send(LiveCommand::Subscribe(bound, answer)).await.ok()?;
        subscription.await.ok()
    }

    /// Returns the reason why the saved state was not used; `None` if it was used or none was given.
    pub fn cold_start(&self) -> Option<&ColdStart> {
        self.cold.as_ref()
    }

    /// Saves the present state for a warm start of the next process; `None` if the cluster is no longer watched, or
    /// its identity is not known.
    pub async fn save(&self) -> Option<Vec<u8>> {
        let kube_system = self.snapshot();
        let kube_system = kube_system.find("", "Namespace", "", "kube-system")?;
        let (answer, saved) = oneshot::channel();
        self.asks.send(LiveCommand::Save(kube_system.uid().to_string(), answer)).await.ok()?;
        saved.await.ok()
    }

    /// Returns the state of the connection to the server, as a channel whose changes can be awaited. A server whose
    /// state went back is [`Connectivity::Live`] in it.
    pub fn contact(&self) -> watch::Receiver<Connectivity> {
        self.contact.clone()
    }

    /// Returns the number of requests to the server so far and the size of their responses, by purpose; the last known
    /// values if the cluster is no longer watched.
    pub async fn costs(&self) -> Costs {
        let (answer, costs) = oneshot::channel();
        let answered = match self.asks.send(LiveCommand::Costs(answer)).await {
            Ok(()) => costs.await.ok(),
            Err(_) => None,
        };
        answered.unwrap_or_else(|| *self.shared.costs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A scope of the server that is watched.
struct WatchedScope {
    kind: KindId,
    namespace: Option<String>,
    state: cluster::WatchState,
    /// True if it was live when the connection became doubtful or was lost, or the server's state went back, and has
    /// not reported its state since.
    is_unproven: bool,
    /// True while the scope is listed for the first time: false once that list is complete, refused or failed, and from
    /// the start if the watch continues from a saved state.
    is_loading: bool,
    /// True if objects of the scope define kinds.
    defines: bool,
}

/// The task that owns the index.
struct Owner {
    index: Index,
    feeds: Watcher,
    kinds: KindSettings,
    scopes: HashMap<ScopeId, WatchedScope>,
    /// The scopes that are followed now.
    followed: BTreeMap<cluster::Scope, ScopeId>,
    contact: watch::Sender<Connectivity>,
    shared: Arc<Shared>,
    parser: Parser,
    /// True if there are changes to publish.
    dirty: bool,
    /// The time of the next discovery because a definition changed; `None` if none did.
    definitions: Option<Instant>,
    /// Number of scopes that are being read for the first time.
    loading: usize,
    /// The resource versions of the scopes in the saved state.
    positions: BTreeMap<cluster::Scope, String>,
}

/// Returns the pause before the next discovery: 10 min if all groups were discovered, 1 min if only named groups
/// failed, and 5 s if the core group or all other groups did.
fn lasts(discovery: &Discovery) -> Duration {
    match discovery.broken() {
        [] => REDISCOVER,
        broken if broken.iter().all(|group| group.group().is_some_and(|group| !group.is_empty())) => {
            INCOMPLETE
        }
        _ => RETRY,
    }
}

impl Owner {
    async fn run(
        mut self,
        known_for: Duration,
        mut inbox: WatchEvents,
        mut asked: mpsc::Receiver<LiveCommand>,
    ) {
        let (found, mut discovered) = mpsc::channel::<Result<Discovery, ReadError>>(1);
        let mut told = Instant::now();
        let mut rediscover = Instant::now() + known_for;
        let mut discovering = false;
        // Put off again and again a timer costs next to nothing.
        let mut ask_kinds = pin!(tokio::time::sleep_until(rediscover));
        let mut due = pin!(tokio::time::sleep_until(told));
        loop {
            due.as_mut().reset(self.due(told));
            let kinds_at = self.definitions.map_or(rediscover, |at| at.min(rediscover));
            if ask_kinds.deadline() != kinds_at {
                ask_kinds.as_mut().reset(kinds_at);
            }
            tokio::select! {
                delivery = inbox.next() => {
                    let Some(delivery) = delivery else { return };
                    let until = Instant::now() + GATHERING;
                    self.take(delivery);
                    while Instant::now() < until {
                        let Some(delivery) = inbox.try_next() else { break };
                        self.take(delivery);
                    }
                }
                ask = asked.recv() => match ask {
                    // Who asked may be gone.
                    Some(LiveCommand::Subscribe(bound, answer)) => drop(answer.send(self.index.subscribe(bound))),
                    Some(LiveCommand::Costs(answer)) => drop(answer.send(self.feeds.costs())),
                    Some(LiveCommand::Save(cluster, answer)) => {
                        self.tell();
                        drop(answer.send(self.save(&cluster)));
                    }
                    None => return,
                },
                Some(discovery) = discovered.recv() => {
                    discovering = false;
                    match discovery {
                        Ok(discovery) => {
                            rediscover = Instant::now() + lasts(&discovery);
                            self.follow(&discovery);
                        }
                        Err(_) => rediscover = Instant::now() + RETRY,
                    }
                }
                () = &mut ask_kinds, if !discovering => {
                    discovering = true;
                    self.definitions = None;
                    let (cluster, found) = (self.feeds.cluster().with_timeout(DISCOVERY), found.clone());
                    tokio::spawn(async move {
                        // Nobody asks any more once the owner is gone.
                        let _ = found.send(cluster.discover().await).await;
                    });
                }
                () = &mut due => self.dirty |= self.index.is_due(Timestamp::now()),
            }
            if self.dirty && (self.loading == 0 || told.elapsed() >= LOADING) {
                self.tell();
                told = Instant::now();
            }
        }
    }

    /// Returns the time until which to wait for events: 500 ms after the last publication (`told`) if changes wait to
    /// be published while scopes are read for the first time, else the next deadline of a verdict, but not sooner than
    /// 50 ms after `told` nor later than in 30 s.
    fn due(&self, told: Instant) -> Instant {
        if self.dirty && self.loading > 0 {
            return told + LOADING;
        }
        let now = Timestamp::now();
        let wait = self.index.next_deadline().map(|at| at.duration_since(now).unsigned_abs());
        let passed = self.index.next_deadline().is_some_and(|at| at <= now);
        let wait = if passed { Duration::ZERO } else { wait.unwrap_or(CLOCK) };
        // Not oftener than twenty times a second, whatever the deadlines say.
        (Instant::now() + wait.min(CLOCK)).max(told + Duration::from_millis(50))
    }

    fn tell(&mut self) {
        self.dirty = false;
        let newest = self.index.publish(Timestamp::now());
        let last = {
            let mut place = self.shared.newest.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *place, newest)
        };
        // Its last reader gives back what only it held; readers do not wait for that.
        drop(last);
        *self.shared.costs.lock().unwrap_or_else(PoisonError::into_inner) = self.feeds.costs();
    }

    /// Serialises the published state with the resource version of each scope; `cluster` is the cluster's identity.
    fn save(&self, cluster: &str) -> Vec<u8> {
        let position =
            |(scope, id): (&cluster::Scope, &ScopeId)| Some((scope.clone(), self.feeds.position(*id)?));
        let positions: BTreeMap<cluster::Scope, String> = self.followed.iter().filter_map(position).collect();
        let newest = self.shared.newest.read().unwrap_or_else(PoisonError::into_inner).clone();
        warm::write(cluster, &newest, &positions)
    }

    /// Starts to watch the kinds of the settings that `discovery` has and that can be watched, in the namespaces of the
    /// settings, and ends all other watches, except those of groups that could not be discovered. Lists a kind again if
    /// some of its objects were judged under another assumption of whether it has a status subresource.
    fn follow(&mut self, discovery: &Discovery) {
        let now = Timestamp::now();
        let wanted = self.kinds.scopes(discovery);
        let is_broken = |scope: &cluster::Scope| {
            discovery.broken().iter().any(|broken| broken.concerns(&scope.resource.group))
        };
        // Of a group that could not be asked nobody knows that its kinds are gone.
        let gone: Vec<cluster::Scope> = self
            .followed
            .keys()
            .filter(|scope| !wanted.contains(*scope) && !is_broken(scope))
            .cloned()
            .collect();
        for scope in gone {
            let Some(id) = self.followed.remove(&scope) else { continue };
            self.feeds.end(id);
            let Some(followed) = self.scopes.remove(&id) else { continue };
            self.loading -= usize::from(followed.is_loading);
            // A version that vanished while another is served takes no object with it.
            let goes_on = wanted.iter().any(|other| {
                other.resource.group == scope.resource.group
                    && other.resource.kind == scope.resource.kind
                    && other.namespace == scope.namespace
            });
            if !goes_on {
                self.index.forget(followed.kind, followed.namespace.as_deref(), now);
                let state = ScopeState::Absent;
                self.index.set_scope(followed.kind, followed.namespace.as_deref(), state, "", now);
            }
            self.dirty = true;
        }
        for served in discovery.resources() {
            self.index.kind(&served.preferred());
        }
        // Where a part of discovery failed, a kind that was not told of may be served.
        self.index.set_discovered(discovery.broken().is_empty().then(BTreeSet::new));
        for scope in wanted {
            let kind = self.index.kind(&scope.resource);
            let ApiResource { group, version, kind: name, .. } = &scope.resource;
            let served = discovery.resources().iter().find(|served| {
                served.kind == *name && served.group == *group && served.versions.first() == Some(version)
            });
            let has_status_subresource = served.map(|served| served.has_status_subresource);
            // What was judged without knowing it is listed again.
            let is_told_again = self.index.set_status_subresource(kind, has_status_subresource);
            if let Some(id) = self.followed.get(&scope).copied() {
                if !is_told_again {
                    continue;
                }
                self.feeds.end(id);
                let followed = self.scopes.remove(&id);
                self.loading -= usize::from(followed.is_some_and(|followed| followed.is_loading));
            }
            let position = self.positions.remove(&scope).filter(|_| !is_told_again);
            let followed = WatchedScope {
                kind,
                namespace: scope.namespace.clone(),
                state: cluster::WatchState::CatchingUp,
                is_unproven: false,
                is_loading: position.is_none(),
                defines: kinds::defines_kinds(&scope.resource),
            };
            self.loading += usize::from(followed.is_loading);
            let id = match position {
                Some(position) => self.feeds.follow_from(scope.clone(), position),
                None => self.feeds.follow(scope.clone()),
            };
            self.scopes.insert(id, followed);
            self.followed.insert(scope, id);
        }
    }

    /// Removes the saved objects of each scope (kind, and namespace if it has one) that is no longer watched.
    fn forget_unserved(&mut self) {
        let now = Timestamp::now();
        for (scope, _) in std::mem::take(&mut self.positions) {
            let kind = self.index.kind(&scope.resource);
            let goes_on =
                self.scopes.values().any(|own| own.kind == kind && own.namespace == scope.namespace);
            if !goes_on {
                self.index.forget(kind, scope.namespace.as_deref(), now);
                self.dirty = true;
            }
        }
    }

    fn take(&mut self, delivery: WatchEvent) {
        let now = Timestamp::now();
        match delivery {
            WatchEvent::InitStarted(id) => {
                if let Some(followed) = self.scopes.get(&id) {
                    self.index.begin(followed.kind, followed.namespace.as_deref(), now);
                }
            }
            WatchEvent::State(id, state) => {
                let Some(followed) = self.scopes.get_mut(&id) else { return };
                followed.state = state;
                let is_answered = !matches!(followed.state, cluster::WatchState::CatchingUp);
                followed.is_unproven &= !is_answered;
                if is_answered && std::mem::take(&mut followed.is_loading) {
                    self.loading -= 1;
                }
                self.show_scope(id, now);
            }
            WatchEvent::Connectivity(contact) => {
                if !matches!(contact, Connectivity::Live) {
                    for followed in self.scopes.values_mut() {
                        followed.is_unproven |= followed.state == cluster::WatchState::Live;
                    }
                }
                let is_lost = matches!(*self.contact.borrow(), Connectivity::Lost { .. });
                match contact {
                    Connectivity::Stale { .. } if is_lost => {}
                    // It is there; that its state went back concerns its scopes, which are read again.
                    Connectivity::WentBack { .. } => drop(self.contact.send_replace(Connectivity::Live)),
                    other => drop(self.contact.send_replace(other)),
                }
                for id in self.scopes.keys().copied().collect::<Vec<_>>() {
                    self.show_scope(id, now);
                }
            }
            WatchEvent::Batch(batch) => {
                let Some(followed) = self.scopes.get_mut(&batch.scope()) else { return };
                let Owner { index, parser, .. } = self;
                let (kind, form) = (followed.kind, batch.followed().projection);
                let (mut changed, mut complete) = (false, false);
                batch.read(parser, |change| match change {
                    Change::Upsert(object) => {
                        // An object that cannot be kept is none; the others are good without it.
                        changed |= index.apply(kind, &object, form, now).is_ok();
                    }
                    Change::Delete(object) => {
                        changed |= index.remove(kind, &object.namespace(), &object.name());
                    }
                    Change::Malformed(item) => {
                        let namespace = followed.namespace.as_deref();
                        let name = item.name.unwrap_or_else(|| format!("item {}", item.index));
                        let reason = format!("{name} is left out: {}", item.reason);
                        index.set_scope(kind, namespace, ScopeState::Broken, &reason, now);
                        changed = true;
                    }
                    Change::InitDone => {
                        index.end(kind, followed.namespace.as_deref(), now);
                        complete = true;
                    }
                });
                if complete && std::mem::take(&mut followed.is_loading) {
                    self.loading -= 1;
                }
                if changed && followed.defines && !followed.is_loading {
                    self.definitions.get_or_insert(Instant::now() + SETTLED);
                }
                self.dirty |= changed | complete;
            }
        }
    }

    /// Sets the state of a scope in the index, by its watch and by the connection to its server.
    fn show_scope(&mut self, id: ScopeId, now: Timestamp) {
        let Some(followed) = self.scopes.get(&id) else { return };
        let lost = match &*self.contact.borrow() {
            Connectivity::Lost { message, .. } => Some(message.clone()),
            Connectivity::Stale { .. } => Some(ASLEEP.to_owned()),
            _ if followed.is_unproven => Some(REOPENING.to_owned()),
            _ => None,
        };
        let (state, reason) = match (&followed.state, &lost) {
            (cluster::WatchState::Forbidden { message }, _) => (ScopeState::Forbidden, message.as_str()),
            (cluster::WatchState::Absent, _) => (ScopeState::Absent, ""),
            (_, Some(message)) => (ScopeState::Stale, message.as_str()),
            (cluster::WatchState::CatchingUp, None) => (ScopeState::CatchingUp, ""),
            (cluster::WatchState::Live, None) => (ScopeState::Live, ""),
            (cluster::WatchState::Broken { message, .. }, None) => (ScopeState::Broken, message.as_str()),
        };
        self.index.set_scope(followed.kind, followed.namespace.as_deref(), state, reason, now);
        self.dirty = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn costs_are_the_last_known_if_the_owner_ends_before_it_answers() {
        let newest = Index::new(IndexSettings::default()).publish(Timestamp::now());
        let mut known = Costs::default();
        known.relists = 3;
        let shared = Arc::new(Shared { newest: RwLock::new(newest), costs: Mutex::new(known) });
        let (asks, mut asked) = mpsc::channel(1);
        let (_told, contact) = watch::channel(Connectivity::Live);
        let task = tokio::spawn(async move { drop(asked.recv().await) });
        let live = Live { shared, asks, contact, cold: None, task };
        assert_eq!(live.costs().await, known);
    }
}
