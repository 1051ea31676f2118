//! `taffrail agent`: reports one cluster to a hub that cannot reach it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use taffrail_agent::{
    Agent, AgentError, AgentEvent, AgentPauses, AgentSettings, HubAddress, HubTrust, IdentityFile,
};
use taffrail_api::agent_protocol::EnrolmentToken;
use taffrail_api::question::FleetProblem;
use taffrail_apps::{ClusterId, ReadQuery};
use taffrail_cluster::BootClock;
use taffrail_observe::{
    ClusterConnector, FleetMembers, FleetWatcher, Member, Reporter, TimeBudget, TimeLimits, WatchRequest,
    environment_proxies,
};
use taffrail_status::assess::Budgets;
use tokio::sync::mpsc;

use super::wait::ClusterArguments;
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

/// The variable with the enrolment token.
const TOKEN_VARIABLE: &str = "TAFFRAIL_ENROLMENT_TOKEN";

/// Report a cluster to a hub that cannot reach it, until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub token create --agent > token      on the hub's machine: a token for one agent
  taffrail agent --hub https://hub.example.com --token-file token --name eu-1
  taffrail agent --hub https://hub.example.com   later: the agent has enrolled
  HTTPS_PROXY=http://ann:secret@proxy:3128 taffrail agent --hub https://hub.example.com

The agent dials the hub, and nothing dials the agent. The first time it enrols with the token, which
is good for one agent and one hour, and names the certificates by which the agent recognises the hub.
Then it keeps its key and its certificate in the folder of --data, and needs no token. It goes through
the proxy that $HTTPS_PROXY names, unless $NO_PROXY names the hub. While it cannot reach the hub it
tries again; the hub shows the cluster as stale, then lost.

Exit codes: 2 wrong usage; 3 it could not be started, or the hub refuses the agent; 130 Ctrl-C (SIGINT)
ended it; 143 SIGTERM ended it.")]
pub(crate) struct AgentArguments {
    // No doc comment, in which the URL would have to be a link.
    #[arg(
        long,
        value_name = "URL",
        value_parser = HubUrl::parse,
        help = "Report to the hub at this URL, such as https://hub.example.com:7655"
    )]
    hub: Box<HubUrl>,

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

    /// Trust only the certificate authorities in this PEM file for the hub [default: those that the token names, else
    /// those of this machine]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    hub_ca_file: Option<PathBuf>,

    /// Accept a proxy that ends TLS before the hub, with a certificate of an authority in this PEM file. The hub then
    /// asks this agent for no operations, which the proxy could forge
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "hub_ca_file")]
    proxy_ca_file: Option<PathBuf>,

    #[command(flatten)]
    pub(super) clusters: ClusterArguments,
}

pub(crate) fn run(arguments: &AgentArguments, console: &Console) -> Result<Exit, CommandError> {
    if arguments.hub.scheme != Scheme::Https {
        let error = CommandError::usage("an agent reports by https alone: --hub has another scheme");
        return Err(error.hint("write --hub https://HOST:PORT"));
    }
    let source = arguments.clusters.source(PATIENCE);
    let FleetMembers { members, problems } = members(&source)?;
    let [member] = &*members else {
        let error = CommandError::usage(format_args!(
            "an agent reports one cluster, and {} are selected",
            members.len()
        ));
        return Err(error.hint("name one with --context NAME"));
    };
    block_on(follow_and_report(arguments, &source, member.clone(), problems, console))?
}

