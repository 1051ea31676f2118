//! Findings against green: cases in `tests/trust`, and those that depend on how a cluster was read.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use taffrail_api::{TrustFinding, TrustReport};
use taffrail_apps::trust::TrustShape;
use taffrail_apps::{App, Objects, ReadQuery, Scope, ScopeError, Snapshot, apps};
use taffrail_object::GroupKind;
use taffrail_status::ActiveRules;

use super::dump::{NOW, documents, holding};
use super::server::Server;

fn report(clusters: &[&dyn Objects], now: Timestamp, shape: TrustShape) -> TrustReport {
    let list = apps(clusters, &ActiveRules::default(), now);
    let asked: Vec<&App> = list.apps.iter().collect();
    TrustReport::new(&asked, &list, clusters, now, shape)
}

fn findings(cluster: &Snapshot) -> Vec<TrustFinding> {
    report(&[cluster], NOW, TrustShape::default()).items
}

/// Returns a finding in one line, as the cases have it.
fn line(finding: &TrustFinding) -> String {
    let TrustFinding { category, severity, reason, scope, green, app_count, message, .. } = finding;
    let since = finding.since.as_ref().map(|since| format!(" since {since}")).unwrap_or_default();
    format!(
        "{} {}/{reason} {scope} {green}/{app_count}{since} {message}",
        severity.as_str(),
        category.as_str()
    )
}

/// Returns true if a line is the expected one; a part of the message is enough.
fn is_like(line: &str, expected: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (line, expected) = (words(line), words(expected));
    // Severity, what, scope and numbers; then since, if it is there.
    let head = if expected.get(4).is_some_and(|word| word == "since") { 6 } else { 4 };
    line.get(..head) == expected.get(..head)
        && (head == 6) == (line.get(4).is_some_and(|word| word == "since"))
        && line[head..].join(" ").contains(&expected[head..].join(" "))
}

#[test]
fn every_case_has_its_findings_and_no_other() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for file in ["silent", "said", "by_hand"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/trust/{file}.yaml"));
        let cases = documents(&std::fs::read_to_string(path).unwrap()).remove(0);
        for case in cases.as_array().unwrap() {
            seen += 1;
            let objects = case["objects"].as_array().unwrap();
            let found: Vec<String> = findings(&holding("cluster", objects)).iter().map(line).collect();
            let expected: Vec<&str> =
                case["expect"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
            let missing = expected.iter().filter(|wanted| !found.iter().any(|line| is_like(line, wanted)));
            let extra = found.iter().filter(|line| !expected.iter().any(|wanted| is_like(line, wanted)));
            let name = case["case"].as_str().unwrap();
            wrong.extend(missing.map(|it| format!("{name}: lacks {it}")));
            wrong.extend(extra.map(|it| format!("{name}: also {it}")));
        }
    }
    assert!(seen >= 20, "{seen} cases");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_undated_dump_is_judged_at_its_newest_time() {
    let lease = |name: &str, at: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "kube-node-lease", "name": name},
            "spec": {"leaseDurationSeconds": 40, "renewTime": at},
        })
    };
    let objects = [lease("one", "2026-02-01T12:00:00.000000Z"), lease("two", "2026-02-01T11:00:00.000000Z")];
    let mut dump = holding("cluster", &objects);
    let scopes = |findings: &[TrustFinding]| {
        findings.iter().map(|finding| format!("{} {}", finding.reason, finding.scope)).collect::<Vec<_>>()
    };
    assert_eq!(scopes(&findings(&dump)), ["Node /Node"]);
    dump.set_undated();
    let found = findings(&dump);
    assert_eq!(scopes(&found), ["Undated cluster", "Node /Node//two"]);
    assert_eq!(found[0].since, Some("2026-02-01T12:00:00Z".parse().unwrap()));
}

