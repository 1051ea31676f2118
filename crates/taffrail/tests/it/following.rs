//! Clusters that are followed, and looked at, beside one that does as it likes.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_sim::{Cluster, Fault, Trouble};
use taffrail_testkit::objects::{self, applications, definition, namespace, with_spec_and_status};
use taffrail_testkit::server::{Reply, Request, Server, Traffic, core_discovery, watch_event};
use tokio::sync::Notify;

use super::bad_clusters::kubeconfig;
use super::going::Going;
use super::sameness::merged;
use super::served::Served;
use super::wait::far_away;
use super::{Answer, command, taffrail};

/// Long enough for a busy machine; nothing waits for it that works.
const PATIENCE: Duration = Duration::from_secs(45);

/// Where a watch begins: these objects if they are asked for.
fn begun(request: &Request, kind: &str, objects: &[Value]) -> String {
    if !request.query.contains("sendInitialEvents") {
        return String::new();
    }
    let end = json!({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "5",
        "annotations": {"k8s.io/initial-events-end": "true"}}});
    let objects: String = objects.iter().map(|object| watch_event("ADDED", object)).collect();
    objects + &watch_event("BOOKMARK", &end)
}

fn is_watch(request: &Request) -> bool {
    request.query.contains("watch=1")
}

fn absent() -> Reply {
    Reply::status(404, "NotFound", "not found")
}

/// A list of nothing.
fn empty() -> Reply {
    let metadata = json!({"resourceVersion": "5"});
    let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": []});
    Reply::json(200, list.to_string())
}

/// Answers what every server is asked, where that says that it has these kinds of the core group; watches of them bring
/// nothing.
fn core(request: &Request, kinds: &[(&str, &str)]) -> Reply {
    if let Some(reply) = core_discovery(request, kinds) {
        return reply;
    }
    if request.path == "/api/v1/namespaces" && !is_watch(request) {
        return empty();
    }
    let plural = request.path.rsplit('/').next().unwrap_or_default();
    match kinds.iter().find(|(known, _)| *known == plural) {
        Some((_, kind)) if is_watch(request) => Reply::stuck(begun(request, kind, &[])),
        _ => absent(),
    }
}

/// Clusters that do as they should.
fn honest(names: &[&str]) -> Served {
    Served::start(names, |_, cluster| {
        cluster.apply(namespace("shop")).unwrap();
    })
}

impl Served {
    /// Writes a kubeconfig of them and of the cluster `evil`.
    fn beside(&self, evil: &str) -> String {
        let all = merged(&Cluster::kubeconfig_of(&self.clusters), &kubeconfig(&[("evil", evil)]));
        std::fs::write(&self.kubeconfig, all).unwrap();
        self.kubeconfig.clone()
    }
}

/// A Deployment of which so many of two replicas are available.
fn deployment(available: i64) -> Value {
    objects::deployment("shop", "web", available)
}

/// The same as an app of its own.
fn labelled(available: i64) -> Value {
    let mut object = deployment(available);
    object["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop"});
    object
}

fn serve_applications(cluster: &Cluster) {
    cluster.apply(applications()).unwrap();
    cluster.apply(namespace("argocd")).unwrap();
}

fn application(server: &str, resources: Vec<Value>) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"namespace": "argocd", "name": "far"},
        "spec": {"destination": {"server": server, "namespace": "shop"}, "source": {"repoURL": "https://git.example.com/far", "path": "far", "targetRevision": "main"}},
        "status": {"sync": {"status": "Synced", "revision": "1"}, "health": {"status": "Healthy"}, "resources": resources}})
}

fn begin(kubeconfig: &str, arguments: &[&str]) -> Going {
    let mut command = command(&[arguments, &["--all-contexts", "--kubeconfig", kubeconfig]].concat());
    command.stderr(Stdio::null());
    Going::start(command, PATIENCE)
}

/// Waits for a row of these first words.
#[track_caller]
fn until_row(going: &mut Going, row: &[&str]) {
    going.until_line(&format!("{row:?}"), |line| {
        line.split_whitespace().take(row.len()).eq(row.iter().copied())
    });
}

