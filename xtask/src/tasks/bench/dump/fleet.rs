//! Writes a dump of a cluster with apps of several delivery tools, as `kubectl get -o json` prints it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

const TIME: &str = "2026-03-01T10:00:00Z";
const COMMIT: &str = "3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613";
/// The number of Pods of each Deployment.
const REPLICAS: usize = 8;
/// One of this many Deployments has a Pod in a crash loop.
const BROKEN: usize = 37;

/// The delivery tool of an app.
#[derive(Clone, Copy, PartialEq)]
enum Tool {
    Flux,
    Argo,
    Label,
}

/// Writes a list of exactly `objects` objects that contains `apps` apps.
pub(super) fn write(path: &Path, apps: usize, objects: usize) -> Result<()> {
    let mut list = List::create(path)?;
    list.system()?;
    for number in 0..apps {
        let tool = match number % 10 {
            0..=5 => Tool::Flux,
            6..=8 => Tool::Argo,
            _ => Tool::Label,
        };
        let app = App { name: format!("app-{number:03}"), namespace: format!("team-{}", number % 60), tool };
        list.app(&app, 4, 0)?;
    }
    list.fill(objects)?;
    list.finish()
}

/// Writes a list with one app that declares `objects` objects, and their dependents; returns the number of objects in
/// it.
pub(super) fn write_one(path: &Path, objects: usize) -> Result<usize> {
    let mut list = List::create(path)?;
    list.system()?;
    let app = App { name: "big".to_owned(), namespace: "big".to_owned(), tool: Tool::Flux };
    let deployments = objects / 10;
    list.app(&app, deployments, objects - 4 * deployments)?;
    let count = list.count;
    list.finish()?;
    Ok(count)
}

struct App {
    name: String,
    namespace: String,
    tool: Tool,
}

impl App {
    fn labels(&self) -> Value {
        match self.tool {
            Tool::Flux => json!({
                "kustomize.toolkit.fluxcd.io/name": self.name,
                "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
            }),
            Tool::Argo | Tool::Label => json!({"app.kubernetes.io/instance": self.name}),
        }
    }
}

/// A `kind: List` of objects in a file, written object by object.
struct List {
    file: BufWriter<File>,
    count: usize,
    deployments: usize,
    random: fastrand::Rng,
}

impl List {
    fn create(path: &Path) -> Result<Self> {
        let mut file = BufWriter::new(File::create(path)?);
        write!(file, "{{\n    \"apiVersion\": \"v1\",\n    \"items\": [")?;
        Ok(Self { file, count: 0, deployments: 0, random: fastrand::Rng::with_seed(1) })
    }

    fn add(&mut self, object: &Value) -> Result<()> {
        if self.count > 0 {
            self.file.write_all(b",\n")?;
        }
        serde_json::to_writer_pretty(&mut self.file, object)?;
        self.count += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        write!(
            self.file,
            "\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {{\"resourceVersion\": \"\"}}\n}}\n"
        )?;
        Ok(self.file.flush()?)
    }

