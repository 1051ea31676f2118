//! The record of a set in the cluster, which one process holds at a time.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use taffrail_apps::sets::{
    INVENTORY_KEY, MAX_SET_OBJECTS, RECORD_LABEL, RESULTS_KEY, RUN_KEY, RunResults, SUMMARY_KEY, SetHolder,
    SetName, SetRecordError, SetSummary, pack, read_inventory, unpack,
};
use taffrail_cluster::{
    ApiResource, Cluster, CreateRequest, DeleteRequest, OwnSecret, PatchRequest, PatchType, ReadError,
    WriteError,
};
use taffrail_object::json::{OwnedDocument, Value as Json};
use taffrail_object::{InventoryEntry, Projection};
use taffrail_plan::sync::SyncRun;

/// The key of the manifests in their Secrets.
const MANIFESTS_KEY: &str = "manifests";

/// The maximum size of the part of manifests in one Secret, in bytes.
const MAX_PART_BYTES: usize = 700 << 10;

/// The maximum number of Secrets with the manifests of one run.
const MAX_PARTS: usize = 100;

/// Maximum time of one request.
const REQUEST: Duration = Duration::from_secs(30);

/// The reason why the record of a set cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Another process holds the set, and lives.
    #[error("{} holds the set", .0.actor)]
    Held(SetHolder),
    /// Another process took the set over, since this one had not written for long.
    #[error("another process took the set over: {}", .0.as_ref().map_or("its record is gone", |holder| &holder.actor))]
    Lost(Option<SetHolder>),
    /// The record is not as Taffrail wrote it.
    #[error("the record {record} cannot be used")]
    Damaged {
        /// The namespace and name of the ConfigMap.
        record: String,
        /// The cause.
        #[source]
        cause: SetRecordError,
    },
    /// An object of the record's name exists that Taffrail did not write.
    #[error("the ConfigMap {0} is not the record of a set")]
    Foreign(String),
    /// The manifests of a run are missing, or were cut or edited.
    #[error("the manifests of run {0} are not as Taffrail wrote them")]
    Manifests(u64),
    /// The API server does not let the record be read.
    #[error("cannot read the record of the set")]
    Read(#[from] ReadError),
    /// The API server does not let the record be written.
    #[error("cannot write the record of the set")]
    Write(#[from] WriteError),
}

impl RecordError {
    /// Returns a hint for the user; empty if there is none.
    pub fn hint(&self) -> &'static str {
        match self {
            RecordError::Held(_) => "wait until it ends, and try again",
            RecordError::Lost(_) => "look at what the other process did with `taffrail history --set`",
            RecordError::Damaged { cause: SetRecordError::Newer(_), .. } => "update Taffrail",
            RecordError::Damaged { .. } => {
                "restore the ConfigMap from a backup; without it Taffrail does not know which objects the set has"
            }
            RecordError::Foreign(_) => "choose another name for the set, or another namespace",
            RecordError::Manifests(_) => "sync with the manifests from their source instead",
            RecordError::Read(error) => error.reason().hint(),
            RecordError::Write(error) => error.hint(),
        }
    }
}

/// The record of a set as it was read, or will be written.
#[derive(Debug, Clone)]
pub struct SetRecord {
    /// The state of the set.
    pub summary: SetSummary,
    /// The objects that it applied.
    pub inventory: Vec<InventoryEntry>,
    /// The results of its last runs, newest first.
    pub results: Vec<RunResults>,
    /// The run that is not ended.
    pub run: Option<SyncRun>,
    /// The version of the ConfigMap; `None` while there is none.
    version: Option<String>,
    uid: String,
}

/// The times by which a holder is judged.
#[derive(Debug, Clone, Copy)]
pub struct HolderTimes {
    /// The pause between two looks at the record of another holder.
    pub poll: Duration,
    /// The time without a write after which a holder counts as dead, by the clock of this process.
    pub patience: Duration,
}

impl Default for HolderTimes {
    fn default() -> HolderTimes {
        HolderTimes { poll: Duration::from_secs(1), patience: Duration::from_secs(60) }
    }
}

/// Reads and writes the record of one set.
#[derive(Debug)]
pub struct RecordStore {
    cluster: Cluster,
    name: SetName,
    process: String,
    actor: String,
    times: HolderTimes,
}

