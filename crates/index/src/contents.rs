//! The contents of an index: the structures that the index changes and that snapshots share.

use std::collections::BTreeSet;
use std::sync::Arc;

use taffrail_object::{ApiResource, TokenSeed};
use taffrail_status::rollup::Counts;
use taffrail_status::{Status, Verdict};

use super::chunked::Chunked;
use super::events::Events;
use super::new_record;
use super::pool::{NONE, PoolValues};
use super::postings::Postings;
use super::record::{
    Handle, Health, Judged, KindBucket, Links, List, NamespaceHead, Owner, OwnerGroup, Record, Uid,
};
use super::scope::{KindScopes, Scope};
use super::table::{Seed, Table};
use super::{IndexSettings, KindId};

/// The contents of an index, for reading.
///
/// Every lookup costs in proportion to its result, however many other objects there are.
#[derive(Debug, Clone)]
pub struct Contents {
    pub(super) settings: Arc<IndexSettings>,
    pub(super) seed: Seed,
    pub(super) token_seed: TokenSeed,
    pub(super) sequence: u64,
    pub(super) kinds: Arc<Vec<Arc<ApiResource>>>,
    /// For each kind, by its number: true if its objects have a status subresource; `None` if the server did not tell
    /// it.
    pub(super) status_subresources: Arc<Vec<Option<bool>>>,
    /// The groups that discovery could not read; `None` if discovery did not list all kinds of the other groups.
    pub(super) broken_groups: Option<Arc<BTreeSet<String>>>,
    pub(super) scopes: Arc<Vec<Arc<KindScopes>>>,
    pub(super) links: Chunked<Links>,
    pub(super) records: Chunked<Option<Record>>,
    pub(super) by_key: Table,
    pub(super) by_uid: Table,
    pub(super) owner_groups: Chunked<OwnerGroup>,
    pub(super) by_owner_group: Table,
    pub(super) buckets: Chunked<KindBucket>,
    pub(super) by_bucket: Table,
    pub(super) kind_heads: Chunked<u32>,
    pub(super) namespaces: Chunked<Option<NamespaceHead>>,
    pub(super) by_namespace: Table,
    pub(super) status_heads: [u32; Status::ALL.len()],
    pub(super) counts: [u32; Status::ALL.len()],
    pub(super) texts: PoolValues<str>,
    pub(super) sets: PoolValues<[(u32, u32)]>,
    pub(super) owners: PoolValues<[Owner]>,
    pub(super) verdicts: PoolValues<Judged>,
    pub(super) healths: PoolValues<Health>,
    pub(super) extracts: PoolValues<[u8]>,
    pub(super) keys: PoolValues<[u128]>,
    pub(super) postings: Postings,
    pub(super) events: Events,
}

impl Contents {
    pub(super) fn new(settings: Arc<IndexSettings>, seed: Seed, token_seed: TokenSeed) -> Contents {
        Contents {
            settings,
            seed,
            token_seed,
            sequence: 0,
            kinds: Arc::default(),
            status_subresources: Arc::default(),
            broken_groups: None,
            scopes: Arc::default(),
            links: Chunked::default(),
            records: Chunked::default(),
            by_key: Table::default(),
            by_uid: Table::default(),
            owner_groups: Chunked::default(),
            by_owner_group: Table::default(),
            buckets: Chunked::default(),
            by_bucket: Table::default(),
            kind_heads: Chunked::default(),
            namespaces: Chunked::default(),
            by_namespace: Table::default(),
            status_heads: [NONE; Status::ALL.len()],
            counts: [0; Status::ALL.len()],
            texts: PoolValues::default(),
            sets: PoolValues::default(),
            owners: PoolValues::default(),
            verdicts: PoolValues::default(),
            healths: PoolValues::default(),
            extracts: PoolValues::default(),
            keys: PoolValues::default(),
            postings: Postings::default(),
            events: Events::default(),
        }
    }

    pub(super) fn record(&self, slot: u32) -> Option<&Record> {
        self.records.get(slot)?.as_ref()
    }

    pub(super) fn handle(&self, slot: u32) -> Handle {
        Handle { slot, generation: self.links.get(slot).map_or(0, |links| links.generation) }
    }

