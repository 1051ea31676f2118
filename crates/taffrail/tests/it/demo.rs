//! The demo: what it shows, that others see the same with its kubeconfig, and that it leaves nothing behind.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal};
use serde_json::Value;
use taffrail_testkit::terminal::Terminal;

use super::hub::ask_until;
use super::{command, taffrail};

/// A demo without a terminal, in a folder of its own.
pub(super) struct Demo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    folder: tempfile::TempDir,
    kubeconfig: PathBuf,
    /// The output before its first change.
    first: Vec<String>,
}

impl Demo {
    pub(super) fn start(arguments: &[&str]) -> Demo {
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

    pub(super) fn ask(&self, arguments: &[&str]) -> super::Answer {
        // A machine with much else to do takes its time; where a command has a time of its own, that is said already.
        let has_time = arguments.contains(&"--request-timeout");
        let where_from: &[&str] = match has_time {
            true => &["--all-contexts"],
            false => &["--all-contexts", "--timeout", "60s", "--request-timeout", "0"],
        };
        self.ask_plainly(&[arguments, where_from].concat())
    }

    /// Asks with nothing but the kubeconfig.
    pub(super) fn ask_plainly(&self, arguments: &[&str]) -> super::Answer {
        let where_from = ["--kubeconfig", self.kubeconfig.to_str().unwrap()];
        taffrail(&[arguments, &where_from].concat(), "")
    }

    /// Returns the output of `explain` for an app in a cluster.
    pub(super) fn explain(&self, app: &str, cluster: &str) -> Value {
        let answer = self.ask(&["explain", app, "--cluster", cluster, "-o", "json"]).json();
        // Of one there is no list.
        answer["items"].as_array().map_or(answer.clone(), |items| items[0].clone())
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the URL of the hub with its token, as `--hub` takes it.
    fn hub(&self) -> String {
        let named = |start: &str| {
            let found = self.first.iter().find_map(|line| line.strip_prefix(start));
            found.unwrap_or_else(|| panic!("{:?}", self.first)).to_owned()
        };
        format!("{}#{}", named("taffrail get apps --hub "), named("export TAFFRAIL_HUB_TOKEN="))
    }

    /// Asks the hub until an answer is as wanted.
    fn ask_hub_until(&self, arguments: &[&str], is_wanted: impl Fn(&super::Answer) -> bool) -> super::Answer {
        ask_until(&[arguments, &["--hub", &self.hub(), "--timeout", "60s"]].concat(), is_wanted)
    }

    fn apps(&self) -> Apps {
        Apps::of(&self.ask(&["get", "apps", "-o", "json"]).json())
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
    fn end(&mut self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        let left: Vec<_> = fs::read_dir(self.folder.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(!self.kubeconfig.exists());
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // One that has ended already does not mind; one whose test failed goes on otherwise.
        let _ = self.child.kill();
        let _ = self.child.wait();
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

/// A change before a failure: its field, the kind and name of its object, the value before and after.
fn changed(explanation: &Value) -> Vec<String> {
    let changed = explanation["changed"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let told = changed.iter().map(|change| {
        let object = &change["object"];
        let [what, from, to] = [&change["what"], &change["from"], &change["to"]].map(text);
        format!("{what} of {} {}: {from} > {to}", text(&object["kind"]), text(&object["name"]))
    });
    told.collect()
}

/// The kind and name of the last link of a chain: the cause.
fn cause(explanation: &Value) -> (String, String, String) {
    let chain = explanation["chain"].as_array();
    let last = chain.and_then(|chain| chain.last()).unwrap_or_else(|| panic!("{explanation}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&last["object"]["kind"]), text(&last["reason"]), text(&explanation["message"]))
}

#[test]
fn first_faults_are_explained_and_a_dark_cluster_is_unknown() {
    let mut demo = Demo::start(&["--skip", "60s", "--hold"]);
    assert!(demo.first[0].contains("12 clusters"), "{:?}", demo.first);
    let text = fs::read_to_string(&demo.kubeconfig).unwrap();
    assert!(text.starts_with("# Written by taffrail demo"), "{text}");

    let apps = demo.apps();
    assert_eq!(apps.get("us-2", "accounts").1, "Suspended");
    assert!(
        ["eu-2", "us-2", "us-3"].iter().all(|cluster| apps.is(cluster, "shop", "Failed")),
        "{:#?}",
        apps.0
    );
    assert!(apps.is("eu-1", "shop", "Current"), "{:#?}", apps.0);
    let shop = demo.explain("shop", "us-2");
    let (kind, reason, message) = cause(&shop);
    assert_eq!((&*kind, &*reason), ("Pod", "ImagePullBackOff"), "{message}");
    let before = changed(&shop);
    let image = "image of Deployment web: ghcr.io/acme/shop/web:1.5.1 > ghcr.io/acme/shop/web:1.6.0";
    assert_eq!(before[0], image, "{before:?}");
    assert!(
        before.iter().any(|it| it.starts_with("revision of Kustomization shop: wave-2@sha1:")),
        "{before:?}"
    );
    assert!(message.contains("ghcr.io/acme/shop/web:1.6.0"), "{message}");
    assert!(apps.is("eu-1", "payments", "Failed"), "{:#?}", apps.0);
    let payments = demo.explain("payments", "eu-1");
    let (kind, reason, message) = cause(&payments);
    assert_eq!((&*kind, &*reason), ("ReplicaSet", "FailedCreate"), "{message}");
    let before = changed(&payments);
    assert_eq!(before[0], "spec of Deployment api: - > -", "{before:?}");
    assert_eq!(payments["changed"][0]["by"], "kustomize-controller", "{payments}");
    assert_eq!(before[1], "quota of ResourceQuota team: - > used: pods=6, limited: pods=6", "{before:?}");
    assert!(before[2].starts_with("revision of Kustomization payments: wave-1@sha1:"), "{before:?}");
    assert!(message.contains("exceeded quota: team"), "{message}");

    // The cluster that is dark takes the words about its apps with it, wherever they are declared.
    assert!(apps.is("ap-2", "catalog-ap-2", "Unknown"), "{:#?}", apps.0);
    let dark = demo.explain("catalog-ap-2", "ap-2");
    assert_eq!(dark["next"], serde_json::json!(["kubectl get --raw /readyz --context ap-2"]));
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
fn the_hub_of_the_demo_answers_as_its_clusters_do() {
    let mut demo = Demo::start(&["--skip", "60s", "--hold"]);
    let direct = demo.apps();
    demo.ask_hub_until(&["get", "apps", "-o", "json"], |answer| {
        let told = serde_json::from_str(&answer.stdout).map(|list| Apps::of(&list));
        told.is_ok_and(|mut told| {
            told.0.retain(|(cluster, _), _| !FURTHER.contains(&&**cluster));
            told.0 == direct.0
        })
    });
    demo.end(Signal::INT);
}

/// The clusters that the kubeconfig of the demo does not have.
const FURTHER: [&str; 3] = ["edge-1", "edge-2", "vendor-1"];

/// Returns the rows of an answer by a field.
fn by(answer: &super::Answer, field: &str) -> BTreeMap<String, Value> {
    let list: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
    let rows = list["items"].as_array().cloned().unwrap_or_default();
    rows.into_iter().map(|row| (row[field].as_str().unwrap_or_default().to_owned(), row)).collect()
}

#[test]
fn clusters_of_agents_and_of_metrics_are_in_the_hub_of_the_demo_alone() {
    let mut demo = Demo::start(&["--skip", "60s", "--hold"]);
    let told = "# The page and --hub also have edge-1, edge-2 and vendor-1,";
    assert!(demo.first.iter().any(|line| line.starts_with(told)), "{:?}", demo.first);
    assert!(!fs::read_to_string(&demo.kubeconfig).unwrap().contains("edge-1"));

    let is_live = |row: Option<&Value>| row.is_some_and(|row| row["freshness"]["state"] == "live");
    let clusters = demo.ask_hub_until(&["get", "clusters", "-o", "json"], |answer| {
        let rows = by(answer, "name");
        rows.len() == 15 && FURTHER.iter().all(|name| is_live(rows.get(*name)))
    });
    let rows = by(&clusters, "name");
    let source = |name: &str| rows[name]["source"].as_str().unwrap_or_default().to_owned();
    assert_eq!(FURTHER.map(source), ["agent", "agent", "prometheus/vendor"], "{}", clusters.stdout);
    assert_eq!(rows["edge-2"]["labels"]["region"], "americas");
    let wide =
        demo.ask_hub_until(&["get", "clusters", "-o", "wide"], |answer| answer.stdout.contains("edge-1"));
    let line = |name: &str| wide.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    assert!(line("edge-1").contains(" agent "), "{}", wide.stdout);
    assert!(line("vendor-1").contains(" prometheus/vendor "), "{}", wide.stdout);

    // The agent reads the objects of its cluster for the one who asks the hub.
    let explained = demo
        .ask_hub_until(&["explain", "signage", "--cluster", "edge-1", "-o", "json"], |answer| {
            answer.stdout.contains("CrashLoopBackOff")
        });
    let explained = explained.json();
    let explained = explained["items"].as_array().map_or(&explained, |items| &items[0]);
    assert_eq!(cause(explained).0, "Pod", "{explained}");
    let tree = demo.ask_hub_until(&["tree", "lockers", "--cluster", "edge-2"], |answer| answer.code == 0);
    assert!(tree.stdout.contains("ReplicaSet") && tree.stdout.contains("door-"), "{}", tree.stdout);

    // Of a cluster known by metrics alone, nothing is green that no sample says.
    let apps = demo.ask_hub_until(&["get", "apps", "--cluster", "vendor-1", "-o", "json"], |answer| {
        by(answer, "name").len() == 3
    });
    let apps = by(&apps, "name");
    let state = |name: &str| {
        let app = &apps[name];
        (app["effective"].as_str().unwrap_or_default(), app["sync"]["effective"].as_str().unwrap_or_default())
    };
    assert_eq!(state("invoices"), ("Failed", "Syncing"));
    assert_eq!(state("mailer"), ("Current", "Synced"));
    // Its declaring object is ready, and nobody tells of what it declares.
    assert_eq!(state("backups"), ("Unknown", "Synced"));
    for (name, part) in [("invoices", "objects"), ("mailer", "objects"), ("backups", "health")] {
        let unobserved = apps[name]["unobserved"].as_array().unwrap();
        assert!(unobserved.iter().any(|it| it == part), "{name} {unobserved:?}");
    }
    let refused = demo.ask_hub_until(&["tree", "mailer", "--cluster", "vendor-1"], |answer| answer.code != 0);
    assert!(refused.stderr.contains("only metrics tell of cluster vendor-1"), "{}", refused.stderr);
    demo.end(Signal::TERM);
}

#[test]
fn the_hub_of_the_demo_keeps_history_until_the_demo_ends() {
    let mut demo = Demo::start(&["--skip", "5s"]);
    // The first of these faults is in a cluster of the kubeconfig, the other one in that of an agent.
    for (app, cluster) in [("payments", "eu-1"), ("signage", "edge-1")] {
        let history = ["history", app, "--cluster", cluster];
        let told = demo.ask_hub_until(&history, |answer| answer.stdout.contains(" Failed/"));
        assert!(told.stdout.starts_with("TIME"), "{}", told.stdout);
    }
    let past = demo.ask_hub_until(&["get", "apps", "--cluster", "eu-1", "--at", "1s"], |answer| {
        answer.stdout.contains("payments")
    });
    assert!(past.stdout.contains("shop"), "{}", past.stdout);
    demo.end(Signal::INT);
}

#[test]
fn demo_prints_one_line_per_change() {
    let mut demo = Demo::start(&["--skip", "44s"]);
    // On a slow machine it is dark already at the first look. The reason depends on what the cluster was asked last.
    if !demo.first.iter().any(|line| line.contains("ap-2") && line.contains("Unknown")) {
        assert!(demo.first[0].contains("12 clusters, 99 apps"), "{:?}", demo.first);
        demo.wait_for(&["ap-2 in reach -> no answer: "]);
    }
    demo.end(Signal::INT);
}

#[test]
fn later_faults_are_explained() {
    let mut demo = Demo::start(&["--skip", "150s", "--hold"]);
    let apps = demo.apps();
    assert_eq!(apps.0.len(), 99, "{:#?}", apps.0);
    assert!(apps.is("us-1", "cache", "Failed"), "{:#?}", apps.0);
    let (kind, reason, _) = cause(&demo.explain("cache", "us-1"));
    assert_eq!((&*kind, &*reason), ("Pod", "CrashLoopBackOff"));
    assert_eq!(apps.get("ap-3", "gateway-ap-3").1, "OutOfSync", "{:#?}", apps.0);
    assert!(apps.is("ap-3", "gateway-ap-3", "Current"), "{:#?}", apps.0);
    // Its declaration is in another cluster.
    let orders = demo.explain("orders-ap-1", "ap-1");
    let (kind, reason, _) = cause(&orders);
    assert_eq!((&*kind, &*reason), ("Node", "NodeStatusUnknown"));
    assert_eq!(changed(&orders)[0], "node of Node node-2: Ready > NodeStatusUnknown");
    demo.end(Signal::TERM);

    let mut demo = Demo::start(&["--skip", "160s", "--hold"]);
    let cache = demo.explain("cache", "us-1");
    let (kind, reason, message) = cause(&cache);
    assert_eq!((&*kind, &*reason), ("HelmRelease", "UpgradeFailed"), "{message}");
    assert_eq!(changed(&cache), ["revision of HelmRelease cache: 0.9.2 > 0.10.0"]);
    demo.end(Signal::INT);

    let mut demo = Demo::start(&["--skip", "225s", "--hold"]);
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
fn foreign_kubeconfig_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, "apiVersion: v1\n").unwrap();
    let answer = taffrail(&["demo", "--kubeconfig", path.to_str().unwrap()], "");
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert!(
        answer.stderr.contains("no demo wrote it") && answer.stderr.contains("hint:"),
        "{}",
        answer.stderr
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");
}

/// Returns the rows of a screen, without colours, after all that was written to it.
fn rows(written: &str) -> BTreeMap<usize, String> {
    let mut rows = BTreeMap::new();
    let written = written.replace("\x1b[0m\x1b[K", "");
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
    let mut command = command(&["demo", "--color", "never"]);
    command.env("XDG_RUNTIME_DIR", folder.path());
    let mut terminal = Terminal::start(command, 80, 24).unwrap();
    terminal.wait_for("Ctrl-C ends the demo");
    assert!(terminal.text.starts_with("\x1b[?1049h"), "{:?}", terminal.text);
    // Before there was anything to see, it said what is waited for.
    assert!(terminal.text.contains("starting twelve clusters"), "{:?}", terminal.text);
    let shown = rows(&terminal.text);
    assert!(shown.len() <= 24 && *shown.keys().max().unwrap() <= 24, "{shown:?}");
    assert!(shown[&1].contains("12 clusters, "), "{shown:?}");
    for wanted in ["Europe", "Needs attention", "export KUBECONFIG="] {
        assert!(shown.values().any(|row| row.contains(wanted)), "{wanted}: {shown:?}");
    }
    // Of an update only what changed is written.
    terminal.wait_for("shop in ");
    assert_eq!(terminal.text.matches("Europe").count(), 1, "{:?}", terminal.text);

    rustix::process::kill_process(Pid::from_child(&terminal.child), Signal::INT).unwrap();
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0));
    assert!(text.ends_with("\x1b[?7h\x1b[?25h\x1b[?1049l"), "{:?}", &text[text.len().saturating_sub(200)..]);
    assert!(is_empty(folder.path()));
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}
