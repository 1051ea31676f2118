//! Assesses Pods: containers, scheduling, volumes, nodes.

use jiff::{SignedDuration, Timestamp};
use taffrail_object::json::Value;
use taffrail_object::{Object, ObjectKey};

use crate::assess::assessor::{Assessor, Evaluation, HardCause, MAX_FOLLOWED, has_ended};
use crate::assess::edges::references;
use crate::assess::evidence::{claims, controller};
use crate::assess::storage;
use crate::event::{Event, time};
use crate::verdict::{Status, cut};

/// Maximum age of mount events that count. The kubelet repeats an event at least every five minutes, so older ones are
/// resolved.
const MOUNT_RECENT: SignedDuration = SignedDuration::from_mins(10);

/// Minimum number of mount failures that are a hard cause: the first ones occur while a volume is still being attached.
const MIN_MOUNT_FAILURES: i64 = 3;

/// Maximum age of an event that announces a new node: after this time a cluster autoscaler tries another node group.
const NODE_COMING: SignedDuration = SignedDuration::from_mins(15);

/// Minimum number of restarts that count as a crash loop.
const MIN_RESTARTS: i64 = 3;

/// Length of a run after which the kubelet resets its back-off.
const BACK_OFF_RESET: SignedDuration = SignedDuration::from_mins(10);

/// Maximum age of the last crash in a loop: the longest back-off is five minutes, and runs are short.
const CRASHED_RECENTLY: SignedDuration = SignedDuration::from_mins(10);

/// Age of a Pod below which kstatus does not call it unschedulable.
const SCHEDULING: SignedDuration = SignedDuration::from_secs(15);

/// Tolerance between the times of an out-of-memory kill and of the loss of readiness it causes: different clocks
/// record them.
const SAME_MOMENT: SignedDuration = SignedDuration::from_secs(60);

pub(super) fn examine(case: &Assessor<'_>, pod: &Object<'_>, finding: &mut Evaluation) {
    if is_in_phase(pod, "Failed") && finding.is_current() {
        if controller(pod).is_none() {
            *finding = failed(case, pod);
        }
        return;
    }
    if finding.is_current() || finding.is_stale() {
        return;
    }
    let since = finding.since.or_else(|| time(pod.at(&["metadata", "creationTimestamp"])));
    let node = node(case, pod);
    if let Some(node) = node.as_ref().filter(|node| node.hard.is_some()) {
        finding.say("NodeLost", "");
        finding.follow([node.clone()]);
        return;
    }
    if let Some(complaint) = container(case, pod, finding, since) {
        finding.harden(complaint.cause, &complaint.reason, complaint.text);
        name_missing(case, pod, finding);
        return;
    }
    if is_unschedulable(pod) {
        unschedulable(case, pod, finding, since);
        return;
    }
    if is_not_scheduled(pod) {
        say_what_scheduling_awaits(pod, finding);
        finding.follow(obstacles(case, &claims(pod)));
        return;
    }
    if !has_started(pod) {
        waiting_for_volumes(case, pod, finding, since);
    }
    if finding.below.is_empty() && finding.hard.is_none() {
        speak(case, pod, finding, since);
        if !has_started(pod) {
            name_missing(case, pod, finding);
        }
        finding.follow(node);
    }
}

pub(super) fn is_in_phase(pod: &Object<'_>, phase: &str) -> bool {
    pod.at(&["status", "phase"]).is_some_and(|value| value.is_str(phase))
}

