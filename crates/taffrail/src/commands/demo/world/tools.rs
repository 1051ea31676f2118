//! What Flux' and Argo CD's controllers do when they are told to: they take note, so that what is written to them has an end.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_sim::Cluster;
use tokio::task::JoinSet;

use super::objects::status_manager;

/// How long a controller takes to notice.
const DELAY: Duration = Duration::from_millis(200);

/// An object that tells a controller what to do.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Told {
    /// The object as one that a controller of Flux or Argo CD listens to, if it is one.
    pub(super) fn of(object: &Value) -> Option<Told> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = text(&object["apiVersion"]);
        let kind = text(&object["kind"]);
        let is_told = api_version.contains(".toolkit.fluxcd.io/") || kind == "Application";
        let metadata = &object["metadata"];
        is_told.then(|| Told {
            api_version,
            kind,
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
        })
    }

    fn look(&self, cluster: &Cluster) {
        let Self { api_version, kind, namespace, name } = self;
        let Some(mut object) = cluster.get(api_version, kind, namespace, name) else { return };
        let is_new = match kind.as_str() {
            "Application" => handle_application(&mut object),
            _ => handle_flux(&mut object),
        };
        if is_new {
            let group = api_version.split('/').next().unwrap_or_default();
            let manager = status_manager(group, kind);
            // One that was deleted meanwhile needs nothing.
            let _ = cluster.apply_by(object, manager, manager);
        }
    }
}

/// Handles a request to an object of Flux, and observes its generation.
fn handle_flux(object: &mut Value) -> bool {
    if object["spec"]["suspend"] == true || !object["status"].is_object() {
        return false;
    }
    let before = object["status"].clone();
    let requested = object["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"].clone();
    if requested.is_string() {
        object["status"]["lastHandledReconcileAt"] = requested;
    }
    let generation = object["metadata"]["generation"].clone();
    // What has not been observed before a failure is not observed by taking note of a request.
    if object["status"]["observedGeneration"].is_i64() {
        object["status"]["observedGeneration"] = generation.clone();
    }
    let conditions = object["status"].get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        condition["observedGeneration"] = generation.clone();
    }
    object["status"] != before
}

/// Handles a refresh or an operation of an Application.
fn handle_application(object: &mut Value) -> bool {
    const REFRESH: &str = "argocd.argoproj.io/refresh";

    let annotations = object["metadata"].get_mut("annotations").and_then(Value::as_object_mut);
    let refreshed = annotations.and_then(|annotations| annotations.remove(REFRESH)).is_some();
    let operation = object.as_object_mut().and_then(|members| members.remove("operation"));
    let now = json!(Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    if refreshed || operation.is_some() {
        object["status"]["reconciledAt"] = now.clone();
    }
    if let Some(operation) = &operation {
        let state = &mut object["status"]["operationState"];
        state["operation"] = operation.clone();
        state["phase"] = json!("Succeeded");
        state["message"] = json!("successfully synced (all tasks run)");
        state["startedAt"] = now.clone();
        state["finishedAt"] = now;
    }
    refreshed || operation.is_some()
}

/// Has the controllers of a cluster listen until the tasks are dropped.
pub(super) fn listen(tasks: &mut JoinSet<()>, cluster: Cluster, told: Vec<Told>) {
    if told.is_empty() {
        return;
    }
    tasks.spawn(async move {
        let mut changes = cluster.changes();
        loop {
            changes.borrow_and_update();
            told.iter().for_each(|told| told.look(&cluster));
            if changes.changed().await.is_err() {
                return;
            }
            tokio::time::sleep(DELAY).await;
        }
    });
}
