//! Serves many clusters that hold little but objects which declare apps: `cargo xtask bench light` reads them.
//!
//! Arguments: the number of clusters, the number of objects of each kind, the number of kinds, the prefix of the
//! clusters' names, and the file for their kubeconfig. Prints `ready` once it serves, and serves until it is killed.
#![expect(clippy::print_stdout, reason = "it answers on standard output")]

use anyhow::{Context, Result};
use serde_json::{Value, json};
use taffrail_sim::{Cluster, Fleet};
use taffrail_testkit::objects::{definition, namespace, with_spec_and_status};

/// The kinds, as group, version, kind. The first two declare apps.
const KINDS: [(&str, &str, &str); 8] = [
    ("argoproj.io", "v1alpha1", "Application"),
    ("kustomize.toolkit.fluxcd.io", "v1", "Kustomization"),
    ("helm.toolkit.fluxcd.io", "v2", "HelmRelease"),
    ("kpt.dev", "v1alpha1", "ResourceGroup"),
    ("configsync.gke.io", "v1beta1", "RootSync"),
    ("configsync.gke.io", "v1beta1", "RepoSync"),
    ("source.toolkit.fluxcd.io", "v1", "HelmChart"),
    ("source.toolkit.fluxcd.io", "v1", "Bucket"),
];

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().with_context(|| format!("the argument '{what}' is missing"));
    let clusters: usize = next("clusters")?.parse()?;
    let objects: usize = next("objects")?.parse()?;
    let kinds: usize = next("kinds")?.parse()?;
    let (prefix, kubeconfig) = (next("prefix")?, next("kubeconfig")?);

    let fleet = Fleet::builder().seed(1).controllers(false).start().await?;
    let mut all = Vec::new();
    for number in 0..clusters {
        let cluster = fleet.cluster(&format!("{prefix}-{number}")).await?;
        cluster.apply(namespace("apps"))?;
        let kinds: Vec<_> = KINDS.into_iter().take(kinds).collect();
        for (group, version, kind) in &kinds {
            cluster.apply(definition(group, version, kind, with_spec_and_status()))?;
        }
        let content = kinds.iter().flat_map(|kind| (0..objects).map(move |object| declaring(*kind, object)));
        cluster.seed(content.collect::<Vec<_>>())?;
        all.push(cluster);
    }
    std::fs::write(kubeconfig, Cluster::kubeconfig_of(&all))?;
    println!("ready");
    std::future::pending().await
}

/// Returns an object that declares an app, which is well.
fn declaring((group, version, kind): (&str, &str, &str), number: usize) -> Value {
    let name = format!("app-{number}");
    let conditions = json!([{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded",
        "message": "Applied revision: main@sha1:1e644628deb645c454f4db167e1041e95e2d0ba3",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}]);
    let (spec, status) = match kind {
        "Application" => {
            let resource = |number: usize| {
                json!({"version": "v1", "kind": "ConfigMap", "namespace": "apps",
                    "name": format!("{name}-{number}"), "status": "Synced"})
            };
            let source =
                json!({"repoURL": "https://git.example/fleet", "path": name, "targetRevision": "main"});
            (
                json!({"project": "default", "source": source,
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": "apps"}}),
                json!({"health": {"status": "Healthy"}, "reconciledAt": "2026-01-01T00:00:00Z",
                    "sync": {"status": "Synced", "revision": "1e644628deb645c454f4db167e1041e95e2d0ba3"},
                    "resources": (0..10).map(resource).collect::<Vec<_>>()}),
            )
        }
        "Kustomization" => {
            let entry = |number: usize| json!({"id": format!("apps_{name}-{number}__ConfigMap"), "v": "v1"});
            (
                json!({"interval": "10m", "path": format!("./{name}"), "prune": true,
                    "sourceRef": {"kind": "GitRepository", "name": "fleet"}}),
                json!({"observedGeneration": 1, "conditions": conditions,
                    "lastAppliedRevision": "main@sha1:1e644628deb645c454f4db167e1041e95e2d0ba3",
                    "lastAttemptedRevision": "main@sha1:1e644628deb645c454f4db167e1041e95e2d0ba3",
                    "inventory": {"entries": (0..10).map(entry).collect::<Vec<_>>()}}),
            )
        }
        _ => (json!({"interval": "10m"}), json!({"observedGeneration": 1, "conditions": conditions})),
    };
    json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind, "spec": spec, "status": status,
        "metadata": {"name": name, "namespace": "apps", "generation": 1},
    })
}
