//! Ends the watches of single objects that no plan needs any more.

use std::collections::{BTreeSet, HashSet};

use taffrail_apps::{Read, ReadPlan, ReadQuery, Rounds, Target, plan_watches};
use taffrail_cluster::ScopeId;
use taffrail_object::{ObjectKey, Projection};
use tokio::time::Instant;

use super::holders::Holders;
use super::scopes::{named, scope_of};
use super::{FleetWatcher, FollowedScope};

/// Number of objects of a cluster watched one by one up to which the watches of unneeded ones go on.
pub(super) const FEW: usize = 64;

impl FleetWatcher {
    /// Ends the scopes of single objects that no plan needs any more or that a list brings too, whenever there are
    /// twice as many scopes as were needed last; lists the kinds of which the plan now needs the whole.
    ///
    /// This bounds their number, because authors of objects may name new objects again and again.
    pub(super) fn end_unwanted_objects(&mut self, at: usize, asked: &ReadQuery, now: Instant) {
        let following = &mut self.clusters[at];
        let snapshot = &mut self.fleet.snapshots[at];
        let identity = ObjectKey::new("", "Namespace", "", "kube-system");
        let count = following.scopes.values().filter(|it| it.key.is_some()).count();
        if count < following.most_singles {
            return;
        }
        let asked_for: HashSet<&ObjectKey> = asked.objects.iter().chain([&identity]).collect();
        let single = |followed: &FollowedScope| {
            let key = followed.key.as_ref().filter(|_| followed.answered && !followed.is_foreign)?;
            (!asked_for.contains(key)).then(|| (key.clone(), followed.read.projection))
        };
        let singles: Vec<(ScopeId, (ObjectKey, Projection))> =
            following.scopes.iter().filter_map(|(id, followed)| Some((*id, single(followed)?))).collect();
        if singles.len() < following.most_singles {
            return;
        }
        let holders = Holders::of(following.scopes.values());
        // What a list brings too stays known with it, if it brings as much.
        let keys: BTreeSet<ObjectKey> = singles
            .iter()
            .filter(|(_, (key, projection))| !holders.list(key, *projection))
            .map(|(_, (key, _))| key.clone())
            .collect();
        let mut aside = snapshot.set_aside(keys, |key| holders.is_listed(key));
        let mut lists: BTreeSet<Read> = BTreeSet::new();
        loop {
            let ReadPlan { awaited, loose, .. } =
                plan_watches(snapshot, asked, &self.fleet.rules.active(), &mut Rounds::spent(), &|_| true);
            let wanted = NeededReads::of(&loose);
            // Without what declares apps it is not known what is wanted.
            let is_wanted = |key: &ObjectKey| !awaited.is_empty() || wanted.brings(key);
            let more = snapshot.put_back(&mut aside, is_wanted);
            lists.extend(loose.into_iter().filter(|read| named(read).is_none()));
            if !more {
                break;
            }
        }
        let over: HashSet<&ObjectKey> = aside.keys().iter().collect();
        let mut ended: Vec<ScopeId> = Vec::new();
        let mut kept: HashSet<&ObjectKey> = HashSet::new();
        for (id, (key, projection)) in &singles {
            if !over.contains(key) && !holders.list_as_whole(key, *projection) {
                kept.insert(key);
            } else {
                ended.push(*id);
            }
        }
        let Some(feeds) = &mut following.feeds else { return };
        for id in &ended {
            feeds.end(*id);
            following.again.end(*id);
            if let Some(FollowedScope { read, key: Some(key), .. }) = following.scopes.remove(id) {
                following.planned.remove(&read);
                snapshot.forget(&key);
            }
        }
        // Many of a kind that came one after the other are listed from now on.
        let mut is_kept = lists_of(kept.iter().copied());
        for read in lists.into_iter().filter(|read| is_kept(read)) {
            if following.planned.insert(read.clone()) {
                let id = feeds.follow(scope_of(&read));
                let followed = FollowedScope::new(read, false, true, now + self.timeout);
                following.scopes.insert(id, followed);
            }
        }
        following.most_singles = (2 * kept.len()).max(FEW);
        if !ended.is_empty() {
            following.singles.recount(following.scopes.values());
        }
    }
}

