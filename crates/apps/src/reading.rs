//! Statistics of reading a live cluster: its cost, and the state of its watches.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::scope::Scope;

/// The way in which a live cluster is read, and its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadStats {
    /// True if lists are read as streams, in which each object arrives on its own; false if in pages.
    pub streams: bool,
    /// True if the client asks the server to compress lists; false for streams.
    pub compressed: bool,
    /// The version of HTTP: `HTTP/2`.
    pub protocol: &'static str,
    /// Upper bound of the network round trip to the server: the shorter of the fastest answer and a third of the time
    /// that the connection took.
    pub round_trip: Duration,
    /// The requests made so far.
    pub cost: ReadingCost,
    /// The state of the watches; `None` if the cluster was read once.
    pub followed: Option<WatchStats>,
}

/// Number of requests to a cluster and size of its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingCost {
    /// Number of requests.
    pub requests: u64,
    /// Bytes of answers, after decompression.
    pub bytes: u64,
}

/// The state of the watches of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchStats {
    /// The time since when the cluster, and all needed scopes but those that are forbidden or absent, have been live
    /// without a gap; `None` while one is not.
    pub live_since: Option<Timestamp>,
    /// Number of scopes that are followed.
    pub scopes: usize,
    /// The scopes that are not live, sorted by state, then scope.
    pub not_live: Vec<NotLiveScope>,
}

/// A scope that is watched but is not up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotLiveScope {
    /// The scope.
    pub scope: Scope,
    /// The state of the scope in place of live.
    pub state: NotLiveState,
    /// The reason, for people; may be empty.
    pub message: String,
    /// The time since when it has been in this state.
    pub since: Timestamp,
}

/// The state of a watched scope that is not live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NotLiveState {
    /// The scope is being listed.
    CatchingUp,
    /// The server denies access.
    Forbidden,
    /// The scope cannot be read for another reason; its last known objects are shown for a while.
    Broken,
    /// The server has no such kind.
    Absent,
}

impl NotLiveState {
    /// Returns the name used in JSON and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            NotLiveState::CatchingUp => "CatchingUp",
            NotLiveState::Forbidden => "Forbidden",
            NotLiveState::Broken => "Broken",
            NotLiveState::Absent => "Absent",
        }
    }
}

impl ReadStats {
    /// Returns the way in which lists are read, in words: `streams`, `gzip pages` or `pages`.
    pub fn lists(&self) -> &'static str {
        match (self.streams, self.compressed) {
            (true, _) => "streams",
            (false, true) => "gzip pages",
            (false, false) => "pages",
        }
    }
}
