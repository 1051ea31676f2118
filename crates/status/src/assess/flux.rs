//! Assesses Flux' own objects by the objects that they wait for.

use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::assess::assessor::{Assessor, Evaluation};
use crate::assess::edges::{Reference, health_checks, references};
use crate::verdict::cut;

pub(super) fn is_flux(group: &str) -> bool {
    group == "toolkit.fluxcd.io" || group.ends_with(".toolkit.fluxcd.io")
}

pub(super) fn examine(case: &Assessor<'_>, object: &Object<'_>, finding: &mut Evaluation) {
    let ready = object.condition("Ready");
    let reason = ready.and_then(|ready| ready.get("reason")?.as_str()).unwrap_or_default();
    if !finding.is_current() && REMEDIES.contains(&&*reason) {
        return remedied(object, finding);
    }
    if finding.is_current() || ready.is_none_or(|ready| finding.verdict.message != cut(ready_text(ready))) {
        return;
    }
    let waits_for = |reference: &&Reference| match &*reason {
        "DependencyNotReady" => reference.to.kind == object.kind() && reference.to.group == object.group(),
        "ArtifactFailed" | "SourceNotReady" => reference.to.group == "source.toolkit.fluxcd.io",
        // A chart that cannot be built because its repository fails.
        _ => object.kind() == "HelmChart" && reference.to.group == "source.toolkit.fluxcd.io",
    };
    let awaited: Vec<_> = match &*reason {
        "HealthCheckFailed" => health_checks(object),
        _ => references(object).into_iter().filter(|reference| waits_for(&reference)).collect(),
    };
    let awaited = case.allowed(awaited);
    for reference in &awaited {
        if case.is_missing(&reference.to) {
            finding.lacks(&case.called(&reference.to), &reference.to.name);
        }
    }
    let dependencies = case.named(awaited.iter().map(|reference| &reference.to));
    for unmet in case.unmet_dependency(object, &dependencies) {
        finding.add(&unmet);
    }
    finding.follow(case.examine_named(awaited.iter().map(|reference| &reference.to)));
    finding.says_what_it_awaits = true;
}

/// Reasons of a successful remediation. They explain why a HelmRelease is not ready, but the failure that led to the
/// remediation is the cause.
const REMEDIES: [&str; 2] = ["RollbackSucceeded", "UninstallSucceeded"];

/// If the condition Released, or else TestSuccess, is False, replaces the reason and the message by those of that
/// condition and keeps the remediation's message as a fact; else does nothing.
fn remedied(object: &Object<'_>, finding: &mut Evaluation) {
    let text =
        |value: Value<'_>, key| value.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let failed = |name| {
        let condition = object.condition(name)?;
        (text(condition, "status") == "False").then_some(condition)
    };
    // Tests may fail after a successful release.
    let Some(condition) = failed("Released").or_else(|| failed("TestSuccess")) else { return };
    finding.fact(object.condition("Ready").map(ready_text).unwrap_or_default());
    finding.say(&text(condition, "reason"), text(condition, "message"));
}

fn ready_text(ready: Value<'_>) -> String {
    ready.get("message").and_then(Value::as_str).unwrap_or_default().into_owned()
}
