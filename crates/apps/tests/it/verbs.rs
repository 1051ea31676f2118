//! Plans for reconcile, suspend and resume, per tool; refusals, and progress.
//!
//! The annotations and fields are those of Flux (`fluxcd/pkg` `apis/meta/annotations.go`) and of Argo CD v3.6
//! (`pkg/apis/application/v1alpha1/types.go`, Operation and SyncPolicyAutomated).

use serde_json::{Value, json};
use taffrail_apps::verbs::{DiffLine, Plan, Progress, Reconcile, Refusal, Verb, plan, settled, sources};
use taffrail_apps::{App, AppList, Snapshot};
use taffrail_object::Projection;

use super::dump::{NOW, apps_of, document, holding, insert};

const AT: &str = "2026-03-01T12:00:00Z";
const RECONCILE: Verb =
    Verb::Reconcile(Reconcile { with_source: false, force: false, reset: false, hard: false, sync: false });

fn kustomization(spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "flux-system", "name": "shop", "resourceVersion": "7"},
        "spec": {"path": "./shop", "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}

fn repository(spec: Value) -> Value {
    json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"namespace": "flux-system", "name": "fleet"}, "spec": spec})
}

fn helm_release() -> Value {
    json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"namespace": "web", "name": "cache"},
        "spec": {"chart": {"spec": {"chart": "redis", "sourceRef": {"kind": "HelmRepository", "name": "acme", "namespace": "flux-system"}}}},
        "status": {"helmChart": "flux-system/web-cache", "inventory": {"entries": []}}})
}

fn chart() -> Value {
    json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart",
        "metadata": {"namespace": "flux-system", "name": "web-cache"},
        "spec": {"chart": "redis", "sourceRef": {"kind": "HelmRepository", "name": "acme"}}})
}

fn helm_repository(kind: &str) -> Value {
    json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
        "metadata": {"namespace": "flux-system", "name": "acme"}, "spec": {"url": "https://charts.example.com", "type": kind}})
}

fn application(policy: Value, annotations: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"namespace": "argocd", "name": "api", "resourceVersion": "12", "annotations": annotations},
        "spec": {"destination": {"server": "https://kubernetes.default.svc"}, "syncPolicy": policy,
            "source": {"repoURL": "https://git.example.com/deploy.git", "path": "api", "targetRevision": "main"}},
        "status": {"sync": {"status": "Synced", "revision": "1"}},
    })
}

/// Returns the plan for the app of this name in a cluster with these objects.
fn planned(objects: &[Value], name: &str, verb: Verb) -> Result<Plan, Refusal> {
    let cluster = holding("prod", objects);
    let list = apps_of(&cluster);
    plan(named(&list, name), verb, &cluster, &list, NOW)
}

fn named<'l>(list: &'l AppList, name: &str) -> &'l App {
    list.apps.iter().find(|app| app.app.name == name).unwrap()
}

/// Returns the lines of a plan with one step.
fn shown(plan: &Plan) -> Vec<String> {
    assert_eq!(plan.steps.len(), 1, "{plan:?}");
    plan.steps[0].patch.lines().into_iter().map(text).collect()
}

fn text(line: DiffLine) -> String {
    match line {
        DiffLine::Context(text) => format!(" {text}"),
        DiffLine::Removed(text) => format!("-{text}"),
        DiffLine::Added(text) => format!("+{text}"),
    }
}

fn body(plan: &Plan, at: usize) -> Value {
    serde_json::from_slice(&plan.steps[at].patch.body()).unwrap()
}

/// Returns the objects of the steps, by kind and name.
fn steps(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| format!("{} {}", step.object.kind, step.object.path())).collect()
}

fn nothing(plan: Result<Plan, Refusal>) -> String {
    let plan = plan.unwrap();
    assert!(plan.steps.is_empty(), "{plan:?}");
    plan.nothing.unwrap()
}

