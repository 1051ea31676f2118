//! The differences between the views of the last publications, so that a page that a client shows is updated instead of
//! searched again.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, OnceLock};

use super::pair::{JudgedPair, Judgement, Pair, Place};
use super::published::PairChange;

/// The greatest number of changes that are kept, and of publications; a reader that is further behind searches its page
/// again.
const MAX_CHANGES: usize = 20_000;

/// The differences between the views of two publications that follow each other.
#[derive(Debug, Default)]
pub(crate) struct ViewDifferences {
    pub(crate) changes: Arc<[PairChange]>,
    /// The judgements of each of the changes before and after it, once a page needs them.
    pub(crate) judged: OnceLock<Box<[[Option<Judgement>; 2]]>>,
    /// The places of the clusters that turned, as [`FleetView::turned`](super::FleetView::turned) returns them.
    pub(crate) places: HashSet<Place>,
    /// True if a cluster has another name, or other aliases or labels.
    pub(crate) are_renamed: bool,
    /// True if there are other clusters, or a source reports other facts or errors.
    pub(crate) has_other_facts: bool,
}

impl ViewDifferences {
    /// Iterates over the changes, each with the pairs before and after it, of which one may be missing.
    pub(crate) fn judged(&self) -> impl Iterator<Item = (Place, [Option<JudgedPair<'_>>; 2])> {
        let judge = |change: &PairChange| {
            [&change.before, &change.after].map(|pair| pair.as_deref().map(Judgement::of))
        };
        let judged = self.judged.get_or_init(|| self.changes.iter().map(judge).collect());
        self.changes.iter().zip(judged).map(|(change, [before, after])| {
            (change.place, [join(before, &change.before), join(after, &change.after)])
        })
    }
}

fn join<'c>(judgement: &'c Option<Judgement>, pair: &'c Option<Arc<Pair>>) -> Option<JudgedPair<'c>> {
    Some(judgement.as_ref()?.with(pair.as_ref()?))
}

/// The differences of the last publications.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    /// The numbers of the views of publications, each with the differences from the one before, the earliest first.
    entries: VecDeque<(u64, Arc<ViewDifferences>)>,
    changes: usize,
    /// The number of the last view whose differences were dropped; 0 if none were.
    dropped: u64,
}

impl ChangeLog {
    /// Adds the differences of the view of the publication `number`, which follows the last one added, and drops the
    /// earliest beyond the limit.
    pub(crate) fn push(&mut self, number: u64, differences: ViewDifferences) {
        self.changes += differences.changes.len() + differences.places.len();
        self.entries.push_back((number, Arc::new(differences)));
        while self.changes > MAX_CHANGES || self.entries.len() > MAX_CHANGES {
            let Some((dropped, differences)) = self.entries.pop_front() else { break };
            self.changes -= differences.changes.len() + differences.places.len();
            self.dropped = dropped;
        }
    }

    /// Returns the differences of each publication after the one with the number `after` up to and including `to`;
    /// `None` if some of them were dropped, or a view has no number.
    pub(crate) fn between(&self, after: Option<u64>, to: Option<u64>) -> Option<Vec<Arc<ViewDifferences>>> {
        let (after, to) = after.zip(to)?;
        let first = self.entries.partition_point(|(number, _)| *number <= after);
        let wanted = self.entries.range(first..).take_while(|(number, _)| *number <= to);
        (after >= self.dropped).then(|| wanted.map(|(_, differences)| Arc::clone(differences)).collect())
    }
}
