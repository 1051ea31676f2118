//! Objects and logs in the terminal UI: YAML, actions and followed logs, by a hub over simulated clusters, and by fake ones.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fake_hub::{FakeHub, send_json};
use super::hub::Hub;
use super::served::Served;
use super::terminal::Terminal;
use super::tui::{NOW, app, covered};
use super::{command, logs};

const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal UI on a terminal of its own, and the columns of that.
struct Shown(Terminal, u16);

impl Shown {
    /// Starts the UI of a hub.
    fn start(url: &str, token: &str) -> Shown {
        let mut command = command(&["tui", "--hub", url]);
        command.env("TAFFRAIL_HUB_TOKEN", token);
        let mut shown = Shown(Terminal::start(command, 120, 40), 120);
        shown.press("", "live");
        shown
    }

    /// Types keys, and waits until the screen shows `wanted`. Only what differs is written, so a text is whole on a
    /// screen that is drawn anew.
    #[track_caller]
    fn press(&mut self, keys: &str, wanted: &str) {
        let begun = Instant::now();
        if !keys.is_empty() {
            self.0.type_in(keys);
            self.await_effect(begun);
        }
        loop {
            self.0.text.clear();
            self.1 = 241 - self.1;
            self.0.resize(self.1, 40);
            // The next change of the size comes when this one was handled.
            while !self.is_drawn() {
                self.0.read_for(Duration::from_millis(50));
                assert!(begun.elapsed() < PATIENCE, "nothing is drawn after {keys:?}: {:?}", self.0.text);
            }
            if self.0.text.contains(wanted) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "no {wanted:?} after {keys:?}: {:?}", self.0.text);
        }
    }

    /// Returns true if a whole screen was written.
    fn is_drawn(&self) -> bool {
        let drawn = self.0.text.split_once("\u{1b}[2J");
        drawn.is_some_and(|(_, drawn)| drawn.contains("\u{1b}[?2026l"))
    }

    /// Waits until keys have changed the screen, and a screen that changes by itself for two seconds. crossterm leaves
    /// input that comes together with a change of the size unread until more input comes.
    #[track_caller]
    fn await_effect(&mut self, begun: Instant) {
        let mut is_changed = false;
        loop {
            let written = self.0.read_for(Duration::from_millis(100));
            if is_changed && (written == 0 || begun.elapsed() > Duration::from_secs(2)) {
                return;
            }
            is_changed |= written > 0;
            assert!(begun.elapsed() < PATIENCE, "no key has an effect: {:?}", self.0.text);
        }
    }

    /// Checks that no control sequence of others reached the terminal.
    #[track_caller]
    fn is_clean(&self) {
        let bad = ["\u{1b}]0;", "\u{7}", "\u{202e}"];
        assert!(!bad.iter().any(|bad| self.0.text.contains(bad)), "{:?}", self.0.text);
    }

    fn quit(mut self) {
        self.0.type_in("q");
        let (text, code) = self.0.end();
        assert_eq!(code, Some(0), "{text:?}");
    }
}

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
    FakeHub::start(move |path, body, stream| {
        let begin = |stream: &mut TcpStream, kind: &str| {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
        };
        match path.split('?').next().unwrap_or_default() {
            "/api/v1/stream" => {
                begin(stream, "text/event-stream");
                let pages = json!([{"name": "news", "version": 1},
                    {"name": "clusters", "clusters": {"live": 1, "stale": 0, "lost": 0, "state": "complete"}}]);
                let frame = json!({"asOf": NOW, "pages": pages});
                let mut sent = stream.write_all(format!("event: frame\ndata: {frame}\n\n").as_bytes());
                while sent.is_ok() {
                    std::thread::sleep(Duration::from_millis(20));
                    sent = stream.write_all(b": alive\n\n");
                }
            }
            "/api/v1/apps" => send_json(stream, &covered("AppList", &[app(1, false)], 1)),
            "/api/v1/logs" => {
                let question: Value = serde_json::from_str(body).unwrap();
                assert_eq!(question["follow"], true, "{body}");
                begin(stream, "application/x-ndjson");
                let subject = json!({"cluster": "eu-1", "namespace": "shop", "pod": "web-a", "container": "web",
                    "status": "Current"});
                let found = [
                    json!({"event": "logs", "subjects": [subject]}),
                    json!({"event": "chosen", "well": 0, "leftOut": 0}),
                ];
                found.iter().for_each(|event| drop(stream.write_all(format!("{event}\n").as_bytes())));
                write(stream);
            }
            "/api/v1/attention" => send_json(stream, &covered("Attention", &[], 0)),
            "/api/v1/changes" => send_json(stream, &covered("AppChangeList", &[], 0)),
            _ => send_json(stream, &covered("AppList", &[app(1, false)], 1)),
        }
    })
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
