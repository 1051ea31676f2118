//! The references between objects: from an owner to its objects, from an object to its events and its controllers.

use std::borrow::Cow;
use std::sync::Arc;

use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};
use taffrail_status::assess::{Event, Regarding, owners};
use taffrail_status::{Observed, Presence};

use crate::keyed::Keyed;
use crate::objects::Objects;

/// An index of the references to objects in one cluster (owners and events), made in one pass over its
/// objects.
#[derive(Debug, Default)]
pub(crate) struct ReferenceIndex {
    /// Keys of controlled objects, by the UID of their controller.
    controlled: Keyed<String>,
    /// Keys of objects, by the UID of each owner that is not the controller.
    held: Keyed<String>,
    /// Keys of events, by kind, namespace and name of the object that they are about.
    events: Keyed<(String, String, String)>,
}

/// The references in one object: to its owners, and, in an event, to the object that it is about.
#[derive(PartialEq, Eq)]
pub(crate) struct ObjectReferences<'a> {
    /// The UID of the owner with `controller: true`; `None` if there is none.
    pub(crate) controller: Option<Cow<'a, str>>,
    /// The UIDs of the other owners.
    pub(crate) others: Vec<Cow<'a, str>>,
    /// For an event, kind, namespace and name of the object that it is about; else `None`.
    pub(crate) about: Option<(String, String, String)>,
}

impl<'a> ObjectReferences<'a> {
    pub(crate) fn of(object: &Object<'a>) -> ObjectReferences<'a> {
        let about = |(_, regarding): (Event<'_>, Regarding<'_>)| {
            (regarding.kind.into_owned(), regarding.namespace.into_owned(), regarding.name.into_owned())
        };
        let (controller, others) = owners(object.metadata());
        ObjectReferences { controller, others, about: Event::read(object).map(about) }
    }
}

impl ReferenceIndex {
    /// Builds the index of these objects, each given by its key and the root of its JSON text.
    pub(crate) fn of<'a>(objects: impl Iterator<Item = (&'a Arc<ObjectKey>, Value<'a>)>) -> ReferenceIndex {
        let (mut controlled, mut held, mut events) = (Vec::new(), Vec::new(), Vec::new());
        for (key, root) in objects {
            // Nothing but the metadata of most objects is looked at: there may be very many.
            let (controller, others) = owners(root.get("metadata"));
            controlled.extend(controller.map(|uid| (uid, key)));
            held.extend(others.into_iter().map(|uid| (uid, key)));
            let event = Some(root).filter(|_| key.kind == "Event").and_then(|root| Object::new(root).ok());
            events
                .extend(event.and_then(|event| ObjectReferences::of(&event).about).map(|about| (about, key)));
        }
        ReferenceIndex { controlled: Keyed::of(controlled), held: Keyed::of(held), events: Keyed::of(events) }
    }

    /// Updates the index for an object that was created (`old` is `None`), changed, or deleted (`new` is
    /// `None`).
    pub(crate) fn replace(
        &mut self,
        key: &Arc<ObjectKey>,
        old: Option<&Object<'_>>,
        new: Option<&Object<'_>>,
    ) {
        let [old, new] = [old, new].map(|object| object.map(ObjectReferences::of));
        if old == new {
            return;
        }
        if let Some(ObjectReferences { controller, others, about }) = old {
            if let Some(uid) = controller {
                self.controlled.remove(&*uid, key);
            }
            for uid in others {
                self.held.remove(&*uid, key);
            }
            if let Some(about) = about {
                self.events.remove(&about, key);
            }
        }
        if let Some(ObjectReferences { controller, others, about }) = new {
            if let Some(uid) = controller {
                self.controlled.insert(uid.into_owned(), key);
            }
            for uid in others {
                self.held.insert(uid.into_owned(), key);
            }
            if let Some(about) = about {
                self.events.insert(about, key);
            }
        }
    }

    /// Returns the objects in a namespace (`None`: in all) whose controller has this UID.
    pub(crate) fn controlled(
        &self,
        uid: &str,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &Arc<ObjectKey>> + use<'_> {
        self.controlled.within(uid, namespace)
    }

