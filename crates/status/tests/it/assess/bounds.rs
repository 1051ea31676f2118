//! Tests of the limits on the cost of assessments, counted in lookups.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_object::{Object, ObjectKeyRef};
use taffrail_status::assess::{Assessment, Costs, Dump, Event, Evidence, Options, Patience, assess};
use taffrail_status::{ActiveRules, ClusterState, Listing, MAX_MESSAGE, Observed, Presence, Status};

use super::{dump, now};

/// A cluster state that counts the objects that are looked up in it.
struct Counting<'a> {
    dump: Dump<'a>,
    count: Cell<usize>,
}

impl Counting<'_> {
    fn counted<'e>(&'e self, listing: Listing<'e>) -> Listing<'e> {
        Box::new(listing.inspect(|_| self.count.set(self.count.get() + 1)))
    }
}

impl ClusterState for Counting<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        self.count.set(self.count.get() + 1);
        self.dump.get(key)
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.counted(self.dump.owned(uid, namespace))
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.counted(self.dump.dependents(uid, namespace))
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        self.dump.tells_absence(group, kind, namespace)
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        self.counted(self.dump.of_kind(group, kind, namespace))
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        self.counted(self.dump.users(namespace, claim))
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        self.dump.definition(group, kind)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        self.counted(self.dump.in_namespace(namespace))
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        self.dump.events(about)
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.dump.is_observed(group, kind, namespace)
    }
}

/// Assesses the first of `objects`; returns the number of objects that were looked up for that, and the assessment.
fn cost(objects: &[Value]) -> (usize, taffrail_status::assess::Assessment) {
    let evidence = Counting { dump: dump(objects), count: Cell::new(0) };
    let first = Object::new((&objects[0]).into()).unwrap();
    let told = assess(&first, &evidence, &ActiveRules::default(), now());
    (evidence.count.get(), told)
}

/// Returns `count` objects in the namespace `shop` that are not well, each of which names all of them.
fn mutual(count: usize) -> Vec<Value> {
    let references: Vec<_> = (0..count)
        .map(|at| json!({"apiVersion": "example.com/v1", "kind": "Knot", "name": format!("k{at}")}))
        .collect();
    let object = |at: usize| {
        json!({"apiVersion": "example.com/v1", "kind": "Knot",
            "metadata": {"name": format!("k{at}"), "namespace": "shop", "uid": format!("u{at}")},
            "spec": {"resourceRefs": references},
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": "waits"}]}})
    };
    (0..count).map(object).collect()
}

#[test]
fn mutual_references_cost_less_than_a_square_per_object() {
    let (few, _) = cost(&mutual(100));
    let (many, told) = cost(&mutual(800));
    // A lookup in the namespace and one in the cluster, for what it is and for whether it is there.
    assert!(many <= 8_000, "{few} lookups of 100, {many} of 800");
    let facts = &told.chain[0].facts;
    assert!(facts.iter().any(|fact| fact.contains("the rest were left out")), "{facts:?}");
}

#[test]
fn composition_is_followed_to_its_end() {
    let mut objects = mutual(400);
    for object in &mut objects[1..] {
        object["spec"] = json!({});
    }
    objects[399]["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    let (_, told) = cost(&objects);
    assert_eq!(told.chain.last().unwrap().object.name, "k399");
    assert_eq!(told.chain[0].facts, Vec::<String>::new());
}

#[test]
fn shared_claims_cost_less_than_a_square_per_pod() {
    let claims: Vec<_> = (0..60)
        .map(|at| json!({"name": format!("v{at}"), "persistentVolumeClaim": {"claimName": format!("c{at}")}}))
        .collect();
    let pod = |at: usize| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{at}"), "namespace": "shop", "uid": format!("u{at}"), "creationTimestamp": "2026-03-01T11:00:00Z"},
            "spec": {"nodeName": format!("n{at}"), "volumes": claims}, "status": {"phase": "Pending"}})
    };
    let event = |at: usize| {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("e{at}"), "namespace": "shop"},
            "involvedObject": {"kind": "Pod", "namespace": "shop", "name": format!("p{at}")}, "type": "Warning",
            "reason": "FailedAttachVolume", "message": "Multi-Attach error", "count": 9, "lastTimestamp": "2026-03-01T11:59:00Z"})
    };
    let objects: Vec<_> = (0..200).map(pod).chain((0..200).map(event)).collect();
    let (count, _) = cost(&objects);
    assert!(count <= 100_000, "{count} lookups");
}

