//! What is to be asked of followed clusters.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use taffrail_apps::{
    Answer, Asked, Body, ObjectKey, Objects, Read, Scope, Snapshot, dependents_elsewhere, next_reads,
    wanted_elsewhere,
};
use taffrail_cluster::{Cluster, Deadline, ReadError, Reason, ScopeId};
use tokio::time::Instant;

use super::super::More;
use super::super::live::{Failure, read_one};
use super::super::sameness;
use super::again::once_more;
use super::scopes::{KINDS_OF_KINDS, definitions, scope_of};
use super::{Connected, Event, Follow, Followed, Following};

/// How often it is asked whether a kind that was not there has come.
const REDISCOVER: Duration = Duration::from_secs(15);

/// How long a watch may be broken before what it brought is no longer trusted. That the server is gone is told sooner.
const BROKEN_FOR_LONG: Duration = Duration::from_secs(20);

impl Follow {
    pub(super) fn connect(&mut self, at: usize, after: Duration) {
        let following = &mut self.clusters[at];
        following.connecting = true;
        let context = following.member.context.clone();
        let timeout = self.timeout;
        let task = self.runtime.spawn(async move {
            tokio::time::sleep(after).await;
            let context = context?;
            let cluster = Cluster::connect(&context, Deadline::after(timeout)).await;
            let cluster = cluster.map_err(|error| Failure::new(error.reason(), &error, error.hint()))?;
            let (discovery, version) = futures::join!(cluster.discover(), cluster.version());
            if let Err(error) = &discovery
                && version.is_err()
            {
                return Err(Failure::new(error.reason(), error, error.hint()));
            }
            Ok(Connected { cluster, version: version.ok(), discovery })
        });
        self.events.push(Box::pin(async move {
            let lost = |error: tokio::task::JoinError| {
                Err(Failure {
                    reason: Reason::ConnectionFailed.as_str().to_owned(),
                    message: error.to_string(),
                })
            };
            Event::Connected(at, Box::new(task.await.unwrap_or_else(lost)))
        }));
    }

    /// Plans what else to follow; true while something is waited for that was never answered.
    pub(super) fn plan(&mut self, more: More<'_>) -> bool {
        if self.asked.follow {
            let clusters: Vec<_> =
                self.fleet.snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect();
            let mut wanted: BTreeMap<String, Vec<ObjectKey>> = wanted_elsewhere(&clusters);
            let mut dependents = dependents_elsewhere(&clusters, &self.asked.dependents);
            for (snapshot, following) in self.fleet.snapshots.iter().zip(&mut self.clusters) {
                for key in wanted.remove(snapshot.name()).unwrap_or_default() {
                    following.changed |= following.more.insert(key);
                }
                for namespace in dependents.remove(snapshot.name()).unwrap_or_default() {
                    following.changed |= following.dependents_in.insert(namespace);
                }
            }
        }
        self.compare();
        let mut waits = self.comparing > 0;
        for at in 0..self.clusters.len() {
            let pending = self.plan_one(at, more);
            self.clusters[at].is_settled = !pending;
            waits |= pending;
        }
        waits
    }

    /// Finds out whether clusters that give one identity are one.
    fn compare(&mut self) {
        let snapshots: Vec<_> = self.fleet.snapshots.iter().collect();
        for (place, before) in sameness::pairs(&snapshots) {
            let cluster = |at: usize| Some(self.clusters.get(at)?.feeds.as_ref()?.cluster());
            let (Some(one), Some(other)) = (cluster(before), cluster(place)) else { continue };
            if !self.compared.insert((place, before)) {
                continue;
            }
            self.comparing += 1;
            let (one, other) = (one.with_timeout(self.timeout), other.with_timeout(self.timeout));
            let task = self.runtime.spawn(async move { sameness::compare(&one, &other).await });
            self.events
                .push(Box::pin(async move { Event::Compared(place, before, task.await.ok().flatten()) }));
        }
    }

