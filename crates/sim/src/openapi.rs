//! OpenAPI v3 of what is served: enough for clients to learn which paths there are, which options they take, and what
//! custom resources look like. Built-in kinds are objects whose fields are not described.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use crate::behaviour::Behaviour;
use crate::cluster::Inner;
use crate::discovery;
use crate::error::Answered;
use crate::http::Answer;
use crate::kinds::{Resource, group_version};

fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

pub(crate) fn answer(inner: &Inner, rest: &str) -> Answered<Answer> {
    let all = discovery::group_versions(inner);
    if rest.is_empty() {
        if !inner.does.on(Behaviour::OpenApiIndex) {
            return Ok(Answer::not_found());
        }
        let mut paths = Map::new();
        for (group, version) in &all {
            let path = path_of(group, version);
            let mut hasher = DefaultHasher::new();
            document(inner, group, version).to_string().hash(&mut hasher);
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

fn document(inner: &Inner, group: &str, version: &str) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for resource in discovery::resources(inner, group, version) {
        describe(&resource, version, &mut paths, &mut schemas);
    }
    let title = json!({"title": "Kubernetes", "version": inner.fleet.options.version});
    json!({"openapi": "3.0.0", "info": title, "paths": paths, "components": {"schemas": schemas}})
}

fn describe(
    resource: &Resource,
    version: &str,
    paths: &mut Map<String, Value>,
    schemas: &mut Map<String, Value>,
) {
    let kind = json!({"group": &*resource.group, "version": version, "kind": &*resource.kind});
    let name = match &*resource.group {
        "" => format!("io.k8s.api.core.{version}.{}", resource.kind),
        group => {
            let reversed: Vec<&str> = group.split('.').rev().collect();
            format!("{}.{version}.{}", reversed.join("."), resource.kind)
        }
    };
    let mut schema = resource.version(version).and_then(|version| version.schema.as_ref()).map_or_else(
        || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        |schema| schema.tree().clone(),
    );
    if let Some(members) = schema.as_object_mut() {
        members.insert("x-kubernetes-group-version-kind".to_owned(), json!([kind]));
    }
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
