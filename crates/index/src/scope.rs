//! What of a cluster is known, and since when: kind by kind, and namespace by namespace where that differs.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::contents::Contents;
use super::view::ObjectRef;
use super::{Index, KindId};

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
    fn at(&self, namespace: &str) -> Option<&Scope> {
        self.of_namespace.get(namespace).or(self.whole.as_ref())
    }

    /// The worst of all, where one asks for all.
    fn everywhere(&self) -> Option<&Scope> {
        self.whole.as_ref()
    }
}

impl Contents {
    /// The scope that the objects of a kind in a namespace (empty: in none) are in.
    pub fn scope(&self, kind: KindId, namespace: &str) -> Scope {
        let own = self.scopes.get(kind.0 as usize).and_then(|scopes| scopes.at(namespace));
        own.cloned().unwrap_or_default()
    }

    /// All scopes: the kind, the namespace if it is for one, and the state.
    pub fn scopes(&self) -> impl Iterator<Item = (KindId, Option<&str>, &Scope)> {
        self.scopes.iter().enumerate().flat_map(|(at, scopes)| {
            let kind = KindId(at as u32);
            let whole = scopes.whole.as_ref().map(|scope| (kind, None, scope));
            let each = scopes.of_namespace.iter();
            whole.into_iter().chain(each.map(move |(namespace, scope)| (kind, Some(&**namespace), scope)))
        })
    }

    /// Whether all objects of a kind were read: those of a namespace, or all.
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

    pub(super) fn scope_mut(&mut self, kind: KindId, namespace: Option<&str>) -> Option<&mut Scope> {
        let scopes = Arc::make_mut(Arc::make_mut(&mut self.scopes).get_mut(kind.0 as usize)?);
        Some(match namespace {
            None => scopes.whole.get_or_insert_default(),
            Some(namespace) => scopes.of_namespace.entry(namespace.into()).or_default(),
        })
    }

    pub(super) fn forget_scope(&mut self, kind: KindId, namespace: Option<&str>) {
        let Some(scopes) = Arc::make_mut(&mut self.scopes).get_mut(kind.0 as usize) else { return };
        let scopes = Arc::make_mut(scopes);
        match namespace {
            None => scopes.whole = None,
            Some(namespace) => drop(scopes.of_namespace.remove(namespace)),
        }
    }
}

/// What only the owner does.
impl Index {
    /// Says how well a scope is known: a kind, in one namespace or, where no other scope is, everywhere.
    pub fn set_scope(
        &mut self,
        kind: KindId,
        namespace: Option<&str>,
        state: ScopeState,
        reason: &str,
        now: Timestamp,
    ) {
        self.change_scope(kind, namespace, |scope| {
            if scope.state != state {
                (scope.state, scope.since) = (state, Some(now));
            }
            if *scope.reason != *reason {
                scope.reason = reason.into();
            }
        });
    }

    fn change_scope(&mut self, kind: KindId, namespace: Option<&str>, change: impl FnOnce(&mut Scope)) {
        let Some(scope) = self.contents.scope_mut(kind, namespace) else { return };
        let before = scope.clone();
        change(scope);
        if *scope != before {
            let told = before.tells_absence() != scope.tells_absence();
            let is_confirmed = before.state == ScopeState::Stale && scope.state != ScopeState::Stale;
            self.pending.scopes_changed = true;
            if told {
                self.unsettle_scope(kind);
            }
            if is_confirmed {
                self.suspect(kind, namespace);
            }
        }
    }

    /// Says that all objects of a scope are about to be told again.
    ///
    /// What is there stays meanwhile: nothing is kept twice. [`end`](Index::end) forgets what was not told.
    pub fn begin(&mut self, kind: KindId, namespace: Option<&str>, now: Timestamp) {
        self.epoch += 1;
        self.reading.insert((kind, namespace.map(Box::from)), self.epoch);
        self.set_scope(kind, namespace, ScopeState::CatchingUp, "", now);
    }

    /// Says that an object is still there as it was; `false` if it is not known in that version, so that it must be told
    /// whole.
    pub fn seen(&mut self, kind: KindId, namespace: &str, name: &str, version: &str) -> bool {
        let Some(resource) = self.contents.resource(kind) else { return false };
        let place = self.contents.place_of(&resource.group, &resource.kind, namespace, name);
        let is_same = |object: &ObjectRef<'_>| !version.is_empty() && object.resource_version() == version;
        let Some(object) = place.and_then(|place| self.contents.object(place)).filter(is_same) else {
            return false;
        };
        let place = object.place as usize;
        if let Some(epoch) = self.epochs.get_mut(place) {
            *epoch = self.epoch;
        }
        true
    }

    /// Says that all objects of a scope were told: those that were not are gone. Returns how many that are.
    ///
    /// The scope is complete from now on, and live. Without [`begin`](Index::begin) before it nothing happens.
    pub fn end(&mut self, kind: KindId, namespace: Option<&str>, now: Timestamp) -> usize {
        let Some(begun) = self.reading.remove(&(kind, namespace.map(Box::from))) else { return 0 };
        let contents = &self.contents;
        // Objects of namespaces that have a scope of their own are not this one's to forget.
        let has_own = |object: &ObjectRef<'_>| {
            let scopes = contents.scopes.get(kind.0 as usize);
            namespace.is_none()
                && scopes.is_some_and(|scopes| scopes.of_namespace.contains_key(object.namespace()))
        };
        let untold = contents.of_kind(kind, namespace).filter(|object| {
            self.epochs.get(object.place as usize).is_none_or(|epoch| *epoch < begun) && !has_own(object)
        });
        let untold: Vec<u32> = untold.map(|object| object.place).collect();
        for place in &untold {
            self.take_out(*place, now);
        }
        self.change_scope(kind, namespace, |scope| {
            if scope.state != ScopeState::Live {
                (scope.state, scope.since) = (ScopeState::Live, Some(now));
            }
            (scope.is_complete, scope.reason) = (true, Arc::from(""));
        });
        untold.len()
    }

    /// Forgets a scope and everything in it: a kind that is served no more, a namespace that nobody asks for any
    /// more.
    pub fn forget(&mut self, kind: KindId, namespace: Option<&str>, now: Timestamp) -> usize {
        self.epoch += 1;
        self.reading.insert((kind, namespace.map(Box::from)), self.epoch);
        let gone = self.end(kind, namespace, now);
        self.contents.forget_scope(kind, namespace);
        gone
    }
}
