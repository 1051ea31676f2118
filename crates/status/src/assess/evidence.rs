//! The border to where evidence comes from.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};

use crate::assess::costs::Costs;
use crate::assess::edges;
use crate::cluster_state::Presence;
use crate::verdict::cut;

/// Some of the objects of a cluster.
pub type Listing<'e> = Box<dyn Iterator<Item = Object<'e>> + 'e>;

/// What is known of the objects around one: a live snapshot, a dump, an index.
///
/// Objects may come in any order. What was not read is left out of the listings;
/// [`is_observed`](Evidence::is_observed) tells that from "there is none".
pub trait Evidence {
    /// Looks one object up.
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_, Object<'_>>;

    /// The objects in a namespace (`None`: in all) whose controller owner reference has this UID; those of the cluster are in
    /// the namespace without a name.
    ///
    /// Who may write in any namespace can name any owner there, so what is elsewhere must cost nothing.
    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_>;

    /// As [`owned`](Evidence::owned), those that have this UID in any of their owner references, its controller's or another's.
    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_>;

    /// The objects of a kind in one namespace, or in all.
    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_>;

    /// The Pods whose volumes a claim (namespace and name) is; see [`claims`].
    ///
    /// Asked for every claim that waits, so an answer that looks at every Pod costs the square of their number.
    fn users(&self, namespace: &str, claim: &str) -> Listing<'_>;

    /// Whether [`users`](Evidence::users) knows all Pods of a namespace: that a claim has none may make it well.
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
            pod.at(&["spec", "nodeName"]).is_some_and(|own| own.is_str(&node))
                && pod.at(&["metadata", "deletionTimestamp"]).is_some()
        }))
    }

    /// The CustomResourceDefinition of a kind, as far as definitions were read.
    fn definition(&self, group: &str, kind: &str) -> Option<Object<'_>>;

    /// Whether a custom resource has a status subresource in its version, where that is known without reading anything for it.
    fn has_status_subresource(&self, object: &Object<'_>) -> Option<bool> {
        let _ = object;
        None
    }

    /// All objects in a namespace, of whatever kind.
    fn in_namespace(&self, namespace: &str) -> Listing<'_>;

    /// The events about an object, each once; see [`Event::read`] and [`Regarding::is`].
    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>>;

    /// Whether all objects of a kind in a namespace (or in all) were read.
    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool;

    /// Whether an object that is [`Absent`](Presence::Absent) in a namespace (empty: in none) does not exist, as
    /// far as others refer to it. Of a kind of which a dump holds nothing there, whoever wrote it may have left
    /// all out.
    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool;

    /// What looking at it has cost so far; nothing where that has no bound.
    fn costs(&self) -> Option<&Costs> {
        None
    }
}

/// An event, from either of the two API groups that serve them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// Whether its type is `Warning`.
    pub warning: bool,
    /// One word in CamelCase.
    pub reason: Cow<'a, str>,
    /// For people.
    pub message: Cow<'a, str>,
    /// How often it happened, at least 1.
    pub count: i64,
    /// When it happened first.
    pub first: Option<Timestamp>,
    /// When it happened last.
    pub last: Option<Timestamp>,
}

/// Which object an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regarding<'a> {
    /// Kind.
    pub kind: Cow<'a, str>,
    /// Namespace, or empty.
    pub namespace: Cow<'a, str>,
    /// Name.
    pub name: Cow<'a, str>,
    /// UID, or empty.
    pub uid: Cow<'a, str>,
}

impl Regarding<'_> {
    /// Whether that is `object`: an event about an earlier object of the same name is not about this one.
    pub fn is(&self, object: &Object<'_>) -> bool {
        // The kubelet writes the name of a Node where its UID belongs.
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

    /// Whether an event that gives this namespace to its object may be about one of the cluster. The API keeps these
    /// events where only administrators write.
    pub fn is_of_cluster(namespace: &str) -> bool {
        Regarding::OF_CLUSTER.contains(&namespace)
    }

    /// The namespaces that events about objects of the cluster give to these.
    pub const OF_CLUSTER: [&'static str; 3] = ["", "default", "kube-system"];
}

impl<'a> Event<'a> {
    /// Reads an event and what it is about; `None` if `object` is no event, or is not in the namespace of what it is
    /// about: the API takes no such event, and else who may write in one namespace could speak of every other.
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
            // A fragment of a dump may leave it out; of the API every event has one.
            ("", _) => true,
            (own, "") => Regarding::is_of_cluster(own),
            (own, about) => own == about,
        };
        is_beside.then_some((event, regarding))
    }
}

