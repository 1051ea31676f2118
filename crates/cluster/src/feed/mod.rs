//! What is in a cluster and what becomes of it: lists, and watches that go on from them.
//!
//! [`Feeds`] follows any number of [`Scope`]s, each with a task of its own, and hands what they bring to one reader, the
//! [`Inbox`], as text: a page of a list or some lines of a watch. The reader decodes it where it uses it
//! ([`Batch::read`]), so that a byte is touched once and nothing is copied between tasks.
//!
//! What a reader may rely on:
//!
//! * Between [`Delivery::Began`] and [`Change::Complete`] comes everything that is there, perhaps mixed with changes; what
//!   was not delivered by then is gone. Afterwards comes every change in the server's order, perhaps more than once.
//! * A failure concerns its scope, as a [`ScopeState`]; the others go on. What ends is tried again, later and later.
//! * A watch that is silent for too long is opened anew, for on a live server at least bookmarks come. Whether the server
//!   is live is asked of the server itself ([`Contact`]): a socket that answers proves nothing.
//! * At most so many lists run at once, and the text under way is bounded and charged to the cluster: a slow reader slows the
//!   server down.
//! * A delivery is short: what is read at once of one cluster keeps no other waiting.

mod contact;
mod decode;
mod pace;
mod scope;
mod skipping;
mod stream;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taffrail_object::Projection;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::clock::{Clock, Moment};
use crate::connect::Cluster;
use crate::discovery::ApiResource;
use crate::kubeconfig::Context;

pub use contact::Contact;
pub(crate) use decode::went_back;
pub use decode::{Batch, Change};
pub use pace::{Cost, Costs, Purpose};

/// A set of objects to follow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// Their resource.
    pub resource: ApiResource,
    /// Their namespace; none for all of them, or for objects that have none.
    pub namespace: Option<String>,
    /// The part of each that is followed. Secrets are followed as [`Projection::Metadata`] whatever stands here.
    pub projection: Projection,
    /// A label selector, as the API takes it.
    pub labels: Option<String>,
    /// A field selector, as the API takes it.
    pub fields: Option<String>,
}

impl Scope {
    /// All whole objects of `resource`.
    pub fn all(resource: ApiResource) -> Scope {
        Scope { resource, namespace: None, projection: Projection::Full, labels: None, fields: None }
    }
}

/// Names a scope for as long as its [`Feeds`] live; not used again for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeId(u32);

/// How well a scope is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeState {
    /// Its objects are being listed, for the first time or again.
    CatchingUp,
    /// All its objects are known, and changes come as they happen.
    Live,
    /// The server does not let us.
    Forbidden {
        /// What it said.
        message: String,
    },
    /// The server has no such kind, in this version.
    Absent,
    /// It cannot be read for another reason.
    Broken {
        /// One word in CamelCase.
        reason: &'static str,
        /// For people.
        message: String,
    },
}

/// What an [`Inbox`] hands out.
#[derive(Debug)]
pub enum Delivery {
    /// A full list begins.
    Began(ScopeId),
    /// Objects and changes, as text.
    Batch(Batch),
    /// How well a scope is known from now on.
    State(ScopeId, ScopeState),
    /// Whether the server answers, when that changes.
    Contact(Contact),
}

/// How lists are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lists {
    /// As streams where the server is near, as pages where it is far.
    #[default]
    Measured,
    /// As streams, of which each object arrives on its own; not compressed. Pages where the server has no such streams.
    Streams,
    /// As pages, compressed.
    Pages,
}

/// What may be chosen about feeds.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FeedSettings {
    /// How lists are read.
    pub lists: Lists,
    /// Whether objects of kinds whose fields are known travel as Protobuf where lists are streamed: without
    /// `metadata.managedFields`, and at half the cost for the server.
    pub protobuf: bool,
    /// How many lists run at once.
    pub concurrent_lists: usize,
    /// After how much silence a watch is opened anew. Servers send bookmarks once a minute.
    pub silence: Duration,
    /// After how much silence of all watches the server is asked whether it is there.
    pub probe_after: Duration,
    /// How long it may take to say so.
    pub probe_timeout: Duration,
    /// How long a server may take to begin the answer to a list; to a watch, a third of it.
    pub answer_timeout: Duration,
    /// The longest pause between attempts.
    pub longest_pause: Duration,
    /// After how long what was forbidden is tried again.
    pub forbidden_pause: Duration,
    /// How long getting new credentials may take: programs that give them ask other servers.
    pub credentials_timeout: Duration,
    /// The longest line that is read, in bytes; a longer one is skipped and told.
    pub longest_line: usize,
    /// The clock by which it is known how long the server was silent.
    pub clock: Clock,
}

