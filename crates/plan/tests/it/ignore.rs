//! Rules that ignore fields.

use serde_json::{Value, json};
use taffrail_plan::diff::{
    ArgoIgnoreRule, DiffOutcome, FluxIgnoreRule, IgnoreRules, JqError, JqPath, JqRunner, ObjectDiff,
    UnknownReason,
};

use crate::server::{Case, OURS, apply, default_deployment, deployment, live_deployment, texts, update};

/// A runner that knows some expressions alone.
struct OneProgram;

impl JqRunner for OneProgram {
    fn paths(&self, expression: &str, _: &Value) -> Result<Vec<JqPath>, JqError> {
        let paths = |paths: Value| Ok(serde_json::from_value(paths).unwrap());
        match expression {
            ".spec.replicas" => paths(json!([["spec", "replicas"], ["spec", "missing", 3]])),
            ".data[][0]" => {
                paths(json!([["data", "a", 0], ["data", "b", -1], ["data", "a", 10], ["data", "b", -9]]))
            }
            ".data.a[1:]" => {
                paths(json!([["data", "a", {"start": 1}], ["data", "b", {"start": -2, "end": null}, 0]]))
            }
            ".loop" => Err(JqError::TimedOut),
            other => Err(JqError::Compile(other.to_owned())),
        }
    }
}

fn argo(rule: Value) -> IgnoreRules {
    let rule: ArgoIgnoreRule = serde_json::from_value(rule).unwrap();
    IgnoreRules::new(&[rule], &[]).unwrap()
}

fn flux(rule: Value) -> IgnoreRules {
    let rule: FluxIgnoreRule = serde_json::from_value(rule).unwrap();
    IgnoreRules::new(&[], &[rule]).unwrap()
}

/// Returns a wanted and a live Deployment that differ in the replicas, which an autoscaler changed, and in an annotation.
fn drifted() -> (Value, Value) {
    let mut wanted = deployment();
    wanted["metadata"]["annotations"] = json!({"a/b": "wanted"});
    let live = update(&live_deployment(&wanted), "hpa", |it| {
        it["spec"]["replicas"] = json!(9);
        it["metadata"]["annotations"]["a/b"] = json!("live");
    });
    (wanted, live)
}

fn diff(rules: IgnoreRules) -> ObjectDiff {
    let (wanted, live) = drifted();
    let merged = Case { rules: rules.clone(), jq: Some(&OneProgram), ..Case::merged(&wanted, &live) }.diff();
    let server = Case::server(&wanted, &live, default_deployment);
    let server = Case { rules, jq: Some(&OneProgram), ..server }.diff();
    assert_eq!((texts(&merged), &merged.ignored), (texts(&server), &server.ignored));
    merged
}

#[test]
fn b42_ignored_fields_are_no_difference_by_two_and_by_three_ways() {
    let replicas = "spec.replicas: 9 -> 3".to_owned();
    let annotation = "metadata.annotations[\"a/b\"]: \"live\" -> \"wanted\"".to_owned();
    assert_eq!(texts(&diff(IgnoreRules::default())), [annotation.clone(), replicas.clone()]);
    let of = |rest: Value| {
        let mut rule = json!({"group": "app*", "kind": "Deploy*"});
        rule.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        argo(rule)
    };
    let pointer = json!({"jsonPointers": ["/spec/replicas", "/spec/none/1/x"]});
    let ignored = diff(of(pointer.clone()));
    assert_eq!(texts(&ignored), [&*annotation]);
    assert_eq!((ignored.ignored.len(), &*ignored.ignored[0].rule), (1, "ignoreDifferences[0]"));
    assert_eq!(
        (ignored.ignored[0].path.to_string(), &*ignored.ignored[0].owners[0].manager),
        ("spec.replicas".to_owned(), "hpa")
    );
    assert_eq!(texts(&diff(of(json!({"jsonPointers": ["/metadata/annotations/a~1b"]})))), [&*replicas]);
    assert_eq!(texts(&diff(of(json!({"jqPathExpressions": [".spec.replicas"]})))), [&*annotation]);
    let by_manager = diff(of(json!({"managedFieldsManagers": ["hpa"]})));
    assert_eq!((by_manager.outcome, by_manager.ignored.len()), (DiffOutcome::Unchanged, 2));
    for (key, value, is_met) in [
        ("name", "web", true),
        ("name", "api", false),
        ("namespace", "shop", true),
        ("namespace", "other", false),
        ("kind", "{Pod,Deployment}", true),
        ("kind", "Pod", false),
        ("group", "", false),
        ("group", "*", true),
    ] {
        let mut rest = pointer.clone();
        rest[key] = json!(value);
        assert_eq!(diff(of(rest)).ignored.len(), usize::from(is_met), "{key} {value}");
    }
    // Without managedFields and a copy of kubectl's, and with it.
    let (wanted, mut live) = drifted();
    for annotations in
        [json!({}), json!({"kubectl.kubernetes.io/last-applied-configuration": deployment().to_string()})]
    {
        live["metadata"]["managedFields"] = json!([]);
        live["metadata"]["annotations"] = annotations;
        let case = Case {
            rules: of(json!({"jsonPointers": ["/spec/replicas", "/metadata/annotations/a~1b"]})),
            ..Case::merged(&wanted, &live)
        };
        assert_eq!(case.texts(), [""; 0]);
    }
}

