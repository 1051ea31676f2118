//! Tests that every query finds an applied object, and that a removed one leaves nothing behind in the index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_index::{Applied, Aspects, Contents, Handle, Index, IndexSettings, KindId, ObjectRef, Refusal};
use taffrail_object::ApiResource;
use taffrail_object::json::OwnedDocument;
use taffrail_object::{LiveToken, Object, Projection};
use taffrail_status::Status;

/// An index for tests that adds the kind of each object that is applied.
pub(crate) struct World {
    pub(crate) index: Index,
    pub(crate) now: Timestamp,
}

pub(crate) const NOW: &str = "2026-03-01T12:00:00Z";

impl World {
    pub(crate) fn new(settings: IndexSettings) -> World {
        World { index: Index::new(settings), now: NOW.parse().unwrap() }
    }

    pub(crate) fn kind(&mut self, api_version: &str, kind: &str, namespaced: bool) -> KindId {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.index.kind(&ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced,
        })
    }

    pub(crate) fn kind_of(&mut self, object: &Value) -> KindId {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let namespaced = object["metadata"]["namespace"].is_string();
        self.kind(&text(&object["apiVersion"]), &text(&object["kind"]), namespaced)
    }

    pub(crate) fn try_apply(&mut self, object: &Value, projection: Projection) -> Result<Applied, Refusal> {
        let kind = self.kind_of(object);
        let document = OwnedDocument::parse(object.to_string().into_bytes()).unwrap();
        self.index.apply(kind, &Object::new(document.root()).unwrap(), projection, self.now)
    }

    #[track_caller]
    pub(crate) fn apply(&mut self, object: &Value) -> Applied {
        self.try_apply(object, Projection::Full).unwrap()
    }

    pub(crate) fn remove(&mut self, object: &Value) -> bool {
        let kind = self.kind_of(object);
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        self.index.remove(kind, &text("namespace"), &text("name"))
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += jiff::SignedDuration::from_secs(seconds);
    }
}

pub(crate) fn uid(number: u64) -> String {
    format!("{:08x}-0000-4000-8000-{number:012x}", number % 7)
}

