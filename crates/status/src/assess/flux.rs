//! Flux' own objects: what they wait for.

use crate::assess::case::{Case, Finding};
use crate::assess::edges::{Reference, references};
use crate::assess::evidence::Lookup;
use crate::json::Value;
use crate::object::Object;

pub(super) fn is_flux(group: &str) -> bool {
    group == "toolkit.fluxcd.io" || group.ends_with(".toolkit.fluxcd.io")
}

pub(super) fn examine(case: &Case<'_>, object: &Object<'_>, finding: &mut Finding) {
    let ready = object.condition("Ready");
    let reason = ready.and_then(|ready| ready.get("reason")?.as_str()).unwrap_or_default();
    if finding.is_current() || ready.is_none_or(|ready| finding.text != ready_text(ready)) {
        return;
    }
    let waits_for = |reference: &&Reference| match &*reason {
        "DependencyNotReady" => reference.to.kind == object.kind() && reference.to.group == object.group(),
        "ArtifactFailed" | "SourceNotReady" => reference.to.group == "source.toolkit.fluxcd.io",
        // A chart that cannot be built for want of its repository.
        _ => object.kind() == "HelmChart" && reference.to.group == "source.toolkit.fluxcd.io",
    };
    let references = references(object);
    let awaited: Vec<_> = references.iter().filter(waits_for).collect();
    for reference in &awaited {
        if matches!(case.get(&reference.to), Lookup::Absent) {
            let fact = format!(
                "{} {}/{} does not exist",
                reference.to.kind, reference.to.namespace, reference.to.name
            );
            if !finding.text.contains(&reference.to.name) {
                let text = format!("{}; {fact}", finding.text);
                finding.say("", text);
            }
            finding.fact(fact);
        }
    }
    finding.follow(case.examine_named(awaited.iter().map(|reference| &reference.to)));
    finding.says_what_it_awaits = true;
}

fn ready_text(ready: Value<'_>) -> String {
    ready.get("message").and_then(Value::as_str).unwrap_or_default().into_owned()
}
