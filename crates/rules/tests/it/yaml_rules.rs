//! Tests of rules in YAML: the meaning of each key, and the messages about mistakes.

use jiff::Timestamp;
use serde_json::{Value, json};
use taffrail_object::Object;
use taffrail_object::json::Parser;
use taffrail_rules::{Layer, Origin, RuleSet};
use taffrail_status::{ConditionType, ObjectContext, Rules, Status, Verdict};

const NOW: Timestamp = Timestamp::constant(1_772_366_400, 0);

/// Returns a set with these rules for a Widget and the built-in ones.
fn widget(rules: &str) -> RuleSet {
    let text =
        format!("group: example.com\nsource: https://example.com\nkinds:\n  Widget:\n{}", indented(rules));
    RuleSet::bare().with(layer(Origin::User, &text))
}

fn indented(text: &str) -> String {
    text.trim_matches('\n').lines().map(|line| format!("    {line}\n")).collect()
}

fn layer(origin: Origin, text: &str) -> Layer {
    Layer::read(origin, [("rules.yaml", text)]).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

/// Judges an object as text and as a tree, which must give the same verdict.
fn judge(rules: &RuleSet, object: &Value) -> Verdict {
    let of_tree = rules.judge(&Object::new(object.into()).unwrap(), &ObjectContext::default(), NOW).unwrap();
    let text = object.to_string();
    let mut parser = Parser::new();
    let document = parser.parse(text.as_bytes()).unwrap();
    let of_text =
        rules.judge(&Object::new(document.root()).unwrap(), &ObjectContext::default(), NOW).unwrap();
    assert_eq!(of_tree, of_text, "{text}");
    of_text
}

fn object(spec: Value, status: Value) -> Value {
    let metadata = json!({"name": "a", "generation": 2, "labels": {"a.b/c": "x"}});
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec, "status": status})
}

/// Returns true if a branch with these tests decides.
fn holds(tests: &str, spec: &Value, status: &Value) -> bool {
    let rules = widget(&format!("observed: none\nunseen: none\nrules:\n- {{status: Unknown, {tests}}}"));
    judge(&rules, &object(spec.clone(), status.clone())).status == Status::Unknown
}

