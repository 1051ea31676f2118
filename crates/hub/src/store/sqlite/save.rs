//! Saves a group of batches in one transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use taffrail_api::report::{DeclaredHalf, NotLive, ObservedHalf, Speaker};
use taffrail_apps::{ClusterId, DeclaredCheck, Problem};

use super::agents;
use super::codes::{day, delivery_code, json_rows, micros, result_code, status_code, sync_code};
use super::error::failed;
use super::texts::{TextIds, encode, saved_form};
use crate::store::{
    Batch, ClusterRecord, PairId, PairRecord, PairState, PairTransition, SpoolRecord, StoreError, SyncRecord,
};

/// The greatest number of rows in one statement; more are saved by several.
const MAX_ROWS: usize = 10_000;

/// The greatest number of rows of details in one statement: each has up to about 125 KB, and a value of SQLite 1 GB.
const MAX_DETAILS: usize = 2_000;

/// The columns of a row of `summaries`, in its order.
pub(super) type Summary = [Option<i64>; 25];

/// The facts about a pair that its summary does not hold, such as its problems; most pairs that are well have none.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Detail {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) own: Option<Box<Speaker>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) problems: Vec<Problem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) declared_not_live: Option<NotLive>,
    /// The time of the last successful sync if it is not a whole number of microseconds; else `None`, as the row has
    /// the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_success: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) worst: Option<Box<Speaker>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unmarked: Option<Box<Problem>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) observed_not_live: Option<NotLive>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) checks: Vec<DeclaredCheck>,
}

impl Detail {
    fn of(pair: &PairRecord) -> Detail {
        let declared = pair.declared.as_ref().map(|half| &*half.body);
        let observed = pair.observed.as_ref().map(|half| &*half.body);
        let is_inexact = |time: &Timestamp| time.subsec_nanosecond() % 1_000 != 0;
        Detail {
            own: declared.and_then(|half| half.own.clone()),
            problems: declared.map(|half| half.problems.clone()).unwrap_or_default(),
            declared_not_live: declared.and_then(|half| half.not_live),
            last_success: declared.and_then(|half| half.sync.last_success).filter(is_inexact),
            worst: observed.and_then(|half| half.worst.clone()),
            unmarked: observed.and_then(|half| half.unmarked.clone()),
            observed_not_live: observed.and_then(|half| half.not_live),
            checks: declared.map(|half| half.checks.clone()).unwrap_or_default(),
        }
    }
}

/// The combined changes of several batches, of which the last one decides about each pair and cluster.
#[derive(Debug, Default)]
pub(super) struct MergedBatches<'b> {
    /// The last record of each pair; `None` if it is gone.
    pairs: HashMap<&'b PairId, Option<&'b PairRecord>>,
    forgotten: BTreeSet<&'b ClusterId>,
    clusters: BTreeMap<&'b ClusterId, ClusterRecord>,
    transitions: Vec<&'b PairTransition>,
    syncs: Vec<&'b SyncRecord>,
    spools: Vec<&'b SpoolRecord>,
    recorded: Option<Timestamp>,
}

impl<'b> MergedBatches<'b> {
    /// Adds the changes of a batch; they replace earlier ones of the same pair or cluster, but no epoch becomes
    /// smaller, unless the cluster was forgotten.
    pub(super) fn add(&mut self, batch: &'b Batch) {
        let Batch { pairs, gone, clusters, forgotten, transitions, syncs, spools, recorded } = batch;
        self.pairs.extend(gone.iter().map(|id| (id, None)));
        self.pairs.extend(pairs.iter().map(|pair| (&pair.id, Some(pair))));
        for id in forgotten {
            self.clusters.remove(id);
            self.forgotten.insert(id);
        }
        for cluster in clusters {
            let mut merged = cluster.clone();
            let earlier = self.clusters.remove(&cluster.id).map(|earlier| earlier.epochs);
            for (source, epoch) in earlier.into_iter().flatten() {
                let kept = merged.epochs.entry(source).or_default();
                *kept = epoch.max(*kept);
            }
            self.clusters.insert(&cluster.id, merged);
        }
        self.transitions.extend(transitions);
        self.syncs.extend(syncs);
        self.spools.extend(spools);
        self.recorded = self.recorded.max(*recorded);
    }

