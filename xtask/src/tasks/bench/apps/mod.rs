//! Measures the wall time of `taffrail get apps` on real control planes.
//!
//! # How the figures are taken
//!
//! - Whole processes of the release binary: wall time from starting one to its end, its output read by a pipe. CPU time
//!   is what the kernel accounts to the process. Each figure is the median and the greatest of several runs one after
//!   the other.
//! - One real control plane with a Flux-shaped app whose Deployment has rolled out 200 replicas: first straight over
//!   loopback, then through a [`DelayLine`] of 50 ms each way. The time to connect, the requests and the sequential
//!   round trips are what the binary itself says with `-v`, in the same runs.
//! - The delayed way leaves out one thing that a long wire has: opening the TCP connection costs no round trip here.
//!   What is left is one for TLS 1.3 and one for each round of requests, so 100 ms each; the rest is work.
//! - Many clusters at once: API servers that answer, of which all but one run without controllers, and addresses that
//!   accept connections and never answer.
//! - Client, API servers, etcd and controllers share the machine, so a busy machine shows in every figure. That is why
//!   a figure beyond its bar is printed as such and fails nothing; a wrong answer fails.

mod delay;
mod requests;

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::examples::apply_source;
use taffrail_testkit::kube::{ControlPlane, Options};
use taffrail_testkit::kubeconfig;

use self::delay::DelayLine;
use self::requests::Requests;
use super::measure::{cpu_of_children, median};

/// Measure the time of `taffrail get apps` on real control planes.
#[derive(Args)]
pub(crate) struct Apps {
    /// Number of runs for each figure.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Number of clusters that respond while others hang; 0 omits that part.
    #[arg(long, default_value_t = 17, value_parser = clap::value_parser!(u16).range(0..=64))]
    clusters: u16,
    /// Omit the part with one cluster.
    #[arg(long)]
    only_many: bool,
    /// Measure this binary, such as an older one, in place of the one that is built from this checkout.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Use the control planes NAME-one and NAME-many, and leave them running for the next time; `cargo xtask
    /// kube down` ends them.
    #[arg(long, value_name = "NAME")]
    keep: Option<String>,
}

const CLUSTER: &str = "kube-1";
/// The delay of bytes in each direction of the delay line.
const DELAY: Duration = Duration::from_millis(50);
/// The maximum median wall time over loopback, in milliseconds.
const LOOPBACK_BAR: f64 = 150.0;
/// The maximum median wall time through the delay line, in milliseconds.
const DELAYED_BAR: f64 = 500.0;
/// The maximum median number of round trips one after the other.
const ROUNDS_BAR: f64 = 4.0;
/// The number of clusters that accept connections and never respond.
const SILENT: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time by which a run with hanging clusters may exceed its timeout, in milliseconds.
const GRACE: f64 = 500.0;

/// An app of 200 replicas as Flux leaves it. Its Pods have the labels of most charts, so a list for label groups
/// contains them, and they must be distinguished from declared objects.
const ROLLOUT: &str = "\
apiVersion: v1
kind: Namespace
metadata:
  name: bench
  labels: {kustomize.toolkit.fluxcd.io/name: bench, kustomize.toolkit.fluxcd.io/namespace: bench}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: bench
  labels: {kustomize.toolkit.fluxcd.io/name: bench, kustomize.toolkit.fluxcd.io/namespace: bench}
spec:
  replicas: 200
  strategy:
    rollingUpdate: {maxSurge: 100%, maxUnavailable: 0}
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web, app.kubernetes.io/name: web, app.kubernetes.io/instance: web}
    spec:
      containers:
        - {name: web, image: registry.example/bench/web:1}
---
${KUSTOMIZATION}
      - {id: bench_web_apps_Deployment, v: v1}
";

/// An app without workloads, which needs no controllers.
const SMALL: &str = "\
apiVersion: v1
kind: Namespace
metadata:
  name: bench
  labels: {kustomize.toolkit.fluxcd.io/name: bench, kustomize.toolkit.fluxcd.io/namespace: bench}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: bench
  labels: {kustomize.toolkit.fluxcd.io/name: bench, kustomize.toolkit.fluxcd.io/namespace: bench}
