//! The events of watched clusters, as they arrive: each cluster has its turn.

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use taffrail_cluster::{WatchEvent, WatchEvents};

use super::{Event, FleetWatcher};

/// Maximum time for which events of one cluster are applied before those of the next cluster are; the rest waits for
/// the next turn.
pub(super) const TURN: Duration = Duration::from_millis(10);

/// An event, as the watcher receives it: a watch event of a cluster, or another event.
pub(super) enum Arrival {
    Delivery(usize, WatchEvent),
    Event(Event),
}

impl FleetWatcher {
    /// Waits for the next event of any cluster; `None` if none comes within `at_most`.
    pub(super) async fn come(&mut self, at_most: Duration) -> Option<Arrival> {
        let FleetWatcher { clusters, events, news, turn, .. } = self;
        let next = async {
            loop {
                // An event during the search ends the wait after it at once.
                let notified = news.notified();
                if let Some(Some(event)) = events.next().now_or_never() {
                    return Arrival::Event(event);
                }
                let (first, last) = (*turn..clusters.len(), 0..(*turn).min(clusters.len()));
                for at in first.chain(last) {
                    if let Some(delivery) = clusters[at].inbox.as_mut().and_then(WatchEvents::try_next) {
                        return Arrival::Delivery(at, delivery);
                    }
                }
                tokio::select! {
                    Some(event) = events.next() => return Arrival::Event(event),
                    () = notified => {}
                }
            }
        };
        tokio::time::timeout(at_most, next).await.ok()
    }

    /// Applies events that have already arrived, of each cluster once in turn, for at most [`TURN`] each and until
    /// `end`, so that no busy cluster delays others; returns true if the view may change.
    pub(super) fn turns(&mut self, end: std::time::Instant) -> bool {
        let mut changed = false;
        for _ in 0..self.clusters.len() {
            let at = self.turn % self.clusters.len();
            self.turn = at + 1;
            // Of many clusters nearly all have none.
            if self.clusters[at].inbox.as_ref().is_none_or(WatchEvents::is_empty) {
                continue;
            }
            let begun = std::time::Instant::now();
            if begun >= end {
                break;
            }
            let over = end.min(begun + TURN);
            while std::time::Instant::now() < over {
                let inbox = self.clusters[at].inbox.as_mut();
                let Some(delivery) = inbox.and_then(WatchEvents::try_next) else { break };
                changed |= self.deliver(at, delivery);
            }
        }
        changed
    }
}
