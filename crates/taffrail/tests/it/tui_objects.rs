//! Objects and logs in the terminal UI: YAML, actions and followed logs, by a hub over simulated clusters, and by fake ones.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use taffrail_testkit::fake_hub::{FakeHub, app, begin_stream, list, send_json};

use super::hub::Hub;
use super::logs;
use super::served::Served;
use super::shown::{PATIENCE, Shown};

/// Starts simulated clusters, a hub of them, and the UI with the app `shop` of the cluster `eu`.
fn shop(names: &[&str]) -> (Served, Hub, Shown) {
    let served = logs::shop(names);
    let hub = Hub::serving(&served.kubeconfig, names.len(), "127.0.0.1:0", &[]);
    hub.wait_until_complete();
    let mut shown = Shown::start(&hub.url(), hub.token());
    shown.press(":apps shop cluster=eu\r", "MESSAGE");
    shown.press("\r", "Objects");
    (served, hub, shown)
}

fn replicas(served: &Served, place: usize) -> Value {
    let cluster = &served.clusters[place];
    cluster.get("apps/v1", "Deployment", "shop", "web").unwrap()["spec"]["replicas"].clone()
}

#[test]
fn an_object_of_a_hub_is_shown_as_yaml() {
    let (served, _hub, mut shown) = shop(&["eu"]);
    let mut web = served.clusters[0].get("apps/v1", "Deployment", "shop", "web").unwrap();
    web["metadata"]["annotations"]["note"] = json!("\u{1b}]0;title\u{7}\u{1b}[2Jevil\u{202e}");
    served.clusters[0].apply(web).unwrap();
    shown.press("o", "Deployment");
    shown.press("/Deployment", "Deployment");
    shown.press("\r", "search Deployment");
    shown.press("y", "apiVersion: apps/v1");
    shown.press("", "evil");
    shown.is_clean();
    shown.press("\u{1b}", "Objects");
    shown.quit();
}

#[test]
fn an_action_of_a_hub_is_planned_confirmed_and_written() {
    let (served, _hub, mut shown) = shop(&["eu", "us"]);
    shown.press("o", "Deployment");
    shown.press("/Deployment", "Deployment");
    shown.press("\r", "search Deployment");
    shown.press(".", "PARAMETERS");
    shown.press("/scale\r", "search scale");
    shown.press("\r", "replicas = ");
    shown.press("\u{7f}3\r", "+   replicas: 3");
    assert_eq!(replicas(&served, 0), 2, "nothing is written before y");
    shown.press("y", "Done");
    assert_eq!((replicas(&served, 0), replicas(&served, 1)), (json!(3), json!(2)));
    shown.press("\u{1b}", "PARAMETERS");
    shown.quit();
}

#[test]
fn logs_of_a_hub_are_followed_through_restarts() {
    let (served, _hub, mut shown) = shop(&["eu"]);
    shown.press("l", "db:5432");
    shown.press("", "fatal:");
    shown.is_clean();
    let cluster = &served.clusters[0];
    let mut pod = cluster.get("v1", "Pod", "shop", "web-b").unwrap();
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2Jagain\u{202e}";
    pod["metadata"]["annotations"]["taffrail.dev/logs"] = json!(evil);
    let status = &mut pod["status"]["containerStatuses"][0];
    status["restartCount"] = json!(6);
    status["state"] = json!({"running": {"startedAt": "2026-03-01T12:05:00Z"}});
    cluster.apply(pod).unwrap();
    // The lines of the run before stay.
    shown.press("", "again");
    assert!(shown.0.text.contains("fatal:"), "{:?}", shown.0.text);
    shown.is_clean();
    shown.press("p", "(previous)");
    shown.quit();
}

