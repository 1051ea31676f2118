//! The session of one connected agent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::Stream;
use jiff::Timestamp;
use prost::Message as _;
use taffrail_api::agent_protocol::{
    AgentMessage, Challenge, Ended, Hello, HubMessage, KeyHash, Welcome, agent_message, challenge_to_sign,
    hub_message,
};
use taffrail_api::report::{SourceMessage, SourceReply};
use taffrail_apps::ClusterId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tonic::{Code, Status, Streaming};

use super::admission::Admission;
use super::authority::{AgentKey, VALIDITY};
use super::pace::{BEGIN, Pace, SPOOLED};
use super::questions::Inquirer;
use super::{AGENT, Agents, End, FORGOTTEN, Refusals, SEEN, passed, spool};
use crate::fleet::Tells;
use crate::index::lock;
use crate::store::AgentRecord;

/// The time in which an agent must say who it is, and answer a challenge.
const GREETING: Duration = Duration::from_secs(10);

/// The time without any message after which the hub ends a session: the cluster is lost then.
const SILENCE: Duration = Duration::from_secs(150);

/// The time in which an agent must take the reason why its session ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Maximum number of messages that wait in each direction.
const WAITING: usize = 16;

/// The messages that the hub sends in one session.
type Outbox = mpsc::Sender<Result<HubMessage, Status>>;

/// The end of the session of an agent that has proved who it is.
enum Outcome {
    /// The agent ended it, or its connection broke.
    Gone,
    /// The hub ends it.
    Ended(Status),
}

impl Agents {
    /// Starts the session of an agent whose connection proves the key `proved`, and returns the messages to send to it.
    /// The session ends when they are dropped.
    pub(super) fn session(
        self: Arc<Agents>,
        proved: Option<KeyHash>,
        inbox: Streaming<AgentMessage>,
        admission: Arc<Admission>,
    ) -> impl Stream<Item = Result<HubMessage, Status>> + Send {
        let (outbox, messages) = mpsc::channel(WAITING);
        let task = tokio::spawn(async move {
            // Held until the reason is on its way: without it the agent's stream would break before.
            let mut inbox = inbox;
            if let Err(status) = self.attend(proved, &mut inbox, &outbox, &admission).await {
                let ended = Ended { reason: status.message().to_owned(), code: status.code().into() };
                // The reason comes as a message, too: proxies drop trailers. An agent that takes no messages is not
                // waited for.
                let telling = async {
                    let _ = outbox.send(Ok(message(hub_message::Message::Ended(ended)))).await;
                    let _ = outbox.send(Err(status)).await;
                };
                let _ = timeout(LAST_WORDS, telling).await;
            }
            admission.close();
        });
        let session = Session { messages, task };
        futures::stream::unfold(session, async |mut session| {
            let message = session.messages.recv().await?;
            Some((message, session))
        })
    }

    /// Identifies an agent, and applies its messages until it is gone.
    async fn attend(
        &self,
        proved: Option<KeyHash>,
        inbox: &mut Streaming<AgentMessage>,
        outbox: &Outbox,
        admission: &Admission,
    ) -> Result<(), Status> {
        let greeting = timeout(GREETING, self.identify(proved, inbox, outbox)).await;
        let late = || Status::deadline_exceeded("the agent did not say in time who it is");
        let greeting = greeting.map_err(|_| late())??;
        let Some(Greeting { mut agent, yields, allows_actions }) = greeting else { return Ok(()) };
        let now = self.now();
        let key = AgentKey::read(&agent.public_key).ok_or_else(unknown)?;
        admission.admit()?;
        // It could forge them.
        let forgeable =
            proved.is_none().then_some("a proxy ends TLS before the hub, so its agent runs no operations");
        let operations = match allows_actions {
            true => forgeable,
            false => Some("its agent runs no operations, as it was started without --allow-actions"),
        };
        let refusals = Refusals { operations, traces: forgeable };
        let (number, ended, inquirer) = self.connect(&agent, yields, refusals)?;
        let _connection = Connection { agents: self, cluster: agent.cluster.clone(), number };
        let pace = self.pace(&agent.cluster);
        let wait = lock(&pace).take(Instant::now(), 0, BEGIN);
        tokio::time::sleep(wait).await;
        let left = passed(now, agent.expires);
        let mut certificate = String::new();
        // A new one from two thirds of the time on, and wherever the present one did not prove the key.
        if proved.is_none() || left < VALIDITY / 3 {
            let issued = self.authority.issue(&key, &agent.cluster.0, now);
            let unavailable =
                |error| Status::unavailable(format!("the hub cannot issue a certificate: {error}"));
            (certificate, agent.expires) = issued.map_err(unavailable)?;
        }
        (agent.seen, agent.is_proxied) = (now, proved.is_none());
        self.save(agent.clone()).await;
        let welcomed = self.index.clock().time().at;
        if outbox.send(Ok(self.welcome(&agent, certificate))).await.is_err() {
            return Ok(());
        }
        match self.listen(agent, inbox, outbox, (ended, welcomed), (inquirer, pace)).await {
            Outcome::Gone => Ok(()),
            Outcome::Ended(status) => Err(status),
        }
    }

