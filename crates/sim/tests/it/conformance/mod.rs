//! Conformance of the API server: the same cases for the simulated one and for the real one.
//!
//! Each case names the behaviour that it checks, and fails on a simulated server with that behaviour switched off.

mod access;
mod applies;
mod crds;
mod deletion;
mod discovery;
mod lists;
mod managers;
mod patches;
mod representations;
mod selectors;
mod streams;
mod subresources;
mod suites;
mod watches;
mod workloads;
mod writes;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use taffrail_sim::{Behaviour, Fleet, FleetBuilder};
use taffrail_testkit::kube::{ControlPlane, Options, Programs};

use crate::api::Api;

/// A case of the conformance suite: a function that checks one behaviour of an API server.
pub(crate) struct Case {
    group: &'static str,
    name: &'static str,
    behaviour: Behaviour,
    run: for<'a> fn(&'a Api) -> BoxFuture<'a, Result<()>>,
}

/// Lists the cases of a module: the behaviour, and the function that checks it.
macro_rules! cases {
    ($group:literal: $($behaviour:ident $name:ident,)*) => {
        pub(super) const CASES: &[super::Case] = &[$(super::Case {
            group: $group,
            name: stringify!($name),
            behaviour: taffrail_sim::Behaviour::$behaviour,
            run: |api| Box::pin($name(api)),
        }),*];
    };
}
use cases;

fn all() -> Vec<&'static Case> {
    let groups = [
        discovery::CASES,
        lists::CASES,
        watches::CASES,
        streams::CASES,
        representations::CASES,
        writes::CASES,
        managers::CASES,
        applies::CASES,
        patches::CASES,
        deletion::CASES,
        subresources::CASES,
        selectors::CASES,
        crds::CASES,
        access::CASES,
        workloads::CASES,
        suites::CASES,
    ];
    groups.into_iter().flatten().collect()
}

fn builder() -> FleetBuilder {
    Fleet::builder().seed(1).nodes(1).managers(true)
}

/// Returns a simulated server, and the handle that keeps it alive.
async fn sim(builder: FleetBuilder) -> (Api, impl Sized) {
    let fleet = builder.start().await.unwrap();
    let cluster = fleet.cluster("conformance").await.unwrap();
    let reader = cluster.add_user("reader", &["readers"]);
    let api = Api::new(&cluster.url(), fleet.authority(), &cluster.admin().token, &reader.token);
    (api, (fleet, cluster))
}

async fn run(case: &Case, api: &Api) -> Result<()> {
    let done = tokio::time::timeout(api.patience * 2, (case.run)(api)).await;
    done.context("the case does not end")
        .and_then(|done| done)
        .with_context(|| format!("{}/{}", case.group, case.name))
}

/// Runs the cases whose names contain the variable `CASE` (all if it is unset) on one server, `side_by_side` at a time,
/// and returns the errors of those that fail.
async fn run_all(api: &Api, side_by_side: usize) -> Vec<String> {
    let filter = std::env::var("CASE").unwrap_or_default();
    let cases = all().into_iter().filter(|case| case.name.contains(&filter));
    let results: Vec<Option<String>> = stream::iter(cases)
        .map(|case| async move { run(case, api).await.err().map(|error| format!("{error:#}")) })
        .buffer_unordered(side_by_side)
        .collect()
        .await;
    results.into_iter().flatten().collect()
}

fn told(server: &str, failed: &[String]) {
    // Written past the test runner's capture: the number of cases is the result.
    let passed = all().len() - failed.len();
    let _ = writeln!(std::io::stderr(), "conformance: {passed} of {} cases hold on {server}", all().len());
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_simulated_server_conforms() {
    let (api, _alive) = sim(builder()).await;
    let failed = run_all(&api, 8).await;
    told("the simulated API server", &failed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_server_conforms() {
    if let Some(why) = Programs::unavailable().unwrap() {
        let _ = writeln!(std::io::stderr(), "the_real_server_conforms: skipped: {why}");
        return;
    }
    let name = format!("sim-{}", std::process::id());
    let options = Options { name, nodes: 1, flux_crds: false, ..Options::default() };
    let plane = tokio::task::spawn_blocking(move || ControlPlane::start(&options)).await.unwrap();
    let plane = plane.unwrap_or_else(|error| panic!("{error:#}"));
    let member = &plane.members()[0];
    let tokens = std::fs::read_to_string(member.folder.join("tokens.csv")).unwrap();
    let token = |user: &str| {
        let line = tokens.lines().find(|line| line.split(',').nth(1) == Some(user)).unwrap();
        line.split(',').next().unwrap().to_owned()
    };
    let authority = std::fs::read_to_string(member.folder.join("ca.crt")).unwrap();
    let api = Api::new(&member.server, &authority, &token("admin"), &token("reader"));
    let failed = run_all(&api, 8).await;
    told("kube-apiserver", &failed);
    tokio::task::spawn_blocking(move || drop(plane)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_case_fails_without_its_behaviour() {
    let filter = std::env::var("CASE").unwrap_or_default();
    let cases = all().into_iter().filter(|case| case.name.contains(&filter));
    let passed: Vec<Option<String>> = stream::iter(cases)
        .map(|case| async move {
            let (mut api, _alive) = sim(builder().without(case.behaviour)).await;
            // A behaviour that is switched off never shows, so a long wait is useless.
            api.patience = Duration::from_secs(4);
            let still = run(case, &api).await.is_ok();
            still.then(|| format!("{}/{} passes without {:?}", case.group, case.name, case.behaviour))
        })
        .buffer_unordered(12)
        .collect()
        .await;
    let passed: Vec<String> = passed.into_iter().flatten().collect();
    let _ = writeln!(
        std::io::stderr(),
        "conformance: {} of {} cases fail when switched off",
        all().len() - passed.len(),
        all().len()
    );
    assert!(passed.is_empty(), "{}", passed.join("\n"));
}

#[test]
fn there_is_a_case_for_every_behaviour() {
    let cases = all();
    let covered: BTreeSet<Behaviour> = cases.iter().map(|case| case.behaviour).collect();
    let missing: Vec<_> = Behaviour::ALL.iter().filter(|behaviour| !covered.contains(behaviour)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let names: BTreeSet<_> = cases.iter().map(|case| (case.group, case.name)).collect();
    assert_eq!(names.len(), cases.len(), "two cases have one name");
    assert!(cases.len() >= 120, "{}", cases.len());
}