/// The time that stands at a place.
pub(super) fn time(value: Option<Value<'_>>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

/// Evidence in memory: what it does not hold is absent.
///
/// Of several objects with one name the last one counts.
#[derive(Debug, Default)]
pub struct Dump<'a> {
    objects: Vec<(ObjectKey, Object<'a>)>,
    owned: HashMap<String, Vec<usize>>,
    /// By the UIDs of owners that are no controllers.
    held: HashMap<String, Vec<usize>>,
    events: HashMap<(String, String), Vec<(Event<'a>, Regarding<'a>)>>,
    /// Pods by the names of the claims they use.
    users: HashMap<ObjectKey, Vec<usize>>,
    /// CustomResourceDefinitions by group and kind.
    definitions: HashMap<(String, String), usize>,
    unobserved: BTreeSet<(String, String)>,
}

impl<'a> Dump<'a> {
    /// Keeps `objects`, events among them.
    pub fn new(objects: impl IntoIterator<Item = Object<'a>>) -> Dump<'a> {
        let mut named: Vec<_> = objects.into_iter().map(|object| (ObjectKey::of(&object), object)).collect();
        named.reverse();
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        named.dedup_by(|(one, _), (other, _)| one == other);
        let mut dump = Dump { objects: named, ..Dump::default() };
        let mut read = BTreeSet::new();
        for (at, (name, object)) in dump.objects.iter().enumerate() {
            if let Some(uid) = controller(object).map(|owner| uid_of(owner).into_owned()) {
                dump.owned.entry(uid).or_default().push(at);
            }
            for uid in other_owners(object) {
                dump.held.entry(uid.into_owned()).or_default().push(at);
            }
            match (object.group(), object.kind()) {
                ("", "Pod") => {
                    for claim in claims(object) {
                        dump.users.entry(claim).or_default().push(at);
                    }
                }
                DEFINITION => {
                    dump.definitions.insert(defined(object), at);
                }
                _ => {}
            }
            // One event is served by two API groups.
            if let Some((event, regarding)) = Event::read(object)
                && read.insert((&name.namespace, &name.name))
            {
                let key = (regarding.kind.clone().into_owned(), regarding.name.clone().into_owned());
                dump.events.entry(key).or_default().push((event, regarding));
            }
        }
        dump
    }

    /// Says that the objects of a kind were not, or not all, read.
    pub fn set_unobserved(&mut self, group: &str, kind: &str) {
        self.unobserved.insert((group.to_owned(), kind.to_owned()));
    }

    fn within<'s>(&'s self, places: Option<&'s Vec<usize>>, namespace: Option<&str>) -> Listing<'s> {
        let namespace = namespace.map(str::to_owned);
        let objects = places.into_iter().flatten().filter_map(|&at| self.objects.get(at));
        let objects =
            objects.filter(move |(name, _)| namespace.as_ref().is_none_or(|own| *own == name.namespace));
        Box::new(objects.map(|(_, object)| object.clone()))
    }

    fn range(&self, group: &str, kind: &str, namespace: Option<&str>) -> &[(ObjectKey, Object<'a>)] {
        let place = |name: &ObjectKey| {
            let kinds = (name.group.as_str(), name.kind.as_str()).cmp(&(group, kind));
            kinds.then_with(|| {
                namespace.map_or(std::cmp::Ordering::Equal, |it| name.namespace.as_str().cmp(it))
            })
        };
        let start = self.objects.partition_point(|(name, _)| place(name).is_lt());
        let end = self.objects.partition_point(|(name, _)| place(name).is_le());
        self.objects.get(start..end).unwrap_or_default()
    }
}

/// Group and kind of CustomResourceDefinitions.
pub(super) const DEFINITION: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");

/// Group and kind that a CustomResourceDefinition defines.
pub fn defined(definition: &Object<'_>) -> (String, String) {
    let text = |path: &[&str]| definition.text(path).into_owned();
    (text(&["spec", "group"]), text(&["spec", "names", "kind"]))
}

/// The claims whose volumes a Pod mounts, each once.
pub fn claims(pod: &Object<'_>) -> Vec<ObjectKey> {
    let mut claims: Vec<_> = edges::claims(pod).into_iter().map(|reference| reference.to).collect();
    let mut known: HashSet<ObjectKey> = claims.iter().cloned().collect();
    // The claim of an ephemeral volume is named by a convention, not by a field.
    for volume in pod.at(&["spec", "volumes"]).and_then(Value::items).into_iter().flatten() {
        if volume.get("ephemeral").is_some_and(|ephemeral| !ephemeral.is_null()) {
            let volume = volume.get("name").and_then(Value::as_str).unwrap_or_default();
            let name = format!("{}-{volume}", pod.name());
            let claim = ObjectKey::new("", "PersistentVolumeClaim", pod.namespace(), &name);
            if known.insert(claim.clone()) {
                claims.push(claim);
            }
        }
    }
    claims
}

/// The owner reference of an object's controller.
pub(super) fn controller<'a>(object: &Object<'a>) -> Option<Value<'a>> {
    let mut owners = object.at(&["metadata", "ownerReferences"])?.items()?;
    owners
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))
        .filter(|owner| !uid_of(*owner).is_empty())
}

