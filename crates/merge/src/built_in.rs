//! The schemas of Kubernetes' own kinds, for where no server tells them.
//!
//! The table is made from the OpenAPI v3 documents that Kubernetes publishes; a test compares it with them. One line for
//! each type: the name, the kind (`group/version/Kind`) or nothing, and the fields, or one type alone if it has none.
//!
//! A field is `name:type`. Types are `s` (text), `y` (bytes as text), `t` (time as text), `i` and `n` (numbers), `b`
//! (boolean), `o` (object with any fields), `e` (integer or text), `q` (quantity), `*` (anything), and `@name` (the type of
//! that name). `[]` makes a list of the type behind it, with the list's type between the brackets: nothing if Kubernetes
//! says none, `!` atomic, `=` set, or keys. `{}` makes a map. `!` before a type means that it is atomic here, `+`
//! that it is granular. Behind `=` is the default of a field. A leading `.` in a name stands for `io.k8s.api.`, `~`
//! for `io.k8s.apimachinery.pkg.apis.`.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::openapi::OpenApi;

const TYPES: &str = include_str!("built_in.tsv");

const API: &str = "io.k8s.api.";
const MACHINERY: &str = "io.k8s.apimachinery.pkg.apis.";

/// The path at which a document has its types.
const PLACE: &str = "#/components/schemas/";

/// Returns the types of Kubernetes' own kinds in all versions that it serves, beta and alpha ones among them.
pub fn built_in() -> &'static OpenApi {
    static READ: OnceLock<OpenApi> = OnceLock::new();
    READ.get_or_init(|| OpenApi::read(built_in_document()).unwrap_or_else(|_| OpenApi::empty()))
}

/// Returns an OpenAPI v3 document with the schemas of Kubernetes' own kinds, without descriptions and required fields.
pub fn built_in_document() -> &'static Value {
    static READ: OnceLock<Value> = OnceLock::new();
    READ.get_or_init(|| {
        let types: Map<String, Value> = TYPES.lines().filter_map(schema).collect();
        json!({ "components": { "schemas": types } })
    })
}

fn schema(line: &str) -> Option<(String, Value)> {
    let mut parts = line.split('\t');
    let (name, kind) = (full(parts.next()?), parts.next()?);
    let mut properties = Map::new();
    let mut schema = json!({ "type": "object" });
    for part in parts {
        match part.split_once(':') {
            Some((name, of)) => {
                properties.insert(name.to_owned(), of_field(of)?);
            }
            None => schema = of_field(part)?,
        }
    }
    if !properties.is_empty() {
        schema["properties"] = Value::Object(properties);
    }
    if let [group, version, kind] = kind.split('/').collect::<Vec<_>>()[..] {
        schema["x-kubernetes-group-version-kind"] =
            json!([{ "group": group, "version": version, "kind": kind }]);
    }
    Some((name, schema))
}

fn full(name: &str) -> String {
    match (name.strip_prefix('.'), name.strip_prefix('~')) {
        (Some(name), _) => format!("{API}{name}"),
        (_, Some(name)) => format!("{MACHINERY}{name}"),
        _ => name.to_owned(),
    }
}

/// Returns the schema of a field's type, with its default.
fn of_field(text: &str) -> Option<Value> {
    // An equals sign within brackets is a list's type.
    let start = text.rfind(']').map_or(0, |at| at + 1);
    let default = text.get(start..)?.find('=').map(|at| start + at);
    let (text, default) = match default {
        Some(at) => (text.get(..at)?, Some(serde_json::from_str::<Value>(text.get(at + 1..)?).ok()?)),
        None => (text, None),
    };
    let mut schema = of_type(text)?;
    if let Some(default) = default {
        schema["default"] = default;
    }
    Some(schema)
}

fn of_type(text: &str) -> Option<Value> {
    if let Some(inner) = text.strip_prefix('!') {
        let mut schema = of_type(inner)?;
        schema["x-kubernetes-map-type"] = json!("atomic");
        return Some(schema);
    }
    if let Some(inner) = text.strip_prefix('+') {
        let mut schema = of_type(inner)?;
        schema["x-kubernetes-map-type"] = json!("granular");
        return Some(schema);
    }
    if let Some(inner) = text.strip_prefix("{}") {
        return Some(json!({ "type": "object", "additionalProperties": of_type(inner)? }));
    }
    if let Some(inner) = text.strip_prefix('[') {
        let (of_list, item) = inner.split_once(']')?;
        let mut schema = json!({ "type": "array", "items": of_type(item)? });
        match of_list {
            "" => {}
            "!" => schema["x-kubernetes-list-type"] = json!("atomic"),
            "=" => schema["x-kubernetes-list-type"] = json!("set"),
            keys => {
                schema["x-kubernetes-list-type"] = json!("map");
                schema["x-kubernetes-list-map-keys"] = json!(keys.split(',').collect::<Vec<_>>());
            }
        }
        return Some(schema);
    }
    if let Some(name) = text.strip_prefix('@') {
        // Beside a `$ref` nothing else counts.
        return Some(json!({ "allOf": [{ "$ref": format!("{PLACE}{}", full(name)) }] }));
    }
    Some(match text {
        "s" => json!({ "type": "string" }),
        "y" => json!({ "type": "string", "format": "byte" }),
        "t" => json!({ "type": "string", "format": "date-time" }),
        "i" => json!({ "type": "integer" }),
        "n" => json!({ "type": "number" }),
        "b" => json!({ "type": "boolean" }),
        "o" => json!({ "type": "object" }),
        "e" => json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] }),
        "q" => json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
        "*" => json!({}),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GroupVersionKind;

    #[test]
    fn every_line_is_a_type_and_every_reference_leads_to_one() {
        let lines = TYPES.lines().count();
        let types = built_in_document()["components"]["schemas"].as_object().unwrap();
        assert_eq!(types.len(), lines);
        let text = built_in_document().to_string();
        for reference in text.split("\"$ref\":\"").skip(1) {
            let name = reference.split('"').next().unwrap().rsplit('/').next().unwrap();
            assert!(types.contains_key(name), "{name}");
        }
        assert_eq!(built_in().problems, Default::default());
    }

    #[test]
    fn deployments_have_containers_with_keys() {
        let kind = GroupVersionKind {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: "Deployment".to_owned(),
        };
        assert!(built_in().type_of(&kind).is_some());
        let schema = &built_in_document()["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"];
        let containers = &schema["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
        let schema = &built_in_document()["components"]["schemas"]["io.k8s.api.core.v1.ContainerPort"];
        assert_eq!(schema["properties"]["protocol"]["default"], "TCP");
    }
}