    /// Saves all changes in the transaction of `connection`.
    pub(super) async fn save(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        self.save_clusters(connection).await?;
        let ids = self.pair_ids();
        let mut texts = TextIds::default();
        // The first pass only notes the texts.
        ids.iter().for_each(|id| {
            pair_row(id, &mut texts);
        });
        self.changes(&mut texts, &HashMap::new(), i64::MIN)?;
        texts.resolve(connection).await?;
        let rows: Vec<_> = ids.iter().map(|id| pair_row(id, &mut texts)).collect();
        let pairs = save_pairs(connection, &ids, &rows).await?;
        let since: Option<i64> = sqlx::query_scalar("SELECT value FROM facts WHERE name = 'history_since'")
            .fetch_optional(&mut *connection)
            .await
            .map_err(failed("read the range of history"))?;
        let changes = self.changes(&mut texts, &pairs, since.unwrap_or(i64::MIN))?;
        changes.save(connection).await?;
        agents::save_spools(connection, &self.spools).await?;
        match self.recorded {
            Some(until) => save_recorded(connection, micros(until)).await,
            None => Ok(()),
        }
    }

    /// Returns the identity of each pair that any change names, once.
    fn pair_ids(&self) -> Vec<&PairId> {
        let of_history =
            self.transitions.iter().map(|it| &it.pair).chain(self.syncs.iter().map(|it| &it.pair));
        let ids: HashSet<&PairId> = self.pairs.keys().copied().chain(of_history).collect();
        ids.into_iter().collect()
    }

    /// Makes the rows to save, without transitions and syncs before `since` (microseconds). `pairs` has the ids of all
    /// pairs, except in the first pass, which only collects the texts.
    fn changes(
        &self,
        texts: &mut TextIds,
        pairs: &HashMap<&PairId, i64>,
        since: i64,
    ) -> Result<RowsToSave, StoreError> {
        let id = |pair: &PairId| pairs.get(pair).copied().unwrap_or_default();
        let mut changes = RowsToSave::default();
        for (pair, record) in &self.pairs {
            let number = id(pair);
            let Some(record) = record else {
                changes.gone.push(number);
                continue;
            };
            changes.summaries.push(summary(number, record, texts)?);
            match Detail::of(record) {
                detail if detail == Detail::default() => changes.well.push(number),
                detail => changes.details.push((number, encode(&detail)?)),
            }
        }
        for transition in self.transitions.iter().filter(|it| micros(it.at) >= since) {
            let PairTransition { pair, at, before, after } = transition;
            let at = micros(*at);
            let [b1, b2, b3, b4] = state_columns(before.as_ref(), texts);
            let [a1, a2, a3, a4] = state_columns(after.as_ref(), texts);
            let row = [Some(day(at)), Some(id(pair)), Some(at), b1, b2, b3, b4, a1, a2, a3, a4];
            changes.transitions.push(row);
            changes.days.insert(day(at));
        }
        for sync in self.syncs.iter().filter(|it| micros(it.began) >= since) {
            let SyncRecord { pair, revision, began, ended, result, message } = sync;
            let began = micros(*began);
            let is_remembered = message.is_empty();
            let (revision, message) = (texts.id(revision), texts.id(message));
            let ended = ended.map(micros);
            let result = result_code(*result);
            let numbers = [day(began), id(pair), began, revision].map(Some);
            let [day, pair, at, revision] = numbers;
            let rows = if is_remembered { &mut changes.remembered } else { &mut changes.syncs };
            rows.push([day, pair, at, revision, ended, Some(result), Some(message)]);
            changes.days.extend(day);
        }
        Ok(changes)
    }

    async fn save_clusters(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        for id in &self.forgotten {
            for statement in ["DELETE FROM clusters WHERE id = ?1", "DELETE FROM epochs WHERE cluster = ?1"] {
                let done = sqlx::query(statement).bind(saved(&id.0)).execute(&mut *connection).await;
                done.map_err(failed("forget a cluster"))?;
            }
        }
        let clusters: Vec<&ClusterRecord> = self.clusters.values().collect();
        for clusters in clusters.chunks(MAX_ROWS) {
            let (mut rows, mut all_epochs) = (Vec::new(), Vec::new());
            for ClusterRecord { id, name, aliases, labels, heard, epochs } in clusters.iter().copied() {
                rows.push((&id.0, name, encode(aliases)?, encode(labels)?, heard.map(micros)));
                let number = |epoch: &u64| i64::try_from(*epoch).unwrap_or(i64::MAX);
                all_epochs.extend(epochs.iter().map(|(source, epoch)| (&id.0, source, number(epoch))));
            }
            let statement = "INSERT OR REPLACE INTO clusters (id, name, aliases, labels, heard)
                 SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?1)";
            run(connection, statement, encode(&rows)?).await?;
            let statement = "INSERT INTO epochs (cluster, source, epoch)
                 SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?1) WHERE true
                 ON CONFLICT DO UPDATE SET epoch = max(epoch, excluded.epoch)";
            run(connection, statement, encode(&all_epochs)?).await?;
        }
        Ok(())
    }
}

