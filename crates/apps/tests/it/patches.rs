//! Patches that turn one object into another.

use serde_json::{Value, json};
use taffrail_apps::verbs::{DiffLine, Patch};
use taffrail_object::Object;

fn between(before: &Value, after: &Value) -> Patch {
    Patch::between(&Object::new(before.into()).unwrap(), after).unwrap()
}

fn object(spec: Value, status: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "web", "resourceVersion": "7"}, "spec": spec, "status": status})
}

#[test]
fn patch_contains_only_differing_fields() {
    let before = object(json!({"a": 1, "b": {"c": "x", "d": "y"}, "gone": true}), json!({}));
    let after = object(json!({"a": 1, "b": {"c": "z", "d": "y"}, "new": {"e": []}}), json!({}));
    let patch = between(&before, &after);
    assert_eq!(patch.tree(), json!({"spec": {"b": {"c": "z"}, "gone": null, "new": {"e": []}}}));
    let based = patch.based_on(&Object::new((&before).into()).unwrap());
    assert_eq!(based.tree()["metadata"], json!({"resourceVersion": "7"}));
}

#[test]
fn equal_numbers_and_nulls_are_not_changes() {
    let before = object(json!({"n": 3, "list": [1, {"x": null}], "none": null}), json!({}));
    let after = object(json!({"n": 3.0, "list": [1.0, {}]}), json!({}));
    assert!(between(&before, &after).is_empty(), "{:?}", between(&before, &after));
    // A list is replaced as a whole, whatever is in it.
    let after = object(json!({"n": 3, "list": [1, {"x": 2}]}), json!({}));
    assert_eq!(between(&before, &after).tree(), json!({"spec": {"list": [1, {"x": 2}]}}));
}

#[test]
fn patch_splits_into_status_and_the_rest() {
    let before = object(json!({"paused": true}), json!({"abort": false}));
    let patch = between(&before, &object(json!({"paused": false}), json!({"abort": true})));
    assert_eq!(patch.part(true).tree(), json!({"status": {"abort": true}}));
    assert_eq!(patch.part(false).tree(), json!({"spec": {"paused": false}}));
}

#[test]
fn diff_of_a_list_shows_only_differing_items() {
    let before = object(json!({"list": ["a", {"b": 1}, "c"]}), json!({}));
    let patch = between(&before, &object(json!({"list": ["a", {"b": 2}, "x", "c"]}), json!({})));
    let expected = [
        DiffLine::Context("spec:".to_owned()),
        DiffLine::Context("  list:".to_owned()),
        DiffLine::Removed("    - {\"b\":1}".to_owned()),
        DiffLine::Added("    - {\"b\":2}".to_owned()),
        DiffLine::Added("    - \"x\"".to_owned()),
    ];
    assert_eq!(patch.lines(), expected);
    let patch = between(&before, &object(json!({"list": ["a", {"b": 1}, "c", "c"]}), json!({})));
    assert_eq!(patch.lines()[2..], [DiffLine::Added("    - \"c\"".to_owned())]);
    let patch = between(&before, &object(json!({"list": []}), json!({})));
    assert_eq!(patch.lines()[2..].len(), 3);
}

#[test]
fn dropped_fields_are_found() {
    let before = object(json!({}), json!({}));
    let patch = between(&before, &object(json!({"n": 3.0, "unknown": true}), json!({})));
    let kept = object(json!({"n": 3}), json!({}));
    assert_eq!(patch.dropped(&Object::new((&kept).into()).unwrap()), ["spec.unknown"]);
}

/// An object whose field `suspend` and annotations the manager wrote.
fn managed(spec: Value, annotations: Value, manager: &str) -> Value {
    let fields = |value: &Value| -> serde_json::Map<String, Value> {
        value.as_object().unwrap().keys().map(|key| (format!("f:{key}"), json!({}))).collect()
    };
    let entry = json!({"manager": manager, "operation": "Update", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": fields(&spec), "f:metadata": {"f:annotations": fields(&annotations)}}});
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "web", "annotations": annotations, "managedFields": [entry]}, "spec": spec})
}

#[test]
fn a_write_is_proved_by_its_writer_or_by_the_time_in_its_value() {
    let planned_at: jiff::Timestamp = "2026-03-01T12:00:00.123Z".parse().unwrap();
    let found =
        |patch: &Patch, object: &Value| patch.found_in(&Object::new(object.into()).unwrap(), planned_at);
    let mut before = object(json!({"suspend": false}), json!({}));
    before["metadata"]["annotations"] = json!({});
    let mut after = before.clone();
    after["spec"]["suspend"] = json!(true);
    let suspend = between(&before, &after);
    assert_eq!(found(&suspend, &managed(json!({"suspend": true}), json!({}), "taffrail")), Some(true));
    // Another client may have done the same.
    assert_eq!(found(&suspend, &managed(json!({"suspend": true}), json!({}), "kubectl-edit")), None);
    assert_eq!(found(&suspend, &managed(json!({"suspend": false}), json!({}), "taffrail")), Some(false));
    assert_eq!(found(&suspend, &managed(json!({"suspend": "soon"}), json!({}), "taffrail")), None);

    let annotated = |annotations: Value| {
        let mut object = before.clone();
        object["metadata"]["annotations"] = annotations;
        object
    };
    let requested = json!({"reconcile.fluxcd.io/requestedAt": planned_at});
    let request = between(&before, &annotated(requested.clone()));
    assert_eq!(found(&request, &annotated(requested)), Some(true));
    assert_eq!(found(&request, &before), Some(false));
    let later = json!({"reconcile.fluxcd.io/requestedAt": "2026-03-01T12:00:05Z"});
    assert_eq!(found(&request, &annotated(later)), None);

    // Argo CD removes a request once it has handled it.
    let refresh = json!({"argocd.argoproj.io/refresh": "normal"});
    let request = between(&before, &annotated(refresh.clone()));
    assert_eq!(found(&request, &managed(json!({"suspend": false}), refresh, "taffrail")), Some(true));
    assert_eq!(found(&request, &before), None);
    let mut synced = before.clone();
    synced["operation"] = json!({"sync": {"prune": true}});
    assert_eq!(found(&between(&before, &synced), &before), None);
}
