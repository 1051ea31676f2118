//! Broken apps, one fault each: the output of `get apps` and `explain` from the moment at which the cluster knows.
//!
//! That moment is when Kubernetes' own state, as kubectl reads it, contains the decisive word. The run of Taffrail that
//! starts right after it must be right; so people wait for the duration of one run, which is printed and not asserted.
//!
//! The right status is not always Failed. It is for a cause that waiting cannot fix. A readiness probe may still
//! succeed before the rollout's deadline, a Job may still have retries left, and an object that is being deleted stays
//! Terminating for any length of time: there the status says so, and the text of the cause says why.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use taffrail_testkit::examples::{apply_source, kustomization};
use taffrail_testkit::kube::{ControlPlane, version};

use crate::harness::{Answer, Apps, CLUSTER, built};
use crate::stage::{Stage, Who};

/// The namespace of the declarations, so that faults of an app's namespace cannot affect them.
const HOME: &str = "broken";

/// An app with a namespace of the same name.
struct Broken<'a> {
    stage: &'a mut Stage,
    name: &'static str,
}

/// A step of a cause chain as a test expects it: kind, status, and a part of its reason.
type Link = (&'static str, &'static str, &'static str);

impl Stage {
    /// Creates the namespace [`HOME`] of declarations and the namespace `name`, and returns the app of this name, which
    /// has no objects yet.
    fn broken(&mut self, name: &'static str) -> Broken<'_> {
        self.act(|plane| {
            // So that the first look does not have to build the binary.
            built();
            apply_source(plane, CLUSTER)?;
            plane.create_namespace(CLUSTER, HOME)?;
            plane.create_namespace(CLUSTER, name)
        });
        Broken { stage: self, name }
    }

    /// Creates the namespaces and the app `name`, whose objects are `manifests` and which declares the Deployment
    /// `web`.
    fn broken_web(&mut self, name: &'static str, manifests: &str) -> Broken<'_> {
        let mut broken = self.broken(name);
        broken.deliver(&[WEB], manifests);
        broken
    }
}

/// Lists the objects of a kind in a namespace, as kubectl reads them.
fn record(plane: &ControlPlane, kind: &str, namespace: &str) -> Result<Vec<Value>> {
    let text = plane.kubectl(CLUSTER, &["get", kind, "-n", namespace, "-o", "json"])?;
    let list: Value = serde_json::from_str(&text)?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

impl Broken<'_> {
    /// Returns the app `name` on the same stage; creates nothing.
    fn other(&mut self, name: &'static str) -> Broken<'_> {
        Broken { stage: self.stage, name }
    }

    /// Applies manifests, with the app's name in place of `${NAME}`, which no app declares.
    fn prepare(&mut self, manifests: &str) {
        let manifests = manifests.replace("${NAME}", self.name);
        self.stage.act(|plane| plane.apply(CLUSTER, &manifests));
    }

    /// Applies manifests, and a Kustomization that declares the objects in `inventory` and the app's namespace; both
    /// with the app's name in place of `${NAME}`.
    fn deliver(&mut self, inventory: &[&str], manifests: &str) {
        let inventory: Vec<String> = ["_${NAME}__Namespace"]
            .iter()
            .chain(inventory)
            .map(|id| id.replace("${NAME}", self.name))
            .collect();
        let inventory: Vec<&str> = inventory.iter().map(String::as_str).collect();
        let declaration = kustomization(HOME, self.name, &inventory);
        self.stage.act(|plane| plane.apply_with_status(CLUSTER, &declaration));
        self.prepare(manifests);
        let marks = [("name", self.name), ("namespace", HOME)];
        let marks = marks.map(|(key, value)| format!("kustomize.toolkit.fluxcd.io/{key}={value}"));
        self.stage.act(|plane| {
            for id in &inventory {
                let parts: Vec<&str> = id.splitn(4, '_').collect();
                let [namespace, name, group, kind] = parts[..] else { continue };
                let kind = format!("{kind}.{group}").to_lowercase();
                let label = ["label", kind.trim_end_matches('.'), name, &marks[0], &marks[1]];
                let namespace = ["-n", namespace];
                let namespace: &[&str] = if namespace[1].is_empty() { &[] } else { &namespace };
                // Objects that cannot be created, or must be absent, get none.
                let _ = plane.kubectl(CLUSTER, &[&label, namespace].concat());
            }
            Ok(())
        });
    }

    /// Tries to create a Pod until the server refuses it with a message that contains `why`; fails after a minute.
    /// Admission learns of its policies through watches, so this takes a moment.
    fn refused(&mut self, why: &str) {
        let pod = ["run", "probe", "--image=registry.example/probe:1", "--dry-run=server", "-n", self.name];
        self.stage.act(|plane| {
            let started = Instant::now();
            loop {
                match plane.kubectl(CLUSTER, &pod) {
                    Err(error) if error.to_string().contains(why) => break Ok(()),
                    answer => ensure!(started.elapsed() < Duration::from_secs(60), "{answer:?}"),
                }
            }
        });
    }

    /// Waits until an object of this kind in the app's namespace satisfies `is_so`.
    fn until(&mut self, kind: &str, is_so: impl Fn(&Value) -> bool) {
        let name = self.name;
        self.stage.act(|plane| {
            let started = Instant::now();
            loop {
                let objects = record(plane, kind, name)?;
                if objects.iter().any(&is_so) {
                    break Ok(());
                }
                ensure!(
                    started.elapsed() < Duration::from_secs(120),
                    "{name}: the cluster still does not know: {objects:#?}"
                );
            }
        });
    }

    /// Runs `taffrail get apps`, prints how long that took, and returns the apps.
    #[expect(clippy::print_stdout, reason = "shown where the test fails, and with --show-output")]
    fn look(&mut self) -> Apps {
        let started = Instant::now();
        let apps = self.stage.look();
        println!("{}: looked in {} ms", self.name, started.elapsed().as_millis());
        apps
    }

    fn explain(&mut self, arguments: &[&str]) -> Answer {
        let name = format!("{HOME}/{}", self.name);
        let all = [&["explain", &name, "--context", CLUSTER], arguments].concat();
        let answer = self.stage.taffrail(Who::Admin, &all);
        assert_eq!((answer.code, &*answer.stderr), (0, ""), "{answer}");
        answer
    }

    /// Asserts that Taffrail now shows the app with this status and with a message that contains `words`, and that
    /// `explain` returns this cause chain.
    #[track_caller]
    fn shows(&mut self, status: &str, words: &str, chain: &[Link]) {
        let apps = self.look();
        apps.row(CLUSTER, "flux-kustomization", HOME, self.name).is("/health", status).has("/message", words);

        let answer = self.explain(&["-o", "json"]);
        let explanation: Value = serde_json::from_str(&answer.stdout).expect("JSON");
        assert_eq!(explanation["health"], status, "{answer}");
        assert!(explanation["message"].as_str().is_some_and(|message| message.contains(words)), "{answer}");
        let links: Vec<[&str; 3]> = explanation["chain"]
            .as_array()
            .expect("a chain")
            .iter()
            .map(|link| {
                [&link["object"]["kind"], &link["status"], &link["reason"]]
                    .map(|it| it.as_str().unwrap_or(""))
            })
            .collect();
        let is_same = |(link, (kind, status, reason)): (&[&str; 3], &Link)| {
            link[0] == *kind && link[1] == *status && link[2].contains(reason)
        };
        assert!(
            links.len() == chain.len() && links.iter().zip(chain).all(is_same),
            "{links:?}\nis not {chain:?}\n{answer}"
        );

        let text = self.explain(&[]);
        let word = if status == "Current" { "Ready" } else { status };
        assert!(
            text.stdout.starts_with(&format!("flux-kustomization {HOME}/{} is {word}\n", self.name)),
            "{text}"
        );
        // Long words are broken over lines.
        let flat = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{text}");
    }
}

/// Returns the manifest of a Deployment `web` whose Pods have this fault.
fn deployment(replicas: u32, annotations: &str, spec: &str, pod: &str) -> String {
    format!(
        "\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: \"${{NAME}}\"}}
spec:
  replicas: {replicas}
{spec}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata:
      labels: {{app: web}}
      annotations: {{{annotations}}}
    spec:
{pod}
      containers:
        - name: web
          image: registry.example/web:2
"
    )
}

const WEB: &str = "${NAME}_web_apps_Deployment";

/// Returns a check that the first container of this list waits for one of these reasons.
fn waits(list: &'static str, reasons: &'static [&'static str]) -> impl Fn(&Value) -> bool {
    move |pod| {
        let reason = &pod["status"][list][0]["state"]["waiting"]["reason"];
        reason.as_str().is_some_and(|reason| reasons.contains(&reason))
    }
}

fn condition(object: &Value, name: &str, status: &str, reason: &str) -> bool {
    object["status"]["conditions"].as_array().into_iter().flatten().any(|condition| {
        condition["type"] == name
            && condition["status"] == status
            && condition["reason"].as_str().unwrap_or_default().contains(reason)
    })
}

fn simulate(fault: &str) -> String {
    deployment(2, &format!("taffrail.dev/simulate: {fault}"), "", "")
}

fn an_image_that_cannot_be_pulled(stage: &mut Stage) {
    let mut broken = stage.broken_web("bad-image", &simulate("image-pull-backoff"));
    broken.until("pods", waits("containerStatuses", &["ErrImagePull", "ImagePullBackOff"]));
    let words = "failed to resolve reference \"registry.example/web:2\": registry.example/web:2: not found";
    broken
        .look()
        .row(CLUSTER, "flux-kustomization", HOME, "bad-image")
        .is("/health", "Failed")
        .has("/message", words);
    // A moment later the kubelet backs off, and nothing else changes.
    broken.until("pods", waits("containerStatuses", &["ImagePullBackOff"]));
    broken.shows(
        "Failed",
        words,
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", ""), ("Pod", "Failed", "")],
    );
}

fn a_container_that_crashes(stage: &mut Stage) {
    let mut broken = stage.broken_web("crash-loop", &simulate("crash-loop"));
    broken.until("pods", waits("containerStatuses", &["CrashLoopBackOff"]));
    broken.shows(
        "Failed",
        "back-off 5m0s restarting failed container=web",
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", ""), ("Pod", "Failed", "CrashLoopBackOff")],
    );
}

fn an_init_container_that_crashes(stage: &mut Stage) {
    let init = "      initContainers: [{name: migrate, image: registry.example/migrate:1}]";
    let manifests = deployment(1, "taffrail.dev/simulate: init-crash-loop", "", init);
    let mut broken = stage.broken_web("init-crash-loop", &manifests);
    broken.until("pods", waits("initContainerStatuses", &["CrashLoopBackOff"]));
    broken.shows(
        "Failed",
        "back-off 5m0s restarting failed container=migrate",
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", ""), ("Pod", "Failed", "CrashLoopBackOff")],
    );
}

fn a_container_that_is_killed_for_its_memory(stage: &mut Stage) {
    let mut broken = stage.broken_web("out-of-memory", &simulate("out-of-memory"));
    broken.until("pods", waits("containerStatuses", &["CrashLoopBackOff"]));
    broken.shows(
        "Failed",
        "container web was OOMKilled (exit code 137), 3 restarts",
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", ""), ("Pod", "Failed", "OOMKilled")],
    );
}

fn a_config_map_that_is_missing(stage: &mut Stage) {
    let from = "          envFrom: [{configMapRef: {name: settings}}]\n";
    let mut broken = stage.broken_web("missing-config", &(simulate("missing-config") + from));
    broken.until("pods", waits("containerStatuses", &["CreateContainerConfigError"]));
    broken.shows(
        "Failed",
        "configmap \"settings\" not found",
        &[
            ("Deployment", "Failed", ""),
            ("ReplicaSet", "Failed", ""),
            ("Pod", "Failed", "CreateContainerConfigError"),
        ],
    );
}

const QUOTA: &str = "\
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: \"${NAME}\"}
spec: {hard: {pods: \"1\"}}
";

fn a_quota_that_is_used_up(stage: &mut Stage) {
    let mut broken = stage.broken("quota");
    broken.prepare(QUOTA);
    // Admission uses the status that the quota controller wrote.
    broken.until("resourcequotas", |quota| quota["status"]["hard"]["pods"] == "1");
    broken.deliver(&[WEB], &deployment(3, "", "", ""));
    broken.until("replicasets", |set| condition(set, "ReplicaFailure", "True", "FailedCreate"));
    broken.shows(
        "Failed",
        "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1",
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", "FailedCreate")],
    );
}

fn a_quota_that_a_stateful_set_runs_into(stage: &mut Stage) {
    let set = "\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: \"${NAME}\"}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: registry.example/db:1}]}
";
    let mut broken = stage.broken("quota-set");
    broken.prepare(QUOTA);
    broken.until("resourcequotas", |quota| quota["status"]["hard"]["pods"] == "1");
    broken.deliver(&["${NAME}_db_apps_StatefulSet"], set);
    // A StatefulSet has no condition for a refusal; Kubernetes writes an event only.
    broken.until("events", |event| event["reason"] == "FailedCreate");
    broken.shows("Failed", "exceeded quota: small", &[("StatefulSet", "Failed", "FailedCreate")]);
}

fn a_pod_that_fits_no_node(stage: &mut Stage) {
    const WORDS: &str = "node(s) didn't match Pod's node affinity/selector";
    const CHAIN: [&str; 3] = ["Deployment", "ReplicaSet", "Pod"];

    let manifests = deployment(1, "", "", "      nodeSelector: {disk: none}");
    let mut broken = stage.broken_web("unschedulable", &manifests);
    broken.until("pods", |pod| condition(pod, "PodScheduled", "False", "Unschedulable"));
    // The scheduler may be waiting for a node: kstatus gives it 15 s.
    let waiting = broken.look();
    let age = |plane: &ControlPlane| -> Result<i64> {
        let created: jiff::Timestamp =
            record(plane, "pods", "unschedulable")?[0]["metadata"]["creationTimestamp"]
                .as_str()
                .context("a time")?
                .parse()?;
        Ok(jiff::Timestamp::now().duration_since(created).as_secs())
    };
    let is_early = broken.stage.ask(|plane| Ok(age(plane)? < 15));
    if is_early {
        waiting
            .row(CLUSTER, "flux-kustomization", HOME, broken.name)
            .is("/health", "InProgress")
            .has("/message", WORDS);
    }
    broken.stage.act(|plane| {
        while age(plane)? < 16 {}
        Ok(())
    });
    broken.shows(
        "Failed",
        WORDS,
        &CHAIN.map(|kind| (kind, "Failed", if kind == "Pod" { "Unschedulable" } else { "" })),
    );
}

fn a_readiness_probe_that_fails(stage: &mut Stage) {
    const WORDS: &str = "Readiness probe failed: HTTP probe failed with statuscode: 503";

    let manifests = deployment(1, "taffrail.dev/simulate: never-ready", "  progressDeadlineSeconds: 15", "");
    let mut broken = stage.broken_web("never-ready", &manifests);
    broken.until("pods", |pod| condition(pod, "Ready", "False", "ContainersNotReady"));
    broken.until("events", |event| event["reason"] == "Unhealthy");
    // It may still succeed: no cause is hard before the deadline. Its message is shown immediately.
    broken.shows(
        "InProgress",
        WORDS,
        &[
            ("Deployment", "InProgress", ""),
            ("ReplicaSet", "InProgress", ""),
            ("Pod", "InProgress", "Unhealthy"),
        ],
    );
    broken.until("deployments", |web| condition(web, "Progressing", "False", "ProgressDeadlineExceeded"));
    broken.shows(
        "Failed",
        WORDS,
        &[
            ("Deployment", "Failed", "ProgressDeadlineExceeded"),
            ("ReplicaSet", "InProgress", ""),
            ("Pod", "InProgress", "Unhealthy"),
        ],
    );
}

fn a_node_that_dies(stage: &mut Stage) {
    const NODE: &str = "\
apiVersion: v1
kind: Node
metadata:
  name: doomed
  labels: {kubernetes.io/hostname: doomed, taffrail.dev/doomed: 'yes'}
  annotations: {kwok.x-k8s.io/node: fake}
spec:
  taints: [{key: taffrail.dev/doomed, effect: NoSchedule}]
";
    const SET_NAME: &str = "node-lost-set";
    // The Pod of the set is deleted after a second, and stays: only its kubelet could report that it has ended.
    const SET: &str = "\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: \"${NAME}\"}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      nodeSelector: {taffrail.dev/doomed: 'yes'}
      tolerations:
        - {key: taffrail.dev/doomed, operator: Exists}
        - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
      containers: [{name: db, image: registry.example/db:1}]
";
    let pod = "      nodeSelector: {taffrail.dev/doomed: 'yes'}
      tolerations: [{key: taffrail.dev/doomed, operator: Exists}]";
    stage.broken(SET_NAME);
    let mut web = stage.broken("node-lost");
    web.prepare(NODE);
    web.deliver(&[WEB], &deployment(2, "", "", pod));
    web.other(SET_NAME).deliver(&["${NAME}_db_apps_StatefulSet"], SET);
    web.until("deployments", |web| condition(web, "Available", "True", ""));
    web.other(SET_NAME).until("statefulsets", |set| set["status"]["availableReplicas"] == 1);
    for name in ["node-lost", SET_NAME] {
        let row = web.look();
        row.row(CLUSTER, "flux-kustomization", HOME, name).is("/health", "Current");
    }

    web.stage.act(|plane| plane.stop_node(CLUSTER, "doomed"));
    web.until("deployments", |web| condition(web, "Available", "False", ""));
    web.shows(
        "Failed",
        "Kubelet stopped posting node status.",
        &[
            ("Deployment", "Failed", ""),
            ("ReplicaSet", "Failed", ""),
            ("Pod", "Failed", "NodeLost"),
            ("Node", "Failed", "NodeStatusUnknown"),
        ],
    );
    web.other(SET_NAME).until("pods", |pod| pod["metadata"]["deletionTimestamp"].is_string());
    web.other(SET_NAME).shows(
        "Failed",
        "Kubelet stopped posting node status.",
        &[
            ("StatefulSet", "Failed", ""),
            ("Pod", "Terminating", "NodeLost"),
            ("Node", "Failed", "NodeStatusUnknown"),
        ],
    );

    // The deleted Pod may be ready once more before its kubelet ends it and another takes its place.
    let mut deleted = Value::Null;
    web.stage.act(|plane| {
        deleted = record(plane, "pods", SET_NAME)?[0]["metadata"]["uid"].take();
        plane.start_node(CLUSTER, "doomed")
    });
    web.until("deployments", |web| condition(web, "Available", "True", ""));
    let ready = Cell::new(None);
    web.other(SET_NAME).until("pods", |pod| {
        ready.set(version(pod));
        pod["metadata"]["uid"] != deleted && condition(pod, "Ready", "True", "")
    });
    // An older status may still count the deleted Pod.
    web.other(SET_NAME)
        .until("statefulsets", |set| set["status"]["availableReplicas"] == 1 && version(set) > ready.get());
    for name in ["node-lost", SET_NAME] {
        let row = web.look();
        row.row(CLUSTER, "flux-kustomization", HOME, name).is("/health", "Current");
    }
}

const HELD: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: \"${NAME}\", finalizers: [example.dev/hold]}
";

fn a_finalizer_that_nobody_removes(stage: &mut Stage) {
    let mut broken = stage.broken("finalizer");
    broken.deliver(&["${NAME}_settings__ConfigMap"], HELD);
    broken.stage.act(|plane| {
        let delete = ["delete", "configmap", "settings", "-n", "finalizer", "--wait=false"];
        plane.kubectl(CLUSTER, &delete).map(drop)
    });
    broken.until("configmaps", |map| map["metadata"]["deletionTimestamp"].is_string());
    broken.shows(
        "Terminating",
        "waits for finalizers: example.dev/hold",
        &[("ConfigMap", "Terminating", "Finalizers")],
    );
    let text = broken.explain(&[]);
    assert!(text.stdout.contains("Finalizers, being deleted for"), "{text}");
}

fn a_namespace_that_cannot_go(stage: &mut Stage) {
    let mut broken = stage.broken("finalizer-namespace");
    // No app declares the object that blocks it.
    broken.deliver(&[], HELD);
    broken.stage.act(|plane| {
        plane.kubectl(CLUSTER, &["delete", "namespace", "finalizer-namespace", "--wait=false"])?;
        let started = Instant::now();
        loop {
            let get = ["get", "namespace", "finalizer-namespace", "-o", "json"];
            let namespace: Value = serde_json::from_str(&plane.kubectl(CLUSTER, &get)?)?;
            if condition(&namespace, "NamespaceFinalizersRemaining", "True", "") {
                break Ok(());
            }
            ensure!(started.elapsed() < Duration::from_secs(60), "the namespace controller never said so");
        }
    });
    broken.shows(
        "Terminating",
        "waits for finalizers: example.dev/hold",
        &[("Namespace", "Terminating", "SomeFinalizersRemain"), ("ConfigMap", "Terminating", "Finalizers")],
    );
}

fn a_job_that_has_failed(stage: &mut Stage) {
    let job = "\
apiVersion: batch/v1
kind: Job
metadata: {name: import, namespace: \"${NAME}\"}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {taffrail.dev/simulate: exit-1}}
    spec: {restartPolicy: Never, containers: [{name: import, image: registry.example/import:1}]}
";
    let mut broken = stage.broken("failed-job");
    broken.deliver(&["${NAME}_import_batch_Job"], job);
    broken.until("jobs", |job| condition(job, "Failed", "True", "BackoffLimitExceeded"));
    broken.shows(
        "Failed",
        "container import ended with exit code 1 (Error)",
        &[("Job", "Failed", "BackoffLimitExceeded"), ("Pod", "Failed", "Error")],
    );
    let text = broken.explain(&[]);
    assert!(text.stdout.contains("kubectl logs import-"), "{text}");
    // kstatus calls a Pod that ended Current, however it ended; Ready must not be shown beside a Job that failed.
    let app = ["app", "broken/failed-job", "--context", CLUSTER];
    let app = broken.stage.taffrail(Who::Admin, &app);
    let pod = app.stdout.lines().find(|line| line.starts_with("Pod ")).unwrap_or_default();
    assert!(pod.contains(" Failed ") && pod.contains("container import ended"), "{app}");
}

fn a_webhook_that_does_not_answer(stage: &mut Stage) {
    // Nothing listens on the port of the discard protocol.
    const WEBHOOK: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: \"${NAME}\"}
webhooks:
  - name: guard.example.dev
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    clientConfig: {url: 'https://127.0.0.1:9/validate'}
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: \"${NAME}\"}}
    rules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
";
    let mut broken = stage.broken("webhook-dead");
    broken.prepare(WEBHOOK);
    broken.refused("failed calling webhook \"guard.example.dev\"");
    broken.deliver(&[WEB], &deployment(1, "", "", ""));
    broken.until("replicasets", |set| condition(set, "ReplicaFailure", "True", "FailedCreate"));
    broken.shows(
        "Failed",
        "failed calling webhook \"guard.example.dev\"",
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", "FailedCreate")],
    );
}

fn a_policy_that_denies(stage: &mut Stage) {
    const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: \"${NAME}\"}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  validations:
    - expression: object.spec.containers.all(c, c.image.startsWith('registry.internal/'))
      message: images come from registry.internal
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: \"${NAME}\"}
spec:
  policyName: \"${NAME}\"
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: \"${NAME}\"}}}
";
    let mut broken = stage.broken("policy-denies");
    broken.prepare(POLICY);
    broken.refused("denied request: images come from registry.internal");
    broken.deliver(&[WEB], &deployment(1, "", "", ""));
    broken.until("replicasets", |set| condition(set, "ReplicaFailure", "True", "FailedCreate"));
    broken.shows(
        "Failed",
        "denied request: images come from registry.internal",
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", "FailedCreate")],
    );
}

scenarios![1: an_image_that_cannot_be_pulled, a_container_that_crashes, an_init_container_that_crashes, a_container_that_is_killed_for_its_memory, a_config_map_that_is_missing, a_quota_that_is_used_up, a_quota_that_a_stateful_set_runs_into, a_pod_that_fits_no_node, a_readiness_probe_that_fails, a_node_that_dies, a_finalizer_that_nobody_removes, a_namespace_that_cannot_go, a_job_that_has_failed, a_webhook_that_does_not_answer, a_policy_that_denies];
