//! A hub that reads a metrics server, here a stand-in.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snapbox::str;
use taffrail_sim::{PrometheusApi, seconds_now};
use taffrail_testkit::objects::{self, namespace};
use tempfile::TempDir;

use super::demo::Demo;
use super::hub::Hub;
use super::served::Served;
use super::{assert_shown, command, taffrail};

/// Starts a stand-in that scrapes these metrics each second, until the tests end, and writes the list of servers.
fn prometheus(folder: &TempDir, metrics: &'static str) -> String {
    let (sender, started) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let api = PrometheusApi::start().await.unwrap();
            let mut seconds = tokio::time::interval(Duration::from_secs(1));
            loop {
                seconds.tick().await;
                api.scrapes().scrape(r#"job="tools",instance="1:80""#, metrics, seconds_now()).unwrap();
                // After the first time nobody waits for it.
                let _ = sender.send(api.url());
            }
        })
    });
    let url = started.recv().unwrap();
    let file = folder.path().join("metrics.yaml");
    std::fs::write(&file, format!("servers:\n- {{name: prom, url: '{url}', interval: 5s}}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Returns the table of `get apps` once it has `text`.
fn table(hub: &Hub, arguments: &[&str], text: &str) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), hub.token()).unwrap();
    let began = Instant::now();
    loop {
        let url = hub.url();
        let asking = ["--hub", &url, "--hub-token-file", file.path().to_str().unwrap()];
        let answer = taffrail(&[arguments, &asking].concat(), "");
        if answer.stdout.contains(text) {
            return answer.stdout;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{}{}", answer.stdout, answer.stderr);
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Starts a hub of a server that tells of an app of Argo CD and of one of Flux; the folder must stay as long as the hub.
fn hub_of_two_apps() -> (Hub, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = prometheus(
        &folder,
        r#"
argocd_app_info{cluster="eu",namespace="argocd",name="shop",health_status="Healthy",sync_status="Synced"} 1
gotk_resource_info{cluster="us",customresource_kind="Kustomization",exported_namespace="flux-system",name="apps",ready="True",suspended="false",revision="main@sha1:0123456789abcdef0123456789abcdef01234567"} 1
"#,
    );
    let arguments = ["hub", "serve", "--clusters-from", "none", "--listen", "127.0.0.1:0"];
    let hub = Hub::started(command(&[&arguments[..], &["--metrics-from", &file]].concat()), 0);
    (hub, folder)
}

/// Returns the answers of `get apps -o json` and `get clusters -o json` about the cluster with the app of Flux.
pub(super) fn of_flux() -> [Value; 2] {
    let (hub, _folder) = hub_of_two_apps();
    let list = |what, until| {
        let shown = table(&hub, &["get", what, "-o", "json", "--cluster", "us"], until);
        serde_json::from_str(&shown).unwrap()
    };
    [list("apps", "\"live\""), list("clusters", "\"live\"")]
}

#[test]
fn hub_shows_the_apps_that_metrics_tell_of() {
    let (hub, _folder) = hub_of_two_apps();
    // A cluster is live once it has proved itself twice.
    let shown = table(&hub, &["get", "apps"], "declaring object");
    assert_shown(
        &shown,
        str![[r#"
CLUSTER   NAMESPACE     NAME   DELIVERY   STATUS    SINCE   SYNC     APPLIED              MESSAGE
eu        argocd        shop   argo       Ready     -       Synced   -
us        flux-system   apps   ks         Unknown   -       Synced   main@sha1:01234567   gotk_resource_info: the declaring object is ready, and the objects are not observed

"#]],
    );
    let [apps, clusters] = of_flux();
    assert_eq!(clusters["items"][0]["source"], "prometheus/prom");
    let unobserved = &apps["items"][0]["unobserved"];
    assert_eq!(*unobserved, json!(["health", "objects", "revisions", "source", "message"]));
}

#[test]
fn cluster_that_the_hub_follows_is_joined_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = prometheus(
        &folder,
        r#"argocd_app_info{cluster="eu-1",namespace="argocd",name="only-by-metrics",health_status="Healthy",sync_status="Synced"} 1"#,
    );
    let demo = Demo::start(&["--hold", "--skip", "2m"]);
    let arguments = ["hub", "serve", "--all-contexts", "--kubeconfig", demo.kubeconfig().to_str().unwrap()];
    let more = ["--listen", "127.0.0.1:0", "--metrics-from", &file];
    let hub = Hub::started(command(&[&arguments[..], &more].concat()), 12);
    hub.wait_until_complete();
    let began = Instant::now();
    // Commands answer from the clusters that the hub reads; what metrics add is in its own lists.
    // Until it is read, a cluster is not known to be the one that metrics tell of.
    while hub.list("/api/v1/clusters")["total"] != 12
        || !hub.list("/api/v1/apps?cluster=eu-1").to_string().contains("only-by-metrics")
    {
        assert!(began.elapsed() < Duration::from_secs(60), "it is never shown");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn restarted_hub_shows_what_metrics_told_as_unknown_until_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    const SERIES: &str =
        r#"argocd_app_info{cluster="eu",namespace="argocd",name="shop",health_status="Healthy"} 1"#;
    let file = prometheus(&folder, SERIES);
    let data = folder.path().join("data");
    let serve = || {
        let arguments = ["hub", "serve", "--clusters-from", "none", "--listen", "127.0.0.1:0"];
        let more = ["--data", data.to_str().unwrap(), "--metrics-from", &file];
        Hub::started(command(&[&arguments[..], &more].concat()), 0)
    };
    let hub = serve();
    table(&hub, &["get", "apps"], "Ready");
    hub.until_saved();
    drop(hub);
    std::fs::write(&file, "servers:\n- {name: prom, url: 'http://127.0.0.1:1'}\n").unwrap();
    let shown = table(&serve(), &["get", "apps"], "shop");
    assert!(shown.contains("Unknown (was Ready"), "{shown}");
}

#[test]
fn wrong_list_of_servers_is_refused_before_the_hub_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("metrics.yaml");
    let path = |file: &Path| file.to_str().unwrap().to_owned();
    let serve = |file: &Path| {
        taffrail(&["hub", "serve", "--clusters-from", "none", "--metrics-from", &path(file)], "")
    };
    let missing = serve(&file);
    assert_eq!(missing.code, 2);
    std::fs::write(&file, "servers:\n- name: prom\n  url: prometheus.example\n").unwrap();
    let wrong = serve(&file);
    assert_eq!(wrong.code, 2);
    let shown = format!("{}{}", missing.stderr, wrong.stderr).replace(&path(folder.path()), "DIR");
    assert_shown(
        &shown,
        str![[r#"
error: cannot read the list of metrics servers in DIR/metrics.yaml: No such file or directory (os error 2)
 hint: name a file that lists servers: --metrics-from FILE
error: the list of metrics servers in DIR/metrics.yaml:3: 'prometheus.example' is not the URL of a metrics server
 hint: write https://HOST[:PORT][/PATH], without user, query and the final /api/v1

"#]],
    );
}

/// Starts a hub of a cluster whose app declares three checks; the cluster and the folder must stay as long as the hub.
fn hub_of_checks() -> (Hub, Served, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = prometheus(
        &folder,
        "errors{cluster=\"eu\",service=\"web\"} 0.25\nlatency{cluster=\"eu\",service=\"web\"} 0.1\n",
    );
    let servers = std::fs::read_to_string(&file).unwrap().replace("interval: 5s", "checksPerMinute: 600");
    let checks = "checks:
- {name: error-rate, query: 'errors{service=\"${service}\"}', below: 0.01}
- {name: latency, query: 'latency{service=\"${service}\"}', below: 0.5}
";
    std::fs::write(&file, servers + checks).unwrap();
    let annotation = "error-rate: {service: web}\nlatency: {service: web}\nsaturation: {}\n";
    let served = Served::start(&["eu"], |_, cluster| {
        cluster.apply(namespace("shop")).unwrap();
        cluster.apply(objects::deployment("shop", "web", 2)).unwrap();
        cluster.apply(objects::kustomizations()).unwrap();
        let ready = json!({"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded",
            "message": "Applied revision: main", "lastTransitionTime": "2026-03-01T10:00:00Z"});
        let shop = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": "shop", "name": "shop", "generation": 1,
                "annotations": {"taffrail.dev/checks": annotation}},
            "status": {"observedGeneration": 1, "conditions": [ready], "lastAppliedRevision": "main",
                "inventory": {"entries": [{"id": "shop_web_apps_Deployment", "v": "v1"}]}},
        });
        cluster.apply(shop).unwrap();
    });
    let hub = Hub::serving(&served.kubeconfig, 1, "127.0.0.1:0", &["--metrics-from", &file]);
    (hub, served, folder)
}

/// Returns the answer of `get apps -o json` about an app with results of checks.
pub(super) fn of_checks() -> Value {
    let (hub, _served, _folder) = hub_of_checks();
    table(&hub, &["get", "apps", "--columns", "NAME,CHECKS"], "latency=true");
    serde_json::from_str(&table(&hub, &["get", "apps", "-o", "json"], "error-rate")).unwrap()
}

#[test]
fn results_of_checks_are_shown_and_filtered_beside_the_health() {
    let (hub, served, _folder) = hub_of_checks();
    let columns = ["get", "apps", "--columns", "NAME,CHECKS"];
    let shown = table(&hub, &columns, "latency=true");
    assert_shown(
        &shown,
        str![[r#"
NAME   CHECKS
shop   error-rate=false,saturation=nodata,latency=true

"#]],
    );
    let names = |filter: &str| {
        let shown = table(&hub, &["get", "apps", "-o", "name", "--check", filter], "");
        shown.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names("error-rate=false"), ["flux-kustomization/shop/shop"]);
    assert_eq!(names("error-rate=true"), [""; 0]);
    assert_eq!(names("error-rate=true,saturation=nodata"), ["flux-kustomization/shop/shop"]);
    let row = &hub.list("/api/v1/apps?check=latency=true&problems=check")["items"][0];
    assert_eq!((&row["health"], &row["effective"]), (&json!("Current"), &json!("Current")));
    let results: Vec<(&Value, &Value)> =
        row["checks"].as_array().unwrap().iter().map(|it| (&it["result"], &it["message"])).collect();
    let expected = [
        ("false", json!("0.25 is not below 0.01")),
        ("true", Value::Null),
        ("nodata", json!("the hub has no such check")),
    ];
    assert_eq!(results.len(), expected.len());
    for ((result, message), (word, why)) in results.into_iter().zip(&expected) {
        assert_eq!((result, message), (&json!(word), why));
    }
    assert_eq!(row["checks"][0]["value"], 0.25);
    let problems = row["problems"].as_array().unwrap();
    let of_checks: Vec<_> = problems.iter().filter(|it| it["axis"] == "check").collect();
    assert_eq!((&of_checks[0]["state"], &of_checks[0]["severity"]), (&json!("error-rate"), &json!("error")));
    let detail = table(&hub, &["app", "shop"], "Checks:");
    assert!(
        detail.contains("0.25 is not below 0.01") && detail.contains("the hub has no such check"),
        "{detail}"
    );
    // Without a hub nothing is evaluated.
    let direct =
        taffrail(&["get", "apps", "--kubeconfig", &served.kubeconfig, "--columns", "NAME,CHECKS"], "");
    assert_shown(
        &direct.stdout,
        str![[r#"
NAME   CHECKS
shop   error-rate=nodata,latency=nodata,saturation=nodata

"#]],
    );
}
