//! The OpenAPI document of the API: made of the tables of paths and parameters and of the types of [`taffrail_api`],
//! and compared with `docs/openapi.json`. With `WRITE_DOCS=1` (`cargo xtask docs`) the test writes the file instead.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use taffrail_api::hub::{
    AppChange, AppGroup, AppHistory, Attention, HttpProblem, HubList, Matrix, PastApp, PastCluster, PastList,
    StreamFrame,
};
use taffrail_api::logs::{LogEvent, LogsQuestion};
use taffrail_api::operations::{
    ActionQuestion, OperationEvent, OperationQuestion, OperationRecord, PlanAnswer, RunRequest,
};
use taffrail_api::question::{ViewAnswer, ViewQuestion};
use taffrail_api::{API_VERSION, AppRow, ClusterRow, List, ObjectActionList};

use super::endpoint::ENDPOINTS;
use super::guard::{ACTIONS, LOGS, OPERATIONS, PLANS, QUESTIONS, SESSION, STREAM};
use super::query::{APP_FIELDS, PARAMETERS, ParameterForm, Query};

/// Returns the JSON Schemas of all answers, stream frames and questions, and of the types in them, keyed by type name.
fn schemas() -> Map<String, Value> {
    fn answer<T: JsonSchema>(generator: &mut SchemaGenerator, kind: &str) -> Value {
        let mut schema = T::json_schema(generator).to_value();
        for (field, value) in [("apiVersion", API_VERSION), ("kind", kind)] {
            if let Some(field) = schema.pointer_mut(&format!("/properties/{field}")) {
                *field = json!({ "const": value });
            }
        }
        schema
    }

    let settings = SchemaSettings::draft2020_12();
    let settings = settings.with(|settings| settings.definitions_path = "/components/schemas".into());
    let asked = &mut settings.clone().for_deserialize().into_generator();
    let generator = &mut settings.for_serialize().into_generator();
    let mut own = Map::new();
    for (name, schema) in [
        ("AppList", answer::<HubList<AppRow>>(generator, "AppList")),
        ("AppFieldsList", answer::<HubList<AppRow>>(generator, "AppList")),
        ("AppGroupList", answer::<HubList<AppGroup>>(generator, "AppGroupList")),
        ("ClusterList", answer::<HubList<ClusterRow>>(generator, "ClusterList")),
        ("AppChangeList", answer::<HubList<AppChange>>(generator, "AppChangeList")),
        ("AppHistory", answer::<AppHistory>(generator, "AppHistory")),
        ("PastAppList", answer::<PastList<PastApp>>(generator, "PastAppList")),
        ("PastClusterList", answer::<PastList<PastCluster>>(generator, "PastClusterList")),
        ("Matrix", answer::<Matrix>(generator, "Matrix")),
        ("Attention", answer::<Attention>(generator, "Attention")),
        ("HttpProblem", answer::<HttpProblem>(generator, "")),
        ("StreamFrame", answer::<StreamFrame>(generator, "")),
        ("ViewQuestion", answer::<ViewQuestion>(asked, "")),
        ("ViewAnswer", answer::<ViewAnswer>(generator, "")),
        ("LogsQuestion", answer::<LogsQuestion>(asked, "")),
        ("LogEvent", answer::<LogEvent>(generator, "")),
        ("OperationQuestion", answer::<OperationQuestion>(asked, "")),
        ("ActionQuestion", answer::<ActionQuestion>(asked, "")),
        ("ObjectActionList", answer::<ObjectActionList>(generator, "ObjectActionList")),
        ("PlanAnswer", answer::<PlanAnswer>(generator, "")),
        ("RunRequest", answer::<RunRequest>(asked, "")),
        ("OperationEvent", answer::<OperationEvent>(generator, "")),
        ("OperationList", answer::<List<OperationRecord>>(generator, "OperationList")),
    ] {
        own.insert(name.to_owned(), schema);
    }
    let mut all = generator.take_definitions(true);
    for (name, mut schema) in asked.take_definitions(true) {
        accept_repetitions(&mut schema);
        let same = all.entry(name.clone()).or_insert_with(|| schema.clone());
        assert_eq!(*same, schema, "questions and answers have different forms of {name}");
    }
    let mut fields = all["AppRow"].clone();
    fields.as_object_mut().unwrap().remove("required");
    fields["description"] = "The fields of an app that `fields` names.".into();
    all.insert("AppFields".to_owned(), fields);
    own["AppFieldsList"]["properties"]["items"]["items"] =
        json!({ "$ref": "#/components/schemas/AppFields" });
    all.extend(own);
    all
}

