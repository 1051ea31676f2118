//! Measures the cost of many clusters: `cargo xtask bench sim` runs it and prints the result.
//!
//! Prints one line of JSON: clusters, objects, seconds to start, resident bytes before, after the clusters and after
//! the objects, CPU seconds in ten idle seconds, and the duration of a list of all Pods of a cluster. With a fourth
//! argument it writes a kubeconfig for them to that file, and serves until its standard input ends; the fifth is the
//! number of times that an app has its ten objects (1). With the variable `MANAGERS` the fleet records field managers.
#![expect(clippy::print_stdout, reason = "it answers on standard output")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_sim::Fleet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).take(3).map(|argument| argument.parse::<usize>());
    let clusters = arguments.next().transpose()?.unwrap_or(200);
    let objects = arguments.next().transpose()?.unwrap_or(2000);
    let idle = arguments.next().transpose()?.unwrap_or(10);

    let kubeconfig = std::env::args().nth(4);
    let times = std::env::args().nth(5).map(|times| times.parse()).transpose()?.unwrap_or(1);

    let begun = Instant::now();
    let before = resident()?;
    let fleet = Fleet::builder().seed(1).controllers(false).managers(std::env::var_os("MANAGERS").is_some());
    let fleet = fleet.start().await?;
    let mut all = Vec::new();
    for number in 0..clusters {
        all.push(fleet.cluster(&format!("cluster-{number}")).await?);
    }
    let started = begun.elapsed();
    let with_clusters = resident()?;
    let mut bytes = 0;
    for cluster in &all {
        let content = content(objects, times);
        bytes += content.iter().map(|object| object.to_string().len()).sum::<usize>();
        cluster.seed(content)?;
    }
    let filled = begun.elapsed();
    let with_objects = resident()?;
    let cpu = cpu_seconds()?;
    tokio::time::sleep(Duration::from_secs(idle as u64)).await;
    let rest = cpu_seconds()? - cpu;
    if let Some(file) = &kubeconfig {
        std::fs::write(file, taffrail_sim::Cluster::kubeconfig_of(&all))?;
    }
    let held: usize = all.iter().map(taffrail_sim::Cluster::object_count).sum();
    println!(
        "{}",
        json!({
            "clusters": clusters, "objects": held, "text_bytes": bytes,
            "start_seconds": started.as_secs_f64(), "fill_seconds": (filled - started).as_secs_f64(),
            "resident_before": before, "resident_clusters": with_clusters, "resident_objects": with_objects,
            "idle_seconds": idle, "idle_cpu_seconds": rest,
        })
    );
    if kubeconfig.is_some() {
        // The process at its standard input reads from the clusters.
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
    }
    Ok(())
}

/// Returns the objects of a cluster of apps, each with ten objects `times` times: a Deployment, a ReplicaSet, three Pods,
/// a Service, a ConfigMap, a Secret, a ServiceAccount and an Event.
fn content(objects: usize, times: usize) -> Vec<Value> {
    let mut all = vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "apps"}})];
    let mut app = 0;
    while all.len() < objects {
        let name = format!("app-{app:04}");
        let instance = format!("app-{:04}", app / times);
        let labels =
            json!({"app.kubernetes.io/name": name, "app.kubernetes.io/instance": instance, "team": "a"});
        let metadata = |name: &str| json!({"name": name, "namespace": "apps", "labels": labels});
        let container = json!({
            "name": "main", "image": format!("registry.example.com/team/{name}:1.4.2"), "ports": [{"containerPort": 8080}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "REGION", "value": "eu-west-1"}],
            "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
        });
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container], "serviceAccountName": name}});
        let conditions = json!([
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "lastTransitionTime": "2026-01-01T00:00:00Z",
             "message": "Deployment has minimum availability."},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "lastTransitionTime": "2026-01-01T00:00:00Z",
             "message": "ReplicaSet has successfully progressed."},
        ]);
        let figures = json!({
            "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3, "conditions": conditions,
        });
        let selector = json!({"matchLabels": labels});
        let spec = json!({"replicas": 3, "selector": selector, "template": template});
        all.push(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(&name), "spec": spec, "status": figures}));
        let set = format!("{name}-5d7f9c8b6d");
        let figures =
            json!({"replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "observedGeneration": 1});
        all.push(json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata(&set), "spec": spec, "status": figures}));
        for pod in 0..3 {
            let conditions: Vec<Value> = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
                .iter()
                .map(|kind| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:00Z"}))
                .collect();
            let status = json!({
                "phase": "Running", "podIP": format!("10.244.{}.{}", app % 250, pod), "startTime": "2026-01-01T00:00:00Z", "conditions": conditions,
                "containerStatuses": [{
                    "name": "main", "ready": true, "started": true, "restartCount": 0, "image": container["image"],
                    "imageID": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                }],
            });
            let mut spec = template["spec"].clone();
            spec["nodeName"] = json!(format!("node-{}", pod + 1));
            let name = format!("{set}-{pod:05}");
            all.push(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata(&name), "spec": spec, "status": status}));
        }
        all.push(json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(&name), "spec": {"selector": labels, "ports": [{"port": 80}]}}));
        all.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(&name), "data": {"config.yaml": "a: b\n".repeat(40)}}));
        all.push(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata(&name), "data": {"password": "c2VjcmV0"}}));
        all.push(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(&name)}));
        all.push(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": metadata(&format!("{name}.17a")), "reason": "Scaled", "type": "Normal",
            "message": "Scaled up", "involvedObject": {"kind": "Deployment", "name": name, "namespace": "apps"},
        }));
        app += 1;
    }
    all.truncate(objects);
    all
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(kilobytes * 1024)
}

/// Returns user and system time of this process, in seconds.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    // Fields 14 and 15 of the whole line, in hundredths of a second.
    Ok((ticks(11) + ticks(12)) / 100.0)
}
