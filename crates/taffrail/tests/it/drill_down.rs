//! Questions for which a hub asks clusters: it asks only those that a question is about, and only while the asker waits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taffrail_testkit::server::{Reply, Request, Server, Traffic, core_discovery};

use super::bad_clusters::kubeconfig;
use super::hub::Hub;

/// A cluster with a ConfigMap that is an app of this name. It never tells its events.
fn cluster(app: &'static str) -> Server {
    let list = |kind: &str, items: &Value| {
        let metadata = json!({"resourceVersion": "5"});
        let list =
            json!({"kind": format!("{kind}List"), "apiVersion": "v1", "metadata": metadata, "items": items});
        Reply::json(200, list.to_string())
    };
    Server::start(move |request: &Request| {
        let kinds = [("configmaps", "ConfigMap"), ("events", "Event")];
        if let Some(reply) = core_discovery(request, &kinds) {
            return reply;
        }
        let labels = json!({"app.kubernetes.io/instance": app});
        let metadata = json!({"namespace": "shop", "name": app, "labels": labels, "resourceVersion": "4"});
        let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        match &*request.path {
            _ if request.query.contains("watch=") => Reply::stuck(""),
            path if path.ends_with("/events") => Reply::stuck(""),
            path if path.ends_with("/configmaps") => list("ConfigMap", &json!([settings])),
            _ => Reply::status(404, "NotFound", "there is no such object"),
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
    hub.wait_until_complete();
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
