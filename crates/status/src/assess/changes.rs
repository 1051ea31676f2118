//! What changed before something was no longer well.
//!
//! Only times, names and images are told: what stands in ConfigMaps, Secrets and environments is nobody's business here.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};

use crate::assess::Link;
use crate::assess::edges::references;
use crate::assess::event::time;
use crate::assess::evidence::{Evidence, can_own, controller};
use crate::assess::workloads::{is_replica_set, previous_and_current};

/// How long before the turn something is still told: a rollout may take its progress deadline, and a container that reads
/// a changed ConfigMap its time to restart.
const SPAN: SignedDuration = SignedDuration::from_hours(1);

/// Times are in whole seconds, and written by several clocks.
const SLACK: SignedDuration = SignedDuration::from_secs(1);

/// How many fields of a template are named.
const MOST_FIELDS: usize = 10;

/// How many of the objects that a Deployment made are looked at; Kubernetes keeps the ten newest ReplicaSets unless it is told
/// otherwise.
const MOST_SETS: usize = 1_000;

/// How far owners are followed: Pod, ReplicaSet, Deployment.
const ABOVE: usize = 3;

/// What sort of thing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// The image of a container.
    Image,
    /// Something else of the Pods that a workload makes.
    Template,
    /// A workload was made that was not there before.
    Created,
    /// What is wanted of an object, such as its replicas.
    Spec,
    /// A ConfigMap or Secret that the Pods use.
    Config,
    /// A node that was well.
    Node,
    /// A quota that is used up.
    Quota,
    /// The revision that is delivered.
    Revision,
}

impl ChangeKind {
    /// The name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeKind::Image => "image",
            ChangeKind::Template => "template",
            ChangeKind::Created => "created",
            ChangeKind::Spec => "spec",
            ChangeKind::Config => "config",
            ChangeKind::Node => "node",
            ChangeKind::Quota => "quota",
            ChangeKind::Revision => "revision",
        }
    }
}

/// Something that changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// When.
    pub when: Timestamp,
    /// What sort of thing.
    pub what: ChangeKind,
    /// Of which object.
    pub object: ObjectKey,
    /// Of an image: the container.
    pub container: Option<String>,
    /// Of a template: the names of the fields that differ, never what stands in them.
    pub fields: Vec<String>,
    /// What it was.
    pub from: Option<String>,
    /// What it is.
    pub to: Option<String>,
    /// Who wrote it, by the name of the field manager.
    pub by: Option<String>,
}

impl Change {
    /// That something of `object` changed, with nothing more known.
    pub fn new(when: Timestamp, what: ChangeKind, object: ObjectKey) -> Change {
        Change { when, what, object, container: None, fields: Vec::new(), from: None, to: None, by: None }
    }
}

/// Whether something that happened then may have to do with a turn to red.
fn is_before(when: Timestamp, turn: Timestamp) -> bool {
    !is_after(when, turn) && turn.duration_since(when) <= SPAN
}

/// Whether something happened too late to have to do with a turn to red.
fn is_after(when: Timestamp, turn: Timestamp) -> bool {
    turn.duration_since(when) < -SLACK
}

/// What changed in the objects behind one piece of evidence: each object is looked at once, however many that turned red lead
/// to it.
pub struct History<'e> {
    evidence: Evidence<'e>,
    /// What is known of each object that was asked for; nothing of one that is not there.
    known: RefCell<HashMap<ObjectKey, Option<Rc<Known>>>>,
    /// When these objects were written last, and who wrote them, by the parts of them that count.
    written: RefCell<HashMap<(ObjectKey, Part), Option<Written>>>,
}

/// When something was written, and by which field manager.
type Written = (Timestamp, Option<String>);

/// A part of an object that has to do with changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    /// What a ConfigMap or Secret holds.
    Contents,
    /// What is wanted of it.
    Spec,
}

impl Part {
    fn fields(self) -> &'static [&'static str] {
        match self {
            Part::Contents => &["f:data", "f:binaryData"],
            Part::Spec => &["f:spec"],
        }
    }
}

/// What of an object has to do with changes, whatever turned red because of it.
struct Known {
    owner: Option<ObjectKey>,
    created: Option<Timestamp>,
    is_pod: bool,
    /// The newest first, each once.
    changes: Vec<Change>,
}

