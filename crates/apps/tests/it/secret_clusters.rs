//! The Secrets that give access to other clusters.

use serde_json::{Value, json};
use taffrail_apps::{ClusterSecretTool, ClusterSecrets, MAX_CLUSTER_SECRETS, ReadQuery, cluster_secrets};
use taffrail_status::Trust;

use super::dump::holding;
use super::reads::{object, values_of_secrets};
use super::server::Server;
use super::teachers::{binding, controller, role};

const ALL: [ClusterSecretTool; 3] =
    [ClusterSecretTool::ArgoCd, ClusterSecretTool::Flux, ClusterSecretTool::ClusterApi];

fn secret(namespace: &str, name: &str) -> Value {
    object("v1", "Secret", namespace, name)
}

fn argo_secret(namespace: &str, name: &str) -> Value {
    let mut secret = secret(namespace, name);
    secret["metadata"]["labels"] = json!({"argocd.argoproj.io/secret-type": "cluster"});
    secret
}

fn flux(kind: &str, namespace: &str, name: &str, secret_ref: Value) -> Value {
    let version = match kind {
        "Kustomization" => "kustomize.toolkit.fluxcd.io/v1",
        _ => "helm.toolkit.fluxcd.io/v2",
    };
    let mut declaring = object(version, kind, namespace, name);
    declaring["spec"] = json!({"kubeConfig": {"secretRef": secret_ref}});
    declaring
}

fn capi(namespace: &str, name: &str) -> Value {
    object("cluster.x-k8s.io/v1beta1", "Cluster", namespace, name)
}

fn found(objects: &[Value]) -> ClusterSecrets {
    cluster_secrets(&holding("hub", objects), Trust::NONE, &ALL)
}

/// Returns tool, name and keys of each Secret as lines.
fn lines(objects: &[Value]) -> Vec<String> {
    let line = |secret: taffrail_apps::ClusterSecret| {
        format!("{:?} {} {}", secret.tool, secret.name, secret.keys.join(",")).trim_end().to_owned()
    };
    found(objects).secrets.into_iter().map(line).collect()
}

#[test]
fn only_secrets_that_their_tool_uses_name_clusters() {
    let objects = [
        controller("argocd"),
        binding("argocd", "gitops"),
        role("*", &["*"]),
        argo_secret("argocd", "edge"),
        // Not in the namespace of a known Argo CD, and not labelled.
        controller("tenant"),
        argo_secret("tenant", "forged"),
        secret("argocd", "plain"),
        flux("Kustomization", "team", "a", json!({"name": "one"})),
        flux("HelmRelease", "team", "b", json!({"name": "one"})),
        flux("HelmRelease", "team", "c", json!({"name": "two", "key": "config"})),
        secret("team", "one"),
        secret("team", "two"),
        // Another namespace's Secret of that name, and one that does not exist.
        secret("other", "one"),
        flux("Kustomization", "team", "d", json!({"name": "gone"})),
        capi("fleet", "west"),
        secret("fleet", "west-kubeconfig"),
        // There is no such Cluster, and that of another namespace does not count.
        secret("fleet", "north-kubeconfig"),
        capi("other", "north"),
    ];
    assert_eq!(
        lines(&objects),
        [
            "ArgoCd hub/argocd/edge",
            "ClusterApi hub/fleet/west value",
            "Flux hub/team/one value,value.yaml",
            "Flux hub/team/two config",
        ]
    );
    let home = holding("hub", &objects);
    let trusted = Trust { argocd: vec!["hub/tenant".to_owned()], homes: Vec::new() };
    let names = |trust: &Trust, tools: &[ClusterSecretTool]| -> Vec<String> {
        cluster_secrets(&home, trust, tools).secrets.into_iter().map(|secret| secret.name).collect()
    };
    assert_eq!(names(&trusted, &ALL[..1]), ["hub/argocd/edge", "hub/tenant/forged"]);
    assert_eq!(names(Trust::NONE, &[ClusterSecretTool::ClusterApi]), ["hub/fleet/west"]);
    assert_eq!(names(Trust::NONE, &[]), <[&str; 0]>::default());
}

#[test]
fn a_live_cluster_is_read_for_what_tells_which_secrets_count() {
    let objects = [
        controller("argocd"),
        binding("argocd", "gitops"),
        role("*", &["*"]),
        argo_secret("argocd", "edge"),
        argo_secret("tenant", "forged"),
        flux("Kustomization", "team", "a", json!({"name": "one"})),
        secret("team", "one"),
        capi("fleet", "west"),
        secret("fleet", "west-kubeconfig"),
    ];
    let names = |asked: &ReadQuery| {
        let (live, log) = Server::new(objects.to_vec()).read("hub", asked);
        assert_eq!(values_of_secrets(&log), <[&str; 0]>::default());
        let found = cluster_secrets(&live, Trust::NONE, &ALL);
        found.secrets.into_iter().map(|secret| secret.name).collect::<Vec<_>>()
    };
    let asked = ReadQuery { cluster_secrets: ALL.to_vec(), ..ReadQuery::default() };
    assert_eq!(names(&asked), ["hub/argocd/edge", "hub/fleet/west", "hub/team/one"]);
    assert_eq!(names(&ReadQuery::default()), ["hub/team/one"]);
}

#[test]
fn one_kubeconfig_is_one_cluster_and_names_are_unique() {
    let objects = [
        capi("fleet", "west"),
        secret("fleet", "west-kubeconfig"),
        flux("Kustomization", "fleet", "a", json!({"name": "west-kubeconfig"})),
        flux("Kustomization", "fleet", "b", json!({"name": "west-kubeconfig", "key": "value"})),
        flux("Kustomization", "fleet", "c", json!({"name": "west", "key": "first"})),
        flux("Kustomization", "fleet", "d", json!({"name": "west", "key": "second"})),
        secret("fleet", "west"),
    ];
    assert_eq!(
        lines(&objects),
        [
            "ClusterApi hub/fleet/west value",
            "Flux hub/fleet/west:first first",
            "Flux hub/fleet/west:second second",
        ]
    );
}

#[test]
fn names_that_no_secret_can_have_are_left_out() {
    for bad in [
        json!("../x"),
        json!(""),
        json!("A"),
        json!("a\u{1b}[2J"),
        json!("a".repeat(300)),
        json!(7),
        json!(["a"]),
    ] {
        let by_name = flux("Kustomization", "team", "a", json!({"name": bad}));
        assert_eq!(lines(&[by_name]), <[&str; 0]>::default(), "{bad}");
    }
    for key in ["a/b", "\n", &"a".repeat(300)] {
        let by_key = flux("Kustomization", "team", "a", json!({"name": "one", "key": key}));
        assert_eq!(lines(&[by_key, secret("team", "one")]), <[&str; 0]>::default(), "{key}");
    }
}

#[test]
fn a_namespace_with_many_secrets_displaces_none_of_the_others() {
    let mut objects: Vec<Value> = (0..MAX_CLUSTER_SECRETS + 5)
        .flat_map(|at| {
            let name = format!("s{at}");
            [flux("Kustomization", "aaa", &name, json!({"name": name})), secret("aaa", &name)]
        })
        .collect();
    objects.extend([flux("Kustomization", "zzz", "a", json!({"name": "one"})), secret("zzz", "one")]);
    let found = found(&objects);
    assert_eq!((found.secrets.len(), found.left_out.values().sum()), (MAX_CLUSTER_SECRETS, 6));
    assert_eq!(found.left_out.len(), 1, "{:?}", found.left_out);
    assert_eq!(found.secrets.last().unwrap().name, "hub/zzz/one");
}
