//! Agents: processes in or beside clusters that the hub cannot reach. They dial the hub, and report their clusters.
//!
//! An agent enrols once, with a one-time token, and makes its public key known. From then on it identifies itself by
//! TLS with a certificate that the hub issues for a day and renews, or where that has expired, or a proxy ends TLS before
//! the hub, by signing a challenge. Everything that it reports is about the cluster for which it enrolled: the hub sets
//! the cluster's identity and name itself.
//!
//! The protocol is that of `crates/api/proto/taffrail/agent/v1/agent.proto`.

mod admission;
mod authority;
mod enrolment;
mod follow;
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated from the definition of the protocol"
)]
mod generated;
mod pace;
mod questions;
mod service;
mod session;
mod spool;
mod turns;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use taffrail_api::agent_protocol::KeyHash;
use taffrail_apps::ClusterId;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::Instant;
use tonic::Status;

pub(crate) use admission::{Admission, AdmittedBody};
use authority::Authority;
pub use authority::AuthorityError;
use pace::Pace;
use questions::{Inquirer, Questions, questions};
pub(crate) use service::{AgentService, ProvedKey};
use session::revoked;
use turns::Enrolments;

use crate::index::{FleetIndex, lock};
use crate::store::{AgentRecord, Store, StoreError};

/// The name of the source of reports that agents are.
pub const AGENT: &str = "agent";

/// The interval in which the agents of the store are read again: another process may have revoked some.
const FRESH: Duration = Duration::from_secs(3);

/// The interval in which the hub saves that an agent is connected.
const SEEN: Duration = Duration::from_secs(600);

/// The time without a connection after which an agent must enrol again, though it was not revoked.
const FORGOTTEN: Duration = Duration::from_secs(90 * 86_400);

/// The agents of a hub: those that enrolled, and those that are connected.
pub struct Agents {
    index: Arc<FleetIndex>,
    store: Arc<dyn Store>,
    authority: Authority,
    /// The keys by which agents recognise the hub.
    pins: watch::Sender<Vec<KeyHash>>,
    /// The agents that enrolled, by their keys.
    known: Mutex<HashMap<KeyHash, AgentRecord>>,
    connected: Mutex<HashMap<ClusterId, Connected>>,
    /// The bounds of what agents may send, which stay while they dial again.
    paces: Mutex<HashMap<ClusterId, Arc<Mutex<Pace>>>>,
    /// The spool of each cluster's agent, and the number up to which history has its entries.
    spools: Mutex<HashMap<ClusterId, (u64, u64)>>,
    /// The turns of adding the entries of spools to history.
    recording: Arc<Semaphore>,
    /// The number of sessions that began.
    sessions: AtomicU64,
    enrolling: Enrolments,
}

impl std::fmt::Debug for Agents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agents").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// The reasons why the hub does not ask an agent; `None` for what it asks.
#[derive(Debug, Clone, Copy)]
struct Refusals {
    /// For operations, and their plans.
    operations: Option<&'static str>,
    /// For what operations left.
    traces: Option<&'static str>,
}

/// An agent that is connected.
struct Connected {
    /// The number of its session.
    session: u64,
    key: KeyHash,
    /// The name under which the hub lists the cluster.
    name: String,
    questions: Questions,
    refusals: Refusals,
    /// Ends the session, with the reason.
    end: oneshot::Sender<End>,
}

/// The reason why the hub ends the session of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Another agent of the cluster connected.
    Replaced,
    /// The agent was revoked.
    Revoked,
}

impl Agents {
    /// Reads the agents of `store`, which report to `index`.
    ///
    /// # Errors
    /// If the store cannot be read, or the authority in it cannot be used.
    pub async fn load(index: Arc<FleetIndex>, store: Arc<dyn Store>) -> Result<Agents, AuthorityError> {
        let now = index.clock().time().now;
        let authority = Authority::load(&*store, now).await?;
        let known = by_key(store.agents().await?);
        let spools = store.spools().await?.into_iter().map(|it| (it.cluster, (it.spool, it.last))).collect();
        Ok(Agents {
            index,
            store,
            authority,
            pins: watch::Sender::default(),
            known: Mutex::new(known),
            connected: Mutex::default(),
            paces: Mutex::default(),
            spools: Mutex::new(spools),
            recording: Arc::new(Semaphore::new(spool::AT_ONCE)),
            sessions: AtomicU64::new(0),
            enrolling: Enrolments::default(),
        })
    }

