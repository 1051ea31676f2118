//! Numbers of lookups: work for each app must not scan a whole cluster.

use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_api::filter::Filter;
use taffrail_api::{EventList, ImageUses, TreeList, TreeNode, TreeOptions, TrustReport};
use taffrail_apps::trust::TrustShape;
use taffrail_apps::{App, AppList, ClusterFacts, Objects, Snapshot, apps, changes_of_each, declared_each};
use taffrail_object::{Object, ObjectKey, ObjectKeyRef};
use taffrail_status::assess::Event;
use taffrail_status::{
    ActiveRules, ClusterState, ComputeError, Listing, ObjectContext, Observed, Presence, Rules, Taffrail,
    Verdict,
};

use super::dump::{NOW, base64, holding, release};
use super::reads::object;

/// A cluster that counts how many objects its listings yield.
struct Counting {
    all: Snapshot,
    yielded: AtomicUsize,
    /// Number of lookups of an object by its name.
    gets: AtomicUsize,
}

impl Counting {
    fn of(objects: &[Value]) -> Counting {
        let (yielded, gets) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Counting { all: holding("prod", objects), yielded, gets }
    }

    /// Number of objects that were yielded and looked up.
    fn looks(&self) -> usize {
        self.yielded.load(Ordering::Relaxed) + self.gets.load(Ordering::Relaxed)
    }

    fn count<'a>(&'a self, listing: Listing<'a>) -> Listing<'a> {
        Box::new(listing.inspect(|_| {
            self.yielded.fetch_add(1, Ordering::Relaxed);
        }))
    }
}

impl ClusterState for Counting {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        self.all.get(key)
    }
    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        self.count(self.all.of_kind(group, kind, namespace))
    }
    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.count(self.all.owned(uid, namespace))
    }
    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.count(self.all.dependents(uid, namespace))
    }
    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        self.count(self.all.users(namespace, claim))
    }
    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        self.count(self.all.in_namespace(namespace))
    }
    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        self.all.definition(group, kind)
    }
    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        let events = self.all.events(about);
        self.yielded.fetch_add(events.len(), Ordering::Relaxed);
        events
    }
    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.all.is_observed(group, kind, namespace)
    }
    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        self.all.tells_absence(group, kind, namespace)
    }
}

impl Objects for Counting {
    fn facts(&self) -> &ClusterFacts {
        self.all.facts()
    }
    fn all(&self) -> Listing<'_> {
        self.count(self.all.all())
    }
    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
        self.all.is_namespaced(group, kind)
    }
}

/// Counts the objects that the listings yield for this number of each kind.
fn yielded(of: impl Fn(usize) -> Vec<Value>, number: usize) -> usize {
    let counting = Counting::of(&(0..number).flat_map(of).collect::<Vec<_>>());
    let list = apps(&[&counting], &ActiveRules::default(), NOW);
    let shown: Vec<&App> = list.apps.iter().collect();
    assert!(shown.len() >= number, "{shown:?}");
    counting.yielded.into_inner()
}

/// Checks that ten times the objects take no more than about ten times the lookups.
#[track_caller]
fn grows_with_its_size(of: impl Fn(usize) -> Vec<Value>) {
    let (few, many) = (yielded(&of, 10), yielded(&of, 100));
    assert!(many <= few * 12, "{few} {many}");
}

fn application(number: usize, destination: &Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "argocd", "name": format!("app{number}")},
        "spec": {"destination": destination}, "status": {"resources": []},
    })
}

#[test]
fn controllers_are_found_without_scanning_all_workloads() {
    let here = json!({"server": "https://kubernetes.default.svc"});
    grows_with_its_size(|number| {
        let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "argocd", "name": format!("web{number}")}});
        vec![application(number, &here), workload]
    });
}

#[test]
fn a_stopped_controller_is_examined_once() {
    let here = json!({"server": "https://kubernetes.default.svc"});
    grows_with_its_size(|number| {
        let controller = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"namespace": "argocd", "name": "argocd-application-controller"}, "spec": {"replicas": 0}});
        let event = json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"namespace": "argocd", "name": format!("e{number}")}, "reason": "ScalingReplicaSet",
            "involvedObject": {"apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": "argocd",
                "name": "argocd-application-controller"}});
        let mut all = vec![application(number, &here), event];
        all.extend((number == 0).then_some(controller));
        all
    });
}

