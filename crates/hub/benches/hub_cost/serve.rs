//! The hub that is measured.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use taffrail_api::report::SourceMessage;
use taffrail_hub::http::{Access, HubApi, Limits, serve};
use taffrail_hub::store::Store;
use taffrail_hub::store::sqlite::SqliteStore;
use taffrail_hub::{FleetIndex, HubClock, HubTime, Tells};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::mpsc;

use crate::model::cluster_name;
use crate::{Failure, commands, frames, say};

/// The name of the source.
const SOURCE: &str = "observer";

/// Maximum number of messages that wait between the source and the hub, in each direction, as in the shipped program.
const WAITING: usize = 64;

/// The time before its start that the clock of a hub counts, as in the shipped program.
const BEFORE: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The time for which history is kept, the default of the shipped program.
const RETAIN: Duration = Duration::from_secs(30 * 86_400);

/// Runs a hub that expects `clusters` clusters until the standard input ends.
pub(crate) async fn run(socket: &Path, store: &Path, clusters: usize) -> Result<(), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let store = Arc::new(SqliteStore::open(store).await?.store);
    let begun = Instant::now();
    let clock = HubClock::new(move || HubTime { at: BEFORE + begun.elapsed(), now: Timestamp::now() });
    let index = Arc::new(FleetIndex::restore(clock, &*store, |_| true).await?);
    let (access, token) = Access::loopback(address.port())?;
    let api = HubApi::new(Arc::clone(&index), access, Limits::default())?;
    let api = Arc::new(api.with_store(Arc::clone(&store) as Arc<dyn Store>));
    index.expect((0..clusters).map(cluster_name));
    let publishing = Arc::clone(&index);
    tokio::spawn(async move { publishing.run().await });
    let saving = Arc::clone(&index);
    tokio::spawn(async move { tokio::join!(saving.save(&*store), saving.keep_history(&*store, RETAIN)) });
    let admitting = Arc::clone(&api);
    tokio::spawn(async move { admitting.keep_tokens().await });
    tokio::spawn(serve(listener, api, None, std::future::pending()));
    // One of an earlier run may be left.
    let _ = std::fs::remove_file(socket);
    let sources = UnixListener::bind(socket)?;
    let receiving = Arc::clone(&index);
    let mut reports = tokio::spawn(async move { accept(sources, receiving).await });
    say(&json!({"ready": true, "address": address.to_string(), "token": token.as_str()}));
    let mut lines = commands();
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            ended = &mut reports => return ended?,
        };
        match line.as_deref() {
            None => return Ok(()),
            Some("saved") => {
                index.publish();
                let is_saved = index.saved().await;
                say(&json!({"saved": is_saved}));
            }
            Some(other) => return Err(format!("unknown command {other}").into()),
        }
    }
}

/// Accepts connections of sources, and receives their messages.
async fn accept(sources: UnixListener, index: Arc<FleetIndex>) -> Result<(), Failure> {
    loop {
        let (stream, _) = sources.accept().await?;
        receive(stream, Arc::clone(&index)).await?;
    }
}

/// Receives the messages of one connection until the source closes it.
async fn receive(stream: UnixStream, index: Arc<FleetIndex>) -> Result<(), Failure> {
    let (read, mut write) = stream.into_split();
    let (outbox, messages) = mpsc::channel(WAITING);
    let (replies, mut inbox) = mpsc::channel(WAITING);
    let reading = tokio::spawn(async move {
        let mut read = BufReader::with_capacity(1 << 16, read);
        let mut buffer = Vec::new();
        while let Some(message) = frames::read::<SourceMessage>(&mut read, &mut buffer).await? {
            if outbox.send(message).await.is_err() {
                break;
            }
        }
        Ok::<(), Failure>(())
    });
    let replying = tokio::spawn(async move {
        let mut buffer = Vec::new();
        while let Some(reply) = inbox.recv().await {
            buffer.clear();
            frames::append(&mut buffer, &reply)?;
            write.write_all(&buffer).await?;
        }
        Ok::<(), Failure>(())
    });
    index.receive(SOURCE, Tells::ALL, messages, replies).await;
    replying.await??;
    reading.await?
}
