//! A hub, and agents with reporters that tests control.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use taffrail_agent::{
    Agent, AgentError, AgentEvent, AgentPauses, AgentSettings, AnswerQuestions, HubAddress, HubTrust,
    Identity, IdentityFile, Spool,
};
use taffrail_api::agent_protocol::EnrolmentToken;
use taffrail_api::report::{Content, Report, SourceMessage, SourceReply, StreamPosition};
use taffrail_apps::ClusterId;
use taffrail_cluster::{BootClock, EnvironmentProxies};
use taffrail_hub::agents::Agents;
use taffrail_hub::http::{Access, Door, HubApi, Limits, Tls, serve};
use taffrail_hub::store::sqlite::SqliteStore;
use taffrail_hub::store::{EnrolmentRecord, Store, Token, TokenHash};
use taffrail_hub::{FleetIndex, HubClock, HubTime};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// The time in which everything here happens, however busy the machine is.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// An authority that issues certificates of servers.
pub(crate) struct ServerAuthority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl ServerAuthority {
    pub(crate) fn new() -> ServerAuthority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        ServerAuthority { issuer: Issuer::new(params, key), pem }
    }

    /// Returns the certificate of a server on this machine, followed by that of the authority, and its key.
    pub(crate) fn issue(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (format!("{}{}", certificate.pem(), self.pem), key.serialize_pem())
    }
}

