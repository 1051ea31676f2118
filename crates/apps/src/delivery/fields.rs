//! The fields in which an object differs from its declaration, as far as the object itself records them.
//!
//! Two records show them: the annotation with the last applied configuration, and the field managers that wrote after
//! the last sync. Neither contains the desired revision. Only paths are shown: values may be confidential.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use taffrail_object::json::{Kind, OwnedDocument, Value};
use taffrail_object::{LAST_APPLIED, Object, ObjectKey, Projection};
use taffrail_status::Observed;

use super::{argo, short, text, time};
use crate::app::App;
use crate::objects::Objects;
use crate::sync::{DifferingFields, ObjectSync, ObjectSyncState};

/// The maximum number of OutOfSync objects of one app in which differing fields are searched; those after them are
/// marked `incomplete`.
const MAX_OBJECTS: usize = 20;

/// The maximum number of objects in which differing fields are searched, over all apps that one namespace of a cluster
/// declares; further ones are marked `incomplete`. Many apps may list one object with long records.
const MAX_OBJECTS_OF_NAMESPACE: usize = 500;

/// The maximum number of values that are read of one record of an object: its last applied configuration, or its field
/// managers (for changes by hand, of each field manager). With more, the search in that record stops.
pub(super) const MAX_STEPS: usize = 100_000;
/// The maximum number of values that are compared for all apps that one namespace declares; with more, the search stops
/// and the remaining objects are marked `incomplete`.
pub(crate) const MAX_STEPS_OF_NAMESPACE: usize = 2_000_000;

/// The maximum number of differing fields that are named for an object or for one of its field managers, the others are
/// only counted; and the maximum number of field managers, the others are left out.
pub(super) const MAX_FIELDS: usize = 5;

/// The maximum length of a field's path in bytes; fields below a longer path are not compared one by one.
const MAX_PATH: usize = 200;

/// The maximum number of nested levels of an object that are compared one by one, which bounds the recursion; fields at
/// deeper levels are not named.
pub(super) const MAX_DEPTH: usize = 32;

/// Annotations that controllers and commands write, and that are never declared.
const COMPUTED: [&str; 3] =
    [LAST_APPLIED, "deployment.kubernetes.io/revision", "kubectl.kubernetes.io/restartedAt"];

/// Returns the objects of each app that are not synced, each OutOfSync one with the fields in which it differs from its
/// last applied configuration, or, if that shows none, those that were written after the app's last sync. Objects that
/// were not compared in full, because of a limit, are marked `incomplete`; those of a cluster that was not queried get
/// no fields.
///
/// While the desired revision of an app is not the applied one, the last applied configuration of an object is not what
/// is desired now; then only fields that were written after the last sync are returned.
pub fn differing_fields<'l>(
    apps: impl Iterator<Item = &'l App>,
    clusters: &[&dyn Objects],
) -> Vec<Vec<ObjectSync>> {
    let mut search = FieldSearch::default();
    apps.map(|app| search.of_app(app, clusters)).collect()
}

/// The records of an object from which differing fields are found: its last applied configuration, or the field
/// managers that wrote after a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ObjectRecord {
    Applied,
    Since(Timestamp),
}

/// The differing fields that were found in a record of an object.
#[derive(Debug, Clone, Default)]
struct FoundDifferences {
    differs: Vec<DifferingFields>,
    is_cut: bool,
}

/// The numbers of objects and of values that may still be compared for the apps of one namespace.
struct Share {
    objects: usize,
    steps: usize,
}

/// A search for the differing fields of several apps, in which each record of an object is read once.
#[derive(Default)]
struct FieldSearch<'l> {
    /// The share of each namespace that declares apps, by home cluster and namespace.
    shares: HashMap<(&'l str, &'l str), Share>,
    /// The fields that were found in each record, by the name of the cluster, the key of the object and the record.
    known: HashMap<(&'l str, &'l ObjectKey, ObjectRecord), FoundDifferences>,
}

