//! The state of one cluster: its objects as far as they were read, and the scopes that were not.

use std::borrow::Cow;

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKeyRef, Projection};

use crate::event::Event;

/// An object of a cluster.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    /// Its key.
    pub key: ObjectKeyRef<'a>,
    /// The part of it that was read.
    pub object: Object<'a>,
    /// The size of that part.
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

    /// Lists the objects in a namespace (`None`: in all) whose controller owner reference has this UID; those of the cluster are in
    /// the namespace without a name.
    ///
    /// The author of an object can name any owner in it, so objects elsewhere must cost nothing.
    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_>;

    /// Lists, as [`owned`](ClusterState::owned) does, the objects with this UID in any owner reference, the controller's or another's.
    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_>;

    /// Lists the objects of a kind in one namespace, or in all.
    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_>;

    /// Lists the Pods that use a claim (namespace and name) as a volume; see [`claims`](crate::assess::claims).
    ///
    /// `assess` calls it for every claim that waits: an implementation that reads every Pod costs the square of their number.
    fn users(&self, namespace: &str, claim: &str) -> Listing<'_>;

    /// Returns true if [`users`](ClusterState::users) knows all Pods of a namespace: a claim without any may be well by that.
    fn knows_users(&self, namespace: &str) -> bool {
        self.is_observed("", "Pod", Some(namespace))
    }

    /// Lists the PodDisruptionBudgets of a namespace that may select Pods with these labels: at least those that do.
    ///
    /// `assess` calls it for every Deployment that is not well: listing all budgets costs their number each time.
    fn budgets(&self, namespace: &str, labels: Option<Value<'_>>) -> Listing<'_> {
        let _ = labels;
        self.of_kind("policy", "PodDisruptionBudget", Some(namespace))
    }

    /// Lists the Pods on a node that are being deleted, or at least those.
    ///
    /// `assess` calls it for a Pod that waits until others have made room for it, which is rare.
    fn terminating_on(&self, node: &str) -> Listing<'_> {
        let node = node.to_owned();
        let pods = self.of_kind("", "Pod", None);
        Box::new(pods.filter(move |pod| {
            let pod = &pod.object;
            pod.at(&["spec", "nodeName"]).is_some_and(|own| own.is_str(&node))
                && pod.at(&["metadata", "deletionTimestamp"]).is_some()
        }))
    }

    /// Returns the CustomResourceDefinition of a kind, as far as definitions were read.
    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>>;

    /// Returns true if objects of a kind have in this version a status that is written apart from the rest; `None` where the
    /// server did not say so.
    fn has_status_subresource(&self, group: &str, version: &str, kind: &str) -> Option<bool> {
        let _ = (group, version, kind);
        None
    }

    /// Lists all objects in a namespace, of any kind.
    fn in_namespace(&self, namespace: &str) -> Listing<'_>;

    /// Lists the events about an object, each once; see [`Event::read`] and [`Regarding::is`](crate::assess::Regarding::is).
    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>>;

    /// Returns true if all objects of a kind in a namespace (or in all) were read.
    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool;

    /// Returns true if an object that is [`Absent`](Presence::Absent) in a namespace (empty: in none) does not exist for the objects
    /// that refer to it. A dump without any object of a kind there may have left the whole kind out.
    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool;
}