/// A cluster whose watches of ConfigMaps say this without end.
fn talkative(text: String) -> Server {
    Server::start(move |request| match request.target().contains("/configmaps?watch=1") {
        true => Reply::flood(&text),
        false => core(request, &[("configmaps", "ConfigMap")]),
    })
}

/// Text that says nothing, and text that changes something each time.
fn floods() -> [String; 2] {
    let churn = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "churn", "namespace": "shop", "resourceVersion": "7"}});
    ["\n".to_owned(), watch_event("MODIFIED", &churn)]
}

#[test]
fn a_cluster_that_always_has_something_to_say_starves_no_other() {
    for flood in floods() {
        let evil = talkative(flood);
        let fleet = honest(&["one"]);
        let one = &fleet.clusters[0];
        one.apply(labelled(2)).unwrap();
        let config = fleet.beside(&evil.url());
        let mut going = begin(&config, &["get", "apps", "-w", "--timeout", "3s"]);
        until_row(&mut going, &["one", "shop", "shop", "label", "Ready"]);
        one.apply(labelled(1)).unwrap();
        until_row(&mut going, &["one", "shop", "shop", "label", "InProgress"]);
    }
}

#[test]
fn a_cluster_that_always_has_something_to_say_does_not_outlive_the_deadline_of_wait() {
    for flood in floods() {
        let evil = talkative(flood);
        let fleet = honest(&["one"]);
        fleet.clusters[0].apply(labelled(2)).unwrap();
        let config = fleet.beside(&evil.url());
        let ended = begin(&config, &["wait", "app/pay", "--timeout", "3s"]).end();
        assert!(ended.is_some_and(|code| code != 0), "{ended:?}");
    }
}

/// Lets `hub` deliver an app into `prod`.
fn deliver(hub: &Cluster, prod: &Cluster) {
    serve_applications(hub);
    prod.apply(deployment(2)).unwrap();
    let web = json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web", "status": "Synced"});
    hub.apply(application(&prod.url(), vec![web])).unwrap();
}

/// Asks all clusters of a kubeconfig once: what `hub` delivers into `prod` is there, and only of `evil` something is wrong.
#[track_caller]
fn expect_delivered(config: &str, timeout: Duration) {
    let (begun, within) = (Instant::now(), format!("{}ms", timeout.as_millis()));
    let answer = taffrail(
        &["get", "apps", "-o", "json", "--all-contexts", "--timeout", &within, "--kubeconfig", config],
        "",
    );
    let took = begun.elapsed();
    let list = answer.json();
    let far = list["items"].as_array().unwrap().iter().find(|app| app["name"] == "far").unwrap();
    assert_eq!((&far["cluster"], &far["effective"]), (&json!("prod"), &json!("Current")), "{far}");
    let errors = list["errors"].as_array().unwrap();
    assert!(errors.iter().all(|error| error["cluster"] == "evil"), "{errors:#?}");
    assert!(took < timeout * 2 + Duration::from_secs(3), "{took:?}");
}

#[test]
fn a_dark_home_makes_the_sync_of_what_it_delivers_unknown_and_leaves_its_health() {
    let fleet = honest(&["hub", "prod"]);
    deliver(&fleet.clusters[0], &fleet.clusters[1]);
    let mut going = begin(&fleet.kubeconfig, &["get", "apps", "-w"]);
    let is_far = |line: &str| line.contains(" far ") && line.contains(" Ready");
    going.until_line("Synced", |line| is_far(line) && line.contains(" Synced "));
    let away = fleet.runtime.block_on(async { fleet.clusters[0].trouble(Trouble::Blackhole) });
    let line = going.until_line("Unknown", |line| is_far(line) && line.contains(" Unknown (was Synced) "));
    assert!(line.contains("Ready, home lost"), "{line}");
    fleet.clusters[0].heal(away);
    going.until_line("Synced again", |line| is_far(line) && line.contains(" Synced "));
}

