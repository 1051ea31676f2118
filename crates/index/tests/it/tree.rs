//! Tests of owners, applied in any order, and of those that are found without owner references.

use serde_json::{Value, json};
use taffrail_index::{Index, IndexSettings, Relation, save};
use taffrail_object::Projection;
use taffrail_status::ClusterState as _;
use xxhash_rust::xxh3::xxh3_128;

use crate::world::{World, names, object, uid};

/// Returns the objects of the tree below the object `group/Kind/namespace/name`, each as its depth and its name,
/// sorted.
fn tree(world: &World, root: &str) -> Vec<String> {
    let parts: Vec<_> = root.split('/').collect();
    let contents = world.index.contents();
    let root = contents.find(parts[0], parts[1], parts[2], parts[3]).unwrap().handle();
    let mut nodes: Vec<_> = contents
        .tree(&[root])
        .map(|node| format!("{} {}", node.depth, contents.get(node.handle).unwrap().name()))
        .collect();
    nodes.sort();
    nodes
}

#[test]
fn a_tree_is_the_same_in_whatever_order_it_comes() {
    let all = [
        object("Deployment", "shop", "web", 1, None),
        object("ReplicaSet", "shop", "web-a", 2, Some(1)),
        object("ReplicaSet", "shop", "web-b", 3, Some(1)),
        object("Pod", "shop", "web-a-1", 4, Some(2)),
        object("Pod", "shop", "web-b-1", 5, Some(3)),
        object("Pod", "other", "lonely", 6, None),
    ];
    let expected = ["0 web", "1 web-a", "1 web-b", "2 web-a-1", "2 web-b-1"];
    for seed in 0..50 {
        let mut all = all.to_vec();
        fastrand::Rng::with_seed(seed).shuffle(&mut all);
        let mut world = World::new(IndexSettings::default());
        for object in &all {
            world.apply(object);
        }
        assert_eq!(tree(&world, "apps/Deployment/shop/web"), expected);
        let contents = world.index.contents();
        let pod = contents.find("", "Pod", "shop", "web-a-1").unwrap();
        assert_eq!(contents.top(pod.handle()).unwrap().name(), "web");
        assert_eq!(contents.parents(pod.handle()).next().unwrap().name(), "web-a");
        // Each object once, also where roots lie below one another.
        let roots: Vec<_> = contents.all().map(|object| object.handle()).collect();
        assert_eq!(contents.tree(&roots).count(), 6);
        assert_eq!(contents.tree(&[roots[0], roots[0]]).count(), contents.tree(&roots[..1]).count());
        // An owner that is made again under another UID owns nothing yet.
        world.apply(&object("ReplicaSet", "shop", "web-a", 20, Some(1)));
        assert_eq!(tree(&world, "apps/Deployment/shop/web"), ["0 web", "1 web-a", "1 web-b", "2 web-b-1"]);
        world.apply(&object("Pod", "shop", "web-a-1", 4, Some(20)));
        assert_eq!(tree(&world, "apps/Deployment/shop/web"), expected);
    }
}

#[test]
fn several_owners_and_circles_end() {
    let mut world = World::new(IndexSettings::default());
    let owned = |name: &str, number: u64, owners: &[(u64, bool)]| {
        let mut it = object("ReplicaSet", "shop", name, number, None);
        let owners =
            owners.iter().map(|(owner, controller)| json!({"uid": uid(*owner), "controller": controller}));
        it["metadata"]["ownerReferences"] = owners.collect();
        it
    };
    for it in [
        owned("a", 1, &[(3, true)]),
        owned("b", 2, &[(1, true)]),
        owned("c", 3, &[(2, false), (1, false)]),
        owned("d", 4, &[(1, false), (2, true), (3, false)]),
        owned("self", 5, &[(5, true)]),
    ] {
        world.apply(&it);
    }
    let mut names: Vec<_> = tree(&world, "apps/ReplicaSet/shop/a");
    names.iter_mut().for_each(|name| *name = name[2..].to_owned());
    names.sort();
    assert_eq!(names, ["a", "b", "c", "d"]);
    assert_eq!(tree(&world, "apps/ReplicaSet/shop/self"), ["0 self"]);
    let contents = world.index.contents();
    let d = contents.find("apps", "ReplicaSet", "shop", "d").unwrap();
    assert_eq!(d.owners().next(), Some((world.index.contents().uid(&uid(2)), Relation::Controller)));
    assert_eq!(contents.parents(d.handle()).map(|parent| parent.name()).collect::<Vec<_>>(), ["b", "a", "c"]);
    world.remove(&owned("b", 2, &[]));
    assert_eq!(tree(&world, "apps/ReplicaSet/shop/a"), ["0 a", "1 c", "1 d"]);
}

