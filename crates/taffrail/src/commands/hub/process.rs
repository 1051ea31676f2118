//! Runs a hub: follows its clusters, saves their rows and history, and answers by HTTP.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
#[cfg(feature = "demo")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
#[cfg(all(feature = "demo", feature = "agent"))]
use taffrail_api::agent_protocol::EnrolmentToken;
use taffrail_apps::{ClusterId, ClusterSecretTool, ReadQuery};
use taffrail_cluster::BootClock;
use taffrail_hub::agents::Agents;
use taffrail_hub::conditions::keep_conditions;
use taffrail_hub::http::{Access, Door, HubApi, Limits, Tls, serve};
#[cfg(feature = "demo")]
use taffrail_hub::store::sqlite::Opened;
use taffrail_hub::store::sqlite::SqliteStore;
use taffrail_hub::store::{Store, Token};
use taffrail_hub::{Ask, FleetIndex, HubClock, HubTime, OBSERVER, Tells};
#[cfg(feature = "demo")]
use taffrail_metrics::MetricsConfig;
use taffrail_observe::{FleetMembers, FleetWatcher, FoundClusters, LightReach, Reporter, WatchRequest};
use taffrail_status::assess::Budgets;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::super::zero_ages::aged;
use super::asker::Asker;
use super::cannot_start;
use super::conditions::ConditionsWriter;
#[cfg(feature = "demo")]
use super::data;
use super::metrics::MetricsServers;
#[cfg(all(feature = "demo", feature = "agent"))]
use super::token;
use crate::cli::SourceArguments;
use crate::command_error::CommandError;
use crate::rule_source::RuleSource;
use crate::source::watch_request;

/// Maximum number of messages that wait between the observer and the hub, in each direction. A change for which there
/// is no room is reported later, in the state that it has then.
const WAITING: usize = 64;

/// The time before its start that the clock of a hub counts, so that what an earlier run saved has a moment.
const BEFORE: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A socket at which a hub listens.
pub(crate) struct Socket {
    listener: TcpListener,
    /// The address with the port that was chosen.
    pub(crate) address: SocketAddr,
}

impl Socket {
    /// Binds a socket to the address `listen`, whose port 0 stands for any free one. Fails if that cannot be done.
    pub(crate) async fn bind(listen: SocketAddr) -> Result<Socket, CommandError> {
        let listener = TcpListener::bind(listen).await.map_err(|error| cannot_listen(listen, &error))?;
        let address = listener.local_addr().map_err(|error| cannot_listen(listen, &error))?;
        Ok(Socket { listener, address })
    }
}

fn cannot_listen(listen: impl Display, error: &io::Error) -> CommandError {
    let refused = CommandError::unreadable(format_args!("cannot listen on {listen}")).with_source(error);
    let is_used = error.kind() == io::ErrorKind::AddrInUse;
    refused.maybe_hint(is_used.then(|| "--listen 127.0.0.1:0 takes any free port".to_owned()))
}

/// The store in which a hub keeps rows, history and tokens.
pub(super) struct Keeping {
    pub(super) store: Arc<SqliteStore>,
    /// The time for which history is kept.
    pub(super) retain: Duration,
}

/// The side of a hub that answers: where it listens, and whom it admits.
pub(super) struct Answering {
    /// The socket of readers; of agents, too, if it serves by TLS.
    pub(super) socket: Socket,
    pub(super) access: Access,
    pub(super) encryption: Encryption,
}

/// The TLS of a hub.
pub(super) enum Encryption {
    /// The hub serves without TLS, and takes no agents.
    None,
    /// The socket of readers and agents serves by TLS.
    All(Tls),
    /// Readers come without TLS, and agents by TLS to a socket of their own.
    #[cfg(feature = "demo")]
    Agents(Socket, Tls),
}

/// The sources that a hub reads.
pub(super) struct Reading {
    /// The clusters that it follows.
    pub(super) members: FleetMembers,
    /// The tools whose Secrets in these name further ones.
    pub(super) tools: Vec<ClusterSecretTool>,
    /// The choice of those that are read lightly.
    pub(super) light: LightReach,
    pub(super) metrics: MetricsServers,
}

/// A hub that follows its clusters.
pub(super) struct HubProcess {
    sockets: Vec<(Socket, Option<Arc<Tls>>)>,
    api: Arc<HubApi>,
    index: Arc<FleetIndex>,
    /// The clusters that it follows now.
    members: watch::Receiver<FleetMembers>,
    /// The store in which it keeps rows and history; `None` if it keeps nothing.
    store: Option<Arc<SqliteStore>>,
    /// The parts of the hub, which end only with the process or by an error; each returns what stopped.
    parts: JoinSet<&'static str>,
}