#[test]
fn reconcile_annotates_flux_objects() {
    let plan = planned(&[kustomization(json!({}))], "shop", RECONCILE).unwrap();
    let requested = format!("+    reconcile.fluxcd.io/requestedAt: \"{AT}\"");
    assert_eq!(shown(&plan), [" metadata:", "   annotations:", &requested]);
    assert_eq!(body(&plan, 0), json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": AT}}}));
}

#[test]
fn reconcile_with_source_patches_fetched_sources_first() {
    let with_source = Verb::Reconcile(Reconcile { with_source: true, ..Reconcile::default() });
    let plan = planned(&[kustomization(json!({})), repository(json!({}))], "shop", with_source).unwrap();
    assert_eq!(steps(&plan), ["GitRepository flux-system/fleet", "Kustomization flux-system/shop"]);
    let objects = |kind| [helm_release(), chart(), helm_repository(kind)];
    let plan = planned(&objects("default"), "cache", with_source).unwrap();
    let all = ["HelmRepository flux-system/acme", "HelmChart flux-system/web-cache", "HelmRelease web/cache"];
    assert_eq!(steps(&plan), all);
    // Registries have no index to be fetched: nobody would answer.
    assert_eq!(steps(&planned(&objects("oci"), "cache", with_source).unwrap()), all[1..]);

    let suspended = [kustomization(json!({})), repository(json!({"suspend": true}))];
    let refused = planned(&suspended, "shop", with_source).unwrap_err();
    assert!(refused.message.contains("GitRepository flux-system/fleet, is suspended"), "{refused}");
    let refused = planned(&[kustomization(json!({}))], "shop", with_source).unwrap_err();
    assert!(refused.message.contains("GitRepository flux-system/fleet"), "{refused}");

    let cluster = holding("prod", &objects("default"));
    let wanted = sources(&cluster, &["cache".parse().unwrap()]);
    assert_eq!(wanted.iter().map(|key| &*key.kind).collect::<Vec<_>>(), ["HelmRepository", "HelmChart"]);
    assert!(sources(&cluster, &["other".parse().unwrap()]).is_empty());
}

#[test]
fn force_and_reset_use_the_token_of_the_request() {
    let how = Reconcile { force: true, reset: true, ..Reconcile::default() };
    let plan = planned(&[helm_release(), chart()], "cache", Verb::Reconcile(how)).unwrap();
    let all =
        ["forceAt", "requestedAt", "resetAt"].map(|it| (format!("reconcile.fluxcd.io/{it}"), json!(AT)));
    assert_eq!(body(&plan, 0)["metadata"]["annotations"], Value::Object(all.into_iter().collect()));
    let refused = planned(&[kustomization(json!({}))], "shop", Verb::Reconcile(how)).unwrap_err();
    assert!(refused.message.starts_with("--force does not apply to"), "{refused}");
}

#[test]
fn suspend_and_resume_write_spec_suspend_of_flux_objects() {
    let (running, suspended) = (kustomization(json!({})), kustomization(json!({"suspend": true})));
    let plan = planned(std::slice::from_ref(&running), "shop", Verb::Suspend).unwrap();
    assert_eq!(shown(&plan), [" spec:", "+  suspend: true"]);
    assert_eq!(nothing(planned(&[running], "shop", Verb::Resume)), "the app is not suspended");

    let plan = planned(std::slice::from_ref(&suspended), "shop", Verb::Resume).unwrap();
    assert_eq!(shown(&plan)[3..], [" spec:", "-  suspend: true", "+  suspend: false"]);
    assert!(body(&plan, 0)["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"].is_string());

    let mut by_hand = suspended;
    by_hand["metadata"]["managedFields"] = json!([
        {"manager": "kustomize-controller", "operation": "Apply", "time": "2026-02-01T08:00:00Z", "fieldsV1": {"f:spec": {"f:path": {}}}},
        {"manager": "kubectl-edit", "operation": "Update", "time": "2026-02-28T08:00:00Z", "fieldsV1": {"f:spec": {"f:suspend": {}}}},
    ]);
    let already = nothing(planned(&[by_hand.clone()], "shop", Verb::Suspend));
    assert_eq!(already, "the app is already suspended by kubectl-edit since 2026-02-28T08:00:00Z");
    let refused = planned(&[by_hand], "shop", RECONCILE).unwrap_err();
    assert!(refused.message.contains("is suspended by kubectl-edit since"), "{refused}");
    assert_eq!(refused.hint, "first resume the app: `taffrail resume flux-kustomization/flux-system/shop`");
}

#[test]
fn a_flux_request_is_handled_once_its_status_repeats_it() {
    let objects = [kustomization(json!({}))];
    let plan = planned(&objects, "shop", RECONCILE).unwrap();
    let after = |handled: &str, ready: Value| {
        let mut object = objects[0].clone();
        object["status"] = json!({"lastHandledReconcileAt": handled, "conditions": [ready]});
        plan.steps[0].progress(&holding("prod", &[object]), "8")
    };
    let ready = |status: &str, reason: &str| json!({"type": "Ready", "status": status, "reason": reason, "message": "so"});
    let waits = |progress| matches!(progress, Progress::Waiting(_));
    assert!(waits(after("2026-02-28T12:00:00Z", ready("True", "ReconciliationSucceeded"))));
    assert!(waits(after(AT, ready("Unknown", "Progressing"))));
    assert!(waits(after(AT, ready("False", "DependencyNotReady"))));
    assert_eq!(after(AT, ready("True", "ReconciliationSucceeded")), Progress::Done);
    let failed = after(AT, ready("False", "BuildFailed"));
    let why = "the reconciliation of Kustomization flux-system/shop failed: so";
    assert_eq!(failed, Progress::Failed(why.to_owned()));
    let gone = plan.steps[0].progress(&holding("prod", &[]), "8");
    assert_eq!(gone, Progress::Failed("Kustomization flux-system/shop was deleted".to_owned()));
}

#[test]
fn reconcile_refreshes_or_syncs_an_application() {
    let automated = json!({"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"], "retry": {"limit": 2}});
    let objects = [application(automated, json!({}))];
    let plan = planned(&objects, "api", RECONCILE).unwrap();
    assert_eq!(
        body(&plan, 0),
        json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}})
    );
    let hard = Verb::Reconcile(Reconcile { hard: true, ..Reconcile::default() });
    let plan = planned(&objects, "api", hard).unwrap();
    assert_eq!(body(&plan, 0)["metadata"]["annotations"]["argocd.argoproj.io/refresh"], "hard");

    let sync = Verb::Reconcile(Reconcile { sync: true, ..Reconcile::default() });
    let plan = planned(&objects, "api", sync).unwrap();
    assert_eq!(
        body(&plan, 0),
        json!({"metadata": {"resourceVersion": "12"}, "operation": {"initiatedBy": {"username": "taffrail"}, "retry": {"limit": 2},
            "sync": {"prune": true, "revision": "main", "syncOptions": ["CreateNamespace=true"]}}})
    );
    // Nobody said that anything may be deleted.
    let plan = planned(&[application(json!({}), json!({}))], "api", sync).unwrap();
    assert_eq!(body(&plan, 0)["operation"]["sync"], json!({"prune": false, "revision": "main"}));

    let mut busy = objects[0].clone();
    busy["operation"] = json!({"sync": {}});
    assert!(
        planned(&[busy.clone()], "api", sync).unwrap_err().message.contains("already has a sync operation")
    );
    busy["operation"] = Value::Null;
    busy["status"]["operationState"] = json!({"phase": "Running", "message": "waiting for hooks"});
    assert!(planned(&[busy], "api", sync).unwrap_err().message.contains("Running, waiting for hooks"));
    let skipped = application(json!({}), json!({"argocd.argoproj.io/skip-reconcile": "true"}));
    let refused = planned(&[skipped], "api", RECONCILE).unwrap_err();
    assert_eq!(refused.hint, "first resume the app: `taffrail resume argo-application/argocd/api`");
}

