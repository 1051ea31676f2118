//! Fields that take their values from live objects, as kpt fills them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taffrail_object::ObjectKey;
use taffrail_plan::manifests::{FieldSubstitution, Setting, SubstitutionError, substitute};
use taffrail_plan::order::{Dialect, OrderError};

use super::{manifest, ordered, set, shown};

const MUTATION: &str = "config.kubernetes.io/apply-time-mutation";

/// Returns an object with the annotation.
fn target(name: &str, substitutions: &str) -> String {
    let lines: String = substitutions.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations:\n    {MUTATION}: |\n{lines}---\n"
    )
}

fn one(source: &str, from: &str, to: &str, token: &str) -> String {
    let token = if token.is_empty() { String::new() } else { format!("  token: {token}\n") };
    format!("- sourceRef: {source}\n  sourcePath: {from}\n  targetPath: {to}\n{token}")
}

const SOURCE: &str = "{kind: ConfigMap, name: source}";

fn substitutions(text: &str) -> Vec<FieldSubstitution> {
    set(&target("target", text)).objects.remove(0).options.substitutions.unwrap().value
}

/// Carries substitutions out on a manifest, from one live ConfigMap.
fn mutated(manifest: &Value, text: &str, live: Value) -> Result<Value, SubstitutionError> {
    let sources = BTreeMap::from([(ObjectKey::new("", "ConfigMap", "shop", "source"), live)]);
    substitute(&ObjectKey::new("", "ConfigMap", "shop", "target"), manifest, &substitutions(text), &sources)
}

#[test]
fn values_replace_fields_and_tokens() {
    let live = json!({
        "data": {"image": "whoami", "version": "1.0"},
        "spec": {"rules": [{"paths": [{"path": "/new", "port": 1}, {"path": "/old", "port": 80}]}]},
        "status": {"ready": true, "nothing": null},
    });
    let old = json!({
        "image": "${image}:${version}",
        "env": [{"name": "OTHER", "value": "x"}, {"name": "PORT", "value": "port ${p}, again ${p}"}],
        "port": 0,
        "json": "[3.14,${data}]",
        "map": {"a/b~": {}},
        "ready": "",
    });
    let port = "'$.spec.rules[0].paths[?(@.path==\"/old\")].port'";
    let all = [
        one(SOURCE, "$.data.image", "$.image", "${image}"),
        one(SOURCE, "$.data.version", "$.image", "${version}"),
        one(SOURCE, port, "'$.env[?(@.name==\"PORT\")].value'", "${p}"),
        one(SOURCE, port, "$.port", ""),
        one(SOURCE, "$.data", "$.json", "${data}"),
        one(SOURCE, "'$.spec.rules[0].paths[?(@.path==\"/old\" && @.port==80)]'", "\"$.map['a/b~']\"", ""),
        one(SOURCE, "$.status.nothing", "$.ready", ""),
    ];
    let new = json!({
        "image": "whoami:1.0",
        "env": [{"name": "OTHER", "value": "x"}, {"name": "PORT", "value": "port 80, again 80"}],
        "port": 80,
        "json": "[3.14,{\"image\":\"whoami\",\"version\":\"1.0\"}]",
        "map": {"a/b~": {"path": "/old", "port": 80}},
        "ready": null,
    });
    assert_eq!(mutated(&old, &all.concat(), live).unwrap(), new);
}

