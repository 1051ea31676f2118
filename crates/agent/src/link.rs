//! The stream between an agent and its hub: kept open for as long as the agent runs.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use jiff::Timestamp;
use taffrail_api::agent_protocol::{
    AgentMessage, Ended as EndedMessage, EnrolRequest, EnrolmentToken, Hello, HubMessage, KeyHash,
    MAX_ACCEPTED, Proof, REFUSED, Welcome, agent_message, challenge_to_sign, enrolment_to_sign, hub_message,
};
use taffrail_api::report::{Content, SourceMessage, SourceReply};
use taffrail_apps::ClusterId;
use taffrail_cluster::{EnvironmentProxies, chain};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::{Code, Status, Streaming};

use crate::answers::{AnswerQuestions, Answers, AnswersOfSession, Refusals};
use crate::connect::{self, ConnectError, Connection, HubAddress, HubTrust};
use crate::error::AgentError;
use crate::generated::agents_client::AgentsClient;
use crate::identity::{Identity, KeepIdentity};
use crate::spool::Spool;

/// The time of a session after which the next failure counts as the first one.
const STEADY: Duration = Duration::from_secs(60);

/// The time in which the hub must welcome the agent.
const GREETING: Duration = Duration::from_secs(20);

/// The age of a certificate from which the agent renews it, by beginning another session: two thirds of a day.
const RENEWAL: Duration = Duration::from_secs(16 * 3600);

/// The time for which the renewal of a certificate waits for operations that run: the certificate is valid for eight hours
/// more.
const RUNS_END: Duration = Duration::from_secs(2 * 3600);

/// The time in which the reason comes why a hub takes no more messages.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The time for which reports wait until the hub has the transitions of the spool: it then tells them from what reports
/// change.
const SPOOL_FIRST: Duration = Duration::from_secs(3);

/// The time after which transitions are sent again that the hub has not said to have.
const RECORDING: Duration = Duration::from_secs(60);

/// The interval at which transitions are dropped that the hub has heard of by reports.
const PRUNING: Duration = Duration::from_secs(30);

/// The number of messages that wait to be sent.
const WAITING: usize = 16;

/// The settings of an agent.
pub struct AgentSettings {
    /// The hub.
    pub hub: HubAddress,
    /// The certificates by which the hub is recognised.
    pub trust: HubTrust,
    /// The proxies that the environment names.
    pub proxies: EnvironmentProxies,
    /// The place that keeps the identity.
    pub keeper: Arc<dyn KeepIdentity>,
    /// The token to enrol with, if the agent has no identity yet.
    pub token: Option<EnrolmentToken>,
    /// The identity of the cluster.
    pub cluster: String,
    /// The name under which the hub shall list the cluster, unless the token has another one.
    pub name: String,
    /// The version of the agent.
    pub version: String,
    /// True to run the operations that the hub asks for.
    pub allows_actions: bool,
    /// The transitions that the hub may not have heard of.
    pub spool: Arc<Spool>,
    /// The pauses before the agent dials again.
    pub pauses: AgentPauses,
}

/// The pauses of an agent before it dials its hub again. Each is jittered by half, so that the agents of a hub that
/// restarts do not all come at once.
#[derive(Debug, Clone, Copy)]
pub struct AgentPauses {
    /// The first pause; it doubles with each failure.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// The pause of an agent that another one of its cluster replaced.
    pub replaced: Duration,
}

impl Default for AgentPauses {
    fn default() -> AgentPauses {
        AgentPauses {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            replaced: Duration::from_secs(40),
        }
    }
}

/// Something that happened between an agent and its hub, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// The agent enrolled; the hub lists the cluster under this name.
    Enrolled {
        /// The name.
        name: String,
    },
    /// The agent is connected, and reports.
    Connected {
        /// The name under which the hub lists the cluster.
        name: String,
        /// True if a proxy ends TLS before the hub.
        is_proxied: bool,
    },
    /// The agent is not connected, and tries again after a pause.
    Disconnected {
        /// The reason.
        reason: String,
        /// The pause.
        pause: Duration,
    },
    /// The identity could not be saved. The agent goes on with it, and saves it later; if it is started anew before
    /// that, it identifies itself by its key.
    NotSaved {
        /// The reason.
        reason: String,
    },
    /// The spool of transitions could not be written. The agent keeps them in memory, and writes them later.
    NotSpooled {
        /// The reason.
        reason: String,
    },
    /// Another agent of the cluster reports; this one waits until that is gone.
    Waiting {
        /// The pause until the agent asks again.
        pause: Duration,
    },
}

