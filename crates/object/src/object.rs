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
    /// `apiVersion` is neither `version` nor `group/version`; the API machinery then reads no kind either.
    #[error("has an apiVersion that is not group/version")]
    BadApiVersion,
}

/// A Kubernetes object: a JSON object that says its kind.
#[derive(Debug, Clone)]
pub struct Object<'a> {
    root: Value<'a>,
    api_version: Cow<'a, str>,
    /// Where group and version meet in `api_version`; `None` when that is not `group/version`.
    slash: Option<usize>,
    kind: Cow<'a, str>,
    metadata: Option<Value<'a>>,
    spec: Option<Value<'a>>,
    status: Option<Value<'a>>,
}

/// The words that most objects bear as `apiVersion` and `kind`: to recognise one costs less than to
/// check that it is UTF-8.
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
    /// Takes `root` for an object.
    pub fn new(root: Value<'a>) -> Result<Object<'a>, ObjectError> {
        if root.kind() != Kind::Object {
            return Err(ObjectError::NotAnObject);
        }
        let object = Object::untyped(root);
        if object.kind.is_empty() {
            return Err(ObjectError::NoKind);
        }
        if object.slash.is_none() && object.api_version.contains('/') {
            return Err(ObjectError::BadApiVersion);
        }
        Ok(object)
    }

    /// Takes `root` for an object that is of this kind unless it says otherwise: servers leave `apiVersion` and
    /// `kind` out of the items of typed lists, and say only the form of what they send as metadata alone.
    ///
    /// # Errors
    /// When `root` is no object, or there is no kind.
    pub fn typed(root: Value<'a>, api_version: &'a str, kind: &'a str) -> Result<Object<'a>, ObjectError> {
        if root.kind() != Kind::Object {
            return Err(ObjectError::NotAnObject);
        }
        let object = Object::untyped(root);
        if object.kind.is_empty() || object.kind == "PartialObjectMetadata" {
            if kind.is_empty() {
                return Err(ObjectError::NoKind);
            }
            let (api_version, kind) = (Cow::Borrowed(api_version), Cow::Borrowed(kind));
            return Ok(Object { slash: slash(&api_version), api_version, kind, ..object });
        }
        Object::new(root)
    }

    /// An object whose kind may be missing.
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
                let (api_version, kind) = (api_version.clone(), Cow::Owned(kind.clone()));
                let slash = slash(&api_version);
                return Ok(Object { api_version, slash, kind, ..Object::untyped(root) });
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

    /// The API group; empty for the core group.
    #[inline]
    pub fn group(&self) -> &str {
        self.slash.map_or("", |slash| &self.api_version[..slash])
    }

    /// The version within the group.
    #[inline]
    pub fn version(&self) -> &str {
        match self.slash {
            Some(slash) => &self.api_version[slash + 1..],
            None => &self.api_version,
        }
    }

    /// The kind; never empty.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// `metadata`.
    pub fn metadata(&self) -> Option<Value<'a>> {
        self.metadata
    }

    /// `metadata.name`, or empty.
    pub fn name(&self) -> Cow<'a, str> {
        self.metadata.and_then(|metadata| metadata.get("name")?.as_str()).unwrap_or_default()
    }

    /// `metadata.namespace`, or empty.
    pub fn namespace(&self) -> Cow<'a, str> {
        self.metadata.and_then(|metadata| metadata.get("namespace")?.as_str()).unwrap_or_default()
    }

    /// `metadata.namespace` and `metadata.name` as they stand there, found in one pass.
    pub fn full_name(&self) -> [Option<Value<'a>>; 2] {
        self.metadata.map_or([None; 2], |metadata| metadata.pick(["namespace", "name"]))
    }

    /// The value at a path of keys.
    #[inline]
    pub fn at(&self, path: &[&str]) -> Option<Value<'a>> {
        let (first, rest) = path.split_first()?;
        self.section(first)?.at(rest)
    }

    /// Returns a member of the whole object.
    #[inline(always)]
    pub fn section(&self, key: &str) -> Option<Value<'a>> {
        match key {
            "metadata" => self.metadata,
            "spec" => self.spec,
            "status" => self.status,
            _ => self.root.get(key),
        }
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

/// Where group and version meet; `None` when that is not `group/version`.
#[inline]
fn slash(api_version: &str) -> Option<usize> {
    let find = |text: &str| text.bytes().position(|byte| byte == b'/');
    find(api_version).filter(|at| find(&api_version[at + 1..]).is_none())
}
