//! Clusters that are followed, and looked at, beside one that does as it likes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_sim::{Cluster, Fault, Fleet, Trouble};
use tempfile::TempDir;

use super::bad_clusters::{hanging, kubeconfig, server};
use super::going::Going;
use super::sameness::merged;
use super::wait::far_away;
use super::{command, taffrail};

/// Long enough for a busy machine; nothing waits for it that works.
const PATIENCE: Duration = Duration::from_secs(45);

/// What a server was asked, and which streams it has open.
#[derive(Debug, Default)]
struct Notes {
    seen: Vec<String>,
    open: Vec<String>,
}

impl Notes {
    fn count(&self, part: &str) -> usize {
        self.seen.iter().filter(|path| path.contains(part)).count()
    }
}

#[derive(Default)]
struct Board {
    notes: Mutex<Notes>,
    moved: Condvar,
}

impl Board {
    fn note(&self, change: impl FnOnce(&mut Notes)) {
        change(&mut self.notes.lock().unwrap());
        self.moved.notify_all();
    }

    /// Waits until the notes are so.
    #[track_caller]
    fn until(&self, holds: impl Fn(&Notes) -> bool) {
        let notes = self.notes.lock().unwrap();
        let waited = self.moved.wait_timeout_while(notes, PATIENCE, |notes| !holds(notes));
        let (notes, timeout) = waited.unwrap();
        let found = format!("{notes:#?}");
        // The server's threads go on to write there.
        drop(notes);
        assert!(!timeout.timed_out(), "never so: {found}");
    }
}

/// An answer under way.
struct Talk<'t> {
    stream: &'t mut TcpStream,
    board: &'t Board,
    path: String,
}

impl Talk<'_> {
    fn json(&mut self, status: u16, body: &Value) -> io::Result<()> {
        let body = body.to_string();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Told\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        self.stream.write_all((head + &body).as_bytes())
    }

    fn absent(&mut self) -> io::Result<()> {
        self.json(404, &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}))
    }

    fn begin(&mut self) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        self.stream.write_all(head.as_bytes())
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }

    fn end(&mut self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")
    }

    /// Says nothing more until the other side goes.
    fn stay(&mut self) -> io::Result<()> {
        let path = self.path.clone();
        self.board.note(|notes| notes.open.push(path));
        let gone = self.stream.read(&mut [0]);
        let path = &self.path;
        self.board.note(|notes| {
            let at = notes.open.iter().position(|open| open == path);
            at.map(|at| notes.open.swap_remove(at));
        });
        gone.and(Err(io::ErrorKind::ConnectionAborted.into()))
    }

    /// Says it again and again.
    fn flood(&mut self, text: &str) -> io::Result<()> {
        let text = text.repeat(64);
        self.begin()?;
        loop {
            self.say(&text)?;
        }
    }

    /// A watch that begins with these objects and brings nothing more by itself.
    fn watch(&mut self, kind: &str, objects: &[Value]) -> io::Result<()> {
        self.begin()?;
        if self.path.contains("sendInitialEvents") {
            let mut text: String = objects.iter().map(|object| event("ADDED", object)).collect();
            let end = json!({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "5",
                "annotations": {"k8s.io/initial-events-end": "true"}}});
            text += &event("BOOKMARK", &end);
            self.say(&text)?;
        }
        Ok(())
    }
}

fn event(word: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": word, "object": object}))
}

/// A server whose answers are told, and what it was asked.
fn api(answer: impl Fn(&mut Talk<'_>) -> io::Result<()> + Send + Sync + 'static) -> (String, Arc<Board>) {
    let board = Arc::new(Board::default());
    let shared = board.clone();
    let url = server(move |mut stream| {
        let Ok(mut requests) = stream.try_clone().map(BufReader::new) else { return };
        loop {
            let mut first = String::new();
            if !matches!(requests.read_line(&mut first), Ok(1..)) {
                return;
            }
            let mut header = String::new();
            while matches!(requests.read_line(&mut header), Ok(3..)) {
                header.clear();
            }
            let path = first.split_whitespace().nth(1).unwrap_or_default().to_owned();
            shared.note(|notes| notes.seen.push(path.clone()));
            // Who went away hears no more.
            if answer(&mut Talk { stream: &mut stream, board: &shared, path }).is_err() {
                return;
            }
        }
    });
    (url, board)
}

/// Answers what every server is asked, where that says that it has these kinds of the core group.
fn core(talk: &mut Talk<'_>, kinds: &[(&str, &str)]) -> io::Result<()> {
    let resource = |(plural, kind): &(&str, &str)| {
        json!({"resource": plural, "singularResource": "", "scope": "Namespaced", "verbs": ["get", "list", "watch"],
            "responseKind": {"group": "", "version": "v1", "kind": kind}})
    };
    let resources: Vec<Value> = kinds.iter().map(resource).collect();
    let groups = |items: Value| json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items});
    let path = talk.path.split('?').next().unwrap_or_default().to_owned();
    match &*path {
        "/version" => talk.json(200, &json!({"gitVersion": "v1.33.0"})),
        "/api" => {
            let versions = json!([{"version": "v1", "freshness": "Current", "resources": resources}]);
            talk.json(200, &groups(json!([{"metadata": {"name": ""}, "versions": versions}])))
        }
        "/apis" => talk.json(200, &groups(json!([]))),
        "/api/v1/namespaces" if !talk.path.contains("watch=1") => {
            let metadata = json!({"resourceVersion": "5"});
            talk.json(200, &json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": []}))
        }
        path => {
            let plural = path.rsplit('/').next().unwrap_or_default();
            let Some((_, kind)) = kinds.iter().find(|(known, _)| *known == plural) else {
                return talk.absent();
            };
            if !talk.path.contains("watch=1") {
                return talk.absent();
            }
            talk.watch(kind, &[])?;
            talk.stay()
        }
    }
}