#[test]
fn the_clusters_of_an_argo_cd_are_read_once() {
    grows_with_its_size(|number| {
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "argocd", "name": format!("c{number}"),
                "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
            "data": {"name": base64(&format!("c{number}")), "server": base64("https://c.example.com")}});
        vec![application(number, &json!({"name": format!("c{number}")})), secret]
    });
}

#[test]
fn a_dump_without_pods_is_searched_for_them_once() {
    grows_with_its_size(|number| {
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": "shop", "name": format!("c{number}"), "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"app.kubernetes.io/instance": format!("c{number}")}},
            "spec": {"storageClassName": "late"}, "status": {"phase": "Pending"}});
        let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"namespace": "shop", "name": format!("r{number}")}, "spec": {"replicas": 0}, "status": {"replicas": 0}});
        let mut all = vec![claim, set];
        all.extend((number == 0).then(|| {
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "late"}, "volumeBindingMode": "WaitForFirstConsumer"})
        }));
        all
    });
}

#[test]
fn helm_storage_is_scanned_once_for_failed_releases() {
    grows_with_its_size(|number| vec![release("data", &format!("pg{number}"), 1, "failed", "")]);
}

/// Counts the lookups for a view of all apps, with this number of each kind.
fn looks(of: &impl Fn(usize) -> Vec<Value>, number: usize, view: &dyn Fn(&AppList, &Counting)) -> usize {
    let counting = Counting::of(&(0..number).flat_map(of).collect::<Vec<_>>());
    let list = apps(&[&counting], &ActiveRules::default(), NOW);
    assert!(list.apps.len() >= number, "{:?}", list.apps);
    let before = counting.looks();
    view(&list, &counting);
    counting.looks() - before
}

/// Checks that a view of ten times the objects takes no more than about ten times the lookups.
#[track_caller]
fn view_grows_with_its_size(of: impl Fn(usize) -> Vec<Value>, view: &dyn Fn(&AppList, &Counting)) {
    let (few, many) = (looks(&of, 20, view), looks(&of, 200, view));
    assert!(many <= few * 12, "{few} {many}");
}

/// Returns a Kustomization of a tenant that lists one object, which others may list too.
fn lists(number: usize, id: &str) -> Value {
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "aaa", "name": format!("k{number}"),
            "annotations": {"taffrail.dev/app": "shared"}},
        "status": {"inventory": {"entries": [{"id": id, "v": "v1"}]}}})
}

/// Returns a dependent of the Deployment `owner`.
fn made(mut object: Value, (version, kind, owner): (&str, &str, &str)) -> Value {
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": version, "kind": kind, "name": owner, "uid": format!("u-{owner}"), "controller": true}]);
    object
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "aaa", "name": name, "uid": format!("u-{name}")}})
}

/// Returns a Kustomization, and an object below the one that all list.
fn shared(number: usize) -> Vec<Value> {
    let below = made(config_map(&format!("c{number}")), ("v1", "ConfigMap", "o"));
    let mut all = vec![lists(number, "aaa_o__ConfigMap"), below];
    all.extend((number == 0).then(|| config_map("o")));
    all
}

#[test]
fn shared_objects_are_walked_once_for_events() {
    view_grows_with_its_size(shared, &|list, cluster| {
        let asked: Vec<&App> = list.apps.iter().collect();
        EventList::new(&asked, list, &[cluster], &ActiveRules::default(), NOW, None);
    });
}

#[test]
fn objects_that_share_a_uid_are_walked_once() {
    view_grows_with_its_size(
        |number| {
            let mut twin = config_map(&format!("o{number}"));
            twin["metadata"]["uid"] = json!("u-o");
            let below = made(config_map(&format!("c{number}")), ("v1", "ConfigMap", "o"));
            vec![lists(number, &format!("aaa_o{number}__ConfigMap")), twin, below]
        },
        &|list, cluster| {
            let asked: Vec<&App> = list.apps.iter().collect();
            EventList::new(&asked, list, &[cluster], &ActiveRules::default(), NOW, None);
        },
    );
}

/// Returns the changes before each app turned red.
fn changed(list: &AppList, cluster: &Counting) -> Vec<usize> {
    let all: Vec<(&App, &[&App])> = list.apps.iter().map(|app| (app, &[][..])).collect();
    changes_of_each(&all, &[cluster]).iter().map(Vec::len).collect()
}

