//! `taffrail hub`: follows clusters, and answers questions about all of them by HTTP.

mod data;
mod token;

use std::collections::HashSet;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use jiff::Timestamp;
use taffrail_apps::ReadQuery;
use taffrail_cluster::{BootClock, ListStrategy};
use taffrail_hub::http::{Access, HubApi, Limits, Tls, serve};
use taffrail_hub::store::sqlite::SqliteStore;
use taffrail_hub::store::{Store, Token};
use taffrail_hub::{FleetIndex, HubClock, HubTime, Tells};
use taffrail_observe::{FleetMembers, FleetWatcher, Reporter, WatchRequest};
use taffrail_status::assess::Budgets;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use data::{BackupArguments, DataArguments, RestoreArguments, retain};

use crate::cli::SourceArguments;
use crate::command_error::{CommandError, Exit, written};
use crate::commands::wait::ClusterArguments;
use crate::output::answer::Console;
use crate::output::printable;
use crate::rule_source::RuleSource;
use crate::runtime::block_on;
use crate::say;
use crate::source::members;

/// The name of the source that follows clusters in the hub's own process.
const OBSERVER: &str = "observer";

/// The number of messages that wait between the observer and the hub. A change for which there is no room is reported
/// later, in the state that it has then.
const WAITING: usize = 64;

/// The time that a cluster has to answer first.
const PATIENCE: Duration = Duration::from_secs(15);

/// The time before its start that the clock of a hub counts, so that what an earlier run saved has a moment.
const BEFORE: Duration = Duration::from_secs(100 * 365 * 86_400);
mod asker;

use asker::Asker;

/// Follow clusters, and answer questions about all of them by HTTP.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub serve --all-contexts              follow all clusters of the kubeconfig
  taffrail hub token create ci                   create an access token, which stays valid
  taffrail hub backup hub-copy.db                copy what the hub keeps on disk

Exit codes: 0 done; 2 wrong usage; 3 it could not be started, read or written; 130 it was interrupted.")]
pub(crate) struct HubArguments {
    #[command(subcommand)]
    command: HubCommand,
}

#[derive(Debug, Subcommand)]
enum HubCommand {
    Serve(ServeArguments),
    Token(token::TokenArguments),
    Backup(BackupArguments),
    Restore(RestoreArguments),
}

/// Follow clusters, and answer questions about all of them by HTTP, until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub serve --all-contexts              follow all clusters of the kubeconfig
  taffrail hub serve --listen 127.0.0.1:0        listen on any free port
  taffrail hub serve --data /srv/taffrail --retain 90d
  taffrail hub serve --listen 0.0.0.0:7655 \
     --host hub.example.com --tls-cert-file tls.crt --tls-key-file tls.key
  taffrail get apps --hub http://127.0.0.1:7655 --hub-token-file token
  curl -H \"Authorization: Bearer $TOKEN\" 'http://127.0.0.1:7655/api/v1/apps?status=!Ready'

Paths below /api/v1, with their parameters in docs/openapi.json: apps, clusters, matrix, attention,
changes, history, and stream, which sends lists as they change. /healthz and /readyz need no token.

On loopback the hub prints its address and a token of this run. For other machines it serves by TLS,
admits those who have a token that `taffrail hub token create` made, and does not start without one.
Commands with --hub read the token from $TAFFRAIL_HUB_TOKEN, or from the file of --hub-token-file. It answers from memory, and
keeps the rows of apps and their history on disk: after a restart it shows them at once, as Unknown
until their clusters answer. One hub can use a folder at one time.

Exit codes: 2 wrong usage; 3 it could not be started; 130 it was interrupted.")]
struct ServeArguments {
    /// Listen on this address; port 0 takes any free port. Addresses that other machines can reach need TLS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7655")]
    listen: SocketAddr,

    /// Serve by TLS with the certificate in this PEM file, followed by those of its issuers. It is read again each minute
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires_all = ["tls_key_file", "host"])]
    tls_cert_file: Option<PathBuf>,

    /// Private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert_file")]
    tls_key_file: Option<PathBuf>,

    /// Names by which others reach the hub, such as hub.example.com. Requests for another host are refused; a name without a
    /// port stands for port 443 and that of --listen
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "tls_cert_file")]
    host: Vec<String>,

    #[command(flatten)]
    data: DataArguments,

    /// Keep history for this long, in days
    #[arg(long, value_name = "TIME", value_parser = retain, default_value = "30d")]
    retain: Duration,

    #[command(flatten)]
    clusters: ClusterArguments,
}

