//! The objects that a peer of the hub would keep of the fleet: a definition of a kind, and in a namespace for each
//! cluster a Lease and one object for each app.
//!
//! They hold what the hub's rows hold, and no more: labels to select by, what is declared in `spec`, and what is
//! observed in `status`, with the conditions by which controllers of this kind tell of it. An app is one object of a few
//! kilobytes; peers that list the resources of an app have larger ones.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use taffrail_apps::{Delivery, SyncState};
use taffrail_status::Status;

use crate::model::{self, AppState, Health, cluster_name};

/// The path of the definition of the kind.
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The path of the namespaces.
pub(super) const NAMESPACES: &str = "/api/v1/namespaces";

/// The path of the apps of all clusters.
pub(super) const APPS: &str = "/apis/bench.taffrail.dev/v1/appstatuses";

/// The label of an app's namespace in its cluster.
pub(super) const TEAM: &str = "team";

/// The label of an app's name.
pub(super) const NAME: &str = "app.kubernetes.io/name";

/// The label of an app's cluster.
pub(super) const CLUSTER: &str = "bench.taffrail.dev/cluster";

/// The part of an object that is read.
#[derive(Debug, Deserialize)]
pub(super) struct Object {
    pub(super) metadata: Metadata,
    spec: Spec,
    pub(super) status: ObjectStatus,
}

#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) namespace: String,
}

#[derive(Debug, Deserialize)]
struct Spec {
    app: AppName,
}

#[derive(Debug, Deserialize)]
struct AppName {
    namespace: String,
    name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ObjectStatus {
    pub(super) health: String,
    sync: Sync,
}

#[derive(Debug, Deserialize)]
struct Sync {
    applied: String,
}

impl Object {
    /// Returns the number of its app in its cluster.
    pub(super) fn app(&self) -> Option<usize> {
        model::app_number(&self.spec.app.namespace, &self.spec.app.name)
    }

    /// Returns the number of the change that it shows.
    pub(super) fn change(&self) -> Option<u32> {
        model::change_of(&self.status.sync.applied)
    }
}

/// Returns the path of the apps of one cluster.
pub(super) fn apps_of(cluster: usize) -> String {
    format!("/apis/bench.taffrail.dev/v1/namespaces/{}/appstatuses", cluster_name(cluster))
}

/// Returns the path of the Leases of one cluster.
pub(super) fn leases_of(cluster: usize) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", cluster_name(cluster))
}

/// The name of the Lease in each cluster's namespace.
pub(super) const LEASE: &str = "cluster";

/// Returns the name of the object of an app.
pub(super) fn object_name(app: usize) -> String {
    format!("{}-{}", model::namespace(app), model::name(app))
}

/// Returns the definition of the kind.
pub(super) fn definition() -> Value {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let number = json!({"type": "integer", "format": "int64"});
    let object = |required: &[&str], properties: Value| json!({"type": "object", "required": required, "properties": properties});
    let spec = object(
        &["app", "source"],
        json!({
            "app": object(
                &["delivery", "namespace", "name"],
                json!({"delivery": text, "namespace": text, "name": text}),
            ),
            "source": object(&["kind"], json!({
                "kind": text, "namespace": text, "name": text, "url": text, "path": text, "reference": text,
            })),
            "suspended": {"type": "boolean"},
        }),
    );
    let sync = object(
        &["state"],
        json!({"state": text, "desired": text, "attempted": text, "applied": text, "lastSuccess": time}),
    );
    let condition = object(
        &["type", "status", "lastTransitionTime", "reason"],
        json!({
            "type": text, "status": {"type": "string", "enum": ["True", "False", "Unknown"]}, "reason": text,
            "message": text, "lastTransitionTime": time, "observedGeneration": number,
        }),
    );
    let kind =
        object(&["kind", "name"], json!({"group": text, "kind": text, "namespace": text, "name": text}));
    let problem = object(
        &["axis", "state", "severity", "message"],
        json!({
            "axis": text, "state": text, "severity": text, "since": time, "message": text, "rule": text,
            "object": kind,
        }),
    );
    let status = object(
        &[],
        json!({
            "observedGeneration": number,
            "health": text,
            "sync": sync,
            "message": text,
            "counts": object(&[], json!({"ready": number, "inProgress": number, "failed": number})),
            "conditions": {
                "type": "array", "items": condition,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            },
            "problems": {"type": "array", "items": problem},
        }),
    );
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "appstatuses.bench.taffrail.dev"},
        "spec": {
            "group": "bench.taffrail.dev",
            "scope": "Namespaced",
            "names": {
                "kind": "AppStatus", "listKind": "AppStatusList",
                "plural": "appstatuses", "singular": "appstatus",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": spec, "status": status},
                }},
                "additionalPrinterColumns": [
                    column("Delivery", ".spec.app.delivery"),
                    column("Health", ".status.health"),
                    column("Sync", ".status.sync.state"),
                    column("Revision", ".status.sync.applied"),
                    column("Message", ".status.message"),
                ],
            }],
        },
    })
}

