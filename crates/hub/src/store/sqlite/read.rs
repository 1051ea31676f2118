//! Reads of clusters and history.

use std::collections::BTreeMap;
use std::ops::Range;

use jiff::Timestamp;
use serde::Deserialize;
use sqlx::SqliteConnection;
use taffrail_api::AppName;
use taffrail_api::report::AppId;
use taffrail_apps::ClusterId;

use super::codes::{day, delivery, delivery_code, micros, status, sync_result, sync_state, time};
use super::error::failed;
use super::operations;
use super::texts::{self, Texts};
use crate::store::{
    ClusterRecord, Cursor, HistoryEntry, HistoryRange, Page, PageQuery, PairId, PairState, PairTransition,
    StoreError, SyncRecord,
};

/// The columns of a row, which SQLite returns as one JSON array.
#[derive(Deserialize)]
pub(super) struct Columns(Vec<Option<i64>>);

impl Columns {
    pub(super) fn all(rows: Vec<String>) -> Result<Vec<Columns>, StoreError> {
        let numbers = |row: String| serde_json::from_str(&row).map(Columns);
        let rows: Result<_, _> = rows.into_iter().map(numbers).collect();
        rows.map_err(|error| StoreError::damaged(format!("a row is not made of numbers: {error}")))
    }

    pub(super) fn number(&self, column: usize) -> Result<i64, StoreError> {
        self.maybe(column)?
            .ok_or_else(|| StoreError::damaged(format!("a row has no value in column {column}")))
    }

    pub(super) fn maybe(&self, column: usize) -> Result<Option<i64>, StoreError> {
        let found = self.0.get(column).copied();
        found.ok_or_else(|| StoreError::damaged(format!("a row has no column {column}")))
    }

    pub(super) fn count(&self, column: usize) -> Result<usize, StoreError> {
        let number = self.number(column)?;
        usize::try_from(number)
            .map_err(|_| StoreError::damaged(format!("a row has {number} in place of a count")))
    }

    pub(super) fn text<'t>(&self, column: usize, texts: &'t Texts) -> Result<Option<&'t str>, StoreError> {
        self.maybe(column)?.map(|id| texts.get(id)).transpose()
    }

    pub(super) fn some_text<'t>(&self, column: usize, texts: &'t Texts) -> Result<&'t str, StoreError> {
        texts.get(self.number(column)?)
    }

    /// Reads the identity of a pair from the columns from `first` on.
    pub(super) fn pair(&self, first: usize, texts: &Texts) -> Result<PairId, StoreError> {
        let text = |column| self.some_text(first + column, texts).map(str::to_owned);
        let app =
            AppName { delivery: delivery(self.number(first + 4)?)?, namespace: text(2)?, name: text(3)? };
        Ok(PairId { cluster: ClusterId(text(0)?), app: AppId { home: ClusterId(text(1)?), app } })
    }

    /// Reads a state from the four columns from `first` on: health, effective status, sync, problem; `None` if the
    /// first of them is null.
    pub(super) fn state(&self, first: usize, texts: &Texts) -> Result<Option<PairState>, StoreError> {
        let Some(health) = self.maybe(first)? else { return Ok(None) };
        Ok(Some(PairState {
            health: status(health)?,
            effective: status(self.number(first + 1)?)?,
            sync: sync_state(self.number(first + 2)?)?,
            problem: self.text(first + 3, texts)?.map(str::to_owned),
        }))
    }
}

/// Reads the attributes of all clusters.
pub(super) async fn clusters(connection: &mut SqliteConnection) -> Result<Vec<ClusterRecord>, StoreError> {
    let rows: Vec<(String, String, String, String, Option<i64>)> =
        sqlx::query_as("SELECT id, name, aliases, labels, heard FROM clusters ORDER BY id")
            .fetch_all(&mut *connection)
            .await
            .map_err(failed("read clusters"))?;
    let epochs: Vec<(String, String, i64)> = sqlx::query_as("SELECT cluster, source, epoch FROM epochs")
        .fetch_all(&mut *connection)
        .await
        .map_err(failed("read epochs"))?;
    let mut of_cluster: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for (cluster, source, epoch) in epochs {
        let epoch = u64::try_from(epoch)
            .map_err(|_| StoreError::damaged("the saved epoch of a stream is negative"))?;
        of_cluster.entry(cluster).or_default().insert(source, epoch);
    }
    let record = |(id, name, aliases, labels, heard): (String, String, String, String, Option<i64>)| {
        let damage = || StoreError::damaged(format!("the attributes of cluster {id} cannot be read"));
        Ok(ClusterRecord {
            epochs: of_cluster.remove(&id).unwrap_or_default(),
            name,
            aliases: serde_json::from_str(&aliases).map_err(|_| damage())?,
            labels: serde_json::from_str(&labels).map_err(|_| damage())?,
            heard: heard.map(time).transpose()?,
            id: ClusterId(id),
        })
    };
    rows.into_iter().map(record).collect()
}

