//! Tests of faults of servers, credentials and objects during a watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_cluster::{Connectivity, Context, ListStrategy, Scope, WatchSettings, WatchState};
use taffrail_sim::{Fault, Fleet, Trouble};
use taffrail_testkit::objects::namespace;
use taffrail_testkit::server::{Reply, Request, Server, watch_event};

use crate::contexts::{self, current};
use crate::watching::{Reader, config_map, config_maps, in_shop, settings, shop};

/// A user `alice` whose exec plugin prints the token in a file of this folder, and adds a line to the file `runs` each
/// time.
#[cfg(unix)]
struct Rotating {
    folder: tempfile::TempDir,
    cluster: taffrail_sim::Cluster,
}

#[cfg(unix)]
impl Rotating {
    fn new(cluster: &taffrail_sim::Cluster) -> Rotating {
        let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        let rights = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "everything"}, "rules": all});
        let bound = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "everything"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "everything"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]});
        cluster.apply(rights).unwrap();
        cluster.apply(bound).unwrap();
        let rotating = Rotating { folder: tempfile::tempdir().unwrap(), cluster: cluster.clone() };
        rotating.rotate();
        rotating
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Creates a new token for the user and writes it to the plugin's file; the cluster then refuses the old token.
    fn rotate(&self) {
        let token = self.cluster.add_user("alice", &[]).token;
        let credential = json!({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": token}});
        std::fs::write(self.path("token.new"), credential.to_string()).unwrap();
        std::fs::rename(self.path("token.new"), self.path("token")).unwrap();
    }

    fn context(&self) -> Context {
        let user = self.cluster.add_user("nobody", &[]);
        let text = self.cluster.kubeconfig_for(&user);
        let token = format!("token: {}", json!(user.token));
        assert!(text.contains(&token), "{text}");
        let script = format!(
            "echo run >> {0}; if test -e {1}; then exec sleep 600; fi; cat {2}",
            self.path("runs"),
            self.path("hang"),
            self.path("token")
        );
        let plugin = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
            "args": ["-c", script], "interactiveMode": "Never"});
        current(&text.replace(&token, &format!("exec: {plugin}")))
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.path("runs")).unwrap().lines().count()
    }
}

fn in_namespaces(count: usize) -> impl Iterator<Item = Scope> {
    (0..count).map(|at| Scope { namespace: Some(format!("team-{at}")), ..Scope::all(config_maps()) })
}

