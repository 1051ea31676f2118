//! Tests of the controllers of the demo: the changes that they make, and those that they leave to the faults. Time is
//! moved by hand.

use serde_json::{Value, json};

use super::*;

const REQUESTED: &str = "reconcile.fluxcd.io/requestedAt";

struct Stage {
    world: World,
    controllers: Vec<Controllers>,
}

impl Stage {
    /// A fleet of some of the demo's clusters, so far into the story.
    async fn begin(clusters: &[&str], skip: u64) -> Stage {
        let mut declared = Declared::read().unwrap();
        // The story names the address of ap-2.
        declared.clusters.retain(|member| member.name == "ap-2" || clusters.contains(&&*member.name));
        let (world, controllers) = World::build(declared, 1, Duration::from_secs(skip)).await.unwrap();
        let mut stage = Stage { world, controllers };
        stage.look();
        stage
    }

    fn look(&mut self) {
        for controllers in &mut self.controllers {
            controllers.look();
        }
    }

    /// Lets time pass, in which the controllers work.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.world.fleet.advance(Duration::from_secs(1));
            self.look();
        }
    }

    fn cluster(&self, name: &str) -> &Cluster {
        self.world.clusters.iter().find(|cluster| cluster.name() == name).unwrap()
    }

    fn get(&self, cluster: &str, version: &str, kind: &str, path: &str) -> Option<Value> {
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        self.cluster(cluster).get(version, kind, namespace, name)
    }

    fn deployment(&self, cluster: &str, path: &str) -> Option<Value> {
        self.get(cluster, "apps/v1", "Deployment", path)
    }

    fn kustomization(&self, cluster: &str, name: &str) -> Value {
        self.get(cluster, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", &format!("flux-system/{name}"))
            .unwrap()
    }

    fn application(&self, name: &str) -> Value {
        self.get("eu-hub", "argoproj.io/v1alpha1", "Application", &format!("argocd/{name}")).unwrap()
    }

    /// Changes an object as a person does.
    fn change(&self, cluster: &str, object: &Value, change: impl FnOnce(&mut Value)) {
        self.cluster(cluster).change_by(object, "kubectl", "", change);
    }

    fn scale(&self, cluster: &str, path: &str, replicas: u32) {
        let deployment = self.deployment(cluster, path).unwrap();
        self.change(cluster, &deployment, |object| object["spec"]["replicas"] = json!(replicas));
    }

    fn request(&self, cluster: &str, kustomization: &str, at: &str) {
        let object = self.kustomization(cluster, kustomization);
        self.change(cluster, &object, |object| object["metadata"]["annotations"][REQUESTED] = json!(at));
    }
}

fn ready(object: &Value) -> (&str, &str) {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
    (ready["status"].as_str().unwrap(), ready["message"].as_str().unwrap())
}

fn replicas(deployment: Option<Value>) -> (i64, i64) {
    let deployment = deployment.unwrap();
    let count = |value: &Value| value.as_i64().unwrap_or_default();
    (count(&deployment["spec"]["replicas"]), count(&deployment["status"]["readyReplicas"]))
}

fn sync(application: &Value) -> (&str, &str) {
    let status = &application["status"];
    (status["sync"]["status"].as_str().unwrap(), status["health"]["status"].as_str().unwrap())
}

#[tokio::test]
async fn time_is_the_time_of_this_machine_once_the_demo_has_started() {
    let world = World::start(1, Duration::from_secs(20), false).await.unwrap();
    let behind = Timestamp::now().duration_since(world.fleet.clock().now());
    assert!(behind.abs() < SignedDuration::from_secs(1), "{behind}");
}

#[tokio::test]
async fn flux_applies_what_was_deleted_or_changed_when_it_is_requested() {
    let mut stage = Stage::begin(&["us-1"], 0).await;
    assert!(stage.cluster("us-1").delete("apps/v1", "Deployment", "shop", "cart"));
    stage.scale("us-1", "shop/web", 5);
    stage.pass(3);
    assert_eq!(stage.deployment("us-1", "shop/cart"), None);
    assert_eq!(replicas(stage.deployment("us-1", "shop/web")).0, 5, "Flux does not watch what it applies");
    stage.request("us-1", "shop", "now");
    // Another client looks all the time: the request is never handled before the health checks are told of.
    let us = stage.cluster("us-1").clone();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let shop = us.get("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "shop");
                let shop = shop.unwrap();
                assert!(
                    shop["status"]["lastHandledReconcileAt"] != "now" || ready(&shop).0 == "Unknown",
                    "{shop}"
                );
            }
        });
        stage.look();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let shop = stage.kustomization("us-1", "shop");
    assert_eq!(shop["status"]["lastHandledReconcileAt"], "now");
    assert_eq!(ready(&shop).0, "Unknown", "its health checks run: {shop}");
    stage.pass(20);
    let shop = stage.kustomization("us-1", "shop");
    let revision = shop["status"]["lastAppliedRevision"].as_str().unwrap();
    assert_eq!(ready(&shop), ("True", &*format!("Applied revision: {revision}")));
    assert_eq!(replicas(stage.deployment("us-1", "shop/cart")), (2, 2));
    assert_eq!(replicas(stage.deployment("us-1", "shop/web")), (3, 3));
    let cart = stage.deployment("us-1", "shop/cart").unwrap();
    let managers = cart["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|entry| entry["manager"] == "kustomize-controller"), "{cart}");
}

