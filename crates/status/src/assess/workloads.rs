//! Assesses Deployments, ReplicaSets, StatefulSets and DaemonSets.

use std::borrow::Cow;
use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};
use taffrail_object::Object;
use taffrail_object::json::Value;

use crate::assess::assessor::{Assessor, Evaluation, HardCause};
use crate::assess::{disruption, pod, refusals};
use crate::event::time;
use crate::verdict::Status;

const POD: (&str, &str) = ("", "Pod");

/// Annotations with the revision of a ReplicaSet.
const REVISIONS: [&str; 2] = ["deployment.kubernetes.io/revision", "rollout.argoproj.io/revision"];

fn count(object: &Object<'_>, path: &[&str], default: i64) -> i64 {
    object.at(path).and_then(Value::as_i64).unwrap_or(default)
}

pub(super) fn is_terminating(object: &Object<'_>) -> bool {
    !object.text(&["metadata", "deletionTimestamp"]).is_empty()
}

fn revision(object: &Object<'_>) -> Option<i64> {
    let annotations = object.at(&["metadata", "annotations"])?;
    REVISIONS.iter().find_map(|key| annotations.get(key)?.as_str()?.parse().ok())
}

/// Returns the current ReplicaSet of an owner: the one with the owner's revision, else the one with the highest
/// revision, among equals the newest; `None` if `sets` is empty.
pub(super) fn current<'o, 'e>(owner: &Object<'_>, sets: &'o [Object<'e>]) -> Option<&'o Object<'e>> {
    let own = revision(owner);
    sets.iter().max_by_key(|set| {
        let number = revision(set);
        let created = time(set.at(&["metadata", "creationTimestamp"]));
        (number.is_some() && number == own, number, created, set.name())
    })
}

/// Returns true if an object is a ReplicaSet of the group `apps`.
pub(super) fn is_replica_set(object: &Object<'_>) -> bool {
    object.group() == "apps" && object.kind() == "ReplicaSet"
}

/// Returns the ReplicaSet before the current one of an owner, and the current one; `None` where there is none.
pub(super) fn previous_and_current<'o, 'e>(
    owner: &Object<'_>,
    sets: &'o [Object<'e>],
) -> (Option<&'o Object<'e>>, Option<&'o Object<'e>>) {
    let Some(current) = current(owner, sets) else { return (None, None) };
    let order = |set: &Object<'_>| (revision(set), time(set.at(&["metadata", "creationTimestamp"])));
    let older = sets.iter().filter(|set| set.name() != current.name() && order(set) < order(current));
    (older.max_by_key(|set| order(set)), Some(current))
}

/// Returns the ReplicaSets that an owner controls: those of the group `apps`, or if there are none, of `extensions`, in
/// which old clusters serve each too.
pub(super) fn replica_sets<'e>(case: &Assessor<'e>, owner: &Object<'_>) -> Vec<Object<'e>> {
    let sets = case.owned(owner, Some(("apps", "ReplicaSet")));
    if sets.is_empty() { case.owned(owner, Some(("extensions", "ReplicaSet"))) } else { sets }
}

pub(super) fn deployment(case: &Assessor<'_>, deployment: &Object<'_>, finding: &mut Evaluation) {
    if finding.is_current() || finding.is_stale() {
        return;
    }
    let sets = replica_sets(case, deployment);
    if is_paused(deployment) && rests(case, deployment, finding, &sets) {
        finding.turn(
            Status::Current,
            "",
            "Deployment is paused, its replicas are available",
            "evidence/paused",
        );
        return;
    }
    disruption::deployment(case, deployment, finding);
    if finding.is_current() {
        return;
    }
    let current = current(deployment, &sets);
    let mut dependents: Vec<_> = current.and_then(|set| case.examine(set)).into_iter().collect();
    if dependents.iter().all(Evaluation::is_current) && is_recreated(deployment) {
        // With the strategy Recreate, new Pods are created after the last old one is gone.
        let pods = sets.iter().flat_map(|set| case.owned(set, Some(POD)));
        let ended = |pod: &Object<'_>| pod::is_in_phase(pod, "Failed") || pod::is_in_phase(pod, "Succeeded");
        let leaving = pods.filter(|pod| is_terminating(pod) && !ended(pod));
        dependents.extend(leaving.filter_map(|pod| case.examine(&pod)));
    }
    finding.follow(dependents);
    // Refusals of an older ReplicaSet do not matter.
    if finding.hard.is_none()
        && !refusals::condition(deployment, finding, "Progressing", "False")
        && sets.is_empty()
    {
        refusals::condition(deployment, finding, "ReplicaFailure", "True");
    }
    unseen(case, deployment, finding);
}

