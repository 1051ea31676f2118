//! Actions, and the health rules of a cluster's own Argo CD, on real Kubernetes. These tests cannot be recorded, as
//! they change the objects that they read.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use taffrail_testkit::kube::ControlPlane;
use taffrail_testkit::objects;

use crate::harness::{Answer, CLUSTER, plane, run};

const PLACE: &str = "acting";

const OBJECTS: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: acting}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example/acting/web:1}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: night, namespace: acting}
spec:
  schedule: 0 1 * * *
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: run, image: registry.example/acting/night:1}]}
";

fn taffrail(plane: &ControlPlane, arguments: &[&str]) -> Answer {
    let place = ["--context", CLUSTER, "-n", PLACE, "--timeout", "60s"];
    run(plane.kubeconfig().as_os_str(), &[arguments, &place].concat())
}

fn done(plane: &ControlPlane, arguments: &[&str]) -> Answer {
    let answer = taffrail(plane, arguments);
    assert_eq!(answer.code, 0, "{answer}");
    answer
}

fn field(plane: &ControlPlane, object: &str, path: &str) -> String {
    let path = format!("jsonpath={{{path}}}");
    plane.kubectl(CLUSTER, &["get", object, "-n", PLACE, "-o", &path]).expect("it is there")
}

fn names(plane: &ControlPlane, kind: &str) -> BTreeSet<String> {
    let text = plane.kubectl(CLUSTER, &["get", kind, "-n", PLACE, "-o", "name"]).expect("a list");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn controllers_act_on_the_changes_of_an_action() {
    let Some(plane) = plane() else { return };
    plane.create_namespace(CLUSTER, PLACE).expect("a namespace");
    plane.apply(CLUSTER, OBJECTS).expect("objects");
    done(&plane, &["wait", "deploy/web"]);

    let scale = ["action", "scale", "deploy/web", "--param", "replicas=3"];
    done(&plane, &[&scale[..], &["--dry-run=server"]].concat());
    assert_eq!(field(&plane, "deploy/web", ".spec.replicas"), "2");
    let answer = done(&plane, &scale);
    assert!(answer.stdout.contains("-   replicas: 2\n+   replicas: 3\n"), "{answer}");
    done(&plane, &["wait", "deploy/web"]);
    assert_eq!(field(&plane, "deploy/web", ".status.readyReplicas"), "3");

    let before = names(&plane, "replicaset");
    done(&plane, &["action", "restart", "deploy/web"]);
    done(&plane, &["wait", "deploy/web"]);
    assert_eq!(
        names(&plane, "replicaset").difference(&before).count(),
        1,
        "new Pods have a ReplicaSet of their own"
    );

    done(&plane, &["action", "suspend", "cronjob/night"]);
    assert_eq!(field(&plane, "cronjob/night", ".spec.suspend"), "true");
    let refused = taffrail(&plane, &["action", "suspend", "cronjob/night"]);
    assert_eq!(refused.code, 2, "{refused}");
    done(&plane, &["action", "create-job", "cronjob/night"]);
    let jobs = names(&plane, "job");
    let job = jobs.first().expect("a Job").trim_start_matches("job.batch/").to_owned();
    assert_eq!(field(&plane, &format!("job/{job}"), ".metadata.ownerReferences[0].name"), "night");

    // A suspended Job, so that it cannot finish before it is terminated.
    let long = "\
apiVersion: batch/v1
kind: Job
metadata: {name: long, namespace: acting}
spec:
  suspend: true
  template:
    metadata: {annotations: {taffrail.dev/start-after: 10m}}
    spec: {restartPolicy: Never, containers: [{name: run, image: registry.example/acting/long:1}]}
";
    plane.apply(CLUSTER, long).expect("a Job");
    done(&plane, &["action", "terminate", "job/long"]);
    plane
        .wait(CLUSTER, &["--for=condition=Failed", "job/long", "-n", PLACE])
        .expect("Kubernetes calls it failed");
    let answer = taffrail(&plane, &["status", "job/long", "-o", "json"]);
    let status: Value =
        serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error} in {answer}"));
    assert_eq!(status["items"][0]["status"], "Failed", "{answer}");
    plane.kubectl(CLUSTER, &["delete", "--wait=false", "namespace", PLACE]).expect("it goes");
}

/// An Argo CD with a health script for a custom kind, and an app that declares two objects of it. The binding
/// identifies it.
const ARGO_CD: &str = r#"
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: controller, namespace: gitops, labels: {app.kubernetes.io/component: application-controller}}
spec:
  replicas: 0
  serviceName: controller
  selector: {matchLabels: {app: controller}}
  template:
    metadata: {labels: {app: controller}}
    spec: {serviceAccountName: gitops, containers: [{name: run, image: registry.example/argocd:3}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gitops-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: gitops, name: gitops}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: gitops, labels: {app.kubernetes.io/name: argocd-cm, app.kubernetes.io/part-of: argocd}}
