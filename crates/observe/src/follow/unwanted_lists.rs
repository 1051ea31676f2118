//! Ends the watches of lists in single namespaces that no plan needs any more.

use std::collections::{BTreeMap, HashSet};

use taffrail_apps::{Read, ReadPlan, ReadQuery, Rounds, Target, declares_apps, plan_watches};
use taffrail_cluster::ScopeId;
use taffrail_object::ObjectKey;

use super::holders::Holders;
use super::{FleetWatcher, FollowedScope};

/// Number of watched lists of a cluster in single namespaces up to which unneeded ones go on.
pub(super) const FEW_LISTS: usize = 64;

/// A kind in one namespace or in all (`None`): group, kind, namespace.
type Place<'r> = (&'r str, &'r str, Option<&'r str>);

fn place(read: &Read) -> Place<'_> {
    (&read.group, &read.kind, read.namespace.as_deref())
}

/// Returns true for an answered list in one namespace, except one of a kind that declares apps: those lists are always
/// needed.
fn may_end(followed: &FollowedScope) -> bool {
    let is_list = matches!(followed.read.target, Target::List { .. });
    is_list && followed.read.namespace.is_some() && followed.answered && !declares_apps(&followed.kind)
}

impl FleetWatcher {
    /// Ends the scopes of lists in single namespaces that no plan needs any more, whenever there are twice as many as
    /// were needed last.
    ///
    /// This bounds their number: an author decides in which namespaces the objects of apps are, and which are not well.
    pub(super) fn end_unwanted_lists(&mut self, at: usize, asked: &ReadQuery) {
        let following = &mut self.clusters[at];
        let snapshot = &mut self.fleet.snapshots[at];
        if following.scopes.values().filter(|it| may_end(it)).count() < following.most_lists {
            return;
        }
        let lists: BTreeMap<ScopeId, Read> = following
            .scopes
            .iter()
            .filter(|(_, followed)| may_end(followed))
            .map(|(id, followed)| (*id, followed.read.clone()))
            .collect();
        let others = Holders::of(
            following.scopes.iter().filter(|(id, _)| !lists.contains_key(id)).map(|(_, followed)| followed),
        );
        // What another scope brings as well stays known with it.
        let is_alone = |followed: &FollowedScope, key: &ObjectKey| {
            others.held(key).is_none_or(|held| !held.covers(followed.read.projection))
        };
        let keys: HashSet<ObjectKey> = lists
            .keys()
            .filter_map(|id| following.scopes.get(id))
            .flat_map(|followed| followed.keys.iter().filter(|key| is_alone(followed, key)))
            .map(|key| ObjectKey::clone(key))
            .collect();
        let mut aside = snapshot.set_aside(keys, |key| others.held(key).is_some());
        snapshot.set_aside_lists(&mut aside, lists.values().cloned());
        loop {
            let ReadPlan { awaited, loose, .. } =
                plan_watches(snapshot, asked, &self.fleet.rules.active(), &mut Rounds::spent(), &|_| true);
            // Of a kind of which anything is wanted in a namespace, the list there may bring it.
            let wanted: HashSet<Place<'_>> = loose.iter().map(place).collect();
            let is_wanted = |read: &Read| {
                let (group, kind, namespace) = place(read);
                !awaited.is_empty()
                    || wanted.contains(&(group, kind, namespace))
                    || wanted.contains(&(group, kind, None))
            };
            if !snapshot.put_back_lists(&mut aside, is_wanted) {
                break;
            }
            let left: HashSet<Read> = aside.lists().cloned().collect();
            let left: HashSet<Place<'_>> = left.iter().map(place).collect();
            let is_back =
                |key: &ObjectKey| !left.contains(&(&*key.group, &*key.kind, Some(key.namespace.as_str())));
            snapshot.put_back(&mut aside, is_back);
        }
        let over: HashSet<&Read> = aside.lists().collect();
        let ended: Vec<ScopeId> =
            lists.iter().filter(|(_, read)| over.contains(read)).map(|(id, _)| *id).collect();
        let Some(feeds) = &mut following.feeds else { return };
        for id in &ended {
            feeds.end(*id);
            if let Some(FollowedScope { read, .. }) = following.scopes.remove(id) {
                following.planned.remove(&read);
                snapshot.retract_read(&read);
                snapshot.set_homes(&read, []);
            }
        }
        following.most_lists = (2 * (lists.len() - ended.len())).max(FEW_LISTS);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};
    use taffrail_cluster::Memory;
    use taffrail_sim::Fleet;
    use taffrail_testkit::objects::namespace;

    use super::super::share::tests::{follow, until};
    use super::*;
    use crate::look::NO_EXTRA;

    /// Returns a Deployment that is not Ready, as an app of its own.
    fn failing(namespace: &str) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": namespace, "name": "web", "generation": 1,
                "labels": {"app.kubernetes.io/instance": "web"}},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}},
            "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1,
                "conditions": [{"type": "Available", "status": "False"}]},
        })
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lists_that_were_needed_for_a_while_are_watched_no_more() {
        let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
        let cluster = fleet.cluster("one").await.unwrap();
        let memory = Memory::of(64 << 20);
        let mut follow = follow(std::slice::from_ref(&cluster), &memory).await;
        follow.settle(NO_EXTRA).await;
        let followed = |follow: &FleetWatcher| -> BTreeSet<String> {
            let scopes = follow.clusters[0].scopes.values().filter(|it| may_end(it));
            scopes.filter_map(|it| it.read.namespace.clone()).collect()
        };
        let names = |turn: usize| (0..4).map(move |at| format!("n{turn}-{at}"));
        let mut most = 0;
        for turn in 0..6 {
            for name in names(turn) {
                cluster.apply(namespace(&name)).unwrap();
                cluster.seed([failing(&name)]).unwrap();
            }
            until(&mut follow, |it| names(turn).all(|name| followed(it).contains(&name))).await;
            most = most.max(followed(&follow).len());
            for name in names(turn) {
                assert!(cluster.delete("apps/v1", "Deployment", &name, "web"));
            }
        }
        // What is needed still is followed still, and what is needed again is followed again.
        cluster.seed([failing("n5-0")]).unwrap();
        until(&mut follow, |it| followed(it).contains("n5-0")).await;
        assert!(most <= 20 && !followed(&follow).contains("n0-0"), "{most}");
        cluster.seed([failing("n0-0")]).unwrap();
        until(&mut follow, |it| followed(it).contains("n0-0")).await;
        drop(fleet);
    }
}
