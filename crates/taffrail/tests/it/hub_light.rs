//! Clusters that a hub reads lightly, in the answers of commands.

use serde_json::{Value, json};
use taffrail_testkit::objects::{applications, deployment, kustomizations, namespace};

use super::hub::Hub;
use super::served::Served;
use super::{Answer, taffrail};

fn kustomization(objects: usize) -> Value {
    let entry = |number: usize| json!({"id": format!("shop_web-{number}_apps_Deployment"), "v": "v1"});
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "shop", "name": "web", "generation": 1},
        "spec": {"path": "./web"},
        "status": {"observedGeneration": 1, "inventory": {"entries": (0..objects).map(entry).collect::<Vec<_>>()},
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": 1}]},
    })
}

fn application() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "shop", "name": "till"},
        "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"}},
        "status": {"sync": {"status": "Synced", "revision": "c2"}, "health": {"status": "Healthy"},
            "reconciledAt": jiff::Timestamp::now().to_string(), "resources": [
            {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web-0", "status": "Synced"}]},
    })
}

/// Returns the row of this app in this cluster, as the hub lists it.
fn row(list: &Value, cluster: &str, name: &str) -> Value {
    let items = list["items"].as_array().unwrap();
    items.iter().find(|row| row["cluster"] == cluster && row["name"] == name).cloned().unwrap_or_default()
}

/// A hub that reads the second of two equal clusters lightly.
struct LightHub {
    hub: Hub,
    folder: tempfile::TempDir,
    // The clusters end with it.
    _served: Served,
}

impl LightHub {
    fn start() -> Self {
        let served = Served::start_verbatim(&["eu", "us"], |_, cluster| {
            cluster.apply(kustomizations()).unwrap();
            cluster.apply(applications()).unwrap();
            cluster.apply(namespace("shop")).unwrap();
            cluster
                .seed([
                    kustomization(2),
                    application(),
                    deployment("shop", "web-0", 2),
                    deployment("shop", "web-1", 0),
                ])
                .unwrap();
        });
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let flags = ["--full-limit", "1", "--data", &path("data")];
        let hub = Hub::serving(&served.kubeconfig, 2, "127.0.0.1:0", &flags);
        std::fs::write(path("token"), hub.token()).unwrap();
        hub.wait_until_complete();
        LightHub { hub, folder, _served: served }
    }

    fn ask(&self, arguments: &[&str]) -> Answer {
        let token = self.folder.path().join("token");
        let place = ["--hub", &self.hub.url(), "--hub-token-file", token.to_str().unwrap()];
        taffrail(&[arguments, &place].concat(), "")
    }
}

/// Returns the list of apps and that of clusters of a hub that reads one of them lightly.
pub(super) fn of_light() -> [Value; 2] {
    let light = LightHub::start();
    ["apps", "clusters"].map(|list| light.ask(&["get", list, "-o", "json"]).json())
}

#[test]
fn an_app_of_a_light_cluster_has_what_its_controller_says_until_it_is_opened() {
    let served = LightHub::start();
    let hub = &served.hub;

    // The rows of the API, and those of a command, are the same.
    let of_command = served.ask(&["get", "apps", "-o", "json"]).json();
    for list in [hub.list("/api/v1/apps?limit=50"), of_command] {
        assert_eq!(list["items"].as_array().unwrap().len(), 4, "{list}");
        let [full, web, till] =
            [("eu", "web"), ("us", "web"), ("us", "till")].map(|(at, name)| row(&list, at, name));
        assert_eq!(
            (&full["health"], &full["objects"], &full["said"]),
            (&json!("InProgress"), &json!(2), &Value::Null)
        );
        assert_eq!((&web["health"], &web["effective"]), (&json!("Unknown"), &json!("Unknown")), "{web}");
        assert_eq!((&web["unobserved"], &web["said"]), (&json!(["health", "objects"]), &Value::Null));
        assert_eq!((&till["health"], &till["said"]), (&json!("Current"), &json!(true)), "{till}");
        assert_eq!(till["unobserved"], json!(["objects"]));
    }
    let table = served.ask(&["get", "apps"]).stdout;
    assert!(table.contains("Ready (said)"), "{table}");
    let wide = served.ask(&["get", "clusters", "-o", "wide"]).stdout;
    assert!(wide.contains("light, "), "{wide}");
    let rows = served.ask(&["get", "clusters", "-o", "json"]).json();
    let light: Vec<&Value> = rows["items"].as_array().unwrap().iter().map(|row| &row["light"]).collect();
    assert_eq!(light, [&Value::Null, &json!(true)]);
    // What is unobserved is nowhere Ready.
    let us = &rows["items"][1];
    assert_eq!((&us["status"], &us["problems"]), (&json!("Unknown"), &json!(1)), "{us}");
    assert_eq!((&us["counts"]["Current"], &us["counts"]["Unknown"]), (&json!(1), &json!(1)), "{us}");

    // The cluster is read in full for the one who opens an app.
    let answer = served.ask(&["app", "us/flux-kustomization/shop/web", "-o", "json"]).json();
    let app = &answer["items"][0]["app"];
    assert_eq!(
        (&app["health"], &app["objects"], &app["said"]),
        (&json!("InProgress"), &json!(2), &Value::Null),
        "{answer}"
    );
    // The list stays as it was.
    let web = row(&hub.list("/api/v1/apps?limit=50"), "us", "web");
    assert_eq!(web["health"], "Unknown");
}