/// Starts a hub with one app, whose followed logs `write` writes.
fn with_logs(write: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> FakeHub {
    FakeHub::start(move |path, body, stream| match path.split('?').next().unwrap_or_default() {
        "/api/v1/stream" => {
            let mut sent = begin_stream(stream);
            while sent.is_ok() {
                std::thread::sleep(Duration::from_millis(20));
                sent = stream.write_all(b": alive\n\n");
            }
        }
        "/api/v1/apps" => send_json(stream, &list("AppList", &[app(1, false)], 1)),
        "/api/v1/logs" => {
            let question: Value = serde_json::from_str(body).unwrap();
            assert_eq!(question["follow"], true, "{body}");
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
            let subject = json!({"cluster": "eu-1", "namespace": "shop", "pod": "web-a", "container": "web",
                    "status": "Current"});
            let found = [
                json!({"event": "logs", "subjects": [subject]}),
                json!({"event": "chosen", "well": 0, "leftOut": 0}),
            ];
            found.iter().for_each(|event| drop(stream.write_all(format!("{event}\n").as_bytes())));
            write(stream);
        }
        "/api/v1/attention" => send_json(stream, &list("Attention", &[], 0)),
        "/api/v1/changes" => send_json(stream, &list("AppChangeList", &[], 0)),
        _ => send_json(stream, &list("AppList", &[app(1, false)], 1)),
    })
    .unwrap()
}

/// Writes lines of a log; fails if the client is gone.
fn send_lines(stream: &mut TcpStream, lines: &[String]) -> std::io::Result<()> {
    let lines: Vec<Value> = lines.iter().map(|line| json!({"text": line})).collect();
    let event = json!({"event": "lines", "log": 0, "leftOut": 0, "lines": lines});
    stream.write_all(format!("{event}\n").as_bytes())
}

#[test]
fn a_log_is_followed_no_longer_when_its_tab_is_left() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let hub = with_logs(move |stream| {
        let mut sent = send_lines(stream, &["\u{1b}]0;title\u{7}first\u{202e}".to_owned()]);
        while sent.is_ok() {
            std::thread::sleep(Duration::from_millis(20));
            sent = stream.write_all(b"{\"event\":\"alive\"}\n");
        }
        count.fetch_add(1, Ordering::Relaxed);
    });
    let mut shown = Shown::start(&hub.url, "");
    shown.press(":apps\r", "app-00001");
    shown.press("\r", "Tab next part");
    shown.press("l", "first");
    shown.is_clean();
    for (number, keys) in ["d", ":clusters\r"].into_iter().enumerate() {
        assert_eq!(ended.load(Ordering::Relaxed), number, "it is followed while its tab is shown");
        shown.press(keys, "Taffrail");
        let begun = Instant::now();
        while ended.load(Ordering::Relaxed) == number {
            assert!(begun.elapsed() < PATIENCE, "it is followed after {keys:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        if number == 0 {
            shown.press("l", "first");
        }
    }
    shown.quit();
}

#[test]
fn a_log_that_floods_the_terminal_leaves_it_usable() {
    let hub = with_logs(|stream| {
        let lines: Vec<String> =
            (0..1_000).map(|number| format!("line {number} {}", "x".repeat(100))).collect();
        while send_lines(stream, &lines).is_ok() {}
    });
    let mut shown = Shown::start(&hub.url, "");
    shown.press(":apps\r", "app-00001");
    shown.press("\r", "Tab next part");
    shown.press("l", "xxx");
    shown.press("k", "(G ");
    shown.press("d", "Tab next part");
    shown.quit();
}

#[test]
fn a_signal_amid_a_flood_leaves_no_frame_behind() {
    let hub = with_logs(|stream| {
        for round in 0.. {
            let lines: Vec<String> = (0..50).map(|number| format!("line {round} {number}")).collect();
            if send_lines(stream, &lines).is_err() {
                return;
            }
        }
    });
    for _ in 0..3 {
        let mut shown = Shown::start(&hub.url, "");
        shown.press(":apps\r", "app-00001");
        shown.press("\r", "Tab next part");
        shown.0.type_in("l");
        shown.0.wait_for("line");
        shown.0.send(Signal::TERM);
        let (text, code) = shown.0.end();
        assert_eq!(code, Some(143));
        let (_, after) = text.split_once("\u{1b}[?1049l").unwrap();
        assert_eq!(after, "\u{1b}[0m", "{text:?}");
    }
}
