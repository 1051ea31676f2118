//! `--timeout` and `--request-timeout`: which of them ends a command, and what it says then.

use std::time::{Duration, Instant};

use serde_json::json;
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::server::{Reply, Server, core_discovery};

use super::actions::{served, web};
use super::bad_clusters::kubeconfig;
use super::{Answer, taffrail};

/// A server that says which kinds it has, and answers nothing else.
fn silent() -> Server {
    Server::start(|request| core_discovery(request, &[("configmaps", "ConfigMap")]).unwrap_or(Reply::Silence))
}

/// Asks a server, and measures the time to its answer.
fn ask(server: &Server, arguments: &[&str]) -> (Answer, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    std::fs::write(&file, kubeconfig(&[("one", &server.url())])).unwrap();
    let begun = Instant::now();
    let answer = taffrail(&[arguments, &["--kubeconfig", file.to_str().unwrap()]].concat(), "");
    (answer, begun.elapsed())
}

/// The views that read clusters once.
const VIEWS: [&[&str]; 8] = [
    &["get", "apps"],
    &["get", "resources"],
    &["explain"],
    &["app", "shop"],
    &["tree", "shop"],
    &["events"],
    &["trust"],
    &["status", "configmaps"],
];

const LATER: &str = "--timeout is how long each cluster may take in this release, and how long the command may take in later ones";

#[test]
fn request_timeout_of_a_view_ends_each_request_long_before_timeout() {
    let server = Server::hanging();
    for view in VIEWS {
        let limits = ["--request-timeout", "300ms", "--timeout", "60s"];
        let (answer, took) = ask(&server, &[view, &limits].concat());
        assert_eq!(answer.code, 3, "{view:?}: {}", answer.stderr);
        assert!(took < Duration::from_secs(30), "{view:?}: {took:?}");
        let said = "no complete answer within 0.3 s, the limit of one request";
        let all = answer.stdout + &answer.stderr;
        assert!(all.contains(said), "{view:?}: {all}");
        assert!(!all.contains("warning: --timeout"), "{view:?}: {all}");
    }
}

#[test]
fn timeout_beside_request_timeout_is_the_time_of_the_whole_answer() {
    let server = Server::hanging();
    for view in VIEWS {
        let (answer, took) = ask(&server, &[view, &["--timeout", "4s", "--request-timeout", "0"]].concat());
        assert_eq!(answer.code, 3, "{view:?}: {}", answer.stderr);
        assert!(took < Duration::from_secs(5), "{view:?}: {took:?}");
        // Five eighths are for what is asked first.
        let all = answer.stdout + &answer.stderr;
        assert!(all.contains("within 2.5 s: gave up") && !all.contains("warning: "), "{view:?}: {all}");
    }
}

#[test]
fn timeout_alone_stays_the_time_of_each_cluster_and_warns() {
    let server = Server::hanging();
    let (answer, _) = ask(&server, &["get", "apps", "--timeout", "500ms"]);
    assert_eq!(answer.code, 3);
    assert!(answer.stderr.contains("within 0.5 s: gave up"), "{}", answer.stderr);
    let warning = answer.stderr.lines().take(2).collect::<Vec<_>>();
    let hint = " hint: with --request-timeout, such as --request-timeout 0 for no limit, it has the later meaning now";
    assert_eq!(warning, [format!("warning: {LATER}"), hint.to_owned()]);
    // Nothing was given: nothing changes.
    let (answer, took) = ask(&server, &["get", "apps"]);
    assert_eq!((answer.code, answer.stderr.contains("warning")), (3, false), "{}", answer.stderr);
    assert!(answer.stderr.contains("within 5.0 s"), "{}", answer.stderr);
    assert!(took < Duration::from_secs(9), "{took:?}");
    // What is read from files has no clusters.
    let file = taffrail(&["status", "-f", "-", "--timeout", "5s"], "");
    assert!(!file.stderr.contains("warning: --timeout"), "{}", file.stderr);
}

#[test]
fn request_timeout_of_a_verb_stays_the_time_of_each_cluster_and_warns() {
    let server = silent();
    let (answer, took) = ask(&server, &["reconcile", "shop", "--request-timeout", "500ms"]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    let said = "--request-timeout is how long each cluster may take to answer first in this release";
    assert!(answer.stderr.starts_with(&format!("warning: {said}")), "{}", answer.stderr);
    assert!(took < Duration::from_secs(20), "{took:?}");
    // No limit of one request, but one of all.
    let (answer, took) = ask(&server, &["suspend", "shop", "--request-timeout", "0", "--timeout", "1s"]);
    assert_eq!((answer.code, answer.stderr.contains("warning")), (3, false), "{}", answer.stderr);
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn wait_and_dump_have_both_limits() {
    let server = silent();
    let wait = ["wait", "configmap/a", "--timeout", "2s", "--request-timeout", "300ms", "-o", "lines"];
    let (answer, took) = ask(&server, &wait);
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(20), "{took:?}");

    let (answer, _) = ask(&server, &["dump", "--request-timeout", "300ms"]);
    assert_eq!(answer.code, 3);
    assert!(answer.stderr.contains("0.3 s, the limit of one request"), "{}", answer.stderr);
    let (answer, took) = ask(&server, &["dump", "--request-timeout", "0", "--timeout", "1s"]);
    assert_eq!(answer.code, 3);
    assert!(answer.stderr.contains("within 1.0 s: gave up"), "{}", answer.stderr);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn every_command_that_reads_clusters_has_both_times() {
    for command in [
        &["get"][..],
        &["explain"],
        &["app"],
        &["tree"],
        &["events"],
        &["trust"],
        &["status"],
        &["wait"],
        &["reconcile"],
        &["suspend"],
        &["resume"],
        &["actions"],
        &["action"],
        &["dump"],
        &["rules", "why"],
    ] {
        let help = taffrail(&[command, &["--help"]].concat(), "").stdout;
        for meaning in ["Limit the time of the command", "Limit the time of each request to a cluster"] {
            assert!(help.contains(meaning), "{command:?}: {meaning}\n{help}");
        }
    }
}

#[test]
fn late_cluster_is_a_timeout_beside_the_results_of_others() {
    let served = served(&["one", "two"]);
    served.clusters[0].fault(Fault::new(Trouble::Hang).verb("patch"));
    let ask = |more: &[&str]| {
        let action = ["action", "scale", "deploy/web", "-n", "shop", "--yes", "--timeout", "4s"];
        taffrail(&served.all(&[&action[..], &["--request-timeout", "0"], more].concat()), "")
    };
    let begun = Instant::now();
    let answer = ask(&["-p", "replicas=5", "-o", "json"]);
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let told = answer.json();
    let results = told["items"].as_array().unwrap().iter().map(|item| (&item["cluster"], &item["result"]));
    let (one, two) = (json!("one"), json!("two"));
    assert_eq!(results.collect::<Vec<_>>(), [(&one, &json!("Timeout")), (&two, &json!("Done"))], "{told}");
    let late = &told["items"][0];
    let message = late["message"].as_str().unwrap();
    assert!(message.contains("the change may or may not have been made"), "{late}");
    assert_eq!(late["hint"], "check the object before trying again");
    assert_eq!(web(&served.clusters[1])["spec"]["replicas"], 5);

    let answer = ask(&["-p", "replicas=7"]);
    assert!(answer.stdout.contains("two: scale: changed Deployment shop/web"), "{}", answer.stdout);
    assert!(answer.stderr.contains("one: cannot scale Deployment shop/web: "), "{}", answer.stderr);
}
