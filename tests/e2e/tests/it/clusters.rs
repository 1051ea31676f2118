//! Several clusters, some of which do not answer.

use std::fs;
use std::net::TcpListener;

use xtask::examples::Example;

use crate::harness::{CLUSTER, apps, plane};

const SECOND: &str = "kube-2";

#[test]
fn every_context_has_its_rows() {
    let Some(plane) = plane() else { return };
    let wiki = Example::named("wiki").expect("an example");
    for context in [CLUSTER, SECOND] {
        wiki.apply(plane, context).expect("the example is applied");
        wiki.settle(plane, context).expect("the example settles");
    }
    let apps = apps(plane.kubeconfig(), &["--all-contexts"]);
    assert_eq!(apps.code(), 0, "{apps}");
    for context in [CLUSTER, SECOND] {
        apps.row(context, "label", "wiki", "wiki").is("/health", "Current");
    }
}

#[test]
fn a_cluster_that_does_not_answer_leaves_the_other_one_shown() {
    let Some(plane) = plane() else { return };
    let wiki = Example::named("wiki").expect("an example");
    wiki.apply(plane, CLUSTER).expect("the example is applied");
    wiki.settle(plane, CLUSTER).expect("the example settles");

    // It takes connections and says nothing: only a deadline of the client's own ends that.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = format!("https://{}", silent.local_addr().expect("its address"));
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    let text = fs::read_to_string(plane.kubeconfig()).expect("the kubeconfig");
    let second = plane.server(1).expect("two clusters");
    fs::write(&kubeconfig, text.replace(second, &address)).expect("a kubeconfig");

    let apps = apps(&kubeconfig, &["--all-contexts", "--timeout", "2s"]);
    assert_eq!(apps.code(), 3, "{apps}");
    apps.row(CLUSTER, "label", "wiki", "wiki").is("/health", "Current");
    assert!(
        apps.rows().iter().all(|row| row["cluster"] != SECOND || row["effective"] != "Current"),
        "{apps}"
    );
    assert!(apps.errors().iter().any(|error| error["cluster"] == SECOND), "{apps}");
}
