//! The apps whose state keeps changing, and the steps that change them during a run.

use anyhow::Result;

use crate::examples::{apply_source, kustomization};
use crate::kube::ControlPlane;

/// The namespace of all apps, and of their declarations.
pub(super) const NAMESPACE: &str = "truth";

/// The kinds of an app's object and its dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Deployment,
    Job,
    ReplicaSet,
    Pod,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Deployment, Kind::Job, Kind::ReplicaSet, Kind::Pod];

    /// Returns the path under which objects of the kind are listed and watched.
    pub(super) fn path(self) -> String {
        let (version, plural) = match self {
            Kind::Deployment => ("/apis/apps/v1", "deployments"),
            Kind::ReplicaSet => ("/apis/apps/v1", "replicasets"),
            Kind::Job => ("/apis/batch/v1", "jobs"),
            Kind::Pod => ("/api/v1", "pods"),
        };
        format!("{version}/namespaces/{NAMESPACE}/{plural}")
    }
}

/// An app whose state keeps changing: one object, which has the same name.
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The description that `cargo xtask truth` prints.
    pub(super) shows: &'static str,
}

pub(super) const ALL: [Scene; 8] = [
    Scene { name: "rolling", kind: Kind::Deployment, shows: "40 replicas roll over, again and again" },
    Scene { name: "evicted", kind: Kind::Deployment, shows: "its Pods are evicted, one by one" },
    Scene { name: "zero", kind: Kind::Deployment, shows: "scaled to zero and back" },
    Scene { name: "paused", kind: Kind::Deployment, shows: "paused, changed, resumed, paused half way" },
    Scene {
        name: "mended",
        kind: Kind::Deployment,
        shows: "gets an image that does not exist, and the old one again",
    },
    Scene { name: "retries", kind: Kind::Job, shows: "fails a few times, and then does not" },
    Scene { name: "restarts", kind: Kind::Job, shows: "restarts in place, and then ends well" },
    Scene { name: "exhausted", kind: Kind::Job, shows: "has two tries, and needs more" },
];

fn deployment(name: &str, replicas: u32, annotations: &str) -> String {
    format!(
        "---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {NAMESPACE}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata:
      labels: {{app: {name}}}
      annotations: {{{annotations}}}
    spec: {{containers: [{{name: app, image: 'registry.example/{name}:1'}}]}}
"
    )
}

fn job(name: &str, limit: u32, restart: &str, fails_before: &str) -> String {
    format!(
        "---
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: {NAMESPACE}}}
spec:
  backoffLimit: {limit}
  template:
    metadata:
      labels: {{app: {name}}}
      annotations: {{taffrail.dev/simulate: exit-1, taffrail.dev/fails-before: '{fails_before}'}}
    spec: {{restartPolicy: {restart}, containers: [{{name: app, image: 'registry.example/{name}:1'}}]}}
"
    )
}

/// Recreates the apps. The tries of their Jobs fail until a share of `seconds`, the duration of the run, has passed: 30
/// % for `retries`, 60 % for `restarts`; those of `exhausted` always fail.
pub(super) fn start(plane: &ControlPlane, context: &str, seconds: u64) -> Result<()> {
    apply_source(plane, context)?;
    plane.kubectl(context, &["delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=60s"])?;
    plane.create_namespace(context, NAMESPACE)?;
    let now = jiff::Timestamp::now();
    let at = |share: i64| -> Result<String> {
        let later = i64::try_from(seconds)? * share / 100;
        let at = now.checked_add(jiff::SignedDuration::from_secs(later))?;
        Ok(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    };
    let slow = "taffrail.dev/start-after: 1s, taffrail.dev/start-before: 6s, taffrail.dev/stop-after: 3s";
    let quick = "taffrail.dev/start-after: 300ms, taffrail.dev/start-before: 2s, taffrail.dev/stop-after: 1s";
    let objects = [
        deployment("rolling", 40, slow),
        deployment("evicted", 6, &format!("taffrail.dev/simulate: evict, {quick}")),
        deployment("zero", 5, quick),
        deployment("paused", 4, quick),
        deployment("mended", 4, quick),
        job("retries", 6, "Never", &at(30)?),
        job("restarts", 20, "OnFailure", &at(60)?),
        job("exhausted", 1, "Never", "9999-01-01T00:00:00Z"),
    ];
    for scene in &ALL {
        let id = match scene.kind {
            Kind::Deployment => format!("{NAMESPACE}_{}_apps_Deployment", scene.name),
            Kind::Job => format!("{NAMESPACE}_{}_batch_Job", scene.name),
            Kind::ReplicaSet | Kind::Pod => continue,
        };
        plane.apply_with_status(context, &kustomization(NAMESPACE, scene.name, &[&id]))?;
    }
    plane.apply(context, &objects.concat())
}

/// Changes the apps with kubectl, as the step `turn` (from 0) of a run: new images, faults, scaling, a pause.
pub(super) fn disturb(plane: &ControlPlane, context: &str, turn: usize) -> Result<()> {
    let kubectl =
        |arguments: &[&str]| plane.kubectl(context, &[arguments, &["-n", NAMESPACE]].concat()).map(drop);
    let image = |name: &str| {
        let image = format!("app=registry.example/{name}:{}", turn + 2);
        kubectl(&["set", "image", &format!("deployment/{name}"), &image])
    };
    let simulate = |fault: &str| {
        let annotations =
            format!(r#"{{"metadata": {{"annotations": {{"taffrail.dev/simulate": {fault}}}}}}}"#);
        let patch = format!(r#"{{"spec": {{"template": {annotations}}}}}"#);
        kubectl(&["patch", "deployment/mended", "--type=merge", "-p", &patch])
    };
    match turn % 4 {
        // Now and then the next rollout interrupts one; mostly it completes.
        0 => image("rolling")?,
        1 if turn % 8 == 1 => image("rolling")?,
        2 => simulate("\"image-pull-backoff\"")?,
        3 => simulate("null")?,
        _ => {}
    }
    kubectl(&[
        "scale",
        "deployment/zero",
        if turn.is_multiple_of(2) { "--replicas=0" } else { "--replicas=5" },
    ])?;
    match turn % 4 {
        // A new template waits while the Deployment is paused,
        0 => kubectl(&["rollout", "pause", "deployment/paused"]).and_then(|()| image("paused")),
        // is rolled out after it resumes,
        1 => kubectl(&["rollout", "resume", "deployment/paused"]),
        // and the next one is paused half way.
        2 => image("paused").and_then(|()| kubectl(&["rollout", "pause", "deployment/paused"])),
        _ => kubectl(&["rollout", "resume", "deployment/paused"]),
    }
}
