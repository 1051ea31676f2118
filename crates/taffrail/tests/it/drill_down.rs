//! Questions for which a hub asks clusters: it asks only those that a question is about.

use serde_json::json;
use snapbox::str;
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::objects::{self, namespace};

use super::hub::Hub;
use super::served::Served;
use super::{Answer, assert_shown, command, run};

#[test]
fn a_hub_asks_only_the_clusters_of_an_app() {
    let served = Served::start(&["one", "two"], |name, cluster| {
        cluster.apply(namespace("shop")).unwrap();
        let mut web = objects::deployment("shop", "web", 2);
        web["metadata"]["labels"] = json!({"app.kubernetes.io/instance": format!("app-{name}")});
        cluster.apply(web).unwrap();
    });
    let hub = Hub::serving(&served.kubeconfig, 2, "127.0.0.1:0", &[]);
    hub.wait_for_apps(2);
    // Whoever asked the first cluster for its events would say that it does not answer.
    served.clusters[0].fault(Fault::new(Trouble::Hang).verb("list").resource("events"));
    let ask = |name: &str, time: &str| {
        let mut command = command(&["events", name, "--hub", &hub.url(), "--timeout", time]);
        command.env("TAFFRAIL_HUB_TOKEN", hub.token());
        run(command, b"")
    };
    let answer = ask("app-two", "60s");
    assert_eq!((answer.code, &*answer.stderr), (0, "No warnings about 'app-two'.\n"), "{}", answer.stdout);
    let answer = ask("app-one", "60s");
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stderr.contains("one: "), "{}", answer.stderr);
    // The hub answers within the time that the command has.
    let answer = ask("app-one", "4s");
    assert_eq!(answer.code, 3, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stderr.contains("one: "), "{}", answer.stderr);
}

/// A hub that follows two clusters, the second of which has gone dark.
struct Dark {
    served: Served,
    hub: Hub,
}

impl Dark {
    /// Starts the clusters, the hub, and then the trouble: in `two` there is an app of Flux beside the app by labels.
    fn start() -> Dark {
        let served = Served::start(&["one", "two"], |name, cluster| {
            cluster.apply(namespace("shop")).unwrap();
            let mut web = objects::deployment("shop", "web", 2);
            web["metadata"]["labels"] = json!({"app.kubernetes.io/instance": format!("app-{name}")});
            if name == "one" {
                web["status"]["readyReplicas"] = json!(0);
            } else {
                cluster.apply(objects::kustomizations()).unwrap();
                let condition = json!({"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded",
                    "message": "Applied revision: main", "lastTransitionTime": "2026-03-01T10:00:00Z"});
                let synced = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                    "metadata": {"namespace": "shop", "name": "synced", "generation": 1},
                    "status": {"observedGeneration": 1, "conditions": [condition]}});
                cluster.apply(synced).unwrap();
            }
            cluster.apply(web).unwrap();
        });
        let hub = Hub::serving(&served.kubeconfig, 2, "127.0.0.1:0", &[]);
        hub.wait_for_apps(3);
        served.runtime.block_on(async { served.clusters[1].trouble(Trouble::Unreachable) });
        Dark { served, hub }
    }

    /// Starts it, and waits until the hub has noticed the trouble.
    fn noticed() -> Dark {
        let dark = Dark::start();
        dark.hub.wait_for_dark_cluster();
        dark
    }

    /// Asks the hub.
    fn ask(&self, arguments: &[&str]) -> Answer {
        let mut command = command(&[arguments, &["--hub", &self.hub.url(), "--timeout", "60s"]].concat());
        command.env("TAFFRAIL_HUB_TOKEN", self.hub.token());
        run(command, b"")
    }
}

/// Returns `text` without its times, and with as many spaces between words wherever it was written.
fn timeless(text: &str) -> String {
    let times = r"just now|\d+ (s|min)( ago)?|\d+s|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC";
    let text = regex::Regex::new(times).unwrap().replace_all(text, "[AGE]").into_owned();
    regex::Regex::new(" {2,}").unwrap().replace_all(&text, "  ").into_owned()
}

