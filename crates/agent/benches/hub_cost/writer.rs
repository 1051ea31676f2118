//! The commands of the writer: load the hub, change apps, read from the hub, and compare its answers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};
use taffrail_api::AppRow;
use taffrail_api::agent_protocol::KeyHash;
use taffrail_api::hub::{AnswerState, AppGroup, Attention, HubList, Matrix, StreamPage};
use taffrail_status::Status;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use crate::agents::Identities;
use crate::client::{Client, Events, Server};
use crate::expected::{self, RowQuery};
use crate::model::{self, APPS, Health, Model, NAMES, NAMESPACES};
use crate::source::{Shared, Source, connect, dial};
use crate::watched::{Watched, spread};
use crate::{Failure, commands, say};

/// The number of rows of a page.
pub(crate) const PAGE: usize = 100;

/// The number of pages that are read of one query.
pub(crate) const PAGES: usize = 3;

/// Maximum time until the hub shows what was reported: agents and hub share the cores, and each agent begins with a handshake.
const PATIENCE: Duration = Duration::from_secs(600);

/// The pause between two pages that are read while all apps change.
const PAUSE: Duration = Duration::from_millis(100);

/// The time after which a page that is read while all apps change counts as slow.
const SLOW: Duration = Duration::from_millis(500);

/// The greatest number of changes that are sent together if the writer is late.
const TOGETHER: usize = 64;

/// The values by which apps are counted.
const GROUPS: [&str; 8] = ["cluster", "namespace", "name", "key", "delivery", "status", "sync", "problem"];

/// The greatest number of groups in one answer.
const MAX_GROUPS: usize = 500;

/// The app, in its cluster, that gets a bad image.
const IMAGE_APP: usize = NAMES.len() - 1;

/// The part of an event of a stream that is read.
#[derive(Debug, Deserialize)]
struct Event {
    #[serde(default)]
    pages: Vec<StreamPage>,
}

/// The writer: the source of reports, and the hub that it reads from.
struct Writer {
    source: Shared,
    watched: Watched,
    hub: Option<Server>,
    streams: Vec<JoinHandle<()>>,
    clusters: usize,
}

/// Makes the fleet and obeys commands until the standard input ends.
pub(crate) async fn run(clusters: usize, seed: u64) -> Result<(), Failure> {
    fastrand::seed(seed);
    let model = Model::new(clusters);
    let rows = clusters * APPS;
    let watched = Watched::default();
    let source = Arc::new(Mutex::new(Source::new(model, watched.clone())));
    let mut writer = Writer { source, watched, hub: None, streams: Vec::new(), clusters };
    say(&json!({"ready": true, "clusters": clusters, "rows": rows}));
    let mut lines = commands();
    while let Some(line) = lines.recv().await {
        let words: Vec<&str> = line.split_whitespace().collect();
        let done = match words.as_slice() {
            ["hub", address, token] => {
                let (address, token) = (address.parse()?, (*token).to_owned());
                writer.hub = Some(Server { address, token, tls: None });
                json!({"done": "hub"})
            }
            ["load", socket] => writer.load(socket.as_ref()).await?,
            ["introduce", file] => writer.introduce(file.as_ref()).await?,
            ["dial", port, pins] => writer.dial(port.parse()?, pins).await?,
            ["back"] => writer.back().await?,
            ["streams", count] => writer.streams(count.parse()?).await?,
            ["change", rate, seconds] => writer.change(rate.parse()?, seconds.parse()?).await?,
            ["churn", seconds] => writer.churn(seconds.parse()?).await?,
            ["pages", count] => writer.pages(count.parse()?, RowQuery::random).await?,
            ["team-pages", count] => writer.pages(count.parse()?, |_| RowQuery::of_team()).await?,
            ["counts", rounds] => writer.counts(rounds.parse()?, &GROUPS).await?,
            ["status-counts", rounds] => writer.counts(rounds.parse()?, &["status"]).await?,
            ["matrix", rounds] => writer.matrix(rounds.parse()?).await?,
            ["image", clusters] => writer.image(clusters.parse()?).await?,
            ["stale"] => writer.stale().await?,
            _ => return Err(format!("unknown command {line}").into()),
        };
        say(&done);
    }
    Ok(())
}