data: {currency: EUR}
---
${KUSTOMIZATION}
      - {id: bench_settings__ConfigMap, v: v1}
";

const KUSTOMIZATION: &str = "\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: bench
  namespace: bench
spec:
  interval: 10m
  prune: true
  sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}
status:
  observedGeneration: 1
  lastAppliedRevision: main@sha1:3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613
  lastAttemptedRevision: main@sha1:3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613
  conditions:
    - type: Ready
      status: 'True'
      reason: ReconciliationSucceeded
      message: 'Applied revision: main@sha1:3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613'
      observedGeneration: 1
      lastTransitionTime: 2026-03-01T12:00:00Z
  inventory:
    entries:
      - {id: _bench__Namespace, v: v1}";

impl Apps {
    pub(crate) fn run(self) -> Result<()> {
        let taffrail = match &self.binary {
            Some(binary) => std::path::absolute(binary)?,
            None => binary::build(Profile::Release)?,
        };
        let folder = binary::workspace().join("target/bench/apps");
        fs::create_dir_all(&folder)?;
        println!("{:44} {:>9} {:>9} {:>9}", "", "median", "max", "bar");
        if !self.only_many {
            self.one(&taffrail, &folder)?;
        }
        if self.clusters > 0 { self.many(&taffrail, &folder) } else { Ok(()) }
    }

    fn plane(&self, part: &str, options: Options) -> Result<ControlPlane> {
        match &self.keep {
            Some(name) => Ok(ControlPlane::up(&Options { name: format!("{name}-{part}"), ..options })?.0),
            None => ControlPlane::start(&Options {
                name: format!("bench-{part}-{}", std::process::id()),
                ..options
            }),
        }
    }

    /// Measures one cluster, over loopback and through the delay line.
    fn one(&self, taffrail: &Path, folder: &Path) -> Result<()> {
        let plane = self.plane("one", Options::default())?;
        apply_source(&plane, CLUSTER)?;
        plane.apply_with_status(CLUSTER, &ROLLOUT.replace("${KUSTOMIZATION}", KUSTOMIZATION))?;
        plane.kubectl(CLUSTER, &["rollout", "status", "deployment/web", "-n", "bench", "--timeout=120s"])?;
        let near = Side { name: "loopback", bar: LOOPBACK_BAR, kubeconfig: plane.kubeconfig().to_owned() };
        near.measure(taffrail, self.runs)?;

        let server = plane.server(0).context("the control plane has no cluster")?;
        let target: SocketAddr = server
            .trim_start_matches("https://")
            .parse()
            .context("the API server's URL does not contain an IP address and port")?;
        let line = DelayLine::open(target, DELAY)?;
        let kubeconfig = folder.join("delayed.kubeconfig");
        // The certificate is for the IP address, which is the same; only the port is another one.
        let text = fs::read_to_string(plane.kubeconfig())?;
        fs::write(&kubeconfig, text.replace(server, &format!("https://{}", line.address())))?;
        let far = Side { name: "50 ms each way", bar: DELAYED_BAR, kubeconfig };
        far.measure(taffrail, self.runs)
    }

