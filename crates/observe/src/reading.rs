//! Statistics of reading clusters, for the views.

use taffrail_apps::{ReadStats, ReadingCost, WatchStats};
use taffrail_cluster::{Cluster, Cost, Protocol, Watcher};

/// Returns the statistics of a cluster that was read once, in pages.
pub(crate) fn once(cluster: &Cluster) -> ReadStats {
    ReadStats {
        streams: false,
        compressed: cluster.compresses(),
        protocol: protocol(cluster),
        round_trip: cluster.round_trip(),
        cost: cost(cluster.requests().cost),
        followed: None,
    }
}

/// Returns the statistics of a cluster that is watched by `feeds`; `followed` has those of its watches.
pub(crate) fn following(feeds: &Watcher, followed: WatchStats) -> ReadStats {
    let (cluster, streams) = (feeds.cluster(), feeds.streams_lists());
    ReadStats {
        streams,
        compressed: !streams && cluster.compresses(),
        cost: cost(feeds.cost()),
        followed: Some(followed),
        ..once(&cluster)
    }
}

fn cost(cost: Cost) -> ReadingCost {
    let Cost { requests, bytes } = cost;
    ReadingCost { requests, bytes }
}

/// Returns the HTTP version of the connection as shown to people, such as `HTTP/2`.
pub fn protocol(cluster: &Cluster) -> &'static str {
    match cluster.protocol() {
        Protocol::Http1 => "HTTP/1.1",
        Protocol::Http2 => "HTTP/2",
    }
}