/// Honest clusters, and the folder of the kubeconfig.
struct Honest {
    _runtime: tokio::runtime::Runtime,
    _fleet: Fleet,
    clusters: Vec<Cluster>,
    folder: TempDir,
}

fn honest(names: &[&str]) -> Honest {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (fleet, clusters) = runtime.block_on(async {
        let fleet = Fleet::builder().controllers(false).start().await.unwrap();
        let mut clusters = Vec::new();
        for name in names {
            let cluster = fleet.cluster(name).await.unwrap();
            cluster
                .apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
                .unwrap();
            clusters.push(cluster);
        }
        (fleet, clusters)
    });
    Honest { _runtime: runtime, _fleet: fleet, clusters, folder: tempfile::tempdir().unwrap() }
}

impl Honest {
    /// Writes a kubeconfig of them and of the cluster `evil`.
    fn beside(&self, evil: &str) -> String {
        let all = merged(&Cluster::kubeconfig_of(&self.clusters), &kubeconfig(&[("evil", evil)]));
        let path = self.folder.path().join("config");
        std::fs::write(&path, all).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// A Deployment of which so many of two replicas are available.
fn deployment(available: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "generation": 1},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}},
        "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": available,
            "availableReplicas": available, "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]}})
}

/// The same as an app of its own.
fn labelled(available: i64) -> Value {
    let mut object = deployment(available);
    object["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop"});
    object
}

fn serve(cluster: &Cluster, group: &str, version: &str, kind: &str) {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    cluster
        .apply(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular},
            "versions": [{"name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}}]}}))
        .unwrap();
}

fn serve_applications(cluster: &Cluster) {
    serve(cluster, "argoproj.io", "v1alpha1", "Application");
    cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})).unwrap();
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
fn talkative(text: String) -> String {
    let (url, _) = api(move |talk| match talk.path.contains("/configmaps?watch=1") {
        true => talk.flood(&text),
        false => core(talk, &[("configmaps", "ConfigMap")]),
    });
    url
}

/// Text that says nothing, and text that changes something each time.
fn floods() -> [String; 2] {
    let churn = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "churn", "namespace": "shop", "resourceVersion": "7"}});
    ["\n".to_owned(), event("MODIFIED", &churn)]
}

#[test]
fn a_cluster_that_always_has_something_to_say_starves_no_other() {
    for flood in floods() {
        let fleet = honest(&["one"]);
        let one = &fleet.clusters[0];
        one.apply(labelled(2)).unwrap();
        let config = fleet.beside(&talkative(flood));
        let mut going = begin(&config, &["get", "apps", "-w", "--timeout", "3s"]);
        until_row(&mut going, &["one", "shop", "shop", "label", "Ready"]);
        one.apply(labelled(1)).unwrap();
        until_row(&mut going, &["one", "shop", "shop", "label", "InProgress"]);
    }
}

