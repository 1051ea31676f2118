//! `taffrail agent`: reports one cluster to a hub that cannot reach it.

mod manifest;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use taffrail_agent::{
    Agent, AgentError, AgentEvent, AgentPauses, AgentSettings, HubAddress, HubTrust, Identity, IdentityFile,
    IdentitySecret, KeepIdentity, Spool, agent_metrics, serve_metrics,
};
use taffrail_api::agent_protocol::EnrolmentToken;
use taffrail_api::question::FleetProblem;
use taffrail_apps::{ClusterId, ReadQuery};
use taffrail_cluster::{BootClock, chain};
use taffrail_observe::{
    ClusterConnector, FleetMembers, FleetWatcher, GroupStatusEvent, Member, Reporter, TimeBudget, TimeLimits,
    WatchRequest, environment_proxies,
};
use taffrail_status::assess::Budgets;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use manifest::ManifestArguments;

use super::wait::ClusterArguments;
use super::zero_ages::aged;
use crate::cli::SourceArguments;
use crate::command_error::{CommandError, Exit};
use crate::hub_url::{HubUrl, Scheme};
use crate::output::answer::Console;
use crate::output::printable;
use crate::rule_source::RuleSource;
use crate::runtime::block_on;
use crate::source::{members, watch_request};
use crate::{data_folder, phrase};

/// Time after which the cluster, if it has not answered yet, counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(15);

/// Pause before the agent asks a cluster again for its identity.
const PAUSE: Duration = Duration::from_secs(10);

/// Maximum number of messages that wait between what follows the cluster and the stream to the hub, in each direction:
/// few, because a report tells an age.
const WAITING: usize = 2;

/// The reason of the hub for which it refuses an agent that was revoked.
const REVOKED: &str = "the agent was revoked";

/// The variable with the enrolment token.
const TOKEN_VARIABLE: &str = "TAFFRAIL_ENROLMENT_TOKEN";

const HUB_URL_HELP: &str = "Report to the hub at this URL, such as https://hub.example.com:7655";

/// Report a cluster to a hub that cannot reach it, until Ctrl-C.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  taffrail hub token create --agent > token      on the hub's machine: a token for one agent
  taffrail agent --hub https://hub.example.com --token-file token --name eu-1
  taffrail agent --hub https://hub.example.com   later: the agent has enrolled
  HTTPS_PROXY=http://ann:secret@proxy:3128 taffrail agent --hub https://hub.example.com
  taffrail agent manifest --hub https://hub.example.com --token-file token --image IMAGE

The agent dials the hub, and nothing dials the agent. The first time it enrols with the token, which
is good for one agent and one hour, and names the certificates by which the agent recognises the hub.
Then it keeps its key and its certificate in the folder of --data, or in the Secret of --identity-secret,
and needs no token. It goes through the proxy that $HTTPS_PROXY names, unless $NO_PROXY names the hub.
While it cannot reach the hub it tries again; the hub shows the cluster as stale, then lost.

Exit codes: 2 wrong usage; 3 it could not be started, or the hub refuses the agent; 130 Ctrl-C (SIGINT)
ended it; 143 SIGTERM ended it.")]
pub(crate) struct AgentArguments {
    #[command(subcommand)]
    command: Option<AgentCommand>,

    // No doc comment, in which the URL would have to be a link.
    #[arg(long, value_name = "URL", value_parser = HubUrl::parse, required = true, help = HUB_URL_HELP)]
    hub: Option<Box<HubUrl>>,

    /// Read the token to enrol with from this file [default: $TAFFRAIL_ENROLMENT_TOKEN]. An agent that has enrolled uses
    /// it only if the hub refuses the agent, for instance because it was revoked
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,

    /// Name under which the hub lists the cluster, unless the token has another one [default: that of the context]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Folder in which the agent keeps its key and its certificate; only its owner can read them [default:
    /// taffrail/agent in $XDG_DATA_HOME, else in ~/.local/share]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    data: Option<PathBuf>,

