//! Drops old history.

use jiff::Timestamp;
use sqlx::SqliteConnection;

use super::codes::{day, day_start, micros};
use super::error::failed;
use super::operations;
use crate::store::{DroppedHistory, StoreError};

/// Returns the days with history that ended at `since` or before, the earliest first.
pub(super) async fn days_before(
    connection: &mut SqliteConnection,
    since: Timestamp,
) -> Result<Vec<i64>, StoreError> {
    sqlx::query_scalar("SELECT day FROM days WHERE day < ?1 ORDER BY day")
        .bind(day(micros(since)))
        .fetch_all(connection)
        .await
        .map_err(failed("read the days of history"))
}

/// Drops the transitions and syncs of `day`, which must be the earliest one, and keeps the state of each pair at its
/// end.
pub(super) async fn drop_day(
    connection: &mut SqliteConnection,
    day: i64,
) -> Result<DroppedHistory, StoreError> {
    // SQLite takes the other columns from the row with the greatest time.
    run(
        connection,
        "INSERT INTO bases (pair, at, health, effective, sync, problem)
         SELECT pair, max(at), health, effective, sync, problem FROM transitions WHERE day = ?1 GROUP BY pair
         ON CONFLICT DO UPDATE SET at = excluded.at, health = excluded.health, effective = excluded.effective,
         sync = excluded.sync, problem = excluded.problem",
        day,
    )
    .await?;
    let transitions = run(connection, "DELETE FROM transitions WHERE day = ?1", day).await?;
    let syncs = run(connection, "DELETE FROM syncs WHERE day = ?1", day).await?;
    run(connection, "DELETE FROM days WHERE day = ?1", day).await?;
    since(connection, day_start(day + 1)).await?;
    Ok(DroppedHistory { days: 1, transitions, syncs })
}

/// Saves that history before the day of `time` was dropped, and removes the operations before it, and pairs and texts that nothing refers to any
/// more.
pub(super) async fn finish(connection: &mut SqliteConnection, time: Timestamp) -> Result<(), StoreError> {
    let begin = day_start(day(micros(time)));
    since(connection, begin).await?;
    operations::drop_before(connection, begin).await?;
    for statement in [
        // A pair that was gone at the end of the day has no state.
        "DELETE FROM bases WHERE health IS NULL",
        "DELETE FROM pairs WHERE NOT EXISTS (SELECT 1 FROM summaries WHERE pair = id)
         AND NOT EXISTS (SELECT 1 FROM bases WHERE pair = id)
         AND id NOT IN (SELECT pair FROM transitions UNION SELECT pair FROM syncs)",
        "DELETE FROM texts WHERE id NOT IN (
             SELECT cluster FROM pairs UNION SELECT home FROM pairs UNION SELECT namespace FROM pairs
             UNION SELECT name FROM pairs
             UNION SELECT key FROM summaries WHERE key IS NOT NULL
             UNION SELECT target FROM summaries WHERE target IS NOT NULL
             UNION SELECT desired FROM summaries WHERE desired IS NOT NULL
             UNION SELECT attempted FROM summaries WHERE attempted IS NOT NULL
             UNION SELECT applied FROM summaries WHERE applied IS NOT NULL
             UNION SELECT source FROM summaries WHERE source IS NOT NULL
             UNION SELECT labels FROM summaries WHERE labels IS NOT NULL
             UNION SELECT message FROM summaries WHERE message IS NOT NULL
             UNION SELECT upstreams FROM summaries WHERE upstreams IS NOT NULL
             UNION SELECT before_problem FROM transitions WHERE before_problem IS NOT NULL
             UNION SELECT problem FROM transitions WHERE problem IS NOT NULL
             UNION SELECT problem FROM bases WHERE problem IS NOT NULL
             UNION SELECT revision FROM syncs UNION SELECT message FROM syncs)",
    ] {
        let done = sqlx::query(statement).execute(&mut *connection).await;
        done.map_err(failed("drop history"))?;
    }
    Ok(())
}

/// Saves that the history before `time` was dropped.
async fn since(connection: &mut SqliteConnection, time: i64) -> Result<(), StoreError> {
    run(
        connection,
        "INSERT INTO facts (name, value) VALUES ('history_since', ?1)
         ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
        time,
    )
    .await
    .map(drop)
}

async fn run(
    connection: &mut SqliteConnection,
    statement: &'static str,
    number: i64,
) -> Result<u64, StoreError> {
    let done = sqlx::query(statement).bind(number).execute(connection).await;
    done.map(|done| done.rows_affected()).map_err(failed("drop history"))
}
