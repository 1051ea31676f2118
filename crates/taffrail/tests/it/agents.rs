//! Agents that report simulated clusters to a hub that does not know how to reach them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::served::Served;
use super::{Answer, command, taffrail, watch};

/// A hub for agents alone, which serves by TLS.
struct AgentsHub {
    child: Child,
    url: String,
    folder: tempfile::TempDir,
}

impl Drop for AgentsHub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl AgentsHub {
    fn start() -> AgentsHub {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(folder.path().join("tls.crt"), made.cert.pem()).unwrap();
        std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        let data = folder.path().join("data");
        let created = taffrail(&["hub", "token", "create", "ci", "--data", data.to_str().unwrap()], "");
        std::fs::write(folder.path().join("token"), &created.stdout).unwrap();
        let (child, url) = AgentsHub::serve(folder.path(), "127.0.0.1:0");
        AgentsHub { child, url, folder }
    }

    fn serve(folder: &Path, listen: &str) -> (Child, String) {
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let mut child = command(&[
            "hub",
            "serve",
            "--clusters-from",
            "none",
            "--listen",
            listen,
            "--host",
            "localhost",
            "--tls-cert-file",
            &path("tls.crt"),
            "--tls-key-file",
            &path("tls.key"),
            "--data",
            &path("data"),
        ])
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
        let first = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        let url =
            first.strip_prefix("follows 0 clusters, and answers at ").unwrap_or_else(|| panic!("{first}"));
        (child, url.strip_suffix("/api/v1").unwrap().to_owned())
    }

