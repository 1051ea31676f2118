//! The hub of the demo: it follows the simulated clusters, and keeps history in the demo's private folder.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cli::SourceArguments;
use crate::command_error::CommandError;
use crate::commands::hub::{LoopbackHub, Socket};
use crate::source::members;

/// The time for which the hub keeps history: longer than anybody watches the demo.
const RETAIN: Duration = Duration::from_secs(86_400);

/// The time that the hub has to end. What it keeps is removed in any case.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// The running hub of the demo, with how it is asked.
pub(super) struct DemoHub {
    /// The URL of the hub, by which commands ask it.
    pub(super) url: String,
    /// The token of this run.
    pub(super) token: String,
    /// The URL of the page, with the token.
    pub(super) page: String,
    /// Ends the hub when it is dropped.
    end: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl DemoHub {
    /// Starts a hub of the clusters of `source` on 127.0.0.1, which keeps history in the folder `data`; without a folder it
    /// keeps none.
    pub(super) async fn start(
        source: &SourceArguments,
        data: Option<PathBuf>,
    ) -> Result<DemoHub, CommandError> {
        let socket = Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let members = members(source)?;
        let hub = match data {
            Some(folder) => LoopbackHub::keeping(members, (&folder, RETAIN), source, socket).await?,
            None => LoopbackHub::start(members, Vec::new(), source, socket).await?,
        };
        let (url, token, page) = (hub.url(), hub.token().to_owned(), hub.page());
        let (end, ended) = oneshot::channel();
        let serving = tokio::spawn(async move {
            // Where it fails, the demo goes on without it.
            drop(hub.serve_until(async { drop(ended.await) }).await);
        });
        Ok(DemoHub { url, token, page, end, serving })
    }

    /// Ends the hub, so that it writes no more files.
    pub(super) async fn end(self) {
        let DemoHub { end, serving, .. } = self;
        drop(end);
        drop(tokio::time::timeout(LAST_WRITES, serving).await);
    }
}
