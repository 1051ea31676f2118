//! The demo: what it shows, that others see the same with its kubeconfig, and that it leaves nothing behind.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::terminal::Terminal;
use super::{command, taffrail};

/// Longer than anything here takes on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A demo without a terminal, in a folder of its own.
struct Demo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    folder: tempfile::TempDir,
    kubeconfig: PathBuf,
    /// What it told before its first change.
    first: Vec<String>,
}

impl Demo {
    fn start(arguments: &[&str]) -> Demo {
        let folder = tempfile::tempdir().unwrap();
        let mut command = command(&[&["demo"], arguments].concat());
        command.env("XDG_RUNTIME_DIR", folder.path()).stdout(Stdio::piped()).stdin(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut first = Vec::new();
        // What is never well from the start ends what it tells at first.
        while !first.last().is_some_and(|line: &String| line.contains("accounts is Ready (suspended)")) {
            first.push(lines.next().unwrap_or_else(|| panic!("it ended: {first:?}")).unwrap());
        }
        let export = first.iter().find_map(|line| line.strip_prefix("export KUBECONFIG=")).unwrap();
        let kubeconfig = PathBuf::from(export);
        Demo { child, lines, folder, kubeconfig, first }
    }

    fn ask(&self, arguments: &[&str]) -> super::Answer {
        let kubeconfig = self.kubeconfig.to_str().unwrap();
        taffrail(&[arguments, &["--all-contexts", "--kubeconfig", kubeconfig]].concat(), "")
    }

    /// What `explain` says of an app in a cluster.
    fn explain(&self, app: &str, cluster: &str) -> Value {
        let mut answer = self.ask(&["explain", app, "--cluster", cluster, "-o", "json"]).json();
        // Of one there is no list.
        answer
            .get_mut("items")
            .map_or(Value::Null, |items| items[0].take())
            .as_object()
            .map_or(answer, |it| Value::Object(it.clone()))
    }

    fn apps(&self) -> Apps {
        Apps::of(&self.ask(&["get", "apps", "-o", "json"]).json())
    }

    /// Asks until the apps are as they should be.
    fn apps_until(&self, what: &str, is_so: impl Fn(&Apps) -> bool) -> Apps {
        let begun = Instant::now();
        loop {
            let apps = self.apps();
            if is_so(&apps) {
                return apps;
            }
            assert!(begun.elapsed() < PATIENCE, "{what}: {:#?}", apps.0);
        }
    }

    /// Waits for a line that contains all of this.
    fn wait_for(&mut self, wanted: &[&str]) {
        for line in &mut self.lines {
            let line = line.unwrap();
            if wanted.iter().all(|wanted| line.contains(wanted)) {
                return;
            }
        }
        panic!("it ended without {wanted:?}");
    }

    /// Ends it as Ctrl-C does; nothing is left.
    fn end(mut self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        let left: Vec<_> = fs::read_dir(self.folder.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(!self.kubeconfig.exists());
    }
}

/// Health, sync and message of apps, by cluster and name.
#[derive(Debug)]
struct Apps(BTreeMap<(String, String), (String, String, String)>);

impl Apps {
    fn of(list: &Value) -> Apps {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let rows = list["items"].as_array().unwrap().iter().map(|app| {
            let state = (text(&app["effective"]), text(&app["sync"]["state"]), text(&app["message"]));
            ((text(&app["cluster"]), text(&app["name"])), state)
        });
        Apps(rows.collect())
    }

    fn get(&self, cluster: &str, name: &str) -> (&str, &str, &str) {
        let found = self.0.get(&(cluster.to_owned(), name.to_owned()));
        found.map_or(("", "", ""), |(health, sync, message)| (health, sync, message))
    }

    fn is(&self, cluster: &str, name: &str, health: &str) -> bool {
        self.get(cluster, name).0 == health
    }
}

/// The kind and name of the last link of a chain: the cause.
fn cause(explanation: &Value) -> (String, String, String) {
    let chain = explanation["chain"].as_array();
    let last = chain.and_then(|chain| chain.last()).unwrap_or_else(|| panic!("{explanation}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&last["object"]["kind"]), text(&last["reason"]), text(&explanation["message"]))
}

#[test]
fn the_demo_begins_with_what_goes_wrong_first_and_reacts_to_people() {
    let mut demo = Demo::start(&["--skip", "44s"]);
    assert!(demo.first[0].contains("12 clusters, 99 apps"), "{:?}", demo.first);
    let text = fs::read_to_string(&demo.kubeconfig).unwrap();
    assert!(text.starts_with("# Written by taffrail demo"), "{text}");

    let apps = demo.apps_until("the image, the quota", |apps| {
        apps.is("us-2", "shop", "Failed") && apps.is("eu-1", "payments", "Failed")
    });
    assert_eq!(apps.0.len(), 99, "{:#?}", apps.0);
    assert_eq!(apps.get("us-2", "accounts").1, "Suspended");
    assert!(["eu-2", "us-3"].iter().all(|cluster| apps.is(cluster, "shop", "Failed")));
    assert!(apps.is("eu-1", "shop", "Current"), "{:#?}", apps.0);

    let (kind, reason, message) = cause(&demo.explain("shop", "us-2"));
    assert_eq!((&*kind, &*reason), ("Pod", "ImagePullBackOff"), "{message}");
    assert!(message.contains("ghcr.io/acme/shop/web:1.6.0"), "{message}");
    let (kind, reason, message) = cause(&demo.explain("payments", "eu-1"));
    assert_eq!((&*kind, &*reason), ("ReplicaSet", "FailedCreate"), "{message}");
    assert!(message.contains("exceeded quota: team"), "{message}");

    // The cluster that goes dark takes the words about its apps with it.
    demo.wait_for(&["ap-2 in reach -> no answer"]);
    let apps = demo.apps_until("the dark cluster", |apps| apps.is("ap-2", "catalog-ap-2", "Unknown"));
    assert!(apps.is("ap-1", "catalog-ap-1", "Current"), "{:#?}", apps.0);
    let clusters = demo.ask(&["get", "clusters", "-o", "json"]).json();
    let clusters = clusters["items"].as_array().unwrap();
    assert_eq!(clusters.len(), 12);
    let dark = clusters.iter().find(|row| row["name"] == "ap-2").unwrap();
    assert_eq!(dark["status"], "Unknown", "{dark}");
    assert!(dark["message"].as_str().unwrap().contains("cannot connect"), "{dark}");
    demo.end(Signal::INT);
}

#[test]
fn what_goes_wrong_later_is_explained_as_well() {
    let demo = Demo::start(&["--skip", "150s", "--hold"]);
    let apps = demo.apps();
    assert!(apps.is("us-1", "cache", "Failed"), "{:#?}", apps.0);
    let (kind, reason, _) = cause(&demo.explain("cache", "us-1"));
    assert_eq!((&*kind, &*reason), ("Pod", "CrashLoopBackOff"));
    assert_eq!(apps.get("ap-3", "gateway-ap-3").1, "OutOfSync", "{:#?}", apps.0);
    assert!(apps.is("ap-3", "gateway-ap-3", "Current"), "{:#?}", apps.0);
    // Its declaration is in another cluster.
    let (kind, reason, _) = cause(&demo.explain("orders-ap-1", "ap-1"));
    assert_eq!((&*kind, &*reason), ("Node", "NodeStatusUnknown"));
    demo.end(Signal::TERM);

    let demo = Demo::start(&["--skip", "225s", "--hold"]);
    let apps = demo.apps();
    assert!(apps.is("us-1", "search", "Terminating"), "{:#?}", apps.0);
    assert_eq!(apps.get("eu-3", "shop").1, "OutOfSync", "{:#?}", apps.0);
    assert!(apps.is("eu-3", "shop", "Current"), "{:#?}", apps.0);
    let (kind, reason, message) = cause(&demo.explain("search", "us-1"));
    assert_eq!((&*kind, &*reason), ("Pod", "InUse"), "{message}");
    let doubts = demo.ask(&["trust", "-o", "json"]).stdout;
    assert!(doubts.contains("kustomize-controller is scaled to 0"), "{doubts}");
    demo.end(Signal::HUP);
}

#[test]
fn somebody_elses_kubeconfig_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, "apiVersion: v1\n").unwrap();
    let answer = taffrail(&["demo", "--kubeconfig", path.to_str().unwrap()], "");
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert!(
        answer.stderr.contains("not from a demo") && answer.stderr.contains("hint:"),
        "{}",
        answer.stderr
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");
}

/// What stands on a screen after all that was written to it: rows without colours.
fn rows(written: &str) -> BTreeMap<usize, String> {
    let mut rows = BTreeMap::new();
    for part in written.split("\x1b[").skip(1) {
        let Some((row, text)) = part.split_once(";1H") else { continue };
        let Ok(row) = row.parse() else { continue };
        // Colours begin with the same sign: what follows the place of a row belongs to it until the next place.
        rows.insert(row, text.to_owned());
    }
    rows
}

#[test]
fn the_overview_takes_the_screen_and_gives_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(&["demo", "--skip", "44s", "--color", "never"]);
    command.env("XDG_RUNTIME_DIR", folder.path());
    let mut terminal = Terminal::start(command, 80, 24);
    terminal.wait_for("Ctrl-C ends the demo");
    assert!(terminal.text.starts_with("\x1b[?1049h"), "{:?}", terminal.text);
    let shown = rows(&terminal.text);
    assert!(shown.len() <= 24 && *shown.keys().max().unwrap() <= 24, "{shown:?}");
    assert!(shown[&1].contains("12 clusters, 99 apps"), "{shown:?}");
    for wanted in ["Europe", "Needs attention", "payments", "export KUBECONFIG="] {
        assert!(shown.values().any(|row| row.contains(wanted)), "{wanted}: {shown:?}");
    }
    // Of an update only what changed is written.
    terminal.wait_for("no answer");
    assert_eq!(terminal.text.matches("Europe").count(), 1, "{:?}", terminal.text);

    let id = Pid::from_child(&terminal.child);
    rustix::process::kill_process(id, Signal::INT).unwrap();
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0));
    assert!(text.ends_with("\x1b[?7h\x1b[?25h\x1b[?1049l"), "{:?}", &text[text.len().saturating_sub(200)..]);
    assert!(is_empty(folder.path()));
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}
