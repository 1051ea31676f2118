//! `taffrail explain` on dumps.

use super::{Answer, golden_apps, taffrail};

fn explain(case: &str, arguments: &[&str]) -> Answer {
    let folder = golden_apps().join(case);
    let from = folder.join("cluster.yaml");
    let from = ["explain", "--from", from.to_str().unwrap(), "--now", "2026-03-01T12:00:00Z"];
    taffrail(&[&from, arguments].concat(), "")
}

#[test]
fn the_cause_comes_first_and_a_command_last() {
    let answer = explain("argo-failures", &["argocd/web"]);
    assert_eq!(
        answer.stdout,
        "\
argo-application argocd/web is Failed

Cause
  Pod web/web-rh4wc9sqk-8vpjn: CrashLoopBackOff, not ready since 7 min ago
  back-off 2m40s restarting failed container=web pod=web-rh4wc9sqk-8vpjn_web(888e5b71-15b9-4e22-8000-60815ee92a4c)
  - container web ended with exit code 1 (Error)

How it shows
  Deployment web/web  Failed: Updated: 1/2
  └ ReplicaSet web/web-rh4wc9sqk  Failed: Available: 0/1
    └ Pod web/web-rh4wc9sqk-8vpjn  Failed

Look further
  kubectl describe pod web-rh4wc9sqk-8vpjn -n web
  kubectl logs web-rh4wc9sqk-8vpjn -c web --previous -n web
"
    );
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

#[test]
fn apps_and_objects_go_by_several_names() {
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
    assert_eq!(worst("svc/web"), None);
    let elsewhere = explain("argo-failures", &["deploy/web", "-n", "docs"]);
    assert_eq!((elsewhere.code, elsewhere.stdout.as_str()), (3, ""));
    assert!(elsewhere.stderr.contains("no app and no object 'deploy/web'"), "{}", elsewhere.stderr);
}

#[test]
fn without_a_name_all_that_is_not_ready_is_explained() {
    let list = explain("argo-failures", &["-o", "json"]).json();
    assert_eq!(list["kind"], "ExplanationList");
    let names = |list: &serde_json::Value| {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["app"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&list), ["web", "metrics"], "the worst comes first");
    assert_eq!(explain("argo-failures", &["--exit-status"]).code, 1);

    let well = explain("flux-kustomization-well", &["--exit-status"]);
    assert_eq!((well.code, well.stdout.as_str()), (0, ""));
    assert_eq!(well.stderr, "Nothing found that is not ready.\n");
    let well = explain("flux-kustomization-well", &["shop", "-o", "json"]).json();
    assert_eq!((&well["health"], well.get("object")), (&"Current".into(), None));
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
    assert!(wrong.stderr.contains("names no object"), "{}", wrong.stderr);

    let from = golden_apps().join("argo-failures/cluster.yaml");
    let get = ["get", "apps", "--from", from.to_str().unwrap(), "--now", "2026-03-01T12:00:00Z"];
    let row = taffrail(&[&get[..], &declared].concat(), "").json();
    assert_eq!((&row["items"][0]["objects"], &row["items"][0]["health"]), (&2.into(), &"Failed".into()));
}