/// The state of an agent, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentState {
    /// True while the agent is connected.
    pub is_connected: bool,
    /// The number of sessions that the hub welcomed.
    pub sessions: u64,
    /// The time at which the certificate expires; `None` before the agent enrolled.
    pub expires: Option<Timestamp>,
}

/// An agent that has enrolled.
pub struct Agent {
    link: Link,
    waits: Backoff,
}

impl Agent {
    /// Reads the identity of the agent; if there is none, enrols it, and tries again while the hub does not answer. Calls
    /// `tell` with what happens.
    ///
    /// # Errors
    /// If the agent cannot be enrolled, or its identity is that of the agent of another cluster.
    pub async fn enrolled(
        settings: AgentSettings,
        mut tell: impl FnMut(AgentEvent),
    ) -> Result<Agent, AgentError> {
        let keeper = Arc::clone(&settings.keeper);
        let saved = Identity::read(&*keeper).await?;
        if let Some(found) = saved.as_ref().filter(|saved| saved.cluster != settings.cluster) {
            return Err(AgentError::OtherCluster {
                place: keeper.place(),
                enrolled: found.cluster.clone(),
                found: settings.cluster,
            });
        }
        let identity = match (saved, &settings.token) {
            (Some(saved), _) => saved,
            (None, None) => return Err(AgentError::NotEnrolled),
            (None, Some(token)) => {
                let new = Identity::generate(settings.cluster.clone(), token.pins.clone())?;
                // Before the hub knows it: an answer may get lost.
                new.write(&*keeper).await?;
                new
            }
        };
        let mut waits = Backoff::new(settings.pauses);
        let has_enrolled = !identity.name.is_empty();
        let mut link = Link {
            identity,
            is_unsaved: false,
            yields: false,
            hides_certificate: false,
            epoch: None,
            state: watch::Sender::default(),
            settings,
        };
        // A token that is given beside an identity is for one that the hub does not accept any more.
        if has_enrolled && let Some(token) = link.settings.token.clone() {
            while let Err(ended) = link.introduce().await {
                match ended {
                    Ended::For(AgentError::Refused(_)) => {
                        link.identity = Identity::generate(link.settings.cluster.clone(), token.pins)?;
                        link.identity.write(&*keeper).await?;
                        break;
                    }
                    ended => sleep(waits.after(ended, Duration::ZERO, &mut tell)?).await,
                }
            }
        }
        while link.identity.name.is_empty() {
            let Some(token) = link.settings.token.clone() else { return Err(AgentError::NotEnrolled) };
            match link.enrol(&token).await {
                Ok(()) => tell(AgentEvent::Enrolled { name: link.identity.name.clone() }),
                Err(Ended::For(error)) => return Err(error),
                Err(ended) => sleep(waits.after(ended, Duration::ZERO, &mut tell)?).await,
            }
        }
        Ok(Agent { link, waits })
    }

    /// Returns a receiver of the state of the agent.
    pub fn state(&self) -> watch::Receiver<AgentState> {
        self.link.state.subscribe()
    }

    /// Returns the name under which the hub lists the cluster.
    pub fn name(&self) -> &str {
        &self.link.identity.name
    }

    /// Reports to the hub until that refuses the agent for good, or the channels close: passes on the `messages` of a
    /// reporter of the cluster, and the `replies` of the hub to it. Has the hub's questions answered by `answerer`; refuses
    /// them without one. Calls `tell` with what happens.
    ///
    /// # Errors
    /// [`AgentError`] tells why the agent cannot go on. A hub that does not answer is no error: the agent tries again.
    pub async fn run(
        self,
        mut messages: mpsc::Receiver<SourceMessage>,
        replies: mpsc::Sender<SourceReply>,
        answerer: Option<Arc<dyn AnswerQuestions>>,
        mut tell: impl FnMut(AgentEvent),
    ) -> Result<Infallible, AgentError> {
        let Agent { mut link, mut waits } = self;
        let answers = Answers::new(answerer);
        loop {
            let begun = Instant::now();
            let shows_certificate = !link.has_expired() && !link.hides_certificate;
            let Err(ended) = tokio::select! {
                ended = link.session(&mut messages, &replies, &answers, &mut tell, shows_certificate) => ended,
                () = replies.closed() => return Err(AgentError::Ended),
            };
            link.state.send_modify(|state| state.is_connected = false);
            if let Some(reason) = link.settings.spool.take_failure() {
                tell(AgentEvent::NotSpooled { reason });
            }
            let pause = waits.after(ended, begun.elapsed(), &mut tell)?;
            tokio::select! {
                () = sleep(pause) => {}
                () = replies.closed() => return Err(AgentError::Ended),
            }
            if let Some(epoch) = link.epoch.take() {
                let cluster = ClusterId(link.identity.cluster.clone());
                // The reporter then asks for another stream.
                if replies.send(SourceReply::Refused { cluster, epoch }).await.is_err() {
                    return Err(AgentError::Ended);
                }
            }
        }
    }
}