#[test]
fn a_cluster_that_hangs_spends_no_time_of_the_others() {
    let fleet = honest(&["hub", "prod"]);
    deliver(&fleet.clusters[0], &fleet.clusters[1]);
    let evil = Server::hanging();
    expect_delivered(&fleet.beside(&evil.url()), Duration::from_secs(6));
}

/// It gives the identity of another one, and never says what it renews.
#[test]
fn a_cluster_that_hangs_while_it_is_compared_spends_no_time_of_the_others() {
    let fleet = honest(&["hub", "prod"]);
    deliver(&fleet.clusters[0], &fleet.clusters[1]);
    let copy = honest(&["prod"]);
    copy.clusters[0].fault(Fault::new(Trouble::Hang).resource("leases.coordination.k8s.io"));
    let copy = Cluster::kubeconfig_of(&copy.clusters).replace("prod", "evil");
    std::fs::write(&fleet.kubeconfig, merged(&Cluster::kubeconfig_of(&fleet.clusters), &copy)).unwrap();
    expect_delivered(&fleet.kubeconfig, Duration::from_secs(6));
}

/// One list takes all of its time, and each round of reads after it as much as it may.
#[test]
fn a_cluster_that_drags_on_spends_no_time_of_the_others() {
    let timeout = Duration::from_secs(6);
    let fleet = honest(&["hub", "prod", "evil"]);
    let [hub, prod, evil] = [&fleet.clusters[0], &fleet.clusters[1], &fleet.clusters[2]];
    deliver(hub, prod);
    evil.apply(labelled(1)).unwrap();
    evil.fault(Fault::new(Trouble::Hang).path("/apis/argoproj.io/"));
    evil.fault(Fault::new(Trouble::Hang).path("/api/v1/namespaces/shop/"));
    let late = Fault::new(Trouble::Latency(timeout.mul_f64(0.24)));
    evil.fault(late.clone().resource("namespaces"));
    evil.fault(late.path("/apis/apps/"));
    prod.fault(Fault::new(Trouble::Latency(Duration::from_millis(250))));
    expect_delivered(&fleet.kubeconfig, timeout);
}

#[test]
fn unneeded_watches_end() {
    let prod = Server::start(|request| core(request, &[("configmaps", "ConfigMap"), ("secrets", "Secret")]));
    let fleet = honest(&["hub"]);
    let hub = &fleet.clusters[0];
    serve_applications(hub);
    let names = |step: usize| (step * 8..step * 8 + 8).map(|at| format!("metadata.name%3Do{at}&"));
    let name = |step: usize| {
        let maps = (step * 8..step * 8 + 8).map(|at| {
            json!({"version": "v1", "kind": "ConfigMap", "namespace": format!("n{at}"), "name": format!("o{at}"), "status": "Synced"})
        });
        hub.apply(application(&prod.url(), maps.collect())).unwrap();
    };
    let named = |notes: &Traffic| {
        let mut open: Vec<String> = notes
            .open
            .iter()
            .filter_map(|path| path.split("fieldSelector=").nth(1))
            .map(|it| format!("{it}&"))
            .collect();
        open.sort();
        open
    };
    let expected = |step: usize| {
        let mut expected: Vec<String> = names(step).collect();
        expected.sort();
        expected
    };
    let _going = begin(&fleet.beside(&prod.url()), &["get", "apps", "-w"]);
    // Of what is known by then its kind was listed by labels, so that each object is asked for by its name.
    let labelled = |path: &String| path.contains("/configmaps?") && path.contains("kubernetes.io%2Finstance");
    prod.until(|notes| notes.open.iter().any(labelled));
    name(0);
    prod.until(|notes| named(notes) == expected(0));
    name(1);
    prod.until(|notes| named(notes) == expected(1));
    // Who names ever others does not get a watch for each: the kind is listed once.
    for step in 2..6 {
        name(step);
        let whole = |path: &String| path.contains("/v1/configmaps?") && !path.contains("Selector");
        let wanted = expected(step);
        prod.until(|notes| {
            notes.open.iter().any(whole) && named(notes).iter().all(|open| wanted.contains(open))
        });
    }
    assert!(prod.traffic().count("metadata.name%3Do") <= 24);
}