/// Returns an object of `apps/v1` or the core group with the UID `number`; `owner` is the UID of its controller.
pub(crate) fn object(kind: &str, namespace: &str, name: &str, number: u64, owner: Option<u64>) -> Value {
    let core = matches!(kind, "Pod" | "ConfigMap" | "Service" | "Secret" | "Namespace");
    let mut object = json!({
        "apiVersion": if core { "v1" } else { "apps/v1" }, "kind": kind,
        "metadata": {
            "namespace": namespace, "name": name, "uid": uid(number), "resourceVersion": "5",
            "creationTimestamp": "2026-03-01T11:00:00Z", "labels": {"app": "web", "tier": "front"},
        },
    });
    if namespace.is_empty() {
        object["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    if let Some(owner) = owner {
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "Any", "name": "any", "uid": uid(owner), "controller": true}]);
    }
    if kind == "Pod" {
        object["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    }
    object
}

pub(crate) fn names<'s>(objects: impl IntoIterator<Item = ObjectRef<'s>>) -> Vec<String> {
    let mut names: Vec<_> = objects.into_iter().map(|object| object.name().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn an_object_is_found_by_everything_that_is_known_of_it() {
    let mut world = World::new(IndexSettings {
        annotations: vec!["note".to_owned(), "kubectl.kubernetes.io/last-applied-configuration".to_owned()],
        mark: Arc::new(|object, add| add(&object.text(&["metadata", "labels", "app"]))),
        ..IndexSettings::default()
    });
    let mut pod = object("Pod", "shop", "web-1", 7, Some(3));
    pod["metadata"]["generation"] = json!(4);
    pod["metadata"]["annotations"] = json!({"note": "n", "other": "o",
        "kubectl.kubernetes.io/last-applied-configuration": "{\"secret\":1}"});
    let handle = world.apply(&pod).handle().unwrap();
    let snapshot = world.index.publish(world.now);
    let kind = snapshot.find_kind("", "Pod").unwrap();
    let mut found = vec![
        snapshot.get(handle).unwrap(),
        snapshot.find("", "Pod", "shop", "web-1").unwrap(),
        snapshot.find_uid(snapshot.uid(&uid(7))).unwrap(),
    ];
    found.extend(snapshot.of_kind(kind, None));
    found.extend(snapshot.of_kind(kind, Some("shop")));
    found.extend(snapshot.in_namespace("shop"));
    found.extend(snapshot.with_status(Status::Current));
    found.extend(snapshot.marked("web"));
    found.extend(snapshot.all());
    assert_eq!(found.len(), 9);
    assert!(found.iter().all(|object| object.handle() == handle));
    let own = found[0];
    assert_eq!((own.namespace(), own.name(), own.uid().to_string()), ("shop", "web-1", uid(7)));
    assert_eq!((&*own.resource_version(), own.generation()), ("5", Some(4)));
    assert_eq!(own.created().unwrap().to_string(), "2026-03-01T11:00:00Z");
    assert_eq!(own.labels().collect::<Vec<_>>(), [("app", "web"), ("tier", "front")]);
    assert_eq!(own.annotations().collect::<Vec<_>>(), [("note", "n")]);
    assert_eq!((own.status(), own.message(), own.rule()), (Status::Current, "Pod is Ready", "builtin/Pod"));
    assert_eq!((own.marks().collect::<Vec<_>>(), own.body()), (vec!["web"], None));
    assert_eq!(own.owners().map(|(uid, _)| uid).collect::<Vec<_>>(), [snapshot.uid(&uid(3))]);
    assert_eq!(snapshot.marks().collect::<Vec<_>>(), [("web", 1)]);
    assert_eq!(snapshot.counts().get(Status::Current), 1);
    assert_eq!(snapshot.counts_of_kind(kind, Some("shop")).total(), 1);
    // Nothing of that is elsewhere.
    assert_eq!(snapshot.of_kind(kind, Some("other")).count(), 0);
    assert!(snapshot.find("apps", "Pod", "shop", "web-1").is_none());
    assert!(snapshot.find_uid(snapshot.uid(&uid(3))).is_none());
}

#[test]
fn only_what_is_declared_or_shown_is_a_change() {
    let mut world = World::new(IndexSettings::default());
    let mut pod = object("Pod", "shop", "web", 1, None);
    pod["spec"] = json!({"nodeName": "a"});
    let added = world.apply(&pod);
    let handle = added.handle().unwrap();
    assert_eq!(added, Applied::Added(handle));
    let digest = |world: &World| world.index.contents().get(handle).unwrap().digest();
    let before = digest(&world);
    // Heartbeats, managers and versions are noise.
    pod["metadata"]["resourceVersion"] = json!("6");
    pod["metadata"]["managedFields"] = json!([{"manager": "kubelet"}]);
    pod["status"]["conditions"][0]["lastHeartbeatTime"] = json!("2026-03-01T12:00:00Z");
    pod["status"]["podIP"] = json!("10.0.0.1");
    pod["metadata"]["annotations"] = json!({"control-plane.alpha.kubernetes.io/leader": "a"});
    assert_eq!(world.apply(&pod), Applied::Unchanged(handle));
    assert_eq!(world.index.contents().get(handle).unwrap().resource_version(), "6");
    assert_eq!(digest(&world), before);
    let aspects = |applied: Applied| match applied {
        Applied::Changed(_, aspects) => aspects,
        other => panic!("{other:?}"),
    };
    pod["spec"]["priority"] = json!(1);
    let changed = aspects(world.apply(&pod));
    assert!(changed.has(Aspects::DIGEST) && !changed.has(Aspects::STATUS));
    assert_ne!(digest(&world), before);
    pod["metadata"]["labels"]["app"] = json!("cart");
    assert!(aspects(world.apply(&pod)).has(Aspects::LABELS));
    pod["status"]["conditions"][0]["status"] = json!("False");
    assert!(aspects(world.apply(&pod)).has(Aspects::STATUS));
    pod["metadata"]["deletionTimestamp"] = json!("2026-03-01T12:00:30Z");
    assert!(aspects(world.apply(&pod)).has(Aspects::DELETION));
    assert!(world.index.contents().get(handle).unwrap().is_deleting());
}

#[test]
fn tokens_see_each_change_that_a_manifest_could_declare() {
    let mut world = World::new(IndexSettings::default());
    let original = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
        "metadata": {"namespace": "shop", "name": "web", "uid": uid(1), "resourceVersion": "5"}});
    let handle = world.apply(&original).handle().unwrap();
    let token = |world: &World| world.index.contents().get(handle).unwrap().token();
    let before = token(&world);
    assert!(matches!(before, Some(LiveToken::Digest(_))));
    for (path, value) in [
        ("/metadata/labels", json!({"a": "b"})),
        ("/metadata/annotations", json!({"a": "b"})),
        ("/metadata/finalizers", json!(["example.com/held"])),
        (
            "/metadata/ownerReferences",
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid(2)}]),
        ),
        ("/metadata/deletionTimestamp", json!("2026-03-01T12:00:30Z")),
        ("/data", json!({"a": "c"})),
        ("/data", json!({"a": "b", "c": ""})),
        ("/binaryData", json!({})),
        ("/immutable", json!(true)),
    ] {
        let mut changed = original.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[key] = value;
        world.apply(&changed);
        assert_ne!(token(&world), before, "{path}");
        world.apply(&original);
        assert_eq!(token(&world), before, "{path}");
    }
    let mut noise = original.clone();
    noise["metadata"]["resourceVersion"] = json!("6");
    noise["status"] = json!({"a": "b"});
    world.apply(&noise);
    assert_eq!(token(&world), before);
    let as_metadata = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": noise["metadata"]});
    world.try_apply(&as_metadata, Projection::Metadata).unwrap();
    assert_eq!(token(&world), Some(LiveToken::Version("6".to_owned())));
    noise["metadata"]["resourceVersion"] = json!("");
    world.apply(&noise);
    assert_eq!(token(&world), None);
}

