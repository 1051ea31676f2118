//! `logs --hub` and `explain --logs --hub`: a hub reads logs as the command itself does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snapbox::str;
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::fake_hub::FakeHub;

use super::hub::{Hub, ask_until};
use super::served::Served;
use super::{Answer, assert_shown, command, logs, run, taffrail};

const PATIENCE: Duration = Duration::from_secs(60);

/// Clusters with a failing app, and a hub that follows them.
struct Followed {
    served: Served,
    hub: Hub,
}

impl Followed {
    fn start(names: &[&str], more: &[&str]) -> Followed {
        let served = logs::shop(names);
        let hub = Hub::serving(&served.kubeconfig, names.len(), "127.0.0.1:0", more);
        hub.wait_until_complete();
        Followed { served, hub }
    }

    fn ask(&self, arguments: &[&str]) -> Answer {
        self.ask_with(self.hub.token(), arguments)
    }

    fn ask_with(&self, token: &str, arguments: &[&str]) -> Answer {
        let url = self.hub.url();
        let mut command = command(&[arguments, &["--hub", &url, "--timeout", "60s"]].concat());
        command.env("TAFFRAIL_HUB_TOKEN", token);
        run(command, b"")
    }

    /// Starts a command that follows.
    fn follow(&self, arguments: &[&str]) -> Child {
        let url = self.hub.url();
        let mut command = command(&[arguments, &["-f", "--hub", &url]].concat());
        command.env("TAFFRAIL_HUB_TOKEN", self.hub.token());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// Returns what a person sees, without the options that lead to the same place.
pub(super) fn seen(answer: Answer, url: &str) -> (String, String, i32) {
    let place = format!(" --hub {url}");
    let stderr = answer.stderr.replace(&place, "");
    let others = "; --context, --all-contexts or --from read others";
    let stderr = stderr.replace(others, "").replace(" --all-contexts", "");
    let kubeconfig = regex::Regex::new(r" --kubeconfig [^\s`]+").unwrap();
    let stdout = answer.stdout.replace(&place, "");
    let plain = |text: String| kubeconfig.replace_all(&text, "").into_owned();
    (plain(stdout), plain(stderr), answer.code)
}

#[test]
fn a_hub_prints_the_logs_that_the_direct_command_prints() {
    let followed = Followed::start(&["eu", "us"], &[]);
    let url = followed.hub.url();
    let mut read = 0;
    for arguments in [
        &["shop"][..],
        &["shop", "--all-pods"],
        &["shop", "--all-pods", "--tail", "1", "--color", "always"],
        &["shop", "--cluster", "us", "--prefix"],
        &["shop", "-n", "flux-system", "--timestamps"],
        &["eu/flux-kustomization/flux-system/shop", "--all-pods"],
        &["Kustomization/shop", "-n", "flux-system", "--all-pods"],
        &["deploy/web", "-n", "shop"],
        &["deploy/web", "-A", "--tail", "1"],
        &["us/apps/Deployment/shop/web", "--since", "5m"],
        &["cronjob/tidy", "-n", "shop"],
        &["pod/web-a", "-n", "shop", "--tail=0"],
        &["/Pod/shop/web-a"],
        &["svc/web", "-n", "shop", "--previous", "-c", "web"],
        // The messages and exit codes for missing logs are equal, too.
        &["pod/web-a", "-n", "shop", "--previous"],
        &["deploy/nothing", "-n", "shop"],
        &["deploy/nothing", "-A"],
        &["nothing"],
        &["nokind/nothing", "-n", "shop"],
        &["a/b/c/d/e/f/g"],
        &["deploy/web", "-n", "shop", "-c", "app"],
        &["pod/web-a", "-n", "shop", "--cluster", "ap"],
        &["sa/default", "-n", "shop"],
    ] {
        let arguments = [&["logs"], arguments].concat();
        let direct = seen(followed.served.ask(&arguments), &url);
        let by_hub = seen(followed.ask(&arguments), &url);
        assert_eq!(by_hub, direct, "{arguments:?}");
        read += usize::from(!direct.0.is_empty());
    }
    assert!(read > 10, "{read}");
    let kubelet = Trouble::ServerError("connection refused".to_owned());
    followed.served.clusters[0].fault(Fault::new(kubelet).path("/api/v1/namespaces/shop/pods/web-b/log"));
    for arguments in [
        &["logs", "shop"][..],
        &["explain", "shop", "--logs"],
        &["explain", "--logs", "-o", "json"],
        &["explain", "deploy/web", "-n", "shop", "--logs"],
    ] {
        let direct = seen(followed.served.ask(arguments), &url);
        assert_eq!(seen(followed.ask(arguments), &url), direct, "{arguments:?}");
        assert_eq!(direct.2, 3, "{}", direct.1);
        assert!(arguments.contains(&"json") || direct.0.contains("fatal:"), "{}", direct.0);
    }
    let pods = Trouble::ServerError("no Pods today".to_owned());
    followed.served.clusters[1].fault(Fault::new(pods).resource("pods"));
    let unread = followed.ask(&["explain", "us/flux-kustomization/flux-system/shop", "--logs"]);
    assert_eq!(unread.code, 3, "{}", unread.stdout);
    assert!(unread.stderr.contains("us: cannot read the log of ") || unread.stderr.contains("no Pods today"));
}

#[test]
fn one_log_that_hangs_costs_no_other_its_lines() {
    let followed = Followed::start(&["eu", "us"], &[]);
    followed.served.clusters[0]
        .fault(Fault::new(Trouble::Hang).path("/api/v1/namespaces/shop/pods/web-b/log"));
    let begun = Instant::now();
    let explained = followed.ask(&["explain", "--per-cluster", "--logs", "-o", "json"]);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(explained.code, 3, "{}{}", explained.stdout, explained.stderr);
    let items = explained.json()["items"].as_array().unwrap().clone();
    let log = |cluster: &str| {
        items.iter().find(|item| item["cluster"] == cluster).unwrap_or_else(|| panic!("{items:?}"))["logs"]
            .clone()
    };
    assert_eq!(log("us")["lines"][0], "connecting to db:5432");
    assert!(log("us").get("error").is_none() && log("eu")["lines"] == json!([]), "{items:?}");
    assert!(log("eu")["error"].as_str().unwrap().contains("no complete answer within"), "{}", log("eu"));

    let read = followed.ask(&["logs", "shop"]);
    assert_eq!(read.code, 3, "{}{}", read.stdout, read.stderr);
    assert!(read.stdout.contains("us/web-b/web connecting to db:5432"), "{}", read.stdout);
    let late = "error: eu: read the log of container web of pods/web-b in namespace shop: no complete answer within ";
    assert!(read.stderr.contains(late), "{}", read.stderr);
}

#[test]
fn a_hub_follows_a_log_until_its_pod_has_ended() {
    let followed = Followed::start(&["eu"], &[]);
    let mut child = followed.follow(&["logs", "pod/web-a", "-n", "shop"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "serving in eu");
    let cluster = &followed.served.clusters[0];
    let mut ended = cluster.get("v1", "Pod", "shop", "web-a").unwrap();
    ended["status"]["phase"] = json!("Succeeded");
    ended["status"]["containerStatuses"][0]["state"] = json!({"terminated": {"exitCode": 0}});
    cluster.apply(ended).unwrap();
    assert_eq!(lines.count(), 0);
    let status = child.wait().unwrap();
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!((status.code(), &*told), (Some(0), "web-a/web has ended\n"));
}

#[test]
fn eight_logs_of_a_cluster_are_followed_for_all_readers_together() {
    let followed = Followed::start(&["eu"], &[]);
    let pod = ["logs", "pod/web-a", "-n", "shop"];
    let begin = || {
        let mut child = followed.follow(&pod);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (lines.next().and_then(Result::ok), child)
    };
    let mut all: Vec<Child> = Vec::new();
    for _ in 0..8 {
        let (line, child) = begin();
        all.push(child);
        assert_eq!(line.as_deref(), Some("serving in eu"));
    }
    let ninth = followed.ask(&[&pod[..], &["-f"]].concat());
    assert_eq!((ninth.code, &*ninth.stdout), (0, ""), "{}", ninth.stderr);
    let why = "warning: 1 more containers are left out: with -f at most 8 in a cluster\n";
    assert!(ninth.stderr.starts_with(why), "{}", ninth.stderr);
    // The place of a reader that is gone is free; questions are answered all the while.
    assert_eq!(followed.ask(&pod).stdout, "serving in eu\n");
    let mut gone = all.pop().unwrap();
    gone.kill().unwrap();
    gone.wait().unwrap();
    let began = Instant::now();
    loop {
        let (line, child) = begin();
        all.push(child);
        if line.is_some() {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "no place is free");
    }
    for mut child in all {
        let _ = child.kill();
        child.wait().unwrap();
    }
}

#[test]
fn logs_need_a_token_that_allows_them() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().to_str().unwrap();
    let followed = Followed::start(&["eu"], &["--data", folder]);
    let create = |arguments: &[&str]| {
        let created = taffrail(&[&["hub", "token", "create"], arguments, &["--data", folder]].concat(), "");
        assert_eq!(created.code, 0, "{}", created.stderr);
        (created.stdout.trim().to_owned(), created.stderr)
    };
    let ((reads, told), (status, _)) = (create(&["ops", "--logs"]), create(&["ci"]));
    assert!(told.contains("is valid until it is revoked, and allows to read logs."), "{told}");
    let listed = taffrail(&["hub", "token", "list", "--data", folder], "").stdout;
    let rights: Vec<&str> =
        listed.lines().skip(1).filter_map(|line| line.split_whitespace().nth(3)).collect();
    assert_eq!(rights, ["read,logs", "read"], "{listed}");

    let url = format!("{}#{status}", followed.hub.url());
    let logs = ["logs", "pod/web-a", "-n", "shop"];
    let refused =
        ask_until(&[&logs[..], &["--hub", &url]].concat(), |answer| answer.stderr.contains("allow"));
    assert_eq!((refused.code, &*refused.stdout), (3, ""));
    let address = followed.hub.url();
    assert_shown(
        &refused.stderr.replace(&address, "HUB"),
        str![[r#"
error: cannot ask the hub at HUB: the token does not allow to read logs
 hint: 'taffrail hub token create NAME --logs' makes a token that does

"#]],
    );
    let explained = followed.ask_with(&status, &["explain", "shop", "--logs"]);
    assert_eq!((explained.code, &*explained.stdout), (3, ""), "{}", explained.stderr);
    assert_eq!(followed.ask_with(&status, &["explain", "shop"]).code, 0);
    assert_eq!(followed.ask_with(&reads, &logs).stdout, "serving in eu\n");
}

/// Starts a hub that answers questions about logs with what `send` writes behind the head.
fn hostile(send: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> FakeHub {
    FakeHub::start(move |path, _, stream| {
        assert_eq!(path, "/api/v1/logs");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        send(stream);
    })
    .unwrap()
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

fn found() -> Vec<Value> {
    let subject = |pod: &str| json!({ "cluster": "eu", "namespace": "shop", "pod": pod, "container": "web", "status": "Current" });
    vec![
        json!({ "event": "logs", "subjects": [subject("web-a"), subject("web-b")] }),
        json!({ "event": "chosen", "well": 0, "leftOut": 0 }),
    ]
}

fn ask(hub: &FakeHub, more: &[&str]) -> Answer {
    taffrail(&[&["logs", "shop", "--hub", &hub.url], more].concat(), "")
}

#[test]
fn what_the_deadline_of_a_hub_cut_is_told_for_each_log() {
    let text = lines(
        &[
            found(),
            vec![
                json!({ "event": "lines", "log": 0, "leftOut": 0, "lines": [{ "text": "one" }] }),
                json!({ "event": "ended", "log": 0 }),
                json!({ "event": "lines", "log": 1, "leftOut": 0, "lines": [{ "text": "two" }] }),
                json!({ "event": "tooLate", "log": 1, "millis": 10_000 }),
            ],
        ]
        .concat(),
    );
    let late = ask(&hostile(move |stream| stream.write_all(text.as_bytes()).unwrap()), &[]);
    assert_eq!((late.code, &*late.stdout), (3, "web-a/web one\nweb-b/web two\n"));
    assert_shown(
        &late.stderr,
        str![[r#"
error: eu: read the log of container web of pods/web-b in namespace shop: no complete answer within 10.0 s: gave up in the middle of the answer
 hint: check that the server is up and reachable; if it is only slow, use a longer --timeout or --request-timeout

"#]],
    );
    let text = lines(&[found(), vec![json!({ "event": "full", "log": 0, "bytes": 16 << 20 })]].concat());
    let full = ask(&hostile(move |stream| stream.write_all(text.as_bytes()).unwrap()), &[]);
    assert_eq!(full.code, 3);
    assert!(full.stderr.contains("an answer of a hub has at most 16 MiB"), "{}", full.stderr);
}

#[test]
fn a_hub_that_sends_too_much_or_not_all_is_not_believed() {
    let told = |send: fn(&mut TcpStream), more: &[&str], why: &str| {
        let begun = Instant::now();
        let answer = ask(&hostile(send), more);
        assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
        assert!(answer.stderr.contains(why), "{}", answer.stderr);
        assert!(begun.elapsed() < PATIENCE, "{why}");
        answer
    };
    // An answer that breaks off is not whole.
    let part = told(
        |stream| {
            let line =
                json!({ "event": "lines", "log": 0, "leftOut": 2, "lines": [{ "text": "\u{1b}[2Jone" }] });
            let _ = stream.write_all(lines(&[found(), vec![line]].concat()).as_bytes());
        },
        &[],
        "the hub ended its answer before all logs were sent",
    );
    assert_eq!(part.stdout, "… 2 lines of web-a/web left out\nweb-a/web \u{fffd}[2Jone\n");
    told(|stream| drop(stream.write_all(b"{\"event\":")), &[], "the answer ends in the midst of an event");
    told(
        |stream| drop(stream.write_all(b"{\"event\":\"colour\"}\n")),
        &[],
        "does not have the expected form",
    );
    // An event has a greatest length, also if it never ends, and also of a followed log.
    let endless = |stream: &mut TcpStream| while stream.write_all(&[b' '; 4096]).is_ok() {};
    told(endless, &[], "an event is longer than 256 KiB");
    told(endless, &["-f"], "an event is longer than 256 KiB");
    // So have all together, and there is a time for them.
    let alive = |stream: &mut TcpStream| {
        let events = "{\"event\":\"alive\"}\n".repeat(10_000);
        while stream.write_all(events.as_bytes()).is_ok() {}
    };
    let begun = Instant::now();
    let flood = ask(&hostile(alive), &["--timeout", "1s"]);
    assert_eq!(flood.code, 3);
    let late = ["the hub did not send all logs in time", "the hub did not send the whole answer in time"];
    let why = ["the answer is longer than", late[0], late[1]];
    assert!(why.iter().any(|why| flood.stderr.contains(why)), "{}", flood.stderr);
    assert!(begun.elapsed() < PATIENCE);
    // A log that was not found cannot have lines.
    told(
        |stream| drop(stream.write_all(b"{\"event\":\"ended\",\"log\":7}\n")),
        &[],
        "the answer of the hub does not have the expected form",
    );
}