impl Default for FeedSettings {
    fn default() -> FeedSettings {
        FeedSettings {
            lists: Lists::default(),
            protobuf: false,
            concurrent_lists: 4,
            silence: Duration::from_secs(90),
            probe_after: Duration::from_secs(10),
            probe_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(30),
            longest_pause: Duration::from_secs(30),
            forbidden_pause: Duration::from_secs(30),
            credentials_timeout: Duration::from_secs(30),
            longest_line: 8 << 20,
            clock: Clock::default(),
        }
    }
}

/// How much later than it should a busy process may ask the server whether it is there.
const LATE: Duration = Duration::from_secs(5);

impl FeedSettings {
    /// Returns the longest silence of a server that is asked whether it is there in time. After more than that the process or
    /// its machine was asleep, and only an answer to a new question proves anything.
    fn longest_silence(&self) -> Duration {
        self.probe_after + self.probe_timeout + LATE
    }
}

/// A connection, and how often it was replaced before.
#[derive(Clone)]
struct Connection {
    cluster: Cluster,
    generation: u64,
}

/// What the tasks of one cluster share.
struct Shared {
    settings: FeedSettings,
    connection: watch::Sender<Connection>,
    context: Option<Context>,
    outbox: mpsc::Sender<Message>,
    lists: Semaphore,
    costs: pace::Counters,
    /// What was asked over connections that were replaced.
    before: Mutex<Cost>,
    /// When bytes last came, in milliseconds since `begun`.
    heard: AtomicU64,
    begun: Moment,
    /// Moves when the process or its machine was asleep: watches are opened again.
    woken: watch::Sender<u64>,
    /// Moves when what was watched so far is void: the server's state went back in time.
    epoch: watch::Sender<u64>,
    /// The newest version that a scope of the server's own store has brought.
    newest: Arc<Mutex<Newest>>,
    /// Moves when the server is there again: who waits for a pause to pass tries at once.
    returned: watch::Sender<u64>,
    /// Asks for a probe now.
    doubted: tokio::sync::Notify,
    renewals: tokio::sync::Mutex<contact::Renewals>,
    /// One more than the newest connection whose credentials the server took.
    accepted: AtomicU64,
    /// The server refused to stream lists.
    no_streams: std::sync::atomic::AtomicBool,
}

impl Shared {
    fn connection(&self) -> Connection {
        self.connection.borrow().clone()
    }

    /// Takes note that the server sent something. What comes after a silence in which it should have been asked may have been
    /// sent before a sleep, and proves nothing.
    fn hear(&self) {
        if self.silent() > self.settings.longest_silence() {
            self.doubted.notify_one();
        } else {
            self.prove();
        }
    }

    /// Takes note that the server is there.
    fn prove(&self) {
        let now = self.settings.clock.now().since(self.begun);
        self.heard.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The server's state went back in time: everything is listed again.
    fn void(&self) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        *newest = Newest { epoch: newest.epoch + 1, version: 0 };
        self.epoch.send_replace(newest.epoch);
    }

    /// The server knows who we are on this connection.
    fn accept(&self, generation: u64) {
        self.accepted.fetch_max(generation + 1, Ordering::Relaxed);
    }

    /// Returns for how long the server has not been heard of.
    fn silent(&self) -> Duration {
        let heard = self.begun + Duration::from_millis(self.heard.load(Ordering::Relaxed));
        self.settings.clock.now().since(heard)
    }
}

