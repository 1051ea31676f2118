//! Agents that report simulated clusters to a hub that does not know how to reach them.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snapbox::str;
use taffrail_object::yaml;
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::agents::{AgentProcess, AgentsHub};
use taffrail_testkit::objects::{self, anything, definition, namespace};

use super::served::Served;
use super::{Answer, command, hub_logs, logs, run, taffrail, verbs, watch};

/// A hub for agents alone, with the agents of a served fleet.
struct Hub(AgentsHub);

impl Hub {
    fn start() -> Hub {
        Hub(AgentsHub::start(command).unwrap())
    }

    /// Runs `taffrail hub` with these arguments and the hub's data.
    fn manage(&self, arguments: &[&str]) -> Answer {
        Answer::of(self.0.manage(arguments).unwrap())
    }

    /// Makes a token for an agent, and returns the file that holds it.
    fn token(&self, name: &str, arguments: &[&str]) -> String {
        self.0.token(name, arguments).unwrap()
    }

    /// Starts an agent of a cluster of `served` that keeps its identity in the folder `data`.
    fn agent(&self, served: &Served, context: &str, data: &str, more: &[&str]) -> Agent {
        let data = self.0.path(data);
        Agent(self.0.agent(&served.kubeconfig, context, &[&["--data", &data], more].concat()).unwrap())
    }

    /// Runs an agent of a cluster of `served` to its end.
    fn run_agent(&self, served: &Served, context: &str, data: &str, more: &[&str]) -> Answer {
        let data = self.0.path(data);
        let more = [&["--data", &data], more].concat();
        run(self.0.agent_command(&served.kubeconfig, context, &more), b"")
    }

    /// Asks the hub.
    fn ask(&self, arguments: &[&str]) -> Answer {
        Answer::of(self.0.ask(arguments).unwrap())
    }

    /// Asks the hub until the answer is as `expected` says.
    fn ask_until(&self, arguments: &[&str], expected: impl Fn(&Answer) -> bool) -> Answer {
        let is_expected = |output: &Output| expected(&Answer::of(output.clone()));
        Answer::of(self.0.ask_until(arguments, is_expected).unwrap())
    }
}

/// A running agent, which ends with the test.
struct Agent(AgentProcess);

impl Agent {
    /// Waits for a line on stderr that begins with `text`.
    fn until(&mut self, text: &str) -> String {
        self.0.until(text).unwrap_or_else(|error| panic!("{error:#}"))
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
    let hub = Hub::start();
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

#[test]
fn logs_of_an_agents_cluster_are_read_and_followed_through_it() {
    let served = logs::shop(&["eu"]);
    // The agent asks for it until the cluster says who it is.
    let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "uid-eu"}});
    served.clusters[0].apply(system).unwrap();
    let hub = Hub::start();
    let token = hub.token("agent-token", &[]);
    let mut agent = hub.agent(&served, "eu", "eu", &["--token-file", &token]);
    agent.until("Connected");
    hub.ask_until(&["get", "apps"], |answer| answer.stdout.contains("shop"));
    let mut read = 0;
    for arguments in [
        &["shop"][..],
        &["shop", "--all-pods"],
        &["shop", "--cluster", "eu", "--prefix"],
        &["eu/flux-kustomization/flux-system/shop", "--all-pods"],
        &["deploy/web", "-n", "shop", "--cluster", "eu"],
        &["eu/apps/Deployment/shop/web", "--since", "5m"],
        &["svc/web", "-n", "shop", "--previous", "-c", "web"],
        &["pod/web-a", "-n", "shop", "--previous"],
        &["deploy/nothing", "-n", "shop"],
        &["nothing"],
    ] {
        let arguments = [&["logs"], arguments].concat();
        let places = [" --hub", hub.0.url()].join(" ");
        let direct = hub_logs::seen(served.ask(&arguments), &places);
        let by_hub = hub_logs::seen(hub.ask(&arguments), &places);
        assert_eq!((&by_hub.0, by_hub.2), (&direct.0, direct.2), "{arguments:?} {} {}", by_hub.1, direct.1);
        read += usize::from(!direct.0.is_empty());
    }
    assert!(read > 5, "{read}");

    let pod = ["logs", "pod/web-a", "-n", "shop", "--cluster", "eu", "-f"];
    let mut following = hub.0.ask_command(&pod).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "serving in eu");
    let cluster = &served.clusters[0];
    let mut ended = cluster.get("v1", "Pod", "shop", "web-a").unwrap();
    ended["status"]["phase"] = json!("Succeeded");
    ended["status"]["containerStatuses"][0]["state"] = json!({"terminated": {"exitCode": 0}});
    cluster.apply(ended).unwrap();
    assert_eq!(lines.count(), 0);
    assert_eq!(following.wait().unwrap().code(), Some(0));
}