/// Removes what a schema says of repetitions: where a question has a set, Serde ignores them.
fn accept_repetitions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("uniqueItems");
            fields.values_mut().for_each(accept_repetitions);
        }
        Value::Array(items) => items.iter_mut().for_each(accept_repetitions),
        _ => {}
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns the OpenAPI objects of the query parameters with these names.
fn parameters(names: &[&str]) -> Vec<Value> {
    let parameter = |name: &&str| {
        let parameter = PARAMETERS.iter().find(|parameter| parameter.name == *name);
        let parameter = parameter.unwrap_or_else(|| panic!("there is no parameter '{name}'"));
        let list = |items: Value| json!({ "type": "array", "items": items, "minItems": 1 });
        let schema = match parameter.form {
            ParameterForm::Text => json!({ "type": "string" }),
            ParameterForm::List => list(json!({ "type": "string", "minLength": 1 })),
            ParameterForm::Words(words) => list(json!({ "type": "string", "enum": words })),
            ParameterForm::Word(words) => json!({ "type": "string", "enum": words }),
            ParameterForm::WordOrLabel(words, prefix) => json!({
                "anyOf": [
                    { "type": "string", "enum": words },
                    { "type": "string", "pattern": format!("^{prefix}.") },
                ]
            }),
            ParameterForm::Number(least, most) => {
                json!({ "type": "integer", "minimum": least, "maximum": most, "default": Query::default().limit })
            }
            ParameterForm::Truth => json!({ "type": "boolean" }),
            ParameterForm::Time => json!({ "type": "string", "format": "date-time" }),
        };
        let mut found = json!({
            "name": parameter.name, "in": "query", "description": parameter.about, "schema": schema
        });
        if matches!(parameter.form, ParameterForm::List | ParameterForm::Words(_)) {
            // As the command line takes them.
            found["style"] = "form".into();
            found["explode"] = false.into();
        }
        let is_truth = parameter.form == ParameterForm::Truth;
        if parameter.name == "problems" || is_truth {
            found["allowEmptyValue"] = true.into();
        }
        found
    };
    names.iter().map(parameter).collect()
}

/// Returns the OpenAPI responses of a path: those of `good`, keyed by status code, and a problem document for each of
/// the status codes `problems`.
fn responses(good: Value, problems: &[u16]) -> Value {
    let mut responses = good;
    for status in problems {
        let name = http::StatusCode::from_u16(*status).unwrap().canonical_reason().unwrap();
        responses[status.to_string()] = json!({
            "description": name,
            "content": { "application/problem+json": { "schema": reference("HttpProblem") } },
        });
    }
    responses
}

fn text(about: &str, content_type: &str, schema: Value) -> Value {
    json!({ "200": { "description": about, "content": { content_type: { "schema": schema } } } })
}

pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        let part = |(name, about): &(&str, &str)| json!({ "name": name, "in": "path", "required": true, "description": about, "schema": { "type": "string" } });
        let all: Vec<Value> =
            endpoint.about.parts.iter().map(part).chain(parameters(endpoint.parameters)).collect();
        let schema = match endpoint.about.answers {
            [one] => reference(one),
            several => json!({ "anyOf": several.iter().map(|name| reference(name)).collect::<Vec<_>>() }),
        };
        let mut problems = vec![400, 401, 403, 414, 431, 503];
        if !endpoint.about.parts.is_empty() {
            problems.extend([404, 409]);
        } else if endpoint.parameters.contains(&"at") {
            // A hub that keeps nothing.
            problems.push(404);
        }
        let responses = responses(text("The answer.", "application/json", schema), &problems);
        paths.insert(
            endpoint.path.to_owned(),
            json!({ "get": {
            "operationId": endpoint.about.id, "summary": endpoint.about.text, "parameters": all, "responses": responses,
        } }),
        );
    }
    let subscribe = json!({
        "name": "subscribe", "in": "query", "required": true,
        "description": "A page to follow, as `NAME:VIEW?QUERY`, up to 20 of them. VIEW is `apps` (the first rows of a filter, at most 100, and the numbers of all), `counts` (the numbers alone), `clusters` (their numbers by freshness) or `changes` (the number of the state of the fleet, which grows with each change). QUERY has for `apps` the filters, `sort` and `limit` of `listApps`, for `counts` the filters; the others have none.",
        "schema": { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 20 },
    });
    let last = json!({
        "name": "Last-Event-ID", "in": "header", "description": "The identity of the last event that the client got.",
        "schema": { "type": "string" },
    });
    let about = "Events `reset` and `frame`, whose data is a StreamFrame, and `alive` while nothing changes.";
    let stream = text(
        about,
        "text/event-stream",
        json!({ "type": "string", "contentSchema": reference("StreamFrame") }),
    );
    paths.insert(
        STREAM.to_owned(),
        json!({ "get": {
        "operationId": "followPages", "summary": "Streams pages as they change.",
        "parameters": [subscribe, last], "responses": responses(stream, &[400, 401, 403, 414, 431, 503]),
    } }),
    );
    let entered = json!({ "204": {
        "description": "The session is open.",
        "headers": { "Set-Cookie": { "description": "The cookie of the session.", "schema": { "type": "string" } } },
    } });
    let token = json!({
        "type": "object", "properties": { "token": { "type": "string" } }, "required": ["token"],
    });
    paths.insert(SESSION.to_owned(), json!({ "post": {
        "operationId": "openSession", "summary": "Exchanges a token for the cookie of a session, for browsers.",
        "security": [],
        "requestBody": { "required": true, "content": { "application/json": { "schema": token } } },
        "responses": responses(entered, &[400, 401, 403, 413, 414, 431, 503]),
    } }));
    let answered = text("The answer of the view.", "application/json", reference("ViewAnswer"));
    paths.insert(
        QUESTIONS.to_owned(),
        json!({ "post": {
        "operationId": "askQuestion",
        "summary": "Answers the question of a view of the command line, whole and with all that the view prints.",
        "requestBody": { "required": true, "content": { "application/json": { "schema": reference("ViewQuestion") } } },
        "responses": responses(answered, &[400, 401, 403, 404, 413, 414, 422, 431, 503]),
    } }),
    );
    let about = "Events, one on each line, the last of which is `done` if the answer is whole.";
    let logs = text(
        about,
        "application/x-ndjson",
        json!({ "type": "string", "contentSchema": reference("LogEvent") }),
    );
    paths.insert(
        LOGS.to_owned(),
        json!({ "post": {
        "operationId": "readLogs",
        "summary": "Reads or follows the logs of the containers of an app or object; needs a token that allows it.",
        "requestBody": { "required": true, "content": { "application/json": { "schema": reference("LogsQuestion") } } },
        "responses": responses(logs, &[400, 401, 403, 404, 413, 414, 422, 431, 503]),
    } }),
    );
    let planned =
        text("The plan, of which nothing was written.", "application/json", reference("PlanAnswer"));
    paths.insert(
        PLANS.to_owned(),
        json!({ "post": {
        "operationId": "planOperation",
        "summary": "Plans to reconcile, suspend or resume apps, or an action on an object, and writes nothing; needs a token that allows to act.",
        "requestBody": { "required": true, "content": { "application/json": { "schema": reference("OperationQuestion") } } },
        "responses": responses(planned, &[400, 401, 403, 404, 413, 414, 422, 431, 503]),
    } }),
    );
    let actions = text(
        "The actions of the object, in each cluster that has it.",
        "application/json",
        reference("ObjectActionList"),
    );
    paths.insert(
        ACTIONS.to_owned(),
        json!({ "post": {
        "operationId": "listActions",
        "summary": "Lists the actions that an object has; the name of the action in the question does not matter.",
        "requestBody": { "required": true, "content": { "application/json": { "schema": reference("ActionQuestion") } } },
        "responses": responses(actions, &[400, 401, 403, 404, 413, 414, 422, 431, 503]),
    } }),
    );
    let about = "Events, one on each line, the last of which is `done` if the answer is whole.";
    let events = text(
        about,
        "application/x-ndjson",
        json!({ "type": "string", "contentSchema": reference("OperationEvent") }),
    );
    paths[OPERATIONS]["post"] = json!({
        "operationId": "runOperation",
        "summary": "Runs a plan once, however often it is asked for with one identifier; needs a token that allows to act.",
        "requestBody": { "required": true, "content": { "application/json": { "schema": reference("RunRequest") } } },
        "responses": responses(events, &[400, 401, 403, 404, 409, 413, 414, 422, 431, 503]),
    });
    let open = |id: &str, about: &str, problems: &[u16]| {
        let responses =
            responses(text("It is so.", "application/json", json!({ "type": "object" })), problems);
        json!({ "get": { "operationId": id, "summary": about, "security": [], "responses": responses } })
    };
    let crowded = [414, 431, 503];
    paths.insert("/healthz".to_owned(), open("getHealth", "Tells that the hub runs.", &crowded));
    paths.insert(
        "/readyz".to_owned(),
        open("getReadiness", "Tells whether the hub can answer, and save what it learns.", &crowded),
    );
    let metrics =
        text("The metrics in the text format of Prometheus.", "text/plain", json!({ "type": "string" }));
    paths.insert(
        "/metrics".to_owned(),
        json!({ "get": {
        "operationId": "getMetrics", "summary": "Returns the metrics of the fleet and of the hub.",
        "responses": responses(metrics, &[401, 403, 414, 431, 503]),
    } }),
    );
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Taffrail hub",
            "version": "v1",
            "description": "The state of a fleet of Kubernetes clusters. All answers are of one moment, and say how much of the fleet they cover.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "session": {
                    "type": "apiKey", "in": "cookie", "name": "taffrail-PORT",
                    "description": "The cookie that `openSession` sets, together with the header Sec-Fetch-Site of a browser.",
                },
            },
        },
    })
}