#[test]
fn flux_rules_select_objects_by_patterns_and_selectors() {
    for (target, is_met) in [
        (json!({}), true),
        (
            json!({"group": "apps", "version": "v1", "kind": "Deployment", "name": "we.*", "namespace": "shop|test"}),
            true,
        ),
        (json!({"name": "we"}), false),
        (json!({"version": "v2"}), false),
        (json!({"labelSelector": "app in (web, api)"}), true),
        (json!({"labelSelector": "app=api"}), false),
        (json!({"annotationSelector": "a/b=wanted"}), true),
        (json!({"annotationSelector": "!a/b"}), false),
    ] {
        let ignored = diff(flux(json!({"paths": ["/spec/replicas"], "target": target}))).ignored;
        assert_eq!(ignored.len(), usize::from(is_met), "{target}");
    }
    let whole = diff(flux(json!({"paths": [""]})));
    assert_eq!(whole.outcome, DiffOutcome::Unchanged);
    assert!(whole.ignored.len() >= 2, "{whole:?}");
}

#[test]
fn a_jq_rule_without_a_result_makes_the_difference_unknown_and_names_the_rule() {
    let (wanted, live) = drifted();
    let rules = |expression: &str| {
        argo(json!({"group": "*", "kind": "*", "jqPathExpressions": [".spec.replicas", expression]}))
    };
    for (expression, jq, told) in [
        (
            ".loop",
            Some(&OneProgram as &dyn JqRunner),
            "ignoreDifferences[0]: jq '.loop': the expression took too long",
        ),
        (".x", Some(&OneProgram), "ignoreDifferences[0]: jq '.x': the expression cannot be compiled: .x"),
        (".x", None, "ignoreDifferences[0]: jq '.x': this program does not run jq"),
    ] {
        let diff = Case { rules: rules(expression), jq, ..Case::merged(&wanted, &live) }.diff();
        assert_eq!((diff.outcome, diff.differences.len()), (DiffOutcome::Unknown, 0));
        assert!(diff.reasons.iter().any(|reason| reason.to_string() == told), "{diff:?}");
        assert!(matches!(diff.reasons[0], UnknownReason::IgnoreRule(_)));
    }
    // Other objects are compared.
    let other = argo(json!({"kind": "Pod", "jqPathExpressions": [".x"]}));
    assert_eq!(Case { rules: other, ..Case::merged(&wanted, &live) }.diff().outcome, DiffOutcome::Change);
}

#[test]
fn items_at_paths_of_jq_are_left_out_by_their_places_before() {
    let object = |a: Value, b: Value| {
        json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"namespace": "shop", "name": "one"}, "data": {"a": a, "b": b}})
    };
    let wanted = object(json!([1, 2, 3]), json!([4, 5, 6]));
    let outcome = |expression: &str, live: Value| {
        let rules = argo(json!({"group": "*", "kind": "*", "jqPathExpressions": [expression]}));
        Case { rules, jq: Some(&OneProgram), ..Case::merged(&wanted, &live) }.diff().outcome
    };
    let (unchanged, change) = (DiffOutcome::Unchanged, DiffOutcome::Change);
    assert_eq!(outcome(".data[][0]", object(json!([9, 2, 3]), json!([4, 5, 9]))), unchanged);
    assert_eq!(outcome(".data[][0]", object(json!([9, 2, 9]), json!([4, 5, 9]))), change);
    assert_eq!(outcome(".data.a[1:]", object(json!([1, 9, 9, 9]), json!([4, 9, 6]))), unchanged);
    assert_eq!(outcome(".data.a[1:]", object(json!([9, 2, 3]), json!([4, 5, 6]))), change);
}

