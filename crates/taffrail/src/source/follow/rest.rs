//! The rest between two looks.

use std::time::{Duration, Instant};

use super::Follow;

impl Follow {
    /// Takes in what comes for so long, however much comes. Who rests as long as the last look took spends half of the time on
    /// looking at most, though something changes all the time.
    pub(crate) fn rest(&mut self, rest: Duration) {
        let end = Instant::now() + rest;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.receive(left, Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde_json::json;
    use taffrail_cluster::Memory;
    use taffrail_sim::Fleet;

    use super::super::share::tests::follow;
    use super::*;
    use crate::source::NOTHING_MORE;

    const REST: Duration = Duration::from_millis(1500);

    #[test]
    fn a_rest_is_as_long_as_the_look_before_it_however_much_comes() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (_fleet, cluster) = runtime.block_on(async {
            let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
            let cluster = fleet.cluster("one").await.unwrap();
            (fleet, cluster)
        });
        let namespace = |number: u32| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"n": number.to_string()}}});
        cluster.apply(namespace(0)).unwrap();
        let mut follow = follow(std::slice::from_ref(&cluster), &Memory::of(64 << 20));
        follow.settle(NOTHING_MORE);
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 1;
                while !ends.load(Ordering::Relaxed) {
                    let config = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                        "metadata": {"name": "web", "namespace": "shop", "labels": {"n": number.to_string()}}});
                    cluster.apply(namespace(number)).unwrap();
                    cluster.apply(config).unwrap();
                    number += 1;
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let began = Instant::now();
            follow.rest(REST);
            let took = began.elapsed();
            ends.store(true, Ordering::Relaxed);
            assert!(took >= REST, "{took:?}");
        });
    }
}
