//! The store that saves to a SQLite database file.
//!
//! One task writes, on one connection, and groups the writes of up to 100 ms into one commit that waits for the disk;
//! reads use connections of their own, which a writer does not block. The file, its log (`-wal`) and backups can be
//! read by their owner alone. A second hub cannot open the same file.

mod agents;
mod codes;
mod error;
mod files;
mod operations;
mod pairs;
mod read;
mod retention;
mod save;
mod schema;
mod texts;
mod tokens;
mod writer;

#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, SqlitePool};
use taffrail_api::agent_protocol::KeyHash;
use taffrail_api::operations::OperationRecord;

use super::{
    AgentRecord, Answer, AuthorityRecord, Batch, ClusterRecord, DroppedHistory, EnrolmentRecord,
    HistoryEntry, HistoryRange, OperationQuery, Page, PageQuery, PairId, PairPages, PairState,
    SavedOperation, SpoolRecord, Store, StoreError, StoreHealth, TokenHash, TokenRecord,
};
pub use error::OpenError;
use error::failed;
use files::Lock;
pub use files::restore;
use writer::{Command, Writer};

/// The greatest number of connections for reads; further reads wait for one.
const READERS: u32 = 4;

/// The time for which a statement waits for another process that writes to the file, such as one that creates a token.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings that tests change.
#[derive(Debug, Clone)]
struct Settings {
    /// The time for which writes are collected before they are committed.
    group: Duration,
    /// The greatest number of pages of the file, beyond which writes fail as on a full disk; `None` for no bound but
    /// the disk.
    max_pages: Option<u32>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { group: Duration::from_millis(100), max_pages: None }
    }
}

/// A store in a file of SQLite.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    readers: SqlitePool,
    writer: Writer,
}

/// The result of opening a store.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: SqliteStore,
    /// The damaged file in whose place a new one was begun; `None` if the file was sound, or there was none.
    pub set_aside: Option<SetAside>,
}

/// A damaged database file that was renamed, not deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The path to which the damaged file was renamed. Its log has the same path with `-wal`.
    pub path: PathBuf,
    /// The damage that was found in the file.
    pub damage: String,
}

impl SqliteStore {
    /// Opens the store in the file `path`, or creates it there. The folder must exist.
    ///
    /// Checks the whole file, which takes 0.4 s for 200,000 pairs. A damaged file is renamed, and a new one begun. An
    /// older schema is upgraded. Must be called in a Tokio runtime, in which the writer then runs.
    ///
    /// # Errors
    /// [`OpenError`] if another hub has opened the file, a newer version of Taffrail wrote it, another program wrote
    /// it, or it cannot be read or created. The file is then unchanged.
    pub async fn open(path: &Path) -> Result<Opened, OpenError> {
        SqliteStore::open_with(path, Settings::default()).await
    }

    /// Opens the store like [`open`](SqliteStore::open), with short groups of writes: tests write one after the other.
    /// It holds at most `max_pages` pages; `None` for no limit.
    #[cfg(test)]
    pub(crate) async fn open_quick(path: &Path, max_pages: Option<u32>) -> Result<SqliteStore, OpenError> {
        let settings = Settings { group: Duration::from_millis(2), max_pages };
        SqliteStore::open_with(path, settings).await.map(|opened| opened.store)
    }

    async fn open_with(path: &Path, settings: Settings) -> Result<Opened, OpenError> {
        let lock = Lock::take(path).await?;
        let (connection, set_aside) = match connect(path, &settings).await {
            Err(OpenError::Damaged(damage)) => {
                let renamed = files::set_aside(path, "damaged")?;
                (connect(path, &settings).await?, Some(SetAside { path: renamed, damage }))
            }
            opened => (opened?, None),
        };
        let readers = SqlitePoolOptions::new().max_connections(READERS);
        let readers = readers.connect_lazy_with(options(path).read_only(true));
        let writer = Writer::start(connection, Some(lock), settings.group);
        Ok(Opened { store: SqliteStore { path: path.to_owned(), readers, writer }, set_aside })
    }

