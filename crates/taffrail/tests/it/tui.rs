//! The terminal UI on a terminal: what it shows, how little it writes, and that it leaves the terminal as it was.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};
use serde_json::{Value, json};

use super::command;
use super::demo::Demo;
use super::fake_hub::{FakeHub, send_json};
use super::terminal::Terminal;

pub(super) const NOW: &str = "2026-03-01T12:00:00Z";
/// The control sequences that switch to the alternate screen and return from it.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1006l\x1b[?1000l\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// A hub with so many apps in one cluster; the first has failed as soon as it is told to.
struct Many {
    hub: FakeHub,
    has_failed: Arc<AtomicBool>,
}

pub(super) fn app(number: usize, has_failed: bool) -> Value {
    let status = if has_failed { "Failed" } else { "Current" };
    let live = json!({"state": "live", "observedAt": NOW});
    json!({"key": format!("helm/shop/app-{number:05}"), "cluster": "eu-1", "home": "eu-1", "delivery": "helm",
        "namespace": "shop", "name": format!("app-{number:05}"), "health": status, "effective": status,
        "message": if has_failed { "the quota is used up" } else { "" }, "objects": 1, "suspended": false,
        "counts": {"Current": usize::from(!has_failed), "InProgress": 0, "Failed": usize::from(has_failed),
            "Terminating": 0, "NotFound": 0, "Unknown": 0},
        "sync": {"state": "Synced", "effective": "Synced", "freshness": live}, "freshness": live})
}

pub(super) fn covered(kind: &str, items: &[Value], total: usize) -> Value {
    json!({"apiVersion": "taffrail.dev/v1alpha1", "kind": kind, "items": items, "errors": [], "total": total,
        "state": "complete", "asOf": NOW, "clusters": 1, "missing": [], "apps": total, "problems": 0})
}

impl Many {
    fn start(number: usize) -> Many {
        let has_failed = Arc::new(AtomicBool::new(false));
        let state = Arc::clone(&has_failed);
        let hub = FakeHub::start(move |path, _, stream| {
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let has_failed = state.load(Ordering::Relaxed);
            let parameter = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name));
            let answer = match path {
                "/api/v1/stream" => return follow(stream, &state),
                "/api/v1/apps" => {
                    let from: usize = parameter("cursor=").map_or(0, |cursor| cursor.parse().unwrap());
                    let end = (from + 200).min(number);
                    let items: Vec<Value> =
                        (from..end).map(|place| app(place, has_failed && place == 0)).collect();
                    let mut list = covered("AppList", &items, number);
                    if end < number {
                        list["next"] = json!(end.to_string());
                    }
                    list
                }
                "/api/v1/attention" => covered("Attention", &[], 0),
                "/api/v1/changes" => covered("AppChangeList", &[], 0),
                _ => covered("ClusterList", &[], 0),
            };
            send_json(stream, &answer);
        });
        Many { hub, has_failed }
    }

    fn open(&self, more: &[&str], variables: &[(&str, &str)], columns: u16, rows: u16) -> Terminal {
        let mut command = command(&[&["tui", "--hub", &self.hub.url], more].concat());
        command.envs(variables.iter().copied());
        Terminal::start(command, columns, rows)
    }
}

/// Tells of the state of the fleet, and of a change as soon as there is one, until the client goes.
fn follow(stream: &mut TcpStream, has_failed: &AtomicBool) {
    let frame = |version: usize| {
        let pages = json!([{"name": "news", "version": version},
            {"name": "clusters", "clusters": {"live": 1, "stale": 0, "lost": 0, "state": "complete"}}]);
        format!("event: frame\ndata: {}\n\n", json!({"asOf": NOW, "pages": pages}))
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let mut told = stream.write_all(format!("{head}{}", frame(1)).as_bytes());
    let mut was = false;
    while told.is_ok() {
        std::thread::sleep(Duration::from_millis(20));
        let is = has_failed.load(Ordering::Relaxed);
        told = if is == was { Ok(()) } else { stream.write_all(frame(2).as_bytes()) };
        was = is;
    }
}

/// Waits until the process is stopped.
fn wait_until_stopped(terminal: &Terminal) {
    let pid = Pid::from_child(&terminal.child);
    let (_, status) = rustix::process::waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped(), "{status:?}");
}

