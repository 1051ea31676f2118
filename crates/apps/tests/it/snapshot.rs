//! Knowledge of a snapshot: present, absent and unobserved objects.

use serde_json::json;
use taffrail_apps::{Answer, FreshnessState, KindCatalog, Objects, Read, ServedKind, Snapshot, Target, apps};
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::{ActiveRules, ClusterState as _, Presence, Status};

use super::dump::{NOW, apps_of, document, holding, insert};

fn config_map(value: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value},
        "metadata": {"namespace": "shop", "name": "a", "labels": {"app.kubernetes.io/instance": "shop"}},
    })
}

fn key() -> ObjectKey {
    ObjectKey::new("", "ConfigMap", "shop", "a")
}

fn value(snapshot: &Snapshot) -> (String, Projection) {
    match snapshot.get(key().as_ref()) {
        Presence::Present(observed) => {
            (observed.object.text(&["data", "value"]).into_owned(), observed.projection)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_last_copy_counts_but_metadata_does_not_replace_a_body() {
    let mut snapshot = holding("prod", &[config_map("one"), config_map("two")]);
    assert_eq!(value(&snapshot), ("two".to_owned(), Projection::Full));
    assert_eq!(snapshot.all().count(), 1);
    snapshot.insert(document(&config_map("")), Projection::Metadata).unwrap();
    assert_eq!(value(&snapshot), ("two".to_owned(), Projection::Full));
}

fn of_version(value: &str, version: &str) -> serde_json::Value {
    let mut map = config_map(value);
    map["metadata"]["resourceVersion"] = json!(version);
    map
}

/// A reader that follows metadata sees a change before the whole copy of the object, which is not followed.
#[test]
fn newer_followed_metadata_replaces_a_whole_copy() {
    let everything = Target::List { labels: None, fields: None };
    let list = read("ConfigMap", None, everything, Projection::Metadata);
    let told = |version: &str, brings_body: bool| {
        let mut snapshot = Snapshot::live("prod", NOW);
        let one = read("ConfigMap", Some("shop"), Target::Object("a".to_owned()), Projection::Full);
        snapshot.answer(&one, Answer::Objects(vec![document(&of_version("one", "90"))]));
        let metadata = document(&of_version("", version));
        snapshot.insert_followed(&list, &key(), metadata, brings_body).unwrap();
        value(&snapshot)
    };
    let old = ("one".to_owned(), Projection::Full);
    assert_eq!(told("100", false), (String::new(), Projection::Metadata), "numbers are compared as such");
    assert_eq!(told("100", true), old, "what follows it whole says what it is");
    assert_eq!(told("90", false), old);
    assert_eq!(told("9", false), old);
    assert_eq!(told("other", false), (String::new(), Projection::Metadata));
}

#[test]
fn objects_set_aside_stay_known_by_their_list() {
    let mut snapshot = Snapshot::live("prod", NOW);
    let one = read("ConfigMap", Some("shop"), Target::Object("a".to_owned()), Projection::Full);
    snapshot.answer(&one, Answer::Objects(vec![document(&config_map("one"))]));
    let whole = snapshot.size();
    for (is_listed, is_wanted) in [(true, true), (false, true), (true, false)] {
        let mut aside = snapshot.set_aside([key()], |_| is_listed);
        assert_eq!(matches!(snapshot.get(key().as_ref()), Presence::Present(_)), is_listed);
        assert!(snapshot.size() < whole);
        assert_eq!(snapshot.put_back(&mut aside, |_| is_wanted), is_wanted);
        let projection = if is_wanted { Projection::Full } else { Projection::Metadata };
        assert_eq!(value(&snapshot).1, projection);
        assert_eq!(snapshot.size() == whole, is_wanted);
    }
}

#[test]
fn objects_without_kind_or_name_are_refused() {
    let mut snapshot = Snapshot::dump("prod", NOW);
    for (object, error) in [
        (json!([]), "the item is not a Kubernetes object"),
        (json!({"metadata": {"name": "a"}}), "the item is not a Kubernetes object"),
        (json!({"kind": "Pod"}), "the item has no metadata.name, so it is not stored"),
    ] {
        assert_eq!(snapshot.insert(document(&object), Projection::Full).unwrap_err().to_string(), error);
    }
    assert_eq!(snapshot.all().count(), 0);
}

#[test]
fn the_kube_system_namespace_identifies_a_cluster() {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "42"}});
    assert_eq!(holding("prod", &[namespace]).id().map(ToString::to_string).as_deref(), Some("42"));
    assert_eq!(holding("prod", &[]).id(), None);
}

#[test]
fn missing_objects_are_absent_in_a_whole_dump_and_unobserved_in_a_partial_one() {
    let mut snapshot = holding("prod", &[]);
    assert!(matches!(snapshot.get(key().as_ref()), Presence::Absent));
    snapshot.report_unreadable("prod.yaml:17", "half a document");
    assert!(matches!(snapshot.get(key().as_ref()), Presence::Unobserved(_)));
    assert_eq!(snapshot.errors()[0].scope.to_string(), "prod.yaml:17");
}