impl HubProcess {
    /// Starts to read the sources of `reading`, and follows clusters with the options of `source`; if `has_ages` is false, takes each report for one of a server that answers at this moment.
    pub(super) async fn start(
        reading: Reading,
        source: &SourceArguments,
        has_ages: bool,
        answering: Answering,
        keeping: Option<Keeping>,
    ) -> Result<HubProcess, CommandError> {
        let Answering { socket, access, encryption } = answering;
        let (tls, agents_socket) = match encryption {
            Encryption::None => (None, None),
            Encryption::All(tls) => (Some(tls), None),
            #[cfg(feature = "demo")]
            Encryption::Agents(socket, tls) => (Some(tls), Some(socket)),
        };
        let Reading { members, tools, light, metrics } = reading;
        let clock = BootClock::default();
        let names: HashSet<&str> = members.members.iter().map(|member| &*member.name).collect();
        // The observer tells of the clusters that it follows alone.
        let is_followed = |name: &str| names.contains(name) || !tools.is_empty() && is_found_in(name, &names);
        let of_agents = match &keeping {
            Some(Keeping { store, .. }) if tls.is_some() => store.agents().await.map_err(cannot_start)?,
            _ => Vec::new(),
        };
        let of_agents: HashSet<&str> =
            of_agents.iter().filter(|agent| agent.revoked.is_none()).map(|agent| &*agent.name).collect();
        let index = match &keeping {
            Some(Keeping { store, .. }) => {
                FleetIndex::restore(hub_clock(&clock), &**store, |name| {
                    is_followed(name) || of_agents.contains(name) || metrics.has_source(name)
                })
                .await
            }
            None => Ok(FleetIndex::new(hub_clock(&clock))),
        };
        let index = Arc::new(index.map_err(cannot_start)?);
        let earlier: HashMap<String, ClusterId> =
            index.identities().into_iter().filter(|(name, _)| is_followed(name)).collect();
        let mut api = HubApi::new(Arc::clone(&index), access, Limits::default()).map_err(cannot_start)?;
        if let Some(Keeping { store, .. }) = &keeping {
            api = api.with_store(Arc::clone(store) as Arc<dyn Store>);
        }
        let mut parts = JoinSet::new();
        let (tls, agents) = match (tls, &keeping) {
            (Some(tls), Some(Keeping { store, .. })) => {
                let (tls, agents) = with_agents(tls, &index, store).await?;
                let tls = Arc::new(tls);
                api = api.with_agents(Arc::clone(&agents));
                let (serving, fresh) = (Arc::clone(&tls), Arc::clone(&agents));
                parts.spawn(async move {
                    fresh.keep_fresh(|| serving.pins()).await;
                    "the hub stopped reading its agents"
                });
                (Some(tls), Some(agents))
            }
            (tls, _) => (tls.map(Arc::new), None),
        };
        let expected: Vec<String> = members.members.iter().map(|member| member.name.clone()).collect();
        let rules = RuleSource::default().with_options(Budgets::default(), source.patience(), &source.trust);
        let trust = source.trust.clone();
        let (found, mut followed) = FoundClusters::new(members.clone(), tools.clone(), trust);
        let (asker, inquiries) = Asker::new(followed.clone(), rules.clone(), source.trust.clone());
        let asker = match agents.is_some() || !metrics.is_empty() {
            true => asker.with_reports(Arc::clone(&index), agents),
            false => asker,
        };
        let asker = Arc::new(asker);
        let api = api.with_asker(Arc::clone(&asker) as Arc<dyn Ask>);
        let api = Arc::new(api.with_operator(asker));
        let asked =
            ReadQuery { cluster_secrets: tools.clone(), cluster_status: true, ..ReadQuery::default() };
        metrics.start(&index, &clock, has_ages, &mut parts);
        let request = WatchRequest { clock, light, ..watch_request(members, source, asked, rules) };
        let (outbox, messages) = mpsc::channel(WAITING);
        let (replies, inbox) = mpsc::channel(WAITING);
        let reporter = Reporter::new(FleetWatcher::start(request).await, outbox, inbox)
            .answering(inquiries)
            .knowing(earlier);
        let reporter = if tools.is_empty() { reporter } else { reporter.finding(found) };
        index.expect(expected);
        let members = followed.clone();
        let messages = aged(messages, has_ages);
        let publishing = Arc::clone(&index);
        parts.spawn(async move {
            publishing.run().await;
            "the hub stopped publishing"
        });
        let expecting = Arc::clone(&index);
        parts.spawn(async move {
            while followed.changed().await.is_ok() {
                let members = followed.borrow_and_update().members.clone();
                expecting.expect(members.into_iter().map(|member| member.name));
            }
            // No cluster comes or goes any more.
            std::future::pending().await
        });
        let store = keeping.map(|Keeping { store, retain }| {
            let (index, saving) = (Arc::clone(&index), Arc::clone(&store));
            parts.spawn(async move {
                tokio::join!(index.save(&*saving), index.keep_history(&*saving, retain));
                "the hub stopped saving"
            });
            store
        });
        let receiving = Arc::clone(&index);
        parts.spawn(async move {
            receiving.receive(OBSERVER, Tells::ALL, messages, replies).await;
            "the hub stopped receiving reports"
        });
        parts.spawn(async move {
            reporter.run().await;
            "the hub stopped following its clusters"
        });
        let recovering = Arc::clone(&api);
        tokio::spawn(async move { recovering.recover_operations().await });
        let admitting = Arc::clone(&api);
        parts.spawn(async move {
            admitting.keep_tokens().await;
            "the hub stopped reading its tokens"
        });
        if let Some(tls) = tls.clone() {
            parts.spawn(async move {
                tls.keep_fresh().await;
                "the hub stopped reading its certificate"
            });
        }
        let sockets = match agents_socket {
            None => vec![(socket, tls)],
            Some(agents) => vec![(socket, None), (agents, tls)],
        };
        Ok(HubProcess { sockets, api, index, members, store, parts })
    }

