//! Reports about followed clusters, for a hub.
//!
//! [`Reporter`] turns what a [`FleetWatcher`](crate::FleetWatcher) knows into
//! [`Report`](taffrail_api::report::Report)s. Each cluster has a stream of its own, whose epoch the hub gives.
//!
//! * `stream` decides what to tell next of one cluster, and when; it reads no clock.
//! * `streams` holds those of all clusters, and picks the one that is due first.

mod stream;
mod streams;

use taffrail_api::report::Report;
use taffrail_apps::ClusterId;

/// A message of a source of reports to the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceMessage {
    /// The source wants to open a stream about a cluster; the hub answers with [`SourceReply::Accepted`]. A stream that
    /// is open already ends.
    Open(ClusterId),
    /// A report of an open stream.
    Report(Box<Report>),
    /// The source no longer reports this cluster; what it told is to be forgotten.
    Close(ClusterId),
}

/// A message of the hub to a source of reports. Any may get lost: the source then asks or tells again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceReply {
    /// The hub accepted a stream, and gave it an epoch that grows with each stream about a cluster.
    Accepted {
        /// The cluster.
        cluster: ClusterId,
        /// The epoch.
        epoch: u64,
    },
    /// The digest of the hub differs: the source must send these buckets again.
    Resend {
        /// The cluster.
        cluster: ClusterId,
        /// The epoch of the stream whose digest was compared.
        epoch: u64,
        /// The buckets, as a set of 64 bits.
        buckets: u64,
    },
    /// The hub refused a report: its stream has ended, or never began.
    Refused {
        /// The cluster.
        cluster: ClusterId,
        /// The epoch of the report.
        epoch: u64,
    },
}
