//! Limits per namespace: excess reads of one do not delay others.

use std::collections::{BTreeSet, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use taffrail_apps::{
    AppList, Dependents, Excess, KindCatalog, Objects as _, Read, ReadMode, ReadPlan, ReadQuery, Rounds,
    ServedKind, Snapshot, Target, Turns, apps, elsewhere, plan_reads, plan_watches,
};
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::{ActiveRules, ClusterState as _, Presence};

use super::dump::{NOW, release, storage};
use super::reads::{kustomization, object, values_of_secrets};
use super::server::{Log, Server};

/// Returns the rounds in which reads were made for which `is_it` is true.
fn rounds(log: &Log, is_it: impl Fn(&Read) -> bool) -> Vec<usize> {
    let rounds = log.0.iter().enumerate();
    rounds.filter(|(_, reads)| reads.iter().any(&is_it)).map(|(round, _)| round).collect()
}

/// Makes a HelmRelease without an inventory, so that its release is read.
fn helm_release(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"storageNamespace": "flux-system", "releaseName": name},
        "status": {"history": [{"name": name, "version": 1, "status": "deployed"}]},
    })
}

/// Objects that a tenant can create in seconds must not use up the time of all.
#[test]
fn excess_releases_of_one_namespace_are_read_last() {
    let mut objects = vec![
        kustomization("v1", &["shop_web_apps_Deployment"]),
        object("apps/v1", "Deployment", "shop", "web"),
        release("data", "pg", 1, "deployed", ""),
    ];
    objects.extend((0..250).map(|number| storage("team-a", &format!("r{number}"), 1, &json!("eA=="))));
    let (_, log) = Server::new(objects).read("cluster", &ReadQuery::default());
    let of = |namespace: &'static str| {
        move |read: &Read| {
            read.namespace.as_deref() == Some(namespace) && matches!(read.target, Target::Object(_))
        }
    };
    let (many, few) = (rounds(&log, of("team-a")), rounds(&log, of("data")));
    let declared = rounds(&log, |read| read.kind == "Deployment");
    assert_eq!((few, &*declared), (vec![1], &[2][..]));
    assert_eq!(many, [log.0.len() - 1], "all that is left is read in one round, the last");
    assert_eq!(log.all().filter(|read| of("team-a")(read)).count(), 250);
}

/// An author who names the releases of others does not delay them.
#[test]
fn releases_are_charged_to_the_namespace_that_asks_for_them() {
    let mut objects =
        vec![release("flux-system", "infra", 1, "deployed", ""), helm_release("flux-system", "infra")];
    objects.extend((0..250).map(|number| helm_release("team-a", &format!("r{number}"))));
    let mut server = Server::new(objects);
    server.forbidden.push("list /Secret");
    let (_, log) = server.read("cluster", &ReadQuery::default());
    let of = |name: &str| {
        let name = Target::Object(format!("sh.helm.release.v1.{name}.v1"));
        rounds(&log, |read| read.target == name)
    };
    assert_eq!((of("infra"), of("r7")), (vec![1], vec![log.0.len() - 1]));
}

/// Follows a server that `changes` before each round, until no read is awaited, and returns the rounds.
fn follow(mut server: Server, changes: impl Fn(&mut Server, usize)) -> (AppList, usize) {
    let asked = ReadQuery::default();
    let mut snapshot = Snapshot::live("cluster", NOW);
    let (mut rounds, mut planned) = (Rounds::default(), HashSet::<Read>::new());
    let is_list = |read: &&Read| matches!(read.target, Target::List { .. });
    for round in 0..40 {
        changes(&mut server, round);
        for read in planned.iter().filter(is_list) {
            snapshot.answer(read, server.answer(read));
        }
        let ReadPlan { awaited, loose, .. } =
            plan_watches(&snapshot, &asked, &ActiveRules::default(), &mut rounds, &|read| {
                !planned.contains(read)
            });
        if awaited.is_empty() {
            return (apps(&[&snapshot], &ActiveRules::default(), NOW), round);
        }
        for read in awaited.into_iter().chain(loose) {
            snapshot.answer(&read, server.answer(&read));
            planned.insert(read);
        }
        if snapshot.kinds().is_none() {
            snapshot.set_kinds(server.catalog());
        }
    }
    panic!("40 rounds are waited for");
}

