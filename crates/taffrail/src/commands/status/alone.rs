//! The cluster state for judging an object of a manifest, of which no other object is known.

use std::borrow::Cow;

use taffrail_object::{Object, ObjectKeyRef};
use taffrail_status::assess::Event;
use taffrail_status::{ClusterState, Listing, Observed, Presence, Status, Verdict};

/// A cluster state in which no object is observed: none is known to exist or to be absent.
pub(super) struct Alone;

impl ClusterState for Alone {
    fn get(&self, _: ObjectKeyRef<'_>) -> Presence<'_> {
        Presence::Unobserved(Cow::Borrowed(
            "other objects are not read, because each object of a manifest is judged \
            alone",
        ))
    }

    fn owned(&self, _: &str, _: Option<&str>) -> Listing<'_> {
        Box::new(std::iter::empty())
    }

    fn dependents(&self, _: &str, _: Option<&str>) -> Listing<'_> {
        Box::new(std::iter::empty())
    }

    fn of_kind(&self, _: &str, _: &str, _: Option<&str>) -> Listing<'_> {
        Box::new(std::iter::empty())
    }

    fn users(&self, _: &str, _: &str) -> Listing<'_> {
        Box::new(std::iter::empty())
    }

    fn definition(&self, _: &str, _: &str) -> Option<Observed<'_>> {
        None
    }

    fn in_namespace(&self, _: &str) -> Listing<'_> {
        Box::new(std::iter::empty())
    }

    fn events(&self, _: &Object<'_>) -> Vec<Event<'_>> {
        Vec::new()
    }

    fn is_observed(&self, _: &str, _: &str, _: Option<&str>) -> bool {
        false
    }

    fn tells_absence(&self, _: &str, _: &str, _: &str) -> bool {
        false
    }
}

/// Returns true if `assess` may change `verdict`, which the rules gave `object`, although no other object is known;
/// then it must be called. Most objects in manifests do not need it.
pub(super) fn may_change(object: &Object<'_>, verdict: &Verdict) -> bool {
    if verdict.status != Status::Current {
        return verdict.status == Status::InProgress;
    }
    match (object.group(), object.kind()) {
        ("", kind) => matches!(kind, "Pod" | "Service" | "PersistentVolumeClaim" | "Node"),
        ("apps" | "extensions", _) => false,
        (
            "rbac.authorization.k8s.io"
            | "coordination.k8s.io"
            | "discovery.k8s.io"
            | "networking.k8s.io"
            | "node.k8s.io"
            | "scheduling.k8s.io",
            _,
        ) => false,
        _ => true,
    }
}
