//! Field managers: the clients that wrote the fields of an object, with times, as kube-apiserver records them for every
//! write.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use taffrail_merge::{FieldSet, ManagedEntry, ManagedFields, Managers, PathElement, UpdateError, Updater};

use crate::behaviour::Behaviour;
use crate::kinds::Resource;
use crate::state::Inner;
use crate::store::Texts;
use crate::target::{Part, Target};

/// The manager of what an object had before the first apply, if nobody is known to own it.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The manager of updates that are so old that they are no longer told apart.
const ANCIENT: &str = "ancient-changes";

/// The maximum number of entries of updates; older ones are merged.
const MAX_UPDATERS: usize = 10;

/// The identifier of a write while it is recorded, so that it owns only what it changed.
const PRESENT: &str = "present write";

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

fn path(keys: &[&str]) -> Vec<PathElement> {
    keys.iter().map(|key| PathElement::Field((*key).to_owned())).collect()
}

/// Returns the fields that never have a manager, because only the server writes them.
fn of_server() -> FieldSet {
    let metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let all = [vec!["apiVersion"], vec!["kind"], vec!["metadata"]];
    let all = all.into_iter().chain(metadata.map(|key| vec!["metadata", key]));
    all.map(|keys| path(&keys)).collect()
}

/// Returns the fields that a write of this part of an object cannot change, and so does not own: `GetResetFields` in
/// Kubernetes' registries.
fn reset(target: &Target, part: Part) -> FieldSet {
    let resource = &target.resource;
    let keys: &[&[&str]] = match (part, &*resource.group, &*resource.plural) {
        (Part::Main, "certificates.k8s.io", "certificatesigningrequests") => &[&["spec"], &["status"]],
        (Part::Main, ..) if target.has_status() => &[&["status"]],
        (Part::Main, ..) => &[],
        (_, "apps", "deployments") => &[&["spec"], &["metadata", "labels"]],
        (_, "", "pods") => &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
        (_, "certificates.k8s.io", "certificatesigningrequests") => &[&["spec"], &["status", "conditions"]],
        (
            _,
            "flowcontrol.apiserver.k8s.io"
            | "resource.k8s.io"
            | "storage.k8s.io"
            | "admissionregistration.k8s.io",
            _,
        )
        | (_, "networking.k8s.io", "servicecidrs") => &[&["spec"], &["metadata"]],
        _ if resource.custom => &[&["spec"], &["metadata"]],
        _ => &[&["spec"]],
    };
    keys.iter().map(|keys| path(keys)).collect()
}

/// The owners of an object's fields, by their identifiers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owners(BTreeMap<String, ManagedEntry>);