#[test]
fn tests_of_rules_hold_for_matching_objects_only() {
    let spec = json!({"replicas": 3, "name": "web", "list": ["a", 2, true], "nothing": null, "empty": "", "time": "2026-01-02T00:00:00Z",
        "share": 2.0, "truth": true, "ports": {"http": {"up": true}, "grpc": {"up": false}}});
    let status = json!({
        "ready": 2, "phase": "Running", "count": "2/3", "last": "2026-01-01T23:00:00-02:00", "text": "10",
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "CrashLoop", "message": "it says \"no\"", "observedGeneration": 1},
            {"type": "Synced", "status": "True", "observedGeneration": 2},
            null,
        ],
        "parts": [
            {"name": "one", "ready": true, "conditions": [{"type": "Ready", "status": "True"}]},
            {"name": "two", "ready": false, "conditions": [{"type": "Ready", "status": "False", "message": "two is down"}]},
        ],
        "none": [],
    });
    for (tests, expected) in [
        ("condition: Ready", true),
        ("condition: Other", false),
        ("condition: Ready, is: 'False'", true),
        ("condition: Ready, is: false", true),
        ("condition: Ready, is: ['True', 'Unknown']", false),
        ("condition: Ready, reason: CrashLoop", true),
        ("condition: Ready, reason: [Image*, '*Loop']", true),
        ("condition: Ready, reason: crashloop", false),
        ("condition: Ready, text: '*says \"no\"*'", true),
        ("condition: Synced, reason: ''", true),
        ("condition: Ready, observed: true", false),
        ("condition: Synced, observed: true", true),
        ("field: status.phase, is: Running", true),
        ("field: status.phase, is: [Failed, Running]", true),
        ("field: status.phase, is: running", false),
        ("field: spec.truth, is: true", true),
        ("field: spec.truth, is: 'true'", true),
        ("field: spec.replicas, is: '3'", true),
        ("field: spec.share, is: 2", true),
        ("field: status.absent, is: ''", false),
        ("field: status.absent, is: x, default: x", true),
        ("field: status.count, is: '{status.ready}/{spec.replicas}'", true),
        ("field: status.count, not: '{status.ready}/{spec.replicas}'", false),
        ("field: status.phase, not: Running", false),
        ("field: status.phase, not: [Failed, Pending]", true),
        ("field: status.absent, not: Running", true),
        ("field: status.phase, like: 'Run*'", true),
        ("field: status.phase, like: ['*ing', x]", true),
        ("field: status.absent, like: '*'", false),
        ("field: spec.nothing, exists: true", false),
        ("field: spec.empty, exists: false", true),
        ("field: status.none, exists: false", true),
        ("field: status.parts, exists: true", true),
        ("field: spec.list, contains: 2", true),
        ("field: spec.list, contains: b", false),
        ("field: status.ready, atLeast: 2", true),
        ("field: status.ready, above: 2", false),
        ("field: status.ready, below: spec.replicas", true),
        ("field: status.ready, atMost: spec.absent", false),
        ("field: status.ready, atMost: spec.absent, otherDefault: 2", true),
        ("field: status.absent, atLeast: 1", false),
        ("field: status.absent, atLeast: 1, default: 1", true),
        ("field: status.text, above: 9", true),
        ("field: status.last, above: spec.time", true),
        ("field: status.last, above: 3", false),
        ("field: status.phase, above: 3", false),
        ("field: status.ready, matches: spec.replicas", false),
        ("field: spec.replicas, matches: spec.replicas", true),
        ("field: status.parts, matches: status.parts", true),
        ("field: status.absent, matches: spec.absent", false),
        ("field: status.absent, matches: spec.absent, default: 1, otherDefault: 1", true),
        ("field: \"metadata.labels['a.b/c']\", is: x", true),
        ("field: 'status.parts[1].name', is: two", true),
        ("field: 'status.parts[*].name', is: two", true),
        ("field: 'status.parts[*].name', not: two", false),
        ("field: 'spec.ports[*].up', is: false", true),
        ("all: [{condition: Ready}, {field: status.ready, is: 2}]", true),
        ("all: [{condition: Ready}, {field: status.ready, is: 3}]", false),
        ("any: [{condition: Other}, {field: status.ready, is: 2}]", true),
        ("any: [{condition: Other}, {field: status.ready, is: 3}]", false),
        ("none: [{condition: Other}, {field: status.ready, is: 3}]", true),
        ("none: [{condition: Ready}]", false),
        ("condition: Ready, none: [{condition: Other}]", true),
        ("each: 'status.parts[*]', that: {field: name, exists: true}", true),
        ("each: 'status.parts[*]', that: {condition: Ready, is: 'True'}", false),
        ("each: 'status.none[*]', that: {field: name, exists: true}", false),
        ("some: 'status.parts[*]', that: {condition: Ready, is: 'True'}", true),
        ("some: 'status.parts[*]', that: [{field: ready, is: false}, {field: name, is: one}]", false),
        ("some: 'status.parts[*]', that: {field: name, matches: '$.status.parts[1].name'}", true),
        ("some: 'spec.list[*]', that: {field: ., is: a}", true),
        ("count: {in: 'status.parts[*]', atLeast: 2}", true),
        ("count: {in: 'status.parts[*]', that: {field: ready, is: true}, is: 1}", true),
        ("count: {in: 'status.parts[*]', that: {field: ready, is: true}, atLeast: spec.replicas}", false),
        ("count: {in: 'status.none[*]', below: 1}", true),
    ] {
        assert_eq!(holds(tests, &spec, &status), expected, "{tests}");
    }
    // Some controllers write booleans.
    let odd = json!({"conditions": [{"type": "Ready", "status": true}]});
    assert!(holds("condition: Ready, is: 'True'", &spec, &odd));
    assert!(holds("none: [{condition: Ready, is: 'False'}]", &spec, &odd));
}

#[test]
fn first_matching_branch_decides_and_names_the_rule() {
    let rules = widget(
        "rules:
- {status: Failed, condition: Issuing, is: 'False', reason: Failed}
- {status: InProgress, condition: Issuing, is: 'True'}
- {status: Current, suspended: true, field: spec.paused, is: true, message: 'paused by {spec.by}'}
- {status: Current, condition: Ready, is: 'True'}
- {status: InProgress, field: status.phase, is: Pending}
",
    );
    let conditions = |list: Value| object(json!({}), json!({"conditions": list}));
    let failed = judge(
        &rules,
        &conditions(json!([
            {"type": "Ready", "status": "True"},
            {"type": "Issuing", "status": "False", "reason": "Failed", "message": "no"},
        ])),
    );
    assert_eq!((failed.status, &*failed.message), (Status::Failed, "no"));
    assert_eq!(failed.rule, "user/example.com/Widget#1");
    assert_eq!(failed.conditions[0].condition, ConditionType::Stalled);
    assert_eq!(failed.conditions[0].reason, "Failed");
    let paused = judge(&rules, &object(json!({"paused": true, "by": "me"}), json!({"phase": "Pending"})));
    assert_eq!((paused.status, &*paused.message, paused.suspended), (Status::Current, "paused by me", true));
    assert!(paused.conditions.is_empty());
    let ready = judge(&rules, &conditions(json!([{"type": "Ready", "status": "True", "reason": "Ok"}])));
    assert_eq!((ready.status, &*ready.message, ready.suspended), (Status::Current, "Ok", false));
    let pending = judge(&rules, &object(json!({}), json!({"phase": "Pending"})));
    assert_eq!((pending.status, &*pending.message), (Status::InProgress, "status.phase: Pending"));
    assert_eq!(pending.conditions[0].reason, "Pending");
    let undecided =
        judge(&rules, &conditions(json!([{"type": "Ready", "status": "False", "message": "soon"}])));
    assert_eq!((undecided.status, &*undecided.rule), (Status::InProgress, "generic/ready"));
}

