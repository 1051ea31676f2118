//! kubectl as people use it, unchanged, against a simulated cluster.

use std::io::Write as _;
use std::path::PathBuf;

use taffrail_sim::{Cluster, Fleet};
use tokio::process::Command;
use xtask::kube::Programs;

const WEB: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'example.com/web:1', ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";

/// A cluster, and a kubectl that talks to it.
struct Kubectl {
    program: PathBuf,
    folder: tempfile::TempDir,
    _fleet: Fleet,
    _cluster: Cluster,
}

impl Kubectl {
    /// `None` where there is no kubectl, which is said.
    async fn start(test: &str) -> Option<Kubectl> {
        // It is built with the control plane; without that it would take minutes to have it.
        if let Some(why) = Programs::unavailable().unwrap() {
            let _ = writeln!(std::io::stderr(), "{test}: skipped: {why}");
            return None;
        }
        let program =
            tokio::task::spawn_blocking(|| Programs::ensure().unwrap().path("kubectl")).await.unwrap();
        let fleet = Fleet::builder().seed(3).nodes(2).start().await.unwrap();
        let cluster = fleet.cluster("kind").await.unwrap();
        cluster.apply_yaml(WEB).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), cluster.kubeconfig()).unwrap();
        Some(Kubectl { program, folder, _fleet: fleet, _cluster: cluster })
    }

    async fn run(&self, arguments: &str) -> (bool, String) {
        let output = Command::new(&self.program)
            .args(arguments.split(' '))
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            .env("KUBECACHEDIR", self.folder.path().join("cache"))
            .env("KUBERC", "off")
            .stdin(std::process::Stdio::null())
            .output()
            .await
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    /// It must work and say this.
    async fn says(&self, arguments: &str, parts: &[&str]) -> String {
        let (worked, text) = self.run(arguments).await;
        assert!(worked, "kubectl {arguments}\n{text}");
        for part in parts {
            assert!(text.contains(part), "kubectl {arguments}: no {part:?} in\n{text}");
        }
        text
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_is_watched_changed_and_taken_back() {
    let Some(kubectl) = Kubectl::start("a_rollout_is_watched_changed_and_taken_back").await else { return };
    let done = "\"web\" successfully rolled out";
    kubectl.says("rollout status deployment/web -n shop --timeout=60s", &[done]).await;
    kubectl
        .says(
            "get deployment web -n shop",
            &["NAME   READY   UP-TO-DATE   AVAILABLE", "web    2/2     2            2"],
        )
        .await;
    kubectl.says("scale deployment web --replicas=3 -n shop", &["deployment.apps/web scaled"]).await;
    kubectl.says("rollout status deployment/web -n shop --timeout=60s", &[done]).await;
    let pods = kubectl.says("get pods -n shop -o name -l app=web", &[]).await;
    assert_eq!(pods.lines().count(), 3, "{pods}");
    kubectl.says("set image deployment/web main=example.com/web:2 -n shop", &["image updated"]).await;
    kubectl
        .says("rollout status deployment/web -n shop --timeout=60s", &["Waiting for deployment", done])
        .await;
    kubectl.says("get rs -n shop -o wide", &["example.com/web:1", "example.com/web:2"]).await;
    kubectl.says("rollout undo deployment/web -n shop", &["rolled back"]).await;
    kubectl.says("rollout status deployment/web -n shop --timeout=60s", &[done]).await;
    let image = "get deployment web -n shop -o jsonpath={.spec.template.spec.containers[0].image}";
    kubectl.says(image, &["example.com/web:1"]).await;
    kubectl.says("delete pod -n shop -l app=web", &["deleted"]).await;
    kubectl.says("rollout status deployment/web -n shop --timeout=60s", &[done]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_described_marked_and_deleted() {
    let Some(kubectl) = Kubectl::start("objects_are_described_marked_and_deleted").await else { return };
    kubectl.says("rollout status deployment/web -n shop --timeout=60s", &[]).await;
    let described =
        ["Replicas:               2 desired | 2 updated | 2 total | 2 available", "ScalingReplicaSet"];
    kubectl.says("describe deployment web -n shop", &described).await;
    let pods = kubectl.says("get pods -n shop -o name", &["pod/web-"]).await;
    let first = pods.lines().next().unwrap();
    let described =
        ["Controlled By:  ReplicaSet/web-", "Successfully assigned shop/web-", "Container started: main"];
    kubectl.says(&format!("describe {first} -n shop"), &described).await;
    kubectl.says("describe service web -n shop", &["Endpoints:", ":8080"]).await;
    kubectl.says("describe node node-1", &["Ready", "KubeletReady", "Non-terminated Pods"]).await;
    kubectl.says("annotate deployment web -n shop note=seen", &["annotated"]).await;
    kubectl.says("label deployment web -n shop team=a", &["labeled"]).await;
    kubectl.says("get deployment -A -l team=a --show-labels", &["team=a"]).await;
    kubectl
        .says("get all -n shop", &["service/web", "deployment.apps/web", "replicaset.apps/web-", "pod/web-"])
        .await;
    kubectl.says("delete deployment web -n shop --cascade=foreground --timeout=60s", &["deleted"]).await;
    kubectl.says("get rs,pods -n shop", &["No resources found"]).await;
    kubectl.says("delete namespace shop --timeout=60s", &["deleted"]).await;
    let (worked, text) = kubectl.run("get namespace shop").await;
    assert!(
        !worked && text.contains("Error from server (NotFound): namespaces \"shop\" not found"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kinds_rights_and_new_objects() {
    let Some(kubectl) = Kubectl::start("kinds_rights_and_new_objects").await else { return };
    kubectl
        .says("api-resources --api-group=apps", &["deployments", "deploy", "apps/v1", "true", "Deployment"])
        .await;
    // The second time discovery comes from kubectl's cache, told to be unchanged.
    kubectl.says("api-resources --api-group=apps", &["deployments"]).await;
    kubectl.says("version", &["Server Version: v1.36.3"]).await;
    kubectl.says("auth can-i delete pods", &["yes"]).await;
    kubectl.says("auth whoami", &["admin"]).await;
    kubectl.says("create namespace tools", &["namespace/tools created"]).await;
    kubectl.says("create configmap a --from-literal=k=v -n tools", &["configmap/a created"]).await;
    kubectl.says("create secret generic b --from-literal=k=v -n tools", &["secret/b created"]).await;
    kubectl.says("get secret b -n tools -o jsonpath={.data.k}", &["dg=="]).await;
    let manifest = kubectl.folder.path().join("web.yaml");
    std::fs::write(&manifest, WEB.replace("replicas: 2", "replicas: 1").replace("shop", "tools")).unwrap();
    kubectl.says(&format!("apply -f {}", manifest.display()), &["deployment.apps/web created"]).await;
    kubectl.says(&format!("apply -f {}", manifest.display()), &["deployment.apps/web unchanged"]).await;
    kubectl
        .says("wait --for=condition=Available deployment/web -n tools --timeout=60s", &["condition met"])
        .await;
    kubectl.says("drain node-1 --ignore-daemonsets --timeout=60s", &["drained"]).await;
    let (worked, text) = kubectl.run(&format!("apply --server-side -f {}", manifest.display())).await;
    assert!(
        !worked && text.contains("server-side apply is not supported by the simulated API server"),
        "{text}"
    );
}