    /// Returns group, kind, namespace and name of the object of a record, in this order.
    pub(super) fn name_of<'s>(&'s self, record: &'s Record) -> (&'s str, &'s str, &'s str, &'s str) {
        let bucket = self.buckets.get(record.bucket).copied().unwrap_or_default();
        let (group, kind) =
            self.kinds.get(bucket.kind as usize).map_or(("", ""), |kind| (&*kind.group, &*kind.kind));
        (group, kind, self.name_of_namespace(bucket.namespace), &record.name)
    }

    pub(super) fn name_of_namespace(&self, at: u32) -> &str {
        self.namespaces.get(at).and_then(Option::as_ref).map_or("", |head| &head.name)
    }

    /// Returns the hash of group, kind, namespace and name of an object; the hash table uses its lower half.
    pub(super) fn key_of(&self, record: &Record) -> Uid {
        let (group, kind, namespace, name) = self.name_of(record);
        new_record::named(self.seed, group, kind, namespace, name)
    }

    pub(super) fn rehash_key(&self, slot: u32) -> u64 {
        self.record(slot).map_or(0, |record| self.key_of(record).bits() as u64)
    }

    pub(super) fn rehash_uid(&self, slot: u32) -> u64 {
        self.record(slot).map_or(0, |record| self.seed.value(&record.uid))
    }

    pub(super) fn slot_of_key(&self, key: Uid) -> Option<u32> {
        let is_it = |at| self.record(at).is_some_and(|record| self.key_of(record) == key);
        self.by_key.find(key.bits() as u64, is_it)
    }

    pub(super) fn slot_of(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<u32> {
        let key = new_record::named(self.seed, group, kind, namespace, name);
        let is_it = |at| {
            self.record(at).is_some_and(|record| {
                *record.name == *name && self.name_of(record) == (group, kind, namespace, name)
            })
        };
        self.by_key.find(key.bits() as u64, is_it)
    }

    pub(super) fn slots_of_uid(&self, uid: Uid) -> impl Iterator<Item = u32> {
        let is_it = move |at: &u32| self.record(*at).is_some_and(|record| record.uid == uid);
        self.by_uid.all(self.seed.value(&uid)).filter(is_it)
    }

    /// Returns the slot of the object with a UID; `None` if there is none. If several objects have it, returns the
    /// first by group, kind, namespace and name.
    pub(super) fn slot_of_uid(&self, uid: Uid) -> Option<u32> {
        if uid.is_none() {
            return None;
        }
        self.slots_of_uid(uid).find(|at| self.links.get(*at).is_some_and(|links| !links.is_twin))
    }

    /// Iterates over the slots of a linked list, from the slot `head` on; `list` selects the links.
    pub(super) fn list(&self, list: List, head: u32) -> impl Iterator<Item = u32> + use<'_> {
        let mut at = head;
        std::iter::from_fn(move || {
            let links = self.links.get(at)?;
            Some(std::mem::replace(&mut at, links.of(list).next))
        })
    }

    /// Inserts `slot` at the head of a linked list, and updates `head`.
    pub(super) fn push(&mut self, list: List, head: &mut u32, slot: u32) {
        if let Some(links) = self.links.get_mut(*head) {
            links.of_mut(list).previous = slot;
        }
        if let Some(links) = self.links.get_mut(slot) {
            let own = links.of_mut(list);
            (own.next, own.previous) = (*head, NONE);
        }
        *head = slot;
    }

    /// Removes `slot` from a linked list, and updates `head` if it was the first.
    pub(super) fn unlink(&mut self, list: List, head: &mut u32, slot: u32) {
        let Some(own) = self.links.get_mut(slot).map(|links| std::mem::take(links.of_mut(list))) else {
            return;
        };
        if let Some(links) = self.links.get_mut(own.next) {
            links.of_mut(list).previous = own.previous;
        }
        if let Some(links) = self.links.get_mut(own.previous) {
            links.of_mut(list).next = own.next;
        }
        if *head == slot {
            *head = own.next;
        }
    }
}

