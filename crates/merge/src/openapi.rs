//! Schemas from the OpenAPI v3 documents of an API server.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map as JsonMap, Value};

use crate::schema::{Atom, ListType, MapField, MapType, Relationship, Scalar, Schema, TypeRef};
use crate::typed::MAX_DEPTH;

/// The name of the type of quantities, which may be texts or numbers.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// The name of the type of values that are objects of any kind.
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// A document that is no OpenAPI document with schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the document has no 'components.schemas'")]
pub struct OpenApiError;

/// The group, version and kind of objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// The types of an OpenAPI v3 document of an API server, such as that of one group and version.
#[derive(Debug, Clone)]
pub struct OpenApi {
    /// The types by their names.
    pub schema: Schema,
    /// The name of the type of each kind.
    pub kinds: HashMap<GroupVersionKind, String>,
    /// The types that were left out, with the reasons.
    pub problems: BTreeMap<String, Vec<String>>,
}

impl OpenApi {
    /// Reads a document. A type that cannot be converted is left out, and no other one suffers.
    ///
    /// # Errors
    /// If there are no types in it.
    pub fn read(document: &Value) -> Result<OpenApi, OpenApiError> {
        let models =
            document.pointer("/components/schemas").and_then(Value::as_object).ok_or(OpenApiError)?;
        let mut read = OpenApi::empty();
        let untyped = Atom { scalar: Some(Scalar::Untyped), ..Atom::default() };
        for (name, model) in models {
            let atom = match &**name {
                QUANTITY => untyped.clone(),
                RAW => read.schema.types.get(Schema::ATOMIC).cloned().unwrap_or_default(),
                _ if reference(model).is_some() => continue,
                _ => {
                    let mut problems = Vec::new();
                    let atom = Conversion { problems: &mut problems }.atom(model, false, 0);
                    if !problems.is_empty() {
                        read.problems.insert(name.clone(), problems);
                        continue;
                    }
                    atom
                }
            };
            let kinds = model.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
            for kind in kinds.into_iter().flatten() {
                let text = |key: &str| kind.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                let kind =
                    GroupVersionKind { group: text("group"), version: text("version"), kind: text("kind") };
                read.kinds.insert(kind, name.clone());
            }
            read.schema.types.insert(name.clone(), atom);
        }
        Ok(read)
    }

    /// Returns the types of no document: only those of objects of which nothing is known.
    pub(crate) fn empty() -> OpenApi {
        OpenApi { schema: Schema::deduced(), kinds: HashMap::new(), problems: BTreeMap::new() }
    }

    /// Returns the type of a kind; `None` if the document does not have it.
    pub fn type_of(&self, kind: &GroupVersionKind) -> Option<TypeRef> {
        self.kinds.get(kind).map(|name| TypeRef::named(name))
    }
}

/// The conversion of one type.
struct Conversion<'c> {
    problems: &'c mut Vec<String>,
}

