//! The shipped actions, tested with their cases. The cases have Argo CD's form, but must match to the letter, because
//! the clock of the scripts is fixed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use taffrail_object::Object;
use taffrail_rules::lua::{Action, Change, Customizations, LuaError, Operation};
use taffrail_rules::shipped_actions;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Cases {
    discovery_tests: Vec<Discovery>,
    action_tests: Vec<Run>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Discovery {
    input_path: String,
    result: Vec<Offered>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Offered {
    name: String,
    disabled: bool,
    display_name: String,
    icon_class: String,
    #[serde(default)]
    params: Vec<Told>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Told {
    name: String,
    #[serde(default)]
    value: String,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    default: String,
}

impl From<Action> for Offered {
    fn from(action: Action) -> Offered {
        let Action { name, disabled, display_name, icon_class, params } = action;
        let told = params.into_iter().map(|it| Told {
            name: it.name,
            value: it.value,
            kind: it.kind,
            default: it.default,
        });
        Offered { name, disabled, display_name, icon_class, params: told.collect() }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Run {
    action: String,
    input_path: String,
    expected_output_path: Option<String>,
    expected_error_message: Option<String>,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
}

static SHIPPED: LazyLock<Customizations> = LazyLock::new(shipped_actions);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("actions")
}

/// Lists the folders `GROUP/KIND/actions`.
fn folders() -> Vec<PathBuf> {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        found.sort();
        found
    };
    let kinds = inside(&root()).into_iter().flat_map(|group| inside(&group));
    kinds.map(|kind| kind.join("actions")).collect()
}

fn yaml<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the time at which `taffrail rules test` runs scripts.
fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn run(action: &str, object: &Value, parameters: &BTreeMap<String, String>) -> Result<Vec<Change>, LuaError> {
    SHIPPED.run(action, &Object::new(object.into()).unwrap(), parameters, now())
}

/// Converts numbers so that JSON compares them by value, whatever type they were parsed as.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(key, value)| (key.clone(), plain(value))).collect())
        }
        other => other.clone(),
    }
}

fn expected(path: &Path) -> Vec<(&'static str, Value)> {
    match yaml::<Value>(path) {
        Value::Array(items) => items
            .iter()
            .map(|item| match item["k8sOperation"].as_str() {
                Some("create") => ("create", plain(&item["unstructuredObj"])),
                _ => ("patch", plain(&item["unstructuredObj"])),
            })
            .collect(),
        object => vec![("patch", plain(&object))],
    }
}

#[test]
fn discovery_of_every_shipped_action_matches_its_cases() {
    for folder in folders() {
        let cases: Cases = yaml(&folder.join("action_test.yaml"));
        for Discovery { input_path, result } in cases.discovery_tests {
            let object: Value = yaml(&folder.join(&input_path));
            let offered = SHIPPED.discover(&Object::new((&object).into()).unwrap(), now());
            let mut offered: Vec<Offered> = offered.unwrap().into_iter().map(Offered::from).collect();
            offered.sort_by(|one, other| one.name.cmp(&other.name));
            assert_eq!(offered, result, "{} {input_path}", folder.display());
        }
    }
}

#[test]
fn result_of_every_shipped_action_matches_its_cases() {
    for folder in folders() {
        let cases: Cases = yaml(&folder.join("action_test.yaml"));
        for case in cases.action_tests {
            let name = format!("{} {} {}", folder.display(), case.action, case.input_path);
            let object: Value = yaml(&folder.join(&case.input_path));
            let done = run(&case.action, &object, &case.parameters);
            if let Some(message) = &case.expected_error_message {
                assert_eq!(done.unwrap_err().problem.to_string(), *message, "{name}");
                continue;
            }
            let changes = done.unwrap_or_else(|error| panic!("{name}: {error}"));
            let changes: Vec<_> = changes
                .iter()
                .map(|change| match change.operation {
                    Operation::Create => ("create", plain(&change.object)),
                    Operation::Patch => ("patch", plain(&change.object)),
                })
                .collect();
            assert_eq!(changes, expected(&folder.join(case.expected_output_path.unwrap())), "{name}");
        }
    }
}

#[test]
fn every_shipped_action_has_cases_and_a_source() {
    let folders = folders();
    assert!(folders.len() > 50, "{}", folders.len());
    for folder in folders {
        let text = fs::read_to_string(folder.join("discovery.lua")).unwrap();
        assert!(text.starts_with("-- https://"), "{}: which documentation is it after?", folder.display());
        let cases: Cases = yaml(&folder.join("action_test.yaml"));
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let scripts: BTreeSet<String> = entries
            .filter(|path| path.join("action.lua").is_file())
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        let ran: BTreeSet<String> = cases.action_tests.into_iter().map(|case| case.action).collect();
        let offered = cases.discovery_tests.iter().flat_map(|case| &case.result);
        let offered: BTreeSet<String> = offered.map(|action| action.name.clone()).collect();
        assert_eq!(scripts, ran, "{}", folder.display());
        assert_eq!(scripts, offered, "{}", folder.display());
    }
}

#[test]
fn every_offered_action_changes_the_object() {
    // An action that changes nothing must not be offered: it would be shown as applicable.
    for folder in folders() {
        let cases: Cases = yaml(&folder.join("action_test.yaml"));
        for Discovery { input_path, result } in cases.discovery_tests {
            let object: Value = yaml(&folder.join(&input_path));
            for action in result.iter().filter(|action| !action.disabled && action.params.is_empty()) {
                let name = format!("{} {} {input_path}", folder.display(), action.name);
                let changes = run(&action.name, &object, &BTreeMap::new());
                let changes = changes.unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(changes.iter().any(|change| plain(&change.object) != plain(&object)), "{name}");
            }
        }
    }
}
