//! Conditions to wait for, and the end of waiting.

use std::time::Duration;

use taffrail_apps::wait::{End, Judgement, Options, Seen, Subject, Target, Until, Wait, WaitState};
use taffrail_apps::{Snapshot, apps};
use taffrail_object::json::OwnedDocument;
use taffrail_object::{ObjectKey, Projection};
use taffrail_status::{ActiveRules, Status};

const NOW: &str = "2026-03-01T12:00:00Z";

fn cluster(objects: &[&str]) -> Snapshot {
    let mut cluster = Snapshot::dump("dev", NOW.parse().unwrap());
    for object in objects {
        let tree: serde_json::Value = taffrail_object::yaml::read(object).unwrap();
        let document = OwnedDocument::parse(tree.to_string().into_bytes()).unwrap();
        cluster.insert(document, Projection::Full).unwrap();
    }
    cluster
}

fn options(stable_for: u64, fail_fast: bool) -> Options {
    Options { stable_for: Duration::from_secs(stable_for), fail_fast, deadline: Duration::from_secs(300) }
}

fn wait(until: &str, options: Options) -> Wait {
    Wait::new(until.parse().unwrap(), options, Vec::new())
}

/// Looks once at the state of a cluster, this number of seconds after the start.
fn look(wait: &mut Wait, cluster: &Snapshot, targets: &[Target], at: u64) -> Option<End> {
    wait.learn(0, cluster, targets);
    let seen = Seen { snapshot: cluster, targets, is_settled: true, is_lost: false };
    let at = Duration::from_secs(at);
    let now = NOW.parse().unwrap();
    let found = || apps(&[cluster], &ActiveRules::default(), now);
    wait.look(&[seen], found, &ActiveRules::default(), now, at);
    wait.end(at)
}

fn said(wait: &Wait) -> Vec<Judgement> {
    wait.rows().map(|row| row.judgement.clone()).collect()
}

const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop, uid: one}";
const JOB: &str = "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop, uid: one}";

#[test]
fn each_condition_is_judged_with_its_reason() {
    let pod = |status: &str| format!("{POD}, status: {status}}}");
    let job = |status: &str| format!("{JOB}, status: {status}}}");
    let ready = "{phase: Running, conditions: [{type: Ready, status: 'True'}]}";
    let crashing = "{phase: Running, conditions: [{type: Ready, status: 'False'}], containerStatuses: [{name: c, \
                    state: {waiting: {reason: CrashLoopBackOff, message: back-off}}}]}";
    let failed =
        "{conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: too often}]}";
    let complete = "{startTime: x, conditions: [{type: Complete, status: 'True'}]}";
    for (object, until, verdict, why) in [
        (pod(ready), "current", WaitState::Met, ""),
        (pod("{phase: Pending}"), "current", WaitState::Waiting, "Pending"),
        (pod(crashing), "current", WaitState::Hopeless, "back-off"),
        (pod(crashing), "failed", WaitState::Met, "back-off"),
        (pod(crashing), "condition=Ready", WaitState::Hopeless, "the condition Ready is False, not True"),
        (pod(crashing), "condition=ready=false", WaitState::Met, "is False"),
        (
            pod(crashing),
            "jsonpath={.status.phase}=Succeeded",
            WaitState::Waiting,
            "{.status.phase} is Running, not Succeeded",
        ),
        (
            pod("{phase: Failed}"),
            "jsonpath={.status.phase}=Succeeded",
            WaitState::Hopeless,
            "ended without success",
        ),
        (pod(ready), "condition=Sunny", WaitState::Waiting, "no condition Sunny yet"),
        (pod(ready), "exists", WaitState::Met, "the object exists"),
        (pod(ready), "deleted", WaitState::Waiting, "its deletion has not been requested"),
        (pod(ready), "failed", WaitState::Waiting, "the object is ready"),
        (pod("{phase: Succeeded}"), "failed", WaitState::Hopeless, "has completed"),
        // Whoever waits with kubectl for a Job to complete that has failed waits for ever.
        (job(failed), "condition=Complete", WaitState::Hopeless, "the Job has failed"),
        (job(failed), "condition=Failed", WaitState::Met, "Failed is True"),
        (job(complete), "condition=Complete", WaitState::Met, "Complete is True"),
        (job(complete), "condition=Failed", WaitState::Hopeless, "the Job has completed"),
    ] {
        let held = cluster(&[&object]);
        let kind = if object.starts_with(JOB) { ("batch", "Job") } else { ("", "Pod") };
        let target = Target::Object(ObjectKey::new(kind.0, kind.1, "shop", "a"));
        let mut wait = wait(until, options(0, true));
        look(&mut wait, &held, &[target], 0);
        let said = said(&wait);
        assert_eq!(said.len(), 1);
        assert_eq!(said[0].verdict, verdict, "{until} of {object}: {said:?}");
        assert!(said[0].message.contains(why), "{until} of {object}: {}", said[0].message);
    }
}