#[test]
fn what_cannot_be_carried_out_has_a_reason() {
    let live = json!({"data": {"a": "secret-value", "list": [1, 2]}});
    let old = json!({"text": "${token}", "number": 1, "list": ["x", "y"]});
    let told = |from: &str, to: &str, token: &str| {
        let error = mutated(&old, &one(SOURCE, from, to, token), live.clone()).unwrap_err();
        assert!(!error.to_string().contains("secret-value"), "{error}");
        error.to_string()
    };
    let cases = [
        (
            ("$.data.none", "$.text", ""),
            "the path $.data.none matches 0 fields of /ConfigMap/shop/source, not one",
        ),
        (
            ("'$.data.list[*]'", "$.text", ""),
            "the path $.data.list[*] matches 2 fields of /ConfigMap/shop/source, not one",
        ),
        (("$.data.a", "$.none", ""), "the path $.none matches 0 fields of /ConfigMap/shop/target, not one"),
        (
            ("$.data.a", "'$.list[*]'", ""),
            "the path $.list[*] matches 2 fields of /ConfigMap/shop/target, not one",
        ),
        (("$.data.a", "$.number", "t"), "the field $.number is a number, in which no token can be replaced"),
        (("$.data.a", "$.text", "${other}"), "the field $.text does not contain the token '${other}'"),
    ];
    for ((from, to, token), expected) in cases {
        assert_eq!(told(from, to, token), expected);
    }
    let text = one("{kind: Secret, name: gone}", "$.data.a", "$.text", "");
    assert_eq!(
        mutated(&old, &text, live).unwrap_err(),
        SubstitutionError::NoSource(Box::new(ObjectKey::new("", "Secret", "shop", "gone")))
    );
}

#[test]
fn a_mutated_manifest_keeps_to_the_bounds_of_manifests() {
    let large = json!({"data": "x".repeat(1 << 20)});
    let old = json!({"data": "t".repeat(1 << 20)});
    let error = mutated(&old, &one(SOURCE, "$.data", "$.data", "t"), large.clone()).unwrap_err();
    assert_eq!(error.to_string(), "with the value for $.data the object is larger than 3 MiB");
    let old = json!({"a": "", "b": "", "c": "", "d": ""});
    let all: String = ["a", "b", "c", "d"].map(|to| one(SOURCE, "$.data", &format!("$.{to}"), "")).concat();
    assert!(matches!(mutated(&old, &all, large), Err(SubstitutionError::TooLarge { .. })));
    // Each puts the live object one level deeper.
    let nested = (0..150).fold(json!({"x": ""}), |inner, _| json!({"x": inner}));
    let deep = format!("${}", ".x".repeat(100));
    let text = one(SOURCE, "$", &deep, "");
    assert!(matches!(mutated(&nested, &text, nested.clone()), Err(SubstitutionError::TooDeep { .. })));
}

#[test]
fn a_value_never_makes_another_object_of_a_manifest() {
    let live = json!({"data": {"name": "victim", "all": {"kind": "Secret"}}});
    let old = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "target", "labels": {"name": ""}}});
    for path in ["$", "$.kind", "$.apiVersion", "$.metadata.name", "$.metadata"] {
        let error = mutated(&old, &one(SOURCE, "$.data.name", path, ""), live.clone()).unwrap_err();
        assert_eq!(error, SubstitutionError::OtherObject { path: path.to_owned() });
    }
    let new = mutated(&old, &one(SOURCE, "$.data.name", "$.metadata.labels.name", ""), live).unwrap();
    assert_eq!(new["metadata"]["labels"]["name"], "victim");
}

/// Returns the errors about an object with the annotation.
fn refused(text: &str) -> String {
    super::refused(&target("target", text))
}

#[test]
fn the_annotation_is_read_strictly() {
    let start = format!("deploy/all.yaml:6: ConfigMap target: {MUTATION}");
    let cases = [
        ("a: b", ": is a map, not a list"),
        ("- a", " is a string, not a map; write a map"),
        ("- sourceReff: {}", ": the option 'sourceReff' is unknown; did you mean sourceRef?"),
        ("- sourceRef: {kind: ConfigMap, nmae: a}", ": the option 'nmae' is unknown; did you mean name?"),
        ("- {sourcePath: $.a}", ": sourceRef is missing"),
        ("- sourceRef: {kind: ConfigMap, name: 1}", ": name is a number, not a string; quote the value"),
        ("- sourceRef: {name: a}", ": sourceRef: the kind '' is not the name of a kind"),
        (
            "- sourceRef: {group: apps, apiVersion: batch/v1, kind: Job, name: a}",
            ": group and apiVersion of sourceRef name different groups",
        ),
        ("- {sourceRef: {kind: ConfigMap, name: a}, targetPath: $.a}", ": sourcePath is missing"),
        ("[", ""),
    ];
    for (text, expected) in cases {
        let told = refused(text);
        let expected =
            if expected.starts_with(": is") { expected.replace(": is", " is") } else { expected.to_owned() };
        assert!(told.starts_with(&format!("{start}{expected}")), "{text}: {told}");
    }
    let unknown = one("{kind: Unknown, name: a}", "$.a", "$.b", "");
    assert!(
        refused(&unknown).contains("the server has no kind Unknown in the core group"),
        "{}",
        refused(&unknown)
    );
    let many = one(SOURCE, "$.a", "$.b", "").repeat(101);
    assert!(refused(&many).contains("there are more than 100 substitutions"), "{}", refused(&many));
}