async fn follow_and_report(
    arguments: &AgentArguments,
    source: &SourceArguments,
    member: Member,
    problems: Vec<FleetProblem>,
    console: &Console,
) -> Result<Exit, CommandError> {
    let file = arguments.identity_file()?;
    let saved = file.read().map_err(|error| told(&error))?;
    let cluster = match saved {
        // The cluster may not answer now. That it is this one is checked once it does.
        Some(saved) => saved.cluster,
        None => identify(&member, console).await?,
    };
    let token = arguments.token()?;
    let settings = AgentSettings {
        hub: HubAddress { host: arguments.hub.host.clone(), port: arguments.hub.port },
        trust: arguments.trust()?,
        proxies: environment_proxies(),
        file,
        token,
        cluster: cluster.clone(),
        name: arguments.name.clone().unwrap_or_else(|| member.name.clone()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pauses: AgentPauses::default(),
    };
    let agent =
        Agent::enrolled(settings, |event| tell(console, &event)).await.map_err(|error| told(&error))?;
    // What the agent reports, and answers, bears the name that the hub knows.
    let member = Member { name: agent.name().to_owned(), ..member };
    let known = HashMap::from([(member.name.clone(), ClusterId(cluster))]);
    let members = FleetMembers { members: vec![member], problems };
    let rules = RuleSource::default().with_options(Budgets::default(), source.patience(), &source.trust);
    #[cfg(feature = "hub")]
    let asking = super::hub::answerer(members.clone(), rules.clone(), source.trust.clone());
    let clock = BootClock::default();
    let request = WatchRequest { clock, ..watch_request(members, source, ReadQuery::default(), rules) };
    let (outbox, messages) = mpsc::channel(WAITING);
    let (replies, inbox) = mpsc::channel(WAITING);
    let reporter = Reporter::new(FleetWatcher::start(request).await, outbox, inbox).knowing(known);
    #[cfg(feature = "hub")]
    let (answerer, reporter) = {
        let (asker, inquiries) = asking;
        (Some(asker), reporter.answering(inquiries))
    };
    #[cfg(not(feature = "hub"))]
    let answerer = None;
    let ended = tokio::select! {
        ended = agent.run(messages, replies, answerer, |event| tell(console, &event)) => ended,
        () = reporter.run() => Err(AgentError::Ended),
    };
    match ended {
        Ok(never) => match never {},
        Err(error) => Err(told(&error)),
    }
}

/// Asks the cluster for its identity until it answers.
async fn identify(member: &Member, console: &Console) -> Result<String, CommandError> {
    let limits = TimeLimits { total: TimeBudget::PerCluster(PATIENCE), request: None };
    let connector = ClusterConnector { member: member.clone(), limits };
    loop {
        let failure = match connector.connect().await {
            Err(failure) => failure.message,
            Ok(cluster) => match cluster.id().await {
                Ok(id) => return Ok(id),
                Err(error) => error.to_string(),
            },
        };
        console.tell(phrase!(
            "The cluster does not say who it is; the agent asks again in {} s: {}\n",
            PAUSE.as_secs(),
            printable(&failure)
        ));
        tokio::time::sleep(PAUSE).await;
    }
}

impl AgentArguments {
    fn identity_file(&self) -> Result<IdentityFile, CommandError> {
        let folder = self.data.clone().or_else(|| data_folder::usual("agent"));
        let folder = folder.ok_or_else(|| {
            let error = CommandError::usage(
                "the data folder of the agent is not known: --data is not given, and this user has no home",
            );
            error.hint("name a folder for the agent's key with --data DIR")
        })?;
        Ok(IdentityFile::in_folder(&folder))
    }

    /// Reads the enrolment token; `None` if none is given.
    fn token(&self) -> Result<Option<EnrolmentToken>, CommandError> {
        let (text, from) = match &self.token_file {
            Some(path) => {
                let read = fs::read_to_string(path).map_err(|error| {
                    CommandError::usage(format_args!("cannot read the enrolment token in {}", path.display()))
                        .with_source(&error)
                });
                (read?, path.display().to_string())
            }
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
        AgentError::NotEnrolled | AgentError::EnrolmentRefused(_) | AgentError::Refused(_) => {
            "on the hub's machine 'taffrail hub token create --agent' makes a token; give it with --token-file FILE"
        }
        AgentError::OtherCluster { .. } => "name another folder with --data DIR, and enrol the agent there",
        AgentError::Malformed { .. } => "remove the file, and enrol the agent again with a new token",
        AgentError::Certificates { .. } => "name a PEM file with the certificate authority",
        AgentError::File { .. } | AgentError::Tls(_) | AgentError::Key | AgentError::Ended => "",
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
        AgentEvent::Waiting { pause } => console.tell(phrase!(
            "Another agent reports this cluster; this one waits, and asks again in {} s.\n",
            pause.as_secs()
        )),
    }
}