/// A tenant chooses the namespaces of the objects that its apps name, so these must not be charged for the reads.
#[test]
fn a_planned_read_by_name_tells_which_namespaces_name_the_object() {
    let mut grab = helm_release("team-a", "grab");
    grab["spec"]["storageNamespace"] = json!("made-up");
    let mut server = Server::new(vec![grab]);
    server.forbidden.push("list /Secret");
    let by_tenant = BTreeSet::from(["team-a".to_owned()]);
    assert_eq!(named_by(&server), [("/Secret/made-up/sh.helm.release.v1.grab.v1".to_owned(), by_tenant)]);
}

/// Otherwise a tenant that names the evidence of another namespace would have it left out.
#[test]
fn evidence_that_its_own_namespace_names_is_not_charged_to_another_one_alone() {
    let naming = |namespace: &str| {
        let mut thing = object("example.com/v1", "Thing", namespace, "store");
        thing["spec"]["resourceRef"] = json!({"apiVersion": "example.com/v1", "kind": "Disk",
            "namespace": "shop", "name": "store"});
        thing["status"]["conditions"] = json!([{"type": "Ready", "status": "False", "reason": "Waiting"}]);
        let mut app = kustomization("v1", &[&format!("{namespace}_store_example.com_Thing")]);
        app["metadata"] = json!({"namespace": namespace, "name": "store", "generation": 1});
        [app, thing]
    };
    let objects = ["shop", "team-a"].into_iter().flat_map(naming);
    let objects = objects.chain([object("example.com/v1", "Disk", "shop", "other")]);
    let both = BTreeSet::from(["shop".to_owned(), "team-a".to_owned()]);
    let named_by = named_by(&Server::new(objects.collect()));
    assert!(named_by.contains(&("example.com/Disk/shop/store".to_owned(), both)), "{named_by:?}");
}

/// Follows the plan of a watched cluster, and returns the objects that it reads by name, each with the namespaces that
/// name it.
fn named_by(server: &Server) -> Vec<(String, BTreeSet<String>)> {
    let asked = ReadQuery { follow: true, ..ReadQuery::default() };
    let mut snapshot = Snapshot::live("cluster", NOW);
    snapshot.set_kinds(server.catalog());
    let (mut rounds, mut planned) = (Rounds::default(), HashSet::<Read>::new());
    let mut named_by = Vec::new();
    loop {
        let plan = plan_watches(&snapshot, &asked, &ActiveRules::default(), &mut rounds, &|read| {
            !planned.contains(read)
        });
        named_by.extend(plan.named_by);
        if plan.awaited.is_empty() {
            break;
        }
        for read in plan.awaited.into_iter().chain(plan.loose) {
            snapshot.answer(&read, server.answer(&read));
            planned.insert(read);
        }
    }
    named_by.iter().map(|(key, askers)| (key.to_string(), askers.clone())).collect()
}

