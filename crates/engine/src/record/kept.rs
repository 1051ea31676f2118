//! The manifests of earlier runs, kept in Secrets for a rollback.
//!
//! The packed manifests of run 7 of the set `shop` are in the Secrets `taffrail-set-shop-v7-0`, `taffrail-set-shop-v7-1` and so
//! on. Each has a header of one line before its part, by which a missing, cut or edited part, or one of another run, is found.

use serde::{Deserialize, Serialize};
use taffrail_apps::sets::{MANIFESTS_LABEL, SET_MARK, SetRun, pack, unpack_at_most};
use taffrail_cluster::{
    ApiResource, DeleteRequest, ListRequest, OwnSecret, ReadError, Reason, WriteError, chain,
};
use taffrail_object::Projection;

use super::form::digest;
use super::{RecordError, RecordStore, core, metadata};
use crate::request::ManifestText;

/// The key of the manifests in their Secrets.
const MANIFESTS_KEY: &str = "manifests";

/// Maximum size of the part of manifests in one Secret, in bytes.
const MAX_PART_BYTES: usize = 700 << 10;

/// Maximum number of Secrets with the manifests of one run.
const MAX_PARTS: usize = 100;

/// Maximum size of the manifests of one run before they are packed, in bytes.
const MAX_MANIFEST_BYTES: usize = 64 << 20;

/// Maximum number of times that a part is written.
const TRIES: usize = 3;

/// The line before a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// The digest of the run's manifests and options, as its record has it.
    run: String,
    /// The index of the part.
    part: usize,
    /// The number of parts.
    parts: usize,
    /// The digest of all parts together.
    sha256: String,
}

impl RecordStore {
    /// Keeps the manifests of a run, in as many Secrets as they need.
    ///
    /// # Errors
    /// [`RecordError::NotKept`] if the user may not write Secrets, or if the manifests are too large: a sync is possible all the
    /// same. Another error if the set was lost, or if the API server does not answer.
    pub async fn keep_manifests(&self, run: &SetRun, files: &[ManifestText]) -> Result<(), RecordError> {
        self.check_held().await?;
        let size: usize = files.iter().map(|file| file.path.len() + file.content.len()).sum();
        let packed = pack(files);
        let parts: Vec<&[u8]> = packed.chunks(MAX_PART_BYTES).collect();
        if size > MAX_MANIFEST_BYTES / 2 || parts.len() > MAX_PARTS {
            return Err(RecordError::NotKept(format!("they have {} MiB", size >> 20)));
        }
        for (at, part) in parts.iter().enumerate() {
            let sha256 = digest(&packed);
            let header = Header { run: run.digest.clone(), part: at, parts: parts.len(), sha256 };
            let header = serde_json::to_vec(&header).unwrap_or_default();
            let value = [&*header, b"\n", part].concat();
            self.keep_part(&self.secret_name(run.number, at), &value).await?;
        }
        Ok(())
    }

    async fn keep_part(&self, name: &str, value: &[u8]) -> Result<(), RecordError> {
        let set = self.name.to_string();
        let secret = OwnSecret {
            namespace: &self.name.namespace,
            name,
            key: MANIFESTS_KEY,
            labels: &[MANIFESTS_LABEL],
            annotations: &[(SET_MARK, &set)],
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let cluster = self.cluster();
            let old = cluster.read_own_secret(&secret).await.map_err(unkept_read)?;
            if old.as_ref().and_then(|old| old.value.as_deref()) == Some(value) {
                return Ok(());
            }
            match cluster.write_own_secret(&secret, value, old.as_ref().map(|old| &*old.version)).await {
                Ok(_) => return Ok(()),
                // What is there now is read: a lost answer may have been a success.
                Err(WriteError::Conflict { .. } | WriteError::Uncertain(_)) if tries < TRIES => {}
                Err(error) => return Err(unkept_write(error)),
            }
        }
    }