/// A scope and how far its reader has come.
#[derive(Debug)]
struct Followed {
    id: ScopeId,
    scope: Scope,
    api_version: String,
    progress: Mutex<Progress>,
    /// The reader found that the watch cannot go on.
    ended: tokio::sync::Notify,
    /// Where the newest version of all is noted, if this scope's are among them.
    newest: Option<Arc<Mutex<Newest>>>,
}

/// What the reader learnt from what it decoded.
#[derive(Debug, Default)]
struct Progress {
    /// From where the watch can go on.
    resource_version: String,
    /// The list is complete.
    complete: bool,
    /// The rest of a list.
    continued: Option<String>,
    /// Why the scope has to be listed again.
    expired: Option<String>,
    /// What the server said when it ended a watch, with its code.
    refused: Option<(u16, String)>,
    /// Why what came cannot be read.
    unreadable: Option<String>,
    /// How many items of a list that is read in pages were no objects.
    malformed: usize,
}

impl Progress {
    /// Whether a watch that brought this cannot go on.
    fn is_over(&self) -> bool {
        self.expired.is_some() || self.refused.is_some() || self.unreadable.is_some()
    }
}

/// The newest version of an epoch; what still comes of an earlier one says nothing of it.
#[derive(Debug, Default)]
struct Newest {
    epoch: u64,
    version: u64,
}

/// Whether objects of a kind are, as a rule, in the same store as namespaces, and so counted with them. Events often are
/// not, and what comes from a server behind the server is not.
fn is_own(resource: &ApiResource) -> bool {
    let group = &*resource.group;
    resource.kind != "Event"
        && (!group.contains('.') || group.ends_with(".k8s.io") && !group.contains("metrics"))
}