    /// Adds ConfigMaps that no app declares, until there are `objects` objects.
    fn fill(&mut self, objects: usize) -> Result<()> {
        for number in self.count..objects {
            self.add(&json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"},
                "metadata": metadata("kube-system", &format!("leftover-{number}"), number, json!({})),
            }))?;
        }
        anyhow::ensure!(self.count == objects, "the dump has {} objects in place of {objects}", self.count);
        Ok(())
    }

    fn uid(&mut self) -> usize {
        self.random.usize(..1 << 40)
    }

    fn system(&mut self) -> Result<()> {
        self.add(&json!({
            "apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Active"},
            "metadata": {"name": "kube-system", "uid": uid(1), "creationTimestamp": TIME},
        }))?;
        for number in 0..30 {
            self.add(&json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": format!("node-{number}"), "uid": uid(100 + number), "creationTimestamp": TIME},
                "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": TIME}]},
            }))?;
        }
        for number in 0..10 {
            self.add(&json!({
                "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
                "metadata": {"name": format!("repo-{number}"), "namespace": "flux-system", "uid": uid(200 + number), "generation": 1, "creationTimestamp": TIME},
                "spec": {"interval": "1m", "url": format!("https://git.example.com/repo-{number}"), "ref": {"branch": "main"}},
                "status": {
                    "observedGeneration": 1,
                    "artifact": {"revision": format!("main@sha1:{COMMIT}"), "lastUpdateTime": TIME},
                    "conditions": [ready("Succeeded", &format!("stored artifact for revision 'main@sha1:{COMMIT}'"))],
                },
            }))?;
        }
        Ok(())
    }

    /// Adds an app of `deployments` Deployments, each with a Service, a ConfigMap and a ServiceAccount, and of `more`
    /// other ConfigMaps.
    fn app(&mut self, app: &App, deployments: usize, more: usize) -> Result<()> {
        let mut declared: Vec<[String; 4]> = Vec::new();
        let mut keep = |group: &str, kind: &str, name: &str| {
            declared.push([group.to_owned(), kind.to_owned(), app.namespace.clone(), name.to_owned()]);
        };
        for number in 0..deployments {
            let name = format!("{}-{number}", app.name);
            self.deployment(app, &name)?;
            for (kind, spec) in [
                (
                    "ConfigMap",
                    json!({"data": {"LOG_LEVEL": "info", "UPSTREAM": "http://upstream.example.com"}}),
                ),
                ("ServiceAccount", json!({})),
                (
                    "Service",
                    json!({"spec": {
                    "clusterIP": "10.96.0.10", "type": "ClusterIP", "selector": {"app": name},
                    "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}],
                }, "status": {"loadBalancer": {}}}),
                ),
            ] {
                let number = self.uid();
                let mut object = json!({
                    "apiVersion": "v1", "kind": kind,
                    "metadata": metadata(&app.namespace, &name, number, app.labels()),
                });
                if let (Some(object), Value::Object(spec)) = (object.as_object_mut(), spec) {
                    object.extend(spec);
                }
                self.add(&object)?;
                keep("", kind, &name);
            }
            keep("apps", "Deployment", &name);
        }
        for number in 0..more {
            let name = format!("settings-{number}");
            let uid = self.uid();
            self.add(&json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"},
                "metadata": metadata(&app.namespace, &name, uid, app.labels()),
            }))?;
            keep("", "ConfigMap", &name);
        }
        match app.tool {
            Tool::Flux => self.kustomization(app, &declared),
            Tool::Argo => self.application(app, &declared),
            Tool::Label => Ok(()),
        }
    }

    fn deployment(&mut self, app: &App, name: &str) -> Result<()> {
        self.deployments += 1;
        let broken = self.deployments.is_multiple_of(BROKEN);
        let (namespace, own, set) = (&app.namespace, self.uid(), self.uid());
        let template = json!({
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [container()], "serviceAccountName": name},
        });
        let available = if broken { REPLICAS - 1 } else { REPLICAS };
        self.add(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": metadata(namespace, name, own, app.labels()),
            "spec": {
                "progressDeadlineSeconds": 600, "replicas": REPLICAS, "revisionHistoryLimit": 10,
                "selector": {"matchLabels": {"app": name}}, "template": template,
            },
            "status": {
                "observedGeneration": 1, "replicas": REPLICAS, "updatedReplicas": REPLICAS,
                "readyReplicas": available, "availableReplicas": available,
                "unavailableReplicas": REPLICAS - available,
                "conditions": [
                    {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability.", "lastTransitionTime": TIME, "lastUpdateTime": TIME},
                    {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "ReplicaSet has successfully progressed.", "lastTransitionTime": TIME, "lastUpdateTime": TIME},
                ],
            },
        }))?;
        let owner = |kind: &str, name: &str, number: usize| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid(number), "controller": true, "blockOwnerDeletion": true}]);
        for (set, revision, replicas) in [(set, 3, REPLICAS), (self.uid(), 2, 0), (self.uid(), 1, 0)] {
            let mut metadata = metadata(
                namespace,
                &format!("{name}-{revision}"),
                set,
                json!({"app": name, "pod-template-hash": revision.to_string()}),
            );
            metadata["ownerReferences"] = owner("Deployment", name, own);
            metadata["annotations"] = json!({"deployment.kubernetes.io/revision": revision.to_string()});
            self.add(&json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata,
                "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name, "pod-template-hash": revision.to_string()}}, "template": template},
                "status": {"observedGeneration": 1, "replicas": replicas, "fullyLabeledReplicas": replicas, "readyReplicas": replicas.min(available), "availableReplicas": replicas.min(available)},
            }))?;
        }
        for number in 0..REPLICAS {
            let pod = self.uid();
            let mut metadata = metadata(
                namespace,
                &format!("{name}-3-{number:05x}"),
                pod,
                json!({"app": name, "pod-template-hash": "3"}),
            );
            metadata["ownerReferences"] = owner("ReplicaSet", &format!("{name}-3"), set);
            let node = self.random.usize(..30);
            self.add(&pod_object(metadata, node, broken && number == 0))?;
        }
        let slice = self.uid();
        let mut metadata =
            metadata(namespace, &format!("{name}-xyz12"), slice, json!({"kubernetes.io/service-name": name}));
        metadata["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Service", "name": name, "uid": uid(slice ^ 1), "controller": true}]);
        let endpoints: Vec<Value> = (0..REPLICAS)
            .map(|number| json!({"addresses": [format!("10.244.1.{number}")], "conditions": {"ready": true, "serving": true, "terminating": false}}))
            .collect();
        self.add(&json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "metadata": metadata,
            "endpoints": endpoints, "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }))
    }

    fn kustomization(&mut self, app: &App, declared: &[[String; 4]]) -> Result<()> {
        let entries: Vec<Value> = declared
            .iter()
            .map(|[group, kind, namespace, name]| json!({"id": format!("{namespace}_{name}_{group}_{kind}"), "v": "v1"}))
            .collect();
        let (number, repo) = (self.uid(), self.random.usize(..10));
        let revision = format!("main@sha1:{COMMIT}");
        self.add(&json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": metadata("flux-system", &app.name, number, json!({})),
            "spec": {"interval": "10m", "path": format!("./apps/{}", app.name), "prune": true, "sourceRef": {"kind": "GitRepository", "name": format!("repo-{repo}")}},
            "status": {
                "observedGeneration": 1, "lastAppliedRevision": revision, "lastAttemptedRevision": revision,
                "inventory": {"entries": entries},
                "conditions": [ready("ReconciliationSucceeded", &format!("Applied revision: {revision}"))],
            },
        }))
    }

    fn application(&mut self, app: &App, declared: &[[String; 4]]) -> Result<()> {
        let resources: Vec<Value> = declared
            .iter()
            .map(|[group, kind, namespace, name]| json!({"group": group, "kind": kind, "namespace": namespace, "name": name, "version": "v1", "status": "Synced", "health": {"status": "Healthy"}}))
            .collect();
        let number = self.uid();
        self.add(&json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": metadata("argocd", &app.name, number, json!({})),
            "spec": {
                "destination": {"namespace": app.namespace, "server": "https://kubernetes.default.svc"}, "project": "default",
                "source": {"path": app.name, "repoURL": "https://git.example.com/apps", "targetRevision": "main"},
            },
            "status": {
                "health": {"status": "Healthy"}, "resources": resources,
                "history": [{"deployedAt": TIME, "id": 0, "revision": COMMIT}],
                "operationState": {"phase": "Succeeded", "message": "successfully synced (all tasks run)", "finishedAt": TIME, "startedAt": TIME, "operation": {}},
                "reconciledAt": TIME, "sync": {"revision": COMMIT, "status": "Synced"},
            },
        }))
    }
}

