//! A Kubernetes object as rules see it.

use std::borrow::Cow;

use crate::json::{Kind, Value};

/// Why a value is no Kubernetes object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// An array, a string, a number, …
    #[error("is no object")]
    NotAnObject,
    /// `kind` is missing, empty or no string.
    #[error("has no kind")]
    NoKind,
}

/// A Kubernetes object: a JSON object that says its kind.
#[derive(Debug, Clone)]
pub struct Object<'a> {
    root: Value<'a>,
    api_version: Cow<'a, str>,
    kind: Cow<'a, str>,
}

impl<'a> Object<'a> {
    /// Takes `root` for an object.
    pub fn new(root: Value<'a>) -> Result<Object<'a>, ObjectError> {
        if root.kind() != Kind::Object {
            return Err(ObjectError::NotAnObject);
        }
        let text = |key| root.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind: Cow<'a, str> = text("kind");
        if kind.is_empty() {
            return Err(ObjectError::NoKind);
        }
        Ok(Object { root, api_version: text("apiVersion"), kind })
    }

    /// The objects of a list (`List`, `PodList`, …), or `None` if this is no list.
    ///
    /// The API server leaves `apiVersion` and `kind` out of the items of typed lists; an item
    /// without them has those of the list.
    pub fn items(&self) -> Option<impl Iterator<Item = Result<Object<'a>, ObjectError>> + use<'a>> {
        let kind = self.kind.strip_suffix("List")?;
        let items = self.root.get("items")?.items()?;
        let (api_version, kind) = (self.api_version.clone(), kind.to_owned());
        Some(items.map(move |root| {
            let untyped = root.get("kind").is_none() && root.get("apiVersion").is_none();
            if root.kind() == Kind::Object && untyped && !kind.is_empty() {
                return Ok(Object { root, api_version: api_version.clone(), kind: Cow::Owned(kind.clone()) });
            }
            Object::new(root)
        }))
    }

    /// The whole object.
    pub fn root(&self) -> Value<'a> {
        self.root
    }

    /// `apiVersion` as it stands there, or empty.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The API group; empty for the core group and for an `apiVersion` that is not `group/version`.
    pub fn group(&self) -> &str {
        self.group_version().0
    }

    /// The version within the group.
    pub fn version(&self) -> &str {
        self.group_version().1
    }

    fn group_version(&self) -> (&str, &str) {
        match self.api_version.split_once('/') {
            None => ("", &self.api_version),
            Some((_, version)) if version.contains('/') => ("", ""),
            Some(parts) => parts,
        }
    }

    /// Whether `apiVersion` has the form `version` or `group/version`; if not, kstatus knows no rule
    /// for the kind.
    pub(crate) fn has_valid_api_version(&self) -> bool {
        self.api_version.bytes().filter(|&byte| byte == b'/').count() <= 1
    }

    /// The kind; never empty.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// `metadata.name`, or empty.
    pub fn name(&self) -> Cow<'a, str> {
        self.text(&["metadata", "name"])
    }

    /// `metadata.namespace`, or empty.
    pub fn namespace(&self) -> Cow<'a, str> {
        self.text(&["metadata", "namespace"])
    }

    /// The value at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<Value<'a>> {
        self.root.at(path)
    }

    /// The string at a path of keys, or empty.
    pub fn text(&self, path: &[&str]) -> Cow<'a, str> {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The first condition of a type in `status.conditions`.
    pub fn condition(&self, name: &str) -> Option<Value<'a>> {
        let is_it = |condition: &Value<'a>| condition.get("type").is_some_and(|kind| kind.is_str(name));
        self.at(&["status", "conditions"])?.items()?.find(is_it)
    }
}