impl<'e> History<'e> {
    /// Nothing is looked at yet.
    pub fn new(evidence: impl Into<Evidence<'e>>) -> History<'e> {
        History { evidence: evidence.into(), known: RefCell::default(), written: RefCell::default() }
    }

    /// Returns what changed before something turned red, the nearest first: `chain` leads from what turned at `turn` to the
    /// cause. Of each object on the way at most `most` changes are told.
    ///
    /// Nothing is said that cannot be read off the objects themselves: revisions of ReplicaSets, the times of field managers, the
    /// transitions of conditions.
    pub fn before(&self, chain: &[Arc<Link>], turn: Timestamp, most: usize) -> Vec<Change> {
        let mut objects: Vec<Rc<Known>> = chain.iter().filter_map(|link| self.known(&link.object)).collect();
        // Who asks about a Pod wants to hear of its Deployment's rollout.
        let mut above = objects.first().and_then(|first| first.owner.clone());
        for _ in 0..ABOVE {
            let Some(object) = above.as_ref().and_then(|name| self.known(name)) else { break };
            above.clone_from(&object.owner);
            objects.insert(0, object);
        }
        let installed = objects.iter().filter_map(|object| object.created).min();
        let mut found = Vec::new();
        for object in &objects {
            let later = object.changes.partition_point(|change| is_after(change.when, turn));
            let told = object.changes.iter().skip(later).take_while(|change| {
                // What a Pod uses was there before what makes the Pod, unless it was written after.
                let is_new = !object.is_pod || installed.is_none_or(|installed| change.when > installed);
                is_new && is_before(change.when, turn)
            });
            found.extend(told.take(most).cloned());
        }
        found.extend(chain.iter().filter_map(|link| node(link)));
        found.extend(chain.last().and_then(|cause| self.quota(cause, turn)));
        nearest(found, turn)
    }

    fn known(&self, name: &ObjectKey) -> Option<Rc<Known>> {
        if let Some(known) = self.known.borrow().get(name) {
            return known.clone();
        }
        let found = self.evidence.get(name.as_ref()).present();
        let known = found.map(|object| Rc::new(self.read(&object)));
        self.known.borrow_mut().insert(name.clone(), known.clone());
        known
    }

    fn read(&self, object: &Object<'_>) -> Known {
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
        Known { owner: owner(object), created: created_at(object), is_pod, changes }
    }

    /// The ConfigMaps and Secrets that a Pod uses, by when they were written.
    fn config(&self, pod: &Object<'_>, found: &mut Vec<Change>) {
        let named = references(pod).into_iter().map(|reference| reference.to);
        for name in named.filter(|to| to.group.is_empty() && matches!(&*to.kind, "ConfigMap" | "Secret")) {
            // Every namespace has this one, and nobody changes it.
            if name.name == "kube-root-ca.crt" {
                continue;
            }
            if let Some((when, by)) = self.written(&name, Part::Contents) {
                found.push(Change { by, ..Change::new(when, ChangeKind::Config, name) });
            }
        }
    }

    /// The quota that a refusal names: when it was changed last, else when it was found to be used up.
    fn quota(&self, cause: &Link, turn: Timestamp) -> Option<Change> {
        let (_, rest) = cause.message.split_once("exceeded quota: ")?;
        let (name, rest) = rest.split_once(',')?;
        let object = ObjectKey::new("", "ResourceQuota", &cause.object.namespace, name.trim());
        let to = rest.split_once("used: ").map(|(_, used)| format!("used: {}", used.trim()));
        let changed = self.written(&object, Part::Spec).filter(|(when, _)| is_before(*when, turn));
        let (when, by) = changed
            .unwrap_or_else(|| (cause.since.filter(|since| is_before(*since, turn)).unwrap_or(turn), None));
        Some(Change { to, by, ..Change::new(when, ChangeKind::Quota, object) })
    }

    /// Returns when a part of an object was written last, and who wrote it; nothing of one that is not there.
    fn written(&self, name: &ObjectKey, part: Part) -> Option<Written> {
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

/// How many of the last changes are told.
const MOST_LAST: usize = 3;

/// Returns who wrote last what is wanted of an object, or of what controls it, the newest first: at most three, and who
/// wrote its replicas is among them where managed fields tell that.
///
/// It is said of any object, well or not, and only by its managed fields. The status has writers of its own.
pub fn last_changes<'e>(object: &Object<'_>, evidence: impl Into<Evidence<'e>>) -> Vec<Change> {
    let evidence = evidence.into();
    let there = |name: &ObjectKey| evidence.get(name.as_ref()).present();
    // What controllers made is as what controls it wants it.
    let mut top = None;
    let mut above = owner(object);
    for _ in 0..ABOVE {
        let Some(found) = above.as_ref().and_then(there) else { break };
        above = owner(&found);
        top = Some(found);
    }
    let object = top.as_ref().unwrap_or(object);
    let mut found = writes(object);
    found.sort_by(|one, other| other.when.cmp(&one.when).then_with(|| one.cmp(other)));
    let scaled = found.iter().skip(MOST_LAST).find(|change| change.fields == ["replicas"]).cloned();
    found.truncate(MOST_LAST);
    if let Some((scaled, last)) = scaled.filter(|_| !is_scaled(&found)).zip(found.last_mut()) {
        *last = scaled;
    }
    found
}

fn is_scaled(changes: &[Change]) -> bool {
    changes.iter().any(|change| change.fields == ["replicas"])
}

/// Returns a change for each field manager that wrote anything of an object besides its metadata and status.
fn writes(object: &Object<'_>) -> Vec<Change> {
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::items).into_iter().flatten();
    let told = managers.filter_map(|entry| {
        if entry.get("subresource").is_some_and(|it| it.is_str("status")) {
            return None;
        }
        let fields = entry.get("fieldsV1")?;
        let parts = members(fields).into_iter().filter(|part| !matches!(&**part, "f:metadata" | "f:status"));
        let parts: Vec<String> = parts.collect();
        let when = time(entry.get("time"))?;
        let is_made = created_at(object).is_some_and(|created| when.duration_since(created) <= SLACK);
        let is_config = |part: &String| matches!(&**part, "f:data" | "f:binaryData" | "f:immutable");
        let what = match parts.as_slice() {
            [] => return None,
            _ if is_made => ChangeKind::Created,
            parts if parts.iter().all(is_config) => ChangeKind::Config,
            _ => ChangeKind::Spec,
        };
        let change = Change::new(when, what, ObjectKey::of(object));
        let change = Change { by: manager(entry), ..change };
        Some(if what == ChangeKind::Spec { only_field(change, object, fields) } else { change })
    });
    told.collect()
}

/// The fields of a spec that are told by name and value where a manager wrote nothing else of it.
const TOLD_ALONE: [&str; 3] = ["replicas", "suspend", "paused"];

/// Adds which field a manager wrote, where it wrote only one of the spec: so `kubectl scale` does.
fn only_field(change: Change, object: &Object<'_>, fields: Value<'_>) -> Change {
    let wrote = fields.get("f:spec").map(members).unwrap_or_default();
    let [only] = wrote.as_slice() else { return change };
    let Some(field) = only.strip_prefix("f:").filter(|field| TOLD_ALONE.contains(field)) else {
        return change;
    };
    let to = object.at(&["spec", field]).and_then(|value| {
        let number = value.as_i64().map(|number| number.to_string());
        number.or_else(|| value.as_bool().map(|truth| truth.to_string()))
    });
    Change { fields: vec![field.to_owned()], to, ..change }
}

fn members(value: Value<'_>) -> Vec<String> {
    value.members().into_iter().flatten().map(|(key, _)| key.into_owned()).collect()
}

fn manager(entry: Value<'_>) -> Option<String> {
    let manager = entry.get("manager").and_then(Value::as_str).filter(|manager| !manager.is_empty());
    manager.map(Cow::into_owned)
}

/// Those that may have to do with the turn, the nearest first, each once.
pub fn nearest(mut changes: Vec<Change>, turn: Timestamp) -> Vec<Change> {
    changes.retain(|change| is_before(change.when, turn));
    sort(&mut changes);
    changes
}

/// Sorts changes, the newest first, and leaves each once.
fn sort(changes: &mut Vec<Change>) {
    changes.sort_by(|one, other| other.when.cmp(&one.when).then_with(|| one.cmp(other)));
    changes.dedup();
}

/// The controller of an object, taken to be in its namespace.
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

/// What the newest ReplicaSet of a Deployment has that the one before had not.
fn rollout(deployment: &Object<'_>, evidence: Evidence<'_>, found: &mut Vec<Change>) {
    let uid = deployment.text(&["metadata", "uid"]);
    if uid.is_empty() {
        return;
    }
    let sets: Vec<Object<'_>> = evidence
        .owned(&uid, Some(&deployment.namespace()))
        .take(MOST_SETS)
        .filter(|object| is_replica_set(object) && can_own(deployment, object))
        .collect();
    let (previous, current) = previous_and_current(deployment, &sets);
    let Some(current) = current else { return };
    let Some(previous) = previous else { return created(deployment, found) };
    let Some(created) = created_at(current) else { return };
    // A ReplicaSet that is older than the one before it was taken up again: a rollback, or a template that came back.
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

/// Returns when a Deployment took up an old ReplicaSet again, and who wrote the template, where that is known: by who wrote
/// the Deployment's template, else by when the controller numbered the ReplicaSet.
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

/// Returns the newest time at which a field manager wrote what stands at a path, and the manager. The status has managers of
/// its own.
fn written_at(object: &Object<'_>, path: &[&str]) -> Option<(Timestamp, Option<String>)> {
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::items)?;
    let entries = managers.filter_map(|entry| {
        let is_of_status = entry.get("subresource").is_some_and(|it| it.is_str("status"));
        entry.get("fieldsV1")?.at(path).filter(|_| !is_of_status)?;
        Some((time(entry.get("time"))?, manager(entry)))
    });
    entries.max()
}

const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

type Fields<'a> = BTreeMap<String, Value<'a>>;

/// The containers of the Pods that a ReplicaSet makes, by name.
fn containers<'a>(set: &Object<'a>) -> Fields<'a> {
    let lists = CONTAINERS.into_iter().filter_map(|key| set.at(&["spec", "template", "spec", key])?.items());
    lists.flatten().filter_map(|it| Some((it.get("name")?.as_str()?.into_owned(), it))).collect()
}

