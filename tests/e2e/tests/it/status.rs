//! `taffrail status` on live objects.

use serde_json::Value;

use crate::harness::{CLUSTER, example, plane, taffrail};

#[test]
fn objects_are_found_as_kubectl_finds_them() {
    let Some(plane) = plane() else { return };
    example(plane, "wiki");
    let named = |arguments: &[&str]| {
        let ours = [&["status", "--context", CLUSTER, "-o", "name"], arguments].concat();
        let mut names: Vec<String> =
            taffrail(plane.kubeconfig(), &ours).stdout.lines().map(str::to_owned).collect();
        names.sort();
        names
    };
    let kubectl = |arguments: &[&str]| {
        let answer =
            plane.kubectl(CLUSTER, &[&["get", "-o", "name"], arguments].concat()).expect("kubectl answers");
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
        assert_eq!(named(arguments), kubectl(arguments), "{arguments:?}");
    }
}

#[test]
fn what_is_not_there_is_not_found() {
    let Some(plane) = plane() else { return };
    let status = |arguments: &[&str]| {
        taffrail(plane.kubeconfig(), &[&["status", "--context", CLUSTER, "-o", "json"], arguments].concat())
    };
    let answer = status(&["deploy/nobody", "svc/kubernetes", "--exit-status"]);
    let list: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    let statuses: Vec<&str> =
        list["items"].as_array().expect("items").iter().filter_map(|item| item["status"].as_str()).collect();
    assert_eq!((statuses, answer.code), (vec!["Current", "NotFound"], 1), "{answer}");
    let answer = status(&["spaceship/one"]);
    assert_eq!(answer.code, 3, "{answer}");
    assert!(answer.stderr.contains("kube-1: the server has no kind called spaceship"), "{answer}");
}