    /// Makes the message that tells an agent what the hub knows of it.
    fn welcome(&self, agent: &AgentRecord, certificate: String) -> HubMessage {
        let AgentRecord { name, is_proxied, .. } = agent.clone();
        message(hub_message::Message::Welcome(Welcome {
            name,
            certificate,
            pins: self.told_pins(),
            is_proxied,
            records_transitions: self.index.keeps_history(),
        }))
    }

    fn now(&self) -> Timestamp {
        self.index.clock().time().now
    }

    /// Finds out which agent it is; `None` if it went away meanwhile.
    async fn identify(
        &self,
        proved: Option<KeyHash>,
        inbox: &mut Streaming<AgentMessage>,
        outbox: &Outbox,
    ) -> Result<Option<Greeting>, Status> {
        let Some(first) = inbox.message().await?.map(|message| message.message) else { return Ok(None) };
        let Some(agent_message::Message::Hello(hello)) = first else {
            return Err(Status::invalid_argument("the first message of an agent must be Hello"));
        };
        let Hello { cluster, public_key, version, yields, allows_actions } = hello;
        let hash = KeyHash::of(&public_key);
        let agent = self.known(hash).ok_or_else(unknown)?;
        if agent.revoked.is_some() {
            return Err(revoked());
        }
        if agent.cluster.0 != cluster {
            return Err(Status::permission_denied(
                "the agent enrolled for another cluster; to report this one, enrol it with a token of its own",
            ));
        }
        if proved != Some(hash) {
            let mut nonce = [0; 32];
            getrandom::fill(&mut nonce).map_err(|_| Status::unavailable("the hub has no random bytes"))?;
            let challenge = hub_message::Message::Challenge(Challenge { nonce: nonce.to_vec() });
            if outbox.send(Ok(message(challenge))).await.is_err() {
                return Ok(None);
            }
            let Some(answer) = inbox.message().await?.map(|message| message.message) else { return Ok(None) };
            let Some(agent_message::Message::Proof(proof)) = answer else {
                return Err(Status::invalid_argument("the answer to a challenge must be Proof"));
            };
            let key = AgentKey::read(&agent.public_key).ok_or_else(unknown)?;
            if !key.has_signed(&challenge_to_sign(&nonce, &cluster), &proof.signature) {
                return Err(Status::unauthenticated(
                    "the answer to the challenge was not signed with the agent's key",
                ));
            }
        }
        if passed(agent.seen, self.now()) > FORGOTTEN {
            return Err(Status::permission_denied(
                "the agent was away for more than 90 days; enrol it again: taffrail hub token create --agent --cluster NAME",
            ));
        }
        let version = cut_version(version);
        Ok(Some(Greeting { agent: AgentRecord { version, ..agent }, yields, allows_actions }))
    }

