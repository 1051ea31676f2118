//! Names of one cluster: the UID of `kube-system` alone proves nothing, because a copy has it too.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_api::filter::Filter;
use taffrail_apps::{Objects, Renewals, Sameness, Snapshot, apps, members};
use taffrail_object::json::OwnedDocument;
use taffrail_status::ActiveRules;

use super::dump::{NOW, apps_of, document, holding};

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "42", "resourceVersion": "1"}})
}

fn settings(name: &str, version: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value},
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": version,
            "labels": {"app.kubernetes.io/instance": name}},
    })
}

fn cluster(name: &str, server: &str, objects: &[Value]) -> Snapshot {
    let mut snapshot = holding(name, &[&[namespace()], objects].concat());
    snapshot.add_server(server);
    snapshot
}

/// Returns the rows of `get clusters`: name, aliases, identity and twin.
fn clusters(all: &[&Snapshot]) -> Vec<Value> {
    let all: Vec<&dyn Objects> = all.iter().map(|snapshot| *snapshot as &dyn Objects).collect();
    let list = apps(&all, &ActiveRules::default(), NOW);
    let rows = serde_json::to_value(taffrail_api::ClusterList::new(&all, &list)).unwrap();
    let row = |row: &Value| json!([row["name"], row["aliases"], row["id"], row["twinOf"]]);
    rows["items"].as_array().unwrap().iter().map(row).collect()
}

const ONE: &str = "https://one.example.com";
const TWO: &str = "https://two.example.com";

fn one_cluster() -> Vec<Value> {
    vec![json!(["a", ["b"], "42", null])]
}

fn two_clusters() -> Vec<Value> {
    vec![json!(["a", null, "42", null]), json!(["b", null, "42@https://two.example.com", "a"])]
}

#[test]
fn a_name_of_the_same_address_is_an_alias() {
    let (one, two) = (cluster("a", ONE, &[]), cluster("b", "https://ONE.example.com:443/", &[]));
    assert_eq!(clusters(&[&one, &two]), one_cluster());
}

#[test]
fn a_cluster_with_two_names_has_the_labels_of_both() {
    let labels = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let (mut one, mut two) = (cluster("a", ONE, &[settings("x", "1", "")]), cluster("b", ONE, &[]));
    one.set_labels(labels(&[("env", "prod")]));
    two.set_labels(labels(&[("env", "test"), ("region", "eu")]));
    let all = [&one as &dyn Objects, &two];
    let found: Vec<_> = members(&all).into_iter().map(|member| member.labels).collect();
    assert_eq!(found, [labels(&[("env", "prod"), ("region", "eu")])]);
    for (selector, apps_found) in [("region=eu", 1), ("env=prod", 1), ("env=test", 0), ("!region", 0)] {
        let filter = Filter { cluster_labels: Some(selector.parse().unwrap()), ..Filter::default() };
        let mut list = apps(&all, &ActiveRules::default(), NOW);
        filter.apps(&mut list, &all);
        assert_eq!(list.apps.len(), apps_found, "{selector}");
    }
}

#[test]
fn a_copy_at_another_address_is_a_cluster_of_its_own() {
    let one = cluster("a", ONE, &[settings("x", "10", "old"), settings("y", "12", "here")]);
    for there in [
        // Nothing but the Namespace is common.
        vec![settings("x", "11", "old")],
        // One version has two contents.
        vec![settings("x", "10", "old"), settings("y", "12", "there")],
        // One version is of two objects.
        vec![settings("x", "10", "old"), settings("z", "12", "here")],
    ] {
        let two = cluster("b", TWO, &there);
        assert_eq!(clusters(&[&one, &two]), two_clusters(), "{there:?}");
        let list = apps(&[&one as &dyn Objects, &two], &ActiveRules::default(), NOW);
        let rows = |name: &str| list.apps.iter().filter(|app| app.app.target == name).count();
        assert_eq!((rows("a"), rows("b")), (2, there.len()));
        assert_eq!(list.errors, []);
    }
}

#[test]
fn objects_at_one_version_in_both_make_an_alias() {
    let one = cluster("a", ONE, &[settings("x", "10", "old"), settings("y", "12", "here")]);
    // One of them was written between the two readings.
    let mut managed = settings("x", "10", "old");
    managed["metadata"]["managedFields"] = json!([{"manager": "kubectl"}]);
    let two = cluster("b", TWO, &[managed, settings("y", "13", "new")]);
    assert_eq!(clusters(&[&one, &two]), one_cluster());
    let list = apps(&[&one as &dyn Objects, &two], &ActiveRules::default(), NOW);
    assert!(list.apps.iter().all(|app| app.app.target == "a"));
}