/// The pauses between attempts to reach the hub.
struct Backoff {
    pauses: AgentPauses,
    next: Duration,
}

impl Backoff {
    fn new(pauses: AgentPauses) -> Backoff {
        Backoff { pauses, next: pauses.first }
    }

    /// Returns the pause after an attempt that lasted for `lasted` and `ended`, and tells of it.
    ///
    /// # Errors
    /// If the agent cannot go on.
    fn after(
        &mut self,
        ended: Ended,
        lasted: Duration,
        tell: &mut impl FnMut(AgentEvent),
    ) -> Result<Duration, AgentError> {
        if lasted > STEADY {
            self.next = self.pauses.first;
        }
        match ended {
            Ended::For(error) => Err(error),
            Ended::Renewing => Ok(jittered(self.pauses.first)),
            Ended::Replaced => {
                let pause = jittered(self.pauses.replaced);
                tell(AgentEvent::Waiting { pause });
                Ok(pause)
            }
            Ended::Failed(reason) => {
                let pause = jittered(self.next);
                self.next = (self.next * 2).min(self.pauses.longest);
                tell(AgentEvent::Disconnected { reason, pause });
                Ok(pause)
            }
        }
    }
}

/// Returns a pause between half of the given one and one and a half of it.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64())
}

/// The reason why a session ended.
enum Ended {
    /// The agent cannot go on.
    For(AgentError),
    /// The certificate is old: the next session gets another one.
    Renewing,
    /// Another agent of the cluster reports.
    Replaced,
    /// The connection or the hub failed; holds the reason.
    Failed(String),
}

impl From<ConnectError> for Ended {
    fn from(error: ConnectError) -> Ended {
        Ended::Failed(chain(&*error))
    }
}

impl From<AgentError> for Ended {
    fn from(error: AgentError) -> Ended {
        Ended::For(error)
    }
}

/// A session that the hub has welcomed.
struct Session {
    /// Held: the session ends with it.
    _connection: Connection,
    inbox: Streaming<HubMessage>,
    outbox: mpsc::Sender<AgentMessage>,
    /// The channel for answers, which go after all else.
    answering: mpsc::Sender<AgentMessage>,
}

/// The connection of an agent with its hub over time.
struct Link {
    identity: Identity,
    /// True if the identity could not be saved since it changed.
    is_unsaved: bool,
    settings: AgentSettings,
    /// True once another agent of the cluster has replaced this one.
    yields: bool,
    /// True after a connection failed that showed the certificate: the hub may not accept that any more, for instance
    /// because its authority is another one. Without it the hub says why.
    hides_certificate: bool,
    /// The epoch of the stream that the hub accepted last and the reporter still uses.
    epoch: Option<u64>,
    state: watch::Sender<AgentState>,
}

impl Link {
    /// Returns true if the certificate has expired: then the hub would end the TLS handshake.
    fn has_expired(&self) -> bool {
        self.identity.expires.is_none_or(|expires| expires <= Timestamp::now())
    }

    async fn connect(&self, shows_certificate: bool) -> Result<Connection, Ended> {
        let AgentSettings { hub, trust, proxies, .. } = &self.settings;
        Ok(connect::connect(hub, trust, proxies, &self.identity, shows_certificate).await?)
    }

