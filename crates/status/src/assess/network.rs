//! Assesses Services, Ingresses, and aggregated APIs.

use jiff::SignedDuration;
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};

use crate::assess::assessor::{Assessor, Evaluation};
use crate::assess::edges::references;
use crate::assess::workloads::is_terminating;
use crate::event::time;
use crate::verdict::Status;

/// Sets a Current Service of type LoadBalancer InProgress while it has no address. Also of one that was InProgress
/// before, the newest Warning event, if any, gives reason and message. Missing endpoints are reported by its workload.
pub(super) fn service(case: &Assessor<'_>, service: &Object<'_>, finding: &mut Evaluation) {
    let is_balancer = service.at(&["spec", "type"]).is_some_and(|kind| kind.is_str("LoadBalancer"));
    if !is_balancer
        || has_address(service)
        || !matches!(finding.status(), Status::Current | Status::InProgress)
    {
        return;
    }
    if finding.is_current() {
        let text = "the load balancer has no address yet";
        finding.turn(Status::InProgress, "NoAddress", text, "evidence/load-balancer");
    }
    let created = time(service.at(&["metadata", "creationTimestamp"]));
    if let Some(event) = case.warnings(service, created).into_iter().next() {
        finding.say(&event.reason, &*event.message);
    }
}

fn has_address(service: &Object<'_>) -> bool {
    let addresses = service.at(&["status", "loadBalancer", "ingress"]).and_then(Value::items);
    let is_set = |value: Option<Value<'_>>| value.is_some_and(|text| !text.is_str("") && !text.is_null());
    addresses
        .into_iter()
        .flatten()
        .any(|address| is_set(address.get("ip")) || is_set(address.get("hostname")))
}

/// Maximum age of the last Warning event that counts about an Ingress without an address.
const MAX_WARNING_AGE: SignedDuration = SignedDuration::from_mins(10);

/// Minimum number of occurrences of Warning events from which they count: by then the controller has retried.
const MIN_WARNINGS: i64 = 3;

/// Sets a Current Ingress without an address InProgress, with reason and message of the newest Warning event, if there
/// were at least [`MIN_WARNINGS`] in all and the newest is recent. Without such warnings it stays Current, because it
/// may work without an address.
pub(super) fn ingress(case: &Assessor<'_>, ingress: &Object<'_>, finding: &mut Evaluation) {
    if !finding.is_current() || has_address(ingress) {
        return;
    }
    let created = time(ingress.at(&["metadata", "creationTimestamp"]));
    let warnings = case.warnings(ingress, created);
    let count = warnings.iter().fold(0_i64, |sum, event| sum.saturating_add(event.count));
    let Some(newest) = warnings.first().filter(|event| case.is_recent(event, MAX_WARNING_AGE)) else {
        return;
    };
    if count >= MIN_WARNINGS {
        finding.turn(Status::InProgress, &newest.reason, &*newest.message, "evidence/ingress");
        finding.since = warnings.iter().filter_map(|event| event.first).min();
    }
}

/// Sets a Current or InProgress APIService Failed if its condition Available is False, and leads the cause chain to the
/// Pods behind its Service.
pub(super) fn api_service(case: &Assessor<'_>, api_service: &Object<'_>, finding: &mut Evaluation) {
    let Some(available) = api_service.condition("Available") else { return };
    let text = |key| available.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("status") != "False" || !matches!(finding.status(), Status::Current | Status::InProgress) {
        return;
    }
    finding.turn(Status::Failed, &text("reason"), &*text("message"), "evidence/api-service");
    finding.since = time(available.get("lastTransitionTime"));
    for reference in references(api_service) {
        if let Some(service) = case.get(&reference.to).present() {
            finding.follow(behind(case, &service));
        } else if case.is_missing(&reference.to) {
            finding.lacks(&case.called(&reference.to), &reference.to.name);
        }
    }
    finding.hard = None;
}

/// Returns the evaluations of the Pods that a Service's EndpointSlices name, or its Endpoints as not ready, without
/// terminating Pods.
fn behind(case: &Assessor<'_>, service: &Object<'_>) -> Vec<Evaluation> {
    let (namespace, name) = (service.namespace(), service.name());
    let is_slice = |slice: &Object<'_>| {
        let label = slice.at(&["metadata", "labels", "kubernetes.io/service-name"]);
        label.is_some_and(|label| label.is_str(&name))
    };
    let mut backends = case.of_kind("discovery.k8s.io", "EndpointSlice", Some(&namespace));
    backends.retain(is_slice);
    backends.extend(case.get(&ObjectKey::new("", "Endpoints", namespace, name)).present());
    let mut pods: Vec<_> = backends.iter().flat_map(references).map(|reference| reference.to).collect();
    pods.retain(|to| to.kind == "Pod");
    pods.sort();
    pods.dedup();
    let there = pods.iter().filter_map(|name| case.get(name).present()).filter(|pod| !is_terminating(pod));
    there.filter_map(|pod| case.examine(&pod)).collect()
}
