//! The status of a `ResourceGroup` that Taffrail's agent writes where nobody else does.
//!
//! Its shape and its words are those of the ResourceGroup controller of Config Sync
//! (`pkg/resourcegroup/controllers/resourcegroup`), with three differences: the messages of its conditions end with a
//! mark of the agent, an object of which nothing certain is known is `Unknown` and makes `Stalled` `Unknown`, and there
//! is nothing of what an applier did (`strategy`, `actuation`, `reconcile`), which only the applier knows.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_object::json::Value as JsonValue;
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};
use taffrail_status::Status;

use super::resource_group::{GROUP, KIND, OBSERVED_BY_AGENT, entry_key};
use super::{is_blank, short, writers};
use crate::app::{App, Resource};
use crate::identity::Delivery;
use crate::objects::{Objects, freshness_of};

/// Maximum size, in bytes, of the entries of a status: about 6,000 objects. The API server takes objects of about 1.5 MB,
/// and the list of the objects is a part of that.
const MAX_STATUS: usize = 768 * 1024;

/// Maximum number of objects that the message of a condition names.
const MAX_NAMED: usize = 20;

/// Maximum number of ResourceGroups below a subgroup that are visited for its status; one with more is Unknown.
const MAX_BELOW: usize = 1000;

/// Maximum number of objects of packages that are visited for all subgroups of one group; those beyond are Unknown.
const MAX_VISITS: usize = 20_000;

/// The fields of a status that the agent writes.
const FIELDS: [&str; 4] = ["observedGeneration", "conditions", "resourceStatuses", "subgroupStatuses"];

/// The error of a status that would be larger than the API server may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its status would be larger than {} bytes", MAX_STATUS)]
pub struct GroupStatusTooLarge;

/// The owner of the status of a ResourceGroup, by its managed fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupStatusOwner {
    /// It has no status.
    Nobody,
    /// The client that asks: it wrote all of the status.
    Own,
    /// A field manager of this name, perhaps among others.
    Other(String),
    /// There is a status, and the managed fields do not tell who wrote it.
    NotRecorded,
}

/// Returns the owner of the status of `group`, which was read whole; `own` is the field manager of the client that asks.
pub fn group_status_owner(group: &Object<'_>, own: &str) -> GroupStatusOwner {
    let managers: Vec<String> =
        writers(group, &["status"]).into_iter().map(|writer| writer.manager).collect();
    if let Some(other) = managers.iter().find(|manager| *manager != own) {
        return GroupStatusOwner::Other(short(other.clone()));
    }
    match group.section("status") {
        _ if !managers.is_empty() => GroupStatusOwner::Own,
        Some(status) if !is_blank(status) => GroupStatusOwner::NotRecorded,
        _ => GroupStatusOwner::Nobody,
    }
}

/// Returns true if a ResourceGroup has the parts of a status that the agent wrote, so that the server kept them.
pub fn has_group_status(group: &Object<'_>, written: &Value) -> bool {
    is_same(group.section("status"), written)
}

/// Returns the status to write into a ResourceGroup, as a merge patch of `status`; `None` if the group has that status, is
/// being deleted, or was not observed just now.
///
/// `app` is the row that the group declares, `cluster` its cluster, and `package` returns the row of the ResourceGroup
/// with a namespace and a name.
///
/// A change of a message alone is no reason to write: while status and reason of an object stay, its condition does.
///
/// # Errors
/// If the status would be too large.
pub fn group_status<'l>(
    group: &Object<'_>,
    app: &App,
    cluster: &dyn Objects,
    package: &dyn Fn(&str, &str) -> Option<&'l App>,
    now: Timestamp,
) -> Result<Option<Value>, GroupStatusTooLarge> {
    let is_deleted = !group.text(&["metadata", "deletionTimestamp"]).is_empty();
    if is_deleted || !app.home_freshness.is_live() || !cluster.freshness().is_live() {
        return Ok(None);
    }
    let judged = app.resources.iter().map(|resource| (ObjectKey::as_ref(&resource.key), resource)).collect();
    let judge = Judge {
        judged,
        cluster,
        package,
        before: Before::of(group),
        now,
        namespace: group.namespace().into_owned(),
        visits: Cell::new(0),
    };
    let mut room = MAX_STATUS;
    let (resources, summary) = judge.resources(group, &mut room)?;
    let subgroups = judge.subgroups(group, &mut room)?;
    let mut status = json!({
        "observedGeneration": group.at(&["metadata", "generation"]).and_then(JsonValue::as_i64).unwrap_or_default(),
        "conditions": [
            // That controller, too, is done as soon as it has looked: the statuses below say what is in progress.
            judge.condition("Reconciling", "False", FINISHED, "finish reconciling".to_owned()),
            summary.stalled(&judge),
        ],
    });
    let before = group.section("status");
    for (field, list) in [("resourceStatuses", resources), ("subgroupStatuses", subgroups)] {
        // A field that the installed version of the kind may not have is not touched without need.
        if !list.is_empty() || before.and_then(|before| before.get(field)).is_some() {
            status[field] = if list.is_empty() { Value::Null } else { list.into() };
        }
    }
    Ok((!is_same(before, &status)).then_some(status))
}