#[test]
fn an_argo_cd_request_is_handled_once_it_is_removed() {
    let objects = [application(json!({}), json!({}))];
    let sync = Verb::Reconcile(Reconcile { sync: true, hard: true, ..Reconcile::default() });
    let of = |verb, version: &str, annotations: Value, operation: Value, phase: &str| {
        let plan = planned(&objects, "api", verb).unwrap();
        let mut object = application(json!({}), annotations);
        object["metadata"]["resourceVersion"] = json!(version);
        object["operation"] = operation;
        object["status"]["operationState"] = json!({"phase": phase, "message": "so"});
        plan.steps[0].progress(&holding("prod", &[object]), "20")
    };
    let refresh = || json!({"argocd.argoproj.io/refresh": "normal"});
    let waits = |progress| matches!(progress, Progress::Waiting(_));
    assert!(waits(of(RECONCILE, "12", json!({}), Value::Null, "")), "as it was before the request");
    assert!(waits(of(RECONCILE, "20", refresh(), Value::Null, "")));
    assert_eq!(of(RECONCILE, "21", json!({}), Value::Null, ""), Progress::Done);
    // An old failure is not that of what was asked.
    assert_eq!(of(RECONCILE, "21", json!({}), Value::Null, "Failed"), Progress::Done);
    assert!(waits(of(sync, "21", json!({}), json!({"sync": {}}), "")));
    assert!(waits(of(sync, "21", json!({}), Value::Null, "Running")));
    assert_eq!(of(sync, "21", json!({}), Value::Null, "Succeeded"), Progress::Done);
    assert!(matches!(of(sync, "21", json!({}), Value::Null, "Failed"), Progress::Failed(_)));
}