    /// Reads the manifests of a run.
    ///
    /// # Errors
    /// [`RecordError::Manifests`] if a part is missing, was cut or edited, or is of another run.
    pub async fn read_manifests(&self, run: &SetRun) -> Result<Vec<ManifestText>, RecordError> {
        let damaged = || RecordError::Manifests(run.number);
        let mut packed = Vec::new();
        let mut first: Option<Header> = None;
        let mut part = 0;
        while first.as_ref().is_none_or(|first| part < first.parts) {
            let name = self.secret_name(run.number, part);
            let secret = OwnSecret {
                namespace: &self.name.namespace,
                name: &name,
                key: MANIFESTS_KEY,
                ..OwnSecret::default()
            };
            let read = self.cluster().read_own_secret(&secret).await.map_err(RecordError::ManifestsRead)?;
            let value = read.and_then(|read| read.value).ok_or_else(damaged)?;
            let end = value.iter().position(|byte| *byte == b'\n').ok_or_else(damaged)?;
            let (header, rest) = value.split_at(end);
            let header: Header = serde_json::from_slice(header).map_err(|_| damaged())?;
            let first = first.get_or_insert_with(|| header.clone());
            let wanted = Header { run: run.digest.clone(), part, ..first.clone() };
            if header != wanted || wanted.parts > MAX_PARTS {
                return Err(damaged());
            }
            packed.extend_from_slice(rest.get(1..).unwrap_or_default());
            part += 1;
        }
        if first.is_none_or(|first| first.sha256 != digest(&packed)) {
            return Err(damaged());
        }
        unpack_at_most(MANIFESTS_KEY, &packed, MAX_MANIFEST_BYTES).map_err(|_| damaged())
    }

    /// Deletes the kept manifests of the set, except those of some runs. All Secrets of the set are found by their label; if the
    /// user may not list Secrets, those of the runs with the numbers `known` are found by their names.
    ///
    /// # Errors
    /// Returns an error if a Secret cannot be deleted.
    pub async fn remove_manifests(
        &self,
        known: &[u64],
        stay: &(dyn Fn(u64) -> bool + Sync),
    ) -> Result<(), RecordError> {
        self.check_held().await?;
        let selector = format!("{}={}", MANIFESTS_LABEL.0, MANIFESTS_LABEL.1);
        let listed = self
            .cluster()
            .list(&ListRequest {
                namespace: Some(&self.name.namespace),
                projection: Projection::Metadata,
                label_selector: Some(&selector),
                ..ListRequest::all(&secrets())
            })
            .await;
        match listed {
            Ok(listing) => {
                let set = self.name.to_string();
                for found in &listing.objects {
                    let mark =
                        found.root().at(&["metadata", "annotations", SET_MARK]).and_then(|it| it.as_str());
                    let name = metadata(found, "name");
                    let number = self.number_of(&name);
                    if mark.as_deref() == Some(&*set) && number.is_some_and(|number| !stay(number)) {
                        self.delete_secret(&name, Some(&metadata(found, "uid"))).await?;
                    }
                }
                Ok(())
            }
            Err(error) if error.reason() == Reason::Forbidden => {
                for number in known.iter().filter(|number| !stay(**number)) {
                    let mut part = 0;
                    while part < MAX_PARTS
                        && self.delete_secret(&self.secret_name(*number, part), None).await?
                    {
                        part += 1;
                    }
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a Secret; returns false if there is none.
    async fn delete_secret(&self, name: &str, uid: Option<&str>) -> Result<bool, RecordError> {
        let request = DeleteRequest {
            resource: &secrets(),
            namespace: Some(&self.name.namespace),
            name,
            uid,
            resource_version: None,
            propagation: None,
            dry_run: false,
            allow_secret: true,
        };
        match self.cluster().delete(&request).await {
            Ok(_) => Ok(true),
            // Another one has the name now, which nobody asked to delete.
            Err(WriteError::NotFound { .. } | WriteError::Conflict { .. }) => Ok(false),
            Err(error) => Err(RecordError::ManifestsRemoved(error)),
        }
    }

    fn secret_name(&self, number: u64, part: usize) -> String {
        format!("{}-v{number}-{part}", self.name.record_key().name)
    }

    /// Returns the number of the run whose manifests a Secret of this name holds.
    fn number_of(&self, name: &str) -> Option<u64> {
        let rest = name.strip_prefix(&self.name.record_key().name)?.strip_prefix("-v")?;
        let (number, part) = rest.split_once('-')?;
        part.parse::<usize>().ok()?;
        number.parse().ok()
    }
}

fn unkept_read(error: ReadError) -> RecordError {
    match error.reason() {
        Reason::Forbidden => RecordError::NotKept(chain(&error)),
        _ => error.into(),
    }
}

fn unkept_write(error: WriteError) -> RecordError {
    match error.reason() {
        // Also a quota, or a webhook that wants no such Secret.
        Reason::Forbidden | Reason::Invalid => RecordError::NotKept(chain(&error)),
        _ => error.into(),
    }
}

fn secrets() -> ApiResource {
    core("Secret", "secrets")
}
