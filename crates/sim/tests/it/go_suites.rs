//! A drawn sample of the Go suites of server-side apply (`cargo xtask conformance apply` and `flux` run all of them), on a
//! real API server and on the simulated one.

use std::io::Write as _;
use std::path::Path;

use taffrail_sim::Fleet;
use taffrail_testkit::kube::{ControlPlane, Programs};
use taffrail_testkit::peers;
use taffrail_testkit::suites::{Built, Server, Suite};

/// The number of tests of each suite in a sample.
const SAMPLE: usize = 8;

/// Tests that take longer than all others of a sample: they wait for timeouts, write thousands of keys, or go through all
/// kinds of the server.
const LONG: [&str; 7] = [
    "TestApplyResetFields",
    "TestApplyStatus",
    "TestFieldsWipingConsistency",
    "TestPatchVeryLargeObject",
    "TestPatchVeryLargeObjectCBORApply",
    "TestWaitForSet_failFast",
    "TestUpdateVeryLargeObject",
];

/// Returns the reason the suites cannot run; fails in place of that with `CI=true`, where nobody reads it.
fn missing() -> Option<String> {
    let why = match (peers::can_build(), Programs::unavailable().unwrap()) {
        (false, _) => "`go`, which builds the suite, is not installed".to_owned(),
        (true, why) => why?,
    };
    assert!(std::env::var("CI").is_err(), "cannot run the suite: {why}");
    Some(why)
}

fn drawn(built: &Built, suite: Suite) -> Vec<String> {
    let wanted = std::env::var("TAFFRAIL_SUITE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = wanted.unwrap_or_else(|| fastrand::u64(..));
    let _ = writeln!(std::io::stderr(), "{}: sample of TAFFRAIL_SUITE_SEED={seed}", suite.name());
    let mut random = fastrand::Rng::with_seed(seed);
    let mut tests: Vec<String> =
        built.tests().iter().filter(|test| !LONG.contains(&test.as_str())).cloned().collect();
    random.shuffle(&mut tests);
    tests.truncate(SAMPLE);
    tests
}

fn check(built: &Built, server: Server, kubeconfig: &Path, tests: &[String]) {
    let report = built.run(server, kubeconfig, Some(tests)).unwrap_or_else(|error| panic!("{error:#}"));
    let _ = write!(std::io::stderr(), "{}", report.table());
    let faults = report.faults();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

async fn sample(suite: Suite) {
    if let Some(why) = missing() {
        let _ = writeln!(std::io::stderr(), "the suite {} is skipped: {why}", suite.name());
        return;
    }
    let fleet = Fleet::builder().controllers(false).managers(true).start().await.unwrap();
    let cluster = fleet.cluster("suite").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let simulated = folder.path().join("kubeconfig");
    std::fs::write(&simulated, cluster.kubeconfig()).unwrap();
    let checks = move || {
        let built = suite.build().unwrap_or_else(|error| panic!("{error:#}"));
        let tests = drawn(&built, suite);
        let name = format!("suite-{}-{}", suite.name(), std::process::id());
        let plane =
            ControlPlane::start(&Suite::control_plane(name)).unwrap_or_else(|error| panic!("{error:#}"));
        check(&built, Server::Real, plane.kubeconfig(), &tests);
        check(&built, Server::Sim, &simulated, &tests);
    };
    tokio::task::spawn_blocking(checks).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubernetes_tests_of_apply_pass() {
    sample(Suite::Apply).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flux_tests_of_apply_pass() {
    sample(Suite::Flux).await;
}