    /// Exchanges the token for a certificate, and saves it.
    async fn enrol(&mut self, token: &EnrolmentToken) -> Result<(), Ended> {
        match self.exchange(token).await {
            // The hub may have taken the token already, and its answer got lost: then it knows the key.
            Err(Ended::For(AgentError::EnrolmentRefused(reason))) => match self.introduce().await {
                Ok(()) => Ok(()),
                Err(Ended::For(AgentError::Refused(_))) => Err(AgentError::EnrolmentRefused(reason).into()),
                Err(ended) => Err(ended),
            },
            other => other,
        }
    }

    /// Begins a session to learn the name and to get a certificate, and ends it.
    async fn introduce(&mut self) -> Result<(), Ended> {
        let (session, welcome) = self.greeted(false).await?;
        drop(session);
        let has_enrolled = !self.identity.name.is_empty();
        let learned = self.learn(welcome.name, welcome.certificate, &welcome.pins).await;
        // The token may be needed until the name is saved.
        if has_enrolled { Ok(()) } else { learned.map_err(unsaved) }
    }

    async fn exchange(&mut self, token: &EnrolmentToken) -> Result<(), Ended> {
        self.identity.pins.clone_from(&token.pins);
        let connection = self.connect(false).await?;
        let AgentSettings { hub, cluster, name, version, .. } = &self.settings;
        let request = EnrolRequest {
            token: token.token.clone(),
            public_key: self.identity.public_key()?,
            cluster: cluster.clone(),
            name: name.clone(),
            version: version.clone(),
            proof: self.identity.sign(&enrolment_to_sign(&token.token, cluster))?,
        };
        let mut client = client(&connection, hub)?;
        let answer = timeout(GREETING, client.enrol(request)).await;
        let answer =
            answer.map_err(|_| Ended::Failed("the hub did not enrol the agent in time".to_owned()))?;
        let is_of_hub = |status: &Status| status.metadata().contains_key(REFUSED);
        let enrolled = answer.map_err(|status| match status.code() {
            _ if !is_of_hub(&status) => Ended::Failed(told(&status)),
            Code::Unauthenticated | Code::AlreadyExists | Code::InvalidArgument | Code::PermissionDenied => {
                Ended::For(AgentError::EnrolmentRefused(status.message().to_owned()))
            }
            _ => Ended::Failed(told(&status)),
        })?;
        let enrolled = enrolled.into_inner();
        self.learn(enrolled.name, enrolled.certificate, &enrolled.pins).await.map_err(unsaved)
    }

    /// Takes over what the hub told, and saves it if it is new. An empty certificate leaves the present one.
    ///
    /// # Errors
    /// If it cannot be saved; the agent has it nevertheless.
    async fn learn(&mut self, name: String, certificate: String, pins: &[Vec<u8>]) -> Result<(), AgentError> {
        let pins: Vec<KeyHash> =
            pins.iter().filter_map(|pin| Some(KeyHash(pin.as_slice().try_into().ok()?))).collect();
        // A proxy that ends TLS could name its own.
        let pins = if self.settings.trust.is_proxy() { self.identity.pins.clone() } else { pins };
        let mut new = Identity { name, pins, ..self.identity.clone() };
        if !certificate.is_empty() {
            let issued = Timestamp::now();
            new.expires = issued.checked_add(jiff::SignedDuration::from_hours(24)).ok();
            new.certificate = certificate;
        }
        self.state.send_modify(|state| state.expires = new.expires);
        if new != self.identity || self.is_unsaved {
            self.identity = new;
            self.is_unsaved = true;
            self.identity.write(&*self.settings.keeper).await?;
            self.is_unsaved = false;
        }
        Ok(())
    }

    /// Takes over what the hub told, and tells if it cannot be saved: what the session reports is worth more than the place
    /// that keeps the identity.
    async fn learn_and_tell(
        &mut self,
        name: String,
        certificate: String,
        pins: &[Vec<u8>],
        tell: &mut impl FnMut(AgentEvent),
    ) {
        if let Err(error) = self.learn(name, certificate, pins).await {
            tell(AgentEvent::NotSaved { reason: chain(&error) });
        }
    }

