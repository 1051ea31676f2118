//! Errors that apps declared in one cluster cause in another one: they are those of the home.

use serde_json::{Value, json};
use taffrail_apps::{AppList, Objects, Snapshot, apps};
use taffrail_status::assess::Options;
use taffrail_status::{ActiveRules, Trust};

use super::dump::{NOW, base64, holding, release, storage};

const SERVER: &str = "https://prod.example.com:6443";

/// A HelmRelease whose release `name` is in the namespace `shop` of the cluster `prod`, and the Secret with its address.
fn delivering_to_prod(name: &str) -> [Value; 2] {
    let config = format!(
        "current-context: a\ncontexts: [{{name: a, context: {{cluster: b}}}}]\n\
         clusters: [{{name: b, cluster: {{server: '{SERVER}'}}}}]\n"
    );
    let history = json!([{"name": name, "namespace": "shop", "status": "deployed", "version": 1, "chartVersion": "1.0.0"}]);
    [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "apps", "name": "prod"},
            "data": {"value": base64(&config)}}),
        json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"namespace": "apps", "name": "web", "generation": 1},
            "spec": {"releaseName": name, "targetNamespace": "shop", "storageNamespace": "shop",
                "kubeConfig": {"secretRef": {"name": "prod"}}},
            "status": {"history": history, "storageNamespace": "shop"}}),
    ]
}

fn prod(objects: &[Value]) -> Snapshot {
    let mut prod = holding("prod", objects);
    prod.add_server(SERVER);
    prod
}

/// Returns the errors, each with its cluster and scope.
fn told(list: &AppList) -> Vec<String> {
    let error = |it: &taffrail_apps::AppError| {
        format!("{}: {}: {}: {}", it.cluster, it.error.scope, it.error.reason, it.error.message)
    };
    list.errors.iter().map(error).collect()
}

fn list(clusters: &[&dyn Objects], homes: &[&str]) -> AppList {
    let trust = Trust { argocd: Vec::new(), homes: homes.iter().map(|home| (*home).to_owned()).collect() };
    let options = Options { trust, ..Options::default() };
    apps(clusters, &ActiveRules { options: &options, ..ActiveRules::default() }, NOW)
}

#[test]
fn errors_of_releases_that_another_home_names_are_the_homes() {
    let dev = holding("dev", &delivering_to_prod("made-up"));
    let prod = prod(&[]);
    let why = "Helm release shop/sh.helm.release.v1.made-up.v1 cannot be read: it does not exist";
    let of_home = format!(
        "dev: helm.toolkit.fluxcd.io/HelmRelease/apps/web: Unreadable: HelmRelease apps/web: in cluster prod, {why}"
    );
    assert_eq!(told(&list(&[&dev, &prod], &[])), [of_home]);
    let of_target = format!("prod: /Secret/shop/sh.helm.release.v1.made-up.v1: Unreadable: {why}");
    assert_eq!(told(&list(&[&dev, &prod], &["dev"])), [of_target]);
}

#[test]
fn errors_of_releases_in_a_cluster_are_its_own_too() {
    let malformed = release("shop", "web", 1, "deployed", "kind: ConfigMap\n");
    let damaged = storage("shop", "web", 1, &json!({"release": "!"}));
    for (stored, reason) in [(malformed, "Malformed"), (damaged, "Unreadable")] {
        let dev = holding("dev", &delivering_to_prod("web"));
        let errors = told(&list(&[&dev, &prod(&[stored])], &[]));
        let [of_home, of_target] = errors.as_slice() else { panic!("{errors:?}") };
        assert!(of_home.contains(reason) && of_home.contains("in cluster prod, Helm release"), "{of_home}");
        assert!(of_home.starts_with("dev: helm.toolkit.fluxcd.io/HelmRelease/apps/web: "), "{of_home}");
        assert!(of_target.starts_with("prod: /Secret/shop/sh.helm.release.v1.web.v1: "), "{of_target}");
    }
}
