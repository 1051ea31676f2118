//! Tests of the effect of Pods on the status of their workload.

use taffrail_object::Object;
use taffrail_status::assess::assess_dependent;
use taffrail_status::{ActiveRules, Status};

use super::{ROLLING, all, check, dump, event, now, pod, pod_of, read};

const CAUSE: &str = " < /Pod/shop/web-2-a";

/// Returns the YAML of a Deployment in a rollout, whose new Pod has the members `rest`.
fn rolling(rest: &str) -> String {
    all(&[ROLLING, &pod_of("ReplicaSet/web-2", "web-2-a", rest)])
}

fn waiting(list: &str, reason: &str) -> String {
    format!(
        "status: {{phase: Pending, {list}: [{{name: app, restartCount: 0, state: {{waiting: {{reason: {reason}, message: it says why}}}}}}]}}"
    )
}

#[test]
fn permanent_pod_errors_are_hard_causes() {
    for list in ["containerStatuses", "initContainerStatuses"] {
        for reason in [
            "ImagePullBackOff",
            "ErrImagePull",
            "InvalidImageName",
            "CreateContainerConfigError",
            "CreateContainerError",
            "CrashLoopBackOff",
            "ErrImageNeverPull",
            "ImageInspectError",
            "SignatureValidationFailed",
            "RunContainerError",
        ] {
            check(&rolling(&waiting(list, reason)), &format!("Failed{CAUSE}: it says why"));
        }
        for reason in ["ContainerCreating", "PodInitializing", "Anything"] {
            check(&rolling(&waiting(list, reason)), &format!("InProgress{CAUSE}"));
        }
    }
    check(&pod("web", &waiting("containerStatuses", "ErrImagePull")), "Failed < /Pod/shop/web: it says why");
    check(&rolling(&waiting("ephemeralContainerStatuses", "ImagePullBackOff")), "InProgress");
}

#[test]
fn container_without_message_is_named() {
    let rest = "status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff}}}]}";
    check(&rolling(rest), &format!("Failed{CAUSE}: container app: CrashLoopBackOff"));
}

#[test]
fn a_second_kill_for_memory_is_a_hard_cause_and_the_first_is_not() {
    let killed = |state: &str, last: &str, restarts: u32| {
        rolling(&format!(
            r#"status: {{phase: Running, conditions: [{{type: Ready, status: "False", lastTransitionTime: "2026-03-01T11:55:00Z"}}],
                containerStatuses: [{{name: app, ready: false, restartCount: {restarts}, state: {state}, lastState: {last}}}]}}"#
        ))
    };
    let running = "{running: {}}";
    let end = |reason: &str, at: &str| {
        format!(r#"{{terminated: {{exitCode: 137, reason: {reason}, finishedAt: "2026-03-01T{at}Z"}}}}"#)
    };
    let out_of_memory = end("OOMKilled", "11:55:00");
    check(&killed(running, &out_of_memory, 1), &format!("InProgress{CAUSE}"));
    check(&killed(running, &out_of_memory, 2), &format!("Failed{CAUSE}: OOMKilled"));
    check(&killed(&out_of_memory, "{}", 0), &format!("InProgress{CAUSE}"));
    check(&killed(&out_of_memory, &out_of_memory, 1), &format!("Failed{CAUSE}: OOMKilled"));
    // One of the two ends that can be seen had another reason.
    check(&killed(&out_of_memory, &end("Error", "11:54:00"), 1), &format!("InProgress{CAUSE}"));
    // The kills were days ago; now it is a probe that fails.
    check(&killed(running, &end("OOMKilled", "09:00:00"), 7), &format!("InProgress{CAUSE}"));
}

#[test]
fn unscheduled_pod_is_in_progress_for_fifteen_seconds() {
    let at = |second: u32| {
        let pod = pod_of(
            "ReplicaSet/web-2",
            "web-2-a",
            r#"status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes}]}"#,
        );
        all(&[ROLLING, &pod.replace("11:50:00", &format!("11:59:{second}"))])
    };
    check(&at(46), &format!("InProgress{CAUSE}: 0/3 nodes"));
    check(&at(44), &format!("Failed{CAUSE}: 0/3 nodes"));
    check(&at(44).replace("reason: Unschedulable", "reason: SchedulingGated"), &format!("InProgress{CAUSE}"));
}

