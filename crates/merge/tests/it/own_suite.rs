//! The own tests of the library that the API server uses, structured-merge-diff, with Taffrail's updater in place of its
//! own (`bench/peers/merge/suite`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use serde_json::{Map as JsonMap, Value, json};
use taffrail_merge::{FieldSet, ManagedFields, Managers, Type, UpdateError, Updater};
use taffrail_testkit::{binary, go_modules, peers};

use super::document;

const MODULE: &str = "sigs.k8s.io/structured-merge-diff/v6";
const VERSION: &str = "v6.4.2";

/// The start of the line by which a step says that it converts versions, which Taffrail leaves to its callers.
const LEFT_OUT: &str = "left out: ";

/// The results of Go's tests that must be.
const EXPECTED: &str = "\
functions: 27 passed, 0 failed, 6 left out
subtests that hold others: 12 passed, 0 failed, 42 left out
subtests: 163 passed, 0 failed, 151 left out
";

/// Takes one step, and returns the answer.
fn step(request: &Value) -> Value {
    let (schema, at) = (document::read(&request["schema"]), document::read_type(&request["type"]));
    let fields = |fields: &Value| FieldSet::from_fields_v1(fields).unwrap();
    let managers = request["managers"].as_object().unwrap().iter().map(|(name, it)| {
        let (version, is_applied) = (it["version"].as_str().unwrap().to_owned(), it["applied"] == true);
        (name.clone(), ManagedFields { fields: fields(&it["fields"]), version, is_applied })
    });
    let managers: Managers = managers.collect();
    let version = request["version"].as_str().unwrap();
    let updater = Updater::new(Type::new(&schema, &at), version).ignoring(fields(&request["ignored"]));
    let (live, object) = (&request["live"], &request["object"]);
    let manager = request["manager"].as_str().unwrap();
    let done = match request["update"] == true {
        true => updater.update(live, object, &managers, manager).map(|managers| (None, managers)),
        false => updater
            .apply(live, object, &managers, manager, request["force"] == true)
            .map(|after| (after.object, after.managers)),
    };
    match done {
        Ok((object, managers)) => {
            let managers = managers.into_iter().map(|(name, it)| {
                let fields = it.fields.to_fields_v1();
                (name, json!({"fields": fields, "version": it.version, "applied": it.is_applied}))
            });
            let mut answer = json!({"managers": managers.collect::<JsonMap<_, _>>()});
            if let Some(object) = object {
                answer["object"] = object;
            }
            answer
        }
        Err(UpdateError::Conflicts(conflicts)) => {
            let mut sets: BTreeMap<String, FieldSet> = BTreeMap::new();
            for conflict in conflicts {
                sets.entry(conflict.manager).or_default().insert(&conflict.path);
            }
            let sets = sets.into_iter().map(|(name, set)| (name, set.to_fields_v1()));
            json!({"conflicts": sets.collect::<JsonMap<_, _>>()})
        }
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// Answers the steps that come over a connection until it ends.
fn serve(connection: TcpStream) {
    let requests = BufReader::new(connection.try_clone().unwrap());
    let mut answers = connection;
    for line in requests.lines() {
        let request = serde_json::from_str(&line.unwrap()).unwrap();
        // In one piece: the other side of a connection acknowledges small ones late.
        answers.write_all(format!("{}\n", step(&request)).as_bytes()).unwrap();
    }
}

/// The results of a run of Go's tests, by their names.
#[derive(Default)]
struct Results {
    /// Passed or failed.
    passed: BTreeMap<String, bool>,
    /// The reasons for which tests are left out.
    left_out: BTreeMap<String, BTreeSet<String>>,
    output: BTreeMap<String, String>,
}

impl Results {
    /// Reads what `go test -json` prints.
    fn read(events: &str) -> Results {
        let mut results = Results::default();
        for event in events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let test = event["Test"].as_str().unwrap_or_default().to_owned();
            match event["Action"].as_str() {
                Some("pass" | "skip") if !test.is_empty() => drop(results.passed.insert(test, true)),
                Some("fail") if !test.is_empty() => drop(results.passed.insert(test, false)),
                Some("output" | "build-output") => {
                    let output = event["Output"].as_str().unwrap_or_default();
                    if let Some(reason) = output.strip_prefix(LEFT_OUT) {
                        results
                            .left_out
                            .entry(test.clone())
                            .or_default()
                            .insert(reason.trim_end().to_owned());
                    }
                    results.output.entry(test).or_default().push_str(output);
                }
                _ => {}
            }
        }
        results
    }

    /// Returns true if a test, or one below it, is left out.
    fn is_left_out(&self, test: &str) -> bool {
        self.left_out.keys().any(|other| other == test || is_below(other, test))
    }

    /// Counts the results of functions, of subtests that hold others, and of those that do not.
    fn counts(&self) -> String {
        let holds_others = |test: &str| self.passed.keys().any(|other| is_below(other, test));
        let sort = |test: &str| match test.contains('/') {
            false => "functions",
            true if holds_others(test) => "subtests that hold others",
            true => "subtests",
        };
        let count = |name: &str| {
            let of_sort = self.passed.iter().filter(|(test, _)| sort(test) == name);
            let (left_out, rest): (Vec<_>, Vec<_>) = of_sort.partition(|(test, _)| self.is_left_out(test));
            let passed = rest.iter().filter(|(_, is_passed)| **is_passed).count();
            let (failed, left_out) = (rest.len() - passed, left_out.len());
            format!("{name}: {passed} passed, {failed} failed, {left_out} left out\n")
        };
        ["functions", "subtests that hold others", "subtests"].map(count).concat()
    }
}

fn is_below(test: &str, other: &str) -> bool {
    test.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

#[test]
fn its_own_tests_pass_with_this_updater_in_the_library_of_the_api_server() {
    let test = "its_own_tests_pass_with_this_updater_in_the_library_of_the_api_server";
    if peers::skips(test, peers::without_go()).unwrap() {
        return;
    }
    let copy = go_modules::copy(MODULE, VERSION).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The thread ends with the process of the test, or with the connection.
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    let ours = binary::workspace().join("bench/peers/merge/suite/update.go");
    let overlay = std::env::temp_dir().join(format!("taffrail-overlay-{}.json", std::process::id()));
    let replaced =
        json!({"Replace": {copy.join("merge/update.go").to_str().unwrap(): ours.to_str().unwrap()}});
    std::fs::write(&overlay, replaced.to_string()).unwrap();
    let run = Command::new("go")
        .args(["test", "-json", "-count=1", "-overlay"])
        .arg(&overlay)
        .arg("./merge")
        .current_dir(copy)
        .env("GOWORK", "off")
        .env("TAFFRAIL_MERGE_ADDRESS", address.to_string())
        .stdin(Stdio::null())
        .output();
    let _ = std::fs::remove_file(overlay);
    let run = run.unwrap();
    let results = Results::read(&String::from_utf8_lossy(&run.stdout));
    let tell = |line: &str| drop(writeln!(std::io::stderr(), "{line}"));
    for (test, reasons) in &results.left_out {
        let reasons: Vec<&str> = reasons.iter().map(String::as_str).collect();
        tell(&format!("{LEFT_OUT}{test}: {}", reasons.join("; ")));
    }
    tell(&results.counts());
    let failed = results.passed.iter().filter(|(test, is_passed)| !**is_passed && !results.is_left_out(test));
    let failed: Vec<String> = failed
        .map(|(test, _)| format!("{test}:\n{}", results.output.get(test).map_or("", String::as_str)))
        .collect();
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    let other = results.output.get("").map_or("", String::as_str);
    assert_eq!(results.counts(), EXPECTED, "{other}\n{}", String::from_utf8_lossy(&run.stderr));
}
