//! The fields in which an object differs from its declaration, as far as the object itself records them.
//!
//! Two records tell: the annotation with what was last applied, and the field managers that wrote after the last sync.
//! Neither knows what the wanted revision says. Only paths are told: values may be confidential.

use std::fmt::Write as _;

use jiff::Timestamp;
use taffrail_object::json::{Kind, OwnedDocument, Value};
use taffrail_object::{LAST_APPLIED, Object, Projection};
use taffrail_status::Observed;

use super::{argo, short, text, time};
use crate::app::App;
use crate::objects::Objects;
use crate::sync::{DifferingFields, ObjectSync, ObjectSyncState};

/// The maximum number of objects for which fields are searched, of an app and of all: many apps may list one object with
/// long records.
const MAX_OBJECTS: usize = 20;
const MAX_OBJECTS_OF_ALL: usize = 500;

/// The maximum number of fields that are told of an object.
const MAX_FIELDS: usize = 5;

/// The maximum length of a path in bytes; fields below such a path are not compared one by one.
const MAX_PATH: usize = 200;

/// The maximum number of levels below an object that are compared one by one: a path need not grow with each level.
const MAX_DEPTH: usize = 32;

/// Annotations that are written by controllers, and never declared.
const COMPUTED: [&str; 2] = [LAST_APPLIED, "deployment.kubernetes.io/revision"];

/// Returns the objects of each app that are not synced, with the fields in which those that are OutOfSync differ, where
/// that is recorded.
///
/// While another revision is wanted than was applied, what was applied last is not what is wanted, and only later writes
/// are told.
pub fn differing_fields<'l>(
    apps: impl Iterator<Item = &'l App>,
    clusters: &[&dyn Objects],
) -> Vec<Vec<ObjectSync>> {
    let mut left = MAX_OBJECTS_OF_ALL;
    apps.map(|app| of_app(app, clusters, &mut left)).collect()
}

fn of_app(app: &App, clusters: &[&dyn Objects], left: &mut usize) -> Vec<ObjectSync> {
    let of_name = |name: &str| clusters.iter().copied().find(|cluster| cluster.name() == name);
    let mut unsynced = app.unsynced.clone();
    let target = of_name(&app.app.target).filter(|_| app.in_reach);
    let declaring = app.declaring.as_ref().zip(of_name(&app.app.home));
    let declaring = declaring.and_then(|(key, home)| home.get(key.as_ref()).present());
    let Some((target, declaring)) = target.zip(declaring) else { return unsynced };
    let synced = argo::failed_at(&declaring.object);
    let is_applied = app.sync.desired.is_some() && app.sync.desired == app.sync.applied;
    let differing = unsynced.iter_mut().filter(|own| own.state == ObjectSyncState::OutOfSync);
    for own in differing.take(MAX_OBJECTS.min(*left)) {
        *left = left.saturating_sub(1);
        let Some(observed) = target.get(own.key.as_ref()).present() else { continue };
        let applied = is_applied.then(|| since_applied(&observed)).flatten();
        own.differs = match (applied, synced) {
            (Some(applied), _) => vec![applied],
            (None, Some(synced)) => since_synced(&observed.object, synced),
            (None, None) => Vec::new(),
        };
    }
    unsynced
}

/// Paths of fields, as many as are told, and the number of the others.
#[derive(Default)]
struct Paths {
    fields: Vec<String>,
    more: usize,
}

impl Paths {
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

    fn by(self, by: Option<String>) -> Option<DifferingFields> {
        let Paths { fields, more } = self;
        (!fields.is_empty()).then_some(DifferingFields { fields, more, by })
    }
}

/// Returns the fields whose values differ from those that were last applied; `None` if there are none, or if that is not
/// recorded.
fn since_applied(observed: &Observed<'_>) -> Option<DifferingFields> {
    let (key, object) = (&observed.key, &observed.object);
    if observed.projection != Projection::Full || (key.group, key.kind) == ("", "Secret") {
        return None;
    }
    let applied = object.at(&["metadata", "annotations", LAST_APPLIED])?.as_str()?;
    let applied = OwnedDocument::parse(applied.into_owned().into_bytes()).ok()?;
    let mut paths = Paths::default();
    for (key, declared) in applied.root().members()? {
        match &*key {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                for part in ["labels", "annotations"] {
                    if let Some(declared) = declared.get(part) {
                        let live = object.at(&["metadata", part]);
                        compare(declared, live, &below("metadata", part), MAX_DEPTH, &mut paths);
                    }
                }
            }
            key => compare(declared, object.at(&[key]), &below("", key), MAX_DEPTH, &mut paths),
        }
    }
    paths.by(None)
}

