//! Tests of the status of workloads, by their own fields and by their Pods.

use jiff::Timestamp;
use taffrail_object::Object;
use taffrail_status::assess::{Budgets, Options, assess};
use taffrail_status::{ActiveRules, Status};

use super::{ROLLING, all, assess_all, check, dump, event, name, now, pod_of, read};

const CRASH: &str = r#"status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-03-01T11:55:00Z"}],
  containerStatuses: [{name: app, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}}]}"#;

#[test]
fn only_pods_of_the_current_revision_count() {
    check(
        &all(&[ROLLING, &pod_of("ReplicaSet/web-1", "old", CRASH)]),
        "InProgress < apps/ReplicaSet/shop/web-2",
    );
    check(&all(&[ROLLING, &pod_of("ReplicaSet/web-2", "new", CRASH)]), "Failed < /Pod/shop/new: back-off");
    // Rolled back: the older ReplicaSet has the newest revision.
    let back = ROLLING.replace("revision: \"1\"", "revision: \"3\"").replacen(
        "revision: \"2\"",
        "revision: \"3\"",
        1,
    );
    check(
        &all(&[&back, &pod_of("ReplicaSet/web-2", "undone", CRASH)]),
        "InProgress < apps/Deployment/shop/web",
    );
}

#[test]
fn terminating_pods_do_not_affect_a_deployment() {
    let going = pod_of("ReplicaSet/web-2", "new", CRASH)
        .replace("uid: u-new,", "uid: u-new, deletionTimestamp: \"2026-03-01T12:00:20Z\",");
    check(&all(&[ROLLING, &going]), "InProgress < apps/ReplicaSet/shop/web-2");
}

#[test]
fn nothing_fails_before_the_newest_generation_was_seen() {
    let stale = ROLLING.replacen("generation: 2", "generation: 3", 1);
    let pod = pod_of("ReplicaSet/web-2", "new", CRASH);
    check(&all(&[&stale, &pod]), "InProgress < apps/Deployment/shop/web: latest observed generation is 2");
}

#[test]
fn a_replicaset_that_is_behind_does_not_hide_why_the_deployment_fails() {
    let behind = ROLLING.replacen("uid: u-web-2, generation: 1", "uid: u-web-2, generation: 2", 1);
    let objects = read(&all(&[&behind, &pod_of("ReplicaSet/web-2", "new", CRASH)]));
    let assessment = &assess_all(&[name("apps/Deployment/shop/web")], &dump(&objects), now())[0];
    let statuses: Vec<_> = assessment.chain.iter().map(|link| link.status).collect();
    assert_eq!(statuses, [Status::Failed, Status::InProgress, Status::Failed]);
    assert_eq!((&*assessment.verdict.rule, &*assessment.message), ("evidence/crash", "back-off"));
    assert_eq!(assessment.verdict.conditions[0].message, "back-off");
}

#[test]
fn failed_workload_reports_progress_and_cause() {
    let objects = read(&all(&[ROLLING, &pod_of("ReplicaSet/web-2", "new", CRASH)]));
    let assessment = &assess_all(&[name("apps/Deployment/shop/web")], &dump(&objects), now())[0];
    let told: Vec<_> = assessment.chain.iter().map(|link| (link.status, &*link.message)).collect();
    let expected =
        [(Status::Failed, "Updated: 1/2"), (Status::Failed, "Available: 0/1"), (Status::Failed, "back-off")];
    assert_eq!(told, expected);
    assert_eq!((&*assessment.verdict.message, &*assessment.message), ("Updated: 1/2", "back-off"));
}

#[test]
fn owners_are_matched_by_uid() {
    let other = pod_of("ReplicaSet/web-2", "new", CRASH).replace("uid: u-web-2,", "uid: u-earlier,");
    check(&all(&[ROLLING, &other]), "InProgress < apps/ReplicaSet/shop/web-2");
    let no_controller =
        pod_of("ReplicaSet/web-2", "new", CRASH).replace("controller: true", "controller: false");
    check(&all(&[ROLLING, &no_controller]), "InProgress < apps/ReplicaSet/shop/web-2");
}