/// The containers whose images differ, with both images; one of them is missing where the container is new or gone.
fn images(previous: &Object<'_>, current: &Object<'_>) -> Vec<(String, Option<String>, Option<String>)> {
    let (before, after) = (containers(previous), containers(current));
    let image = |containers: &Fields<'_>, name: &str| {
        Some(containers.get(name)?.get("image")?.as_str()?.into_owned())
    };
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let both = names.into_iter().map(|name| (name.clone(), image(&before, name), image(&after, name)));
    both.filter(|(_, from, to)| from != to).collect()
}

/// The names of the fields besides images that differ between the Pods that two ReplicaSets make.
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
    fields.truncate(MOST_FIELDS);
    fields
}

fn keys_that_differ(one: Option<Value<'_>>, other: Option<Value<'_>>) -> Vec<String> {
    fn members<'a>(value: Option<Value<'a>>) -> Fields<'a> {
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

/// One server writes the same in the same way.
fn is_same(one: Value<'_>, other: Value<'_>) -> bool {
    match (one.text(), other.text()) {
        (Some(one), Some(other)) => one == other,
        _ => one.kind() == other.kind() && one.as_str() == other.as_str() && one.as_i64() == other.as_i64(),
    }
}

/// The newest time at which a field manager wrote one of these parts of an object, and who it was, if it says so. The
/// status has managers of its own.
pub(super) fn written(object: &Object<'_>, parts: &[&str]) -> Option<(Timestamp, Option<String>)> {
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::items)?;
    let entries = managers.filter_map(|entry| {
        let is_of_status = entry.get("subresource").is_some_and(|it| it.is_str("status"));
        let fields = entry.get("fieldsV1")?;
        let is_meant = !is_of_status && parts.iter().any(|part| fields.get(part).is_some());
        is_meant.then_some((time(entry.get("time"))?, manager(entry)))
    });
    entries.max()
}

