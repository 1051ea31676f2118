//! Applies lists of scopes: their start, the objects that they confirm, and their end.

use std::sync::Arc;

use jiff::Timestamp;

use super::contents::Contents;
use super::scope::{Scope, ScopeState};
use super::view::ObjectRef;
use super::{Index, KindId};

impl Contents {
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

/// Lists of scopes, as the owner of the index reports them.
impl Index {
    /// Sets the state and the reason of a scope: a kind in one namespace or, with `None`, in all namespaces without a
    /// scope of their own. A state that differs begins `now`.
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
                self.note_scope_changed(kind);
            }
            if is_confirmed {
                self.suspect(kind, namespace);
            }
        }
    }

    /// Starts a list of a scope (a kind in one namespace or, with `None`, in all), and sets its state to
    /// [`CatchingUp`](ScopeState::CatchingUp).
    ///
    /// The objects of the scope stay until [`end`](Index::end) removes those that the list did not contain.
    pub fn begin(&mut self, kind: KindId, namespace: Option<&str>, now: Timestamp) {
        self.epoch += 1;
        self.reading.insert((kind, namespace.map(Box::from)), self.epoch);
        self.set_scope(kind, namespace, ScopeState::CatchingUp, "", now);
    }

    /// Confirms that an object still has this resource version. Returns false if the index has another version or no
    /// such object, or `version` is empty, so that the caller must apply the whole object.
    pub fn seen(&mut self, kind: KindId, namespace: &str, name: &str, version: &str) -> bool {
        let Some(resource) = self.contents.resource(kind) else { return false };
        let slot = self.contents.slot_of(&resource.group, &resource.kind, namespace, name);
        let is_same = |object: &ObjectRef<'_>| !version.is_empty() && object.resource_version() == version;
        let Some(object) = slot.and_then(|slot| self.contents.object(slot)).filter(is_same) else {
            return false;
        };
        let slot = object.slot as usize;
        if let Some(epoch) = self.epochs.get_mut(slot) {
            *epoch = self.epoch;
        }
        true
    }

    /// Ends the list of a scope that [`begin`](Index::begin) started with the same arguments: removes the objects that
    /// it did not contain, except those in namespaces with a scope of their own if it is of all namespaces, and returns
    /// their number.
    ///
    /// The scope then is complete and live. Without such a list nothing changes, and it returns 0.
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
            self.epochs.get(object.slot as usize).is_none_or(|epoch| *epoch < begun) && !has_own(object)
        });
        let untold: Vec<u32> = untold.map(|object| object.slot).collect();
        for slot in &untold {
            self.take_out(*slot);
        }
        self.change_scope(kind, namespace, |scope| {
            if scope.state != ScopeState::Live {
                (scope.state, scope.since) = (ScopeState::Live, Some(now));
            }
            (scope.is_complete, scope.reason) = (true, Arc::from(""));
        });
        untold.len()
    }

    /// Removes a scope and its objects, except (of the scope of all namespaces) those in namespaces with a scope of
    /// their own, because the kind is not served or the namespace not watched any more. Returns the number of objects
    /// removed.
    pub fn forget(&mut self, kind: KindId, namespace: Option<&str>, now: Timestamp) -> usize {
        self.epoch += 1;
        self.reading.insert((kind, namespace.map(Box::from)), self.epoch);
        let gone = self.end(kind, namespace, now);
        self.contents.forget_scope(kind, namespace);
        gone
    }
}