#[test]
fn all_objects_of_a_lost_cluster_are_unobserved() {
    let snapshot = Snapshot::lost("prod", "Timeout", "no answer within 5 s");
    let Presence::Unobserved(why) = snapshot.get(key().as_ref()) else { panic!() };
    assert_eq!(why, "its cluster does not answer");
    assert_eq!(snapshot.freshness().state, FreshnessState::Lost);
    assert_eq!(apps(&[&snapshot], &ActiveRules::default(), NOW).errors.len(), 1);
}

fn read(kind: &str, namespace: Option<&str>, target: Target, projection: Projection) -> Read {
    Read {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        namespace: namespace.map(str::to_owned),
        target,
        projection,
    }
}

#[test]
fn each_answer_decides_if_a_missing_object_is_absent() {
    let list = |labels: Option<&str>| Target::List { labels: labels.map(str::to_owned), fields: None };
    let failed = || Answer::Failed { reason: "Timeout".to_owned(), message: "too slow".to_owned() };
    let one = || Target::Object("a".to_owned());
    for (namespace, target, answer, absent) in [
        (None, list(None), Answer::Objects(vec![]), true),
        (Some("shop"), list(None), Answer::Objects(vec![]), true),
        (Some("wiki"), list(None), Answer::Objects(vec![]), false),
        (None, list(Some("x")), Answer::Objects(vec![]), false),
        (None, list(None), failed(), false),
        (None, list(None), Answer::Forbidden { message: "no".to_owned() }, false),
        (None, list(None), Answer::NotFound, true),
        (Some("shop"), one(), Answer::NotFound, true),
        (Some("shop"), one(), failed(), false),
    ] {
        let mut snapshot = Snapshot::live("prod", NOW);
        let case = format!("{namespace:?} {target:?} {answer:?}");
        snapshot.answer(&read("ConfigMap", namespace, target, Projection::Full), answer);
        assert_eq!(matches!(snapshot.get(key().as_ref()), Presence::Absent), absent, "{case}");
    }
}

#[test]
fn kinds_are_absent_only_by_discovery() {
    let broken = ("metrics.example.com".to_owned(), "its server is down".to_owned());
    let mut snapshot = Snapshot::live("prod", NOW);
    snapshot.set_kinds(KindCatalog::new([], [broken]));
    assert!(matches!(
        snapshot.get(ObjectKey::new("example.com", "Thing", "shop", "a").as_ref()),
        Presence::Absent
    ));
    let down = ObjectKey::new("metrics.example.com", "Thing", "shop", "a");
    let Presence::Unobserved(why) = snapshot.get(down.as_ref()) else { panic!() };
    assert_eq!(why, "its server is down");
    assert_eq!(snapshot.errors()[0].scope.to_string(), "group metrics.example.com");
}

#[test]
fn denied_access_to_an_unserved_kind_is_not_an_error() {
    let forbidden = || Answer::Forbidden { message: "no".to_owned() };
    let all = || read("Thing", None, Target::List { labels: None, fields: None }, Projection::Full);
    let key = ObjectKey::new("", "Thing", "shop", "a");
    let mut after = Snapshot::live("prod", NOW);
    after.answer(&all(), forbidden());
    assert_eq!(after.errors().len(), 1);
    after.set_kinds(KindCatalog::default());
    let mut before = Snapshot::live("prod", NOW);
    before.set_kinds(KindCatalog::default());
    before.answer(&all(), forbidden());
    for snapshot in [after, before] {
        assert_eq!(snapshot.errors(), []);
        assert!(matches!(snapshot.get(key.as_ref()), Presence::Absent));
    }
}

#[test]
fn definitions_and_objects_show_if_a_kind_is_namespaced() {
    let mut snapshot = holding(
        "prod",
        &[
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "zones.example.com"},
                "spec": {"group": "example.com", "names": {"kind": "Zone"}, "scope": "Cluster"},
            }),
            json!({"apiVersion": "example.com/v1", "kind": "Seen", "metadata": {"namespace": "shop", "name": "a"}}),
        ],
    );
    assert_eq!(snapshot.is_namespaced("apps", "Deployment"), Some(true));
    assert_eq!(snapshot.is_namespaced("", "Node"), Some(false));
    assert_eq!(snapshot.is_namespaced("example.com", "Zone"), Some(false));
    assert_eq!(snapshot.is_namespaced("example.com", "Seen"), Some(true));
    assert_eq!(snapshot.is_namespaced("example.com", "Served"), None);
    let served = ServedKind {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Served".to_owned(),
        plural: "served".to_owned(),
        namespaced: false,
        verbs: vec![],
        has_status_subresource: false,
    };
    snapshot.set_kinds(KindCatalog::new([served], []));
    assert_eq!(snapshot.is_namespaced("example.com", "Served"), Some(false));
}

