//! Text from outside that wants to be more than text, and what is not for everybody's eyes.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use taffrail_testkit::server::Server;
use taffrail_testkit::terminal::Terminal;
use unicode_width::UnicodeWidthStr;

use super::bad_clusters::kubeconfig;
use super::served::Served;
use super::{NOW, clean, command, golden_app, taffrail, verbs};

/// Moves the cursor, sets the title, hides, turns the order around, ends lines, is not seen.
const EVIL: &str = "x\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}5n\r\u{202e}y\u{2028}z\u{200b}\u{e0041}\u{1b}[8m";

fn declared(kind: &str, version: &str, name: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": version, "kind": kind,
        "metadata": {"name": name, "namespace": "flux-system", "generation": 1, "uid": name}});
    for (key, value) in more.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

/// A dump in which everything is hostile that a server could make up.
fn dump() -> (tempfile::TempDir, String) {
    let message = format!("{EVIL}\nerror: all is well\n\u{1b}[31mred");
    let ready = json!([{"type": "Ready", "status": "False", "reason": EVIL, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}]);
    let name = format!("web{EVIL}");
    let items = [
        declared(
            "Kustomization",
            "kustomize.toolkit.fluxcd.io/v1",
            &name,
            json!({"spec": {"path": EVIL, "sourceRef": {"kind": "GitRepository", "name": &name}},
                "status": {"conditions": ready, "observedGeneration": 1, "lastAppliedRevision": EVIL,
                    "inventory": {"entries": [{"id": "shop_web__Service", "v": "v1"}]}}}),
        ),
        declared(
            "GitRepository",
            "source.toolkit.fluxcd.io/v1",
            &name,
            json!({"spec": {"url": format!("https://bot:s3cret@git.example/{EVIL}")},
                "status": {"conditions": ready, "observedGeneration": 1}}),
        ),
        declared(
            "Deployment",
            "apps/v1",
            &name,
            json!({"spec": {"replicas": 1}, "status": {"conditions": ready}}),
        ),
        declared(
            "Event",
            "v1",
            &name,
            json!({"type": "Warning", "reason": EVIL, "message": message, "count": 3,
            "lastTimestamp": "2026-01-01T00:00:00Z",
            "involvedObject": {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "namespace": "flux-system", "name": &name, "uid": &name}}),
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    fs::write(&file, list.to_string()).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

/// Returns a text without colours, and asserts that a terminal obeys nothing else in it.
fn seen(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let plain = anstream::adapter::strip_str(&text).to_string();
    let colours = text.matches("\x1b[").count();
    assert_eq!(text.matches('\x1b').count(), colours, "{text:?}");
    assert!(!text.contains("\x1b[2J") && !text.contains("\x1b[8m"), "{text:?}");
    let bad = plain.chars().find(|it| *it != '\n' && taffrail_status::is_unseen(*it));
    assert_eq!(bad, None, "{plain:?}");
    plain
}

#[test]
fn no_view_lets_text_from_outside_act_on_the_terminal() {
    let (_folder, file) = dump();
    let name = format!("web{EVIL}");
    for line in [
        &["get", "apps"][..],
        &["get", "apps", "-o", "wide"],
        &["get", "apps", "-o", "name"],
        &["get", "apps", "-o", "json"],
        &["get", "apps", "-o", "yaml"],
        &["get", "resources"],
        &["get", "resources", "-o", "name"],
        &["get", "clusters"],
        &["app", &name],
        &["app", "none"],
        &["tree", &name],
        &["tree", &name, "-o", "dot"],
        &["explain", &name],
        &["explain"],
        &["trust"],
        &["trust", "-o", "name"],
        &["events"],
        &["suspend", &name, "--dry-run=client"],
    ] {
        let mut asked = command(&[line, &["--from", &file, "--no-pager"]].concat());
        asked.env("NO_COLOR", "");
        let (text, _) = Terminal::start(asked, 120, 40).unwrap().end();
        let plain = seen(&text);
        assert!(!text.is_empty(), "{line:?}");
        // What is forged would begin a line.
        let forged = plain.lines().any(|line| line.starts_with("error: all is well"));
        assert!(!forged, "{line:?}: {plain}");
    }
    for line in [&["status"][..], &["status", "-o", "name"], &["status", "-o", "json"]] {
        let asked = command(&[line, &["-f", &file, "--no-pager"]].concat());
        let (text, _) = Terminal::start(asked, 120, 40).unwrap().end();
        seen(&text);
    }
}

#[test]
fn names_for_programs_are_plain_or_left_out() {
    let (_folder, file) = dump();
    let answer = taffrail(&["get", "apps", "--from", &file, "-o", "name"], "");
    assert_eq!(answer.stdout, "");
    assert!(answer.stderr.contains("was left out"), "{:?}", answer.stderr);
    seen(&answer.stderr);
}

#[test]
fn passwords_in_the_addresses_of_sources_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    let argo = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "api", "namespace": "argocd", "uid": "a"},
        "spec": {"source": {"repoURL": "https://s3cret@git.example/api.git", "path": "."},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "api"}},
        "status": {"health": {"status": "Healthy"}, "sync": {"status": "Synced"}}});
    let source = declared(
        "GitRepository",
        "source.toolkit.fluxcd.io/v1",
        "shop",
        json!({"spec": {"url": "https://bot:s3cret@git.example/shop.git"}}),
    );
    let flux = declared(
        "Kustomization",
        "kustomize.toolkit.fluxcd.io/v1",
        "shop",
        json!({"spec": {"sourceRef": {"kind": "GitRepository", "name": "shop"}}}),
    );
    fs::write(&file, json!({"kind": "List", "apiVersion": "v1", "items": [argo, source, flux]}).to_string())
        .unwrap();
    let file = file.to_str().unwrap();
    let mut shown = 0;
    for line in [
        &["get", "apps", "-o", "json"][..],
        &["get", "apps", "-o", "wide"],
        &["get", "apps", "--columns", "name,source"],
        &["app", "api"],
        &["app", "shop", "-o", "json"],
        &["app", "shop"],
        &["explain", "shop"],
        &["explain", "api", "-o", "json"],
    ] {
        let answer = taffrail(&[line, &["--from", file]].concat(), "");
        assert!(
            !answer.stdout.contains("s3cret") && !answer.stderr.contains("s3cret"),
            "{line:?}: {}",
            answer.stdout
        );
        shown += answer.stdout.matches("git.example").count();
    }
    assert!(shown >= 4, "{shown}");
}