#[test]
fn a_condition_of_an_older_generation_is_not_met() {
    let object = "{apiVersion: e.x/v1, kind: W, metadata: {name: a, namespace: shop, generation: 2}, status: \
                  {conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}}";
    let target = Target::Object(ObjectKey::new("e.x", "W", "shop", "a"));
    let mut wait = wait("condition=Ready", options(0, true));
    assert_eq!(look(&mut wait, &cluster(&[object]), &[target], 0), None);
    assert!(said(&wait)[0].message.contains("of generation 1, and 2 is the newest"), "{:?}", said(&wait));
}

#[test]
fn all_targets_must_be_met_at_once_for_the_stable_time() {
    let ready = format!("{POD}, status: {{phase: Succeeded}}}}");
    let pending = format!("{POD}, status: {{phase: Pending}}}}");
    let targets = [Target::Object(ObjectKey::new("", "Pod", "shop", "a"))];
    let mut wait = wait("current", options(10, true));
    assert_eq!(look(&mut wait, &cluster(&[&ready]), &targets, 0), None);
    assert_eq!(wait.next_moment(), Duration::from_secs(10));
    assert_eq!(look(&mut wait, &cluster(&[&pending]), &targets, 9), None);
    assert_eq!(look(&mut wait, &cluster(&[&ready]), &targets, 11), None);
    assert_eq!(look(&mut wait, &cluster(&[&ready]), &targets, 20), None);
    assert_eq!(look(&mut wait, &cluster(&[&ready]), &targets, 21), Some(End::Met));
}

#[test]
fn waiting_ends_on_failure_or_at_the_deadline() {
    let failed = format!("{JOB}, status: {{conditions: [{{type: Failed, status: 'True'}}]}}}}");
    let targets = [
        Target::Object(ObjectKey::new("batch", "Job", "shop", "a")),
        Target::Object(ObjectKey::new("", "Pod", "shop", "a")),
    ];
    let ready = format!("{POD}, status: {{phase: Succeeded}}}}");
    let mut fast = wait("current", options(0, true));
    assert_eq!(look(&mut fast, &cluster(&[&failed]), &targets, 0), None, "a Pod may still come");
    assert_eq!(look(&mut fast, &cluster(&[&failed, &ready]), &targets, 1), Some(End::Failed));
    let mut patient = wait("current", options(0, false));
    assert_eq!(look(&mut patient, &cluster(&[&failed, &ready]), &targets, 1), None);
    assert_eq!(
        look(&mut patient, &cluster(&[&failed, &ready]), &targets, 300),
        Some(End::Deadline { observed: true })
    );

    let lost = Snapshot::lost("dev", "Timeout", "no answer");
    let mut blind = wait("deleted", options(0, true));
    assert_eq!(look(&mut blind, &lost, &targets, 0), None, "what cannot be seen is not gone");
    assert_eq!(look(&mut blind, &lost, &targets, 300), Some(End::Deadline { observed: false }));
    assert!(said(&blind).iter().all(|it| it.verdict == WaitState::Unobserved && it.message == "no answer"));
}

