//! Finds the changes before an object failed, and the last changes of any object.
//!
//! A change contains only times, names, reasons, images, use of quotas, and the values of [`TOLD_ALONE`], never values
//! from ConfigMaps, Secrets or environments.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taffrail_object::json::{OwnedDocument, Value};
use taffrail_object::{LAST_APPLIED, Object, ObjectKey, words};

use crate::assess::CauseStep;
use crate::assess::edges::references;
use crate::assess::evidence::{Evidence, Owner, controller};
use crate::assess::workloads::{is_replica_set, previous_and_current};
use crate::event::time;

/// Maximum number of changes that [`last_changes`] returns; older ones are left out, except the last write of
/// `spec.replicas`.
const MAX_LAST: usize = 5;

/// Maximum time from a change to the failure; an earlier change does not count. A rollout may take its progress
/// deadline, and a container may restart late after a changed ConfigMap.
const MAX_DISTANCE: SignedDuration = SignedDuration::from_hours(1);

/// Tolerance when times are compared: they are whole seconds, and come from several clocks.
const SLACK: SignedDuration = SignedDuration::from_secs(1);

const MAX_FIELDS: usize = Change::MAX_FIELDS;

/// Maximum length of the path of a field in characters; longer ones are cut.
const MAX_PATH: usize = 100;

/// Maximum number of a Deployment's ReplicaSets that are examined, the first ones in the order of the evidence;
/// Kubernetes keeps ten by default.
const MAX_SETS: usize = 1_000;

/// Maximum number of owners followed upwards from an object, such as Pod, ReplicaSet, Deployment; owners above are
/// ignored.
const MAX_OWNERS: usize = 3;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// A container of a Pod template got another image, was added or was removed.
    Image,
    /// Another field of a workload's Pod template changed.
    Template,
    /// An object was created; before a failure, only a workload.
    Created,
    /// Another field of an object's spec changed, such as its replicas.
    Spec,
    /// Labels or annotations of an object changed, and nothing else of it.
    Metadata,
    /// The data of a ConfigMap or Secret was written; before a failure, only of one that a Pod uses.
    Config,
    /// A node became not ready.
    Node,
    /// A quota is used up.
    Quota,
    /// A delivery tool delivered another revision.
    Revision,
}

words! {
    ChangeKind {
        Image = "image", Template = "template", Created = "created", Spec = "spec", Metadata = "metadata",
        Config = "config", Node = "node", Quota = "quota", Revision = "revision",
    }
}

/// A change of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The time of the change; `None` if managed fields do not tell it, as after `kubectl scale`. Never `None` for a
    /// change before a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Timestamp>,
    /// The kind of the change.
    pub what: ChangeKind,
    /// The object that changed.
    pub object: ObjectKey,
    /// The name of the container if an image changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The names of the template fields that differ, or of the spec fields, labels and annotations that the field
    /// manager wrote, never their values: at most ten; empty for other kinds of changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// The value before the change; `None` if there was none or it is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value after the change; `None` if there is none or it is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The field manager that made the change; `None` if managed fields do not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Change {
    /// Maximum number of [`Change::fields`]; the others are left out.
    pub const MAX_FIELDS: usize = 10;

    /// Creates a change of `object` at `when`, without values, fields or field manager.
    pub fn new(when: Timestamp, what: ChangeKind, object: ObjectKey) -> Change {
        Change {
            when: Some(when),
            what,
            object,
            container: None,
            fields: Vec::new(),
            from: None,
            to: None,
            by: None,
        }
    }

    /// Returns true if the time of the change is known and at most five seconds before or after `when`.
    fn is_near(&self, when: Timestamp) -> bool {
        self.when.is_some_and(|own| own.duration_since(when).abs() <= SLACK * 5)
    }
}

/// Returns true if a change at `when` may have caused a failure at `turn`: at most [`MAX_DISTANCE`] before it or
/// [`SLACK`] after it.
fn is_before(when: Timestamp, turn: Timestamp) -> bool {
    !is_after(when, turn) && turn.duration_since(when) <= MAX_DISTANCE
}

/// Returns true if `when` is more than [`SLACK`] after the failure at `turn`, so the change cannot have caused it.
fn is_after(when: Timestamp, turn: Timestamp) -> bool {
    turn.duration_since(when) < -SLACK
}

