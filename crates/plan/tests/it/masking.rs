//! Masks: values of Secrets are nowhere in what is told.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};
use taffrail_plan::diff::{
    ArgoIgnoreRule, DiffBasis, DiffOptions, DiffOutcome, DryRun, IgnoreRules, JqError, JqPath, JqRunner,
    NoDryRun, ObjectDiff, UnknownReason, mask_together,
};

use crate::server::{Case, OURS, apply, deployment, kubectl_apply, texts, update};

const CANARY: &str = "canary-5up3r-53cr3t";

/// The canary as Secrets hold it.
const CANARY_DATA: &str = "Y2FuYXJ5LTV1cDNyLTUzY3IzdA==";

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn secret(rest: &Value) -> Value {
    let mut object =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}});
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object
}

fn data(data: &Value) -> Value {
    secret(&json!({"data": data}))
}

fn compared(wanted: &Value, live: &Value) -> Vec<String> {
    Case::merged(wanted, live).texts()
}

/// Checks that the canary is in no form of a result.
fn check(diff: &ObjectDiff) {
    let mut all = format!("{diff:?} {}", serde_json::to_string(diff).unwrap());
    diff.reasons.iter().for_each(|it| write!(all, "{it}").unwrap());
    diff.notes.iter().for_each(|it| write!(all, "{it}").unwrap());
    for value in [CANARY, CANARY_DATA, "5up3r", "424242"] {
        assert!(!all.contains(value), "{all}");
    }
}

#[test]
fn b35_string_data_is_merged_into_data() {
    let live = apply(None, &data(&json!({"a": "MQ==", "b": "Mg=="})), OURS);
    let texts = |value: Value| secret(&json!({"stringData": value}));
    assert_eq!(compared(&texts(json!({"a": "1", "b": "2"})), &live), [""; 0]);
    let both = secret(&json!({"data": {"a": "x", "b": "Mg=="}, "stringData": {"a": "1"}}));
    assert_eq!(compared(&both, &live), [""; 0]);
    assert_eq!(Case::server(&both, &live, |answer| answer["data"]["a"] = json!("MQ==")).texts(), [""; 0]);
    // A value that is not a text stays, so that the server refuses it.
    let invalid = texts(json!({"a": "1", "b": 2}));
    let diff = Case::merged(&invalid, &live).diff();
    assert!(diff.differences.iter().any(|it| it.path.to_string().starts_with("stringData")), "{diff:?}");
    let empty = apply(None, &data(&json!({"a": ""})), OURS);
    assert_eq!(compared(&data(&json!({"a": null})), &empty), [""; 0]);
    assert_eq!(compared(&secret(&json!({"data": null})), &secret(&json!({}))), [""; 0]);
    // What is masked already is a value like others.
    let masked = data(&json!({"a": "++++++++"}));
    assert_eq!(compared(&masked, &apply(None, &masked, OURS)), [""; 0]);
    assert_eq!(compared(&masked, &empty), ["data.a: \"++++++++++++\" -> \"++++++++\""]);
}

