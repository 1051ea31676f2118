//! The commands of the peer: the same fleet as objects in a Kubernetes API server, written, followed and read by
//! clients as those of the hub are.
//!
//! It stands for tools that keep the status of each app of each cluster as an object in an API server: Open Cluster
//! Management's ManifestWork, Fleet's BundleDeployment, the Application of argocd-agent. Their controllers, which hold
//! all objects in memory to count and to show them, are left out: only the server and its store cost anything here.

mod objects;
mod pool;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::{Call, Client, Events, Server};
use crate::expected;
use crate::model::{self, APPS, AppState, Model, NAMES, NAMESPACES, cluster_name};
use crate::watched::{Watched, spread};
use crate::writer::{PAGE, PAGES};
use crate::{Failure, commands, say};
use objects::Object;
use pool::{Pool, call, create, renew_leases};

/// Maximum time until the server serves a kind that was defined, or serves at all after its restart.
const PATIENCE: Duration = Duration::from_secs(120);

/// The pause between two attempts to read from a server that does not serve yet.
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum number of changes that wait for one client; more of them delay those of all clusters.
const MAX_WAITING: usize = 100;

/// The number of objects of a page if all are read, as in client-go.
const WHOLE: usize = 500;

/// The form of a list of rows with the columns that the definition of the kind names, as `kubectl get` asks for it.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

#[derive(Debug, Deserialize)]
struct List {
    metadata: ListMetadata,
    items: Vec<Object>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    metadata: ListMetadata,
    /// Only the first page names the columns.
    #[serde(default)]
    column_definitions: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Column {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Row {
    cells: Vec<Value>,
}

/// An event of a watch.
#[derive(Debug, Deserialize)]
struct WatchEvent {
    object: Object,
}

/// The forms in which all objects are read to count them.
#[derive(Debug, Clone, Copy)]
enum Form {
    Objects,
    Table,
}

/// The writer of the fleet, and the server that keeps it.
struct Peer {
    model: Model,
    server: Option<Server>,
    watched: Watched,
    watches: Vec<JoinHandle<()>>,
    renewers: Vec<JoinHandle<()>>,
    renewed: Arc<AtomicU64>,
}

/// Makes the fleet and obeys commands until the standard input ends.
pub(crate) async fn run(clusters: usize, seed: u64) -> Result<(), Failure> {
    fastrand::seed(seed);
    let mut peer = Peer {
        model: Model::new(clusters),
        server: None,
        watched: Watched::default(),
        watches: Vec::new(),
        renewers: Vec::new(),
        renewed: Arc::default(),
    };
    say(&json!({"ready": true, "clusters": clusters, "rows": clusters * APPS}));
    let mut lines = commands();
    while let Some(line) = lines.recv().await {
        let words: Vec<&str> = line.split_whitespace().collect();
        let done = match words.as_slice() {
            ["server", address, token, authority] => {
                peer.server = Some(server(address, token, authority)?);
                json!({"done": "server"})
            }
            ["load"] => peer.load().await?,
            ["streams", count] => peer.streams(count.parse()?).await?,
            ["change", rate, seconds] => peer.change(rate.parse()?, seconds.parse()?).await?,
            ["team-pages", count] => peer.pages(count.parse()?).await?,
            ["status-counts", rounds] => peer.counts(rounds.parse()?, Form::Objects).await?,
            ["table-counts", rounds] => peer.counts(rounds.parse()?, Form::Table).await?,
            ["first"] => peer.first().await?,
            _ => return Err(format!("unknown command {line}").into()),
        };
        say(&done);
    }
    Ok(())
}

/// Returns the server at an address, whose certificate is signed by an authority: PEM in base64, as in a kubeconfig.
fn server(address: &str, token: &str, authority: &str) -> Result<Server, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&STANDARD.decode(authority)?)?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Server { address: address.parse()?, token: token.to_owned(), tls: Some(Arc::new(config)) })
}

