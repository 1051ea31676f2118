//! The source that reports the model to the hub: opens streams, sends snapshots, changes, heartbeats and digests as an
//! observer or the agents do.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message as _;
use taffrail_api::agent_protocol::{AgentMessage, KeyHash};
use taffrail_api::report::{Content, Half, Report, SourceMessage, SourceReply, StreamPosition, is_in};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{Mutex, mpsc};

use crate::agents::Identities;
use crate::model::{APPS, AppState, Model, cluster_id};
use crate::watched::Watched;
use crate::{Failure, frames};

/// The time without another report after which a heartbeat is sent about a cluster.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

/// The interval of digests.
const DIGEST: Duration = Duration::from_secs(30);

/// The time after which a stream is requested again that the hub has not accepted.
const REOPEN: Duration = Duration::from_secs(5);

/// The number of halves in one report of all halves.
const PART: usize = 80;

/// The interval at which the clusters that need a heartbeat or a digest are searched.
const TICK: Duration = Duration::from_millis(100);

/// The age that reports tell.
const AGE: Duration = Duration::from_millis(40);

/// The greatest number of bytes that are collected before they are sent.
const COLLECTED: usize = 1 << 16;

/// The fleet, and the connection to the hub.
pub(crate) struct Source {
    pub(crate) model: Model,
    way: Way,
    /// The number of connections so far.
    connections: u64,
    buffer: Vec<u8>,
    streams: Vec<Stream>,
    /// The identities of the agents; `None` without agents.
    pub(crate) identities: Option<Identities>,
    /// The changes that clients are expected to see.
    watched: Watched,
    pub(crate) counters: Counters,
}

/// The way of messages to the hub.
#[derive(Debug)]
enum Way {
    Closed,
    /// One connection for all clusters.
    Socket(OwnedWriteHalf),
    /// A channel to the agent of each cluster.
    Agents(Vec<mpsc::Sender<SourceMessage>>),
}