/// Even a few new objects in each round must not be awaited in every round.
#[test]
fn a_namespace_that_keeps_creating_objects_does_not_hold_up_others() {
    let mut deployment = object("apps/v1", "Deployment", "shop", "web");
    deployment["spec"] = json!({"replicas": 1});
    let objects = || {
        let mut grab = kustomization("v1", &[]);
        grab["metadata"] = json!({"namespace": "team-a", "name": "grab", "generation": 1});
        let shop = kustomization("v1", &["shop_web_apps_Deployment"]);
        let labelled = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "namespace": "team-a", "name": "own", "labels": {"app.kubernetes.io/instance": "own"}}});
        vec![grab, shop, labelled, deployment.clone(), object("apps/v1", "ReplicaSet", "shop", "web-1")]
    };
    let message = |list: &AppList| {
        let shop = list.apps.iter().find(|app| app.app.name == "shop").unwrap();
        shop.resources.iter().map(|resource| resource.message.to_string()).collect::<Vec<_>>().join(", ")
    };
    let (quiet, few) = follow(Server::new(objects()), |_, _| {});
    assert!(few <= 5 && !message(&quiet).contains("not read"), "{few} rounds: {}", message(&quiet));

    let new_release = |server: &mut Server, round: usize| {
        let is_older = |object: &serde_json::Value| object["kind"] == "Secret";
        server.objects.retain(|object| !is_older(object));
        server.objects.push(storage("team-a", &format!("c{round}"), 1, &json!("eA==")));
    };
    let new_entry = |server: &mut Server, round: usize| {
        let id = format!("team-a_c{round}__ConfigMap");
        server.objects[0]["status"]["inventory"]["entries"] = json!([{"id": id, "v": "v1"}]);
    };
    let both = |server: &mut Server, round: usize| {
        new_release(server, round);
        new_entry(server, round);
    };
    type Change<'c> = &'c dyn Fn(&mut Server, usize);
    for (way, changes) in [&new_release as Change<'_>, &new_entry, &both].into_iter().enumerate() {
        let (list, rounds) = follow(Server::new(objects()), changes);
        assert!(rounds <= 16, "{rounds} rounds ({way})");
        assert_eq!(message(&list), message(&quiet), "{way}");
        let mut errors = list.errors.iter().map(|error| &error.error.message);
        assert!(
            errors.all(|it| !it.contains("was not read")),
            "what is still to be read is no error ({way})"
        );
    }
}

/// Time passes between a list and the read of one of its objects.
#[test]
fn a_release_that_is_gone_when_it_is_read_is_neither_a_row_nor_an_error() {
    let objects = vec![
        release("data", "pg", 1, "superseded", ""),
        release("data", "pg", 2, "deployed", ""),
        release("data", "gone", 1, "deployed", ""),
    ];
    let mut server = Server::new(objects);
    let asked = ReadQuery::default();
    let mut live = Snapshot::live("cluster", NOW);
    for read in taffrail_apps::plan_reads(&live, &asked, &ActiveRules::default(), &mut Rounds::default()) {
        live.answer(&read, server.answer(&read));
    }
    live.set_kinds(server.catalog());
    // The newest version of one release, and the only one of another.
    server.objects.truncate(1);
    server.go_on(&mut live, &asked);
    let list = apps(&[&live], &ActiveRules::default(), NOW);
    assert_eq!(list.errors, []);
    let rows: Vec<_> = list.apps.iter().map(|app| (&*app.app.name, app.sync.applied.as_deref())).collect();
    assert_eq!(rows, [("pg", None)]);
}

/// Otherwise an author of a Kustomization could have any object read, and shown, by a user who may read more.
#[test]
fn only_sources_of_flux_are_read_as_sources() {
    let mut own = kustomization("v1", &[]);
    own["spec"]["sourceRef"] =
        json!({"apiVersion": "/v1", "kind": "Secret", "namespace": "team-b", "name": "token"});
    let server = Server::new(vec![own, object("v1", "Secret", "team-b", "token")]);
    let inside = ReadQuery { namespace: Some("flux-system".to_owned()), ..ReadQuery::default() };
    for asked in [ReadQuery::default(), inside] {
        let (live, log) = server.read("cluster", &asked);
        assert!(values_of_secrets(&log).is_empty(), "{:?}", log.paths());
        let list = apps(&[&live], &ActiveRules::default(), NOW);
        let problems = &list.apps[0].problems;
        assert!(problems.iter().any(|it| it.message.contains("not a Flux source")), "{problems:?}");
    }
}

/// A kind that is read by metadata alone counts as well in a live cluster, so no kind with a status may be.
#[test]
fn kinds_judged_by_their_body_are_read_whole() {
    for kind in ["ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"] {
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "orphan"}, "spec": {"policyName": "none"},
        });
        let id = format!("_orphan_admissionregistration.k8s.io_{kind}");
        let server = Server::new(vec![kustomization("web", &[&id]), binding]);
        let (live, _) = server.read("prod", &ReadQuery { label_groups: false, ..ReadQuery::default() });
        let key = ObjectKey::new("admissionregistration.k8s.io", kind, "", "orphan");
        let Presence::Present(observed) = live.get(key.as_ref()) else { panic!("{kind} was not read") };
        assert_eq!(observed.projection, Projection::Full, "{kind}");
    }
}