#[test]
fn paths_that_could_match_without_bound_are_refused() {
    let paths = [
        "a.b",
        "",
        "$..a",
        "$.a..b",
        "$.a[0,0][0,0]",
        "$[?(@.a==$.b)]",
        "$.a[?(@..b)]",
        "$.a[?(match(@.a, \"x\"))]",
        "$.a[",
        "$.a[(@.length-1)]",
    ];
    for path in paths {
        let told = refused(&one(SOURCE, &format!("'{path}'"), "$.b", ""));
        assert!(told.contains("sourcePath"), "{path}: {told}");
    }
    // What stands in quotes is a name.
    assert_eq!(substitutions(&one(SOURCE, "\"$['a..b,$']\"", "$.b", "")).len(), 1);
}

#[test]
fn a_target_comes_after_its_source() {
    let text = [
        target("target", &(one(SOURCE, "$.a", "$.b", "") + &one(SOURCE, "$.a", "$.c", ""))),
        manifest("v1", "ConfigMap", "source", &[]),
        target("outer", &one("{kind: Secret, name: outside}", "$.a", "$.b", "")),
    ]
    .concat();
    let set = set(&text);
    let order = ordered(&set, &[], Dialect::Kpt, &[]).unwrap();
    assert_eq!(shown(&set, &[], &order.steps), ["Sync 0: outer source", "Sync 0: target"]);
    assert_eq!(order.steps[0].needs, [ObjectKey::new("", "Secret", "shop", "outside")]);
    assert_eq!(order.after, [vec![1], vec![], vec![]]);
    let Setting { stated_by, line, .. } = set.objects[0].options.substitutions.as_ref().unwrap();
    assert_eq!((*stated_by, *line), (MUTATION, 6));
    // In another dialect it does not hold, and the caller knows.
    let order = ordered(&set, &[], Dialect::Argo, &[]).unwrap();
    assert_eq!(order.unread.iter().map(|it| it.key).collect::<Vec<_>>(), [MUTATION; 2]);
}

#[test]
fn a_field_of_the_object_itself_or_of_nobody_is_an_error() {
    let itself = target("source", &one(SOURCE, "$.a", "$.b", ""));
    let errors = ordered(&set(&itself), &[], Dialect::Kpt, &[]).unwrap_err();
    assert!(matches!(&errors[..], [OrderError::Circle(edges)] if edges[0].place.line == 6), "{errors:?}");
    let nobody = target("target", &one("{kind: ConfigMap, name: nobody}", "$.a", "$.b", ""));
    let errors = ordered(&set(&nobody), &[], Dialect::Kpt, &[]).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "deploy/all.yaml:6: /ConfigMap/shop/target comes after /ConfigMap/shop/nobody, which is neither in the manifests nor in the cluster"
    );
}

#[test]
fn the_source_of_a_cluster_wide_kind_has_no_namespace() {
    let text = one("{apiVersion: v1, kind: Namespace, name: shop, namespace: stray}", "$.a", "$.b", "");
    assert_eq!(substitutions(&text)[0].source, ObjectKey::new("", "Namespace", "", "shop"));
    let text = one("{group: apps, kind: Deployment, name: web, namespace: other}", "$.a", "$.b", "");
    assert_eq!(substitutions(&text)[0].source, ObjectKey::new("apps", "Deployment", "other", "web"));
}
