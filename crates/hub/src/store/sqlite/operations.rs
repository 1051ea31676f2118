//! Operations of users in the file.

use sqlx::SqliteConnection;
use taffrail_api::operations::OperationRecord;
use taffrail_api::report::AppId;

use super::codes::{delivery_code, micros};
use super::error::failed;
use super::texts::{encode, saved_form};
use crate::store::{OperationQuery, SavedOperation, StoreError};

/// Saves an operation; one with the same identifier is replaced.
pub(super) async fn save(
    connection: &mut SqliteConnection,
    operation: &SavedOperation,
) -> Result<(), StoreError> {
    let SavedOperation { record, apps } = operation;
    let number: i64 = sqlx::query_scalar(
        "INSERT INTO operations (name, began, ended, record) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (name) DO UPDATE SET ended = excluded.ended, record = excluded.record RETURNING id",
    )
    .bind(record.id.as_str())
    .bind(micros(record.began))
    .bind(record.ended.map(micros))
    .bind(encode(record)?)
    .fetch_one(&mut *connection)
    .await
    .map_err(failed("save an operation"))?;
    for (place, app) in apps.iter().enumerate() {
        sqlx::query(
            "INSERT OR IGNORE INTO operation_apps (home, delivery, namespace, name, operation, item)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .bind(saved_form(&app.home.0).into_owned())
        .bind(delivery_code(app.app.delivery))
        .bind(saved_form(&app.app.namespace).into_owned())
        .bind(saved_form(&app.app.name).into_owned())
        .bind(number)
        .bind(i64::try_from(place).unwrap_or(i64::MAX))
        .execute(&mut *connection)
        .await
        .map_err(failed("save an operation"))?;
    }
    Ok(())
}

/// Reads the operations that `query` selects, the latest first.
pub(super) async fn list(
    connection: &mut SqliteConnection,
    query: &OperationQuery,
) -> Result<Vec<OperationRecord>, StoreError> {
    let (condition, name) = match query {
        OperationQuery::Id(id) => ("name = ?1", id.as_str()),
        OperationQuery::Running => ("ended IS NULL AND ?1 = ''", ""),
        OperationQuery::Latest(_) => ("?1 = ''", ""),
    };
    let limit = match query {
        OperationQuery::Latest(limit) => i64::try_from(*limit).unwrap_or(i64::MAX),
        OperationQuery::Id(_) | OperationQuery::Running => i64::MAX,
    };
    let text =
        format!("SELECT record FROM operations WHERE {condition} ORDER BY began DESC, id DESC LIMIT ?2");
    let rows: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(text))
        .bind(name)
        .bind(limit)
        .fetch_all(connection)
        .await
        .map_err(failed("read operations"))?;
    rows.iter().map(|row| record(row)).collect()
}

/// The number of an operation, the time at which it began in microseconds, and its record with the one item of an app.
type OfApp = (i64, i64, OperationRecord);

/// Reads the operations on an app that began from `from` on and come after the position `before`, the latest first, at
/// most `limit`.
pub(super) async fn of_app(
    connection: &mut SqliteConnection,
    app: &AppId,
    from: i64,
    before: (i64, i64),
    limit: i64,
) -> Result<Vec<OfApp>, StoreError> {
    let rows: Vec<(i64, i64, i64, String)> = sqlx::query_as(
        "SELECT operations.id, began, item, record FROM operation_apps JOIN operations ON operations.id = operation
         WHERE home = ?1 AND delivery = ?2 AND namespace = ?3 AND operation_apps.name = ?4
         AND began >= ?5 AND (began, operations.id) < (?6, ?7) ORDER BY began DESC, operations.id DESC LIMIT ?8",
    )
    .bind(saved_form(&app.home.0).into_owned())
    .bind(delivery_code(app.app.delivery))
    .bind(saved_form(&app.app.namespace).into_owned())
    .bind(saved_form(&app.app.name).into_owned())
    .bind(from)
    .bind(before.0)
    .bind(before.1)
    .bind(limit)
    .fetch_all(connection)
    .await
    .map_err(failed("read operations"))?;
    let of_app = |(number, began, item, text): (i64, i64, i64, String)| {
        let mut record = record(&text)?;
        let item = usize::try_from(item).unwrap_or(usize::MAX);
        let own = record.items.drain(..).nth(item);
        record.items = own.into_iter().collect();
        Ok((number, began, record))
    };
    rows.into_iter().map(of_app).collect()
}

/// Removes the operations that ended and began before `time`, in microseconds.
pub(super) async fn drop_before(connection: &mut SqliteConnection, time: i64) -> Result<(), StoreError> {
    for statement in [
        "DELETE FROM operation_apps WHERE operation IN
         (SELECT id FROM operations WHERE began < ?1 AND ended IS NOT NULL)",
        "DELETE FROM operations WHERE began < ?1 AND ended IS NOT NULL",
    ] {
        let done = sqlx::query(statement).bind(time).execute(&mut *connection).await;
        done.map_err(failed("drop history"))?;
    }
    Ok(())
}

fn record(text: &str) -> Result<OperationRecord, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::damaged(format!("the record of an operation cannot be read: {error}")))
}
