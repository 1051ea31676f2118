//! Lists the objects of a cluster, and watches them from there.
//!
//! [`Watcher`] follows any number of [`Scope`]s, each in a task of its own, and passes their text to one reader, the
//! [`WatchEvents`]: a page of a list or some lines of a watch. The reader decodes it in place ([`Batch::read`]), so
//! that each byte is touched once and nothing is copied between tasks.
//!
//! Guarantees for the reader:
//!
//! * Between [`WatchEvent::InitStarted`] and [`Change::InitDone`] come all existing objects, perhaps mixed with changes; objects
//!   not delivered by then are gone. Afterwards every change comes in the server's order, perhaps more than once.
//! * A failure concerns its scope, as a [`WatchState`]; the others continue. A failed scope is retried with backoff.
//! * A watch that is silent for too long is reopened, since a live server sends at least bookmarks; its scope is listed
//!   again if the server has sent bookmarks before, or the next watch is silent too. Probes of the server
//!   itself tell if it is live ([`Connectivity`]): an open socket proves nothing.
//! * The number of concurrent lists is bounded, and so is the text in transit, which is charged to the cluster: a slow
//!   reader slows the server down.
//! * An event is small, so that reading it does not delay other clusters.

mod backoff;
mod connectivity;
mod decode;
mod scope;
mod skipping;
mod stream;
mod unread;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taffrail_object::{ApiResource, Projection};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::clock::{BootClock, Moment};
use crate::connect::Cluster;
use crate::costs::{Cost, Costs, Counters};
use crate::kubeconfig::Context;

pub use connectivity::Connectivity;
pub use decode::went_back;
pub use decode::{Batch, Change};

/// A set of objects to follow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The objects' resource.
    pub resource: ApiResource,
    /// The objects' namespace; `None` for all namespaces, or for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The part of each object that is followed. Secrets are always followed as [`Projection::Metadata`].
    pub projection: Projection,
    /// A label selector in the API's syntax; `None` selects all objects.
    pub labels: Option<String>,
    /// A field selector in the API's syntax; `None` selects all objects.
    pub fields: Option<String>,
}

impl Scope {
    /// Creates a scope of all objects of `resource`, in full.
    pub fn all(resource: ApiResource) -> Scope {
        Scope { resource, namespace: None, projection: Projection::Full, labels: None, fields: None }
    }
}

/// The ID of a scope, unique within its [`Watcher`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeId(u32);

/// The state of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchState {
    /// The scope's objects are being listed, for the first time or again, or its watch is opened again after the
    /// process or its machine was asleep.
    CatchingUp,
    /// All objects of the scope are known, and changes arrive as they happen.
    Live,
    /// The user may not read the scope.
    Forbidden {
        /// Message for people: the operation, the server's message and its HTTP status.
        message: String,
    },
    /// The server does not serve this kind in this version.
    Absent,
    /// The scope cannot be read for another reason.
    Broken {
        /// The reason, one word in CamelCase.
        reason: &'static str,
        /// Message for people.
        message: String,
    },
}

/// An item of [`WatchEvents`].
#[derive(Debug)]
pub enum WatchEvent {
    /// A full list begins.
    InitStarted(ScopeId),
    /// Objects and changes, as text.
    Batch(Batch),
    /// The state of a scope, when it has changed; also when it is the same, after the machine was asleep or the server
    /// was lost.
    State(ScopeId, WatchState),
    /// A change of the connectivity to the server.
    Connectivity(Connectivity),
}

/// The way in which lists are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListStrategy {
    /// [`ListStrategy::Streams`] if the server is near (a round trip takes less than 15 ms), else
    /// [`ListStrategy::Pages`].
    #[default]
    Auto,
    /// Uncompressed streams, in which each object arrives separately; pages if the server has no streamed lists.
    Streams,
    /// Pages, compressed unless the context disables compression.
    Pages,
}

