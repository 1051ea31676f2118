//! OpenAPI of the served kinds: enough for clients to learn the paths, their options, and the fields of objects with
//! their types. Fields of built-in kinds have no description.

mod gnostic;

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};
use taffrail_object::protobuf::schema::{self, Kind, Message, Shape};

use super::{Answer, discovery};
use crate::behaviour::Behaviour;
use crate::error::Answered;
use crate::kinds::{Resource, group_version};
use crate::state::Inner;

fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

pub(super) fn answer(inner: &Inner, rest: &str) -> Answered<Answer> {
    let all = discovery::group_versions(inner);
    if rest.is_empty() {
        if !inner.does.on(Behaviour::OpenApiIndex) {
            return Ok(Answer::not_found());
        }
        let mut paths = Map::new();
        for (group, version) in &all {
            let path = path_of(group, version);
            let mut hasher = DefaultHasher::new();
            // The hash covers paths and schemas of the kinds; the parts of built-in kinds are fixed while the process
            // lives.
            for resource in discovery::resources(inner, group, version) {
                let (mut paths, mut schemas) = (Map::new(), Map::new());
                describe(inner, &resource, version, &mut paths, &mut schemas);
                (json!(paths).to_string(), json!(schemas).to_string()).hash(&mut hasher);
            }
            let url = format!("/openapi/v3/{path}?hash={:016X}", hasher.finish());
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
        return Ok(Answer::json(200, &json!({"paths": paths})));
    }
    match all.iter().find(|(group, version)| path_of(group, version) == rest) {
        Some((group, version)) if inner.does.on(Behaviour::OpenApiDocuments) => {
            Ok(Answer::json(200, &document(inner, group, version)))
        }
        _ => Ok(Answer::not_found()),
    }
}

/// The text with which each `$ref` to a schema begins in OpenAPI v2 documents.
const V2: &str = "#/definitions/";

/// The text with which each `$ref` to a schema begins in OpenAPI v3 documents.
const V3: &str = "#/components/schemas/";

fn kind_of(resource: &Resource, version: &str) -> Value {
    json!({"group": &*resource.group, "version": version, "kind": &*resource.kind})
}

fn of_resource(inner: &Inner, resource: &Resource, version: &str) -> Option<&'static Message> {
    let known = schema::of_kind(&resource.group, version, &resource.kind);
    known.filter(|_| !resource.custom && inner.does.on(Behaviour::OpenApiFields))
}

/// Returns the name and the schema of a kind; `place` is the prefix of references in it.
fn named(inner: &Inner, resource: &Resource, version: &str, place: &str) -> (String, Value) {
    let known = of_resource(inner, resource, version);
    let name = match known {
        Some(message) => full_name(message.name),
        None if resource.group.is_empty() => format!("io.k8s.api.core.{version}.{}", resource.kind),
        None => {
            let reversed: Vec<&str> = resource.group.split('.').rev().collect();
            format!("{}.{version}.{}", reversed.join("."), resource.kind)
        }
    };
    let own = resource.version(version).and_then(|version| version.schema.as_ref());
    let mut schema = match (known, own) {
        (Some(message), _) => schema_of(message, place),
        (None, Some(schema)) => schema.tree().clone(),
        (None, None) => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    };
    if let Some(members) = schema.as_object_mut() {
        if known.is_some()
            && let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut)
        {
            properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
            properties.insert("kind".to_owned(), json!({"type": "string"}));
        }
        members.insert("x-kubernetes-group-version-kind".to_owned(), json!([kind_of(resource, version)]));
    }
    (name, schema)
}

/// Returns the published name of a message of the schema: `io.k8s.api.core.v1.Pod` for `core.v1.Pod`.
fn full_name(name: &str) -> String {
    if name.starts_with("meta.") {
        format!("io.k8s.apimachinery.pkg.apis.{name}")
    } else {
        format!("io.k8s.api.{name}")
    }
}

/// Adds to `schemas` the schemas of all messages that `message` contains.
fn add_parts(message: Option<&'static Message>, place: &str, schemas: &mut Map<String, Value>) {
    let mut left: Vec<&'static Message> = message.into_iter().collect();
    while let Some(message) = left.pop() {
        for field in &message.fields {
            let Kind::Message(name) = field.kind else { continue };
            let Some(part) = schema::message(name) else { continue };
            // Fields that are inlined into the message around them have no schema of their own, but their parts have.
            if !field.name.is_empty() {
                let name = full_name(part.name);
                if schemas.contains_key(&name) {
                    continue;
                }
                schemas.insert(name, schema_of(part, place));
            }
            left.push(part);
        }
    }
}

