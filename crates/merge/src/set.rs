//! Sets of fields.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::path::{Path, PathElement};
use crate::schema::{Resolved, Schema, TypeRef};

/// A set of fields of an object, by their paths. That a field is in the set says nothing of those below it.
///
/// The object itself is never in a set: nobody owns it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: BTreeMap<PathElement, Node>,
}

/// A field that is in a set, or above one that is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    is_member: bool,
    below: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }
}

impl FieldSet {
    /// Returns true if no field is in the set.
    pub fn is_empty(&self) -> bool {
        // A node that is empty is never kept.
        self.nodes.is_empty()
    }

    /// Returns the number of fields in the set.
    pub fn len(&self) -> usize {
        self.nodes.values().map(|node| usize::from(node.is_member) + node.below.len()).sum()
    }

    /// Adds the field at a path; does nothing for that of the object itself.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        if !self.nodes.contains_key(first) {
            self.nodes.insert(first.clone(), Node::default());
        }
        if let Some(node) = self.nodes.get_mut(first) {
            match rest {
                [] => node.is_member = true,
                rest => node.below.insert(rest),
            }
        }
    }

    /// Returns true if the field at a path is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.is_member(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.contains(rest)),
        }
    }

    /// Returns true if the field that is one step away is in the set.
    pub(crate) fn is_member(&self, element: &PathElement) -> bool {
        self.nodes.get(element).is_some_and(|node| node.is_member)
    }

    /// Returns the fields below the one that is one step away, by their paths from there; `None` if there are none.
    pub(crate) fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.nodes.get(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// Returns each field one step away that is in the set, or above one that is: if it is in the set, and those below it.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&PathElement, bool, &FieldSet)> {
        self.nodes.iter().map(|(element, node)| (element, node.is_member, &node.below))
    }

    /// Adds a field one step away, and those below it.
    pub(crate) fn add(&mut self, element: PathElement, is_member: bool, below: FieldSet) {
        let node = Node { is_member, below };
        if node.is_empty() {
            return;
        }
        match self.nodes.entry(element) {
            Entry::Vacant(entry) => drop(entry.insert(node)),
            Entry::Occupied(mut entry) => {
                let old = entry.get_mut();
                old.is_member |= node.is_member;
                old.below = old.below.union(&node.below);
            }
        }
    }

    /// Returns the paths of all fields, sorted.
    pub fn paths(&self) -> Vec<Path> {
        let (mut paths, mut path) = (Vec::new(), Path::new());
        self.collect(&mut path, &mut paths);
        paths
    }

    fn collect(&self, path: &mut Path, paths: &mut Vec<Path>) {
        for (element, node) in &self.nodes {
            path.push(element.clone());
            if node.is_member {
                paths.push(path.clone());
            }
            node.below.collect(path, paths);
            path.pop();
        }
    }

    /// Returns the fields that are in one of the sets.
    #[must_use]
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        let mut all = self.clone();
        for (element, node) in &other.nodes {
            all.add(element.clone(), node.is_member, node.below.clone());
        }
        all
    }

    /// Returns the fields that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        let mut both = FieldSet::default();
        for (element, node) in &self.nodes {
            if let Some(twin) = other.nodes.get(element) {
                let is_member = node.is_member && twin.is_member;
                both.add(element.clone(), is_member, node.below.intersection(&twin.below));
            }
        }
        both
    }

    /// Returns the fields that are in this set and not in the other one.
    #[must_use]
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        self.without(other, |node, twin| {
            (node.is_member && !twin.is_member, node.below.difference(&twin.below))
        })
    }

    /// Returns the fields of this set that are neither in the other one nor below one that is.
    #[must_use]
    pub fn recursive_difference(&self, other: &FieldSet) -> FieldSet {
        self.without(other, |node, twin| match twin.is_member {
            true => (false, FieldSet::default()),
            false => (node.is_member, node.below.recursive_difference(&twin.below)),
        })
    }

    fn without(&self, other: &FieldSet, left: impl Fn(&Node, &Node) -> (bool, FieldSet)) -> FieldSet {
        let mut rest = FieldSet::default();
        for (element, node) in &self.nodes {
            let (is_member, below) = match other.nodes.get(element) {
                Some(twin) => left(node, twin),
                None => (node.is_member, node.below.clone()),
            };
            rest.add(element.clone(), is_member, below);
        }
        rest
    }

    /// Adds the fields that the schema names and that are above one in the set: whoever owns a field of a struct owns the
    /// struct, too, when items are removed.
    pub(crate) fn with_named(&self, schema: &Schema, at: &TypeRef) -> FieldSet {
        let atom = schema.resolve(at).unwrap_or_default();
        let mut named = FieldSet::default();
        for (element, is_member, below) in self.nodes() {
            let (is_named, next) = step(&atom, element);
            let is_member = is_member || (is_named && !below.is_empty());
            named.add(element.clone(), is_member, below.with_named(schema, next));
        }
        named
    }
}

/// Returns true if the type has a field of this name, and the type of what an element leads to.
fn step<'s>(atom: &Resolved<'s>, element: &PathElement) -> (bool, &'s TypeRef) {
    match (element, atom.map, atom.list) {
        (PathElement::Field(name), Some((map, _)), _) => match map.fields.get(name) {
            Some(field) => (true, &field.of),
            None => (false, &map.element),
        },
        (PathElement::Key(_), _, Some((list, _))) => (false, &list.element),
        _ => (false, TypeRef::NONE),
    }
}

impl FromIterator<Path> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = FieldSet::default();
        paths.into_iter().for_each(|path| set.insert(&path));
        set
    }
}