#[test]
fn changes_of_a_shared_cause_are_computed_once() {
    const AT: &str = "2026-03-01T11:40:00Z";
    // A Pod with a volume for each app.
    let pod = |count: usize| {
        let volumes: Vec<Value> = (0..count)
            .map(|at| json!({"name": format!("v{at}"), "secret": {"secretName": format!("s{at}")}}))
            .collect();
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "aaa", "name": "p", "creationTimestamp": AT},
            "spec": {"volumes": volumes}, "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": AT}]}})
    };
    let looks_of = |count: usize| {
        let mut all: Vec<Value> = (0..count).map(|at| lists(at, "aaa_p__Pod")).collect();
        all.push(pod(count));
        let counting = Counting::of(&all);
        let list = apps(&[&counting], &ActiveRules::default(), NOW);
        assert!(list.apps.iter().all(|app| app.speaker.is_some()), "{:?}", list.apps);
        let before = counting.looks();
        changed(&list, &counting);
        counting.looks() - before
    };
    let (few, many) = (looks_of(20), looks_of(200));
    assert!(many <= few * 12, "{few} {many}");
}

#[test]
fn replica_sets_of_a_shared_cause_are_read_once() {
    const AT: &str = "2026-03-01T11:40:00Z";
    let deployment = || {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "aaa", "name": "d", "uid": "u-d", "creationTimestamp": AT, "generation": 1},
            "spec": {"replicas": 1}, "status": {"observedGeneration": 1, "conditions": [
                {"type": "Available", "status": "False", "lastTransitionTime": AT}]}})
    };
    view_grows_with_its_size(
        |number| {
            let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"namespace": "aaa", "name": format!("d{number}"),
                "creationTimestamp": AT, "annotations": {"deployment.kubernetes.io/revision": number.to_string()}}});
            let mut all =
                vec![lists(number, "aaa_d_apps_Deployment"), made(set, ("apps/v1", "Deployment", "d"))];
            all.extend((number == 0).then(deployment));
            all
        },
        &|list, cluster| {
            assert!(list.apps.iter().all(|app| app.speaker.is_some()), "{:?}", list.apps);
            changed(list, cluster);
        },
    );
}

#[test]
fn helm_storage_is_scanned_once_for_changes() {
    let failed = |number: usize| {
        let mut stored = release("data", &format!("pg{number}"), 1, "failed", MANIFEST);
        stored["metadata"]["creationTimestamp"] = json!("2026-03-01T11:40:00Z");
        let mut all = vec![stored];
        all.extend((number == 0).then(|| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "data", "name": "p",
                "creationTimestamp": "2026-03-01T11:40:00Z"}, "status": {"phase": "Pending", "conditions": [
                    {"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T11:40:00Z"}]}})
        }));
        all
    };
    view_grows_with_its_size(failed, &|list, cluster| {
        assert!(changed(list, cluster).iter().all(|count| *count > 0));
    });
}

const MANIFEST: &str = "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n";

/// Counts the nodes of trees.
fn nodes<'n>(trees: impl Iterator<Item = &'n TreeNode>) -> usize {
    trees.map(|node| 1 + nodes(node.children.iter())).sum()
}

#[test]
fn trees_of_apps_that_share_objects_have_a_bounded_size() {
    let apps_of = |count: usize, below: usize| {
        let mut all: Vec<Value> = (0..count).map(|at| lists(at, "aaa_o__ConfigMap")).collect();
        all.push(config_map("o"));
        all.extend((0..below).map(|at| made(config_map(&format!("c{at}")), ("v1", "ConfigMap", "o"))));
        holding("prod", &all)
    };
    let shape = TreeOptions { fold: false, ..TreeOptions::default() };
    let trees = |cluster: &Snapshot| {
        let list = apps(&[cluster], &ActiveRules::default(), NOW);
        let asked: Vec<&App> = list.apps.iter().collect();
        TreeList::new(&asked, &list, &[cluster], &ActiveRules::default(), NOW, shape)
    };
    // Some are told in full, as often as they are listed.
    let few = trees(&apps_of(3, 100));
    assert_eq!(nodes(few.items.iter().map(|tree| &tree.root)), 3 * 102);
    let many = trees(&apps_of(100, 1_000));
    let count = nodes(many.items.iter().map(|tree| &tree.root));
    assert!(count < 20_000, "{count}");
    let last = &many.items.last().unwrap().root.children[0];
    assert_eq!(last.children.len(), 0);
    assert!(last.note.as_ref().unwrap().ends_with("its dependents are shown above"), "{:?}", last.note);
}

