//! `taffrail app` on dumps.

use super::{NOW, assert_shown, golden_app, of_case, str, taffrail};

#[test]
fn three_sections_with_all_fields() {
    let answer = of_case(&["app", "podinfo"], "helmrelease-well", &[]);
    assert_shown(
        &answer.stdout,
        str![[r#"
flux-helmrelease shop/podinfo: Ready, Synced

Application details:
  Branch:           >=6.5.0
  config_url:       https://git.example.com/acme/fleet
  deployment_type:  helm
  Path:             podinfo
  source_type:      helm
  URL:              https://charts.example.com/podinfo

Reconciliation details:
Last successful reconciliation: 2026-03-01 11:20:00 UTC (40 min ago)

NAME                     READY   MESSAGE                                       REVISION          SUSPENDED
helmrepository/podinfo   True    stored artifact: revision 'sha256:6d10ba4a'   sha256:6d10ba4a   False
helmchart/shop-podinfo   True    pulled 'podinfo' chart with version '6.5.4'   6.5.4             False

NAME                  READY   MESSAGE                                                                       REVISION   SUSPENDED
helmrelease/podinfo   True    Helm upgrade succeeded for release shop/podinfo.v2 with chart podinfo@6.5.4   6.5.4      False

Deployment details:
KIND             NAME                      STATUS   NAMESPACE   MESSAGE
Service          podinfo                   Ready    shop
EndpointSlice    podinfo-9sv9h             Ready    shop
ServiceAccount   podinfo                   Ready    shop
Deployment       podinfo                   Ready    shop
ReplicaSet       podinfo-ps4p7pkpz         Ready    shop
Pod              podinfo-ps4p7pkpz-5bd6z   Ready    shop
Pod              podinfo-ps4p7pkpz-xm47t   Ready    shop
Ingress          podinfo                   Ready    shop

Relations:
RELATION     APP                                   STATUS   MESSAGE
created-by   flux-kustomization/flux-system/apps   Ready

"#]],
    );
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

#[test]
fn an_app_that_is_well_but_not_in_sync_says_what_its_tool_says() {
    let answer = of_case(&["app", "api"], "argo-failures", &[]);
    let mut lines = answer.stdout.lines();
    assert_eq!(lines.next(), Some("argo-application argocd/api: Ready, sync failed"));
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("Sync, 40 min ago: Deployment api/api: Deployment.apps \"api\" is invalid"),
        "{}",
        answer.stdout
    );
}

#[test]
fn collapsed_line_shows_the_kind() {
    let set = |number: usize| {
        format!(
            "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: web-{number}, namespace: shop, uid: r{number}, \
             ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}}]}}, \
             spec: {{replicas: 0}}, status: {{replicas: 0}}}}"
        )
    };
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: d, \
                      labels: {app.kubernetes.io/instance: web}}, spec: {replicas: 0}, \
                      status: {conditions: [{type: Available, status: 'True'}]}}";
    let dump = ["", deployment, &set(1), &set(2), &set(3)].join("\n---\n");
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    std::fs::write(file.path(), dump).unwrap();
    let answer = taffrail(&["app", "web", "--from", file.path().to_str().unwrap()], "");
    let line = answer.stdout.lines().find(|line| line.contains("(3 ReplicaSets scaled to 0)"));
    assert!(line.is_some_and(|line| line.starts_with("ReplicaSet ")), "{}{}", answer.stdout, answer.stderr);
}

#[test]
fn missing_delivery_details_are_dashes() {
    let answer = of_case(&["app", "forum"], "label-groups", &[]);
    for field in ["Branch", "config_url", "deployment_type", "Path", "source_type", "URL"] {
        let line = answer.stdout.lines().find(|line| line.trim_start().starts_with(field)).unwrap();
        assert!(line.ends_with(" -"), "{line}");
    }
    assert!(answer.stdout.contains("Last successful reconciliation: -\n"), "{}", answer.stdout);
    assert_eq!(
        answer.stdout.matches("\n-      -       -         -          -\n").count(),
        2,
        "{}",
        answer.stdout
    );
}

