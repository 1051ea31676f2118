//! Tests that all shipped rules give the expected verdicts on incidents that users reported.

use std::fs;
use std::path::Path;

use serde_json::Value;
use taffrail_object::{Object, ObjectKey};
use taffrail_rules::RuleSet;
use taffrail_status::assess::{Dump, assess_named};
use taffrail_status::rollup::worst;
use taffrail_status::{ActiveRules, Rules, Status, Taffrail};

/// Lists the differences between the expected and the actual verdicts of a case.
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
    let judge = |name: ObjectKey| assess_named(&name, &dump, &ActiveRules::new(rules), now);
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

/// The incidents in which the library has a rule for the kind, whose verdict comes before that of `generic/adverse`,
/// which is only for objects that `fallback` or `generic/ready` call Current.
const SAID_BY_THE_LIBRARY: [(&str, &str); 4] = [
    ("broken-clusterversion-update-failing.yaml", "shipped/config.openshift.io/ClusterVersion"),
    ("broken-crossplane-managed-resource-not-synced.yaml", "shipped/*.upbound.io/*"),
    ("broken-external-secret-store-invalid.yaml", "shipped/external-secrets.io/ExternalSecret"),
    ("broken-velero-storage-location-unavailable.yaml", "shipped/velero.io/BackupStorageLocation"),
];

/// Checks that all shipped rules give the expected verdicts on the incident in this file. For an incident in
/// [`SAID_BY_THE_LIBRARY`] the only difference must be Failed by that rule, and the built-in rules alone must give the
/// expected verdicts.
fn is_told_right(path: &Path) {
    let case: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let wrong = differences(&case, &RuleSet::shipped());
    let file = path.file_name().unwrap();
    match SAID_BY_THE_LIBRARY.iter().find(|(stronger, _)| file == *stronger) {
        None => assert!(wrong.is_empty(), "{wrong:#?}"),
        Some((_, rule)) => {
            let is_stronger = |it: &str| {
                it.starts_with("health is Some(\"Failed\"), not Some(\"InProgress\")") && it.contains(rule)
            };
            assert!(matches!(&*wrong, [only] if is_stronger(only)), "{wrong:#?}");
            assert_eq!(differences(&case, &Taffrail), Vec::<String>::new(), "by what is built in");
        }
    }
}

incidents!(self::is_told_right);
