//! Tests of Flux' own objects: `Ready` decides, also while Flux retries.

use serde_json::{Value, json};
use taffrail_object::Object;
use taffrail_status::{ObjectContext, Rules, Status, Taffrail};

use super::NOW;

fn kustomization(spec: Value, conditions: Value) -> Value {
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "shop", "generation": 2}, "spec": spec,
        "status": {"observedGeneration": 1, "conditions": conditions},
    })
}

fn ready(status: &str, reason: &str) -> Value {
    json!({"type": "Ready", "status": status, "reason": reason, "message": "of Ready", "observedGeneration": 2})
}

fn judge(object: &Value) -> (Status, String) {
    let verdict =
        Taffrail.judge(&Object::new(object.into()).unwrap(), &ObjectContext::default(), NOW).unwrap();
    (verdict.status, verdict.message.into_owned())
}

#[test]
fn ready_counts_by_its_own_generation() {
    let retrying = json!({"type": "Reconciling", "status": "True", "reason": "ProgressingWithRetry", "message": "retrying"});
    let of_ready = "of Ready".to_owned();
    for (conditions, expected) in [
        (json!([ready("True", "ReconciliationSucceeded")]), (Status::Current, of_ready.clone())),
        (json!([retrying, ready("False", "HealthCheckFailed")]), (Status::Failed, of_ready.clone())),
        (json!([retrying, ready("False", "DependencyNotReady")]), (Status::InProgress, of_ready.clone())),
        (json!([ready("False", "Progressing")]), (Status::InProgress, of_ready.clone())),
        (json!([ready("Unknown", "Progressing")]), (Status::InProgress, of_ready)),
        (json!([ready("True", "X"), retrying]), (Status::InProgress, "retrying".to_owned())),
        (json!([]), (Status::InProgress, "waiting to be reconciled".to_owned())),
    ] {
        assert_eq!(judge(&kustomization(json!({}), conditions.clone())), expected, "{conditions}");
    }
}

#[test]
fn unobserved_flux_generation_is_in_progress_unless_suspended() {
    let mut old = ready("False", "BuildFailed");
    old["observedGeneration"] = json!(1);
    assert_eq!(judge(&kustomization(json!({}), json!([old]))).0, Status::InProgress);
    assert_eq!(judge(&kustomization(json!({"suspend": true}), json!([old]))).0, Status::Failed);
}

#[test]
fn deletion_beats_all_and_other_groups_are_left_to_kstatus() {
    let mut object = kustomization(json!({}), json!([ready("False", "BuildFailed")]));
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(judge(&object).0, Status::Terminating);
    object["metadata"]["deletionTimestamp"].take();
    let mut other = kustomization(json!({}), json!([ready("False", "BuildFailed")]));
    other["apiVersion"] = json!("kustomize.example.com/v1");
    other["metadata"]["generation"] = json!(1);
    assert_eq!(judge(&other).0, Status::InProgress);
}

#[test]
fn static_objects_without_status_are_current() {
    let provider = json!({"apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider"});
    assert_eq!(judge(&provider).0, Status::Current);
}

#[test]
fn a_helm_repository_of_oci_charts_has_no_status() {
    let repository = |kind: &str, status: Value| {
        json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
            "metadata": {"name": "charts", "generation": 1}, "spec": {"type": kind}, "status": status,
        })
    };
    for (object, status) in [
        (repository("oci", json!({"observedGeneration": -1})), Status::Current),
        (repository("oci", json!({})), Status::Current),
        (repository("default", json!({"observedGeneration": -1})), Status::InProgress),
        (repository("default", json!({})), Status::InProgress),
    ] {
        assert_eq!(judge(&object).0, status, "{object}");
    }
}

#[test]
fn a_kustomization_whose_last_health_check_failed_is_not_current_beside_ready() {
    let told = |reason: &str, generation: i64| {
        let healthy = json!({"type": "Healthy", "status": "False", "reason": reason, "message": "boom",
            "observedGeneration": generation});
        judge(&kustomization(json!({}), json!([ready("True", "ReconciliationSucceeded"), healthy])))
    };
    assert_eq!(told("HealthCheckFailed", 2), (Status::Failed, "boom".to_owned()));
    assert_eq!(told("Progressing", 2).0, Status::Current);
    assert_eq!(told("HealthCheckFailed", 1).0, Status::Current, "of an older generation");
}