#[test]
fn owner_cycles_end() {
    let circle = ROLLING.replacen(
        "uid: u-web,",
        "uid: u-web, ownerReferences: [{uid: u-web-2, controller: true}],",
        1,
    );
    check(&circle, "InProgress < apps/ReplicaSet/shop/web-2");
    let own =
        ROLLING.replacen("uid: u-web,", "uid: u-web, ownerReferences: [{uid: u-web, controller: true}],", 1);
    check(&own, "InProgress");
}

#[test]
fn hard_cause_then_duration_selects_the_pod() {
    let waits = r#"status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-03-01T11:51:00Z"}]}"#;
    let later = CRASH.replace("11:55:00", "11:57:00");
    let pods = [("a", &*later), ("b", CRASH), ("c", waits)]
        .map(|(name, rest)| pod_of("ReplicaSet/web-2", name, rest));
    check(&all(&[ROLLING, &pods[0], &pods[1], &pods[2]]), "Failed < /Pod/shop/b");
    check(&all(&[ROLLING, &pods[0], &pods[2]]), "Failed < /Pod/shop/a");
}

#[test]
fn refusal_ends_the_chain_at_the_refused_workload() {
    let condition = r#"replicas: 0, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: exceeded quota}]"#;
    let refused = ROLLING.replacen("replicas: 1, fullyLabeledReplicas: 1", condition, 1);
    check(&refused, "Failed < apps/ReplicaSet/shop/web-2: exceeded quota");
    check(&refused.replace("reason: FailedCreate", "reason: FailedDelete"), "InProgress");
    // The older one may not be made larger; that is not what is rolled out.
    let older = ROLLING.replace("replicas: 2, fullyLabeledReplicas: 2", condition);
    check(&older, "InProgress < apps/ReplicaSet/shop/web-2");

    let event = |last| {
        event("ReplicaSet/web-2", "Warning", "FailedCreate", 9, last, "admission webhook denied the request")
    };
    let none = ROLLING.replacen("replicas: 1, fullyLabeledReplicas: 1", "replicas: 0", 1);
    check(
        &all(&[&none, &event("11:59:00")]),
        "Failed < apps/ReplicaSet/shop/web-2: admission webhook denied",
    );
    check(&all(&[ROLLING, &event("11:59:00")]), "InProgress < apps/ReplicaSet/shop/web-2");

    let unmade = ROLLING.replacen(
        r#"{type: Progressing, status: "True", reason: ReplicaSetUpdated}"#,
        r#"{type: Progressing, status: "False", reason: ReplicaSetCreateError, message: replicasets are forbidden}"#,
        1,
    );
    let only: Vec<_> = unmade.split("\n---\n").take(1).collect();
    check(only[0], "Failed < apps/Deployment/shop/web: replicasets are forbidden");
}

const SET: &str = r#"
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop, uid: u-db, generation: 1, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {replicas: 2, updateStrategy: {type: RollingUpdate}}
status: {observedGeneration: 1, replicas: 1, readyReplicas: 0, currentReplicas: 1}
"#;

const LOST: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {conditions: [{type: Ready, status: Unknown, message: Kubelet stopped}]}
"#;

#[test]
fn a_statefulset_waits_for_the_pod_that_has_the_ordinal() {
    let going = pod_of(
        "StatefulSet/db",
        "db-0",
        "spec: {nodeName: node-1}\nstatus: {phase: Running, conditions: [{type: Ready, status: \"False\"}]}",
    )
    .replace("uid: u-db-0,", "uid: u-db-0, deletionTimestamp: \"2026-03-01T11:58:00Z\",");
    check(&all(&[SET, &going]), "InProgress < /Pod/shop/db-0");
    check(&all(&[SET, &going, LOST]), "Failed < /Node//node-1: Kubelet stopped");
}

