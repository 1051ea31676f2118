//! The time that the tree of a large app takes, in memory: `cargo bench -p taffrail-apps --bench tree` prints it.
//!
//! The app declares 1,000 Deployments, Services and ConfigMaps each; each Deployment has a ReplicaSet of six Pods and one that is
//! scaled to 0: 11,000 objects. They are parsed before, and each round begins with a snapshot whose indexes are yet to be made.
//! `tree` is the view alone, of rows that are known; `apps` finds and judges these rows. Two apps are measured: one that is
//! well, and one whose ReplicaSets are all InProgress, so that each is traced to its Pods for a cause.

#![expect(clippy::print_stdout, reason = "it answers on standard output")]
#![allow(clippy::disallowed_methods, reason = "the crate is pure, its benchmark is not")]

use std::error::Error;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_api::{TreeList, TreeNode, TreeOptions};
use taffrail_apps::{Objects, Snapshot, apps};
use taffrail_object::Projection;
use taffrail_object::json::OwnedDocument;
use taffrail_status::ActiveRules;

const NOW: Timestamp = Timestamp::constant(1_772_366_400, 0);

const DEPLOYMENTS: usize = 1_000;
const PODS: usize = 6;
const ROUNDS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    measure("well", &app(PODS))?;
    measure("in progress", &app(0))
}

/// Prints the medians for an app of these objects.
fn measure(state: &str, objects: &[Value]) -> Result<(), Box<dyn Error>> {
    let texts: Vec<Vec<u8>> = objects.iter().map(|object| object.to_string().into_bytes()).collect();
    let rules = ActiveRules::default();
    let unfolded = TreeOptions { fold: false, ..TreeOptions::default() };
    let (mut of_apps, mut of_trees, mut of_folded) = (Vec::new(), Vec::new(), Vec::new());
    let mut nodes = 0;
    for _ in 0..ROUNDS {
        let known = snapshot(&texts)?;
        let begun = Instant::now();
        let list = apps(&[&known], &rules, NOW);
        of_apps.push(begun.elapsed());
        let asked: Vec<_> = list.apps.iter().collect();
        for (shape, took) in [(unfolded, &mut of_trees), (TreeOptions::default(), &mut of_folded)] {
            let fresh = snapshot(&texts)?;
            let clusters: [&dyn Objects; 1] = [&fresh];
            let begun = Instant::now();
            let trees = TreeList::new(&asked, &list, &clusters, &rules, NOW, shape);
            took.push(begun.elapsed());
            nodes = nodes.max(trees.items.iter().map(|tree| count(&tree.root)).sum());
        }
    }
    println!("an app that is {state}: {} objects, {nodes} nodes; medians of {ROUNDS} rounds", objects.len());
    println!("tree         {:>7.1} ms", median(&mut of_trees));
    println!("tree, folded {:>7.1} ms", median(&mut of_folded));
    println!("apps         {:>7.1} ms", median(&mut of_apps));
    Ok(())
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}

fn count(node: &TreeNode) -> usize {
    1 + node.children.iter().map(count).sum::<usize>()
}

fn snapshot(texts: &[Vec<u8>]) -> Result<Snapshot, Box<dyn Error>> {
    let mut snapshot = Snapshot::dump("prod", NOW);
    for text in texts {
        snapshot.insert(OwnedDocument::parse(text.clone())?, Projection::Full)?;
    }
    Ok(snapshot)
}

fn name(at: usize) -> String {
    format!("web-{at:04}")
}

/// Returns the objects of the app and what declares it. Each ReplicaSet with Pods counts `labelled` of them as fully labelled; if
/// that is fewer than all, it is InProgress.
fn app(labelled: usize) -> Vec<Value> {
    let entry = |at: usize, kind: &str| json!({"id": format!("shop_{}_{kind}", name(at)), "v": "v1"});
    let entries_of = |at: usize| ["apps_Deployment", "_Service", "_ConfigMap"].map(|kind| entry(at, kind));
    let entries: Vec<Value> = (0..DEPLOYMENTS).flat_map(entries_of).collect();
    let ready = json!({"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded",
        "message": "Applied revision: main@sha1:1", "observedGeneration": 1});
    let mut objects = vec![
        json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"namespace": "flux-system", "name": "fleet"}, "spec": {"interval": "5m0s"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}],
                "artifact": {"revision": "main@sha1:1", "lastUpdateTime": "2026-03-01T09:00:00Z"}},
        }),
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": "flux-system", "name": "shop", "generation": 1},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}},
            "status": {
                "observedGeneration": 1, "lastAppliedRevision": "main@sha1:1",
                "lastAttemptedRevision": "main@sha1:1", "conditions": [ready], "inventory": {"entries": entries},
            },
        }),
    ];
    for at in 0..DEPLOYMENTS {
        objects.extend(declared(&name(at)));
        for (hash, replicas) in [("5d4f8c7b9", PODS), ("7c9d6b5f4", 0)] {
            objects.extend(made(&name(at), hash, replicas, labelled.min(replicas)));
        }
    }
    objects
}

