//! Apps that are broken, one way each: what `get apps` and `explain` say from the moment the cluster knows.
//!
//! That moment is when Kubernetes' own record, as kubectl reads it, holds the decisive word. The look that starts right
//! after it must be right, so what people wait for is the time of one look, which is printed and not asserted.
//!
//! What is right is not always Failed. A cause that waiting cannot mend is. A readiness probe may still succeed before the
//! rollout's deadline, a Job may still have tries left, and what is being deleted stays Terminating however long it
//! takes: there the status says so, and the words of the cause say why.

use std::time::{Duration, Instant};

use serde_json::Value;
use xtask::examples::{apply_source, kustomization};
use xtask::kube::ControlPlane;

use crate::harness::{Answer, Apps, CLUSTER, apps, built, plane, taffrail};

/// Where the apps are declared: what happens to the objects of one must not reach its declaration.
const HOME: &str = "broken";

/// An app of one namespace, which has its name.
struct Broken {
    plane: &'static ControlPlane,
    name: &'static str,
}

/// A link of a chain: kind, status, and a part of its reason.
type Link = (&'static str, &'static str, &'static str);

impl Broken {
    /// Makes the namespace. `None` where there can be no control plane.
    fn named(name: &'static str) -> Option<Self> {
        let plane = plane()?;
        // So that the first look is not a build.
        built();
        apply_source(plane, CLUSTER).expect("the source is applied");
        plane.create_namespace(CLUSTER, HOME).expect("a namespace");
        plane.create_namespace(CLUSTER, name).expect("a namespace");
        Some(Self { plane, name })
    }

    /// Applies what no app declares.
    fn prepare(&self, manifests: &str) {
        self.plane.apply(CLUSTER, &manifests.replace("${NAME}", self.name)).expect("what is there before");
    }

    /// Makes the objects, and declares them and the namespace.
    fn deliver(&self, inventory: &[&str], manifests: &str) {
        let inventory: Vec<String> = ["_${NAME}__Namespace"]
            .iter()
            .chain(inventory)
            .map(|id| id.replace("${NAME}", self.name))
            .collect();
        let inventory: Vec<&str> = inventory.iter().map(String::as_str).collect();
        let declaration = kustomization(HOME, self.name, &inventory);
        self.plane.apply_with_status(CLUSTER, &declaration).expect("the declaration");
        self.plane.apply(CLUSTER, &manifests.replace("${NAME}", self.name)).expect("the objects");
    }

    /// Makes an app of the Deployment `web`.
    fn web(name: &'static str, manifests: &str) -> Option<Self> {
        let broken = Self::named(name)?;
        broken.deliver(&[WEB], manifests);
        Some(broken)
    }

    /// Waits until no Pod can be created for this reason: admission learns of what it enforces by watches.
    fn refused(&self, why: &str) {
        let pod = ["run", "probe", "--image=registry.example/probe:1", "--dry-run=server", "-n", self.name];
        let started = Instant::now();
        loop {
            match self.plane.kubectl(CLUSTER, &pod) {
                Err(error) if error.to_string().contains(why) => break,
                answer => assert!(started.elapsed() < Duration::from_secs(60), "{}: {answer:?}", self.name),
            }
        }
    }

    /// The objects of a kind in the app's namespace, as kubectl reads them.
    fn record(&self, kind: &str) -> Vec<Value> {
        let text = self
            .plane
            .kubectl(CLUSTER, &["get", kind, "-n", self.name, "-o", "json"])
            .expect("kubectl answers");
        let list: Value = serde_json::from_str(&text).expect("kubectl writes JSON");
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Returns when an object of this kind is as it should be.
    fn until(&self, kind: &str, is_so: impl Fn(&Value) -> bool) {
        let started = Instant::now();
        loop {
            let objects = self.record(kind);
            if objects.iter().any(&is_so) {
                break;
            }
            let waited = started.elapsed();
            assert!(
                waited < Duration::from_secs(120),
                "{}: the cluster still does not know: {objects:#?}",
                self.name
            );
        }
    }

    /// Looks, says how long that took, and gives the answer.
    #[expect(clippy::print_stdout, reason = "shown where the test fails, and with --show-output")]
    fn look(&self) -> Apps {
        let started = Instant::now();
        let apps = apps(self.plane.kubeconfig(), &["--context", CLUSTER]);
        println!("{}: looked in {} ms", self.name, started.elapsed().as_millis());
        apps
    }

    fn explain(&self, arguments: &[&str]) -> Answer {
        let name = format!("{HOME}/{}", self.name);
        let answer = taffrail(
            self.plane.kubeconfig(),
            &[&["explain", &name, "--context", CLUSTER], arguments].concat(),
        );
        assert_eq!((answer.code, &*answer.stderr), (0, ""), "{answer}");
        answer
    }

    /// The app must have this status now, with these words, and this chain behind it.
    #[track_caller]
    fn shows(&self, status: &str, words: &str, chain: &[Link]) {
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

/// A Deployment `web` whose Pods have this fault.
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

/// Whether the first container (of this list) waits for this reason.
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

#[test]
fn an_image_that_cannot_be_pulled() {
    let Some(broken) = Broken::web("bad-image", &simulate("image-pull-backoff")) else { return };
    broken.until("pods", waits("containerStatuses", &["ErrImagePull", "ImagePullBackOff"]));
    let words = "failed to resolve reference \"registry.example/web:2\": registry.example/web:2: not found";
    broken
        .look()
        .row(CLUSTER, "flux-kustomization", HOME, "bad-image")
        .is("/health", "Failed")
        .has("/message", words);
    // The kubelet backs off a moment later, and that is all that changes.
    broken.until("pods", waits("containerStatuses", &["ImagePullBackOff"]));
    broken.shows(
        "Failed",
        words,
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", ""), ("Pod", "Failed", "")],
    );
}

#[test]
fn a_container_that_crashes() {
    let Some(broken) = Broken::web("crash-loop", &simulate("crash-loop")) else { return };
    broken.until("pods", waits("containerStatuses", &["CrashLoopBackOff"]));
    broken.shows(
        "Failed",
        "back-off 5m0s restarting failed container=web",
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", ""), ("Pod", "Failed", "CrashLoopBackOff")],
    );
}

#[test]
fn an_init_container_that_crashes() {
    let init = "      initContainers: [{name: migrate, image: registry.example/migrate:1}]";
    let manifests = deployment(1, "taffrail.dev/simulate: init-crash-loop", "", init);
    let Some(broken) = Broken::web("init-crash-loop", &manifests) else { return };
    broken.until("pods", waits("initContainerStatuses", &["CrashLoopBackOff"]));
    broken.shows(
        "Failed",
        "back-off 5m0s restarting failed container=migrate",
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", ""), ("Pod", "Failed", "CrashLoopBackOff")],
    );
}

#[test]
fn a_container_that_is_killed_for_its_memory() {
    let Some(broken) = Broken::web("out-of-memory", &simulate("out-of-memory")) else { return };
    broken.until("pods", waits("containerStatuses", &["CrashLoopBackOff"]));
    broken.shows(
        "Failed",
        "container web was OOMKilled (exit code 137), 3 restarts",
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", ""), ("Pod", "Failed", "OOMKilled")],
    );
}

#[test]
fn a_config_map_that_is_missing() {
    let from = "          envFrom: [{configMapRef: {name: settings}}]\n";
    let Some(broken) = Broken::web("missing-config", &(simulate("missing-config") + from)) else { return };
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

#[test]
fn a_quota_that_is_used_up() {
    let Some(broken) = Broken::named("quota") else { return };
    broken.prepare(QUOTA);
    // Admission goes by what the quota controller wrote.
    broken.until("resourcequotas", |quota| quota["status"]["hard"]["pods"] == "1");
    broken.deliver(&[WEB], &deployment(3, "", "", ""));
    broken.until("replicasets", |set| condition(set, "ReplicaFailure", "True", "FailedCreate"));
    broken.shows(
        "Failed",
        "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1",
        &[("Deployment", "Failed", ""), ("ReplicaSet", "Failed", "FailedCreate")],
    );
}

#[test]
fn a_quota_that_a_stateful_set_runs_into() {
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
    let Some(broken) = Broken::named("quota-set") else { return };
    broken.prepare(QUOTA);
    broken.until("resourcequotas", |quota| quota["status"]["hard"]["pods"] == "1");
    broken.deliver(&["${NAME}_db_apps_StatefulSet"], set);
    // It has no condition for a refusal; the event is all that is written.
    broken.until("events", |event| event["reason"] == "FailedCreate");
    broken.shows("Failed", "exceeded quota: small", &[("StatefulSet", "Failed", "FailedCreate")]);
}

#[test]
fn a_pod_that_fits_no_node() {
    const WORDS: &str = "node(s) didn't match Pod's node affinity/selector";
    const CHAIN: [&str; 3] = ["Deployment", "ReplicaSet", "Pod"];

    let manifests = deployment(1, "", "", "      nodeSelector: {disk: none}");
    let Some(broken) = Broken::web("unschedulable", &manifests) else { return };
    broken.until("pods", |pod| condition(pod, "PodScheduled", "False", "Unschedulable"));
    // The scheduler may be waiting for a node: kstatus gives it 15 s.
    let waiting = broken.look();
    let created =
        broken.record("pods")[0]["metadata"]["creationTimestamp"].as_str().expect("a time").to_owned();
    let created: jiff::Timestamp = created.parse().expect("a time");
    let is_early = jiff::Timestamp::now().duration_since(created).as_secs() < 15;
    if is_early {
        waiting
            .row(CLUSTER, "flux-kustomization", HOME, broken.name)
            .is("/health", "InProgress")
            .has("/message", WORDS);
    }
    while jiff::Timestamp::now().duration_since(created).as_secs() < 16 {
        broken.record("pods");
    }
    broken.shows(
        "Failed",
        WORDS,
        &CHAIN.map(|kind| (kind, "Failed", if kind == "Pod" { "Unschedulable" } else { "" })),
    );
}

#[test]
fn a_readiness_probe_that_fails() {
    const WORDS: &str = "Readiness probe failed: HTTP probe failed with statuscode: 503";

    let manifests = deployment(1, "taffrail.dev/simulate: never-ready", "  progressDeadlineSeconds: 15", "");
    let Some(broken) = Broken::web("never-ready", &manifests) else { return };
    broken.until("pods", |pod| condition(pod, "Ready", "False", "ContainersNotReady"));
    // It may still succeed: no cause is hard before the deadline. Its words are there at once.
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

#[test]
fn a_node_that_dies() {
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
    // The Pod of the set is deleted after a second, and stays: only its kubelet could say that it has ended.
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
    let (Some(web), Some(set)) = (Broken::named("node-lost"), Broken::named("node-lost-set")) else { return };
    web.prepare(NODE);
    web.deliver(&[WEB], &deployment(2, "", "", pod));
    set.deliver(&["${NAME}_db_apps_StatefulSet"], SET);
    web.until("deployments", |web| condition(web, "Available", "True", ""));
    set.until("statefulsets", |set| set["status"]["availableReplicas"] == 1);
    for broken in [&web, &set] {
        let row = broken.look();
        row.row(CLUSTER, "flux-kustomization", HOME, broken.name).is("/health", "Current");
    }

    web.plane.stop_node(CLUSTER, "doomed").expect("the node stops");
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
    set.until("pods", |pod| pod["metadata"]["deletionTimestamp"].is_string());
    set.shows(
        "Failed",
        "Kubelet stopped posting node status.",
        &[
            ("StatefulSet", "Failed", ""),
            ("Pod", "Terminating", "NodeLost"),
            ("Node", "Failed", "NodeStatusUnknown"),
        ],
    );

    web.plane.start_node(CLUSTER, "doomed").expect("the node comes back");
    web.until("deployments", |web| condition(web, "Available", "True", ""));
    set.until("statefulsets", |set| set["status"]["availableReplicas"] == 1);
    for broken in [&web, &set] {
        let row = broken.look();
        row.row(CLUSTER, "flux-kustomization", HOME, broken.name).is("/health", "Current");
    }
}

const HELD: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: \"${NAME}\", finalizers: [example.dev/hold]}
";

#[test]
fn a_finalizer_that_nobody_removes() {
    let Some(broken) = Broken::named("finalizer") else { return };
    broken.deliver(&["${NAME}_settings__ConfigMap"], HELD);
    broken
        .plane
        .kubectl(CLUSTER, &["delete", "configmap", "settings", "-n", broken.name, "--wait=false"])
        .expect("kubectl deletes");
    broken.until("configmaps", |map| map["metadata"]["deletionTimestamp"].is_string());
    broken.shows(
        "Terminating",
        "waits for finalizers: example.dev/hold",
        &[("ConfigMap", "Terminating", "Finalizers")],
    );
    let text = broken.explain(&[]);
    assert!(text.stdout.contains("Finalizers, being deleted since"), "{text}");
}

#[test]
fn a_namespace_that_cannot_go() {
    let Some(broken) = Broken::named("finalizer-namespace") else { return };
    // Nobody declares what holds it.
    broken.deliver(&[], HELD);
    broken
        .plane
        .kubectl(CLUSTER, &["delete", "namespace", broken.name, "--wait=false"])
        .expect("kubectl deletes");
    let is_stuck = |name: &str| {
        let text = broken
            .plane
            .kubectl(CLUSTER, &["get", "namespace", name, "-o", "json"])
            .expect("kubectl answers");
        let namespace: Value = serde_json::from_str(&text).expect("JSON");
        condition(&namespace, "NamespaceFinalizersRemaining", "True", "")
    };
    let started = Instant::now();
    while !is_stuck(broken.name) {
        assert!(started.elapsed() < Duration::from_secs(60), "the namespace controller never said so");
    }
    broken.shows(
        "Terminating",
        "waits for finalizers: example.dev/hold",
        &[("Namespace", "Terminating", "SomeFinalizersRemain"), ("ConfigMap", "Terminating", "Finalizers")],
    );
}

#[test]
fn a_job_that_has_failed() {
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
    let Some(broken) = Broken::named("failed-job") else { return };
    broken.deliver(&["${NAME}_import_batch_Job"], job);
    broken.until("jobs", |job| condition(job, "Failed", "True", "BackoffLimitExceeded"));
    broken.shows(
        "Failed",
        "container import ended with exit code 1 (Error)",
        &[("Job", "Failed", "BackoffLimitExceeded"), ("Pod", "Failed", "Error")],
    );
    let text = broken.explain(&[]);
    assert!(text.stdout.contains("kubectl logs import-"), "{text}");
    // kstatus calls a Pod that ended Current, however it ended; nobody should read Ready beside a Job that failed.
    let app = ["app", "broken/failed-job", "--context", CLUSTER];
    let app = taffrail(broken.plane.kubeconfig(), &app);
    let pod = app.stdout.lines().find(|line| line.starts_with("Pod ")).unwrap_or_default();
    assert!(pod.contains(" Failed ") && pod.contains("container import ended"), "{app}");
}

#[test]
fn a_webhook_that_does_not_answer() {
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
    let Some(broken) = Broken::named("webhook-dead") else { return };
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

#[test]
fn a_policy_that_denies() {
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
    let Some(broken) = Broken::named("policy-denies") else { return };
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
