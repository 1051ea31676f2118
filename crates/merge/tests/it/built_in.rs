//! The table of Kubernetes' own types beside the OpenAPI documents that Kubernetes publishes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use taffrail_merge::{OpenApi, built_in};
use taffrail_testkit::binary::workspace;

/// Returns the folder with the documents of the version from which the control planes of tests are built; `None` if its
/// sources are not here.
fn published() -> Option<PathBuf> {
    let output = Command::new("go")
        .args(["list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"])
        .current_dir(workspace().join("crates/testkit/kube/kubernetes"))
        .env("GOFLAGS", "-mod=mod")
        .env("GOPROXY", "off")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    let folder = Path::new(folder.trim()).join("api/openapi-spec/v3");
    folder.is_dir().then_some(folder)
}

/// Returns the types of all documents by their names, each with its kind.
fn types(folder: &Path) -> BTreeMap<String, Value> {
    let mut types = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap();
        let mut document: Value = serde_json::from_slice(&text).unwrap();
        let schemas = document.pointer_mut("/components/schemas").map(Value::take).unwrap_or_default();
        types.extend(schemas.as_object().cloned().unwrap_or_default());
    }
    types
}

fn short(name: &str) -> String {
    let machinery = name.strip_prefix("io.k8s.apimachinery.pkg.apis.").map(|name| format!("~{name}"));
    name.strip_prefix("io.k8s.api.").map(|name| format!(".{name}")).or(machinery).unwrap_or(name.to_owned())
}

fn reference(schema: &Value) -> Option<&str> {
    let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"))?.as_str()?;
    reference.rsplit('/').next()
}

fn written(schema: &Value, found: &mut BTreeSet<String>) -> String {
    let of_map = match schema["x-kubernetes-map-type"].as_str() {
        None => "",
        Some("atomic") => "!",
        Some("granular") => "+",
        Some(other) => panic!("{other}"),
    };
    let word = |key: &str| schema[key].as_str().unwrap_or_default().to_owned();
    let of = match (reference(schema), &*word("type"), &*word("format")) {
        (Some(name), ..) => {
            found.insert(name.to_owned());
            format!("@{}", short(name))
        }
        (_, "array", _) => {
            let keys = |keys: &Value| {
                let keys = keys.as_array().into_iter().flatten().filter_map(Value::as_str);
                keys.collect::<Vec<_>>().join(",")
            };
            let of_list = match (&*word("x-kubernetes-list-type"), &*word("x-kubernetes-patch-strategy")) {
                ("atomic", _) => "!".to_owned(),
                ("set", _) => "=".to_owned(),
                ("map", _) => keys(&schema["x-kubernetes-list-map-keys"]),
                ("", "merge" | "merge,retainKeys") => match &*word("x-kubernetes-patch-merge-key") {
                    "" => "=".to_owned(),
                    key => key.to_owned(),
                },
                _ => String::new(),
            };
            format!("[{of_list}]{}", written(&schema["items"], found))
        }
        (_, "object", _) if schema["additionalProperties"].is_object() => {
            format!("{{}}{}", written(&schema["additionalProperties"], found))
        }
        (_, "object", _) => "o".to_owned(),
        (_, "string", "byte") => "y".to_owned(),
        (_, "string", "date-time") => "t".to_owned(),
        (_, "string", _) => "s".to_owned(),
        (_, "integer", _) => "i".to_owned(),
        (_, "number", _) => "n".to_owned(),
        (_, "boolean", _) => "b".to_owned(),
        (_, "", "int-or-string") => "e".to_owned(),
        (_, "", _) if schema["oneOf"].is_array() => "q".to_owned(),
        (_, "", _) => "*".to_owned(),
        other => panic!("{other:?}"),
    };
    format!("{of_map}{of}")
}

fn with_default(schema: &Value, found: &mut BTreeSet<String>) -> String {
    let default = schema.get("default").map_or(String::new(), |default| format!("={default}"));
    format!("{}{default}", written(schema, found))
}

/// Returns the kind of a type, if it is one that is stored: no list, and no options of requests.
fn kind(name: &str, schema: &Value) -> Option<String> {
    let [kind] = &schema["x-kubernetes-group-version-kind"].as_array()?[..] else { return None };
    let is_list = schema["properties"]["items"].is_object();
    let word = |key: &str| kind[key].as_str().unwrap_or_default();
    let is_whole = name.ends_with(word("kind")) && schema["properties"]["metadata"].is_object();
    (is_whole && !is_list).then(|| format!("{}/{}/{}", word("group"), word("version"), word("kind")))
}

fn table(types: &BTreeMap<String, Value>) -> String {
    let kinds: BTreeMap<&String, String> =
        types.iter().filter_map(|(name, schema)| Some((name, kind(name, schema)?))).collect();
    let mut left: BTreeSet<String> = kinds.keys().map(|name| (*name).clone()).collect();
    let mut lines = BTreeMap::new();
    while let Some(name) = left.pop_first() {
        let schema = &types[&name];
        let mut found = BTreeSet::new();
        let kind = kinds.get(&name).cloned().unwrap_or_default();
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        let mut fields: Vec<String> =
            properties.iter().map(|(name, of)| format!("{name}:{}", with_default(of, &mut found))).collect();
        fields.sort();
        if fields.is_empty() || schema.get("x-kubernetes-map-type").is_some() {
            fields.insert(0, written(schema, &mut found));
        }
        lines.insert(short(&name), format!("{}\t{kind}\t{}\n", short(&name), fields.join("\t")));
        left.extend(found.into_iter().filter(|name| !lines.contains_key(&short(name))));
    }
    lines.into_values().collect()
}

#[test]
fn table_is_what_kubernetes_publishes() {
    let Some(folder) = published() else {
        let _ = writeln!(
            std::io::stderr(),
            "table_is_what_kubernetes_publishes: skipped: no sources of Kubernetes"
        );
        return;
    };
    let types = types(&folder);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/built_in.tsv");
    let table = table(&types);
    if std::env::var_os("TAFFRAIL_WRITE_TYPES").is_some() {
        std::fs::write(&file, &table).unwrap();
        return;
    }
    assert!(
        std::fs::read_to_string(&file).unwrap() == table,
        "{} differs from what Kubernetes publishes; TAFFRAIL_WRITE_TYPES=1 writes it",
        file.display()
    );
    // Nothing that counts is lost on the way.
    let all: Map<String, Value> = types.into_iter().collect();
    let read = OpenApi::read(&json!({ "components": { "schemas": all } })).unwrap();
    for (name, atom) in &built_in().schema.types {
        assert_eq!(atom, &read.schema.types[name], "{name}");
    }
    for kind in built_in().kinds.keys() {
        assert_eq!(built_in().type_of(kind), read.type_of(kind));
    }
    assert!(built_in().kinds.len() > 80, "{}", built_in().kinds.len());
}