#[test]
fn replaced_objects_count_as_deleted_and_inventory_members_are_remembered() {
    let other = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop, uid: two}, status: {phase: Running}}";
    let inventory = "{apiVersion: v1, kind: ConfigMap, metadata: {name: inv, namespace: shop, uid: i}, data: \
                     {shop_a__Pod: '', shop_b__Pod: ''}}";
    let pod = format!("{POD}, status: {{phase: Running}}}}");
    let targets = [Target::Inventory(ObjectKey::new("", "ConfigMap", "shop", "inv"))];
    let mut wait = wait("deleted", options(0, true));
    assert_eq!(look(&mut wait, &cluster(&[inventory, &pod]), &targets, 0), None);
    assert_eq!(wait.keys(0, &targets).len(), 3);
    assert_eq!(look(&mut wait, &cluster(&[&pod]), &targets, 1), None, "the inventory went first");
    let open: Vec<String> = said(&wait)
        .iter()
        .filter(|it| it.verdict != WaitState::Met)
        .map(|it| it.subject.to_string())
        .collect();
    assert_eq!(open, ["pod/a"]);
    assert_eq!(look(&mut wait, &cluster(&[other]), &targets, 2), Some(End::Met));
}

#[test]
fn invalid_conditions_are_refused() {
    for text in
        ["", "happy", "condition", "condition=", "condition==True", "condition=A=", "revision=", "jsonpath="]
    {
        assert!(text.parse::<Until>().is_err(), "{text}");
    }
    for text in ["current", "delete", "deleted", "create", "exists", "failed", "condition=A", "revision=v1"] {
        assert!(text.parse::<Until>().is_ok(), "{text}");
    }
    assert!("cel=true".parse::<Until>().is_err(), "the language is brought by others");
    assert!(Until::read("cel=", |_| Err(String::new())).is_err());
    let named = Target::UnknownKind { word: "deplyo".to_owned(), name: Some("web".to_owned()), why: None };
    let mut wait = wait("deleted", options(0, true));
    assert_eq!(
        look(&mut wait, &cluster(&[]), &[named], 0),
        Some(End::Failed),
        "a slip of the pen deletes nothing"
    );
    assert_eq!(said(&wait)[0].subject, Subject::Named("deplyo/web".to_owned()));
}

