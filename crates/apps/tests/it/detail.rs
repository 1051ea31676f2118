//! The three sections of an app's details.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taffrail_api::AppDetailList;
use taffrail_apps::{App, Snapshot, apps};
use taffrail_status::ActiveRules;

use super::dump::{NOW, cluster, holding, release};
use super::golden::cases;
use super::tree::{kustomization, object};

/// Returns the details of the app `name` as JSON.
fn detail(snapshot: &Snapshot, name: &str) -> Value {
    let list = apps(&[snapshot], &ActiveRules::default(), NOW);
    let asked: Vec<&App> = list.apps.iter().filter(|app| app.app.name == name).collect();
    let details = AppDetailList::new(&asked, &list, &[snapshot], &ActiveRules::default(), NOW);
    serde_json::to_value(&details).unwrap()["items"][0].clone()
}

fn golden(case: &str, name: &str) -> Value {
    let folder = cases().into_iter().find(|folder| folder.ends_with(case)).unwrap();
    detail(&cluster("cluster", &std::fs::read_to_string(folder.join("cluster.yaml")).unwrap()), name)
}

#[test]
fn details_contain_only_fields_that_the_tool_knows() {
    let application = |case, name| golden(case, name)["application"].clone();
    assert_eq!(
        application("helmrelease-well", "podinfo"),
        json!({
            "branch": ">=6.5.0", "configUrl": "https://git.example.com/acme/fleet", "deploymentType": "helm",
            "path": "podinfo", "sourceType": "helm", "url": "https://charts.example.com/podinfo",
        })
    );
    assert_eq!(
        application("argo-failures", "web"),
        json!({
            "branch": "main", "deploymentType": "kustomize", "path": "apps/web", "sourceType": "git",
            "url": "https://git.example.com/acme/deploy.git",
        })
    );
    assert_eq!(
        application("helm-well", "pg"),
        json!({"deploymentType": "helm", "path": "postgresql", "sourceType": "helm"})
    );
    assert_eq!(application("label-groups", "forum"), json!({}));
}

/// Any author can list a declaring object in an inventory of their own.
#[test]
fn only_apps_that_mark_the_declaring_object_give_its_config_url() {
    let listing = |namespace: &str| {
        let mut app =
            kustomization("root", &["infra_shop_kustomize.toolkit.fluxcd.io_Kustomization".to_owned()]);
        app["metadata"]["namespace"] = json!(namespace);
        let source = json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"namespace": namespace, "name": "fleet"},
            "spec": {"url": format!("https://git.example/{namespace}")}});
        [app, source]
    };
    let mut own = kustomization("shop", &[]);
    own["metadata"]["namespace"] = json!("infra");
    own["metadata"]["labels"] = json!({
        "kustomize.toolkit.fluxcd.io/namespace": "zz", "kustomize.toolkit.fluxcd.io/name": "root"});
    let url = |more: &[[Value; 2]]| {
        let objects = [&[own.clone()], more.concat().as_slice()].concat();
        detail(&holding("one", &objects), "shop")["application"]["configUrl"].clone()
    };
    assert_eq!(url(&[listing("team-a")]), Value::Null);
    assert_eq!(url(&[listing("team-a"), listing("zz")]), json!("https://git.example/zz"));
}

#[test]
fn sources_come_before_deliveries() {
    let rows = |case, name, part: &str| {
        let rows = golden(case, name)["reconciliation"][part].clone();
        let rows = rows.as_array().unwrap().clone();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("-").to_owned();
        rows.iter()
            .map(|row| ["kind", "name", "ready", "revision"].map(|key| text(row, key)).join(" "))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        rows("helmrelease-well", "podinfo", "sources"),
        ["HelmRepository podinfo True sha256:6d10ba4a", "HelmChart shop-podinfo True 6.5.4"].map(|row| {
            let digest =
                golden("helmrelease-well", "podinfo")["reconciliation"]["sources"][0]["revision"].clone();
            row.replace("sha256:6d10ba4a", digest.as_str().unwrap())
        })
    );
    assert_eq!(rows("helmrelease-well", "podinfo", "delivery"), ["HelmRelease podinfo True 6.5.4"]);
    assert_eq!(rows("argo-failures", "api", "delivery").len(), 1);
    assert!(rows("argo-failures", "api", "delivery")[0].starts_with("Application api False"));
    assert!(rows("argo-failures", "docs", "sources")[0].starts_with("git deploy False"));
    assert!(rows("config-sync-moving", "root-sync", "delivery")[0].starts_with("RootSync root-sync Unknown"));
    assert!(rows("label-groups", "forum", "delivery").is_empty());
}

#[test]
fn a_missing_source_is_shown_as_not_found() {
    let shop = detail(&holding("prod", &[kustomization("app", &[])]), "app");
    let source = &shop["reconciliation"]["sources"][0];
    assert_eq!(source["ready"], "False");
    assert_eq!(source["message"], "GitRepository shop/fleet not found");
}

#[test]
fn a_release_shows_the_status_of_helm_despite_its_objects() {
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rates}\n";
    let pg = detail(&holding("prod", &[release("data", "pg", 2, "failed", manifest)]), "pg");
    assert_eq!(pg["app"]["message"], "ConfigMap data/rates not found");
    let row = &pg["reconciliation"]["delivery"][0];
    assert_eq!((&row["ready"], &row["message"]), (&json!("False"), &json!("failed by a test")));
}

#[test]
fn delivered_apps_are_rows_without_their_objects() {
    let outer = kustomization("outer", &["shop_inner_kustomize.toolkit.fluxcd.io_Kustomization".to_owned()]);
    let inner = kustomization("inner", &["shop_rates__ConfigMap".to_owned()]);
    let prod = holding("prod", &[outer, inner, object("v1", "ConfigMap", "rates", None)]);
    let rows = detail(&prod, "outer")["deployment"].clone();
    let kinds: BTreeMap<_, _> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["object"]["kind"].clone().to_string(), &row["children"]))
        .collect();
    assert_eq!(kinds, BTreeMap::from([("\"Kustomization\"".to_owned(), &json!([]))]));
    assert_eq!(detail(&prod, "inner")["deployment"][0]["object"]["name"], "rates");
}