#[test]
fn message_templates_use_the_object_and_the_matches() {
    let message = |branch: &str, status: Value| {
        let rules = widget(&format!("rules:\n- {{status: Failed, {branch}}}"));
        judge(&rules, &object(json!({"name": "web"}), status)).message.into_owned()
    };
    let status = json!({
        "list": ["a", 1], "empty": [],
        "conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": "m"}],
        "parts": [{"name": "one"}, {"name": "two", "conditions": [{"type": "Up", "status": "False", "message": "down"}]}],
    });
    for (branch, expected) in [
        ("condition: Ready, message: '{type}={status} {reason}: {message}'", "Ready=False R: m"),
        (
            "field: spec.name, is: web, message: '{spec.name} has {status.list} and {status.empty}{status.none}.'",
            "web has a, 1 and .",
        ),
        ("field: status.up, below: 3, default: 0, message: '{status.up} of 3'", "0 of 3"),
        ("field: spec.name, is: web", "spec.name: web"),
        ("field: status.none, not: web", "status.none is not set"),
        ("any: [{condition: Other}, {condition: Ready}]", "m"),
        ("some: 'status.parts[*]', that: {condition: Up, is: 'False'}", "down"),
        (
            "some: 'status.parts[*]', that: {condition: Up, is: 'False'}, message: '{@.name}: {message}'",
            "two: down",
        ),
        ("all: [{field: spec.name, is: web}]", ""),
    ] {
        assert_eq!(message(branch, status.clone()), expected, "{branch}");
    }
}

#[test]
fn deletion_generation_and_missing_status_come_before_rules() {
    let rules = widget("rules:\n- {status: Failed}");
    let mut deleted = object(json!({}), json!({}));
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(judge(&rules, &deleted).status, Status::Terminating);
    let stale = judge(&rules, &object(json!({}), json!({"observedGeneration": 1})));
    assert_eq!((stale.status, &*stale.rule), (Status::InProgress, "generic/generation"));
    let aged = |minutes: i64, rules: &RuleSet| {
        let mut object = object(json!({}), json!({}));
        let created = NOW - jiff::SignedDuration::from_mins(minutes);
        object["metadata"]["creationTimestamp"] = json!(created.to_string());
        judge(rules, &object)
    };
    let young = aged(4, &rules);
    assert_eq!((young.status, &*young.rule), (Status::InProgress, "generic/first-status"));
    assert_eq!(aged(6, &rules).status, Status::Failed);
    assert_eq!(aged(6, &widget("unseen: 1h\nrules:\n- {status: Failed}")).status, Status::InProgress);
    assert_eq!(aged(1, &widget("unseen: none\nrules:\n- {status: Failed}")).status, Status::Failed);
    let undecided = aged(6, &widget("rules:\n- {status: Failed, condition: Ready}"));
    assert_eq!((undecided.status, &*undecided.rule), (Status::Current, "fallback"));
    assert!(undecided.message.contains("no controller seems to look at it"), "{undecided:?}");

    let elsewhere = widget("observed: status.seen\nrules:\n- {status: Failed}");
    assert_eq!(judge(&elsewhere, &object(json!({}), json!({"seen": 1}))).status, Status::InProgress);
    assert_eq!(
        judge(&elsewhere, &object(json!({}), json!({"seen": 2, "observedGeneration": 1}))).status,
        Status::Failed
    );
    let never = widget("observed: none\nrules:\n- {status: Failed}");
    assert_eq!(judge(&never, &object(json!({}), json!({"observedGeneration": 1}))).status, Status::Failed);
}

