//! Clients that write side by side: the apps, and the Leases by which the clusters are known to live.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::objects;
use crate::Failure;
use crate::client::{Answer, Call, Client, Server};
use crate::source::HEARTBEAT;

/// The number of clients that write apps side by side.
const WRITERS: usize = 16;

/// The number of clients that renew Leases side by side.
const RENEWERS: usize = 4;

/// Returns a request with this body.
pub(super) fn call(method: Method, path: String, content: &'static str, body: &Value) -> Call {
    Call { method, path, accept: None, content: Some(content), body: body.to_string().into() }
}

/// Returns a request that creates an object among those at `path`.
pub(super) fn create(path: &str, object: &Value) -> Call {
    call(Method::POST, path.to_owned(), "application/json", object)
}

/// Clients that write side by side, each the jobs of its own clusters one after the other, as an agent in a cluster
/// does: no change of an app overtakes another. All requests must succeed.
pub(super) struct Pool {
    writers: Vec<mpsc::Sender<Vec<Call>>>,
    done: mpsc::UnboundedReceiver<Result<(), Failure>>,
    sent: usize,
}

impl Pool {
    /// Connects the clients, for each of which at most `waiting` jobs wait.
    pub(super) async fn connect(server: &Server, waiting: usize) -> Result<Pool, Failure> {
        let (results, done) = mpsc::unbounded_channel();
        let mut writers = Vec::with_capacity(WRITERS);
        for _ in 0..WRITERS {
            let mut client = Client::connect(server).await?;
            let (writer, mut jobs) = mpsc::channel::<Vec<Call>>(waiting);
            let results = results.clone();
            tokio::spawn(async move {
                while let Some(job) = jobs.recv().await {
                    if results.send(perform(&mut client, job).await).is_err() {
                        return;
                    }
                }
            });
            writers.push(writer);
        }
        Ok(Pool { writers, done, sent: 0 })
    }

    /// Hands a job, some requests that follow one another, to the client of a cluster.
    pub(super) async fn send(&mut self, cluster: usize, job: Vec<Call>) -> Result<(), Failure> {
        self.sent += 1;
        let writer = self.writers.get(cluster % WRITERS).ok_or("the pool has no clients")?;
        Ok(writer.send(job).await?)
    }

    /// Waits until all jobs are done.
    pub(super) async fn finish(mut self) -> Result<(), Failure> {
        for _ in 0..self.sent {
            self.done.recv().await.ok_or("all clients ended")??;
        }
        Ok(())
    }
}

async fn perform(client: &mut Client, job: Vec<Call>) -> Result<(), Failure> {
    for call in job {
        client.send(call).await?.succeeded()?;
    }
    Ok(())
}

/// Renews the Lease of each of so many clusters every [`HEARTBEAT`] in tasks of its own, evenly in time, and counts it
/// in `renewed`.
pub(super) fn renew_leases(
    server: &Server,
    clusters: usize,
    renewed: &Arc<AtomicU64>,
) -> Vec<JoinHandle<()>> {
    let some = |first: usize| (first..clusters).step_by(RENEWERS).collect::<Vec<usize>>();
    let start = |clusters: Vec<usize>| {
        let (server, renewed) = (server.clone(), Arc::clone(renewed));
        tokio::spawn(async move { renew_some(&server, &clusters, &renewed).await })
    };
    (0..RENEWERS).map(some).filter(|clusters| !clusters.is_empty()).map(start).collect()
}

async fn renew_some(server: &Server, clusters: &[usize], renewed: &AtomicU64) {
    let mut versions: Vec<(usize, Option<String>)> = clusters.iter().map(|it| (*it, None)).collect();
    let mut client = None;
    let mut ticks = tokio::time::interval(HEARTBEAT.div_f64(clusters.len() as f64));
    loop {
        for (cluster, version) in &mut versions {
            ticks.tick().await;
            match renew(server, &mut client, *cluster, version.as_deref()).await {
                Ok(new) => {
                    *version = Some(new);
                    renewed.fetch_add(1, Ordering::Relaxed);
                }
                // The server is restarting; the next one is renewed by another connection.
                Err(_) => (client, *version) = (None, None),
            }
        }
    }
}

/// Renews the Lease of a cluster, or creates it if its version is not known; returns its new version.
async fn renew(
    server: &Server,
    client: &mut Option<Client>,
    cluster: usize,
    version: Option<&str>,
) -> Result<String, Failure> {
    let client = match client {
        Some(client) => client,
        None => client.insert(Client::connect(server).await?),
    };
    let path = objects::leases_of(cluster);
    let one = format!("{path}/{}", objects::LEASE);
    let lease = objects::lease(cluster, version);
    if version.is_some() {
        return version_of(&client.send(call(Method::PUT, one, "application/json", &lease)).await?);
    }
    let created = client.send(create(&path, &lease)).await?;
    if created.status == StatusCode::CONFLICT {
        version_of(&client.get(&one).await?)
    } else {
        version_of(&created)
    }
}

/// Returns the version of the object in an answer.
fn version_of(answer: &Answer) -> Result<String, Failure> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
    }
    Ok(answer.json::<Object>()?.metadata.resource_version)
}
