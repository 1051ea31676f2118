//! The lookups that assessments make in a snapshot: its implementation of [`ClusterState`].

use std::borrow::Cow;
use std::collections::btree_map::Range;
use std::sync::Arc;

use taffrail_object::json::Value;
use taffrail_object::{AsObjectKey, GroupKind, Object, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::assess::{Event, evidence_projection};
use taffrail_status::{ClusterState, Listing, Observed, Presence};

use super::marks::ListOutcome;
use super::{NotInSnapshot, Snapshot, Stored};
use crate::objects::Objects;

impl Snapshot {
    fn missing(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        if let Some(message) = &self.lost {
            return Presence::Unobserved(Cow::Borrowed(message));
        }
        if let Some(read) = self.single_reads.get(&key as &dyn AsObjectKey) {
            let answers = || read.at_least(Projection::Metadata);
            return match answers().find_map(Option::as_ref).filter(|_| answers().all(Option::is_some)) {
                None => Presence::Absent,
                Some(message) => Presence::Unobserved(Cow::Borrowed(message)),
            };
        }
        let kind = key.group_kind();
        let marks = self.kinds.get(&kind);
        let find = |namespace| marks.and_then(|marks| marks.find(namespace, Projection::Metadata));
        let mark = find(Some(key.namespace)).or_else(|| find(None));
        match mark {
            Some(ListOutcome::Listed) => return Presence::Absent,
            Some(ListOutcome::Selected) => {
                return Presence::Unobserved(Cow::Borrowed("only some of its kind were read"));
            }
            Some(ListOutcome::Failed { message, .. }) => return Presence::Unobserved(Cow::Borrowed(message)),
            Some(ListOutcome::NotServed { .. }) | None => {}
        }
        match &self.facts.catalog {
            Some(catalog) if !catalog.may_serve(&kind) => return Presence::Absent,
            Some(catalog) => {
                if let Some(reason) = catalog.broken(&kind.group) {
                    return Presence::Unobserved(Cow::Borrowed(reason));
                }
            }
            None if mark.is_some() => return Presence::Absent,
            None => {}
        }
        match self.rest {
            NotInSnapshot::Absent => Presence::Absent,
            NotInSnapshot::Unobserved(reason) => Presence::Unobserved(Cow::Borrowed(reason)),
        }
    }

    /// Lists the stored objects with these keys, in their order. Keys that follow each other in the snapshot are
    /// found without a search.
    fn each<'a>(&'a self, keys: impl IntoIterator<Item = &'a Arc<ObjectKey>> + 'a) -> Listing<'a> {
        let mut after = Range::default();
        let objects = keys.into_iter().filter_map(move |key| {
            let (own, stored) = after.next().filter(|(own, _)| Arc::ptr_eq(own, key)).or_else(|| {
                after = self.from(key.as_object_key());
                after.next().filter(|(own, _)| *own == key)
            })?;
            stored.observed(own)
        });
        Box::new(objects)
    }

    /// Iterates over the events about the object of this kind, namespace (empty for cluster-scoped) and name,
    /// each once.
    pub fn events_about(&self, kind: &str, namespace: &str, name: &str) -> Listing<'_> {
        let events = self.pointers().events(kind, namespace, name);
        self.each(events.filter(|event| !self.is_twin(event)))
    }

    /// Returns true for an event of the group `events.k8s.io` that the core group serves too, and that would
    /// otherwise count twice.
    fn is_twin(&self, event: &ObjectKey) -> bool {
        let twin = ObjectKeyRef { group: "", ..event.as_ref() };
        !event.group.is_empty()
            && self.get(twin).present().is_some_and(|twin| Event::read(&twin.object).is_some())
    }
}

impl ClusterState for Snapshot {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        let found = self.objects.get_key_value(&key as &dyn AsObjectKey);
        let observed = found.and_then(|(key, stored)| stored.observed(key));
        observed.map_or_else(|| self.missing(key), Presence::Present)
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        let Some(namespace) = namespace else {
            return Box::new(self.range(group, kind).filter_map(|(key, stored)| stored.observed(key)));
        };
        let after = self.from(ObjectKeyRef::new(group, kind, namespace, ""));
        let first = after.clone().next().map(|(key, _)| key);
        let first = first.filter(|key| key.group == group && key.kind == kind && key.namespace == namespace);
        let is_beside = move |(key, _): &(&Arc<ObjectKey>, &Stored)| {
            first.is_some_and(|first| {
                key.namespace == first.namespace && key.kind == first.kind && key.group == first.group
            })
        };
        Box::new(after.take_while(is_beside).filter_map(|(key, stored)| stored.observed(key)))
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.each(self.pointers().controlled(uid, namespace))
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        let pointers = self.pointers();
        self.each(pointers.controlled(uid, namespace).chain(pointers.held(uid, namespace)))
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        self.each(self.users_of(namespace, claim))
    }

    fn knows_users(&self, namespace: &str) -> bool {
        self.is_observed("", "Pod", Some(namespace)) && !self.lacks_pods(namespace)
    }

    fn budgets(&self, namespace: &str, labels: Option<Value<'_>>) -> Listing<'_> {
        self.each(self.budgets_of(namespace, labels))
    }

    fn terminating_on(&self, node: &str) -> Listing<'_> {
        self.each(self.leaving(node))
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        let key = self.defining(group, kind)?;
        self.objects.get(key)?.observed(key)
    }

    fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        self.facts.has_status_subresource(group, version, kind)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        self.each(self.contents(namespace))
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        let events = self.events_about(about.kind(), &about.namespace(), &about.name());
        let read = events.filter_map(|observed| Event::read(&observed.object));
        read.filter(|(_, regarding)| regarding.is(about)).map(|(event, _)| event).collect()
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        let kind = &GroupKind::new(group, kind);
        if self.is_lost() {
            return false;
        }
        let wanted = evidence_projection(&kind.group, &kind.kind);
        let mark = self.kinds.get(kind).and_then(|marks| marks.find(namespace, wanted));
        match mark {
            Some(ListOutcome::Listed) => return true,
            Some(ListOutcome::Selected | ListOutcome::Failed { .. }) => return false,
            Some(ListOutcome::NotServed { .. }) | None => {}
        }
        match &self.facts.catalog {
            Some(catalog) if !catalog.may_serve(kind) => true,
            Some(catalog) if catalog.broken(&kind.group).is_some() => false,
            None if mark.is_some() => true,
            _ => matches!(self.rest, NotInSnapshot::Absent),
        }
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        !self.is_dump()
            || self.of_kind(group, kind, Some(namespace)).next().is_some()
            || self.definition(group, kind).is_some()
    }
}
