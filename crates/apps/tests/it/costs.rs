//! How often objects are looked at: what is asked for each app must not go through all of a cluster.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use taffrail_apps::{
    App, ClusterId, Freshness, GroupKind, Lookup, ObjectKey, Objects, Observed, ScopeError, Snapshot, apps,
};
use taffrail_status::Taffrail;

use super::dump::{NOW, base64, holding, release};

/// A cluster that counts how many objects its listings yield.
struct Counting {
    all: Snapshot,
    yielded: AtomicUsize,
}

type Listing<'a> = Box<dyn Iterator<Item = Observed<'a>> + 'a>;

impl Counting {
    fn count<'a>(&'a self, listing: Listing<'a>) -> Listing<'a> {
        Box::new(listing.inspect(|_| {
            self.yielded.fetch_add(1, Ordering::Relaxed);
        }))
    }
}

impl Objects for Counting {
    fn name(&self) -> &str {
        self.all.name()
    }
    fn id(&self) -> Option<&ClusterId> {
        self.all.id()
    }
    fn servers(&self) -> &[String] {
        self.all.servers()
    }
    fn version(&self) -> Option<&str> {
        self.all.version()
    }
    fn freshness(&self) -> Freshness {
        self.all.freshness()
    }
    fn get(&self, key: &ObjectKey) -> Lookup<'_> {
        self.all.get(key)
    }
    fn of_kind<'a>(&'a self, group: &str, kind: &str) -> Listing<'a> {
        self.count(self.all.of_kind(group, kind))
    }
    fn of_kind_in<'a>(&'a self, group: &str, kind: &str, namespace: &str) -> Listing<'a> {
        self.count(self.all.of_kind_in(group, kind, namespace))
    }
    fn is_observed(&self, kind: &GroupKind, namespace: Option<&str>) -> bool {
        self.all.is_observed(kind, namespace)
    }
    fn all<'a>(&'a self) -> Listing<'a> {
        self.count(self.all.all())
    }
    fn controlled<'a>(&'a self, uid: &str, namespace: Option<&str>) -> Listing<'a> {
        self.count(self.all.controlled(uid, namespace))
    }
    fn held<'a>(&'a self, uid: &str, namespace: Option<&str>) -> Listing<'a> {
        self.count(self.all.held(uid, namespace))
    }
    fn is_dump(&self) -> bool {
        self.all.is_dump()
    }
    fn events_about<'a>(&'a self, kind: &str, namespace: &str, name: &str) -> Listing<'a> {
        self.count(self.all.events_about(kind, namespace, name))
    }
    fn is_namespaced(&self, group: &str, kind: &str) -> Option<bool> {
        self.all.is_namespaced(group, kind)
    }
    fn repeated(&self) -> &[ObjectKey] {
        self.all.repeated()
    }
    fn errors(&self) -> &[ScopeError] {
        self.all.errors()
    }
}

/// How many objects the listings yield for so many of each.
fn yielded(of: impl Fn(usize) -> Vec<Value>, number: usize) -> usize {
    let all = holding("prod", &(0..number).flat_map(of).collect::<Vec<_>>());
    let counting = Counting { all, yielded: AtomicUsize::new(0) };
    let list = apps(&[&counting], &Taffrail, NOW);
    let shown: Vec<&App> = list.apps.iter().collect();
    assert!(shown.len() >= number, "{shown:?}");
    counting.yielded.into_inner()
}

/// Checks that ten times as much takes no more than about ten times as many looks.
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
fn controllers_are_not_looked_for_among_all_workloads() {
    let here = json!({"server": "https://kubernetes.default.svc"});
    grows_with_its_size(|number| {
        let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "argocd", "name": format!("web{number}")}});
        vec![application(number, &here), workload]
    });
}

#[test]
fn a_stopped_controller_is_looked_at_once() {
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
fn that_a_dump_has_no_pods_is_found_out_once() {
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
fn the_storage_of_helm_is_gone_through_once_for_all_failed_releases() {
    grows_with_its_size(|number| vec![release("data", &format!("pg{number}"), 1, "failed", "")]);
}
