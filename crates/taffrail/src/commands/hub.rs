//! `taffrail hub`: follows clusters, and answers questions about all of them by HTTP.

mod agents;
mod asker;
mod conditions;
mod data;
mod metrics;
mod process;
mod token;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use taffrail_apps::ClusterSecretTool;
use taffrail_hub::http::{Access, Tls};
use taffrail_hub::store::Token;
use taffrail_metrics::MetricsConfig;
use taffrail_observe::{FleetMembers, LightReach};

use agents::{AgentsArguments, RevokeArguments};
#[cfg(feature = "agent")]
pub(crate) use asker::answerer;
#[cfg(all(feature = "demo", feature = "agent"))]
pub(crate) use data::create_folder;
use data::{BackupArguments, DataArguments, RestoreArguments, retain};
use metrics::{MetricsArguments, MetricsServers};
#[cfg(feature = "demo")]
pub(crate) use process::FurtherSources;
use process::{Answering, Encryption, HubProcess, Keeping, Reading};
pub(crate) use process::{LoopbackHub, Socket};

use crate::cli::SourceArguments;
use crate::command_error::{CommandError, Exit, written};
use crate::commands::wait::ClusterArguments;
use crate::output::answer::Console;
use crate::output::printable;
use crate::runtime::block_on;
use crate::source::members;
use crate::{phrase, say};

/// Time after which a followed cluster that has not answered yet counts as unreachable.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// Follow clusters, and answer questions about all of them by HTTP.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub serve --all-contexts              follow all clusters of the kubeconfig
  taffrail hub token create ci                   create an access token, which stays valid
  taffrail hub token create --agent              create a token with which an agent of a cluster enrols
  taffrail hub backup hub-copy.db                copy what the hub keeps on disk

Exit codes: 0 done; 2 wrong usage; 3 it could not be started, read or written; 130 it was interrupted.")]
pub(crate) struct HubArguments {
    #[command(subcommand)]
    command: HubCommand,
}

#[derive(Debug, Subcommand)]
enum HubCommand {
    Serve(Box<ServeArguments>),
    Token(token::TokenArguments),
    Agents(AgentsArguments),
    Revoke(RevokeArguments),
    Backup(BackupArguments),
    Restore(RestoreArguments),
}

/// Follow clusters, and answer questions about all of them by HTTP, until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub serve --all-contexts              follow all clusters of the kubeconfig
  taffrail hub serve --listen 127.0.0.1:0        listen on any free port
  taffrail hub serve --clusters-from kubeconfig,argocd,flux,capi
  taffrail hub serve --all-contexts --light='edge-*'   read some clusters lightly
  taffrail hub serve --metrics-from metrics.yaml read Prometheus, Thanos and Mimir too
  taffrail hub serve --data /srv/taffrail --retain 90d
  taffrail hub serve --listen 0.0.0.0:7655 \
     --host hub.example.com --tls-cert-file tls.crt --tls-key-file tls.key
  taffrail get apps --hub http://127.0.0.1:7655 --hub-token-file token
  taffrail hub serve --clusters-from none --listen 0.0.0.0:7655 \
     --host hub.example.com --tls-cert-file chain.crt --tls-key-file tls.key
  curl -H \"Authorization: Bearer $TOKEN\" 'http://127.0.0.1:7655/api/v1/apps?status=!Ready'

Paths below /api/v1, with their parameters in docs/openapi.json: apps, clusters, matrix, attention,
changes, history, and stream, which sends lists as they change. /healthz and /readyz need no token.

On loopback the hub prints its address and a token of this run. For other machines it serves by TLS,
admits those who have a token that `taffrail hub token create` made, and does not start without one.
Commands with --hub read the token from $TAFFRAIL_HUB_TOKEN, or from the file of --hub-token-file. It answers from memory, and
keeps the rows of apps and their history on disk: after a restart it shows them at once, as Unknown
until their clusters answer. One hub can use a folder at one time.

By TLS the hub also takes reports of agents (`taffrail agent`), which dial it from clusters that it cannot reach. They
recognise it by the issuers of its certificate that are in the file of --tls-cert-file.

Exit codes: 2 wrong usage; 3 it could not be started, or a part of it failed; 130 Ctrl-C (SIGINT) ended it; 143 SIGTERM
ended it.")]
struct ServeArguments {
    /// Listen on this address; port 0 takes any free port. Addresses that other machines can reach need TLS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7655")]
    listen: SocketAddr,

    /// Serve by TLS with the certificate in this PEM file, followed by those of its issuers. It is read again each
    /// minute, and so is the private key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires_all = ["tls_key_file", "host"])]
    tls_cert_file: Option<PathBuf>,

    /// Read the private key of the certificate from this PEM file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert_file")]
    tls_key_file: Option<PathBuf>,

