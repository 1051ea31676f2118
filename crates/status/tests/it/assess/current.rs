//! Tests which objects are assessed as worse than they report, and which are not.

use super::{ROLLING, all, check, event, pod_of};

pub(super) const CRASHING: &str = "status: {phase: Running, containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}}]}";

fn cron_job(status: &str, spec: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: nightly, namespace: shop, uid: u-nightly}}\nspec: {{{spec}}}\nstatus: {{{status}}}"
    )
}

fn job(name: &str, at: &str, status: &str) -> String {
    format!(
        r#"
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: shop, uid: u-{name}, creationTimestamp: "2026-03-01T{at}Z", annotations: {{batch.kubernetes.io/cronjob-scheduled-timestamp: "2026-03-01T{at}Z"}},
  ownerReferences: [{{kind: CronJob, name: nightly, uid: u-nightly, controller: true}}]}}
spec: {{backoffLimit: 6, template: {{spec: {{restartPolicy: Never}}}}}}
status: {status}
"#
    )
}

fn ended(kind: &str, at: &str) -> String {
    format!(
        r#"{{startTime: "2026-03-01T10:00:00Z", conditions: [{{type: {kind}, status: "True", reason: BackoffLimitExceeded, message: it gave up, lastTransitionTime: "2026-03-01T{at}Z"}}]}}"#
    )
}

const OWN: &str = "Failed < batch/CronJob/shop/nightly";

#[test]
fn a_scheduled_run_that_left_no_job_and_no_success_has_failed() {
    let run = r#"lastScheduleTime: "2026-03-01T11:00:00Z""#;
    let success = |at: &str| format!(r#"{run}, lastSuccessfulTime: "2026-03-01T{at}Z""#);
    check(&cron_job(run, ""), &format!("{OWN}: left no Job"));
    check(&cron_job(&success("10:01:00"), ""), &format!("{OWN}: left no Job"));
    check(&cron_job(&success("11:01:00"), ""), "Current");
    check(&cron_job("", ""), "Current");
    check(&cron_job(run, "suspend: true"), "Current");
    check(&cron_job(&format!("{run}, active: [{{name: nightly-1}}]"), ""), "Current");
    // An older Job is not that of the last run.
    check(&all(&[&cron_job(run, ""), &job("old", "10:00:00", &ended("Complete", "10:01:00"))]), OWN);
    check(&all(&[&cron_job(run, ""), &job("own", "11:00:00", &ended("Complete", "11:01:00"))]), "Current");
    // Where Jobs that succeed are gone at once, an absent success proves nothing.
    check(&cron_job(run, "successfulJobsHistoryLimit: 0"), "Current");
    check(&cron_job(run, "jobTemplate: {spec: {ttlSecondsAfterFinished: 59}}"), "Current");
    check(&cron_job(run, "jobTemplate: {spec: {ttlSecondsAfterFinished: 60}}"), OWN);
}

#[test]
fn a_cron_job_whose_active_job_cannot_start_has_failed() {
    let declared = cron_job(r#"lastScheduleTime: "2026-03-01T11:00:00Z", active: [{name: run}]"#, "");
    let active = job("run", "11:00:00", r#"{startTime: "2026-03-01T11:00:00Z", active: 1}"#);
    let no_image = "status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ErrImagePull, message: no such image}}}]}";
    check(&all(&[&declared, &active]), "Current");
    check(
        &all(&[&declared, &active, &pod_of("Job/run", "run-a", no_image)]),
        "Failed < /Pod/shop/run-a: no such image",
    );
    // It crashes, with tries left.
    check(&all(&[&declared, &active, &pod_of("Job/run", "run-a", CRASHING)]), "Current");
    check(
        &all(&[
            &declared.replace("spec: {", "spec: {suspend: true, "),
            &active,
            &pod_of("Job/run", "run-a", no_image),
        ]),
        "Current",
    );
}

#[test]
fn later_successful_run_clears_a_failed_job() {
    let status = |success: &str| {
        format!(r#"lastScheduleTime: "2026-03-01T11:00:00Z", lastSuccessfulTime: "2026-03-01T{success}Z""#)
    };
    let failed = job("old", "10:00:00", &ended("Failed", "10:05:00"));
    check(&all(&[&cron_job(&status("11:01:00"), "successfulJobsHistoryLimit: 0"), &failed]), "Current");
    check(&all(&[&cron_job(&status("09:01:00"), ""), &failed]), "Failed < batch/Job/shop/old: it gave up");
}

#[test]
fn a_budget_that_cannot_be_computed_has_failed() {
    let budget = |reason: &str, status: &str| {
        format!(
            r#"{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: web, namespace: shop}}, status: {{conditions: [
            {{type: DisruptionAllowed, status: "{status}", reason: {reason}, message: found no controllers}}]}}}}"#
        )
    };
    check(
        &budget("SyncFailed", "False"),
        "Failed < policy/PodDisruptionBudget/shop/web: found no controllers",
    );
    check(&budget("InsufficientPods", "False"), "Current");
    check(&budget("SufficientPods", "True"), "Current");
}