/// A user who may not list a whole kind still sees the objects that apps name.
#[test]
fn excess_of_one_home_does_not_affect_another() {
    let is_whole = |path: &str| path.contains("/v1/configmaps?") && !path.contains("Selector");
    let prod = Server::start(move |request| match is_whole(&request.target()) {
        true => Reply::status(403, "Forbidden", "forbidden"),
        false => core(request, &[("configmaps", "ConfigMap"), ("secrets", "Secret")]),
    });
    let fleet = honest(&["excess", "hub"]);
    let [excess, hub] = [&fleet.clusters[0], &fleet.clusters[1]];
    let map = |namespace: &str, name: &str| json!({"version": "v1", "kind": "ConfigMap", "namespace": namespace, "name": name, "status": "Synced"});
    serve_applications(excess);
    serve_applications(hub);
    let _going = begin(&fleet.beside(&prod.url()), &["get", "apps", "-w"]);
    // Of what is known by then its kind was listed by labels, so that each object is asked for by its name.
    let labelled = |path: &String| path.contains("/configmaps?") && path.contains("kubernetes.io%2Finstance");
    prod.until(|notes| notes.open.iter().any(labelled));
    let named = |notes: &Traffic, namespace: &str| notes.count(&format!("/namespaces/{namespace}"));
    // Less at a time than is read by whole kinds in any case.
    for step in 1..=3 {
        let maps = (0..step * 8).map(|at| map(&format!("n{at}"), "a"));
        excess.apply(application(&prod.url(), maps.collect())).unwrap();
        prod.until(|notes| named(notes, "n") == 20.min(step * 8));
    }
    prod.until(|notes| notes.requests.iter().any(|request| is_whole(&request.target())));
    hub.apply(application(&prod.url(), vec![map("shop", "front")])).unwrap();
    prod.until(|notes| named(notes, "shop/configmaps") == 1);
    assert_eq!(named(&prod.traffic(), "n"), 20);
}

#[test]
fn kinds_named_by_one_home_are_bounded_and_reported() {
    let fleet = honest(&["hub", "prod"]);
    let [hub, prod] = [&fleet.clusters[0], &fleet.clusters[1]];
    serve_applications(hub);
    // What is not served costs nothing.
    (0..260).for_each(|at| {
        prod.apply(definition("example.com", "v1", &format!("Thing{at}"), with_spec_and_status())).unwrap();
    });
    let things = (0..300).map(|at| {
        json!({"group": "example.com", "version": "v1", "kind": format!("Thing{at}"), "namespace": "shop", "name": "a", "status": "Synced"})
    });
    hub.apply(application(&prod.url(), things.collect())).unwrap();
    let answer = taffrail(&fleet.all(&["get", "apps", "-o", "json"]), "");
    let list = answer.json();
    let over =
        list["errors"].as_array().unwrap().iter().find(|error| error["reason"] == "OverLimit").unwrap();
    assert_eq!(over["cluster"], "hub", "{over}");
    let message =
        "apps of hub name objects of 260 kinds in prod; Taffrail reads only 250 of these kinds there";
    assert_eq!(over["message"], message, "{over}");
}

/// A query for one namespace lists in namespaces only.
#[test]
fn namespaces_named_by_one_home_are_bounded_and_listed_last() {
    let prod = Server::start(|request| match request.path.contains("/configmaps") {
        true => empty(),
        false => core(request, &[("configmaps", "ConfigMap")]),
    });
    let fleet = honest(&["excess", "hub"]);
    let map = |namespace: &str| json!({"version": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "a", "status": "Synced"});
    fleet.clusters.iter().for_each(serve_applications);
    fleet.clusters[0]
        .apply(application(&prod.url(), (0..2000).map(|at| map(&format!("n{at}"))).collect()))
        .unwrap();
    fleet.clusters[1].apply(application(&prod.url(), vec![map("shop")])).unwrap();
    let config = fleet.beside(&prod.url());
    let answer = taffrail(
        &["get", "apps", "-n", "argocd", "-o", "json", "--all-contexts", "--kubeconfig", &config],
        "",
    );
    let list = answer.json();
    let errors = list["errors"].as_array().unwrap();
    let over = errors.iter().find(|error| error["reason"] == "OverLimit").unwrap();
    assert_eq!(over["cluster"], "excess", "{over}");
    let message = over["message"].as_str().unwrap();
    assert!(message.contains("take 2000 lists") && message.contains("sends only 1500"), "{message}");
    let traffic = prod.traffic();
    let mut named = traffic.requests.iter().filter(|request| request.path.contains("/namespaces/"));
    let own = named.position(|request| request.path.contains("/shop/")).unwrap();
    assert_eq!(traffic.count("/namespaces/n"), 1500);
    // As many as are asked at once may come in any order.
    assert!(own < 100, "{own}");
}

