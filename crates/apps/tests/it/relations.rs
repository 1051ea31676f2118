//! Relations between apps, and the app upstream that is named as the cause of one downstream.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taffrail_api::{AppDetailList, ClusterList, RelationDirection, RelationRow};
use taffrail_apps::{
    App, AppList, Axis, Hosting, MAX_HOSTING, Objects, ProblemSeverity, RelationType, Snapshot, apps, hosting,
};
use taffrail_rules::{Layer, Origin, RuleSet};
use taffrail_status::{ActiveRules, Status};

use super::dump::{NOW, holding};
use super::porch;
use super::rows::{live, stays_equal};

/// A Kustomization that depends on others, with one condition Ready and an inventory.
fn kustomization(name: &str, depends_on: &[&str], ready: [&str; 3], entries: &[&str]) -> Value {
    let [status, reason, message] = ready;
    let depends_on: Vec<Value> = depends_on.iter().map(|name| json!({"name": name})).collect();
    let entries: Vec<Value> = entries.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "flux-system", "name": name, "uid": format!("u-{name}"), "generation": 1,
            "creationTimestamp": "2026-03-01T09:00:00Z"},
        "spec": {"interval": "10m", "path": "./", "dependsOn": depends_on,
            "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {"observedGeneration": 1, "lastAppliedRevision": "main@sha1:aaa",
            "lastAttemptedRevision": "main@sha1:aaa", "inventory": {"entries": entries},
            "conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message,
                "observedGeneration": 1, "lastTransitionTime": "2026-03-01T11:00:00Z"}]},
    })
}

fn waiting(name: &str, upstream: &str) -> Value {
    let message = format!("dependency 'flux-system/{upstream}' is not ready");
    kustomization(name, &[upstream], ["False", "DependencyNotReady", &message], &[])
}

fn well(name: &str, entries: &[&str]) -> Value {
    kustomization(name, &[], ["True", "ReconciliationSucceeded", "Applied revision: main@sha1:aaa"], entries)
}

fn failed(name: &str) -> Value {
    kustomization(name, &[], ["False", "BuildFailed", "no such file"], &[])
}

fn source() -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"namespace": "flux-system", "name": "fleet"},
        "spec": {"url": "https://git.example.com/fleet", "ref": {"branch": "main"}},
        "status": {"artifact": {"revision": "main@sha1:aaa", "lastUpdateTime": "2026-03-01T09:00:00Z"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored"}]},
    })
}

/// The id of a Kustomization in an inventory.
fn entry(name: &str) -> String {
    format!("flux-system_{name}_kustomize.toolkit.fluxcd.io_Kustomization")
}

/// A Kustomization whose inventory has other ones.
fn parent(name: &str, children: &[&str]) -> Value {
    let entries: Vec<String> = children.iter().map(|child| entry(child)).collect();
    well(name, &entries.iter().map(String::as_str).collect::<Vec<_>>())
}

fn list(clusters: &[&Snapshot]) -> AppList {
    let clusters: Vec<&dyn Objects> = clusters.iter().map(|it| *it as &dyn Objects).collect();
    apps(&clusters, &ActiveRules::default(), NOW)
}

fn named<'l>(list: &'l AppList, name: &str) -> &'l App {
    list.apps.iter().find(|app| app.app.name == name).unwrap()
}

/// Returns type, direction, name, status and message of each relation of an app.
fn relations(list: &AppList, clusters: &[&Snapshot], name: &str) -> Vec<String> {
    let clusters: Vec<&dyn Objects> = clusters.iter().map(|it| *it as &dyn Objects).collect();
    let rules = RuleSet::shipped();
    let rules = ActiveRules::new(&rules);
    let details = AppDetailList::new(&[named(list, name)], list, &clusters, &rules, NOW);
    let row = |row: &RelationRow| {
        let arrow = match row.direction {
            RelationDirection::Upstream => "->",
            RelationDirection::Downstream => "<-",
        };
        let RelationRow { relation, app, status, message, .. } = row;
        format!("{} {arrow} {}/{}: {status} {}", relation.as_str(), app.cluster, app.app, &**message)
    };
    details.items[0].relations.iter().map(row).map(|it| it.trim_end().to_owned()).collect()
}