/// Returns the judgement of an app by a user with limited access, and the end of the wait at the deadline.
fn as_reader(
    objects: Vec<serde_json::Value>,
    forbidden: &[&'static str],
    app: &str,
) -> (String, String, Option<End>) {
    let mut server = super::server::Server::new(objects);
    server.forbidden.extend(forbidden);
    let query: taffrail_apps::AppQuery = app.parse().unwrap();
    let asked = taffrail_apps::ReadQuery {
        namespace: Some("team-b".to_owned()),
        by_name: true,
        only: vec![query.clone()],
        ..taffrail_apps::ReadQuery::default()
    };
    let (snapshot, _) = server.read("prod", &asked);
    let options = Options { deadline: Duration::from_secs(3), ..options(0, false) };
    let mut wait = Wait::new("current".parse().unwrap(), options, vec![query]);
    let end = look(&mut wait, &snapshot, &[], 0);
    let end = end.or_else(|| look(&mut wait, &snapshot, &[], 3));
    let judgement = &said(&wait)[0];
    (format!("{:?}", judgement.verdict), judgement.message.to_string(), end)
}

#[test]
fn an_app_that_may_exist_has_no_status() {
    let judged = |until: &str, snapshot: &Snapshot| {
        let mut wait = Wait::new(until.parse().unwrap(), options(0, false), vec!["gear".parse().unwrap()]);
        look(&mut wait, snapshot, &[], 0);
        let [judgement] = said(&wait).try_into().unwrap();
        (judgement.verdict, judgement.reason, judgement.status)
    };
    let mut hidden = cluster(&[]);
    let gone = (WaitState::Met, "NotFound".to_owned(), Some(Status::NotFound));
    assert_eq!(judged("deleted", &hidden), gone);
    hidden.report(taffrail_apps::ScopeError {
        scope: taffrail_apps::Scope::Kind {
            kind: taffrail_object::GroupKind::new("argoproj.io", "Application"),
            namespace: None,
        },
        reason: "Forbidden".to_owned(),
        message: "applications is forbidden".to_owned(),
    });
    assert_eq!(judged("deleted", &hidden), (WaitState::Unobserved, "Forbidden".to_owned(), None));

    let mut other = gear();
    other["metadata"]["namespace"] = "team-c".into();
    let both = cluster(&[&gear().to_string(), &other.to_string()]);
    assert_eq!(judged("current", &both), (WaitState::Hopeless, "Ambiguous".to_owned(), None));
}

/// Returns the Application of a namespace that an Argo CD in another one serves.
fn gear() -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "team-b", "name": "gear"},
        "spec": {"destination": {"server": "https://kubernetes.default.svc"}},
        "status": {"controllerNamespace": "argocd", "sync": {"status": "Synced"}, "health": {"status": "Healthy"}},
    })
}

#[test]
fn forbidden_declaring_kinds_make_a_missing_app_unobserved() {
    let missing = Some(End::Deadline { observed: true });
    let unknown = Some(End::Deadline { observed: false });
    assert_eq!(as_reader(Vec::new(), &[], "gear").2, missing);
    let (verdict, message, end) = as_reader(vec![gear()], &["argoproj.io/Application"], "gear");
    assert_eq!((&*verdict, end), ("Unobserved", unknown), "{message}");
    assert!(message.contains("applications is forbidden"), "{message}");
    // Whoever names the delivery wants to hear of that alone.
    assert_eq!(as_reader(vec![gear()], &["argoproj.io/Application"], "ks/gear").2, missing);
    assert_eq!(as_reader(vec![gear()], &["argoproj.io/Application"], "argo/gear").2, unknown);
}

/// A kind that could not be listed may hold the app that was named, and a tenant may have one of its name.
#[test]
fn a_short_app_name_is_unobserved_if_a_declaring_list_failed() {
    let judged = |name: &str, is_read: bool| {
        let server = super::server::Server::new(vec![gear()]);
        let query: taffrail_apps::AppQuery = name.parse().unwrap();
        let (mut snapshot, _) = server.read("prod", &taffrail_apps::ReadQuery::default());
        if !is_read {
            let kind = taffrail_object::GroupKind::new("kustomize.toolkit.fluxcd.io", "Kustomization");
            snapshot.report(taffrail_apps::ScopeError {
                scope: taffrail_apps::Scope::Kind { kind, namespace: None },
                reason: "Timeout".to_owned(),
                message: "no answer within 10.0 s".to_owned(),
            });
        }
        let mut wait = Wait::new("current".parse().unwrap(), options(0, false), vec![query]);
        look(&mut wait, &snapshot, &[], 0);
        said(&wait)[0].clone()
    };
    assert_eq!(judged("gear", true).verdict, WaitState::Met);
    let judgement = judged("gear", false);
    assert_eq!(judgement.verdict, WaitState::Unobserved, "{}", judgement.message);
    assert!(judgement.message.contains("another app of this name: no answer"), "{}", judgement.message);
    for name in ["team-b/gear", "argo/gear", "argo/team-b/gear"] {
        assert_eq!(judged(name, false).verdict, WaitState::Met, "{name}");
    }
}

