//! The repository from which the simulated delivery tools apply objects to a cluster: declared objects, which commits
//! change.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_object::json::Parser;
use taffrail_object::{Object, ObjectKey};
use taffrail_sim::{Cluster, SimError, Timeline};
use taffrail_status::{Kstatus, ObjectContext, Rules, Status};

use super::managers::status_manager;

/// The Git repository of one simulated cluster: the objects that its delivery tools apply, with future commits.
#[derive(Debug, Default)]
pub(super) struct Repository(Mutex<Contents>);

/// The declared objects by key, and their later versions.
#[derive(Debug, Default)]
struct Contents {
    objects: HashMap<ObjectKey, Declared>,
    /// The commits that do not apply yet, earliest first.
    commits: VecDeque<Commit>,
}

impl Contents {
    /// Replaces the declared objects by their versions in the commits up to `now`.
    fn settle(&mut self, now: Timestamp) {
        while let Some(commit) = self.commits.pop_front_if(|commit| commit.at <= now) {
            if let Some(declared) = self.objects.get_mut(&commit.key) {
                declared.object = commit.object;
            }
        }
    }
}

/// An object as the repository declares it.
#[derive(Debug, Clone)]
struct Declared {
    object: Value,
    /// The field manager that applies the object.
    manager: &'static str,
}

/// A new version of a declared object, which is valid from `at` on.
#[derive(Debug)]
struct Commit {
    at: Timestamp,
    key: ObjectKey,
    object: Value,
}

/// The difference between a live object and the declared one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drift {
    None,
    Missing,
    Changed,
}

impl Repository {
    /// Adds an object, which `manager` applies, to the declared ones. Does nothing if it is declared already, since it
    /// belongs to the first app that declares it.
    pub(super) fn declare(&self, object: Value, manager: &'static str) {
        let declared = Declared { object, manager };
        self.contents().objects.entry(key_of(&declared.object)).or_insert(declared);
    }

    /// Adds a commit for each write in `timeline`, which starts at `begin`, that the object's own delivery tool makes.
    /// Ignores writes of others, which are drift, and writes of status and deletions.
    pub(super) fn commit(&self, timeline: &Timeline, begin: Timestamp) {
        let mut contents = self.contents();
        contents.settle(begin);
        let mut changed: HashMap<ObjectKey, Value> = HashMap::new();
        for write in timeline.writes() {
            let key = key_of(write.object);
            let Some(declared) = contents.objects.get(&key).filter(|declared| declared.manager == write.by)
            else {
                continue;
            };
            let is_declared = |with: &Value| {
                with.get("status").is_none() && with["metadata"].get("deletionTimestamp").is_none()
            };
            if !write.patch.is_none_or(is_declared) {
                continue;
            }
            let object = changed.entry(key.clone()).or_insert_with(|| declared.object.clone());
            write.write_into(object);
            let at = begin.checked_add(write.at).unwrap_or(Timestamp::MAX);
            let object = object.clone();
            contents.commits.push_back(Commit { at, key, object });
        }
    }

    /// Compares a declared object with the live one. Returns [`Drift::None`] also for an object that is not declared,
    /// or that is being deleted.
    pub(super) fn drift(&self, cluster: &Cluster, key: &ObjectKey, now: Timestamp) -> Drift {
        let Some(declared) = self.declared(key, now) else { return Drift::None };
        match live(cluster, &declared.object) {
            None => Drift::Missing,
            Some(live) if is_ending(&live) || covers(&live, &declared.object) => Drift::None,
            Some(_) => Drift::Changed,
        }
    }

    /// Applies a declared object to the cluster if it is missing or was changed there, and returns true; returns false
    /// if there is nothing to do, or while the object is being deleted.
    pub(super) fn apply(&self, cluster: &Cluster, key: &ObjectKey, now: Timestamp) -> Result<bool, SimError> {
        let Some(Declared { object, manager }) = self.declared(key, now) else { return Ok(false) };
        match self.drift(cluster, key, now) {
            Drift::None => return Ok(false),
            Drift::Missing => cluster.apply_by(object, manager, status_manager(&key.group, &key.kind))?,
            Drift::Changed => cluster.change_by(&object, manager, "", |live| overlay(live, &object)),
        }
        Ok(true)
    }

    /// Returns the status of the live object by the rules of kstatus, as Flux' health checks use them: `NotFound` if it
    /// is missing, `Current` if it is not declared.
    pub(super) fn health(&self, cluster: &Cluster, key: &ObjectKey, now: Timestamp) -> Status {
        let Some(declared) = self.declared(key, now) else { return Status::Current };
        let Some(live) = live(cluster, &declared.object) else { return Status::NotFound };
        let mut parser = Parser::new();
        let text = live.to_string();
        let Ok(document) = parser.parse(text.as_bytes()) else { return Status::Unknown };
        let verdict = Object::new(document.root())
            .map(|object| Kstatus::default().judge(&object, &ObjectContext::default(), now));
        verdict.ok().and_then(Result::ok).map_or(Status::Unknown, |verdict| verdict.status)
    }