#[test]
fn clock_skew_is_reported_and_does_not_make_nodes_silent() {
    let renewed = |at: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "kube-node-lease", "name": "one"},
            "spec": {"leaseDurationSeconds": 40, "renewTime": at},
        })
    };
    let reasons = |at: &str, ahead: Option<i64>| {
        let mut cluster = holding("cluster", &[renewed(at)]);
        if let Some(ahead) = ahead {
            cluster.set_clock_ahead(SignedDuration::from_secs(ahead));
        }
        findings(&cluster).iter().map(|finding| finding.reason.clone()).collect::<Vec<_>>()
    };
    assert_eq!(reasons("2026-03-01T12:00:10Z", None), [""; 0]);
    assert_eq!(reasons("2026-03-01T12:10:00Z", None), ["FutureTime"]);
    assert_eq!(reasons("2026-03-01T12:10:00Z", Some(600)), ["ServerClock"]);
    assert_eq!(reasons("2026-03-01T11:50:00Z", Some(-600)), ["ServerClock"]);
    assert_eq!(reasons("2026-03-01T11:50:00Z", Some(2)), ["Node"]);
}

#[test]
fn unread_scopes_name_the_apps_that_need_them() {
    let web = |namespace: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "namespace": namespace, "name": "web", "generation": 1, "labels": {"app.kubernetes.io/instance": "web"},
            },
            "spec": {"replicas": 1},
            "status": {
                "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
                "conditions": [{"type": "Available", "status": "True"}],
            },
        })
    };
    let mut cluster = holding("cluster", &[web("one"), web("two")]);
    let refused = |group: &str, kind: &str, namespace: Option<&str>, reason: &str| ScopeError {
        scope: Scope::Kind { kind: GroupKind::new(group, kind), namespace: namespace.map(str::to_owned) },
        reason: reason.to_owned(),
        message: "no".to_owned(),
    };
    for kind in ["ReplicaSet", "Deployment"] {
        cluster.report(refused("apps", kind, Some("one"), "Forbidden"));
    }
    cluster.report(refused("", "Pod", None, "Timeout"));
    cluster.report(refused("argoproj.io", "Application", None, "Forbidden"));
    let found: Vec<String> = findings(&cluster).iter().map(line).collect();
    assert_eq!(
        found,
        [
            "medium unread/KindUnread /Pod 2/2 Pods could not be read (Timeout): objects are judged by their own \
             status alone",
            "medium unread/Forbidden 2 kinds 1/1 Deployments in one and ReplicaSets in one cannot be listed (access \
             denied): their status is unknown",
            "medium unread/Forbidden argoproj.io/Application 0/0 Applications cannot be listed (access denied): apps \
             may be missing from this answer",
            "low fallback/NoInventory label 2/2 2 apps are known only by their labels: a missing object would go \
             unnoticed",
        ]
    );

    let mut crowded = holding("cluster", &[web("one"), web("two")]);
    crowded.report(ScopeError {
        scope: Scope::Namespace("one".to_owned()),
        reason: "OverLimit".to_owned(),
        message: "3 apps are left out".to_owned(),
    });
    let found: Vec<String> = findings(&crowded).iter().map(line).collect();
    let told = "medium unread/NamespaceUnread namespace one 1/1 3 apps are left out".to_owned();
    assert!(found.contains(&told), "{found:?}");

    let lost = Snapshot::lost("gone", "Timeout", "no answer within 5s");
    let found = findings(&lost);
    assert_eq!(
        line(&found[0]),
        "medium unread/ClusterLost cluster 0/0 nothing is known of this cluster: no answer within 5s"
    );
}

#[test]
fn commands_name_the_cluster_where_it_must_be_named() {
    let objects = [json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-node-lease", "name": "one"},
        "spec": {"leaseDurationSeconds": 40, "renewTime": "2026-03-01T11:00:00Z"},
    })];
    let next = |contexts| {
        let cluster = holding("it's prod", &objects);
        let shape = TrustShape { contexts, ..TrustShape::default() };
        report(&[&cluster], NOW, shape).items[0].next.clone()
    };
    assert_eq!(next(false), ["kubectl describe node one"]);
    assert_eq!(next(true), [r"kubectl describe node one --context 'it'\''s prod'"]);
}

#[test]
fn equal_findings_are_joined_with_a_count() {
    let settings: Vec<Value> = (0..30)
        .map(|number| {
            json!({
                "apiVersion": "acme.dev/v1", "kind": "Setting",
                "metadata": {
                    "namespace": "shop", "name": format!("s{number:02}"),
                    "labels": {"app.kubernetes.io/instance": format!("app{:02}", number / 2)},
                },
            })
        })
        .collect();
    let found = findings(&holding("cluster", &settings));
    let mute = found.iter().find(|finding| finding.reason == "NoStatus").unwrap();
    assert_eq!((mute.object_count, mute.objects.len(), mute.app_count, mute.apps.len()), (30, 10, 15, 10));
    assert_eq!(mute.objects[0].key.name, "s00");
}

