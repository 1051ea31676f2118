//! The types of kinds by which the managers of fields are computed: which lists are owned item by item.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use taffrail_merge::{GroupVersionKind, OpenApi, Schema, Type, TypeRef, built_in};
use taffrail_object::protobuf::schema::{self, Kind, Message, Shape};

/// The beginning of the names of the types of metadata.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The name of the type of custom resources in their own schema.
const ROOT: &str = "object";

/// The type of the objects of a kind in one version.
#[derive(Debug)]
pub(crate) struct ObjectType {
    schema: Cow<'static, Schema>,
    at: TypeRef,
    /// The description of a built-in kind; `None` for others.
    message: Option<&'static Message>,
}

impl ObjectType {
    /// Returns the type of a built-in kind.
    pub(crate) fn built_in(group: &str, version: &str, kind: &str) -> ObjectType {
        let name =
            GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() };
        let at = built_in().type_of(&name).unwrap_or_else(|| TypeRef::named(Schema::DEDUCED));
        let message = schema::of_kind(group, version, kind);
        ObjectType { schema: Cow::Borrowed(&built_in().schema), at, message }
    }

    /// Returns the type of custom resources with this schema, if they have one that can be used.
    pub(crate) fn custom(tree: Option<&Value>) -> ObjectType {
        let read = tree.and_then(|tree| {
            let mut root = tree.clone();
            complete(&mut root);
            let document = json!({ "components": { "schemas": { ROOT: root } } });
            OpenApi::read(&document).ok().filter(|read| read.problems.is_empty())
        });
        let Some(mut read) = read else {
            return ObjectType {
                schema: Cow::Owned(Schema::deduced()),
                at: TypeRef::named(Schema::DEDUCED),
                message: None,
            };
        };
        let of_metadata = built_in().schema.types.iter().filter(|(name, _)| name.starts_with(META));
        read.schema.types.extend(of_metadata.map(|(name, atom)| (name.clone(), atom.clone())));
        ObjectType { schema: Cow::Owned(read.schema), at: TypeRef::named(ROOT), message: None }
    }

    pub(crate) fn get(&self) -> Type<'_> {
        Type::new(&self.schema, &self.at)
    }

    /// Returns an object as Kubernetes' own program has it before managers are computed: with all parts that it always
    /// writes, even if they are empty, so that no write counts as adding them.
    pub(crate) fn filled(&self, object: &Value) -> Value {
        let mut object = object.clone();
        self.tidy(&mut object);
        if let (Some(message), Some(members)) = (self.message, object.as_object_mut()) {
            fill(members, message);
        }
        object
    }

    /// Removes from an object what Kubernetes' own types do not write: nulls, and lists and maps without items.
    pub(crate) fn tidy(&self, object: &mut Value) {
        if let (Some(message), Some(members)) = (self.message, object.as_object_mut()) {
            tidy(members, message);
        }
    }
}

fn tidy(members: &mut Map<String, Value>, message: &'static Message) {
    members.retain(|_, value| !value.is_null());
    for field in &message.fields {
        let inside = match field.kind {
            Kind::Message(name) => schema::message(name),
            _ => None,
        };
        if field.name.is_empty() {
            if let Some(inside) = inside {
                tidy(members, inside);
            }
            continue;
        }
        let is_empty = match (field.shape, members.get(field.name)) {
            (Shape::List, Some(Value::Array(items))) => items.is_empty(),
            (Shape::Map, Some(Value::Object(values))) => values.is_empty(),
            _ => false,
        };
        if is_empty {
            members.remove(field.name);
        }
        let parts: Vec<&mut Value> = match (field.shape, members.get_mut(field.name)) {
            (Shape::One, Some(value)) => vec![value],
            (Shape::List, Some(Value::Array(items))) => items.iter_mut().collect(),
            (Shape::Map, Some(Value::Object(values))) => values.values_mut().collect(),
            _ => continue,
        };
        if let Some(inside) = inside {
            parts.into_iter().filter_map(Value::as_object_mut).for_each(|part| tidy(part, inside));
        }
    }
}

