//! The simulated controllers of Flux: kustomize-controller applies missing or changed objects, at each interval and on
//! request; helm-controller applies a chart when that is forced; source-controller only records requests as handled.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_apps::inventory_id;
use taffrail_object::{ObjectKey, duration};
use taffrail_sim::Cluster;
use taffrail_status::Status;

use super::{ControlledCluster, ToolObject, after, apply, has_finalizer, is_ending, stamp, text};
use crate::commands::demo::world::template::hash;

const FINALIZER: &str = "finalizers.fluxcd.io";
const REQUESTED: &str = "reconcile.fluxcd.io/requestedAt";
const FORCED: &str = "reconcile.fluxcd.io/forceAt";
/// Time that kustomize-controller waits before it applies a new revision; the script (`faults/`) normally applies it
/// one second after its commit.
const STORY: SignedDuration = SignedDuration::from_secs(3);

/// A Kustomization, HelmRelease or source, and what the simulated controller remembers about it.
pub(super) struct FluxObject {
    told: ToolObject,
    /// The time of the next reconciliation by the object's interval; `None` before the first evaluation.
    next: Option<Timestamp>,
    /// The revision of the source if it was not attempted yet, and the time at which the controller first saw it; else
    /// `None`.
    fresh: Option<(String, Timestamp)>,
    /// The deadline of the running health checks; `None` if none run.
    checks_until: Option<Timestamp>,
}

/// The next apply of a Kustomization.
struct Attempt<'k> {
    object: &'k Value,
    revision: String,
    keys: Vec<ObjectKey>,
    now: Timestamp,
}

impl FluxObject {
    pub(super) fn new(told: ToolObject) -> FluxObject {
        FluxObject { told, next: None, fresh: None, checks_until: None }
    }

    /// If the object's controller runs, finishes its deletion if it is being deleted, else reconciles it if it has a
    /// status, is not suspended, and that is due. Returns the time at which it must be looked at again without a change
    /// if it is a Kustomization that may be reconciled, else `None`.
    pub(super) fn look(&mut self, home: &ControlledCluster, now: Timestamp) -> Option<Timestamp> {
        let object = self.told.get(&home.cluster)?;
        let controller = match self.told.kind.as_str() {
            "Kustomization" => "kustomize-controller",
            "HelmRelease" => "helm-controller",
            _ => "source-controller",
        };
        if !runs(&home.cluster, controller) {
            self.checks_until = None;
            // A controller that starts reconciles every object.
            self.next = self.next.map(|_| now);
            return None;
        }
        if is_ending(&object) {
            self.finalize(home, &object);
            return None;
        }
        if object["spec"]["suspend"] == true || !object["status"].is_object() {
            self.checks_until = None;
            return None;
        }
        match self.told.kind.as_str() {
            "Kustomization" => self.kustomization(home, &object, now),
            "HelmRelease" => {
                self.helm_release(home, &object, now);
                None
            }
            _ => {
                self.note(home, &object);
                None
            }
        }
    }

    /// Writes to the object that its reconciliation request was handled and its generation observed, unless both
    /// are already recorded.
    fn note(&self, home: &ControlledCluster, object: &Value) {
        let mut noted = object.clone();
        if note(&mut noted) {
            self.told.change(&home.cluster, |object| {
                note(object);
            });
        }
    }

    /// Handles a requested reconciliation of a HelmRelease: if it is forced, applies the objects of its inventory that
    /// are missing or changed. The drift detection of helm-controller is not simulated.
    fn helm_release(&self, home: &ControlledCluster, object: &Value, now: Timestamp) {
        let forced = &object["metadata"]["annotations"][FORCED];
        let is_forced = forced.is_string()
            && *forced == object["metadata"]["annotations"][REQUESTED]
            && *forced != object["status"]["lastHandledForceAt"];
        // A failed apply is retried with the next change of the cluster.
        if is_forced && apply(home, keys(object), now).is_ok() {
            self.told.change(&home.cluster, |object| object["status"]["lastHandledForceAt"] = forced.clone());
        }
        self.note(home, object);
    }

    fn kustomization(
        &mut self,
        home: &ControlledCluster,
        object: &Value,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let interval = interval(&object["spec"]["interval"]).unwrap_or(SignedDuration::from_mins(10));
        // Each object has its own offset within the interval.
        let turn = || {
            let digits = hash(0, &[home.cluster.name(), &self.told.namespace, &self.told.name], 2);
            let part = i32::from_str_radix(&digits, 16).unwrap_or_default();
            after(now, interval * (part + 1) / 256)
        };
        let next = *self.next.get_or_insert_with(turn);
        let attempted = text(&object["status"]["lastAttemptedRevision"]);
        let revision = source_revision(home, object).unwrap_or_else(|| attempted.to_owned());
        if revision == attempted {
            self.fresh = None;
        } else if self.fresh.as_ref().is_none_or(|(fresh, _)| *fresh != revision) {
            self.fresh = Some((revision.clone(), now));
        }
        let fresh = self.fresh.as_ref().map(|(_, since)| after(*since, STORY));
        let requested = &object["metadata"]["annotations"][REQUESTED];
        let is_requested = requested.is_string() && *requested != object["status"]["lastHandledReconcileAt"];
        let generation = &object["metadata"]["generation"];
        let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let is_edited = conditions.any(|condition| condition["observedGeneration"] != *generation);
        let is_asked = is_requested || is_edited || fresh.is_some_and(|due| due <= now);
        let attempt = Attempt { object, revision, keys: keys(object), now };
        if is_asked || next <= now {
            self.next = Some(after(now, interval));
            self.reconcile(home, &attempt, is_asked);
        } else if self.checks_until.is_some() {
            self.check(home, &attempt);
        }
        let retried = self.next.into_iter().chain(fresh.filter(|due| *due > now));
        // Health is checked when the cluster changes; the deadline needs a timer.
        retried.chain(self.checks_until).min()
    }