#[test]
fn an_autoscaler_that_cannot_tell_its_pods_has_failed() {
    for reason in ["AmbiguousSelector", "InvalidSelector"] {
        let scaler = format!(
            r#"{{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {{name: web, namespace: shop}}, spec: {{}}, status: {{conditions: [
            {{type: ScalingActive, status: "False", reason: {reason}, message: two select them, lastTransitionTime: "2026-03-01T11:00:00Z"}}]}}}}"#
        );
        check(&scaler, "Failed < autoscaling/HorizontalPodAutoscaler/shop/web: two select them");
    }
}

#[test]
fn ingress_without_address_is_in_progress_while_its_controller_warns() {
    let ingress = |address: &str| {
        format!(
            r#"
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: web, namespace: shop, creationTimestamp: "2026-03-01T10:00:00Z"}}
status: {{loadBalancer: {{ingress: [{address}]}}}}
"#
        )
    };
    let warned = |count, at| event("Ingress/web", "Warning", "FailedDeployModel", count, at, "no subnets");
    let cause = "InProgress < networking.k8s.io/Ingress/shop/web: no subnets";
    check(&all(&[&ingress(""), &warned(3, "11:55:00")]), cause);
    check(&all(&[&ingress(""), &warned(2, "11:55:00")]), "Current");
    check(&all(&[&ingress(""), &warned(2, "11:55:00"), &warned(1, "11:20:00")]), cause);
    check(&all(&[&ingress(""), &warned(9, "11:49:59")]), "Current");
    check(&all(&[&ingress("{hostname: lb.example.com}"), &warned(9, "11:55:00")]), "Current");
    check(&ingress(""), "Current");
    check(&all(&[&ingress(""), &warned(9, "11:55:00").replace("Warning", "Normal")]), "Current");
}

#[test]
fn a_rollout_paused_between_two_revisions_is_half_done() {
    let rollout = |stable: &str, status: &str| {
        format!(
            r#"
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {{name: web, namespace: shop, uid: u-web}}
spec: {{replicas: 2}}
status: {{currentPodHash: new, stableRS: {stable}, {status}}}
"#
        )
    };
    let paused = r#"phase: Paused, message: CanaryPauseStep, pauseConditions: [{reason: CanaryPauseStep, startTime: "2026-03-01T11:00:00Z"}]"#;
    let told = |yaml: &str| {
        let objects = super::read(yaml);
        let name = super::name("argoproj.io/Rollout/shop/web");
        super::assess_all(&[name], &super::dump(&objects), super::now()).remove(0)
    };
    let half = told(&rollout("old", paused));
    assert_eq!((half.verdict.status.as_str(), half.flags.suspended), ("InProgress", true), "{half:?}");
    assert!(half.message.contains("CanaryPauseStep"), "{half:?}");
    assert_eq!(half.since, "2026-03-01T11:00:00Z".parse().ok());
    let whole = told(&rollout("new", paused));
    assert_eq!((whole.verdict.status.as_str(), whole.flags.suspended), ("Current", true), "{whole:?}");
    check(&rollout("old", "phase: Healthy"), "Current");
}

#[test]
fn a_refused_request_for_a_certificate_has_failed() {
    let request = |condition: &str| {
        format!(
            r#"{{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {{name: web}}, status: {{conditions: [
            {{type: {condition}, status: "True", reason: Policy, message: not for you, lastTransitionTime: "2026-03-01T11:00:00Z"}}]}}}}"#
        )
    };
    for condition in ["Denied", "Failed"] {
        check(
            &request(condition),
            "Failed < certificates.k8s.io/CertificateSigningRequest//web: not for you",
        );
    }
    check(&request("Approved"), "Current");
}

