//! Evidence: the golden cases, the rules that they do not reach, and damage.

mod damaged;
mod golden;
mod kinds;
mod pods;
mod workloads;

use jiff::Timestamp;
use serde_json::Value;
use taffrail_status::assess::{Assessment, Dump, Evidence, ObjectName, Options, assess_named, worst};
use taffrail_status::{Object, Taffrail};

/// The time of the tables' cases.
const NOW: &str = "2026-03-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Reads `group/Kind/namespace/name`.
fn name(text: &str) -> ObjectName {
    let parts: Vec<_> = text.split('/').collect();
    let &[group, kind, namespace, name] = parts.as_slice() else { panic!("{text} names no object") };
    ObjectName::new(group, kind, namespace, name)
}

fn dump(objects: &[Value]) -> Dump<'_> {
    Dump::new(objects.iter().filter_map(|object| Object::new(object.into()).ok()))
}

fn assess_all(declared: &[ObjectName], evidence: &dyn Evidence, now: Timestamp) -> Vec<Assessment> {
    let options = Options::default();
    declared.iter().map(|name| assess_named(name, evidence, &Taffrail, now, &options)).collect()
}

/// `Status of the first object < last link of the chain: message`.
fn tell(assessments: &[Assessment]) -> String {
    let speaker = worst(assessments).unwrap();
    let cause = speaker.chain.last().map(|link| format!(" < {}", link.object)).unwrap_or_default();
    format!("{}{cause}: {}", speaker.verdict.status, speaker.message)
}

/// Objects as YAML documents.
fn read(yaml: &str) -> Vec<Value> {
    yaml.split("\n---\n").map(|text| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))).collect()
}

/// Assesses the first object of `yaml` and compares `status[, cause[, part of the message]]`.
#[track_caller]
fn check(yaml: &str, expected: &str) {
    let objects = read(yaml);
    let first = ObjectName::of(&Object::new((&objects[0]).into()).unwrap());
    let told = tell(&assess_all(&[first], &dump(&objects), now()));
    let (status, rest) = expected.split_once(" < ").unwrap_or((expected, ""));
    let (cause, message) = rest.split_once(": ").unwrap_or((rest, ""));
    let (own_status, own_rest) = told.split_once(" < ").unwrap_or((told.split_once(": ").unwrap().0, ""));
    assert_eq!(own_status, status, "{told}");
    if !rest.is_empty() {
        assert_eq!(own_rest.split_once(": ").map_or(own_rest, |(cause, _)| cause), cause, "{told}");
        assert!(told.contains(message), "{told}\nlacks {message}");
    }
}
