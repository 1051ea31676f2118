//! Declared sets: the objects that texts in YAML and JSON declare, read as kubectl reads them.
//!
//! [`read`] takes the contents of files and returns a [`DeclaredSet`], or all errors of all files at once
//! ([`ManifestErrors`]). Each object knows its file and line, and so does each option of Argo CD, Flux, Helm, kapp,
//! kpt and Config Sync on it ([`SyncOptions`]): a misspelt option is an error that names the nearest.
//!
//! | module | holds |
//! |---|---|
//! | `documents` | the documents of a file, by the rules of kubectl's decoder |
//! | `objects` | lists opened, kinds and names checked |
//! | `set` | scopes of kinds, the default namespace, objects declared twice |
//! | `options`, `annotations` | options and how annotations state them |
//! | `changes`, `substitution` | kapp's rules about the order of changes; fields that take their values from live objects |
//! | `errors`, `near` | errors with places and hints; words similar to a misspelt one |

mod annotations;
#[cfg(test)]
mod beside_go;
mod changes;
mod documents;
mod errors;
mod near;
mod objects;
mod options;
mod set;
mod substitution;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use taffrail_object::{GroupKind, ObjectKey};

pub(crate) use changes::CHANGE_RULE;
pub use changes::{ChangeAction, ChangeGroup, ChangeRule};
pub use errors::{ManifestError, ManifestErrorKind, ManifestErrors, ManifestWarning, ManifestWarningKind};
pub use options::{ApplyMode, HookDeletePolicy, HookPhase, Removal, Setting, StatedChanges, SyncOptions};
pub use set::built_in_scope;
pub(crate) use set::{defined_kind, is_definition};
pub use substitution::{FieldSubstitution, SubstitutionError, substitute};

/// The maximum size of a file, in bytes; a larger one is an error.
pub const MAX_FILE_BYTES: usize = 64 << 20;

/// The maximum size of an object as JSON without white space, in bytes: about twice what etcd stores. A larger one is an
/// error.
pub const MAX_OBJECT_BYTES: usize = 3 << 20;

/// The maximum number of objects in a set; a set of more is an error.
pub const MAX_OBJECTS: usize = 100_000;

/// The maximum nesting of lists and maps in a document, in levels; a deeper document is an error.
pub const MAX_NESTING: usize = 200;

/// A file of manifests.
#[derive(Debug, Clone, Copy)]
pub struct ManifestFile<'t> {
    /// The name of the file in messages: a path, or `stdin`.
    pub path: &'t str,
    /// The content: YAML documents, or JSON objects one after another.
    pub content: &'t [u8],
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileLine {
    /// The name of the file.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u64,
}

/// Formats `deploy/web.yaml:12`.
impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The scope of a kind: its objects live in namespaces, or in the cluster as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindScope {
    /// Each object has a namespace.
    Namespaced,
    /// No object has a namespace.
    Cluster,
}

/// The objects that a set of files declares.
#[derive(Debug, Default)]
pub struct DeclaredSet {
    /// The objects, in the order of the files.
    pub objects: Vec<DeclaredObject>,
    /// Doubtful statements that have no effect, at most 1,000.
    pub warnings: Vec<ManifestWarning>,
}

/// An object as its manifest declares it.
///
/// Its value may be a Secret: `Debug` leaves it out.
#[derive(Clone)]
pub struct DeclaredObject {
    /// The key. Its namespace is the one that the scope of the kind demands; its name is empty if the server generates
    /// it.
    pub key: ObjectKey,
    /// `apiVersion`.
    pub api_version: String,
    /// `metadata.generateName` of a hook without a name.
    pub generate_name: Option<String>,
    /// The object, with the namespace of its key.
    pub value: Value,
    /// The line on which the object begins.
    pub place: FileLine,
    /// The options of delivery tools that the object's annotations and labels state.
    pub options: SyncOptions,
}

impl DeclaredObject {
    /// Returns the kind that the object defines; `None` if it is no CustomResourceDefinition, or one that does not name it.
    pub fn defines(&self) -> Option<GroupKind> {
        set::defined_kind(&self.key, &self.value)
    }

    /// Adds an annotation to the object, or replaces its value.
    pub fn annotate(&mut self, key: &str, value: &str) {
        let Some(metadata) = self.value.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        let annotations = metadata.entry("annotations").or_insert(Value::Null);
        if !annotations.is_object() {
            *annotations = Value::Object(serde_json::Map::new());
        }
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(key.to_owned(), Value::String(value.to_owned()));
        }
    }
}

impl fmt::Debug for DeclaredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeclaredObject")
            .field("key", &self.key)
            .field("api_version", &self.api_version)
            .field("generate_name", &self.generate_name)
            .field("place", &self.place)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Reads the objects that files declare.
///
/// Namespaced objects without a namespace get `default_namespace`; a namespace of cluster-scoped objects is dropped, as
/// the API server does. `scope_of` tells the scope of the kinds that the cluster serves, `None` for others; kinds that
/// CRDs of the set define have the scope that their CRD states.
///
/// # Errors
///
/// All errors of all files: what is not YAML or JSON, exceeds a limit, is no valid object, is declared twice, has a kind
/// that neither the cluster nor the set knows, or a misspelt option.
pub fn read(
    files: &[ManifestFile<'_>],
    default_namespace: &str,
    scope_of: &dyn Fn(&GroupKind) -> Option<KindScope>,
) -> Result<DeclaredSet, ManifestErrors> {
    let mut found = objects::Found::default();
    for file in files {
        if !found.read(file) {
            break;
        }
    }
    set::finish(found, default_namespace, scope_of)
}
