//! Tests that assessments by the fields that an index keeps equal those by the whole objects.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;
use taffrail_index::{IndexEvidence, IndexSettings};
use taffrail_object::{Object, ObjectKey, ObjectKeyRef, Projection};
use taffrail_status::assess::{Assessment, Dump, Event, assess_dependent, assess_named};
use taffrail_status::{ActiveRules, ClusterState, Listing, Observed, Presence, Rules};

use crate::world::World;

struct Case {
    file: String,
    now: Timestamp,
    objects: Vec<Value>,
}

/// Returns the golden cases of the crate `taffrail-status`, and the incidents.
fn cases() -> Vec<Case> {
    let folders = ["../status/tests/golden/assess", "../taffrail/tests/cases/incidents"];
    let folders = folders.map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 120, "only {} cases", files.len());
    files.iter().map(|path| Case::read(path)).collect()
}

impl Case {
    fn read(path: &Path) -> Self {
        let content: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        Self {
            file: path.file_name().unwrap().to_string_lossy().into_owned(),
            now: content["now"].as_str().unwrap().parse().unwrap(),
            objects: content["objects"].as_array().unwrap().clone(),
        }
    }
}

/// The objects of an index as evidence, except that like a dump it knows no kind of which it has no objects.
struct LikeDump<'a> {
    index: IndexEvidence<'a>,
    dump: &'a Dump<'a>,
}

impl ClusterState for LikeDump<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        match self.index.get(key) {
            Presence::Present(object) => Presence::Present(object),
            _ => Presence::Absent,
        }
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.index.owned(uid, namespace)
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        self.index.dependents(uid, namespace)
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        self.index.of_kind(group, kind, namespace)
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        self.index.users(namespace, claim)
    }

    fn terminating_on(&self, node: &str) -> Listing<'_> {
        self.index.terminating_on(node)
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        self.index.definition(group, kind)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        self.index.in_namespace(namespace)
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        self.index.events(about)
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.dump.is_observed(group, kind, namespace)
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        self.dump.tells_absence(group, kind, namespace)
    }
}

fn read(objects: &[Value]) -> Vec<Object<'_>> {
    objects.iter().filter_map(|object| Object::new(object.into()).ok()).collect()
}

/// Assesses each object by all whole objects, and by an index of them; returns the number of objects and the
/// differences.
fn compare(label: &str, objects: &[Value], now: Timestamp, settings: IndexSettings) -> (usize, Vec<String>) {
    let whole = read(objects);
    let dump = Dump::new(whole.iter().cloned());
    let mut world = World::new(settings);
    world.now = now;
    for object in &whole {
        let tree = object.root().to_tree().unwrap();
        world.try_apply(&tree, Projection::Full).unwrap();
    }
    let snapshot = world.index.publish(now);
    let recorded = snapshot.rules();
    let rules = ActiveRules::new(&recorded);
    let mut differences = Vec::new();
    for object in whole.iter().filter(|object| object.kind() != "Event") {
        let name = ObjectKey::of(object);
        let evidence = LikeDump { index: snapshot.evidence(), dump: &dump };
        let by_dump = assess_named(&name, &dump, &ActiveRules::default(), now);
        let by_index = assess_named(&name, &evidence, &rules, now);
        // A chain is compared by all that is said of each link.
        if by_dump != by_index {
            differences.push(format!("{label}: {name}\n  {by_dump:?}\n  {by_index:?}"));
        }
        let Presence::Present(kept) = evidence.get(name.as_ref()) else {
            differences.push(format!("{label}: {name} is not in the index"));
            continue;
        };
        let one = assess_dependent(object, &dump, &ActiveRules::default(), now);
        let other = assess_dependent(&kept.object, &evidence, &rules, now);
        if one != other {
            differences.push(format!("{label}: {name} as a dependent\n  {one:?}\n  {other:?}"));
        }
    }
    (whole.len(), differences)
}

/// Asserts that assessments by an index of the case's objects equal those by the whole objects, with and without kept
/// bodies.
fn index_answers_alike(path: &Path) {
    let Case { file, now, objects } = Case::read(path);
    let (mut compared, mut wrong) = (0, Vec::new());
    for keeps in [false, true] {
        let settings =
            IndexSettings { keep: std::sync::Arc::new(move |_| keeps), ..IndexSettings::default() };
        let (count, differences) = compare(&file, &objects, now, settings);
        compared += count;
        wrong.extend(differences);
    }
    // What is not there must be missed in the same way.
    for without in 0..objects.len() {
        let mut rest = objects.clone();
        rest.remove(without);
        let label = format!("{file} without {without}");
        let (count, differences) = compare(&label, &rest, now, IndexSettings::default());
        compared += count;
        wrong.extend(differences);
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong[..wrong.len().min(6)].join("\n"));
    assert!(compared > 0, "no object was compared");
}