#[test]
fn metadata_suffices_only_for_kinds_without_status() {
    let labelled = |kind: &str, deletion: Option<&str>| {
        let mut object = config_map("");
        object["kind"] = json!(kind);
        if let Some(deletion) = deletion {
            object["metadata"]["deletionTimestamp"] = json!(deletion);
        }
        object
    };
    for (kind, deletion, status) in [
        ("ConfigMap", None, Status::Current),
        ("Service", None, Status::Unknown),
        ("Service", Some("2026-03-01T11:00:00Z"), Status::Terminating),
    ] {
        let mut snapshot = Snapshot::dump("prod", NOW);
        snapshot.insert(document(&labelled(kind, deletion)), Projection::Metadata).unwrap();
        let list = apps(&[&snapshot], &ActiveRules::default(), NOW);
        assert_eq!(list.apps[0].health, status, "{kind}");
    }
}

#[test]
fn one_cluster_under_two_names_is_shown_once() {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "42"}});
    let mut settings = config_map("");
    settings["metadata"]["resourceVersion"] = json!("7");
    let mut one = holding("one", &[namespace.clone(), settings.clone()]);
    let mut two = holding("two", &[namespace, settings.clone()]);
    insert(&mut one, &settings);
    two.add_server("https://two.example.com");
    let list = apps(&[&one, &two], &ActiveRules::default(), NOW);
    assert_eq!(list.apps.iter().map(|app| &*app.app.target).collect::<Vec<_>>(), ["one"]);
    // Clusters that do not say who they are are different ones.
    let (one, two) = (holding("one", &[config_map("")]), holding("two", &[config_map("")]));
    assert_eq!(apps(&[&one, &two], &ActiveRules::default(), NOW).apps.len(), 2);
}

/// Returns a claim that is bound once a Pod that uses it has a node, in a label app of its own.
fn waiting_claim() -> [serde_json::Value; 2] {
    [
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "lazy"},
            "volumeBindingMode": "WaitForFirstConsumer",
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "data", "namespace": "shop", "creationTimestamp": "2026-03-01T11:00:00Z",
                "labels": {"app.kubernetes.io/instance": "shop"},
            },
            "spec": {"storageClassName": "lazy"}, "status": {"phase": "Pending"},
        }),
    ]
}

#[test]
fn a_claim_is_not_well_in_a_dump_that_lacks_its_pods() {
    let health = |objects: &[serde_json::Value]| apps_of(&holding("dump", objects)).apps[0].health;
    let set = |replicas: i64| {
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop"},
            "spec": {"replicas": 1}, "status": {"replicas": replicas},
        })
    };
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": "shop"}});
    let [class, claim] = waiting_claim();
    // Nothing that is known could use it.
    assert_eq!(health(&[class.clone(), claim.clone()]), Status::Current);
    assert_eq!(health(&[class.clone(), claim.clone(), set(0)]), Status::Current);
    // There are Pods, and one of them may.
    assert_eq!(health(&[class.clone(), claim.clone(), set(1)]), Status::InProgress);
    assert_eq!(health(&[class, claim, set(1), pod]), Status::Current);
}

/// A server may send anything: an unexpected answer must not become an identity, or another kind.
#[test]
fn list_items_of_another_kind_are_malformed() {
    let mut snapshot = Snapshot::live("dev", NOW);
    let read = Read {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        kind: "Deployment".to_owned(),
        plural: "deployments".to_owned(),
        namespace: Some("shop".to_owned()),
        target: Target::List { labels: None, fields: None },
        projection: Projection::Full,
    };
    let item = |version: &str, kind: &str, namespace: &str, name: &str| {
        document(
            &json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": namespace, "name": name, "uid": "1"}}),
        )
    };
    let mut items = vec![
        item("apps/v1", "Deployment", "shop", "web"),
        item("v1", "Namespace", "", "kube-system"),
        item("apps/v1", "Deployment", "wiki", "web"),
        item("apps/v1", "Deployment", "shop", &"x".repeat(5_000_000)),
    ];
    items.extend((0..100).map(|_| item("v1", "Secret", "shop", "x")));
    snapshot.answer(&read, Answer::Objects(items));
    assert_eq!(snapshot.id(), None);
    assert_eq!(
        snapshot.all().map(|observed| observed.key.to_string()).collect::<Vec<_>>(),
        ["apps/Deployment/shop/web"]
    );
    assert_eq!(snapshot.errors().len(), 51);
    assert!(snapshot.errors().iter().all(|error| error.reason == "Malformed" && error.message.len() < 200));
    let read = Read { target: Target::Object("web".to_owned()), ..read };
    snapshot.answer(&read, Answer::Objects(vec![item("apps/v1", "Deployment", "shop", "other")]));
    assert_eq!(snapshot.all().count(), 1);
}

/// The API accepts names of any length for roles, and the author of one must not make others unknown.
#[test]
fn a_role_with_a_long_name_is_skipped_without_an_error() {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"namespace": "tenant", "name": "r".repeat(1_100)},
    });
    let mut snapshot = holding("prod", &[]);
    assert!(snapshot.insert(document(&role), Projection::Full).is_ok());
    assert_eq!(snapshot.all().count(), 0);
}