/// A cache of the changes in the objects of one cluster state: each object is examined once, however many failures lead
/// to it.
pub struct History<'e> {
    evidence: Evidence<'e>,
    /// The examined objects; `None` for one that does not exist.
    known: RefCell<HashMap<ObjectKey, Option<Rc<ObjectChanges>>>>,
    /// The last write of each part of an object; `None` if the object does not exist or tells no write.
    written: RefCell<HashMap<(ObjectKey, WrittenPart), Option<LastWrite>>>,
}

/// The time of a write, and its field manager; `None` if managed fields do not name one.
type LastWrite = (Timestamp, Option<String>);

/// A part of an object whose writes count as changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum WrittenPart {
    /// The data of a ConfigMap or Secret.
    Contents,
    /// The object's `spec`.
    Spec,
}

impl WrittenPart {
    fn fields(self) -> &'static [&'static str] {
        match self {
            WrittenPart::Contents => &["f:data", "f:binaryData"],
            WrittenPart::Spec => &["f:spec"],
        }
    }
}

/// The changes of one object, independent of any failure.
struct ObjectChanges {
    owner: Option<ObjectKey>,
    created: Option<Timestamp>,
    is_pod: bool,
    /// The changes of this object, newest first, without duplicates.
    changes: Vec<Change>,
}

impl<'e> History<'e> {
    /// Creates an empty cache over the objects in `evidence`.
    pub fn new(evidence: impl Into<Evidence<'e>>) -> History<'e> {
        History { evidence: evidence.into(), known: RefCell::default(), written: RefCell::default() }
    }

    /// Returns the changes before a failure, nearest first. `chain` leads from the object that failed at `turn` to the
    /// cause. Each object on the way, and each of up to three owners above the first one, contributes at most `most`
    /// changes, a Pod those writes of its ConfigMaps and Secrets that are later than the creation of the oldest of
    /// these objects; nodes on the way that are not ready and the quota that the cause names are added.
    ///
    /// The changes are read off the objects themselves: revisions of ReplicaSets, times of field managers, transitions
    /// of conditions.
    pub fn before(&self, chain: &[Arc<CauseStep>], turn: Timestamp, most: usize) -> Vec<Change> {
        let mut objects: Vec<Rc<ObjectChanges>> =
            chain.iter().filter_map(|link| self.known(&link.object)).collect();
        // A failure of a Pod includes its Deployment's rollout.
        let mut above = objects.first().and_then(|first| first.owner.clone());
        for _ in 0..MAX_OWNERS {
            let Some(object) = above.as_ref().and_then(|name| self.known(name)) else { break };
            above.clone_from(&object.owner);
            objects.insert(0, object);
        }
        let installed = objects.iter().filter_map(|object| object.created).min();
        let mut found = Vec::new();
        for object in &objects {
            let later =
                object.changes.partition_point(|change| change.when.is_some_and(|when| is_after(when, turn)));
            let told = object.changes.iter().skip(later).take_while(|change| {
                // An object that a Pod uses existed before the workload, unless it was written after.
                let is_new =
                    !object.is_pod || installed.is_none_or(|installed| change.when > Some(installed));
                is_new && change.when.is_some_and(|when| is_before(when, turn))
            });
            found.extend(told.take(most).cloned());
        }
        found.extend(chain.iter().filter_map(|link| node(link)));
        found.extend(chain.last().and_then(|cause| self.quota(cause, turn)));
        nearest(found, turn)
    }

    fn known(&self, name: &ObjectKey) -> Option<Rc<ObjectChanges>> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let found = self.evidence.get(name.as_ref()).present();
        let known = found.map(|object| Rc::new(self.read(&object)));
        self.known.borrow_mut().insert(name.clone(), known.clone());
        known
    }

    fn read(&self, object: &Object<'_>) -> ObjectChanges {
        let mut changes = Vec::new();
        let is_pod = (object.group(), object.kind()) == ("", "Pod");
        match (object.group(), object.kind()) {
            ("apps" | "extensions", "Deployment") => {
                rollout(object, self.evidence, &mut changes);
                spec(object, &mut changes);
            }
            ("apps" | "extensions", "StatefulSet" | "DaemonSet") | ("batch", "CronJob") => {
                created(object, &mut changes);
                spec(object, &mut changes);
            }
            ("batch", "Job") if owner(object).is_none() => created(object, &mut changes),
            ("", "Pod") => self.config(object, &mut changes),
            _ => {}
        }
        sort(&mut changes);
        ObjectChanges { owner: owner(object), created: created_at(object), is_pod, changes }
    }

