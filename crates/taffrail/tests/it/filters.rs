//! Filters, order and columns of `taffrail get`.

use super::{assert_shown, of_case, str, taffrail};

fn names(what: &str, arguments: &[&str]) -> String {
    let answer = of_case(&["get", what, "-o", "name"], "sixty-apps", arguments);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    answer.stdout
}

#[test]
fn apps_are_filtered_and_the_worst_comes_first() {
    assert_eq!(
        names("apps", &["--status", "!Ready", "--sort", "status"]),
        "\
flux-kustomization/flux-system/ks-07
config-sync/ns-2/repo-sync
flux-kustomization/flux-system/ks-17
label/ns-4/label-04
flux-kustomization/flux-system/ks-13
helm/ns-3/helm-03
"
    );
    assert_eq!(
        names("apps", &["--delivery", "kpt,config-sync", "--status", "failed"]),
        "config-sync/ns-2/repo-sync\n"
    );
    assert_eq!(names("apps", &["-l", "nobody=here"]), "");
    let suspended = of_case(&["get", "apps", "--suspended", "-o", "name"], "flux-in-motion", &[]).stdout;
    assert_eq!(suspended, "flux-kustomization/flux-system/db\n");
    let edge = ["get", "apps", "--cluster", "edge-1", "-o", "name", "--sort", "name"];
    assert_eq!(
        of_case(&edge, "argo-applicationset-fleet", &[]).stdout,
        "edge-1/flux-kustomization/flux-system/motd\nedge-1/argo-application/argocd/podinfo-edge-1@hub\n"
    );
}

/// Argo CD goes on to compare an app whose automatic sync is switched off.
#[test]
fn suspended_is_a_sync_state_of_apps_of_each_tool() {
    let app = |name: &str, enabled: bool| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{namespace: argocd, name: {name}}}\n\
             spec: {{syncPolicy: {{automated: {{enabled: {enabled}}}}}, destination: {{namespace: shop, \
             server: 'https://kubernetes.default.svc'}}}}\n\
             status: {{sync: {{status: Synced, revision: a}}, health: {{status: Healthy}}}}\n---\n"
        )
    };
    let apps = app("held", false) + &app("running", true);
    let names =
        |sync: &str| taffrail(&["get", "apps", "--from", "-", "-o", "name", "--sync", sync], &apps).stdout;
    assert_eq!(names("Suspended"), "argo-application/argocd/held\n");
    assert_eq!(names("!Suspended"), "argo-application/argocd/running\n");
    assert_eq!(names("Synced").lines().count(), 2);
}

/// A script that looks for failing sources must find an app that fails otherwise too.
#[test]
fn all_problems_of_an_app_are_in_its_row() {
    let sources = of_case(&["get", "apps", "--problems=source"], "argo-failures", &["-o", "json"]).json();
    let of = |row: &serde_json::Value| {
        let problems = row["problems"].as_array().unwrap().iter();
        problems.map(|it| format!("{}/{}", it["axis"], it["state"]).replace('"', "")).collect::<Vec<_>>()
    };
    let rows: Vec<_> = sources["items"].as_array().unwrap().iter().collect();
    assert_eq!(rows.iter().map(|row| &row["name"]).collect::<Vec<_>>(), ["docs"]);
    assert_eq!(of(rows[0]), ["source/Failed"]);
    let all = of_case(&["get", "apps", "metrics"], "argo-failures", &["-o", "json"]).json();
    let row = &all["items"][0];
    assert_eq!(of(row), ["health/NotFound", "sync/Failed"]);
    assert_eq!(row["problems"][0], row["problem"]);
}

#[test]
fn objects_are_filtered_by_what_they_are_and_run() {
    assert_eq!(names("resources", &["--status", "NotFound"]), "/ConfigMap/ns-5/ks-17-gone\n");
    let of_image = names("resources", &["--image", "/web:", "--kind", "deploy"]);
    assert!(of_image.lines().all(|line| line.starts_with("apps/Deployment/")), "{of_image}");
    let json = of_case(&["get", "clusters", "--status", "Ready", "-o", "json"], "sixty-apps", &[]).json();
    assert_eq!(json["items"], serde_json::json!([]));
}