impl<'l> FieldSearch<'l> {
    fn of_app(&mut self, app: &'l App, clusters: &[&dyn Objects]) -> Vec<ObjectSync> {
        let of_name = |name: &str| clusters.iter().copied().find(|cluster| cluster.name() == name);
        let mut unsynced = app.unsynced.clone();
        let target = of_name(&app.app.target).filter(|_| app.in_reach);
        let declaring = app.declaring.as_ref().zip(of_name(&app.app.home));
        let declaring = declaring.and_then(|(key, home)| home.get(key.as_ref()).present());
        let Some((target, declaring)) = target.zip(declaring) else { return unsynced };
        let synced = argo::failed_at(&declaring.object).map(ObjectRecord::Since);
        let is_applied = app.sync.desired.is_some() && app.sync.desired == app.sync.applied;
        let records = || is_applied.then_some(ObjectRecord::Applied).into_iter().chain(synced);
        let share = self
            .shares
            .entry((&app.app.home, &app.app.namespace))
            .or_insert(Share { objects: MAX_OBJECTS_OF_NAMESPACE, steps: MAX_STEPS_OF_NAMESPACE });
        let all = unsynced.iter_mut().zip(&app.unsynced);
        let differing = all.filter(|(own, _)| own.state == ObjectSyncState::OutOfSync);
        for (number, (own, ObjectSync { key, .. })) in differing.enumerate() {
            if number >= MAX_OBJECTS || share.objects == 0 {
                own.incomplete = records().next().is_some();
                continue;
            }
            share.objects -= 1;
            let Some(observed) = target.get(key.as_ref()).present() else { continue };
            for record in records() {
                let place = (&*app.app.target, key, record);
                let found = match self.known.get(&place) {
                    Some(found) => found.clone(),
                    None => {
                        let (found, is_repeatable) = search(&observed, record, share);
                        if is_repeatable {
                            self.known.insert(place, found.clone());
                        }
                        found
                    }
                };
                own.incomplete |= found.is_cut;
                own.differs = found.differs;
                if !own.differs.is_empty() {
                    break;
                }
            }
        }
        unsynced
    }
}

/// Returns the differing fields that a record of an object shows, and true if an app with another share would find the
/// same.
fn search(observed: &Observed<'_>, record: ObjectRecord, share: &mut Share) -> (FoundDifferences, bool) {
    let granted = share.steps.min(MAX_STEPS);
    let mut steps = CompareSteps { left: granted, is_cut: granted == 0 };
    let differs = match record {
        _ if granted == 0 => Vec::new(),
        ObjectRecord::Applied => since_applied(observed, &mut steps).into_iter().collect(),
        ObjectRecord::Since(synced) => since_synced(&observed.object, synced, &mut steps),
    };
    share.steps = share.steps.saturating_sub(granted - steps.left);
    (FoundDifferences { differs, is_cut: steps.is_cut }, granted == MAX_STEPS || !steps.is_cut)
}

/// The number of values of one object that may still be compared, and true if some were not compared.
pub(super) struct CompareSteps {
    pub(super) left: usize,
    /// True if not all values were compared, because no steps were left, or because parts that are nested too deeply
    /// differ.
    pub(super) is_cut: bool,
}

impl CompareSteps {
    /// Uses up a step for each of `values`, and returns them. If there are more values than steps, returns `None`, sets
    /// `is_cut` and leaves no steps.
    fn take<T>(&mut self, values: impl Iterator<Item = T>) -> Option<Vec<T>> {
        let all: Vec<T> = values.take(self.left + 1).collect();
        let left = self.left.checked_sub(all.len());
        self.is_cut |= left.is_none();
        self.left = left.unwrap_or_default();
        left.map(|_| all)
    }

    /// Uses up a step for each member of two objects, and returns those of `declared` in their order, each key once,
    /// and those of `live` by their keys; `None` if there are more members than steps.
    fn members<'a>(
        &mut self,
        declared: Value<'a>,
        live: Value<'a>,
    ) -> Option<(Vec<Member<'a>>, Members<'a>)> {
        let declared = self.take(declared.members()?)?;
        let live = self.take(live.members()?)?;
        // Of several members with one key the last counts.
        let last: HashMap<_, _> =
            declared.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
        let declared = declared.into_iter().enumerate();
        let declared = declared.filter(|(at, (key, _))| last.get(key) == Some(at)).map(|(_, member)| member);
        Some((declared.collect(), live.into_iter().collect()))
    }
}