#[test]
fn quitting_restores_the_terminal() {
    let many = Many::start(3);
    let mut terminal = many.open(&[], &[], 80, 24);
    let before = terminal.settings();
    terminal.wait_for("Attention");
    terminal.wait_for("live");
    assert_ne!(terminal.settings(), before, "what is typed is not echoed");
    terminal.type_in(":apps\r");
    terminal.wait_for("app-00002");
    terminal.type_in("q");
    terminal.child.wait().unwrap();
    assert_eq!(terminal.settings(), before);
    let (text, code) = terminal.end();
    assert!(text.starts_with(ENTER) && text.ends_with(LEAVE), "{text:?}");
    assert_eq!(code, Some(0));
}

#[test]
fn signals_restore_the_terminal() {
    let many = Many::start(3);
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let mut terminal = many.open(&[], &[], 80, 24);
        let before = terminal.settings();
        terminal.wait_for("live");
        rustix::process::kill_process(Pid::from_child(&terminal.child), signal).unwrap();
        terminal.child.wait().unwrap();
        assert_eq!(terminal.settings(), before, "{signal:?}");
        let (text, ended) = terminal.end();
        assert!(text.contains(LEAVE), "{signal:?}: {text:?}");
        assert_eq!(ended, Some(code), "{signal:?}");
    }
}

#[test]
fn a_stopped_process_restores_the_terminal_and_draws_again_when_it_goes_on() {
    let many = Many::start(3);
    let mut terminal = many.open(&[], &[], 80, 24);
    let before = terminal.settings();
    terminal.wait_for("live");
    let pid = Pid::from_child(&terminal.child);
    rustix::process::kill_process(pid, Signal::TSTP).unwrap();
    wait_until_stopped(&terminal);
    terminal.wait_for(LEAVE);
    assert_eq!(terminal.settings(), before);
    terminal.text.clear();
    rustix::process::kill_process(pid, Signal::CONT).unwrap();
    terminal.wait_for(ENTER);
    terminal.wait_for("Attention");
    assert_ne!(terminal.settings(), before);
    terminal.type_in("q");
    assert_eq!(terminal.end().1, Some(0));
}

#[test]
fn it_needs_a_terminal() {
    let answer = super::taffrail(&["tui", "--hub", "http://127.0.0.1:1"], "");
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("needs a terminal"), "{}", answer.stderr);
}

#[test]
fn a_changed_row_writes_little_and_rest_writes_nothing() {
    let many = Many::start(10_000);
    let mut terminal = many.open(&[], &[], 200, 60);
    terminal.wait_for("live");
    terminal.type_in("gp");
    terminal.wait_for("app-00040");
    // The rest of that screen comes first.
    terminal.read_for(Duration::from_secs(1));
    assert_eq!(terminal.read_for(Duration::from_secs(3)), 0, "it writes at rest: {:?}", terminal.text);
    terminal.text.clear();
    many.has_failed.store(true, Ordering::Relaxed);
    terminal.wait_for("quota");
    terminal.read_for(Duration::from_secs(2));
    let written = terminal.text.len();
    assert!((1..4096).contains(&written), "{written} bytes: {:?}", terminal.text);
    // The last of all rows is reached.
    terminal.type_in("G");
    let begun = Instant::now();
    // crossterm leaves a key that comes together with a change of the size unread until another one comes.
    while terminal.read_for(Duration::from_millis(100)) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the key has no effect");
    }
    // Only what differs is written, so a name is whole on a screen that is drawn anew.
    while !terminal.text.contains("app-09999") {
        assert!(begun.elapsed() < Duration::from_secs(60), "the last row is not reached");
        let columns = if terminal.text.len().is_multiple_of(2) { 190 } else { 191 };
        terminal.resize(columns, 60);
        terminal.read_for(Duration::from_millis(300));
    }
    terminal.type_in("q");
    terminal.end();
}