#[test]
fn tables_never_exceed_the_screen() {
    for case in ["flux-in-motion", "helm-secret-damaged"] {
        let from = golden_app(case);
        let (_folder, evil) = dump();
        let columns = "cluster,namespace,name,delivery,health,sync,revision,source,message";
        for screen in [40, 80, 120] {
            for line in [
                &["get", "apps"][..],
                &["get", "apps", "--columns", columns],
                &["get", "apps", "-o", "wide"],
                &["get", "apps", "-o", "wide", "--no-headers"],
                &["get", "resources"],
                &["get", "resources", "-o", "wide"],
                &["get", "clusters"],
                &["get", "clusters", "-o", "wide"],
                &["trust", "-o", "wide"],
                &["rules", "list", "-o", "wide"],
                &["status", "deploy", "-A", "-o", "wide"],
                &["events"],
                &["tree", "web"],
            ] {
                for source in [&from, &evil] {
                    let of_dump = ["--from", source, "--now", NOW];
                    let of_dump = if line[0] == "rules" { &[][..] } else { &of_dump };
                    let mut asked = command(&[line, of_dump].concat());
                    asked.env("COLUMNS", screen.to_string());
                    let answer = super::run(asked, b"");
                    for line in answer.stdout.lines() {
                        assert!(line.width() <= screen, "{screen}: {line}\n{}", answer.stdout);
                    }
                }
            }
        }
    }
}