/// Returns the parameter that selects objects by their labels.
fn selector(labels: &str) -> String {
    format!("labelSelector={}", utf8_percent_encode(labels, NON_ALPHANUMERIC))
}

/// Returns the parameter for the page after another; empty if there is none.
fn after(page: &ListMetadata) -> String {
    match &*page.next {
        "" => String::new(),
        next => format!("&continue={}", utf8_percent_encode(next, NON_ALPHANUMERIC)),
    }
}

impl Peer {
    fn server(&self) -> Result<&Server, Failure> {
        Ok(self.server.as_ref().ok_or("name a server first")?)
    }

    async fn client(&self) -> Result<Client, Failure> {
        Client::connect(self.server()?).await
    }

    /// Defines the kind, and writes a namespace for each cluster and an object with its status for each app. Leases are
    /// renewed from then on.
    async fn load(&mut self) -> Result<Value, Failure> {
        let begun = Instant::now();
        let mut client = self.client().await?;
        client.send(create(objects::DEFINITIONS, &objects::definition())).await?.succeeded()?;
        self.first().await?;
        let mut pool = Pool::connect(self.server()?, 1).await?;
        let clusters = self.model.clusters;
        for cluster in 0..clusters {
            pool.send(cluster, vec![create(objects::NAMESPACES, &objects::namespace(cluster))]).await?;
        }
        pool.finish().await?;
        self.renewers = renew_leases(self.server()?, clusters, &self.renewed);
        let mut pool = Pool::connect(self.server()?, 1).await?;
        let (mut writes, mut bytes) = (0, 0);
        for cluster in 0..clusters {
            let path = objects::apps_of(cluster);
            let mut job = Vec::with_capacity(2 * APPS);
            for app in 0..APPS {
                job.push(create(&path, &objects::object(cluster, app)));
                job.push(change_status(cluster, app, self.model.app(cluster, app)));
            }
            writes += job.len();
            bytes += job.iter().map(|call| call.body.len()).sum::<usize>();
            pool.send(cluster, job).await?;
        }
        pool.finish().await?;
        let one = format!("{}/{}", objects::apps_of(0), objects::object_name(0));
        let object = client.get(&one).await?;
        object.succeeded()?;
        Ok(json!({
            "seconds": begun.elapsed().as_secs_f64(), "writes": writes, "bytes": bytes,
            "object_bytes": object.body.len(),
        }))
    }

    /// Ends all watches, and opens so many new ones, which select what the hub's streams show.
    async fn streams(&mut self, count: usize) -> Result<Value, Failure> {
        self.watches.drain(..).for_each(|watch| watch.abort());
        self.watched.clear();
        let newest: List = self.client().await?.get(&format!("{}?limit=1", objects::APPS)).await?.json()?;
        let version = newest.metadata.resource_version;
        let mut shown = expected::some_clusters(self.model.clusters, count.div_ceil(4)).into_iter();
        for number in 0..count {
            let (path, labels, cluster) = match number % 4 {
                0 => {
                    // Of a small fleet all clusters may be watched already.
                    let cluster = shown.next().unwrap_or(number % self.model.clusters.max(1));
                    (objects::apps_of(cluster), String::new(), Some(cluster))
                }
                1 => {
                    let team = model::namespace(number / 4 % NAMESPACES * NAMES.len());
                    (objects::APPS.to_owned(), format!("{}={team}", objects::TEAM), None)
                }
                2 => {
                    let app = number * 7 % APPS;
                    let (team, name) = (model::namespace(app), model::name(app));
                    let labels = format!("{}={team},{}={name}", objects::TEAM, objects::NAME);
                    (objects::APPS.to_owned(), labels, None)
                }
                _ => {
                    let some = expected::some_clusters(self.model.clusters, 20);
                    let names: Vec<String> = some.into_iter().map(cluster_name).collect();
                    let labels = format!("{} in ({})", objects::CLUSTER, names.join(","));
                    (objects::APPS.to_owned(), labels, None)
                }
            };
            let selected = if labels.is_empty() { String::new() } else { format!("&{}", selector(&labels)) };
            let path = format!("{path}?watch=true&resourceVersion={version}&timeoutSeconds=3600{selected}");
            let events = self.client().await?.events(&path).await?;
            if let Some(cluster) = cluster {
                self.watched.follow(cluster);
            }
            let watched = self.watched.clone();
            self.watches.push(tokio::spawn(async move {
                // The first error ends the watch; what it should have shown then stays unseen.
                let _ = follow(events, cluster, &watched).await;
            }));
        }
        Ok(json!({"done": "streams", "count": count}))
    }