/// Settings of a watcher.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WatchSettings {
    /// The way in which lists are read.
    pub lists: ListStrategy,
    /// True to receive objects of known kinds as Protobuf where lists are streamed: without `metadata.managedFields`,
    /// and at half the cost for the server.
    pub protobuf: bool,
    /// Maximum number of concurrent lists of the cluster; further ones wait.
    pub concurrent_lists: usize,
    /// Time of silence after which a watch is reopened. Servers send bookmarks once a minute, so that a scope that is
    /// listed again for 20 s without success is known to be stale within 100 s.
    pub silence: Duration,
    /// Time of silence of all watches after which the server is probed.
    pub probe_after: Duration,
    /// Time limit for the answer to a probe.
    pub probe_timeout: Duration,
    /// Time limit for the start of the response to a list; a third of it for a watch. If the connection has a time
    /// limit for each request, that counts instead.
    pub answer_timeout: Duration,
    /// Maximum backoff between attempts of a scope, or to renew credentials; up to a quarter is added or subtracted at
    /// random, and a server's `Retry-After` may be longer.
    pub longest_pause: Duration,
    /// Time, plus or minus a quarter, after which a scope is tried again that is forbidden, not served, or over a
    /// limit. It is tried earlier if the server was lost and is back, or after [`Watcher::try_now`].
    pub forbidden_pause: Duration,
    /// Time limit for renewing credentials: exec plugins contact other servers.
    pub credentials_timeout: Duration,
    /// Maximum length of one event of a watch in bytes; longer ones are skipped and reported as [`Change::Malformed`].
    pub longest_line: usize,
    /// Notified of each event, so that one reader of many watchers need not wait for each of them.
    pub news: Arc<tokio::sync::Notify>,
    /// The clock that measures how long the server was silent.
    pub clock: BootClock,
}

impl Default for WatchSettings {
    fn default() -> WatchSettings {
        WatchSettings {
            lists: ListStrategy::default(),
            protobuf: false,
            concurrent_lists: 4,
            silence: Duration::from_secs(75),
            probe_after: Duration::from_secs(10),
            probe_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(30),
            longest_pause: Duration::from_secs(30),
            forbidden_pause: Duration::from_secs(30),
            credentials_timeout: Duration::from_secs(30),
            longest_line: 8 << 20,
            news: Arc::default(),
            clock: BootClock::default(),
        }
    }
}

impl WatchSettings {
    /// Returns the settings for a cluster that is read lightly: a proof of life a minute, which the bookmarks of its
    /// watches are, too, and seldom attempts at what it refuses.
    pub fn light() -> WatchSettings {
        WatchSettings {
            concurrent_lists: 1,
            probe_after: Duration::from_secs(60),
            forbidden_pause: Duration::from_secs(300),
            ..WatchSettings::default()
        }
    }
}

/// The delay of a probe that is tolerated in a busy process; a longer one counts as a sleep of the process.
const LATE: Duration = Duration::from_secs(5);

impl WatchSettings {
    /// Returns the longest silence of a server that is probed in time. After a longer one the process or its machine
    /// was asleep, and only an answer to a new request proves anything.
    fn longest_silence(&self) -> Duration {
        self.probe_after + self.probe_timeout + LATE
    }
}

/// A connection, and its generation: the number of connections opened before it.
#[derive(Clone)]
struct Connection {
    cluster: Cluster,
    generation: u64,
}

/// The state that the tasks of one cluster share.
struct Shared {
    settings: WatchSettings,
    connection: watch::Sender<Connection>,
    context: Mutex<Option<Context>>,
    /// The way of messages to the reader, by [`Shared::send`].
    outbox: mpsc::Sender<Message>,
    lists: Semaphore,
    costs: Counters,
    /// Cost of the requests over connections that were replaced.
    before: Mutex<Cost>,
    /// Time at which the server last proved that it is alive, in milliseconds since `begun`.
    heard: AtomicU64,
    begun: Moment,
    /// Incremented after the process or its machine was asleep, when a lost server is back, and when credentials were
    /// replaced by [`Watcher::renew`]; watches are then reopened.
    woken: watch::Sender<u64>,
    /// Incremented when the server shows an older state than before, as after a restore from a backup; each scope then
    /// ends its watch and lists its objects again.
    epoch: watch::Sender<u64>,
    /// The newest resource version that a scope of the server's own store has received.
    newest: Arc<Mutex<Newest>>,
    /// Incremented when a lost server is back, when credentials were replaced by [`Watcher::renew`], and by
    /// [`Watcher::try_now`], so that scopes in backoff retry within half a second.
    returned: watch::Sender<u64>,
    /// Notified to make the watcher probe the server at once.
    doubted: tokio::sync::Notify,
    renewals: tokio::sync::Mutex<connectivity::Renewals>,
    /// One more than the generation of the newest connection whose credentials the server accepted; 0 if it accepted
    /// none since they were last renewed.
    accepted: AtomicU64,
    /// True if the server refused to stream lists.
    no_streams: std::sync::atomic::AtomicBool,
}