    /// Opens a session, and passes messages on until it ends; never returns `Ok`.
    async fn session(
        &mut self,
        messages: &mut mpsc::Receiver<SourceMessage>,
        replies: &mpsc::Sender<SourceReply>,
        answers: &Answers,
        tell: &mut impl FnMut(AgentEvent),
        shows_certificate: bool,
    ) -> Result<Infallible, Ended> {
        let greeted = self.greeted(shows_certificate).await;
        self.hides_certificate = shows_certificate && matches!(greeted, Err(Ended::Failed(_)));
        let (Session { _connection, mut inbox, outbox, answering }, welcome) = greeted?;
        let Welcome { name, certificate, pins, is_proxied, records_transitions } = welcome;
        let is_renewed = !certificate.is_empty();
        self.learn_and_tell(name.clone(), certificate, &pins, tell).await;
        // None replaces one that is there, unless it was replaced by one again.
        self.yields = false;
        if is_proxied && !self.settings.trust.is_proxy() {
            return Err(match shows_certificate {
                // The next session shows the new certificate.
                false if is_renewed => Ended::Renewing,
                _ => Ended::Failed(
                    "a proxy ends TLS between the agent and the hub: accept it with --proxy-ca-file FILE"
                        .to_owned(),
                ),
            });
        }
        tell(AgentEvent::Connected { name, is_proxied });
        self.state.send_modify(|state| {
            (state.is_connected, state.sessions) = (true, state.sessions + 1);
        });
        // What was made for an earlier session is old.
        while messages.try_recv().is_ok() {}
        let renewal = renewal(self.identity.expires, answers);
        let cluster = self.identity.cluster.clone();
        let mut session = answers.session(answering, self.refusals(is_proxied));
        let place = self.settings.keeper.place();
        let spool = Arc::clone(&self.settings.spool);
        let recorded = records_transitions.then_some(&*spool);
        spool.connected();
        tokio::select! {
            biased;
            ended = self.receive(&mut inbox, replies, &mut session, tell) => Err(ended),
            ended = pass_on(&cluster, &place, messages, answers, (&outbox, recorded)) => Err(ended),
            ended = pass_transitions(recorded, &outbox) => Err(ended),
            () = renewal => Err(Ended::Renewing),
        }
    }

    /// Returns what the agent refuses in a session.
    fn refusals(&self, is_proxied: bool) -> Refusals {
        let is_hub_known =
            !matches!(self.settings.trust, HubTrust::Enrolled) || !self.identity.pins.is_empty();
        // Whoever the hub says ends TLS: a proxy that is accepted can say that, too.
        let forgeable = if is_proxied || self.settings.trust.is_proxy() {
            Some("a proxy ends TLS between the hub and the agent, which could forge operations")
        } else if !is_hub_known {
            // Any authority of the machine vouches for it, such as that of a proxy.
            Some(
                "the agent's token named no certificates of the hub, so a proxy could forge operations; give it --hub-ca-file",
            )
        } else {
            None
        };
        let operations = match self.settings.allows_actions {
            true => forgeable,
            false => Some("the agent runs no operations; start it with --allow-actions"),
        };
        Refusals { operations, traces: forgeable }
    }

    /// Opens a session, and proves the identity; returns the connection, the messages of the hub, the channel for those
    /// of the agent, and the hub's welcome.
    async fn greeted(&mut self, shows_certificate: bool) -> Result<(Session, Welcome), Ended> {
        let connection = self.connect(shows_certificate).await?;
        let mut client = client(&connection, &self.settings.hub)?;
        let (outbox, sent) = mpsc::channel(WAITING);
        let (answering, answered) = mpsc::channel(WAITING);
        let hello = Hello {
            cluster: self.identity.cluster.clone(),
            public_key: self.identity.public_key()?,
            version: self.settings.version.clone(),
            yields: self.yields,
            allows_actions: self.settings.allows_actions,
        };
        send(&outbox, agent_message::Message::Hello(hello)).await?;
        let sent = futures::stream::unfold((sent, answered), async |(mut sent, mut answered)| {
            // Long answers must not delay reports, which tell ages.
            let message = tokio::select! {
                biased;
                message = sent.recv() => message?,
                Some(message) = answered.recv() => message,
            };
            Some((message, (sent, answered)))
        });
        let late = |_| Ended::Failed("the hub did not welcome the agent in time".to_owned());
        let opened = timeout(GREETING, client.session(sent)).await.map_err(late)?;
        let mut inbox = opened.map_err(|status| Ended::Failed(told(&status)))?.into_inner();
        let welcome = timeout(GREETING, self.greet(&mut inbox, &outbox)).await.map_err(late)??;
        Ok((Session { _connection: connection, inbox, outbox, answering }, welcome))
    }

