//! The golden cases of `apps` and `assess`, and cases of our own in the same form, through the command line.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{NOW, dump_in, taffrail};

fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An object as `group/Kind/namespace/name`.
fn reference(object: &Value) -> Option<String> {
    let text = |key| object.get(key).and_then(Value::as_str);
    let parts: Option<Vec<&str>> = ["group", "kind", "namespace", "name"].into_iter().map(text).collect();
    Some(parts?.join("/"))
}

fn identity(row: &Value) -> String {
    ["cluster", "delivery", "namespace", "name"].map(|key| row[key].as_str().unwrap_or_default()).join(" ")
}

/// Returns the differences between a row and the expected one, in the fields that this one has.
fn differences(expected: &Value, row: &Value) -> Vec<String> {
    let found = |key: &str| match key {
        "sync" => row["sync"]["state"].clone(),
        "applied" => row["sync"]["applied"].clone(),
        "worst" => reference(&row["worst"]).map(Value::from).unwrap_or_default(),
        _ => row[key].clone(),
    };
    let wanted = expected.as_object().unwrap().iter();
    let differing = wanted.filter(|(key, wanted)| match key.as_str() {
        "message" => !found(key).as_str().unwrap().contains(wanted.as_str().unwrap()),
        _ => found(key) != **wanted,
    });
    differing.map(|(key, wanted)| format!("{key} is {}, not {wanted}", found(key))).collect()
}

/// Checks the rows that `get apps` shows of a case.
fn shows_its_rows(case: &Path) {
    let answer = taffrail(&["get", "apps", "-A", "--from", &dump_in(case), "--now", NOW, "-o", "json"], "");
    let list = answer.json();
    let expected = yaml(&case.join("expect.yaml"));
    let rows = list["items"].as_array().unwrap();
    let wanted = expected["apps"].as_array().unwrap();
    let ids = |rows: &[Value]| rows.iter().map(identity).collect::<BTreeSet<_>>();
    assert_eq!(ids(rows).len(), rows.len(), "an app is shown twice");
    assert_eq!(ids(rows), ids(wanted), "the apps that are shown");
    let mut wrong = Vec::new();
    for row in wanted {
        let found = rows.iter().find(|found| identity(found) == identity(row)).unwrap();
        let differences = differences(row, found).into_iter();
        wrong.extend(differences.map(|difference| format!("{}: {difference}", identity(row))));
    }
    let message = |error: &Value| error["message"].as_str().unwrap().to_owned();
    let errors: Vec<_> = list["errors"].as_array().unwrap().iter().map(message).collect();
    let parts = expected["errors"].as_array().unwrap();
    if parts.is_empty() != errors.is_empty() {
        wrong.push(format!("errors are {errors:?}"));
    }
    let lacking = parts.iter().filter(|part| !errors.iter().any(|it| it.contains(part.as_str().unwrap())));
    wrong.extend(lacking.map(|part| format!("{part} is not in {errors:?}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

mod golden_apps {
    golden_apps!(super::shows_its_rows);
}

mod own_apps {
    own_apps!(super::shows_its_rows);
}

/// Cases whose answers are those of an older list of what evidence may change; how they are now, and why.
const TOLD_OTHERWISE: [(&str, &str, &str); 9] = [
    (
        "broken-node-taint-unreachable.yaml",
        "InProgress",
        "Ready is False: a kubelet that still speaks, whatever taint is left",
    ),
    (
        "noisy-cr-current-though-pod-crashes.yaml",
        "Failed",
        "Available=False is adverse, and its own Pod fails by a hard cause",
    ),
    (
        "noisy-cronjob-never-ran.yaml",
        "Failed",
        "its last scheduled run left no Job, nothing active and no success",
    ),
    ("noisy-cronjob-running-job-in-trouble.yaml", "Failed", "its active Job cannot start by a hard cause"),
    ("noisy-daemonset-ondelete-old.yaml", "Current", "Pods of an old template are noise with OnDelete"),
    ("noisy-err-image-never-pull-not-listed.yaml", "Failed", "ErrImageNeverPull is a hard cause now"),
    ("noisy-hpa-invalid-selector.yaml", "Failed", "InvalidSelector is a failure of the autoscaler now"),
    ("noisy-pv-failed-not-listed.yaml", "Failed", "a phase Failed of a kind without rule is adverse"),
    ("noisy-run-container-error-not-listed.yaml", "Failed", "RunContainerError is a hard cause now"),
];

/// Checks what `explain` says of the declared objects of a case.
fn finds_the_cause(path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let case = yaml(path);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": case["objects"]});
    let declared: Vec<_> =
        case["declared"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    let (declared, now) = (declared.join(","), case["now"].as_str().unwrap());
    let answer = taffrail(
        &["explain", "--from", "-", "--now", now, "--declared", &declared, "-o", "json"],
        &list.to_string(),
    );
    let found = answer.json();
    let expected = &case["expect"];
    let chain = found["chain"].as_array().unwrap();
    let own = [
        ("health", found["health"].as_str().map(str::to_owned)),
        ("worst", reference(&found["object"])),
        ("cause", chain.last().and_then(|link| reference(&link["object"]))),
    ];
    let mut wrong = Vec::new();
    for (key, found) in own {
        // An absent worst says that all is well; an absent cause is not compared.
        if let Some((_, health, why)) = TOLD_OTHERWISE.iter().find(|(file, ..)| name == *file) {
            if key == "health" && found.as_deref() != Some(health) {
                wrong.push(format!("{key} is {found:?}, not {health}: {why}"));
            }
            continue;
        }
        if (expected[key].is_string() || key == "worst") && found.as_deref() != expected[key].as_str() {
            wrong.push(format!("{key} is {found:?}, not {}", expected[key]));
        }
    }
    let message = found["message"].as_str().unwrap();
    if !message.contains(expected["message"].as_str().unwrap_or_default()) {
        wrong.push(format!("message is {message:?}, not {}", expected["message"]));
    }
    if expected["notmessage"].as_str().is_some_and(|part| message.contains(part)) {
        wrong.push(format!("message is {message:?}, with {}", expected["notmessage"]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(chain.first().map(|link| &link["object"]), found.get("object"));
    assert_eq!(chain.is_empty(), found["next"].as_array().unwrap().is_empty());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
}

mod golden_assess {
    golden_assess!(super::finds_the_cause);
}

mod own_assess {
    own_assess!(super::finds_the_cause);
}