#[test]
fn the_images_of_an_object_that_many_apps_list_are_read_once() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "aaa", "name": "p"},
        "spec": {"containers": [{"name": "app", "image": "registry/web:1"}]}});
    let wanted = |image: &str| Filter { images: vec![image.to_owned()], ..Filter::default() };
    for (image, kept) in [("web", 1), ("db", 0)] {
        let all: Vec<Value> = (0..50).map(|at| lists(at, "aaa_p__Pod")).chain([pod.clone()]).collect();
        let counting = Counting::of(&all);
        let mut list = apps(&[&counting], &ActiveRules::default(), NOW);
        let before = counting.looks();
        let filter = wanted(image);
        filter.resources(&mut list, Some(&ImageUses::of(&filter.images, &[&counting])));
        // The Pods are listed, the controllers of this one looked up, and its images.
        assert!(counting.looks() - before <= 3);
        assert!(list.apps.iter().all(|app| app.resources.len() == kept));
    }
}

#[test]
fn single_objects_share_the_facts_of_their_cluster() {
    // Who uses a claim is found among all Pods.
    let objects = |number: usize| {
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": "shop", "name": format!("c{number}"), "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"storageClassName": "late"}, "status": {"phase": "Pending"}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": format!("p{number}")},
            "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": format!("c{number}")}}]}});
        let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "late"}, "volumeBindingMode": "WaitForFirstConsumer"});
        let mut all = vec![claim, pod];
        all.extend((number == 0).then_some(class));
        all
    };
    let looks_of = |count: usize| {
        let counting = Counting::of(&(0..count).flat_map(objects).collect::<Vec<_>>());
        let key = |at: usize| ObjectKey::new("", "PersistentVolumeClaim", "shop", format!("c{at}"));
        let keys: Vec<ObjectKey> = (0..count).map(key).collect();
        let own = declared_each(&counting, &keys, &ActiveRules::default(), NOW);
        let shown: Vec<&ObjectKey> = own.apps.iter().map(|app| &*app.resources[0].key).collect();
        assert_eq!(shown, keys.iter().collect::<Vec<_>>());
        counting.looks()
    };
    let (few, many) = (looks_of(20), looks_of(200));
    assert!(many <= few * 12, "{few} {many}");
}

#[test]
fn definitions_are_scanned_once_for_all_trust_findings() {
    view_grows_with_its_size(
        |number| {
            let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("k{number}s.acme.dev")},
                "spec": {"group": "acme.dev", "names": {"kind": format!("K{number}"), "plural": format!("k{number}s")},
                    "scope": "Namespaced", "versions": [{"name": "v1", "served": true, "storage": true}]}});
            let object = json!({"apiVersion": "acme.dev/v1", "kind": format!("K{number}"),
                "metadata": {"namespace": "aaa", "name": "it", "labels": {"app.kubernetes.io/instance": format!("i{number}")}}});
            vec![definition, object]
        },
        &|list, cluster| {
            let asked: Vec<&App> = list.apps.iter().collect();
            let report = TrustReport::new(&asked, list, &[cluster], NOW, TrustShape::default());
            assert!(report.items.iter().any(|doubt| doubt.reason == "NoStatus"), "{:?}", report.items);
        },
    );
}

/// Rules that count the objects judged.
struct Judged(AtomicUsize);

impl Rules for Judged {
    fn judge(
        &self,
        object: &Object<'_>,
        context: &ObjectContext<'_>,
        now: Timestamp,
    ) -> Result<Verdict, ComputeError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Rules::judge(&Taffrail, object, context, now)
    }
}

#[test]
fn an_object_of_many_apps_is_judged_once() {
    let mut unwell = object("v1", "PersistentVolumeClaim", "shop", "data");
    unwell["status"] = json!({"phase": "Pending"});
    let count = |apps_of_it: usize| {
        let secret = |at: usize| release("shop", &format!("app{at}"), 1, "deployed", CLAIM);
        let objects: Vec<_> = (0..apps_of_it).map(secret).chain([unwell.clone()]).collect();
        let judged = Judged(0.into());
        let rows = apps(&[&holding("cluster", &objects)], &ActiveRules::new(&judged), NOW);
        assert_eq!(rows.apps.len(), apps_of_it);
        judged.0.into_inner()
    };
    assert_eq!(count(20), count(1));
}

const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n";