/// Adds what the API server adds to the schema of a custom resource: the fields that all objects have, to it and to the
/// schemas of objects within it.
pub(crate) fn complete(schema: &mut Value) {
    add_embedded(schema);
    add_object(schema);
}

/// Adds the fields that all objects have to the schema of a whole object.
fn add_object(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    let properties = members.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else { return };
    properties.insert("apiVersion".to_owned(), json!({ "type": "string" }));
    properties.insert("kind".to_owned(), json!({ "type": "string" }));
    let reference = format!("#/components/schemas/{META}ObjectMeta");
    properties.insert("metadata".to_owned(), json!({ "$ref": reference }));
}

/// Adds these fields to the schemas of objects within objects.
fn add_embedded(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(add_embedded);
            if members.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
                add_object(schema);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(add_embedded),
        _ => {}
    }
}

fn fill(members: &mut Map<String, Value>, message: &'static Message) {
    for field in &message.fields {
        let Kind::Message(name) = field.kind else { continue };
        let Some(inside) = schema::message(name) else { continue };
        match field.shape {
            Shape::One if field.name.is_empty() => fill(members, inside),
            // A part that is no pointer is always there.
            Shape::One => {
                if !field.kept && !members.contains_key(field.name) {
                    members.insert(field.name.to_owned(), json!({}));
                }
                if let Some(Value::Object(part)) = members.get_mut(field.name) {
                    fill(part, inside);
                }
            }
            // The only list with owned items that is written even if there is none.
            Shape::List if field.name == "containers" && !members.contains_key(field.name) => {
                members.insert(field.name.to_owned(), Value::Null);
            }
            Shape::List => {
                let items = members.get_mut(field.name).and_then(Value::as_array_mut);
                items.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|it| fill(it, inside));
            }
            Shape::Map => {
                let values = members.get_mut(field.name).and_then(Value::as_object_mut);
                let values = values.into_iter().flat_map(|values| values.values_mut());
                values.filter_map(Value::as_object_mut).for_each(|it| fill(it, inside));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_no_pointers_are_filled_in() {
        let of = ObjectType::built_in("apps", "v1", "Deployment");
        let filled = of.filled(&json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}));
        assert_eq!(filled["status"], json!({}));
        assert_eq!(filled["spec"]["strategy"], json!({}));
        let template = &filled["spec"]["template"];
        assert_eq!(template["spec"]["containers"], json!([{"name": "a", "resources": {}}]));
        assert_eq!(template["metadata"], json!({}));
        assert!(template["spec"].get("affinity").is_none());
        let mut tidied = json!({"spec": {"template": {"spec": {"containers": [{"env": [], "command": null}],
            "volumes": [{"emptyDir": {}}], "nodeSelector": {}}}}});
        of.tidy(&mut tidied);
        let wanted = json!({"containers": [{}], "volumes": [{"emptyDir": {}}]});
        assert_eq!(tidied["spec"]["template"]["spec"], wanted);
        let empty = of.filled(&json!({}));
        assert_eq!(empty["spec"]["template"]["spec"]["containers"], Value::Null);
    }

    #[test]
    fn custom_objects_have_typed_metadata_and_lists() {
        let of = ObjectType::custom(Some(
            &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "hosts": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}}}}),
        ));
        let before = json!({"apiVersion": "a/v1", "kind": "A", "spec": {"hosts": ["a"]}});
        let after = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"finalizers": ["x/y"]}, "spec": {"hosts": ["a", "b"]}});
        let added = of.get().compare(&before, &after).unwrap().added;
        let wanted = json!({"f:metadata": {".": {}, "f:finalizers": {".": {}, "v:\"x/y\"": {}}},
            "f:spec": {"f:hosts": {"v:\"b\"": {}}}});
        assert_eq!(added.to_fields_v1(), wanted);
    }
}
