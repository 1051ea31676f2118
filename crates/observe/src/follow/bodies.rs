//! Objects that are followed by scopes of both projections: metadata neither replaces nor removes an object that is
//! followed whole.

use taffrail_apps::Snapshot;
use taffrail_object::{ObjectKey, Projection};

/// Removes `key`, which a scope with the projection `gone` reports as deleted; `others` is the largest projection in
/// which other scopes hold it. If only one of the two is of whole objects, keeps what the other scopes hold, because
/// they report the deletion later: a new object of that name may exist already.
pub(super) fn remove(snapshot: &mut Snapshot, key: &ObjectKey, gone: Projection, others: Option<Projection>) {
    match (gone, others) {
        (Projection::Metadata, Some(Projection::Full)) => {}
        (Projection::Full, Some(Projection::Metadata)) => snapshot.forget_body(key),
        _ => snapshot.remove(key),
    }
}

/// Removes `key` of a scope with the projection `ended` that is no longer watched; if other scopes hold it, with
/// `others` as their largest projection, keeps it, but without its body if they hold only its metadata.
pub(super) fn end(snapshot: &mut Snapshot, key: &ObjectKey, ended: Projection, others: Option<Projection>) {
    match (ended, others) {
        (_, None) => snapshot.remove(key),
        (Projection::Full, Some(Projection::Metadata)) => snapshot.forget_body(key),
        (_, Some(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use taffrail_apps::Target;
    use taffrail_cluster::Memory;
    use taffrail_sim::{Cluster, Fleet};
    use taffrail_status::Status;
    use taffrail_status::{ClusterState as _, Observed, Presence};
    use taffrail_testkit::objects::{kustomizations, namespace};

    use super::super::FleetWatcher;
    use super::super::share::tests::{app, follow, until};
    use super::*;
    use crate::look::NO_EXTRA;

    fn owned(kind: &str, namespace: &str, name: &str, owner: (&str, &str)) -> Value {
        let version = |kind: &str| if kind == "ConfigMap" || kind == "Pod" { "v1" } else { "apps/v1" };
        let uid = |name: &str| format!("u-{namespace}-{name}");
        let by = json!([{"apiVersion": version(owner.0), "kind": owner.0, "name": owner.1, "uid": uid(owner.1),
            "controller": true}]);
        let metadata = json!({"namespace": namespace, "name": name, "uid": uid(name), "ownerReferences": by});
        let api_version = version(kind);
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
    }

    fn pod(name: &str, message: &str) -> Value {
        let mut pod = owned("Pod", "shop", name, ("ReplicaSet", "web-1"));
        let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": message}});
        pod["status"] = json!({"phase": "Pending", "containerStatuses": [{"name": "web", "state": waiting}]});
        pod
    }

    fn found<'s>(snapshot: &'s Snapshot, key: &ObjectKey) -> Option<Observed<'s>> {
        match snapshot.get(key.as_ref()) {
            Presence::Present(observed) => Some(observed),
            Presence::Absent | Presence::Unobserved(_) => None,
        }
    }

    fn deployment(is_well: bool) -> Value {
        let [_, mut deployment] = app(1);
        deployment["metadata"]["uid"] = json!("u-shop-web");
        if !is_well {
            deployment["status"] = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1});
        }
        deployment
    }

    fn message(follow: &mut FleetWatcher) -> String {
        let list = follow.fleet().apps(&[]);
        let app = list.apps.iter().find(|app| app.app.name == "web");
        app.filter(|app| app.health == Status::Failed)
            .map(|app| app.message.clone())
            .unwrap_or_default()
            .to_string()
    }

    async fn says(follow: &mut FleetWatcher, wanted: &str) {
        let began = std::time::Instant::now();
        while message(follow) != wanted {
            assert!(began.elapsed().as_secs() < 60, "{wanted}: {}", message(follow));
            follow.next(std::time::Duration::from_millis(50)).await;
            follow.ask().await;
        }
    }

    /// Fills the cluster with objects whose owner references name Pods in several namespaces, so that all Pods are
    /// followed by metadata.
    fn world(cluster: &Cluster) {
        cluster.apply(kustomizations()).unwrap();
        let namespaces = (0..6).map(|at| format!("team-{at}"));
        for name in namespaces.clone().chain(["shop".to_owned()]) {
            cluster.apply(namespace(&name)).unwrap();
        }
        let [kustomization, _] = app(1);
        let mut set = owned("ReplicaSet", "shop", "web-1", ("Deployment", "web"));
        (set["spec"], set["status"]) = (json!({"replicas": 1}), json!({"replicas": 1}));
        let mut objects = vec![kustomization, deployment(true), set, pod("web-1-a", "first")];
        for namespace in namespaces {
            for at in 0..5 {
                let (own, name) = (format!("own-{at}"), format!("p{at}"));
                let mut map = owned("ConfigMap", &namespace, &own, ("Pod", &name));
                map["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "x"});
                let mut pod = owned("Pod", &namespace, &name, ("", ""));
                pod["metadata"].as_object_mut().unwrap().remove("ownerReferences");
                objects.extend([map, pod]);
            }
        }
        cluster.seed(objects).unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn pods_that_are_followed_by_metadata_are_followed_whole_where_they_are_evidence() {
        let fleet = Fleet::builder().verbatim(true).controllers(false).start().await.unwrap();
        let cluster = fleet.cluster("one").await.unwrap();
        world(&cluster);
        let mut follow = follow(std::slice::from_ref(&cluster), &Memory::of(64 << 20)).await;
        follow.settle(NO_EXTRA).await;
        let is_followed = |follow: &FleetWatcher, namespace: Option<&str>, projection: Projection| {
            let mut reads = follow.clusters[0].scopes.values().map(|followed| &followed.read);
            reads.any(|read| {
                let is_list = read.target == Target::List { labels: None, fields: None };
                read.kind == "Pod"
                    && is_list
                    && read.namespace.as_deref() == namespace
                    && read.projection == projection
            })
        };
        until(&mut follow, |it| is_followed(it, None, Projection::Metadata)).await;
        assert_eq!(message(&mut follow), "");

        // It turns bad after all Pods were listed.
        cluster.apply(deployment(false)).unwrap();
        says(&mut follow, "first").await;
        assert!(is_followed(&follow, Some("shop"), Projection::Full));
        // What both scopes say of a Pod that comes again under its name is heard in any order.
        for round in 0..20 {
            assert!(cluster.delete("v1", "Pod", "shop", "web-1-a"));
            let text = format!("again {round}");
            cluster.apply(pod("web-1-a", &text)).unwrap();
            says(&mut follow, &text).await;
        }
        assert!(cluster.delete("v1", "Pod", "shop", "web-1-a"));
        says(&mut follow, "").await;
        let key = ObjectKey::new("", "Pod", "shop", "web-1-a");
        until(&mut follow, |it| found(&it.fleet.snapshots[0], &key).is_none()).await;
        assert!(follow.fleet.snapshots[0].is_observed("", "Pod", Some("shop")));
        drop(fleet);
    }

    #[test]
    fn of_two_scopes_the_one_with_bodies_says_what_is_gone() {
        let key = ObjectKey::new("", "Pod", "shop", "web-1-a");
        let known = |gone: Projection, others: Option<Projection>, does_end: bool| {
            let mut snapshot = Snapshot::dump("one", jiff::Timestamp::UNIX_EPOCH);
            let text = serde_json::to_vec(&pod("web-1-a", "first")).unwrap();
            let document = taffrail_object::json::OwnedDocument::parse(text).unwrap();
            snapshot.insert(document, Projection::Full).unwrap();
            let whole = snapshot.size();
            match does_end {
                true => end(&mut snapshot, &key, gone, others),
                false => remove(&mut snapshot, &key, gone, others),
            }
            let found = found(&snapshot, &key).map(|found| {
                let has_status = found.object.at(&["status"]).is_some();
                assert_eq!(has_status, found.projection == Projection::Full);
                assert_eq!(snapshot.size() == whole, has_status);
                assert_eq!(found.object.text(&["metadata", "uid"]), "u-shop-web-1-a");
                found.projection
            });
            assert_eq!(found.is_none(), snapshot.size() == 0);
            found
        };
        let (whole, metadata) = (Projection::Full, Projection::Metadata);
        assert_eq!(known(metadata, Some(whole), false), Some(whole));
        assert_eq!(known(whole, Some(metadata), false), Some(metadata));
        assert_eq!(known(whole, Some(whole), false), None);
        assert_eq!(known(whole, None, false), None);
        assert_eq!(known(whole, Some(metadata), true), Some(metadata));
        assert_eq!(known(metadata, Some(whole), true), Some(whole));
        assert_eq!(known(whole, Some(whole), true), Some(whole));
        assert_eq!(known(whole, None, true), None);
    }
}
