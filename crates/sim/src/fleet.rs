//! A fleet: clusters with a common clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use crate::behaviour::{Behaviour, Behaviours};
use crate::clock::{Clock, Pace, later};
use crate::cluster::{Cluster, Inner};
use crate::error::SimError;
use crate::store::Interner;
use crate::tls::Tls;

/// Clusters that share a clock, a seed and a certificate authority.
///
/// Each cluster lives as long as its own handles; planned tasks run as long as the fleet's handle is held.
#[derive(Debug)]
pub struct Fleet {
    pub(crate) shared: Arc<Shared>,
    conductor: Option<tokio::task::AbortHandle>,
}

/// The options of a new fleet.
#[derive(Debug, Clone)]
pub struct FleetBuilder {
    pub(crate) seed: u64,
    pace: Pace,
    start: Timestamp,
    held: bool,
    pub(crate) controllers: bool,
    pub(crate) verbatim: bool,
    pub(crate) managers: bool,
    pub(crate) window: usize,
    pub(crate) bookmark_every: Duration,
    pub(crate) version: String,
    pub(crate) nodes: usize,
    pub(crate) missing_images: Vec<String>,
    pub(crate) off: Behaviours,
}

/// The state that all clusters of a fleet share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) interner: Interner,
    pub(crate) tls: Tls,
    pub(crate) options: FleetBuilder,
    agenda: Mutex<Agenda>,
    /// Held while a thread runs the agenda, so that tasks run one after the other.
    turn: Mutex<()>,
    added: Notify,
    pub(crate) names: Mutex<Vec<String>>,
}

type Task = Box<dyn FnOnce(&Arc<Inner>) + Send>;

/// The planned tasks in order of time. The only timer of a fleet waits for the first.
#[derive(Default)]
struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    count: u64,
}

struct Entry {
    due: Timestamp,
    /// The order of planning; among tasks that are due together, the first planned runs first.
    number: u64,
    cluster: Weak<Inner>,
    task: Task,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (self.due, self.number) == (other.due, other.number)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl std::fmt::Debug for Agenda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agenda").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

impl Fleet {
    /// Returns the default options: real time, seed 0, controllers, no nodes.
    pub fn builder() -> FleetBuilder {
        FleetBuilder {
            seed: 0,
            pace: Pace::Real,
            start: Timestamp::now(),
            held: false,
            controllers: true,
            verbatim: false,
            managers: false,
            window: 1024,
            bookmark_every: Duration::from_secs(60),
            version: "v1.36.3".to_owned(),
            nodes: 0,
            missing_images: Vec::new(),
            off: Behaviours::default(),
        }
    }

    /// Returns the clock of the fleet.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Adds a cluster: an API server on a port of its own, with the namespaces that every cluster has.
    ///
    /// # Errors
    /// If the name is taken, or no port is free.
    pub async fn cluster(&self, name: &str) -> Result<Cluster, SimError> {
        {
            let mut names = self.shared.names.lock().unwrap_or_else(PoisonError::into_inner);
            if names.iter().any(|known| known == name) {
                return Err(SimError::NameTaken(name.to_owned()));
            }
            names.push(name.to_owned());
        }
        Cluster::start(self.shared.clone(), name).await
    }

    /// Moves the clock forward, at any pace. Before it returns, all tasks that become due have run in order, each at
    /// its own time. So a fleet with a past is ready immediately.
    pub fn advance(&self, by: Duration) {
        let end = later(self.shared.clock.now(), SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX));
        self.shared.run_until(end, true);
        self.shared.clock.step_to(end);
        // The next task is now due sooner than the timer expects.
        self.shared.added.notify_one();
    }

    /// Lets held time pass from now on.
    pub fn release(&self) {
        self.shared.clock.release();
        self.shared.added.notify_one();
    }

    /// Returns the certificate of the fleet's authority, in PEM.
    pub fn authority(&self) -> &str {
        &self.shared.tls.authority
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if let Some(conductor) = &self.conductor {
            conductor.abort();
        }
    }
}

impl FleetBuilder {
    /// Sets the seed of all random values: uids, generated names, delays.
    pub fn seed(mut self, seed: u64) -> FleetBuilder {
        self.seed = seed;
        self
    }

    /// Sets the pace of time.
    pub fn pace(mut self, pace: Pace) -> FleetBuilder {
        self.pace = pace;
        self
    }

    /// Sets the time at which the fleet begins.
    pub fn start_at(mut self, start: Timestamp) -> FleetBuilder {
        self.start = start;
        self
    }

    /// Holds time until [`Fleet::release`]: before that only [`Fleet::advance`] moves it, so that the past of a fleet
    /// is the same on any machine.
    pub fn held(mut self) -> FleetBuilder {
        self.held = true;
        self
    }

    /// Enables or disables the controllers of Deployments, StatefulSets, DaemonSets, Jobs and CronJobs, the kubelets,
    /// Services and budgets. Without them, objects of these kinds stay as they are written; namespaces, custom
    /// resources and dependents are still handled.
    pub fn controllers(mut self, controllers: bool) -> FleetBuilder {
        self.controllers = controllers;
        self
    }

