//! Questions for which a hub asks clusters: it asks only those that a question is about, and only while the asker waits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_testkit::server::{Reply, Request, Server, Traffic, core_discovery, watch_event};

use super::bad_clusters::kubeconfig;
use super::hub::Hub;

/// A cluster with a ConfigMap that is an app of this name. It never tells its events.
fn cluster(app: &'static str) -> Server {
    Server::start(move |request: &Request| {
        if let Some(reply) = core_discovery(request, &[("configmaps", "ConfigMap"), ("events", "Event")]) {
            return reply;
        }
        if !request.path.ends_with("/configmaps") && !request.path.ends_with("/events") {
            return Reply::status(404, "NotFound", "there is no such object");
        }
        let labels = json!({"app.kubernetes.io/instance": app});
        let metadata = json!({"namespace": "shop", "name": app, "labels": labels, "resourceVersion": "4"});
        let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        // It selects by the label of apps, and by no other.
        let is_listed = request.path.ends_with("/configmaps") && request.query.contains("instance");
        let items: Vec<Value> = is_listed.then_some(settings).into_iter().collect();
        let kind = if request.path.ends_with("/configmaps") { "ConfigMap" } else { "Event" };
        match request.query.contains("watch=") {
            true => {
                let annotations = json!({"k8s.io/initial-events-end": "true"});
                let metadata = json!({"resourceVersion": "5", "annotations": annotations});
                let end = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
                let added = items.iter().map(|item| watch_event("ADDED", item));
                Reply::stuck(added.chain([watch_event("BOOKMARK", &end)]).collect::<String>())
            }
            false if kind == "Event" => Reply::stuck(""),
            false => {
                let metadata = json!({"resourceVersion": "5"});
                let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": items});
                Reply::json(200, list.to_string())
            }
        }
    })
}

/// Returns the number of requests for events that the server has not answered.
fn open_lists(traffic: &Traffic) -> usize {
    traffic.open.iter().filter(|target| target.contains("/events") && !target.contains("watch=")).count()
}

#[test]
fn a_hub_asks_the_clusters_of_an_app_and_stops_once_the_asker_is_gone() {
    let (eu, us) = (cluster("web"), cluster("api"));
    let hub = Hub::of_clusters(&kubeconfig(&[("eu", &eu.url()), ("us", &us.url())]), 2);
    eu.until(|traffic| traffic.count("instance") > 0);
    hub.wait_for_apps(2);
    let ask = |name: &str| {
        let question = json!({"view": "events", "name": name}).to_string();
        hub.send("POST", "/api/v1/questions", &question)
    };
    let begun = Instant::now();
    let asker = ask("web");
    eu.until(|traffic| open_lists(traffic) > 0);
    drop(asker);
    eu.until(|traffic| open_lists(traffic) == 0);
    // Nobody told the server to end them but the asker: each cluster has seven seconds.
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    assert_eq!(us.traffic().count("/events"), 0, "{:?}", us.requests());

    let asker = ask("api");
    us.until(|traffic| open_lists(traffic) > 0);
    drop(asker);
    assert_eq!(open_lists(&eu.traffic()), 0);
}
