//! Reads and follows Kubernetes clusters, and dumps of clusters: a cluster in, [`Snapshot`](taffrail_apps::Snapshot)s kept,
//! questions answered.
//!
//! [`fn@members`] finds the contexts of a [`ClusterSelection`]. [`fn@look`] reads them once by the plan of reads, [`FleetWatcher`] watches
//! what that plan names, [`read_dumps`] asks files as if they were clusters, [`operations`] changes objects, and
//! [`for_each_cluster`] does anything else with each of them. All of it is asynchronous and runs in the caller's Tokio runtime. Nothing is printed.

mod connector;
mod dump;
mod ending;
mod error;
mod fleet;
mod follow;
pub mod input;
mod live;
mod look;
mod members;
mod object_arg;
mod objects;
pub mod operations;
mod read;
mod reading;
mod record;
pub mod recording;
mod rows;
mod rules;
mod sameness;
mod timing;

pub use connector::{ClusterConnector, for_each_cluster};
pub use dump::{DumpRequest, read_dumps};
pub use error::{ErrorLevel, Failure, ObserveError};
pub use fleet::{FleetSnapshot, LEFT_OUT};
pub use follow::{FleetWatcher, Wanted, WatchRequest};
pub use live::{ColdStart, KindSettings, Live, LiveSettings, write_saved};
pub use look::{ExtraObjects, LookRequest, NO_EXTRA, catalog, look};
pub use members::{ClusterSelection, FleetMembers, Member, contexts, members};
pub use object_arg::ObjectArg;
pub use objects::ObjectLook;
pub use reading::protocol;
pub use record::{RecordRequest, record};
pub use rules::FleetRules;
