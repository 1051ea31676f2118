//! Field managers: the clients that wrote the fields of an object, with times, as kube-apiserver records them for every
//! update.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::behaviour::Behaviour;
use crate::clock::stamp;
use crate::kinds::Resource;
use crate::state::Inner;
use crate::store::Texts;
use crate::target::{Part, Target};

/// The client that makes a write, for its field managers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writer {
    /// The name of the client; empty for the simulator's own controllers.
    pub(crate) name: String,
    /// The manager of the status, if the write includes the status and another client manages it; else empty.
    pub(crate) status: String,
    /// The subresource of the write; empty for the object itself and for `status`, which [`Part`] states.
    pub(crate) subresource: &'static str,
}

/// The fields of metadata that only the server writes, so that they have no manager.
const OF_SERVER: [&str; 10] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "generation",
    "managedFields",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Fields that every object of a built-in kind has, even if empty, so that no write counts as adding them.
const ALWAYS_THERE: [&str; 8] =
    ["metadata", "spec", "status", "strategy", "updateStrategy", "template", "jobTemplate", "containers"];

/// Maps of built-in kinds that have one manager as a whole.
const ATOMIC: [&str; 10] = [
    "selector",
    "nodeSelector",
    "labelSelector",
    "claimRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fieldRef",
    "resourceFieldRef",
    "involvedObject",
    "roleRef",
];

/// A set of fields, as a tree like `fieldsV1`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Fields {
    /// True if the path to this node is itself in the set.
    is_member: bool,
    children: BTreeMap<String, Fields>,
}

impl Fields {
    fn read(value: &Value) -> Fields {
        let members = value.as_object();
        let children = members.into_iter().flatten().filter(|(key, _)| *key != ".");
        let children: BTreeMap<String, Fields> =
            children.map(|(key, value)| (key.clone(), Fields::read(value))).collect();
        let is_member = children.is_empty() || members.is_some_and(|members| members.contains_key("."));
        Fields { is_member, children }
    }

    fn write(&self) -> Value {
        let mut members = Map::new();
        if self.is_member && !self.children.is_empty() {
            members.insert(".".to_owned(), json!({}));
        }
        members.extend(self.children.iter().map(|(key, child)| (key.clone(), child.write())));
        Value::Object(members)
    }

    fn is_empty(&self) -> bool {
        !self.is_member && self.children.is_empty()
    }

    fn child(&mut self, key: String) -> &mut Fields {
        self.children.entry(key).or_default()
    }

    fn add(&mut self, other: Fields) {
        self.is_member |= other.is_member;
        for (key, child) in other.children {
            self.child(key).add(child);
        }
    }

    /// Removes the paths of `other` from the set; with `below`, also all paths below them.
    fn subtract(&mut self, other: &Fields, below: bool) {
        if other.is_member {
            self.is_member = false;
            if below {
                self.children.clear();
            }
        }
        self.children.retain(|key, child| {
            if let Some(other) = other.children.get(key) {
                child.subtract(other, below);
            }
            !child.is_empty()
        });
    }

    /// Removes all descendants that neither are in the set nor have a descendant in it.
    fn prune(&mut self) {
        self.children.retain(|_, child| {
            child.prune();
            !child.is_empty()
        });
    }
}

/// The fields that a write set, and the fields that it removed.
#[derive(Debug, Default)]
struct Difference {
    touched: Fields,
    removed: Fields,
}

/// The way in which the elements of a list are identified.
enum Elements {
    /// Not at all: the list is managed as one value.
    Atomic,
    /// By the element itself.
    Set,
    /// By the values of these members.
    Keyed(&'static [&'static str]),
}

