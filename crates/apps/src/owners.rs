//! What points at an object without being named by it: those that it controls, and the events about it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use taffrail_status::Object;
use taffrail_status::assess::Event;
use taffrail_status::json::Value;

use crate::identity::ObjectKey;
use crate::objects::{Objects, Observed};

/// Both, of one cluster: one pass over its objects, whatever is asked later.
#[derive(Debug, Default)]
pub(crate) struct Pointers {
    /// By the UID of the controller.
    controlled: HashMap<String, Vec<ObjectKey>>,
    /// By kind and name of what they are about.
    events: HashMap<(String, String), Vec<ObjectKey>>,
}

impl Pointers {
    pub(crate) fn of<'a>(objects: impl Iterator<Item = Observed<'a>>) -> Pointers {
        let mut pointers = Pointers::default();
        let mut events = HashSet::new();
        for Observed { key, object, .. } in objects {
            // One event is served by two API groups.
            if key.kind == "Event"
                && let Some((_, regarding)) = Event::read(&object)
                && events.insert((&*key.namespace, &*key.name))
            {
                let about = (regarding.kind.into_owned(), regarding.name.into_owned());
                pointers.events.entry(about).or_default().push(key.clone());
            }
            if let Some(uid) = controller(&object) {
                match pointers.controlled.get_mut(&*uid) {
                    Some(dependents) => dependents.push(key.clone()),
                    None => drop(pointers.controlled.insert(uid.into_owned(), vec![key.clone()])),
                }
            }
        }
        pointers
    }

    pub(crate) fn controlled(&self, uid: &str) -> &[ObjectKey] {
        self.controlled.get(uid).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn events(&self, kind: &str, name: &str) -> &[ObjectKey] {
        self.events.get(&(kind.to_owned(), name.to_owned())).map_or(&[], Vec::as_slice)
    }
}

/// The objects that controllers made of an object.
pub(crate) fn dependents<'a>(
    objects: &'a dyn Objects,
    owner: &Observed<'_>,
) -> impl Iterator<Item = Observed<'a>> + use<'a> {
    let uid = owner.object.text(&["metadata", "uid"]);
    // Nothing is owned across namespaces: the API's garbage collector takes such a reference for a mistake.
    let namespace = owner.key.namespace.clone();
    let found = (!uid.is_empty()).then(|| objects.controlled(&uid));
    found.into_iter().flatten().filter(move |it| namespace.is_empty() || it.key.namespace == namespace)
}

/// The UID of the object that controls this one.
fn controller<'a>(object: &Object<'a>) -> Option<Cow<'a, str>> {
    let mut owners = object.at(&["metadata", "ownerReferences"])?.items()?;
    let controls = |owner: &Value<'a>| owner.get("controller").and_then(Value::as_bool) == Some(true);
    owners.find(controls)?.get("uid")?.as_str().filter(|uid| !uid.is_empty())
}