#[test]
fn suspend_switches_off_automated_sync_in_old_and_new_argo_cd() {
    let policy = json!({"automated": {"prune": true}});
    let running = application(policy, json!({}));
    let plan = planned(std::slice::from_ref(&running), "api", Verb::Suspend).unwrap();
    assert_eq!(shown(&plan), [" spec:", "   syncPolicy:", "     automated:", "+      enabled: false"]);
    // What another client writes meanwhile is not overwritten.
    let version = json!({"resourceVersion": "12"});
    assert_eq!(
        body(&plan, 0),
        json!({"metadata": version, "spec": {"syncPolicy": {"automated": {"enabled": false}}}})
    );
    // What does not know the field loses its policy, which is kept; and only if nobody changes it meanwhile.
    let older: Value = serde_json::from_slice(&plan.steps[0].alternative.as_ref().unwrap().body()).unwrap();
    assert_eq!(
        older,
        json!({"metadata": {"resourceVersion": "12", "annotations": {"taffrail.dev/suspended-automated": "{\"prune\":true}"}},
            "spec": {"syncPolicy": {"automated": null}}})
    );
    assert_eq!(nothing(planned(&[running], "api", Verb::Resume)), "the app is not suspended");

    let newer = application(json!({"automated": {"prune": true, "enabled": false}}), json!({}));
    let kept = json!({"taffrail.dev/suspended-automated": "{\"prune\":true}"});
    let older = application(json!({}), kept);
    for suspended in [&newer, &older] {
        let list = apps_of(&holding("prod", std::slice::from_ref(suspended)));
        assert!(list.apps[0].suspended);
        assert_eq!(list.apps[0].sync.state.as_str(), "Synced", "it goes on comparing");
        let already = nothing(planned(std::slice::from_ref(suspended), "api", Verb::Suspend));
        assert!(already.starts_with("the app is already suspended"), "{already}");
    }
    let plan = planned(&[newer], "api", Verb::Resume).unwrap();
    let refresh = json!({"argocd.argoproj.io/refresh": "normal"});
    assert_eq!(
        body(&plan, 0),
        json!({"metadata": {"resourceVersion": "12", "annotations": refresh},
            "spec": {"syncPolicy": {"automated": {"enabled": null}}}})
    );
    let plan = planned(&[older], "api", Verb::Resume).unwrap();
    assert_eq!(
        body(&plan, 0),
        json!({"metadata": {"resourceVersion": "12", "annotations": {"argocd.argoproj.io/refresh": "normal",
            "taffrail.dev/suspended-automated": null}}, "spec": {"syncPolicy": {"automated": {"prune": true}}}})
    );
    let broken = application(json!({}), json!({"taffrail.dev/suspended-automated": "yes"}));
    assert!(planned(&[broken], "api", Verb::Resume).unwrap_err().message.contains("holds no sync policy"));
    let manual = application(json!({}), json!({}));
    assert!(nothing(planned(&[manual], "api", Verb::Suspend)).contains("only on request"));
    let skipped = application(json!({}), json!({"argocd.argoproj.io/skip-reconcile": "true"}));
    let plan = planned(&[skipped], "api", Verb::Resume).unwrap();
    assert_eq!(body(&plan, 0)["metadata"]["annotations"]["argocd.argoproj.io/skip-reconcile"], Value::Null);
}

