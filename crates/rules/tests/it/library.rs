//! Tests of the shipped library, with its cases; and of the checks themselves, with a small faulty library.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use taffrail_rules::{Folder, RuleSet, RuleTestReport, test_rules};
use taffrail_status::Rules;

fn folders(root: &str) -> Vec<Folder> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
    let mut folders: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|folder| folder.is_dir())
        .map(|folder| {
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            let read = |file: &str| {
                let text = fs::read_to_string(folder.join(file)).ok();
                text.map(|text| (format!("{name}/{file}"), text)).into_iter().collect()
            };
            Folder { rules: read("rules.yaml"), cases: read("cases.yaml"), name }
        })
        .collect();
    folders.sort_by(|one, other| one.name.cmp(&other.name));
    folders
}

/// Lists all errors and failures, a line each.
fn wrong(report: &RuleTestReport) -> Vec<String> {
    let failed = report.failed.iter().map(|it| format!("{}: {} {}: {}", it.file, it.kind, it.name, it.why));
    let errors = report.errors.iter().map(|error| {
        let why = std::error::Error::source(error).map(|why| format!(": {why}")).unwrap_or_default();
        format!("{error}{why}")
    });
    failed.chain(errors).chain(report.faults.iter().map(ToString::to_string)).collect()
}

#[test]
fn every_library_case_passes_and_covers_every_branch() {
    let folders = folders("library");
    let report = test_rules(&folders);
    let wrong = wrong(&report);
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), report.passed, wrong.join("\n"));
    // The compiled-in library has a group for each folder.
    let set = RuleSet::shipped();
    let clusters = Rules::cluster_kinds(&set);
    let clusters = clusters.iter().map(|kind| &*kind.group);
    let built_in: BTreeSet<&str> = set.all().iter().map(|found| found.group).chain(clusters).collect();
    for folder in &folders {
        assert!(built_in.contains(folder.name.replacen('_', "*", 1).as_str()), "{}", folder.name);
    }
}

#[test]
fn test_report_lists_all_faults() {
    assert_eq!(wrong(&test_rules(&folders("tests/library"))), Vec::<String>::new());

    let rules = "group: example.com\nsource: x\nkinds:\n  A, B: {rules: [{status: Failed, field: spec.a, is: 1}, {status: Current}]}\n  C: {rules: [{status: Failed}]}\n";
    let cases = "
- {kind: A, name: one, object: {apiVersion: example.com/v1, kind: A, spec: {a: 1}, status: {b: 1}}, status: Failed, message: 'spec.a: 2'}
- {kind: B, name: two, object: {apiVersion: example.com/v1, kind: B, status: {b: 1}}, status: Current}
- {kind: A, name: one, object: {apiVersion: example.com/v1, kind: A}, status: InProgress, age: 1m}
- {kind: A, name: other, object: {apiVersion: example.com/v1, kind: B}, status: Current}
- {kind: A, nome: other}
";
    let of = |text: &str, file: &str| vec![(file.to_owned(), text.to_owned())];
    let folder = Folder {
        name: "example.org".to_owned(),
        rules: of(rules, "rules.yaml"),
        cases: of(cases, "cases.yaml"),
    };
    let report = test_rules(&[folder]);
    assert_eq!(report.passed, 2);
    assert_eq!(
        wrong(&report),
        [
            "cases.yaml: A one: the verdict is Failed, \"spec.a: 1\", not Failed, \"spec.a: 2\" (by user/example.com/A#1)",
            "cases.yaml: A other: the object of the case has the kind B, not A",
            "cases.yaml: case 5: the rules or cases file has the key 'nome' where it is not allowed",
            "rules.yaml: the rules are for the group example.com, so the folder should be example.com",
            "cases.yaml: two cases of A are called 'one'",
            "example.com/C#1: no test case reaches this rule",
        ]
    );
}

/// The library is not parsed before it is used, and the shown rules are the lines of the file.
#[test]
fn shown_rules_are_the_lines_of_their_file() {
    let folders = folders("tests/library");
    let files = folders.iter().flat_map(|folder| &folder.rules);
    let files = files.map(|(file, text)| (file.as_str(), text.as_str()));
    let layer = taffrail_rules::Layer::read(taffrail_rules::Origin::User, files).unwrap();
    let text = |group: &str, kind: &str| layer.find(group, kind).unwrap().text().unwrap().to_owned();
    let lock = text("doors.example.com", "Lock");
    assert!(lock.starts_with("  Lock:\n    rules:\n") && lock.ends_with("is: true}\n"), "{lock}");
    assert!(text("doors.example.com", "Key").starts_with("  Hinge, Key:\n"));
    assert!(text("any.parts.example.com", "Bolt").starts_with("  \"*\":\n"));
}