#[test]
fn app_that_waits_names_the_cause_upstream() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "infra", "name": "ingress", "generation": 1, "uid": "u-ingress", "labels": {
            "kustomize.toolkit.fluxcd.io/name": "infra", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1,
            "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
                "message": "ReplicaSet \"ingress-1\" has timed out progressing."}]},
    });
    let infra = kustomization(
        "infra",
        &[],
        ["False", "HealthCheckFailed", "timeout waiting for: [Deployment/infra/ingress]"],
        &["infra_ingress_apps_Deployment"],
    );
    let objects = [source(), infra, deployment, waiting("shop", "infra"), waiting("web", "shop")];
    let prod = holding("prod", &objects);
    let list = list(&[&prod]);
    let [infra, shop, web] = ["infra", "shop", "web"].map(|name| named(&list, name));
    let cause = &*infra.message;
    let says = |name: &str| format!("dependency 'flux-system/{name}' is not ready");
    assert!(cause.contains("deadline exceeded"), "{cause}");
    assert_eq!(
        &*shop.message,
        format!(
            "waits for Kustomization flux-system/infra, which is Failed: {cause} (Flux: {})",
            says("infra")
        )
    );
    assert_eq!(
        &*web.message,
        format!(
            "waits for Kustomization flux-system/shop, which waits for Kustomization flux-system/infra, which is \
             Failed: {cause} (Flux: {})",
            says("shop")
        )
    );
    for app in [shop, web] {
        let problem = app.problem().unwrap();
        assert_eq!((app.health, problem.severity), (Status::InProgress, ProblemSeverity::Waiting));
        assert_eq!(problem.message, app.message);
        assert_eq!(app.speaker.as_ref().unwrap().message, app.message);
        assert_eq!(problem.upstream.as_deref().unwrap().app.name, "infra");
        assert_eq!(problem.cause(), infra.problem().unwrap().cause());
    }
    assert_eq!(infra.problem().unwrap().upstream, None);
    let upstream = format!("dependsOn -> prod/flux-kustomization flux-system/infra: Failed {cause}");
    let downstream =
        format!("dependsOn <- prod/flux-kustomization flux-system/web: InProgress {}", &*web.message);
    assert_eq!(relations(&list, &[&prod], "shop"), [upstream, downstream]);
}

#[test]
fn missing_app_upstream_is_said_to_be_not_found() {
    let prod = holding("prod", &[source(), waiting("shop", "gone"), well("infra", &[])]);
    let waits = list(&[&prod]);
    assert!(named(&waits, "shop").message.contains("gone"), "{}", &*named(&waits, "shop").message);
    let gone = "Kustomization flux-system/gone";
    assert_eq!(
        relations(&waits, &[&prod], "shop"),
        [format!("dependsOn -> prod/flux-kustomization flux-system/gone: NotFound {gone} not found")]
    );
    // An app that is well may depend on one that is gone, too: that changes nothing.
    let shop = kustomization("shop", &["gone"], ["True", "ReconciliationSucceeded", "Applied"], &[]);
    let is_well = list(&[&holding("prod", &[source(), shop])]);
    assert!(named(&is_well, "shop").is_well());
    assert!(named(&is_well, "shop").upstreams.apps[0].is_missing);
}

#[test]
fn circle_of_dependencies_is_named_as_one() {
    let prod = holding("prod", &[source(), waiting("a", "b"), waiting("b", "a"), waiting("c", "a")]);
    let list = list(&[&prod]);
    for (name, upstream) in [("a", "b"), ("b", "a"), ("c", "a")] {
        assert_eq!(
            &*named(&list, name).message,
            format!(
                "waits for Kustomization flux-system/{upstream}, whose dependencies form a circle (Flux: dependency \
                 'flux-system/{upstream}' is not ready)"
            )
        );
    }
    assert!(list.apps.iter().all(|app| app.health == Status::InProgress));
}