/// Returns the namespace of a cluster.
pub(super) fn namespace(cluster: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": cluster_name(cluster), "labels": {CLUSTER: cluster_name(cluster)}},
    })
}

/// Returns the Lease of a cluster, renewed now; with the version of the object that it replaces, if it replaces one.
pub(super) fn lease(cluster: usize, replaced: Option<&str>) -> Value {
    let mut metadata = json!({"name": LEASE, "namespace": cluster_name(cluster)});
    if let Some(version) = replaced {
        metadata["resourceVersion"] = json!(version);
    }
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata,
        "spec": {
            "holderIdentity": "observer", "leaseDurationSeconds": 45,
            "renewTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        },
    })
}

/// Returns the object of an app, without its status.
pub(super) fn object(cluster: usize, app: usize) -> Value {
    let (namespace, name) = (model::namespace(app), model::name(app));
    let mut source = json!({
        "kind": "GitRepository",
        "url": "https://git.example.com/platform/fleet.git",
        "path": format!("./apps/{namespace}/{name}"),
        "reference": "main",
    });
    if model::delivery(app) != Delivery::ArgoApplication {
        source["namespace"] = json!("flux-system");
        source["name"] = json!("fleet");
    }
    json!({
        "apiVersion": "bench.taffrail.dev/v1",
        "kind": "AppStatus",
        "metadata": {
            "name": object_name(app),
            "namespace": cluster_name(cluster),
            "labels": {
                CLUSTER: cluster_name(cluster), TEAM: namespace, NAME: name,
                "kustomize.toolkit.fluxcd.io/name": "apps",
            },
        },
        "spec": {
            "app": {"delivery": model::delivery(app).to_string(), "namespace": namespace, "name": name},
            "source": source,
            "suspended": false,
        },
    })
}

/// Returns the merge patch that gives the object of an app its status.
pub(super) fn status(cluster: usize, app: usize, state: AppState) -> Value {
    let (namespace, name) = (model::namespace(app), model::name(app));
    let (status, sync, revision) = (state.status(), state.sync(), model::revision(state));
    let since = state.since(cluster, app).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let message = state.message(cluster, app);
    let is = |status: Status| u32::from(state.status() == status);
    let condition = |kind: &str, is_true: bool, reason: &str, message: &str| {
        json!({
            "type": kind, "status": if is_true { "True" } else { "False" }, "reason": reason, "message": message,
            "lastTransitionTime": since, "observedGeneration": 1,
        })
    };
    let is_ready = status == Status::Current;
    let object = json!({"group": "apps", "kind": "Deployment", "namespace": namespace, "name": name});
    let problem = state.severity().map(|severity| {
        let mut problem = json!({
            "axis": "sync", "state": sync.as_str(), "severity": severity, "since": since,
            "message": state.problem_message(cluster, app),
        });
        if state.health != Health::Ready {
            problem["axis"] = json!("health");
            problem["state"] = json!(status.as_str());
            problem["rule"] = json!("builtin/apps/Deployment");
            problem["object"] = object;
        }
        problem
    });
    json!({"status": {
        "observedGeneration": 1,
        "health": status.as_str(),
        "sync": {
            "state": sync.as_str(), "desired": revision, "attempted": revision, "applied": revision,
            "lastSuccess": since,
        },
        "message": message,
        "counts": {
            "ready": 4 + is(Status::Current),
            "inProgress": is(Status::InProgress),
            "failed": is(Status::Failed),
        },
        "conditions": [
            condition("Ready", is_ready, status.as_str(), &message),
            condition("Synced", sync == SyncState::Synced, sync.as_str(), &format!("Applied revision: {revision}")),
        ],
        "problems": problem.into_iter().collect::<Vec<Value>>(),
    }})
}
