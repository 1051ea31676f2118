//! What controllers made of an object: those that name it as their controller.

use std::borrow::Cow;
use std::collections::HashMap;

use taffrail_status::Object;
use taffrail_status::json::Value;

use crate::identity::ObjectKey;
use crate::objects::{Lookup, Objects, Observed};

/// The dependents of all objects of one cluster, by the UID of their controller: one pass over the cluster,
/// whatever is asked of it later.
pub(crate) struct Owners<'a> {
    dependents: HashMap<Cow<'a, str>, Vec<&'a ObjectKey>>,
}

impl<'a> Owners<'a> {
    pub(crate) fn of(objects: &'a dyn Objects) -> Owners<'a> {
        let mut dependents: HashMap<Cow<'a, str>, Vec<&'a ObjectKey>> = HashMap::new();
        for observed in objects.all() {
            if let Some(uid) = controller(&observed.object) {
                dependents.entry(uid).or_default().push(observed.key);
            }
        }
        Owners { dependents }
    }

    /// The objects that an object controls, by kind and name.
    pub(crate) fn dependents(
        &self,
        owner: &Observed<'_>,
    ) -> impl Iterator<Item = &'a ObjectKey> + use<'a, '_> {
        let uid = owner.object.text(&["metadata", "uid"]);
        // Nothing is owned across namespaces: the API's garbage collector takes such a reference for a mistake.
        let namespace = owner.key.namespace.clone();
        let found = if uid.is_empty() { None } else { self.dependents.get(&*uid) };
        found
            .into_iter()
            .flatten()
            .copied()
            .filter(move |key| namespace.is_empty() || key.namespace == namespace)
    }
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
    let namespace = if namespaced { &*observed.key.namespace } else { "" };
    (!kind.is_empty() && !name.is_empty()).then(|| ObjectKey::new(group, kind, namespace, name))
}

/// The objects that control an object, the nearest first. A ReplicaSet that was not read is passed over: its Pods
/// carry the hash that its name has more than that of its Deployment.
pub(crate) fn controllers(objects: &dyn Objects, key: &ObjectKey) -> Vec<ObjectKey> {
    let mut chain: Vec<ObjectKey> = Vec::new();
    let mut hash = String::new();
    let mut own = key.clone();
    while chain.len() < DEEPEST {
        let above = match objects.get(&own) {
            Lookup::Found(observed) => {
                hash = observed.object.text(&["metadata", "labels", "pod-template-hash"]).into_owned();
                controller_of(objects, &observed)
            }
            Lookup::Absent | Lookup::Unobserved(_) if own.kind == "ReplicaSet" && !hash.is_empty() => {
                let deployment = own.name.strip_suffix(&*hash).and_then(|name| name.strip_suffix('-'));
                deployment.map(|name| ObjectKey::new("apps", "Deployment", &*own.namespace, name))
            }
            Lookup::Absent | Lookup::Unobserved(_) => None,
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
