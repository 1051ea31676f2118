//! How a live cluster is read, for who wants to know what that costs and how well it is known.

use std::time::Duration;

use jiff::Timestamp;

use crate::objects::Scope;

/// How a live cluster is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Whether lists are read as streams, of which each object arrives on its own; else in pages.
    pub streams: bool,
    /// Whether lists are compressed on their way.
    pub compressed: bool,
    /// The version of HTTP: `HTTP/2`.
    pub protocol: &'static str,
    /// How long a journey to the server and back takes at most, by the fastest answer and the connection.
    pub round_trip: Duration,
    /// What was asked so far; `None` where two answers are compared, in which it would always differ.
    pub cost: Option<ReadingCost>,
    /// What is followed; `None` where it is read once.
    pub followed: Option<Following>,
}

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingCost {
    /// Requests.
    pub requests: u64,
    /// Bytes of answers, after decompression.
    pub bytes: u64,
}

/// What is followed of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Following {
    /// Since when all that is wanted has been known without a gap; `None` while it is not.
    pub live_since: Option<Timestamp>,
    /// How many scopes are followed.
    pub scopes: usize,
    /// Those that are not live.
    pub not_live: Vec<NotLive>,
}

/// A scope that is followed, and not known as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotLive {
    /// Which one.
    pub scope: Scope,
    /// How it is known instead.
    pub state: ScopeState,
    /// Why, for people; may be empty.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
}

/// How a scope is known that is not live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScopeState {
    /// It is being listed.
    CatchingUp,
    /// The server does not let us.
    Forbidden,
    /// It cannot be read for another reason; what was known of it goes on to be shown for a while.
    Broken,
    /// The server has no such kind.
    Absent,
}

impl ScopeState {
    /// The name used in JSON and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            ScopeState::CatchingUp => "CatchingUp",
            ScopeState::Forbidden => "Forbidden",
            ScopeState::Broken => "Broken",
            ScopeState::Absent => "Absent",
        }
    }
}

impl Reading {
    /// How lists are read, in words: `streams`, `gzip pages`, `pages`.
    pub fn lists(&self) -> &'static str {
        match (self.streams, self.compressed) {
            (true, _) => "streams",
            (false, true) => "gzip pages",
            (false, false) => "pages",
        }
    }
}
