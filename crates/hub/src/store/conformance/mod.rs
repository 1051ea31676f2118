//! The behaviour that every implementation of [`Store`] has. An implementation provides a [`Fixture`], and runs all
//! cases with [`conformance!`].

mod agents;
mod history;
mod operations;
mod records;
mod samples;

use std::num::NonZeroUsize;
use std::path::Path;

use futures::StreamExt as _;
use jiff::Timestamp;

pub(crate) use agents::*;
pub(crate) use history::*;
pub(crate) use operations::*;
pub(crate) use records::*;
pub(crate) use samples::{batch_of, pair, pair_id};

use super::{Batch, Page, PageQuery, PairId, PairRecord, PairState, Store};

/// A place for one store, that a test opens and closes.
pub(crate) trait Fixture {
    /// The type of the store.
    type Store: Store;

    /// Opens the store, or creates it.
    async fn open(&self) -> Self::Store;

    /// Opens the store with so little space that about 1,000 pairs fill it.
    async fn open_nearly_full(&self) -> Self::Store;

    /// Closes the store, so that it can be opened again.
    async fn close(&self, store: Self::Store);

    /// Puts a backup in the place of the store, which is closed.
    async fn restore(&self, backup: &Path);

    /// Returns a folder for files of the test.
    fn folder(&self) -> &Path;
}

/// Defines a test for each case, with the fixture that `$new` makes.
macro_rules! conformance {
    ($new:path: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::store::conformance::$case(&$new()).await;
            }
        )*
    };
    ($new:path) => {
        conformance! {
            $new: pairs_come_back_after_a_restart, gone_and_replaced_pairs_leave_nothing,
            batches_are_saved_in_order, epochs_never_become_smaller, history_is_read_in_pages,
            writing_twice_changes_nothing, a_running_sync_does_not_replace_its_end, states_at_equal_a_naive_log,
            dropped_history_is_refused, dropping_history_forgets_what_nothing_needs,
            tokens_are_created_listed_and_revoked, a_backup_holds_what_was_saved_before_it,
            a_full_store_acknowledges_nothing_and_can_be_read, cursors_of_others_are_refused,
            agents_enrol_once_for_each_token_and_stay_revoked, spools_of_agents_keep_their_place_and_last_gap, one_authority_and_the_last_keys_of_the_hub_are_kept,
            unusual_texts_come_back, moments_before_history_began_are_refused,
            operations_are_saved_replaced_and_read_with_the_history_of_their_apps,
        }
    };
}
pub(crate) use conformance;

/// Makes the time of some microseconds.
pub(crate) fn at(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap()
}

fn limit(limit: usize) -> PageQuery {
    PageQuery::first(NonZeroUsize::new(limit).unwrap())
}

/// Reads all pairs in pages of `size`, ordered by their identities.
pub(crate) async fn all_pairs(store: &impl Store, size: usize) -> Vec<PairRecord> {
    let mut found = Vec::new();
    let mut pages = store.pairs(NonZeroUsize::new(size).unwrap());
    while let Some(page) = pages.next().await {
        let page = page.unwrap();
        assert!(page.pairs.len() <= size && page.unreadable == 0);
        found.extend(page.pairs);
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

/// Reads the states of all pairs at a moment in pages of `size`, ordered by their identities.
async fn all_states(store: &impl Store, moment: Timestamp, size: usize) -> Vec<(PairId, PairState)> {
    let mut query = limit(size);
    let mut found = Vec::new();
    loop {
        let Page { items, next } = store.states_at(moment, query.clone()).await.unwrap();
        found.extend(items);
        match next {
            Some(next) => query = query.next(next),
            None => break,
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Makes a batch of nothing but pairs.
fn saving(pairs: Vec<PairRecord>) -> Batch {
    Batch { pairs, ..Batch::default() }
}
