//! Incidents as people reported them, judged with all rules that come with the program.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use taffrail_object::{Object, ObjectKey};
use taffrail_rules::RuleSet;
use taffrail_status::assess::{Dump, assess_named, worst};
use taffrail_status::{Rules, Status, Taffrail};

/// What is wrong in the answers to a case.
fn differences(case: &Value, rules: &dyn Rules) -> Vec<String> {
    let objects = case["objects"].as_array().unwrap();
    let dump = Dump::new(objects.iter().filter_map(|object| Object::new(object.into()).ok()));
    let now = case["now"].as_str().unwrap().parse().unwrap();
    let name = |text: &Value| {
        let parts: Vec<_> = text.as_str().unwrap().split('/').collect();
        let &[group, kind, namespace, name] = parts.as_slice() else { panic!("{text} names no object") };
        ObjectKey::new(group, kind, namespace, name)
    };
    let declared = case["declared"].as_array().unwrap().iter().map(name);
    let judge = |name: ObjectKey| assess_named(&name, &dump, rules, now, &rules.options());
    let assessments: Vec<_> = declared.map(judge).collect();
    let speaker = worst(&assessments).unwrap();
    let status = speaker.verdict.status;
    let found = [
        ("health", Some(status.to_string())),
        ("worst", (status != Status::Current).then(|| speaker.object.to_string())),
        ("cause", speaker.chain.last().map(|link| link.object.to_string())),
    ];
    let expected = &case["expect"];
    let mut differences = Vec::new();
    for (field, found) in found {
        let wanted = expected[field].as_str();
        if (field != "cause" || wanted.is_some()) && found.as_deref() != wanted {
            let rule = &speaker.verdict.rule;
            differences.push(format!("{field} is {found:?}, not {wanted:?}; {} ({rule})", speaker.message));
        }
    }
    if let Some(part) = expected["message"].as_str()
        && !speaker.message.contains(part)
    {
        differences.push(format!("message {:?} lacks {part:?}", speaker.message));
    }
    differences
}

/// What is told wrong of all incidents, by file.
fn wrong_by(rules: &dyn Rules) -> BTreeMap<String, Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../taffrail/tests/cases/incidents");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 60, "only {} cases", files.len());
    let differences = files.iter().map(|path| {
        let case: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        (path.file_name().unwrap().to_string_lossy().into_owned(), differences(&case, rules))
    });
    differences.filter(|(_, differences)| !differences.is_empty()).collect()
}

/// Where the library has a rule for the kind, and says more than `generic/adverse` would: that is for what only `fallback` or
/// `generic/ready` call Current.
const SAID_BY_THE_LIBRARY: [(&str, &str); 4] = [
    ("broken-clusterversion-update-failing.yaml", "shipped/config.openshift.io/ClusterVersion"),
    ("broken-crossplane-managed-resource-not-synced.yaml", "shipped/*.upbound.io/*"),
    ("broken-external-secret-store-invalid.yaml", "shipped/external-secrets.io/ExternalSecret"),
    ("broken-velero-storage-location-unavailable.yaml", "shipped/velero.io/BackupStorageLocation"),
];

#[test]
fn every_incident_is_told_right_by_all_rules() {
    let mut wrong = wrong_by(&RuleSet::shipped());
    let wrong_by_what_is_built_in = wrong_by(&Taffrail);
    for (file, rule) in SAID_BY_THE_LIBRARY {
        let differences = wrong.remove(file).unwrap_or_default();
        let is_stronger = |it: &str| {
            it.starts_with("health is Some(\"Failed\"), not Some(\"InProgress\")") && it.contains(rule)
        };
        assert!(matches!(&*differences, [only] if is_stronger(only)), "{file}: {differences:#?}");
        assert_eq!(wrong_by_what_is_built_in.get(file), None);
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}