#[cfg(unix)]
#[tokio::test]
async fn concurrent_401s_renew_credentials_once() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 0).await;
    let rotating = Rotating::new(&cluster);
    let mut reader = Reader::as_of(rotating.context(), settings(ListStrategy::Pages)).await;
    let ids: Vec<_> = in_namespaces(40).map(|scope| reader.watcher.follow(scope)).collect();
    let live =
        |known: &crate::watching::Known| ids.iter().all(|id| known.states.get(id) == Some(&WatchState::Live));
    reader.until("live", live).await;
    for round in 0..3 {
        // These are refused when the others have got new credentials long since.
        let late = Fault::new(Trouble::Latency(Duration::from_millis(1500)));
        for namespace in ["team-7/", "team-8/", "team-9/"] {
            cluster.fault(late.clone().path(&format!("/api/v1/namespaces/{namespace}")).times(1));
        }
        rotating.rotate();
        reader.known.states.clear();
        cluster.cut_connections();
        reader.until("live again", live).await;
        assert_eq!(rotating.runs(), round + 2, "one at the start, and one each time");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn hanging_plugin_is_reported_and_others_continue() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 0).await;
    let other = fleet.cluster("paris").await.unwrap();
    other.apply(namespace("shop")).unwrap();
    let rotating = Rotating::new(&cluster);
    let mut hasty = settings(ListStrategy::Pages);
    hasty.credentials_timeout = Duration::from_secs(1);
    let mut reader = Reader::as_of(rotating.context(), hasty).await;
    let mut neighbour = Reader::start(&other, settings(ListStrategy::Pages)).await;
    let ids: Vec<_> = in_namespaces(40).map(|scope| reader.watcher.follow(scope)).collect();
    let beside = neighbour.watcher.follow(in_shop());
    let live =
        |known: &crate::watching::Known| ids.iter().all(|id| known.states.get(id) == Some(&WatchState::Live));
    reader.until("live", live).await;

    std::fs::write(rotating.path("hang"), "").unwrap();
    rotating.rotate();
    cluster.cut_connections();
    let says = |state: &WatchState, word: &str| matches!(state, WatchState::Broken { reason: "Unauthorized", message } if message.contains(word));
    reader
        .until("told at once", |known| {
            known.said.iter().any(|state| says(state, "") && !says(state, "plugin"))
        })
        .await;
    let lost = |connectivity: &Connectivity| {
        matches!(connectivity, Connectivity::Lost { reason: "Unauthorized", .. })
    };
    reader.until("lost", |known| known.connectivity.iter().any(lost)).await;
    other.apply(config_map("beside", "1")).unwrap();
    neighbour
        .until("told beside", |known| known.objects.contains_key(&(beside, "shop/beside".to_owned())))
        .await;
    reader
        .until("told by all", |known| {
            ids.iter().all(|id| {
                known.said_by.get(id).is_some_and(|said| said.iter().any(|it| says(it, "exec plugin")))
            })
        })
        .await;
    // Forty watches were refused; who waits for the same attempt shares what came of it.
    assert!(rotating.runs() < 15, "{} runs", rotating.runs());
    std::fs::remove_file(rotating.path("hang")).unwrap();
    reader.until("live again", live).await;
}

#[tokio::test]
async fn objects_above_1_mib_are_read_from_lists_and_watches() {
    let fleet = Fleet::builder().start().await.unwrap();
    let cluster = shop(&fleet, 3).await;
    let big = |name: &str| config_map(name, &"ü\n".repeat(700_000));
    cluster.apply(big("listed")).unwrap();
    for lists in [ListStrategy::Streams, ListStrategy::Pages] {
        cluster.delete("v1", "ConfigMap", "shop", "watched");
        let mut reader = Reader::start(&cluster, settings(lists)).await;
        let id = reader.watcher.follow(in_shop());
        reader.until("complete", |known| known.complete == 1).await;
        assert!(reader.names().contains(&"shop/listed".to_owned()), "{lists:?}");
        cluster.apply(big("watched")).unwrap();
        cluster.apply(config_map("after", "1")).unwrap();
        for name in ["watched", "after"] {
            let key = (id, format!("shop/{name}"));
            reader.until("told", |known| known.objects.contains_key(&key)).await;
        }
        assert!(reader.known.malformed.is_empty(), "{:?}", reader.known.malformed);
    }
}

fn item(name: &str, version: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop", "resourceVersion": version.to_string()}})
}

fn list(items: &[Value], version: u64, more: &str) -> Reply {
    let metadata = json!({"resourceVersion": version.to_string(), "continue": more});
    Reply::json(
        200,
        json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": items})
            .to_string(),
    )
}

fn lines(events: &[(&str, Value)]) -> String {
    events.iter().map(|(word, object)| watch_event(word, object)).collect()
}