/// A cluster that does not answer is told with what is known of it, beside those that are asked.
#[test]
fn a_hub_tells_what_it_knows_of_a_cluster_that_went_dark() {
    let dark = Dark::noticed();
    let answer = dark.ask(&["explain"]);
    let headlines: Vec<&str> = answer.stdout.lines().filter(|line| line.contains(" in ")).collect();
    assert!(headlines.iter().any(|line| line.contains("app-one in one")), "{headlines:?}");
    let headline = headlines.iter().find(|line| line.contains("app-two in two")).unwrap();
    assert!(headline.contains("Unknown (was Ready"), "{headline}");
    let json = dark.ask(&["explain", "-o", "json"]).json();
    let items = json["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["cluster"] == "two").unwrap();
    assert_eq!((&item["health"], &item["effective"]), (&json!("Current"), &json!("Unknown")));
}

#[test]
fn rows_of_a_dark_cluster_tell_what_was_known_and_why_it_is_unknown_now() {
    let dark = Dark::noticed();
    let told = |arguments: &[&str]| timeless(&dark.ask(arguments).stdout);
    assert_shown(
        &told(&["get", "resources", "--cluster", "two"]),
        str![[r#"
CLUSTER  NAMESPACE  KIND  NAME  STATUS  APP  MESSAGE
two  shop  Deployment  web  Unknown (was Ready, [AGE])  shop/app-two  two does not answer; before: Deployment is available. Replicas: 2

"#]],
    );
    assert_shown(
        &told(&["get", "apps", "--cluster", "two"]),
        str![[r#"
CLUSTER  NAMESPACE  NAME  DELIVERY  STATUS  SINCE  SYNC  APPLIED  MESSAGE
two  shop  app-two  label  Unknown (was Ready, [AGE])  [AGE]  -  -  two does not answer
two  shop  synced  ks  Unknown (was Ready, [AGE])  [AGE]  Unknown  -  two does not answer; before: the app names no source

"#]],
    );
    assert_shown(
        &told(&["tree", "app-two"]),
        str![[r#"
two:
OBJECT  STATUS  AGE  MESSAGE
label shop/app-two  Unknown (was Ready)  two does not answer
└── Deployment shop/web  Unknown (was Ready)  [AGE]

"#]],
    );
    let json = dark.ask(&["get", "resources", "--cluster", "two", "-o", "json"]).json();
    let row = &json["items"][0];
    let states = ["/health", "/effective", "/freshness/state", "/problem/state"];
    let states = states.map(|path| row.pointer(path).and_then(|state| state.as_str()).unwrap_or_default());
    assert_eq!(states, ["Current", "Unknown", "lost", "Lost"], "{row}");
    assert_eq!(row["freshness"]["observedAt"], row["problem"]["since"]);
    let live = dark.ask(&["get", "resources", "--cluster", "one", "-o", "json"]).json();
    assert_eq!((live["items"][0].get("freshness"), live["items"][0].get("problem")), (None, None));
}

#[test]
fn an_image_that_a_dark_cluster_may_run_is_not_reported_as_absent() {
    let dark = Dark::noticed();
    let pods = ["get", "resources", "--kind", "pod", "--image", "nothing"];
    let answer = dark.ask(&pods);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert_shown(
        &timeless(&answer.stdout),
        str![[r#"
CLUSTER  NAMESPACE  KIND  NAME  STATUS  APP  IMAGES  MESSAGE
two  -  -  -  Unknown  -  -  last seen [AGE]: what it holds now is not known

"#]],
    );
    let unknown = dark.ask(&[&pods[..], &["--status", "Failed"]].concat());
    let said = "No objects of apps match these filters, but cluster two could not be read: its objects are unknown.\n";
    assert!(unknown.stderr.starts_with(said) && unknown.code == 3, "{}", unknown.stderr);
    // A cluster that is not asked changes nothing.
    let one = dark.ask(&[&pods[..], &["--cluster", "one"]].concat());
    assert!(one.stderr.starts_with("No objects of apps match these filters.\n"), "{}", one.stderr);
    let direct = dark.served.ask(&pods);
    assert_eq!(direct.code, 3);
    assert!(
        direct.stdout.contains("two") && direct.stdout.contains("nothing is known of it"),
        "{}",
        direct.stdout
    );
    let known = dark.ask(&["get", "resources", "--image", "web"]);
    assert!(known.stdout.contains("Unknown (was Ready"), "{}", known.stdout);
}

#[test]
fn a_hub_tells_what_it_knew_also_before_it_notices_that_a_cluster_went_dark() {
    let dark = Dark::start();
    let answer = dark.ask(&["get", "resources", "--image", "web", "--cluster", "two"]);
    assert!(answer.stdout.contains("Unknown (was Ready"), "{}{}", answer.stdout, answer.stderr);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
}

#[test]
fn next_steps_ask_nothing_of_a_dark_cluster() {
    let dark = Dark::noticed();
    let explained = dark.ask(&["explain", "synced", "-o", "json"]).json();
    assert_eq!(explained["next"], json!(["taffrail get clusters --cluster two"]), "{explained}");
    let told = dark.ask(&["explain", "synced"]).stdout;
    let step = format!("  taffrail get clusters --cluster two --hub {}\n", dark.hub.url());
    assert!(told.ends_with(&step), "{told}");
    let trust = dark.ask(&["trust", "--cluster", "two", "-o", "json"]).json();
    let next = trust["items"].as_array().unwrap().iter().flat_map(|item| item["next"].as_array());
    let next: Vec<&str> = next.flatten().filter_map(|step| step.as_str()).collect();
    assert!(next.contains(&"taffrail get clusters --cluster two"), "{trust}");
    assert!(next.iter().all(|step| step.starts_with("taffrail ")), "{next:?}");
}

#[test]
fn why_a_cluster_could_not_be_read_is_told_once() {
    let dark = Dark::noticed();
    let commands: [&[&str]; 6] = [
        &["get", "apps"],
        &["get", "clusters"],
        &["get", "resources"],
        &["explain", "synced"],
        &["tree", "app-two"],
        &["events"],
    ];
    for arguments in commands {
        for Answer { stderr, .. } in [dark.ask(arguments), dark.served.ask(arguments)] {
            assert_eq!(stderr.matches(" two: ").count(), 1, "{arguments:?}: {stderr}");
        }
    }
    let trust = dark.ask(&["trust", "--cluster", "two"]).stdout;
    let unread = trust.lines().filter(|line| line.starts_with("  unread ") && !line.contains("Deployment"));
    assert_eq!(unread.count(), 1, "{trust}");
}
