//! The objects of one cluster as evidence for `assess`.

use std::borrow::Cow;

use taffrail_status::Object;
use taffrail_status::assess::{self, Event, Evidence, Listing};

use crate::identity::{GroupKind, ObjectKey};
use crate::objects::{Body, Lookup, Objects, Observed};

/// What is known of one cluster, as answers to questions about what stands behind an object.
pub struct ClusterEvidence<'a> {
    objects: &'a dyn Objects,
}

impl<'a> ClusterEvidence<'a> {
    /// The evidence that `objects` hold.
    pub fn new(objects: &'a dyn Objects) -> ClusterEvidence<'a> {
        ClusterEvidence { objects }
    }
}

/// Kinds of which evidence asks only whether an object is there.
const EXISTENCE: [(&str, &str); 3] = [("", "ConfigMap"), ("", "Secret"), ("", "ServiceAccount")];

/// How much of an object has to be read before it is evidence.
pub(crate) fn body_of_evidence(group: &str, kind: &str) -> Body {
    if EXISTENCE.contains(&(group, kind)) { Body::Metadata } else { Body::Whole }
}

/// Whether what was read of an object is enough to be evidence: that a body is missing must not look as if its
/// fields were empty.
fn speaks(observed: &Observed<'_>) -> bool {
    observed.body == Body::Whole
        || body_of_evidence(&observed.key.group, &observed.key.kind) == Body::Metadata
        || !observed.object.text(&["metadata", "deletionTimestamp"]).is_empty()
}

impl Evidence for ClusterEvidence<'_> {
    fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> assess::Lookup<'_> {
        match self.objects.get(&ObjectKey::new(group, kind, namespace, name)) {
            Lookup::Found(observed) if speaks(&observed) => assess::Lookup::Found(observed.object),
            Lookup::Found(_) => assess::Lookup::Unobserved(Cow::Borrowed("only its metadata was read")),
            Lookup::Absent => assess::Lookup::Absent,
            Lookup::Unobserved(why) => assess::Lookup::Unobserved(Cow::Owned(why)),
        }
    }

    fn owned(&self, uid: &str) -> Listing<'_> {
        Box::new(self.objects.controlled(uid).filter(speaks).map(|observed| observed.object))
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        let all = match namespace {
            Some(namespace) => self.objects.of_kind_in(group, kind, namespace),
            None => self.objects.of_kind(group, kind),
        };
        Box::new(all.filter(speaks).map(|observed| observed.object))
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        let namespace = namespace.to_owned();
        let there = self.objects.all().filter(move |observed| observed.key.namespace == namespace);
        Box::new(there.filter(speaks).map(|observed| observed.object))
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        let events = self.objects.events_about(about.kind(), &about.name()).filter(speaks);
        let read = events.filter_map(|observed| Event::read(&observed.object));
        read.filter(|(_, regarding)| regarding.is(about)).map(|(event, _)| event).collect()
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.objects.is_observed(&GroupKind::new(group, kind), namespace)
    }
}
