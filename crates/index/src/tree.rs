//! Owners, and the objects that they own.
//!
//! The children of an owner, existing or not, form an *owner group*, found by the owner's UID. An object has links to
//! the owner groups that it owns, so a walk needs no table. An object to which others refer by name (a Service by the
//! name of its Endpoints, a StatefulSet by the names of its claims) has a second owner group, under the key of that
//! name.

use std::collections::HashSet;
use std::sync::Arc;

use super::chunked::Vacant;
use super::contents::Contents;
use super::pool::NONE;
use super::record::{Handle, List, Owner, OwnerGroup, Relation, Uid};

impl Contents {
    pub(super) fn owner_group(&self, id: Uid) -> Option<u32> {
        let is_it = |at| self.owner_groups.get(at).is_some_and(|owner_group| owner_group.id == id);
        self.by_owner_group.find(self.seed.value(&id), is_it)
    }

    fn owner_group_or_new(&mut self, vacant: &mut Vacant, id: Uid) -> u32 {
        if let Some(at) = self.owner_group(id) {
            return at;
        }
        let owner = self.owner_of_group(id);
        let at = vacant.take(&mut self.owner_groups);
        if let Some(owner_group) = self.owner_groups.get_mut(at) {
            *owner_group = OwnerGroup { id, ..OwnerGroup::default() };
        }
        let (seed, owner_groups) = (self.seed, &self.owner_groups);
        let rehash = |at| owner_groups.get(at).map_or(0, |owner_group| seed.value(&owner_group.id));
        self.by_owner_group.insert(seed.value(&id), at, rehash);
        if let Some(owner) = owner {
            self.give_owner_group(at, owner);
        }
        at
    }

    /// Returns the slot of the object with this UID, or of the one whose name has this key; `None` if neither exists.
    fn owner_of_group(&self, id: Uid) -> Option<u32> {
        self.slot_of_uid(id).or_else(|| self.slot_of_key(id))
    }

    fn give_owner_group(&mut self, at: u32, owner: u32) {
        let Some(links) = self.links.get_mut(owner) else { return };
        let next = std::mem::replace(&mut links.owner_groups, at);
        if let Some(owner_group) = self.owner_groups.get_mut(at) {
            (owner_group.owner, owner_group.next) = (owner, next);
        }
    }

    fn free_if_empty(&mut self, vacant: &mut Vacant, at: u32) {
        let Some(owner_group) = self.owner_groups.get(at) else { return };
        if owner_group.head != NONE || owner_group.others.is_some() || owner_group.owner != NONE {
            return;
        }
        let (seed, id, owner_groups) = (self.seed, owner_group.id, &self.owner_groups);
        let rehash = |at| owner_groups.get(at).map_or(0, |owner_group| seed.value(&owner_group.id));
        self.by_owner_group.remove(seed.value(&id), at, rehash);
        if let Some(owner_group) = self.owner_groups.get_mut(at) {
            *owner_group = OwnerGroup::default();
        }
        vacant.give(at);
    }

    /// Adds the child at a slot to the owner groups of its owners.
    pub(super) fn adopt(&mut self, vacant: &mut Vacant, child: u32, owners: &[Owner]) {
        let Some((first, others)) = owners.split_first() else { return };
        let at = self.owner_group_or_new(vacant, first.uid);
        let mut head = self.owner_groups.get(at).map_or(NONE, |owner_group| owner_group.head);
        self.push(List::Siblings, &mut head, child);
        if let Some(owner_group) = self.owner_groups.get_mut(at) {
            owner_group.head = head;
        }
        if let Some(links) = self.links.get_mut(child) {
            (links.parent, links.has_other_owners) = (at, !others.is_empty());
        }
        for owner in others {
            let at = self.owner_group_or_new(vacant, owner.uid);
            if let Some(owner_group) = self.owner_groups.get_mut(at) {
                let others = Arc::make_mut(owner_group.others.get_or_insert_default());
                if let Err(slot) = others.binary_search(&child) {
                    others.insert(slot, child);
                }
            }
        }
    }

