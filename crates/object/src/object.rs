//! Kubernetes objects: JSON objects with a kind, alone or as items of a list.

use std::borrow::Cow;

use crate::json::{self, DocumentBuilder, Kind, OwnedDocument, TooDeep, Value, write_string};

/// The annotation in which `kubectl apply`, Argo CD and others keep a copy of the object as they applied it, perhaps
/// with Secret values.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The annotation in which replicas that elect a leader record it; the leader writes it every few seconds.
pub const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// The reasons why a JSON value is not a Kubernetes object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// A value that is not a JSON object.
    #[error("the value is not a JSON object")]
    NotAnObject,
    /// A missing or empty `kind`, or one that is not a string.
    #[error("the object has no kind")]
    NoKind,
    /// An `apiVersion` that is neither `version` nor `group/version`; the API machinery then reads no kind either.
    #[error("the object's apiVersion is neither version nor group/version")]
    BadApiVersion,
}

/// A Kubernetes object: a JSON object with a kind.
#[derive(Debug, Clone)]
pub struct Object<'a> {
    root: Value<'a>,
    api_version: Cow<'a, str>,
    /// The position of the slash in `api_version`; `None` if that is not `group/version`.
    slash: Option<usize>,
    kind: Cow<'a, str>,
    metadata: Option<Value<'a>>,
    spec: Option<Value<'a>>,
    status: Option<Value<'a>>,
}

