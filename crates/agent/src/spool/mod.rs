//! The spool: the transitions of apps that a hub may not have heard of, because the agent was not connected.
//!
//! The agent notes each transition, also while it is connected: it learns late that a connection is broken. What was
//! noted more than [`UNCERTAIN`] before the present of a connection was reported, and is dropped. After a break the hub
//! gets all that is left, in order and with ages, and drops what it knows.
//!
//! A spool is bounded by [`MAX_BYTES`] and [`MAX_AGE`]; beyond them the earliest entries are dropped, and the hub is told
//! of the gap. It is in memory, or also in a [file](file::SpoolFile): then an agent that restarts goes on with it.

mod file;

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message as _;
use taffrail_api::agent_protocol::{
    Gap, MAX_MESSAGE, MAX_SPOOLED, SpoolEntry, Spooled, Transition, spool_entry,
};
use taffrail_api::report::Noted;
use taffrail_apps::ClusterId;
use taffrail_cluster::{BootClock, Moment};
use tokio::sync::watch;

pub use file::SpoolError;
use file::{SpoolFile, Writer};

/// The maximum length of the entries of a spool, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// The maximum age of an entry.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// The bytes that count for each entry beside its contents.
const OVERHEAD: usize = 64;

/// The time after which what was noted while the agent was connected has reached the hub, or the connection has ended: a
/// hub ends one on which it hears nothing for that long.
const UNCERTAIN: Duration = Duration::from_secs(180);

/// The length of the entries of one message, in bytes, after which further entries go into the next one.
const MESSAGE: usize = MAX_MESSAGE - 8 * 1024;

/// The transitions of apps that a hub may not have heard of.
#[derive(Debug)]
pub struct Spool {
    cluster: ClusterId,
    clock: BootClock,
    kept: Mutex<Kept>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
    writer: Option<Writer>,
    max_bytes: usize,
    /// Locked while the spool uses its folder; `None` for one in memory.
    _lock: Option<File>,
}

/// The size of a spool, and what was dropped from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpoolCounts {
    /// The number of entries.
    pub entries: usize,
    /// The length of the entries, in bytes.
    pub bytes: usize,
    /// The number of entries that were dropped because there were too many, or because they were too old.
    pub dropped: u64,
}

/// A moment in this or an earlier run of the agent.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    /// The age at the moment `at`.
    age: Duration,
    at: Moment,
}

impl Stamp {
    fn now(at: Moment) -> Stamp {
        Stamp { age: Duration::ZERO, at }
    }

    fn age(self, now: Moment) -> Duration {
        self.age.saturating_add(now.since(self.at))
    }
}

/// The entries of a spool. Their numbers have no gaps.
#[derive(Debug)]
struct Kept {
    spool: u64,
    /// The number of the first entry, or of the next one if there is none.
    first: u64,
    entries: VecDeque<Entry>,
    bytes: usize,
    dropped: u64,
    /// The time of the entries that were dropped since the hub was told of such: from the first to the last of them.
    hole: Option<(Stamp, Stamp)>,
    /// The number up to which entries are sent. Those after it were noted while the agent was connected.
    due: u64,
    /// The last moment at which an earlier run of the agent is known to have noted transitions; `None` in a spool that has
    /// none, and once this run does.
    stopped: Option<Stamp>,
    /// True once this run notes transitions.
    has_begun: bool,
    /// The reason why the file could not be written, until it is told.
    failure: Option<String>,
}

/// An entry, encoded without its age.
#[derive(Debug, Clone)]
struct Entry {
    at: Stamp,
    encoded: Arc<[u8]>,
}

impl Kept {
    fn new() -> Kept {
        Kept {
            spool: fastrand::u64(1..),
            first: 1,
            entries: VecDeque::new(),
            bytes: 0,
            dropped: 0,
            hole: None,
            due: 0,
            stopped: None,
            has_begun: false,
            failure: None,
        }
    }