/// Whoever names objects `aaa…` displaces none of other namespaces.
#[test]
fn namespaces_take_turns_in_joined_findings() {
    let setting = |namespace: &str, name: String| {
        json!({"apiVersion": "acme.dev/v1", "kind": "Setting",
            "metadata": {"namespace": namespace, "name": name, "labels": {"app.kubernetes.io/instance": name}}})
    };
    let settings = |tenant: &str| -> Vec<Value> {
        let own = (0..30).map(|at| setting(tenant, format!("a{at:02}")));
        own.chain(["shop", "web"].map(|namespace| setting(namespace, "s".to_owned()))).collect()
    };
    let named = |found: &[TrustFinding]| {
        let mute = found.iter().find(|finding| finding.reason == "NoStatus").unwrap().clone();
        assert_eq!((mute.objects.len(), mute.apps.len()), (10, 10));
        let objects: Vec<String> =
            mute.objects.iter().map(|it| format!("{}/{}", it.key.namespace, it.key.name)).collect();
        let apps: Vec<String> =
            mute.apps.iter().map(|it| format!("{}/{}", it.app.namespace, it.app.name)).collect();
        (objects, apps)
    };
    let (objects, apps) = named(&findings(&holding("cluster", &settings("aaa"))));
    let tenants = (0..8).map(|at| format!("aaa/a{at:02}"));
    let expected: Vec<String> = tenants.chain(["shop/s".to_owned(), "web/s".to_owned()]).collect();
    assert_eq!(objects, expected);
    assert!(apps.contains(&"shop/s".to_owned()) && apps.contains(&"web/s".to_owned()), "{apps:?}");
    // The same of several clusters, of which the first has all places.
    let (one, two) = (holding("one", &settings("aaa")), holding("two", &settings("aaa")));
    let both = report(&[&one, &two], NOW, TrustShape::default()).together();
    let (objects, apps) = named(&both.items);
    assert_eq!(objects, expected);
    assert!(apps.contains(&"shop/s".to_owned()) && apps.contains(&"web/s".to_owned()), "{apps:?}");
}

#[test]
fn equal_findings_of_several_objects_are_joined() {
    let lease = |name: &str, at: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "kube-node-lease", "name": name},
            "spec": {"leaseDurationSeconds": 40, "renewTime": at},
        })
    };
    let leases = [lease("one", "2026-03-01T11:50:00Z"), lease("two", "2026-03-01T11:40:00Z")];
    let found = findings(&holding("cluster", &leases));
    assert_eq!(
        found.iter().map(line).collect::<Vec<_>>(),
        [
            "low silent/Node /Node 0/0 since 2026-03-01T11:40:00Z 2 objects, each: the node's kubelet does not renew its \
             lease; no Pod on it is called ready"
        ]
    );
    assert_eq!(found[0].object_count, 2);
}

#[test]
fn a_report_for_one_app_has_only_its_findings() {
    let setting = |app: &str, kind: &str| {
        json!({
            "apiVersion": "acme.dev/v1", "kind": kind, "status": {"size": 1},
            "metadata": {"namespace": "shop", "name": app, "labels": {"app.kubernetes.io/instance": app}},
        })
    };
    let mut cluster = holding("cluster", &[setting("one", "Gear"), setting("two", "Wheel")]);
    cluster.report(ScopeError {
        scope: Scope::Group("metrics.acme.dev".to_owned()),
        reason: "DiscoveryFailed".to_owned(),
        message: "down".to_owned(),
    });
    let list = apps(&[&cluster], &ActiveRules::default(), NOW);
    let scopes = |name: Option<&str>| {
        let asked: Vec<&App> =
            list.apps.iter().filter(|app| name.is_none_or(|name| app.app.name == name)).collect();
        let shape = TrustShape { only_apps: name.is_some(), ..TrustShape::default() };
        let report = TrustReport::new(&asked, &list, &[&cluster], NOW, shape);
        assert_eq!(report.checked[0].apps, asked.len());
        report
            .items
            .iter()
            .map(|finding| format!("{} {}", finding.scope, finding.app_count))
            .collect::<Vec<_>>()
    };
    assert_eq!(scopes(Some("one")), ["acme.dev/Gear 1", "label 1"]);
    assert_eq!(scopes(None), ["acme.dev/Gear 1", "acme.dev/Wheel 1", "group metrics.acme.dev 0", "label 2"]);
}