/// Adds the paths below `path` at which `live` lacks or changes what is `declared`. What a server adds, leaves out as
/// empty or writes in its own way (amounts) is no difference.
fn compare(declared: Value<'_>, live: Option<Value<'_>>, path: &str, depth: usize, paths: &mut Paths) {
    let Some(live) = live.filter(|live| !live.is_null()) else {
        if !is_empty(declared, MAX_DEPTH) {
            paths.add(path);
        }
        return;
    };
    if path.len() > MAX_PATH || depth == 0 {
        return;
    }
    let depth = depth - 1;
    match (declared.kind(), live.kind()) {
        (Kind::Object, Kind::Object) => {
            for (key, declared) in declared.members().into_iter().flatten() {
                compare(declared, live.get(&key), &below(path, &key), depth, paths);
            }
        }
        (Kind::Array, Kind::Array) => items(declared, live, path, depth, paths),
        _ => {
            let is_amount = ["limits.", "requests."].iter().any(|part| path.contains(part));
            if scalar(declared) != scalar(live) && !is_amount {
                paths.add(path);
            }
        }
    }
}

/// Compares two lists: items with names by these, others by their places.
fn items(declared: Value<'_>, live: Value<'_>, path: &str, depth: usize, paths: &mut Paths) {
    let list = |value: Value<'_>| value.items().into_iter().flatten().count();
    let name = |item: Value<'_>| text(item, &["name"]);
    let is_named = declared.items().into_iter().flatten().all(|item| name(item).is_some());
    if !is_named && list(declared) != list(live) {
        return paths.add(path);
    }
    for (place, item) in declared.items().into_iter().flatten().enumerate() {
        let own = name(item).filter(|_| is_named);
        let (found, inside) = match &own {
            Some(own) => {
                let mut all = live.items().into_iter().flatten();
                (all.find(|other| name(*other).as_ref() == Some(own)), format!("{path}[name={own}]"))
            }
            None => (live.items().into_iter().flatten().nth(place), format!("{path}[{place}]")),
        };
        compare(item, found, &inside, depth, paths);
    }
}

/// Returns the text of a value that is neither an object nor a list.
fn scalar(value: Value<'_>) -> Option<String> {
    let other = || value.text().map(|text| String::from_utf8_lossy(text).into_owned());
    value.as_str().map(|text| text.into_owned()).or_else(other)
}

/// Returns true for what a server may leave out: null, false, zero, and empty texts, lists and objects. What is nested
/// deeper than `depth` levels counts as something.
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

/// Returns the fields that others than Argo CD and the controllers of Kubernetes wrote after the last sync, by manager.
fn since_synced(object: &Object<'_>, synced: Timestamp) -> Vec<DifferingFields> {
    let written = object.managed_fields().filter_map(|entry| {
        let manager = text(entry, &["manager"])?;
        let subresource = text(entry, &["subresource"]).unwrap_or_default();
        let is_computed = manager == "kube-controller-manager" && subresource != "scale";
        if subresource == "status" || manager.starts_with("argocd") || is_computed {
            return None;
        }
        time(entry.get("time")).filter(|at| *at > synced)?;
        let mut paths = Paths::default();
        written(entry.get("fieldsV1")?, "", MAX_DEPTH, &mut paths);
        paths.by(Some(manager))
    });
    written.take(MAX_FIELDS).collect()
}

/// Adds the paths of the fields that a manager wrote below `path`, down to `depth` levels.
fn written(fields: Value<'_>, path: &str, depth: usize, paths: &mut Paths) {
    let depth = depth.saturating_sub(1);
    for (part, inside) in fields.members().into_iter().flatten() {
        let path = match part.split_once(':') {
            Some(("f", "status")) if path.is_empty() => continue,
            Some(("f", name)) if path == "metadata" && !["labels", "annotations"].contains(&name) => continue,
            Some(("f", name)) if path == "metadata.annotations" && COMPUTED.contains(&name) => continue,
            Some(("f", name)) => below(path, name),
            Some(("k", keys)) => format!("{path}[{}]", named(keys)),
            Some((_, value)) => format!("{path}[{value}]"),
            // The field itself, beside what is in it.
            None => continue,
        };
        let is_leaf = inside.members().into_iter().flatten().all(|(part, _)| part == ".");
        match is_leaf || depth == 0 || path.len() > MAX_PATH {
            true => paths.add(&path),
            false => written(inside, &path, depth, paths),
        }
    }
}

/// Formats the keys of a list's item: `name=web` for `{"name":"web"}`.
fn named(keys: &str) -> String {
    let Ok(keys) = OwnedDocument::parse(keys.as_bytes().to_vec()) else { return "…".to_owned() };
    let pairs = keys.root().members().into_iter().flatten();
    let pairs = pairs.map(|(key, value)| format!("{key}={}", scalar(value).unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(",")
}

/// Appends a member to a path; one that is no plain word, such as an empty one, in brackets.
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
