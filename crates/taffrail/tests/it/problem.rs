//! A row with a problem is not bare green in any view of the command line, whatever its axis.

use super::{Answer, taffrail};

const KUSTOMIZATION: &str = "\
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {namespace: flux-system, name: shop, generation: 1}
spec: {sourceRef: {kind: GitRepository, name: fleet}}
status:
  observedGeneration: 1
  lastAppliedRevision: main@sha1:1
  lastAttemptedRevision: main@sha1:1
  conditions: [{type: Ready, status: 'True', reason: ReconciliationSucceeded, message: Applied, observedGeneration: 1}]
  inventory: {entries: []}
";

/// A source that holds an artifact, with these conditions.
fn source(conditions: &str) -> String {
    format!(
        "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{namespace: flux-system, name: fleet}}\n\
         spec: {{interval: 5m0s}}\nstatus: {{conditions: [{conditions}], artifact: {{revision: 'main@sha1:1', \
         lastUpdateTime: '2026-03-01T09:00:00Z'}}}}\n"
    )
}

const FETCHED: &str = "{type: Ready, status: 'True'}";
const FAILING: &str = "{type: FetchFailed, status: 'True', message: authentication required, \
    lastTransitionTime: '2026-03-01T11:00:00Z'}, {type: Ready, status: 'False', reason: GitOperationFailed, \
    message: authentication required, lastTransitionTime: '2026-03-01T11:00:00Z'}";

const STOPPED: &str = "\
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: flux-system, name: kustomize-controller, generation: 1}
spec: {replicas: 0}
status: {observedGeneration: 1}
";

const SYNC_FAILED: &str = "\
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {namespace: argocd, name: shop}
spec: {destination: {server: 'https://kubernetes.default.svc'}, syncPolicy: {automated: {selfHeal: true}}}
status:
  health: {status: Healthy}
  sync: {status: OutOfSync, revision: c2}
  resources: [{kind: ConfigMap, namespace: shop, name: settings, status: OutOfSync}]
  operationState:
    phase: Failed
    message: one or more objects failed to apply
    finishedAt: '2026-03-01T11:30:00Z'
    syncResult:
      revision: c2
      resources:
        - {group: acme.dev, kind: Gear, namespace: shop, name: g, status: SyncFailed, message: make sure the CRD is installed}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: settings}
";

const MISSING: &str = "\
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {namespace: argocd, name: shop}
spec: {destination: {server: 'https://kubernetes.default.svc'}}
status:
  sync: {status: Synced, revision: c2}
  resources: [{kind: ConfigMap, namespace: shop, name: gone, status: Synced}]
";

fn ask(arguments: &[&str], dump: &str) -> Answer {
    taffrail(&[arguments, &["--from", "-", "--now", "2026-03-01T12:00:00Z"]].concat(), dump)
}

#[test]
fn each_axis_alone_is_seen_in_every_view() {
    for (axis, dump, words, says) in [
        ("health", MISSING.to_owned(), "NotFound", "gone not found"),
        ("sync", SYNC_FAILED.to_owned(), "Ready, sync failed", "make sure the CRD is installed"),
        (
            "sync",
            [&source(FETCHED), KUSTOMIZATION, STOPPED].concat(),
            "Ready, delivery stopped",
            "scaled to 0",
        ),
        (
            "source",
            [&source(FAILING), KUSTOMIZATION].concat(),
            "Ready, source failed",
            "authentication required",
        ),
    ] {
        let is_shown = |answer: &Answer| answer.stdout.contains("shop") && answer.stdout.contains(says);
        for view in [
            &["get", "apps"][..],
            &["get", "apps", "--problems"],
            &["get", "apps", "--status", "!Ready"],
            &["explain"],
            &["explain", "shop"],
            &["app", "shop"],
        ] {
            let answer = ask(view, &dump);
            assert!(is_shown(&answer) && answer.stdout.contains(words), "{view:?}: {}", answer.stdout);
            assert_eq!(ask(&[view, &["--exit-status"]].concat(), &dump).code, 1, "{view:?} {words}");
        }
        assert_eq!(ask(&["get", "apps", "--status", "Ready", "-o", "name"], &dump).stdout, "", "{words}");
        for one in ["health", "sync", "source", "freshness"] {
            let chosen = format!("--problems={one}");
            let answer = ask(&["get", "apps", "-o", "name", "--exit-status", &chosen], &dump);
            assert_eq!(answer.code, i32::from(one == axis), "{one}: {}", answer.stdout);
        }
        let clusters = ask(&["get", "clusters", "--exit-status"], &dump);
        assert!(clusters.stdout.contains("0/1") && clusters.stdout.contains(words), "{}", clusters.stdout);
        assert_eq!(clusters.code, 1, "{words}");
        let json = ask(&["get", "apps", "-o", "json"], &dump).json();
        assert_eq!(json["items"][0]["problem"]["axis"], axis);
        assert_eq!(json["items"][0]["problem"]["severity"], "error");
        if axis != "health" {
            assert!(
                ask(&["trust"], &dump).stdout.contains(says),
                "{words}: {}",
                ask(&["trust"], &dump).stdout
            );
        }
    }
}

