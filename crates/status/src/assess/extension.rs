//! Custom resources, and every kind without rules of its own.

use jiff::SignedDuration;

use crate::assess::case::{Case, Finding};
use crate::assess::edges::references;
use crate::assess::{flux, workloads};
use crate::json::{Kind, Value};
use crate::object::Object;
use crate::verdict::Status;

/// How long a controller may take before it writes the first status.
const FIRST_STATUS: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn examine(case: &Case<'_>, object: &Object<'_>, finding: &mut Finding) {
    if finding.is_current() {
        if finding.verdict.rule == "fallback" && is_new_without_status(case, object) {
            let text = "no controller has written a status yet";
            finding.turn(Status::InProgress, "NoStatus", text, "evidence/first-status");
        }
        return;
    }
    if finding.is_stale() {
        return;
    }
    let (sets, mut others): (Vec<_>, Vec<_>) = case
        .owned(object, None)
        .into_iter()
        .partition(|owned| matches!((owned.group(), owned.kind()), ("apps" | "extensions", "ReplicaSet")));
    others.extend(workloads::current(object, &sets).cloned());
    let owned: Vec<_> = others.iter().filter_map(|owned| case.examine(owned)).collect();
    let references: Vec<_> = references(object).into_iter().map(|reference| reference.to).collect();
    let named = case.examine_named(&references).into_iter();
    // What an object merely names may serve others; that it fails is a word, no hard cause.
    let named = named.filter(|named| owned.iter().all(|owned| owned.name != named.name));
    let named: Vec<_> = named.map(|named| Finding { hard: None, ..named }).collect();
    finding.follow(owned.into_iter().chain(named));
    for name in references.iter().filter(|name| case.is_missing(name)) {
        finding.lacks(&case.called(name), &name.name);
    }
}

/// Whether a group is one of custom resources that have no rules of their own.
pub(super) fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io") && !flux::is_flux(group)
}

fn is_new_without_status(case: &Case<'_>, object: &Object<'_>) -> bool {
    let is_empty = |status: Value<'_>| match status.kind() {
        Kind::Null => true,
        Kind::Object => status.members().is_none_or(|mut members| members.next().is_none()),
        _ => false,
    };
    let has_no_status = object.at(&["status"]).is_none_or(is_empty);
    // The groups of custom resources have a dot.
    has_no_status
        && object.group().contains('.')
        && case.age(object).is_some_and(|age| age < FIRST_STATUS)
        && case
            .evidence
            .definition(object.group(), object.kind())
            .is_some_and(|definition| has_status_subresource(&definition, object.version()))
}

fn has_status_subresource(definition: &Object<'_>, version: &str) -> bool {
    let is_set = |value: Option<Value<'_>>| {
        value.and_then(|value| value.at(&["subresources", "status"])).is_some_and(|status| !status.is_null())
    };
    let mut versions = definition.at(&["spec", "versions"]).and_then(Value::items).into_iter().flatten();
    let own = versions.find(|it| it.get("name").is_some_and(|name| name.is_str(version)));
    // Before v1 the definition said it once for all versions.
    is_set(own) || is_set(definition.at(&["spec"]))
}