fn schema_of(message: &Message, place: &str) -> Value {
    let mut properties = Map::new();
    add_fields(message, place, &mut properties);
    json!({"type": "object", "properties": properties})
}

fn add_fields(message: &Message, place: &str, properties: &mut Map<String, Value>) {
    for field in &message.fields {
        if field.name.is_empty() {
            if let Kind::Message(name) = field.kind
                && let Some(inside) = schema::message(name)
            {
                add_fields(inside, place, properties);
            }
            continue;
        }
        let one = match field.kind {
            Kind::Text | Kind::Duration | Kind::Quantity => json!({"type": "string"}),
            Kind::Number => json!({"type": "integer"}),
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Bytes => json!({"type": "string", "format": "byte"}),
            Kind::Time => json!({"type": "string", "format": "date-time"}),
            Kind::Either => json!({"type": "string", "format": "int-or-string"}),
            Kind::Raw => json!({"type": "object"}),
            Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Kind::Message(name) => json!({"$ref": format!("{place}{}", full_name(name))}),
        };
        let whole = match field.shape {
            Shape::One => one,
            Shape::List => json!({"type": "array", "items": one}),
            Shape::Map => json!({"type": "object", "additionalProperties": one}),
        };
        properties.insert(field.name.to_owned(), whole);
    }
}

/// Returns OpenAPI v2 of the served kinds: no paths, but all definitions. In JSON, or in the Protobuf that clients with
/// client-go request.
pub(super) fn answer_v2(inner: &Inner, accept: &str) -> Answered<Answer> {
    const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    const ANSWERED: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    if !inner.does.on(Behaviour::OpenApiV2) {
        return Ok(Answer::not_found());
    }
    let mut definitions = Map::new();
    for (group, version) in discovery::group_versions(inner) {
        for resource in discovery::resources(inner, &group, &version) {
            let (name, schema) = named(inner, &resource, &version, V2);
            definitions.insert(name, schema);
            add_parts(of_resource(inner, &resource, &version), V2, &mut definitions);
        }
    }
    let version = &inner.fleet.options.version;
    if accept.split(',').any(|range| range.trim() == ASKED) {
        let body = gnostic::document(version, &definitions);
        return Ok(Answer::bytes(200, body).of_type(ANSWERED));
    }
    let title = json!({"title": "Kubernetes", "version": version});
    let document = json!({"swagger": "2.0", "info": title, "paths": {}, "definitions": definitions});
    Ok(Answer::json(200, &document))
}

fn document(inner: &Inner, group: &str, version: &str) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for resource in discovery::resources(inner, group, version) {
        describe(inner, &resource, version, &mut paths, &mut schemas);
        add_parts(of_resource(inner, &resource, version), V3, &mut schemas);
    }
    let title = json!({"title": "Kubernetes", "version": inner.fleet.options.version});
    json!({"openapi": "3.0.0", "info": title, "paths": paths, "components": {"schemas": schemas}})
}

fn describe(
    inner: &Inner,
    resource: &Resource,
    version: &str,
    paths: &mut Map<String, Value>,
    schemas: &mut Map<String, Value>,
) {
    let kind = kind_of(resource, version);
    let (name, schema) = named(inner, resource, version, V3);
    let reference = json!({"$ref": format!("#/components/schemas/{name}")});
    schemas.insert(name, schema);
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let operation = |action: &str, parameters: &[&str]| {
        let parameters: Vec<Value> = parameters.iter().map(|name| parameter(name)).collect();
        json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind, "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        })
    };
    let base = match &*resource.group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{}", group_version(group, version)),
    };
    let base = if resource.namespaced { format!("{base}/namespaces/{{namespace}}") } else { base };
    let writing = ["dryRun", "fieldManager", "fieldValidation"];
    let listing = [
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "watch",
    ];
    let can = |verb: &str| resource.verbs.contains(&verb);
    let mut collection = Map::new();
    if can("list") {
        collection.insert("get".to_owned(), operation("list", &listing));
    }
    if can("create") {
        collection.insert("post".to_owned(), operation("post", &writing));
    }
    paths.insert(format!("{base}/{}", resource.plural), Value::Object(collection));
    if can("get") {
        let one = json!({
            "get": operation("get", &[]), "put": operation("put", &writing),
            "patch": operation("patch", &writing), "delete": operation("delete", &["propagationPolicy"]),
        });
        paths.insert(format!("{base}/{}/{{name}}", resource.plural), one);
    }
}