impl Owners {
    /// Reads the owners from an object; none if they cannot be read.
    pub(crate) fn of(object: &Value) -> Owners {
        let entries = ManagedEntry::read_all(object).unwrap_or_default();
        Owners(entries.into_iter().map(|entry| (entry.id(), entry)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn managers(&self) -> Managers {
        let managed = |entry: &ManagedEntry| ManagedFields {
            fields: entry.fields.clone(),
            version: entry.version.clone(),
            is_applied: entry.is_applied,
        };
        self.0.iter().map(|(id, entry)| (id.clone(), managed(entry))).collect()
    }

    /// Takes over what `managers` own now. `own` is the entry of a manager that may be new.
    fn set(&mut self, managers: Managers, own: ManagedEntry) {
        self.0.entry(own.id()).or_insert(own);
        self.0.retain(|id, entry| {
            let Some(owned) = managers.get(id) else { return false };
            entry.fields = owned.fields.clone();
            entry.version.clone_from(&owned.version);
            true
        });
    }

    /// Merges the oldest updates if there are too many, each with another of its `apiVersion`.
    fn cap(&mut self) {
        let updates = self.0.iter().filter(|(_, entry)| !entry.is_applied);
        let mut updates: Vec<(Option<Timestamp>, String)> =
            updates.map(|(id, entry)| (entry.time, id.clone())).collect();
        updates.sort();
        let mut left = updates.len();
        let mut firsts: BTreeMap<String, String> = BTreeMap::new();
        for (time, id) in updates {
            if left <= MAX_UPDATERS {
                return;
            }
            let Some(version) = self.0.get(&id).map(|entry| entry.version.clone()) else { continue };
            let Some(first) = firsts.get(&version) else {
                firsts.insert(version, id);
                continue;
            };
            let bucket = entry(ANCIENT, &version, "", false);
            let place = bucket.id();
            let first = self.0.remove(first).map(|first| first.fields).unwrap_or_default();
            let merged = self.0.remove(&id).map(|merged| merged.fields).unwrap_or_default();
            let old = self.0.remove(&place).map(|old| old.fields).unwrap_or_default();
            let fields = first.union(&merged).union(&old);
            self.0.insert(place, ManagedEntry { fields, time, ..bucket });
            left -= 1;
        }
    }

    /// Writes the owners into an object, in the order of the API server.
    pub(crate) fn write(&self, object: &mut Value) {
        let Some(metadata) = object["metadata"].as_object_mut() else { return };
        if self.is_empty() {
            metadata.remove("managedFields");
            return;
        }
        let mut entries: Vec<&ManagedEntry> = self.0.values().collect();
        entries.sort_by(|one, other| {
            let key = |it: &ManagedEntry| (!it.is_applied, it.time.map_or(0, Timestamp::as_second));
            let words = |it: &ManagedEntry| [it.manager.clone(), it.version.clone(), it.subresource.clone()];
            key(one).cmp(&key(other)).then_with(|| words(one).cmp(&words(other)))
        });
        let entries: Vec<Value> = entries.into_iter().map(ManagedEntry::to_value).collect();
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

fn entry(manager: &str, version: &str, subresource: &str, is_applied: bool) -> ManagedEntry {
    ManagedEntry {
        manager: manager.to_owned(),
        is_applied,
        version: version.to_owned(),
        subresource: subresource.to_owned(),
        time: None,
        fields: FieldSet::default(),
    }
}

/// Returns true if an object asks to forget its managers: by a list without entries, or with one that is empty.
fn is_reset(object: &Value) -> bool {
    match object["metadata"]["managedFields"].as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(only)]) => only.is_empty(),
        _ => false,
    }
}

/// An apply to an object.
#[derive(Debug)]
pub(crate) struct Application<'a> {
    pub(crate) part: Part,
    pub(crate) manager: &'a str,
    pub(crate) config: &'a Value,
    pub(crate) force: bool,
    /// The subresource of the apply other than `status`, which [`Part`] states; empty for the object itself.
    pub(crate) subresource: &'static str,
}

impl Inner {
    fn keeps_managers(&self) -> bool {
        self.fleet.options.managers && self.does.on(Behaviour::ManagedFields)
    }

    /// Returns the texts to store for an object, with its field managers if it has any: the fleet keeps them, or it was
    /// applied.
    pub(crate) fn texts(&self, object: &Value) -> Texts {
        let interner = &self.fleet.interner;
        if self.does.on(Behaviour::ManagedFields) {
            Texts::recorded(object, interner)
        } else {
            Texts::of(object, interner)
        }
    }