    /// Adds to `found` a change for each ConfigMap and Secret that a Pod uses, except `kube-root-ca.crt`, at the time
    /// of its last write; none where that is not known.
    fn config(&self, pod: &Object<'_>, found: &mut Vec<Change>) {
        let named = references(pod).into_iter().map(|reference| reference.to);
        for name in named.filter(|to| to.group.is_empty() && matches!(&*to.kind, "ConfigMap" | "Secret")) {
            // Every namespace has this one, and it never changes.
            if name.name == "kube-root-ca.crt" {
                continue;
            }
            if let Some((when, by)) = self.written(&name, WrittenPart::Contents) {
                found.push(Change { by, ..Change::new(when, ChangeKind::Config, name) });
            }
        }
    }

    /// Returns the change of the quota that the cause's message names: at its last write if that may have caused the
    /// failure at `turn`, else at `cause.since` if that may, else at `turn`. `None` if the message names no quota.
    fn quota(&self, cause: &CauseStep, turn: Timestamp) -> Option<Change> {
        let (_, rest) = cause.message.split_once("exceeded quota: ")?;
        let (name, rest) = rest.split_once(',')?;
        let object = ObjectKey::new("", "ResourceQuota", &cause.object.namespace, name.trim());
        let to = rest.split_once("used: ").map(|(_, used)| format!("used: {}", used.trim()));
        let changed = self.written(&object, WrittenPart::Spec).filter(|(when, _)| is_before(*when, turn));
        let (when, by) = changed
            .unwrap_or_else(|| (cause.since.filter(|since| is_before(*since, turn)).unwrap_or(turn), None));
        Some(Change { to, by, ..Change::new(when, ChangeKind::Quota, object) })
    }

    /// Returns the time and field manager of the last write of a part of an object; `None` if the object does not exist
    /// or its managed fields tell no write. Caches each result.
    fn written(&self, name: &ObjectKey, part: WrittenPart) -> Option<LastWrite> {
        let place = (name.clone(), part);
        if let Some(written) = self.written.borrow().get(&place) {
            return written.clone();
        }
        let found = self.evidence.get(name.as_ref()).present();
        let written = found.and_then(|object| written(&object, part.fields()));
        self.written.borrow_mut().insert(place, written.clone());
        written
    }
}

fn members(value: Value<'_>) -> Vec<String> {
    value.members().into_iter().flatten().map(|(key, _)| key.into_owned()).collect()
}

fn manager(entry: Value<'_>) -> Option<String> {
    let manager = entry.get("manager").and_then(Value::as_str).filter(|manager| !manager.is_empty());
    manager.map(Cow::into_owned)
}

/// Returns the changes that may have caused the failure at `turn`: those at most an hour before it or a second after
/// it, newest first, without duplicates.
pub fn nearest(mut changes: Vec<Change>, turn: Timestamp) -> Vec<Change> {
    changes.retain(|change| change.when.is_some_and(|when| is_before(when, turn)));
    sort(&mut changes);
    changes
}

/// Sorts changes, newest first, and removes duplicates.
fn sort(changes: &mut Vec<Change>) {
    changes.sort_by(|one, other| other.when.cmp(&one.when).then_with(|| one.cmp(other)));
    changes.dedup();
}

/// Returns the key of an object's controller, which is assumed to be in the object's namespace unless it is a Node;
/// `None` if it has none.
fn owner(object: &Object<'_>) -> Option<ObjectKey> {
    let owner = controller(object)?;
    let text = |key| owner.get(key).and_then(Value::as_str);
    let version = text("apiVersion")?;
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let (kind, name) = (text("kind")?, text("name")?);
    // A static Pod belongs to its node.
    let namespace = if kind == "Node" { "".into() } else { object.namespace() };
    Some(ObjectKey::new(group, kind, namespace, name))
}

fn created_at(object: &Object<'_>) -> Option<Timestamp> {
    time(object.at(&["metadata", "creationTimestamp"]))
}

fn created(object: &Object<'_>, found: &mut Vec<Change>) {
    let change = |when| Change::new(when, ChangeKind::Created, ObjectKey::of(object));
    found.extend(created_at(object).map(change));
}

