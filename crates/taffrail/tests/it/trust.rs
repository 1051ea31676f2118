//! `taffrail trust` on dumps.

use super::{assert_shown, of_case, str, taffrail};

#[test]
fn findings_say_what_may_be_wrong_and_what_to_do() {
    let answer = of_case(&["trust"], "flux-source-failed", &[]);
    assert_shown(
        &answer.stdout,
        str![[r#"
Nothing proves that green is right
  unread      GitRepository flux-system/stale, for 40 min
    Flux cannot fetch the source, so its newest revision may not be the one that is Ready: failed to checkout and determine revision: dial tcp: lookup git.example.com: i/o timeout
    Green app: flux-system/stale
    > kubectl describe gitrepository.source.toolkit.fluxcd.io stale -n flux-system

Checked as of 2026-03-01 12:00:00 UTC: 4 apps (1 green), 5 objects, 1 Pod and 0 leases.
No leases were read: dead nodes and controllers would go unnoticed.

"#]],
    );
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

/// An app of Flux in a cluster with the Leases of Kubernetes' controllers alone.
const LEASED: &str = r#"
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: flux-system, generation: 1}
spec: {sourceRef: {kind: GitRepository, name: fleet}}
status: {observedGeneration: 1, inventory: {entries: []}, conditions: [{type: Ready, status: "True", observedGeneration: 1}]}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: kube-controller-manager, namespace: kube-system}
spec: {leaseDurationSeconds: 15, renewTime: "2026-03-01T11:59:59.000000Z"}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: kube-scheduler, namespace: kube-system}
spec: {leaseDurationSeconds: 15, renewTime: "2026-03-01T11:59:59.000000Z"}
"#;

/// Answers in JSON that name controllers without a Lease.
pub(super) fn sample() -> super::Answer {
    taffrail(&["trust", "--from", "-", "--now", "2026-03-01T12:00:00Z", "-o", "json"], LEASED)
}

