//! Digests, by which a source and a hub find out if they hold the same halves, and which ones differ.

use serde::{Deserialize, Serialize};

/// The number of buckets: one for each bit of a set of buckets.
const BUCKETS: usize = 64;

/// A digest of a set of halves in 64 buckets: for each bucket, the XOR of the fingerprints of its halves. If the
/// digests of two sides differ, only the halves in the buckets that differ must be sent again.
///
/// The source computes the fingerprint of each half with a secret key, so that an author of an app's texts cannot
/// craft two halves with the same fingerprint. The hub only combines the fingerprints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Buckets(Vec<u64>);

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets(vec![0; BUCKETS])
    }
}

impl From<Vec<u64>> for Buckets {
    fn from(buckets: Vec<u64>) -> Buckets {
        Buckets(buckets)
    }
}

impl Buckets {
    /// Returns the values of the buckets, in their order.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// Adds the half with this fingerprint to the set, or removes it if the set contains it. The order of calls does
    /// not matter.
    pub fn toggle(&mut self, fingerprint: u64) {
        if let Some(bucket) = self.0.get_mut(bucket(fingerprint)) {
            *bucket ^= fingerprint;
        }
    }

    /// Returns the buckets that differ from those of `other`, as a set of 64 bits; 0 if none does, all bits if one of
    /// the digests does not have 64 buckets.
    pub fn differing(&self, other: &Buckets) -> u64 {
        if self.0.len() != BUCKETS || other.0.len() != BUCKETS {
            return u64::MAX;
        }
        let differ = self.0.iter().zip(&other.0).enumerate().filter(|(_, (own, other))| own != other);
        differ.fold(0, |set, (at, _)| set | 1 << at)
    }
}

/// Returns true if the half with this fingerprint is in one of `buckets`, a set of 64 bits.
pub fn is_in(buckets: u64, fingerprint: u64) -> bool {
    buckets & (1 << bucket(fingerprint)) != 0
}

fn bucket(fingerprint: u64) -> usize {
    (fingerprint % BUCKETS as u64) as usize
}