/// Returns the id of a pair; `None` if the database has no pair of this identity.
async fn pair_number(connection: &mut SqliteConnection, pair: &PairId) -> Result<Option<i64>, StoreError> {
    let PairId { cluster, app } = pair;
    let mut found = sqlx::query_scalar(
        "SELECT id FROM pairs WHERE delivery = ?1
         AND cluster = (SELECT id FROM texts WHERE hash = ?2 AND text = ?3)
         AND home = (SELECT id FROM texts WHERE hash = ?4 AND text = ?5)
         AND namespace = (SELECT id FROM texts WHERE hash = ?6 AND text = ?7)
         AND name = (SELECT id FROM texts WHERE hash = ?8 AND text = ?9)",
    )
    .bind(delivery_code(app.app.delivery));
    for text in [&cluster.0, &app.home.0, &app.app.namespace, &app.app.name] {
        let text = texts::saved_form(text);
        found = found.bind(texts::hash(&text)).bind(text.into_owned());
    }
    found.fetch_optional(connection).await.map_err(failed("look up a pair"))
}

/// The position of an entry in a history: time in microseconds, then [`OPERATION`], [`TRANSITION`] or [`SYNC`], then the
/// number of the operation or the text id of the revision. Greater positions come first.
type HistoryPosition = (i64, i64, i64);

/// The part of a [`HistoryPosition`] for a sync.
const SYNC: i64 = 0;
/// The part of a [`HistoryPosition`] for a transition.
const TRANSITION: i64 = 1;
/// The part of a [`HistoryPosition`] for an operation.
const OPERATION: i64 = 2;

/// Reads a page of the transitions and syncs of a pair and of the operations on its app in `range` (without its end),
/// the latest first.
pub(super) async fn history(
    connection: &mut SqliteConnection,
    pair: &PairId,
    range: Range<Timestamp>,
    page: &PageQuery,
) -> Result<Page<HistoryEntry>, StoreError> {
    let (from, to) = (micros(range.start), micros(range.end));
    let after = page.after.as_ref().map(place).transpose()?.unwrap_or((to, SYNC, i64::MIN));
    let after = after.min((to, SYNC, i64::MIN));
    let limit = limit(page).saturating_add(1);
    let (transitions, syncs) = match pair_number(connection, pair).await? {
        None => (Vec::new(), Vec::new()),
        Some(pair) => {
            let query = HistoryQuery { pair, from, after, limit };
            (query.transitions(connection).await?, query.syncs(connection).await?)
        }
    };
    let before = if after.1 == OPERATION { (after.0, after.2) } else { (after.0, i64::MIN) };
    let operations = operations::of_app(connection, &pair.app, from, before, limit).await?;
    let mut ids = Vec::new();
    for row in &transitions {
        for column in [4, 8] {
            ids.extend(row.maybe(column)?);
        }
    }
    for row in &syncs {
        ids.extend([row.number(1)?, row.number(4)?]);
    }
    let texts = Texts::read(connection, ids).await?;
    let mut entries: Vec<(HistoryPosition, HistoryEntry)> =
        Vec::with_capacity(transitions.len() + syncs.len() + operations.len());
    for row in &transitions {
        let at = row.number(0)?;
        let (before, after) = (row.state(1, &texts)?, row.state(5, &texts)?);
        let transition = PairTransition { pair: pair.clone(), at: time(at)?, before, after };
        entries.push(((at, TRANSITION, 0), HistoryEntry::Transition(transition)));
    }
    for row in &syncs {
        let (began, revision) = (row.number(0)?, row.number(1)?);
        let sync = SyncRecord {
            pair: pair.clone(),
            revision: texts.get(revision)?.to_owned(),
            began: time(began)?,
            ended: row.maybe(2)?.map(time).transpose()?,
            result: sync_result(row.number(3)?)?,
            message: row.some_text(4, &texts)?.to_owned(),
        };
        entries.push(((began, SYNC, revision), HistoryEntry::Sync(sync)));
    }
    for (number, began, record) in operations {
        entries.push(((began, OPERATION, number), HistoryEntry::Operation(Box::new(record))));
    }
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.0));
    let is_last = entries.len() <= page.limit.get();
    entries.truncate(page.limit.get());
    let next = entries.last().filter(|_| !is_last).map(|(place, _)| cursor(*place));
    Ok(Page { items: entries.into_iter().map(|(_, entry)| entry).collect(), next })
}

