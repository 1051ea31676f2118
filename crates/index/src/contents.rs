//! What an index holds: what its owner changes and what readers see are the same structures.

use std::collections::BTreeSet;
use std::sync::Arc;

use taffrail_object::ApiResource;
use taffrail_status::rollup::Counts;
use taffrail_status::{Status, Verdict};

use super::cells::{Cell, NamespaceHead};
use super::chunked::Chunked;
use super::draft;
use super::events::Events;
use super::pool::{Kept, NONE};
use super::postings::Postings;
use super::record::{Handle, Health, Judged, Links, List, Owner, Record, Uid};
use super::scope::KindScopes;
use super::table::{Seed, Table};
use super::tree::{Family, Node, Tree};
use super::view::ObjectRef;
use super::{IndexSettings, KindId};

/// What an index holds, to be read.
///
/// Every lookup costs what it returns, however much else there is.
#[derive(Debug, Clone)]
pub struct Contents {
    pub(super) settings: Arc<IndexSettings>,
    pub(super) seed: Seed,
    pub(super) sequence: u64,
    pub(super) kinds: Arc<Vec<Arc<ApiResource>>>,
    /// Whether objects of each kind have a status subresource, where the server said so.
    pub(super) status_subresources: Arc<Vec<Option<bool>>>,
    /// The groups that discovery could not read; nothing where it did not tell all kinds of the others.
    pub(super) broken_groups: Option<Arc<BTreeSet<String>>>,
    pub(super) scopes: Arc<Vec<Arc<KindScopes>>>,
    pub(super) links: Chunked<Links>,
    pub(super) records: Chunked<Option<Record>>,
    pub(super) by_key: Table,
    pub(super) by_uid: Table,
    pub(super) families: Chunked<Family>,
    pub(super) by_family: Table,
    pub(super) cells: Chunked<Cell>,
    pub(super) by_cell: Table,
    pub(super) kind_heads: Chunked<u32>,
    pub(super) namespaces: Chunked<Option<NamespaceHead>>,
    pub(super) by_namespace: Table,
    pub(super) status_heads: [u32; Status::ALL.len()],
    pub(super) counts: [u32; Status::ALL.len()],
    pub(super) texts: Kept<str>,
    pub(super) sets: Kept<[(u32, u32)]>,
    pub(super) owners: Kept<[Owner]>,
    pub(super) verdicts: Kept<Judged>,
    pub(super) healths: Kept<Health>,
    pub(super) extracts: Kept<[u8]>,
    pub(super) keys: Kept<[u128]>,
    pub(super) postings: Postings,
    pub(super) events: Events,
}

impl Contents {
    pub(super) fn new(settings: Arc<IndexSettings>, seed: Seed) -> Contents {
        Contents {
            settings,
            seed,
            sequence: 0,
            kinds: Arc::default(),
            status_subresources: Arc::default(),
            broken_groups: None,
            scopes: Arc::default(),
            links: Chunked::default(),
            records: Chunked::default(),
            by_key: Table::default(),
            by_uid: Table::default(),
            families: Chunked::default(),
            by_family: Table::default(),
            cells: Chunked::default(),
            by_cell: Table::default(),
            kind_heads: Chunked::default(),
            namespaces: Chunked::default(),
            by_namespace: Table::default(),
            status_heads: [NONE; Status::ALL.len()],
            counts: [0; Status::ALL.len()],
            texts: Kept::default(),
            sets: Kept::default(),
            owners: Kept::default(),
            verdicts: Kept::default(),
            healths: Kept::default(),
            extracts: Kept::default(),
            keys: Kept::default(),
            postings: Postings::default(),
            events: Events::default(),
        }
    }

    pub(super) fn record(&self, place: u32) -> Option<&Record> {
        self.records.get(place)?.as_ref()
    }

    pub(super) fn handle(&self, place: u32) -> Handle {
        Handle { place, generation: self.links.get(place).map_or(0, |links| links.generation) }
    }