    /// Answers the hub's challenge, if it has one, and returns its welcome.
    async fn greet(
        &mut self,
        inbox: &mut Streaming<HubMessage>,
        outbox: &mpsc::Sender<AgentMessage>,
    ) -> Result<Welcome, Ended> {
        loop {
            match self.next(inbox).await? {
                Some(hub_message::Message::Challenge(challenge)) => {
                    let signed = challenge_to_sign(&challenge.nonce, &self.identity.cluster);
                    let signature = self.identity.sign(&signed)?;
                    // If the hub takes it no more, its next message tells why.
                    let _ = send(outbox, agent_message::Message::Proof(Proof { signature })).await;
                }
                Some(hub_message::Message::Welcome(welcome)) => return Ok(welcome),
                Some(hub_message::Message::Ended(ended)) => return Err(self.ended_by(&ended)),
                _ => {}
            }
        }
    }

    /// Returns the next message of the hub; `None` for one of a later version.
    async fn next(
        &mut self,
        inbox: &mut Streaming<HubMessage>,
    ) -> Result<Option<hub_message::Message>, Ended> {
        match inbox.message().await {
            Ok(Some(message)) => Ok(message.message),
            Ok(None) => Err(Ended::Failed("the hub ended the stream".to_owned())),
            Err(status) => Err(Ended::Failed(told(&status))),
        }
    }

    /// Passes the hub's replies to the reporter until the session ends.
    async fn receive(
        &mut self,
        inbox: &mut Streaming<HubMessage>,
        replies: &mpsc::Sender<SourceReply>,
        answers: &mut AnswersOfSession,
        tell: &mut impl FnMut(AgentEvent),
    ) -> Ended {
        use hub_message::Message;
        let cluster = ClusterId(self.identity.cluster.clone());
        loop {
            let reply = match self.next(inbox).await {
                Err(ended) => return ended,
                Ok(Some(Message::Accepted(accepted))) => {
                    self.epoch = Some(accepted.epoch);
                    SourceReply::Accepted { cluster: cluster.clone(), epoch: accepted.epoch }
                }
                Ok(Some(Message::Resend(resend))) => SourceReply::Resend {
                    cluster: cluster.clone(),
                    epoch: resend.epoch,
                    buckets: resend.buckets,
                },
                // The hub has other certificates, or soon will.
                Ok(Some(Message::Welcome(Welcome { name, certificate, pins, .. }))) => {
                    self.learn_and_tell(name, certificate, &pins, tell).await;
                    continue;
                }
                Ok(Some(Message::Ended(ended))) => return self.ended_by(&ended),
                Ok(Some(Message::Question(question))) => {
                    answers.begin(question);
                    continue;
                }
                Ok(Some(Message::Cancel(cancel))) => {
                    answers.cancel(cancel.id);
                    continue;
                }
                Ok(Some(Message::Recorded(recorded))) => {
                    self.settings.spool.recorded(recorded.spool, recorded.last);
                    continue;
                }
                Ok(Some(Message::Refused(refused))) => {
                    SourceReply::Refused { cluster: cluster.clone(), epoch: refused.epoch }
                }
                Ok(_) => continue,
            };
            if replies.send(reply).await.is_err() {
                return AgentError::Ended.into();
            }
        }
    }

    /// Converts the reason with which the hub ended the session. A status alone ends nothing for good, because a proxy may
    /// have made it.
    fn ended_by(&mut self, ended: &EndedMessage) -> Ended {
        match Code::from_i32(ended.code) {
            Code::Aborted | Code::AlreadyExists => {
                self.yields = true;
                Ended::Replaced
            }
            Code::Unauthenticated | Code::PermissionDenied => {
                AgentError::Refused(ended.reason.clone()).into()
            }
            _ => Ended::Failed(ended.reason.clone()),
        }
    }
}

/// Converts the error of an identity that could not be saved into one after which the agent tries again: until it has a
/// name that is saved, it may need its token.
fn unsaved(error: AgentError) -> Ended {
    Ended::Failed(chain(&error))
}

/// Makes the client of the hub's service on a connection.
fn client(
    connection: &Connection,
    hub: &HubAddress,
) -> Result<AgentsClient<impl GrpcService<Body, ResponseBody = Incoming, Future: Send> + use<>>, Ended> {
    let sender = connection.sender.clone();
    let service = tower::service_fn(move |request| {
        let mut sender = sender.clone();
        async move { sender.send_request(request).await }
    });
    let uri = hub.uri().map_err(|error| Ended::from(ConnectError::from(error)))?;
    Ok(AgentsClient::with_origin(service, uri).max_decoding_message_size(MAX_ACCEPTED))
}

