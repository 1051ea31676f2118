//! `taffrail sync` and its companions, on a cluster without controllers.

use std::path::Path;

use serde_json::Value;
use taffrail_testkit::objects;

use super::served::Served;
use super::{Answer, taffrail};

const FIRST: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: old, annotations: {argocd.argoproj.io/sync-wave: '1'}}
";

const SECOND: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: red}
";

fn served() -> Served {
    Served::start_with_managers(&["eu"], |_, cluster| cluster.apply(objects::namespace("shop")).unwrap())
}

/// Runs a command for the set `web` of the namespace `shop`.
fn of_set(served: &Served, arguments: &[&str]) -> Answer {
    let (verb, rest) = arguments.split_first().unwrap();
    let common = [*verb, "--set", "web", "-n", "shop", "--kubeconfig", &served.kubeconfig];
    taffrail(&[&common[..], rest].concat(), "")
}

fn write(served: &Served, text: &str) -> String {
    let path = served.folder.path().join("all.yaml");
    std::fs::write(&path, text).unwrap();
    Path::to_str(&path).unwrap().to_owned()
}

/// Returns the output without how long the run took.
fn shown(answer: &Answer) -> String {
    answer
        .stdout
        .lines()
        .map(|line| line.split(" after ").next().unwrap_or_default().to_owned() + "\n")
        .collect()
}

#[test]
fn sync_applies_in_waves_and_a_second_sync_writes_nothing() {
    let served = served();
    let file = write(&served, FIRST);
    let answer = of_set(&served, &["sync", "-f", &file, "--dry-run"]);
    let planned = "Sync, wave 0\n  + ConfigMap shop/settings\n\nSync, wave 1\n  + ConfigMap shop/old\n";
    assert_eq!((&*answer.stdout, &*answer.stderr, answer.code), (planned, "2 to create\n", 0));
    let answer = of_set(&served, &["sync", "-f", &file, "--revision", "main@1"]);
    let done = "+ ConfigMap shop/settings created\n+ ConfigMap shop/old created\nSucceeded set shop/web, run 1: 2 created\n";
    assert_eq!((&*shown(&answer), answer.code), (done, 0), "{}", answer.stderr);
    let settings = || served.clusters[0].get("v1", "ConfigMap", "shop", "settings").unwrap();
    assert_eq!(settings()["metadata"]["annotations"]["taffrail.dev/set"], "shop_web");
    let version = settings()["metadata"]["resourceVersion"].clone();
    let answer = of_set(&served, &["sync", "-f", &file]);
    assert_eq!((&*shown(&answer), answer.code), ("Succeeded set shop/web, run 2: 2 unchanged\n", 0));
    assert_eq!(settings()["metadata"]["resourceVersion"], version);
}

#[test]
fn what_is_not_declared_any_more_stays_until_its_deletion_is_confirmed() {
    let served = served();
    let file = write(&served, FIRST);
    assert_eq!(of_set(&served, &["sync", "-f", &file]).code, 0);
    let file = write(&served, SECOND);
    let answer = of_set(&served, &["sync", "-f", &file]);
    let stays = "~ ConfigMap shop/settings changed\n= ConfigMap shop/old stays: it is not declared any more; --prune deletes it\n\
        Succeeded set shop/web, run 2: 1 changed, 1 kept\n";
    assert_eq!((&*shown(&answer), answer.code), (stays, 0));
    let answer = of_set(&served, &["sync", "-f", &file, "--prune"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("this would delete 1 object: ConfigMap shop/old"), "{}", answer.stderr);
    let answer = of_set(&served, &["sync", "-f", &file, "--prune", "--yes", "-o", "json"]);
    let list: Value = serde_json::from_str(&answer.stdout).unwrap();
    let run = &list["items"][0]["runs"][0];
    assert_eq!(
        (&list["kind"], &run["result"], answer.code),
        (&"SetHistoryList".into(), &"Succeeded".into(), 0)
    );
    let result = |name: &str| {
        let objects = run["objects"].as_array().unwrap();
        objects.iter().find(|it| it["name"] == name).unwrap()["result"].clone()
    };
    assert_eq!((result("old"), result("settings")), ("Pruned".into(), "Unchanged".into()));
    assert!(served.clusters[0].get("v1", "ConfigMap", "shop", "old").is_none());
    let answer = of_set(&served, &["destroy", "--yes"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(
        served.clusters[0]
            .list("v1", "ConfigMap")
            .iter()
            .all(|it| it["metadata"]["name"] == "kube-root-ca.crt")
    );
    assert!(served.clusters[0].list("v1", "Secret").is_empty());
}

#[test]
fn manifests_that_are_refused_are_told_at_once_and_nothing_is_written() {
    let served = served();
    let refused = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {a: [1]}\n\
        ---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: worse}\nspec: {replicas: many}\n";
    let file = write(&served, &format!("{FIRST}{refused}"));
    let answer = of_set(&served, &["sync", "-f", &file]);
    assert_eq!(answer.code, 3);
    for told in ["ConfigMap shop/bad: ", "Deployment shop/worse: ", "2 of the objects cannot be applied"] {
        assert!(answer.stderr.contains(told), "{told}: {}", answer.stderr);
    }
    assert!(served.clusters[0].get("v1", "ConfigMap", "shop", "settings").is_none());
}