    /// Keep the key and the certificate in this Secret of the cluster instead of a folder, so that a Pod on another node
    /// goes on with them; without a namespace, in that of the context
    #[arg(long, value_name = "[NAMESPACE/]NAME", conflicts_with = "data")]
    identity_secret: Option<String>,

    /// Trust only the certificate authorities in this PEM file for the hub [default: those that the token names, else
    /// those of this machine]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    hub_ca_file: Option<PathBuf>,

    /// Accept a proxy that ends TLS before the hub, with a certificate of an authority in this PEM file. The hub then
    /// asks this agent for no operations, which the proxy could forge
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "hub_ca_file")]
    proxy_ca_file: Option<PathBuf>,

    /// Run the operations that the hub asks for (reconcile, suspend, resume, actions), with the rights that the agent has
    /// in the cluster. Without it the agent writes nothing but its own Secret and, if told to, statuses of ResourceGroups
    #[arg(long)]
    allow_actions: bool,

    /// Write into the status of each ResourceGroup of kpt how its objects are, where nobody else writes that status: not if
    /// another field manager owns any of it, nor where Config Sync's ResourceGroup controller runs
    #[arg(long)]
    write_resourcegroup_status: bool,

    /// Keep the changes of apps that the hub may not have heard of in this folder, too, so that an agent that is started
    /// anew still tells them: at most 16 MiB and 24 hours [default: in memory alone]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    spool_dir: Option<PathBuf>,

    /// Serve metrics of the agent, of its cluster and its apps at this address by plain HTTP, such as 127.0.0.1:9655, to
    /// everyone who can reach it: GET /metrics, and GET /healthz [default: none]
    #[arg(long, value_name = "IP:PORT")]
    metrics_listen: Option<SocketAddr>,

    /// Report each observation as one of this moment, however old it is: then `cargo xtask bench faults` must find
    /// clusters that are wrongly shown as well
    #[arg(long, hide = true)]
    zero_ages: bool,

    #[command(flatten)]
    clusters: ClusterArguments,
}

#[derive(Debug, Subcommand)]
enum AgentCommand {
    Manifest(Box<ManifestArguments>),
}

impl AgentArguments {
    /// Returns the arguments that name the cluster of the agent.
    pub(super) fn clusters_mut(&mut self) -> &mut ClusterArguments {
        match &mut self.command {
            Some(AgentCommand::Manifest(manifest)) => &mut manifest.clusters,
            None => &mut self.clusters,
        }
    }

    /// Returns true if the command reports until it is interrupted.
    pub(super) fn reports(&self) -> bool {
        self.command.is_none()
    }
}

/// Refuses the URL of a hub without TLS.
fn refuse_http(hub: &HubUrl) -> Result<(), CommandError> {
    if hub.scheme == Scheme::Https {
        return Ok(());
    }
    let error = CommandError::usage("an agent reports by https alone: --hub has another scheme");
    Err(error.hint("write --hub https://HOST:PORT"))
}

/// Returns the one cluster that is selected.
fn one_member(members: &[Member]) -> Result<&Member, CommandError> {
    let [member] = members else {
        let error = CommandError::usage(format_args!(
            "an agent reports one cluster, and {} are selected",
            members.len()
        ));
        return Err(error.hint("name one with --context NAME"));
    };
    Ok(member)
}

pub(crate) fn run(arguments: &AgentArguments, console: &Console) -> Result<Exit, CommandError> {
    if let Some(AgentCommand::Manifest(arguments)) = &arguments.command {
        return manifest::run(arguments, console);
    }
    let Some(hub) = arguments.hub.as_deref() else {
        return Err(CommandError::usage("--hub names no hub"));
    };
    refuse_http(hub)?;
    let source = arguments.clusters.source(PATIENCE);
    let FleetMembers { members, problems } = members(&source)?;
    let member = one_member(&members)?;
    block_on(follow_and_report(arguments, hub, &source, member.clone(), problems, console))?
}

