//! Tests of `taffrail status` on live objects.

use serde_json::Value;

use crate::harness::CLUSTER;
use crate::stage::{Stage, Who};

fn status_finds_objects_as_kubectl_does(stage: &mut Stage) {
    stage.example("wiki");
    let sorted = |answer: &str| {
        let mut names: Vec<String> = answer.lines().map(str::to_owned).collect();
        names.sort();
        names
    };
    for arguments in [
        &["deploy,svc", "-n", "wiki"][..],
        &["deployments.apps", "-n", "wiki"],
        &["deployments.v1.apps", "-n", "wiki"],
        &["namespaces"],
        &["crd"],
        &["deploy", "-n", "wiki", "-l", "app.kubernetes.io/instance=wiki"],
        &["deploy", "-n", "wiki", "-l", "app.kubernetes.io/instance=nobody"],
    ] {
        let kubectl =
            stage.ask(|plane| plane.kubectl(CLUSTER, &[&["get", "-o", "name"], arguments].concat()));
        let ours = [&["status", "--context", CLUSTER, "-o", "name"], arguments].concat();
        let ours = stage.taffrail(Who::Admin, &ours);
        assert_eq!(sorted(&short(&ours.stdout)), sorted(&kubectl), "{arguments:?}");
    }
}

/// Shortens full names, one in a line, to kubectl's: `apps/Deployment/shop/web` to `deployment.apps/web`.
fn short(names: &str) -> String {
    let short = |name: &str| {
        let [group, kind, _, name] = name.split('/').collect::<Vec<_>>().try_into().expect("a full name");
        let dot = if group.is_empty() { "" } else { "." };
        format!("{}{dot}{group}/{name}\n", kind.to_lowercase())
    };
    names.lines().map(short).collect()
}

fn status_reports_missing_objects_as_not_found(stage: &mut Stage) {
    let mut status = |arguments: &[&str]| {
        let all = [&["status", "--context", CLUSTER, "-o", "json"], arguments].concat();
        stage.taffrail(Who::Admin, &all)
    };
    let answer = status(&["deploy/nobody", "svc/kubernetes", "--exit-status"]);
    let list: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    let statuses: Vec<&str> =
        list["items"].as_array().expect("items").iter().filter_map(|item| item["status"].as_str()).collect();
    assert_eq!((statuses, answer.code), (vec!["NotFound", "Current"], 1), "{answer}");
    let answer = status(&["spaceship/one"]);
    assert_eq!(answer.code, 2, "{answer}");
    assert!(answer.stderr.contains("spaceship"), "{answer}");
}

scenarios![1: status_finds_objects_as_kubectl_does, status_reports_missing_objects_as_not_found];