/// Starts a server and a watcher of it. `script` answers the requests for ConfigMaps; other requests get an empty list.
async fn scripted(
    settings: WatchSettings,
    script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (Server, Reader) {
    let server = Server::start(move |seen| {
        if seen.path.ends_with("/configmaps") {
            return script(seen);
        }
        let metadata = json!({"resourceVersion": "1"});
        Reply::json(
            200,
            json!({"kind": "PartialObjectMetadataList", "metadata": metadata, "items": []}).to_string(),
        )
    });
    let context = contexts::context(&format!("server: {}", server.url()), "");
    let reader = Reader::as_of(context, settings).await;
    (server, reader)
}

fn is_watch(seen: &Request) -> bool {
    seen.query.contains("watch=1")
}

/// Returns true for the request that reads only the server's resource version.
fn is_version_check(seen: &Request) -> bool {
    seen.query == "limit=1"
}

#[tokio::test]
async fn repeated_and_late_events_converge() {
    let watches = AtomicUsize::new(0);
    let (_server, mut reader) = scripted(settings(ListStrategy::Pages), move |seen| {
        if !is_watch(seen) {
            // In the end there is no "c", whatever an event says that comes too late.
            return list(&[item("a", 10), item("b", 14)], 20, "");
        }
        match watches.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::stuck(lines(&[
                ("MODIFIED", item("a", 21)),
                ("MODIFIED", item("a", 21)),
                ("ADDED", item("c", 22)),
                ("DELETED", item("c", 23)),
                ("DELETED", item("c", 23)),
                ("ADDED", item("c", 22)),
            ])),
            _ => Reply::stuck(lines(&[("MODIFIED", item("b", 24))])),
        }
    })
    .await;
    let id = reader.watcher.follow(in_shop());
    let is = |name: &str, version: &str| (id, format!("shop/{name}"), version.to_owned());
    for (id, name, version) in [is("b", "24")] {
        reader.until("told", |known| known.objects.get(&(id, name.clone())) == Some(&version)).await;
    }
    assert_eq!(reader.names(), ["shop/a", "shop/b"]);
    assert_eq!(reader.watcher.costs().relists, 1, "twice is no reason, too late is one");
}

#[tokio::test]
async fn a_list_that_expires_between_its_pages_begins_again_with_larger_ones() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = lists.clone();
    let (server, mut reader) = scripted(settings(ListStrategy::Pages), move |seen| {
        if is_watch(seen) {
            return Reply::stuck("");
        }
        let small = seen.query.contains("limit=500");
        match (small, seen.query.contains("continue=")) {
            (true, true) => Reply::status(410, "Expired", "The provided continue parameter is too old"),
            (true, false) => {
                counted.fetch_add(1, Ordering::SeqCst);
                list(&[item("gone-meanwhile", 5)], 10, "more")
            }
            (false, false) => list(&[item("a", 5)], 30, "more"),
            (false, true) => list(&[item("b", 6)], 30, ""),
        }
    })
    .await;
    let id = reader.watcher.follow(in_shop());
    reader.until("live", |known| known.states.get(&id) == Some(&WatchState::Live)).await;
    assert_eq!(reader.names(), ["shop/a", "shop/b"]);
    assert_eq!(lists.load(Ordering::SeqCst), 1);
    assert!(server.requests().iter().any(|seen| seen.query.contains("limit=4000")));
}

#[tokio::test]
async fn always_expiring_watches_are_backed_off() {
    let (server, mut reader) = scripted(settings(ListStrategy::Pages), |seen| {
        if is_watch(seen) {
            return Reply::status(410, "Expired", "too old resource version: 10 (30)");
        }
        list(&[item("a", 5)], 10, "")
    })
    .await;
    let begun = Instant::now();
    let id = reader.watcher.follow(in_shop());
    reader.until("listed again and again", |known| known.complete == 5).await;
    // The first time at once, then after a quarter of a second, a half, and a half again, each a quarter less at least.
    assert!(
        begun.elapsed() > Duration::from_millis(900),
        "{:?}, {} requests",
        begun.elapsed(),
        server.requests().len()
    );
    assert!(reader.known.said.contains(&WatchState::CatchingUp));
    reader.watcher.end(id);
}

