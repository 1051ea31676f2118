//! The record that Taffrail keeps of a set in the cluster: which objects it applied, and how its last runs ended.
//!
//! The record of the set `shop` in the namespace `team-a` is the ConfigMap `taffrail-set-shop` of that namespace, with the label
//! [`RECORD_LABEL`], so that whoever may read ConfigMaps sees the state of the set without any right on Secrets:
//!
//! | part | key | content |
//! |---|---|---|
//! | `data` | `set` | [`SetSummary`] as JSON |
//! | `binaryData` | `inventory` | a JSON list of [`InventoryEntry`], packed by gzip |
//! | `binaryData` | `results` | a JSON list of [`RunResults`], newest first, packed by gzip |
//! | `binaryData` | `run` | the state of the run that is not ended, packed by gzip; only the engine reads it |
//!
//! Nothing in it is a value of a declared object: the manifests of the last runs are in Secrets with the label
//! [`MANIFESTS_LABEL`], which only a rollback reads. Each object of the set bears the annotation [`SET_MARK`].

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::str::FromStr;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_object::{InventoryEntry, ObjectKey, names, words};

/// The annotation of each object of a set: the [`SetName`] as text. A name may be too long for a label.
pub const SET_MARK: &str = "taffrail.dev/set";

/// The label of the ConfigMap of a record, by which all of them are found.
pub const RECORD_LABEL: (&str, &str) = ("taffrail.dev/record", "set");

/// The label of the Secrets in which a set keeps the manifests of its runs; the annotation [`SET_MARK`] names the set.
pub const MANIFESTS_LABEL: (&str, &str) = ("taffrail.dev/record", "manifests");

/// The key of [`SetSummary`] in the `data` of a record.
pub const SUMMARY_KEY: &str = "set";

/// The key of the inventory in the `binaryData` of a record.
pub const INVENTORY_KEY: &str = "inventory";

/// The key of the results of the last runs in the `binaryData` of a record.
pub const RESULTS_KEY: &str = "results";

/// The key of the run that is not ended in the `binaryData` of a record.
pub const RUN_KEY: &str = "run";

/// The version of records that this program writes, and the newest that it reads.
pub const RECORD_VERSION: u32 = 1;

/// The maximum number of objects of a set: with their UIDs, and the state of a run, they fit in one ConfigMap.
pub const MAX_SET_OBJECTS: usize = 10_000;

/// The maximum number of runs that a record keeps.
pub const MAX_RUNS: usize = 10;

/// The maximum number of objects in [`RunResults`].
pub const MAX_RESULTS: usize = 1_000;

/// The maximum size of one packed part of a record after it is unpacked, in bytes. What is larger was not written by Taffrail.
pub const MAX_UNPACKED_BYTES: usize = 16 << 20;

/// The start of the name of the ConfigMap of a record.
const RECORD_PREFIX: &str = "taffrail-set-";

/// The maximum length of the name of a set, in characters, so that the names of its objects in the cluster are valid.
const MAX_NAME: usize = 200;

/// The name of a set: its namespace, and its name in there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SetName {
    /// The namespace of the record.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// The reason why a text is not the name of a set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a valid name of a set: {why}")]
pub struct InvalidSetName {
    /// The text.
    pub text: String,
    /// The reason.
    pub why: String,
}

impl SetName {
    /// Creates the name of a set.
    ///
    /// # Errors
    /// Returns an error if one of the parts is not a name that an object may have, or too long.
    pub fn new(namespace: &str, name: &str) -> Result<SetName, InvalidSetName> {
        let fail = |text: &str, why: String| InvalidSetName { text: text.to_owned(), why };
        if name.chars().count() > MAX_NAME {
            return Err(fail(name, format!("it has more than {MAX_NAME} characters")));
        }
        let set = SetName { namespace: namespace.to_owned(), name: name.to_owned() };
        match names::check(&set.record_key()) {
            Ok(()) if !name.is_empty() && !namespace.is_empty() => Ok(set),
            Ok(()) => Err(fail(name, "it is empty".to_owned())),
            Err(error) => Err(fail(name, error.to_string())),
        }
    }

