//! The store of a cluster: objects as JSON text in the order of their keys, and their newest changes.
//!
//! One counter gives every change its resourceVersion, and a bounded log keeps the newest changes. So a watch is a
//! position in the log, and an old state is the current one with the log undone: neither costs anything while nothing
//! changes.

mod object;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::watch;

pub(crate) use object::{Interner, Object, Texts};

use crate::kinds::Resource;

/// The identifier of the place in the store for one resource's objects (its shelf).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ShelfId(usize);

/// A change of an object in the log.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) version: u64,
    pub(crate) shelf: ShelfId,
    pub(crate) key: Arc<str>,
    /// The object after the change; for a deletion its last state.
    pub(crate) object: Arc<Object>,
    /// The object before the change; `None` for a new one.
    pub(crate) before: Option<Arc<Object>>,
    /// True if the object was deleted.
    pub(crate) deleted: bool,
}

/// The error for a version that the log does not reach any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Forgotten {
    /// The oldest version that the log reaches.
    pub(crate) oldest: u64,
}

#[derive(Debug)]
struct Shelf {
    resource: Arc<Resource>,
    objects: BTreeMap<Arc<str>, Arc<Object>>,
    /// The version at which the resource was defined; watches cannot begin before it.
    since: u64,
    /// A channel with the newest version, for watches; `None` until the first one starts.
    changed: Option<watch::Sender<u64>>,
}

/// The stored objects of a cluster, and the log of their changes.
#[derive(Debug)]
pub(crate) struct Store {
    version: u64,
    /// The version up to which changes were dropped from the log.
    forgotten: u64,
    shelves: Vec<Option<Shelf>>,
    log: VecDeque<Event>,
    window: usize,
}

impl Store {
    /// Creates an empty store for these resources; its log keeps `window` changes.
    pub(crate) fn new(resources: &[Arc<Resource>], window: usize) -> Store {
        let shelf = |resource: &Arc<Resource>| {
            Some(Shelf { resource: resource.clone(), objects: BTreeMap::new(), since: 0, changed: None })
        };
        let shelves = resources.iter().map(shelf).collect();
        Store { version: 1, forgotten: 1, shelves, log: VecDeque::new(), window }
    }

    /// Returns the newest resourceVersion.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Lists all resources, in the order in which they were added.
    pub(crate) fn resources(&self) -> impl Iterator<Item = (ShelfId, &Arc<Resource>)> {
        self.shelves
            .iter()
            .enumerate()
            .filter_map(|(index, shelf)| Some((ShelfId(index), &shelf.as_ref()?.resource)))
    }

    pub(crate) fn find(&self, group: &str, plural: &str) -> Option<(ShelfId, &Arc<Resource>)> {
        self.resources().find(|(_, resource)| resource.is(group, plural))
    }

    pub(crate) fn find_kind(&self, group: &str, kind: &str) -> Option<(ShelfId, &Arc<Resource>)> {
        self.resources().find(|(_, resource)| &*resource.group == group && &*resource.kind == kind)
    }

    /// Adds a resource, or replaces its definition; its objects stay.
    pub(crate) fn define(&mut self, resource: Arc<Resource>) {
        match self.find(&resource.group, &resource.plural) {
            Some((id, _)) => {
                if let Some(shelf) = self.shelf_mut(id) {
                    shelf.resource = resource;
                }
            }
            None => {
                let since = self.version;
                self.shelves.push(Some(Shelf { resource, objects: BTreeMap::new(), since, changed: None }));
            }
        }
    }

    /// Removes a resource and its objects; its watches end.
    pub(crate) fn undefine(&mut self, id: ShelfId) {
        if let Some(shelf) = self.shelves.get_mut(id.0) {
            *shelf = None;
        }
    }

    fn shelf(&self, id: ShelfId) -> Option<&Shelf> {
        self.shelves.get(id.0)?.as_ref()
    }

    fn shelf_mut(&mut self, id: ShelfId) -> Option<&mut Shelf> {
        self.shelves.get_mut(id.0)?.as_mut()
    }

    pub(crate) fn resource(&self, id: ShelfId) -> Option<&Arc<Resource>> {
        Some(&self.shelf(id)?.resource)
    }

    pub(crate) fn get(&self, id: ShelfId, key: &str) -> Option<&Arc<Object>> {
        self.shelf(id)?.objects.get(key)
    }