#[test]
fn a_report_for_one_app_names_only_its_objects_of_a_kind() {
    let gear = |app: &str| {
        json!({
            "apiVersion": "acme.dev/v1", "kind": "Gear", "status": {"size": 1},
            "metadata": {"namespace": "shop", "name": app, "labels": {"app.kubernetes.io/instance": app}},
        })
    };
    let cluster = holding("cluster", &[gear("one"), gear("two")]);
    let list = apps(&[&cluster], &ActiveRules::default(), NOW);
    let each: Vec<Vec<&App>> = list.apps.iter().map(|app| vec![app]).collect();
    let shape = TrustShape { only_apps: true, ..TrustShape::default() };
    let reports = TrustReport::each(&each, &list, &[&cluster], NOW, shape);
    let told = |report: &TrustReport| {
        let gears = report.items.iter().find(|finding| finding.reason == "NoRule").unwrap();
        (gears.object_count, gears.objects.iter().map(|object| object.key.name.clone()).collect::<Vec<_>>())
    };
    assert_eq!(
        reports.iter().map(told).collect::<Vec<_>>(),
        ["one", "two"].map(|it| (1, vec![it.to_owned()]))
    );
    // Together they share one finding.
    let all: Vec<&App> = list.apps.iter().collect();
    assert_eq!(told(&TrustReport::new(&all, &list, &[&cluster], NOW, shape)).0, 2);
}

#[test]
fn a_lost_cluster_is_a_finding_about_its_apps() {
    let app = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "argocd", "name": "shop"},
        "spec": {"destination": {"server": "https://edge.example.com"}},
        "status": {"resources": [{"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "a"}]},
    });
    let hub = holding("hub", &[app]);
    let mut edge = Snapshot::dump("edge", NOW);
    edge.add_server("https://edge.example.com");
    edge.report(ScopeError {
        scope: Scope::Cluster,
        reason: "ConnectionRefused".to_owned(),
        message: "refused".to_owned(),
    });
    let clusters: [&dyn Objects; 2] = [&hub, &edge];
    let list = apps(&clusters, &ActiveRules::default(), NOW);
    let asked: Vec<&App> = list.apps.iter().filter(|app| app.app.name == "shop").collect();
    let shape = TrustShape { only_apps: true, contexts: true, ..TrustShape::default() };
    let report = TrustReport::new(&asked, &list, &clusters, NOW, shape);
    let lost = report.items.iter().find(|finding| finding.reason == "ClusterLost").map(line);
    assert_eq!(
        lost.as_deref(),
        Some("low unread/ClusterLost cluster 0/1 what this cluster holds now is not known: refused"),
        "{:?}",
        report.items
    );
    // Where that is told of another app it is no matter.
    assert_eq!(TrustReport::new(&[], &list, &clusters, NOW, shape).items, []);
}

#[test]
fn leases_are_read_only_for_trust() {
    let server = Server::new(vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u"}}),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "namespace": "flux-system", "name": "source-controller",
                "labels": {"app.kubernetes.io/part-of": "flux"},
            },
        }),
        json!({
            "apiVersion": "acme.dev/v1", "kind": "Setting",
            "metadata": {"namespace": "shop", "name": "one", "labels": {"app.kubernetes.io/instance": "shop"}},
        }),
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "settings.acme.dev"},
        }),
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "kube-node-lease", "name": "one"},
        }),
    ]);
    let asks = |asked: &ReadQuery| {
        let (_, log) = server.read("cluster", asked);
        log.assert_no_repetition();
        let paths: Vec<String> = log.all().map(taffrail_apps::Read::path).collect();
        let has = |path: &str| paths.iter().any(|own| own == path);
        (
            has("/apis/coordination.k8s.io/v1/leases"),
            has("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/settings.acme.dev"),
        )
    };
    assert_eq!(asks(&ReadQuery::default()), (false, false));
    assert_eq!(asks(&ReadQuery { liveness: true, ..ReadQuery::default() }), (true, true));
}

