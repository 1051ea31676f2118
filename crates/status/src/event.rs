//! Reads events, and the references to the objects that they are about.

use std::borrow::Cow;

use jiff::Timestamp;
use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::verdict::cut;

/// An event, from either of the two API groups that serve them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// True if the event's type is `Warning`.
    pub warning: bool,
    /// The event's reason, one word in CamelCase.
    pub reason: Cow<'a, str>,
    /// Message for people.
    pub message: Cow<'a, str>,
    /// Number of occurrences, at least 1.
    pub count: i64,
    /// The time of the first occurrence: the earliest of the event's first, event and creation times; `None` if it has
    /// none.
    pub first: Option<Timestamp>,
    /// The time of the last occurrence: the latest of the event's last, event and creation times; `None` if it has
    /// none.
    pub last: Option<Timestamp>,
}

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regarding<'a> {
    /// The kind of the object.
    pub kind: Cow<'a, str>,
    /// The namespace of the object; empty if cluster-scoped.
    pub namespace: Cow<'a, str>,
    /// The name of the object.
    pub name: Cow<'a, str>,
    /// The UID of the object; empty if the event does not tell it.
    pub uid: Cow<'a, str>,
}

impl Regarding<'_> {
    /// Returns true if the event is about `object`: kind and name are equal; the namespace is too, or for a
    /// cluster-scoped object is one of [`OF_CLUSTER`](Self::OF_CLUSTER); and so are the UIDs if both are known, so that
    /// it is not about an earlier object of the same name. UIDs of Nodes are not compared: the kubelet writes the name
    /// in their place.
    pub fn is(&self, object: &Object<'_>) -> bool {
        // The kubelet puts the name of a Node where its UID belongs.
        let uid = object.text(&["metadata", "uid"]);
        let same_uid = self.uid.is_empty() || uid.is_empty() || self.uid == uid || self.kind == "Node";
        self.kind == object.kind()
            && self.name == object.name()
            && match &*object.namespace() {
                "" => Regarding::is_of_cluster(&self.namespace),
                namespace => self.namespace == namespace,
            }
            && same_uid
    }

    /// Returns true if `namespace` is empty, `default` or `kube-system`: an event with this namespace may be about a
    /// cluster-scoped object. The API keeps such events only where administrators write.
    pub fn is_of_cluster(namespace: &str) -> bool {
        Regarding::OF_CLUSTER.contains(&namespace)
    }

    /// The namespaces of events about cluster-scoped objects: those in which the API keeps them, and none, as in a
    /// fragment of a dump.
    pub const OF_CLUSTER: [&'static str; 3] = ["", "default", "kube-system"];
}

impl<'a> Event<'a> {
    /// Reads an event and the object it is about. Returns `None` if `object` is not an event, names no object, or is in
    /// another namespace than that object (for a cluster-scoped one: than [`Regarding::OF_CLUSTER`]): the API server
    /// rejects such events, and otherwise a writer in one namespace could affect others.
    pub fn read(object: &Object<'a>) -> Option<(Event<'a>, Regarding<'a>)> {
        if object.kind() != "Event" || !matches!(object.group(), "" | "events.k8s.io") {
            return None;
        }
        let either = |one: &str, other: &str| object.at(&[one]).or_else(|| object.at(&[other]));
        let about = either("involvedObject", "regarding")?;
        let text = |value: Option<Value<'a>>, key| {
            value.and_then(|value| value.get(key)?.as_str()).unwrap_or_default()
        };
        let count = [&["series", "count"][..], &["count"], &["deprecatedCount"]];
        let count = count.iter().filter_map(|path| object.at(path)?.as_i64()).max();
        let first = [&["firstTimestamp"][..], &["deprecatedFirstTimestamp"]];
        let either_way = [&["eventTime"][..], &["metadata", "creationTimestamp"]];
        let last = [&["series", "lastObservedTime"][..], &["lastTimestamp"], &["deprecatedLastTimestamp"]];
        let times = |paths: &[&[&str]]| {
            let times = paths.iter().chain(&either_way).filter_map(|path| time(object.at(path)));
            times.collect::<Vec<_>>()
        };
        let event = Event {
            warning: object.text(&["type"]) == "Warning",
            reason: cut(object.text(&["reason"])),
            message: cut(either("message", "note").and_then(Value::as_str).unwrap_or_default()),
            count: count.unwrap_or(1).max(1),
            first: times(&first).into_iter().min(),
            last: times(&last).into_iter().max(),
        };
        let regarding = Regarding {
            kind: text(Some(about), "kind"),
            namespace: text(Some(about), "namespace"),
            name: text(Some(about), "name"),
            uid: text(Some(about), "uid"),
        };
        let is_beside = match (&*object.namespace(), &*regarding.namespace) {
            // A fragment of a dump may lack the namespace; events from the API have one.
            ("", _) => true,
            (own, "") => Regarding::is_of_cluster(own),
            (own, about) => own == about,
        };
        is_beside.then_some((event, regarding))
    }
}

/// Parses an RFC 3339 time; `None` for any other value.
pub(crate) fn time(value: Option<Value<'_>>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}