    /// Removes the child at a slot from the owner groups of its owners.
    pub(super) fn abandon(&mut self, vacant: &mut Vacant, child: u32, owners: &[Owner]) {
        let Some((_, others)) = owners.split_first() else { return };
        let Some(at) = self.links.get(child).map(|links| links.parent) else { return };
        let mut head = self.owner_groups.get(at).map_or(NONE, |owner_group| owner_group.head);
        self.unlink(List::Siblings, &mut head, child);
        if let Some(owner_group) = self.owner_groups.get_mut(at) {
            owner_group.head = head;
        }
        if let Some(links) = self.links.get_mut(child) {
            (links.parent, links.has_other_owners) = (NONE, false);
        }
        self.free_if_empty(vacant, at);
        for owner in others {
            let Some(at) = self.owner_group(owner.uid) else { continue };
            if let Some(owner_group) = self.owner_groups.get_mut(at)
                && let Some(members) = &mut owner_group.others
            {
                let list = Arc::make_mut(members);
                if let Ok(slot) = list.binary_search(&child) {
                    list.remove(slot);
                }
                if list.is_empty() {
                    owner_group.others = None;
                }
            }
            self.free_if_empty(vacant, at);
        }
    }

    /// Makes an object the owner of those owner groups in `ids` and `made` that have no existing owner; those in `made`
    /// are created if missing.
    pub(super) fn found(&mut self, vacant: &mut Vacant, owner: u32, ids: &[Uid], made: &[Uid]) {
        for id in ids.iter().filter(|id| !id.is_none()) {
            if let Some(at) = self.owner_group(*id)
                && self.owner_groups.get(at).is_some_and(|owner_group| owner_group.owner == NONE)
            {
                self.give_owner_group(at, owner);
            }
        }
        for id in made {
            let at = self.owner_group_or_new(vacant, *id);
            if self.owner_groups.get(at).is_some_and(|owner_group| owner_group.owner == NONE) {
                self.give_owner_group(at, owner);
            }
        }
    }

    pub(super) fn set_twin(&mut self, slot: u32, is_twin: bool) {
        if self.links.get(slot).is_some_and(|links| links.is_twin != is_twin)
            && let Some(links) = self.links.get_mut(slot)
        {
            links.is_twin = is_twin;
        }
    }

    /// Changes the owner of the owner group `at`; with `None` it has no existing owner.
    pub(super) fn hand_over(&mut self, at: u32, owner: Option<u32>) {
        let Some(owner_group) = self.owner_groups.get(at) else { return };
        let (before, next) = (owner_group.owner, owner_group.next);
        if Some(before) == owner {
            return;
        }
        if let Some(links) = self.links.get_mut(before) {
            if links.owner_groups == at {
                links.owner_groups = next;
            } else {
                let mut other = links.owner_groups;
                while let Some(owner_group) = self.owner_groups.get_mut(other) {
                    other = owner_group.next;
                    if other == at {
                        owner_group.next = next;
                        break;
                    }
                }
            }
        }
        match owner {
            Some(owner) => self.give_owner_group(at, owner),
            None => {
                if let Some(owner_group) = self.owner_groups.get_mut(at) {
                    (owner_group.owner, owner_group.next) = (NONE, NONE);
                }
            }
        }
    }

    /// Removes an object as the owner of its owner groups; the children stay.
    pub(super) fn desert(&mut self, vacant: &mut Vacant, owner: u32) {
        let Some(links) = self.links.get_mut(owner) else { return };
        let mut at = std::mem::replace(&mut links.owner_groups, NONE);
        while let Some(owner_group) = self.owner_groups.get_mut(at) {
            let next = std::mem::replace(&mut owner_group.next, NONE);
            owner_group.owner = NONE;
            self.free_if_empty(vacant, at);
            at = next;
        }
    }

    /// Lists the owner groups whose owner is the object at a slot.
    pub(super) fn owner_groups_of(&self, owner: u32) -> impl Iterator<Item = &OwnerGroup> {
        let first = self.links.get(owner).map_or(NONE, |links| links.owner_groups);
        let owner_group = |at: u32| self.owner_groups.get(at);
        std::iter::successors(owner_group(first), move |own| owner_group(own.next))
    }

    /// Lists the slots of the children in an owner group.
    pub(super) fn members(&self, owner_group: &OwnerGroup) -> impl Iterator<Item = u32> {
        let others: &[u32] = owner_group.others.as_ref().map_or(&[], |others| others);
        self.list(List::Siblings, owner_group.head).chain(others.iter().copied())
    }