async fn follow_and_report(
    arguments: &AgentArguments,
    hub: &HubUrl,
    source: &SourceArguments,
    member: Member,
    problems: Vec<FleetProblem>,
    console: &Console,
) -> Result<Exit, CommandError> {
    let keeper = arguments.keeper(&member)?;
    let saved = arguments.identity(&*keeper, console).await?;
    let has_enrolled = saved.as_ref().is_some_and(|saved| !saved.name.is_empty());
    let cluster = match saved {
        // An agent of another cluster must not take the place of one that is well. Where the cluster does not answer now, it is
        // checked once it does.
        Some(saved) => identity_of(&member).await.ok().unwrap_or(saved.cluster),
        None => identify(&member, console).await?,
    };
    let token = read_token(arguments.token_file.as_deref(), !has_enrolled)?;
    let listener = arguments.metrics_listener(console).await?;
    let clock = BootClock::default();
    let spool = arguments.spool(ClusterId(cluster.clone()), &clock, console)?;
    let settings = AgentSettings {
        hub: HubAddress { host: hub.host.clone(), port: hub.port },
        trust: arguments.trust()?,
        proxies: environment_proxies(),
        keeper,
        token,
        cluster: cluster.clone(),
        name: arguments.name.clone().unwrap_or_else(|| member.name.clone()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        allows_actions: arguments.allow_actions,
        spool: Arc::clone(&spool),
        pauses: AgentPauses::default(),
    };
    let agent =
        Agent::enrolled(settings, |event| tell(console, &event)).await.map_err(|error| told(&error))?;
    let told_of_groups = arguments.write_resourcegroup_status.then(|| {
        let console = console.clone();
        Box::new(move |event: GroupStatusEvent| tell_group(&console, &event)) as ToldOfGroups
    });
    let of_agent = ClusterOfAgent {
        member,
        problems,
        cluster: ClusterId(cluster),
        source,
        clock,
        spool,
        has_ages: !arguments.zero_ages,
        told_of_groups,
    };
    Err(told(&of_agent.report(agent, listener, |event| tell(console, &event)).await))
}

/// Is called when the status of a ResourceGroup is not written.
pub(crate) type ToldOfGroups = Box<dyn Fn(GroupStatusEvent) + Send + Sync>;

/// The cluster that an agent reports, and how it is read.
pub(crate) struct ClusterOfAgent<'s> {
    pub(crate) member: Member,
    /// The failures in kubeconfigs, and warnings about the context.
    pub(crate) problems: Vec<FleetProblem>,
    /// The identity of the cluster.
    pub(crate) cluster: ClusterId,
    pub(crate) source: &'s SourceArguments,
    /// The clock by which the agent counts ages, which that of the spool must be, too.
    pub(crate) clock: BootClock,
    pub(crate) spool: Arc<Spool>,
    /// False if each report counts as one of this moment; see [`aged`].
    pub(crate) has_ages: bool,
    /// Is told of the statuses of ResourceGroups, which the agent then writes; `None` if it writes none.
    pub(crate) told_of_groups: Option<ToldOfGroups>,
}