/// The UIDs of the owners of an object besides its controller.
pub fn other_owners<'a>(object: &Object<'a>) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
    let controller = controller(object).map(uid_of);
    let owners = object.at(&["metadata", "ownerReferences"]).and_then(Value::items);
    let uids = owners.into_iter().flatten().map(uid_of);
    uids.filter(move |uid| !uid.is_empty() && controller.as_ref() != Some(uid))
}

/// Whether `owner` can own `object`, which names its UID: a namespaced object owns only what is in its namespace, as the
/// API's garbage collector has it, and a UID counts only beside the name of the object that has it. An index keeps no more
/// of a reference than the UID.
pub(super) fn can_own(owner: &Object<'_>, object: &Object<'_>) -> bool {
    let namespace = owner.namespace();
    if !namespace.is_empty() && namespace != object.namespace() {
        return false;
    }
    let (uid, name) = (owner.text(&["metadata", "uid"]), owner.name());
    let names_it = |reference: Value<'_>| {
        let is = |key, own: &str| {
            let said = reference.get(key).and_then(Value::as_str).unwrap_or_default();
            said.is_empty() || said == own
        };
        let version = reference.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let group = version.split_once('/').map_or("", |(group, _)| group);
        // The built-in workloads are, or were, served in two groups, and a reference names either.
        let is_group =
            version.is_empty() || group == owner.group() || [group, owner.group()].contains(&"extensions");
        uid_of(reference) == uid && is("kind", owner.kind()) && is("name", &name) && is_group
    };
    let references = object.at(&["metadata", "ownerReferences"]).and_then(Value::items);
    references.into_iter().flatten().any(names_it)
}

/// Whether what `object` says of itself tells how `owner` is: `owner` [can own](can_own) it, and whoever wrote the reference
/// needed more than rights in some namespace. The API asks nobody before an object names an owner of the cluster.
pub(super) fn speaks_for(owner: &Object<'_>, object: &Object<'_>) -> bool {
    can_own(owner, object) && (!owner.namespace().is_empty() || object.namespace().is_empty())
}

fn uid_of(owner: Value<'_>) -> Cow<'_, str> {
    owner.get("uid").and_then(Value::as_str).unwrap_or_default()
}

impl Evidence for Dump<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_, Object<'_>> {
        let ObjectKeyRef { group, kind, namespace, name } = key;
        let objects = self.range(group, kind, Some(namespace));
        match objects.binary_search_by(|(found, _)| found.name.as_str().cmp(name)) {
            Ok(at) => {
                objects.get(at).map_or(Presence::Absent, |(_, object)| Presence::Present(object.clone()))
            }
            Err(_) if self.is_observed(group, kind, None) => Presence::Absent,
            Err(_) => Presence::Unobserved(Cow::Borrowed("it was not read")),
        }
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.within(self.owned.get(uid), namespace)
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        Box::new(self.owned(uid, namespace).chain(self.within(self.held.get(uid), namespace)))
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        Box::new(self.range(group, kind, namespace).iter().map(|(_, object)| object.clone()))
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        let claim = ObjectKey::new("", "PersistentVolumeClaim", namespace, claim);
        let users = self.users.get(&claim).into_iter().flatten();
        Box::new(users.filter_map(|&at| self.objects.get(at).map(|(_, object)| object.clone())))
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Object<'_>> {
        let at = *self.definitions.get(&(group.to_owned(), kind.to_owned()))?;
        self.objects.get(at).map(|(_, object)| object.clone())
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        let namespace = namespace.to_owned();
        let there = self.objects.iter().filter(move |(name, _)| name.namespace == namespace);
        Box::new(there.map(|(_, object)| object.clone()))
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        let key = (about.kind().to_owned(), about.name().into_owned());
        let events = self.events.get(&key).into_iter().flatten();
        events.filter(|(_, regarding)| regarding.is(about)).map(|(event, _)| event.clone()).collect()
    }

    fn is_observed(&self, group: &str, kind: &str, _namespace: Option<&str>) -> bool {
        !self.unobserved.contains(&(group.to_owned(), kind.to_owned()))
    }
    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        !self.range(group, kind, Some(namespace)).is_empty()
            || self.definitions.contains_key(&(group.to_owned(), kind.to_owned()))
    }
}