#[test]
fn label_apps_have_no_sync_state() {
    let dump = format!(
        "{SYNC_FAILED}---
apiVersion: v1
kind: ConfigMap
metadata: {{namespace: notes, name: a, labels: {{app.kubernetes.io/instance: notes}}}}
"
    );
    let names = |list: &str| ask(&["get", "apps", "--sync", list, "-o", "name"], &dump).stdout;
    assert_eq!(names("!Synced"), "argo-application/argocd/shop\n");
    assert_eq!(names("Unknown"), "");
    let columns = ask(&["get", "apps", "notes", "--columns", "name,sync"], &dump);
    assert_eq!(columns.stdout, "NAME    SYNC\nnotes   -\n", "{}", columns.stderr);
    let json = ask(&["get", "apps", "notes", "-o", "json"], &dump).json();
    assert_eq!(json["items"][0]["sync"]["state"], "Unknown", "{json}");
}

#[test]
fn apps_are_chosen_by_the_state_of_their_sync() {
    let names = |list: &str| ask(&["get", "apps", "--sync", list, "-o", "name"], SYNC_FAILED).stdout;
    assert_eq!(names("Failed,OutOfSync"), "argo-application/argocd/shop\n");
    assert_eq!(names("synced"), "");
    assert_eq!(names("!Synced"), "argo-application/argocd/shop\n");
    assert_eq!(names("!OutOfSync, !Failed"), "");
    let wrong = ask(&["get", "apps", "--sync", "Sync"], SYNC_FAILED);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("Synced, OutOfSync, Syncing"), "{}", wrong.stderr);
    let wrong = ask(&["get", "resources", "--problems"], SYNC_FAILED);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("--problems applies to apps"), "{}", wrong.stderr);
}

#[test]
fn exit_status_judges_only_the_axes_that_problems_names() {
    // Its sync has failed, and an object is missing.
    let dump = SYNC_FAILED.split("---\napiVersion: v1").next().unwrap();
    let code = |problems: &str| ask(&["get", "apps", "--exit-status", problems], dump).code;
    for (problems, expected) in
        [("--problems", 1), ("--problems=sync", 1), ("--problems=source", 0), ("--problems=source,health", 1)]
    {
        assert_eq!(code(problems), expected, "{problems}");
    }
    // A notice on that axis has a row, and is no failure.
    let notice = format!("{}{}", source(FETCHED), KUSTOMIZATION.replace("spec: {", "spec: {suspend: true, "));
    let answer = ask(&["get", "apps", "--exit-status", "--problems=sync", "-o", "name"], &notice);
    assert_eq!((answer.code, &*answer.stdout), (0, "flux-kustomization/flux-system/shop\n"));
    let wrong = ask(&["get", "apps", "--problems=sink"], dump);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("health, sync, source, freshness"), "{}", wrong.stderr);
    // Names of apps are no axes.
    assert_eq!(
        ask(&["get", "apps", "--problems", "shop", "-o", "name"], dump).stdout,
        "argo-application/argocd/shop\n"
    );
}

#[test]
fn notice_does_not_set_the_exit_status() {
    let quiet = KUSTOMIZATION.replace("spec: {", "spec: {suspend: true, ");
    let dump = [&source(FETCHED), &*quiet].concat();
    let shown = ask(&["get", "apps", "--problems", "--exit-status"], &dump);
    assert!(shown.stdout.contains("Ready (suspended)"), "{}", shown.stdout);
    assert_eq!(shown.code, 0);
    assert_eq!(ask(&["get", "apps", "--status", "!Ready", "-o", "name"], &dump).stdout, "");
    assert!(ask(&["trust"], &dump).stdout.contains("suspended"));
}

#[test]
fn explain_and_app_say_what_argo_cd_says_of_each_object() {
    for view in [["explain", "shop"], ["app", "shop"]] {
        let answer = ask(&view, SYNC_FAILED).stdout;
        assert!(answer.contains("make sure the CRD is installed"), "{answer}");
        assert!(answer.contains("settings") && answer.contains("OutOfSync"), "{answer}");
    }
    let json = ask(&["explain", "shop", "-o", "json"], SYNC_FAILED).json();
    assert_eq!(json["unsynced"][0]["state"], "SyncFailed");
    assert_eq!(json["unsynced"][1]["object"]["name"], "settings");
    let resources = ask(&["get", "resources", "-o", "json"], SYNC_FAILED).json();
    assert_eq!(resources["items"][0]["sync"], "OutOfSync");
}

