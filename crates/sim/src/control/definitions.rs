//! CustomResourceDefinitions: establishing them, and serving their kinds.

use std::sync::Arc;

use serde_json::{Value, json};

use super::set_condition;
use crate::behaviour::Behaviour;
use crate::crd;
use crate::kinds::Resource;
use crate::state::Inner;
use crate::target::Target;

const GROUP: &str = "apiextensions.k8s.io";

pub(super) fn reconcile(inner: &Arc<Inner>, name: &str) {
    let Some(target) = inner.target(GROUP, "customresourcedefinitions", "", name) else { return };
    let Some(definition) = inner.tree(&target) else { return forget(inner, name) };
    if definition["metadata"].get("deletionTimestamp").is_some() {
        // The objects are removed first.
        forget(inner, name);
        super::change(inner, &target, remove_finalizer);
        return;
    }
    if !inner.does.on(Behaviour::CustomResources) {
        return;
    }
    let taken = inner.does.on(Behaviour::NameConflicts) && is_taken(inner, &definition);
    super::change(inner, &target, |definition| establish(inner, definition, taken));
    let Some(definition) = inner.tree(&target) else { return forget(inner, name) };
    if let Some(resource) = crd::resource(&definition, &inner.does) {
        fill_stored(inner, Arc::new(resource));
    }
}

/// Serves a resource, and fills the defaults of its schema into the objects that are stored already: kube-apiserver does
/// so whenever it reads one.
fn fill_stored(inner: &Inner, resource: Arc<Resource>) {
    let mut store = inner.store();
    store.define(resource.clone());
    let Some((shelf, _)) = store.find(&resource.group, &resource.plural) else { return };
    let Some((version, schema)) =
        resource.versions.first().and_then(|version| Some((version, version.schema.as_ref()?)))
    else {
        return;
    };
    if !inner.does.on(Behaviour::CustomDefaults) {
        return;
    }
    store.reread(shelf, |object| {
        let tree = object.tree(&resource.api_version(&version.name), &resource.kind);
        let mut filled = tree.clone();
        schema.default(&mut filled);
        (filled != tree).then(|| inner.texts(&filled))
    });
}

fn remove_finalizer(definition: &mut Value) {
    if let Some(finalizers) = definition.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|finalizer| finalizer != "customresourcecleanup.apiextensions.k8s.io");
    }
}

/// Returns true if another resource of the same group already has the kind of a CustomResourceDefinition.
fn is_taken(inner: &Inner, definition: &Value) -> bool {
    let spec = &definition["spec"];
    let [group, plural, kind] = [&spec["group"], &spec["names"]["plural"], &spec["names"]["kind"]]
        .map(|text| text.as_str().unwrap_or_default());
    let store = inner.store();
    store.find_kind(group, kind).is_some_and(|(_, resource)| *resource.plural != *plural)
}

/// Sets the status of a CustomResourceDefinition: names accepted and established, or neither if its kind is
/// `taken`.
fn establish(inner: &Inner, definition: &mut Value, taken: bool) {
    let names = definition["spec"]["names"].clone();
    let kind = names["kind"].as_str().unwrap_or_default();
    let stored = definition["spec"]["versions"].as_array().into_iter().flatten();
    let stored: Vec<Value> =
        stored.filter(|version| version["storage"] == true).map(|version| version["name"].clone()).collect();
    if let Some(members) = definition.as_object_mut() {
        members.entry("status").or_insert_with(|| json!({}));
    }
    let status = &mut definition["status"];
    if !status.is_object() {
        *status = json!({});
    }
    if taken {
        let message = format!("{kind:?} is already in use");
        let why = json!({"reason": "KindConflict", "message": message});
        set_condition(inner, status, "NamesAccepted", "False", &why);
        let why = json!({"reason": "NotAccepted", "message": "not all names are accepted"});
        set_condition(inner, status, "Established", "False", &why);
        return;
    }
    status["acceptedNames"] = names;
    status["storedVersions"] = json!(stored);
    let why = json!({"reason": "NoConflicts", "message": "no conflicts found"});
    set_condition(inner, status, "NamesAccepted", "True", &why);
    let why = json!({"reason": "InitialNamesAccepted", "message": "the initial names have been accepted"});
    set_condition(inner, status, "Established", "True", &why);
}

/// Stops serving the kind of a deleted CustomResourceDefinition called `name`, and removes all objects of it.
fn forget(inner: &Arc<Inner>, name: &str) {
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let found = {
        let store = inner.store();
        let found = store.find(group, plural).filter(|(_, resource)| resource.custom);
        found.map(|(shelf, resource)| {
            let keys: Vec<String> = store.range(shelf, "", None).map(|(key, _)| key.to_string()).collect();
            (shelf, resource.clone(), keys)
        })
    };
    let Some((shelf, resource, keys)) = found else { return };
    let version = resource.versions.first().map(|version| version.name.clone()).unwrap_or_default();
    for key in keys {
        let (namespace, name) = key.rsplit_once('/').unwrap_or(("", &key));
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        inner.remove(&Target {
            shelf,
            resource: resource.clone(),
            version: version.clone(),
            namespace,
            name,
        });
    }
    if inner.does.on(Behaviour::DefinitionRemovesKind) {
        inner.store().undefine(shelf);
    }
}
