//! The objects and collections that requests address.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::error::{ApiError, Cause};
use crate::kinds::{Resource, Version};
use crate::object_type::ObjectType;
use crate::schema::Schema;
use crate::store::{Object, ShelfId};

/// The object or collection that a request addresses.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) shelf: ShelfId,
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: Arc<str>,
    /// The namespace; empty for cluster-scoped objects, and for a collection in all namespaces.
    pub(crate) namespace: String,
    /// The name of the object; empty for a collection.
    pub(crate) name: String,
}

/// The part of an object that a write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
}

pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl Target {
    pub(crate) fn key(&self) -> String {
        key(&self.namespace, &self.name)
    }

    pub(crate) fn described(&self) -> Option<&Version> {
        self.resource.version(&self.version)
    }

    /// Returns the type of the objects.
    pub(crate) fn object_type(&self) -> &ObjectType {
        static UNKNOWN: OnceLock<ObjectType> = OnceLock::new();
        let Some(version) = self.described() else { return UNKNOWN.get_or_init(|| ObjectType::custom(None)) };
        version.object_type.get_or_init(|| match self.resource.custom {
            true => ObjectType::custom(version.schema.as_ref().map(Schema::tree)),
            false => ObjectType::built_in(&self.resource.group, &self.version, &self.resource.kind),
        })
    }

    pub(crate) fn has_status(&self) -> bool {
        self.described().is_some_and(|version| version.status)
    }

    pub(crate) fn api_version(&self) -> String {
        self.resource.api_version(&self.version)
    }

    pub(crate) fn tree(&self, object: &Object) -> Value {
        object.tree(&self.api_version(), &self.resource.kind)
    }

    /// Returns the beginning of the JSON text of an object, with its kind and `apiVersion`.
    pub(crate) fn item_start(&self) -> String {
        format!("{{\"kind\":{},\"apiVersion\":{},", json!(&*self.resource.kind), json!(self.api_version()))
    }

    pub(crate) fn invalid(&self, name: &str, causes: Vec<Cause>) -> ApiError {
        ApiError::invalid(&self.resource.group, &self.resource.kind, name, causes)
    }
}
