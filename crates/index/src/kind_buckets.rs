//! Groups objects by kind and namespace.
//!
//! A *kind bucket* is a linked list of the objects of one kind in one namespace. The buckets of one kind are linked,
//! and so are the buckets of one namespace.

use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use super::KindId;
use super::chunked::Vacant;
use super::contents::{Contents, counts};
use super::pool::NONE;
use super::record::{KindBucket, List, NamespaceHead, Neighbours};

impl Contents {
    /// Returns the number of objects of a kind with each status: in one namespace (empty for cluster-scoped objects),
    /// or in all with `None`.
    pub fn counts_of_kind(&self, kind: KindId, namespace: Option<&str>) -> Counts {
        let one = namespace.and_then(|namespace| self.buckets.get(self.bucket(kind, namespace)?));
        let all = namespace.is_none().then(|| self.buckets_of_kind(kind)).into_iter().flatten();
        let mut sum = [0; Status::ALL.len()];
        for bucket in one.into_iter().chain(all) {
            sum.iter_mut().zip(bucket.counts).for_each(|(sum, count)| *sum += count);
        }
        counts(&sum)
    }

    fn hash_of_bucket(&self, kind: u32, namespace: &str) -> u64 {
        self.seed.bytes(namespace.as_bytes()) ^ u64::from(kind).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn rehash_bucket(&self, at: u32) -> u64 {
        let bucket = self.buckets.get(at);
        bucket.map_or(0, |bucket| self.hash_of_bucket(bucket.kind, self.name_of_namespace(bucket.namespace)))
    }

    pub(super) fn bucket(&self, kind: KindId, namespace: &str) -> Option<u32> {
        let is_it = |at| {
            let bucket = self.buckets.get(at);
            bucket.is_some_and(|own| own.kind == kind.0 && self.name_of_namespace(own.namespace) == namespace)
        };
        self.by_bucket.find(self.hash_of_bucket(kind.0, namespace), is_it)
    }

    fn namespace(&self, name: &str) -> Option<u32> {
        let is_it = |at| self.name_of_namespace(at) == name;
        self.by_namespace.find(self.seed.bytes(name.as_bytes()), is_it)
    }

    pub(super) fn bucket_or_new(&mut self, vacant: &mut BucketVacant, kind: KindId, namespace: &str) -> u32 {
        if let Some(at) = self.bucket(kind, namespace) {
            return at;
        }
        let home = match namespace {
            "" => NONE,
            name => self.namespace(name).unwrap_or_else(|| self.new_namespace(vacant, name)),
        };
        let at = vacant.buckets.take(&mut self.buckets);
        let kind_head = self.kind_heads.get(kind.0).copied().unwrap_or(NONE);
        let home_head = self.namespaces.get(home).and_then(Option::as_ref).map_or(NONE, |head| head.buckets);
        let first_of = |next| Neighbours { next, previous: NONE };
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket = KindBucket {
                kind: kind.0,
                namespace: home,
                of_kind: first_of(kind_head),
                of_namespace: first_of(home_head),
                ..KindBucket::default()
            };
        }
        if let Some(second) = self.buckets.get_mut(kind_head) {
            second.of_kind.previous = at;
        }
        if let Some(second) = self.buckets.get_mut(home_head) {
            second.of_namespace.previous = at;
        }
        if let Some(head) = self.kind_heads.get_mut(kind.0) {
            *head = at;
        }
        if let Some(Some(head)) = self.namespaces.get_mut(home) {
            head.buckets = at;
        }
        let hash = self.hash_of_bucket(kind.0, namespace);
        let mut table = std::mem::take(&mut self.by_bucket);
        table.insert(hash, at, |at| self.rehash_bucket(at));
        self.by_bucket = table;
        at
    }

    fn new_namespace(&mut self, vacant: &mut BucketVacant, name: &str) -> u32 {
        let at = vacant.namespaces.take(&mut self.namespaces);
        if let Some(slot) = self.namespaces.get_mut(at) {
            *slot = Some(NamespaceHead { name: name.into(), buckets: NONE });
        }
        let mut table = std::mem::take(&mut self.by_namespace);
        let rehash = |at| self.seed.bytes(self.name_of_namespace(at).as_bytes());
        table.insert(self.seed.bytes(name.as_bytes()), at, rehash);
        self.by_namespace = table;
        at
    }

