//! Tests of Flux' health checks and kapp's wait rules.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_object::Object;
use taffrail_rules::cel::{
    HealthChecks, InvalidExpression, Names, Predicate, PredicateAnswer, Program, Reading, ReadyExpr,
};
use taffrail_rules::kapp::WaitRules;
use taffrail_rules::{Layer, Origin, RuleSet};
use taffrail_status::{ObjectContext, Rules, Status, Verdict};

/// Evaluates on the thread of the test: the expressions here are small.
#[derive(Debug)]
struct Here(String, Program);

impl Predicate for Here {
    fn text(&self) -> &str {
        &self.0
    }

    fn evaluate(&self, variables: &[(&str, &Value)]) -> PredicateAnswer {
        self.1.evaluate(variables)
    }
}

pub(crate) fn read(text: &str, names: Names) -> Result<Box<dyn Predicate>, InvalidExpression> {
    Ok(Box::new(Here(text.to_owned(), Program::read(text, names)?)))
}

pub(crate) fn reading(text: &str, names: Names) -> Reading {
    Reading { expression: read(text, names), took: Duration::ZERO }
}

fn judge(rules: &RuleSet, object: &Value) -> Verdict {
    rules
        .judge(&Object::new(object.into()).unwrap(), &ObjectContext::default(), Timestamp::UNIX_EPOCH)
        .unwrap()
}

fn kustomization(checks: Value) -> Value {
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "spec": {"healthCheckExprs": checks}})
}

fn widget(kind: &str, status: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a", "generation": 2}, "status": status})
}

#[test]
fn health_checks_evaluate_in_progress_then_failed_then_current() {
    let checks = kustomization(json!([
        {"apiVersion": "example.com/v1", "current": "status.any"},
        {"apiVersion": "example.com/v1", "kind": "Widget",
            "inProgress": "status.phase == 'Moving'",
            "failed": "status.phase.startsWith('F')",
            "current": "status.phase == 'Done' && metadata.name == 'a'"},
    ]));
    let checks = HealthChecks::of_object(Origin::User, &checks, &read).unwrap().unwrap();
    let rules = RuleSet::bare().with_script(Box::new(checks));
    for (kind, status, expected, rule) in [
        ("Widget", json!({"phase": "Moving"}), Status::InProgress, "user/cel/example.com/Widget#inProgress"),
        ("Widget", json!({"phase": "Failed"}), Status::Failed, "user/cel/example.com/Widget#failed"),
        ("Widget", json!({"phase": "Done"}), Status::Current, "user/cel/example.com/Widget#current"),
        ("Widget", json!({"phase": "Other"}), Status::InProgress, "user/cel/example.com/Widget#none"),
        ("Widget", json!({}), Status::Unknown, "user/cel/example.com/Widget#inProgress"),
        (
            "Widget",
            json!({"phase": "Done", "observedGeneration": 1}),
            Status::InProgress,
            "generic/generation",
        ),
        ("Other", json!({"any": true}), Status::Current, "user/cel/example.com/*#current"),
        ("Other", json!({"any": "yes"}), Status::Unknown, "user/cel/example.com/*#current"),
    ] {
        let verdict = judge(&rules, &widget(kind, status.clone()));
        assert_eq!((verdict.status, &*verdict.rule), (expected, rule), "{kind} {status}: {verdict:?}");
        assert_eq!(verdict.message.is_empty(), expected == Status::Current);
    }
    let failed = judge(&rules, &widget("Widget", json!({"phase": "Failed"})));
    assert_eq!(failed.message, "'status.phase.startsWith('F')' holds");
    let other = judge(&rules, &widget("Widget", json!({"phase": "Other"})));
    assert_eq!(other.message, "'status.phase == 'Done' && metadata.name == 'a'' does not hold yet");
    let unknown = judge(&rules, &widget("Widget", json!({})));
    assert_eq!(unknown.message, "'status.phase == 'Moving'' cannot be evaluated: there is no 'phase' yet");
    let other = json!({"apiVersion": "example.org/v1", "kind": "Widget"});
    assert_eq!(judge(&rules, &other).rule, "fallback");
    let mut deleted = widget("Widget", json!({"phase": "Done"}));
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(judge(&rules, &deleted).status, Status::Terminating);
}