fn metadata(kind: &str, name: &str) -> Value {
    json!({
        "namespace": "shop", "name": name, "uid": uid(kind, name), "resourceVersion": "4711", "generation": 1,
        "creationTimestamp": "2026-02-01T08:00:00Z",
        "labels": {"app": name, "kustomize.toolkit.fluxcd.io/name": "shop",
            "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
        "managedFields": [{"manager": "kustomize-controller", "operation": "Apply", "apiVersion": "v1",
            "time": "2026-02-01T08:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:replicas": {}, "f:template": {}}}}],
    })
}

fn uid(kind: &str, name: &str) -> String {
    format!("{kind}-{name}")
}

/// The metadata of an object that another one of group `apps` controls.
fn owned(kind: &str, name: &str, by: &str, owner: &str) -> Value {
    let mut metadata = metadata(kind, name);
    metadata["ownerReferences"] = json!([
        {"apiVersion": "apps/v1", "kind": by, "name": owner, "uid": uid(by, owner), "controller": true}
    ]);
    metadata
}

fn template(name: &str) -> Value {
    let resources = json!({"requests": {"cpu": "100m", "memory": "128Mi"}});
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "web", "image": "registry.example/web:1.2.3",
            "ports": [{"containerPort": 8080}], "env": [{"name": "PORT", "value": "8080"}], "resources": resources}]},
    })
}

fn declared(name: &str) -> [Value; 3] {
    let selector = json!({"matchLabels": {"app": name}});
    let conditions = json!([
        {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
    ]);
    [
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("Deployment", name),
            "spec": {"replicas": PODS, "selector": selector, "template": template(name)},
            "status": {"observedGeneration": 1, "replicas": PODS, "updatedReplicas": PODS, "readyReplicas": PODS,
                "availableReplicas": PODS, "conditions": conditions},
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata("Service", name),
            "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "selector": {"app": name}, "ports": [{"port": 80}]},
            "status": {"loadBalancer": {}},
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("ConfigMap", name),
            "data": {"settings": "a: 1"},
        }),
    ]
}

/// Returns a ReplicaSet of a Deployment, and its Pods.
fn made(deployment: &str, hash: &str, replicas: usize, labelled: usize) -> Vec<Value> {
    let name = format!("{deployment}-{hash}");
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": owned("ReplicaSet", &name, "Deployment", deployment),
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": deployment}},
            "template": template(deployment)},
        "status": {"observedGeneration": 1, "replicas": replicas, "readyReplicas": replicas,
            "availableReplicas": replicas, "fullyLabeledReplicas": labelled},
    });
    let pods = (0..replicas).map(|at| pod(&format!("{name}-{at:05}"), deployment, &name));
    std::iter::once(set).chain(pods).collect()
}

fn pod(name: &str, deployment: &str, set: &str) -> Value {
    let condition =
        |name: &str| json!({"type": name, "status": "True", "lastTransitionTime": "2026-02-01T08:00:05Z"});
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": owned("Pod", name, "ReplicaSet", set),
        "spec": {"nodeName": "node-1", "containers": template(deployment)["spec"]["containers"]},
        "status": {
            "phase": "Running", "podIP": "10.1.2.3", "startTime": "2026-02-01T08:00:01Z", "conditions": conditions,
            "containerStatuses": [{"name": "web", "ready": true, "restartCount": 0, "started": true,
                "image": "registry.example/web:1.2.3", "state": {"running": {"startedAt": "2026-02-01T08:00:03Z"}}}],
        },
    })
}
