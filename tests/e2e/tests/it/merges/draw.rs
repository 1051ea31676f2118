//! Kinds, and random forms of their objects.

use fastrand::Rng;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use taffrail_object::yaml;

/// The value of a choice that removes a field.
const NONE: &str = "(none)";

/// The kinds of `data/pairs.yaml`, and the choices that several share.
#[derive(Deserialize)]
pub(super) struct Catalog {
    all: Vec<Choice>,
    empty: Vec<Choice>,
    pod: Vec<Choice>,
    kinds: Vec<Kind>,
}

/// A kind, with the choices of its objects.
#[derive(Deserialize)]
pub(super) struct Kind {
    /// The path of its objects on an API server.
    pub(super) path: String,
    /// The relative number of pairs of the kind.
    weight: usize,
    /// The place of the template of Pods.
    pod: Option<String>,
    /// True if its objects have the subresource `scale`.
    #[serde(default)]
    pub(super) scale: bool,
    /// True if a CustomResourceDefinition defines it.
    #[serde(default)]
    pub(super) custom: bool,
    manifest: Value,
    choices: Vec<Choice>,
    /// Choices of writers of the status.
    #[serde(default)]
    status: Vec<Choice>,
}

/// A field, and the values that a writer may give it.
#[derive(Deserialize, Clone)]
pub(super) struct Choice {
    at: String,
    values: Vec<Value>,
}

/// A value for a field; `None` to remove it.
pub(super) type Edit = (Vec<String>, Option<Value>);

impl Catalog {
    pub(super) fn read() -> Catalog {
        let mut catalog: Catalog =
            yaml::read(include_str!("../../data/pairs.yaml")).expect("the kinds are as they are declared");
        for kind in &mut catalog.kinds {
            kind.choices.extend(catalog.all.iter().cloned());
            let Some(pod) = &kind.pod else { continue };
            let at = |choice: &Choice| format!("{pod}/{}", choice.at);
            kind.choices.extend(
                catalog.pod.iter().map(|choice| Choice { at: at(choice), values: choice.values.clone() }),
            );
        }
        catalog
    }

    /// Draws a kind by the weights.
    pub(super) fn kind(&self, random: &mut Rng) -> &Kind {
        let mut left = random.usize(0..self.kinds.iter().map(|kind| kind.weight).sum());
        let drawn = self.kinds.iter().find(|kind| match left.checked_sub(kind.weight) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        drawn.expect("the weights sum up")
    }

    /// Gives a manifest other forms of what it has: orders, repeated items and nothing.
    pub(super) fn reform(&self, manifest: &mut Value, random: &mut Rng) {
        if random.u8(0..4) == 0 {
            shuffle(manifest, random);
        }
        if random.u8(0..10) == 0 {
            let choice = random.choice(&self.empty).expect("choices");
            let (path, value) = choice.edit(random, "");
            put(manifest, &path, value.as_ref());
        }
        if random.u8(0..10) == 0 {
            manifest["status"] = json!({});
        }
    }
}

impl Kind {
    pub(super) fn word(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the manifest of the object called `name` before any choice.
    pub(super) fn manifest(&self, name: &str) -> Value {
        named(&self.manifest, name)
    }

    /// Draws values for some fields.
    pub(super) fn edits(&self, count: usize, name: &str, random: &mut Rng) -> Vec<Edit> {
        (0..count).map(|_| random.choice(&self.choices).expect("choices").edit(random, name)).collect()
    }

    /// Draws a status; `None` if nobody writes one.
    pub(super) fn status(&self, name: &str, random: &mut Rng) -> Option<Edit> {
        Some(random.choice(&self.status)?.edit(random, name))
    }

    /// Returns an object that has nothing but its name and these fields.
    pub(super) fn part(&self, edits: &[Edit], name: &str) -> Value {
        let whole = self.manifest(name);
        let metadata: Map<String, Value> = ["name", "namespace"]
            .iter()
            .filter_map(|field| Some(((*field).to_owned(), whole["metadata"].get(*field)?.clone())))
            .collect();
        let mut part =
            json!({"apiVersion": whole["apiVersion"], "kind": whole["kind"], "metadata": metadata});
        for (path, value) in edits {
            put(&mut part, path, value.as_ref());
        }
        part
    }
}

impl Choice {
    fn edit(&self, random: &mut Rng, name: &str) -> Edit {
        let value = random.choice(&self.values).expect("values");
        let path = self.at.split('/').map(str::to_owned).collect();
        (path, (*value != NONE).then(|| named(value, name)))
    }
}

/// Returns a value with the name of the pair in all texts.
fn named(value: &Value, name: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("NAME", name)),
        Value::Array(items) => items.iter().map(|item| named(item, name)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(field, value)| (field.clone(), named(value, name))).collect()
        }
        value => value.clone(),
    }
}

/// Sets or removes the field at a path, with the maps and lists above it.
pub(super) fn put(value: &mut Value, path: &[String], to: Option<&Value>) {
    let Some((step, rest)) = path.split_first() else {
        *value = to.cloned().unwrap_or_default();
        return;
    };
    let key =
        step.strip_prefix('[').and_then(|step| step.strip_suffix(']')).and_then(|it| it.split_once('='));
    if value.is_null() {
        *value = if key.is_some() { json!([]) } else { json!({}) };
    }
    match (key, value) {
        (None, Value::Object(fields)) if rest.is_empty() => {
            match to {
                Some(to) => drop(fields.insert(step.clone(), to.clone())),
                None => drop(fields.remove(step)),
            };
        }
        (None, Value::Object(fields)) if to.is_some() || fields.contains_key(step) => {
            put(fields.entry(step.clone()).or_insert(Value::Null), rest, to);
        }
        (Some((name, wanted)), Value::Array(items)) => {
            let place = items.iter().position(|item| item[name] == wanted);
            match (place, to) {
                (Some(place), None) if rest.is_empty() => drop(items.remove(place)),
                (Some(place), _) => put(&mut items[place], rest, to),
                (None, Some(to)) if rest.is_empty() => items.push(to.clone()),
                (None, Some(_)) => {
                    let mut item = json!({name: wanted});
                    put(&mut item, rest, to);
                    items.push(item);
                }
                (None, None) => {}
            }
        }
        _ => {}
    }
}

/// Changes the order of one list of several items.
fn shuffle(value: &mut Value, random: &mut Rng) {
    fn lists<'v>(value: &'v mut Value, found: &mut Vec<&'v mut Vec<Value>>) {
        match value {
            Value::Array(items) => {
                if items.len() == 1 {
                    lists(&mut items[0], found);
                } else {
                    found.push(items);
                }
            }
            Value::Object(fields) => fields.values_mut().for_each(|field| lists(field, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    lists(value, &mut found);
    found.retain(|items| items.len() > 1);
    if !found.is_empty() {
        let at = random.usize(0..found.len());
        random.shuffle(found[at]);
    }
}