/// Returns how the elements of the list at `path` are identified; `custom` is true for a custom resource, whose
/// schema is not consulted.
fn elements(custom: bool, path: &[&str]) -> Elements {
    let [above @ .., field] = path else { return Elements::Atomic };
    match *field {
        "finalizers" if above == ["metadata"] => return Elements::Set,
        "ownerReferences" => return Elements::Keyed(&["uid"]),
        _ if custom => return Elements::Atomic,
        _ => {}
    }
    match *field {
        "containers" | "initContainers" | "env" | "volumes" => Elements::Keyed(&["name"]),
        "volumeMounts" => Elements::Keyed(&["mountPath"]),
        "conditions" => Elements::Keyed(&["type"]),
        "podIPs" | "hostIPs" => Elements::Keyed(&["ip"]),
        "ports" if above.contains(&"containers") => Elements::Keyed(&["containerPort", "protocol"]),
        "ports" if above == ["spec"] => Elements::Keyed(&["port", "protocol"]),
        _ => Elements::Atomic,
    }
}

/// Returns the elements of a list by their identity; `None` if an element has none or two have the same.
fn keyed<'v>(list: &'v [Value], keys: &Elements) -> Option<BTreeMap<String, &'v Value>> {
    let key = |element: &Value| match keys {
        Elements::Atomic => None,
        Elements::Set => Some(format!("v:{element}")),
        Elements::Keyed(names) => {
            let members: Option<BTreeMap<&str, &Value>> =
                names.iter().map(|name| Some((*name, element.get(name)?))).collect();
            Some(format!("k:{}", json!(members?)))
        }
    };
    let found: Option<BTreeMap<String, &Value>> = list.iter().map(|it| Some((key(it)?, it))).collect();
    found.filter(|found| found.len() == list.len())
}

/// Returns the fields at `path` that differ before and after a write.
fn compare<'v>(
    custom: bool,
    path: &mut Vec<&'v str>,
    before: Option<&'v Value>,
    after: Option<&'v Value>,
) -> Difference {
    let mut found = Difference::default();
    let there = |value: Option<&'v Value>| value.filter(|value| !value.is_null());
    let (before, after) = (there(before), there(after));
    if before == after {
        return found;
    }
    let Some(after) = after else {
        found.removed.is_member = true;
        return found;
    };
    let field = path.last().copied().unwrap_or_default();
    let is_kept = !custom && ALWAYS_THERE.contains(&field);
    match after {
        Value::Object(members) if custom || !ATOMIC.contains(&field) => {
            let old = before.and_then(Value::as_object);
            found.touched.is_member = members.is_empty() || old.is_none() && !is_kept;
            let gone = old.into_iter().flatten().filter(|(key, _)| !members.contains_key(*key));
            let names = members.iter().chain(gone).map(|(key, _)| key);
            for name in names {
                path.push(name);
                let below = compare(custom, path, old.and_then(|old| old.get(name)), members.get(name));
                path.pop();
                found.take(format!("f:{name}"), below);
            }
        }
        Value::Array(list) => {
            let keys = elements(custom, path);
            let old = before.and_then(Value::as_array);
            let (new, old) = (keyed(list, &keys), old.map_or(Some(BTreeMap::new()), |old| keyed(old, &keys)));
            let (Some(new), Some(old)) = (new, old) else {
                found.touched.is_member = true;
                return found;
            };
            found.touched.is_member = before.is_none() && !is_kept;
            let gone = old.keys().filter(|key| !new.contains_key(*key));
            for key in new.keys().chain(gone) {
                // An element is never one of [`ALWAYS_THERE`], even in a list of that name.
                path.push("");
                let below = compare(custom, path, old.get(key).copied(), new.get(key).copied());
                path.pop();
                found.take(key.clone(), below);
            }
        }
        _ => found.touched.is_member = true,
    }
    found
}

impl Difference {
    fn take(&mut self, key: String, below: Difference) {
        if !below.touched.is_empty() {
            self.touched.children.insert(key.clone(), below.touched);
        }
        if !below.removed.is_empty() {
            self.removed.children.insert(key, below.removed);
        }
    }
}

/// Returns the status of an object, or the rest of it, as `part` says, without fields that have no managers.
fn part_of(object: &Value, part: Part, has_status: bool) -> Value {
    let mut all = object.as_object().cloned().unwrap_or_default();
    if part == Part::Status {
        all.retain(|key, _| key == "status");
        return Value::Object(all);
    }
    all.retain(|key, _| !(matches!(key.as_str(), "apiVersion" | "kind") || has_status && key == "status"));
    if let Some(metadata) = all.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !OF_SERVER.contains(&key.as_str()));
    }
    Value::Object(all)
}

