//! Clusters that cannot be read: each is a row and a line that say why, and the rest is still shown.

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::json;
use taffrail_testkit::objects::{applications, namespace, with_status_subresource};
use taffrail_testkit::server::{Reply, Server, core_discovery};

use super::{Answer, taffrail};

/// A kubeconfig with a context for each server; the first is the current one.
pub(super) fn kubeconfig(servers: &[(&str, &str)]) -> String {
    let lines = |server: &str| format!("server: \"{server}\"");
    let clusters: Vec<String> = servers.iter().map(|(_, server)| lines(server)).collect();
    let contexts: Vec<_> = servers
        .iter()
        .zip(&clusters)
        .map(|((name, _), lines)| (*name, &**lines, "token: secret-token"))
        .collect();
    taffrail_testkit::kubeconfig(&contexts)
}

fn get(kubeconfig: &str, arguments: &[&str]) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, kubeconfig).unwrap();
    let answer =
        taffrail(&[&["get", "apps", "--kubeconfig", file.to_str().unwrap()], arguments].concat(), "");
    assert!(!answer.stderr.contains("secret-token"), "{}", answer.stderr);
    answer
}

#[test]
fn no_kubeconfig_at_all() {
    let answer = taffrail(&["get", "apps"], "");
    assert_eq!((answer.code, answer.stdout.as_str()), (3, ""));
    assert!(answer.stderr.contains("hint:"), "{}", answer.stderr);
}

#[test]
fn kubeconfigs_that_are_not_right() {
    let good = kubeconfig(&[("a", "http://127.0.0.1:1")]);
    for (text, said) in [
        (String::new(), "empty"),
        ("clusters: [".to_owned(), "line"),
        ("just words".to_owned(), ""),
        (good.replace("cluster: a, user", "cluster: b, user"), "b"),
        (good.replace("server: \"http://127.0.0.1:1\"", "{}"), "server"),
    ] {
        let answer = get(&text, &[]);
        assert_eq!(answer.code, 3, "{text}\n{}", answer.stderr);
        assert!(
            answer.stderr.contains("config") && answer.stderr.contains(said),
            "{text}\n{}",
            answer.stderr
        );
    }
}

#[test]
fn an_unknown_context_is_named_with_those_there_are() {
    let answer = get(&kubeconfig(&[("prod", "http://127.0.0.1:1")]), &["--context", "prd"]);
    assert_eq!(answer.code, 3);
    assert!(answer.stdout.contains("prd"), "{}", answer.stdout);
    assert!(answer.stderr.contains("prd") && answer.stderr.contains("prod"), "{}", answer.stderr);
}

#[test]
fn servers_that_refuse_or_talk_something_else() {
    let html = Server::start(|_| {
        let headers = vec![("content-type", "text/html".to_owned())];
        Reply::Whole(200, headers, b"<html><h1>Please log in</h1></htm".to_vec())
    });
    let unauthorized = Server::start(|_| Reply::status(401, "Unauthorized", "Unauthorized"));
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    for (server, reason, said) in [
        (closed, "ConnectionRefused", "refused"),
        (html.url(), "NotJson", "Please log in"),
        (unauthorized.url(), "Unauthorized", "Unauthorized"),
    ] {
        let answer = get(&kubeconfig(&[("bad", &server)]), &[]);
        assert_eq!(answer.code, 3, "{}", answer.stderr);
        assert!(answer.stdout.contains(reason), "{reason}\n{}", answer.stdout);
        assert!(
            answer.stderr.contains("bad: ") && answer.stderr.contains(said),
            "{reason}\n{}",
            answer.stderr
        );
        let json = get(&kubeconfig(&[("bad", &server)]), &["-o", "json"]).json();
        assert_eq!(json["items"], serde_json::json!([]));
        assert_eq!(json["errors"][0]["reason"], reason);
        assert_eq!(json["errors"][0]["cluster"], "bad");
    }
}

/// A role often allows to read an object by its name, or the objects of one namespace, and not all of a cluster.
#[test]
fn an_object_that_may_be_read_but_not_listed_is_explained() {
    let server = Server::start(|request| {
        if request.path == "/api/v1/namespaces/shop/configmaps/web" {
            let object = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"namespace": "shop", "name": "web"}});
            return Reply::json(200, object.to_string());
        }
        core_discovery(request, &[("configmaps", "ConfigMap")])
            .unwrap_or_else(|| Reply::status(403, "Forbidden", "forbidden"))
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, kubeconfig(&[("prod", &server.url())])).unwrap();
    let told = |object: &str| {
        let flags = ["--kubeconfig", file.to_str().unwrap(), "-n", "shop"];
        taffrail(&[&["explain", object], &flags[..]].concat(), "")
    };
    let answer = told("cm/web");
    assert!(
        answer.stdout.starts_with("ConfigMap shop/web is Ready\n"),
        "{}\n{}",
        answer.stdout,
        answer.stderr
    );
    // The apps that may own it could not be read.
    assert_eq!(answer.code, 3);
    let none = told("cm/none");
    assert!(none.stderr.contains("there is no cm 'none'"), "{}", none.stderr);
}

