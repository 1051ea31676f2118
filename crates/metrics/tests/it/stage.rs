//! A reader of a stand-in for Prometheus, and a hub that gets its reports, by clocks that the test moves.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_api::report::{
    AppId, ClusterView, HalfSide, HeldHalf, Received, SourceMessage, SourceReply, StreamPosition, join,
};
use taffrail_api::{AppRow, ErrorRow, RowPart};
use taffrail_apps::{ClusterId, FreshnessState};
use taffrail_metrics::{KnownClusters, MetricsConfig, MetricsEvent, MetricsReader, MetricsReports};

use crate::prometheus::FakePrometheus;

/// The labels of the target from which most texts are scraped.
pub(crate) const TARGET: &str = r#"job="tool",instance="10.0.0.1:80",cluster="eu""#;

/// The clusters that closer sources know.
#[derive(Default)]
struct Closer(HashMap<String, ClusterId>);

impl KnownClusters for Closer {
    fn clusters(&self) -> HashMap<String, ClusterId> {
        self.0.clone()
    }
}

pub(crate) struct Stage {
    pub(crate) prometheus: FakePrometheus,
    reader: MetricsReader,
    reports: MetricsReports,
    /// The moment now.
    pub(crate) now: Duration,
    pub(crate) hub: BTreeMap<ClusterId, Received>,
    pub(crate) events: Vec<MetricsEvent>,
    pub(crate) windows: Vec<MetricsEvent>,
}

impl Stage {
    pub(crate) async fn new() -> Stage {
        Stage::with("", &[]).await
    }

    /// Makes a stage whose configuration has `more` fields, and where closer sources know clusters by name and identity.
    pub(crate) async fn with(more: &str, closer: &[(&str, &str)]) -> Stage {
        let prometheus = FakePrometheus::start().await;
        let url = prometheus.url.clone();
        Stage::of(prometheus, &url, more, closer)
    }

    /// Makes a stage that reads the server at `url` in place of the stand-in.
    pub(crate) async fn at(url: &str, more: &str) -> Stage {
        Stage::of(FakePrometheus::start().await, url, more, &[])
    }

    pub(crate) fn of(prometheus: FakePrometheus, url: &str, more: &str, closer: &[(&str, &str)]) -> Stage {
        let families = match more.contains("families:") {
            true => "",
            false => "  families: [taffrail, argo-cd, flux, config-sync, kube-state-metrics]\n",
        };
        let text = format!("servers:\n- name: prom\n  url: {url}\n{families}{more}");
        let config = MetricsConfig::parse(&text, Path::new("metrics.yaml")).unwrap().servers.remove(0);
        let known = closer.iter().map(|(name, id)| ((*name).to_owned(), ClusterId((*id).to_owned())));
        let reports = MetricsReports::new(&config, Arc::new(Closer(known.collect())));
        let reader = MetricsReader::new(Arc::new(config));
        let now = Duration::from_secs(1_000_000);
        Stage {
            prometheus,
            reader,
            reports,
            now,
            hub: BTreeMap::new(),
            events: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Lets time pass for the hub, and for the server's clock.
    pub(crate) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.prometheus.state().now += 1.0;
            self.reports.pass(self.now);
            self.deliver();
        }
    }

    /// Reads the server, and lets the hub get all that is due within the next two seconds.
    pub(crate) async fn read(&mut self) {
        let read = self.reader.read(self.now).await;
        let events = self.reports.take(read, self.now);
        let (windows, others): (Vec<_>, Vec<_>) =
            events.into_iter().partition(|event| matches!(event, MetricsEvent::Window { .. }));
        self.windows.extend(windows);
        self.events.extend(others);
        self.deliver();
        self.pass(2);
    }

    /// Scrapes a text and reads it.
    pub(crate) async fn scrape(&mut self, text: &str) {
        self.prometheus.scrape(TARGET, text);
        self.read().await;
    }

    /// Scrapes a text and reads it several times, at intervals of 15 s.
    pub(crate) async fn scrapes(&mut self, text: &str, times: usize) {
        for _ in 0..times {
            self.scrape(text).await;
            self.pass(13);
        }
    }