/// Returns an app of a namespace with these objects in another cluster, and the Secret with its address.
fn delivered(name: &str, ids: &[String]) -> [Value; 2] {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut app = kustomization("v1", &ids);
    app["metadata"]["name"] = json!(name);
    app["spec"]["kubeConfig"] = json!({"secretRef": {"name": name}});
    let config = "clusters: [{name: e, cluster: {server: 'https://edge'}}]\n\
                  contexts: [{name: c, context: {cluster: e}}]\ncurrent-context: c";
    let mut secret = object("v1", "Secret", "flux-system", name);
    secret["data"] = json!({"value": STANDARD.encode(config)});
    [app, secret]
}

fn hub(name: &str, apps: &[[Value; 2]]) -> Snapshot {
    let asked = ReadQuery { follow: true, ..ReadQuery::default() };
    Server::new(apps.concat()).read(name, &asked).0
}

fn edge(server: &Server, asked: &ReadQuery) -> Snapshot {
    let (mut edge, _) = server.read("edge", asked);
    edge.add_server("https://edge");
    edge
}

fn maps(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("n{at}_a__ConfigMap")).collect()
}

#[test]
fn namespaced_lists_for_another_home_are_limited_and_small_apps_come_first() {
    let grab = delivered("a-grab", &maps(3000));
    let front = delivered("front", &["shop_web_apps_Deployment".to_owned()]);
    let hub = hub("hub", &[grab, front]);
    let server = Server::new(vec![object("apps/v1", "Deployment", "shop", "web")]);
    let asked = ReadQuery { namespace: Some("flux-system".to_owned()), ..ReadQuery::default() };
    let mut edge = edge(&server, &asked);
    let all = elsewhere(&[&hub, &edge], &Dependents::None, ReadMode::OnceByNamespace);
    let told: Vec<_> = all.left_out.iter().map(|left| (&*left.home, left.excess, left.count)).collect();
    assert_eq!(told, [("hub", Excess::Places, 3001)]);
    let message = &all.left_out[0].error().message;
    assert!(message.contains("take 3001 lists") && message.contains("sends only 1500"), "{message}");

    let objects = all.objects["edge"].iter().cloned().collect();
    let log = server.go_on(&mut edge, &ReadQuery { objects, ..asked });
    assert_eq!(log.0[0].len(), 1500);
    assert_eq!(rounds(&log, |read| read.namespace.as_deref() == Some("shop")).first(), Some(&0));
    // Where each kind is listed once, namespaces cost nothing.
    let all = elsewhere(&[&hub, &edge], &Dependents::None, ReadMode::Once);
    assert_eq!((all.left_out.len(), all.objects["edge"].len()), (0, 3001));
}

#[test]
fn namespaces_of_dependents_for_another_home_are_limited() {
    let grab = delivered("a-grab", &maps(300));
    let front = delivered("front", &["shop_web_apps_Deployment".to_owned()]);
    let hub = hub("hub", &[grab, front]);
    let edge = edge(&Server::new(Vec::new()), &ReadQuery::default());
    let all = elsewhere(&[&hub, &edge], &Dependents::All, ReadMode::OnceByNamespace);
    let told: Vec<_> = all.left_out.iter().map(|left| (left.excess, left.count)).collect();
    assert_eq!(told, [(Excess::Namespaces, 301)]);
    assert_eq!(all.dependents_in["edge"].len(), 100);
    assert!(all.dependents_in["edge"].contains_key("shop"));
}

#[test]
fn single_reads_for_another_home_are_limited() {
    let ids: Vec<String> = (0..300).map(|at| format!("shop_a{at}_example.com_Mute")).collect();
    let hub = hub("hub", &[delivered("grab", &ids)]);
    let mut edge = edge(&Server::new(Vec::new()), &ReadQuery::default());
    let mute = ServedKind {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Mute".to_owned(),
        plural: "mutes".to_owned(),
        namespaced: true,
        verbs: vec!["get".to_owned()],
        has_status_subresource: false,
    };
    edge.set_kinds(KindCatalog::new([mute], []));
    let all = elsewhere(&[&hub, &edge], &Dependents::None, ReadMode::Once);
    let told: Vec<_> = all.left_out.iter().map(|left| (left.excess, left.count)).collect();
    assert_eq!((told, all.objects["edge"].len()), (vec![(Excess::Singles, 300)], 200));
    assert!(all.left_out[0].error().message.contains("cannot be listed"));
}