#[test]
fn scale_up_keeps_a_pod_in_progress() {
    let pod = pod_of(
        "ReplicaSet/web-2",
        "web-2-a",
        r#"status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes}]}"#,
    );
    let with = |events: &[String]| {
        let events: Vec<_> = events.iter().map(String::as_str).collect();
        all(&[&[ROLLING, &pod], &events[..]].concat())
    };
    let scaling =
        |reason: &str, last: &str| event("Pod/web-2-a", "Normal", reason, 1, last, "pod triggered scale-up");
    check(&with(&[scaling("TriggeredScaleUp", "11:58:00")]), &format!("InProgress{CAUSE}: 0/3 nodes"));
    check(&with(&[scaling("NotTriggerScaleUp", "11:58:00")]), &format!("Failed{CAUSE}"));
    let changed = [scaling("TriggeredScaleUp", "11:52:00"), scaling("NotTriggerScaleUp", "11:58:00")];
    check(&with(&changed), &format!("Failed{CAUSE}"));
    let old = pod.replace("2026-03-01T11:50:00Z", "2026-03-01T10:00:00Z");
    let late = all(&[ROLLING, &old, &scaling("TriggeredScaleUp", "11:30:00")]);
    check(&late, &format!("Failed{CAUSE}"));
    // Karpenter names the node that it makes, whatever another autoscaler says.
    check(&with(&[scaling("Nominated", "11:58:00")]), &format!("InProgress{CAUSE}: a node is coming"));
    let both = [scaling("Nominated", "11:52:00"), scaling("NotTriggerScaleUp", "11:58:00")];
    check(&with(&both), &format!("InProgress{CAUSE}: a node is coming"));
    let late = all(&[ROLLING, &old, &scaling("Nominated", "11:30:00")]);
    check(&late, &format!("Failed{CAUSE}"));
    // What was before this Pod is about another one of that name.
    check(&with(&[scaling("TriggeredScaleUp", "11:49:00")]), &format!("Failed{CAUSE}"));
}

const CREATING: &str = "
spec: {nodeName: node-1}
status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}";

#[test]
fn a_volume_fails_three_times_before_it_is_a_hard_cause() {
    let with = |reason: &str, count: u32, last: &str| {
        let event = event("Pod/web-2-a", "Warning", reason, count, last, "the volume says why");
        all(&[&rolling(CREATING), &event])
    };
    for reason in ["FailedMount", "FailedAttachVolume"] {
        check(&with(reason, 2, "11:59:00"), &format!("InProgress{CAUSE}: the volume says why"));
        check(&with(reason, 3, "11:59:00"), &format!("Failed{CAUSE}: the volume says why"));
    }
    check(
        &with("FailedCreatePodSandBox", 30, "11:59:00"),
        &format!("InProgress{CAUSE}: the volume says why"),
    );
    let old = with("FailedMount", 9, "11:20:00").replace("2026-03-01T11:50:00Z", "2026-03-01T10:00:00Z");
    check(&old, &format!("InProgress{CAUSE}"));
    // The volume is there: the container runs, and a probe fails.
    let mounted =
        with("FailedMount", 9, "11:59:00").replace("waiting: {reason: ContainerCreating}", "running: {}");
    check(&mounted.replace("phase: Pending", "phase: Running"), &format!("InProgress{CAUSE}"));
}

#[test]
fn three_events_that_came_once_each_count_as_three() {
    let once = |at: &str| {
        let event = event("Pod/web-2-a", "Warning", "FailedMount", 1, at, "timed out");
        event.replace("web-2-a.FailedMount.1", &format!("web-2-a.{}", at.replace(':', "")))
    };
    let two = all(&[&rolling(CREATING), &once("11:58:00"), &once("11:59:00")]);
    check(&two, &format!("InProgress{CAUSE}"));
    check(&all(&[&two, &once("11:57:00")]), &format!("Failed{CAUSE}: timed out"));
    // The same event served by the other API group is not a third one.
    let other = once("11:59:00")
        .replace("apiVersion: v1", "apiVersion: events.k8s.io/v1")
        .replace("involvedObject", "regarding");
    check(&all(&[&two, &other]), &format!("InProgress{CAUSE}"));
}