#[test]
fn a_lease_that_is_renewed_is_as_it_was() {
    let mut world = World::new(IndexSettings::default());
    let mut lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": "scheduler", "uid": uid(1)},
        "spec": {"holderIdentity": "a", "renewTime": "2026-03-01T12:00:00.000000Z"}});
    world.apply(&lease);
    lease["spec"]["renewTime"] = json!("2026-03-01T12:00:02.000000Z");
    assert!(matches!(world.apply(&lease), Applied::Unchanged(_)));
    lease["spec"]["holderIdentity"] = json!("b");
    assert!(matches!(world.apply(&lease), Applied::Changed(..)));
}

#[test]
fn bodies_are_kept_where_asked_and_trimmed() {
    let mut world = World::new(IndexSettings {
        keep: Arc::new(|object| object.name() == "kept"),
        ..IndexSettings::default()
    });
    let mut kept = object("ConfigMap", "shop", "kept", 1, None);
    kept["data"] = json!({"a": "b"});
    kept["metadata"]["managedFields"] = json!([{}]);
    kept["metadata"]["annotations"] =
        json!({"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "x"});
    let handle = world.apply(&kept).handle().unwrap();
    world.apply(&object("ConfigMap", "shop", "other", 2, None));
    let contents = world.index.contents();
    let body: Value = serde_json::from_slice(contents.get(handle).unwrap().body().unwrap()).unwrap();
    assert_eq!((&body["data"]["a"], &body["metadata"]["annotations"]), (&json!("b"), &json!({"a": "b"})));
    assert!(
        body["metadata"].get("managedFields").is_none() && body["metadata"].get("resourceVersion").is_none()
    );
    assert!(contents.find("", "ConfigMap", "shop", "other").unwrap().body().is_none());
    kept["metadata"]["resourceVersion"] = json!("6");
    assert_eq!(world.apply(&kept), Applied::Unchanged(handle));
    kept["status"] = json!({"x": 1});
    assert!(matches!(world.apply(&kept), Applied::Changed(_, aspects) if aspects.has(Aspects::BODY)));
}

#[test]
fn no_secret_value_enters() {
    let mut world = World::new(IndexSettings {
        keep: Arc::new(|_| true),
        annotations: vec!["kubectl.kubernetes.io/last-applied-configuration".to_owned()],
        ..IndexSettings::default()
    });
    let mut secret = object("Secret", "shop", "key", 1, None);
    secret["data"] = json!({"password": "aHVudGVyMg=="});
    secret["stringData"] = json!({"password": "hunter2"});
    secret["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{\"password\":\"aHVudGVyMg==\"}}"});
    secret["metadata"]["deletionTimestamp"] = json!("2026-03-01T12:00:30Z");
    let handle = world.apply(&secret).handle().unwrap();
    let snapshot = world.index.publish(world.now);
    assert!(snapshot.get(handle).unwrap().body().is_none());
    assert!(!format!("{snapshot:?}").contains("aHVudGVyMg") && !format!("{snapshot:?}").contains("hunter2"));
    let digest = snapshot.get(handle).unwrap().digest();
    secret["data"] = json!({"password": "eA=="});
    world.apply(&secret);
    assert_eq!(world.index.contents().get(handle).unwrap().digest(), digest);
}

#[test]
fn what_is_no_object_is_refused_and_changes_nothing() {
    let mut world = World::new(IndexSettings::default());
    let long = "x".repeat(2_000);
    for (bad, refusal) in [
        (json!({"apiVersion": "v1", "kind": "Pod"}), Refusal::NoName),
        (json!({"apiVersion": "v1", "kind": "Pod", "metadata": 3}), Refusal::NoName),
        (json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ""}}), Refusal::NoName),
        (json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": long}}), Refusal::NameTooLong),
    ] {
        assert_eq!(world.try_apply(&bad, Projection::Full), Err(refusal));
    }
    let kind = world.kind("v1", "Service", true);
    let pod = object("Pod", "shop", "web", 1, None);
    let refused = world.index.apply(kind, &Object::new((&pod).into()).unwrap(), Projection::Full, world.now);
    assert!(matches!(refused, Err(Refusal::OtherKind { .. })));
    assert!(world.index.contents().is_empty());
    // What is oddly shaped is taken as far as it goes.
    for odd in [
        json!({"labels": 3, "annotations": [], "ownerReferences": {"uid": 1}, "uid": 5, "creationTimestamp": "x"}),
        json!({"labels": {"a": 1, "b": null}, "ownerReferences": [1, null, {"uid": 7}, {"kind": "X", "name": "y"}]}),
        json!({"uid": "u", "resourceVersion": "abc", "generation": "x", "creationTimestamp": "0001-01-01T00:00:00Z"}),
        json!({"uid": "0000", "resourceVersion": "007", "ownerReferences": [{"uid": "u", "controller": true}]}),
    ] {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": odd, "status": {"phase": 3, "conditions": [1]}});
        pod["metadata"]["name"] = json!("odd");
        pod["metadata"]["namespace"] = json!("shop");
        let handle = world.apply(&pod).handle().unwrap();
        let snapshot = world.index.publish(world.now);
        let odd = snapshot.get(handle).unwrap();
        let version = pod["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        assert_eq!((odd.status(), &*odd.resource_version()), (Status::Unknown, version));
    }
}