/// A hub that serves agents.
pub(crate) struct TestHub {
    pub(crate) index: Arc<FleetIndex>,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) address: SocketAddr,
    pub(crate) authority: ServerAuthority,
    /// Seconds by which the clock of the hub is ahead.
    ahead: Arc<AtomicI64>,
    folder: TempDir,
    parts: Vec<JoinHandle<()>>,
    /// The task that serves, and the end of it.
    serving: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl TestHub {
    pub(crate) async fn start() -> TestHub {
        TestHub::begin(false).await
    }

    /// Starts a hub that keeps history.
    pub(crate) async fn recording() -> TestHub {
        TestHub::begin(true).await
    }

    async fn begin(is_recording: bool) -> TestHub {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&folder.path().join("hub.db")).await.unwrap().store);
        let ahead = Arc::new(AtomicI64::new(0));
        let (begun, counted) = (std::time::Instant::now(), Arc::clone(&ahead));
        let clock = HubClock::new(move || {
            let ahead = counted.load(Ordering::Relaxed);
            let now = Timestamp::now().checked_add(SignedDuration::from_secs(ahead)).unwrap();
            HubTime {
                at: begun.elapsed() + Duration::from_secs((ahead + 1_000 * 86_400).unsigned_abs()),
                now,
            }
        });
        let index = match is_recording {
            true => FleetIndex::restore(clock, &*store, |_| true).await.unwrap(),
            false => FleetIndex::new(clock),
        };
        let index = Arc::new(index);
        let authority = ServerAuthority::new();
        let agents = Agents::load(Arc::clone(&index), Arc::clone(&store) as Arc<dyn Store>).await.unwrap();
        let mut hub = TestHub {
            index,
            store,
            agents: Arc::new(agents),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            authority,
            ahead,
            folder,
            parts: Vec::new(),
            serving: None,
        };
        hub.renew_certificate();
        hub.serve().await;
        let (index, agents) = (Arc::clone(&hub.index), Arc::clone(&hub.agents));
        let (saving, store) = (Arc::clone(&index), Arc::clone(&hub.store));
        hub.parts.push(tokio::spawn(async move { index.run().await }));
        hub.parts.push(tokio::spawn(async move { saving.save(&*store).await }));
        let pins = hub.tls().pins();
        hub.parts.push(tokio::spawn(async move { agents.keep_fresh(|| pins.clone()).await }));
        hub
    }

    /// Writes a new certificate of the hub's authority.
    fn renew_certificate(&self) {
        let (chain, key) = self.authority.issue();
        std::fs::write(self.folder.path().join("tls.crt"), chain).unwrap();
        std::fs::write(self.folder.path().join("tls.key"), key).unwrap();
    }

    fn tls(&self) -> Tls {
        let tls =
            Tls::read(&self.folder.path().join("tls.crt"), &self.folder.path().join("tls.key")).unwrap();
        tls.with_agents(self.agents.authority().unwrap()).unwrap()
    }

    /// Begins to serve, at the address of before if there was one.
    pub(crate) async fn serve(&mut self) {
        let tls = self.tls();
        self.agents.set_pins(tls.pins()).await.unwrap();
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let access = Access::behind_tls(["localhost".to_owned()], Vec::new());
        let api = HubApi::new(Arc::clone(&self.index), access, Limits::default()).unwrap();
        let api = Arc::new(api.with_agents(Arc::clone(&self.agents)));
        let (end, ended) = oneshot::channel();
        let task = tokio::spawn(async move {
            let ended = async { drop(ended.await) };
            serve([Door { listener, tls: Some(Arc::new(tls)) }], api, ended).await.unwrap();
        });
        self.serving = Some((end, task));
    }

    /// Ends all connections, and accepts none.
    pub(crate) async fn stop_serving(&mut self) {
        if let Some((end, serving)) = self.serving.take() {
            drop(end);
            serving.await.unwrap();
        }
    }

    /// Sets the clock of the hub ahead; back for a negative number.
    pub(crate) fn wait_days(&self, days: i64) {
        self.wait(days * 86_400);
    }

    /// Sets the clock of the hub ahead by so many seconds.
    pub(crate) fn wait(&self, seconds: i64) {
        self.ahead.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Makes a token for one agent, for `cluster` if given, that is good for so many seconds.
    pub(crate) async fn token(&self, cluster: Option<&str>, seconds: i64) -> EnrolmentToken {
        let token = Token::generate().unwrap();
        let created = self.index.clock().time().now;
        let record = EnrolmentRecord {
            hash: TokenHash::of(token.as_str()),
            cluster: cluster.map(str::to_owned),
            created,
            expires: created.checked_add(SignedDuration::from_secs(seconds)).unwrap(),
            used: None,
        };
        self.store.add_enrolment(record).await.unwrap();
        EnrolmentToken { token: token.as_str().to_owned(), pins: self.store.pins().await.unwrap() }
    }

    /// Returns the settings of an agent of `cluster` that keeps its identity in `folder`.
    pub(crate) fn settings(&self, folder: &Path, cluster: &str, name: &str) -> AgentSettings {
        AgentSettings {
            hub: HubAddress { host: "localhost".to_owned(), port: self.address.port() },
            trust: HubTrust::Enrolled,
            proxies: EnvironmentProxies::default(),
            keeper: Arc::new(IdentityFile::in_folder(folder)),
            token: None,
            cluster: cluster.to_owned(),
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            allows_actions: false,
            spool: Arc::new(Spool::in_memory(ClusterId(cluster.to_owned()), BootClock::default())),
            pauses: AgentPauses {
                first: Duration::from_millis(100),
                longest: Duration::from_secs(1),
                replaced: Duration::from_secs(2),
            },
        }
    }

    /// Enrols an agent of `cluster` that keeps its identity in `folder`, and starts it.
    pub(crate) async fn enrolled(&self, folder: &Path, cluster: &str, name: &str) -> TestAgent {
        let token = Some(self.token(None, 3600).await);
        let mut agent = TestAgent::start(AgentSettings { token, ..self.settings(folder, cluster, name) });
        assert_eq!(agent.event().await, AgentEvent::Enrolled { name: name.to_owned() });
        agent.connected().await;
        agent
    }

    /// Waits until the hub publishes what `found` looks for.
    pub(crate) async fn until(&self, found: impl Fn(&taffrail_hub::FleetView) -> bool) {
        let waiting = async {
            while !found(&self.index.view()) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LONG, waiting).await.expect("the hub does not show it");
    }
}

impl Drop for TestHub {
    fn drop(&mut self) {
        let serving = self.serving.take();
        self.parts.iter().chain(serving.as_ref().map(|(_, task)| task)).for_each(JoinHandle::abort);
    }
}

/// Changes the identity that an agent keeps in `folder`, as JSON.
pub(crate) fn edit(folder: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let file = IdentityFile::in_folder(folder);
    let mut saved = serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap();
    change(&mut saved);
    std::fs::write(file.path(), serde_json::to_vec(&saved).unwrap()).unwrap();
}