#[test]
fn a_terminal_without_colours_gets_none() {
    let many = Many::start(3);
    let colour = regex::Regex::new("\x1b\\[(3[0-8]|4[0-8]|9[0-7]|38;5;[0-9]+)[;m]").unwrap();
    let shown = |more: &[&str], variables: &[(&str, &str)]| {
        let mut terminal = many.open(more, variables, 80, 24);
        terminal.wait_for("live");
        terminal.type_in("gp");
        terminal.wait_for("app-00002");
        terminal.type_in("q");
        terminal.end().0
    };
    assert!(colour.is_match(&shown(&[], &[])));
    assert!(shown(&[], &[("COLORTERM", "truecolor")]).contains("38;5;"));
    for text in [shown(&[], &[("NO_COLOR", "1")]), shown(&["--color", "never"], &[])] {
        assert!(!colour.is_match(&text), "{text:?}");
    }
}

#[test]
fn resizing_draws_for_the_new_size() {
    let many = Many::start(100);
    let mut terminal = many.open(&[], &[], 80, 24);
    terminal.wait_for("live");
    terminal.type_in("gp");
    terminal.wait_for("app-00010");
    assert!(!terminal.text.contains("app-00040"));
    terminal.resize(120, 60);
    terminal.wait_for("app-00040");
    terminal.type_in("q");
    terminal.end();
}

#[test]
fn a_hub_that_went_away_is_told_and_found_again() {
    let is_away = Arc::new(AtomicBool::new(false));
    let streams = Arc::new(AtomicUsize::new(0));
    let (away, opened) = (Arc::clone(&is_away), Arc::clone(&streams));
    let hub = FakeHub::start(move |path, _, stream| {
        if path.starts_with("/api/v1/stream") && !away.load(Ordering::Relaxed) {
            opened.fetch_add(1, Ordering::Relaxed);
            let frame = json!({"asOf": NOW, "pages": [{"name": "news", "version": 1},
                {"name": "clusters", "clusters": {"live": 1, "stale": 0, "lost": 0, "state": "complete"}}]});
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let _ = stream.write_all(format!("{head}event: frame\ndata: {frame}\n\n").as_bytes());
            while !away.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
        } else if !path.starts_with("/api/v1/stream") {
            send_json(stream, &covered("Attention", &[], 0));
        }
    });
    let mut terminal = Terminal::start(command(&["tui", "--hub", &hub.url]), 80, 24);
    terminal.wait_for("live");
    is_away.store(true, Ordering::Relaxed);
    terminal.wait_for("away");
    terminal.text.clear();
    is_away.store(false, Ordering::Relaxed);
    terminal.wait_for("live");
    assert!(streams.load(Ordering::Relaxed) >= 2);
    terminal.type_in("q");
    assert_eq!(terminal.end().1, Some(0));
}

#[test]
fn clusters_are_shown_by_a_hub_in_the_process() {
    let demo = Demo::start(&["--hold", "--skip", "2m"]);
    let kubeconfig = demo.kubeconfig().to_str().unwrap();
    let arguments = ["tui", "--all-contexts", "--kubeconfig", kubeconfig];
    let mut terminal = Terminal::start(command(&arguments), 120, 40);
    terminal.wait_for("Problems");
    let began = Instant::now();
    terminal.type_in(":apps shop\r");
    terminal.wait_for("MESSAGE");
    terminal.type_in("\r");
    terminal.wait_for("Why");
    terminal.type_in("o");
    terminal.wait_for("Deployment");
    assert!(began.elapsed() < Duration::from_secs(60));
    terminal.type_in("q");
    let (text, code) = terminal.end();
    assert!(text.ends_with(LEAVE), "{text:?}");
    assert_eq!(code, Some(0));
}