    /// Writes the status of each cluster into the objects that stand for it, as long as the hub runs; `tell` gets each
    /// reason for which an object has none.
    pub(super) fn write_conditions(&mut self, tell: impl Fn(&str) + Send + 'static) {
        let (index, writer) = (Arc::clone(&self.index), ConditionsWriter::new(self.members.clone()));
        self.parts.spawn(async move {
            keep_conditions(index, &writer, tell).await;
            "the hub stopped writing conditions"
        });
    }

    /// Answers until a part of the hub stops.
    pub(super) async fn serve(self) -> Result<(), CommandError> {
        self.serve_until(std::future::pending()).await
    }

    /// Answers until `end` completes or a part of the hub stops. Then ends all connections and all parts, and closes the
    /// store.
    async fn serve_until(self, end: impl Future<Output = ()>) -> Result<(), CommandError> {
        let HubProcess { sockets, api, store, mut parts, .. } = self;
        let addresses: Vec<String> = sockets.iter().map(|(socket, _)| socket.address.to_string()).collect();
        let doors = sockets.into_iter().map(|(Socket { listener, .. }, tls)| Door { listener, tls });
        let ended = tokio::select! {
            served = serve(doors, api, std::future::pending()) => {
                served.map_err(|error| cannot_listen(addresses.join(" and "), &error))
            }
            stopped = parts.join_next() => {
                Err(CommandError::unreadable(stopped.and_then(Result::ok).unwrap_or("a part of the hub failed")))
            }
            () = end => Ok(()),
        };
        parts.shutdown().await;
        if let Some(store) = store {
            store.close().await;
        }
        ended
    }
}

/// Makes the agents of a hub, and lets its TLS admit them.
async fn with_agents(
    tls: Tls,
    index: &Arc<FleetIndex>,
    store: &Arc<SqliteStore>,
) -> Result<(Tls, Arc<Agents>), CommandError> {
    let agents = Agents::load(Arc::clone(index), Arc::clone(store) as Arc<dyn Store>).await;
    let agents = agents.map_err(cannot_start)?;
    let tls = tls.with_agents(agents.authority().map_err(cannot_start)?).map_err(cannot_start)?;
    agents.set_pins(tls.pins()).await.map_err(cannot_start)?;
    Ok((tls, Arc::new(agents)))
}

/// Returns true if a cluster of this name was found in a Secret of one of the clusters `homes`: `HOME/NAMESPACE/NAME`.
fn is_found_in(name: &str, homes: &HashSet<&str>) -> bool {
    let mut parts = name.rsplitn(3, '/');
    parts.nth(2).is_some_and(|home| homes.contains(home))
}