fn is_recreated(deployment: &Object<'_>) -> bool {
    deployment.at(&["spec", "strategy", "type"]).is_some_and(|kind| kind.is_str("Recreate"))
}

fn is_paused(deployment: &Object<'_>) -> bool {
    deployment.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true)
}

/// Returns true if a paused Deployment is in progress, but all its replicas are available and belong to one ReplicaSet,
/// or where no ReplicaSets were read, are all updated.
fn rests(case: &Assessor<'_>, deployment: &Object<'_>, finding: &Evaluation, sets: &[Object<'_>]) -> bool {
    let wanted = count(deployment, &["spec", "replicas"], 1);
    let status = |key| count(deployment, &["status", key], 0);
    let all = status("replicas") == wanted
        && status("readyReplicas") >= wanted
        && status("availableReplicas") >= wanted;
    if finding.status() != Status::InProgress || !all {
        return false;
    }
    let namespace = deployment.namespace();
    if sets.is_empty() || !case.evidence.state().is_observed("apps", "ReplicaSet", Some(&namespace)) {
        return status("updatedReplicas") == wanted;
    }
    let mut running = sets.iter().filter(|set| {
        count(set, &["spec", "replicas"], 1) != 0 || count(set, &["status", "replicas"], 0) != 0
    });
    let is_complete = |set: &Object<'_>| {
        count(set, &["spec", "replicas"], 1) == wanted
            && count(set, &["status", "availableReplicas"], 0) >= wanted
    };
    match (running.next(), running.next()) {
        (None, _) => wanted == 0,
        (Some(only), None) => is_complete(only),
        (Some(_), Some(_)) => false,
    }
}

pub(super) fn replica_set(case: &Assessor<'_>, set: &Object<'_>, finding: &mut Evaluation) {
    if finding.is_current() {
        return;
    }
    let lacks = count(set, &["status", "replicas"], 0) < count(set, &["spec", "replicas"], 1);
    let since = finding.since;
    if refusals::condition(set, finding, "ReplicaFailure", "True")
        || lacks && refusals::events(case, set, finding, since)
    {
        return;
    }
    finding.follow(pods(case, set, finding, Terminating::Left));
}

pub(super) fn stateful_set(case: &Assessor<'_>, set: &Object<'_>, finding: &mut Evaluation) {
    if finding.is_stale() || finding.is_current() && !is_on_delete(set) {
        return;
    }
    let lacks = count(set, &["status", "replicas"], 0) < count(set, &["spec", "replicas"], 1);
    let pods = pods(case, set, finding, Terminating::Counted);
    replace_by_hand(set, finding, pods);
    refused(case, set, finding, lacks);
    unseen(case, set, finding);
}

pub(super) fn daemon_set(case: &Assessor<'_>, set: &Object<'_>, finding: &mut Evaluation) {
    if finding.is_stale() || finding.is_current() && !is_on_delete(set) {
        return;
    }
    let wanted = count(set, &["status", "desiredNumberScheduled"], 0);
    let has = |key| count(set, &["status", key], 0) >= wanted;
    if finding.reason == "LessUpdated" && is_on_delete(set) && has("numberAvailable") && has("numberReady") {
        let text = "all Pods are available; those of the old template are replaced by hand";
        finding.turn(Status::Current, "", text, "evidence/on-delete");
    }
    let lacks = count(set, &["status", "currentNumberScheduled"], 0) < wanted;
    let mut pods = pods(case, set, finding, Terminating::Counted);
    let is_lost = |pod: &&Evaluation| pod.hard == Some(HardCause::NodeLost);
    // Its Pods stay on lost nodes, which maxUnavailable permits.
    if pods.iter().filter(is_lost).count() as i64 <= may_be_unavailable(set, wanted) {
        for pod in pods.iter_mut().filter(|pod| pod.hard == Some(HardCause::NodeLost)) {
            pod.hard = None;
        }
    }
    replace_by_hand(set, finding, pods);
    refused(case, set, finding, lacks);
    unseen(case, set, finding);
}