    /// Ends the hub without notice, and starts it again at its address.
    fn restart(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let port = self.url.rsplit(':').next().unwrap().to_owned();
        let (child, url) = AgentsHub::serve(self.folder.path(), &format!("127.0.0.1:{port}"));
        assert_eq!(url, self.url);
        self.child = child;
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs `taffrail hub` with these arguments and the hub's data.
    fn manage(&self, arguments: &[&str]) -> Answer {
        taffrail(&[&["hub"], arguments, &["--data", &self.path("data")]].concat(), "")
    }

    /// Makes a token for an agent, and returns the file that holds it.
    fn token(&self, name: &str, arguments: &[&str]) -> String {
        let created = self.manage(&[&["token", "create", "--agent"], arguments].concat());
        assert_eq!(created.code, 0, "{}", created.stderr);
        let file = self.path(name);
        std::fs::write(&file, &created.stdout).unwrap();
        file
    }

    /// Returns the arguments of an agent of a cluster of `served`.
    fn agent_arguments(&self, served: &Served, context: &str, data: &str, more: &[&str]) -> Vec<String> {
        let data = self.path(data);
        let fixed = [
            "agent",
            "--hub",
            &self.url,
            "--context",
            context,
            "--kubeconfig",
            &served.kubeconfig,
            "--data",
            &data,
        ];
        fixed.into_iter().chain(more.iter().copied()).map(str::to_owned).collect()
    }

    /// Starts an agent of a cluster of `served`.
    fn agent(&self, served: &Served, context: &str, data: &str, more: &[&str]) -> Agent {
        let arguments = self.agent_arguments(served, context, data, more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut child = command(&arguments).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Agent { child, lines, seen: Vec::new() }
    }

    /// Asks the hub.
    fn ask(&self, arguments: &[&str]) -> Answer {
        let (token, authority) = (self.path("token"), self.path("tls.crt"));
        let by_hub = ["--hub", &self.url, "--hub-token-file", &token, "--hub-ca-file", &authority];
        taffrail(&[arguments, &by_hub].concat(), "")
    }

    /// Asks the hub until the answer is as `expected` says.
    fn ask_until(&self, arguments: &[&str], expected: impl Fn(&Answer) -> bool) -> Answer {
        let begun = Instant::now();
        loop {
            let answer = self.ask(arguments);
            if expected(&answer) {
                return answer;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{}{}", answer.stdout, answer.stderr);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A running agent, which ends with the test.
struct Agent {
    child: Child,
    /// The lines that it writes to stderr.
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Agent {
    /// Waits for a line on stderr that begins with `text`.
    fn until(&mut self, text: &str) -> String {
        loop {
            let Ok(line) = self.lines.recv_timeout(Duration::from_secs(90)) else {
                panic!("the agent did not write '{text}', but {:#?}", self.seen);
            };
            self.seen.push(line.clone());
            if line.starts_with(text) {
                return line;
            }
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the lines of a table of `get apps` or `get clusters` without their ages.
fn rows(answer: &Answer) -> Vec<String> {
    answer
        .stdout
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn clusters_of_agents_are_listed_like_those_that_are_read() {
    let served = watch::served();
    let hub = AgentsHub::start();
    let names: Vec<String> = served.clusters.iter().map(|cluster| cluster.name().to_owned()).collect();
    let mut agents = Vec::new();
    for name in &names {
        let token = hub.token("agent-token", &[]);
        let mut agent = hub.agent(&served, name, name, &["--token-file", &token]);
        assert_eq!(agent.until("Enrolled"), format!("Enrolled: the hub lists the cluster as '{name}'."));
        assert_eq!(agent.until("Connected"), format!("Connected: the agent reports cluster '{name}'."));
        agents.push(agent);
    }
    for view in [["get", "apps"], ["get", "clusters"]] {
        let direct = served.ask(&view);
        let by_hub = hub.ask_until(&view, |answer| answer.code == 0 && rows(answer) == rows(&direct));
        assert!(!rows(&by_hub).is_empty(), "{}", by_hub.stdout);
    }
    // Filters and names work on them, too.
    let one = hub.ask_until(&["get", "apps", "--cluster", &names[0]], |answer| answer.code == 0);
    assert!(rows(&one).iter().all(|row| row.contains(&names[0])), "{}", one.stdout);
    // The agent itself answers what a report does not hold.
    for question in [
        &["app", "shop", "--cluster", &names[0]][..],
        &["tree", "shop", "--cluster", &names[0]],
        &["explain", "shop", "--cluster", &names[0]],
        &["events", "shop", "--cluster", &names[0]],
        &["get", "resources", "--cluster", &names[0]],
        &["object", &format!("{}/apps/Deployment/shop/web", names[0])],
    ] {
        let json = [question, &["-o", "json"]].concat();
        let direct = served.ask(&json);
        assert!(!direct.stdout.is_empty(), "{question:?} {}", direct.stderr);
        let by_hub = hub.ask_until(&json, |answer| answer.code == direct.code);
        let known = |answer: &Answer| without_times(&answer.stdout);
        assert_eq!(known(&by_hub), known(&direct), "{question:?} {}", by_hub.stderr);
    }
    let several = hub.ask(&["tree", "shop"]);
    assert_ne!(several.code, 0, "{}", several.stdout);
    assert!(
        several.stderr.contains("(one, two), and each agent answers about its own"),
        "{}",
        several.stderr
    );
    // Without the agent its last report is all that is known.
    drop(agents.remove(0));
    let gone = hub.ask_until(&["tree", "shop", "--cluster", &names[0]], |answer| answer.code != 0);
    assert!(gone.stderr.contains("it is not connected"), "{}", gone.stderr);
}

/// Returns JSON without what depends on when and how it was read.
fn without_times(json: &str) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Object(members) => {
                members.retain(|name, _| !matches!(&**name, "observedAt" | "reading" | "now"));
                members.values_mut().for_each(strip);
            }
            _ => {}
        }
    }
    let mut value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    strip(&mut value);
    value
}

#[test]
fn an_agent_goes_on_after_its_hub_restarts_and_is_listed_and_revoked() {
    let served = watch::served();
    let mut hub = AgentsHub::start();
    let name = served.clusters[0].name().to_owned();
    let token = hub.token("agent-token", &[]);
    let mut agent = hub.agent(&served, &name, "a", &["--token-file", &token, "--name", "eu-1"]);
    agent.until("Connected: the agent reports cluster 'eu-1'.");
    let is_live = |answer: &Answer| {
        answer.code == 0 && answer.stdout.contains("eu-1") && !answer.stdout.contains("Unknown")
    };
    hub.ask_until(&["get", "clusters"], is_live);
    hub.restart();
    agent.until("Not connected; the agent tries again in ");
    agent.until("Connected: the agent reports cluster 'eu-1'.");
    hub.ask_until(&["get", "clusters"], is_live);

    let listed = hub.manage(&["agents"]);
    snapbox::assert_data_eq!(
        &*listed.stdout,
        "CLUSTER   STATE      VERSION   ENROLLED            SEEN                CERTIFICATE-UNTIL   VIA   UID\n\
         eu-1      enrolled   [..]     [..]Z   [..]Z   [..]Z   TLS   [..]\n"
    );
    let revoked = hub.manage(&["revoke", "eu-1"]);
    assert_eq!((revoked.code, &*revoked.stderr), (0, "The agent of cluster eu-1 is revoked.\n"));
    assert_eq!(agent.until("error"), "error: the hub refuses the agent: the agent was revoked");
    assert_eq!(agent.child.wait().unwrap().code(), Some(3));
    let again = hub.manage(&["revoke", "eu-1"]);
    assert_eq!(again.code, 2, "{}", again.stderr);
}

#[test]
fn who_may_not_enrol_is_told_why_and_what_to_do() {
    let served = watch::served();
    let hub = AgentsHub::start();
    let name = served.clusters[0].name().to_owned();
    let run = |data: &str, more: &[&str]| {
        let arguments = hub.agent_arguments(&served, &name, data, more);
        taffrail(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), "")
    };
    let refused = run("a", &[]);
    assert_eq!(refused.code, 3);
    snapbox::assert_data_eq!(
        refused.stderr,
        "error: the agent is not enrolled at the hub\n hint: on the hub's machine 'taffrail hub token create --agent' makes a token; give it with --token-file FILE\n"
    );
    let token = hub.token("agent-token", &[]);
    let mut agent = hub.agent(&served, &name, "b", &["--token-file", &token, "--name", "eu-1"]);
    agent.until("Connected");
    let refused = run("c", &["--token-file", &token]);
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("unknown, used or expired"), "{}", refused.stderr);
    let second = hub.token("second-token", &[]);
    let refused = run("d", &["--token-file", &second]);
    assert!(
        refused.stderr.contains("taffrail hub token create --agent --cluster eu-1"),
        "{}",
        refused.stderr
    );
    std::fs::write(hub.path("wrong"), "no token").unwrap();
    let refused = run("e", &["--token-file", &hub.path("wrong")]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("does not hold an enrolment token"), "{}", refused.stderr);
    // Another agent, with a token for the cluster, takes over, and the first one waits.
    let third = hub.token("third-token", &["--cluster", "eu-1"]);
    let mut other = hub.agent(&served, &name, "f", &["--token-file", &third]);
    other.until("Connected: the agent reports cluster 'eu-1'.");
    agent.until("Another agent reports this cluster; this one waits, and asks again in ");

    let plain = taffrail(&["agent", "--hub", "http://127.0.0.1:1", "--kubeconfig", &served.kubeconfig], "");
    assert_eq!(plain.code, 2);
    snapbox::assert_data_eq!(
        plain.stderr,
        "error: an agent reports by https alone: --hub has another scheme\n hint: write --hub https://HOST:PORT\n"
    );
}
