//! Tests of assessments of Jobs, storage, autoscaling, services, deletions, custom resources and Flux.

use taffrail_status::Status;

use super::{all, assess_all, check, dump, event, name, now, pod, pod_of, read};

const JOB: &str = r#"
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: shop, uid: u-migrate, generation: 1, creationTimestamp: "2026-03-01T11:40:00Z"}
spec: {backoffLimit: 3, parallelism: 1, completions: 1, template: {spec: {restartPolicy: OnFailure}}}
status: {startTime: "2026-03-01T11:40:00Z", active: 1, failed: 0}
"#;

fn job_pod(reason: &str, restarts: u32) -> String {
    let rest = format!(
        r#"status: {{phase: Running, conditions: [{{type: Ready, status: "False"}}],
           containerStatuses: [{{name: app, restartCount: {restarts}, state: {{waiting: {{reason: {reason}, message: it says why}}}}}}]}}"#
    );
    pod_of("Job/migrate", "migrate-a", &rest)
}

#[test]
fn a_job_runs_until_it_ends_and_may_crash_while_tries_are_left() {
    check(JOB, "InProgress < batch/Job/shop/migrate: Job in progress");
    check(&all(&[JOB, &job_pod("CrashLoopBackOff", 2)]), "InProgress < /Pod/shop/migrate-a");
    check(&all(&[JOB, &job_pod("CrashLoopBackOff", 3)]), "Failed < /Pod/shop/migrate-a: it says why");
    check(&all(&[JOB, &job_pod("ImagePullBackOff", 0)]), "Failed < /Pod/shop/migrate-a: it says why");
    // Among the Pods the one that cannot be mended speaks.
    let other = job_pod("ErrImagePull", 0).replace("migrate-a", "migrate-b");
    check(&all(&[JOB, &job_pod("CrashLoopBackOff", 1), &other]), "Failed < /Pod/shop/migrate-b");
    let killed = job_pod("CrashLoopBackOff", 2).replace(
        "restartCount: 2,",
        "restartCount: 2, lastState: {terminated: {exitCode: 137, reason: OOMKilled}},",
    );
    check(&all(&[JOB, &killed]), "InProgress < /Pod/shop/migrate-a");
    let failed = pod_of("Job/migrate", "migrate-0", "status: {phase: Failed}");
    check(&all(&[JOB, &failed]), "InProgress < batch/Job/shop/migrate");
    check(&JOB.replace("active: 1", "conditions: [{type: Complete, status: \"True\"}]"), "Current");
}

#[test]
fn suspended_job_is_current_and_flagged() {
    let suspended = JOB.replace("{backoffLimit", "{suspend: true, backoffLimit");
    check(&suspended, "Current");
    check(&suspended.replace("startTime: \"2026-03-01T11:40:00Z\", active: 1, ", ""), "Current");
    let failed =
        suspended.replace("active: 1", "conditions: [{type: Failed, status: \"True\", message: too many}]");
    check(&failed, "Failed < batch/Job/shop/migrate: too many");
    let objects = read(&suspended);
    assert!(assess_all(&[name("batch/Job/shop/migrate")], &dump(&objects), now())[0].flags.suspended);
}

#[test]
fn failed_job_chain_ends_at_the_failed_pod() {
    let failed = |message: &str| {
        JOB.replace(
            "active: 1",
            &format!("conditions: [{{type: Failed, status: \"True\", message: {message}}}]"),
        )
    };
    let pod = |name: &str, at: &str| {
        let rest = format!(
            r#"status: {{phase: Failed, conditions: [{{type: Ready, status: "False", lastTransitionTime: "2026-03-01T{at}Z"}}],
               containerStatuses: [{{name: app, state: {{terminated: {{exitCode: 3, reason: Error, message: "no table"}}}}}}]}}"#
        );
        pod_of("Job/migrate", name, &rest)
    };
    let pods = [pod("migrate-a", "11:45:00"), pod("migrate-b", "11:42:00")];
    check(
        &all(&[&failed("limit"), &pods[0], &pods[1]]),
        "Failed < /Pod/shop/migrate-b: exit code 3 (Error): no table",
    );
    let named = failed(
        "Container app for pod shop/migrate-a failed with exit code 3 matching FailJob rule at index 0",
    );
    check(&all(&[&named, &pods[0], &pods[1]]), "Failed < /Pod/shop/migrate-a");
    check(
        &failed("Job was active longer than specified deadline"),
        "Failed < batch/Job/shop/migrate: longer than specified",
    );
}