#[test]
fn a_row_that_shows_a_notice_says_what_it_is() {
    let row = |dump: &str| ask(&["get", "apps", "--no-headers"], dump).stdout;
    let manual =
        SYNC_FAILED.replace("phase: Failed", "phase: Succeeded").replace("automated: {selfHeal: true}", "");
    let shown = row(&manual);
    assert!(shown.contains("Ready, OutOfSync"), "{shown}");
    assert!(shown.contains("OutOfSync: ConfigMap shop/settings; automatic sync is off"), "{shown}");

    let quiet = KUSTOMIZATION.replace("spec: {", "spec: {suspend: true, ");
    let level = row(&[&source(FETCHED), &*quiet].concat());
    assert!(
        level.contains("the app is suspended: its delivery tool applies no changes by itself"),
        "{level}"
    );
    assert!(!level.contains("the source has"), "{level}");
    let behind = row(&[&source(FETCHED).replace("main@sha1:1", "main@sha1:2"), &*quiet].concat());
    let said =
        "the app is suspended: its delivery tool applies no changes by itself; the source has main@sha1:2";
    assert!(behind.contains("Ready (suspended)") && behind.contains(said), "{behind}");
}

#[test]
fn the_object_that_differs_is_seen_in_lists_and_trees() {
    let drifted = SYNC_FAILED.replace("phase: Failed", "phase: Succeeded");
    let row = |words: &[&str], dump: &str| {
        let answer = ask(words, dump).stdout;
        let row = answer.lines().rfind(|line| line.contains("settings"));
        row.unwrap_or_else(|| panic!("{words:?}: {answer}")).to_owned()
    };
    for view in [&["tree", "shop"][..], &["app", "shop"], &["get", "resources"]] {
        assert!(row(view, &drifted).contains("Ready, OutOfSync"), "{view:?}: {}", row(view, &drifted));
    }
    let dot = ask(&["tree", "shop", "-o", "dot"], &drifted).stdout;
    assert!(dot.contains("settings\\nReady, OutOfSync"), "{dot}");
    let wide = ask(&["get", "resources", "--columns", "name,sync"], &drifted).stdout;
    assert_eq!(wide, "NAME       SYNC\nsettings   OutOfSync\n");
    assert!(ask(&["get", "resources", "-o", "wide"], &drifted).stdout.contains("  SYNC  "));
    // As of apps, what has a problem that is more than a notice is not Ready.
    let names =
        |status: &str| ask(&["get", "resources", "--status", status, "-o", "name"], SYNC_FAILED).stdout;
    assert!(names("!Ready").contains("settings") && names("Ready").is_empty(), "{}", names("!Ready"));

    let tree = ask(&["tree", "shop"], SYNC_FAILED).stdout;
    let root = tree.lines().nth(1).unwrap_or_default();
    assert!(root.contains("Ready, sync failed") && root.contains("make sure the CRD is installed"), "{tree}");
    let json = ask(&["tree", "shop", "-o", "json"], SYNC_FAILED).json();
    let root = &json["items"][0]["root"];
    assert_eq!(
        (&root["problem"]["axis"], &root["children"][0]["sync"]),
        (&"sync".into(), &"OutOfSync".into())
    );
}

