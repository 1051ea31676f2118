//! Tests which servers receive credentials, and that exec plugins end with this process.

use std::time::Duration;

use taffrail_cluster::{ApiResource, ListRequest};
use taffrail_testkit::server::{Reply, Request, Server};

use crate::contexts::{LONG, connect, context, kubeconfig};

const TOKEN: &str = "token: s3cret";

fn things() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Thing".to_owned(),
        plural: "things".to_owned(),
        namespaced: true,
    }
}

fn empty(_: &Request) -> Reply {
    Reply::json(200, r#"{"kind":"ThingList","apiVersion":"v1","items":[]}"#)
}

/// Lists things from a server at this host as this user, and returns the `Authorization` header that the server
/// received.
async fn shown(host: &str, user: &str) -> Option<String> {
    let server = Server::start(empty);
    let address = format!("server: http://{host}:{}", server.address().port());
    let cluster = connect(&address, user, LONG).await.unwrap();
    cluster.list(&ListRequest::all(&things())).await.unwrap();
    server.requests()[0].authorization.clone()
}

#[tokio::test]
async fn credentials_go_over_plain_http_to_this_machine_only() {
    assert_eq!(shown("127.0.0.1", TOKEN).await.as_deref(), Some("Bearer s3cret"));
    // It leads here, but it is the address of no loopback.
    assert_eq!(shown("0.0.0.0", TOKEN).await, None);
    assert_eq!(shown("0.0.0.0", "username: a\npassword: b").await, None);
    assert_eq!(shown("0.0.0.0", "as: admin\ntoken: s3cret").await, None);
}

#[cfg(unix)]
#[tokio::test]
async fn no_exec_plugin_runs_for_a_server_over_plain_http_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("ran");
    let script = format!("touch {}; echo '{{\"status\":{{\"token\":\"s3cret\"}}}}'", mark.display());
    let plugin = format!(
        "exec:\n  apiVersion: client.authentication.k8s.io/v1\n  command: sh\n  args: [\"-c\", {}]",
        serde_json::Value::from(script)
    );
    assert_eq!(shown("0.0.0.0", &plugin).await, None);
    assert!(!mark.exists());
    assert_eq!(shown("127.0.0.1", &plugin).await.as_deref(), Some("Bearer s3cret"));
}

#[test]
fn unverified_servers_are_reported() {
    let told = |cluster: &str| context(cluster, TOKEN).warning().map(str::to_owned);
    assert_eq!(told("server: https://api.example"), None);
    assert_eq!(told("server: http://127.0.0.1:8080"), None);
    assert!(told("server: http://api.example").unwrap().contains("no credentials are sent"));
    // Through a proxy it is not this machine that is asked.
    assert!(told("server: http://localhost:1\nproxy-url: http://proxy.example:3128").is_some());
    let unverified = told("server: https://api.example\ninsecure-skip-tls-verify: true").unwrap();
    assert!(unverified.contains("insecure-skip-tls-verify"), "{unverified}");
}

#[test]
fn not_to_verify_and_an_authority_contradict_each_other() {
    let authority = rcgen::generate_simple_self_signed(["api.example".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.crt"), authority.cert.pem()).unwrap();
    let file = folder.path().join("config");
    let cluster =
        "server: https://api.example\ncertificate-authority: ca.crt\ninsecure-skip-tls-verify: true";
    std::fs::write(&file, kubeconfig(cluster, "")).unwrap();
    let config = taffrail_cluster::Kubeconfig::load(Some(&file), None, None).unwrap();
    let error = config.current().unwrap_err().to_string();
    assert!(error.contains("insecure-skip-tls-verify") && error.contains("certificate-authority"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn exec_plugins_end_with_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = format!("echo $$ > {0}.new\nmv {0}.new {0}\nsleep 600", pids.display());
    let plugin = format!(
        "exec:\n  apiVersion: client.authentication.k8s.io/v1\n  command: sh\n  args: [\"-c\", {}]",
        serde_json::Value::from(script)
    );
    let plugins = taffrail_cluster::Plugins::default();
    let context = context("server: http://127.0.0.1:1", &plugin).with_plugins(&plugins);
    let connecting = tokio::spawn(async move {
        let deadline = taffrail_cluster::Deadline::after(Duration::from_secs(60));
        taffrail_cluster::Cluster::connect(&context, deadline).await.map(drop)
    });
    let plugin = tokio::time::timeout(LONG, async {
        loop {
            if let Ok(pid) = std::fs::read_to_string(&pids) {
                return pid.trim().parse::<i32>().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    // As at the end of the process, where nothing is dropped any more.
    plugins.end();
    let ended = tokio::time::timeout(LONG, connecting).await.expect("the plugin goes on").unwrap();
    assert!(ended.is_err());
    let state = std::fs::read_to_string(format!("/proc/{plugin}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}