/// Adds to `found` the differences between the Pod templates of a Deployment's current ReplicaSet and of the one
/// before, or the Deployment's creation if there is only one ReplicaSet.
fn rollout(deployment: &Object<'_>, evidence: Evidence<'_>, found: &mut Vec<Change>) {
    let uid = deployment.text(&["metadata", "uid"]);
    if uid.is_empty() {
        return;
    }
    let owner = Owner::of(deployment);
    let sets: Vec<Object<'_>> = evidence
        .owned(&uid, Some(&deployment.namespace()))
        .take(MAX_SETS)
        .filter(|object| is_replica_set(object) && owner.can_own(object))
        .collect();
    let (previous, current) = previous_and_current(deployment, &sets);
    let Some(current) = current else { return };
    let Some(previous) = previous else { return created(deployment, found) };
    let Some(created) = created_at(current) else { return };
    // A ReplicaSet older than the one before it was reused: a rollback, or a template that came back.
    let is_reused = created_at(previous).is_some_and(|before| before > created);
    let (when, by) = match is_reused {
        false => (created, None),
        true => match taken_up(deployment, previous, current) {
            Some(taken_up) => taken_up,
            None => return,
        },
    };
    let object = ObjectKey::of(deployment);
    for (container, from, to) in images(previous, current) {
        let change = Change::new(when, ChangeKind::Image, object.clone());
        found.push(Change { container: Some(container), from, to, by: by.clone(), ..change });
    }
    let fields = differing(previous, current);
    if !fields.is_empty() {
        found.push(Change { fields, by, ..Change::new(when, ChangeKind::Template, object) });
    }
}

/// Returns the time at which a Deployment went back to an old ReplicaSet (`current`), and the field manager if known:
/// from the write of the Deployment's template, else from the controller's update of the ReplicaSet's revision. `None`
/// if both are older than the ReplicaSet `previous`, or unknown.
fn taken_up(
    deployment: &Object<'_>,
    previous: &Object<'_>,
    current: &Object<'_>,
) -> Option<(Timestamp, Option<String>)> {
    let is_later = |(when, _): &(Timestamp, Option<String>)| created_at(previous).is_none_or(|it| *when > it);
    let template: &[&str] = &["f:spec", "f:template"];
    if let Some(written) = written_at(deployment, template).filter(is_later) {
        return Some(written);
    }
    let revision: &[&str] = &["f:metadata", "f:annotations", "f:deployment.kubernetes.io/revision"];
    let numbered = written_at(current, revision).map(|(when, _)| (when, None));
    numbered.filter(is_later)
}

/// Returns the time and field manager of the newest write at or below `path`, except writes of the status; `None` if
/// managed fields tell none.
fn written_at(object: &Object<'_>, path: &[&str]) -> Option<(Timestamp, Option<String>)> {
    let entries = object.managed_fields().filter_map(|entry| {
        let is_of_status = entry.get("subresource").is_some_and(|it| it.is_str("status"));
        entry.get("fieldsV1")?.at(path).filter(|_| !is_of_status)?;
        Some((time(entry.get("time"))?, manager(entry)))
    });
    entries.max()
}

const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

type ValuesByName<'a> = BTreeMap<String, Value<'a>>;

/// Returns the containers of a ReplicaSet's Pod template by container name.
fn containers<'a>(set: &Object<'a>) -> ValuesByName<'a> {
    let lists = CONTAINERS.into_iter().filter_map(|key| set.at(&["spec", "template", "spec", key])?.items());
    lists.flatten().filter_map(|it| Some((it.get("name")?.as_str()?.into_owned(), it))).collect()
}

/// Returns the containers whose images differ: name, earlier image (`None` if new), new image (`None` if removed).
fn images(previous: &Object<'_>, current: &Object<'_>) -> Vec<(String, Option<String>, Option<String>)> {
    let (before, after) = (containers(previous), containers(current));
    let image = |containers: &ValuesByName<'_>, name: &str| {
        Some(containers.get(name)?.get("image")?.as_str()?.into_owned())
    };
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let both = names.into_iter().map(|name| (name.clone(), image(&before, name), image(&after, name)));
    both.filter(|(_, from, to)| from != to).collect()
}