mod golden_assess {
    golden_assess!(super::index_answers_alike);
}

mod incidents {
    incidents!(super::index_answers_alike);
}

/// Changes a random part of `value`: puts a value of another type there, drops a member, or changes a text that decides
/// a status.
fn damage(value: &mut Value, random: &mut fastrand::Rng) {
    match value {
        Value::Object(members) => {
            let keys: Vec<_> = members.keys().cloned().collect();
            if keys.is_empty() {
                return;
            }
            let key = &keys[random.usize(..keys.len())];
            match random.usize(..8) {
                0 if key != "kind" && key != "apiVersion" && key != "metadata" && key != "name" => {
                    let others = [
                        Value::Null,
                        Value::from(3),
                        Value::from("x"),
                        Value::from(true),
                        serde_json::json!([]),
                        serde_json::json!({}),
                    ];
                    let other = others[random.usize(..others.len())].clone();
                    members.insert(key.clone(), other);
                }
                1 if key != "kind" && key != "apiVersion" && key != "metadata" && key != "name" => {
                    members.remove(key);
                }
                _ => {
                    if let Some(inner) = members.get_mut(key) {
                        damage(inner, random);
                    }
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = random.usize(..items.len());
            if random.usize(..6) == 0 {
                items.remove(at);
            } else {
                damage(&mut items[at], random);
            }
        }
        Value::String(text) => {
            let others = [
                "True",
                "False",
                "Unknown",
                "Running",
                "Pending",
                "Failed",
                "Succeeded",
                "OnDelete",
                "LoadBalancer",
            ];
            if others.contains(&text.as_str()) {
                *text = others[random.usize(..others.len())].to_owned();
            }
        }
        _ => {}
    }
}

#[test]
fn damaged_objects_are_answered_alike() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut wrong = Vec::new();
    for Case { file, now, objects } in cases() {
        for round in 0..10 {
            let mut objects = objects.clone();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(..objects.len());
                damage(&mut objects[at], &mut random);
            }
            objects.retain(|object| object["metadata"]["name"].as_str().is_some_and(|name| !name.is_empty()));
            let label = format!("{file} damaged {round}");
            wrong.extend(compare(&label, &objects, now, IndexSettings::default()).1);
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong[..wrong.len().min(4)].join("\n"));
}

/// Asserts that the status which the index shows for each object equals an assessment by all whole objects.
#[test]
fn what_is_shown_is_what_an_assessment_says() {
    for Case { file, now, objects } in cases() {
        let mut world = World::new(IndexSettings::default());
        world.now = now;
        for object in read(&objects) {
            world.try_apply(&object.root().to_tree().unwrap(), Projection::Full).unwrap();
        }
        let snapshot = world.index.publish(now);
        for object in snapshot.all() {
            let Assessment { verdict, message, since, .. } = snapshot.assess(&object.object_name(), now);
            let shown = (object.status(), object.message(), object.unwell_since());
            assert_eq!(shown, (verdict.status, &*message, since), "{file}: {}", object.object_name());
        }
    }
}

#[test]
fn rules_that_are_not_ours_are_asked_once_and_of_whole_objects() {
    struct Own;
    impl Rules for Own {
        fn judge(
            &self,
            object: &Object<'_>,
            _: &taffrail_status::ObjectContext<'_>,
            _: Timestamp,
        ) -> Result<taffrail_status::Verdict, taffrail_status::ComputeError> {
            let said = object.text(&["data", "status"]).into_owned();
            Ok(taffrail_status::Verdict::new(taffrail_status::Status::Failed, said, "own"))
        }
    }
    let mut world = World::new(IndexSettings { rules: std::sync::Arc::new(Own), ..IndexSettings::default() });
    let mut map = crate::world::object("ConfigMap", "shop", "web", 1, None);
    map["data"] = serde_json::json!({"status": "on fire"});
    world.apply(&map);
    let snapshot = world.index.publish(world.now);
    let name = ObjectKey::new("", "ConfigMap", "shop", "web");
    assert_eq!(snapshot.assess(&name, world.now).message, "on fire");
    assert_eq!(snapshot.find("", "ConfigMap", "shop", "web").unwrap().message(), "on fire");
}
