//! Answers of the hub's API, with which the screen is compared.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use taffrail_testkit::hub::Hub;

/// The maximum time until something happens in the fleet, whose faults repeat every five minutes.
const PATIENCE: Duration = Duration::from_secs(400);
/// The time between two questions.
const POLL: Duration = Duration::from_millis(200);

/// Waits until `find` returns something.
pub(super) fn await_some<T>(what: &str, find: impl Fn() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(found) = find()? {
            return Ok(found);
        }
        ensure!(begun.elapsed() < PATIENCE, "there was no {what} within {} s", PATIENCE.as_secs());
        sleep(POLL);
    }
}

/// Returns the text of a field; empty for none.
pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of a list.
pub(super) fn items(hub: &Hub, path: &str) -> Result<Vec<Value>> {
    let list = hub.get(&format!("/api/v1/{path}"))?;
    list["items"].as_array().cloned().with_context(|| format!("{path} has no items: {list}"))
}

/// Asks the question of a view, and returns the items of the answer.
pub(super) fn ask(hub: &Hub, question: &Value) -> Result<Vec<Value>> {
    let (status, body) = hub.post("/api/v1/questions", question)?;
    ensure!(status == 200, "{question}: {status}: {body}");
    let answer: Value = serde_json::from_str(&body)?;
    answer["items"].as_array().cloned().with_context(|| format!("{question}: no items: {answer}"))
}

/// Returns the full name of the app of a row, as commands take it.
pub(super) fn full_name(row: &Value) -> String {
    let namespace = match text(row, "/namespace") {
        "" => "-",
        namespace => namespace,
    };
    [text(row, "/cluster"), text(row, "/delivery"), namespace, text(row, "/name")].join("/")
}

/// Returns the explanation of the app of a row.
pub(super) fn explain(hub: &Hub, row: &Value) -> Result<Value> {
    let question = json!({"view": "explain", "names": [full_name(row)], "perCluster": true});
    let mut items = ask(hub, &question)?;
    ensure!(!items.is_empty(), "no explanation of {}", full_name(row));
    Ok(items.swap_remove(0)["explanation"].take())
}

/// Returns an object as trees and explanations name it: `Pod shop/web-1`.
pub(super) fn called(object: &Value) -> String {
    let (kind, name) = (text(object, "/kind"), text(object, "/name"));
    match text(object, "/namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

/// Returns the failures that need attention, in the hub's order.
pub(super) fn failures(hub: &Hub) -> Result<Vec<Value>> {
    let all = items(hub, "attention?limit=100")?;
    Ok(all.into_iter().filter(|it| it["severity"] == "error" && it["axis"] == "health").collect())
}

/// Returns the rows of the app with this key.
pub(super) fn rows_of(hub: &Hub, key: &str) -> Result<Vec<Value>> {
    let rows = items(hub, &format!("apps?limit=500&text={key}"))?;
    Ok(rows.into_iter().filter(|row| row["key"] == key).collect())
}

/// Returns true if the app of a row is Ready, is live, takes requests, and has its objects where it is declared.
pub(super) fn is_calm(row: &Value) -> bool {
    row["health"] == "Current"
        && row["problem"].is_null()
        && row["freshness"]["state"] == "live"
        && row["suspended"] == false
        && row["home"] == row["cluster"]
        && row["name"] != "flux-system"
}

/// Returns the row of a calm Kustomization.
pub(super) fn calm(hub: &Hub) -> Result<Option<Value>> {
    let rows = items(hub, "apps?status=Ready&delivery=flux-kustomization&sort=name&limit=100")?;
    Ok(rows.into_iter().find(is_calm))
}

/// Returns the objects of an app that are not Ready, by kind and name.
pub(super) fn unwell_objects(hub: &Hub, row: &Value) -> Result<Vec<(String, String)>> {
    let trees = ask(hub, &json!({"view": "tree", "name": full_name(row), "fold": false}))?;
    let mut left: Vec<&Value> = trees.iter().map(|tree| &tree["root"]).collect();
    let mut unwell = Vec::new();
    while let Some(node) = left.pop() {
        left.extend(node["children"].as_array().into_iter().flatten());
        if node["status"] != "Current" {
            let object = &node["object"];
            unwell.push((text(object, "/kind").to_owned(), text(object, "/name").to_owned()));
        }
    }
    Ok(unwell)
}

/// Returns the last lines of the log of an object with this full name.
pub(super) fn last_log_lines(hub: &Hub, name: &str, lines: u32) -> Result<Vec<String>> {
    let question = json!({"what": name, "namespace": null, "allNamespaces": false, "clusters": [], "follow": false,
        "previous": false, "container": null, "allPods": false, "tail": lines, "sinceMillis": null,
        "timestamps": false});
    let (status, body) = hub.post("/api/v1/logs", &question)?;
    ensure!(status == 200, "the log of {name}: {status}: {body}");
    let mut found = Vec::new();
    for event in body.lines().map(serde_json::from_str::<Value>) {
        let event = event?;
        match text(&event, "/event") {
            "error" | "failed" => bail!("the log of {name}: {event}"),
            _ => {
                let lines = event["lines"].as_array().into_iter().flatten();
                found.extend(lines.map(|line| text(line, "/text").to_owned()));
            }
        }
    }
    ensure!(!found.is_empty(), "the log of {name} is empty: {body}");
    Ok(found)
}