impl Followed {
    /// Takes note of a version that came in this epoch.
    fn note(&self, epoch: u64, version: &str) {
        if let (Some(newest), Ok(version)) = (&self.newest, version.parse()) {
            let mut newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
            if newest.epoch == epoch {
                newest.version = newest.version.max(version);
            }
        }
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
enum Message {
    Delivery(Delivery),
    /// Answered when all that was sent before has been read.
    Barrier(oneshot::Sender<()>),
}

/// Follows scopes of one cluster; ends with its last handle.
#[derive(Debug)]
pub struct Feeds {
    shared: Arc<Shared>,
    tasks: HashMap<ScopeId, (Arc<Followed>, JoinHandle<()>)>,
    contact: JoinHandle<()>,
    next: AtomicU32,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Feeds {
    /// Follows what [`Feeds::follow`] names, over `cluster`. With its context, credentials that expire are got again.
    ///
    /// Must be called within a tokio runtime.
    pub fn start(cluster: Cluster, context: Option<Context>, settings: FeedSettings) -> (Feeds, Inbox) {
        // A list has a batch here and one in hand at most; the rest waits in the server.
        let (outbox, messages) = mpsc::channel(settings.concurrent_lists.max(1) * 2);
        let shared = Arc::new(Shared {
            lists: Semaphore::new(settings.concurrent_lists.max(1)),
            connection: watch::Sender::new(Connection { cluster, generation: 0 }),
            context,
            outbox,
            costs: pace::Counters::default(),
            before: Mutex::default(),
            heard: AtomicU64::new(0),
            begun: settings.clock.now(),
            woken: watch::Sender::new(0),
            epoch: watch::Sender::new(0),
            newest: Arc::default(),
            returned: watch::Sender::new(0),
            doubted: tokio::sync::Notify::new(),
            renewals: tokio::sync::Mutex::new(contact::Renewals::new(settings.longest_pause)),
            accepted: AtomicU64::new(0),
            no_streams: std::sync::atomic::AtomicBool::new(false),
            settings,
        });
        let contact = tokio::spawn(contact::keep(shared.clone()));
        let feeds = Feeds { shared, tasks: HashMap::new(), contact, next: AtomicU32::new(0) };
        (feeds, Inbox { messages })
    }

    /// Follows a scope until [`Feeds::end`].
    pub fn follow(&mut self, scope: Scope) -> ScopeId {
        self.follow_with(scope, Progress::default())
    }

    /// Follows a scope of which all is known as of a resource version: only what changed since comes, or, where the server
    /// does not know any more what that is, a full list.
    pub fn follow_from(&mut self, scope: Scope, resource_version: String) -> ScopeId {
        self.follow_with(scope, Progress { resource_version, complete: true, ..Progress::default() })
    }

    /// As of which resource version all of a scope has been read; `None` while it is being listed.
    pub fn position(&self, id: ScopeId) -> Option<String> {
        let progress = self.tasks.get(&id)?.0.progress();
        (progress.complete && !progress.resource_version.is_empty())
            .then(|| progress.resource_version.clone())
    }

    fn follow_with(&mut self, scope: Scope, progress: Progress) -> ScopeId {
        let id = ScopeId(self.next.fetch_add(1, Ordering::Relaxed));
        let mut scope = scope;
        if crate::read::is_secret(&scope.resource) {
            scope.projection = Projection::Metadata;
        }
        let api_version = scope.resource.api_version();
        let progress = Mutex::new(progress);
        let ended = tokio::sync::Notify::new();
        let newest = is_own(&scope.resource).then(|| self.shared.newest.clone());
        let followed = Arc::new(Followed { id, scope, api_version, progress, ended, newest });
        let (shared, following) = (self.shared.clone(), followed.clone());
        let task = tokio::spawn(async move {
            // Without a reader there is nothing left to do.
            let _ = scope::follow(&shared, &following).await;
        });
        self.tasks.insert(id, (followed, task));
        id
    }

    /// Stops following a scope. What it delivered before may still be in the inbox.
    pub fn end(&mut self, id: ScopeId) {
        if let Some((_, task)) = self.tasks.remove(&id) {
            task.abort();
        }
    }

    /// The connection in use now; it is another after credentials were renewed.
    pub fn cluster(&self) -> Cluster {
        self.shared.connection().cluster
    }

    /// What was asked so far, by purpose.
    pub fn costs(&self) -> Costs {
        self.shared.costs.read()
    }

    /// What was asked in all: by feeds, over every connection so far, and by others over [`Feeds::cluster`].
    pub fn cost(&self) -> Cost {
        let before = *self.shared.before.lock().unwrap_or_else(PoisonError::into_inner);
        self.cluster().cost() + before + self.shared.costs.streamed()
    }

    /// Whether lists are read as streams; pages are compressed where [`Cluster::compresses`].
    pub fn streams_lists(&self) -> bool {
        scope::streams(&self.shared)
    }

    /// Returns for how long the server was not heard of, where that is longer than it is while the process runs: the machine was
    /// asleep, say. Nothing of the cluster is known to be as it was until [`Contact::Live`]. The server is asked at once.
    pub fn silence(&self) -> Option<Duration> {
        let silent = self.shared.silent();
        let is_long = silent > self.shared.settings.longest_silence();
        is_long.then(|| {
            self.shared.doubted.notify_one();
            silent
        })
    }

    /// Lets what waits for a pause to pass try at once: somebody learnt that it may succeed.
    pub fn try_now(&self) {
        self.shared.returned.send_modify(|moved| *moved += 1);
    }
}

impl Drop for Feeds {
    fn drop(&mut self) {
        self.contact.abort();
        for (_, task) in self.tasks.values() {
            task.abort();
        }
    }
}

/// What feeds bring, for one reader.
#[derive(Debug)]
pub struct Inbox {
    messages: mpsc::Receiver<Message>,
}

impl Inbox {
    /// The next delivery; `None` when its [`Feeds`] are gone.
    ///
    /// A batch has to be read before the next call: its feed goes on from where the reader is.
    pub async fn next(&mut self) -> Option<Delivery> {
        loop {
            match self.messages.recv().await? {
                Message::Delivery(delivery) => return Some(delivery),
                // Who asked may be gone.
                Message::Barrier(answer) => drop(answer.send(())),
            }
        }
    }

    /// The next delivery, if there is one already.
    pub fn try_next(&mut self) -> Option<Delivery> {
        loop {
            match self.messages.try_recv().ok()? {
                Message::Delivery(delivery) => return Some(delivery),
                Message::Barrier(answer) => drop(answer.send(())),
            }
        }
    }
}