#[test]
fn volume_attached_elsewhere_chain_ends_at_its_pod() {
    let claim = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]";
    let waiting = CREATING.replace("nodeName: node-1", &format!("nodeName: node-1, {claim}"));
    let message = "Multi-Attach error for volume \"pv\" Volume is already used by pod(s) web-1-a";
    let holder = |status: &str| {
        pod_of(
            "ReplicaSet/web-1",
            "web-1-a",
            &format!("spec: {{nodeName: node-2, {claim}}}\nstatus: {status}"),
        )
    };
    let ready = r#"{phase: Running, conditions: [{type: Ready, status: "True"}]}"#;
    let event = |count| event("Pod/web-2-a", "Warning", "FailedAttachVolume", count, "11:59:00", message);
    let cause = format!(" < /Pod/shop/web-1-a: {message}");
    check(&all(&[&rolling(&waiting), &holder(ready), &event(1)]), &format!("InProgress{cause}"));
    check(&all(&[&rolling(&waiting), &holder(ready), &event(3)]), &format!("Failed{cause}"));
    // Attached elsewhere is said once; that the mount times out follows, again and again.
    let said = event(1).replace("11:59:00", "11:50:05");
    let timeouts = super::event("Pod/web-2-a", "Warning", "FailedMount", 4, "11:59:00", "timed out waiting");
    let older = all(&[&rolling(&waiting), &holder(ready), &said, &timeouts])
        .replace("2026-03-01T11:50", "2026-03-01T11:40");
    check(&older, &format!("Failed{cause}"));
    check(&all(&[&rolling(&waiting), &holder("{phase: Succeeded}"), &event(3)]), &format!("Failed{CAUSE}"));
    let lost = r#"{phase: Running, conditions: [{type: Ready, status: "False"}]}"#;
    let parts = [&rolling(&waiting), &holder(lost), &event(1), &node("node-2", "Unknown")];
    check(&all(&parts.map(String::as_str)), "Failed < /Node//node-2: Kubelet");
}

fn node(name: &str, ready: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Node
metadata: {{name: {name}}}
status: {{conditions: [{{type: Ready, status: "{ready}", reason: NodeStatusUnknown, message: Kubelet stopped, lastTransitionTime: "2026-03-01T11:58:00Z"}}]}}
"#
    )
}

const UNREADY: &str = r#"
spec: {nodeName: node-1}
status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-03-01T11:58:00Z"}],
  containerStatuses: [{name: app, state: {running: {}}}]}"#;

#[test]
fn a_lost_node_is_a_hard_cause_and_one_that_is_not_ready_is_not() {
    check(&all(&[&rolling(UNREADY), &node("node-1", "Unknown")]), "Failed < /Node//node-1: Kubelet stopped");
    check(
        &all(&[&rolling(UNREADY), &node("node-1", "False")]),
        "InProgress < /Node//node-1: Kubelet stopped",
    );
    check(&all(&[&rolling(UNREADY), &node("node-1", "True")]), &format!("InProgress{CAUSE}"));
    check(&all(&[&rolling(UNREADY), &node("node-9", "Unknown")]), &format!("InProgress{CAUSE}"));
    // A taint is taken back a little later than the kubelet speaks again.
    let tainted = node("node-1", "False")
        + "spec: {taints: [{key: node.kubernetes.io/unreachable, effect: NoExecute}]}";
    check(&all(&[&rolling(UNREADY), &tainted]), "InProgress < /Node//node-1");
}

#[test]
fn failing_probe_is_reported_without_a_hard_cause() {
    let event = |last| event("Pod/web-2-a", "Warning", "Unhealthy", 40, last, "Readiness probe failed: 503");
    check(
        &all(&[&rolling(UNREADY), &event("11:59:30")]),
        &format!("InProgress{CAUSE}: Readiness probe failed: 503"),
    );
    // Before the Pod was ready for the last time.
    check(&all(&[&rolling(UNREADY), &event("11:51:00")]), &format!("InProgress{CAUSE}: Pod is running"));
    let past = all(&[&rolling(UNREADY), &event("11:59:30")])
        .replace("reason: ReplicaSetUpdated", "reason: ProgressDeadlineExceeded");
    check(&past, &format!("Failed{CAUSE}: Readiness probe failed: 503"));
}

#[test]
fn events_about_an_earlier_pod_of_the_name_are_not_about_this_one() {
    let event = event("Pod/web-2-a", "Warning", "Unhealthy", 40, "11:59:30", "of another");
    let other = event.replace("name: web-2-a}", "name: web-2-a, uid: u-other}");
    check(&all(&[&rolling(UNREADY), &other]), &format!("InProgress{CAUSE}: Pod is running"));
    let own = event.replace("name: web-2-a}", "name: web-2-a, uid: u-web-2-a}");
    check(&all(&[&rolling(UNREADY), &own]), &format!("InProgress{CAUSE}: of another"));
}