impl Conversion<'_> {
    /// Converts a schema; `keeps` is true if fields that it does not name are kept, as one above says.
    fn atom(&mut self, model: &Value, keeps: bool, depth: usize) -> Atom {
        if depth > MAX_DEPTH {
            self.problems.push(format!("types are nested deeper than {MAX_DEPTH}"));
            return Atom::default();
        }
        let keeps = keeps || model.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
        let scalar = |scalar| Atom { scalar: Some(scalar), ..Atom::default() };
        match model.get("type").and_then(Value::as_str) {
            // Any value.
            None => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(Box::new(self.list(model, keeps, depth))),
                map: Some(Box::new(self.map(model, keeps, depth))),
            },
            Some("object") => Atom { map: Some(Box::new(self.map(model, keeps, depth))), ..Atom::default() },
            Some("array") => Atom { list: Some(Box::new(self.list(model, keeps, depth))), ..Atom::default() },
            Some("integer" | "number") => scalar(Scalar::Numeric),
            Some("boolean") => scalar(Scalar::Boolean),
            Some("string") => match model.get("format").and_then(Value::as_str) {
                None | Some("" | "byte") => scalar(Scalar::String),
                Some(_) => scalar(Scalar::Untyped),
            },
            Some(other) => {
                self.problems.push(format!("the type '{other}' is not known"));
                scalar(Scalar::Untyped)
            }
        }
    }

    fn type_ref(&mut self, model: &Value, keeps: bool, depth: usize) -> TypeRef {
        match reference(model) {
            Some(name) => TypeRef { relationship: self.of_map(model), ..TypeRef::named(name) },
            None => {
                TypeRef { inlined: Some(Box::new(self.atom(model, keeps, depth + 1))), ..TypeRef::default() }
            }
        }
    }

    fn map(&mut self, model: &Value, keeps: bool, depth: usize) -> MapType {
        let properties = model.get("properties").and_then(Value::as_object);
        let fields = properties.into_iter().flatten().map(|(name, member)| {
            let field = MapField {
                of: self.type_ref(member, keeps, depth),
                default: member.get("default").filter(|default| !default.is_null()).cloned(),
            };
            (name.clone(), field)
        });
        let fields = fields.collect();
        let element = match model.get("additionalProperties") {
            // Without any field it may have each.
            None if keeps || properties.is_none_or(JsonMap::is_empty) => TypeRef::named(Schema::DEDUCED),
            None | Some(Value::Bool(false)) => TypeRef::default(),
            Some(Value::Bool(true)) => TypeRef::named(Schema::DEDUCED),
            Some(model) => self.type_ref(model, keeps, depth),
        };
        MapType { fields, element, relationship: self.of_map(model) }
    }

    fn list(&mut self, model: &Value, keeps: bool, depth: usize) -> ListType {
        let (relationship, keys) = self.of_list(model);
        let element = match model.get("items") {
            Some(items) => self.type_ref(items, keeps, depth),
            None => {
                if model.get("type").is_some() {
                    self.problems.push("an array has no 'items'".to_owned());
                }
                TypeRef::named(Schema::ATOMIC)
            }
        };
        ListType { element, relationship: Some(relationship), keys }
    }

    fn of_map(&mut self, model: &Value) -> Option<Relationship> {
        match model.get("x-kubernetes-map-type") {
            None => None,
            Some(Value::String(word)) if word == "atomic" => Some(Relationship::Atomic),
            Some(Value::String(word)) if word == "granular" => Some(Relationship::Separable),
            Some(other) => {
                self.problems.push(format!("the map type {other} is not known"));
                None
            }
        }
    }

    /// Returns the relation of the items of a list, and their keys; atomic where the schema says nothing.
    fn of_list(&mut self, model: &Value) -> (Relationship, Vec<String>) {
        let text = |key: &str| model.get(key).map(|value| value.as_str().unwrap_or_default());
        match (text("x-kubernetes-list-type"), text("x-kubernetes-patch-strategy")) {
            (Some("atomic"), _) | (None, None | Some("retainKeys")) => (Relationship::Atomic, Vec::new()),
            (Some("set"), _) => (Relationship::Associative, Vec::new()),
            (Some("map"), _) => {
                let keys = model.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                if keys.is_none() {
                    self.problems.push("a list of the type 'map' has no keys".to_owned());
                }
                let keys = keys.into_iter().flatten().filter_map(Value::as_str);
                (Relationship::Associative, keys.map(str::to_owned).collect())
            }
            (None, Some("merge" | "merge,retainKeys")) => {
                let key = text("x-kubernetes-patch-merge-key").map(str::to_owned);
                (Relationship::Associative, key.into_iter().collect())
            }
            (list, strategy) => {
                let word = list.or(strategy).unwrap_or_default();
                self.problems.push(format!("the list type or patch strategy '{word}' is not known"));
                (Relationship::Atomic, Vec::new())
            }
        }
    }
}