#[test]
fn each_cluster_of_an_app_has_its_sections() {
    let answer = of_case(&["app", "applicationset/argocd/podinfo"], "argo-applicationset-fleet", &[]);
    let heads: Vec<&str> =
        answer.stdout.lines().filter(|line| line.starts_with("argo-application ")).collect();
    assert_eq!(heads.len(), 4, "{heads:?}");
    assert_eq!(heads[0], "argo-application argocd/podinfo-edge-1 of hub in edge-1: Ready, Synced");
    let one = ["app", "applicationset/argocd/podinfo", "--cluster", "edge-2", "-o", "json"];
    let json = of_case(&one, "argo-applicationset-fleet", &[]).json();
    assert_eq!(json["items"].as_array().unwrap().len(), 1);
    assert_eq!(json["items"][0]["app"]["cluster"], "edge-2");
}

#[test]
fn wrong_names_lead_to_right_ones() {
    let several = of_case(&["app", "web"], "overlap", &[]);
    assert_eq!((several.code, several.stdout.as_str()), (2, ""));
    assert_eq!(
        several.stderr,
        format!(
            "error: 'web' names 2 apps: argo-application/argocd/web, helm/web/web\n \
             hint: choose one of these apps: `taffrail app NAME --from {} --now {NOW}` with its full name\n",
            golden_app("overlap")
        )
    );
    let none = of_case(&["app", "helm/webb"], "overlap", &[]);
    assert_eq!(none.code, 2);
    assert_eq!(
        none.stderr,
        "error: there is no app 'helm/webb'\n hint: did you mean argo-application/argocd/web, helm/web/web?\n"
    );
    let cluster = of_case(&["app", "helm/web", "--cluster", "edge"], "overlap", &[]);
    assert_eq!(
        (cluster.code, cluster.stderr.contains("the clusters read are cluster")),
        (2, true),
        "{}",
        cluster.stderr
    );
}

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example");

/// Only what was read answers: an app of another cluster that has the same name is no answer.
#[test]
fn a_name_with_a_cluster_that_was_not_read_is_told() {
    let wanted = "elsewhere/flux-kustomization/flux-system/shop";
    for view in ["app", "tree", "explain", "events", "trust"] {
        let answer = super::taffrail(&[view, wanted, "--from", EXAMPLE], "");
        assert_eq!((answer.code, &*answer.stdout), (2, ""), "{view}");
        assert_eq!(
            answer.stderr,
            "error: there is no cluster 'elsewhere'\n \
             hint: the clusters read are eu-1, lab, us-1; --context, --all-contexts or --from read others\n",
            "{view}"
        );
    }
}

#[test]
fn an_app_is_not_denied_for_a_cluster_that_could_not_be_read() {
    let eu = format!("{EXAMPLE}/eu-1.yaml");
    let from = ["--from", &eu, "--from", "nowhere.yaml"];
    let answer = super::taffrail(&[&["app", "shop", "--cluster", "nowhere"], &from[..]].concat(), "");
    assert_eq!((answer.code, &*answer.stdout), (3, ""), "{}", answer.stderr);
    let told = "app 'shop' is not in the selected clusters in the part that could be read; nowhere: cannot read nowhere.yaml";
    assert!(answer.stderr.contains(told), "{}", answer.stderr);
}

#[test]
fn unreadable_cluster_does_not_make_an_app_missing() {
    let answer = super::taffrail(&["app", "shop", "--from", "nowhere.yaml"], "");
    assert_eq!(answer.code, 3);
    assert!(
        answer.stderr.contains("in the part that could be read; nowhere: cannot read nowhere.yaml"),
        "{}",
        answer.stderr
    );
}