    pub(super) fn object(&self, place: u32) -> Option<ObjectRef<'_>> {
        Some(ObjectRef { contents: self, place, record: self.record(place)? })
    }

    /// Group, kind, namespace and name of the object at a place.
    pub(super) fn name_of<'s>(&'s self, record: &'s Record) -> (&'s str, &'s str, &'s str, &'s str) {
        let cell = self.cells.get(record.cell).copied().unwrap_or_default();
        let (group, kind) =
            self.kinds.get(cell.kind as usize).map_or(("", ""), |kind| (&*kind.group, &*kind.kind));
        (group, kind, self.name_of_namespace(cell.namespace), &record.name)
    }

    /// What stands for the name of an object; its lower half is what it is found by.
    pub(super) fn key_of(&self, record: &Record) -> Uid {
        let (group, kind, namespace, name) = self.name_of(record);
        draft::named(self.seed, group, kind, namespace, name)
    }

    pub(super) fn rehash_key(&self, place: u32) -> u64 {
        self.record(place).map_or(0, |record| self.key_of(record).bits() as u64)
    }

    pub(super) fn rehash_uid(&self, place: u32) -> u64 {
        self.record(place).map_or(0, |record| self.seed.value(&record.uid))
    }

    pub(super) fn place_of_key(&self, key: Uid) -> Option<u32> {
        let is_it = |at| self.record(at).is_some_and(|record| self.key_of(record) == key);
        self.by_key.find(key.bits() as u64, is_it)
    }

    pub(super) fn place_of(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<u32> {
        let key = draft::named(self.seed, group, kind, namespace, name);
        let is_it = |at| {
            self.record(at).is_some_and(|record| {
                *record.name == *name && self.name_of(record) == (group, kind, namespace, name)
            })
        };
        self.by_key.find(key.bits() as u64, is_it)
    }

    pub(super) fn places_of_uid(&self, uid: Uid) -> impl Iterator<Item = u32> {
        let is_it = move |at: &u32| self.record(*at).is_some_and(|record| record.uid == uid);
        self.by_uid.all(self.seed.value(&uid)).filter(is_it)
    }

    /// The place of the object of a UID; of twins that of the first.
    pub(super) fn place_of_uid(&self, uid: Uid) -> Option<u32> {
        if uid.is_none() {
            return None;
        }
        self.places_of_uid(uid).find(|at| self.links.get(*at).is_some_and(|links| !links.is_twin))
    }

    /// The places in a list from its head on.
    pub(super) fn list(&self, list: List, head: u32) -> impl Iterator<Item = u32> + use<'_> {
        let mut at = head;
        std::iter::from_fn(move || {
            let links = self.links.get(at)?;
            Some(std::mem::replace(&mut at, links.of(list).next))
        })
    }

    /// Puts a place at the head of a list.
    pub(super) fn push(&mut self, list: List, head: &mut u32, place: u32) {
        if let Some(links) = self.links.get_mut(*head) {
            links.of_mut(list).previous = place;
        }
        if let Some(links) = self.links.get_mut(place) {
            let own = links.of_mut(list);
            (own.next, own.previous) = (*head, NONE);
        }
        *head = place;
    }

    /// Takes a place out of a list.
    pub(super) fn unlink(&mut self, list: List, head: &mut u32, place: u32) {
        let Some(own) = self.links.get_mut(place).map(|links| std::mem::take(links.of_mut(list))) else {
            return;
        };
        if let Some(links) = self.links.get_mut(own.next) {
            links.of_mut(list).previous = own.previous;
        }
        if let Some(links) = self.links.get_mut(own.previous) {
            links.of_mut(list).next = own.next;
        }
        if *head == place {
            *head = own.next;
        }
    }

    fn objects<'s, I>(&'s self, places: I) -> impl Iterator<Item = ObjectRef<'s>> + use<'s, I>
    where
        I: Iterator<Item = u32>,
    {
        places.filter_map(|place| self.object(place))
    }
}

/// What readers ask.
impl Contents {
    /// The number of the snapshot; it grows with each.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.counts.iter().map(|count| *count as usize).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many objects have each status.
    pub fn counts(&self) -> Counts {
        counts(&self.counts)
    }

    /// The kinds that were made known, in the order in which they were.
    pub fn kinds(&self) -> impl Iterator<Item = (KindId, &ApiResource)> {
        self.kinds.iter().enumerate().map(|(at, kind)| (KindId(at as u32), &**kind))
    }

    /// The resource of a kind.
    pub fn resource(&self, kind: KindId) -> Option<&ApiResource> {
        self.kinds.get(kind.0 as usize).map(|kind| &**kind)
    }

    /// The kind of that group and name, if it was made known.
    pub fn find_kind(&self, group: &str, kind: &str) -> Option<KindId> {
        let is_it = |own: &Arc<ApiResource>| own.kind == kind && own.group == group;
        self.kinds.iter().position(is_it).map(|at| KindId(at as u32))
    }