/// Returns the evaluation of a Pod in the phase Failed: status Failed, with the Pod's own reason and message, else
/// those of the first container that failed.
pub(super) fn failed(case: &Assessor<'_>, pod: &Object<'_>) -> Evaluation {
    let mut finding = case.own_evaluation(pod);
    let said = pod.text(&["status", "message"]);
    let end =
        statuses(pod).filter_map(|status| Termination::of(status, "state")).find(Termination::is_failure);
    let (reason, text) = match (&*pod.text(&["status", "reason"]), &end) {
        ("", Some(end)) => (end.reason.clone(), end.text()),
        ("", None) => ("PodFailed".to_owned(), finding.text.clone()),
        (reason, _) => {
            (reason.to_owned(), if said.is_empty() { reason.to_owned() } else { said.into_owned() })
        }
    };
    finding.turn(Status::Failed, &reason, text, "evidence/pod-failed");
    let ready = super::since::transition(pod, "Ready", |status| status != "True");
    finding.since = ready.or(end.and_then(|end| end.at));
    finding
}

/// Iterates over the statuses of init containers (including sidecars) and containers.
fn statuses<'a>(pod: &Object<'a>) -> impl Iterator<Item = Value<'a>> + use<'a> {
    let lists = ["initContainerStatuses", "containerStatuses"].map(|key| pod.at(&["status", key]));
    lists.into_iter().flatten().filter_map(Value::items).flatten()
}

fn text(value: Value<'_>, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().into_owned()
}

/// The end of a container's run: exit code, reason, message and times.
struct Termination {
    container: String,
    code: i64,
    reason: String,
    message: String,
    /// Start time of the run; `None` if the kubelet does not report it.
    from: Option<Timestamp>,
    at: Option<Timestamp>,
}

impl Termination {
    /// Reads the end of a run from the member `state` (`state` or `lastState`) of a container status; `None` if it
    /// has none.
    fn of(status: Value<'_>, state: &str) -> Option<Termination> {
        let end = status.get(state)?.get("terminated").filter(|end| !end.is_null())?;
        Some(Termination {
            container: text(status, "name"),
            code: end.get("exitCode").and_then(Value::as_i64).unwrap_or(0),
            reason: text(end, "reason"),
            message: text(end, "message").trim().to_owned(),
            from: time(end.get("startedAt")),
            at: time(end.get("finishedAt")),
        })
    }

    fn is_failure(&self) -> bool {
        self.code != 0 || self.is_out_of_memory()
    }

    fn is_out_of_memory(&self) -> bool {
        self.reason == "OOMKilled"
    }

    fn text(&self) -> String {
        let Termination { container, code, reason, message, .. } = self;
        let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        format!("container {container} ended with exit code {code}{reason}{message}")
    }
}

/// A problem of a container: its cause, its reason and its message.
struct Complaint {
    cause: HardCause,
    reason: String,
    text: String,
}

/// Returns the hard cause of the first container that has one, `None` if none has. Adds those of others as facts, and
/// the failed runs of containers that are not ready or have a hard cause.
fn container(
    case: &Assessor<'_>,
    pod: &Object<'_>,
    finding: &mut Evaluation,
    since: Option<Timestamp>,
) -> Option<Complaint> {
    let mut first = None;
    for status in statuses(pod) {
        if !case.bill.charge(1) {
            break;
        }
        let ends = [Termination::of(status, "state"), Termination::of(status, "lastState")];
        let complaint = out_of_memory(status, &ends, since)
            .or_else(|| waiting(status))
            .or_else(|| crash_loop(case, pod, status, &ends, since));
        if complaint.is_some() || !status.get("ready").and_then(Value::as_bool).unwrap_or(false) {
            for end in ends.iter().flatten().filter(|end| end.is_failure()) {
                finding.fact(end.text());
            }
        }
        match (complaint, &first) {
            (Some(complaint), None) => first = Some(complaint),
            (Some(complaint), Some(_)) => {
                finding.fact(format!("container {}: {}", text(status, "name"), complaint.text));
            }
            (None, _) => {}
        }
    }
    first
}