    /// Returns the number of the last entry; of the one before the next if there is none.
    fn last(&self) -> u64 {
        (self.first + self.entries.len() as u64).saturating_sub(1)
    }

    fn push(&mut self, at: Stamp, entry: spool_entry::Entry) {
        let encoded = SpoolEntry { age_millis: 0, entry: Some(entry) }.encode_to_vec();
        self.add(Entry { at, encoded: encoded.into() });
    }

    fn add(&mut self, entry: Entry) {
        self.bytes += entry.encoded.len() + OVERHEAD;
        self.entries.push_back(entry);
    }

    fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.first += 1;
        self.bytes -= entry.encoded.len() + OVERHEAD;
        Some(entry)
    }

    /// Drops the earliest entries beyond the bounds, and notes the gap.
    fn bound(&mut self, now: Moment, max_bytes: usize) {
        let is_old = |entry: &Entry| entry.at.age(now) > MAX_AGE;
        while self.bytes > max_bytes || self.entries.front().is_some_and(is_old) {
            let Some(Entry { at, .. }) = self.pop() else { break };
            self.dropped += 1;
            self.hole = Some((self.hole.map_or(at, |(from, _)| from), at));
            self.due = self.due.max(self.first.saturating_sub(1));
        }
    }

    /// Drops entries that were noted while the agent was connected, and that the hub has heard of since.
    fn prune(&mut self, now: Moment) {
        while self.first > self.due && self.entries.front().is_some_and(|it| it.at.age(now) > UNCERTAIN) {
            self.pop();
        }
    }
}

impl Spool {
    /// Makes the spool of an agent of `cluster` in memory: what is in it when the agent ends is lost.
    pub fn in_memory(cluster: ClusterId, clock: BootClock) -> Spool {
        Spool {
            cluster,
            clock,
            kept: Mutex::new(Kept::new()),
            changes: watch::Sender::default(),
            writer: None,
            max_bytes: MAX_BYTES,
            _lock: None,
        }
    }

