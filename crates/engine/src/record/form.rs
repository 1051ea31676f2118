//! The form of a record in its ConfigMap.
//!
//! A run names most of its objects as the inventory does, so that 10,000 objects with their UIDs fit in a ConfigMap even while
//! they are applied: such a key is the index of its entry, and a UID that the entry has is `true`.

use std::collections::HashMap;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use taffrail_apps::sets::{
    INVENTORY_KEY, MAX_SET_OBJECTS, MAX_UNPACKED_BYTES, RESULTS_KEY, RUN_KEY, RunResults, SUMMARY_KEY,
    SetRecordError, SetSummary, pack, read_inventory, unpack,
};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{InventoryEntry, ObjectKey, names};
use taffrail_plan::sync::SyncRun;

use super::{RecordError, SetRecord};

/// Maximum size of the data of a record, in bytes: what Kubernetes allows in a ConfigMap.
const MAX_RECORD_BYTES: usize = 1 << 20;

/// The size that is set aside for each task that has no UID yet, in bytes.
const UID_BYTES: usize = 24;

/// Maximum length of the reasons of a run that would not fit otherwise, in characters.
const SHORT_REASON: usize = 100;

const _: () = assert!(MAX_SET_OBJECTS <= 10_000, "a record must fit in one ConfigMap");

/// The run as a record holds it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRun {
    /// The digest of the packed inventory to whose entries the run refers: an edited one refers to other objects.
    inventory: String,
    run: Value,
}

/// Returns the values of a record, for its `data` and `binaryData`; a merge patch with them makes it complete.
///
/// What this refuses could be written, and not be read any more.
///
/// # Errors
/// [`RecordError::TooMany`] if the inventory is too long, [`RecordError::TooLarge`] if they do not fit even without the results of
/// earlier runs.
pub(super) fn values(record: &SetRecord) -> Result<Value, RecordError> {
    if record.inventory.len() > MAX_SET_OBJECTS {
        return Err(RecordError::TooMany { count: record.inventory.len(), most: MAX_SET_OBJECTS });
    }
    let summary = summary_text(&record.summary);
    let inventory = pack(&record.inventory);
    let pending = record.run.as_ref().map_or(0, |run| {
        run.tasks.iter().filter(|task| !task.state.is_final() && task.state.written().is_none()).count()
    });
    let others = summary.len() + inventory.len() + pending * UID_BYTES;
    let packed_run = |is_short| {
        let Some(run) = &record.run else { return Ok(None) };
        let stored = stored_run(run, &record.inventory, &inventory, is_short);
        let packed = pack(&stored);
        let sizes = [(others + packed.len(), MAX_RECORD_BYTES), (json_size(&stored), MAX_UNPACKED_BYTES)];
        match sizes.into_iter().find(|(bytes, most)| bytes > most) {
            Some((bytes, most)) => Err(RecordError::TooLarge { bytes, most }),
            None => Ok(Some(packed)),
        }
    };
    let run = packed_run(false).or_else(|_| packed_run(true))?;
    let fixed = others + run.as_ref().map_or(0, Vec::len);
    // Results are history alone: the oldest give way.
    let mut results = &*record.results;
    let mut packed = pack(results);
    while fixed + packed.len() > MAX_RECORD_BYTES || json_size(results) > MAX_UNPACKED_BYTES {
        let Some((_, newer)) = results.split_last() else {
            return Err(RecordError::TooLarge { bytes: fixed, most: MAX_RECORD_BYTES });
        };
        results = newer;
        packed = pack(results);
    }
    let encoded = |bytes: &[u8]| Value::String(STANDARD.encode(bytes));
    Ok(json!({
        "data": { SUMMARY_KEY: summary },
        "binaryData": {
            INVENTORY_KEY: encoded(&inventory),
            RESULTS_KEY: encoded(&packed),
            RUN_KEY: run.map(|run| encoded(&run)),
        },
    }))
}

/// Returns the size of a value as JSON, in bytes.
fn json_size<T: Serialize + ?Sized>(value: &T) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // What cannot be written as JSON has no size that fits.
    serde_json::to_writer(&mut counter, value).map_or(usize::MAX, |()| counter.0)
}

/// Returns the text of a summary.
pub(super) fn summary_text(summary: &SetSummary) -> String {
    serde_json::to_string(summary).unwrap_or_default()
}

/// Reads the summary of a record.
pub(super) fn read_summary(found: &OwnedDocument) -> Result<SetSummary, SetRecordError> {
    let text = found.root().at(&["data", SUMMARY_KEY]).and_then(|it| it.as_str()).unwrap_or_default();
    SetSummary::read(&text)
}