impl Writer {
    async fn client(&self) -> Result<Client, Failure> {
        Client::connect(self.hub.as_ref().ok_or("name a hub first")?).await
    }

    /// Reports the whole fleet to the hub, and waits until it shows it.
    async fn load(&mut self, socket: &Path) -> Result<Value, Failure> {
        let begun = Instant::now();
        connect(&self.source, socket).await?;
        self.reported(begun).await
    }

    /// Makes the agents' identities, and writes what the hub is to know of them into a file.
    async fn introduce(&mut self, file: &Path) -> Result<Value, Failure> {
        let identities = Identities::new(self.clusters)?;
        identities.introduce(file)?;
        self.source.lock().await.identities = Some(identities);
        Ok(json!({"done": "introduce"}))
    }

    /// Has the agents report the whole fleet to the hub, which has one of the `pins`, and waits until it shows it.
    async fn dial(&mut self, port: u16, pins: &str) -> Result<Value, Failure> {
        let begun = Instant::now();
        let pins: Option<Vec<KeyHash>> = pins.split(',').map(KeyHash::parse).collect();
        dial(&self.source, port, &pins.ok_or("a pin is malformed")?).await?;
        self.reported(begun).await
    }

    /// Waits until a hub that was started again shows the whole fleet as its agents report it.
    async fn back(&mut self) -> Result<Value, Failure> {
        self.reported(Instant::now()).await
    }

    /// Waits until the hub shows the whole fleet; returns the times since `begun`, and what was sent so far.
    async fn reported(&mut self, begun: Instant) -> Result<Value, Failure> {
        let sent = begun.elapsed().as_secs_f64();
        self.settled().await?;
        let source = self.source.lock().await;
        let counters = source.counters;
        Ok(json!({
            "seconds": begun.elapsed().as_secs_f64(), "sent_seconds": sent, "open": source.open(),
            "reports": counters.reports, "bytes": counters.bytes,
            "refused": counters.refused, "resends": counters.resends,
        }))
    }