#[test]
fn a_refused_pod_of_a_job_is_known_by_its_event() {
    let idle = JOB.replace("active: 1", "active: 0");
    let event =
        event("Job/migrate", "Warning", "FailedCreate", 3, "11:59:00", "pods are forbidden: exceeded quota");
    check(&all(&[&idle, &event]), "Failed < batch/Job/shop/migrate: exceeded quota");
    check(&all(&[JOB, &event]), "InProgress");
    check(&all(&[&idle.replace("failed: 0", "succeeded: 1"), &event]), "InProgress");
}

#[test]
fn last_finished_job_decides_for_a_cronjob() {
    let cron_job = "{apiVersion: batch/v1, kind: CronJob, metadata: {name: report, namespace: shop, uid: u-report}, spec: {suspend: false}}";
    let job = |name: &str, at: &str, condition: &str| {
        format!(
            r#"
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: shop, uid: u-{name}, annotations: {{batch.kubernetes.io/cronjob-scheduled-timestamp: "2026-03-01T{at}Z"}},
  ownerReferences: [{{kind: CronJob, name: report, uid: u-report, controller: true}}]}}
status: {{startTime: "2026-03-01T{at}Z", conditions: [{{type: {condition}, status: "True", message: too many tries}}]}}
"#
        )
    };
    let (failed, complete) = (job("b", "10:00:00", "Failed"), job("a", "11:00:00", "Complete"));
    check(&all(&[cron_job, &failed]), "Failed < batch/Job/shop/b: too many tries");
    check(&all(&[cron_job, &failed, &complete]), "Current");
    // It runs again; until that has ended the last word is the failure.
    check(&all(&[cron_job, &failed, &job("c", "11:30:00", "Suspended")]), "Failed < batch/Job/shop/b");
    check(&all(&[&cron_job.replace("false", "true"), &failed]), "Current");
    check(cron_job, "Current");
}

const CLAIM: &str = r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, uid: u-data, creationTimestamp: "2026-03-01T11:00:00Z"}
spec: {storageClassName: standard}
status: {phase: Pending}
"#;

fn class(mode: &str) -> String {
    format!(
        "{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: standard}}, volumeBindingMode: {mode}}}"
    )
}

const USER: &str = r#"spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes}]}"#;

#[test]
fn unused_claim_waiting_for_a_consumer_is_current() {
    let lazy = class("WaitForFirstConsumer");
    check(&all(&[CLAIM, &lazy]), "Current");
    check(&all(&[CLAIM, &class("Immediate")]), "InProgress < /PersistentVolumeClaim/shop/data");
    check(&all(&[CLAIM, &lazy, &pod("web", USER)]), "InProgress < /Pod/shop/web: 0/3 nodes");
    check(&all(&[CLAIM, &lazy, &pod("web", USER).replace("phase: Pending", "phase: Succeeded")]), "Current");
    check(&all(&[CLAIM, &lazy, &pod("web", USER).replace("claimName: data", "claimName: other")]), "Current");
    let other = lazy.replace("name: standard", "name: other");
    let missing = "InProgress < /PersistentVolumeClaim/shop/data: StorageClass standard does not exist";
    check(&all(&[CLAIM, &other]), missing);
    // Who dumped no class at all has left them out; the controller's own words tell what the class says.
    check(CLAIM, "InProgress < /PersistentVolumeClaim/shop/data: PVC is not Bound. phase: Pending");
    let waits = event("PersistentVolumeClaim/data", "Normal", "WaitForFirstConsumer", 9, "11:59:00", "waits");
    check(&all(&[CLAIM, &waits]), "Current");
    // The default class, of a claim that names none.
    let default = lazy.replace(
        "name: standard",
        "name: fast, annotations: {storageclass.kubernetes.io/is-default-class: \"true\"}",
    );
    check(&all(&[&CLAIM.replace("{storageClassName: standard}", "{}"), &default]), "Current");
    check(&all(&[&CLAIM.replace("standard", "\"\""), &default]), "InProgress");
}

