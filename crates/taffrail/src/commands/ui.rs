//! `taffrail ui`: a page about the apps of some clusters, served by a hub on this machine that keeps nothing on disk.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};

use clap::{Args, ValueEnum};

use super::hub::{ClusterOrigin, LoopbackHub, OriginArguments, PATIENCE, Socket};
use super::wait::ClusterArguments;
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::printable;
use crate::runtime::block_on;
use crate::say;
use crate::source::members;

/// The port that each run takes if it is free, so that pages of an earlier run go on.
const PORT: u16 = 7654;

/// Show a page about the apps of clusters in a browser, until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail ui                                    the cluster of the current context, and those named in its Secrets
  taffrail ui --all-contexts                     all clusters of the kubeconfig
  taffrail ui --kubeconfig fleet/                those of each kubeconfig in a folder
  taffrail ui --clusters-from kubeconfig         no clusters from Secrets

Open the printed URL. The token in it is valid for this run, and gives what the kubeconfig's users may read; it stays in
the browser. Only programs of this machine can reach the page. For a page that others reach, and that remembers what
was, use 'taffrail hub serve'.

Exit codes: 2 wrong usage; 3 it could not be started, or a part of it failed; 130 Ctrl-C (SIGINT) ended it; 143 SIGTERM
ended it.")]
pub(crate) struct UiArguments {
    /// Listen on this address of this machine; port 0 takes any free port [default: 127.0.0.1:7654, or any free port if
    /// that one is in use]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    #[command(flatten)]
    origins: OriginArguments,

    #[command(flatten)]
    pub(super) clusters: ClusterArguments,
}

pub(crate) fn run(arguments: &UiArguments, console: &Console) -> Result<Exit, CommandError> {
    if let Some(listen) = arguments.listen.filter(|listen| !listen.ip().to_canonical().is_loopback()) {
        let error = CommandError::usage(format_args!(
            "other machines can reach {listen}, and 'taffrail ui' serves this one alone"
        ));
        return Err(error.hint("use --listen 127.0.0.1:PORT, or 'taffrail hub serve', which serves by TLS"));
    }
    block_on(show(arguments, console))??;
    Ok(Exit::Yes)
}

async fn show(arguments: &UiArguments, console: &Console) -> Result<(), CommandError> {
    let source = arguments.clusters.source(PATIENCE);
    let members = members(&source)?;
    let clusters = members.members.len();
    let socket = bind(arguments.listen).await?;
    let hub = LoopbackHub::start(
        members,
        arguments.origins.tools(ClusterOrigin::value_variants()),
        arguments.origins.light(),
        &source,
        socket,
    )
    .await?;
    written(tell(console, &hub, clusters))?;
    hub.serve().await
}

/// Binds the socket at `listen`; without it at the usual port, or at any free one if that is in use.
async fn bind(listen: Option<SocketAddr>) -> Result<Socket, CommandError> {
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match listen {
        Some(listen) => Socket::bind(listen).await,
        None => match Socket::bind(local(PORT)).await {
            Ok(socket) => Ok(socket),
            Err(_) => Socket::bind(local(0)).await,
        },
    }
}

/// Prints the number of clusters, and the URL of the page with the token of this run.
fn tell(console: &Console, hub: &LoopbackHub, clusters: usize) -> io::Result<()> {
    let mut out = console.people();
    let noun = if clusters == 1 { "cluster" } else { "clusters" };
    say!(out, "follows {} {}; open this URL in a browser:", clusters, noun)?;
    say!(out, "  {}", printable(&hub.page()))?;
    out.flush()
}
