//! The store: the part of a fleet's state that a hub saves and reads again at its next start.
//!
//! The hub answers all lists of the present from memory. A [`Store`] keeps the last known halves of each
//! [pair](PairId), so that a hub has rows at once when it starts, the epochs of streams, the history of pairs, and the
//! hashes of access tokens. Everything that changes together is written in one [`Batch`], which is saved as a whole or
//! not at all.
//!
//! Times are saved in whole microseconds: a fraction of a microsecond is cut off, except from the last success of a
//! sync. A NUL character in a text is saved as U+FFFD, because PostgreSQL cannot hold it.

mod agent;
#[cfg(test)]
mod conformance;
mod error;
mod record;
pub mod sqlite;
mod token;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::Timestamp;
use taffrail_api::agent_protocol::KeyHash;
use taffrail_api::operations::OperationRecord;

pub use agent::{AgentRecord, AuthorityRecord, EnrolmentRecord};
pub use error::StoreError;
pub(crate) use error::finished;
pub use record::{
    Batch, ClusterRecord, Cursor, DroppedHistory, HistoryEntry, HistoryRange, OperationQuery, Page,
    PageQuery, PairId, PairPage, PairRecord, PairTransition, SavedHalf, SavedOperation, SpoolRecord,
    StoreHealth, SyncRecord,
};
pub use taffrail_api::hub::PairState;
pub use taffrail_apps::SyncResult;
pub use token::{ACT_RIGHT, LOGS_RIGHT, Token, TokenHash, TokenRecord};

/// The future of a result that a store returns.
pub type Answer<'s, T> = BoxFuture<'s, Result<T, StoreError>>;

/// The pages of pairs that a store reads.
pub type PairPages<'s> = BoxStream<'s, Result<PairPage, StoreError>>;