/// Compares a JSON value at `place` with a schema of the document. Returns one text for each field, at any depth, that
/// the schema does not name, that it requires but is missing, or whose constant differs; types are not compared.
pub(super) fn faults(document: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let schema = document.pointer(reference.trim_start_matches('#'));
        return schema
            .map_or(vec![format!("{reference} is missing")], |it| faults(document, it, value, place));
    }
    if let Some(any) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let all: Vec<Vec<String>> = any.iter().map(|schema| faults(document, schema, value, place)).collect();
        return all.into_iter().min_by_key(Vec::len).unwrap_or_default();
    }
    if !schema["const"].is_null() {
        return if schema["const"] == *value { Vec::new() } else { vec![format!("{place} is {value}")] };
    }
    match value {
        Value::Object(fields) => {
            let known = schema["properties"].as_object();
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let missing = required.filter(|name| !fields.contains_key(*name));
            let mut found: Vec<String> = missing.map(|name| format!("{place}.{name} is missing")).collect();
            for (name, value) in fields {
                let place = format!("{place}.{name}");
                let of_any = Some(&schema["additionalProperties"]).filter(|schema| schema.is_object());
                match known.and_then(|known| known.get(name)).or(of_any) {
                    Some(schema) => found.extend(faults(document, schema, value, &place)),
                    None => found.push(format!("{place} is not described")),
                }
            }
            found
        }
        Value::Array(items) => items
            .iter()
            .flat_map(|item| faults(document, &schema["items"], item, &format!("{place}[]")))
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn document_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == text, "{} is out of date: cargo xtask docs", file.display());
}

#[test]
fn every_reference_has_a_schema_and_every_parameter_a_path() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| match value.as_str() {
                Some(text) if name == "$ref" => found.push(text.to_owned()),
                _ => references(value, found),
            }),
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    let document = document();
    let mut found = Vec::new();
    references(&document, &mut found);
    for reference in &found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for parameter in PARAMETERS {
        let is_used = ENDPOINTS.iter().any(|endpoint| endpoint.parameters.contains(&parameter.name));
        assert!(is_used, "{}", parameter.name);
    }
}

#[test]
fn fields_of_apps_are_those_of_the_schema() {
    let schema = &schemas()["AppRow"]["properties"];
    let mut fields: Vec<&str> = schema.as_object().unwrap().keys().map(String::as_str).collect();
    let mut own = APP_FIELDS.to_vec();
    fields.sort_unstable();
    own.sort_unstable();
    assert_eq!(own, fields);
}
