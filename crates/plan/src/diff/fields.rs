//! Paths to fields and their values: the comparison of two objects, look-ups and edits.
//!
//! All functions take sorted paths and walk an object once, so that their time grows no faster than the sizes of object and
//! paths, with a logarithm for the items of lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use serde::{Serialize, Serializer};
use serde_json::{Map as JsonMap, Value};
use taffrail_merge::{FieldSet, MAX_DEPTH, Path, PathElement, Schema, Type, TypeRef, equal};

/// The maximum length of the paths to all fields of an object in sum, in bytes.
const MAX_PATHS: usize = 64 << 20;

/// The maximum number of key fields of a list's items of which any may be missing in an item.
const MAX_KEYS: usize = 6;

/// The path to a field. As text, items of lists are named by their keys: `spec.template.spec.containers[name=web].image`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Path);

impl FieldPath {
    pub(super) fn new(path: Path) -> FieldPath {
        FieldPath(path)
    }

    /// Returns the steps from the object to the field.
    pub fn elements(&self) -> &[PathElement] {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, element) in self.0.iter().enumerate() {
            match element {
                PathElement::Field(name) if is_plain(name) => {
                    write!(f, "{}{name}", if number == 0 { "" } else { "." })?;
                }
                PathElement::Field(name) => write!(f, "[{}]", Value::from(&**name))?,
                PathElement::Key(fields) => {
                    for (number, (name, value)) in fields.iter().enumerate() {
                        write!(f, "{}{name}={}", if number == 0 { "[" } else { "," }, plain(value))?;
                    }
                    f.write_str("]")?;
                }
                PathElement::Value(value) => write!(f, "[={}]", plain(value))?,
                PathElement::Index(place) => write!(f, "[{place}]")?,
            }
        }
        Ok(())
    }
}

impl Serialize for FieldPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || "_-$".contains(it))
}

/// Returns a value for a path: texts without quotes unless they contain what a path may be read by.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && !text.contains(['[', ']', '=', ',', '"', '\n', '\\']) => {
            text.clone()
        }
        value => value.to_string(),
    }
}

/// Returns true if lists and maps are nested so deeply that an object cannot be compared.
pub(super) fn is_too_deep(value: &Value) -> bool {
    fn is_deeper(value: &Value, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else { return true };
        match value {
            Value::Array(items) => items.iter().any(|item| is_deeper(item, left)),
            Value::Object(fields) => fields.values().any(|field| is_deeper(field, left)),
            _ => false,
        }
    }
    is_deeper(value, MAX_DEPTH - 1)
}

/// Returns true if the paths to all fields of an object are so long in sum that they cannot be held at the same time.
pub(super) fn has_long_paths(value: &Value) -> bool {
    fn exceeds(value: &Value, above: usize, left: &mut usize) -> bool {
        let mut below = |value: &Value, name: usize| {
            let path = above.saturating_add(name);
            match left.checked_sub(path) {
                None => true,
                Some(rest) => {
                    *left = rest;
                    exceeds(value, path, left)
                }
            }
        };
        match value {
            Value::Object(fields) => fields.iter().any(|(name, field)| below(field, name.len())),
            Value::Array(items) => items.iter().any(|item| {
                // An item may be named by any of its fields.
                let names = match item {
                    Value::Object(fields) => fields.values().map(|it| it.as_str().map_or(8, str::len)).sum(),
                    Value::String(text) => text.len(),
                    _ => 8,
                };
                below(item, names)
            }),
            _ => false,
        }
    }
    exceeds(value, 0, &mut MAX_PATHS.clone())
}