#[test]
fn a_refused_pod_of_a_statefulset_is_known_by_its_event() {
    let event = |message, last| event("StatefulSet/db", "Warning", "FailedCreate", 9, last, message);
    let failed = "create Pod db-1 in StatefulSet db failed error: exceeded quota";
    check(&all(&[SET, &event(failed, "11:59:00")]), "Failed < apps/StatefulSet/shop/db: exceeded quota");
    check(&all(&[SET, &event(failed, "11:00:00")]), "InProgress");
    check(
        &all(&[SET, &event("object is being deleted: pods db-1 already exists", "11:59:00")]),
        "InProgress",
    );
    let complete = SET.replace(
        "status: {observedGeneration: 1, replicas: 1",
        "status: {observedGeneration: 1, replicas: 2",
    );
    check(&all(&[&complete, &event(failed, "11:59:00")]), "InProgress");
}

#[test]
fn on_delete_set_fails_by_its_pods() {
    let by_hand = SET.replace("type: RollingUpdate", "type: OnDelete");
    let crash = pod_of("StatefulSet/db", "db-0", CRASH);
    check(&all(&[&by_hand, &crash]), "Failed < /Pod/shop/db-0: back-off");
    check(&all(&[&by_hand, &crash.replace("CrashLoopBackOff", "ContainerCreating")]), "Current");
    check(&by_hand, "Current");

    let daemons = daemon_set(
        "desiredNumberScheduled: 1, currentNumberScheduled: 1, updatedNumberScheduled: 0",
        "OnDelete",
    );
    check(
        &all(&[&daemons, &pod_of("DaemonSet/agent", "agent-a", CRASH)]),
        "Failed < /Pod/shop/agent-a: back-off",
    );
}

fn daemon_set(counts: &str, strategy: &str) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, namespace: shop, uid: u-agent, generation: 1}}
spec: {{updateStrategy: {{type: {strategy}, rollingUpdate: {{maxUnavailable: 1}}}}}}
status: {{observedGeneration: 1, {counts}, numberAvailable: 0, numberReady: 0}}
"#
    )
}

#[test]
fn a_daemonset_allows_as_many_lost_nodes_as_it_says() {
    let daemons = daemon_set(
        "desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3",
        "RollingUpdate",
    );
    let lost = |name: &str, node: &str| {
        pod_of(
            "DaemonSet/agent",
            name,
            &format!(
                "spec: {{nodeName: {node}}}\nstatus: {{phase: Running, conditions: [{{type: Ready, status: \"False\"}}]}}"
            ),
        )
    };
    let other = LOST.replace("node-1", "node-2");
    let one = [&daemons, &lost("agent-a", "node-1"), LOST];
    let two = all(&[&one[..], &[&lost("agent-b", "node-2"), &other]].concat());
    check(&all(&one), "InProgress");
    check(&two, "Failed < /Node//node-1: Kubelet stopped");
    check(&two.replace("maxUnavailable: 1", "maxUnavailable: 34%"), "InProgress");
    check(&two.replace("maxUnavailable: 1", "maxUnavailable: 33%"), "Failed");
    // A crash beside it is no matter of nodes.
    check(
        &all(&[&all(&one), &pod_of("DaemonSet/agent", "agent-c", CRASH)]),
        "Failed < /Pod/shop/agent-c: back-off",
    );
}

