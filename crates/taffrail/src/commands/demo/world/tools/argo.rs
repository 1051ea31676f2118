//! Argo CD's application controller: compares declared with live objects, writes the result, and heals drift where the
//! Application enables it.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_object::ObjectKey;

use super::{ControlledCluster, ToolObject, after, apply, has_finalizer, is_ending, stamp, text};
use crate::commands::demo::world::repository::Drift;

const REFRESH: &str = "argocd.argoproj.io/refresh";
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
/// The destination server of an Application that delivers to the cluster in which Argo CD itself runs.
const IN_CLUSTER: &str = "https://kubernetes.default.svc";
/// Time that Argo CD waits before it heals drift (`--self-heal-timeout-seconds`).
const SELF_HEAL: SignedDuration = SignedDuration::from_secs(5);

/// An Application, and what the simulated controller remembers about it.
pub(super) struct Application {
    told: ToolObject,
    /// The time at which drift is healed if it still exists then; `None` if there is none, or the Application has no
    /// self-heal.
    heals_at: Option<Timestamp>,
}

impl Application {
    pub(super) fn new(told: ToolObject) -> Application {
        Application { told, heals_at: None }
    }

    /// Returns true if the destination server of the Application, which is in `home`, is the URL of `place`; always
    /// false for the in-cluster address.
    pub(super) fn delivers_to(&self, home: &ControlledCluster, place: &ControlledCluster) -> bool {
        let object = self.told.get(&home.cluster);
        object.is_some_and(|object| text(&object["spec"]["destination"]["server"]) == place.cluster.url())
    }

    /// Compares, syncs or heals the Application if that is due; finishes its deletion if it is being deleted. Returns
    /// the time at which drift is due to be healed; `None` if there is none that Argo CD heals.
    pub(super) fn look(
        &mut self,
        home: &ControlledCluster,
        places: &[ControlledCluster],
        now: Timestamp,
    ) -> Option<Timestamp> {
        let object = self.told.get(&home.cluster)?;
        let target = match text(&object["spec"]["destination"]["server"]) {
            IN_CLUSTER => home,
            server => places.iter().find(|place| place.cluster.url() == server)?,
        };
        // An unreachable cluster keeps its objects, and their known state is old.
        let is_reachable = target.cluster.is_reachable();
        if is_ending(&object) {
            if is_reachable && has_finalizer(&object, FINALIZER) {
                for (version, key) in resources(&object).filter_map(identity) {
                    target.cluster.delete(&version, &key.kind, &key.namespace, &key.name);
                }
                self.told.release(&home.cluster, FINALIZER);
            }
            return None;
        }
        let operation = object.get("operation").cloned();
        if let Some(operation) = operation {
            let done = if is_reachable {
                let keys = selected(&object, &operation);
                deliver(&object, target, keys, now).map_err(|error| ("Failed", error.to_string()))
            } else {
                let server = target.cluster.url();
                Err(("Error", format!("error synchronizing cache state : failed to sync cluster {server}")))
            };
            self.finish(home, &operation, &done, now);
            self.compare(home, target, now);
            return None;
        }
        if object["metadata"]["annotations"].get(REFRESH).is_some() {
            self.told.change(&home.cluster, |object| {
                if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                    annotations.remove(REFRESH);
                }
                object["status"]["reconciledAt"] = stamp(now);
            });
        }
        // Failed comparisons and running syncs are part of the story, which ends them.
        let is_known = text(&object["status"]["sync"]["status"]) != "Unknown";
        let is_running = object["status"]["operationState"]["phase"] == "Running";
        if !is_reachable || !is_known || is_running || self.compare(home, target, now) {
            self.heals_at = None;
            return None;
        }
        let automated = &object["spec"]["syncPolicy"]["automated"];
        if automated["selfHeal"] != true || automated["enabled"] == false {
            self.heals_at = None;
            return None;
        }
        let due = *self.heals_at.get_or_insert(after(now, SELF_HEAL));
        if due > now {
            return Some(due);
        }
        let keys = resources(&object).filter_map(identity).map(|(_, key)| key).collect();
        let done = deliver(&object, target, keys, now).map_err(|error| ("Failed", error.to_string()));
        let revision = &object["status"]["sync"]["revision"];
        let operation =
            json!({"initiatedBy": {"automated": true}, "sync": {"prune": true, "revision": revision}});
        self.finish(home, &operation, &done, now);
        self.heals_at = None;
        // A failed heal is tried again later.
        if !self.compare(home, target, now) {
            self.heals_at = Some(after(now, SELF_HEAL));
        }
        self.heals_at
    }

    /// Writes the result of a sync operation, whose failure has a phase and a message, into the Application's status,
    /// and removes the operation and a requested refresh. The number of applied objects is not written.
    fn finish(
        &self,
        home: &ControlledCluster,
        operation: &Value,
        done: &Result<usize, (&'static str, String)>,
        now: Timestamp,
    ) {
        let (phase, message) = match done {
            Ok(_) => ("Succeeded", "successfully synced (all tasks run)"),
            Err((phase, message)) => (*phase, message.as_str()),
        };
        self.told.change(&home.cluster, |object| {
            if let Some(members) = object.as_object_mut() {
                members.remove("operation");
            }
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.remove(REFRESH);
            }
            object["status"]["reconciledAt"] = stamp(now);
            let state = &mut object["status"]["operationState"];
            state["operation"] = operation.clone();
            state["phase"] = json!(phase);
            state["message"] = json!(message);
            state["startedAt"] = stamp(now);
            state["finishedAt"] = stamp(now);
        });
    }

    /// Compares declared with live objects and writes what has changed. Returns true if they are equal, apart from
    /// changed objects of Argo CD's own kinds; also, without comparing, if the cluster is unreachable, the sync state
    /// is Unknown or the Application is gone.
    fn compare(&self, home: &ControlledCluster, target: &ControlledCluster, now: Timestamp) -> bool {
        let Some(object) = self.told.get(&home.cluster) else { return true };
        let is_known = text(&object["status"]["sync"]["status"]) != "Unknown";
        if !target.cluster.is_reachable() || !is_known {
            return true;
        }
        let mut compared: Vec<Value> = resources(&object).cloned().collect();
        let mut is_missing = false;
        for resource in &mut compared {
            let Some((_, key)) = identity(resource) else { continue };
            let drift = match (target.repository.drift(&target.cluster, &key, now), &*key.group) {
                // The spec of a child app is left alone, so that it can be suspended.
                (Drift::Changed, "argoproj.io") => Drift::None,
                (drift, _) => drift,
            };
            is_missing |= drift == Drift::Missing;
            resource["status"] = json!(if drift == Drift::None { "Synced" } else { "OutOfSync" });
            match (drift, &*key.kind) {
                (Drift::Missing, _) => resource["health"] = json!({"status": "Missing"}),
                (_, "Deployment" | "Service") => resource["health"] = json!({"status": "Healthy"}),
                _ => drop(resource.as_object_mut().and_then(|members| members.remove("health"))),
            }
        }
        let is_synced = compared.iter().all(|resource| resource["status"] == "Synced");
        let sync = json!(if is_synced { "Synced" } else { "OutOfSync" });
        let health = json!(if is_missing { "Missing" } else { "Healthy" });
        let status = &object["status"];
        let is_same = resources(&object).eq(compared.iter())
            && status["sync"]["status"] == sync
            && status["health"]["status"] == health;
        if !is_same {
            self.told.change(&home.cluster, |object| {
                let status = &mut object["status"];
                if status["health"]["status"] != health {
                    status["health"] = json!({"status": health, "lastTransitionTime": stamp(now)});
                }
                status["resources"] = json!(compared);
                status["sync"]["status"] = sync;
                status["reconciledAt"] = stamp(now);
            });
        }
        is_synced
    }
}