#[test]
fn long_paths_and_many_dependencies_are_bounded() {
    let mut objects = vec![source(), failed("a000")];
    let name = |number: usize| format!("a{number:03}");
    objects.extend((1..200).map(|number| waiting(&name(number), &name(number - 1))));
    let many: Vec<String> = (0..100).map(name).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    objects.push(kustomization("many", &many, ["True", "ReconciliationSucceeded", "Applied"], &[]));
    let prod = holding("prod", &objects);
    let list = list(&[&prod]);
    assert_eq!(
        &*named(&list, "a010").message,
        "waits for Kustomization flux-system/a009, which waits, by way of 8 more, for Kustomization \
         flux-system/a000, which is Failed: no such file (Flux: dependency 'flux-system/a009' is not ready)"
    );
    assert!(list.apps.iter().all(|app| app.message.len() < 1000));
    let upstreams = &named(&list, "many").upstreams;
    assert_eq!((upstreams.apps.len(), upstreams.left_out), (64, 36));
}

#[test]
fn app_of_apps_creates_apps_in_the_cluster_that_it_delivers_to() {
    let application = |name: &str, server: &str, resources: Value| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "argocd", "name": name, "annotations":
                {"argocd.argoproj.io/tracking-id": format!("root:argoproj.io/Application:argocd/{name}")}},
            "spec": {"destination": {"server": server, "namespace": "argocd"},
                "source": {"repoURL": "https://git.example.com/fleet", "path": "apps"}},
            "status": {"sync": {"status": "Synced", "revision": "c1"}, "health": {"status": "Healthy"},
                "resources": resources},
        })
    };
    let child = json!([{"group": "argoproj.io", "version": "v1alpha1", "kind": "Application",
        "namespace": "argocd", "name": "shop", "status": "Synced"}]);
    let hub = holding("hub", &[application("root", "https://edge.example.com", child)]);
    let mut edge = holding("edge", &[application("shop", "https://kubernetes.default.svc", json!([]))]);
    edge.add_server("https://edge.example.com");
    let clusters = [&hub, &edge];
    let list = list(&clusters);
    let root = ["createdBy -> edge/argo-application argocd/root: Current"];
    assert_eq!(relations(&list, &clusters, "shop"), root);
    let shop = ["createdBy <- edge/argo-application argocd/shop: Current"];
    assert_eq!(relations(&list, &clusters, "root"), shop);
}

#[test]
fn unconfirmed_claim_creates_no_relation() {
    let mut forged = parent("forged", &["shop"]);
    forged["metadata"]["namespace"] = json!("tenant");
    let prod = holding("prod", &[source(), forged, well("shop", &[])]);
    let claimed = list(&[&prod]);
    assert_eq!(named(&claimed, "forged").unconfirmed(), 1);
    assert_eq!(relations(&claimed, &[&prod], "shop"), [] as [&str; 0]);
    // Flux' own bootstrap lists itself.
    let prod = holding("prod", &[source(), parent("root", &["root", "shop"]), well("shop", &[])]);
    let shop = ["createdBy <- prod/flux-kustomization flux-system/shop: Current"];
    assert_eq!(relations(&list(&[&prod]), &[&prod], "root"), shop);
}

#[test]
fn app_of_apps_names_the_cause_of_its_waiting_child() {
    let objects = [source(), parent("root", &["shop"]), failed("infra"), waiting("shop", "infra")];
    let prod = holding("prod", &objects);
    let list = list(&[&prod]);
    let root = named(&list, "root");
    assert_eq!(
        &*root.message,
        "Kustomization flux-system/shop waits for Kustomization flux-system/infra, which is Failed: no such file \
         (Flux: dependency 'flux-system/infra' is not ready)"
    );
    assert_eq!(root.problem().unwrap().cause(), named(&list, "infra").problem().unwrap().cause());
}