#[test]
fn a_few_known_objects_do_not_make_a_cluster_an_alias() {
    let hers = [settings("x", "10", "old"), settings("y", "12", "here"), settings("z", "14", "here")];
    let known = cluster("a", ONE, &[settings("x", "10", "old")]);
    // Names are no secret.
    let mut forged = settings("y", "20", "forged");
    forged["metadata"]["uid"] = json!("another");
    let guessed = cluster("a", ONE, &[settings("x", "10", "old"), forged]);
    let whole = cluster("b", TWO, &hers);
    for one in [&known, &guessed] {
        assert_eq!(clusters(&[one, &whole]), two_clusters());
    }
    // What holds less than the one that is shown hides nothing.
    let (whole, part) = (cluster("a", ONE, &hers), cluster("b", TWO, &hers[..1]));
    assert_eq!(clusters(&[&whole, &part]), one_cluster());
}

#[test]
fn new_objects_of_one_namespace_split_no_cluster() {
    let of = |namespace: &str, name: &str, version: &str| {
        let mut object = settings(name, version, "old");
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["uid"] = json!(format!("{namespace}/{name}"));
        object
    };
    let places = ["docs", "shop", "web"];
    let before: Vec<Value> = places.iter().map(|place| of(place, "x", place)).collect();
    let new = (0..60).map(|at| of("aaa", &format!("n{at}"), &format!("{}", 100 + at)));
    let after: Vec<Value> = before.iter().cloned().chain(new).collect();
    let (one, two) = (cluster("a", ONE, &before), cluster("b", TWO, &after));
    assert_eq!(clusters(&[&one, &two]), one_cluster());
    // Most namespaces say that it is another one.
    let others = ["one", "two", "three", "four"].map(|place| of(place, "y", &format!("9{place}")));
    let other = cluster("b", TWO, &[&after[..], &others].concat());
    assert_eq!(clusters(&[&one, &other]), two_clusters());
}

#[test]
fn lease_comparison_overrides_object_comparison() {
    let one = cluster("a", ONE, &[settings("x", "10", "old")]);
    let mut two = cluster("b", TWO, &[settings("x", "10", "old")]);
    two.set_same_as("a", false);
    assert_eq!(clusters(&[&one, &two]), two_clusters());
    let mut two = cluster("b", TWO, &[settings("y", "11", "new")]);
    two.set_same_as("a", true);
    assert_eq!(clusters(&[&one, &two]), one_cluster());
}

/// The address of an alias is followed; that of a copy leads to the copy.
#[test]
fn an_app_targets_the_twin_whose_address_it_names() {
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"namespace": "argocd", "name": "x"},
        "spec": {"destination": {"server": TWO}},
    });
    let hub = holding("hub", &[application]);
    let one = cluster("a", ONE, &[settings("x", "10", "old")]);
    for (version, target) in [("10", "a"), ("11", "b")] {
        let two = cluster("b", TWO, &[settings("x", version, "old")]);
        let list = apps(&[&hub as &dyn Objects, &one, &two], &ActiveRules::default(), NOW);
        let row = list.apps.iter().find(|app| app.app.home == "hub").unwrap();
        assert_eq!(row.app.target, target);
    }
}

