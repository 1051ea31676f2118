//! What of a cluster is known, and since when: kind by kind, and namespace by namespace where that differs.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

/// How well the objects of a kind, in a namespace or everywhere, are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScopeState {
    /// Nobody has asked for them yet.
    Unread,
    /// They are being read; what is there of them may be old, or not all.
    CatchingUp,
    /// Every change is seen.
    Live,
    /// They were known once: nobody has confirmed since that they are still so.
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
    /// How well it is known.
    pub state: ScopeState,
    /// Since when that is so.
    pub since: Option<Timestamp>,
    /// Why, for people; may be empty.
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
    /// Whether an object that is not there does not exist, as far as anybody knows.
    pub fn tells_absence(&self) -> bool {
        self.is_complete && !matches!(self.state, ScopeState::Forbidden) || self.state == ScopeState::Absent
    }
}

/// The scopes of a kind.
#[derive(Debug, Clone, Default)]
pub(super) struct KindScopes {
    /// Where no other is: everywhere.
    pub(super) whole: Option<Scope>,
    pub(super) of_namespace: BTreeMap<Arc<str>, Scope>,
}

impl KindScopes {
    pub(super) fn at(&self, namespace: &str) -> Option<&Scope> {
        self.of_namespace.get(namespace).or(self.whole.as_ref())
    }

    /// The worst of all, where one asks for all.
    pub(super) fn everywhere(&self) -> Option<&Scope> {
        self.whole.as_ref()
    }
}