/// Programs before a dead server answer: an ingress, a firewall, a limit for requests and a broken cache; the
/// last two answers are those of an API server.
#[tokio::test]
async fn what_answers_in_place_of_a_server_does_not_prove_it() {
    fn answer(at: usize) -> Reply {
        let text = |code, text: &str| Reply::Whole(code, Vec::new(), text.into());
        let busy = text(429, "Too many requests, please try again later.");
        match at {
            0 => text(404, "404 page not found"),
            1 => text(403, "blocked by the firewall"),
            2 => busy,
            3 => Reply::json(
                200,
                json!({"kind": "PartialObjectMetadataList", "metadata": {}, "items": []}).to_string(),
            ),
            4 => Reply::status(403, "Forbidden", "namespaces is forbidden"),
            _ => busy.header("audit-id", "31f7"),
        }
    }
    for at in 0..6 {
        let server = Server::start(move |seen| match &*seen.path {
            "/api/v1/namespaces" => answer(at),
            _ if is_watch(seen) => Reply::stuck(""),
            _ => list(&[item("a", 5)], 10, ""),
        });
        let context = contexts::context(&format!("server: {}", server.url()), "");
        let mut reader = Reader::as_of(context, settings(ListStrategy::Pages)).await;
        reader.watcher.follow(in_shop());
        if at < 4 {
            let is_lost = |known: &crate::watching::Known| {
                matches!(known.connectivity.last(), Some(Connectivity::Lost { .. }))
            };
            reader.until("lost", is_lost).await;
            continue;
        }
        while reader.watcher.costs().of(taffrail_cluster::Purpose::Probe).requests < 3 {
            tokio::task::yield_now().await;
            if let Some(event) = reader.events.try_next() {
                reader.take(event);
            }
        }
        assert!(reader.known.connectivity.is_empty(), "{at}: {:?}", reader.known.connectivity);
    }
}

#[tokio::test]
async fn server_that_ends_every_watch_is_reported_and_backed_off() {
    let (server, mut reader) = scripted(settings(ListStrategy::Pages), |seen| {
        if is_watch(seen) { Reply::json(200, "") } else { list(&[item("a", 5)], 10, "") }
    })
    .await;
    let id = reader.watcher.follow(in_shop());
    let broken = |state: &WatchState| matches!(state, WatchState::Broken { message, .. } if message.contains("ends the watch as soon as it begins"));
    reader.until("told", |known| known.states.get(&id).is_some_and(broken)).await;
    let watches = server.requests().iter().filter(|seen| is_watch(seen)).count();
    assert!(watches <= 4, "{watches} watches");
}

#[tokio::test]
async fn watch_that_ends_at_once_after_changes_is_reopened_with_backoff() {
    let watches = AtomicUsize::new(0);
    let (server, mut reader) = scripted(settings(ListStrategy::Pages), move |seen| {
        if !is_watch(seen) {
            return list(&[item("a", 5)], 10, "");
        }
        let version = 11 + watches.fetch_add(1, Ordering::SeqCst) as u64;
        Reply::json(200, lines(&[("MODIFIED", item("a", version))]))
    })
    .await;
    let begun = Instant::now();
    let id = reader.watcher.follow(in_shop());
    let version = |known: &crate::watching::Known| {
        known.objects.get(&(id, "shop/a".to_owned())).and_then(|it| it.parse().ok()).unwrap_or(0)
    };
    reader.until("moved on again and again", |known| version(known) >= 15).await;
    // A quarter of a second, a half, and a half again and again, of each a part by chance: without a pause it is no time at all.
    assert!(
        begun.elapsed() > Duration::from_millis(600),
        "{:?}, {} requests",
        begun.elapsed(),
        server.requests().len()
    );
    let broken = |state: &WatchState| matches!(state, WatchState::Broken { message, .. } if message.contains("ends the watch as soon as it begins"));
    reader.until("told", |known| known.said.iter().any(broken)).await;
}

/// Follows a server that goes back to an older state once its first watch has sent the lines `farewell` and ended;
/// returns it when the reader has the older state.
async fn restored_after(farewell: String) -> Server {
    let state = AtomicUsize::new(0);
    let (server, mut reader) = scripted(settings(ListStrategy::Pages), move |seen| {
        let is_restored = state.load(Ordering::SeqCst) > 0;
        if is_watch(seen) {
            state.fetch_add(1, Ordering::SeqCst);
            return if is_restored { Reply::stuck("") } else { Reply::json(200, farewell.as_str()) };
        }
        match (is_restored, is_version_check(seen)) {
            (false, _) => list(&[item("a", 5), item("lost", 90)], 100, ""),
            (true, true) => list(&[item("a", 5)], 50, "more"),
            (true, false) => list(&[item("a", 5)], 50, ""),
        }
    })
    .await;
    reader.watcher.follow(in_shop());
    reader.until("there", |known| known.objects.len() == 2).await;
    reader.until("as it was before", |known| known.objects.len() == 1).await;
    assert_eq!(reader.names(), ["shop/a"]);
    server
}

