//! The hub that is measured.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::json;
use taffrail_api::report::SourceMessage;
use taffrail_apps::ClusterId;
use taffrail_hub::agents::Agents;
use taffrail_hub::http::{Access, Door, HubApi, Limits, Tls, serve};
use taffrail_hub::store::sqlite::SqliteStore;
use taffrail_hub::store::{AgentRecord, Store};
use taffrail_hub::{FleetIndex, HubClock, HubTime, Tells};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::mpsc;

use crate::agents::Introduction;
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

/// Runs a hub that expects `clusters` clusters until the standard input ends; with a file of `agents`, these may dial it.
pub(crate) async fn run(
    socket: &Path,
    store: &Path,
    clusters: usize,
    agents: Option<&Path>,
) -> Result<(), Failure> {
    let folder = store.parent().ok_or("the store is in no folder")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let store = Arc::new(SqliteStore::open(store).await?.store);
    let begun = Instant::now();
    let clock = HubClock::new(move || HubTime { at: BEFORE + begun.elapsed(), now: Timestamp::now() });
    let index = Arc::new(FleetIndex::restore(clock, &*store, |_| true).await?);
    let (access, token) = Access::loopback(address.port())?;
    let api = HubApi::new(Arc::clone(&index), access, Limits::default())?;
    let api = api.with_store(Arc::clone(&store) as Arc<dyn Store>);
    let gate = match agents {
        None => None,
        Some(file) => Some(Gate::open(folder, file, &index, &store).await?),
    };
    let api = Arc::new(match &gate {
        Some(gate) => api.with_agents(Arc::clone(&gate.agents)),
        None => api,
    });
    index.expect((0..clusters).map(cluster_name));
    let publishing = Arc::clone(&index);
    tokio::spawn(async move { publishing.run().await });
    let saving = Arc::clone(&index);
    tokio::spawn(async move { tokio::join!(saving.save(&*store), saving.keep_history(&*store, RETAIN)) });
    let admitting = Arc::clone(&api);
    tokio::spawn(async move { admitting.keep_tokens().await });
    let mut doors = vec![Door { listener, tls: None }];
    let mut ready = json!({"ready": true, "address": address.to_string(), "token": token.as_str()});
    if let (Some(gate), Some(ready)) = (gate, ready.as_object_mut()) {
        let pins: Vec<String> = gate.tls.pins().iter().map(ToString::to_string).collect();
        ready.insert("agents".to_owned(), json!({"port": gate.listener.local_addr()?.port(), "pins": pins}));
        let (agents, pins) = (gate.agents, gate.tls.pins());
        tokio::spawn(async move { agents.keep_fresh(|| pins.clone()).await });
        doors.push(Door { listener: gate.listener, tls: Some(Arc::new(gate.tls)) });
    }
    tokio::spawn(serve(doors, api, std::future::pending()));
    // One of an earlier run may be left.
    let _ = std::fs::remove_file(socket);
    let sources = UnixListener::bind(socket)?;
    let receiving = Arc::clone(&index);
    let mut reports = tokio::spawn(async move { accept(sources, receiving).await });
    say(&ready);
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

/// The way in for agents.
struct Gate {
    agents: Arc<Agents>,
    listener: TcpListener,
    tls: Tls,
}

impl Gate {
    /// Opens the way in for the agents that `file` names. A hub that is started again has the port and the certificate of
    /// before, which `folder` keeps.
    async fn open(
        folder: &Path,
        file: &Path,
        index: &Arc<FleetIndex>,
        store: &Arc<SqliteStore>,
    ) -> Result<Gate, Failure> {
        if store.agents().await?.is_empty() {
            introduce(file, index.clock().time().now, store).await?;
        }
        let [certificate, key, port] = ["tls.crt", "tls.key", "port"].map(|name| folder.join(name));
        if !certificate.exists() {
            let issued = rcgen::generate_simple_self_signed([Ipv4Addr::LOCALHOST.to_string()])?;
            std::fs::write(&certificate, issued.cert.pem())?;
            std::fs::write(&key, issued.signing_key.serialize_pem())?;
        }
        let before = std::fs::read_to_string(&port).ok().and_then(|port| port.parse().ok());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, before.unwrap_or_default())).await?;
        std::fs::write(&port, listener.local_addr()?.port().to_string())?;
        let agents = Agents::load(Arc::clone(index), Arc::clone(store) as Arc<dyn Store>).await?;
        let tls = Tls::read(&certificate, &key)?.with_agents(agents.authority()?)?;
        agents.set_pins(tls.pins()).await?;
        Ok(Gate { agents: Arc::new(agents), listener, tls })
    }
}

/// Saves the agents that a file names as enrolled at the time `now`.
async fn introduce(file: &Path, now: Timestamp, store: &SqliteStore) -> Result<(), Failure> {
    let records = std::fs::read_to_string(file)?;
    let record = |line: &str| {
        let Introduction { cluster, name, public_key } = serde_json::from_str(line)?;
        Ok::<_, Failure>(AgentRecord {
            public_key: STANDARD.decode(public_key)?,
            cluster: ClusterId(cluster),
            name,
            version: String::new(),
            enrolled: now,
            seen: now,
            expires: now,
            is_proxied: false,
            revoked: None,
        })
    };
    let records: Vec<AgentRecord> = records.lines().map(record).collect::<Result<_, _>>()?;
    let saved = records.into_iter().map(|record| store.save_agent(record));
    let saved = futures::future::join_all(saved).await;
    Ok(saved.into_iter().collect::<Result<(), _>>()?)
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