/// Returns the lists, with their live and wanted forms, whose items have keys and come in another order in one form than in
/// the other: the order of containers or of variables that refer to each other has an effect.
fn reordered<'v>(of: Type<'_>, live: &'v Value, wanted: &'v Value) -> Vec<(Path, &'v Value, &'v Value)> {
    let fields = of.field_set(wanted).or_else(|_| deduced().field_set(wanted)).unwrap_or_default();
    let mut lists: BTreeMap<Path, Vec<String>> = BTreeMap::new();
    for path in fields.paths() {
        let keyed = path.iter().enumerate().filter_map(|(at, element)| match element {
            PathElement::Key(keys) => Some((at, keys)),
            _ => None,
        });
        for (at, keys) in keyed {
            let Some(list) = path.get(..at) else { continue };
            if !lists.contains_key(list) {
                lists.insert(list.to_vec(), keys.iter().map(|(name, _)| name.clone()).collect());
            }
        }
    }
    let (paths, names): (Vec<Path>, Vec<Vec<String>>) = lists.into_iter().unzip();
    let values = find_all(live, &paths).into_iter().zip(find_all(wanted, &paths));
    let order = |list: &Value, names: &[String]| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        let key = |item: &Value| {
            let each: Vec<&Value> = names.iter().map(|name| item.get(name).unwrap_or(&Value::Null)).collect();
            serde_json::to_string(&each).unwrap_or_default()
        };
        items.map(key).collect()
    };
    let found = paths.iter().zip(&names).zip(values).filter_map(|((path, names), (live, wanted))| {
        let (live, wanted) = (live?, wanted?);
        let (mut before, mut after) = (order(live, names), order(wanted, names));
        let shared: BTreeSet<String> = {
            let after: BTreeSet<&String> = after.iter().collect();
            before.iter().filter(|key| after.contains(key)).cloned().collect()
        };
        before.retain(|key| shared.contains(key));
        after.retain(|key| shared.contains(key));
        (before != after).then(|| (path.clone(), live, wanted))
    });
    found.collect()
}

/// Returns the type of objects of which no schema is known.
pub(super) fn deduced() -> Type<'static> {
    static SCHEMA: LazyLock<(Schema, TypeRef)> =
        LazyLock::new(|| (Schema::deduced(), TypeRef::named(Schema::DEDUCED)));
    Type::new(&SCHEMA.0, &SCHEMA.1)
}

/// A field in which two objects differ.
#[derive(Debug, Clone)]
pub(super) struct Differing<'v> {
    pub(super) path: Path,
    pub(super) live: Option<&'v Value>,
    pub(super) wanted: Option<&'v Value>,
    /// True if the items of a list are equal, and in another order.
    pub(super) is_order: bool,
}

/// Returns the fields in which two objects differ, sorted by path. Of what only one of them has, only the topmost field is
/// returned. An object that is not of its type is compared as one of which no type is known.
pub(super) fn differences<'v>(of: Type<'_>, live: &'v Value, wanted: &'v Value) -> Vec<Differing<'v>> {
    let compared = of.compare(live, wanted).or_else(|_| deduced().compare(live, wanted));
    let compared = compared.unwrap_or_default();
    let mut sides: BTreeMap<Path, [bool; 2]> = BTreeMap::new();
    for (fields, is_live, is_wanted) in
        [(&compared.removed, true, false), (&compared.modified, true, true), (&compared.added, false, true)]
    {
        for path in fields.paths() {
            let [live, wanted] = sides.entry(path).or_default();
            (*live, *wanted) = (*live || is_live, *wanted || is_wanted);
        }
    }
    let (paths, sides): (Vec<Path>, Vec<[bool; 2]>) =
        without_nested(sides, |(path, _)| path).into_iter().unzip();
    let values = find_all(live, &paths).into_iter().zip(find_all(wanted, &paths));
    let found = paths.into_iter().zip(sides).zip(values);
    let found = found.map(|((path, [is_live, is_wanted]), (live, wanted))| Differing {
        path,
        live: live.filter(|_| is_live),
        wanted: wanted.filter(|_| is_wanted),
        is_order: false,
    });
    let mut found: Vec<Differing<'v>> = found.filter(|it| !is_implied_key(it)).collect();
    let lists = reordered(of, live, wanted);
    // No path of `found` is above another one, so those around the place of a list decide.
    let is_touched = |list: &Path| {
        let at = found.partition_point(|it| it.path < *list);
        let below = found.get(at).is_some_and(|it| it.path.starts_with(list));
        let above = at.checked_sub(1).and_then(|at| found.get(at));
        below || above.is_some_and(|it| list.starts_with(&it.path))
    };
    let lists = lists.into_iter().filter(|(list, ..)| !is_touched(list));
    let lists: Vec<Differing<'v>> = lists
        .map(|(path, live, wanted)| Differing {
            path,
            live: Some(live),
            wanted: Some(wanted),
            is_order: true,
        })
        .collect();
    found.extend(lists);
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Returns true for a field by which an item of a list is known and that only one object states: the other one leaves it to
/// its default.
fn is_implied_key(it: &Differing<'_>) -> bool {
    let is_key = match it.path.as_slice() {
        [.., PathElement::Key(key), PathElement::Field(name)] => key.iter().any(|(key, _)| key == name),
        _ => false,
    };
    is_key && (it.live.is_none() || it.wanted.is_none())
}