/// The pair, range and position of a page of history to read.
struct HistoryQuery {
    pair: i64,
    from: i64,
    after: HistoryPosition,
    limit: i64,
}

impl HistoryQuery {
    async fn transitions(&self, connection: &mut SqliteConnection) -> Result<Vec<Columns>, StoreError> {
        let rows = sqlx::query_scalar(
            "SELECT json_array(at, before_health, before_effective, before_sync, before_problem, health, effective, sync,
                 problem)
             FROM transitions WHERE day IN (SELECT day FROM days WHERE day BETWEEN ?1 AND ?2)
             AND pair = ?3 AND at >= ?4 AND at < ?5 ORDER BY at DESC LIMIT ?6",
        )
        .bind(day(self.from))
        .bind(day(self.after.0))
        .bind(self.pair)
        .bind(self.from)
        // The transition of the moment of an operation comes after it.
        .bind(self.after.0.saturating_add(i64::from(self.after.1 == OPERATION)))
        .bind(self.limit)
        .fetch_all(connection)
        .await;
        Columns::all(rows.map_err(failed("read transitions"))?)
    }

    async fn syncs(&self, connection: &mut SqliteConnection) -> Result<Vec<Columns>, StoreError> {
        let (at, kind, revision) = self.after;
        // All syncs of the moment of a transition or an operation come after it.
        let revision = if kind == SYNC { revision } else { i64::MAX };
        let rows = sqlx::query_scalar(
            "SELECT json_array(began, revision, ended, result, message) FROM syncs
             WHERE day IN (SELECT day FROM days WHERE day BETWEEN ?1 AND ?2)
             AND pair = ?3 AND began >= ?4 AND (began, revision) < (?5, ?6)
             ORDER BY began DESC, revision DESC LIMIT ?7",
        )
        .bind(day(self.from))
        .bind(day(at))
        .bind(self.pair)
        .bind(self.from)
        .bind(at)
        .bind(revision)
        .bind(self.limit)
        .fetch_all(connection)
        .await;
        Columns::all(rows.map_err(failed("read syncs"))?)
    }
}

fn cursor((at, kind, revision): HistoryPosition) -> Cursor {
    Cursor(format!("{:x}-{kind}-{revision}", at.cast_unsigned()))
}

fn place(cursor: &Cursor) -> Result<HistoryPosition, StoreError> {
    let invalid = || StoreError::InvalidCursor(cursor.0.clone());
    let mut parts = cursor.0.splitn(3, '-');
    let mut next = || parts.next().ok_or_else(invalid);
    let at = u64::from_str_radix(next()?, 16).map_err(|_| invalid())?.cast_signed();
    let kind = next()?.parse().map_err(|_| invalid())?;
    let revision = next()?.parse().map_err(|_| invalid())?;
    if (SYNC..=OPERATION).contains(&kind) { Ok((at, kind, revision)) } else { Err(invalid()) }
}

/// Returns the range of time of which the states of all pairs are known.
pub(super) async fn recorded(connection: &mut SqliteConnection) -> Result<HistoryRange, StoreError> {
    let facts: Vec<(String, i64)> = sqlx::query_as("SELECT name, value FROM facts")
        .fetch_all(&mut *connection)
        .await
        .map_err(failed("read the range of history"))?;
    let fact = |wanted: &str| {
        let found = facts.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| time(*value)).transpose()
    };
    // What was dropped last may be later than the beginning of all.
    let since = fact("history_since")?.max(fact("recorded_since")?);
    Ok(HistoryRange { since, until: fact("recorded_until")? })
}

/// Fails with [`StoreError::HistoryDropped`] if the moment `at` (microseconds) is before the kept history; succeeds if
/// no history was recorded yet.
async fn check_kept(connection: &mut SqliteConnection, at: i64) -> Result<(), StoreError> {
    match recorded(connection).await?.since {
        Some(since) if at < micros(since) => Err(StoreError::HistoryDropped { since }),
        _ => Ok(()),
    }
}