fn waiting(status: Value<'_>) -> Option<Complaint> {
    let waiting = status.get("state")?.get("waiting")?;
    let reason = text(waiting, "reason");
    let cause = match &*reason {
        "ImagePullBackOff"
        | "ErrImagePull"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "ImageInspectError"
        | "SignatureValidationFailed" => HardCause::ImagePull,
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
            HardCause::Configuration
        }
        "CrashLoopBackOff" => HardCause::Crash,
        _ => return None,
    };
    let said = text(waiting, "message");
    let words =
        if said.trim().is_empty() { format!("container {}: {reason}", text(status, "name")) } else { said };
    Some(Complaint { cause, reason, text: words })
}

/// Returns the complaint about a crash loop between two crashes: the container runs, or has just ended, and will crash
/// again. Returns `None` if it is ready or restarted less than [`MIN_RESTARTS`] times, if its last run did not fail or
/// lasted [`BACK_OFF_RESET`], or if that run ended, and the last `BackOff` event happened, longer than
/// [`CRASHED_RECENTLY`] ago.
///
/// The restart count covers the Pod's whole life, so it alone proves nothing.
fn crash_loop(
    case: &Assessor<'_>,
    pod: &Object<'_>,
    status: Value<'_>,
    ends: &[Option<Termination>; 2],
    since: Option<Timestamp>,
) -> Option<Complaint> {
    let is_ready = status.get("ready").and_then(Value::as_bool) == Some(true);
    let restarts = status.get("restartCount").and_then(Value::as_i64).unwrap_or(0);
    let latest = ends.iter().flatten().next().filter(|end| end.is_failure())?;
    let run = latest.at?.duration_since(latest.from?);
    if is_ready || restarts < MIN_RESTARTS || run >= BACK_OFF_RESET {
        return None;
    }
    let is_recent = latest.at.is_some_and(|at| case.is_within(at, CRASHED_RECENTLY));
    let backs_off = || {
        let says_so = |event: &Event<'_>| {
            event.reason == "BackOff"
                && event.message.contains("restarting")
                && case.is_recent(event, CRASHED_RECENTLY)
        };
        case.warnings(pod, since).iter().any(says_so)
    };
    if !is_recent && !backs_off() {
        return None;
    }
    let text = format!("{}, {restarts} restarts", latest.text());
    Some(Complaint { cause: HardCause::Crash, reason: "CrashLoop".to_owned(), text })
}

/// Returns the complaint about a container that was killed out of memory at least twice, as far as its last two runs
/// and its restart count tell, and whose latest run ended so; `None` if there is none, or that run ended more than
/// [`SAME_MOMENT`] before `since`, when the Pod ceased to be well.
fn out_of_memory(
    status: Value<'_>,
    ends: &[Option<Termination>; 2],
    since: Option<Timestamp>,
) -> Option<Complaint> {
    let latest = ends.iter().flatten().next().filter(|end| end.is_out_of_memory())?;
    let is_over = since.zip(latest.at).is_some_and(|(since, at)| since.duration_since(at) > SAME_MOMENT);
    let restarts = status.get("restartCount").and_then(Value::as_i64).unwrap_or(0);
    let ended = restarts.saturating_add(i64::from(ends[0].is_some()));
    let other_ends = ends.iter().flatten().filter(|end| !end.is_out_of_memory()).count() as i64;
    if is_over || ended.saturating_sub(other_ends) < 2 {
        return None;
    }
    let backing_off = waiting(status).map(|complaint| format!("; {}", complaint.text)).unwrap_or_default();
    Some(Complaint {
        cause: HardCause::OutOfMemory,
        reason: "OOMKilled".to_owned(),
        text: format!(
            "container {} was OOMKilled (exit code {}), {restarts} restarts{backing_off}",
            latest.container, latest.code
        ),
    })
}

/// Returns true if a container of the Pod runs or ran, which proves that its volumes were mounted.
fn has_started(pod: &Object<'_>) -> bool {
    statuses(pod).any(|status| {
        let is_in = |state: &str, kind: &str| {
            status.get(state).and_then(|state| state.get(kind)).is_some_and(|value| !value.is_null())
        };
        is_in("state", "running") || is_in("state", "terminated") || is_in("lastState", "terminated")
    })
}

