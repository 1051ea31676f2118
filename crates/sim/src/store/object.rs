//! An object as JSON text.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

/// The JSON text of an object in two parts: its metadata, and the rest, which many objects of a fleet have in
/// common.
#[derive(Debug, Clone)]
pub(crate) struct Texts {
    /// The `metadata` without the resourceVersion, as a JSON object.
    head: Arc<[u8]>,
    /// The members other than apiVersion, kind and metadata, as a JSON object.
    tail: Arc<[u8]>,
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
        if !managers {
            head.remove("managedFields");
        }
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
        Texts { head: head.into(), tail: interner.share(tail) }
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

    /// Returns the `metadata` without the resourceVersion.
    pub(crate) fn head(&self) -> &[u8] {
        &self.texts.head
    }

    /// Returns the members other than apiVersion, kind and metadata.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.texts.tail
    }

    /// Returns true if the object has exactly these texts.
    pub(crate) fn says(&self, texts: &Texts) -> bool {
        self.texts.head == texts.head && self.texts.tail == texts.tail
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
        if self.version == 0 {
            out.extend_from_slice(self.head());
            return;
        }
        match self.head() {
            [rest @ .., b'}'] if rest.len() > 1 => {
                out.extend_from_slice(rest);
                out.push(b',');
            }
            _ => out.push(b'{'),
        }
        out.extend_from_slice(format!("\"resourceVersion\":\"{}\"}}", self.version).as_bytes());
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
        if self.version != 0 {
            head.insert("resourceVersion".to_owned(), self.version.to_string().into());
        }
        Value::Object(head)
    }
}

/// A pool in which equal texts of objects without their metadata are stored once for a fleet.
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