impl ServeArguments {
    /// Reads the certificate and the private key; `None` if none are given.
    fn tls(&self) -> Result<Option<Arc<Tls>>, CommandError> {
        let (Some(certificate), Some(key)) = (&self.tls_cert_file, &self.tls_key_file) else {
            return Ok(None);
        };
        let tls = Tls::read(certificate, key)
            .map_err(|error| CommandError::usage("the hub cannot serve by TLS").with_source(&error))?;
        Ok(Some(Arc::new(tls)))
    }
}

impl HubArguments {
    /// Returns the clusters of a command that follows some; `None` for other commands.
    pub(super) fn clusters_mut(&mut self) -> Option<&mut ClusterArguments> {
        match &mut self.command {
            HubCommand::Serve(arguments) => Some(&mut arguments.clusters),
            HubCommand::Token(_) | HubCommand::Backup(_) | HubCommand::Restore(_) => None,
        }
    }
}

pub(crate) fn run(arguments: &HubArguments, console: &Console) -> Result<Exit, CommandError> {
    let arguments = match &arguments.command {
        HubCommand::Serve(arguments) => arguments,
        HubCommand::Token(arguments) => return token::run(arguments, console),
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
    let source = arguments.clusters.source(PATIENCE);
    let members = members(&source)?;
    block_on(follow_and_serve(arguments, tls, &source, members, console))??;
    Ok(Exit::Yes)
}

async fn follow_and_serve(
    arguments: &ServeArguments,
    tls: Option<Arc<Tls>>,
    source: &SourceArguments,
    members: FleetMembers,
    console: &Console,
) -> Result<(), CommandError> {
    let listen = arguments.listen;
    let cannot_listen = |error: &io::Error| {
        let refused = CommandError::unreadable(format_args!("cannot listen on {listen}")).with_source(error);
        let is_used = error.kind() == io::ErrorKind::AddrInUse;
        refused.maybe_hint(is_used.then(|| "--listen 127.0.0.1:0 takes any free port".to_owned()))
    };
    let listener = TcpListener::bind(listen).await.map_err(|error| cannot_listen(&error))?;
    let address = listener.local_addr().map_err(|error| cannot_listen(&error))?;
    let cannot_start = |error| CommandError::unreadable("cannot start the hub").with_source(&error);
    let clock = BootClock::default();
    let store = arguments.data.open(console).await?.map(Arc::new);
    let (access, token) = match &tls {
        None => {
            let (access, token) = Access::loopback(address.port()).map_err(cannot_start)?;
            (access, Some(token))
        }
        Some(_) => {
            let tokens = token::valid(store.as_deref()).await?;
            (Access::behind_tls(hosts(&arguments.host, address.port()), tokens), None)
        }
    };
    let names: HashSet<&str> = members.members.iter().map(|member| &*member.name).collect();
    let index = match &store {
        // The observer tells of the clusters that it follows alone.
        Some(store) => FleetIndex::restore(hub_clock(&clock), &**store, |name| names.contains(name)).await,
        None => Ok(FleetIndex::new(hub_clock(&clock))),
    };
    let index = Arc::new(index.map_err(cannot_start)?);
    let mut hub = HubApi::new(Arc::clone(&index), access, Limits::default()).map_err(cannot_start)?;
    if let Some(store) = &store {
        hub = hub.with_store(Arc::clone(store) as Arc<dyn Store>);
    }
    let clusters = members.members.len();
    let expected: Vec<String> = members.members.iter().map(|member| member.name.clone()).collect();
    let rules = RuleSource::default().with_options(Budgets::default(), source.patience(), &source.trust);
    let (asker, inquiries) = Asker::new(members.clone(), rules.clone());
    let hub = hub.with_asker(Arc::new(asker));
    let request = WatchRequest {
        members,
        timeout: source.timeout,
        request_timeout: source.request_timeout,
        asked: ReadQuery::default(),
        rules: Arc::new(rules),
        lists: ListStrategy::Auto,
        clock,
    };
    let (outbox, messages) = mpsc::channel(WAITING);
    let (replies, inbox) = mpsc::channel(WAITING);
    let reporter = Reporter::new(FleetWatcher::start(request).await, outbox, inbox)
        .answering(inquiries)
        .knowing(index.identities());
    index.expect(expected);
    // Each of these ends only with the process, or with an error that ends it.
    let publishing = tokio::spawn({
        let index = Arc::clone(&index);
        async move { index.run().await }
    });
    let keeping = tokio::spawn(keep(Arc::clone(&index), store, arguments.retain));
    let receiving = tokio::spawn(async move { index.receive(OBSERVER, Tells::ALL, messages, replies).await });
    let reporting = tokio::spawn(reporter.run());
    written(match &token {
        Some(token) => tell(console, address, token, clusters),
        None => {
            // The last one of a name has the port at which the hub listens.
            let host = arguments
                .host
                .first()
                .and_then(|first| hosts(std::slice::from_ref(first), address.port()).pop());
            tell_with_tls(console, &host.unwrap_or_default(), clusters)
        }
    })?;
    let hub = Arc::new(hub);
    let admitting = tokio::spawn({
        let hub = Arc::clone(&hub);
        async move { hub.keep_tokens().await }
    });
    let renewing = tokio::spawn({
        let tls = tls.clone();
        async move {
            match tls {
                Some(tls) => tls.keep_fresh().await,
                None => std::future::pending().await,
            }
        }
    });
    tokio::select! {
        served = serve(listener, hub, tls, std::future::pending()) => {
            served.map_err(|error| cannot_listen(&error))
        }
        _ = admitting => Err(CommandError::unreadable("the hub stopped reading its tokens")),
        _ = renewing => Err(CommandError::unreadable("the hub stopped reading its certificate")),
        _ = publishing => Err(CommandError::unreadable("the hub stopped publishing")),
        _ = keeping => Err(CommandError::unreadable("the hub stopped saving")),
        _ = receiving => Err(CommandError::unreadable("the hub stopped receiving reports")),
        _ = reporting => Err(CommandError::unreadable("the clusters are no longer followed")),
    }
}

/// Saves changes of the fleet, and drops old history. Never ends.
async fn keep(index: Arc<FleetIndex>, store: Option<Arc<SqliteStore>>, retain: Duration) {
    match store {
        Some(store) => drop(tokio::join!(index.save(&*store), index.keep_history(&*store, retain))),
        None => std::future::pending().await,
    }
}

/// Returns the clock of a hub, which runs on while the machine sleeps.
fn hub_clock(clock: &BootClock) -> HubClock {
    let (clock, begun) = (clock.clone(), clock.now());
    HubClock::new(move || HubTime { at: BEFORE + clock.now().since(begun), now: Timestamp::now() })
}

/// Returns the values of the header `Host` for the names of a hub that listens at `port`.
fn hosts(names: &[String], port: u16) -> Vec<String> {
    let has_port = |name: &str| name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let each = names.iter().flat_map(|name| match has_port(name) {
        true => vec![name.clone()],
        false => vec![name.clone(), format!("{name}:{port}")],
    });
    each.collect()
}

/// Prints the URL of the API behind TLS, and how to ask it.
fn tell_with_tls(console: &Console, host: &str, clusters: usize) -> io::Result<()> {
    let mut out = console.people();
    let noun = if clusters == 1 { "cluster" } else { "clusters" };
    let host = printable(host);
    say!(out, "follows {} {}, and answers at https://{}/api/v1", clusters, noun, host)?;
    say!(out, "ask it with: taffrail get apps --hub https://{} --hub-token-file FILE", host)?;
    out.flush()
}

/// Prints the URL of the API, and an example request with the token.
fn tell(console: &Console, address: SocketAddr, token: &Token, clusters: usize) -> io::Result<()> {
    let mut out = console.people();
    let address = address.to_string();
    let address = &printable(&address);
    let noun = if clusters == 1 { "cluster" } else { "clusters" };
    say!(out, "follows {} {}, and answers at http://{}/api/v1", clusters, noun, address)?;
    let token = printable(token.as_str());
    say!(out, "ask it with: TAFFRAIL_HUB_TOKEN={} taffrail get apps --hub http://{}", token, address)?;
    say!(out, "or with: curl -H 'Authorization: Bearer {}' http://{}/api/v1/apps", token, address)?;
    out.flush()
}
