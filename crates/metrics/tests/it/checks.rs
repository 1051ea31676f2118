//! Checks that a stand-in for Prometheus evaluates.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use taffrail_api::AppName;
use taffrail_api::checks::{CheckedApp, EvaluatedCheck};
use taffrail_api::report::{AppId, DeclaredHalf};
use taffrail_apps::{ClusterId, Delivery, SyncState};
use taffrail_metrics::{CheckRunner, CheckedApps, MetricsConfig};

use crate::prometheus::FakePrometheus;

/// Apps that declare checks, and the results that came.
struct Apps {
    declared: Vec<CheckedApp>,
    results: Mutex<Vec<EvaluatedCheck>>,
}

impl CheckedApps for Apps {
    fn apps(&self) -> Vec<CheckedApp> {
        self.declared.clone()
    }

    fn take(&self, evaluated: Vec<EvaluatedCheck>) {
        self.results.lock().unwrap().extend(evaluated);
    }
}

/// Returns the app of this name in a cluster, with what its annotation says.
fn app(name: &str, cluster: &str, annotation: &str) -> CheckedApp {
    let object = serde_json::json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": name, "namespace": "shop", "annotations": {"taffrail.dev/checks": annotation}},
    });
    let document = taffrail_object::json::OwnedDocument::parse(object.to_string().into_bytes()).unwrap();
    let checks = taffrail_apps::declared_checks(&taffrail_object::Object::new(document.root()).unwrap());
    let half = DeclaredHalf::new(name.to_owned(), ClusterId(cluster.to_owned()), SyncState::Synced);
    let declared = DeclaredHalf { checks, ..half };
    let app = AppName {
        delivery: Delivery::FluxKustomization,
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    };
    CheckedApp {
        app: Arc::new(AppId { home: ClusterId(cluster.to_owned()), app }),
        target: ClusterId(cluster.to_owned()),
        names: vec![cluster.to_owned()].into(),
        declared: Arc::new(declared),
    }
}

#[tokio::test]
async fn checks_read_the_series_of_their_own_cluster_alone() {
    let prometheus = FakePrometheus::start().await;
    for (cluster, value) in [("eu", 0.5), ("us", 3.0)] {
        let target = format!(r#"job="web",instance="{cluster}",cluster="{cluster}""#);
        prometheus.scrape(&target, &format!("errors{{service=\"web\"}} {value}\nerrors{{service=\"db\"}} 9"));
    }
    let text = format!(
        "servers:\n- {{name: prom, url: '{}', checksPerMinute: 6000}}\nchecks:\n\
         - {{name: errors, query: 'errors{{service=\"${{service}}\"}}', below: 1}}\n",
        prometheus.url
    );
    let config = MetricsConfig::parse(&text, Path::new("metrics.yaml")).unwrap();
    let apps = Arc::new(Apps {
        declared: vec![
            app("one", "eu", "errors: {service: web}"),
            app("two", "us", "errors: {service: web}"),
            app("three", "us", r#"errors: {service: 'web",cluster="eu'}"#),
            app("four", "eu", "errors: {}\nnothing: {}"),
        ],
        results: Mutex::default(),
    });
    let begun = std::time::Instant::now();
    let runner =
        CheckRunner::new(&config, Arc::clone(&apps) as Arc<dyn CheckedApps>, move || begun.elapsed(), |_| {});
    let running = tokio::spawn(runner.run());
    let told = || {
        let results = apps.results.lock().unwrap();
        let line = |it: &EvaluatedCheck| {
            let value = it.result.value.map(|value| value.to_string()).unwrap_or_default();
            format!(
                "{} {}={} {value} {}",
                it.app.app.name, it.result.name, it.result.result, &*it.result.message
            )
        };
        let mut lines: Vec<String> = results.iter().map(line).collect();
        lines.sort();
        lines.dedup();
        lines
    };
    tokio::time::timeout(Duration::from_secs(20), async {
        while told().len() < 5 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("{:?}", told()));
    running.abort();
    assert_eq!(
        told(),
        [
            "four errors=nodata  the check needs the parameter 'service'",
            "four nothing=nodata  the hub has no such check",
            "one errors=true 0.5 ",
            "three errors=nodata  the query returned no series",
            "two errors=false 3 3 is not below 1",
        ]
    );
}
