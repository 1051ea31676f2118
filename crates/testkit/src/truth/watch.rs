//! Records every version of the watched objects, so that states between two lists are known too.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
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
pub(super) struct Watch<'a> {
    plane: &'a ControlPlane,
    context: &'a str,
    streams: Vec<Stream>,
    changes: Arc<Mutex<Vec<Change>>>,
    /// The objects at the resource version `first` of the last call of [`Watch::between`].
    world: World,
    waiting: VecDeque<Change>,
}

/// The watch of one kind, by a kubectl.
struct Stream {
    kind: Kind,
    child: Child,
    /// Reads what kubectl writes, and ends with it. Returns the newest version that it read.
    reader: Option<JoinHandle<Option<u64>>>,
}

impl Stream {
    /// Watches the objects of `kind` after the resource version `from`, or all of them and their changes.
    fn start(
        plane: &ControlPlane,
        context: &str,
        kind: Kind,
        from: Option<u64>,
        changes: &Arc<Mutex<Vec<Change>>>,
    ) -> Result<Self> {
        let mut path = format!("{}?watch=true", kind.path());
        if let Some(version) = from {
            path.push_str(&format!("&resourceVersion={version}"));
        }
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
        let changes = Arc::clone(changes);
        let reader = std::thread::spawn(move || {
            let mut newest = from;
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(mut event) = serde_json::from_str::<Value>(&line) else { continue };
                let object = event["object"].take();
                let Some(version) = version(&object) else { continue };
                let key = (kind, object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
                let object = (event["type"] != "DELETED").then(|| Arc::new(object));
                let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
                changes.push(Change { version, key, object });
                newest = newest.max(Some(version));
            }
            newest
        });
        Ok(Self { kind, child, reader: Some(reader) })
    }
}

impl<'a> Watch<'a> {
    pub(super) fn start(plane: &'a ControlPlane, context: &'a str, kinds: &[Kind]) -> Result<Self> {
        let changes = Arc::default();
        let streams = kinds.iter().map(|kind| Stream::start(plane, context, *kind, None, &changes));
        let streams = streams.collect::<Result<_>>()?;
        Ok(Self { plane, context, streams, changes, world: World::default(), waiting: VecDeque::new() })
    }

    /// Begins watches again that have ended, each after the last version that it read: an API server ends the watch of
    /// a client that reads too slowly, as any client does on a busy machine.
    pub(super) fn resume(&mut self) -> Result<()> {
        for stream in &mut self.streams {
            if let Some(reader) = stream.reader.take_if(|reader| reader.is_finished()) {
                stream.child.wait().context("cannot wait for kubectl, which watched the apps")?;
                let newest =
                    reader.join().map_err(|_| anyhow!("the thread that reads the watch panicked"))?;
                *stream = Stream::start(self.plane, self.context, stream.kind, newest, &self.changes)?;
            }
        }
        Ok(())
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

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        for Stream { child, .. } in &mut self.streams {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
