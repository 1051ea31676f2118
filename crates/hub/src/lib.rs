//! The hub: one process that holds the state of a whole fleet, serves it over HTTP to readers with access, and keeps
//! its history.
//!
//! A hub learns of clusters by [`Report`](taffrail_api::report::Report)s alone, and never speaks to a cluster itself.
//! It keeps the rows of all clusters in memory, which serves all reads of the present, and writes what must outlive the
//! process to a store.

pub mod agents;
mod ask;
mod checks;
mod clock;
pub mod conditions;
mod fleet;
pub mod http;
mod index;
mod operations;
mod parallel;
mod sharing;
mod source;
pub mod store;

pub use ask::{Ask, AskError, Asking, AskingLogs, LogAnswer, LogBounds};
pub use clock::{HubClock, HubTime};
pub use fleet::{Disagreement, FleetError, FleetState, MAX_DISAGREEMENT, OBSERVER, Tells};
pub use index::{
    AppChecks, AppFilter, FleetIndex, FleetView, GroupBy, InvalidName, ManagedClusters, NameFilter,
    PublishedFleet, ReportedCluster,
};
pub use operations::{MAX_ITEMS, Operate, OperationRun, Work};