#[test]
fn servers_that_hang_cost_no_more_than_the_timeout() {
    let hanging = [(); 3].map(|()| Server::hanging());
    let hanging: Vec<(String, String)> =
        hanging.iter().zip(0..).map(|(server, number)| (format!("hangs-{number}"), server.url())).collect();
    let servers: Vec<(&str, &str)> = hanging.iter().map(|(name, server)| (&**name, &**server)).collect();
    let started = Instant::now();
    let answer = get(&kubeconfig(&servers), &["--all-contexts", "--timeout", "500ms"]);
    // Generous, for a machine under load; what it should take is a figure of the benchmarks.
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(answer.code, 3);
    for (name, _) in &servers {
        assert!(
            answer.stdout.lines().any(|line| line.contains(name) && line.contains("Timeout")),
            "{}",
            answer.stdout
        );
    }
}

#[test]
fn an_exec_plugin_that_hangs_or_fails() {
    let with_plugin = |command: &str, argument: &str| {
        let exec = format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: \"{command}\", args: [\"{argument}\"]}}"
        );
        kubeconfig(&[("cloud", "http://127.0.0.1:1")]).replace("token: secret-token", &exec)
    };
    for (command, argument, said) in [
        ("sleep", "60", "Timeout"),
        ("false", "", "ExecPluginFailed"),
        ("no-such-plugin", "", "ExecPluginFailed"),
    ] {
        let answer = get(&with_plugin(command, argument), &["--timeout", "500ms"]);
        assert_eq!(answer.code, 3);
        assert!(answer.stdout.contains(said), "{command}: {}\n{}", answer.stdout, answer.stderr);
    }
}

#[test]
fn explain_reports_unanswering_clusters() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let dark = [("dark", "http://127.0.0.1:1"), ("grey", "http://127.0.0.1:1")];
    fs::write(&file, kubeconfig(&dark)).unwrap();
    let kubeconfig = ["explain", "--kubeconfig", file.to_str().unwrap()];
    let one = taffrail(&[&kubeconfig[..], &["--context", "dark"]].concat(), "");
    assert_eq!(one.code, 3);
    assert!(!one.stderr.contains("No apps found."), "{}", one.stderr);
    let said = "No apps found, but cluster dark could not be read: its objects are unknown.";
    assert!(one.stderr.contains(said), "{}", one.stderr);
    let both = taffrail(&[&kubeconfig[..], &["--all-contexts"]].concat(), "");
    assert!(both.stderr.contains("clusters dark, grey could not be read"), "{}", both.stderr);
}

/// Two contexts: a cluster `hub` whose Application delivers two objects into the cluster `dark`, which does not answer.
fn hub_and_dark() -> (super::served::Served, tempfile::TempDir, String) {
    let served = super::served::Served::start(&["hub"], |_, cluster| {
        cluster.apply(with_status_subresource(applications())).unwrap();
        cluster.apply(namespace("argocd")).unwrap();
        cluster
            .apply(json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"namespace": "argocd", "name": "shop"},
                "spec": {"destination": {"server": "http://127.0.0.1:1"}},
                "status": {"sync": {"status": "Synced", "revision": "c2"}, "health": {"status": "Healthy"},
                    "resources": [{"kind": "ConfigMap", "namespace": "shop", "name": "db", "status": "Synced"},
                        {"kind": "ConfigMap", "namespace": "shop", "name": "web", "status": "Synced"}]}}))
            .unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let dark = folder.path().join("dark");
    fs::write(&dark, kubeconfig(&[("dark", "http://127.0.0.1:1")])).unwrap();
    let both = format!("{}:{}", served.kubeconfig, dark.display());
    (served, folder, both)
}

fn ask_all(kubeconfigs: &str, arguments: &[&str]) -> Answer {
    let mut command = super::command(&[arguments, &["--all-contexts", "--timeout", "30s"]].concat());
    command.env("KUBECONFIG", kubeconfigs);
    super::run(command, b"")
}

