//! An object as JSON text.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::clock::stamp;

/// The JSON text of an object in three parts: its metadata, its field managers, and the rest. Many objects of a fleet
/// have the last two in common.
#[derive(Debug, Clone)]
pub(crate) struct Texts {
    /// The `metadata` without resourceVersion and `managedFields`, as a JSON object.
    head: Arc<[u8]>,
    /// The entries of `managedFields`; `None` if there are none.
    managers: Option<Arc<[Manager]>>,
    /// The members other than apiVersion, kind and metadata, as a JSON object.
    tail: Arc<[u8]>,
}

/// An entry of `managedFields`. Objects of one kind differ in its time alone.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Manager {
    /// The entry without its time, as a JSON object.
    text: Arc<[u8]>,
    /// The time, in seconds since 1970; `None` if it has none, or an unusual one, which is in the text.
    time: Option<i64>,
}

impl Manager {
    fn of(mut entry: Value, interner: &Interner) -> Manager {
        let text = entry.get("time").and_then(Value::as_str);
        let time = text.and_then(|text| {
            let time = text.parse::<Timestamp>().ok()?;
            (stamp(time) == text).then_some(time.as_second())
        });
        if let Some(members) = entry.as_object_mut().filter(|_| time.is_some()) {
            members.remove("time");
        }
        Manager { text: interner.share(serde_json::to_vec(&entry).unwrap_or_default()), time }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let time = self.time.and_then(|time| Timestamp::from_second(time).ok());
        match (time, &*self.text) {
            (Some(time), [rest @ .., b'}']) => {
                out.extend_from_slice(rest);
                let comma = if rest.len() > 1 { "," } else { "" };
                out.extend_from_slice(format!("{comma}\"time\":\"{}\"}}", stamp(time)).as_bytes());
            }
            (_, text) => out.extend_from_slice(text),
        }
    }
}

/// A stored object: its texts and its resourceVersion.
#[derive(Debug)]
pub(crate) struct Object {
    version: u64,
    texts: Texts,
}

impl Texts {
    /// Returns the texts of an object, without resourceVersion and `managedFields`.
    pub(crate) fn of(object: &Value, interner: &Interner) -> Texts {
        Texts::with_managers(object, false, interner)
    }

    /// Returns the texts of an object without resourceVersion, but with `managedFields`.
    pub(crate) fn recorded(object: &Value, interner: &Interner) -> Texts {
        Texts::with_managers(object, true, interner)
    }

    fn with_managers(object: &Value, managers: bool, interner: &Interner) -> Texts {
        let mut head = object.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        head.remove("resourceVersion");
        let entries = head.remove("managedFields").filter(|_| managers);
        let managers = match entries {
            Some(Value::Array(entries)) if !entries.is_empty() => {
                Some(entries.into_iter().map(|entry| Manager::of(entry, interner)).collect())
            }
            _ => None,
        };
        let empty = Map::new();
        let all = object.as_object().unwrap_or(&empty);
        let rest = all.iter().filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
        let mut tail = b"{".to_vec();
        for (key, value) in rest {
            if tail.len() > 1 {
                tail.push(b',');
            }
            // Writing into memory cannot fail.
            let _ = serde_json::to_writer(&mut tail, key);
            tail.push(b':');
            let _ = serde_json::to_writer(&mut tail, value);
        }
        tail.push(b'}');
        let head = serde_json::to_vec(&head).unwrap_or_default();
        Texts { head: head.into(), managers, tail: interner.share(tail) }
    }
}

impl Texts {
    /// Returns the number of bytes of the texts.
    pub(crate) fn size(&self) -> usize {
        let managers = self.managers.iter().flat_map(|managers| managers.iter());
        self.head.len() + self.tail.len() + managers.map(|it| it.text.len()).sum::<usize>()
    }

    /// Returns the texts without the field managers.
    pub(crate) fn without_managers(&self) -> Texts {
        Texts { managers: None, ..self.clone() }
    }
}

impl Object {
    pub(super) fn new(version: u64, texts: Texts) -> Object {
        Object { version, texts }
    }

    /// Creates an object without a resourceVersion, which is not stored.
    pub(crate) fn unkept(texts: Texts) -> Object {
        Object { version: 0, texts }
    }