#[test]
fn suspend_warns_about_tools_that_would_revert_it() {
    let parent = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "flux-system", "name": "apps"},
        "spec": {"path": "./apps", "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {"inventory": {"entries": [{"id": "flux-system_shop_kustomize.toolkit.fluxcd.io_Kustomization", "v": "v1"}]}},
    });
    let plan = planned(&[parent.clone(), kustomization(json!({}))], "shop", Verb::Suspend).unwrap();
    let may = "flux-kustomization flux-system/apps declares Kustomization flux-system/shop, and will revert \
        the change if its source sets spec.suspend";
    assert_eq!(plan.warnings, [may]);
    let mut applied = kustomization(json!({"suspend": false}));
    applied["metadata"]["managedFields"] = json!([{"manager": "kustomize-controller", "operation": "Apply",
        "fieldsV1": {"f:spec": {"f:suspend": {}}}}]);
    let plan = planned(&[parent.clone(), applied], "shop", Verb::Suspend).unwrap();
    assert!(
        plan.warnings[0].contains("its field manager kustomize-controller sets spec.suspend"),
        "{:?}",
        plan.warnings
    );
    // Who is suspended sets nothing back, and an annotation is nobody's.
    let mut still = parent.clone();
    still["spec"]["suspend"] = json!(true);
    assert!(planned(&[still, kustomization(json!({}))], "shop", Verb::Suspend).unwrap().warnings.is_empty());
    assert!(planned(&[parent, kustomization(json!({}))], "shop", RECONCILE).unwrap().warnings.is_empty());

    let mut made = application(json!({"automated": {}}), json!({}));
    made["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "all", "uid": "1"}]);
    let told = "ApplicationSet argocd/all makes Application argocd/api: when it reconciles next, it sets \
                spec.syncPolicy.automated.enabled to what its template says. Change \
                spec.template.spec.syncPolicy.automated.enabled of the ApplicationSet instead, or keep it from \
                writing the field: add /spec/syncPolicy to the jsonPointers in its spec.ignoreApplicationDifferences";
    let mut off = made.clone();
    off["spec"]["syncPolicy"] = json!({"automated": {"enabled": false}});
    for (app, verb) in [(made, Verb::Suspend), (off, Verb::Resume)] {
        assert_eq!(planned(&[app], "api", verb).unwrap().warnings, [told]);
    }
}

/// Any author can list an object in an inventory of their own.
#[test]
fn only_apps_that_mark_the_declaring_object_cause_a_revert_warning() {
    let listing = |namespace: &str, name: &str| {
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"path": "./", "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
            "status": {"inventory": {"entries": [{"id": "flux-system_shop_kustomize.toolkit.fluxcd.io_Kustomization", "v": "v1"}]}},
        })
    };
    let mut shop = kustomization(json!({}));
    let alone = [listing("team-a", "aaa"), shop.clone()];
    assert!(planned(&alone, "shop", Verb::Suspend).unwrap().warnings.is_empty());
    shop["metadata"]["labels"] = json!({
        "kustomize.toolkit.fluxcd.io/namespace": "zz", "kustomize.toolkit.fluxcd.io/name": "root"});
    let both = [listing("team-a", "aaa"), shop, listing("zz", "root")];
    let plan = planned(&both, "shop", Verb::Suspend).unwrap();
    assert!(plan.warnings[0].starts_with("flux-kustomization zz/root declares"), "{:?}", plan.warnings);
}

#[test]
fn verbs_are_refused_with_a_hint_for_other_tools() {
    let root = |name: &str| {
        json!({"apiVersion": "configsync.gke.io/v1beta1", "kind": "RootSync",
            "metadata": {"namespace": "config-management-system", "name": name}, "spec": {}})
    };
    let repo = json!({"apiVersion": "configsync.gke.io/v1beta1", "kind": "RepoSync",
        "metadata": {"namespace": "team-a", "name": "own"}, "spec": {}});
    let group = json!({"apiVersion": "kpt.dev/v1alpha1", "kind": "ResourceGroup",
        "metadata": {"namespace": "kpt", "name": "package"}, "spec": {}});
    let labelled = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "settings",
        "labels": {"app.kubernetes.io/instance": "plain"}}});
    let release = super::dump::release("shop", "chart", 1, "deployed", "");
    let objects = [root("root-sync"), root("extra"), repo, group, labelled, release];
    for (name, verb, hint) in [
        ("root-sync", RECONCILE, "rollout restart deployment root-reconciler"),
        ("extra", RECONCILE, "rollout restart deployment root-reconciler-extra"),
        ("own", RECONCILE, "rollout restart deployment ns-reconciler-team-a-own-3"),
        ("root-sync", Verb::Suspend, "pin spec.git.revision"),
        ("root-sync", Verb::Resume, "reconciler-manager --replicas=1"),
        ("package", RECONCILE, "kpt live apply"),
        ("package", Verb::Suspend, "there is nothing to suspend"),
        ("chart", RECONCILE, "helm upgrade chart CHART -n shop"),
        ("plain", Verb::Resume, "taffrail app label/"),
    ] {
        let refused = planned(&objects, name, verb).unwrap_err();
        assert!(refused.hint.contains(hint), "{name}: {refused:?}");
        assert!(refused.message.contains(name), "{refused:?}");
    }
}

