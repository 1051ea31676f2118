//! OpenAPI of the served kinds: enough for clients to learn the paths, their options, and the fields of objects with
//! their types. Fields of built-in kinds have no description.

mod gnostic;

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};
use taffrail_merge::{GroupVersionKind, built_in, built_in_document};

use super::{Answer, discovery};
use crate::behaviour::Behaviour;
use crate::error::Answered;
use crate::kinds::{Resource, group_version};
use crate::object_type;
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

/// Returns the published name of a built-in kind; `None` for custom and unknown kinds.
fn of_resource(inner: &Inner, resource: &Resource, version: &str) -> Option<&'static str> {
    let kind = GroupVersionKind {
        group: resource.group.to_string(),
        version: version.to_owned(),
        kind: resource.kind.to_string(),
    };
    let known = built_in().kinds.get(&kind).map(String::as_str);
    known.filter(|_| !resource.custom && inner.does.on(Behaviour::OpenApiFields))
}

/// Returns a schema of Kubernetes, with references to `place`.
fn published(name: &str, place: &str) -> Option<Value> {
    let mut schema = built_in_document()["components"]["schemas"].get(name)?.clone();
    if place == V2 {
        as_v2(&mut schema);
    }
    Some(schema)
}

/// Returns the name and the schema of a kind; `place` is the prefix of references in it.
fn named(inner: &Inner, resource: &Resource, version: &str, place: &str) -> (String, Value) {
    let known = of_resource(inner, resource, version);
    let name = match known {
        Some(name) => name.to_owned(),
        None if resource.group.is_empty() => format!("io.k8s.api.core.{version}.{}", resource.kind),
        None => {
            let reversed: Vec<&str> = resource.group.split('.').rev().collect();
            format!("{}.{version}.{}", reversed.join("."), resource.kind)
        }
    };
    let own = resource.version(version).and_then(|version| version.schema.as_ref());
    let mut schema = match (known.and_then(|name| published(name, place)), own) {
        (Some(schema), _) => schema,
        (None, Some(schema)) => {
            let mut schema = schema.tree().clone();
            if place == V3 {
                object_type::complete(&mut schema);
            }
            schema
        }
        (None, None) => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    };
    if let Some(members) = schema.as_object_mut() {
        members.insert("x-kubernetes-group-version-kind".to_owned(), json!([kind_of(resource, version)]));
    }
    (name, schema)
}

/// Adds to `schemas` the schemas of all parts to which `schema` refers.
fn add_parts(schema: &Value, place: &str, schemas: &mut Map<String, Value>) {
    let mut left = Vec::new();
    references(schema, &mut left);
    while let Some(name) = left.pop() {
        if schemas.contains_key(&name) {
            continue;
        }
        let Some(part) = published(&name, place) else { continue };
        references(&part, &mut left);
        schemas.insert(name, part);
    }
}

/// Adds the names of all types to which a schema refers.
fn references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next());
            names.extend(name.map(str::to_owned));
            members.values().for_each(|value| references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

/// Changes a schema of OpenAPI v3 into one of v2, which says nothing of alternatives and of the types of lists.
fn as_v2(schema: &mut Value) {
    let reference = schema.pointer("/allOf/0/$ref").and_then(Value::as_str);
    if let Some(name) = reference.and_then(|it| it.rsplit('/').next()) {
        *schema = json!({ "$ref": format!("{V2}{name}") });
        return;
    }
    let Some(members) = schema.as_object_mut() else { return };
    if members.remove("oneOf").is_some() {
        members.insert("type".to_owned(), json!("string"));
    }
    members.retain(|key, _| key != "default" && !key.starts_with("x-kubernetes-"));
    for (key, value) in members {
        match &**key {
            "properties" => {
                value.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(as_v2);
            }
            "items" | "additionalProperties" => as_v2(value),
            _ => {}
        }
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
            add_parts(&schema, V2, &mut definitions);
            definitions.insert(name, schema);
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
    }
    let wholes: Vec<Value> = schemas.values().cloned().collect();
    wholes.iter().for_each(|schema| add_parts(schema, V3, &mut schemas));
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
    let patching = ["dryRun", "fieldManager", "fieldValidation", "force"];
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
            "patch": operation("patch", &patching), "delete": operation("delete", &["propagationPolicy"]),
        });
        paths.insert(format!("{base}/{}/{{name}}", resource.plural), one);
    }
}