    /// Returns a copy with other texts and the same resourceVersion.
    pub(crate) fn with(&self, texts: Texts) -> Object {
        Object { version: self.version, texts }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn texts(&self) -> Texts {
        self.texts.clone()
    }

    /// Returns the `metadata` without resourceVersion and `managedFields`.
    pub(crate) fn head(&self) -> &[u8] {
        &self.texts.head
    }

    /// Returns the members other than apiVersion, kind and metadata.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.texts.tail
    }

    /// Returns true if the object has exactly these texts.
    pub(crate) fn says(&self, texts: &Texts) -> bool {
        let Texts { head, managers, tail } = &self.texts;
        *head == texts.head && *managers == texts.managers && *tail == texts.tail
    }

    /// Appends the JSON of the object to `out`. `start` is the text before the metadata:
    /// `{"kind":"Pod","apiVersion":"v1",` or `{`.
    pub(crate) fn write(&self, start: &str, out: &mut Vec<u8>) {
        self.write_metadata(start, out);
        match self.tail() {
            [b'{', rest @ ..] if rest.len() > 1 => {
                out.push(b',');
                out.extend_from_slice(rest);
            }
            _ => out.push(b'}'),
        }
    }

    /// Appends `start` and the metadata to `out`, without the closing brace.
    fn write_metadata(&self, start: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(start.as_bytes());
        out.extend_from_slice(b"\"metadata\":");
        let head = self.head().strip_suffix(b"}").unwrap_or(b"{");
        out.extend_from_slice(head);
        let mut comma = if head.len() > 1 { "," } else { "" };
        if let Some(managers) = &self.texts.managers {
            out.extend_from_slice(comma.as_bytes());
            out.extend_from_slice(b"\"managedFields\":");
            write_managers(managers, out);
            comma = ",";
        }
        if self.version != 0 {
            out.extend_from_slice(format!("{comma}\"resourceVersion\":\"{}\"", self.version).as_bytes());
        }
        out.push(b'}');
    }

    /// Appends the metadata to `out` as a PartialObjectMetadata.
    pub(crate) fn write_partial(&self, out: &mut Vec<u8>) {
        self.write_metadata("{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",", out);
        out.push(b'}');
    }

    /// Returns the object as a JSON tree.
    pub(crate) fn tree(&self, api_version: &str, kind: &str) -> Value {
        let mut object: Map<String, Value> = serde_json::from_slice(self.tail()).unwrap_or_default();
        object.insert("metadata".to_owned(), self.metadata());
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.into());
        Value::Object(object)
    }

    /// Returns the metadata as a JSON tree.
    pub(crate) fn metadata(&self) -> Value {
        let mut head: Map<String, Value> = serde_json::from_slice(self.head()).unwrap_or_default();
        if let Some(managers) = &self.texts.managers {
            let mut text = Vec::new();
            write_managers(managers, &mut text);
            head.insert("managedFields".to_owned(), serde_json::from_slice(&text).unwrap_or_default());
        }
        if self.version != 0 {
            head.insert("resourceVersion".to_owned(), self.version.to_string().into());
        }
        Value::Object(head)
    }
}

fn write_managers(managers: &[Manager], out: &mut Vec<u8>) {
    out.push(b'[');
    for (place, manager) in managers.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        manager.write(out);
    }
    out.push(b']');
}

/// A pool in which equal texts of objects without their metadata, and of managers, are stored once for a fleet.
#[derive(Debug, Default)]
pub(crate) struct Interner(Mutex<Interned>);

#[derive(Debug, Default)]
struct Interned {
    texts: HashSet<Arc<[u8]>>,
    /// The number of texts at which unused ones are removed.
    sweep_at: usize,
}

impl Interner {
    fn share(&self, text: Vec<u8>) -> Arc<[u8]> {
        let mut interned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = interned.texts.get(text.as_slice()) {
            return known.clone();
        }
        if interned.texts.len() >= interned.sweep_at {
            interned.texts.retain(|text| Arc::strong_count(text) > 1);
            interned.sweep_at = (interned.texts.len() * 2).max(4096);
        }
        let text: Arc<[u8]> = text.into();
        interned.texts.insert(text.clone());
        text
    }
}
