//! The messages between a source of reports and a hub.

use serde::{Deserialize, Serialize};
use taffrail_apps::ClusterId;

use super::received::Consequences;
use super::{Report, StreamPosition};

/// A message of a source of reports to the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SourceMessage {
    /// Opens a stream of reports about the cluster, and ends an earlier stream of the source about it; the hub answers
    /// with [`SourceReply::Accepted`].
    Open(ClusterId),
    /// A report of an open stream. The hub answers as [`SourceReply::to_report`] says.
    Report(Box<Report>),
    /// The source reports this cluster no more; the hub drops everything that the source reported about it.
    Close(ClusterId),
}

/// A reply of the hub to a message of a source. If one gets lost, the source repeats its request or report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SourceReply {
    /// The hub accepted a stream that the source asked to open.
    Accepted {
        /// The cluster.
        cluster: ClusterId,
        /// The epoch of the stream; it is greater than those of all earlier streams of the source about the cluster.
        epoch: u64,
    },
    /// The digest of the hub differs from that of the source, which must send the halves of these buckets again.
    Resend {
        /// The cluster.
        cluster: ClusterId,
        /// The epoch of the stream whose digest was compared.
        epoch: u64,
        /// The buckets that differ, as a set of 64 bits.
        buckets: u64,
    },
    /// The hub refused a report, because its stream has ended or never began, it came late or twice, or it is about
    /// another cluster: the source must open another stream.
    Refused {
        /// The cluster.
        cluster: ClusterId,
        /// The epoch of the report.
        epoch: u64,
    },
}

impl SourceReply {
    /// Returns the reply to a report about `cluster` at `position`: [`SourceReply::Refused`] if the hub refused it
    /// (`taken` is `None`), [`SourceReply::Resend`] if its consequences `taken` ask for buckets, else `None`.
    pub fn to_report(
        cluster: &ClusterId,
        position: StreamPosition,
        taken: Option<&Consequences>,
    ) -> Option<SourceReply> {
        let (cluster, epoch) = (cluster.clone(), position.epoch);
        match taken {
            None => Some(SourceReply::Refused { cluster, epoch }),
            Some(taken) if taken.resend == 0 => None,
            Some(taken) => Some(SourceReply::Resend { cluster, epoch, buckets: taken.resend }),
        }
    }
}