#[test]
fn lease_versions_that_go_back_prove_two_clusters() {
    let lease = |name: &str, uid: &str, version: u64| {
        document(&json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "kube-system", "name": name, "uid": uid, "resourceVersion": version.to_string()}}))
    };
    let of = |version: u64| vec![lease("scheduler", "1", version), lease("node", "2", 5)];
    // Read by turns, a second after one another.
    let compare = |readings: &[Vec<OwnedDocument>]| {
        let mut clusters = [Renewals::default(), Renewals::default()];
        for (at, leases) in readings.iter().enumerate() {
            let asked = Duration::from_secs(at as u64);
            clusters[at % 2].read(asked, asked + Duration::from_millis(10), leases);
        }
        let [one, other] = clusters;
        assert_eq!(one.compare(&other), other.compare(&one));
        one.compare(&other)
    };
    let read = |versions: &[u64]| compare(&versions.iter().map(|version| of(*version)).collect::<Vec<_>>());
    assert_eq!(read(&[10, 11, 12, 12, 12]), Sameness::One);
    assert_eq!(read(&[10, 10, 12, 12, 13]), Sameness::One);
    // The last may have said any larger number.
    assert_eq!(read(&[10, 11, 12, 12]), Sameness::Unproven);
    assert_eq!(read(&[10, 11, 12, 9_000_000_000_000]), Sameness::Unproven);
    assert_eq!(read(&[10, 11, 12, 9_000_000_000_000, 13]), Sameness::Two);
    // Nothing moved, so a copy that rests would look the same.
    assert_eq!(read(&[10, 10, 10, 10]), Sameness::Unproven);
    // It did not move in the other one yet.
    assert_eq!(read(&[10, 11, 12]), Sameness::Unproven);
    for versions in [[10, 9, 12, 12], [10, 13, 12, 12], [10, 10_000, 12, 12], [10, 10, 12, 11]] {
        assert_eq!(read(&versions), Sameness::Two, "{versions:?}");
    }
    // One that knows nothing of the other says less than all, then more than all.
    assert_eq!(read(&[1, 500, 9_000_000_000_000, 510]), Sameness::Two);
    assert_eq!(read(&[500, 1]), Sameness::Unproven);
    assert_eq!(read(&[500, 1, 510]), Sameness::Two);
    // What is there before and after is there between, as the same.
    let of_another_uid = vec![lease("scheduler", "3", 11), lease("node", "2", 5)];
    let without_the_node = vec![lease("scheduler", "1", 11)];
    for other in [of_another_uid, without_the_node, vec![lease("x", "4", 7)], vec![]] {
        assert_eq!(compare(&[of(10), other.clone()]), Sameness::Unproven);
        assert_eq!(compare(&[of(10), other, of(12)]), Sameness::Two);
    }
    // What was made or deleted meanwhile says nothing.
    let with_more = [of(12), vec![lease("new", "9", 12)]].concat();
    let after = [with_more.clone(), with_more.clone(), with_more];
    assert_eq!(compare(&[&[of(10), of(11)][..], &after].concat()), Sameness::One);
    assert_eq!(compare(&[vec![], vec![], vec![], vec![]]), Sameness::Unproven);
}

#[test]
fn overlapping_lease_readings_prove_nothing() {
    let lease = |version: u64| {
        document(
            &json!({"metadata": {"name": "scheduler", "uid": "1", "resourceVersion": version.to_string()}}),
        )
    };
    let second = Duration::from_secs;
    let mut one = Renewals::default();
    one.read(second(0), second(1), &[lease(10)]);
    one.read(second(2), second(3), &[lease(10)]);
    assert!(!one.are_still(), "too few");
    one.read(second(4), second(5), &[lease(12)]);
    assert!(!one.are_still());
    // It was held back for so long that it may be of any time.
    let mut held = Renewals::default();
    held.read(second(0), second(5), &[lease(1)]);
    held.read(second(5), second(6), &[lease(11)]);
    assert_eq!(one.compare(&held), Sameness::Unproven);
    let mut still = Renewals::default();
    (0..3).for_each(|at| still.read(second(at), second(at), &[lease(10)]));
    assert!(still.are_still());
}

/// A server that answers for a live cluster can invent its objects.
#[test]
fn objects_of_live_clusters_do_not_make_an_alias() {
    let live = |name: &str, server: &str| {
        let mut snapshot = Snapshot::live(name, NOW);
        snapshot.add_server(server);
        for object in [namespace(), settings("x", "10", "old")] {
            super::dump::insert(&mut snapshot, &object);
        }
        snapshot
    };
    let (one, two) = (live("a", ONE), live("b", TWO));
    assert_eq!(clusters(&[&one, &two]), two_clusters());
    let same = live("b", "https://ONE.example.com:443/");
    assert_eq!(clusters(&[&one, &same]), one_cluster());
    let mut proved = live("b", TWO);
    proved.set_same_as("a", true);
    assert_eq!(clusters(&[&one, &proved]), one_cluster());
}

#[test]
fn clusters_without_an_identity_are_not_aliases() {
    let (one, two) = (holding("a", &[]), holding("b", &[]));
    assert_eq!(clusters(&[&one, &two]).len(), 2);
    assert_eq!(apps_of(&one).apps, []);
}