#[test]
fn b40_masks_show_which_values_are_equal_and_nothing_else() {
    let masked = |mut sides: Vec<Value>, annotations: &[&str]| {
        let annotations = annotations.iter().map(|it| (*it).to_owned()).collect();
        mask_together(&mut sides.iter_mut().collect::<Vec<_>>(), &annotations);
        sides
    };
    let (one, two, three) = ("++++++++", "++++++++++++", "++++++++++++++++");
    let values =
        |sides: &[Value], key: &str| sides.iter().map(|it| it["data"][key].clone()).collect::<Vec<_>>();
    let sides = masked(
        vec![
            data(&json!({"a": "MQ==", "b": "1"})),
            data(&json!({"a": "Mg==", "b": "1", "c": "1"})),
            data(&json!({"a": "Mw=="})),
        ],
        &[],
    );
    assert_eq!(values(&sides, "a"), [one, two, three]);
    assert_eq!(values(&sides, "b"), [json!(one), json!(one), json!(null)]);
    assert_eq!(values(&sides, "c"), [json!(null), json!(one), json!(null)]);
    // One side alone, in either order; of stringData and data, equal values are equal.
    assert_eq!(masked(vec![json!({}), data(&json!({"a": "1"}))], &[])[1]["data"]["a"], one);
    assert_eq!(masked(vec![data(&json!({"a": "1"})), json!(null)], &[])[0]["data"]["a"], one);
    let sides = masked(vec![secret(&json!({"stringData": {"a": "1"}})), data(&json!({"a": "MQ=="}))], &[]);
    assert_eq!((&sides[0]["stringData"]["a"], &sides[1]["data"]["a"]), (&json!(one), &json!(one)));

    // The copy of kubectl, on either side or both.
    let with_copy = |copy: &str| {
        let mut object = data(&json!({"a": "Mg=="}));
        object["metadata"]["annotations"] = json!({LAST_APPLIED: copy});
        object
    };
    let copy = data(&json!({"a": "MQ=="})).to_string();
    let sides = masked(vec![with_copy(&copy), data(&json!({"a": "MQ=="})), with_copy(&copy)], &[]);
    for side in [&sides[0], &sides[2]] {
        let copy: Value =
            serde_json::from_str(side["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap()).unwrap();
        assert_eq!((&copy["data"]["a"], &side["data"]["a"]), (&json!(two), &json!(one)));
    }
    assert_eq!(sides[1]["data"]["a"], two);
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    for malformed in ["{", "5", "[1]", "{\"data\":", &*deep] {
        let sides = masked(vec![with_copy(malformed)], &[]);
        assert_eq!(sides[0]["metadata"]["annotations"][LAST_APPLIED], one, "{malformed}");
    }
    let hidden = masked(vec![with_copy(&copy)], &[LAST_APPLIED]);
    assert_eq!(hidden[0]["metadata"]["annotations"][LAST_APPLIED], one);

    // Chosen annotations of every object; of Secrets, all but those that name owners.
    let annotated = |kind: &str, note: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"annotations": {"token": "t", "note": note, "meta.helm.sh/release-name": "web"}}});
    let sides = masked(vec![annotated("Pod", "a"), annotated("Pod", "b")], &["token"]);
    assert_eq!(
        sides[1]["metadata"]["annotations"],
        json!({"token": one, "note": "b", "meta.helm.sh/release-name": "web"})
    );
    let sides = masked(vec![annotated("Secret", "a"), annotated("Secret", "b")], &[]);
    assert_eq!(
        sides[1]["metadata"]["annotations"],
        json!({"token": one, "note": two, "meta.helm.sh/release-name": "web"})
    );
    // What is malformed is masked as a whole.
    for malformed in [json!("text"), json!([1]), json!(5)] {
        assert_eq!(masked(vec![secret(&json!({"data": malformed}))], &[])[0]["data"], one);
    }
    assert_eq!(masked(vec![secret(&json!({"spec": {"a": 1}}))], &[])[0]["spec"], one);
}

#[test]
fn invalid_secrets_have_a_defined_result() {
    let live = apply(None, &data(&json!({"a": CANARY_DATA})), OURS);
    for wanted in [
        secret(&json!({"data": CANARY})),
        secret(&json!({"data": {"a": {"b": 424_242}}})),
        secret(&json!({"data": {"a": 424_242}, "stringdata": {"a": CANARY}})),
        secret(&json!({"stringData": [CANARY]})),
    ] {
        let diff = Case::merged(&wanted, &live).diff();
        assert!(!diff.differences.is_empty() || !diff.reasons.is_empty(), "{diff:?}");
        assert!(!diff.notes.is_empty());
        check(&diff);
    }
}

#[test]
fn b139_secrets_are_masked_in_differences() {
    let live = apply(None, &data(&json!({"pw": CANARY_DATA, "old": CANARY_DATA, "same": "MQ=="})), OURS);
    let wanted = secret(&json!({"stringData": {"pw": "other", "new": CANARY, "same": "1"}}));
    for case in [
        Case::merged(&wanted, &live),
        Case::server(&wanted, &live, |answer| {
            answer["data"] = json!({"pw": "b3RoZXI=", "new": CANARY_DATA, "same": "MQ=="});
        }),
    ] {
        let diff = case.diff();
        assert_eq!(
            texts(&diff),
            [
                "data.new: - -> \"++++++++\"",
                "data.old: \"++++++++\" -> -",
                "data.pw: \"++++++++++++\" -> \"++++++++\"",
            ]
        );
        check(&diff);
    }
}