#[test]
fn unscheduled_pod_chain_ends_at_an_unbound_claim() {
    let used = pod("web", USER);
    check(&all(&[&used, CLAIM, &class("Immediate")]), "Failed < /PersistentVolumeClaim/shop/data");
    // That one waits for the Pod.
    check(&all(&[&used, CLAIM, &class("WaitForFirstConsumer")]), "Failed < /Pod/shop/web: 0/3 nodes");
    let failing =
        event("PersistentVolumeClaim/data", "Warning", "ProvisioningFailed", 9, "11:59:00", "no capacity");
    check(
        &all(&[&used, CLAIM, &class("WaitForFirstConsumer"), &failing]),
        "Failed < /PersistentVolumeClaim/shop/data: no capacity",
    );
    check(
        &all(&[CLAIM, &class("Immediate"), &failing]),
        "InProgress < /PersistentVolumeClaim/shop/data: no capacity",
    );
    let ephemeral = pod("web", &USER.replace("persistentVolumeClaim: {claimName: data}", "ephemeral: {}"));
    let own = CLAIM.replace("name: data", "name: web-data");
    check(&all(&[&ephemeral, &own, &class("Immediate")]), "Failed < /PersistentVolumeClaim/shop/web-data");
}

#[test]
fn a_lost_claim_has_failed() {
    check(&CLAIM.replace("Pending", "Lost"), "Failed < /PersistentVolumeClaim/shop/data: lost its volume");
    check(&CLAIM.replace("Pending", "Bound"), "Current");
}

fn autoscaler(condition: &str, reason: &str, at: &str) -> String {
    format!(
        r#"
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: web, namespace: shop}}
spec: {{scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}}}
status: {{conditions: [{{type: {condition}, status: "False", reason: {reason}, message: it says why, lastTransitionTime: "2026-03-01T{at}Z"}}]}}
"#
    )
}

#[test]
fn an_autoscaler_fails_from_its_third_minute_on() {
    let own = "Failed < autoscaling/HorizontalPodAutoscaler/shop/web: it says why";
    check(&autoscaler("ScalingActive", "FailedGetResourceMetric", "11:58:01"), "Current");
    check(&autoscaler("ScalingActive", "FailedGetResourceMetric", "11:58:00"), own);
    check(&autoscaler("AbleToScale", "FailedGetScale", "11:00:00"), own);
    check(&autoscaler("AbleToScale", "BackoffBoth", "11:00:00"), "Current");
    check(&autoscaler("ScalingActive", "ScalingDisabled", "11:00:00"), "Current");
    check(&autoscaler("ScalingLimited", "FailedSomehow", "11:00:00"), "Current");
}

#[test]
fn a_load_balancer_needs_an_address() {
    let service = |kind: &str, ingress: &str| {
        format!(
            r#"
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{type: {kind}, clusterIP: 10.0.0.1}}
status: {{loadBalancer: {{ingress: {ingress}}}}}
"#
        )
    };
    check(&service("LoadBalancer", "[]"), "InProgress < /Service/shop/web: no address");
    check(&service("LoadBalancer", "[{ip: 192.0.2.1}]"), "Current");
    check(&service("LoadBalancer", "[{hostname: lb.example.com}]"), "Current");
    check(&service("LoadBalancer", "[{ip: \"\"}]"), "InProgress");
    check(&service("NodePort", "[]"), "Current");
    let event = event("Service/web", "Warning", "SyncLoadBalancerFailed", 7, "11:59:00", "no subnet");
    check(&all(&[&service("LoadBalancer", "[]"), &event]), "InProgress < /Service/shop/web: no subnet");
}