/// The stream of reports about one cluster.
#[derive(Debug, Clone, Copy)]
struct Stream {
    /// The epoch, and the number of the last report; `None` until the hub has accepted the stream.
    position: Option<StreamPosition>,
    /// True once all halves were sent: a digest then shows which the hub does not have.
    is_told: bool,
    sent: Instant,
    digest_due: Instant,
    /// The moment at which a stream is requested again if the hub has not accepted one.
    ask_at: Instant,
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
        let closed =
            Stream { position: None, is_told: false, sent: now, digest_due: now, ask_at: now + REOPEN };
        let streams = vec![closed; model.clusters];
        Source {
            model,
            way: Way::Closed,
            connections: 0,
            buffer: Vec::new(),
            streams,
            identities: None,
            watched,
            counters: Counters::default(),
        }
    }

    /// Returns the number of clusters of which the hub has accepted a stream.
    pub(crate) fn open(&self) -> usize {
        self.streams.iter().filter(|stream| stream.position.is_some()).count()
    }

    /// Adds a message about a cluster to what is sent next. An agent that takes none because it is not connected misses
    /// it.
    fn message(&mut self, cluster: usize, message: SourceMessage) -> Result<(), Failure> {
        match &self.way {
            Way::Closed => Err("the source is not connected to a hub".into()),
            Way::Socket(_) => frames::append(&mut self.buffer, &message),
            Way::Agents(agents) => {
                let agent = agents.get(cluster).ok_or("a cluster has no agent")?;
                let length = AgentMessage::from(message.clone()).encoded_len();
                self.counters.bytes += if agent.try_send(message).is_ok() { length as u64 } else { 0 };
                Ok(())
            }
        }
    }

    /// Requests a stream of each cluster; returns their number, and that of the connection.
    async fn open_all(&mut self) -> Result<(usize, u64), Failure> {
        self.connections += 1;
        let now = Instant::now();
        self.streams.iter_mut().for_each(|stream| (stream.position, stream.ask_at) = (None, now + REOPEN));
        for cluster in 0..self.model.clusters {
            self.message(cluster, SourceMessage::Open(cluster_id(cluster)))?;
        }
        self.send().await?;
        Ok((self.model.clusters, self.connections))
    }

    /// Notes that the hub, or an agent that lost it, refused the stream with this epoch; it is requested again.
    fn refused(&mut self, cluster: usize, epoch: u64) {
        self.counters.refused += 1;
        let Some(stream) = self.streams.get_mut(cluster) else { return };
        if stream.position.is_some_and(|position| position.epoch == epoch) {
            (stream.position, stream.ask_at) = (None, Instant::now());
        }
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
        self.message(cluster, SourceMessage::Report(Box::new(report)))
    }

    /// Sends what was added.
    pub(crate) async fn send(&mut self) -> Result<(), Failure> {
        self.counters.bytes += self.buffer.len() as u64;
        let sent = match &mut self.way {
            Way::Socket(socket) => socket.write_all(&self.buffer).await,
            Way::Agents(_) => Ok(()),
            Way::Closed => Err(std::io::ErrorKind::NotConnected.into()),
        };
        self.buffer.clear();
        if sent.is_err() {
            self.way = Way::Closed;
        }
        Ok(sent?)
    }

    /// Begins a stream that the hub has accepted: sends the facts of a cluster, and its digest if all halves were sent
    /// before, else all halves.
    async fn begin(&mut self, cluster: usize, epoch: u64) -> Result<(), Failure> {
        let now = Instant::now();
        // The digests of clusters that are opened together come one after the other.
        let digest_due = now + DIGEST.mul_f64(fastrand::f64());
        let by_agents = matches!(self.way, Way::Agents(_));
        let Some(stream) = self.streams.get_mut(cluster) else { return Ok(()) };
        let position = Some(StreamPosition { epoch, seq: 0 });
        let is_told = std::mem::replace(&mut stream.is_told, true) && by_agents;
        *stream = Stream { position, sent: now, digest_due, ..*stream };
        let facts = Box::new(Model::facts(cluster));
        self.report(cluster, Content::Cluster { facts, errors: Vec::new() })?;
        if is_told {
            let digest = self.model.digest(cluster);
            self.report(cluster, Content::Digest(digest))?;
            return self.send().await;
        }
        self.send_halves(cluster, u64::MAX).await
    }

    /// Sends the halves of a cluster in these buckets, in as many parts as a source sends.
    async fn send_halves(&mut self, cluster: usize, buckets: u64) -> Result<(), Failure> {
        let halves = (0..APPS).flat_map(|app| self.model.halves(cluster, app));
        let halves: Vec<Half> = halves.filter(|half| is_in(buckets, half.fingerprint)).collect();
        let mut parts = halves.chunks(PART).map(<[Half]>::to_vec).peekable();
        let mut part = 0;
        loop {
            let halves = parts.next().unwrap_or_default();
            let is_last = parts.peek().is_none();
            self.report(cluster, Content::Snapshot { buckets, part, is_last, halves })?;
            if is_last {
                return self.send().await;
            }
            part += 1;
        }
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
        let by_agents = matches!(self.way, Way::Agents(_));
        for cluster in 0..self.streams.len() {
            let Some(stream) = self.streams.get_mut(cluster) else { continue };
            if stream.position.is_none() {
                if by_agents && now >= stream.ask_at {
                    stream.ask_at = now + REOPEN;
                    self.message(cluster, SourceMessage::Open(cluster_id(cluster)))?;
                }
                continue;
            }
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
    let (sender, replies) = mpsc::unbounded_channel();
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
        source.way = Way::Socket(write);
        source.open_all().await?
    };
    begin(shared, clusters, connection, replies).await
}

/// Starts the agents, which dial the hub at this port and recognise it by `pins`, and returns when the hub has accepted a
/// stream of each and got all halves. The agents dial again whenever the hub is away.
pub(crate) async fn dial(shared: &Shared, port: u16, pins: &[KeyHash]) -> Result<(), Failure> {
    let (sender, replies) = mpsc::unbounded_channel();
    let (clusters, connection) = {
        let mut source = shared.lock().await;
        let agents =
            source.identities.as_ref().ok_or("make the identities first")?.start(port, pins, &sender);
        source.way = Way::Agents(agents);
        source.open_all().await?
    };
    begin(shared, clusters, connection, replies).await
}

/// Beats, and obeys the replies of the hub; returns when it has accepted a stream of each cluster.
async fn begin(
    shared: &Shared,
    clusters: usize,
    connection: u64,
    mut replies: mpsc::UnboundedReceiver<SourceReply>,
) -> Result<(), Failure> {
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
            let done = match reply {
                SourceReply::Accepted { epoch, .. } => source.begin(number, epoch).await,
                SourceReply::Resend { buckets, .. } => {
                    source.counters.resends += 1;
                    source.send_halves(number, buckets).await
                }
                SourceReply::Refused { epoch, .. } => {
                    source.refused(number, epoch);
                    continue;
                }
            };
            if done.is_err() {
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
