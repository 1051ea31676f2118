//! The pairs that the last publications changed, so that a page that a client shows is updated instead of searched
//! again.

use std::collections::VecDeque;
use std::sync::Arc;

use super::published::PairChange;

/// The greatest number of changes that are kept, and of publications; a reader that is further behind searches its page
/// again.
const MAX_CHANGES: usize = 20_000;

/// The changes of the last publications.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    /// The version of each publication with its changes, the earliest first.
    entries: VecDeque<(u64, Arc<[PairChange]>)>,
    changes: usize,
    /// The version of the last publication whose changes were dropped; 0 if none were.
    dropped: u64,
}

impl ChangeLog {
    /// Adds the changes of the publication `version`, which follows the last one added, and drops the earliest beyond
    /// the limit.
    pub(crate) fn push(&mut self, version: u64, changes: Vec<PairChange>) {
        self.changes += changes.len();
        self.entries.push_back((version, changes.into()));
        while self.changes > MAX_CHANGES || self.entries.len() > MAX_CHANGES {
            let Some((dropped, changes)) = self.entries.pop_front() else { break };
            self.changes -= changes.len();
            self.dropped = dropped;
        }
    }

    /// Returns the changes of each publication after the version `after` up to and including `to`; `None` if some of
    /// them were dropped.
    pub(crate) fn between(&self, after: u64, to: u64) -> Option<Vec<Arc<[PairChange]>>> {
        let wanted = self.entries.iter().filter(|(version, _)| *version > after && *version <= to);
        (after >= self.dropped).then(|| wanted.map(|(_, changes)| Arc::clone(changes)).collect())
    }
}
