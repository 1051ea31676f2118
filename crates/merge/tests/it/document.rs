//! Schemas in the form of the library that the API server uses.

use serde_json::{Map as JsonMap, Value, json};
use taffrail_merge::{Atom, ListType, MapField, MapType, Relationship, Scalar, Schema, TypeRef};

/// Returns the schema in the form of the library that the API server uses.
pub(crate) fn write(schema: &Schema) -> Value {
    let mut names: Vec<&String> = schema.types.keys().collect();
    names.sort_unstable();
    let types = names.into_iter().map(|name| {
        let mut fields = of_atom(schema.types.get(name).unwrap());
        fields.insert("name".to_owned(), json!(name));
        Value::Object(fields)
    });
    json!({"types": types.collect::<Vec<_>>()})
}

fn word(relationship: Relationship) -> &'static str {
    match relationship {
        Relationship::Atomic => "atomic",
        Relationship::Associative => "associative",
        Relationship::Separable => "separable",
    }
}

fn of_atom(atom: &Atom) -> JsonMap<String, Value> {
    let mut fields = JsonMap::new();
    if let Some(scalar) = atom.scalar {
        let word = match scalar {
            Scalar::Numeric => "numeric",
            Scalar::String => "string",
            Scalar::Boolean => "boolean",
            Scalar::Untyped => "untyped",
        };
        fields.insert("scalar".to_owned(), json!(word));
    }
    if let Some(list) = &atom.list {
        let mut of_list = JsonMap::new();
        of_list.insert("elementType".to_owned(), Value::Object(of_type(&list.element)));
        of_list.extend(list.relationship.map(|it| ("elementRelationship".to_owned(), json!(word(it)))));
        if !list.keys.is_empty() {
            of_list.insert("keys".to_owned(), json!(list.keys));
        }
        fields.insert("list".to_owned(), Value::Object(of_list));
    }
    if let Some(map) = &atom.map {
        let mut of_map = JsonMap::new();
        let mut names: Vec<&String> = map.fields.keys().collect();
        names.sort_unstable();
        let named = names.into_iter().map(|name| {
            let MapField { of, default } = map.fields.get(name).unwrap();
            let mut field = JsonMap::new();
            field.insert("name".to_owned(), json!(name));
            field.insert("type".to_owned(), Value::Object(of_type(of)));
            field.extend(default.clone().map(|value| ("default".to_owned(), value)));
            Value::Object(field)
        });
        let named: Vec<Value> = named.collect();
        if !named.is_empty() {
            of_map.insert("fields".to_owned(), json!(named));
        }
        if map.element != TypeRef::default() {
            of_map.insert("elementType".to_owned(), Value::Object(of_type(&map.element)));
        }
        of_map.extend(map.relationship.map(|it| ("elementRelationship".to_owned(), json!(word(it)))));
        fields.insert("map".to_owned(), Value::Object(of_map));
    }
    fields
}

fn of_type(at: &TypeRef) -> JsonMap<String, Value> {
    let mut fields = at.inlined.as_deref().map(of_atom).unwrap_or_default();
    fields.extend(at.named.as_ref().map(|name| ("namedType".to_owned(), json!(name))));
    fields.extend(at.relationship.map(|it| ("elementRelationship".to_owned(), json!(word(it)))));
    fields
}

/// Reads a schema that the library wrote.
pub(crate) fn read(document: &Value) -> Schema {
    let types = document["types"].as_array().into_iter().flatten();
    Schema { types: types.map(|of| (text(&of["name"]), read_atom(of).unwrap_or_default())).collect() }
}

/// Reads a reference to a type.
pub(crate) fn read_type(of: &Value) -> TypeRef {
    TypeRef {
        named: of["namedType"].as_str().map(str::to_owned),
        inlined: read_atom(of).map(Box::new),
        relationship: read_relationship(&of["elementRelationship"]),
    }
}

fn text(of: &Value) -> String {
    of.as_str().unwrap_or_default().to_owned()
}

fn read_relationship(of: &Value) -> Option<Relationship> {
    match of.as_str() {
        None | Some("") => None,
        Some("atomic") => Some(Relationship::Atomic),
        Some("associative") => Some(Relationship::Associative),
        Some("separable") => Some(Relationship::Separable),
        Some(other) => panic!("no relationship: {other}"),
    }
}

/// Reads the forms that a value may have; `None` if there are none.
fn read_atom(of: &Value) -> Option<Atom> {
    let scalar = of["scalar"].as_str().map(|word| match word {
        "numeric" => Scalar::Numeric,
        "string" => Scalar::String,
        "boolean" => Scalar::Boolean,
        "untyped" => Scalar::Untyped,
        other => panic!("no scalar: {other}"),
    });
    let list = of["list"].as_object().map(|_| {
        let list = &of["list"];
        Box::new(ListType {
            element: read_type(&list["elementType"]),
            relationship: read_relationship(&list["elementRelationship"]),
            keys: list["keys"].as_array().into_iter().flatten().map(text).collect(),
        })
    });
    let map = of["map"].as_object().map(|_| {
        let map = &of["map"];
        let fields = map["fields"].as_array().into_iter().flatten();
        let field = |of: &Value| {
            let default = Some(of["default"].clone()).filter(|default| !default.is_null());
            (text(&of["name"]), MapField { of: read_type(&of["type"]), default })
        };
        Box::new(MapType {
            fields: fields.map(field).collect(),
            element: read_type(&map["elementType"]),
            relationship: read_relationship(&map["elementRelationship"]),
        })
    });
    let atom = Atom { scalar, list, map };
    (atom != Atom::default()).then_some(atom)
}
