//! What controllers made of an object: those that name it as their controller.

use std::borrow::Cow;
use std::collections::HashMap;

use taffrail_status::Object;
use taffrail_status::json::Value;

use crate::identity::ObjectKey;
use crate::objects::{Objects, Observed};

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

/// The UID of the object that controls this one.
fn controller<'a>(object: &Object<'a>) -> Option<Cow<'a, str>> {
    let mut owners = object.at(&["metadata", "ownerReferences"])?.items()?;
    let controls = |owner: &Value<'a>| owner.get("controller").and_then(Value::as_bool) == Some(true);
    owners.find(controls)?.get("uid")?.as_str().filter(|uid| !uid.is_empty())
}