/// Two clusters whose apps of Flux have text in them that wants to be more.
fn served() -> Served {
    let served = verbs::served(&["one", "two"]);
    for cluster in &served.clusters {
        let message = format!("{EVIL}\nerror: all is well\n\u{1b}[31mred");
        let mut shop = verbs::kustomization(&format!("web{EVIL}"));
        shop["metadata"]["annotations"] = json!({"reconcile.fluxcd.io/requestedAt": EVIL});
        shop["status"]["conditions"] =
            json!([{"type": "Ready", "status": "False", "reason": "BuildFailed", "message": message}]);
        cluster.apply(shop).unwrap();
    }
    served
}

/// Asks all clusters on a terminal.
fn on_terminal(served: &Served, arguments: &[&str]) -> Terminal {
    Terminal::start(command(&served.all(arguments)), 200, 50).unwrap()
}

#[test]
fn no_text_from_a_server_acts_on_the_terminal_in_a_question_or_a_plan() {
    let served = served();
    let before: Vec<u64> = served.clusters.iter().map(taffrail_sim::Cluster::resource_version).collect();
    let mut asked = on_terminal(&served, &["suspend", "--all", "--request-timeout", "60s"]);
    asked.wait_for("Continue? [y/N] ");
    asked.type_in("n\n");
    let (text, code) = asked.end();
    let plain = told(&text);
    assert_eq!(code, Some(2), "{plain}");
    let (shown, _) = plain.split_once("this would").unwrap_or_else(|| panic!("{plain}"));
    assert!(shown.contains("+   suspend: true"), "the change stands above the question: {plain}");
    let name = "flux-kustomization/flux-system/webx\u{fffd}[2J";
    assert!(plain.contains("this would suspend 3 apps: ") && plain.contains(name), "{plain}");
    let after: Vec<u64> = served.clusters.iter().map(taffrail_sim::Cluster::resource_version).collect();
    assert_eq!(before, after, "nothing was written");

    // The value that is replaced is shown.
    let name = format!("web{EVIL}");
    let words = ["reconcile", &name, "--wait=false", "--request-timeout", "60s"];
    let mut asked = on_terminal(&served, &words);
    asked.wait_for("Continue? [y/N] ");
    asked.type_in("y\n");
    let (text, _) = asked.end();
    let plain = told(&text);
    assert!(plain.contains("-     reconcile.fluxcd.io/requestedAt: ") && plain.contains("+     "), "{plain}");
    assert_eq!(
        plain.matches("-     reconcile.fluxcd.io/requestedAt: ").count(),
        served.clusters.len(),
        "each is shown once: {plain}"
    );
    let (text, code) = on_terminal(&served, &["suspend", &name, "--dry-run"]).end();
    let plain = told(&text);
    assert_eq!(code, Some(0), "{plain}");
    assert!(plain.contains("+   suspend: true"), "{plain}");
}

#[test]
fn no_text_from_a_server_acts_on_the_terminal_while_it_is_waited_for_dumped_or_listed() {
    let served = served();
    let mut web = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "flux-system", "name": "web", "annotations": {"note": EVIL}}});
    web["data"] = json!({ "note": EVIL });
    served.clusters[0].apply(web).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("dump").to_str().unwrap().to_owned();
    let name = format!("web{EVIL}");
    let app = format!("app/{name}");
    let object = format!("kustomization/{name}");
    let once = ["--request-timeout", "60s"];
    for words in [
        &["wait", &app, "--timeout", "3s"][..],
        &["wait", &app, "--timeout", "3s", "-o", "jsonl"],
        &["wait", &object, "-n", "flux-system", "--timeout", "3s"],
        &["wait", "kustomization", "-A", "--timeout", "3s"],
        &["dump", "-o", &into, "--timeout", "60s"],
        &["actions", &object, "-n", "flux-system"],
        &["logs", &name],
        &["overview", "--once"],
    ] {
        let (text, code) = on_terminal(&served, &[words, &once].concat()).end();
        let plain = told(&text);
        assert!(!plain.trim().is_empty() || words[0] == "dump" && code == Some(0), "{words:?}: {plain}");
        let forged = plain.lines().any(|line| line.starts_with("error: all is well"));
        assert!(!forged, "{words:?}: {plain}");
    }
}

