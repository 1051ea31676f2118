//! The command-line argument that names an object.

use std::fmt;
use std::str::FromStr;

use taffrail_object::ObjectKey;

/// Maximum number of namespaces in which an object is read by its kind and name alone: the first ones by name; a note
/// counts the rest.
pub(crate) const MAX_NAMESPACES: usize = 50;

/// Returns a note with the number of namespaces beyond [`MAX_NAMESPACES`], of the `all` namespaces that have an object
/// called `name`; `None` if there are none beyond.
pub(crate) fn beyond_namespaces(name: &str, all: usize) -> Option<String> {
    let more = all.checked_sub(MAX_NAMESPACES).filter(|more| *more > 0)?;
    Some(format!(
        "objects called {name} are in {more} more namespaces; Taffrail reads them in at most {MAX_NAMESPACES}"
    ))
}

/// The argument by which a user names an object: its whole key, or kind and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectArg {
    /// `[CLUSTER/]group/Kind/namespace/name`
    Key {
        /// The name of the cluster; `None` if the text does not include one.
        cluster: Option<String>,
        /// The key of the object.
        key: ObjectKey,
    },
    /// `KIND/NAME`, whose namespace is given elsewhere.
    Named {
        /// The kind in any form that kubectl takes.
        kind: String,
        /// The name of the object.
        name: String,
    },
}

impl ObjectArg {
    /// Makes the argument for an object of this kind and name.
    pub fn named(kind: &str, name: &str) -> ObjectArg {
        ObjectArg::Named { kind: kind.to_owned(), name: name.to_owned() }
    }

    /// Returns the cluster that a key names; `None` if it names none, or if the argument is a kind and a name.
    pub fn cluster(&self) -> Option<&str> {
        match self {
            ObjectArg::Key { cluster, .. } => cluster.as_deref(),
            ObjectArg::Named { .. } => None,
        }
    }

    /// Returns the text from which the name can be parsed again.
    pub fn to_arg(&self) -> String {
        match self {
            ObjectArg::Key { cluster: Some(cluster), key } => format!("{cluster}/{key}"),
            ObjectArg::Key { cluster: None, key } => key.to_string(),
            ObjectArg::Named { kind, name } => format!("{kind}/{name}"),
        }
    }
}

impl FromStr for ObjectArg {
    type Err = String;

    fn from_str(text: &str) -> Result<ObjectArg, String> {
        if let Some((cluster, key)) = ObjectKey::in_cluster(text) {
            return Ok(ObjectArg::Key { cluster: Some(cluster.to_owned()), key });
        }
        if let Ok(key) = text.parse() {
            return Ok(ObjectArg::Key { cluster: None, key });
        }
        match text.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(ObjectArg::named(kind, name))
            }
            _ => Err("write KIND/NAME or [CLUSTER/]group/Kind/namespace/name".to_owned()),
        }
    }
}

impl fmt::Display for ObjectArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectArg::Key { key, .. } => write!(f, "{} {}", key.kind, key.path()),
            ObjectArg::Named { kind, name } => write!(f, "{kind} '{name}'"),
        }
    }
}