/// Returns the name of the control-plane controller that writes this part of an object.
fn controller(resource: &Resource, part: Part) -> &'static str {
    let is_of_node = resource.is("", "pods") || resource.is("", "nodes");
    if is_of_node && part == Part::Status { "kubelet" } else { "kube-controller-manager" }
}

impl Writer {
    /// Creates the writer for a client called `name`.
    pub(crate) fn named(name: &str) -> Writer {
        Writer { name: name.to_owned(), ..Writer::default() }
    }

    /// Returns the name of the manager for this part of an object.
    fn of_part<'w>(&'w self, resource: &Resource, part: Part) -> &'w str {
        match part {
            Part::Status if !self.status.is_empty() => &self.status,
            _ if !self.name.is_empty() => &self.name,
            part => controller(resource, part),
        }
    }
}

impl Inner {
    fn keeps_managers(&self) -> bool {
        self.fleet.options.managers && self.does.on(Behaviour::ManagedFields)
    }

    /// Returns the texts to store for an object, with its field managers if the fleet keeps them.
    pub(crate) fn texts(&self, object: &Value) -> Texts {
        let interner = &self.fleet.interner;
        if self.keeps_managers() { Texts::recorded(object, interner) } else { Texts::of(object, interner) }
    }

    /// Updates the field managers in `after` for a write of these `parts` by `writer`; `before` is the former state,
    /// null for a new object.
    pub(crate) fn manage(
        &self,
        target: &Target,
        parts: &[Part],
        writer: &Writer,
        before: &Value,
        after: &mut Value,
    ) {
        if !self.keeps_managers() {
            return;
        }
        let resource = &target.resource;
        let api_version = target.api_version();
        let entries = before["metadata"]["managedFields"].as_array();
        let mut entries = entries.cloned().unwrap_or_default();
        for part in parts.iter().copied() {
            if part == Part::Status && !target.has_status() {
                continue;
            }
            let parts = [before, &*after].map(|object| part_of(object, part, target.has_status()));
            let [old, new] = &parts;
            let mut found = compare(resource.custom, &mut Vec::new(), Some(old), Some(new));
            // The root and `metadata` belong to all objects.
            found.touched.is_member = false;
            if let Some(metadata) = found.touched.children.get_mut("f:metadata") {
                metadata.is_member = false;
            }
            found.touched.prune();
            for entry in &mut entries {
                let mut fields = Fields::read(&entry["fieldsV1"]);
                fields.subtract(&found.touched, false);
                fields.subtract(&found.removed, true);
                entry["fieldsV1"] = fields.write();
            }
            let name = writer.of_part(resource, part);
            let subresource = if part == Part::Status { "status" } else { writer.subresource };
            let own = entries.iter().position(|entry| {
                entry["manager"] == name
                    && entry["operation"] == "Update"
                    && entry["apiVersion"] == api_version
                    && entry["subresource"].as_str().unwrap_or_default() == subresource
            });
            if !found.touched.is_empty() {
                let mut entry = match own {
                    Some(own) => entries.remove(own),
                    None => json!({
                        "manager": name, "operation": "Update", "apiVersion": api_version, "fieldsType": "FieldsV1",
                        "fieldsV1": {},
                    }),
                };
                let mut fields = Fields::read(&entry["fieldsV1"]);
                fields.is_member = false;
                fields.add(found.touched);
                entry["fieldsV1"] = fields.write();
                // The API server derives the entry of a scale from its parent, where the entry is new at each scale, and
                // so without time (`managedfields.ScaleHandler`).
                if subresource != "scale" {
                    entry["time"] = json!(stamp(self.fleet.clock.now()));
                }
                if !subresource.is_empty() {
                    entry["subresource"] = json!(subresource);
                }
                entries.push(entry);
            }
            entries.retain(|entry| entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()));
        }
        let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        entries.sort_by_cached_key(|entry| {
            ["operation", "time", "manager", "apiVersion", "subresource"].map(|key| text(entry, key))
        });
        let Some(metadata) = after["metadata"].as_object_mut() else { return };
        if entries.is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), Value::Array(entries));
        }
    }
}