#[test]
fn operations_on_an_agents_cluster_run_through_it_if_it_allows_them() {
    let served = Served::start_with_managers(&["eu"], verbs::fill);
    let hub = Hub::start();
    let token = hub.token("agent-token", &[]);
    let mut agent = hub.agent(&served, "eu", "eu", &["--token-file", &token]);
    agent.until("Connected");
    hub.ask_until(&["get", "apps"], |answer| answer.stdout.contains("shop"));
    let refused = hub.ask(&["suspend", "shop", "--yes"]);
    assert_eq!(refused.code, 3, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stderr.contains("started without --allow-actions: cluster eu"), "{}", refused.stderr);
    drop(agent);

    let mut agent = hub.agent(&served, "eu", "eu", &["--allow-actions"]);
    agent.until("Connected");
    let is_suspended = || {
        let app =
            served.clusters[0].get("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "shop");
        app.unwrap()["spec"]["suspend"] == true
    };
    let shown = hub.ask_until(&["suspend", "shop", "--dry-run=client"], |answer| answer.code == 0);
    assert!(shown.stdout.contains("suspend: true") && !is_suspended(), "{}", shown.stdout);
    let done = hub.ask(&["suspend", "shop", "--yes"]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    assert!(is_suspended());
    let done = hub.ask(&["resume", "shop", "--yes", "--wait=false"]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    assert!(!is_suspended());
    // The answer of the API server gets lost: the agent looks for what the write left, and sends nothing again.
    let cluster = &served.clusters[0];
    let patches = Fault::new(Trouble::Cut(0)).verb("patch");
    cluster.fault(patches.resource("kustomizations.kustomize.toolkit.fluxcd.io"));
    let version = cluster.resource_version();
    let done = hub.ask(&["suspend", "shop", "--yes"]);
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    assert_eq!(cluster.resource_version(), version + 1);
    cluster.heal_all();
}

#[test]
fn statuses_of_resource_groups_are_written_if_the_agent_is_told_to_and_nobody_else_does() {
    let group = |name: &str| {
        let listed = [json!({"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"})];
        json!({"apiVersion": "kpt.dev/v1alpha1", "kind": "ResourceGroup",
            "metadata": {"namespace": "shop", "name": name}, "spec": {"resources": listed}})
    };
    let served = Served::start_with_managers(&["eu"], |_, cluster| {
        let kind =
            objects::definition("kpt.dev", "v1alpha1", "ResourceGroup", objects::with_spec_and_status());
        let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "uid-eu"}});
        let web = objects::deployment("shop", "web", 2);
        let namespace = objects::namespace("shop");
        for object in [system, namespace, objects::with_status_subresource(kind), web, group("inventory")] {
            cluster.apply(object).unwrap();
        }
        let mut taken = group("taken");
        taken["status"] = json!({"observedGeneration": 1});
        cluster.apply_by(taken, "kpt", "kpt").unwrap();
    });
    let cluster = &served.clusters[0];
    let status =
        || cluster.get("kpt.dev/v1alpha1", "ResourceGroup", "shop", "inventory").unwrap()["status"].clone();
    let hub = Hub::start();
    let token = hub.token("agent-token", &[]);
    let mut agent = hub.agent(&served, "eu", "eu", &["--token-file", &token]);
    agent.until("Connected");
    let apps = ["get", "apps", "-o", "json"];
    let before = hub.ask_until(&apps, |answer| answer.stdout.contains("inventory"));
    assert_eq!(status(), Value::Null, "without the option nothing is written");
    drop(agent);

    let mut agent = hub.agent(&served, "eu", "eu", &["--write-resourcegroup-status"]);
    let told = agent.until("The agent does not write");
    assert_eq!(told, "The agent does not write the status of ResourceGroup shop/taken: 'kpt' does.");
    let begun = Instant::now();
    while status()["resourceStatuses"][0]["status"] != "Current" {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:#}", status());
        std::thread::sleep(Duration::from_millis(50));
    }
    // Views show what they showed before: the agent's words are not those of kpt.
    let items = |answer: &Answer| without_times(&answer.stdout)["items"].clone();
    hub.ask_until(&apps, |answer| items(answer) == items(&before));
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

/// Returns the metrics of an agent that told this line.
fn scraped(line: &str) -> String {
    let address = line.trim_start_matches("Metrics: http://").trim_end_matches("/metrics");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn an_answer_about_followed_clusters_names_those_of_agents_that_it_leaves_out() {
    let served = watch::served();
    let more = ["--clusters-from", "kubeconfig", "--context", "one", "--kubeconfig", &served.kubeconfig];
    let hub = Hub(AgentsHub::start_with(command, &more).unwrap());
    let token = hub.token("agent-token", &[]);
    let mut agent = hub.agent(&served, "two", "two", &["--token-file", &token]);
    agent.until("Connected: the agent reports cluster 'two'.");
    hub.ask_until(&["get", "apps"], |answer| rows(answer).len() == 2);
    for view in [&["app", "shop"][..], &["tree", "shop"], &["explain", "shop"], &["explain"]] {
        let mixed = hub.ask(view);
        // Apps that are well need no explanation.
        let is_told = view.contains(&"shop");
        assert_eq!(mixed.stdout.is_empty(), !is_told, "{view:?}: {}{}", mixed.stdout, mixed.stderr);
        assert_eq!(mixed.code, 3, "{view:?}: {}", mixed.stderr);
        let said = "two: an agent reports the cluster, and the hub does not read it; its agent answers about it alone: --cluster two";
        assert!(mixed.stderr.contains(said), "{view:?}: {}", mixed.stderr);
    }
    let trust = hub.ask(&["trust"]);
    assert!(trust.stdout.contains("an agent reports the cluster"), "{}{}", trust.stdout, trust.stderr);
    let statuses = hub.ask(&["status", "deploy/web", "-n", "shop"]);
    assert!(statuses.stderr.contains("two: an agent reports the cluster"), "{}", statuses.stderr);
    let both = hub.ask(&["tree", "shop", "--cluster", "one", "--cluster", "two"]);
    assert!(both.stderr.contains("this is about several clusters (two, one)"), "{}", both.stderr);
    assert_eq!(hub.ask(&["tree", "shop", "--cluster", "one"]).code, 0);
    assert_eq!(hub.ask(&["tree", "shop", "--cluster", "two"]).code, 0);
    // No cluster that the hub reads itself answers any more.
    served.runtime.block_on(async { served.clusters[0].trouble(Trouble::Unreachable) });
    hub.ask_until(&["get", "clusters"], |answer| answer.stdout.contains("last seen"));
    for view in [&["tree", "shop"][..], &["explain"]] {
        let left_out = hub.ask(view);
        let said = "two: an agent reports the cluster, and the hub does not read it";
        assert!(left_out.stderr.contains(said), "{view:?}: {}", left_out.stderr);
    }
}

#[test]
fn history_tells_what_happened_while_the_hub_was_away() {
    let served = watch::served();
    let mut hub = Hub::start();
    let cluster = &served.clusters[0];
    let token = hub.token("agent-token", &[]);
    let more = ["--token-file", &token, "--name", "eu-1", "--metrics-listen", "127.0.0.1:0"];
    let mut agent = hub.agent(&served, cluster.name(), "a", &more);
    let metrics = agent.until("Metrics: http://");
    // Saved: a hub that ends before that knows no state that came before the first one of the spool.
    hub.ask_until(&["history", "shop"], |answer| answer.stdout.contains(" Ready "));
    hub.0.stop();
    agent.until("Not connected; the agent tries again in ");
    let state =
        |status: u8| format!("taffrail_app_state{{app=\"label/shop/shop\",cluster=\"eu-1\"}} {status}\n");
    for (available, is_told) in [(1, true), (2, false)] {
        cluster.apply(watch::app(1, available)).unwrap();
        let begun = Instant::now();
        while scraped(&metrics).contains(&state(4)) != is_told {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", scraped(&metrics));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    hub.0.restart().unwrap();
    let told = |answer: &Answer| -> Vec<(Value, Value)> {
        let list: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        let entries = list["items"][0]["items"].as_array().cloned().unwrap_or_default();
        let states = entries.iter().map(|it| (it["before"]["health"].clone(), it["after"]["health"].clone()));
        states.filter(|(before, after)| before != after && !before.is_null()).collect()
    };
    // The latest first.
    let expected = [(json!("InProgress"), json!("Current")), (json!("Current"), json!("InProgress"))];
    let history = ["history", "shop", "-o", "json"];
    let answer = hub.ask_until(&history, |answer| told(answer).len() >= expected.len());
    assert_eq!(told(&answer), expected, "{}", answer.stdout);
}

#[test]
fn an_agent_goes_on_after_its_hub_restarts_and_is_listed_and_revoked() {
    let served = watch::served();
    let mut hub = Hub::start();
    let name = served.clusters[0].name().to_owned();
    let token = hub.token("agent-token", &[]);
    let (listen, spool) = (["--metrics-listen", "127.0.0.1:0"], hub.0.path("spool"));
    let more = ["--token-file", &token, "--name", "eu-1", "--spool-dir", &spool, listen[0], listen[1]];
    let mut agent = hub.agent(&served, &name, "a", &more);
    let metrics = agent.until("Metrics: http://");
    agent.until("Connected: the agent reports cluster 'eu-1'.");
    let is_live = |answer: &Answer| {
        answer.code == 0 && answer.stdout.contains("eu-1") && !answer.stdout.contains("Unknown")
    };
    hub.ask_until(&["get", "clusters"], is_live);
    hub.0.restart().unwrap();
    agent.until("Not connected; the agent tries again in ");
    agent.until("Connected: the agent reports cluster 'eu-1'.");
    hub.ask_until(&["get", "clusters"], is_live);

    // Its own metrics have what the hub shows.
    let answer = scraped(&metrics);
    for series in ["taffrail_cluster_freshness{cluster=\"eu-1\"} 0\n", "taffrail_agent_connected 1\n"] {
        assert!(answer.contains(series), "{answer}");
    }
    assert!(answer.contains("state=\"Current\"} 1\n"), "{answer}");

    let listed = hub.manage(&["agents"]);
    snapbox::assert_data_eq!(
        &*listed.stdout,
        "CLUSTER   STATE      VERSION   ENROLLED            SEEN                CERTIFICATE-UNTIL   VIA   GAP   UID\n\
         eu-1      enrolled   [..]     [..]Z   [..]Z   [..]Z   TLS   -     [..]\n"
    );
    let revoked = hub.manage(&["revoke", "eu-1"]);
    assert_eq!((revoked.code, &*revoked.stderr), (0, "The agent of cluster eu-1 is revoked.\n"));
    assert_eq!(agent.until("error"), "error: the hub refuses the agent: the agent was revoked");
    assert_eq!(agent.0.wait().unwrap().code(), Some(3));
    let again = hub.manage(&["revoke", "eu-1"]);
    assert_eq!(again.code, 2, "{}", again.stderr);
}

#[test]
fn who_may_not_enrol_is_told_why_and_what_to_do() {
    let served = watch::served();
    let hub = Hub::start();
    let name = served.clusters[0].name().to_owned();
    let run = |data: &str, more: &[&str]| hub.run_agent(&served, &name, data, more);
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
    std::fs::write(hub.0.path("wrong"), "no token").unwrap();
    let refused = run("e", &["--token-file", &hub.0.path("wrong")]);
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

#[test]
fn manifest_names_every_kind_and_grants_no_write_but_to_its_own_secret() {
    let served = watch::served();
    let hub = Hub::start();
    let name = served.clusters[0].name();
    let token = hub.token("agent-token", &[]);
    let print = |more: &[&str]| {
        let fixed = ["agent", "manifest", "--hub", hub.0.url(), "--context", name];
        let answer = taffrail(&[&fixed, &["--kubeconfig", &served.kubeconfig][..], more].concat(), "");
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer
    };
    let answer = print(&["--token-file", &token, "--image", "registry.example.com/taffrail:0.1.0"]);
    let documents: Vec<Value> = yaml::read_all(&answer.stdout).unwrap();
    let named: Vec<String> = documents
        .iter()
        .map(|it| format!("{} {}", it["kind"].as_str().unwrap(), it["metadata"]["name"].as_str().unwrap()))
        .collect();
    snapbox::assert_data_eq!(
        named.join("\n"),
        str![[r#"
Namespace taffrail
ServiceAccount taffrail-agent
ClusterRole taffrail-agent
ClusterRoleBinding taffrail-agent
Secret taffrail-agent
Role taffrail-agent
RoleBinding taffrail-agent
Secret taffrail-agent-token
Deployment taffrail-agent
"#]]
    );
    assert!(documents[4]["data"].is_null(), "another apply would take the key away: {}", documents[4]);
    assert_eq!(documents[7]["stringData"]["token"], std::fs::read_to_string(&token).unwrap().trim());
    let container = &documents[8]["spec"]["template"]["spec"]["containers"][0];
    let arguments = [
        "agent",
        "--hub",
        hub.0.url(),
        "--name",
        name,
        "--identity-secret",
        "taffrail-agent",
        "--token-file",
        "/var/run/taffrail/token/token",
    ];
    assert_eq!(container["args"], serde_json::json!(arguments));
    let granted = |role: &Value| {
        let words = |rule: &Value, field: &str| -> Vec<String> {
            serde_json::from_value(rule[field].clone()).unwrap_or_default()
        };
        let mut granted = Vec::new();
        for rule in role["rules"].as_array().unwrap() {
            let names = rule["resourceNames"].as_array().map(|names| names.len());
            for resource in words(rule, "resources") {
                granted.push((resource, words(rule, "verbs").join(" "), names));
            }
        }
        granted
    };
    let read = granted(&documents[2]);
    assert!(read.len() > 40, "{read:?}");
    for (resource, verbs, names) in &read {
        assert_eq!(names, &None);
        assert!(!resource.contains('*'), "{resource}");
        let is_log = resource == "pods/log" && verbs == "get";
        assert!(is_log || verbs == "get list watch" && !resource.contains('/'), "{resource} {verbs}");
    }
    assert!(read.iter().any(|(resource, ..)| resource == "secrets"));
    assert_eq!(granted(&documents[5]), [("secrets".to_owned(), "get patch".to_owned(), Some(1))]);

    let answer = print(&["--allow-actions", "--image", "x"]);
    let documents: Vec<Value> = yaml::read_all(&answer.stdout).unwrap();
    let mut written = granted(&documents[2]);
    written.retain(|(_, verbs, _)| !verbs.starts_with("get"));
    let named: Vec<String> = written.iter().map(|(name, verbs, _)| format!("{name} {verbs}")).collect();
    assert_eq!(
        named,
        [
            "daemonsets patch",
            "deployments patch",
            "statefulsets patch",
            "cronjobs patch",
            "jobs patch",
            "jobs create"
        ]
    );
    let container = &documents[7]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"].as_array().unwrap().last().unwrap(), "--allow-actions");

    let answer = print(&["--write-resourcegroup-status", "--image", "x"]);
    let documents: Vec<Value> = yaml::read_all(&answer.stdout).unwrap();
    let mut written = granted(&documents[2]);
    written.retain(|granted| !read.contains(granted));
    assert_eq!(written, [("resourcegroups/status".to_owned(), "get patch".to_owned(), None)]);
    let container = &documents[7]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"].as_array().unwrap().last().unwrap(), "--write-resourcegroup-status");

    let answer = print(&["--without-secrets"]);
    let documents: Vec<Value> = yaml::read_all(&answer.stdout).unwrap();
    assert!(granted(&documents[2]).iter().all(|(resource, ..)| resource != "secrets"));
    assert_eq!(documents.len(), 7, "neither a token nor an image was given");
    snapbox::assert_data_eq!(
        answer.stderr,
        "Without a right to Secrets less is known of 0 of 1 apps (releases of Helm: 0; Applications of Argo CD for other clusters: 0; others that declare a Secret: 0).\n"
    );
}

#[test]
fn an_agent_that_keeps_its_identity_in_a_secret_goes_on_elsewhere() {
    let served = watch::served();
    let hub = Hub::start();
    let cluster = &served.clusters[0];
    let token = hub.token("agent-token", &[]);
    let start = |more: &[&str]| {
        let more = [&["--identity-secret", "default/eu-1", "--name", "eu-1"], more].concat();
        Agent(hub.0.agent(&served.kubeconfig, cluster.name(), &more).unwrap())
    };
    let mut agent = start(&["--token-file", &token]);
    agent.until("Connected: the agent reports cluster 'eu-1'.");
    drop(agent);
    let kept = cluster.get("v1", "Secret", "default", "eu-1").unwrap();
    assert!(kept["data"]["agent.json"].is_string(), "{kept}");
    // As a Pod on another node, whose token is gone.
    start(&["--token-file", "/nowhere/token"]).until("Connected: the agent reports cluster 'eu-1'.");
    start(&[]).until("Connected: the agent reports cluster 'eu-1'.");
}

/// Returns a Node that is ready or not.
fn node(name: &str, ready: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"conditions": [{"type": "Ready", "status": ready, "reason": "KubeletSays", "message": "its word",
            "lastTransitionTime": "2026-03-01T10:00:00Z"}]}})
}

#[test]
fn agents_tell_of_nodes_and_of_the_clusters_for_which_objects_stand() {
    let cluster = |phase: &str| {
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"namespace": "fleet", "name": "edge"},
            "status": {"phase": phase}})
    };
    let served = Served::start_verbatim(&["mgmt", "edge"], |name, filled| {
        let metadata = json!({"name": "kube-system", "uid": format!("uid-{name}")});
        filled.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).unwrap();
        if name == "edge" {
            filled.apply(node("n-1", "True")).unwrap();
            filled.apply(node("n-2", "False")).unwrap();
            return;
        }
        filled.apply(namespace("fleet")).unwrap();
        filled.apply(definition("cluster.x-k8s.io", "v1beta1", "Cluster", anything())).unwrap();
        filled.apply(cluster("Failed")).unwrap();
    });
    let hub = Hub::start();
    let agents = ["mgmt", "edge"].map(|name| {
        let token = hub.token("agent-token", &[]);
        let mut agent = hub.agent(&served, name, name, &["--token-file", &token]);
        agent.until("Connected");
        agent
    });
    let told = |answer: &Answer| {
        let json: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        let rows = json["items"].as_array().cloned().unwrap_or_default();
        let edge = rows.iter().find(|row| row["name"] == "edge").cloned().unwrap_or_default();
        let managed = &edge["managedAs"][0];
        let (nodes, unready) = (&edge["nodes"], &edge["nodes"]["unready"]["name"]);
        format!(
            "{}/{} {unready} {} {} {} {}",
            nodes["ready"],
            nodes["total"],
            managed["cluster"],
            managed["status"],
            managed["unproven"],
            edge["status"]
        )
    };
    let ask = |expected: &str| {
        let list = ["get", "clusters", "-o", "json"];
        let answer = hub.ask_until(&list, |answer| told(answer) == expected);
        assert_eq!(told(&answer), expected, "{}{}", answer.stdout, answer.stderr);
    };
    // The word of the management cluster is only that the objects of this name failed, and edge itself is well.
    ask("1/2 \"n-2\" \"mgmt\" \"Failed\" true \"Current\"");
    served.clusters[0].apply(cluster("Provisioned")).unwrap();
    served.clusters[1].apply(node("n-2", "True")).unwrap();
    ask("2/2 null \"mgmt\" \"Current\" true \"Current\"");
    drop(agents);
}