    /// Returns the key of the ConfigMap that is the record of the set.
    pub fn record_key(&self) -> ObjectKey {
        ObjectKey::new("", "ConfigMap", &*self.namespace, format!("{RECORD_PREFIX}{}", self.name))
    }

    /// Returns the name of the set whose record has this key; `None` for any other object.
    pub fn of_record(key: &ObjectKey) -> Option<SetName> {
        let is_config_map = key.group.is_empty() && key.kind == "ConfigMap";
        let name = key.name.strip_prefix(RECORD_PREFIX).filter(|_| is_config_map)?;
        SetName::new(&key.namespace, name).ok()
    }
}

/// Formats as [`SET_MARK`] has it: `team-a_shop`. Neither part can have an underscore.
impl fmt::Display for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.namespace, self.name)
    }
}

impl FromStr for SetName {
    type Err = InvalidSetName;

    fn from_str(text: &str) -> Result<SetName, InvalidSetName> {
        let Some((namespace, name)) = text.split_once('_') else {
            return Err(InvalidSetName { text: text.to_owned(), why: "it has no underscore".to_owned() });
        };
        SetName::new(namespace, name)
    }
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SetPhase {
    /// It is not ended. Its process may have died: see [`SetHolder`].
    Running,
    /// All was done, and is ready.
    Succeeded,
    /// Something failed.
    Failed,
    /// A person ended it.
    Terminated,
    /// A newer revision took over.
    Superseded,
}

words! { SetPhase { Running, Succeeded, Failed, Terminated, Superseded } }

/// The command that a run carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SetVerb {
    /// Applies, and prunes if that was asked for.
    Sync,
    /// Deletes what is not declared any more, and applies nothing.
    Prune,
    /// Applies the manifests of an earlier run.
    Rollback,
    /// Deletes all objects of the set.
    Destroy,
}

words! { SetVerb { Sync = "sync", Prune = "prune", Rollback = "rollback", Destroy = "destroy" } }

/// The process that carries out a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetHolder {
    /// The id of the process, drawn at random when it began.
    pub process: String,
    /// The person or program that started it: `ann@laptop`.
    pub actor: String,
    /// The number of times the holder wrote the record, by which others see that it lives: its clock may be wrong.
    pub beat: u64,
}

/// The state of a set, for views.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetSummary {
    /// The version of the record: [`RECORD_VERSION`].
    pub version: u32,
    /// The revision that the last successful run applied; `None` before the first.
    pub applied: Option<String>,
    /// The time at which that run ended.
    pub applied_at: Option<Timestamp>,
    /// The process that holds the set; `None` while none does.
    pub holder: Option<SetHolder>,
    /// The runs, newest first, at most [`MAX_RUNS`]; the first may be running.
    pub runs: Vec<SetRun>,
}

impl Default for SetSummary {
    fn default() -> SetSummary {
        SetSummary {
            version: RECORD_VERSION,
            applied: None,
            applied_at: None,
            holder: None,
            runs: Vec::new(),
        }
    }
}

/// One run of a set, without its objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetRun {
    /// Its number in the set, from 1.
    pub number: u64,
    /// The command.
    pub verb: SetVerb,
    /// The state.
    pub phase: SetPhase,
    /// The revision of the manifests, as the caller named it, such as a Git commit; empty if it named none.
    pub revision: String,
    /// The digest of the manifests, by which equal ones are known.
    pub digest: String,
    /// The person or program that started it.
    pub actor: String,
    /// The time at which it began.
    pub started: Timestamp,
    /// The time at which it ended; `None` while it runs.
    pub ended: Option<Timestamp>,
    /// The reason why it failed, or the object that it waits for; empty if there is nothing to tell.
    pub message: String,
    /// The number of objects by the word of their [`ObjectResult`].
    pub counts: BTreeMap<String, usize>,
    /// True if the manifests of the run are kept, so that a rollback can apply them.
    pub is_kept: bool,
}

/// The results of one run for its objects, those without a change left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResults {
    /// The number of the run.
    pub number: u64,
    /// The objects, at most [`MAX_RESULTS`], failed ones first.
    pub objects: Vec<RunObject>,
}

