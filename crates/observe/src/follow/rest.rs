//! The pause between two updates of a view of followed clusters.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::{ComparedPair, FleetWatcher};
use crate::rows::KeptRows;

/// Maximum time for which rows are shown without computing them again, even if nothing changed: the wall clock may have
/// been set.
const LONGEST: SignedDuration = SignedDuration::from_secs(30);

impl FleetWatcher {
    /// Returns true if the rows computed at `looked`, less than 30 s before `now`, are still right: no event came
    /// since, everything needed was answered and is not stale, and no verdict changes by time alone until `now`. This
    /// check is cheap.
    pub fn rows_stand(&self, looked: Timestamp, now: Timestamp) -> bool {
        let next = self.fleet.rows.as_ref().and_then(KeptRows::next_moment);
        let is_due =
            now < looked || now.duration_since(looked) >= LONGEST || next.is_some_and(|next| now >= next);
        let present = tokio::time::Instant::now();
        let is_proved = |it: &ComparedPair| it.again_at.is_none_or(|at| present < at);
        let is_compared = self.comparing == 0 && self.compared.values().all(is_proved);
        let is_planned = !(self.asked.follow && self.has_moved);
        let mut clusters = self.clusters.iter().zip(&self.fleet.snapshots);
        !is_due && is_compared && is_planned && clusters.all(|(it, snapshot)| it.is_quiet(snapshot))
    }

    /// Applies events for the time `rest`, or until none is waiting and the reads of some clusters are still to be
    /// planned; returns true if something changed. A caller that passes the duration of its last update spends at most
    /// half of the time on updates while events wait.
    pub async fn rest(&mut self, rest: Duration) -> bool {
        let end = Instant::now() + rest;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.take_news();
            }
            if !self.receive(left, Duration::ZERO).await && self.is_partly_planned {
                return self.take_news();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use taffrail_cluster::Memory;
    use taffrail_sim::Fleet;
    use taffrail_testkit::objects::{kustomizations, namespace};

    use super::super::share::tests::{app, deployment, follow};
    use super::*;
    use crate::look::NO_EXTRA;

    const REST: Duration = Duration::from_millis(1500);

    /// Updates the rows whenever something changed, until they stay right for a while. Returns the moment of the last
    /// update.
    async fn until_rows_stand(follow: &mut FleetWatcher) -> Timestamp {
        let begun = Instant::now();
        let mut looked = Timestamp::now();
        let mut quiet = 0;
        while quiet < 20 {
            assert!(begun.elapsed() < Duration::from_secs(60), "they never stand");
            let is_news = follow.next(Duration::from_millis(50)).await;
            if is_news || !follow.rows_stand(looked, looked) {
                quiet = 0;
                follow.settle(NO_EXTRA).await;
                looked = Timestamp::now();
                assert_eq!(follow.fleet().apps(&[]).apps.len(), 2);
            } else {
                quiet += 1;
            }
        }
        looked
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn rows_stand_while_nothing_comes_and_no_verdict_is_due() {
        let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
        let clusters = [fleet.cluster("one").await.unwrap(), fleet.cluster("two").await.unwrap()];
        for cluster in &clusters {
            cluster.apply(kustomizations()).unwrap();
            cluster.apply(namespace("shop")).unwrap();
            cluster.seed(app(10)).unwrap();
        }
        let mut follow = follow(&clusters, &Memory::of(64 << 20)).await;
        let looked = until_rows_stand(&mut follow).await;
        let seconds = SignedDuration::from_secs;
        assert!(follow.rows_stand(looked, looked + seconds(20)));
        assert!(!follow.rows_stand(looked, looked + seconds(30)), "a clock may be set");
        assert!(!follow.rows_stand(looked, looked - seconds(1)), "the clock was set back");
        clusters[0].apply(deployment("web", 11)).unwrap();
        assert!(follow.next(Duration::from_secs(60)).await);
        assert!(!follow.rows_stand(looked, looked), "what came is not looked at");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_rest_is_as_long_as_the_look_before_it_however_much_comes() {
        let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
        let cluster = fleet.cluster("one").await.unwrap();
        cluster.apply(kustomizations()).unwrap();
        cluster.apply(namespace("shop")).unwrap();
        cluster.seed(app(10)).unwrap();
        let mut follow = follow(std::slice::from_ref(&cluster), &Memory::of(64 << 20)).await;
        follow.settle(NO_EXTRA).await;
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let changing = std::thread::spawn(move || {
            let mut size = 10;
            while !ended.load(Ordering::Relaxed) {
                size += 1;
                cluster.apply(deployment("web", size)).unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        // There is always something new.
        let is_followed = follow.next(Duration::from_secs(60)).await;
        let began = Instant::now();
        let changed = follow.rest(REST).await;
        let took = began.elapsed();
        ends.store(true, Ordering::Relaxed);
        changing.join().unwrap();
        assert!(is_followed && changed && took >= REST, "{took:?}");
    }
}