    /// Returns an object as the repository declares it at `now`; `None` if it does not.
    fn declared(&self, key: &ObjectKey, now: Timestamp) -> Option<Declared> {
        let mut contents = self.contents();
        contents.settle(now);
        contents.objects.get(key).cloned()
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key of an object from its fields `apiVersion`, `kind` and `metadata`.
pub(super) fn key_of(object: &Value) -> ObjectKey {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let metadata = &object["metadata"];
    ObjectKey::new(group, text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

/// Returns the live object with the key of `declared`; `None` if the cluster does not have it.
fn live(cluster: &Cluster, declared: &Value) -> Option<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &declared["metadata"];
    let (version, kind) = (text(&declared["apiVersion"]), text(&declared["kind"]));
    cluster.get(&version, &kind, &text(&metadata["namespace"]), &text(&metadata["name"]))
}

/// Returns true if an object has a deletion timestamp.
pub(super) fn is_ending(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

/// Returns the fields of a declared object that its tool applies: all except the status, and of the metadata only
/// labels and annotations.
fn fields(declared: &Value) -> Value {
    let mut fields = declared.clone();
    if let Some(members) = fields.as_object_mut() {
        members.remove("status");
        let metadata = json!({
            "labels": declared["metadata"]["labels"], "annotations": declared["metadata"]["annotations"],
        });
        members.insert("metadata".to_owned(), metadata);
    }
    fields
}

/// Returns true if a live object has all fields that its tool applies, with the declared values.
fn covers(live: &Value, declared: &Value) -> bool {
    has(live, &fields(declared))
}

/// Sets in a live object the fields that its tool applies to the declared values; other fields stay, but not further
/// items of lists.
fn overlay(live: &mut Value, declared: &Value) {
    put(live, &fields(declared));
}

/// Returns true if `live` has all members of `declared`, with equal values; it may have more members, such as defaults.
/// Lists must be equally long; an empty one also matches what is not a list. Null and an empty object match every
/// value.
fn has(live: &Value, declared: &Value) -> bool {
    match declared {
        Value::Null => true,
        Value::Object(members) if members.is_empty() => true,
        Value::Array(items) if items.is_empty() => live.as_array().is_none_or(Vec::is_empty),
        Value::Object(members) => members.iter().all(|(key, value)| has(&live[key], value)),
        Value::Array(items) => live.as_array().is_some_and(|all| {
            all.len() == items.len() && all.iter().zip(items).all(|(live, declared)| has(live, declared))
        }),
        plain => live == plain,
    }
}

fn put(live: &mut Value, declared: &Value) {
    match declared {
        Value::Null => {}
        Value::Object(members) => {
            if !live.is_object() && !members.is_empty() {
                *live = json!({});
            }
            members.iter().filter(|(_, value)| !value.is_null()).for_each(|(key, value)| {
                if !has(&live[key], value) {
                    put(&mut live[key], value);
                }
            });
        }
        Value::Array(items) => {
            let before = live.as_array().cloned().unwrap_or_default();
            let same = |item: &Value| {
                before.iter().find(|live| item["name"].is_string() && live["name"] == item["name"])
            };
            let after = items.iter().map(|item| {
                let mut after = same(item).cloned().unwrap_or_else(|| item.clone());
                put(&mut after, item);
                after
            });
            *live = after.collect();
        }
        plain => *live = plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_not_drift_and_changes_are_taken_back() {
        let declared = json!({
            "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {}},
            "spec": {"replicas": 3, "volumes": [], "containers": [{"name": "web", "image": "web:1", "ports": [{"port": 80}]}]},
            "status": {"phase": "Bound"},
        });
        let live = json!({
            "metadata": {"name": "web", "uid": "1", "labels": {"app": "web", "team": "a"}},
            "spec": {
                "replicas": 3, "strategy": "Recreate",
                "containers": [{"name": "web", "image": "web:1", "pull": "Always", "ports": [{"port": 80, "protocol": "TCP"}]}],
            },
            "status": {"phase": "Lost"},
        });
        assert!(covers(&live, &declared));
        let mut changed = live.clone();
        changed["spec"]["replicas"] = json!(5);
        changed["spec"]["containers"][0]["image"] = json!("web:2");
        changed["spec"]["containers"].as_array_mut().unwrap().insert(0, json!({"name": "added"}));
        changed["metadata"]["labels"]["app"] = json!("other");
        assert!(!covers(&changed, &declared));
        overlay(&mut changed, &declared);
        assert_eq!(changed, live, "what is not declared stays");
    }

    #[test]
    fn tool_writes_are_commits_and_other_writes_are_drift() {
        let repository = Repository::default();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "web"}, "data": {"level": "1"},
        });
        repository.declare(map.clone(), "kustomize-controller");
        let step = |at: &str, by: &str, with: Value| json!({"at": at, "by": by, "patch": map, "with": with});
        let timeline = json!([
            step("1s", "kubectl", json!({"data": {"level": "drift"}})),
            step("2s", "kustomize-controller", json!({"data": {"level": "2"}})),
            step("3s", "kustomize-controller", json!({"metadata": {"deletionTimestamp": "${NOW}"}})),
            step("4s", "kustomize-controller", json!({"data": {"more": "3"}})),
        ]);
        let begin: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        repository.commit(&Timeline::read(&timeline.to_string()).unwrap(), begin);
        let data = |second: i64| {
            let now = begin + jiff::SignedDuration::from_secs(second);
            repository.declared(&key_of(&map), now).unwrap().object["data"].clone()
        };
        assert_eq!(data(1), json!({"level": "1"}));
        assert_eq!(data(3), json!({"level": "2"}));
        assert_eq!(data(4), json!({"level": "2", "more": "3"}));
    }
}