    /// Lists the keys and objects of a resource whose keys begin with `prefix`, in order, after the key `after` if
    /// it is given.
    pub(crate) fn range<'a>(
        &'a self,
        id: ShelfId,
        prefix: &'a str,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)> + use<'a> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(Arc::<str>::from(after)),
            _ => Bound::Included(Arc::<str>::from(prefix)),
        };
        let objects = self.shelf(id).map(|shelf| shelf.objects.range((from, Bound::Unbounded)));
        objects.into_iter().flatten().take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Returns the number of objects of a resource.
    pub(crate) fn count(&self, id: ShelfId) -> usize {
        self.shelf(id).map_or(0, |shelf| shelf.objects.len())
    }

    /// Returns the states at `version` of the objects that have changed since, by key; `None` for one that did not
    /// exist then. Fails if the log does not reach back to `version`.
    pub(crate) fn differences(
        &self,
        id: ShelfId,
        version: u64,
    ) -> Result<HashMap<Arc<str>, Option<Arc<Object>>>, Forgotten> {
        self.reaches(version)?;
        let newer = self.log.iter().rev().take_while(|event| event.version > version);
        // From the newest to the oldest: the last entry for a key is its state before its first change.
        Ok(newer
            .filter(|event| event.shelf == id)
            .map(|event| (event.key.clone(), event.before.clone()))
            .collect())
    }

    fn reaches(&self, version: u64) -> Result<(), Forgotten> {
        if version < self.forgotten { Err(Forgotten { oldest: self.forgotten }) } else { Ok(()) }
    }

    /// Lists the changes of a resource after `version`, the oldest first; fails if the log does not reach so far back,
    /// or the resource was defined only later.
    pub(crate) fn after(
        &self,
        id: ShelfId,
        version: u64,
    ) -> Result<impl Iterator<Item = &Event> + use<'_>, Forgotten> {
        self.reaches(version)?;
        if let Some(shelf) = self.shelf(id).filter(|shelf| version < shelf.since) {
            return Err(Forgotten { oldest: shelf.since });
        }
        let from = self.log.partition_point(|event| event.version <= version);
        Ok(self.log.range(from..).filter(move |event| event.shelf == id))
    }

    /// Returns a channel that has the version of the newest change of a resource's objects; `None` if the resource does
    /// not exist.
    pub(crate) fn subscribe(&mut self, id: ShelfId) -> Option<watch::Receiver<u64>> {
        let version = self.version;
        let shelf = self.shelf_mut(id)?;
        Some(shelf.changed.get_or_insert_with(|| watch::channel(version).0).subscribe())
    }

    /// Stores an object, and returns it with its new version; `None` if the resource does not exist.
    pub(crate) fn put(&mut self, id: ShelfId, key: &str, texts: Texts) -> Option<Arc<Object>> {
        let version = self.version + 1;
        let shelf = self.shelf_mut(id)?;
        let object = Arc::new(Object::new(version, texts));
        let key = match shelf.objects.get_key_value(key) {
            Some((key, _)) => key.clone(),
            None => Arc::from(key),
        };
        let before = shelf.objects.insert(key.clone(), object.clone());
        self.version = version;
        self.note(Event { version, shelf: id, key, object: object.clone(), before, deleted: false });
        Some(object)
    }

    /// Replaces the texts of the objects of a resource by those that `read` returns, as if they had always been so: their
    /// versions stay, and watches see nothing.
    pub(crate) fn reread(&mut self, id: ShelfId, read: impl Fn(&Object) -> Option<Texts>) {
        let objects = self.shelf_mut(id).map(|shelf| shelf.objects.values_mut());
        for object in objects.into_iter().flatten() {
            if let Some(texts) = read(object) {
                *object = Arc::new(object.with(texts));
            }
        }
    }

    /// Removes an object, and returns its last state, which is `last` if given, with the version of the removal;
    /// `None` if it does not exist.
    pub(crate) fn remove(&mut self, id: ShelfId, key: &str, last: Option<Texts>) -> Option<Arc<Object>> {
        let version = self.version + 1;
        let shelf = self.shelf_mut(id)?;
        let (key, before) = shelf.objects.remove_entry(key)?;
        let object = Arc::new(Object::new(version, last.unwrap_or_else(|| before.texts())));
        self.version = version;
        let event =
            Event { version, shelf: id, key, object: object.clone(), before: Some(before), deleted: true };
        self.note(event);
        Some(object)
    }

    fn note(&mut self, event: Event) {
        let (id, version) = (event.shelf, event.version);
        self.log.push_back(event);
        while self.log.len() > self.window {
            if let Some(oldest) = self.log.pop_front() {
                self.forgotten = oldest.version;
            }
        }
        if let Some(changed) = self.shelf(id).and_then(|shelf| shelf.changed.as_ref()) {
            changed.send_replace(version);
        }
    }

    /// Empties the log of changes, like a server that has just started: watches can begin only at the newest version.
    pub(crate) fn forget(&mut self) {
        self.log = VecDeque::new();
        self.forgotten = self.version;
    }

    /// Reverts the newest `changes` changes, or all in the log if it has fewer, and lowers the resourceVersion to that
    /// before them, like a restored backup. Returns the number of reverted changes.
    pub(crate) fn undo(&mut self, changes: usize) -> usize {
        let mut undone = 0;
        while undone < changes {
            let Some(event) = self.log.pop_back() else { break };
            self.version = event.version - 1;
            if let Some(shelf) = self.shelf_mut(event.shelf) {
                match event.before {
                    Some(before) => shelf.objects.insert(event.key, before),
                    None => shelf.objects.remove(&event.key),
                };
            }
            undone += 1;
        }
        undone
    }
}
