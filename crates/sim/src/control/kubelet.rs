//! Nodes, and the Pods that run on them: a minimal scheduler and kubelet.
//!
//! The annotation `taffrail.dev/simulate` of a Pod requests a fault: `crash-loop`, `image-pull-backoff`, `never-ready`
//! or `exit-1`, as on the real control planes of the end-to-end tests.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_object::LabelSelector;

use super::events::{tell, warn};
use super::{all, change, claims, is_scripted, nodes, set_condition, soon, text};
use crate::clock::{later, stamp};
use crate::selector::is_selected;
use crate::state::Inner;
use crate::target::Target;
use crate::task::Task;

/// Builds the Node `node-NUMBER`, which is ready, with 8 CPUs, 32 GiB of memory and room for 110 Pods.
pub(crate) fn node(inner: &Inner, number: usize) -> Value {
    let name = format!("node-{number}");
    let now = stamp(inner.fleet.clock.now());
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    let room = json!({"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": format!("zone-{}", (number + 2) % 3 + 1),
            },
        },
        "spec": {"podCIDR": format!("10.244.{}.0/24", number % 256)},
        "status": {
            "capacity": room, "allocatable": room,
            "addresses": [
                {"type": "InternalIP", "address": format!("10.32.0.{}", number % 250 + 1)},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "nodeInfo": {
                "kubeletVersion": inner.fleet.options.version, "osImage": "Linux", "kernelVersion": "6.12", "operatingSystem": "linux",
                "architecture": "amd64", "containerRuntimeVersion": "containerd://2.1.0", "machineID": "", "systemUUID": "",
                "bootID": "", "kubeProxyVersion": "",
            },
        },
    })
}

/// Returns a random duration between `from` and `to` milliseconds.
fn dice(inner: &Inner, from: u64, to: u64) -> Duration {
    Duration::from_millis(inner.random().u64(from..=to))
}

fn again(inner: &Inner, target: &Target, delay: Duration) {
    soon(inner, Task::Pod(target.namespace.clone(), target.name.clone()), delay);
}

/// Moves a Pod one step further in its life: scheduled, started, ready, finished, the fault that it simulates, or its
/// end if it is being deleted. Leaves scripted Pods and those on a lost node alone.
pub(super) fn pod(inner: &Arc<Inner>, namespace: &str, name: &str) {
    let Some(target) = inner.target("", "pods", namespace, name) else { return };
    let Some(pod) = inner.tree(&target) else { return };
    if is_scripted(&pod) || nodes::is_on_lost(inner, &pod) {
        return;
    }
    let metadata = &pod["metadata"];
    if metadata.get("deletionTimestamp").is_some() {
        return end(inner, &target, &pod);
    }
    let phase = text(&pod["status"]["phase"]);
    let fault = text(&metadata["annotations"]["taffrail.dev/simulate"]);
    match (pod["spec"]["nodeName"].as_str(), phase.as_str()) {
        (None, "Pending" | "") => schedule(inner, &target, &pod),
        (Some(_), "Pending" | "") => {
            if pod["status"].get("startTime").is_none() {
                claims::bind(inner, &pod);
                change(inner, &target, |pod| {
                    pod["status"]["startTime"] = json!(stamp(inner.fleet.clock.now()));
                    creating(inner, pod);
                });
                again(inner, &target, dice(inner, 800, 2500));
                return;
            }
            if too_early(inner, &pod, 700) {
                return again(inner, &target, dice(inner, 800, 2500));
            }
            match fault.as_str() {
                _ if lacks_image(inner, &pod) => pull_fails(inner, &target, &pod),
                "image-pull-backoff" => pull_fails(inner, &target, &pod),
                "crash-loop" => crash(inner, &target, &pod),
                fault => run(inner, &target, &pod, fault != "never-ready"),
            }
        }
        (Some(_), "Running") if fault == "crash-loop" => crash(inner, &target, &pod),
        (Some(_), "Running") if pod["spec"]["restartPolicy"] != "Always" => {
            if too_early(inner, &pod, 1500) {
                again(inner, &target, dice(inner, 1500, 2500));
            } else {
                finish(inner, &target, fault == "exit-1");
            }
        }
        _ => {}
    }
}