#[test]
fn no_text_from_a_server_acts_on_the_terminal_in_the_frames_of_a_watch() {
    let served = served();
    for words in [&["get", "apps"][..], &["get", "apps", "-o", "wide"], &["get", "clusters"], &["explain"]] {
        let mut asked =
            on_terminal(&served, &[words, &["-w", "--timeout", "60s", "--request-timeout", "0"]].concat());
        asked.wait_for("x\u{fffd}[2J");
        // Another frame.
        let mut shop = verbs::kustomization("shop");
        let message = format!("later {EVIL}");
        shop["status"]["conditions"] =
            json!([{"type": "Ready", "status": "False", "reason": "Again", "message": message}]);
        served.clusters[0].apply(shop).unwrap();
        asked.wait_for("later");
        asked.send(Signal::INT);
        let (text, code) = asked.end();
        assert_eq!(code, Some(130));
        told(&text);
        served.clusters[0].apply(verbs::kustomization("shop")).unwrap();
    }
}

/// Returns the output on a terminal without the sequences that draw frames and without the line about clusters that are
/// awaited.
fn told(text: &str) -> String {
    let mut text = text.to_owned();
    for ours in [
        "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l\u{1b}[2J",
        "\u{1b}[0m\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l",
        "\u{1b}[?2026h",
        "\u{1b}[?2026l",
        "\u{1b}[0m\u{1b}[2J",
        "\r\u{1b}[K",
    ] {
        text = text.replace(ours, "");
    }
    for row in 1..=50 {
        text = text.replace(&format!("\u{1b}[{row};1H\u{1b}[0m\u{1b}[K"), "\n");
    }
    seen(&text)
}

#[test]
fn a_server_over_plain_http_gets_no_credentials_and_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, kubeconfig(&[("a", "http://0.0.0.0:1")])).unwrap();
    let answer = taffrail(&["get", "apps", "--kubeconfig", file.to_str().unwrap()], "");
    assert!(
        answer.stderr.contains("warning: context \"a\": its server is reached over plain http"),
        "{}",
        answer.stderr
    );
    fs::write(&file, kubeconfig(&[("a", "http://127.0.0.1:1")])).unwrap();
    let answer = taffrail(&["get", "apps", "--kubeconfig", file.to_str().unwrap()], "");
    assert!(!answer.stderr.contains("plain http"), "{}", answer.stderr);
}

#[test]
fn a_plugin_does_not_outlive_a_process_that_is_ended() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let folder = tempfile::tempdir().unwrap();
        let (file, pids) = (folder.path().join("config"), folder.path().join("pids"));
        let script = format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 600", pids.display());
        let plugin =
            json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script]});
        let hanging = Server::hanging();
        let text =
            kubeconfig(&[("a", &hanging.url())]).replace("token: secret-token", &format!("exec: {plugin}"));
        fs::write(&file, text).unwrap();
        let mut asked = command(&["get", "apps", "--timeout", "60s", "--kubeconfig", file.to_str().unwrap()]);
        clean(&mut asked);
        let mut child =
            asked.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let plugin = loop {
            if let Ok(pid) = fs::read_to_string(&pids) {
                break pid.trim().to_owned();
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "no plugin");
            std::thread::sleep(Duration::from_millis(10));
        };
        rustix::process::kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + signal.as_raw()));
        let alive = || {
            let state = fs::read_to_string(format!("/proc/{plugin}/stat")).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z ")
        };
        let begun = Instant::now();
        while alive() {
            assert!(begun.elapsed() < Duration::from_secs(10), "the plugin goes on after {signal:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
