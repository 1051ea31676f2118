//! Reads all pairs, for a hub that starts.

use std::num::NonZeroUsize;

use futures::stream::{self, Stream, StreamExt as _};
use sqlx::SqlitePool;
use taffrail_api::report::{DeclaredHalf, ObservedHalf};
use taffrail_apps::{ClusterId, Sync};
use taffrail_status::rollup::Counts;

use super::codes::{status, sync_state, time};
use super::error::failed;
use super::read::Columns;
use super::save::Detail;
use super::texts::Texts;
use crate::store::{PairPage, PairRecord, SavedHalf, StoreError, finished};

/// The number of columns that identify a pair: text ids of cluster, home, namespace and name, and the code of the
/// delivery.
const IDENTITY: usize = 5;

/// The columns of the identity and of the halves that are ids of texts.
const TEXTS: [usize; 13] = [
    0,
    1,
    2,
    3,
    2 + IDENTITY,
    3 + IDENTITY,
    5 + IDENTITY,
    6 + IDENTITY,
    7 + IDENTITY,
    10 + IDENTITY,
    11 + IDENTITY,
    12 + IDENTITY,
    24 + IDENTITY,
];

/// The number of pages that are completed at one time, while the rows of another one are read.
const AHEAD: usize = 2;

/// Reads all pairs with their halves, ordered by their numbers, in pages of `size`.
pub(super) fn read(
    readers: SqlitePool,
    size: NonZeroUsize,
) -> impl Stream<Item = Result<PairPage, StoreError>> {
    let pool = readers.clone();
    let rows = stream::try_unfold(Some(i64::MIN), move |after| {
        let readers = readers.clone();
        async move {
            let Some(after) = after else { return Ok(None) };
            let (rows, last) = read_rows(&readers, after, size).await?;
            Ok(Some((rows, last)))
        }
    });
    let completed = rows.map(move |rows| {
        let readers = pool.clone();
        // A task of its own: it reads and parses while the page before is used.
        let completing = tokio::spawn(async move { complete(&readers, &rows?).await });
        async move { finished(completing).await? }
    });
    completed.buffered(AHEAD)
}

/// Reads the rows of at most `size` pairs with greater numbers than `after`, as one array of JSON, which costs less than
/// many rows. Returns it with the number of the last pair; `None` if no pairs follow.
async fn read_rows(
    readers: &SqlitePool,
    after: i64,
    size: NonZeroUsize,
) -> Result<(String, Option<i64>), StoreError> {
    let limit = i64::try_from(size.get()).unwrap_or(i64::MAX);
    let (rows, last, count): (String, Option<i64>, i64) = sqlx::query_as(
        "SELECT json_group_array(json_array(json_array(cluster, home, namespace, name, delivery, pair, declared_received,
             key, target, sync, desired, attempted, applied, last_success, suspended, source, labels, message,
             observed_received, health, current, in_progress, failed, terminating, not_found, unknown, unconfirmed,
             declared_fingerprint, observed_fingerprint, upstreams),
             detail) ORDER BY pair), max(pair), count(*)
         FROM (SELECT * FROM summaries s JOIN pairs p ON p.id = s.pair LEFT JOIN details USING (pair)
             WHERE s.pair > ?1 ORDER BY s.pair LIMIT ?2)",
    )
    .bind(after)
    .bind(limit)
    .fetch_one(readers)
    .await
    .map_err(failed("read pairs"))?;
    Ok((rows, last.filter(|_| count >= limit)))
}

/// Parses the rows of pairs, and reads their texts.
async fn complete(readers: &SqlitePool, rows: &str) -> Result<PairPage, StoreError> {
    let rows: Vec<(Columns, Option<String>)> = serde_json::from_str(rows)
        .map_err(|error| StoreError::damaged(format!("the rows of pairs have other columns: {error}")))?;
    let mut ids = Vec::new();
    for (row, _) in &rows {
        for column in TEXTS {
            ids.extend(row.maybe(column)?);
        }
    }
    let mut reading = readers.acquire().await.map_err(failed("read pairs"))?;
    let texts = Texts::read(&mut reading, ids).await?;
    drop(reading);
    let mut found = PairPage { pairs: Vec::with_capacity(rows.len()), unreadable: 0 };
    for (row, detail) in &rows {
        match pair_record(row, detail.as_deref(), &texts)? {
            Some(pair) => found.pairs.push(pair),
            None => found.unreadable += 1,
        }
    }
    Ok(found)
}

/// Makes the record of a pair from its row and details. `None` if the JSON in it has a form that this version cannot
/// read.
fn pair_record(row: &Columns, detail: Option<&str>, texts: &Texts) -> Result<Option<PairRecord>, StoreError> {
    let id = row.pair(0, texts)?;
    let detail = detail.map_or(Ok(Detail::default()), serde_json::from_str);
    let Ok(mut detail) = detail else { return Ok(None) };
    let at = |column| IDENTITY + column;
    let text = |column| row.text(at(column), texts).map(|text| text.map(str::to_owned));
    let declared = match row.maybe(at(1))? {
        None => None,
        Some(received) => {
            let source = row.text(at(10), texts)?.map(serde_json::from_str).transpose();
            let labels = row.text(at(11), texts)?.map(serde_json::from_str).transpose();
            let upstreams = row.text(at(24), texts)?.map(serde_json::from_str).transpose();
            let (Ok(source), Ok(labels), Ok(upstreams)) = (source, labels, upstreams) else {
                return Ok(None);
            };
            let exact = detail.last_success.take();
            let sync = Sync {
                state: sync_state(row.number(at(4))?)?,
                desired: text(5)?,
                attempted: text(6)?,
                applied: text(7)?,
                last_success: exact.or(row.maybe(at(8))?.map(time).transpose()?),
            };
            let body = DeclaredHalf {
                key: row.some_text(at(2), texts)?.to_owned(),
                target: text(3)?.map_or_else(|| id.cluster.clone(), ClusterId),
                sync,
                suspended: row.number(at(9))? != 0,
                source,
                labels: labels.unwrap_or_default(),
                message: row.some_text(at(12), texts)?.into(),
                own: detail.own.take(),
                problems: std::mem::take(&mut detail.problems),
                syncs: Vec::new(),
                upstreams,
                not_live: detail.declared_not_live.take(),
                unobserved: Default::default(),
                checks: std::mem::take(&mut detail.checks),
            };
            let fingerprint = row.maybe(at(22))?.map(i64::cast_unsigned);
            Some(SavedHalf { body: Box::new(body), fingerprint, received: time(received)? })
        }
    };
    let observed = match row.maybe(at(13))? {
        None => None,
        Some(received) => {
            let counts = Counts {
                current: row.count(at(15))?,
                in_progress: row.count(at(16))?,
                failed: row.count(at(17))?,
                terminating: row.count(at(18))?,
                not_found: row.count(at(19))?,
                unknown: row.count(at(20))?,
            };
            let body = ObservedHalf {
                health: status(row.number(at(14))?)?,
                worst: detail.worst.take(),
                counts,
                unconfirmed: row.count(at(21))?,
                unmarked: detail.unmarked.take(),
                not_live: detail.observed_not_live.take(),
                unobserved: Default::default(),
                said: false,
            };
            let fingerprint = row.maybe(at(23))?.map(i64::cast_unsigned);
            Some(SavedHalf { body: Box::new(body), fingerprint, received: time(received)? })
        }
    };
    Ok(Some(PairRecord { id, declared, observed }))
}