/// Returns the topmost fields in which two objects differ, as a set of fields.
pub(super) fn differing_fields(of: Type<'_>, before: &Value, after: &Value) -> FieldSet {
    differences(of, before, after).into_iter().map(|it| it.path).collect()
}

/// Returns the topmost paths of a set.
pub(super) fn topmost(fields: &FieldSet) -> Vec<Path> {
    without_nested(fields.paths(), |path| path)
}

/// Returns those of what is sorted by path whose paths are below no other one.
fn without_nested<T>(sorted: impl IntoIterator<Item = T>, path: impl Fn(&T) -> &Path) -> Vec<T> {
    let mut top: Vec<T> = Vec::new();
    for it in sorted {
        if !top.last().is_some_and(|above| path(&it).starts_with(path(above))) {
            top.push(it);
        }
    }
    top
}

/// Returns the paths of a set that are above no other one of it.
pub(super) fn leaves(fields: &FieldSet) -> Vec<Path> {
    let paths = fields.paths();
    let mut leaves = Vec::new();
    for (at, path) in paths.iter().enumerate() {
        if !paths.get(at + 1).is_some_and(|next| next.starts_with(path)) {
            leaves.push(path.clone());
        }
    }
    leaves
}

/// Returns the values at these sorted paths.
pub(super) fn find_all<'v>(value: &'v Value, paths: &[Path]) -> Vec<Option<&'v Value>> {
    let mut found = Vec::with_capacity(paths.len());
    find_below(Some(value), paths, 0, &mut found);
    found
}

fn find_below<'v>(
    value: Option<&'v Value>,
    paths: &[Path],
    depth: usize,
    found: &mut Vec<Option<&'v Value>>,
) {
    let mut places = Places::default();
    for group in paths.chunk_by(|path, next| path.get(depth) == next.get(depth)) {
        match (group.first().and_then(|path| path.get(depth)), value) {
            (None, value) => group.iter().for_each(|_| found.push(value)),
            (Some(PathElement::Field(name)), Some(Value::Object(fields))) => {
                find_below(fields.get(name), group, depth + 1, found);
            }
            (Some(element), Some(Value::Array(items))) => {
                let item = places.of(items, element).and_then(|place| items.get(place));
                find_below(item, group, depth + 1, found);
            }
            _ => group.iter().for_each(|_| found.push(None)),
        }
    }
}

/// The places of the items of one list, by the elements that name them; made when first needed.
#[derive(Debug, Default)]
struct Places {
    by_value: Option<BTreeMap<PathElement, usize>>,
    /// For each list of key fields, the items by those of them that they have.
    by_key: BTreeMap<Vec<String>, BTreeMap<PathElement, usize>>,
}

impl Places {
    fn of(&mut self, items: &[Value], element: &PathElement) -> Option<usize> {
        match element {
            PathElement::Field(_) => None,
            PathElement::Index(place) => usize::try_from(*place).ok().filter(|place| *place < items.len()),
            PathElement::Value(_) => {
                let places = self.by_value.get_or_insert_with(|| {
                    let items = items.iter().enumerate().rev();
                    items.map(|(place, item)| (PathElement::Value(item.clone()), place)).collect()
                });
                places.get(element).copied()
            }
            PathElement::Key(key) => {
                let names: Vec<String> = key.iter().map(|(name, _)| name.clone()).collect();
                let places = self.by_key.entry(names).or_insert_with_key(|names| keyed(items, names));
                // An item may leave out a key that has a default.
                let is_small = key.len() <= MAX_KEYS;
                let mut masks: Vec<u32> = if is_small { (0..(1 << key.len())).collect() } else { vec![0] };
                masks.sort_by_key(|left_out| left_out.count_ones());
                masks.into_iter().find_map(|left_out| {
                    let fields = key.iter().enumerate();
                    let fields = fields.filter(|(at, _)| !is_small || left_out & (1 << at) == 0);
                    let fields: Vec<_> = fields.map(|(_, field)| field.clone()).collect();
                    if fields.is_empty() {
                        return None;
                    }
                    places.get(&PathElement::Key(fields)).copied()
                })
            }
        }
    }
}