    pub(super) fn free_bucket_if_empty(&mut self, vacant: &mut BucketVacant, at: u32) {
        let Some(bucket) = self.buckets.get(at).copied().filter(|bucket| bucket.head == NONE) else { return };
        let hash = self.rehash_bucket(at);
        let mut table = std::mem::take(&mut self.by_bucket);
        table.remove(hash, at, |at| self.rehash_bucket(at));
        self.by_bucket = table;
        for (which, neighbours) in [(false, bucket.of_kind), (true, bucket.of_namespace)] {
            let Neighbours { next, previous } = neighbours;
            let mut of = |at: u32, change: &dyn Fn(&mut Neighbours)| {
                if let Some(bucket) = self.buckets.get_mut(at) {
                    change(if which { &mut bucket.of_namespace } else { &mut bucket.of_kind });
                }
            };
            of(next, &|own| own.previous = previous);
            of(previous, &|own| own.next = next);
        }
        if bucket.of_kind.previous == NONE
            && let Some(head) = self.kind_heads.get_mut(bucket.kind)
        {
            *head = bucket.of_kind.next;
        }
        if bucket.of_namespace.previous == NONE
            && let Some(Some(head)) = self.namespaces.get_mut(bucket.namespace)
        {
            head.buckets = bucket.of_namespace.next;
            if head.buckets == NONE {
                let hash = self.seed.bytes(self.name_of_namespace(bucket.namespace).as_bytes());
                let mut table = std::mem::take(&mut self.by_namespace);
                let rehash = |at| self.seed.bytes(self.name_of_namespace(at).as_bytes());
                table.remove(hash, bucket.namespace, rehash);
                self.by_namespace = table;
                if let Some(slot) = self.namespaces.get_mut(bucket.namespace) {
                    *slot = None;
                }
                vacant.namespaces.give(bucket.namespace);
            }
        }
        if let Some(slot) = self.buckets.get_mut(at) {
            *slot = KindBucket::default();
        }
        vacant.buckets.give(at);
    }

    pub(super) fn enter_bucket(&mut self, at: u32, slot: u32, status: Status) {
        let mut head = self.buckets.get(at).map_or(NONE, |bucket| bucket.head);
        self.push(List::Bucket, &mut head, slot);
        if let Some(bucket) = self.buckets.get_mut(at) {
            bucket.head = head;
            bucket.counts[status as usize] += 1;
        }
    }

    pub(super) fn leave_bucket(&mut self, at: u32, slot: u32, status: Status) {
        let mut head = self.buckets.get(at).map_or(NONE, |bucket| bucket.head);
        self.unlink(List::Bucket, &mut head, slot);
        if let Some(bucket) = self.buckets.get_mut(at) {
            bucket.head = head;
            bucket.counts[status as usize] -= 1;
        }
    }

    pub(super) fn enter_status(&mut self, slot: u32, status: Status) {
        let mut head = self.status_heads[status as usize];
        self.push(List::Status, &mut head, slot);
        self.status_heads[status as usize] = head;
        self.counts[status as usize] += 1;
    }

    pub(super) fn leave_status(&mut self, slot: u32, status: Status) {
        let mut head = self.status_heads[status as usize];
        self.unlink(List::Status, &mut head, slot);
        self.status_heads[status as usize] = head;
        self.counts[status as usize] -= 1;
    }

    pub(super) fn change_status(&mut self, slot: u32, at: u32, before: Status, after: Status) {
        self.leave_status(slot, before);
        self.enter_status(slot, after);
        if let Some(bucket) = self.buckets.get_mut(at) {
            bucket.counts[before as usize] -= 1;
            bucket.counts[after as usize] += 1;
        }
    }

    /// Lists the buckets of a kind, one per namespace.
    pub(super) fn buckets_of_kind(&self, kind: KindId) -> impl Iterator<Item = &KindBucket> {
        let bucket = |at: u32| self.buckets.get(at);
        let first = self.kind_heads.get(kind.0).and_then(|head| bucket(*head));
        std::iter::successors(first, move |own| bucket(own.of_kind.next))
    }

    /// Lists the buckets of a namespace, one per kind.
    pub(super) fn buckets_of_namespace<'s>(
        &'s self,
        namespace: &str,
    ) -> impl Iterator<Item = &'s KindBucket> + use<'s> {
        let bucket = |at: u32| self.buckets.get(at);
        let head = self.namespace(namespace).and_then(|at| self.namespaces.get(at)?.as_ref());
        std::iter::successors(head.and_then(|head| bucket(head.buckets)), move |own| {
            bucket(own.of_namespace.next)
        })
    }

    /// Lists the slots of the objects in a bucket.
    pub(super) fn slots(&self, bucket: &KindBucket) -> impl Iterator<Item = u32> + use<'_> {
        self.list(List::Bucket, bucket.head)
    }
}

/// The vacant slots of buckets and of namespaces.
#[derive(Debug, Default)]
pub(super) struct BucketVacant {
    buckets: Vacant,
    namespaces: Vacant,
}
