//! Questions for which a hub asks clusters: it asks only those that a question is about.

use serde_json::json;
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::objects::{self, namespace};

use super::hub::Hub;
use super::served::Served;
use super::{command, run};

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

/// A cluster that does not answer is told with what is known of it, beside those that are asked.
#[test]
fn a_hub_tells_what_it_knows_of_a_cluster_that_went_dark() {
    let served = Served::start(&["one", "two"], |name, cluster| {
        cluster.apply(namespace("shop")).unwrap();
        let mut web = objects::deployment("shop", "web", 2);
        web["metadata"]["labels"] = json!({"app.kubernetes.io/instance": format!("app-{name}")});
        if name == "one" {
            web["status"]["readyReplicas"] = json!(0);
        }
        cluster.apply(web).unwrap();
    });
    let hub = Hub::serving(&served.kubeconfig, 2, "127.0.0.1:0", &[]);
    hub.wait_for_apps(2);
    served.runtime.block_on(async { served.clusters[1].trouble(Trouble::Unreachable) });
    hub.wait_for_dark_cluster();
    let ask = |arguments: &[&str]| {
        let mut command = command(&[arguments, &["--hub", &hub.url(), "--timeout", "60s"]].concat());
        command.env("TAFFRAIL_HUB_TOKEN", hub.token());
        run(command, b"")
    };
    let answer = ask(&["explain"]);
    let headlines: Vec<&str> = answer.stdout.lines().filter(|line| line.contains(" in ")).collect();
    assert!(headlines.iter().any(|line| line.contains("app-one in one")), "{headlines:?}");
    let dark = headlines.iter().find(|line| line.contains("app-two in two")).unwrap();
    assert!(dark.contains("Unknown (was Ready"), "{dark}");
    let json = ask(&["explain", "-o", "json"]).json();
    let items = json["items"].as_array().unwrap();
    let dark = items.iter().find(|item| item["cluster"] == "two").unwrap();
    assert_eq!((&dark["health"], &dark["effective"]), (&json!("Current"), &json!("Unknown")));
}