    /// Updates the field managers in `after` for a write of these `parts` by `writer`; `before` is the former state,
    /// null for a new object. An object of which nobody is known to own a field stays so until it is applied.
    pub(crate) fn manage(
        &self,
        target: &Target,
        parts: &[Part],
        writer: &Writer,
        before: &Value,
        after: &mut Value,
    ) {
        let is_new = before.is_null();
        let is_whole = parts.contains(&Part::Main) && writer.subresource.is_empty();
        let is_reset = is_reset(after);
        let forgets = is_whole && is_reset && self.does.on(Behaviour::ManagersReset);
        // A client may write the managers, too.
        let sent = Owners::of(after);
        let mut owners = match is_whole && !is_reset && !sent.is_empty() && !is_new {
            true => sent,
            false => Owners::of(before),
        };
        if let Some(metadata) = after["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        let tracks = if is_new { self.keeps_managers() } else { !owners.is_empty() };
        if !tracks || forgets || !self.does.on(Behaviour::ManagedFields) {
            return;
        }
        let now = self.fleet.clock.now();
        let both = parts.len() > 1;
        let of = target.object_type();
        let old = of.filled(&if is_new { target.empty() } else { without_managers(before) });
        let new = of.filled(after);
        for part in parts.iter().copied() {
            if part == Part::Status && !target.has_status() {
                continue;
            }
            let mut ignored = reset(target, part);
            if both && part == Part::Status {
                let keys = [&old, &new].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
                let others = keys.filter(|key| *key != "status").map(|key| path(&[key]));
                ignored = ignored.union(&others.collect());
            }
            let subresource = if part == Part::Status { "status" } else { writer.subresource };
            let name = writer.of_part(&target.resource, part);
            let own = entry(name, &target.api_version(), subresource, false);
            let time = (subresource != "scale").then_some(now);
            if owners.update(target, ignored, &old, &new, own, time).is_err() {
                return;
            }
        }
        if self.does.on(Behaviour::ManagersCapped) {
            owners.cap();
        }
        owners.write(after);
    }

    /// Applies to a stored object, or to an empty one, and returns the object with its owners.
    ///
    /// # Errors
    /// [`UpdateError`] if an object is not of its type, or in conflict with others.
    pub(crate) fn merged(
        &self,
        target: &Target,
        live: &Value,
        apply: &Application<'_>,
    ) -> Result<Value, UpdateError> {
        let Application { part, manager, config, force, subresource } = *apply;
        let now = self.fleet.clock.now();
        let mut owners = Owners::of(live);
        let mut live = without_managers(live);
        let (of, version) = (target.object_type(), target.api_version());
        of.tidy(&mut live);
        owners.check_versions(target, &live)?;
        let subresource = if part == Part::Status { "status" } else { subresource };
        let ignored =
            if self.does.on(Behaviour::ResetFields) { reset(target, part) } else { FieldSet::default() };
        if owners.is_empty() {
            let own = entry(BEFORE_FIRST_APPLY, &version, subresource, false);
            let (old, new) = (of.filled(&target.empty()), of.filled(&live));
            owners.update(target, ignored.clone(), &old, &new, own, Some(now))?;
        }
        let own = entry(manager, &version, subresource, true);
        let updater = Updater::new(of.get(), &version).ignoring(ignored);
        let force = force || !self.does.on(Behaviour::ApplyConflicts);
        let mut applied = updater.apply(&live, config, &owners.managers(), &own.id(), force)?;
        owners.strip(&mut applied.managers, &own.id());
        let id = own.id();
        owners.set(applied.managers, own);
        if applied.object.is_some()
            && let Some(own) = owners.0.get_mut(&id)
        {
            // The API server loses the time of a scale on the way to its parent.
            own.time = (subresource != "scale").then_some(now);
        }
        if self.does.on(Behaviour::ManagersCapped) {
            owners.cap();
        }
        let mut object = applied.object.unwrap_or(live);
        of.tidy(&mut object);
        if self.does.on(Behaviour::ManagedFields) {
            owners.write(&mut object);
        }
        Ok(object)
    }
}

impl Owners {
    /// Records an update by the manager of `own`.
    fn update(
        &mut self,
        target: &Target,
        ignored: FieldSet,
        old: &Value,
        new: &Value,
        own: ManagedEntry,
        time: Option<Timestamp>,
    ) -> Result<(), UpdateError> {
        let version = target.api_version();
        let updater = Updater::new(target.object_type().get(), &version).ignoring(ignored);
        let mut managers = updater.update(old, new, &self.managers(), PRESENT)?;
        self.strip(&mut managers, PRESENT);
        let id = own.id();
        let Some(mut taken) = managers.remove(PRESENT) else {
            self.set(managers, own);
            return Ok(());
        };
        if let Some(former) = managers.get(&id) {
            taken.fields = taken.fields.union(&former.fields);
        }
        managers.insert(id.clone(), taken);
        self.set(managers, own);
        if let Some(own) = self.0.get_mut(&id) {
            own.time = time;
        }
        Ok(())
    }

    /// Fails if a manager wrote at another version of a custom kind whose schema does not have all fields of the live
    /// object, to which kube-apiserver would convert it.
    fn check_versions(&self, target: &Target, live: &Value) -> Result<(), UpdateError> {
        let own = target.api_version();
        let others: BTreeSet<&str> = self.0.values().map(|entry| &*entry.version).collect();
        for other in others.into_iter().filter(|other| *other != own && target.resource.custom) {
            let (group, version) = crate::kinds::split_group_version(other);
            if group != &*target.resource.group || target.resource.version(version).is_none() {
                continue;
            }
            let converted = Target { version: version.into(), ..target.clone() };
            converted.object_type().get().validate(live, true).map_err(UpdateError::Live)?;
        }
        Ok(())
    }

    /// Takes from a manager the fields that only the server writes.
    fn strip(&self, managers: &mut Managers, id: &str) {
        let Some(owned) = managers.get_mut(id) else { return };
        owned.fields = owned.fields.difference(&of_server());
        if owned.fields.is_empty() {
            managers.remove(id);
        }
    }
}

fn without_managers(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

/// Returns an object without its resourceVersion and the times of its managers, which alone are not a change.
pub(crate) fn timeless(object: &Value) -> Map<String, Value> {
    let mut object = object.as_object().cloned().unwrap_or_default();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let managers = metadata.and_then(|metadata| {
        metadata.remove("resourceVersion");
        metadata.get_mut("managedFields")
    });
    for entry in managers.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
    {
        entry.remove("time");
    }
    object
}

impl Target {
    /// Returns an object of the target's kind without any field.
    pub(crate) fn empty(&self) -> Value {
        json!({ "apiVersion": self.api_version(), "kind": &*self.resource.kind })
    }
}