fn keyed(items: &[Value], names: &[String]) -> BTreeMap<PathElement, usize> {
    let key_of = |item: &Value| {
        let fields = names.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
        PathElement::Key(fields.collect())
    };
    // The first of several items counts.
    items.iter().enumerate().rev().map(|(place, item)| (key_of(item), place)).collect()
}

/// A change of an object at a path: the new value, or `None` to remove the field.
pub(super) type Edit = (Path, Option<Value>);

/// Sets and removes fields. Of edits in each other, the topmost counts. A key field of an item stays as long as the item has
/// any other field; an item of which all else was removed goes with it.
pub(super) fn edit(value: &mut Value, mut edits: Vec<Edit>) {
    edits.sort_by(|(path, _), (other, _)| path.cmp(other));
    edit_below(value, &edits.iter().collect::<Vec<_>>(), 0);
}

fn edit_below(value: &mut Value, edits: &[&Edit], depth: usize) {
    let (mut places, mut removed) = (Places::default(), BTreeSet::new());
    // New items come last, so that the places of the others stay.
    let mut new_items = Vec::new();
    for group in edits.chunk_by(|(path, _), (next, _)| path.get(depth) == next.get(depth)) {
        let Some((path, to)) = group.first() else { continue };
        let Some(element) = path.get(depth) else { continue };
        let is_here = path.len() == depth + 1;
        match (element, &mut *value) {
            (PathElement::Field(name), Value::Object(fields)) => match (is_here, to) {
                (true, None) => drop(fields.remove(name)),
                (true, Some(to)) => drop(fields.insert(name.clone(), to.clone())),
                (false, _) => {
                    if let Some(field) = fields.get_mut(name) {
                        edit_below(field, group, depth + 1);
                    }
                }
            },
            (element, Value::Array(items)) => match (is_here, to, places.of(items, element)) {
                (true, None, Some(place)) => drop(removed.insert(place)),
                (true, Some(to), None) => new_items.push(to.clone()),
                (true, Some(to), Some(place)) => items.iter_mut().skip(place).take(1).for_each(|item| {
                    *item = to.clone();
                }),
                (true, None, None) | (false, _, None) => {}
                (false, _, Some(place)) => {
                    if let Some(item) = items.get_mut(place)
                        && edit_item(item, element, group, depth + 1)
                    {
                        removed.insert(place);
                    }
                }
            },
            _ => {}
        }
    }
    if let Value::Array(items) = value {
        let mut place = 0;
        items.retain(|_| {
            place += 1;
            !removed.contains(&(place - 1))
        });
        items.append(&mut new_items);
    }
}

/// Edits an item of a list; returns true if only fields are left that are to be removed, too.
fn edit_item(item: &mut Value, element: &PathElement, edits: &[&Edit], depth: usize) -> bool {
    let PathElement::Key(key) = element else {
        edit_below(item, edits, depth);
        return false;
    };
    let removed_key = |(path, to): &Edit| {
        let last = path.get(depth).filter(|_| path.len() == depth + 1 && to.is_none());
        match last {
            Some(PathElement::Field(name)) if key.iter().any(|(key, _)| key == name) => Some(name.clone()),
            _ => None,
        }
    };
    let removed: BTreeSet<String> = edits.iter().filter_map(|edit| removed_key(edit)).collect();
    let others: Vec<&Edit> = edits.iter().copied().filter(|edit| removed_key(edit).is_none()).collect();
    edit_below(item, &others, depth);
    !removed.is_empty()
        && item.as_object().is_some_and(|fields| fields.keys().all(|name| removed.contains(name)))
}