/// Returns the string `value` if it is one of the frequent values of `apiVersion` and `kind` listed here, else `None`:
/// comparing bytes is cheaper than checking UTF-8.
fn usual_word(value: Value<'_>) -> Option<&'static str> {
    Some(match value.text()? {
        br#""v1""# => "v1",
        br#""apps/v1""# => "apps/v1",
        br#""batch/v1""# => "batch/v1",
        br#""policy/v1""# => "policy/v1",
        br#""rbac.authorization.k8s.io/v1""# => "rbac.authorization.k8s.io/v1",
        br#""networking.k8s.io/v1""# => "networking.k8s.io/v1",
        br#""autoscaling/v2""# => "autoscaling/v2",
        br#""apiextensions.k8s.io/v1""# => "apiextensions.k8s.io/v1",
        br#""Pod""# => "Pod",
        br#""Deployment""# => "Deployment",
        br#""ReplicaSet""# => "ReplicaSet",
        br#""StatefulSet""# => "StatefulSet",
        br#""DaemonSet""# => "DaemonSet",
        br#""Job""# => "Job",
        br#""CronJob""# => "CronJob",
        br#""Service""# => "Service",
        br#""ConfigMap""# => "ConfigMap",
        br#""Secret""# => "Secret",
        br#""ServiceAccount""# => "ServiceAccount",
        br#""PersistentVolumeClaim""# => "PersistentVolumeClaim",
        br#""PodDisruptionBudget""# => "PodDisruptionBudget",
        br#""CustomResourceDefinition""# => "CustomResourceDefinition",
        br#""Ingress""# => "Ingress",
        br#""Role""# => "Role",
        br#""RoleBinding""# => "RoleBinding",
        br#""HorizontalPodAutoscaler""# => "HorizontalPodAutoscaler",
        _ => return None,
    })
}

impl<'a> Object<'a> {
    /// Interprets `root` as an object.
    ///
    /// # Errors
    /// If it is not a JSON object, has no kind, or has an `apiVersion` with more than one slash. A missing `apiVersion`
    /// is accepted.
    #[inline]
    pub fn new(root: Value<'a>) -> Result<Object<'a>, ObjectError> {
        if root.kind() != Kind::Object {
            return Err(ObjectError::NotAnObject);
        }
        Object::untyped(root).checked()
    }

    /// Returns the object; an error if it has no kind, or an `apiVersion` with more than one slash.
    #[inline]
    fn checked(self) -> Result<Object<'a>, ObjectError> {
        if self.kind.is_empty() {
            return Err(ObjectError::NoKind);
        }
        if self.slash.is_none() && self.api_version.contains('/') {
            return Err(ObjectError::BadApiVersion);
        }
        Ok(self)
    }

    /// Interprets `root` as an object whose kind may be missing, as items of lists may be.
    fn untyped(root: Value<'a>) -> Object<'a> {
        let keys = ["apiVersion", "kind", "metadata", "spec", "status"];
        let [api_version, kind, metadata, spec, status] = root.pick(keys);
        let word = |value: Option<Value<'a>>| match value.and_then(usual_word) {
            Some(word) => Cow::Borrowed(word),
            None => value.and_then(Value::as_str).unwrap_or_default(),
        };
        let api_version = word(api_version);
        Object { root, slash: slash(&api_version), api_version, kind: word(kind), metadata, spec, status }
    }

    /// Iterates over the items of a list (`List`, `PodList`, …), each an object or the reason why it is not one;
    /// returns `None` if the kind does not end in `List`, or there is no array `items`. Items without a kind get theirs
    /// from the list, see [`ItemKind`].
    #[inline]
    pub fn items(&self) -> Option<impl Iterator<Item = Result<Object<'a>, ObjectError>> + use<'a>> {
        let kind = ItemKind::of_list(self.api_version.clone(), self.kind.clone())?;
        let items = self.root.get("items")?.items()?;
        Some(items.map(move |root| kind.object(root)))
    }

    /// Returns the whole object as a JSON value.
    #[inline]
    pub fn root(&self) -> Value<'a> {
        self.root
    }

    /// Returns `apiVersion` as it is written; empty if the object has none.
    #[inline]
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Returns the API group; empty for the core group.
    #[inline]
    pub fn group(&self) -> &str {
        self.slash.map_or("", |slash| &self.api_version[..slash])
    }

    /// Returns the version within the group; empty if the object has no `apiVersion`.
    #[inline]
    pub fn version(&self) -> &str {
        match self.slash {
            Some(slash) => &self.api_version[slash + 1..],
            None => &self.api_version,
        }
    }

    /// Returns the kind; never empty.
    #[inline]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns `metadata`; `None` if the object lacks it.
    #[inline]
    pub fn metadata(&self) -> Option<Value<'a>> {
        self.metadata
    }

    /// Returns the entries of `metadata.managedFields`: what each field manager wrote, and when.
    pub fn managed_fields(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        self.at(&["metadata", "managedFields"]).and_then(Value::items).into_iter().flatten()
    }

    /// Returns `metadata.name`; empty if the object has none.
    #[inline]
    pub fn name(&self) -> Cow<'a, str> {
        self.metadata.and_then(|metadata| metadata.get("name")?.as_str()).unwrap_or_default()
    }

    /// Returns `metadata.namespace`; empty if the object has none.
    #[inline]
    pub fn namespace(&self) -> Cow<'a, str> {
        self.metadata.and_then(|metadata| metadata.get("namespace")?.as_str()).unwrap_or_default()
    }

    /// Returns the values of `metadata.namespace` and `metadata.name`, in this order, found in one pass; `None` for an
    /// absent one.
    #[inline]
    pub fn full_name(&self) -> [Option<Value<'a>>; 2] {
        self.metadata.map_or([None; 2], |metadata| metadata.pick(["namespace", "name"]))
    }

    /// Returns the value at a path of keys; `None` if a part of it does not exist or the path is empty.
    #[inline]
    pub fn at(&self, path: &[&str]) -> Option<Value<'a>> {
        let (first, rest) = path.split_first()?;
        self.section(first)?.at(rest)
    }

    /// Returns the member `key` at the top level of the object, such as `spec`; `None` if the object lacks it.
    #[inline(always)]
    pub fn section(&self, key: &str) -> Option<Value<'a>> {
        match key {
            "metadata" => self.metadata,
            "spec" => self.spec,
            "status" => self.status,
            _ => self.root.get(key),
        }
    }

    /// Returns the string at a path of keys; empty if there is no string.
    #[inline]
    pub fn text(&self, path: &[&str]) -> Cow<'a, str> {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// Builds a `serde_json` tree of the object, and sets its `apiVersion` and `kind`, which items of typed lists lack.
    ///
    /// # Errors
    /// If the object nests deeper than 128 levels.
    pub fn to_tree(&self) -> Result<serde_json::Value, TooDeep> {
        let mut tree = self.root.to_tree()?;
        if let Some(members) = tree.as_object_mut() {
            members.insert("apiVersion".to_owned(), self.api_version().into());
            members.insert("kind".to_owned(), self.kind().into());
        }
        Ok(tree)
    }

    /// Returns the object as JSON text with its `apiVersion` and `kind`; borrows the original text if that contains
    /// them.
    ///
    /// # Errors
    /// If the object is a view of a `serde_json` tree and nests deeper than 128 levels.
    pub fn to_json(&self) -> Result<Cow<'a, [u8]>, TooDeep> {
        let Some(text) = self.root.text() else {
            return self.to_tree().map(|tree| Cow::Owned(tree.to_string().into_bytes()));
        };
        let says = |key: &str, word: &str| self.root.get(key).is_some_and(|value| value.is_str(word));
        if says("apiVersion", &self.api_version) && says("kind", &self.kind) {
            return Ok(Cow::Borrowed(text));
        }
        // The members are appended to the text: a text may nest deeper than a tree can.
        Ok(Cow::Owned(ItemKind::new(&self.api_version, &self.kind).said_by(text)))
    }

    /// Copies the object into a document of its own, with its `apiVersion` and `kind`; the copy reuses the index of the
    /// original instead of parsing again.
    ///
    /// # Errors
    ///
    /// If the copy would be 4 GiB long or more, the limit of the parser.
    pub fn to_document(&self) -> Result<OwnedDocument, json::Error> {
        let says = |key: &str, word: &str| self.root.get(key).is_some_and(|value| value.is_str(word));
        if says("apiVersion", &self.api_version) && says("kind", &self.kind) {
            let mut copy = DocumentBuilder::new(self.root.text().map_or(0, <[u8]>::len));
            copy.members(self.root);
            return copy.finish();
        }
        ItemKind::new(&self.api_version, &self.kind).document(self.root)
    }

    /// Returns the first item of `status.conditions` whose `type` is `name`; `None` if there is none.
    #[inline]
    pub fn condition(&self, name: &str) -> Option<Value<'a>> {
        let is_it = |condition: &Value<'a>| condition.get("type").is_some_and(|kind| kind.is_str(name));
        self.at(&["status", "conditions"])?.items()?.find(is_it)
    }

    /// Returns true if the object has the condition `name` with this status: `True`, `False` or `Unknown`.
    pub fn condition_is(&self, name: &str, status: &str) -> bool {
        self.condition(name).is_some_and(|it| it.get("status").is_some_and(|own| own.is_str(status)))
    }
}

