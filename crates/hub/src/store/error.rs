//! The errors of a store.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::task::JoinHandle;

/// The reason why an operation of a store failed.
///
/// Errors can be cloned because several batches share one commit.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The disk, or the quota of the database, has no space left. Nothing was saved; reads go on.
    #[error("cannot save: no space is left for the store of the hub; free some disk space")]
    DiskFull {
        /// The error of the database.
        #[source]
        source: Arc<sqlx::Error>,
    },
    /// The database is damaged, or has contents that Taffrail does not write.
    #[error("the store of the hub is damaged: {what}")]
    Damaged {
        /// A description of the damage.
        what: String,
        /// The error of the database if it found the damage; `None` if the hub found it in what it read.
        #[source]
        source: Option<Arc<sqlx::Error>>,
    },
    /// The requested moment is before the history that is kept, or before history began.
    #[error("the hub keeps no history before {since}; ask for a later time")]
    HistoryDropped {
        /// The earliest moment of which the states are known.
        since: Timestamp,
    },
    /// The text is not a cursor that this list returned; holds the text.
    #[error("'{0}' is not a cursor of this list; begin again without one")]
    InvalidCursor(String),
    /// A file could not be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The action that failed, as a verb: `create`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: Arc<io::Error>,
    },
    /// The operating system gave no random bytes for a token or for the identity of a run of the hub; holds the reason.
    #[error(
        "the operating system gave no random bytes, which the hub needs for tokens and for its identity: {0}"
    )]
    NoRandomness(String),
    /// The store was closed.
    #[error("cannot use the store of the hub, because it is closed")]
    Closed,
    /// The database failed for another reason.
    #[error("cannot {action} in the store of the hub")]
    Database {
        /// The action that failed, as a verb: `read pairs`.
        action: &'static str,
        /// The error of the database.
        #[source]
        source: Arc<sqlx::Error>,
    },
}

/// Waits for a task that works for the store. Fails if the runtime ended it; continues its panic if it panicked.
pub(crate) async fn finished<T>(task: JoinHandle<T>) -> Result<T, StoreError> {
    task.await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => StoreError::Closed,
    })
}

impl StoreError {
    /// Makes the error for a file that could not be read or written.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::File { action, path, source: Arc::new(source) }
    }

    /// Makes the error for contents that no version of Taffrail writes; `what` describes them.
    pub(crate) fn damaged(what: impl Into<String>) -> StoreError {
        StoreError::Damaged { what: what.into(), source: None }
    }
}