#[test]
fn followed_objects_for_another_home_are_limited_and_small_apps_come_first() {
    // An app names 5,000 at most.
    let ids = |app: usize| (0..4000).map(|at| format!("shop_a{app}-{at}__ConfigMap")).collect::<Vec<_>>();
    let grabs = (0..3).map(|at| delivered(&format!("a-grab{at}"), &ids(at)));
    let front = delivered("front", &["shop_web_apps_Deployment".to_owned()]);
    let hub = hub("hub", &grabs.chain([front]).collect::<Vec<_>>());
    let edge = edge(&Server::new(Vec::new()), &ReadQuery::default());
    let all = elsewhere(&[&hub, &edge], &Dependents::None, ReadMode::Followed);
    let told: Vec<_> = all.left_out.iter().map(|left| (left.excess, left.count)).collect();
    assert_eq!((told, all.objects["edge"].len()), (vec![(Excess::Objects, 12_001)], 10_000));
    assert!(all.objects["edge"].contains(&ObjectKey::new("apps", "Deployment", "shop", "web")));
    assert_eq!(all.homes["edge"].len(), 10_000);
    assert!(all.left_out[0].error().message.contains("watches only 10000 of these"));
    // In one look each kind is listed once.
    assert_eq!(elsewhere(&[&hub, &edge], &Dependents::None, ReadMode::Once).objects["edge"].len(), 12_001);
}

#[test]
fn namespaces_of_a_home_share_its_limits_elsewhere() {
    let in_namespace = |namespace: &str, app: [Value; 2]| {
        app.map(|mut object| {
            object["metadata"]["namespace"] = json!(namespace);
            object
        })
    };
    // One object each, of ever other kinds.
    let grabs = (0..300)
        .map(|at| in_namespace("aaa", delivered(&format!("k{at}"), &[format!("shop_x_example.com_K{at}")])));
    let two = ["shop_web_apps_Deployment".to_owned(), "shop_web__Service".to_owned()];
    let front = in_namespace("flux-system", delivered("front", &two));
    let hub = hub("hub", &grabs.chain([front]).collect::<Vec<_>>());
    let mut edge = edge(&Server::new(Vec::new()), &ReadQuery::default());
    let served = |group: &str, kind: &str| ServedKind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced: true,
        verbs: vec!["get".to_owned(), "list".to_owned()],
        has_status_subresource: false,
    };
    for is_served in [true, false] {
        let own = [served("apps", "Deployment"), served("", "Service")];
        let kinds = (0..300).filter(|_| is_served).map(|at| served("example.com", &format!("K{at}")));
        edge.set_kinds(KindCatalog::new(kinds.chain(own), []));
        let all = elsewhere(&[&hub, &edge], &Dependents::None, ReadMode::Once);
        assert!(all.objects["edge"].contains(&ObjectKey::new("apps", "Deployment", "shop", "web")));
        assert!(all.objects["edge"].contains(&ObjectKey::new("", "Service", "shop", "web")));
        assert_eq!(all.left_out.len(), usize::from(is_served));
    }
}

#[test]
fn excess_reads_of_one_home_do_not_delay_others() {
    let excess = hub("excess", &[delivered("grab", &maps(300))]);
    let home = hub("home", &[delivered("front", &["shop_web_apps_Deployment".to_owned()])]);
    let own = object("apps/v1", "Deployment", "data", "db");
    let own_key = ObjectKey::new("apps", "Deployment", "data", "db");
    let server = Server::new(vec![own, object("apps/v1", "Deployment", "shop", "web")]);
    let asked = ReadQuery { namespace: Some("flux-system".to_owned()), ..ReadQuery::default() };
    let edge = edge(&server, &asked);
    let all = elsewhere(&[&excess, &home, &edge], &Dependents::None, ReadMode::OnceByNamespace);
    let without_others = ReadQuery { objects: vec![own_key.clone()], ..asked };
    let mut objects: Vec<_> = all.objects["edge"].iter().cloned().collect();
    objects.push(own_key);
    let mut reads = plan_reads(
        &edge,
        &ReadQuery { objects, ..without_others.clone() },
        &ActiveRules::default(),
        &mut Rounds::default(),
    );
    let own: BTreeSet<Read> =
        plan_reads(&edge, &without_others, &ActiveRules::default(), &mut Rounds::default())
            .into_iter()
            .collect();
    Turns::of(&all, "edge").order(&own, &mut reads);
    let at = |namespace: &str| reads.iter().position(|read| read.namespace.as_deref() == Some(namespace));
    assert_eq!((reads.len(), at("data")), (302, Some(0)));
    assert!(at("shop").is_some_and(|at| at <= 2), "{:?}", at("shop"));
}

