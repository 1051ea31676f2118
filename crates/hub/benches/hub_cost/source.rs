//! The source that reports the model to the hub: opens streams, sends snapshots, changes, heartbeats and digests as an
//! observer does.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use taffrail_api::report::{Content, Half, Report, SourceMessage, SourceReply, StreamPosition};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{Mutex, mpsc};

use crate::model::{APPS, AppState, Model, cluster_id};
use crate::watched::Watched;
use crate::{Failure, frames};

/// The time without another report after which a heartbeat is sent about a cluster.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

/// The interval of digests.
const DIGEST: Duration = Duration::from_secs(30);

/// The interval at which the clusters that need a heartbeat or a digest are searched.
const TICK: Duration = Duration::from_millis(100);

/// The age that reports tell.
const AGE: Duration = Duration::from_millis(40);

/// The greatest number of bytes that are collected before they are sent.
const COLLECTED: usize = 1 << 16;

/// The fleet, and the connection to the hub.
pub(crate) struct Source {
    pub(crate) model: Model,
    socket: Option<OwnedWriteHalf>,
    /// The number of connections so far.
    connections: u64,
    buffer: Vec<u8>,
    streams: Vec<Stream>,
    /// The changes that clients are expected to see.
    watched: Watched,
    pub(crate) counters: Counters,
}

/// The stream of reports about one cluster.
#[derive(Debug, Clone, Copy)]
struct Stream {
    /// The epoch, and the number of the last report; `None` until the hub has accepted the stream.
    position: Option<StreamPosition>,
    sent: Instant,
    digest_due: Instant,
}

/// The numbers of what was sent and refused.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) reports: u64,
    pub(crate) bytes: u64,
    pub(crate) refused: u64,
    pub(crate) resends: u64,
}

/// The source, shared by the tasks that send.
pub(crate) type Shared = Arc<Mutex<Source>>;

impl Source {
    pub(crate) fn new(model: Model, watched: Watched) -> Source {
        let now = Instant::now();
        let closed = Stream { position: None, sent: now, digest_due: now };
        let streams = vec![closed; model.clusters];
        Source {
            model,
            socket: None,
            connections: 0,
            buffer: Vec::new(),
            streams,
            watched,
            counters: Counters::default(),
        }
    }

    /// Returns the number of clusters of which the hub has accepted a stream.
    pub(crate) fn open(&self) -> usize {
        self.streams.iter().filter(|stream| stream.position.is_some()).count()
    }

    fn message(&mut self, message: &SourceMessage) -> Result<(), Failure> {
        frames::append(&mut self.buffer, message)
    }

    /// Adds a report to what is sent next; does nothing before the hub has accepted the stream.
    fn report(&mut self, cluster: usize, content: Content) -> Result<(), Failure> {
        let Some(stream) = self.streams.get_mut(cluster) else { return Ok(()) };
        let Some(position) = &mut stream.position else { return Ok(()) };
        position.seq += 1;
        let (position, now) = (*position, Instant::now());
        stream.sent = now;
        if matches!(content, Content::Digest(_)) {
            stream.digest_due = now + DIGEST;
        }
        self.counters.reports += 1;
        let report = Report { cluster: cluster_id(cluster), position, age: Some(AGE), content };
        self.message(&SourceMessage::Report(Box::new(report)))
    }

    /// Sends what was added.
    pub(crate) async fn send(&mut self) -> Result<(), Failure> {
        self.counters.bytes += self.buffer.len() as u64;
        let Some(socket) = &mut self.socket else {
            self.buffer.clear();
            return Err("the source is not connected to a hub".into());
        };
        let sent = socket.write_all(&self.buffer).await;
        self.buffer.clear();
        if sent.is_err() {
            self.socket = None;
        }
        Ok(sent?)
    }

    /// Sends all halves and the facts of a cluster.
    async fn send_all(&mut self, cluster: usize) -> Result<(), Failure> {
        let facts = Box::new(Model::facts(cluster));
        self.report(cluster, Content::Cluster { facts, errors: Vec::new() })?;
        let halves: Vec<Half> = (0..APPS).flat_map(|app| self.model.halves(cluster, app)).collect();
        let content = Content::Snapshot { buckets: u64::MAX, part: 0, is_last: true, halves };
        self.report(cluster, content)?;
        self.send().await
    }