    fn plan_one(&mut self, at: usize, more: More<'_>) -> bool {
        let following = &mut self.clusters[at];
        let snapshot = &mut self.fleet.snapshots[at];
        if following.feeds.is_none() {
            return following.connecting && !has_failed(snapshot);
        }
        let now = self.runtime.block_on(async { Instant::now() });
        let impatient = now >= following.patience;
        if impatient {
            for followed in following.scopes.values_mut().filter(|followed| !followed.answered) {
                followed.answered = true;
                let message = format!("no answer within {:.1} s", self.timeout.as_secs_f64());
                snapshot.answer(&followed.read, Answer::Failed { reason: "Timeout".to_owned(), message });
                following.changed = true;
            }
        }
        for followed in following.scopes.values_mut() {
            let lasts = |(since, ..): &mut (Instant, &'static str, String)| now >= *since + BROKEN_FOR_LONG;
            if let Some((_, reason, message)) = followed.broken.take_if(lasts) {
                snapshot.retract(&followed.read.scope());
                snapshot.answer(&followed.read, Answer::Failed { reason: reason.to_owned(), message });
                following.changed = true;
            }
        }
        let lacks_kind = following.scopes.values().any(|followed| {
            let kind = taffrail_apps::GroupKind::new(&*followed.read.group, &*followed.read.kind);
            snapshot.kinds().is_some_and(|kinds| !kinds.may_serve(&kind))
        });
        let coming = &mut following.coming;
        if coming.is_wanted
            && coming.scopes.is_empty()
            && let Some(feeds) = &mut following.feeds
        {
            let _inside = self.runtime.enter();
            let scopes = KINDS_OF_KINDS.map(|kind| feeds.follow(definitions(kind)));
            coming.scopes = scopes.to_vec();
        }
        let lacks_kind = lacks_kind || (coming.is_wanted && coming.is_blind);
        let is_due = coming.is_wanted && !coming.under_way && coming.due.is_some_and(|due| now >= due);
        if is_due || (lacks_kind || snapshot.kinds().is_none()) && now >= following.discovered + REDISCOVER {
            coming.due = None;
            coming.under_way = true;
            following.discovered = now;
            let Some(feeds) = &following.feeds else { return false };
            let cluster = feeds.cluster().with_timeout(self.timeout);
            let task = self.runtime.spawn(async move { cluster.discover().await });
            self.events.push(Box::pin(async move {
                match task.await {
                    Ok(discovery) => Event::Discovered(at, discovery),
                    Err(error) => Event::Discovered(
                        at,
                        Err(ReadError::Unexpected {
                            what: "discover kinds".to_owned(),
                            problem: error.to_string(),
                        }),
                    ),
                }
            }));
        }
        let pending = |following: &Following| {
            following.under_way > 0 || following.scopes.values().any(|followed| !followed.answered)
        };
        if !following.changed || pending(following) {
            return pending(following) && !impatient;
        }
        following.changed = false;
        let namespace = following.member.context.as_ref().map_or("default", |it| it.namespace()).to_owned();
        following.more.extend(more(snapshot, &namespace));
        let objects = self.asked.objects.iter().chain(&following.more).cloned().collect();
        let selections = following.selections.iter().cloned().collect();
        let dependents_in = following.dependents_in.clone();
        let asked = Asked { objects, selections, dependents_in, ..self.asked.clone() };
        let reads = next_reads(snapshot, &asked, &self.fleet.rules);
        let Some(feeds) = &mut following.feeds else { return false };
        for read in reads {
            if !following.planned.insert(read.clone()) {
                continue;
            }
            following.patience = now + self.timeout;
            // Of Secrets only what is asked for by name is read whole, and then not followed: feeds bring no values.
            if read.kind == "Secret" && read.group.is_empty() && read.body == Body::Whole {
                following.under_way += 1;
                self.events.push(get(at, feeds.cluster().with_timeout(self.timeout), read));
                continue;
            }
            let _inside = self.runtime.enter();
            let id = feeds.follow(scope_of(&read));
            following.scopes.insert(id, Followed::new(read));
        }
        pending(following)
    }

    /// Reads an object that cannot be watched.
    pub(super) fn read_again(&mut self, at: usize, id: ScopeId, is_first: bool) {
        let following = &self.clusters[at];
        let Some((feeds, read)) = following.feeds.as_ref().zip(following.again.read(id)) else { return };
        let reading = once_more(feeds.cluster().clone(), self.timeout, read, is_first);
        self.events.push(Box::pin(async move { Event::Again(at, id, reading.await) }));
    }
}

/// Whether a connection has failed already, so that nobody waits for it.
pub(super) fn has_failed(snapshot: &Snapshot) -> bool {
    snapshot.errors().iter().any(|error| error.scope == Scope::Cluster && error.reason != "Connecting")
}

pub(super) fn get(at: usize, cluster: Cluster, read: Read) -> Pin<Box<dyn Future<Output = Event> + Send>> {
    Box::pin(async move {
        let outcome = read_one(&cluster, &read).await;
        Event::Got(at, Box::new(read), outcome)
    })
}
