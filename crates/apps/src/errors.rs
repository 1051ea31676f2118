//! The errors of reading one cluster.

use std::collections::HashSet;
use std::ops::Deref;

use crate::scope::{Scope, ScopeError};

/// The errors of reading one cluster, with an index by scope: lookups are far more frequent than errors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Errors {
    list: Vec<ScopeError>,
    /// The scopes of all errors, for a fast check. It may also contain scopes whose errors were removed.
    scopes: HashSet<Scope>,
}

impl Errors {
    pub(crate) fn push(&mut self, error: ScopeError) {
        if !self.scopes.contains(&error.scope) {
            self.scopes.insert(error.scope.clone());
        }
        self.list.push(error);
    }

    /// Adds an error, unless an equal one is present.
    pub(crate) fn push_once(&mut self, error: ScopeError) {
        if !self.scopes.contains(&error.scope) || !self.list.contains(&error) {
            self.push(error);
        }
    }

    /// Returns true if there may be an error of a scope: one was added, though it may have been removed since.
    pub(crate) fn has(&self, scope: &Scope) -> bool {
        self.scopes.contains(scope)
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.scopes.clear();
    }

    pub(crate) fn retain(&mut self, is_kept: impl FnMut(&ScopeError) -> bool) {
        self.list.retain(is_kept);
    }

    /// Removes the errors of a scope, except those with the message `kept`. Returns true if there may have been
    /// errors to remove.
    ///
    /// Without errors of that scope this costs nothing.
    pub(crate) fn retract(&mut self, scope: &Scope, kept: Option<&str>) -> bool {
        let may_be = self.scopes.contains(scope);
        if may_be {
            self.list.retain(|error| error.scope != *scope || Some(&*error.message) == kept);
            if kept.is_none() {
                self.scopes.remove(scope);
            }
        }
        may_be
    }
}

impl Deref for Errors {
    type Target = [ScopeError];

    fn deref(&self) -> &[ScopeError] {
        &self.list
    }
}
