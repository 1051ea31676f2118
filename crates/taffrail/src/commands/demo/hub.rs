//! The hub of the demo: it follows the simulated clusters, keeps history in the demo's private folder, and learns of further
//! clusters by agents and by metrics.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

#[cfg(feature = "agent")]
use super::agents;
use super::exporters::ScrapedClusters;
use super::world::World;
use crate::cli::SourceArguments;
use crate::command_error::CommandError;
use crate::commands::hub::{FurtherSources, LoopbackHub, Socket};
use crate::source::members;
use taffrail_observe::LightReach;

/// The time for which the hub keeps history: longer than anybody watches the demo.
const RETAIN: Duration = Duration::from_secs(86_400);

/// The time that the hub has to end. The files that it keeps are removed in any case.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// The running hub of the demo, with how it is asked.
pub(super) struct DemoHub {
    /// The URL of the hub, by which commands ask it.
    pub(super) url: String,
    /// The token of this run.
    pub(super) token: String,
    /// The URL of the page, with the token.
    pub(super) page: String,
    /// The names of the clusters that only the hub knows.
    pub(super) further: Vec<String>,
    /// The agents, and the server of metrics.
    beside: JoinSet<()>,
    /// Ends the hub when it is dropped.
    end: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// A hub that does not serve yet, with what runs beside it.
struct Prepared {
    hub: LoopbackHub,
    further: Vec<String>,
    beside: JoinSet<()>,
}

impl DemoHub {
    /// Starts a hub of the clusters of `source` on 127.0.0.1, which keeps history in the folder `data` and learns of the
    /// further clusters of `world`. Where the folder cannot be used, or there is none, it has neither.
    pub(super) async fn start(
        source: &SourceArguments,
        world: &World,
        data: Option<PathBuf>,
    ) -> Result<DemoHub, CommandError> {
        let whole = match &data {
            Some(folder) => prepare(source, world, folder).await.ok(),
            None => None,
        };
        let Prepared { hub, further, beside } = match whole {
            Some(whole) => whole,
            None => {
                let hub = LoopbackHub::start(
                    members(source)?,
                    Vec::new(),
                    LightReach::default(),
                    source,
                    socket().await?,
                )
                .await?;
                Prepared { hub, further: Vec::new(), beside: JoinSet::new() }
            }
        };
        let (url, token, page) = (hub.url(), hub.token().to_owned(), hub.page());
        let (end, ended) = oneshot::channel();
        let serving = tokio::spawn(async move {
            // Where it fails, the demo goes on without it.
            drop(hub.serve_until(async { drop(ended.await) }).await);
        });
        Ok(DemoHub { url, token, page, further, beside, end, serving })
    }

    /// Ends the hub and all beside it, so that they write no more files.
    pub(super) async fn end(self) {
        let DemoHub { mut beside, end, serving, .. } = self;
        drop(end);
        drop(tokio::time::timeout(LAST_WRITES, async { tokio::join!(beside.shutdown(), serving) }).await);
    }
}

/// Binds a socket of this machine at a free port.
async fn socket() -> Result<Socket, CommandError> {
    Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
}

/// Starts a hub with history and further clusters, which keeps its files in `folder`.
async fn prepare(source: &SourceArguments, world: &World, folder: &Path) -> Result<Prepared, CommandError> {
    let mut beside = JoinSet::new();
    let clusters = world.of_metrics();
    let mut further: Vec<String> = clusters.iter().map(|cluster| cluster.name().to_owned()).collect();
    let scraped = ScrapedClusters::start(clusters).await?;
    let metrics = scraped.config()?;
    beside.spawn(scraped.keep_scraping());
    #[cfg(feature = "agent")]
    let (door, port) = {
        let socket = socket().await?;
        let port = socket.address.port();
        (Some((socket, agents::certificate(folder)?)), port)
    };
    #[cfg(not(feature = "agent"))]
    let door = None;
    let sources = FurtherSources { metrics, agents: door };
    let hub =
        LoopbackHub::keeping(members(source)?, sources, (folder, RETAIN), source, socket().await?).await?;
    #[cfg(feature = "agent")]
    {
        let (clusters, kubeconfig) = world.of_agents();
        for agent in agents::agents(&clusters, &kubeconfig, folder)? {
            further.push(agent.name().to_owned());
            beside.spawn(agent.run(port, hub.enrolment().await?));
        }
    }
    further.sort();
    Ok(Prepared { hub, further, beside })
}
