//! Hash tables of slots, with shards that snapshots share until they are written to.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed, xxh3_128_with_seed};

/// Number of shards; a write to a shard that a snapshot shares copies that shard only.
const SHARDS: usize = 64;

/// A set of slots by the hashes of their values.
///
/// Only the slots are kept, and the caller compares the values, so collisions are harmless.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// The shards; none until the first entry. The outer pointer makes a clone copy one pointer.
    shards: Arc<Vec<Arc<HashTable<u32>>>>,
}

/// Returns the shard for a hash by its upper bits; the lower ones place the entry in the shard.
fn shard(hash: u64) -> usize {
    (hash >> 48) as usize % SHARDS
}

impl Table {
    /// Returns a slot with this hash for which `is_it` returns true; `None` if there is none.
    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut is_it = is_it;
        self.shards.get(shard(hash))?.find(hash, |&at| is_it(at)).copied()
    }

    /// Lists all slots with this hash, and perhaps some with others: the caller must compare the values.
    pub(super) fn all(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        self.shards.get(shard(hash)).into_iter().flat_map(move |shard| shard.iter_hash(hash).copied())
    }

    /// Adds slot `at`, whose value has the hash `hash`. `rehash` returns the hash of a slot that is in the table
    /// already.
    pub(super) fn insert(&mut self, hash: u64, at: u32, rehash: impl Fn(u32) -> u64) {
        let shards = Arc::make_mut(&mut self.shards);
        if shards.is_empty() {
            shards.resize(SHARDS, Arc::default());
        }
        if let Some(shard) = shards.get_mut(shard(hash)) {
            Arc::make_mut(shard).insert_unique(hash, at, |&at| rehash(at));
        }
    }

    /// Removes slot `at`, whose value has the hash `hash`; nothing if it is not in the table. `rehash` returns the hash
    /// of a slot in the table.
    pub(super) fn remove(&mut self, hash: u64, at: u32, rehash: impl Fn(u32) -> u64) {
        if let Some(shard) = Arc::make_mut(&mut self.shards).get_mut(shard(hash)) {
            let entry = Arc::make_mut(shard).entry(hash, |&own| own == at, |&at| rehash(at));
            if let Entry::Occupied(entry) = entry {
                entry.remove();
            }
        }
    }
}

/// The seed of the hashes of names, so that authors of names cannot provoke collisions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seed(u64);

impl Seed {
    pub(super) fn random() -> Seed {
        Seed(RandomState::new().hash_one(0_u64))
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }

    pub(super) fn of_number(number: u64) -> Seed {
        Seed(number)
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.0)
    }

    pub(super) fn value(self, value: &(impl Hash + ?Sized)) -> u64 {
        let mut hasher = Mixed(self.0);
        value.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns a 128-bit hash of `words`; collisions are improbable enough to treat equal hashes as equal words.
    pub(super) fn words(self, words: &[&str]) -> u128 {
        let mut text = [0_u8; 512];
        let mut length = 0;
        for word in words {
            // Each word is followed by a byte that no text holds.
            let end = length + word.len() + 1;
            let Some(slot) = text.get_mut(length..end) else { return self.long_words(words) };
            slot[..word.len()].copy_from_slice(word.as_bytes());
            slot[word.len()] = 0xff;
            length = end;
        }
        xxh3_128_with_seed(&text[..length], self.0)
    }

    #[cold]
    fn long_words(self, words: &[&str]) -> u128 {
        let mut hasher = Xxh3::with_seed(self.0);
        for word in words {
            hasher.update(word.as_bytes());
            hasher.update(&[0xff]);
        }
        hasher.digest128()
    }
}

/// A hasher that mixes its input word by word.
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value ^ 0x2d35_8dcc_aa6c_78a5) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_one_hash_are_told_apart() {
        let mut table = Table::default();
        let hashes: Vec<u64> = (0..1_000).map(|at| ((at % 7) << 48) | (at % 5)).collect();
        let rehash = |at: u32| hashes[at as usize];
        for at in 0..1_000 {
            table.insert(hashes[at as usize], at, rehash);
        }
        let seen = table.clone();
        for at in 0..500 {
            table.remove(hashes[at as usize], at, rehash);
        }
        for at in 0..1_000 {
            let hash = hashes[at as usize];
            assert_eq!(table.find(hash, |own| own == at), (at >= 500).then_some(at));
            assert_eq!(seen.find(hash, |own| own == at), Some(at));
        }
        assert_eq!(table.all(hashes[999]).filter(|at| *at == 999).count(), 1);
    }

    #[test]
    fn words_of_any_length_are_told_apart() {
        let seed = Seed(7);
        let long = "x".repeat(600);
        let all = [
            seed.words(&["a", "b"]),
            seed.words(&["ab"]),
            seed.words(&["a", "b", ""]),
            seed.words(&[&long]),
            seed.words(&[&long, ""]),
            seed.words(&[&long[..508], "b"]),
            seed.words(&[&long[..509], "b"]),
            seed.words(&[&long[..510], "b"]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{at}");
        }
        assert_eq!(seed.words(&[&long]), seed.words(&[&long]));
    }
}