/// Saves the time up to which history is complete; the first such time also becomes the beginning of history.
async fn save_recorded(connection: &mut SqliteConnection, until: i64) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO facts (name, value) VALUES ('recorded_since', ?1), ('recorded_until', ?1)
         ON CONFLICT DO UPDATE SET value = max(value, excluded.value) WHERE name = 'recorded_until'",
    )
    .bind(until)
    .execute(connection)
    .await
    .map(drop)
    .map_err(failed("save the range of history"))
}

fn saved(text: &str) -> String {
    saved_form(text).into_owned()
}

/// Saves the pairs `ids` that are new, whose columns are the `rows`, and returns the numbers of all of them in the
/// database.
async fn save_pairs<'p>(
    connection: &mut SqliteConnection,
    ids: &[&'p PairId],
    rows: &[[Option<i64>; 5]],
) -> Result<HashMap<&'p PairId, i64>, StoreError> {
    let mut known = HashMap::with_capacity(ids.len());
    for (ids, rows) in ids.chunks(MAX_ROWS).zip(rows.chunks(MAX_ROWS)) {
        let json = json_rows(rows);
        let mut found = pair_numbers(connection, &json).await?;
        if found.contains(&None) {
            run(
                connection,
                "INSERT OR IGNORE INTO pairs (cluster, home, namespace, name, delivery)
                 SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?1)",
                json.clone(),
            )
            .await?;
            found = pair_numbers(connection, &json).await?;
        }
        known.extend(ids.iter().zip(found).filter_map(|(id, number)| Some((*id, number?))));
    }
    if known.len() != ids.len() {
        return Err(StoreError::damaged("a pair is missing after it was saved"));
    }
    Ok(known)
}

/// Looks up the ids of the pairs in `rows` (JSON), and returns them in the same order; `None` for a pair that is not in
/// the database.
async fn pair_numbers(connection: &mut SqliteConnection, rows: &str) -> Result<Vec<Option<i64>>, StoreError> {
    // One array of JSON costs less than many rows.
    let found: String = sqlx::query_scalar(
        "SELECT json_group_array(id ORDER BY key) FROM (
             SELECT e.key, p.id FROM json_each(?1) e LEFT JOIN pairs p
             ON p.cluster = e.value ->> 0 AND p.home = e.value ->> 1 AND p.namespace = e.value ->> 2
             AND p.name = e.value ->> 3 AND p.delivery = e.value ->> 4)",
    )
    .bind(rows)
    .fetch_one(connection)
    .await
    .map_err(failed("look up pairs"))?;
    serde_json::from_str(&found)
        .map_err(|error| StoreError::damaged(format!("the ids of pairs are not numbers: {error}")))
}

fn pair_row(id: &PairId, texts: &mut TextIds) -> [Option<i64>; 5] {
    let PairId { cluster, app } = id;
    let name = &app.app;
    let columns =
        [texts.id(&cluster.0), texts.id(&app.home.0), texts.id(&name.namespace), texts.id(&name.name)];
    let [cluster, home, namespace, name] = columns;
    [cluster, home, namespace, name, delivery_code(app.app.delivery)].map(Some)
}

fn state_columns(state: Option<&PairState>, texts: &mut TextIds) -> [Option<i64>; 4] {
    let Some(PairState { health, effective, sync, problem }) = state else { return [None; 4] };
    let problem = problem.as_deref().map(|words| texts.id(words));
    [Some(status_code(*health)), Some(status_code(*effective)), Some(sync_code(*sync)), problem]
}

fn summary(pair: i64, record: &PairRecord, texts: &mut TextIds) -> Result<Summary, StoreError> {
    let mut row = [None; 25];
    row[0] = Some(pair);
    if let Some(half) = &record.declared {
        let DeclaredHalf { key, target, sync, suspended, source, labels, message, upstreams, .. } =
            &*half.body;
        row[1] = Some(micros(half.received));
        row[2] = Some(texts.id(key));
        row[3] = (*target != record.id.cluster).then(|| texts.id(&target.0));
        row[4] = Some(sync_code(sync.state));
        let revisions = [&sync.desired, &sync.attempted, &sync.applied];
        for (column, revision) in row.iter_mut().skip(5).zip(revisions) {
            *column = revision.as_deref().map(|revision| texts.id(revision));
        }
        row[8] = sync.last_success.map(micros);
        row[9] = Some(i64::from(*suspended));
        row[10] = source.as_ref().map(encode).transpose()?.map(|source| texts.id(&source));
        row[11] = (!labels.is_empty()).then(|| encode(labels)).transpose()?.map(|labels| texts.id(&labels));
        row[12] = Some(texts.id(message));
        row[24] = upstreams.as_ref().map(encode).transpose()?.map(|upstreams| texts.id(&upstreams));
        row[22] = half.fingerprint.map(u64::cast_signed);
    }
    if let Some(half) = &record.observed {
        let ObservedHalf { health, counts, unconfirmed, .. } = &*half.body;
        row[13] = Some(micros(half.received));
        row[14] = Some(status_code(*health));
        let numbers = [
            counts.current,
            counts.in_progress,
            counts.failed,
            counts.terminating,
            counts.not_found,
            counts.unknown,
            *unconfirmed,
        ];
        for (column, number) in row.iter_mut().skip(15).zip(numbers) {
            *column = Some(i64::try_from(number).unwrap_or(i64::MAX));
        }
        row[23] = half.fingerprint.map(u64::cast_signed);
    }
    Ok(row)
}

