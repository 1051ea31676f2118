//! `taffrail tui`: the views of a hub's page in a terminal.
//!
//! * `model` is the state of the UI, and how events change it; `view` is one of its views, `rows` and `matrix` what it
//!   shows, `operation` a change that is planned, confirmed and run, `actions` the parameters of an action, `log` the log that is
//!   followed, `words` sentences, and `keys` the table of keys. They do no I/O and read no clock.
//! * `draw` draws the model into cells, by `paint`, which makes all text safe.
//! * `question` has what the model and the hub tell each other; `feed` asks the hub and follows its stream; `terminal`
//!   reads keys, and writes the cells that changed.

mod actions;
mod draw;
mod feed;
mod keys;
mod log;
mod matrix;
mod model;
mod operation;
mod paint;
mod question;
mod rows;
#[cfg(test)]
mod screens;
mod terminal;
mod view;
mod words;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::channel;

use clap::{Args, ValueEnum};

use super::hub::{ClusterOrigin, LoopbackHub, OriginArguments, PATIENCE, Socket};
use super::wait::ClusterArguments;
use crate::cli::HubFiles;
use crate::command_error::{CommandError, Exit};
use crate::hub_url::HubUrl;
use crate::output::answer::Console;
use crate::output::screen;
use crate::runtime::{self, block_on};
use crate::source::members;
use feed::Hub;
use question::Event;

/// Show what needs attention, all apps and clusters in the terminal, live, until q.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taffrail tui                                   the cluster of the current context, and those named in its Secrets
  taffrail tui --all-contexts                    all clusters of the kubeconfig
  taffrail tui --hub https://hub.example.com     what a hub follows, with the token in $TAFFRAIL_HUB_TOKEN

It shows what the page of `taffrail ui` shows, with the same keys: ? prints them. Enter opens a row, Escape goes back, /
searches, z shows only what is not well, and :apps, :clusters, :attention, :matrix and :q do as in k9s. In the
view of an app R reconciles it, and S suspends or resumes it, once you have seen and confirmed what is written; in a list
they do so with the apps that Space chose. Among its objects (o), y shows the one under the cursor as YAML, and . lists its
actions, which Enter plans. The logs of an app or object (l) are followed, and p shows those of the run before.

A click moves the cursor, and the wheel scrolls; most terminals select text while Shift is held.

Exit codes: 0 it was ended by q; 2 wrong usage, such as without a terminal; 3 it could not be started, or a part of it
failed; 130 Ctrl-C (SIGINT) ended it; 143 SIGTERM ended it.")]
pub(crate) struct TuiArguments {
    /// Ask the hub (`taffrail hub serve`) at this URL instead of clusters: https://HOST:7655, or http://127.0.0.1:7655
    /// for one on this machine. The token may follow after #: http://127.0.0.1:7655#TOKEN
    #[arg(long, value_name = "URL", value_parser = HubUrl::parse, help_heading = "Clusters and dumps", conflicts_with_all = [
        "context", "all_contexts", "kubeconfig", "request_timeout", "clusters_from", "light", "full_limit",
    ])]
    hub: Option<Box<HubUrl>>,

    #[command(flatten)]
    files: HubFiles,

    #[command(flatten)]
    origins: OriginArguments,

    #[command(flatten)]
    pub(super) clusters: ClusterArguments,
}

pub(crate) fn run(arguments: &TuiArguments, _: &Console) -> Result<Exit, CommandError> {
    if !screen::is_capable() {
        return Err(terminal::none());
    }
    let (events, incoming) = channel();
    let hub = match &arguments.hub {
        Some(url) => Hub { url: (**url).clone(), files: arguments.files.clone() },
        None => {
            let hub = block_on(start(arguments))??;
            let url = HubUrl::parse(&hub.page()).map_err(CommandError::unreadable)?;
            let ended = events.clone();
            runtime::spawn(async move {
                let why = match hub.serve().await {
                    Ok(()) => "the hub in this process ended".to_owned(),
                    Err(error) => error.to_string(),
                };
                // After the end nobody waits for it.
                let _ = ended.send(Event::Broken(why));
            });
            Hub { url: *url, files: HubFiles::default() }
        }
    };
    terminal::run(&Arc::new(hub), arguments.flags(), &events, &incoming)?;
    Ok(Exit::Yes)
}

/// Starts a hub of the clusters of `arguments` in this process.
async fn start(arguments: &TuiArguments) -> Result<LoopbackHub, CommandError> {
    let source = arguments.clusters.source(PATIENCE);
    let members = members(&source)?;
    let socket = Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let tools = arguments.origins.tools(ClusterOrigin::value_variants());
    LoopbackHub::start(members, tools, arguments.origins.light(), &source, socket).await
}

impl TuiArguments {
    /// Returns the flags with which other commands read the same.
    fn flags(&self) -> Vec<String> {
        if let Some(url) = &self.hub {
            return vec!["--hub".to_owned(), format!("{}://{}", url.scheme.as_str(), url.authority)];
        }
        let mut flags = Vec::new();
        if let Some(path) = &self.clusters.kubeconfig {
            flags.extend(["--kubeconfig".to_owned(), path.display().to_string()]);
        }
        if self.clusters.all_contexts {
            flags.push("--all-contexts".to_owned());
        }
        flags.extend(self.clusters.context.iter().flat_map(|name| ["--context".to_owned(), name.clone()]));
        flags
    }
}
