//! Writes files of objects to judge: many, always the same, shaped as the API server sends them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};
use taffrail_testkit::binary;

/// Writes `count` small objects of every kind that kstatus has a rule for, by repeating the golden ones that can be
/// judged.
pub(super) fn write_small(path: &Path, count: usize) -> Result<()> {
    write_golden(path, count, |object| Ok(object.to_owned()))
}

/// Writes `count` of the same objects as large as in use: with many labels, deep specs, and conditions with long
/// messages.
pub(super) fn write_wordy(path: &Path, count: usize) -> Result<()> {
    write_golden(path, count, |object| {
        let mut object: Value = serde_json::from_str(object)?;
        if let Some(metadata) = object["metadata"].as_object_mut() {
            let labels =
                (0..20).map(|at| (format!("team-{at}.example.com/purpose"), json!(format!("shop-{at}"))));
            metadata.insert("labels".to_owned(), Value::Object(labels.collect()));
        }
        if let Some(spec) = object["spec"].as_object_mut() {
            let leaf =
                json!({"env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "PORT", "value": "8080"}]});
            let deep =
                (0..12).fold(leaf, |below, level| json!({"level": level, "options": [{"values": below}]}));
            spec.insert("settings".to_owned(), deep);
        }
        let conditions = object["status"]["conditions"].as_array_mut();
        for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
            let message =
                "the release \"shop\" waits for 3 of 12 resources: Deployment/shop/web is not ready\n"
                    .repeat(4);
            condition.insert("message".to_owned(), json!(message));
        }
        Ok(object.to_string())
    })
}

fn write_golden(path: &Path, count: usize, shape: impl Fn(&str) -> Result<String>) -> Result<()> {
    let golden = binary::workspace().join("crates/status/tests/golden/kstatus");
    let objects = std::fs::read_to_string(golden.join("objects.jsonl"))?;
    let expected = std::fs::read_to_string(golden.join("expected.jsonl"))?;
    let judged =
        objects.lines().zip(expected.lines()).filter(|(_, expected)| !expected.contains("\"error\":"));
    let shaped: Vec<String> = judged.map(|(object, _)| shape(object)).collect::<Result<_>>()?;
    let mut file = BufWriter::new(File::create(path)?);
    for object in shaped.iter().cycle().take(count) {
        writeln!(file, "{object}")?;
    }
    Ok(file.flush()?)
}

/// Writes `count` Pods of 5 to 6 KB with managedFields; one in ten is in a crash loop.
pub(super) fn write_pods(path: &Path, count: usize) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut file = BufWriter::new(File::create(path)?);
    for number in 0..count {
        serde_json::to_writer(&mut file, &pod(number, &mut random))?;
        file.write_all(b"\n")?;
    }
    Ok(file.flush()?)
}

fn pod(number: usize, random: &mut fastrand::Rng) -> Value {
    let ready = random.u8(..10) != 0;
    let set = format!("web-{:x}", 0x6b94 + number % 997);
    let name = format!("{set}-{number:05}");
    let time = format!("2026-0{}-01T10:{:02}:00Z", number % 9 + 1, number % 60);
    let volume = format!("kube-api-access-{:05x}", random.u32(..0xfffff));
    let containers = ["app", "proxy"];
    let mut digest = || -> String { (0..64).map(|_| random.digit(16)).collect() };
    let statuses: Vec<Value> =
        containers.iter().map(|container| container_status(container, ready, &time, &mut digest)).collect();
    let conditions: Vec<Value> =
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
            .iter()
            .map(|kind| {
                let well = ready || !kind.ends_with("Ready");
                let status = if well { "True" } else { "False" };
                json!({"lastProbeTime": null, "lastTransitionTime": time, "status": status, "type": kind})
            })
            .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "creationTimestamp": time,
            "generateName": format!("{set}-"),
            "labels": {"app": "web", "app.kubernetes.io/instance": format!("web-{}", number % 20), "pod-template-hash": &set[4..]},
            "managedFields": managed_fields(&containers, number, &time),
            "name": name,
            "namespace": format!("shop-{}", number % 50),
            "ownerReferences": [{
                "apiVersion": "apps/v1", "blockOwnerDeletion": true, "controller": true, "kind": "ReplicaSet",
                "name": set, "uid": uid(number % 997),
            }],
            "resourceVersion": (100_000 + number).to_string(),
            "uid": uid(1_000_000 + number),
        },
        "spec": {
            "containers": containers.iter().map(|container| spec(container, &volume)).collect::<Vec<_>>(),
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": true,
            "nodeName": format!("node-{}", number % 30),
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300},
                {"effect": "NoExecute", "key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300},
            ],
            "volumes": [{"name": volume, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
            ]}}],
        },
        "status": {
            "conditions": conditions,
            "containerStatuses": statuses,
            "hostIP": format!("192.0.2.{}", number % 250),
            "phase": "Running",
            "podIP": format!("10.244.1.{}", number % 250),
            "podIPs": [{"ip": format!("10.244.1.{}", number % 250)}],
            "qosClass": "Burstable",
            "startTime": time,
        },
    })
}

