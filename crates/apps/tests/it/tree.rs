//! Trees of apps, with circular owners and many objects.

use serde_json::{Value, json};
use taffrail_api::{TreeList, TreeNode, TreeOptions};
use taffrail_apps::{App, Dependents, Objects, ReadQuery, Snapshot, apps, full_name};
use taffrail_status::ActiveRules;

use super::dump::{NOW, cluster, documents, holding};
use super::golden::cases;
use super::server::Server;

pub(crate) fn object(api_version: &str, kind: &str, name: &str, owner: Option<&str>) -> Value {
    let mut metadata = json!({
        "namespace": "shop", "name": name, "uid": format!("{kind}-{name}"), "creationTimestamp": "2026-03-01T11:00:00Z",
    });
    if let Some(owner) = owner {
        metadata["ownerReferences"] = json!([{"uid": owner, "controller": true, "kind": "X", "name": "x"}]);
    }
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
}

/// Flux: kustomize-controller `186fb3b`, `api/v1/kustomization_types.go`.
pub(crate) fn kustomization(name: &str, ids: &[String]) -> Value {
    let entries: Vec<Value> = ids.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "shop", "name": name, "uid": format!("ks-{name}"), "labels": {"team": "blue"}},
        "spec": {"sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "Applied"}],
            "inventory": {"entries": entries},
        },
    })
}

fn ids(kind: &str, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("shop_{name}_{kind}")).collect()
}

/// The tree of the app `name`, a line for each node: depth, object, status, note.
fn lines(snapshots: &[&Snapshot], name: &str, shape: TreeOptions) -> Vec<String> {
    fn add(node: &TreeNode, depth: usize, lines: &mut Vec<String>) {
        let object = node.object.as_ref().map(|object| format!("{} {} ", object.kind, object.name));
        let note = node.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        lines.push(format!("{}{}{}{note}", "  ".repeat(depth), object.unwrap_or_default(), node.status));
        node.children.iter().for_each(|child| add(child, depth + 1, lines));
    }
    let clusters: Vec<&dyn Objects> = snapshots.iter().map(|snapshot| *snapshot as &dyn Objects).collect();
    let list = apps(&clusters, &ActiveRules::default(), NOW);
    let asked: Vec<&App> =
        list.apps.iter().filter(|app| app.app.name == name || full_name(&app.app) == name).collect();
    assert!(!asked.is_empty(), "there is no {name}");
    let trees = TreeList::new(&asked, &list, &clusters, &ActiveRules::default(), NOW, shape);
    let mut lines = Vec::new();
    trees.items.iter().for_each(|tree| add(&tree.root, 0, &mut lines));
    lines
}

#[test]
fn a_tree_follows_owners_from_deployment_to_pods() {
    let mut old = object("apps/v1", "ReplicaSet", "web-1", Some("Deployment-web"));
    old["spec"] = json!({"replicas": 0});
    old["status"] = json!({"replicas": 0});
    let mut older = old.clone();
    older["metadata"]["name"] = json!("web-0");
    let mut elsewhere = object("v1", "Pod", "thief", Some("ReplicaSet-web-2"));
    elsewhere["metadata"]["namespace"] = json!("other");
    let prod = holding(
        "prod",
        &[
            kustomization("app", &ids("apps_Deployment", &["web"])),
            object("apps/v1", "Deployment", "web", None),
            old,
            older,
            object("apps/v1", "ReplicaSet", "web-2", Some("Deployment-web")),
            object("v1", "ConfigMap", "rates", Some("ReplicaSet-web-2")),
            object("v1", "ConfigMap", "alone", None),
            elsewhere,
        ],
    );
    let lines = lines(&[&prod], "app", TreeOptions::default());
    assert_eq!(
        lines[1..],
        [
            "  Deployment web InProgress",
            "    Current (2 ReplicaSets scaled to 0)",
            "    ReplicaSet web-2 InProgress",
            "      ConfigMap rates Current",
        ]
    );
}