#[test]
fn verbs_are_refused_for_objects_that_were_not_read_whole() {
    let mut cluster = Snapshot::dump("prod", NOW);
    insert(&mut cluster, &kustomization(json!({})));
    let list = apps_of(&cluster);
    let mut partly = Snapshot::dump("prod", NOW);
    partly.insert(document(&kustomization(json!({}))), Projection::Metadata).unwrap();
    let refused = plan(&list.apps[0], Verb::Suspend, &partly, &list, NOW).unwrap_err();
    assert!(refused.message.contains("only its metadata was read"), "{refused}");
    let refused = plan(&list.apps[0], Verb::Suspend, &holding("prod", &[]), &list, NOW).unwrap_err();
    assert!(refused.message.contains("Kustomization flux-system/shop cannot be read"), "{refused}");
}

#[test]
fn fields_that_the_server_drops_are_detected() {
    let plan =
        planned(&[application(json!({"automated": {"prune": true}}), json!({}))], "api", Verb::Suspend)
            .unwrap();
    let dropped = |policy: Value| {
        let object = document(&application(policy, json!({})));
        plan.steps[0].patch.dropped(&taffrail_object::Object::new(object.root()).unwrap())
    };
    assert_eq!(dropped(json!({"automated": {"prune": true}})), ["spec.syncPolicy.automated.enabled"]);
    assert!(dropped(json!({"automated": {"prune": true, "enabled": false}})).is_empty());
}

#[test]
fn an_app_is_settled_when_ready_and_not_syncing() {
    let mut object = kustomization(json!({}));
    let mut of = |ready: Value| {
        object["status"] = json!({"conditions": [ready], "lastAppliedRevision": "main@sha1:1"});
        let mut source = repository(json!({}));
        source["status"] = json!({"artifact": {"revision": "main@sha1:1"}});
        let list = apps_of(&holding("prod", &[object.clone(), source]));
        settled(&list.apps[0])
    };
    let ready = |status: &str, reason: &str| json!({"type": "Ready", "status": status, "reason": reason, "message": "so"});
    assert_eq!(of(ready("True", "ReconciliationSucceeded")), Progress::Done);
    assert_eq!(of(ready("False", "BuildFailed")), Progress::Failed("so".to_owned()));
    assert!(matches!(of(ready("Unknown", "Progressing")), Progress::Waiting(_)));
}

/// An author of a Kustomization can name any object as its source.
#[test]
fn reconcile_does_not_patch_sources_of_other_groups() {
    let with_source = Verb::Reconcile(Reconcile { with_source: true, ..Reconcile::default() });
    let groups =
        [("apps/v1", "Deployment"), ("/v1", "Secret"), ("source.toolkit.fluxcd.io/v1", "Deployment")];
    for (version, kind) in groups {
        let mut own = kustomization(json!({}));
        own["spec"]["sourceRef"] =
            json!({"apiVersion": version, "kind": kind, "name": "api", "namespace": "team-b"});
        let other =
            json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": "team-b", "name": "api"}});
        let cluster = holding("prod", &[own.clone()]);
        assert_eq!(sources(&cluster, &["shop".parse().unwrap()]), []);
        let refused = planned(&[own, other], "shop", with_source).unwrap_err();
        assert!(refused.message.contains("not a Flux source: nothing is written to it"), "{refused}");
    }
}

#[test]
fn reconcile_with_source_patches_sources_in_other_namespaces() {
    let with_source = Verb::Reconcile(Reconcile { with_source: true, ..Reconcile::default() });
    let elsewhere = |own: Value, source: Value| {
        let cluster = holding("prod", &[own, source]);
        let list = apps_of(&cluster);
        let app = named(&list, "shop");
        let plan = plan(app, with_source, &cluster, &list, NOW).unwrap();
        let objects = plan.steps.iter().map(|step| &step.object);
        let elsewhere = objects.filter(|key| key.namespace != app.app.namespace);
        elsewhere.map(|key| key.path().to_string()).collect::<Vec<_>>()
    };
    assert!(elsewhere(kustomization(json!({})), repository(json!({}))).is_empty());
    let mut own = kustomization(json!({}));
    own["metadata"]["namespace"] = json!("team-a");
    own["spec"]["sourceRef"]["namespace"] = json!("flux-system");
    assert_eq!(elsewhere(own, repository(json!({}))), ["flux-system/fleet"]);
}
