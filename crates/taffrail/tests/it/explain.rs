//! `taffrail explain` on dumps.

use serde_json::json;

use super::{Answer, NOW, assert_shown, golden_app, of_case, own_app, str, taffrail};

fn explain(case: &str, arguments: &[&str]) -> Answer {
    of_case(&["explain"], case, arguments)
}

#[test]
fn the_cause_comes_first_and_a_command_last() {
    let answer = explain("argo-failures", &["argocd/web"]);
    assert_shown(
        &answer.stdout,
        str![[r#"
argo-application argocd/web is Failed

Cause
  Pod web/web-rh4wc9sqk-8vpjn: CrashLoopBackOff, not ready for 7 min
  back-off 2m40s restarting failed container=web pod=web-rh4wc9sqk-8vpjn_web([UID])
  - container web ended with exit code 1 (Error)

Changes before
  at that time: Deployment web/web, image of container web: ghcr.io/acme/web:1.4.2 → ghcr.io/acme/web:1.5.0

Cause chain
  Deployment web/web  Failed: Updated: 1/2
  └ ReplicaSet web/web-rh4wc9sqk  Failed: Available: 0/1
    └ Pod web/web-rh4wc9sqk-8vpjn  Failed

Next steps
  kubectl describe pod web-rh4wc9sqk-8vpjn -n web
  kubectl logs web-rh4wc9sqk-8vpjn -c web --previous -n web

"#]],
    );
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

#[test]
fn apps_and_objects_are_found_by_every_form_of_name() {
    let worst = |name: &str| {
        let answer = explain("argo-failures", &[name, "-o", "json"]).json();
        answer["object"]["kind"].as_str().map(str::to_owned)
    };
    for name in ["web", "argocd/web", "argo-application/argocd/web", "deploy/web", "deployments.apps/web"] {
        assert_eq!(worst(name).as_deref(), Some("Deployment"), "{name}");
    }
    assert_eq!(worst("po/web-rh4wc9sqk-8vpjn").as_deref(), Some("Pod"));
    // By its full name an object is looked up even where nothing of the kind is there.
    assert_eq!(worst("batch/Job/web/absent").as_deref(), Some("Job"));
    assert_eq!(worst("svc/web").as_deref(), Some("Service"), "what was asked for, though it is well");
}

#[test]
fn unknown_names_are_reported_with_suggestions() {
    for (arguments, says, hint) in [
        (&["wbe"][..], "there is no app 'wbe'", "did you mean argo-application/argocd/web?"),
        (
            &["deploy/web", "-n", "docs"],
            "there is no deploy 'web'",
            "an object of that name is in another namespace: `taffrail explain deploy/web -n web --from ",
        ),
        (&["deploy/nope"], "there is no deploy 'nope'", "-n NAMESPACE"),
        (&["nosuch/web"], "there is no app 'nosuch/web'", "did you mean argo-application/argocd/web?"),
        (&["a/"], "is neither the name of an app nor of an object", "KIND/NAME"),
    ] {
        let answer = explain("argo-failures", arguments);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{}", answer.stderr);
        assert!(answer.stderr.contains(says) && answer.stderr.contains(hint), "{}", answer.stderr);
    }
    // What is there is explained all the same.
    let answer = explain("argo-failures", &["wbe", "web"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stdout.starts_with("argo-application argocd/web is Failed"), "{}", answer.stdout);
}

#[test]
fn ambiguous_name_lists_the_apps() {
    let answer = explain("label-groups", &["blog"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{}", answer.stderr);
    assert!(answer.stderr.contains("label/web-staging/blog, label/web/blog"), "{}", answer.stderr);
    // The first of them may be anybody's: none is offered to be copied.
    assert!(
        answer.stderr.contains("choose one of these apps: `taffrail explain NAME --from ")
            && answer.stderr.contains(" --now 2026-03-01T12:00:00Z` with its full name"),
        "{}",
        answer.stderr
    );
    for (arguments, namespace) in
        [(&["blog", "-n", "web"][..], "web"), (&["web-staging/blog"], "web-staging")]
    {
        let answer = explain("label-groups", &[arguments, &["-o", "json"]].concat()).json();
        assert_eq!(answer["app"]["namespace"], namespace);
    }
}

#[test]
fn explain_shows_ownership() {
    let head = |case: &str, arguments: &[&str]| {
        let answer = explain(case, arguments);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.stdout.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let app = "  belongs to argo-application argocd/web, from apps/web of https://git.example.com/acme/deploy.git, \
               at 399be79a";
    assert_eq!(head("argo-failures", &["svc/web", "-n", "web"]), ["Service web/web is Ready", app]);
    assert_eq!(
        head("argo-failures", &["pod/web-rh4wc9sqk-8vpjn"]),
        [
            "Pod web/web-rh4wc9sqk-8vpjn is Failed",
            "  controlled by ReplicaSet web/web-rh4wc9sqk, which is controlled by Deployment web/web",
            app,
        ]
    );
    assert_eq!(
        head("argo-failures", &["argoproj.io/Application/argocd/web"]),
        ["Application argocd/web is Ready", "  declares argo-application argocd/web"]
    );
    let answer = explain("argo-failures", &["rs/web-rh4wc9sqk", "-o", "json"]).json();
    assert_eq!(answer["owners"][0]["kind"], "Deployment");
    assert_eq!(answer["belongsTo"][0]["name"], "web");
    // An object of two apps belongs to both, and one of none to none.
    assert_eq!(
        explain("overlap", &["deploy/web", "-o", "json"]).json()["belongsTo"].as_array().unwrap().len(),
        2
    );
    let alone = taffrail(
        &["explain", "cm/one", "--from", "-"],
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: a, name: one}\n",
    );
    assert_shown(
        &alone.stdout,
        str![[r#"
ConfigMap a/one is Ready
  belongs to no known app

"#]],
    );
}

#[test]
fn explain_without_a_name_covers_all_unready_apps() {
    let list = explain("argo-failures", &["-o", "json"]).json();
    assert_eq!(list["kind"], "ExplanationList");
    let names = |list: &serde_json::Value| {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["app"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&list), ["web", "metrics", "api", "docs"], "the worst comes first");
    assert_eq!(explain("argo-failures", &["--exit-status"]).code, 1);

    let well = explain("flux-kustomization-well", &["--exit-status"]);
    assert_eq!((well.code, well.stdout.as_str()), (0, ""));
    assert_eq!(well.stderr, "Every app is ready, and no sync or source has a problem.\n");
    let well = explain("flux-kustomization-well", &["shop", "-o", "json"]).json();
    assert_eq!((&well["health"], &well["object"]["kind"]), (&"Current".into(), &"Kustomization".into()));
}

#[test]
fn explain_claims_no_readiness_of_what_was_not_read() {
    let dump = std::fs::read_to_string(golden_app("flux-kustomization-well")).unwrap();
    let answer = taffrail(&["explain", "--from", "-", "--now", NOW], &format!("{dump}\n---\n[\n"));
    assert_eq!((answer.code, answer.stdout.as_str()), (3, ""), "{}", answer.stderr);
    let told = "No problem found, but not everything could be read.\n";
    assert!(answer.stderr.contains(told), "{}", answer.stderr);
}

#[test]
fn declared_objects_are_one_app() {
    let declared = ["--declared", "apps/Deployment/web/web,/Service/web/web", "-o", "json"];
    let answer = explain("argo-failures", &declared).json();
    assert_eq!(answer["kind"], "Explanation");
    assert_eq!(answer.get("app"), None);
    assert_eq!(answer["object"]["name"], "web");
    let wrong = explain("argo-failures", &["--declared", "Deployment/web"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("is not the name of an object"), "{}", wrong.stderr);

    let row = of_case(&["get", "apps"], "argo-failures", &declared).json();
    assert_eq!((&row["items"][0]["objects"], &row["items"][0]["health"]), (&2.into(), &"Failed".into()));
}

/// Returns the output of `explain` for a case of our own.
fn explain_own(case: &str, arguments: &[&str]) -> Answer {
    taffrail(&[&["explain", "--from", &own_app(case), "--now", NOW], arguments].concat(), "")
}

#[test]
fn a_sync_that_failed_is_told_of_an_app_that_is_ready() {
    for (name, sync, words) in [("docs", "Unknown", "source failed"), ("api", "Failed", "sync failed")] {
        let answer = explain("argo-failures", &[name]);
        let (first, rest) = answer.stdout.split_once('\n').unwrap();
        assert_eq!(first, format!("argo-application argocd/{name} is Ready, {words}"));
        let next = format!("\n\nNext steps\n  kubectl describe application.argoproj.io {name} -n argocd\n");
        assert!(rest.ends_with(&next), "{rest}");
        let json = explain("argo-failures", &[name, "-o", "json"]).json();
        assert_eq!((&json["sync"], &json["chain"]), (&sync.into(), &serde_json::json!([])));
    }
    // What is not well says why itself.
    assert_eq!(explain("argo-failures", &["web", "-o", "json"]).json().get("sync"), None);
}

#[test]
fn damaged_helm_release_suggests_helm() {
    let json = explain("helm-secret-damaged", &["ops/mail", "-o", "json"]).json();
    assert_eq!(json["chain"][0]["reason"], "Unreadable");
    assert_eq!(json["next"], serde_json::json!(["helm history mail -n ops"]));
}

#[test]
fn an_app_in_another_cluster_is_looked_for_by_its_name() {
    let json = explain_own("argo-destinations", &["unknown", "-o", "json"]).json();
    let command = "taffrail explain argo-application/argocd/unknown --all-contexts";
    assert_eq!(json["next"], serde_json::json!([command]));
}

#[test]
fn explain_shows_suspended_objects_of_healthy_apps() {
    let paused = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: u-web, generation: 2}
spec: {replicas: 1, paused: true}
status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1,
  conditions: [{type: Available, status: "True"}]}
"#;
    let explain =
        |form: &[&str]| taffrail(&[&["explain", "--from", "-", "deployment/web"], form].concat(), paused);
    let text = explain(&[]).stdout;
    assert!(text.starts_with("Deployment shop/web is Ready\n  Deployment shop/web is paused\n"), "{text}");
    let json = explain(&["-o", "json"]).json();
    assert_eq!(json["flagged"][0]["object"]["name"], "web");
    assert_eq!(json["flagged"][0]["flags"], serde_json::json!(["paused"]));
}

#[test]
fn nested_app_has_the_status_of_its_own_row() {
    let from = own_app("argo-app-of-apps");
    let of = |what: &[&str]| {
        let end = ["--from", &from, "--now", NOW, "-o", "json"];
        taffrail(&[what, &end].concat(), "").json()
    };
    let rows = of(&["get", "resources", "-A"]);
    let rows = rows["items"].as_array().unwrap();
    let child = rows.iter().find(|row| row["kind"] == "Application" && row["name"] == "kid-bad").unwrap();
    assert_eq!(child["status"], "Failed");
    assert!(child["message"].as_str().unwrap().starts_with("back-off"), "{child}");
    // Argo CD takes no child's health for that of the parent, and neither does the roll-up.
    let root = &of(&["app", "argocd/root"])["items"][0]["app"];
    assert_eq!((&root["health"], &root["counts"]["Failed"]), (&"Current".into(), &1.into()));
}

/// A Deployment whose rollout crashes after somebody wrote its image, its arguments and its ConfigMap.
pub(crate) const CHANGED: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: u-web, generation: 2, creationTimestamp: "2026-02-01T00:00:00Z",
  annotations: {deployment.kubernetes.io/revision: "2"}}
spec: {replicas: 1}
status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1,
  conditions: [{type: Available, status: "False", lastTransitionTime: "2026-03-01T11:50:00Z"}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-a, namespace: shop, uid: u-a, creationTimestamp: "2026-02-01T00:00:00Z", annotations: {deployment.kubernetes.io/revision: "1"},
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u-web, controller: true}]}
spec: {replicas: 0, template: {spec: {containers: [{name: app, image: "web:1", args: [--fast]}]}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-b, namespace: shop, uid: u-b, creationTimestamp: "2026-03-01T11:47:00Z", annotations: {deployment.kubernetes.io/revision: "2"},
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u-web, controller: true}]}
spec: {replicas: 1, template: {spec: {containers: [{name: app, image: "web:2", args: [--password, s3cr3t]}]}}}
status: {replicas: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: web-b-1, namespace: shop, uid: u-p, creationTimestamp: "2026-03-01T11:47:00Z",
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-b, uid: u-b, controller: true}]}
spec: {containers: [{name: app, image: "web:2", envFrom: [{configMapRef: {name: settings}}]}]}
status: {phase: Running, conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-03-01T11:50:00Z"}],
  containerStatuses: [{name: app, restartCount: 5, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop, creationTimestamp: "2026-02-01T00:00:00Z",
  managedFields: [{manager: kubectl-edit, operation: Update, time: "2026-03-01T11:49:30Z", fieldsV1: {"f:data": {"f:key": {}}}}]}
data: {key: value}
"#;

#[test]
fn changes_before_a_failure_contain_no_values() {
    let explain = |form: &[&str]| {
        let now = ["explain", "deploy/web", "-n", "shop", "--from", "-", "--now", NOW];
        taffrail(&[&now[..], form].concat(), CHANGED).stdout
    };
    let text = explain(&[]);
    let section = "\
Changes before
  30 s before: ConfigMap shop/settings, contents, by kubectl-edit
  3 min before: Deployment shop/web, image of container app: web:1 → web:2
  3 min before: Deployment shop/web, Pod template: args of container app

Cause chain
";
    assert!(text.contains(section), "{text}");
    let json = explain(&["-o", "json"]);
    assert!(!text.contains("s3cr3t") && !json.contains("s3cr3t"), "{json}");
    let pod = taffrail(&["explain", "po/web-b-1", "-n", "shop", "--from", "-", "--now", NOW], CHANGED);
    assert!(pod.stdout.contains("image of container app: web:1 → web:2"), "{}", pod.stdout);
}

/// A Deployment that is well, made by one manager, scaled by another; its Pod; and what its HPA and its status say.
pub(crate) const SCALED: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: u-web, generation: 3, creationTimestamp: "2026-02-01T00:00:00Z",
  managedFields: [
    {manager: helm, operation: Update, time: "2026-02-01T00:00:00Z", fieldsV1: {"f:spec": {"f:template": {}, "f:selector": {}}}},
    {manager: argocd, operation: Apply, time: "2026-03-01T11:00:00Z", fieldsV1: {"f:spec": {"f:template": {}, "f:strategy": {}}}},
    {manager: flux, operation: Apply, time: "2026-03-01T11:10:00Z", fieldsV1: {"f:spec": {"f:template": {}}}},
    {manager: kubectl-set, operation: Update, time: "2026-03-01T11:20:00Z", fieldsV1: {"f:spec": {"f:template": {"f:spec": {
      "f:containers": {'k:{"name":"app"}': {"f:image": {}}}}}}}},
    {manager: kubectl-set, operation: Update, time: "2026-03-01T11:15:00Z", apiVersion: apps/v1beta1, fieldsV1: {"f:spec": {"f:paused": {}}}},
    {manager: kubectl, operation: Update, subresource: scale, time: "2026-02-20T10:00:00Z", fieldsV1: {"f:spec": {"f:replicas": {}}}},
    {manager: labeller, operation: Update, time: "2026-03-01T11:50:00Z", fieldsV1: {"f:metadata": {
      "f:labels": {".": {}, "f:team": {}}, "f:annotations": {"f:note": {}}}}},
    {manager: old-controller, operation: Update, time: "2026-03-01T11:55:00Z", fieldsV1: {"f:metadata": {"f:annotations": {"f:a": {}}}, "f:status": {}}},
    {manager: kube-controller-manager, operation: Update, subresource: status, time: "2026-03-01T11:59:00Z", fieldsV1: {"f:status": {}, "f:spec": {}}}]}
spec: {replicas: 3, template: {spec: {containers: [{name: app, image: "web:3"}]}}}
status: {observedGeneration: 3, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3,
  conditions: [{type: Available, status: "True"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop, creationTimestamp: "2026-02-01T00:00:00Z",
  managedFields: [{manager: kubectl-edit, operation: Update, time: "2026-03-01T11:49:30Z", fieldsV1: {"f:data": {"f:key": {}}}}]}
data: {key: s3cr3t}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-a, namespace: shop, uid: u-a, generation: 1, creationTimestamp: "2026-02-01T00:00:00Z",
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u-web, controller: true}]}
spec: {replicas: 3}
status: {observedGeneration: 1, replicas: 3, fullyLabeledReplicas: 3, readyReplicas: 3, availableReplicas: 3}
"#;

#[test]
fn last_changes_are_the_newest_of_each_manager_and_include_who_scaled() {
    let ask = |what: &str, form: &[&str]| {
        let now = ["explain", what, "-n", "shop", "--from", "-", "--now", NOW];
        taffrail(&[&now[..], form].concat(), SCALED)
    };
    let last = "
Last changed
  10 min ago: Deployment shop/web, metadata, by labeller: label team, annotation note
  40 min ago: Deployment shop/web, image of container app, by kubectl-set: web:3
  50 min ago: Deployment shop/web, spec, by flux: template
  1 h ago: Deployment shop/web, spec, by argocd: strategy, template
  9 d ago: Deployment shop/web, replicas, by kubectl: 3
";
    // What controllers made is as what controls it wants it.
    for what in ["deploy/web", "rs/web-a"] {
        let text = ask(what, &[]).stdout;
        assert!(text.ends_with(last), "{text}");
    }
    let json = ask("deploy/web", &["-o", "json"]).json();
    assert_eq!(json["object"]["name"], "web");
    assert_eq!(json.get("changed"), None);
    let scaled = &json["lastChanged"][4];
    assert_eq!(
        (&scaled["by"], &scaled["to"], &scaled["fields"][0]),
        (&"kubectl".into(), &"3".into(), &"replicas".into())
    );

    let text = ask("cm/settings", &[]).stdout;
    assert!(text.ends_with("\n  10 min ago: ConfigMap shop/settings, contents, by kubectl-edit\n"), "{text}");
    assert!(!ask("cm/settings", &["-o", "json"]).stdout.contains("s3cr3t"));
}

#[test]
fn unmarked_listed_object_is_shown_as_unconfirmed() {
    let objects = "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {namespace: tenant, name: zz}
status: {inventory: {entries: [{id: shop_web__ConfigMap, v: v1}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: web}
";
    let told = taffrail(&["explain", "cm/web", "-n", "shop", "--from", "-"], objects);
    assert!(told.stdout.contains("listed by flux-kustomization tenant/zz (unconfirmed"), "{}", told.stdout);
    assert!(!told.stdout.contains("belongs to"), "{}", told.stdout);
    let json = taffrail(&["explain", "cm/web", "-n", "shop", "--from", "-", "-o", "json"], objects).json();
    assert_eq!(json["listedBy"][0]["name"], "zz");
    assert!(json["belongsTo"].is_null(), "{json}");
    let table = taffrail(&["get", "resources", "--from", "-"], objects);
    assert!(table.stdout.contains("Ready, unconfirmed"), "{}", table.stdout);
}

/// The API server writes no time into the entry of a scale (`managedfields.ScaleHandler`).
#[test]
fn last_changes_tell_who_scaled_at_an_unknown_time() {
    let objects = SCALED.replace("subresource: scale, time: \"2026-02-20T10:00:00Z\"", "subresource: scale");
    assert_ne!(objects, SCALED);
    let ask = |form: &[&str]| {
        let now = ["explain", "deploy/web", "-n", "shop", "--from", "-", "--now", NOW];
        taffrail(&[&now[..], form].concat(), &objects)
    };
    let text = ask(&[]).stdout;
    // It may be the newest.
    let first = "\nLast changed\n  time not known: Deployment shop/web, replicas, by kubectl: 3\n";
    assert!(text.contains(first), "{text}");
    let json = ask(&["-o", "json"]).json();
    let scaled = &json["lastChanged"][0];
    assert_eq!((&scaled["by"], &scaled["to"], scaled.get("when")), (&"kubectl".into(), &"3".into(), None));
}

#[test]
fn who_suspended_an_app_is_told_where_the_app_is_shown() {
    let db = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "apps", "name": "db", "managedFields": [
            {"manager": "kubectl-patch", "operation": "Update", "time": "2026-03-01T11:50:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:suspend": {}}}}]},
        "spec": {"suspend": true, "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "message": "Applied revision: main@sha1:1"}]}});
    let dump = json!({"apiVersion": "v1", "kind": "List", "items": [db]}).to_string();
    let asked = |name: &str, more: &[&str]| {
        let arguments = [name, "db", "--from", "-", "--now", "2026-03-01T12:00:00Z"];
        taffrail(&[&arguments[..], more].concat(), &dump)
    };
    let explained = asked("explain", &[]).stdout;
    assert!(explained.contains("\n  suspended by kubectl-patch, 10 min ago\n"), "{explained}");
    let app = asked("app", &[]).stdout;
    assert!(app.contains("True by kubectl-patch, 10 min ago"), "{app}");
    let suspension = json!({"by": "kubectl-patch", "at": "2026-03-01T11:50:00Z"});
    assert_eq!(asked("explain", &["-o", "json"]).json()["suspension"], suspension);
    let app = asked("app", &["-o", "json"]).json();
    assert_eq!(app["items"][0]["reconciliation"]["delivery"][0]["suspension"], suspension);
}