#[test]
fn equal_children_share_a_line_and_others_do_not() {
    let names: Vec<String> = (0..40).map(|number| format!("c{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut objects = vec![kustomization("app", &ids("_ConfigMap", &names))];
    // Two of them are not there.
    objects.extend(names[2..].iter().map(|name| object("v1", "ConfigMap", name, None)));
    let prod = holding("prod", &objects);
    let folded = lines(&[&prod], "app", TreeOptions::default());
    assert_eq!(
        folded[1..],
        [
            "  ConfigMap c00 NotFound",
            "  ConfigMap c01 NotFound",
            "  ConfigMap c02 Current",
            "  ConfigMap c03 Current",
            "  ConfigMap c04 Current",
            "  Current (35 more ConfigMaps)",
        ]
    );
    assert_eq!(lines(&[&prod], "app", TreeOptions { fold: false, ..TreeOptions::default() }).len(), 41);
    assert_eq!(lines(&[&prod], "app", TreeOptions { compact: true, ..TreeOptions::default() }).len(), 1);
}

#[test]
fn unhealthy_objects_are_never_folded_into_a_shared_line() {
    let names: Vec<String> = (0..8).map(|number| format!("d{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut objects = vec![kustomization("app", &ids("_ConfigMap", &names))];
    for name in &names {
        objects.push(object("v1", "ConfigMap", name, None));
        objects.push(object(
            "apps/v1",
            "Deployment",
            &format!("{name}-child"),
            Some(&format!("ConfigMap-{name}")),
        ));
    }
    let prod = holding("prod", &objects);
    let lines = lines(&[&prod], "app", TreeOptions::default());
    assert_eq!(lines.iter().filter(|line| line.contains("-child InProgress")).count(), 8, "{lines:#?}");
}

#[test]
fn circular_owners_and_apps_end() {
    let prod = holding(
        "prod",
        &[
            kustomization(
                "one",
                &[
                    "shop_two_kustomize.toolkit.fluxcd.io_Kustomization".to_owned(),
                    "shop_a__ConfigMap".to_owned(),
                ],
            ),
            kustomization(
                "two",
                &[
                    "shop_one_kustomize.toolkit.fluxcd.io_Kustomization".to_owned(),
                    "shop_two_kustomize.toolkit.fluxcd.io_Kustomization".to_owned(),
                ],
            ),
            object("v1", "ConfigMap", "a", Some("ConfigMap-c")),
            object("v1", "ConfigMap", "b", Some("ConfigMap-a")),
            object("v1", "ConfigMap", "c", Some("ConfigMap-b")),
        ],
    );
    let lines = lines(&[&prod], "one", TreeOptions::default());
    let shown: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    assert_eq!(
        shown,
        [
            "Kustomization one Current",
            "Kustomization two Current",
            "Kustomization one Current (shown above)",
            "ConfigMap a Current",
            "ConfigMap b Current",
            "ConfigMap c Current",
        ]
    );
}

#[test]
fn an_endless_owner_chain_is_cut_with_a_note() {
    let mut objects = vec![kustomization("app", &ids("_ConfigMap", &["c0"]))];
    objects.push(object("v1", "ConfigMap", "c0", None));
    for number in 1..2_000 {
        let owner = format!("ConfigMap-c{}", number - 1);
        objects.push(object("v1", "ConfigMap", &format!("c{number}"), Some(&owner)));
    }
    let prod = holding("prod", &objects);
    let lines = lines(&[&prod], "app", TreeOptions::default());
    assert!(lines.len() <= 51, "{}", lines.len());
    assert!(lines.last().unwrap().ends_with("(its dependents are left out: too many levels)"), "{lines:#?}");
}

#[test]
fn objects_out_of_reach_are_not_replaced_by_namesakes_in_the_home() {
    let mut app = kustomization("app", &ids("apps_Deployment", &["web"]));
    app["spec"]["kubeConfig"] = json!({"secretRef": {"name": "far-away"}});
    let prod = holding(
        "prod",
        &[
            app,
            object("apps/v1", "Deployment", "web", None),
            object("v1", "ConfigMap", "of-here", Some("Deployment-web")),
        ],
    );
    assert_eq!(lines(&[&prod], "app", TreeOptions::default())[1..], ["  Deployment web Unknown"]);
}

#[test]
fn a_live_cluster_has_the_tree_of_its_dump() {
    for case in cases() {
        let Ok(yaml) = std::fs::read_to_string(case.join("cluster.yaml")) else { continue };
        let dump = cluster("cluster", &yaml);
        let server = Server::new(documents(&yaml));
        let list = apps(&[&dump], &ActiveRules::default(), NOW);
        for app in list.apps.iter().take(5) {
            let name = full_name(&app.app);
            let asked = ReadQuery {
                dependents: Dependents::Of(name.parse().unwrap()),
                events: true,
                ..ReadQuery::default()
            };
            let (live, _) = server.read("cluster", &asked);
            assert_eq!(
                lines(&[&live], &name, TreeOptions::default()),
                lines(&[&dump], &name, TreeOptions::default()),
                "{name} of {}",
                case.display()
            );
        }
    }
}

#[test]
fn dependents_are_read_only_in_the_namespaces_of_the_app() {
    let mut objects = Vec::new();
    for namespace in ["shop", "other"] {
        let mut app = kustomization(namespace, &[format!("{namespace}_web_apps_Deployment")]);
        app["metadata"]["namespace"] = json!(namespace);
        let mut web = object("apps/v1", "Deployment", "web", None);
        // What is not well is followed to its Pods whatever was asked for.
        web["spec"] = json!({"replicas": 1});
        web["status"] = json!({
            "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "conditions": [{"type": "Available", "status": "True"}],
        });
        let mut pod = object("v1", "Pod", "web-1", Some("Deployment-web"));
        let mut event = object("v1", "Event", "web-1", None);
        for object in [&mut web, &mut pod, &mut event] {
            object["metadata"]["namespace"] = json!(namespace);
        }
        objects.extend([app, web, pod, event]);
    }
    let server = Server::new(objects);
    let paths = |dependents, events| {
        let asked = ReadQuery { dependents, events, label_groups: false, ..ReadQuery::default() };
        let (_, log) = server.read("cluster", &asked);
        let of_controllers = |path: &String| path.ends_with("pods") || path.ends_with("events");
        log.all().map(taffrail_apps::Read::path).filter(of_controllers).collect::<Vec<_>>()
    };
    assert_eq!(paths(Dependents::None, true), Vec::<String>::new());
    assert_eq!(paths(Dependents::Of("shop/shop".parse().unwrap()), false), ["/api/v1/namespaces/shop/pods"]);
    assert_eq!(paths(Dependents::All, true).len(), 4);
}

#[test]
fn a_tree_shows_unconfirmed_objects() {
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "other", "name": "settings"}});
    let own = object("v1", "ConfigMap", "own", None);
    let ids = ["shop_own__ConfigMap", "other_settings__ConfigMap"].map(str::to_owned);
    let prod = holding("prod", &[kustomization("app", &ids), settings, own]);
    let told = lines(&[&prod], "app", TreeOptions { fold: false, nest: true, compact: false });
    assert!(told.contains(&"  ConfigMap settings Current (unconfirmed)".to_owned()), "{told:?}");
    assert!(told.contains(&"  ConfigMap own Current".to_owned()), "{told:?}");
}