    /// Returns true if objects of a kind have in this version a status subresource; `None` where the server did not say so.
    pub(super) fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        let kind = self.find_kind(group, kind)?;
        let is_served = self.resource(kind)?.version == version;
        self.status_subresources.get(kind.number()).copied().flatten().filter(|_| is_served)
    }

    /// The object of a handle, unless it is gone.
    pub fn get(&self, handle: Handle) -> Option<ObjectRef<'_>> {
        let links = self.links.get(handle.place)?;
        if links.generation == handle.generation { self.object(handle.place) } else { None }
    }

    /// The object of a name; `namespace` is empty for those of the cluster.
    pub fn find(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<ObjectRef<'_>> {
        self.object(self.place_of(group, kind, namespace, name)?)
    }

    /// The UID that a text stands for in this index.
    pub fn uid(&self, text: &str) -> Uid {
        Uid::new(text, self.seed)
    }

    /// The object of a UID. Of twins, which have the same, the one whose group and kind come first.
    pub fn find_uid(&self, uid: Uid) -> Option<ObjectRef<'_>> {
        self.object(self.place_of_uid(uid)?)
    }

    /// All objects, in no order.
    pub fn all(&self) -> impl Iterator<Item = ObjectRef<'_>> {
        self.objects(0..self.links.len())
    }

    /// The objects of a kind, in one namespace (empty: in none) or wherever they are; in no order.
    pub fn of_kind<'s>(
        &'s self,
        kind: KindId,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = ObjectRef<'s>> + use<'s> {
        let one = namespace.and_then(|namespace| self.cells.get(self.cell(kind, namespace)?));
        let all = namespace.is_none().then(|| self.cells_of_kind(kind)).into_iter().flatten();
        self.objects(one.into_iter().chain(all).flat_map(|cell| self.places(cell)))
    }

    /// How many objects of a kind have each status, in one namespace (empty: in none) or wherever they are.
    pub fn counts_of_kind(&self, kind: KindId, namespace: Option<&str>) -> Counts {
        let one = namespace.and_then(|namespace| self.cells.get(self.cell(kind, namespace)?));
        let all = namespace.is_none().then(|| self.cells_of_kind(kind)).into_iter().flatten();
        let mut sum = [0; Status::ALL.len()];
        for cell in one.into_iter().chain(all) {
            sum.iter_mut().zip(cell.counts).for_each(|(sum, count)| *sum += count);
        }
        counts(&sum)
    }

    /// The objects in a namespace, of whatever kind; in no order.
    pub fn in_namespace<'s>(&'s self, namespace: &str) -> impl Iterator<Item = ObjectRef<'s>> + use<'s> {
        self.objects(self.cells_of_namespace(namespace).flat_map(|cell| self.places(cell)))
    }

    /// The objects that have a status, in no order.
    pub fn with_status(&self, status: Status) -> impl Iterator<Item = ObjectRef<'_>> {
        self.objects(self.list(List::Status, self.status_heads[status as usize]))
    }

    /// The objects that have a mark, in no order.
    pub fn marked<'s>(&'s self, mark: &str) -> impl Iterator<Item = ObjectRef<'s>> + use<'s> {
        let members = self.postings.members(draft::mark(self.seed, mark));
        self.objects(members.iter().copied())
    }

    /// All marks, in no order, each with the number of objects that have it.
    pub fn marks(&self) -> impl Iterator<Item = (&str, usize)> {
        self.postings.named().map(|(name, count)| (&**name, count))
    }

    /// Walks over objects and all that they own.
    pub fn tree(&self, roots: &[Handle]) -> Tree<'_> {
        let is_there = |root: &&Handle| self.get(**root).is_some();
        Tree::new(self, roots.iter().filter(is_there).map(|root| root.place))
    }

    /// The objects that an object owns itself, in no order.
    pub fn children(&self, owner: Handle) -> impl Iterator<Item = ObjectRef<'_>> {
        let families = self.get(owner).map(|own| self.families_of(own.place)).into_iter().flatten();
        let places = families.flat_map(|family| self.members(family));
        self.objects(places.filter(|at| self.links.get(*at).is_some_and(|links| !links.is_twin)))
    }

    /// The owners of an object that are there, its controller first.
    pub fn parents(&self, child: Handle) -> impl Iterator<Item = ObjectRef<'_>> {
        let places = self.get(child).map(|own| self.parents_of(own.place)).into_iter().flatten();
        self.objects(places)
    }

    /// The topmost of the owners of an object, by the first owner of each; itself, if it has none.
    pub fn top(&self, handle: Handle) -> Option<ObjectRef<'_>> {
        let mut top = self.get(handle)?;
        // Owners may form a circle.
        for _ in 0..64 {
            match self.parents(top.handle()).next() {
                Some(parent) => top = parent,
                None => break,
            }
        }
        Some(top)
    }

    pub(super) fn verdict(&self, at: u32) -> Option<&Verdict> {
        self.verdicts.get(at).map(|judged| &judged.0)
    }
}

fn counts(counts: &[u32; Status::ALL.len()]) -> Counts {
    let each = Status::ALL.into_iter().zip(counts);
    each.flat_map(|(status, count)| std::iter::repeat_n(status, *count as usize)).collect()
}

/// [`Contents`] as they were at a moment. A clone costs nothing.
///
/// The owner of the index and readers share every chunk of it until the owner writes to that chunk, and then only the
/// chunk is copied: so neither ever waits for the other, and what a reader sees does not change.
#[derive(Debug, Clone)]
pub struct Snapshot(pub(super) Arc<Contents>);

impl std::ops::Deref for Snapshot {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        &self.0
    }
}

/// So that a walk can be collected as objects.
impl Node {
    /// The object of the node.
    pub fn object(self, contents: &Contents) -> Option<ObjectRef<'_>> {
        contents.get(self.handle)
    }
}