/// A shell makes words of a command from `$(taffrail get … -o name)`.
#[test]
fn names_that_are_more_than_one_word_to_a_shell_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump.json");
    let role = |name: &str| serde_json::json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}});
    let mut all = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [
        role("admin"), role("system:node;id"), role("a$(id)"), role("edit"),
        {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"namespace": "apps", "name": "all"},
            "status": {"inventory": {"entries": []}}},
    ]});
    let ids = ["admin", "system__node;id", "a$(id)", "edit"];
    all["items"][4]["status"]["inventory"]["entries"] =
        ids.iter().map(|name| serde_json::json!({"id": format!("_{name}_rbac.authorization.k8s.io_ClusterRole"), "v": "v1"})).collect();
    std::fs::write(&dump, all.to_string()).unwrap();
    let answer = taffrail(&["get", "resources", "--from", dump.to_str().unwrap(), "-o", "name"], "");
    let mut names: Vec<&str> = answer.stdout.lines().collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["rbac.authorization.k8s.io/ClusterRole//admin", "rbac.authorization.k8s.io/ClusterRole//edit"]
    );
    assert!(answer.stderr.contains("2 names were left out"), "{}", answer.stderr);
}

#[test]
fn columns_are_chosen_by_name() {
    let answer = of_case(
        &["get", "apps", "--columns", "name,last-success,STATUS", "--delivery", "helm", "--sort", "name"],
        "sixty-apps",
        &[],
    );
    let lines: Vec<&str> = answer.stdout.lines().take(2).collect();
    assert_eq!(lines, ["NAME      LAST SUCCESS   STATUS", "helm-00   40 min ago     Ready"]);
}

#[test]
fn invalid_values_list_the_valid_ones() {
    for (what, arguments, told) in [
        ("apps", &["--status", "Redy"][..], "Failed, NotFound, Unknown, Terminating, InProgress, Current"),
        ("apps", &["--delivery", "flux"], "flux-kustomization (ks), flux-helmrelease (hr)"),
        ("apps", &["--sort", "age"], "name, status, cluster, since, delivery"),
        ("apps", &["--columns", "nam"], "namespace, name, delivery"),
        ("apps", &["--columns", "name", "-o", "json"], "--columns applies to tables"),
        ("apps", &["--cluster", "edge"], "the clusters read are cluster"),
        ("apps", &["--kind", "Deployment"], "taffrail get resources --kind"),
        ("apps", &["-l", "a b"], "LABEL=VALUE"),
        ("clusters", &["--sort", "since"], "only by name, cluster or status"),
        ("resources", &["--kind", "Deploymnet"], "these kinds: ConfigMap, Deployment"),
    ] {
        let answer = of_case(&["get", what], "sixty-apps", arguments);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(answer.stderr.contains(told), "{arguments:?}: {}", answer.stderr);
    }
}

#[test]
fn the_exit_status_is_about_what_is_shown() {
    let code = |what: &str, arguments: &[&str]| {
        of_case(&["get", what, "--exit-status"], "sixty-apps", arguments).code
    };
    assert_eq!(code("apps", &[]), 1);
    assert_eq!(code("apps", &["--delivery", "helm"]), 1, "a release of which the upgrade failed");
    assert_eq!(code("apps", &["--delivery", "kpt"]), 0);
    assert_eq!(code("resources", &["--status", "NotFound"]), 1);
    assert_eq!(code("resources", &["--status", "Ready"]), 0);
}

#[test]
fn a_lost_cluster_stays_in_filtered_lists_unless_the_status_excludes_it() {
    let from = ["get", "apps", "--from", "nowhere.yaml"];
    let shown = |more: &[&str]| super::taffrail(&[&from, more].concat(), "").stdout.contains("nowhere");
    assert!(shown(&["--delivery", "helm"]));
    assert!(shown(&["--status", "!Ready"]));
    assert!(!shown(&["--status", "Ready"]));
}