#[test]
fn an_app_with_unreadable_health_scripts_is_unobserved() {
    assert_eq!(as_reader(vec![gear()], &[], "gear").0, "Met");
    let (verdict, message, end) = as_reader(vec![gear()], &["get /ConfigMap"], "gear");
    assert_eq!((&*verdict, end), ("Unobserved", Some(End::Deadline { observed: false })), "{message}");
    assert!(message.contains("ConfigMap argocd/argocd-cm"), "{message}");
}

#[test]
fn a_label_app_of_a_hidden_release_is_unobserved() {
    let part = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "namespace": "team-b", "name": "shop",
            "labels": {"app.kubernetes.io/instance": "shop", "app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "team-b"},
        },
    });
    assert_eq!(as_reader(vec![part.clone()], &[], "shop").0, "Met");
    let (verdict, message, _) = as_reader(vec![part], &["/Secret"], "shop");
    assert_eq!(verdict, "Unobserved", "{message}");
    assert!(message.contains("secrets is forbidden"), "{message}");
}

#[test]
fn an_app_whose_delivery_is_blocked_is_not_met() {
    let source = |ready: &str, reason: &str| {
        format!(
            "{{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {{name: fleet, namespace: flux-system, \
             generation: 1}}, spec: {{}}, status: {{observedGeneration: 1, artifact: {{revision: 'main@sha1:aaaa'}}, conditions: \
             [{{type: Ready, status: '{ready}', reason: {reason}, message: 'as told'}}]}}}}"
        )
    };
    let app = "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: shop, namespace: flux-system, \
               generation: 1}, spec: {sourceRef: {kind: GitRepository, name: fleet}}, status: {observedGeneration: 1, \
               lastAppliedRevision: 'main@sha1:aaaa', lastAttemptedRevision: 'main@sha1:aaaa', inventory: {entries: []}, \
               conditions: [{type: Ready, status: 'True', reason: ReconciliationSucceeded}]}}";
    let controller = |replicas: u8| {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: kustomize-controller, namespace: flux-system, \
             generation: 1}}, spec: {{replicas: {replicas}}}, status: {{observedGeneration: 1, replicas: {replicas}, \
             updatedReplicas: {replicas}, readyReplicas: {replicas}, availableReplicas: {replicas}}}}}"
        )
    };
    let judged = |objects: &[&str]| {
        let cluster = cluster(objects);
        let apps = vec!["shop".parse().unwrap()];
        let mut wait = Wait::new(Until::Current, options(0, true), apps);
        look(&mut wait, &cluster, &[], 0);
        let [one] = said(&wait).try_into().unwrap();
        (one.verdict, one.reason, one.message)
    };
    let fetched = source("True", "Succeeded");
    assert_eq!(judged(&[&fetched, app, &controller(1)]).0, WaitState::Met);
    let (verdict, reason, message) = judged(&[&fetched, app, &controller(0)]);
    assert_eq!((verdict, &*reason), (WaitState::Waiting, "ControllerStopped"), "{message}");
    let (verdict, reason, message) = judged(&[&source("False", "GitOperationFailed"), app, &controller(1)]);
    assert_eq!((verdict, &*reason), (WaitState::Waiting, "GitOperationFailed"), "{message}");

    // A suspended app is met as long as its source has nothing new: its tool would never apply that.
    let suspended = app.replace("spec: {sourceRef", "spec: {suspend: true, sourceRef");
    assert_eq!(judged(&[&fetched, &suspended, &controller(1)]).0, WaitState::Met);
    let newer = fetched.replace("main@sha1:aaaa", "main@sha1:bbbb");
    let (verdict, reason, message) = judged(&[&newer, &suspended, &controller(1)]);
    assert_eq!((verdict, &*reason), (WaitState::Hopeless, "Suspended"), "{message}");
    assert_eq!(message, "the app is suspended: main@sha1:bbbb is wanted, main@sha1:aaaa is applied");
}