    /// Measures many clusters, some of which hang.
    fn many(&self, taffrail: &Path, folder: &Path) -> Result<()> {
        let clusters = usize::from(self.clusters);
        let options = Options { clusters, bare: clusters - 1, ..Options::default() };
        let plane = self.plane("many", options)?;
        let contexts = plane.contexts();
        for context in &contexts {
            apply_source(&plane, context)?;
            plane.apply_with_status(context, &SMALL.replace("${KUSTOMIZATION}", KUSTOMIZATION))?;
        }

        // The kernel accepts connections for a listener that nobody asks for them.
        let listeners: Vec<TcpListener> = (0..SILENT)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .collect::<Result<_, _>>()
            .context("no port is free for a server that never responds")?;
        let silent: Vec<String> = (1..=SILENT).map(|number| format!("silent-{number}")).collect();
        let second = folder.join("silent.kubeconfig");
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>()?;
        fs::write(&second, silent_kubeconfig(&silent, &addresses))?;
        let kubeconfig = std::env::join_paths([plane.kubeconfig(), &second])?;

        let timeout = format!("{}s", TIMEOUT.as_secs());
        let arguments = ["get", "apps", "--all-contexts", "--timeout", &timeout];
        let mut runs = Vec::new();
        // Each takes the timeout, so fewer do.
        for _ in 0..self.runs.min(3) {
            let run = Run::new(taffrail, &kubeconfig, &[&arguments[..], &["-o", "json"]].concat())?;
            check_many(&run, &contexts, &silent).with_context(|| run.to_string())?;
            runs.push(run);
        }
        let table = Run::new(taffrail, &kubeconfig, &arguments)?;
        for name in &silent {
            let told = table.stdout.lines().any(|line| line.starts_with(name) && line.contains("Timeout"));
            ensure!(told, "the table has no row with the reason `Timeout` for the cluster {name}\n{table}");
        }
        runs.push(table);

        let name = format!("{clusters} clusters answer, {SILENT} hang");
        let bar = TIMEOUT.as_secs_f64() * 1e3 + GRACE;
        line(&format!("{name}: wall"), "ms", runs.iter().map(|run| run.wall), Some(bar));
        line(&format!("{name}: CPU"), "ms", runs.iter().map(|run| run.cpu), None);
        println!("  {clusters} complete rows, {SILENT} rows with a reason, exit code 3");
        Ok(())
    }
}

/// A route to the one cluster: direct, or through the delay line.
struct Side {
    name: &'static str,
    bar: f64,
    kubeconfig: PathBuf,
}

impl Side {
    fn measure(&self, taffrail: &Path, runs: u16) -> Result<()> {
        let kubeconfig = self.kubeconfig.as_os_str();
        let first = Run::new(taffrail, kubeconfig, &["get", "apps", "-o", "json"])?;
        check_one(&first).with_context(|| first.to_string())?;

        let mut measured = Vec::new();
        for _ in 0..runs {
            let run = Run::new(taffrail, kubeconfig, &["get", "apps", "-vv"])?;
            let row = run.stdout.lines().any(|line| line.starts_with("bench ") && line.contains(" Ready "));
            ensure!(
                run.code == Some(0) && row,
                "`taffrail get apps` did not show the app `bench` as Ready\n{run}"
            );
            let requests = Requests::parse(&run.stderr, CLUSTER)?;
            let twice = requests.listed_twice();
            ensure!(twice.is_empty(), "these kinds were listed more than once: {}\n{run}", twice.join(", "));
            measured.push((run, requests));
        }
        let figures = |what: &str, unit, figure: &dyn Fn(&(Run, Requests)) -> f64, bar| {
            line(&format!("{}: {what}", self.name), unit, measured.iter().map(figure), bar);
        };
        figures("wall", "ms", &|(run, _)| run.wall, Some(self.bar));
        figures("CPU of the client", "ms", &|(run, _)| run.cpu, None);
        figures("connecting", "ms", &|(_, requests)| requests.connecting as f64, None);
        figures("sequential round trips", "", &|(_, requests)| requests.rounds as f64, Some(ROUNDS_BAR));
        figures("requests", "", &|(_, requests)| requests.paths.len() as f64, None);
        figures("answers", "KB", &|(_, requests)| requests.size as f64, None);
        println!("  no kind was listed twice");
        Ok(())
    }
}

/// One run of the binary, with its output and its cost.
struct Run {
    command: String,
    code: Option<i32>,
    stdout: String,
    stderr: String,
    /// Wall time in milliseconds.
    wall: f64,
    /// CPU time in milliseconds.
    cpu: f64,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Run { command, code, stdout, stderr, .. } = self;
        write!(f, "$ {command}\n{stdout}{stderr}(exit code {code:?})")
    }
}

