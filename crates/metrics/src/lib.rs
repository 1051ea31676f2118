//! Metrics as a source of reports: reads servers with Prometheus' HTTP API, such as Thanos and Mimir, and reports the apps
//! that their metrics tell of.
//!
//! A [`MetricsSource`] reads one server by instant queries, and sends the hub what it learned as any other source does:
//! by [`SourceMessage`](taffrail_api::report::SourceMessage)s, a stream for each cluster that a label names.
//!
//! * `config` is the file that lists the servers, and how to read each.
//! * `client` sends a query, within bounds of bytes and time; `reply` reads the answer, within a bound of series.
//! * `sample` is one series with its value and the time of its sample.
//! * `families` tells by the samples of each known tool, and by mappings of the configuration, what is known of an app.
//! * `fleet` keeps the newest of that for each app, and makes halves of rows of it, with their freshness.
//! * `checks` evaluates the checks that apps name, by `template`s of queries from the configuration.
//! * `clock` is the time of a server by its answers.
//! * `source` is the loop that reads, and sends.
//!
//! A metric never proves an app to be well by its absence, and an age is always the server's own: the time of its clock
//! minus that of the sample.

mod checks;
mod client;
mod clock;
mod config;
mod error;
mod families;
mod fleet;
mod reply;
mod sample;
mod source;
mod template;

pub use checks::{CheckRunner, CheckedApps, TooManyChecks};
pub use config::{ConfigError, Family, MetricsConfig, ServerConfig};
pub use error::{QueryError, ServerError};
pub use fleet::{METRICS_ID, is_metrics_id};
pub use source::{KnownClusters, MetricsEvent, MetricsRead, MetricsReader, MetricsReports, MetricsSource};