#[test]
fn a_secret_that_changes_without_end_is_read_once_at_a_time() {
    let secret = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "sh.helm.release.v1.web.v1", "namespace": "shop", "resourceVersion": "5",
            "labels": {"owner": "helm", "name": "web", "status": "deployed", "version": "1"}}});
    const RELEASE: &str = "/secrets/sh.helm.release.v1.web.v1";
    let (asked, release_asked) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let evil = Server::start(move |request| {
        if request.path.contains(RELEASE) {
            release_asked.notify_one();
            // The first time it is not there, afterwards no answer comes.
            return if asked.fetch_add(1, Ordering::Relaxed) == 0 { absent() } else { Reply::Silence };
        }
        if !request.path.ends_with("/secrets") || !is_watch(request) {
            return core(request, &[("secrets", "Secret")]);
        }
        let is_first =
            ["sendInitialEvents", "labelSelector"].map(|part| request.query.contains(part)) == [true, false];
        if !is_first {
            return Reply::stuck(begun(request, "PartialObjectMetadata", &[]));
        }
        let first = begun(request, "PartialObjectMetadata", std::slice::from_ref(&secret));
        let changes = watch_event("MODIFIED", &secret).repeat(50);
        let release_asked = release_asked.clone();
        // The next watch begins when all that was read.
        Reply::staged(first, async move {
            release_asked.notified().await;
            changes
        })
    });
    let fleet = honest(&["one"]);
    let _going = begin(&fleet.beside(&evil.url()), &["get", "apps", "-w"]);
    let again = |notes: &Traffic| {
        let targets = notes.requests.iter().map(Request::target);
        { targets }.any(|it| it.contains("/secrets?watch=1") && it.contains("resourceVersion=5"))
    };
    evil.until(|notes| again(notes) && notes.count(RELEASE) > 1);
    let asked = evil.traffic().count(RELEASE);
    assert!(asked <= 3, "{asked} times");
}

/// A Secret with a release of no objects, in Helm's storage.
fn stored(namespace: &str, release: &str) -> Value {
    // {"name":"c","namespace":"team-a","version":1,"manifest":"","info":{"status":"deployed"},"chart":{"metadata":{"name":"c","version":"1"}}}
    const RELEASE: &str = "ZXlKdVlXMWxJam9pWXlJc0ltNWhiV1Z6Y0dGalpTSTZJblJsWVcwdFlTSXNJblpsY25OcGIyNGlPakVzSW0xaGJtbG1aWE4wSWpvaUlpd2lhVzVtYnlJNmV5SnpkR0YwZFhNaU9pSmtaWEJzYjNsbFpDSjlMQ0pqYUdGeWRDSTZleUp0WlhSaFpHRjBZU0k2ZXlKdVlXMWxJam9pWXlJc0luWmxjbk5wYjI0aU9pSXhJbjE5ZlE9PQ==";
    json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": {"release": RELEASE},
        "metadata": {"name": format!("sh.helm.release.v1.{release}.v1"), "namespace": namespace,
            "labels": {"owner": "helm", "name": release, "status": "deployed", "version": "1"}}})
}

