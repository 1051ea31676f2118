//! Runs an unchanged kubectl, with the commands that people use, against a simulated cluster.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use taffrail_sim::{Cluster, Fleet};
use taffrail_testkit::kube::Programs;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

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

/// A simulated cluster, and the path and kubeconfig of a kubectl for it.
struct Kubectl {
    program: PathBuf,
    folder: tempfile::TempDir,
    _fleet: Fleet,
    _cluster: Cluster,
}

impl Kubectl {
    /// Starts a cluster; `None`, after a message, if there is no kubectl.
    async fn start(test: &str) -> Option<Kubectl> {
        // It is built with the control plane; building that first would take minutes.
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

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments.split(' '))
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            .env("KUBECACHEDIR", self.folder.path().join("cache"))
            .env("KUBERC", "off")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &str) -> (bool, String) {
        let output = self.command(arguments).output().await.unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    /// Asserts that kubectl succeeds with these arguments and that its output contains all `parts`; returns the output.
    async fn says(&self, arguments: &str, parts: &[&str]) -> String {
        let (worked, text) = self.run(arguments).await;
        assert!(worked, "kubectl {arguments}\n{text}");
        for part in parts {
            assert!(text.contains(part), "kubectl {arguments}: no {part:?} in\n{text}");
        }
        text
    }

    /// Asserts that kubectl fails with these arguments and that its output contains `part`.
    async fn fails(&self, arguments: &str, part: &str) {
        let (worked, text) = self.run(arguments).await;
        assert!(!worked && text.contains(part), "kubectl {arguments}: no {part:?} in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_rolls_out_and_undoes_a_deployment() {
    let Some(kubectl) = Kubectl::start("kubectl_rolls_out_and_undoes_a_deployment").await else { return };
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
async fn kubectl_describes_labels_and_deletes() {
    let Some(kubectl) = Kubectl::start("kubectl_describes_labels_and_deletes").await else { return };
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
async fn kubectl_lists_kinds_and_checks_permissions() {
    let Some(kubectl) = Kubectl::start("kubectl_lists_kinds_and_checks_permissions").await else { return };
    kubectl
        .says("api-resources --api-group=apps", &["deployments", "deploy", "apps/v1", "true", "Deployment"])
        .await;
    // The second time kubectl uses its cached discovery, after the server reports it as unchanged.
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
    // It takes over what its client-side apply wrote.
    let apply = format!("apply --server-side -f {}", manifest.display());
    kubectl.says(&apply, &["deployment.apps/web serverside-applied"]).await;
    kubectl.says(&format!("{apply} --dry-run=server"), &["serverside-applied (server dry run)"]).await;
    let (worked, text) = kubectl.run(&format!("{apply} --field-manager=other")).await;
    assert!(worked, "{text}");
    std::fs::write(&manifest, WEB.replace("replicas: 2", "replicas: 3").replace("shop", "tools")).unwrap();
    let (worked, text) = kubectl.run(&format!("{apply} --field-manager=third")).await;
    assert!(!worked && text.contains("conflict"), "{text}");
}

const SETS: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: 'example.com/db:1'}]}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: shop}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: 'example.com/agent:1'}]}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_rolls_out_and_undoes_sets() {
    let Some(kubectl) = Kubectl::start("kubectl_rolls_out_and_undoes_sets").await else { return };
    let manifest = kubectl.folder.path().join("sets.yaml");
    let apply = format!("apply -f {}", manifest.display());
    let (set, daemons) =
        ("rollout status sts/db -n shop --timeout=60s", "rollout status ds/agent -n shop --timeout=60s");
    let image = |pod: &str| {
        format!("get pods -n shop -l app={pod} -o jsonpath={{.items[*].spec.containers[0].image}}")
    };
    std::fs::write(&manifest, SETS).unwrap();
    kubectl.says(&apply, &["statefulset.apps/db created", "daemonset.apps/agent created"]).await;
    kubectl.says(set, &["2 new pods have been updated"]).await;
    kubectl.says(daemons, &["successfully rolled out"]).await;
    kubectl.says("get sts,ds,pvc -n shop", &["db   2/2", "data-db-0   Bound", "data-db-1   Bound"]).await;
    std::fs::write(&manifest, SETS.replace(":1'", ":2'")).unwrap();
    kubectl.says(&apply, &["statefulset.apps/db configured", "daemonset.apps/agent configured"]).await;
    kubectl.says(set, &["2 new pods have been updated"]).await;
    kubectl.says(daemons, &["successfully rolled out"]).await;
    kubectl.says(&image("db"), &["example.com/db:2 example.com/db:2"]).await;
    kubectl.says(&image("agent"), &["example.com/agent:2 example.com/agent:2"]).await;
    kubectl.says("rollout history sts/db -n shop --revision=1", &["example.com/db:1"]).await;
    kubectl.says("rollout history ds/agent -n shop --revision=2", &["example.com/agent:2"]).await;
    kubectl.says("rollout undo sts/db -n shop", &["rolled back"]).await;
    kubectl.says("rollout undo ds/agent -n shop", &["rolled back"]).await;
    kubectl.says(set, &["2 new pods have been updated"]).await;
    kubectl.says(daemons, &["successfully rolled out"]).await;
    kubectl.says(&image("db"), &["example.com/db:1 example.com/db:1"]).await;
    kubectl.says(&image("agent"), &["example.com/agent:1 example.com/agent:1"]).await;
    kubectl.says("rollout restart sts/db ds/agent -n shop", &["db restarted", "agent restarted"]).await;
    kubectl.says(set, &["2 new pods have been updated"]).await;
    kubectl.says("scale sts db --replicas=1 -n shop", &["scaled"]).await;
    kubectl.says("wait --for=delete pod/db-1 -n shop --timeout=60s", &["condition met"]).await;
    // The volumes of a Pod are kept for its return.
    kubectl.says("get pvc data-db-1 -n shop", &["Bound"]).await;
    kubectl
        .says("describe sts db -n shop", &["1 desired | 1 total", "create Pod db-0 in StatefulSet db"])
        .await;
    kubectl.says("describe ds agent -n shop", &["Desired Number of Nodes Scheduled: 2"]).await;
    kubectl.says("delete sts,ds --all -n shop", &["deleted"]).await;
    kubectl.says("wait --for=delete pod -l app=agent -n shop --timeout=60s", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_create_generators_are_accepted() {
    let Some(kubectl) = Kubectl::start("kubectl_create_generators_are_accepted").await else { return };
    for (arguments, made) in [
        ("deployment made --image=example.com/a:1 --replicas=2 --port=80", "deployment.apps/made"),
        ("job once --image=example.com/a:1", "job.batch/once"),
        ("cronjob tick --image=example.com/a:1 --schedule=@hourly", "cronjob.batch/tick"),
        ("job by-hand --from=cronjob/tick", "job.batch/by-hand"),
        ("service clusterip a --tcp=80:8080", "service/a"),
        ("service nodeport b --tcp=80", "service/b"),
        ("service externalname c --external-name=example.com", "service/c"),
        ("serviceaccount robot", "serviceaccount/robot"),
        ("role reader --verb=get --verb=list --resource=pods", "role.rbac.authorization.k8s.io/reader"),
        (
            "rolebinding readers --role=reader --serviceaccount=shop:robot",
            "rolebinding.rbac.authorization.k8s.io/readers",
        ),
        ("clusterrole nodes --verb=get --resource=nodes", "clusterrole.rbac.authorization.k8s.io/nodes"),
        (
            "clusterrolebinding nodes --clusterrole=nodes --user=x",
            "clusterrolebinding.rbac.authorization.k8s.io/nodes",
        ),
        ("quota q --hard=pods=10", "resourcequota/q"),
        ("poddisruptionbudget b --selector=app=made --min-available=1", "poddisruptionbudget.policy/b"),
        ("ingress i --rule=a.example.com/=a:80", "ingress.networking.k8s.io/i"),
        ("priorityclass high --value=100", "priorityclass.scheduling.k8s.io/high"),
        ("configmap m --from-literal=k=v", "configmap/m"),
        ("secret generic s --from-literal=k=v", "secret/s"),
        ("secret docker-registry r --docker-server=a --docker-username=b --docker-password=c", "secret/r"),
    ] {
        kubectl.says(&format!("create {arguments} -n shop"), &[&format!("{made} created")]).await;
    }
    kubectl.says("run one --image=example.com/one:1 -n shop", &["pod/one created"]).await;
    kubectl
        .says("expose deployment made --port=81 --name=exposed -n shop", &["service/exposed exposed"])
        .await;
    kubectl.says("autoscale deployment made --max=5 -n shop", &["made autoscaled"]).await;
    let status = "rollout status deployment/made -n shop --timeout=60s";
    kubectl.says(status, &["successfully rolled out"]).await;
    kubectl
        .says("wait --for=condition=complete job/once job/by-hand -n shop --timeout=60s", &["condition met"])
        .await;
    kubectl.says("get pdb b -n shop", &["b      1               N/A               1"]).await;
    kubectl.says("describe cronjob tick -n shop", &["@hourly"]).await;
    kubectl.says("describe job once -n shop", &["Completed At:", "Job completed"]).await;
    kubectl.says("auth can-i list pods -n shop --as system:serviceaccount:shop:robot", &["yes"]).await;
    kubectl.fails("auth can-i delete pods -n shop --as system:serviceaccount:shop:robot", "no").await;
    kubectl.says("get roles,rolebindings,quota,ingress,hpa -n shop -o yaml", &["kind: Ingress"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_logs_fields_pages_and_errors() {
    let Some(kubectl) = Kubectl::start("kubectl_logs_fields_pages_and_errors").await else { return };
    kubectl.says("rollout status deployment/web -n shop --timeout=60s", &[]).await;
    kubectl.says("logs deployment/web -n shop", &["starting example.com/web:1", "ready"]).await;
    kubectl.says("logs -l app=web -n shop --tail=1 --prefix", &["/main] ready"]).await;
    let previous = "previous terminated container \"main\" in pod";
    kubectl.fails("logs deployment/web -n shop --previous", previous).await;
    kubectl
        .says("explain deployment.spec.strategy", &["FIELD: strategy <DeploymentStrategy>", "rollingUpdate"])
        .await;
    kubectl
        .says("explain pod --recursive", &["hostNetwork\t<boolean>", "nodeSelector\t<map[string]string>"])
        .await;
    kubectl.says("explain deployment --output=plaintext-openapiv2", &["KIND:     Deployment"]).await;
    kubectl.says("get pods -n shop --chunk-size=1 -o wide", &["web-", "node-", "10.244."]).await;
    kubectl.says("get deployment web -n shop -o yaml", &["kind: Deployment", "readyReplicas: 2"]).await;
    kubectl.says("events -n shop", &["ScalingReplicaSet"]).await;
    let manifest = kubectl.folder.path().join("web.yaml");
    std::fs::write(&manifest, WEB.replace("replicas: 2", "replicas: 3")).unwrap();
    let (_, text) = kubectl.run(&format!("diff -f {}", manifest.display())).await;
    assert!(text.contains("+  replicas: 3"), "{text}");
    for (arguments, refusal) in [
        ("top pods -n shop", "Metrics API not available"),
        ("top nodes", "Metrics API not available"),
        ("exec deployment/web -n shop -- true", "the server could not find the requested resource"),
        ("port-forward deployment/web 8080 -n shop", "the server could not find the requested resource"),
        ("create token default -n shop", "the server could not find the requested resource"),
    ] {
        kubectl.fails(arguments, refusal).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_watches_changes() {
    let Some(kubectl) = Kubectl::start("kubectl_watches_changes").await else { return };
    let watching = kubectl.command("get configmaps -n shop --watch-only --output-watch-events");
    let mut watching = { watching }.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    // Only an event shows that the watch has begun.
    let making = async {
        for number in 0.. {
            kubectl.says(&format!("create configmap seen-{number} -n shop"), &["created"]).await;
            kubectl.says(&format!("delete configmap seen-{number} -n shop"), &["deleted"]).await;
        }
    };
    let seeing = async {
        let mut seen = String::new();
        while !(seen.contains("ADDED") && seen.contains("DELETED")) {
            let line = lines.next_line().await.unwrap();
            seen.push_str(&line.unwrap_or_else(|| panic!("the watch ended after {seen:?}")));
        }
        assert!(seen.starts_with("EVENT"), "{seen}");
    };
    let seen = async {
        tokio::select! {
            () = making => {}
            () = seeing => {}
        }
    };
    tokio::time::timeout(Duration::from_secs(60), seen).await.expect("nothing was seen");
    watching.kill().await.unwrap();
}