impl RecordStore {
    /// Creates a store for a process of its own, which is noted as `actor`.
    pub fn new(cluster: Cluster, name: SetName, actor: String) -> RecordStore {
        let process = format!("{:016x}", fastrand::u64(..));
        RecordStore { cluster, name, process, actor, times: HolderTimes::default() }
    }

    /// Changes the times by which other holders are judged.
    pub fn with_times(self, times: HolderTimes) -> RecordStore {
        RecordStore { times, ..self }
    }

    /// Returns the connection for one request.
    fn cluster(&self) -> Cluster {
        self.cluster.within(REQUEST)
    }

    /// Reads the record; `None` if there is no such set.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, is damaged, or is somebody else's.
    pub async fn read(&self) -> Result<Option<SetRecord>, RecordError> {
        let key = self.name.record_key();
        let found = self
            .cluster()
            .get(&config_maps(), Some(&self.name.namespace), &key.name, Projection::Full)
            .await?;
        found.map(|found| self.parse(&found)).transpose()
    }

    fn parse(&self, found: &OwnedDocument) -> Result<SetRecord, RecordError> {
        let root = found.root();
        let record = || self.name.record_key().path();
        let label = root.at(&["metadata", "labels", RECORD_LABEL.0]).and_then(|it| it.as_str());
        if label.as_deref() != Some(RECORD_LABEL.1) {
            return Err(RecordError::Foreign(record()));
        }
        let damaged = |cause: SetRecordError| RecordError::Damaged { record: record(), cause };
        let text = root.at(&["data", SUMMARY_KEY]).and_then(|it| it.as_str()).unwrap_or_default();
        let summary = SetSummary::read(&text).map_err(damaged)?;
        let part = |key: &'static str| {
            let text = root.at(&["binaryData", key]).and_then(|it| it.as_str())?;
            // What is not Base64 is not what was written here.
            Some(STANDARD.decode(&*text).unwrap_or_default())
        };
        let missing = || SetRecordError::Damaged { part: INVENTORY_KEY, cause: None };
        let inventory =
            read_inventory(&part(INVENTORY_KEY).ok_or_else(missing).map_err(damaged)?).map_err(damaged)?;
        // Results are history alone.
        let results = part(RESULTS_KEY).and_then(|it| unpack(RESULTS_KEY, &it).ok()).unwrap_or_default();
        let run = match part(RUN_KEY) {
            Some(packed) => Some(unpack(RUN_KEY, &packed).map_err(damaged)?),
            None => None,
        };
        let version = Some(metadata(found, "resourceVersion"));
        Ok(SetRecord { summary, inventory, results, run, version, uid: metadata(found, "uid") })
    }

    /// Becomes the holder of the set, whose record is created if there is none. A holder that does not write for
    /// [`HolderTimes::patience`] is succeeded; `told` is called with it when the wait begins.
    ///
    /// # Errors
    /// [`RecordError::Held`] if another holder lives.
    pub async fn take(&self, told: &mut dyn FnMut(&SetHolder)) -> Result<SetRecord, RecordError> {
        let mut waiting: Option<(String, u64, Instant)> = None;
        loop {
            let mut record = match self.read().await? {
                Some(record) => record,
                None => match self.create().await {
                    Ok(record) => return Ok(record),
                    // Another process was faster.
                    Err(WriteError::Conflict { .. } | WriteError::Uncertain(_)) => continue,
                    Err(error) => return Err(error.into()),
                },
            };
            let is_free = match (&record.summary.holder, &waiting) {
                (None, _) => true,
                (Some(holder), _) if holder.process == self.process => true,
                (Some(holder), None) => {
                    told(holder);
                    waiting = Some((holder.process.clone(), holder.beat, Instant::now()));
                    false
                }
                (Some(holder), Some((process, beat, since))) => {
                    if (&holder.process, holder.beat) != (process, *beat) {
                        return Err(RecordError::Held(holder.clone()));
                    }
                    since.elapsed() >= self.times.patience
                }
            };
            if is_free {
                let beat = record.summary.holder.as_ref().map_or(0, |holder| holder.beat);
                record.summary.holder = Some(self.holder(beat));
                match self.save(&mut record).await {
                    Ok(()) => return Ok(record),
                    Err(RecordError::Lost(_)) => continue,
                    Err(error) => return Err(error),
                }
            }
            tokio::time::sleep(self.times.poll).await;
        }
    }

    fn holder(&self, beat: u64) -> SetHolder {
        SetHolder { process: self.process.clone(), actor: self.actor.clone(), beat }
    }

    async fn create(&self) -> Result<SetRecord, WriteError> {
        let summary = SetSummary { holder: Some(self.holder(0)), ..SetSummary::default() };
        let mut record = SetRecord {
            summary,
            inventory: Vec::new(),
            results: Vec::new(),
            run: None,
            version: None,
            uid: String::new(),
        };
        let key = self.name.record_key();
        let mut body = parts(&record);
        body["apiVersion"] = json!("v1");
        body["kind"] = json!("ConfigMap");
        body["metadata"] = json!({
            "name": key.name, "namespace": key.namespace, "labels": { RECORD_LABEL.0: RECORD_LABEL.1 },
        });
        let body = body.to_string();
        let request = CreateRequest {
            resource: &config_maps(),
            namespace: Some(&self.name.namespace),
            body: body.as_bytes(),
            dry_run: false,
        };
        let created = self.cluster().create(&request).await?;
        record.version = Some(metadata(&created, "resourceVersion"));
        record.uid = metadata(&created, "uid");
        Ok(record)
    }

    /// Writes the record, if nobody wrote it since it was read.
    ///
    /// # Errors
    /// [`RecordError::Lost`] if another process holds the set now.
    pub async fn save(&self, record: &mut SetRecord) -> Result<(), RecordError> {
        if let Some(holder) = &mut record.summary.holder {
            holder.beat += 1;
        }
        // A lost answer is looked up, and a change by others that do not hold the set is overwritten.
        for _ in 0..3 {
            let error = match self.patch(record).await {
                Ok(()) => return Ok(()),
                Err(error @ (WriteError::Conflict { .. } | WriteError::Uncertain(_))) => error,
                Err(WriteError::NotFound { .. }) => return Err(RecordError::Lost(None)),
                Err(error) => return Err(error.into()),
            };
            let Some(now) = self.read().await? else { return Err(RecordError::Lost(None)) };
            if now.summary == record.summary && now.run == record.run {
                record.version = now.version;
                return Ok(());
            }
            let is_own = now.summary.holder.as_ref().is_some_and(|holder| holder.process == self.process);
            // A successor takes a set from its holder, and nobody else may.
            let is_taking = record.version != now.version
                && record.summary.holder.as_ref().is_some_and(|holder| holder.process == self.process)
                && !is_own;
            if is_taking {
                return Err(RecordError::Lost(now.summary.holder));
            }
            if matches!(error, WriteError::Conflict { .. }) {
                record.version = now.version;
            }
        }
        Err(RecordError::Lost(None))
    }

    async fn patch(&self, record: &mut SetRecord) -> Result<(), WriteError> {
        let mut body = parts(record);
        body["metadata"] = json!({ "resourceVersion": record.version });
        let body = body.to_string();
        let key = self.name.record_key();
        let written = self
            .cluster()
            .patch(&PatchRequest {
                resource: &config_maps(),
                namespace: Some(&self.name.namespace),
                name: &key.name,
                subresource: None,
                patch_type: PatchType::Merge,
                body: body.as_bytes(),
                dry_run: false,
            })
            .await?;
        record.version = Some(metadata(&written, "resourceVersion"));
        Ok(())
    }

    /// Gives the set free.
    ///
    /// # Errors
    /// As [`RecordStore::save`].
    pub async fn release(&self, mut record: SetRecord) -> Result<(), RecordError> {
        record.summary.holder = None;
        self.save(&mut record).await
    }

    /// Deletes the record and the kept manifests.
    ///
    /// # Errors
    /// Returns an error if the API server does not let them be deleted.
    pub async fn remove(&self, record: SetRecord) -> Result<(), RecordError> {
        let kept: Vec<u64> =
            record.summary.runs.iter().filter(|run| run.is_kept).map(|run| run.number).collect();
        for number in kept {
            self.remove_manifests(number).await?;
        }
        let key = self.name.record_key();
        let request = DeleteRequest {
            resource: &config_maps(),
            namespace: Some(&self.name.namespace),
            name: &key.name,
            uid: Some(&record.uid),
            resource_version: record.version.as_deref(),
            propagation: None,
            dry_run: false,
            allow_secret: false,
        };
        match self.cluster().delete(&request).await {
            Ok(_) | Err(WriteError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn manifest_name(&self, number: u64, part: usize) -> String {
        format!("{}-v{number}-{part}", self.name.record_key().name)
    }

    /// Keeps the packed manifests of a run, in as many Secrets as they need.
    ///
    /// # Errors
    /// Returns an error if a Secret cannot be written.
    pub async fn keep_manifests(&self, number: u64, packed: &[u8]) -> Result<(), RecordError> {
        let parts: Vec<&[u8]> = packed.chunks(MAX_PART_BYTES).collect();
        for (at, part) in parts.iter().enumerate() {
            let header = json!({ "parts": parts.len(), "digest": digest(packed) }).to_string();
            let value = [header.as_bytes(), b"\n", part].concat();
            let name = self.manifest_name(number, at);
            let secret = OwnSecret { namespace: &self.name.namespace, name: &name, key: MANIFESTS_KEY };
            let old = self.cluster().read_own_secret(&secret).await?;
            if old.as_ref().is_some_and(|old| old.value.as_ref() == Some(&value)) {
                continue;
            }
            self.cluster().write_own_secret(&secret, &value, old.as_ref().map(|old| &*old.version)).await?;
        }
        Ok(())
    }

    /// Reads the packed manifests of a run.
    ///
    /// # Errors
    /// [`RecordError::Manifests`] if a part is missing, cut or edited.
    pub async fn read_manifests(&self, number: u64) -> Result<Vec<u8>, RecordError> {
        let damaged = || RecordError::Manifests(number);
        let (mut packed, mut part, mut parts, mut wanted) = (Vec::new(), 0, 1, String::new());
        while part < parts {
            let name = self.manifest_name(number, part);
            let secret = OwnSecret { namespace: &self.name.namespace, name: &name, key: MANIFESTS_KEY };
            let read = self.cluster().read_own_secret(&secret).await?;
            let value = read.and_then(|read| read.value).ok_or_else(damaged)?;
            let end = value.iter().position(|byte| *byte == b'\n').ok_or_else(damaged)?;
            let (header, rest) = value.split_at(end);
            let header: Value = serde_json::from_slice(header).map_err(|_| damaged())?;
            let count =
                header["parts"].as_u64().and_then(|it| usize::try_from(it).ok()).ok_or_else(damaged)?;
            parts = count.min(MAX_PARTS);
            wanted = header["digest"].as_str().unwrap_or_default().to_owned();
            packed.extend_from_slice(rest.get(1..).unwrap_or_default());
            part += 1;
        }
        if digest(&packed) == wanted { Ok(packed) } else { Err(damaged()) }
    }

    /// Deletes the manifests of a run.
    ///
    /// # Errors
    /// Returns an error if a Secret cannot be deleted.
    pub async fn remove_manifests(&self, number: u64) -> Result<(), RecordError> {
        for part in 0..MAX_PARTS {
            let name = self.manifest_name(number, part);
            let request = DeleteRequest {
                resource: &secrets(),
                namespace: Some(&self.name.namespace),
                name: &name,
                uid: None,
                resource_version: None,
                propagation: None,
                dry_run: false,
                allow_secret: true,
            };
            match self.cluster().delete(&request).await {
                Ok(_) => {}
                Err(WriteError::NotFound { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Returns the data of a record's ConfigMap. The run is null where there is none, so that a patch removes it.
fn parts(record: &SetRecord) -> Value {
    let packed = |bytes: Vec<u8>| Value::String(STANDARD.encode(bytes));
    json!({
        "data": { SUMMARY_KEY: serde_json::to_string(&record.summary).unwrap_or_default() },
        "binaryData": {
            INVENTORY_KEY: packed(pack(&record.inventory)),
            RESULTS_KEY: packed(pack(&record.results)),
            RUN_KEY: record.run.as_ref().map(|run| packed(pack(run))),
        },
    })
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn metadata(document: &OwnedDocument, field: &str) -> String {
    let found =
        document.root().get("metadata").and_then(|it| it.get(field)).and_then(|it: Json<'_>| it.as_str());
    found.map(|text| text.into_owned()).unwrap_or_default()
}

fn config_maps() -> ApiResource {
    core("ConfigMap", "configmaps")
}

fn secrets() -> ApiResource {
    core("Secret", "secrets")
}

fn core(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    }
}

const _: () = assert!(MAX_SET_OBJECTS <= 10_000, "a record must fit in one ConfigMap");