#[tokio::test]
async fn server_restarted_with_older_state_is_relisted() {
    let server = restored_after(String::new()).await;
    let to_come = server.requests().iter().filter(|seen| seen.query.contains("resourceVersion=100")).count();
    assert_eq!(to_come, 1, "no watch went on from a version that was still to come");
}

#[tokio::test]
async fn closed_watch_reopens_before_the_version_check_completes() {
    let (_server, mut reader) = scripted(settings(ListStrategy::Pages), |seen| {
        if !is_watch(seen) {
            return if is_version_check(seen) { Reply::stuck("") } else { list(&[item("a", 5)], 10, "") };
        }
        if seen.query.contains("resourceVersion=10") {
            return Reply::json(200, lines(&[("MODIFIED", item("a", 11))]));
        }
        Reply::stuck(lines(&[("MODIFIED", item("a", 12))]))
    })
    .await;
    let id = reader.watcher.follow(in_shop());
    let newest = |known: &crate::watching::Known| {
        known.objects.get(&(id, "shop/a".to_owned())).map(String::as_str) == Some("12")
    };
    reader.until("gone on", newest).await;
    let is_odd = |state: &WatchState| !matches!(state, WatchState::CatchingUp | WatchState::Live);
    assert!(!reader.known.said.iter().any(is_odd), "{:?}", reader.known.said);
}

#[tokio::test]
async fn continued_watch_does_not_hide_a_state_rollback() {
    restored_after(lines(&[("MODIFIED", item("a", 101))])).await;
}

#[tokio::test]
async fn quiet_scope_relists_when_others_see_the_state_go_back() {
    let state = Arc::new(AtomicUsize::new(0));
    let served = state.clone();
    let mut impatient = settings(ListStrategy::Pages);
    impatient.silence = Duration::from_millis(500);
    let (_server, mut reader) = scripted(impatient, move |seen| {
        let is_quiet = seen.path.contains("/quiet/");
        let step = served.load(Ordering::SeqCst);
        if is_watch(seen) {
            if is_quiet || step > 0 {
                return Reply::stuck("");
            }
            // Once somebody has seen version 200, the server is another one.
            served.store(1, Ordering::SeqCst);
            return Reply::stuck(lines(&[("ADDED", item("busy", 200))]));
        }
        match (is_quiet, step) {
            (true, 0) => list(&[item("old", 90)], 100, ""),
            // It is at a version that the quiet one has not seen, and an earlier one all the same.
            (true, _) => list(&[item("other", 95)], 150, ""),
            // The busy one does not find it out by itself.
            (false, _) if is_version_check(seen) => Reply::status(403, "Forbidden", "no"),
            (false, 0) => list(&[], 100, ""),
            (false, _) => list(&[], 150, ""),
        }
    })
    .await;
    let quiet = Scope { namespace: Some("quiet".to_owned()), ..Scope::all(config_maps()) };
    let quiet = reader.watcher.follow(quiet);
    reader.until("live", |known| known.states.get(&quiet) == Some(&WatchState::Live)).await;
    let busy = reader.watcher.follow(in_shop());
    reader.until("come to 200", |known| known.objects.contains_key(&(busy, "shop/busy".to_owned()))).await;
    let names = |known: &crate::watching::Known| {
        known.objects.keys().map(|(_, name)| name.clone()).collect::<Vec<_>>()
    };
    reader.until("listed again", |known| names(known) == ["shop/other"]).await;
}