/// The reason of conditions that report nothing bad.
const FINISHED: &str = "FinishReconciling";

/// Returns true if `before` has the same values as `after` in the fields that the agent writes.
fn is_same(before: Option<JsonValue<'_>>, after: &Value) -> bool {
    FIELDS.iter().all(|field| {
        let before = before.and_then(|before| before.get(field)).filter(|before| !is_blank(*before));
        let after = after.get(*field).filter(|after| !after.is_null());
        match (before, after) {
            (Some(before), Some(after)) => before.to_tree().is_ok_and(|before| before == *after),
            (None, None) => true,
            _ => false,
        }
    })
}

/// The conditions that a ResourceGroup has.
struct Before<'a> {
    group: &'a Object<'a>,
    /// The entry of each object that has conditions.
    entries: HashMap<ObjectKey, JsonValue<'a>>,
}

impl<'a> Before<'a> {
    fn of(group: &'a Object<'_>) -> Before<'a> {
        let entries = group.at(&["status", "resourceStatuses"]).and_then(JsonValue::items);
        let entries = entries.into_iter().flatten().filter(|entry| entry.get("conditions").is_some());
        Before { group, entries: entries.map(|entry| (entry_key(entry), entry)).collect() }
    }

    /// Returns the condition of the entry of an object with this status and reason, as it is.
    fn of_object(&self, key: &ObjectKey, status: &str, reason: &str) -> Option<Value> {
        let mut conditions = self.entries.get(key)?.get("conditions")?.items()?;
        let is_same = |it: &JsonValue<'_>| says(*it, "type", STALLED) && says(*it, "reason", reason);
        conditions.find(|it| is_same(it) && says(*it, "status", status))?.to_tree().ok()
    }
}

const STALLED: &str = "Stalled";

fn says(value: JsonValue<'_>, field: &str, text: &str) -> bool {
    value.get(field).is_some_and(|value| value.is_str(text))
}

/// Finds the status of each object of one ResourceGroup.
struct Judge<'j, 'l> {
    judged: HashMap<ObjectKeyRef<'j>, &'j Resource>,
    cluster: &'j dyn Objects,
    package: &'j dyn Fn(&str, &str) -> Option<&'l App>,
    before: Before<'j>,
    now: Timestamp,
    /// The namespace of the group.
    namespace: String,
    /// The number of objects of packages that were looked at for the subgroups.
    visits: Cell<usize>,
}

/// The objects that decide the condition `Stalled`, as the messages name them.
#[derive(Default)]
struct Summary {
    failed: Named,
    unknown: Named,
}

/// The first [`MAX_NAMED`] of some objects, and their number.
#[derive(Default)]
struct Named {
    first: Vec<String>,
    number: usize,
}

impl Named {
    fn add(&mut self, key: &ObjectKey) {
        self.number += 1;
        if self.number <= MAX_NAMED {
            let ObjectKey { group, kind, namespace, name } = key;
            self.first.push(short(format!("{group}/{kind}/{namespace}/{name}")));
        }
    }

    /// Returns the list that follows `start` in a message.
    fn after(&self, start: &str) -> String {
        let more = match self.number.saturating_sub(self.first.len()) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        format!("{start}{}{more}", self.first.join(", "))
    }
}

impl Summary {
    fn stalled(&self, judge: &Judge<'_, '_>) -> Value {
        if self.failed.number > 0 {
            let message = self.failed.after("The following components failed:");
            return judge.condition(STALLED, "True", "ComponentFailed", message);
        }
        if self.unknown.number > 0 {
            let message = self.unknown.after("The status of the following components is not known:");
            return judge.condition(STALLED, "Unknown", "ComponentUnknown", message);
        }
        judge.condition(STALLED, "False", FINISHED, "finish reconciling".to_owned())
    }
}

/// Subtracts the size of an entry from `room`.
fn take_room(room: &mut usize, entry: &Value) -> Result<(), GroupStatusTooLarge> {
    *room = room.checked_sub(entry.to_string().len() + 1).ok_or(GroupStatusTooLarge)?;
    Ok(())
}