/// Returns the YAML of a paused Deployment with `updated` updated replicas, and `old` and `new` replicas in its two
/// ReplicaSets.
fn paused(updated: u32, old: u32, new: u32) -> String {
    let status = format!("replicas: 2, updatedReplicas: {updated}, readyReplicas: 2, availableReplicas: 2");
    let set = |replicas: u32| {
        format!(
            "spec: {{replicas: {replicas}}}\nstatus: {{observedGeneration: 1, replicas: {replicas}, fullyLabeledReplicas: {replicas}, readyReplicas: {replicas}, availableReplicas: {replicas}}}"
        )
    };
    ROLLING
        .replacen("{replicas: 2, progress", "{paused: true, replicas: 2, progress", 1)
        .replacen("replicas: 3, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 2", &status, 1)
        .replacen(r#"status: "True", reason: ReplicaSetUpdated"#, "status: Unknown, reason: DeploymentPaused", 1)
        .replacen("spec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1, fullyLabeledReplicas: 1}", &set(new), 1)
        .replacen("spec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2}", &set(old), 1)
}

#[test]
fn paused_deployment_is_current_unless_half_rolled_out() {
    check(&paused(2, 0, 2), "Current");
    // A new template waits; no ReplicaSet was made for it.
    check(&paused(0, 2, 0), "Current");
    check(&paused(1, 1, 1), "InProgress");
    check(&paused(2, 0, 1), "InProgress");
    let objects = read(&paused(0, 2, 0));
    let assessment = &assess_all(&[name("apps/Deployment/shop/web")], &dump(&objects), now())[0];
    assert!(assessment.flags.paused && !assessment.flags.suspended && assessment.chain.is_empty());
    let unpaused = paused(0, 2, 0).replace("paused: true", "paused: false");
    check(&unpaused, "InProgress");
}

#[test]
fn violated_budget_is_named_and_a_kept_one_may_suffice() {
    let budget = r#"
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop, generation: 1}
spec: {selector: {matchLabels: {app: web}}}
status: {observedGeneration: 1, desiredHealthy: 1, currentHealthy: 0}
"#;
    let told = |budget: &str, pdb: Budgets| {
        let objects = read(&all(&[ROLLING, budget]));
        let object = Object::new((&objects[0]).into()).unwrap();
        let options = Options { pdb, ..Options::default() };
        let rules = ActiveRules { options: &options, ..ActiveRules::default() };
        let assessment = assess(&object, &dump(&objects), &rules, now());
        let facts = assessment.chain.first().map(|link| link.facts.clone()).unwrap_or_default();
        (assessment.verdict.status, facts.join(" "))
    };
    let (status, facts) = told(budget, Budgets::Advisory);
    assert_eq!(status, Status::InProgress);
    assert!(facts.contains("PodDisruptionBudget web wants 1 healthy Pods, 0 are"), "{facts}");
    assert_eq!(told(budget, Budgets::Sufficient).0, Status::Current);
    assert_eq!(
        told(&budget.replace("desiredHealthy: 1", "desiredHealthy: 2"), Budgets::Sufficient).0,
        Status::InProgress
    );
    assert_eq!(told(&budget.replace("app: web", "app: api"), Budgets::Sufficient).0, Status::InProgress);
    assert_eq!(
        told(&budget.replace("generation: 1}", "generation: 2}"), Budgets::Sufficient).0,
        Status::InProgress
    );
}

#[test]
fn not_well_since_is_the_condition_else_the_evidence_else_the_creation() {
    let since = |yaml: &str| {
        let objects = read(yaml);
        assess_all(&[name("apps/Deployment/shop/web")], &dump(&objects), now())[0].since.unwrap()
    };
    let time = |text: &str| -> Timestamp { text.parse().unwrap() };
    let crash = all(&[ROLLING, &pod_of("ReplicaSet/web-2", "new", CRASH)]);
    assert_eq!(since(&crash), time("2026-03-01T11:55:00Z"));
    let unavailable = crash.replace(
        r#"{type: Available, status: "True"}"#,
        r#"{type: Available, status: "False", lastTransitionTime: "2026-03-01T11:56:00Z"}"#,
    );
    assert_eq!(since(&unavailable), time("2026-03-01T11:56:00Z"));
    let refused = event("StatefulSet/db", "Warning", "FailedCreate", 9, "11:59:00", "exceeded quota")
        .replace("lastTimestamp", "firstTimestamp: \"2026-03-01T11:30:00Z\"\nlastTimestamp");
    let objects = read(&all(&[SET, &refused]));
    let refused = &assess_all(&[name("apps/StatefulSet/shop/db")], &dump(&objects), now())[0];
    assert_eq!(refused.since, Some(time("2026-03-01T11:30:00Z")));
    let alone: Vec<_> = ROLLING.split("\n---\n").take(1).collect();
    assert_eq!(since(alone[0]), time("2026-01-01T00:00:00Z"));
}