/// Returns the names of at most [`MAX_FIELDS`] fields, labels and annotations that differ between the Pod templates of
/// two ReplicaSets, such as `args of container app`; without images, and containers that only one of them has.
fn differing(previous: &Object<'_>, current: &Object<'_>) -> Vec<String> {
    let mut fields = Vec::new();
    let before = containers(previous);
    for (name, container) in containers(current) {
        let Some(old) = before.get(&name) else { continue };
        let keys = keys_that_differ(Some(*old), Some(container)).into_iter();
        fields.extend(keys.filter(|key| key != "image").map(|key| format!("{key} of container {name}")));
    }
    let pods = [previous, current].map(|set| set.at(&["spec", "template", "spec"]));
    let own = keys_that_differ(pods[0], pods[1]);
    fields.extend(own.into_iter().filter(|key| !CONTAINERS.contains(&&**key)));
    for (key, called) in [("annotations", "annotation"), ("labels", "label")] {
        let pods = [previous, current].map(|set| set.at(&["spec", "template", "metadata", key]));
        let differ = keys_that_differ(pods[0], pods[1]).into_iter();
        fields.extend(differ.filter(|key| key != "pod-template-hash").map(|key| format!("{called} {key}")));
    }
    fields.truncate(MAX_FIELDS);
    fields
}

fn keys_that_differ(one: Option<Value<'_>>, other: Option<Value<'_>>) -> Vec<String> {
    fn members<'a>(value: Option<Value<'a>>) -> ValuesByName<'a> {
        let members = value.and_then(Value::members).into_iter().flatten();
        members.map(|(key, value)| (key.into_owned(), value)).collect()
    }
    let (one, other) = (members(one), members(other));
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differ = |key: &&String| match (one.get(*key), other.get(*key)) {
        (Some(one), Some(other)) => !is_same(*one, *other),
        _ => true,
    };
    keys.into_iter().filter(differ).cloned().collect()
}

/// Returns true if two values of objects of one server are equal. Compares their JSON texts, which the server writes in
/// the same way for equal values; values without a text by their kind, string and integer.
fn is_same(one: Value<'_>, other: Value<'_>) -> bool {
    match (one.text(), other.text()) {
        (Some(one), Some(other)) => one == other,
        _ => one.kind() == other.kind() && one.as_str() == other.as_str() && one.as_i64() == other.as_i64(),
    }
}

/// Returns the time and field manager of the newest write of one of `parts` (such as `f:spec`), except of the status;
/// `None` if managed fields tell none.
pub(super) fn written(object: &Object<'_>, parts: &[&str]) -> Option<(Timestamp, Option<String>)> {
    let entries = object.managed_fields().filter_map(|entry| {
        let is_of_status = entry.get("subresource").is_some_and(|it| it.is_str("status"));
        let fields = entry.get("fieldsV1")?;
        let is_meant = !is_of_status && parts.iter().any(|part| fields.get(part).is_some());
        is_meant.then_some((time(entry.get("time"))?, manager(entry)))
    });
    entries.max()
}

/// Adds to `found` the last write of an object's spec, unless that write created the object or is in `found` already.
/// Sets the field manager of changes of the Pod template in `found` that lack one, if the template was last written
/// within 5 s of them.
fn spec(object: &Object<'_>, found: &mut Vec<Change>) {
    let Some((when, by)) = written(object, &["f:spec"]) else { return };
    let is_made = created_at(object).is_some_and(|created| when.duration_since(created) <= SLACK);
    // The changes seen in the ReplicaSets are more precise.
    let is_told = found.iter().any(|change| change.object == ObjectKey::of(object) && change.is_near(when));
    // A new ReplicaSet does not name the writer of the template.
    if let Some((when, by)) = written_at(object, &["f:spec", "f:template"]) {
        for change in found.iter_mut().filter(|change| {
            change.object == ObjectKey::of(object)
                && matches!(change.what, ChangeKind::Image | ChangeKind::Template)
                && change.by.is_none()
                && change.is_near(when)
        }) {
            change.by.clone_from(&by);
        }
    }
    if !is_made && !is_told {
        let scaled = writes(object).into_iter().find(|change| change.when == Some(when) && change.by == by);
        let change = Change { by, ..Change::new(when, ChangeKind::Spec, ObjectKey::of(object)) };
        found.push(scaled.filter(|it| it.what == ChangeKind::Spec).unwrap_or(change));
    }
}

