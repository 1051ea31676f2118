//! What points at an object without being named by it: those that it controls, and the events about it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};
use taffrail_status::assess::{Event, Regarding, other_owners};
use taffrail_status::{Observed, Presence};

use crate::objects::Objects;

/// Both, of one cluster: one pass over its objects, whatever is asked later.
#[derive(Debug, Default)]
pub(crate) struct Pointers {
    /// By the UID of the controller, in the order of their namespaces.
    controlled: HashMap<String, Vec<ObjectKey>>,
    /// By the UIDs of their other owners, in the order of their namespaces.
    held: HashMap<String, Vec<ObjectKey>>,
    /// By kind, namespace and name of what they are about: the same names stand in many namespaces.
    events: HashMap<(String, String, String), Vec<ObjectKey>>,
}

impl Pointers {
    pub(crate) fn of<'a>(objects: impl Iterator<Item = Observed<'a>>) -> Pointers {
        let mut pointers = Pointers::default();
        let mut events = HashSet::new();
        for Observed { key, object, .. } in objects {
            // One event is served by two API groups.
            if key.kind == "Event"
                && let Some((_, regarding)) = Event::read(&object)
                && events.insert((key.namespace, key.name))
            {
                let [kind, namespace, name] =
                    [regarding.kind, regarding.namespace, regarding.name].map(|text| text.into_owned());
                let about = (kind, namespace, name);
                pointers.events.entry(about).or_default().push(key.to_owned());
            }
            for uid in other_owners(&object) {
                pointers.held.entry(uid.into_owned()).or_default().push(key.to_owned());
            }
            if let Some(uid) = controller(&object) {
                match pointers.controlled.get_mut(&*uid) {
                    Some(dependents) => dependents.push(key.to_owned()),
                    None => drop(pointers.controlled.insert(uid.into_owned(), vec![key.to_owned()])),
                }
            }
        }
        for dependents in pointers.controlled.values_mut().chain(pointers.held.values_mut()) {
            dependents.sort_by(|one, other| one.namespace.cmp(&other.namespace));
        }
        pointers
    }

    /// Returns the objects in a namespace (`None`: in all) whose controller has this UID.
    pub(crate) fn controlled(&self, uid: &str, namespace: Option<&str>) -> &[ObjectKey] {
        within(self.controlled.get(uid), namespace)
    }

    /// Returns the objects in a namespace (`None`: in all) that have another owner of this UID.
    pub(crate) fn held(&self, uid: &str, namespace: Option<&str>) -> &[ObjectKey] {
        within(self.held.get(uid), namespace)
    }

    /// Returns the events that give this kind, namespace and name to what they are about.
    pub(crate) fn events(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> impl Iterator<Item = &ObjectKey> + use<'_> {
        let own = [namespace];
        let namespaces: &[&str] = if namespace.is_empty() { &Regarding::OF_CLUSTER } else { &own };
        let find =
            |namespace: &&str| self.events.get(&(kind.to_owned(), (*namespace).to_owned(), name.to_owned()));
        let found: Vec<&Vec<ObjectKey>> = namespaces.iter().filter_map(find).collect();
        found.into_iter().flatten()
    }
}

/// Those of the keys that are in a namespace; anybody names any owner, so what is elsewhere is not even counted.
fn within<'a>(keys: Option<&'a Vec<ObjectKey>>, namespace: Option<&str>) -> &'a [ObjectKey] {
    let keys = keys.map_or(&[][..], Vec::as_slice);
    let Some(namespace) = namespace else { return keys };
    let start = keys.partition_point(|key| *key.namespace < *namespace);
    let end = keys.partition_point(|key| *key.namespace <= *namespace);
    keys.get(start..end).unwrap_or_default()
}