type Member<'a> = (Cow<'a, str>, Value<'a>);
type Members<'a> = HashMap<Cow<'a, str>, Value<'a>>;

/// The paths of the first [`MAX_FIELDS`] differing fields, and the number of the others.
#[derive(Default)]
pub(super) struct FieldPaths {
    fields: Vec<String>,
    more: usize,
    /// True to leave out the labels and annotations of the object itself.
    without_metadata: bool,
}

impl FieldPaths {
    /// Creates an empty list to which no labels and annotations of the object itself are added.
    pub(super) fn without_metadata() -> FieldPaths {
        FieldPaths { without_metadata: true, ..FieldPaths::default() }
    }

    fn add(&mut self, path: &str) {
        let path = short(path.to_owned());
        if self.fields.contains(&path) {
            return;
        }
        match self.fields.len() < MAX_FIELDS {
            true => self.fields.push(path),
            false => self.more += 1,
        }
    }

    pub(super) fn by(self, by: Option<String>) -> Option<DifferingFields> {
        let FieldPaths { fields, more, .. } = self;
        (!fields.is_empty()).then_some(DifferingFields { fields, more, by })
    }
}

/// Returns the fields whose values differ from the last applied configuration of an object; `None` if there are none,
/// or if the object does not record that configuration, is a Secret, or was read as metadata only.
fn since_applied(observed: &Observed<'_>, steps: &mut CompareSteps) -> Option<DifferingFields> {
    let (key, object) = (&observed.key, &observed.object);
    if observed.projection != Projection::Full || (key.group, key.kind) == ("", "Secret") {
        return None;
    }
    let applied = object.at(&["metadata", "annotations", LAST_APPLIED])?.as_str()?;
    let applied = OwnedDocument::parse(applied.into_owned().into_bytes()).ok()?;
    let (declared, live) = steps.members(applied.root(), object.root())?;
    let mut comparison = Comparison { steps, paths: FieldPaths::default() };
    for (key, declared) in declared {
        match &*key {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                for part in ["labels", "annotations"] {
                    if let Some(declared) = declared.get(part) {
                        let live = object.at(&["metadata", part]);
                        comparison.compare(declared, live, &below("metadata", part), MAX_DEPTH);
                    }
                }
            }
            key => comparison.compare(declared, live.get(key).copied(), &below("", key), MAX_DEPTH),
        }
    }
    comparison.paths.by(None)
}

/// A comparison of an object with its last applied configuration.
struct Comparison<'s> {
    steps: &'s mut CompareSteps,
    paths: FieldPaths,
}

impl Comparison<'_> {
    /// Adds the paths below `path`, down to `depth` levels, at which `live` lacks or changes what is `declared`. What a
    /// server adds, leaves out as empty or writes in its own way (amounts) is no difference.
    fn compare(&mut self, declared: Value<'_>, live: Option<Value<'_>>, path: &str, depth: usize) {
        let Some(live) = live.filter(|live| !live.is_null()) else {
            if !is_empty(declared, MAX_DEPTH) {
                self.paths.add(path);
            }
            return;
        };
        let is_too_deep = path.len() > MAX_PATH || depth == 0;
        match (declared.kind(), live.kind()) {
            (Kind::Object, Kind::Object) | (Kind::Array, Kind::Array) if is_too_deep => {
                self.steps.is_cut |= declared.text() != live.text();
            }
            (Kind::Object, Kind::Object) => {
                let Some((declared, live)) = self.steps.members(declared, live) else { return };
                for (key, declared) in declared {
                    self.compare(declared, live.get(&key).copied(), &below(path, &key), depth - 1);
                }
            }
            (Kind::Array, Kind::Array) => self.items(declared, live, path, depth - 1),
            _ => {
                let is_amount = ["limits.", "requests."].iter().any(|part| path.contains(part));
                if scalar(declared) != scalar(live) && !is_amount {
                    self.paths.add(path);
                }
            }
        }
    }

    /// Compares two lists: item by item by their `name` if each declared item has a name of its own, otherwise by
    /// position. Lists compared by position that differ in length differ as a whole.
    fn items(&mut self, declared: Value<'_>, live: Value<'_>, path: &str, depth: usize) {
        let Some(declared) = self.steps.take(declared.items().into_iter().flatten()) else { return };
        let Some(live) = self.steps.take(live.items().into_iter().flatten()) else { return };
        let name = |item: &Value<'_>| text(*item, &["name"]);
        let names: Option<Vec<String>> = declared.iter().map(name).collect();
        let names = names.filter(|names| names.iter().collect::<HashSet<_>>().len() == names.len());
        let Some(names) = names else {
            if declared.len() != live.len() {
                return self.paths.add(path);
            }
            for (place, (item, live)) in declared.into_iter().zip(live).enumerate() {
                self.compare(item, Some(live), &format!("{path}[{place}]"), depth);
            }
            return;
        };
        let mut by_name: HashMap<String, Value<'_>> = HashMap::new();
        for item in live {
            if let Some(name) = name(&item) {
                by_name.entry(name).or_insert(item);
            }
        }
        for (name, item) in names.into_iter().zip(declared) {
            self.compare(item, by_name.get(&name).copied(), &format!("{path}[name={name}]"), depth);
        }
    }
}