#[test]
fn unreachable_api_chain_ends_at_its_pod() {
    let api = r#"
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.metrics}
spec: {service: {name: metrics, namespace: shop}}
status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints, message: no addresses}]}
"#;
    let service = "{apiVersion: v1, kind: Service, metadata: {name: metrics, namespace: shop}}";
    let slice = r#"
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: metrics-x, namespace: shop, labels: {kubernetes.io/service-name: metrics}}
endpoints: [{addresses: [10.0.0.1], conditions: {ready: false}, targetRef: {kind: Pod, namespace: shop, name: metrics-a}}]
"#;
    let crash = "status: {phase: Running, containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}}]}";
    check(api, "Failed < apiregistration.k8s.io/APIService//v1.metrics: no addresses");
    check(&all(&[api, service, slice, &pod("metrics-a", crash)]), "Failed < /Pod/shop/metrics-a: back-off");
    check(
        &all(&[
            api,
            service,
            &slice.replace("service-name: metrics", "service-name: other"),
            &pod("metrics-a", crash),
        ]),
        "Failed < apiregistration.k8s.io/APIService//v1.metrics",
    );
    check(&api.replace("\"False\"", "\"True\""), "Current");
    check(&api.replace("\"False\"", "Unknown"), "Current");
}

fn deleted(yaml: &str, finalizers: &str) -> String {
    yaml.replacen(
        "metadata: {",
        &format!("metadata: {{deletionTimestamp: \"2026-02-01T00:00:00Z\", finalizers: [{finalizers}], "),
        1,
    )
}

#[test]
fn deletion_chain_ends_at_the_blocking_object() {
    let claim = deleted(&CLAIM.replace("Pending", "Bound"), "kubernetes.io/pvc-protection");
    let user = USER.replace("spec: {", "spec: {nodeName: node-1, ").replace("0/3 nodes", "x");
    check(&claim, "Terminating < /PersistentVolumeClaim/shop/data: kubernetes.io/pvc-protection");
    check(&all(&[&claim, &pod("web", &user)]), "Terminating < /Pod/shop/web");
    check(&all(&[&claim, &pod("web", USER)]), "Terminating < /PersistentVolumeClaim/shop/data");
    // One that has ended holds it, too.
    let ended = user.replace("phase: Pending", "phase: Succeeded");
    check(&all(&[&claim, &pod("web", &ended)]), "Terminating < /Pod/shop/web");

    let volume = deleted(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\nspec: {claimRef: {kind: PersistentVolumeClaim, namespace: shop, name: data}}",
        "kubernetes.io/pv-protection",
    );
    let bound = CLAIM.replace("Pending", "Bound");
    check(
        &all(&[&volume, &bound]),
        "Terminating < /PersistentVolumeClaim/shop/data: claim data is still bound",
    );

    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: left, namespace: old}";
    let namespace = deleted("apiVersion: v1\nkind: Namespace\nmetadata: {name: old}", "kubernetes");
    let stuck = deleted(widget, "example.com/cleanup");
    check(
        &all(&[&namespace, &stuck]),
        "Terminating < example.com/Widget/old/left: waits for finalizers: example.com/cleanup",
    );
    let failing = event("Widget/left", "Warning", "CleanupFailed", 3, "11:59:00", "bucket is not empty")
        .replace("shop", "old");
    check(
        &all(&[&namespace, &stuck, &failing]),
        "Terminating < example.com/Widget/old/left: cleanup; bucket is not empty",
    );
    check(&all(&[&namespace, widget]), "Terminating < /Namespace//old");

    let definition = deleted(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec: {group: example.com, names: {kind: Widget}}",
        "customresourcecleanup.apiextensions.k8s.io",
    );
    check(&all(&[&definition, &stuck]), "Terminating < example.com/Widget/old/left");

    let owner = deleted(
        "apiVersion: example.com/v1\nkind: Owner\nmetadata: {name: own, namespace: old, uid: u-own}",
        "foregroundDeletion",
    );
    let owned =
        stuck.replacen("name: left,", "name: left, ownerReferences: [{uid: u-own, controller: true}],", 1);
    check(&all(&[&owner, &owned]), "Terminating < example.com/Widget/old/left");
}