/// The objects that controllers made of an object.
pub(crate) fn dependents<'a>(
    objects: &'a dyn Objects,
    owner: &Observed<'_>,
) -> impl Iterator<Item = Observed<'a>> + use<'a> {
    let uid = owner.object.text(&["metadata", "uid"]);
    // Nothing is owned across namespaces: the API's garbage collector takes such a reference for a mistake.
    let namespace = Some(owner.key.namespace).filter(|namespace| !namespace.is_empty());
    let found = (!uid.is_empty()).then(|| objects.owned(&uid, namespace));
    found.into_iter().flatten()
}

/// How far objects own objects before nobody follows any more: what a cluster holds may be a ring.
const DEEPEST: usize = 50;

/// The owner reference of an object that names its controller.
fn reference<'a>(object: &Object<'a>) -> Option<Value<'a>> {
    let mut owners = object.at(&["metadata", "ownerReferences"])?.items()?;
    owners.find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))
}

/// The UID of the object that controls this one.
fn controller<'a>(object: &Object<'a>) -> Option<Cow<'a, str>> {
    reference(object)?.get("uid")?.as_str().filter(|uid| !uid.is_empty())
}

/// The object that controls this one, by the name that it gives; whether that is there is another question.
pub(crate) fn controller_of(objects: &dyn Objects, observed: &Observed<'_>) -> Option<ObjectKey> {
    let owner = reference(&observed.object)?;
    let field = |key| owner.get(key).and_then(Value::as_str).unwrap_or_default();
    let version = field("apiVersion");
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let (kind, name) = (field("kind"), field("name"));
    let namespaced = objects.is_namespaced(group, &kind).unwrap_or(!observed.key.namespace.is_empty());
    let namespace = if namespaced { observed.key.namespace } else { "" };
    (!kind.is_empty() && !name.is_empty()).then(|| ObjectKey::new(group, kind, namespace, name))
}

/// What is known of the object that an object names as its controller.
pub(crate) enum Control {
    /// It names none, or one that is not there: anybody can write a reference.
    None,
    /// It is there, or cannot be looked at.
    Known,
    /// It was not looked at.
    Unknown(ObjectKey),
}

/// Whether a controller made an object, as far as that was read.
pub(crate) fn control(objects: &dyn Objects, observed: &Observed<'_>) -> Control {
    let Some(owner) = controller_of(objects, observed) else { return Control::None };
    let named = controller(&observed.object);
    match objects.get(owner.as_ref()) {
        Presence::Present(found) => {
            let own = found.object.text(&["metadata", "uid"]);
            let is_it = named.is_none_or(|named| own.is_empty() || named == own);
            if is_it { Control::Known } else { Control::None }
        }
        Presence::Absent => Control::None,
        Presence::Unobserved(_) => Control::Unknown(owner),
    }
}

/// The objects that control an object, the nearest first. A ReplicaSet that was not read is passed over: its Pods
/// carry the hash that its name has more than that of its Deployment.
pub(crate) fn controllers(objects: &dyn Objects, key: &ObjectKey) -> Vec<ObjectKey> {
    let mut chain: Vec<ObjectKey> = Vec::new();
    let mut hash = String::new();
    let mut own = key.clone();
    while chain.len() < DEEPEST {
        let above = match objects.get(own.as_ref()) {
            Presence::Present(observed) => {
                hash = observed.object.text(&["metadata", "labels", "pod-template-hash"]).into_owned();
                controller_of(objects, &observed)
            }
            Presence::Absent | Presence::Unobserved(_) if own.kind == "ReplicaSet" && !hash.is_empty() => {
                let deployment = own.name.strip_suffix(&*hash).and_then(|name| name.strip_suffix('-'));
                deployment.map(|name| ObjectKey::new("apps", "Deployment", &*own.namespace, name))
            }
            Presence::Absent | Presence::Unobserved(_) => None,
        };
        match above {
            Some(above) if above != *key && !chain.contains(&above) => {
                chain.push(above.clone());
                own = above;
            }
            _ => break,
        }
    }
    chain
}