/// Returns a string as it is, and the JSON text of any other value; `None` if it has no text.
fn scalar(value: Value<'_>) -> Option<String> {
    let other = || value.text().map(|text| String::from_utf8_lossy(text).into_owned());
    value.as_str().map(|text| text.into_owned()).or_else(other)
}

/// Returns true for a value that a server may leave out: null, false, the integer zero, an empty text, and lists and
/// objects that contain nothing else. Values nested deeper than `depth` levels do not count as empty.
fn is_empty(value: Value<'_>, depth: usize) -> bool {
    let is_empty = |value: Value<'_>| depth > 0 && is_empty(value, depth - 1);
    match value.kind() {
        Kind::Null => true,
        Kind::Bool => value.as_bool() == Some(false),
        Kind::Integer => value.as_i64() == Some(0),
        Kind::Float => false,
        Kind::String => value.as_str().is_some_and(|text| text.is_empty()),
        Kind::Array => value.items().into_iter().flatten().all(is_empty),
        Kind::Object => value.members().into_iter().flatten().all(|(_, value)| is_empty(value)),
    }
}

/// An entry of an object's managed fields that may make the object differ from its declaration.
pub(super) struct ForeignWrite<'a> {
    manager: String,
    /// True if the manager wrote by the subresource `scale`, for which the API server records no time.
    pub(super) is_scale: bool,
    /// The time of the manager's last write; `None` if it is not recorded.
    pub(super) at: Option<Timestamp>,
    /// The fields that the manager wrote; `None` if they are not recorded.
    fields: Option<Value<'a>>,
}

/// Returns the writes to an object by managers other than Argo CD and `kube-controller-manager` (whose scales count),
/// without those that contain no field that could be declared, such as writes of the status.
pub(super) fn foreign_writes<'a>(object: &Object<'a>) -> impl Iterator<Item = ForeignWrite<'a>> {
    object.managed_fields().filter_map(|entry| {
        let manager = text(entry, &["manager"]).unwrap_or_default();
        let subresource = text(entry, &["subresource"]).unwrap_or_default();
        let is_scale = subresource == "scale";
        let is_computed = manager == "kube-controller-manager" && !is_scale;
        let fields = entry.get("fieldsV1");
        let is_foreign = subresource != "status" && !manager.starts_with("argocd") && !is_computed;
        let at = time(entry.get("time"));
        (is_foreign && fields.is_none_or(can_be_declared)).then_some(ForeignWrite {
            manager,
            is_scale,
            at,
            fields,
        })
    })
}

/// Returns true if a declaration could contain one of `fields`: not the status, and of the metadata only labels, and
/// annotations that no controller computes.
fn can_be_declared(fields: Value<'_>) -> bool {
    let members = |value: Value<'_>| {
        value.members().into_iter().flatten().any(|(part, inside)| match &*part {
            "f:labels" => true,
            "f:annotations" => inside
                .members()
                .into_iter()
                .flatten()
                .any(|(name, _)| name.strip_prefix("f:").is_some_and(|name| !COMPUTED.contains(&name))),
            _ => false,
        })
    };
    fields.members().into_iter().flatten().any(|(part, inside)| match &*part {
        "f:status" | "." => false,
        "f:metadata" => members(inside),
        _ => true,
    })
}