#[test]
fn a_canary_is_in_no_result_of_any_kind() {
    struct Quoting;
    impl JqRunner for Quoting {
        fn paths(&self, _: &str, object: &Value) -> Result<Vec<JqPath>, JqError> {
            Err(JqError::Failed(format!("cannot iterate over {object} {CANARY} 424242")))
        }
    }
    let wanted = data(&json!({"pw": CANARY_DATA, "pin": "NDI0MjQy"}));
    let mut live = kubectl_apply(&data(&json!({"pw": "b2xk", "gone": CANARY_DATA})));
    live = update(&live, "kapp", |it| it["metadata"]["annotations"]["kapp.k14s.io/original"] = json!(CANARY));
    let messages = [
        format!("Secret \"db\" is invalid: data[pw]: Invalid value: \"{CANARY}\": no"),
        format!("Secret \"db\" is invalid: data[pw]: Invalid value: {{\"pw\": 424242, {CANARY}"),
        format!("admission webhook denied the request: {CANARY_DATA} in {CANARY} and 424242"),
    ];
    let refused = messages.map(|message| DryRun::Refused { message });
    let answer = |change: fn(&mut Value)| {
        let mut object = apply(Some(&live), &wanted, OURS);
        change(&mut object);
        DryRun::Answered { object, conflicts: Vec::new() }
    };
    let runs = [
        DryRun::NotRun(NoDryRun::Offline),
        answer(|_| {}),
        answer(|answer| answer["data"]["injected"] = json!(CANARY_DATA)),
        answer(|answer| answer["metadata"]["annotations"]["note"] = json!(CANARY)),
        answer(|answer| answer["data"] = json!([CANARY])),
    ];
    let jq = ArgoIgnoreRule {
        kind: "Secret".to_owned(),
        jq_path_expressions: vec![".data.pw".to_owned()],
        ..Default::default()
    };
    let rules = IgnoreRules::new(&[jq], &[]).unwrap();
    for dry_run in runs.into_iter().chain(refused) {
        for includes_additions in [false, true] {
            let options = DiffOptions { includes_additions, ..DiffOptions::default() };
            let case = Case { dry_run: dry_run.clone(), options, ..Case::merged(&wanted, &live) };
            check(&case.diff());
            check(&Case { live: None, ..case.clone() }.diff());
            check(&Case { wanted: Some(&live), live: Some(&wanted), ..case.clone() }.diff());
            let failed = Case { rules: rules.clone(), jq: Some(&Quoting), ..case }.diff();
            assert_eq!(failed.outcome, DiffOutcome::Unknown);
            check(&failed);
        }
    }
    for broken in ["{", CANARY, "{\"data\": {\"pw\": \"canary-5up3r-53cr3t\"}}"] {
        let live = update(&live, "ann", |it| it["metadata"]["annotations"][LAST_APPLIED] = json!(broken));
        check(&Case::merged(&wanted, &live).diff());
    }
}

#[test]
fn messages_about_chosen_annotations_are_masked() {
    let mut wanted = deployment();
    wanted["metadata"]["annotations"] = json!({"token": CANARY});
    let message = format!("metadata.annotations: Invalid value: {CANARY}");
    let options =
        DiffOptions { masked_annotations: BTreeSet::from(["token".to_owned()]), ..DiffOptions::default() };
    let case = Case { dry_run: DryRun::Refused { message }, options, ..Case::merged(&wanted, &wanted) };
    let diff = case.diff();
    check(&diff);
    assert_eq!(diff.reasons, [UnknownReason::Refused]);
    assert_eq!(
        diff.basis,
        DiffBasis::Refused { message: "metadata.annotations: Invalid value: ++++++++".to_owned() }
    );
    let live = deployment();
    let case = Case { dry_run: DryRun::NotRun(NoDryRun::Webhook), live: Some(&live), ..case };
    assert_eq!(case.texts(), ["metadata.annotations: - -> {\"token\":\"++++++++\"}"]);
}