/// Reads the values of a record.
pub(super) fn read(found: &OwnedDocument) -> Result<SetRecord, SetRecordError> {
    let part = |key: &'static str| {
        let text = found.root().at(&["binaryData", key]).and_then(|it| it.as_str())?;
        // What is not Base64 is not what was written here.
        Some(STANDARD.decode(&*text).unwrap_or_default())
    };
    let summary = read_summary(found)?;
    let packed = part(INVENTORY_KEY).ok_or(SetRecordError::Damaged { part: INVENTORY_KEY, cause: None })?;
    let inventory = read_inventory(&packed)?;
    let results: Option<Vec<RunResults>> = part(RESULTS_KEY).and_then(|it| unpack(RESULTS_KEY, &it).ok());
    let run = match part(RUN_KEY) {
        Some(run) => Some(unpack_run(&run, &inventory, &packed)?),
        None => None,
    };
    Ok(SetRecord { summary, inventory, results: results.unwrap_or_default(), run })
}

/// Returns a run that refers to the entries of an inventory, which was packed as `packed`.
fn stored_run(run: &SyncRun, inventory: &[InventoryEntry], packed: &[u8], is_short: bool) -> StoredRun {
    // As a reader counts them, which leaves out what no object can be named.
    let entries: Vec<&InventoryEntry> =
        inventory.iter().filter(|entry| names::check(&entry.key).is_ok()).collect();
    let places: HashMap<&ObjectKey, usize> =
        entries.iter().enumerate().map(|(at, entry)| (&entry.key, at)).collect();
    let mut value = serde_json::to_value(run).unwrap_or_default();
    let tasks = value.get_mut("tasks").and_then(Value::as_array_mut);
    for (task, value) in run.tasks.iter().zip(tasks.into_iter().flatten()) {
        let entry = places.get(&task.key).and_then(|at| Some((at, entries.get(*at)?)));
        if let Some((at, entry)) = entry {
            value["key"] = json!(at);
            for uid in uids(value).filter(|uid| uid.as_str() == entry.uid.as_deref()) {
                if !uid.is_null() {
                    *uid = Value::Bool(true);
                }
            }
        }
        if is_short {
            for state in ["failed", "skipped"] {
                if let Some(Value::String(text)) = value.pointer_mut(&format!("/state/{state}/message"))
                    && let Some((end, _)) = text.char_indices().nth(SHORT_REASON)
                {
                    text.truncate(end);
                    text.push('…');
                }
            }
        }
    }
    StoredRun { inventory: digest(packed), run: value }
}

/// Unpacks a run, with the inventory to which it refers.
fn unpack_run(run: &[u8], inventory: &[InventoryEntry], packed: &[u8]) -> Result<SyncRun, SetRecordError> {
    let damaged = |why: &str| SetRecordError::Damaged { part: RUN_KEY, cause: Some(why.into()) };
    let StoredRun { inventory: wanted, mut run } = unpack(RUN_KEY, run)?;
    let version = run.get("version").and_then(Value::as_u64).unwrap_or_default();
    if version > u64::from(SyncRun::VERSION) {
        return Err(SetRecordError::Newer(version));
    }
    if wanted != digest(packed) {
        return Err(damaged("its inventory was changed while it ran"));
    }
    for task in run.get_mut("tasks").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(at) = task.get("key").and_then(Value::as_u64) else { continue };
        let entry = usize::try_from(at).ok().and_then(|at| inventory.get(at));
        let entry = entry.ok_or_else(|| damaged("it names an object that its inventory does not have"))?;
        task["key"] = serde_json::to_value(&entry.key).unwrap_or_default();
        for uid in uids(task).filter(|uid| uid.as_bool() == Some(true)) {
            *uid = json!(entry.uid);
        }
    }
    let run: SyncRun = serde_json::from_value(run)
        .map_err(|error| SetRecordError::Damaged { part: RUN_KEY, cause: Some(error.into()) })?;
    // No hostile name reaches the path of a request. The API server names some hooks itself.
    let is_wrong = |key: &ObjectKey| !key.name.is_empty() && names::check(key).is_err();
    if run.tasks.iter().any(|task| is_wrong(&task.key)) {
        return Err(damaged("it names an object that cannot be"));
    }
    Ok(run)
}

/// Returns the UIDs in the state and the work of a task.
fn uids(task: &mut Value) -> impl Iterator<Item = &mut Value> {
    let parts = task.as_object_mut().into_iter().flat_map(|task| task.iter_mut());
    let parts = parts.filter(|(name, _)| matches!(&***name, "state" | "work")).map(|(_, part)| part);
    let inner = parts.filter_map(|part| part.as_object_mut()?.values_mut().next());
    inner.filter_map(|inner| inner.get_mut("uid"))
}

pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