#[test]
fn messages_are_cut_on_input() {
    let long = "ä".repeat(100_000);
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop"},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": long, "message": long}]}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w", "namespace": "shop", "creationTimestamp": "2026-03-01T11:00:00Z"},
        "status": {"phase": "Running", "message": long, "containerStatuses": [
            {"name": long, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": long}},
             "lastState": {"terminated": {"exitCode": 1, "message": long}}}]}});
    let failed = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w", "namespace": "shop"},
        "status": {"phase": "Failed", "reason": long, "message": long}});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "shop"}, "status": {"phase": "Pending"}});
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "shop"},
        "involvedObject": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "c"},
        "type": "Warning", "reason": long, "message": long, "lastTimestamp": "2026-03-01T11:59:00Z"});
    for objects in [vec![widget], vec![pod], vec![failed], vec![claim, event]] {
        let (_, told) = cost(&objects);
        let conditions = told.verdict.conditions.iter().flat_map(|it| [&*it.reason, &*it.message]);
        let links = told.chain.iter().flat_map(|link| {
            [&link.reason, &link.message].into_iter().chain(&link.facts).map(String::as_str)
        });
        let texts: Vec<_> =
            [&*told.message, &*told.verdict.message].into_iter().chain(conditions).chain(links).collect();
        for text in &texts {
            assert!(text.len() <= MAX_MESSAGE, "{} bytes: {:.40}", text.len(), text);
        }
        assert!(texts.iter().any(|text| text.contains("more bytes")), "{texts:?}");
    }
}

/// Returns `count` objects as [`mutual`] does, but in this namespace.
fn knots_in(namespace: &str, count: usize) -> Vec<Value> {
    let mut knots = mutual(count);
    for knot in &mut knots {
        knot["metadata"]["namespace"] = json!(namespace);
        knot["metadata"]["uid"] =
            json!(format!("{namespace}-{}", knot["metadata"]["name"].as_str().unwrap()));
    }
    knots
}

/// Returns a custom resource that is not ready, and that no other object belongs to.
fn widget(namespace: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": namespace},
        "status": {"conditions": [{"type": "Ready", "status": "False", "message": "waits"}]}})
}

/// Assesses all objects with common costs; returns the number of objects that were looked up, and the assessments.
fn in_one_look(objects: &[Value], rules: &ActiveRules<'_>) -> (usize, Vec<Assessment>) {
    let evidence = Counting { dump: dump(objects), count: Cell::new(0) };
    let costs = Costs::default();
    let assess = |object: &Value| {
        assess(&Object::new(object.into()).unwrap(), Evidence::from(&evidence).at_cost(&costs), rules, now())
    };
    let told = objects.iter().map(assess).collect();
    (evidence.count.get(), told)
}

#[test]
fn excess_of_a_namespace_does_not_affect_others() {
    let tenant = knots_in("tenant", 150);
    let objects: Vec<_> = tenant.into_iter().chain(knots_in("shop", 20)).chain([widget("tenant")]).collect();
    let (lookups, told) = in_one_look(&objects, &ActiveRules::default());
    // Without a bound each of them costs some thousands.
    assert!(lookups < 300_000, "{lookups} lookups");
    let unjudged = told.iter().filter(|it| it.verdict.status == Status::Unknown).count();
    assert!((100..150).contains(&unjudged), "{unjudged} are Unknown");
    let last = &told[149];
    assert_eq!((last.verdict.status, &*last.verdict.rule), (Status::Unknown, "unjudged"));
    let why = "not judged: assessing the objects of namespace tenant takes more than";
    assert!(last.message.starts_with(why), "{}", last.message);
    assert_eq!(last.chain[0].reason, "NotJudged");
    assert!(told[150..170].iter().all(|it| it.verdict.status == Status::InProgress));
    // What costs little is judged even there.
    assert_eq!(told[170].verdict.status, Status::InProgress);
}

/// Returns options with a time limit of `milliseconds`, by a clock that moves on by one millisecond each time it is
/// read.
fn patient(milliseconds: u64) -> Options {
    let time = AtomicU64::new(0);
    let clock = move || Duration::from_millis(time.fetch_add(1, Ordering::Relaxed));
    let patience = Patience::new(Duration::from_millis(milliseconds), "--timeout 5s", clock);
    Options { patience: Some(patience), ..Options::default() }
}

#[test]
fn judging_ends_at_the_time_limit() {
    let well =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "late"}});
    let objects: Vec<_> = (0..40).flat_map(|at| knots_in(&format!("n{at}"), 30)).chain([well]).collect();
    let (_, told) =
        in_one_look(&objects, &ActiveRules { options: &patient(1_000), ..ActiveRules::default() });
    assert_eq!(told[0].verdict.status, Status::InProgress);
    let late = told.last().unwrap();
    assert_eq!((late.verdict.status, &*late.message), (Status::Unknown, "not judged within --timeout 5s"));
    // One that is under way is stopped, too.
    let (lookups, told) =
        in_one_look(&mutual(200), &ActiveRules { options: &patient(20), ..ActiveRules::default() });
    assert!(told[0].message.contains("--timeout 5s"), "{}", told[0].message);
    assert!(lookups < 2_000 && told.iter().all(|it| it.verdict.status == Status::Unknown), "{lookups}");
}

#[test]
fn greedy_namespace_leaves_half_the_time_to_others() {
    let objects: Vec<_> = knots_in("tenant", 100).into_iter().chain(knots_in("shop", 10)).collect();
    let (_, told) =
        in_one_look(&objects, &ActiveRules { options: &patient(10_000), ..ActiveRules::default() });
    let last = &told[99];
    assert_eq!(last.verdict.status, Status::Unknown);
    assert_eq!(
        last.message,
        "not judged: assessing the objects of namespace tenant takes more than their share of --timeout 5s"
    );
    assert!(told[100..].iter().all(|it| it.verdict.status == Status::InProgress));
}