/// The rows to save.
#[derive(Debug, Default)]
struct RowsToSave {
    gone: Vec<i64>,
    /// The ids of the pairs that have no row of details.
    well: Vec<i64>,
    summaries: Vec<Summary>,
    details: Vec<(i64, String)>,
    days: BTreeSet<i64>,
    transitions: Vec<[Option<i64>; 11]>,
    syncs: Vec<[Option<i64>; 7]>,
    /// The syncs without a message: a saved sync is replaced by one of these only if it is running.
    remembered: Vec<[Option<i64>; 7]>,
}

impl RowsToSave {
    async fn save(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        for gone in self.gone.chunks(MAX_ROWS) {
            let statement = "DELETE FROM summaries WHERE pair IN (SELECT value FROM json_each(?1))";
            run(connection, statement, encode(&gone)?).await?;
        }
        for rows in self.summaries.chunks(MAX_ROWS) {
            let statement = "INSERT OR REPLACE INTO summaries SELECT
                 value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
                 value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14,
                 value ->> 15, value ->> 16, value ->> 17, value ->> 18, value ->> 19, value ->> 20, value ->> 21,
                 value ->> 22, value ->> 23, value ->> 24 FROM json_each(?1)";
            run(connection, statement, json_rows(rows)).await?;
        }
        for pairs in [&self.gone, &self.well].into_iter().flat_map(|pairs| pairs.chunks(MAX_ROWS)) {
            let statement = "DELETE FROM details WHERE pair IN (SELECT value FROM json_each(?1))";
            run(connection, statement, encode(&pairs)?).await?;
        }
        for rows in self.details.chunks(MAX_DETAILS) {
            let statement = "INSERT OR REPLACE INTO details (pair, detail)
                 SELECT value ->> 0, value ->> 1 FROM json_each(?1)";
            run(connection, statement, encode(&rows)?).await?;
        }
        if !self.days.is_empty() {
            let statement = "INSERT OR IGNORE INTO days (day) SELECT value FROM json_each(?1)";
            run(connection, statement, encode(&self.days)?).await?;
        }
        for rows in self.transitions.chunks(MAX_ROWS) {
            // Of several changes in one microsecond, the state before is that of the first.
            let statement =
                "INSERT INTO transitions SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3,
                 value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10
                 FROM json_each(?1) WHERE true
                 ON CONFLICT DO UPDATE SET health = excluded.health, effective = excluded.effective,
                 sync = excluded.sync, problem = excluded.problem";
            run(connection, statement, json_rows(rows)).await?;
        }
        for rows in self.syncs.chunks(MAX_ROWS) {
            // 0: a sync that runs does not replace one that has ended.
            let statement = "INSERT INTO syncs SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
                 value ->> 5, value ->> 6 FROM json_each(?1) WHERE true
                 ON CONFLICT DO UPDATE SET ended = excluded.ended, result = excluded.result, message = excluded.message
                 WHERE excluded.result <> 0 OR syncs.result = 0";
            run(connection, statement, json_rows(rows)).await?;
        }
        for rows in self.remembered.chunks(MAX_ROWS) {
            let statement = "INSERT INTO syncs SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
                 value ->> 5, value ->> 6 FROM json_each(?1) WHERE true
                 ON CONFLICT DO UPDATE SET ended = excluded.ended, result = excluded.result, message = excluded.message
                 WHERE syncs.result = 0";
            run(connection, statement, json_rows(rows)).await?;
        }
        Ok(())
    }
}

async fn run(
    connection: &mut SqliteConnection,
    statement: &'static str,
    rows: String,
) -> Result<(), StoreError> {
    let done = sqlx::query(statement).bind(rows).execute(connection).await;
    done.map(drop).map_err(failed("save changes"))
}