#[test]
fn controllers_without_a_lease_are_named() {
    let lease = |namespace: &str, name: &str| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"leaseDurationSeconds": 40, "renewTime": "2026-03-01T11:59:59Z"}})
    };
    let mut app = super::tree::kustomization("web", &[]);
    app["metadata"]["namespace"] = json!("flux-system");
    let named = |leases: &[Value]| {
        let cluster = holding("cluster", &[leases, std::slice::from_ref(&app)].concat());
        let clusters: [&dyn Objects; 1] = [&cluster];
        let list = apps(&clusters, &ActiveRules::default(), NOW);
        let asked: Vec<&App> = list.apps.iter().collect();
        let report = TrustReport::new(&asked, &list, &clusters, NOW, TrustShape::default());
        report.checked[0].without_lease.clone()
    };
    let known = [
        lease("kube-system", "kube-controller-manager"),
        lease("flux-system", "source-controller-leader-election"),
        lease("tenant", "kustomize-controller-leader-election"),
    ];
    assert_eq!(named(&known), ["kube-scheduler", "kustomize-controller"]);
    assert_eq!(named(&[]), [""; 0], "what was not read is not missing");
}

/// Any author can give a Lease the name of a controller's.
#[test]
fn leases_of_tenants_do_not_count_for_controllers() {
    let lease = |namespace: &str, at: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": namespace, "name": "kustomize-controller-leader-election"},
            "spec": {"leaseDurationSeconds": 40, "renewTime": at},
        })
    };
    let mut app = super::tree::kustomization("web", &[]);
    app["metadata"]["namespace"] = json!("flux-system");
    let said = |leases: &[Value]| -> Vec<String> {
        let found = findings(&holding("cluster", &[leases, std::slice::from_ref(&app)].concat()));
        found
            .iter()
            .filter(|it| matches!(&*it.reason, "Deliverer" | "FutureTime"))
            .map(|it| it.scope.clone())
            .collect()
    };
    let (old, fresh, ahead) = ("2026-01-01T11:00:00Z", "2026-03-01T11:59:59Z", "2026-04-01T11:00:00Z");
    let own = "coordination.k8s.io/Lease/flux-system/kustomize-controller-leader-election";
    assert_eq!(said(&[lease("tenant", old)]), Vec::<String>::new());
    assert_eq!(said(&[lease("flux-system", old)]), [own]);
    assert_eq!(said(&[lease("flux-system", old), lease("tenant", fresh)]), [own]);
    assert_eq!(said(&[lease("flux-system", fresh), lease("tenant", ahead)]), Vec::<String>::new());
    assert_eq!(said(&[lease("flux-system", ahead)]), [own]);
}

#[test]
fn a_dump_is_dated_by_leases_and_heartbeats_if_it_has_any() {
    let lease = |at: &str| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "kube-system", "name": "kube-controller-manager"},
            "spec": {"leaseDurationSeconds": 15, "renewTime": at}})
    };
    let event = |namespace: &str| {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": namespace, "name": "e"},
            "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "p"}, "type": "Normal",
            "reason": "r", "message": "m", "lastTimestamp": "2026-02-28T12:00:00Z"})
    };
    let app = super::tree::kustomization("web", &[]);
    let said = |objects: &[Value]| -> Vec<String> {
        let mut cluster = holding("cluster", &[objects, std::slice::from_ref(&app)].concat());
        cluster.set_undated();
        let clusters: [&dyn Objects; 1] = [&cluster];
        let found = report(&clusters, NOW, TrustShape::default()).items;
        found.iter().filter(|it| it.reason == "ControlPlane").map(|it| it.scope.clone()).collect()
    };
    let old = "2026-02-20T12:00:00Z";
    assert_eq!(said(&[lease(old)]), Vec::<String>::new());
    assert_eq!(said(&[lease(old), event("aaa")]), Vec::<String>::new());
    assert_eq!(said(&[lease(old), event("kube-system")]).len(), 1);
    // What the API server wrote is no younger than the dump.
    let young = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "aaa", "name": "c", "creationTimestamp": "2026-02-27T12:00:00Z"}});
    assert_eq!(said(&[lease(old), young]).len(), 1);
}