impl ClusterOfAgent<'_> {
    /// Follows the cluster, and reports it through `agent`, until that cannot go on; returns the reason. Serves metrics to
    /// those who connect to `listener`, if there is one. Calls `tell` with what happens.
    pub(crate) async fn report(
        self,
        agent: Agent,
        listener: Option<TcpListener>,
        tell: impl FnMut(AgentEvent),
    ) -> AgentError {
        let ClusterOfAgent { member, problems, cluster, source, clock, spool, has_ages, told_of_groups } =
            self;
        // What the agent reports, and answers, bears the name that the hub knows.
        let member = Member { name: agent.name().to_owned(), ..member };
        let known = HashMap::from([(member.name.clone(), cluster)]);
        let members = FleetMembers { members: vec![member], problems };
        let rules = RuleSource::default().with_options(Budgets::default(), source.patience(), &source.trust);
        #[cfg(feature = "hub")]
        let asking = super::hub::answerer(members.clone(), rules.clone(), source.trust.clone());
        let asked = ReadQuery { cluster_status: true, ..ReadQuery::default() };
        let request = WatchRequest { clock, ..watch_request(members, source, asked, rules) };
        let (outbox, messages) = mpsc::channel(WAITING);
        let (replies, inbox) = mpsc::channel(WAITING);
        let reporter = Reporter::new(FleetWatcher::start(request).await, outbox, inbox).knowing(known);
        let messages = aged(messages, has_ages);
        let noting = Arc::clone(&spool);
        let reporter = reporter.noting(move |cluster, noted| noting.note(cluster, noted));
        let reporter = match told_of_groups {
            Some(tell) => reporter.writing_group_statuses(agent.name().to_owned(), tell),
            None => reporter,
        };
        let (reported, state) = (reporter.reported(), agent.state());
        let metrics = move || agent_metrics(&reported.clusters(), &state.borrow(), &spool.counts());
        let serving = async move {
            match listener {
                Some(listener) => serve_metrics(listener, metrics).await,
                None => std::future::pending().await,
            }
        };
        #[cfg(feature = "hub")]
        let (answerer, reporter) = {
            let (asker, inquiries) = asking;
            (Some(asker), reporter.answering(inquiries))
        };
        #[cfg(not(feature = "hub"))]
        let answerer = None;
        let ended = tokio::select! {
            ended = agent.run(messages, replies, answerer, tell) => ended,
            () = reporter.run() => Err(AgentError::Ended),
            never = serving => match never {},
        };
        match ended {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }
}

/// Asks the cluster for its identity.
///
/// # Errors
/// If it does not answer; the reason, for people.
async fn identity_of(member: &Member) -> Result<String, String> {
    let limits = TimeLimits { total: TimeBudget::PerCluster(PATIENCE), request: None };
    let connector = ClusterConnector { member: member.clone(), limits };
    let cluster = connector.connect().await.map_err(|failure| failure.message)?;
    cluster.id().await.map_err(|error| error.to_string())
}

/// Asks the cluster for its identity until it answers.
async fn identify(member: &Member, console: &Console) -> Result<String, CommandError> {
    loop {
        let failure = match identity_of(member).await {
            Ok(id) => return Ok(id),
            Err(failure) => failure,
        };
        console.tell(phrase!(
            "The cluster does not say who it is; the agent asks again in {} s: {}\n",
            PAUSE.as_secs(),
            printable(&failure)
        ));
        tokio::time::sleep(PAUSE).await;
    }
}

/// Reads the enrolment token in a file, or else in the environment; `None` if there is none. Fails without the file if it
/// is needed.
fn read_token(file: Option<&Path>, is_needed: bool) -> Result<Option<EnrolmentToken>, CommandError> {
    let (text, from) = match file {
        Some(path) => match fs::read_to_string(path) {
            Ok(text) => (text, path.display().to_string()),
            // A Pod goes on when the Secret with its token is gone.
            Err(error) if !is_needed && error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let refused = CommandError::usage(format_args!(
                    "cannot read the enrolment token in {}",
                    path.display()
                ));
                return Err(refused.with_source(&error));
            }
        },
        None => match std::env::var(TOKEN_VARIABLE) {
            Ok(text) => (text, format!("${TOKEN_VARIABLE}")),
            Err(_) => return Ok(None),
        },
    };
    match EnrolmentToken::parse(text.trim()) {
        Some(token) => Ok(Some(token)),
        None => {
            let error = CommandError::usage(format_args!("{from} does not hold an enrolment token"));
            Err(error.hint("on the hub's machine: taffrail hub token create --agent"))
        }
    }
}

