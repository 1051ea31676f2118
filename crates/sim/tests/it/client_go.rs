//! Unchanged programs with client-go, against a simulated cluster. The checks are in `bench/peers/clientgo`, and also
//! run against a real control plane to prove that they test real behaviour.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Output;

use taffrail_sim::Fleet;
use taffrail_testkit::kube::{ControlPlane, Options, Programs};
use taffrail_testkit::peers;
use tokio::process::Command;

/// Builds the program `clientgo`, unless it is cached, and returns its path; `None`, after a message, if it cannot be
/// built.
async fn program(test: &str) -> Option<PathBuf> {
    if let Some(why) = peers::unavailable("clientgo").unwrap() {
        let _ = writeln!(std::io::stderr(), "{test}: skipped: {why}");
        return None;
    }
    let built = tokio::task::spawn_blocking(|| peers::build("clientgo")).await.unwrap();
    Some(built.unwrap_or_else(|error| panic!("{error:#}")))
}

/// Asserts that every check passes, except those that are reported as unsupported and listed in `known`; returns these.
fn all_but<'a>(server: &str, output: &Output, known: &[&'a str]) -> Vec<&'a str> {
    let text = String::from_utf8_lossy(&output.stdout);
    let of = |verdict: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix(verdict)).map(str::to_owned).collect()
    };
    let (ok, failed, not) = (of("ok "), of("FAIL "), of("not supported: "));
    let _ = writeln!(
        std::io::stderr(),
        "client-go: {} checks hold on {server}, {} ask for what it does not do",
        ok.len(),
        not.len()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(output.status.success(), "{}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    let names: Vec<&str> = not
        .iter()
        .filter_map(|line| known.iter().find(|name| line.starts_with(&format!("{name}: "))).copied())
        .collect();
    assert_eq!(names.len(), not.len(), "{}", not.join("\n"));
    assert!(ok.len() >= 80, "only {} checks ran:\n{text}", ok.len());
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_works_unchanged() {
    let Some(program) = program("client_go_works_unchanged").await else { return };
    let fleet = Fleet::builder().seed(5).nodes(2).start().await.unwrap();
    let cluster = fleet.cluster("client-go").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig()).unwrap();
    let output = Command::new(&program).arg(&kubeconfig).kill_on_drop(true).output().await.unwrap();
    let unsupported = ["write: answers in Protobuf", "access: a token for a ServiceAccount"];
    // An outdated list is as wrong as an incomplete one.
    assert_eq!(all_but("the simulated API server", &output, &unsupported), unsupported);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_checks_pass_on_a_real_control_plane() {
    let test = "client_go_checks_pass_on_a_real_control_plane";
    if let Some(why) = Programs::unavailable().unwrap() {
        let _ = writeln!(std::io::stderr(), "{test}: skipped: {why}");
        return;
    }
    let Some(program) = program(test).await else { return };
    let name = format!("sim-go-{}", std::process::id());
    let options = Options { name, nodes: 2, flux_crds: false, ..Options::default() };
    let plane = tokio::task::spawn_blocking(move || ControlPlane::start(&options)).await.unwrap();
    let plane = plane.unwrap_or_else(|error| panic!("{error:#}"));
    let output = Command::new(&program).arg(plane.kubeconfig()).kill_on_drop(true).output().await.unwrap();
    tokio::task::spawn_blocking(move || drop(plane)).await.unwrap();
    // It keeps history for five minutes, has no provisioner of volumes, and its nodes do not run containers.
    let known = [
        "list: an expired page",
        "watch: from a version that is too old",
        "informer: comes back after its version expired",
        "rollout: StatefulSet",
        "logs",
    ];
    all_but("kube-apiserver", &output, &known);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_table_matches_kubernetes() {
    let Some(program) = program("message_table_matches_kubernetes").await else { return };
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../object/src");
    let output = Command::new(&program).arg("types").arg(data.join("kinds.tsv")).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let kept = std::fs::read(data.join("protobuf/messages.tsv")).unwrap();
    assert!(
        kept == output.stdout,
        "crates/object/src/protobuf/messages.tsv is not what `clientgo types` writes today"
    );
}
