//! A hub that follows the clusters of the demo answers as the command that reads them, and only to who has its token.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::demo::Demo;
use super::going::Going;
use super::{command, taffrail, watch};

pub(super) struct Hub {
    child: Child,
    address: String,
    token: String,
}

impl Hub {
    /// Starts a hub of all clusters of the demo, which keeps nothing.
    pub(super) fn of(demo: &Demo) -> Hub {
        Hub::with(demo, &[])
    }

    /// Starts a hub of all clusters of the demo with further arguments.
    fn with(demo: &Demo, more: &[&str]) -> Hub {
        Hub::serving(demo.kubeconfig().to_str().unwrap(), 12, "127.0.0.1:0", more)
    }

    /// Starts a hub of so many clusters of a kubeconfig, which listens at `listen`.
    pub(super) fn serving(kubeconfig: &str, clusters: usize, listen: &str, more: &[&str]) -> Hub {
        let arguments = ["hub", "serve", "--all-contexts", "--kubeconfig", kubeconfig, "--listen", listen];
        Hub::started(command(&[&arguments, more].concat()), clusters)
    }

    /// Runs a command that becomes a hub of so many clusters.
    pub(super) fn started(mut command: Command, clusters: usize) -> Hub {
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut line = || lines.next().unwrap().unwrap();
        let (first, second, third, fourth) = (line(), line(), line(), line());
        let noun = if clusters == 1 { "cluster" } else { "clusters" };
        let address = first
            .strip_prefix(&format!("follows {clusters} {noun}, and answers at http://"))
            .unwrap_or_else(|| panic!("{first}"));
        let address = address.strip_suffix("/api/v1").unwrap().to_owned();
        let token = second.strip_prefix("ask it with: TAFFRAIL_HUB_TOKEN=").unwrap();
        let token = token.split(' ').next().unwrap().to_owned();
        let by_hand = format!("TAFFRAIL_HUB_TOKEN={token} taffrail get apps --hub http://{address}");
        assert_eq!(second, format!("ask it with: {by_hand}"));
        let by_curl = format!("curl -H 'Authorization: Bearer {token}' http://{address}/api/v1/apps");
        assert_eq!(third, format!("or with: {by_curl}"));
        assert_eq!(fourth, format!("or in a browser: http://{address}/#{token}"));
        Hub { child, address, token }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the URL of the hub, without its token.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Returns the status and the body of the answer to `GET path`, sent with these headers.
    pub(super) fn get(&self, path: &str, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// Waits until the hub has read all clusters.
    pub(super) fn wait_until_complete(&self) {
        let began = Instant::now();
        while self.list("/api/v1/clusters")["state"] != "complete" {
            assert!(began.elapsed() < Duration::from_secs(60), "it is never complete");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits until all that the hub knows is on disk.
    pub(super) fn until_saved(&self) {
        let began = Instant::now();
        let bearer = format!("Authorization: Bearer {}\r\n", self.token);
        while !self.get("/metrics", &bearer).1.contains("taffrail_hub_store_pending 0\n") {
            assert!(began.elapsed() < Duration::from_secs(30), "nothing was saved");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the hub shows so many apps.
    pub(super) fn wait_for_apps(&self, number: usize) {
        wait_for(self, "/api/v1/apps", |list| list["total"] == number);
    }

    /// Waits until the hub names one cluster that does not answer.
    pub(super) fn wait_for_dark_cluster(&self) {
        let is_dark = |list: &Value| {
            list["missing"]
                .as_array()
                .is_some_and(|missing| missing.len() == 1 && missing[0]["message"] != "")
        };
        wait_for(self, "/api/v1/clusters", is_dark);
    }

    pub(super) fn list(&self, path: &str) -> Value {
        let (status, body) = self.get(path, &format!("Authorization: Bearer {}\r\n", self.token));
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Removes what differs between two ways to the same state: when each cluster was heard of, and how it was read.
fn timeless(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("bservedAt") && name != "reading");
            fields.values_mut().for_each(timeless);
        }
        Value::Array(items) => items.iter_mut().for_each(timeless),
        _ => {}
    }
}

fn items(mut list: Value) -> Vec<Value> {
    timeless(&mut list);
    let mut items = list["items"].as_array().unwrap().clone();
    let key = |item: &Value| ["cluster", "namespace", "name", "delivery"].map(|part| item[part].to_string());
    items.sort_by_key(key);
    items
}

#[test]
fn a_hub_shows_the_rows_of_the_direct_answer() {
    let demo = Demo::start(&["--hold", "--skip", "2m"]);
    let hub = Hub::of(&demo);
    let direct = items(demo.ask(&["get", "apps", "-o", "json"]).json());
    assert!(direct.len() > 20, "{}", direct.len());
    let began = Instant::now();
    loop {
        let shown = items(hub.list("/api/v1/apps?limit=500"));
        if shown == direct {
            break;
        }
        if began.elapsed() > Duration::from_secs(60) {
            let pairs = shown.iter().zip(&direct).filter(|(shown, direct)| shown != direct);
            let differing: Vec<String> =
                pairs.take(3).map(|(shown, direct)| format!("{shown}\n{direct}")).collect();
            panic!("{} rows of {}: {}", shown.len(), direct.len(), differing.join("\n\n"));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let clusters = hub.list("/api/v1/clusters");
    assert_eq!(clusters["state"], "complete", "{}", clusters["missing"]);
    assert_eq!(items(clusters), items(demo.ask(&["get", "clusters", "-o", "json"]).json()));

    // Nobody reads without the token.
    assert_eq!(hub.get("/api/v1/apps", "").0, 401);
    assert_eq!(hub.get("/api/v1/apps", "Authorization: Bearer wrong\r\n").0, 401);
    assert_eq!(hub.get("/healthz", "").0, 200);
}

/// Waits until `is_so` holds for the list.
pub(super) fn wait_for(hub: &Hub, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let list = hub.list(path);
        if is_so(&list) {
            return list;
        }
        assert!(began.elapsed() < Duration::from_secs(90), "{list}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_hub_that_was_killed_shows_all_rows_at_once_and_has_their_history() {
    let demo = Demo::start(&["--hold", "--skip", "2m"]);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let all = "/api/v1/apps?limit=500";
    let hub = Hub::with(&demo, &["--data", data]);
    let is_whole = |list: &Value| list["state"] == "complete" && list["clusters"] == 12;
    let before = wait_for(&hub, all, is_whole);
    let saved = "taffrail_hub_store_pending 0\n";
    let began = Instant::now();
    let bearer = format!("Authorization: Bearer {}\r\n", hub.token);
    while !hub.get("/metrics", &bearer).1.contains(saved) {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing was saved");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Dropping it kills it.
    drop(hub);

    let hub = Hub::with(&demo, &["--data", data]);
    let shown = hub.list(all);
    assert_eq!((&shown["state"], &shown["total"]), (&"stale".into(), &before["total"]));
    let items = shown["items"].as_array().unwrap();
    assert!(items.iter().all(|row| row["effective"] == "Unknown" && row["freshness"]["state"] != "live"));
    let after = wait_for(&hub, all, is_whole);
    assert_eq!(items_of(&after), items_of(&before));

    let failed = after["items"].as_array().unwrap().iter().find(|row| row["effective"] == "Failed").unwrap();
    let part = |name: &str| failed[name].as_str().unwrap();
    let path = format!(
        "/api/v1/history/{}/{}/{}/{}",
        part("cluster"),
        part("delivery"),
        part("namespace"),
        part("name")
    );
    let history = wait_for(&hub, &path, |list| list["items"][0]["after"]["effective"] == "Failed");
    let mut transitions: Vec<&str> = history["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["type"] == "transition")
        .map(|item| item["after"]["effective"].as_str().unwrap())
        .collect();
    // The two halves of the app may come one after the other.
    transitions.dedup();
    assert_eq!(transitions[..2], ["Failed", "Unknown"]);
    assert!(transitions[2..].contains(&"Failed"), "the run before: {transitions:?}");

    // Its store can be copied while it runs, and a second hub refuses the folder.
    let copy = folder.path().join("copy.db");
    let copied = taffrail(&["hub", "backup", copy.to_str().unwrap(), "--data", data], "");
    assert_eq!((copied.code, copied.stdout.starts_with("copied ")), (0, true), "{}", copied.stderr);
    let refused = taffrail(&["hub", "restore", copy.to_str().unwrap(), "--data", data], "");
    assert_eq!((refused.code, refused.stderr.contains("a hub uses")), (3, true), "{}", refused.stderr);
    drop(hub);
    let restored = taffrail(&["hub", "restore", copy.to_str().unwrap(), "--data", data], "");
    assert_eq!(restored.code, 0, "{}", restored.stderr);
    let hub = Hub::with(&demo, &["--data", data]);
    assert_eq!(hub.list(all)["total"], before["total"]);
}

fn items_of(list: &Value) -> Vec<Value> {
    items(list.clone())
}

#[test]
fn a_hub_that_has_not_heard_its_clusters_is_loading_and_one_that_is_gone_keeps_its_row() {
    let demo = Demo::start(&["--hold", "--skip", "2m"]);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    // From its first answer on, each cluster is missing until its apps were read.
    let hub = Hub::with(&demo, &["--data", data]);
    let first = hub.list("/api/v1/apps?limit=500");
    let (state, count) = (first["state"].as_str().unwrap(), first["missing"].as_array().unwrap().len());
    assert!(state == "loading" && count > 0, "{state}: {}", first["missing"]);
    assert_eq!(first["clusters"], 12);
    let all = wait_for(&hub, "/api/v1/apps?limit=500", |list| list["state"] == "complete");
    let of_eu = |list: &Value| {
        let rows = list["items"].as_array().unwrap().iter().filter(|row| row["cluster"] == "eu-1");
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let apps = of_eu(&all);
    let began = Instant::now();
    let bearer = format!("Authorization: Bearer {}\r\n", hub.token);
    while !hub.get("/metrics", &bearer).1.contains("taffrail_hub_store_pending 0\n") {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing was saved");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(hub);

    // At the next start the cluster cannot be reached: it is the one that was known, and so are its apps.
    let text = std::fs::read_to_string(demo.kubeconfig()).unwrap();
    let mut kubeconfig: Value = serde_saphyr::from_str(&text).unwrap();
    let clusters = kubeconfig["clusters"].as_array_mut().unwrap();
    let eu = clusters.iter_mut().find(|cluster| cluster["name"] == "eu-1").unwrap();
    eu["cluster"]["server"] = "https://127.0.0.1:1".into();
    let file = folder.path().join("config");
    std::fs::write(&file, kubeconfig.to_string()).unwrap();
    let hub = Hub::serving(file.to_str().unwrap(), 12, "127.0.0.1:0", &["--data", data]);
    let is_told = |list: &Value| {
        let missing = list["missing"].as_array().unwrap();
        missing.len() == 1 && missing[0]["cluster"] == "eu-1" && missing[0]["message"] != ""
    };
    let list = wait_for(&hub, "/api/v1/clusters", is_told);
    let names: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| **name == "eu-1").count(), 1, "{names:?}");
    assert_eq!(names.len(), 12, "{names:?}");
    let rows = hub.list("/api/v1/apps?limit=500");
    assert_eq!(of_eu(&rows), apps);
}

#[test]
fn a_view_goes_on_as_the_hub_tells_of_changes_and_after_the_hub_was_restarted() {
    let served = watch::served();
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    let hub = Hub::serving(&served.kubeconfig, 2, "127.0.0.1:0", &[]);
    hub.wait_until_complete();
    std::fs::write(&token, &hub.token).unwrap();
    let (url, file) = (hub.url(), token.to_str().unwrap());
    let view = command(&["get", "apps", "-w", "--hub", &url, "--hub-token-file", file]);
    let mut going = Going::start(view, Duration::from_secs(90));
    let is_of = |status: &'static str| {
        move |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.starts_with(&["one", "shop", "shop", "label", status])
        }
    };
    going.until_line("the app", is_of("Ready"));
    served.clusters[0].apply(watch::app(1, 1)).unwrap();
    going.until_line("the change", is_of("InProgress"));
    // Another run of the hub has another token.
    let address = hub.address.clone();
    drop(hub);
    let hub = Hub::serving(&served.kubeconfig, 2, &address, &[]);
    std::fs::write(&token, &hub.token).unwrap();
    served.clusters[0].apply(watch::app(1, 2)).unwrap();
    going.until_line("the change after the restart", is_of("Ready"));
}

#[test]
fn ui_serves_the_page_and_its_url_asks_the_hub() {
    let demo = Demo::start(&["--skip", "60s", "--hold"]);
    let kubeconfig = demo.kubeconfig().to_str().unwrap();
    let all = ["ui", "--all-contexts", "--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0"];
    let mut child = command(&all).stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "follows 12 clusters; open this URL in a browser:");
    let url = lines.next().unwrap().unwrap();
    let url = url.strip_prefix("  ").unwrap();
    let (address, token) = url.strip_prefix("http://").unwrap().split_once("/#").unwrap();
    let hub = Hub { child, address: address.to_owned(), token: token.to_owned() };
    let (status, page) = hub.get("/", "Accept: text/html\r\n");
    assert!(status == 200 && page.contains("<!doctype html>"), "{status} {page}");
    ask_until(&["get", "clusters", "-o", "json", "--hub", url], |answer| {
        let list = serde_json::from_str::<Value>(&answer.stdout);
        list.is_ok_and(|list| list["items"].as_array().is_some_and(|items| items.len() == 12))
    });
}

#[test]
fn ui_serves_this_machine_alone() {
    let answer = taffrail(&["ui", "--listen", "0.0.0.0:0"], "");
    assert_eq!(
        answer.stderr,
        "error: other machines can reach 0.0.0.0:0, and 'taffrail ui' serves this one alone\n \
         hint: use --listen 127.0.0.1:PORT, or 'taffrail hub serve', which serves by TLS\n"
    );
    assert_eq!(answer.code, 2);
}

#[test]
fn a_hub_without_tls_listens_on_this_machine_alone() {
    let refused = taffrail(&["hub", "serve", "--listen", "0.0.0.0:0", "--kubeconfig", "/nowhere"], "");
    assert_eq!(refused.code, 2);
    snapbox::assert_data_eq!(
        refused.stderr,
        "error: other machines can reach 0.0.0.0:0, and this hub serves without TLS\n hint: add --tls-cert-file, --tls-key-file and --host, or use --listen 127.0.0.1:PORT\n"
    );
}

/// Asks again and again until an answer is as wanted.
pub(super) fn ask_until(arguments: &[&str], is_wanted: impl Fn(&super::Answer) -> bool) -> super::Answer {
    let began = Instant::now();
    loop {
        let answer = taffrail(arguments, "");
        if is_wanted(&answer) {
            return answer;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{}{}", answer.stdout, answer.stderr);
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_hub_with_tls_admits_those_who_have_a_token_that_was_created_for_it() {
    let served = watch::served();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(path("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(path("tls.key"), made.signing_key.serialize_pem()).unwrap();
    let (certificate, key, data, file) = (path("tls.crt"), path("tls.key"), path("data"), path("token"));
    let clusters = ["hub", "serve", "--all-contexts", "--kubeconfig", &served.kubeconfig, "--data", &data];
    let tls = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--host", "localhost"];
    let serve = [&clusters[..], &tls, &["--listen", "127.0.0.1:0"]].concat();

    let refused = taffrail(&serve, "");
    assert_eq!(refused.code, 2);
    snapbox::assert_data_eq!(
        refused.stderr,
        "error: the hub has no valid token, so nobody could ask it\n hint: create a token: `taffrail hub token create NAME`\n"
    );
    let created = taffrail(&["hub", "token", "create", "ci", "--data", &data], "");
    assert_eq!(created.code, 0, "{}", created.stderr);
    let note = "Token [..] of ci is valid until it is revoked. It is not shown again.\n";
    snapbox::assert_data_eq!(&*created.stderr, note);
    std::fs::write(&file, &created.stdout).unwrap();

    let mut child = command(&serve).stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (first, second) = (lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap());
    let url = first.strip_prefix("follows 2 clusters, and answers at ").unwrap_or_else(|| panic!("{first}"));
    let url = url.strip_suffix("/api/v1").unwrap();
    assert!(url.starts_with("https://localhost:"), "{first}");
    assert_eq!(second, format!("ask it with: taffrail get apps --hub {url} --hub-token-file FILE"));
    // Ends with the test.
    let _hub = Hub { child, address: String::new(), token: String::new() };

    let asked = ["get", "apps", "--hub", url, "--hub-token-file", &file];
    let trusting = [&asked[..], &["--hub-ca-file", &certificate]].concat();
    let is_shown = |answer: &super::Answer| answer.code == 0 && answer.stdout.contains("shop");
    ask_until(&trusting, is_shown);
    let unknown = taffrail(&asked, "");
    assert_eq!(unknown.code, 3, "{}", unknown.stdout);
    assert!(unknown.stderr.contains("invalid peer certificate: UnknownIssuer"), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("the certificate itself: --hub-ca-file FILE"), "{}", unknown.stderr);

    let listed = taffrail(&["hub", "token", "list", "--data", &data], "").stdout;
    snapbox::assert_data_eq!(
        &*listed,
        "ID         CREATED             EXPIRES   RIGHTS   NAME\n[..]   [..]Z   -         read     ci\n"
    );
    let id = listed.lines().nth(1).unwrap().split(' ').next().unwrap();
    let revoked = taffrail(&["hub", "token", "revoke", id, "--data", &data], "");
    assert_eq!((revoked.code, &*revoked.stderr), (0, &*format!("The token {id} is revoked.\n")));
    let again = taffrail(&["hub", "token", "revoke", id, "--data", &data], "");
    assert_eq!(again.code, 2, "{}", again.stderr);
    let refused = ask_until(&trusting, |answer| answer.code != 0);
    assert!(refused.stderr.contains("the access token is unknown or has expired"), "{}", refused.stderr);
}
