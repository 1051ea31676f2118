//! The state that all clusters of a fleet share.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::behaviour::Behaviours;
use crate::clock::{Clock, Pace};
use crate::error::SimError;
use crate::store::Interner;
use crate::tls::Tls;

/// The options of a fleet.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    pub(crate) pace: Pace,
    pub(crate) start: Timestamp,
    pub(crate) held: bool,
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
pub(crate) struct FleetState {
    pub(crate) clock: Clock,
    pub(crate) interner: Interner,
    pub(crate) tls: Tls,
    pub(crate) options: Options,
    agenda: Mutex<Agenda>,
    /// Locked while a thread runs due tasks, so that they run one after the other.
    turn: Mutex<()>,
    added: Notify,
    pub(crate) names: Mutex<Vec<String>>,
}

type Task = Box<dyn FnOnce() + Send>;

/// The planned tasks of a fleet, ordered by time.
#[derive(Default)]
struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    count: u64,
}

struct Entry {
    due: Timestamp,
    /// The number of the task in the order of planning. Of tasks due at the same time, the one with the lowest
    /// number runs first.
    number: u64,
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

/// Runs the planned tasks when they are due, until the fleet is gone.
pub(crate) async fn conduct(fleet: Weak<FleetState>) {
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

impl FleetState {
    pub(crate) fn new(options: Options) -> Result<FleetState, SimError> {
        Ok(FleetState {
            clock: Clock::new(options.pace, options.start, options.held),
            interner: Interner::default(),
            tls: Tls::new()?,
            options,
            agenda: Mutex::default(),
            turn: Mutex::new(()),
            added: Notify::new(),
            names: Mutex::default(),
        })
    }

    fn agenda(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans `task` to run at the time `due`.
    pub(crate) fn plan(&self, due: Timestamp, task: impl FnOnce() + Send + 'static) {
        let mut agenda = self.agenda();
        let number = agenda.count;
        agenda.count += 1;
        let first = agenda.entries.peek().is_none_or(|Reverse(entry)| due < entry.due);
        agenda.entries.push(Reverse(Entry { due, number, task: Box::new(task) }));
        drop(agenda);
        if first {
            self.added.notify_one();
        }
    }

    /// Runs all tasks that are due now.
    pub(crate) fn run_due(&self) {
        self.run_until(self.clock.now(), false);
    }

    /// Wakes the timer, because the next task may be due earlier after the clock was moved.
    pub(crate) fn clock_moved(&self) {
        self.added.notify_one();
    }

    pub(crate) fn run_until(&self, end: Timestamp, step: bool) {
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
            (entry.task)();
        }
    }

    pub(crate) fn behaviours(&self) -> Behaviours {
        self.options.off.clone()
    }
}