/// An answer in JSON about objects of a cluster that does not answer.
pub(super) fn sample() -> Answer {
    let (_served, _folder, both) = hub_and_dark();
    ask_all(&both, &["get", "resources", "-o", "json"])
}

/// The list of clusters in JSON that has a cluster with labels, which does not answer.
pub(super) fn labelled() -> Answer {
    let extension = "user: dark, extensions: [{name: taffrail.dev/labels, extension: {region: eu}}]";
    let kubeconfig = kubeconfig(&[("dark", "http://127.0.0.1:1")]).replace("user: dark", extension);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, kubeconfig).unwrap();
    taffrail(&["get", "clusters", "-o", "json", "--kubeconfig", file.to_str().unwrap()], "")
}

#[test]
fn a_cluster_that_does_not_answer_has_the_labels_of_its_context() {
    assert_eq!(labelled().json()["items"][0]["labels"], json!({"region": "eu"}));
}

#[test]
fn silence_of_a_cluster_precedes_its_apps_problems() {
    let (_served, _folder, both) = hub_and_dark();
    let clusters = ask_all(&both, &["get", "clusters"]).stdout;
    assert!(clusters.contains("   does not answer: cannot connect to http://127.0.0.1:1"), "{clusters}");
    assert!(clusters.contains("; 1 app of the cluster is known from hub"), "{clusters}");
    let apps = ask_all(&both, &["get", "apps"]).stdout;
    assert!(apps.contains("   dark does not answer\n"), "{apps}");
    assert!(!apps.contains("was not observed"), "{apps}");
}

#[test]
fn an_unanswering_cluster_says_once_why_and_what_that_means() {
    let (_served, _folder, both) = hub_and_dark();
    let why = "cannot connect to http://127.0.0.1:1";
    for (arguments, times) in [
        (&["get", "apps"][..], 1),
        (&["get", "resources"], 1),
        (&["app", "shop"], 1),
        (&["tree", "shop"], 0),
        (&["explain"], 1),
        (&["explain", "cm/web", "-n", "shop"], 1),
        (&["status", "cm", "-A"], 0),
    ] {
        let Answer { code, stdout, stderr } = ask_all(&both, arguments);
        assert_eq!(code, 3, "{arguments:?}: {stderr}");
        assert_eq!(stdout.matches(why).count(), times, "{arguments:?}: {stdout}");
        assert_eq!(stderr.matches(why).count(), 1, "{arguments:?}: {stderr}");
        let means =
            "; nothing is known of what it holds, nor since when, and what it alone declares is not listed\n";
        assert!(stderr.contains(means), "{arguments:?}: {stderr}");
        let hint = " hint: check that the server is running";
        assert_eq!(stderr.matches(hint).count(), 1, "{arguments:?}: {stderr}");
    }
    let explained = ask_all(&both, &["explain"]).stdout;
    assert!(explained.contains("\n  nothing is known of its objects\n"), "{explained}");
    let missing = ask_all(&both, &["app", "absent"]);
    assert!(missing.stderr.contains(" hint: check that the server is running"), "{}", missing.stderr);
}

/// The answer about a cluster whose certificate is not verified, and which does not answer.
pub(super) fn unverified(arguments: &[&str]) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let text = kubeconfig(&[("open", "https://127.0.0.1:1")]);
    fs::write(&file, text.replace("    server:", "    insecure-skip-tls-verify: true\n    server:")).unwrap();
    taffrail(&[arguments, &["--kubeconfig", file.to_str().unwrap()]].concat(), "")
}

#[test]
fn a_cluster_that_is_not_verified_is_told_in_the_answer() {
    let why = "its server is not verified (insecure-skip-tls-verify)";
    let row = unverified(&["get", "clusters", "-o", "json"]).json()["items"][0].clone();
    assert_eq!(row["verified"], false, "{row}");
    assert!(row["message"].as_str().unwrap().starts_with(why), "{row}");
    let table = unverified(&["get", "clusters", "--columns", "cluster,message"]).stdout;
    assert!(table.contains(why), "{table}");
    let report = unverified(&["trust", "-o", "json"]).json();
    let found = report["items"].as_array().unwrap().iter().find(|item| item["reason"] == "NotVerified");
    assert!(found.is_some_and(|item| item["message"].as_str().unwrap().starts_with(why)), "{report}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, kubeconfig(&[("closed", "https://127.0.0.1:1")])).unwrap();
    let clusters = ["get", "clusters", "-o", "json", "--kubeconfig", file.to_str().unwrap()];
    let row = taffrail(&clusters, "").json()["items"][0].clone();
    assert_eq!(row.get("verified"), None, "{row}");
}