/// Who wrote last what is wanted of an object that was there before.
fn spec(object: &Object<'_>, found: &mut Vec<Change>) {
    let Some((when, by)) = written(object, &["f:spec"]) else { return };
    let is_made = created_at(object).is_some_and(|created| when.duration_since(created) <= SLACK);
    // What became of it in the ReplicaSets is told already, and better.
    let is_told = found.iter().any(|change| {
        change.object == ObjectKey::of(object) && change.when.duration_since(when).abs() <= SLACK * 5
    });
    // A new ReplicaSet does not say who wanted it.
    if let Some((when, by)) = written_at(object, &["f:spec", "f:template"]) {
        for change in found.iter_mut().filter(|change| {
            change.object == ObjectKey::of(object)
                && matches!(change.what, ChangeKind::Image | ChangeKind::Template)
                && change.by.is_none()
                && change.when.duration_since(when).abs() <= SLACK * 5
        }) {
            change.by.clone_from(&by);
        }
    }
    if !is_made && !is_told {
        let scaled = writes(object).into_iter().find(|change| change.when == when && change.by == by);
        let change = Change { by, ..Change::new(when, ChangeKind::Spec, ObjectKey::of(object)) };
        found.push(scaled.filter(|it| it.what == ChangeKind::Spec).unwrap_or(change));
    }
}

/// A node on the way to the cause.
fn node(link: &Link) -> Option<Change> {
    let is_node = link.object.group.is_empty() && link.object.kind == "Node";
    let change = Change::new(link.since.filter(|_| is_node)?, ChangeKind::Node, link.object.clone());
    let to = Some(link.reason.clone()).filter(|reason| !reason.is_empty());
    Some(Change { from: Some("Ready".to_owned()), to, ..change })
}