#[test]
fn a_volume_that_cannot_be_attached_is_in_progress() {
    let attachment = |status: &str| {
        format!(
            "{{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {{name: csi-1}}, status: {status}}}"
        )
    };
    let error = r#"{attached: false, attachError: {time: "2026-03-01T11:00:00Z", message: no such disk}}"#;
    check(&attachment(error), "InProgress < storage.k8s.io/VolumeAttachment//csi-1: no such disk");
    check(&attachment("{attached: true}"), "Current");
    check(&attachment("{attached: false}"), "Current");
}

#[test]
fn a_binding_without_its_policy_is_in_progress() {
    for kind in ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"] {
        let of = |kind: &str, name: &str| {
            format!(
                "{{apiVersion: admissionregistration.k8s.io/v1, kind: {kind}, metadata: {{name: {name}}}, spec: {{policyName: replicas}}}}"
            )
        };
        let binding = of(&format!("{kind}Binding"), "web");
        check(
            &all(&[&binding, &of(kind, "other")]),
            &format!(
                "InProgress < admissionregistration.k8s.io/{kind}Binding//web: {kind} replicas does not exist"
            ),
        );
        check(&all(&[&binding, &of(kind, "replicas")]), "Current");
    }
}

const WIDGET: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: blue, namespace: shop, uid: u-blue, creationTimestamp: '2026-02-01T12:00:00Z'}
status: {replicas: 1}
";

fn owned(api: &str, kind: &str, name: &str, owner: &str, rest: &str) -> String {
    format!(
        "apiVersion: {api}\nkind: {kind}\nmetadata: {{name: {name}, namespace: shop, uid: u-{name}, generation: 1, creationTimestamp: '2026-02-01T12:00:00Z', \
         ownerReferences: [{{name: {owner}, uid: u-{owner}, controller: true}}]}}\n{rest}"
    )
}

#[test]
fn custom_resource_without_rules_fails_with_its_workload() {
    let set = |owner: &str| {
        owned(
            "apps/v1",
            "StatefulSet",
            "db",
            owner,
            "spec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1}",
        )
    };
    let crashing = pod_of("StatefulSet/db", "db-0", CRASHING);
    let cause = "Failed < /Pod/shop/db-0: back-off";
    check(&all(&[WIDGET, &set("blue"), &crashing]), cause);
    check(&all(&[WIDGET, &pod_of("Widget/blue", "db-0", CRASHING)]), cause);
    // Not ready, and no hard cause.
    let starting = pod_of("StatefulSet/db", "db-0", "status: {phase: Running}");
    check(&all(&[WIDGET, &set("blue"), &starting]), "Current");
    // A kind of its own group in between is well by its own words, and no link.
    let between = owned(
        "example.com/v1",
        "Part",
        "part",
        "blue",
        "status: {conditions: [{type: Ready, status: 'True'}]}",
    );
    check(&all(&[WIDGET, &between, &set("part"), &crashing]), cause);
    let unjudged = owned("example.com/v1", "Part", "part", "blue", "status: {replicas: 1}");
    check(&all(&[WIDGET, &unjudged, &set("part"), &crashing]), cause);
    // Not behind two of them.
    let second = owned("example.com/v1", "Part", "second", "part", "status: {replicas: 1}");
    check(&all(&[WIDGET, &unjudged, &second, &set("second"), &crashing]), "Current");
    // Who says Ready=True has looked.
    let ready = WIDGET.replace("replicas: 1", "conditions: [{type: Ready, status: 'True'}]");
    check(&all(&[&ready, &set("blue"), &crashing]), "Current");
    let config = owned("v1", "Service", "svc", "blue", "spec: {type: LoadBalancer}");
    check(&all(&[WIDGET, &config]), "Current");
}

#[test]
fn newest_job_of_a_custom_resource_counts() {
    let job = |name: &str, at: &str, status: &str| {
        job(name, at, status)
            .replace("kind: CronJob, name: nightly, uid: u-nightly", "kind: Widget, name: blue, uid: u-blue")
    };
    let (failed, complete) = (ended("Failed", "11:30:00"), ended("Complete", "11:30:00"));
    check(
        &all(&[WIDGET, &job("one", "10:00:00", &complete), &job("two", "11:00:00", &failed)]),
        "Failed < batch/Job/shop/two: it gave up",
    );
    check(&all(&[WIDGET, &job("one", "10:00:00", &failed), &job("two", "11:00:00", &complete)]), "Current");
}