    /// Applies missing or changed objects of a Kustomization, starts or ends its health checks, and writes its status
    /// if that changes. `is_asked` is true for a request, a changed spec or a new revision, false if only the interval
    /// has passed.
    fn reconcile(&mut self, home: &ControlledCluster, attempt: &Attempt<'_>, is_asked: bool) {
        let Attempt { object, revision, keys, now } = attempt;
        let applied = apply(home, keys.clone(), *now);
        let retry = interval(&object["spec"]["retryInterval"]);
        match applied {
            Err(error) => {
                self.checks_until = None;
                self.next = retry.map(|retry| after(*now, retry)).or(self.next);
                self.write_conditions(home, attempt, "False", "ReconciliationFailed", &error.to_string());
            }
            Ok(changed) => {
                let is_new = object["status"]["lastAttemptedRevision"] != **revision;
                let was_ready = ready(object) == "True";
                if unhealthy(home, keys, *now).is_empty() {
                    self.checks_until = None;
                    if !was_ready || is_new {
                        self.say_applied(home, attempt);
                    }
                } else if is_new || was_ready && (changed > 0 || is_asked) {
                    let timeout =
                        interval(&object["spec"]["timeout"]).unwrap_or(SignedDuration::from_mins(1));
                    self.checks_until = Some(after(*now, timeout));
                    let message = format!(
                        "Running health checks for revision {revision} with a timeout of {}",
                        text(&object["spec"]["timeout"])
                    );
                    self.write_conditions(home, attempt, "Unknown", "Progressing", &message);
                } else if let (false, Some(retry)) = (was_ready, retry) {
                    self.next = Some(after(*now, retry));
                }
            }
        }
        // The request counts as handled even if no status was written.
        self.note(home, object);
    }

    /// Ends the running health checks with success if all objects are healthy, or with failure if the deadline has
    /// passed; else lets them go on. Ends them without a result if `Ready` is no longer `Unknown`.
    fn check(&mut self, home: &ControlledCluster, attempt: &Attempt<'_>) {
        // If the condition has changed since, the story has taken over.
        if ready(attempt.object) != "Unknown" {
            self.checks_until = None;
            return;
        }
        let unhealthy = unhealthy(home, &attempt.keys, attempt.now);
        if unhealthy.is_empty() {
            self.checks_until = None;
            self.say_applied(home, attempt);
        } else if self.checks_until.is_some_and(|end| end <= attempt.now) {
            self.checks_until = None;
            let retry = interval(&attempt.object["spec"]["retryInterval"]);
            self.next = retry.map(|retry| after(attempt.now, retry)).or(self.next);
            let message = format!(
                "health check failed after {}: timeout waiting for: [{}]",
                text(&attempt.object["spec"]["timeout"]),
                unhealthy.join(", ")
            );
            self.write_conditions(home, attempt, "False", "HealthCheckFailed", &message);
        }
    }

    fn say_applied(&self, home: &ControlledCluster, attempt: &Attempt<'_>) {
        let message = format!("Applied revision: {}", attempt.revision);
        self.write_conditions(home, attempt, "True", "ReconciliationSucceeded", &message);
    }

    /// Writes into the object's status the condition `Ready` with status `value`, reason and message, `Healthy` unless
    /// the reason is `ReconciliationFailed`, `Reconciling` unless `value` is `True`, and the attempted revision; if
    /// `value` is `True` also as the applied one. Marks a requested reconciliation as handled.
    fn write_conditions(
        &self,
        home: &ControlledCluster,
        attempt: &Attempt<'_>,
        value: &str,
        reason: &str,
        message: &str,
    ) {
        let time = stamp(attempt.now);
        self.told.change(&home.cluster, |object| {
            // One write: a handled request with the old condition would look like a success.
            note(object);
            let generation = object["metadata"]["generation"].clone();
            let condition = |kind: &str, value: &str, reason: &str, message: &str| {
                json!({
                    "type": kind, "status": value, "reason": reason, "message": message,
                    "observedGeneration": generation, "lastTransitionTime": time,
                })
            };
            let mut conditions = match value {
                "True" => Vec::new(),
                "Unknown" => vec![condition("Reconciling", "True", reason, message)],
                _ => vec![condition("Reconciling", "True", "ProgressingWithRetry", message)],
            };
            conditions.push(condition("Ready", value, reason, message));
            match reason {
                "ReconciliationFailed" => {}
                "ReconciliationSucceeded" => {
                    conditions.push(condition("Healthy", value, "Succeeded", "Health check passed"));
                }
                _ => conditions.push(condition("Healthy", value, reason, message)),
            }
            let status = &mut object["status"];
            status["conditions"] = json!(conditions);
            status["lastAttemptedRevision"] = json!(attempt.revision);
            if value == "True" {
                status["observedGeneration"] = generation;
                status["lastAppliedRevision"] = json!(attempt.revision);
            }
        });
    }