    /// Makes clusters hold only the objects of timelines and of [`Cluster::apply`], as a complete recording needs it:
    /// they begin empty, nothing is defaulted or counted, and no controller reacts, except that custom resources are
    /// served. Writes of clients follow the usual rules.
    pub fn verbatim(mut self, verbatim: bool) -> FleetBuilder {
        self.verbatim = verbatim;
        self
    }

    /// Keeps field managers (`metadata.managedFields`) of every object, as kube-apiserver does for updates. Without
    /// them, an object is a kilobyte or two smaller.
    pub fn managers(mut self, managers: bool) -> FleetBuilder {
        self.managers = managers;
        self
    }

    /// Sets the number of changes in a cluster's history: a watch that asks for older ones gets `410 Gone`.
    pub fn window(mut self, changes: usize) -> FleetBuilder {
        self.window = changes.max(1);
        self
    }

    /// Sets the interval of bookmarks in a quiet watch, in real time.
    pub fn bookmark_every(mut self, interval: Duration) -> FleetBuilder {
        self.bookmark_every = interval.max(Duration::from_millis(1));
        self
    }

    /// Sets the version that API servers report, such as `v1.36.3`.
    pub fn version(mut self, version: &str) -> FleetBuilder {
        self.version = version.to_owned();
        self
    }

    /// Sets the number of nodes that each cluster begins with.
    pub fn nodes(mut self, nodes: usize) -> FleetBuilder {
        self.nodes = nodes;
        self
    }

    /// Adds images that no registry has: containers with one of them wait and back off.
    pub fn missing_images(mut self, images: impl IntoIterator<Item = impl Into<String>>) -> FleetBuilder {
        self.missing_images.extend(images.into_iter().map(Into::into));
        self
    }

    /// Switches a behaviour off, so that tests can prove that they fail without it.
    #[doc(hidden)]
    pub fn without(mut self, behaviour: Behaviour) -> FleetBuilder {
        self.off.turn_off(behaviour);
        self
    }

    /// Starts the fleet, on the current Tokio runtime.
    ///
    /// # Errors
    /// If its certificates cannot be created.
    pub async fn start(self) -> Result<Fleet, SimError> {
        let shared = Arc::new(Shared {
            clock: Clock::new(self.pace, self.start, self.held),
            interner: Interner::default(),
            tls: Tls::new()?,
            options: self,
            agenda: Mutex::default(),
            turn: Mutex::new(()),
            added: Notify::new(),
            names: Mutex::default(),
        });
        let stepped = shared.clock.pace() == Pace::Stepped;
        let conductor = (!stepped).then(|| tokio::spawn(conduct(Arc::downgrade(&shared))).abort_handle());
        Ok(Fleet { shared, conductor })
    }
}

/// Runs the agenda as time passes.
async fn conduct(fleet: Weak<Shared>) {
    loop {
        let Some(shared) = fleet.upgrade() else { return };
        shared.run_due();
        let next = shared.agenda().entries.peek().map(|Reverse(entry)| entry.due);
        let wait = next.and_then(|due| shared.clock.until(due));
        let added = shared.added.notified();
        match wait {
            // A tick more, so that the task is due when the agenda is checked again.
            Some(wait) => {
                let _ = tokio::time::timeout(wait + Duration::from_millis(1), added).await;
            }
            None => added.await,
        }
    }
}

impl Shared {
    fn agenda(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans a task for a cluster.
    pub(crate) fn plan(
        &self,
        cluster: &Weak<Inner>,
        due: Timestamp,
        task: impl FnOnce(&Arc<Inner>) + Send + 'static,
    ) {
        let mut agenda = self.agenda();
        let number = agenda.count;
        agenda.count += 1;
        let first = agenda.entries.peek().is_none_or(|Reverse(entry)| due < entry.due);
        agenda.entries.push(Reverse(Entry { due, number, cluster: cluster.clone(), task: Box::new(task) }));
        drop(agenda);
        if first {
            self.added.notify_one();
        }
    }

    /// Runs the tasks that are due now.
    pub(crate) fn run_due(&self) {
        self.run_until(self.clock.now(), false);
    }

    fn run_until(&self, end: Timestamp, step: bool) {
        // One thread at a time: a second one waits, and finds the tasks done.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let entry = {
                let mut agenda = self.agenda();
                match agenda.entries.peek() {
                    Some(Reverse(entry)) if entry.due <= end => agenda.entries.pop(),
                    _ => None,
                }
            };
            let Some(Reverse(entry)) = entry else { return };
            if step {
                self.clock.step_to(entry.due);
            }
            if let Some(cluster) = entry.cluster.upgrade() {
                (entry.task)(&cluster);
            }
        }
    }

    pub(crate) fn behaviours(&self) -> Behaviours {
        self.options.off.clone()
    }
}