    /// Opens a store that a hub may have opened meanwhile, to read it, to back it up, or to change its tokens. Creates
    /// it if there is none.
    ///
    /// # Errors
    /// [`OpenError`] as for [`open`](SqliteStore::open), but if a hub has opened the file only if its schema is not
    /// that of this version; also if the file is damaged, which is then unchanged.
    pub async fn open_beside(path: &Path) -> Result<SqliteStore, OpenError> {
        let settings = Settings::default();
        let connection = match Lock::try_take(path) {
            Ok(_lock) => connect(path, &settings).await?,
            Err(OpenError::InUse { .. }) => connect_known(path, &settings).await?,
            Err(error) => return Err(error),
        };
        let readers = SqlitePoolOptions::new().max_connections(READERS);
        let readers = readers.connect_lazy_with(options(path).read_only(true));
        let writer = Writer::start(connection, None, settings.group);
        Ok(SqliteStore { path: path.to_owned(), readers, writer })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until all writes so far are on the disk, and closes the file, so that another hub can open it. What is asked
    /// of the store afterwards fails.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Connects to the file for writing; creates, checks and upgrades it.
async fn connect(path: &Path, settings: &Settings) -> Result<SqliteConnection, OpenError> {
    files::create_private(path)?;
    connect_then(path, settings, async |connection| {
        schema::check(connection).await?;
        schema::upgrade(connection, path, &schema::STEPS).await
    })
    .await
}

/// Connects to a file for writing that another process has opened as a store. Fails with [`OpenError::InUse`] if its
/// schema is not the newest one.
async fn connect_known(path: &Path, settings: &Settings) -> Result<SqliteConnection, OpenError> {
    connect_then(path, settings, async |connection| match schema::version(connection, path).await? {
        version if version == schema::STEPS.len() as i64 => Ok(()),
        // The hub that uses it is about to create it, or is of an older version.
        _ => Err(OpenError::InUse { path: path.to_owned() }),
    })
    .await
}

/// Connects to a file for writing, and runs `work`. Closes the connection if that fails: one that is closed later could
/// remove the log of a file that has taken the place of this one.
async fn connect_then(
    path: &Path,
    settings: &Settings,
    work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<(), OpenError>,
) -> Result<SqliteConnection, OpenError> {
    let mut connection = options(path).connect().await.map_err(|error| OpenError::of(path, error))?;
    let done = async {
        set_up(&mut connection, settings).await.map_err(|error| OpenError::of(path, error))?;
        work(&mut connection).await
    }
    .await;
    match done {
        Ok(()) => Ok(connection),
        Err(error) => {
            // The first error is the one to tell.
            let _ = connection.close().await;
            Err(error)
        }
    }
}

async fn set_up(connection: &mut SqliteConnection, settings: &Settings) -> sqlx::Result<()> {
    // The log is cut to 64 MiB when it is begun again, and copied to the file each 32 MiB: a page that changes often is
    // then copied once. 64 MiB of the file are kept in memory, if it is so large.
    let always = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864;
         PRAGMA wal_autocheckpoint = 8192; PRAGMA cache_size = -65536";
    sqlx::raw_sql(always).execute(&mut *connection).await?;
    if let Some(pages) = settings.max_pages {
        let bound = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
        sqlx::raw_sql(bound).execute(connection).await?;
    }
    Ok(())
}

fn options(path: &Path) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT);
    options.disable_statement_logging()
}

