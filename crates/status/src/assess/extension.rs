//! Assesses custom resources, and objects of every kind without rules of its own.

use std::collections::HashSet;

use jiff::SignedDuration;
use taffrail_object::Object;
use taffrail_object::json::{Kind, Value};

use crate::assess::assessor::{Assessor, Evaluation, HardCause};
use crate::assess::{flux, workloads};
use crate::event::time;
use crate::verdict::Status;

/// Time allowed to a controller to write the first status of a new object.
const FIRST_STATUS: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn examine(case: &Assessor<'_>, object: &Object<'_>, finding: &mut Evaluation) {
    if finding.is_current() {
        let is_unjudged = finding.verdict.rule == "fallback";
        if is_unjudged && is_new_without_status(case, object) {
            let text = "no controller has written the object's status yet";
            finding.turn(Status::InProgress, "NoStatus", text, "evidence/first-status");
        }
        if is_unjudged && may_own_workload(object) {
            fail_by_own_workload(case, object, finding);
        }
        return;
    }
    follow(case, object, finding);
}

/// Follows the objects that an object owns (of its ReplicaSets only the current one) and names, and those in namespaces
/// that name a cluster-scoped object as their controller; only owned ones pass on a hard cause. Adds the named ones
/// that do not exist as facts. Does nothing if the controller has not observed the newest generation: dependents are
/// then of an older one.
pub(super) fn follow(case: &Assessor<'_>, object: &Object<'_>, finding: &mut Evaluation) {
    if finding.is_stale() {
        return;
    }
    let (sets, mut others): (Vec<_>, Vec<_>) = case
        .owned(object, None)
        .into_iter()
        .partition(|owned| matches!((owned.group(), owned.kind()), ("apps" | "extensions", "ReplicaSet")));
    others.extend(workloads::current(object, &sets).cloned());
    let owned: Vec<_> = others.iter().filter_map(|owned| case.examine(owned)).collect();
    let references = case.references(object);
    let named = case.examine_named(&references).into_iter();
    // A referenced object may serve others, so its failure is a message and not a hard cause.
    let owned_names: HashSet<_> = owned.iter().map(|owned| owned.name.clone()).collect();
    let named = named.filter(|named| !owned_names.contains(&named.name));
    let strangers = case.unproven(object);
    let strangers = strangers.iter().filter_map(|stranger| case.examine(stranger));
    let words: Vec<_> = named.chain(strangers).map(|finding| Evaluation { hard: None, ..finding }).collect();
    finding.follow(owned.into_iter().chain(words));
    for name in references.iter().filter(|name| case.is_missing(name)) {
        finding.lacks(&case.called(name), &name.name);
    }
}

/// Sets a custom resource without rules Failed if a workload that it controls, directly or through another custom
/// resource that it controls, has a hard cause.
fn fail_by_own_workload(case: &Assessor<'_>, object: &Object<'_>, finding: &mut Evaluation) {
    let failing_below = |owner: &Object<'_>| -> Vec<Evaluation> {
        let workloads = own_workloads(case, owner).into_iter().filter(|it| !is_custom(it.group()));
        workloads.filter_map(|it| hard(case.examine(&it)?)).collect()
    };
    let mut failing = Vec::new();
    for owned in own_workloads(case, object) {
        if !is_custom(owned.group()) {
            failing.extend(case.examine(&owned).and_then(hard));
            continue;
        }
        let below = failing_below(&owned);
        if !below.is_empty() {
            // The one between them may be well by its own conditions; then it is left out of the chain.
            match case.examine(&owned).and_then(hard) {
                Some(between) => failing.push(between),
                None => failing.extend(below),
            }
        }
    }
    if failing.is_empty() {
        return;
    }
    if finding.is_current() {
        let text = "a workload that the object owns fails";
        finding.turn(Status::InProgress, "WorkloadFails", text, "evidence/own-workload");
    }
    finding.follow(failing);
}

/// Returns the evaluation of a workload if it has a hard cause, else `None`; a failed Job always has one.
fn hard(mut workload: Evaluation) -> Option<Evaluation> {
    if workload.name.kind == "Job" && workload.status() == Status::Failed {
        workload.hard = workload.hard.or(Some(HardCause::JobFailed));
    }
    workload.hard.is_some().then_some(workload)
}

/// Returns the Deployments, StatefulSets, DaemonSets, Pods and custom resources that an object controls, and the newest
/// of its Jobs.
fn own_workloads<'e>(case: &Assessor<'e>, object: &Object<'_>) -> Vec<Object<'e>> {
    let is_job = |owned: &Object<'_>| (owned.group(), owned.kind()) == ("batch", "Job");
    let (jobs, mut others): (Vec<_>, Vec<_>) = case.owned(object, None).into_iter().partition(is_job);
    others.retain(|owned| {
        is_custom(owned.group())
            || matches!(
                (owned.group(), owned.kind()),
                ("apps", "Deployment" | "StatefulSet" | "DaemonSet") | ("", "Pod")
            )
    });
    let created = |job: &Object<'_>| time(job.at(&["metadata", "creationTimestamp"]));
    others.extend(jobs.into_iter().max_by_key(|job| (created(job), job.name().into_owned())));
    others
}

/// Returns true if an object is a custom resource whose controlled workloads may decide its status, where no rule of
/// its kind does.
///
/// Returns false for kinds of Kubernetes and Flux, and for an Argo CD Application, which does not own what it delivers.
pub fn may_own_workload(object: &Object<'_>) -> bool {
    is_custom(object.group()) && (object.group(), object.kind()) != ("argoproj.io", "Application")
}

/// Returns true if `group` looks like one of custom resources: it has a dot, and is not below `k8s.io` or one of Flux'.
pub(super) fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io") && !flux::is_flux(group)
}

fn is_new_without_status(case: &Assessor<'_>, object: &Object<'_>) -> bool {
    let is_empty = |status: Value<'_>| match status.kind() {
        Kind::Null => true,
        Kind::Object => status.members().is_none_or(|mut members| members.next().is_none()),
        _ => false,
    };
    let has_no_status = object.at(&["status"]).is_none_or(is_empty);
    // The groups of custom resources contain a dot.
    has_no_status
        && object.group().contains('.')
        && case.age(object, FIRST_STATUS).is_some_and(|age| age < FIRST_STATUS)
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
    // Before v1 the definition had it once for all versions.
    is_set(own) || is_set(definition.at(&["spec"]))
}