impl AgentArguments {
    /// Reads the identity of the agent; while an API server does not answer that keeps it, asks again.
    async fn identity(
        &self,
        keeper: &dyn KeepIdentity,
        console: &Console,
    ) -> Result<Option<Identity>, CommandError> {
        loop {
            match Identity::read(keeper).await {
                Err(error @ AgentError::Kept { .. }) if self.identity_secret.is_some() => {
                    console.tell(phrase!(
                        "The agent asks again in {} s: {}\n",
                        PAUSE.as_secs(),
                        printable(&chain(&error))
                    ));
                    tokio::time::sleep(PAUSE).await;
                }
                read => return read.map_err(|error| told(&error)),
            }
        }
    }

    /// Returns the place that keeps the identity of the agent of a cluster.
    fn keeper(&self, member: &Member) -> Result<Arc<dyn KeepIdentity>, CommandError> {
        if let Some(secret) = &self.identity_secret {
            let context = member.context.clone();
            let context = context.map_err(|failure| CommandError::unreadable(failure.message))?;
            let (namespace, name) = match secret.split_once('/') {
                Some((namespace, name)) => (Some(namespace.to_owned()), name),
                None => (None, &**secret),
            };
            return Ok(Arc::new(IdentitySecret::new(context, namespace, name.to_owned())));
        }
        let folder = self.data.clone().or_else(|| data_folder::usual("agent"));
        let folder = folder.ok_or_else(|| {
            let error = CommandError::usage(
                "the data folder of the agent is not known: --data is not given, and this user has no home",
            );
            error.hint("name a folder for the agent's key with --data DIR")
        })?;
        Ok(Arc::new(IdentityFile::in_folder(&folder)))
    }

    /// Begins to listen for readers of metrics, if the user wants that.
    async fn metrics_listener(&self, console: &Console) -> Result<Option<TcpListener>, CommandError> {
        let Some(address) = self.metrics_listen else { return Ok(None) };
        let cannot = |error: io::Error| {
            CommandError::usage(format_args!("cannot listen at {address} for readers of metrics"))
                .with_source(&error)
        };
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        console.tell(phrase!("Metrics: http://{}/metrics\n", printable(&bound.to_string())));
        Ok(Some(listener))
    }

    /// Opens the spool of an agent of `cluster`.
    fn spool(
        &self,
        cluster: ClusterId,
        clock: &BootClock,
        console: &Console,
    ) -> Result<Arc<Spool>, CommandError> {
        let Some(folder) = &self.spool_dir else {
            return Ok(Arc::new(Spool::in_memory(cluster, clock.clone())));
        };
        let opened = Spool::in_folder(cluster, clock.clone(), folder);
        let (spool, set_aside) = opened.map_err(|error| CommandError::unreadable(chain(&error)))?;
        if let Some(path) = set_aside {
            console.tell(phrase!(
                "The spool was damaged, or is that of another cluster; it is now {}. What it held is a gap in history.\n",
                printable(&path.display().to_string())
            ));
        }
        Ok(spool)
    }

    fn trust(&self) -> Result<HubTrust, CommandError> {
        let read = |path: &Path| HubTrust::read(path).map_err(|error| told(&error));
        Ok(match (&self.hub_ca_file, &self.proxy_ca_file) {
            (Some(path), _) => HubTrust::Authorities(read(path)?),
            (None, Some(path)) => HubTrust::Proxy(read(path)?),
            (None, None) => HubTrust::Enrolled,
        })
    }
}