/// Queries about counts, kinds and scopes.
impl Contents {
    /// Returns the number of the last published snapshot; it grows by one with each publication that contains
    /// changes.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.counts.iter().map(|count| *count as usize).sum()
    }

    /// Returns true if the index has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the seed of the digests in this index's [tokens](super::ObjectRef::token).
    pub fn token_seed(&self) -> TokenSeed {
        self.token_seed
    }

    /// Returns the number of objects with each status.
    pub fn counts(&self) -> Counts {
        counts(&self.counts)
    }

    /// Lists the known kinds, in the order in which they were added.
    pub fn kinds(&self) -> impl Iterator<Item = (KindId, &ApiResource)> {
        self.kinds.iter().enumerate().map(|(at, kind)| (KindId(at as u32), &**kind))
    }

    /// Returns the resource of a kind; `None` if the index does not have it.
    pub fn resource(&self, kind: KindId) -> Option<&ApiResource> {
        self.kinds.get(kind.0 as usize).map(|kind| &**kind)
    }

    /// Returns the ID of the kind with this group and name; `None` if the index does not have it.
    pub fn find_kind(&self, group: &str, kind: &str) -> Option<KindId> {
        let is_it = |own: &Arc<ApiResource>| own.kind == kind && own.group == group;
        self.kinds.iter().position(is_it).map(|at| KindId(at as u32))
    }

    /// Returns true if a kind has a status subresource in `version`; `None` if the server did not tell it, or the index
    /// has the kind in another version.
    pub(super) fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        let kind = self.find_kind(group, kind)?;
        let is_served = self.resource(kind)?.version == version;
        self.status_subresources.get(kind.number()).copied().flatten().filter(|_| is_served)
    }

    /// Returns the scope of a kind in a namespace (empty for cluster-scoped objects): that of the namespace alone, or
    /// else that of all namespaces. If there is neither, returns an [`Unread`](super::ScopeState::Unread) scope.
    pub fn scope(&self, kind: KindId, namespace: &str) -> Scope {
        let own = self.scopes.get(kind.0 as usize).and_then(|scopes| scopes.at(namespace));
        own.cloned().unwrap_or_default()
    }

    /// Lists all scopes, each as its kind, its namespace (`None` for all namespaces), and its state.
    pub fn scopes(&self) -> impl Iterator<Item = (KindId, Option<&str>, &Scope)> {
        self.scopes.iter().enumerate().flat_map(|(at, scopes)| {
            let kind = KindId(at as u32);
            let whole = scopes.whole.as_ref().map(|scope| (kind, None, scope));
            let each = scopes.of_namespace.iter();
            whole.into_iter().chain(each.map(move |(namespace, scope)| (kind, Some(&**namespace), scope)))
        })
    }

    /// Returns true if an object of a kind that is not in the index does not exist: all objects of the kind were
    /// read, in one namespace or in all with `None`, or discovery read the kind's group and did not find the kind.
    pub(super) fn is_read(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        let Some(kind) = self.find_kind(group, kind) else {
            // A kind that the server does not serve has no objects.
            return self.broken_groups.as_ref().is_some_and(|broken| !broken.contains(group));
        };
        let scopes = self.scopes.get(kind.0 as usize);
        let scope = match namespace {
            Some(namespace) => scopes.and_then(|scopes| scopes.at(namespace)),
            None => scopes.and_then(|scopes| scopes.everywhere()),
        };
        scope.is_some_and(Scope::tells_absence)
    }

    /// Returns the UID by which this index represents `text`, which need not be a UUID.
    pub fn uid(&self, text: &str) -> Uid {
        Uid::new(text, self.seed)
    }

    pub(super) fn verdict(&self, at: u32) -> Option<&Verdict> {
        self.verdicts.get(at).map(|judged| &judged.0)
    }
}

pub(super) fn counts(counts: &[u32; Status::ALL.len()]) -> Counts {
    let each = Status::ALL.into_iter().zip(counts);
    each.flat_map(|(status, count)| std::iter::repeat_n(status, *count as usize)).collect()
}

/// The [`Contents`] at one moment. A clone copies one pointer.
///
/// The index and its snapshots share every chunk until the index writes to it; then only that chunk is copied. So
/// neither waits for the other, and a snapshot does not change.
#[derive(Debug, Clone)]
pub struct Snapshot(pub(super) Arc<Contents>);

impl std::ops::Deref for Snapshot {
    type Target = Contents;

    fn deref(&self) -> &Contents {
        &self.0
    }
}