    /// Waits until the hub shows the present model by status.
    async fn settled(&self) -> Result<(), Failure> {
        let begun = Instant::now();
        let wanted = {
            let source = self.source.lock().await;
            tokio::task::block_in_place(|| expected::groups(&source.model, "status"))
        };
        let mut client = self.client().await?;
        loop {
            let path = "/api/v1/apps?group-by=status";
            let shown: HubList<AppGroup> = client.get(path).await?.json()?;
            if shown.list.items == wanted && shown.coverage.state == AnswerState::Complete {
                // What changed last may not have changed a number.
                tokio::time::sleep(Duration::from_secs(1)).await;
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                let (items, state) = (shown.list.items, shown.coverage.state);
                return Err(format!("the hub shows {items:?} ({state:?}) instead of {wanted:?}").into());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Ends all streams, and opens so many new ones with differing pages.
    async fn streams(&mut self, count: usize) -> Result<Value, Failure> {
        self.streams.drain(..).for_each(|stream| stream.abort());
        self.watched.clear();
        let mut shown = expected::some_clusters(self.clusters, count.div_ceil(4)).into_iter();
        let (opened, mut first) = mpsc::unbounded_channel();
        for number in 0..count {
            let namespace = model::namespace(number / 4 % NAMESPACES * NAMES.len());
            let (page, cluster) = match number % 4 {
                0 => {
                    // Of a small fleet all clusters may be watched already.
                    let cluster = shown.next().unwrap_or(number % self.clusters.max(1));
                    (format!("apps?cluster={}&limit=100", model::cluster_name(cluster)), Some(cluster))
                }
                1 => (format!("apps?namespace={namespace}&status=!Ready&sort=status&limit=50"), None),
                2 => {
                    let app = number * 7 % APPS;
                    let (namespace, name) = (model::namespace(app), model::name(app));
                    (format!("apps?name={namespace}/{name}&sort=since&limit=100"), None)
                }
                _ => {
                    let some = expected::some_clusters(self.clusters, 20);
                    let names: Vec<String> = some.into_iter().map(model::cluster_name).collect();
                    (format!("counts?cluster={}", names.join(",")), None)
                }
            };
            let query = utf8_percent_encode(&page, NON_ALPHANUMERIC);
            let events =
                self.client().await?.events(&format!("/api/v1/stream?subscribe=page:{query}")).await?;
            let (watched, opened) = (self.watched.clone(), opened.clone());
            self.streams.push(tokio::spawn(async move {
                // The first error ends the stream; what it should have shown then stays unseen.
                let _ = follow(events, cluster, &watched, opened).await;
            }));
        }
        for _ in 0..count {
            tokio::time::timeout(PATIENCE, first.recv()).await?.ok_or("a stream ended")?;
        }
        Ok(json!({"done": "streams", "count": count}))
    }

    /// Changes apps at this rate, one in four of them in a cluster that a stream shows.
    async fn change(&mut self, rate: f64, seconds: f64) -> Result<Value, Failure> {
        let pick = self.watched.picker(self.clusters);
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let count = (rate * seconds) as usize;
        let late = self.paced(count, rate, pick).await?;
        tokio::time::sleep_until(end.into()).await;
        self.outcome(count, late).await
    }

    /// Makes `count` changes of the apps that `pick` names, at this rate. Returns the time by which the writer was late
    /// at most.
    async fn paced(
        &self,
        count: usize,
        rate: f64,
        mut pick: impl FnMut(usize) -> (usize, usize),
    ) -> Result<Duration, Failure> {
        let begun = Instant::now();
        let due = |number: usize| begun + Duration::from_secs_f64(number as f64 / rate);
        let mut late = Duration::ZERO;
        let mut next = 0;
        while next < count {
            tokio::time::sleep_until(due(next).into()).await;
            let mut source = self.source.lock().await;
            let now = Instant::now();
            late = late.max(now.saturating_duration_since(due(next)));
            let mut together = 0;
            while next < count && together < TOGETHER && due(next) <= now {
                let (cluster, app) = pick(next);
                let state = source.model.change(cluster, app);
                source.tell(cluster, app, state, due(next))?;
                (next, together) = (next + 1, together + 1);
            }
            source.send().await?;
        }
        Ok(late)
    }

    /// Waits until clients have seen all changes of watched clusters, and returns the times that it took.
    async fn outcome(&self, changes: usize, late: Duration) -> Result<Value, Failure> {
        let (latency, unseen) = self.watched.outcome().await;
        let counters = self.source.lock().await.counters;
        Ok(json!({
            "changes": changes, "late_ms": late.as_secs_f64() * 1e3, "latency": latency, "unseen": unseen,
            "refused": counters.refused, "resends": counters.resends,
        }))
    }

    /// Changes every app twice within so many seconds, in random order, and reads pages meanwhile.
    async fn churn(&mut self, seconds: f64) -> Result<Value, Failure> {
        let rows = self.clusters * APPS;
        let mut order: Vec<usize> = (0..rows).collect();
        fastrand::shuffle(&mut order);
        let mut again = order.clone();
        fastrand::shuffle(&mut again);
        order.append(&mut again);
        let stop = Arc::new(AtomicBool::new(false));
        let reading = tokio::spawn(read_pages(self.client().await?, self.clusters, Arc::clone(&stop)));
        let pick = |number: usize| {
            let app = order.get(number).copied().unwrap_or_default();
            (app / APPS, app % APPS)
        };
        let begun = Instant::now();
        let late = self.paced(order.len(), order.len() as f64 / seconds, pick).await?;
        let took = begun.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        let pages = reading.await?;
        let mut outcome = self.outcome(order.len(), late).await?;
        if let Some(outcome) = outcome.as_object_mut() {
            outcome.insert("seconds".to_owned(), json!(took));
            outcome.insert("pages".to_owned(), pages);
        }
        self.settled().await?;
        Ok(outcome)
    }

    /// Reads so many pages of the queries that `make` makes for this number of clusters, and compares each with the
    /// model.
    async fn pages(&mut self, count: usize, make: impl Fn(usize) -> RowQuery) -> Result<Value, Failure> {
        self.settled().await?;
        let mut client = self.client().await?;
        let (mut times, mut wrong, mut slowest) = (Vec::new(), Vec::new(), (Duration::ZERO, String::new()));
        while times.len() < count {
            let query = make(self.clusters);
            let parameters = query.parameters();
            let (wanted, total) = {
                let source = self.source.lock().await;
                tokio::task::block_in_place(|| query.find(&source.model, PAGE * PAGES))
            };
            let mut cursor = String::new();
            for page in 0..PAGES {
                let path = format!("/api/v1/apps?limit={PAGE}&{parameters}{cursor}");
                let answer = client.get(&path).await?;
                times.push(answer.took);
                if answer.took > slowest.0 {
                    slowest = (answer.took, path.clone());
                }
                let shown: HubList<AppRow> = answer.json()?;
                let wanted = wanted.get(page * PAGE..wanted.len().min((page + 1) * PAGE)).unwrap_or_default();
                let source = self.source.lock().await;
                wrong.extend(
                    difference(&shown, wanted, total, &source.model).map(|why| format!("{path}: {why}")),
                );
                let Some(next) = shown.extent.next else { break };
                cursor = format!("&cursor={next}");
            }
        }
        let slowest = slowest.1;
        Ok(
            json!({"times": spread(times), "wrong": wrong.len(), "first_wrong": wrong.first(), "slowest": slowest}),
        )
    }

    /// Counts all apps by each of these values so many times, and compares the numbers with the model.
    async fn counts(&mut self, rounds: usize, values: &[&str]) -> Result<Value, Failure> {
        self.settled().await?;
        let mut client = self.client().await?;
        let (mut times, mut wrong) = (Vec::new(), Vec::new());
        for by in values {
            let wanted = {
                let source = self.source.lock().await;
                tokio::task::block_in_place(|| expected::groups(&source.model, by))
            };
            for _ in 0..rounds {
                let answer = client.get(&format!("/api/v1/apps?group-by={by}&limit={MAX_GROUPS}")).await?;
                times.push(answer.took);
                let shown: HubList<AppGroup> = answer.json()?;
                let is_right = shown.extent.total == wanted.len()
                    && shown.list.items.iter().eq(wanted.iter().take(MAX_GROUPS));
                wrong.extend((!is_right).then(|| format!("the counts by {by} differ")));
            }
        }
        Ok(json!({"times": spread(times), "wrong": wrong.len(), "first_wrong": wrong.first()}))
    }

    /// Reads the matrix of all apps so many times, and compares it with the model.
    async fn matrix(&mut self, rounds: usize) -> Result<Value, Failure> {
        self.settled().await?;
        let mut client = self.client().await?;
        let (mut times, mut wrong, mut cells) = (Vec::new(), Vec::new(), 0);
        for _ in 0..rounds {
            let answer = client.get(&format!("/api/v1/matrix?limit={APPS}")).await?;
            times.push(answer.took);
            let shown: Matrix = answer.json()?;
            cells = shown.rows.len() * shown.columns.len();
            let source = self.source.lock().await;
            wrong.extend(expected::matrix_difference(&shown, &source.model));
        }
        Ok(
            json!({"times": spread(times), "cells": cells, "wrong": wrong.len(), "first_wrong": wrong.first()}),
        )
    }

    /// Gives one app a bad image in so many clusters, and reads what needs attention.
    async fn image(&mut self, clusters: usize) -> Result<Value, Failure> {
        let places: BTreeSet<usize> = expected::some_clusters(self.clusters, clusters);
        {
            let mut source = self.source.lock().await;
            for cluster in &places {
                let state = source.model.set(*cluster, IMAGE_APP, Health::BadImage, false);
                source.tell(*cluster, IMAGE_APP, state, Instant::now())?;
            }
            source.send().await?;
        }
        self.settled().await?;
        let answer = self.client().await?.get("/api/v1/attention?limit=500").await?;
        let shown: Attention = answer.json()?;
        let entries: Vec<_> = shown.items.iter().filter(|it| it.message.contains("cannot pull")).collect();
        let is_right = |of: &usize| of == &places.len();
        let is_one = entries.len() == 1
            && entries
                .iter()
                .all(|it| is_right(&it.count) && is_right(&it.cluster_count) && it.key_count == 1);
        Ok(json!({
            "clusters": places.len(), "entries": entries.len(), "is_one": is_one, "causes": shown.total,
            "count": entries.first().map(|it| it.count), "ms": answer.took.as_secs_f64() * 1e3,
        }))
    }

    /// Reads from a hub that was started again and that no source has reported to: it must show all rows, as stale.
    async fn stale(&mut self) -> Result<Value, Failure> {
        let mut client = self.client().await?;
        let answer = client.get(&format!("/api/v1/apps?limit={PAGE}")).await?;
        let shown: HubList<AppRow> = answer.json()?;
        let source = self.source.lock().await;
        let wanted: Vec<(usize, usize)> =
            source.model.all().take(PAGE).map(|(cluster, app, _)| (cluster, app)).collect();
        let wrong = difference(&shown, &wanted, self.clusters * APPS, &source.model);
        drop(source);
        let is_stale = shown.list.items.iter().all(|row| row.effective == Status::Unknown)
            && shown.coverage.state == AnswerState::Stale
            && shown.coverage.missing.len() + shown.coverage.missing_omitted == self.clusters;
        let groups: HubList<AppGroup> = client.get("/api/v1/apps?group-by=status").await?.json()?;
        let is_unknown = groups.list.items.iter().map(|group| &*group.group).eq(["Unknown"]);
        Ok(json!({
            "ms": answer.took.as_secs_f64() * 1e3, "total": shown.extent.total, "wrong": wrong,
            "is_stale": is_stale && is_unknown,
        }))
    }
}

/// Returns the first difference between a page of rows and the apps that it must show, of `total` that match; `None` if
/// there is none.
fn difference(
    shown: &HubList<AppRow>,
    wanted: &[(usize, usize)],
    total: usize,
    model: &Model,
) -> Option<String> {
    let (rows, found) = (shown.list.items.len(), shown.extent.total);
    if rows != wanted.len() || found != total {
        return Some(format!("{rows} rows of {found} instead of {} of {total}", wanted.len()));
    }
    let mut pairs = shown.list.items.iter().zip(wanted);
    pairs.find_map(|(row, (cluster, app))| expected::difference(row, model, *cluster, *app))
}

/// Reads pages of random queries, one after the other with a pause, until `stop` is set. Returns the times, and the
/// numbers of pages that failed and that were slow.
async fn read_pages(mut client: Client, clusters: usize, stop: Arc<AtomicBool>) -> Value {
    let (mut times, mut failed, mut slowest) = (Vec::new(), 0, (Duration::ZERO, String::new()));
    while !stop.load(Ordering::Relaxed) {
        let path = format!("/api/v1/apps?limit={PAGE}&{}", RowQuery::random(clusters).parameters());
        match client.get(&path).await {
            Ok(answer) => {
                failed += usize::from(answer.status != http::StatusCode::OK);
                times.push(answer.took);
                if answer.took > slowest.0 {
                    slowest = (answer.took, path);
                }
            }
            Err(_) => {
                failed += 1;
                break;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    let slow = times.iter().filter(|took| **took > SLOW).count();
    json!({"times": spread(times), "failed": failed, "slow": slow, "slowest": slowest.1})
}

/// Follows a stream, and notes the changes of the apps of `cluster` that it shows; tells `opened` of the first event.
async fn follow(
    mut events: Events,
    cluster: Option<usize>,
    watched: &Watched,
    opened: mpsc::UnboundedSender<()>,
) -> Result<(), Failure> {
    let mut is_first = true;
    while let Some(data) = events.next().await? {
        let at = Instant::now();
        if is_first {
            is_first = false;
            if let Some(cluster) = cluster {
                watched.follow(cluster);
            }
            let _ = opened.send(());
            continue;
        }
        let Some(cluster) = cluster else { continue };
        let event: Event = serde_json::from_slice(&data)?;
        for row in event.pages.iter().flat_map(|page| &page.rows).map(|row| &row.row) {
            let change = row.sync.applied.as_deref().and_then(model::change_of);
            if let Some((app, change)) = model::app_number(&row.namespace, &row.name).zip(change) {
                watched.seen(cluster, app, change, at);
            }
        }
    }
    Ok(())
}