/// Converts the error that ended an agent, with what the user can do.
fn told(error: &AgentError) -> CommandError {
    let hint = match error {
        // The hub says itself what to do.
        AgentError::EnrolmentRefused(reason) | AgentError::Refused(reason)
            if reason.contains("taffrail hub token create") || reason.contains("--name NAME") =>
        {
            ""
        }
        AgentError::Refused(reason) if reason == REVOKED => {
            "on the hub's machine 'taffrail hub token create --agent --cluster NAME' makes a token for the cluster; give it with --token-file FILE"
        }
        AgentError::NotEnrolled | AgentError::EnrolmentRefused(_) | AgentError::Refused(_) => {
            "on the hub's machine 'taffrail hub token create --agent' makes a token; give it with --token-file FILE"
        }
        AgentError::OtherCluster { .. } => {
            "keep the identity of each cluster's agent in a place of its own (--data, --identity-secret), and enrol it there"
        }
        AgentError::Malformed { .. } => "remove it, and enrol the agent again with a new token",
        AgentError::Certificates { .. } => "name a PEM file with the certificate authority",
        AgentError::Kept { .. } | AgentError::Tls(_) | AgentError::Key | AgentError::Ended => "",
    };
    let converted = match error {
        AgentError::Certificates { .. } | AgentError::OtherCluster { .. } => CommandError::usage(error),
        _ => CommandError::unreadable(error),
    };
    let converted = match std::error::Error::source(error) {
        Some(source) => converted.with_source(source),
        None => converted,
    };
    converted.maybe_hint((!hint.is_empty()).then(|| hint.to_owned()))
}

/// Prints to stderr what happened between the agent and the hub.
fn tell(console: &Console, event: &AgentEvent) {
    match event {
        AgentEvent::Enrolled { name } => {
            console.tell(phrase!("Enrolled: the hub lists the cluster as '{}'.\n", printable(name)));
        }
        AgentEvent::Connected { name, is_proxied: false } => {
            console.tell(phrase!("Connected: the agent reports cluster '{}'.\n", printable(name)));
        }
        AgentEvent::Connected { name, is_proxied: true } => console.tell(phrase!(
            "Connected through a proxy that ends TLS: the agent reports cluster '{}', and runs no operations.\n",
            printable(name)
        )),
        AgentEvent::Disconnected { reason, pause } => console.tell(phrase!(
            "Not connected; the agent tries again in {} s: {}\n",
            pause.as_secs_f64().ceil() as u64,
            printable(reason)
        )),
        AgentEvent::NotSaved { reason } => {
            console.tell(phrase!("The agent goes on, and saves its certificate later: {}\n", printable(reason)));
        }
        AgentEvent::NotSpooled { reason } => {
            console.tell(phrase!("The agent goes on, and writes its spool later: {}\n", printable(reason)));
        }
        AgentEvent::Waiting { pause } => console.tell(phrase!(
            "Another agent reports this cluster; this one waits, and asks again in {} s.\n",
            pause.as_secs()
        )),
    }
}

/// Prints to stderr why the agent does not write the status of a ResourceGroup.
fn tell_group(console: &Console, event: &GroupStatusEvent) {
    match event {
        GroupStatusEvent::ControllerRuns => console.tell(phrase!(
            "The agent writes no status of a ResourceGroup: Config Sync's controller does, in namespace \
             resource-group-system. The agent looks again in 10 min.\n"
        )),
        GroupStatusEvent::Owned { group, manager, is_taken_over: false } => console.tell(phrase!(
            "The agent does not write the status of ResourceGroup {}: '{}' does.\n",
            printable(group),
            printable(manager)
        )),
        GroupStatusEvent::Owned { group, manager, is_taken_over: true } => console.tell(phrase!(
            "The agent no longer writes the status of ResourceGroup {}: '{}' has taken over.\n",
            printable(group),
            printable(manager)
        )),
        GroupStatusEvent::NotWritten { group, reason } => console.tell(phrase!(
            "The agent did not write the status of ResourceGroup {}: {}\n",
            printable(group),
            printable(reason)
        )),
        GroupStatusEvent::More => console
            .tell(phrase!("The statuses of more ResourceGroups are not written; no others are named.\n")),
    }
}