/// Applies objects of an Application, after its namespace if that is missing. Leaves changed objects of Argo CD's own
/// kinds as they are.
fn deliver(
    object: &Value,
    target: &ControlledCluster,
    keys: Vec<ObjectKey>,
    now: Timestamp,
) -> Result<usize, taffrail_sim::SimError> {
    let namespace = text(&object["spec"]["destination"]["namespace"]);
    let namespace = ObjectKey::new("", "Namespace", "", namespace);
    if target.repository.drift(&target.cluster, &namespace, now) == Drift::Missing {
        apply(target, [namespace], now)?;
    }
    let is_left = |key: &ObjectKey| {
        key.group == "argoproj.io" && target.repository.drift(&target.cluster, key, now) == Drift::Changed
    };
    apply(target, keys.into_iter().filter(|key| !is_left(key)), now)
}

/// Returns the entries of `status.resources` of an Application; none if it has no such list.
fn resources(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["resources"].as_array().into_iter().flatten()
}

/// Returns the API version and the object key of an entry of `status.resources`; `None` if it has no name.
fn identity(entry: &Value) -> Option<(String, ObjectKey)> {
    let (group, version) = (text(&entry["group"]), text(&entry["version"]));
    let version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let name = entry["name"].as_str()?;
    Some((version, ObjectKey::new(group, text(&entry["kind"]), text(&entry["namespace"]), name)))
}

/// Returns the keys of the objects of an Application to sync: those that the operation lists, or all if it has no
/// list.
fn selected(object: &Value, operation: &Value) -> Vec<ObjectKey> {
    let named = operation["sync"]["resources"].as_array();
    let is_named = |key: &ObjectKey| {
        named.is_none_or(|named| {
            named.iter().any(|one| {
                let namespace = one["namespace"].as_str();
                text(&one["group"]) == key.group
                    && text(&one["kind"]) == key.kind
                    && text(&one["name"]) == key.name
                    && namespace.is_none_or(|namespace| namespace == key.namespace)
            })
        })
    };
    resources(object).filter_map(identity).map(|(_, key)| key).filter(is_named).collect()
}