#[test]
fn only_errors_of_the_app_are_printed() {
    let answer = of_case(&["app", "fine"], "helm-secret-damaged", &[]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{}", answer.stdout);
    assert_eq!(of_case(&["app", "web", "--exit-status"], "flux-in-motion", &[]).code, 1);
}

#[test]
fn relations_are_shown_both_ways_with_the_cause_upstream() {
    let answer = of_case(&["app", "flux-system/apps"], "flux-depends-on", &[]);
    let (head, rest) = answer.stdout.split_once("\nApplication details:").unwrap();
    let cause = "Kustomization flux-system/apps: waits for Kustomization flux-system/infra, which is Failed: \
                 ClusterIssuer/letsencrypt dry-run failed: ";
    assert!(head.lines().nth(1).is_some_and(|line| line.starts_with(cause)), "{head}");
    let (_, relations) = rest.split_once("\nRelations:\n").unwrap();
    let cut = |line: &str| line.chars().take(80).collect::<String>().trim_end().to_owned();
    let relations: Vec<String> = relations.lines().map(cut).collect();
    assert_shown(
        &relations.join("\n"),
        str![[r#"
RELATION     APP                                         STATUS       MESSAGE
depends-on   flux-kustomization/flux-system/infra        Failed       ClusterIss
needed-by    flux-kustomization/flux-system/apps-extra   InProgress   waits for
"#]],
    );
    let json = of_case(&["app", "flux-system/apps", "-o", "json"], "flux-depends-on", &[]).json();
    let item = &json["items"][0];
    assert_eq!(item["app"]["upstreams"][0]["type"], "dependsOn");
    let problem = &item["app"]["problem"];
    assert_eq!(problem["upstream"]["app"]["name"], "infra");
    assert_eq!(problem["severity"], "waiting");
    let named = |relation: &serde_json::Value| {
        let [kind, direction] =
            ["type", "direction"].map(|field| relation[field].as_str().unwrap().to_owned());
        let [name, status] = [&relation["app"]["name"], &relation["status"]].map(|it| it.as_str().unwrap());
        format!("{kind} {direction} {name} {status}")
    };
    let relations: Vec<String> = item["relations"].as_array().unwrap().iter().map(named).collect();
    assert_eq!(relations, ["dependsOn upstream infra Failed", "dependsOn downstream apps-extra InProgress"]);
}

#[test]
fn apps_are_listed_by_what_is_upstream_and_downstream() {
    let names = |filters: &[&str]| {
        let answer = of_case(&[&["get", "apps", "-o", "name"], filters].concat(), "flux-depends-on", &[]);
        (answer.stdout, answer.code)
    };
    let downstream = names(&["--downstream-of", "infra"]);
    assert_eq!(downstream, ("flux-kustomization/flux-system/apps\n".to_owned(), 0));
    let upstream = names(&["--upstream-of", "web"]);
    assert_eq!(upstream, ("flux-helmrelease/shop/db\n".to_owned(), 0));
    assert_eq!(names(&["--upstream-of", "web", "--downstream-of", "infra"]).0, "");
    assert_eq!(names(&["--downstream-of", "no-such-app"]).1, 2);
}

#[test]
fn apps_downstream_count_for_the_cause_upstream() {
    let json = of_case(&["overview", "-o", "json"], "flux-depends-on", &[]).json();
    let causes = json["attention"].as_array().unwrap();
    let of_infra: Vec<_> = causes.iter().filter(|cause| cause["object"]["name"] == "infra").collect();
    assert_eq!(of_infra.len(), 1, "{causes:#?}");
    assert_eq!(of_infra[0]["count"], 3);
    assert!(!of_infra[0]["message"].as_str().unwrap().contains("waits for"), "{causes:#?}");
}

/// Answers about an app with many dependencies, one of which is missing, and one that waits.
pub(crate) fn related() -> Vec<super::Answer> {
    let kustomization = |name: &str, depends_on: &[String], ready: &str, message: &str| {
        let depends_on: Vec<String> = depends_on.iter().map(|name| format!("{{name: {name}}}")).collect();
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
             metadata: {{namespace: flux-system, name: {name}, generation: 1}}\n\
             spec: {{dependsOn: [{}]}}\n\
             status: {{observedGeneration: 1, conditions: [{{type: Ready, {ready}, message: {message}, \
             observedGeneration: 1}}]}}\n---\n",
            depends_on.join(", ")
        )
    };
    let infra = kustomization("infra", &[], "status: 'False', reason: BuildFailed", "no such file");
    let all: Vec<String> = (0..150).map(|number| format!("a{number}")).collect();
    let on_infra = ["infra".to_owned()];
    let waits = "status: 'False', reason: DependencyNotReady";
    let waiting = all.iter().map(|name| kustomization(name, &on_infra, waits, "not ready"));
    let many: Vec<String> = std::iter::once("gone".to_owned()).chain(all.iter().cloned()).collect();
    let many = kustomization("many", &many, "status: 'True', reason: ReconciliationSucceeded", "Applied");
    let dump = infra + &waiting.collect::<String>() + &many;
    let of = ["--from", "-", "--now", NOW, "-o", "json"];
    let ask = |question: &[&str]| taffrail(&[question, &of].concat(), &dump);
    vec![ask(&["get", "apps"]), ask(&["app", "many"]), ask(&["app", "infra"])]
}