#[test]
fn each_view_says_why_an_object_is_not_synced() {
    let shown = |words: &[&str]| {
        let answer = super::of_case(words, "argo-failures", &[]).stdout;
        let mut rows = answer.lines().filter(|line| line.contains("exporter") && line.contains("Monitor"));
        rows.next_back().unwrap_or_else(|| panic!("{words:?}: {answer}")).to_owned()
    };
    let rows = [&["get", "resources", "metrics"][..], &["tree", "metrics"], &["app", "metrics"]].map(shown);
    super::assert_shown(
        &rows.join("\n"),
        super::str![[r#"
metrics     ServiceMonitor   exporter   NotFound, sync failed   argocd/metrics   The Kubernetes API could not find monitoring.coreos.com/ServiceMonitor for requested resource metrics/exporter. Make sure the "ServiceMonitor" CRD is installed on the destination cluster.
└── ServiceMonitor metrics/exporter        NotFound, sync failed          The Kubernetes API could not find monitoring.coreos.com/ServiceMonitor for requested resource metrics/exporter. Make sure the "ServiceMonitor" CRD is installed on the destination cluster.
ServiceMonitor   exporter                   NotFound, sync failed   metrics     The Kubernetes API could not find monitoring.coreos.com/ServiceMonitor for requested resource metrics/exporter. Make sure the "ServiceMonitor" CRD is installed on the destination cluster.
"#]],
    );
    let json = super::of_case(&["tree", "metrics", "-o", "json"], "argo-failures", &[]).json();
    let said = &json["items"][0]["root"]["children"][2];
    assert_eq!(
        said["message"],
        "ServiceMonitor metrics/exporter not found (the kind may be left out of the dump)"
    );
    let sync_message = said["syncMessage"].as_str().unwrap_or_default();
    assert!(sync_message.contains("Make sure the \"ServiceMonitor\" CRD is installed"), "{said}");
    assert_eq!(json["items"][0]["root"]["children"][0].get("syncMessage"), None);

    // An object that is not well says both, one that is well only why it is not synced.
    let failed = SYNC_FAILED
        .replace("group: acme.dev, kind: Gear", "kind: ConfigMap")
        .replace("name: g,", "name: settings,");
    let well = |view: &[&str]| ask(view, &failed).stdout;
    for view in [&["tree", "shop"][..], &["app", "shop"], &["get", "resources"]] {
        let row = well(view).lines().rfind(|line| line.contains("settings")).unwrap().to_owned();
        assert!(
            row.contains("Ready, sync failed") && row.ends_with(" make sure the CRD is installed"),
            "{row}"
        );
    }
    let leaving = failed.replace(
        "kind: ConfigMap\nmetadata: {",
        "kind: ConfigMap\nmetadata: {deletionTimestamp: '2026-03-01T11:59:00Z', finalizers: [a/b], ",
    );
    for view in [&["tree", "shop"][..], &["app", "shop"], &["get", "resources"]] {
        let answer = ask(view, &leaving).stdout;
        let row = answer.lines().rfind(|line| line.contains("settings")).unwrap();
        assert!(row.contains("Terminating, sync failed"), "{answer}");
        assert!(row.ends_with("; make sure the CRD is installed"), "{answer}");
    }
}

#[test]
fn a_tree_of_a_status_has_the_objects_that_the_list_has() {
    let names = |status: &str| ask(&["tree", "shop", "--status", status], SYNC_FAILED).stdout;
    assert!(names("!Ready").contains("ConfigMap shop/settings"), "{}", names("!Ready"));
    assert!(!names("Ready").contains("ConfigMap shop/settings"), "{}", names("Ready"));
    assert!(names("Ready").ends_with("… 1 object with another status is left out\n"), "{}", names("Ready"));
}

#[test]
fn applied_revision_is_not_shown_as_wanted() {
    let drifted = SYNC_FAILED.replace("phase: Failed", "phase: Succeeded");
    let behind = ask(&["app", "shop"], &drifted).stdout;
    assert!(behind.contains("OutOfSync: the desired revision is c2"), "{behind}");
    let history = "  history: [{revision: c2, deployedAt: '2026-03-01T11:30:00Z'}]\n  operationState:";
    let same = ask(&["app", "shop"], &drifted.replace("  operationState:", history)).stdout;
    assert!(
        same.contains("OutOfSync: the desired revision is applied, but ConfigMap shop/settings differs"),
        "{same}"
    );
}

#[test]
fn unreadable_objects_of_a_namespace_do_not_affect_another() {
    let damaged = "---\napiVersion: v1\nkind: Secret\ntype: helm.sh/release.v1\n\
                   metadata: {namespace: tenant, name: sh.helm.release.v1.r.v1}\ndata: {release: '!!'}\n";
    let dump = [&source(FETCHED), KUSTOMIZATION, damaged].concat();
    let questions: [&[&str]; 6] = [
        &["get", "apps", "-n", "flux-system", "--exit-status"],
        &["get", "resources", "-n", "flux-system"],
        &["explain", "flux-kustomization/flux-system/shop", "--exit-status"],
        &["explain", "-n", "flux-system"],
        &["trust", "-n", "flux-system"],
        &["events", "-n", "flux-system"],
    ];
    for question in questions {
        let answer = ask(question, &dump);
        assert!(answer.code == 0 && !answer.stderr.contains("tenant"), "{question:?}: {}", answer.stderr);
    }
    let own: [&[&str]; 5] = [
        &["get", "apps", "-n", "tenant"],
        &["explain", "helm/tenant/r"],
        &["trust", "-n", "tenant"],
        &["get", "apps"],
        &["explain"],
    ];
    for question in own {
        let answer = ask(question, &dump);
        let told = [answer.stdout, answer.stderr].concat();
        assert!(answer.code == 3 && told.contains("sh.helm"), "{question:?}: {told}");
    }
}