impl Run {
    fn new(taffrail: &Path, kubeconfig: impl Into<OsString>, arguments: &[&str]) -> Result<Run> {
        let mut command = Command::new(taffrail);
        command.args(arguments).env("KUBECONFIG", kubeconfig.into()).env("NO_COLOR", "1");
        let before = cpu_of_children()?;
        let started = Instant::now();
        let output = command
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", taffrail.display()))?;
        let wall = started.elapsed();
        Ok(Run {
            command: format!("taffrail {}", arguments.join(" ")),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).context("standard output is not UTF-8")?,
            stderr: String::from_utf8(output.stderr).context("standard error is not UTF-8")?,
            wall: wall.as_secs_f64() * 1e3,
            cpu: cpu_of_children()?.saturating_sub(before).as_secs_f64() * 1e3,
        })
    }

    /// Returns the items and the errors of an output in JSON.
    fn lists(&self) -> Result<(Vec<Value>, Vec<Value>)> {
        let list: Value =
            serde_json::from_str(&self.stdout).context("the output of `taffrail get apps` is not JSON")?;
        let of = |field: &str| {
            list[field]
                .as_array()
                .cloned()
                .with_context(|| format!("the output of `taffrail get apps` has no list of {field}"))
        };
        Ok((of("items")?, of("errors")?))
    }
}

fn check_one(run: &Run) -> Result<()> {
    let (items, errors) = run.lists()?;
    ensure!(run.code == Some(0), "`taffrail get apps` ended with exit code {:?} in place of 0", run.code);
    ensure!(errors.is_empty(), "the list of apps has errors: {errors:?}");
    ensure!(
        items.iter().filter(|item| is_well(item)).count() == 1,
        "the list of apps does not have the app exactly once, Ready and synced"
    );
    Ok(())
}

/// Returns true if an item is the applied app, well, synced and with all of its objects.
fn is_well(item: &Value) -> bool {
    item["delivery"] == "flux-kustomization"
        && item["namespace"] == "bench"
        && item["health"] == "Current"
        && item["sync"]["state"] == "Synced"
        && item["objects"] == 2
}

fn check_many(run: &Run, contexts: &[&str], silent: &[String]) -> Result<()> {
    let (items, errors) = run.lists()?;
    ensure!(run.code == Some(3), "`taffrail get apps` ended with exit code {:?} in place of 3", run.code);
    for context in contexts {
        let well = items.iter().filter(|item| item["cluster"] == *context && is_well(item)).count();
        ensure!(
            well == 1,
            "the list of apps does not have the app of the cluster {context} exactly once, Ready and synced"
        );
    }
    ensure!(
        errors.len() == silent.len(),
        "the list of apps has {} errors in place of {}",
        errors.len(),
        silent.len()
    );
    for name in silent {
        let told = |error: &&Value| {
            error["cluster"] == **name && error["reason"] == "Timeout" && error["message"] != ""
        };
        ensure!(
            errors.iter().filter(told).count() == 1,
            "the list of apps does not have exactly one error `Timeout` of the cluster {name}"
        );
    }
    Ok(())
}

/// Returns a kubeconfig with these contexts, each for the server at the address of the same index.
fn silent_kubeconfig(names: &[String], addresses: &[SocketAddr]) -> String {
    let lines = |address| format!("server: https://{address}\ninsecure-skip-tls-verify: true");
    let clusters: Vec<String> = addresses.iter().map(lines).collect();
    let contexts: Vec<_> = names
        .iter()
        .zip(&clusters)
        .map(|(name, cluster)| (name.as_str(), cluster.as_str(), "token: none"))
        .collect();
    kubeconfig(&contexts)
}

/// Prints a line of the table: median and maximum of `figures`, and `bar`, the maximum for the median, with `MISSED` if
/// it is exceeded.
fn line(name: &str, unit: &str, figures: impl Iterator<Item = f64>, bar: Option<f64>) {
    let figures: Vec<f64> = figures.collect();
    let shown = |figure: f64| format!("{figure:.0} {unit}").trim_end().to_owned();
    let middle = median(figures.iter().copied());
    let greatest = figures.iter().copied().fold(0.0, f64::max);
    let bar = match bar {
        None => String::new(),
        Some(bar) if middle <= bar => format!("{:>9}", shown(bar)),
        Some(bar) => format!("{:>9}  MISSED", shown(bar)),
    };
    println!("{}", format!("{name:44} {:>9} {:>9} {bar}", shown(middle), shown(greatest)).trim_end());
}