/// Returns true if a container of the Pod has an image that cannot be pulled.
fn lacks_image(inner: &Inner, pod: &Value) -> bool {
    let missing = &inner.fleet.options.missing_images;
    !missing.is_empty()
        && containers(pod).iter().any(|container| missing.contains(&text(&container["image"])))
}

/// Returns true if the Pod was started less than `milliseconds` ago: any change of a Pod runs its task, even before
/// the next step is due.
fn too_early(inner: &Inner, pod: &Value, milliseconds: i128) -> bool {
    let started = pod["status"]["startTime"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    started.is_some_and(|started| inner.fleet.clock.now().duration_since(started).as_millis() < milliseconds)
}

fn end(inner: &Arc<Inner>, target: &Target, pod: &Value) {
    let finalizers = pod["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    let marked = pod["metadata"]["annotations"].get("taffrail.dev/ending").is_some();
    if !marked {
        // Containers take a moment to terminate, whatever the grace period allows.
        let message = "Stopping container";
        tell(inner, pod, "kubelet", "Killing", message);
        change(inner, target, |pod| {
            if !pod["metadata"]["annotations"].is_object() {
                pod["metadata"]["annotations"] = json!({});
            }
            pod["metadata"]["annotations"]["taffrail.dev/ending"] = json!("true");
        });
        let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or_default();
        let wait = dice(inner, 600, 1500).min(Duration::from_secs(grace));
        let target = target.clone();
        inner.plan(later(inner.fleet.clock.now(), wait), move |inner| {
            let Some(pod) = inner.tree(&target) else { return };
            if pod["metadata"].get("deletionTimestamp").is_none() || nodes::is_on_lost(inner, &pod) {
                return;
            }
            if pod["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty()) {
                change(inner, &target, |pod| pod["status"]["phase"] = json!("Succeeded"));
            } else {
                inner.remove(&target);
            }
        });
    } else if !finalizers && text(&pod["status"]["phase"]) == "Succeeded" {
        inner.remove(target);
    }
}

fn schedule(inner: &Arc<Inner>, target: &Target, pod: &Value) {
    let wanted = LabelSelector::of_labels(pod.pointer("/spec/nodeSelector").map(Into::into));
    let fits = |node: &Value| {
        let ready = node["status"]["conditions"].as_array().into_iter().flatten();
        let ready = ready.filter(|one| one["type"] == "Ready").any(|one| one["status"] == "True");
        ready && node["spec"]["unschedulable"] != true && is_selected(node, &wanted)
    };
    let nodes = all(inner, "", "nodes", "");
    let total = nodes.len();
    let fitting: Vec<String> =
        nodes.iter().filter(|node| fits(node)).map(|node| text(&node["metadata"]["name"])).collect();
    let place = if fitting.is_empty() { 0 } else { inner.random().usize(..fitting.len()) };
    let Some(node) = fitting.get(place) else {
        let message = format!(
            "0/{total} nodes are available: no new claims to deallocate, preemption: 0/{total} nodes are available: {total} \
             Preemption is not helpful for scheduling."
        );
        let known = pod["status"]["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["reason"] == "Unschedulable"));
        change(inner, target, |pod| {
            let rest = json!({"reason": "Unschedulable", "message": message, "lastProbeTime": null});
            set_condition(inner, &mut pod["status"], "PodScheduled", "False", &rest);
        });
        if !known {
            warn(inner, pod, "default-scheduler", "FailedScheduling", &message);
        }
        return again(inner, target, Duration::from_secs(10));
    };
    change(inner, target, |pod| {
        pod["spec"]["nodeName"] = json!(node);
        set_condition(inner, &mut pod["status"], "PodScheduled", "True", &json!({"lastProbeTime": null}));
    });
    let message = format!("Successfully assigned {} to {node}", target.key());
    tell(inner, pod, "default-scheduler", "Scheduled", &message);
}

fn containers(pod: &Value) -> Vec<Value> {
    pod["spec"]["containers"].as_array().cloned().unwrap_or_default()
}

fn status_of(container: &Value, ready: bool, state: &Value) -> Value {
    json!({
        "name": container["name"], "image": container["image"], "ready": ready, "started": ready, "restartCount": 0,
        "imageID": if ready { container["image"].clone() } else { json!("") }, "state": state, "lastState": {},
    })
}

/// Sets the conditions of a Pod; all of its containers are ready if `ready`, else none is.
fn conditions(inner: &Inner, pod: &mut Value, ready: bool) {
    let names: Vec<String> = containers(pod).iter().map(|container| text(&container["name"])).collect();
    let status = &mut pod["status"];
    set_condition(inner, status, "Initialized", "True", &json!({"lastProbeTime": null}));
    for kind in ["Ready", "ContainersReady"] {
        let mut rest = json!({"lastProbeTime": null});
        if !ready {
            rest["reason"] = json!("ContainersNotReady");
            rest["message"] = json!(format!("containers with unready status: [{}]", names.join(" ")));
        }
        set_condition(inner, status, kind, if ready { "True" } else { "False" }, &rest);
    }
}

fn creating(inner: &Inner, pod: &mut Value) {
    conditions(inner, pod, false);
    let state = json!({"waiting": {"reason": "ContainerCreating"}});
    let statuses: Vec<Value> =
        containers(pod).iter().map(|container| status_of(container, false, &state)).collect();
    pod["status"]["containerStatuses"] = json!(statuses);
    pod["status"]["phase"] = json!("Pending");
}

fn run(inner: &Arc<Inner>, target: &Target, pod: &Value, ready: bool) {
    let now = stamp(inner.fleet.clock.now());
    let high = inner.random().u8(1..=250);
    let low = inner.random().u8(1..=250);
    change(inner, target, |pod| {
        conditions(inner, pod, ready);
        let state = json!({"running": {"startedAt": now}});
        let statuses: Vec<Value> = containers(pod)
            .iter()
            .map(|container| {
                let mut status = status_of(container, ready, &state);
                status["imageID"] = container["image"].clone();
                status["started"] = json!(true);
                status
            })
            .collect();
        let inits = pod["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
        if !inits.is_empty() {
            let state = json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}});
            let statuses: Vec<Value> =
                inits.iter().map(|container| status_of(container, true, &state)).collect();
            pod["status"]["initContainerStatuses"] = json!(statuses);
        }
        let ip = format!("10.244.{high}.{low}");
        pod["status"]["containerStatuses"] = json!(statuses);
        pod["status"]["phase"] = json!("Running");
        pod["status"]["podIP"] = json!(ip);
        pod["status"]["podIPs"] = json!([{"ip": ip}]);
    });
    for container in containers(pod) {
        let (name, image) = (text(&container["name"]), text(&container["image"]));
        for (reason, message) in [
            ("Pulled", format!("Container image {image:?} already present on machine")),
            ("Created", format!("Container created: {name}")),
            ("Started", format!("Container started: {name}")),
        ] {
            tell(inner, pod, "kubelet", reason, &message);
        }
    }
    if !ready {
        let message = "Readiness probe failed: HTTP probe failed with statuscode: 503";
        warn(inner, pod, "kubelet", "Unhealthy", message);
    }
}

fn pull_fails(inner: &Arc<Inner>, target: &Target, pod: &Value) {
    let image = containers(pod).first().map(|container| text(&container["image"])).unwrap_or_default();
    let message = format!("Back-off pulling image {image:?}: ErrImagePull: {image}: not found");
    change(inner, target, |pod| {
        conditions(inner, pod, false);
        let state = json!({"waiting": {"reason": "ImagePullBackOff", "message": message}});
        let statuses: Vec<Value> =
            containers(pod).iter().map(|container| status_of(container, false, &state)).collect();
        pod["status"]["containerStatuses"] = json!(statuses);
    });
    let known = pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff";
    if !known {
        let failed = format!("Failed to pull image {image:?}: {image}: not found");
        warn(inner, pod, "kubelet", "Failed", &failed);
        tell(inner, pod, "kubelet", "BackOff", &message);
    }
}

/// Simulates a container that exits at once: restarts it when its pause has passed (10 s, doubled with each restart, at
/// most 300 s), and else plans this for the end of the pause.
fn crash(inner: &Arc<Inner>, target: &Target, pod: &Value) {
    let last = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["finishedAt"].as_str();
    let last = last.and_then(|text| text.parse::<Timestamp>().ok());
    let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap_or_default();
    let pause = 10_u64.saturating_mul(1 << restarts.min(5)).min(300);
    if let Some(last) = last {
        let passed = inner.fleet.clock.now().duration_since(last).as_secs();
        let left = i64::try_from(pause).unwrap_or_default() - passed;
        if left > 0 {
            return again(inner, target, Duration::from_secs(left.unsigned_abs()));
        }
    }
    let restarts = if last.is_some() { restarts + 1 } else { restarts };
    let pause = 10_u64.saturating_mul(1 << restarts.min(5)).min(300);
    let now = stamp(inner.fleet.clock.now());
    let ip = inner.random().u8(1..=250);
    let key = target.key();
    let uid = text(&pod["metadata"]["uid"]);
    change(inner, target, |pod| {
        conditions(inner, pod, false);
        let statuses: Vec<Value> = containers(pod)
            .iter()
            .map(|container| {
                let name = text(&container["name"]);
                let shown = match pause {
                    300 => "5m0s".to_owned(),
                    60.. => format!("{}m{}s", pause / 60, pause % 60),
                    _ => format!("{pause}s"),
                };
                let pod_name = key.replace('/', "_");
                let message = format!("back-off {shown} restarting failed container={name} pod={pod_name}({uid})");
                let mut status = status_of(container, false, &json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}}));
                status["restartCount"] = json!(restarts);
                status["imageID"] = container["image"].clone();
                status["lastState"] =
                    json!({"terminated": {"exitCode": 1, "reason": "Error", "startedAt": now, "finishedAt": now}});
                status
            })
            .collect();
        pod["status"]["containerStatuses"] = json!(statuses);
        pod["status"]["phase"] = json!("Running");
        let address = json!(format!("10.244.0.{ip}"));
        if pod["status"].get("podIP").is_none() {
            pod["status"]["podIP"] = address.clone();
            pod["status"]["podIPs"] = json!([{"ip": address}]);
        }
    });
    for container in containers(pod) {
        let name = text(&container["name"]);
        let message = format!("Back-off restarting failed container {name} in pod {}", target.name);
        warn(inner, pod, "kubelet", "BackOff", &message);
    }
    again(inner, target, Duration::from_secs(pause));
}

fn finish(inner: &Arc<Inner>, target: &Target, failed: bool) {
    let now = stamp(inner.fleet.clock.now());
    change(inner, target, |pod| {
        let (code, reason, phase) =
            if failed { (1, "Error", "Failed") } else { (0, "Completed", "Succeeded") };
        let state =
            json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}});
        let statuses: Vec<Value> =
            containers(pod).iter().map(|container| status_of(container, false, &state)).collect();
        let why = if failed { "PodFailed" } else { "PodCompleted" };
        for kind in ["Initialized", "Ready", "ContainersReady"] {
            let value = if kind == "Initialized" { "True" } else { "False" };
            set_condition(
                inner,
                &mut pod["status"],
                kind,
                value,
                &json!({"reason": why, "lastProbeTime": null}),
            );
        }
        pod["status"]["containerStatuses"] = json!(statuses);
        pod["status"]["phase"] = json!(phase);
    });
}