fn is_unschedulable(pod: &Object<'_>) -> bool {
    pod.condition("PodScheduled").is_some_and(|condition| {
        let has = |key, value| condition.get(key).is_some_and(|own: Value<'_>| own.is_str(value));
        has("status", "False") && has("reason", "Unschedulable")
    })
}

fn unschedulable(case: &Assessor<'_>, pod: &Object<'_>, finding: &mut Evaluation, since: Option<Timestamp>) {
    let said = pod.condition("PodScheduled").map(|condition| text(condition, "message")).unwrap_or_default();
    finding.say("Unschedulable", said);
    let is_due = case.age(pod, SCHEDULING).is_none_or(|age| age >= SCHEDULING);
    if is_due || finding.status() == Status::Failed {
        match coming(case, pod, since) {
            Some((reason, said)) => {
                let waits = format!("{}; {said}", finding.text);
                let since = finding.since;
                finding.turn(Status::InProgress, reason, waits, "evidence/scale-up");
                finding.since = since;
            }
            None => finding.harden(HardCause::Unschedulable, "Unschedulable", ""),
        }
    }
    finding.follow(obstacles(case, &claims(pod)));
    if finding.below.is_empty() {
        name_missing(case, pod, finding);
    }
}

/// Returns the expected relief for a Pod that fits no node yet, as reason and message: a new node, or a preemption.
/// `None` if none is expected.
fn coming(case: &Assessor<'_>, pod: &Object<'_>, since: Option<Timestamp>) -> Option<(&'static str, String)> {
    let events = case.events(pod, since);
    let is_recent = |event: &&Event<'_>| case.is_recent(event, NODE_COMING);
    // The latest event of the cluster autoscaler counts.
    let word = events.iter().find(|event| {
        matches!(
            &*event.reason,
            "TriggeredScaleUp" | "NotTriggerScaleUp" | "FailedScaleUp" | "ScaleUpTimedOut"
        )
    });
    if let Some(event) = word.filter(|event| event.reason == "TriggeredScaleUp").filter(is_recent) {
        return Some(("TriggeredScaleUp", format!("a node is coming: {}", event.message)));
    }
    if let Some(event) = events.iter().find(|event| event.reason == "Nominated").filter(is_recent) {
        return Some(("Nominated", format!("a node is coming: {}", event.message)));
    }
    let node = pod.text(&["status", "nominatedNodeName"]);
    let unscheduled =
        pod.condition("PodScheduled").and_then(|condition| time(condition.get("lastTransitionTime")));
    let unscheduled = unscheduled.or_else(|| time(pod.at(&["metadata", "creationTimestamp"])));
    // No field says since when the node is nominated, and a tenant may delete Pods there one after another.
    if node.is_empty() || !unscheduled.is_some_and(|at| case.is_within(at, MAX_GRACE)) {
        return None;
    }
    let is_leaving = |other: &Object<'_>| {
        let end = grace_ends(other);
        end.is_some_and(|end| case.is_within(end, SignedDuration::ZERO))
            && other.text(&["spec", "nodeName"]) == node
            && is_preempted(other)
            && priority(other) < priority(pod)
    };
    let ending = case.evidence.terminating_on(&node).take(MAX_FOLLOWED);
    let leaving = ending.filter(is_leaving).map(|other| ObjectKey::of(&other)).min()?;
    let text = format!("Pod {}/{} makes room on node {node}", leaving.namespace, leaving.name);
    Some(("Preempting", text))
}

/// Maximum time after a Pod was found to fit no node during which it counts as waiting for Pods that it preempts. A
/// grace period of those Pods counts as no longer than this.
const MAX_GRACE: SignedDuration = SignedDuration::from_mins(10);