#[test]
fn missing_references_of_a_pod_are_named() {
    let spec = |optional: bool| {
        format!(
            "spec: {{nodeName: node-1, volumes: [{{name: a, secret: {{secretName: web-tls, optional: {optional}}}}}], containers: [\
             {{name: app, envFrom: [{{configMapRef: {{name: web-env}}}}]}}]}}"
        )
    };
    let creating = |optional| CREATING.replace("spec: {nodeName: node-1}", &spec(optional));
    let others = "{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: shop}}\n---\n\
                  {apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: shop}}";
    check(
        &all(&[&rolling(&creating(false)), others]),
        &format!("InProgress{CAUSE}: Secret shop/web-tls does not exist"),
    );
    // Who dumped none at all has left them out.
    check(&rolling(&creating(false)), &format!("InProgress{CAUSE}: Pod is in the Pending phase"));
    let settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web-env, namespace: shop}}";
    check(
        &all(&[&rolling(&creating(true)), settings]),
        &format!("InProgress{CAUSE}: Pod is in the Pending phase"),
    );
    check(
        &all(&[&rolling(&creating(true)), others]),
        &format!("InProgress{CAUSE}: ConfigMap shop/web-env does not exist"),
    );
}

#[test]
fn failed_pod_counts_only_without_an_owner() {
    let failed = "status: {phase: Failed, reason: Evicted, message: The node was low on memory}";
    check(&pod("web", failed), "Failed < /Pod/shop/web: The node was low on memory");
    check(&pod_of("ReplicaSet/web-2", "web", failed), "Current");
    check(&pod("web", "status: {phase: Succeeded}"), "Current");
}

#[test]
fn failed_dependent_pod_shows_as_failed() {
    let shown = |phase: &str| {
        let rest =
            format!("status: {{phase: {phase}, reason: Evicted, message: The node was low on memory}}");
        let objects = read(&pod_of("ReplicaSet/web-2", "gone", &rest));
        let pod = Object::new((&objects[0]).into()).unwrap();
        let told = assess_dependent(&pod, &dump(&objects), &ActiveRules::default(), now());
        (told.verdict.status, told.message)
    };
    assert_eq!(shown("Failed"), (Status::Failed, "The node was low on memory".to_owned()));
    assert_eq!(shown("Succeeded").0, Status::Current);
}

/// Returns the YAML of a Deployment whose Pod has a container that crashed: its state now, its restarts so far, and
/// exit code, start and end of its last run.
fn crashed(state: &str, ready: bool, restarts: u32, code: u32, from: &str, to: &str) -> String {
    let last = format!(
        r#"{{terminated: {{exitCode: {code}, reason: Error, startedAt: "2026-03-01T{from}Z", finishedAt: "2026-03-01T{to}Z"}}}}"#
    );
    rolling(&format!(
        r#"status: {{phase: Running, conditions: [{{type: Ready, status: "False", lastTransitionTime: "2026-03-01T11:50:10Z"}}],
            containerStatuses: [{{name: app, ready: {ready}, restartCount: {restarts}, state: {state}, lastState: {last}}}]}}"#
    ))
}

#[test]
fn crash_loop_is_detected_between_crashes() {
    let failed = format!("Failed{CAUSE}: container app ended with exit code 1 (Error), ");
    let in_progress = format!("InProgress{CAUSE}");
    let running = "{running: {}}";
    check(&crashed(running, false, 3, 1, "11:57:00", "11:58:00"), &failed);
    check(&crashed(running, false, 2, 1, "11:57:00", "11:58:00"), &in_progress);
    check(&crashed(running, true, 3, 1, "11:57:00", "11:58:00"), &in_progress);
    check(&crashed(running, false, 3, 0, "11:57:00", "11:58:00"), &in_progress);
    // One crash of what ran for long, with old restarts.
    check(&crashed(running, false, 40, 1, "11:48:00", "11:58:00"), &in_progress);
    check(&crashed(running, false, 40, 1, "11:48:01", "11:58:00"), &failed);
    // The loop is over: it has run for more than ten minutes, and is not ready for another reason.
    let long_ago = crashed(running, false, 9, 1, "11:48:00", "11:49:59");
    check(&long_ago, &in_progress);
    let backs_off = |message: &str| event("Pod/web-2-a", "Warning", "BackOff", 9, "11:52:00", message);
    let restarting = backs_off("Back-off restarting failed container app in pod web-2-a");
    check(&all(&[&long_ago, &restarting]), &failed);
    check(&all(&[&long_ago, &backs_off("Back-off pulling image")]), &in_progress);
    // At the moment of a crash.
    let end = r#"{terminated: {exitCode: 1, reason: Error, startedAt: "2026-03-01T11:59:00Z", finishedAt: "2026-03-01T11:59:50Z"}}"#;
    check(&crashed(end, false, 3, 1, "11:57:00", "11:58:00"), &failed);
    let endless = crashed(running, false, 3, 1, "11:57:00", "11:58:00").replace("startedAt", "begun");
    check(&endless, &in_progress);
    let init = crashed(running, false, 3, 1, "11:57:00", "11:58:00")
        .replace("containerStatuses", "initContainerStatuses");
    check(&init, &failed);
}