/// Returns the change of a node in the cause chain that became not ready; `None` if the step is not a node, or does not
/// tell since when.
fn node(link: &CauseStep) -> Option<Change> {
    let is_node = link.object.group.is_empty() && link.object.kind == "Node";
    let change = Change::new(link.since.filter(|_| is_node)?, ChangeKind::Node, link.object.clone());
    let to = Some(link.reason.clone()).filter(|reason| !reason.is_empty());
    Some(Change { from: Some("Ready".to_owned()), to, ..change })
}

/// Returns the last change of an object, or of its top controller (at most three above it), by each field manager, at
/// most five: those without a time, which may be the newest, then the newest. Changes of `spec.replicas` alone count
/// separately, and one of them is always kept.
///
/// Only managed fields are read, so the object may be well or not. Changes of the status do not count.
pub fn last_changes<'e>(object: &Object<'_>, evidence: impl Into<Evidence<'e>>) -> Vec<Change> {
    let evidence = evidence.into();
    let there = |name: &ObjectKey| evidence.get(name.as_ref()).present();
    // Dependents have the spec that their controller wants.
    let mut top = None;
    let mut above = owner(object);
    for _ in 0..MAX_OWNERS {
        let Some(found) = above.as_ref().and_then(there) else { break };
        above = owner(&found);
        top = Some(found);
    }
    let object = top.as_ref().unwrap_or(object);
    let mut found = writes(object);
    // A change without a time may be the newest.
    let place = |change: &Change| (change.when.is_some(), std::cmp::Reverse(change.when));
    found.sort_by(|one, other| place(one).cmp(&place(other)).then_with(|| one.cmp(other)));
    // A manager that applied and updated is told once, but each one that scaled by itself.
    let mut managers = HashSet::new();
    found.retain(|change| managers.insert((change.by.clone(), is_scale(change))));
    let scaled = found.iter().skip(MAX_LAST).find(|change| is_scale(change)).cloned();
    found.truncate(MAX_LAST);
    if let Some((scaled, last)) = scaled.filter(|_| !found.iter().any(is_scale)).zip(found.last_mut()) {
        *last = scaled;
    }
    found
}

fn is_scale(change: &Change) -> bool {
    change.fields == ["replicas"]
}

/// Returns a change for each entry of managed fields, without those that have only a status, or only metadata other
/// than labels and annotations, or only metadata from when another manager created the object.
fn writes(object: &Object<'_>) -> Vec<Change> {
    let first = object.managed_fields().filter_map(|entry| time(entry.get("time"))).min();
    let told = object.managed_fields().filter_map(|entry| {
        if entry.get("subresource").is_some_and(|it| it.is_str("status")) {
            return None;
        }
        let fields = entry.get("fieldsV1")?;
        let all = members(fields);
        let parts: Vec<&str> = all
            .iter()
            .map(String::as_str)
            .filter(|part| !matches!(*part, "f:metadata" | "f:status"))
            .collect();
        // The API server leaves out the time of a scale.
        let when = time(entry.get("time"));
        let is_made = created_at(object).zip(when);
        let is_made = is_made.is_some_and(|(created, when)| {
            when.duration_since(created) <= SLACK && first.is_none_or(|first| when <= first)
        });
        // A controller that adds annotations at once has not created the object.
        if is_made && parts.is_empty() && object.managed_fields().count() > 1 {
            return None;
        }
        let is_config = |part: &&str| matches!(*part, "f:data" | "f:binaryData" | "f:immutable");
        let what = match parts.as_slice() {
            // Before Kubernetes 1.22 the writer of the status has no subresource.
            [] if all.iter().any(|part| part == "f:status") => return None,
            [] if !is_made => ChangeKind::Metadata,
            _ if is_made => ChangeKind::Created,
            parts if parts.iter().all(is_config) => ChangeKind::Config,
            _ => ChangeKind::Spec,
        };
        let change = Change::new(Timestamp::UNIX_EPOCH, what, ObjectKey::of(object));
        let change = Change { when, by: manager(entry), ..change };
        match what {
            ChangeKind::Spec => Some(only_field(change, object, fields)),
            ChangeKind::Metadata => {
                let fields = labels_and_annotations(fields);
                (!fields.is_empty()).then_some(Change { fields, ..change })
            }
            _ => Some(change),
        }
    });
    told.collect()
}