/// Returns `spec.priority` of a Pod, which admission writes; 0 if it has none. The scheduler preempts only Pods of a
/// lower priority. The author of a Pod writes its conditions, but cannot exceed the PriorityClasses.
fn priority(pod: &Object<'_>) -> i64 {
    pod.at(&["spec", "priority"]).and_then(Value::as_i64).unwrap_or(0)
}

/// Returns the end of a terminating Pod's grace period, as if the period were at most [`MAX_GRACE`]; `None` if the Pod
/// is not being deleted.
fn grace_ends(pod: &Object<'_>) -> Option<Timestamp> {
    let end = time(pod.at(&["metadata", "deletionTimestamp"]))?;
    let grace = pod.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    let longer = SignedDuration::from_secs(grace.max(0)).saturating_sub(MAX_GRACE);
    end.checked_sub(longer.max(SignedDuration::ZERO)).ok()
}

/// Returns true if the scheduler deletes this Pod to make room for another one, by its condition `DisruptionTarget`.
fn is_preempted(pod: &Object<'_>) -> bool {
    pod.condition("DisruptionTarget").is_some_and(|condition| {
        condition.get("status").is_some_and(|status| status.is_str("True"))
            && text(condition, "reason") == "PreemptionByScheduler"
    })
}

/// Returns true if the condition `PodScheduled` of a Pod without a node is False, such as by a scheduling gate. The
/// caller has excluded Pods that fit no node.
fn is_not_scheduled(pod: &Object<'_>) -> bool {
    pod.text(&["spec", "nodeName"]).is_empty() && pod.condition_is("PodScheduled", "False")
}

fn say_what_scheduling_awaits(pod: &Object<'_>, finding: &mut Evaluation) {
    let said = |key| pod.condition("PodScheduled").map(|condition| text(condition, key)).unwrap_or_default();
    let (reason, mut message) = (said("reason"), cut(said("message")).into_owned());
    let gates = pod.at(&["spec", "schedulingGates"]).and_then(Value::items).into_iter().flatten();
    let gates: Vec<_> = gates.map(|gate| text(gate, "name")).filter(|name| !name.is_empty()).collect();
    if !gates.is_empty() && !gates.iter().all(|gate| message.contains(gate.as_str())) {
        let before = if message.trim().is_empty() { String::new() } else { format!("{message}; ") };
        message = format!("{before}the Pod waits for scheduling gates: {}", gates.join(", "));
    }
    finding.say(&reason, message);
}

fn waiting_for_volumes(
    case: &Assessor<'_>,
    pod: &Object<'_>,
    finding: &mut Evaluation,
    since: Option<Timestamp>,
) {
    let mut failures = case.warnings(pod, since);
    failures.retain(|event| matches!(&*event.reason, "FailedMount" | "FailedAttachVolume"));
    let is_attached_elsewhere = |event: &Event<'_>| event.message.contains("Multi-Attach error");
    let claims = claims(pod);
    // The attachment elsewhere is reported once, its consequences again and again.
    if let Some(said) = failures.iter().find(|event| is_attached_elsewhere(event)).or(failures.first()) {
        let recent = failures.iter().filter(|event| case.is_recent(event, MOUNT_RECENT));
        if recent.fold(0_i64, |sum, event| sum.saturating_add(event.count)) >= MIN_MOUNT_FAILURES {
            finding.harden(HardCause::Volume, &said.reason, &*said.message);
        } else {
            finding.say(&said.reason, &*said.message);
        }
        for event in &failures {
            finding.fact(format!("{} ({}×): {}", event.reason, event.count, event.message));
        }
        if is_attached_elsewhere(said)
            && let Some(other) = holder(case, pod, &claims)
        {
            if other.hard == Some(HardCause::NodeLost) {
                let text = finding.text.clone();
                finding.harden(HardCause::NodeLost, "", text);
            }
            finding.held_by(other, "uses the volume on another node");
            return;
        }
        name_missing(case, pod, finding);
    }
    finding.follow(obstacles(case, &claims));
}

