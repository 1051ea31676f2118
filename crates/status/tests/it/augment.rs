//! Tests of writing the standard conditions into objects.

use serde_json::{Value, json};
use taffrail_status::{AugmentError, Kstatus, augment};

use super::NOW;

const THEN: &str = "2020-01-01T00:00:00Z";
const TIME: &str = "2026-03-01T12:00:00Z";

fn deployment(conditions: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2}, "status": {"replicas": 1, "conditions": conditions},
    })
}

fn augmented(conditions: Value) -> Value {
    let mut object = deployment(conditions);
    augment(&mut object, &Kstatus::default(), NOW).unwrap();
    object["status"]["conditions"].take()
}

#[test]
fn a_condition_is_added_beside_the_others() {
    let available = json!({"type": "Available", "status": "False"});
    let reconciling = json!({
        "type": "Reconciling", "status": "True", "reason": "LessReplicas", "message": "Replicas: 1/2",
        "lastUpdateTime": TIME, "lastTransitionTime": TIME,
    });
    assert_eq!(augmented(json!([available])), json!([available, reconciling]));
}

#[test]
fn the_transition_time_moves_only_with_the_status() {
    let before = |status: &str| json!([{"type": "Reconciling", "status": status, "reason": "Old", "lastTransitionTime": THEN}]);
    let after = |transition: &str| {
        json!([{
            "type": "Reconciling", "status": "True", "reason": "LessReplicas", "message": "Replicas: 1/2",
            "lastUpdateTime": TIME, "lastTransitionTime": transition,
        }])
    };
    assert_eq!(augmented(before("False")), after(TIME));
    // A Reconciling that is True already decides by itself, so its reason stays.
    let kept = augmented(before("True"));
    assert_eq!((&kept[0]["reason"], &kept[0]["lastTransitionTime"]), (&json!("Old"), &json!(THEN)));
}

#[test]
fn an_object_without_status_gets_an_empty_list() {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    augment(&mut object, &Kstatus::default(), NOW).unwrap();
    assert_eq!(object["status"], json!({"conditions": []}));
}

#[test]
fn damaged_conditions_are_named() {
    let error = |conditions| {
        let mut object = deployment(conditions);
        augment(&mut object, &Kstatus::default(), NOW).unwrap_err()
    };
    assert_eq!(error(json!([{"status": "True"}])), AugmentError::Field("type"));
    assert_eq!(error(json!([{"type": "Reconciling"}])), AugmentError::Field("status"));
    assert!(matches!(error(json!("none")), AugmentError::Compute(_)));
}