#[test]
fn controllers_without_a_lease_are_named_with_what_that_means() {
    let answer = taffrail(&["trust", "--from", "-", "--now", "2026-03-01T12:00:00Z"], LEASED);
    let (_, checked) = answer.stdout.split_once("Checked ").unwrap();
    assert_shown(
        checked,
        str![[r#"
as of 2026-03-01 12:00:00 UTC: 1 app (1 green), 0 objects, 0 Pods and 2 leases.
No lease of source-controller, kustomize-controller: Taffrail sees if their workloads run, but not if they hang.

"#]],
    );
    let without = sample().json()["checked"][0]["withoutLease"].clone();
    assert_eq!(without, serde_json::json!(["source-controller", "kustomize-controller"]));
}

#[test]
fn trust_without_findings_lists_what_was_checked() {
    let answer = of_case(&["trust"], "helmrelease-well", &["--exit-status"]);
    assert!(answer.stdout.starts_with("Found no reason to doubt a green status.\n"), "{}", answer.stdout);
    assert!(answer.stdout.contains("2 apps (2 green), 6 objects, 3 Pods and 0 leases"), "{}", answer.stdout);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

#[test]
fn programs_get_the_same_with_all_fields() {
    let report = of_case(&["trust"], "flux-source-failed", &["-o", "json"]).json();
    assert_eq!(
        (&report["apiVersion"], &report["kind"]),
        (&"cli.taffrail.dev/v1alpha1".into(), &"TrustReport".into())
    );
    assert_eq!(
        report["items"][0],
        serde_json::json!({
            "category": "unread",
            "severity": "medium",
            "reason": "SourceFailed",
            "cluster": "cluster",
            "scope": "source.toolkit.fluxcd.io/GitRepository/flux-system/stale",
            "message": "Flux cannot fetch the source, so its newest revision may not be the one that is Ready: failed to checkout and \
                        determine revision: dial tcp: lookup git.example.com: i/o timeout",
            "since": "2026-03-01T11:20:00Z",
            "objects": [{
                "group": "source.toolkit.fluxcd.io", "kind": "GitRepository", "namespace": "flux-system", "name": "stale",
                "since": "2026-03-01T11:20:00Z",
            }],
            "objectCount": 1,
            "apps": [{"delivery": "flux-kustomization", "namespace": "flux-system", "name": "stale"}],
            "appCount": 1,
            "green": 1,
            "next": ["kubectl describe gitrepository.source.toolkit.fluxcd.io stale -n flux-system"],
        })
    );
    assert_eq!(
        report["checked"][0],
        serde_json::json!({
            "cluster": "cluster", "apps": 4, "green": 1, "objects": 5, "pods": 1, "leases": 0,
            "asOf": "2026-03-01T12:00:00Z",
        })
    );
    let yaml = of_case(&["trust"], "flux-source-failed", &["-o", "yaml"]).stdout;
    assert!(yaml.contains("kind: TrustReport\n"), "{yaml}");
    let names = of_case(&["trust"], "flux-source-failed", &["-o", "name"]).stdout;
    assert_eq!(
        names,
        "unread/SourceFailed/cluster/source.toolkit.fluxcd.io/GitRepository/flux-system/stale\n"
    );
    let wide = of_case(&["trust"], "flux-source-failed", &["-o", "wide"]).stdout;
    let mut lines = wide.lines();
    let titles: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(
        titles,
        ["SEVERITY", "CATEGORY", "REASON", "ABOUT", "GREEN", "APPS", "SINCE", "MESSAGE", "NEXT"]
    );
    assert_eq!(lines.count(), 1);
}

#[test]
fn findings_are_narrowed_to_apps_clusters_and_categories() {
    let names = |arguments: &[&str]| {
        let answer = of_case(&["trust"], "sixty-apps", &[arguments, &["-o", "name"]].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        names(&["ks-11", "--category", "suspended"]),
        ["suspended/Suspended/cluster/kustomize.toolkit.fluxcd.io/Kustomization/flux-system/ks-11"]
    );
    assert_eq!(names(&["--category", "fallback"]), ["fallback/NoInventory/cluster/label"]);
    assert_eq!(
        names(&["-n", "argocd", "--category", "suspended"]),
        ["suspended/ManualSync/cluster/argoproj.io/Application/argocd/argo-05"]
    );
    assert!(names(&[]).len() > 3);
    let unknown = of_case(&["trust"], "sixty-apps", &["ks-111"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("did you mean"), "{}", unknown.stderr);
    let unknown = of_case(&["trust"], "sixty-apps", &["--cluster", "moon"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
}

#[test]
fn trust_exit_status_reports_doubtful_green() {
    let code = |case, arguments: &[&str]| of_case(&["trust"], case, arguments).code;
    assert_eq!(code("flux-source-failed", &[]), 0);
    assert_eq!(code("flux-source-failed", &["--exit-status"]), 1);
    // What says less than it seems to, or concerns what is not green, proves nothing.
    assert_eq!(code("label-groups", &["--exit-status"]), 0);
    // A sync that failed is a problem of what is Ready.
    assert_eq!(code("argo-failures", &["--exit-status"]), 1);
    let broken = taffrail(&["trust", "--from", "-"], "{apiVersion: v1, kind: [");
    assert_eq!(broken.code, 3, "{}", broken.stdout);
    assert!(broken.stdout.contains("unread"), "{}", broken.stdout);
}

#[test]
fn old_dump_is_stale_unless_now_is_given() {
    let dump =
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, creationTimestamp: \"2026-01-01T00:00:00Z\"}\n";
    let reasons = |arguments: &[&str]| {
        let report = taffrail(&[&["trust", "--from", "-", "-o", "json"], arguments].concat(), dump).json();
        report["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["reason"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(reasons(&[]), ["Undated"]);
    assert_eq!(reasons(&["--now", "2026-03-01T12:00:00Z"]), [""; 0]);
    assert_eq!(reasons(&["--now", "2025-03-01T12:00:00Z"]), ["FutureTime"]);
}
