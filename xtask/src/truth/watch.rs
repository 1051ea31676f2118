//! Every version of the watched objects, so that what was true for a moment between two lists is known too.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;

use super::scenes::Kind;
use crate::kube::ControlPlane;

/// Of each object the versions, where `None` is that of its end.
type Versions = BTreeMap<(Kind, String), BTreeMap<u64, Option<Arc<Value>>>>;

/// Watches the objects of the kinds until it is dropped. Of ReplicaSets and Pods it keeps the last version only.
pub(super) struct Watch {
    children: Vec<Child>,
    versions: Arc<Mutex<Versions>>,
}

impl Watch {
    pub(super) fn start(plane: &ControlPlane, context: &str, kinds: &[Kind]) -> Result<Self> {
        let mut watch = Self { children: Vec::new(), versions: Arc::default() };
        for kind in kinds.iter().copied() {
            let path = format!("{}?watch=true", kind.path());
            let mut child = plane
                .kubectl_command(context)
                .args(["get", "--raw", &path])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .context("kubectl cannot be run")?;
            let output = child.stdout.take().context("kubectl has no output")?;
            watch.children.push(child);
            let versions = Arc::clone(&watch.versions);
            // It ends with the child.
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let Ok(mut event) = serde_json::from_str::<Value>(&line) else { continue };
                    let object = event["object"].take();
                    let Some(version) = version(&object) else { continue };
                    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                    let object = (event["type"] != "DELETED").then(|| Arc::new(object));
                    let mut versions = versions.lock().unwrap_or_else(PoisonError::into_inner);
                    let versions = versions.entry((kind, name)).or_default();
                    if matches!(kind, Kind::ReplicaSet | Kind::Pod) {
                        versions.clear();
                    }
                    versions.insert(version, object);
                }
            });
        }
        Ok(watch)
    }

    /// The versions of an object after `first` and before `last`.
    pub(super) fn between(&self, kind: Kind, name: &str, first: u64, last: u64) -> Vec<Option<Arc<Value>>> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(versions) = versions.get(&(kind, name.to_owned())) else { return Vec::new() };
        let after = versions.range(first.saturating_add(1)..);
        after.take_while(|(version, _)| **version < last).map(|(_, object)| object.clone()).collect()
    }

    /// The objects of a kind as they are now.
    pub(super) fn latest(&self, kind: Kind) -> Vec<Arc<Value>> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind = versions.iter().filter(|((own, _), _)| *own == kind);
        of_kind.filter_map(|(_, versions)| versions.last_key_value()?.1.clone()).collect()
    }

    /// Whether the watch has come to this version of the object.
    pub(super) fn has(&self, kind: Kind, name: &str, version: u64) -> bool {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions
            .get(&(kind, name.to_owned()))
            .is_some_and(|versions| versions.range(version..).next().is_some())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The resource version: those of one cluster's objects can be compared, since Kubernetes 1.35 by promise.
pub(super) fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}