#[test]
fn every_command_that_finds_apps_can_be_told_the_label_that_names_them() {
    let golden = "label-groups";
    let label = ["--app-label", "endpointslice.kubernetes.io/managed-by,app.kubernetes.io/component"];
    let rows = of_case(&["get", "apps"], golden, &[&label[..], &["-o", "name"]].concat());
    assert_eq!(
        rows.stdout, "flux-kustomization/flux-system/web\n",
        "all that has these labels is made by controllers"
    );
    let label = ["--app-label", "app.kubernetes.io/part-of", "--app-label", "app.kubernetes.io/name"];
    let rows = of_case(&["get", "apps"], golden, &[&label[..], &["-o", "name"]].concat());
    assert_shown(
        &rows.stdout,
        str![[r#"
flux-kustomization/flux-system/web
label/web/blog
label/web/forum
label/web-staging/blog

"#]],
    );
    for command in [&["get", "resources"][..], &["app", "forum"], &["tree", "forum"], &["explain", "forum"]] {
        let found = of_case(command, golden, &label);
        assert_eq!((found.code, &*found.stderr), (0, ""), "{command:?}");
        assert!(found.stdout.contains("forum"), "{}", found.stdout);
        let none = of_case(command, golden, &["--app-label", "tier"]);
        assert!(!none.stdout.contains("forum"), "{}", none.stdout);
    }
    for command in ["events", "trust"] {
        assert_eq!(of_case(&[command, "forum"], golden, &label).code, 0, "{command}");
        assert_eq!(of_case(&[command, "forum"], golden, &["--app-label", "tier"]).code, 2, "{command}");
    }
    let wrong = of_case(&["get", "apps"], golden, &["--app-label", "app=web"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.contains("'app=web' is not a label key; write NAME or PREFIX/NAME"),
        "{}",
        wrong.stderr
    );
}

/// A rollout that is stuck leaves the Pods of before; what no app declares runs images too.
#[test]
fn images_are_found_where_they_run_and_where_specs_name_them() {
    let containers = |image: &str| serde_json::json!([{"name": "c", "image": image}]);
    let workload = |name: &str, image: &str| {
        serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "shop", "name": name, "uid": name,
                "labels": {"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "apps"}},
            "spec": {"replicas": 1, "template": {"spec": {"containers": containers(image)}}}, "status": {"replicas": 1}})
    };
    let pod = |name: &str, owner: &str, image: &str, phase: &str| {
        let mut pod = serde_json::json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "shop", "name": name, "labels": {"pod-template-hash": "7f"}},
            "spec": {"containers": containers(image)}, "status": {"phase": phase}});
        if !owner.is_empty() {
            pod["metadata"]["ownerReferences"] = serde_json::json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                "name": format!("{owner}-7f"), "uid": format!("{owner}-7f"), "controller": true}]);
        }
        pod
    };
    let mut by_hand = workload("by-hand", "acme/web:1");
    by_hand["metadata"]["labels"] = serde_json::json!({});
    let kustomization = serde_json::json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "apps", "name": "shop"},
        "status": {"inventory": {"entries": [{"id": "shop_web_apps_Deployment", "v": "v1"}, {"id": "shop_db_apps_Deployment", "v": "v1"}]}}});
    let items = [
        kustomization,
        workload("web", "acme/web:2"),
        workload("db", "acme/db:1"),
        by_hand,
        pod("web-1", "web", "acme/web:1", "Running"),
        pod("web-2", "web", "acme/web:1", "Running"),
        pod("web-old", "web", "acme/web:1", "Failed"),
        pod("by-hand-1", "by-hand", "acme/web:1", "Running"),
        pod("alone", "", "acme/web:2", "Pending"),
    ];
    let dump = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": &items}).to_string();
    let images = |more: &[&str]| {
        let columns = ["get", "resources", "--columns", "kind,name,app,images", "--from", "-"];
        let answer = taffrail(&[&columns[..], more].concat(), &dump);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.stdout
    };
    assert_shown(
        &images(&["--image", "acme/web"]),
        str![[r#"
KIND         NAME      APP         IMAGES
Deployment   web       apps/shop   acme/web:1 (2 Pods, not in spec), acme/web:2 (in spec, in no Pod)
Pod          alone     -           acme/web:2
Deployment   by-hand   -           acme/web:1 (in spec, 1 Pod)

"#]],
    );
    assert_shown(
        &images(&["--image", "web:1", "-n", "apps"]),
        str![[r#"
KIND         NAME   APP         IMAGES
Deployment   web    apps/shop   acme/web:1 (2 Pods, not in spec)

"#]],
    );
    assert_shown(
        &images(&["--image", "web:1", "--kind", "pod"]),
        str![[r#"
KIND   NAME        APP         IMAGES
Pod    by-hand-1   -           acme/web:1
Pod    web-1       apps/shop   acme/web:1
Pod    web-2       apps/shop   acme/web:1

"#]],
    );
    // An image that runs nowhere is no wrong usage.
    assert_eq!(images(&["--image", "no-such-image", "--kind", "pod"]), "");
    let none = taffrail(&["get", "resources", "--from", "-", "--image", "no-such-image"], &dump);
    assert!(none.stdout.is_empty() && none.stderr.contains("--orphaned --image IMAGE"), "{}", none.stderr);
    // Whoever may not list Pods does not know which run.
    let without: Vec<_> = items.iter().filter(|item| item["kind"] != "Pod").collect();
    let without = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": without}).to_string();
    let asked = ["get", "resources", "--from", "-", "--image", "web:2", "--columns", "name,images"];
    assert_shown(
        &taffrail(&asked, &without).stdout,
        str![[r#"
NAME   IMAGES
web    acme/web:2 (in spec, its Pods were not read)

"#]],
    );
}
