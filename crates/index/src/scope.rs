//! The state of knowledge about a cluster, by kind, and by namespace where that differs.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

/// The state of knowledge about the objects of a kind, in a namespace or everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScopeState {
    /// They were never read.
    Unread,
    /// They are being read; the known ones may be outdated or incomplete.
    CatchingUp,
    /// Every change is seen.
    Live,
    /// They were known once, and have not been confirmed since.
    Stale,
    /// The API server does not let them be read.
    Forbidden,
    /// They cannot be read for another reason.
    Broken,
    /// The API server has no such kind.
    Absent,
}

/// The state of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The state of the scope.
    pub state: ScopeState,
    /// Since when that is so.
    pub since: Option<Timestamp>,
    /// The reason for the state, for people; may be empty.
    pub reason: Arc<str>,
    /// All objects of it were read at least once, and nothing was forgotten since.
    pub is_complete: bool,
}

impl Default for Scope {
    fn default() -> Scope {
        Scope { state: ScopeState::Unread, since: None, reason: Arc::from(""), is_complete: false }
    }
}

impl Scope {
    /// Returns true if an object that is not in the index does not exist, to the best of its knowledge.
    pub fn tells_absence(&self) -> bool {
        self.is_complete && !matches!(self.state, ScopeState::Forbidden) || self.state == ScopeState::Absent
    }
}

/// The scopes of a kind.
#[derive(Debug, Clone, Default)]
pub(super) struct KindScopes {
    /// The scope of the namespaces that have none of their own.
    pub(super) whole: Option<Scope>,
    pub(super) of_namespace: BTreeMap<Arc<str>, Scope>,
}

impl KindScopes {
    pub(super) fn at(&self, namespace: &str) -> Option<&Scope> {
        self.of_namespace.get(namespace).or(self.whole.as_ref())
    }

    /// Returns the worst of all scopes, for queries about all namespaces.
    pub(super) fn everywhere(&self) -> Option<&Scope> {
        self.whole.as_ref()
    }
}
