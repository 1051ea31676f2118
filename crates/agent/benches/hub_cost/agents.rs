//! The agents of the fleet: one for each cluster, with an identity and a connection of its own, as `taffrail agent` has.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use serde::{Deserialize, Serialize};
use taffrail_agent::{
    Agent, AgentError, AgentEvent, AgentPauses, AgentSettings, HubAddress, HubTrust, Identity, KeepError,
    KeepIdentity, Spool,
};
use taffrail_api::agent_protocol::KeyHash;
use taffrail_api::report::{SourceMessage, SourceReply};
use taffrail_apps::ClusterId;
use taffrail_cluster::{BootClock, EnvironmentProxies};
use tokio::sync::mpsc;

use crate::model::{cluster_id, cluster_name};
use crate::{Failure, say_aside};

/// The number of messages that wait in each direction of one agent, as in the shipped program.
const WAITING: usize = 64;

/// The version that the agents tell.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An agent as the hub is to know it: a line of JSON in a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Introduction {
    pub(crate) cluster: String,
    pub(crate) name: String,
    /// The public key, in Base64.
    pub(crate) public_key: String,
}

/// The identities of all agents, in the order of their clusters.
#[derive(Debug)]
pub(crate) struct Identities(Vec<Identity>);

impl Identities {
    /// Makes an identity for each of so many clusters.
    pub(crate) fn new(clusters: usize) -> Result<Identities, Failure> {
        let make = |cluster| {
            let mut identity = Identity::generate(cluster_id(cluster).0, Vec::new())?;
            identity.name = cluster_name(cluster);
            Ok(identity)
        };
        Ok(Identities((0..clusters).map(make).collect::<Result<_, AgentError>>()?))
    }

    /// Writes what the hub is to know of the agents into a file.
    pub(crate) fn introduce(&self, file: &Path) -> Result<(), Failure> {
        let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
        for identity in &self.0 {
            let (cluster, name) = (identity.cluster.clone(), identity.name.clone());
            let public_key = STANDARD.encode(identity.public_key()?);
            serde_json::to_writer(&mut out, &Introduction { cluster, name, public_key })?;
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    }

    /// Starts all agents, which dial the hub at a port of this machine that has one of `pins`. Returns the channels to
    /// them, and sends the replies of the hub to `replies`. They dial again whenever the hub is away.
    pub(crate) fn start(
        &self,
        port: u16,
        pins: &[KeyHash],
        replies: &mpsc::UnboundedSender<SourceReply>,
    ) -> Vec<mpsc::Sender<SourceMessage>> {
        let start = |identity: &Identity| {
            let (outbox, messages) = mpsc::channel(WAITING);
            let mut identity = identity.clone();
            identity.pins = pins.to_vec();
            tokio::spawn(run(identity, port, messages, replies.clone()));
            outbox
        };
        self.0.iter().map(start).collect()
    }
}

/// Runs an agent until it cannot go on, and says why.
async fn run(
    identity: Identity,
    port: u16,
    messages: mpsc::Receiver<SourceMessage>,
    replies: mpsc::UnboundedSender<SourceReply>,
) {
    let (cluster, name) = (identity.cluster.clone(), identity.name.clone());
    let keeper = Arc::new(Kept::default());
    if let Err(error) = identity.write(&*keeper).await {
        return say_aside(&format!("the agent of {name} has no identity: {error}"));
    }
    let settings = AgentSettings {
        hub: HubAddress { host: "127.0.0.1".to_owned(), port },
        trust: HubTrust::Enrolled,
        proxies: EnvironmentProxies::default(),
        keeper,
        token: None,
        spool: Arc::new(Spool::in_memory(ClusterId(cluster.clone()), BootClock::default())),
        cluster,
        name: name.clone(),
        version: VERSION.to_owned(),
        allows_actions: false,
        pauses: AgentPauses::default(),
    };
    let (outbox, mut inbox) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        while let Some(reply) = inbox.recv().await {
            if replies.send(reply).is_err() {
                return;
            }
        }
    });
    let tell = |_: AgentEvent| {};
    let ended = match Agent::enrolled(settings, tell).await {
        Ok(agent) => match agent.run(messages, outbox, None, tell).await {
            Ok(never) => match never {},
            Err(error) => error,
        },
        Err(error) => error,
    };
    say_aside(&format!("the agent of {name} ended: {ended}"));
}

/// An identity that is kept in memory.
#[derive(Debug, Default)]
struct Kept(Mutex<Option<Vec<u8>>>);

impl Kept {
    fn kept(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeepIdentity for Kept {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn read(&self) -> BoxFuture<'_, Result<Option<Vec<u8>>, KeepError>> {
        ready(Ok(self.kept().clone())).boxed()
    }

    fn write<'k>(&'k self, identity: &'k [u8]) -> BoxFuture<'k, Result<(), KeepError>> {
        *self.kept() = Some(identity.to_vec());
        ready(Ok(())).boxed()
    }
}
