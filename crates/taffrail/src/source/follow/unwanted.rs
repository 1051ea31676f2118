//! Objects that are followed one by one, and that no plan wants any more.

use std::collections::BTreeSet;

use taffrail_apps::{Asked, GroupKind, ObjectKey, Read, ReadPlan, Rounds, Target, plan_reads};
use taffrail_cluster::ScopeId;
use tokio::time::Instant;

use super::scopes::{named, scope_of};
use super::{Follow, Followed};

/// So many objects are followed one by one before it is asked which of them are still wanted.
pub(super) const FEW: usize = 64;

impl Follow {
    /// Ends the scopes of single objects that no plan wants any more, whenever there are twice as many as were wanted last.
    ///
    /// Objects name other objects, and those who write them may name ever others.
    pub(super) fn end_unwanted_objects(&mut self, at: usize, asked: &Asked, now: Instant) {
        let following = &mut self.clusters[at];
        let snapshot = &mut self.fleet.snapshots[at];
        let identity = ObjectKey::new("", "Namespace", "", "kube-system");
        let asked_for: BTreeSet<&ObjectKey> = asked.objects.iter().chain([&identity]).collect();
        let single = |followed: &Followed| {
            let key = named(&followed.read).filter(|_| followed.answered && !followed.is_foreign)?;
            (!asked_for.contains(&key)).then_some(key)
        };
        let singles: Vec<(ScopeId, ObjectKey)> =
            following.scopes.iter().filter_map(|(id, followed)| Some((*id, single(followed)?))).collect();
        if singles.len() < following.most_singles {
            return;
        }
        // What a list brings too stays known with it.
        let lists = || following.scopes.values().filter(|followed| named(&followed.read).is_none());
        let is_listed = |key: &ObjectKey| lists().any(|followed| followed.keys.contains(key));
        let keys: BTreeSet<ObjectKey> =
            singles.iter().map(|(_, key)| key.clone()).filter(|key| !is_listed(key)).collect();
        let mut aside = snapshot.set_aside(keys);
        let mut lists: BTreeSet<Read> = BTreeSet::new();
        loop {
            let ReadPlan { awaited, loose } =
                plan_reads(snapshot, asked, &self.fleet.rules, &mut Rounds::spent(), &|_| true);
            let is_wanted = |key: &ObjectKey| {
                // Without what declares apps it is not known what is wanted.
                !awaited.is_empty() || loose.iter().any(|read| brings(read, key))
            };
            lists.extend(loose.iter().filter(|read| named(read).is_none()).cloned());
            if !snapshot.put_back(&mut aside, is_wanted) {
                break;
            }
        }
        let over: BTreeSet<&ObjectKey> = aside.keys().iter().collect();
        let _inside = self.runtime.enter();
        let Some(feeds) = &mut following.feeds else { return };
        let mut kept: Vec<&ObjectKey> = Vec::new();
        for (id, key) in &singles {
            let body = following.scopes.get(id).map(|followed| followed.read.body);
            let is_whole = |read: &Read| matches!(read.target, Target::List { labels: None, fields: None });
            let mut others = following.scopes.values();
            // Of an object that is followed whole a list of metadata keeps nothing up to date but that.
            let covers = |read: &Read| is_whole(read) && body.is_none_or(|body| read.body.covers(body));
            let is_listed =
                others.any(|other| other.answered && covers(&other.read) && other.keys.contains(key));
            if !over.contains(key) && !is_listed {
                kept.push(key);
                continue;
            }
            feeds.end(*id);
            following.again.end(*id);
            if let Some(Followed { read, .. }) = following.scopes.remove(id) {
                following.planned.remove(&read);
            }
            snapshot.forget(key);
        }
        // Many of a kind that came one after the other are listed from now on.
        let lists = lists.into_iter().filter(|read| kept.iter().any(|key| brings(read, key)));
        for read in lists.collect::<Vec<_>>() {
            if following.planned.insert(read.clone()) {
                let id = feeds.follow(scope_of(&read));
                let followed = Followed::new(read, false, true, now + self.timeout);
                following.scopes.insert(id, followed);
            }
        }
        following.most_singles = (2 * kept.len()).max(FEW);
    }
}

/// Returns true if a read brings an object, whatever else it brings.
fn brings(read: &Read, key: &ObjectKey) -> bool {
    if GroupKind::new(&*read.group, &*read.kind) != key.group_kind() {
        return false;
    }
    match &read.target {
        Target::Object(name) => {
            *name == key.name && read.namespace.as_deref().unwrap_or_default() == key.namespace
        }
        Target::List { labels: None, fields: None } => {
            read.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
        }
        Target::List { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use taffrail_cluster::Memory;
    use taffrail_sim::{Cluster, Fleet};

    use super::super::share::tests::{follow, until};
    use super::*;
    use crate::source::NOTHING_MORE;

    /// An Application whose controller is said to be in a namespace.
    fn application(cluster: &Cluster, controller: &str) {
        let own: Value = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "shop", "name": "grab"},
            "spec": {"destination": {"server": "https://kubernetes.default.svc"}},
            "status": {"controllerNamespace": controller},
        });
        cluster.apply(own).unwrap();
    }

    #[test]
    fn objects_that_were_named_for_a_while_are_watched_no_more() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (fleet, cluster) = runtime.block_on(async {
            let fleet = Fleet::builder().controllers(false).start().await.unwrap();
            let cluster = fleet.cluster("one").await.unwrap();
            let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            cluster
                .apply(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": {"name": "applications.argoproj.io"},
                    "spec": {"group": "argoproj.io", "scope": "Namespaced",
                        "names": {"kind": "Application", "listKind": "ApplicationList", "plural": "applications", "singular": "application"},
                        "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}}]}}))
                .unwrap();
            cluster
                .apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
                .unwrap();
            (fleet, cluster)
        });
        application(&cluster, "argo-0");
        let memory = Memory::of(64 << 20);
        let mut follow = follow(std::slice::from_ref(&cluster), &memory);
        follow.settle(NOTHING_MORE);
        let follows = |follow: &Follow, namespace: &str| {
            let reads = follow.clusters[0].scopes.values().map(|followed| &followed.read);
            reads.filter(|read| read.namespace.as_deref() == Some(namespace)).count()
        };
        let singles = |follow: &Follow| {
            follow.clusters[0].scopes.values().filter(|it| named(&it.read).is_some()).count()
        };
        until(&mut follow, |it| follows(it, "argo-0") == 2);
        let (mut most, mut ended) = (0, false);
        for number in 1..=120 {
            let namespace = format!("argo-{number}");
            application(&cluster, &namespace);
            until(&mut follow, |it| follows(it, &namespace) == 2);
            most = most.max(singles(&follow));
            ended |= follows(&follow, "argo-0") == 0;
        }
        assert!(ended && most <= 2 * FEW, "{most}");
        // What is named still is followed still, and what is named again is followed again.
        assert_eq!(follows(&follow, "argo-120"), 2);
        application(&cluster, "argo-0");
        until(&mut follow, |it| follows(it, "argo-0") == 2);
        drop(fleet);
    }
}