#[test]
fn unobserved_generation_ignores_older_conditions_for_since() {
    let scaled = |generation: u8, managed: &str| {
        let yaml = format!(
            r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop, uid: u-web, generation: {generation}, creationTimestamp: "2026-01-01T00:00:00Z", managedFields: [{managed}]}}
spec: {{replicas: 9}}
status: {{observedGeneration: {}, replicas: 2, conditions: [
  {{type: Available, status: "False", lastTransitionTime: "2026-02-26T12:00:00Z"}}]}}
"#,
            generation - 1
        );
        assess_all(&[name("apps/Deployment/shop/web")], &dump(&read(&yaml)), now())[0].since
    };
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let wrote = |part: &str, at: &str, subresource: &str| {
        format!(
            "{{manager: m, time: \"{at}\", subresource: \"{subresource}\", fieldsV1: {{\"f:{part}\": {{}}}}}}"
        )
    };
    let managed = [
        wrote("spec", "2026-02-01T00:00:00Z", ""),
        wrote("spec", "2026-03-01T11:59:00Z", "scale"),
        wrote("metadata", "2026-03-01T11:59:30Z", ""),
        wrote("status", "2026-03-01T11:59:40Z", "status"),
    ];
    assert_eq!(scaled(3, &managed.join(", ")), time("2026-03-01T11:59:00Z"), "the newest write of the spec");
    assert_eq!(scaled(3, ""), None, "no time is better than a wrong one");
    assert_eq!(scaled(1, ""), time("2026-01-01T00:00:00Z"), "the first generation is as old as the object");
}

#[test]
fn since_of_a_rollout_is_its_start() {
    for (kind, status) in [
        (
            "Deployment",
            "replicas: 6, updatedReplicas: 6, readyReplicas: 5, availableReplicas: 5, conditions: [{type: Available, status: \"True\", lastTransitionTime: \"2026-02-26T12:00:00Z\"}, {type: Progressing, status: \"True\", lastTransitionTime: \"2026-02-26T12:00:00Z\"}]",
        ),
        ("StatefulSet", "replicas: 5, currentReplicas: 5, readyReplicas: 5, updatedReplicas: 5"),
    ] {
        let since = |generation: u8, managed: &str| {
            let yaml = format!(
                r#"
apiVersion: apps/v1
kind: {kind}
metadata: {{name: web, namespace: shop, uid: u-web, generation: {generation}, creationTimestamp: "2026-02-26T12:00:00Z", managedFields: [{managed}]}}
spec: {{replicas: 6}}
status: {{observedGeneration: {generation}, {status}}}
"#
            );
            let object = name(&format!("apps/{kind}/shop/web"));
            let told = assess_all(&[object], &dump(&read(&yaml)), now());
            assert_eq!(told[0].verdict.status, Status::InProgress, "{kind}");
            told[0].since
        };
        let time = |text: &str| text.parse::<Timestamp>().ok();
        let scaled = r#"{manager: kubectl, time: "2026-03-01T11:59:00Z", subresource: scale, fieldsV1: {"f:spec": {"f:replicas": {}}}}"#;
        assert_eq!(since(2, scaled), time("2026-03-01T11:59:00Z"), "{kind}");
        assert_eq!(since(1, ""), time("2026-02-26T12:00:00Z"), "{kind}: the first rollout began with it");
    }
}