/// Only a caller that asked the cluster knows if a kind without rules has a status subresource.
#[test]
fn young_object_with_a_status_subresource_and_no_status_is_in_progress() {
    let rules = RuleSet::bare();
    let mut young = object(json!({}), json!(null));
    young["metadata"]["creationTimestamp"] = json!((NOW - jiff::SignedDuration::from_mins(1)).to_string());
    let judge = |object: &Value, has_status_subresource| {
        let context = ObjectContext { has_status_subresource, ..ObjectContext::default() };
        rules.judge(&Object::new(object.into()).unwrap(), &context, NOW).unwrap()
    };
    assert_eq!(judge(&young, Some(true)).status, Status::InProgress);
    assert_eq!(judge(&young, Some(false)).status, Status::Current);
    assert_eq!(judge(&young, None).message, "Resource is current");
    young["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    let old = judge(&young, Some(true));
    assert_eq!((old.status, &*old.rule), (Status::Current, "fallback"));
    assert!(old.message.contains("no controller seems to look at it"), "{old:?}");
}

#[test]
fn most_specific_rules_of_the_first_origin_come_first() {
    let group = |group: &str, kinds: &[&str]| {
        let kinds: String = kinds
            .iter()
            .map(|kind| format!("  '{kind}': {{rules: [{{status: Failed, field: spec.ask, is: true}}]}}\n"))
            .collect();
        format!("group: '{group}'\nsource: https://example.com\nkinds:\n{kinds}")
    };
    let texts = [
        group("a.example.com", &["One, Two", "*Template", "My*Template"]),
        group("b.example.com", &["*"]),
        group("*.example.com", &["One", "*"]),
        group("*.com", &["Other"]),
    ];
    let shipped =
        Layer::read(Origin::Shipped, texts.iter().map(|text| ("rules.yaml", text.as_str()))).unwrap();
    let user = group("b.example.com", &["Two"]);
    let rules = RuleSet::bare().with(shipped).with(layer(Origin::User, &user));
    let rule = |group: &str, kind: &str, ask: bool| {
        let object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "spec": {"ask": ask}, "status": {"a": 1}});
        judge(&rules, &object).rule.into_owned()
    };
    for (group, kind, expected) in [
        ("a.example.com", "One", "shipped/a.example.com/One#1"),
        ("a.example.com", "Two", "shipped/a.example.com/Two#1"),
        ("a.example.com", "ATemplate", "shipped/a.example.com/*Template#1"),
        ("a.example.com", "MyTemplate", "shipped/a.example.com/My*Template#1"),
        ("a.example.com", "Three", "shipped/*.example.com/*#1"),
        ("b.example.com", "One", "shipped/b.example.com/*#1"),
        ("b.example.com", "Two", "user/b.example.com/Two#1"),
        ("c.d.example.com", "One", "shipped/*.example.com/One#1"),
        ("example.com", "Other", "shipped/*.com/Other#1"),
        ("example.com", "One", "fallback"),
        ("myexample.com", "One", "fallback"),
    ] {
        assert_eq!(rule(group, kind, true), expected, "{group} {kind}");
        assert_eq!(rule(group, kind, false), "fallback", "{group} {kind}");
    }
    let names: Vec<_> = rules.find("b.example.com", "Two").map(|found| found.name()).collect();
    assert_eq!(names, ["user/b.example.com/Two", "shipped/b.example.com/*"]);
    assert_eq!(rules.all().len(), 9);
}