/// Passes the messages of the reporter about `cluster` to the hub until one of both is gone, or another cluster answers
/// at its address. Tells `answers` once it is this one. Opens a stream once the hub has the transitions of `recorded`, or
/// after [`SPOOL_FIRST`].
async fn pass_on(
    cluster: &str,
    place: &str,
    messages: &mut mpsc::Receiver<SourceMessage>,
    answers: &Answers,
    (outbox, recorded): (&mpsc::Sender<AgentMessage>, Option<&Spool>),
) -> Ended {
    let spool_first = Instant::now() + SPOOL_FIRST;
    let other = |found: &str| {
        let (enrolled, found) = (cluster.to_owned(), found.to_owned());
        Ended::For(AgentError::OtherCluster { place: place.to_owned(), enrolled, found })
    };
    loop {
        let Some(message) = messages.recv().await else { return AgentError::Ended.into() };
        match &message {
            // The cluster at the address has another identity, which the messages after this one name.
            SourceMessage::Close(_) => continue,
            SourceMessage::Open(about) if about.0 != cluster => return other(&about.0),
            // No report is made before the hub has answered.
            SourceMessage::Open(_) => {
                if let Some(spool) = recorded {
                    drop(timeout_at(spool_first, spool.until_recorded(u64::MAX)).await);
                }
            }
            SourceMessage::Report(report) if report.cluster.0 != cluster => return other(&report.cluster.0),
            SourceMessage::Report(report) => {
                if let Content::Cluster { facts, .. } = &report.content
                    && facts.id.as_deref() == Some(cluster)
                {
                    answers.allow();
                }
            }
        }
        if outbox.send(message.into()).await.is_err() {
            // The hub takes no more, and what it says last tells why.
            sleep(LAST_WORDS).await;
            return Ended::Failed("the hub ended the stream".to_owned());
        }
    }
}

/// Passes the transitions of the spool to a hub that records them, until it is gone; waits for ever if it does not.
async fn pass_transitions(spool: Option<&Spool>, outbox: &mpsc::Sender<AgentMessage>) -> Ended {
    let Some(spool) = spool else { return std::future::pending().await };
    loop {
        let Some(message) = spool.next_message() else {
            if timeout(PRUNING, spool.until_due()).await.is_err() {
                spool.prune();
            }
            continue;
        };
        let last = message.first.saturating_add(message.entries.len() as u64).saturating_sub(1);
        if let Err(ended) = send(outbox, agent_message::Message::Spooled(message)).await {
            sleep(LAST_WORDS).await;
            return ended;
        }
        drop(timeout(RECORDING, spool.until_recorded(last)).await);
    }
}

async fn send(outbox: &mpsc::Sender<AgentMessage>, message: agent_message::Message) -> Result<(), Ended> {
    let sent = outbox.send(AgentMessage { message: Some(message) }).await;
    sent.map_err(|_| Ended::Failed("the hub ended the stream".to_owned()))
}

/// Waits until the certificate is to be renewed, and then until no operation runs, but not for longer than
/// [`RUNS_END`]: the next session begins without them.
async fn renewal(expires: Option<Timestamp>, answers: &Answers) {
    sleep(renewal_after(expires)).await;
    drop(timeout(RUNS_END, answers.until_no_run()).await);
}

/// Returns the time until the certificate is to be renewed, with some jitter.
fn renewal_after(expires: Option<Timestamp>) -> Duration {
    let left = expires.map(|expires| expires.duration_since(Timestamp::now()));
    let left = left.and_then(|left| Duration::try_from(left).ok()).unwrap_or_default();
    let day = Duration::from_secs(24 * 3600);
    let until = left.saturating_sub(day.saturating_sub(RENEWAL));
    // A clock that goes wrong must not make the agent dial again and again.
    until.max(Duration::from_secs(300)).mul_f64(1.0 + fastrand::f64() / 20.0)
}

/// Returns the text of a status for people.
fn told(status: &Status) -> String {
    match status.message() {
        "" => format!("the hub answered {}", status.code().description()),
        message => message.to_owned(),
    }
}
