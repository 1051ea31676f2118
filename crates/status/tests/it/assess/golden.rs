//! Tests of the cases in `tests/golden/assess`: the objects of a small cluster, and the expected result.

use std::fs;
use std::path::Path;

use serde_json::Value;
use taffrail_object::{Object, ObjectKeyRef};
use taffrail_status::assess::{Dump, Event};
use taffrail_status::rollup::worst;
use taffrail_status::{ClusterState, Listing, Observed, Presence, Status};

use super::{assess_all, dump, name};

struct Case {
    file: String,
    content: Value,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/assess");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 60, "only {} cases", files.len());
    files.iter().map(|path| Case::read(path)).collect()
}

impl Case {
    fn read(path: &Path) -> Self {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        let content = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        Self { file, content }
    }

    fn objects(&self) -> &[Value] {
        self.content["objects"].as_array().unwrap()
    }

    /// Assesses the declared objects of the case with `evidence`, and lists the differences from the expected result.
    fn differences(&self, evidence: &dyn ClusterState) -> Vec<String> {
        let now = self.content["now"].as_str().unwrap().parse().unwrap();
        let declared = self.content["declared"].as_array().unwrap();
        let declared: Vec<_> = declared.iter().map(|text| name(text.as_str().unwrap())).collect();
        let assessments = assess_all(&declared, evidence, now);
        let speaker = worst(&assessments).unwrap();
        let status = speaker.verdict.status;
        let own = [
            ("health", Some(status.to_string())),
            ("worst", (status != Status::Current).then(|| speaker.object.to_string())),
            ("cause", speaker.chain.last().map(|link| link.object.to_string())),
        ];
        let expected = &self.content["expect"];
        let mut differences = Vec::new();
        for (field, found) in own {
            let wanted = expected[field].as_str();
            // An absent cause is not compared; an absent worst says that there is none.
            if (field != "cause" || wanted.is_some()) && found.as_deref() != wanted {
                differences.push(format!("{field}: {found:?} instead of {wanted:?}; {}", speaker.message));
            }
        }
        if let Some(part) = expected["message"].as_str()
            && !speaker.message.contains(part)
        {
            differences.push(format!("message: {:?} lacks {part:?}", speaker.message));
        }
        differences
    }
}

/// Asserts that the assessment of a golden case has the expected result.
fn is_told_right(path: &Path) {
    let case = Case::read(path);
    let wrong = case.differences(&dump(case.objects()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

mod told {
    golden_assess!(super::is_told_right);
}

/// A cluster state that lists its objects in reverse order.
struct Reversed<'a>(Dump<'a>);

fn reversed(listing: Listing<'_>) -> Listing<'_> {
    let mut objects: Vec<_> = listing.collect();
    objects.reverse();
    Box::new(objects.into_iter())
}

impl ClusterState for Reversed<'_> {
    fn get(&self, key: ObjectKeyRef<'_>) -> Presence<'_> {
        self.0.get(key)
    }

    fn owned(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        reversed(self.0.owned(uid, namespace))
    }

    fn dependents(&self, uid: &str, namespace: Option<&str>) -> Listing<'_> {
        reversed(self.0.dependents(uid, namespace))
    }

    fn tells_absence(&self, group: &str, kind: &str, namespace: &str) -> bool {
        self.0.tells_absence(group, kind, namespace)
    }

    fn of_kind(&self, group: &str, kind: &str, namespace: Option<&str>) -> Listing<'_> {
        reversed(self.0.of_kind(group, kind, namespace))
    }

    fn users(&self, namespace: &str, claim: &str) -> Listing<'_> {
        reversed(self.0.users(namespace, claim))
    }

    fn definition(&self, group: &str, kind: &str) -> Option<Observed<'_>> {
        self.0.definition(group, kind)
    }

    fn in_namespace(&self, namespace: &str) -> Listing<'_> {
        reversed(self.0.in_namespace(namespace))
    }

    fn events(&self, about: &Object<'_>) -> Vec<Event<'_>> {
        let mut events = self.0.events(about);
        events.reverse();
        events
    }

    fn is_observed(&self, group: &str, kind: &str, namespace: Option<&str>) -> bool {
        self.0.is_observed(group, kind, namespace)
    }
}

#[test]
fn the_order_of_objects_does_not_matter() {
    for case in cases() {
        let mut objects = case.objects().to_vec();
        objects.reverse();
        let declared: Vec<_> = case.content["declared"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| name(text.as_str().unwrap()))
            .collect();
        let now = case.content["now"].as_str().unwrap().parse().unwrap();
        let one = assess_all(&declared, &dump(case.objects()), now);
        assert_eq!(one, assess_all(&declared, &Reversed(dump(&objects)), now), "{}", case.file);
    }
}

/// Asserts that no broken case is Current if its Pods, ReplicaSets, Nodes and StorageClasses were not observed.
/// CronJobs are left out: without their Jobs they report nothing.
#[test]
fn unobserved_objects_are_never_green() {
    const HIDDEN: [(&str, &str); 4] =
        [("", "Pod"), ("apps", "ReplicaSet"), ("", "Node"), ("storage.k8s.io", "StorageClass")];
    let is_hidden = |object: &Value| HIDDEN.iter().any(|(_, kind)| object["kind"] == *kind);
    let judged_by_dependents = |case: &Case| case.file.contains("cronjob");
    for case in cases().iter().filter(|case| case.file.starts_with("broken-") && !judged_by_dependents(case))
    {
        let rest: Vec<_> = case.objects().iter().filter(|object| !is_hidden(object)).cloned().collect();
        let mut evidence = dump(&rest);
        HIDDEN.iter().for_each(|(group, kind)| evidence.set_unobserved(group, kind));
        let differences = case.differences(&evidence);
        assert!(!differences.iter().any(|it| it.contains("Current")), "{}: {differences:?}", case.file);
    }
}