#[test]
fn stuck_old_pod_blocks_a_recreate_deployment() {
    let recreating = |strategy: &str| {
        ROLLING
            .replace("spec: {replicas: 2, progress", &format!("spec: {{replicas: 2, strategy: {{type: {strategy}}}, progress"))
            .replace("replicas: 3, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 2", "replicas: 0")
            .replace("spec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1, fullyLabeledReplicas: 1}", "spec: {replicas: 0}\nstatus: {observedGeneration: 1, replicas: 0}")
            .replace("spec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2}", "spec: {replicas: 0}\nstatus: {observedGeneration: 1, replicas: 0}")
    };
    let leaving = pod_of("ReplicaSet/web-1", "web-1-a", "spec: {nodeName: node-1}\nstatus: {phase: Running}")
        .replace("namespace: shop,", "namespace: shop, deletionTimestamp: '2026-03-01T11:55:00Z',");
    let node = |ready: &str| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: node-1}}, status: {{conditions: [{{type: Ready, status: '{ready}', message: Kubelet stopped}}]}}}}"
        )
    };
    check(
        &all(&[&recreating("Recreate"), &leaving, &node("Unknown")]),
        "Failed < /Node//node-1: Kubelet stopped",
    );
    check(&all(&[&recreating("Recreate"), &leaving, &node("True")]), "InProgress < /Pod/shop/web-1-a");
    check(
        &all(&[&recreating("RollingUpdate"), &leaving, &node("Unknown")]),
        "InProgress < apps/Deployment/shop/web",
    );
}

#[test]
fn a_daemon_set_whose_pods_are_replaced_by_hand_may_have_old_ones() {
    let set = |status: &str| {
        format!(
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: web, namespace: shop, uid: u-web, generation: 2}}\nspec: {{updateStrategy: {{type: OnDelete}}}}\n\
             status: {{observedGeneration: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3, {status}}}"
        )
    };
    check(&set("updatedNumberScheduled: 1, numberAvailable: 3, numberReady: 3"), "Current");
    check(&set("updatedNumberScheduled: 1, numberAvailable: 2, numberReady: 3"), "InProgress");
    let rolling = set("updatedNumberScheduled: 1, numberAvailable: 3, numberReady: 3")
        .replace("OnDelete", "RollingUpdate");
    check(&rolling, "InProgress");
    let old = set("updatedNumberScheduled: 1, numberAvailable: 3, numberReady: 3");
    check(&all(&[&old, &pod_of("DaemonSet/web", "web-a", CRASHING)]), "Failed < /Pod/shop/web-a: back-off");
}

#[test]
fn the_store_of_an_external_secret_is_the_cause() {
    let store = |kind: &str, namespace: &str| {
        format!(
            "{{apiVersion: external-secrets.io/v1, kind: {kind}, metadata: {{name: vault{namespace}}}, status: {{conditions: [{{type: Ready, status: 'False', message: permission denied}}]}}}}"
        )
    };
    let secret = |kind: &str, spec: &str| {
        format!(
            "{{apiVersion: external-secrets.io/v1, kind: {kind}, metadata: {{name: db, namespace: shop}}, spec: {spec}, status: {{conditions: [{{type: Ready, status: 'False', message: could not get secret}}]}}}}"
        )
    };
    let own = store("SecretStore", ", namespace: shop");
    let of_cluster = store("ClusterSecretStore", "");
    let cause = "InProgress < external-secrets.io/SecretStore/shop/vault: permission denied";
    check(&all(&[&secret("ExternalSecret", "{secretStoreRef: {name: vault}}"), &own]), cause);
    check(
        &all(&[&secret("ExternalSecret", "{data: [{sourceRef: {storeRef: {name: vault}}}]}"), &own]),
        cause,
    );
    check(&all(&[&secret("PushSecret", "{secretStoreRefs: [{name: vault}]}"), &own]), cause);
    check(
        &all(&[
            &secret("ExternalSecret", "{secretStoreRef: {name: vault, kind: ClusterSecretStore}}"),
            &of_cluster,
        ]),
        "InProgress < external-secrets.io/ClusterSecretStore//vault: permission denied",
    );
    check(
        &all(&[&secret("ExternalSecret", "{secretStoreRef: {name: gone}}"), &own]),
        "InProgress < external-secrets.io/ExternalSecret/shop/db: SecretStore shop/gone does not exist",
    );
}