/// Returns the first [`MAX_FIELDS`] labels and annotations among the fields of a manager, without kubectl's last
/// applied object: `label team`, `annotation note`.
fn labels_and_annotations(fields: Value<'_>) -> Vec<String> {
    let of = |(key, called): (&str, &'static str)| {
        let names = fields.at(&["f:metadata", key]).map(members).unwrap_or_default().into_iter();
        names.filter_map(move |name| {
            let name = name.strip_prefix("f:").filter(|name| *name != LAST_APPLIED)?;
            Some(format!("{called} {name}"))
        })
    };
    [("f:labels", "label"), ("f:annotations", "annotation")]
        .into_iter()
        .flat_map(of)
        .take(MAX_FIELDS)
        .collect()
}

/// The spec fields that a change shows by name and value if its manager wrote no other spec field.
const TOLD_ALONE: [&str; 3] = ["replicas", "suspend", "paused"];

/// Adds to a change what its manager wrote in the spec. If the only spec field among `fields` (the manager's) is the
/// image of a container, as after `kubectl set image`, it becomes a change of that image; if it is one of
/// [`TOLD_ALONE`], as after `kubectl scale`, that field with its value is added; otherwise the paths of the fields.
fn only_field(change: Change, object: &Object<'_>, fields: Value<'_>) -> Change {
    let wrote = fields.get("f:spec").map(members).unwrap_or_default();
    let [only] = wrote.as_slice() else { return Change { fields: spec_fields(fields), ..change } };
    if let Some((container, image)) = only_image(object, fields) {
        return Change { what: ChangeKind::Image, container: Some(container), to: Some(image), ..change };
    }
    let Some(field) = only.strip_prefix("f:").filter(|field| TOLD_ALONE.contains(field)) else {
        return Change { fields: spec_fields(fields), ..change };
    };
    let to = object.at(&["spec", field]).and_then(|value| {
        let number = value.as_i64().map(|number| number.to_string());
        number.or_else(|| value.as_bool().map(|truth| truth.to_string()))
    });
    Change { fields: vec![field.to_owned()], to, ..change }
}

/// Returns the paths of the first [`MAX_FIELDS`] spec fields among `fields`: `strategy.type`,
/// `template.spec.containers`. A path goes down as long as there is only one field, and ends at a list.
fn spec_fields(fields: Value<'_>) -> Vec<String> {
    let spec = fields.get("f:spec").and_then(Value::members).into_iter().flatten();
    let paths = spec.filter_map(|(key, mut inside)| {
        let mut path = key.strip_prefix("f:")?.to_owned();
        while let Some((key, below)) = alone(inside)
            && let Some(name) = key.strip_prefix("f:")
            && path.len() < MAX_PATH
        {
            path.push('.');
            path.push_str(name);
            inside = below;
        }
        Some(path.chars().take(MAX_PATH).collect())
    });
    paths.take(MAX_FIELDS).collect()
}

/// Returns the name and the present image of a container, if its image is the only spec field among `fields`; else
/// `None`.
fn only_image(object: &Object<'_>, fields: Value<'_>) -> Option<(String, String)> {
    let mut inside = fields.get("f:spec")?;
    for part in ["f:template", "f:spec"] {
        inside = alone(inside).filter(|(key, _)| key == part)?.1;
    }
    let (list, containers) = alone(inside)?;
    let (key, container) = alone(containers)?;
    alone(container).filter(|(field, _)| field == "f:image")?;
    let key = OwnedDocument::parse(key.strip_prefix("k:")?.as_bytes().to_vec()).ok()?;
    let name = key.root().get("name")?.as_str()?.into_owned();
    let containers = object.at(&["spec", "template", "spec", list.strip_prefix("f:")?])?.items()?;
    let image =
        containers.filter(|it| it.get("name").is_some_and(|own| own.is_str(&name))).last()?.get("image")?;
    Some((name, image.as_str()?.into_owned()))
}

/// Returns the only member of a set of fields besides `.`; `None` if it has none or several.
fn alone(fields: Value<'_>) -> Option<(String, Value<'_>)> {
    let mut members = fields.members()?.filter(|(key, _)| key != ".");
    let (key, value) = members.next()?;
    members.next().is_none().then(|| (key.into_owned(), value))
}
