//! Tests of assessments by evidence: the golden cases, the rules that they do not reach, and damaged objects.

mod adverse;
mod bounds;
mod current;
mod damaged;
mod golden;
mod kinds;
mod pods;
mod questions;
mod strangers;
mod workloads;

use jiff::Timestamp;
use serde_json::Value;
use taffrail_object::{Object, ObjectKey};
use taffrail_status::assess::{Assessment, Dump, assess_named};
use taffrail_status::rollup::worst;
use taffrail_status::{ActiveRules, ClusterState};

/// The time at which the tests assess objects.
const NOW: &str = "2026-03-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Parses the key `group/Kind/namespace/name`.
fn name(text: &str) -> ObjectKey {
    let parts: Vec<_> = text.split('/').collect();
    let &[group, kind, namespace, name] = parts.as_slice() else { panic!("{text} names no object") };
    ObjectKey::new(group, kind, namespace, name)
}

fn dump(objects: &[Value]) -> Dump<'_> {
    Dump::new(objects.iter().filter_map(|object| Object::new(object.into()).ok()))
}

fn assess_all(declared: &[ObjectKey], evidence: &dyn ClusterState, now: Timestamp) -> Vec<Assessment> {
    declared.iter().map(|name| assess_named(name, evidence, &ActiveRules::default(), now)).collect()
}

/// Formats the worst assessment as `status < last object of the chain: message`, without ` < …` if the chain is empty.
fn tell(assessments: &[Assessment]) -> String {
    let speaker = worst(assessments).unwrap();
    let cause = speaker.chain.last().map(|link| format!(" < {}", link.object)).unwrap_or_default();
    format!("{}{cause}: {}", speaker.verdict.status, speaker.message)
}

/// Parses YAML documents to objects.
fn read(yaml: &str) -> Vec<Value> {
    yaml.split("\n---\n")
        .filter(|text| !text.trim().is_empty())
        .map(|text| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}")))
        .collect()
}

/// Assesses the first object of `yaml` with all of them as evidence; formats the result as [`tell`] does.
#[track_caller]
fn told(yaml: &str) -> String {
    let objects = read(yaml);
    let first = ObjectKey::of(&Object::new((&objects[0]).into()).unwrap());
    tell(&assess_all(&[first], &dump(&objects), now()))
}

/// Assesses the first object of `yaml`, and asserts the `expected` result: `status`, `status < cause` or `status <
/// cause: part of the message`.
#[track_caller]
fn check(yaml: &str, expected: &str) {
    let told = told(yaml);
    let (status, rest) = expected.split_once(" < ").unwrap_or((expected, ""));
    let (cause, message) = rest.split_once(": ").unwrap_or((rest, ""));
    let (own_status, own_rest) = told.split_once(" < ").unwrap_or((told.split_once(": ").unwrap().0, ""));
    assert_eq!(own_status, status, "{told}");
    if !rest.is_empty() {
        assert_eq!(own_rest.split_once(": ").map_or(own_rest, |(cause, _)| cause), cause, "{told}");
        assert!(told.contains(message), "{told}\nlacks {message}");
    }
}

/// A Deployment that is rolling out its second revision: one of two replicas is updated.
const ROLLING: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: u-web, generation: 2, creationTimestamp: "2026-01-01T00:00:00Z", annotations: {deployment.kubernetes.io/revision: "2"}}
spec: {replicas: 2, progressDeadlineSeconds: 600, template: {metadata: {labels: {app: web}}}}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 2, conditions: [
  {type: Available, status: "True"}, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-2, namespace: shop, uid: u-web-2, generation: 1, creationTimestamp: "2026-03-01T11:50:00Z", annotations: {deployment.kubernetes.io/revision: "2"},
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u-web, controller: true}]}
spec: {replicas: 1}
status: {observedGeneration: 1, replicas: 1, fullyLabeledReplicas: 1}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-1, namespace: shop, uid: u-web-1, generation: 1, creationTimestamp: "2026-01-01T00:00:00Z", annotations: {deployment.kubernetes.io/revision: "1"},
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u-web, controller: true}]}
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2}
"#;

/// Returns the YAML of a Pod of `owner` (`Kind/name`) that was created at 11:50; `rest` are further members of it.
fn pod_of(owner: &str, name: &str, rest: &str) -> String {
    let (kind, owner) = owner.split_once('/').unwrap();
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, uid: u-{name}, creationTimestamp: "2026-03-01T11:50:00Z",
  ownerReferences: [{{kind: {kind}, name: {owner}, uid: u-{owner}, controller: true}}]}}
{rest}
"#
    )
}

/// Returns the YAML of a Pod without owner that was created at 11:50; `rest` are further members of it.
fn pod(name: &str, rest: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, uid: u-{name}, creationTimestamp: "2026-03-01T11:50:00Z"}}
{rest}
"#
    )
}

/// Returns the YAML of an event of type `kind` about the object `about` (`Kind/name`) in the namespace `shop`, which
/// happened `count` times, the last time at `last`.
fn event(about: &str, kind: &str, reason: &str, count: u32, last: &str, message: &str) -> String {
    let (about_kind, about) = about.split_once('/').unwrap();
    format!(
        r#"
apiVersion: v1
kind: Event
metadata: {{name: {about}.{reason}.{count}, namespace: shop}}
involvedObject: {{kind: {about_kind}, namespace: shop, name: {about}}}
type: {kind}
reason: {reason}
message: '{message}'
count: {count}
lastTimestamp: "2026-03-01T{last}Z"
"#
    )
}

fn all(parts: &[&str]) -> String {
    parts.join("\n---\n")
}