const WIDGET: &str = r#"
apiVersion: example.com/v1
kind: Widget
metadata: {name: blue, uid: u-blue, generation: 1, creationTimestamp: "2026-03-01T11:56:00Z"}
"#;

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {group: example.com, names: {kind: Widget}, versions: [{name: v1, subresources: {status: {}}}, {name: v2}]}
"#;

#[test]
fn missing_first_status_is_in_progress_for_five_minutes() {
    check(
        &all(&[WIDGET, DEFINITION]),
        "InProgress < example.com/Widget//blue: no controller has written the object's status",
    );
    check(&all(&[&(WIDGET.to_owned() + "status: {}"), DEFINITION]), "InProgress");
    check(&all(&[&(WIDGET.to_owned() + "status: {phase: Done}"), DEFINITION]), "Current");
    check(&all(&[&WIDGET.replace("11:56:00", "11:55:01"), DEFINITION]), "InProgress");
    check(&all(&[&WIDGET.replace("11:56:00", "11:55:00"), DEFINITION]), "Current");
    check(WIDGET, "Current");
    // This version has no status of its own.
    check(&all(&[&WIDGET.replace("example.com/v1", "example.com/v2"), DEFINITION]), "Current");
    check(&all(&[WIDGET, &DEFINITION.replace("kind: Widget}", "kind: Gadget}")]), "Current");
}

#[test]
fn custom_resource_chain_ends_at_owned_or_named_objects() {
    let unready = WIDGET.to_owned()
        + r#"spec: {issuerRef: {group: cert-manager.io, kind: ClusterIssuer, name: ca}}
status: {observedGeneration: 1, conditions: [{type: Ready, status: "False", message: "waits"}]}"#;
    check(&unready, "InProgress < example.com/Widget//blue: waits");
    let issuer = r#"
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: ca}
status: {conditions: [{type: Ready, status: "False", message: no account}]}
"#;
    check(&all(&[&unready, issuer]), "InProgress < cert-manager.io/ClusterIssuer//ca: no account");
    check(
        &all(&[&unready, &issuer.replace("\"False\"", "\"True\"")]),
        "InProgress < example.com/Widget//blue",
    );
    let crash = "status: {phase: Running, containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}}]}";
    let pod = pod_of("Widget/blue", "blue-0", crash);
    // What is in a namespace speaks for an owner beside it.
    let unready = unready.replace("name: blue,", "name: blue, namespace: shop,");
    check(&all(&[&unready, &pod]), "Failed < /Pod/shop/blue-0: back-off");
    check(&all(&[&unready.replace("\"False\"", "\"True\""), &pod]), "Current");
    check(
        &all(&[&unready.replace("observedGeneration: 1", "observedGeneration: 0"), &pod]),
        "InProgress < example.com/Widget/shop/blue",
    );
}

fn kustomization(name: &str, reason: &str, message: &str, spec: &str) -> String {
    format!(
        r#"
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: {name}, namespace: flux, generation: 1}}
spec: {spec}
status: {{conditions: [{{type: Reconciling, status: "True", reason: ProgressingWithRetry}},
  {{type: Ready, status: "False", reason: {reason}, message: "{message}", observedGeneration: 1}}]}}
"#
    )
}