#[test]
fn preemption_keeps_a_pod_in_progress_for_the_grace_period() {
    let waiting = pod_of(
        "ReplicaSet/web-2",
        "web-2-a",
        r#"spec: {priority: 1000}
status: {phase: Pending, nominatedNodeName: node-1, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes}]}"#,
    );
    let leaving = |node: &str, until: &str, reason: &str| {
        format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{name: low, namespace: batch, uid: u-low, deletionTimestamp: "2026-03-01T{until}Z", deletionGracePeriodSeconds: 30}}
spec: {{nodeName: {node}}}
status: {{phase: Running, conditions: [{{type: DisruptionTarget, status: "True", reason: {reason}}}]}}
"#
        )
    };
    let with = |other: &str| all(&[ROLLING, &waiting, other]);
    let preempted = "PreemptionByScheduler";
    let room = format!("InProgress{CAUSE}: Pod batch/low makes room on node node-1");
    check(&with(&leaving("node-1", "12:00:00", preempted)), &room);
    check(&with(&leaving("node-1", "11:59:59", preempted)), &format!("Failed{CAUSE}"));
    check(&with(&leaving("node-2", "12:00:10", preempted)), &format!("Failed{CAUSE}"));
    check(&with(&leaving("node-1", "12:00:10", "EvictionByEvictionAPI")), &format!("Failed{CAUSE}"));
    // Anybody may delete a Pod of their own there, and give it any grace.
    let other = leaving("node-1", "12:00:10", preempted).replace("DisruptionTarget", "Other");
    check(&with(&other), &format!("Failed{CAUSE}"));
    let endless = |began: &str| {
        let one = leaving("node-1", began, preempted)
            .replace("GracePeriodSeconds: 30", "GracePeriodSeconds: 1000000000");
        one.replace(&format!("2026-03-01T{began}Z"), &format!("2057-11-07T{began}Z"))
    };
    // 1,000,000,000 s before 2057-11-07T13:43:00Z it was 11:56:20.
    check(&with(&endless("13:43:00")), &room);
    check(&with(&endless("13:36:00")), &format!("Failed{CAUSE}"));
    // The scheduler preempts no Pod of the same priority, whatever its condition says.
    let leaving = leaving("node-1", "12:00:10", preempted);
    for (priority, status) in [(999, &room), (1000, &format!("Failed{CAUSE}"))] {
        let low = leaving.replace("nodeName: node-1", &format!("nodeName: node-1, priority: {priority}"));
        check(&with(&low), status);
    }
    // Pods that make room one after another keep no Pod waiting for hours.
    for (since, status) in [("11:50:00", &room), ("11:49:59", &format!("Failed{CAUSE}"))] {
        let time = format!("reason: Unschedulable, lastTransitionTime: '2026-03-01T{since}Z'");
        check(&with(&leaving).replace("reason: Unschedulable", &time), status);
    }
}

#[test]
fn scheduling_gates_are_reported() {
    let unscheduled = |reason: &str, message: &str, spec: &str| {
        rolling(&format!(
            r#"{spec}
status: {{phase: Pending, conditions: [{{type: PodScheduled, status: "False", reason: {reason}, message: "{message}"}}]}}"#
        ))
    };
    let gates = "spec: {schedulingGates: [{name: example.com/quota}, {name: example.com/node}]}";
    check(
        &unscheduled("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates", gates),
        &format!("InProgress{CAUSE}: scheduling gates: example.com/quota, example.com/node"),
    );
    check(
        &unscheduled("SchedulerError", "binding rejected: timed out", "spec: {}"),
        &format!("InProgress{CAUSE}: binding rejected: timed out"),
    );
}

#[test]
fn kill_errors_of_a_terminating_pod_are_reported() {
    let stuck = pod("web", "spec: {nodeName: node-1}\nstatus: {phase: Running}")
        .replace("namespace: shop,", "namespace: shop, deletionTimestamp: '2026-03-01T11:00:00Z',");
    let event = |reason: &str| {
        event("Pod/web", "Warning", reason, 9, "11:59:00", "error killing pod: context deadline exceeded")
    };
    check(&all(&[&stuck, &event("FailedKillPod")]), "Terminating < /Pod/shop/web: error killing pod");
    let objects = read(&all(&[&stuck, &event("Unhealthy")]));
    let told = super::tell(&super::assess_all(&[super::name("/Pod/shop/web")], &dump(&objects), now()));
    assert!(!told.contains("error killing"), "{told}");
}
