//! Reports: the messages in which a source tells a hub about one cluster.
//!
//! Everything that knows something about a cluster (an observer that reaches in, an agent in the cluster, an adapter
//! over a metrics pipeline) produces [`Report`]s, and a hub learns of clusters in no other way. A row of an app has two
//! [halves](Half): the home cluster declares it, the target cluster observes its objects. A hub keeps what each source
//! told of each cluster in a [`Received`], and puts the halves of the best sources together to an
//! [`AppRow`](crate::AppRow) with [`join()`].
//!
//! * **Order.** The hub gives each accepted stream of reports an [epoch](StreamPosition::epoch) that grows; within
//!   it, reports are numbered. Reports of older epochs and repeated numbers are dropped. A number that is missing means
//!   that a report was lost: the stream then proves nothing until a [digest](Buckets) shows that both sides hold the
//!   same halves.
//! * **Age.** Sources report ages, never times of their own clocks. The age says how long ago the API server proved
//!   itself to the source. [`Liveness`] adds the time since the hub received it, by a clock that runs on while the
//!   machine sleeps.
//!
//! A source passes the present halves to its [`ReportStreams`], which decide which message is sent next, and when.
//!
//! Nothing here reads a clock: the present moment is a parameter, as a duration since some start.

mod cluster;
mod digest;
mod exchange;
mod half;
mod join;
mod limits;
mod liveness;
mod managed;
mod mark;
mod received;
mod stream;
mod streams;
mod summary;
mod transition;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use taffrail_apps::{AppRef, ClusterId};

pub use cluster::{ClusterReport, LostCluster};
pub use digest::{Buckets, is_in};
pub use exchange::{SourceMessage, SourceReply};
pub use half::{
    DeclaredHalf, Half, HalfBody, HalfId, HalfSide, HalfUpstream, HalfUpstreams, NotLive, ObservedHalf,
    Speaker, halves,
};
pub use join::{ClusterView, HeldHalf, join, last_health, speaker};
pub use limits::MAX_NAME;
pub use liveness::{LIGHT, LIVE, LOST, Liveness, MAX_WINDOW};
pub use managed::{MAX_MANAGED, ManagedCluster};
pub use mark::{HalfChange, HalfMark};
#[doc(hidden)]
pub use received::Guards;
pub use received::{Consequences, KeptHalf, MAX_APPS, MAX_BYTES, Received, ReportError, ToldSyncs, Vitals};
pub use streams::ReportStreams;
pub use summary::ClusterSummary;
pub use transition::{AppTransition, HalfThen, Noted};

use crate::{AppName, ErrorRow};

/// The identity of an app: the cluster that declares it, and its name there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppId {
    /// The cluster that holds the declaring object.
    pub home: ClusterId,
    /// The name of the app in that cluster.
    pub app: AppName,
}

impl AppId {
    /// Makes the identity of the app `app`, whose home cluster has the identity `home`.
    pub fn new(home: ClusterId, app: &AppRef) -> AppId {
        AppId { home, app: AppName::from(app) }
    }
}

/// The position of a report in the stream of its source about one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamPosition {
    /// The number that the hub gave the stream when it accepted it; each later stream of the source about the cluster
    /// has a greater one.
    pub epoch: u64,
    /// The number of the report within the stream: 1 for the first, without gaps.
    pub seq: u64,
}

/// A report of one source about one cluster at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The cluster.
    pub cluster: ClusterId,
    /// The stream of the report, and its number there.
    pub position: StreamPosition,
    /// The time since the API server of the cluster last proved itself to the source (an answer, an event, a bookmark),
    /// or for which a change has been overdue to be reported, if that is longer; `None` if it never did.
    pub age: Option<Duration>,
    /// The content of the report.
    pub content: Content,
}

/// The content of a report: changes, a snapshot, facts about the cluster, a digest, or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Content {
    /// Halves that changed or are new, and halves that are gone.
    Changes {
        /// The halves that changed or are new, with their new contents.
        changed: Vec<Half>,
        /// The identities of the halves that the cluster has no more.
        gone: Vec<HalfId>,
    },
    /// One of the parts in which a source sends all of its halves in some [buckets](Buckets). Once the last part has
    /// come, they replace the halves that the hub holds in these buckets.
    Snapshot {
        /// The buckets, as a set of 64 bits; all for the first snapshot of a stream.
        buckets: u64,
        /// The number of this part: 0 for the first.
        part: u32,
        /// True for the last part.
        is_last: bool,
        /// The halves of this part.
        halves: Vec<Half>,
    },
    /// The facts about the cluster as a whole, and its failures; both replace the earlier ones.
    Cluster {
        /// The facts.
        facts: Box<ClusterReport>,
        /// The scopes that could not be read, and other failures.
        errors: Vec<ErrorRow>,
    },
    /// The digest of all halves that the source holds.
    Digest(Buckets),
    /// No content: the report proves that the source runs, and carries the age of the last answer of the API server.
    Heartbeat,
}
