//! Measures the time from the last write of a status until `taffrail wait` reports the rollout as complete, and its
//! requests.
//!
//! Managed fields know the time of a write to the second only. So a bare watch runs beside `taffrail wait` on the same
//! API server, and the figure is the time from an event's arrival there to the arrival of Taffrail's line about it.
//! Requests are counted by the server's audit log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::kube::{ControlPlane, Options};

use super::measure::load;

/// Measure rollouts on a real control plane, and the delay with which `taffrail wait` reports them as complete.
#[derive(Args)]
pub(crate) struct Wait {
    /// Number of concurrent rollouts.
    #[arg(long, default_value_t = 50, value_name = "N")]
    rollouts: u16,
    /// Binary of Taffrail to measure in place of the one of this checkout.
    #[arg(long, value_name = "FILE")]
    binary: Option<std::path::PathBuf>,
}

const CLUSTER: &str = "kube-1";
const NAMESPACE: &str = "bench";

/// The maximum time from the last write of a rollout to its report, in milliseconds.
const BAR: f64 = 100.0;

/// The time limit for any step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The time without a change after which the newest write of a Deployment counts as its last.
const QUIET: Duration = Duration::from_secs(3);

/// A line of a process' output, with the time of its arrival.
struct Line {
    at: Instant,
    from: usize,
    text: String,
}

/// A process whose output lines are sent to a channel as they arrive; it is killed on drop.
struct Listening(Child);

impl Listening {
    fn start(mut command: Command, from: usize, lines: &Sender<Line>) -> Result<Listening> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("the standard output of the process is not a pipe")?;
        let lines = lines.clone();
        thread::spawn(move || {
            for text in BufReader::new(output).lines().map_while(Result::ok) {
                if lines.send(Line { at: Instant::now(), from, text }).is_err() {
                    return;
                }
            }
        });
        Ok(Listening(child))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The index of the bare watch among the sources of lines.
const BARE: usize = usize::MAX;

/// The times of one Deployment's rollout, at the bare watch and at `taffrail wait`.
#[derive(Debug, Default)]
struct Rollout {
    /// The time at which its last change arrived at the bare watch; `None` before the first.
    written: Option<Instant>,
    /// The time at which a version that kubectl would call complete arrived at the bare watch, and only such versions
    /// after it; `None` if the newest one is not complete.
    complete: Option<Instant>,
    /// True if `taffrail wait` has reported it as not complete yet.
    was_waited_for: bool,
    /// The time at which `taffrail wait` last reported it as complete; `None` if the last report is another.
    reported: Option<Instant>,
}

impl Wait {
    pub(crate) fn run(self) -> Result<()> {
        ensure!(self.rollouts > 0, "there must be at least one rollout");
        let taffrail = match &self.binary {
            Some(binary) => std::path::absolute(binary)?,
            None => binary::build(Profile::Release)?,
        };
        let plane = ControlPlane::start(&Options {
            name: format!("bench-wait-{}", std::process::id()),
            flux_crds: false,
            audited: true,
            ..Options::default()
        })?;
        let names: Vec<String> = (1..=self.rollouts).map(|number| format!("web-{number:03}")).collect();
        plane.create_namespace(CLUSTER, NAMESPACE)?;
        println!("{} Deployments of 2 replicas; load {}", names.len(), load());
        plane.apply(CLUSTER, &manifests(&names))?;
        let all = ["--for=condition=Available", "deployment", "--all", "-n", NAMESPACE, "--timeout=300s"];
        plane.wait(CLUSTER, &all)?;

        let bench = Bench { plane: &plane, taffrail: &taffrail, names: &names };
        let together = bench.round("one process for all", 2, std::slice::from_ref(&names))?;
        let alone: Vec<Vec<String>> = names.iter().map(|name| vec![name.clone()]).collect();
        let alone = bench.round("a process for each", 3, &alone)?;
        ensure!(
            together && alone,
            "a report came later than the bar, or `taffrail` sent more requests than its watches need"
        );
        Ok(())
    }
}

struct Bench<'a> {
    plane: &'a ControlPlane,
    taffrail: &'a Path,
    names: &'a [String],
}

