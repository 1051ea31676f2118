//! What is known of one cluster: its objects, and those that were not looked at.

use std::borrow::Cow;

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef, Projection};

use crate::assess::Event;

/// An object of a cluster.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    /// Its key.
    pub key: &'a ObjectKey,
    /// The part of it that was read.
    pub object: Object<'a>,
    /// How much that is.
    pub projection: Projection,
}

/// The answer to "does this object exist?".
#[derive(Debug, Clone)]
pub enum Presence<'a, T = Observed<'a>> {
    /// It exists.
    Present(T),
    /// It is known not to exist.
    Absent,
    /// It was not looked at, or could not be; with the reason, for people.
    Unobserved(Cow<'a, str>),
}

impl<T> Presence<'_, T> {
    /// Returns the object, if it exists.
    #[inline]
    pub fn present(self) -> Option<T> {
        match self {
            Presence::Present(object) => Some(object),
            Presence::Absent | Presence::Unobserved(_) => None,
        }
    }
}

/// Some of the objects of a cluster.
pub type Listing<'e> = Box<dyn Iterator<Item = Observed<'e>> + 'e>;

/// Everything known of the objects of one cluster: a look at it, a dump, an index.
///
/// Objects may come in any order. What was not read is left out of the listings;
/// [`is_observed`](ClusterState::is_observed) tells that from "there is none".
pub trait ClusterState {
    /// Looks one object up.
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_>;

    /// The objects in a namespace (`None`: in all) whose controller owner reference has this UID; those of the cluster are in
    /// the namespace without a name.
    ///
    /// Who may write in any namespace can name any owner there, so what is elsewhere must cost nothing.
    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_>;

    /// As [`owned`](ClusterState::owned), those that have this UID in any of their owner references, its controller's or another's.
    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_>;

    /// The objects of a kind in one namespace, or in all.
    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_>;

    /// The Pods whose volumes a claim (namespace and name) is; see [`claims`](crate::assess::claims).
    ///
    /// Asked for every claim that waits, so an answer that looks at every Pod costs the square of their number.
    fn users(&self, namespace: &str, claim: &str) -> Listing<'_>;

    /// Whether [`users`](ClusterState::users) knows all Pods of a namespace: that a claim has none may make it well.
    fn knows_users(&self, namespace: &str) -> bool {
        self.is_observed("", "Pod", Some(namespace))
    }

    /// The PodDisruptionBudgets of a namespace that may choose Pods with these labels: at least those that do.
    ///
    /// Asked for every Deployment that is not well, so an answer with all budgets costs their number each time.
    fn budgets(&self, namespace: &str, labels: Option<Value<'_>>) -> Listing<'_> {
        let _ = labels;
        self.of_kind("policy", "PodDisruptionBudget", Some(namespace))
    }

    /// The Pods on a node that are being deleted, or at least those.
    ///
    /// Asked for a Pod that waits until others have made room for it, which is rare.
    fn terminating_on(&self, node: &str) -> Listing<'_> {
        let node = node.to_owned();
        let pods = self.of_kind("", "Pod", None);
        Box::new(pods.filter(move |pod| {
            let pod = &pod.object;
            pod.at(&["spec", "nodeName"]).is_some_and(|own| own.is_str(&node))
                && pod.at(&["metadata", "deletionTimestamp"]).is_some()
        }))
    }

    /// The CustomResourceDefinition of a kind, as far as definitions were read.
    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>>;

    /// Returns true if objects of a kind have in this version a status that is written apart from the rest; `None` where the
    /// server did not say so.
    fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        let _ = (group, version, kind);
        None
    }

    /// All objects in a namespace, of whatever kind.
    fn in_namespace(&self, namespace: &str) -> Listing<'_>;

    /// The events about an object, each once; see [`Event::read`] and [`Regarding::is`](crate::assess::Regarding::is).
    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>>;

    /// Whether all objects of a kind in a namespace (or in all) were read.
    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool;

    /// Whether an object that is [`Absent`](Presence::Absent) in a namespace (empty: in none) does not exist, as
    /// far as others refer to it. Of a kind of which a dump holds nothing there, whoever wrote it may have left
    /// all out.
    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool;
}
