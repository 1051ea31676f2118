//! The changes that clients are expected to see, and the times until they see them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::model::APPS;

/// The time for which changes are awaited that no client has seen yet.
const PATIENCE: Duration = Duration::from_secs(30);

/// The changes of the clusters that clients follow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watched(Arc<Mutex<Changes>>);

#[derive(Debug, Default)]
struct Changes {
    /// The followed clusters, each with the changes that clients have not seen yet: by app, the numbers of the changes
    /// with the moments at which they were due, the earliest first.
    clusters: HashMap<usize, HashMap<usize, VecDeque<(u32, Instant)>>>,
    /// The times from changes to their arrival at a client.
    arrived: Vec<Duration>,
}

impl Watched {
    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expects nothing any more.
    pub(crate) fn clear(&self) {
        self.changes().clusters.clear();
    }

    /// Expects changes of a cluster from now on.
    pub(crate) fn follow(&self, cluster: usize) {
        self.changes().clusters.entry(cluster).or_default();
    }

    /// Notes that an app was changed, if its cluster is followed.
    pub(crate) fn expect(&self, cluster: usize, app: usize, change: u32, due: Instant) {
        if let Some(apps) = self.changes().clusters.get_mut(&cluster) {
            apps.entry(app).or_default().push_back((change, due));
        }
    }

    /// Notes that a client got an app as it is after the change of this number.
    pub(crate) fn seen(&self, cluster: usize, app: usize, change: u32, at: Instant) {
        let mut changes = self.changes();
        let Changes { clusters, arrived } = &mut *changes;
        let Some(waiting) = clusters.get_mut(&cluster).and_then(|apps| apps.get_mut(&app)) else { return };
        while let Some((_, due)) = waiting.pop_front_if(|(first, _)| *first <= change) {
            arrived.push(at.saturating_duration_since(due));
        }
    }

    /// Returns a function that picks the app of the change of a number, and the app's cluster: one in four in a
    /// cluster that is followed now.
    pub(crate) fn picker(&self, clusters: usize) -> impl Fn(usize) -> (usize, usize) + use<> {
        let followed: Vec<usize> = self.changes().clusters.keys().copied().collect();
        move |number| {
            let some = (number.is_multiple_of(4)).then(|| fastrand::choice(&followed).copied()).flatten();
            (some.unwrap_or_else(|| fastrand::usize(0..clusters.max(1))), fastrand::usize(0..APPS))
        }
    }

    /// Waits until clients have seen all changes, and returns the times that it took, with the number of those that
    /// they have not seen.
    pub(crate) async fn outcome(&self) -> (Value, usize) {
        let unseen = || -> usize {
            self.changes().clusters.values().flat_map(HashMap::values).map(VecDeque::len).sum()
        };
        let begun = Instant::now();
        while unseen() > 0 && begun.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let left = unseen();
        let mut changes = self.changes();
        changes.clusters.values_mut().for_each(HashMap::clear);
        (spread(std::mem::take(&mut changes.arrived)), left)
    }
}

/// Returns the median, the 99th percentile and the maximum in milliseconds, and the number of measurements.
pub(crate) fn spread(mut times: Vec<Duration>) -> Value {
    times.sort_unstable();
    let at = |part: usize| {
        let place = (times.len() * part).div_ceil(100).saturating_sub(1);
        times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    json!({"p50": at(50), "p99": at(99), "longest": at(100), "count": times.len()})
}