impl Bench<'_> {
    /// Rolls out a new image, waits for each group of Deployments with a `taffrail wait` of its own, and prints the
    /// figures. Returns true if all are within their bounds.
    fn round(&self, title: &str, version: usize, groups: &[Vec<String>]) -> Result<bool> {
        let (sender, lines) = channel();
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments?watch=true");
        let mut bare = self.plane.kubectl_command(CLUSTER);
        bare.args(["get", "--raw", &path]);
        let _bare = Listening::start(bare, BARE, &sender)?;
        // What is there comes first.
        let mut rollouts: BTreeMap<String, Rollout> = BTreeMap::new();
        while rollouts.len() < self.names.len() {
            let line = lines
                .recv_timeout(PATIENCE)
                .context("the bare watch brought no event of a Deployment in time")?;
            rollouts.entry(deployment(&line.text)?.0).or_default();
        }

        let audited = self.audit()?.len();
        let image = format!("web=registry.example/bench/web:{version}");
        self.plane.kubectl(CLUSTER, &["set", "image", "deployment", "--all", &image, "-n", NAMESPACE])?;
        let mut waiting = Vec::new();
        for (from, group) in groups.iter().enumerate() {
            let mut command = Command::new(self.taffrail);
            command.arg("wait").args(group.iter().map(|name| format!("deployment/{name}")));
            command.args(["-n", NAMESPACE, "--timeout", "5m", "-o", "jsonl"]);
            command.env("KUBECONFIG", self.plane.kubeconfig());
            waiting.push(Listening::start(command, from, &sender)?);
        }
        drop(sender);
        let met = collect(&lines, &mut rollouts, groups.len())?;
        ensure!(
            met == groups.len(),
            "only {met} of {} processes of `taffrail wait` reported all of their rollouts as complete",
            groups.len()
        );
        for Listening(child) in &mut waiting {
            let status = child.wait()?;
            ensure!(status.success(), "`taffrail wait` ended with {status}");
        }

        println!("{title} (load {}):", load());
        let of = |from: fn(&Rollout) -> Option<Instant>| -> Vec<f64> {
            let later = |rollout: &Rollout| Some(milliseconds(from(rollout)?, rollout.reported?));
            rollouts.values().filter_map(later).collect()
        };
        let waited = rollouts.values().filter(|rollout| rollout.was_waited_for).count();
        let longest = show("after the last write", of(|rollout| rollout.written));
        show("after the write that completed it", of(|rollout| rollout.complete));
        println!(
            "  {waited} of {} rollouts were reported as not complete before they were complete",
            rollouts.len()
        );
        let others = self.requests(audited)?;
        Ok(longest <= BAR && others == 0 && waited == rollouts.len())
    }

    /// Reads the API server's audit log: one JSON object for each request.
    fn audit(&self) -> Result<Vec<Value>> {
        let folder = &self.plane.members().first().context("the control plane has no cluster")?.folder;
        let path = folder.join(taffrail_testkit::kube::AUDIT_LOG);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        // The last line may be half written.
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Prints the requests of `taffrail` from line `since` of the audit log on. Returns the number of those that are
    /// neither a watch nor the list before one.
    fn requests(&self, since: usize) -> Result<usize> {
        let events = self.audit()?;
        let (counts, others) = sort(events.get(since..).unwrap_or_default());
        ensure!(!counts.is_empty(), "the audit log has no request of `taffrail`");
        let text: String = counts.iter().map(|(what, count)| format!("\n    {count:>4} × {what}")).collect();
        println!(
            "  requests, by the server's audit log ({others} are neither a watch, the list before one, nor discovery):{text}"
        );
        Ok(others)
    }
}

/// Counts the requests of `taffrail` by kind; and those besides watches, the list that each may begin with, and
/// discovery.
fn sort(events: &[Value]) -> (BTreeMap<String, usize>, usize) {
    const FIRST: [&str; 3] = ["/api", "/apis", "/version"];

    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    // Lists and watches of the same objects.
    let mut scopes: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut others = 0;
    let mut ids = BTreeSet::new();
    for event in events {
        let text = |field: &str| event[field].as_str().unwrap_or_default();
        // A watch is noted when it begins and when it ends.
        if !text("userAgent").starts_with("taffrail") || !ids.insert(text("auditID").to_owned()) {
            continue;
        }
        let (verb, uri) = (text("verb"), text("requestURI"));
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let resource = path.rsplit('/').next().unwrap_or(path);
        let what = match verb {
            "get" if FIRST.contains(&path) => "which kinds there are".to_owned(),
            _ => format!("{verb} {resource}"),
        };
        *counts.entry(what).or_default() += 1;
        let selectors =
            query.split('&').filter(|it| it.starts_with("fieldSelector") || it.starts_with("labelSelector"));
        let scope = scopes.entry(format!("{path}?{}", selectors.collect::<Vec<_>>().join("&"))).or_default();
        match verb {
            "watch" => scope.1 += 1,
            // The second page of a list is no second list.
            "list" if !query.contains("continue=") => scope.0 += 1,
            "list" => {}
            _ => others += usize::from(!FIRST.contains(&path)),
        }
    }
    let lists: usize = scopes.values().map(|(lists, watches)| lists.saturating_sub(*watches)).sum();
    (counts, others + lists)
}

