//! The rows that differ from one update to another.

use std::collections::{BTreeSet, HashSet};

use crate::app::App;
use crate::identity::AppRef;

/// The rows of a list that may differ from those at an earlier time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedRows {
    /// True if any row may differ, and any may be gone; the other fields are then empty.
    pub is_all: bool,
    /// The indexes in [`AppList::apps`](crate::AppList::apps) of the rows that may differ, and of the new ones;
    /// ascending.
    pub changed: Vec<usize>,
    /// The names of the rows that are gone, in no order; a name that another row has is not listed.
    pub gone: Vec<AppRef>,
}

/// A log of the rows that may differ. It records them from the first call of [`RowLog::take`] on.
#[derive(Debug, Default)]
pub(super) struct RowLog {
    is_recorded: bool,
    is_all: bool,
    /// The numbers of the rows that may differ.
    changed: BTreeSet<u32>,
    gone: Vec<AppRef>,
}

impl RowLog {
    /// Records that any row may differ.
    pub(super) fn note_all(&mut self) {
        (self.is_all, self.changed, self.gone) = (true, BTreeSet::new(), Vec::new());
    }

    /// Records that the row with this number may differ.
    pub(super) fn note(&mut self, number: u32) {
        if self.is_recorded && !self.is_all {
            self.changed.insert(number);
        }
    }

    /// Records that a row of this name is gone.
    pub(super) fn note_gone(&mut self, app: &AppRef) {
        if self.is_recorded && !self.is_all {
            self.gone.push(app.clone());
        }
    }

    /// Returns the rows that were recorded since the last call; at the first call, that any row may differ. `place`
    /// returns the index in `apps` of the row with a number.
    pub(super) fn take(&mut self, apps: &[App], place: impl Fn(u32) -> Option<usize>) -> ChangedRows {
        let RowLog { is_recorded, is_all, changed, gone } =
            std::mem::replace(self, RowLog { is_recorded: true, ..RowLog::default() });
        if is_all || !is_recorded {
            return ChangedRows { is_all: true, ..ChangedRows::default() };
        }
        let mut changed: BTreeSet<usize> = changed.into_iter().filter_map(place).collect();
        let mut gone: HashSet<AppRef> = gone.into_iter().collect();
        if !gone.is_empty() {
            // Another row may have the same name.
            let left = apps.iter().enumerate().filter(|(_, app)| gone.remove(&app.app));
            changed.extend(left.map(|(place, _)| place));
        }
        ChangedRows { is_all, changed: changed.into_iter().collect(), gone: gone.into_iter().collect() }
    }
}
