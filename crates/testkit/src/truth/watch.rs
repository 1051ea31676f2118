//! Records every version of the watched objects, so that states between two lists are known too.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;

use super::scenes::Kind;
use crate::kube::{ControlPlane, version};

type Key = (Kind, String);

/// The objects of all watched kinds at one resource version.
#[derive(Clone, Default)]
pub(super) struct World(pub(super) BTreeMap<Key, Arc<Value>>);

impl World {
    pub(super) fn get(&self, kind: Kind, name: &str) -> Option<&Arc<Value>> {
        self.0.get(&(kind, name.to_owned()))
    }

    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Arc<Value>> + Clone {
        self.0.iter().filter(move |((own, _), _)| *own == kind).map(|(_, object)| object)
    }

    fn apply(&mut self, change: Change) {
        match change.object {
            Some(object) => self.0.insert(change.key, object),
            None => self.0.remove(&change.key),
        };
    }
}

/// A new version of an object; `None` if it was deleted.
#[derive(Clone)]
struct Change {
    version: u64,
    key: Key,
    object: Option<Arc<Value>>,
}

/// A watch of the objects of some kinds, until it is dropped.
pub(super) struct Watch {
    children: Vec<Child>,
    changes: Arc<Mutex<Vec<Change>>>,
    /// The objects at the resource version `first` of the last call of [`Watch::between`].
    world: World,
    waiting: VecDeque<Change>,
}

impl Watch {
    pub(super) fn start(plane: &ControlPlane, context: &str, kinds: &[Kind]) -> Result<Self> {
        let mut watch = Self {
            children: Vec::new(),
            changes: Arc::default(),
            world: World::default(),
            waiting: VecDeque::new(),
        };
        for kind in kinds.iter().copied() {
            let path = format!("{}?watch=true", kind.path());
            let mut child = plane
                .kubectl_command(context)
                .args(["get", "--raw", &path])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .context("cannot run kubectl, which watches the apps")?;
            let output =
                child.stdout.take().context("cannot read what kubectl, which watches the apps, writes")?;
            watch.children.push(child);
            let changes = Arc::clone(&watch.changes);
            // The thread ends with the child.
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let Ok(mut event) = serde_json::from_str::<Value>(&line) else { continue };
                    let object = event["object"].take();
                    let Some(version) = version(&object) else { continue };
                    let key = (kind, object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
                    let object = (event["type"] != "DELETED").then(|| Arc::new(object));
                    let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
                    changes.push(Change { version, key, object });
                }
            });
        }
        Ok(watch)
    }

    /// Returns the objects at the resource version `first`, and after each change up to `last`.
    pub(super) fn between(&mut self, first: u64, last: u64) -> Vec<World> {
        self.waiting.extend(self.changes.lock().unwrap_or_else(PoisonError::into_inner).drain(..));
        // Each watch is in order; together they are not.
        self.waiting.make_contiguous().sort_by_key(|change| change.version);
        while self.waiting.front().is_some_and(|change| change.version <= first) {
            self.waiting.pop_front().into_iter().for_each(|change| self.world.apply(change));
        }
        let mut worlds = vec![self.world.clone()];
        for change in self.waiting.iter().take_while(|change| change.version <= last) {
            let mut world = worlds.last().cloned().unwrap_or_default();
            world.apply(change.clone());
            worlds.push(world);
        }
        worlds
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
