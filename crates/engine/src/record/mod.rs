//! The record of a set in the cluster, which one process holds at a time.
//!
//! A holder writes its record under the condition that nobody wrote it since. What it finds there instead decides: if the record
//! still names it as the holder, a person edited the record meanwhile, and the holder writes what it knows; if not, the set was
//! taken over, and the holder never writes again.

mod form;
mod kept;

use std::convert::Infallible;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_apps::sets::{
    RECORD_LABEL, RunResults, SUMMARY_KEY, SetHolder, SetName, SetRecordError, SetSummary,
};
use taffrail_cluster::{
    ApiResource, Cluster, CreateRequest, DeleteRequest, PatchRequest, PatchType, ReadError, Reason,
    WriteError, one_line,
};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{InventoryEntry, Projection};
use taffrail_plan::sync::SyncRun;
use tokio::sync::Mutex;

/// Maximum time for one read or write of a record, with its retries.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// Maximum number of times that a record is written under another version, or taken from a holder that ended.
const TRIES: usize = 10;

/// Maximum length of the message of a run, in characters.
const MAX_MESSAGE: usize = 1_000;

/// The reason why the record of a set cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Another process holds the set, and lives.
    #[error("{} holds the set", .0.actor)]
    Held(SetHolder),
    /// Another process took the set over, since this one had not written for long; `None` if the record was deleted, or freed
    /// by hand.
    #[error("this process does not hold the set any more: {}", lost(.0.as_ref()))]
    Lost(Option<SetHolder>),
    /// This process could not write the record for so long that another one may take the set over soon.
    #[error("the record of the set could not be written for {} s, so that another process may take it over", .0.as_secs())]
    Silent(Duration, #[source] Option<Box<RecordError>>),
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
    /// The namespace of the set does not exist.
    #[error("the namespace {0} of the set does not exist")]
    NoNamespace(String),
    /// The set has too many objects, with those that are not declared any more and still exist.
    #[error(
        "the set would have {count} objects, with those that it applied before, more than the {most} of which a record can be kept"
    )]
    TooMany {
        /// The number of objects.
        count: usize,
        /// The maximum.
        most: usize,
    },
    /// The set has too many objects, or too long names, for one ConfigMap.
    #[error("the record of the set would have {bytes} bytes, more than the {most} that a ConfigMap can hold")]
    TooLarge {
        /// The size.
        bytes: usize,
        /// The maximum.
        most: usize,
    },
    /// The manifests cannot be kept, for this reason; all else is possible.
    #[error("the manifests cannot be kept for a rollback: {0}")]
    NotKept(String),
    /// The manifests of a run are missing, or were cut or edited.
    #[error("the manifests of run {0} are not as Taffrail wrote them")]
    Manifests(u64),
    /// The API server does not let the kept manifests be read.
    #[error("cannot read the manifests that the set keeps")]
    ManifestsRead(#[source] ReadError),
    /// The API server does not let the kept manifests be deleted.
    #[error("cannot delete the manifests that the set keeps")]
    ManifestsRemoved(#[source] WriteError),
    /// The API server does not let the record be read.
    #[error("cannot read the record of the set")]
    Read(#[from] ReadError),
    /// The API server does not let the record be written.
    #[error("cannot write the record of the set")]
    Write(#[from] WriteError),
}

fn lost(holder: Option<&SetHolder>) -> String {
    match holder {
        Some(holder) => format!("{} took it over", holder.actor),
        None => "its record was deleted or freed".to_owned(),
    }
}

/// The hint for a user without a right on the record.
const RIGHTS: &str = "ask for a role that allows `get`, `create`, `patch` and `delete` on ConfigMaps in the namespace of the set, or \
                      keep the set in another namespace with -n; `kubectl auth can-i create configmaps -n NAMESPACE` checks it";

impl RecordError {
    /// Returns a hint for the user; empty if there is none.
    pub fn hint(&self) -> &'static str {
        match self {
            RecordError::Held(_) => "wait until it ends, and try again",
            RecordError::Lost(_) => "look at what the other process did with `taffrail history --set`",
            RecordError::Silent(_, Some(cause)) if !cause.is_passing() => cause.hint(),
            RecordError::Silent(..) => "give the same command again: it continues the run",
            RecordError::Damaged { cause: SetRecordError::Newer(_), .. } => "update Taffrail",
            RecordError::Damaged { .. } => {
                "restore the ConfigMap from a backup; without it Taffrail does not know which objects the set has"
            }
            RecordError::Foreign(_) => "choose another name for the set, or another namespace",
            RecordError::NoNamespace(_) => {
                "create it with `kubectl create namespace`, or choose another namespace for the set with -n"
            }
            RecordError::TooMany { .. } => {
                "delete what is not declared any more with `taffrail prune --set` first, or divide the manifests into several sets"
            }
            RecordError::TooLarge { .. } => "divide the manifests into several sets",
            RecordError::NotKept(_) => {
                "syncs work without it; for rollbacks ask for a role that allows `get`, `create`, `patch`, `list` and `delete` on \
                 Secrets in the namespace of the set"
            }
            RecordError::Manifests(_) => "sync with the manifests from their source instead",
            RecordError::ManifestsRead(error) if error.reason() == Reason::Forbidden => {
                "ask for a role that allows `get` on Secrets in the namespace of the set, or sync with the manifests from their \
                 source instead"
            }
            RecordError::ManifestsRemoved(error) if error.reason() == Reason::Forbidden => {
                "ask for a role that allows `list` and `delete` on Secrets in the namespace of the set"
            }
            RecordError::Read(error) if error.reason() == Reason::Forbidden => RIGHTS,
            RecordError::Write(error) if error.reason() == Reason::Forbidden => RIGHTS,
            RecordError::Read(error) | RecordError::ManifestsRead(error) => error.reason().hint(),
            RecordError::Write(error) | RecordError::ManifestsRemoved(error) => error.hint(),
        }
    }

    /// Returns true if the process cannot hold the set after this error.
    fn is_end(&self) -> bool {
        matches!(self, RecordError::Lost(_) | RecordError::Damaged { .. } | RecordError::Foreign(_))
    }

    /// Returns true if the same request may succeed soon.
    fn is_passing(&self) -> bool {
        let reason = match self {
            RecordError::Read(error) => error.reason(),
            RecordError::Write(error) => error.reason(),
            _ => return false,
        };
        matches!(
            reason,
            Reason::Timeout
                | Reason::ConnectionRefused
                | Reason::ConnectionLost
                | Reason::ConnectionFailed
                | Reason::NameNotResolved
                | Reason::ProxyFailed
                | Reason::NotJson
                | Reason::ServerError
                | Reason::TooManyRequests
                | Reason::Conflict
        )
    }
}

/// The record of a set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetRecord {
    /// The state of the set.
    pub summary: SetSummary,
    /// The objects that it applied.
    pub inventory: Vec<InventoryEntry>,
    /// The results of its last runs, newest first.
    pub results: Vec<RunResults>,
    /// The run that is not ended.
    pub run: Option<SyncRun>,
}

/// The times by which holders are judged, and show that they live.
#[derive(Debug, Clone, Copy)]
pub struct HolderTimes {
    /// The pause between two looks at the record of another holder.
    pub poll: Duration,
    /// The time without a write after which a holder counts as dead, by the monotonic clock of this process.
    pub patience: Duration,
    /// The pause between two writes by which a holder shows that it lives.
    pub heartbeat: Duration,
}

impl Default for HolderTimes {
    fn default() -> HolderTimes {
        let [poll, patience, heartbeat] = [1, 60, 15].map(Duration::from_secs);
        HolderTimes { poll, patience, heartbeat }
    }
}

impl HolderTimes {
    /// Returns the time without a write after which a holder ends by itself: what it sent before is answered, or given up by the
    /// API server, until another process may succeed it.
    fn silence(&self) -> Duration {
        self.patience * 2 / 3
    }
}

/// The ConfigMap as this process wrote it last.
#[derive(Debug, Clone)]
struct Stored {
    uid: String,
    version: String,
    summary: SetSummary,
}

impl Stored {
    fn of(found: &OwnedDocument, summary: SetSummary) -> Stored {
        Stored { uid: metadata(found, "uid"), version: metadata(found, "resourceVersion"), summary }
    }
}

/// What a holder knows of its own writes.
#[derive(Debug)]
struct Liveness {
    /// The time at which the last successful write was sent.
    written: Instant,
    /// The reason why the last write after it failed.
    failure: Option<Box<RecordError>>,
}

/// Reads and writes the record of one set.
#[derive(Debug)]
pub struct RecordStore {
    cluster: Cluster,
    name: SetName,
    process: String,
    actor: String,
    times: HolderTimes,
    /// The record as it stands in the cluster; `None` unless this process holds the set.
    held: Mutex<Option<Stored>>,
    liveness: std::sync::Mutex<Liveness>,
    /// True once the run deletes the namespace of the record, which goes with it.
    may_vanish: AtomicBool,
}

/// Reads the record of a set without holding it; `None` if there is no such set.
///
/// # Errors
/// Returns an error if it cannot be read, is damaged, or is somebody else's.
pub async fn history(cluster: &Cluster, set: &SetName) -> Result<Option<SetRecord>, RecordError> {
    RecordStore::new(cluster.clone(), set.clone(), String::new()).read().await
}

impl RecordStore {
    /// Creates a store for a process of its own, which is noted as `actor`.
    pub fn new(cluster: Cluster, name: SetName, actor: String) -> RecordStore {
        let process = format!("{:016x}", fastrand::u64(..));
        let (times, held) = (HolderTimes::default(), Mutex::new(None));
        let liveness = std::sync::Mutex::new(Liveness { written: Instant::now(), failure: None });
        let may_vanish = AtomicBool::new(false);
        RecordStore { cluster, name, process, actor, times, held, liveness, may_vanish }
    }

    /// Notes that the run deletes the namespace of the record: that it is gone from now on is no loss.
    pub fn let_vanish(&self) {
        self.may_vanish.store(true, Ordering::Relaxed);
    }

    /// Returns true for the error that the record is gone, where the run deletes its namespace.
    pub fn has_vanished(&self, error: &RecordError) -> bool {
        self.may_vanish.load(Ordering::Relaxed) && matches!(error, RecordError::Lost(None))
    }

    /// Changes the times by which holders are judged.
    pub fn with_times(self, times: HolderTimes) -> RecordStore {
        RecordStore { times, ..self }
    }

    fn liveness(&self) -> std::sync::MutexGuard<'_, Liveness> {
        self.liveness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_written(&self, sent: Instant) {
        *self.liveness() = Liveness { written: sent, failure: None };
    }

    /// Notes that a write failed; fails if nothing was written for `silence`.
    fn note_failure(&self, error: Option<RecordError>, silence: Duration) -> Result<(), RecordError> {
        let mut liveness = self.liveness();
        if let Some(error) = error {
            liveness.failure = Some(Box::new(error));
        }
        let silent = liveness.written.elapsed();
        match silent >= silence {
            true => Err(RecordError::Silent(silent, liveness.failure.take())),
            false => Ok(()),
        }
    }

    /// Returns the connection for one request.
    fn cluster(&self) -> Cluster {
        self.cluster.within(REQUEST_TIME)
    }

    /// Reads the record; `None` if there is no such set.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, is damaged, or is somebody else's.
    pub async fn read(&self) -> Result<Option<SetRecord>, RecordError> {
        Ok(self.look().await?.map(|(record, _)| record))
    }

    async fn get(&self) -> Result<Option<OwnedDocument>, RecordError> {
        let key = self.name.record_key();
        let namespace = Some(&*self.name.namespace);
        Ok(self.cluster().get(&config_maps(), namespace, &key.name, Projection::Full).await?)
    }

    /// Reads the record, with its state in the cluster.
    async fn look(&self) -> Result<Option<(SetRecord, Stored)>, RecordError> {
        let Some(found) = self.get().await? else { return Ok(None) };
        let label = found.root().at(&["metadata", "labels", RECORD_LABEL.0]).and_then(|it| it.as_str());
        if label.as_deref() != Some(RECORD_LABEL.1) {
            return Err(RecordError::Foreign(self.name.record_key().path()));
        }
        let record = form::read(&found).map_err(|cause| self.damaged(cause))?;
        let stored = Stored::of(&found, record.summary.clone());
        Ok(Some((record, stored)))
    }

    fn damaged(&self, cause: SetRecordError) -> RecordError {
        RecordError::Damaged { record: self.name.record_key().path(), cause }
    }

    /// Creates the namespace of the set unless it exists.
    ///
    /// # Errors
    /// Returns an error if the API server does not let it be created.
    pub(crate) async fn create_namespace(&self) -> Result<(), RecordError> {
        let resource = ApiResource { namespaced: false, ..core("Namespace", "namespaces") };
        let body = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": self.name.namespace },
        });
        let body = body.to_string();
        let request =
            CreateRequest { resource: &resource, namespace: None, body: body.as_bytes(), dry_run: false };
        match self.cluster().create(&request).await {
            Ok(_) | Err(WriteError::Conflict { .. }) => Ok(()),
            Err(error) => {
                match self.cluster().get(&resource, None, &self.name.namespace, Projection::Metadata).await {
                    // Who may not create namespaces need not if it exists.
                    Ok(Some(_)) => Ok(()),
                    Ok(None) | Err(_) => Err(error.into()),
                }
            }
        }
    }

    /// Becomes the holder of the set, whose record is created if there is none. A holder that does not write for
    /// [`HolderTimes::patience`] is succeeded; `told` is called with it when the wait begins. The record is as the holder before
    /// saved it last.
    ///
    /// # Errors
    /// [`RecordError::Held`] if another holder lives.
    pub async fn take(&self, told: &mut dyn FnMut(&SetHolder)) -> Result<SetRecord, RecordError> {
        let mut held = self.held.lock().await;
        let mut waiting: Option<(SetHolder, Instant)> = None;
        let mut tries = 0;
        loop {
            let mut is_free = true;
            let found = self.look().await?;
            if let Some(holder) = found.as_ref().and_then(|(record, _)| record.summary.holder.as_ref())
                && holder.process != self.process
            {
                match &waiting {
                    None => {
                        told(holder);
                        waiting = Some((holder.clone(), Instant::now()));
                        is_free = false;
                    }
                    Some((before, _)) if (&before.process, before.beat) != (&holder.process, holder.beat) => {
                        return Err(RecordError::Held(holder.clone()));
                    }
                    Some((_, since)) => is_free = since.elapsed() >= self.times.patience,
                }
            }
            if is_free {
                tries += 1;
                let (sent, exists) = (Instant::now(), found.is_some());
                match self.try_to_take(found).await {
                    Ok((record, stored)) => {
                        self.note_written(sent);
                        *held = Some(stored);
                        return Ok(record);
                    }
                    // Another process was faster, or the answer was lost: the record tells.
                    Err(WriteError::Conflict { .. } | WriteError::Uncertain(_)) if tries < TRIES => {}
                    // The record was deleted meanwhile.
                    Err(WriteError::NotFound { .. }) if exists && tries < TRIES => {}
                    Err(WriteError::NotFound { .. }) => {
                        return Err(RecordError::NoNamespace(self.name.namespace.clone()));
                    }
                    Err(error) => return Err(error.into()),
                }
            } else {
                tokio::time::sleep(self.times.poll).await;
            }
        }
    }

    /// Writes this process into the record that was found, of which all else stays, or into a new one.
    async fn try_to_take(
        &self,
        found: Option<(SetRecord, Stored)>,
    ) -> Result<(SetRecord, Stored), WriteError> {
        let Some((mut record, stored)) = found else { return self.create().await };
        let beat = record.summary.holder.as_ref().map_or(0, |holder| holder.beat);
        record.summary.holder = Some(self.holder(beat + 1));
        let stored = self.patch(self.summary_values(&record.summary), &record.summary, &stored).await?;
        Ok((record, stored))
    }

    fn holder(&self, beat: u64) -> SetHolder {
        SetHolder { process: self.process.clone(), actor: self.actor.clone(), beat }
    }

    async fn create(&self) -> Result<(SetRecord, Stored), WriteError> {
        let summary = SetSummary { holder: Some(self.holder(0)), ..SetSummary::default() };
        let record = SetRecord { summary, ..SetRecord::default() };
        let key = self.name.record_key();
        // An empty record is not too large.
        let mut body = form::values(&record).unwrap_or_default();
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
        let stored = Stored::of(&created, record.summary.clone());
        Ok((record, stored))
    }

    /// Writes the record, as the holder of the set. What a person edited meanwhile is overwritten.
    ///
    /// # Errors
    /// [`RecordError::Lost`] if this process does not hold the set any more, now and for each later write.
    pub async fn save(&self, record: &mut SetRecord) -> Result<(), RecordError> {
        if let Some(run) = record.summary.runs.first_mut() {
            run.message = one_line(&run.message, MAX_MESSAGE);
        }
        self.write(true, self.times.silence(), |before| {
            record.summary.holder = before.holder.clone();
            let body = form::values(record)?;
            Ok((body, record.summary.clone()))
        })
        .await?;
        if let Some(held) = &*self.held.lock().await {
            record.summary.holder.clone_from(&held.summary.holder);
        }
        Ok(())
    }

    /// Shows others that this process lives.
    ///
    /// # Errors
    /// As [`RecordStore::save`].
    pub async fn beat(&self) -> Result<(), RecordError> {
        self.beat_within(self.times.silence()).await
    }

    async fn beat_within(&self, silence: Duration) -> Result<(), RecordError> {
        self.write(true, silence, |before| Ok((self.summary_values(before), before.clone()))).await
    }

    /// Shows others that this process lives, until it does not hold the set any more, or cannot show it in time.
    pub async fn keep_alive(&self) -> RecordError {
        match self.keep_on().await {
            Err(error) => error,
        }
    }

    async fn keep_on(&self) -> Result<Infallible, RecordError> {
        let HolderTimes { poll, heartbeat, .. } = self.times;
        let limit = self.times.silence();
        let mut pause = heartbeat;
        loop {
            tokio::time::sleep(pause).await;
            // A process that was stopped for long tries it once all the same: nobody may want the set.
            let left = limit.saturating_sub(self.liveness().written.elapsed()).max(poll);
            let failure = match tokio::time::timeout(left, self.beat_within(Duration::ZERO)).await {
                Ok(Ok(())) => {
                    pause = heartbeat;
                    continue;
                }
                Ok(Err(error)) if self.has_vanished(&error) => {
                    pause = heartbeat;
                    continue;
                }
                Ok(Err(error)) if error.is_end() => return Err(error),
                Ok(Err(RecordError::Silent(_, cause))) => cause.map(|cause| *cause),
                Ok(Err(error)) => Some(error),
                // It, or a write before it, is not answered.
                Err(_) => None,
            };
            self.note_failure(failure, limit)?;
            pause = poll;
        }
    }

    /// Gives the set free, with its record as it stands here.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written; none if another process has taken the set, since nothing is lost then.
    pub async fn release(&self, mut record: SetRecord) -> Result<(), RecordError> {
        let freed = self
            .write(false, self.times.silence(), |_| {
                record.summary.holder = None;
                Ok((form::values(&record)?, record.summary.clone()))
            })
            .await;
        self.end(freed).await
    }

    /// Gives the set free, with its record as it was saved last; a record without a run was created in vain, and is deleted.
    ///
    /// # Errors
    /// As [`RecordStore::release`].
    pub async fn give_up(&self) -> Result<(), RecordError> {
        let stored = self.held.lock().await.clone();
        if stored.as_ref().is_some_and(|stored| stored.summary.runs.is_empty()) {
            let deleted = self.delete().await;
            return self.end(deleted).await;
        }
        let freed = self
            .write(false, self.times.silence(), |before| {
                let after = SetSummary { holder: None, ..before.clone() };
                Ok((self.summary_values(&after), after))
            })
            .await;
        self.end(freed).await
    }

    async fn end(&self, freed: Result<(), RecordError>) -> Result<(), RecordError> {
        *self.held.lock().await = None;
        match freed {
            Err(RecordError::Lost(_)) => Ok(()),
            other => other,
        }
    }

    /// Fails unless this process holds the set, as far as it knows.
    async fn check_held(&self) -> Result<(), RecordError> {
        match &*self.held.lock().await {
            Some(_) => Ok(()),
            None => Err(RecordError::Lost(None)),
        }
    }

    /// Writes the values that `form` makes of the summary as it was written last; `stays` says that this process is the holder
    /// after it, too. What fails for now is tried again until nothing was written for `silence`.
    async fn write(
        &self,
        stays: bool,
        silence: Duration,
        form: impl FnOnce(&SetSummary) -> Result<(Value, SetSummary), RecordError>,
    ) -> Result<(), RecordError> {
        let mut held = self.held.lock().await;
        let Some(stored) = &mut *held else { return Err(RecordError::Lost(None)) };
        // Counted before it is sent: a write that nobody saw must not be taken for the next one.
        if let Some(holder) = stored.summary.holder.as_mut().filter(|_| stays) {
            holder.beat += 1;
        }
        let before = stored.summary.clone();
        let (values, after) = form(&before)?;
        let outcome = loop {
            let sent = Instant::now();
            match self.overwrite(stored, &values, &after).await {
                Ok(()) => {
                    self.note_written(sent);
                    break Ok(());
                }
                // An API server that starts again is waited for, as long as nobody else may take the set.
                Err(error) if error.is_passing() => {
                    if let Err(silent) = self.note_failure(Some(error), silence) {
                        break Err(silent);
                    }
                }
                Err(error) => break Err(error),
            }
            tokio::time::sleep(self.times.poll).await;
        };
        if outcome.as_ref().is_err_and(RecordError::is_end) {
            *held = None;
        }
        outcome
    }

    async fn overwrite(
        &self,
        stored: &mut Stored,
        values: &Value,
        after: &SetSummary,
    ) -> Result<(), RecordError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.patch(values.clone(), after, stored).await {
                Ok(now) if now.uid == stored.uid => {
                    *stored = now;
                    return Ok(());
                }
                Ok(_) | Err(WriteError::NotFound { .. }) => return Err(RecordError::Lost(None)),
                Err(error @ (WriteError::Conflict { .. } | WriteError::Uncertain(_))) => error,
                Err(error) => return Err(error.into()),
            };
            let Some(found) = self.get().await? else { return Err(RecordError::Lost(None)) };
            let summary = form::read_summary(&found).map_err(|cause| self.damaged(cause))?;
            let now = Stored::of(&found, summary);
            if now.uid != stored.uid {
                return Err(RecordError::Lost(now.summary.holder));
            }
            // The answer was lost, not the write. No two writes have the same beat.
            if now.summary == *after {
                *stored = now;
                return Ok(());
            }
            if now.summary.holder.as_ref().is_none_or(|holder| holder.process != self.process) {
                return Err(RecordError::Lost(now.summary.holder));
            }
            stored.version = now.version;
            // A server that fails is given a pause.
            if tries >= TRIES || matches!(error, WriteError::Uncertain(_)) {
                return Err(error.into());
            }
        }
    }

    fn summary_values(&self, summary: &SetSummary) -> Value {
        json!({ "data": { SUMMARY_KEY: form::summary_text(summary) } })
    }

    /// Sends a merge patch of the record, if nobody wrote it since `stored`.
    async fn patch(
        &self,
        mut values: Value,
        summary: &SetSummary,
        stored: &Stored,
    ) -> Result<Stored, WriteError> {
        values["metadata"] = json!({
            "resourceVersion": stored.version, "labels": { RECORD_LABEL.0: RECORD_LABEL.1 },
        });
        let body = values.to_string();
        let request = PatchRequest {
            resource: &config_maps(),
            namespace: Some(&self.name.namespace),
            name: &self.name.record_key().name,
            subresource: None,
            patch_type: PatchType::Merge,
            body: body.as_bytes(),
            dry_run: false,
        };
        let written = self.cluster().patch(&request).await?;
        Ok(Stored::of(&written, summary.clone()))
    }

    /// Deletes the kept manifests and the record of the set that this process holds.
    ///
    /// # Errors
    /// Returns an error if the API server does not let them be deleted.
    pub async fn remove(&self, record: SetRecord) -> Result<(), RecordError> {
        // A process whose set was taken over deletes nothing.
        match self.beat().await {
            Err(error) if self.has_vanished(&error) => return Ok(()),
            beaten => beaten?,
        }
        // Who has no right on Secrets has kept none.
        let kept: Vec<u64> =
            record.summary.runs.iter().filter(|run| run.is_kept).map(|run| run.number).collect();
        self.remove_manifests(&kept, &|_| false).await?;
        let deleted = self.delete().await;
        *self.held.lock().await = None;
        deleted
    }

    /// Deletes the ConfigMap that this process holds.
    async fn delete(&self) -> Result<(), RecordError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let Some(stored) = self.held.lock().await.clone() else { return Err(RecordError::Lost(None)) };
            let request = DeleteRequest {
                resource: &config_maps(),
                namespace: Some(&self.name.namespace),
                name: &self.name.record_key().name,
                uid: Some(&stored.uid),
                resource_version: Some(&stored.version),
                propagation: None,
                dry_run: false,
                allow_secret: false,
            };
            match self.cluster().delete(&request).await {
                Ok(_) | Err(WriteError::NotFound { .. }) => return Ok(()),
                Err(WriteError::Conflict { .. } | WriteError::Uncertain(_)) if tries < TRIES => {
                    match self.beat().await {
                        Ok(()) => {}
                        // The answer to the deletion was lost.
                        Err(RecordError::Lost(None)) => return Ok(()),
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn metadata(document: &OwnedDocument, field: &str) -> String {
    let found = document.root().at(&["metadata", field]).and_then(|it| it.as_str());
    found.map(|text| text.into_owned()).unwrap_or_default()
}

fn config_maps() -> ApiResource {
    core("ConfigMap", "configmaps")
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
