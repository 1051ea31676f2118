//! The nodes of a cluster, and the reads that tell of a cluster as a whole.

use serde_json::{Value, json};
use taffrail_apps::{Nodes, Objects as _, Read, ReadQuery, Snapshot, Target, apps, nodes};
use taffrail_rules::RuleSet;
use taffrail_status::{ActiveRules, ClusterState as _};

use super::dump::{NOW, holding};
use super::server::Server;

fn node(name: &str, ready: &[&str]) -> Value {
    let condition = |fields: &[&str]| {
        let [status, since] = *fields else { return json!([]) };
        json!([{"type": "Ready", "status": status, "reason": "KubeletSays", "message": "its word", "lastTransitionTime": since}])
    };
    let images: Vec<Value> = (0..50).map(|number| json!({"names": [format!("image-{number}")]})).collect();
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"conditions": condition(ready), "images": images, "nodeInfo": {"kubeletVersion": "v1.36.0"}}})
}

fn fleet() -> Vec<Value> {
    let cluster = |namespace: &str| {
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {
        "namespace": namespace, "name": "edge", "labels": {"app.kubernetes.io/instance": "edge"}}})
    };
    vec![
        node("n-1", &["True", "2026-03-01T09:00:00Z"]),
        node("n-2", &["Unknown", "2026-03-01T11:00:00Z"]),
        node("n-3", &["False", "2026-03-01T10:00:00Z"]),
        node("n-4", &[]),
        cluster("fleet"),
        cluster("tenant"),
    ]
}

fn asked() -> ReadQuery {
    ReadQuery { cluster_status: true, ..ReadQuery::default() }
}

/// Reads what tells of the cluster as a whole, and all apps; returns the lists that were made of this kind.
fn read(server: &Server, asked: &ReadQuery, kind: &str) -> (Snapshot, Vec<Read>) {
    let rules = RuleSet::shipped();
    let mut snapshot = Snapshot::live("cluster", NOW);
    let log = server.go_on_by(&mut snapshot, asked, &ActiveRules::new(&rules));
    log.assert_no_repetition();
    assert!(log.0.len() <= 4, "{:?}", log.paths());
    let lists = log.all().filter(|read| read.kind == kind).cloned().collect();
    (snapshot, lists)
}

#[test]
fn node_that_has_not_been_ready_for_longest_speaks_for_all() {
    let (snapshot, _) = read(&Server::new(fleet()), &asked(), "Node");
    let Nodes { ready, total, unready } = nodes(&snapshot).unwrap();
    let unready = unready.unwrap();
    assert_eq!((ready, total, &*unready.name, &*unready.message), (1, 4, "n-3", "its word"));
    let dump = holding("dump", &fleet());
    assert_eq!(nodes(&dump).unwrap().unready.as_ref(), Some(&unready));
    assert!(nodes(&holding("dump", &[])).is_err(), "a dump may omit nodes");
    let (empty, _) = read(&Server::new(vec![node("n", &[])]), &asked(), "Node");
    assert_eq!(nodes(&empty).unwrap().ready, 0);
}

#[test]
fn all_nodes_and_all_objects_that_stand_for_clusters_are_listed_once() {
    let server = Server::new(fleet());
    for kind in ["Node", "Cluster"] {
        let (_, lists) = read(&server, &asked(), kind);
        let all = Target::List { labels: None, fields: None };
        assert_eq!(lists.iter().map(|read| &read.target).collect::<Vec<_>>(), [&all], "{kind}");
    }
    // Nobody else lists them.
    let (snapshot, lists) = read(&server, &ReadQuery::default(), "Node");
    assert!(lists.is_empty() && nodes(&snapshot).is_err(), "{lists:?}");
    let of_namespace = ReadQuery { namespace: Some("fleet".to_owned()), ..asked() };
    assert!(read(&server, &of_namespace, "Node").1.is_empty());
}

#[test]
fn nodes_that_may_not_be_listed_are_not_known_and_no_error() {
    let server = Server { forbidden: vec!["/Node"], ..Server::new(fleet()) };
    let (snapshot, _) = read(&server, &asked(), "Node");
    assert_eq!(nodes(&snapshot).unwrap_err(), "nodes is forbidden");
    assert_eq!(snapshot.errors(), []);
    let list = apps(&[&snapshot], &ActiveRules::default(), NOW);
    assert_eq!(list.errors, []);
}

#[test]
fn images_of_listed_nodes_are_not_kept() {
    let (snapshot, _) = read(&Server::new(fleet()), &asked(), "Node");
    for observed in snapshot.of_kind("", "Node", None) {
        assert!(observed.object.at(&["status", "images"]).is_none());
        assert_eq!(observed.object.text(&["status", "nodeInfo", "kubeletVersion"]), "v1.36.0");
        assert_eq!((observed.object.kind(), observed.object.version()), ("Node", "v1"));
    }
}