    /// Adds the present halves of an app to what is sent next, as a change that was due at a moment.
    pub(crate) fn tell(
        &mut self,
        cluster: usize,
        app: usize,
        state: AppState,
        due: Instant,
    ) -> Result<(), Failure> {
        self.watched.expect(cluster, app, state.change, due);
        let changed = self.model.halves(cluster, app).into();
        self.report(cluster, Content::Changes { changed, gone: Vec::new() })
    }

    /// Sends heartbeats and digests of the clusters that need one.
    async fn prove(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        for cluster in 0..self.streams.len() {
            let Some(stream) = self.streams.get(cluster).filter(|stream| stream.position.is_some()) else {
                continue;
            };
            if now >= stream.digest_due {
                let digest = self.model.digest(cluster);
                self.report(cluster, Content::Digest(digest))?;
            } else if now.duration_since(stream.sent) >= HEARTBEAT {
                self.report(cluster, Content::Heartbeat)?;
            }
            if self.buffer.len() > COLLECTED {
                self.send().await?;
            }
        }
        self.send().await
    }
}

/// Connects the source to a hub, requests a stream of each cluster, and returns when the hub has accepted all and got
/// all halves. Heartbeats go on until the connection breaks.
pub(crate) async fn connect(shared: &Shared, socket: &Path) -> Result<(), Failure> {
    let (read, write) = UnixStream::connect(socket).await?.into_split();
    let (sender, mut replies) = mpsc::unbounded_channel();
    // The hub waits for nobody: replies are taken whether or not a report can be sent.
    tokio::spawn(async move {
        let mut read = BufReader::new(read);
        let mut buffer = Vec::new();
        while let Ok(Some(reply)) = frames::read::<SourceReply>(&mut read, &mut buffer).await {
            if sender.send(reply).is_err() {
                return;
            }
        }
    });
    let (clusters, connection) = {
        let mut source = shared.lock().await;
        source.socket = Some(write);
        source.connections += 1;
        source.streams.iter_mut().for_each(|stream| stream.position = None);
        for cluster in 0..source.model.clusters {
            source.message(&SourceMessage::Open(cluster_id(cluster)))?;
        }
        source.send().await?;
        (source.model.clusters, source.connections)
    };
    let beating = Arc::clone(shared);
    tokio::spawn(async move {
        loop {
            let mut source = beating.lock().await;
            if source.connections != connection || source.prove().await.is_err() {
                return;
            }
            drop(source);
            tokio::time::sleep(TICK).await;
        }
    });
    let numbers: HashMap<_, _> = (0..clusters).map(|cluster| (cluster_id(cluster), cluster)).collect();
    let (whole, mut told) = mpsc::unbounded_channel();
    let answering = Arc::clone(shared);
    tokio::spawn(async move {
        while let Some(reply) = replies.recv().await {
            let (SourceReply::Accepted { cluster, .. }
            | SourceReply::Resend { cluster, .. }
            | SourceReply::Refused { cluster, .. }) = &reply;
            let Some(number) = numbers.get(cluster).copied() else { continue };
            let mut source = answering.lock().await;
            match reply {
                SourceReply::Accepted { epoch, .. } => {
                    let now = Instant::now();
                    // The digests of clusters that are opened together come one after the other.
                    let digest_due = now + DIGEST.mul_f64(fastrand::f64());
                    if let Some(stream) = source.streams.get_mut(number) {
                        let position = Some(StreamPosition { epoch, seq: 0 });
                        *stream = Stream { position, sent: now, digest_due };
                    }
                }
                SourceReply::Resend { .. } => source.counters.resends += 1,
                SourceReply::Refused { .. } => {
                    source.counters.refused += 1;
                    continue;
                }
            }
            if source.send_all(number).await.is_err() {
                return;
            }
            let _ = whole.send(number);
        }
    });
    for _ in 0..clusters {
        told.recv().await.ok_or("the hub closed the connection before it had accepted all streams")?;
    }
    Ok(())
}