    /// Applies the messages of an agent until it is gone, or the hub ends the session.
    async fn listen(
        &self,
        agent: AgentRecord,
        inbox: &mut Streaming<AgentMessage>,
        outbox: &Outbox,
        (mut ended, welcomed): (oneshot::Receiver<End>, Duration),
        (inquirer, pace): (Inquirer, Arc<Mutex<Pace>>),
    ) -> Outcome {
        // Few: a report takes more memory than its message.
        let (reports, received) = mpsc::channel(2);
        let (replies, mut replied) = mpsc::channel(WAITING);
        let (begun, heard) = (self.now(), self.index.heard(&agent.cluster, AGENT));
        let (spools, spooled) = mpsc::channel(1);
        let (recorded, mut are_recorded) = mpsc::channel(1);
        let recording = self.record(&agent.cluster, begun, spooled, &recorded);
        let receiving = self.index.receive(AGENT, Tells::AGENT, received, replies);
        let applying = async {
            let mut saved = Instant::now();
            loop {
                let next = match timeout(SILENCE, inbox.message()).await {
                    Err(_) => {
                        return Outcome::Ended(Status::deadline_exceeded(
                            "the agent was silent for too long",
                        ));
                    }
                    // The connection broke.
                    Ok(Err(status)) if status.code() != Code::OutOfRange => return Outcome::Gone,
                    Ok(Err(status)) => return Outcome::Ended(status),
                    Ok(Ok(None)) => return Outcome::Gone,
                    Ok(Ok(Some(next))) => next,
                };
                if saved.elapsed() > SEEN {
                    saved = Instant::now();
                    self.save(AgentRecord { seen: self.now(), ..agent.clone() }).await;
                }
                let next = match next.message {
                    // Those that the hub asked for have a bound of their own, and must not delay reports.
                    Some(agent_message::Message::Answer(answer)) => match inquirer.take(answer) {
                        true => continue,
                        false => AgentMessage { message: None },
                    },
                    message => AgentMessage { message },
                };
                // Each transition of a spool is looked up.
                let more = match &next.message {
                    Some(agent_message::Message::Open(_)) => BEGIN,
                    Some(agent_message::Message::Spooled(_)) => SPOOLED,
                    _ => 0.0,
                };
                let wait = lock(&pace).take(Instant::now(), next.encoded_len(), more);
                tokio::time::sleep(wait).await;
                if let Some(agent_message::Message::Spooled(message)) = next.message {
                    match spool::read(message, &agent.cluster, self.now(), heard) {
                        Err(error) => return Outcome::Ended(Status::invalid_argument(error.to_string())),
                        // An agent that does not wait for the answer sends what has no place again.
                        Ok(read) => drop(spools.try_send(read)),
                    }
                    continue;
                }
                match read(next, &agent.cluster, &agent.name) {
                    Err(status) => return Outcome::Ended(status),
                    Ok(None) => {}
                    Ok(Some(report)) => {
                        if reports.send(report).await.is_err() {
                            return Outcome::Gone;
                        }
                    }
                }
            }
        };
        let answering = async {
            while let Some(reply) = replied.recv().await {
                if outbox.send(Ok(SourceReply::into(reply))).await.is_err() {
                    break;
                }
            }
        };
        let asking = async {
            while let Some(question) = inquirer.next(welcomed).await {
                if outbox.send(Ok(question)).await.is_err() {
                    break;
                }
            }
        };
        let confirming = async {
            while let Some(recorded) = are_recorded.recv().await {
                if outbox.send(Ok(message(hub_message::Message::Recorded(recorded)))).await.is_err() {
                    break;
                }
            }
        };
        let mut pins = self.pins.subscribe();
        let telling = async {
            while pins.changed().await.is_ok()
                && outbox.send(Ok(self.welcome(&agent, String::new()))).await.is_ok()
            {}
        };
        tokio::select! {
            biased;
            end = &mut ended => Outcome::Ended(match end {
                Ok(End::Replaced) => Status::aborted("another agent of this cluster took over"),
                Ok(End::Revoked) | Err(_) => revoked(),
            }),
            outcome = applying => outcome,
            () = receiving => Outcome::Gone,
            () = answering => Outcome::Gone,
            () = telling => Outcome::Gone,
            () = asking => Outcome::Gone,
            () = recording => Outcome::Gone,
            () = confirming => Outcome::Gone,
        }
    }
}

/// An agent that proved who it is.
struct Greeting {
    agent: AgentRecord,
    /// True if the agent does not want to replace another one.
    yields: bool,
    /// True if the agent says that it runs operations.
    allows_actions: bool,
}

/// The messages of a session to the agent, and the task that makes them, which ends when this is dropped.
struct Session {
    messages: mpsc::Receiver<Result<HubMessage, Status>>,
    task: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The entry of a session among those that are connected, which goes with it.
struct Connection<'a> {
    agents: &'a Agents,
    cluster: ClusterId,
    number: u64,
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.agents.disconnect(&self.cluster, self.number);
    }
}

/// Converts a message of an agent of `cluster`, which is listed as `name`; `None` if it is none of a source of reports.
fn read(message: AgentMessage, cluster: &ClusterId, name: &str) -> Result<Option<SourceMessage>, Status> {
    use agent_message::Message;
    match message.message {
        Some(Message::Open(_)) => Ok(Some(SourceMessage::Open(cluster.clone()))),
        Some(Message::Close(_)) => Ok(Some(SourceMessage::Close(cluster.clone()))),
        Some(Message::Report(report)) => {
            let report = report.read(cluster, name);
            let report = report.map_err(|error| Status::invalid_argument(error.to_string()))?;
            Ok(Some(SourceMessage::Report(Box::new(report))))
        }
        Some(Message::Hello(_) | Message::Proof(_)) => {
            Err(Status::invalid_argument("an agent says only once who it is"))
        }
        // What a later agent sends beyond this protocol.
        Some(Message::Answer(_) | Message::Spooled(_)) | None => Ok(None),
    }
}

fn message(message: hub_message::Message) -> HubMessage {
    HubMessage { message: Some(message) }
}

fn unknown() -> Status {
    Status::unauthenticated(
        "the hub does not know the agent's key; enrol the agent again: taffrail hub token create --agent",
    )
}

pub(super) fn revoked() -> Status {
    Status::permission_denied("the agent was revoked")
}

/// Returns the version that an agent told, without what does not belong into one.
fn cut_version(version: String) -> String {
    version.chars().filter(|letter| letter.is_ascii_graphic()).take(64).collect()
}

#[cfg(test)]
mod tests;