#[test]
fn a_cluster_that_always_has_something_to_say_does_not_outlive_the_deadline_of_wait() {
    for flood in floods() {
        let fleet = honest(&["one"]);
        fleet.clusters[0].apply(labelled(2)).unwrap();
        let config = fleet.beside(&talkative(flood));
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
fn a_cluster_that_hangs_spends_no_time_of_the_others() {
    let fleet = honest(&["hub", "prod"]);
    deliver(&fleet.clusters[0], &fleet.clusters[1]);
    expect_delivered(&fleet.beside(&hanging()), Duration::from_secs(6));
}

/// It gives the identity of another one, and never says what it renews.
#[test]
fn a_cluster_that_hangs_while_it_is_compared_spends_no_time_of_the_others() {
    let fleet = honest(&["hub", "prod"]);
    deliver(&fleet.clusters[0], &fleet.clusters[1]);
    let copy = honest(&["prod"]);
    copy.clusters[0].fault(Fault::new(Trouble::Hang).resource("leases.coordination.k8s.io"));
    let copy = Cluster::kubeconfig_of(&copy.clusters).replace("prod", "evil");
    let path = fleet.folder.path().join("config");
    std::fs::write(&path, merged(&Cluster::kubeconfig_of(&fleet.clusters), &copy)).unwrap();
    expect_delivered(path.to_str().unwrap(), Duration::from_secs(6));
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
    let path = fleet.folder.path().join("config");
    std::fs::write(&path, Cluster::kubeconfig_of(&fleet.clusters)).unwrap();
    expect_delivered(path.to_str().unwrap(), timeout);
}

#[test]
fn what_no_home_wants_any_more_is_watched_no_more() {
    let (prod, board) = api(|talk| core(talk, &[("configmaps", "ConfigMap"), ("secrets", "Secret")]));
    let fleet = honest(&["hub"]);
    let hub = &fleet.clusters[0];
    serve_applications(hub);
    let names = |step: usize| (step * 8..step * 8 + 8).map(|at| format!("metadata.name%3Do{at}&"));
    let name = |step: usize| {
        let maps = (step * 8..step * 8 + 8).map(|at| {
            json!({"version": "v1", "kind": "ConfigMap", "namespace": format!("n{at}"), "name": format!("o{at}"), "status": "Synced"})
        });
        hub.apply(application(&prod, maps.collect())).unwrap();
    };
    let named = |notes: &Notes| {
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
    let _going = begin(&fleet.beside(&prod), &["get", "apps", "-w"]);
    // Of what is known by then its kind was listed by labels, so that each object is asked for by its name.
    let labelled = |path: &String| path.contains("/configmaps?") && path.contains("kubernetes.io%2Finstance");
    board.until(|notes| notes.open.iter().any(labelled));
    name(0);
    board.until(|notes| named(notes) == expected(0));
    name(1);
    board.until(|notes| named(notes) == expected(1));
    // Who names ever others does not get a watch for each: the kind is listed once.
    for step in 2..6 {
        name(step);
        let whole = |path: &String| path.contains("/v1/configmaps?") && !path.contains("Selector");
        let wanted = expected(step);
        board.until(|notes| {
            notes.open.iter().any(whole) && named(notes).iter().all(|open| wanted.contains(open))
        });
    }
    assert!(board.notes.lock().unwrap().count("metadata.name%3Do") <= 24);
}

/// Who may not list a whole kind is still to be told of what is named.
#[test]
fn what_one_home_names_in_excess_takes_nothing_of_what_another_one_names() {
    let is_whole = |path: &str| path.contains("/v1/configmaps?") && !path.contains("Selector");
    let forbidden = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403});
    let (prod, board) = api(move |talk| match is_whole(&talk.path) {
        true => talk.json(403, &forbidden),
        false => core(talk, &[("configmaps", "ConfigMap"), ("secrets", "Secret")]),
    });
    let fleet = honest(&["excess", "hub"]);
    let [excess, hub] = [&fleet.clusters[0], &fleet.clusters[1]];
    let map = |namespace: &str, name: &str| json!({"version": "v1", "kind": "ConfigMap", "namespace": namespace, "name": name, "status": "Synced"});
    serve_applications(excess);
    serve_applications(hub);
    let _going = begin(&fleet.beside(&prod), &["get", "apps", "-w"]);
    // Of what is known by then its kind was listed by labels, so that each object is asked for by its name.
    let labelled = |path: &String| path.contains("/configmaps?") && path.contains("kubernetes.io%2Finstance");
    board.until(|notes| notes.open.iter().any(labelled));
    let named = |notes: &Notes, namespace: &str| notes.count(&format!("/namespaces/{namespace}"));
    // Less at a time than is read by whole kinds in any case.
    for step in 1..=3 {
        let maps = (0..step * 8).map(|at| map(&format!("n{at}"), "a"));
        excess.apply(application(&prod, maps.collect())).unwrap();
        board.until(|notes| named(notes, "n") == 20.min(step * 8));
    }
    board.until(|notes| notes.seen.iter().any(|path| is_whole(path)));
    hub.apply(application(&prod, vec![map("shop", "front")])).unwrap();
    board.until(|notes| named(notes, "shop/configmaps") == 1);
    assert_eq!(named(&board.notes.lock().unwrap(), "n"), 20);
}

#[test]
fn of_what_one_home_wants_elsewhere_so_many_kinds_are_read_and_the_home_is_told() {
    let fleet = honest(&["hub", "prod"]);
    let [hub, prod] = [&fleet.clusters[0], &fleet.clusters[1]];
    serve_applications(hub);
    // What is not served costs nothing.
    (0..260).for_each(|at| serve(prod, "example.com", "v1", &format!("Thing{at}")));
    let things = (0..300).map(|at| {
        json!({"group": "example.com", "version": "v1", "kind": format!("Thing{at}"), "namespace": "shop", "name": "a", "status": "Synced"})
    });
    hub.apply(application(&prod.url(), things.collect())).unwrap();
    let path = fleet.folder.path().join("config");
    std::fs::write(&path, Cluster::kubeconfig_of(&fleet.clusters)).unwrap();
    let answer = taffrail(
        &["get", "apps", "-o", "json", "--all-contexts", "--kubeconfig", path.to_str().unwrap()],
        "",
    );
    let list = answer.json();
    let over =
        list["errors"].as_array().unwrap().iter().find(|error| error["reason"] == "OverLimit").unwrap();
    assert_eq!(over["cluster"], "hub", "{over}");
    let message = "its apps name objects of 260 kinds in prod, of which 250 are read there for it";
    assert_eq!(over["message"], message, "{over}");
}

/// Who asks for one namespace lists in namespaces only.
#[test]
fn of_namespaces_that_one_home_names_elsewhere_so_many_are_listed_after_those_of_others() {
    let (prod, board) = api(|talk| {
        let metadata = json!({"resourceVersion": "5"});
        let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": []});
        match talk.path.contains("/configmaps") {
            true => talk.json(200, &list),
            false => core(talk, &[("configmaps", "ConfigMap")]),
        }
    });
    let fleet = honest(&["excess", "hub"]);
    let map = |namespace: &str| json!({"version": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "a", "status": "Synced"});
    fleet.clusters.iter().for_each(serve_applications);
    fleet.clusters[0]
        .apply(application(&prod, (0..2000).map(|at| map(&format!("n{at}"))).collect()))
        .unwrap();
    fleet.clusters[1].apply(application(&prod, vec![map("shop")])).unwrap();
    let config = fleet.beside(&prod);
    let answer = taffrail(
        &["get", "apps", "-n", "argocd", "-o", "json", "--all-contexts", "--kubeconfig", &config],
        "",
    );
    let list = answer.json();
    let errors = list["errors"].as_array().unwrap();
    let over = errors.iter().find(|error| error["reason"] == "OverLimit").unwrap();
    assert_eq!(over["cluster"], "excess", "{over}");
    let message = over["message"].as_str().unwrap();
    assert!(message.contains("take 2000 lists") && message.contains("1500 are made"), "{message}");
    let notes = board.notes.lock().unwrap();
    let named: Vec<&String> = notes.seen.iter().filter(|path| path.contains("/namespaces/")).collect();
    let own = named.iter().position(|path| path.contains("/shop/")).unwrap();
    assert_eq!(notes.count("/namespaces/n"), 1500);
    // As many as are asked at once may come in any order.
    assert!(own < 100, "{own}");
}

#[test]
fn a_secret_that_changes_without_end_is_read_once_at_a_time() {
    let secret = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "sh.helm.release.v1.web.v1", "namespace": "shop", "resourceVersion": "5",
            "labels": {"owner": "helm", "name": "web", "status": "deployed", "version": "1"}}});
    const RELEASE: &str = "/secrets/sh.helm.release.v1.web.v1";
    let (evil, board) = api(move |talk| {
        if talk.path.contains(RELEASE) {
            // The first time it is not there, afterwards no answer comes.
            let board = talk.board;
            let asked = board.notes.lock().unwrap().count(RELEASE);
            return if asked > 1 { talk.stay() } else { talk.absent() };
        }
        if !talk.path.contains("/secrets?") || !talk.path.contains("watch=1") {
            return core(talk, &[("secrets", "Secret")]);
        }
        let is_first = talk.path.contains("sendInitialEvents") && !talk.path.contains("labelSelector");
        talk.watch("PartialObjectMetadata", if is_first { std::slice::from_ref(&secret) } else { &[] })?;
        if !is_first {
            return talk.stay();
        }
        talk.board.until(|notes| notes.count(RELEASE) > 0);
        talk.say(&event("MODIFIED", &secret).repeat(50))?;
        // The next watch begins when all that was read.
        talk.end()
    });
    let fleet = honest(&["one"]);
    let _going = begin(&fleet.beside(&evil), &["get", "apps", "-w"]);
    let again = |notes: &Notes| {
        notes.seen.iter().any(|path| path.contains("/secrets?watch=1") && path.contains("resourceVersion=5"))
    };
    board.until(|notes| again(notes) && notes.count(RELEASE) > 1);
    let asked = board.notes.lock().unwrap().count(RELEASE);
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
    let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}});
    one.apply(own).unwrap();
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
