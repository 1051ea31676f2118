//! The pairs that the last publications changed, so that a page that is shown can be maintained instead of computed
//! again.

use std::collections::VecDeque;
use std::sync::Arc;

use super::published::PairChange;

/// The greatest number of changes that are kept; a reader that is further behind computes its page again.
const MAX_CHANGES: usize = 20_000;

/// The changes of the last publications.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    /// The number of each publication, with its changes.
    entries: VecDeque<(u64, Arc<[PairChange]>)>,
    changes: usize,
    /// The number of the last publication of which the changes were dropped.
    dropped: u64,
}

impl ChangeLog {
    /// Adds the changes of a publication, which follows the last one.
    pub(crate) fn push(&mut self, version: u64, changes: Vec<PairChange>) {
        self.changes += changes.len();
        self.entries.push_back((version, changes.into()));
        while self.changes > MAX_CHANGES || self.entries.len() > MAX_CHANGES {
            let Some((dropped, changes)) = self.entries.pop_front() else { break };
            self.changes -= changes.len();
            self.dropped = dropped;
        }
    }

    /// Returns the changes after one publication up to another; `None` if some of them were dropped.
    pub(crate) fn between(&self, after: u64, to: u64) -> Option<Vec<Arc<[PairChange]>>> {
        let wanted = self.entries.iter().filter(|(version, _)| *version > after && *version <= to);
        (after >= self.dropped).then(|| wanted.map(|(_, changes)| Arc::clone(changes)).collect())
    }
}