fn uid(number: usize) -> String {
    format!("{number:08x}-1f5c-4d2e-9d2c-0123456789ab")
}

fn spec(name: &str, volume: &str) -> Value {
    json!({
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        ],
        "image": format!("registry.example.com/shop/{name}:1.4.2"),
        "imagePullPolicy": "IfNotPresent",
        "name": name,
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": volume, "readOnly": true}],
    })
}

fn container_status(name: &str, ready: bool, time: &str, digest: &mut impl FnMut() -> String) -> Value {
    let state = if ready {
        json!({"running": {"startedAt": time}})
    } else {
        json!({"waiting": {"message": format!("back-off 5m0s restarting failed container={name}"), "reason": "CrashLoopBackOff"}})
    };
    json!({
        "containerID": format!("containerd://{}", digest()),
        "image": format!("registry.example.com/shop/{name}:1.4.2"),
        "imageID": format!("registry.example.com/shop/{name}@sha256:{}", digest()),
        "lastState": {},
        "name": name,
        "ready": ready,
        "restartCount": 0,
        "started": ready,
        "state": state,
    })
}

/// Returns an object with an empty object for each field, as managedFields has it.
fn fields(names: &[&str]) -> Map<String, Value> {
    names.iter().map(|name| (format!("f:{name}"), json!({}))).chain([(".".to_owned(), json!({}))]).collect()
}

fn managed_fields(containers: &[&str], number: usize, time: &str) -> Value {
    let of_spec: Map<String, Value> = containers
        .iter()
        .map(|name| {
            let mut of_container = fields(&[
                "env",
                "image",
                "imagePullPolicy",
                "name",
                "ports",
                "resources",
                "terminationMessagePath",
                "terminationMessagePolicy",
            ]);
            of_container.insert(
                "f:env".to_owned(),
                json!({
                    "k:{\"name\":\"LOG_LEVEL\"}": fields(&["name", "value"]),
                    "k:{\"name\":\"POD_NAME\"}": fields(&["name", "valueFrom"]),
                }),
            );
            (format!("k:{{\"name\":\"{name}\"}}"), Value::Object(of_container))
        })
        .collect();
    let of_conditions: Map<String, Value> = ["ContainersReady", "Initialized", "Ready"]
        .iter()
        .map(|kind| {
            let names = ["lastProbeTime", "lastTransitionTime", "status", "type"];
            (format!("k:{{\"type\":\"{kind}\"}}"), Value::Object(fields(&names)))
        })
        .collect();
    let mut of_metadata = fields(&["generateName"]);
    of_metadata.insert(
        "f:labels".to_owned(),
        json!(fields(&["app", "app.kubernetes.io/instance", "pod-template-hash"])),
    );
    of_metadata.insert(
        "f:ownerReferences".to_owned(),
        json!({format!("k:{{\"uid\":\"{}\"}}", uid(number % 997)): {}}),
    );
    let mut rest =
        fields(&["dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName", "securityContext"]);
    rest.insert("f:containers".to_owned(), Value::Object(of_spec));
    let mut of_status = fields(&["containerStatuses", "hostIP", "phase", "podIP", "podIPs", "startTime"]);
    of_status.insert("f:conditions".to_owned(), Value::Object(of_conditions));
    json!([
        {
            "apiVersion": "v1", "fieldsType": "FieldsV1", "manager": "kube-controller-manager", "operation": "Update",
            "fieldsV1": {"f:metadata": of_metadata, "f:spec": rest}, "time": time,
        },
        {
            "apiVersion": "v1", "fieldsType": "FieldsV1", "manager": "kubelet", "operation": "Update",
            "fieldsV1": {"f:status": of_status}, "subresource": "status", "time": time,
        },
    ])
}
