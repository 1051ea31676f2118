//! Tests as users who may not read everything.

use std::time::Instant;

use anyhow::ensure;

use crate::harness::CLUSTER;
use crate::stage::{Stage, Who};

/// A ClusterRole that allows the user `reader` to read Flux's objects, and all objects of the app `shop` except its
/// ConfigMap, with its binding.
const ROLE: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: e2e-reader
rules:
  - apiGroups: ['']
    resources: [namespaces, services]
    verbs: [get, list, watch]
  - apiGroups: [apps]
    resources: [deployments, replicasets, statefulsets, daemonsets]
    verbs: [get, list, watch]
  - apiGroups: [kustomize.toolkit.fluxcd.io, helm.toolkit.fluxcd.io, source.toolkit.fluxcd.io]
    resources: ['*']
    verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: e2e-reader
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: e2e-reader
subjects:
  - apiGroup: rbac.authorization.k8s.io
    kind: User
    name: reader
";

fn forbidden_kind_is_named_and_the_others_are_shown(stage: &mut Stage) {
    stage.example("shop");
    stage.act(|plane| {
        plane.apply(CLUSTER, ROLE)?;
        // The authorizer learns of roles through a watch of its own.
        plane
            .kubectl(CLUSTER, &["wait", "--for=create", "clusterrolebinding/e2e-reader", "--timeout=10s"])?;
        let may = ["auth", "can-i", "list", "deployments.apps", "--as=reader", "-A"];
        let started = Instant::now();
        while plane.kubectl(CLUSTER, &may).is_err() {
            ensure!(started.elapsed().as_secs() < 20, "the role never took effect");
        }
        Ok(())
    });

    let apps = stage.apps(Who::Reader, &["--context", CLUSTER]);
    assert_eq!(apps.code(), 3, "{apps}");
    let named = |error: &&serde_json::Value| {
        error["cluster"] == CLUSTER
            && error["scope"].as_str().unwrap_or_default().to_lowercase().contains("configmap")
    };
    assert!(apps.errors().iter().any(|error| named(&error)), "{apps}");
    // Its Deployment is healthy; its ConfigMap may be in any state, so the app is not green.
    apps.row(CLUSTER, "flux-kustomization", "flux-system", "shop").is("/health", "Unknown").speaks(
        "",
        "ConfigMap",
        "shop",
        "settings",
    );
}

fn no_permission_is_not_shown_as_an_empty_cluster(stage: &mut Stage) {
    let apps = stage.apps(Who::Reader, &["--context", "kube-2"]);
    assert_eq!(apps.code(), 3, "{apps}");
    assert!(!apps.errors().is_empty(), "{apps}");
}

scenarios![1: forbidden_kind_is_named_and_the_others_are_shown];
scenarios![2: no_permission_is_not_shown_as_an_empty_cluster];