#[test]
fn invalid_health_checks_are_reported() {
    for (checks, told) in [
        (json!([{"apiVersion": "a/v1"}]), "healthCheckExprs[0]: a health check lacks the field 'current'"),
        (json!([{"current": "true"}]), "healthCheckExprs[0]: a health check lacks the field 'apiVersion'"),
        (
            json!([{"apiVersion": "a/v1", "kind": "B", "current": "true"}, {"apiVersion": "a/v2", "kind": "B", "current": "true"}]),
            "healthCheckExprs[1]: a second health check for a/B: an earlier entry of the list has one already",
        ),
        (
            json!([{"apiVersion": "a/v1", "current": "1 +"}]),
            "healthCheckExprs[0]: the expression in the field 'current' of a health check cannot be parsed",
        ),
        (
            json!([{"apiVersion": 1, "current": "true"}]),
            "healthCheckExprs[0]: the field 'apiVersion' of a health check should be a text",
        ),
    ] {
        let error = HealthChecks::of_object(Origin::User, &kustomization(checks), &read).unwrap_err();
        assert_eq!(error.to_string(), told);
    }
    assert!(HealthChecks::of_object(Origin::User, &kustomization(json!([])), &read).unwrap().is_none());
}

/// An unknown function does not come with time, as a missing field may.
#[test]
fn health_check_with_an_unknown_function_is_at_fault() {
    let object = json!({"status": {"phase": "Done"}});
    let variables: Vec<_> =
        object.as_object().unwrap().iter().map(|(name, field)| (&**name, field)).collect();
    for (text, expected) in [
        ("status.phase.unheard()", PredicateAnswer::Fault("there is no function 'unheard'".to_owned())),
        ("unheard(status.phase)", PredicateAnswer::Fault("there is no function 'unheard'".to_owned())),
        ("status(status.phase)", PredicateAnswer::Fault("there is no function 'status'".to_owned())),
        ("spec.size == 1", PredicateAnswer::Missing("there is no 'spec' yet".to_owned())),
        ("size(spec) == size(status)", PredicateAnswer::Missing("there is no 'spec' yet".to_owned())),
    ] {
        assert_eq!(Program::read(text, Names::Fields).unwrap().evaluate(&variables), expected, "{text}");
    }
}

#[test]
fn ready_expression_decides_if_a_dependency_is_ready() {
    let ready =
        ReadyExpr::read("dep.metadata.labels.version == self.metadata.labels.version", &read).unwrap();
    let of = |version: &str| json!({"metadata": {"labels": {"version": version}}});
    assert_eq!(ready.ask(&of("1"), &of("1")), PredicateAnswer::True);
    assert_eq!(ready.ask(&of("1"), &of("2")), PredicateAnswer::False);
    assert!(matches!(ready.ask(&of("1"), &json!({})), PredicateAnswer::Missing(_)));
    let wrong = ReadyExpr::read("object.a == 1", &read).unwrap_err();
    assert!(wrong.to_string().contains("the expression uses the unknown name 'object'"), "{wrong}");
}

