//! The rest between two looks.

use std::time::{Duration, Instant};

use super::FleetWatcher;

impl FleetWatcher {
    /// Takes in what comes for so long, however much comes. Who rests as long as the last look took spends half of the time on
    /// looking at most, though something changes all the time. Returns true when something changed, so that it is looked at next.
    pub async fn rest(&mut self, rest: Duration) -> bool {
        let end = Instant::now() + rest;
        let mut changed = false;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return changed;
            }
            changed |= self.receive(left, Duration::ZERO).await;
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