    /// Sets the maximum length of the entries, in bytes. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn bounded_by(mut self, max_bytes: usize) -> Spool {
        self.max_bytes = max_bytes;
        self
    }

    /// Opens the spool of an agent of `cluster` in a folder, or makes it. Returns the path to which a damaged file was
    /// renamed; what it held is a gap.
    ///
    /// # Errors
    /// If the folder cannot be used, or another agent uses it.
    pub fn in_folder(
        cluster: ClusterId,
        clock: BootClock,
        folder: &Path,
    ) -> Result<(Arc<Spool>, Option<PathBuf>), SpoolError> {
        let opened = SpoolFile::open(folder, &cluster, &clock)?;
        let file::Opened { file, mut kept, set_aside, lock } = opened;
        kept.bound(clock.now(), MAX_BYTES);
        kept.due = kept.last();
        let writer = Writer::default();
        let spool = Spool {
            cluster,
            clock,
            kept: Mutex::new(kept),
            changes: watch::Sender::default(),
            writer: Some(writer.clone()),
            max_bytes: MAX_BYTES,
            _lock: Some(lock),
        };
        let spool = Arc::new(spool);
        file.keep(Arc::downgrade(&spool), writer)?;
        Ok((spool, set_aside))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
        if let Some(writer) = &self.writer {
            writer.wake();
        }
    }

    /// Takes a note about a cluster, at the moment at which it is made; ignores those about others.
    pub fn note(&self, cluster: &ClusterId, noted: Noted) {
        if *cluster != self.cluster {
            return;
        }
        let now = self.clock.now();
        let mut kept = self.kept();
        match noted {
            Noted::Begun => {
                let stopped = kept.stopped.take();
                kept.has_begun = true;
                let lasted_millis = stopped.map(|stopped| millis(stopped.age(now)));
                kept.push(Stamp::now(now), spool_entry::Entry::Gap(Gap { lasted_millis }));
                // The hub is told at once of the time that nobody watched.
                kept.due = kept.last();
            }
            Noted::Changed(transitions) => {
                for transition in transitions {
                    let transition = Transition::of(transition, &self.cluster);
                    kept.push(Stamp::now(now), spool_entry::Entry::Transition(transition));
                }
            }
        }
        kept.bound(now, self.max_bytes);
        drop(kept);
        self.changed();
    }

    /// Returns the size of the spool.
    pub fn counts(&self) -> SpoolCounts {
        let kept = self.kept();
        SpoolCounts { entries: kept.entries.len(), bytes: kept.bytes, dropped: kept.dropped }
    }

    /// Returns the reason why the file of the spool could not be written since the last call.
    pub(crate) fn take_failure(&self) -> Option<String> {
        self.kept().failure.take()
    }

    /// Makes all entries due for a hub to which the agent has connected.
    pub(crate) fn connected(&self) {
        let mut kept = self.kept();
        kept.due = kept.last();
    }

    /// Drops what the hub has heard of by the present connection.
    pub(crate) fn prune(&self) {
        let now = self.clock.now();
        let mut kept = self.kept();
        let before = kept.first;
        kept.bound(now, self.max_bytes);
        kept.prune(now);
        let is_changed = kept.first != before;
        drop(kept);
        if is_changed {
            self.changed();
        }
    }

    /// Makes the next message to the hub; `None` if nothing is due.
    pub(crate) fn next_message(&self) -> Option<Spooled> {
        let now = self.clock.now();
        let mut kept = self.kept();
        kept.bound(now, self.max_bytes);
        let due = kept.due.saturating_add(1).saturating_sub(kept.first);
        let due = usize::try_from(due).unwrap_or(usize::MAX).min(kept.entries.len());
        if due == 0 && kept.hole.is_none() {
            return None;
        }
        let (mut first, mut entries) = (kept.first, Vec::new());
        if let Some((from, until)) = kept.hole {
            first = first.saturating_sub(1);
            let lasted = from.age(now).saturating_sub(until.age(now));
            let gap = spool_entry::Entry::Gap(Gap { lasted_millis: Some(millis(lasted)) });
            entries.push(SpoolEntry { age_millis: millis(until.age(now)), entry: Some(gap) });
        }
        let mut bytes = 0;
        for Entry { at, encoded } in kept.entries.iter().take(due) {
            bytes += encoded.len() + 16;
            if bytes > MESSAGE && !entries.is_empty() || entries.len() >= MAX_SPOOLED {
                break;
            }
            // It was encoded here, or checked when it was read.
            let entry = SpoolEntry::decode(&**encoded).unwrap_or_default();
            entries.push(SpoolEntry { age_millis: millis(at.age(now)), ..entry });
        }
        Some(Spooled { spool: kept.spool, first, entries })
    }

    /// Drops the entries that the hub has.
    pub(crate) fn recorded(&self, spool: u64, last: u64) {
        let mut kept = self.kept();
        if spool != kept.spool || last > kept.due {
            return;
        }
        // If more was dropped since it was told of, the gap goes on.
        if last >= kept.first.saturating_sub(1) {
            kept.hole = None;
        }
        while kept.first <= last && kept.pop().is_some() {}
        drop(kept);
        self.changed();
    }

    /// Waits until the hub has all entries that are due and have a number up to `last`.
    pub(crate) async fn until_recorded(&self, last: u64) {
        let mut changes = self.changes.subscribe();
        while self.is_waiting(last) && changes.changed().await.is_ok() {}
    }

    fn is_waiting(&self, last: u64) -> bool {
        let kept = self.kept();
        kept.hole.is_some() || (kept.first <= kept.due.min(last) && !kept.entries.is_empty())
    }

    /// Waits until a message may be due.
    pub(crate) async fn until_due(&self) {
        self.changes.subscribe().wait_for(|_| self.is_waiting(u64::MAX)).await.map(drop).unwrap_or_default();
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
