//! The bound on evidence that a look reads by name.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taffrail_apps::{KindCatalog, Objects as _, Read, ReadQuery, ServedKind, Snapshot, Target, apps};
use taffrail_status::{ActiveRules, Status};

use super::dump::NOW;
use super::reads::object;
use super::server::{Log, Server};

/// Makes a Pod of a label app that is not ready without a stated reason, and refers to so many ConfigMaps that do not exist.
fn silent_pod(namespace: &str, maps: usize) -> Value {
    let volumes: Vec<_> = (0..maps)
        .map(|at| json!({"name": format!("v{at}"), "configMap": {"name": format!("c{at:05}")}}))
        .collect();
    let mut pod = object("v1", "Pod", namespace, "web");
    pod["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "web"});
    pod["spec"] = json!({"volumes": volumes, "containers": [{"name": "c", "image": "web:1"}]});
    pod["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]});
    pod
}

/// Returns the number of ConfigMaps that are read by name, by namespace.
fn maps_by_name(log: &Log) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for read in log.all().filter(|it| it.kind == "ConfigMap" && matches!(it.target, Target::Object(_))) {
        *counts.entry(read.namespace.as_deref().unwrap_or_default()).or_default() += 1;
    }
    counts
}

#[test]
fn evidence_that_many_namespaces_name_is_listed_once() {
    let pods = |count: usize| (0..count).map(|at| silent_pod(&format!("n{at:04}"), 15)).collect();
    for (namespaces, by_name, listed) in [(10, 150, vec![]), (80, 0, vec!["/api/v1/configmaps"])] {
        let (snapshot, log) = Server::new(pods(namespaces)).read("cluster", &ReadQuery::default());
        assert_eq!(maps_by_name(&log).values().sum::<usize>(), by_name);
        let lists = log.all().filter(|read| {
            let is_all = read.target == Target::List { labels: None, fields: None };
            read.kind == "ConfigMap" && read.namespace.is_none() && is_all
        });
        assert_eq!(lists.map(Read::path).collect::<Vec<_>>(), listed);
        assert_eq!(snapshot.errors(), []);
        let list = apps(&[&snapshot], &ActiveRules::default(), NOW);
        assert!(list.apps.iter().all(|app| app.message.contains("c00000")), "{}", list.apps[0].message);
    }
}

#[test]
fn evidence_by_name_of_kinds_that_cannot_be_listed_is_bounded_in_sum() {
    let many = (0..30).map(|at| silent_pod(&format!("evil-{at}"), 100));
    let server = Server::new(many.chain([silent_pod("shop", 3)]).collect());
    let catalog = server.catalog();
    let kinds = catalog.iter().map(|served| {
        let verbs = served.verbs.iter().filter(|verb| served.kind != "ConfigMap" || *verb == "get");
        ServedKind { verbs: verbs.cloned().collect(), ..served.clone() }
    });
    let kinds = KindCatalog::new(kinds.collect::<Vec<_>>(), []);
    let mut snapshot = Snapshot::live("cluster", NOW);
    snapshot.set_kinds(kinds);
    let log = server.go_on(&mut snapshot, &ReadQuery::default());
    let counts = maps_by_name(&log);
    assert_eq!((counts.values().sum::<usize>(), counts.get("shop")), (1000, Some(&3)));
    let told: Vec<_> = snapshot.errors().iter().map(|error| (&*error.reason, &*error.message)).collect();
    let [("OverLimit", message)] = told.as_slice() else { panic!("{told:?}") };
    assert!(message.contains("refer to too many others: 2003 of these were not read"), "{message}");
    let list = apps(&[&snapshot], &ActiveRules::default(), NOW);
    assert!(list.apps.iter().all(|app| app.health != Status::Current));
    let shop = list.apps.iter().find(|app| app.app.namespace == "shop").unwrap();
    assert!(shop.message.contains("c00000"), "{}", shop.message);
}