    /// Answer requests for these hosts, by which others reach the hub, such as hub.example.com, and refuse those for
    /// another host; a name without a port stands for port 443 and that of --listen
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "tls_cert_file")]
    host: Vec<String>,

    #[command(flatten)]
    origins: OriginArguments,

    #[command(flatten)]
    metrics: MetricsArguments,

    #[command(flatten)]
    data: DataArguments,

    /// Keep history for this long, such as 30d or 48h, but at least 1d; older history is deleted by whole days (UTC)
    #[arg(long, value_name = "TIME", value_parser = retain, default_value = "30d")]
    retain: Duration,

    /// Write into the objects that stand for clusters in management clusters if the cluster answers and if its apps are
    /// ready: the conditions taffrail.dev/Live and taffrail.dev/AppsReady, when they turn. It takes the rights to get these
    /// objects and to patch their status
    #[arg(long)]
    write_cluster_conditions: bool,

    /// Take each observation for one of this moment, however old it is: then `cargo xtask bench faults` must find
    /// clusters that are wrongly shown as well
    #[arg(long, hide = true)]
    zero_ages: bool,

    #[command(flatten)]
    clusters: ClusterArguments,
}

/// The arguments that say from where a hub takes the clusters that it follows.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clusters")]
pub(crate) struct OriginArguments {
    /// Follow, besides the clusters of the selected contexts (see --context), those named in Secrets there: argocd, in
    /// cluster Secrets of Argo CD; flux, in kubeconfig Secrets that Kustomizations and HelmReleases name; capi, in
    /// kubeconfig Secrets of Cluster API; kubeconfig adds none; none: follow no cluster, as a hub for agents alone
    /// [default: of `ui` all, of `hub serve` kubeconfig]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    clusters_from: Option<Vec<ClusterOrigin>>,

    /// Read these clusters lightly, without a value all: names, or patterns such as edge-*. Of such a cluster only the
    /// objects that declare apps are followed, by one connection; an app has the health that Argo CD or a ResourceGroup
    /// says it has, else it is Unknown. When an app is opened, its cluster is read in full
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "*"
    )]
    light: Vec<String>,

    /// Read clusters lightly after so many that are followed in full
    #[arg(long, value_name = "NUMBER", default_value_t = 200)]
    full_limit: usize,
}

impl OriginArguments {
    /// Returns the tools whose Secrets name clusters to follow: those of the arguments, else those of `usual`.
    pub(crate) fn tools(&self, usual: &[ClusterOrigin]) -> Vec<ClusterSecretTool> {
        let origins = self.clusters_from.as_deref().unwrap_or(usual);
        origins.iter().filter_map(|origin| origin.tool()).collect()
    }

    /// Returns the choice of the clusters that are read lightly.
    pub(crate) fn light(&self) -> LightReach {
        LightReach { chosen: self.light.clone(), full_limit: self.full_limit }
    }

    /// Returns true if the hub follows clusters at all.
    fn follows(&self) -> bool {
        self.clusters_from.as_deref() != Some(&[ClusterOrigin::None])
    }
}

/// The places from which a hub takes the clusters that it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClusterOrigin {
    /// The selected contexts of the kubeconfig, which are always followed
    Kubeconfig,
    /// The cluster Secrets of Argo CD
    Argocd,
    /// The kubeconfig Secrets that Kustomizations and HelmReleases of Flux name
    Flux,
    /// The kubeconfig Secrets of Cluster API
    Capi,
    /// None: agents alone report clusters
    None,
}

impl ClusterOrigin {
    /// Returns the tool whose Secrets name the clusters; `None` if the kubeconfig does, or nothing.
    fn tool(self) -> Option<ClusterSecretTool> {
        match self {
            ClusterOrigin::Kubeconfig | ClusterOrigin::None => None,
            ClusterOrigin::Argocd => Some(ClusterSecretTool::ArgoCd),
            ClusterOrigin::Flux => Some(ClusterSecretTool::Flux),
            ClusterOrigin::Capi => Some(ClusterSecretTool::ClusterApi),
        }
    }
}

impl ServeArguments {
    /// Reads the certificate and the private key; `None` if none are given.
    fn tls(&self) -> Result<Option<Tls>, CommandError> {
        let (Some(certificate), Some(key)) = (&self.tls_cert_file, &self.tls_key_file) else {
            return Ok(None);
        };
        let tls = Tls::read(certificate, key)
            .map_err(|error| CommandError::usage("the hub cannot serve by TLS").with_source(&error))?;
        Ok(Some(tls))
    }
}

impl HubArguments {
    /// Returns the clusters of a command that follows some; `None` for other commands.
    pub(super) fn clusters_mut(&mut self) -> Option<&mut ClusterArguments> {
        match &mut self.command {
            HubCommand::Serve(arguments) => Some(&mut arguments.clusters),
            _ => None,
        }
    }
}