#[tokio::test]
async fn flux_applies_what_was_deleted_at_each_interval() {
    let mut stage = Stage::begin(&["us-1"], 0).await;
    assert!(stage.cluster("us-1").delete("v1", "Namespace", "", "shop"));
    stage.pass(630);
    assert_eq!(replicas(stage.deployment("us-1", "shop/cart")), (2, 2));
    assert_eq!(ready(&stage.kustomization("us-1", "shop")).0, "True");
}

#[tokio::test]
async fn flux_does_nothing_while_it_is_suspended_or_stopped() {
    let mut stage = Stage::begin(&["us-1"], 0).await;
    let shop = stage.kustomization("us-1", "shop");
    stage.change("us-1", &shop, |shop| shop["spec"]["suspend"] = json!(true));
    stage.scale("us-1", "shop/cart", 1);
    stage.request("us-1", "shop", "suspended");
    stage.pass(5);
    assert_eq!(stage.kustomization("us-1", "shop")["status"].get("lastHandledReconcileAt"), None);
    assert_eq!(replicas(stage.deployment("us-1", "shop/cart")).0, 1);

    stage.scale("us-1", "flux-system/kustomize-controller", 0);
    stage.pass(5);
    stage.change("us-1", &shop, |shop| shop["spec"]["suspend"] = json!(false));
    stage.pass(20);
    assert_eq!(stage.kustomization("us-1", "shop")["status"].get("lastHandledReconcileAt"), None);
    assert_eq!(replicas(stage.deployment("us-1", "shop/cart")).0, 1);
    // A controller that starts reconciles all that it finds.
    stage.scale("us-1", "flux-system/kustomize-controller", 1);
    stage.pass(20);
    assert_eq!(stage.kustomization("us-1", "shop")["status"]["lastHandledReconcileAt"], "suspended");
    assert_eq!(replicas(stage.deployment("us-1", "shop/cart")), (2, 2));
}

#[tokio::test]
async fn flux_says_what_does_not_become_healthy_in_time() {
    let mut stage = Stage::begin(&["us-1"], 0).await;
    for node in ["node-1", "node-2", "node-3"] {
        let node = stage.get("us-1", "v1", "Node", node).unwrap();
        stage.change("us-1", &node, |node| node["spec"]["unschedulable"] = json!(true));
    }
    assert!(stage.cluster("us-1").delete("apps/v1", "Deployment", "shop", "cart"));
    stage.request("us-1", "shop", "now");
    stage.pass(70);
    let shop = stage.kustomization("us-1", "shop");
    let message =
        "health check failed after 1m0s: timeout waiting for: [Deployment/shop/cart status: 'InProgress']";
    assert_eq!(ready(&shop), ("False", message));
}

#[tokio::test]
async fn argo_cd_heals_itself_after_five_seconds() {
    let mut stage = Stage::begin(&["eu-hub", "ap-1"], 0).await;
    let api = stage.deployment("ap-1", "catalog/api").unwrap();
    let image = |object: &Value| object["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    stage.change("ap-1", &api, |api| {
        api["spec"]["template"]["spec"]["containers"][0]["image"] = json!("example.com/other:1");
    });
    stage.look();
    assert_eq!(sync(&stage.application("catalog-ap-1")), ("OutOfSync", "Healthy"));
    stage.pass(2);
    assert_eq!(image(&stage.deployment("ap-1", "catalog/api").unwrap()), "example.com/other:1");
    stage.pass(4);
    let application = stage.application("catalog-ap-1");
    assert_eq!(sync(&application), ("Synced", "Healthy"));
    assert_eq!(
        application["status"]["operationState"]["operation"]["initiatedBy"],
        json!({"automated": true})
    );
    assert_eq!(image(&stage.deployment("ap-1", "catalog/api").unwrap()), image(&api));

    assert!(stage.cluster("ap-1").delete("v1", "Service", "catalog", "api"));
    stage.look();
    assert_eq!(sync(&stage.application("catalog-ap-1")), ("OutOfSync", "Missing"));
    stage.pass(6);
    assert_eq!(sync(&stage.application("catalog-ap-1")), ("Synced", "Healthy"));
    assert!(stage.get("ap-1", "v1", "Service", "catalog/api").is_some());

    // A namespace that is deleted is made again as well.
    assert!(stage.cluster("ap-1").delete("v1", "Namespace", "", "orders"));
    stage.pass(60);
    assert_eq!(sync(&stage.application("orders-ap-1")), ("Synced", "Healthy"));
    assert_eq!(replicas(stage.deployment("ap-1", "orders/worker")), (2, 2));
}