/// If the rules of one origin do not decide, the next are consulted, and at last the built-in ones.
#[test]
fn rules_for_a_built_in_kind_fall_back_to_the_built_in_verdict() {
    let text = "group: batch\nsource: https://example.com\nkinds:\n  CronJob:\n    unseen: none\n    rules:\n    - {status: Current, suspended: true, field: spec.suspend, is: true}\n";
    let rules = RuleSet::bare().with(layer(Origin::Shipped, text));
    let rule = |suspend: bool| {
        let verdict = judge(
            &rules,
            &json!({"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"suspend": suspend}}),
        );
        (verdict.rule.into_owned(), verdict.suspended)
    };
    assert_eq!(rule(true), ("shipped/batch/CronJob#1".to_owned(), true));
    assert_eq!(rule(false), ("builtin/batch/CronJob".to_owned(), false));
}

#[test]
fn errors_of_rule_files_have_a_position_and_a_hint() {
    for (rules, told, hint) in [
        (
            "rules:\n- {status: Failed, conditon: Ready}",
            "rules.yaml: Widget#1: the rules or cases file has the key 'conditon' where it is not allowed",
            "did you mean 'condition'?",
        ),
        (
            "rules:\n- {status: Failed}\nunsen: 5m",
            "rules.yaml: Widget: the rules or cases file has the key 'unsen' where it is not allowed",
            "did you mean 'unseen'?",
        ),
        ("rules:\n- {status: Ready}", "Widget#1: the key 'status' of a rule or case cannot be 'Ready'", ""),
        (
            "rules:\n- {condition: Ready}",
            "Widget#1: the rules or cases file lacks the required key 'status'",
            "",
        ),
        (
            "rules:\n- {status: Failed, condition: Ready, is: 'Yes'}",
            "the key 'is' of a rule or case cannot be '\"Yes\"'",
            "",
        ),
        (
            "rules:\n- {status: Failed, condition: Ready, field: a, is: b}",
            "a rule has 'condition' and 'field' in one map",
            "put each of the two keys into a map",
        ),
        ("rules:\n- {status: Failed, field: a}", "the key 'field' of a rule contains no test", ""),
        (
            "rules:\n- {status: Failed, field: a..b, is: c}",
            "the value 'a..b' of the key 'field' in a rule is not the path of a field of an object",
            "paths are written like",
        ),
        ("rules:\n- {status: Failed, each: a, that: {}}", "the key 'that' of a rule contains no test", ""),
        (
            "rules:\n- {status: Failed, field: a, is: b, message: 'x {message}'}",
            "the template in the key 'message' of a rule is invalid",
            "",
        ),
        (
            "rules:\n- {status: Failed, field: a, is: b, message: 'x {'}",
            "the template in the key 'message' of a rule is invalid",
            "",
        ),
        ("rules:\n- {status: Failed, field: a, above: [1]}", "'above' should be a number or the path", ""),
        ("rules:\n- {status: Failed}\n- {status: Current}", "Widget#2: no object reaches this rule", ""),
        ("rules: []", "'rules' should be a list of rules", ""),
        ("unseen: soon\nrules:\n- {status: Failed}", "'unseen' should be a span of time", ""),
        (
            "rules:\n- {status: Failed, status: Current}",
            "rules.yaml: the rules or cases file is not YAML",
            "",
        ),
    ] {
        let text = format!(
            "group: example.com\nsource: https://example.com\nkinds:\n  Widget:\n{}",
            indented(rules)
        );
        let errors = Layer::read(Origin::User, [("rules.yaml", text.as_str())]).map(drop).unwrap_err().0;
        assert_eq!(errors.len(), 1, "{rules}: {errors:?}");
        assert!(errors[0].to_string().contains(told), "{rules}: {}", errors[0]);
        let said = errors[0].hint().unwrap_or_default();
        assert_eq!(said.is_empty(), hint.is_empty(), "{rules}: {said}");
        assert!(said.contains(hint), "{rules}: {said}");
    }
    for (text, told) in [
        ("[]", "rules.yaml: in the rules or cases file, 'the top level' should be a map"),
        ("kinds: {}", "rules.yaml: the rules or cases file lacks the required key 'group'"),
        (
            "group: A b\nkinds: {}",
            "rules.yaml: the rules file is for the group 'A b', which is not an API group",
        ),
        (
            "group: a.b\nkinds: {C: {rules: [{status: Failed}]}}",
            "rules.yaml: C: the rules or cases file lacks the required key 'source'",
        ),
        (
            "group: a.b\nsource: x\nkinds: {'C, D': {rules: [{status: Failed}]}, D: {rules: [{status: Failed}]}}",
            "D: the kind has a second set of rules; the first one is in the same file",
        ),
    ] {
        let errors = Layer::read(Origin::User, [("rules.yaml", text)]).map(drop).unwrap_err().0;
        assert!(errors.iter().any(|error| error.to_string().contains(told)), "{text}: {errors:?}");
    }
    let text = "group: a.b\nsource: x\nkinds: {C: {rules: [{status: Failed}]}}";
    let errors = Layer::read(Origin::User, [("one.yaml", text), ("two.yaml", text)]).map(drop).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "two.yaml: C: the kind has a second set of rules; the first one is in one.yaml"
    );
}

/// Rules come from outside: nothing in them, or in an object, may crash the reader.
#[test]
fn too_deeply_nested_tests_are_refused() {
    let nested = |depth: usize| {
        let tests = format!("{}{{field: a, is: b}}{}", "{all: [".repeat(depth), "]}".repeat(depth));
        format!("group: a.b\nsource: x\nkinds: {{C: {{rules: [{{status: Failed, all: [{tests}]}}]}}}}")
    };
    assert!(Layer::read(Origin::User, [("a", nested(5).as_str())]).is_ok());
    assert!(Layer::read(Origin::User, [("a", nested(12).as_str())]).is_err());
    assert!(Layer::read(Origin::User, [("a", nested(5000).as_str())]).is_err());
}