    fn deliver(&mut self) {
        while let Some(message) = self.reports.next_message(self.now) {
            match message {
                SourceMessage::Open(cluster) => {
                    let held = self.hub.entry(cluster.clone());
                    let epoch = match held {
                        std::collections::btree_map::Entry::Occupied(mut held) => held.get_mut().reopen(),
                        std::collections::btree_map::Entry::Vacant(entry) => {
                            entry.insert(Received::new(cluster.clone(), 1)).epoch()
                        }
                    };
                    self.reports.reply(&SourceReply::Accepted { cluster, epoch }, self.now);
                }
                SourceMessage::Report(report) => {
                    let (cluster, position): (ClusterId, StreamPosition) =
                        (report.cluster.clone(), report.position);
                    let taken = self.hub.get_mut(&cluster).unwrap().take(*report, self.now);
                    let taken = taken.expect("the stream is in order");
                    if let Some(reply) = SourceReply::to_report(&cluster, position, Some(&taken)) {
                        self.reports.reply(&reply, self.now);
                    }
                }
                SourceMessage::Close(cluster) => drop(self.hub.remove(&cluster)),
            }
        }
    }

    fn view<'r>(&self, received: &'r Received) -> ClusterView<'r> {
        let freshness = received.freshness(self.now, wall());
        let facts = received.facts();
        ClusterView {
            name: &facts.name,
            is_live: freshness.is_live(),
            silence: facts.lost.as_ref().map(|lost| &*lost.message),
        }
    }

    /// Returns the rows that the hub shows now.
    pub(crate) fn rows(&self) -> Vec<AppRow> {
        let mut rows = Vec::new();
        for home in self.hub.values() {
            let mut apps: Vec<&AppId> = home.declared_apps().collect();
            apps.sort();
            for app in apps {
                let declared = home.declared(app).unwrap();
                let target = self.hub.get(&declared.body.target).unwrap_or(home);
                let fresh = |received: &Received, side| received.freshness_of(app, side, self.now, wall());
                let half = HeldHalf {
                    body: &*declared.body,
                    freshness: fresh(home, HalfSide::Declared).unwrap(),
                    cluster: self.view(home),
                };
                let observed = target.observed(app).map(|kept| HeldHalf {
                    body: &*kept.body,
                    freshness: fresh(target, HalfSide::Observed).unwrap(),
                    cluster: self.view(target),
                });
                rows.push(join(app, half, observed, self.view(target), None, |_| None));
            }
        }
        rows
    }

    /// Returns the only row.
    pub(crate) fn row(&self) -> AppRow {
        let [row] = <[AppRow; 1]>::try_from(self.rows()).unwrap();
        row
    }

    /// Returns the freshness of the only row's objects and its status, such as `live Ready`.
    pub(crate) fn state(&self) -> String {
        let row = self.row();
        format!("{} {}", row.freshness.state.as_str(), row.effective.as_str())
    }

    /// Returns all errors of the clusters.
    pub(crate) fn errors(&self) -> Vec<ErrorRow> {
        self.hub.values().flat_map(|received| received.errors().iter().cloned()).collect()
    }

    /// Returns a line for each row: cluster, delivery, name, status and sync, objects, applied, worst, problem, and the parts
    /// that are not observed.
    pub(crate) fn table(&self) -> String {
        let line = |row: &AppRow| {
            let is_unseen = |part| row.unobserved.contains(&part);
            let objects = match is_unseen(RowPart::Objects) {
                true => "?".to_owned(),
                false => format!("{}/{}", row.counts.current, row.objects),
            };
            let cluster = match row.home == row.cluster {
                true => row.cluster.clone(),
                false => format!("{} of {}", row.cluster, row.home),
            };
            let problems: Vec<String> = row.problems.iter().map(|it| format!("[{}]", &*it.message)).collect();
            let unobserved: Vec<String> = row.unobserved.iter().map(|part| format!("{part:?}")).collect();
            format!(
                "{cluster} {} {}/{}: {}, {} {} {} {}- {}\n",
                row.delivery,
                row.namespace,
                row.name,
                row.words(wall()),
                row.sync.effective.as_str(),
                objects,
                row.sync.applied.as_deref().unwrap_or("-"),
                problems.iter().map(|it| format!("{it} ")).collect::<String>(),
                unobserved.join(" "),
            )
        };
        self.rows().iter().map(line).collect()
    }

    /// Returns true if any row is shown as well, or as synced.
    pub(crate) fn is_any_green(&self) -> bool {
        let is_live = |state| state == FreshnessState::Live;
        self.rows().iter().any(|row| {
            (row.effective == taffrail_status::Status::Current && is_live(row.freshness.state))
                || row.sync.effective == taffrail_apps::SyncState::Synced
        })
    }
}

fn wall() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}
