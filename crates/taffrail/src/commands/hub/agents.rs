//! `taffrail hub agents` and `hub revoke`: the agents that report clusters to a hub.

use std::io::{self, Write};

use clap::Args;
use jiff::Timestamp;
use taffrail_hub::store::{AgentRecord, SpoolRecord, Store as _};

use super::data::DataArguments;
use super::token::{minute, with_store};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::table::{Cell, Table};
use crate::output::{printable, screen};
use crate::{phrase, program};

/// List the agents that enrolled at a hub, also while it runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub agents                            those of the hub in the usual folder
  taffrail hub agents --data /srv/taffrail       those of a hub in another folder

STATE is enrolled; away, if the certificate has expired, which the agent renews when it comes back
within 90 days; or revoked. SEEN is when the agent last connected, or was last seen connected, to ten
minutes. VIA is TLS, or a proxy that ends TLS, through which no operations are run. GAP is the last time
of which neither the hub nor the agent knows the changes of apps: the agent did not run, or it was away
for too long.

Exit codes: 0 listed; 2 wrong usage; 3 the store could not be read.")]
pub(super) struct AgentsArguments {
    #[command(flatten)]
    data: DataArguments,
}

/// Revoke the agents of a cluster: a hub that runs ends their connections within five seconds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail hub revoke eu-1                       the name is that of `taffrail hub agents`

A revoked agent never comes back; to report the cluster again, enrol an agent with a new token:
`taffrail hub token create --agent --cluster NAME`. Until then the hub shows the cluster as stale, then
lost.

Exit codes: 0 revoked; 2 wrong usage, such as a cluster without an agent; 3 the store could not be read or written.")]
pub(super) struct RevokeArguments {
    /// Name of the cluster, as `taffrail hub agents` shows it
    cluster: String,

    #[command(flatten)]
    data: DataArguments,
}

pub(super) fn list(arguments: &AgentsArguments, console: &Console) -> Result<Exit, CommandError> {
    let (agents, spools) = with_store(&arguments.data, "list agents", async |store| {
        Ok((store.agents().await?, store.spools().await?))
    })?;
    written(print(&agents, &spools, console))?;
    Ok(Exit::Yes)
}

fn print(agents: &[AgentRecord], spools: &[SpoolRecord], console: &Console) -> io::Result<()> {
    if agents.is_empty() {
        console.tell(phrase!("No agent has enrolled.\n"));
        return Ok(());
    }
    let mut out = console.people();
    let header =
        vec!["CLUSTER", "STATE", "VERSION", "ENROLLED", "SEEN", "CERTIFICATE-UNTIL", "VIA", "GAP", "UID"];
    let mut table = Table::new(&mut out, header, screen());
    let now = Timestamp::now();
    for agent in agents {
        let state = match agent.revoked {
            Some(_) => "revoked",
            None if agent.expires <= now => "away",
            None => "enrolled",
        };
        let via = if agent.is_proxied { "proxy" } else { "TLS" };
        let (enrolled, seen, until) = (minute(agent.enrolled), minute(agent.seen), minute(agent.expires));
        let gap =
            spools.iter().find(|spool| spool.cluster == agent.cluster).and_then(|spool| spool.gap.clone());
        let gap =
            gap.map_or_else(|| "-".to_owned(), |gap| format!("{}/{}", minute(gap.start), minute(gap.end)));
        let cells =
            [&*agent.name, state, &agent.version, &enrolled, &seen, &until, via, &gap, &agent.cluster.0];
        table.row(cells.into_iter().map(Cell::new).collect())?;
    }
    table.finish()?;
    out.flush()
}

pub(super) fn revoke(arguments: &RevokeArguments, console: &Console) -> Result<Exit, CommandError> {
    let RevokeArguments { cluster, data } = arguments;
    let revoked = with_store(data, "revoke an agent", async |store| {
        store.revoke_agents(cluster.clone(), Timestamp::now()).await
    })?;
    if revoked == 0 {
        let error =
            CommandError::usage(format_args!("no agent that is not revoked reports a cluster '{cluster}'"));
        let list = program::hinted("taffrail hub agents");
        return Err(error.hint(format!("{list} shows the clusters that agents report")));
    }
    console.tell(phrase!("The agent of cluster {} is revoked.\n", printable(cluster)));
    Ok(Exit::Yes)
}