#[test]
fn a_handle_never_means_another_object() {
    let mut world = World::new(IndexSettings::default());
    let pod = object("Pod", "shop", "web", 1, None);
    let first = world.apply(&pod).handle().unwrap();
    let snapshot = world.index.publish(world.now);
    assert!(world.remove(&pod) && !world.remove(&pod));
    let second = world.apply(&object("Pod", "shop", "cart", 2, None)).handle().unwrap();
    assert_eq!((first.slot(), second.generation()), (second.slot(), first.generation() + 1));
    assert!(world.index.contents().get(first).is_none());
    assert_eq!(snapshot.get(first).unwrap().name(), "web");
    // A name that is given again means another object.
    let third = world.apply(&object("Pod", "shop", "cart", 3, None));
    assert!(matches!(third, Applied::Added(handle) if handle != second));
    assert!(world.index.contents().get(second).is_none());
    assert_eq!(world.index.contents().len(), 1);
}

#[test]
fn a_version_that_takes_the_place_of_another_is_the_same_kind() {
    let mut world = World::new(IndexSettings::default());
    let old = world.kind("batch/v1beta1", "CronJob", true);
    let new = world.kind("batch/v1", "CronJob", true);
    assert_eq!(old, new);
    assert_eq!(world.index.contents().resource(new).unwrap().version, "v1");
}

/// A simple model of the contents that the index must have: each object with its handle, by kind, namespace and name.
#[derive(Default)]
struct Model(BTreeMap<(String, String, String), (Value, Handle)>);

impl Model {
    fn check(&self, contents: &Contents) {
        assert_eq!(contents.len(), self.0.len());
        let mut by_kind: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        let mut by_namespace: BTreeMap<&str, usize> = BTreeMap::new();
        let mut by_owner: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut by_mark: BTreeMap<&str, usize> = BTreeMap::new();
        let mut by_status: BTreeMap<Status, usize> = BTreeMap::new();
        for ((kind, namespace, name), (object, handle)) in &self.0 {
            let group = if kind == "Pod" { "" } else { "apps" };
            let found = contents.find(group, kind, namespace, name).unwrap();
            assert_eq!(found.handle(), *handle);
            assert_eq!((found.name(), found.namespace()), (name.as_str(), namespace.as_str()));
            let uid = object["metadata"]["uid"].as_str().unwrap();
            assert_eq!(contents.find_uid(contents.uid(uid)).unwrap().handle(), *handle);
            by_kind.entry((kind, namespace)).or_default().insert(name);
            *by_namespace.entry(namespace).or_default() += 1;
            if let Some(owner) = object["metadata"]["ownerReferences"][0]["uid"].as_str() {
                by_owner.entry(owner).or_default().insert(uid);
            }
            let mark = object["metadata"]["labels"]["app"].as_str().unwrap();
            *by_mark.entry(mark).or_default() += 1;
            *by_status.entry(found.status()).or_default() += 1;
            assert_eq!(found.label("app"), Some(mark));
        }
        for ((kind, namespace), expected) in by_kind {
            let group = if kind == "Pod" { "" } else { "apps" };
            let kind = contents.find_kind(group, kind).unwrap();
            let found = names(contents.of_kind(kind, Some(namespace)));
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
            assert_eq!(contents.counts_of_kind(kind, Some(namespace)).total(), found.len());
        }
        for (namespace, count) in by_namespace {
            assert_eq!(contents.in_namespace(namespace).count(), count);
        }
        for (uid, children) in by_owner {
            if let Some(owner) = contents.find_uid(contents.uid(uid)) {
                let found: BTreeSet<_> =
                    contents.children(owner.handle()).map(|child| child.uid().to_string()).collect();
                let expected: BTreeSet<_> = children.into_iter().map(str::to_owned).collect();
                assert_eq!(found, expected);
            }
        }
        let marks: BTreeMap<_, _> = contents.marks().collect();
        assert_eq!(marks, by_mark);
        for status in Status::ALL {
            let expected = by_status.get(&status).copied().unwrap_or(0);
            assert_eq!(contents.with_status(status).count(), expected);
            assert_eq!(contents.counts().get(status), expected);
        }
    }
}