/// Reads lines until each process has reported its end and no more changes come. Returns the number of processes that
/// saw all of their rollouts complete.
fn collect(
    lines: &Receiver<Line>,
    rollouts: &mut BTreeMap<String, Rollout>,
    processes: usize,
) -> Result<usize> {
    let begun = Instant::now();
    let (mut ended, mut met) = (0, 0);
    loop {
        let patience = if ended == processes { QUIET } else { PATIENCE.saturating_sub(begun.elapsed()) };
        let Line { at, from, text } = match lines.recv_timeout(patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) if ended == processes => return Ok(met),
            Err(_) => bail!(
                "only {ended} of {processes} processes of `taffrail wait` have ended after {:?}",
                begun.elapsed()
            ),
        };
        if from == BARE {
            let (name, is_complete) = deployment(&text)?;
            let rollout = rollouts.entry(name).or_default();
            rollout.written = Some(at);
            match (is_complete, rollout.complete) {
                (true, None) => rollout.complete = Some(at),
                (false, Some(_)) => rollout.complete = None,
                _ => {}
            }
            continue;
        }
        let told: Value = serde_json::from_str(&text)
            .with_context(|| format!("a line of `taffrail wait` is not JSON: {text}"))?;
        if told["kind"] == "WaitSummary" {
            ended += 1;
            met += usize::from(told["result"] == "Met");
            continue;
        }
        let name = told["object"]["name"].as_str().unwrap_or_default();
        let Some(rollout) = rollouts.get_mut(name) else { continue };
        match &told["verdict"] {
            verdict if *verdict == "Met" => rollout.reported = Some(at),
            verdict if *verdict == "Waiting" => {
                rollout.was_waited_for = true;
                rollout.reported = None;
            }
            _ => {}
        }
    }
}

/// Parses an event of the bare watch: the name of the Deployment, and true if `kubectl rollout status` would call it
/// complete.
fn deployment(text: &str) -> Result<(String, bool)> {
    let event: Value = serde_json::from_str(text)
        .with_context(|| format!("a line of the bare watch is not JSON: {text}"))?;
    let object = &event["object"];
    let name = object["metadata"]["name"]
        .as_str()
        .context("an event of the bare watch has no object with a name")?
        .to_owned();
    let (status, wanted) = (&object["status"], &object["spec"]["replicas"]);
    let observed = status["observedGeneration"].as_i64() >= object["metadata"]["generation"].as_i64();
    let all =
        ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|field| status[*field] == *wanted);
    Ok((name, observed && all))
}

/// Returns the manifests of Deployments whose Pods start at different moments of some seconds.
fn manifests(names: &[String]) -> String {
    let documents = names.iter().map(|name| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name},
                    "annotations": {"taffrail.dev/start-after": "2s", "taffrail.dev/start-before": "8s"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example/bench/web:1"}]}}}})
        .to_string()
    });
    documents.collect::<Vec<_>>().join("\n---\n")
}

fn milliseconds(from: Instant, to: Instant) -> f64 {
    match to.checked_duration_since(from) {
        Some(later) => later.as_secs_f64() * 1e3,
        None => -from.duration_since(to).as_secs_f64() * 1e3,
    }
}

/// Prints the median, the 99th percentile and the maximum of times in milliseconds; returns the maximum.
fn show(what: &str, mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let at = |part: usize| {
        let place = (figures.len() * part).div_ceil(100).saturating_sub(1);
        figures.get(place).copied().unwrap_or(f64::NAN)
    };
    println!(
        "  {:3} reported {what}: median {:.1} ms, p99 {:.1} ms, longest {:.1} ms (bar {BAR:.0} ms)",
        figures.len(),
        at(50),
        at(99),
        at(100)
    );
    at(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_is_complete_when_kubectl_says_so() {
        let event = |generation: u8, updated: u8, replicas: u8| {
            json!({"type": "MODIFIED", "object": {"metadata": {"name": "web", "generation": generation},
                "spec": {"replicas": 2}, "status": {"observedGeneration": 3, "replicas": replicas,
                    "updatedReplicas": updated, "availableReplicas": 2}}})
            .to_string()
        };
        for (text, is_complete) in [
            (event(3, 2, 2), true),
            (event(4, 2, 2), false),
            (event(3, 1, 2), false),
            (event(3, 2, 3), false),
        ] {
            assert_eq!(deployment(&text).unwrap(), ("web".to_owned(), is_complete), "{text}");
        }
        assert!(deployment("{}").is_err());
    }

    #[test]
    fn what_is_asked_besides_watches_is_counted() {
        let mut id = 0;
        let mut event = |verb: &str, uri: &str| {
            id += 1;
            json!({"auditID": id.to_string(), "userAgent": "taffrail/1", "verb": verb, "requestURI": uri})
        };
        let pods = "/api/v1/pods";
        let mut events = vec![
            event("get", "/apis"),
            event("list", &format!("{pods}?limit=500")),
            event("list", &format!("{pods}?limit=500&continue=x")),
            event("watch", &format!("{pods}?watch=true")),
        ];
        assert_eq!(sort(&events).1, 0);
        events.push(events[3].clone());
        assert_eq!(sort(&events).0["watch pods"], 1, "told when it ends too");
        events.push(event("list", &format!("{pods}?limit=500")));
        events.push(event("list", &format!("{pods}?limit=500&labelSelector=app%3Dweb")));
        events.push(event("get", "/api/v1/namespaces/shop/pods/web"));
        assert_eq!(sort(&events).1, 3);
        events.push(json!({"auditID": "0", "userAgent": "kubectl/1", "verb": "get", "requestURI": pods}));
        assert_eq!(sort(&events).1, 3);
    }
}
