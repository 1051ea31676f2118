//! The command-line argument that names an object.

use std::fmt;
use std::str::FromStr;

use taffrail_cluster::Discovery;
use taffrail_object::{ApiResource, ObjectKey};

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

/// The argument by which a user names the object that holds an inventory: `[KIND/]NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryArg {
    /// The kind in any form that kubectl takes; `None` for a ResourceGroup, or a ConfigMap where the cluster has no
    /// ResourceGroups.
    pub kind: Option<String>,
    /// The name of the object.
    pub name: String,
}

/// The reason why a text does not name an inventory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' does not name an inventory; write [KIND/]NAME")]
pub struct InvalidInventoryArg(pub String);

impl FromStr for InventoryArg {
    type Err = InvalidInventoryArg;

    fn from_str(text: &str) -> Result<InventoryArg, InvalidInventoryArg> {
        let (kind, name) = text.split_once('/').map_or((None, text), |(kind, name)| (Some(kind), name));
        if name.is_empty() || name.contains('/') || kind == Some("") {
            return Err(InvalidInventoryArg(text.to_owned()));
        }
        Ok(InventoryArg { kind: kind.map(str::to_owned), name: name.to_owned() })
    }
}

impl fmt::Display for InventoryArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Some(kind) => write!(f, "{kind}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl InventoryArg {
    /// Returns the kind, given or default; `discovery` is `None` before discovery.
    pub fn kind(&self, discovery: Option<&Discovery>) -> &str {
        match (&self.kind, discovery) {
            (Some(kind), _) => kind,
            (None, Some(discovery)) if discovery.kind("kpt.dev", "ResourceGroup").is_none() => "configmap",
            (None, _) => "resourcegroup.kpt.dev",
        }
    }

    /// Returns the resource and the key of the object in `namespace`; `None` if the cluster has no such kind.
    pub fn find(&self, discovery: &Discovery, namespace: &str) -> Option<(ApiResource, ObjectKey)> {
        let resource = discovery.resolve(self.kind(Some(discovery)))?;
        let namespace = if resource.namespaced { namespace } else { "" };
        let key = ObjectKey::new(&*resource.group, &*resource.kind, namespace, &*self.name);
        Some((resource, key))
    }
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