impl Store for SqliteStore {
    fn write(&self, batch: Batch) -> Answer<'_, ()> {
        if batch.is_empty() {
            return std::future::ready(Ok(())).boxed();
        }
        self.writer.ask(|reply| Command::Write { batch: Box::new(batch), reply }).boxed()
    }

    fn pairs(&self, page: NonZeroUsize) -> PairPages<'_> {
        pairs::read(self.readers.clone(), page).boxed()
    }

    fn clusters(&self) -> Answer<'_, Vec<ClusterRecord>> {
        async move {
            let mut reading = self.readers.begin().await.map_err(failed("read clusters"))?;
            read::clusters(&mut reading).await
        }
        .boxed()
    }

    fn history(
        &self,
        pair: PairId,
        range: Range<Timestamp>,
        page: PageQuery,
    ) -> Answer<'_, Page<HistoryEntry>> {
        async move {
            let mut reading = self.readers.begin().await.map_err(failed("read history"))?;
            read::history(&mut reading, &pair, range, &page).await
        }
        .boxed()
    }

    fn recorded(&self) -> Answer<'_, HistoryRange> {
        async move {
            let mut reading = self.readers.begin().await.map_err(failed("read the range of history"))?;
            read::recorded(&mut reading).await
        }
        .boxed()
    }

    fn state_at(&self, pair: PairId, at: Timestamp) -> Answer<'_, Option<PairState>> {
        async move {
            let mut reading = self.readers.begin().await.map_err(failed("read history"))?;
            read::state_at(&mut reading, &pair, at).await
        }
        .boxed()
    }

    fn states_at(&self, at: Timestamp, page: PageQuery) -> Answer<'_, Page<(PairId, PairState)>> {
        async move {
            let mut reading = self.readers.begin().await.map_err(failed("read history"))?;
            read::states_at(&mut reading, at, &page).await
        }
        .boxed()
    }

    fn save_operation(&self, operation: SavedOperation) -> Answer<'_, ()> {
        self.writer.ask(|reply| Command::SaveOperation { operation: Box::new(operation), reply }).boxed()
    }

    fn operations(&self, query: OperationQuery) -> Answer<'_, Vec<OperationRecord>> {
        async move {
            let mut reading = self.readers.begin().await.map_err(failed("read operations"))?;
            operations::list(&mut reading, &query).await
        }
        .boxed()
    }

    fn drop_history(&self, since: Timestamp) -> Answer<'_, DroppedHistory> {
        self.writer.ask(move |reply| Command::DropHistory { since, reply }).boxed()
    }

    fn backup<'s>(&'s self, to: &'s Path) -> Answer<'s, ()> {
        files::backup(options(&self.path).read_only(true), to).boxed()
    }

    fn add_token(&self, token: TokenRecord) -> Answer<'_, ()> {
        self.writer.ask(|reply| Command::AddToken { token, reply }).boxed()
    }

    fn tokens(&self) -> Answer<'_, Vec<TokenRecord>> {
        async move {
            let mut reading = self.readers.begin().await.map_err(failed("read tokens"))?;
            tokens::list(&mut reading).await
        }
        .boxed()
    }

    fn revoke_token(&self, id: String) -> Answer<'_, bool> {
        self.writer.ask(|reply| Command::RevokeToken { id, reply }).boxed()
    }

    fn save_agent(&self, agent: AgentRecord) -> Answer<'_, ()> {
        self.writer.ask(|reply| Command::SaveAgent { agent: Box::new(agent), reply }).boxed()
    }

    fn agents(&self) -> Answer<'_, Vec<AgentRecord>> {
        async move {
            let mut reading = self.readers.begin().await.map_err(failed("read agents"))?;
            agents::list(&mut reading).await
        }
        .boxed()
    }

    fn revoke_agents(&self, name: String, at: Timestamp) -> Answer<'_, u64> {
        self.writer.ask(move |reply| Command::RevokeAgents { name, at, reply }).boxed()
    }

    fn spools(&self) -> Answer<'_, Vec<SpoolRecord>> {
        async move {
            let mut reading = self.readers.begin().await.map_err(failed("read the spools of agents"))?;
            agents::spools(&mut reading).await
        }
        .boxed()
    }

    fn add_enrolment(&self, token: EnrolmentRecord) -> Answer<'_, ()> {
        self.writer.ask(|reply| Command::AddEnrolment { token, reply }).boxed()
    }

    fn enrolment(&self, hash: TokenHash) -> Answer<'_, Option<EnrolmentRecord>> {
        async move {
            let mut reading = self.readers.begin().await.map_err(failed("read a token"))?;
            agents::enrolment(&mut reading, hash).await
        }
        .boxed()
    }

    fn enrol(&self, token: TokenHash, agent: AgentRecord) -> Answer<'_, bool> {
        self.writer.ask(move |reply| Command::Enrol { token, agent: Box::new(agent), reply }).boxed()
    }

    fn authority(&self, new: AuthorityRecord) -> Answer<'_, AuthorityRecord> {
        self.writer.ask(|reply| Command::Authority { new, reply }).boxed()
    }

    fn set_pins(&self, pins: Vec<KeyHash>) -> Answer<'_, ()> {
        self.writer.ask(|reply| Command::SetPins { pins, reply }).boxed()
    }

    fn pins(&self) -> Answer<'_, Vec<KeyHash>> {
        async move {
            let mut reading = self.readers.begin().await.map_err(failed("read the keys of the hub"))?;
            agents::pins(&mut reading).await
        }
        .boxed()
    }

    fn health(&self) -> Answer<'_, StoreHealth> {
        async move {
            if self.writer.failure().is_some() {
                // The writer notes the outcome.
                let _ = self.writer.ask(|reply| Command::Probe { reply }).await;
            }
            let failure = self.writer.failure();
            Ok(StoreHealth {
                is_writable: failure.is_none(),
                is_full: matches!(failure, Some(StoreError::DiskFull { .. })),
                failure: failure.map(|failure| error::with_causes(&failure)),
                bytes: files::size(&self.path),
            })
        }
        .boxed()
    }
}