/// Returns the name of the type to which a schema refers, directly or by `allOf` alone.
fn reference(model: &Value) -> Option<&str> {
    let own = model.get("$ref").and_then(Value::as_str);
    let by_all = || match model.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => only.get("$ref").and_then(Value::as_str),
        _ => None,
    };
    own.or_else(by_all)?.rsplit('/').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{FieldSet, Managers, PathText, Type, Updater};

    fn document() -> Value {
        json!({"components": {"schemas": {
            "io.k8s.api.apps.v1.Deployment": {
                "type": "object",
                "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"allOf": [{"$ref": "#/components/schemas/Meta"}], "default": {}},
                    "spec": {"type": "object", "properties": {
                        "replicas": {"type": "integer", "format": "int32"},
                        "selector": {"type": "object", "x-kubernetes-map-type": "atomic",
                            "additionalProperties": {"type": "string"}},
                        "containers": {"type": "array", "items": {"$ref": "#/components/schemas/Container"},
                            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
                    }},
                },
            },
            "Container": {"type": "object", "properties": {
                "name": {"type": "string"},
                "image": {"type": "string"},
                "args": {"type": "array", "items": {"type": "string"}},
                "limits": {"type": "object", "additionalProperties": {"$ref": format!("#/components/schemas/{QUANTITY}")}},
                "ports": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
                    "items": {"type": "object", "properties": {
                        "containerPort": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}}},
            }},
            "Meta": {"type": "object", "properties": {
                "name": {"type": "string"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
            }},
            QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
            "Any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}},
            "Broken": {"type": "array"},
        }}})
    }

    #[test]
    fn fields_are_owned_as_the_document_says() {
        let api = OpenApi::read(&document()).unwrap();
        assert_eq!(
            api.problems,
            BTreeMap::from([("Broken".to_owned(), vec!["an array has no 'items'".to_owned()])])
        );
        let kind = |kind: &str| GroupVersionKind {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
        };
        assert_eq!(api.type_of(&kind("StatefulSet")), None);
        let of = api.type_of(&kind("Deployment")).unwrap();
        let object = json!({
            "metadata": {"name": "web", "labels": {"app": "web"}, "finalizers": ["a/b"]},
            "spec": {"replicas": 2, "selector": {"app": "web"}, "containers": [
                {"name": "web", "image": "web:1", "args": ["-v"], "limits": {"cpu": 1, "memory": "1Gi"},
                 "ports": [{"containerPort": 80}]}]},
        });
        let fields = Type::new(&api.schema, &of).field_set(&object).unwrap();
        let paths: Vec<String> = fields.paths().iter().map(|path| PathText(path).to_string()).collect();
        assert_eq!(
            paths,
            [
                r#".metadata.finalizers[="a/b"]"#,
                ".metadata.labels.app",
                ".metadata.name",
                r#".spec.containers[name="web"]"#,
                r#".spec.containers[name="web"].args"#,
                r#".spec.containers[name="web"].image"#,
                r#".spec.containers[name="web"].limits.cpu"#,
                r#".spec.containers[name="web"].limits.memory"#,
                r#".spec.containers[name="web"].name"#,
                r#".spec.containers[name="web"].ports[containerPort=80,protocol="TCP"]"#,
                r#".spec.containers[name="web"].ports[containerPort=80,protocol="TCP"].containerPort"#,
                ".spec.replicas",
                ".spec.selector",
            ]
        );
        let unknown = json!({"spec": {"replica": 2}});
        let refused = Type::new(&api.schema, &of).validate(&unknown, false).unwrap_err();
        assert_eq!(refused.to_string(), ".spec.replica: field not declared in schema");
        let any = TypeRef::named("Any");
        assert!(Type::new(&api.schema, &any).validate(&json!({"x": [1], "a": {"c": {}}}), false).is_ok());
        assert_eq!(OpenApi::read(&json!({})).unwrap_err(), OpenApiError);
    }

    #[test]
    fn a_second_manager_is_in_conflict_about_the_image_alone() {
        let api = OpenApi::read(&document()).unwrap();
        let of = TypeRef::named("io.k8s.api.apps.v1.Deployment");
        let updater = Updater::new(Type::new(&api.schema, &of), "apps/v1");
        let with = |image: &str, more: Value| {
            let mut container = json!({"name": "web", "image": image});
            container.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            json!({"spec": {"containers": [container]}})
        };
        let first =
            updater.apply(&json!({}), &with("web:1", json!({})), &Managers::new(), "flux", false).unwrap();
        let live = first.object.unwrap();
        let wanted = with("web:2", json!({"args": ["-v"]}));
        let refused = updater.apply(&live, &wanted, &first.managers, "ann", false).unwrap_err();
        assert_eq!(refused.to_string(), r#"conflict with "flux": .spec.containers[name="web"].image"#);
        let taken = updater.apply(&live, &wanted, &first.managers, "ann", true).unwrap();
        let left = |name: &str| taken.managers[name].fields.paths().len();
        // Both own the container and its name; the image has a new owner.
        assert_eq!((left("flux"), left("ann")), (2, 4));
        // What nobody wants any more goes.
        let live = taken.object.unwrap();
        let nothing = json!({"spec": {}});
        let after = updater.apply(&live, &nothing, &taken.managers, "ann", false).unwrap();
        assert_eq!(after.object, Some(json!({"spec": {"containers": [{"name": "web"}]}})));
        assert_eq!(after.managers["ann"].fields, FieldSet::from_fields_v1(&json!({"f:spec": {}})).unwrap());
    }
}
