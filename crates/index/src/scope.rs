//! The read state of a cluster's scopes: per kind, and per namespace where that differs.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

/// The read state of the objects of a kind, in one namespace or everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScopeState {
    /// The objects were never read.
    Unread,
    /// The objects are being listed; those in the index may be outdated or incomplete.
    CatchingUp,
    /// The objects were listed, and every change arrives.
    Live,
    /// The objects were read before, and have not been confirmed since.
    Stale,
    /// The API server does not allow reading the objects.
    Forbidden,
    /// The objects cannot be read for another reason.
    Broken,
    /// The API server does not serve the kind.
    Absent,
}

/// A scope's state, with its start and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The state of the scope.
    pub state: ScopeState,
    /// The time at which the state began; `None` if unknown.
    pub since: Option<Timestamp>,
    /// The reason for the state, for people; may be empty.
    pub reason: Arc<str>,
    /// True if a list of all objects of the scope ended at least once.
    pub is_complete: bool,
}

impl Default for Scope {
    fn default() -> Scope {
        Scope { state: ScopeState::Unread, since: None, reason: Arc::from(""), is_complete: false }
    }
}

impl Scope {
    /// Returns true if an object of this scope that is not in the index does not exist: all objects were listed and
    /// reading them is not forbidden, or the API server does not serve the kind.
    pub fn tells_absence(&self) -> bool {
        self.is_complete && !matches!(self.state, ScopeState::Forbidden) || self.state == ScopeState::Absent
    }
}

/// The scopes of a kind: one for all namespaces, and those of single namespaces.
#[derive(Debug, Clone, Default)]
pub(super) struct KindScopes {
    /// The scope of all namespaces that have no scope of their own; `None` if only single namespaces have scopes.
    pub(super) whole: Option<Scope>,
    pub(super) of_namespace: BTreeMap<Arc<str>, Scope>,
}

impl KindScopes {
    pub(super) fn at(&self, namespace: &str) -> Option<&Scope> {
        self.of_namespace.get(namespace).or(self.whole.as_ref())
    }

    /// Returns the scope of all namespaces that have none of their own; `None` if only single namespaces have scopes.
    pub(super) fn everywhere(&self) -> Option<&Scope> {
        self.whole.as_ref()
    }
}
