//! The schema of the file: its versions, and the steps from each to the next.

use std::path::Path;

use sqlx::SqliteConnection;

use super::error::OpenError;

/// The statements that lead from each version of the schema to the next; version 0 is an empty file. A step that was
/// released never changes.
pub(super) const STEPS: [&str; 4] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
];

/// The SQLite application id of Taffrail's stores, in the header of the file: `Taff` in ASCII.
const APPLICATION: i64 = 0x5461_6666;

/// Checks the structure of the whole file; fails with [`OpenError::Damaged`] if SQLite finds damage.
pub(super) async fn check(connection: &mut SqliteConnection) -> Result<(), OpenError> {
    let found = sqlx::query_scalar::<_, String>("PRAGMA quick_check(1)").fetch_one(connection).await;
    match found {
        Ok(word) if word == "ok" => Ok(()),
        Ok(damage) => Err(OpenError::Damaged(damage)),
        Err(error) => Err(OpenError::of(Path::new(""), error)),
    }
}

/// Returns the version of the schema of the file `path`; 0 for an empty file. Fails if another program or a newer
/// version wrote the file.
pub(super) async fn version(connection: &mut SqliteConnection, path: &Path) -> Result<i64, OpenError> {
    let failed = |error| OpenError::of(path, error);
    let application: i64 =
        sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *connection).await.map_err(failed)?;
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_master")
        .fetch_one(&mut *connection)
        .await
        .map_err(failed)?;
    let version: i64 =
        sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *connection).await.map_err(failed)?;
    let known = STEPS.len() as i64;
    match (application, version) {
        (0, 0) if tables == 0 => Ok(0),
        (APPLICATION, found) if found > known => {
            Err(OpenError::NewerSchema { path: path.to_owned(), found, known })
        }
        (APPLICATION, found) if found > 0 => Ok(found),
        _ => Err(OpenError::Foreign { path: path.to_owned() }),
    }
}

/// Upgrades the schema of the file `path` to the last version, in one transaction.
pub(super) async fn upgrade(
    connection: &mut SqliteConnection,
    path: &Path,
    steps: &[&'static str],
) -> Result<(), OpenError> {
    run(connection, path, "BEGIN IMMEDIATE").await?;
    let done = match take_steps(connection, path, steps).await {
        Ok(()) => run(connection, path, "COMMIT").await,
        Err(error) => Err(error),
    };
    if done.is_err() {
        // An error may have ended the transaction already; the first error is the one to tell.
        let _ = run(connection, path, "ROLLBACK").await;
    }
    done
}

async fn take_steps(
    connection: &mut SqliteConnection,
    path: &Path,
    steps: &[&'static str],
) -> Result<(), OpenError> {
    let found = version(connection, path).await?;
    let first = usize::try_from(found).unwrap_or_default();
    if first >= steps.len() {
        return Ok(());
    }
    for step in steps.iter().skip(first) {
        run(connection, path, step).await?;
    }
    let marks = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {}", steps.len());
    let marked = sqlx::raw_sql(sqlx::AssertSqlSafe(marks)).execute(connection).await;
    marked.map(drop).map_err(|error| OpenError::of(path, error))
}

async fn run(connection: &mut SqliteConnection, path: &Path, sql: &'static str) -> Result<(), OpenError> {
    sqlx::raw_sql(sql).execute(connection).await.map(drop).map_err(|error| OpenError::of(path, error))
}