#[test]
fn kapp_failure_conditions_come_before_success() {
    let config = json!({
        "apiVersion": "kapp.k14s.io/v1alpha1", "kind": "Config",
        "waitRules": [{
            "supportsObservedGeneration": true,
            "conditionMatchers": [
                {"type": "Ready", "status": "True", "success": true},
                {"type": "Failed", "status": "True", "failure": true},
                {"type": "Warm", "status": "True", "unblockChanges": true},
            ],
            "resourceMatchers": [{"anyMatcher": {"matchers": [
                {"apiVersionKindMatcher": {"apiVersion": "example.com/v1", "kind": "Widget"}},
                {"andMatcher": {"matchers": [{"apiGroupKindMatcher": {"apiGroup": "example.com", "kind": "Other"}},
                    {"notMatcher": {"matcher": {"hasNamespaceMatcher": {"names": ["no"]}}}}]}},
            ]}}],
        }],
    });
    let rules = WaitRules::of_config(Origin::User, &config).unwrap().unwrap();
    let rules = RuleSet::bare().with_script(Box::new(rules));
    let condition = |name: &str| json!({"type": name, "status": "True", "reason": "R", "message": format!("{name} it is")});
    let status = |names: &[&str]| json!({"observedGeneration": 2, "conditions": names.iter().map(|name| condition(name)).collect::<Vec<_>>()});
    for (names, expected, message, rule) in [
        (
            &["Ready", "Failed"][..],
            Status::Failed,
            "Failed it is",
            "user/kapp/waitRules[0].conditionMatchers[1]",
        ),
        (&["Ready"], Status::Current, "Ready it is", "user/kapp/waitRules[0].conditionMatchers[0]"),
        (&["Warm"], Status::InProgress, "Warm it is", "user/kapp/waitRules[0].conditionMatchers[2]"),
        (&[], Status::InProgress, "No failing or successful conditions found", "user/kapp/waitRules[0]"),
    ] {
        let verdict = judge(&rules, &widget("Widget", status(names)));
        assert_eq!((verdict.status, &*verdict.message, &*verdict.rule), (expected, message, rule));
    }
    let early = judge(&rules, &widget("Widget", json!({"conditions": [condition("Ready")]})));
    assert_eq!(early.status, Status::InProgress);
    assert_eq!(judge(&rules, &widget("Other", status(&["Ready"]))).status, Status::Current);
    assert_eq!(judge(&rules, &widget("Third", status(&["Ready"]))).rule, "generic/ready");
    for (rule, told) in [
        (
            json!({"ytt": {"funcContractV1": {}}}),
            "waitRules[0]: a ytt function decides the wait rule, and Taffrail does not run ytt",
        ),
        (
            json!({"resourceMatchers": [{"oddMatcher": {}}]}),
            "waitRules[0]: the wait rule has 'oddMatcher', which is not a known key or matcher",
        ),
        (
            json!({"resourceMatchers": [{}]}),
            "waitRules[0]: 'resourceMatchers' of the wait rule should be made of maps with one matcher each",
        ),
        (
            json!({"conditionMatchers": {}}),
            "waitRules[0]: 'conditionMatchers' of the wait rule should be a list",
        ),
    ] {
        let error = WaitRules::of_config(Origin::User, &json!({"waitRules": [rule]})).unwrap_err();
        assert_eq!(error.to_string(), told);
    }
}

/// The user's rules come before the library's in any language; within one origin, foreign languages come before YAML.
#[test]
fn scripts_are_consulted_in_the_order_of_their_origin() {
    let form = |origin| {
        let text = "group: example.com\nsource: x\nkinds: {Widget: {rules: [{status: Failed}]}}";
        Layer::read(origin, [("rules.yaml", text)]).unwrap()
    };
    let script = |origin| {
        let checks =
            kustomization(json!([{"apiVersion": "example.com/v1", "kind": "Widget", "current": "true"}]));
        Box::new(HealthChecks::of_object(origin, &checks, &read).unwrap().unwrap())
    };
    for (layer, checks, expected) in [
        (Origin::User, Origin::Cluster, "user/example.com/Widget#1"),
        (Origin::User, Origin::User, "user/cel/example.com/Widget#current"),
        (Origin::Shipped, Origin::Cluster, "cluster/cel/example.com/Widget#current"),
    ] {
        let rules = RuleSet::bare().with(form(layer)).with_script(script(checks));
        assert_eq!(judge(&rules, &widget("Widget", json!({"a": 1}))).rule, expected);
    }
}