/// Returns the identity that an agent keeps in `folder`.
pub(crate) async fn saved(folder: &Path) -> Identity {
    Identity::read(&IdentityFile::in_folder(folder)).await.unwrap().unwrap()
}

/// An agent whose reporter is the test.
pub(crate) struct TestAgent {
    cluster: ClusterId,
    messages: mpsc::Sender<SourceMessage>,
    replies: mpsc::Receiver<SourceReply>,
    events: mpsc::UnboundedReceiver<AgentEvent>,
    ended: JoinHandle<AgentError>,
    position: StreamPosition,
}

impl TestAgent {
    pub(crate) fn start(settings: AgentSettings) -> TestAgent {
        TestAgent::answering(settings, None)
    }

    /// Starts an agent whose questions `answerer` answers.
    pub(crate) fn answering(
        settings: AgentSettings,
        answerer: Option<Arc<dyn AnswerQuestions>>,
    ) -> TestAgent {
        let cluster = ClusterId(settings.cluster.clone());
        let (messages, sent) = mpsc::channel(64);
        let (outbox, replies) = mpsc::channel(64);
        let (tell, events) = mpsc::unbounded_channel();
        let ended = tokio::spawn(async move {
            let told = |event: AgentEvent| drop(tell.send(event));
            let agent = match Agent::enrolled(settings, told).await {
                Ok(agent) => agent,
                Err(error) => return error,
            };
            match agent.run(sent, outbox, answerer, told).await {
                Ok(never) => match never {},
                Err(error) => error,
            }
        });
        TestAgent { cluster, messages, replies, events, ended, position: StreamPosition { epoch: 0, seq: 0 } }
    }

    /// Waits for the next event.
    pub(crate) async fn event(&mut self) -> AgentEvent {
        let event = tokio::time::timeout(LONG, self.events.recv()).await.expect("the agent told nothing");
        match event {
            Some(event) => event,
            None => panic!("the agent ended: {}", (&mut self.ended).await.unwrap()),
        }
    }

    /// Waits until the agent is connected; returns true if it knows the hub through a proxy.
    pub(crate) async fn connected(&mut self) -> bool {
        loop {
            if let AgentEvent::Connected { is_proxied, .. } = self.event().await {
                return is_proxied;
            }
        }
    }

    /// Waits until the agent waits for another one.
    pub(crate) async fn waits(&mut self) {
        while !matches!(self.event().await, AgentEvent::Waiting { .. }) {}
    }

    /// Returns the error that ended the agent.
    pub(crate) async fn error(mut self) -> AgentError {
        tokio::time::timeout(LONG, &mut self.ended).await.expect("the agent did not end").unwrap()
    }

    /// Returns the next reply of the hub.
    pub(crate) async fn reply(&mut self) -> SourceReply {
        tokio::time::timeout(LONG, self.replies.recv()).await.expect("the hub replied nothing").unwrap()
    }

    pub(crate) async fn send(&self, message: SourceMessage) {
        self.messages.send(message).await.unwrap();
    }

    /// Opens a stream of reports.
    pub(crate) async fn open(&mut self) {
        self.send(SourceMessage::Open(self.cluster.clone())).await;
        loop {
            if let SourceReply::Accepted { cluster, epoch } = self.reply().await {
                assert_eq!(cluster, self.cluster);
                self.position = StreamPosition { epoch, seq: 0 };
                return;
            }
        }
    }

    /// Returns the position of the last report.
    pub(crate) fn position(&self) -> StreamPosition {
        self.position
    }

    /// Sets the position after which reports go on.
    pub(crate) fn set_position(&mut self, position: StreamPosition) {
        self.position = position;
    }

    /// Waits until the hub refuses a report, and returns the epoch of its stream.
    pub(crate) async fn refused(&mut self) -> u64 {
        loop {
            if let SourceReply::Refused { epoch, .. } = self.reply().await {
                return epoch;
            }
        }
    }

    /// Reports some content, of an API server that answers now.
    pub(crate) async fn report(&mut self, content: Content) {
        self.position.seq += 1;
        let (cluster, position) = (self.cluster.clone(), self.position);
        let report = Report { cluster, position, age: Some(Duration::ZERO), content };
        self.send(SourceMessage::Report(Box::new(report))).await;
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        self.ended.abort();
    }
}