#[test]
fn objects_of_the_cluster_own_objects_in_namespaces() {
    let mut world = World::new(IndexSettings::default());
    let provider = json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": {"name": "aws", "uid": uid(1)}});
    world.apply(&object("Deployment", "crossplane", "aws-1", 2, Some(1)));
    world.apply(&provider);
    assert_eq!(tree(&world, "pkg.crossplane.io/Provider//aws"), ["0 aws", "1 aws-1"]);
}

#[test]
fn of_twins_one_is_shown() {
    let mut world = World::new(IndexSettings::default());
    let twin = |group: &str| {
        let mut set = object("ReplicaSet", "shop", "web-a", 2, Some(1));
        set["apiVersion"] = json!(format!("{group}/v1"));
        set
    };
    world.apply(&object("Deployment", "shop", "web", 1, None));
    world.apply(&twin("extensions"));
    world.apply(&object("Pod", "shop", "web-a-1", 3, Some(2)));
    for _ in 0..2 {
        world.apply(&twin("apps"));
        assert_eq!(tree(&world, "apps/Deployment/shop/web"), ["0 web", "1 web-a", "2 web-a-1"]);
        let found = {
            let contents = world.index.contents();
            contents.find_uid(contents.uid(&uid(2))).unwrap()
        };
        assert_eq!(found.resource().unwrap().group, "apps");
        assert_eq!(world.index.contents().len(), 4);
        world.remove(&twin("apps"));
        assert_eq!(tree(&world, "apps/Deployment/shop/web"), ["0 web", "1 web-a", "2 web-a-1"]);
        assert_eq!(tree(&world, "extensions/ReplicaSet/shop/web-a"), ["0 web-a", "1 web-a-1"]);
    }
}

/// Returns pairs of an object without owner references and its owner, each with the way in which the owner is found.
fn inferred() -> Vec<(Value, Value, &'static str)> {
    let named = |api_version: &str, kind: &str, name: &str, number: u64| {
        json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"namespace": "shop", "name": name, "uid": uid(number)}})
    };
    let with = |mut object: Value, key: &str, value: Value| {
        object["metadata"][key] = value;
        object
    };
    let mut set = named("apps/v1", "StatefulSet", "db", 1);
    set["spec"] =
        json!({"volumeClaimTemplates": [{"metadata": {"name": "wal"}}, {"metadata": {"name": "data-x"}}]});
    let service = || named("v1", "Service", "web", 2);
    let account = || named("v1", "ServiceAccount", "robot", 3);
    vec![
        (named("v1", "Endpoints", "web", 10), service(), "/Service/shop/web"),
        (
            with(
                named("discovery.k8s.io/v1", "EndpointSlice", "web-x", 11),
                "labels",
                json!({"kubernetes.io/service-name": "web"}),
            ),
            service(),
            "/Service/shop/web",
        ),
        (named("v1", "PersistentVolumeClaim", "data-x-db-0", 12), set, "apps/StatefulSet/shop/db"),
        (
            with(
                named("v1", "Secret", "robot-token", 13),
                "annotations",
                json!({"kubernetes.io/service-account.name": "robot"}),
            ),
            account(),
            "/ServiceAccount/shop/robot",
        ),
        (
            with(
                named("v1", "Secret", "robot-token", 13),
                "annotations",
                json!({"kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": uid(3)}),
            ),
            account(),
            "/ServiceAccount/shop/robot",
        ),
        (
            with(
                named("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "op.v1", 14),
                "annotations",
                json!({"olm.operatorGroup": "all"}),
            ),
            named("operators.coreos.com/v1", "OperatorGroup", "all", 4),
            "operators.coreos.com/OperatorGroup/shop/all",
        ),
        (
            with(
                object("Pod", "shop", "web-1", 15, None),
                "ownerReferences",
                json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": true}]),
            ),
            named("apps/v1", "ReplicaSet", "web", 5),
            "apps/ReplicaSet/shop/web",
        ),
    ]
}

