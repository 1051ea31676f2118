//! Metrics servers as sources of a hub.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueHint};
use taffrail_api::checks::{CheckedApp, EvaluatedCheck};
use taffrail_apps::ClusterId;
use taffrail_cluster::BootClock;
use taffrail_hub::{FleetIndex, Tells};
use taffrail_metrics::{
    CheckRunner, CheckedApps, KnownClusters, MetricsConfig, MetricsEvent, MetricsSource, TooManyChecks,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::super::zero_ages::aged;
use crate::command_error::CommandError;
use crate::output::answer::Console;
use crate::output::printable;
use crate::phrase;

/// Maximum number of messages that wait between a source and the hub, in each direction.
const WAITING: usize = 64;

/// Maximum number of events that wait to be printed; further ones are dropped.
const EVENTS: usize = 256;

/// The arguments that say which metrics servers a hub reads.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clusters")]
pub(super) struct MetricsArguments {
    /// Read the metrics servers (Prometheus, Thanos, Mimir) that this YAML file lists, and show the apps that they tell of,
    /// also of clusters that nothing else reaches; see docs/metrics.md
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    metrics_from: Option<PathBuf>,
}

impl MetricsArguments {
    /// Reads the list of servers; it is empty if no file is given.
    pub(super) fn config(&self) -> Result<MetricsConfig, CommandError> {
        let Some(path) = &self.metrics_from else { return Ok(MetricsConfig::default()) };
        MetricsConfig::read(path).map_err(|error| {
            let converted = CommandError::usage(&error);
            let converted = match std::error::Error::source(&error) {
                Some(source) => converted.with_source(source),
                None => converted,
            };
            converted.hint(error.hint())
        })
    }
}

/// The clusters of an index that other sources than metrics know.
struct CloserSources(Arc<FleetIndex>);

impl KnownClusters for CloserSources {
    fn clusters(&self) -> HashMap<String, ClusterId> {
        self.0.closely_known()
    }
}

/// The apps of an index that declare checks.
struct AppsOfIndex(Arc<FleetIndex>);

impl CheckedApps for AppsOfIndex {
    fn apps(&self) -> Vec<CheckedApp> {
        self.0.checked_apps()
    }

    fn take(&self, evaluated: Vec<EvaluatedCheck>) {
        self.0.take_checks(evaluated);
    }
}

/// The metrics servers that a hub reads, and the events that they tell.
pub(super) struct MetricsServers {
    config: MetricsConfig,
    events: mpsc::Sender<(String, MetricsEvent)>,
}

impl MetricsServers {
    /// Makes the sources of these servers, and the receiver of what happens to them.
    pub(super) fn new(config: MetricsConfig) -> (MetricsServers, mpsc::Receiver<(String, MetricsEvent)>) {
        let (events, told) = mpsc::channel(EVENTS);
        (MetricsServers { config, events }, told)
    }

    /// Returns no servers.
    pub(super) fn none() -> MetricsServers {
        MetricsServers::new(MetricsConfig::default()).0
    }

    /// Returns true if there is no server.
    pub(super) fn is_empty(&self) -> bool {
        self.config.servers.is_empty()
    }

    /// Returns true if one of the servers is the source of this name.
    pub(super) fn has_source(&self, source: &str) -> bool {
        self.config.servers.iter().any(|server| source_name(&server.name) == source)
    }

    /// Starts to read the servers, and to pass to `index` what they tell; if `has_ages` is false, as if each sample was
    /// of the moment at which it is passed on.
    pub(super) fn start(
        self,
        index: &Arc<FleetIndex>,
        clock: &BootClock,
        has_ages: bool,
        parts: &mut JoinSet<&'static str>,
    ) {
        match self.config.has_checks() {
            false => index.switch_checks_off(),
            true => {
                let (clock, begun, events) = (clock.clone(), clock.now(), self.events.clone());
                let apps = Arc::new(AppsOfIndex(Arc::clone(index)));
                let tell = move |TooManyChecks { server, checks, needed, allowed }| {
                    let message = format!(
                        "{checks} checks need {needed} queries in a minute, and {allowed} are allowed: some have no data"
                    );
                    let hint = Some("raise checksPerMinute, or the interval of checks");
                    let scope = Some("checks".to_owned());
                    drop(events.try_send((server, MetricsEvent::Failed { scope, message, hint })));
                };
                let runner = CheckRunner::new(&self.config, apps, move || clock.now().since(begun), tell);
                parts.spawn(async move {
                    runner.run().await;
                    "the hub stopped evaluating checks"
                });
            }
        }
        for server in self.config.servers {
            let name = server.name.clone();
            let (outbox, messages) = mpsc::channel(WAITING);
            let (replies, inbox) = mpsc::channel(WAITING);
            let known = Arc::new(CloserSources(Arc::clone(index)));
            let (clock, begun, events) = (clock.clone(), clock.now(), self.events.clone());
            let of_server = name.clone();
            let source = MetricsSource::new(server, known, move || clock.now().since(begun), outbox, inbox)
                .telling(move |event| drop(events.try_send((of_server.clone(), event))));
            let receiving = Arc::clone(index);
            let messages = aged(messages, has_ages);
            parts.spawn(async move {
                let name = source_name(&name);
                tokio::join!(source.run(), receiving.receive(&name, Tells::METRICS, messages, replies));
                "the hub stopped reading a metrics server"
            });
        }
    }
}

/// Returns the name of the source of reports that reads the server `server`. It sorts behind the names of sources that
/// read clusters: the first one of a cluster gets the rows that a restarted hub has saved.
fn source_name(server: &str) -> String {
    format!("prometheus/{server}")
}

/// Prints to stderr what happens to metrics servers; never returns.
pub(super) async fn tell(console: &Console, mut events: mpsc::Receiver<(String, MetricsEvent)>) {
    while let Some((server, event)) = events.recv().await {
        let server = &printable(&server);
        match event {
            MetricsEvent::Window { window } => {
                let seconds = window.max(Duration::from_secs(1)).as_secs();
                console.tell(phrase!("metrics server {}: a sample is live for {} s\n", server, seconds));
            }
            MetricsEvent::Recovered => console.tell(phrase!("metrics server {}: answers again\n", server)),
            MetricsEvent::Failed { scope, message, hint } => {
                let message = &printable(&message);
                match scope {
                    Some(scope) => {
                        let scope = &printable(&scope);
                        console.tell(phrase!("metrics server {}: {}: {}\n", server, scope, message));
                    }
                    None => console.tell(phrase!("metrics server {}: {}\n", server, message)),
                }
                if let Some(hint) = hint {
                    console.tell(phrase!("  {}\n", printable(hint)));
                }
            }
        }
    }
    std::future::pending().await
}