#[test]
fn package_names_the_failed_sync_that_delivers_it() {
    let edge = holding("edge", &porch::edge_of_failed_sync());
    let porch = holding("porch", &porch::porch_of_shop());
    let list = list(&[&porch, &edge]);
    let package = list.apps.iter().find(|app| app.app.delivery.as_str() == "porch").unwrap();
    let problem = package.problems.iter().find(|problem| problem.axis == Axis::Sync).unwrap();
    let delivers = "RootSync config-management-system/root-sync, which delivers the app, failed: ";
    assert!(problem.message.starts_with(delivers), "{}", &*problem.message);
    assert_eq!(problem.upstream.as_deref().unwrap().app.name, "root-sync");
    let sync = named(&list, "root-sync").problems.iter().find(|it| it.axis == Axis::Sync).unwrap();
    assert_eq!(problem.cause(), sync.cause());
    let upstream = &package.upstreams.apps[..];
    assert!(matches!(upstream, [one] if one.relation == RelationType::DeliveredBy && one.home == "edge"));
}

#[test]
fn app_that_declares_a_cluster_hosts_the_apps_in_it() {
    let cluster = |name: &str, host: &str| {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
            "metadata": {"namespace": "flux-system", "name": name},
            "spec": {"controlPlaneEndpoint": {"host": host, "port": 6443}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })
    };
    let gke = json!({
        "apiVersion": "container.cnrm.cloud.google.com/v1beta1", "kind": "ContainerCluster",
        "metadata": {"namespace": "flux-system", "name": "gke"},
        "status": {"endpoint": "10.0.0.7", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let entries = [
        "flux-system_gke_container.cnrm.cloud.google.com_ContainerCluster",
        "flux-system_elsewhere_cluster.x-k8s.io_Cluster",
        "flux-system_other_cluster.x-k8s.io_Cluster",
    ];
    // The address of one is in its spec alone: anyone may write it there.
    let claims = cluster("elsewhere", "10.0.0.9");
    let objects = [source(), well("clusters", &entries), gke, claims, cluster("other", "10.0.0.8")];
    let hub = holding("hub", &objects);
    let mut edge = holding("edge", &[source(), well("shop", &[])]);
    edge.add_server("https://10.0.0.7");
    // This one was found by the Secret of a Cluster.
    let found = holding("hub/flux-system/other", &[source(), well("wiki", &[])]);
    let mut elsewhere = holding("elsewhere", &[source(), well("docs", &[])]);
    elsewhere.add_server("https://10.0.0.9:6443");
    let clusters = [&hub, &edge, &found, &elsewhere];
    let list = list(&clusters);
    let status = named(&list, "clusters").health;
    let message = &*named(&list, "clusters").message;
    let message = if status == Status::Current { "" } else { message };
    let hosted_by = format!("hostedBy -> hub/flux-kustomization flux-system/clusters: {status} {message}");
    assert_eq!(relations(&list, &clusters, "shop"), [hosted_by.trim_end()]);
    assert_eq!(relations(&list, &clusters, "wiki"), [hosted_by.trim_end()]);
    assert_eq!(relations(&list, &clusters, "docs"), [] as [&str; 0]);
    let hosted = ["edge", "hub/flux-system/other"].into_iter().zip(["shop", "wiki"]);
    let hosted = hosted.map(|(cluster, name)| {
        format!("hostedBy <- {cluster}/flux-kustomization flux-system/{name}: Current")
    });
    assert_eq!(relations(&list, &clusters, "clusters"), hosted.collect::<Vec<_>>());
}

#[test]
fn cluster_shows_the_objects_that_stand_for_it() {
    let object = |version: &str, kind: &str, name: &str, spec: Value, status: Value| {
        let metadata = json!({"namespace": "fleet", "name": name, "generation": 1});
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": status})
    };
    let condition = |name: &str, status: &str, message: &str| json!({"conditions": [{"type": name, "status": status, "reason": "R", "message": message}]});
    let endpoint = json!({"controlPlaneEndpoint": {"host": "fd00::7", "port": 6443}});
    let configs = json!({"hubAcceptsClient": true, "managedClusterClientConfigs": [{"url": "https://[FD00::7]:6443/"}]});
    let server = json!({"accessProviders": [{"name": "p", "cluster": {"server": "https://[fd00::7]:6443"}}]});
    let gke = json!({"endpoint": "10.0.0.9"});
    let hub = holding(
        "hub",
        &[
            object(
                "cluster.x-k8s.io/v1beta1",
                "Cluster",
                "one",
                endpoint,
                condition("Ready", "False", "no machine"),
            ),
            object("cluster.open-cluster-management.io/v1", "ManagedCluster", "m", configs, json!({})),
            object("multicluster.x-k8s.io/v1alpha1", "ClusterProfile", "p", json!({}), server),
            object("container.cnrm.cloud.google.com/v1beta1", "ContainerCluster", "gke", json!({}), gke),
            object(
                "infra.nephio.org/v1alpha1",
                "WorkloadCluster",
                "w",
                json!({"clusterName": "edge"}),
                json!({}),
            ),
            // An author can name another's cluster, and the management cluster itself.
            object("multicluster.x-k8s.io/v1alpha1", "ClusterProfile", "hub", json!({}), json!({})),
            object("multicluster.x-k8s.io/v1alpha1", "ClusterProfile", "gone", json!({}), json!({})),
        ],
    );
    let mut edge = holding("edge", &[source(), well("shop", &[])]);
    edge.add_server("https://[fd00::7]:6443");
    let mut cloud = holding("cloud", &[]);
    cloud.add_server("https://10.0.0.9");
    let clusters: [&dyn Objects; 3] = [&hub, &edge, &cloud];
    let rules = RuleSet::shipped();
    let rules = ActiveRules::new(&rules);
    let list = apps(&clusters, &rules, NOW);
    let mut rows = ClusterList::new(&clusters, &list);
    let before = rows.clone();
    rows.set_managed(&clusters, &rules, NOW);
    let managed = |name: &str| {
        let row = rows.items.iter().find(|row| row.name == name).unwrap();
        let managed = row.managed_as.iter().map(|it| (&*it.object.kind, &*it.cluster, it.unproven));
        managed.collect::<Vec<_>>()
    };
    // Only a status is the word of a controller.
    let [first, others @ ..] = &managed("edge")[..] else { panic!() };
    assert_eq!(*first, ("ClusterProfile", "hub", false));
    assert_eq!(others, ["ManagedCluster", "Cluster", "WorkloadCluster"].map(|kind| (kind, "hub", true)));
    assert_eq!(managed("cloud"), [("ContainerCluster", "hub", false)]);
    assert_eq!(managed("hub"), []);
    let edge = rows.items.iter().find(|row| row.name == "edge").unwrap();
    let failed = edge.managed_as.iter().find(|it| it.object.kind == "Cluster").unwrap();
    assert_ne!(failed.status, Status::Current);
    assert!(failed.message.contains("no machine"), "{failed:?}");
    // What they tell changes nothing else of the rows.
    rows.items.iter_mut().for_each(|row| row.managed_as.clear());
    assert_eq!(rows, before);
}

#[test]
fn objects_of_one_namespace_displace_none_of_others_that_stand_for_a_cluster() {
    let object = |namespace: &str, name: String| {
        json!({
            "apiVersion": "infra.nephio.org/v1alpha1", "kind": "WorkloadCluster",
            "metadata": {"namespace": namespace, "name": name}, "spec": {"clusterName": "edge"},
        })
    };
    let mut objects: Vec<Value> = (0..40).map(|number| object("a-tenant", format!("w-{number}"))).collect();
    objects.push(object("fleet", "edge".to_owned()));
    let hub = holding("hub", &objects);
    let edge = holding("edge", &[source()]);
    let Hosting { objects, left_out } = hosting(&[&hub, &edge], &RuleSet::shipped());
    assert_eq!(objects.len(), MAX_HOSTING);
    assert_eq!(objects.iter().filter(|it| it.object.namespace == "fleet").count(), 1);
    assert_eq!(left_out, BTreeMap::from([("edge".to_owned(), 41 - MAX_HOSTING)]));
}

/// Each object stands for the cluster with the same number.
#[test]
fn providers_of_crossplane_and_kinds_of_rules_stand_for_clusters() {
    let eks = json!({"endpoint": "https://abc.gr7.eu-west-1.eks.amazonaws.com"});
    let (gke, aks) = (json!({"endpoint": "10.0.0.2"}), json!({"fqdn": "aks-3.hcp.westeurope.azmk8s.io"}));
    let object = |version: &str, kind: &str, name: &str, status: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": "infra", "name": name}, "status": status});
    let claim = json!([{"name": "region", "value": "eu"}, {"name": "id.k8s.io", "value": "uid-4"}]);
    let objects = [
        object("eks.aws.upbound.io/v1beta1", "Cluster", "one", json!({"atProvider": eks})),
        object("container.gcp.m.upbound.io/v1beta1", "Cluster", "two", json!({"atProvider": gke})),
        object(
            "containerservice.azure.upbound.io/v1beta2",
            "KubernetesCluster",
            "three",
            json!({"atProvider": aks}),
        ),
        object(
            "cluster.open-cluster-management.io/v1",
            "ManagedCluster",
            "four",
            json!({"clusterClaims": claim}),
        ),
        object(
            "platform.example.com/v1",
            "XCluster",
            "five",
            json!({"kube": {"url": "https://five.example.com"}}),
        ),
        // Nothing says that this kind stands for clusters.
        object(
            "platform.example.com/v1",
            "XOther",
            "five",
            json!({"kube": {"url": "https://five.example.com"}}),
        ),
    ];
    let hub = holding("hub", &objects);
    let uid =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "uid-4"}});
    let servers = [
        Some("https://abc.gr7.eu-west-1.eks.amazonaws.com:443"),
        Some("https://10.0.0.2"),
        Some("https://aks-3.hcp.westeurope.azmk8s.io:443"),
        None,
        Some("https://five.example.com"),
    ];
    let mut clusters = vec![hub];
    for (number, server) in (1..).zip(servers) {
        let mut cluster =
            holding(&format!("c-{number}"), if number == 4 { std::slice::from_ref(&uid) } else { &[] });
        server.into_iter().for_each(|server| cluster.add_server(server));
        clusters.push(cluster);
    }
    let clusters: Vec<&dyn Objects> = clusters.iter().map(|it| it as &dyn Objects).collect();
    let own = "group: platform.example.com\nsource: https://example.com\nclusters: {XCluster: {address: status.kube.url}}";
    let layer = Layer::read(Origin::User, [("rules.yaml", own)]).unwrap();
    let found = hosting(&clusters, &RuleSet::shipped().with(layer)).objects;
    let found: Vec<(&str, &str, bool)> =
        found.iter().map(|it| (&*it.cluster, &*it.object.name, it.is_proved)).collect();
    let expected = [("c-1", "one"), ("c-2", "two"), ("c-3", "three"), ("c-4", "four"), ("c-5", "five")];
    assert_eq!(found, expected.map(|(cluster, name)| (cluster, name, true)));
}

#[test]
fn relations_are_kept_up_to_date() {
    let clusters = || {
        let objects = [
            source(),
            parent("root", &["a", "b", "c", "infra"]),
            parent("other", &["a"]),
            failed("infra"),
            waiting("a", "infra"),
            waiting("b", "a"),
            waiting("c", "b"),
            waiting("d", "e"),
            waiting("e", "d"),
            waiting("f", "gone"),
        ];
        vec![holding("prod", &objects)]
    };
    for seed in 0..12 {
        stays_equal(seed, clusters(), 25);
        stays_equal(seed + 100, live(clusters()), 25);
    }
}