#[test]
fn owners_that_no_reference_tells_are_inferred() {
    for (owned, owner, root) in inferred() {
        let name = owned["metadata"]["name"].as_str().unwrap();
        for owner_first in [true, false] {
            let mut world = World::new(IndexSettings::default());
            let mut all = [&owned, &owner];
            if owner_first {
                all.reverse();
            }
            for object in all {
                let projection =
                    if object["kind"] == "Secret" { Projection::Metadata } else { Projection::Full };
                world.try_apply(object, projection).unwrap();
            }
            assert_eq!(tree(&world, root).last().unwrap(), &format!("1 {name}"), "{root}");
            world.remove(&owner);
            world.apply(&owner);
            assert_eq!(tree(&world, root).len(), 2, "{root}");
            world.remove(&owned);
            assert_eq!(tree(&world, root).len(), 1, "{root}");
        }
    }
}

#[test]
fn what_is_only_called_alike_has_no_owner() {
    let mut world = World::new(IndexSettings::default());
    let all = inferred();
    for (_, owner, _) in &all {
        world.apply(owner);
    }
    for name in ["data-x-db", "data-x-db-0a", "x-db-0", "data-x-other-0", "data-x-db-"] {
        world.apply(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": "shop", "name": name, "uid": uid(100)}}));
    }
    world.apply(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "other", "name": "data-x-db-0", "uid": uid(101)}}));
    // One that says who owns it is not asked again.
    world.apply(
        &json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"namespace": "shop", "name": "web",
        "uid": uid(102), "ownerReferences": [{"uid": uid(103)}]}}),
    );
    for (_, _, root) in &all {
        assert_eq!(tree(&world, root).len(), 1, "{root}");
    }
}

#[test]
fn who_invents_an_owner_gets_no_place_below_another_object() {
    // Both have the same hash by XXH3 of 128 bits, where that has no seed: two factors of a product are swapped.
    let [own, invented] =
        ["(WBb&2Q<\u{ca2d}w\u{b7dde}-of-the-owner---", "(W@b&2Q<\u{ca2f}w\u{b7dde}-of-the-owner---"];
    assert_eq!(xxh3_128(own.as_bytes()), xxh3_128(invented.as_bytes()));

    let mut world = World::new(IndexSettings::default());
    let mut set = object("ReplicaSet", "shop", "web", 1, None);
    set["metadata"]["uid"] = json!(own);
    world.apply(&set);
    for (name, uid) in [("web-1", own), ("forged", invented)] {
        let mut pod = object("Pod", "shop", name, 2, Some(1));
        pod["metadata"]["uid"] = json!(format!("uid of {name}"));
        pod["metadata"]["ownerReferences"][0]["uid"] = json!(uid);
        world.apply(&pod);
    }
    let saved = save(&world.index.publish(world.now), world.now);
    let index = Index::reopen(&saved, IndexSettings::default(), world.now).unwrap();
    let contents = index.contents();
    let owner = contents.find("apps", "ReplicaSet", "shop", "web").unwrap();
    assert_eq!(names(contents.children(owner.handle())), ["web-1"]);
    let evidence = contents.evidence();
    let dependents =
        |uid: &str| evidence.dependents(uid, None).map(|it| it.object.name().to_string()).collect::<Vec<_>>();
    assert_eq!(
        (dependents(own), dependents(invented)),
        (vec!["web-1".to_owned()], vec!["forged".to_owned()])
    );
    assert_eq!(contents.find_uid(contents.uid(own)).unwrap().name(), "web");
    assert!(contents.find_uid(contents.uid(invented)).is_none());
}
