//! The state of one cluster: the objects that were read, and which scopes were not read.

use std::borrow::Cow;

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKeyRef, Projection};

use crate::event::Event;

/// An object of a cluster, with the part of it that was read.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    /// The object's key.
    pub key: ObjectKeyRef<'a>,
    /// The object; it has only metadata if `projection` is metadata.
    pub object: Object<'a>,
    /// The part of the object that was read.
    pub projection: Projection,
}

/// The result of looking up an object: there, not there, or not known.
#[derive(Debug, Clone)]
pub enum Presence<'a, T = Observed<'a>> {
    /// The object exists.
    Present(T),
    /// The object is known not to exist.
    Absent,
    /// The object was not read, or could not be; holds the reason, for people.
    Unobserved(Cow<'a, str>),
}

impl<T> Presence<'_, T> {
    /// Returns the object if it is `Present`; `None` if it is absent or was not observed.
    #[inline]
    pub fn present(self) -> Option<T> {
        match self {
            Presence::Present(object) => Some(object),
            Presence::Absent | Presence::Unobserved(_) => None,
        }
    }
}

/// An iterator over some of the objects of a cluster.
pub type Listing<'e> = Box<dyn Iterator<Item = Observed<'e>> + 'e>;

/// Everything known of the objects of one cluster: one read of it, a dump, or an index that follows it.
///
/// Objects may come in any order. Listings omit objects that were not read;
/// [`is_observed`](ClusterState::is_observed) tells whether a listing is complete.
pub trait ClusterState {
    /// Looks up the object with this key.
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_>;

    /// Lists the objects whose controller owner reference has this UID, in `namespace`: a namespace, empty for
    /// cluster-scoped objects, or `None` for all objects.
    ///
    /// An implementation must not visit objects in other namespaces: their authors can name any owner.
    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_>;

    /// Lists the objects with this UID in any owner reference, of a controller or not; `namespace` as in
    /// [`owned`](ClusterState::owned).
    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_>;

    /// Lists the objects of a kind in `namespace`, or in all namespaces if that is `None`.
    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_>;

    /// Lists the Pods that use the claim `namespace`/`claim` as a volume; see [`claims`](crate::assess::claims).
    ///
    /// `assess` calls it for every claim that is not bound: an implementation that reads all Pods takes quadratic
    /// time.
    fn users(&self, namespace: &str, claim: &str) -> Listing<'_>;

    /// Returns true if [`users`](ClusterState::users) sees all Pods of `namespace`, so that a claim for which it finds
    /// none is unused.
    fn knows_users(&self, namespace: &str) -> bool {
        self.is_observed("", "Pod", Some(namespace))
    }

    /// Lists PodDisruptionBudgets of a namespace: at least those whose selectors match Pods with `labels`, by default
    /// all.
    ///
    /// `assess` calls it for every Deployment that is not well: an implementation should not list all budgets each
    /// time.
    fn budgets(&self, namespace: &str, labels: Option<Value<'_>>) -> Listing<'_> {
        let _ = labels;
        self.of_kind("policy", "PodDisruptionBudget", Some(namespace))
    }

    /// Lists Pods: at least those on a node that are being deleted, by default only those.
    ///
    /// `assess` calls it for a Pod that waits for others to be preempted, which is rare.
    fn terminating_on(&self, node: &str) -> Listing<'_> {
        let node = node.to_owned();
        let pods = self.of_kind("", "Pod", None);
        Box::new(pods.filter(move |pod| {
            let pod = &pod.object;
            pod.at(&["spec", "nodeName"]).is_some_and(|own| own.is_str(&node))
                && pod.at(&["metadata", "deletionTimestamp"]).is_some()
        }))
    }

    /// Returns the CustomResourceDefinition of a kind; `None` if there is none or it was not read.
    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>>;

    /// Returns true if a kind has a status subresource in `version`, so that status is written separately; `None` if
    /// the server did not tell it, which is the default.
    fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        let _ = (group, version, kind);
        None
    }

    /// Lists all objects in a namespace, of any kind.
    fn in_namespace(&self, namespace: &str) -> Listing<'_>;

    /// Lists the events about an object, each once; see [`Event::read`] and
    /// [`Regarding::is`](crate::assess::Regarding::is).
    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>>;

    /// Returns true if all objects of a kind in `namespace` were read, or in all namespaces if that is `None`.
    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool;

    /// Returns true if an object of this kind and namespace (empty: cluster-scoped) that [`get`](ClusterState::get)
    /// calls [`Absent`](Presence::Absent) certainly does not exist. Returns false for a dump without any object of the
    /// kind there, which may have omitted the whole kind.
    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool;
}