#[test]
fn flux_dependencies_are_named_and_followed() {
    let apps = kustomization(
        "apps",
        "DependencyNotReady",
        "dependency 'flux/infra' is not ready",
        "{dependsOn: [{name: infra}]}",
    );
    let infra = kustomization("infra", "BuildFailed", "no such file", "{}");
    check(
        &apps,
        "InProgress < kustomize.toolkit.fluxcd.io/Kustomization/flux/apps: dependency 'flux/infra' is not ready",
    );
    let cause = "InProgress < kustomize.toolkit.fluxcd.io/Kustomization/flux/infra";
    check(&all(&[&apps, &infra]), &format!("{cause}: dependency 'flux/infra' is not ready"));
    check(&all(&[&apps, &infra]), &format!("{cause}: dependency 'flux/infra' is not ready: no such file"));
    check(&infra, "Failed < kustomize.toolkit.fluxcd.io/Kustomization/flux/infra: no such file");

    let fresh = kustomization(
        "fresh",
        "ArtifactFailed",
        "Source artifact not found",
        "{sourceRef: {kind: GitRepository, name: fresh}}",
    );
    let source = r#"
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fresh, namespace: flux}
status: {conditions: [{type: Ready, status: "False", reason: GitOperationFailed, message: Unauthorized}]}
"#;
    check(
        &all(&[&fresh, source]),
        "Failed < source.toolkit.fluxcd.io/GitRepository/flux/fresh: Source artifact not found: Unauthorized",
    );
    // Another reason has nothing to do with the source.
    let other = kustomization(
        "fresh",
        "HealthCheckFailed",
        "timeout",
        "{sourceRef: {kind: GitRepository, name: fresh}}",
    );
    check(&all(&[&other, source]), "Failed < kustomize.toolkit.fluxcd.io/Kustomization/flux/fresh: timeout");
}

#[test]
fn absent_is_not_found_and_unobserved_is_unknown() {
    let objects = read(JOB);
    let mut evidence = dump(&objects);
    evidence.set_unobserved("", "Secret");
    let tell = |text: &str| {
        let rules = taffrail_status::ActiveRules::default();
        let assessment = taffrail_status::assess::assess_named(&name(text), &evidence, &rules, now());
        assert_eq!(assessment.chain.len(), 1);
        assessment.verdict.status
    };
    assert_eq!(tell("/ConfigMap/shop/web"), Status::NotFound);
    assert_eq!(tell("/Secret/shop/web"), Status::Unknown);
}

#[test]
fn deletion_is_blocked_by_non_controlled_dependents() {
    let of = |kind: &str, name: &str, more: &str| {
        format!(
            "{{apiVersion: example.com/v1, kind: {kind}, metadata: {{name: {name}, namespace: shop, uid: u-{name}, \
             deletionTimestamp: '2026-03-01T11:00:00Z', finalizers: [example.com/{name}]{more}}}}}"
        )
    };
    let owner = of("Farm", "farm", "");
    let owned = ", ownerReferences: [{apiVersion: example.com/v1, kind: Farm, name: farm, uid: u-farm}]";
    let waits = "Terminating < example.com/Field/shop/field: waits for finalizers: example.com/field";
    check(&all(&[&owner, &of("Field", "field", owned)]), waits);
    check(&all(&[&owner, &of("Field", "field", "")]), "Terminating < example.com/Farm/shop/farm");
}

#[test]
fn a_namespaced_dependent_blocks_a_cluster_scoped_owner_only_by_foreground_deletion() {
    let of = |kind: &str, name: &str, finalizer: &str, more: &str| {
        format!(
            "{{apiVersion: example.com/v1, kind: {kind}, metadata: {{name: {name}, uid: u-{name}, \
             deletionTimestamp: '2026-03-01T11:00:00Z', finalizers: [{finalizer}]{more}}}}}"
        )
    };
    let reference = |more: &str| {
        format!(
            ", ownerReferences: [{{apiVersion: example.com/v1, kind: Farm, name: farm, uid: u-farm{more}}}]"
        )
    };
    let tenant =
        |more: &str| of("Field", "aaa", "blame/another", &format!("{}, namespace: aaa", reference(more)));
    let inner = of("Barn", "inner", "cloud/db", &reference(""));
    let (owner, waiting) =
        (of("Farm", "farm", "example.com/farm", ""), of("Farm", "farm", "foregroundDeletion", ""));
    let of_inner = "Terminating < example.com/Barn//inner: waits for finalizers: cloud/db";
    let of_tenant = "Terminating < example.com/Field/aaa/aaa: waits for finalizers: blame/another";
    let blocks = ", blockOwnerDeletion: true";
    check(&all(&[&owner, &inner, &tenant(blocks)]), of_inner);
    check(&all(&[&owner, &tenant(blocks)]), "Terminating < example.com/Farm//farm");
    check(&all(&[&waiting, &inner, &tenant("")]), of_inner);
    check(&all(&[&waiting, &tenant(blocks)]), of_tenant);
}