/// Returns the fields that [`foreign_writes`] set after the time `synced`, or by a scale without a time: one entry for
/// each write that has a manager and such fields, for the first [`MAX_FIELDS`] of them.
fn since_synced(object: &Object<'_>, synced: Timestamp, steps: &mut CompareSteps) -> Vec<DifferingFields> {
    let written = foreign_writes(object).filter_map(|write| {
        // The API server records no time of a scale. One that a later sync took back is not recorded any more.
        let is_later = write.at.map_or(write.is_scale, |at| at > synced);
        let fields = write.fields.filter(|_| is_later && !write.manager.is_empty())?;
        let mut paths = FieldPaths::default();
        written(fields, &[], "", MAX_DEPTH, steps, &mut paths);
        paths.by(Some(short(write.manager)))
    });
    written.take(MAX_FIELDS).collect()
}

/// Adds the paths of the fields that a manager wrote below `path`, down to `depth` levels, without those that one of
/// `others`, the fields of other managers, has as well. Of the metadata only labels, and annotations that no controller
/// computes, are added; the status is not.
pub(super) fn written(
    fields: Value<'_>,
    others: &[Value<'_>],
    path: &str,
    depth: usize,
    steps: &mut CompareSteps,
    paths: &mut FieldPaths,
) {
    let depth = depth.saturating_sub(1);
    let others = others.iter().map(|other| steps.take(other.members().into_iter().flatten()));
    let Some(others) = others.collect::<Option<Vec<_>>>() else { return };
    let others: Vec<Members<'_>> = others.into_iter().map(|all| all.into_iter().collect()).collect();
    for (part, inside) in fields.members().into_iter().flatten() {
        let Some(left) = steps.left.checked_sub(1) else {
            steps.is_cut = true;
            return;
        };
        steps.left = left;
        let path = match part.split_once(':') {
            Some(("f", "status")) if path.is_empty() => continue,
            Some(("f", "metadata")) if path.is_empty() && paths.without_metadata => continue,
            Some(("f", name)) if path == "metadata" && !["labels", "annotations"].contains(&name) => continue,
            Some(("f", name)) if path.ends_with("metadata.annotations") && COMPUTED.contains(&name) => {
                continue;
            }
            Some(("f", name)) => below(path, name),
            Some(("k", keys)) => format!("{path}[{}]", named(keys)),
            Some((_, value)) => format!("{path}[{value}]"),
            // The field itself, beside what is in it.
            None => continue,
        };
        let is_leaf = inside.members().into_iter().flatten().all(|(part, _)| part == ".");
        let others: Vec<Value<'_>> = others.iter().filter_map(|other| other.get(&part).copied()).collect();
        match is_leaf || depth == 0 || path.len() > MAX_PATH {
            true if others.is_empty() => paths.add(&path),
            true => {}
            false => written(inside, &others, &path, depth, steps, paths),
        }
    }
}

/// Formats the keys of a list's item: `name=web` for `{"name":"web"}`; `…` if `keys` is not JSON.
fn named(keys: &str) -> String {
    let Ok(keys) = OwnedDocument::parse(keys.as_bytes().to_vec()) else { return "…".to_owned() };
    let pairs = keys.root().members().into_iter().flatten();
    let pairs = pairs.map(|(key, value)| format!("{key}={}", scalar(value).unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(",")
}

/// Appends a key to a path: after a dot if it is a plain word, otherwise in brackets.
fn below(path: &str, key: &str) -> String {
    let mut path = path.to_owned();
    let is_word = !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    // Writing to a string cannot fail.
    let _ = match (is_word, path.is_empty()) {
        (true, true) => write!(path, "{key}"),
        (true, false) => write!(path, ".{key}"),
        (false, _) => write!(path, "[{key}]"),
    };
    path
}