/// Returns the clock of a hub, which runs on while the machine sleeps.
fn hub_clock(clock: &BootClock) -> HubClock {
    let (clock, begun) = (clock.clone(), clock.now());
    HubClock::new(move || HubTime { at: BEFORE + clock.now().since(begun), now: Timestamp::now() })
}

/// The sources of a hub of this machine beside the clusters that it follows.
#[cfg(feature = "demo")]
#[derive(Default)]
pub(crate) struct FurtherSources {
    /// The metrics servers that the hub reads.
    pub(crate) metrics: MetricsConfig,
    /// The socket to which agents come, and its TLS; `None` for no agents.
    pub(crate) agents: Option<(Socket, Tls)>,
}

/// A hub of this machine alone, with how it is asked.
pub(crate) struct LoopbackHub {
    address: SocketAddr,
    token: Token,
    process: HubProcess,
}

impl LoopbackHub {
    /// Starts a hub of the clusters of `members`, and of those that `tools` reach by Secrets in them, with the options
    /// of `source`, at a socket of this machine and with a new token; it reads those lightly that `light` chooses. It keeps
    /// nothing on disk.
    pub(crate) async fn start(
        members: FleetMembers,
        tools: Vec<ClusterSecretTool>,
        light: LightReach,
        source: &SourceArguments,
        socket: Socket,
    ) -> Result<LoopbackHub, CommandError> {
        let reading = Reading { members, tools, light, metrics: MetricsServers::none() };
        LoopbackHub::with(reading, source, (socket, Encryption::None), None).await
    }

    /// Starts a hub of the clusters of `members` as [`start`](LoopbackHub::start) does, with further `sources`, which keeps
    /// rows and history for `retain` in a folder, and creates that if it does not exist.
    ///
    /// # Errors
    /// If the folder cannot be used, too.
    #[cfg(feature = "demo")]
    pub(crate) async fn keeping(
        members: FleetMembers,
        sources: FurtherSources,
        (folder, retain): (&Path, Duration),
        source: &SourceArguments,
        socket: Socket,
    ) -> Result<LoopbackHub, CommandError> {
        let Opened { store, .. } = data::open(folder).await?;
        let FurtherSources { metrics, agents } = sources;
        // Nobody reads what happens to a server.
        let (metrics, _) = MetricsServers::new(metrics);
        let light = LightReach::default();
        let reading = Reading { members, tools: Vec::new(), light, metrics };
        let encryption = agents.map_or(Encryption::None, |(socket, tls)| Encryption::Agents(socket, tls));
        let keeping = Keeping { store: Arc::new(store), retain };
        LoopbackHub::with(reading, source, (socket, encryption), Some(keeping)).await
    }

    async fn with(
        reading: Reading,
        source: &SourceArguments,
        (socket, encryption): (Socket, Encryption),
        keeping: Option<Keeping>,
    ) -> Result<LoopbackHub, CommandError> {
        let address = socket.address;
        let (access, token) = Access::loopback(address.port()).map_err(cannot_start)?;
        let answering = Answering { socket, access, encryption };
        let process = HubProcess::start(reading, source, true, answering, keeping).await?;
        Ok(LoopbackHub { address, token, process })
    }

    /// Returns the URL of the hub, by which commands ask it.
    #[cfg(feature = "demo")]
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the token of this run.
    #[cfg(feature = "demo")]
    pub(crate) fn token(&self) -> &str {
        self.token.as_str()
    }

    /// Returns the URL of the page. Its fragment has the token: browsers do not send fragments, so no log has it.
    pub(crate) fn page(&self) -> String {
        format!("http://{}/#{}", self.address, self.token.as_str())
    }

    /// Makes a token with which one agent can enrol.
    ///
    /// # Errors
    /// If the hub keeps nothing, or cannot save the token.
    #[cfg(all(feature = "demo", feature = "agent"))]
    pub(crate) async fn enrolment(&self) -> Result<EnrolmentToken, CommandError> {
        let cannot = || CommandError::unreadable("cannot create a token for an agent");
        let store = self.process.store.as_ref().ok_or_else(cannot)?;
        token::enrolment(store, None).await.map_err(|error| cannot().with_source(&error))
    }

    /// Answers until a part of the hub stops.
    pub(crate) async fn serve(self) -> Result<(), CommandError> {
        self.process.serve().await
    }

    /// Answers until `end` completes or a part of the hub stops, and closes what it keeps.
    #[cfg(feature = "demo")]
    pub(crate) async fn serve_until(self, end: impl Future<Output = ()>) -> Result<(), CommandError> {
        self.process.serve_until(end).await
    }
}
