//! Counters of requests and of response bytes, by purpose.

use std::ops::{Add, AddAssign};
use std::sync::atomic::{AtomicU64, Ordering};

use taffrail_object::words;

/// The purpose of a request of a watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// Reading pages of lists.
    List,
    /// Watching, including watches that begin with a streamed list.
    Watch,
    /// Probing whether the server answers, and which resource version it has.
    Probe,
}

words! { Purpose { List = "list", Watch = "watch", Probe = "probe" } }

/// Number of purposes.
const PURPOSES: usize = Purpose::ALL.len();

/// The number of requests and the size of their responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Number of requests.
    pub requests: u64,
    /// Bytes of the responses' bodies, after decompression.
    pub bytes: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(mut self, other: Cost) -> Cost {
        self += other;
        self
    }
}

/// Request counters of one cluster by purpose, and counters of its watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Costs {
    by_purpose: [Cost; PURPOSES],
    /// Number of watches reopened because they were silent for too long.
    pub silences: u64,
    /// Number of lists of scopes that were repeated, plus one for each time that a probe of the connectivity showed an
    /// older state than before.
    pub relists: u64,
}

impl Costs {
    /// Returns the cost of the requests for one purpose.
    pub fn of(&self, purpose: Purpose) -> Cost {
        self.by_purpose[purpose as usize]
    }
}

/// The counters behind the [`Costs`] of a watcher.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    requests: [AtomicU64; PURPOSES],
    bytes: [AtomicU64; PURPOSES],
    /// Number of requests that the connection's own counters do not include: lists, watches and version checks of a
    /// watcher.
    streams: AtomicU64,
    silences: AtomicU64,
    relists: AtomicU64,
}

impl Counters {
    pub(crate) fn stream(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the cost of the requests that the connection's own counters do not include.
    pub(crate) fn streamed(&self) -> Cost {
        let bytes = self.bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum();
        Cost { requests: self.streams.load(Ordering::Relaxed), bytes }
    }

    pub(crate) fn request(&self, purpose: Purpose) {
        self.requests[purpose as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self, purpose: Purpose, bytes: usize) {
        self.bytes[purpose as usize].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn silence(&self) {
        self.silences.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn relist(&self) {
        self.relists.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Costs {
        let by_purpose = Purpose::ALL.map(|purpose| Cost {
            requests: self.requests[purpose as usize].load(Ordering::Relaxed),
            bytes: self.bytes[purpose as usize].load(Ordering::Relaxed),
        });
        Costs {
            by_purpose,
            silences: self.silences.load(Ordering::Relaxed),
            relists: self.relists.load(Ordering::Relaxed),
        }
    }
}