#[tokio::test]
async fn argo_cd_without_self_heal_is_out_of_sync_until_it_is_synced() {
    let mut stage = Stage::begin(&["eu-hub", "ap-1"], 0).await;
    stage.scale("ap-1", "gateway/envoy", 1);
    stage.pass(20);
    let gateway = stage.application("gateway-ap-1");
    assert_eq!(sync(&gateway), ("OutOfSync", "Healthy"));
    assert_eq!(replicas(stage.deployment("ap-1", "gateway/envoy")).0, 1);
    stage.change("eu-hub", &gateway, |gateway| {
        gateway["operation"] = json!({"sync": {"revision": "main"}, "initiatedBy": {"username": "taffrail"}});
    });
    stage.pass(5);
    let gateway = stage.application("gateway-ap-1");
    assert_eq!(sync(&gateway), ("Synced", "Healthy"));
    assert_eq!(gateway.get("operation"), None);
    assert_eq!(replicas(stage.deployment("ap-1", "gateway/envoy")).0, 3);
}

#[tokio::test]
async fn deleting_an_app_deletes_its_objects() {
    let mut stage = Stage::begin(&["us-1"], 0).await;
    let us = stage.cluster("us-1").clone();
    // One holds a claim that its Pods use, the other a HelmRelease with a finalizer.
    for namespace in ["search", "cache"] {
        assert!(us.delete("v1", "Namespace", "", namespace));
    }
    assert!(us.delete("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "payments"));
    stage.pass(40);
    for namespace in ["search", "cache", "payments"] {
        assert_eq!(stage.get("us-1", "v1", "Namespace", namespace), None, "{namespace}");
    }
    let deleted = us.get("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "payments");
    assert_eq!(deleted, None);
}

#[tokio::test]
async fn controllers_do_not_override_the_story() {
    let mut stage =
        Stage::begin(&["eu-1", "eu-2", "eu-3", "us-1", "us-2", "eu-hub", "ap-2", "ap-3"], 0).await;
    stage.pass(60);
    assert_eq!(sync(&stage.application("catalog-ap-2")).0, "Unknown");
    stage.pass(15);
    let shop = stage.kustomization("eu-2", "shop");
    let (status, message) = ready(&shop);
    assert!(status == "False" && message.starts_with("health check failed after 1m0.012s"), "{shop}");
    stage.pass(105);
    assert_eq!(sync(&stage.application("catalog-ap-2")), ("Synced", "Healthy"));
    assert_eq!(sync(&stage.application("gateway-ap-3")), ("OutOfSync", "Healthy"));
    let envoy = stage.get("ap-3", "v1", "ConfigMap", "gateway/envoy").unwrap();
    assert_eq!(envoy["data"]["LOG_LEVEL"], "debug");
    assert_eq!(replicas(stage.deployment("eu-1", "payments/api")), (6, 6));
    stage.pass(50);
    assert_eq!(replicas(stage.deployment("eu-3", "flux-system/kustomize-controller")).0, 0);
    let source =
        stage.get("eu-3", "source.toolkit.fluxcd.io/v1", "GitRepository", "flux-system/shop").unwrap();
    let shop = stage.kustomization("eu-3", "shop");
    assert_eq!(ready(&shop).0, "True");
    assert_ne!(source["status"]["artifact"]["revision"], shop["status"]["lastAppliedRevision"]);
    let claim = stage.get("us-1", "v1", "PersistentVolumeClaim", "search/indexer").unwrap();
    assert!(claim["metadata"]["deletionTimestamp"].is_string());
    let accounts = stage.kustomization("us-2", "accounts");
    assert!(accounts["spec"]["suspend"] == true);
    assert!(!accounts["status"]["lastAppliedRevision"].is_null());
    stage.pass(65);
    for (cluster, app) in
        [("eu-1", "payments"), ("eu-2", "shop"), ("eu-3", "shop"), ("us-1", "search"), ("us-2", "accounts")]
    {
        assert_eq!(ready(&stage.kustomization(cluster, app)).0, "True", "{cluster} {app}");
    }
    assert_eq!(replicas(stage.deployment("eu-1", "payments/api")), (3, 3));
    assert_eq!(sync(&stage.application("gateway-ap-3")), ("Synced", "Healthy"));
}