impl<'l> Judge<'_, 'l> {
    /// Returns the entries of the listed objects, each once, in the order of the group, and their summary.
    fn resources(
        &self,
        group: &Object<'_>,
        room: &mut usize,
    ) -> Result<(Vec<Value>, Summary), GroupStatusTooLarge> {
        let listed = group.at(&["spec", "resources"]).and_then(JsonValue::items).into_iter().flatten();
        let (mut seen, mut entries, mut summary) = (HashSet::new(), Vec::new(), Summary::default());
        for key in listed.map(entry_key) {
            if seen.contains(&key) {
                continue;
            }
            let (status, resource) = self.status(&key);
            let ObjectKey { group, kind, namespace, name } = &key;
            let mut entry = json!({
                "group": group, "kind": kind, "namespace": namespace, "name": name, "status": status.as_str(),
            });
            match status {
                Status::Failed => {
                    summary.failed.add(&key);
                    if let Some(resource) = resource {
                        entry["conditions"] = json!([self.failure(&key, resource)]);
                    }
                }
                Status::Unknown => summary.unknown.add(&key),
                _ => {}
            }
            take_room(room, &entry)?;
            entries.push(entry);
            seen.insert(key);
        }
        Ok((entries, summary))
    }

    /// Returns the entries of the subgroups, each once.
    fn subgroups(&self, group: &Object<'_>, room: &mut usize) -> Result<Vec<Value>, GroupStatusTooLarge> {
        let listed = group.at(&["spec", "subgroups"]).and_then(JsonValue::items).into_iter().flatten();
        let (mut seen, mut entries) = (HashSet::new(), Vec::new());
        for entry in listed {
            let ObjectKey { namespace, name, .. } = entry_key(entry);
            let key = ObjectKey::new(GROUP, KIND, namespace, name);
            if seen.contains(&key) {
                continue;
            }
            let (status, _) = self.status(&key);
            let entry = json!({"namespace": key.namespace, "name": key.name, "status": status.as_str()});
            take_room(room, &entry)?;
            entries.push(entry);
            seen.insert(key);
        }
        Ok(entries)
    }

    /// Returns the status of a listed object, Unknown unless it was observed just now, and its entry in the row.
    fn status(&self, key: &ObjectKey) -> (Status, Option<&Resource>) {
        let Some(resource) = self.judged.get(&key.as_ref()).copied() else { return (Status::Unknown, None) };
        if !freshness_of(self.cluster, resource.grounds()).is_live() {
            return (Status::Unknown, None);
        }
        // The author of a group may name objects that nobody lets them read: of those that do not name the group, and of
        // those elsewhere that do not exist, nothing is told.
        let is_elsewhere = key.namespace != self.namespace;
        if resource.unconfirmed || is_elsewhere && resource.status == Status::NotFound {
            return (Status::Unknown, None);
        }
        match self.package_of(key) {
            Some(package) => (self.of_package(package), None),
            None => (resource.status, Some(resource)),
        }
    }

    fn package_of(&self, key: &ObjectKey) -> Option<&'l App> {
        let is_group = key.group == GROUP && key.kind == KIND;
        let package = is_group.then(|| (self.package)(&key.namespace, &key.name)).flatten();
        package.filter(|app| app.app.delivery == Delivery::Kpt)
    }

    /// Returns the worst status of the objects of a package and of all packages below it. Its ResourceGroup tells nothing,
    /// for its status may be one that the agent wrote.
    fn of_package(&self, package: &'l App) -> Status {
        let (mut worst, mut below, mut seen) = (Status::Current, vec![package], HashSet::new());
        while let Some(package) = below.pop() {
            if !seen.insert(&package.app) {
                continue;
            }
            if seen.len() > MAX_BELOW {
                return worst.min(Status::Unknown);
            }
            worst = worst.min(package.effective());
            self.visits.set(self.visits.get() + package.resources.len() + 1);
            if self.visits.get() > MAX_VISITS {
                return worst.min(Status::Unknown);
            }
            below.extend(package.resources.iter().filter_map(|resource| self.package_of(&resource.key)));
        }
        worst
    }

    /// Returns the condition of a failed object, with the time at which the object was first seen to fail so.
    fn failure(&self, key: &ObjectKey, resource: &Resource) -> Value {
        let reason =
            resource.chain.first().map(|step| step.reason.as_str()).filter(|reason| !reason.is_empty());
        let reason = short(reason.unwrap_or(Status::Failed.as_str()).to_owned());
        self.before.of_object(key, "True", &reason).unwrap_or_else(|| {
            let message = short(resource.message.to_string());
            self.new_condition(STALLED, "True", &reason, &message)
        })
    }

    /// Returns a condition of the group: the one that it has if that is equal, else a new one.
    fn condition(&self, name: &str, status: &str, reason: &str, mut message: String) -> Value {
        message.push_str(OBSERVED_BY_AGENT);
        let before = self.before.group.condition(name).filter(|before| {
            says(*before, "status", status)
                && says(*before, "reason", reason)
                && says(*before, "message", &message)
        });
        let kept = before.and_then(|before| before.to_tree().ok());
        kept.unwrap_or_else(|| self.new_condition(name, status, reason, &message))
    }

    fn new_condition(&self, name: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({
            "type": name, "status": status, "reason": reason, "message": message,
            // Kubernetes writes times in seconds.
            "lastTransitionTime": self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        })
    }
}
