//! Assesses bindings of admission policies, and certificate signing requests.

use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::assess::assessor::{Assessor, Evaluation};
use crate::event::time;
use crate::verdict::Status;

/// Sets the binding of an admission policy InProgress if it is Current and its policy certainly does not exist: the
/// binding then has no effect.
pub(super) fn binding(case: &Assessor<'_>, binding: &Object<'_>, finding: &mut Evaluation) {
    if !finding.is_current() {
        return;
    }
    for policy in case.references(binding).iter().filter(|policy| case.is_missing(policy)) {
        let text = format!("{} does not exist", case.called(policy));
        finding.turn(Status::InProgress, "PolicyMissing", text.clone(), "evidence/policy-missing");
        finding.fact(text);
    }
}

/// Sets a Current or InProgress CertificateSigningRequest Failed if its condition Denied or Failed is True or has no
/// status. Both are final, so waiting does not help.
pub(super) fn signing_request(request: &Object<'_>, finding: &mut Evaluation) {
    if !matches!(finding.status(), Status::Current | Status::InProgress) {
        return;
    }
    let refused = ["Denied", "Failed"].into_iter().find_map(|name| {
        // The first versions of the API had no status.
        let is_true = |it: &Value<'_>| it.get("status").is_none_or(|own| own.is_str("True"));
        Some((name, request.condition(name).filter(is_true)?))
    });
    let Some((name, condition)) = refused else { return };
    let text = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
    let message = text("message");
    let said =
        if message.trim().is_empty() { format!("the request is {name}") } else { message.into_owned() };
    let reason = text("reason");
    finding.turn(
        Status::Failed,
        if reason.is_empty() { name } else { &reason },
        said,
        "evidence/signing-request",
    );
    finding.since =
        ["lastTransitionTime", "lastUpdateTime"].into_iter().find_map(|key| time(condition.get(key)));
}