    /// Changes the status of apps at this rate, one in four of them in a cluster that a watch shows.
    async fn change(&mut self, rate: f64, seconds: f64) -> Result<Value, Failure> {
        let renewed = self.renewed.load(Ordering::Relaxed);
        let pick = self.watched.picker(self.model.clusters);
        let mut pool = Pool::connect(self.server()?, MAX_WAITING).await?;
        let begun = Instant::now();
        let end = begun + Duration::from_secs_f64(seconds);
        let count = (rate * seconds) as usize;
        let mut late = Duration::ZERO;
        for number in 0..count {
            let due = begun + Duration::from_secs_f64(number as f64 / rate);
            tokio::time::sleep_until(due.into()).await;
            let (cluster, app) = pick(number);
            let state = self.model.change(cluster, app);
            self.watched.expect(cluster, app, state.change, due);
            pool.send(cluster, vec![change_status(cluster, app, state)]).await?;
            late = late.max(due.elapsed());
        }
        pool.finish().await?;
        tokio::time::sleep_until(end.into()).await;
        let renewed = self.renewed.load(Ordering::Relaxed) - renewed;
        let (latency, unseen) = self.watched.outcome().await;
        Ok(json!({
            "changes": count, "late_ms": late.as_secs_f64() * 1e3, "latency": latency, "unseen": unseen,
            "renewed": renewed,
        }))
    }

    /// Reads so many pages of the apps of random teams, and compares each with the model.
    async fn pages(&mut self, count: usize) -> Result<Value, Failure> {
        let mut client = self.client().await?;
        let mut clusters: Vec<usize> = (0..self.model.clusters).collect();
        clusters.sort_by_key(|cluster| cluster_name(*cluster));
        let (mut times, mut wrong, mut bytes) = (Vec::new(), Vec::new(), 0);
        while times.len() < count {
            let team = fastrand::usize(0..NAMESPACES) * NAMES.len();
            let mut wanted =
                clusters.iter().flat_map(|cluster| (team..team + NAMES.len()).map(|app| (*cluster, app)));
            let labels = selector(&format!("{}={}", objects::TEAM, model::namespace(team)));
            let mut next = String::new();
            for _ in 0..PAGES {
                let path = format!("{}?limit={PAGE}&{labels}{next}", objects::APPS);
                let answer = client.get(&path).await?;
                times.push(answer.took);
                bytes += answer.body.len();
                let list: List = answer.json()?;
                let wanted: Vec<(usize, usize)> = wanted.by_ref().take(PAGE).collect();
                let is_right = list.items.len() == wanted.len()
                    && list.items.iter().zip(&wanted).all(|(object, at)| self.shows(object, *at));
                wrong.extend((!is_right).then(|| format!("{path}: the objects differ")));
                next = after(&list.metadata);
                if next.is_empty() {
                    break;
                }
            }
        }
        let each = bytes / times.len().max(1);
        Ok(json!({
            "times": spread(times), "wrong": wrong.len(), "first_wrong": wrong.first(), "bytes": each,
        }))
    }

    /// Returns true if an object shows the present state of this app of this cluster.
    fn shows(&self, object: &Object, (cluster, app): (usize, usize)) -> bool {
        let state = self.model.app(cluster, app);
        object.metadata.namespace == cluster_name(cluster)
            && object.app() == Some(app)
            && object.change() == Some(state.change)
            && object.status.health == state.status().as_str()
    }