fn uid(number: usize) -> String {
    format!("{:08x}-1f5c-4d2e-9d2c-{:012x}", number & 0xffff_ffff, number)
}

fn metadata(namespace: &str, name: &str, number: usize, labels: Value) -> Value {
    json!({
        "creationTimestamp": TIME, "generation": 1, "labels": labels, "name": name, "namespace": namespace,
        "resourceVersion": (number % 1_000_000).to_string(), "uid": uid(number),
    })
}

fn ready(reason: &str, message: &str) -> Value {
    json!({"type": "Ready", "status": "True", "reason": reason, "message": message, "observedGeneration": 1, "lastTransitionTime": TIME})
}

fn container() -> Value {
    json!({
        "env": [{"name": "LOG_LEVEL", "value": "info"}], "image": "registry.example.com/shop/api:1.4.2",
        "imagePullPolicy": "IfNotPresent", "name": "api",
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "readinessProbe": {"failureThreshold": 3, "httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10},
        "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access", "readOnly": true}],
    })
}

fn pod_object(metadata: Value, node: usize, broken: bool) -> Value {
    let condition = |kind: &str, status: bool| json!({"lastProbeTime": null, "lastTransitionTime": TIME, "status": if status { "True" } else { "False" }, "type": kind});
    let state = if broken {
        json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container=api"}})
    } else {
        json!({"running": {"startedAt": TIME}})
    };
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {
            "containers": [container()], "dnsPolicy": "ClusterFirst", "enableServiceLinks": true,
            "nodeName": format!("node-{node}"), "preemptionPolicy": "PreemptLowerPriority", "priority": 0, "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "securityContext": {}, "serviceAccountName": "api", "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300},
                {"effect": "NoExecute", "key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300},
            ],
            "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
            ]}}],
        },
        "status": {
            "conditions": [
                condition("PodReadyToStartContainers", true), condition("Initialized", true), condition("Ready", !broken),
                condition("ContainersReady", !broken), condition("PodScheduled", true),
            ],
            "containerStatuses": [{
                "containerID": "containerd://5f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613", "image": "registry.example.com/shop/api:1.4.2",
                "imageID": "registry.example.com/shop/api@sha256:8c1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613", "lastState": {}, "name": "api",
                "ready": !broken, "restartCount": 0, "started": !broken, "state": state,
            }],
            "hostIP": "192.0.2.7", "phase": "Running", "podIP": "10.244.1.7", "podIPs": [{"ip": "10.244.1.7"}], "qosClass": "Burstable", "startTime": TIME,
        },
    })
}