    /// Returns the certificate of the authority that issues those of agents, in DER.
    ///
    /// # Errors
    /// If the one in the store is malformed.
    pub fn authority(&self) -> Result<rustls::pki_types::CertificateDer<'static>, AuthorityError> {
        self.authority.certificate()
    }

    /// Sets the keys by which agents recognise the hub, tells them to those that are connected, and saves them for the
    /// commands that make enrolment tokens.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn set_pins(&self, pins: Vec<KeyHash>) -> Result<(), StoreError> {
        self.store.set_pins(pins.clone()).await?;
        self.pins.send_replace(pins);
        Ok(())
    }

    /// Reads the agents of the store again every three seconds, for ever, and ends the sessions of those that were
    /// revoked. While the store cannot be read, those that it had before are known. Also takes over the keys that `pins`
    /// returns, if they are others.
    pub async fn keep_fresh(&self, pins: impl Fn() -> Vec<KeyHash>) {
        loop {
            tokio::time::sleep(FRESH).await;
            let pins = pins();
            if *self.pins.borrow() != pins {
                // If it fails, they are others the next time, too.
                let _ = self.set_pins(pins).await;
            }
            // An agent that enrols between the read and its use would be unknown.
            let _none = self.enrolling.none().await;
            if let Ok(agents) = self.store.agents().await {
                *lock(&self.known) = by_key(agents);
                self.end_revoked();
            }
        }
    }

    /// Ends the sessions of agents that were revoked, or that the store does not have any more.
    fn end_revoked(&self) {
        let is_valid = |known: &HashMap<KeyHash, AgentRecord>, key: &KeyHash| {
            known.get(key).is_some_and(|agent| agent.revoked.is_none())
        };
        let revoked: Vec<Connected> = {
            let known = lock(&self.known);
            let mut connected = lock(&self.connected);
            let ended: Vec<ClusterId> = connected
                .iter()
                .filter(|(_, agent)| !is_valid(&known, &agent.key))
                .map(|(cluster, _)| cluster.clone())
                .collect();
            ended.iter().filter_map(|cluster| connected.remove(cluster)).collect()
        };
        for agent in revoked {
            // One that ends by itself meanwhile needs no message.
            let _ = agent.end.send(End::Revoked);
        }
    }

    /// Returns the number of agents that are connected.
    pub(crate) fn connected(&self) -> usize {
        lock(&self.connected).len()
    }

    /// Returns the bound of what the agents of a cluster may send.
    fn pace(&self, cluster: &ClusterId) -> Arc<Mutex<Pace>> {
        let new = || Arc::new(Mutex::new(Pace::new(Instant::now())));
        Arc::clone(lock(&self.paces).entry(cluster.clone()).or_insert_with(new))
    }

    fn known(&self, key: KeyHash) -> Option<AgentRecord> {
        lock(&self.known).get(&key).cloned()
    }

    /// Notes and saves what is known of an agent.
    async fn save(&self, agent: AgentRecord) {
        if let Some(known) = lock(&self.known).get_mut(&agent.key()) {
            *known = AgentRecord { revoked: known.revoked, ..agent.clone() };
        }
        // The agent stays connected; the next time it is saved tells the same.
        let _ = self.store.save_agent(agent).await;
    }

    /// Notes that an agent is connected, and ends the session of an earlier one of its cluster.
    ///
    /// # Errors
    /// If there is an earlier one and the agent yields to it, or the agent was revoked meanwhile; then nothing changes.
    fn connect(
        &self,
        agent: &AgentRecord,
        yields: bool,
        refusals: Refusals,
    ) -> Result<(u64, oneshot::Receiver<End>, Inquirer), Status> {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let (end, ended) = oneshot::channel();
        // In the order of `end_revoked`, which then sees either the revocation or the session.
        let known = lock(&self.known);
        let mut connected = lock(&self.connected);
        if known.get(&agent.key()).is_none_or(|known| known.revoked.is_some()) {
            return Err(revoked());
        }
        if yields && connected.contains_key(&agent.cluster) {
            return Err(Status::already_exists("another agent of this cluster is connected; this one waits"));
        }
        let (questions, inquirer) = questions();
        let (key, name) = (agent.key(), agent.name.clone());
        let new = Connected { session, key, name, questions, refusals, end };
        let earlier = connected.insert(agent.cluster.clone(), new);
        drop((known, connected));
        if let Some(earlier) = earlier {
            let _ = earlier.end.send(End::Replaced);
        }
        Ok((session, ended, inquirer))
    }

    /// Notes that a session has ended.
    fn disconnect(&self, cluster: &ClusterId, session: u64) {
        let mut connected = lock(&self.connected);
        if connected.get(cluster).is_some_and(|agent| agent.session == session) {
            connected.remove(cluster);
        }
    }
}

fn by_key(agents: Vec<AgentRecord>) -> HashMap<KeyHash, AgentRecord> {
    agents.into_iter().map(|agent| (agent.key(), agent)).collect()
}

/// Returns the time between two moments of the wall clock; 0 if it was set back.
fn passed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}
