//! The scopes that hold an object, found without looking at all of them.

use std::collections::HashMap;

use taffrail_apps::{Read, Target};
use taffrail_object::{ObjectKey, Projection};

use super::FollowedScope;

/// An index that finds the watched scopes that hold an object by its key.
pub(super) struct Holders<'f> {
    singles: HashMap<&'f ObjectKey, &'f FollowedScope>,
    lists: HashMap<(&'f str, &'f str, Option<&'f str>), Vec<&'f FollowedScope>>,
}

impl<'f> Holders<'f> {
    /// Builds the index of the scopes. Of two scopes of one single object that of the whole object counts.
    pub(super) fn of(scopes: impl IntoIterator<Item = &'f FollowedScope>) -> Holders<'f> {
        let mut holders = Holders { singles: HashMap::new(), lists: HashMap::new() };
        for followed in scopes {
            match &followed.key {
                Some(key) => {
                    let known = holders.singles.entry(key).or_insert(followed);
                    if followed.read.projection == Projection::Full {
                        *known = followed;
                    }
                }
                None => {
                    let Read { group, kind, namespace, .. } = &followed.read;
                    holders.lists.entry((group, kind, namespace.as_deref())).or_default().push(followed);
                }
            }
        }
        holders
    }

    /// Iterates over the list scopes (not those of a single object) that hold the object `key`.
    fn lists<'h>(&'h self, key: &'h ObjectKey) -> impl Iterator<Item = &'f FollowedScope> + use<'f, 'h> {
        let places = [None, Some(key.namespace.as_str())];
        let all = places.into_iter().filter_map(|place| self.lists.get(&(&*key.group, &*key.kind, place)));
        all.flatten().copied().filter(|followed| followed.keys.contains(key))
    }

    /// Returns true if any list scope holds the object.
    pub(super) fn is_listed(&self, key: &ObjectKey) -> bool {
        self.lists(key).next().is_some()
    }

    /// Returns true if any list scope holds the object with this projection or a larger one.
    pub(super) fn list(&self, key: &ObjectKey, projection: Projection) -> bool {
        self.lists(key).any(|followed| followed.read.projection.covers(projection))
    }

    /// Returns true if an answered list without a selector, of one namespace or all, holds the object with at
    /// least this projection.
    pub(super) fn list_as_whole(&self, key: &ObjectKey, projection: Projection) -> bool {
        let is_whole = |followed: &FollowedScope| {
            matches!(followed.read.target, Target::List { labels: None, fields: None }) && followed.answered
        };
        self.lists(key).any(|followed| is_whole(followed) && followed.read.projection.covers(projection))
    }

    /// Returns the largest projection in which any scope holds the object; `None` if no scope holds it.
    pub(super) fn held(&self, key: &ObjectKey) -> Option<Projection> {
        let single = self.singles.get(key).copied().filter(|followed| followed.keys.contains(key));
        let bodies = single.into_iter().chain(self.lists(key)).map(|followed| followed.read.projection);
        bodies.reduce(|one, other| if one == Projection::Full { one } else { other })
    }

    /// Returns true if a scope watches the whole object: the scope of this single object, or a list that holds it.
    pub(super) fn bring_body(&self, key: &ObjectKey) -> bool {
        self.singles.get(key).is_some_and(|followed| followed.read.projection.covers(Projection::Full))
            || self.list(key, Projection::Full)
    }
}