#[test]
fn after_any_changes_every_way_of_asking_gives_the_same() {
    for seed in 0..8 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::new(IndexSettings {
            mark: Arc::new(|object, add| add(&object.text(&["metadata", "labels", "app"]))),
            ..IndexSettings::default()
        });
        let mut model = Model::default();
        let mut kept = Vec::new();
        for step in 0..1_500_u64 {
            let kind = ["Pod", "ReplicaSet", "Deployment"][random.usize(..3)];
            let namespace = format!("ns-{}", random.usize(..4));
            let name = format!("{}-{}", kind.to_lowercase(), random.usize(..40));
            let key = (kind.to_owned(), namespace.clone(), name.clone());
            if random.usize(..3) == 0 {
                let object = object(kind, &namespace, &name, 0, None);
                assert_eq!(world.remove(&object), model.0.remove(&key).is_some());
            } else {
                let number = match model.0.get(&key) {
                    Some((old, _)) if random.bool() => old["metadata"]["uid"].as_str().unwrap().to_owned(),
                    _ => uid(1_000 + step),
                };
                // Owners that are there, that are not, and that come later.
                let owner = random.bool().then(|| 1_000 + random.u64(..1_500));
                let mut object = object(kind, &namespace, &name, 0, owner);
                object["metadata"]["uid"] = json!(number);
                object["metadata"]["labels"]["app"] = json!(format!("app-{}", random.usize(..5)));
                object["metadata"]["resourceVersion"] = json!(step.to_string());
                if kind == "Pod" && random.usize(..4) == 0 {
                    object["status"]["conditions"][0]["status"] = json!("False");
                }
                let handle = world.apply(&object).handle().unwrap();
                model.0.insert(key, (object, handle));
            }
            if step % 50 == 0 {
                let snapshot = world.index.publish(world.now);
                model.check(&snapshot);
                kept.push((snapshot, Model(model.0.clone())));
            }
        }
        // What was seen does not change.
        kept.iter().for_each(|(snapshot, model)| model.check(snapshot));
        for ((kind, namespace, name), _) in std::mem::take(&mut model.0) {
            assert!(world.remove(&object(&kind, &namespace, &name, 0, None)));
        }
        world.index.publish(world.now);
        let sizes = world.index.sizes();
        let left = [sizes.objects, sizes.texts, sizes.sets, sizes.owners, sizes.verdicts, sizes.extracts];
        assert_eq!(left, [0; 6], "{sizes:?}");
        assert_eq!(world.index.contents().marks().count(), 0);
    }
}

#[test]
fn memory_follows_what_is_there_not_what_there_was() {
    let mut world = World::new(IndexSettings::default());
    for round in 0..20_000_u64 {
        let mut pod =
            object("Pod", &format!("ns-{}", round % 97), &format!("web-{round}"), round + 1, Some(round));
        pod["metadata"]["labels"]["pod"] = json!(round.to_string());
        pod["status"] = json!({"phase": "Running", "message": format!("m-{round}")});
        world.apply(&pod);
        if round % 500 == 0 {
            world.index.publish(world.now);
        }
        world.remove(&pod);
    }
    world.index.publish(world.now);
    let sizes = world.index.sizes();
    assert!(sizes.slots <= 2 && sizes.texts == 0 && sizes.extracts == 0, "{sizes:?}");
    assert_eq!(world.index.next_deadline(), None);
}