/// Sets a hard cause if events of `set` tell of refused Pods; only if `set` is in progress and lacks Pods (`lacks`),
/// and no Pod has a hard cause.
fn refused(case: &Assessor<'_>, set: &Object<'_>, finding: &mut Evaluation, lacks: bool) {
    if finding.hard.is_none() && lacks && finding.status() == Status::InProgress {
        let since = finding.since;
        if refusals::events(case, set, finding, since) {
            finding.below.clear();
        }
    }
}

/// Returns `maxUnavailable` of `set` as a number of Pods, 1 if it is absent or neither a number nor a percentage; a
/// percentage is of the `wanted` Pods, rounded up.
fn may_be_unavailable(set: &Object<'_>, wanted: i64) -> i64 {
    let Some(value) = set.at(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]) else {
        return 1;
    };
    let share = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<u32>().ok());
    match (value.as_i64(), share) {
        (Some(number), _) => number,
        (None, Some(share)) => wanted.max(0).saturating_mul(i64::from(share)).saturating_add(99) / 100,
        (None, None) => 1,
    }
}

fn is_on_delete(set: &Object<'_>) -> bool {
    set.at(&["spec", "updateStrategy", "type"]).is_some_and(|value| value.is_str("OnDelete"))
}

/// Follows the Pods of a set. kstatus calls a set with the update strategy OnDelete Current whatever its Pods do; here
/// a hard cause of a Pod makes it Failed.
fn replace_by_hand(set: &Object<'_>, finding: &mut Evaluation, mut pods: Vec<Evaluation>) {
    if finding.is_current() {
        pods.retain(|pod| pod.hard.is_some());
        if !pods.is_empty() && is_on_delete(set) {
            let text = "the Pods are replaced by hand, and not all of them run";
            finding.turn(Status::InProgress, "PodsFail", text, "evidence/on-delete");
        }
    }
    finding.follow(pods);
}

/// The treatment of Pods that are being deleted in the assessment of their workload.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Terminating {
    /// Ignored, because other Pods replace them.
    Left,
    /// Counted, because the workload replaces them only after they are gone.
    Counted,
}

/// Maximum age of a failed Pod that explains a missing Pod: controllers retry after at most 1,000 s.
const FAILED_RECENTLY: SignedDuration = SignedDuration::from_mins(20);

/// Returns the evaluations of a workload's Pods that are not well. Failed Pods count only if all active ones are well
/// and the workload is not Current, and then only the newest that failed recently and not before the workload ceased to
/// be well: controllers replace failed Pods.
pub(super) fn pods(
    case: &Assessor<'_>,
    owner: &Object<'_>,
    finding: &Evaluation,
    terminating: Terminating,
) -> Vec<Evaluation> {
    let pods = case.owned(owner, Some(POD));
    let (failed, active): (Vec<_>, Vec<_>) = pods
        .into_iter()
        .filter(|object| terminating == Terminating::Counted || !is_terminating(object))
        .partition(|object| pod::is_in_phase(object, "Failed") && !is_terminating(object));
    let examined = active.iter().filter_map(|object| case.examine(object));
    let unwell: Vec<_> = examined.filter(|pod| !pod.is_current()).collect();
    if !unwell.is_empty() || finding.is_current() {
        return unwell;
    }
    let is_recent = |at: Timestamp| case.is_within(at, FAILED_RECENTLY);
    let created = |object: &Object<'_>| time(object.at(&["metadata", "creationTimestamp"]));
    let failed = failed.iter().map(|object| (created(object), pod::failed(case, object)));
    let recent = failed.filter(|(_, pod)| pod.since.is_some_and(is_recent) && pod.since >= finding.since);
    let newest = recent.max_by_key(|(created, pod)| (pod.since, *created, Reverse(pod.name.clone())));
    newest.map(|(_, pod)| pod).into_iter().collect()
}

/// Adds a fact if the workload is not Current and its Pods, which could explain that, were not observed.
pub(super) fn unseen(case: &Assessor<'_>, workload: &Object<'_>, finding: &mut Evaluation) {
    if !finding.is_current() && !case.evidence.state().is_observed("", "Pod", Some(&workload.namespace())) {
        finding.fact(Cow::Borrowed("the Pods of the workload were not observed"));
    }
}
