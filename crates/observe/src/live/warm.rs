//! Warm start: the saved state of a cluster, with which the next process begins.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taffrail_cluster::{Cluster, ListRequest, ReadError, Scope, went_back};
use taffrail_index::{Index, IndexSettings, ReopenError, Snapshot, save};
use taffrail_object::{ApiResource, Projection};

/// The reason why a saved state is not used. The cluster is then read as if for the first time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ColdStart {
    /// The bytes are damaged, or not a saved state.
    #[error("the saved state for a warm start is damaged, or is not a saved state")]
    Unreadable,
    /// The saved index cannot be used, for example because its version or rules differ.
    #[error(transparent)]
    Index(#[from] ReopenError),
    /// The identity or the present version of the connected cluster cannot be read.
    #[error(
        "cannot tell if the saved state is of this cluster: the cluster's identity or resource version cannot be read"
    )]
    Unidentified(#[source] ReadError),
    /// The saved state is of another cluster than the connected one.
    #[error("the saved state is of another cluster (identity {saved}; this cluster has {found})")]
    OtherCluster {
        /// The identity of the saved cluster.
        saved: String,
        /// The identity of the connected cluster.
        found: String,
    },
    /// The server's state is older than the saved one, as after a restore from a backup.
    #[error(
        "the server's resource version {found} is older than the saved {saved}: the server may have been restored \
         from a backup"
    )]
    WentBack {
        /// The resource version of the Namespaces in the saved state.
        saved: String,
        /// The server's present resource version.
        found: String,
    },
}

/// Writes a saved state to a file that, on Unix, only its owner may read, because it contains the objects of the
/// cluster. An existing file is replaced atomically.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write_saved(file: &Path, saved: &[u8]) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}", fastrand::u64(..)));
    let fresh = file.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&fresh).and_then(|mut to| {
        to.write_all(saved)?;
        to.sync_all()
    });
    let written = written.and_then(|()| fs::rename(&fresh, file));
    if written.is_err() {
        // That it could not be written is what is told.
        let _ = fs::remove_file(&fresh);
    }
    written
}

/// The part of a saved state before the index.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The identity of the cluster.
    cluster: String,
    /// The resource version of each saved scope, from which its watch continues.
    positions: Vec<Position>,
    /// The resource version of the saved scope of Namespaces; `None` if the state has no such scope.
    version: Option<String>,
}

/// The resource version of a scope in the saved state, from which its watch continues.
#[derive(Serialize, Deserialize)]
struct Position {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespaced: bool,
    namespace: Option<String>,
    whole: bool,
    fields: Option<String>,
    resource_version: String,
}

/// A saved state that was loaded and may be used.
pub(super) struct Warm {
    pub(super) index: Index,
    pub(super) positions: BTreeMap<Scope, String>,
}

/// Serialises the state of the cluster whose identity is `cluster`, with the resource version of each scope.
pub(super) fn write(cluster: &str, snapshot: &Snapshot, positions: &BTreeMap<Scope, String>) -> Vec<u8> {
    let namespaces = |scope: &&Scope| scope.resource.group.is_empty() && scope.resource.kind == "Namespace";
    let version = positions.keys().find(namespaces).and_then(|scope| positions.get(scope)).cloned();
    let positions = positions.iter().map(|(scope, resource_version)| {
        let ApiResource { group, version, kind, plural, namespaced } = scope.resource.clone();
        Position {
            group,
            version,
            kind,
            plural,
            namespaced,
            namespace: scope.namespace.clone(),
            whole: scope.projection == Projection::Full,
            fields: scope.fields.clone(),
            resource_version: resource_version.clone(),
        }
    });
    let head = Head { cluster: cluster.to_owned(), positions: positions.collect(), version };
    // Texts and numbers always become JSON.
    let mut out = serde_json::to_vec(&head).unwrap_or_default();
    out.push(b'\n');
    out.extend_from_slice(&save(snapshot, Timestamp::now()));
    out
}

/// Loads a saved state. Fails if it is damaged, if it is of another cluster than the one that `cluster` is connected
/// to, if the server's resource version is older than that of the saved Namespaces, if identity or version cannot be
/// read, or if the index cannot be reopened.
pub(super) async fn read(
    saved: &[u8],
    settings: IndexSettings,
    cluster: &Cluster,
) -> Result<Warm, ColdStart> {
    let end = memchr::memchr(b'\n', saved).ok_or(ColdStart::Unreadable)?;
    let head: Head = serde_json::from_slice(&saved[..end]).map_err(|_| ColdStart::Unreadable)?;
    let found = cluster.id().await.map_err(ColdStart::Unidentified)?;
    if found != head.cluster {
        return Err(ColdStart::OtherCluster { saved: head.cluster, found });
    }
    if let Some(saved) = head.version {
        let namespaces = ApiResource::namespaces();
        let request =
            ListRequest { projection: Projection::Metadata, page: 1, ..ListRequest::all(&namespaces) };
        let found = cluster.first_page(&request).await.map_err(ColdStart::Unidentified)?.unwrap_or_default();
        if went_back(&saved, &found) {
            return Err(ColdStart::WentBack { saved, found });
        }
    }
    let index = Index::reopen(&saved[end + 1..], settings, Timestamp::now())?;
    let positions = head.positions.into_iter().map(|position| {
        let Position { group, version, kind, plural, namespaced, .. } = position;
        let resource = ApiResource { group, version, kind, plural, namespaced };
        let projection = if position.whole { Projection::Full } else { Projection::Metadata };
        let scope = Scope {
            resource,
            namespace: position.namespace,
            projection,
            labels: None,
            fields: position.fields,
        };
        (scope, position.resource_version)
    });
    Ok(Warm { index, positions: positions.collect() })
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn saved_index_is_readable_only_by_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("index");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        write_saved(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_saved(&folder.path().join("none/index"), b"new").is_err());
    }
}
