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
    let head = OperationRecord { items: Vec::new(), ..record.clone() };
    let number: i64 = sqlx::query_scalar(
        "INSERT INTO operations (name, began, ended, record) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (name) DO UPDATE SET ended = excluded.ended, record = excluded.record RETURNING id",
    )
    .bind(record.id.as_str())
    .bind(micros(record.began))
    .bind(record.ended.map(micros))
    .bind(encode(&head)?)
    .fetch_one(&mut *connection)
    .await
    .map_err(failed("save an operation"))?;
    for (place, item) in record.items.iter().enumerate() {
        let app = apps.get(place).and_then(Option::as_ref);
        let text = |of: fn(&AppId) -> &str| app.map(|app| saved_form(of(app)).into_owned());
        sqlx::query(
            "INSERT INTO operation_items (operation, place, home, delivery, namespace, name, item)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET item = excluded.item",
        )
        .bind(number)
        .bind(i64::try_from(place).unwrap_or(i64::MAX))
        .bind(text(|app| &app.home.0))
        .bind(app.map(|app| delivery_code(app.app.delivery)))
        .bind(text(|app| &app.app.namespace))
        .bind(text(|app| &app.app.name))
        .bind(encode(item)?)
        .execute(&mut *connection)
        .await
        .map_err(failed("save an operation"))?;
    }
    Ok(())
}

/// Reads the operations that `query` selects, the latest first. Leaves out those that cannot be read, such as what a
/// later release has written.
pub(super) async fn list(
    connection: &mut SqliteConnection,
    query: &OperationQuery,
) -> Result<Vec<OperationRecord>, StoreError> {
    let (condition, name, limit) = match query {
        OperationQuery::Id(id) => ("name = ?1", id.as_str(), i64::MAX),
        OperationQuery::Running => ("ended IS NULL AND ?1 = ''", "", i64::MAX),
        OperationQuery::Latest(limit) => ("?1 = ''", "", i64::try_from(*limit).unwrap_or(i64::MAX)),
    };
    let text =
        format!("SELECT id, record FROM operations WHERE {condition} ORDER BY began DESC, id DESC LIMIT ?2");
    let heads: Vec<(i64, String)> = sqlx::query_as(sqlx::AssertSqlSafe(text))
        .bind(name)
        .bind(limit)
        .fetch_all(&mut *connection)
        .await
        .map_err(failed("read operations"))?;
    let mut records = Vec::new();
    for (number, head) in heads {
        let items: Vec<String> =
            sqlx::query_scalar("SELECT item FROM operation_items WHERE operation = ?1 ORDER BY place")
                .bind(number)
                .fetch_all(&mut *connection)
                .await
                .map_err(failed("read operations"))?;
        records.extend(record(&head, &items));
    }
    Ok(records)
}

/// The number of an operation, the time at which it began in microseconds, and its record with the one item of an app.
type OfApp = (i64, i64, OperationRecord);

/// Reads the operations on an app that began from `from` on and come after the position `before`, the latest first, at
/// most `limit`. Leaves out those that cannot be read.
pub(super) async fn of_app(
    connection: &mut SqliteConnection,
    app: &AppId,
    from: i64,
    before: (i64, i64),
    limit: i64,
) -> Result<Vec<OfApp>, StoreError> {
    let rows: Vec<(i64, i64, String, String)> = sqlx::query_as(
        "SELECT operations.id, began, record, item FROM operation_items JOIN operations ON operations.id = operation
         WHERE home = ?1 AND delivery = ?2 AND namespace = ?3 AND operation_items.name = ?4
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
    let of_app = |(number, began, head, item): (i64, i64, String, String)| {
        Some((number, began, record(&head, &[item])?))
    };
    Ok(rows.into_iter().filter_map(of_app).collect())
}

/// Removes the operations that ended and began before `time`, in microseconds.
pub(super) async fn drop_before(connection: &mut SqliteConnection, time: i64) -> Result<(), StoreError> {
    for statement in [
        "DELETE FROM operation_items WHERE operation IN
         (SELECT id FROM operations WHERE began < ?1 AND ended IS NOT NULL)",
        "DELETE FROM operations WHERE began < ?1 AND ended IS NOT NULL",
    ] {
        let done = sqlx::query(statement).bind(time).execute(&mut *connection).await;
        done.map_err(failed("drop history"))?;
    }
    Ok(())
}

/// Puts a record together; `None` if it cannot be read.
fn record(head: &str, items: &[String]) -> Option<OperationRecord> {
    let head: OperationRecord = serde_json::from_str(head).ok()?;
    let items = items.iter().map(|item| serde_json::from_str(item)).collect::<Result<_, _>>().ok()?;
    Some(OperationRecord { items, ..head })
}