data:
  resource.customizations.health.acting.example.com_Widget: |
    if obj.spec.broken then
      return {status = "Degraded", message = "it is broken in " .. obj.metadata.namespace}
    end
    return {status = "Healthy"}
  resource.customizations.actions.acting.example.com_Widget: |
    discovery.lua: |
      return {mend = {disabled = not obj.spec.broken}}
    definitions:
    - name: mend
      action.lua: |
        obj.spec.broken = false
        return obj
---
apiVersion: acting.example.com/v1
kind: Widget
metadata:
  name: one
  namespace: gitops
  annotations: {argocd.argoproj.io/tracking-id: "widgets:acting.example.com/Widget:gitops/one"}
spec: {broken: true}
---
apiVersion: acting.example.com/v1
kind: Widget
metadata:
  name: two
  namespace: gitops
  annotations: {argocd.argoproj.io/tracking-id: "widgets:acting.example.com/Widget:gitops/two"}
spec: {broken: false}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: widgets, namespace: gitops}
spec:
  project: default
  destination: {server: https://kubernetes.default.svc, namespace: gitops}
  source: {repoURL: https://git.example/widgets, path: .}
status:
  sync: {status: Synced, revision: 3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613}
  health: {status: Degraded}
  resources:
  - {group: acting.example.com, version: v1, kind: Widget, namespace: gitops, name: one, status: Synced}
  - {group: acting.example.com, version: v1, kind: Widget, namespace: gitops, name: two, status: Synced}
"#;

/// Returns the definition of a kind in any group; protected groups require an annotation.
fn definition(group: &str, version: &str, kind: &str) -> Value {
    let mut definition = objects::definition(group, version, kind, objects::with_spec_and_status());
    definition["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved"});
    definition
}

#[test]
fn argocd_cm_defines_health_and_actions() {
    let Some(plane) = plane() else { return };
    let kinds = [
        definition("acting.example.com", "v1", "Widget"),
        definition("argoproj.io", "v1alpha1", "Application"),
    ];
    let kinds = kinds.map(|kind| kind.to_string()).join("\n---\n");
    plane.apply(CLUSTER, &kinds).expect("kinds");
    let crds = ["crd/widgets.acting.example.com", "crd/applications.argoproj.io"];
    plane.wait(CLUSTER, &[&["--for=condition=Established"], &crds[..]].concat()).expect("they are served");
    plane.create_namespace(CLUSTER, "gitops").expect("a namespace");
    plane.apply(CLUSTER, ARGO_CD).expect("objects");

    let ask = |arguments: &[&str]| {
        let place = ["--context", CLUSTER, "-n", "gitops", "--timeout", "30s"];
        let answer = run(plane.kubeconfig().as_os_str(), &[arguments, &place].concat());
        assert_eq!(answer.code, 0, "{answer}");
        answer
    };
    let widgets = || {
        let answer = ask(&["get", "resources", "-o", "json"]);
        let list: Value =
            serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error} in {answer}"));
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let row = |item: &Value| json!([item["name"], item["status"], item["rule"], item["message"]]);
        let mut rows: Vec<Value> = items.iter().filter(|item| item["kind"] == "Widget").map(row).collect();
        rows.sort_by_key(|row| row[0].to_string());
        rows
    };
    let healthy = "cluster/lua/acting.example.com/Widget#Healthy";
    let degraded = "cluster/lua/acting.example.com/Widget#Degraded";
    let [one, two] = &widgets()[..] else { panic!("two widgets") };
    assert_eq!(*one, json!(["one", "Failed", degraded, "it is broken in gitops"]));
    assert_eq!((&two[1], &two[2]), (&json!("Current"), &json!(healthy)));

    let offers = ask(&["actions", "widget/one"]);
    assert!(offers.stdout.contains("cluster/mend   cluster   yes"), "{offers}");
    ask(&["action", "cluster/mend", "widget/one", "--yes"]);
    let one = &widgets()[0];
    assert_eq!((&one[1], &one[2]), (&json!("Current"), &json!(healthy)));

    plane.kubectl(CLUSTER, &["delete", "clusterrolebinding", "gitops-controller"]).expect("it goes");
    plane.kubectl(CLUSTER, &["delete", "--wait=false", "namespace", "gitops"]).expect("it goes");
    plane.kubectl(CLUSTER, &[&["delete"], &crds[..]].concat()).expect("kinds go");
}