    /// Returns the objects in a namespace (`None`: in all) that name this UID as an owner that is not the
    /// controller.
    pub(crate) fn held(
        &self,
        uid: &str,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &Arc<ObjectKey>> + use<'_> {
        self.held.within(uid, namespace)
    }

    /// Returns the events about the object with this kind, namespace and name. For a cluster-scoped object `namespace`
    /// is empty, and events that name any of [`Regarding::OF_CLUSTER`] as its namespace count.
    pub(crate) fn events(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> impl Iterator<Item = &Arc<ObjectKey>> + use<'_> {
        let own = [namespace];
        let namespaces: &[&str] = if namespace.is_empty() { &Regarding::OF_CLUSTER } else { &own };
        let find =
            |namespace: &&str| self.events.get(&(kind.to_owned(), (*namespace).to_owned(), name.to_owned()));
        let found: Vec<_> = namespaces.iter().map(find).collect();
        found.into_iter().flatten()
    }
}

/// Returns the objects of the cluster `objects` whose controller is `owner`, by its UID: those in its namespace, or in
/// all if it is cluster-scoped. Empty if `owner` has no UID.
pub fn dependents<'a>(
    objects: &'a dyn Objects,
    owner: &Observed<'_>,
) -> impl Iterator<Item = Observed<'a>> + use<'a> {
    let uid = owner.object.text(&["metadata", "uid"]);
    // Ownership does not cross namespaces: the garbage collector of the API treats such a reference as an
    // error.
    let namespace = Some(owner.key.namespace).filter(|namespace| !namespace.is_empty());
    let found = (!uid.is_empty()).then(|| objects.owned(&uid, namespace));
    found.into_iter().flatten()
}

/// The maximum number of owners that are followed upwards; those above are ignored. The owner references may form a
/// circle.
const MAX_OWNER_DEPTH: usize = 50;

/// Returns the owner reference of an object that names its controller; `None` if there is none.
fn reference<'a>(object: &Object<'a>) -> Option<Value<'a>> {
    let mut owners = object.at(&["metadata", "ownerReferences"])?.items()?;
    owners.find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true))
}

/// Returns the UID that an object names as its controller's; `None` if it names no controller, or one without a UID.
fn controller<'a>(object: &Object<'a>) -> Option<Cow<'a, str>> {
    reference(object)?.get("uid")?.as_str().filter(|uid| !uid.is_empty())
}

/// Returns the key of the object that this one names as its controller; `None` if it names none, or one without a kind
/// or a name. That object need not exist.
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

/// The result of looking up the controller that an object names.
pub(crate) enum ControllerLookup {
    /// The object names no controller, or one that does not exist with the UID that it names: any author can write a
    /// reference.
    None,
    /// The controller exists with the UID that the object names.
    Proved,
    /// An object with the controller's name exists, but its UID, or the UID that the owner reference states, is not
    /// known.
    Known,
    /// The controller was not read; holds its key.
    Unknown(ObjectKey),
}

/// Returns the state of the controller that an object names, as far as it was read.
pub(crate) fn control(objects: &dyn Objects, observed: &Observed<'_>) -> ControllerLookup {
    let Some(owner) = controller_of(objects, observed) else { return ControllerLookup::None };
    let named = controller(&observed.object);
    match objects.get(owner.as_ref()) {
        Presence::Present(found) => {
            let own = found.object.text(&["metadata", "uid"]);
            match named {
                Some(named) if named == own => ControllerLookup::Proved,
                Some(_) if !own.is_empty() => ControllerLookup::None,
                _ => ControllerLookup::Known,
            }
        }
        Presence::Absent => ControllerLookup::None,
        Presence::Unobserved(_) => ControllerLookup::Unknown(owner),
    }
}

/// Returns the chain of controllers above an object, the nearest first, each as the one below names it; the last need
/// not exist or have been read. Ends at the first repetition, and after 50 objects.
///
/// Above a ReplicaSet that was not read it takes the Deployment with the ReplicaSet's name without the pod template
/// hash that its Pod carries.
pub fn controllers(objects: &dyn Objects, key: &ObjectKey) -> Vec<ObjectKey> {
    let mut chain: Vec<ObjectKey> = Vec::new();
    let mut hash = String::new();
    let mut own = key.clone();
    while chain.len() < MAX_OWNER_DEPTH {
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
