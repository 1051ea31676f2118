//! The spools of agents: transitions that they noted while they were not connected go into history, each once.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taffrail_api::agent_protocol::{
    Gap, InvalidMessage, MAX_SPOOLED, Recorded, SpoolEntry, Spooled, spool_entry,
};
use taffrail_apps::ClusterId;
use tokio::sync::mpsc;

use super::{AGENT, Agents};
use crate::index::{LateEntries, LateEntry, lock};
use crate::store::SpoolRecord;

/// The number of gaps in one message that count; a spool has one.
const MAX_GAPS: usize = 4;

/// The age up to which a transition is taken: an agent keeps them for a day, and may need an hour to send them.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(25);

/// The number of messages with transitions that are applied at one time, of all agents.
pub(super) const AT_ONCE: usize = 64;

/// The pause before transitions are taken again that the store did not take.
const PAUSE: Duration = Duration::from_secs(5);

/// Transitions of one message, read and bounded.
pub(super) struct ReadSpool {
    spool: u64,
    last: u64,
    entries: Vec<(u64, LateEntry)>,
}

/// Reads a message of the agent of `cluster` that came at the time `now`; `heard` is the time at which the hub heard of the
/// cluster before the session. Ages beyond those that are possible count as the greatest possible ones.
///
/// # Errors
/// If the message breaks the protocol.
pub(super) fn read(
    message: Spooled,
    cluster: &ClusterId,
    now: Timestamp,
    heard: Option<Timestamp>,
) -> Result<ReadSpool, InvalidMessage> {
    let Spooled { spool, first, mut entries } = message;
    entries.truncate(MAX_SPOOLED);
    let earliest = now.saturating_sub(MAX_AGE).unwrap_or(Timestamp::MIN);
    let ago = |millis: u64, from: Timestamp| {
        let age = i64::try_from(millis).map_or(SignedDuration::MAX, SignedDuration::from_millis);
        from.checked_sub(age).map_or(earliest, |at| at.max(earliest))
    };
    let last = first.saturating_add(entries.len() as u64).saturating_sub(1);
    let mut read = Vec::with_capacity(entries.len());
    let mut gaps = 0;
    for (number, SpoolEntry { age_millis, entry }) in entries.into_iter().enumerate() {
        let number = first.saturating_add(number as u64);
        let at = ago(age_millis, now);
        let entry = match entry {
            Some(spool_entry::Entry::Transition(transition)) => {
                transition.read(cluster)?.map(|transition| LateEntry::Transition(at, transition))
            }
            // Each is looked at for all apps that were told of.
            Some(spool_entry::Entry::Gap(_)) if gaps >= MAX_GAPS => None,
            Some(spool_entry::Entry::Gap(Gap { lasted_millis })) => {
                gaps += 1;
                // Before that the hub was told everything.
                let from = lasted_millis.map(|lasted| ago(lasted, at)).max(heard);
                from.filter(|from| *from < at && heard.is_some()).map(|from| LateEntry::Gap(from..at))
            }
            None => None,
        };
        read.extend(entry.map(|entry| (number, entry)));
    }
    Ok(ReadSpool { spool, last, entries: read })
}

impl Agents {
    /// Adds the transitions of the messages to history, for a session that began at the time `begun`; sends `recorded` once
    /// they are saved. Ends with the messages.
    pub(super) async fn record(
        &self,
        cluster: &ClusterId,
        begun: Timestamp,
        mut messages: mpsc::Receiver<ReadSpool>,
        recorded: &mpsc::Sender<Recorded>,
    ) {
        let mut late = LateEntries::new(cluster.clone(), AGENT, begun);
        while let Some(ReadSpool { spool, last, entries }) = messages.recv().await {
            let known = lock(&self.spools).get(cluster).copied();
            let known = known.filter(|(known, _)| *known == spool).map_or(0, |(_, last)| last);
            let new: Vec<LateEntry> =
                entries.into_iter().filter(|(number, _)| *number > known).map(|(_, entry)| entry).collect();
            let has_new = last > known && self.take(cluster, &mut late, new, (spool, last)).await;
            if last > known && !has_new {
                late = LateEntries::new(cluster.clone(), AGENT, begun);
            }
            // What an earlier session took may not be saved yet.
            if (has_new || last <= known)
                && self.index.saved().await
                && recorded.send(Recorded { spool, last }).await.is_err()
            {
                return;
            }
        }
    }

    /// Takes entries that are new; returns false if they cannot be taken now: the agent sends them again.
    async fn take(
        &self,
        cluster: &ClusterId,
        late: &mut LateEntries,
        entries: Vec<LateEntry>,
        (spool, last): (u64, u64),
    ) -> bool {
        let Ok(_turn) = Arc::clone(&self.recording).acquire_owned().await else { return false };
        // What was published before is looked for in the store.
        if !self.index.saved().await {
            tokio::time::sleep(PAUSE).await;
            return false;
        }
        let gap = entries.iter().rev().find_map(|entry| match entry {
            LateEntry::Gap(gap) => Some(gap.clone()),
            LateEntry::Transition(..) => None,
        });
        let record = SpoolRecord { cluster: cluster.clone(), spool, last, gap };
        let is_taken = self.index.take_late(&*self.store, late, entries, record).await.unwrap_or(false);
        if is_taken {
            lock(&self.spools).insert(cluster.clone(), (spool, last));
        }
        is_taken
    }
}
