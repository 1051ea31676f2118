//! `taffrail hub`: follows clusters, and answers questions about all of them by HTTP.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use taffrail_apps::ReadQuery;
use taffrail_cluster::{BootClock, ListStrategy};
use taffrail_hub::http::{Access, HubApi, Limits, serve};
use taffrail_hub::store::Token;
use taffrail_hub::{FleetIndex, HubClock, HubTime, Tells};
use taffrail_observe::{FleetMembers, FleetRules, FleetWatcher, Reporter, WatchRequest};
use taffrail_status::assess::Budgets;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

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

/// The number of messages that wait between the observer and the hub. What there is no room for is told later, as it is
/// then.
const WAITING: usize = 64;

/// The time that a cluster has to answer first.
const PATIENCE: Duration = Duration::from_secs(15);

mod asker;

use asker::Asker;

/// Follow clusters, and answer questions about all of them by HTTP.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub serve --all-contexts              follow all clusters of the kubeconfig

Exit codes: 2 wrong usage; 3 it could not be started; 130 it was interrupted.")]
pub(crate) struct HubArguments {
    #[command(subcommand)]
    command: HubCommand,
}

#[derive(Debug, Subcommand)]
enum HubCommand {
    Serve(ServeArguments),
}

/// Follow clusters, and answer questions about all of them by HTTP, until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub serve --all-contexts              follow all clusters of the kubeconfig
  taffrail hub serve --listen 127.0.0.1:0        listen on any free port
  curl -H \"Authorization: Bearer $TOKEN\" 'http://127.0.0.1:7655/api/v1/apps?status=!Ready'

Paths below /api/v1, with their parameters in docs/openapi.json: apps, clusters, matrix, attention,
changes, and stream, which sends lists as they change. /healthz and /readyz need no token.

The hub listens on loopback only. Its token is another one at each start. It keeps what it knows in
memory.

Exit codes: 2 wrong usage; 3 it could not be started; 130 it was interrupted.")]
struct ServeArguments {
    /// Listen on this address of this machine; port 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7655")]
    listen: SocketAddr,

    #[command(flatten)]
    clusters: ClusterArguments,
}

impl HubArguments {
    pub(super) fn clusters_mut(&mut self) -> &mut ClusterArguments {
        let HubCommand::Serve(arguments) = &mut self.command;
        &mut arguments.clusters
    }
}

pub(crate) fn run(arguments: &HubArguments, console: &Console) -> Result<Exit, CommandError> {
    let HubCommand::Serve(arguments) = &arguments.command;
    let listen = arguments.listen;
    if !listen.ip().to_canonical().is_loopback() {
        let error = CommandError::usage(format_args!("{listen} is not an address of this machine alone"));
        return Err(error.hint("use --listen 127.0.0.1:PORT"));
    }
    let source = arguments.clusters.source(PATIENCE);
    let members = members(&source)?;
    block_on(follow_and_serve(listen, &source, members, console))??;
    Ok(Exit::Yes)
}

async fn follow_and_serve(
    listen: SocketAddr,
    source: &SourceArguments,
    members: FleetMembers,
    console: &Console,
) -> Result<(), CommandError> {
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
    let index = Arc::new(FleetIndex::new(hub_clock(&clock)));
    let hub = HubApi::new(Arc::clone(&index), access, Limits::default()).map_err(cannot_start)?;
    let clusters = members.members.len();
    let rules = RuleSource::default().with_options(Budgets::default(), source.patience(), &source.trust);
    let rules: Arc<dyn FleetRules> = Arc::new(rules);
    let (asker, inquiries) = Asker::new(members.clone(), Arc::clone(&rules));
    let hub = hub.with_asker(Arc::new(asker));
    let request = WatchRequest {
        members,
        timeout: source.timeout,
        request_timeout: source.request_timeout,
        asked: ReadQuery::default(),
        rules,
        lists: ListStrategy::Auto,
        clock,
    };
    let (outbox, messages) = mpsc::channel(WAITING);
    let (replies, inbox) = mpsc::channel(WAITING);
    let reporter = Reporter::new(FleetWatcher::start(request).await, outbox, inbox).answering(inquiries);
    // Each of these ends only with the process, or with an error that ends it.
    let publishing = tokio::spawn({
        let index = Arc::clone(&index);
        async move { index.run().await }
    });
    let receiving = tokio::spawn(async move { index.receive(OBSERVER, Tells::ALL, messages, replies).await });
    let reporting = tokio::spawn(reporter.run());
    written(tell(console, address, &token, clusters))?;
    tokio::select! {
        served = serve(listener, Arc::new(hub), std::future::pending()) => {
            served.map_err(|error| cannot_listen(&error))
        }
        _ = publishing => Err(CommandError::unreadable("the hub stopped publishing")),
        _ = receiving => Err(CommandError::unreadable("the hub stopped receiving reports")),
        _ = reporting => Err(CommandError::unreadable("the clusters are no longer followed")),
    }
}

/// Returns the clock of a hub, which runs on while the machine sleeps.
fn hub_clock(clock: &BootClock) -> HubClock {
    let (clock, begun) = (clock.clone(), clock.now());
    HubClock::new(move || HubTime { at: clock.now().since(begun), now: Timestamp::now() })
}

/// Prints where the hub is, and how to ask it.
fn tell(console: &Console, address: SocketAddr, token: &Token, clusters: usize) -> io::Result<()> {
    let mut out = console.people();
    let address = address.to_string();
    let address = &printable(&address);
    let noun = if clusters == 1 { "cluster" } else { "clusters" };
    say!(out, "follows {} {}, and answers at http://{}/api/v1", clusters, noun, address)?;
    let token = printable(token.as_str());
    say!(out, "ask it with: curl -H 'Authorization: Bearer {}' http://{}/api/v1/apps", token, address)?;
    out.flush()
}
