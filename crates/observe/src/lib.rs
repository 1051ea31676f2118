//! Reads and watches Kubernetes clusters, and reads dumps of clusters; keeps a
//! [`Snapshot`](taffrail_apps::Snapshot) of each.
//!
//! [`fn@members`] finds the contexts of a [`ClusterSelection`]. [`fn@look`] reads them once by the plan of reads,
//! [`FleetWatcher`] watches what that plan names, [`read_dumps`] reads files by the same plan, [`operations`] changes
//! objects, and [`for_each_cluster`] runs any function for each of them. All requests to clusters are asynchronous, in
//! the caller's Tokio runtime. Nothing is printed.
//!
//! * `look` and `follow` (views with `-w`, and `wait`) keep [`Snapshot`](taffrail_apps::Snapshot)s of the scopes that
//!   the plan of reads names, so a view cannot tell them apart. `rows` passes what changed to
//!   [`AppRows`](taffrail_apps::AppRows).
//! * [`Live`] watches all objects of a server, and keeps an index (`crates/index`) of them: one task owns the index, and
//!   readers take snapshots, which cost the owner nothing.
//! * A dump answers the plan of reads as its cluster did, unread scopes included, so a dump and a live cluster give one
//!   answer. `record` reads a cluster for its dump, page after page, `dump` reads the dump back, and `recording` has the
//!   format of both.
//! * `reporter` sends a hub [`Report`](taffrail_api::report::Report)s of the watched clusters, and writes the statuses that
//!   an agent may write.
//! * `conditions` writes the status of a cluster into an object that stands for it.
//! * `dry_run` asks an API server what an apply of a declared object would leave.
//! * `found` finds clusters that Secrets of the watched ones name, and adds them to those that are watched.
//! * [`logs`] reads and follows the logs of containers.
//! * `sameness` finds out which contexts are one cluster; `timing` divides the time of a read among clusters.

mod conditions;
mod connector;
mod dry_run;
mod dump;
mod ending;
mod error;
mod fleet;
mod follow;
mod found;
pub mod input;
mod live;
pub mod logs;
mod look;
mod members;
mod namespaces;
mod object_arg;
mod objects;
pub mod operations;
mod read;
mod reading;
mod record;
pub mod recording;
mod reporter;
mod rows;
mod rules;
mod sameness;
mod timing;

pub use conditions::{CONDITIONS_FIELD_MANAGER, write_conditions};
pub use connector::{ClusterConnector, for_each_cluster};
pub use dry_run::{ApplyAnswer, AskedApply, DeclaredManifest, ask_apply};
pub use dump::{DumpRequest, read_dumps};
pub use error::{Failure, ObserveError};
pub use fleet::{FleetSnapshot, LEFT_OUT};
pub use follow::{ExtraWatches, FleetWatcher, LightReach, WatchRequest};
pub use found::FoundClusters;
pub use live::{ColdStart, KindSettings, Live, LiveSettings, write_saved};
pub use look::{ExtraObjects, LookRequest, NO_EXTRA, catalog, look};
pub use members::{ClusterSelection, FleetMembers, Member, contexts, environment_proxies, members};
pub use namespaces::absent_namespaces;
pub use object_arg::{InvalidInventoryArg, InventoryArg, ObjectArg};
pub use objects::ObjectLook;
pub use reading::protocol;
pub use record::{RecordRequest, record};
pub use reporter::{GroupStatusEvent, Inquiry, Reporter};
pub use rules::FleetRules;
pub use timing::{TimeBudget, TimeLimits};