/// An author in the namespace that is asked for could cause a list in each of thousands of namespaces.
#[test]
fn objects_in_thousands_of_namespaces_are_listed_by_kind() {
    let objects = |count: usize| {
        let ids = maps(count);
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut grab = kustomization("v1", &ids);
        grab["metadata"]["name"] = json!("a-grab");
        let front = kustomization("v1", &["shop_web__ConfigMap"]);
        vec![grab, front, object("v1", "ConfigMap", "shop", "web"), object("v1", "ConfigMap", "n2999", "a")]
    };
    let asked = ReadQuery { namespace: Some("flux-system".to_owned()), ..ReadQuery::default() };
    let mut server = Server::new(objects(3000));
    let lists = |log: &Log| log.all().filter(|read| read.kind == "ConfigMap").count();
    let (live, log) = server.read("cluster", &asked);
    assert!(lists(&log) < 1010, "{}", lists(&log));
    let web = ObjectKey::new("", "ConfigMap", "shop", "web");
    let last = ObjectKey::new("", "ConfigMap", "n2999", "a");
    assert!([&web, &last].iter().all(|key| matches!(live.get(key.as_ref()), Presence::Present(_))));
    // Who may not list them all is told so, and is shown what can be seen without.
    server.forbidden.push("list /ConfigMap");
    let (live, _) = server.read("cluster", &asked);
    assert!(matches!(live.get(web.as_ref()), Presence::Present(_)));
    assert!(matches!(live.get(last.as_ref()), Presence::Unobserved(_)));
    assert_eq!(live.errors().iter().map(|error| &*error.reason).collect::<Vec<_>>(), ["Forbidden"]);
    let few = Server::new(objects(900)).read("cluster", &asked).1;
    assert!(few.all().all(|read| read.kind != "ConfigMap" || read.namespace.is_some()));
}

/// Objects that name each other, each of which is read only once the one before it is known, delay nothing else.
#[test]
fn a_chain_of_objects_does_not_hold_up_what_is_read_last() {
    let scaler = |at: usize| {
        let mut scaler = object("autoscaling/v2", "HorizontalPodAutoscaler", "team-a", &format!("h{at}"));
        scaler["spec"] = json!({"scaleTargetRef": {"apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler", "name": format!("h{}", at + 1)}});
        scaler["status"] = json!({"conditions": [{"type": "AbleToScale", "status": "False", "reason": "FailedGetScale",
            "lastTransitionTime": "2026-02-01T10:00:00Z"}]});
        scaler
    };
    let lease = object("coordination.k8s.io/v1", "Lease", "kube-system", "kube-controller-manager");
    let mut checks = kustomization("v1", &[]);
    checks["spec"]["healthChecks"] = json!([{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "namespace": "team-a", "name": "h0"}]);
    checks["status"]["conditions"] = json!([{"type": "Ready", "status": "False", "reason": "HealthCheckFailed",
        "message": "health check failed", "lastTransitionTime": "2026-02-01T10:00:00Z"}]);
    let mut objects = vec![checks, lease];
    objects.extend((0..12).map(scaler));
    let asked = ReadQuery { liveness: true, evidence: true, ..ReadQuery::default() };
    let (_, log) = Server::new(objects).read("cluster", &asked);
    let chain = rounds(&log, |read| read.kind == "HorizontalPodAutoscaler");
    let lease = rounds(&log, |read| read.kind == "Lease");
    assert!(chain.len() > 8 && lease[0] < 10, "{chain:?} {lease:?}");
}
