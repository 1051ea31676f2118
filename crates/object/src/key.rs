//! Keys of objects and kinds.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::object::Object;

/// A kind within its API group, without a version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupKind {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Kind.
    pub kind: String,
}

impl GroupKind {
    /// Creates a [`GroupKind`] from an API group (empty for the core group) and a kind.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> GroupKind {
        GroupKind { group: group.into(), kind: kind.into() }
    }
}

/// Formats `group/Kind`; the core group is empty: `/Pod`.
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.kind)
    }
}

/// The key of one object within a cluster: API group, kind, namespace and name.
///
/// The API serves an object in several versions; it stays one object, so a key has no version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectKey {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(default)]
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// Creates a key from its parts; `namespace` is empty for cluster-scoped objects.
    pub fn new(
        group: impl Into<String>,
        kind: impl Into<String>,
        namespace: impl Into<String>,
        name: impl Into<String>,
    ) -> ObjectKey {
        ObjectKey { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    /// Returns the key of `object`; a missing namespace or name is empty in it.
    pub fn of(object: &Object<'_>) -> ObjectKey {
        ObjectKey::new(object.group(), object.kind(), object.namespace(), object.name())
    }

    /// Returns a borrowed form of the key.
    #[inline]
    pub fn as_ref(&self) -> ObjectKeyRef<'_> {
        ObjectKeyRef { group: &self.group, kind: &self.kind, namespace: &self.namespace, name: &self.name }
    }

    /// Splits `CLUSTER/group/Kind/namespace/name` into the name of the cluster, which may contain slashes, and the key
    /// of an object in it. Returns `None` if a part is missing, or cluster, kind or name is empty.
    pub fn in_cluster(text: &str) -> Option<(&str, ObjectKey)> {
        let (at, _) = text.rmatch_indices('/').nth(3)?;
        let (cluster, key) = (&text[..at], &text[at + 1..]);
        key.parse().ok().map(|key| (cluster, key)).filter(|_| !cluster.is_empty())
    }

    /// Returns the group and kind.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&*self.group, &*self.kind)
    }

    /// Formats `namespace/name` for messages, or the name alone if there is no namespace.
    pub fn path(&self) -> String {
        self.as_ref().path()
    }
}

/// Formats `group/Kind/namespace/name`: `apps/Deployment/shop/web`. The core group is empty (`/Service/shop/web`), and
/// so is the namespace of cluster-scoped objects.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// The error for a text that is not the key of an object; holds the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not the name of an object; write group/Kind/namespace/name, such as apps/Deployment/shop/web, /Service/shop/web or \
     rbac.authorization.k8s.io/ClusterRole//view"
)]
pub struct InvalidObjectKey(pub String);

impl FromStr for ObjectKey {
    type Err = InvalidObjectKey;

    fn from_str(text: &str) -> Result<ObjectKey, InvalidObjectKey> {
        let invalid = || InvalidObjectKey(text.to_owned());
        let mut parts = text.split('/');
        let mut next = || parts.next().ok_or_else(invalid);
        let key = ObjectKey::new(next()?, next()?, next()?, next()?);
        if parts.next().is_some() || key.kind.is_empty() || key.name.is_empty() {
            return Err(invalid());
        }
        Ok(key)
    }
}

/// An object of an inventory: what a delivery tool noted when it applied the object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InventoryEntry {
    /// Its key.
    #[serde(flatten)]
    pub key: ObjectKey,
    /// The UID of the object that was applied; `None` where the inventory holds names alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// An [`ObjectKey`] that borrows its parts. Keys order by group, kind, namespace and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectKeyRef<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

impl<'a> ObjectKeyRef<'a> {
    /// Creates a key from its parts; `namespace` is empty for cluster-scoped objects.
    #[inline]
    pub fn new(group: &'a str, kind: &'a str, namespace: &'a str, name: &'a str) -> ObjectKeyRef<'a> {
        ObjectKeyRef { group, kind, namespace, name }
    }

    /// Returns the group and kind.
    pub fn group_kind(self) -> GroupKind {
        GroupKind::new(self.group, self.kind)
    }

    /// Formats `namespace/name`, or the name alone where there is no namespace; for sentences.
    pub fn path(self) -> String {
        if self.namespace.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// Returns an owned copy of the key.
    pub fn to_owned(self) -> ObjectKey {
        ObjectKey::new(self.group, self.kind, self.namespace, self.name)
    }
}

/// Formats `group/Kind/namespace/name`, as [`ObjectKey`] does.
impl fmt::Display for ObjectKeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.group, self.kind, self.namespace, self.name)
    }
}

impl<'a> From<&'a ObjectKey> for ObjectKeyRef<'a> {
    #[inline]
    fn from(key: &'a ObjectKey) -> ObjectKeyRef<'a> {
        key.as_ref()
    }
}

/// An [`ObjectKey`] or [`ObjectKeyRef`]. `&key as &dyn AsObjectKey` looks up a borrowed key in a map whose keys are
/// [`ObjectKey`]s, without cloning it.
pub trait AsObjectKey {
    /// Returns a borrowed form of the key.
    fn as_object_key(&self) -> ObjectKeyRef<'_>;
}

impl AsObjectKey for ObjectKey {
    #[inline]
    fn as_object_key(&self) -> ObjectKeyRef<'_> {
        self.as_ref()
    }
}

impl AsObjectKey for ObjectKeyRef<'_> {
    #[inline]
    fn as_object_key(&self) -> ObjectKeyRef<'_> {
        *self
    }
}

impl<'a> Borrow<dyn AsObjectKey + 'a> for ObjectKey {
    #[inline]
    fn borrow(&self) -> &(dyn AsObjectKey + 'a) {
        self
    }
}

impl<'a> Borrow<dyn AsObjectKey + 'a> for Arc<ObjectKey> {
    #[inline]
    fn borrow(&self) -> &(dyn AsObjectKey + 'a) {
        &**self
    }
}

impl PartialEq for dyn AsObjectKey + '_ {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.as_object_key() == other.as_object_key()
    }
}

impl Eq for dyn AsObjectKey + '_ {}

impl PartialOrd for dyn AsObjectKey + '_ {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn AsObjectKey + '_ {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_object_key().cmp(&other.as_object_key())
    }
}

impl Hash for dyn AsObjectKey + '_ {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_object_key().hash(state);
    }
}

/// The part of an object that is read, kept or sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Projection {
    /// The whole object.
    #[default]
    Full,
    /// The `metadata` alone. A missing `status` then proves nothing.
    Metadata,
}

impl Projection {
    /// Returns true if this part of an object contains all of the part `wanted`: the full object contains every part.
    pub fn covers(self, wanted: Projection) -> bool {
        self == Projection::Full || wanted == Projection::Metadata
    }
}