/// Reads the state of a pair at a moment: the one after its last transition until then; `None` if the pair did not
/// exist, or nothing is recorded of it until then. Fails if the history of that moment is not kept.
pub(super) async fn state_at(
    connection: &mut SqliteConnection,
    pair: &PairId,
    at: Timestamp,
) -> Result<Option<PairState>, StoreError> {
    let at = micros(at);
    check_kept(connection, at).await?;
    let Some(number) = pair_number(connection, pair).await? else { return Ok(None) };
    let found: Option<String> = sqlx::query_scalar(
        "SELECT json_array(health, effective, sync, problem) FROM transitions
         WHERE day IN (SELECT day FROM days WHERE day <= ?1) AND pair = ?2 AND at <= ?3 ORDER BY at DESC LIMIT 1",
    )
    .bind(day(at))
    .bind(number)
    .bind(at)
    .fetch_optional(&mut *connection)
    .await
    .map_err(failed("read transitions"))?;
    let found = match found {
        Some(found) => Some(found),
        None => sqlx::query_scalar(
            "SELECT json_array(health, effective, sync, problem) FROM bases WHERE pair = ?1",
        )
        .bind(number)
        .fetch_optional(&mut *connection)
        .await
        .map_err(failed("read states"))?,
    };
    let Some(found) = Columns::all(found.into_iter().collect())?.pop() else { return Ok(None) };
    let texts = Texts::read(connection, found.maybe(3)?.into_iter().collect()).await?;
    found.state(0, &texts)
}

/// Reads the states of a page of pairs at a moment. The cursor is the id of a pair.
pub(super) async fn states_at(
    connection: &mut SqliteConnection,
    at: Timestamp,
    page: &PageQuery,
) -> Result<Page<(PairId, PairState)>, StoreError> {
    let at = micros(at);
    check_kept(connection, at).await?;
    let first = number_of(page)?;
    let identities = sqlx::query_scalar(
        "SELECT json_array(id, cluster, home, namespace, name, delivery) FROM pairs WHERE id > ?1 ORDER BY id LIMIT ?2",
    )
    .bind(first)
    .bind(limit(page))
    .fetch_all(&mut *connection)
    .await
    .map_err(failed("read pairs"))?;
    let identities = Columns::all(identities)?;
    let Some(last) = identities.last() else { return Ok(Page { items: Vec::new(), next: None }) };
    let last = last.number(0)?;
    // SQLite takes the other columns from the row with the greatest time.
    let states: Vec<(String, i64)> = sqlx::query_as(
        "SELECT json_array(pair, health, effective, sync, problem), max(at) FROM (
             SELECT pair, at, health, effective, sync, problem FROM bases WHERE pair > ?1 AND pair <= ?2
             UNION ALL
             SELECT pair, at, health, effective, sync, problem FROM transitions
             WHERE day IN (SELECT day FROM days WHERE day <= ?3) AND pair > ?1 AND pair <= ?2 AND at <= ?4
         ) GROUP BY pair",
    )
    .bind(first)
    .bind(last)
    .bind(day(at))
    .bind(at)
    .fetch_all(&mut *connection)
    .await
    .map_err(failed("read states"))?;
    let mut ids = Vec::new();
    let mut by_pair = BTreeMap::new();
    for row in Columns::all(states.into_iter().map(|(state, _)| state).collect())? {
        ids.extend(row.maybe(4)?);
        by_pair.insert(row.number(0)?, row);
    }
    for row in &identities {
        for column in 1..=4 {
            ids.push(row.number(column)?);
        }
    }
    let texts = Texts::read(connection, ids).await?;
    let mut items = Vec::with_capacity(by_pair.len());
    for row in &identities {
        let Some(state) = by_pair.get(&row.number(0)?) else { continue };
        if let Some(state) = state.state(1, &texts)? {
            items.push((row.pair(1, &texts)?, state));
        }
    }
    let next = (identities.len() >= page.limit.get()).then(|| Cursor(last.to_string()));
    Ok(Page { items, next })
}

fn limit(page: &PageQuery) -> i64 {
    i64::try_from(page.limit.get()).unwrap_or(i64::MAX)
}

/// Returns the id of the pair after which the page begins: that of the cursor, or the least one for the first page.
fn number_of(page: &PageQuery) -> Result<i64, StoreError> {
    let Some(cursor) = &page.after else { return Ok(i64::MIN) };
    cursor.0.parse().map_err(|_| StoreError::InvalidCursor(cursor.0.clone()))
}