    /// Counts all apps by status so many times, for which all must be read, and compares the numbers with the model.
    async fn counts(&mut self, rounds: usize, form: Form) -> Result<Value, Failure> {
        let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
        for (_, _, state) in self.model.all() {
            *wanted.entry(state.status().as_str().to_owned()).or_default() += 1;
        }
        let mut client = self.client().await?;
        let (mut times, mut wrong, mut bytes, mut pages) = (Vec::new(), Vec::new(), 0, 0);
        for _ in 0..rounds {
            let mut shown: BTreeMap<String, usize> = BTreeMap::new();
            let (mut took, mut next, mut column) = (Duration::ZERO, String::new(), None);
            loop {
                let parameters = match form {
                    Form::Objects => "",
                    Form::Table => "&includeObject=None",
                };
                let mut call = Call::get(&format!("{}?limit={WHOLE}{parameters}{next}", objects::APPS));
                call.accept = match form {
                    Form::Objects => None,
                    Form::Table => Some(TABLE),
                };
                let answer = client.send(call).await?;
                took += answer.took;
                bytes += answer.body.len();
                pages += 1;
                let page = match form {
                    Form::Objects => {
                        let list: List = answer.json()?;
                        for object in list.items {
                            *shown.entry(object.status.health).or_default() += 1;
                        }
                        list.metadata
                    }
                    Form::Table => {
                        let table: Table = answer.json()?;
                        let health = table.column_definitions.iter().position(|it| it.name == "Health");
                        column = health.or(column);
                        let column = column.ok_or("the table has no column Health")?;
                        for row in table.rows {
                            let health = row.cells.get(column).and_then(Value::as_str).unwrap_or_default();
                            *shown.entry(health.to_owned()).or_default() += 1;
                        }
                        table.metadata
                    }
                };
                next = after(&page);
                if next.is_empty() {
                    break;
                }
            }
            times.push(took);
            wrong
                .extend((shown != wanted).then(|| format!("the counts are {shown:?} instead of {wanted:?}")));
        }
        let rounds = rounds.max(1);
        Ok(json!({
            "times": spread(times), "wrong": wrong.len(), "first_wrong": wrong.first(),
            "bytes": bytes / rounds, "pages": pages / rounds,
        }))
    }

    /// Waits until the server answers a request for a page of apps.
    async fn first(&self) -> Result<Value, Failure> {
        let begun = Instant::now();
        let path = format!("{}?limit={PAGE}", objects::APPS);
        loop {
            let answer = match self.client().await {
                Ok(mut client) => client.get(&path).await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(answer) if answer.status == StatusCode::OK => {
                    let seconds = begun.elapsed().as_secs_f64();
                    return Ok(json!({"seconds": seconds, "ms": answer.took.as_secs_f64() * 1e3}));
                }
                Ok(answer) if begun.elapsed() > PATIENCE => answer.succeeded()?,
                Err(error) if begun.elapsed() > PATIENCE => return Err(error),
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// Returns the request that writes the status of an app: a merge patch, as the agents of peers send it.
fn change_status(cluster: usize, app: usize, state: AppState) -> Call {
    let path = format!("{}/{}/status", objects::apps_of(cluster), objects::object_name(app));
    call(Method::PATCH, path, "application/merge-patch+json", &objects::status(cluster, app, state))
}

/// Reads a watch, and notes the changes of the apps of `cluster` that it shows.
async fn follow(mut events: Events, cluster: Option<usize>, watched: &Watched) -> Result<(), Failure> {
    while let Some(line) = events.line().await? {
        let at = Instant::now();
        let Some(cluster) = cluster else { continue };
        let WatchEvent { object } = serde_json::from_slice(&line)?;
        if let Some((app, change)) = object.app().zip(object.change()) {
            watched.seen(cluster, app, change, at);
        }
    }
    Ok(())
}
