//! The errors of opening a database file, and the conversion of SQLite's errors to those of the store.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::store::StoreError;

/// SQLite's result code for a damaged database file (<https://sqlite.org/rescode.html>).
const CORRUPT: i32 = 11;

/// SQLite's result code for a write without space left.
const FULL: i32 = 13;

/// SQLite's result code for a file that is not a database.
const NOT_A_DATABASE: i32 = 26;

/// The reason why a hub's database file could not be opened or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another hub has opened the file.
    #[error("a hub uses {}; stop it first", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A newer version of Taffrail wrote the file.
    #[error(
        "a newer version of Taffrail wrote {} (schema {found}; this version knows up to {known}); use that version, or \
         another file",
        path.display()
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The version of its schema.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The file is a database, but not one of Taffrail.
    #[error("{} is the database of another program; use another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged; holds the damage.
    #[error("the file of the hub's store is damaged: {0}")]
    Damaged(String),
    /// A file could not be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The action that failed, as a verb: `create`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
    /// SQLite could not open the file for another reason.
    #[error("cannot open the database file of the hub {}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The error of the database.
        #[source]
        source: sqlx::Error,
    },
}

impl OpenError {
    /// Makes the error for a failure of the database in the file `path`.
    pub(super) fn of(path: &Path, source: sqlx::Error) -> OpenError {
        match code(&source) {
            Some(CORRUPT | NOT_A_DATABASE) => OpenError::Damaged(source.to_string()),
            _ => OpenError::Database { path: path.to_owned(), source },
        }
    }

    /// Makes the error for a file that could not be read or written.
    pub(super) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
        let path = path.to_owned();
        move |source| OpenError::File { action, path, source }
    }
}

/// Makes the error for an `action` (such as `read pairs`) that failed in SQLite: disk full, damaged, closed, or
/// another.
pub(super) fn failed(action: &'static str) -> impl FnOnce(sqlx::Error) -> StoreError {
    move |source| {
        let code = code(&source);
        let source = Arc::new(source);
        match code {
            Some(FULL) => StoreError::DiskFull { source },
            Some(CORRUPT | NOT_A_DATABASE) => {
                StoreError::Damaged { what: format!("cannot {action}"), source: Some(source) }
            }
            _ if matches!(*source, sqlx::Error::PoolClosed) => StoreError::Closed,
            _ => StoreError::Database { action, source },
        }
    }
}

/// Returns SQLite's primary result code; `None` if the error is not one of SQLite.
fn code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    // An extended code has the primary one in its lowest byte.
    Some(code & 0xff)
}

/// Returns the messages of an error and of its causes, outermost first, joined by `: `.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