/// Returns the evaluations of a Pod's `claims` that exist, without those that only wait for this Pod to be scheduled.
fn obstacles(case: &Assessor<'_>, claims: &[ObjectKey]) -> impl Iterator<Item = Evaluation> + use<> {
    let claims = case.examine_named(&case.allowed(claims.to_vec())).into_iter();
    claims.filter(|claim| claim.reason != storage::WAITS_FOR_CONSUMER)
}

/// Returns the evaluation of the worst unfinished Pod on another node that uses one of the claims of `pod` and so keeps
/// the volume attached there; `None` if there is none.
fn holder(case: &Assessor<'_>, pod: &Object<'_>, claims_of_pod: &[ObjectKey]) -> Option<Evaluation> {
    let node = pod.text(&["spec", "nodeName"]);
    let users = claims_of_pod.iter().flat_map(|claim| case.users(&claim.namespace, &claim.name));
    let others = users.filter(|other| {
        let other_node = other.text(&["spec", "nodeName"]);
        other.name() != pod.name() && !other_node.is_empty() && other_node != node
    });
    let findings = others.filter(|other| !has_ended(other)).filter_map(|other| case.examine(&other));
    findings.min_by_key(|other| (other.status(), other.since.unwrap_or(Timestamp::MAX), other.name.clone()))
}

/// Returns the evaluation of the Pod's node; `None` if the node is well or was not read, or the Pod has none.
pub(super) fn node(case: &Assessor<'_>, pod: &Object<'_>) -> Option<Evaluation> {
    let name = pod.text(&["spec", "nodeName"]);
    if name.is_empty() {
        return None;
    }
    let node = case.get(&ObjectKey::new("", "Node", "", name)).present()?;
    case.examine(&node).filter(|node| !node.is_current())
}

/// Sets the reason and message of a Pod without a hard cause: those of its newest warning about a probe, else of its
/// newest warning, else of its condition Ready. Adds all warnings as facts.
fn speak(case: &Assessor<'_>, pod: &Object<'_>, finding: &mut Evaluation, since: Option<Timestamp>) {
    let warnings = case.warnings(pod, since);
    let probe = warnings.iter().find(|event| event.reason == "Unhealthy");
    if let Some(event) = probe.or(warnings.first()) {
        finding.say(&event.reason, &*event.message);
    } else if let Some(ready) = pod.condition("Ready") {
        finding.say(&text(ready, "reason"), text(ready, "message"));
    }
    for event in &warnings {
        finding.fact(format!("{} ({}×): {}", event.reason, event.count, event.message));
    }
}

/// Adds, as facts, the objects that the Pod requires and that do not exist; also to the message, if they may explain
/// the problem. Leaves out its Node, `kube-root-ca.crt` and the ServiceAccount `default`.
fn name_missing(case: &Assessor<'_>, pod: &Object<'_>, finding: &mut Evaluation) {
    for reference in references(pod).into_iter().filter(|reference| !reference.optional) {
        let ObjectKey { kind, name, .. } = &reference.to;
        // Every Pod mounts that one; dumps often leave it out.
        if kind == "Node" || name == "kube-root-ca.crt" || (kind == "ServiceAccount" && name == "default") {
            continue;
        }
        if case.is_missing(&reference.to) {
            let missing = format!("{kind} {}/{name} does not exist", reference.to.namespace);
            // Pods cannot be created without their account, and image errors and crashes have other causes.
            let is_else = matches!(
                finding.hard,
                Some(
                    HardCause::ImagePull
                        | HardCause::Crash
                        | HardCause::OutOfMemory
                        | HardCause::Unschedulable
                )
            );
            if kind != "ServiceAccount" && !is_else && !finding.text.contains(name.as_str()) {
                let text = format!("{}; {missing}", finding.text);
                finding.say("", text);
            }
            finding.fact(missing);
        }
    }
}