/// The kind and `apiVersion` given to the items of a list that do not state their own.
///
/// Servers omit `apiVersion` and `kind` in the items of typed lists, and give them only the kind
/// `PartialObjectMetadata` if they send metadata alone. An item with one of the two fields has its own kind, as in
/// client-go.
#[derive(Debug, Clone)]
pub struct ItemKind<'a> {
    api_version: Cow<'a, str>,
    kind: Cow<'a, str>,
}

impl<'a> ItemKind<'a> {
    /// Creates the kind for items that have this `apiVersion` and kind, such as `apps/v1` and `Deployment`.
    #[inline]
    pub fn new(api_version: &'a str, kind: &'a str) -> ItemKind<'a> {
        ItemKind { api_version: api_version.into(), kind: kind.into() }
    }

    /// Removes the suffix `List` from the kind of a list: the kind of a `PodList`'s items is `Pod`. That of a `List` is
    /// empty, because its items state their own. Returns `None` if `kind` does not end in `List`.
    pub fn of_list(api_version: Cow<'a, str>, kind: Cow<'a, str>) -> Option<ItemKind<'a>> {
        let length = kind.strip_suffix("List")?.len();
        let kind = match kind {
            Cow::Borrowed(kind) => Cow::Borrowed(&kind[..length]),
            Cow::Owned(mut kind) => {
                kind.truncate(length);
                Cow::Owned(kind)
            }
        };
        Some(ItemKind { api_version, kind })
    }

    /// Returns the kind; empty if the items state their own.
    #[inline]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the `apiVersion` of the items.
    #[inline]
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Returns true if an item with this `api_version` and `kind` gets its kind from the list: if both are empty and
    /// the list's items have one kind.
    #[inline]
    pub fn is_of(&self, api_version: &str, kind: &str) -> bool {
        !self.kind.is_empty() && api_version.is_empty() && kind.is_empty()
    }

    /// Returns the JSON text `item` with this `apiVersion` and kind appended as its last members, which hide members of
    /// the same name before them. A text that is not a JSON object is returned without surrounding white space.
    pub fn said_by(&self, item: &[u8]) -> Vec<u8> {
        let text = item.trim_ascii();
        let Some(members) = text.strip_suffix(b"}") else { return text.to_vec() };
        let mut out = Vec::with_capacity(text.len() + self.api_version.len() + self.kind.len() + 32);
        out.extend_from_slice(members);
        if !members.trim_ascii_end().ends_with(b"{") {
            out.push(b',');
        }
        out.extend_from_slice(b"\"apiVersion\":");
        write_string(&self.api_version, &mut out);
        out.extend_from_slice(b",\"kind\":");
        write_string(&self.kind, &mut out);
        out.push(b'}');
        out
    }

    /// Copies an item into a document with this `apiVersion` and kind appended, as [`ItemKind::said_by`] does; indexed
    /// parts are not parsed again. An item that is not a JSON object is copied unchanged, or becomes `null` if it is a
    /// view of a `serde_json` tree.
    ///
    /// # Errors
    ///
    /// If the copy would be 4 GiB long or more, the limit of the parser.
    pub fn document(&self, item: Value<'_>) -> Result<OwnedDocument, json::Error> {
        let length = item.text().map_or(0, <[u8]>::len);
        if item.kind() != Kind::Object {
            return OwnedDocument::parse(item.text().unwrap_or(b"null"));
        }
        let mut copy = DocumentBuilder::new(length + self.api_version.len() + self.kind.len() + 32);
        copy.members(item);
        copy.string("apiVersion", &self.api_version);
        copy.string("kind", &self.kind);
        copy.finish()
    }

    /// Interprets an item as an object. It gets this `apiVersion` and kind if it states neither, or states the kind
    /// `PartialObjectMetadata`; this requires a kind that is not empty.
    ///
    /// # Errors
    /// If it is not a JSON object, or has no kind or an invalid `apiVersion` of its own.
    #[inline]
    pub fn object(&self, item: Value<'a>) -> Result<Object<'a>, ObjectError> {
        if item.kind() != Kind::Object {
            return Err(ObjectError::NotAnObject);
        }
        let object = Object::untyped(item);
        let is_form = !self.kind.is_empty() && object.kind == "PartialObjectMetadata";
        if is_form || self.is_of(&object.api_version, &object.kind) {
            let slash = slash(&self.api_version);
            return Ok(Object {
                api_version: self.api_version.clone(),
                slash,
                kind: self.kind.clone(),
                ..object
            });
        }
        object.checked()
    }
}

/// Returns the byte position of the only slash in `api_version`; `None` if it has no slash or several.
#[inline]
fn slash(api_version: &str) -> Option<usize> {
    let find = |text: &str| text.bytes().position(|byte| byte == b'/');
    find(api_version).filter(|at| find(&api_version[at + 1..]).is_none())
}
