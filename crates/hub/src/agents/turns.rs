//! The turns of enrolments.

use std::pin::pin;
use std::sync::Mutex;

use taffrail_apps::ClusterId;
use tokio::sync::{Notify, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::index::lock;

/// The enrolments that are under way, none beside another one of the same name or cluster. Each waits for a commit of the
/// store, so they go on side by side.
#[derive(Debug, Default)]
pub(super) struct Enrolments {
    all: RwLock<()>,
    underway: Mutex<Vec<(String, ClusterId)>>,
    ended: Notify,
}

/// An enrolment that is under way.
pub(super) struct Turn<'e> {
    enrolments: &'e Enrolments,
    own: (String, ClusterId),
    _all: RwLockReadGuard<'e, ()>,
}

impl Enrolments {
    /// Waits until no enrolment of the name or the cluster is under way, and begins one.
    pub(super) async fn turn(&self, name: &str, cluster: &ClusterId) -> Turn<'_> {
        let all = self.all.read().await;
        loop {
            let mut ended = pin!(self.ended.notified());
            // An end after the look must not be missed.
            ended.as_mut().enable();
            {
                let mut underway = lock(&self.underway);
                if !underway.iter().any(|(other, id)| other == name || id == cluster) {
                    let own = (name.to_owned(), cluster.clone());
                    underway.push(own.clone());
                    return Turn { enrolments: self, own, _all: all };
                }
            }
            ended.await;
        }
    }

    /// Waits until none is under way; further ones wait while the guard lives.
    pub(super) async fn none(&self) -> RwLockWriteGuard<'_, ()> {
        self.all.write().await
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.enrolments.underway).retain(|underway| *underway != self.own);
        self.enrolments.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn enrolments_of_one_name_or_cluster_go_one_after_the_other() {
        let (enrolments, id) = (Enrolments::default(), |name: &str| ClusterId(name.to_owned()));
        let (a, b, c) = (id("a"), id("b"), id("c"));
        let first = enrolments.turn("eu", &a).await;
        let second = enrolments.turn("us", &b).await;
        assert!(enrolments.turn("eu", &c).now_or_never().is_none(), "the name is taken");
        assert!(enrolments.turn("asia", &b).now_or_never().is_none(), "the cluster is taken");
        assert!(enrolments.none().now_or_never().is_none());
        let mut waiting = pin!(enrolments.turn("eu", &a));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        drop((waiting.await, second));
        assert!(enrolments.none().now_or_never().is_some());
    }
}
