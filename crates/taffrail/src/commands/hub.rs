//! `taffrail hub`: follows clusters, and answers questions about all of them by HTTP.

mod data;

use std::collections::HashSet;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use taffrail_apps::ReadQuery;
use taffrail_cluster::{BootClock, ListStrategy};
use taffrail_hub::http::{Access, HubApi, Limits, serve};
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
  taffrail hub backup hub-copy.db                copy what the hub keeps on disk

Exit codes: 0 copied or restored; 2 wrong usage; 3 it could not be started, read or written; 130 it was interrupted.")]
pub(crate) struct HubArguments {
    #[command(subcommand)]
    command: HubCommand,
}

#[derive(Debug, Subcommand)]
enum HubCommand {
    Serve(ServeArguments),
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
  taffrail get apps --hub http://127.0.0.1:7655 --hub-token-file token
  curl -H \"Authorization: Bearer $TOKEN\" 'http://127.0.0.1:7655/api/v1/apps?status=!Ready'

Paths below /api/v1, with their parameters in docs/openapi.json: apps, clusters, matrix, attention,
changes, history, and stream, which sends lists as they change. /healthz and /readyz need no token.

The hub listens on loopback only, and prints its address and its token, which is another one at each
start. Commands with --hub read it from $TAFFRAIL_HUB_TOKEN, or from the file of --hub-token-file. It answers from memory, and
keeps the rows of apps and their history on disk: after a restart it shows them at once, as Unknown
until their clusters answer. One hub can use a folder at one time.

Exit codes: 2 wrong usage; 3 it could not be started; 130 it was interrupted.")]
struct ServeArguments {
    /// Listen on this loopback address; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7655")]
    listen: SocketAddr,

    #[command(flatten)]
    data: DataArguments,

    /// Keep history for this long, in days
    #[arg(long, value_name = "TIME", value_parser = retain, default_value = "30d")]
    retain: Duration,

    #[command(flatten)]
    clusters: ClusterArguments,
}

impl HubArguments {
    /// Returns the clusters of a command that follows some; `None` for other commands.
    pub(super) fn clusters_mut(&mut self) -> Option<&mut ClusterArguments> {
        match &mut self.command {
            HubCommand::Serve(arguments) => Some(&mut arguments.clusters),
            HubCommand::Backup(_) | HubCommand::Restore(_) => None,
        }
    }
}

pub(crate) fn run(arguments: &HubArguments, console: &Console) -> Result<Exit, CommandError> {
    let arguments = match &arguments.command {
        HubCommand::Serve(arguments) => arguments,
        HubCommand::Backup(arguments) => return data::backup(arguments, console),
        HubCommand::Restore(arguments) => return data::restore(arguments, console),
    };
    let listen = arguments.listen;
    if !listen.ip().to_canonical().is_loopback() {
        let error = CommandError::usage(format_args!(
            "other machines can reach {listen}, and this hub serves without TLS"
        ));
        return Err(error.hint("use --listen 127.0.0.1:PORT"));
    }
    let source = arguments.clusters.source(PATIENCE);
    let members = members(&source)?;
    block_on(follow_and_serve(arguments, &source, members, console))??;
    Ok(Exit::Yes)
}

async fn follow_and_serve(
    arguments: &ServeArguments,
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
    let (access, token) = Access::loopback(address.port()).map_err(cannot_start)?;

    let clock = BootClock::default();
    let store = arguments.data.open(console).await?.map(Arc::new);
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
    written(tell(console, address, &token, clusters))?;
    tokio::select! {
        served = serve(listener, Arc::new(hub), std::future::pending()) => {
            served.map_err(|error| cannot_listen(&error))
        }
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
