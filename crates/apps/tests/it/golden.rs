//! The golden cases: dumps of clusters, and the rows that they must show; see `tests/golden/apps`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use taffrail_apps::{Objects, Snapshot, apps};
use taffrail_status::ActiveRules;

use super::dump::{NOW, cluster, documents};

pub(crate) fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/apps");
    let mut cases: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 25, "the golden cases are there");
    cases
}

pub(crate) fn clusters(case: &Path) -> Vec<Snapshot> {
    let mut files = match fs::read_dir(case.join("clusters")) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => vec![case.join("cluster.yaml")],
    };
    files.sort();
    let read = |file: &PathBuf| {
        let name = file.file_stem().unwrap().to_str().unwrap();
        cluster(name, &fs::read_to_string(file).unwrap())
    };
    files.iter().map(read).collect()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn identity(row: &Value) -> String {
    ["cluster", "delivery", "namespace", "name"].map(|key| text(row, key)).join(" ")
}

/// Returns the expectations that an answer does not meet.
fn differences(expected: &Value, row: &Value) -> Vec<String> {
    let worst = row
        .get("worst")
        .map(|worst| ["group", "kind", "namespace", "name"].map(|key| text(worst, key)).join("/"));
    let found = |key: &str| match key {
        "sync" => row["sync"]["state"].clone(),
        "applied" => row["sync"]["applied"].clone(),
        "worst" => worst.clone().map(Value::from).unwrap_or_default(),
        _ => row[key].clone(),
    };
    let mut differences = Vec::new();
    for (key, wanted) in expected.as_object().unwrap() {
        let found = found(key);
        let equal = match key.as_str() {
            "message" => found.as_str().unwrap().contains(wanted.as_str().unwrap()),
            _ => found == *wanted,
        };
        if !equal {
            differences.push(format!("{key} is {found}, not {wanted}"));
        }
    }
    differences
}

/// Checks the rows of a case.
fn rows_are_right(case: &Path) {
    let expected = documents(&fs::read_to_string(case.join("expect.yaml")).unwrap()).remove(0);
    let snapshots = clusters(case);
    let clusters: Vec<&dyn Objects> = snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect();
    let list = apps(&clusters, &ActiveRules::default(), NOW);
    let list = serde_json::to_value(taffrail_api::List::<taffrail_api::AppRow>::from(&list)).unwrap();

    let rows: Vec<&Value> = list["items"].as_array().unwrap().iter().collect();
    let wanted: Vec<&Value> = expected["apps"].as_array().unwrap().iter().collect();
    let mut wrong = Vec::new();
    for row in &wanted {
        let id = identity(row);
        let found: Vec<_> = rows.iter().filter(|row| identity(row) == id).collect();
        match found.as_slice() {
            [] => wrong.push(format!("{id}: no such row")),
            [found] => {
                wrong.extend(differences(row, found).iter().map(|difference| format!("{id}: {difference}")));
            }
            _ => wrong.push(format!("{id}: shown twice")),
        }
    }
    let ids: BTreeSet<String> = wanted.iter().map(|row| identity(row)).collect();
    for row in rows.iter().filter(|row| !ids.contains(&identity(row))) {
        wrong.push(format!("{}: not expected", identity(row)));
    }
    let errors: Vec<&str> =
        list["errors"].as_array().unwrap().iter().map(|error| text(error, "message")).collect();
    for part in expected["errors"].as_array().unwrap() {
        let part = part.as_str().unwrap();
        if !errors.iter().any(|error| error.contains(part)) {
            wrong.push(format!("{part} is not in {errors:?}"));
        }
    }
    if expected["errors"].as_array().unwrap().is_empty() && !errors.is_empty() {
        wrong.push(format!("errors are not expected: {errors:?}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

mod apps {
    golden_apps!(super::rows_are_right);
}