#[test]
fn a_namespace_that_goes_on_making_secrets_keeps_nothing_of_others_from_being_read() {
    let fleet = honest(&["one"]);
    let one = &fleet.clusters[0];
    serve_applications(one);
    one.apply(namespace("team-a")).unwrap();
    one.apply(deployment(2)).unwrap();
    let web = json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web", "status": "Synced"});
    one.apply(application("https://kubernetes.default.svc", vec![web])).unwrap();
    let near = one.url();
    let far = far_away(near.trim_start_matches("https://").to_owned());
    let config = fleet.folder.path().join("far");
    let kubeconfig = Cluster::kubeconfig_of(&fleet.clusters).replace(&near, &format!("https://{far}"));
    std::fs::write(&config, kubeconfig).unwrap();
    let config = config.to_str().unwrap();

    let (is_over, began) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) || began.elapsed() > PATIENCE {
                    break;
                }
                one.apply(stored("team-a", &format!("c{number}"))).unwrap();
                if number >= 20 {
                    one.delete("v1", "Secret", "team-a", &format!("sh.helm.release.v1.c{}.v1", number - 20));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let ended = begin(config, &["wait", "app/argo-application/argocd/far", "--timeout", "12s"]).end();
        is_over.store(ended != Some(0), Ordering::Relaxed);
        assert_eq!(ended, Some(0));
        let mut going = begin(config, &["get", "apps", "-w", "--timeout", "12s"]);
        let row = going.until_line("a row of it", |line| line.split_whitespace().nth(1) == Some("far"));
        is_over.store(true, Ordering::Relaxed);
        assert!(row.contains("Ready"), "{row}");
    });
}

/// A cluster with an app that has Nodes in another cluster, of which these may not be read.
fn with_nodes_of_another() -> Served {
    let fleet = honest(&["hub", "prod"]);
    let [hub, prod] = [&fleet.clusters[0], &fleet.clusters[1]];
    serve_applications(hub);
    let rbac = "rbac.authorization.k8s.io";
    prod.apply(json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "few"},
        "rules": [{"apiGroups": [""], "resources": ["namespaces", "configmaps", "secrets"], "verbs": ["get", "list", "watch"]}]}))
        .unwrap();
    prod.apply(
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "few"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "few"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "reader"}]}),
    )
    .unwrap();
    let node =
        |at: usize| json!({"version": "v1", "kind": "Node", "name": format!("n{at}"), "status": "Synced"});
    hub.apply(application(&prod.url(), (0..3).map(node).collect())).unwrap();
    let reader = prod.kubeconfig_for(&prod.add_user("reader", &[]));
    let both = merged(&Cluster::kubeconfig_of(std::slice::from_ref(hub)), &reader);
    std::fs::write(&fleet.kubeconfig, both).unwrap();
    fleet
}

/// A cluster whose worst app another one declares.
pub(crate) fn sample() -> Answer {
    with_nodes_of_another().ask(&["get", "clusters", "-o", "json"])
}

/// Objects that an app of another cluster names do not count for whether a cluster is read completely.
#[test]
fn kinds_that_only_another_home_names_are_errors_of_the_home() {
    let fleet = with_nodes_of_another();
    let of_nodes = |list: &Value| -> Vec<String> {
        let errors = list["errors"].as_array().unwrap().iter();
        let errors =
            errors.filter(|error| error["scope"].as_str().is_some_and(|scope| scope.contains("Node")));
        errors.map(|error| format!("{}: {}", error["cluster"], error["reason"])).collect()
    };
    let answer = taffrail(&fleet.all(&["get", "apps", "-o", "json"]), "");
    let list = answer.json();
    let told = of_nodes(&list);
    assert!(
        !told.is_empty() && told.iter().all(|error| error == r#""hub": "Forbidden""#),
        "{:#}",
        list["errors"]
    );
    assert_eq!(list["items"][0]["health"], "Unknown", "{list:#}");
    let mut going = begin(&fleet.kubeconfig, &["get", "apps", "-w", "-o", "json"]);
    let line = going.until_line("errors of nodes", |line| {
        serde_json::from_str(line)
            .is_ok_and(|list: Value| list["errors"].is_array() && !of_nodes(&list).is_empty())
    });
    let told = of_nodes(&serde_json::from_str(&line).unwrap());
    assert!(told.iter().all(|error| error == r#""hub": "Forbidden""#), "{told:?}");
}