#[test]
fn rules_that_cannot_be_used_are_told_all_at_once() {
    let argo = |rule: Value| serde_json::from_value::<ArgoIgnoreRule>(rule);
    let misspelt = argo(json!({"kind": "Pod", "jsonPointer": ["/a"]})).unwrap_err().to_string();
    assert!(
        misspelt.contains("unknown field `jsonPointer`") && misspelt.contains("`jsonPointers`"),
        "{misspelt}"
    );
    let argo = [
        json!({"kind": "Pod", "jsonPointers": ["spec/replicas"]}),
        json!({"kind": "Pod", "jsonPointers": ["/a~2b"]}),
        json!({"kind": "", "jsonPointers": ["/a"]}),
        json!({"kind": "Pod"}),
        json!({"kind": "Pod", "jsonPointers": [""]}),
        json!({"kind": "Pod", "jqPathExpressions": ["x".repeat(5_000)]}),
    ]
    .map(|rule| argo(rule).unwrap());
    let flux = [
        json!({"paths": []}),
        json!({"paths": ["/a"], "target": {"name": "("}}),
        json!({"paths": ["/a"], "target": {"name": "(a{999}){999}"}}),
        json!({"paths": ["/a"], "target": {"labelSelector": "a in b"}}),
    ]
    .map(|rule| serde_json::from_value::<FluxIgnoreRule>(rule).unwrap());
    let invalid = IgnoreRules::new(&argo, &flux).unwrap_err();
    let invalid: Vec<String> = invalid.iter().map(ToString::to_string).collect();
    assert_eq!(
        invalid,
        [
            "ignoreDifferences[0]: 'spec/replicas' is not a JSON pointer: write /spec/replicas, with ~1 for a slash and ~0 for a tilde",
            "ignoreDifferences[1]: '/a~2b' is not a JSON pointer: write /spec/replicas, with ~1 for a slash and ~0 for a tilde",
            "ignoreDifferences[2]: 'kind' is empty: name a kind, or '*' for all",
            "ignoreDifferences[3]: names no field: add 'jsonPointers', 'jqPathExpressions' or 'managedFieldsManagers'",
            "ignoreDifferences[4]: '' is not a JSON pointer: write /spec/replicas, with ~1 for a slash and ~0 for a tilde",
            "ignoreDifferences[5]: a text is longer than 4096 bytes",
            "ignore[0]: names no field: add 'paths'",
            "ignore[1]: '(' in 'name' is not a regular expression",
            "ignore[2]: '(a{999}){999}' in 'name' is not a regular expression",
            "ignore[3]: 'a in b' is not a label selector; write LABEL, !LABEL, LABEL=VALUE, LABEL!=VALUE or LABEL in (VALUE,VALUE)",
        ]
    );
    let many = vec![argo[0].clone(); 1_001];
    assert!(IgnoreRules::new(&many, &[]).is_err());
}

#[test]
fn a_rule_for_one_item_leaves_no_hollow_difference_and_hides_no_other() {
    let mut wanted = deployment();
    wanted["metadata"]["labels"] = json!({"app": "web"});
    let mut live = apply(None, &deployment(), OURS);
    live["metadata"]["annotations"] = json!({"by": "ann"});
    wanted["metadata"]["annotations"] = json!({"by": "bob", "more": "yes"});
    let rule = |pointer: &str| argo(json!({"group": "*", "kind": "*", "jsonPointers": [pointer]}));
    let case = Case { rules: rule("/metadata/annotations/by"), ..Case::merged(&wanted, &live) };
    assert_eq!(case.texts(), ["metadata.annotations.more: - -> \"yes\""]);
    wanted["metadata"]["annotations"].as_object_mut().unwrap().remove("more");
    live["metadata"].as_object_mut().unwrap().remove("annotations");
    let case = Case { rules: rule("/metadata/annotations/by"), ..Case::merged(&wanted, &live) };
    let diff = case.diff();
    assert_eq!((diff.outcome, diff.ignored.len()), (DiffOutcome::Unchanged, 1), "{diff:?}");
}