/// The result of one run for one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunObject {
    /// The object.
    pub object: ObjectKey,
    /// The result.
    pub result: ObjectResult,
    /// The reason, for what failed, stayed or was skipped; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What a run did with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ObjectResult {
    /// It could not be applied or deleted, or did not become ready.
    Failed,
    /// It was not touched, since an object that it depends on failed, or the run ended before.
    Skipped,
    /// It was created.
    Created,
    /// It was changed.
    Changed,
    /// It was deleted and created again.
    Replaced,
    /// It was as declared already.
    Unchanged,
    /// It ran as a hook.
    Ran,
    /// It was deleted.
    Pruned,
    /// It is not declared any more, and stays.
    Kept,
}

words! {
    ObjectResult { Failed, Skipped, Created, Changed, Replaced, Unchanged, Ran, Pruned, Kept }
}

/// The reason why a record cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetRecordError {
    /// A newer Taffrail wrote it.
    #[error("a newer Taffrail wrote the record (version {0}; this one reads up to {RECORD_VERSION})")]
    Newer(u64),
    /// The key is missing, or its value was cut or edited.
    #[error("the part '{part}' of the record is not as Taffrail wrote it")]
    Damaged {
        /// The key of the part.
        part: &'static str,
        /// The cause; `None` if the part is missing or too large.
        #[source]
        cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl SetRecordError {
    fn damaged(
        part: &'static str,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> SetRecordError {
        SetRecordError::Damaged { part, cause: Some(cause.into()) }
    }
}

impl SetSummary {
    /// Reads the summary of a record.
    ///
    /// # Errors
    /// Returns an error if a newer program wrote it, or if it is damaged.
    pub fn read(text: &str) -> Result<SetSummary, SetRecordError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u64,
        }
        let damaged = |error: serde_json::Error| SetRecordError::damaged(SUMMARY_KEY, error);
        let Versioned { version } = serde_json::from_str(text).map_err(damaged)?;
        if version > u64::from(RECORD_VERSION) {
            return Err(SetRecordError::Newer(version));
        }
        let mut summary: SetSummary = serde_json::from_str(text).map_err(damaged)?;
        summary.runs.truncate(MAX_RUNS);
        Ok(summary)
    }
}

/// Packs a part of a record: JSON, compressed by gzip.
pub fn pack<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let json = serde_json::to_vec(value).unwrap_or_default();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(&json);
    encoder.finish().unwrap_or_default()
}

/// Unpacks a part of a record.
///
/// # Errors
/// Returns an error if it is damaged, or larger than [`MAX_UNPACKED_BYTES`].
pub fn unpack<T: for<'de> Deserialize<'de>>(part: &'static str, packed: &[u8]) -> Result<T, SetRecordError> {
    unpack_at_most(part, packed, MAX_UNPACKED_BYTES)
}

/// Unpacks a part of a record that has at most `most` bytes.
///
/// # Errors
/// Returns an error if it is damaged, or larger.
pub fn unpack_at_most<T: for<'de> Deserialize<'de>>(
    part: &'static str,
    packed: &[u8],
    most: usize,
) -> Result<T, SetRecordError> {
    let mut json = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let read = GzDecoder::new(packed).take(limit).read_to_end(&mut json);
    read.map_err(|error| SetRecordError::damaged(part, error))?;
    if json.len() > most {
        return Err(SetRecordError::Damaged { part, cause: None });
    }
    serde_json::from_slice(&json).map_err(|error| SetRecordError::damaged(part, error))
}

/// Reads the inventory of a record from the value of [`INVENTORY_KEY`], decoded from Base64. Entries whose names no object can
/// have are left out.
///
/// # Errors
/// Returns an error if it is damaged, or has more than [`MAX_SET_OBJECTS`] entries.
pub fn read_inventory(packed: &[u8]) -> Result<Vec<InventoryEntry>, SetRecordError> {
    let mut entries: Vec<InventoryEntry> = unpack(INVENTORY_KEY, packed)?;
    if entries.len() > MAX_SET_OBJECTS {
        return Err(SetRecordError::Damaged { part: INVENTORY_KEY, cause: None });
    }
    entries.retain(|entry| names::check(&entry.key).is_ok());
    Ok(entries)
}