/// A kind in one namespace or in all (`None`): group, kind, namespace.
type Place<'r> = (&'r str, &'r str, Option<&'r str>);

/// The lists and single objects that the needed reads return.
struct NeededReads<'r> {
    /// The kinds, each in one namespace or in all, that are listed without a selector.
    places: HashSet<Place<'r>>,
    /// The single objects, by kind, namespace and name.
    objects: HashSet<(Place<'r>, &'r str)>,
}

impl<'r> NeededReads<'r> {
    fn of(reads: &'r [Read]) -> NeededReads<'r> {
        let mut wanted = NeededReads { places: HashSet::new(), objects: HashSet::new() };
        for read in reads {
            let place = (&*read.group, &*read.kind, read.namespace.as_deref());
            match &read.target {
                Target::Object(name) => drop(wanted.objects.insert((place, name))),
                Target::List { labels: None, fields: None } => drop(wanted.places.insert(place)),
                Target::List { .. } => {}
            }
        }
        wanted
    }

    /// Returns true if one of the reads returns the object `key`, by its name or in a list without a selector.
    fn brings(&self, key: &ObjectKey) -> bool {
        let places = places(key);
        places.iter().any(|place| self.places.contains(place))
            || places.iter().any(|place| {
                place.2.unwrap_or_default() == key.namespace && self.objects.contains(&(*place, &key.name))
            })
    }
}

/// Returns the two lists that contain an object: of its kind in all namespaces, and in its own.
fn places(key: &ObjectKey) -> [Place<'_>; 2] {
    [None, Some(key.namespace.as_str())].map(|namespace| (&*key.group, &*key.kind, namespace))
}

/// Returns a function that is true for a read which lists a whole kind with one of these objects.
fn lists_of<'k>(keys: impl Iterator<Item = &'k ObjectKey>) -> impl FnMut(&Read) -> bool {
    let places: HashSet<Place<'k>> = keys.flat_map(places).collect();
    move |read| {
        let is_whole = matches!(read.target, Target::List { labels: None, fields: None });
        is_whole && places.contains(&(&*read.group, &*read.kind, read.namespace.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use taffrail_cluster::Memory;
    use taffrail_sim::{Cluster, Fleet};
    use taffrail_status::ClusterState as _;
    use taffrail_testkit::objects::{applications, namespace};

    use super::super::share::tests::{follow, until};
    use super::*;
    use crate::look::NO_EXTRA;

    /// Applies an Application whose status says that its controller is in the namespace `controller`.
    fn application(cluster: &Cluster, controller: &str) {
        let own: Value = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "shop", "name": "grab"},
            "spec": {"destination": {"server": "https://kubernetes.default.svc"}},
            "status": {"controllerNamespace": controller},
        });
        cluster.apply(own).unwrap();
    }

    /// Returns a cluster in which Applications are defined.
    async fn world() -> (Fleet, Cluster) {
        let fleet = Fleet::builder().controllers(false).start().await.unwrap();
        let cluster = fleet.cluster("one").await.unwrap();
        cluster.apply(applications()).unwrap();
        cluster.apply(namespace("shop")).unwrap();
        (fleet, cluster)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn objects_that_were_named_for_a_while_are_watched_no_more() {
        let (fleet, cluster) = world().await;
        application(&cluster, "argo-0");
        let memory = Memory::of(64 << 20);
        let mut follow = follow(std::slice::from_ref(&cluster), &memory).await;
        follow.settle(NO_EXTRA).await;
        let follows = |follow: &FleetWatcher, namespace: &str| {
            let reads = follow.clusters[0].scopes.values().map(|followed| &followed.read);
            reads.filter(|read| read.namespace.as_deref() == Some(namespace)).count()
        };
        let singles = |follow: &FleetWatcher| {
            follow.clusters[0].scopes.values().filter(|it| named(&it.read).is_some()).count()
        };
        until(&mut follow, |it| follows(it, "argo-0") == 2).await;
        let (mut most, mut ended) = (0, false);
        for number in 1..=120 {
            let namespace = format!("argo-{number}");
            application(&cluster, &namespace);
            until(&mut follow, |it| follows(it, &namespace) == 2).await;
            most = most.max(singles(&follow));
            ended |= follows(&follow, "argo-0") == 0;
        }
        assert!(ended && most <= 2 * FEW, "{most}");
        // What is named still is followed still, and what is named again is followed again.
        assert_eq!(follows(&follow, "argo-120"), 2);
        application(&cluster, "argo-0");
        until(&mut follow, |it| follows(it, "argo-0") == 2).await;
        drop(fleet);
    }

    /// Returns the settings of an Argo CD with the value `value`.
    fn settings(value: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "argocd-cm"}, "data": {"a": value}})
    }

    /// A list of metadata must not replace the watch of a single object with its whole text: metadata does not say what
    /// changed.
    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_followed_whole_stays_so_beside_a_list_of_metadata() {
        let (fleet, cluster) = world().await;
        cluster.apply(settings("first")).unwrap();
        application(&cluster, "argo-0");
        let memory = Memory::of(64 << 20);
        let mut follow = follow(std::slice::from_ref(&cluster), &memory).await;
        let key = ObjectKey::new("", "ConfigMap", "shop", "argocd-cm");
        let says = |follow: &FleetWatcher| match follow.fleet.snapshots[0].get(key.as_ref()) {
            taffrail_status::Presence::Present(found) if found.projection == Projection::Full => {
                found.object.text(&["data", "a"]).into_owned()
            }
            _ => String::new(),
        };
        until(&mut follow, |it| says(it) == "first").await;
        // Who declares a ConfigMap has all of them listed by metadata.
        let mut declaring = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"namespace": "shop", "name": "declaring"},
            "spec": {"destination": {"server": "https://kubernetes.default.svc"}},
        });
        let map = |at: usize| json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": format!("c{at}")});
        declaring["status"] = json!({"resources": (0..25).map(map).collect::<Vec<Value>>()});
        cluster.apply(declaring).unwrap();
        let is_list = |it: &FollowedScope| {
            let everything = Target::List { labels: None, fields: None };
            it.answered
                && it.read.kind == "ConfigMap"
                && it.read.target == everything
                && it.keys.contains(&key)
        };
        until(&mut follow, |it| it.clusters[0].scopes.values().any(is_list)).await;
        // Labelled objects name others, a few at a time, each of which is then followed by its name.
        for at in 0..120 {
            let (name, owner) = (format!("own-{at}"), format!("o{at}"));
            let by = json!([{"apiVersion": "v1", "kind": "Service", "name": owner, "uid": owner, "controller": true}]);
            let metadata = json!({"namespace": "shop", "name": name, "ownerReferences": by,
                "labels": {"app.kubernetes.io/instance": "x"}});
            cluster.apply(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "shop", "name": owner},
                "spec": {"ports": [{"port": 80}]}})).unwrap();
            cluster.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap();
            if at % 15 == 14 {
                let last = ObjectKey::new("", "Service", "shop", format!("o{at}"));
                until(&mut follow, |it| {
                    it.clusters[0].scopes.values().any(|followed| followed.keys.contains(&last))
                })
                .await;
            }
        }
        assert!(follow.clusters[0].most_singles > FEW, "it was asked which are still wanted");
        cluster.apply(settings("second")).unwrap();
        until(&mut follow, |it| says(it) == "second").await;
        drop(fleet);
    }
}