    /// Finishes the deletion of an object that has Flux's finalizer: deletes the objects in its inventory, if it is a
    /// HelmRelease or a Kustomization with `prune` and is not suspended; then removes the finalizer.
    fn finalize(&self, home: &ControlledCluster, object: &Value) {
        if !has_finalizer(object, FINALIZER) {
            return;
        }
        let prunes = match self.told.kind.as_str() {
            "Kustomization" => object["spec"]["prune"] == true,
            kind => kind == "HelmRelease",
        };
        if prunes && object["spec"]["suspend"] != true {
            let entries = object["status"]["inventory"]["entries"].as_array().into_iter().flatten();
            for entry in entries {
                let Ok(key) = inventory_id::parse(text(&entry["id"])) else { continue };
                let version = text(&entry["v"]);
                let version = if key.group.is_empty() {
                    version.to_owned()
                } else {
                    format!("{}/{version}", key.group)
                };
                home.cluster.delete(&version, &key.kind, &key.namespace, &key.name);
            }
        }
        self.told.release(&home.cluster, FINALIZER);
    }
}

/// Records in the status of a Flux object that its reconciliation request was handled and its generation observed.
/// Returns true if that changed the object.
fn note(object: &mut Value) -> bool {
    let before = object["status"].clone();
    let requested = object["metadata"]["annotations"][REQUESTED].clone();
    if requested.is_string() {
        object["status"]["lastHandledReconcileAt"] = requested;
    }
    let generation = object["metadata"]["generation"].clone();
    // Handling a request does not observe a generation whose reconciliation failed.
    if object["status"]["observedGeneration"].is_i64() {
        object["status"]["observedGeneration"] = generation.clone();
    }
    let conditions = object["status"].get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        condition["observedGeneration"] = generation.clone();
    }
    object["status"] != before
}

/// Returns the keys in the inventory of a Flux object, in the order of its entries. Skips malformed entries.
fn keys(object: &Value) -> Vec<ObjectKey> {
    let entries = object["status"]["inventory"]["entries"].as_array().into_iter().flatten();
    entries.filter_map(|entry| inventory_id::parse(text(&entry["id"])).ok()).collect()
}

/// Returns the names of those of the objects that are not healthy, in kustomize-controller's spelling.
fn unhealthy(home: &ControlledCluster, keys: &[ObjectKey], now: Timestamp) -> Vec<String> {
    let judged = keys.iter().map(|key| (key, home.repository.health(&home.cluster, key, now)));
    let unhealthy = judged.filter(|(_, health)| *health != Status::Current);
    unhealthy.map(|(key, health)| format!("{}/{} status: '{health}'", key.kind, key.path())).collect()
}

/// Returns the status of the condition `Ready`: `True`, `False`, `Unknown`, or empty without one.
fn ready(object: &Value) -> &str {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == "Ready").map_or("", |ready| text(&ready["status"]))
}

/// Returns the revision of the artifact of a Kustomization's source; `None` if there is no source or artifact.
fn source_revision(home: &ControlledCluster, object: &Value) -> Option<String> {
    let source = &object["spec"]["sourceRef"];
    let namespace = source["namespace"].as_str().unwrap_or_else(|| text(&object["metadata"]["namespace"]));
    let version = "source.toolkit.fluxcd.io/v1";
    let source = home.cluster.get(version, text(&source["kind"]), namespace, text(&source["name"]))?;
    source["status"]["artifact"]["revision"].as_str().map(str::to_owned)
}

/// Returns true if the Deployment of the Flux controller `controller` exists, is neither being deleted nor scaled to
/// zero, and has a ready Pod.
fn runs(cluster: &Cluster, controller: &str) -> bool {
    let deployment = cluster.get("apps/v1", "Deployment", "flux-system", controller);
    deployment.is_some_and(|deployment| {
        deployment["spec"]["replicas"] != 0
            && !is_ending(&deployment)
            && deployment["status"]["readyReplicas"].as_u64().unwrap_or_default() > 0
    })
}

/// Parses a positive duration in Flux's form, such as `10m0s`; `None` for any other value.
fn interval(value: &Value) -> Option<SignedDuration> {
    duration::parse(value.as_str()?).filter(SignedDuration::is_positive)
}