pub(crate) fn run(arguments: &HubArguments, console: &Console) -> Result<Exit, CommandError> {
    let arguments = match &arguments.command {
        HubCommand::Serve(arguments) => arguments,
        HubCommand::Token(arguments) => return token::run(arguments, console),
        HubCommand::Agents(arguments) => return agents::list(arguments, console),
        HubCommand::Revoke(arguments) => return agents::revoke(arguments, console),
        HubCommand::Backup(arguments) => return data::backup(arguments, console),
        HubCommand::Restore(arguments) => return data::restore(arguments, console),
    };
    let listen = arguments.listen;
    if arguments.tls_cert_file.is_none() && !listen.ip().to_canonical().is_loopback() {
        let error = CommandError::usage(format_args!(
            "other machines can reach {listen}, and this hub serves without TLS"
        ));
        return Err(
            error.hint("add --tls-cert-file, --tls-key-file and --host, or use --listen 127.0.0.1:PORT")
        );
    }
    let tls = arguments.tls()?;
    let metrics = arguments.metrics.config()?;
    let source = arguments.clusters.source(PATIENCE);
    let members = match arguments.origins.follows() {
        true => members(&source)?,
        false => FleetMembers::default(),
    };
    block_on(follow_and_serve(arguments, tls, &source, (members, metrics), console))??;
    Ok(Exit::Yes)
}

async fn follow_and_serve(
    arguments: &ServeArguments,
    tls: Option<Tls>,
    source: &SourceArguments,
    (members, metrics): (FleetMembers, MetricsConfig),
    console: &Console,
) -> Result<(), CommandError> {
    let socket = Socket::bind(arguments.listen).await?;
    let store = arguments.data.open(console).await?.map(Arc::new);
    let port = socket.address.port();
    let clusters = members.members.len();
    let (access, token) = match &tls {
        None => {
            let (access, token) = Access::loopback(port).map_err(cannot_start)?;
            (access, Some(token))
        }
        Some(_) => {
            let tokens = token::valid(store.as_deref()).await?;
            (Access::behind_tls(hosts(&arguments.host, port), tokens), None)
        }
    };
    for host in &arguments.host {
        if let Some(fault) = tls.as_ref().and_then(|tls| tls.fault(host)) {
            let what = format_args!("clients that call the hub '{host}' refuse its certificate: {fault}");
            CommandError::unreadable(what).harmless().print(console);
        }
    }
    let address = socket.address;
    let tools = arguments.origins.tools(&[]);
    let keeping = store.map(|store| Keeping { store, retain: arguments.retain });
    let encryption = tls.map_or(Encryption::None, Encryption::All);
    let answering = Answering { socket, access, encryption };
    let (metrics, events) = MetricsServers::new(metrics);
    let light = arguments.origins.light();
    let reading = Reading { members, tools, light, metrics };
    let mut hub = HubProcess::start(reading, source, !arguments.zero_ages, answering, keeping).await?;
    if arguments.write_cluster_conditions {
        let console = console.clone();
        hub.write_conditions(move |reason| console.tell(phrase!("{}\n", printable(reason))));
    }
    let host = match arguments.host.first().filter(|_| token.is_none()) {
        // The last one of a name has the port at which the hub listens.
        Some(first) => hosts(std::slice::from_ref(first), port).pop().unwrap_or_default(),
        None => address.to_string(),
    };
    written(tell(console, &host, token.as_ref(), clusters))?;
    tokio::select! {
        served = hub.serve() => served,
        () = metrics::tell(console, events) => Ok(()),
    }
}

fn cannot_start(error: impl std::error::Error) -> CommandError {
    CommandError::unreadable("cannot start the hub").with_source(&error)
}

/// Returns the values of the header `Host` for the names of a hub that listens at `port`: a name with a port as it is,
/// another one without and with `port`.
fn hosts(names: &[String], port: u16) -> Vec<String> {
    let has_port = |name: &str| name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let each = names.iter().flat_map(|name| match has_port(name) {
        true => vec![name.clone()],
        false => vec![name.clone(), format!("{name}:{port}")],
    });
    each.collect()
}

/// Prints the number of clusters, the URL of the API at `host`, and how to ask it: on loopback with the `token` of this
/// run, else by TLS with a token in a file.
fn tell(console: &Console, host: &str, token: Option<&Token>, clusters: usize) -> io::Result<()> {
    let mut out = console.people();
    let scheme = if token.is_some() { "http" } else { "https" };
    let url = format!("{scheme}://{host}");
    let url = &printable(&url);
    let noun = if clusters == 1 { "cluster" } else { "clusters" };
    say!(out, "follows {} {}, and answers at {}/api/v1", clusters, noun, url)?;
    match token {
        Some(token) => {
            let token = printable(token.as_str());
            say!(out, "ask it with: TAFFRAIL_HUB_TOKEN={} taffrail get apps --hub {}", token, url)?;
            say!(out, "or with: curl -H 'Authorization: Bearer {}' {}/api/v1/apps", token, url)?;
            say!(out, "or in a browser: {}/#{}", url, token)?;
        }
        None => say!(out, "ask it with: taffrail get apps --hub {} --hub-token-file FILE", url)?,
    }
    out.flush()
}
