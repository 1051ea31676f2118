//! Apps in the state in which their tools leave them, to try Taffrail with and for end-to-end tests.
//!
//! The manifests are in `kube/examples/`. Kubernetes' real controllers produce its own part of the state (a rollout, a
//! crash loop, a deadline). Flux's controllers do not run here, so the manifests contain the status that they would
//! write.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::kube::{ControlPlane, source_folder};

/// An app in one state of its life, such as a suspended or a crashing one.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The name, which is also that of its namespace.
    pub name: &'static str,
    /// The situation that it shows, in a few words.
    pub shows: &'static str,
    /// The arguments of `kubectl wait` for its final state, one call after the other.
    waits: &'static [&'static [&'static str]],
}

/// All examples. Each but the Helm release is applied with the source of the Kustomizations.
pub const ALL: &[Example] = &[
    Example {
        name: "shop",
        shows: "a Flux Kustomization that is well",
        waits: &[&["--for=condition=Available", "deployment/web", "-n", "shop"]],
    },
    Example {
        name: "checkout",
        shows: "a Flux Kustomization whose Deployment crashes",
        waits: &[
            // `kubectl wait` by label fails if the Pods do not exist yet.
            &["--for=jsonpath={.status.updatedReplicas}=2", "deployment/api", "-n", "checkout"],
            &[
                "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff",
                "pod",
                "-l",
                "app=api",
                "-n",
                "checkout",
            ],
        ],
    },
    Example {
        name: "billing",
        shows: "a Flux Kustomization one of whose objects is gone",
        waits: &[&["--for=condition=Available", "deployment/invoices", "-n", "billing"]],
    },
    Example {
        name: "reports",
        shows: "a suspended Flux Kustomization",
        waits: &[&["--for=condition=Available", "deployment/worker", "-n", "reports"]],
    },
    Example {
        name: "wiki",
        shows: "an app that only its labels make one",
        waits: &[&["--for=condition=Available", "deployment/wiki", "-n", "wiki"]],
    },
    Example {
        name: "search",
        shows: "a rollout that exceeds its deadline of 10 s",
        waits: &[&["--for=condition=Progressing=False", "deployment/index", "-n", "search"]],
    },
    Example { name: "notes", shows: "a Helm release, installed by helm", waits: &[] },
];

impl Example {
    /// Returns the example with this name; an error that lists all names if there is none.
    pub fn named(name: &str) -> Result<Self> {
        match ALL.iter().find(|example| example.name == name) {
            Some(example) => Ok(*example),
            None => bail!(
                "there is no example {name:?}; there are {}",
                ALL.iter().map(|example| example.name).collect::<Vec<_>>().join(", ")
            ),
        }
    }

    /// Applies the manifests of the example, or installs its Helm chart, in a cluster, which creates it or restores its
    /// first state.
    pub fn apply(self, plane: &ControlPlane, context: &str) -> Result<()> {
        if self.name == "notes" {
            return install_notes(plane, context, "notes", &[]);
        }
        apply_source(plane, context)?;
        apply_file(plane, context, self.name)
    }

    /// Waits until the controllers have brought the example to its final state; fails if that takes more than a minute
    /// for any condition.
    pub fn settle(self, plane: &ControlPlane, context: &str) -> Result<()> {
        self.waits.iter().try_for_each(|condition| {
            plane
                .wait(context, condition)
                .with_context(|| format!("example {} on {context} does not reach its final state", self.name))
        })
    }
}

/// Creates the fetched Git repository `flux-system/fleet`, the source of the Kustomizations.
pub fn apply_source(plane: &ControlPlane, context: &str) -> Result<()> {
    apply_file(plane, context, "flux-system")
}

/// Returns a Kustomization as Flux leaves it after applying these objects without waiting for them: its status says
/// nothing about their health. `inventory` has entries `NAMESPACE_NAME_GROUP_KIND`; all are of version v1.
pub fn kustomization(namespace: &str, name: &str, inventory: &[&str]) -> String {
    const REVISION: &str = "main@sha1:3f1c9a7be1d84a0c5e7d2b96f80a41c2d7e5b613";

    let entries: String = inventory.iter().map(|id| format!("      - {{id: {id}, v: v1}}\n")).collect();
    format!(
        "\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: {name}
  namespace: {namespace}
spec:
  interval: 10m
  prune: true
  sourceRef: {{kind: GitRepository, name: fleet, namespace: flux-system}}
status:
  observedGeneration: 1
  lastAppliedRevision: {REVISION}
  lastAttemptedRevision: {REVISION}
  conditions:
    - type: Ready
      status: 'True'
      reason: ReconciliationSucceeded
      message: 'Applied revision: {REVISION}'
      observedGeneration: 1
      lastTransitionTime: 2026-03-01T12:00:00Z
  inventory:
    entries:
{entries}"
    )
}

fn apply_file(plane: &ControlPlane, context: &str, name: &str) -> Result<()> {
    let file = source_folder().join("examples").join(format!("{name}.yaml"));
    let manifests =
        fs::read_to_string(&file).with_context(|| format!("cannot read the example {}", file.display()))?;
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    plane
        .apply_with_status(context, &manifests.replace("${NOW}", &now))
        .with_context(|| format!("cannot apply the example {name} on {context}"))
}

/// Installs the chart `charts/notes` as the release `notes` in `namespace`, or upgrades it, with more `arguments` for
/// helm; waits until helm reports it as ready, and fails after 60 s.
pub fn install_notes(plane: &ControlPlane, context: &str, namespace: &str, arguments: &[&str]) -> Result<()> {
    let chart = source_folder().join("charts/notes").display().to_string();
    let mut all =
        vec!["upgrade", "--install", "notes", &chart, "--namespace", namespace, "--create-namespace"];
    all.extend(["--wait", "--timeout=60s"]);
    all.extend(arguments);
    plane.helm(context, &all).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_its_manifests() {
        for example in ALL.iter().filter(|example| example.name != "notes") {
            let file = source_folder().join("examples").join(format!("{}.yaml", example.name));
            let text = fs::read_to_string(&file).expect("the file is there");
            assert!(
                text.contains(&format!("kind: Namespace\nmetadata:\n  name: {}\n", example.name)),
                "{}",
                example.name
            );
        }
        assert!(Example::named("nothing").is_err());
    }
}