    /// Lists the slots of the objects that have `uid` among their owners, each with the relation.
    pub(super) fn dependents_of(&self, uid: Uid) -> impl Iterator<Item = (u32, Relation)> {
        let owner_group = self.owner_group(uid).and_then(|at| self.owner_groups.get(at));
        let members = owner_group.into_iter().flat_map(|owner_group| self.members(owner_group));
        members.filter_map(move |at| {
            let owners = self.owners.get(self.record(at)?.owners)?;
            Some((at, owners.iter().find(|owner| owner.uid == uid)?.relation))
        })
    }

    /// Lists the slots of the existing owners of an object other than itself, in the order of its owner list.
    pub(super) fn parents_of(&self, child: u32) -> impl Iterator<Item = u32> {
        self.parents_by(self.record(child).map_or(NONE, |record| record.owners), child)
    }

    /// Lists the slots of the existing owners in the owner list `owners` of an object, without the object itself.
    pub(super) fn parents_by(&self, owners: u32, child: u32) -> impl Iterator<Item = u32> {
        let owners = self.owners.get(owners).into_iter().flat_map(|owners| owners.iter());
        let owners = owners.filter_map(|owner| self.owner_groups.get(self.owner_group(owner.uid)?));
        owners.map(|owner_group| owner_group.owner).filter(move |owner| *owner != NONE && *owner != child)
    }
}

/// A node of a [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The object's handle.
    pub handle: Handle,
    /// Number of steps from a starting object to this one.
    pub depth: u32,
}

/// A walk over objects and everything that they own, each object once; an owner that leads to an object comes before
/// it. Of several owned objects with one UID, only the first by group, kind, namespace and name is visited.
#[derive(Debug)]
pub struct Tree<'s> {
    contents: &'s Contents,
    stack: Vec<(u32, u32)>,
    /// Slots of the starting objects that have owners, so that the walk may reach them again.
    roots: HashSet<u32>,
    /// The slot of the starting object that has owners if there is only one such object, instead of `roots`.
    root: u32,
    /// Slots of the objects with several owners that were returned: only they can be reached twice.
    met: HashSet<u32>,
}

impl<'s> Tree<'s> {
    pub(super) fn new(contents: &'s Contents, roots: impl Iterator<Item = u32>) -> Tree<'s> {
        let mut stack: Vec<_> = roots.map(|root| (root, 0)).collect();
        stack.reverse();
        let mut sorted: Vec<u32> = stack.iter().map(|(root, _)| *root).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            let mut seen = HashSet::new();
            stack.retain(|(root, _)| seen.insert(*root));
        }
        sorted.retain(|root| contents.links.get(*root).is_some_and(|links| links.parent != NONE));
        let (root, roots) = match *sorted {
            [root] => (root, HashSet::new()),
            _ => (NONE, sorted.into_iter().collect()),
        };
        Tree { contents, stack, roots, root, met: HashSet::new() }
    }
}

impl Iterator for Tree<'_> {
    type Item = Node;

    #[inline]
    fn next(&mut self) -> Option<Node> {
        let contents = self.contents;
        let (slot, depth) = self.stack.pop()?;
        let links = contents.links.get(slot)?;
        let mut at = links.owner_groups;
        while let Some(owner_group) = contents.owner_groups.get(at) {
            let mut child = owner_group.head;
            let others: &[u32] = owner_group.others.as_ref().map_or(&[], |others| others);
            let mut others = others.iter();
            loop {
                if child == NONE {
                    match others.next() {
                        Some(other) => child = *other,
                        None => break,
                    }
                }
                let Some(own) = contents.links.get(child) else { break };
                // Owners may form a circle, but only one that goes through where the walk began, or through an
                // object with several owners.
                let is_met = child == self.root
                    || own.is_twin
                    || !self.roots.is_empty() && self.roots.contains(&child)
                    || own.has_other_owners && !self.met.insert(child);
                if !is_met {
                    self.stack.push((child, depth + 1));
                }
                child = if own.parent == at { own.siblings.next } else { NONE };
            }
            at = owner_group.next;
        }
        Some(Node { handle: Handle { slot, generation: links.generation }, depth })
    }
}