impl Shared {
    fn context(&self) -> Option<Context> {
        self.context.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn connection(&self) -> Connection {
        self.connection.borrow().clone()
    }

    /// Records that the server sent something, as proof that it is alive. After a silence longer than
    /// [`WatchSettings::longest_silence`] it triggers a probe instead: the data may have been sent before a sleep, and
    /// proves nothing.
    fn hear(&self) {
        if self.silent() > self.settings.longest_silence() {
            self.doubted.notify_one();
        } else {
            self.prove();
        }
    }

    /// Records that the server has answered a new request, which proves that it is alive.
    fn prove(&self) {
        let now = self.settings.clock.now().since(self.begun);
        self.heard.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Voids all watches because the server's state went back in time; everything is listed again.
    fn void(&self) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        *newest = Newest { epoch: newest.epoch + 1, version: 0 };
        self.epoch.send_replace(newest.epoch);
    }

    /// Records that the server accepted the credentials of the connection with this generation.
    fn accept(&self, generation: u64) {
        self.accepted.fetch_max(generation + 1, Ordering::Relaxed);
    }

    /// Returns the time since the server last proved that it is alive.
    fn silent(&self) -> Duration {
        let heard = self.begun + Duration::from_millis(self.heard.load(Ordering::Relaxed));
        self.settings.clock.now().since(heard)
    }
}

/// The list and watch of one scope, with the progress of its reader.
#[derive(Debug)]
struct ScopeWatch {
    id: ScopeId,
    scope: Scope,
    api_version: String,
    progress: Mutex<ScopeProgress>,
    /// Notified when the reader finds that the watch cannot continue, as [`ScopeProgress::is_over`] tells.
    ended: tokio::sync::Notify,
    /// The newest resource version that any scope of the server's own store has received; `None` if the objects of this
    /// scope may be in another store.
    newest: Option<Arc<Mutex<Newest>>>,
}

/// The state that the reader has learned from decoded text.
#[derive(Debug, Default)]
struct ScopeProgress {
    /// The resource version from which the watch can continue.
    resource_version: String,
    /// True if the reader has received all existing objects.
    complete: bool,
    /// True if the server has sent a bookmark: it then sends one each minute.
    is_bookmarked: bool,
    /// The token of the next page of the list; `None` on the last page, and for a watch.
    continued: Option<String>,
    /// The reason why the scope must be listed again; `None` if it need not be.
    expired: Option<String>,
    /// The code and message with which the server ended the watch; `None` if it did not.
    refused: Option<(u16, String)>,
    /// The reason why the received text cannot be read; `None` if it can.
    unreadable: Option<String>,
    /// Number of items of a paged list that were not valid objects.
    malformed: usize,
}

impl ScopeProgress {
    /// Returns true if the scope must be listed again, the server ended the watch with an error, or the received text
    /// cannot be read.
    fn is_over(&self) -> bool {
        self.expired.is_some() || self.refused.is_some() || self.unreadable.is_some()
    }
}

/// The newest resource version received in an epoch. An epoch ends when the server's state goes back in time; versions
/// from earlier epochs do not count.
#[derive(Debug, Default)]
struct Newest {
    epoch: u64,
    version: u64,
}

/// Returns true if objects of a kind are surely in the same store as namespaces, so that resource versions are
/// comparable: those of groups without a dot and of `*.k8s.io`. Returns false for Events, metrics, and all other
/// groups, because custom resources cannot be told from aggregated APIs, which often have other stores.
fn is_own(resource: &ApiResource) -> bool {
    let group = &*resource.group;
    resource.kind != "Event"
        && (!group.contains('.') || group.ends_with(".k8s.io") && !group.contains("metrics"))
}

impl ScopeWatch {
    /// Records a resource version received in the epoch `epoch` if it is the highest so far; ignores it if a newer
    /// epoch has begun, or if the scope may be in another store.
    fn note(&self, epoch: u64, version: &str) {
        if let (Some(newest), Ok(version)) = (&self.newest, version.parse()) {
            let mut newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
            if newest.epoch == epoch {
                newest.version = newest.version.max(version);
            }
        }
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, ScopeProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message to the reader of [`WatchEvents`].
#[derive(Debug)]
enum Message {
    Event(WatchEvent),
    /// A marker in the queue of events; it sends an answer when the reader reaches it.
    Barrier(oneshot::Sender<()>),
}

/// The error when the receiver of events was dropped.
struct ReaderGone;

impl Shared {
    /// Sends a message to the reader once there is room for it; fails if the reader is gone.
    async fn send(&self, message: Message) -> Result<(), ReaderGone> {
        self.outbox.send(message).await.map_err(|_| ReaderGone)?;
        self.settings.news.notify_one();
        Ok(())
    }
}

/// Follows scopes of one cluster; stops on drop.
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<Shared>,
    tasks: HashMap<ScopeId, (Arc<ScopeWatch>, JoinHandle<()>)>,
    connectivity: JoinHandle<()>,
    /// The task that connects with another context; `None` if there was none.
    renewal: Option<JoinHandle<()>>,
    next: AtomicU32,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Watcher {
    /// Starts a watcher of `cluster` that follows no scope yet, and returns it with its events. It renews expired
    /// credentials with `context`, the context of that cluster; if that is `None`, it does not renew them.
    ///
    /// Must be called within a tokio runtime.
    pub fn start(
        cluster: Cluster,
        context: Option<Context>,
        settings: WatchSettings,
    ) -> (Watcher, WatchEvents) {
        // A list has at most one batch here and one in hand; the rest waits in the server.
        let (outbox, messages) = mpsc::channel(settings.concurrent_lists.max(1) * 2);
        let shared = Arc::new(Shared {
            lists: Semaphore::new(settings.concurrent_lists.max(1)),
            connection: watch::Sender::new(Connection { cluster, generation: 0 }),
            context: Mutex::new(context),
            outbox,
            costs: Counters::default(),
            before: Mutex::default(),
            heard: AtomicU64::new(0),
            begun: settings.clock.now(),
            woken: watch::Sender::new(0),
            epoch: watch::Sender::new(0),
            newest: Arc::default(),
            returned: watch::Sender::new(0),
            doubted: tokio::sync::Notify::new(),
            renewals: tokio::sync::Mutex::new(connectivity::Renewals::new(settings.longest_pause)),
            accepted: AtomicU64::new(0),
            no_streams: std::sync::atomic::AtomicBool::new(false),
            settings,
        });
        let connectivity = tokio::spawn(connectivity::keep(shared.clone()));
        let next = AtomicU32::new(0);
        let watcher = Watcher { shared, tasks: HashMap::new(), connectivity, renewal: None, next };
        (watcher, WatchEvents { messages })
    }

    /// Follows a scope until [`Watcher::end`].
    pub fn follow(&mut self, scope: Scope) -> ScopeId {
        self.follow_with(scope, ScopeProgress::default())
    }

    /// Follows a scope that is completely known as of a resource version: only later changes come, or a full list if
    /// the server no longer keeps that version.
    pub fn follow_from(&mut self, scope: Scope, resource_version: String) -> ScopeId {
        self.follow_with(
            scope,
            ScopeProgress { resource_version, complete: true, ..ScopeProgress::default() },
        )
    }

    /// Returns the resource version as of which all of a scope has been read; `None` until then, while it is listed
    /// again, or if it is not followed.
    pub fn position(&self, id: ScopeId) -> Option<String> {
        let progress = self.tasks.get(&id)?.0.progress();
        (progress.complete && !progress.resource_version.is_empty())
            .then(|| progress.resource_version.clone())
    }

    fn follow_with(&mut self, scope: Scope, progress: ScopeProgress) -> ScopeId {
        let id = ScopeId(self.next.fetch_add(1, Ordering::Relaxed));
        let mut scope = scope;
        if crate::read::is_secret(&scope.resource) {
            scope.projection = Projection::Metadata;
        }
        let api_version = scope.resource.api_version();
        let progress = Mutex::new(progress);
        let ended = tokio::sync::Notify::new();
        let newest = is_own(&scope.resource).then(|| self.shared.newest.clone());
        let followed = Arc::new(ScopeWatch { id, scope, api_version, progress, ended, newest });
        let (shared, following) = (self.shared.clone(), followed.clone());
        let task = tokio::spawn(async move {
            // Without a reader there is nothing left to do.
            let _ = scope::follow(&shared, &following).await;
        });
        self.tasks.insert(id, (followed, task));
        id
    }

    /// Stops following a scope. Earlier events of it may still be queued.
    pub fn end(&mut self, id: ScopeId) {
        if let Some((_, task)) = self.tasks.remove(&id) {
            task.abort();
        }
    }

    /// Returns the current connection, which changes when credentials are renewed.
    pub fn cluster(&self) -> Cluster {
        self.shared.connection().cluster
    }

    /// Returns the watcher's requests so far and the bytes of their responses, by purpose, and its counters of silences
    /// and repeated lists. Of the probes of the connectivity only the number is counted here.
    pub fn costs(&self) -> Costs {
        self.shared.costs.read()
    }

    /// Returns the total cost of all requests over this watcher's connections so far: those replaced, and the present
    /// one, [`Watcher::cluster`]. It includes requests that other code sent over them.
    pub fn cost(&self) -> Cost {
        let before = *self.shared.before.lock().unwrap_or_else(PoisonError::into_inner);
        self.cluster().requests().cost + before + self.shared.costs.streamed()
    }

    /// Returns true if lists are read as streams, false if they are read as pages, which are compressed if
    /// [`Cluster::compresses`].
    pub fn streams_lists(&self) -> bool {
        scope::streams(&self.shared)
    }

    /// Returns the time since the last sign of life, if it is longer than is possible while the process runs (the
    /// machine was asleep, for example), and probes the server at once; else `None`. After such a silence no object of
    /// the cluster is known to be unchanged until [`Connectivity::Live`].
    pub fn silence(&self) -> Option<Duration> {
        let silent = self.shared.silent();
        let is_long = silent > self.shared.settings.longest_silence();
        is_long.then(|| {
            self.shared.doubted.notify_one();
            silent
        })
    }

    /// Returns the time since the server last proved that it is there: since it sent something, or answered a probe.
    pub fn silent(&self) -> Duration {
        self.shared.silent()
    }

    /// Uses the credentials of `context`, another context of the same server ([`Context::is_same_server`]), from now
    /// on. Once it is connected with them, each watch goes on with them from where it was. Until then the former
    /// connection is used.
    ///
    /// Must be called within a tokio runtime.
    pub fn renew(&mut self, context: Context) {
        *self.shared.context.lock().unwrap_or_else(PoisonError::into_inner) = Some(context);
        let renewal = tokio::spawn(connectivity::replace(self.shared.clone()));
        if let Some(before) = self.renewal.replace(renewal) {
            before.abort();
        }
    }

    /// Ends the backoff of all scopes, each within half a second, because an attempt may now succeed.
    pub fn try_now(&self) {
        self.shared.returned.send_modify(|moved| *moved += 1);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.connectivity.abort();
        self.renewal.iter().for_each(JoinHandle::abort);
        for (_, task) in self.tasks.values() {
            task.abort();
        }
    }
}

/// The events of a watcher, for one reader.
#[derive(Debug)]
pub struct WatchEvents {
    messages: mpsc::Receiver<Message>,
}

impl WatchEvents {
    /// Waits for the next event; returns `None` once its [`Watcher`] was dropped.
    ///
    /// The caller must read the objects of a batch before the next call: reading them moves the position from which the
    /// watch continues.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        loop {
            match self.messages.recv().await? {
                Message::Event(event) => return Some(event),
                // The sender may be gone.
                Message::Barrier(answer) => drop(answer.send(())),
            }
        }
    }

    /// Returns true if no event is queued.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the next event; `None` if none is queued, or its [`Watcher`] is gone.
    pub fn try_next(&mut self) -> Option<WatchEvent> {
        loop {
            match self.messages.try_recv().ok()? {
                Message::Event(event) => return Some(event),
                Message::Barrier(answer) => drop(answer.send(())),
            }
        }
    }
}