/// Returns true if a value holds nothing but empty lists and maps.
pub(super) fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_hollow),
        Value::Object(fields) => fields.values().all(is_hollow),
        _ => false,
    }
}

/// Returns true if a value is the zero value of a type: null, an empty text, `false`, 0, or empty lists and maps.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        value => is_hollow(value),
    }
}

/// Returns true for null, and for lists and maps without items.
pub(super) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Returns true if `live` has everything of `wanted`, in lists of the same length, and differs only by further fields of
/// maps.
pub(super) fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| live.get(name).is_some_and(|live| covers(live, wanted)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        (live, wanted) => equal(live, wanted),
    }
}

/// Returns true if `live`, which covers `wanted`, has a field more that `before` has as well.
pub(super) fn keeps_of(before: &Value, live: &Value, wanted: &Value) -> bool {
    match (before, live, wanted) {
        (Value::Object(before), Value::Object(live), Value::Object(wanted)) => {
            live.iter().any(|(name, live)| match (before.get(name), wanted.get(name)) {
                (Some(_), None) => true,
                (Some(before), Some(wanted)) => keeps_of(before, live, wanted),
                (None, _) => false,
            })
        }
        (Value::Array(before), Value::Array(live), Value::Array(wanted)) => {
            let mut items = before.iter().zip(live).zip(wanted);
            before.len() != live.len() || items.any(|((before, live), wanted)| keeps_of(before, live, wanted))
        }
        _ => false,
    }
}

/// Returns the fields of a map at a pointer, to change them.
pub(super) fn map_at<'v>(value: &'v mut Value, pointer: &str) -> Option<&'v mut JsonMap<String, Value>> {
    value.pointer_mut(pointer).and_then(Value::as_object_mut)
}

/// Returns the text of a field of the object or of its metadata; empty if there is none.
pub(super) fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(fields: &Value) -> Path {
        FieldSet::from_fields_v1(fields).unwrap().paths().remove(0)
    }

    #[test]
    fn paths_name_items_by_their_keys() {
        for (fields, text) in [
            (
                json!({"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:image": {}}}}}),
                "spec.containers[name=web].image",
            ),
            (json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {}}}), "ports[port=80,protocol=TCP]"),
            (json!({"f:metadata": {"f:annotations": {"f:a.b/c": {}}}}), "metadata.annotations[\"a.b/c\"]"),
            (json!({"f:metadata": {"f:finalizers": {"v:\"a.b/c\"": {}}}}), "metadata.finalizers[=a.b/c]"),
            (json!({"f:list": {"i:3": {}}}), "list[3]"),
        ] {
            assert_eq!(FieldPath(path(&fields)).to_string(), text);
        }
    }

    #[test]
    fn items_are_found_though_they_leave_out_a_key_with_a_default() {
        let ports = json!({"ports": [{"port": 53}, {"port": 53, "protocol": "UDP", "name": "dns"}]});
        let at = |protocol: &str| {
            path(&json!({"f:ports": {format!("k:{{\"port\":53,\"protocol\":\"{protocol}\"}}"): {}}}))
        };
        let found = find_all(&ports, &[at("TCP"), at("UDP")]);
        assert_eq!(found, [Some(&json!({"port": 53})), ports.pointer("/ports/1")]);
    }

    #[test]
    fn keys_of_items_outlive_edits_until_nothing_else_is_left() {
        let fields = |name: &str| json!({"f:list": {"k:{\"name\":\"a\"}": {format!("f:{name}"): {}}}});
        let edits = |names: &[&str]| names.iter().map(|name| (path(&fields(name)), None)).collect();
        let mut value = json!({"list": [{"name": "a", "x": 1, "y": 2}, {"name": "b"}]});
        edit(&mut value, edits(&["name", "x"]));
        assert_eq!(value, json!({"list": [{"name": "a", "y": 2}, {"name": "b"}]}));
        edit(&mut value, edits(&["name", "y"]));
        assert_eq!(value, json!({"list": [{"name": "b"}]}));
    }
}