/// The interface of a database that keeps the state of a fleet across restarts.
///
/// One hub writes to a store; reads do not wait for writes. All methods but [`health`](Store::health) fail with
/// [`StoreError::Database`] if the database does not answer, with [`StoreError::Damaged`] if it holds what Taffrail did
/// not write, and with [`StoreError::Closed`] once the store is closed.
pub trait Store: Send + Sync + 'static {
    /// Saves a batch as a whole, after the batches written before it. The answer comes after the commit is on the disk,
    /// up to 100 ms later: writes of that time share one commit. A batch is saved even if the caller drops the answer.
    ///
    /// A batch that is saved twice changes nothing the second time. Transitions and syncs that are older than the
    /// history that is kept are left out.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] if there is no space; then nothing of the batch is saved.
    fn write(&self, batch: Batch) -> Answer<'_, ()>;

    /// Reads all pairs with their last known halves, in pages of at most `page` of them. Reads ahead: the next pages are
    /// on their way while one is used. A hub writes nothing before it has read all. An error ends the pages.
    fn pairs(&self, page: NonZeroUsize) -> PairPages<'_>;

    /// Reads the attributes of all clusters, ordered by their identities.
    fn clusters(&self) -> Answer<'_, Vec<ClusterRecord>>;

    /// Reads one page of the transitions and syncs of a pair, and of the operations on its app, in a range of time
    /// (without its end), the latest first. A sync or operation counts at the time at which it began. Dropped history is missing without an error.
    ///
    /// # Errors
    /// [`StoreError::InvalidCursor`] if the cursor is not one of this method.
    fn history(
        &self,
        pair: PairId,
        range: Range<Timestamp>,
        page: PageQuery,
    ) -> Answer<'_, Page<HistoryEntry>>;

    /// Returns the range of time of which the states of all pairs are known; without ends if no history is recorded.
    fn recorded(&self) -> Answer<'_, HistoryRange>;

    /// Reads the state that a pair had at a moment: the one after its last transition until then. `None` if the pair
    /// did not exist, or nothing is recorded of it until then.
    ///
    /// # Errors
    /// [`StoreError::HistoryDropped`] if the moment is before the history that is kept, or before it began; not as long
    /// as none is recorded.
    fn state_at(&self, pair: PairId, at: Timestamp) -> Answer<'_, Option<PairState>>;

    /// Reads the states that all pairs had at a moment, like [`state_at`](Store::state_at). A page considers at most
    /// `page.limit` pairs, and leaves out those that did not exist, so that an empty page need not be the last one.
    ///
    /// # Errors
    /// [`StoreError::HistoryDropped`] as for [`state_at`](Store::state_at), and [`StoreError::InvalidCursor`] if the
    /// cursor is not one of this method.
    fn states_at(&self, at: Timestamp, page: PageQuery) -> Answer<'_, Page<(PairId, PairState)>>;

    /// Saves an operation, or replaces it. The answer comes after the commit is on the disk.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] if there is no space; then nothing is saved.
    fn save_operation(&self, operation: SavedOperation) -> Answer<'_, ()>;

    /// Reads operations, the latest first.
    fn operations(&self, query: OperationQuery) -> Answer<'_, Vec<OperationRecord>>;

    /// Drops the history of all days (in UTC) that ended at `since` or before, but keeps the state that each pair had
    /// at the end of the last one of them; and the operations that began before, unless they still run. Also frees the space of texts that nothing refers to any more, so a hub does
    /// this every hour.
    fn drop_history(&self, since: Timestamp) -> Answer<'_, DroppedHistory>;

    /// Writes a copy of the store as it is at this moment to a file, which only its owner can read. Writes go on
    /// meanwhile.
    ///
    /// # Errors
    /// [`StoreError::File`] if the file exists, which stays as it is, or cannot be written; then no file of that name
    /// is left.
    fn backup<'s>(&'s self, to: &'s Path) -> Answer<'s, ()>;

    /// Saves an access token. A token with the same identity is replaced.
    fn add_token(&self, token: TokenRecord) -> Answer<'_, ()>;

    /// Reads all access tokens, the oldest first.
    fn tokens(&self) -> Answer<'_, Vec<TokenRecord>>;

    /// Removes the access token with the identity `id`. Returns false if there was none.
    fn revoke_token(&self, id: String) -> Answer<'_, bool>;

    /// Saves an agent, or replaces the one with the same key. A revoked agent stays revoked.
    fn save_agent(&self, agent: AgentRecord) -> Answer<'_, ()>;

    /// Reads all agents that enrolled, ordered by name.
    fn agents(&self) -> Answer<'_, Vec<AgentRecord>>;

    /// Revokes the agents of the cluster called `name`; returns the number of those that were not revoked before.
    fn revoke_agents(&self, name: String, at: Timestamp) -> Answer<'_, u64>;

    /// Reads what history has of the spools of agents, ordered by the identities of their clusters.
    fn spools(&self) -> Answer<'_, Vec<SpoolRecord>>;

    /// Saves a token for enrolling an agent.
    fn add_enrolment(&self, token: EnrolmentRecord) -> Answer<'_, ()>;

    /// Reads the token for enrolling an agent that has this hash; `None` if there is none.
    fn enrolment(&self, hash: TokenHash) -> Answer<'_, Option<EnrolmentRecord>>;

    /// Saves an agent in exchange for the token with this hash, which is used then. Returns false, and saves nothing, if
    /// the token is unknown, used, or expired at the time of the enrolment.
    fn enrol(&self, token: TokenHash, agent: AgentRecord) -> Answer<'_, bool>;

    /// Saves the authority that issues the certificates of agents, unless there is one; returns the one that is saved.
    fn authority(&self, new: AuthorityRecord) -> Answer<'_, AuthorityRecord>;

    /// Saves the keys by which agents recognise the hub; they replace those of before.
    fn set_pins(&self, pins: Vec<KeyHash>) -> Answer<'_, ()>;

    /// Reads the keys by which agents recognise the hub.
    fn pins(&self) -> Answer<'_, Vec<KeyHash>>;

    /// Returns the condition of the store. If the last write failed, tries another one first.
    fn health(&self) -> Answer<'_, StoreHealth>;
}
