//! The real Prometheus scrapes the texts of the families: rows and unobserved parts are those of the stand-in.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use taffrail_testkit::prometheus::Prometheus;

use crate::families::{ARGO, CONFIG_SYNC, CUSTOM_RESOURCES, FLUX, FLUX_INFO, hub};
use crate::stage::Stage;

const GREEN: &str =
    r#"argocd_app_info{namespace="argocd",name="shop",health_status="Healthy",sync_status="Synced"} 1"#;

/// The row of a sample that is a minute old.
const LATE: &str = "eu argo-application argocd/shop: Unknown (was Ready, 1 min ago), Unknown ? - [cluster eu has not been \
    observed for some time] - Objects Revisions Applied Suspended Source Message\n";

/// The texts that targets expose, by their paths; other paths answer 404.
type Texts = Arc<Mutex<HashMap<&'static str, String>>>;

/// Starts to serve texts; returns the address.
fn expose(texts: &Texts) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let texts = Arc::clone(texts);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let texts = Arc::clone(&texts);
            std::thread::spawn(move || serve(stream, &texts));
        }
    });
    address
}

fn serve(mut stream: TcpStream, texts: &Texts) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(first)) = lines.next() {
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
        let (status, body) = match texts.lock().unwrap().get(&*path) {
            // A sample of a minute ago, with a time of its own.
            Some(text) if path == "late" => {
                let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
                (200, format!("{text} {}\n", (at - Duration::from_secs(60)).as_millis()))
            }
            Some(text) => (200, format!("{text}\n")),
            None => (404, String::new()),
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

/// A stage that reads one job, by the real clock.
struct RealStage {
    stage: Stage,
    begun: Instant,
    start: Duration,
}

impl RealStage {
    async fn of(prometheus: &Prometheus, job: &str, more: &str) -> RealStage {
        let stage = Stage::at(&prometheus.url, &format!("  matchers: job=\"{job}\"\n{more}")).await;
        let start = stage.now;
        RealStage { stage, begun: Instant::now(), start }
    }

    /// Reads the server now, and returns the table of rows.
    async fn read(&mut self) -> String {
        self.stage.now = self.start + self.begun.elapsed();
        self.stage.read().await;
        self.stage.table()
    }

    /// Reads until the table is as expected, or for ten seconds.
    async fn read_until(&mut self, expected: &str) {
        let began = Instant::now();
        let mut table = self.read().await;
        while table != expected && began.elapsed() < Duration::from_secs(10) {
            tokio::time::sleep(Duration::from_millis(500)).await;
            table = self.read().await;
        }
        assert_eq!(table, expected);
    }
}

/// Returns the table of the stand-in for the texts, one after the other.
async fn expected(more: &str, texts: &[&str]) -> String {
    let mut stage = Stage::with(more, &[]).await;
    for text in texts {
        stage.scrapes(text, 2).await;
    }
    stage.table()
}

#[tokio::test]
async fn families_scraped_by_the_real_prometheus_are_those_of_the_table() {
    let red = r#"taffrail_app_state{app="flux-kustomization/flux-system/shop",cluster="us"} 0"#;
    let (listed, well) = (hub(red, 4, 1), hub("", 5, 0));
    let texts: Texts = Arc::default();
    let set = |path, text: &str| drop(texts.lock().unwrap().insert(path, text.to_owned()));
    const JOBS: [&str; 11] =
        ["argo", "flux", "info", "config", "custom", "hub", "dropped", "renamed", "doubled", "late", "down"];
    for (job, text) in JOBS.into_iter().zip([ARGO, FLUX, FLUX_INFO, CONFIG_SYNC, CUSTOM_RESOURCES, &listed]) {
        set(job, text);
    }
    let doubled = format!("{GREEN}\n{}", GREEN.replace("Healthy", "Degraded"));
    for (job, text) in
        [("dropped", GREEN), ("renamed", GREEN), ("doubled", &doubled), ("late", GREEN), ("down", GREEN)]
    {
        set(job, text);
    }
    let address = expose(&texts);
    let job = |job: &str| {
        format!(
            "- job_name: {job}\n  metrics_path: /{job}\n  static_configs: [{{targets: ['{address}'], labels: {{cluster: eu}}}}]\n"
        )
    };
    let jobs: String = JOBS.into_iter().map(job).collect();
    let config = format!("global: {{scrape_interval: 1s}}\nscrape_configs:\n{jobs}");
    let started = tokio::task::spawn_blocking(move || Prometheus::start(&config)).await.unwrap();
    let prometheus = match started {
        Ok(prometheus) => prometheus,
        Err(why) => {
            // Past the capture of the test runner: it did not pass.
            let _ = writeln!(std::io::stderr(), "families_scraped_by_the_real_prometheus: skipped: {why:#}");
            return;
        }
    };
    let mut disturbed = HashMap::new();
    for job in ["dropped", "renamed", "down"] {
        let mut stage = RealStage::of(&prometheus, job, "").await;
        stage.read_until(&expected("", &[GREEN]).await).await;
        disturbed.insert(job, stage);
    }
    set("dropped", "other 1");
    set("renamed", &GREEN.replace("argocd_app_info", "argocd_application_info"));
    drop(texts.lock().unwrap().remove("down"));
    let vanished = Instant::now();
    let destinations = "  destinations: {'https://10.1.1.1:6443/': us}\n";
    for (job, more, text) in [
        ("argo", destinations, ARGO),
        ("flux", "", FLUX),
        ("info", "", FLUX_INFO),
        ("config", "", CONFIG_SYNC),
        ("custom", "", CUSTOM_RESOURCES),
        ("doubled", "", &*doubled),
    ] {
        RealStage::of(&prometheus, job, more).await.read_until(&expected(more, &[text]).await).await;
    }
    let mut other = RealStage::of(&prometheus, "hub", "").await;
    other.read_until(&expected("", &[&listed]).await).await;
    set("hub", &well);
    other.read_until(&expected("", &[&listed, &well]).await).await;
    let mut late = RealStage::of(&prometheus, "late", "").await;
    late.read_until(LATE).await;
    // Within some scrapes, and not after 45 s: a target that is down is stale at once.
    let down = disturbed.get_mut("down").unwrap();
    let table = down.read().await;
    assert!(!down.stage.is_any_green(), "{table}");
    let passed = vanished.elapsed();
    for job in ["dropped", "renamed"] {
        let stage = disturbed.get_mut(job).unwrap();
        let table = stage.read().await;
        assert_eq!(stage.stage.is_any_green(), passed < Duration::from_secs(40), "{table}");
    }
    tokio::time::sleep(Duration::from_secs(50).saturating_sub(vanished.elapsed())).await;
    for job in ["dropped", "renamed"] {
        let stage = disturbed.get_mut(job).unwrap();
        let table = stage.read().await;
        assert_eq!(stage.stage.rows().len(), 1);
        assert!(!stage.stage.is_any_green(), "{table}");
    }
}
